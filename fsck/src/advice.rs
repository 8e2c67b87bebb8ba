//! Advice to the kernel about the bytes that will be read next.

use std::fs::File;

/// Announces that these bytes of a file will be read soon. The kernel begins to read them; the call does not
/// wait.
#[cfg(target_os = "linux")]
pub(crate) fn will_need(file: &File, offset: u64, bytes: u64) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(bytes)) = (i64::try_from(offset), i64::try_from(bytes)) else { return };
    // SAFETY: the borrow of `file` guarantees that the descriptor is open. The call takes no pointers, and
    // its result only says whether the hint was accepted.
    let _ = unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, bytes, libc::POSIX_FADV_WILLNEED) };
}

/// Does nothing, because this system has no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn will_need(_file: &File, _offset: u64, _bytes: u64) {}
