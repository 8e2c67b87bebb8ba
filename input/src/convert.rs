//! Conversion of the numbers of an input column to the words of a Pleach file, exactly or not at all.
//!
//! A [`Target`] specifies the meaning of the words of a column; [`append`] converts a slice of any number
//! type to such words. If the types agree this is a copy (with the sign bit of signed keys flipped), if the
//! target is wider a widening copy; otherwise every number is checked. Nothing is ever rounded, clamped or
//! wrapped. For byte strings see [`crate::strings`].

use crate::kind::{Kind, Target};
use crate::problem::{fault, nan_key, place, problem};
use pleach_builder::{Column, SourceError};
use pleach_format::Key;
use pleach_format::logical::{Form, Ratio, shown};

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
            fn exact(self) -> Option<$f> {
                let float = self as $f;
                (f64::from(float) < BEYOND_U128 && float as u128 == self).then_some(float)
            }
        }
        impl Exact<u128> for $f {
            #[inline(always)]
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
    fn exact(self) -> Option<f32> {
        let narrow = self as f32;
        (f64::from(narrow) == self || self.is_nan()).then_some(narrow)
    }
}

/// Numbers of one type of an input.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slice<'a> {
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
    pub(crate) fn text(self, index: usize) -> String {
        with_slice!(self, |numbers| numbers.get(index).map_or_else(String::new, ToString::to_string))
    }
}

/// Appends `numbers`, converted. For the first number that does not fit, returns its index; `out` is then
/// unspecified. NaN does not fit keys, nor 2 booleans. O(n).
pub(crate) fn append(numbers: Slice<'_>, target: Target, out: &mut Column) -> Result<(), usize> {
    if let Some((ratio, _)) = target.from {
        let scaled = rescaled(numbers, ratio, target)?;
        return append_numbers(&scaled, Target { from: None, ..target }, out);
    }
    let start = out.len();
    with_slice!(numbers, |numbers| append_numbers(numbers, target, out))?;
    match out {
        Column::U32(words) if target.form == Some(Form::Boolean) => {
            words[start..].iter().position(|&word| word > 1).map_or(Ok(()), Err)
        }
        _ => Ok(()),
    }
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

/// Makes the error for a number that does not fit.
pub(crate) fn misfit(input: &str, row: u64, label: &str, number: &str, target: Target) -> SourceError {
    if number == "NaN" && target.is_float_key() {
        return nan_key(input, row, label);
    }
    let option = target.option();
    if let (Some((_, from)), Some(form), Ok(word)) = (target.from, target.form, number.parse::<i64>()) {
        let (word, noun) = (shown(from, word), form.noun());
        let text = fault(
            format!("{word} is not a whole {noun}"),
            format!("choose a finer type with {option}, or another column"),
        );
        return problem(input, place(row, label), text);
    }
    let bounds = match target.form {
        Some(Form::Boolean) => "bool (0 or 1)".to_owned(),
        _ => target.kind.bounds(),
    };
    let text = fault(format!("{number} does not fit {bounds}"), format!("choose another type with {option}"));
    problem(input, place(row, label), text)
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
}
