//! Addresses of all queries in flight at once: the vectors of the paper's Knights Ferry form. They compute
//! with one lane per query, between compares that use all lanes for one query.
//!
//! A query's next line follows from its number among all lines of its depth ([`Address`]): a clamp, a
//! division into page and line, three products and a sum. In all trees of up to about 2^36 keys, numbers and
//! factors are below 2^32, and one AVX2 vector computes four queries. Other trees, and the rest of a group,
//! use portable code. Answers and clamps are the same as one at a time. Kim et al., TODS 36(4), 2011, section
//! 5.3.

use pleach::internal::{Simd, ask, child};
use pleach_format::classic::{LineLevel, PageLevel, Tree, TreeWord, nodes};

/// Addresses of the lines of one depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    /// Number of the last line.
    last: u64,
    /// Logarithm of the lines per page, and their mask; all lines if pages are joined.
    page_log: u32,
    page_mask: u64,
    last_page: u64,
    /// Slots from one page to the next.
    stride: u64,
    /// Slot of the first line of the first page: if that is a whole page, and if it is the last page.
    starts: [u64; 2],
    /// Logarithm and mask of the lines per group, and slots from one group and one line to the next.
    group_log: u32,
    group_mask: u64,
    pitch: u64,
    nodes: u64,
    /// True if numbers and factors are below 2^32.
    narrow: bool,
}

impl Address {
    /// Creates the addresses of lines in pages of `stride` slots from slot `start` on; `last_page` is the
    /// number of the last page.
    fn new(line: &LineLevel, start: u64, stride: u64, last_page: u64, last: u64, joined: bool) -> Self {
        let nodes_in_line = nodes(line.levels);
        let narrow = last.max(stride).max(line.pitch).max(nodes_in_line) <= u32::MAX.into();
        Self {
            last,
            page_log: if joined { 63 } else { line.above },
            page_mask: if joined { u64::MAX >> 1 } else { nodes(line.above) },
            last_page: if joined { 0 } else { last_page },
            stride,
            starts: line.start.map(|first| start + first),
            group_log: line.group,
            group_mask: (1 << line.group) - 1,
            pitch: line.pitch,
            nodes: nodes_in_line,
            narrow,
        }
    }

    /// Clamps a line's number and returns its slot.
    #[inline(always)]
    fn one(&self, line: &mut u64) -> u64 {
        *line = (*line).min(self.last);
        let page = *line >> self.page_log;
        let inside = *line & self.page_mask;
        self.starts[usize::from(page == self.last_page)]
            + page * self.stride
            + (inside >> self.group_log) * self.pitch
            + (inside & self.group_mask) * self.nodes
    }

    /// Clamps the numbers of lines and returns their slots.
    #[inline(always)]
    fn all<const N: usize>(&self, lines: &mut [u64; N]) -> [u64; N] {
        std::array::from_fn(|s| self.one(&mut lines[s]))
    }

    /// Clamps the numbers of lines and returns their slots.
    ///
    /// # Safety
    /// With `AVX2` the caller guarantees AVX2.
    #[inline(always)]
    unsafe fn slots<const AVX2: bool, const N: usize>(&self, lines: &mut [u64; N]) -> [u64; N] {
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            // SAFETY: with `AVX2` the caller guarantees AVX2.
            return unsafe { self.all_avx2(lines) };
        }
        self.all(lines)
    }

    /// Runs [`Self::all`] for four lines at a time.
    ///
    /// # Safety
    /// The caller guarantees AVX2.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn all_avx2<const N: usize>(&self, lines: &mut [u64; N]) -> [u64; N] {
        if !self.narrow {
            return self.all(lines);
        }
        let mut slots = [0; N];
        let (fours, rest) = lines.as_chunks_mut::<4>();
        let (outputs, last) = slots.as_chunks_mut::<4>();
        for (lines, output) in fours.iter_mut().zip(outputs) {
            // SAFETY: the caller guarantees AVX2.
            unsafe { self.four(lines, output) };
        }
        for (line, output) in rest.iter_mut().zip(last) {
            *output = self.one(line);
        }
        slots
    }

    /// # Safety
    /// The caller guarantees AVX2.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn four(&self, lines: &mut [u64; 4], slots: &mut [u64; 4]) {
        use std::arch::x86_64::*;
        // SAFETY: the caller guarantees AVX2; loads and stores are unaligned and of the 32 bytes of the
        // arrays.
        unsafe {
            let all = |number: u64| _mm256_set1_epi64x(number.cast_signed());
            let shift = |numbers, log: u32| _mm256_srl_epi64(numbers, _mm_cvtsi32_si128(log.cast_signed()));
            let line = _mm256_loadu_si256(lines.as_ptr().cast());
            // Numbers of lines are below 2^63, so the signed compare is right.
            let last = all(self.last);
            let line = _mm256_blendv_epi8(line, last, _mm256_cmpgt_epi64(line, last));
            _mm256_storeu_si256(lines.as_mut_ptr().cast(), line);
            let page = shift(line, self.page_log);
            let inside = _mm256_and_si256(line, all(self.page_mask));
            let in_last = _mm256_cmpeq_epi64(page, all(self.last_page));
            let start = _mm256_blendv_epi8(all(self.starts[0]), all(self.starts[1]), in_last);
            let page = _mm256_mul_epu32(page, all(self.stride));
            let group = _mm256_mul_epu32(shift(inside, self.group_log), all(self.pitch));
            let line = _mm256_mul_epu32(_mm256_and_si256(inside, all(self.group_mask)), all(self.nodes));
            let slot = _mm256_add_epi64(_mm256_add_epi64(start, page), _mm256_add_epi64(group, line));
            _mm256_storeu_si256(slots.as_mut_ptr().cast(), slot);
        }
    }
}

