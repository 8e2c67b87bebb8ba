//! External sort: sorted runs on disk, merged by a loser tree.
//!
//! Tuples gather in one buffer; when it is full it is sorted into a run, which is written as tuple lines to
//! an unnamed temporary file. Runs keep the order in which they were made, and the merge prefers the earlier
//! run among equal keys, so the sort is stable. Runs are read in large pieces. If there are more runs than
//! memory has buffers for, they are merged in several passes.

use crate::error::BuildError;
use crate::observe::{Phase, Watch};
use crate::pack::{KeyLane, Rows, Tuple, ValueLane, pack, per_line, unpack};
use crate::parallel;
use crate::plan::{PIECE_BYTES, PIECE_LINES, Plan};
use crate::publish::Output;
use crate::sort::{self, Consume, Groups};
use crate::storage::{Storage, StorageFile};
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::{self, Line};
use std::path::{Path, PathBuf};

/// The place where runs are spilled.
#[derive(Clone, Copy)]
pub(crate) struct Spills<'a> {
    pub storage: &'a dyn Storage,
    pub folder: &'a Path,
}

impl Spills<'_> {
    pub(crate) fn create(&self) -> Result<Spill, BuildError> {
        let file = self
            .storage
            .create_spill(self.folder)
            .map_err(|error| BuildError::io("creating a spill file", self.folder, error))?;
        Ok(Spill { file, path: self.folder.to_owned() })
    }
}

/// An unnamed temporary file.
pub(crate) struct Spill {
    file: Box<dyn StorageFile>,
    path: PathBuf,
}

impl Spill {
    pub(crate) fn output(&self) -> Output<'_> {
        Output { file: &*self.file, path: &self.path }
    }
}

/// A sorted run: consecutive tuple lines of a spill file.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Offset of the first byte.
    offset: u64,
    /// Number of tuples.
    tuples: u64,
}

/// Writes runs, one after the other, into one spill file.
struct RunWriter<'a, W, B> {
    spill: &'a Spill,
    watch: &'a Watch<'a>,
    runs: &'a mut Vec<Run>,
    end: &'a mut u64,
    tuples: u64,
    carry: Vec<Tuple<W, B>>,
    lines: &'a mut Vec<Line>,
    offset: u64,
}

/// Number of lines that are packed and written at once.
const RUN_BATCH_LINES: usize = 2 * PIECE_LINES;

impl<'a, W: KeyLane, B: ValueLane> RunWriter<'a, W, B> {
    fn new(
        spill: &'a Spill,
        watch: &'a Watch<'a>,
        runs: &'a mut Vec<Run>,
        end: &'a mut u64,
        lines: &'a mut Vec<Line>,
    ) -> Self {
        let offset = *end;
        Self { spill, watch, runs, end, tuples: 0, carry: Vec::new(), lines, offset }
    }

    fn write(&mut self, rows: &[Tuple<W, B>]) -> Result<(), BuildError> {
        let n = per_line::<W, B>();
        for rows in rows.chunks(RUN_BATCH_LINES * n) {
            self.watch.check()?;
            let lines = rows.len() / n;
            self.lines.resize(lines, [0; LINE_BYTES]);
            let (spill, end) = (self.spill, *self.end);
            let pieces = self.lines.chunks_mut(PIECE_LINES).zip(rows.chunks(PIECE_LINES * n));
            parallel::try_jobs(pieces.enumerate(), |(piece, (lines, rows))| {
                pack(rows.slice(0, lines.len() * n), lines);
                spill.output().write(lines.as_flattened(), end + (piece * PIECE_BYTES) as u64)
            })?;
            *self.end += (lines * LINE_BYTES) as u64;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), BuildError> {
        if !self.carry.is_empty() {
            let mut line = [0; LINE_BYTES];
            line::encode(self.carry.iter().map(|tuple| (tuple.key, tuple.value)), &mut line);
            self.spill.output().write(&line, *self.end)?;
            *self.end += LINE_BYTES as u64;
        }
        self.runs.push(Run { offset: self.offset, tuples: self.tuples });
        Ok(())
    }
}

impl<W: KeyLane, B: ValueLane> Consume<W, B> for RunWriter<'_, W, B> {
    fn take(&mut self, tuples: &[Tuple<W, B>]) -> Result<(), BuildError> {
        let n = per_line::<W, B>();
        self.tuples += tuples.len() as u64;
        let mut rest = tuples;
        if !self.carry.is_empty() {
            let (now, later) = rest.split_at((n - self.carry.len()).min(rest.len()));
            self.carry.extend_from_slice(now);
            rest = later;
            if self.carry.len() < n {
                return Ok(());
            }
            let line = std::mem::take(&mut self.carry);
            self.write(&line)?;
        }
        let full = rest.len() / n * n;
        self.write(&rest[..full])?;
        self.carry.extend_from_slice(&rest[full..]);
        Ok(())
    }
}

