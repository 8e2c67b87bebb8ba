//! Reductions: chunks become one tuple per key, and a key that continues in the next chunk is carried.

use super::chunk::Chunk;
use super::columns::{append, key_at, slice, take};
use crate::error::RelationError;
use crate::expr::Point;
use crate::memory::BLOCK_TUPLES;
use crate::rules::Reduction;
use pleach::{KeyType, ValueType};
use pleach_builder::Column;
use std::ops::Range;

/// A reduction of values of one type.
#[derive(Clone, Copy)]
pub(super) struct Fold {
    pub(super) operation: Reduction,
    pub(super) key_type: KeyType,
    pub(super) value_type: ValueType,
    /// Digits after the point of the values, if they are decimals.
    pub(super) scale: u32,
}

impl Fold {
    /// Returns the type of the results; `None` if there is no such reduction.
    pub(super) fn output(self) -> Option<ValueType> {
        use ValueType as T;
        Some(match (self.operation, self.value_type) {
            (Reduction::Count, _) => T::U64,
            (Reduction::First, kind) => kind,
            (Reduction::Sum, T::U32 | T::U64) => T::U64,
            (Reduction::Sum, T::I32 | T::I64) => T::I64,
            (Reduction::Sum, T::F32 | T::F64) => T::F64,
            (Reduction::Avg, T::U32 | T::U64 | T::I32 | T::I64 | T::F32 | T::F64) => T::F64,
            (Reduction::Min | Reduction::Max, kind) if !kind.is_bytes() && kind != T::None => kind,
            _ => return None,
        })
    }

    /// Returns true if results depend on where blocks begin.
    pub(super) fn has_blocks(self) -> bool {
        self.adds() && matches!(self.value_type, ValueType::F32 | ValueType::F64)
    }

    /// Returns true if values are added.
    fn adds(self) -> bool {
        matches!(self.operation, Reduction::Sum | Reduction::Avg)
    }

    /// Returns the result of one value, in 128 bits: sums of integers as 128-bit integers, others unchanged.
    fn single(self, bits: u64) -> u128 {
        match self.operation {
            Reduction::Count => return 1,
            Reduction::Sum | Reduction::Avg => {}
            Reduction::Min | Reduction::Max | Reduction::First => return bits.into(),
        }
        match self.value_type {
            ValueType::I32 => i128::from((bits as u32).cast_signed()).cast_unsigned(),
            ValueType::I64 => i128::from(bits.cast_signed()).cast_unsigned(),
            ValueType::F32 => f64::from(f32::from_bits(bits as u32)).to_bits().into(),
            ValueType::U32 | ValueType::U64 | ValueType::F64 => bits.into(),
            ValueType::None | ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => bits.into(),
        }
    }

    /// Combines two neighbouring results. There are fewer than 2^64 values of 64 bits, so no sum exceeds 128
    /// bits.
    fn both(self, first: u128, second: u128) -> u128 {
        use ValueType as T;
        let [bits, next] = [first, second].map(|bits| bits as u64);
        let is_less = || match self.value_type {
            T::I32 => (next as u32).cast_signed() < (bits as u32).cast_signed(),
            T::I64 => next.cast_signed() < bits.cast_signed(),
            T::F32 => f32::from_bits(next as u32).total_cmp(&f32::from_bits(bits as u32)).is_lt(),
            T::F64 => f64::from_bits(next).total_cmp(&f64::from_bits(bits)).is_lt(),
            _ => next < bits,
        };
        match (self.operation, self.value_type) {
            (Reduction::First, _) => first,
            (Reduction::Sum | Reduction::Avg, T::F32 | T::F64) => {
                (f64::from_bits(bits) + f64::from_bits(next)).to_bits().into()
            }
            (Reduction::Count | Reduction::Sum | Reduction::Avg, _) => first.wrapping_add(second),
            (Reduction::Min, _) if is_less() => second,
            (Reduction::Max, _) if !is_less() && first != second => second,
            (Reduction::Min | Reduction::Max, _) => first,
        }
    }

