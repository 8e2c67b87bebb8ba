//! The same engines over byte-string keys, in the order of their bytes, with values of 32 bits.
//!
//! Keys that all have one length are kept inline by the engines that can (`[u8; N]` in memory, fixed
//! width in redb); others are slices of the caller's [`Keys`], whose bytes are counted with the table.
//! A query of another length than all keys have is answered, too: it is absent.

mod memory;

use crate::{Engine, Keys, PeerError, View};
use std::path::Path;
use std::time::Duration;

/// A built table that is only searched from now on.
pub trait TextPeer: Sync {
    /// Bytes that it occupies in memory, keys included, or on the disk if it is a file.
    fn bytes(&self) -> u64;
    /// Makes the searcher of one thread. Not part of any timed section.
    ///
    /// # Errors
    /// Errors of the engine.
    fn reader(&self) -> Result<Box<dyn TextReader + '_>, PeerError>;
}

/// One thread's access to a [`TextPeer`].
pub trait TextReader: Send {
    /// Looks `keys` up. `values[i]` becomes the value of key `i`, or 0 if that key is absent; bit
    /// `i % 64` of `present[i / 64]` says which. Returns how many were found.
    ///
    /// `values` is as long as `keys`, `present` has a word for each 64 of them: anything else panics.
    ///
    /// # Errors
    /// Errors of the engine.
    fn get_batch(
        &mut self,
        keys: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<usize, PeerError>;
}

/// A peer and what it cost.
pub struct BuiltTexts<'a> {
    /// The table.
    pub peer: Box<dyn TextPeer + 'a>,
    /// From sorted keys in memory to a finished table; files are synced.
    pub build: Duration,
    /// From a closed file (its pages in memory) to the first answer; `None` for tables in memory.
    pub open: Option<Duration>,
}

/// Calls `$function::<N>($argument...)` if all keys have one of the lengths that are compiled in, else
/// `$any`. The lengths are those of telephone numbers, uuids, 31-mers and of round binary numbers.
macro_rules! by_width {
    ($width:expr, $function:ident $arguments:tt, $any:expr) => {
        by_width!($width, $function $arguments, $any; 4 8 12 14 15 16 20 24 31 32 36 48 64 96 128)
    };
    ($width:expr, $function:ident $arguments:tt, $any:expr; $($n:literal)*) => {
        match $width {
            $(Some($n) => by_width!($n $function $arguments),)*
            _ => $any,
        }
    };
    ($n:literal $function:ident ($($argument:expr),*)) => { $function::<$n>($($argument),*) };
}
pub(crate) use by_width;

