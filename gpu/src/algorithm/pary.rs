//! P-ary search of the sorted keys (Kaldewey et al.): P threads search for one query together.
//!
//! Meant for short batches: a query takes about log P rounds of loads that run side by side, where binary search takes
//! log 2 of them one after another. Blocks are small, so that few queries spread over all multiprocessors; each query
//! sets its own bit of presence, in a bitmap that is zeroed before.

use super::binary::shape;
use super::{Algorithm, PAryForm, Search};
use crate::kernel::Instance;
use crate::kernel::table::{Batch, Source, pary_ballot, pary_list};
use crate::resident::{Resident, SortedColumns};
use crate::{GpuError, Stream};

/// What P may be.
pub(crate) const P_ARY: [u16; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Threads of a block, unless P is more: so many fill a multiprocessor with the most blocks that it runs.
const THREADS: u32 = 64;

/// Sorted keys that are searched by several threads a query.
#[derive(Debug)]
pub(crate) struct PAry {
    form: PAryForm,
    threads_a_query: u32,
    instance: Instance,
    columns: SortedColumns,
    blocks_max: u32,
}

impl PAry {
    /// Takes the sorted keys of a table, for `threads` threads a query.
    pub(crate) fn new(
        stream: &Stream,
        resident: &Resident,
        threads: u16,
        form: PAryForm,
    ) -> Result<Self, GpuError> {
        let most = if form == PAryForm::Ballot { 32 } else { 1024 };
        if !P_ARY.contains(&threads) || threads > most {
            let cause = format!("{threads} threads a query: this form takes a power of two from 4 to {most}");
            return Err(Algorithm::PAry { threads, form }.refused(cause));
        }
        let instance = resident.instance(Source::PAry, threads);
        let entry = if form == PAryForm::Ballot { "pary_ballot" } else { "pary_list" };
        let mut search = Self {
            form,
            threads_a_query: threads.into(),
            instance,
            columns: resident.columns(stream)?,
            blocks_max: 1,
        };
        search.blocks_max =
            resident.gpu.blocks_at_once(instance, entry, search.threads(), search.shared_bytes())?;
        Ok(search)
    }

    /// Threads of a block.
    fn threads(&self) -> u32 {
        self.threads_a_query.max(THREADS)
    }

    /// Of each query of a block: P probed keys, a bound, the query, and where the part begins.
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
        let shape = shape(self.blocks_max, self.threads(), self.shared_bytes(), threads_needed);
        let columns = self.columns.arguments();
        // SAFETY: the caller's promise; the columns are of this table, and the shared memory is what the kernel takes.
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
