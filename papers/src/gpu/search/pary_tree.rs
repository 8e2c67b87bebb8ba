//! P-ary search of the contiguous B+tree, as proposed in the slides on P-ary search: several threads per
//! query compare the keys of a node together.

use super::pary::P_ARY;
use pleach_gpu::internal::{
    BTREE_TEXT, Batch, BtreeTree, BuiltBtree, External, Instance, LaunchShape, Resident, Search, SourceSpec,
    blocks_at_once,
};
use pleach_gpu::{GpuError, Stream};
use std::sync::Arc;

/// Queries that a block answers at a time if each has at most a warp's threads.
const QUERIES: u32 = 32;

pleach_gpu::kernel! {
    /// P-ary search of the contiguous B+tree.
    PARY_TREE = SourceSpec {
        shared: &[BTREE_TEXT],
        option_name: Some("P_ARY"),
        options: &P_ARY,
        numbers: |_| vec![BtreeTree::NUMBER],
        ..SourceSpec::new("pary_tree.cu", include_str!("../kernels/pary_tree.cu"))
    };
    /// Search of the B+tree, several threads per query.
    btree_pary(tree: BtreeTree, batch: Batch);
}

/// A tree that is searched by several threads per query.
#[derive(Debug)]
struct PAryTree {
    tree: BuiltBtree,
    threads_a_query: u32,
    instance: Instance,
    blocks_max: u32,
}

/// Builds the tree of an order, for a number of threads per query. Every thread has a key to compare if a
/// node has as many keys as a query has threads: with order `threads + 1`.
pub(super) fn make(stream: &Stream, resident: &Resident, of: External) -> Result<Arc<dyn Search>, GpuError> {
    let [threads, order, _] = of.parameters;
    if !P_ARY.contains(&threads) {
        let cause = format!("{threads} threads a query: take a power of two from 4 to 1024");
        return Err(GpuError::Algorithm { algorithm: of.name, cause });
    }
    let tree = BuiltBtree::new(stream, resident, order, of.name)?;
    let instance = resident.instance(&PARY_TREE, threads);
    let mut search = PAryTree { tree, threads_a_query: threads.into(), instance, blocks_max: 1 };
    search.blocks_max = blocks_at_once(&resident.gpu, instance, "btree_pary", search.threads(), 0)?;
    Ok(Arc::new(search))
}

impl PAryTree {
    /// Returns true if the threads of a query agree by votes of a warp.
    fn is_in_warp(&self) -> bool {
        self.threads_a_query <= 32
    }

    /// Returns the number of threads per block.
    fn threads(&self) -> u32 {
        self.threads_a_query * if self.is_in_warp() { QUERIES } else { 1 }
    }
}

impl Search for PAryTree {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let threads_needed = batch.count.saturating_mul(self.threads_a_query.into());
        let shape = LaunchShape::limited(self.blocks_max, self.threads(), 0, threads_needed);
        // SAFETY: the caller guarantees the batch and its buffers; `tree` owns the memory that its arguments
        // point to.
        unsafe { btree_pary(stream, self.instance, shape, &self.tree.arguments(), batch) }
    }

    fn wants_zeroed_present(&self) -> bool {
        !self.is_in_warp()
    }

    fn bytes(&self) -> u64 {
        self.tree.bytes()
    }
}
