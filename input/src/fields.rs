//! Several value columns as one record, and the columns of a composite key.
//!
//! Each column is read like a value of its own; narrow integers are read as 32-bit ones, as elsewhere. For
//! each chunk the columns are then packed, field by field, into records ([`pleach_format::record`]), which texts
//! follow row by row.

use crate::choose::{Meant, agreed, kinds_of_fields, logicals_of_fields};
use crate::chunk::CHUNK_BYTES;
use crate::kind::{Kind, Target, Wanted, bounds, empty};
use crate::logical::Natural;
use crate::names::Names;
use crate::options::InputOptions;
use crate::parts::Parts;
use crate::problem::{fault, place, problem};
use pleach_builder::{Chunk, Column, Schema, SourceError, Strings};
use pleach_format::interval::field_of as field_of_key;
use pleach_format::logical::Form;
use pleach_format::record::{Field, FieldKind, Record};
use pleach_format::{KeyType, Logical};

/// The columns of a record and of a composite key, and elements that were read but not packed.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    /// `None` if values are no records.
    record: Option<Record>,
    /// Composite keys: the key column of the input is the first part, and the first columns here are the others.
    parts: Option<Parts>,
    /// Label of the first part.
    first: String,
    /// Number of the columns that are parts of keys.
    part_count: usize,
    pub(crate) columns: Vec<Wanted>,
    pub(crate) held: Vec<Column>,
    packed: Vec<u8>,
}

/// Returns the kind as which a field is read.
fn kind_of(field: FieldKind) -> Kind {
    match field {
        FieldKind::U8 | FieldKind::U16 | FieldKind::U32 => Kind::U32,
        FieldKind::I8 | FieldKind::I16 | FieldKind::I32 => Kind::I32,
        FieldKind::U64 => Kind::U64,
        FieldKind::I64 => Kind::I64,
        FieldKind::F32 => Kind::F32,
        FieldKind::F64 => Kind::F64,
        FieldKind::Fixed(bytes) => Kind::Fixed(bytes),
        FieldKind::Bytes => Kind::Bytes,
        FieldKind::Utf8 => Kind::Utf8,
    }
}

/// Returns the field type of a column unless another one is requested.
fn field_of(natural: &Natural) -> FieldKind {
    natural.narrow.unwrap_or(match natural.kind {
        Kind::U32 => FieldKind::U32,
        Kind::U64 => FieldKind::U64,
        Kind::U128 => FieldKind::Fixed(16),
        Kind::I32 => FieldKind::I32,
        Kind::I64 => FieldKind::I64,
        Kind::F32 => FieldKind::F32,
        Kind::F64 => FieldKind::F64,
        Kind::Fixed(bytes) => FieldKind::Fixed(bytes),
        Kind::Bytes => FieldKind::Bytes,
        Kind::Utf8 => FieldKind::Utf8,
    })
}

impl Fields {
    /// Chooses the record of `columns`. `column` describes the content of a column, in words and as a type;
    /// `None` means text, which becomes any requested type.
    pub(crate) fn choose(
        input: &str,
        names: Names<'_>,
        columns: &[usize],
        options: &InputOptions,
        key: (KeyType, &str),
        column: impl Fn(usize) -> Option<(String, Option<Natural>)>,
    ) -> Result<Self, SourceError> {
        let interval = options.interval.as_ref().filter(|_| !options.changes);
        let values = columns.len() - usize::from(interval.is_some());
        let mut wishes = kinds_of_fields(input, options, values)?;
        let mut logicals = logicals_of_fields(options, values);
        if interval.is_some() {
            // Ends are elements of the type of the keys.
            let kind = field_of_key(key.0).ok_or_else(|| {
                let text = format!("intervals need keys that are numbers, not {}", key.0);
                problem(input, "", fault(text, "choose another type with --key-type"))
            })?;
            wishes.insert(0, Some(kind));
            logicals.insert(0, Some(Logical::of_meta(key.1)).filter(|logical| *logical != Logical::Plain));
        }
        let mut fields = Vec::new();
        let mut chosen = Vec::new();
        for ((&index, wish), meant) in columns.iter().zip(wishes).zip(&logicals) {
            let label = names.label(index);
            let is_network = fields.is_empty() && interval.is_some_and(|interval| interval.end.is_none());
            let (kind, target, logical) = match column(index) {
                None => {
                    let kind = wish.unwrap_or(FieldKind::U64);
                    let texts = meant.as_ref().filter(|_| !options.raw_values);
                    let target = Target::of(kind_of(kind), false).meant(texts);
                    (kind, target, meant.as_ref().map(Logical::meta).unwrap_or_default())
                }
                Some((held, natural)) => {
                    let meant = Meant { logical: meant.as_ref(), is_raw: options.is_raw() };
                    typed(input, &label, &held, natural, wish, meant)?
                }
            };
            let (name, target) = match is_network {
                true => ("last".to_owned(), Target { form: Some(Form::Network(true)), ..target }),
                false => (names.field(index), target),
            };
            fields.push(Field { name, kind, logical });
            chosen.push(Wanted { index, target, label });
        }
        let record = match &options.record {
            Some(record) if record.len() == columns.len() => record.clone(),
            Some(record) => {
                let text = format!("it has {} columns of values, but the record {record}", columns.len());
                return Err(problem(input, "", fault(text, "give one for each field")));
            }
            None => Record::new(fields)
                .map_err(|error| problem(input, "", fault(error.what(), error.advice())))?,
        };
        let held = chosen.iter().map(|column| empty(column.target)).collect();
        let (record, columns) = (Some(record), chosen);
        Ok(Self {
            record,
            parts: None,
            first: String::new(),
            part_count: 0,
            columns,
            held,
            packed: Vec::new(),
        })
    }

