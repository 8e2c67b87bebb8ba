//! Bytes of a file that is elsewhere: who brings them ([`Fetch`]), and the memory that takes them.
//!
//! The memory is a file without a name, as long as the remote one and without contents until blocks are written to it.
//! It is mapped like any other file, so searches read it as they read local files. Blocks are written by the system
//! and not through the mapping: no reference to their bytes is ever written through. Who reads a block has seen its
//! bit in the bitmap of `touched`, which is set after the block was written.

use crate::error::ReadError;
use pleach_format::Header;
use pleach_format::checksum::SUM_BLOCK_BYTES;
use pleach_format::section::Tag;
use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum length of a range that [`Fetch::fetch`] is asked for.
pub const FETCH_RANGE_BYTES: u64 = 8 << 20;
/// Maximum length of all ranges of a call of [`Fetch::fetch`].
pub const FETCH_BYTES: u64 = 64 << 20;

/// Source of the bytes of a file that is elsewhere, in an object store say.
///
/// Calls come from any number of threads at once, and wait until the bytes are there. Retries and time limits are the
/// work of the source.
///
/// ```
/// use pleach::{Fetch, Index};
/// use std::{io, ops::Range, sync::Arc};
///
/// #[derive(Debug)]
/// struct Memory(Vec<u8>);
///
/// impl Fetch for Memory {
///     fn fetch(&self, ranges: &[Range<u64>], take: &mut dyn FnMut(usize, &[u8])) -> io::Result<()> {
///         for (number, range) in ranges.iter().enumerate() {
///             take(number, &self.0[range.start as usize..range.end as usize]);
///         }
///         Ok(())
///     }
/// }
///
/// let bytes = pleach::Builder::new().to_bytes((0..100u64).map(|key| (key, key * key)))?;
/// let length = bytes.len() as u64;
/// let index = Index::options().open_remote("memory:squares", Arc::new(Memory(bytes)), length)?;
/// assert_eq!(index.typed::<u64, u64>()?.get(12)?, Some(144));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Brings byte ranges of the file: passes the number of each range and all its bytes to `take`, once, in any
    /// order.
    ///
    /// Ranges ascend, do not overlap, are not empty and end inside the file. They touch only where a range was cut:
    /// each has at most [`FETCH_RANGE_BYTES`], and all of a call at most [`FETCH_BYTES`]. What was passed before an
    /// error is verified and kept.
    ///
    /// # Errors
    /// An error of the source. Its kind and its text are those of [`ReadError::Fetch`], so it must not contain
    /// credentials.
    fn fetch(&self, ranges: &[Range<u64>], take: &mut dyn FnMut(usize, &[u8])) -> io::Result<()>;
}

/// Returns the byte ranges that opening a remote file fetches after the first 8 KiB: names and types, sums, masks of
/// byte keys, and what leads to tuple lines and pages. For programs that report or limit what they download.
///
/// These are the spine, or without one the grid, the trie and the places of pages. Trees (FAST, Harmonia's, B+tree)
/// are as large as the keys: their blocks are fetched when a look-up needs them.
///
/// ```
/// # use pleach::{Header, index_part};
/// # let bytes = pleach::Builder::new().to_bytes((0..100_000u64).map(|key| (key, key)))?;
/// let header = Header::parse(&bytes[..8192], bytes.len() as u64)?;
/// let size: u64 = index_part(&header).iter().map(|range| range.end - range.start).sum();
/// assert!(size < bytes.len() as u64 / 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn index_part(header: &Header) -> Vec<Range<u64>> {
    let has_spine = header.section(Tag::SPINE).is_some();
    let mut parts: Vec<Range<u64>> = Vec::new();
    for section in &header.sections {
        let is_whole = match section.entry.tag {
            Tag::META | Tag::MASK | Tag::SUMS | Tag::SUM2 | Tag::SPINE | Tag::TRIE => true,
            Tag::GRID => !has_spine,
            _ => false,
        };
        let end = match header.pages() {
            _ if is_whole => section.end,
            // The symbols, and the places of pages.
            Some(pages) if section.entry.tag == Tag::TEXT => {
                let bytes = pages.data_offset() - section.offset();
                section.end.min(section.offset() + bytes.next_multiple_of(SUM_BLOCK_BYTES as u64))
            }
            _ => continue,
        };
        match parts.last_mut() {
            Some(last) if last.end == section.offset() => last.end = end,
            _ if end > section.offset() => parts.push(section.offset()..end),
            _ => {}
        }
    }
    parts
}

/// The source of a remote file, and the memory for its blocks.
pub(crate) struct Remote {
    /// Nothing of ours is half-done if a source panics: blocks are published one by one.
    source: AssertUnwindSafe<Arc<dyn Fetch>>,
    memory: File,
    brought: AtomicU64,
}

impl Remote {
    /// Creates memory for `length` bytes, without contents.
    pub(crate) fn new(source: Arc<dyn Fetch>, length: u64) -> io::Result<Self> {
        let source = AssertUnwindSafe(source);
        Ok(Self { source, memory: memory(length)?, brought: AtomicU64::new(0) })
    }

    /// Returns the memory, to be mapped.
    pub(crate) fn memory(&self) -> &File {
        &self.memory
    }

    /// Returns the number of bytes that were written.
    pub(crate) fn brought_bytes(&self) -> u64 {
        self.brought.load(Ordering::Relaxed)
    }

    /// Fetches ranges, and passes the offset and the bytes of each to `take`.
    pub(crate) fn fetch(&self, ranges: &[Range<u64>], take: impl FnMut(u64, &[u8])) -> Result<(), ReadError> {
        fetch(&**self.source, ranges, take)
    }

