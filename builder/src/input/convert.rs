//! From the numbers of an input column to the words of a Pleach file, exactly or not at all.
//!
//! A [`Target`] says what the words of a column mean; [`append`] turns a slice of any number type
//! into such words. Where the types agree this is a copy (with the sign bit of signed keys flipped),
//! where the target is wider a widening copy, else every number is checked. Nothing is ever rounded,
//! clamped or wrapped.
//!
//! Dates, times, timestamps, durations and decimals are integers with a *logical type*, whose text
//! ([`logical_text`], [`logical_type`]) is part of the file: it is spelled here and does not follow
//! the Arrow library.

use crate::source::Column;
use arrow_schema::{DataType, TimeUnit};
use pleach_format::{Key, KeyType, Value, ValueType};
use std::fmt;

/// What the words of a column of a Pleach file mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    U32,
    U64,
    I32,
    I64,
    F32,
    F64,
}

impl Scalar {
    /// The type and its bounds, for messages.
    pub(super) fn bounds(self) -> String {
        match self {
            Self::U32 => format!("u32 (0 to {})", u32::MAX),
            Self::U64 => format!("u64 (0 to {})", u64::MAX),
            Self::I32 => format!("i32 ({} to {})", i32::MIN, i32::MAX),
            Self::I64 => format!("i64 ({} to {})", i64::MIN, i64::MAX),
            Self::F32 => "f32".to_owned(),
            Self::F64 => "f64".to_owned(),
        }
    }
}

/// A column to be filled: the meaning of its words, and whether they are encoded as keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) scalar: Scalar,
    pub(super) key: bool,
}

impl Target {
    /// Encoded keys. `None` for types that this version does not read.
    pub(super) fn of_key(key_type: KeyType) -> Option<Self> {
        let scalar = match key_type {
            KeyType::U32 => Scalar::U32,
            KeyType::U64 => Scalar::U64,
            KeyType::I32 => Scalar::I32,
            KeyType::I64 => Scalar::I64,
            _ => return None,
        };
        Some(Self { scalar, key: true })
    }

    /// Value bits. `None` for `none` and types that this version does not read.
    pub(super) fn of_value(value_type: ValueType) -> Option<Self> {
        let scalar = match value_type {
            ValueType::U32 => Scalar::U32,
            ValueType::U64 => Scalar::U64,
            ValueType::I32 => Scalar::I32,
            ValueType::I64 => Scalar::I64,
            ValueType::F32 => Scalar::F32,
            ValueType::F64 => Scalar::F64,
            _ => return None,
        };
        Some(Self { scalar, key: false })
    }

    /// What the bits of a number are xored with to become a word of this column: the sign bit of
    /// signed keys (see [`pleach_format::Key::encode`]), else nothing.
    pub(super) fn flip(self) -> u64 {
        match (self.key, self.scalar) {
            (true, Scalar::I32) => u64::from(0_i32.encode()),
            (true, Scalar::I64) => 0_i64.encode(),
            _ => 0,
        }
    }
}

/// A number that converts to `D` without loss, or not at all.
trait Exact<D>: Copy {
    fn exact(self) -> Option<D>;
}

macro_rules! integers {
    ($($s:ty),* => $targets:tt) => { $(integers!(@ $s => $targets);)* };
    (@ $s:ty => ($($d:ty),*)) => {
        $(impl Exact<$d> for $s {
            #[inline(always)]
            #[allow(clippy::useless_conversion)]
            fn exact(self) -> Option<$d> { <$d>::try_from(self).ok() }
        })*
    };
}
integers!(u8, u16, u32, u64, i8, i16, i32, i64, i128 => (u32, u64, i32, i64));

macro_rules! integers_to_floats {
    ($($s:ty),* => $d:ty) => {$(
        impl Exact<$d> for $s {
            #[inline(always)]
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_lossless)]
            fn exact(self) -> Option<$d> {
                let float = self as $d;
                // i128 holds every float that a 64-bit integer can become: no saturation here.
                (float as i128 == i128::from(self)).then_some(float)
            }
        }
    )*};
}
integers_to_floats!(u8, u16, u32, u64, i8, i16, i32, i64 => f32);
integers_to_floats!(u8, u16, u32, u64, i8, i16, i32, i64 => f64);

