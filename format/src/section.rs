//! The section table: one 4 KiB page of 128-byte entries, directly after the superblock.

mod parameters;
pub(crate) mod rows;

pub use parameters::{
    BtreeParameters, ColumnParameters, FastParameters, GridParameters, HarmoniaParameters, LEVELS_MAX,
    LineParameters, PARAMETERS_BYTES, PackedParameters, Parameters, SpineParameters, TextParameters,
    TrieParameters,
};
pub use rows::{Need, SECTIONS, SectionKind, Tag};

use crate::checksum::{FileId, SUM_BYTES};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Offset of the section table.
pub const TABLE_OFFSET: u64 = 4096;
/// Bytes of the section table; its CRC, in the superblock, covers all of them.
pub const TABLE_BYTES: usize = 4096;
/// Bytes per entry.
pub const ENTRY_BYTES: usize = 128;
/// Maximum number of sections in a file.
pub const SECTIONS_MAX: usize = TABLE_BYTES / ENTRY_BYTES - 1;
/// Alignment of sections.
pub const SECTION_ALIGN: u64 = 4096;
/// Alignment of FAST trees of [`LARGE_SECTION_BYTES`] or more: a huge page.
pub const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// Alignment of other sections of [`LARGE_SECTION_BYTES`] or more: an eighth of a huge page.
pub const LARGE_ALIGN: u64 = 256 << 10;
/// Minimum length of a section with a larger alignment than [`SECTION_ALIGN`].
pub const LARGE_SECTION_BYTES: u64 = 32 << 20;
/// Alignment of arrays inside a section; arrays are also padded to it.
pub const ARRAY_ALIGN: u64 = 128;

/// Flag of an entry: a reader that does not know the tag must reject the file.
pub const REQUIRED: u32 = 1;

/// Returns the offset in the file of the entry at `index` of the section table.
#[must_use]
pub const fn entry_offset(index: usize) -> u64 {
    TABLE_OFFSET + (index * ENTRY_BYTES) as u64
}

/// One entry of the section table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Entry {
    /// Name of the section.
    pub tag: Tag,
    /// [`REQUIRED`] or zero.
    pub flags: U32,
    /// Offset of its first byte in the file.
    pub offset: U64,
    /// Bytes of content; padding follows up to the next section.
    pub length: U64,
    /// Number of elements: tuples, lines, records or sums.
    pub elements: U64,
    /// Offset in the file of the list of this section's sums; 0 for SUM2.
    pub sums_offset: U64,
    /// Number of sums in that list: one per 8 KiB block up to the next section. 0 for SUM2.
    pub sums: U64,
    /// CRC32 of that list (for SUM2: of its own extent).
    pub sums_crc: U32,
    /// Zero.
    pub reserved: U32,
    /// Parameters, by which the section is laid out.
    pub parameters: Parameters,
    /// Zero.
    pub reserved2: [u8; 8],
}

const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES);

impl Entry {
    /// Creates an entry. The place of its sums is set later, when it is known.
    #[must_use]
    pub fn new(
        tag: Tag,
        required: bool,
        offset: u64,
        length: u64,
        elements: u64,
        parameters: impl Into<Parameters>,
    ) -> Self {
        Self {
            tag,
            flags: U32::new(if required { REQUIRED } else { 0 }),
            offset: U64::new(offset),
            length: U64::new(length),
            elements: U64::new(elements),
            sums_offset: U64::ZERO,
            sums: U64::ZERO,
            sums_crc: U32::ZERO,
            reserved: U32::ZERO,
            parameters: parameters.into(),
            reserved2: [0; 8],
        }
    }

    /// Adds this section to the file's identity.
    pub fn identify(&self, id: &mut FileId, unbound: impl IntoIterator<Item = u32>) {
        let mut identity = Vec::with_capacity(ENTRY_BYTES);
        identity.extend_from_slice(self.tag.as_bytes());
        identity.extend_from_slice(self.flags.as_bytes());
        identity.extend_from_slice(self.length.as_bytes());
        identity.extend_from_slice(self.elements.as_bytes());
        identity.extend_from_slice(self.parameters.as_bytes());
        id.section(&identity, unbound);
    }

    /// Returns the bytes of the list of sums.
    #[must_use]
    pub fn sums_bytes(&self) -> u64 {
        self.sums.get().saturating_mul(SUM_BYTES as u64)
    }
}

/// Builds the 4 KiB of the table.
///
/// # Panics
/// If there are more than [`SECTIONS_MAX`] entries.
#[must_use]
pub fn encode_table(entries: &[Entry]) -> [u8; TABLE_BYTES] {
    assert!(entries.len() <= SECTIONS_MAX, "a section table holds {SECTIONS_MAX} entries");
    let mut table = [0; TABLE_BYTES];
    for (slot, entry) in table.chunks_exact_mut(ENTRY_BYTES).zip(entries) {
        slot.copy_from_slice(entry.as_bytes());
    }
    table
}

/// Reads the first `count` entries of a table, without checks.
#[must_use]
pub fn decode_table(table: &[u8], count: usize) -> Vec<Entry> {
    table
        .chunks_exact(ENTRY_BYTES)
        .take(count.min(SECTIONS_MAX))
        .filter_map(|bytes| Entry::read_from_bytes(bytes).ok())
        .collect()
}
