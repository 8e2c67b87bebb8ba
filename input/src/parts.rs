//! Several key columns as one key.
//!
//! Each column is read like a key of its own, the first one into the keys of a chunk. For each chunk the columns
//! are then joined to composite keys ([`pleach_format::logical::Composite`]). Words of keys are in order, so the
//! bytes of a part are those of its word, the most significant one first.

use crate::choose::choose_key;
use crate::kind::{Target, Wanted, bounds};
use crate::logical::Natural;
use crate::names::Names;
use crate::options::InputOptions;
use crate::problem::{fault, place, problem};
use pleach_builder::{Column, Schema, SourceError};
use pleach_format::logical::{Composite, Meaning, Part};
use pleach_format::record::FieldKind;
use pleach_format::types::KEY_BYTES_MAX;
use pleach_format::{KeyType, Logical};

/// The parts of a composite key.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    composite: Composite,
    /// Type of the keys.
    key_type: KeyType,
    /// Type as which the first part is read.
    pub(crate) first: KeyType,
    name: String,
}

/// Returns the type as which a part is read: narrow integers are read as those of 32 bits.
fn read_type(words: &str) -> Option<KeyType> {
    match words {
        "u8" | "u16" => Some(KeyType::U32),
        "i8" | "i16" => Some(KeyType::I32),
        _ => KeyType::from_name(words),
    }
}

impl Parts {
    /// Chooses the conversion of the columns of a composite key. `column` describes the content of a column, in
    /// words and as a type; `None` means text, which becomes any requested type.
    pub(crate) fn choose(
        input: &str,
        names: Names<'_>,
        columns: &[usize],
        options: &InputOptions,
        column: impl Fn(usize) -> Option<(String, Option<Natural>)>,
    ) -> Result<(Self, Vec<Wanted>), SourceError> {
        let wishes = wishes(input, options, columns.len())?;
        let mut meanings = Vec::new();
        let mut chosen = Vec::new();
        for (&index, wish) in columns.iter().zip(&wishes) {
            let label = names.label(index);
            let (meaning, target) = match column(index) {
                None => of_text(input, &label, wish.as_ref(), options)?,
                Some(held) => typed(input, &label, held, wish.as_ref(), options)?,
            };
            meanings.push((names.field(index), meaning));
            chosen.push(Wanted { index, target, label });
        }
        let first = meanings.first().and_then(|(_, meaning)| read_type(&meaning.words));
        let composite = match &options.key_logical {
            Some(Logical::Composite(composite)) => composite.clone(),
            _ => Composite::new(meanings)
                .map_err(|error| problem(input, "", fault(error.what(), error.advice())))?,
        };
        let name = match names {
            Names::Named(_) => columns.iter().map(|&index| names.field(index)).collect::<Vec<_>>().join(","),
            Names::Numbered(_) => "key".to_owned(),
        };
        let key_type = KeyType::from_name(&composite.parts().key_words()).unwrap_or(KeyType::Bytes);
        Ok((Self { composite, key_type, first: first.unwrap_or(KeyType::U64), name }, chosen))
    }

    /// Stores the key in the schema of an input.
    pub(crate) fn describe(&self, schema: &mut Schema) {
        schema.key_type = self.key_type;
        schema.key_name.clone_from(&self.name);
        schema.key_logical = self.composite.to_string();
    }

    /// Makes composite keys of the first parts, which are in `keys`, and the others. `row_of` returns the row of
    /// an element.
    pub(crate) fn join(
        &self,
        input: &str,
        row_of: impl Fn(usize) -> u64,
        keys: &mut Column,
        others: &[Column],
        labels: &[&str],
    ) -> Result<(), SourceError> {
        let parts = self.composite.parts();
        let first = std::mem::replace(keys, Column::for_key(self.key_type));
        let columns: Vec<&Column> = std::iter::once(&first).chain(others).collect();
        let mut key = Vec::new();
        for row in 0..first.len() {
            key.clear();
            for (at, (part, column)) in parts.all().iter().zip(&columns).enumerate() {
                let is_last = at + 1 == parts.all().len();
                put(*part, column, row, is_last, &mut key).map_err(|what| {
                    let label = labels.get(at).copied().unwrap_or_default();
                    let advice = "choose another type with --key-type";
                    problem(input, place(row_of(row), label), fault(what, advice))
                })?;
            }
            if key.len() > KEY_BYTES_MAX {
                let text =
                    format!("the key has {} bytes, but at most {KEY_BYTES_MAX} are possible", key.len());
                let label = labels.first().copied().unwrap_or_default();
                let fault = fault(text, "shorten it, or choose other columns with --key");
                return Err(problem(input, place(row_of(row), label), fault));
            }
            let word = || key.iter().fold(0_u128, |word, &byte| word << 8 | u128::from(byte));
            match keys {
                Column::U32(words) => words.push(word() as u32),
                Column::U64(words) => words.push(word() as u64),
                Column::U128(words) => words.push(word()),
                Column::Bytes(strings) => strings.push(&key),
                Column::None => {}
            }
        }
        Ok(())
    }
}

