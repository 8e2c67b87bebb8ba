//! A checked view of the bytes of a file: the checked header, sums, and scalar searches.
//!
//! [`Header::parse`] checks every stored number against the length of the file before it is used. All
//! searches rely on the header for their bounds. The searches here are the scalar reference; they are also
//! used when each block that a query touches is verified.

pub use crate::find::{Bytes, Lines, lower_bound, lower_bound_by, step_left, step_right, tuple, upper_bound};
pub use crate::header::{
    CLOSING_BYTES, ColumnPlace, FILE_BYTES_MIN, FastShape, HEAD_BYTES, Header, Section, line_parameters,
    spine_parameters, through_copies,
};
