//! Compaction: several files are merged into one.
//!
//! Each file is a sorted stream of chunks. The stream with the smallest key is drained as long as its keys
//! are not above those of the others, so files whose keys do not interleave are copied in long runs. Among
//! equal keys, those of an earlier file come first.

use super::base::{Base, count};
use super::changes::Effects;
use super::generations::{self, Keep, Kept};
use super::passing::unwrapped;
use super::strings::ByteMerge;
use super::words::WordMerge;
use crate::bytes::element;
use crate::error::BuildError;
use crate::flow;
use crate::in_pool;
use crate::job::with_lanes;
use crate::layout::Layout;
use crate::observe::{Observer, Watch};
use crate::options::{BuildOptions, Summary, Unique};
use crate::pack::{KeyLane, ValueLane};
use crate::publish::{Publication, Rules};
use crate::rescale::{Rescale, Rescaled};
use crate::source::{Chunk, Column, Schema, Source, SourceError};
use crate::storage::{RealStorage, Storage};
use pleach_format::logical::{Ratio, matching, ratio};
use pleach_format::{KeyType, Meaning, ValueType};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Options of a compaction.
#[derive(Clone, Debug, Default)]
pub struct CompactOptions {
    /// Treatment of equal keys; `None` keeps them all.
    pub unique: Option<Unique>,
    /// Sections of the merged file; `None` takes the layout of the first file.
    pub layout: Option<Layout>,
    /// Leave out damaged blocks instead of refusing their file.
    pub salvage: bool,
    /// Number of threads; 0 selects the current rayon pool.
    pub threads: usize,
    /// Number of old generations of the target to keep, named by [`kept_path`](super::kept_path); `None`
    /// keeps none and removes none.
    pub keep: Option<usize>,
    /// Also replace a file that is not a Pleach file. None of the merged files is ever replaced.
    pub force: bool,
    /// Merge files with keys that are shorter than those they stand for, although equal keys may then stand for
    /// different ones.
    pub approximate: bool,
}

/// Report of a compaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Compacted {
    /// Report on the new file.
    pub summary: Summary,
    /// Ranks of the tuples lost with damaged blocks, ascending, for each file.
    pub lost: Vec<Vec<Range<u64>>>,
}

impl Compacted {
    /// Returns the number of lost tuples.
    #[must_use]
    pub fn lost_tuples(&self) -> u64 {
        self.lost.iter().map(|ranges| count(ranges)).sum()
    }
}

/// Merges `files`, which have the same types, into the file `target`. One pass over each file; every block
/// that is read is verified.
///
/// # Errors
/// [`BuildError::Base`] or [`BuildError::Damaged`] if a file cannot be read, [`BuildError::Types`] if types
/// differ, [`BuildError::Approximate`], [`BuildError::ManyFiles`] if they cannot all be open,
/// [`BuildError::Source`] if `files` is empty;
/// those of [`build`](crate::build).
pub fn compact(
    files: &[PathBuf],
    target: impl AsRef<Path>,
    options: &CompactOptions,
    observer: &dyn Observer,
) -> Result<Compacted, BuildError> {
    let target = target.as_ref();
    in_pool(options.threads, || run(files, target, options, observer, &RealStorage).map_err(unwrapped))
}

