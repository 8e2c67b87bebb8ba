//! Elements of columns: parts, selections and single ones.

use crate::expr::Point;
use pleach::{Key as _, KeyType};
use pleach_builder::{Column, Strings};
use std::ops::Range;

/// Position of a missing tuple.
pub(super) const NONE: u32 = u32::MAX;

/// Appends a column of the same type.
pub(super) fn append(column: &mut Column, more: &Column) {
    match (column, more) {
        (Column::U32(words), Column::U32(more)) => words.extend_from_slice(more),
        (Column::U64(words), Column::U64(more)) => words.extend_from_slice(more),
        (Column::U128(words), Column::U128(more)) => words.extend_from_slice(more),
        (Column::Bytes(strings), Column::Bytes(more)) => more.iter().for_each(|string| strings.push(string)),
        _ => {}
    }
}

/// Copies a range of a column.
pub(super) fn slice(column: &Column, range: Range<usize>) -> Column {
    match column {
        Column::None => Column::None,
        Column::U32(words) => Column::U32(words[range].to_vec()),
        Column::U64(words) => Column::U64(words[range].to_vec()),
        Column::U128(words) => Column::U128(words[range].to_vec()),
        Column::Bytes(strings) => {
            let mut copy = Strings::default();
            range.for_each(|at| copy.push(strings.get(at)));
            Column::Bytes(copy)
        }
    }
}

/// Returns the elements at positions, all of which exist.
pub(crate) fn take(column: &Column, rows: &[u32]) -> Column {
    take_or_zeros(column, rows, 0)
}

/// Returns the elements at positions; zero, or a string of `absent_bytes` zero bytes, where a position is
/// [`NONE`].
pub(super) fn take_or_zeros(column: &Column, rows: &[u32], absent_bytes: usize) -> Column {
    fn words<W: Copy + Default>(words: &[W], rows: &[u32]) -> Vec<W> {
        rows.iter().map(|&row| words.get(row as usize).copied().unwrap_or_default()).collect()
    }
    match column {
        Column::None => Column::None,
        Column::U32(column) => Column::U32(words(column, rows)),
        Column::U64(column) => Column::U64(words(column, rows)),
        Column::U128(column) => Column::U128(words(column, rows)),
        Column::Bytes(strings) => {
            let absent = vec![0; absent_bytes];
            let mut taken = Strings::default();
            rows.iter()
                .for_each(|&row| taken.push(if row == NONE { &absent } else { strings.get(row as usize) }));
            Column::Bytes(taken)
        }
    }
}

/// Returns the keys at positions; the key zero, or a string of zero bytes as long as all keys, where a
/// position is [`NONE`].
pub(super) fn take_keys(keys: &Column, rows: &[u32], key_type: KeyType) -> Column {
    fn words<W: Copy>(words: &[W], rows: &[u32], zero: W) -> Vec<W> {
        rows.iter().map(|&row| words.get(row as usize).copied().unwrap_or(zero)).collect()
    }
    let zero = match key_type {
        KeyType::I32 => 0_i32.encode().into(),
        KeyType::I64 => 0_i64.encode(),
        KeyType::F64 => 0_f64.encode(),
        KeyType::U32 | KeyType::U64 | KeyType::U128 | KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => 0,
    };
    match keys {
        Column::U32(column) => Column::U32(words(column, rows, zero as u32)),
        Column::U64(column) => Column::U64(words(column, rows, zero)),
        Column::U128(column) => Column::U128(words(column, rows, zero.into())),
        Column::Bytes(_) | Column::None => take_or_zeros(keys, rows, key_type.bytes()),
    }
}

/// Returns elements of the left column where there is a left position, otherwise of the right one.
pub(super) fn take_either(left: &Column, right: &Column, rows: (&[u32], &[u32])) -> Column {
    fn words<W: Copy + Default>(left: &[W], right: &[W], (i, j): (&[u32], &[u32])) -> Vec<W> {
        let one = |(&i, &j): (&u32, &u32)| left.get(i as usize).or_else(|| right.get(j as usize)).copied();
        i.iter().zip(j).map(|rows| one(rows).unwrap_or_default()).collect()
    }
    match (left, right) {
        (Column::U32(left), Column::U32(right)) => Column::U32(words(left, right, rows)),
        (Column::U64(left), Column::U64(right)) => Column::U64(words(left, right, rows)),
        (Column::U128(left), Column::U128(right)) => Column::U128(words(left, right, rows)),
        (Column::Bytes(left), Column::Bytes(right)) => {
            let mut taken = Strings::default();
            for (&i, &j) in rows.0.iter().zip(rows.1) {
                taken.push(if i == NONE { right.get(j as usize) } else { left.get(i as usize) });
            }
            Column::Bytes(taken)
        }
        _ => take(left, rows.0),
    }
}

/// Returns the key at a position.
pub(super) fn key_at(keys: &Column, at: usize) -> Point {
    match keys {
        Column::Bytes(strings) => Point::Bytes(strings.get(at).to_vec()),
        Column::U32(words) => Point::Word(words[at].into()),
        Column::U64(words) => Point::Word(words[at].into()),
        Column::U128(words) => Point::Word(words[at]),
        Column::None => Point::Word(0),
    }
}

/// Returns the bytes of an element, of a number in `word`; `None` if there is no column. Words of keys are decoded.
pub(super) fn bytes_of<'a>(
    column: &'a Column,
    at: usize,
    key_type: Option<KeyType>,
    word: &'a mut [u8; 8],
) -> Option<&'a [u8]> {
    let bytes = match column {
        Column::None | Column::U128(_) => return None,
        Column::Bytes(strings) => return Some(strings.get(at)),
        Column::U32(words) => {
            let is_signed = key_type == Some(KeyType::I32);
            let number = if is_signed { i32::decode(words[at]).cast_unsigned() } else { words[at] };
            *word = u64::from(number).to_le_bytes();
            4
        }
        Column::U64(words) => {
            let number = match key_type {
                Some(KeyType::I64) => i64::decode(words[at]).cast_unsigned(),
                Some(KeyType::F64) => f64::decode(words[at]).to_bits(),
                Some(KeyType::U32 | KeyType::U64 | KeyType::U128 | KeyType::I32) | None => words[at],
                Some(KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8) => words[at],
            };
            *word = number.to_le_bytes();
            8
        }
    };
    Some(&word[..bytes])
}
