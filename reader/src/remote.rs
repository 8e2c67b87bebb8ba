//! Remote files: an index over bytes that are fetched when a look-up needs them.
//!
//! Opening fetches the part of the file that leads to tuple lines and pages ([`index_part`]). Every other block of
//! 8 KiB is fetched when it is first read, verified by its sum, and kept as long as the index. So a look-up fetches
//!
//! * one block, if values are numbers: that of the tuple line;
//! * one more for a value or a key in a column of elements of one length, a tail, or a code;
//! * two more for elements that vary in length: their offsets and their bytes;
//! * one for the page of a byte key by page, and that of the tuple line;
//! * one more wherever what it reads goes over the border of a block, or the nearest tuple is in the next one;
//! * O(levels) in a file that has a tree, or nothing, in place of a spine or a grid.
//!
//! A batch is *foreseen*: its look-ups run without fetching, and note the blocks that they lack. These come in one
//! call of [`Fetch::fetch`], and the look-ups that lacked one run again. A batch of numbers takes one round, or two if
//! some go over a border. Scans and iterators fetch ahead.

use crate::bytes::Storage;
use crate::error::{OpenError, ReadError};
use crate::fetch::{self, Fetch, index_part};
use crate::index::{Index, OpenOptions, Verify};
use crate::queries::Queries;
use crate::strings::Strings;
use crate::typed::Typed;
use pleach_format::checksum::SUM_BLOCK_BYTES;
use pleach_format::view::HEAD_BYTES;
use pleach_format::{Header, Key, Value};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

impl OpenOptions {
    /// Opens a file of `bytes` bytes that is elsewhere; messages name it `name`, a URI say. Fetches its first 8 KiB,
    /// and in a second call the parts that [`index_part`] returns. Look-ups fetch the other blocks that they need.
    ///
    /// Each block is verified before it is used, as with [`Verify::Touched`], and kept as long as the index. The
    /// residence has no effect, and [`Index::refresh`] finds no next generation.
    ///
    /// # Errors
    /// [`OpenError::Io`] if bytes cannot be fetched, or with [`Verify::Full`], for which all of them would be needed;
    /// otherwise those of [`OpenOptions::open`].
    pub fn open_remote(
        self,
        name: impl AsRef<Path>,
        source: Arc<dyn Fetch>,
        bytes: u64,
    ) -> Result<Index, OpenError> {
        let path = name.as_ref().to_owned();
        let failed = |operation, source| OpenError::Io { operation, path: path.clone(), source };
        if self.is_verify(Verify::Full) {
            let advice =
                "a remote file is verified block by block: use touched, or fetch it and run `pleach fsck`";
            return Err(failed("verify", io::Error::new(io::ErrorKind::Unsupported, advice)));
        }
        let unfetched = |error| match error {
            ReadError::Fetch { offset, bytes, kind, message } => {
                let text = format!("{bytes} bytes at offset {offset}: {message}");
                failed("fetch", io::Error::new(kind, text))
            }
            other => failed("fetch", io::Error::other(other)),
        };
        let mut head = Vec::new();
        fetch::fetch(&*source, &head_range(bytes), |_, bytes| head.extend_from_slice(bytes))
            .map_err(unfetched)?;
        let header = Header::parse(&head, bytes);
        let header = header.map_err(|source| OpenError::Format { path: path.clone(), source })?;
        let storage = Storage::remote(source, bytes).map_err(|error| failed("map", error))?;
        if let Some(remote) = storage.source() {
            remote.write(0, &head).map_err(unfetched)?;
            // Nobody reads these bytes before `finish` has verified them.
            for call in fetch::calls(blocks(&index_part(&header))) {
                let mut written = Ok(());
                let fetched = remote.fetch(&call, |offset, bytes| {
                    let outcome = remote.write(offset, bytes);
                    written = std::mem::replace(&mut written, Ok(())).and(outcome);
                });
                fetched.and(written).map_err(unfetched)?;
            }
        }
        self.verify(Verify::Touched).finish(path, header, storage)
    }
}

