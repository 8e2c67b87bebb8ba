//! Other engines with one small interface, so that a benchmark asks all of them the same question: "here is
//! a batch of keys, write the values and the presence bits into my buffers".
//!
//! This is the only crate of the workspace that may depend on other engines, and it knows nothing of
//! Pleach. A [`Peer`] is a built, immutable table; a [`Reader`] is what one thread needs to search it
//! (a transaction, or nothing at all); [`TextPeer`] and [`TextReader`] are the same for byte strings.
//! Every engine is used the way its documentation recommends for bulk-loaded, read-only data: bulk load
//! from sorted tuples, no locks, no checks that can be left out.

mod keys;
mod memory;
#[cfg(feature = "stores")]
mod perfect;
mod prefetch;
mod probing;
mod ranked;
mod search_tree;
#[cfg(any(feature = "stores", feature = "rocksdb"))]
mod stores;
mod texts;
#[cfg(feature = "stores")]
mod updates;

pub use keys::{Keys, View};
pub use prefetch::prefetch;
pub use search_tree::{SearchTree, Shape};
pub use texts::{BuiltTexts, TextPeer, TextReader};
#[cfg(feature = "stores")]
pub use updates::{Applied, Updates};

use std::error::Error;
use std::fmt;
use std::hash::Hash;
use std::path::Path;
use std::time::{Duration, Instant};

/// Requirements of redb for a key; nothing without the feature `stores`.
#[cfg(feature = "stores")]
pub trait StoreKey: redb::Key + for<'a> redb::Value<SelfType<'a> = Self> + 'static {}
#[cfg(feature = "stores")]
impl<T: redb::Key + for<'a> redb::Value<SelfType<'a> = T> + 'static> StoreKey for T {}

/// Requirements of redb for a key; nothing without the feature `stores`.
#[cfg(not(feature = "stores"))]
pub trait StoreKey {}
#[cfg(not(feature = "stores"))]
impl<T> StoreKey for T {}

/// A key or value of the peers: `u32` or `u64`.
pub trait Number: Copy + Default + Ord + Hash + fmt::Debug + Send + Sync + StoreKey + 'static {
    /// Bytes of one.
    const BYTES: usize;
    /// Big-endian bytes, whose order is the numbers' order.
    type Bytes: AsRef<[u8]>;
    /// The number as big-endian bytes.
    fn to_big_endian(self) -> Self::Bytes;
    /// The number from its big-endian bytes; 0 if there are not exactly [`Number::BYTES`] of them.
    fn from_big_endian(bytes: &[u8]) -> Self;
    /// Widens without loss.
    fn widen(self) -> u64;
    /// Keeps the low bits.
    fn narrow(wide: u64) -> Self;
}

macro_rules! numbers {
    ($($t:ident $n:literal),*) => {$(
        impl Number for $t {
            const BYTES: usize = $n;
            type Bytes = [u8; $n];
            #[inline(always)]
            fn to_big_endian(self) -> [u8; $n] { self.to_be_bytes() }
            #[inline(always)]
            fn from_big_endian(bytes: &[u8]) -> Self { bytes.try_into().map_or(0, $t::from_be_bytes) }
            #[inline(always)]
            fn widen(self) -> u64 { u64::from(self) }
            #[inline(always)]
            fn narrow(wide: u64) -> Self { wide as $t }
        }
    )*};
}
numbers!(u32 4, u64 8);

/// Why an engine could not do what was asked.
#[derive(Debug)]
pub struct PeerError {
    /// Name of the engine.
    pub engine: &'static str,
    /// The operation that failed.
    pub operation: &'static str,
    /// The error of the engine.
    pub cause: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.engine, self.operation, self.cause)
    }
}

impl Error for PeerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

/// A built table that is only searched from now on.
pub trait Peer<K: Number, V: Number>: Sync {
    /// Bytes that it occupies in memory, or on the disk if it is a file.
    fn bytes(&self) -> u64;
    /// Makes the searcher of one thread. Not part of any timed section.
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError>;
}

