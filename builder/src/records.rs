//! Tuples of byte strings: gathered in memory, sorted, spilled and merged.
//!
//! Records are stored one after the other in an arena, in input order. Sorting moves pairs of eight key bytes
//! (from the first that differs on) and a record number; it compares these bytes, then the key, then the
//! position, so equal keys keep their order.
//!
//! A full arena is written as a sorted run to an unnamed temporary file. Runs are merged; among equal keys,
//! the earlier run comes first. The result can be read several times: words, columns and offsets each take
//! their own pass.

use crate::error::BuildError;
use crate::external::{Spill, Spills};
use crate::observe::{Phase, Watch};
use crate::options::Unique;
use crate::parallel;
use crate::show::KeyText;
use pleach_format::mask::Survey;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Bytes of a record in a run before its key: the lengths of key (2) and value (4).
const HEAD_BYTES: usize = 6;
/// Minimum number of bytes written to or read from a run at once.
const BUFFER_BYTES: usize = 64 << 10;

#[derive(Clone, Copy)]
struct Record {
    at: usize,
    key_bytes: u32,
    value_bytes: u32,
}

/// Records in memory, in input order.
#[derive(Default)]
pub(crate) struct Arena {
    data: Vec<u8>,
    records: Vec<Record>,
}

impl Arena {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        let (key_bytes, value_bytes) = (key.len() as u32, value.len() as u32);
        self.records.push(Record { at: self.data.len(), key_bytes, value_bytes });
        self.data.extend_from_slice(key);
        self.data.extend_from_slice(value);
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the memory in use during sorting.
    fn bytes(&self) -> usize {
        self.data.len() + self.records.len() * (size_of::<Record>() + size_of::<(u64, u32)>())
    }

    /// Returns key and value of a record.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> (&[u8], &[u8]) {
        let record = self.records[index];
        self.data[record.at..][..(record.key_bytes + record.value_bytes) as usize]
            .split_at(record.key_bytes as usize)
    }

    #[inline]
    fn key(&self, index: u32) -> &[u8] {
        self.get(index as usize).0
    }

    /// Returns the records in sorted order. `skip` leading bytes are the same in all keys. O(n log n).
    fn order(&self, skip: usize) -> Vec<u32> {
        let prefixed = |at: usize| (prefix(self.key(at as u32), skip), at as u32);
        let mut order = parallel::collect(self.records.len(), 1 << 13, prefixed);
        crate::pool::ready();
        order.par_sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| self.key(a.1).cmp(self.key(b.1))).then(a.1.cmp(&b.1))
        });
        parallel::collect(order.len(), 1 << 16, |at| order[at].1)
    }
}

/// Returns eight bytes of a key from `skip` on, the first one most significant, zero beyond the end.
fn prefix(key: &[u8], skip: usize) -> u64 {
    let rest = key.get(skip..).unwrap_or_default();
    let mut bytes = [0; 8];
    let len = rest.len().min(8);
    bytes[..len].copy_from_slice(&rest[..len]);
    u64::from_be_bytes(bytes)
}

/// Receives records in input order.
pub(crate) struct Gather<'a> {
    spills: Spills<'a>,
    watch: &'a Watch<'a>,
    limit_bytes: usize,
    key_text: KeyText,
    arena: Arena,
    spill: Option<Spill>,
    runs: Vec<Range<u64>>,
    end: u64,
    /// The bits in which keys differ.
    pub(crate) survey: Survey,
    last: Vec<u8>,
    rows: u64,
    sorted: bool,
    duplicates: bool,
}

/// Order of a key relative to the one before it.
pub(crate) enum Follows {
    /// It is larger, or the first.
    Above,
    /// It is the same.
    Equal,
    /// It is smaller.
    Below {
        /// The key before it.
        previous: Vec<u8>,
    },
}

