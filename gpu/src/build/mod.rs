//! Building what a file holds on the device, from sorted columns that lie there.
//!
//! [`build_lines`] makes the sections LINE and SPIN: tuple lines and the spine above them. What comes out is, byte for
//! byte, what the CPU builder writes for the same tuples, so a file can be put together from either. So is the classic
//! tree that a [`ClassicBuilder`] makes, the section FAST.

pub(crate) mod classic;
pub(crate) mod lines;

pub use classic::{ClassicBuilder, ClassicForm};
pub use lines::{BuiltLines, LineBuilder, build_lines};
