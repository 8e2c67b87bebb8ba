//! Look-ups on a GPU: what the device can do at best, all algorithms, and what else is installed there, in
//! one run.
//!
//! [`run`] makes tables of several sizes, key types and distributions, copies each to the device once, and
//! measures [`Group`]s of rows on it. Queries are drawn on the device, fresh for each repetition, and every
//! answer of every repetition is compared there with what follows from its key. Limits are measured at the
//! size of each table's own lines, in the same run; a run on a device that is disturbed
//! ([`GpuReport::void`]) says so. Rows are reported as they are measured.

mod auto;
mod built;
pub mod case;
pub mod cpu;
pub mod engines;
mod host;
mod hybrid;
#[cfg(test)]
mod kernel;
pub mod limits;
pub mod measure;
mod near;
pub mod peers;
mod relation;
mod report;
mod reuse;
mod structures;
pub mod tables;
mod unary;

pub use report::{GpuReport, GpuRow, Ratios, SCHEMA};
pub use tables::Keys;

use crate::keys::Distribution;
use crate::{BenchError, Told};
use case::{Asked, Case};
use measure::{Drawn, Meter};
use pleach::{Key, KeyType};
use pleach_gpu::{Algorithm, Gpu, Residence, Stream};
use std::path::PathBuf;
use tables::{Cell, Made, kind_name, size_name};

/// G/s of random 8-byte reads below which a run is void: of an H200, for which the targets are.
pub const RANDOM_READS_MIN: f64 = 36.0;
/// TB/s of a copy on the device below which a run is void.
pub const COPY_TB_MIN: f64 = 3.6;
/// The size at which everything is measured, where it is among the sizes.
const MAIN: u64 = 1 << 26;

/// Rows that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Random reads, copies, launches, the host link: always measured, since ratios need them.
    Limits,
    /// thrust, torch and cupy, where they are installed.
    Peers,
    /// Random batches through the spine: all distributions of keys and kinds of queries.
    Random,
    /// Random batches of present keys by all algorithms.
    Algorithms,
    /// Ascending batches.
    Sorted,
    /// 1, 32 and 1024 queries.
    Small,
    /// From the host and back.
    Host,
    /// Tuple lines and spine, and the classic tree, built on the device.
    Build,
    /// Tuple lines that stay with the host.
    Hybrid,
    /// The choices of `auto`, compared with the best.
    Auto,
    /// Number of batches after which copying a table has paid off.
    Reuse,
    /// Random batches through the spine, for keys by the rules of `bench keys`.
    Keys,
    /// The trees of files, as they lie, for keys by the rules of `bench keys`.
    Structures,
    /// Floors, ceilings, nearest tuples and intervals, beside exact look-ups.
    Near,
    /// Joins and set operations in one pass.
    OnePass,
}

impl Group {
    /// Groups of `bench gpu`, in the order in which they are measured on a table.
    pub const ALL: [Self; 10] = [
        Self::Limits,
        Self::Peers,
        Self::Random,
        Self::Algorithms,
        Self::Sorted,
        Self::Small,
        Self::Host,
        Self::Build,
        Self::Hybrid,
        Self::Auto,
    ];
    /// Groups of `bench gpu-relation`.
    pub const ONE_PASS: [Self; 1] = [Self::OnePass];

    /// All of these and [`Group::Reuse`].
    pub fn every() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain([Self::Keys, Self::Structures, Self::Near, Self::OnePass, Self::Reuse])
    }

    /// Returns the name in reports and arguments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Limits => "limits",
            Self::Peers => "peers",
            Self::Random => "random",
            Self::Algorithms => "algorithms",
            Self::Sorted => "sorted",
            Self::Small => "small",
            Self::Host => "host",
            Self::Build => "build",
            Self::Hybrid => "hybrid",
            Self::Auto => "auto",
            Self::Reuse => "reuse",
            Self::Keys => "keys",
            Self::Structures => "structures",
            Self::Near => "near",
            Self::OnePass => "one-pass",
        }
    }
}

