//! Conversion of byte strings of an input to those of a column: checked, copied, never trimmed or cut.
//!
//! Texts become bytes, and bytes become texts if they are valid UTF-8; `bytesN` takes only strings of N
//! bytes. Numbers come from the digits of a text, and a `u128` also from 16 bytes, most significant first, the
//! form of uuids and hashes.

use crate::kind::{Kind, Target};
use crate::parse::{Shown, TextProblem, parse, trim};
use crate::problem::{fault, missing, nan_key, place, problem};
use pleach_builder::{Column, SourceError};
use pleach_format::logical::{Element, TextError, with_article};
use pleach_format::types::KEY_BYTES_MAX;

/// Problem of a byte string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringProblem {
    NotUtf8,
    Length,
    /// It is too long for a key.
    TooLong,
    NotANumber(TextProblem),
}

/// Checks that `string` can be an element of `target`, a column of byte strings. `valid`: it is known to be
/// UTF-8.
#[inline]
pub(crate) fn check(string: &[u8], valid: bool, target: Target) -> Result<(), StringProblem> {
    if target.key && string.len() > KEY_BYTES_MAX {
        return Err(StringProblem::TooLong);
    }
    match target.kind {
        Kind::Fixed(bytes) if string.len() != usize::from(bytes) => Err(StringProblem::Length),
        Kind::Utf8 if !valid && std::str::from_utf8(string).is_err() => Err(StringProblem::NotUtf8),
        _ => Ok(()),
    }
}

/// Returns the bytes that a field of text denotes if it is `\x` and their hexadecimal digits, the form in
/// which byte strings are exported as text. `None` for other fields, or for a column of texts.
pub(crate) fn hexadecimal(field: &[u8], target: Target) -> Option<Vec<u8>> {
    let digits = field.strip_prefix(b"\\x")?;
    match target.kind {
        Kind::Bytes => {}
        // N bytes of text that happen to look like this are N bytes.
        Kind::Fixed(bytes) if digits.len() == 2 * usize::from(bytes) => {}
        _ => return None,
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes = pairs.iter().map(|&[high, low]| Some((digit(high)? << 4 | digit(low)?) as u8));
    if rest.is_empty() { bytes.collect() } else { None }
}

/// Appends `strings`, texts if `valid`. For the first that does not fit, returns its index and the problem;
/// `out` is then unspecified. O(bytes).
pub(crate) fn append<'a>(
    strings: impl Iterator<Item = &'a [u8]>,
    valid: bool,
    target: Target,
    out: &mut Column,
) -> Result<(), (usize, StringProblem)> {
    for (index, string) in strings.enumerate() {
        push(string, valid, target, out).map_err(|what| (index, what))?;
    }
    Ok(())
}

#[inline]
fn push(string: &[u8], valid: bool, target: Target, out: &mut Column) -> Result<(), StringProblem> {
    match out {
        Column::Bytes(out) if let Some(form) = target.form.filter(|_| valid) => {
            let problem = |error| StringProblem::NotANumber(TextProblem::Meaning(form, error));
            let text = if form.is_verbatim() { string } else { trim(string) };
            match form.element(text).map_err(problem)? {
                Element::Bytes(bytes) => {
                    check(&bytes, false, target)?;
                    out.push(&bytes);
                }
                // Numbers of 128 bits as values.
                Element::Unsigned(number) => out.push(&number.to_be_bytes()),
                Element::Signed(_) => return Err(problem(TextError::Form)),
            }
            Ok(())
        }
        Column::U32(words) if valid => {
            words.push(parse(string, target).map_err(StringProblem::NotANumber)? as u32);
            Ok(())
        }
        Column::U64(words) if valid => {
            words.push(parse(string, target).map_err(StringProblem::NotANumber)? as u64);
            Ok(())
        }
        Column::Bytes(out) => {
            check(string, valid, target)?;
            out.push(string);
            Ok(())
        }
        Column::U128(words) if valid => {
            words.push(parse(string, target).map_err(StringProblem::NotANumber)?);
            Ok(())
        }
        Column::U128(words) => {
            words.push(u128::from_be_bytes(string.try_into().map_err(|_| StringProblem::Length)?));
            Ok(())
        }
        // A source makes its columns from its schema; strings become no other words.
        _ => Err(StringProblem::Length),
    }
}

/// Returns how many of the first strings have at most `bytes` bytes together; at least one.
pub(crate) fn prefix(lengths: impl Iterator<Item = usize>, bytes: usize) -> usize {
    let mut sum = 0_usize;
    lengths
        .take_while(|length| {
            sum = sum.saturating_add(*length);
            sum <= bytes
        })
        .count()
        .max(1)
}

/// Makes the error for a byte string that does not fit.
pub(crate) fn misfit(
    input: &str,
    row: u64,
    label: &str,
    string: &[u8],
    target: Target,
    what: StringProblem,
) -> SourceError {
    let (option, shown, bytes) = (target.option(), Shown(string), string.len());
    let text = match what {
        StringProblem::NotUtf8 => {
            fault(format!("{shown} is not valid UTF-8"), format!("choose bytes with {option}"))
        }
        StringProblem::Length => {
            let wanted =
                if target.kind == Kind::U128 { "u128 (16 bytes)".into() } else { target.kind.bounds() };
            fault(
                format!("{shown} has {bytes} bytes and does not fit {wanted}"),
                format!("choose another type with {option}"),
            )
        }
        StringProblem::TooLong => fault(
            format!("it has {bytes} bytes, but a key has at most {KEY_BYTES_MAX}"),
            "shorten it, or choose another column with --key",
        ),
        StringProblem::NotANumber(TextProblem::Missing) => {
            let kind = if target.kind.is_float() { "number" } else { "whole number" };
            fault(
                format!("it is an empty text, not a {kind}"),
                format!("fill or drop such rows, or choose another type with {option}"),
            )
        }
        StringProblem::NotANumber(what) => return unparsed(input, row, label, string, target, what),
    };
    problem(input, place(row, label), text)
}

