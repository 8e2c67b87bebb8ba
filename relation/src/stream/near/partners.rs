//! Partners of the left tuples of a window.
//!
//! Both sides ascend, so a pointer into the window advances with the left keys: O(left + window). As-of joins
//! of byte strings compare numbers of the same order.

use super::reach::Reach;
use super::windows::word;
use crate::error::RelationError;
use crate::expr::Point;
use crate::memory::Run;
use crate::rules::{AsOf, How};
use crate::stream::columns::NONE;
use crate::stream::input::Relation;
use crate::stream::matched::ranked;
use pleach_builder::Column;
use pleach_format::Word;

/// Where the partner of a left tuple is.
enum Side {
    Below,
    Above,
}

/// Returns the partner among the neighbours of a key, if it has one.
fn chosen((asof, reach): (AsOf, Reach), key: u128, below: Option<u128>, above: Option<u128>) -> Option<Side> {
    let below = below.filter(|_| asof != AsOf::Forward);
    let above = above.filter(|_| asof != AsOf::Backward);
    match (below, above) {
        (Some(below), Some(above)) if reach.is_nearer(key, below, above) => {
            reach.holds(key, above).then_some(Side::Above)
        }
        (Some(below), _) => reach.holds(below, key).then_some(Side::Below),
        (None, Some(above)) => reach.holds(key, above).then_some(Side::Above),
        (None, None) => None,
    }
}

fn partners<K: Word>(left: &[K], right: &[K], asof: AsOf, reach: Reach) -> Vec<u32> {
    // The first right tuple after the backward partner, or the forward one.
    let mut next = 0;
    let mut partner = |key: &K| {
        let is_before = |other: &K| if asof == AsOf::Forward { other < key } else { other <= key };
        while right.get(next).is_some_and(is_before) {
            next += 1;
        }
        let below = next.checked_sub(1).and_then(|at| right.get(at)).map(|other| other.to_u128());
        let above = right.get(next).map(|other| other.to_u128());
        match chosen((asof, reach), key.to_u128(), below, above) {
            Some(Side::Below) => next as u32 - 1,
            Some(Side::Above) => next as u32,
            None => NONE,
        }
    };
    left.iter().map(&mut partner).collect()
}

/// Returns the position of the partner of each left tuple in the window, or [`NONE`].
pub(super) fn in_window(left: &Column, right: &Column, asof: AsOf, reach: Reach) -> Vec<u32> {
    match (left, right) {
        (Column::U32(left), Column::U32(right)) => partners(left, right, asof, reach),
        (Column::U64(left), Column::U64(right)) => partners(left, right, asof, reach),
        (Column::U128(left), Column::U128(right)) => partners(left, right, asof, reach),
        (Column::Bytes(left), Column::Bytes(right)) => {
            let (left, right) = ranked(left, right);
            partners(&left, &right, asof, reach)
        }
        _ => Vec::new(),
    }
}

/// Finds the rank of the partner of a left key, from right rank `from` on. O(log distance) blocks.
pub(super) fn of_key(
    key: &Point,
    right: &Relation<'_>,
    from: u64,
    (asof, reach): (AsOf, Reach),
) -> Result<Option<u64>, RelationError> {
    let is_before = |other: &Point| if asof == AsOf::Forward { other < key } else { other <= key };
    let next = right.verified_from(from, is_before)?;
    let at = |rank: u64| right.verified_key(rank).map(|key| word(&key));
    let below = (asof != AsOf::Forward && next > 0).then(|| at(next - 1)).transpose()?;
    let above = (asof != AsOf::Backward && next < right.len()).then(|| at(next)).transpose()?;
    Ok(match chosen((asof, reach), word(key), below, above) {
        Some(Side::Below) => Some(next - 1),
        Some(Side::Above) => Some(next),
        None => None,
    })
}

/// Returns the tuples of an as-of join: the positions of both sides, by the partner of each left tuple.
pub(super) fn answers(how: How, partners: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let is_kept = |partner: u32| match how {
        How::Inner | How::Semi | How::Right => partner != NONE,
        How::Anti => partner == NONE,
        How::Left | How::Full => true,
    };
    let is_wide = !matches!(how, How::Semi | How::Anti);
    let kept = partners.iter().enumerate().filter(|&(_, &partner)| is_kept(partner));
    kept.map(|(i, &partner)| (i as u32, if is_wide { partner } else { NONE })).unzip()
}

fn bands<K: Word>(left: &[K], right: &[K], how: How, reach: Reach) -> (Vec<Run>, u64) {
    let (mut runs, mut total): (Vec<Run>, u64) = (Vec::new(), 0);
    let (mut from, mut to) = (0, 0);
    for (i, key) in left.iter().enumerate() {
        let word = key.to_u128();
        let is_far = |other: &K| other < key && !reach.holds(other.to_u128(), word);
        while right.get(from).is_some_and(is_far) {
            from += 1;
        }
        to = to.max(from);
        while right.get(to).is_some_and(|other| other <= key || reach.holds(word, other.to_u128())) {
            to += 1;
        }
        let n = to - from;
        if n == 0 && how != How::Left {
            continue;
        }
        match runs.last_mut() {
            Some(run) if (run.j, run.n) == (from, n) && run.i + run.m == i => run.m += 1,
            _ => runs.push(Run { i, m: 1, j: from, n, at: total }),
        }
        total += n.max(1) as u64;
    }
    (runs, total)
}

/// Returns the pairs of a band join as runs, and their number: at most 2^60, as each side of a piece has at
/// most 2^30 tuples.
pub(super) fn in_band(left: &Column, right: &Column, how: How, reach: Reach) -> (Vec<Run>, u64) {
    match (left, right) {
        (Column::U32(left), Column::U32(right)) => bands(left, right, how, reach),
        (Column::U64(left), Column::U64(right)) => bands(left, right, how, reach),
        (Column::U128(left), Column::U128(right)) => bands(left, right, how, reach),
        _ => (Vec::new(), 0),
    }
}
