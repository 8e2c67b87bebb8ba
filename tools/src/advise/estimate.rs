//! What a build would make: from the rows that were read, a table of the real size, and less where time is short.
//!
//! A table that was read as a whole is built as a build would do it, in a file without a name: its bytes are those of
//! the file to come. Of a larger one, the rows that were read are built, and then, if keys are numbers, a table of
//! the real size that is made up from them. Where that is not possible, two smaller tables say how bytes and times
//! grow with each doubling.

use super::input::{Input, Sample, Total};
use super::trial::{self, Missing, Rows, Trial};
use crate::cli::{BuildArgs, Global};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::tables;
use pleach::{Costs, Index, Structure};
use pleach_builder::options::physical_memory_bytes;
use pleach_builder::{BuildOptions, Layout};
use pleach_format::Meaning;
use pleach_gpu::plan::{GpuCosts, GpuPlan};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The times at which parts of the work must end, after the start of the command. It takes ten seconds at most.
const SAMPLE_UNTIL: Duration = Duration::from_millis(2_500);
const BASE_UNTIL: Duration = Duration::from_millis(4_500);
const GROWN_UNTIL: Duration = Duration::from_millis(7_000);
const REST_UNTIL: Duration = Duration::from_millis(7_500);
const END: Duration = Duration::from_millis(8_300);
/// Rounds in which all layouts are measured again, and the time at which the last one must begin.
const ROUNDS: usize = 2;
const AGAIN_UNTIL: Duration = Duration::from_millis(5_000);
/// The time at which the last table with other types must begin.
const TABLES_UNTIL: Duration = Duration::from_millis(6_000);
/// Time to read a table with another type.
const OTHER_SAMPLE: Duration = Duration::from_secs(1);
/// Bytes of a file that is made up, at most; and of the memory, so many times less.
const GROWN_BYTES: f64 = (1600u64 << 20) as f64;
const MEMORY_SHARE: u64 = 8;
/// Rows that are always built in time.
const THIN_ROWS: u64 = 1 << 16;
/// Bytes that a build needs for pieces, chunks and levels, whatever it builds.
const BUILD_BYTES: u64 = 100 << 20;
/// A layout may be so many times larger than the usual one if it is faster.
const ROOM: f64 = 1.25;
/// Keys of a batch for which it is computed when a GPU pays.
const GPU_BATCH: usize = 1 << 16;

/// A number, and whether it is only estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    pub number: f64,
    pub is_estimated: bool,
}

/// What one build would make.
pub struct Choice {
    /// The arguments of that build; `None` for an index that is there.
    pub args: Option<BuildArgs>,
    pub key_type: String,
    pub value_type: String,
    pub layout: Layout,
    /// Keys that are not there may be found.
    pub is_approximate: bool,
    pub tuples: Told,
    pub bytes_per_tuple: Told,
    pub build_seconds: f64,
    pub build_memory_bytes: u64,
    /// `None` if there are no keys.
    pub look_up_ns: Option<Told>,
    /// Look-ups after which a GPU has paid for its copy; `None` for never.
    pub gpu_look_ups: Option<f64>,
}

impl Choice {
    /// Returns the bytes of the file.
    pub fn file_bytes(&self) -> f64 {
        self.bytes_per_tuple.number * self.tuples.number.max(1.0)
    }
}

/// What was found out about a table of some size.
#[derive(Clone, Copy, Debug)]
struct Point {
    tuples: f64,
    bytes_per_tuple: f64,
    ns: Option<f64>,
}

/// Returns a number for more tuples, from those of two smaller tables: it changes by the same with each doubling, and
/// does not fall below the last one unless it fell before.
fn extended(points: &[Point], tuples: f64, of: impl Fn(&Point) -> Option<f64>) -> Option<f64> {
    let [.., last] = points else { return None };
    let value = of(last)?;
    let before = points.len().checked_sub(2).map(|at| points[at]);
    let Some((before, first)) = before.and_then(|point| Some((point, of(&point)?))) else {
        return Some(value);
    };
    let doublings = (last.tuples / before.tuples).log2();
    if doublings < 0.5 || tuples <= last.tuples {
        return Some(value);
    }
    let slope = (value - first) / doublings;
    Some((value + slope * (tuples / last.tuples).log2()).max(value / 2.0))
}

/// The table that others are compared with.
struct Base {
    points: Vec<Point>,
    structure: Structure,
    /// Bytes a tuple and nanoseconds of the rows that were read.
    own: Point,
    tuples: Told,
    is_estimated: bool,
}

