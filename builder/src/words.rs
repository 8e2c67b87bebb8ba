//! The course of a build over words: streaming while they are in order, sorting from the first that is not.

use crate::columns;
use crate::error::BuildError;
use crate::external::{Sorter, Spills};
use crate::job::{Job, MakeExtras, with_lanes};
use crate::lines::Lines;
use crate::options::{Summary, Unique};
use crate::pack::{Columns, KeyLane, Rows, Take, Tuple, ValueLane, first_break};
use crate::parallel;
use crate::plan::Plan;
use crate::reader::Reader;
use crate::sections;
use crate::shorten::{Finished, ShortWriter};
use crate::sort::Consume;
use crate::source::{COLUMNS_DISAGREE, Chunk, Column, Source, SourceError};

impl Job<'_> {
    /// Builds from a source of words of `word_bytes` bytes.
    pub(crate) fn run_words(
        &self,
        word_bytes: usize,
        source: &mut dyn Source,
        extras: &MakeExtras<'_>,
    ) -> Result<Summary, BuildError> {
        with_lanes!(word_bytes, self.schema.value_type.line_bytes() => self.run(source, extras))
    }

    fn run<W: KeyLane, B: ValueLane>(
        &self,
        source: &mut dyn Source,
        extras: &MakeExtras<'_>,
    ) -> Result<Summary, BuildError> {
        let plan = Plan::new(self.options.memory_bytes, size_of::<Tuple<W, B>>());
        let spills = self.spills;
        let mut emitter =
            Emitter::<W, B>::new(self, ShortWriter::new(self.setting(plan, self.mask.is_some())));

        let mut reader = Reader::new(source, self.watch, plan);
        let mut intake = Intake { emitter: &mut emitter, sorter: None, job: self, spills, plan, rows: 0 };
        let chunk = || Chunk {
            keys: Column::with_width(W::BYTES),
            values: Column::with_width(B::BYTES),
            ops: Vec::new(),
        };
        let (mut now, mut next) = (chunk(), chunk());
        reader.read(&mut now)?;
        while !now.is_empty() {
            let (read, taken) = parallel::both(&mut || reader.read(&mut next), &mut || intake.take(&now));
            // Report the error that comes first in the input.
            taken?;
            read?;
            std::mem::swap(&mut now, &mut next);
        }
        let Intake { sorter, rows, .. } = intake;
        drop((now, next));
        let sorted_input = sorter.is_none();
        let mut runs = 0;
        if let Some(sorter) = sorter {
            emitter.writer.decide();
            runs = sorter.finish(&mut emitter)?;
        }
        let input = Input { rows, sorted_input, runs };
        match emitter.finish()?.finish()? {
            Finished::Full(lines) => self.complete::<W, B>(&lines, extras, input),
            Finished::Four(lines) => self.complete::<u32, B>(&lines, extras, input),
            Finished::Eight(lines) => self.complete::<u64, B>(&lines, extras, input),
        }
    }

    /// Writes everything after the tuple lines.
    fn complete<W: KeyLane, B: ValueLane>(
        &self,
        lines: &Lines<W>,
        extras: &MakeExtras<'_>,
        Input { rows, sorted_input, runs }: Input,
    ) -> Result<Summary, BuildError> {
        let ends = |end: Option<W>| end.map_or(0, |end| lines.key(end));
        let mut extras = extras(ends(lines.min), ends(lines.max));
        if self.options.columns {
            extras.sections.extend(columns::of_lines::<W, B>(self, lines)?);
        }
        sections::append::<W, B>(self, lines, &mut extras.sections)?;
        self.finish(lines, extras, rows, sorted_input, runs)
    }
}

/// What a report says of the input.
struct Input {
    rows: u64,
    sorted_input: bool,
    runs: u64,
}

/// Receives chunks: writes them while they are in order, then gathers them for sorting.
struct Intake<'e, 'a, W, B> {
    emitter: &'e mut Emitter<'a, W, B>,
    sorter: Option<Sorter<'a, W, B>>,
    job: &'a Job<'a>,
    spills: Spills<'a>,
    plan: Plan,
    rows: u64,
}

impl<W: KeyLane, B: ValueLane> Intake<'_, '_, W, B> {
    fn take(&mut self, chunk: &Chunk) -> Result<(), BuildError> {
        let columns = columns::<W, B>(chunk)?;
        match &mut self.sorter {
            Some(sorter) => {
                self.emitter.writer.see(columns);
                sorter.push(columns)?;
            }
            None => self.take_sorted(columns)?,
        }
        self.rows += columns.len() as u64;
        Ok(())
    }

    fn take_sorted(&mut self, columns: Columns<'_, W, B>) -> Result<(), BuildError> {
        let strict = self.job.options.unique.is_some();
        let previous = self.emitter.last;
        let Some(at) = first_break(columns, previous, strict) else {
            return self.emitter.emit_sound(columns);
        };
        // With --unique, equal keys break the order, too: check for a real break.
        let before = if at == 0 { previous } else { Some(columns.key(at - 1)) };
        if self.job.options.unique == Some(Unique::Error) && before == Some(columns.key(at)) {
            return Err(self.emitter.duplicate(columns.key(at), Some(self.rows + at as u64)));
        }
        let out_of_order = if strict { first_break(columns, previous, false) } else { Some(at) };
        let Some(at) = out_of_order else { return self.emitter.emit(columns) };
        if self.job.options.sorted {
            let previous = if at == 0 { previous.unwrap_or_default() } else { columns.key(at - 1) };
            return Err(BuildError::Unsorted {
                row: self.rows + at as u64,
                previous: self.job.key_text(previous),
                key: self.job.key_text(columns.key(at)),
            });
        }
        let mut sorter = Sorter::new(self.spills, self.job.watch, self.plan, self.job.schema.rows)?;
        self.emitter.rewind(&mut |tuples| sorter.push(tuples))?;
        self.emitter.writer.see(columns);
        sorter.push(columns)?;
        self.sorter = Some(sorter);
        Ok(())
    }
}

