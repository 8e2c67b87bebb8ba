//! Parquet: only the two columns are read, in batches whose buffers are copied whole.
//!
//! Texts and binary strings are read as *views* into the pages that hold them: so a dictionary of
//! long strings costs its own length and not that of all rows. Where rows are long, batches are short.

use super::arrow_ipc::{BatchSource, Columns, Extent};
use super::{Asked, Body, caused, problem};
use crate::source::{Source, SourceError};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::ParquetMetaData;
use std::sync::Arc;

/// Rows decoded at a time: large enough to forget the cost of a batch, small enough for the cache.
const BATCH_ROWS: usize = 64 << 10;
/// Bytes decoded at a time, by the average row of each row group.
const BATCH_BYTES: u64 = 16 << 20;

/// Opens a Parquet file. It is read from its end, so a stream is kept in a temporary file first.
pub(super) fn open(input: &str, body: Body, options: &Asked) -> Result<Box<dyn Source>, SourceError> {
    let (file, bytes) = body.into_file(input)?;
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())
        .map_err(|error| caused(input, "", "it is no Parquet file that can be read", error))?;
    let rows = metadata
        .metadata()
        .row_groups()
        .iter()
        .try_fold(0_u64, |sum, group| sum.checked_add(u64::try_from(group.num_rows()).ok()?))
        .filter(|&rows| i64::try_from(rows) == Ok(metadata.metadata().file_metadata().num_rows()))
        .ok_or_else(|| problem(input, "", "its row groups do not add up to its rows: it is damaged"))?;
    let columns = Columns::choose(input, metadata.schema(), options)?;
    let varying = columns.varying(metadata.schema());
    let metadata = if varying.is_empty() { metadata } else { with_views(metadata, &varying) };
    let projection = ProjectionMask::roots(metadata.parquet_schema(), columns.projection());
    let batch_rows = batch_rows(metadata.metadata(), &projection);
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_batch_size(batch_rows)
        .with_projection(projection)
        .build()
        .map_err(|error| caused(input, "", "it cannot be read", error))?;
    Ok(Box::new(BatchSource::new(input, Box::new(reader), columns, true, Some(rows), Extent::Bytes(bytes))))
}

/// The same, with the columns `varying` read as views, if the library can.
fn with_views(metadata: ArrowReaderMetadata, varying: &[usize]) -> ArrowReaderMetadata {
    let schema = metadata.schema();
    let fields = schema.fields().iter().enumerate().map(|(index, field)| {
        let view = |held: &DataType| match held {
            DataType::Utf8 | DataType::LargeUtf8 => Some(DataType::Utf8View),
            DataType::Binary | DataType::LargeBinary => Some(DataType::BinaryView),
            _ => None,
        };
        let view = match field.data_type() {
            DataType::Dictionary(_, values) => view(values),
            held => view(held),
        };
        match view.filter(|_| varying.contains(&index)) {
            Some(view) => Arc::new(field.as_ref().clone().with_data_type(view)),
            None => Arc::clone(field),
        }
    });
    let wanted = Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(wanted));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).unwrap_or(metadata)
}

/// Rows of a batch of at most about [`BATCH_BYTES`], so far as the averages go.
fn batch_rows(metadata: &ParquetMetaData, projection: &ProjectionMask) -> usize {
    let row_bytes = metadata.row_groups().iter().map(|group| {
        let columns = group.columns().iter().enumerate().filter(|(leaf, _)| projection.leaf_included(*leaf));
        let bytes: u64 =
            columns.map(|(_, column)| u64::try_from(column.uncompressed_size()).unwrap_or(0)).sum();
        bytes / u64::try_from(group.num_rows()).unwrap_or(0).max(1)
    });
    let rows = BATCH_BYTES / row_bytes.max().unwrap_or(0).max(1);
    usize::try_from(rows).unwrap_or(BATCH_ROWS).clamp(1, BATCH_ROWS)
}
