//! The columns of a projection: their types, and the keys and values that they make.

use super::column::{ColumnRef, Kind, Leaf, Side, Tuples};
use super::error::EvalError;
use super::schema::Schema;
use pleach_builder::{Column, Strings};
use pleach_format::record::FieldKind;
use pleach_format::{Key, KeyType, Record, ValueType};
use std::fmt;
use std::ops::Range;

/// Bits of a number.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) leaf: Leaf,
    pub(super) offset: u32,
    pub(super) length: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Source {
    /// An operand as it is.
    Whole(Leaf),
    /// Bits side by side, and their total number.
    Bits(Vec<Part>, u32),
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) what: Source,
    pub(super) logical: String,
    pub(super) place: Range<usize>,
}

/// The new values of a projection.
#[derive(Clone, Debug)]
pub(super) enum Values {
    None,
    /// The whole old value, with its type, fields and logical type.
    Same(ValueType, Option<Record>, Item),
    One(ValueType, Item),
    Record(Record, Vec<Item>),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Source::Whole(leaf) if leaf.name == self.name => f.write_str(&leaf.name),
            Source::Whole(leaf) => write!(f, "{}={}", self.name, leaf.name),
            Source::Bits(parts, _) => {
                write!(f, "{}=", self.name)?;
                for (index, part) in parts.iter().enumerate() {
                    let plus = if index > 0 { "+" } else { "" };
                    write!(f, "{plus}{}[{}:{}]", part.leaf.name, part.offset, part.length)?;
                }
                Ok(())
            }
        }
    }
}

impl Source {
    /// Returns the type as the only value.
    pub(super) fn value_type(&self) -> ValueType {
        match self {
            Self::Bits(_, 0..=32) => ValueType::U32,
            Self::Bits(..) => ValueType::U64,
            Self::Whole(leaf) => match leaf.kind {
                Kind::U8 | Kind::U16 | Kind::U32 => ValueType::U32,
                Kind::I8 | Kind::I16 | Kind::I32 => ValueType::I32,
                Kind::U64 => ValueType::U64,
                Kind::I64 => ValueType::I64,
                Kind::F32 => ValueType::F32,
                Kind::F64 => ValueType::F64,
                Kind::U128 => ValueType::Fixed(16),
                Kind::Bytes(0, true) => ValueType::Utf8,
                Kind::Bytes(0, false) => ValueType::Bytes,
                Kind::Bytes(width, _) => ValueType::Fixed(width as u16),
            },
        }
    }

    /// Returns the type as a field.
    pub(super) fn field_kind(&self) -> FieldKind {
        match self {
            Self::Bits(_, bits) => match bits {
                0..=8 => FieldKind::U8,
                9..=16 => FieldKind::U16,
                17..=32 => FieldKind::U32,
                _ => FieldKind::U64,
            },
            Self::Whole(leaf) => match leaf.kind {
                Kind::U8 => FieldKind::U8,
                Kind::U16 => FieldKind::U16,
                Kind::U32 => FieldKind::U32,
                Kind::U64 => FieldKind::U64,
                Kind::U128 => FieldKind::Fixed(16),
                Kind::I8 => FieldKind::I8,
                Kind::I16 => FieldKind::I16,
                Kind::I32 => FieldKind::I32,
                Kind::I64 => FieldKind::I64,
                Kind::F32 => FieldKind::F32,
                Kind::F64 => FieldKind::F64,
                Kind::Bytes(0, true) => FieldKind::Utf8,
                Kind::Bytes(0, false) => FieldKind::Bytes,
                Kind::Bytes(width, _) => FieldKind::Fixed(width as u16),
            },
        }
    }

