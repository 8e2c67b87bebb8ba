//! The steps of a search, with instructions of the caller's choice: for the crate `pleach-papers` alone.

use super::engine::any;
use super::{Classic, Work};
use crate::arch::Simd;
use pleach_format::classic::TreeWord;

/// Writes the gaps in which queries end, with other instructions or another number `N` of queries in flight
/// than [`Classic::lower_bounds`] uses.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires, and BMI2 with `PEXT`.
#[inline(always)]
pub unsafe fn gaps<S: Simd, W: TreeWord, const PEXT: bool, const N: usize>(
    tree: &Classic<'_, W>,
    queries: &[W],
    gaps: &mut [u64],
) {
    // SAFETY: the caller guarantees the CPU features of `S`, and BMI2 with `PEXT`.
    unsafe { any::<S, W, PEXT, N>(&tree.layout.way, tree.bytes, queries, gaps) }
}

/// Turns gaps into ranks; full keys of `ahead` queries are prefetched.
pub fn ranks<W: TreeWord>(
    tree: &Classic<'_, W>,
    queries: &[W],
    gaps: &mut [u64],
    ahead: usize,
    work: &mut Work,
) {
    tree.finish_all(queries, gaps, ahead, work);
}
