//! Conversion of the numbers of an input column to the words of a Pleach file, exactly or not at all.
//!
//! A [`Target`] specifies the meaning of the words of a column; [`append`] converts a slice of any number
//! type to such words. If the types agree this is a copy (with the sign bit of signed keys flipped), if the
//! target is wider a widening copy; otherwise every number is checked. Nothing is ever rounded, clamped or
//! wrapped. For byte strings see [`super::strings`].

use pleach_builder::source::Column;
use pleach_format::logical::{Form, Logical, Ratio, TextError};
use pleach_format::{Key, KeyType, Value, ValueType};
use std::fmt;

/// Meaning of the words or byte strings of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    U32,
    U64,
    U128,
    I32,
    I64,
    F32,
    F64,
    Fixed(u16),
    Bytes,
    Utf8,
}

impl Kind {
    /// Returns true for byte strings.
    pub(super) fn is_bytes(self) -> bool {
        matches!(self, Self::Fixed(_) | Self::Bytes | Self::Utf8)
    }

    /// Returns true for floats.
    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Returns the type of keys of this kind; 32-bit floats widen.
    pub(super) fn key_type(self) -> KeyType {
        match self {
            Self::U32 => KeyType::U32,
            Self::U64 => KeyType::U64,
            Self::U128 => KeyType::U128,
            Self::I32 => KeyType::I32,
            Self::I64 => KeyType::I64,
            Self::F32 | Self::F64 => KeyType::F64,
            Self::Fixed(bytes) => KeyType::Fixed(bytes),
            Self::Bytes => KeyType::Bytes,
            Self::Utf8 => KeyType::Utf8,
        }
    }

    /// Returns the type of values of this kind, if there are such values.
    pub(super) fn value_type(self) -> Option<ValueType> {
        Some(match self {
            Self::U32 => ValueType::U32,
            Self::U64 => ValueType::U64,
            Self::U128 => return None,
            Self::I32 => ValueType::I32,
            Self::I64 => ValueType::I64,
            Self::F32 => ValueType::F32,
            Self::F64 => ValueType::F64,
            Self::Fixed(bytes) => ValueType::Fixed(bytes),
            Self::Bytes => ValueType::Bytes,
            Self::Utf8 => ValueType::Utf8,
        })
    }

    /// Returns the type and its bounds, for messages.
    pub(super) fn bounds(self) -> String {
        match self {
            Self::U32 => format!("u32 (0 to {})", u32::MAX),
            Self::U64 => format!("u64 (0 to {})", u64::MAX),
            Self::U128 => format!("u128 (0 to {})", u128::MAX),
            Self::I32 => format!("i32 ({} to {})", i32::MIN, i32::MAX),
            Self::I64 => format!("i64 ({} to {})", i64::MIN, i64::MAX),
            Self::F32 => "f32".to_owned(),
            Self::F64 => "f64".to_owned(),
            Self::Fixed(bytes) => format!("bytes{bytes}"),
            Self::Bytes => "bytes".to_owned(),
            Self::Utf8 => "utf8".to_owned(),
        }
    }
}

/// A column to be filled: the meaning of its elements, and whether they are keys, which are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) kind: Kind,
    pub(super) key: bool,
    /// Notation of texts, if they are those of a logical type.
    pub(super) form: Option<Form>,
    /// Conversion factor and notation, if the words of the input are in another unit.
    pub(super) from: Option<(Ratio, Form)>,
}

impl Target {
    /// Creates a target of plain elements.
    pub(super) fn of(kind: Kind, key: bool) -> Self {
        Self { kind, key, form: None, from: None }
    }

    /// Returns the same target for texts of a logical type.
    pub(super) fn meant(self, logical: Option<&Logical>) -> Self {
        Self { form: logical.and_then(Logical::form), ..self }
    }

    /// Creates a target of encoded keys. `None` for types that this version does not read.
    pub(super) fn of_key(key_type: KeyType) -> Option<Self> {
        let kind = match key_type {
            KeyType::U32 => Kind::U32,
            KeyType::U64 => Kind::U64,
            KeyType::I32 => Kind::I32,
            KeyType::I64 => Kind::I64,
            KeyType::U128 => Kind::U128,
            KeyType::F64 => Kind::F64,
            KeyType::Fixed(bytes) => Kind::Fixed(bytes),
            KeyType::Bytes => Kind::Bytes,
            KeyType::Utf8 => Kind::Utf8,
        };
        Some(Self::of(kind, true))
    }

