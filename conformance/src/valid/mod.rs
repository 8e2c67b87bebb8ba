//! The valid files of the fixed kit.

mod bytes;
mod frame;
mod logical;
mod numbers;
mod sections;

pub(crate) use bytes::url;
pub(crate) use frame::with_record;
pub(crate) use numbers::inexact;

use crate::plan::Plan;
use crate::word::Cell;

/// Returns the plans of all valid files.
#[must_use]
pub fn plans() -> Vec<Plan> {
    let mut all = numbers::plans();
    all.extend(sections::plans());
    all.extend(bytes::plans());
    all.extend(logical::plans());
    all.extend(frame::plans());
    all
}

/// Returns an unsigned number as a cell.
pub(crate) fn unsigned(number: impl Into<u128>) -> Cell {
    Cell::Unsigned(number.into())
}

/// Returns tuples of unsigned numbers.
pub(crate) fn pairs(count: u64, key: impl Fn(u64) -> u64, value: impl Fn(u64) -> u64) -> Vec<(Cell, Cell)> {
    (0..count).map(|at| (unsigned(key(at)), unsigned(value(at)))).collect()
}