/// Returns the range of the superblock and the section table, if there is anything.
fn head_range(bytes: u64) -> Vec<Range<u64>> {
    (bytes > 0).then(|| 0..bytes.min(HEAD_BYTES as u64)).into_iter().collect()
}

/// Cuts ranges into blocks.
fn blocks(parts: &[Range<u64>]) -> impl Iterator<Item = Range<u64>> + '_ {
    parts.iter().flat_map(|part| {
        let starts = part.clone().step_by(SUM_BLOCK_BYTES);
        starts.map(|start| start..part.end.min(start + SUM_BLOCK_BYTES as u64))
    })
}

impl Index {
    /// Returns true if the bytes are elsewhere, and fetched when they are needed ([`OpenOptions::open_remote`]).
    #[inline]
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.source().is_some()
    }

    /// Returns the bytes that were fetched of a remote file and are in memory; `None` for other files.
    #[must_use]
    pub fn brought_bytes(&self) -> Option<u64> {
        Some(self.source()?.brought_bytes())
    }

    /// Brings `length` bytes from `offset` of a remote file, and verifies their blocks. Does nothing for other files.
    /// O(length), in calls of up to [`crate::FETCH_BYTES`].
    ///
    /// # Errors
    /// [`ReadError::Fetch`] if bytes cannot be fetched, and [`ReadError::Format`] if a block does not match its sum.
    /// Blocks that were brought before an error are kept.
    #[inline]
    pub fn bring(&self, offset: u64, length: u64) -> Result<(), ReadError> {
        if self.is_remote() { self.bring_range(offset, length) } else { Ok(()) }
    }

    #[cold]
    fn bring_range(&self, offset: u64, length: u64) -> Result<(), ReadError> {
        self.verified().map_or(Ok(()), |verified| verified.check_range(offset, length))
    }

    /// Brings the blocks of a remote file that look-ups numbered from 0 to `count` lack: they run without fetching,
    /// and again once what they lacked is there. Does nothing for other files. Errors other than those of fetching
    /// are left to the look-up itself.
    #[inline]
    pub(crate) fn foresee(
        &self,
        count: usize,
        mut look_up: impl FnMut(usize) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        if self.is_remote() { self.foresee_all(count, &mut look_up) } else { Ok(()) }
    }

    #[cold]
    fn foresee_all(
        &self,
        count: usize,
        look_up: &mut dyn FnMut(usize) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let (Some(verified), Some(source)) = (self.verified(), self.source()) else { return Ok(()) };
        let mut left: Vec<usize> = (0..count).collect();
        while !left.is_empty() {
            let blocks = fetch::lacking(|| {
                left.retain(|&at| {
                    let before = fetch::lacking_count();
                    let _ = look_up(at);
                    fetch::lacking_count() > before
                });
            });
            // Within other look-ups that are foreseen, those note what is lacking.
            let Some(blocks) = blocks else { return Ok(()) };
            verified.bring(source, blocks)?;
        }
        Ok(())
    }
}

impl<K: Key, V: Value> Typed<'_, K, V> {
    /// Brings the blocks of a remote file that look-ups of these keys read, in as few calls as possible: one, and one
    /// more if some go over the border of a block. Does nothing for other files. Batches do it themselves.
    ///
    /// # Errors
    /// Those of [`Index::bring`].
    pub fn foresee(&self, keys: &[K]) -> Result<(), ReadError> {
        self.index().foresee(keys.len(), |at| self.hit(keys[at]).map(|_| ()))
    }
}

impl<V: Value> Strings<'_, V> {
    /// Brings the blocks of a remote file that look-ups of these keys read, in as few calls as possible. Does nothing
    /// for other files. Batches do it themselves.
    ///
    /// # Errors
    /// Those of [`Index::bring`].
    pub fn foresee<Q: Queries + ?Sized>(&self, keys: &Q) -> Result<(), ReadError> {
        self.index().foresee(keys.len(), |at| self.hit(keys.get(at)).map(|_| ()))
    }
}
