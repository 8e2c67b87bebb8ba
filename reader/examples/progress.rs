//! Watches a build, and cancels one.

use pleach::build::{Observer, Phase};
use pleach::{Builder, Error, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Default)]
struct Watch {
    read: AtomicU64,
    is_cancelled: AtomicBool,
}

// Both methods are called by several threads, many times a second.
impl Observer for Watch {
    fn progress(&self, phase: Phase, done: u64, total: Option<u64>) {
        if phase == Phase::Read {
            self.read.fetch_max(done, Ordering::Relaxed);
            assert!(total.is_none_or(|total| done <= total));
        }
    }
    fn cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

pub(crate) fn main() -> pleach::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("numbers.pleach");

    let watch = Watch::default();
    let numbers = || (0..500_000u64).map(|number| (number ^ 0x5555, ()));
    let summary = Builder::new().observer(&watch).build(&path, numbers())?;
    println!("read {} of {} tuples", watch.read.load(Ordering::Relaxed), summary.tuples);

    // A build that is cancelled leaves nothing behind: the first one is still there.
    let watch = Watch::default();
    let tuples = numbers().inspect(|(number, _)| {
        if *number > 400_000 {
            watch.is_cancelled.store(true, Ordering::Relaxed);
        }
    });
    let error = Builder::new().observer(&watch).build(&path, tuples).expect_err("was cancelled");
    assert_eq!(Error::from(error).kind(), ErrorKind::Interrupted);
    assert_eq!(pleach::Map::<u64, ()>::open(&path)?.index().generation(), 1);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    Ok(())
}
