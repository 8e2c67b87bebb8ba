//! An answer becomes an index file.
//!
//! Nothing is sorted unless the answer is out of order, and the file appears when the whole answer has been made and all
//! inputs have been verified, or not at all.

use super::{Answer, Chunk, Schema};
use crate::error::RelationError;
use pleach::ValueType;
use pleach_builder::source::{Schema as FileSchema, Source, SourceError};
use pleach_builder::{BuildError, BuildOptions, Column, Observer, Strings, Summary};
use std::path::Path;

impl Answer<'_> {
    /// Writes the answer into an index file. Of a join, a value is a record of the left value, the right one and, of an
    /// outer join, a byte `sides`. Generations, layout and memory are those of `options`.
    ///
    /// # Errors
    /// [`RelationError::NoIndex`] if a record had a field of varying length; what [`Answer::next_chunk`] says;
    /// [`RelationError::Build`]. There is no file then.
    pub fn to_index(
        self,
        path: &Path,
        options: &BuildOptions,
        observer: &dyn Observer,
    ) -> Result<Summary, RelationError> {
        let (value_type, value_logical) = record_type(&self.schema)?;
        let file_schema = FileSchema {
            key_type: self.schema.key_type,
            value_type,
            key_name: self.schema.key_name.clone(),
            value_name: self.schema.values.name.clone(),
            key_logical: self.schema.key_logical.clone(),
            value_logical,
            rows: None,
        };
        let options = BuildOptions { sorted: self.schema.is_sorted, ..options.clone() };
        let mut source = Records { answer: self, file_schema, failed: None };
        match pleach_builder::build(&mut source, path, &options, observer) {
            Err(BuildError::Source(error)) => Err(source.failed.unwrap_or(BuildError::Source(error).into())),
            other => Ok(other?),
        }
    }
}

/// Types of the fields of a record; of a byte each for `sides`.
fn fields(schema: &Schema) -> Vec<(&str, ValueType)> {
    let left = (schema.values.name.as_str(), schema.values.value_type);
    let right = schema.right.as_ref().map(|field| (field.name.as_str(), field.value_type));
    let there = |field: &(&str, ValueType)| field.1 != ValueType::None;
    let mut fields: Vec<_> = [Some(left), right].into_iter().flatten().filter(there).collect();
    if schema.has_sides {
        fields.push(("sides", ValueType::Fixed(1)));
    }
    fields
}

/// Type of the values of the file, and its logical type.
fn record_type(schema: &Schema) -> Result<(ValueType, String), RelationError> {
    if schema.right.is_none() {
        return Ok((schema.values.value_type, schema.values.logical.clone()));
    }
    let fields = fields(schema);
    if let Some((name, kind)) =
        fields.iter().find(|(_, kind)| matches!(kind, ValueType::Bytes | ValueType::Utf8))
    {
        let what = format!("{kind} values {name:?} as a field of a join's record: their length varies");
        return Err(RelationError::NoIndex { what });
    }
    let bytes: usize = fields.iter().map(|field| field.1.bytes()).sum();
    let value_type = match bytes {
        0 => ValueType::None,
        4 => ValueType::U32,
        8 => ValueType::U64,
        _ => match u16::try_from(bytes) {
            Ok(bytes) => ValueType::Fixed(bytes),
            Err(_) => {
                return Err(RelationError::NoIndex {
                    what: format!("records of {bytes} bytes: at most 65535"),
                });
            }
        },
    };
    Ok((value_type, String::new()))
}

/// The values of a chunk as records: fields one after the other, numbers little-endian.
///
/// THE PLACE FOR RECORD TYPES: names and types of the fields ([`fields`]) belong into the logical type of the values,
/// which [`record_type`] leaves empty.
fn pack_record(schema: &Schema, value_type: ValueType, chunk: &Chunk) -> Column {
    if schema.right.is_none() {
        return chunk.values.clone();
    }
    let mut record = Vec::new();
    let mut packed = Column::for_value(value_type);
    for at in 0..chunk.len() {
        record.clear();
        for (column, field) in [(&chunk.values, Some(&schema.values)), (&chunk.right, schema.right.as_ref())]
        {
            let bytes = field.map_or(0, |field| field.value_type.bytes());
            match column {
                Column::None => {}
                Column::U32(words) => record.extend_from_slice(&words[at].to_le_bytes()),
                Column::U64(words) => record.extend_from_slice(&words[at].to_le_bytes()),
                Column::U128(words) => record.extend_from_slice(&words[at].to_le_bytes()),
                Column::Bytes(strings) => {
                    let start = record.len();
                    record.extend_from_slice(strings.get(at));
                    // A part that is missing is zeros.
                    record.resize(start + bytes, 0);
                }
            }
        }
        record.extend(chunk.sides.get(at));
        match &mut packed {
            Column::None | Column::U128(_) => {}
            Column::U32(words) => words.extend(record.first_chunk().map(|&bytes| u32::from_le_bytes(bytes))),
            Column::U64(words) => words.extend(record.first_chunk().map(|&bytes| u64::from_le_bytes(bytes))),
            Column::Bytes(strings) => Strings::push(strings, &record),
        }
    }
    packed
}

/// An answer as a source of tuples.
struct Records<'a> {
    answer: Answer<'a>,
    file_schema: FileSchema,
    /// Why the answer ended: the builder wraps what it is told.
    failed: Option<RelationError>,
}

impl Source for Records<'_> {
    fn schema(&self) -> &FileSchema {
        &self.file_schema
    }

    fn next_chunk(&mut self, chunk: &mut pleach_builder::Chunk, _: usize) -> Result<(), SourceError> {
        chunk.clear();
        match self.answer.next_chunk() {
            Ok(None) => {}
            Ok(Some(next)) => {
                chunk.values = pack_record(&self.answer.schema, self.file_schema.value_type, &next);
                chunk.keys = next.keys;
            }
            Err(error) => {
                let problem = error.to_string();
                self.failed = Some(error);
                return Err(SourceError {
                    input: "relation".into(),
                    place: String::new(),
                    problem,
                    cause: None,
                });
            }
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.answer.producer.done(), Some(self.answer.total))
    }
}
