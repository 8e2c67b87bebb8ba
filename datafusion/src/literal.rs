//! Literals of queries as places among the keys.

use crate::keys::{KeyRange, KeySet, after};
use crate::schema::Columns;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::scalar::ScalarValue;
use pleach::{Datum, KeyType};
use pleach_batch::Table;
use pleach_format::Logical;
use pleach_format::logical::{Composite, Element, Form};
use pleach_set::{key_bytes, key_datum};

/// A comparison of a key with a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The key is the literal.
    Equal,
    /// The key is not the literal.
    NotEqual,
    /// The key is below it.
    Below,
    /// The key is at most it.
    AtMost,
    /// The key is above it.
    Above,
    /// The key is at least it.
    AtLeast,
}

impl Comparison {
    /// Returns the comparison of the literal with the key.
    #[must_use]
    pub const fn swapped(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::NotEqual => Self::NotEqual,
            Self::Below => Self::Above,
            Self::AtMost => Self::AtLeast,
            Self::Above => Self::Below,
            Self::AtLeast => Self::AtMost,
        }
    }
}

/// How literals become keys of a table: those of its first key column.
#[derive(Clone, Debug)]
pub struct Literals {
    key_type: KeyType,
    data_type: DataType,
    meaning: Meant,
}

/// What literals are compared with.
#[derive(Clone, Debug)]
enum Meant {
    /// Keys that are in the order of their Arrow values.
    Plain,
    /// Integers whose Arrow type says more, such as times; decimals have the scale of the type.
    Logical,
    /// Texts of a logical type, in another order than the keys.
    Texts(Form),
    /// The first of several columns.
    First(Composite),
}

/// A literal among the keys: the smallest byte string of the keys that are at least it, and of those that are above
/// it. `None` is above all keys.
struct Cut {
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

impl Cut {
    fn key(key: Vec<u8>) -> Self {
        Self { high: Some(after(&key)), low: Some(key) }
    }
    /// A place between the keys.
    fn between(next: Option<Vec<u8>>) -> Self {
        Self { low: next.clone(), high: next }
    }
}

impl Literals {
    /// Returns how literals become keys of this table.
    pub(crate) fn of(table: &Table, columns: &Columns) -> Self {
        let logical = table.key_meaning();
        let meaning = match logical {
            Logical::Composite(composite) => Meant::First(composite.clone()),
            logical if pleach_input::is_text_in_arrow(logical) => match logical.form() {
                Some(form) => Meant::Texts(form),
                None => Meant::Plain,
            },
            Logical::Plain | Logical::Unknown(_) | Logical::Uuid => Meant::Plain,
            _ => Meant::Logical,
        };
        Self { key_type: table.key_type(), data_type: columns.key_type().clone(), meaning }
    }

    /// Returns the Arrow type of the column.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Returns true if bytes have the length of a key, and not only that of the start of one.
    #[must_use]
    pub fn is_whole(&self, key: &[u8]) -> bool {
        self.key_type.bytes() == 0 || self.key_type.bytes() == key.len()
    }

    /// Returns the keys for which a comparison with a literal holds; `None` if the keys cannot tell. A null literal
    /// holds for none.
    #[must_use]
    pub fn keys(&self, comparison: Comparison, literal: &ScalarValue) -> Option<KeySet> {
        if let ScalarValue::Dictionary(_, literal) = literal {
            return self.keys(comparison, literal);
        }
        if literal.is_null() {
            return Some(KeySet::none());
        }
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if matches!(self.meaning, Meant::Texts(_)) && !is_equality {
            return None;
        }
        let Cut { low, high } = self.cut(literal)?;
        let range = |start: Option<Vec<u8>>, end: Option<Vec<u8>>| match start {
            Some(start) => KeySet::of(vec![KeyRange { start, end }]),
            None => KeySet::none(),
        };
        let equal = |low: Option<Vec<u8>>, high: Option<Vec<u8>>| match low == high {
            true => KeySet::none(),
            false => range(low, high),
        };
        Some(match comparison {
            Comparison::Equal => equal(low, high),
            Comparison::NotEqual => equal(low, high).not(),
            Comparison::Below => range(Some(Vec::new()), low),
            Comparison::AtMost => range(Some(Vec::new()), high),
            Comparison::Above => range(high, None),
            Comparison::AtLeast => range(low, None),
        })
    }

