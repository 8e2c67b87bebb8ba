//! Why an operator gave no answer. Every message is one line: what, where, what to do.

use pleach::ReadError;
use pleach_builder::BuildError;
use std::path::PathBuf;

/// Why an operator gave no answer. Nothing of it was written then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelationError {
    /// Keys of two inputs cannot be compared.
    #[error("key types differ: {left} holds {left_type} keys, {right} {right_type}: build one of them anew")]
    KeyTypes {
        /// Name of the left input.
        left: String,
        /// Its key type.
        left_type: String,
        /// Name of the right input.
        right: String,
        /// Its key type.
        right_type: String,
    },
    /// A union would have values of two types.
    #[error(
        "value types differ: {left} holds {left_type} values, {right} {right_type}: project one of them first"
    )]
    ValueTypes {
        /// Name of the left input.
        left: String,
        /// Its value type.
        left_type: String,
        /// Name of the right input.
        right: String,
        /// Its value type.
        right_type: String,
    },
    /// A key or value that has no word in the finer unit in which two inputs are compared.
    #[error(
        "too large: {input}: {role} {text} is beyond the finer unit of the other input: select fewer tuples first"
    )]
    Rescale {
        /// Name of the input.
        input: String,
        /// `key` or `value`.
        role: &'static str,
        /// Its text.
        text: String,
    },
    /// An answer that cannot be held.
    #[error(
        "too large: {what} has {tuples} tuples, at most {limit} fit: select fewer tuples first, or give more room"
    )]
    TooLarge {
        /// Which answer.
        what: &'static str,
        /// Its tuples.
        tuples: u128,
        /// The most there may be.
        limit: u128,
    },
    /// Keys of a slice are not in order.
    #[error("not sorted: {input}: the key of rank {rank} is below the one before it: sort it first")]
    Unsorted {
        /// Which input.
        input: String,
        /// Rank of the first key that is out of order.
        rank: u64,
    },
    /// Columns of a relation have different lengths.
    #[error("columns differ: {input} has {keys} keys and {values} values: give one value for each key")]
    Lengths {
        /// Which input.
        input: String,
        /// Keys.
        keys: u64,
        /// Values.
        values: u64,
    },
    /// A column of a relation is not of its type.
    #[error(
        "columns differ: {input} has {what} of type {expected}, given are {fault}: give a column of that type"
    )]
    ColumnType {
        /// Which input.
        input: String,
        /// `keys` or `values`.
        what: &'static str,
        /// Their type.
        expected: String,
        /// What was given instead.
        fault: String,
    },
    /// A sum that its type cannot hold.
    #[error("sum overflows: key {key}: choose another --op, or select fewer tuples")]
    Overflow {
        /// The key.
        key: String,
    },
    /// A reduction that values of this type do not have.
    #[error("no {operation} of {value_type} values: {input}: use count or first")]
    NoReduction {
        /// The reduction.
        operation: &'static str,
        /// The type.
        value_type: String,
        /// Which input.
        input: String,
    },
    /// A block of an input does not match its sum, or cannot be read.
    #[error("damaged: {}: section {section}: {source}: restore or rebuild it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Its section.
        section: &'static str,
        /// What is wrong, and where.
        source: ReadError,
    },
    /// An expression that has no answer for a tuple.
    #[error(transparent)]
    Expression(#[from] crate::expr::EvalError),
    /// What a device cannot do.
    #[error("no device for {what}: {device}: use --device cpu")]
    NoDevice {
        /// What it is.
        what: String,
        /// The device.
        device: String,
    },
    /// A device failed.
    #[error("{0}")]
    Device(String),
    /// Values of an answer do not fit into tuples of an index file.
    #[error("an index file cannot hold {what}: write Parquet, Arrow or CSV instead")]
    NoIndex {
        /// What it cannot hold.
        what: String,
    },
    /// Writing the answer failed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Who takes the answer refused it.
    #[error("the answer was refused: {0}")]
    Sink(String),
    /// The caller asked to stop.
    #[error("interrupted: nothing was written: start it again")]
    Interrupted,
}
