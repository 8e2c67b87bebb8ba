//! Keys become runs of ranks: equal keys of a table have consecutive ranks.

use super::files::{Files, OpenTable, Opened};
use crate::error::Error;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, BooleanBufferBuilder, UInt32Array};
use datafusion::arrow::compute::kernels::cmp::distinct;
use datafusion::arrow::compute::{filter, take};
use datafusion::common::{DataFusionError, Result};
use pleach_batch::arrow::ArrowKeys;
use pleach_batch::{Bound, Found, Pool};
use std::collections::BTreeMap;
use std::ops::Range;

/// If at most this part of keys or ranks differ from the one before, equal ones in a row are taken together.
pub(super) const REPEATED: f64 = 0.75;

/// For each key, the rank of its first tuple and the number of its tuples.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    pub(super) firsts: Vec<u64>,
    pub(super) counts: Vec<u64>,
}

impl Runs {
    fn new(keys: usize) -> Self {
        Self { firsts: vec![0; keys], counts: vec![0; keys] }
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns which keys have a tuple.
    pub(super) fn found(&self) -> BooleanArray {
        self.counts.iter().map(|&count| Some(count > 0)).collect()
    }

    /// Returns how many keys have a tuple.
    pub(super) fn hits(&self) -> usize {
        self.counts.iter().filter(|&&count| count > 0).count()
    }

    fn fill(&mut self, rows: Rows<'_>, base: u64, (firsts, counts): (Vec<u64>, Vec<u64>)) {
        for (at, (first, count)) in firsts.into_iter().zip(counts).enumerate() {
            let row = rows.row(at);
            (self.firsts[row], self.counts[row]) = (base + first, count);
        }
    }
}

/// The rows of some keys.
#[derive(Clone, Copy)]
enum Rows<'a> {
    From(usize),
    These(&'a [u32]),
}

impl Rows<'_> {
    fn row(self, at: usize) -> usize {
        match self {
            Self::From(first) => first + at,
            Self::These(rows) => rows[at] as usize,
        }
    }
}

/// Keys that are to be looked up, with the files that can have them.
pub(super) struct Sought {
    keys: ArrayRef,
    /// Number of each row's key, if equal keys in a row were taken together.
    numbers: Option<Vec<u32>>,
    groups: Groups,
}

enum Groups {
    /// All keys are sought in one file.
    One(usize),
    /// Keys are in the order of the files: ranges of them.
    Ranges(Vec<(usize, Range<usize>)>),
    /// The numbers of the keys for each file.
    Lists(BTreeMap<usize, Vec<u32>>),
}

impl Sought {
    /// Takes equal keys in a row together, and groups keys by the files that can have them.
    pub(super) fn new(files: &Files, keys: ArrayRef) -> Result<Self> {
        let (keys, numbers) = once(keys)?;
        let groups = match files.borders()? {
            None => Groups::One(0),
            Some(borders) => group(&borders.files_of(&keys)?),
        };
        Ok(Self { keys, numbers, groups })
    }

    /// Returns the files that are needed.
    pub(super) fn files(&self) -> Vec<usize> {
        match &self.groups {
            Groups::One(file) => vec![*file],
            Groups::Ranges(ranges) => ranges.iter().map(|(file, _)| *file).collect(),
            Groups::Lists(lists) => lists.keys().copied().collect(),
        }
    }

    /// Looks up the keys in files that are open.
    pub(super) fn find(&self, files: &Files, opened: &Opened) -> Result<Runs> {
        let mut runs = Runs::new(self.keys.len());
        let mut one = |file: usize, keys: ArrayRef, rows: Rows<'_>| -> Result<()> {
            runs.fill(rows, files.ranks(file).start, find_in(opened.get(file)?, keys)?);
            Ok(())
        };
        match &self.groups {
            Groups::One(file) => one(*file, ArrayRef::clone(&self.keys), Rows::From(0))?,
            Groups::Ranges(ranges) => {
                for (file, range) in ranges {
                    one(*file, self.keys.slice(range.start, range.len()), Rows::From(range.start))?;
                }
            }
            Groups::Lists(lists) => {
                for (file, rows) in lists {
                    let keys = take(&self.keys, &UInt32Array::from(rows.clone()), None)?;
                    one(*file, keys, Rows::These(rows))?;
                }
            }
        }
        let Some(numbers) = &self.numbers else { return Ok(runs) };
        Ok(Runs {
            firsts: numbers.iter().map(|&number| runs.firsts[number as usize]).collect(),
            counts: numbers.iter().map(|&number| runs.counts[number as usize]).collect(),
        })
    }
}

