//! Hints to the kernel and the caches. Without them the same bytes are written, only more slowly.

use pleach_format::mask::Chunk;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Starts writing a range of a file to the disk, without waiting for it.
///
/// A kernel that cannot do this is not an error; a failing write is.
#[cfg(target_os = "linux")]
pub(crate) fn start_writeback(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let (Ok(offset), Ok(bytes)) = (i64::try_from(offset), i64::try_from(bytes)) else { return Ok(()) };
    // SAFETY: the descriptor is open as long as `file` is borrowed; the call takes no pointers.
    let result =
        unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EIO | libc::ENOSPC | libc::EDQUOT) => Err(error),
        _ => Ok(()),
    }
}

/// Does nothing: this system has no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn start_writeback(_file: &File, _offset: u64, _bytes: u64) -> io::Result<()> {
    Ok(())
}

/// Requests huge pages for a large buffer that is not filled yet: this saves a quarter of the page faults'
/// time of a sort.
#[cfg(target_os = "linux")]
pub(crate) fn advise_huge<T>(buffer: &mut [T]) {
    let Some((from, bytes)) = pages(buffer) else { return };
    // SAFETY: `pages` returns a range inside a buffer that is borrowed exclusively; MADV_HUGEPAGE changes how
    // the kernel backs it, never its content, and failure changes nothing.
    let _ = unsafe { libc::madvise(from as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
}

/// Returns the whole pages of a buffer to the system. The content of the buffer is unspecified afterwards:
/// some elements are zero.
#[cfg(target_os = "linux")]
pub(crate) fn release<T: zerocopy::FromZeros>(buffer: &mut [T]) {
    let Some((from, bytes)) = pages(buffer) else { return };
    // SAFETY: `pages` returns a range inside a buffer that is borrowed exclusively. The allocator returns
    // private anonymous memory, whose pages read as zeros after MADV_DONTNEED, and `FromZeros` guarantees
    // that all zeros is a valid `T`.
    let _ = unsafe { libc::madvise(from as *mut libc::c_void, bytes, libc::MADV_DONTNEED) };
}

/// Does nothing: this system has no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn release<T: zerocopy::FromZeros>(_buffer: &mut [T]) {}

/// Returns the first address and the bytes of the whole pages inside a buffer.
#[cfg(target_os = "linux")]
fn pages<T>(buffer: &mut [T]) -> Option<(usize, usize)> {
    // The largest page size in use: a multiple of all others.
    const PAGE: usize = 64 << 10;
    let from = buffer.as_mut_ptr() as usize;
    let to = (from + size_of_val(buffer)) / PAGE * PAGE;
    let from = from.next_multiple_of(PAGE);
    (from < to).then(|| (from, to - from))
}

/// Does nothing: this system has no such call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn advise_huge<T>(_buffer: &mut [T]) {}

/// Does the same as [`Chunk::compress`], with BMI2 if the CPU has it.
#[inline(always)]
pub(crate) fn compress(chunk: &Chunk, bytes: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if pleach_format::cpu::bmi2() {
        // SAFETY: the check above found BMI2.
        return unsafe { core::arch::x86_64::_pext_u64(bytes, chunk.mask) };
    }
    chunk.compress(bytes)
}