// Decimals never become floats: almost none of them would be exact.
impl Exact<f32> for i128 {
    fn exact(self) -> Option<f32> {
        None
    }
}
impl Exact<f64> for i128 {
    fn exact(self) -> Option<f64> {
        None
    }
}

macro_rules! floats_to_integers {
    ($s:ty => $($d:ty),*) => {$(
        impl Exact<$d> for $s {
            #[inline(always)]
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::float_cmp)]
            fn exact(self) -> Option<$d> {
                // Saturates beyond i128, where no target reaches; NaN becomes 0, which is not NaN.
                let whole = self as i128;
                if whole as $s == self { <$d>::try_from(whole).ok() } else { None }
            }
        }
    )*};
}
floats_to_integers!(f32 => u32, u64, i32, i64);
floats_to_integers!(f64 => u32, u64, i32, i64);

impl Exact<f32> for f32 {
    #[inline(always)]
    fn exact(self) -> Option<f32> {
        Some(self)
    }
}
impl Exact<f64> for f64 {
    #[inline(always)]
    fn exact(self) -> Option<f64> {
        Some(self)
    }
}
impl Exact<f64> for f32 {
    #[inline(always)]
    fn exact(self) -> Option<f64> {
        Some(f64::from(self))
    }
}
impl Exact<f32> for f64 {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
    fn exact(self) -> Option<f32> {
        let narrow = self as f32;
        (f64::from(narrow) == self || self.is_nan()).then_some(narrow)
    }
}

/// Numbers of one type of an input.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slice<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    I128(&'a [i128]),
    F32(&'a [f32]),
    F64(&'a [f64]),
}

macro_rules! with_slice {
    ($slice:expr, |$numbers:ident| $body:expr) => {
        match $slice {
            Slice::U8($numbers) => $body,
            Slice::U16($numbers) => $body,
            Slice::U32($numbers) => $body,
            Slice::U64($numbers) => $body,
            Slice::I8($numbers) => $body,
            Slice::I16($numbers) => $body,
            Slice::I32($numbers) => $body,
            Slice::I64($numbers) => $body,
            Slice::I128($numbers) => $body,
            Slice::F32($numbers) => $body,
            Slice::F64($numbers) => $body,
        }
    };
}

impl Slice<'_> {
    /// The number at `index`, for messages.
    pub(super) fn text(self, index: usize) -> String {
        with_slice!(self, |numbers| numbers.get(index).map_or_else(String::new, ToString::to_string))
    }
}

/// Appends `numbers`, converted. On the first number that does not fit: its index, with `out` in an
/// unspecified state. O(n).
pub(super) fn append(numbers: Slice<'_>, target: Target, out: &mut Column) -> Result<(), usize> {
    with_slice!(numbers, |numbers| append_numbers(numbers, target, out))
}

fn append_numbers<S>(numbers: &[S], target: Target, out: &mut Column) -> Result<(), usize>
where
    S: Exact<u32> + Exact<u64> + Exact<i32> + Exact<i64> + Exact<f32> + Exact<f64>,
{
    #[allow(clippy::cast_possible_truncation)]
    let narrow_flip = target.flip() as u32;
    let flip = target.flip();
    match (target.scalar, out) {
        (Scalar::U32, Column::U32(out)) => extend(numbers, out, |n: u32| n ^ narrow_flip),
        (Scalar::I32, Column::U32(out)) => extend(numbers, out, |n: i32| n.cast_unsigned() ^ narrow_flip),
        (Scalar::F32, Column::U32(out)) => extend(numbers, out, f32::to_bits),
        (Scalar::U64, Column::U64(out)) => extend(numbers, out, |n: u64| n ^ flip),
        (Scalar::I64, Column::U64(out)) => extend(numbers, out, |n: i64| n.cast_unsigned() ^ flip),
        (Scalar::F64, Column::U64(out)) => extend(numbers, out, f64::to_bits),
        // A source makes its columns from its schema; nothing fits into a column of another width.
        _ => Err(0),
    }
}

