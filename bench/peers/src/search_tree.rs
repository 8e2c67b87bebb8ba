//! A static search tree: sorted `u32` keys in memory, searched in batches. The yardstick for batches of look-ups.
//! Keys are stored in nodes of 16, one cache line each; above them an S+ tree of fan-out 17, whose nodes hold the
//! greatest key of each child but the last. Above the tree is a table by the top bits of a key: a line for
//! each prefix, with the separators of just those nodes in which keys of this prefix can lie, and the number of
//! the first of them. So the table replaces all upper levels at once, and is itself one line read. As many bits
//! are taken as make one level below it enough: a query then reads two lines. Skewed keys need more levels; with
//! no bits at all the table is the root of a plain tree. Where at most 16 bits of a key remain below the prefix,
//! a line of the table holds 30 separators of 16 bits, else 15 of 32.
//!
//! A node is compared in two halves of 8 keys, packed, and counted. Queries go through in groups, each group one
//! stage after the next: in one turn of the loop one query is compared in the leaf, another one in the table,
//! and the line of a third is prefetched, so that misses below overlap with compares above. Numbers of nodes are
//! kept doubled: the count of mask bits adds to them, and times 32 they are the offset of the node.

use crate::prefetch::prefetch;
use crate::{PeerError, timed};
use memmap2::MmapMut;
use std::time::Duration;

/// Keys of a node.
const NODE: usize = 16;
/// Children of an inner node.
const FANOUT: usize = NODE + 1;
/// Bytes of a node, and of a line of the table.
const LINE_BYTES: usize = 64;
/// Bytes that a doubled number of a node counts.
const HALF_BYTES: usize = LINE_BYTES / 2;
/// Queries of a group: as fast as 64 and faster than 8, and a query takes `levels + 2` turns.
const GROUP: usize = 32;
/// Most levels of nodes below the table: 16 * 17^7 exceeds 2^32.
const LEVELS_MAX: usize = 8;
/// Most bits of the table.
const BITS_MAX: u32 = 24;
/// Alignment of the tree, so that it is on huge pages.
const PAGE_BYTES: usize = 2 << 20;
/// The table has at most one line for this many nodes of keys, or as many as fit into the first cache.
const NODES_PER_TABLE_LINE: usize = 7;
const TABLE_LINES_MIN: usize = 1 << 9;
/// Masks that are xor-ed to keys of 32 and 16 bits, so that signed compares order them.
const FLIP: u32 = 1 << 31;
const FLIP_NARROW: u32 = 1 << 15;
/// A greatest key as it is stored, which is below no query, and two narrow ones.
const PAD: u32 = u32::MAX ^ FLIP;
const PAD_NARROW: u32 = 0x7FFF_7FFF;

type Line = [u32; NODE];

/// Layout of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Top bits of a key that choose a line of the table: 0 to 24.
    pub bits: u32,
    /// Levels of nodes below the table, that of the keys included: 1 to 8.
    pub levels: usize,
    /// True if a line of the table holds 30 separators of 16 bits (from 16 bits of prefix on) instead of 15 of 32.
    pub narrow: bool,
}

impl Shape {
    /// Separators of a line of the table.
    const fn separators(self) -> usize {
        if self.narrow { 30 } else { 15 }
    }

    /// The shape with the fewest levels, and among these with the fewest bits, for ascending keys. O(keys).
    #[must_use]
    pub fn of(keys: &[u32]) -> Self {
        let lines_max = (keys.len() / NODE / NODES_PER_TABLE_LINE).max(TABLE_LINES_MIN);
        let bits_max = lines_max.ilog2().min(BITS_MAX);
        let starts = starts(keys, bits_max);
        for levels in 1..LEVELS_MAX {
            for bits in 0..=bits_max {
                let shape = Self { bits, levels, narrow: bits >= 16 };
                let prefix = 1 << (bits_max - bits);
                let mut borders =
                    starts.iter().step_by(prefix).zip(starts.iter().skip(prefix).step_by(prefix));
                if borders.all(|(&first, &end)| {
                    let (low, high) = reach(first, end, span(levels - 1), keys.len());
                    high - low <= shape.separators()
                }) {
                    return shape;
                }
            }
        }
        Self { bits: 0, levels: LEVELS_MAX, narrow: false }
    }
}