    /// Creates a target of value bits. `None` for `none` and for types that this version does not read.
    pub(super) fn of_value(value_type: ValueType) -> Option<Self> {
        let kind = match value_type {
            ValueType::U32 => Kind::U32,
            ValueType::U64 => Kind::U64,
            ValueType::I32 => Kind::I32,
            ValueType::I64 => Kind::I64,
            ValueType::F32 => Kind::F32,
            ValueType::F64 => Kind::F64,
            ValueType::Fixed(bytes) => Kind::Fixed(bytes),
            ValueType::Bytes => Kind::Bytes,
            ValueType::Utf8 => Kind::Utf8,
            ValueType::None => return None,
        };
        Some(Self::of(kind, false))
    }

    /// Returns the mask with which the bits of a number are xored to become a word of this column: the sign
    /// bit of signed keys (see [`pleach_format::Key::encode`]), otherwise 0. Not for float keys.
    pub(super) fn flip(self) -> u64 {
        match (self.key, self.kind) {
            (true, Kind::I32) => u64::from(0_i32.encode()),
            (true, Kind::I64) => 0_i64.encode(),
            _ => 0,
        }
    }

    /// Returns true if elements are floats that need [`Key::encode`].
    pub(super) fn is_float_key(self) -> bool {
        self.key && self.kind.is_float()
    }

    /// Returns the option that selects another type.
    pub(super) fn option(self) -> &'static str {
        if self.key { "--key-type" } else { "--value-type" }
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
integers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128 => (u32, u64, u128, i32, i64));

macro_rules! integers_to_floats {
    ($($s:ty),* => $d:ty) => {$(
        impl Exact<$d> for $s {
            #[inline(always)]
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_lossless)]
            fn exact(self) -> Option<$d> {
                let float = self as $d;
                // i128 holds every float that a 64-bit integer can become: the cast does not saturate here.
                (float as i128 == i128::from(self)).then_some(float)
            }
        }
    )*};
}
integers_to_floats!(u8, u16, u32, u64, i8, i16, i32, i64 => f32);
integers_to_floats!(u8, u16, u32, u64, i8, i16, i32, i64 => f64);

macro_rules! wide_and_floats {
    ($($f:ty),*) => {$(
        impl Exact<$f> for u128 {
            #[inline(always)]
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
            fn exact(self) -> Option<$f> {
                let float = self as $f;
                (f64::from(float) < BEYOND_U128 && float as u128 == self).then_some(float)
            }
        }
        impl Exact<u128> for $f {
            #[inline(always)]
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::float_cmp)]
            #[allow(clippy::cast_sign_loss)]
            fn exact(self) -> Option<u128> {
                // The cast saturates, so negative numbers, too large ones and NaN do not compare equal.
                let whole = self as u128;
                (f64::from(self) < BEYOND_U128 && whole as $f == self).then_some(whole)
            }
        }
    )*};
}
/// 2^128.
const BEYOND_U128: f64 = 340_282_366_920_938_463_463_374_607_431_768_211_456.0;
wide_and_floats!(f32, f64);

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
                // The cast saturates beyond i128, which no target reaches; NaN becomes 0, which is not equal
                // to NaN.
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
    U128(&'a [u128]),
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
            Slice::U128($numbers) => $body,
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
    /// Returns the text of the number at `index`, for messages.
    pub(super) fn text(self, index: usize) -> String {
        with_slice!(self, |numbers| numbers.get(index).map_or_else(String::new, ToString::to_string))
    }
}

/// Appends `numbers`, converted. For the first number that does not fit, returns its index; `out` is then
/// unspecified. NaN does not fit keys. O(n).
pub(super) fn append(numbers: Slice<'_>, target: Target, out: &mut Column) -> Result<(), usize> {
    if let Some((ratio, _)) = target.from {
        let scaled = rescaled(numbers, ratio, target)?;
        return append_numbers(&scaled, Target { from: None, ..target }, out);
    }
    with_slice!(numbers, |numbers| append_numbers(numbers, target, out))
}

