//! Point look-ups: random keys to their values, in Pleach, in its peers, and in the limit. Keys are present
//! by default.
//!
//! For each data set every table is built first, from the same sorted tuples; then repetitions are
//! measured in which all engines take their turn. An engine that needs more than
//! `SLOW_NS` a query answers a different share of the queries in each repetition instead of all.
//! Before each turn the answer buffers are overwritten, after it each answer is compared.

use crate::data::{self, Queries};
use crate::limit::{FORMS, Form, MappedLines};
use crate::machine::{self, Machine};
use crate::report::{Facts, Report, Row, spread};
use crate::{BenchError, Told};
use pleach::{Index, Key, KeyType, Structure, Typed, Value};
use pleach_builder::BuildOptions;
use pleach_peers::{Built, Engine, Number, Reader};
use rayon::ThreadPool;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Name of the limit in reports.
const LIMIT: &str = "limit-one-line";
/// From this time a query an engine is asked a share of the queries only.
const SLOW_NS: f64 = 250.0;
/// One in how many queries a slow engine answers in a repetition.
const SLOW_SHARE: usize = 8;
/// Maximum number of tuples for which stores are built by default: redb and fst take minutes for more.
const STORE_TUPLES_MAX: u64 = 1 << 24;
/// Most tuples for which a quick run builds a B-tree map.
const QUICK_BTREE_TUPLES_MAX: u64 = 1 << 24;

/// Options of the measurement.
pub struct LookupOptions<'a> {
    /// Sizes of the data sets.
    pub tuples: Vec<u64>,
    /// Key types (`u32`, `u64`); values have the type of their keys.
    pub key_types: Vec<KeyType>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Queries of one call; whole multiples of 64.
    pub batch: usize,
    /// Also measure one call with all queries.
    pub whole: bool,
    /// Queries of one repetition.
    pub queries: usize,
    /// Kinds of queries, one after the other in the same run.
    pub kinds: Vec<Queries>,
    /// Number of repetitions; the median is reported.
    pub repetitions: usize,
    /// Folder for the files, on a real file system; the system's temporary folder if `None`. They are
    /// removed afterwards.
    pub dir: Option<PathBuf>,
    /// Leave out what takes long.
    pub quick: bool,
    /// Measure every engine at every size, however long it takes to build.
    pub all_peers: bool,
    /// Also measure files with one search structure each, by batches and key by key; no other engines.
    pub structures: bool,
    /// Receives the steps of the run.
    pub told: Told<'a>,
}

impl Default for LookupOptions<'_> {
    /// 2^24 and 2^26 tuples of both types, one thread and all, 5 repetitions of 2^22 queries in calls
    /// of 2^14, all of them hits.
    fn default() -> Self {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            tuples: vec![1 << 24, 1 << 26],
            key_types: vec![KeyType::U32, KeyType::U64],
            threads: if all > 1 { vec![1, all] } else { vec![1] },
            batch: 1 << 14,
            whole: true,
            queries: 1 << 22,
            kinds: vec![Queries::Hits],
            repetitions: 5,
            dir: None,
            quick: false,
            all_peers: false,
            structures: false,
            told: Told::default(),
        }
    }
}

impl LookupOptions<'_> {
    /// 2^20 and 2^22 tuples, half the queries: a minute or two with every engine.
    #[must_use]
    pub fn quick() -> Self {
        Self { tuples: vec![1 << 20, 1 << 22], queries: 1 << 21, quick: true, ..Self::default() }
    }

    pub(crate) fn check(&self) -> Result<(), BenchError> {
        let refuse = |text: String| Err(BenchError::Options(text));
        if let Some(other) = self.key_types.iter().find(|kind| !matches!(kind, KeyType::U32 | KeyType::U64)) {
            return refuse(format!("key type {other} is not measured: use u32 or u64"));
        }
        if self.tuples.contains(&0) {
            return refuse("0 tuples cannot be measured: use at least 1".to_owned());
        }
        if self.key_types.contains(&KeyType::U32)
            && self.tuples.iter().any(|&tuples| tuples > u64::from(u32::MAX))
        {
            return refuse("there are fewer than 2^32 distinct u32 keys: use fewer tuples or u64".to_owned());
        }
        if self.batch == 0 || !self.batch.is_multiple_of(64) {
            return refuse(format!("{} queries a call: use a multiple of 64", self.batch));
        }
        if self.kinds.is_empty() || self.queries == 0 || self.repetitions == 0 || self.threads.contains(&0) {
            return refuse("kinds, queries, repetitions and threads must be at least 1".to_owned());
        }
        Ok(())
    }
}

