//! Pieces that another device answers.
//!
//! The CPU cuts, reads and verifies as ever; a device gets the columns of a piece and gives those of its answer, bit by
//! bit what the CPU would. Inputs of any size go through it in pieces. What a device cannot do it says before anything
//! is read; a piece whose answer it has no room for is answered by the CPU.

use super::Chunk;
use crate::error::RelationError;
use crate::expr;
use crate::rules::{How, Reduction, SetOperation, SetRule};
use pleach::{KeyType, ValueType};
use pleach_builder::Column;
use std::fmt::Debug;

/// What is to be done.
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

/// What a device answers of a piece.
#[derive(Clone, Debug)]
pub enum Answered {
    /// Its tuples.
    Chunk(Chunk),
    /// Of each tuple the position in the left and in the right input, `u32::MAX` where there is none.
    Rows(Vec<u32>, Vec<u32>),
}

/// Where pieces are answered, if not on the CPU. Called from several threads.
pub trait Device: Sync + Debug {
    /// What it is, for people.
    fn name(&self) -> String;

    /// Tuples of a piece, of both sides together.
    fn piece_tuples(&self) -> usize;

    /// Whether it can answer this, of inputs of these types.
    ///
    /// # Errors
    /// Why it cannot, as `sums of floats`.
    fn check(&self, task: Task<'_>, left: Types, right: Option<Types>) -> Result<(), String>;

    /// Answers an operator of one input: values that are not there are not asked for.
    ///
    /// # Errors
    /// [`RelationError::Device`], and those of the operator; `None` if there is no room for it.
    fn one(&self, task: Task<'_>, types: Types, chunk: &Chunk) -> Result<Option<Chunk>, RelationError>;

    /// Answers an operator of two inputs, each with keys and values.
    ///
    /// # Errors
    /// As [`Device::one`].
    fn two(
        &self,
        task: Task<'_>,
        left: &(Column, Column),
        right: &(Column, Column),
    ) -> Result<Option<Answered>, RelationError>;
}

/// A device that can do this, or none.
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
