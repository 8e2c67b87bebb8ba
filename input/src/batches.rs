//! Record batches of Arrow as a source: what Arrow IPC and Parquet share.

use crate::arrays::{ArrayStrings, is_strings, numbers, slice, stand_in_of};
use crate::chunk::{CHUNK_BYTES, held_bytes, prepare};
use crate::convert::{self, misfit};
use crate::fields::Fields;
use crate::folders::Folders;
use crate::guard::{Refused, guarded};
use crate::kind::{Kind, Wanted};
use crate::logical::{natural, natural_of};
use crate::names::{Asked, Names};
use crate::nulls::{self, NullCounts, Nulls};
use crate::problem::{fault, missing, problem, unknown_op};
use crate::selection::Selection;
use crate::strings;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Schema as ArrowSchema};
use pleach_builder::{Chunk, Column, Op, Schema, Source, SourceError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Record batches, one after the other.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, Refused>> + Send>;

/// The columns that were chosen among those of an Arrow schema.
pub(crate) struct Columns {
    selection: Selection,
    /// Column of the operation in a table of changes.
    op: Option<usize>,
    nulls: (Nulls, NullCounts),
    /// Number of the columns of the schema; those of the path follow.
    own: usize,
    folders: Folders,
}

impl Columns {
    pub(crate) fn choose(input: &str, schema: &ArrowSchema, options: &Asked) -> Result<Self, SourceError> {
        let mut names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let (own, folders) = (names.len(), Folders::asked(input, &names, options)?);
        names.extend(folders.names());
        let names = Names::Named(&names);
        let held = |index: usize| match schema.fields().get(index) {
            Some(held) => (held.data_type().to_string(), natural_of(held)),
            None => ("texts of the path".to_owned(), natural(&DataType::Utf8)),
        };
        let choice = names.choose(input, options)?;
        let selection = Selection::new(input, names, choice, options, held)?;
        let nulls = (options.nulls.clone(), options.null_counts.clone());
        Ok(Self { selection, op: names.choose_op(input, options)?, nulls, own, folders })
    }

    /// Returns the columns to read that hold texts or binary strings of varying length: see
    /// [`crate::parquet`].
    pub(crate) fn varying(&self, schema: &ArrowSchema) -> Vec<usize> {
        let mut columns = self.projection();
        columns.retain(|&index| {
            let data_type = schema.field(index).data_type();
            natural(data_type).is_some_and(|natural| matches!(natural.kind, Kind::Bytes | Kind::Utf8))
        });
        columns
    }

    /// Returns the columns of the schema to read, ascending.
    pub(crate) fn projection(&self) -> Vec<usize> {
        let mut columns: Vec<usize> = self.selection.wanted().map(|wanted| wanted.index).collect();
        columns.retain(|&index| index < self.own);
        columns.extend(self.op);
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}

/// A column that is read, and its elements in the current batch.
struct Lane {
    wanted: Wanted,
    /// Its number among the columns of a batch.
    at: usize,
    array: ArrayRef,
    /// Its nulls that are not allowed; the array has stand-ins in their places.
    nulls: Option<NullBuffer>,
}

/// A source of record batches.
pub(crate) struct BatchSource {
    input: String,
    batches: Batches,
    schema: Schema,
    key: Lane,
    value: Option<Lane>,
    /// For a record: the columns.
    fields: Option<(Fields, Vec<Lane>)>,
    /// Number of the column of operations among the columns of a batch.
    op_at: Option<usize>,
    /// Operations of the current batch.
    ops: Vec<Op>,
    /// Rows of the current batch, and the next of them.
    length: usize,
    next: usize,
    rows: u64,
    /// Row of each tuple of a chunk.
    kept: Vec<u64>,
    /// Rows of the current batch that are left out are null here.
    skips: Option<NullBuffer>,
    nulls: Nulls,
    null_counts: NullCounts,
    extent: Extent,
    folders: Folders,
}

/// Measure of the progress in bytes.
pub(crate) enum Extent {
    /// By the share of the rows, of this number of bytes.
    Bytes(u64),
    /// By the bytes read so far.
    Read(Arc<AtomicU64>),
}

impl BatchSource {
    /// Creates the source. `projected`: the batches hold only [`Columns::projection`].
    pub(crate) fn new(
        input: &str,
        batches: Batches,
        columns: Columns,
        projected: bool,
        rows: Option<u64>,
        extent: Extent,
    ) -> Self {
        let projection = columns.projection();
        let own = columns.own;
        let at = |index: usize| match index.checked_sub(own) {
            _ if !projected => index,
            Some(behind) => projection.len() + behind,
            None => projection.iter().position(|&column| column == index).unwrap_or(0),
        };
        let empty: ArrayRef = Arc::new(arrow_array::NullArray::new(0));
        let lane = |wanted: Wanted| {
            let (at, array) = (at(wanted.index), Arc::clone(&empty));
            Lane { wanted, at, array, nulls: None }
        };
        let (nulls, null_counts) = columns.nulls;
        let Selection { key, value, fields, schema } = columns.selection;
        let fields = fields.map(|fields| {
            let lanes = fields.columns.iter().cloned().map(lane).collect();
            (fields, lanes)
        });
        Self {
            input: input.to_owned(),
            batches,
            schema: Schema { rows, ..schema },
            key: lane(key),
            value: value.map(lane),
            fields,
            op_at: columns.op.map(at),
            ops: Vec::new(),
            length: 0,
            next: 0,
            rows: 0,
            kept: Vec::new(),
            skips: None,
            nulls,
            null_counts,
            extent,
            folders: columns.folders,
        }
    }

    /// Takes the next batch that has rows. Returns false at the end.
    fn advance(&mut self) -> Result<bool, SourceError> {
        let input = self.input.clone();
        guarded(&input, || self.advance_unguarded())
    }

    fn advance_unguarded(&mut self) -> Result<bool, SourceError> {
        let batch = loop {
            match self.batches.next() {
                None => return Ok(false),
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => break batch,
                Some(Err(refused)) => return Err(refused.at(&self.input, format!("after row {}", self.rows))),
            }
        };
        let mut columns = batch.columns().to_vec();
        columns.extend(self.folders.arrays(batch.num_rows()));
        let keys = if self.nulls == Nulls::Skip { &Nulls::Skip } else { &Nulls::Error };
        self.key.take(&columns, &[], keys, &self.input, self.rows)?;
        self.ops = match self.op_at {
            Some(at) => self.ops_of(&columns, at)?,
            None => Vec::new(),
        };
        let fields = self.fields.iter_mut().flat_map(|(_, lanes)| lanes);
        for lane in self.value.iter_mut().chain(fields) {
            let (ops, nulls) =
                if lane.wanted.target.key { (&[][..], keys) } else { (&self.ops[..], &self.nulls) };
            lane.take(&columns, ops, nulls, &self.input, self.rows)?;
        }
        self.skips = None;
        if self.nulls == Nulls::Skip {
            let fields = self.fields.iter().flat_map(|(_, lanes)| lanes);
            for lane in std::iter::once(&self.key).chain(&self.value).chain(fields) {
                self.skips = NullBuffer::union(self.skips.as_ref(), lane.nulls.as_ref());
            }
        }
        (self.length, self.next) = (batch.num_rows(), 0);
        Ok(true)
    }

    /// Returns the operations of a batch.
    fn ops_of(&self, batch: &[ArrayRef], at: usize) -> Result<Vec<Op>, SourceError> {
        let label = "column of operations";
        let (array, _) =
            column_of(batch, at, (label, Kind::Utf8), &[], &Nulls::Error, &self.input, self.rows)?;
        let strings = ArrayStrings::new(&array, 0, array.len()).ok_or_else(|| {
            let text = format!("it holds {}, not the texts put, add and del", array.data_type());
            problem(&self.input, label, fault(text, ""))
        })?;
        (0..array.len())
            .map(|index| {
                let text = strings.get(index);
                Op::from_name(text).ok_or_else(|| unknown_op(&self.input, self.rows + 1 + index as u64, text))
            })
            .collect()
    }
}

impl Lane {
    /// Takes the column of a batch whose first row comes after `rows`.
    fn take(
        &mut self,
        batch: &[ArrayRef],
        ops: &[Op],
        policy: &Nulls,
        input: &str,
        rows: u64,
    ) -> Result<(), SourceError> {
        let Wanted { label, target, .. } = &self.wanted;
        (self.array, self.nulls) = column_of(batch, self.at, (label, target.kind), ops, policy, input, rows)?;
        Ok(())
    }

    /// Appends `count` elements from `start` on, which come after `rows` rows of the input, and the default in the
    /// places of nulls, if there is one.
    fn append_filled(
        &self,
        start: usize,
        count: usize,
        filler: (&Nulls, &NullCounts),
        (input, rows): (&str, u64),
        out: &mut Column,
    ) -> Result<(), SourceError> {
        let (Nulls::Fill(text), Some(nulls)) = (filler.0, &self.nulls) else {
            return self.append(start, count, input, rows, out);
        };
        let mut at = start;
        while at < start + count {
            let is_null = nulls.is_null(at);
            let run = (at..start + count).take_while(|&at| nulls.is_null(at) == is_null).count();
            if is_null {
                nulls::fill(input, &self.wanted, text, run, out)?;
                filler.1.fill(run as u64);
            } else {
                self.append(at, run, input, rows + (at - start) as u64, out)?;
            }
            at += run;
        }
        Ok(())
    }

    /// Appends `count` elements from `start` on, which come after `rows` rows of the input.
    fn append(
        &self,
        start: usize,
        count: usize,
        input: &str,
        rows: u64,
        out: &mut Column,
    ) -> Result<(), SourceError> {
        let Wanted { label, target, .. } = &self.wanted;
        let row = |index: usize| rows + 1 + index as u64;
        if let Some(strings) = ArrayStrings::new(&self.array, start, count) {
            return strings.append(*target, out).map_err(|(index, what)| {
                strings::misfit(input, row(index), label, strings.get(index), *target, what)
            });
        }
        let data = self.array.to_data();
        let numbers = slice(&data, start, count).ok_or_else(|| {
            let text = fault(format!("it holds {} in some batches", data.data_type()), "the file is damaged");
            problem(input, label, text)
        })?;
        convert::append(numbers, *target, out)
            .map_err(|index| misfit(input, row(index), label, &numbers.text(index), *target))
    }
}

/// Returns a column of a batch without nulls, decoded if it is a dictionary of numbers, and the places of nulls that
/// `policy` deals with. A null where `ops` deletes is none, as its value has no meaning. A decoded dictionary of
/// strings could be a thousand times as long. The first row of the batch comes after `rows`.
fn column_of(
    batch: &[ArrayRef],
    at: usize,
    (label, kind): (&str, Kind),
    ops: &[Op],
    policy: &Nulls,
    input: &str,
    rows: u64,
) -> Result<(ArrayRef, Option<NullBuffer>), SourceError> {
    let Some(array) = batch.get(at) else {
        return Err(problem(input, label, "it is missing in some batches: the file is damaged"));
    };
    let refused = |error| Refused::arrow(error).at(input, label);
    // In a dictionary, keys and values may both be null.
    let mut array = Arc::clone(array);
    let mut bad_ones = None;
    if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        let deletes = |index: usize| ops.get(index) == Some(&Op::Del);
        let bad = (0..nulls.len()).find(|&index| nulls.is_null(index) && !deletes(index));
        if let Some(index) = bad {
            if *policy == Nulls::Error {
                return Err(missing(input, rows + 1 + index as u64, label));
            }
            bad_ones = Some((0..nulls.len()).map(|index| nulls.is_valid(index) || deletes(index)).collect());
        }
        // A row that is not null replaces those that are.
        let Some(stand_in) = (0..nulls.len()).find(|&index| !nulls.is_null(index)) else {
            return Ok((stand_in_of(kind, array.len()), bad_ones));
        };
        let places: arrow_array::UInt64Array = (0..nulls.len())
            .map(|index| Some(if nulls.is_null(index) { stand_in } else { index } as u64))
            .collect();
        array = arrow_select::take::take(&array, &places, None).map_err(refused)?;
    }
    match array.data_type() {
        DataType::Dictionary(_, values) if !is_strings(values) => {
            let dictionary = array.as_any_dictionary();
            let decoded = arrow_select::take::take(dictionary.values(), dictionary.keys(), None);
            Ok((numbers(decoded.map_err(refused)?), bad_ones))
        }
        _ => Ok((numbers(array), bad_ones)),
    }
}

impl Source for BatchSource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        let first = self.fields.as_ref().and_then(|(fields, _)| fields.first_part());
        prepare(chunk, &self.schema, first);
        let tuples_max = self.fields.as_ref().map_or(tuples_max, |(fields, _)| fields.tuples_max(tuples_max));
        self.kept.clear();
        let held = |fields: &Option<(Fields, Vec<Lane>)>| {
            fields.as_ref().map_or(0, |(fields, _)| fields.held_bytes())
        };
        while chunk.len() < tuples_max && held_bytes(chunk) + held(&self.fields) < CHUNK_BYTES {
            if self.next == self.length && !self.advance()? {
                break;
            }
            let mut count = (self.length - self.next).min(tuples_max - chunk.len());
            if let Some(skips) = &self.skips {
                let run = |is_kept| {
                    (self.next..self.length).take_while(|&at| skips.is_valid(at) == is_kept).count()
                };
                let skipped = run(false);
                if skipped > 0 {
                    self.null_counts.skip(skipped as u64);
                    self.next += skipped;
                    self.rows += skipped as u64;
                    continue;
                }
                count = count.min(run(true));
            }
            let lanes = self.fields.iter().flat_map(|(_, lanes)| lanes);
            for lane in std::iter::once(&self.key).chain(&self.value).chain(lanes) {
                if let Some(strings) = ArrayStrings::new(&lane.array, self.next, count) {
                    count = strings.prefix(CHUNK_BYTES);
                }
            }
            self.key.append(self.next, count, &self.input, self.rows, &mut chunk.keys)?;
            if let Some(value) = &self.value {
                let (filler, place) = ((&self.nulls, &self.null_counts), (&self.input[..], self.rows));
                value.append_filled(self.next, count, filler, place, &mut chunk.values)?;
            }
            if let Some((fields, lanes)) = &mut self.fields {
                for (lane, held) in lanes.iter().zip(&mut fields.held) {
                    let (filler, place) = ((&self.nulls, &self.null_counts), (&self.input[..], self.rows));
                    lane.append_filled(self.next, count, filler, place, held)?;
                }
                self.kept.extend((self.rows + 1..).take(count));
            }
            if self.op_at.is_some() {
                chunk.ops.extend_from_slice(&self.ops[self.next..self.next + count]);
            }
            self.next += count;
            self.rows += count as u64;
        }
        if let Some((fields, _)) = &mut self.fields {
            fields.pack(&self.input, |at| self.kept.get(at).copied().unwrap_or(0), chunk)?;
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        match &self.extent {
            Extent::Bytes(bytes) => {
                // Without rows, everything is read.
                let (done, rows) = match self.schema.rows {
                    Some(rows) if rows > 0 => (self.rows, rows),
                    _ => (1, 1),
                };
                let share = u128::from(*bytes) * u128::from(done) / u128::from(rows);
                (u64::try_from(share).unwrap_or(*bytes), Some(*bytes))
            }
            Extent::Read(bytes) => (bytes.load(Ordering::Relaxed), None),
        }
    }
}
