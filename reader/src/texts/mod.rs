//! Byte keys by page: the section TEXT of an open file, and the trie that leads to a page.
//!
//! A look-up goes down the trie, which names the page (or a few) where the query belongs if it shares the bytes
//! that the nodes passed over. The page then tells whether it does. If it does not, the first byte in which it
//! differs says where it belongs: before or after all keys under the topmost node that passed over that byte. A
//! second descent goes there. Keys that are present need it seldom, and never after they were found.
//!
//! A file without the trie is searched by bisection of the first keys of its pages.

mod batch;

use crate::column::Column;
use crate::error::ReadError;
use crate::index::Index;
use pleach_format::text::{PAGE_KEYS, Page, Slot, Symbols, TextGeometry, common, differ, fingerprint};
use pleach_format::trie::{Child, LEVELS_MAX, MORE_MAX, NODE_BYTES, View, slice};
use pleach_format::types::KEY_BYTES_MAX;
use std::cmp::Ordering;

/// The pages of a file and the nodes over them.
#[derive(Clone, Copy)]
pub(crate) struct Texts<'a> {
    index: &'a Index,
    symbols: &'a Symbols,
    shape: TextGeometry,
    pages: Column<'a>,
    nodes: &'a [[u8; NODE_BYTES]],
    nodes_offset: u64,
}

/// Pages where a query belongs, as far as the bytes say that were looked at.
#[derive(Clone, Copy, Default)]
struct Landing {
    first: u64,
    /// Number of pages after the first one.
    more: u64,
    /// Bytes that the query must share with the keys of these pages.
    prefix: u32,
    /// True if they are under the first child of the last node.
    is_first: bool,
}

/// A page from which keys are read in order.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    page: Page<'a>,
    /// The next key, and where its codes begin.
    rank: u64,
    codes_at: usize,
}

/// Which way a query leaves keys that it does not agree with: after so many bytes, and to their right.
type Parting = (usize, bool);

impl<'a> Texts<'a> {
    /// Creates the view; `None` if the file does not have its keys in pages.
    pub(crate) fn new(index: &'a Index) -> Option<Self> {
        let (_, shape) = index.header().text?;
        let pages = Column::new(index, index.header().pages())?;
        let (nodes_offset, nodes) = match index.header().trie {
            Some((offset, trie)) => {
                let bytes = index.bytes().get(usize::try_from(offset).ok()?..)?;
                (offset, bytes.get(..usize::try_from(trie.bytes()?).ok()?)?.as_chunks().0)
            }
            None => (0, &[][..]),
        };
        Some(Self { index, symbols: index.symbols()?, shape, pages, nodes, nodes_offset })
    }