    /// Writes bytes that were brought, which nobody reads before they are published.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), ReadError> {
        let written = self.memory.write_all_at(bytes, offset);
        written.map_err(|error| failed(&(offset..offset + bytes.len() as u64), &error))?;
        self.brought.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Creates a file without a name and without contents, in memory.
#[cfg(target_os = "linux")]
fn memory(length: u64) -> io::Result<File> {
    crate::sealed::empty(length)
}

/// Creates a file without a name and without contents among the temporary ones.
#[cfg(not(target_os = "linux"))]
fn memory(length: u64) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = format!("pleach-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    file.set_len(length)?;
    Ok(file)
}

fn failed(range: &Range<u64>, error: &io::Error) -> ReadError {
    let (offset, bytes) = (range.start, range.end - range.start);
    ReadError::Fetch { offset, bytes, kind: error.kind(), message: error.to_string().into() }
}

/// Fetches ranges from a source, and passes the offset and the bytes of each to `take`, once.
pub(crate) fn fetch(
    source: &dyn Fetch,
    ranges: &[Range<u64>],
    mut take: impl FnMut(u64, &[u8]),
) -> Result<(), ReadError> {
    let Some(first) = ranges.first() else { return Ok(()) };
    let mut is_there = vec![false; ranges.len()];
    let mut short = None;
    let fetched = source.fetch(ranges, &mut |number, bytes| {
        let Some(range) = ranges.get(number) else { return };
        if bytes.len() as u64 != range.end - range.start {
            short.get_or_insert((number, bytes.len()));
        } else if !std::mem::replace(&mut is_there[number], true) {
            take(range.start, bytes);
        }
    });
    fetched.map_err(|error| failed(first, &error))?;
    let missing = is_there.iter().position(|is_there| !is_there).map(|number| (number, 0));
    let Some((number, found)) = short.or(missing) else { return Ok(()) };
    let error = io::Error::new(io::ErrorKind::UnexpectedEof, format!("the source gave {found} bytes"));
    Err(failed(&ranges[number], &error))
}

/// Joins ranges that touch, which ascend and are no longer than a block, into calls of [`Fetch::fetch`].
pub(crate) fn calls(ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Vec<Range<u64>>> {
    let mut calls: Vec<Vec<Range<u64>>> = Vec::new();
    let mut bytes = 0;
    for range in ranges {
        let length = range.end - range.start;
        bytes += length;
        let Some(call) = calls.last_mut().filter(|_| bytes <= FETCH_BYTES) else {
            calls.push(vec![range]);
            bytes = length;
            continue;
        };
        match call.last_mut() {
            Some(last) if last.end == range.start && range.end - last.start <= FETCH_RANGE_BYTES => {
                last.end = range.end;
            }
            _ => call.push(range),
        }
    }
    calls
}

/// A block of a section: the number of the section, and its number there.
pub(crate) type Block = (usize, u64);

thread_local! {
    /// Blocks that look-ups of this thread lack, while they are foreseen.
    static LACKING: RefCell<Option<Vec<Block>>> = const { RefCell::new(None) };
}

/// Runs look-ups that fetch nothing, and returns the blocks that they lack; `None` if this thread does so already.
pub(crate) fn lacking(look: impl FnOnce()) -> Option<Vec<Block>> {
    /// Ends the mode also if a look-up panics.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            LACKING.take();
        }
    }
    let is_new =
        LACKING.with_borrow_mut(|lacking| lacking.is_none() && lacking.insert(Vec::new()).is_empty());
    if !is_new {
        return None;
    }
    let end = End;
    look();
    let blocks = LACKING.take();
    drop(end);
    blocks
}

/// Returns the number of blocks that look-ups lack so far.
pub(crate) fn lacking_count() -> usize {
    LACKING.with_borrow(|lacking| lacking.as_ref().map_or(0, Vec::len))
}

/// Notes blocks that a look-up lacks, if it is one that fetches nothing: then it ends with the error.
pub(crate) fn note_lacking(blocks: &[Block]) -> Result<(), ReadError> {
    LACKING.with_borrow_mut(|lacking| {
        let Some(lacking) = lacking else { return Ok(()) };
        lacking.extend_from_slice(blocks);
        let kind = io::ErrorKind::WouldBlock;
        Err(ReadError::Fetch { offset: 0, bytes: 0, kind, message: Box::default() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_cut() {
        assert_eq!(calls([0..8, 8..16, 24..32]), [vec![0..16, 24..32]]);
        assert!(calls([]).is_empty());
        let (block, count) = (8192, 3 * FETCH_BYTES / 8192);
        // The last block of a section may be half as long.
        let blocks = (0..count).map(|at| at * block + 4096..(at + 1) * block + 4096);
        let all = calls(std::iter::once(0..4096).chain(blocks));
        assert_eq!(all.len(), 4);
        let mut at = 0;
        for call in &all {
            assert!(call.iter().map(|range| range.end - range.start).sum::<u64>() <= FETCH_BYTES);
            for range in call {
                assert!(range.start == at && range.end > at && range.end - at <= FETCH_RANGE_BYTES);
                assert!(range.end % block == 4096, "a block is not cut");
                at = range.end;
            }
        }
        assert_eq!(at, count * block + 4096);
    }

    #[test]
    fn look_ups_note_what_they_lack() {
        assert_eq!(note_lacking(&[(0, 1)]), Ok(()));
        let blocks = lacking(|| {
            assert!(note_lacking(&[(2, 3)]).is_err());
            assert_eq!(lacking_count(), 1);
            assert_eq!(lacking(|| panic!("not within another")), None);
        });
        assert_eq!(blocks, Some(vec![(2, 3)]));
        assert_eq!(lacking_count(), 0);
    }
}