/// Measures everything that `options` ask for.
///
/// # Errors
/// [`BenchError`]: whatever keeps an engine from being built or searched, and a wrong answer of any.
pub fn run(options: &LookupOptions<'_>) -> Result<Report, BenchError> {
    options.check()?;
    let mut report = Report { machine: Machine::this(), rows: Vec::new(), notes: Vec::new() };
    report.warn_of_debug_builds();
    for &tuples in &options.tuples {
        for &key_type in &options.key_types {
            match key_type {
                KeyType::U32 => data_set::<u32>(options, tuples, &mut report)?,
                _ => data_set::<u64>(options, tuples, &mut report)?,
            }
        }
    }
    Ok(report)
}

/// Queries of one kind, and which of them are for present keys.
struct Asked<T> {
    kind: Queries,
    queries: Vec<T>,
    there: Vec<u64>,
}

/// Queries and where their answers go.
struct Buffers<T> {
    asked: Vec<Asked<T>>,
    values: Vec<T>,
    present: Vec<u64>,
}

/// One engine in one way of asking.
pub(crate) trait Subject<T: Number> {
    /// The timed part: answers all `queries`.
    fn answer(&mut self, queries: &[T], values: &mut [T], present: &mut [u64]) -> Result<(), BenchError>;
    /// The part that is not timed: whether each answer is right. Bits of `there` tell which keys are present.
    fn check(
        &self,
        engine: &str,
        queries: &[T],
        there: &[u64],
        answers: (&[T], &[u64]),
    ) -> Result<(), BenchError> {
        check_presence(engine, queries, there, answers)
    }
}

/// Compares each answer with what follows from its key, which is present.
pub(crate) fn check_answers<T: Number>(
    engine: &str,
    queries: &[T],
    values: &[T],
    present: &[u64],
) -> Result<(), BenchError> {
    check_presence(engine, queries, &vec![u64::MAX; present.len()], (values, present))
}

/// Compares each answer with what follows from its key and from whether that is present.
fn check_presence<T: Number>(
    engine: &str,
    queries: &[T],
    there: &[u64],
    (values, present): (&[T], &[u64]),
) -> Result<(), BenchError> {
    let bit = |bits: &[u64], query: usize| bits[query / 64] >> (query % 64) & 1 == 1;
    for (query, (&key, &found)) in queries.iter().zip(values).enumerate() {
        let (is_present, is_there) = (bit(present, query), bit(there, query));
        let expected: T = if is_there { data::value(key) } else { T::default() };
        if is_present != is_there || found != expected {
            let text = |is: bool, value: T| if is { value.widen().to_string() } else { "absent".to_owned() };
            return Err(BenchError::Wrong {
                engine: engine.to_owned(),
                query,
                queries: queries.len(),
                key: key.widen().to_string(),
                found: text(is_present, found),
                expected: text(is_there, expected),
            });
        }
    }
    Ok(())
}

/// Splits queries and answers into calls of `batch` queries.
fn calls<'b, T>(
    batch: usize,
    queries: &'b [T],
    values: &'b mut [T],
    present: &'b mut [u64],
) -> impl Iterator<Item = (&'b [T], &'b mut [T], &'b mut [u64])> {
    let answers = values.chunks_mut(batch).zip(present.chunks_mut(batch.div_ceil(64)));
    queries.chunks(batch).zip(answers).map(|(queries, (values, present))| (queries, values, present))
}

/// Batches of a view: on one thread, or on each of several its own part of the queries.
pub(crate) struct Pleach<'a, T: Key + Value> {
    pub(crate) view: Typed<'a, T, T>,
    pub(crate) batch: usize,
    /// A pool of so many threads.
    pub(crate) pool: Option<(&'a ThreadPool, usize)>,
}

