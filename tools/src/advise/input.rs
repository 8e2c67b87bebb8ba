//! The first rows of tables, which are read again and again: once for each type that they may have.
//!
//! Files are opened again. A stream is read once, and what was read of it is kept.

use crate::cli::{Global, TableArgs};
use crate::errors::source_failure;
use crate::failure::{self, Code, Failure};
use crate::message::Message;
use crate::tables::{self, Origin};
use pleach_builder::source::{Chunk, Column, Schema, Source, SourceError};
use pleach_input::NullCounts;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the tables that are read at most.
pub const SAMPLE_BYTES: u64 = 64 << 20;
/// Of these, bytes for what readers and decoders hold in advance.
const AHEAD_BYTES: u64 = 4 << 20;
/// Rows that are read at most.
const ROWS_MAX: u64 = 1 << 22;
/// Bytes of keys and values in memory, at most: a small file may expand to a large one.
const HELD_BYTES: usize = 256 << 20;
/// Rows of a chunk.
const CHUNK_ROWS: usize = 1 << 14;

/// Number of rows of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Total {
    /// Known.
    Exact(u64),
    /// Estimated, from the bytes that some of the rows take.
    About(u64),
    /// A stream has more than these.
    AtLeast(u64),
}

impl Total {
    /// Returns the number.
    pub fn rows(self) -> u64 {
        match self {
            Self::Exact(rows) | Self::About(rows) | Self::AtLeast(rows) => rows,
        }
    }
}

/// The first rows of a table.
#[derive(Clone)]
pub struct Sample {
    pub schema: Schema,
    pub chunks: Arc<[Chunk]>,
    pub rows: u64,
    pub total: Total,
    /// These rows are all that there are.
    pub is_whole: bool,
    /// Keys are in order.
    pub is_sorted: bool,
    /// Bytes that were read, and their number in all if it is known.
    pub read: (u64, Option<u64>),
    /// Time for reading.
    pub took: Duration,
}

impl Sample {
    /// Returns the bytes of keys and values in memory.
    pub fn held_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| held(&chunk.keys) + held(&chunk.values)).sum()
    }
}

fn held(column: &Column) -> usize {
    match column {
        Column::None => 0,
        Column::U32(words) => words.len() * 4,
        Column::U64(words) => words.len() * 8,
        Column::U128(words) => words.len() * 16,
        Column::Bytes(strings) => strings.data_bytes() + strings.len() * 8,
    }
}

/// Tables that can be opened many times.
#[derive(Clone, Debug)]
pub struct Input {
    origin: Origin,
    /// There is more of a stream than what is kept.
    is_cut: bool,
}

/// Returns true for an input that can be read only once.
fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-" || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

impl Input {
    /// Prepares the inputs, all of them named: reads a stream as far as the limit.
    pub fn new(args: &TableArgs) -> Result<Self, Failure> {
        let streams = args.inputs.iter().filter(|path| is_stream(path)).count();
        if streams == 0 {
            return Ok(Self { origin: Origin::Inputs, is_cut: false });
        }
        if args.inputs.len() > 1 {
            let message = Message::new("a stream among other inputs").at("cannot read it twice");
            return Err(Failure::new(Code::Input, message.advise("name files, or the stream alone")));
        }
        let path = &args.inputs[0];
        let failed = |error: &io::Error| match path.as_os_str() == "-" {
            true => Failure::new(
                Code::of_io(error),
                Message::new("cannot read").at("standard input").because(failure::advise(error)),
            ),
            false => Failure::io("cannot read", path, error),
        };
        let mut bytes = Vec::new();
        // One byte more shows whether there is more.
        let read =
            |stream: &mut dyn Read, bytes: &mut Vec<u8>| stream.take(SAMPLE_BYTES + 1).read_to_end(bytes);
        match path.as_os_str() == "-" {
            true => read(&mut io::stdin().lock(), &mut bytes),
            false => File::open(path).and_then(|mut file| read(&mut file, &mut bytes)),
        }
        .map_err(|error| failed(&error))?;
        let is_cut = bytes.len() as u64 > SAMPLE_BYTES;
        bytes.truncate(SAMPLE_BYTES as usize);
        Ok(Self { origin: Origin::Bytes(bytes.into()), is_cut })
    }

    /// Opens the tables.
    pub fn open(&self, args: &TableArgs, global: &Global) -> Result<Box<dyn Source>, SourceError> {
        tables::open(args, global, &NullCounts::default(), &self.origin)
    }