    /// Returns its numbers as native words of 64 bits, floats as their bits; the low half of u128.
    fn words(&self, tuples: &Tuples<'_>) -> Vec<u64> {
        let range = 0..tuples.len();
        let of = |leaf: &Leaf| {
            let mut words = Vec::with_capacity(tuples.len());
            match (leaf.kind, leaf.side) {
                (Kind::F64, Side::Key) => {
                    let mut floats = Vec::new();
                    leaf.load_floats(tuples, range.clone(), &mut floats);
                    words.extend(floats.into_iter().map(f64::to_bits));
                }
                (Kind::F32, _) => {
                    Leaf { kind: Kind::U32, ..leaf.clone() }.load::<u64>(tuples, range.clone(), &mut words);
                }
                (Kind::F64, _) => {
                    Leaf { kind: Kind::U64, ..leaf.clone() }.load::<u64>(tuples, range.clone(), &mut words);
                }
                // Two's complement of signed ones.
                _ => leaf.load::<u64>(tuples, range.clone(), &mut words),
            }
            words
        };
        match self {
            Self::Whole(leaf) => of(leaf),
            Self::Bits(parts, _) => {
                let mut joined = vec![0_u64; tuples.len()];
                for part in parts {
                    let mask = u64::MAX >> (64 - part.length);
                    let bits: Vec<u64> = if part.leaf.kind == Kind::U128 {
                        let mut words = Vec::new();
                        part.leaf.load::<u128>(tuples, range.clone(), &mut words);
                        words.into_iter().map(|word| (word >> part.offset) as u64).collect()
                    } else {
                        of(&part.leaf).into_iter().map(|word| word >> part.offset).collect()
                    };
                    for (word, bits) in joined.iter_mut().zip(bits) {
                        // A part of 64 bits is the only one.
                        *word = if part.length < 64 { *word << part.length } else { 0 } | (bits & mask);
                    }
                }
                joined
            }
        }
    }
}

impl Item {
    pub(super) fn key_type(&self) -> KeyType {
        match &self.what {
            Source::Bits(_, 0..=32) => KeyType::U32,
            Source::Bits(..) => KeyType::U64,
            Source::Whole(leaf) => match leaf.kind {
                Kind::U8 | Kind::U16 | Kind::U32 => KeyType::U32,
                Kind::U64 => KeyType::U64,
                Kind::U128 => KeyType::U128,
                Kind::I8 | Kind::I16 | Kind::I32 => KeyType::I32,
                Kind::I64 => KeyType::I64,
                Kind::F32 | Kind::F64 => KeyType::F64,
                Kind::Bytes(0, true) => KeyType::Utf8,
                Kind::Bytes(0, false) => KeyType::Bytes,
                Kind::Bytes(width, _) => KeyType::Fixed(width as u16),
            },
        }
    }

    pub(super) fn keeps_order(&self, schema: &Schema) -> bool {
        match &self.what {
            Source::Whole(leaf) => leaf.side != Side::Value,
            Source::Bits(parts, _) => match parts.as_slice() {
                [part] if part.leaf.side == Side::Rank => part.offset == 0 && part.length == 64,
                [part] if part.leaf.side == Side::Key => {
                    schema.key_type.is_unsigned() && part.offset + part.length == part.leaf.kind.bits()
                }
                _ => false,
            },
        }
    }

    pub(super) fn append_key(
        &self,
        key_type: KeyType,
        tuples: &Tuples<'_>,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        // True for the old key, unchanged.
        let is_key = matches!(&self.what, Source::Whole(leaf) if leaf.side == Side::Key);
        match (&self.what, tuples.keys, &mut *out) {
            (_, ColumnRef::U32(words), Column::U32(out)) if is_key => out.extend_from_slice(words),
            (_, ColumnRef::U64(words), Column::U64(out)) if is_key => out.extend_from_slice(words),
            (_, ColumnRef::U128(words), Column::U128(out)) if is_key => out.extend_from_slice(words),
            (Source::Whole(leaf), _, Column::Bytes(strings)) => {
                (0..tuples.len()).for_each(|index| strings.push(leaf.bytes(tuples, index, &mut [0; 8])));
            }
            _ => return self.append_words(key_type, tuples, out),
        }
        Ok(())
    }

    /// Replaces bits of floats by the words of keys.
    fn encode_floats(&self, first_rank: u64, words: &mut [u64]) -> Result<(), EvalError> {
        let is_narrow = matches!(&self.what, Source::Whole(leaf) if leaf.kind == Kind::F32);
        for (index, word) in words.iter_mut().enumerate() {
            let float =
                if is_narrow { f64::from(f32::from_bits(*word as u32)) } else { f64::from_bits(*word) };
            if float.is_nan() {
                let rank = first_rank + index as u64;
                let what = format!("{} is NaN, which cannot be a key", self.name);
                return Err(EvalError { rank, what, column: None });
            }
            *word = float.encode();
        }
        Ok(())
    }