impl<'a> Gather<'a> {
    /// Creates a gatherer that keeps about `limit_bytes` in memory.
    pub(crate) fn new(
        spills: Spills<'a>,
        watch: &'a Watch<'a>,
        limit_bytes: usize,
        key_text: KeyText,
    ) -> Self {
        Self {
            spills,
            watch,
            limit_bytes,
            key_text,
            arena: Arena::default(),
            spill: None,
            runs: Vec::new(),
            end: 0,
            survey: Survey::default(),
            last: Vec::new(),
            rows: 0,
            sorted: true,
            duplicates: false,
        }
    }

    /// Returns the number of records so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns true if all records so far were in order.
    pub(crate) fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Returns the arena if it holds all records.
    pub(crate) fn in_memory(&self) -> Option<&Arena> {
        self.runs.is_empty().then_some(&self.arena)
    }

    /// Adds a record; returns the order of its key relative to the one before it.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<Follows, BuildError> {
        if self.arena.bytes() >= self.limit_bytes || self.arena.len() >= u32::MAX as usize {
            self.spill_run()?;
        }
        let follows = match key.cmp(&self.last) {
            _ if self.rows == 0 => Follows::Above,
            std::cmp::Ordering::Greater => Follows::Above,
            std::cmp::Ordering::Equal => {
                self.duplicates = true;
                Follows::Equal
            }
            std::cmp::Ordering::Less => {
                self.sorted = false;
                Follows::Below { previous: self.last.clone() }
            }
        };
        self.survey.add(key);
        self.arena.push(key, value);
        self.last.clear();
        self.last.extend_from_slice(key);
        self.rows += 1;
        Ok(follows)
    }

    fn spill_run(&mut self) -> Result<(), BuildError> {
        let arena = std::mem::take(&mut self.arena);
        if self.spill.is_none() {
            self.spill = Some(self.spills.create()?);
        }
        let Some(spill) = &self.spill else { return Ok(()) };
        self.watch.progress(Phase::Sort, self.rows, None);
        let start = self.end;
        let mut writer = RunWriter::new(spill, start);
        if self.sorted {
            (0..arena.len()).try_for_each(|index| writer.push(arena.get(index), self.watch))?;
        } else {
            let order = arena.order(self.survey.common_bytes());
            order.iter().try_for_each(|&index| writer.push(arena.get(index as usize), self.watch))?;
        }
        self.end = writer.finish()?;
        self.runs.push(start..self.end);
        Ok(())
    }

    /// Sorts all records; among equal keys, keeps those that `unique` specifies.
    pub(crate) fn finish(mut self, unique: Option<Unique>) -> Result<Sorted<'a>, BuildError> {
        let watch = self.watch;
        if self.runs.is_empty() {
            watch.progress(Phase::Sort, 0, Some(self.rows));
            let arena = self.arena;
            let mut order = (!self.sorted).then(|| arena.order(self.survey.common_bytes()));
            if let Some(unique) = unique.filter(|_| self.duplicates || !self.sorted) {
                let all = order.take().unwrap_or_else(|| (0..arena.len() as u32).collect());
                order = Some(keep(&arena, all, unique, self.key_text)?);
            }
            return Ok(Sorted { watch, runs: 0, records: Records::Memory { arena, order } });
        }
        if self.arena.len() > 0 {
            self.spill_run()?;
        }
        let spilled = if self.sorted { 0 } else { self.runs.len() as u64 };
        let Some(spill) = self.spill else { unreachable!("runs lie in the spill file") };
        if self.sorted && !(unique.is_some() && self.duplicates) {
            return Ok(Sorted { watch, runs: spilled, records: Records::Spilled { spill, end: self.end } });
        }
        // Runs in order form a single run.
        let runs = if self.sorted { std::iter::once(0..self.end).collect() } else { self.runs };
        let merged = self.spills.create()?;
        let buffer_bytes = (self.limit_bytes / (runs.len() + 1)).clamp(BUFFER_BYTES, 4 << 20);
        let mut writer = RunWriter::new(&merged, 0);
        let mut filter = Filter { unique, key_text: self.key_text, held: None, last: None };
        merge(&spill, &runs, buffer_bytes, &mut |key, value| filter.push(key, value, &mut writer, watch))?;
        filter.finish(&mut writer, watch)?;
        let end = writer.finish()?;
        Ok(Sorted { watch, runs: spilled, records: Records::Spilled { spill: merged, end } })
    }
}