    /// Reads rows, at least a chunk of them, until there are enough bytes or it is late; passes each chunk to `keep`,
    /// which may empty it. Returns the number of rows, true if these are all, and the source.
    fn read(
        &self,
        mut source: Box<dyn Source>,
        (bytes_max, until): (u64, Instant),
        mut keep: impl FnMut(&mut Chunk),
    ) -> Result<(u64, bool, Box<dyn Source>), SourceError> {
        let (mut rows, mut bytes) = (0, 0);
        let mut chunk = Chunk::new(source.schema().key_type, source.schema().value_type);
        loop {
            let read = source.next_chunk(&mut chunk, CHUNK_ROWS);
            match read {
                // The row that is cut in two.
                Err(_) if self.is_cut && rows > 0 => return Ok((rows, false, source)),
                read => read?,
            }
            if chunk.is_empty() {
                return Ok((rows, !self.is_cut, source));
            }
            rows += chunk.len() as u64;
            bytes += held(&chunk.keys) + held(&chunk.values);
            keep(&mut chunk);
            let is_enough = source.progress().0 >= bytes_max
                || rows >= ROWS_MAX
                || bytes >= HELD_BYTES
                || Instant::now() >= until;
            if is_enough {
                // The end may be here.
                let is_all = source.schema().rows == Some(rows);
                return Ok((rows, is_all, source));
            }
        }
    }

    /// Reads the first rows until there are enough `bytes` or it is `until`.
    pub fn try_rows(
        &self,
        args: &TableArgs,
        global: &Global,
        (bytes, until): (u64, Instant),
    ) -> Result<(), SourceError> {
        let source = self.open(args, global)?;
        self.read(source, (bytes, until), |_| {}).map(|_| ())
    }

    /// Reads the first rows.
    pub fn sample(&self, args: &TableArgs, global: &Global, until: Instant) -> Result<Sample, Failure> {
        let started = Instant::now();
        let failed = |error| source_failure(&error);
        let source = self.open(args, global).map_err(failed)?;
        let schema = source.schema().clone();
        let is_small = match &self.origin {
            Origin::Inputs => source.progress().1.is_some_and(|all| all <= SAMPLE_BYTES),
            Origin::Bytes(_) => !self.is_cut,
        };
        let bytes_max = if is_small { u64::MAX } else { SAMPLE_BYTES - AHEAD_BYTES };
        let (mut chunks, mut is_sorted) = (Vec::new(), true);
        let (rows, is_whole, source) = self
            .read(source, (bytes_max, until), |chunk| {
                is_sorted &= is_in_order(chunks.last(), chunk);
                chunks.push(std::mem::replace(chunk, Chunk::new(schema.key_type, schema.value_type)));
            })
            .map_err(failed)?;
        let (done, all) = source.progress();
        let total = match (source.schema().rows, all) {
            _ if is_whole => Total::Exact(rows),
            (Some(total), _) => Total::Exact(total),
            (None, Some(all)) if !self.is_cut && done > 0 => {
                Total::About((rows as f64 * all as f64 / done as f64).max(rows as f64) as u64)
            }
            _ => Total::AtLeast(rows),
        };
        let read = if is_whole { (all.unwrap_or(done), all) } else { (done.min(SAMPLE_BYTES), all) };
        let chunks = chunks.into();
        Ok(Sample { schema, chunks, rows, total, is_whole, is_sorted, read, took: started.elapsed() })
    }
}

/// Returns true if the keys of a chunk are in order, after those of the one before.
fn is_in_order(before: Option<&Chunk>, chunk: &Chunk) -> bool {
    fn words<W: Ord>(before: Option<&Vec<W>>, words: &[W]) -> bool {
        let last = before.and_then(|before| before.last());
        words.is_sorted() && last.zip(words.first()).is_none_or(|(last, first)| last <= first)
    }
    match (&chunk.keys, before.map(|before| &before.keys)) {
        (Column::None, _) => true,
        (Column::U32(keys), Some(Column::U32(last))) => words(Some(last), keys),
        (Column::U64(keys), Some(Column::U64(last))) => words(Some(last), keys),
        (Column::U128(keys), Some(Column::U128(last))) => words(Some(last), keys),
        (Column::U32(keys), _) => words(None, keys),
        (Column::U64(keys), _) => words(None, keys),
        (Column::U128(keys), _) => words(None, keys),
        (Column::Bytes(keys), before) => {
            let last = match before {
                Some(Column::Bytes(before)) => before.len().checked_sub(1).map(|at| before.get(at)),
                Some(Column::None | Column::U32(_) | Column::U64(_) | Column::U128(_)) | None => None,
            };
            keys.iter().is_sorted() && last.is_none_or(|last| keys.is_empty() || last <= keys.get(0))
        }
    }
}

