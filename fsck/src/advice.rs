//! Telling the kernel what comes next.

use std::fs::File;

/// Says that these bytes of a file will be read soon: the kernel begins to read them, and nobody waits.
#[cfg(target_os = "linux")]
pub(crate) fn will_need(file: &File, offset: u64, bytes: u64) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(bytes)) = (i64::try_from(offset), i64::try_from(bytes)) else { return };
    // SAFETY: the descriptor is open as long as `file` is borrowed; the call takes no pointers, and what it answers is
    // only whether the hint was taken.
    let _ = unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, bytes, libc::POSIX_FADV_WILLNEED) };
}

/// Says nothing where there is no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn will_need(_file: &File, _offset: u64, _bytes: u64) {}
