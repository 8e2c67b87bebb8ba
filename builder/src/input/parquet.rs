//! Parquet: only the two columns are read, in batches whose buffers are copied whole.

use super::arrow_ipc::{BatchSource, Columns, Extent};
use super::{Body, InputOptions, caused, problem};
use crate::source::{Source, SourceError};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Rows decoded at a time: large enough to forget the cost of a batch, small enough for the cache.
const BATCH_ROWS: usize = 64 << 10;

/// Opens a Parquet file. It is read from its end, so a stream is kept in a temporary file first.
pub(super) fn open(input: &str, body: Body, options: &InputOptions) -> Result<Box<dyn Source>, SourceError> {
    let (file, bytes) = body.into_file(input)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|error| caused(input, "", "it is no Parquet file that can be read", error))?;
    let rows = builder
        .metadata()
        .row_groups()
        .iter()
        .try_fold(0_u64, |sum, group| sum.checked_add(u64::try_from(group.num_rows()).ok()?))
        .filter(|&rows| i64::try_from(rows) == Ok(builder.metadata().file_metadata().num_rows()))
        .ok_or_else(|| problem(input, "", "its row groups do not add up to its rows: it is damaged"))?;
    let columns = Columns::choose(input, builder.schema(), options)?;
    let projection = ProjectionMask::roots(builder.parquet_schema(), columns.projection());
    let reader = builder
        .with_batch_size(BATCH_ROWS)
        .with_projection(projection)
        .build()
        .map_err(|error| caused(input, "", "it cannot be read", error))?;
    Ok(Box::new(BatchSource::new(input, Box::new(reader), columns, true, Some(rows), Extent::Bytes(bytes))))
}
