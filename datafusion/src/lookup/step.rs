//! The join of a few rows of the probe: their runs of tuples, in batches that are not larger than wanted.

use super::files::{Files, Opened};
use super::find::{Runs, Sought};
use super::gather::Gather;
use super::output::{Kept, Out};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options, filter, filter_record_batch, not, take};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::joins::utils::JoinFilter;
use std::ops::Range;
use std::sync::Arc;

/// What all steps of a join have in common.
#[derive(Debug)]
pub(super) struct Shared {
    /// The key of a row of the probe.
    pub(super) key: PhysicalExprRef,
    /// The type to which keys are converted; what has no place in it becomes null.
    pub(super) conversion: Option<DataType>,
    pub(super) files: Files,
    pub(super) gather: Gather,
    /// Columns that are read.
    pub(super) scanned: SchemaRef,
    /// Columns of the table, of those that are read.
    pub(super) columns: Vec<PhysicalExprRef>,
    /// Condition on the columns that are read.
    pub(super) predicate: Option<PhysicalExprRef>,
    /// Condition on columns of both sides, and where its columns come from.
    pub(super) filter: Option<(JoinFilter, Vec<Out>)>,
    pub(super) kept: Kept,
    pub(super) out: Vec<Out>,
    pub(super) schema: SchemaRef,
    pub(super) batch_rows: usize,
}

impl Shared {
    fn has_condition(&self) -> bool {
        self.predicate.is_some() || self.filter.is_some()
    }

    /// Returns true if tuples are read, and not only found.
    fn reads(&self) -> bool {
        let is_of_table = |out: &Out| matches!(out, Out::Table(_));
        self.has_condition() || self.out.iter().any(is_of_table)
    }

    /// Groups the keys of rows.
    pub(super) fn seek(&self, rows: &RecordBatch) -> Result<Sought> {
        let mut keys = self.key.evaluate(rows)?.into_array(rows.num_rows())?;
        if let Some(to) = &self.conversion {
            keys = cast_with_options(&keys, to, &CastOptions { safe: true, ..CastOptions::default() })?;
        }
        Sought::new(&self.files, keys)
    }

    /// Evaluates columns of the table; those that nobody needs are `None`.
    fn evaluate(&self, scanned: &RecordBatch) -> Result<Vec<Option<ArrayRef>>> {
        let needed = |at: usize| {
            let is_it = |out: &Out| *out == Out::Table(at);
            self.out.iter().any(is_it) || self.filter.iter().any(|(_, columns)| columns.iter().any(is_it))
        };
        let column = |(at, column): (usize, &PhysicalExprRef)| {
            let array = needed(at).then(|| column.evaluate(scanned)?.into_array(scanned.num_rows()));
            array.transpose()
        };
        self.columns.iter().enumerate().map(column).collect()
    }
}

/// Pairs of a row and a tuple.
struct Pairs {
    rows: Vec<u32>,
    ranks: Vec<u64>,
    /// Rows whose last pair is one of these, or which have none.
    ended: Range<usize>,
}

/// Pairs that meet all conditions, with the columns of the table.
struct Met {
    rows: UInt32Array,
    columns: Vec<Option<ArrayRef>>,
}

/// Rows of the probe that are joined.
#[derive(Debug)]
pub(super) struct Step {
    rows: RecordBatch,
    runs: Runs,
    /// The next pair: its row, and the number of its tuple in the run.
    row: usize,
    tuple: u64,
    /// True if a pair of this row met all conditions.
    has_match: bool,
    matched: Vec<bool>,
    is_done: bool,
}

impl Step {
    /// Looks up the keys of rows. Files must be open.
    pub(super) fn new(shared: &Shared, opened: &Opened, rows: RecordBatch, sought: &Sought) -> Result<Self> {
        let runs = sought.find(&shared.files, opened)?;
        let matched = vec![false; rows.num_rows()];
        Ok(Self { rows, runs, row: 0, tuple: 0, has_match: false, matched, is_done: false })
    }

    /// Returns the number of rows with a tuple.
    pub(super) fn hits(&self) -> usize {
        self.runs.hits()
    }

