//! Sums that are bound to their place, and the identity of a file.
//!
//! The extent of a section, from its offset to that of the next section, is divided into blocks of 8 KiB. The
//! *unbound* sum of a block is its CRC32 (IEEE). The *stored* sum is the unbound sum xor the CRC32 of
//! `file id, tag, block number`. So a block that was moved, or that comes from another file, does not match.
//!
//! Since the binding is a xor, blocks can be summed before the file id is known. At 8 KiB, CRC32 detects
//! every change of up to three bits and every burst of up to 32.

use crate::section::rows::Tag;
use core::hash::Hasher;
use siphasher::sip128::{Hasher128, SipHasher24};

/// Bytes covered by one sum.
pub const SUM_BLOCK_BYTES: usize = 8192;
/// Bytes of one stored sum.
pub const SUM_BYTES: usize = 4;

/// Returns the CRC32 (IEEE) of `bytes`.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Returns the number that binds a block's sum to its file, section and place.
#[must_use]
pub fn binding(file_id: &[u8; 16], tag: Tag, block: u64) -> u32 {
    let mut place = [0u8; 28];
    place[..16].copy_from_slice(file_id);
    place[16..20].copy_from_slice(&tag.0);
    place[20..].copy_from_slice(&block.to_le_bytes());
    crc32(&place)
}

/// Returns the number of sum blocks in an extent.
#[must_use]
pub fn sum_blocks(extent_bytes: u64) -> u64 {
    extent_bytes.div_ceil(SUM_BLOCK_BYTES as u64)
}

/// Appends the unbound sums of consecutive blocks of `bytes`, which start at a block boundary.
pub fn sum_into(bytes: &[u8], sums: &mut Vec<u32>) {
    sums.extend(bytes.chunks(SUM_BLOCK_BYTES).map(crc32));
}

/// Computes the file id: SipHash-2-4-128 with a zero key.
pub struct FileId(SipHasher24);

impl FileId {
    /// Starts with the types, the `unique` flag and the number of tuples.
    #[must_use]
    pub fn new(key_code: u16, value_code: u16, unique: bool, tuples: u64) -> Self {
        let mut hasher = SipHasher24::new();
        hasher.write(b"pleach file id 0");
        hasher.write(&key_code.to_le_bytes());
        hasher.write(&value_code.to_le_bytes());
        hasher.write(&u32::from(unique).to_le_bytes());
        hasher.write(&tuples.to_le_bytes());
        Self(hasher)
    }

    /// Adds a section; sections come in file order. `identity` is the first 32 bytes of its entry without the
    /// offset (tag, flags, length, elements), and its geometry; `unbound` yields the unbound sums of its
    /// extent.
    pub fn section(&mut self, identity: &[u8], unbound: impl IntoIterator<Item = u32>) {
        self.0.write(identity);
        let mut bytes = Vec::with_capacity(4096);
        for sum in unbound {
            bytes.extend_from_slice(&sum.to_le_bytes());
            if bytes.len() == 4096 {
                self.0.write(&bytes);
                bytes.clear();
            }
        }
        self.0.write(&bytes);
    }

    /// Returns the file id.
    #[must_use]
    pub fn finish(&self) -> [u8; 16] {
        let hash = self.0.finish128();
        let mut id = [0; 16];
        id[..8].copy_from_slice(&hash.h1.to_le_bytes());
        id[8..].copy_from_slice(&hash.h2.to_le_bytes());
        id
    }
}
