//! The superblock: the first 4 KiB of a file and, as a copy, its last 4 KiB.

use crate::checksum::crc32;
use crate::error::{FormatError, SUPERBLOCK};
use crate::types::{KeyType, ValueType};
use crate::version::{self, MAGIC, VERSION_MAJOR, VERSION_MINOR};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a superblock.
pub const SUPERBLOCK_BYTES: usize = 4096;
/// Bytes of a key that are stored in the superblock.
pub const KEY_PREFIX_BYTES: usize = 64;

/// The superblock as stored in the file. Magic, version and CRC keep their places in all future versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Superblock {
    /// [`MAGIC`].
    pub magic: [u8; 16],
    /// Major version.
    pub version_major: U16,
    /// Minor version.
    pub version_minor: U16,
    /// Zero. Files of 0.n had a mark here.
    pub reserved_mark: U32,
    /// Features a reader must know.
    pub reader_features: U64,
    /// Features a writer must know.
    pub writer_features: U64,
    /// Features that may be ignored.
    pub ignorable_features: U64,
    /// Hash of types, `unique`, tuple count, sections and unbound sums.
    pub file_id: [u8; 16],
    /// 1 for a new build; each rebuild adds one.
    pub generation: U64,
    /// Bytes of the whole file.
    pub file_bytes: U64,
    /// Number of tuples.
    pub tuples: U64,
    /// Code of the key type.
    pub key_type: U16,
    /// Code of the value type.
    pub value_type: U16,
    /// Bytes per encoded key.
    pub key_bytes: U32,
    /// Bytes per value.
    pub value_bytes: U32,
    /// 1 if the build rejected or removed duplicates, so that all keys are different; else 0.
    pub unique: U32,
    /// Offset of the section table.
    pub table_offset: U64,
    /// Bytes of the section table.
    pub table_bytes: U64,
    /// Number of entries in the section table.
    pub sections: U32,
    /// CRC32 of the section table.
    pub table_crc: U32,
    /// Length of the smallest key; 0 in an empty file.
    pub min_key_len: U32,
    /// Length of the largest key.
    pub max_key_len: U32,
    /// First bytes of the smallest encoded key, big-endian.
    pub min_key: [u8; KEY_PREFIX_BYTES],
    /// First bytes of the largest encoded key, big-endian.
    pub max_key: [u8; KEY_PREFIX_BYTES],
    /// Version of the program that wrote the file, ASCII, zero-padded.
    pub builder: [u8; 32],
    /// File id of the first generation of the index; zero in a file that is itself the first.
    pub lineage: [u8; 16],
    /// Zero.
    pub reserved: [u8; 3780],
    /// CRC32 of every byte before it.
    pub crc: U32,
}

const _: () = assert!(size_of::<Superblock>() == SUPERBLOCK_BYTES);
/// Offset of the CRC in the superblock.
pub const CRC_OFFSET: usize = SUPERBLOCK_BYTES - 4;

impl Superblock {
    /// Creates a superblock of the current version for the given types; the other fields are zero.
    #[must_use]
    pub fn new(key: KeyType, value: ValueType) -> Self {
        let mut block = Self::new_zeroed();
        block.magic = MAGIC;
        block.version_major = VERSION_MAJOR.into();
        block.version_minor = VERSION_MINOR.into();
        block.key_type = key.code().into();
        block.value_type = value.code().into();
        block.key_bytes = U32::new(key.bytes() as u32);
        block.value_bytes = U32::new(value.bytes() as u32);
        block
    }

    /// Returns the file id of the first generation of this index; in the first generation, that is the file's
    /// own id.
    #[must_use]
    pub fn first_id(&self) -> [u8; 16] {
        if self.lineage == [0; 16] { self.file_id } else { self.lineage }
    }

    fn new_zeroed() -> Self {
        zerocopy::FromZeros::new_zeroed()
    }

    /// Sets the CRC and returns the bytes.
    #[must_use]
    pub fn seal(mut self) -> [u8; SUPERBLOCK_BYTES] {
        self.crc = U32::new(crc32(&self.as_bytes()[..CRC_OFFSET]));
        let mut bytes = [0; SUPERBLOCK_BYTES];
        bytes.copy_from_slice(self.as_bytes());
        bytes
    }

    /// Reads the superblock in `bytes`, which begins at `offset` in its file and may be of any version.
    ///
    /// # Errors
    /// [`FormatError::Foreign`], [`FormatError::Truncated`] (fewer than 4 KiB) or [`FormatError::Checksum`].
    pub fn sealed(bytes: &[u8], offset: u64) -> Result<Self, FormatError> {
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
            return Err(FormatError::Checksum { what: SUPERBLOCK, offset, expected, found });
        }
        Ok(block)
    }

    /// Checks and reads the superblock in `bytes`, which begins at `offset` in its file.
    ///
    /// The checks come in this order: magic, CRC, version, features. So a flipped bit in the version is
    /// reported as damage, never as a newer version.
    ///
    /// # Errors
    /// [`FormatError::Foreign`], [`FormatError::Truncated`] (fewer than 4 KiB), [`FormatError::Checksum`],
    /// [`FormatError::Version`] or [`FormatError::Feature`], for the first of these checks that fails.
    pub fn decode(bytes: &[u8], offset: u64) -> Result<Self, FormatError> {
        let block = Self::sealed(bytes, offset)?;
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

/// Returns an encoded key as stored in the superblock: big-endian, left-aligned.
#[must_use]
pub fn key_prefix(word: u128, key_bytes: usize) -> [u8; KEY_PREFIX_BYTES] {
    let mut prefix = [0; KEY_PREFIX_BYTES];
    prefix[..key_bytes].copy_from_slice(&word.to_be_bytes()[16 - key_bytes..]);
    prefix
}

/// Returns the first bytes of a byte key as stored in the superblock.
#[must_use]
pub fn bytes_prefix(key: &[u8]) -> [u8; KEY_PREFIX_BYTES] {
    let mut prefix = [0; KEY_PREFIX_BYTES];
    let len = key.len().min(KEY_PREFIX_BYTES);
    prefix[..len].copy_from_slice(&key[..len]);
    prefix
}

/// Reads a stored key prefix; the inverse of [`key_prefix`].
#[must_use]
pub fn key_word(prefix: &[u8; KEY_PREFIX_BYTES], key_bytes: usize) -> u128 {
    prefix[..key_bytes.min(16)].iter().fold(0, |word, &byte| word << 8 | u128::from(byte))
}
