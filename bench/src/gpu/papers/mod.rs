//! The tables and figures of the papers, on the device at hand: a group of rows for each paper.

mod apu;
mod fast;
mod harmonia;
mod relation;
mod slides;
mod strings;

pub use relation::RelationSizes;

use super::case::{Asked, Case, failed};
use super::tables::{Cell, Keys, Made, make, size_name};
use super::{Bench, GpuReport, GpuRow, Group};
use crate::BenchError;
use pleach_gpu::measure::Drawn;
use pleach_gpu::{Algorithm, Residence};

/// Repetitions of what takes milliseconds at most.
const REPETITIONS: usize = 15;

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

    /// Whether all of them can be measured.
    pub(super) fn are_possible(&self) -> bool {
        self.all().all(|size| (1..=1 << 30).contains(&size))
            && !self.slides_batches.is_empty()
            && !self.apu_batches.is_empty()
    }
}

/// Measures what is asked for.
pub(super) fn measure(bench: &Bench<'_>, report: &mut GpuReport) -> Result<(), BenchError> {
    let has = |group| bench.options.has(group);
    if has(Group::Slides) {
        slides::measure(bench, report)?;
        strings::measure(bench, report)?;
    }
    if has(Group::Fast) {
        fast::measure(bench, report)?;
    }
    if has(Group::Apu) {
        apu::measure(bench, report)?;
    }
    if has(Group::Harmonia) {
        harmonia::measure(bench, report)?;
    }
    if has(Group::Relation) {
        relation::measure(bench, report)?;
    }
    Ok(())
}

/// Whether relations of these sizes can be measured.
pub(super) fn are_possible(sizes: &RelationSizes) -> bool {
    sizes.are_possible()
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
