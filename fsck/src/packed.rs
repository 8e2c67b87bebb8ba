//! Checks of the compressed key column: page by page against the tuple lines.

use super::{Check, ReadAt};
use pleach_format::line;
use pleach_format::packed::{GUARD_BYTES, PAGE_KEYS, RECORD_BYTES, Record, pack, shape_of};
use pleach_format::{Header, Word};
use rayon::prelude::*;
use std::io;

impl<R: ReadAt> Check<'_, R> {
    pub(super) fn check_packed(&self, header: &Header) -> io::Result<()> {
        let Some((offset, shape)) = header.packed else { return Ok(()) };
        let wrong = |at: u64, length: u64, expected: String, found: String, rule: &str| {
            self.rule("packed", "PACK", at, length, expected, found, rule);
        };
        let mut records = self.read(offset, shape.data_at)?;
        let padding = records.split_off((shape.pages as usize) * RECORD_BYTES);
        let guard = self.read(offset + shape.data_at + shape.data_bytes, GUARD_BYTES)?;
        if padding.iter().chain(&guard).any(|&byte| byte != 0) {
            self.rule("padding", "PACK", offset, shape.data_at, 0, "other bytes", "padding must be zero");
        }
        let (records, _) = records.as_chunks::<RECORD_BYTES>();
        let records: Vec<Record> = records.iter().map(Record::from_bytes).collect();
        let mut place = 0u64;
        for (number, record) in records.iter().enumerate() {
            let at = offset + (number * RECORD_BYTES) as u64;
            if record.place != place || record.width > 64 {
                let (expected, found) = (format!("place {place}"), format!("{record:?}"));
                wrong(at, RECORD_BYTES as u64, expected, found, "pages must follow each other");
                return Ok(());
            }
            place += record.page_bytes();
        }
        if place != shape.data_bytes {
            let (expected, found) = (shape.data_bytes.to_string(), place.to_string());
            wrong(offset, shape.data_at, expected, found, "pages must fill the section");
            return Ok(());
        }
        records.par_iter().enumerate().with_min_len(16).try_for_each(|(number, record)| {
            if self.is_cancelled() {
                return Ok(());
            }
            let found = self.read(offset + shape.data_at + record.place, record.page_bytes())?;
            let good = match header.geometry.key_bytes {
                4 => self.is_page::<u32>(header, number as u64, *record, &found)?,
                _ => self.is_page::<u64>(header, number as u64, *record, &found)?,
            };
            if !good {
                let (at, length) = (offset + shape.data_at + record.place, record.page_bytes());
                let expected = format!("keys {} and on", number * PAGE_KEYS);
                wrong(at, length, expected, "others".to_owned(), "a page must hold the keys of its tuples");
            }
            Ok(())
        })
    }

    fn is_page<W: Word>(
        &self,
        header: &Header,
        number: u64,
        record: Record,
        found: &[u8],
    ) -> io::Result<bool> {
        let first = number * PAGE_KEYS as u64;
        let ranks = first..(first + PAGE_KEYS as u64).min(header.tuples);
        let geometry = header.geometry;
        let (from, to) = (geometry.place(ranks.start).0, geometry.place(ranks.end - 1).0);
        let lines = self.read(header.line_offset(from), (to - from + 1) * 64)?;
        let (lines, _) = lines.as_chunks::<64>();
        let words: Vec<W> = ranks
            .map(|rank| {
                let (number, slot) = geometry.place(rank);
                line::key::<W>(&lines[(number - from) as usize], slot)
            })
            .collect();
        let (base, width) = shape_of(&words);
        if !words.is_sorted() || (base, width) != (record.base, record.width) {
            return Ok(false);
        }
        let mut page = Vec::new();
        pack(&words, &mut page);
        Ok(page == found)
    }
}
