//! Writes an answer into an index file.
//!
//! Nothing is sorted unless the answer is out of order. The file appears only after the whole answer has been
//! made and all inputs have been verified.

use super::answer::Answer;
use super::chunk::{Chunk, Field, Schema};
use super::columns::bytes_of;
use crate::error::RelationError;
use pleach::{Key as _, KeyType, ValueType};
use pleach_builder::source::{Intervals, Schema as FileSchema, Source, SourceError};
use pleach_builder::storage::{MemoryStorage, RealStorage, Storage, UnnamedStorage};
use pleach_builder::{BuildError, BuildOptions, Column, Observer, Strings, Summary};
use pleach_format::record::{self, FieldKind, FieldValue, Record};
use std::fs::File;
use std::path::Path;

impl Answer<'_> {
    /// Writes the answer into an index file. For a join, a value is a record of the left value, the right one
    /// and, for an outer join, a byte `sides`; an as-of or a band join has the right key `key_right` before
    /// the right value. `options` specifies generations, layout and memory.
    ///
    /// # Errors
    /// [`RelationError::NoIndex`] if a record would have too many fields or bytes; those of
    /// [`Answer::next_chunk`]; [`RelationError::Build`] if writing fails. No file is written then.
    pub fn to_index(
        self,
        path: impl AsRef<Path>,
        options: &BuildOptions,
        observer: &dyn Observer,
    ) -> Result<Summary, RelationError> {
        self.built(path.as_ref(), options, observer, &RealStorage)
    }

    /// Writes the answer into an unnamed index file on the disk of `folder`; closing the file removes it. See
    /// [`Index`](pleach::Index)'s `OpenOptions::open_file`.
    ///
    /// # Errors
    /// The errors of [`Answer::to_index`].
    pub fn to_unnamed_index(
        self,
        folder: &Path,
        options: &BuildOptions,
        observer: &dyn Observer,
    ) -> Result<File, RelationError> {
        let storage = UnnamedStorage::new(folder);
        self.built(storage.target(), options, observer, &storage)?;
        storage.into_file().ok_or_else(|| RelationError::Sink("no file was built".to_owned()))
    }

    /// Returns the bytes that [`Answer::to_index`] would write, without any file.
    ///
    /// # Errors
    /// The errors of [`Answer::to_index`] that do not come from the file system.
    pub fn to_bytes(self, options: &BuildOptions, observer: &dyn Observer) -> Result<Vec<u8>, RelationError> {
        let (storage, target) = (MemoryStorage::default(), Path::new("/memory.pleach"));
        self.built(target, options, observer, &storage)?;
        storage.take(target).ok_or_else(|| RelationError::Sink("no file was built".to_owned()))
    }

    fn built(
        self,
        path: &Path,
        options: &BuildOptions,
        observer: &dyn Observer,
        storage: &dyn Storage,
    ) -> Result<Summary, RelationError> {
        let (value_type, value_name, value_logical) = value_type(&self.schema)?;
        let file_schema = FileSchema {
            // A selection of disjoint intervals is disjoint.
            interval: self.schema.is_interval.then_some(Intervals::Disjoint),
            derived: None,
            unique: None,
            approximate: self.schema.approximate,
            key_type: self.schema.key_type,
            value_type,
            key_name: self.schema.key_name.clone(),
            value_name,
            key_logical: self.schema.key_logical.clone(),
            value_logical,
            rows: None,
        };
        let options = BuildOptions { sorted: self.schema.is_sorted, ..options.clone() };
        let joined = file_schema.record();
        let mut source = Records { answer: self, joined, file_schema, failed: None };
        match pleach_builder::build_with_storage(&mut source, path, &options, observer, storage) {
            Err(BuildError::Source(error)) => Err(source.failed.unwrap_or(BuildError::Source(error).into())),
            other => Ok(other?),
        }
    }
}

/// Returns the record type for the values of a join or a product: `left`, `key_right` if there are right
/// keys, `right` and, for an outer join, `sides`. A value that is a record contributes its fields, as
/// `left_a`. Returns `None` if there is one plain value, or none.
///
/// # Errors
/// [`RelationError::NoIndex`] if there are too many fields or bytes.
pub(super) fn record(schema: &Schema) -> Result<Option<Record>, RelationError> {
    let Some(right) = &schema.right else {
        return Ok(Record::of(schema.values.value_type, &schema.values.logical));
    };
    if !schema.has_sides && !schema.has_right_keys && single(schema).is_some() {
        // One value is a plain value, of any type.
        return Ok(None);
    }
    let mut fields = Vec::new();
    for (side, field) in [("left", &schema.values), ("right", right)] {
        if side == "right" && schema.has_right_keys {
            fields.push(right_key(schema)?);
        }
        if let Some(record) = Record::of(field.value_type, &field.logical) {
            fields.extend(
                record
                    .fields()
                    .iter()
                    .map(|inner| record::Field { name: format!("{side}_{}", inner.name), ..inner.clone() }),
            );
        } else if field.value_type != ValueType::None {
            let kind = FieldKind::from_name(&field.value_type.to_string()).ok_or_else(|| {
                let what = format!("{} values ({side}) as a field of a record", field.value_type);
                RelationError::NoIndex { what }
            })?;
            fields.push(record::Field { name: side.to_owned(), kind, logical: field.logical.clone() });
        }
    }
    if schema.has_sides {
        fields.push(record::Field::new("sides", FieldKind::U8));
    }
    if fields.is_empty() {
        return Ok(None);
    }
    Record::new(fields).map(Some).map_err(|error| RelationError::NoIndex { what: error.to_string() })
}

