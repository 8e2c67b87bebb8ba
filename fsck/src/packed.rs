//! Checks of the compressed key column: page by page against the tuple lines.

use super::{Check, Code, ReadAt};
use pleach_format::line;
use pleach_format::packed::{GUARD_BYTES, PAGE_KEYS, RECORD_BYTES, Record, pack, shape_of};
use pleach_format::{Header, Word};
use rayon::prelude::*;
use std::io;

/// Expected content of a page and its record.
struct Page {
    base: u64,
    width: u8,
    bytes: Vec<u8>,
}

impl<R: ReadAt> Check<'_, R> {
    pub(super) fn check_packed(&self, header: &Header) -> io::Result<()> {
        let Some((offset, shape)) = header.packed else { return Ok(()) };
        let wrong = |at: u64, length: u64, expected: String, found: String, rule: &str| {
            self.rule(Code::Packed, "PACK", at, length, expected, found, rule);
        };
        let records_end = shape.pages * RECORD_BYTES as u64;
        let records = self.read(offset, records_end)?;
        self.check_zeros("PACK", (offset + records_end, offset + shape.data_at))?;
        let guard = offset + shape.data_at + shape.data_bytes;
        self.check_zeros("PACK", (guard, guard + GUARD_BYTES))?;
        let (records, _) = records.as_chunks::<RECORD_BYTES>();
        let records: Vec<Record> = records.iter().map(Record::from_bytes).collect();
        let mut place = 0u64;
        for (number, record) in records.iter().enumerate() {
            if record.place != place || record.width > 64 {
                // The width of the record before it may be wrong as well.
                let first = number.saturating_sub(1);
                let (at, length) = (first * RECORD_BYTES, (number + 1 - first) * RECORD_BYTES);
                let (expected, found) = (format!("place {place}"), format!("{record:?}"));
                wrong(offset + at as u64, length as u64, expected, found, "pages must follow each other");
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
            let page = match header.geometry.key_bytes {
                4 => self.page::<u32>(header, number as u64)?,
                _ => self.page::<u64>(header, number as u64)?,
            };
            let keys = || format!("keys {} and on", number * PAGE_KEYS);
            let is_record = |page: &Page| (page.base, page.width) == (record.base, record.width);
            match page {
                Some(page) if is_record(&page) && page.bytes == found => {}
                Some(page) if !is_record(&page) => {
                    let (at, length) = (offset + (number * RECORD_BYTES) as u64, RECORD_BYTES as u64);
                    wrong(at, length, keys(), format!("{record:?}"), "a record must be that of its keys");
                }
                _ => {
                    let (at, length) = (offset + shape.data_at + record.place, record.page_bytes());
                    wrong(at, length, keys(), "others".to_owned(), "a page must hold the keys of its tuples");
                }
            }
            Ok(())
        })
    }

    /// Returns the page that follows from the tuple lines; `None` if their keys do not ascend.
    fn page<W: Word>(&self, header: &Header, number: u64) -> io::Result<Option<Page>> {
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
        if !words.is_sorted() {
            return Ok(None);
        }
        let (base, width) = shape_of(&words);
        let mut bytes = Vec::new();
        pack(&words, &mut bytes);
        Ok(Some(Page { base, width, bytes }))
    }
}
