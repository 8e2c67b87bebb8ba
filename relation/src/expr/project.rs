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
use super::column::{Kind, Leaf, Side, Tuples};
use super::error::{EvalError, ExprError};
use super::item::{Item, Part, Source, Values, append_record};
use super::lex::Token;
use super::parse::{Node, Parser, What};
use super::parts::{BitFields, parts};
use super::schema::Schema;
use pleach_builder::Column;
use pleach_format::record::Field;
use pleach_format::{KeyType, Record, ValueType};
use std::fmt;

/// A list of columns, ready to be applied.
#[derive(Clone, Debug)]
pub struct Projection {
    key: Item,
    key_type: KeyType,
    values: Values,
    keeps_order: bool,
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
        parts(&self.key, self.key_type, &self.values)
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
            return Err(EvalError { rank: tuples.first_rank, what, column: None });
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
                let kind = Kind::of_value(schema.value_type).unwrap_or(Kind::U64);
                item.what = Source::Whole(Leaf::whole(Side::Value, kind, "value"));
            }
            return Ok(Self::Same(schema.value_type, record, item));
        }
        if let Some(what) = alone {
            return Ok(Self::One(what.value_type(), items.swap_remove(0)));
        }
        let mut fields = Vec::new();
        for item in &items {
            let (name, kind) = (item.name.clone(), item.what.field_kind());
            fields.push(Field { name, kind, logical: item.logical.clone() });
        }
        let place = items.first().map_or(0, |item| item.place.start)..text.len();
        let allowed = "columns with different names, such as name=column";
        let record =
            Record::new(fields).map_err(|error| ExprError::new(text, place, error.to_string(), allowed))?;
        Ok(Self::Record(record, items))
    }
}
