//! The contiguous B+tree of the paper on search on an APU (Daga and Nutter): its shape, a builder, a search.
//!
//! It is an array of node metadata, level by level from the root, then an array of keys, then the values,
//! which are the sorted column. Metadata is as in the paper: number of keys, index of the first key, index of
//! the first child or value, a leaf flag.
//!
//! A node of order m has at most m children and m - 1 keys. Its keys have slots of their own, a multiple of
//! four, so that with order 16 and 4-byte keys they are one aligned line of 64 bytes, as the paper intends;
//! unused slots are all ones.
//!
//! The tree is bulk-loaded: every node of a level is full but the last. If that one would be less than half
//! full, it and the one before share their items evenly, so each node but the root is at least half full. A
//! separator is the last key of the child left of it: the child after all separators below a query has the
//! query's lower bound, however many keys are equal.
//!
//! This builder and search are the reference for those in `kernels/btree.cu`; the builders make the same
//! bytes.

pub use pleach_format::btree::{BtreeLevel as Level, LEVELS_MAX, Node, ORDER_MIN, Shape};
pub use pleach_format::btree::{SHAPE_ORDER_MAX as ORDER_MAX, TUPLES_MAX};
use pleach_format::key::Word;

/// Place of a query's lower bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Number of keys below the query.
    pub rank: u64,
    /// True if the key there equals the query.
    pub found: bool,
}

/// A tree; its values are the sorted column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree<W> {
    /// Layout of the tree.
    pub shape: Shape,
    /// Metadata of all nodes.
    pub nodes: Vec<Node>,
    /// Key slots of all nodes.
    pub keys: Vec<W>,
}

impl<W: Word> Tree<W> {
    /// Builds a tree of ascending keys, which may be equal; `None` as for [`Shape::new`]. O(keys).
    #[must_use]
    pub fn new(column: &[W], order: u32) -> Option<Self> {
        let shape = Shape::new(order, column.len() as u64)?;
        let slots = shape.slots_of_node() as usize;
        let mut nodes = vec![Node::default(); shape.nodes() as usize];
        let mut keys = vec![W::MAX; shape.slots() as usize];
        // From the leaves up: the level above takes its separators from the last keys of a level's nodes.
        let mut below: Vec<W> = column.to_vec();
        for (depth, level) in shape.levels().iter().enumerate().rev() {
            let is_leaf = depth + 1 == shape.levels().len();
            let first_child = if is_leaf { 0 } else { level.first_node + level.nodes };
            let mut lasts = Vec::with_capacity(level.nodes as usize);
            for node in 0..level.nodes {
                let items = shape.items(depth, node);
                let those = &below[items.start as usize..items.end as usize];
                lasts.extend(those.last());
                let separators = if is_leaf { those } else { &those[..those.len() - 1] };
                let number = (level.first_node + node) as usize;
                let count = separators.len() as u32;
                keys[number * slots..][..separators.len()].copy_from_slice(separators);
                nodes[number] = Node::new(count, (number * slots) as u64, first_child + items.start, is_leaf);
            }
            below = lasts;
        }
        Some(Self { shape, nodes, keys })
    }

    /// Returns the lower bound of a query. For any metadata, nothing outside is read, and no more nodes than
    /// levels.
    #[must_use]
    pub fn search(&self, query: W) -> Place {
        let slots = self.shape.slots_of_node();
        let mut at = 0;
        for left in (1..=self.shape.levels().len()).rev() {
            let node = self.nodes[at as usize];
            let first_key = node.first_key().min(self.shape.slots() - slots) & !3;
            let count = node.count().min(self.shape.order() - 1);
            let keys = &self.keys[first_key as usize..][..count as usize];
            let below = keys.partition_point(|key| *key < query);
            let next = node.first() + below as u64;
            if node.is_leaf() || left == 1 {
                let found = next < self.shape.tuples() && keys.get(below) == Some(&query);
                return Place { rank: next.min(self.shape.tuples()), found };
            }
            at = next.min(self.shape.nodes() - 1);
        }
        Place::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: [u32; 12] = [4, 5, 7, 8, 16, 17, 32, 33, 64, 128, 1024, 1025];
    const COUNTS: [u64; 20] = [0, 1, 2, 3, 4, 5, 7, 8, 14, 15, 16, 17, 31, 33, 225, 240, 241, 255, 257, 4097];

    /// Returns pseudorandom numbers from a seed.
    fn scrambled(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed;
        move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ mixed >> 31
        }
    }

    /// Columns of one length: spread, dense, with runs, of one key, with both ends of the range.
    fn columns<W: Word>(count: u64) -> Vec<Vec<W>> {
        let mut next = scrambled(count);
        let n = count as usize;
        let mut wide = || W::from_u128(u128::from(next()) << 64 | u128::from(next()));
        let mut spread: Vec<W> = (0..n).map(|_| wide()).collect();
        let dense: Vec<W> = (0..count).map(|i| W::from_u64(2 * i + 5)).collect();
        let mut runs: Vec<W> = (0..n).map(|i| W::from_u64((i / 37) as u64 * 3)).collect();
        let mut ends = spread.clone();
        for (i, key) in ends.iter_mut().enumerate() {
            *key = if i % 3 == 0 { W::MAX } else { W::from_u64(u64::from(i % 3 == 1) * 7) };
        }
        for column in [&mut spread, &mut runs, &mut ends] {
            column.sort_unstable();
        }
        vec![spread, dense, runs, ends, vec![W::MAX; n], vec![W::from_u64(0); n]]
    }