/// Selects the tuples with equal keys that `unique` specifies.
fn keep(
    arena: &Arena,
    mut order: Vec<u32>,
    unique: Unique,
    key_text: KeyText,
) -> Result<Vec<u32>, BuildError> {
    let equal = |a: u32, b: u32| arena.key(a) == arena.key(b);
    match unique {
        Unique::Error => {
            if let Some(pair) = order.windows(2).find(|pair| equal(pair[0], pair[1])) {
                return Err(BuildError::Duplicate { key: key_text.bytes(arena.key(pair[0])), row: None });
            }
        }
        Unique::First => order.dedup_by(|later, earlier| equal(*later, *earlier)),
        Unique::Last => order.dedup_by(|later, earlier| {
            let same = equal(*later, *earlier);
            if same {
                *earlier = *later;
            }
            same
        }),
        // Refused by `flow::check`.
        Unique::Sum => {}
    }
    Ok(order)
}

/// Filters consecutive tuples with equal keys as `unique` specifies.
struct Filter {
    unique: Option<Unique>,
    key_text: KeyText,
    last: Option<Vec<u8>>,
    /// With [`Unique::Last`]: the record that a later one may replace.
    held: Option<(Vec<u8>, Vec<u8>)>,
}

impl Filter {
    fn push(
        &mut self,
        key: &[u8],
        value: &[u8],
        writer: &mut RunWriter<'_>,
        watch: &Watch<'_>,
    ) -> Result<(), BuildError> {
        let same = self.last.as_deref() == Some(key);
        match self.unique {
            None => return writer.push((key, value), watch),
            Some(Unique::Error) if same => {
                return Err(BuildError::Duplicate { key: self.key_text.bytes(key), row: None });
            }
            Some(Unique::First) if same => return Ok(()),
            Some(Unique::Last) => {
                if !same && let Some((key, value)) = self.held.take() {
                    writer.push((&key, &value), watch)?;
                }
                self.held = Some((key.to_vec(), value.to_vec()));
            }
            Some(_) => writer.push((key, value), watch)?,
        }
        self.last = Some(key.to_vec());
        Ok(())
    }

    fn finish(self, writer: &mut RunWriter<'_>, watch: &Watch<'_>) -> Result<(), BuildError> {
        self.held.map_or(Ok(()), |(key, value)| writer.push((&key, &value), watch))
    }
}

struct RunWriter<'a> {
    spill: &'a Spill,
    at: u64,
    buffer: Vec<u8>,
}

impl<'a> RunWriter<'a> {
    fn new(spill: &'a Spill, at: u64) -> Self {
        Self { spill, at, buffer: Vec::with_capacity(1 << 20) }
    }

