//! Engines for text keys: files of Pleach, a hash map of the standard library, stores of `bench/peers`.

use super::measure::BATCH;
use crate::BenchError;
use crate::compress::{self, Batch};
use crate::report::TextFacts;
use pleach::{Index, KeyType, Strings};
use pleach_builder::{BuildOptions, Summary};
use pleach_peers::{Engine, Keys, TextReader, View};
use std::collections::HashMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Stores that are measured, where their feature is compiled in.
const STORES: [Engine; 2] = [Engine::Lmdb, Engine::Fst];
/// Most tuples that the stores are measured with, unless all engines are asked for at all sizes.
const STORE_TUPLES_MAX: usize = 1 << 24;
/// The longest key of LMDB.
const LMDB_KEY_BYTES_MAX: usize = 511;

/// Most tuples that are read of a prefix, and the tuples of a range.
pub(super) const TUPLES_PER_SCAN: usize = 100;

/// A file of Pleach and its costs.
pub(super) struct File {
    /// Name in reports.
    pub engine: &'static str,
    /// Its place.
    pub path: PathBuf,
    /// Seconds from keys in memory to the file.
    pub build_s: f64,
    index: Index,
    summary: Summary,
}

impl File {
    fn new(
        engine: &'static str,
        (key_type, keys, values): (KeyType, &Keys, &[u32]),
        folder: &Path,
        options: &BuildOptions,
    ) -> Result<Self, BenchError> {
        let path = folder.join(engine).with_extension("pleach");
        let start = Instant::now();
        let summary = compress::build(key_type, keys, values, &path, options)?;
        let build_s = start.elapsed().as_secs_f64();
        Ok(Self { engine, index: Index::open(&path)?, path, build_s, summary })
    }

    /// Size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.summary.file_bytes
    }

    /// Each section and its bytes by tuple, in the order of the file.
    pub(super) fn sections(&self) -> Vec<(String, f64)> {
        let tuples = self.summary.tuples.max(1) as f64;
        let entries = self.index.header().sections.iter().map(|section| &section.entry);
        entries.map(|entry| (entry.tag.to_string(), entry.length.get() as f64 / tuples)).collect()
    }
}

/// Hash map of the standard library, with its default hasher and keys of their own allocations.
type Map = HashMap<Box<[u8]>, u32>;

/// Returns the bytes of a map. Calculated, because the map does not tell: at most seven of eight slots are taken,
/// their number is a power of two, and each has a byte of control beside its tuple. What the allocator adds to a
/// key is not counted.
fn map_bytes(map: &Map, keys: &Keys) -> u64 {
    let slots = (map.capacity() * 8 / 7).next_power_of_two();
    (slots * (size_of::<(Box<[u8]>, u32)>() + 1) + keys.data().len()) as u64
}

/// All engines over the same keys.
pub(super) struct Engines<'a> {
    /// Files of Pleach: of default options, and with columns.
    pub files: [File; 2],
    map: Map,
    map_s: f64,
    map_bytes: u64,
    stores: Vec<(Engine, pleach_peers::BuiltTexts<'a>)>,
}

impl<'a> Engines<'a> {
    /// Builds every engine. Stores that are left out add a note, which begins with `label`.
    pub(super) fn new(
        label: &str,
        (key_type, keys, values): (KeyType, &'a Keys, &[u32]),
        folder: &Path,
        all_peers: bool,
        notes: &mut Vec<String>,
    ) -> Result<Self, BenchError> {
        let tuples = (key_type, keys, values);
        let columns = BuildOptions { columns: true, ..BuildOptions::default() };
        let files = [
            File::new("pleach", tuples, folder, &BuildOptions::default())?,
            File::new("pleach-columns", tuples, folder, &columns)?,
        ];
        let start = Instant::now();
        let mut map = Map::with_capacity(keys.len());
        map.extend(keys.iter().map(Box::from).zip(values.iter().copied()));
        let map_s = start.elapsed().as_secs_f64();
        let mut stores = Vec::new();
        let longest = keys.iter().map(<[u8]>::len).max().unwrap_or(0);
        for &engine in Engine::AVAILABLE.iter().filter(|engine| STORES.contains(engine)) {
            if engine == Engine::Lmdb && longest > LMDB_KEY_BYTES_MAX {
                notes.push(format!("{label}: no lmdb: its keys have at most {LMDB_KEY_BYTES_MAX} bytes"));
            } else if keys.len() > STORE_TUPLES_MAX && !all_peers {
                notes.push(format!("{label}: no {}: it takes minutes to build (--all-peers)", engine.name()));
            } else {
                stores.push((engine, engine.build_texts(keys, values, folder)?));
            }
        }
        Ok(Self { files, map_bytes: map_bytes(&map, keys), map, map_s, stores })
    }

    /// Returns a searcher of each engine, with `plain` facts of its keys.
    pub(super) fn searchers(&self, plain: &TextFacts) -> Result<Vec<Searcher<'_>>, BenchError> {
        let mut searchers = Vec::new();
        for file in &self.files {
            let facts = TextFacts { sections: file.sections(), ..plain.clone() };
            let way = Way::Pleach(Box::new(file.index.strings()?));
            let (build_s, bytes) = (file.build_s, file.bytes());
            searchers.push(Searcher { engine: file.engine, way, build_s, bytes, facts });
        }
        searchers.push(Searcher {
            engine: "hash-map",
            way: Way::Map(&self.map),
            build_s: self.map_s,
            bytes: self.map_bytes,
            facts: plain.clone(),
        });
        for (engine, built) in &self.stores {
            let way = Way::Store(*engine, built.peer.reader()?);
            let (build_s, bytes) = (built.build.as_secs_f64(), built.peer.bytes());
            searchers.push(Searcher { engine: engine.name(), way, build_s, bytes, facts: plain.clone() });
        }
        Ok(searchers)
    }
}