/// Options of the measurement.
pub struct GpuBenchOptions<'a> {
    /// Tuples of the tables.
    pub tuples: Vec<u64>,
    /// Tuples of the tables on which `auto` is measured, of 8-byte keys.
    pub auto_tuples: Vec<u64>,
    /// Tuples of the tables whose lines stay with the host, of 8-byte keys.
    pub hybrid_tuples: Vec<u64>,
    /// Tuples of the tables of [`Group::Reuse`], of 8-byte keys.
    pub reuse_tuples: Vec<u64>,
    /// Rules of [`Group::Keys`].
    pub distributions: Vec<Distribution>,
    /// Key types: `u32`, `u64`; values are of the same type.
    pub key_types: Vec<KeyType>,
    /// Which rows.
    pub groups: Vec<Group>,
    /// Algorithms of [`Group::Algorithms`] at the main size; empty for all.
    pub algorithms: Vec<Algorithm>,
    /// Queries of a large batch.
    pub batch: u64,
    /// Number of repetitions; the median is reported.
    pub repetitions: usize,
    /// Repetitions of what takes microseconds.
    pub short_repetitions: usize,
    /// Random reads of a limit.
    pub reads: u64,
    /// Random reads of a thread in flight that are tried for a limit: of 1, 2, 4, 8, 16.
    pub in_flight: Vec<u16>,
    /// Bytes of a copy on the device, and over the host link.
    pub copy_bytes: u64,
    /// Bytes that are written to empty the caches.
    pub flush_bytes: u64,
    /// Bytes of pinned memory that is read at random.
    pub pinned_bytes: Vec<u64>,
    /// Folder for the files; shared memory or the system's temporary folder if `None`.
    pub dir: Option<PathBuf>,
    /// File of the JSON document, written again after each row.
    pub output: Option<PathBuf>,
    /// True if that may take the place of an index.
    pub force: bool,
    /// Told each row as it comes.
    pub row: Option<&'a dyn Fn(&str)>,
    /// Receives the steps of the run.
    pub told: Told<'a>,
}

