//! A hash table that knows the keys of a batch before it reads: lines of slots, and the next line where one is full.
//!
//! A line of 64 bytes has the keys and values of 4 or 8 tuples, so that a key mostly costs one line of memory, and
//! its slots are compared without a branch for each. The line of a key is the upper part of its mixed bits, scaled
//! to the number of lines: any number of them will do, so the load is the same for all tables. A batch mixes each
//! key and prefetches its line [`AHEAD`] keys before it compares. Free slots have a key that the table does not
//! have. The lines are on huge pages, as mapped files are.

use crate::prefetch::prefetch;
use crate::{Built, Number, Peer, PeerError, Reader, timed};
use memmap2::MmapMut;
use std::hint::select_unpredictable;
use std::marker::PhantomData;

/// Keys between the prefetch of a line and its compare.
const AHEAD: usize = 32;
/// Slots for each ten tuples: a load of 0.5.
const SLOTS_FOR_TEN: usize = 20;

/// A line of slots.
#[derive(Clone, Copy)]
#[repr(C)]
struct Line<K, V, const SLOTS: usize> {
    keys: [K; SLOTS],
    values: [V; SLOTS],
}

struct Probing<K, V, const SLOTS: usize> {
    map: MmapMut,
    /// The key of free slots.
    free: K,
    values: PhantomData<V>,
}

/// A bijection of all numbers without visible structure: the finaliser of splitmix64.
#[inline(always)]
fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Returns the line of a key.
#[inline(always)]
fn line_of<K: Number>(key: K, lines: usize) -> usize {
    ((u128::from(mixed(key.widen())) * lines as u128) >> 64) as usize
}

/// The lines, and the key of free slots.
#[derive(Clone, Copy)]
struct Lines<'a, K, V, const SLOTS: usize> {
    lines: &'a [Line<K, V, SLOTS>],
    free: K,
}

impl<K: Number, V: Number, const SLOTS: usize> Lines<'_, K, V, SLOTS> {
    /// Returns the value of a key and whether it is there, or else 0; `at` is its line.
    #[inline(always)]
    fn get(&self, mut at: usize, key: K) -> (V, bool) {
        loop {
            let line = &self.lines[at];
            // One number, so that no compiler makes two branches of it: 16 bits for equal slots, 16 for free ones.
            let mut bits = 0u32;
            for (slot, &other) in line.keys.iter().enumerate() {
                bits |= (u32::from(other == key) | u32::from(other == self.free) << 16) << slot;
            }
            if bits != 0 {
                let found = bits & !(bits >> 16) & 0xFFFF != 0;
                let value = line.values[(bits | 1 << (SLOTS - 1)).trailing_zeros() as usize];
                return (select_unpredictable(found, value, V::default()), found);
            }
            at = if at + 1 == self.lines.len() { 0 } else { at + 1 };
        }
    }
}

impl<K: Number, V: Number, const SLOTS: usize> Probing<K, V, SLOTS> {
    fn new(tuples: &[(K, V)]) -> std::io::Result<Self> {
        let count = (tuples.len() * SLOTS_FOR_TEN).div_ceil(10 * SLOTS).max(tuples.len() / SLOTS + 1);
        // The least key that is not there: keys ascend.
        let free = tuples.iter().zip(0u64..).find(|(tuple, number)| tuple.0.widen() != *number);
        let free = K::narrow(free.map_or(tuples.len() as u64, |(_, number)| number));
        let mut map = MmapMut::map_anon(count * size_of::<Line<K, V, SLOTS>>())?;
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        // SAFETY: any bytes are numbers, and the map begins on a page.
        let (_, lines, _) = unsafe { map.align_to_mut::<Line<K, V, SLOTS>>() };
        lines.fill(Line { keys: [free; SLOTS], values: [V::default(); SLOTS] });
        for &(key, value) in tuples {
            let mut at = line_of(key, lines.len());
            let slot = loop {
                match lines[at].keys.iter().position(|&other| other == free) {
                    Some(slot) => break slot,
                    None => at = if at + 1 == lines.len() { 0 } else { at + 1 },
                }
            };
            (lines[at].keys[slot], lines[at].values[slot]) = (key, value);
        }
        Ok(Self { map, free, values: PhantomData })
    }

    fn lines(&self) -> Lines<'_, K, V, SLOTS> {
        // SAFETY: any bytes are numbers, and the map begins on a page.
        let (_, lines, _) = unsafe { self.map.align_to::<Line<K, V, SLOTS>>() };
        Lines { lines, free: self.free }
    }
}

impl<K: Number, V: Number, const SLOTS: usize> Peer<K, V> for Probing<K, V, SLOTS> {
    fn bytes(&self) -> u64 {
        self.map.len() as u64
    }
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError> {
        Ok(Box::new(self.lines()))
    }
}

impl<K: Number, V: Number, const SLOTS: usize> Reader<K, V> for Lines<'_, K, V, SLOTS> {
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError> {
        assert_eq!(keys.len(), values.len(), "a value for each key");
        assert_eq!(keys.len().div_ceil(64), present.len(), "a presence bit for each key");
        let mut ring = [0; AHEAD];
        let ask = |key: K| {
            let at = line_of(key, self.lines.len());
            prefetch(self.lines.as_ptr().wrapping_add(at));
            at
        };
        for (at, &key) in ring.iter_mut().zip(keys) {
            *at = ask(key);
        }
        let mut found = 0;
        for (word, bits) in present.iter_mut().enumerate() {
            let first = word * 64;
            let mut there = 0;
            for (slot, at) in (first..keys.len().min(first + 64)).enumerate() {
                let start = ring[at % AHEAD];
                if let Some(&next) = keys.get(at + AHEAD) {
                    ring[at % AHEAD] = ask(next);
                }
                let is_there;
                (values[at], is_there) = self.get(start, keys[at]);
                there |= u64::from(is_there) << slot;
            }
            found += there.count_ones() as usize;
            *bits = there;
        }
        Ok(found)
    }
}

/// Builds the table from tuples with ascending, distinct keys.
pub(crate) fn build<K: Number, V: Number>(tuples: &[(K, V)]) -> Result<Built<K, V>, PeerError> {
    if size_of::<(K, V)>() <= 8 { lines_of::<K, V, 8>(tuples) } else { lines_of::<K, V, 4>(tuples) }
}

fn lines_of<K: Number, V: Number, const SLOTS: usize>(tuples: &[(K, V)]) -> Result<Built<K, V>, PeerError> {
    let (table, build) = timed(|| Probing::<K, V, SLOTS>::new(tuples));
    let failed = |cause: std::io::Error| PeerError {
        engine: "prefetching-hash",
        operation: "build",
        cause: cause.into(),
    };
    Ok(Built { peer: Box::new(table.map_err(failed)?), build, open: None })
}
