//! P-ary search of the sorted keys (Kaldewey et al.): P threads search for one query together.
//!
//! It is meant for short batches. A query takes about log P rounds of parallel loads, where binary search
//! takes log 2 rounds one after another. Blocks are small, so that few queries spread over all
//! multiprocessors. Each query sets its own presence bit, in a bitmap that is zeroed before.

use super::PAryForm;
use pleach_gpu::internal::{
    Batch, Columns, External, Instance, LaunchShape, Resident, Search, SortedColumns, SourceSpec,
    blocks_at_once,
};
use pleach_gpu::{GpuError, Stream};
use std::sync::Arc;

/// Valid values of P.
pub(crate) const P_ARY: [u16; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Threads per block, unless P is more: this number fills a multiprocessor when it runs its maximum number of
/// blocks.
const THREADS: u32 = 64;

pleach_gpu::kernel! {
    /// P-ary search of the sorted keys.
    PARY = SourceSpec {
        option_name: Some("P_ARY"),
        options: &P_ARY,
        ..SourceSpec::new("pary.cu", include_str!("../kernels/pary.cu"))
    };
    /// P-ary search, boundaries in shared memory.
    pary_list(columns: Columns, batch: Batch);
    /// P-ary search, by votes of a warp.
    pary_ballot(columns: Columns, batch: Batch) if |instance| instance.option <= 32;
}

/// Sorted keys that are searched by several threads per query.
#[derive(Debug)]
struct PAry {
    form: PAryForm,
    threads_a_query: u32,
    instance: Instance,
    columns: SortedColumns,
    blocks_max: u32,
}

/// Creates the search of a table's sorted keys, with a number of threads per query.
pub(super) fn make(stream: &Stream, resident: &Resident, of: External) -> Result<Arc<dyn Search>, GpuError> {
    let form = if of.form == PAryForm::Ballot.name() { PAryForm::Ballot } else { PAryForm::List };
    Ok(Arc::new(PAry::new(stream, resident, of.parameters[0], form)?))
}

impl PAry {
    fn new(stream: &Stream, resident: &Resident, threads: u16, form: PAryForm) -> Result<Self, GpuError> {
        let most = if form == PAryForm::Ballot { 32 } else { 1024 };
        if !P_ARY.contains(&threads) || threads > most {
            let cause = format!("{threads} threads a query: this form takes a power of two from 4 to {most}");
            return Err(GpuError::Algorithm { algorithm: "p-ary", cause });
        }
        let instance = resident.instance(&PARY, threads);
        let entry = if form == PAryForm::Ballot { "pary_ballot" } else { "pary_list" };
        let mut search = Self {
            form,
            threads_a_query: threads.into(),
            instance,
            columns: resident.columns(stream)?,
            blocks_max: 1,
        };
        search.blocks_max =
            blocks_at_once(&resident.gpu, instance, entry, search.threads(), search.shared_bytes())?;
        Ok(search)
    }

    /// Returns the number of threads per block.
    fn threads(&self) -> u32 {
        self.threads_a_query.max(THREADS)
    }

    /// Returns the shared memory per block. Each of its queries needs P probed keys, a bound, the query, and
    /// the start of its part.
    fn shared_bytes(&self) -> u32 {
        let words = self.threads_a_query + 2;
        let queries = self.threads() / self.threads_a_query;
        if self.form == PAryForm::Ballot {
            0
        } else {
            queries * (words * u32::from(self.instance.word_bytes) + 8)
        }
    }
}

impl Search for PAry {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let threads_needed = batch.count.saturating_mul(self.threads_a_query.into());
        let shape =
            LaunchShape::limited(self.blocks_max, self.threads(), self.shared_bytes(), threads_needed);
        let columns = self.columns.arguments();
        // SAFETY: the caller guarantees the batch and its buffers; `self` owns the columns, and the launch
        // has the shared memory that the kernel uses.
        unsafe {
            match self.form {
                PAryForm::List => pary_list(stream, self.instance, shape, &columns, batch),
                PAryForm::Ballot => pary_ballot(stream, self.instance, shape, &columns, batch),
            }
        }
    }

    fn wants_zeroed_present(&self) -> bool {
        true
    }

    fn bytes(&self) -> u64 {
        0
    }
}
