//! What operators of one pass share: kernels/onepass.cuh.

use crate::Gpu;
use crate::kernel::Text;

/// Text that the kernels of one pass share.
pub(super) const ONE_PASS_TEXT: Text =
    Text { name: "onepass.cuh", text: include_str!("../kernels/onepass.cuh") };

/// Returns how many tiles ahead a block brings columns to the level 2 cache: those that start within a
/// memory's latency.
pub(super) fn tiles_ahead(gpu: &Gpu) -> u32 {
    gpu.device().multiprocessors.saturating_mul(3) / 5
}