    /// Adds the other columns of a composite key, whose first one is called `first`, to those of a record, if
    /// there is one.
    pub(crate) fn with_parts(fields: Option<Self>, parts: Parts, others: Vec<Wanted>, first: &str) -> Self {
        let part_count = others.len();
        let (record, values, held) = match fields {
            Some(fields) => (fields.record, fields.columns, fields.held),
            None => (None, Vec::new(), Vec::new()),
        };
        let of_parts = others.iter().map(|other| Column::for_key(other.target.kind.key_type()));
        Self {
            record,
            parts: Some(parts),
            first: first.to_owned(),
            part_count,
            held: of_parts.chain(held).collect(),
            columns: others.into_iter().chain(values).collect(),
            packed: Vec::new(),
        }
    }

    /// Stores the record and the composite key in the schema of an input.
    pub(crate) fn describe(&self, schema: &mut Schema) {
        if let Some(record) = &self.record {
            schema.value_type = record.storage();
            schema.value_name.clear();
            schema.value_logical = record.to_string();
        }
        if let Some(parts) = &self.parts {
            parts.describe(schema);
        }
    }

    /// Returns the type of the first part of composite keys.
    pub(crate) fn first_part(&self) -> Option<KeyType> {
        self.parts.as_ref().map(|parts| parts.first)
    }

    /// Returns the columns of values.
    pub(crate) fn values(&self) -> &[Wanted] {
        &self.columns[self.part_count..]
    }

    /// Limits the tuples of a chunk to those that are packed at once.
    pub(crate) fn tuples_max(&self, tuples_max: usize) -> usize {
        let bytes = self.record.as_ref().map_or(1, Record::bytes);
        tuples_max.min((CHUNK_BYTES / bytes).max(1))
    }

    /// Returns the bytes of the strings that are not packed yet.
    pub(crate) fn held_bytes(&self) -> usize {
        let bytes =
            |column: &Column| if let Column::Bytes(strings) = column { strings.data_bytes() } else { 0 };
        self.held.iter().map(bytes).sum()
    }

    /// Makes keys and values of a chunk of the elements that were read; `row_of` returns the row of an element.
    pub(crate) fn pack(
        &mut self,
        input: &str,
        row_of: impl Fn(usize) -> u64,
        chunk: &mut Chunk,
    ) -> Result<(), SourceError> {
        let (others, values) = self.held.split_at_mut(self.part_count);
        if let Some(parts) = &self.parts {
            let labels = self.columns[..self.part_count].iter().map(|column| column.label.as_str());
            let labels: Vec<&str> = std::iter::once(self.first.as_str()).chain(labels).collect();
            parts.join(input, &row_of, &mut chunk.keys, others, &labels)?;
            others.iter_mut().for_each(Column::clear);
        }
        let Some(record) = &self.record else { return Ok(()) };
        let rows = values.first().map_or(0, Column::len);
        let stride = record.bytes();
        self.packed.clear();
        self.packed.resize(rows * stride, 0);
        for (index, held) in values.iter_mut().enumerate() {
            let kind = record.fields()[index].kind;
            if kind.is_text() {
                continue;
            }
            let places = self.packed.chunks_exact_mut(stride);
            let (at, end) = (record.offset(index), record.offset(index) + kind.bytes());
            let places = places.map(|packed| &mut packed[at..end]);
            put(kind, held, places).map_err(|(at, number)| {
                let column = &self.columns[self.part_count + index];
                let text = format!("{number} does not fit {}", bounds(kind));
                let fault = fault(text, "choose another type with --value-type");
                problem(input, place(row_of(at), &column.label), fault)
            })?;
            held.clear();
        }
        match &mut chunk.values {
            Column::U32(words) => {
                words.extend(self.packed.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)));
            }
            Column::U64(words) => {
                words.extend(self.packed.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
            }
            Column::Bytes(strings) if record.has_texts() => {
                add_texts(record, &self.packed, values, strings);
                values.iter_mut().for_each(Column::clear);
            }
            Column::Bytes(strings) => strings.extend_fixed(&self.packed, stride),
            // A record as wide as a word of sixteen bytes is not stored as one.
            Column::None | Column::U128(_) => {}
        }
        Ok(())
    }
}

