//! Pieces that another device answers.
//!
//! The CPU cuts, reads and verifies as always. A device gets the columns of a piece and returns those of its
//! answer, bit for bit the same as the CPU's. Inputs of any size are processed in pieces. A device refuses
//! unsupported work before anything is read; the CPU answers a piece whose answer does not fit on the device.

use super::chunk::Chunk;
use crate::error::RelationError;
use crate::expr;
use crate::rules::{How, Reduction, SetOperation, SetRule};
use pleach::{KeyType, ValueType};
use pleach_builder::Column;
use std::fmt::Debug;

/// Operation that a piece requires.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Task<'a> {
    Set(SetOperation, SetRule),
    Join(How),
    Product,
    Select(&'a expr::Predicate),
    Reduce(Reduction),
    Project(&'a expr::Projection),
}

/// Types of the tuples of an input.
pub type Types = (KeyType, ValueType);

/// Answer of a device for a piece.
#[derive(Clone, Debug)]
pub enum Answered {
    /// Its tuples.
    Chunk(Chunk),
    /// Positions of each tuple in the left and in the right input; `u32::MAX` where there is none.
    Rows(Vec<u32>, Vec<u32>),
}

/// A device that answers pieces instead of the CPU. Called from several threads.
pub trait Device: Sync + Debug {
    /// Returns its name, for people.
    fn name(&self) -> String;

    /// Returns the tuples per piece, of both sides together.
    fn piece_tuples(&self) -> usize;

    /// Checks that it can answer this task for inputs of these types.
    ///
    /// # Errors
    /// The operation that it does not support, such as `sums of floats`.
    fn check(&self, task: Task<'_>, left: Types, right: Option<Types>) -> Result<(), String>;

    /// Answers an operator of one input; absent values need not be produced. `None` if there is no room for
    /// the answer.
    ///
    /// # Errors
    /// [`RelationError::Device`] if the device fails, and those of the operator.
    fn one(&self, task: Task<'_>, types: Types, chunk: &Chunk) -> Result<Option<Chunk>, RelationError>;

    /// Answers an operator of two inputs, each with keys and values. `None` if there is no room for the
    /// answer.
    ///
    /// # Errors
    /// The errors of [`Device::one`].
    fn two(
        &self,
        task: Task<'_>,
        left: &(Column, Column),
        right: &(Column, Column),
    ) -> Result<Option<Answered>, RelationError>;
}

/// Returns the device if there is one and it supports the task.
pub(super) fn checked<'a>(
    device: Option<&'a dyn Device>,
    task: Task<'_>,
    left: Types,
    right: Option<Types>,
) -> Result<Option<&'a dyn Device>, RelationError> {
    let Some(device) = device else { return Ok(None) };
    match device.check(task, left, right) {
        Ok(()) => Ok(Some(device)),
        Err(what) => Err(RelationError::NoDevice { what, device: device.name() }),
    }
}

/// Returns the end of a plan: the device that answers its pieces.
pub(super) fn answered_by(device: Option<&dyn Device>) -> String {
    device.map_or_else(String::new, |device| format!("; answered by {}", device.name()))
}