impl Engine {
    /// Builds a table from ascending, distinct keys and the value of each. Stores put their files into
    /// `folder`, which must exist, be empty of files of the same engine, and outlive the table.
    ///
    /// # Errors
    /// Errors of the engine (LMDB refuses the empty key and keys of more than 511 bytes), and that
    /// this build does not have the engine.
    ///
    /// # Panics
    /// If there are not as many values as keys.
    pub fn build_texts<'a>(
        self,
        keys: &'a Keys,
        values: &[u32],
        folder: &Path,
    ) -> Result<BuiltTexts<'a>, PeerError> {
        assert_eq!(keys.len(), values.len(), "a value for each key");
        match self {
            Self::Hashbrown => Ok(memory::hashbrown(keys, values)),
            Self::BTreeMap => Ok(memory::btree_map(keys, values)),
            Self::BinarySearch => Ok(memory::binary_search(keys, values)),
            #[cfg(feature = "stores")]
            Self::Lmdb => crate::stores::lmdb::build_texts(keys, values, folder),
            #[cfg(feature = "stores")]
            Self::Redb => crate::stores::redb::build_texts(keys, values, folder),
            #[cfg(feature = "stores")]
            Self::Fst => crate::stores::fst::build_texts(keys, values, folder),
            #[cfg(feature = "rocksdb")]
            Self::RocksDb => crate::stores::rocks::build_texts(keys, values, folder),
            Self::Probing | Self::PerfectHash | Self::SearchTree => Err(PeerError {
                engine: self.name(),
                operation: "build",
                cause: "its keys are numbers".into(),
            }),
            #[cfg(not(all(feature = "stores", feature = "rocksdb")))]
            _ => Err(PeerError {
                engine: self.name(),
                operation: "build",
                cause: format!("not in this build, nothing put into {}", folder.display()).into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Builds every engine over `keys` and compares the answer to each key, to neighbours of each, and
    /// to `strangers`.
    fn check(keys: &[Vec<u8>], strangers: &[&[u8]]) {
        let model: BTreeMap<&[u8], u32> =
            keys.iter().zip(1u32..).map(|(key, i)| (key.as_slice(), i.wrapping_mul(0x9E37_79B9))).collect();
        let sorted: Keys = model.keys().collect();
        let values: Vec<u32> = model.values().copied().collect();
        let mut queries = Keys::new();
        for key in sorted.iter() {
            queries.push(key);
            queries.push(&[key, b"\0"].concat());
            queries.push(&key[..key.len().saturating_sub(1)]);
            let mut other = key.to_vec();
            if let Some(last) = other.last_mut() {
                *last ^= 0x10;
            }
            queries.push(&other);
        }
        strangers.iter().for_each(|stranger| queries.push(stranger));

        for &engine in Engine::AVAILABLE.iter().filter(|engine| engine.takes_texts()) {
            let folder = tempfile::tempdir().expect("a folder for the test");
            let built = engine.build_texts(&sorted, &values, folder.path()).expect("built");
            assert_eq!(built.open.is_some(), engine.is_store());
            assert!(built.peer.bytes() > 0, "{}", engine.name());
            if !engine.is_store() {
                let least = sorted.data().len() + 4 * sorted.len();
                assert!(built.peer.bytes() >= least as u64, "{} counts its keys", engine.name());
            }
            let mut reader = built.peer.reader().expect("a reader");
            for batch in [queries.len(), 7] {
                for part in queries.view().chunks(batch) {
                    let mut answers = vec![7; part.len()];
                    let mut present = vec![u64::MAX; part.len().div_ceil(64)];
                    let found = reader.get_batch(part, &mut answers, &mut present).expect("answers");
                    let mut expected_found = 0;
                    for (i, query) in part.iter().enumerate() {
                        let expected = model.get(query).copied();
                        let is_present = present[i / 64] >> (i % 64) & 1 == 1;
                        assert_eq!(is_present, expected.is_some(), "{} {query:?}", engine.name());
                        assert_eq!(answers[i], expected.unwrap_or(0), "{} {query:?}", engine.name());
                        expected_found += usize::from(expected.is_some());
                    }
                    assert_eq!(found, expected_found, "{}", engine.name());
                    if !part.len().is_multiple_of(64) {
                        let word = present[part.len() / 64];
                        assert_eq!(word >> (part.len() % 64), 0, "bits past the end are 0");
                    }
                }
            }
        }
    }

    #[test]
    fn every_engine_answers_fixed_and_variable_lengths() {
        let long = vec![b'x'; 600];
        let strangers: [&[u8]; 4] = [b"", b"\0", &[0xFF; 15], &long];
        for width in [1, 4, 7, 15, 16, 32, 36, 128, 200] {
            for count in [1, 63, 700] {
                let key = |i: u32| {
                    let mut key = vec![b'-'; width];
                    let text = format!("{:09}", i * 3);
                    let kept = width.min(text.len());
                    key[..kept].copy_from_slice(&text.as_bytes()[text.len() - kept..]);
                    key
                };
                check(&(0..count).map(key).collect::<Vec<_>>(), &strangers);
            }
        }
        let mixed: Vec<Vec<u8>> = (0..700u32).map(|i| format!("{}", i * i).into_bytes()).collect();
        check(&mixed, &strangers);
        let nested: Vec<Vec<u8>> = (1..=511).map(|length| vec![0; length]).collect();
        check(&nested, &strangers);
    }

    #[test]
    fn no_keys() {
        let engines = [Engine::Hashbrown, Engine::BTreeMap, Engine::BinarySearch];
        for engine in engines {
            let keys = Keys::new();
            let built = engine.build_texts(&keys, &[], Path::new("unused")).expect("built");
            let queries: Keys = ["", "a"].into_iter().collect();
            let (mut values, mut present) = ([1; 2], [3; 1]);
            let mut reader = built.peer.reader().expect("a reader");
            let found = reader.get_batch(queries.view(), &mut values, &mut present).expect("answers");
            assert_eq!((found, values, present), (0, [0, 0], [0]), "{}", engine.name());
        }
    }

    #[test]
    fn the_empty_key() {
        let keys: Keys = ["", "a", "a\0"].into_iter().collect();
        let folder = tempfile::tempdir().expect("a folder for the test");
        for &engine in Engine::AVAILABLE.iter().filter(|engine| engine.takes_texts()) {
            let built = engine.build_texts(&keys, &[5, 6, 7], folder.path());
            if engine == Engine::Lmdb {
                assert!(built.is_err(), "LMDB has no empty key");
                continue;
            }
            let (mut values, mut present) = ([0; 3], [0; 1]);
            let built = built.expect("built");
            let mut reader = built.peer.reader().expect("a reader");
            reader.get_batch(keys.view(), &mut values, &mut present).expect("answers");
            assert_eq!((values, present), ([5, 6, 7], [7]), "{}", engine.name());
        }
    }
}
