//! Byte keys: what compressing them to words costs and saves (FAST, Kim et al., figures 11 and 12).
//!
//! For each kind of key: look-ups a second, bytes a tuple, spine lines by encoding, and the work that
//! keys which share a word cause. Pleach is compared with its peers and an *uncompressed tree*: the same
//! keys in full, breadth-first, searched by the same pipeline (groups of 16 on different levels, the
//! next node prefetched). At the paper's size a row of 4-byte keys with an uncompressed tree of the same
//! size takes turns with them.

use crate::lookup::{self, Subject};
use crate::report::{Facts, Report, Row, TextFacts};
use crate::texts::{self, Kind};
use crate::{BenchError, Machine, Told, data, machine};
use pleach::{Index, KeyType, Queries, ValueType};
use pleach_builder::{BuildOptions, Chunk, ChunkSource, Column, Schema, Silent, Summary};
use pleach_peers::prefetch;
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

/// Options of the measurement.
pub struct CompressOptions<'a> {
    /// Kinds of keys, and how many of each.
    pub kinds: Vec<(Kind, u64)>,
    /// Also measure 4-byte keys: as many as take as many bytes as the keys of the first kind.
    pub words: bool,
    /// Queries of one repetition.
    pub queries: usize,
    /// Number of repetitions; the median is reported.
    pub repetitions: usize,
    /// Folder for the files.
    pub dir: Option<PathBuf>,
    /// Receives the steps of the run.
    pub told: Told<'a>,
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
        Self { kinds, words: false, queries: 1 << 20, repetitions: 5, dir: None, told: Told::default() }
    }
}

/// Measures everything that `options` ask for.
///
/// # Errors
/// [`BenchError`]: whatever keeps an engine from being built or searched, and a wrong answer of any.
pub fn run(options: &CompressOptions<'_>) -> Result<Report, BenchError> {
    let mut report = Report { machine: Machine::this(), rows: Vec::new(), notes: Vec::new() };
    // Engines that are compared take turns; otherwise one set after the other saves memory.
    if options.words {
        let inputs = options.kinds.iter().map(|&(kind, count)| Input::new(options, kind, count));
        let inputs = inputs.collect::<Result<Vec<_>, BenchError>>()?;
        let mut sets =
            inputs.iter().map(|input| texts_set(options, input)).collect::<Result<Vec<_>, BenchError>>()?;
        let folder = crate::folder(options.dir.as_deref())?;
        if let Some(first) = inputs.first() {
            let count = first.keys.len() * first.kind.width().unwrap_or(16) / 4;
            sets.push(words_set(options, count as u64, folder.path())?);
        }
        measure(options, &sets, &mut report)?;
        return Ok(report);
    }
    for &(kind, count) in &options.kinds {
        let input = Input::new(options, kind, count)?;
        measure(options, &[texts_set(options, &input)?], &mut report)?;
    }
    Ok(report)
}

/// Keys, and a folder for what is made of them.
struct Input {
    kind: Kind,
    keys: Keys,
    folder: crate::Folder,
}

