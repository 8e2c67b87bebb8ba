//! Tuples as words, and packing of them into tuple lines.
//!
//! Input comes as columns, sorted tuples as rows. One loop packs both; its counts are constants once the
//! types are known, so it compiles to a few wide moves per line. Spilled runs are kept as tuple lines, too:
//! one packing, one unpacking, and no padding bytes of structs.

use crate::error::BuildError;
use crate::parallel;
use crate::source::Column;
use pleach_format::key::{Bits, Word};
use pleach_format::line::{self, Line};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// A key word that the builder can sort and find in a column.
pub(crate) trait KeyLane: Word + FromBytes + IntoBytes + Immutable {
    /// Returns the words of a column, if it has this width.
    fn of(column: &Column) -> Option<&[Self]>;
    /// Takes the memory of a column, if it has this width.
    fn take(column: &mut Column) -> Vec<Self>;
    /// Makes a column of these words.
    fn give(words: Vec<Self>) -> Column;
}

/// Value bits that the builder can find in a column.
pub(crate) trait ValueLane: Bits + FromZeros + IntoBytes {
    /// Returns the `len` values of a column, if it has this width.
    fn of(column: &Column, len: usize) -> Option<&[Self]>;
    /// Takes the memory of a column, if it has this width.
    fn take(column: &mut Column) -> Vec<Self>;
    /// Makes a column of these values.
    fn give(values: Vec<Self>) -> Column;
}

macro_rules! lanes {
    ($($lane:ident for $($word:ident $variant:ident),*;)*) => {$($(
        lanes!(@ $lane $word $variant);
    )*)*};
    (@ memory $variant:ident) => {
        fn take(column: &mut Column) -> Vec<Self> {
            match column { Column::$variant(words) => std::mem::take(words), _ => Vec::new() }
        }
        fn give(words: Vec<Self>) -> Column {
            Column::$variant(words)
        }
    };
    (@ KeyLane $word:ident $variant:ident) => {
        impl KeyLane for $word {
            fn of(column: &Column) -> Option<&[Self]> {
                match column { Column::$variant(words) => Some(words), _ => None }
            }
            lanes!(@ memory $variant);
        }
    };
    (@ ValueLane $word:ident $variant:ident) => {
        impl ValueLane for $word {
            fn of(column: &Column, len: usize) -> Option<&[Self]> {
                match column { Column::$variant(words) if words.len() == len => Some(words), _ => None }
            }
            lanes!(@ memory $variant);
        }
    };
}
lanes! {
    KeyLane for u32 U32, u64 U64, u128 U128;
    ValueLane for u32 U32, u64 U64;
}

impl ValueLane for () {
    fn of(column: &Column, len: usize) -> Option<&[Self]> {
        static NOTHING: [(); usize::MAX] = [(); usize::MAX];
        matches!(column, Column::None).then(|| &NOTHING[..len])
    }
    fn take(_column: &mut Column) -> Vec<Self> {
        Vec::new()
    }
    fn give(_values: Vec<Self>) -> Column {
        Column::None
    }
}

/// A tuple in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, FromZeros)]
#[repr(C)]
pub(crate) struct Tuple<W, B> {
    /// Encoded key.
    pub key: W,
    /// Value bits.
    pub value: B,
}

/// Receives consecutive tuples.
pub(crate) type Take<'a, W, B> = dyn FnMut(&[Tuple<W, B>]) -> Result<(), BuildError> + 'a;

/// Consecutive tuples in any representation.
pub(crate) trait Rows<W: KeyLane, B: ValueLane>: Copy + Send + Sync {
    /// Returns the number of tuples.
    fn len(self) -> usize;
    /// Returns the key of a tuple.
    fn key(self, at: usize) -> W;
    /// Returns the value of a tuple.
    fn value(self, at: usize) -> B;
    /// Returns the tuples `from..to`.
    fn slice(self, from: usize, to: usize) -> Self;

    /// Returns a tuple.
    #[inline(always)]
    fn tuple(self, at: usize) -> Tuple<W, B> {
        Tuple { key: self.key(at), value: self.value(at) }
    }
}

/// Tuples as two columns of equal length.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a, W, B> {
    pub keys: &'a [W],
    pub values: &'a [B],
}

impl<W: KeyLane, B: ValueLane> Rows<W, B> for Columns<'_, W, B> {
    #[inline(always)]
    fn len(self) -> usize {
        self.keys.len()
    }
    #[inline(always)]
    fn key(self, at: usize) -> W {
        self.keys[at]
    }
    #[inline(always)]
    fn value(self, at: usize) -> B {
        self.values[at]
    }
    #[inline(always)]
    fn slice(self, from: usize, to: usize) -> Self {
        Self { keys: &self.keys[from..to], values: &self.values[from..to] }
    }
}

impl<W: KeyLane, B: ValueLane> Rows<W, B> for &[Tuple<W, B>] {
    #[inline(always)]
    fn len(self) -> usize {
        <[Tuple<W, B>]>::len(self)
    }
    #[inline(always)]
    fn key(self, at: usize) -> W {
        self[at].key
    }
    #[inline(always)]
    fn value(self, at: usize) -> B {
        self[at].value
    }
    #[inline(always)]
    fn slice(self, from: usize, to: usize) -> Self {
        &self[from..to]
    }
}

/// Returns the number of tuples in a full line.
pub(crate) const fn per_line<W: Word, B: Bits>() -> usize {
    line::geometry::<W, B>().tuples_per_line()
}