impl<T: Number + Key + Value> Subject<T> for Pleach<'_, T> {
    fn answer(&mut self, queries: &[T], values: &mut [T], present: &mut [u64]) -> Result<(), BenchError> {
        let answer = |view: &mut Typed<'_, T, T>, queries: &[T], values: &mut [T], present: &mut [u64]| {
            for (queries, values, present) in calls(self.batch, queries, values, present) {
                view.get_batch(queries, values, present)?;
            }
            Ok(())
        };
        match self.pool {
            None => answer(&mut self.view, queries, values, present),
            Some((pool, threads)) => {
                apart(pool, &mut vec![self.view; threads], queries, (values, present), answer)
            }
        }
    }
}

/// Files with one search structure each, beside the default.
const STRUCTURES: &[(&str, &str, Structure)] = &[
    ("pleach-spine", "lines,spine", Structure::Spine),
    ("pleach-fast-full", "lines,fast:full", Structure::Fast),
    ("pleach-fast-delta", "lines,fast:delta", Structure::Fast),
    ("pleach-fast-partial", "lines,fast:partial", Structure::Fast),
    ("pleach-fast-auto", "lines,fast:auto", Structure::Fast),
    ("pleach-harmonia", "lines,harmonia:64:100", Structure::Harmonia),
    ("pleach-btree", "lines,btree:64", Structure::Btree),
];

/// Look-ups of a view, one key after the other.
struct OneByOne<'a, T: Key + Value> {
    view: Typed<'a, T, T>,
}

impl<T: Number + Key + Value> Subject<T> for OneByOne<'_, T> {
    fn answer(&mut self, queries: &[T], values: &mut [T], present: &mut [u64]) -> Result<(), BenchError> {
        for (at, (&query, value)) in queries.iter().zip(values).enumerate() {
            let found = self.view.get(query)?;
            *value = found.unwrap_or_default();
            present[at / 64] |= u64::from(found.is_some()) << (at % 64);
        }
        Ok(())
    }
}

/// Batches of a view, each divided among all threads.
struct Shared<'a, T: Key + Value> {
    view: Typed<'a, T, T>,
    batch: usize,
    pool: &'a ThreadPool,
}

impl<T: Number + Key + Value> Subject<T> for Shared<'_, T> {
    fn answer(&mut self, queries: &[T], values: &mut [T], present: &mut [u64]) -> Result<(), BenchError> {
        self.pool.install(|| {
            for (queries, values, present) in calls(self.batch, queries, values, present) {
                self.view.par_get_batch(queries, values, present)?;
            }
            Ok(())
        })
    }
}

/// Gives each of some readers, on a thread of its own, its part of the queries: whole words of presence bits.
fn apart<T: Number, R: Send>(
    pool: &ThreadPool,
    readers: &mut [R],
    queries: &[T],
    (values, present): (&mut [T], &mut [u64]),
    answer: impl Fn(&mut R, &[T], &mut [T], &mut [u64]) -> Result<(), BenchError> + Sync,
) -> Result<(), BenchError> {
    let part = queries.len().div_ceil(readers.len()).next_multiple_of(64);
    let mut results: Vec<Result<(), BenchError>> = readers.iter().map(|_| Ok(())).collect();
    let answer = &answer;
    pool.scope(|scope| {
        let parts = calls(part, queries, values, present);
        for ((reader, result), (queries, values, present)) in readers.iter_mut().zip(&mut results).zip(parts)
        {
            scope.spawn(move |_| *result = answer(reader, queries, values, present));
        }
    });
    results.into_iter().collect()
}

struct Peers<'a, T> {
    /// One for each thread.
    readers: Vec<Box<dyn Reader<T, T> + 'a>>,
    batch: usize,
    pool: Option<&'a ThreadPool>,
}