/// Converts numbers to words in the unit of the target.
fn rescaled(numbers: Slice<'_>, ratio: Ratio, target: Target) -> Result<Vec<i64>, usize> {
    let word = |number: i128| {
        let product = number.checked_mul(ratio.times.into())?;
        let over = i128::from(ratio.over);
        let word = i64::try_from(product / over).ok().filter(|_| product % over == 0)?;
        target.form.is_none_or(|form| form.holds(word)).then_some(word)
    };
    let all = |numbers: &mut dyn Iterator<Item = i128>| {
        numbers.enumerate().map(|(at, number)| word(number).ok_or(at)).collect()
    };
    match numbers {
        Slice::I32(numbers) => all(&mut numbers.iter().map(|&number| number.into())),
        Slice::I64(numbers) => all(&mut numbers.iter().map(|&number| number.into())),
        Slice::I128(numbers) => all(&mut numbers.iter().copied()),
        // No other target has a unit.
        _ => Err(0),
    }
}

fn append_numbers<S>(numbers: &[S], target: Target, out: &mut Column) -> Result<(), usize>
where
    S: Exact<u32> + Exact<u64> + Exact<u128> + Exact<i32> + Exact<i64> + Exact<f32> + Exact<f64>,
{
    #[allow(clippy::cast_possible_truncation)]
    let narrow_flip = target.flip() as u32;
    let flip = target.flip();
    match (target.kind, out) {
        (Kind::U32, Column::U32(out)) => extend(numbers, out, |n: u32| n ^ narrow_flip),
        (Kind::I32, Column::U32(out)) => extend(numbers, out, |n: i32| n.cast_unsigned() ^ narrow_flip),
        (Kind::F32, Column::U32(out)) => extend(numbers, out, f32::to_bits),
        (Kind::U64, Column::U64(out)) => extend(numbers, out, |n: u64| n ^ flip),
        (Kind::I64, Column::U64(out)) => extend(numbers, out, |n: i64| n.cast_unsigned() ^ flip),
        (Kind::U128, Column::U128(out)) => extend(numbers, out, |n: u128| n),
        (Kind::F64, Column::U64(out)) if target.key => {
            extend(numbers, out, f64::encode)?;
            let is_nan = |number: &S| Exact::<f64>::exact(*number).is_some_and(f64::is_nan);
            numbers.iter().position(is_nan).map_or(Ok(()), Err)
        }
        (Kind::F64, Column::U64(out)) => extend(numbers, out, f64::to_bits),
        // A source makes its columns from its schema; nothing fits in a column of another width.
        _ => Err(0),
    }
}

/// Appends numbers. The only branch depends on the flag, so the loop vectorises if the conversion does.
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

/// Parses one number of a text table into the word of `target`. Integers are digits with an optional sign,
/// optional spaces and tabs around them, and optionally a point followed by zeros only. Floats are whatever
/// Rust's parser accepts (decimal, exponent, `inf`, `NaN`), rounded to the nearest.
pub(super) fn parse(field: &[u8], target: Target) -> Result<u128, TextProblem> {
    let text = trim(field);
    if text.is_empty() {
        return Err(TextProblem::Missing);
    }
    if let Some(form) = target.form {
        return parse_meant(text, form, target);
    }
    if target.kind.is_float() {
        return parse_float(text, target).map(u128::from);
    }
    let (negative, magnitude) = parse_integer(super::text::whole(text).unwrap_or(text))?;
    let number = i128::try_from(magnitude).ok().map(|number| if negative { -number } else { number });
    let bits = match target.kind {
        Kind::U128 if !negative || magnitude == 0 => return Ok(magnitude),
        Kind::U32 => number.and_then(|number| u32::try_from(number).ok()).map(u64::from),
        Kind::U64 => number.and_then(|number| u64::try_from(number).ok()),
        Kind::I32 => number.and_then(|number| i32::try_from(number).ok()).map(|n| n.cast_unsigned().into()),
        Kind::I64 => number.and_then(|number| i64::try_from(number).ok()).map(i64::cast_unsigned),
        _ => None,
    };
    bits.map(|bits| u128::from(bits ^ target.flip())).ok_or(TextProblem::OutOfRange)
}

