//! Byte keys: what compressing them to words costs and saves (FAST, Kim et al., figures 11 and 12).
//!
//! For each kind of key: look-ups a second, bytes a tuple, spine lines by encoding, and the work that
//! keys which share a word cause. Beside Pleach stand its peers and an *uncompressed tree*: the same
//! keys in full, breadth-first, searched by the same pipeline (groups of 16 on different levels, the
//! next node prefetched). Another row holds 4-byte keys of the same size of uncompressed tree.

use crate::prefetch::prefetch;
use crate::report::{Report, Row, TextFacts};
use crate::texts::{self, Kind};
use crate::{BenchError, Machine, data, machine};
use pleach::{Index, KeyType, Queries, ValueType};
use pleach_builder::{BuildOptions, Chunk, ChunkSource, Column, Schema, Silent, Summary};
use pleach_peers::{Engine, Keys, View};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Queries of one call.
const BATCH: usize = 1 << 14;
/// Queries whose work is counted.
const COUNTED: usize = 1 << 14;
/// Queries of a group, and most groups on their way, as in Pleach's own pipeline.
const GROUP: usize = 16;
const RING: usize = 64;
/// Most keys for which the stores are built.
const STORE_KEYS_MAX: u64 = 1 << 22;

/// What to measure.
pub struct CompressOptions<'a> {
    /// Kinds of keys, and how many of each.
    pub kinds: Vec<(Kind, u64)>,
    /// Also measure 4-byte keys: as many as take as many bytes as the keys of the first kind.
    pub words: bool,
    /// Queries of one repetition.
    pub queries: usize,
    /// Repetitions, of which the median is reported.
    pub repetitions: usize,
    /// Folder for the files.
    pub dir: Option<PathBuf>,
    /// Told what is being done.
    pub progress: Option<&'a dyn Fn(&str)>,
    /// Asked between the steps whether to stop.
    pub cancelled: Option<&'a dyn Fn() -> bool>,
}

impl CompressOptions<'_> {
    /// Every kind, `count` keys of each (or as many as there are), and the sweeps of the paper: values
    /// a byte at 16 and 32 bytes, bytes a key at 10 values a byte.
    #[must_use]
    pub fn of_size(count: u64) -> Self {
        let mut kinds = vec![Kind::Phone, Kind::Url, Kind::Word, Kind::Uuid, Kind::UuidText, Kind::Kmer];
        let digits = |bytes, values| Kind::Digits { bytes, values };
        kinds.extend([2, 4, 10, 64, 256].map(|values| digits(16, values)));
        kinds.extend([2, 10].map(|values| digits(32, values)));
        kinds.extend([64, 128].map(|bytes| digits(bytes, 10)));
        let kinds = kinds.into_iter().map(|kind| (kind, count.min(kind.available() / 2))).collect();
        Self::new(kinds)
    }

    /// The size of the paper: about 1 GB of keys of 16 and of 128 bytes, and of 4.
    #[must_use]
    pub fn of_one_gigabyte() -> Self {
        let digits = |bytes| Kind::Digits { bytes, values: 10 };
        Self { words: true, ..Self::new(vec![(digits(16), 1 << 26), (digits(128), 1 << 23)]) }
    }

    fn new(kinds: Vec<(Kind, u64)>) -> Self {
        Self {
            kinds,
            words: false,
            queries: 1 << 20,
            repetitions: 5,
            dir: None,
            progress: None,
            cancelled: None,
        }
    }

    fn step(&self, text: &str) -> Result<(), BenchError> {
        if self.cancelled.is_some_and(|cancelled| cancelled()) {
            return Err(BenchError::Interrupted);
        }
        if let Some(progress) = self.progress {
            progress(text);
        }
        Ok(())
    }
}

/// Measures everything that `options` ask for.
///
/// # Errors
/// [`BenchError`]: whatever keeps an engine from being built or searched, and a wrong answer of any.
pub fn run(options: &CompressOptions<'_>) -> Result<Report, BenchError> {
    let mut report = Report { machine: Machine::this(), rows: Vec::new(), notes: Vec::new() };
    let parent = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    for &(kind, count) in &options.kinds {
        let folder = folder(&parent)?;
        data_set(options, kind, count, folder.path(), &mut report)?;
    }
    if options.words
        && let Some(&(kind, count)) = options.kinds.first()
    {
        let folder = folder(&parent)?;
        words(options, count * kind.width().unwrap_or(16) as u64 / 4, folder.path(), &mut report)?;
    }
    Ok(report)
}