impl<T: Number> Subject<T> for Peers<'_, T> {
    fn answer(&mut self, queries: &[T], values: &mut [T], present: &mut [u64]) -> Result<(), BenchError> {
        let batch = self.batch;
        let answer = |reader: &mut Box<dyn Reader<T, T> + '_>,
                      queries: &[T],
                      values: &mut [T],
                      present: &mut [u64]| {
            for (queries, values, present) in calls(batch, queries, values, present) {
                reader.get_batch(queries, values, present)?;
            }
            Ok::<(), BenchError>(())
        };
        let Some(pool) = self.pool else {
            return self.readers.iter_mut().try_for_each(|reader| answer(reader, queries, values, present));
        };
        apart(pool, &mut self.readers, queries, (values, present), answer)
    }
}

struct Limit<'a> {
    lines: &'a MappedLines,
    form: Form,
    threads: usize,
    pool: Option<&'a ThreadPool>,
    sum: u64,
    /// Expected sums by number of queries, shared by all forms, because computing one takes as long as the
    /// measurement.
    expected: &'a RefCell<HashMap<usize, u64>>,
}

/// The draws of one of `threads` threads: the first and how many.
fn part_of(queries: usize, threads: usize, thread: usize) -> (u64, u64) {
    let part = queries.div_ceil(threads);
    let first = (part * thread).min(queries);
    (first as u64, part.min(queries - first) as u64)
}

impl<T: Number> Subject<T> for Limit<'_> {
    fn answer(&mut self, queries: &[T], _: &mut [T], _: &mut [u64]) -> Result<(), BenchError> {
        let (lines, form, threads, queries) = (self.lines.lines(), self.form, self.threads, queries.len());
        self.sum = match self.pool {
            None => form.read(lines, 0, queries as u64),
            Some(pool) => {
                let sums = pool.broadcast(|context| {
                    let (first, count) = part_of(queries, threads, context.index());
                    form.read(lines, first, count)
                });
                sums.into_iter().fold(0, u64::wrapping_add)
            }
        };
        Ok(())
    }

    fn check(&self, engine: &str, queries: &[T], _: &[u64], _: (&[T], &[u64])) -> Result<(), BenchError> {
        let plain = || Form::Plain.read(self.lines.lines(), 0, queries.len() as u64);
        let expected = *self.expected.borrow_mut().entry(queries.len()).or_insert_with(plain);
        if self.sum == expected {
            return Ok(());
        }
        Err(BenchError::Wrong {
            engine: format!("{engine} ({})", self.form.name()),
            query: 0,
            queries: queries.len(),
            key: "all".to_owned(),
            found: self.sum.to_string(),
            expected: expected.to_string(),
        })
    }
}

/// A subject, what is known about its table, and its times.
struct Entry<'a, T: Number> {
    subject: Box<dyn Subject<T> + 'a>,
    engine: &'static str,
    threads: usize,
    batch: usize,
    build: Duration,
    bytes: u64,
    open: Option<Duration>,
    detail: Option<String>,
    is_slow: bool,
    /// Times by kind of queries.
    ns: Vec<Vec<f64>>,
}

impl<'a, T: Number> Entry<'a, T> {
    /// `table` is what its table took: time to build and bytes.
    fn new(
        subject: impl Subject<T> + 'a,
        engine: &'static str,
        threads: usize,
        batch: usize,
        table: (Duration, u64),
    ) -> Self {
        let (build, bytes) = table;
        let subject = Box::new(subject);
        Self {
            subject,
            engine,
            threads,
            batch,
            build,
            bytes,
            open: None,
            detail: None,
            is_slow: false,
            ns: Vec::new(),
        }
    }

    /// The queries of a repetition: all, or the share whose turn it is.
    fn turn(&self, queries: usize, repetition: usize) -> std::ops::Range<usize> {
        if !self.is_slow {
            return 0..queries;
        }
        let share = (queries / SLOW_SHARE).next_multiple_of(64).min(queries);
        let start = share * (repetition % SLOW_SHARE);
        if start + share > queries { 0..share } else { start..start + share }
    }

