//! Statistics of a scan: exact where the manifest or the file tells them.

use crate::keys::KeySet;
use crate::pieces::Piece;
use crate::source::Source;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::scalar::ScalarValue;

/// Returns the statistics of the rows of some pieces. `key` is the place of the first key column among the columns of
/// `schema`; `fetch` is the number of rows at which the scan ends; `is_filtered` says that it may leave out more rows.
pub(crate) fn statistics<'p>(
    source: &Source,
    keys: &KeySet,
    pieces: impl Iterator<Item = &'p Piece> + Clone,
    schema: &Schema,
    key: Option<usize>,
    fetch: Option<usize>,
    is_filtered: bool,
) -> Statistics {
    let counted: Option<u64> = pieces.clone().map(|piece| piece.rows).sum();
    let most: u64 = pieces.clone().map(|piece| rows_at_most(source, keys, piece)).sum();
    let limit = fetch.map_or(u64::MAX, |fetch| fetch as u64);
    let rows = counted.unwrap_or(most).min(limit);
    let is_exact = (counted.is_some() || most == 0) && !is_filtered;
    let precise = |rows: u64, is_exact: bool| {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        if is_exact { Precision::Exact(rows) } else { Precision::Inexact(rows) }
    };
    let num_rows = precise(rows, is_exact);
    let is_whole = is_exact && counted.is_some_and(|counted| counted <= limit);
    let mut total = Some(0_u64);
    let columns = schema.fields().iter().enumerate().map(|(at, field)| {
        let bytes = width(field.data_type()).map(|width| rows * width);
        total = total.zip(bytes).map(|(total, bytes)| total + bytes);
        let mut column = ColumnStatistics::new_unknown();
        column.null_count = Precision::Exact(0);
        column.byte_size = bytes.map_or(Precision::Absent, |bytes| precise(bytes, is_exact));
        if key == Some(at) {
            let (min, max) = ends(source, pieces.clone());
            let value = |value: Option<ScalarValue>| match value {
                None => Precision::Absent,
                Some(value) if is_whole => Precision::Exact(value),
                Some(value) => Precision::Inexact(value),
            };
            (column.min_value, column.max_value) = (value(min), value(max));
            if source.is_unique() && source.columns().keys() == 1 {
                column.distinct_count = num_rows;
            }
        }
        column
    });
    let column_statistics = columns.collect();
    let total_byte_size = total.map_or(Precision::Absent, |bytes| precise(bytes, is_exact));
    Statistics { num_rows, total_byte_size, column_statistics }
}

/// Returns the number of rows of a piece, or the most that there can be.
fn rows_at_most(source: &Source, keys: &KeySet, piece: &Piece) -> u64 {
    if let Some(rows) = piece.rows {
        return rows;
    }
    let tuples = piece.ranks.end - piece.ranks.start;
    let Some((min, max)) = source.ends(piece.file) else { return 0 };
    let ranges = keys.meeting(min, max);
    let is_keys = source.is_unique() && ranges.iter().all(|range| range.key().is_some());
    if is_keys { tuples.min(ranges.len() as u64) } else { tuples }
}

/// Returns the smallest and the largest value of the first key column.
fn ends<'p>(
    source: &Source,
    pieces: impl Iterator<Item = &'p Piece> + Clone,
) -> (Option<ScalarValue>, Option<ScalarValue>) {
    let value = |key: Option<Vec<u8>>| Some(source.literals().values(&key?)?.swap_remove(0));
    let (Some(first), Some(last)) = (pieces.clone().next(), pieces.last()) else { return (None, None) };
    // Only a file that is open anyway is asked; of sets the manifest tells.
    let at = |piece: &Piece, rank: u64, is_first: bool| match source.set() {
        None => source.key_at(piece.file, rank).ok().flatten(),
        Some(_) => source.ends(piece.file).map(|(min, max)| if is_first { min } else { max }.to_vec()),
    };
    let (start, end) = (first.ranks.start, last.ranks.end.saturating_sub(1));
    (value(at(first, start, true)), value(at(last, end, false)))
}

/// Returns the bytes of an element, if all have the same.
fn width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::FixedSizeBinary(bytes) => u64::try_from(*bytes).ok(),
        data_type => data_type.primitive_width().map(|bytes| bytes as u64),
    }
}