fn folder(parent: &Path) -> Result<tempfile::TempDir, BenchError> {
    let made = tempfile::Builder::new().prefix("pleach-bench-").tempdir_in(parent);
    made.map_err(|source| BenchError::Io { operation: "create a folder in", path: parent.to_owned(), source })
}

/// Something that answers batches.
trait Answer {
    fn answer(
        &mut self,
        queries: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<(), BenchError>;
}

struct Entry<'a> {
    engine: &'static str,
    answer: Box<dyn Answer + 'a>,
    build_s: f64,
    bytes: u64,
    facts: TextFacts,
    ns: Vec<f64>,
}

fn data_set(
    options: &CompressOptions<'_>,
    kind: Kind,
    count: u64,
    folder: &Path,
    report: &mut Report,
) -> Result<(), BenchError> {
    let label = format!("{count} x {kind}");
    options.step(&format!("{label}: generating"))?;
    let keys = kind.sorted(count, 1);
    let values = texts::values(&keys);
    let queries = texts::hits(&keys, options.queries);
    let key_type = key_type(kind);

    options.step(&format!("{label}: building"))?;
    let path = folder.join("texts.pleach");
    let start = Instant::now();
    let summary = build(key_type, &keys, &values, &path)?;
    let build_s = start.elapsed().as_secs_f64();
    let index = Index::open(&path)?;
    let view = index.strings::<u32>()?;
    let mut peers = Vec::new();
    for &engine in Engine::AVAILABLE {
        let is_store = !matches!(engine, Engine::Hashbrown | Engine::BTreeMap | Engine::BinarySearch);
        let wanted = engine == Engine::Hashbrown && count <= 1 << 24 || count <= STORE_KEYS_MAX;
        if wanted && !(is_store && engine.name() == "redb") {
            peers.push((engine, engine.build_texts(&keys, &values, folder)?));
        }
    }
    let plain = TextFacts { data: kind.to_string(), ..TextFacts::default() };
    let mut entries = vec![Entry {
        engine: "pleach",
        answer: Box::new(Pleach(view)),
        build_s,
        bytes: summary.file_bytes,
        facts: TextFacts {
            excess_work: Some(excess(&view, &queries)?),
            pages: pages(&index, &summary),
            partial: Some(partial(&index)),
            ..plain.clone()
        },
        ns: Vec::new(),
    }];
    if let Some(width) = keys.width() {
        let start = Instant::now();
        let tree = Tree::new(&keys, &values, width);
        entries.push(Entry {
            engine: "uncompressed-tree",
            build_s: start.elapsed().as_secs_f64(),
            bytes: (tree.nodes.len() + tree.values.len() * 4) as u64,
            answer: Box::new(tree),
            facts: plain.clone(),
            ns: Vec::new(),
        });
    }
    for (engine, built) in &peers {
        entries.push(Entry {
            engine: engine.name(),
            build_s: built.build.as_secs_f64(),
            bytes: built.peer.bytes(),
            answer: Box::new(Peer(built.peer.reader()?)),
            facts: plain.clone(),
            ns: Vec::new(),
        });
    }
    measure(options, &label, &mut entries, &queries)?;
    for entry in entries {
        report.rows.push(row(options, entry, key_type, keys.len() as u64));
    }
    Ok(())
}

