//! Lists of columns, which make new keys and values from key, value and rank.
//!
//! ```text
//! list   item ("," item)*            the first item is the new key, the others are the new value
//! item   [name "="] part ("+" part)*
//! part   (key | value | rank | FIELD) ["[" OFF ":" LEN "]"]
//! ```
//! A part with brackets is LEN bits of a whole number from bit OFF on; the lowest bit is 0. Parts with `+`
//! between them are placed side by side in one word, the first one highest. The word becomes the narrowest of
//! u8, u16, u32 and u64 that has room (as a key, or as the only value, u32 or u64).
//!
//! An item without brackets keeps its type, but narrow numbers widen to 32 bits where a column cannot hold
//! them, and an f32 key becomes f64. One value item is a plain value, several are a record.
//!
//! The order of the tuples is kept if the new key is the old key, its highest bits (of an unsigned key), or
//! the rank. Otherwise the result must be sorted.

use super::check::Checker;
use super::column::{ColumnRef, Kind, Leaf, Side, Tuples};
use super::lex::Token;
use super::parse::{Node, Parser, What};
use super::parts::{BitFields, parts};
use super::{EvalError, ExprError, Schema};
use pleach_builder::Column;
use pleach_format::record::{Field, FieldKind};
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
    name: String,
    pub(super) what: Source,
    logical: String,
    place: Range<usize>,
}

/// A list of columns, ready to be applied.
#[derive(Clone, Debug)]
pub struct Projection {
    pub(super) key: Item,
    pub(super) key_type: KeyType,
    pub(super) values: Values,
    keeps_order: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Values {
    None,
    /// The whole old value, with its type, fields and logical type.
    Same(ValueType, Option<Record>, Item),
    One(ValueType, Item),
    Record(Record, Vec<Item>),
}

impl Projection {
    /// Parses a list of columns for tuples of this schema. O(length).
    ///
    /// # Errors
    /// A fault in the text or its types, with its place. No tuple is read.
    pub fn parse(text: &str, schema: &Schema) -> Result<Self, ExprError> {
        let mut parser = Parser::new(text)?;
        let checker = Checker { text, schema };
        if *parser.peek() == Token::End {
            return Err(parser.refused("missing columns", "a list such as key,value"));
        }
        let mut items: Vec<Vec<Item>> = vec![items(&mut parser, &checker, true)?];
        while parser.accept(",") {
            items.push(self::items(&mut parser, &checker, false)?);
        }
        if *parser.peek() != Token::End {
            let what = format!("{} after a column", parser.peek().shown());
            return Err(parser.refused(what, "a comma and another column, +, or the end"));
        }
        let count = items.len();
        let mut all = items.into_iter().flatten();
        let Some(key) = all.next() else {
            return Err(parser.refused("missing columns", "a list such as key,value"));
        };
        let values: Vec<Item> = all.collect();
        let key_type = key.key_type();
        let keeps_order = key.keeps_order(schema);
        let values = Values::from_items(text, schema, values, count)?;
        Ok(Self { key, key_type, values, keeps_order })
    }

    /// Returns the schema of the result.
    #[must_use]
    pub fn schema(&self) -> Schema {
        let (value_type, record, value) = match &self.values {
            Values::None => (ValueType::None, None, None),
            Values::Same(value_type, record, item) => (*value_type, record.clone(), Some(item)),
            Values::One(value_type, item) => (*value_type, None, Some(item)),
            Values::Record(record, _) => (record.storage(), Some(record.clone()), None),
        };
        let logical = match (&record, value) {
            (Some(record), _) => record.to_string(),
            (None, item) => item.map_or_else(String::new, |item| item.logical.clone()),
        };
        Schema {
            key_type: self.key_type,
            value_type,
            key_name: self.key.name.clone(),
            // A record has names of its own.
            value_name: value.filter(|_| record.is_none()).map_or_else(String::new, |item| item.name.clone()),
            record,
            logical: (self.key.logical.clone(), logical),
            is_raw: false,
        }
    }

    /// Returns true if the new keys are in order, so that the tuples need not be sorted.
    #[must_use]
    pub fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    /// Returns true if the projection uses values, so that they must be read.
    #[must_use]
    pub fn uses_values(&self) -> bool {
        let uses = |item: &Item| match &item.what {
            Source::Whole(leaf) => leaf.side == Side::Value,
            Source::Bits(parts, _) => parts.iter().any(|part| part.leaf.side == Side::Value),
        };
        uses(&self.key)
            || match &self.values {
                Values::None => false,
                Values::Same(..) => true,
                Values::One(_, item) => uses(item),
                Values::Record(_, items) => items.iter().any(uses),
            }
    }