/// Tuples to be sorted.
pub(crate) struct Sorter<'a, W, B> {
    spills: Spills<'a>,
    watch: &'a Watch<'a>,
    plan: Plan,
    /// The buffer. All of it is allocated, but only the part that was filled occupies memory.
    buffer: Vec<Tuple<W, B>>,
    used: usize,
    scratch: Vec<Tuple<W, B>>,
    groups: Option<Groups<W, B>>,
    spill: Option<Spill>,
    runs: Vec<Run>,
    end: u64,
    lines: Vec<Line>,
}

/// Allocates a zeroed buffer, of fewer tuples if the system does not have that much memory.
fn buffer<W: KeyLane, B: ValueLane>(
    tuples: usize,
    tuples_min: usize,
) -> Result<Vec<Tuple<W, B>>, BuildError> {
    let mut tuples = tuples;
    loop {
        if let Ok(mut buffer) = <Tuple<W, B> as zerocopy::FromZeros>::new_vec_zeroed(tuples) {
            crate::hint::advise_huge(&mut buffer);
            return Ok(buffer);
        }
        if tuples <= tuples_min {
            return Err(BuildError::OutOfMemory { bytes: (tuples * size_of::<Tuple<W, B>>()) as u64 });
        }
        tuples = (tuples / 2).max(tuples_min);
    }
}

impl<'a, W: KeyLane, B: ValueLane> Sorter<'a, W, B> {
    /// Creates a sorter of `rows` tuples, if their number is known.
    pub(crate) fn new(
        spills: Spills<'a>,
        watch: &'a Watch<'a>,
        plan: Plan,
        rows: Option<u64>,
    ) -> Result<Self, BuildError> {
        let wanted = rows.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(usize::MAX).max(1);
        let buffer = buffer(wanted.min(plan.sort_tuples), 1024)?;
        let (scratch, groups, spill) = (Vec::new(), None, None);
        let (runs, lines) = (Vec::new(), Vec::new());
        Ok(Self { spills, watch, plan, buffer, used: 0, scratch, groups, spill, runs, end: 0, lines })
    }

    /// Adds tuples, in input order.
    pub(crate) fn push<R: Rows<W, B>>(&mut self, rows: R) -> Result<(), BuildError> {
        const PART: usize = 1 << 15;
        let mut from = 0;
        while from < rows.len() {
            if self.used == self.buffer.len() {
                self.spill_run()?;
            }
            let to = rows.len().min(from + self.buffer.len() - self.used);
            let part = rows.slice(from, to);
            let free = &mut self.buffer[self.used..][..part.len()];
            parallel::jobs(free.chunks_mut(PART).enumerate(), |(index, slots)| {
                let part = part.slice(index * PART, index * PART + slots.len());
                for (at, slot) in slots.iter_mut().enumerate() {
                    *slot = part.tuple(at);
                }
            });
            self.used += part.len();
            from = to;
        }
        Ok(())
    }

