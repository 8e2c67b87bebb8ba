//! Checks of the classic tree: slot by slot against the tuple lines.
//!
//! A slot contains the key of its in-order index, or all ones. Slots are checked in windows. The slots of low
//! lines have adjacent ranks, whose tuple lines are read at once. Those of high lines have distant ranks,
//! whose tuple lines are read one by one.

use super::pieces::sized;
use super::{Check, Code, ReadAt};
use pleach_format::classic::paged::Paged;
use pleach_format::classic::{SLACK_BYTES, Tree};
use pleach_format::line::{self, Line};
use pleach_format::{Header, Word};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io;

const LINE_BYTES: u64 = pleach_format::layout::LINE_BYTES as u64;

/// Number of slots that are checked at once.
pub(super) const WINDOW_SLOTS: u64 = sized(1 << 13, 64);
/// Maximum number of tuple lines that are read at once for a window; if it needs more, they are read one by
/// one.
const WINDOW_LINES: u64 = sized(1 << 14, 8);

impl<R: ReadAt> Check<'_, R> {
    pub(super) fn check_classic(&self, header: &Header) -> io::Result<()> {
        let Some((offset, shape)) = header.fast else { return Ok(()) };
        let (geometry, length) = (shape.geometry, shape.bytes);
        if let Some(paged) = Paged::new(geometry, shape.form) {
            return match geometry.key_bytes {
                4 => self.check_paged::<u32>(header, (offset, length), &paged),
                8 => self.check_paged::<u64>(header, (offset, length), &paged),
                _ => self.check_paged::<u128>(header, (offset, length), &paged),
            };
        }
        let Some(tree) = geometry.tree() else { return Ok(()) };
        let slots_end = tree.slots() * u64::from(geometry.key_bytes);
        debug_assert!(tree.bytes() - slots_end < LINE_BYTES + SLACK_BYTES);
        self.check_zeros("FAST", (offset + slots_end, offset + length))?;
        (0..tree.slots().div_ceil(WINDOW_SLOTS)).into_par_iter().try_for_each(|window| {
            if self.is_cancelled() {
                return Ok(());
            }
            let first = window * WINDOW_SLOTS;
            let slots = first..(first + WINDOW_SLOTS).min(tree.slots());
            match geometry.key_bytes {
                4 => self.check_slots::<u32>(header, offset, &tree, slots),
                8 => self.check_slots::<u64>(header, offset, &tree, slots),
                _ => self.check_slots::<u128>(header, offset, &tree, slots),
            }
        })
    }

    fn check_slots<W: Word>(
        &self,
        header: &Header,
        offset: u64,
        tree: &Tree,
        slots: std::ops::Range<u64>,
    ) -> io::Result<()> {
        let width = W::BYTES as u64;
        let found = self.read(offset + slots.start * width, (slots.end - slots.start) * width)?;
        let ranks: Vec<Option<u64>> =
            slots.clone().map(|slot| tree.index_of(slot).filter(|&rank| rank < header.tuples)).collect();
        let keys = self.words_at::<W>(header, &ranks)?;
        for (((slot, rank), key), found) in slots.zip(&ranks).zip(keys).zip(found.chunks_exact(W::BYTES)) {
            let (expected, found) = (key.unwrap_or(W::MAX), W::read(found));
            if expected != found {
                let rank = rank.map_or("free".to_owned(), |rank| format!("the key of rank {rank}"));
                let expected = format!("{rank}: {:x}", expected.to_u128());
                let found = format!("{:x}", found.to_u128());
                let text = "a slot must hold its key";
                self.rule(Code::Classic, "FAST", offset + slot * width, width, expected, found, text);
            }
        }
        Ok(())
    }

    /// Returns the words of these ranks from the tuple lines. The lines are read at once if they are close
    /// together, else one by one.
    pub(super) fn words_at<W: Word>(
        &self,
        header: &Header,
        ranks: &[Option<u64>],
    ) -> io::Result<Vec<Option<W>>> {
        let numbers = || ranks.iter().flatten().map(|&rank| header.geometry.place(rank).0);
        let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
        let (low, high) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
        let together = high - low < WINDOW_LINES;
        let run = if together && header.lines > 0 {
            self.read(header.line_offset(low), (high - low + 1) * LINE_BYTES)?
        } else {
            for number in numbers() {
                if let std::collections::btree_map::Entry::Vacant(place) = lines.entry(number) {
                    let bytes = self.read(header.line_offset(number), LINE_BYTES)?;
                    place.insert(*bytes.first_chunk().unwrap_or(&[0; 64]));
                }
            }
            Vec::new()
        };
        let (run, _) = run.as_chunks::<64>();
        let word = |rank: u64| {
            let (number, slot) = header.geometry.place(rank);
            let line = if together { run.get((number - low) as usize) } else { lines.get(&number) };
            line.map(|line| line::key::<W>(line, slot))
        };
        Ok(ranks.iter().map(|rank| rank.and_then(word)).collect())
    }
}