/// One thread's access to a [`Peer`].
pub trait Reader<K, V>: Send {
    /// Looks `keys` up. `values[i]` becomes the value of `keys[i]`, or 0 if that key is absent; bit
    /// `i % 64` of `present[i / 64]` says which. Returns how many were found.
    ///
    /// `values` is as long as `keys`, `present` has a word for each 64 of them: anything else panics.
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError>;
}

/// A peer and what it cost.
pub struct Built<K: Number, V: Number> {
    /// The table.
    pub peer: Box<dyn Peer<K, V>>,
    /// From sorted tuples in memory to a finished table; files are synced.
    pub build: Duration,
    /// From a closed file (its pages in memory) to the first answer; `None` for tables in memory.
    pub open: Option<Duration>,
}

/// The engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `hashbrown::HashMap`, default hasher, room for all tuples reserved.
    Hashbrown,
    /// `std::collections::BTreeMap`.
    BTreeMap,
    /// `slice::binary_search` of the standard library: sorted keys, values beside them.
    BinarySearch,
    /// A hash table of our own: open addressing, a full mixer, and slots that are prefetched some keys ahead.
    Probing,
    /// `ptr_hash`: a perfect hash function, and tuples in the order of its numbers, both prefetched.
    PerfectHash,
    /// A [`SearchTree`] over keys of 4 bytes, and tuples at the ranks that it finds, prefetched.
    SearchTree,
    /// LMDB through heed: appended, opened again read-only without locks and without read-ahead.
    Lmdb,
    /// redb: one transaction, opened again read-only with a cache that holds all of it.
    Redb,
    /// An `fst::Map` in a mapped file.
    Fst,
    /// RocksDB: one ingested file of sorted keys with a Bloom filter, mapped.
    RocksDb,
}

impl Engine {
    /// The engines of this build: the stores only with the feature `stores`, RocksDB with `rocksdb`.
    pub const AVAILABLE: &'static [Self] = &[
        Self::Hashbrown,
        Self::BTreeMap,
        Self::BinarySearch,
        Self::Probing,
        #[cfg(feature = "stores")]
        Self::PerfectHash,
        Self::SearchTree,
        #[cfg(feature = "stores")]
        Self::Lmdb,
        #[cfg(feature = "stores")]
        Self::Redb,
        #[cfg(feature = "stores")]
        Self::Fst,
        #[cfg(feature = "rocksdb")]
        Self::RocksDb,
    ];

    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hashbrown => "hashbrown",
            Self::BTreeMap => "btreemap",
            Self::BinarySearch => "binary-search",
            Self::Probing => "prefetching-hash",
            Self::PerfectHash => "ptr-hash",
            Self::SearchTree => "search-tree",
            Self::Lmdb => "lmdb",
            Self::Redb => "redb",
            Self::Fst => "fst",
            Self::RocksDb => "rocksdb",
        }
    }

    /// Returns true if it keeps its table in a file, as Pleach does.
    #[must_use]
    pub const fn is_store(self) -> bool {
        matches!(self, Self::Lmdb | Self::Redb | Self::Fst | Self::RocksDb)
    }

    /// Returns true if its keys can be byte strings.
    #[must_use]
    pub const fn takes_texts(self) -> bool {
        !matches!(self, Self::Probing | Self::PerfectHash | Self::SearchTree)
    }

    /// Returns true if its keys can be numbers of this many bytes.
    #[must_use]
    pub const fn takes_numbers_of(self, bytes: usize) -> bool {
        !matches!(self, Self::SearchTree) || bytes == 4
    }

    /// Builds a table from tuples with ascending, distinct keys. Stores put their files into `folder`,
    /// which must exist, be empty of files of the same engine, and outlive the table.
    ///
    /// # Errors
    /// Errors of the engine, and [`std::io::ErrorKind::Unsupported`] for a store that this build does not have.
    pub fn build<K: Number, V: Number>(
        self,
        tuples: &[(K, V)],
        folder: &Path,
    ) -> Result<Built<K, V>, PeerError> {
        match self {
            Self::Hashbrown => Ok(memory::hashbrown(tuples)),
            Self::BTreeMap => Ok(memory::btree_map(tuples)),
            Self::BinarySearch => Ok(memory::binary_search(tuples)),
            Self::Probing => probing::build(tuples),
            Self::SearchTree => ranked::build(tuples),
            #[cfg(feature = "stores")]
            Self::PerfectHash => Ok(perfect::build(tuples)),
            #[cfg(feature = "stores")]
            Self::Lmdb => stores::lmdb::build(tuples, folder),
            #[cfg(feature = "stores")]
            Self::Redb => stores::redb::build(tuples, folder),
            #[cfg(feature = "stores")]
            Self::Fst => stores::fst::build(tuples, folder),
            #[cfg(feature = "rocksdb")]
            Self::RocksDb => stores::rocks::build(tuples, folder),
            #[cfg(not(all(feature = "stores", feature = "rocksdb")))]
            _ => Err(PeerError {
                engine: self.name(),
                operation: "build",
                cause: format!("not in this build, nothing put into {}", folder.display()).into(),
            }),
        }
    }
}

