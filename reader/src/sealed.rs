//! Files in sealed memory (memfd), immune to truncation: a copy that nobody can change, and room for a remote file.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// Bytes copied at a time: whole huge pages, so that memory is allocated in huge pages.
const PIECE_BYTES: usize = 8 << 20;

/// Creates a memfd that can be sealed and cannot be executed.
fn create() -> io::Result<File> {
    let open = |flags| {
        let name: &CStr = c"pleach";
        // SAFETY: `name` is a NUL-terminated string that outlives the call; the call accesses no other
        // memory.
        let raw =
            unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | flags) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened `raw` for us, and nothing else owns it.
        Ok(File::from(unsafe { OwnedFd::from_raw_fd(raw) }))
    };
    // If `vm.memfd_noexec` is 2, a memfd must be created with this flag; kernels before 6.3 do not know it.
    open(libc::MFD_NOEXEC_SEAL).or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => open(0),
        _ => Err(error),
    })
}

/// Copies `length` bytes of `file` into a new memfd and seals it against any change.
pub(crate) fn copy(file: &File, length: u64) -> io::Result<File> {
    let copy = create()?;
    copy.set_len(length)?;
    let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(length).unwrap_or(PIECE_BYTES)).max(1)];
    let mut at = 0;
    while at < length {
        let wanted = piece.len().min(usize::try_from(length - at).unwrap_or(piece.len()));
        file.read_exact_at(&mut piece[..wanted], at)?;
        copy.write_all_at(&piece[..wanted], at)?;
        at += wanted as u64;
    }
    seal(&copy, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE | libc::F_SEAL_SEAL)?;
    Ok(copy)
}

/// Creates a memfd of `length` bytes without contents, whose length never changes.
pub(crate) fn empty(length: u64) -> io::Result<File> {
    let file = create()?;
    file.set_len(length)?;
    seal(&file, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL)?;
    Ok(file)
}

fn seal(file: &File, seals: libc::c_int) -> io::Result<()> {
    // SAFETY: the call accesses no memory, and the descriptor is borrowed.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