    /// Returns the projection as bit fields of words; `None` if bit fields cannot express it.
    #[must_use]
    pub fn parts(&self) -> Option<BitFields> {
        parts(self)
    }

    /// Describes how the columns are made, line by line.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let schema = self.schema();
        let values = schema.record.map_or(schema.value_type.to_string(), |record| record.to_string());
        let order =
            if self.keeps_order { "the order is kept" } else { "the tuples are sorted by their new keys" };
        vec![
            format!("columns {self}"),
            format!("{} keys, {values} values", schema.key_type),
            order.to_owned(),
        ]
    }

    /// Appends the new keys and values of some tuples: encoded keys and bits of values, or byte strings. The
    /// columns must be those of [`Projection::schema`], [`Column::for_key`] and [`Column::for_value`].
    /// O(tuples x columns).
    ///
    /// # Errors
    /// A float that becomes a key is NaN.
    pub fn apply(
        &self,
        tuples: &Tuples<'_>,
        keys: &mut Column,
        values: &mut Column,
    ) -> Result<(), EvalError> {
        if self.uses_values() && tuples.values.len() != tuples.len() {
            let what = format!("there are {} values of {} tuples", tuples.values.len(), tuples.len());
            return Err(EvalError { rank: tuples.first_rank, what });
        }
        self.key.append_key(self.key_type, tuples, keys)?;
        match &self.values {
            Values::None => {}
            Values::Same(_, _, item) | Values::One(_, item) => item.append_value(tuples, values),
            Values::Record(record, items) => append_record(record, items, tuples, values),
        }
        Ok(())
    }
}

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)?;
        let items: &[Item] = match &self.values {
            Values::None => &[],
            Values::Same(_, _, item) | Values::One(_, item) => std::slice::from_ref(item),
            Values::Record(_, items) => items,
        };
        items.iter().try_for_each(|item| write!(f, ",{item}"))
    }
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

/// Parses the next item of a list; if it is the whole value of a record, returns the fields.
fn items(parser: &mut Parser<'_>, checker: &Checker<'_>, is_key: bool) -> Result<Vec<Item>, ExprError> {
    let start = parser.place().start;
    let renamed = parser.rename();
    let schema = checker.schema;
    let node = parser.name()?;
    if let (What::Name(name, false), Some(record)) = (&node.what, &schema.record)
        && name == "value"
        && !is_key
        && *parser.peek() != Token::Sign("[")
        && *parser.peek() != Token::Sign("+")
    {
        if renamed.is_some() {
            let allowed = "the fields one by one, such as a=left,b=right";
            let what = "a value of several fields has no name of its own";
            return Err(ExprError::new(checker.text, start..parser.end(), what, allowed));
        }
        let fields = record.fields().iter().map(|field| {
            let leaf = checker.leaf(&node.place, &field.name, true)?;
            Ok(Item {
                name: field.name.clone(),
                what: Source::Whole(leaf),
                logical: field.logical.clone(),
                place: node.place.clone(),
            })
        });
        return fields.collect();
    }
    let mut parts = vec![part(parser, checker, node)?];
    while parser.accept("+") {
        let node = parser.name()?;
        parts.push(part(parser, checker, node)?);
    }
    let place = start..parser.end();
    let refused =
        |what: String, allowed: &str| Err(ExprError::new(checker.text, place.clone(), what, allowed));
    if let [(leaf, None)] = parts.as_slice() {
        let named =
            |given: &String, plain: &str| if given.is_empty() { plain.to_owned() } else { given.clone() };
        let (name, logical) = match (leaf.side, leaf.at) {
            (Side::Key, _) => (named(&schema.key_name, "key"), schema.logical.0.clone()),
            (Side::Value, None) => (named(&schema.value_name, "value"), schema.logical.1.clone()),
            _ => {
                let field = schema.record.as_ref().and_then(|record| {
                    leaf.at
                        .and_then(|_| record.find(&leaf.name))
                        .map(|index| record.fields()[index].logical.clone())
                });
                (leaf.name.clone(), field.unwrap_or_default())
            }
        };
        let what = Source::Whole(leaf.clone());
        return Ok(vec![Item { name: renamed.unwrap_or(name), what, logical, place }]);
    }
    let mut name = Vec::new();
    let mut bits = Vec::new();
    for (leaf, range) in parts {
        if matches!(leaf.kind, Kind::F32 | Kind::F64 | Kind::Bytes(..)) {
            let what = format!("{} is {}, which has no bits to take", leaf.name, leaf.kind.name());
            return refused(what, "bits of a whole number");
        }
        let (offset, length) = range.unwrap_or((0, leaf.kind.bits()));
        if length == 0 || offset.checked_add(length).is_none_or(|end| end > leaf.kind.bits()) {
            let what = format!("{} has {} bits", leaf.name, leaf.kind.bits());
            return refused(what, "[OFF:LEN] with LEN of at least 1 and OFF + LEN within it");
        }
        name.push(match range {
            Some((offset, length)) => format!("{}_{offset}_{length}", leaf.name),
            None => leaf.name.clone(),
        });
        bits.push(Part { leaf, offset, length });
    }
    let total: u32 = bits.iter().map(|part| part.length.min(65)).sum();
    if total > 64 {
        return refused(format!("{total} bits or more"), "at most 64 bits in one column");
    }
    let name = renamed.unwrap_or_else(|| name.join("_"));
    Ok(vec![Item { name, what: Source::Bits(bits, total), logical: String::new(), place }])
}

