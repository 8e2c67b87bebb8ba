//! The flow of a build: optimistic streaming, sorting if needed, publishing.

use crate::bytes;
use crate::classic;
use crate::columns;
use crate::error::BuildError;
use crate::external::{Sorter, Spills};
use crate::finish::{self, Extra, Head};
use crate::grid;
use crate::harmonia;
use crate::lines::{LineWriter, Lines};
use crate::observe::{Observer, Phase, Watch};
use crate::options::{BuildOptions, Harmonia, Layout, Summary, Unique};
use crate::pack::{Columns, KeyLane, Rows, Take, Tuple, ValueLane, first_break};
use crate::packed;
use crate::parallel;
use crate::plan::Plan;
use crate::publish::{Descent, Output, Publication, Rules};
use crate::rebuild::generations::{self, Keep, Kept};
use crate::sort::Consume;
use crate::source::{self, Chunk, Column, Schema, Source, SourceError};
use crate::storage::Storage;
use pleach_format::key::Word;
use pleach_format::meta::{Meta, TEXT_BYTES_MAX};
use pleach_format::{Mask, ValueType};
use std::path::Path;
use std::time::{Duration, Instant};

/// Tuples of the first chunk. Later chunks grow while they are read quickly, so that cancellation is checked
/// often enough with a slow source.
const CHUNK_TUPLES_FIRST: usize = 1 << 14;
/// Maximum reading time of a chunk that is followed by a larger one.
const CHUNK_TIME: Duration = Duration::from_millis(10);

/// Builds a file; called inside the pool.
pub(crate) fn build(
    source: &mut dyn Source,
    target: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    let watch = &Watch::new(observer);
    watch.check()?;
    check(&source.schema().clone(), options)?;
    // Take the lock before the first tuple is read.
    let rules = Rules::index(options.inputs.clone(), options.force);
    let publication = Publication::begin(storage, target, rules)?;
    generations::may_keep(&publication, Keep::of(options.keep))?;
    let summary = write(&publication, source, options, watch, storage)?;
    let Kept { kept, left } = generations::publish(publication, Keep::of(options.keep), true, watch)?;
    Ok(Summary { kept, left, ..summary })
}

/// Refuses a build that is not possible, before anything is read.
fn check(schema: &Schema, options: &BuildOptions) -> Result<(), BuildError> {
    meta(schema, options)?;
    let key_type = schema.key_type;
    if options.packed && (key_type.is_bytes() || key_type.bytes() > 8) {
        return Err(BuildError::NotPackable { key_type });
    }
    if let Some(Harmonia { fanout, fill_percent }) = options.harmonia.filter(|shape| !shape.is_sound()) {
        return Err(BuildError::Harmonia { fanout, fill_percent });
    }
    Ok(())
}

/// Builds into the temporary file of a publication.
pub(crate) fn write(
    publication: &Publication<'_>,
    source: &mut dyn Source,
    options: &BuildOptions,
    watch: &Watch<'_>,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    let schema = source.schema().clone();
    check(&schema, options)?;
    let meta = meta(&schema, options)?;
    let folder = options.temp_dir.clone().unwrap_or_else(|| publication.folder().to_owned());
    let spills = Spills { storage, folder: &folder };
    let job = Job {
        options,
        watch,
        schema: &schema,
        spills,
        output: publication.output(),
        descent: Descent {
            generation: publication.descent().generation.max(options.generation),
            ..publication.descent()
        },
        meta: &meta,
        mask: None,
    };
    if schema.key_type.is_bytes() || schema.value_type.is_bytes() {
        bytes::build(&job, source)
    } else {
        job.run_words(schema.key_type.bytes(), source, &Extras::none)
    }
}

/// Sections after the spine, which depend on what was built.
pub(crate) struct Extras<'a> {
    pub sections: Vec<Extra<'a>>,
    /// Smallest and largest key, if they are byte strings.
    pub byte_ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl Extras<'_> {
    fn none(_: u128, _: u128) -> Self {
        Self { sections: Vec::new(), byte_ends: None }
    }
}

