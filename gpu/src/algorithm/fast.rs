//! FAST on a device (Kim et al., section 5.2): a binary tree in blocks of 15 keys, each searched by half a
//! warp.
//!
//! The tree is the classic one of the file format, built here from the sorted columns with d_K = d_L = d_P =
//! 4, the paper's values for a GPU: each page is one block.
//!
//! The paper's form and its twin in a launch that fills the device search the tree packed, as in the paper,
//! by comparison bits in shared memory. The form that votes searches it padded, so that no block straddles a
//! line. Each half-warp has one, two or four queries in flight.

use super::search::Search;
use super::{Algorithm, FastForm};
use crate::build::classic::{ClassicBuilder, ClassicForm, DEPTHS_MAX, Level, depths};
use crate::driver::LaunchShape;
use crate::kernel::{Batch, Columns, Instance, SourceSpec};
use crate::memory::DeviceBuffer;
use crate::resident::{Resident, SortedColumns};
use crate::{GpuError, Stream};
use pleach_format::classic::Geometry;

/// Valid numbers of queries in flight per half-warp.
const SIMULTANEOUS: [u16; 3] = [1, 2, 4];
/// Levels of a block: half a warp compares its keys at once.
const BLOCK_LEVELS: u32 = 4;

/// Threads per block.
const THREADS: u32 = 256;
/// Threads per block in the paper's launch.
const PAPER_THREADS: u32 = 32;
/// Blocks per multiprocessor in the paper's launch.
const PAPER_BLOCKS: u32 = 8;
/// Bytes of shared memory for the table of ancestors.
const ANCESTORS_BYTES: u32 = 64;
/// Bytes of shared memory per warp for each of its queries in flight: a bit per lane, and two children.
const STAGE_BYTES: u32 = 136;

crate::kernel! {
    /// The FAST tree.
    FAST = SourceSpec {
        option_name: Some("SIMULTANEOUS"),
        options: &SIMULTANEOUS,
        is_embedded: false,
        numbers: |_| vec![
            ("BYTES_OF_FAST", size_of::<Arguments>() as u64),
            ("DEPTHS_MAX", DEPTHS_MAX as u64),
            ("ANCESTORS_BYTES", ANCESTORS_BYTES.into()),
            ("STAGE_BYTES", STAGE_BYTES.into()),
        ],
        ..SourceSpec::new("fast.cu", include_str!("../kernels/fast.cu"))
    };
    /// Search of the FAST tree, by comparison bits in shared memory.
    fast_paper(tree: Arguments, batch: Batch);
    /// Search of the FAST tree, by votes of a warp.
    fast_ballot(tree: Arguments, batch: Batch);
}

/// A tree above sorted columns; the same as Tree in fast.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Arguments {
    columns: Columns,
    slots: u64,
    depths: u32,
    last_decides: u32,
    levels: [Level; DEPTHS_MAX],
}

/// A table's tree.
#[derive(Debug)]
pub(crate) struct Fast {
    form: FastForm,
    instance: Instance,
    tree: DeviceBuffer,
    // The sorted columns that `arguments` points to, in addition to the tree.
    _columns: SortedColumns,
    arguments: Arguments,
    multiprocessors: u32,
    blocks_max: u32,
}

impl Fast {
    /// Builds the tree of a table's sorted columns, for `simultaneous` queries in flight per half-warp, and
    /// waits for it.
    pub(crate) fn new(
        stream: &Stream,
        resident: &Resident,
        form: FastForm,
        simultaneous: u16,
    ) -> Result<Self, GpuError> {
        let algorithm = Algorithm::Fast { form, simultaneous };
        if !SIMULTANEOUS.contains(&simultaneous) {
            return Err(algorithm.refused(format!("{simultaneous} queries in flight: take 1, 2 or 4")));
        }
        let geometry = Geometry {
            keys: resident.tuples,
            key_bytes: resident.word_bytes.into(),
            d_k: BLOCK_LEVELS,
            d_l: BLOCK_LEVELS,
            d_p: BLOCK_LEVELS,
            padded: form == FastForm::Ballot,
            aligned: false,
        };
        let Some(shape) = geometry.tree() else {
            return Err(algorithm.refused(format!("{} tuples", resident.tuples)));
        };
        let gpu = &resident.gpu;
        let columns = resident.columns(stream)?;
        let tree = resident.buffer(shape.bytes())?;
        ClassicBuilder::new(gpu, &geometry, ClassicForm::Grid)?
            .build(stream, &columns.keys, &tree)?
            .wait()?;
        let (levels, depths) = depths(&shape);
        let arguments = Arguments {
            columns: columns.arguments(),
            slots: tree.address(),
            depths,
            last_decides: resident.tuples.is_power_of_two().into(),
            levels,
        };
        let instance = resident.instance(&FAST, simultaneous);
        let multiprocessors = gpu.device().multiprocessors.max(1);
        let mut search = Self {
            form,
            instance,
            tree,
            _columns: columns,
            arguments,
            multiprocessors,
            blocks_max: multiprocessors * PAPER_BLOCKS,
        };
        let shared_bytes = search.shared_bytes(THREADS);
        match form {
            FastForm::Paper => {}
            FastForm::Grid => {
                search.blocks_max = gpu.blocks_at_once(instance, "fast_paper", THREADS, shared_bytes)?;
            }
            FastForm::Ballot => {
                search.blocks_max = gpu.blocks_at_once(instance, "fast_ballot", THREADS, shared_bytes)?;
            }
        }
        Ok(search)
    }

    fn shared_bytes(&self, threads: u32) -> u32 {
        match self.form {
            FastForm::Paper | FastForm::Grid => {
                ANCESTORS_BYTES + threads / 32 * u32::from(self.instance.option) * STAGE_BYTES
            }
            FastForm::Ballot => 0,
        }
    }

    fn shape(&self, queries: u64) -> LaunchShape {
        let threads = match self.form {
            FastForm::Paper => PAPER_THREADS,
            // Short batches run in short blocks, on all multiprocessors.
            FastForm::Grid | FastForm::Ballot => {
                let each = queries.div_ceil(self.multiprocessors.into()).min(THREADS.into());
                (each as u32).next_multiple_of(32)
            }
        };
        LaunchShape::limited(self.blocks_max, threads, self.shared_bytes(threads), queries)
    }
}

impl Search for Fast {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let shape = self.shape(batch.count);
        // SAFETY: the caller guarantees the batch and its buffers. Tree and columns belong to one table and
        // live as long as `self`, the kernel clamps what it takes from them, and the launch has the shared
        // memory that it uses.
        unsafe {
            match self.form {
                FastForm::Paper | FastForm::Grid => {
                    fast_paper(stream, self.instance, shape, &self.arguments, batch)
                }
                FastForm::Ballot => fast_ballot(stream, self.instance, shape, &self.arguments, batch),
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.tree.bytes()
    }
}
