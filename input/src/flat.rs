//! Record batches whose key column is a struct: its fields become columns, and the key a composite one.

use crate::options::InputOptions;
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use std::sync::Arc;

/// How a struct column is replaced by its fields.
pub(crate) struct Flat {
    /// Number of the column.
    at: usize,
    /// Schema with the fields in its place.
    pub(crate) schema: Schema,
    /// Options whose key columns are the fields.
    pub(crate) options: InputOptions,
}

impl Flat {
    /// Returns what to do with batches of this schema; `None` if the key column is no struct.
    pub(crate) fn of(schema: &Schema, options: &InputOptions) -> Option<Self> {
        let usual = options.key_name.as_deref().filter(|_| options.changes).unwrap_or("key");
        let at = match options.key.as_deref() {
            Some(name) => schema.index_of(name).ok()?,
            None if options.changes => schema.index_of(usual).or_else(|_| schema.index_of("key")).ok()?,
            None => 0,
        };
        let DataType::Struct(children) = schema.fields().get(at)?.data_type() else { return None };
        let names: Vec<&str> = children.iter().map(|child| child.name().as_str()).collect();
        let mut fields: Vec<Arc<Field>> = schema.fields().to_vec();
        fields.splice(at..=at, children.iter().cloned());
        let options = InputOptions { key: Some(names.join(",")), ..options.clone() };
        Some(Self { at, schema: Schema::new(fields), options })
    }

    /// Replaces the column of a batch. A struct that is null has fields that are.
    pub(crate) fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut columns = batch.columns().to_vec();
        let parts = columns
            .get(self.at)
            .and_then(|column| column.as_struct_opt())
            .ok_or_else(|| ArrowError::SchemaError("the key column is no struct in some batches".into()))?;
        let mut children = parts.columns().to_vec();
        if let Some(nulls) = parts.nulls().filter(|nulls| nulls.null_count() > 0) {
            for child in &mut children {
                let all = arrow_buffer::NullBuffer::union(Some(nulls), child.logical_nulls().as_ref());
                *child = arrow_array::make_array(child.to_data().into_builder().nulls(all).build()?);
            }
        }
        columns.splice(self.at..=self.at, children);
        RecordBatch::try_new(Arc::new(self.nullable()), columns)
    }

    /// Returns the schema, whose columns may all have nulls.
    fn nullable(&self) -> Schema {
        let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
        Schema::new(self.schema.fields().iter().map(nullable).collect::<Vec<_>>())
    }
}
