//! The language of conditions and columns: `select --where` and `project --columns`.
//!
//! ```text
//! lex.rs       words, numbers, texts and signs      parse.rs     the tree of the text
//! operator.rs  comparisons and operations           tree.rs      the tree with types
//! check.rs     types, constants, how wide numbers get
//! meaning.rs   dates, times, decimals and uuids     arithmetic.rs   operations and their bounds
//! predicate.rs conditions                           evaluate.rs  a chunk of tuples to a bitmap
//! ranges.rs    which keys a condition can hold for  program.rs   the same as a stack program, for devices
//! project.rs   lists of columns                     item.rs      one of them: its type and its values
//! parts.rs     the same as bit fields, for devices  column.rs    columns as slices
//! schema.rs    names and types of the operands      error.rs     errors with their places
//! ```
//! Whole numbers are computed as if they had any number of bits. The types give the least and the greatest
//! result of each operation before anything is read. Where both fit into 64 bits, the operation is computed
//! in 64 bits without a check; elsewhere it is computed in 128 bits and checked. Nothing is rounded or
//! wrapped: a result that does not fit, or a division by zero, is an error that names the tuple, unless `and`
//! or `or` has decided before.
//!
//! Conditions are evaluated column by column in blocks of 4,096 tuples, from left to right; once an `and` or
//! `or` is decided for all tuples of a block, the rest is skipped. A comparison with a constant is one
//! subtraction and one comparison of the words as they are stored in the file.

mod arithmetic;
mod check;
mod column;
mod error;
mod evaluate;
mod item;
mod lex;
mod meaning;
mod operator;
mod parse;
mod parts;
mod predicate;
mod program;
mod project;
mod ranges;
mod schema;
#[cfg(test)]
mod tests;
mod tree;

pub use column::{ColumnRef, Side, StringsRef, Tuples};
pub use error::{EvalError, ExprError};
pub use parts::{BitField, BitFields};
pub use predicate::Predicate;
pub use program::{Load, Op, Program};
pub use project::Projection;
pub use ranges::{Cut, KeyRange, Point};
pub use schema::Schema;
