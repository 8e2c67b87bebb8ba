//! Reading that fails, which no file can be made to do at will.

use super::{Check, ReadAt};
use pleach_kit::mutate::victim;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes whose n-th reading fails.
struct Failing {
    bytes: Vec<u8>,
    left: AtomicU64,
}

impl ReadAt for Failing {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.bytes.as_slice().read_exact_at(buffer, offset)
    }
}

/// A check that could not read everything is no check.
#[test]
fn every_failed_reading_is_an_error() {
    let bytes = victim().1;
    let mut failed = 0;
    for n in 1.. {
        let source = Failing { bytes: bytes.clone(), left: AtomicU64::new(n) };
        match Check::new(&source, bytes.len() as u64, None).run() {
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::TimedOut, "reading {n}"),
            Ok(report) => {
                assert_eq!(report.findings, []);
                break;
            }
        }
        failed = n;
    }
    assert!(failed > 20, "{failed} readings");
}
