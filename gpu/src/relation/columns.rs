//! Sorted columns on a device: the inputs of the operators.

use super::dense::Column;
use crate::kernel::{Instance, Source};
use crate::memory::DeviceBuffer;
use crate::{Gpu, GpuError, Stream};

/// Bytes per vector load: columns begin at multiples of it.
const VECTOR_BYTES: u64 = 16;
/// Tuples sorted by their keys, which are encoded words. Clones share the memory.
#[derive(Clone, Debug)]
pub struct Sorted {
    pub(super) keys: DeviceBuffer,
    pub(super) key_bytes: u8,
    pub(super) tuples: u64,
    pub(super) values: Option<Column>,
    /// A promise that all keys are distinct, or that some are equal.
    pub(super) is_unique: Option<bool>,
}

impl Sorted {
    /// Takes `tuples` ascending keys of 4, 8 or 16 bytes and, if there are values, as many of them. Keys that
    /// do not ascend give wrong answers, but nothing worse.
    ///
    /// A column in the caller's memory must begin at a multiple of 16 bytes, and the kernels may read up to
    /// the next such multiple after its end.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if a column is too short, [`GpuError::Operator`] if its width or address is not
    /// valid.
    pub fn new(
        keys: DeviceBuffer,
        key_bytes: u8,
        values: Option<Column>,
        tuples: u64,
    ) -> Result<Self, GpuError> {
        if !matches!(key_bytes, 4 | 8 | 16)
            || values.as_ref().is_some_and(|values| !matches!(values.bytes, 4 | 8))
        {
            return Err(refused("keys have 4, 8 or 16 bytes, values 4 or 8"));
        }
        keys.holds("keys", tuples.saturating_mul(key_bytes.into()))?;
        if let Some(values) = &values {
            values.buffer.holds("values", tuples.saturating_mul(values.bytes.into()))?;
        }
        let columns = [Some(&keys), values.as_ref().map(|values| &values.buffer)];
        if columns.into_iter().flatten().any(|column| !column.address().is_multiple_of(VECTOR_BYTES)) {
            return Err(refused("a column begins at a multiple of 16 bytes"));
        }
        Ok(Self { keys, key_bytes, tuples, values, is_unique: None })
    }

    /// Copies columns from the host; blocks.
    ///
    /// # Errors
    /// As [`Sorted::new`]; [`GpuError::Memory`] if the device has no room for the columns.
    pub fn from_host(
        stream: &Stream,
        (keys, key_bytes): (&[u8], u8),
        values: Option<(&[u8], u8)>,
    ) -> Result<Self, GpuError> {
        let tuples = keys.len() as u64 / u64::from(key_bytes.max(1));
        let keys = DeviceBuffer::from_host(stream, keys)?;
        let values = values
            .map(|(values, bytes)| {
                Ok::<_, GpuError>(Column { buffer: DeviceBuffer::from_host(stream, values)?, bytes })
            })
            .transpose()?;
        Self::new(keys, key_bytes, values, tuples)
    }

    /// Promises that all keys are distinct, or that some are equal, as the header of an index file states.
    /// Without a promise the operators find out by reading the keys once more. A wrong promise gives wrong
    /// answers, but nothing worse.
    #[must_use]
    pub fn promised_unique(self, is_unique: bool) -> Self {
        Self { is_unique: Some(is_unique), ..self }
    }

    /// Returns the number of tuples.
    #[must_use]
    pub fn tuples(&self) -> u64 {
        self.tuples
    }

    /// Returns the bytes per key.
    #[must_use]
    pub fn key_bytes(&self) -> u8 {
        self.key_bytes
    }

    /// Returns the keys.
    #[must_use]
    pub fn keys(&self) -> &DeviceBuffer {
        &self.keys
    }

    /// Returns the values, if there are any.
    #[must_use]
    pub fn values(&self) -> Option<&Column> {
        self.values.as_ref()
    }

    /// Returns true if it was promised that all keys are distinct.
    pub(super) fn is_promised_unique(&self) -> bool {
        self.is_unique == Some(true)
    }

    pub(super) fn gpu(&self) -> &Gpu {
        self.keys.gpu()
    }

    pub(super) fn instance(&self, source: Source) -> Instance {
        Instance::new(source, self.key_bytes, 0)
    }

    /// Returns the address of the values; 0 without values.
    pub(super) fn values_address(&self) -> u64 {
        self.values.as_ref().map_or(0, |values| values.buffer.address())
    }
}

pub(super) fn refused(cause: impl Into<String>) -> GpuError {
    GpuError::Operator { operator: "join", cause: cause.into() }
}
