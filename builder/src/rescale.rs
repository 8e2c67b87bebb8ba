//! Conversion of words from one unit or scale to a finer one; the order is the same.
//!
//! [`pleach_format::logical::matching`] decides which columns mean the same, and gives the factor.

use crate::source::{Chunk, Column, Schema, Source, SourceError};
use pleach_format::Meaning;
use pleach_format::key::Key;
use pleach_format::logical::{Form, Ratio, shown};
use pleach_format::{KeyType, ValueType};

/// The conversion of the words of a column to those of another column that means the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescale {
    is_key: bool,
    is_wide: bool,
    ratio: Ratio,
    form: Option<Form>,
}

impl Rescale {
    /// Creates the conversion from words that mean `from` to words that mean `to`; `None` if they are the
    /// same.
    #[must_use]
    pub fn new(is_key: bool, from: &Meaning, to: &Meaning, ratio: Ratio) -> Option<Self> {
        let is_same = ratio == Ratio::ONE && from.words == to.words;
        (!is_same).then(|| Self { is_key, is_wide: to.words == "i64", ratio, form: from.form() })
    }

    /// Returns the type of the new keys.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        if self.is_wide { KeyType::I64 } else { KeyType::I32 }
    }

    /// Returns the type of the new values.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        if self.is_wide { ValueType::I64 } else { ValueType::I32 }
    }

    /// Returns the old number of a word of `bytes` bytes.
    fn number(&self, word: u64, bytes: usize) -> i64 {
        match (bytes, self.is_key) {
            (4, true) => i32::decode(word as u32).into(),
            (4, false) => (word as u32).cast_signed().into(),
            (_, true) => i64::decode(word),
            (_, false) => word.cast_signed(),
        }
    }

    /// Returns the new word, if it exists.
    fn word(&self, word: u64, bytes: usize) -> Option<u64> {
        let number = self.ratio.apply(self.number(word, bytes))?;
        Some(match (self.is_wide, self.is_key) {
            (true, true) => number.encode(),
            (true, false) => number.cast_unsigned(),
            (false, true) => i32::try_from(number).ok()?.encode().into(),
            (false, false) => i32::try_from(number).ok()?.cast_unsigned().into(),
        })
    }

    /// Returns the new word, or the nearest one if it does not exist.
    #[must_use]
    pub fn nearest(&self, word: u64, bytes: usize) -> u64 {
        self.word(word, bytes).unwrap_or(match (self.number(word, bytes) < 0, self.is_wide) {
            (true, true) => i64::MIN.encode(),
            (false, true) => i64::MAX.encode(),
            (true, false) => i32::MIN.encode().into(),
            (false, false) => i32::MAX.encode().into(),
        })
    }

    /// Converts the words of a column. O(n).
    ///
    /// # Errors
    /// The text of the first number that has no word in the new unit.
    pub fn column(&self, column: &Column) -> Result<Column, String> {
        let failed = |word, bytes| match (self.form, self.number(word, bytes)) {
            (Some(form), number) => shown(form, number),
            (None, number) => number.to_string(),
        };
        let old: Box<dyn Iterator<Item = (u64, usize)>> = match column {
            Column::U32(words) => Box::new(words.iter().map(|&word| (u64::from(word), 4))),
            Column::U64(words) => Box::new(words.iter().map(|&word| (word, 8))),
            // No other column has a unit.
            other => return Ok(other.clone()),
        };
        let mut new = Vec::with_capacity(column.len());
        for (word, bytes) in old {
            new.push(self.word(word, bytes).ok_or_else(|| failed(word, bytes))?);
        }
        Ok(if self.is_wide {
            Column::U64(new)
        } else {
            Column::U32(new.into_iter().map(|word| word as u32).collect())
        })
    }
}

/// A source in other units.
pub(crate) struct Rescaled<'a> {
    pub source: Box<dyn Source + 'a>,
    pub name: String,
    pub schema: Schema,
    pub keys: Option<Rescale>,
    pub values: Option<Rescale>,
    pub to: [String; 2],
}

impl Source for Rescaled<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        let schema = self.source.schema();
        let mut old = Chunk::new(schema.key_type, schema.value_type);
        self.source.next_chunk(&mut old, tuples_max)?;
        let parts = [
            (self.keys, &mut old.keys, "key", &self.to[0]),
            (self.values, &mut old.values, "value", &self.to[1]),
        ];
        for (rescale, column, role, to) in parts {
            let Some(rescale) = rescale else { continue };
            *column = rescale.column(column).map_err(|text| SourceError {
                input: self.name.clone(),
                place: format!("{role} {text}"),
                what: format!("it is outside the range of {to}, in which the files are compared"),
                advice: "select fewer tuples first".into(),
                cause: None,
            })?;
        }
        *chunk = old;
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        self.source.progress()
    }
}
