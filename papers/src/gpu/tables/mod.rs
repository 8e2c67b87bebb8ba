//! Tables and figures of papers on a GPU, on the device at hand: a group of rows for each paper.

mod algorithms;
mod apu;
mod fast;
mod harmonia;
mod ratios;
mod relation;
mod slides;
mod strings;

pub use relation::RelationSizes;

use pleach::KeyType;
use pleach_bench::BenchError;
use pleach_bench::gpu::case::{Asked, Case, failed};
use pleach_bench::gpu::measure::Drawn;
use pleach_bench::gpu::tables::{Cell, Keys, Made, make, size_name};
use pleach_bench::gpu::{Bench, GpuBenchOptions, GpuReport, GpuRow, Group, run_with};
use pleach_gpu::{Algorithm, Gpu, Residence};

/// Repetitions of what takes milliseconds at most.
const REPETITIONS: usize = 15;

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// All searches of papers beside those of Pleach, as `pleach bench gpu` measures algorithms.
    Algorithms,
    /// The slides on P-ary search.
    Slides,
    /// The FAST paper.
    Fast,
    /// The paper on B+trees on an APU.
    Apu,
    /// The paper on Harmonia.
    Harmonia,
    /// The paper on relational algebra.
    Relation,
}

/// Options of the measurement.
pub struct Options<'a> {
    /// The papers.
    pub papers: Vec<Paper>,
    /// Tables, batches and repetitions; its groups are measured first.
    pub bench: GpuBenchOptions<'a>,
    /// Sizes of the slides, of FAST and of the APU.
    pub sizes: PaperSizes,
    /// Sizes of relations.
    pub relation: RelationSizes,
    /// Harmonia's trees.
    pub trees: Trees,
}

/// Shapes of Harmonia's trees.
#[derive(Clone, Debug)]
pub struct Trees {
    /// Fanouts; the first one is looked at in every form.
    pub fanouts: Vec<u16>,
    /// Percent to which nodes are filled; the last one is looked at in every form.
    pub fills: Vec<u8>,
}

/// Sizes of the papers' tables.
#[derive(Clone, Debug)]
pub struct PaperSizes {
    /// Tuples of the P-ary slides' list of 4-byte keys.
    pub slides: u64,
    /// Strings of 16 characters of the slides.
    pub strings: u64,
    /// Queries of a batch of the slides, ascending; the last is theirs.
    pub slides_batches: Vec<u64>,
    /// Tuples of the FAST paper's trees, ascending.
    pub fast: Vec<u64>,
    /// Queries of a batch there.
    pub fast_batch: u64,
    /// Tuples of the B+tree of the paper on an APU.
    pub apu: u64,
    /// Tuples of its largest tree, which stays with the host.
    pub apu_pinned: u64,
    /// Queries of its batches, ascending.
    pub apu_batches: Vec<u64>,
    /// Queries of longer batches, which are ours.
    pub apu_more: Vec<u64>,
}

impl PaperSizes {
    /// Those of the papers; `quick` takes smaller tables.
    #[must_use]
    pub fn new(quick: bool) -> Self {
        let shift = if quick { 4 } else { 0 };
        Self {
            slides: 1 << 27 >> shift,
            strings: 1 << 25 >> shift,
            slides_batches: vec![1, 16, 256, 1 << 12, 1 << 16],
            fast: if quick { vec![1 << 16, 1 << 20] } else { (16..=26).step_by(2).map(|k| 1 << k).collect() },
            fast_batch: 1 << 22 >> shift,
            apu: 1 << 22 >> shift,
            apu_pinned: (110 << 20) >> shift,
            apu_batches: vec![1 << 14, 1 << 15, 1 << 16, 1 << 17],
            apu_more: vec![1 << 20, 1 << 22],
        }
    }

    /// Sizes of tables and of batches.
    fn all(&self) -> impl Iterator<Item = u64> {
        let lists = [&self.slides_batches, &self.fast, &self.apu_batches, &self.apu_more];
        let single = [self.slides, self.strings, self.fast_batch, self.apu, self.apu_pinned];
        lists.into_iter().flatten().copied().chain(single)
    }

    /// Returns true if all of them can be measured.
    fn are_possible(&self) -> bool {
        self.all().all(|size| (1..=1 << 30).contains(&size))
            && !self.slides_batches.is_empty()
            && !self.apu_batches.is_empty()
    }
}

