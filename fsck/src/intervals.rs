//! Checks of intervals: each ends at or after its start, and before the next one begins.

use super::{Check, Code, ReadAt};
use pleach_format::interval::{Ends, INCLUSIVE};
use pleach_format::line::whole_key;
use pleach_format::meta::Meta;
use pleach_format::{Header, KeyType};
use rayon::prelude::*;
use std::io;

/// Tuples checked at a time.
const PAGE: u64 = 1024;

impl<R: ReadAt> Check<'_, R> {
    /// Checks the intervals of a file that says it has some. `start` is the offset of META.
    pub(super) fn check_intervals(&self, header: &Header, meta: &Meta, start: u64) -> io::Result<()> {
        if meta.interval.is_empty() {
            return Ok(());
        }
        let Some(ends) = Ends::of(header.key_type, header.value_type, &meta.value_logical, &meta.interval)
        else {
            // This text comes from the file, so it is escaped.
            let shown: String = meta.interval.chars().take(80).flat_map(char::escape_debug).collect();
            let rule = "values of intervals must be records that begin with a key";
            self.rule(Code::Meta, "META", start, 8, INCLUSIVE, shown, rule);
            return Ok(());
        };
        let pages = header.tuples.div_ceil(PAGE);
        (0..pages as usize).into_par_iter().with_min_len(16).try_for_each(|page| {
            let page = page as u64;
            if self.is_cancelled() {
                return Ok(());
            }
            self.check_some_intervals(header, ends, page * PAGE..((page + 1) * PAGE).min(header.tuples))
        })
    }

    fn check_some_intervals(
        &self,
        header: &Header,
        ends: Ends,
        ranks: std::ops::Range<u64>,
    ) -> io::Result<()> {
        let geometry = header.geometry;
        // The tuple after the page is the next one of its last.
        let after = (ranks.end + 1).min(header.tuples);
        let (from, to) = (geometry.place(ranks.start).0, geometry.place(after - 1).0);
        let lines = self.read(header.line_offset(from), (to - from + 1) * 64)?;
        let (lines, _) = lines.as_chunks::<64>();
        let line = |rank: u64| {
            let (number, slot) = geometry.place(rank);
            (&lines[(number - from) as usize], slot)
        };
        let key = |rank: u64| -> u128 {
            let ((line, slot), short) = (line(rank), header.short.as_ref());
            match header.key_type {
                KeyType::U32 | KeyType::I32 => whole_key::<u32>(line, short, slot).into(),
                KeyType::U64 | KeyType::I64 | KeyType::F64 => whole_key::<u64>(line, short, slot).into(),
                KeyType::U128 | KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => {
                    whole_key::<u128>(line, short, slot)
                }
            }
        };
        let width = header.value_type.bytes() as u64;
        let column = header.values.filter(|_| header.value_type.is_bytes());
        let values = match column {
            // Values that are stored once are read one by one.
            Some(place) if header.codes.is_none() => {
                self.read(place.offset + ranks.start * width, (ranks.end - ranks.start) * width)?
            }
            Some(_) | None => Vec::new(),
        };
        for rank in ranks.clone() {
            let (line, slot) = line(rank);
            let once;
            let (at, value) = match (column, header.codes) {
                (Some(place), Some(codes)) => {
                    let element = self.code_of(codes, rank)?.min(place.shape.elements.saturating_sub(1));
                    let at = place.offset + element * width;
                    once = self.read(at, width)?;
                    (at, &*once)
                }
                (Some(place), None) => {
                    let first = ((rank - ranks.start) * width) as usize;
                    (place.offset + rank * width, &values[first..first + width as usize])
                }
                (None, _) => {
                    let first = geometry.values_at() + slot * width as usize;
                    (
                        header.line_offset(geometry.place(rank).0) + first as u64,
                        &line[first..first + width as usize],
                    )
                }
            };
            let (start, last) = (key(rank), ends.word(value));
            let next = (rank + 1 < header.tuples).then(|| key(rank + 1));
            if last < start || next.is_some_and(|next| last >= next) {
                let next = next.map_or_else(|| "all ones".to_owned(), |next| format!("{next:#x}"));
                let expected = format!("from {start:#x} to below {next}");
                let rule = "an interval must end at or after its start, and before the next one";
                let section = if column.is_some() { "VALS" } else { "LINE" };
                self.rule(
                    Code::Interval,
                    section,
                    at,
                    ends.bytes() as u64,
                    expected,
                    format!("{last:#x}"),
                    rule,
                );
            }
        }
        Ok(())
    }
}