/// A build of another layout.
struct Other {
    args: BuildArgs,
    trial: Trial,
    own: Point,
    /// Bytes a tuple of the usual layout, of the same rows.
    usual: Option<f64>,
}

/// Estimates builds.
pub struct Estimator<'a> {
    pub input: &'a Input,
    pub global: &'a Global,
    pub progress: &'a Progress,
    pub costs: &'a Costs,
    pub started: Instant,
}

impl Estimator<'_> {
    fn at(&self, time: Duration) -> Instant {
        self.started + time
    }

    fn is_past(&self, time: Duration) -> bool {
        Instant::now() >= self.at(time)
    }

    /// Returns until when types may be tried.
    pub fn tries_until(&self) -> Instant {
        self.at(SAMPLE_UNTIL)
    }

    /// Returns true if there is no time for another table, of which little could be read.
    pub fn is_late(&self) -> bool {
        self.is_past(TABLES_UNTIL)
    }

    /// Returns true if there is no time for anything else.
    pub fn is_over(&self) -> bool {
        self.is_past(END)
    }

    /// Estimates one build, and then those of other layouts as long as there is time. `is_first`: there is time for a
    /// table of the real size.
    pub fn choices(
        &self,
        args: &BuildArgs,
        layouts: &[Layout],
        is_first: bool,
    ) -> Result<(Sample, Vec<Choice>), Failure> {
        let until = if is_first {
            self.at(SAMPLE_UNTIL)
        } else {
            self.at(REST_UNTIL).min(Instant::now() + OTHER_SAMPLE)
        };
        let sample = self.input.sample(&args.table, self.global, until)?;
        let folder = folder(&args.output);
        let options = tables::build_options(args);
        let (trial, mut base, plan) = self.base(&sample, &options, &folder, is_first)?;
        let (mut others, mut thin) = (Vec::new(), None);
        for &layout in layouts {
            if self.is_over() {
                break;
            }
            let args = BuildArgs { layout, values: None, ..args.clone() };
            match self.trial(&sample, &tables::build_options(&args), &folder, REST_UNTIL) {
                Ok((trial, rows)) => {
                    if rows < sample.rows && thin.is_none() {
                        let usual = trial::build(
                            Rows::Some(&sample, THIN_ROWS),
                            &options,
                            &folder,
                            (self.progress, None),
                        );
                        thin = usual.ok().map(|usual| usual.bytes_per_tuple());
                    }
                    let own = self.point(&trial, false)?;
                    // What a thin table of the usual layout has for each tuple.
                    let usual = if rows < sample.rows { thin } else { Some(base.own.bytes_per_tuple) };
                    others.push(Other { args, trial, own, usual });
                }
                Err(Missing::Refused(Failure::Interrupted)) => return Err(Failure::Interrupted),
                // Keys or values that this layout does not hold.
                Err(Missing::Time | Missing::Refused(_)) => {}
            }
        }
        self.measure_again(&trial, &mut base, &mut others)?;
        let mut choices = vec![self.choice(args, &sample, &trial, &base, options.layout(), plan)];
        choices.extend(others.iter().map(|other| self.other(other, &sample, &base, plan)));
        Ok((sample, choices))
    }

    /// Measures all that was built at other moments, if there is time: what else runs changes within seconds. The least
    /// counts.
    fn measure_again(&self, trial: &Trial, base: &mut Base, others: &mut [Other]) -> Result<(), Failure> {
        if others.is_empty() || trial.summary.tuples < trial::SMALL {
            return Ok(());
        }
        let least =
            |before: Option<f64>, now: Option<f64>| before.zip(now).map(|(before, now)| before.min(now));
        for _ in 0..ROUNDS {
            if self.is_past(AGAIN_UNTIL) {
                break;
            }
            let ns = trial::look_up_ns(&trial.index, self.at(REST_UNTIL))?;
            if let [only] = base.points.as_mut_slice() {
                only.ns = least(only.ns, ns);
            }
            base.own.ns = least(base.own.ns, ns);
            for other in &mut *others {
                let ns = trial::look_up_ns(&other.trial.index, self.at(REST_UNTIL))?;
                other.own.ns = least(other.own.ns, ns);
            }
        }
        // Beside the same lines and the same structure, what else is in the file does not matter.
        let is_same = |other: &Other| {
            let index = &other.trial.index;
            index.structure() == trial.index.structure()
                && index.header().geometry == trial.index.header().geometry
                && index.len() == trial.index.len()
                && !index.key_type().is_bytes()
        };
        let same: Vec<f64> =
            others.iter().filter(|other| is_same(other)).filter_map(|other| other.own.ns).collect();
        let best = same.into_iter().chain(base.own.ns).reduce(f64::min);
        for other in others.iter_mut().filter(|other| is_same(other)) {
            other.own.ns = best;
        }
        if let [only] = base.points.as_mut_slice() {
            only.ns = best;
        }
        base.own.ns = best;
        Ok(())
    }

    /// Builds what was read, or less of it if that takes longer than `until`. Returns the number of rows, too.
    fn trial(
        &self,
        sample: &Sample,
        options: &BuildOptions,
        folder: &Path,
        until: Duration,
    ) -> Result<(Trial, u64), Missing> {
        let build = |rows, until| trial::build(rows, options, folder, (self.progress, until));
        if !self.is_past(until) {
            match build(Rows::All(sample), Some(self.at(until))) {
                Err(Missing::Time) => {}
                done => return done.map(|trial| (trial, sample.rows)),
            }
        }
        let thin = build(Rows::Some(sample, THIN_ROWS), None)?;
        let rows = thin.summary.rows;
        Ok((thin, rows))
    }

    /// Measures a trial; one that is the first of all at several moments.
    fn point(&self, trial: &Trial, is_first: bool) -> Result<Point, Failure> {
        let (tuples, bytes_per_tuple) = (trial.summary.tuples as f64, trial.bytes_per_tuple());
        let ns = match is_first {
            true => trial::look_up_ns_at_rest(&trial.index, self.at(REST_UNTIL))?,
            false => trial::look_up_ns(&trial.index, self.at(END))?,
        };
        Ok(Point { tuples, bytes_per_tuple, ns })
    }

    /// Builds what was read and, if there is more, larger tables.
    fn base(
        &self,
        sample: &Sample,
        options: &BuildOptions,
        folder: &Path,
        is_first: bool,
    ) -> Result<(Trial, Base, Option<GpuPlan>), Failure> {
        let until = if is_first { BASE_UNTIL } else { REST_UNTIL };
        let refused = |missing| match missing {
            Missing::Refused(failure) => failure,
            Missing::Time => unreachable!("a thin table is built in any case"),
        };
        let (trial, rows) = self.trial(sample, options, folder, until).map_err(refused)?;
        let own = self.point(&trial, is_first && sample.is_whole)?;
        let is_whole = sample.is_whole && rows == sample.rows;
        let share = trial.summary.tuples as f64 / trial.summary.rows.max(1) as f64;
        let tuples = Told {
            number: if is_whole { own.tuples } else { sample.total.rows() as f64 * share },
            is_estimated: !is_whole && (options.unique.is_some() || !matches!(sample.total, Total::Exact(_))),
        };
        let structure = trial.index.structure();
        let plan = gpu_plan(&trial.index, self.costs);
        let mut points = vec![own];
        let mut structure_of_all = structure;
        if !is_whole && tuples.number > own.tuples * 1.02 {
            if let Some((larger, structure)) =
                self.larger(sample, (&trial, rows), options, folder, is_first)?
            {
                points.extend(larger);
                structure_of_all = structure;
            } else if let Some(smaller) = self.smaller(sample, rows, options, folder)? {
                points.insert(0, smaller);
            }
        }
        let base = Base { points, structure: structure_of_all, own, tuples, is_estimated: !is_whole };
        Ok((trial, base, plan))
    }

    /// Builds tables that are made up, up to the real size.
    fn larger(
        &self,
        sample: &Sample,
        (trial, rows): (&Trial, u64),
        options: &BuildOptions,
        folder: &Path,
        is_first: bool,
    ) -> Result<Option<(Vec<Point>, Structure)>, Failure> {
        if !is_first || rows < sample.rows {
            return Ok(None);
        }
        let memory_bytes = options.memory_bytes.min(physical_memory_bytes() / MEMORY_SHARE);
        let bytes_max = GROWN_BYTES.min(memory_bytes as f64);
        let per_second = rows as f64 / trial.took.as_secs_f64().max(1e-3);
        let left = self.at(GROWN_UNTIL).saturating_duration_since(Instant::now()).as_secs_f64();
        let mut wanted =
            (sample.total.rows() as f64).min(bytes_max / trial.bytes_per_tuple()).min(per_second * left);
        while wanted >= 2.0 * rows as f64 && !self.is_past(GROWN_UNTIL) {
            let until = Some(self.at(GROWN_UNTIL));
            match trial::build(Rows::Grown(sample, wanted as u64), options, folder, (self.progress, until)) {
                Ok(grown) => {
                    return Ok(Some((vec![self.point(&grown, true)?], grown.index.structure())));
                }
                Err(Missing::Refused(Failure::Interrupted)) => return Err(Failure::Interrupted),
                Err(_) => wanted /= 8.0,
            }
        }
        Ok(None)
    }

    /// Builds a quarter of what was read.
    fn smaller(
        &self,
        sample: &Sample,
        rows: u64,
        options: &BuildOptions,
        folder: &Path,
    ) -> Result<Option<Point>, Failure> {
        let until = Some(self.at(REST_UNTIL));
        match trial::build(Rows::Some(sample, rows / 4), options, folder, (self.progress, until)) {
            Ok(quarter) => self.point(&quarter, false).map(Some),
            Err(Missing::Refused(Failure::Interrupted)) => Err(Failure::Interrupted),
            Err(_) => Ok(None),
        }
    }

    fn choice(
        &self,
        args: &BuildArgs,
        sample: &Sample,
        trial: &Trial,
        base: &Base,
        layout: Layout,
        plan: Option<GpuPlan>,
    ) -> Choice {
        let (tuples, is_estimated) = (base.tuples.number, base.is_estimated);
        let bytes = extended(&base.points, tuples, |point| Some(point.bytes_per_tuple)).unwrap_or_default();
        let ns = extended(&base.points, tuples, |point| point.ns);
        let (key_type, value_type) = types(sample, trial);
        let told = |number| Told { number, is_estimated };
        Choice {
            args: Some(args.clone()),
            key_type,
            value_type,
            layout,
            is_approximate: trial.summary.approximate.is_some(),
            tuples: base.tuples,
            bytes_per_tuple: told(bytes),
            build_seconds: build_seconds(sample, trial, args.memory),
            build_memory_bytes: build_memory(sample, args.memory).0,
            look_up_ns: ns.map(told),
            gpu_look_ups: ns.zip(plan).and_then(|(ns, plan)| gpu_pays(plan, ns, tuples / base.own.tuples)),
        }
    }

    /// Estimates a build of another layout, by what differs from the base in the rows that were read.
    fn other(&self, other: &Other, sample: &Sample, base: &Base, plan: Option<GpuPlan>) -> Choice {
        let (Other { args, trial, .. }, mut own) = (other, other.own);
        let mut choice = self.choice(args, sample, trial, base, args.layout, plan);
        let is_same = (own.tuples - base.own.tuples).abs() < 1.0;
        let is_exact = is_same && !base.is_estimated;
        if !is_exact {
            // Structures of a few percent are as large a part of each table.
            let bytes = choice.bytes_per_tuple.number;
            own.bytes_per_tuple += other.usual.map_or(0.0, |usual| bytes - usual);
            own.ns = match (own.ns, base.own.ns, choice.look_up_ns) {
                (_, _, Some(told)) if trial.index.structure() == base.structure => Some(told.number),
                (Some(ns), Some(before), Some(told)) if is_same => Some(ns * (told.number / before).max(1.0)),
                (ns, _, _) => ns,
            };
        }
        let is_estimated = !is_exact;
        choice.bytes_per_tuple = Told { number: own.bytes_per_tuple, is_estimated };
        choice.look_up_ns = own.ns.map(|number| Told { number, is_estimated });
        let grown = choice.tuples.number / base.own.tuples;
        choice.gpu_look_ups = own.ns.zip(plan).and_then(|(ns, plan)| gpu_pays(plan, ns, grown));
        choice
    }
}

