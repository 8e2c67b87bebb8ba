//! Numbers of a text table, as words of a column.

use crate::kind::{Kind, Target};
use crate::text::whole;
use pleach_format::logical::{Element, Form, TextError};
use pleach_format::{Key, Value};
use std::fmt;

/// Parses one number of a text table into the word of `target`. Integers are digits with an optional sign,
/// optional spaces and tabs around them, and optionally a point followed by zeros only. Floats are whatever
/// Rust's parser accepts (decimal, exponent, `inf`, `NaN`), rounded to the nearest.
pub(crate) fn parse(field: &[u8], target: Target) -> Result<u128, TextProblem> {
    let is_verbatim = target.form.is_some_and(Form::is_verbatim);
    let text = if is_verbatim { field } else { trim(field) };
    if text.is_empty() && !is_verbatim {
        return Err(TextProblem::Missing);
    }
    if let Some(form) = target.form {
        return parse_meant(text, form, target);
    }
    if target.kind.is_float() {
        return parse_float(text, target).map(u128::from);
    }
    let (negative, magnitude) = parse_integer(whole(text).unwrap_or(text))?;
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
    let problem = |error| TextProblem::Meaning(form, error);
    let number = match form.element(text).map_err(problem)? {
        Element::Signed(number) => number,
        Element::Unsigned(number) => {
            let fits = match target.kind {
                Kind::U32 => u32::try_from(number).is_ok(),
                Kind::U64 => u64::try_from(number).is_ok(),
                Kind::U128 => true,
                _ => false,
            };
            return if fits { Ok(number) } else { Err(problem(TextError::Range)) };
        }
        // Byte strings are no words; [`crate::strings`] takes them.
        Element::Bytes(_) => return Err(problem(TextError::Form)),
    };
    if !form.holds(number) {
        return Err(problem(TextError::Range));
    }
    let bits = match target.kind {
        Kind::I32 => i32::try_from(number).ok().map(|number| number.cast_unsigned().into()),
        _ => Some(number.cast_unsigned()),
    };
    bits.map(|bits| u128::from(bits ^ target.flip())).ok_or(problem(TextError::Range))
}

/// Returns a field without the spaces and tabs around it.
pub(crate) fn trim(mut field: &[u8]) -> &[u8] {
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
pub(crate) enum TextProblem {
    Missing,
    NotANumber,
    OutOfRange,
    /// NaN as a key.
    Nan,
    /// It is not a valid text of the logical type.
    Meaning(Form, TextError),
}

/// A field in the form shown in messages: at most 40 bytes, control characters escaped.
pub(crate) struct Shown<'a>(pub(crate) &'a [u8]);

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
