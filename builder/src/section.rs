//! A section that follows the spine: its entry in the table, and its content.

use crate::error::BuildError;
use pleach_format::section::{Parameters, Tag};

/// A section that follows the spine.
pub(crate) struct Extra<'a> {
    pub tag: Tag,
    pub required: bool,
    pub length: u64,
    pub elements: u64,
    pub parameters: Parameters,
    /// Yields its `length` bytes in order, as often as it is called.
    pub content: Content<'a>,
}

/// Yields consecutive bytes to a function.
pub(crate) type Content<'a> = Box<dyn Fn(&mut TakeBytes<'_>) -> Result<(), BuildError> + 'a>;
/// Receives consecutive bytes.
pub(crate) type TakeBytes<'a> = dyn FnMut(&[u8]) -> Result<(), BuildError> + 'a;
