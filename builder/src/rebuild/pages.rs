//! Byte keys by page of a base, read from verified windows.
//!
//! If the base is salvaged, a key is lost with its page, and with the table of symbols all but the first key of
//! each page.

use super::base::{Base, Blocks, Window};
use crate::error::BuildError;
use pleach_format::section::Tag;
use pleach_format::text::{PAGE_KEYS, Page, SYMBOLS_BYTES, Symbols, TextGeometry};
use pleach_format::types::KEY_BYTES_MAX;
use std::ops::Range;

/// The pages of a base, with the bytes that the ranks of a window need.
pub(super) struct PageKeys<'a> {
    blocks: Blocks<'a>,
    shape: TextGeometry,
    symbols: Option<Symbols>,
    /// First page of the window, and where each of its pages is in the data, if that is known.
    first: u64,
    places: Vec<Option<Range<u64>>>,
    /// End of the last known page before the window.
    end: u64,
    data: Option<Window>,
}

impl<'a> PageKeys<'a> {
    pub(super) fn new(base: &'a Base) -> Result<Option<Self>, BuildError> {
        let Some(((_, shape), blocks)) = base.header.text.zip(base.section(Tag::TEXT)?) else {
            return Ok(None);
        };
        let table = blocks.window(0, SYMBOLS_BYTES as u64)?;
        let symbols = table.get(0, SYMBOLS_BYTES as u64).and_then(<[u8]>::first_chunk).map(Symbols::parse);
        Ok(Some(Self { blocks, shape, symbols, first: 0, places: Vec::new(), end: 0, data: None }))
    }

    /// Reads the pages of these ranks. A page that begins before the end of an earlier one has no place: forged
    /// places could make many keys of few bytes.
    pub(super) fn load(&mut self, ranks: &Range<u64>) -> Result<(), BuildError> {
        let pages = ranks.start / PAGE_KEYS as u64..ranks.end.div_ceil(PAGE_KEYS as u64);
        let (width, shape) = (self.shape.place_bytes, self.shape);
        let at = shape.place_at(pages.start);
        let places = self.blocks.window(at, (pages.end - pages.start + 1) * width)?;
        self.first = pages.start;
        self.places.clear();
        for page in pages {
            let place = places.get(shape.place_at(page), 2 * width).and_then(|pair| {
                let place =
                    |bytes: &[u8]| bytes.iter().rev().fold(0u64, |place, &byte| place << 8 | u64::from(byte));
                let (start, end) = (place(&pair[..width as usize]), place(&pair[width as usize..]));
                (self.end <= start && start <= end && end <= shape.data_bytes).then_some(start..end)
            });
            self.end = place.as_ref().map_or(self.end, |place| place.end);
            self.places.push(place);
        }
        let mut known = self.places.iter().flatten();
        let first = known.next();
        let last = known.next_back().or(first);
        self.data = match (first, last) {
            (Some(first), Some(last)) => {
                let length = last.end.saturating_sub(first.start);
                Some(self.blocks.window(shape.pages_at + first.start, length)?)
            }
            _ => None,
        };
        Ok(())
    }

    /// Appends the key of a rank of the window; `None` if it is lost.
    pub(super) fn key(&self, rank: u64, key: &mut Vec<u8>) -> Option<()> {
        let (page, slot) = (rank / PAGE_KEYS as u64, (rank % PAGE_KEYS as u64) as usize);
        let place = self.places.get((page - self.first) as usize)?.clone()?;
        let bytes = self.data.as_ref()?.get(self.shape.pages_at + place.start, place.end - place.start)?;
        let page = Page::new(bytes, self.shape.keys_of(page));
        match &self.symbols {
            Some(symbols) => page.key(symbols, slot, KEY_BYTES_MAX, key),
            None if slot == 0 => key.extend_from_slice(page.head()),
            None => return None,
        }
        Some(())
    }
}