    fn push(&mut self, (key, value): (&[u8], &[u8]), watch: &Watch<'_>) -> Result<(), BuildError> {
        self.buffer.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.buffer.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(value);
        if self.buffer.len() >= 1 << 20 {
            watch.check()?;
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BuildError> {
        self.spill.output().write(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the run.
    fn finish(mut self) -> Result<u64, BuildError> {
        self.flush()?;
        Ok(self.at)
    }
}

/// A run that is being read.
struct RunReader<'a> {
    spill: &'a Spill,
    /// Bytes that have not been read into the buffer.
    left: Range<u64>,
    buffer: Vec<u8>,
    at: usize,
    buffer_bytes: usize,
}

impl<'a> RunReader<'a> {
    fn new(spill: &'a Spill, run: Range<u64>, buffer_bytes: usize) -> Self {
        Self { spill, left: run, buffer: Vec::new(), at: 0, buffer_bytes }
    }

    /// Makes sure that `bytes` bytes are in the buffer; returns `false` at the end of the run.
    fn ensure(&mut self, bytes: usize) -> Result<bool, BuildError> {
        let there = self.buffer.len() - self.at;
        if there >= bytes {
            return Ok(true);
        }
        if self.left.is_empty() {
            return Ok(false);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let more = (self.left.end - self.left.start).min(self.buffer_bytes.max(bytes) as u64);
        self.buffer.resize(there + more as usize, 0);
        self.spill.output().read(&mut self.buffer[there..], self.left.start)?;
        self.left.start += more;
        Ok(self.buffer.len() >= bytes)
    }

    /// Returns the next record, or `None` at the end.
    fn next(&mut self) -> Result<Option<KeyAndValue<'_>>, BuildError> {
        if !self.ensure(HEAD_BYTES)? {
            return Ok(None);
        }
        let head = &self.buffer[self.at..];
        let key_bytes = usize::from(u16::from_le_bytes([head[0], head[1]]));
        let value_bytes = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
        if !self.ensure(HEAD_BYTES + key_bytes + value_bytes)? {
            return Ok(None);
        }
        let record = &self.buffer[self.at + HEAD_BYTES..][..key_bytes + value_bytes];
        self.at += HEAD_BYTES + record.len();
        Ok(Some(record.split_at(key_bytes)))
    }
}

/// A key and its value.
type KeyAndValue<'a> = (&'a [u8], &'a [u8]);

/// Receives records.
pub(crate) type TakeRecord<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), BuildError> + 'a;

fn merge(
    spill: &Spill,
    runs: &[Range<u64>],
    buffer_bytes: usize,
    take: &mut TakeRecord<'_>,
) -> Result<(), BuildError> {
    let mut readers: Vec<RunReader<'_>> =
        runs.iter().map(|run| RunReader::new(spill, run.clone(), buffer_bytes)).collect();
    // Key, run, value: among equal keys the earlier run comes first.
    let mut heads = BinaryHeap::new();
    for (run, reader) in readers.iter_mut().enumerate() {
        if let Some((key, value)) = reader.next()? {
            heads.push(Reverse((key.to_vec(), run, value.to_vec())));
        }
    }
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((key, run, value)) = &mut *head;
        take(key, value)?;
        match readers[*run].next()? {
            Some((next_key, next_value)) => {
                key.clear();
                key.extend_from_slice(next_key);
                value.clear();
                value.extend_from_slice(next_value);
            }
            None => {
                std::collections::binary_heap::PeekMut::pop(head);
            }
        }
    }
    Ok(())
}

/// Records in sorted order.
pub(crate) struct Sorted<'a> {
    watch: &'a Watch<'a>,
    /// Number of sorted runs that were spilled.
    pub(crate) runs: u64,
    records: Records,
}

enum Records {
    Memory { arena: Arena, order: Option<Vec<u32>> },
    Spilled { spill: Spill, end: u64 },
}

impl Sorted<'_> {
    /// Passes all records to `take`, in order. Can be called again.
    pub(crate) fn each(&self, take: &mut TakeRecord<'_>) -> Result<(), BuildError> {
        const CHECK: usize = 1 << 16;
        match &self.records {
            Records::Memory { arena, order } => {
                let count = order.as_ref().map_or(arena.len(), Vec::len);
                for at in 0..count {
                    if at % CHECK == 0 {
                        self.watch.check()?;
                    }
                    let (key, value) = arena.get(order.as_ref().map_or(at, |order| order[at] as usize));
                    take(key, value)?;
                }
            }
            Records::Spilled { spill, end } => {
                let mut reader = RunReader::new(spill, 0..*end, 4 << 20);
                let mut at = 0;
                while let Some((key, value)) = reader.next()? {
                    if at % CHECK == 0 {
                        self.watch.check()?;
                    }
                    at += 1;
                    take(key, value)?;
                }
            }
        }
        Ok(())
    }
}
