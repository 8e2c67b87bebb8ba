//! Checks of what no search depends on but every writer must obey: marks, flags, places, counts, zero bytes.

use super::pieces::PIECE_BYTES;
use super::{Check, Code, ReadAt};
use pleach_format::layout::{LINE_BYTES, align_up, section_start};
use pleach_format::section::{
    ARRAY_ALIGN, Entry, Need, PARAMETERS_BYTES, Parameters, REQUIRED, TABLE_BYTES, TABLE_OFFSET, Tag,
    entry_offset,
};
use pleach_format::superblock::Superblock;
use pleach_format::version::is_later;
use pleach_format::view::{HEAD_BYTES, Section};
use pleach_format::{Header, offset_in};
use std::io;

impl<R: ReadAt> Check<'_, R> {
    /// Checks the superblock and the table beyond what opening a file needs, and the zeros that no other
    /// check reads.
    pub(super) fn check_frame(&self, header: &Header, head: &[u8]) -> io::Result<()> {
        self.check_superblock(header);
        self.check_table(header, head);
        self.check_places(header)
    }

    fn check_superblock(&self, header: &Header) {
        let block = &header.superblock;
        // A later minor version may use them.
        if !is_later(block.version_minor.get()) {
            let mark = block.reserved_mark.get().to_le_bytes();
            let reserved = [
                (offset_in!(Superblock, reserved_mark), &mark[..]),
                (offset_in!(Superblock, reserved), &block.reserved[..]),
            ];
            for (at, bytes) in reserved.into_iter().filter(|(_, bytes)| bytes.iter().any(|&byte| byte != 0)) {
                let (length, text) = (bytes.len() as u64, "reserved bytes must be zero");
                self.rule(Code::Header, "superblock", at, length, "zero", "other bytes", text);
            }
        }
        if block.generation.get() <= 1 && block.lineage != [0; 16] {
            let text = "a first generation comes from no other";
            let at = offset_in!(Superblock, lineage);
            self.rule(Code::Header, "superblock", at, 16, "zero", "a lineage", text);
        }
        let named = block.min_key.iter().chain(&block.max_key).any(|&byte| byte != 0);
        let lengths = (block.min_key_len.get(), block.max_key_len.get());
        if header.tuples == 0 && (named || lengths != (0, 0)) {
            self.rule(
                Code::MinMax,
                "superblock",
                offset_in!(Superblock, min_key_len),
                offset_in!(Superblock, builder) - offset_in!(Superblock, min_key_len),
                "zero",
                "other bytes",
                "an empty file names no keys",
            );
        }
    }

    /// Checks the section table as a whole.
    fn check_table(&self, header: &Header, head: &[u8]) {
        let used = entry_offset(header.sections.len()) as usize;
        if head[used..].iter().any(|&byte| byte != 0) {
            let (offset, length) = (used as u64, (HEAD_BYTES - used) as u64);
            let text = "the table must be zero after its entries";
            self.rule(Code::Header, "section table", offset, length, "zero", "other bytes", text);
        }
        let first = header.sections.first().map_or(Tag::SUM2, |section| section.entry.tag);
        if first != Tag::META {
            let text = "META must be the first section";
            self.rule(Code::Header, "section table", TABLE_OFFSET, 4, Tag::META, first, text);
        }
        if header.tails.is_some() && header.mask.is_none() {
            let text = "only byte keys have tails";
            self.rule(
                Code::Header,
                "section table",
                TABLE_OFFSET,
                TABLE_BYTES as u64,
                "no TAIL",
                "TAIL",
                text,
            );
        }
    }

    /// Checks the entry of each section, and the zeros around the sections.
    fn check_places(&self, header: &Header) -> io::Result<()> {
        let mut end = HEAD_BYTES as u64;
        // End of the last list of sums.
        let mut listed = header.section(Tag::SUMS).map_or(0, Section::offset);
        let all_sums =
            header.sections.iter().filter(|section| !matches!(section.entry.tag, Tag::SUMS | Tag::SUM2));
        let all_sums: u64 = all_sums.map(|section| section.entry.sums.get()).sum();
        for (index, section) in header.sections.iter().enumerate() {
            let (entry, at) = (&section.entry, entry_offset(index));
            let (tag, length) = (entry.tag.to_string(), entry.length.get());
            let place = section_start(entry.tag, end, length);
            if place != Some(section.offset()) {
                let wanted = place.map_or("a place".to_owned(), |place| place.to_string());
                let text = "a section must start at the first offset that the one before it allows";
                let at = at + offset_in!(Entry, offset);
                self.rule(Code::Header, &tag, at, 8, wanted, section.offset(), text);
            }
            end = section.offset() + length;
            let required = entry.tag.kind().and_then(|kind| match kind.need {
                Need::Required => Some(REQUIRED),
                Need::Skippable => Some(0),
                // The mask decides on KEYS; it is checked with the columns.
                Need::ByContent if entry.tag == Tag::KEYS => header.mask.is_none().then_some(0),
                Need::ByContent => Some(if header.value_type.is_bytes() { REQUIRED } else { 0 }),
            });
            if let Some(wanted) = required.filter(|&wanted| wanted != entry.flags.get()) {
                let text = "sections that answers depend on are required, others are not";
                let at = at + offset_in!(Entry, flags);
                self.rule(Code::Header, &tag, at, 4, wanted, entry.flags.get(), text);
            }
            let is_plain = entry.tag.kind().is_some_and(|kind| kind.parameters.is_empty());
            if is_plain && entry.parameters != Parameters::NONE {
                let text = "this section has no parameters";
                let at = at + offset_in!(Entry, parameters);
                self.rule(Code::Header, &tag, at, PARAMETERS_BYTES as u64, "zero", "other bytes", text);
            }
            let count = match entry.tag {
                Tag::SUMS => Some(all_sums),
                Tag::SUM2 => header.section(Tag::SUMS).map(|sums| sums.entry.sums.get()),
                _ => None,
            };
            if let Some(count) = count.filter(|&count| count != entry.elements.get()) {
                self.rule(
                    Code::Header,
                    &tag,
                    at + offset_in!(Entry, elements),
                    8,
                    count,
                    entry.elements.get(),
                    "the table must count the sums",
                );
            }
            let zeros = match entry.tag {
                // The padding line after an odd number of lines.
                Tag::LINE => (section.offset() + header.lines * LINE_BYTES as u64, end),
                Tag::SUM2 => (end, section.end),
                _ => (end, end),
            };
            if !matches!(entry.tag, Tag::SUMS | Tag::SUM2) {
                let (first, wanted) = (entry.sums_offset.get(), align_up(listed, ARRAY_ALIGN));
                if Some(first) != wanted {
                    let wanted = wanted.map_or("a place".to_owned(), |wanted| wanted.to_string());
                    let text = "lists of sums must follow each other, each aligned";
                    let at = at + offset_in!(Entry, sums_offset);
                    self.rule(Code::Header, &tag, at, 8, wanted, first, text);
                } else {
                    self.check_zeros("SUMS", (listed, first))?;
                }
                listed = first + entry.sums_bytes();
            }
            self.check_zeros(&tag, zeros)?;
        }
        if let Some(sums) = header.section(Tag::SUMS) {
            let (wanted, length) = (listed - sums.offset(), sums.entry.length.get());
            if length != wanted {
                let text = "a section of sums must end with its last sum";
                self.rule(Code::Header, "SUMS", sums.offset(), length, wanted, length, text);
            }
        }
        Ok(())
    }

    /// Checks that the bytes from one place up to another are zero.
    pub(super) fn check_zeros(&self, tag: &str, (from, to): (u64, u64)) -> io::Result<()> {
        for at in (from..to).step_by(PIECE_BYTES as usize) {
            let bytes = self.read(at, (to - at).min(PIECE_BYTES))?;
            if let Some(bad) = bytes.iter().position(|&byte| byte != 0) {
                self.rule(Code::Padding, tag, at + bad as u64, 1, 0, bytes[bad], "padding must be zero");
            }
        }
        Ok(())
    }
}