    /// Reduces a chunk that begins with a block to one tuple per key, with results in 128 bits; the first key
    /// has one tuple for each of its blocks. For a mean these are sums, and `right` has the numbers of values.
    pub(super) fn chunk(self, chunk: &Chunk) -> Chunk {
        let mut rows: Vec<u32> = Vec::new();
        let mut results: Vec<u128> = Vec::new();
        let is_first = self.operation == Reduction::First;
        for from in (0..chunk.len()).step_by(BLOCK_TUPLES) {
            let to = (from + BLOCK_TUPLES).min(chunk.len());
            let goes_on = from > 0 && is_equal(&chunk.keys, from - 1, from);
            // The block's result for its first key, if that key continues from the block before.
            let mut open: Option<u128> = None;
            for at in from..to {
                let bits = if is_first { 0 } else { self.single(bits_at(&chunk.values, at)) };
                let is_new = at == 0 || !is_equal(&chunk.keys, at - 1, at);
                if is_new || (at == from && is_equal(&chunk.keys, 0, at)) {
                    self.close(&mut open, &mut results);
                    rows.push(at as u32);
                    results.push(bits);
                } else if goes_on && rows.last().is_some_and(|&row| (row as usize) < from) {
                    open = Some(open.map_or(bits, |block| self.both(block, bits)));
                } else if let Some(last) = results.last_mut() {
                    *last = self.both(*last, bits);
                }
            }
            self.close(&mut open, &mut results);
        }
        let values = if is_first { take(&chunk.values, &rows) } else { Column::U128(results) };
        let ends = rows.iter().skip(1).copied().chain([chunk.len() as u32]);
        let counts = rows.iter().zip(ends).map(|(&from, to)| u64::from(to - from));
        let right =
            if self.operation == Reduction::Avg { Column::U64(counts.collect()) } else { Column::None };
        Chunk { keys: take(&chunk.keys, &rows), values, right, ..Chunk::default() }
    }

    fn close(self, open: &mut Option<u128>, results: &mut [u128]) {
        if let (Some(block), Some(last)) = (open.take(), results.last_mut()) {
            *last = self.both(*last, block);
        }
    }

    /// Converts a chunk that a device made to the form of [`Fold::chunk`].
    pub(super) fn widened(self, chunk: Chunk) -> Chunk {
        let is_signed = self.operation == Reduction::Sum && self.output() == Some(ValueType::I64);
        let values = match chunk.values {
            values if self.operation == Reduction::First => values,
            Column::U32(words) => Column::U128(words.into_iter().map(u128::from).collect()),
            Column::U64(words) if is_signed => {
                let signed = |bits: u64| i128::from(bits.cast_signed()).cast_unsigned();
                Column::U128(words.into_iter().map(signed).collect())
            }
            Column::U64(words) => Column::U128(words.into_iter().map(u128::from).collect()),
            values => values,
        };
        Chunk { values, ..chunk }
    }

    /// Combines the key that continues from the chunk before, and keeps the last key back.
    pub(super) fn carry(self, carried: Option<Chunk>, chunk: Chunk) -> (Chunk, Option<Chunk>) {
        if chunk.is_empty() {
            return (chunk, carried);
        }
        let parts = (1..chunk.len()).take_while(|&at| is_equal(&chunk.keys, 0, at)).count() + 1;
        let mut done = part(&chunk, 0..0);
        let (mut head, mut from) = (part(&chunk, 0..1), 1);
        match carried {
            Some(carried) if key_at(&carried.keys, 0) == key_at(&chunk.keys, 0) => {
                (head, from) = (carried, 0)
            }
            Some(carried) => done = carried,
            None => {}
        }
        if let (Column::U128(head), Column::U128(results)) = (&mut head.values, &chunk.values) {
            head[0] = results[from..parts].iter().fold(head[0], |head, &block| self.both(head, block));
        }
        if let (Column::U64(head), Column::U64(counts)) = (&mut head.right, &chunk.right) {
            head[0] += counts[from..parts].iter().sum::<u64>();
        }
        for more in [head, part(&chunk, parts..chunk.len())] {
            append(&mut done.keys, &more.keys);
            append(&mut done.values, &more.values);
            append(&mut done.right, &more.right);
        }
        let last = done.len() - 1;
        (part(&done, 0..last), Some(part(&done, last..last + 1)))
    }

    /// Returns the mean: of integers and decimals the nearest float.
    fn mean(self, sum: u128, count: u64) -> f64 {
        match self.value_type {
            ValueType::F32 | ValueType::F64 => f64::from_bits(sum as u64) / count as f64,
            ValueType::I32 | ValueType::I64 => {
                let sum = sum.cast_signed();
                let mean = quotient(sum.unsigned_abs(), u128::from(count) * 10_u128.pow(self.scale));
                if sum < 0 { -mean } else { mean }
            }
            ValueType::U32 | ValueType::U64 => quotient(sum, u128::from(count) * 10_u128.pow(self.scale)),
            // No such values have a mean.
            ValueType::None | ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => 0.0,
        }
    }