fn run(
    files: &[PathBuf],
    target: &Path,
    options: &CompactOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<Compacted, BuildError> {
    let watch = &Watch::new(observer);
    watch.check()?;
    let publication = Publication::begin(storage, target, Rules::index(files.to_vec(), options.force))?;
    generations::may_keep(&publication, Keep::of(options.keep))?;
    let bases = files
        .iter()
        .map(|path| Base::open(storage, path, options.salvage))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| match error {
            BuildError::Io { source, .. } if source.raw_os_error() == Some(libc::EMFILE) => {
                BuildError::ManyFiles { files: files.len() }
            }
            error => error,
        })?;
    let schemas = bases.iter().map(Base::schema).collect::<Result<Vec<_>, _>>()?;
    let (Some(first), Some(schema)) = (bases.first(), schemas.first()) else {
        let (what, advice) = ("there are none".into(), "name at least one file".into());
        let error = SourceError { input: "files".into(), place: String::new(), what, advice, cause: None };
        return Err(error.into());
    };
    let (mut keys, mut values) = (schema.key_meaning(), schema.value_meaning());
    for (base, other) in bases.iter().zip(&schemas) {
        let common = matching(&keys, &other.key_meaning()).zip(matching(&values, &other.value_meaning()));
        let Some((common_keys, common_values)) = common else {
            return Err(BuildError::Types {
                path: base.path().to_owned(),
                found: other.types_text(),
                first: first.path().to_owned(),
                expected: schema.types_text(),
            });
        };
        (keys, values) = (common_keys.meaning, common_values.meaning);
    }
    let lossy = bases.iter().zip(&schemas).find(|(_, schema)| schema.approximate.is_some());
    if let Some((base, _)) = lossy.filter(|_| bases.len() > 1 && !options.approximate) {
        return Err(BuildError::Approximate { path: base.path().to_owned() });
    }
    let distinct = |(base, schema): (&Base, &Schema)| schema.approximate.unwrap_or(base.header.tuples);
    let distinct: u64 = bases.iter().zip(&schemas).map(distinct).sum();
    let mut schema = schema.clone();
    schema.approximate = lossy.map(|_| distinct);
    schema.interval = schema.interval.filter(|_| schemas.iter().all(|other| other.interval.is_some()));
    schema.key_logical = keys.logical.meta();
    schema.value_logical = values.logical.meta();
    schema.key_type = KeyType::from_name(&keys.words).unwrap_or(schema.key_type);
    schema.value_type = ValueType::from_name(&values.words).unwrap_or(schema.value_type);
    let streams = bases
        .iter()
        .zip(&schemas)
        .map(|(base, own)| Stream::in_units_of(base, own, &schema))
        .collect::<Result<Vec<_>, BuildError>>()?;
    let tuples = bases.iter().map(|base| base.header.tuples).sum();
    let mut source = Merge { schema, streams, tuples, done: 0 };
    let mut build = BuildOptions { unique: options.unique, ..first.build_options()? };
    if let Some(layout) = options.layout {
        build = build.with_layout(layout);
    }
    let summary = flow::write(&publication, &mut source, &build, watch, storage)?;
    let Kept { kept, left } = generations::publish(publication, Keep::of(options.keep), true, watch)?;
    let summary = Summary { kept, left, ..summary };
    Ok(Compacted { summary, lost: bases.iter().map(Base::lost).collect() })
}

/// Returns the tuples of a base as a source.
pub(crate) fn source_of<'a>(base: &'a Base, schema: &Schema) -> Result<Box<dyn Source + 'a>, BuildError> {
    struct Open;
    impl Open {
        fn words<'a, W: KeyLane, B: ValueLane>(
            self,
            base: &'a Base,
            schema: &Schema,
        ) -> Result<Box<dyn Source + 'a>, BuildError> {
            Ok(Box::new(WordMerge::<W, B>::new(base, schema.clone(), Effects::default())?))
        }
    }
    if schema.key_type.is_bytes() || schema.value_type.is_bytes() {
        return Ok(Box::new(ByteMerge::new(base, schema.clone(), Effects::default())?));
    }
    let (word_bytes, value_bytes) = (schema.key_type.bytes(), schema.value_type.line_bytes());
    with_lanes!(word_bytes, value_bytes => Open.words(base, schema))
}

/// Number of tuples read ahead of each stream.
const CHUNK_TUPLES: usize = 1 << 15;

/// One input file and its position.
struct Stream<'a> {
    source: Box<dyn Source + 'a>,
    chunk: Chunk,
    at: usize,
    ended: bool,
}

impl<'a> Stream<'a> {
    fn new(source: Box<dyn Source + 'a>) -> Self {
        Self { source, chunk: Chunk::default(), at: 0, ended: false }
    }

