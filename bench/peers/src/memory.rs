//! Tables that exist only in memory: a hash map, a B-tree, sorted arrays.

use crate::{Built, Number, Peer, PeerError, Reader, answer_each, timed};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

/// A table that `get` searches without any state of its own.
trait Table<K: Number, V: Number>: Send + Sync + 'static {
    fn get(&self, key: K) -> Option<V>;
    fn bytes(&self) -> u64;
}

struct InMemory<T>(T);

impl<K: Number, V: Number, T: Table<K, V>> Peer<K, V> for InMemory<T> {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError> {
        Ok(Box::new(TableReader(&self.0)))
    }
}

struct TableReader<'a, T>(&'a T);

impl<K: Number, V: Number, T: Table<K, V>> Reader<K, V> for TableReader<'_, T> {
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError> {
        let answer = |key| Ok::<_, Infallible>(self.0.get(key));
        match answer_each(keys.iter().copied(), values, present, answer) {
            Ok(found) => Ok(found),
        }
    }
}

fn built<K: Number, V: Number, T: Table<K, V>>((table, build): (T, Duration)) -> Built<K, V> {
    Built { peer: Box::new(InMemory(table)), build, open: None }
}

impl<K: Number, V: Number> Table<K, V> for HashMap<K, V> {
    #[inline(always)]
    fn get(&self, key: K) -> Option<V> {
        self.get(&key).copied()
    }
    fn bytes(&self) -> u64 {
        self.allocation_size() as u64
    }
}

pub(crate) fn hashbrown<K: Number, V: Number>(tuples: &[(K, V)]) -> Built<K, V> {
    built(timed(|| {
        let mut map = HashMap::with_capacity(tuples.len());
        map.extend(tuples.iter().copied());
        map
    }))
}

impl<K: Number, V: Number> Table<K, V> for BTreeMap<K, V> {
    #[inline(always)]
    fn get(&self, key: K) -> Option<V> {
        self.get(&key).copied()
    }

    fn bytes(&self) -> u64 {
        btree_map_bytes(self.len(), K::BYTES, V::BYTES)
    }
}

/// Bytes of a `BTreeMap`. Calculated, because the map does not tell: its bulk load fills every node with
/// 11 tuples, so that 12 tuples are in a leaf and one slot of an inner node. A leaf holds its tuples, a
/// pointer and two counts, an inner node 12 pointers more; the allocator adds 8 bytes and rounds to 16.
pub(crate) fn btree_map_bytes(tuples: usize, key_bytes: usize, value_bytes: usize) -> u64 {
    let allocated = |bytes: u64| (bytes + 8).next_multiple_of(16);
    let leaf = (11 * (key_bytes + value_bytes) as u64 + 12).next_multiple_of(8);
    let (mut bytes, mut nodes, mut node) = (0, (tuples as u64).div_ceil(12), leaf);
    loop {
        bytes += nodes * allocated(node);
        if nodes <= 1 {
            return bytes;
        }
        (nodes, node) = (nodes.div_ceil(12), leaf + 12 * 8);
    }
}

pub(crate) fn btree_map<K: Number, V: Number>(tuples: &[(K, V)]) -> Built<K, V> {
    built(timed(|| tuples.iter().copied().collect::<BTreeMap<K, V>>()))
}

struct Sorted<K, V> {
    keys: Vec<K>,
    values: Vec<V>,
}

impl<K: Number, V: Number> Table<K, V> for Sorted<K, V> {
    #[inline(always)]
    fn get(&self, key: K) -> Option<V> {
        self.keys.binary_search(&key).ok().map(|rank| self.values[rank])
    }
    fn bytes(&self) -> u64 {
        (self.keys.len() * (K::BYTES + V::BYTES)) as u64
    }
}

pub(crate) fn binary_search<K: Number, V: Number>(tuples: &[(K, V)]) -> Built<K, V> {
    built(timed(|| Sorted {
        keys: tuples.iter().map(|tuple| tuple.0).collect(),
        values: tuples.iter().map(|tuple| tuple.1).collect(),
    }))
}
