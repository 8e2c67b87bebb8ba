//! Operations on whole numbers: their results, and the bounds of these.

use super::column::Lane;
use super::operator::Arithmetic;
use super::tree::{Int, IntWhat, Width};

/// Replaces `left` by the results. Fails on the first live tuple that has none, with its index and the
/// reason.
pub(super) fn apply<T: Lane>(
    operation: Arithmetic,
    left: &mut [T],
    right: &[T],
    live: &[u64],
) -> Result<(), (usize, String)> {
    fn each<T: Lane>(left: &mut [T], right: &[T], of: impl Fn(T, T) -> Option<T>) {
        for (left, &right) in left.iter_mut().zip(right) {
            *left = of(*left, right).unwrap_or_default();
        }
    }
    let of: fn(T, T) -> Option<T> = match operation {
        Arithmetic::Or => |a, b| Some(a.or(b)),
        Arithmetic::Xor => |a, b| Some(a.xor(b)),
        Arithmetic::And => |a, b| Some(a.and(b)),
        Arithmetic::Left => T::left,
        Arithmetic::Right => T::right,
        Arithmetic::Add => T::add,
        Arithmetic::Subtract => T::subtract,
        Arithmetic::Multiply => T::multiply,
        Arithmetic::Divide => T::divide,
        Arithmetic::Remainder => T::remainder,
    };
    match operation {
        Arithmetic::Or => each(left, right, |a, b| Some(a.or(b))),
        Arithmetic::Xor => each(left, right, |a, b| Some(a.xor(b))),
        Arithmetic::And => each(left, right, |a, b| Some(a.and(b))),
        Arithmetic::Add if !T::CHECKED => each(left, right, T::add),
        Arithmetic::Subtract if !T::CHECKED => each(left, right, T::subtract),
        Arithmetic::Multiply if !T::CHECKED => each(left, right, T::multiply),
        _ => {
            for (index, (left, &right)) in left.iter_mut().zip(right).enumerate() {
                match of(*left, right) {
                    Some(result) => *left = result,
                    None if live[index / 64] >> (index % 64) & 1 == 1 => {
                        return Err((index, why(operation, *left, right)));
                    }
                    None => *left = T::default(),
                }
            }
        }
    }
    Ok(())
}

fn why<T: Lane>(operation: Arithmetic, left: T, right: T) -> String {
    let shown = format!("{left} {} {right}", operation.sign());
    match operation {
        Arithmetic::Divide | Arithmetic::Remainder if right == T::default() => {
            format!("{shown} divides by zero")
        }
        Arithmetic::Left | Arithmetic::Right if !(0..128).contains(&right.to_i128()) => {
            format!("{shown} shifts by a number of bits outside 0 to 127")
        }
        _ => format!("{shown} does not fit into 128 bits"),
    }
}

/// Returns the result of an operation on constants: for [`Width::U128`] as it is, otherwise as the bits of an
/// `i128`.
pub(super) fn folded(int: &Int) -> Result<u128, String> {
    let IntWhat::Arithmetic(operation, left, right) = &int.what else { return Ok(0) };
    let (IntWhat::Constant(left), IntWhat::Constant(right)) = (&left.what, &right.what) else { return Ok(0) };
    if int.width == Width::U128 {
        let mut result = [*left];
        apply(*operation, &mut result, &[*right], &[1]).map_err(|(_, what)| what)?;
        return Ok(result[0]);
    }
    let mut result = [left.cast_signed()];
    apply(*operation, &mut result, &[right.cast_signed()], &[1]).map_err(|(_, what)| what)?;
    Ok(result[0].cast_unsigned())
}

fn shifted(number: i128, count: i128) -> i128 {
    let limit = if number < 0 { i128::MIN } else { i128::MAX };
    let shifted = u32::try_from(count).ok().and_then(|count| number.checked_shl(count));
    match (number, shifted) {
        (0, _) => 0,
        (_, Some(shifted)) if shifted >> count == number => shifted,
        _ => limit,
    }
}

/// Returns the least and greatest result of an operation that is not an error. If they are the limits of
/// `i128`, the computation detects results beyond them.
pub(super) fn bounds(operation: Arithmetic, left: &Int, right: &Int) -> (i128, i128) {
    let (a, b, c, d) = (left.low, left.high, right.low, right.high);
    let of_four = |of: fn(i128, i128) -> i128, c: i128, d: i128| {
        let all = [of(a, c), of(a, d), of(b, c), of(b, d)];
        all.into_iter().fold((i128::MAX, i128::MIN), |(low, high), one| (low.min(one), high.max(one)))
    };
    let counts = (c.clamp(0, 127), d.clamp(0, 127));
    let both_64 = a.min(c) >= i64::MIN.into() && b.max(d) <= i64::MAX.into();
    let any = if both_64 { (i64::MIN.into(), i64::MAX.into()) } else { (i128::MIN, i128::MAX) };
    let ones = |high: i128| i128::MAX.checked_shr(high.leading_zeros().saturating_sub(1)).unwrap_or(0);
    match operation {
        Arithmetic::Add => (a.saturating_add(c), b.saturating_add(d)),
        Arithmetic::Subtract => (a.saturating_sub(d), b.saturating_sub(c)),
        Arithmetic::Multiply => of_four(i128::saturating_mul, c, d),
        Arithmetic::Divide if c > 0 || d < 0 => of_four(i128::saturating_div, c, d),
        Arithmetic::Divide if a >= 0 && c >= 0 => (0, b),
        Arithmetic::Divide => {
            let most = a.saturating_neg().max(a).max(b).max(b.saturating_neg());
            (most.saturating_neg().saturating_sub(1), most)
        }
        Arithmetic::Remainder => {
            let most = c.saturating_neg().max(c).max(d).max(d.saturating_neg()).saturating_sub(1).max(0);
            (
                if a < 0 { most.saturating_neg().saturating_sub(1) } else { 0 },
                if b > 0 { most.min(b) } else { 0 },
            )
        }
        Arithmetic::And if a >= 0 && c >= 0 => (0, b.min(d)),
        Arithmetic::And if a >= 0 => (0, b),
        Arithmetic::And if c >= 0 => (0, d),
        Arithmetic::Or | Arithmetic::Xor if a >= 0 && c >= 0 => (0, ones(b.max(d))),
        Arithmetic::And | Arithmetic::Or | Arithmetic::Xor => any,
        Arithmetic::Left => of_four(shifted, counts.0, counts.1),
        Arithmetic::Right => of_four(|number, count| number >> count, counts.0, counts.1),
    }
}