    /// One timed and checked turn with queries of one kind; nanoseconds a query.
    fn measure(
        &mut self,
        buffers: &mut Buffers<T>,
        kind: usize,
        turn: std::ops::Range<usize>,
    ) -> Result<f64, BenchError> {
        let words = turn.start / 64..turn.end.div_ceil(64);
        let asked = &buffers.asked[kind];
        let (queries, there) = (&asked.queries[turn.clone()], &asked.there[words.clone()]);
        let values = &mut buffers.values[turn];
        let present = &mut buffers.present[words];
        // No answer of an earlier turn may pass for one of this; and the pages are there.
        values.fill(T::narrow(0x5A5A_5A5A_5A5A_5A5A));
        present.fill(0);
        let start = Instant::now();
        self.subject.answer(queries, values, present)?;
        let elapsed = start.elapsed();
        self.subject.check(self.engine, queries, there, (values, present))?;
        Ok(elapsed.as_nanos() as f64 / queries.len() as f64)
    }
}

/// Roughly what an engine's table needs in memory; 0 for stores, which live in the page cache.
fn memory_bytes(engine: Engine, tuples: u64, tuple_bytes: u64) -> u64 {
    match engine {
        Engine::Hashbrown => {
            (tuples.saturating_mul(8) / 7).next_power_of_two().saturating_mul(tuple_bytes + 1)
        }
        Engine::BTreeMap => tuples.saturating_mul(tuple_bytes * 3 / 2),
        Engine::BinarySearch => tuples.saturating_mul(tuple_bytes),
        Engine::Probing => tuples.saturating_mul(tuple_bytes * 8 / 5),
        // While it is built there are its keys and their hashes, too.
        Engine::PerfectHash => tuples.saturating_mul(tuple_bytes + 40),
        Engine::SearchTree => tuples.saturating_mul(tuple_bytes * 2),
        _ => 0,
    }
}

/// A built peer and which it is.
pub(crate) type NamedPeer<T> = (Engine, Built<T, T>);

/// A table to measure.
pub(crate) struct Case<'a, T> {
    /// Name of the rule of its keys, for the report.
    pub(crate) keys: Option<&'a str>,
    /// Its tuples; the value of a key is that of [`data::value`].
    pub(crate) tuples: Vec<(T, T)>,
    /// Which engines are measured with it.
    pub(crate) engines: &'a dyn Fn(Engine) -> bool,
    /// Draws queries.
    pub(crate) draw: &'a Draw<T>,
}

/// Draws queries of a kind to tuples: so many, and a bit for each, which tells whether its key is present.
type Draw<T> = dyn Fn(Queries, &[(T, T)], usize) -> (Vec<T>, Vec<u64>);

