//! Many look-ups at once: a group of queries takes each step together, so that its cache misses overlap.
//!
//! The steps are: nodes of the trie, level by level; the place of the page; its first lines; the key that may be the
//! query, by its fingerprint, or the keys among which the query's rest decides; the tuple line. Each step asks for
//! the lines of the next one.

use super::{Landing, Texts};
use crate::arch::prefetch;
use crate::error::ReadError;
use pleach_format::key::Bits;
use pleach_format::text::{HEAD_AT, Narrow, PAGE_KEYS, Slot, fingerprint};
use pleach_format::trie::{Child, LEVELS_MAX, MORE_MAX, NODE_BYTES, View, slice};

/// Queries of a group.
const GROUP: usize = 32;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Maximum number of lines of a page that are asked for at once.
const LINES_MAX: usize = 10;

/// A group on its way.
struct Group<'q> {
    queries: [&'q [u8]; GROUP],
    count: usize,
    landings: [Landing; GROUP],
    pages: [u64; GROUP],
    /// True if the first key of the next page is the query.
    is_next: [bool; GROUP],
}

/// What is known of a query once the first lines of its page were read.
#[derive(Clone, Copy)]
enum Step {
    /// The first key that may be the query, by its fingerprint.
    Candidate(usize),
    /// The keys among which the rest decides.
    Narrow(Narrow),
    /// The answer of the page.
    Slot(Slot),
}

