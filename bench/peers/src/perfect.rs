//! A perfect hash function (`ptr_hash`, its fastest form) and the tuples in the order of its numbers.
//!
//! The function maps present keys to different numbers, and absent ones to any: the key of the tuple decides. Its
//! own stream prefetches what it reads; a ring behind it does so for the tuples.

use crate::prefetch::prefetch;
use crate::{Built, Number, Peer, PeerError, Reader, timed};
use ptr_hash::hash::StrongerIntHash;
use ptr_hash::{FastPtrHash, PtrHashParams};

/// Keys between the prefetch and the read, of the function and of the tuples.
const AHEAD: usize = 32;

struct Perfect<K, V> {
    function: FastPtrHash<StrongerIntHash>,
    tuples: Vec<(K, V)>,
}

impl<K: Number, V: Number> Perfect<K, V> {
    fn new(sorted: &[(K, V)]) -> Self {
        let keys: Vec<u64> = sorted.iter().map(|tuple| tuple.0.widen()).collect();
        let function = <FastPtrHash<StrongerIntHash>>::new(&keys, PtrHashParams::default());
        // A number that no key has keeps a tuple whose key has another number: no key finds it by mistake.
        let mut tuples = vec![sorted[0]; function.max_index().max(1)];
        for (&tuple, key) in sorted.iter().zip(&keys) {
            tuples[function.index(key)] = tuple;
        }
        Self { function, tuples }
    }
}

impl<K: Number, V: Number> Peer<K, V> for Perfect<K, V> {
    fn bytes(&self) -> u64 {
        let (pilots, remap) = self.function.bits_per_element();
        let function = (pilots + remap) * self.tuples.len() as f64 / 8.0;
        function as u64 + (self.tuples.len() * size_of::<(K, V)>()) as u64
    }
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError> {
        Ok(Box::new(self))
    }
}

impl<K: Number, V: Number> Reader<K, V> for &Perfect<K, V> {
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError> {
        assert_eq!(keys.len(), values.len(), "a value for each key");
        assert_eq!(keys.len().div_ceil(64), present.len(), "a presence bit for each key");
        let (tuples, mut ring) = (&self.tuples, [0; AHEAD]);
        let mut put = |at: usize, number: usize| {
            let (key, value) = tuples[number];
            let is_there = key == keys[at];
            values[at] = if is_there { value } else { V::default() };
            let bits = u64::from(is_there) << (at % 64);
            present[at / 64] = if at.is_multiple_of(64) { bits } else { present[at / 64] | bits };
        };
        // Its stream is fast only as a whole: no number can be asked for alone.
        let numbers = self.function.index_stream::<AHEAD, u64>(keys.iter().map(|key| key.widen()));
        numbers.enumerate().for_each(|(at, number)| {
            prefetch(tuples.as_ptr().wrapping_add(number));
            let before = std::mem::replace(&mut ring[at % AHEAD], number);
            if let Some(at) = at.checked_sub(AHEAD) {
                put(at, before);
            }
        });
        for at in keys.len().saturating_sub(AHEAD)..keys.len() {
            put(at, ring[at % AHEAD]);
        }
        Ok(present.iter().map(|bits| bits.count_ones() as usize).sum())
    }
}

/// Builds the function and the table from tuples with distinct keys, at least one.
pub(crate) fn build<K: Number, V: Number>(tuples: &[(K, V)]) -> Built<K, V> {
    let (table, build) = timed(|| Perfect::new(tuples));
    Built { peer: Box::new(table), build, open: None }
}
