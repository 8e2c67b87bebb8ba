//! Ranks become columns.

use super::files::{Files, Opened};
use super::find::failed;
use crate::schema::Columns;
use datafusion::arrow::array::{Array, ArrayRef, new_empty_array};
use datafusion::arrow::compute::{concat, interleave};
use datafusion::common::Result;
use pleach_batch::Pool;
use std::collections::HashMap;

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
        if files.len() == 1 {
            return self.read_file(opened, 0, ranks);
        }
        if ranks.is_empty() {
            let schema = self.columns.schema();
            return Ok(self.projection.iter().map(|&at| new_empty_array(schema.field(at).data_type())).collect());
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
        let table = &opened.get(file)?.table;
        let (keys, values) = table.arrays_at(ranks, &Pool::current()).map_err(failed)?;
        Ok(self.project(self.columns.divided(keys, values)))
    }

    fn project(&self, all: Vec<ArrayRef>) -> Vec<ArrayRef> {
        self.projection.iter().map(|&column| ArrayRef::clone(&all[column])).collect()
    }
}