impl<'a> Texts<'a> {
    /// Yields the rank of each of `count` queries, and whether it is there. Ranks of those
    /// that are not are their lower bounds, or, if `EXACT`, arbitrary. Unverified.
    pub(crate) fn each<'q, const EXACT: bool>(
        &self,
        count: usize,
        query: impl Fn(usize) -> &'q [u8],
        mut put: impl FnMut(usize, u64, bool),
    ) -> Result<(), ReadError> {
        for start in (0..count).step_by(GROUP) {
            let end = count.min(start + GROUP);
            let mut group = Group {
                queries: [&[]; GROUP],
                count: end - start,
                landings: [Landing::default(); GROUP],
                pages: [0; GROUP],
                is_next: [false; GROUP],
            };
            for (to, at) in group.queries.iter_mut().zip(start..end) {
                *to = query(at);
            }
            // Those of the next group.
            for at in end..count.min(end + GROUP) {
                let query = query(at);
                prefetch(query.as_ptr());
                prefetch(query.as_ptr().wrapping_add(query.len().saturating_sub(1)));
            }
            self.land(&mut group);
            self.arrive(&mut group)?;
            let steps = self.look::<EXACT>(&group);
            for (at, step) in steps.into_iter().enumerate().take(group.count) {
                let (rank, found) = self.answer::<EXACT>(&group, at, step)?;
                put(start + at, rank, found);
            }
        }
        Ok(())
    }

    /// Goes down the trie with all queries, and asks for the places of their pages.
    fn land(&self, group: &mut Group<'_>) {
        let mut active: [u8; GROUP] = std::array::from_fn(|at| at as u8);
        let (mut nodes, mut passed, mut left) = ([0u32; GROUP], [0usize; GROUP], group.count);
        for level in 0..=LEVELS_MAX {
            let mut kept = 0;
            for number in 0..left {
                let at = usize::from(active[number]);
                let node = match self.nodes.get(nodes[at] as usize) {
                    Some(node) if level < LEVELS_MAX => View(node),
                    _ => {
                        group.landings[at] = self.everywhere();
                        continue;
                    }
                };
                let (child, is_first) = match node.run() {
                    Some((first, more)) => (Child::Pages { first, more }, false),
                    None => {
                        passed[at] = node.prefix();
                        let number = node.route(slice(group.queries[at], passed[at]));
                        (node.child(number), number == 0)
                    }
                };
                match child {
                    Child::Node(next) => {
                        // Children come later: a path ends.
                        nodes[at] = if next > nodes[at] { next } else { u32::MAX };
                        let address =
                            self.nodes.as_ptr().cast::<u8>().wrapping_add(next as usize * NODE_BYTES);
                        prefetch(address);
                        prefetch(address.wrapping_add(LINE));
                        active[kept] = at as u8;
                        kept += 1;
                    }
                    Child::Pages { first, more } => {
                        let landing = self.landing(first.into(), more.into(), passed[at], is_first);
                        group.landings[at] = landing;
                        self.pages.prefetch_offset(landing.first);
                    }
                }
            }
            left = kept;
            if left == 0 {
                break;
            }
        }
    }

    /// Asks for the lines of a page, unless they are many, and of its tuples.
    pub(super) fn prefetch_all(&self, page: u64) {
        let rank = page * PAGE_KEYS as u64;
        self.prefetch_tuple(rank);
        self.prefetch_tuple(rank + PAGE_KEYS as u64 - 1);
        for line in self.pages.at(page).chunks(LINE).take(LINES_MAX) {
            prefetch(line.as_ptr());
        }
    }

    /// Asks for the first lines of a page.
    #[inline(always)]
    fn prefetch_page(&self, page: u64) {
        let address = self.pages.at(page).as_ptr();
        prefetch(address);
        prefetch(address.wrapping_add(LINE));
        prefetch(address.wrapping_add(2 * LINE));
    }

    /// Chooses one page of each landing, and asks for its lines.
    fn arrive(&self, group: &mut Group<'_>) -> Result<(), ReadError> {
        for (landing, page) in group.landings.iter().zip(&mut group.pages).take(group.count) {
            *page = landing.first;
            if landing.more == 0 {
                self.prefetch_page(*page);
            } else {
                (1..=landing.more.min(MORE_MAX.into())).for_each(|more| self.prefetch_page(*page + more));
            }
        }
        for at in 0..group.count {
            if group.landings[at].more > 0 {
                let (page, is_next) = self.among(group.queries[at], &group.landings[at])?;
                (group.pages[at], group.is_next[at]) = (page, is_next);
                self.prefetch_page(page);
            }
        }
        Ok(())
    }

    /// Looks at the first lines of the pages, and asks for codes and tuple lines.
    fn look<const EXACT: bool>(&self, group: &Group<'_>) -> [Step; GROUP] {
        std::array::from_fn(|at| {
            if at >= group.count {
                return Step::Candidate(PAGE_KEYS);
            }
            let (query, page) = (group.queries[at], self.page(group.pages[at]));
            let (step, slot) = if EXACT {
                let slot = page.candidate(fingerprint(query), 0);
                (Step::Candidate(slot), (slot < page.keys()).then_some(slot))
            } else {
                match page.narrow(query) {
                    Ok(narrow) => (Step::Narrow(narrow), Some((narrow.from + narrow.to) / 2)),
                    Err(slot) => (Step::Slot(slot), None),
                }
            };
            if let Some(slot) = slot {
                let codes = page.codes_at(slot.clamp(1, PAGE_KEYS - 1));
                let address = self.pages.at(group.pages[at]).as_ptr();
                // The first three lines are on their way.
                if codes + LINE > 3 * LINE - HEAD_AT {
                    prefetch(address.wrapping_add(codes));
                    prefetch(address.wrapping_add(codes + LINE / 2));
                }
                if EXACT {
                    self.prefetch_tuple(group.pages[at] * PAGE_KEYS as u64 + slot as u64);
                }
            }
            step
        })
    }

    /// Completes one query.
    #[inline(always)]
    fn answer<const EXACT: bool>(
        &self,
        group: &Group<'_>,
        at: usize,
        step: Step,
    ) -> Result<(u64, bool), ReadError> {
        let (query, landing, number) = (group.queries[at], &group.landings[at], group.pages[at]);
        let page = self.page(number);
        let slot = match step {
            Step::Slot(slot) => slot,
            Step::Narrow(narrow) => page.settle(self.symbols, query, &narrow),
            Step::Candidate(slot) => {
                let mut slot = slot;
                while slot < page.keys() && !page.is_key(self.symbols, slot, query) {
                    slot = page.candidate(fingerprint(query), slot + 1);
                }
                let found = slot < page.keys();
                if found {
                    return Ok((number * PAGE_KEYS as u64 + slot as u64, true));
                }
                let common = pleach_format::text::common(query, page.head());
                Slot { slot: if group.is_next[at] { PAGE_KEYS } else { 0 }, found, common }
            }
        };
        self.settle(query, landing, (number, group.is_next[at]), slot)
    }

    /// Asks for the line of a tuple.
    #[inline(always)]
    pub(crate) fn prefetch_tuple(&self, rank: u64) {
        let header = self.index.header();
        let (line, _) = header.geometry.place(rank);
        prefetch(self.index.bytes().as_ptr().wrapping_add(header.line_offset(line) as usize));
    }

    /// Returns the value in the line of a tuple, unverified; the default past the last one.
    #[inline(always)]
    pub(crate) fn value<B: Bits>(&self, rank: u64) -> B {
        let header = self.index.header();
        let (line, slot) = header.geometry.place(rank);
        let at = header.line_offset(line) as usize + header.geometry.values_at() + slot * B::BYTES;
        match self.index.bytes().get(at..) {
            Some(bytes) if B::BYTES > 0 && rank < header.tuples && bytes.len() >= B::BYTES => B::read(bytes),
            _ => B::default(),
        }
    }
}