/// Returns the field of the right key.
///
/// # Errors
/// [`RelationError::NoIndex`] if it is too wide for a number.
fn right_key(schema: &Schema) -> Result<record::Field, RelationError> {
    let kind = FieldKind::from_name(&schema.key_type.to_string()).ok_or_else(|| {
        let what = format!("{} keys (key_right) as a field of a record", schema.key_type);
        RelationError::NoIndex { what }
    })?;
    Ok(record::Field { name: "key_right".to_owned(), kind, logical: schema.key_logical.clone() })
}

/// Returns the side of a join or a product that has values, if only one does and they are plain.
fn single(schema: &Schema) -> Option<&Field> {
    let right = schema.right.as_ref()?;
    let plain = |field: &Field| Record::of(field.value_type, &field.logical).is_none();
    if schema.values.value_type == ValueType::None && plain(right) {
        return Some(right);
    }
    (right.value_type == ValueType::None && plain(&schema.values)).then_some(&schema.values)
}

/// Returns the type of the values of the file, its name and its logical type.
fn value_type(schema: &Schema) -> Result<(ValueType, String, String), RelationError> {
    if schema.right.is_none() {
        let values = &schema.values;
        return Ok((values.value_type, values.name.clone(), values.logical.clone()));
    }
    Ok(match (record(schema)?, single(schema)) {
        (Some(record), _) => (record.storage(), String::new(), record.to_string()),
        (None, Some(field)) => (field.value_type, field.name.clone(), field.logical.clone()),
        (None, None) => (ValueType::None, String::new(), String::new()),
    })
}

/// Packs the values of a chunk as records: fields one after the other, numbers little-endian.
fn pack_record(schema: &Schema, joined: Option<&Record>, value_type: ValueType, chunk: &Chunk) -> Column {
    if schema.right.is_none() {
        return chunk.values.clone();
    }
    let mut packed = Column::for_value(value_type);
    if let (Some(record), Column::Bytes(strings)) = (joined, &mut packed)
        && record.has_texts()
    {
        pack_texts(schema, record, chunk, strings);
        return packed;
    }
    let mut record = Vec::new();
    for at in 0..chunk.len() {
        record.clear();
        for (column, is_key) in [(&chunk.values, false), (&chunk.right_keys, true), (&chunk.right, false)] {
            match column {
                Column::U32(words) if is_key && schema.key_type == KeyType::I32 => {
                    record.extend_from_slice(&i32::decode(words[at]).to_le_bytes());
                }
                Column::U64(words) if is_key && schema.key_type == KeyType::I64 => {
                    record.extend_from_slice(&i64::decode(words[at]).to_le_bytes());
                }
                Column::U64(words) if is_key && schema.key_type == KeyType::F64 => {
                    record.extend_from_slice(&f64::decode(words[at]).to_le_bytes());
                }
                Column::None => {}
                Column::U32(words) => record.extend_from_slice(&words[at].to_le_bytes()),
                Column::U64(words) => record.extend_from_slice(&words[at].to_le_bytes()),
                Column::U128(words) => record.extend_from_slice(&words[at].to_le_bytes()),
                Column::Bytes(strings) => record.extend_from_slice(strings.get(at)),
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

/// Packs the values of a chunk as records with texts, field by field. What a side lacks is zero or empty.
fn pack_texts(schema: &Schema, joined: &Record, chunk: &Chunk, out: &mut Strings) {
    let record_of = |field: &Field| Record::of(field.value_type, &field.logical);
    let parts = [
        (&chunk.values, None, record_of(&schema.values)),
        (&chunk.right_keys, Some(schema.key_type), None),
        (&chunk.right, None, schema.right.as_ref().and_then(record_of)),
    ];
    let mut record = Vec::new();
    for at in 0..chunk.len() {
        let mut fields = joined.fields().iter();
        let mut words = [[0; 8]; 3];
        let mut values = Vec::with_capacity(joined.len());
        for ((column, key_type, inner), word) in parts.iter().zip(&mut words) {
            let Some(bytes) = bytes_of(column, at, *key_type, word) else { continue };
            match inner {
                Some(inner) => {
                    values.extend(inner.values(bytes).zip(fields.by_ref()).map(|(value, _)| value))
                }
                None => values.extend(fields.next().and_then(|field| {
                    // A text that is not UTF-8, of a damaged file, is empty.
                    field.kind.read(bytes).or_else(|| field.kind.read(&[]))
                })),
            }
        }
        values.extend(chunk.sides.get(at).map(|&sides| FieldValue::U8(sides)));
        record.clear();
        joined.pack(&values, &mut record);
        out.push(&record);
    }
}

/// An answer as a source of tuples.
struct Records<'a> {
    answer: Answer<'a>,
    /// Record of the values of a join.
    joined: Option<Record>,
    file_schema: FileSchema,
    /// The error that ended the answer; the builder wraps the errors that it gets.
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
                let value_type = self.file_schema.value_type;
                chunk.values = pack_record(&self.answer.schema, self.joined.as_ref(), value_type, &next);
                chunk.keys = next.keys;
            }
            Err(error) => {
                let what = error.to_string();
                self.failed = Some(error);
                let (input, place, advice) = ("relation".into(), String::new(), String::new());
                return Err(SourceError { input, place, what, advice, cause: None });
            }
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        let (done, total) = self.answer.progress();
        (done, Some(total))
    }
}