#[cold]
#[inline(never)]
fn parse_meant(text: &[u8], form: Form, target: Target) -> Result<u128, TextProblem> {
    if form == Form::Uuid {
        return Form::read_uuid(text).ok_or(TextProblem::Meaning(form, TextError::Form));
    }
    let problem = |error| TextProblem::Meaning(form, error);
    let number = form.read(text).map_err(problem)?;
    if !form.holds(number) {
        return Err(problem(TextError::Range));
    }
    let bits = match target.kind {
        Kind::I32 => i32::try_from(number).ok().map(|number| number.cast_unsigned().into()),
        _ => Some(number.cast_unsigned()),
    };
    bits.map(|bits| u128::from(bits ^ target.flip())).ok_or(problem(TextError::Range))
}

fn trim(mut field: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = field {
        field = rest;
    }
    field
}

/// Returns whether there is a minus sign, and the digits.
fn parse_integer(text: &[u8]) -> Result<(bool, u128), TextProblem> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(TextProblem::NotANumber);
    }
    // With up to 19 digits, a word of 8 bytes cannot overflow.
    let (first, rest) = digits.split_at(digits.len().min(19));
    let first = first.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    let magnitude = rest.iter().try_fold(u128::from(first), |number, digit| {
        number.checked_mul(10)?.checked_add(u128::from(digit - b'0'))
    });
    Ok((negative, magnitude.ok_or(TextProblem::OutOfRange)?))
}

fn parse_float(text: &[u8], target: Target) -> Result<u64, TextProblem> {
    let text = std::str::from_utf8(text).map_err(|_| TextProblem::NotANumber)?;
    let not = |_| TextProblem::NotANumber;
    let (bits, infinite) = if target.kind == Kind::F32 {
        let number: f32 = text.parse().map_err(not)?;
        (u64::from(Value::to_bits(number)), number.is_infinite())
    } else {
        let number: f64 = text.parse().map_err(not)?;
        if target.key && number.is_nan() {
            return Err(TextProblem::Nan);
        }
        (if target.key { number.encode() } else { Value::to_bits(number) }, number.is_infinite())
    };
    // "inf" is intended, 1e999 is not.
    if infinite && text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(TextProblem::OutOfRange);
    }
    Ok(bits)
}

/// Problem of a field of a text table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextProblem {
    Missing,
    NotANumber,
    OutOfRange,
    /// NaN as a key.
    Nan,
    /// It is not a valid text of the logical type.
    Meaning(Form, TextError),
}