/// Calls `build` and says how long it took.
fn timed<T>(build: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let built = build();
    (built, start.elapsed())
}

/// The loop of every engine here: one key after the other, as their interfaces want it, with the
/// presence bits gathered in a register.
#[inline(always)]
fn answer_each<K, V: Copy + Default, E>(
    mut keys: impl ExactSizeIterator<Item = K>,
    values: &mut [V],
    present: &mut [u64],
    mut get: impl FnMut(K) -> Result<Option<V>, E>,
) -> Result<usize, E> {
    assert_eq!(keys.len(), values.len(), "a value for each key");
    assert_eq!(keys.len().div_ceil(64), present.len(), "a presence bit for each key");
    let mut found = 0;
    for (values, word) in values.chunks_mut(64).zip(present) {
        let mut bits = 0u64;
        for (slot, (value, key)) in values.iter_mut().zip(keys.by_ref()).enumerate() {
            let answer = get(key)?;
            bits |= u64::from(answer.is_some()) << slot;
            *value = answer.unwrap_or_default();
        }
        found += bits.count_ones() as usize;
        *word = bits;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<K: Number, V: Number>(engine: Engine, tuples: u64) {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let sorted: Vec<(K, V)> =
            (0..tuples).map(|i| (K::narrow(i * 3 + 1), V::narrow(i.wrapping_mul(0x9E37_79B9)))).collect();
        let built = engine.build(&sorted, folder.path()).expect("built");
        assert!(built.peer.bytes() >= tuples, "{}", engine.name());
        assert_eq!(built.open.is_some(), engine.is_store());
        let queries: Vec<K> = (0..tuples * 3 + 5).map(K::narrow).collect();
        let mut values = vec![V::narrow(7); queries.len()];
        let mut present = vec![u64::MAX; queries.len().div_ceil(64)];
        let mut reader = built.peer.reader().expect("a reader");
        let found = reader.get_batch(&queries, &mut values, &mut present).expect("answers");
        assert_eq!(found as u64, tuples, "{}", engine.name());
        for (i, value) in values.iter().enumerate() {
            let expected = sorted.iter().find(|tuple| tuple.0 == queries[i]).map(|tuple| tuple.1);
            assert_eq!(present[i / 64] >> (i % 64) & 1 == 1, expected.is_some(), "{} {i}", engine.name());
            assert_eq!(*value, expected.unwrap_or_default(), "{} {i}", engine.name());
        }
        if !queries.len().is_multiple_of(64) {
            assert_eq!(present[queries.len() / 64] >> (queries.len() % 64), 0, "bits past the end are 0");
        }
    }

    #[test]
    fn every_engine_answers_present_and_absent_keys() {
        for &engine in Engine::AVAILABLE {
            for tuples in [1, 63, 700] {
                check::<u32, u32>(engine, tuples);
                if !engine.takes_numbers_of(8) {
                    continue;
                }
                check::<u64, u64>(engine, tuples);
                check::<u64, u32>(engine, tuples);
            }
        }
    }
}