    /// Returns the next batch, which may be empty; `None` after the last one.
    pub(super) fn next(&mut self, shared: &Shared, opened: &Opened) -> Result<Option<RecordBatch>> {
        if self.is_done {
            return Ok(None);
        }
        match shared.kept {
            Kept::Matches | Kept::All => {
                let Some(pairs) = self.pairs(shared) else {
                    self.is_done = true;
                    return Ok(None);
                };
                let met = self.met(shared, opened, &pairs)?;
                match shared.kept {
                    Kept::All => self.with_unmatched(shared, &pairs, &met).map(Some),
                    _ => self.joined(shared, &met.rows, &met.columns).map(Some),
                }
            }
            Kept::Matched | Kept::Unmatched | Kept::Marked => {
                self.is_done = true;
                self.chosen(shared, opened).map(Some)
            }
        }
    }

    /// Takes the next pairs, at most as many as a batch has rows.
    fn pairs(&mut self, shared: &Shared) -> Option<Pairs> {
        let (count, first) = (self.runs.len(), self.row);
        if first == count {
            return None;
        }
        let room = shared.batch_rows;
        let (mut rows, mut ranks, mut unmatched) = (Vec::with_capacity(room), Vec::with_capacity(room), 0);
        while self.row < count && ranks.len() + unmatched < room {
            let (start, run) = (self.runs.firsts[self.row], self.runs.counts[self.row]);
            let end = run.min(self.tuple + (room - ranks.len() - unmatched) as u64);
            if run == 1 {
                rows.push(self.row as u32);
                ranks.push(start);
            } else {
                ranks.extend(start + self.tuple..start + end);
                rows.resize(ranks.len(), self.row as u32);
                unmatched += usize::from(run == 0);
            }
            if end < run {
                self.tuple = end;
                break;
            }
            (self.row, self.tuple) = (self.row + 1, 0);
        }
        Some(Pairs { rows, ranks, ended: first..self.row })
    }

    /// Reads the tuples of pairs, and leaves out pairs that do not meet the conditions.
    fn met(&self, shared: &Shared, opened: &Opened, pairs: &Pairs) -> Result<Met> {
        let rows = UInt32Array::from(pairs.rows.clone());
        if !shared.reads() {
            return Ok(Met { rows, columns: vec![None; shared.columns.len()] });
        }
        let columns = shared.gather.read(&shared.files, opened, &pairs.ranks)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let mut scanned = RecordBatch::try_new_with_options(Arc::clone(&shared.scanned), columns, &options)?;
        let mut rows: ArrayRef = Arc::new(rows);
        if let Some(predicate) = &shared.predicate {
            let is_met = predicate.evaluate(&scanned)?.into_array(scanned.num_rows())?;
            let is_met = is_met.as_boolean();
            (rows, scanned) = (filter(&rows, is_met)?, filter_record_batch(&scanned, is_met)?);
        }
        let mut columns = shared.evaluate(&scanned)?;
        if let Some((condition, origins)) = &shared.filter {
            let arrays = origins.iter().map(|origin| self.column(*origin, &rows, &columns));
            let arrays = arrays.collect::<Result<Vec<_>>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            let batch = RecordBatch::try_new_with_options(Arc::clone(condition.schema()), arrays, &options)?;
            let is_met = condition.expression().evaluate(&batch)?.into_array(batch.num_rows())?;
            let is_met = is_met.as_boolean();
            rows = filter(&rows, is_met)?;
            for column in columns.iter_mut().flatten() {
                *column = filter(column, is_met)?;
            }
        }
        Ok(Met { rows: rows.as_primitive().clone(), columns })
    }

    /// Returns a column of pairs.
    fn column(&self, origin: Out, rows: &ArrayRef, columns: &[Option<ArrayRef>]) -> Result<ArrayRef> {
        match origin {
            Out::Probe(at) => Ok(take(self.rows.column(at), rows, None)?),
            Out::Table(at) => match columns.get(at) {
                Some(Some(column)) => Ok(ArrayRef::clone(column)),
                Some(None) | None => {
                    datafusion::common::internal_err!("column {at} of the table was not read")
                }
            },
            Out::Mark => datafusion::common::internal_err!("a mark is not a column of pairs"),
        }
    }