/// Takes turns, checks each answer.
fn measure(
    options: &CompressOptions<'_>,
    label: &str,
    entries: &mut [Entry<'_>],
    queries: &Keys,
) -> Result<(), BenchError> {
    let mut values = vec![0u32; queries.len()];
    let mut present = vec![0u64; queries.len().div_ceil(64)];
    for repetition in 0..=options.repetitions {
        options.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
        for entry in &mut *entries {
            values.fill(!0);
            present.fill(0);
            let start = Instant::now();
            let parts = values.chunks_mut(BATCH).zip(present.chunks_mut(BATCH / 64));
            for (queries, (values, present)) in queries.view().chunks(BATCH).zip(parts) {
                entry.answer.answer(queries, values, present)?;
            }
            let ns = start.elapsed().as_nanos() as f64 / queries.len() as f64;
            for (at, query) in queries.iter().enumerate() {
                let there = present[at / 64] >> (at % 64) & 1 == 1;
                if !there || values[at] != texts::value(query) {
                    return Err(BenchError::Wrong {
                        engine: entry.engine.to_owned(),
                        query: at,
                        queries: queries.len(),
                        key: query.escape_ascii().to_string(),
                        found: if there { values[at].to_string() } else { "nothing".to_owned() },
                        expected: texts::value(query).to_string(),
                    });
                }
            }
            // The first turn fills the caches.
            if repetition > 0 {
                entry.ns.push(ns);
            }
        }
    }
    Ok(())
}

fn row(options: &CompressOptions<'_>, mut entry: Entry<'_>, key_type: KeyType, tuples: u64) -> Row {
    entry.ns.sort_by(f64::total_cmp);
    let at = |index: usize| entry.ns.get(index).copied().unwrap_or(f64::NAN);
    Row {
        engine: entry.engine.to_owned(),
        operation: "get",
        key_type,
        value_type: ValueType::U32,
        tuples,
        threads: 1,
        batch: BATCH,
        ns_per_query: at(entry.ns.len() / 2),
        ns_min: at(0),
        ns_max: at(entry.ns.len().saturating_sub(1)),
        queries: options.queries,
        repetitions: options.repetitions,
        build_s: entry.build_s,
        bytes_per_tuple: entry.bytes as f64 / tuples.max(1) as f64,
        open_ms: None,
        huge_share: None,
        detail: None,
        texts: Some(entry.facts),
    }
}

fn key_type(kind: Kind) -> KeyType {
    match kind.width() {
        Some(width) => KeyType::Fixed(width as u16),
        None => KeyType::Utf8,
    }
}

fn build(key_type: KeyType, keys: &Keys, values: &[u32], path: &Path) -> Result<Summary, BenchError> {
    let schema = Schema::plain(key_type, ValueType::U32, Some(keys.len() as u64));
    let chunks = (0..keys.len()).step_by(BATCH).map(|from| {
        let mut chunk = Chunk::new(key_type, ValueType::U32);
        let to = keys.len().min(from + BATCH);
        if let Column::Bytes(out) = &mut chunk.keys {
            (from..to).for_each(|at| out.push(keys.get(at)));
        }
        chunk.values = Column::U32(values[from..to].to_vec());
        chunk
    });
    let mut source = ChunkSource::new(schema, chunks);
    Ok(pleach_builder::build(&mut source, path, &BuildOptions::default(), &Silent)?)
}

/// Spine lines by encoding.
fn pages(index: &Index, summary: &Summary) -> Vec<(String, u64)> {
    let mut pages: Vec<(String, u64)> = Vec::new();
    for (encoding, lines) in &summary.spine {
        match pages.iter_mut().find(|page| page.0 == *encoding) {
            Some(page) => page.1 += lines,
            None => pages.push((encoding.clone(), *lines)),
        }
    }
    pages.push(("inexact".to_owned(), index.header().inexact_lines()));
    pages
}

/// Share of the pages whose separators are partial keys: all of them if the file's mask drops bits.
fn partial(index: &Index) -> f64 {
    let dropped = index.mask().is_some_and(|mask| (mask.bits() as usize) < 8 * mask.key_bytes_max());
    f64::from(u8::from(dropped))
}

/// Comparisons of full keys for each query that is present, beyond the one that confirms it.
fn excess(view: &pleach::Strings<'_, u32>, queries: &Keys) -> Result<f64, BenchError> {
    let mut sum = 0u64;
    let counted = queries.len().min(COUNTED);
    for query in queries.iter().take(counted) {
        sum += u64::from(view.comparisons(query)?.saturating_sub(1));
    }
    Ok(1.0 + sum as f64 / counted.max(1) as f64)
}

struct Pleach<'a>(pleach::Strings<'a, u32>);

struct Batch<'a>(View<'a>);

impl Queries for Batch<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn get(&self, index: usize) -> &[u8] {
        self.0.get(index)
    }
}

impl Answer for Pleach<'_> {
    fn answer(
        &mut self,
        queries: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<(), BenchError> {
        self.0.get_batch(&Batch(queries), values, present)?;
        Ok(())
    }
}

struct Peer<'a>(Box<dyn pleach_peers::TextReader + 'a>);

impl Answer for Peer<'_> {
    fn answer(
        &mut self,
        queries: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<(), BenchError> {
        self.0.get_batch(queries, values, present)?;
        Ok(())
    }
}

/// Full keys breadth-first: node `i` has the children `2 i` and `2 i + 1`, node 0 is not used.
struct Tree {
    nodes: Vec<u8>,
    values: Vec<u32>,
    width: usize,
    count: usize,
}

impl Tree {
    fn new(keys: &Keys, values: &[u32], width: usize) -> Self {
        let count = keys.len();
        let mut tree = Self { nodes: vec![0; (count + 1) * width], values: vec![0; count + 1], width, count };
        let mut rank = 0;
        tree.fill(1, keys, values, &mut rank);
        tree
    }

