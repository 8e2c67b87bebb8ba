//! The inputs and the results of operators on relations.

use super::dense::{Column, Relation};
use super::job::{Job, Stages};
use crate::memory::DeviceBuffer;
use crate::{Gpu, GpuError};

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

/// Addresses of an operator's input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    pub(super) keys: u64,
    pub(super) values: u64,
    pub(super) tuples: u32,
    /// True if vectors of 16 bytes may be loaded.
    pub(super) is_aligned: bool,
}

impl Input {
    pub(super) fn new(operator: &'static str, from: &Relation) -> Result<Self, GpuError> {
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
pub(super) struct Output {
    pub(super) keys: DeviceBuffer,
    pub(super) values: Option<DeviceBuffer>,
    pub(super) key_bytes: u8,
    pub(super) value_bytes: u8,
}

impl Output {
    /// Allocates the columns.
    ///
    /// # Errors
    /// [`GpuError::Memory`] with the total size, before anything is allocated.
    pub(super) fn new(job: &mut Job<'_>, gpu: &Gpu, widths: [u8; 2], tuples: u64) -> Result<Self, GpuError> {
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

    pub(super) fn values(&self) -> u64 {
        self.values.as_ref().map_or(0, DeviceBuffer::address)
    }

    /// Returns the first `tuples` results.
    pub(super) fn relation(self, tuples: u64) -> Result<Relation, GpuError> {
        let part = |buffer: &DeviceBuffer, bytes: u8| buffer.part(0, tuples * u64::from(bytes));
        let column = |values| Column { buffer: part(values, self.value_bytes), bytes: self.value_bytes };
        let values = self.values.as_ref().map(column);
        Relation::of(part(&self.keys, self.key_bytes), self.key_bytes, values, tuples)
    }
}