/// Returns the folder in which a file is built.
fn folder(output: &Path) -> PathBuf {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Returns the names of the types.
fn types(sample: &Sample, trial: &Trial) -> (String, String) {
    let schema = sample.schema.published();
    let key = Meaning::new(trial.summary.key_type, &trial.summary.key_logical);
    let value =
        schema.record().map_or_else(|| schema.value_meaning().to_string(), |record| record.to_string());
    (key.to_string(), value)
}

/// Returns the memory that a build uses, and whether that is enough to sort in it.
fn build_memory(sample: &Sample, limit: Option<u64>) -> (u64, bool) {
    let limit = limit.unwrap_or(physical_memory_bytes() / 2);
    let row_bytes = sample.held_bytes() as f64 / sample.rows.max(1) as f64;
    let sorting = if sample.is_sorted { 0.0 } else { 2.0 * row_bytes * sample.total.rows() as f64 };
    let wanted = BUILD_BYTES.saturating_add(sorting as u64);
    (wanted.min(limit.max(BUILD_BYTES / 2)), wanted <= limit)
}

/// Returns the time of a build: rows are read while others are written, if they come in order, and sorted once more on
/// disk if they do not fit in memory. Waiting for the disk at the end is not in it.
fn build_seconds(sample: &Sample, trial: &Trial, limit: Option<u64>) -> f64 {
    let per_row = |took: Duration, rows: u64| took.as_secs_f64() / rows.max(1) as f64;
    let read = per_row(sample.took, sample.rows);
    let write = per_row(trial.took, trial.summary.rows);
    let row = match (sample.is_sorted, build_memory(sample, limit).1) {
        (true, _) => read.max(write),
        (false, true) => read + write,
        (false, false) => read + 2.0 * write,
    };
    row * sample.total.rows() as f64
}

/// Returns the plan of a GPU for an index, if it has keys.
fn gpu_plan(index: &Index, costs: &Costs) -> Option<GpuPlan> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    (!index.is_empty()).then(|| GpuCosts::default().plan(index, GPU_BATCH, costs, threads))
}

