//! Search in classic FAST trees, full and compressed: the paper's blocking, SIMD compares and software
//! pipelining.
//!
//! ```text
//! descent.rs  full trees                                 paged.rs    compressed trees
//! engine.rs   both compiled for each instruction set
//! papers.rs   the steps of a search, for the crate `pleach-papers`
//! ```
//! A descent ends in a gap between keys. In a full tree and in a tree of distances the gap is the rank of the
//! query's lower bound, except for the last key of a power of two, which has no node.
//!
//! In a tree of partial keys the gap is near the rank. Full keys then decide, by a few single steps and then
//! by bisection, so that no run of equal partial keys is scanned.
//!
//! Kim et al., TODS 36(4), 2011, sections 5.1.2, 5.1.3, 5.3 and 7.

pub(crate) mod descent;
pub(crate) mod engine;
mod paged;
pub(crate) mod papers;
#[cfg(test)]
mod tests;

use crate::arch::Isa;
use engine::{Way, search};
use pleach_format::classic::paged::{Form, Paged};
use pleach_format::classic::{Geometry, TreeWord};

/// Additional work that partial keys cause, compared with full keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Number of queries that did not end in their gap.
    pub missed: u64,
    /// Number of full keys that were compared beyond the two that confirm a gap.
    pub extra: u64,
}

/// A classic tree over bytes that need not be aligned or valid. No search panics, loops or reads outside
/// them, but answers are right only for a tree that [`Geometry`] describes, of ascending keys.
#[derive(Clone, Debug)]
pub struct Classic<'a, W> {
    bytes: &'a [u8],
    keys: &'a [W],
    layout: Layout,
    isa: Isa,
}

/// The layout of a tree, as searches need it.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    way: Way,
    /// The last gap in which a query can end.
    pub(crate) last_gap: u64,
    /// Different keys may have equal words, so that a gap is only near the rank.
    pub(crate) is_lossy: bool,
}

impl Layout {
    /// Computes the layout; `None` if the geometry is outside its limits or the form does not hold its keys, and
    /// if a SIMD block is longer than 64 bytes. O(levels).
    pub(crate) fn new(geometry: &Geometry, form: Form) -> Option<Self> {
        let tree = geometry.tree()?;
        // Blocks of narrower words are deeper but have as many bytes, so this check covers all widths.
        if geometry.d_k > 6 || ((1u64 << geometry.d_k) - 1) * u64::from(geometry.key_bytes) > 64 {
            return None;
        }
        let way = match form {
            Form::Full => Way::Full(descent::steps(&tree)),
            _ => Way::Paged(paged::levels(&Paged::new(*geometry, form)?)),
        };
        let is_lossy = matches!(form, Form::Partial | Form::Auto) && geometry.key_bytes > 4;
        Some(Self { way, last_gap: tree.last_gap(), is_lossy })
    }

    /// Writes the gaps in which queries end, at most the last one, for keys `W` of the geometry's width. In a tree
    /// of 2^k keys the last gap is that before the last key, or behind it.
    pub(crate) fn gaps<W: TreeWord>(&self, isa: Isa, bytes: &[u8], queries: &[W], gaps: &mut [u64]) {
        search(isa, &self.way, bytes, queries, gaps);
        gaps.iter_mut().for_each(|gap| *gap = (*gap).min(self.last_gap));
    }
}

/// Number of queries whose gaps are searched before full keys decide; the gaps are then still in the cache.
const BLOCK: usize = 1 << 12;

/// Prefetch distance for full keys.
const AHEAD: usize = 16;

impl<'a, W: TreeWord> Classic<'a, W> {
    /// Creates a tree of sorted `keys`, in which every search ends. `None` if the geometry is outside its
    /// limits or for other keys, if the bytes are too few for a full tree, if a SIMD block is longer than 64
    /// bytes, or if keys of this width do not exist in this form. O(levels).
    #[must_use]
    pub fn new(geometry: &Geometry, form: Form, bytes: &'a [u8], keys: &'a [W]) -> Option<Self> {
        if geometry.key_bytes as usize != W::BYTES || geometry.keys != keys.len() as u64 {
            return None;
        }
        if form == Form::Full && (bytes.len() as u64) < geometry.tree()?.bytes() {
            return None;
        }
        Some(Self { bytes, keys, layout: Layout::new(geometry, form)?, isa: Isa::best() })
    }

