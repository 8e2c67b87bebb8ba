//! Errors of the operators. Every message is one line: what, where, what to do.

use crate::rules::How;
use pleach::ReadError;
use pleach_builder::BuildError;
use std::path::PathBuf;

/// Error of an operator. Nothing has been written when it is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelationError {
    /// Keys of two inputs cannot be compared.
    #[error("key types differ: {left} holds {left_type} keys, {right} {right_type}: build one of them again")]
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
    /// A key or value has no word in the finer unit in which two inputs are compared.
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
    /// A text is not a distance between keys.
    #[error("invalid distance '{text}': {input} holds {keys} keys: {advice}")]
    Distance {
        /// The text.
        text: String,
        /// Name of the input.
        input: String,
        /// Type of its keys.
        keys: String,
        /// What to do.
        advice: &'static str,
    },
    /// Keys of this type have an order, but no distance.
    #[error(
        "no distance between {keys} keys: {input}: use an as-of join, backward or forward, without a tolerance"
    )]
    NoDistance {
        /// Type of the keys.
        keys: String,
        /// Name of the input.
        input: String,
    },
    /// A join by distance would keep right tuples without a partner.
    #[error(
        "cannot make a {how} {join}: it keeps right tuples without a partner: use inner, left, semi or anti"
    )]
    NoHow {
        /// The tuples that were requested.
        how: How,
        /// The join: as-of or band.
        join: &'static str,
    },
    /// Keys are shorter than those they stand for, so that equal keys may stand for different ones.
    #[error(
        "{input}: its keys are shorter than those they stand for, so that the answer may not be exact: permit it \
         with --approximate, or build the file with whole keys"
    )]
    Approximate {
        /// Name of the input.
        input: String,
    },
    /// A result is too large.
    #[error(
        "too large: {what} has {tuples} tuples, at most {limit} fit: select fewer tuples first, or give more room"
    )]
    TooLarge {
        /// The result that is too large.
        what: &'static str,
        /// Number of its tuples.
        tuples: u128,
        /// Maximum number of tuples.
        limit: u128,
    },
    /// Keys of a slice are not in order.
    #[error("not sorted: {input}: the key of rank {rank} is below the one before it: sort it first")]
    Unsorted {
        /// Name of the input.
        input: String,
        /// Rank of the first key that is out of order.
        rank: u64,
    },
    /// Columns of a relation have different lengths.
    #[error("columns differ: {input} has {keys} keys and {values} values: give one value for each key")]
    Lengths {
        /// Name of the input.
        input: String,
        /// Number of keys.
        keys: u64,
        /// Number of values.
        values: u64,
    },
    /// A column of a relation is not of its type.
    #[error(
        "columns differ: {input} has {what} of type {expected}, found {fault}: give a column of that type"
    )]
    ColumnType {
        /// Name of the input.
        input: String,
        /// `keys` or `values`.
        what: &'static str,
        /// Their type.
        expected: String,
        /// The type that was given instead.
        fault: String,
    },
    /// A sum does not fit into its type.
    #[error("sum overflows: key {key}: choose another --op, or select fewer tuples")]
    Overflow {
        /// The key.
        key: String,
    },
    /// A reduction is not defined for values of this type.
    #[error("cannot compute the {operation} of {value_type} values: {input}: use count or first")]
    NoReduction {
        /// The reduction.
        operation: &'static str,
        /// The type.
        value_type: String,
        /// Name of the input.
        input: String,
    },
    /// A reduction names a field that the values do not have.
    #[error("no field {field:?}: {input}: its values have {known}")]
    NoField {
        /// The name.
        field: String,
        /// Name of the input.
        input: String,
        /// What there is.
        known: String,
    },
    /// Reductions do not make a record.
    #[error("cannot make a record of these reductions: {what}: name each of them once")]
    Reductions {
        /// Why not.
        what: String,
    },
    /// A block of an input does not match its sum, or cannot be read.
    #[error("damaged: {}: section {section}: {source}: restore or rebuild it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The section that holds the block.
        section: &'static str,
        /// The fault, and its place.
        source: ReadError,
    },
    /// Bytes of a remote file cannot be fetched.
    #[error("cannot read: {}: {source}", path.display())]
    Fetch {
        /// Name of the file.
        path: PathBuf,
        /// The fault, and its place.
        source: ReadError,
    },
    /// An expression cannot be evaluated for a tuple.
    #[error(transparent)]
    Expression(#[from] crate::expr::EvalError),
    /// A device does not support an operation.
    #[error("no device for {what}: {device}: use --device cpu")]
    NoDevice {
        /// The operation.
        what: String,
        /// The device.
        device: String,
    },
    /// A device failed.
    #[error("{0}")]
    Device(String),
    /// Values of a result do not fit into the tuples of an index file.
    #[error("an index file cannot hold {what}: write Parquet, Arrow or CSV instead")]
    NoIndex {
        /// The values that it cannot hold.
        what: String,
    },
    /// Writing the result failed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The receiver of the result refused it.
    #[error("the answer was refused: {0}")]
    Sink(String),
    /// The caller requested a stop.
    #[error("interrupted: nothing was written: start it again")]
    Interrupted,
}

impl RelationError {
    /// Returns true if a file that was read is damaged.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Build(error) => error.is_damage(),
            _ => false,
        }
    }
}
