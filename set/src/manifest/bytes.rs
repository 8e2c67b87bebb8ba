//! The bytes of a manifest: head, entries, and the places of the rest.

use super::facts::{Entry, MANIFEST_BYTES_MAX};
use super::rules::{ManifestError, Rule};
use sha2::{Digest, Sha256};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First 16 bytes of every manifest.
pub const MAGIC: [u8; 16] = *b"\x89PLSET\r\n\x1a\n\0\0\0\0\0\0";
/// Major version written and read.
pub const VERSION_MAJOR: u16 = 0;
/// Minor version written; a reader opens every minor version of its major one.
pub const VERSION_MINOR: u16 = 1;
/// Bytes of the head.
pub const HEAD_BYTES: usize = 256;
/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 96;
/// Bytes of the sum at the end.
pub const SUM_BYTES: usize = 32;
/// Required features that this version knows: none.
const FEATURES: u64 = 0;

/// The head as stored.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Head {
    pub magic: [u8; 16],
    pub version_major: U16,
    pub version_minor: U16,
    pub reserved0: U32,
    /// Features that a reader must know.
    pub required_features: U64,
    /// Features that may be ignored.
    pub optional_features: U64,
    /// Bytes of the whole manifest.
    pub manifest_bytes: U64,
    pub set_id: [u8; 16],
    pub generation: U64,
    pub parent: U64,
    /// Tuples of all files.
    pub tuples: U64,
    /// Bytes of all files.
    pub file_bytes: U64,
    /// Number of files.
    pub files: U64,
    pub partition_tuples: U64,
    pub created_ms: U64,
    pub reserved1: [u8; 16],
    pub key_type: U16,
    pub value_type: U16,
    pub unique: U32,
    /// Bytes of META, which follows the entries.
    pub meta_bytes: U32,
    /// Bytes per encoded key, and per value; 0 if they vary.
    pub key_bytes: U32,
    pub value_bytes: U32,
    pub reserved: [u8; 100],
}
const _: () = assert!(size_of::<Head>() == HEAD_BYTES);

/// An entry as stored.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct RawEntry {
    pub digest: [u8; 32],
    pub file_id: [u8; 16],
    pub file_bytes: U64,
    pub tuples: U64,
    /// Place of the name, which the smallest and the largest key follow.
    pub offset: U64,
    pub name_bytes: U32,
    pub min_bytes: U32,
    pub max_bytes: U32,
    pub head_sum: U32,
    pub reserved: [u8; 8],
}
const _: () = assert!(size_of::<RawEntry>() == ENTRY_BYTES);

impl Head {
    pub(crate) fn new() -> Self {
        let mut head = Self::new_zeroed();
        head.magic = MAGIC;
        head.version_major = VERSION_MAJOR.into();
        head.version_minor = VERSION_MINOR.into();
        head
    }

    /// Checks length, sum, version and the places of everything else; see the rules 1 to 9.
    pub(crate) fn checked(bytes: &[u8]) -> Result<&Self, ManifestError> {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(Rule::Magic.at(0, "the first bytes are others"));
        }
        let found = bytes.len() as u64;
        if bytes.len() < HEAD_BYTES + SUM_BYTES {
            return Err(Rule::Truncated.at(bytes.len(), format!("{found} bytes")));
        }
        let Ok((head, _)) = Self::ref_from_prefix(bytes) else {
            return Err(Rule::Truncated.at(bytes.len(), format!("{found} bytes")));
        };
        let length = head.manifest_bytes.get();
        if found < length {
            return Err(Rule::Truncated.at(bytes.len(), format!("{found} bytes of {length}")));
        }
        if found > length || found > MANIFEST_BYTES_MAX {
            return Err(Rule::Extended.at(40, format!("{found} bytes, and the head says {length}")));
        }
        let (content, sum) = bytes.split_at(bytes.len() - SUM_BYTES);
        if Sha256::digest(content)[..] != *sum {
            return Err(Rule::Sum.at(content.len(), "the bytes do not match their sum"));
        }
        if head.version_major.get() != VERSION_MAJOR {
            let (major, minor) = (head.version_major, head.version_minor);
            return Err(
                Rule::Version.at(16, format!("{major}.{minor}, and this program reads {VERSION_MAJOR}.x"))
            );
        }
        let unknown = head.required_features.get() & !FEATURES;
        if unknown != 0 {
            return Err(Rule::Feature.at(24, format!("bits {unknown:#x}")));
        }
        if head.generation.get() == 0 || head.parent.get() >= head.generation.get() {
            let (generation, parent) = (head.generation, head.parent);
            return Err(Rule::Generation.at(64, format!("generation {generation} of parent {parent}")));
        }
        let entries = head.files.get().checked_mul(ENTRY_BYTES as u64);
        let start = entries.and_then(|entries| entries.checked_add(HEAD_BYTES as u64));
        if start.is_none_or(|start| start > head.blob_end()) || head.files.get() > u64::from(u32::MAX) {
            return Err(Rule::Files.at(96, format!("{} files in {length} bytes", head.files)));
        }
        if head.reserved0.get() != 0 || head.reserved1 != [0; 16] || head.reserved != [0; 100] {
            return Err(Rule::Reserved.at(20, "reserved bytes of the head are not zero"));
        }
        Ok(head)
    }

    /// Returns where META begins, after the entries.
    pub(crate) fn blob_start(&self) -> u64 {
        HEAD_BYTES as u64 + self.files.get() * ENTRY_BYTES as u64
    }
    /// Returns where the bytes of the first entry begin, after META.
    pub(crate) fn first_entry_blob(&self) -> usize {
        self.blob_start() as usize + self.meta_bytes.get() as usize
    }
    /// Returns where the sum begins.
    pub(crate) fn blob_end(&self) -> u64 {
        self.manifest_bytes.get() - SUM_BYTES as u64
    }
}

impl RawEntry {
    pub(crate) fn new(entry: &Entry, offset: u64, [name, min, max]: [u32; 3]) -> Self {
        Self {
            digest: entry.digest,
            file_id: entry.file_id,
            file_bytes: entry.file_bytes.into(),
            tuples: entry.tuples.into(),
            offset: offset.into(),
            name_bytes: name.into(),
            min_bytes: min.into(),
            max_bytes: max.into(),
            head_sum: entry.head_sum.into(),
            reserved: [0; 8],
        }
    }

    /// Returns an entry of a manifest whose head was checked.
    pub(crate) fn of(bytes: &[u8], number: usize) -> Self {
        let at = HEAD_BYTES + number * ENTRY_BYTES;
        bytes
            .get(at..)
            .and_then(|rest| Self::read_from_prefix(rest).ok())
            .map_or_else(Self::new_zeroed, |it| it.0)
    }

    /// Returns name, smallest and largest key of an entry whose place was checked.
    pub(crate) fn parts<'a>(&self, bytes: &'a [u8]) -> [&'a [u8]; 3] {
        let mut at = self.offset.get() as usize;
        [self.name_bytes, self.min_bytes, self.max_bytes].map(|length| {
            let start = at;
            at += length.get() as usize;
            bytes.get(start..at).unwrap_or_default()
        })
    }
}
