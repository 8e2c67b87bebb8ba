//! Byte-string keys in memory: a hash map, a B-tree, sorted arrays.
//!
//! Arrays in the map itself beat slices of the caller's bytes at every length that was tried: 98 against
//! 157 ns with 15 bytes, 293 against 339 ns with 128 (hash map, 2^22 keys, one thread), though the empty
//! slots of long ones take more memory.

use super::{BuiltTexts, TextPeer, TextReader, by_width};
use crate::memory::btree_map_bytes;
use crate::{Keys, PeerError, View, answer_each, timed};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

/// A table that `get` searches without any state of its own.
trait Table: Send + Sync {
    fn get(&self, key: &[u8]) -> Option<u32>;
    fn bytes(&self) -> u64;
}

struct InMemory<T>(T);

impl<T: Table> TextPeer for InMemory<T> {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn reader(&self) -> Result<Box<dyn TextReader + '_>, PeerError> {
        Ok(Box::new(TableReader(&self.0)))
    }
}

struct TableReader<'a, T>(&'a T);

impl<T: Table> TextReader for TableReader<'_, T> {
    fn get_batch(
        &mut self,
        keys: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<usize, PeerError> {
        match answer_each(keys.iter(), values, present, |key| Ok::<_, Infallible>(self.0.get(key))) {
            Ok(found) => Ok(found),
        }
    }
}

fn built<'a, T: Table + 'a>((table, build): (T, Duration)) -> BuiltTexts<'a> {
    BuiltTexts { peer: Box::new(InMemory(table)), build, open: None }
}

/// The keys as arrays; all of them have this length.
fn arrays<const N: usize>(keys: &Keys) -> impl ExactSizeIterator<Item = [u8; N]> + '_ {
    keys.data().as_chunks::<N>().0.iter().copied()
}

impl<const N: usize> Table for HashMap<[u8; N], u32> {
    #[inline(always)]
    fn get(&self, key: &[u8]) -> Option<u32> {
        self.get(<&[u8; N]>::try_from(key).ok()?).copied()
    }
    fn bytes(&self) -> u64 {
        self.allocation_size() as u64
    }
}

/// Keys of different lengths: slices of the caller's list.
struct Hashed<'a> {
    map: HashMap<&'a [u8], u32>,
    key_bytes: usize,
}

impl Table for Hashed<'_> {
    #[inline(always)]
    fn get(&self, key: &[u8]) -> Option<u32> {
        self.map.get(key).copied()
    }
    fn bytes(&self) -> u64 {
        (self.map.allocation_size() + self.key_bytes) as u64
    }
}

fn hashbrown_fixed<const N: usize>(keys: &Keys, values: &[u32]) -> BuiltTexts<'static> {
    built(timed(|| {
        let mut map: HashMap<[u8; N], u32> = HashMap::with_capacity(values.len());
        map.extend(arrays::<N>(keys).zip(values.iter().copied()));
        map
    }))
}

pub(crate) fn hashbrown<'a>(keys: &'a Keys, values: &[u32]) -> BuiltTexts<'a> {
    let any = || {
        built(timed(|| {
            let mut map = HashMap::with_capacity(values.len());
            map.extend(keys.iter().zip(values.iter().copied()));
            Hashed { map, key_bytes: keys.data().len() }
        }))
    };
    by_width!(keys.width(), hashbrown_fixed(keys, values), any())
}

impl<const N: usize> Table for BTreeMap<[u8; N], u32> {
    #[inline(always)]
    fn get(&self, key: &[u8]) -> Option<u32> {
        self.get(<&[u8; N]>::try_from(key).ok()?).copied()
    }
    fn bytes(&self) -> u64 {
        btree_map_bytes(self.len(), N, 4)
    }
}

/// Keys of different lengths: slices of the caller's list.
struct Tree<'a> {
    map: BTreeMap<&'a [u8], u32>,
    key_bytes: usize,
}

impl Table for Tree<'_> {
    #[inline(always)]
    fn get(&self, key: &[u8]) -> Option<u32> {
        self.map.get(key).copied()
    }
    fn bytes(&self) -> u64 {
        btree_map_bytes(self.map.len(), size_of::<&[u8]>(), 4) + self.key_bytes as u64
    }
}

fn btree_map_fixed<const N: usize>(keys: &Keys, values: &[u32]) -> BuiltTexts<'static> {
    built(timed(|| arrays::<N>(keys).zip(values.iter().copied()).collect::<BTreeMap<[u8; N], u32>>()))
}

pub(crate) fn btree_map<'a>(keys: &'a Keys, values: &[u32]) -> BuiltTexts<'a> {
    let any = || {
        built(timed(|| Tree {
            map: keys.iter().zip(values.iter().copied()).collect(),
            key_bytes: keys.data().len(),
        }))
    };
    by_width!(keys.width(), btree_map_fixed(keys, values), any())
}

struct Sorted<const N: usize> {
    keys: Vec<[u8; N]>,
    values: Vec<u32>,
}

impl<const N: usize> Table for Sorted<N> {
    #[inline(always)]
    fn get(&self, key: &[u8]) -> Option<u32> {
        let key = <&[u8; N]>::try_from(key).ok()?;
        self.keys.binary_search(key).ok().map(|rank| self.values[rank])
    }
    fn bytes(&self) -> u64 {
        (self.keys.len() * (N + 4)) as u64
    }
}

/// Keys of different lengths: the caller's bytes, with offsets of 32 bits if they suffice.
struct SortedOffsets<'a, O> {
    data: &'a [u8],
    offsets: Vec<O>,
    values: Vec<u32>,
}

impl<O: Copy + TryInto<usize> + Send + Sync> SortedOffsets<'_, O> {
    #[inline(always)]
    fn key(&self, rank: usize) -> &[u8] {
        let at = |i: usize| self.offsets[i].try_into().unwrap_or(usize::MAX);
        &self.data[at(rank)..at(rank + 1)]
    }
}

impl<O: Copy + TryInto<usize> + Send + Sync> Table for SortedOffsets<'_, O> {
    /// The loop of `slice::binary_search`, over ranks.
    #[inline(always)]
    fn get(&self, key: &[u8]) -> Option<u32> {
        let (mut rank, mut size) = (0, self.values.len());
        while size > 1 {
            let half = size / 2;
            let middle = rank + half;
            rank = if self.key(middle) > key { rank } else { middle };
            size -= half;
        }
        (size == 1 && self.key(rank) == key).then(|| self.values[rank])
    }
    fn bytes(&self) -> u64 {
        (self.data.len() + size_of_val(&self.offsets[..]) + size_of_val(&self.values[..])) as u64
    }
}

fn binary_search_fixed<const N: usize>(keys: &Keys, values: &[u32]) -> BuiltTexts<'static> {
    built(timed(|| Sorted::<N> { keys: arrays(keys).collect(), values: values.to_vec() }))
}

pub(crate) fn binary_search<'a>(keys: &'a Keys, values: &[u32]) -> BuiltTexts<'a> {
    let data = keys.data();
    let any = || {
        if u32::try_from(data.len()).is_ok() {
            built(timed(|| SortedOffsets {
                data,
                offsets: keys.offsets().iter().map(|&offset| offset as u32).collect(),
                values: values.to_vec(),
            }))
        } else {
            built(timed(|| SortedOffsets { data, offsets: keys.offsets().to_vec(), values: values.to_vec() }))
        }
    };
    by_width!(keys.width(), binary_search_fixed(keys, values), any())
}
