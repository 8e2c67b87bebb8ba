//! Owner of the bytes of an open file: a mapping, a sealed copy in memory, or an aligned vector.

use crate::fetch::{Fetch, Remote};
use crate::sigbus::Watch;
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A line of memory that begins on a cache line.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
struct AlignedLine([u8; 64]);

/// Reads until the buffer is full or the file ends, and returns the number of bytes read.
pub(crate) fn read_at_most(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match std::os::unix::fs::FileExt::read_at(file, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The bytes of a file.
pub(crate) enum Storage {
    /// A shared read-only mapping of the file; the `Watch` detects truncation.
    Mapped(Watch, Mmap),
    /// A sealed copy in memory, which nobody can change or truncate.
    #[cfg(target_os = "linux")]
    Resident(Mmap),
    /// A mapping of memory to which blocks of a remote file are written before they are read.
    Remote(Mmap, Remote),
    /// A copy on this process's heap.
    Owned(Vec<u8>),
    /// A copy on the heap, moved to the start of a cache line.
    Aligned(AlignedBytes),
}

/// Heap bytes that begin on a cache line.
pub(crate) struct AlignedBytes {
    lines: Vec<AlignedLine>,
    length: usize,
}

impl Storage {
    /// Maps a file read-only.
    ///
    /// The first access to a region then reads 2 MiB. `HUGEPAGE` must come before `RANDOM`, and both before
    /// the first access (measured: 1 ms per access with a cold cache, against 6 to 11 ms without advice).
    pub(crate) fn map(file: &File, length: u64) -> io::Result<Self> {
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        // SAFETY: the mapping is only read, but other processes may overwrite the file. Nothing rests on its
        // contents: the header, a copy, bounds every search, and searches accept any bytes, even different
        // ones at each read. No slice of the mapping leaves this crate except through an unsafe function.
        // Returned values, and the sources of texts, offsets and flags, are copied first and checked in the
        // copy. If the file is truncated, reading raises SIGBUS, which `sigbus` contains if the program asked
        // for it.
        let map = unsafe { memmap2::MmapOptions::new().len(length).map(file)? };
        #[cfg(target_os = "linux")]
        for advice in [Advice::HugePage, Advice::Random] {
            // Best effort: a kernel without huge pages returns an error, which has no effect.
            let _ = map.advise(advice);
        }
        let watch = Watch::new(map.as_ptr() as usize, length);
        Ok(Self::Mapped(watch, map))
    }

    /// Copies a file into sealed memory.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident(file: &File, length: u64) -> io::Result<Self> {
        let copy = crate::sealed::copy(file, length)?;
        let map = Mmap::map_if_safe(&copy).map_err(io::Error::from)?;
        let _ = map.advise(Advice::HugePage);
        Ok(Self::Resident(map))
    }

    /// Reads a file onto the heap, on systems without sealed memory.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn resident(file: &File, length: u64) -> io::Result<Self> {
        use std::io::Read;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes)?;
        Ok(Self::owned(bytes))
    }

    /// Maps memory for a remote file of this length.
    pub(crate) fn remote(source: Arc<dyn Fetch>, length: u64) -> io::Result<Self> {
        let remote = Remote::new(source, length)?;
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        // SAFETY: as in `map`, except that only `remote` writes to the file, which has no name, and nobody truncates
        // it. A block is written by a system call, not through the mapping, before its bytes are read.
        let map = unsafe { memmap2::MmapOptions::new().len(length).map(remote.memory())? };
        Ok(Self::Remote(map, remote))
    }

    /// Returns the source of blocks, if the file is remote.
    #[inline]
    pub(crate) fn source(&self) -> Option<&Remote> {
        match self {
            Self::Remote(_, remote) => Some(remote),
            _ => None,
        }
    }

    /// Takes ownership of bytes; moves them only if they do not begin on a cache line.
    pub(crate) fn owned(bytes: Vec<u8>) -> Self {
        if bytes.as_ptr().align_offset(64) == 0 {
            return Self::Owned(bytes);
        }
        let length = bytes.len();
        let mut lines = vec![AlignedLine([0; 64]); length.div_ceil(64)];
        lines.as_mut_slice().as_mut_bytes()[..length].copy_from_slice(&bytes);
        Self::Aligned(AlignedBytes { lines, length })
    }

    /// Returns all bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(_, map) | Self::Remote(map, _) => map,
            #[cfg(target_os = "linux")]
            Self::Resident(map) => map,
            Self::Owned(bytes) => bytes,
            Self::Aligned(aligned) => &aligned.lines.as_slice().as_bytes()[..aligned.length],
        }
    }

    /// Returns true if the bytes never change, because they are a copy of ours.
    #[inline]
    pub(crate) fn lies_still(&self) -> bool {
        !matches!(self, Self::Mapped(..) | Self::Remote(..))
    }

    /// Returns the watch that detects truncation of the mapping, if there is one.
    pub(crate) fn watch(&self) -> Option<&Watch> {
        match self {
            Self::Mapped(watch, _) => Some(watch),
            _ => None,
        }
    }

    /// Returns true if the file was truncated while it was mapped.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Mapped(watch, _) if watch.is_lost())
    }

    /// Returns the name that `describe` shows.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Mapped(..) => "mapped",
            Self::Remote(..) => "remote",
            #[cfg(target_os = "linux")]
            Self::Resident(_) => "resident",
            Self::Owned(_) | Self::Aligned(_) => "owned",
        }
    }
}
