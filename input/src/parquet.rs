//! Parquet: only the requested columns are read, in batches whose buffers are copied whole.
//!
//! Texts and binary strings are read as *views* into the pages that hold them, so a dictionary of long
//! strings costs its own length and not that of all rows. If rows are long, batches are short. Lengths are
//! bounded before the library allocates by them: see [`crate::pages`].

use crate::batches::{BatchSource, Batches, Columns, Extent};
use crate::body::Body;
use crate::guard::{Refused, caught};
use crate::names::Asked;
use crate::pages::{self, FIXED_BYTES_MAX, Fault, Groups};
use crate::problem::{fault, problem};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::{
    FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema_by_columns,
};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::schema::types::SchemaDescriptor;
use pleach_builder::{Source, SourceError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows decoded at a time: enough to amortise the cost of a batch, few enough for the cache.
const BATCH_ROWS: usize = 64 << 10;
/// Bytes decoded at a time, by the average row of each row group.
const BATCH_BYTES: u64 = 16 << 20;

/// Opens a Parquet file. Since reading starts at its end, a stream is first copied to a temporary file.
pub(crate) fn open(input: &str, body: Body, options: &Asked) -> Result<Box<dyn Source>, SourceError> {
    let (file, bytes) = body.into_file(input)?;
    let refused = |refused: Refused| refused.at(input, "");
    pages::check_footer(&file, bytes).map_err(refused)?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file);
    let metadata = Arc::new(metadata.map_err(|error| refused(Refused::library(error)))?);
    let rows = metadata
        .row_groups()
        .iter()
        .try_fold(0_u64, |sum, group| sum.checked_add(u64::try_from(group.num_rows()).ok()?))
        .filter(|&rows| i64::try_from(rows) == Ok(metadata.file_metadata().num_rows()))
        .ok_or_else(|| problem(input, "", "its row groups do not add up to its rows: it is damaged"))?;
    let (schema, unread) = schema_of(&metadata);
    let columns = Columns::choose(input, &schema, options).map_err(|error| known(error, &schema, &unread))?;
    let projection = columns.projection();
    for &root in &projection {
        if let Some(reason) = unread.get(&root) {
            return Err(not_read(input, &schema, root, reason));
        }
    }
    let descriptor = metadata.file_metadata().schema_descr();
    let mask = ProjectionMask::roots(descriptor, projection);
    let batch_rows = batch_rows(&metadata, &mask).map_err(refused)?;
    let levels = levels(descriptor, &mask, &schema, &columns.varying(&schema)).map_err(refused)?;
    let fault = Fault::default();
    let leaves = |leaf| mask.leaf_included(leaf);
    let groups = Groups::new(file, bytes, Arc::clone(&metadata), leaves, fault.clone()).map_err(refused)?;
    let told = |error: &dyn std::fmt::Display| fault.take().unwrap_or_else(|| Refused::library(error));
    let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch_rows, None);
    let reader = reader.map_err(|error| refused(told(&error)))?;
    let batches =
        reader.map(move |batch| batch.map_err(|error| fault.take().unwrap_or_else(|| Refused::arrow(error))));
    let batches: Batches = Box::new(batches);
    Ok(Box::new(BatchSource::new(input, batches, columns, true, Some(rows), Extent::Bytes(bytes))))
}

/// Returns the types of all columns, and the reasons for those unknown to this version; these are nulls in
/// the schema.
fn schema_of(metadata: &Arc<ParquetMetaData>) -> (Schema, BTreeMap<usize, String>) {
    let whole = |options| {
        let found = caught(|| ArrowReaderMetadata::try_new(Arc::clone(metadata), options));
        found.ok()?.ok().map(|found| found.schema().as_ref().clone())
    };
    let known = whole(ArrowReaderOptions::new())
        // Arrow's writers add a schema of their own to that of Parquet; it may have unknown types.
        .or_else(|| whole(ArrowReaderOptions::new().with_skip_arrow_metadata(true)));
    if let Some(schema) = known {
        return (schema, BTreeMap::new());
    }
    let descriptor = metadata.file_metadata().schema_descr();
    let mut unread = BTreeMap::new();
    let fields = descriptor.root_schema().get_fields().iter().enumerate().map(|(root, column)| {
        let mask = ProjectionMask::roots(descriptor, [root]);
        let found = caught(|| parquet_to_arrow_schema_by_columns(descriptor, mask, None));
        let reason = match found.map(|found| found.map(|schema| schema.fields().first().cloned())) {
            Ok(Ok(Some(field))) => return field,
            Ok(Ok(None)) => "it has no columns".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(reason) => reason,
        };
        unread.insert(root, reason);
        Arc::new(Field::new(column.name(), DataType::Null, true))
    });
    let fields: Fields = fields.collect();
    (Schema::new(fields), unread)
}

/// Makes the error for a column of a type that this version does not know.
fn not_read(input: &str, schema: &Schema, root: usize, reason: &str) -> SourceError {
    let text = fault(
        format!("wrong type: this version does not support it ({reason})"),
        "choose another column with --key or --value, or write it as another type",
    );
    problem(input, format!("column {:?}", schema.field(root).name()), text)
}

/// Replaces the error of a choice if it concerns a column of an unknown type.
fn known(error: SourceError, schema: &Schema, unread: &BTreeMap<usize, String>) -> SourceError {
    let about = |root: usize| error.place == format!("column {:?}", schema.field(root).name());
    match unread.iter().find(|(root, _)| about(**root)) {
        Some((root, reason)) => not_read(&error.input, schema, *root, reason),
        None => error,
    }
}

/// Returns how the columns of `mask` are read: the columns `varying` as views, if the library supports that.
fn levels(
    descriptor: &SchemaDescriptor,
    mask: &ProjectionMask,
    schema: &Schema,
    varying: &[usize],
) -> Result<FieldLevels, Refused> {
    let as_views = with_views(schema, varying);
    for fields in [&as_views, schema.fields()] {
        let found = caught(|| parquet_to_arrow_field_levels(descriptor, mask.clone(), Some(fields)));
        if let Ok(Ok(levels)) = found {
            return Ok(levels);
        }
    }
    let plain = caught(|| parquet_to_arrow_field_levels(descriptor, mask.clone(), None));
    plain.map_err(Refused::library)?.map_err(Refused::library)
}

/// Returns the same fields, with the columns `varying` as views.
fn with_views(schema: &Schema, varying: &[usize]) -> Fields {
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
    fields.collect()
}

/// Returns the rows of a batch of at most about [`BATCH_BYTES`], judged by averages and fixed lengths.
fn batch_rows(metadata: &ParquetMetaData, mask: &ProjectionMask) -> Result<usize, Refused> {
    let mut most: u64 = 1;
    for group in metadata.row_groups() {
        let columns = group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf));
        let (mut packed, mut fixed) = (0_u64, 0_u64);
        for (_, column) in columns {
            let length = column.column_descr().type_length();
            if length > FIXED_BYTES_MAX {
                let name = column.column_path().string();
                return Err(Refused::ours(fault(
                    format!(
                        "column {name:?} holds strings of {length} bytes each, at most {FIXED_BYTES_MAX} are supported"
                    ),
                    "write it as strings of varying length",
                )));
            }
            packed = packed.saturating_add(u64::try_from(column.uncompressed_size()).unwrap_or(0));
            fixed += u64::try_from(length).unwrap_or(0);
        }
        most = most.max(packed / u64::try_from(group.num_rows()).unwrap_or(0).max(1)).max(fixed);
    }
    Ok(usize::try_from(BATCH_BYTES / most).unwrap_or(BATCH_ROWS).clamp(1, BATCH_ROWS))
}