/// Returns the look-ups after which a GPU has paid for the copy of an index, whose look-ups on the CPU take so long.
pub fn gpu_pays_for(index: &Index, costs: &Costs, ns: f64) -> Option<f64> {
    gpu_plan(index, costs).and_then(|plan| gpu_pays(plan, ns, 1.0))
}

/// Returns the look-ups after which a GPU has paid for the copy of a table that is so many times larger than the one
/// of the plan; `None` for never.
fn gpu_pays(plan: GpuPlan, ns: f64, times: f64) -> Option<f64> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let start = GpuCosts::default().start;
    let plan = GpuPlan {
        cpu_ns: ns * GPU_BATCH as f64 / threads as f64,
        copy_ns: start + (plan.copy_ns - start) * times,
        ..plan
    };
    plan.reuse_factor().map(|batches| batches * GPU_BATCH as f64)
}

/// Returns the layouts that are compared, in the order in which they are likely to be used.
pub fn layouts(args: &BuildArgs) -> Vec<Layout> {
    let texts = [
        "lines,spine",
        "lines,spine,grid,columns",
        "lines,spine,grid,packed",
        "lines,fast:auto",
        "lines,harmonia:64:69",
        "lines,btree:64",
    ];
    let layouts = texts.iter().filter_map(|text| text.parse().ok());
    layouts.filter(|layout| *layout != args.layout).collect()
}