/// A tree over sorted keys; duplicates are kept.
pub struct SearchTree {
    /// Lines of the table, then those of each level from the upper one down.
    map: MmapMut,
    /// Offset of the lines in the map.
    start: usize,
    /// First line of each level, from the upper one down.
    firsts: [usize; LEVELS_MAX],
    lines: usize,
    keys: usize,
    shape: Shape,
}

fn refused(cause: &str) -> PeerError {
    PeerError { engine: "search-tree", operation: "build", cause: cause.into() }
}

#[inline(always)]
fn prefix(key: u32, bits: u32) -> usize {
    (u64::from(key) >> (32 - bits)) as usize
}

/// Rank of the first key of each prefix, and the number of keys at the end.
fn starts(keys: &[u32], bits: u32) -> Vec<usize> {
    let mut starts = vec![0; (1 << bits) + 1];
    for &key in keys {
        starts[prefix(key, bits) + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    starts
}

/// Keys below a node of a level.
fn span(level: usize) -> usize {
    (0..level).fold(NODE, |span, _| span.saturating_mul(FANOUT))
}

/// First and last of the nodes of `span` keys each in which a lower bound from `first` to `end` is found. The end
/// of a node counts as in it.
fn reach(first: usize, end: usize, span: usize, keys: usize) -> (usize, usize) {
    let low = (first / span).min(keys.saturating_sub(1) / span);
    (low, if end > first { (end - 1) / span } else { low })
}

impl SearchTree {
    /// A tree in the shape that suits the keys, and how long it took. O(keys); 1.07 to 1.13 times their bytes.
    ///
    /// # Errors
    /// If keys do not ascend, if they are 2^32 - 1 or more, or if there is no memory.
    pub fn new(keys: &[u32]) -> Result<(Self, Duration), PeerError> {
        let (tree, time) = timed(|| Self::with_shape(keys, Shape::of(keys)));
        Ok((tree?, time))
    }

    /// A tree in a given shape.
    ///
    /// # Errors
    /// As [`SearchTree::new`], and if keys of some prefix lie in more nodes than a line of the table tells apart.
    pub fn with_shape(keys: &[u32], shape: Shape) -> Result<Self, PeerError> {
        if keys.len() >= u32::MAX as usize || !keys.is_sorted() {
            return Err(refused("keys must ascend and be fewer than 2^32 - 1"));
        }
        let is_known = shape.bits <= BITS_MAX && (1..=LEVELS_MAX).contains(&shape.levels);
        if !is_known || (shape.narrow && shape.bits < 16) {
            return Err(refused(
                "there are 0 to 24 bits and 1 to 8 levels, and narrow tables from 16 bits on",
            ));
        }
        let counts: Vec<usize> =
            (0..shape.levels).rev().map(|level| keys.len().div_ceil(span(level)).max(1)).collect();
        let mut firsts = [0; LEVELS_MAX];
        let mut lines = 1 << shape.bits;
        for (first, count) in firsts.iter_mut().zip(&counts) {
            *first = lines;
            lines += count;
        }
        let map = MmapMut::map_anon(lines * LINE_BYTES + PAGE_BYTES);
        let map = map.map_err(|cause| refused(&format!("no memory: {cause}")))?;
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        let start = map.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        let mut tree = Self { map, start, firsts, lines, keys: keys.len(), shape };
        tree.fill(keys, &counts)?;
        Ok(tree)
    }

    fn fill(&mut self, keys: &[u32], counts: &[usize]) -> Result<(), PeerError> {
        let (shape, firsts) = (self.shape, self.firsts);
        let greatest = |level: usize, node: usize| keys[((node + 1) * span(level)).min(keys.len()) - 1];
        let lines = self.lines_mut();
        let (table, nodes) = lines.split_at_mut(1 << shape.bits);
        nodes.fill([PAD; NODE]);
        // The keys themselves, then the greatest key of each child that is not the last of its level.
        let below = shape.levels - 1;
        for (line, keys) in nodes[firsts[below] - table.len()..].iter_mut().zip(keys.chunks(NODE)) {
            line.iter_mut().zip(keys).for_each(|(slot, key)| *slot = key ^ FLIP);
        }
        for level in 1..shape.levels {
            let first = firsts[below - level] - table.len();
            let children = counts[below - level + 1];
            for (node, line) in nodes[first..][..counts[below - level]].iter_mut().enumerate() {
                for (child, slot) in (node * FANOUT..children - 1).zip(line) {
                    *slot = greatest(level - 1, child) ^ FLIP;
                }
            }
        }
        let starts = starts(keys, shape.bits);
        for (line, border) in table.iter_mut().zip(starts.windows(2)) {
            let (low, high) = reach(border[0], border[1], span(below), keys.len());
            if high - low > shape.separators() {
                return Err(refused("keys of one prefix lie in too many nodes: more levels or more bits"));
            }
            let separators = (low..high).map(|node| greatest(below, node));
            if shape.narrow {
                *line = [PAD_NARROW; NODE];
                for (slot, separator) in separators.enumerate() {
                    let shift = slot % 2 * 16;
                    let cleared = line[slot / 2] & !(0xFFFF << shift);
                    line[slot / 2] = cleared | (((separator & 0xFFFF) ^ FLIP_NARROW) << shift);
                }
            } else {
                *line = [PAD; NODE];
                line.iter_mut().zip(separators).for_each(|(slot, separator)| *slot = separator ^ FLIP);
            }
            line[NODE - 1] = u32::try_from(low * 2).map_err(|_| refused("too many nodes"))?;
        }
        Ok(())
    }

    fn lines_mut(&mut self) -> &mut [Line] {
        let bytes = &mut self.map[self.start..][..self.lines * LINE_BYTES];
        // SAFETY: a line is plain numbers, for which any bytes will do.
        let (head, lines, _) = unsafe { bytes.align_to_mut::<Line>() };
        assert!(head.is_empty(), "maps are aligned to pages");
        lines
    }

    fn lines(&self) -> &[Line] {
        let bytes = &self.map[self.start..][..self.lines * LINE_BYTES];
        // SAFETY: a line is plain numbers, for which any bytes will do.
        unsafe { bytes.align_to::<Line>() }.1
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys
    }

    /// Returns true if there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Bytes of the table and of all nodes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.lines * LINE_BYTES) as u64
    }

    /// Returns the layout.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Ranks of the lower bounds: how many keys are below each query. One thread; two lines a query where the
    /// shape has one level.
    ///
    /// # Panics
    /// If `out` is not as long as `queries`.
    pub fn ranks(&self, queries: &[u32], out: &mut [u32]) {
        assert_eq!(queries.len(), out.len(), "a rank for each query");
        #[cfg(target_arch = "x86_64")]
        if pleach_format::cpu::avx2_popcnt() {
            // SAFETY: the CPU has both features.
            return unsafe { ranks_avx2(self, queries, out) };
        }
        // SAFETY: plain loops need no feature.
        unsafe { any_shape::<Plain>(self, queries, out) }
    }
}

/// Counts separators that are below a key.
///
/// # Safety
/// The CPU has what the implementing type is named for, and the code around is compiled for it.
trait Compare {
    /// A mask with two bits for each of 16 keys that is below `key`; the upper two are those of the last slot.
    unsafe fn below(line: &Line, key: u32) -> u32;
    /// A mask with a bit for each of 32 keys of 16 bits that is below the low half of `key`; the upper two are
    /// those of the last two slots.
    unsafe fn below_narrow(line: &Line, key: u32) -> u32;
}

/// Bits of a mask that belong to separators: the last 32 bits of a line are not a separator.
const SEPARATORS: u32 = (1 << 30) - 1;

struct Plain;

impl Compare for Plain {
    #[inline(always)]
    unsafe fn below(line: &Line, key: u32) -> u32 {
        let key = (key ^ FLIP).cast_signed();
        line.iter().rev().fold(0, |mask, slot| (mask << 2) | (u32::from(slot.cast_signed() < key) * 3))
    }

    #[inline(always)]
    unsafe fn below_narrow(line: &Line, key: u32) -> u32 {
        let key = (key ^ FLIP_NARROW) as i16;
        let bit = |half: u32| u32::from((half as i16) < key);
        line.iter().rev().fold(0, |mask, slot| (mask << 2) | (bit(slot >> 16) << 1) | bit(*slot))
    }
}

#[cfg(target_arch = "x86_64")]
struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Compare for Avx2 {
    #[inline(always)]
    unsafe fn below(line: &Line, key: u32) -> u32 {
        use std::arch::x86_64::*;
        let halves = line.as_ptr().cast::<__m256i>();
        // SAFETY: both halves lie in the line, and these loads need no alignment; AVX2 by contract.
        unsafe {
            let key = _mm256_set1_epi32((key ^ FLIP).cast_signed());
            let low = _mm256_cmpgt_epi32(key, _mm256_loadu_si256(halves));
            let high = _mm256_cmpgt_epi32(key, _mm256_loadu_si256(halves.add(1)));
            // Packing takes quarters in turns, but the last slot stays the last, and a count needs no order.
            _mm256_movemask_epi8(_mm256_packs_epi32(low, high)).cast_unsigned()
        }
    }

    #[inline(always)]
    unsafe fn below_narrow(line: &Line, key: u32) -> u32 {
        use std::arch::x86_64::*;
        let halves = line.as_ptr().cast::<__m256i>();
        // SAFETY: as above.
        unsafe {
            let key = _mm256_set1_epi16((key ^ FLIP_NARROW) as i16);
            let low = _mm256_cmpgt_epi16(key, _mm256_loadu_si256(halves));
            let high = _mm256_cmpgt_epi16(key, _mm256_loadu_si256(halves.add(1)));
            _mm256_movemask_epi8(_mm256_packs_epi16(low, high)).cast_unsigned()
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn ranks_avx2(tree: &SearchTree, queries: &[u32], out: &mut [u32]) {
    // SAFETY: this code is compiled for both features, and the caller found them.
    unsafe { any_shape::<Avx2>(tree, queries, out) }
}

/// # Safety
/// The contract of [`Compare`].
#[inline(always)]
unsafe fn any_shape<C: Compare>(tree: &SearchTree, queries: &[u32], out: &mut [u32]) {
    macro_rules! shapes {
        ($($levels:literal)*) => {
            match (tree.shape.levels, tree.shape.narrow) {
                $(
                    // SAFETY: by this function's contract.
                    ($levels, false) => unsafe { Stages::<C, $levels, false>::new(tree).run(queries, out) },
                    // SAFETY: the same.
                    ($levels, true) => unsafe { Stages::<C, $levels, true>::new(tree).run(queries, out) },
                )*
                _ => unreachable!("trees have 1 to 8 levels"),
            }
        };
    }
    shapes!(1 2 3 4 5 6 7 8);
}

/// A tree as the search sees it.
///
/// Why reads stay inside: a table has a line for each prefix. The number in it is that of a node of the upper
/// level, and a count adds one for each separator below the query. Slots without a separator hold the greatest
/// key, which is below none, and there is a separator for each child but the last: so each number that is
/// made this way is that of a node of its level. A tree is not written to after it is built.
struct Stages<C, const LEVELS: usize, const NARROW: bool> {
    table: *const u8,
    levels: [*const u8; LEVELS],
    bits: u32,
    compare: std::marker::PhantomData<C>,
}

impl<C: Compare, const LEVELS: usize, const NARROW: bool> Stages<C, LEVELS, NARROW> {
    #[inline(always)]
    fn new(tree: &SearchTree) -> Self {
        let lines = tree.lines();
        Self {
            table: lines.as_ptr().cast(),
            levels: std::array::from_fn(|level| lines[tree.firsts[level]..].as_ptr().cast()),
            bits: tree.shape.bits,
            compare: std::marker::PhantomData,
        }
    }

    #[inline(always)]
    fn table_line(&self, key: u32) -> *const u8 {
        self.table.wrapping_add(prefix(key, self.bits) * LINE_BYTES)
    }

    #[inline(always)]
    fn node(&self, level: usize, number: u32) -> *const u8 {
        self.levels[level].wrapping_add(number as usize * HALF_BYTES)
    }

    /// One stage of one query: 0 asks for the line of the table, 1 compares in it, the others compare in a level.
    /// `at` holds the number of the node to compare in next, for each level. The last stage returns the rank.
    ///
    /// # Safety
    /// The contract of [`Compare`], and stages of a query in order.
    #[inline(always)]
    unsafe fn stage(&self, stage: usize, key: u32, at: &mut [[u32; GROUP]; LEVELS], slot: usize) -> u32 {
        if stage == 0 {
            prefetch(self.table_line(key));
            return 0;
        }
        let next = if stage == 1 {
            // SAFETY: inside the tree, see the type; aligned, since all lines are.
            let line = unsafe { &*self.table_line(key).cast::<Line>() };
            // SAFETY: by contract.
            let count = unsafe {
                if NARROW {
                    (C::below_narrow(line, key) & SEPARATORS).count_ones() * 2
                } else {
                    (C::below(line, key) & SEPARATORS).count_ones()
                }
            };
            line[NODE - 1] + count
        } else {
            let number = at[stage - 2][slot];
            // SAFETY: inside the tree, see the type; aligned, since all lines are.
            let line = unsafe { &*self.node(stage - 2, number).cast::<Line>() };
            // SAFETY: by contract.
            let count = unsafe { C::below(line, key) }.count_ones();
            if stage == LEVELS + 1 {
                return number * (NODE as u32 / 2) + count / 2;
            }
            number * FANOUT as u32 + count
        };
        let level = (stage - 1).min(LEVELS - 1);
        prefetch(self.node(level, next));
        at[level][slot] = next;
        0
    }

    /// # Safety
    /// The contract of [`Compare`].
    #[inline(always)]
    unsafe fn run(&self, queries: &[u32], out: &mut [u32]) {
        let (groups, rest) = queries.as_chunks::<GROUP>();
        let (outs, rest_out) = out.as_chunks_mut::<GROUP>();
        let mut at = [[0u32; GROUP]; LEVELS];
        let last = LEVELS + 1;
        // While the first groups come in and the last ones leave, some stages are empty.
        for turn in 0..groups.len() + last {
            if turn >= last && turn < groups.len() {
                let window = &groups[turn - last..=turn];
                let out = &mut outs[turn - last];
                for slot in 0..GROUP {
                    // Later stages first: each takes what the one before it left a turn ago.
                    for stage in (0..=last).rev() {
                        // SAFETY: by contract; the group in `stage` was in the stage before a turn ago.
                        let rank = unsafe { self.stage(stage, window[last - stage][slot], &mut at, slot) };
                        if stage == last {
                            out[slot] = rank;
                        }
                    }
                }
                continue;
            }
            for stage in (0..=last).rev() {
                let Some(group) = turn.checked_sub(stage).filter(|&group| group < groups.len()) else {
                    continue;
                };
                for slot in 0..GROUP {
                    // SAFETY: as above.
                    let rank = unsafe { self.stage(stage, groups[group][slot], &mut at, slot) };
                    if stage == last {
                        outs[group][slot] = rank;
                    }
                }
            }
        }
        for stage in 0..=last {
            for (slot, (&key, out)) in rest.iter().zip(&mut *rest_out).enumerate() {
                // SAFETY: by contract; stages in order.
                *out = unsafe { self.stage(stage, key, &mut at, slot) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[u32], shape: Shape) {
        let tree = SearchTree::with_shape(keys, shape).expect("a tree");
        let mut queries = vec![0, 1, u32::MAX / 2, u32::MAX / 2 + 1, u32::MAX - 1, u32::MAX];
        for &key in keys {
            queries.extend([key, key.saturating_sub(1), key.saturating_add(1)]);
        }
        // In no order, and of a length that leaves a rest.
        queries.sort_by_key(|query| query.wrapping_mul(0x9E37_79B9));
        queries.truncate(5 * GROUP * (LEVELS_MAX + 2) + 7);
        let expected: Vec<u32> =
            queries.iter().map(|&query| keys.partition_point(|&key| key < query) as u32).collect();
        let mut found = vec![7; queries.len()];
        tree.ranks(&queries, &mut found);
        assert_eq!(found, expected, "{} keys, {shape:?}", keys.len());
        found.fill(7);
        // SAFETY: plain loops need no feature.
        unsafe { any_shape::<Plain>(&tree, &queries, &mut found) };
        assert_eq!(found, expected, "{} keys, {shape:?}, portable", keys.len());
    }

    fn check_shapes(keys: &[u32]) {
        check(keys, Shape::of(keys));
        let levels = (1..).find(|&levels| keys.len() <= 16 * span(levels - 1)).expect("enough levels");
        for extra in 0..2 {
            check(keys, Shape { bits: 0, levels: levels + extra, narrow: false });
            check(keys, Shape { bits: 3, levels: levels + extra, narrow: false });
            check(keys, Shape { bits: 17, levels: levels + extra, narrow: true });
        }
    }

    #[test]
    fn ranks_are_lower_bounds_at_the_edges_of_nodes() {
        let edges = [16, 16 * 17, 16 * 17 * 17];
        let sizes = edges.into_iter().flat_map(|edge| [edge - 1, edge, edge + 1]);
        for size in sizes.chain([0, 1, 2, 100, 2000]) {
            let mut uniform: Vec<u32> = (1..=size).map(|i: u32| i.wrapping_mul(0x9E37_79B1)).collect();
            uniform.sort_unstable();
            check_shapes(&uniform);
            check_shapes(&(0..size).collect::<Vec<u32>>());
            check_shapes(&(0..size).map(|i| u32::MAX - (size - 1 - i)).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn duplicates_and_extremes_are_found() {
        for key in [0, 1, 1 << 31, u32::MAX] {
            for size in [1, 16, 17, 5000] {
                check_shapes(&vec![key; size]);
            }
        }
        let mut runs: Vec<u32> = (0..6000).map(|i: u32| (i / 40).wrapping_mul(0x9E37_79B1)).collect();
        runs.extend([0, 0, u32::MAX, u32::MAX]);
        runs.sort_unstable();
        check_shapes(&runs);
    }

    #[test]
    fn larger_tables_are_narrow_and_skewed_keys_get_levels() {
        let mut keys: Vec<u32> = (1..=1 << 21).map(|i: u32| i.wrapping_mul(0x9E37_79B1)).collect();
        keys.sort_unstable();
        assert_eq!(Shape::of(&keys).levels, 1);
        check(&keys, Shape::of(&keys));
        check(&keys, Shape { bits: 17, levels: 1, narrow: true });
        let skewed: Vec<u32> = (0..1 << 18).collect();
        assert!(Shape::of(&skewed).levels > 1);
        check(&skewed, Shape::of(&skewed));
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        let keys: Vec<u32> = (0..1000).collect();
        assert!(SearchTree::new(&[2, 1]).is_err());
        assert!(SearchTree::with_shape(&keys, Shape { bits: 0, levels: 1, narrow: false }).is_err());
        assert!(SearchTree::with_shape(&keys, Shape { bits: 3, levels: 2, narrow: true }).is_err());
        assert!(SearchTree::with_shape(&keys, Shape { bits: 25, levels: 2, narrow: false }).is_err());
        assert!(SearchTree::with_shape(&keys, Shape { bits: 0, levels: 9, narrow: false }).is_err());
    }
}