    /// Returns the keys that are one of the literals; `None` if the keys cannot tell.
    #[must_use]
    pub fn any_of<'l>(&self, literals: impl IntoIterator<Item = &'l ScalarValue>) -> Option<KeySet> {
        let mut ranges = Vec::new();
        for literal in literals {
            ranges.extend_from_slice(self.keys(Comparison::Equal, literal)?.ranges());
        }
        Some(KeySet::of(ranges))
    }

    /// Returns the keys that begin with a text; `None` if keys are no texts.
    #[must_use]
    pub fn beginning_with(&self, prefix: &str) -> Option<KeySet> {
        let is_text = matches!(self.meaning, Meant::Plain) && self.key_type == KeyType::Utf8;
        is_text.then(|| KeySet::range(prefix.as_bytes().to_vec(), next_prefix(prefix.as_bytes())))
    }

    fn cut(&self, literal: &ScalarValue) -> Option<Cut> {
        match &self.meaning {
            Meant::Plain => self.plain(literal),
            Meant::Logical if literal.data_type() == self.data_type => self.number(integer(literal)?),
            Meant::Logical => None,
            Meant::Texts(form) => self.text(*form, text(literal)?),
            Meant::First(composite) => self.first(composite, literal),
        }
    }

    fn plain(&self, literal: &ScalarValue) -> Option<Cut> {
        match self.key_type {
            KeyType::U32 | KeyType::U64 | KeyType::I32 | KeyType::I64 => {
                // A decimal or a time is no plain number.
                let is_plain = literal.data_type().is_integer();
                self.number(integer(literal).filter(|_| is_plain)?)
            }
            KeyType::F64 => match literal {
                ScalarValue::Float64(Some(number)) if !number.is_nan() => {
                    // The engine tells both zeros apart, and a file does not.
                    let is_other_zero = *number == 0.0 && number.is_sign_negative();
                    (!is_other_zero).then(|| self.datum(&Datum::F64(*number))).flatten()
                }
                _ => None,
            },
            KeyType::U128 => {
                let bytes: [u8; 16] = bytes(literal)?.try_into().ok()?;
                self.datum(&Datum::U128(u128::from_be_bytes(bytes)))
            }
            KeyType::Fixed(length) => {
                let bytes = bytes(literal)?;
                (bytes.len() == usize::from(length)).then(|| Cut::key(bytes.to_vec()))
            }
            KeyType::Bytes => Some(Cut::key(bytes(literal)?.to_vec())),
            KeyType::Utf8 => Some(Cut::key(text(literal)?.as_bytes().to_vec())),
        }
    }

    fn datum(&self, datum: &Datum<'_>) -> Option<Cut> {
        Some(Cut::key(key_bytes(self.key_type, datum).ok()?.into_owned()))
    }

    /// Returns the place of a number among keys that are integers.
    fn number(&self, number: i128) -> Option<Cut> {
        let (min, max): (i128, i128) = match self.key_type {
            KeyType::U32 => (0, u32::MAX.into()),
            KeyType::U64 => (0, u64::MAX.into()),
            KeyType::I32 => (i32::MIN.into(), i32::MAX.into()),
            KeyType::I64 => (i64::MIN.into(), i64::MAX.into()),
            KeyType::F64 | KeyType::U128 | KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => return None,
        };
        if number < min {
            return Some(Cut::between(Some(Vec::new())));
        }
        if number > max {
            return Some(Cut::between(None));
        }
        self.datum(&match self.key_type {
            KeyType::U32 => Datum::U32(number as u32),
            KeyType::U64 => Datum::U64(number as u64),
            KeyType::I32 => Datum::I32(number as i32),
            _ => Datum::I64(number as i64),
        })
    }

    /// Returns the key of a text; a text that is none, or not written as the column shows it, is no key.
    fn text(&self, form: Form, text: &str) -> Option<Cut> {
        let no_key = || Some(Cut::between(Some(Vec::new())));
        let Ok(element) = form.element(text.as_bytes()) else { return no_key() };
        let mut shown = Vec::new();
        let key = match element {
            Element::Unsigned(number) => {
                form.put_unsigned(number, &mut shown);
                let width = self.key_type.bytes();
                number.to_be_bytes()[16_usize.checked_sub(width)?..].to_vec()
            }
            Element::Bytes(bytes) => {
                form.put_bytes(&bytes, &mut shown);
                bytes
            }
            Element::Signed(_) => return None,
        };
        if shown == text.as_bytes() { Some(Cut::key(key)) } else { no_key() }
    }

