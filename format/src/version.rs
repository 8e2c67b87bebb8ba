//! Magic bytes, versions and feature flags: which programs can read a file.

/// First 16 bytes of every file. A high byte, CR LF, Ctrl-Z and LF reveal transfers in text mode.
pub const MAGIC: [u8; 16] = *b"\x89PLEACH\r\n\x1a\n\0\0\0\0\0";
/// Major format version written and read.
pub const VERSION_MAJOR: u16 = 0;
/// Minor format version written and read. Until 1.0 a reader opens only its own 0.n.
pub const VERSION_MINOR: u16 = 13;
/// Development mark in all 0.n files: `DEVL`.
pub const DEVELOPMENT: u32 = u32::from_le_bytes(*b"DEVL");

/// Feature of files whose keys are shorter than those they stand for: see [`crate::approximate`].
pub const APPROXIMATE: u64 = 1;
/// Features that a reader must know.
pub const READER_FEATURES: u64 = APPROXIMATE;
/// Features that a writer (rebuild, salvage) must know. This version defines none.
pub const WRITER_FEATURES: u64 = 0;

/// Reports whether this library reads files of the given version.
#[must_use]
pub fn reads(major: u16, minor: u16) -> bool {
    (major, minor) == (VERSION_MAJOR, VERSION_MINOR)
}