/// Makes the error for a field of text that does not fit. Hexadecimal digits alone are never taken for bytes,
/// since they may be text.
pub(crate) fn misfit_of_text(
    input: &str,
    row: u64,
    label: &str,
    field: &[u8],
    target: Target,
    what: StringProblem,
) -> SourceError {
    let is_digits = matches!(target.kind, Kind::Fixed(bytes) if field.len() == 2 * usize::from(bytes))
        && field.iter().all(u8::is_ascii_hexdigit);
    if what != StringProblem::Length || !is_digits {
        return misfit(input, row, label, field, target, what);
    }
    let (shown, bytes, wanted) = (Shown(field), field.len(), target.kind.bounds());
    let text = fault(
        format!("{shown} has {bytes} bytes and does not fit {wanted}"),
        format!("if these are hexadecimal digits, give {0} hex, else another type with {0}", target.option()),
    );
    problem(input, place(row, label), text)
}

/// Makes the error for a text that is not the expected number.
pub(crate) fn unparsed(
    input: &str,
    row: u64,
    label: &str,
    field: &[u8],
    target: Target,
    what: TextProblem,
) -> SourceError {
    let option = target.option();
    let text = match what {
        TextProblem::Missing => return missing(input, row, label),
        TextProblem::Nan => return nan_key(input, row, label),
        TextProblem::NotANumber => {
            let kind = if target.kind.is_float() { "number" } else { "whole number" };
            fault(
                format!("not a {kind}: {}", Shown(field)),
                format!("correct it, or choose another column or {option}"),
            )
        }
        TextProblem::Meaning(form, error) => {
            let (noun, advice) = (form.noun(), form.advice(error));
            fault(format!("not {}: {}", with_article(&noun), Shown(field)), advice)
        }
        TextProblem::OutOfRange => {
            let bounds = target.kind.bounds();
            fault(
                format!("{} does not fit {bounds}", Shown(field)),
                format!("choose another type with {option}"),
            )
        }
    };
    problem(input, place(row, label), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_fit_or_not() {
        let key = |kind| Target::of(kind, true);
        assert_eq!(check(b"\xff", false, key(Kind::Bytes)), Ok(()));
        assert_eq!(hexadecimal(b"\\x00fF", key(Kind::Bytes)), Some(vec![0, 255]));
        assert_eq!(hexadecimal(b"\\x", key(Kind::Bytes)), Some(vec![]));
        assert_eq!(hexadecimal(b"\\x00ff", key(Kind::Fixed(2))), Some(vec![0, 255]));
        for (field, kind) in [
            (&b"\\x00ff"[..], Kind::Fixed(3)),
            (b"\\x00ff", Kind::Utf8),
            (b"\\x0", Kind::Bytes),
            (b"\\x0g", Kind::Bytes),
            (b"00ff", Kind::Bytes),
        ] {
            assert_eq!(hexadecimal(field, key(kind)), None);
        }
        assert_eq!(check(b"\xff", false, key(Kind::Utf8)), Err(StringProblem::NotUtf8));
        assert_eq!(check(b"", false, key(Kind::Utf8)), Ok(()));
        assert_eq!(check(b"abc", false, key(Kind::Fixed(3))), Ok(()));
        assert_eq!(check(b"ab", false, key(Kind::Fixed(3))), Err(StringProblem::Length));
        let long = vec![0; KEY_BYTES_MAX + 1];
        assert_eq!(check(&long, false, key(Kind::Bytes)), Err(StringProblem::TooLong));
        assert_eq!(check(&long[1..], false, key(Kind::Bytes)), Ok(()));
        assert_eq!(check(&long, false, Target::of(Kind::Bytes, false)), Ok(()));
    }

    #[test]
    fn strings_become_wide_numbers() {
        let target = Target::of(Kind::U128, true);
        let mut out = Column::with_width(16);
        let sixteen = [&[1; 16][..], &[0; 16]];
        append(sixteen.into_iter(), false, target, &mut out).expect("fits");
        append([&b"17"[..]].into_iter(), true, target, &mut out).expect("fits");
        let ones = u128::MAX / 255;
        assert_eq!(out, Column::U128(vec![ones, 0, 17]));
        let short = append([&b"17"[..]].into_iter(), false, target, &mut out);
        assert_eq!(short, Err((0, StringProblem::Length)));
        let not = append([&b"1"[..], b"x"].into_iter(), true, target, &mut out);
        assert_eq!(not, Err((1, StringProblem::NotANumber(TextProblem::NotANumber))));
    }

    #[test]
    fn prefixes_are_not_empty() {
        assert_eq!(prefix([3, 4, 5].into_iter(), 7), 2);
        assert_eq!(prefix([3, 4, 5].into_iter(), 12), 3);
        assert_eq!(prefix([9].into_iter(), 7), 1);
        assert_eq!(prefix([9, 0].into_iter(), 0), 1);
    }
}