    /// Returns the place of a literal of the first of several columns: the keys that begin with it.
    fn first(&self, composite: &Composite, literal: &ScalarValue) -> Option<Cut> {
        let (_, meaning) = composite.columns().first()?;
        if literal.data_type() != self.data_type || pleach_input::is_text_in_arrow(&meaning.logical) {
            return None;
        }
        let element = match integer(literal) {
            Some(number) => match self.data_type {
                DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                    Element::Unsigned(number.try_into().ok()?)
                }
                _ => Element::Signed(number.try_into().ok()?),
            },
            None if meaning.logical == Logical::Uuid => {
                Element::Unsigned(u128::from_be_bytes(bytes(literal)?.try_into().ok()?))
            }
            None => match text(literal) {
                Some(text) => Element::Bytes(text.as_bytes().to_vec()),
                None => Element::Bytes(bytes(literal)?.to_vec()),
            },
        };
        let parts = composite.parts();
        let mut low = Vec::new();
        if parts.is_number() {
            low.resize(self.key_type.bytes().checked_sub(parts.bytes()?)?, 0);
        }
        let mut own = Vec::new();
        parts.put(&[element], &mut own).ok()?;
        low.extend_from_slice(&own);
        Some(Cut { high: next_prefix(&low), low: Some(low) })
    }
}

/// Returns the smallest byte string above all that begin with a prefix; `None` if there is none.
fn next_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// Returns the number of an integer, a time or a decimal.
fn integer(literal: &ScalarValue) -> Option<i128> {
    Some(match literal {
        ScalarValue::UInt8(Some(number)) => (*number).into(),
        ScalarValue::UInt16(Some(number)) => (*number).into(),
        ScalarValue::UInt32(Some(number)) => (*number).into(),
        ScalarValue::UInt64(Some(number)) => (*number).into(),
        ScalarValue::Int8(Some(number)) => (*number).into(),
        ScalarValue::Int16(Some(number)) => (*number).into(),
        ScalarValue::Int32(Some(number))
        | ScalarValue::Date32(Some(number))
        | ScalarValue::Time32Second(Some(number))
        | ScalarValue::Time32Millisecond(Some(number))
        | ScalarValue::Decimal32(Some(number), ..) => (*number).into(),
        ScalarValue::Int64(Some(number))
        | ScalarValue::Date64(Some(number))
        | ScalarValue::Time64Microsecond(Some(number))
        | ScalarValue::Time64Nanosecond(Some(number))
        | ScalarValue::TimestampSecond(Some(number), _)
        | ScalarValue::TimestampMillisecond(Some(number), _)
        | ScalarValue::TimestampMicrosecond(Some(number), _)
        | ScalarValue::TimestampNanosecond(Some(number), _)
        | ScalarValue::DurationSecond(Some(number))
        | ScalarValue::DurationMillisecond(Some(number))
        | ScalarValue::DurationMicrosecond(Some(number))
        | ScalarValue::DurationNanosecond(Some(number))
        | ScalarValue::Decimal64(Some(number), ..) => (*number).into(),
        ScalarValue::Decimal128(Some(number), ..) => *number,
        _ => return None,
    })
}

/// Returns the text of a literal.
pub(crate) fn text(literal: &ScalarValue) -> Option<&str> {
    match literal {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => Some(text),
        _ => None,
    }
}

fn bytes(literal: &ScalarValue) -> Option<&[u8]> {
    match literal {
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes))
        | ScalarValue::FixedSizeBinary(_, Some(bytes)) => Some(bytes),
        _ => None,
    }
}

impl Literals {
    /// Returns the values of a key in the leading columns of which the rows are in order; `None` if there are no such
    /// columns, or if the bytes are no key.
    #[must_use]
    pub fn values(&self, key: &[u8]) -> Option<Vec<ScalarValue>> {
        match &self.meaning {
            Meant::Texts(_) => None,
            Meant::Plain | Meant::Logical => Some(vec![self.value(key)?]),
            Meant::First(composite) => {
                let parts = composite.parts();
                let elements = match parts.is_number() {
                    true => {
                        parts.split_number(key.iter().fold(0, |word, &byte| word << 8 | u128::from(byte)))
                    }
                    false => parts.split(key),
                };
                let mut values = Vec::new();
                for ((_, meaning), element) in composite.columns().iter().zip(elements?) {
                    if pleach_input::is_text_in_arrow(&meaning.logical) {
                        break;
                    }
                    values.push(part_value(&meaning.words, &meaning.logical, element)?);
                }
                (!values.is_empty()).then_some(values)
            }
        }
    }

