//! Copying of a file, section by section: every block is verified before anything in it changes.

use super::base::{Base, Blocks};
use crate::error::BuildError;
use crate::observe::{Phase, Watch};
use crate::parallel;
use crate::plan::PIECE_BYTES;
use crate::publish::Output;
use pleach_format::checksum::{SUM_BLOCK_BYTES, crc32};
use pleach_format::section::{Entry, Tag, encode_table};
use pleach_format::view::HEAD_BYTES;

/// Number of pieces copied at the same time.
const PIECES: usize = 4;

/// Bytes that replace those of the base, and their offsets.
pub(crate) type Overlays = Vec<(u64, Vec<u8>)>;

/// Encodes the section table of a base.
pub(crate) fn encoded_table(base: &Base) -> Vec<u8> {
    let entries: Vec<Entry> = base.header.sections.iter().map(|section| section.entry).collect();
    encode_table(&entries).to_vec()
}

/// A run of bytes between two block boundaries.
struct Piece<'a> {
    start: u64,
    end: u64,
    /// The section that verifies it and its first block there; `None` if overlays replace all of it.
    blocks: Option<(&'a Blocks<'a>, u64)>,
}

/// Copies `base` into `output`. Each block is verified, then `change` receives the offset of a piece and may
/// change its bytes, then `overlays` replace theirs. Overlays cover the sections in `replaced` entirely. The
/// beginning of the file is written last.
pub(crate) fn copied(
    base: &Base,
    overlays: &Overlays,
    replaced: &[Tag],
    output: Output<'_>,
    watch: &Watch<'_>,
    change: impl Fn(u64, &mut [u8]) + Sync,
) -> Result<(), BuildError> {
    let header = &base.header;
    let mut verified = Vec::with_capacity(header.sections.len());
    for section in &header.sections {
        let tag = section.entry.tag;
        let is_copied = tag != Tag::SUM2 && !replaced.contains(&tag);
        let blocks = if is_copied { base.section(tag)? } else { None };
        if tag == Tag::SUM2 && !replaced.contains(&tag) {
            // It has one sum over all its bytes, and is small.
            let mut bytes = vec![0; section.extent() as usize];
            base.read(&mut bytes, section.offset())?;
            if crc32(&bytes) != section.entry.sums_crc.get() {
                return Err(base.damaged(tag, section.offset()));
            }
        }
        verified.push((section, blocks));
    }
    let mut pieces = Vec::new();
    let mut end_of_last = HEAD_BYTES as u64;
    for (section, blocks) in &verified {
        end_of_last = section.offset() + section.extent();
        let mut start = section.offset();
        while start < end_of_last {
            let end = (start + PIECE_BYTES as u64).min(end_of_last);
            let first = (start - section.offset()) / SUM_BLOCK_BYTES as u64;
            pieces.push(Piece { start, end, blocks: blocks.as_ref().map(|blocks| (blocks, first)) });
            start = end;
        }
    }
    // The copies at the end, and the beginning: bytes without an overlay are zero.
    pieces.push(Piece { start: end_of_last, end: header.file_bytes, blocks: None });
    let write = |piece: &Piece<'_>, buffer: &mut Vec<u8>| -> Result<(), BuildError> {
        watch.check()?;
        let Piece { start, end, blocks } = *piece;
        buffer.resize((end - start) as usize, 0);
        match blocks {
            Some((blocks, first)) => drop(blocks.read(first, buffer)?),
            None => base.read(buffer, start)?,
        }
        change(start, buffer);
        for (offset, overlay) in overlays {
            let (low, high) = ((*offset).max(start), (offset + overlay.len() as u64).min(end));
            if low < high {
                let part = &overlay[(low - offset) as usize..(high - offset) as usize];
                buffer[(low - start) as usize..(high - start) as usize].copy_from_slice(part);
            }
        }
        output.write(buffer, start)
    };
    let mut buffers: Vec<Vec<u8>> = vec![Vec::new(); PIECES];
    for some in pieces.chunks(PIECES) {
        watch.progress(Phase::Write, some[0].start, Some(header.file_bytes));
        parallel::try_jobs(some.iter().zip(&mut buffers), |(piece, buffer)| write(piece, buffer))?;
    }
    write(&Piece { start: 0, end: HEAD_BYTES as u64, blocks: None }, &mut buffers[0])
}
