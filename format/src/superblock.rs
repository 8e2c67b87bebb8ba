//! The superblock: the first 4 KiB of a file, and, as a copy, its last 4 KiB.

use crate::checksum::crc32;
use crate::error::FormatError;
use crate::types::{KeyType, ValueType};
use crate::version::{self, DEVELOPMENT, MAGIC, VERSION_MAJOR, VERSION_MINOR};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a superblock.
pub const SUPERBLOCK_BYTES: usize = 4096;
/// Bytes of a key that the superblock keeps.
pub const KEY_PREFIX_BYTES: usize = 64;

/// The superblock as it stands in the file. Magic, version and CRC keep their places for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Superblock {
    /// [`MAGIC`].
    pub magic: [u8; 16],
    /// Major version.
    pub version_major: U16,
    /// Minor version.
    pub version_minor: U16,
    /// [`DEVELOPMENT`] in every 0.n file.
    pub development: U32,
    /// Features a reader must know.
    pub reader_features: U64,
    /// Features a writer must know.
    pub writer_features: U64,
    /// Features that may be ignored.
    pub ignorable_features: U64,
    /// Hash of types, options and unbound sums.
    pub file_id: [u8; 16],
    /// 1 for a fresh build, one more at each rebuild.
    pub generation: U64,
    /// Bytes of the whole file.
    pub file_bytes: U64,
    /// Tuples.
    pub tuples: U64,
    /// Code of the key type.
    pub key_type: U16,
    /// Code of the value type.
    pub value_type: U16,
    /// Bytes of an encoded key.
    pub key_bytes: U32,
    /// Bytes of a value.
    pub value_bytes: U32,
    /// 1 if no key stands twice because the build refused or removed duplicates, else 0.
    pub unique: U32,
    /// Where the section table begins.
    pub table_offset: U64,
    /// Its bytes.
    pub table_bytes: U64,
    /// Its entries.
    pub sections: U32,
    /// Its CRC32.
    pub table_crc: U32,
    /// Length of the smallest key; 0 in an empty file.
    pub min_key_len: U32,
    /// Length of the largest key.
    pub max_key_len: U32,
    /// First bytes of the smallest encoded key, big-endian.
    pub min_key: [u8; KEY_PREFIX_BYTES],
    /// First bytes of the largest encoded key, big-endian.
    pub max_key: [u8; KEY_PREFIX_BYTES],
    /// Version of the program that wrote it, ASCII, zero-padded.
    pub builder: [u8; 32],
    /// File id of the first generation of the index; zero in a file that is a first one itself.
    pub lineage: [u8; 16],
    /// Zero.
    pub reserved: [u8; 3780],
    /// CRC32 of every byte before it.
    pub crc: U32,
}

const _: () = assert!(size_of::<Superblock>() == SUPERBLOCK_BYTES);
/// Where the superblock's CRC stands.
pub const CRC_OFFSET: usize = SUPERBLOCK_BYTES - 4;

impl Superblock {
    /// A superblock of the current version for the given types; the rest is zero.
    #[must_use]
    pub fn new(key: KeyType, value: ValueType) -> Self {
        let mut block = Self::new_zeroed();
        block.magic = MAGIC;
        block.version_major = VERSION_MAJOR.into();
        block.version_minor = VERSION_MINOR.into();
        block.development = DEVELOPMENT.into();
        block.key_type = key.code().into();
        block.value_type = value.code().into();
        block.key_bytes = U32::new(key.bytes() as u32);
        block.value_bytes = U32::new(value.bytes() as u32);
        block
    }

    /// File id of the first generation of the index that this file is one of: its own, if it is the first.
    #[must_use]
    pub fn first_id(&self) -> [u8; 16] {
        if self.lineage == [0; 16] { self.file_id } else { self.lineage }
    }

    fn new_zeroed() -> Self {
        zerocopy::FromZeros::new_zeroed()
    }

    /// Sets the CRC and gives the bytes.
    #[must_use]
    pub fn seal(mut self) -> [u8; SUPERBLOCK_BYTES] {
        self.crc = U32::new(crc32(&self.as_bytes()[..CRC_OFFSET]));
        let mut bytes = [0; SUPERBLOCK_BYTES];
        bytes.copy_from_slice(self.as_bytes());
        bytes
    }

    /// Accepts a superblock whose bytes are `bytes` and which begins at `offset` in its file.
    ///
    /// In this order: magic, CRC, version, features. So a flipped bit of the version is damage,
    /// never a "newer version".
    pub fn decode(bytes: &[u8], offset: u64) -> Result<Self, FormatError> {
        let ours = bytes.len().min(MAGIC.len());
        if bytes[..ours] != MAGIC[..ours] {
            return Err(FormatError::Foreign);
        }
        let Ok((block, _)) = Self::read_from_prefix(bytes) else {
            return Err(FormatError::Truncated {
                expected: offset + SUPERBLOCK_BYTES as u64,
                found: offset + bytes.len() as u64,
            });
        };
        let found = crc32(&block.as_bytes()[..CRC_OFFSET]);
        if found != block.crc.get() {
            let expected = block.crc.get();
            return Err(FormatError::Checksum { what: "superblock", offset, expected, found });
        }
        let version = (block.version_major.get(), block.version_minor.get());
        if !version::reads(version.0, version.1) {
            return Err(FormatError::Version { found: version, reads: (VERSION_MAJOR, VERSION_MINOR) });
        }
        let unknown = block.reader_features.get() & !version::READER_FEATURES;
        if unknown != 0 {
            return Err(FormatError::Feature { unknown });
        }
        Ok(block)
    }
}

/// Encoded key word as it stands in the superblock: big-endian, left-aligned.
#[must_use]
pub fn key_prefix(word: u128, key_bytes: usize) -> [u8; KEY_PREFIX_BYTES] {
    let mut prefix = [0; KEY_PREFIX_BYTES];
    prefix[..key_bytes].copy_from_slice(&word.to_be_bytes()[16 - key_bytes..]);
    prefix
}

/// First bytes of a byte key as they stand in the superblock.
#[must_use]
pub fn bytes_prefix(key: &[u8]) -> [u8; KEY_PREFIX_BYTES] {
    let mut prefix = [0; KEY_PREFIX_BYTES];
    let len = key.len().min(KEY_PREFIX_BYTES);
    prefix[..len].copy_from_slice(&key[..len]);
    prefix
}

/// Inverse of [`key_prefix`].
#[must_use]
pub fn key_word(prefix: &[u8; KEY_PREFIX_BYTES], key_bytes: usize) -> u128 {
    prefix[..key_bytes.min(16)].iter().fold(0, |word, &byte| word << 8 | u128::from(byte))
}
