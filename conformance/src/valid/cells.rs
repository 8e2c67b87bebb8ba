//! Tuples of numbers.

use crate::word::Cell;

/// Returns an unsigned number as a cell.
pub(crate) fn unsigned(number: impl Into<u128>) -> Cell {
    Cell::Unsigned(number.into())
}

/// Returns tuples of unsigned numbers.
pub(crate) fn pairs(count: u64, key: impl Fn(u64) -> u64, value: impl Fn(u64) -> u64) -> Vec<(Cell, Cell)> {
    (0..count).map(|at| (unsigned(key(at)), unsigned(value(at)))).collect()
}