/// Returns the requested meaning of each part.
fn wishes(input: &str, options: &InputOptions, count: usize) -> Result<Vec<Option<Meaning>>, SourceError> {
    if let Some(Logical::Composite(composite)) = &options.key_logical {
        return Ok(composite.columns().iter().map(|(_, meaning)| Some(meaning.clone())).collect());
    }
    match options.part_types.as_slice() {
        [] => Ok(vec![None; count]),
        [one] => Ok(vec![Some(one.clone()); count]),
        each if each.len() == count => Ok(each.iter().cloned().map(Some).collect()),
        each => {
            let text = format!("there are {count} key columns, but {} types", each.len());
            Err(problem(input, "", fault(text, "give one for each with --key-type, or one for all")))
        }
    }
}

/// Chooses the conversion of a column of text.
fn of_text(
    input: &str,
    label: &str,
    wish: Option<&Meaning>,
    options: &InputOptions,
) -> Result<(Meaning, Target), SourceError> {
    let meaning = wish.cloned().unwrap_or_else(|| Meaning::new(KeyType::U64, ""));
    let kind = read_type(&meaning.words).ok_or_else(|| {
        let text = format!("{} cannot be a part of a key", meaning.words);
        problem(input, label, fault(text, "choose another type with --key-type"))
    })?;
    let texts = Some(&meaning.logical).filter(|_| !options.raw_values);
    let target = Target::of_key(kind).meant(texts);
    Ok((meaning, target))
}

/// Chooses the conversion of a column that has a type.
fn typed(
    input: &str,
    label: &str,
    held: (String, Option<Natural>),
    wish: Option<&Meaning>,
    options: &InputOptions,
) -> Result<(Meaning, Target), SourceError> {
    let narrow = held.1.as_ref().and_then(|natural| natural.narrow);
    let is_known = matches!(options.key_logical, Some(Logical::Composite(_)));
    let logical =
        wish.map(|wish| wish.logical.clone()).filter(|logical| is_known || *logical != Logical::Plain);
    let key_type = wish.and_then(|wish| read_type(&wish.words));
    let alone = InputOptions { key_type, key_logical: logical, ..options.clone() };
    let chosen = choose_key(input, label, held, &alone)?;
    let words = match (wish, narrow) {
        (Some(wish), _) => wish.words.clone(),
        (None, Some(narrow)) => narrow.to_string(),
        (None, None) => chosen.kind.to_string(),
    };
    Ok((Meaning::new(words, &chosen.logical), chosen.target))
}

/// Appends the bytes of one part of a key; says what is wrong with it.
fn put(part: Part, column: &Column, row: usize, is_last: bool, out: &mut Vec<u8>) -> Result<(), String> {
    match (column, part.bytes()) {
        (Column::U32(words), Some(bytes @ 1..4)) => {
            // A narrow number, whose word is that of 32 bits.
            let word = words[row];
            let (kind, is_signed) = match part {
                Part::Signed(1) => (FieldKind::I8, true),
                Part::Signed(_) => (FieldKind::I16, true),
                Part::Unsigned(1) => (FieldKind::U8, false),
                _ => (FieldKind::U16, false),
            };
            let number = if is_signed { i64::from(word) - (1 << 31) } else { word.into() };
            let moved = number + if is_signed { 1_i64 << (8 * bytes - 1) } else { 0 };
            if moved < 0 || moved >> (8 * bytes) != 0 {
                return Err(format!("{number} does not fit {}", bounds(kind)));
            }
            out.extend_from_slice(&moved.to_be_bytes()[8 - bytes..]);
        }
        (Column::U32(words), _) => out.extend_from_slice(&words[row].to_be_bytes()),
        (Column::U64(words), _) => out.extend_from_slice(&words[row].to_be_bytes()),
        (Column::U128(words), _) => out.extend_from_slice(&words[row].to_be_bytes()),
        (Column::Bytes(strings), _) => part.put_bytes(strings.get(row), is_last, out),
        (Column::None, _) => {}
    }
    Ok(())
}