    fn spill_run(&mut self) -> Result<(), BuildError> {
        if self.scratch.len() < self.used {
            self.scratch = buffer(self.used, self.used)?;
        }
        let groups = self.groups.get_or_insert_with(|| Groups::new(self.plan.sort_tuples, false));
        if self.spill.is_none() {
            self.spill = Some(self.spills.create()?);
        }
        let Some(spill) = &self.spill else { return Ok(()) };
        self.watch.progress(Phase::Sort, self.end / LINE_BYTES as u64 * per_line::<W, B>() as u64, None);
        let mut writer = RunWriter::new(spill, self.watch, &mut self.runs, &mut self.end, &mut self.lines);
        let (tuples, scratch) = (&mut self.buffer[..self.used], &mut self.scratch[..self.used]);
        sort::sort(tuples, scratch, groups, self.watch, &mut writer)?;
        writer.finish()?;
        self.used = 0;
        Ok(())
    }

    /// Passes all tuples to `consumer` in order; returns the number of spilled runs.
    pub(crate) fn finish(mut self, consumer: &mut dyn Consume<W, B>) -> Result<u64, BuildError> {
        if self.runs.is_empty() {
            let mut scratch = buffer::<W, B>(self.used, self.used)?;
            self.watch.progress(Phase::Sort, 0, Some(self.used as u64));
            let tuples = &mut self.buffer[..self.used];
            sort::sort(tuples, &mut scratch, &mut Groups::new(self.used, true), self.watch, consumer)?;
            return Ok(0);
        }
        if self.used > 0 {
            self.spill_run()?;
        }
        (self.buffer, self.scratch, self.groups) = (Vec::new(), Vec::new(), None);
        let Some(mut spill) = self.spill.take() else { return Ok(0) };
        let mut runs = std::mem::take(&mut self.runs);
        let spilled = runs.len() as u64;
        while runs.len() > self.plan.merge_ways {
            let next = self.spills.create()?;
            let (mut merged, mut end) = (Vec::new(), 0);
            for group in runs.chunks(self.plan.merge_ways) {
                let mut writer =
                    RunWriter::<W, B>::new(&next, self.watch, &mut merged, &mut end, &mut self.lines);
                merge(&spill, group, self.plan, self.watch, &mut writer)?;
                writer.finish()?;
            }
            (spill, runs) = (next, merged);
        }
        self.lines = Vec::new();
        merge(&spill, &runs, self.plan, self.watch, consumer)?;
        Ok(spilled)
    }
}

/// A run that is being read.
struct RunReader<W, B> {
    offset: u64,
    left: u64,
    tuples: Vec<Tuple<W, B>>,
    at: usize,
}

impl<W: KeyLane, B: ValueLane> RunReader<W, B> {
    /// Reads the next lines of the run; returns `false` at its end.
    fn refill(&mut self, spill: &Spill, lines: &mut [Line]) -> Result<bool, BuildError> {
        let n = per_line::<W, B>() as u64;
        self.tuples.clear();
        self.at = 0;
        let count = self.left.div_ceil(n).min(lines.len() as u64) as usize;
        if count == 0 {
            return Ok(false);
        }
        let lines = &mut lines[..count];
        spill.output().read(lines.as_flattened_mut(), self.offset)?;
        let tuples = self.left.min(count as u64 * n);
        unpack(lines, tuples as usize, &mut self.tuples);
        self.offset += (count * LINE_BYTES) as u64;
        self.left -= tuples;
        Ok(true)
    }
}

/// A player of the tournament: the next key of a run, and the run's number to order equal keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Player<W> {
    key: W,
    /// The run, or [`OUT`] when it is empty: then it loses against every key, even the largest.
    run: u32,
}

const OUT: u32 = u32::MAX;

