//! The file format: the layout of a Pleach file, and checks of its bytes.
//!
//! ```text
//! offset 0        4 KiB superblock                        superblock.rs
//! offset 4 KiB    4 KiB section table                     section.rs
//! offset 8 KiB    META   names and logical types          meta.rs
//!                 LINE   tuple lines                      line.rs
//!                 SPIN   spine, root level first          spine.rs
//!                 GRID   grid over the key space          grid.rs
//!                 MASK   how byte keys become words       mask.rs
//!                 TAIL   ends of byte keys                tail.rs
//!                 KEYS   key column                       column.rs
//!                 TEXT   byte keys by page                text.rs
//!                 TRIE   from a byte key to its page      trie.rs
//!                 VALS   value column                     column.rs
//!                 PACK   compressed key column            packed.rs
//!                 FAST   FAST tree                        classic/
//!                 HARM   Harmonia region                  harmonia.rs
//!                 BTRE   contiguous B+tree                btree.rs
//!                 SUMS   a CRC32 of every 8 KiB block     checksum.rs
//!                 SUM2   the sums of SUMS                 checksum.rs
//! last 8 KiB      copies of section table and superblock  header.rs
//! ```
//!
//! META, LINE, SUMS and SUM2 are in every file. Another section is present only if the types or the
//! options of a build require it.
//!
//! The crate contains the layout arithmetic shared by the builder, the reader and the tools, and a checked
//! [`view`] of a file's bytes: superblock, section table, sums, tuple iteration and a scalar descent. It does
//! no I/O, has no `unsafe` code, and never reads outside the slices that it is given. `spec/FORMAT.md` is the
//! normative description.
#![forbid(unsafe_code)]

// This check is in the crate on which all others depend, so that it is the only error reported.
#[cfg(not(all(unix, target_pointer_width = "64", target_endian = "little")))]
compile_error!(
    "Pleach runs on 64-bit little-endian Linux (x86-64, aarch64; macOS compiles): 32-bit and big-endian systems and \
     Windows are not supported"
);

/// Expands to the offset of a field from the start of a struct of the format, in bytes, as a `u64`.
///
/// ```
/// use pleach_format::section::{Entry, SpineParameters, entry_offset};
/// use pleach_format::offset_in;
///
/// assert_eq!(offset_in!(Entry, length), 16);
/// // The first entry's field `inexact_lines`, if it is that of a spine.
/// let field = entry_offset(0) + offset_in!(Entry, parameters) + offset_in!(SpineParameters, inexact_lines);
/// assert_eq!(field, 4096 + 56 + 16);
/// ```
#[macro_export]
macro_rules! offset_in {
    ($struct:ty, $field:ident) => {
        ::core::mem::offset_of!($struct, $field) as u64
    };
}

pub mod approximate;
mod bits;
pub mod btree;
mod cache_line;
pub mod checksum;
mod chunk;
pub mod classic;
pub mod codes;
pub mod column;
pub mod cpu;
pub mod decode;
mod error;
mod find;
pub mod grid;
pub mod harmonia;
mod header;
pub mod interval;
pub mod key;
pub mod layout;
pub mod line;
pub mod logical;
pub mod mask;
pub mod meta;
pub mod packed;
pub mod record;
pub mod rules;
pub mod section;
pub mod short;
pub mod spine;
pub mod stored;
pub mod superblock;
pub mod tail;
pub mod text;
pub mod trie;
pub mod types;
pub mod upgrade;
pub mod version;
pub mod view;

pub use error::FormatError;
pub use key::{Bits, Key, Value, Word};
pub use layout::{LineGeometry, SpineGeometry};
pub use logical::{Logical, Meaning};
pub use mask::Mask;
pub use record::Record;
pub use rules::Rule;
pub use short::Short;
pub use types::{KeyType, ValueType};
pub use view::Header;

/// The program of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
