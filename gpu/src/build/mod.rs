//! Builds sections of a file on the device, from sorted columns in device memory.
//!
//! [`build_lines`] makes the sections LINE and SPIN: tuple lines and the spine above them. A
//! [`ClassicBuilder`] makes the classic tree, the section FAST. The result is, byte for byte, the same as
//! that of the CPU builder for the same tuples, so a file can be assembled from either.

pub(crate) mod classic;
pub(crate) mod lines;

pub use classic::{ClassicBuilder, ClassicForm};
pub use lines::{BuiltLines, LineBuilder, build_lines};