/// One thread's access to an engine, and what the engine cost.
pub(super) struct Searcher<'a> {
    /// Name in reports.
    pub engine: &'static str,
    /// How it is asked.
    pub way: Way<'a>,
    /// Seconds from keys in memory to a table that can be searched.
    pub build_s: f64,
    /// Bytes of the table, in memory or on the disk.
    pub bytes: u64,
    /// What its rows tell of the keys.
    pub facts: TextFacts,
}

/// Ways to ask an engine.
pub(super) enum Way<'a> {
    /// By the view of a file.
    Pleach(Box<Strings<'a, u32>>),
    /// By `get` of the map, key after key.
    Map(&'a Map),
    /// By the reader of a store.
    Store(Engine, Box<dyn TextReader + 'a>),
}

impl Way<'_> {
    /// Returns true if single look-ups are measured.
    pub(super) fn has_singles(&self) -> bool {
        !matches!(self, Self::Store(Engine::Fst, _))
    }

    /// Returns true if prefixes and ranges are measured.
    pub(super) fn has_scans(&self) -> bool {
        matches!(self, Self::Pleach(_))
    }

    /// Looks `queries` up in batches of [`BATCH`]. The buffers have room for all of them, and `present` holds zeros.
    pub(super) fn batches(
        &mut self,
        queries: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<(), BenchError> {
        let parts = values.chunks_mut(BATCH).zip(present.chunks_mut(BATCH / 64));
        for (queries, (values, present)) in queries.chunks(BATCH).zip(parts) {
            match self {
                Self::Pleach(view) => view.get_batch(&Batch(queries), values, present)?,
                Self::Store(_, reader) => reader.get_batch(queries, values, present)?,
                Self::Map(map) => ask_each(map, queries, values, present),
            };
        }
        Ok(())
    }

    /// Looks `queries` up by one call for each. The buffers have room for all of them, and `present` holds zeros.
    pub(super) fn singles(
        &mut self,
        queries: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<(), BenchError> {
        match self {
            Self::Pleach(view) => {
                for (at, key) in queries.iter().enumerate() {
                    if let Some(value) = view.get(key)? {
                        values[at] = value;
                        present[at / 64] |= 1 << (at % 64);
                    }
                }
            }
            Self::Store(_, reader) => {
                for (at, key) in queries.chunks(1).enumerate() {
                    let mut bit = [0];
                    reader.get_batch(key, &mut values[at..=at], &mut bit)?;
                    present[at / 64] |= (bit[0] & 1) << (at % 64);
                }
            }
            Self::Map(map) => {
                ask_each(map, queries, values, present);
            }
        }
        Ok(())
    }

    /// Calls `tuple` for the tuples whose keys begin with `prefix`, in order, but for at most [`TUPLES_PER_SCAN`].
    #[inline(always)]
    pub(super) fn prefix(&self, prefix: &[u8], tuple: impl FnMut(&[u8], u32)) -> Result<(), BenchError> {
        match self {
            Self::Pleach(view) => each(view.prefix(prefix)?, tuple),
            Self::Map(_) | Self::Store(..) => Ok(()),
        }
    }

    /// Calls `tuple` for the [`TUPLES_PER_SCAN`] tuples from `first` on, in order; fewer if there are fewer.
    #[inline(always)]
    pub(super) fn range(&self, first: &[u8], tuple: impl FnMut(&[u8], u32)) -> Result<(), BenchError> {
        match self {
            Self::Pleach(view) => each(view.range((Bound::Included(first), Bound::Unbounded))?, tuple),
            Self::Map(_) | Self::Store(..) => Ok(()),
        }
    }
}

/// Calls `call` for the first tuples of an iterator.
#[inline(always)]
fn each(tuples: pleach::StringRange<'_, u32>, mut call: impl FnMut(&[u8], u32)) -> Result<(), BenchError> {
    for tuple in tuples.take(TUPLES_PER_SCAN) {
        let (key, value) = tuple?;
        call(&key, value);
    }
    Ok(())
}

/// Looks each query up, one after the other, and returns how many were found.
fn ask_each(map: &Map, queries: View<'_>, values: &mut [u32], present: &mut [u64]) -> usize {
    let mut found = 0;
    for (at, key) in queries.iter().enumerate() {
        if let Some(&value) = map.get(key) {
            values[at] = value;
            present[at / 64] |= 1 << (at % 64);
            found += 1;
        }
    }
    found
}
