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
use pleach_format::classic::{Gaps, LineLevel, PageLevel, Tree, TreeWord, nodes};
use pleach_format::line::Line;

/// Lines of one depth of the tree. Places are in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    line: LineLevel,
    d_k: u32,
    /// First line of a page, in a whole page and in the last one; of all lines, if they are one run.
    starts: [u64; 2],
    /// From one page to the next, without gaps.
    stride: u64,
    last_page: u64,
    gaps: Gaps,
    /// From one group of lines to the next, and from one line of a group to the next.
    pitch: u64,
    line_bytes: u64,
    /// Number of the last line among all lines of this depth.
    last: u64,
    /// All lines of the depth are one run.
    is_run: bool,
    key_bytes: u64,
}

/// Returns the steps of a tree, root first.
pub(super) fn steps(tree: &Tree) -> Vec<Step> {
    let key_bytes = u64::from(tree.geometry().key_bytes);
    let step = |level: &PageLevel, line: &LineLevel| Step {
        line: *line,
        d_k: tree.geometry().d_k,
        starts: line.start.map(|start| (level.start + start) * key_bytes),
        stride: level.slots[0] * key_bytes,
        last_page: level.last,
        gaps: level.gaps,
        pitch: line.pitch * key_bytes,
        line_bytes: nodes(line.levels) * key_bytes,
        last: tree.last_gap() >> (line.levels + line.below),
        is_run: level.joined || level.last == 0,
        key_bytes,
    };
    tree.pages().iter().flat_map(|level| level.lines.iter().map(move |line| step(level, line))).collect()
}

impl Step {
    /// Returns the first byte of a line. With `RUN` all lines of the depth are one run; with `ALONE` no lines share
    /// a pitch.
    #[inline(always)]
    fn place<const RUN: bool, const ALONE: bool>(&self, line: u64) -> u64 {
        let (start, line) = if RUN {
            (self.starts[1], line)
        } else {
            let page = line >> self.line.above;
            let start = if page == self.last_page { self.starts[1] } else { self.starts[0] };
            let gaps = self.gaps.before(page) * self.key_bytes;
            (start + page * self.stride + gaps, line & nodes(self.line.above))
        };
        if ALONE {
            start + line * self.pitch
        } else {
            let inside = line & ((1 << self.line.group) - 1);
            start + (line >> self.line.group) * self.pitch + inside * self.line_bytes
        }
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
    if levels <= d_k {
        // The line is one block.
        return match bytes.get(at as usize..).and_then(<[u8]>::first_chunk) {
            // SAFETY: the caller guarantees the CPU features of `S`.
            Some(line) => unsafe { below::<S, V>(line, nodes(levels) as usize, query) as u64 },
            None => 0,
        };
    }
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

/// Compares queries with the lines at `places`, and moves them to the lines of the next step.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn advance<S: Simd, V: TreeWord, const N: usize, const RUN: bool, const ALONE: bool>(
    (step, next): (&Step, &Step),
    bytes: &[u8],
    queries: &[V; N],
    lines: &mut [u64; N],
    places: &mut [u64; N],
) {
    for s in 0..N {
        // SAFETY: the caller guarantees the CPU features of `S`.
        let child = unsafe { child::<S, V>(bytes, places[s], step.line.levels, step.d_k, queries[s]) };
        lines[s] = (lines[s] << step.line.levels | child).min(next.last);
        places[s] = next.place::<RUN, ALONE>(lines[s]);
        if N > 1 {
            ask::<V>(&next.line, bytes, places[s]);
        }
    }
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
    let Some((root, last)) = steps.first().zip(steps.last()) else { return lines };
    let mut places = [root.place::<false, false>(0); N];
    for (step, next) in steps.iter().zip(&steps[1..]) {
        let pair = (step, next);
        // SAFETY: the caller guarantees the CPU features of `S`.
        unsafe {
            match (next.is_run, next.line.group == 0) {
                (true, true) => advance::<S, V, N, true, true>(pair, bytes, queries, &mut lines, &mut places),
                (true, false) => {
                    advance::<S, V, N, true, false>(pair, bytes, queries, &mut lines, &mut places)
                }
                (false, true) => {
                    advance::<S, V, N, false, true>(pair, bytes, queries, &mut lines, &mut places)
                }
                (false, false) => {
                    advance::<S, V, N, false, false>(pair, bytes, queries, &mut lines, &mut places)
                }
            }
        }
    }
    for s in 0..N {
        // SAFETY: the caller guarantees the CPU features of `S`.
        let child = unsafe { child::<S, V>(bytes, places[s], last.line.levels, last.d_k, queries[s]) };
        lines[s] = lines[s] << last.line.levels | child;
    }
    lines
}

/// Prefetches the line whose first byte is `at`: both ends, unless lines do not cross 64-byte boundaries.
#[inline(always)]
pub fn ask<V: TreeWord>(line: &LineLevel, bytes: &[u8], at: u64) {
    prefetch(bytes.as_ptr().wrapping_add(at as usize));
    if line.levels > 1 && line.pitch == nodes(line.levels) {
        let end = at as usize + (line.pitch as usize * V::BYTES - 1);
        prefetch(bytes.as_ptr().wrapping_add(end));
    }
}