    fn value(&self, key: &[u8]) -> Option<ScalarValue> {
        let number = match self.is_whole(key).then(|| key_datum(self.key_type, key))? {
            Datum::U32(number) => number.into(),
            Datum::U64(number) => number.into(),
            Datum::I32(number) => number.into(),
            Datum::I64(number) => number.into(),
            Datum::F64(number) => return Some(ScalarValue::Float64(Some(number))),
            Datum::U128(number) => return bytes_value(&self.data_type, number.to_be_bytes().to_vec()),
            Datum::Bytes(bytes) | Datum::Utf8(bytes) => {
                return bytes_value(&self.data_type, bytes.into_owned());
            }
            Datum::None | Datum::F32(_) => return None,
        };
        number_value(&self.data_type, number)
    }
}

/// Returns the value of a part of a composite key.
fn part_value(words: &str, logical: &Logical, element: Element) -> Option<ScalarValue> {
    let plain = match words {
        "u8" => DataType::UInt8,
        "u16" => DataType::UInt16,
        "i8" => DataType::Int8,
        "i16" => DataType::Int16,
        other => pleach_batch::arrow::key_type(KeyType::from_name(other)?),
    };
    let data_type = pleach_batch::arrow::logical_type(plain, logical);
    match element {
        Element::Signed(number) => number_value(&data_type, number.into()),
        Element::Unsigned(number) if matches!(data_type, DataType::FixedSizeBinary(16)) => {
            bytes_value(&data_type, number.to_be_bytes().to_vec())
        }
        Element::Unsigned(number) => number_value(&data_type, number.try_into().ok()?),
        Element::Bytes(bytes) => bytes_value(&data_type, bytes),
    }
}

/// Returns the value of bytes or of a text.
fn bytes_value(data_type: &DataType, bytes: Vec<u8>) -> Option<ScalarValue> {
    Some(match data_type {
        DataType::LargeUtf8 => ScalarValue::LargeUtf8(Some(String::from_utf8(bytes).ok()?)),
        DataType::LargeBinary => ScalarValue::LargeBinary(Some(bytes)),
        DataType::FixedSizeBinary(length) => ScalarValue::FixedSizeBinary(*length, Some(bytes)),
        _ => return None,
    })
}