/// Parses an operand, and the bits that are taken from it.
fn part(
    parser: &mut Parser<'_>,
    checker: &Checker<'_>,
    node: Node,
) -> Result<(Leaf, Option<(u32, u32)>), ExprError> {
    let What::Name(name, is_field) = &node.what else {
        return Err(ExprError::new(checker.text, node.place, "not a column", "key, value, rank or a field"));
    };
    let leaf = checker.leaf(&node.place, name, *is_field)?;
    if !parser.accept("[") {
        return Ok((leaf, None));
    }
    let offset = number(parser)?;
    parser.expect(":")?;
    let length = number(parser)?;
    parser.expect("]")?;
    Ok((leaf, Some((offset, length))))
}

fn number(parser: &mut Parser<'_>) -> Result<u32, ExprError> {
    match *parser.peek() {
        Token::Integer(number) if number <= 128 => {
            parser.advance();
            Ok(number as u32)
        }
        _ => {
            let what = format!("expected a number of bits, found {}", parser.peek().shown());
            Err(parser.refused(what, "a number of bits, such as [0:16]"))
        }
    }
}

impl Values {
    fn from_items(
        text: &str,
        schema: &Schema,
        mut items: Vec<Item>,
        count: usize,
    ) -> Result<Self, ExprError> {
        let all_fields = count == 2 && items.len() > 1;
        let alone = match items.as_slice() {
            [] => return Ok(Self::None),
            [only] if count == 2 => Some(only.what.clone()),
            _ => None,
        };
        // The only item is the whole value, unchanged.
        let same = all_fields
            || matches!(&alone, Some(Source::Whole(leaf)) if leaf.side == Side::Value && leaf.at.is_none());
        let is_record = schema.record.as_ref().is_some_and(|record| items.len() == record.len());
        if same && (is_record || schema.record.is_none()) {
            let record = schema.record.clone();
            let mut item = items.swap_remove(0);
            if record.is_some() {
                let kind = super::check::kind_of_value(schema.value_type).unwrap_or(Kind::U64);
                let name = "value".to_owned();
                item.what = Source::Whole(Leaf { side: Side::Value, kind, at: None, in_bytes: false, name });
            }
            return Ok(Self::Same(schema.value_type, record, item));
        }
        if let Some(what) = alone {
            return Ok(Self::One(what.value_type(), items.swap_remove(0)));
        }
        let mut fields = Vec::new();
        for item in &items {
            let Some(kind) = item.what.field_kind() else {
                let what = format!("{} has no fixed width, which the fields of a record need", item.name);
                return Err(ExprError::new(
                    text,
                    item.place.clone(),
                    what,
                    "this column alone after the key",
                ));
            };
            fields.push(Field { name: item.name.clone(), kind, logical: item.logical.clone() });
        }
        let place = items.first().map_or(0, |item| item.place.start)..text.len();
        let record = Record::new(fields).map_err(|error| {
            ExprError::new(
                text,
                place,
                error.to_string(),
                "columns with different names, such as name=column",
            )
        })?;
        Ok(Self::Record(record, items))
    }
}