/// The branch is in the flag alone, so that the loop vectorises where the conversion does.
fn extend<S: Exact<D>, D, W: Default>(
    numbers: &[S],
    out: &mut Vec<W>,
    word: impl Fn(D) -> W,
) -> Result<(), usize> {
    let mut lossy = false;
    out.extend(numbers.iter().map(|number| match number.exact() {
        Some(exact) => word(exact),
        None => {
            lossy = true;
            W::default()
        }
    }));
    if lossy {
        return Err(numbers.iter().position(|number| number.exact().is_none()).unwrap_or_default());
    }
    Ok(())
}

/// What a column of a typed input holds and what it becomes unless a type is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Natural {
    /// What its numbers are.
    pub(super) scalar: Scalar,
    /// Logical type, empty if plain.
    pub(super) logical: String,
    /// Digits after the decimal point of a decimal: one with any becomes `i64` or nothing, and none
    /// becomes a float.
    pub(super) scale: Option<i8>,
}

/// What a column of this Arrow type becomes, if it can be a column of a Pleach file at all.
pub(super) fn natural(data_type: &DataType) -> Option<Natural> {
    let scalar = match data_type {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Scalar::U32,
        DataType::UInt64 => Scalar::U64,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Date32 | DataType::Time32(_) => {
            Scalar::I32
        }
        DataType::Int64
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..) => Scalar::I64,
        DataType::Float32 => Scalar::F32,
        DataType::Float64 => Scalar::F64,
        DataType::Dictionary(_, values) => return natural(values),
        _ => return None,
    };
    let scale = match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            Some(*scale)
        }
        _ => None,
    };
    Some(Natural { scalar, logical: logical_text(data_type).unwrap_or_default(), scale })
}

/// The text of a logical type as the META section keeps it: `Date32`, `Date64`, `Time32(Second)`,
/// `Time64(Microsecond)`, `Timestamp(Microsecond, None)`, `Timestamp(Second, Some("UTC"))`,
/// `Duration(Nanosecond)`, `Decimal128(15, 2)` (and 32, 64). `None` for every other type.
#[must_use]
pub fn logical_text(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Date32 => "Date32".to_owned(),
        DataType::Date64 => "Date64".to_owned(),
        DataType::Time32(unit) => format!("Time32({})", unit_text(*unit)),
        DataType::Time64(unit) => format!("Time64({})", unit_text(*unit)),
        DataType::Duration(unit) => format!("Duration({})", unit_text(*unit)),
        DataType::Timestamp(unit, None) => format!("Timestamp({}, None)", unit_text(*unit)),
        DataType::Timestamp(unit, Some(zone)) => {
            let zone = zone.replace('\\', "\\\\").replace('"', "\\\"");
            format!("Timestamp({}, Some(\"{zone}\"))", unit_text(*unit))
        }
        DataType::Decimal32(precision, scale) => format!("Decimal32({precision}, {scale})"),
        DataType::Decimal64(precision, scale) => format!("Decimal64({precision}, {scale})"),
        DataType::Decimal128(precision, scale) => format!("Decimal128({precision}, {scale})"),
        _ => return None,
    })
}

/// Inverse of [`logical_text`]. `None` for text that it does not produce, so that a file of a later
/// version still exports, with plain numbers.
#[must_use]
pub fn logical_type(text: &str) -> Option<DataType> {
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')?),
        None => (text, ""),
    };
    let decimal = || -> Option<(u8, i8)> {
        let (precision, scale) = arguments.split_once(", ")?;
        Some((precision.parse().ok()?, scale.parse().ok()?))
    };
    let found = match name {
        "Date32" => DataType::Date32,
        "Date64" => DataType::Date64,
        "Time32" => DataType::Time32(unit_of(arguments)?),
        "Time64" => DataType::Time64(unit_of(arguments)?),
        "Duration" => DataType::Duration(unit_of(arguments)?),
        "Timestamp" => {
            let (unit, zone) = arguments.split_once(", ")?;
            let zone = match zone {
                "None" => None,
                _ => Some(unescape(zone.strip_prefix("Some(\"")?.strip_suffix("\")")?).into()),
            };
            DataType::Timestamp(unit_of(unit)?, zone)
        }
        "Decimal32" => decimal().map(|(precision, scale)| DataType::Decimal32(precision, scale))?,
        "Decimal64" => decimal().map(|(precision, scale)| DataType::Decimal64(precision, scale))?,
        "Decimal128" => decimal().map(|(precision, scale)| DataType::Decimal128(precision, scale))?,
        _ => return None,
    };
    // Only what is spelled as we spell it: `Decimal128(+5, 02)` is not ours.
    (logical_text(&found)? == text).then_some(found)
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or('\\') } else { letter });
    }
    plain
}