/// A source of rows that were read before.
pub struct Replay {
    schema: Schema,
    chunks: Arc<[Chunk]>,
    at: usize,
    read: u64,
}

impl Replay {
    /// Returns all rows of a sample.
    pub fn all(sample: &Sample) -> Self {
        Self::of(&sample.schema, Arc::clone(&sample.chunks))
    }

    /// Returns about so many rows: the first ones if keys are in order, as others are farther apart, else those at
    /// equal distances.
    pub fn some(sample: &Sample, rows: u64) -> Self {
        let step = sample.rows.div_ceil(rows.max(1)).max(1) as usize;
        let mut left = rows as usize;
        let mut chunks = Vec::new();
        for chunk in &*sample.chunks {
            let mut some = Chunk::new(sample.schema.key_type, sample.schema.value_type);
            let (end, step) = if sample.is_sorted { (chunk.len().min(left), 1) } else { (chunk.len(), step) };
            for at in (0..end).step_by(step) {
                push(&mut some.keys, &chunk.keys, at);
                push(&mut some.values, &chunk.values, at);
            }
            left -= some.len().min(left);
            if !some.is_empty() {
                chunks.push(some);
            }
        }
        Self::of(&sample.schema, chunks.into())
    }

    fn of(schema: &Schema, chunks: Arc<[Chunk]>) -> Self {
        let rows = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        Self { schema: Schema { rows: Some(rows), ..schema.clone() }, chunks, at: 0, read: 0 }
    }
}

/// Appends an element of a column to another one of the same type.
pub fn push(to: &mut Column, from: &Column, at: usize) {
    match (to, from) {
        (Column::U32(to), Column::U32(from)) => to.push(from[at]),
        (Column::U64(to), Column::U64(from)) => to.push(from[at]),
        (Column::U128(to), Column::U128(from)) => to.push(from[at]),
        (Column::Bytes(to), Column::Bytes(from)) => to.push(from.get(at)),
        (Column::None | Column::U32(_) | Column::U64(_) | Column::U128(_) | Column::Bytes(_), _) => {}
    }
}

impl Source for Replay {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, _tuples_max: usize) -> Result<(), SourceError> {
        match self.chunks.get(self.at) {
            Some(next) => chunk.clone_from(next),
            None => chunk.clear(),
        }
        self.at += 1;
        self.read += chunk.len() as u64;
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.read, self.schema.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_format::{KeyType, ValueType};

    fn sample(keys: &[&[u64]]) -> Sample {
        let schema = Schema::plain(KeyType::U64, ValueType::None, None);
        let chunk = |keys: &&[u64]| Chunk { keys: Column::U64(keys.to_vec()), ..Chunk::default() };
        let chunks: Vec<Chunk> = keys.iter().map(chunk).collect();
        let is_sorted = (0..chunks.len())
            .all(|at| is_in_order(at.checked_sub(1).map(|before| &chunks[before]), &chunks[at]));
        let rows = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        let (total, took) = (Total::Exact(rows), Duration::ZERO);
        Sample {
            schema,
            chunks: chunks.into(),
            rows,
            total,
            is_whole: true,
            is_sorted,
            read: (0, None),
            took,
        }
    }

    fn keys(mut source: Replay) -> Vec<u64> {
        let (mut all, mut chunk) = (Vec::new(), Chunk::default());
        loop {
            source.next_chunk(&mut chunk, 1).expect("rows");
            match &chunk.keys {
                Column::U64(keys) if !keys.is_empty() => all.extend_from_slice(keys),
                _ => return all,
            }
        }
    }

    #[test]
    fn order_is_that_of_all_chunks() {
        assert!(sample(&[&[1, 2], &[2, 3]]).is_sorted && sample(&[]).is_sorted);
        assert!(!sample(&[&[1, 3], &[2, 3]]).is_sorted && !sample(&[&[2, 1]]).is_sorted);
    }

    #[test]
    fn some_rows_keep_the_density_of_ordered_keys_and_the_range_of_others() {
        let ordered = sample(&[&[0, 1, 2, 3], &[4, 5, 6, 7]]);
        assert_eq!(keys(Replay::some(&ordered, 6)), [0, 1, 2, 3, 4, 5]);
        let other = sample(&[&[7, 1, 6, 3], &[4, 5, 2, 0]]);
        assert_eq!(keys(Replay::some(&other, 4)), [7, 6, 4, 2]);
        assert_eq!(keys(Replay::all(&other)), [7, 1, 6, 3, 4, 5, 2, 0]);
    }
}
