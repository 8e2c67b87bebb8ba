//! Magic bytes, versions and feature flags: which programs can read a file.

/// First 16 bytes of every file. A high byte, CR LF, Ctrl-Z and LF reveal transfers in text mode.
pub const MAGIC: [u8; 16] = *b"\x89PLEACH\r\n\x1a\n\0\0\0\0\0";
/// Major format version written and read. Another one has its bytes in other places.
pub const VERSION_MAJOR: u16 = 1;
/// Minor format version written. A reader opens every minor version of its major one: what a later one adds
/// can be skipped, or has a feature bit or a required section, by which the file is refused.
pub const VERSION_MINOR: u16 = 0;
/// The one older version whose files can be upgraded without a new build: see [`crate::upgrade`].
pub const UPGRADED: (u16, u16) = (0, 13);

/// Feature of files whose keys are shorter than those they stand for: see [`crate::approximate`].
pub const APPROXIMATE: u64 = 1;
/// Features that a reader must know.
pub const READER_FEATURES: u64 = APPROXIMATE;
/// Features that a program must know that makes the next generation of a file. This version defines none.
pub const WRITER_FEATURES: u64 = 0;

/// Reports whether a minor version is later than those that this library knows: it may use reserved bytes.
#[must_use]
pub fn is_later(minor: u16) -> bool {
    minor > VERSION_MINOR
}

/// Reports whether this library reads files of the given version.
#[must_use]
pub fn reads(major: u16, _minor: u16) -> bool {
    major == VERSION_MAJOR
}