    fn fill(&mut self, node: usize, keys: &Keys, values: &[u32], rank: &mut usize) {
        if node > self.count {
            return;
        }
        self.fill(2 * node, keys, values, rank);
        self.nodes[node * self.width..][..self.width].copy_from_slice(keys.get(*rank));
        self.values[node] = values[*rank];
        *rank += 1;
        self.fill(2 * node + 1, keys, values, rank);
    }

    #[inline(always)]
    fn key(&self, node: usize) -> &[u8] {
        &self.nodes[node * self.width..][..self.width]
    }

    #[inline(always)]
    fn ask(&self, node: usize) {
        if node <= self.count {
            for byte in (node * self.width..(node + 1) * self.width).step_by(64) {
                prefetch(&self.nodes[byte]);
            }
        }
    }
}

impl Answer for Tree {
    fn answer(
        &mut self,
        queries: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<(), BenchError> {
        let levels = usize::BITS as usize - self.count.leading_zeros() as usize;
        let groups = queries.len().div_ceil(GROUP);
        // A group enters at each step of the clock, and all of those on their way go one level down.
        let mut ring = [[1usize; GROUP]; RING];
        for clock in 0..groups + levels {
            for stage in (0..=levels).rev() {
                let Some(number) = clock.checked_sub(stage).filter(|&number| number < groups) else {
                    continue;
                };
                let nodes = &mut ring[number % RING];
                let first = number * GROUP;
                let count = GROUP.min(queries.len() - first);
                if stage == 0 {
                    nodes.fill(1);
                }
                for (at, node) in nodes.iter_mut().enumerate().take(count) {
                    if stage < levels {
                        if *node <= self.count {
                            // Right where the key is below the query; equal goes left, as a lower bound.
                            *node = 2 * *node + usize::from(self.key(*node) < queries.get(first + at));
                            self.ask(*node);
                        }
                        continue;
                    }
                    // Back up over the last steps to the right, and one to the left: the lower bound.
                    let bound = *node >> (node.trailing_ones() + 1);
                    let query = first + at;
                    if bound > 0 && self.key(bound) == queries.get(query) {
                        values[query] = self.values[bound];
                        present[query / 64] |= 1 << (query % 64);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The row of 4-byte keys.
fn words(
    options: &CompressOptions<'_>,
    count: u64,
    folder: &Path,
    report: &mut Report,
) -> Result<(), BenchError> {
    let label = format!("{count} x u32");
    options.step(&format!("{label}: building"))?;
    let tuples: Vec<(u32, u32)> = data::tuples(count);
    let queries: Vec<u32> = data::hits(&tuples, options.queries);
    let path = folder.join("words.pleach");
    let start = Instant::now();
    let summary = pleach_builder::build_slice(&tuples, &path, &BuildOptions::default())?;
    let build_s = start.elapsed().as_secs_f64();
    drop(tuples);
    let index = Index::open(&path)?;
    let view = index.typed::<u32, u32>()?;
    let mut values = vec![0u32; queries.len()];
    let mut present = vec![0u64; queries.len().div_ceil(64)];
    let mut ns = Vec::new();
    for repetition in 0..=options.repetitions {
        options.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
        values.fill(!0);
        let start = Instant::now();
        let parts = values.chunks_mut(BATCH).zip(present.chunks_mut(BATCH / 64));
        for (queries, (values, present)) in queries.chunks(BATCH).zip(parts) {
            view.get_batch(queries, values, present)?;
        }
        let took = start.elapsed().as_nanos() as f64 / queries.len() as f64;
        for (at, (&query, &value)) in queries.iter().zip(&values).enumerate() {
            let expected = data::value::<u32, u32>(query);
            if value != expected {
                return Err(BenchError::Wrong {
                    engine: "pleach".to_owned(),
                    query: at,
                    queries: queries.len(),
                    key: query.to_string(),
                    found: value.to_string(),
                    expected: expected.to_string(),
                });
            }
        }
        if repetition > 0 {
            ns.push(took);
        }
    }
    let entry = Entry {
        engine: "pleach",
        answer: Box::new(Nothing),
        build_s,
        bytes: summary.file_bytes,
        facts: TextFacts {
            data: "words of 4 bytes".to_owned(),
            pages: pages(&index, &summary),
            ..TextFacts::default()
        },
        ns,
    };
    let huge = machine::huge_mapped_bytes(&path).map(|huge| huge as f64 / summary.file_bytes as f64);
    let row = row(options, entry, KeyType::U32, summary.tuples);
    report.rows.push(Row { huge_share: huge, ..row });
    Ok(())
}

struct Nothing;

impl Answer for Nothing {
    fn answer(&mut self, _: View<'_>, _: &mut [u32], _: &mut [u64]) -> Result<(), BenchError> {
        Ok(())
    }
}