/// Lines of one depth of a full tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    line: LineLevel,
    d_k: u32,
    /// Slot of the first line.
    first: u64,
    address: Address,
}

/// Returns the steps of a tree, root first.
pub(super) fn steps(tree: &Tree) -> Vec<Step> {
    let step = |level: &PageLevel, line: &LineLevel| {
        let last = tree.last_gap() >> (line.levels + line.below);
        let joined = level.joined || level.last == 0;
        let address = Address::new(line, level.start, level.slots[0], level.last, last, joined);
        Step { line: *line, d_k: tree.geometry().d_k, first: address.one(&mut 0), address }
    };
    tree.pages().iter().flat_map(|level| level.lines.iter().map(move |line| step(level, line))).collect()
}

/// Writes the gaps in which queries end.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires, and AVX2 with `AVX2`.
#[inline(always)]
pub(super) unsafe fn all<S: Simd, W: TreeWord, const AVX2: bool, const N: usize>(
    steps: &[Step],
    bytes: &[u8],
    queries: &[W],
    gaps: &mut [u64],
) {
    let (groups, rest) = queries.as_chunks::<N>();
    let (outputs, last) = gaps.as_chunks_mut::<N>();
    for (queries, output) in groups.iter().zip(outputs) {
        // SAFETY: the caller guarantees the CPU features of `S`, and AVX2 with `AVX2`.
        *output = unsafe { group::<S, W, AVX2, N>(steps, bytes, queries) };
    }
    for (&query, output) in rest.iter().zip(last) {
        // SAFETY: the caller guarantees the CPU features of `S`, and AVX2 with `AVX2`.
        [*output] = unsafe { group::<S, W, AVX2, 1>(steps, bytes, &[query]) };
    }
}

/// Returns the gaps in which a group's queries end.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires, and AVX2 with `AVX2`.
#[inline(always)]
unsafe fn group<S: Simd, W: TreeWord, const AVX2: bool, const N: usize>(
    steps: &[Step],
    bytes: &[u8],
    queries: &[W; N],
) -> [u64; N] {
    let mut lines = [0; N];
    let mut places = [steps.first().map_or(0, |step| step.first * W::BYTES as u64); N];
    for (number, step) in steps.iter().enumerate() {
        for s in 0..N {
            // SAFETY: the caller guarantees the CPU features of `S`.
            let child = unsafe { child::<S, W>(bytes, places[s], step.line.levels, step.d_k, queries[s]) };
            lines[s] = lines[s] << step.line.levels | child;
        }
        let Some(next) = steps.get(number + 1) else { break };
        // SAFETY: with `AVX2` the caller guarantees AVX2.
        let slots = unsafe { next.address.slots::<AVX2, N>(&mut lines) };
        for s in 0..N {
            places[s] = slots[s] * W::BYTES as u64;
            if N > 1 {
                ask::<W>(&next.line, bytes, places[s]);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_format::classic::Geometry;

    /// Lines of every depth of trees of all kinds, near both ends of every page and beyond the last.
    #[test]
    fn addresses_are_those_of_the_layout() {
        for keys in [1u64, 15, 16, 255, 4097, 100_000, 1 << 24, (1 << 24) + 12_345, 1 << 40] {
            for (d_k, d_l, d_p) in [(1, 1, 64), (2, 4, 19), (4, 4, 19), (4, 4, 8), (2, 3, 7), (1, 4, 10)] {
                for padded in [false, true] {
                    let geometry = Geometry { keys, key_bytes: 4, d_k, d_l, d_p, padded, aligned: false };
                    let tree = geometry.tree().expect("sound");
                    for level in tree.pages() {
                        for line in &level.lines {
                            check(&tree, level, line);
                        }
                    }
                }
            }
        }
    }

    fn check(
        tree: &pleach_format::classic::Tree,
        level: &pleach_format::classic::PageLevel,
        line: &LineLevel,
    ) {
        let joined = level.joined || level.last == 0;
        let last = tree.last_gap() >> (line.levels + line.below);
        let address = Address::new(line, level.start, level.slots[0], level.last, last, joined);
        let spread = (0..40).map(|i| last / 41 * i + i);
        let numbers: Vec<u64> = spread.chain([last, last + 1, last * 2, last.saturating_sub(1)]).collect();
        for chunk in numbers.as_chunks::<4>().0 {
            let expected = chunk.map(|number| {
                let number = number.min(last);
                if joined {
                    return (number, level.start + line.slot(1, number));
                }
                let page = number >> line.above;
                let part = usize::from(page == level.last);
                let inside = line.slot(part, number & nodes(line.above));
                (number, level.start + page * level.slots[0] + inside)
            });
            let mut lines = *chunk;
            let slots = address.all(&mut lines);
            assert_eq!(std::array::from_fn(|s| (lines[s], slots[s])), expected, "{address:?}");
            #[cfg(target_arch = "x86_64")]
            if pleach_format::cpu::avx2() {
                // Five, so that one is left over.
                let mut lines = [chunk[0], chunk[1], chunk[2], chunk[3], chunk[0]];
                // SAFETY: the CPU has AVX2.
                let slots = unsafe { address.all_avx2(&mut lines) };
                let found: [(u64, u64); 5] = std::array::from_fn(|s| (lines[s], slots[s]));
                assert_eq!(found[..4], expected, "{address:?}");
                assert_eq!(found[4], expected[0], "{address:?}");
            }
        }
    }
}