/// Makes the extra sections from the smallest and largest word (0 if there are none).
pub(crate) type MakeExtras<'a> = dyn Fn(u128, u128) -> Extras<'a> + 'a;

/// Calls a method that is generic over the types of words and values, for words of the given width (4, 8 or
/// 16 bytes) and values of the given width in a line (0, 4 or 8 bytes).
macro_rules! with_lanes {
    ($word_bytes:expr, $value_bytes:expr => $object:ident.$method:ident($($argument:expr),*)) => {
        match ($word_bytes, $value_bytes) {
            (4, 0) => $object.$method::<u32, ()>($($argument),*),
            (4, 4) => $object.$method::<u32, u32>($($argument),*),
            (4, _) => $object.$method::<u32, u64>($($argument),*),
            (8, 0) => $object.$method::<u64, ()>($($argument),*),
            (8, 4) => $object.$method::<u64, u32>($($argument),*),
            (8, _) => $object.$method::<u64, u64>($($argument),*),
            (_, 0) => $object.$method::<u128, ()>($($argument),*),
            (_, 4) => $object.$method::<u128, u32>($($argument),*),
            (_, _) => $object.$method::<u128, u64>($($argument),*),
        }
    };
}
pub(crate) use with_lanes;

/// Inputs of a build.
pub(crate) struct Job<'a> {
    pub options: &'a BuildOptions,
    pub watch: &'a Watch<'a>,
    pub schema: &'a Schema,
    pub spills: Spills<'a>,
    pub output: Output<'a>,
    pub descent: Descent,
    pub meta: &'a Meta,
    /// The mask that maps the words back to byte keys.
    pub mask: Option<&'a Mask>,
}

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
        let (output, spills) = (self.output, self.spills);
        let writer = LineWriter::<W, B>::new(
            output,
            spills,
            self.watch,
            &plan,
            (self.mask.is_some(), self.options.grid),
        );
        let mut emitter = Emitter::new(self, writer);

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
            runs = sorter.finish(&mut emitter)?;
        }
        let lines = emitter.finish()?.finish()?;
        let ends = |end: Option<W>| end.map_or(0, Word::to_u128);
        let mut extras = extras(ends(lines.min), ends(lines.max));
        if self.options.columns {
            extras.sections.extend(columns::of_lines::<W, B>(self, &lines)?);
        }
        if self.options.packed {
            extras.sections.push(packed::of_lines::<W, B>(self, &lines)?);
        }
        if self.options.classic {
            extras.sections.push(classic::section::of_lines::<W, B>(self, &lines)?);
        }
        if let Some(shape) = self.options.harmonia {
            extras.sections.push(harmonia::of_lines::<W, B>(self, &lines, shape)?);
        }
        self.finish(&lines, extras, rows, sorted_input, runs)
    }

    /// Writes everything after the tuple lines.
    pub(crate) fn finish<W: KeyLane>(
        &self,
        lines: &Lines<W>,
        extras: Extras<'_>,
        rows: u64,
        sorted_input: bool,
        runs: u64,
    ) -> Result<Summary, BuildError> {
        let head = Head {
            key_type: self.schema.key_type,
            value_type: self.schema.value_type,
            unique: self.options.unique.is_some(),
            descent: self.descent,
            meta: self.meta,
            byte_ends: extras.byte_ends,
        };
        let tuples = lines.tuples;
        let mut sections = extras.sections;
        if let (Some(low), Some(high)) = (lines.min, lines.max) {
            // Directly after the spine.
            sections.splice(..0, grid::of_lasts(&lines.lasts, low, high)?);
        }
        let finished = finish::finish(self.output, self.watch, lines, &head, &sections)?;
        let levels = finished.spine.levels.iter();
        Ok(Summary {
            rows,
            tuples,
            file_bytes: finished.file_bytes,
            file_id: finished.file_id,
            generation: head.descent.generation,
            key_type: head.key_type,
            value_type: head.value_type,
            unique: head.unique,
            sorted_input,
            runs,
            spine: levels.map(|level| (level.encoding.name().to_owned(), level.lines)).collect(),
            kept: None,
            left: None,
        })
    }

    /// Formats a key for messages.
    fn key_text<W: Word>(&self, key: W) -> String {
        match self.mask {
            Some(mask) => {
                let mut bytes = Vec::new();
                mask.unpack(key.to_u128(), &mut bytes);
                self.schema.key_text().bytes(&bytes)
            }
            None => self.schema.key_text().word(key.to_u128()),
        }
    }
}

