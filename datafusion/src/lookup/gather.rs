//! Ranks become columns.

use super::files::{Files, Opened};
use super::find::{REPEATED, failed};
use crate::read::columns;
use crate::schema::Columns;
use datafusion::arrow::array::{Array, ArrayRef, UInt32Array, new_empty_array};
use datafusion::arrow::compute::{concat, interleave, take};
use datafusion::common::Result;
use std::collections::HashMap;
use std::ops::Range;

/// The columns of a table that are read.
#[derive(Clone, Debug)]
pub(super) struct Gather {
    /// All columns.
    pub(super) columns: Columns,
    /// Numbers of those that are read.
    pub(super) projection: Vec<usize>,
}

/// Ranks of a file, and which tuple of which file is at each place.
struct Parts {
    files: Vec<(usize, Vec<u64>)>,
    /// `None` if the ranks of all files, one after the other, are in the order that was asked for.
    places: Option<Vec<(usize, usize)>>,
}

impl Parts {
    fn new(files: &Files, ranks: &[u64]) -> Self {
        let mut parts = Self { files: Vec::new(), places: None };
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let (mut places, mut is_in_order) = (Vec::with_capacity(ranks.len()), true);
        let mut last = (0..0, 0);
        for &rank in ranks {
            if !last.0.contains(&rank) {
                let file = files.file_of_rank(rank);
                let number = *numbers.entry(file).or_insert(parts.files.len());
                if number == parts.files.len() {
                    parts.files.push((file, Vec::new()));
                } else {
                    is_in_order = false;
                }
                last = (files.ranks(file), number);
            }
            let own = &mut parts.files[last.1].1;
            places.push((last.1, own.len()));
            own.push(rank - last.0.start);
        }
        parts.places = (!is_in_order).then_some(places);
        parts
    }
}

impl Gather {
    /// Reads the columns of the tuples at ranks, which are those of the whole table. Their files must be open.
    pub(super) fn read(&self, files: &Files, opened: &Opened, ranks: &[u64]) -> Result<Vec<ArrayRef>> {
        if self.projection.is_empty() {
            return Ok(Vec::new());
        }
        if ranks.is_empty() {
            let schema = self.columns.schema();
            return Ok(self
                .projection
                .iter()
                .map(|&at| new_empty_array(schema.field(at).data_type()))
                .collect());
        }
        let Some((once, numbers)) = once(ranks) else { return self.read_each(files, opened, ranks) };
        let columns = self.read_each(files, opened, &once)?;
        let numbers = UInt32Array::from(numbers);
        columns.iter().map(|column| Ok(take(column, &numbers, None)?)).collect()
    }

    fn read_each(&self, files: &Files, opened: &Opened, ranks: &[u64]) -> Result<Vec<ArrayRef>> {
        if files.len() == 1 {
            return self.read_file(opened, 0, ranks);
        }
        let parts = Parts::new(files, ranks);
        let read = |(file, ranks): &(usize, Vec<u64>)| self.read_file(opened, *file, ranks);
        let mut arrays = parts.files.iter().map(read).collect::<Result<Vec<_>>>()?;
        if arrays.len() == 1 {
            return Ok(arrays.swap_remove(0));
        }
        let column = |column: usize| {
            let of_files: Vec<&dyn Array> = arrays.iter().map(|arrays| &*arrays[column]).collect();
            Ok(match &parts.places {
                None => concat(&of_files)?,
                Some(places) => interleave(&of_files, places)?,
            })
        };
        (0..self.projection.len()).map(column).collect()
    }

    fn read_file(&self, opened: &Opened, file: usize, ranks: &[u64]) -> Result<Vec<ArrayRef>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for &rank in ranks {
            match ranges.last_mut() {
                Some(last) if last.end == rank => last.end = rank + 1,
                Some(_) | None => ranges.push(rank..rank + 1),
            }
        }
        let file = &opened.get(file)?.file;
        columns(file, &ranges, ranks.len(), &self.columns, &self.projection).map_err(failed)
    }
}

/// Takes equal ranks that follow each other together, if there are many. Returns them, and the number of each.
fn once(ranks: &[u64]) -> Option<(Vec<u64>, Vec<u32>)> {
    let changes = ranks.windows(2).filter(|pair| pair[0] != pair[1]).count();
    if (changes + 1) as f64 > ranks.len() as f64 * REPEATED {
        return None;
    }
    let (mut once, mut numbers) = (Vec::with_capacity(changes + 1), Vec::with_capacity(ranks.len()));
    for &rank in ranks {
        if once.last() != Some(&rank) {
            once.push(rank);
        }
        numbers.push(once.len() as u32 - 1);
    }
    Some((once, numbers))
}
