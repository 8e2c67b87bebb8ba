//! The cache line, of which tuple lines and spine lines are one each.

/// Bytes per line in this version: one cache line.
pub const LINE_BYTES: usize = 64;

/// The bytes of a line.
pub type Line = [u8; LINE_BYTES];
