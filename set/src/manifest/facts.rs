//! What a manifest says, as values: types and options, the files, and the whole set.

use pleach_format::meta::Meta;
use pleach_format::{KeyType, ValueType};

/// Folder of the files of a set.
pub const FILES: &str = "files/";
/// Folder of its manifests.
pub const MANIFESTS: &str = "manifests/";
/// Maximum bytes of the name of a file, with its folder.
pub const NAME_BYTES_MAX: usize = 255;
/// Tuples of a file, unless a build says otherwise: some 200 MB of numbers.
pub const PARTITION_TUPLES: u64 = 1 << 24;
/// Maximum bytes of a manifest that a reader takes: room for a million files with long keys.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Types, names and options that all files of a set share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Type of the keys.
    pub key_type: KeyType,
    /// Type of the values.
    pub value_type: ValueType,
    /// Names, logical types and layout of the files; `approximate` is empty.
    pub meta: Meta,
    /// True if no two tuples of the set have the same key.
    pub unique: bool,
    /// Number of tuples of a file that a build aims at.
    pub partition_tuples: u64,
}

impl Schema {
    /// Returns true if files of `other` may be in a set of this schema, or returns what differs.
    ///
    /// # Errors
    /// The name of the first property that differs, and both its values.
    pub fn fits(&self, other: &Self) -> Result<(), String> {
        let text = |schema: &Self| {
            let Meta { key_name, value_name, key_logical, value_logical, layout, interval, approximate } =
                schema.meta.clone();
            [
                ("keys", format!("{} {key_logical}", schema.key_type)),
                ("values", format!("{} {value_logical}", schema.value_type)),
                ("names", format!("{key_name}, {value_name}")),
                ("layout", if layout.is_empty() { "lines,spine,grid".into() } else { layout }),
                ("intervals", if interval.is_empty() { "none".into() } else { interval }),
                ("approximate keys", if approximate.is_empty() { "no".into() } else { "yes".into() }),
                ("unique", schema.unique.to_string()),
            ]
        };
        for ((what, own), (_, found)) in text(self).into_iter().zip(text(other)) {
            if own != found {
                return Err(format!("{what}: {} instead of {}", found.trim_end(), own.trim_end()));
            }
        }
        Ok(())
    }
}

/// A file of a set, as its manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name relative to the set, such as `files/0f3c.pleach`.
    pub name: String,
    /// Length in bytes.
    pub file_bytes: u64,
    /// SHA-256 of all bytes.
    pub digest: [u8; 32],
    /// File id of the file.
    pub file_id: [u8; 16],
    /// CRC32 of its superblock, as the superblock stores it.
    pub head_sum: u32,
    /// Number of tuples, at least one.
    pub tuples: u64,
    /// Smallest key: the encoding of a number, big-endian, or the bytes of the key.
    pub min: Vec<u8>,
    /// Largest key, likewise.
    pub max: Vec<u8>,
}

/// What a manifest says of the whole set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Identity of the set, the same in all generations.
    pub set_id: [u8; 16],
    /// Generation, from 1.
    pub generation: u64,
    /// Generation that this one was made from; 0 if there was none.
    pub parent: u64,
    /// Time of the commit in milliseconds since 1970, by the clock of the committer. Nothing depends on it.
    pub created_ms: u64,
    /// Types and options.
    pub schema: Schema,
}