/// Takes equal keys that follow each other together, if there are many. Returns the keys, and the number of the key of
/// each row.
fn once(keys: ArrayRef) -> Result<(ArrayRef, Option<Vec<u32>>)> {
    let rows = keys.len();
    if rows < 2 || keys.data_type().is_nested() {
        return Ok((keys, None));
    }
    let differs = distinct(&keys.slice(1, rows - 1), &keys.slice(0, rows - 1))?;
    if (differs.true_count() + 1) as f64 > rows as f64 * REPEATED {
        return Ok((keys, None));
    }
    let mut is_first = BooleanBufferBuilder::new(rows);
    is_first.append(true);
    is_first.append_buffer(differs.values());
    let is_first = BooleanArray::new(is_first.finish(), None);
    let mut number = 0;
    let mut numbers = Vec::with_capacity(rows);
    numbers.push(0);
    for differs in differs.values() {
        number += u32::from(differs);
        numbers.push(number);
    }
    Ok((filter(&keys, &is_first)?, Some(numbers)))
}

/// Groups the numbers of keys by their files.
fn group(files: &[Option<u32>]) -> Groups {
    let mut ranges: Vec<(usize, Range<usize>)> = Vec::new();
    for (at, file) in files.iter().enumerate() {
        let Some(file) = file.map(|file| file as usize) else { continue };
        match ranges.last_mut() {
            Some((last, range)) if *last == file => range.end = at + 1,
            Some((last, _)) if *last > file => return Groups::Lists(lists(files)),
            Some(_) | None => ranges.push((file, at..at + 1)),
        }
    }
    Groups::Ranges(ranges)
}

fn lists(files: &[Option<u32>]) -> BTreeMap<usize, Vec<u32>> {
    let mut lists: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (at, file) in files.iter().enumerate() {
        if let Some(file) = file {
            lists.entry(*file as usize).or_default().push(at as u32);
        }
    }
    lists
}

/// Returns rank and number of the tuples of each key in a file.
fn find_in(file: &OpenTable, keys: ArrayRef) -> Result<(Vec<u64>, Vec<u64>)> {
    let (table, rows) = (file.file.table(), keys.len());
    let keys = ArrowKeys::new(table, keys).map_err(failed)?;
    let (mut firsts, mut found) = (vec![0; rows], vec![false; rows]);
    let hits = keys
        .with(|keys| table.rank(keys, &mut firsts, &mut Found::Bools(&mut found), &Pool::current()))
        .map_err(failed)?;
    if let Some(allowed) = &file.allowed {
        // Ranges are those of keys: the tuples of a key are all in one, or in none.
        let is_allowed = |rank: u64| {
            let range = allowed.partition_point(|range| range.end <= rank);
            allowed.get(range).is_some_and(|range| range.start <= rank)
        };
        found.iter_mut().zip(&firsts).for_each(|(found, &first)| *found &= is_allowed(first));
    }
    let mut counts: Vec<u64> = found.iter().map(|&found| u64::from(found)).collect();
    if hits > 0 && !table.index().is_unique() {
        let mut ends = vec![0; rows];
        keys.with(|keys| table.bounds(keys, Bound::Upper, &mut ends, &Pool::current())).map_err(failed)?;
        for ((count, &first), end) in counts.iter_mut().zip(&firsts).zip(ends) {
            *count *= end.saturating_sub(first);
        }
    }
    Ok((firsts, counts))
}

/// Makes an error of the engine.
pub(super) fn failed(error: impl Into<Error>) -> DataFusionError {
    error.into().into()
}