impl Input {
    fn new(options: &CompressOptions<'_>, kind: Kind, count: u64) -> Result<Self, BenchError> {
        options.told.step(&format!("{count} x {kind}: generating"))?;
        Ok(Self { kind, keys: kind.sorted(count, 1), folder: crate::folder(options.dir.as_deref())? })
    }
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

/// Queries.
enum Asked {
    Texts(Keys),
    Words(Vec<u32>),
}

impl Asked {
    fn len(&self) -> usize {
        match self {
            Self::Texts(keys) => keys.len(),
            Self::Words(words) => words.len(),
        }
    }
}

/// One set of keys, and everything that was built of it.
struct Set<'a> {
    label: String,
    data: String,
    key_type: KeyType,
    tuples: u64,
    asked: Asked,
    path: PathBuf,
    index: Index,
    summary: Summary,
    build_s: f64,
    tree: Option<(Tree, f64)>,
    peers: Vec<(Engine, pleach_peers::BuiltTexts<'a>)>,
}

fn texts_set<'a>(options: &CompressOptions<'_>, input: &'a Input) -> Result<Set<'a>, BenchError> {
    let (kind, keys, folder) = (input.kind, &input.keys, input.folder.path());
    let label = format!("{} x {kind}", keys.len());
    let values = texts::values(keys);
    let queries = texts::hits(keys, options.queries);
    let key_type = key_type(kind);

    options.told.step(&format!("{label}: building"))?;
    let path = folder.join("texts.pleach");
    let start = Instant::now();
    let summary = build(key_type, keys, &values, &path, &BuildOptions::default())?;
    let build_s = start.elapsed().as_secs_f64();
    let index = Index::open(&path)?;
    let mut peers = Vec::new();
    for &engine in Engine::AVAILABLE.iter().filter(|engine| engine.takes_texts()) {
        let is_store = !matches!(engine, Engine::Hashbrown | Engine::BTreeMap | Engine::BinarySearch);
        let count = keys.len() as u64;
        let wanted = engine == Engine::Hashbrown && count <= 1 << 24 || count <= STORE_KEYS_MAX;
        if wanted && !(is_store && engine.name() == "redb") {
            peers.push((engine, engine.build_texts(keys, &values, folder)?));
        }
    }
    let tree = keys.width().map(|width| {
        let start = Instant::now();
        (Tree::new(keys, &values, width), start.elapsed().as_secs_f64())
    });
    let tuples = keys.len() as u64;
    let (data, asked) = (kind.to_string(), Asked::Texts(queries));
    Ok(Set { label, data, key_type, tuples, asked, path, index, summary, build_s, tree, peers })
}

/// The row of 4-byte keys: the table of `bench lookup`, asked by its code.
fn words_set(options: &CompressOptions<'_>, count: u64, folder: &Path) -> Result<Set<'static>, BenchError> {
    let label = format!("{count} x u32");
    options.told.step(&format!("{label}: building"))?;
    let tuples: Vec<(u32, u32)> = data::tuples(count);
    let asked = Asked::Words(data::hits(&tuples, options.queries));
    let path = folder.join("words.pleach");
    let start = Instant::now();
    let summary = pleach_builder::build_slice(&tuples, &path, &BuildOptions::default())?;
    Ok(Set {
        label,
        data: "words of 4 bytes".to_owned(),
        key_type: KeyType::U32,
        tuples: summary.tuples,
        asked,
        index: Index::open(&path)?,
        path,
        summary,
        build_s: start.elapsed().as_secs_f64(),
        tree: None,
        peers: Vec::new(),
    })
}

/// One engine over one set.
struct Entry<'a> {
    set: &'a Set<'a>,
    engine: &'static str,
    answer: Answers<'a>,
    build_s: f64,
    bytes: u64,
    facts: TextFacts,
    ns: Vec<f64>,
}

enum Answers<'a> {
    Texts(Box<dyn Answer + 'a>),
    Words(Box<lookup::Pleach<'a, u32>>),
}

impl Set<'_> {
    fn entries(&self) -> Result<Vec<Entry<'_>>, BenchError> {
        let plain = TextFacts { data: self.data.clone(), ..TextFacts::default() };
        let pages = pages(&self.index, &self.summary);
        let entry = |engine, answer, build_s, bytes, facts| {
            let ns = Vec::new();
            Entry { set: self, engine, answer, build_s, bytes, facts, ns }
        };
        let file_bytes = self.summary.file_bytes;
        let queries = match &self.asked {
            Asked::Words(_) => {
                let answer = Box::new(lookup::Pleach { view: self.index.typed()?, batch: BATCH, pool: None });
                let facts = TextFacts { pages, ..plain };
                return Ok(vec![entry("pleach", Answers::Words(answer), self.build_s, file_bytes, facts)]);
            }
            Asked::Texts(queries) => queries,
        };
        let view = self.index.strings::<u32>()?;
        let facts = TextFacts {
            excess_work: Some(excess(&view, queries)?),
            pages,
            partial: Some(partial(&self.index)),
            ..plain.clone()
        };
        fn texts<'a>(answer: impl Answer + 'a) -> Answers<'a> {
            Answers::Texts(Box::new(answer))
        }
        let mut entries = vec![entry("pleach", texts(Pleach(view)), self.build_s, file_bytes, facts)];
        if let Some((tree, build_s)) = &self.tree {
            let bytes = (tree.nodes.len() + tree.values.len() * 4) as u64;
            entries.push(entry("uncompressed-tree", texts(tree), *build_s, bytes, plain.clone()));
        }
        for (engine, built) in &self.peers {
            let (build_s, bytes) = (built.build.as_secs_f64(), built.peer.bytes());
            let answer = texts(Peer(built.peer.reader()?));
            entries.push(entry(engine.name(), answer, build_s, bytes, plain.clone()));
        }
        Ok(entries)
    }
}