    /// Appends numbers as the words of keys.
    fn append_words(
        &self,
        key_type: KeyType,
        tuples: &Tuples<'_>,
        out: &mut Column,
    ) -> Result<(), EvalError> {
        let mut words = self.what.words(tuples);
        // The sign bit is flipped in the words of signed keys.
        let sign = match key_type {
            KeyType::I32 => 1 << 31,
            KeyType::I64 => 1 << 63,
            KeyType::F64 => {
                self.encode_floats(tuples.first_rank, &mut words)?;
                0
            }
            KeyType::U32 | KeyType::U64 | KeyType::U128 => 0,
            KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => 0,
        };
        match out {
            Column::U32(out) => out.extend(words.iter().map(|&word| (word ^ sign) as u32)),
            Column::U64(out) => out.extend(words.iter().map(|&word| word ^ sign)),
            // A column of another width does not match the schema.
            _ => {}
        }
        Ok(())
    }

    pub(super) fn append_value(&self, tuples: &Tuples<'_>, out: &mut Column) {
        if let (Source::Whole(leaf), Column::Bytes(strings)) = (&self.what, &mut *out) {
            if let (Kind::U128, ColumnRef::U128(words)) = (leaf.kind, tuples.keys) {
                words.iter().for_each(|word| strings.push(&word.to_be_bytes()));
                return;
            }
            (0..tuples.len()).for_each(|index| strings.push(leaf.bytes(tuples, index, &mut [0; 8])));
            return;
        }
        let is_value = matches!(self.what, Source::Whole(Leaf { side: Side::Value, at: None, .. }));
        match (tuples.values, out) {
            (ColumnRef::U32(words), Column::U32(out)) if is_value => out.extend_from_slice(words),
            (ColumnRef::U64(words), Column::U64(out)) if is_value => out.extend_from_slice(words),
            (_, Column::U32(out)) => out.extend(self.what.words(tuples).iter().map(|&word| word as u32)),
            (_, Column::U64(out)) => out.extend(self.what.words(tuples)),
            (_, Column::None | Column::U128(_) | Column::Bytes(_)) => {}
        }
    }
}

/// Appends the records whose fields are `packed`, with their texts.
fn append_texts(record: &Record, items: &[Item], tuples: &Tuples<'_>, packed: &[u8], out: &mut Strings) {
    let texts: Vec<&Leaf> = (items.iter().zip(record.fields()))
        .filter(|(_, field)| field.kind.is_text())
        .filter_map(|(item, _)| if let Source::Whole(leaf) = &item.what { Some(leaf) } else { None })
        .collect();
    let mut value = Vec::new();
    for (row, fields) in packed.chunks_exact(record.bytes()).enumerate() {
        value.clear();
        value.extend_from_slice(fields);
        record.put_texts(texts.iter().map(|leaf| leaf.string(tuples, row)), &mut value);
        out.push(&value);
    }
}

pub(super) fn append_record(record: &Record, items: &[Item], tuples: &Tuples<'_>, out: &mut Column) {
    let stride = record.bytes();
    let mut packed = vec![0; tuples.len() * stride];
    for (index, item) in items.iter().enumerate() {
        if record.fields()[index].kind.is_text() {
            continue;
        }
        let (at, end) = (record.offset(index), record.offset(index) + record.fields()[index].kind.bytes());
        let places = packed.chunks_exact_mut(stride).map(|record| &mut record[at..end]);
        match (&item.what, tuples.keys) {
            (Source::Whole(Leaf { kind: Kind::U128, .. }), ColumnRef::U128(words)) => {
                places.zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
            }
            (Source::Whole(leaf @ Leaf { kind: Kind::Bytes(..), .. }), _) => {
                for (index, place) in places.enumerate() {
                    let mut scratch = [0; 8];
                    let bytes = leaf.bytes(tuples, index, &mut scratch);
                    // Strings of the right width; damaged ones stay zero.
                    if bytes.len() == place.len() {
                        place.copy_from_slice(bytes);
                    }
                }
            }
            (what, _) => {
                for (place, word) in places.zip(what.words(tuples)) {
                    place.copy_from_slice(&word.to_le_bytes()[..end - at]);
                }
            }
        }
    }
    match out {
        Column::U32(out) => out.extend(packed.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word))),
        Column::U64(out) => out.extend(packed.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word))),
        Column::Bytes(out) if record.has_texts() => append_texts(record, items, tuples, &packed, out),
        Column::Bytes(out) => out.extend_fixed(&packed, stride),
        Column::None | Column::U128(_) => {}
    }
}