/// Returns the value of the number of an integer, a time or a decimal.
fn number_value(data_type: &DataType, number: i128) -> Option<ScalarValue> {
    let short = i32::try_from(number).ok();
    let long = i64::try_from(number).ok();
    Some(match data_type {
        DataType::UInt8 => ScalarValue::UInt8(Some(number.try_into().ok()?)),
        DataType::UInt16 => ScalarValue::UInt16(Some(number.try_into().ok()?)),
        DataType::UInt32 => ScalarValue::UInt32(Some(number.try_into().ok()?)),
        DataType::UInt64 => ScalarValue::UInt64(Some(number.try_into().ok()?)),
        DataType::Int8 => ScalarValue::Int8(Some(number.try_into().ok()?)),
        DataType::Int16 => ScalarValue::Int16(Some(number.try_into().ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(short?)),
        DataType::Int64 => ScalarValue::Int64(Some(long?)),
        DataType::Date32 => ScalarValue::Date32(Some(short?)),
        DataType::Date64 => ScalarValue::Date64(Some(long?)),
        DataType::Time32(TimeUnit::Second) => ScalarValue::Time32Second(Some(short?)),
        DataType::Time32(TimeUnit::Millisecond) => ScalarValue::Time32Millisecond(Some(short?)),
        DataType::Time64(TimeUnit::Microsecond) => ScalarValue::Time64Microsecond(Some(long?)),
        DataType::Time64(TimeUnit::Nanosecond) => ScalarValue::Time64Nanosecond(Some(long?)),
        DataType::Timestamp(TimeUnit::Second, zone) => {
            ScalarValue::TimestampSecond(Some(long?), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Millisecond, zone) => {
            ScalarValue::TimestampMillisecond(Some(long?), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            ScalarValue::TimestampMicrosecond(Some(long?), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            ScalarValue::TimestampNanosecond(Some(long?), zone.clone())
        }
        DataType::Duration(TimeUnit::Second) => ScalarValue::DurationSecond(Some(long?)),
        DataType::Duration(TimeUnit::Millisecond) => ScalarValue::DurationMillisecond(Some(long?)),
        DataType::Duration(TimeUnit::Microsecond) => ScalarValue::DurationMicrosecond(Some(long?)),
        DataType::Duration(TimeUnit::Nanosecond) => ScalarValue::DurationNanosecond(Some(long?)),
        DataType::Decimal32(precision, scale) => ScalarValue::Decimal32(Some(short?), *precision, *scale),
        DataType::Decimal64(precision, scale) => ScalarValue::Decimal64(Some(long?), *precision, *scale),
        DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(Some(number), *precision, *scale),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use pleach::{Index, OpenOptions};
    use std::cmp::Ordering;
    use std::sync::Arc;

    const ALL: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Below,
        Comparison::AtMost,
        Comparison::Above,
        Comparison::AtLeast,
    ];

    fn source(bytes: Vec<u8>) -> Source {
        let index = Arc::new(Index::from_bytes(bytes).expect("it is a file"));
        Source::of_index(index, "memory".into(), OpenOptions::default()).expect("it is a table")
    }

    fn holds(comparison: Comparison, order: Ordering) -> bool {
        match comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Below => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Above => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
        }
    }

    /// Compares the keys of a condition with those for which it holds.
    fn check<L: Copy>(
        literals: &Literals,
        keys: &[(Datum<'_>, L)],
        literal: (&ScalarValue, L),
        order: fn(L, L) -> Ordering,
    ) {
        for comparison in ALL {
            let set = literals.keys(comparison, literal.0).expect("keys can tell");
            for (key, value) in keys {
                let bytes = key_bytes(literals.key_type, key).expect("it is a key");
                let expected = holds(comparison, order(*value, literal.1));
                assert_eq!(set.covers(&bytes, &bytes), expected, "{key:?} {comparison:?} {:?}", literal.0);
            }
        }
    }

    #[test]
    fn numbers_of_any_type_have_a_place() {
        let order = |one: i128, two: i128| one.cmp(&two);
        let near = [i128::from(i64::MIN), -3, -1, 0, 1, 2, 7, u32::MAX.into(), i64::MAX.into()];
        let unsigned = source(pleach::Builder::new().to_bytes([(1u32, 1u32)]).expect("it fits"));
        let keys = [0, 1, 2, 7, u32::MAX].map(|key| (Datum::U32(key), key.into()));
        let signed = source(pleach::Builder::new().to_bytes([(1i64, 1u32)]).expect("it fits"));
        let signed_keys = [i64::MIN, -2, -1, 0, 7, i64::MAX].map(|key| (Datum::I64(key), key.into()));
        for number in near {
            let long = ScalarValue::Int64(Some(number as i64));
            check(unsigned.literals(), &keys, (&long, number), order);
            check(signed.literals(), &signed_keys, (&long, number), order);
            let more = ScalarValue::UInt64(Some(u64::MAX));
            check(unsigned.literals(), &keys, (&more, u64::MAX.into()), order);
            check(signed.literals(), &signed_keys, (&more, u64::MAX.into()), order);
        }
    }

    #[test]
    fn texts_compare_as_their_bytes() {
        let source = source(pleach::Builder::new().to_bytes([("b", 1u32)]).expect("it fits"));
        let texts = ["", "a", "a\0", "aa", "b", "b\u{ff}", "\u{10ffff}"];
        let keys = texts.map(|text| (Datum::Utf8(text.as_bytes().into()), text));
        for text in texts.into_iter().chain(["ab", "c"]) {
            for literal in [ScalarValue::from(text), ScalarValue::LargeUtf8(Some(text.into()))] {
                check(source.literals(), &keys, (&literal, text), |one, two| one.cmp(two));
            }
            let begin = source.literals().beginning_with(text).expect("keys are texts");
            for (_, key) in &keys {
                assert_eq!(
                    begin.covers(key.as_bytes(), key.as_bytes()),
                    key.starts_with(text),
                    "{key} {text}"
                );
            }
        }
    }

    #[test]
    fn what_keys_cannot_tell_is_left_to_the_engine() {
        let floats = source(pleach::Builder::new().to_bytes([(1f64, 1u32)]).expect("it fits"));
        let of = |literal: ScalarValue| floats.literals().keys(Comparison::Below, &literal);
        assert_eq!(of(ScalarValue::Float64(Some(f64::NAN))), None);
        assert_eq!(of(ScalarValue::Float64(Some(-0.0))), None);
        assert_eq!(of(ScalarValue::Float64(None)), Some(KeySet::none()));
        assert_eq!(of(ScalarValue::from("1")), None);
        let numbers = source(pleach::Builder::new().to_bytes([(1u32, 1u32)]).expect("it fits"));
        assert_eq!(numbers.literals().keys(Comparison::Below, &ScalarValue::Float64(Some(1.5))), None);
        assert_eq!(numbers.literals().keys(Comparison::Equal, &ScalarValue::Date32(Some(1))), None);
    }
}