    /// Makes the batch of pairs.
    fn joined(
        &self,
        shared: &Shared,
        rows: &UInt32Array,
        columns: &[Option<ArrayRef>],
    ) -> Result<RecordBatch> {
        let is_all = rows.len() == self.rows.num_rows()
            && rows.null_count() == 0
            && rows.values().iter().enumerate().all(|(at, &row)| row as usize == at);
        let taken: ArrayRef = Arc::new(rows.clone());
        let arrays = shared.out.iter().map(|&out| match out {
            Out::Probe(at) if is_all => Ok(ArrayRef::clone(self.rows.column(at))),
            Out::Probe(_) | Out::Table(_) | Out::Mark => self.column(out, &taken, columns),
        });
        batch(shared, arrays.collect::<Result<_>>()?, rows.len())
    }

    /// Makes the batch of pairs, with a row for each row of the probe that ends without a pair.
    fn with_unmatched(&mut self, shared: &Shared, pairs: &Pairs, met: &Met) -> Result<RecordBatch> {
        let (mut rows, mut tuples) = (Vec::new(), Vec::new());
        let mut next = met.rows.values().iter().copied().enumerate().peekable();
        let mut has_null = false;
        // The row after the last that ended may have pairs here, too.
        for row in pairs.ended.start..=pairs.ended.end {
            while let Some((tuple, _)) = next.next_if(|&(_, of)| of as usize == row) {
                rows.push(row as u32);
                tuples.push(Some(tuple as u32));
                self.has_match = true;
            }
            if row == pairs.ended.end {
                break;
            }
            if !self.has_match {
                rows.push(row as u32);
                tuples.push(None);
                has_null = true;
            }
            self.has_match = false;
        }
        let rows = UInt32Array::from(rows);
        if !has_null {
            return self.joined(shared, &rows, &met.columns);
        }
        let tuples = UInt32Array::from(tuples);
        let columns = met.columns.iter().map(|column| match column {
            Some(column) => Ok(Some(take(column, &tuples, None)?)),
            None => Ok(None),
        });
        self.joined(shared, &rows, &columns.collect::<Result<Vec<_>>>()?)
    }

    /// Makes the batch of rows that have a match, or have none, or all with a mark.
    fn chosen(&mut self, shared: &Shared, opened: &Opened) -> Result<RecordBatch> {
        let matched = if shared.has_condition() {
            while let Some(pairs) = self.pairs(shared) {
                let met = self.met(shared, opened, &pairs)?;
                met.rows.values().iter().for_each(|&row| self.matched[row as usize] = true);
            }
            BooleanArray::from(std::mem::take(&mut self.matched))
        } else {
            self.runs.found()
        };
        let chosen = match shared.kept {
            Kept::Matched => Some(matched.clone()),
            Kept::Unmatched => Some(not(&matched)?),
            Kept::Marked | Kept::Matches | Kept::All => None,
        };
        let count = chosen.as_ref().map_or(matched.len(), BooleanArray::true_count);
        let arrays = shared.out.iter().map(|&out| match (out, &chosen) {
            (Out::Probe(at), Some(chosen)) if count < chosen.len() => {
                Ok(filter(self.rows.column(at), chosen)?)
            }
            (Out::Probe(at), _) => Ok(ArrayRef::clone(self.rows.column(at))),
            (Out::Mark, _) => Ok(Arc::new(matched.clone()) as ArrayRef),
            // The join has no columns of the table.
            (Out::Table(at), _) => {
                let data_type = shared.columns[at].data_type(&shared.scanned)?;
                ScalarValue::try_from(&data_type)?.to_array_of_size(count)
            }
        });
        batch(shared, arrays.collect::<Result<_>>()?, count)
    }
}

fn batch(shared: &Shared, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(&shared.schema), columns, &options)?)
}