/// Builds the peers that are measured with a table, and notes why others are not.
fn build_peers<T: Number>(
    options: &LookupOptions<'_>,
    case: &Case<'_, T>,
    folder: &std::path::Path,
    label: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<NamedPeer<T>>, BenchError> {
    let count = case.tuples.len() as u64;
    let mut built = Vec::new();
    let engines = Engine::AVAILABLE.iter().filter(|&&engine| (case.engines)(engine));
    for &engine in engines.filter(|engine| engine.takes_numbers_of(T::BYTES)) {
        let name = engine.name();
        if !options.all_peers && engine.is_store() && count > STORE_TUPLES_MAX {
            notes.push(format!("{name} is left out at {label}: stores are measured up to 2^24 tuples"));
            continue;
        }
        if options.quick && !options.all_peers && engine == Engine::BTreeMap && count > QUICK_BTREE_TUPLES_MAX
        {
            notes.push(format!("{name} is left out at {label}: it takes long, run without --quick"));
            continue;
        }
        let needed = memory_bytes(engine, count, 2 * T::BYTES as u64);
        if machine::meminfo("MemAvailable").is_some_and(|available| needed > available / 10 * 9) {
            notes.push(format!(
                "{name} is left out at {label}: it needs about {} MiB of memory",
                needed >> 20
            ));
            continue;
        }
        options.told.step(&format!("{label}: building {name}"))?;
        built.push((engine, engine.build(&case.tuples, folder)?));
    }
    Ok(built)
}

fn data_set<T: Number + Key + Value>(
    options: &LookupOptions<'_>,
    count: u64,
    report: &mut Report,
) -> Result<(), BenchError> {
    options.told.step(&format!("{count} x ({0},{0}): generating", <T as Key>::TYPE))?;
    let tuples: Vec<(T, T)> = data::tuples(count);
    // The search tree's look-ups are those of `bench keys`.
    let engines = |engine| engine != Engine::SearchTree || options.all_peers;
    let draw = |kind: Queries, tuples: &[(T, T)], count| kind.draw(tuples, count);
    measure(options, Case { keys: None, tuples, engines: &engines, draw: &draw }, report)
}

/// Measures all engines with one table.
pub(crate) fn measure<T: Number + Key + Value>(
    options: &LookupOptions<'_>,
    case: Case<'_, T>,
    report: &mut Report,
) -> Result<(), BenchError> {
    let key_type = <T as Key>::TYPE;
    let value_type = <T as Value>::TYPE;
    let name = case.keys.map_or(String::new(), |name| format!(" {name}"));
    let label = format!("{} x ({key_type},{value_type}){name}", case.tuples.len());
    let folder = crate::folder(options.dir.as_deref())?;

    options.told.step(&format!("{label}: building pleach"))?;
    let path = folder.path().join("lookup.pleach");
    let start = Instant::now();
    let summary = pleach_builder::build_slice(&case.tuples, &path, &BuildOptions::default())?;
    let build = start.elapsed();
    let mut others = Vec::new();
    // What the grid brings, and what it may cost, shows beside the spine alone.
    let wanted = if options.structures { STRUCTURES } else { &STRUCTURES[..1] };
    for &(engine, layout, structure) in wanted.iter().filter(|_| case.keys.is_some()) {
        if T::BYTES == 4 && layout.contains("partial") {
            continue;
        }
        options.told.step(&format!("{label}: building {engine}"))?;
        let layout = layout.parse().unwrap_or_default();
        let built = BuildOptions::default().with_layout(layout);
        let (path, start) = (folder.path().join(engine), Instant::now());
        let summary = pleach_builder::build_slice(&case.tuples, &path, &built)?;
        let table = (start.elapsed(), summary.file_bytes);
        others.push((engine, table, Index::options().structure(structure).open(&path)?));
    }
    let peers = build_peers(options, &case, folder.path(), &label, &mut report.notes)?;

    let asked = |&kind: &Queries| {
        let (queries, there) = (case.draw)(kind, &case.tuples, options.queries);
        Asked { kind, queries, there }
    };
    let asked: Vec<Asked<T>> = options.kinds.iter().map(asked).collect();
    let count = asked[0].queries.len();
    let mut buffers =
        Buffers { asked, values: vec![T::default(); count], present: vec![0; count.div_ceil(64)] };
    let keys = case.keys.map(str::to_owned);
    drop(case);

    let start = Instant::now();
    let index = Index::open(&path)?;
    let view = index.typed::<T, T>()?;
    view.get(buffers.asked[0].queries[0])?;
    let open = start.elapsed();
    let lines = MappedLines::open(&path, index.header())?;
    let pools = options
        .threads
        .iter()
        .map(|&threads| {
            let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            Ok((threads, if threads > 1 { Some(pool()?) } else { None }))
        })
        .collect::<Result<Vec<(usize, Option<ThreadPool>)>, BenchError>>()?;

    let sums = RefCell::default();
    let mut entries: Vec<Entry<'_, T>> = Vec::new();
    for (threads, pool) in &pools {
        let (threads, pool) = (*threads, pool.as_ref());
        let table = (build, summary.file_bytes);
        let mut batches = vec![options.batch];
        // A call with all queries; its length keeps the presence words whole.
        let whole = count.next_multiple_of(64);
        if options.whole && whole > options.batch {
            batches.push(whole);
        }
        let own = pool.map(|pool| (pool, threads));
        for batch in batches {
            let view = index.typed::<T, T>()?;
            let pleach = Entry::new(Pleach { view, batch, pool: own }, "pleach", threads, batch, table);
            entries.push(Entry { open: Some(open), ..pleach });
            if let Some(pool) = pool {
                let shared = Shared { view, batch, pool };
                entries.push(Entry::new(shared, "pleach-par", threads, batch, table));
            }
        }
        for (engine, table, index) in &others {
            let (view, batch) = (index.typed::<T, T>()?, options.batch);
            entries.push(Entry::new(Pleach { view, batch, pool: own }, engine, threads, batch, *table));
            if options.structures && threads == 1 {
                entries.push(Entry::new(OneByOne { view }, engine, 1, 1, *table));
            }
        }
        if options.structures && threads == 1 {
            let view = index.typed::<T, T>()?;
            entries.push(Entry::new(OneByOne { view }, "pleach", 1, 1, table));
        }
        for form in FORMS {
            let limit = Limit { lines: &lines, form, threads, pool, sum: 0, expected: &sums };
            let limit = Entry::new(limit, LIMIT, threads, options.batch, table);
            entries.push(Entry { detail: Some(form.name()), ..limit });
        }
        for (engine, built) in &peers {
            let readers = (0..threads).map(|_| built.peer.reader()).collect::<Result<Vec<_>, _>>()?;
            let batch = options.batch;
            let table = (built.build, built.peer.bytes());
            let peer = Entry::new(Peers { readers, batch, pool }, engine.name(), threads, batch, table);
            entries.push(Entry { open: built.open, ..peer });
        }
    }

    options.told.step(&format!("{label}: warming up"))?;
    for entry in &mut entries {
        // Slow engines show themselves on a few queries; a full turn of the others touches their pages.
        let few = count.min(1 << 14);
        entry.is_slow = entry.measure(&mut buffers, 0, 0..few)? * entry.threads as f64 > SLOW_NS;
        // The lines that a limit reads do not depend on the queries.
        let kinds = if entry.engine == LIMIT { 1 } else { buffers.asked.len() };
        entry.ns = vec![Vec::new(); kinds];
        let turn = entry.turn(count, options.repetitions);
        entry.measure(&mut buffers, 0, turn)?;
    }
    for repetition in 0..options.repetitions {
        options.told.step(&format!("{label}: repetition {} of {}", repetition + 1, options.repetitions))?;
        for entry in &mut entries {
            let turn = entry.turn(count, repetition);
            for kind in 0..entry.ns.len() {
                let ns = entry.measure(&mut buffers, kind, turn.clone())?;
                entry.ns[kind].push(ns);
            }
        }
    }

    let huge_share = machine::huge_mapped_bytes(&path).map(|huge| huge as f64 / summary.file_bytes as f64);
    let mut limits: Vec<Row> = Vec::new();
    // Tables of hits first, then those of the other kinds.
    let rows = buffers.asked.iter().enumerate().flat_map(|(number, asked)| {
        let entries = entries.iter().filter(move |entry| number < entry.ns.len());
        entries.map(move |entry| (asked.kind, entry, &entry.ns[number]))
    });
    for (kind, entry, ns) in rows {
        let (ns_per_query, ns_min, ns_max) = spread(ns);
        let queries = (kind != Queries::Hits).then(|| kind.name().to_owned());
        let row = Row {
            engine: entry.engine.to_owned(),
            operation: "get",
            key_type,
            value_type,
            tuples: summary.tuples,
            threads: entry.threads,
            batch: entry.batch.min(count),
            ns_per_query,
            ns_min,
            ns_max,
            queries: entry.turn(count, 0).len(),
            repetitions: options.repetitions,
            build_s: entry.build.as_secs_f64(),
            bytes_per_tuple: entry.bytes as f64 / summary.tuples as f64,
            open_ms: entry.open.map(|open| open.as_secs_f64() * 1e3),
            huge_share: if entry.engine == "pleach" { huge_share } else { None },
            detail: entry.detail.clone(),
            texts: None,
            facts: Facts { queries, keys: keys.clone(), ..Facts::default() },
        };
        if row.engine != LIMIT {
            report.rows.push(row);
            continue;
        }
        // The best of all forms is the limit.
        match limits.iter_mut().find(|best| best.threads == row.threads) {
            Some(best) if best.ns_per_query <= row.ns_per_query => {}
            Some(best) => *best = row,
            None => limits.push(row),
        }
    }
    report.rows.extend(limits);
    Ok(())
}
