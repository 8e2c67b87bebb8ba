//! How keys are spread: counts of ranges of keys, found by bisection, which reads a few hundred tuples.

use super::Found;
use crate::any::{Any, number, string};
use crate::cli::{Global, Verify};
use crate::failure::Failure;
use crate::meant::Meant;
use crate::render::picture::datum_text;
use crate::search;
use pleach::Datum;

/// Ranges of numbers.
const RANGES: u32 = 32;
/// Letters of a key that are shown.
const SHOWN: usize = 40;

/// A range of keys.
pub(super) struct Range {
    /// The smallest key of the range; of byte strings, the first one that is there.
    pub from: String,
    /// Tuples in it.
    pub tuples: u64,
}

impl Found<'_> {
    /// Counts the tuples in ranges of keys: of equal width for numbers, by the first byte that differs for byte
    /// strings. Keys of a file without tuples, and infinite ones, have none.
    pub(super) fn histogram(&self, global: &Global) -> Result<Vec<Range>, Failure> {
        let index = search::open(self.path, global, Verify::Touched)?;
        let record = search::record(&index, self.path)?;
        let meant = Meant::of_file(&index, self.path, global)?;
        let any = Any::new(&index, self.path, record.as_ref(), &meant);
        let key = |rank: u64| any.tuple(rank).map(|(key, _)| key);
        let Some(last) = index.len().checked_sub(1) else { return Ok(Vec::new()) };
        let text = |datum: &Datum<'_>| -> String {
            let text = datum_text(datum, meant.key_form());
            let cut: String = text.chars().take(SHOWN).collect();
            if cut.len() < text.len() { cut + "..." } else { cut }
        };
        // The first rank of `from..` whose key is not below an edge.
        let bound = |from: u64, is_below: &dyn Fn(&Datum<'_>) -> bool| -> Result<u64, Failure> {
            let (mut low, mut high) = (from, index.len());
            while low < high {
                let middle = low + (high - low) / 2;
                if is_below(&key(middle)?) { low = middle + 1 } else { high = middle }
            }
            Ok(low)
        };
        let (first, end) = (key(0)?, key(last)?);
        let mut ranges = Vec::new();
        let mut from = 0;
        if let (Some(low), Some(high)) = (number(&first), number(&end)) {
            let width = (high - low) / f64::from(RANGES);
            if !width.is_finite() || width <= 0.0 {
                return Ok(Vec::new());
            }
            for range in 1..=RANGES {
                let edge = low + width * f64::from(range);
                let to = match range {
                    RANGES => index.len(),
                    _ => bound(from, &|key| number(key).is_some_and(|key| key < edge))?,
                };
                let start = low + width * f64::from(range - 1);
                let start = text(&like(&first, start));
                ranges.push(Range { from: start, tuples: to - from });
                from = to;
            }
            return Ok(ranges);
        }
        let (Some(one), Some(two)) = (string(&first), string(&end)) else { return Ok(Vec::new()) };
        let common = one.iter().zip(two).take_while(|(one, two)| one == two).count();
        let byte = |key: &Datum<'_>| {
            string(key).and_then(|key| key.get(common)).map_or(0, |&byte| u32::from(byte) + 1)
        };
        while from < index.len() {
            let here = key(from)?;
            let at = byte(&here);
            let to = bound(from, &|key| byte(key) <= at)?;
            ranges.push(Range { from: text(&here), tuples: to - from });
            from = to;
        }
        Ok(ranges)
    }
}

/// Returns a number of the type of another one.
fn like(other: &Datum<'_>, number: f64) -> Datum<'static> {
    match other {
        Datum::U32(_) => Datum::U32(number.ceil() as u32),
        Datum::U64(_) => Datum::U64(number.ceil() as u64),
        Datum::U128(_) => Datum::U128(number.ceil() as u128),
        Datum::I32(_) => Datum::I32(number.ceil() as i32),
        Datum::I64(_) => Datum::I64(number.ceil() as i64),
        Datum::F32(_) => Datum::F32(number as f32),
        Datum::F64(_) | Datum::None | Datum::Bytes(_) | Datum::Utf8(_) => Datum::F64(number),
    }
}
