//! The search in a FAST section, node by node: the scalar reference, and the search that verifies each block that
//! it reads.

use super::paged::{Form, PageRecord, Paged};
use super::{Geometry, Tree, nodes};
use crate::layout::LINE_BYTES;
use crate::view::Lines;

/// A FAST section in a file: its geometry, its form, and the range of its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The tree.
    pub geometry: Geometry,
    /// How its pages store keys.
    pub form: Form,
    /// First byte of the section in the file.
    pub offset: u64,
    /// Bytes of the section.
    pub bytes: u64,
}

impl Section {
    /// Returns the gap in which a query ends, for any bytes: at most the number of keys. O(levels^2).
    ///
    /// # Errors
    /// The error of `lines` if a line cannot be read.
    pub fn gap<L: Lines>(&self, lines: &L, query: u128) -> Result<u64, L::Error> {
        let gap = match Paged::new(self.geometry, self.form) {
            Some(paged) => self.paged(lines, &paged, query)?,
            None => match self.geometry.tree() {
                Some(tree) => self.full(lines, &tree, query)?,
                None => 0,
            },
        };
        Ok(gap.min(self.geometry.keys))
    }

    /// Reads a number of up to 16 bytes, which may be in two lines; `None` outside the section.
    fn number<L: Lines>(&self, lines: &L, at: u64, bytes: u32) -> Result<Option<u128>, L::Error> {
        let Some(end) = at.checked_add(bytes.into()).filter(|&end| end <= self.bytes) else {
            return Ok(None);
        };
        const LINE: u64 = LINE_BYTES as u64;
        let (first, last) = (at / LINE * LINE, (end - 1) / LINE * LINE);
        let mut pair = [0; 2 * LINE_BYTES];
        pair[..LINE_BYTES].copy_from_slice(lines.line(self.offset + first)?);
        if last > first {
            pair[LINE_BYTES..].copy_from_slice(lines.line(self.offset + last)?);
        }
        let from = (at - first) as usize;
        let mut number = [0; 16];
        number[..bytes as usize].copy_from_slice(&pair[from..from + bytes as usize]);
        Ok(Some(u128::from_le_bytes(number)))
    }

    fn full<L: Lines>(&self, lines: &L, tree: &Tree, query: u128) -> Result<u64, L::Error> {
        let (levels, width) = (self.geometry.levels(), self.geometry.key_bytes);
        let mut node = 0;
        for depth in 0..levels {
            let index = ((2 * node + 1) << (levels - 1 - depth)) - 1;
            let key = match tree.slot_of(index) {
                Some(slot) => self.number(lines, slot * u64::from(width), width)?,
                None => None,
            };
            node = 2 * node + u64::from(key.is_some_and(|key| key < query));
        }
        Ok(node)
    }

    fn paged<L: Lines>(&self, lines: &L, paged: &Paged, query: u128) -> Result<u64, L::Error> {
        let (all, key_bytes) = (self.geometry.levels(), self.geometry.key_bytes);
        let mut page = 0u64;
        for (number, level) in paged.levels().iter().enumerate() {
            page = page.min(level.last);
            let at = (paged.records()[number] + page) * paged.record_bytes() as u64;
            let mut stored = [0; 32];
            for half in 0..paged.record_bytes() as u64 / 16 {
                let part = self.number(lines, at + 16 * half, 16)?.unwrap_or(0);
                stored[16 * half as usize..][..16].copy_from_slice(&part.to_le_bytes());
            }
            let record = PageRecord::decode(key_bytes, &stored).filter(|record| record.is_sound(key_bytes));
            let tree = record.and_then(|record| Some((record, paged.tree(record.width)?)));
            let mut local = 0;
            if let Some((record, tree)) = tree {
                let Some(probe) = record.probe(query) else {
                    page = page << level.levels | nodes(level.levels);
                    continue;
                };
                let start = tree.pages()[number].page(page).0;
                for depth in 0..level.levels {
                    let height = all - level.above - depth - 1;
                    let index = ((2 * ((page << depth) + local) + 1) << height) - 1;
                    let slot = tree.slot_of(index).and_then(|slot| slot.checked_sub(start));
                    let at = slot.and_then(|slot| record.place.checked_add(slot * u64::from(record.width)));
                    let word = match at {
                        Some(at) => self.number(lines, at, record.width)?,
                        None => None,
                    };
                    let below =
                        word.is_some_and(|word| word < probe.word || probe.above && word == probe.word);
                    local = 2 * local + u64::from(below);
                }
            }
            page = page << level.levels | local;
        }
        Ok(page)
    }
}