/// Merge of runs by a tree of losers; each step replays one path.
struct Merger<'a, W, B> {
    spill: &'a Spill,
    readers: Vec<RunReader<W, B>>,
    lines: Vec<Line>,
    /// `losers[0]` is the winner; node `i` has the children `2 i` and `2 i + 1`.
    losers: Vec<Player<W>>,
    leaves: usize,
}

impl<'a, W: KeyLane, B: ValueLane> Merger<'a, W, B> {
    fn new(spill: &'a Spill, runs: &[Run], lines_per_run: usize) -> Result<Self, BuildError> {
        let lines = vec![[0; LINE_BYTES]; lines_per_run];
        let readers = runs
            .iter()
            .map(|run| RunReader { offset: run.offset, left: run.tuples, tuples: Vec::new(), at: 0 })
            .collect::<Vec<_>>();
        let leaves = runs.len().next_power_of_two();
        let mut merger = Self { spill, readers, lines, losers: Vec::new(), leaves };
        let mut winners = vec![Player { key: W::MAX, run: OUT }; 2 * leaves];
        for run in 0..runs.len() {
            merger.readers[run].refill(spill, &mut merger.lines)?;
            winners[leaves + run] = merger.player(run);
        }
        let mut losers = winners.clone();
        for node in (1..leaves).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            winners[node] = left.min(right);
            losers[node] = left.max(right);
        }
        losers.truncate(leaves);
        losers[0] = winners[1];
        merger.losers = losers;
        Ok(merger)
    }

    fn player(&self, run: usize) -> Player<W> {
        let reader = &self.readers[run];
        reader
            .tuples
            .get(reader.at)
            .map_or(Player { key: W::MAX, run: OUT }, |tuple| Player { key: tuple.key, run: run as u32 })
    }

    /// Clears `out` and fills it with the next tuples, at most `tuples_max`.
    fn fill(&mut self, out: &mut Vec<Tuple<W, B>>, tuples_max: usize) -> Result<(), BuildError> {
        out.clear();
        while out.len() < tuples_max {
            let winner = self.losers[0];
            if winner.run == OUT {
                break;
            }
            let run = winner.run as usize;
            let reader = &mut self.readers[run];
            out.push(reader.tuples[reader.at]);
            reader.at += 1;
            if reader.at == reader.tuples.len() {
                reader.refill(self.spill, &mut self.lines)?;
            }
            let mut player = self.player(run);
            let mut node = (self.leaves + run) / 2;
            while node > 0 {
                let loser = self.losers[node];
                if loser < player {
                    self.losers[node] = player;
                    player = loser;
                }
                node /= 2;
            }
            self.losers[0] = player;
        }
        Ok(())
    }
}

fn merge<W: KeyLane, B: ValueLane>(
    spill: &Spill,
    runs: &[Run],
    plan: Plan,
    watch: &Watch<'_>,
    consumer: &mut dyn Consume<W, B>,
) -> Result<(), BuildError> {
    let total: u64 = runs.iter().map(|run| run.tuples).sum();
    // A run's buffer holds tuples, which are up to a third larger than their lines.
    let line_bytes = per_line::<W, B>() * size_of::<Tuple<W, B>>();
    let lines = plan.merge_bytes as usize / (runs.len() + 1) / line_bytes.max(LINE_BYTES);
    let mut merger = Merger::<W, B>::new(spill, runs, lines.clamp(16, PIECE_LINES))?;
    let batch = plan.chunk_tuples.clamp(1024, 1 << 18);
    let (mut ready, mut next) = (Vec::with_capacity(batch), Vec::with_capacity(batch));
    let mut done = 0;
    merger.fill(&mut ready, batch)?;
    while !ready.is_empty() {
        watch.check()?;
        let (filled, taken) =
            parallel::both(&mut || merger.fill(&mut next, batch), &mut || consumer.take(&ready));
        taken?;
        filled?;
        done += ready.len() as u64;
        watch.progress(Phase::Merge, done, Some(total));
        std::mem::swap(&mut ready, &mut next);
    }
    Ok(())
}
