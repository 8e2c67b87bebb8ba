//! A column of a base, read from verified windows: keys, tails, values, codes, or the pages of keys.

use super::base::{Base, Blocks, Window};
use crate::error::BuildError;
use pleach_format::section::Tag;
use pleach_format::view::ColumnPlace;
use std::ops::Range;

/// A column of the base, with the bytes that the ranks of a window need.
pub(super) struct Elements<'a> {
    pub(super) blocks: Blocks<'a>,
    pub(super) place: ColumnPlace,
    /// Where in the section the column begins.
    start: u64,
    data: Option<Window>,
    /// First rank of the window, and the place of each of its elements in the data, if known.
    first: u64,
    places: Vec<Option<Range<u64>>>,
    /// End of the last known element before the window.
    end: u64,
}

impl<'a> Elements<'a> {
    pub(super) fn new(
        base: &'a Base,
        tag: Tag,
        place: Option<ColumnPlace>,
    ) -> Result<Option<Self>, BuildError> {
        let Some((place, blocks)) = place.zip(base.section(tag)?) else { return Ok(None) };
        let start = place.offset - blocks.section.offset();
        Ok(Some(Self { blocks, place, start, data: None, first: 0, places: Vec::new(), end: 0 }))
    }

    /// Finds the places of the elements of these ranks. An element that begins before the end of an earlier
    /// one has no place: forged offsets could expand a few bytes over and over.
    fn find(&mut self, ranks: &Range<u64>) -> Result<(), BuildError> {
        self.places.clear();
        if self.place.shape.element_bytes > 0 {
            let fixed = |rank| self.place.fixed_element(rank).map(|(start, end)| start..end);
            self.places.extend(ranks.clone().map(fixed));
            return Ok(());
        }
        let width = self.place.shape.offset_bytes;
        let offsets =
            self.blocks.window(self.start + ranks.start * width, (ranks.end - ranks.start + 1) * width)?;
        for rank in ranks.clone() {
            let place = offsets.get(self.start + rank * width, 2 * width).and_then(|pair| {
                let offset = |bytes: &[u8]| {
                    bytes.iter().rev().fold(0u64, |offset, &byte| offset << 8 | u64::from(byte))
                };
                let (start, end) = (offset(&pair[..width as usize]), offset(&pair[width as usize..]));
                (self.end <= start && start <= end && end <= self.place.shape.data_bytes)
                    .then_some(start..end)
            });
            self.end = place.as_ref().map_or(self.end, |place| place.end);
            self.places.push(place);
        }
        Ok(())
    }

    /// Reads the elements of these ranks.
    pub(super) fn load(&mut self, ranks: &Range<u64>) -> Result<(), BuildError> {
        self.first = ranks.start;
        self.find(ranks)?;
        let mut known = self.places.iter().flatten();
        let first = known.next();
        let last = known.next_back().or(first);
        self.data = match (first, last) {
            (Some(first), Some(last)) => {
                let at = self.start + self.place.shape.data_at + first.start;
                Some(self.blocks.window(at, last.end - first.start)?)
            }
            _ => None,
        };
        Ok(())
    }

    /// Returns the element of a rank of the window; `None` if it is lost.
    pub(super) fn get(&self, rank: u64) -> Option<&[u8]> {
        let range = self.places.get((rank - self.first) as usize)?.clone()?;
        if range.is_empty() {
            return Some(&[]);
        }
        let at = self.start + self.place.shape.data_at + range.start;
        self.data.as_ref()?.get(at, range.end - range.start)
    }
}