impl Source {
    /// Returns the type as the only value.
    fn value_type(&self) -> ValueType {
        match self {
            Self::Bits(_, bits) => {
                if *bits <= 32 {
                    ValueType::U32
                } else {
                    ValueType::U64
                }
            }
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

    /// Returns the type as a field; `None` for byte strings of any length.
    fn field_kind(&self) -> Option<FieldKind> {
        Some(match self {
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
                Kind::U128 => FieldKind::Bytes(16),
                Kind::I8 => FieldKind::I8,
                Kind::I16 => FieldKind::I16,
                Kind::I32 => FieldKind::I32,
                Kind::I64 => FieldKind::I64,
                Kind::F32 => FieldKind::F32,
                Kind::F64 => FieldKind::F64,
                Kind::Bytes(0, _) => return None,
                Kind::Bytes(width, _) => FieldKind::Bytes(width as u16),
            },
        })
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
    fn key_type(&self) -> KeyType {
        match &self.what {
            Source::Bits(_, bits) => {
                if *bits <= 32 {
                    KeyType::U32
                } else {
                    KeyType::U64
                }
            }
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

    fn keeps_order(&self, schema: &Schema) -> bool {
        match &self.what {
            Source::Whole(leaf) => leaf.side != Side::Value,
            Source::Bits(parts, _) => match parts.as_slice() {
                [part] if part.leaf.side == Side::Rank => part.offset == 0 && part.length == 64,
                [part] if part.leaf.side == Side::Key => {
                    let is_unsigned = matches!(schema.key_type, KeyType::U32 | KeyType::U64 | KeyType::U128);
                    is_unsigned && part.offset + part.length == part.leaf.kind.bits()
                }
                _ => false,
            },
        }
    }

    fn append_key(&self, key_type: KeyType, tuples: &Tuples<'_>, out: &mut Column) -> Result<(), EvalError> {
        if let Source::Whole(leaf) = &self.what {
            match (leaf.side, tuples.keys, &mut *out) {
                // The old key, unchanged.
                (Side::Key, ColumnRef::U32(words), Column::U32(out)) => {
                    out.extend_from_slice(words);
                    return Ok(());
                }
                (Side::Key, ColumnRef::U64(words), Column::U64(out)) => {
                    out.extend_from_slice(words);
                    return Ok(());
                }
                (Side::Key, ColumnRef::U128(words), Column::U128(out)) => {
                    out.extend_from_slice(words);
                    return Ok(());
                }
                (_, _, Column::Bytes(strings)) => {
                    (0..tuples.len()).for_each(|index| strings.push(leaf.bytes(tuples, index, &mut [0; 8])));
                    return Ok(());
                }
                _ => {}
            }
        }
        let mut words = self.what.words(tuples);
        if key_type == KeyType::F64 {
            let is_narrow = matches!(&self.what, Source::Whole(leaf) if leaf.kind == Kind::F32);
            for (index, word) in words.iter_mut().enumerate() {
                let float =
                    if is_narrow { f64::from(f32::from_bits(*word as u32)) } else { f64::from_bits(*word) };
                if float.is_nan() {
                    let rank = tuples.first_rank + index as u64;
                    return Err(EvalError {
                        rank,
                        what: format!("{} is NaN, which cannot be a key", self.name),
                    });
                }
                *word = float.encode();
            }
        }
        // The sign bit is flipped in the words of signed keys.
        let sign = match key_type {
            KeyType::I32 => 1 << 31,
            KeyType::I64 => 1 << 63,
            KeyType::U32 | KeyType::U64 | KeyType::U128 | KeyType::F64 => 0,
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

    fn append_value(&self, tuples: &Tuples<'_>, out: &mut Column) {
        if let (Source::Whole(leaf), Column::Bytes(strings)) = (&self.what, &mut *out) {
            if let (Kind::U128, ColumnRef::U128(words)) = (leaf.kind, tuples.keys) {
                words.iter().for_each(|word| strings.push(&word.to_be_bytes()));
                return;
            }
            (0..tuples.len()).for_each(|index| strings.push(leaf.bytes(tuples, index, &mut [0; 8])));
            return;
        }
        match (&self.what, tuples.values, &mut *out) {
            (
                Source::Whole(Leaf { side: Side::Value, at: None, .. }),
                ColumnRef::U32(words),
                Column::U32(out),
            ) => {
                out.extend_from_slice(words);
            }
            (
                Source::Whole(Leaf { side: Side::Value, at: None, .. }),
                ColumnRef::U64(words),
                Column::U64(out),
            ) => {
                out.extend_from_slice(words);
            }
            (what, _, Column::U32(out)) => out.extend(what.words(tuples).iter().map(|&word| word as u32)),
            (what, _, Column::U64(out)) => out.extend(what.words(tuples)),
            (_, _, Column::None | Column::U128(_) | Column::Bytes(_)) => {}
        }
    }
}

fn append_record(record: &Record, items: &[Item], tuples: &Tuples<'_>, out: &mut Column) {
    let stride = record.bytes();
    let mut packed = vec![0; tuples.len() * stride];
    for (index, item) in items.iter().enumerate() {
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
        Column::Bytes(out) => out.extend_fixed(&packed, stride),
        Column::None | Column::U128(_) => {}
    }
}
