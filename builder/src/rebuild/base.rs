//! Reading of a published file by the builder: section by section, every block verified.
//!
//! Bytes are read, never mapped, so truncation of the file is an error and not a signal. Each read covers
//! whole sum blocks and compares their sums. A block that does not match is an error that names it. If the
//! caller salvages what is left, such a block is skipped instead, and nothing of it is returned.

use crate::error::BuildError;
use crate::options::{BuildOptions, Unique};
use crate::source::{Intervals, Schema};
use crate::storage::{Storage, StorageFile};
use pleach_format::approximate::Approximate;
use pleach_format::checksum::{SUM_BLOCK_BYTES, SUM_BYTES, binding, crc32};
use pleach_format::interval::Ends;
use pleach_format::mask::Mask;
use pleach_format::meta::Meta;
use pleach_format::section::Tag;
use pleach_format::upgrade::upgraded;
use pleach_format::version::WRITER_FEATURES;
use pleach_format::view::{CLOSING_BYTES, FILE_BYTES_MIN, HEAD_BYTES, Section, through_copies};
use pleach_format::{FormatError, Header, Meaning};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const BLOCK: u64 = SUM_BLOCK_BYTES as u64;

/// Memory given to the build of the new file, which sorts nothing.
const BUILD_BYTES: u64 = 192 << 20;

/// Reads superblock and section table, or what there is of them.
fn read_head(file: &dyn StorageFile, bytes: u64, path: &Path) -> Result<Vec<u8>, BuildError> {
    let mut head = vec![0; bytes.min(HEAD_BYTES as u64) as usize];
    file.read_exact_at(&mut head, 0).map_err(|error| BuildError::io("reading", path, error))?;
    Ok(head)
}

/// An open base.
pub(crate) struct Base {
    file: Box<dyn StorageFile>,
    path: PathBuf,
    pub header: Header,
    /// Skip blocks that do not match, instead of failing.
    salvage: bool,
    /// Ranks that were skipped, in no order.
    lost: Mutex<Vec<Range<u64>>>,
}

impl Base {
    /// Opens a file and checks its header, as every reader does. With `salvage`, the copies at the end may
    /// replace superblock and section table.
    pub(crate) fn open(storage: &dyn Storage, path: &Path, salvage: bool) -> Result<Self, BuildError> {
        let (file, bytes) = storage.open(path).map_err(|error| BuildError::io("opening", path, error))?;
        Self::over(file, bytes, path, salvage)
    }

    /// Does the same with an open file of so many bytes, which is called `path`.
    pub(crate) fn over(
        file: Box<dyn StorageFile>,
        bytes: u64,
        path: &Path,
        salvage: bool,
    ) -> Result<Self, BuildError> {
        let head = read_head(&*file, bytes, path)?;
        let mut header = Header::parse(&head, bytes);
        if let Ok(header) = &header {
            let unknown = header.superblock.writer_features.get() & !WRITER_FEATURES;
            if unknown != 0 && !salvage {
                let source = FormatError::Feature { unknown };
                return Err(BuildError::Base { path: path.to_owned(), source });
            }
        }
        if header.is_err() && salvage && bytes >= FILE_BYTES_MIN {
            let mut closing = [0; CLOSING_BYTES];
            let read = file.read_exact_at(&mut closing, bytes - CLOSING_BYTES as u64);
            read.map_err(|error| BuildError::io("reading", path, error))?;
            if let Some((_, copy)) = through_copies(&head, &closing, bytes) {
                header = Ok(copy);
            }
        }
        let header = header.map_err(|source| BuildError::Base { path: path.to_owned(), source })?;
        Ok(Self { file, path: path.to_owned(), header, salvage, lost: Mutex::default() })
    }