impl Options<'_> {
    /// Returns the sizes of a paper; `quick` takes smaller tables.
    ///
    /// For Harmonia these are tables of 2^23 to 2^26 tuples of 8-byte keys and 10^8 queries, and the limits of the
    /// device are measured, too.
    #[must_use]
    pub fn new(paper: Paper, quick: bool) -> Self {
        let plain = GpuBenchOptions { groups: Vec::new(), ..GpuBenchOptions::new(quick) };
        let bench = match paper {
            Paper::Harmonia => GpuBenchOptions {
                tuples: if quick { vec![1 << 18, 1 << 20] } else { vec![1 << 23, 1 << 24, 1 << 25, 1 << 26] },
                key_types: vec![KeyType::U64],
                groups: vec![Group::Limits],
                batch: if quick { 1 << 22 } else { 100_000_000 },
                ..plain
            },
            Paper::Algorithms => GpuBenchOptions { groups: vec![Group::Limits], ..plain },
            Paper::Slides | Paper::Fast | Paper::Apu | Paper::Relation => plain,
        };
        Self {
            papers: vec![paper],
            bench,
            sizes: PaperSizes::new(quick),
            relation: RelationSizes::new(quick),
            trees: Trees { fanouts: vec![64, 8, 16, 32, 128], fills: vec![50, 69, 100] },
        }
    }

    fn check(&self) -> Result<(), BenchError> {
        let refuse = |text: &str| Err(BenchError::Options(text.to_owned()));
        if !self.sizes.are_possible() {
            return refuse("tables and batches of the papers have 1 to 2^30 tuples");
        }
        if !self.relation.are_possible() {
            return refuse("relations have 2 to 2^30 tuples and 1 to 2^24 partitions");
        }
        if self.trees.fanouts.is_empty() || self.trees.fills.is_empty() {
            return refuse("fanouts and fills must be at least 1");
        }
        Ok(())
    }
}

/// Measures the papers on the first device.
///
/// # Errors
/// [`BenchError::Gpu`] without a device, [`BenchError`] for what keeps tables from being built. An
/// algorithm that fails is a row that says so.
pub fn run(options: &Options<'_>) -> Result<GpuReport, BenchError> {
    options.check()?;
    run_on(&Gpu::open(0)?, options)
}

/// As [`run`], on a device that is open.
///
/// # Errors
/// As [`run`].
pub fn run_on(gpu: &Gpu, options: &Options<'_>) -> Result<GpuReport, BenchError> {
    options.check()?;
    run_with(gpu, &options.bench, ratios::of, |bench, report| {
        for &paper in &options.papers {
            match paper {
                Paper::Algorithms => algorithms::measure(bench, report)?,
                Paper::Slides => {
                    slides::measure(bench, &options.sizes, report)?;
                    strings::measure(bench, &options.sizes, report)?;
                }
                Paper::Fast => fast::measure(bench, &options.sizes, report)?,
                Paper::Apu => apu::measure(bench, &options.sizes, report)?,
                Paper::Harmonia => harmonia::measure(bench, &options.trees, report)?,
                Paper::Relation => relation::measure(bench, &options.relation, report)?,
            }
        }
        Ok(())
    })
}

/// A table of uniform keys of 4 bytes.
fn table(bench: &Bench<'_>, tuples: u64) -> Result<Made<u32>, BenchError> {
    bench.options.told.step(&format!("{} x u32: building", size_name(tuples)))?;
    make::<u32>(Keys::Uniform, tuples, bench.options.dir.as_deref())
}

/// Puts a table somewhere; a row that says why not.
fn place<'b, 'i, T: Cell>(
    bench: &'b Bench<'b>,
    made: &'i Made<T>,
    batch: u64,
    residence: Residence,
    (group, size): (&str, &str),
    report: &mut GpuReport,
) -> Result<Option<Case<'b, 'i>>, BenchError> {
    match Case::new(bench, made, batch, residence) {
        Ok(case) => Ok(Some(case)),
        Err(error) => {
            let row = GpuRow::new(group, "table", &[size, residence.name()]);
            bench.push(report, failed(row, error.into())?)?;
            Ok(None)
        }
    }
}

/// A batch as long as it is asked for, whatever it takes.
fn whole(bench: &Bench<'_>, algorithm: Algorithm, kind: Drawn, count: u64) -> Asked {
    let repetitions = REPETITIONS.min(bench.options.short_repetitions);
    Asked { repetitions, is_whole: true, ..Asked::new(bench, algorithm, kind, count) }
}
