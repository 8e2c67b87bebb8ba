//! Checks of intervals: each ends at or after its start, and before the next one begins.

use super::pieces::sized;
use super::{Check, Code, ReadAt, number};
use pleach_format::interval::{Ends, INCLUSIVE};
use pleach_format::line::whole_key;
use pleach_format::meta::Meta;
use pleach_format::view::ColumnPlace;
use pleach_format::{Header, KeyType};
use rayon::prelude::*;
use std::io;

/// Tuples checked at a time.
const PAGE: u64 = 1024;
/// Maximum bytes of their values that are read at once. Of longer ones, each first field is read.
const PAGE_BYTES: u64 = sized(1 << 22, 64);

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

    /// Returns for each value of these ranks its offset in the file and its first bytes, which are the end of its
    /// interval; fewer if it is shorter. Of a value whose place is damaged, which is found elsewhere, there are none.
    fn heads(
        &self,
        place: ColumnPlace,
        ends: Ends,
        ranks: &std::ops::Range<u64>,
    ) -> io::Result<Vec<(u64, [u8; 16], usize)>> {
        let count = ranks.end - ranks.start;
        let bounds: Vec<u64> = match place.shape.offset_bytes {
            0 => (ranks.start..=ranks.end).map(|rank| rank * place.shape.element_bytes).collect(),
            width => {
                let bytes = self.read(place.offset + ranks.start * width, (count + 1) * width)?;
                bytes.chunks_exact(width as usize).map(number).collect()
            }
        };
        let (first, last) = (bounds[0], bounds[count as usize]);
        let is_whole = bounds.is_sorted() && last <= place.shape.data_bytes && last - first <= PAGE_BYTES;
        let page = if is_whole { self.read(place.data_offset() + first, last - first)? } else { Vec::new() };
        let mut heads = Vec::with_capacity(count as usize);
        for pair in bounds.windows(2) {
            let (start, end) = (pair[0], pair[1].min(place.shape.data_bytes));
            let length = end.saturating_sub(start).min(ends.bytes() as u64);
            let at = place.data_offset().saturating_add(start);
            let mut head = [0; 16];
            let to = &mut head[..length as usize];
            if is_whole {
                to.copy_from_slice(&page[(start - first) as usize..][..to.len()]);
            } else if length > 0 {
                to.copy_from_slice(&self.read(at, length)?);
            }
            heads.push((at, head, length as usize));
        }
        Ok(heads)
    }

    /// Does the same for values that are stored once, one by one. A code of no value is found elsewhere.
    fn coded_heads(
        &self,
        (codes, place): (ColumnPlace, ColumnPlace),
        ends: Ends,
        ranks: &std::ops::Range<u64>,
    ) -> io::Result<Vec<(u64, [u8; 16], usize)>> {
        let mut heads = Vec::with_capacity((ranks.end - ranks.start) as usize);
        for rank in ranks.clone() {
            let element = self.code_of(codes, rank)?;
            if element < place.shape.elements {
                heads.extend(self.heads(place, ends, &(element..element + 1))?);
            } else {
                heads.push((place.data_offset(), [0; 16], 0));
            }
        }
        Ok(heads)
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
        let heads = match (column, header.codes) {
            (Some(place), None) => self.heads(place, ends, &ranks)?,
            (Some(place), Some(codes)) => self.coded_heads((codes, place), ends, &ranks)?,
            (None, _) => Vec::new(),
        };
        for rank in ranks.clone() {
            let (line, slot) = line(rank);
            let (at, value) = match column {
                Some(_) => {
                    let (at, head, length) = &heads[(rank - ranks.start) as usize];
                    (*at, &head[..*length])
                }
                None => {
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