    /// Converts results to the type of the answer.
    pub(super) fn finished(self, chunk: Chunk) -> Result<Chunk, RelationError> {
        let Column::U128(results) = &chunk.values else { return Ok(chunk) };
        if let Column::U64(counts) = &chunk.right {
            let means = results.iter().zip(counts).map(|(&sum, &count)| self.mean(sum, count).to_bits());
            let values = Column::U64(means.collect());
            return Ok(Chunk { values, right: Column::None, ..chunk });
        }
        let output = self.output();
        let is_signed = self.operation == Reduction::Sum && output == Some(ValueType::I64);
        let fits = |result: u128| {
            if is_signed {
                i64::try_from(result.cast_signed()).is_ok()
            } else {
                u64::try_from(result).is_ok()
            }
        };
        if let Some(at) = results.iter().position(|&result| !fits(result)) {
            let key = match key_at(&chunk.keys, at) {
                Point::Word(word) => pleach::Datum::of_word(self.key_type, word),
                Point::Bytes(bytes) => pleach::Datum::of_bytes(self.key_type, bytes),
            };
            return Err(RelationError::Overflow { key: format!("{key:?}") });
        }
        let values = match output.map(ValueType::bytes) {
            Some(4) => Column::U32(results.iter().map(|&bits| bits as u32).collect()),
            _ => Column::U64(results.iter().map(|&bits| bits as u64).collect()),
        };
        Ok(Chunk { values, ..chunk })
    }
}

/// Divides whole numbers, the second of them at least 1 and below 2^127; returns the nearest float.
fn quotient(number: u128, divisor: u128) -> f64 {
    let (mut whole, mut rest, mut places) = (number / divisor, number % divisor, 0);
    // More bits than a float has; what is left of them decides ties.
    while rest > 0 && whole < 1 << 62 {
        rest *= 2;
        whole = whole << 1 | u128::from(rest >= divisor);
        if rest >= divisor {
            rest -= divisor;
        }
        places += 1;
    }
    (whole | u128::from(rest > 0)) as f64 * f64::powi(2.0, -places)
}

fn is_equal(keys: &Column, one: usize, other: usize) -> bool {
    match keys {
        Column::Bytes(strings) => strings.get(one) == strings.get(other),
        Column::U32(words) => words[one] == words[other],
        Column::U64(words) => words[one] == words[other],
        Column::U128(words) => words[one] == words[other],
        Column::None => true,
    }
}

fn bits_at(values: &Column, at: usize) -> u64 {
    match values {
        Column::U32(words) => words[at].into(),
        Column::U64(words) => words[at],
        _ => 0,
    }
}

fn part(chunk: &Chunk, range: Range<usize>) -> Chunk {
    Chunk {
        keys: slice(&chunk.keys, range.clone()),
        values: slice(&chunk.values, range.clone()),
        right: slice(&chunk.right, range),
        ..Chunk::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_the_nearest_floats() {
        // Small ones are exact in floats, so that the division of floats rounds once.
        for number in (0..3000_u128).chain([1 << 52, (1 << 53) - 1]) {
            for divisor in [1_u128, 2, 3, 7, 10, 1000, 999_983, (1 << 53) - 1] {
                assert_eq!(quotient(number, divisor), number as f64 / divisor as f64, "{number} / {divisor}");
            }
        }
        // What has more digits, beside texts of decimals, which are parsed exactly.
        for number in [u128::from(u64::MAX), u128::MAX >> 1, 123_456_789_012_345_678_901_234_567_890] {
            for zeros in [0, 1, 9, 18, 36] {
                let wanted: f64 = format!("{number}e-{zeros}").parse().unwrap();
                assert_eq!(quotient(number, 10_u128.pow(zeros)), wanted, "{number} / 10^{zeros}");
            }
        }
        let tie = (1_u128 << 53) + 1;
        assert_eq!(quotient(tie, 1), (1_u64 << 53) as f64);
        assert_eq!(quotient(tie * 3 + 1, 3), (tie + 1) as f64);
        assert_eq!(quotient(tie * 3 - 1, 3), (tie - 1) as f64);
    }
}
