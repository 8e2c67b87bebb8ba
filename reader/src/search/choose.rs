//! Choice of the search: by a tree, the grid, the spine, or a sweep.

use super::descent::{self, Hit, Output};
use super::plan::Plan;
use super::{grid, sweep, tree};
use crate::arch::Simd;
use pleach_format::key::{Bits, Word};

/// Searches for one query, by a tree, by the grid, or from the root to its tuple line.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(crate) unsafe fn locate<S: Simd, W: Word, B: Bits>(plan: &Plan<'_>, query: W) -> Hit<B> {
    debug_assert!(S::detect().is_some());
    if let Some(way) = &plan.tree {
        // SAFETY: the caller guarantees the CPU features of `S`.
        return unsafe { tree::locate::<S, W, B>(plan, way, query) };
    }
    if let Some(grid) = &plan.grid {
        // SAFETY: the caller guarantees the CPU features of `S`.
        return unsafe { grid::locate::<S, W, B>(plan, grid, query) };
    }
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe { descent::leaf::<S, W, B>(plan, descent::line_of::<S, W>(plan, query), query) }
}

/// Searches for all queries: sweeps if they ascend and are close, and otherwise goes by a tree, the grid or the
/// spine. Each query is xor-ed with `flip`.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(crate) unsafe fn batch<S: Simd, W: Word, B: Bits, O: Output<B>>(
    plan: &Plan<'_>,
    queries: &[W],
    flip: W,
    output: &mut O,
) {
    debug_assert!(S::detect().is_some());
    // SAFETY: the caller guarantees the CPU features of `S`.
    if unsafe { sweep::pays::<S, W>(plan, queries, flip) } {
        // SAFETY: the caller guarantees the CPU features of `S`.
        return unsafe { sweep::sweep::<S, W, B, O>(plan, queries, flip, output) };
    }
    if let Some(way) = &plan.tree {
        // SAFETY: the caller guarantees the CPU features of `S`.
        return unsafe { tree::batch::<S, W, B, O>(plan, way, queries, flip, output) };
    }
    if let Some(grid) = &plan.grid {
        // SAFETY: the caller guarantees the CPU features of `S`.
        return unsafe { grid::batch::<S, W, B, O>(plan, grid, queries, flip, output) };
    }
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe { descent::batch::<S, W, B, O>(plan, queries, flip, output) }
}