/// Packs `lines.len()` full lines. `rows` has exactly the tuples that fill them.
#[inline]
pub(crate) fn pack<W: KeyLane, B: ValueLane, R: Rows<W, B>>(rows: R, lines: &mut [Line]) {
    let n = const { per_line::<W, B>() };
    let values_at = const { line::geometry::<W, B>().values_at() };
    assert_eq!(rows.len(), lines.len() * n, "full lines");
    for (index, line) in lines.iter_mut().enumerate() {
        let tuples = rows.slice(index * n, index * n + n);
        if n * W::BYTES < values_at {
            line[n * W::BYTES..values_at].fill(0);
        }
        for slot in 0..n {
            tuples.key(slot).write(&mut line[slot * W::BYTES..]);
        }
        for slot in 0..n {
            tuples.value(slot).write(&mut line[values_at + slot * B::BYTES..]);
        }
    }
}

/// Unpacks the first `tuples` tuples of the lines and appends them to `out`.
pub(crate) fn unpack<W: KeyLane, B: ValueLane>(lines: &[Line], tuples: usize, out: &mut Vec<Tuple<W, B>>) {
    let n = const { per_line::<W, B>() };
    let (full, rest) = (tuples / n, tuples % n);
    out.reserve(tuples);
    for line in &lines[..full] {
        out.extend(
            (0..n).map(|slot| Tuple { key: line::key(line, slot), value: line::value::<W, B>(line, slot) }),
        );
    }
    if rest > 0 {
        let line = &lines[full];
        out.extend(
            (0..rest)
                .map(|slot| Tuple { key: line::key(line, slot), value: line::value::<W, B>(line, slot) }),
        );
    }
}

/// Number of tuples checked for order at once.
const CHECK_TUPLES: usize = 1 << 14;

/// Returns the first tuple whose key is below (with `strict`: not above) the key before it; for the first
/// tuple that is `previous`. Parallel; O(tuples).
pub(crate) fn first_break<W: KeyLane, B: ValueLane, R: Rows<W, B>>(
    rows: R,
    previous: Option<W>,
    strict: bool,
) -> Option<usize> {
    if rows.len() == 0 {
        return None;
    }
    let breaks = |left: W, right: W| if strict { left >= right } else { left > right };
    if previous.is_some_and(|previous| breaks(previous, rows.key(0))) {
        return Some(0);
    }
    parallel::first(rows.len().div_ceil(CHECK_TUPLES), &|block| {
        let from = block * CHECK_TUPLES;
        let part = rows.slice(from, (from + CHECK_TUPLES + 1).min(rows.len()));
        let pairs = part.len() - 1;
        // Without an early exit the loop is vectorised; the position is searched only on failure.
        let broken = (0..pairs).fold(false, |any, at| any | breaks(part.key(at), part.key(at + 1)));
        broken
            .then(|| (0..pairs).find(|&at| breaks(part.key(at), part.key(at + 1))).map(|at| from + at + 1))
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip_and_match_the_format() {
        fn check<W: KeyLane, B: ValueLane>() {
            let n = per_line::<W, B>();
            let tuples: Vec<Tuple<W, B>> = (0..7 * n as u64)
                .map(|i| Tuple { key: W::from_u64(i * 77), value: B::from_u64(i << 3) })
                .collect();
            let keys: Vec<W> = tuples.iter().map(|t| t.key).collect();
            let values: Vec<B> = tuples.iter().map(|t| t.value).collect();
            let mut rows = vec![[0xAA; 64]; 7];
            let mut columns = vec![[0x55; 64]; 7];
            pack(&tuples[..], &mut rows);
            pack(Columns { keys: &keys, values: &values }, &mut columns);
            assert_eq!(rows, columns);
            for (index, line) in rows.iter().enumerate() {
                let mut wanted = [1; 64];
                line::encode(tuples[index * n..][..n].iter().map(|t| (t.key, t.value)), &mut wanted);
                assert_eq!(*line, wanted);
            }
            let mut back = Vec::new();
            unpack(&rows, tuples.len() - 2, &mut back);
            assert_eq!(back, tuples[..tuples.len() - 2]);
        }
        check::<u32, ()>();
        check::<u32, u32>();
        check::<u32, u64>();
        check::<u64, ()>();
        check::<u64, u32>();
        check::<u64, u64>();
        check::<u128, ()>();
        check::<u128, u32>();
        check::<u128, u64>();
    }

    #[test]
    fn breaks_are_found_where_they_are() {
        let keys: Vec<u64> = (0..100_000).collect();
        let values = vec![(); keys.len()];
        let of = |keys: &[u64], previous, strict| {
            first_break(Columns { keys, values: &values[..keys.len()] }, previous, strict)
        };
        assert_eq!(of(&keys, None, true), None);
        assert_eq!(of(&keys, Some(0), true), Some(0));
        assert_eq!(of(&keys, Some(0), false), None);
        assert_eq!(of(&[], Some(9), true), None);
        for at in [1, 2, CHECK_TUPLES - 1, CHECK_TUPLES, CHECK_TUPLES + 1, 99_999] {
            let mut keys = keys.clone();
            keys[at] = keys[at - 1];
            assert_eq!(of(&keys, None, true), Some(at));
            assert_eq!(of(&keys, None, false), None);

            keys[at] = keys[at].saturating_sub(1);
            assert_eq!(of(&keys, None, false), (at > 1).then_some(at));
        }
    }
}
