//! Rows without anything unusual, parsed from a block of whole lines.

use super::dialect::Dialect;
use crate::kind::{Kind, Target};
use crate::{parse, strings};
use memchr::memchr;
use pleach_builder::Strings;

/// Parameters for parsing a block of lines.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) dialect: Dialect,
    pub(crate) fields: usize,
    pub(crate) key: (usize, Target),
    pub(crate) value: Option<(usize, Target)>,
    pub(crate) rows_max: usize,
}

/// A column that the fast rows fill.
pub(crate) trait Lane {
    /// A parsed element.
    type Parsed: Copy + Default;

    /// Parses the field at `at`; returns it and its end, or `None` if it needs a closer look. A line feed
    /// follows at the latest.
    fn parse(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<(Self::Parsed, usize)>;

    /// Appends an element that was parsed from `block`.
    fn push(&mut self, parsed: Self::Parsed, block: &[u8]);
}

impl Lane for Vec<u32> {
    type Parsed = u64;
    #[inline(always)]
    fn parse(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<(u64, usize)> {
        number(block, at, target, dialect.delimiter)
    }
    #[inline(always)]
    fn push(&mut self, parsed: u64, _: &[u8]) {
        self.push(parsed as u32);
    }
}

impl Lane for Vec<u64> {
    type Parsed = u64;
    #[inline(always)]
    fn parse(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<(u64, usize)> {
        number(block, at, target, dialect.delimiter)
    }
    #[inline(always)]
    fn push(&mut self, parsed: u64, _: &[u8]) {
        self.push(parsed);
    }
}

impl Lane for Vec<u128> {
    type Parsed = u128;
    #[inline(always)]
    fn parse(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<(u128, usize)> {
        if target.form.is_some() {
            meant(block, at, target, dialect.delimiter)
        } else {
            wide_number(block, at)
        }
    }
    #[inline(always)]
    fn push(&mut self, parsed: u128, _: &[u8]) {
        self.push(parsed);
    }
}

impl Lane for Strings {
    type Parsed = (usize, usize);
    #[inline(always)]
    fn parse(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<((usize, usize), usize)> {
        string(block, at, target, dialect)
    }
    #[inline(always)]
    fn push(&mut self, (start, end): (usize, usize), block: &[u8]) {
        self.push(&block[start..end]);
    }
}

/// No column.
pub(crate) struct Nothing;

impl Lane for Nothing {
    type Parsed = ();
    fn parse(_: &[u8], _: usize, _: Target, _: Dialect) -> Option<((), usize)> {
        None
    }
    #[inline(always)]
    fn push(&mut self, (): (), _: &[u8]) {}
}

/// Takes rows from the start of `block`, which ends in a line feed, up to the first that is not simple;
/// returns the bytes and rows taken. A simple row has the right number of fields; its wanted fields contain
/// nothing but a number, or a string that fits and has no doubled quotes and no escapes.
pub(crate) fn fast_rows<K: Lane, V: Lane>(
    block: &[u8],
    plan: Plan,
    keys: &mut K,
    values: &mut V,
) -> (usize, usize) {
    let mut start = 0;
    let mut rows = 0;
    // A column that is key and value at once is left to the slow rows.
    if plan.value.is_some_and(|(index, _)| index == plan.key.0) {
        return (0, 0);
    }
    let value_index = plan.value.map_or(usize::MAX, |(index, _)| index);
    let value_target = plan.value.map_or(plan.key.1, |(_, target)| target);
    while start < block.len() && rows < plan.rows_max {
        match block[start] {
            b'\n' => {
                start += 1;
                continue;
            }
            b'\r' if block[start + 1] == b'\n' => {
                start += 2;
                continue;
            }
            _ => {}
        }
        let mut at = start;
        let (mut key, mut value) = (K::Parsed::default(), V::Parsed::default());
        for field in 0..plan.fields {
            if field == plan.key.0 {
                let Some((word, next)) = K::parse(block, at, plan.key.1, plan.dialect) else {
                    return (start, rows);
                };
                (key, at) = (word, next);
            } else if field == value_index {
                let Some((word, next)) = V::parse(block, at, value_target, plan.dialect) else {
                    return (start, rows);
                };
                (value, at) = (word, next);
            } else {
                let next = if plan.dialect.quotes && block[at] == b'"' {
                    quoted(block, at)
                } else {
                    plan.dialect.plain_field(&block[at..]).map(|length| at + length)
                };
                let Some(next) = next else { return (start, rows) };
                at = next;
            }
            let last = field + 1 == plan.fields;
            match block[at] {
                b'\n' if last => at += 1,
                b'\r' if last && block[at + 1] == b'\n' => at += 2,
                byte if !last && byte == plan.dialect.delimiter => at += 1,
                _ => return (start, rows),
            }
        }
        keys.push(key, block);
        values.push(value, block);
        rows += 1;
        start = at;
    }
    (start, rows)
}

/// Parses the number at `at` as the word of `target`; returns it and its end, or `None` if it needs a closer
/// look. A line feed follows at the latest.
#[inline]
fn number(block: &[u8], at: usize, target: Target, delimiter: u8) -> Option<(u64, usize)> {
    if target.kind.is_float() || target.form.is_some() {
        return float(block, at, target, delimiter);
    }
    let negative = block[at] == b'-';
    let first = at + usize::from(negative || block[at] == b'+');
    let mut end = first;
    let mut magnitude = 0_u64;
    loop {
        let digit = block[end].wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        magnitude = magnitude.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    match end - first {
        1..=19 => {}
        // From 10^19 up to 2^64: a sum that overflowed is below 2 * 10^19 - 2^64.
        20 if block[first] == b'1' && magnitude >= 10_000_000_000_000_000_000 => {}
        _ => return None,
    }
    let word = match target.kind {
        Kind::U32 if !negative => u64::from(u32::try_from(magnitude).ok()?),
        Kind::U64 if !negative => magnitude,
        Kind::I32 => {
            let number = i64::try_from(magnitude).ok()?;
            u64::from(i32::try_from(if negative { -number } else { number }).ok()?.cast_unsigned())
        }
        Kind::I64 => {
            let number = i64::try_from(magnitude).ok()?;
            (if negative { -number } else { number }).cast_unsigned()
        }
        _ => return None,
    };
    Some((word ^ target.flip(), end))
}

fn float(block: &[u8], at: usize, target: Target, delimiter: u8) -> Option<(u64, usize)> {
    let (word, end) = meant(block, at, target, delimiter)?;
    Some((u64::try_from(word).ok()?, end))
}

/// Parses the text at `at`, as [`parse::parse`] does, up to the end of its field.
fn meant(block: &[u8], at: usize, target: Target, delimiter: u8) -> Option<(u128, usize)> {
    let ends = |&byte: &u8| byte == delimiter || matches!(byte, b'\n' | b'\r' | b'"');
    let end = at + block[at..].iter().position(ends)?;
    Some((parse::parse(&block[at..end], target).ok()?, end))
}

/// Does the same as [`number`] for `u128`, for at most 38 digits.
#[inline]
fn wide_number(block: &[u8], at: usize) -> Option<(u128, usize)> {
    let mut end = at;
    // Two groups of 19 digits, each of which fits in a word.
    let mut digits = || {
        let (mut magnitude, mut power, first) = (0_u64, 1_u64, end);
        while end < first + 19 && block[end].is_ascii_digit() {
            magnitude = magnitude * 10 + u64::from(block[end] - b'0');
            power *= 10;
            end += 1;
        }
        (u128::from(magnitude), u128::from(power))
    };
    let (high, _) = digits();
    let (low, power) = digits();
    let is_number = end > at && !block[end].is_ascii_digit();
    is_number.then_some((high * power + low, end))
}

/// Returns the range of the string at `at` and the end of its field, if it fits `target` and is stored
/// unescaped.
#[inline]
fn string(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<((usize, usize), usize)> {
    let (start, end, next) = if dialect.quotes && block[at] == b'"' {
        let next = quoted(block, at)?;
        (at + 1, next - 1, next)
    } else {
        let mut end = at + dialect.plain_field(&block[at..])?;
        if block[end] == b'\n' && end > at && block[end - 1] == b'\r' {
            end -= 1;
        }
        (at, end, end)
    };
    let field = &block[start..end];
    if !dialect.quotes && memchr(b'\\', field).is_some() || field.starts_with(b"\\x") || target.form.is_some()
    {
        return None;
    }
    strings::check(field, false, target).ok()?;
    Some(((start, end), next))
}

/// Returns the end of the quoted field at `at`, if it ends in this block. If the field has a doubled quote,
/// the result is the position of another quote, where no row can continue.
#[inline]
fn quoted(block: &[u8], at: usize) -> Option<usize> {
    Some(at + 1 + memchr(b'"', &block[at + 1..])? + 1)
}
