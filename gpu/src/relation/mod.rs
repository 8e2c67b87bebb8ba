//! Relational operators of one pass over sorted columns on a device.
//!
//! [`merge`] has joins and set operations. [`select`] and [`reduce`] read each tuple once and write each
//! result once: tiles pass on their numbers of results (kernels/onepass.cuh), so that no pass has to count
//! first or gather afterwards. [`project`] and [`product`] know their places; a projection that changes the
//! order is sorted by [`sort`] where the caller requests it.
//!
//! Answers follow the rules of `pleach-relation`. The input bounds the size of the results, except for a
//! product, whose size is checked before memory is allocated.

pub(crate) mod columns;
pub mod condition;
mod dense;
pub(crate) mod expand;
pub(crate) mod job;
pub(crate) mod merge;
pub(crate) mod project;
pub(crate) mod reduce;
pub(crate) mod select;
pub(crate) mod sort;

pub use columns::Sorted;
pub use condition::{Condition, Test};
pub use dense::{Column, Relation};
pub use job::Stages;
pub use merge::{Form, Joined, Operation, Rule, merge};
pub use project::{Combine, PARTS_MAX, Part, Projected, Projection, Side, product, project};
pub use reduce::{Numbers, Reduction, reduce};
pub use select::select;
pub use sort::sort;

use crate::kernel::Text;
use crate::memory::DeviceBuffer;
use crate::{Gpu, GpuError};
use job::Job;

/// Text that the kernels of one pass share.
const ONE_PASS_TEXT: Text = Text { name: "onepass.cuh", text: include_str!("../kernels/onepass.cuh") };
/// Maximum number of tuples of a relation, so that no product of two relations overflows.
const TUPLES_MAX: u64 = 1 << 31;

/// Results of an operator, and its milliseconds on the device.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The results.
    pub relation: Relation,
    /// Times of the stages.
    pub stages: Stages,
}

/// Returns how many tiles ahead a block brings columns to the level 2 cache: those that start within a
/// memory's latency.
fn tiles_ahead(gpu: &Gpu) -> u32 {
    gpu.device().multiprocessors.saturating_mul(3) / 5
}

/// Addresses of an operator's input.
#[derive(Clone, Copy, Debug)]
struct Input {
    keys: u64,
    values: u64,
    tuples: u32,
    /// True if vectors of 16 bytes may be loaded.
    is_aligned: bool,
}

impl Input {
    fn new(operator: &'static str, from: &Relation) -> Result<Self, GpuError> {
        let refused = |cause: String| GpuError::Operator { operator, cause };
        let tuples = u32::try_from(from.tuples()).ok().filter(|&tuples| u64::from(tuples) <= TUPLES_MAX);
        let tuples = tuples.ok_or_else(|| {
            refused(format!("{} tuples: it accepts at most {TUPLES_MAX}, so split the input", from.tuples()))
        })?;
        let keys = from.keys().address();
        let values = from.values().map_or(0, |values| values.buffer.address());
        Ok(Self { keys, values, tuples, is_aligned: keys.is_multiple_of(16) && values.is_multiple_of(16) })
    }
}

/// Columns with room for the maximum number of results.
#[derive(Debug)]
struct Output {
    keys: DeviceBuffer,
    values: Option<DeviceBuffer>,
    key_bytes: u8,
    value_bytes: u8,
}

impl Output {
    /// Allocates the columns.
    ///
    /// # Errors
    /// [`GpuError::Memory`] with the total size, before anything is allocated.
    fn new(job: &mut Job<'_>, gpu: &Gpu, widths: [u8; 2], tuples: u64) -> Result<Self, GpuError> {
        let [key_bytes, value_bytes] = widths;
        let needed = tuples.saturating_mul(u64::from(key_bytes) + u64::from(value_bytes));
        let free = gpu.left_bytes()?;
        if needed > free {
            return Err(GpuError::Memory { needed, free });
        }
        let keys = job.buffer(tuples * u64::from(key_bytes))?;
        let values = (value_bytes > 0).then(|| job.buffer(tuples * u64::from(value_bytes))).transpose()?;
        Ok(Self { keys, values, key_bytes, value_bytes })
    }

    fn values(&self) -> u64 {
        self.values.as_ref().map_or(0, DeviceBuffer::address)
    }

    /// Returns the first `tuples` results.
    fn relation(self, tuples: u64) -> Result<Relation, GpuError> {
        let part = |buffer: &DeviceBuffer, bytes: u8| buffer.part(0, tuples * u64::from(bytes));
        let column = |values| Column { buffer: part(values, self.value_bytes), bytes: self.value_bytes };
        let values = self.values.as_ref().map(column);
        Relation::of(part(&self.keys, self.key_bytes), self.key_bytes, values, tuples)
    }
}
