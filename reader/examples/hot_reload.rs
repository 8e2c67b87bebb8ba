//! Follows a file that is rebuilt while threads read it.

use pleach::{Builder, Live, Map};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn publish(path: &Path, version: u64) -> pleach::Result<()> {
    // All values of a generation are its version.
    Builder::new().build(path, (0..1000u32).map(|key| (key, version)))?;
    Ok(())
}

pub(crate) fn main() -> pleach::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("versions.pleach");
    publish(&path, 1)?;

    let table: Live<Map<u32, u64>> = Live::open(&path)?;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| -> pleach::Result<()> {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| -> pleach::Result<u64> {
                    let mut newest = 0;
                    while !is_done.load(Ordering::Relaxed) {
                        // One generation for as long as answers must agree: never a mixture of two.
                        let map = table.current();
                        let values = map.get_many(&[0, 500, 999])?;
                        assert!(values.iter().all(|value| *value == values[0]));
                        newest = newest.max(values[0].unwrap_or_default());
                    }
                    Ok(newest)
                })
            })
            .collect();
        for version in 2..=10 {
            // Usually another process does this.
            publish(&path, version)?;
            // One system call if there is nothing new.
            assert!(table.refresh()? && !table.refresh()?);
        }
        is_done.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().expect("the reader ends")? <= 10);
        }
        Ok(())
    })?;
    assert_eq!(table.current().get(7)?, Some(10));
    println!("generation {}", table.current().index().generation());
    Ok(())
}
