//! The descent of a full tree, for N queries at once.
//!
//! All queries of a group take the same step of the tree, one line, together. While one query is compared,
//! the lines of the others, prefetched one step before, are being loaded (the paper's software pipelining;
//! there is none with N = 1).
//!
//! The state of a query is the number of its line among all lines of its depth; its children follow from
//! that. The number is clamped to the last line, and a line outside the bytes counts as having no key below
//! the query, so a forged tree cannot lead outside.

use crate::arch::{Simd, prefetch};
use pleach_format::classic::{LineLevel, PageLevel, Tree, TreeWord, nodes};
use pleach_format::line::Line;

/// Lines of one depth of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    line: LineLevel,
    d_k: u32,
    /// Slot of the first page, slots per whole page, and number of the last page.
    start: u64,
    stride: u64,
    last_page: u64,
    /// Number of the last line among all lines of this depth.
    last: u64,
    joined: bool,
}

/// Returns the steps of a tree, root first.
pub(super) fn steps(tree: &Tree) -> Vec<Step> {
    let step = |level: &PageLevel, line: &LineLevel| Step {
        line: *line,
        d_k: tree.geometry().d_k,
        start: level.start,
        stride: level.slots[0],
        last_page: level.last,
        last: tree.last_gap() >> (line.levels + line.below),
        joined: level.joined || level.last == 0,
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

/// Counts the keys among the first `n` of a SIMD block that are below the query. A block is stored
/// breadth-first, but its keys below a query are those to the left of one gap, so their number is the child.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn below<S: Simd, V: TreeWord>(line: &Line, n: usize, query: V) -> usize {
    debug_assert!(S::detect().is_some());
    // SAFETY: the caller guarantees the CPU features of `S`; blocks of these widths have at most 31, 15 and 7
    // words.
    unsafe {
        match V::BYTES {
            2 => S::below16(line, n.min(31), query.widen() as u16),
            4 => S::below32(line, n.min(16), query.widen() as u32),
            8 => S::below64(line, n.min(8), query.widen() as u64),
            _ => V::slots(line).iter().take(n).filter(|&&word| V::from_bytes(word) < query).count(),
        }
    }
}

/// Returns the child of the line of `levels` levels whose first byte is `at`; a line outside the bytes has no
/// key below the query.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub unsafe fn child<S: Simd, V: TreeWord>(bytes: &[u8], at: u64, levels: u32, d_k: u32, query: V) -> u64 {
    let (mut above, mut child) = (0, 0);
    while above < levels {
        let block = d_k.min(levels - above);
        let n = nodes(block);
        let place = at + (nodes(above) + child * n) * V::BYTES as u64;
        // Not a closure: that would be compiled without the features of `S`.
        let below = match bytes.get(place as usize..).and_then(<[u8]>::first_chunk) {
            // SAFETY: the caller guarantees the CPU features of `S`.
            Some(line) => unsafe { below::<S, V>(line, n as usize, query) },
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
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(super) unsafe fn group<S: Simd, V: TreeWord, const N: usize>(
    steps: &[Step],
    bytes: &[u8],
    queries: &[V; N],
) -> [u64; N] {
    let mut lines = [0; N];
    let mut places = [0; N];
    for (number, step) in steps.iter().enumerate() {
        let next = steps.get(number + 1);
        for s in 0..N {
            if number == 0 {
                places[s] = step.slot(0) * V::BYTES as u64;
            }
            // SAFETY: the caller guarantees the CPU features of `S`.
            let child = unsafe { child::<S, V>(bytes, places[s], step.line.levels, step.d_k, queries[s]) };
            lines[s] = lines[s] << step.line.levels | child;
            if let Some(next) = next {
                lines[s] = lines[s].min(next.last);
                places[s] = next.slot(lines[s]) * V::BYTES as u64;
                if N > 1 {
                    ask::<V>(&next.line, bytes, places[s]);
                }
            }
        }
    }
    lines
}

/// Prefetches the line whose first byte is `at`: both ends, unless lines do not cross 64-byte boundaries.
#[inline(always)]
pub fn ask<V: TreeWord>(line: &LineLevel, bytes: &[u8], at: u64) {
    prefetch(bytes.as_ptr().wrapping_add(at as usize));
    if line.levels > 1 && line.pitch == nodes(line.levels) {
        let end = at as usize + (nodes(line.levels) as usize * V::BYTES - 1);
        prefetch(bytes.as_ptr().wrapping_add(end));
    }
}
