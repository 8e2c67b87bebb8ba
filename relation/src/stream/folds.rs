//! Several reductions of one input, of its values or of their fields, and their results as one value.

use super::chunk::{Chunk, Field, Schema};
use super::columns::bytes_of;
use super::fold::Fold;
use super::input::Relation;
use crate::error::RelationError;
use crate::expr::{Projection, Tuples};
use crate::rules::{Aggregate, Reduction};
use pleach::ValueType;
use pleach_builder::{Column, Strings};
use pleach_format::record::{self, FieldKind, Record};
use pleach_format::{Logical, Meaning};

/// A reduction of one column.
struct Each {
    fold: Fold,
    /// The column, if it is a field.
    column: Option<Projection>,
    result: Field,
}

/// Reductions of one input.
pub(super) struct Folds {
    all: Vec<Each>,
    /// Record of the results, if there are several.
    record: Option<Record>,
}

impl Each {
    fn new(aggregate: &Aggregate, input: &Relation<'_>, schema: &Schema) -> Result<Self, RelationError> {
        let column =
            aggregate.field.as_deref().map(|field| field_of(field, input, schema)).transpose()?.flatten();
        let field = match &column {
            Some(column) => {
                let made = column.schema();
                Field { name: made.value_name, value_type: made.value_type, logical: made.logical.1 }
            }
            None => schema.values.clone(),
        };
        let meaning = Meaning::new(field.value_type, &field.logical);
        let scale = match meaning.logical {
            Logical::Decimal { scale, .. } => u32::try_from(scale).ok(),
            _ => Some(0),
        };
        let operation = aggregate.operation;
        let fold = Fold {
            operation,
            key_type: input.key_type(),
            value_type: field.value_type,
            scale: scale.unwrap_or(0),
        };
        let is_any = matches!(operation, Reduction::Count | Reduction::First);
        let is_record = Record::of(field.value_type, &field.logical).is_some();
        let is_number =
            matches!(meaning.logical, Logical::Plain | Logical::Decimal { .. } | Logical::Unknown(_));
        let adds = match operation {
            Reduction::Sum => is_number || matches!(meaning.logical, Logical::Duration(_)),
            Reduction::Avg => is_number && scale.is_some(),
            Reduction::Min | Reduction::Max | Reduction::Count | Reduction::First => true,
        };
        let output = fold.output().filter(|_| (is_any || !is_record) && adds).ok_or_else(|| {
            RelationError::NoReduction {
                operation: operation.name(),
                value_type: meaning.to_string(),
                input: input.name(),
            }
        })?;
        let logical = match (operation, &meaning.logical) {
            // A sum uses all digits of the type.
            (Reduction::Sum, &Logical::Decimal { scale, .. }) => {
                Logical::Decimal { bits: 128, precision: 38, scale }.meta()
            }
            (Reduction::Count, _) => String::new(),
            _ if output != field.value_type => String::new(),
            _ => field.logical,
        };
        Ok(Self { fold, column, result: Field { name: field.name, value_type: output, logical } })
    }
}

/// Returns a field as a list of columns; `None` if it is the whole value.
fn field_of(field: &str, input: &Relation<'_>, schema: &Schema) -> Result<Option<Projection>, RelationError> {
    let record = Record::of(schema.values.value_type, &schema.values.logical);
    let refused =
        |known: String| RelationError::NoField { field: field.to_owned(), input: input.name(), known };
    let Some(record) = record else {
        let name = Some(&schema.values.name).filter(|name| !name.is_empty());
        if schema.values.value_type != ValueType::None
            && (field == "value" || name.is_some_and(|name| name == field))
        {
            return Ok(None);
        }
        return Err(refused("no fields: leave the name out".to_owned()));
    };
    let names: Vec<&str> = record.fields().iter().map(|field| &*field.name).collect();
    if !names.contains(&field) {
        return Err(refused(format!("the fields {}: name one of these", names.join(", "))));
    }
    let columns = Projection::parse(&format!("key,`{field}`"), &schema.into());
    columns.map(Some).map_err(|error| refused(format!("a name that cannot be used here ({})", error.what)))
}