fn meta(schema: &Schema, options: &BuildOptions) -> Result<Meta, BuildError> {
    let layout = options.layout();
    let has_value = schema.value_type != ValueType::None;
    let value = |text: &String| if has_value { text.clone() } else { String::new() };
    let meta = Meta {
        key_name: schema.key_name.clone(),
        value_name: value(&schema.value_name),
        key_logical: schema.key_logical.clone(),
        value_logical: value(&schema.value_logical),
        layout: if layout == Layout::default() { String::new() } else { layout.to_string() },
    };
    for text in [&meta.key_name, &meta.value_name, &meta.key_logical, &meta.value_logical] {
        if text.len() > TEXT_BYTES_MAX {
            let (found, limit) = (text.len() as u64, TEXT_BYTES_MAX as u64);
            return Err(BuildError::TooLarge { what: "the name of a column", found, limit });
        }
    }
    Ok(meta)
}

/// Reads chunks of a size that suits the source.
pub(crate) struct Reader<'a> {
    source: &'a mut dyn Source,
    watch: &'a Watch<'a>,
    /// Number of tuples to request at once.
    tuples: usize,
    plan: Plan,
    rows: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a mut dyn Source, watch: &'a Watch<'a>, plan: Plan) -> Self {
        Self { source, watch, tuples: CHUNK_TUPLES_FIRST.min(plan.chunk_tuples), plan, rows: 0 }
    }

    /// Fills `chunk` with the next tuples; leaves it empty at the end.
    pub(crate) fn read(&mut self, chunk: &mut Chunk) -> Result<(), BuildError> {
        self.watch.check()?;
        let start = Instant::now();
        source::next_chunk(self.source, chunk, self.tuples, &mut self.rows)?;
        if start.elapsed() < CHUNK_TIME {
            self.tuples = (self.tuples * 2).min(self.plan.chunk_tuples);
        }
        let (done, total) = self.source.progress();
        self.watch.progress(Phase::Read, done, total);
        Ok(())
    }
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
            Some(sorter) => sorter.push(columns)?,
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
                problem: "its columns are not of the announced types, or not of equal length".into(),
                cause: None,
            })
        })
}

/// Receives tuples in order, keeps those among equal keys that the options specify, and passes them on.
struct Emitter<'a, W, B> {
    job: &'a Job<'a>,
    writer: LineWriter<'a, W, B>,
    unique: Option<Unique>,
    /// The last key so far.
    last: Option<W>,
    /// With [`Unique::Last`]: the last tuple so far, which a later one may replace.
    pending: Option<Tuple<W, B>>,
    scratch: Vec<Tuple<W, B>>,
}

impl<'a, W: KeyLane, B: ValueLane> Emitter<'a, W, B> {
    fn new(job: &'a Job<'a>, writer: LineWriter<'a, W, B>) -> Self {
        Self { job, writer, unique: job.options.unique, last: None, pending: None, scratch: Vec::new() }
    }

    fn duplicate(&self, key: W, row: Option<u64>) -> BuildError {
        BuildError::Duplicate { key: self.job.key_text(key), row }
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
        if self.unique != Some(Unique::Last) {
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
            Some(pending) => take(&[pending]),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<LineWriter<'a, W, B>, BuildError> {
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