    /// Sets the instruction set; portable code replaces one that this CPU lacks. Answers do not depend on it.
    #[must_use]
    pub fn with(self, isa: Isa) -> Self {
        Self { isa, ..self }
    }

    /// Returns the rank of the first key that is not below `query`; the number of keys if all are. O(log N).
    #[must_use]
    pub fn lower_bound(&self, query: W) -> u64 {
        let mut rank = [0];
        self.lower_bounds(&[query], &mut rank);
        rank[0]
    }

    /// Writes the ranks of many queries, up to the length of `ranks`, and returns the additional work of
    /// partial keys. The cache misses of queries overlap.
    pub fn lower_bounds(&self, queries: &[W], ranks: &mut [u64]) -> Work {
        let mut work = Work::default();
        for (queries, ranks) in queries.chunks(BLOCK).zip(ranks.chunks_mut(BLOCK)) {
            let count = queries.len().min(ranks.len());
            let (queries, ranks) = (&queries[..count], &mut ranks[..count]);
            self.layout.gaps(self.isa, self.bytes, queries, ranks);
            self.finish_all(queries, ranks, AHEAD, &mut work);
        }
        work
    }

    fn finish_all(&self, queries: &[W], ranks: &mut [u64], ahead: usize, work: &mut Work) {
        let confirm = self.layout.is_lossy && ahead > 0;
        for at in 0..queries.len().min(ranks.len()) {
            if confirm && let Some(&rank) = ranks.get(at + ahead) {
                let near = rank.min(self.keys.len() as u64) as usize;
                crate::arch::prefetch(self.keys.as_ptr().wrapping_add(near));
            }
            ranks[at] = self.finish(queries[at], ranks[at], work);
        }
    }

    /// Turns the gap of a descent into the rank.
    #[inline(always)]
    fn finish(&self, query: W, gap: u64, work: &mut Work) -> u64 {
        let gap = gap.min(self.layout.last_gap);
        if self.layout.is_lossy {
            return confirm(self.keys, query, gap as usize, work) as u64;
        }
        if gap < self.layout.last_gap {
            return gap;
        }
        let last = self.keys.get(gap as usize);
        gap + u64::from(last.is_some_and(|&key| key < query))
    }
}

/// Number of keys that are compared one by one before a search begins to double its step.
const STEPS: usize = 4;

/// Returns the rank of the lower bound, from a guess `at <= keys.len()`: O(log distance) full compares.
#[inline(always)]
fn confirm<W: TreeWord>(keys: &[W], query: W, at: usize, work: &mut Work) -> usize {
    let right = keys.get(at).is_some_and(|&key| key < query);
    let left = at > 0 && keys.get(at - 1).is_some_and(|&key| key >= query);
    if !right && !left {
        return at;
    }
    correct(keys, query, at, right, work)
}

#[cold]
#[inline(never)]
fn correct<W: TreeWord>(keys: &[W], query: W, at: usize, right: bool, work: &mut Work) -> usize {
    work.missed += 1;
    // The answer is in low..=high.
    let (mut low, mut high) = if right { (at + 1, keys.len()) } else { (0, at - 1) };
    let mut step = 1;
    let mut tries = 0;
    while low < high {
        let probe = if right { low.saturating_add(step - 1) } else { high.saturating_sub(step) };
        let probe = probe.clamp(low, high - 1);
        work.extra += 1;
        let below = keys[probe] < query;
        if below {
            low = probe + 1;
        } else {
            high = probe;
        }
        if below != right {
            break;
        }
        tries += 1;
        if tries >= STEPS {
            step *= 2;
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        work.extra += 1;
        if keys[middle] < query {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