/// A field in the form shown in messages: at most 40 bytes, control characters escaped.
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

    const ALL: [Kind; 7] = [Kind::U32, Kind::U64, Kind::U128, Kind::I32, Kind::I64, Kind::F32, Kind::F64];

    fn one(numbers: Slice<'_>, kind: Kind, key: bool) -> Result<u64, usize> {
        wide(numbers, kind, key).map(|word| u64::try_from(word).expect("is narrow"))
    }

    fn wide(numbers: Slice<'_>, kind: Kind, key: bool) -> Result<u128, usize> {
        let bytes = match kind {
            Kind::U32 | Kind::I32 | Kind::F32 => 4,
            Kind::U128 => 16,
            _ => 8,
        };
        let mut out = Column::with_width(bytes);
        append(numbers, Target::of(kind, key), &mut out)?;
        Ok(match out {
            Column::U32(words) => words[0].into(),
            Column::U64(words) => words[0].into(),
            Column::U128(words) => words[0],
            Column::None | Column::Bytes(_) => unreachable!("these are numbers"),
        })
    }

    /// Checks that the mathematical value of `numbers[0]` is kept, computed in another way.
    #[test]
    fn integers_convert_exactly_or_not_at_all() {
        let samples: Vec<i128> = (0..=64_u32)
            .flat_map(|shift| {
                let power = 1_i128 << shift;
                [power - 1, power, power + 1, -power - 1, -power, -power + 1]
            })
            .collect();
        for &sample in &samples {
            for kind in ALL {
                let fits = match kind {
                    Kind::U32 => (0..=i128::from(u32::MAX)).contains(&sample),
                    Kind::U64 => (0..=i128::from(u64::MAX)).contains(&sample),
                    Kind::I32 => (i128::from(i32::MIN)..=i128::from(i32::MAX)).contains(&sample),
                    Kind::I64 => (i128::from(i64::MIN)..=i128::from(i64::MAX)).contains(&sample),
                    // A float of p bits holds numbers with at most p bits between the first and the last set
                    // bit.
                    Kind::U128 => sample >= 0,
                    _ => {
                        let mantissa = if kind == Kind::F32 { 24 } else { 53 };
                        let magnitude = sample.unsigned_abs();
                        magnitude == 0
                            || 128 - magnitude.leading_zeros() - magnitude.trailing_zeros() <= mantissa
                    }
                };
                macro_rules! check {
                    ($($t:ty, $variant:ident);*) => {$(
                        if let Ok(number) = <$t>::try_from(sample) {
                            let got = wide(Slice::$variant(&[number]), kind, false);
                            assert_eq!(got.is_ok(), fits, "{sample} as {kind:?}");
                        }
                    )*};
                }
                check!(u8, U8; u16, U16; u32, U32; u64, U64; i8, I8; i16, I16; i32, I32; i64, I64);
                if !kind.is_float() {
                    assert_eq!(wide(Slice::I128(&[sample]), kind, false).is_ok(), fits);
                    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
                    let float = sample as f64;
                    if float as i128 == sample {
                        assert_eq!(wide(Slice::F64(&[float]), kind, false).is_ok(), fits, "{float}");
                    }
                }
            }
        }
    }

    #[test]
    fn floats_convert_exactly_or_not_at_all() {
        assert_eq!(one(Slice::F64(&[0.5]), Kind::F32, false), Ok(u64::from(0.5_f32.to_bits())));
        assert_eq!(one(Slice::F64(&[0.1]), Kind::F32, false), Err(0));
        assert_eq!(one(Slice::F64(&[1e300]), Kind::F32, false), Err(0));
        assert!(one(Slice::F64(&[f64::NAN]), Kind::F32, false).is_ok());
        assert!(one(Slice::F64(&[f64::INFINITY]), Kind::F32, false).is_ok());
        assert_eq!(one(Slice::F32(&[0.1]), Kind::F64, false), Ok(f64::from(0.1_f32).to_bits()));
        for bad in
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5, -1.0, 18_446_744_073_709_551_616.0, 1e300]
        {
            assert_eq!(one(Slice::F64(&[bad]), Kind::U64, true), Err(0), "{bad}");
        }
        assert_eq!(one(Slice::F64(&[-0.0]), Kind::U64, true), Ok(0));
        let beyond = 2_f64.powi(128);
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5, -1.0, beyond] {
            assert_eq!(wide(Slice::F64(&[bad]), Kind::U128, true), Err(0), "{bad}");
        }
        assert_eq!(wide(Slice::F64(&[beyond / 2.0]), Kind::U128, true), Ok(1 << 127));
        assert_eq!(wide(Slice::F32(&[f32::MAX]), Kind::U128, true), Ok(u128::MAX << 104));
        assert_eq!(wide(Slice::F32(&[f32::INFINITY]), Kind::U128, true), Err(0));
    }

    #[test]
    fn wide_integers_convert_exactly_or_not_at_all() {
        for (number, float) in
            [(1 << 127, true), (u128::MAX, false), (u128::MAX << 104, true), (1 << 53, true)]
        {
            for kind in [Kind::F32, Kind::F64] {
                assert_eq!(wide(Slice::U128(&[number]), kind, false).is_ok(), float, "{number} as {kind:?}");
            }
            assert_eq!(wide(Slice::U128(&[number]), Kind::U64, true).is_ok(), number < 1 << 64);
            assert_eq!(wide(Slice::U128(&[number]), Kind::U128, true), Ok(number));
        }
        assert_eq!(wide(Slice::U128(&[(1 << 53) + 1]), Kind::F64, true), Err(0));
        assert_eq!(wide(Slice::I128(&[-1]), Kind::U128, true), Err(0));
    }

    #[test]
    fn float_keys_are_in_order_and_numbers() {
        let key = |number: f64| one(Slice::F64(&[number]), Kind::F64, true);
        let ascending = [f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, 0.0, 1e-320, 2.0, f64::INFINITY];
        assert!(ascending.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
        assert_eq!(key(-0.0), key(0.0));
        assert_eq!(one(Slice::F32(&[0.1]), Kind::F64, true), key(f64::from(0.1_f32)));
        assert_eq!(one(Slice::I64(&[(1 << 53) + 1]), Kind::F64, true), Err(0));
        let mut out = Column::with_width(8);
        let target = Target::of(Kind::F64, true);
        assert_eq!(append(Slice::F32(&[1.0, f32::NAN, f32::NAN]), target, &mut out), Err(1));
    }

    #[test]
    fn keys_are_encoded_and_values_are_not() {
        assert_eq!(one(Slice::I32(&[-1]), Kind::I32, true), Ok(u64::from((-1_i32).encode())));
        assert_eq!(one(Slice::I32(&[-1]), Kind::I32, false), Ok(0xffff_ffff));
        assert_eq!(one(Slice::I8(&[-1]), Kind::I64, true), Ok((-1_i64).encode()));
        assert_eq!(one(Slice::U32(&[7]), Kind::U32, true), Ok(7));
    }

    #[test]
    fn the_first_misfit_is_named() {
        let mut out = Column::with_width(4);
        let target = Target::of(Kind::U32, true);
        assert_eq!(append(Slice::I64(&[1, 2, -3, -4]), target, &mut out), Err(2));
        assert_eq!(append(Slice::I64(&[1]), target, &mut Column::with_width(8)), Err(0));
    }

    #[test]
    fn text_numbers() {
        let value = |kind| Target::of(kind, false);
        let parse = |text: &[u8], target| match parse(text, target) {
            Ok(word) => Ok(u64::try_from(word).expect("is narrow")),
            Err(problem) => Err(problem),
        };
        assert_eq!(parse(b" +42\t", value(Kind::U32)), Ok(42));
        assert_eq!(parse(b"-0", value(Kind::U64)), Ok(0));
        assert_eq!(parse(b"00000000000000000000000000000007", value(Kind::U64)), Ok(7));
        assert_eq!(parse(b"18446744073709551615", value(Kind::U64)), Ok(u64::MAX));
        assert_eq!(parse(b"-9223372036854775808", value(Kind::I64)), Ok(1 << 63));
        assert_eq!(parse(b"-1", Target::of(Kind::I32, true)), Ok(0x7fff_ffff));
        let nines = [b'9'; 60];
        for bad in [&b"-1"[..], b"18446744073709551616", &nines] {
            assert_eq!(parse(bad, value(Kind::U64)), Err(TextProblem::OutOfRange));
        }
        assert_eq!(parse(b"20.0", value(Kind::U64)), Ok(20));
        assert_eq!(parse(b" -7.000 ", value(Kind::I32)), Ok(u64::from((-7_i32).cast_unsigned())));
        let not_whole =
            [&b"1.5"[..], b"1.", b".0", b"1.0.0", b"1e3", b"1.00000000000000000000000001", b"-.0", b"."];
        for bad in
            not_whole.into_iter().chain([&b"NaN"[..], b"1.0 0", b"--1", b"+", b"0x10", b"1 2", b"\xff"])
        {
            assert_eq!(parse(bad, value(Kind::U64)), Err(TextProblem::NotANumber));
        }
        assert_eq!(parse(b"  ", value(Kind::U64)), Err(TextProblem::Missing));
        assert_eq!(parse(b"1e-3", value(Kind::F64)), Ok(1e-3_f64.to_bits()));
        assert_eq!(parse(b"0.1", value(Kind::F32)), Ok(u64::from(0.1_f32.to_bits())));
        assert_eq!(parse(b"-inf", value(Kind::F64)), Ok(f64::NEG_INFINITY.to_bits()));
        assert!(f64::from_bits(parse(b"nan", value(Kind::F64)).expect("kept")).is_nan());
        assert_eq!(parse(b"1e999", value(Kind::F64)), Err(TextProblem::OutOfRange));
        assert_eq!(parse(b"1e39", value(Kind::F32)), Err(TextProblem::OutOfRange));
    }

    #[test]
    fn text_keys() {
        let wide = Target::of(Kind::U128, true);
        assert_eq!(parse(b"340282366920938463463374607431768211455", wide), Ok(u128::MAX));
        assert_eq!(parse(b"0000000000000000000000000000000000000000000000000017", wide), Ok(17));
        assert_eq!(parse(b"-0", wide), Ok(0));
        for bad in [&b"340282366920938463463374607431768211456"[..], b"-1", &[b'9'; 60]] {
            assert_eq!(parse(bad, wide), Err(TextProblem::OutOfRange));
        }
        let float = Target::of(Kind::F64, true);
        assert_eq!(parse(b"-0.0", float), Ok(0.0_f64.encode().into()));
        assert_eq!(parse(b"-inf", float), Ok(f64::NEG_INFINITY.encode().into()));
        assert_eq!(parse(b"NaN", float), Err(TextProblem::Nan));
    }
}
