//! Tuples as columns: those of ranges of ranks, and only the columns that are wanted.

use crate::error::{Error, Result};
use crate::schema::Columns;
use crate::source::OpenFile;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::error::ArrowError;
use pleach::{Key, KeyType, ReadError, Typed, Value, ValueType};
use pleach_batch::arrow::{key_type, logical_type, meant, number_type, numbers, record_field, strings};
use pleach_batch::{BatchError, Gathered, Pool};
use std::ops::Range;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// Tuples of a range above which it is copied line by line, and not tuple by tuple.
const RUN_TUPLES: usize = 8;

/// Reads some columns of the tuples of ascending ranges with `rows` tuples in all.
///
/// # Errors
/// [`Error::File`] or [`Error::Batch`] if the file is damaged or was truncated.
pub(crate) fn columns(
    file: &OpenFile,
    ranges: &[Range<u64>],
    rows: usize,
    columns: &Columns,
    projection: &[usize],
) -> Result<Vec<ArrayRef>> {
    if projection.is_empty() {
        return Ok(Vec::new());
    }
    let table = file.table();
    if table.key_type().is_bytes() {
        let ranks: Vec<u64> = ranges.iter().cloned().flatten().collect();
        let (keys, values) = table.arrays_at(&ranks, &Pool::current())?;
        let all = columns.divided(keys, values);
        return Ok(projection.iter().map(|&at| Arc::clone(&all[at])).collect());
    }
    let index = table.index();
    let failed = |error: ReadError| Error::File(pleach::Error::from(error).at(index.path()));
    let is_wanted = |of: Range<usize>| projection.iter().any(|at| of.contains(at));
    let wants_keys = is_wanted(0..columns.keys());
    let wants_values = is_wanted(columns.keys()..columns.schema().fields().len());
    let is_apart = table.value_type().is_bytes();
    let (key_words, value_words) = if wants_keys || !is_apart {
        pleach::with_typed!(index, |view| words(&view, ranges, rows).map_err(failed)?)
            .map_err(|error| Error::File(pleach::Error::from(error).at(index.path())))?
    } else {
        Default::default()
    };
    let damaged = |error: ArrowError| {
        Error::Batch(BatchError::Damaged {
            path: index.path().display().to_string(),
            what: error.to_string(),
        })
    };
    let keys = || {
        let data_type = logical_type(key_type(table.key_type()), table.key_meaning());
        // Numbers must begin at their alignment.
        let keys = numbers(data_type, Buffer::from_slice_ref(&key_words), rows, None);
        let keys = keys.and_then(|keys| meant(keys, table.key_meaning())).map_err(damaged)?;
        Ok::<_, Error>(columns.key_columns(keys))
    };
    let keys = if wants_keys { keys()? } else { Vec::new() };
    let values = match wants_values {
        false => None,
        true if is_apart => {
            let ranks: Vec<u64> = ranges.iter().cloned().flatten().collect();
            Some(Values::Strings(table.values_at(&ranks, &Pool::current())?))
        }
        true => Some(Values::Words(value_words, table.value_type().line_bytes())),
    };
    let value = |number: usize| -> Result<ArrayRef> {
        let Some(values) = &values else { unreachable!("a value column is wanted") };
        let made = match table.record() {
            Some(record) => record_field(record, number, rows, |at| values.packed(at)),
            None => values.whole(table.value_type(), rows, table.value_meaning()),
        };
        made.map_err(damaged)
    };
    projection
        .iter()
        .map(|&at| match keys.get(at) {
            Some(key) => Ok(Arc::clone(key)),
            None => value(at - columns.keys()),
        })
        .collect()
}

/// Values of tuples.
enum Values {
    /// In tuple lines, so many bytes each.
    Words(Vec<u8>, usize),
    /// In a column of their own.
    Strings(Gathered),
}

impl Values {
    fn packed(&self, at: usize) -> &[u8] {
        match self {
            Self::Words(words, bytes) => &words[at * bytes..][..*bytes],
            Self::Strings(all) => &all.data[all.offsets[at] as usize..all.offsets[at + 1] as usize],
        }
    }

    /// Makes an array of values that are no records.
    fn whole(
        &self,
        value_type: ValueType,
        rows: usize,
        meaning: &pleach_format::Logical,
    ) -> Result<ArrayRef, ArrowError> {
        let plain = number_type(value_type);
        let array = match self {
            // Numbers must begin at their alignment.
            Self::Words(words, _) => {
                numbers(logical_type(plain, meaning), Buffer::from_slice_ref(words), rows, None)
            }
            Self::Strings(all) => strings(plain, all.clone(), None),
        };
        meant(array?, meaning)
    }
}

/// Reads keys and values in tuple lines, as their bytes.
fn words<K: Key, V: Value>(
    view: &Typed<'_, K, V>,
    ranges: &[Range<u64>],
    rows: usize,
) -> Result<(Vec<u8>, Vec<u8>), ReadError> {
    let (mut keys, mut values) = (vec![K::default(); rows], vec![V::default(); rows]);
    if rows >= RUN_TUPLES * ranges.len() {
        let mut at = 0;
        for range in ranges {
            let count = (range.end - range.start) as usize;
            let found =
                view.copy_range(range.start, &mut keys[at..at + count], &mut values[at..at + count])?;
            debug_assert_eq!(found, count, "ranks are those of tuples");
            at += count;
        }
    } else {
        let ranks: Vec<u64> = ranges.iter().cloned().flatten().collect();
        view.select_batch(&ranks, &mut keys, &mut values)?;
    }
    let mut keys = keys.as_slice().as_bytes().to_vec();
    if K::TYPE == KeyType::U128 {
        keys.as_chunks_mut::<16>().0.iter_mut().for_each(|key| key.reverse());
    }
    Ok((keys, values.as_slice().as_bytes().to_vec()))
}