    /// Creates a stream of the tuples of a base with schema `own`, in the types and units of `schema`.
    fn in_units_of(base: &'a Base, own: &Schema, schema: &Schema) -> Result<Self, BuildError> {
        let of = |is_key, from: &Meaning, to: &Meaning| {
            let ratio = ratio(&from.logical, &to.logical).unwrap_or(Ratio::ONE);
            Rescale::new(is_key, from, to, ratio)
        };
        let (keys, values) = (schema.key_meaning(), schema.value_meaning());
        let rescales = (of(true, &own.key_meaning(), &keys), of(false, &own.value_meaning(), &values));
        let source = source_of(base, own)?;
        Ok(Self::new(match rescales {
            (None, None) => source,
            (own_keys, own_values) => Box::new(Rescaled {
                source,
                name: base.path().display().to_string(),
                schema: schema.clone(),
                keys: own_keys,
                values: own_values,
                to: [keys.to_string(), values.to_string()],
            }),
        }))
    }

    /// Returns true if there is another tuple, which is then in the chunk.
    fn is_there(&mut self) -> Result<bool, SourceError> {
        if self.at == self.chunk.len() && !self.ended {
            self.source.next_chunk(&mut self.chunk, CHUNK_TUPLES)?;
            self.at = 0;
            self.ended = self.chunk.is_empty();
        }
        Ok(!self.ended)
    }

    /// Returns the first tuple from here on whose key is above `key` or (without `equal`) not below it.
    fn end_of_run(&self, key: &[u8], equal: bool) -> usize {
        let below = |at: usize| {
            let mut buffer = [0; 16];
            let here = element(&self.chunk.keys, at, true, &mut buffer);
            here < key || (equal && here == key)
        };
        let (mut low, mut high, mut step) = (self.at, self.at, 1);
        while high < self.chunk.len() && below(high) {
            low = high + 1;
            high = high.saturating_add(step).min(self.chunk.len());
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if below(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Appends a run of tuples.
pub(crate) fn append(from: &Chunk, run: Range<usize>, to: &mut Chunk) {
    let column = |from: &Column, to: &mut Column| match (from, to) {
        (Column::U32(from), Column::U32(to)) => to.extend_from_slice(&from[run.clone()]),
        (Column::U64(from), Column::U64(to)) => to.extend_from_slice(&from[run.clone()]),
        (Column::U128(from), Column::U128(to)) => to.extend_from_slice(&from[run.clone()]),
        (Column::Bytes(from), Column::Bytes(to)) => run.clone().for_each(|at| to.push(from.get(at))),
        _ => {}
    };
    column(&from.keys, &mut to.keys);
    column(&from.values, &mut to.values);
}

struct Merge<'a> {
    schema: Schema,
    streams: Vec<Stream<'a>>,
    tuples: u64,
    done: u64,
}

impl Merge<'_> {
    /// Returns the stream with the smallest key, and the end of the run that can be taken from it at once.
    fn turn(&mut self) -> Result<Option<(usize, usize)>, SourceError> {
        let mut heads = Vec::with_capacity(self.streams.len());
        for (number, stream) in self.streams.iter_mut().enumerate() {
            if stream.is_there()? {
                let key = element(&stream.chunk.keys, stream.at, true, &mut [0; 16]).to_vec();
                heads.push((key, number));
            }
        }
        heads.sort_unstable();
        let Some((_, number)) = heads.first() else { return Ok(None) };
        let stream = &self.streams[*number];
        let end = match heads.get(1) {
            None => stream.chunk.len(),
            Some((key, other)) => stream.end_of_run(key, number < other),
        };
        Ok(Some((*number, end)))
    }
}

impl Source for Merge<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        const BYTES_MAX: usize = 4 << 20;
        *chunk = Chunk::new(self.schema.key_type, self.schema.value_type);
        let held = |column: &Column| match column {
            Column::Bytes(strings) => strings.data_bytes(),
            _ => 0,
        };
        while chunk.len() < tuples_max && held(&chunk.keys) + held(&chunk.values) < BYTES_MAX {
            let Some((number, end)) = self.turn()? else { break };
            let stream = &mut self.streams[number];
            // Take at least one tuple, whatever the bytes are: the build refuses an unsorted file.
            let end = end.clamp(stream.at + 1, stream.at + (tuples_max - chunk.len()));
            append(&stream.chunk, stream.at..end.min(stream.chunk.len()), chunk);
            self.done += (end - stream.at) as u64;
            stream.at = end;
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.done, Some(self.tuples))
    }
}