/// Adds the records whose fields are `packed`, with their texts, which `held` has.
fn add_texts(record: &Record, packed: &[u8], held: &[Column], out: &mut Strings) {
    let texts: Vec<&Strings> = (record.fields().iter().zip(held))
        .filter(|(field, _)| field.kind.is_text())
        .filter_map(|(_, column)| if let Column::Bytes(strings) = column { Some(strings) } else { None })
        .collect();
    let mut value = Vec::new();
    for (row, fields) in packed.chunks_exact(record.bytes()).enumerate() {
        value.clear();
        value.extend_from_slice(fields);
        record.put_texts(texts.iter().map(|strings| strings.get(row)), &mut value);
        out.push(&value);
    }
}

/// Chooses the conversion of a column that holds `natural`.
fn typed(
    input: &str,
    label: &str,
    held: &str,
    natural: Option<Natural>,
    wish: Option<FieldKind>,
    meant: Meant<'_>,
) -> Result<(FieldKind, Target, String), SourceError> {
    let natural = natural.ok_or_else(|| {
        let text = format!("wrong type: it holds {held}, which cannot be a field of a record");
        problem(input, label, fault(text, "choose another column with --value"))
    })?;
    let own = natural.extension.as_ref().filter(|_| wish.is_none() && !meant.is_raw);
    let stored = own.and_then(|logical| FieldKind::from_name(&logical.field_words()?));
    let kind = wish.or(stored).unwrap_or_else(|| field_of(&natural));
    let meant = Meant { logical: meant.logical.or(own.filter(|_| stored.is_some())), ..meant };
    let target = Target::of(kind_of(kind), false);
    let (target, logical) = agreed(input, label, held, &natural, Some(target), (&kind, false), meant)?;
    let is_kept = match Logical::of_meta(&logical) {
        Logical::Boolean => matches!(kind, FieldKind::U8 | FieldKind::U32),
        _ => kind.bytes() >= 4 || matches!(kind, FieldKind::Fixed(_)),
    };
    Ok((kind, target, if is_kept { logical } else { String::new() }))
}

/// Writes a column into its places. For the first number that does not fit, returns its index and its text.
fn put<'a>(
    kind: FieldKind,
    held: &Column,
    places: impl Iterator<Item = &'a mut [u8]>,
) -> Result<(), (usize, String)> {
    macro_rules! narrow {
        ($words:expr, $t:ty, $of:expr) => {
            for (at, (place, &word)) in places.zip($words).enumerate() {
                let number = $of(word);
                let fit = <$t>::try_from(number).map_err(|_| (at, number.to_string()))?;
                place.copy_from_slice(&fit.to_le_bytes());
            }
        };
    }
    match (kind, held) {
        (FieldKind::U8, Column::U32(words)) => narrow!(words, u8, |word: u32| word),
        (FieldKind::U16, Column::U32(words)) => narrow!(words, u16, |word: u32| word),
        (FieldKind::I8, Column::U32(words)) => narrow!(words, i8, u32::cast_signed),
        (FieldKind::I16, Column::U32(words)) => narrow!(words, i16, u32::cast_signed),
        (_, Column::U32(words)) => {
            places.zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
        }
        (_, Column::U64(words)) => {
            places.zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
        }
        (_, Column::Bytes(strings)) => {
            // Strings of N bytes were checked; a del may lack one.
            places.zip(strings.iter()).filter(|(place, string)| place.len() == string.len()).for_each(
                |(place, string)| {
                    place.copy_from_slice(string);
                },
            );
        }
        (_, Column::None | Column::U128(_)) => {}
    }
    Ok(())
}