    /// Returns every key, its neighbors, both ends and some more.
    fn queries<W: Word>(column: &[W]) -> Vec<W> {
        let mut next = scrambled(3);
        let mut all = vec![W::from_u64(0), W::from_u64(1), W::MAX];
        for &key in column {
            let wide = key.to_u128();
            all.extend([wide.wrapping_sub(1), wide, wide.wrapping_add(1)].map(W::from_u128));
        }
        all.extend((0..100).map(|_| W::from_u128(u128::from(next()) << 64 | u128::from(next()))));
        all
    }

    fn agrees<W: Word>() {
        for count in COUNTS {
            for column in columns::<W>(count) {
                for order in ORDERS {
                    let tree = Tree::new(&column, order).unwrap();
                    for query in queries(&column) {
                        let rank = column.partition_point(|key| *key < query);
                        let place = Place { rank: rank as u64, found: column.get(rank) == Some(&query) };
                        assert_eq!(tree.search(query), place, "{count} tuples, order {order}, {query:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn lower_bounds_are_exact() {
        agrees::<u32>();
        agrees::<u64>();
        agrees::<u128>();
    }

    #[test]
    fn trees_are_b_plus_trees() {
        for order in ORDERS {
            for count in COUNTS.into_iter().chain([100_000]) {
                let column: Vec<u32> = (0..count as u32).collect();
                let tree = Tree::new(&column, order).unwrap();
                assert_eq!(tree.nodes.len() as u64, tree.shape.nodes());
                assert!(tree.shape.levels().len() <= LEVELS_MAX);
                let (mut child, mut rank) = (1, 0);
                for (number, node) in tree.nodes.iter().enumerate() {
                    let is_last_level =
                        tree.shape.levels().last().is_some_and(|leaves| number as u64 >= leaves.first_node);
                    assert_eq!(node.is_leaf(), is_last_level);
                    assert_eq!(node.first_key(), number as u64 * tree.shape.slots_of_node());
                    assert!(node.count() < order);
                    let slots =
                        &tree.keys[node.first_key() as usize..][..tree.shape.slots_of_node() as usize];
                    assert!(slots[node.count() as usize..].iter().all(|&key| key == u32::MAX));
                    if node.is_leaf() {
                        assert!(number == 0 || node.count() >= order / 2, "order {order}, {count} tuples");
                        assert_eq!(node.first(), rank);
                        rank += u64::from(node.count());
                    } else {
                        let least = if number == 0 { 2 } else { order.div_ceil(2) };
                        assert!(node.count() + 1 >= least, "order {order}, {count} tuples");
                        assert_eq!(node.first(), child);
                        child += u64::from(node.count()) + 1;
                    }
                }
                assert_eq!(rank, count);
                assert_eq!(child, tree.shape.nodes().max(1));
            }
        }
    }

    #[test]
    fn shapes_of_many_tuples_fit_their_numbers() {
        for order in ORDERS {
            for tuples in [(1 << 32) - 1, 1 << 32, (1 << 32) + (1 << 20), TUPLES_MAX] {
                let shape = Shape::new(order, tuples).unwrap();
                assert!(shape.levels().len() <= LEVELS_MAX && shape.slots() <= 1 << 48);
                for (depth, level) in shape.levels().iter().enumerate() {
                    let items = shape.items(depth, level.nodes - 1);
                    assert_eq!((items.end, items.end - items.start), (level.items, level.last));
                    assert!(level.nodes == 1 || shape.items(depth, level.nodes - 2).end == items.start);
                }
            }
            assert_eq!(Shape::new(order, TUPLES_MAX + 1), None);
        }
        assert_eq!(Shape::new(ORDER_MIN, TUPLES_MAX).unwrap().levels().len(), LEVELS_MAX);
        assert_eq!((Shape::new(3, 9), Shape::new(ORDER_MAX + 1, 9)), (None, None));
    }

    #[test]
    fn forged_metadata_reads_nothing_outside() {
        let mut next = scrambled(8);
        let column: Vec<u64> = (0..1000).collect();
        for order in ORDERS {
            let mut tree = Tree::new(&column, order).unwrap();
            for _ in 0..200 {
                for node in &mut tree.nodes {
                    let mut bytes = [0; Node::BYTES];
                    bytes[..8].copy_from_slice(&next().to_le_bytes());
                    bytes[8..].copy_from_slice(&next().to_le_bytes());
                    *node = Node::from_bytes(bytes);
                }
                for query in [0, 500, u64::MAX] {
                    assert!(tree.search(query).rank <= 1000);
                }
            }
        }
    }
}