    /// Returns a page, unverified; one without keys past the last.
    #[inline(always)]
    fn page(&self, number: u64) -> Page<'a> {
        Page::new(self.pages.at(number), self.shape.keys_of(number))
    }

    /// Returns a page, verified as the index is.
    fn checked(&self, number: u64) -> Result<Page<'a>, ReadError> {
        Ok(Page::new(self.pages.get_in_place(number)?.unwrap_or_default(), self.shape.keys_of(number)))
    }

    /// Appends the key at `rank`; nothing past the last one. Verified as the index is.
    pub(crate) fn key(&self, rank: u64, key: &mut Vec<u8>) -> Result<(), ReadError> {
        self.next_key(&mut None, rank, key)
    }

    /// Does the same as [`Texts::key`], faster for the key after the one that was last read with this cursor.
    #[inline]
    pub(crate) fn next_key(
        &self,
        cursor: &mut Option<Cursor<'a>>,
        rank: u64,
        key: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let (number, slot) = (rank / PAGE_KEYS as u64, (rank % PAGE_KEYS as u64) as usize);
        let (page, codes_at) = match *cursor {
            Some(Cursor { page, rank: next, codes_at }) if next == rank && slot > 0 => (page, codes_at),
            _ if number >= self.shape.pages => return Ok(()),
            _ => {
                let page = self.checked(number)?;
                (page, page.codes_at(slot.max(1)))
            }
        };
        let codes_at = page.next_key(self.symbols, (slot, codes_at), KEY_BYTES_MAX, key);
        *cursor = Some(Cursor { page, rank: rank + 1, codes_at });
        self.index.check_mapping()
    }

    /// Returns the pages that a node names, as far as there are any: a forged one may name others.
    #[inline(always)]
    fn landing(&self, first: u64, more: u64, prefix: usize, is_first: bool) -> Landing {
        let last = self.shape.pages.saturating_sub(1);
        let first = first.min(last);
        Landing { first, more: more.min(last - first), prefix: prefix as u32, is_first }
    }

    /// Returns all pages, to be bisected: without a trie, or in a forged one.
    fn everywhere(&self) -> Landing {
        self.landing(0, u64::MAX, 0, true)
    }

    /// Goes down the trie. With a parting, to the page left or right of all keys under the topmost node that passed
    /// over the byte in which the query parts from them. Verified as the index is.
    fn descend(&self, query: &[u8], parting: Option<Parting>) -> Result<Landing, ReadError> {
        let verified = self.index.verified();
        let (mut at, mut passed, mut side) = (0usize, 0, None);
        for _ in 0..LEVELS_MAX {
            let Some(node) = self.nodes.get(at) else { break };
            if let Some(verified) = &verified {
                let offset = self.nodes_offset + (at * NODE_BYTES) as u64;
                verified.check_range(offset, NODE_BYTES as u64)?;
            }
            let node = View(node);
            let (child, is_first) = match node.run() {
                Some((first, more)) => (Child::Pages { first, more }, false),
                None => {
                    passed = node.prefix();
                    side = side.or(parting.filter(|(common, _)| passed > *common).map(|(_, right)| right));
                    let number = match side {
                        None => node.route(slice(query, passed)),
                        Some(true) => node.slots(),
                        Some(false) => 0,
                    };
                    (node.child(number), number == 0)
                }
            };
            let (first, more) = match child {
                // Children come later: a path ends.
                Child::Node(next) if next as usize <= at => break,
                Child::Node(next) => {
                    at = next as usize;
                    continue;
                }
                Child::Pages { first, more } => (first.into(), more.into()),
            };
            return Ok(match side {
                None => self.landing(first, more, passed, is_first),
                Some(true) => self.landing(first + more, 0, 0, true),
                Some(false) => self.landing(first, 0, 0, true),
            });
        }
        Ok(self.everywhere())
    }

    /// Returns the last of the pages whose first key is below the query (the first page, if none is), and whether the
    /// first key of the page after it is the query. O(log).
    fn among(&self, query: &[u8], landing: &Landing) -> Result<(u64, bool), ReadError> {
        let (mut low, mut high) = (landing.first + 1, landing.first + 1 + landing.more);
        let mut is_query = false;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.checked(middle)?.head().cmp(query) {
                Ordering::Less => low = middle + 1,
                order => {
                    is_query = order == Ordering::Equal;
                    high = middle;
                }
            }
        }
        Ok((low - 1, is_query))
    }

    /// Returns the rank of the first key that is not below the query, and whether it is the query. Verified as the
    /// index is.
    pub(crate) fn find(&self, query: &[u8]) -> Result<(u64, bool), ReadError> {
        if self.shape.pages == 0 {
            return Ok((0, false));
        }
        let landing = self.descend(query, None)?;
        let (page, is_next) = self.among(query, &landing)?;
        let slot = self.checked(page)?.find(self.symbols, query);
        let found = self.settle(query, &landing, (page, is_next), slot)?;
        self.index.check_mapping()?;
        Ok(found)
    }

    /// Returns the rank of the first key that is the query, if there is one. Verified as the index is. Looks at
    /// fingerprints, which takes fewer comparisons than [`Texts::find`].
    pub(crate) fn get(&self, query: &[u8]) -> Result<Option<u64>, ReadError> {
        if self.shape.pages == 0 {
            return Ok(None);
        }
        let landing = self.descend(query, None)?;
        if self.index.verified().is_none() {
            // All lines that may be read come at once.
            let last = landing.first + landing.more.min(MORE_MAX.into());
            (landing.first..=last).for_each(|page| self.prefetch_all(page));
        }
        let (number, is_next) = self.among(query, &landing)?;
        let page = self.checked(number)?;
        let rank = match page.get(self.symbols, fingerprint(query), query) {
            Some(slot) => Some(number * PAGE_KEYS as u64 + slot as u64),
            None => {
                let slot = if is_next { PAGE_KEYS } else { 0 };
                let slot = Slot { slot, found: false, common: common(query, page.head()) };
                let (rank, found) = self.settle(query, &landing, (number, is_next), slot)?;
                found.then_some(rank)
            }
        };
        self.index.check_mapping()?;
        Ok(rank)
    }

    /// Completes a search that has looked into a page: checks that the query shares what the trie passed over.
    fn settle(
        &self,
        query: &[u8],
        landing: &Landing,
        (page, is_next): (u64, bool),
        slot: Slot,
    ) -> Result<(u64, bool), ReadError> {
        let rank = page * PAGE_KEYS as u64 + slot.slot as u64;
        if slot.found || is_next && slot.slot == PAGE_KEYS {
            return Ok((rank, true));
        }
        match self.parting(query, landing, page, slot.common)? {
            None => Ok((rank, false)),
            Some(parting) => {
                let landing = self.descend(query, Some(parting))?;
                let page = landing.first;
                let slot = self.checked(page)?.find(self.symbols, query);
                Ok((page * PAGE_KEYS as u64 + slot.slot as u64, slot.found))
            }
        }
    }

    /// Returns how a query parts from the keys of the node that led to a page, if it does so in bytes that the trie
    /// passed over. `same` is what it shares with the first key of the page.
    #[inline]
    fn parting(
        &self,
        query: &[u8],
        landing: &Landing,
        page: u64,
        same: usize,
    ) -> Result<Option<Parting>, ReadError> {
        let prefix = landing.prefix as usize;
        // The first key of the first page may be left of the node; that of the next one is not.
        let is_left = page == landing.first && (landing.is_first || landing.more > 0);
        if !is_left && same >= prefix || prefix == 0 {
            return Ok(None);
        }
        let head = self.checked(page + u64::from(is_left))?.head();
        // Zero bytes behind the shorter one are shared, too.
        let Some(same) = differ(query, head).filter(|same| *same < prefix) else { return Ok(None) };
        let byte = |text: &[u8]| text.get(same).copied().unwrap_or(0);
        Ok(Some((same, byte(query) > byte(head))))
    }
}
