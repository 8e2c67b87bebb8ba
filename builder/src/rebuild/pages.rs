//! Byte keys by page of a base, read from verified windows.
//!
//! If the base is salvaged, a key is lost with its page, and with the table of symbols all but the first key of
//! each page.

use super::base::Base;
use super::elements::Elements;
use crate::error::BuildError;
use pleach_format::section::Tag;
use pleach_format::text::{PAGE_KEYS, Page, SYMBOLS_BYTES, Symbols, TextGeometry};
use pleach_format::types::KEY_BYTES_MAX;
use std::ops::Range;

/// The pages of a base, with the bytes that the ranks of a window need.
pub(super) struct PageKeys<'a> {
    pages: Elements<'a>,
    shape: TextGeometry,
    symbols: Option<Symbols>,
}

impl<'a> PageKeys<'a> {
    pub(super) fn new(base: &'a Base) -> Result<Option<Self>, BuildError> {
        let pages = Elements::new(base, Tag::TEXT, base.header.pages())?;
        let Some(((_, shape), pages)) = base.header.text.zip(pages) else { return Ok(None) };
        let table = pages.blocks.window(0, SYMBOLS_BYTES as u64)?;
        let symbols = table.get(0, SYMBOLS_BYTES as u64).and_then(<[u8]>::first_chunk).map(Symbols::parse);
        Ok(Some(Self { pages, shape, symbols }))
    }

    /// Reads the pages of these ranks, the first of which is the first of a page.
    pub(super) fn load(&mut self, ranks: &Range<u64>) -> Result<(), BuildError> {
        self.pages.load(&(ranks.start / PAGE_KEYS as u64..ranks.end.div_ceil(PAGE_KEYS as u64)))
    }

    /// Appends the key of a rank of the window; `None` if it is lost.
    pub(super) fn key(&self, rank: u64, key: &mut Vec<u8>) -> Option<()> {
        let (page, slot) = (rank / PAGE_KEYS as u64, (rank % PAGE_KEYS as u64) as usize);
        let page = Page::new(self.pages.get(page)?, self.shape.keys_of(page));
        match &self.symbols {
            Some(symbols) => page.key(symbols, slot, KEY_BYTES_MAX, key),
            None if slot == 0 => key.extend_from_slice(page.head()),
            None => return None,
        }
        Some(())
    }
}
