//! Structures in memory that the demo compares with: a hash map, a B-tree map, sorted arrays.

use super::orders::Order;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// A structure that holds the orders of one business.
pub enum Table {
    /// Hash map with a fast hash function and room for all orders.
    Hash(HashMap<u64, u32>),
    /// B-tree map of the standard library.
    BTree(BTreeMap<u64, u32>),
    /// Sorted ids, searched by the binary search of the standard library; customers beside them.
    Sorted(Vec<u64>, Vec<u32>),
}

/// Builds a table from orders sorted by their ids.
pub type Build = fn(&[Order]) -> Table;

impl Table {
    /// The structures, with their names.
    pub const ALL: [(&'static str, Build); 3] =
        [("hash map", Self::hash), ("B-tree map", Self::b_tree), ("binary search", Self::sorted)];

    fn hash(orders: &[Order]) -> Self {
        let mut map = HashMap::with_capacity(orders.len());
        map.extend(orders.iter().copied());
        Self::Hash(map)
    }

    fn b_tree(orders: &[Order]) -> Self {
        Self::BTree(orders.iter().copied().collect())
    }

    fn sorted(orders: &[Order]) -> Self {
        let (ids, customers) = orders.iter().copied().unzip();
        Self::Sorted(ids, customers)
    }

    /// Looks `ids` up: `values[i]` becomes the customer of `ids[i]`, or 0, and bit `i % 64` of `present[i / 64]`
    /// whether there is one. Returns how many were found.
    pub fn get_batch(&self, ids: &[u64], values: &mut [u32], present: &mut [u64]) -> usize {
        match self {
            Self::Hash(map) => each(ids, values, present, |id| map.get(&id).copied()),
            Self::BTree(map) => each(ids, values, present, |id| map.get(&id).copied()),
            Self::Sorted(sorted, customers) => {
                each(ids, values, present, |id| sorted.binary_search(&id).ok().map(|rank| customers[rank]))
            }
        }
    }

    /// Returns the bytes of the table in memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Hash(map) => map.allocation_size() as u64,
            Self::BTree(map) => b_tree_bytes(map.len() as u64),
            Self::Sorted(sorted, _) => sorted.len() as u64 * (size_of::<u64>() + size_of::<u32>()) as u64,
        }
    }
}

/// Computes the bytes of a `BTreeMap`, which does not report them. When it is built from sorted orders every
/// node has 11 of them, so there are 12 per leaf and slot of an inner node. A leaf has its orders, a pointer and
/// two counts, an inner node 12 pointers in addition; the allocator adds 8 bytes and rounds up to 16.
fn b_tree_bytes(orders: u64) -> u64 {
    let allocated = |bytes: u64| (bytes + 8).next_multiple_of(16);
    let leaf = (11 * (size_of::<u64>() + size_of::<u32>()) as u64 + 12).next_multiple_of(8);
    let (mut bytes, mut nodes, mut node) = (0, orders.div_ceil(12), leaf);
    loop {
        bytes += nodes * allocated(node);
        if nodes <= 1 {
            return bytes;
        }
        (nodes, node) = (nodes.div_ceil(12), leaf + 12 * 8);
    }
}

/// Answers one id after the other, as the interfaces of these structures want it.
#[inline(always)]
fn each(ids: &[u64], values: &mut [u32], present: &mut [u64], get: impl Fn(u64) -> Option<u32>) -> usize {
    let mut found = 0;
    for ((ids, values), word) in ids.chunks(64).zip(values.chunks_mut(64)).zip(present) {
        let mut bits = 0u64;
        for (place, (value, &id)) in values.iter_mut().zip(ids).enumerate() {
            let answer = get(id);
            bits |= u64::from(answer.is_some()) << place;
            *value = answer.unwrap_or_default();
        }
        found += bits.count_ones() as usize;
        *word = bits;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_answers_present_and_absent_ids() {
        for orders in [1, 63, 700] {
            let sorted: Vec<Order> = (0..orders).map(|i| (u64::from(i) * 3 + 1, i * 7)).collect();
            let ids: Vec<u64> = (0..u64::from(orders) * 3 + 5).collect();
            for (name, build) in Table::ALL {
                let table = build(&sorted);
                assert!(table.bytes() >= u64::from(orders), "{name}");
                let mut values = vec![7; ids.len()];
                let mut present = vec![u64::MAX; ids.len().div_ceil(64)];
                let found = table.get_batch(&ids, &mut values, &mut present);
                assert_eq!(found, sorted.len(), "{name}");
                for (i, &id) in ids.iter().enumerate() {
                    let expected = sorted.iter().find(|order| order.0 == id).map(|order| order.1);
                    assert_eq!(present[i / 64] >> (i % 64) & 1 == 1, expected.is_some(), "{name} {i}");
                    assert_eq!(values[i], expected.unwrap_or_default(), "{name} {i}");
                }
                if !ids.len().is_multiple_of(64) {
                    assert_eq!(
                        present[ids.len() / 64] >> (ids.len() % 64),
                        0,
                        "{name}: bits past the end are 0"
                    );
                }
            }
        }
    }
}