fn unit_text(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "Second",
        TimeUnit::Millisecond => "Millisecond",
        TimeUnit::Microsecond => "Microsecond",
        TimeUnit::Nanosecond => "Nanosecond",
    }
}

fn unit_of(text: &str) -> Option<TimeUnit> {
    Some(match text {
        "Second" => TimeUnit::Second,
        "Millisecond" => TimeUnit::Millisecond,
        "Microsecond" => TimeUnit::Microsecond,
        "Nanosecond" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

/// Parses one number of a text table into the word of `target`: digits with an optional sign, spaces
/// and tabs around it allowed; for floats whatever Rust's parser takes (decimal, exponent, `inf`,
/// `NaN`), rounded to the nearest.
pub(super) fn parse(field: &[u8], target: Target) -> Result<u64, TextProblem> {
    let text = trim(field);
    if text.is_empty() {
        return Err(TextProblem::Missing);
    }
    let number = match target.scalar {
        Scalar::F32 | Scalar::F64 => return parse_float(text, target.scalar),
        _ => parse_integer(text)?,
    };
    let outside = || TextProblem::OutOfRange;
    let bits = match target.scalar {
        Scalar::U32 => u32::try_from(number).map(u64::from).map_err(|_| outside())?,
        Scalar::U64 => u64::try_from(number).map_err(|_| outside())?,
        Scalar::I32 => i32::try_from(number).map(|n| u64::from(n.cast_unsigned())).map_err(|_| outside())?,
        _ => i64::try_from(number).map(i64::cast_unsigned).map_err(|_| outside())?,
    };
    Ok(bits ^ target.flip())
}

fn trim(mut field: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = field {
        field = rest;
    }
    field
}

/// Saturates far outside of every target.
fn parse_integer(text: &[u8]) -> Result<i128, TextProblem> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(TextProblem::NotANumber);
    }
    let magnitude = digits
        .iter()
        .fold(0_i128, |number, digit| number.saturating_mul(10).saturating_add(i128::from(digit - b'0')));
    Ok(if negative { -magnitude } else { magnitude })
}

fn parse_float(text: &[u8], scalar: Scalar) -> Result<u64, TextProblem> {
    let text = std::str::from_utf8(text).map_err(|_| TextProblem::NotANumber)?;
    let not = |_| TextProblem::NotANumber;
    let (bits, infinite) = match scalar {
        Scalar::F32 => {
            let number: f32 = text.parse().map_err(not)?;
            (u64::from(Value::to_bits(number)), number.is_infinite())
        }
        _ => {
            let number: f64 = text.parse().map_err(not)?;
            (Value::to_bits(number), number.is_infinite())
        }
    };
    // "inf" is meant, 1e999 is not.
    if infinite && text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(TextProblem::OutOfRange);
    }
    Ok(bits)
}

/// What is wrong with a field of a text table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextProblem {
    Missing,
    NotANumber,
    OutOfRange,
}