impl Folds {
    /// Checks the reductions; returns them with the schema of their results.
    ///
    /// # Errors
    /// [`RelationError::NoReduction`], [`RelationError::NoField`], [`RelationError::Reductions`].
    pub(super) fn new(
        aggregates: &[Aggregate],
        input: &Relation<'_>,
        schema: Schema,
    ) -> Result<(Self, Schema), RelationError> {
        let all: Vec<Each> =
            aggregates.iter().map(|one| Each::new(one, input, &schema)).collect::<Result<_, _>>()?;
        let refused = |what: String| RelationError::Reductions { what };
        if let [one] = &all[..] {
            let values = one.result.clone();
            return Ok((Self { all, record: None }, Schema { values, ..schema }));
        }
        let fields = all.iter().zip(aggregates).map(|(each, aggregate)| {
            let (value_type, name) = (each.result.value_type, aggregate.name());
            let kind = FieldKind::from_name(&value_type.to_string())
                .ok_or_else(|| refused(format!("{name} has the type {value_type}, which no field has")))?;
            Ok(record::Field { name, kind, logical: each.result.logical.clone() })
        });
        let fields = fields.collect::<Result<_, RelationError>>()?;
        let record = Record::new(fields).map_err(|error| refused(error.to_string()))?;
        let (value_type, logical) = (record.storage(), record.to_string());
        let values = Field { name: String::new(), value_type, logical };
        Ok((Self { all, record: Some(record) }, Schema { values, ..schema }))
    }

    /// Returns the only reduction, if it is one of whole values that a device can do.
    pub(super) fn alone(&self) -> Option<Fold> {
        match &self.all[..] {
            [one] if one.column.is_none() => Some(one.fold),
            _ => None,
        }
    }

    /// Returns true if results depend on where blocks begin.
    pub(super) fn has_blocks(&self) -> bool {
        self.all.iter().any(|each| each.fold.has_blocks())
    }

    /// Reduces a chunk by each of them.
    pub(super) fn chunks(&self, chunk: &Chunk) -> Result<Vec<Chunk>, RelationError> {
        let one = |each: &Each| match &each.column {
            Some(column) => Ok(each.fold.chunk(&field(column, chunk)?)),
            None => Ok(each.fold.chunk(chunk)),
        };
        self.all.iter().map(one).collect()
    }

    /// Combines the key that continues from the chunks before, and keeps the last key back.
    pub(super) fn carry(
        &self,
        carried: Option<Vec<Chunk>>,
        chunks: Vec<Chunk>,
    ) -> (Vec<Chunk>, Option<Vec<Chunk>>) {
        let mut carried = carried.map(Vec::into_iter);
        let carry =
            |(each, chunk): (&Each, Chunk)| each.fold.carry(carried.as_mut().and_then(Iterator::next), chunk);
        let (whole, kept): (Vec<Chunk>, Vec<Option<Chunk>>) = self.all.iter().zip(chunks).map(carry).unzip();
        (whole, kept.into_iter().collect())
    }

    /// Converts results to the type of the answer.
    pub(super) fn finished(&self, chunks: Vec<Chunk>) -> Result<Chunk, RelationError> {
        let finish = |(each, chunk): (&Each, Chunk)| each.fold.finished(chunk);
        let mut done: Vec<Chunk> = self.all.iter().zip(chunks).map(finish).collect::<Result<_, _>>()?;
        let values = self.record.as_ref().map(|record| packed(record, &done));
        let first = done.drain(..).next().unwrap_or_default();
        Ok(Chunk { values: values.unwrap_or(first.values), ..first })
    }
}

/// Returns the tuples of a chunk with one field as the value.
fn field(column: &Projection, chunk: &Chunk) -> Result<Chunk, RelationError> {
    let schema = column.schema();
    let (mut keys, mut values) = (Column::for_key(schema.key_type), Column::for_value(schema.value_type));
    let (keys_of, values_of) = ((&chunk.keys).into(), (&chunk.values).into());
    let tuples = Tuples { first_rank: chunk.first_rank, keys: keys_of, values: values_of };
    column.apply(&tuples, &mut keys, &mut values)?;
    Ok(Chunk { keys, values, ..Chunk::default() })
}

/// Packs columns as the fields of records.
fn packed(record: &Record, columns: &[Chunk]) -> Column {
    let mut packed = Column::for_value(record.storage());
    let mut bytes = Vec::new();
    for at in 0..columns.first().map_or(0, Chunk::len) {
        let mut words = vec![[0; 8]; columns.len()];
        let fields = record.fields().iter().zip(columns).zip(&mut words);
        let values: Vec<_> = fields
            .filter_map(|((field, column), word)| {
                let bytes = bytes_of(&column.values, at, None, word)?;
                // A text that is not UTF-8, of a damaged file, is empty.
                field.kind.read(bytes).or_else(|| field.kind.read(&[]))
            })
            .collect();
        bytes.clear();
        record.pack(&values, &mut bytes);
        match &mut packed {
            Column::None | Column::U128(_) => {}
            Column::U32(words) => words.extend(bytes.first_chunk().map(|&bytes| u32::from_le_bytes(bytes))),
            Column::U64(words) => words.extend(bytes.first_chunk().map(|&bytes| u64::from_le_bytes(bytes))),
            Column::Bytes(strings) => Strings::push(strings, &bytes),
        }
    }
    packed
}