    /// Opens a file of the version before this one as if it were of this one: what is read has a head that the
    /// file does not have.
    pub(crate) fn older(storage: &dyn Storage, path: &Path) -> Result<Self, BuildError> {
        let (file, bytes) = storage.open(path).map_err(|error| BuildError::io("opening", path, error))?;
        let head = read_head(&*file, bytes, path)?;
        let header = upgraded(&head).and_then(|head| Header::parse(&head, bytes));
        let header = header.map_err(|source| BuildError::Base { path: path.to_owned(), source })?;
        Ok(Self { file, path: path.to_owned(), header, salvage: false, lost: Mutex::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the ranks skipped so far, ascending, with adjacent ranges merged.
    pub(crate) fn lost(&self) -> Vec<Range<u64>> {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lost.sort_unstable_by_key(|ranks| ranks.start);
        let mut whole: Vec<Range<u64>> = Vec::new();
        for ranks in lost {
            match whole.last_mut() {
                Some(last) if last.end >= ranks.start => last.end = last.end.max(ranks.end),
                _ => whole.push(ranks),
            }
        }
        whole
    }

    pub(crate) fn lose(&self, ranks: Range<u64>) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        match lost.last_mut() {
            Some(last) if last.end == ranks.start => last.end = ranks.end,
            _ => lost.push(ranks),
        }
    }

    pub(crate) fn is_salvage(&self) -> bool {
        self.salvage
    }

    /// Reads bytes without verifying them.
    pub(crate) fn read(&self, bytes: &mut [u8], offset: u64) -> Result<(), BuildError> {
        self.file.read_exact_at(bytes, offset).map_err(|error| BuildError::io("reading", &self.path, error))
    }

    pub(crate) fn damaged(&self, tag: Tag, offset: u64) -> BuildError {
        BuildError::Damaged { path: self.path.clone(), section: tag.to_string(), offset }
    }

    pub(crate) fn corrupt(&self, source: FormatError) -> BuildError {
        BuildError::Base { path: self.path.clone(), source }
    }

    /// Returns a section and its list of sums, which is verified against its own sum; `None` if there is no
    /// such section. In salvage mode a damaged list is used all the same: it still has the sums of most
    /// blocks, and no other block matches by chance.
    pub(crate) fn section(&self, tag: Tag) -> Result<Option<Blocks<'_>>, BuildError> {
        let Some(section) = self.header.section(tag) else { return Ok(None) };
        let mut list = vec![0; section.entry.sums_bytes() as usize];
        self.read(&mut list, section.entry.sums_offset.get())?;
        if crc32(&list) != section.entry.sums_crc.get() && !self.salvage {
            return Err(self.damaged(Tag::SUMS, section.entry.sums_offset.get()));
        }
        let sums = list.as_chunks::<SUM_BYTES>().0.iter().map(|&sum| u32::from_le_bytes(sum)).collect();
        Ok(Some(Blocks { base: self, section: *section, sums, mended: None }))
    }

    /// Returns column names and logical types.
    pub(crate) fn meta(&self) -> Result<Meta, BuildError> {
        let Some(blocks) = self.section(Tag::META)? else { return Ok(Meta::default()) };
        let window = blocks.window(0, blocks.section.entry.length.get())?;
        let bytes = window.get(0, blocks.section.entry.length.get());
        Ok(bytes.map(Meta::decode).unwrap_or_default())
    }

    /// Returns the types and names of the columns.
    pub(crate) fn schema(&self) -> Result<Schema, BuildError> {
        let (meta, header) = (self.meta()?, &self.header);
        let ends = Ends::of(header.key_type, header.value_type, &meta.value_logical, &meta.interval);
        let approximate = Approximate::of(
            &Meaning::new(header.key_type, &meta.key_logical).logical,
            &meta.approximate,
            header.tuples,
        );
        Ok(Schema {
            interval: ends.map(|_| Intervals::Disjoint),
            derived: None,
            unique: None,
            approximate: approximate.map(|found| found.distinct),
            key_type: header.key_type,
            value_type: header.value_type,
            key_name: meta.key_name,
            value_name: meta.value_name,
            key_logical: meta.key_logical,
            value_logical: meta.value_logical,
            rows: None,
        })
    }

    /// Returns the options that the base was built with, as for a first generation. A layout unknown to this
    /// version is treated as the default.
    pub(crate) fn build_options(&self) -> Result<BuildOptions, BuildError> {
        let header = &self.header;
        Ok(BuildOptions {
            unique: header.is_unique().then_some(Unique::Error),
            sorted: true,
            memory_bytes: BUILD_BYTES,
            ..BuildOptions::default()
        }
        .with_layout(self.meta()?.layout.parse().unwrap_or_default()))
    }

    /// Returns the MASK section, which maps byte keys to words. A file with byte keys cannot be read without
    /// it.
    pub(crate) fn mask(&self) -> Result<Option<Mask>, BuildError> {
        let Some(blocks) = self.section(Tag::MASK)? else { return Ok(None) };
        let (offset, length) = (blocks.section.offset(), blocks.section.entry.length.get());
        let window = blocks.window(0, length)?;
        let repaired = match window.get(0, length) {
            None => Some(blocks.repaired()?.ok_or_else(|| self.damaged(Tag::MASK, offset))?),
            Some(_) => None,
        };
        let bytes = repaired.as_deref().or_else(|| window.get(0, length)).unwrap_or_default();
        let mask = Mask::parse(bytes, self.header.geometry.key_bytes, offset);
        mask.map(Some).map_err(|source| self.corrupt(source))
    }
}

/// A section whose blocks are verified when they are read.
pub(crate) struct Blocks<'a> {
    base: &'a Base,
    pub section: Section,
    /// Stored sum of each block.
    pub sums: Vec<u32>,
    /// The section with its padding, if its damage was undone.
    mended: Option<Vec<u8>>,
}