impl GpuBenchOptions<'_> {
    /// Tables of 2^24, 2^26 and 2^28 tuples and batches of 2^26; `quick` measures smaller ones.
    #[must_use]
    pub fn new(quick: bool) -> Self {
        Self {
            tuples: if quick { vec![1 << 20, 1 << 22] } else { vec![1 << 24, 1 << 26, 1 << 28] },
            auto_tuples: if quick {
                vec![1 << 16, 1 << 20]
            } else {
                vec![1 << 16, 1 << 20, 1 << 24, 1 << 28]
            },
            hybrid_tuples: if quick { vec![1 << 22] } else { vec![1 << 24, 1 << 28] },
            reuse_tuples: if quick {
                vec![1 << 16, 1 << 20]
            } else {
                vec![1 << 20, 1 << 22, 1 << 24, 1 << 26]
            },
            distributions: Distribution::ALL.to_vec(),
            key_types: vec![KeyType::U32, KeyType::U64],
            groups: Group::ALL.to_vec(),
            algorithms: Vec::new(),
            batch: if quick { 1 << 22 } else { 1 << 26 },
            repetitions: 7,
            short_repetitions: 51,
            reads: if quick { 1 << 24 } else { 1 << 26 },
            in_flight: vec![1, 2, 4, 8, 16],
            copy_bytes: if quick { 1 << 28 } else { 1 << 30 },
            flush_bytes: 1 << 28,
            pinned_bytes: if quick { vec![1 << 28] } else { vec![1 << 28, 1 << 32] },
            dir: None,
            output: None,
            force: false,
            row: None,
            told: Told::default(),
        }
    }

    /// Options for joins and set operations in one pass: 2^24, 2^26 and 2^27 tuples a side, a copy of 2 GiB.
    #[must_use]
    pub fn of_relations(quick: bool) -> Self {
        Self {
            tuples: if quick { vec![1 << 18, 1 << 20] } else { vec![1 << 24, 1 << 26, 1 << 27] },
            groups: Group::ONE_PASS.to_vec(),
            copy_bytes: if quick { 1 << 28 } else { 2 << 30 },
            ..Self::new(quick)
        }
    }

    /// Options for keys by rules: 2^24 and 2^26 tuples of 8-byte keys.
    #[must_use]
    pub fn of_keys(quick: bool) -> Self {
        Self {
            tuples: if quick { vec![1 << 18, 1 << 20] } else { vec![1 << 24, 1 << 26] },
            key_types: vec![KeyType::U64],
            groups: vec![Group::Keys],
            ..Self::new(quick)
        }
    }

    /// Options for tuples near keys: 2^22, 2^24 and 2^26 tuples, batches of 2^24.
    #[must_use]
    pub fn of_near(quick: bool) -> Self {
        Self {
            tuples: if quick { vec![1 << 18, 1 << 20] } else { vec![1 << 22, 1 << 24, 1 << 26] },
            groups: vec![Group::Near],
            batch: if quick { 1 << 20 } else { 1 << 24 },
            ..Self::new(quick)
        }
    }

    fn check(&self) -> Result<(), BenchError> {
        let refuse = |text: String| Err(BenchError::Options(text));
        if let Some(other) = self.key_types.iter().find(|kind| !matches!(kind, KeyType::U32 | KeyType::U64)) {
            return refuse(format!("key type {other} is not measured here: use u32 or u64"));
        }
        let tables = [&self.tuples, &self.auto_tuples, &self.hybrid_tuples, &self.reuse_tuples];
        let mut sizes = tables.into_iter().flatten();
        if sizes.any(|&tuples| tuples == 0 || tuples > 1 << 30) {
            return refuse("use 1 to 2^30 tuples".to_owned());
        }
        if self.tuples.is_empty() || self.in_flight.is_empty() {
            return refuse("sizes and reads in flight must be at least 1".to_owned());
        }
        if self.batch == 0 || self.reads == 0 || self.repetitions == 0 || self.short_repetitions == 0 {
            return refuse("queries, reads and repetitions must be at least 1".to_owned());
        }
        Ok(())
    }

    fn has(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }

    /// The size at which everything is measured.
    fn main(&self) -> u64 {
        let last = self.tuples.last().copied().unwrap_or(1);
        if self.tuples.contains(&MAIN) { MAIN } else { last }
    }

    /// Returns true if any group needs tables of `tuples`.
    fn needs_tables(&self) -> bool {
        let without = [
            Group::Limits,
            Group::Hybrid,
            Group::Auto,
            Group::Keys,
            Group::Structures,
            Group::Near,
            Group::OnePass,
        ];
        self.needs_limits() && self.groups.iter().any(|group| !without.contains(group))
    }

    /// Returns true if any group has ratios to limits.
    fn needs_limits(&self) -> bool {
        self.groups.iter().any(|group| Group::ALL.contains(group))
    }
}

/// State that all measurements share.
pub struct Bench<'b> {
    /// Options of the measurement.
    pub options: &'b GpuBenchOptions<'b>,
    /// The device.
    pub gpu: &'b Gpu,
    /// The stream of all work.
    pub stream: Stream,
    /// Times work on the stream.
    pub meter: Meter,
}

impl Bench<'_> {
    /// Adds a row and tells it.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`] if the caller wants to stop; others if the document cannot be written.
    pub fn push(&self, report: &mut GpuReport, row: GpuRow) -> Result<(), BenchError> {
        let line = report.push(row)?;
        if let Some(tell) = self.options.row {
            tell(&line);
        }
        if self.options.told.cancelled.is_some_and(|cancelled| cancelled()) {
            return Err(BenchError::Interrupted);
        }
        Ok(())
    }
}