impl Entry<'_> {
    /// One timed turn, whose answers are checked afterwards; nanoseconds a query.
    fn turn(&mut self, values: &mut [u32], present: &mut [u64]) -> Result<f64, BenchError> {
        values.fill(!0);
        present.fill(0);
        let start = Instant::now();
        match (&mut self.answer, &self.set.asked) {
            (Answers::Texts(answer), Asked::Texts(queries)) => {
                let parts = values.chunks_mut(BATCH).zip(present.chunks_mut(BATCH / 64));
                for (queries, (values, present)) in queries.view().chunks(BATCH).zip(parts) {
                    answer.answer(queries, values, present)?;
                }
            }
            (Answers::Words(answer), Asked::Words(queries)) => answer.answer(queries, values, present)?,
            _ => unreachable!("entries are made from what is asked"),
        }
        let ns = start.elapsed().as_nanos() as f64 / self.set.asked.len() as f64;
        match &self.set.asked {
            Asked::Texts(queries) => {
                for (at, query) in queries.iter().enumerate() {
                    let key = || query.escape_ascii().to_string();
                    self.check(at, values[at], present, texts::value(query), &key)?;
                }
            }
            Asked::Words(queries) => {
                for (at, &query) in queries.iter().enumerate() {
                    self.check(at, values[at], present, data::value(query), &|| query.to_string())?;
                }
            }
        }
        Ok(ns)
    }

    fn check(
        &self,
        at: usize,
        value: u32,
        present: &[u64],
        expected: u32,
        key: &dyn Fn() -> String,
    ) -> Result<(), BenchError> {
        let there = present[at / 64] >> (at % 64) & 1 == 1;
        if there && value == expected {
            return Ok(());
        }
        Err(BenchError::Wrong {
            engine: self.engine.to_owned(),
            query: at,
            queries: self.set.asked.len(),
            key: key(),
            found: if there { value.to_string() } else { "nothing".to_owned() },
            expected: expected.to_string(),
        })
    }
}

/// All engines of all sets take turns.
fn measure(options: &CompressOptions<'_>, sets: &[Set<'_>], report: &mut Report) -> Result<(), BenchError> {
    let mut entries = Vec::new();
    for set in sets {
        entries.extend(set.entries()?);
    }
    let longest = sets.iter().map(|set| set.asked.len()).max().unwrap_or(0);
    let (mut values, mut present) = (vec![0u32; longest], vec![0u64; longest.div_ceil(64)]);
    let label = sets.iter().map(|set| set.label.as_str()).collect::<Vec<_>>().join(", ");
    for repetition in 0..=options.repetitions {
        options.told.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
        for entry in &mut entries {
            let count = entry.set.asked.len();
            let ns = entry.turn(&mut values[..count], &mut present[..count.div_ceil(64)])?;
            // The first turn fills the caches.
            if repetition > 0 {
                entry.ns.push(ns);
            }
        }
    }
    for entry in entries {
        let huge = (entry.engine == "pleach").then(|| machine::huge_mapped_bytes(&entry.set.path)).flatten();
        let huge_share = huge.map(|huge| huge as f64 / entry.set.summary.file_bytes as f64);
        report.rows.push(Row { huge_share, ..row(options, entry) });
    }
    Ok(())
}

fn row(options: &CompressOptions<'_>, mut entry: Entry<'_>) -> Row {
    entry.ns.sort_by(f64::total_cmp);
    let at = |index: usize| entry.ns.get(index).copied().unwrap_or(f64::NAN);
    Row {
        engine: entry.engine.to_owned(),
        operation: "get",
        key_type: entry.set.key_type,
        value_type: ValueType::U32,
        tuples: entry.set.tuples,
        threads: 1,
        batch: BATCH,
        ns_per_query: at(entry.ns.len() / 2),
        ns_min: at(0),
        ns_max: at(entry.ns.len().saturating_sub(1)),
        queries: options.queries,
        repetitions: options.repetitions,
        build_s: entry.build_s,
        bytes_per_tuple: entry.bytes as f64 / entry.set.tuples.max(1) as f64,
        open_ms: None,
        huge_share: None,
        detail: None,
        texts: Some(entry.facts),
        facts: Facts::default(),
    }
}

/// Returns the type of the keys of a kind.
pub(crate) fn key_type(kind: Kind) -> KeyType {
    match kind.width() {
        Some(width) => KeyType::Fixed(width as u16),
        None => KeyType::Utf8,
    }
}

/// Builds a file from ascending keys and the value of each.
pub(crate) fn build(
    key_type: KeyType,
    keys: &Keys,
    values: &[u32],
    path: &Path,
    options: &BuildOptions,
) -> Result<Summary, BenchError> {
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
    Ok(pleach_builder::build(&mut source, path, options, &Silent)?)
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
    pages.push(("inexact".to_owned(), index.header().inexact_lines));
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

/// Queries of one call.
pub(crate) struct Batch<'a>(pub View<'a>);

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

impl Answer for &Tree {
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
