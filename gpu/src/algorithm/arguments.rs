//! What the kernels take that read a device image or make one, whichever form it has.

use super::order::DESCENTS_MAX;
use crate::image::LEVELS_MAX;
use crate::kernel::Text;

/// Text that the kernels share which read the device image.
pub(crate) const IMAGE_TEXT: Text = Text { name: "image.cuh", text: include_str!("../kernels/image.cuh") };

/// Threads per block that makes an image.
pub(crate) const IMAGE_THREADS: u32 = 256;

/// Arguments of the kernels that describe a table; the same as in image.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Arguments {
    pub(crate) lines: u64,
    pub(crate) nodes: [u64; LEVELS_MAX],
    pub(crate) top: u64,
    /// The compact top, or the top of a fine image.
    pub(crate) compact: u64,
    /// Smallest and largest word without the gap, low half first.
    pub(crate) low: [u64; 2],
    pub(crate) high: [u64; 2],
    pub(crate) gap_value: [u64; 2],
    pub(crate) tuples: u64,
    pub(crate) last_line: u32,
    pub(crate) top_count: u32,
    pub(crate) levels: u32,
    pub(crate) top_shift: u32,
    /// Number of parts of 16 bytes of the compact top.
    pub(crate) compact_parts: u32,
    pub(crate) bucket_bits: u32,
    pub(crate) bucket_shift: u32,
    /// Bits per code of level 0.
    pub(crate) low_bits: u32,
    pub(crate) gap_at: u32,
    pub(crate) gap_bits: u32,
    /// Address of a sample of the batch's order; 0 if the search does not depend on one.
    pub(crate) order: u64,
    /// Maximum number of descents of a batch that counts as ascending.
    pub(crate) descents_max: u32,
    /// Nonzero if the lines are many more than the level 2 cache can hold.
    pub(crate) streams_lines: u32,
    /// Of a fine image: children of a group of the top.
    pub(crate) group_children: u32,
    /// Of a fine image: nonzero if nodes of the last level are wide.
    pub(crate) is_wide: u16,
    /// Nonzero if the image is mirrored.
    pub(crate) is_mirrored: u16,
}

impl Arguments {
    /// Returns the arguments for a batch that is left to a sweep if the sample at address `order` shows that
    /// it ascends.
    pub(crate) fn unless(self, order: u64) -> Self {
        Self { order, descents_max: DESCENTS_MAX, ..self }
    }
}
