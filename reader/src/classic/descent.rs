//! The descent of a full tree, for S queries at once.
//!
//! All queries of a group take the same step of the tree, one line, together. While one query is compared,
//! the lines of the others, prefetched one step before, are being loaded (the paper's software pipelining;
//! there is none with S = 1).
//!
//! The state of a query is the number of its line among all lines of its depth; its children follow from
//! that. The number is clamped to the last line, and a line outside the bytes counts as having no key below
//! the query, so a forged tree cannot lead outside.

use super::joint::Address;
use super::kernel::Kernel;
use crate::arch::prefetch;
use pleach_format::classic::{LineLevel, PageLevel, Tree, TreeWord, nodes};

/// Lines of one depth of the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    line: LineLevel,
    d_k: u32,
    /// Slot of the first page, slots per whole page, and number of the last page.
    start: u64,
    stride: u64,
    last_page: u64,
    /// Number of the last line among all lines of this depth.
    last: u64,
    joined: bool,
    /// Addresses for all queries of a group at once.
    address: Address,
}

/// Returns the steps of a tree, root first.
pub(crate) fn steps(tree: &Tree) -> Vec<Step> {
    let step = |level: &PageLevel, line: &LineLevel| {
        let last = tree.last_gap() >> (line.levels + line.below);
        let joined = level.joined || level.last == 0;
        Step {
            line: *line,
            d_k: tree.geometry().d_k,
            start: level.start,
            stride: level.slots[0],
            last_page: level.last,
            last,
            joined,
            address: Address::new(line, level.start, level.slots[0], level.last, last, joined),
        }
    };
    tree.pages().iter().flat_map(|level| level.lines.iter().map(move |line| step(level, line))).collect()
}

impl Step {
    /// Returns the slot of a line.
    #[inline(always)]
    fn slot(&self, line: u64) -> u64 {
        if self.joined {
            return self.start + self.line.slot(1, line);
        }
        let page = line >> self.line.above;
        let part = usize::from(page == self.last_page);
        self.start + page * self.stride + self.line.slot(part, line & nodes(self.line.above))
    }
}

/// Returns 64 bytes from byte `at` on.
#[inline(always)]
pub(crate) fn line_at(bytes: &[u8], at: u64) -> Option<&[u8; 64]> {
    bytes.get(at as usize..)?.first_chunk()
}

/// Returns the child of the line of `levels` levels whose first byte is `at`.
///
/// # Safety
/// The caller guarantees the CPU features of `K`, as [`Kernel`] requires.
#[inline(always)]
pub(crate) unsafe fn child<K: Kernel, V: TreeWord>(
    bytes: &[u8],
    at: u64,
    levels: u32,
    d_k: u32,
    query: V,
) -> u64 {
    let (mut above, mut child) = (0, 0);
    while above < levels {
        let block = d_k.min(levels - above);
        let n = nodes(block);
        let place = at + (nodes(above) + child * n) * V::BYTES as u64;
        // Not a closure: that would be compiled without the kernel's features.
        let below = match line_at(bytes, place) {
            // SAFETY: the caller guarantees the CPU features of `K`.
            Some(line) => unsafe { K::below(line, n as usize, query) },
            None => 0,
        };
        child = child << block | below as u64;
        above += block;
    }
    child
}

/// Returns the gaps in which a group's queries end.
///
/// # Safety
/// The caller guarantees the CPU features of `K`, as [`Kernel`] requires.
#[inline(always)]
pub(crate) unsafe fn group<K: Kernel, V: TreeWord, const S: usize>(
    steps: &[Step],
    bytes: &[u8],
    queries: &[V; S],
) -> [u64; S] {
    let mut lines = [0; S];
    let mut places = [0; S];
    for (number, step) in steps.iter().enumerate() {
        let next = steps.get(number + 1);
        for s in 0..S {
            if number == 0 {
                places[s] = step.slot(0) * V::BYTES as u64;
            }
            // SAFETY: the caller guarantees the CPU features of `K`.
            let child = unsafe { child::<K, V>(bytes, places[s], step.line.levels, step.d_k, queries[s]) };
            lines[s] = lines[s] << step.line.levels | child;
            if let Some(next) = next
                && !K::JOINT
            {
                lines[s] = lines[s].min(next.last);
                places[s] = next.slot(lines[s]) * V::BYTES as u64;
                if S > 1 {
                    next.ask::<V>(bytes, places[s]);
                }
            }
        }
        if let Some(next) = next
            && K::JOINT
        {
            // SAFETY: the caller guarantees the CPU features of `K`.
            let slots = unsafe { K::slots(&next.address, &mut lines) };
            for s in 0..S {
                places[s] = slots[s] * V::BYTES as u64;
                if S > 1 {
                    next.ask::<V>(bytes, places[s]);
                }
            }
        }
    }
    lines
}

impl Step {
    /// Prefetches the line whose first byte is `at`.
    #[inline(always)]
    fn ask<V: TreeWord>(&self, bytes: &[u8], at: u64) {
        prefetch(bytes.as_ptr().wrapping_add(at as usize));
        if !self.aligned() {
            let end = at as usize + (nodes(self.line.levels) as usize * V::BYTES - 1);
            prefetch(bytes.as_ptr().wrapping_add(end));
        }
    }

    /// Returns true if lines do not cross 64-byte boundaries, so that one prefetch loads a line.
    #[inline(always)]
    fn aligned(&self) -> bool {
        self.line.levels == 1 || self.line.pitch != nodes(self.line.levels)
    }
}