/// A field as it can be shown: at most 40 bytes, control characters escaped.
pub(super) struct Shown<'a>(pub(super) &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = &self.0[..self.0.len().min(40)];
        let more = if start.len() < self.0.len() { "..." } else { "" };
        write!(f, "\"{}{more}\"", String::from_utf8_lossy(start).escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Scalar; 6] = [Scalar::U32, Scalar::U64, Scalar::I32, Scalar::I64, Scalar::F32, Scalar::F64];

    fn one(numbers: Slice<'_>, scalar: Scalar, key: bool) -> Result<u64, usize> {
        let narrow = matches!(scalar, Scalar::U32 | Scalar::I32 | Scalar::F32);
        let mut out = Column::with_width(if narrow { 4 } else { 8 });
        append(numbers, Target { scalar, key }, &mut out)?;
        Ok(match out {
            Column::U32(words) => u64::from(words[0]),
            Column::U64(words) => words[0],
            Column::None => unreachable!("no scalar has no bytes"),
        })
    }

    /// Whether the mathematical value of `numbers[0]` is kept, worked out in another way.
    #[test]
    fn integers_convert_exactly_or_not_at_all() {
        let samples: Vec<i128> = (0..=64_u32)
            .flat_map(|shift| {
                let power = 1_i128 << shift;
                [power - 1, power, power + 1, -power - 1, -power, -power + 1]
            })
            .collect();
        for &sample in &samples {
            for scalar in ALL {
                let fits = match scalar {
                    Scalar::U32 => (0..=i128::from(u32::MAX)).contains(&sample),
                    Scalar::U64 => (0..=i128::from(u64::MAX)).contains(&sample),
                    Scalar::I32 => (i128::from(i32::MIN)..=i128::from(i32::MAX)).contains(&sample),
                    Scalar::I64 => (i128::from(i64::MIN)..=i128::from(i64::MAX)).contains(&sample),
                    // A float of p bits holds what has at most p bits between its first and last one.
                    Scalar::F32 | Scalar::F64 => {
                        let mantissa = if scalar == Scalar::F32 { 24 } else { 53 };
                        let magnitude = sample.unsigned_abs();
                        magnitude == 0
                            || 128 - magnitude.leading_zeros() - magnitude.trailing_zeros() <= mantissa
                    }
                };
                macro_rules! check {
                    ($($t:ty, $variant:ident);*) => {$(
                        if let Ok(number) = <$t>::try_from(sample) {
                            let got = one(Slice::$variant(&[number]), scalar, false);
                            assert_eq!(got.is_ok(), fits, "{sample} as {scalar:?}");
                        }
                    )*};
                }
                check!(u8, U8; u16, U16; u32, U32; u64, U64; i8, I8; i16, I16; i32, I32; i64, I64);
                if !matches!(scalar, Scalar::F32 | Scalar::F64) {
                    assert_eq!(one(Slice::I128(&[sample]), scalar, false).is_ok(), fits);
                    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
                    let float = sample as f64;
                    if float as i128 == sample {
                        assert_eq!(one(Slice::F64(&[float]), scalar, false).is_ok(), fits, "{float}");
                    }
                }
            }
        }
    }

    #[test]
    fn floats_convert_exactly_or_not_at_all() {
        assert_eq!(one(Slice::F64(&[0.5]), Scalar::F32, false), Ok(u64::from(0.5_f32.to_bits())));
        assert_eq!(one(Slice::F64(&[0.1]), Scalar::F32, false), Err(0));
        assert_eq!(one(Slice::F64(&[1e300]), Scalar::F32, false), Err(0));
        assert!(one(Slice::F64(&[f64::NAN]), Scalar::F32, false).is_ok());
        assert!(one(Slice::F64(&[f64::INFINITY]), Scalar::F32, false).is_ok());
        assert_eq!(one(Slice::F32(&[0.1]), Scalar::F64, false), Ok(f64::from(0.1_f32).to_bits()));
        for bad in
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5, -1.0, 18_446_744_073_709_551_616.0, 1e300]
        {
            assert_eq!(one(Slice::F64(&[bad]), Scalar::U64, true), Err(0), "{bad}");
        }
        assert_eq!(one(Slice::F64(&[-0.0]), Scalar::U64, true), Ok(0));
    }

    #[test]
    fn keys_are_encoded_and_values_are_not() {
        assert_eq!(one(Slice::I32(&[-1]), Scalar::I32, true), Ok(u64::from((-1_i32).encode())));
        assert_eq!(one(Slice::I32(&[-1]), Scalar::I32, false), Ok(0xffff_ffff));
        assert_eq!(one(Slice::I8(&[-1]), Scalar::I64, true), Ok((-1_i64).encode()));
        assert_eq!(one(Slice::U32(&[7]), Scalar::U32, true), Ok(7));
    }

    #[test]
    fn the_first_misfit_is_named() {
        let mut out = Column::with_width(4);
        let target = Target { scalar: Scalar::U32, key: true };
        assert_eq!(append(Slice::I64(&[1, 2, -3, -4]), target, &mut out), Err(2));
        assert_eq!(append(Slice::I64(&[1]), target, &mut Column::with_width(8)), Err(0));
    }

    #[test]
    fn logical_types_survive_as_text() {
        use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
        let mut types = vec![DataType::Date32, DataType::Date64];
        for unit in [Second, Millisecond, Microsecond, Nanosecond] {
            types.push(DataType::Time32(unit));
            types.push(DataType::Time64(unit));
            types.push(DataType::Duration(unit));
            for zone in [None, Some("UTC"), Some("+02:00"), Some("a\"b\\c)"), Some("")] {
                types.push(DataType::Timestamp(unit, zone.map(Into::into)));
            }
        }
        for (precision, scale) in [(1, 0), (38, -5), (15, 2)] {
            types.push(DataType::Decimal32(precision, scale));
            types.push(DataType::Decimal64(precision, scale));
            types.push(DataType::Decimal128(precision, scale));
        }
        for data_type in types {
            let text = logical_text(&data_type).expect("is logical");
            assert_eq!(logical_type(&text).as_ref(), Some(&data_type), "{text}");
        }
        let micros = DataType::Timestamp(Microsecond, None);
        assert_eq!(logical_text(&micros).as_deref(), Some("Timestamp(Microsecond, None)"));
        for plain in [DataType::UInt32, DataType::Float64, DataType::Utf8] {
            assert_eq!(logical_text(&plain), None);
        }
        for foreign in ["", "UInt32", "Date32()", "Decimal128(+5, 2)", "Decimal128(5,2)", "Timestamp(Second)"]
        {
            assert_eq!(logical_type(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn text_numbers() {
        let value = |scalar| Target { scalar, key: false };
        assert_eq!(parse(b" +42\t", value(Scalar::U32)), Ok(42));
        assert_eq!(parse(b"-0", value(Scalar::U64)), Ok(0));
        assert_eq!(parse(b"00000000000000000000000000000007", value(Scalar::U64)), Ok(7));
        assert_eq!(parse(b"18446744073709551615", value(Scalar::U64)), Ok(u64::MAX));
        assert_eq!(parse(b"-9223372036854775808", value(Scalar::I64)), Ok(1 << 63));
        assert_eq!(parse(b"-1", Target { scalar: Scalar::I32, key: true }), Ok(0x7fff_ffff));
        let nines = [b'9'; 60];
        for bad in [&b"-1"[..], b"18446744073709551616", &nines] {
            assert_eq!(parse(bad, value(Scalar::U64)), Err(TextProblem::OutOfRange));
        }
        for bad in [&b"NaN"[..], b"1.0", b"--1", b"+", b"0x10", b"1 2", b"\xff"] {
            assert_eq!(parse(bad, value(Scalar::U64)), Err(TextProblem::NotANumber));
        }
        assert_eq!(parse(b"  ", value(Scalar::U64)), Err(TextProblem::Missing));
        assert_eq!(parse(b"1e-3", value(Scalar::F64)), Ok(1e-3_f64.to_bits()));
        assert_eq!(parse(b"0.1", value(Scalar::F32)), Ok(u64::from(0.1_f32.to_bits())));
        assert_eq!(parse(b"-inf", value(Scalar::F64)), Ok(f64::NEG_INFINITY.to_bits()));
        assert!(f64::from_bits(parse(b"nan", value(Scalar::F64)).expect("kept")).is_nan());
        assert_eq!(parse(b"1e999", value(Scalar::F64)), Err(TextProblem::OutOfRange));
        assert_eq!(parse(b"1e39", value(Scalar::F32)), Err(TextProblem::OutOfRange));
    }
}