/// Returns the columns of a chunk, if they have the types of the schema.
fn columns<W: KeyLane, B: ValueLane>(chunk: &Chunk) -> Result<Columns<'_, W, B>, BuildError> {
    W::of(&chunk.keys)
        .and_then(|keys| Some(Columns { keys, values: B::of(&chunk.values, keys.len())? }))
        .ok_or_else(|| {
            BuildError::Source(SourceError {
                input: "input".into(),
                place: String::new(),
                what: COLUMNS_DISAGREE.into(),
                advice: String::new(),
                cause: None,
            })
        })
}

/// Receives tuples in order, keeps those among equal keys that the options specify, and passes them on.
struct Emitter<'a, W, B> {
    job: &'a Job<'a>,
    writer: ShortWriter<'a, W, B>,
    unique: Option<Unique>,
    /// The last key so far.
    last: Option<W>,
    /// With [`Unique::Last`] and [`Unique::Sum`]: the last tuple so far, which a later one may change.
    pending: Option<Tuple<W, B>>,
    scratch: Vec<Tuple<W, B>>,
}

impl<'a, W: KeyLane, B: ValueLane> Emitter<'a, W, B> {
    fn new(job: &'a Job<'a>, writer: ShortWriter<'a, W, B>) -> Self {
        Self { job, writer, unique: job.options.unique, last: None, pending: None, scratch: Vec::new() }
    }

    fn duplicate(&self, key: W, row: Option<u64>) -> BuildError {
        BuildError::Duplicate { key: self.job.key_text(key), row }
    }

    /// Adds the values of two tuples of a key.
    fn sum(&self, first: Tuple<W, B>, second: Tuple<W, B>) -> Result<B, BuildError> {
        let sum = first.value.to_u64().checked_add(second.value.to_u64());
        let fits = |sum: &u64| B::from_u64(*sum).to_u64() == *sum;
        sum.filter(fits).map(B::from_u64).ok_or_else(|| BuildError::Sum {
            key: self.job.key_text(first.key),
            value_type: self.job.schema.value_type,
        })
    }

    /// Receives tuples in order, which may have equal keys.
    fn emit<R: Rows<W, B>>(&mut self, rows: R) -> Result<(), BuildError> {
        let Some(unique) = self.unique else { return self.emit_sound(rows) };
        let Some(first) = first_break(rows, self.last, true) else { return self.emit_sound(rows) };
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        match unique {
            Unique::Error => return Err(self.duplicate(rows.key(first), None)),
            Unique::First => {
                let mut last = self.last;
                for tuple in (0..rows.len()).map(|at| rows.tuple(at)) {
                    if last != Some(tuple.key) {
                        scratch.push(tuple);
                        last = Some(tuple.key);
                    }
                }
            }
            Unique::Last => {
                // The pending tuple has a smaller key than these, or is replaced by the first of them.
                if self.pending.is_some_and(|pending| pending.key == rows.key(0)) {
                    self.pending = None;
                }
                for at in 0..rows.len() {
                    if at + 1 == rows.len() || rows.key(at) != rows.key(at + 1) {
                        scratch.push(rows.tuple(at));
                    }
                }
            }
            Unique::Sum => {
                // The pending tuple may have the first key of these.
                scratch.extend(self.pending.take_if(|pending| pending.key == rows.key(0)));
                for tuple in (0..rows.len()).map(|at| rows.tuple(at)) {
                    match scratch.last_mut().filter(|last| last.key == tuple.key) {
                        Some(last) => last.value = self.sum(*last, tuple)?,
                        None => scratch.push(tuple),
                    }
                }
            }
        }
        let result = self.emit_sound(&scratch[..]);
        self.scratch = scratch;
        // The key may have occurred before: then no tuple of it was passed on.
        self.last = Some(rows.key(rows.len() - 1));
        result
    }

    /// Receives tuples in order, none of which is to be dropped.
    fn emit_sound<R: Rows<W, B>>(&mut self, rows: R) -> Result<(), BuildError> {
        let Some(end) = rows.len().checked_sub(1) else { return Ok(()) };
        self.last = Some(rows.key(end));
        if !matches!(self.unique, Some(Unique::Last | Unique::Sum)) {
            return self.writer.append(rows);
        }
        if let Some(pending) = self.pending.replace(rows.tuple(end)) {
            self.writer.append(&[pending][..])?;
        }
        self.writer.append(rows.slice(0, end))
    }

    /// Passes all tuples to `take` again and starts anew.
    fn rewind(&mut self, take: &mut Take<'_, W, B>) -> Result<(), BuildError> {
        self.writer.rewind(take)?;
        self.last = None;
        match self.pending.take() {
            Some(pending) => {
                self.writer.see(&[pending][..]);
                take(&[pending])
            }
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<ShortWriter<'a, W, B>, BuildError> {
        if let Some(pending) = self.pending.take() {
            self.writer.append(&[pending][..])?;
        }
        Ok(self.writer)
    }
}

impl<W: KeyLane, B: ValueLane> Consume<W, B> for Emitter<'_, W, B> {
    fn take(&mut self, tuples: &[Tuple<W, B>]) -> Result<(), BuildError> {
        self.emit(tuples)
    }
}