/// Puts the best of several layouts of the same types first: the usual one, which is the first, unless another one
/// takes less than half of its time and not much more room.
pub fn best_first(choices: &mut [Choice]) {
    let Some((usual, others)) = choices.split_first() else { return };
    let Some(usual_ns) = usual.look_up_ns else { return };
    let ns = |choice: &Choice| choice.look_up_ns.map_or(f64::INFINITY, |told| told.number);
    let is_better = |choice: &&Choice| {
        let bytes = choice.bytes_per_tuple.number;
        ns(choice) < usual_ns.number / 2.0 && bytes < usual.bytes_per_tuple.number * ROOM
    };
    let best = others.iter().filter(is_better).min_by(|one, other| ns(one).total_cmp(&ns(other)));
    let Some(at) = best.and_then(|best| others.iter().position(|other| std::ptr::eq(other, best))) else {
        return;
    };
    choices[..at + 2].rotate_right(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_with_each_doubling() {
        let point = |tuples, bytes_per_tuple, ns| Point { tuples, bytes_per_tuple, ns: Some(ns) };
        let points = [point(1024.0, 20.0, 10.0), point(4096.0, 18.0, 14.0)];
        let of = |tuples| {
            let bytes = extended(&points, tuples, |point| Some(point.bytes_per_tuple)).expect("bytes");
            (bytes, extended(&points, tuples, |point| point.ns).expect("ns"))
        };
        assert_eq!(of(16384.0), (16.0, 18.0));
        assert_eq!(of(4096.0), (18.0, 14.0));
        // But not to nothing.
        assert_eq!(of(1e15).0, 9.0);
        assert_eq!(extended(&points[1..], 16384.0, |point| point.ns), Some(14.0));
        assert_eq!(extended(&[], 1.0, |point| point.ns), None);
    }
}