impl Blocks<'_> {
    /// Returns the content of a section whose blocks do not match their sums, if the damage can certainly be
    /// undone: the sums are damaged, or the padding, or one bit of a block. For small sections that are
    /// indispensable: a block costs as much time as reading 512 MiB.
    pub(crate) fn repaired(&self) -> Result<Option<Vec<u8>>, BuildError> {
        let (header, entry) = (&self.base.header, &self.section.entry);
        let length = entry.length.get() as usize;
        let mut bytes = vec![0; self.section.extent() as usize];
        self.base.read(&mut bytes, self.section.offset())?;
        let made = |bytes: &[u8]| -> Vec<u8> {
            let sums = (0u64..).zip(bytes.chunks(SUM_BLOCK_BYTES));
            sums.flat_map(|(block, bytes)| header.bound_sum(entry.tag, block, bytes).to_le_bytes()).collect()
        };
        // The sum over the sums in the section table decides, whatever the list now contains.
        let is_whole = |bytes: &[u8]| crc32(&made(bytes)) == entry.sums_crc.get();
        if !is_whole(&bytes) {
            bytes[length..].fill(0);
            // The bytes after the content are zeroed by now, so they are right or past help.
            for (block, part) in (0u64..).zip(bytes.chunks_mut(SUM_BLOCK_BYTES)) {
                if !self.matches(block, part) && !self.mend_bit(block, part) {
                    break;
                }
            }
        }
        let is_whole = is_whole(&bytes);
        bytes.truncate(length);
        Ok(is_whole.then_some(bytes))
    }

    /// Undoes the damage of a section of at most 64 blocks that many tuples depend on, if that is certainly possible.
    pub(crate) fn mend(&mut self) -> Result<(), BuildError> {
        const BLOCKS_MAX: u64 = 64;
        if self.section.extent() <= BLOCKS_MAX * BLOCK {
            self.mended = self.repaired()?.map(|mut bytes| {
                bytes.resize(self.section.extent() as usize, 0);
                bytes
            });
        }
        Ok(())
    }

    /// Undoes the change of one bit in a block; returns false if that does not explain the damage.
    fn mend_bit(&self, block: u64, bytes: &mut [u8]) -> bool {
        let content = self.section.entry.length.get().saturating_sub(block * BLOCK);
        (0..(bytes.len() as u64).min(content) * 8).any(|bit| {
            let (at, mask) = ((bit / 8) as usize, 1 << (bit % 8));
            bytes[at] ^= mask;
            let is_it = self.matches(block, bytes);
            if !is_it {
                bytes[at] ^= mask;
            }
            is_it
        })
    }

    /// Returns the bytes of a block; the last one may be shorter.
    fn block_bytes(&self, block: u64) -> u64 {
        BLOCK.min(self.section.extent() - block * BLOCK)
    }

    /// Returns true if the bytes of a block match its sum.
    pub(crate) fn matches(&self, block: u64, bytes: &[u8]) -> bool {
        let stored = self.sums.get(block as usize).copied();
        stored == Some(self.base.header.bound_sum(self.section.entry.tag, block, bytes))
    }

    /// Returns the sum of a block without the binding to this file.
    pub(crate) fn unbound(&self, block: u64) -> u32 {
        self.sums[block as usize]
            ^ binding(&self.base.header.superblock.file_id, self.section.entry.tag, block)
    }

    /// Fills `bytes`, which begin with block `first` and end at the end of a block. Returns the blocks that
    /// do not match: none, unless the base is salvaged.
    pub(crate) fn read(&self, first: u64, bytes: &mut [u8]) -> Result<Vec<u64>, BuildError> {
        self.base.read(bytes, self.section.offset() + first * BLOCK)?;
        let mut bad = Vec::new();
        for (block, bytes) in (first..).zip(bytes.chunks(SUM_BLOCK_BYTES)) {
            if !self.matches(block, bytes) {
                if !self.base.salvage {
                    let offset = self.section.offset() + block * BLOCK;
                    return Err(self.base.damaged(self.section.entry.tag, offset));
                }
                bad.push(block);
            }
        }
        Ok(bad)
    }

    /// Reads the blocks that contain the `length` bytes from offset `at` of the section on.
    pub(crate) fn window(&self, at: u64, length: u64) -> Result<Window, BuildError> {
        let first = at / BLOCK;
        let end = (at + length).div_ceil(BLOCK).min(self.sums.len() as u64).max(first);
        let bytes = (first..end).map(|block| self.block_bytes(block)).sum::<u64>();
        if let Some(mended) = &self.mended {
            let part = mended.get((first * BLOCK) as usize..).and_then(|rest| rest.get(..bytes as usize));
            let bytes = part.unwrap_or_default().to_vec();
            return Ok(Window { start: first * BLOCK, bytes, bad: Vec::new() });
        }
        let mut window = Window { start: first * BLOCK, bytes: vec![0; bytes as usize], bad: Vec::new() };
        window.bad = self.read(first, &mut window.bytes)?;
        Ok(window)
    }
}

/// Some verified blocks of a section.
pub(crate) struct Window {
    start: u64,
    bytes: Vec<u8>,
    bad: Vec<u64>,
}

impl Window {
    /// Returns bytes of the section, if the window contains them undamaged.
    pub(crate) fn get(&self, at: u64, length: u64) -> Option<&[u8]> {
        let from = usize::try_from(at.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(from..)?.get(..usize::try_from(length).ok()?)?;
        let blocks = at / BLOCK..=(at + length.max(1) - 1) / BLOCK;
        (!self.bad.iter().any(|block| blocks.contains(block))).then_some(bytes)
    }
}

/// Returns the number of ranks in `ranges`.
pub(crate) fn count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|ranks| ranks.end - ranks.start).sum()
}