/// Measures everything that `options` ask for, on the first device.
///
/// # Errors
/// [`BenchError::Gpu`] without a device, [`BenchError`] for what keeps tables from being built. An
/// algorithm that fails is a row that says so.
pub fn run(options: &GpuBenchOptions<'_>) -> Result<GpuReport, BenchError> {
    options.check()?;
    refuse_nothing(options)?;
    run_on(&Gpu::open(0)?, options)
}

/// As [`run`], on a device that is open.
///
/// # Errors
/// As [`run`].
pub fn run_on(gpu: &Gpu, options: &GpuBenchOptions<'_>) -> Result<GpuReport, BenchError> {
    refuse_nothing(options)?;
    run_with(gpu, options, |_, _| Vec::new(), |_, _| Ok(()))
}

fn refuse_nothing(options: &GpuBenchOptions<'_>) -> Result<(), BenchError> {
    if options.groups.is_empty() {
        return Err(BenchError::Options("groups must be at least 1".to_owned()));
    }
    Ok(())
}

/// As [`run_on`], followed by `more`, whose rows have fields that `ratios` adds.
///
/// # Errors
/// As [`run`], and those of `more`.
pub fn run_with(
    gpu: &Gpu,
    options: &GpuBenchOptions<'_>,
    ratios: Ratios,
    more: impl FnOnce(&Bench<'_>, &mut GpuReport) -> Result<(), BenchError>,
) -> Result<GpuReport, BenchError> {
    options.check()?;
    let mut report = GpuReport::new(gpu.device(), options.output.clone(), options.force).with_ratios(ratios);
    if cfg!(debug_assertions) {
        report.note("this is a debug build: build with --release for times that mean something".to_owned());
    }
    // Compiles beside what is measured first.
    let peers = options.has(Group::Peers).then(|| peers::Peers::start(gpu.device().compute));
    let stream = Stream::new(gpu)?;
    let meter = Meter::new(&stream, options.flush_bytes)?;
    let bench = Bench { options, gpu, stream, meter };
    if options.needs_limits() {
        limits::measure(&bench, &mut report)?;
    }
    let expected = match peers {
        Some(peers) => peers.run(&bench, &mut report)?,
        None => Vec::new(),
    };
    let mut sizes = if options.needs_tables() { options.tuples.clone() } else { Vec::new() };
    if options.has(Group::Auto) {
        sizes.extend(&options.auto_tuples);
    }
    if options.has(Group::Hybrid) {
        sizes.extend(&options.hybrid_tuples);
    }
    if [Group::Keys, Group::Structures, Group::Near].into_iter().any(|group| options.has(group)) {
        sizes.extend(&options.tuples);
    }
    sizes.sort_unstable();
    sizes.dedup();
    for &tuples in &sizes {
        for &key_type in &options.key_types {
            match key_type {
                KeyType::U32 => tables_of_size::<u32>(&bench, tuples, &expected, &mut report)?,
                _ => tables_of_size::<u64>(&bench, tuples, &expected, &mut report)?,
            }
        }
    }
    if options.has(Group::Reuse) {
        reuse::measure(&bench, &mut report)?;
    }
    more(&bench, &mut report)?;
    if options.has(Group::OnePass) {
        relation::measure(&bench, &mut report)?;
        unary::measure(&bench, &mut report)?;
    }
    report.finish()?;
    Ok(report)
}

/// All tables of a size and a key type.
fn tables_of_size<T: Cell>(
    bench: &Bench<'_>,
    tuples: u64,
    expected: &[peers::Expected],
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let options = bench.options;
    let is_listed = options.tuples.contains(&tuples) && options.needs_tables();
    for kind in Keys::ALL {
        // `auto` and `hybrid` are measured with keys of 8 bytes alone.
        let is_wide = T::BYTES == 8 && kind == Keys::Uniform;
        let is_auto = is_wide && options.has(Group::Auto) && options.auto_tuples.contains(&tuples);
        let is_hybrid = is_wide && options.has(Group::Hybrid) && options.hybrid_tuples.contains(&tuples);
        let is_plain = is_listed && (kind == Keys::Uniform || options.has(Group::Random));
        if !(is_plain || is_auto || is_hybrid) {
            continue;
        }
        let (key_type, size) = (<T as Key>::TYPE.to_string(), size_name(tuples));
        options.told.step(&format!("{size} x {key_type}, {}: building", kind.name()))?;
        let made = tables::make::<T>(kind, tuples, options.dir.as_deref())?;
        let names = [key_type.as_str(), size.as_str()];
        if is_plain || is_auto {
            on_device(bench, &made, kind, tuples, names, (is_plain, is_auto), expected, report)?;
        }
        if is_auto || is_hybrid {
            hybrid::measure(bench, &made, (is_auto, is_hybrid), tuples, names, report)?;
        }
    }
    if options.has(Group::Keys) && options.tuples.contains(&tuples) && T::BYTES == 8 {
        for &rule in &options.distributions {
            by_rule::<T>(bench, rule, tuples, report)?;
        }
    }
    if options.has(Group::Near) && options.tuples.contains(&tuples) {
        near::measure::<T>(bench, tuples, report)?;
    }
    if options.has(Group::Structures) && options.tuples.contains(&tuples) {
        // Rules give keys of 8 bytes.
        let rules = options.distributions.iter().filter(|_| T::BYTES == 8);
        let ruled: Vec<Keys> = rules.map(|&rule| Keys::Ruled(rule)).collect();
        for kind in if T::BYTES == 8 { ruled } else { vec![Keys::Uniform] } {
            structures::measure::<T>(bench, kind, tuples, report)?;
        }
    }
    Ok(())
}

/// A table on the device, and a sample of batches compared with the CPU. `None` if the table does not fit: a
/// row says why.
fn checked_case<'b, 'i, T: Cell>(
    bench: &'b Bench<'b>,
    made: &'i Made<T>,
    kind: Keys,
    names: [&str; 2],
    report: &mut GpuReport,
) -> Result<Option<Case<'b, 'i>>, BenchError> {
    let options = bench.options;
    let case = match Case::new(bench, made, options.batch, Residence::Device) {
        Ok(case) => case,
        Err(error) => {
            let row = GpuRow::new("table", kind.name(), &names);
            bench.push(report, case::failed(row, error.into())?)?;
            return Ok(None);
        }
    };
    let sample = options.batch.min(1 << 16);
    tables::check_sample::<T>(&case.maker, &bench.stream, &made.index, sample, &options.told)?;
    Ok(Some(case))
}

/// Batches on a table of keys that follow a rule, present and half of them absent.
fn by_rule<T: Cell>(
    bench: &Bench<'_>,
    rule: Distribution,
    tuples: u64,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let options = bench.options;
    let (key_type, size) = (<T as Key>::TYPE.to_string(), size_name(tuples));
    options.told.step(&format!("{size} x {key_type}, {}: building", rule.name()))?;
    let kind = Keys::Ruled(rule);
    let made = tables::make::<T>(kind, tuples, options.dir.as_deref())?;
    let Some(case) = checked_case(bench, &made, kind, [&key_type, &size], report)? else { return Ok(()) };
    for drawn in [Drawn::Present, Drawn::HalfAbsent] {
        let parts = [key_type.as_str(), &size, rule.name(), kind_name(drawn)];
        let row = case.row("keys", &parts, Asked::new(bench, Algorithm::Spine, drawn, options.batch))?;
        bench.push(report, row.with("tuples", made.keys.len()))?;
    }
    Ok(())
}

/// Everything that is measured with the table on the device.
#[allow(clippy::too_many_arguments, reason = "each is another thing")]
fn on_device<T: Cell>(
    bench: &Bench<'_>,
    made: &Made<T>,
    kind: Keys,
    tuples: u64,
    names: [&str; 2],
    (is_plain, is_auto): (bool, bool),
    expected: &[peers::Expected],
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let Some(case) = checked_case(bench, made, kind, names, report)? else { return Ok(()) };
    if is_plain {
        on_table(&case, made, kind, tuples, names, expected, report)?;
    }
    if is_auto {
        auto::measure(&case, names, "device", report)?;
    }
    Ok(())
}

/// Everything that is measured on one table.
fn on_table<T: Cell>(
    case: &Case<'_, '_>,
    made: &Made<T>,
    kind: Keys,
    tuples: u64,
    [key_type, size]: [&str; 2],
    expected: &[peers::Expected],
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let (bench, options) = (case.bench, case.bench.options);
    let is_main = tuples == options.main();
    let is_uniform = kind == Keys::Uniform;
    if is_uniform {
        peers::check(case, [key_type, size], expected, report)?;
    }
    if options.has(Group::Random) {
        for drawn in [Drawn::Present, Drawn::HalfAbsent, Drawn::Zipf] {
            for algorithm in engines::of_random_batches() {
                let parts = [key_type, size, kind.name(), kind_name(drawn)];
                let asked = Asked::new(bench, algorithm, drawn, options.batch);
                let row = case.row("random", &parts, asked)?;
                bench.push(report, row)?;
            }
        }
    }
    if !is_uniform {
        return Ok(());
    }
    if options.has(Group::Sorted) {
        for batch in batches(options.batch) {
            for algorithm in engines::of_sorted_batches() {
                let parts = [key_type, size, &size_name(batch)];
                let row =
                    case.row("sorted", &parts, Asked::new(bench, algorithm, Drawn::Ascending, batch))?;
                bench.push(report, row)?;
            }
        }
    }
    if options.has(Group::Small) && is_main {
        for count in [1, 32, 1024] {
            for algorithm in engines::of_short_batches() {
                let row = short(case, algorithm, [key_type, size], count)?;
                bench.push(report, row)?;
            }
        }
    }
    if options.has(Group::Host) && is_main {
        host::measure::<T>(case, [key_type, size], report)?;
    }
    if options.has(Group::Build) && is_main {
        built::measure(case, made, [key_type, size], report)?;
    }
    if options.has(Group::Algorithms) {
        let all = if options.algorithms.is_empty() { engines::all() } else { options.algorithms.clone() };
        for algorithm in if is_main { all } else { engines::some() } {
            let parts = [key_type, size];
            let asked = Asked::new(bench, algorithm, Drawn::Present, options.batch);
            let row = case.row("algorithms", &parts, asked)?;
            bench.push(report, row)?;
            if algorithm != Algorithm::Spine {
                case.table.release(algorithm);
            }
        }
    }
    Ok(())
}

/// The two lengths of ascending batches.
fn batches(most: u64) -> Vec<u64> {
    let less = (most >> 4).max(1);
    if less < most { vec![less, most] } else { vec![most] }
}

/// A row of a few queries, caches empty.
///
/// # Errors
/// [`BenchError::Gpu`] if the device is lost.
pub fn short(
    case: &Case<'_, '_>,
    algorithm: Algorithm,
    [key_type, size]: [&str; 2],
    count: u64,
) -> Result<GpuRow, BenchError> {
    let row = GpuRow::new("small", &engines::label(algorithm), &[key_type, size, &count.to_string()]);
    let repetitions = case.bench.options.short_repetitions;
    let plain = Asked::new(case.bench, algorithm, Drawn::Present, count);
    match case.time(Asked { repetitions, is_flushed: true, ..plain }) {
        Ok(times) => {
            let us: Vec<f64> = times.ms.iter().map(|ms| ms * 1e3).collect();
            let (median, least, most) = crate::report::spread(&us);
            let row = row.with("batch", count).with("repetitions", us.len()).with("compared", times.compared);
            Ok(row.number("us", median).number("us_min", least).number("us_max", most))
        }
        Err(trouble) => case::failed(row, trouble),
    }
}
