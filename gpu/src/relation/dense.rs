//! A relation on a device: a column of keys and, if there are values, a column of them.

use crate::memory::DeviceBuffer;
use crate::{GpuError, Stream};

/// A column of values.
#[derive(Clone, Debug)]
pub struct Column {
    /// The values.
    pub buffer: DeviceBuffer,
    /// Bytes per value: 4 or 8.
    pub bytes: u8,
}

/// Tuples sorted by their keys. Clones share the memory.
#[derive(Clone, Debug)]
pub struct Relation {
    key_bytes: u8,
    tuples: u64,
    keys: DeviceBuffer,
    values: Option<Column>,
}

impl Relation {
    /// Takes `tuples` sorted keys of 4 or 8 bytes, encoded as words, and, if there are values, as many of
    /// them.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if a column is too short, [`GpuError::Operator`] for other widths.
    pub fn dense(
        keys: DeviceBuffer,
        key_bytes: u8,
        values: Option<Column>,
        tuples: u64,
    ) -> Result<Self, GpuError> {
        let made = Self::of(keys, key_bytes, values, tuples)?;
        made.keys.holds("keys", tuples.saturating_mul(key_bytes.into()))?;
        if let Some(values) = &made.values {
            values.buffer.holds("values", tuples.saturating_mul(values.bytes.into()))?;
        }
        Ok(made)
    }

    /// Copies columns from the host, for a relation as [`Relation::dense`] makes; blocks.
    ///
    /// # Errors
    /// As [`Relation::dense`]; [`GpuError::Memory`] if the device has no room for the columns.
    pub fn from_host(
        stream: &Stream,
        (keys, key_bytes): (&[u8], u8),
        values: Option<(&[u8], u8)>,
    ) -> Result<Self, GpuError> {
        let tuples = keys.len() as u64 / u64::from(key_bytes.max(1));
        let keys = DeviceBuffer::from_host(stream, keys)?;
        let copy = |(values, bytes): (&[u8], u8)| {
            Ok::<_, GpuError>(Column { buffer: DeviceBuffer::from_host(stream, values)?, bytes })
        };
        Self::dense(keys, key_bytes, values.map(copy).transpose()?, tuples)
    }

    /// Creates a relation from columns whose lengths are known to be right. Checks their widths.
    pub(super) fn of(
        keys: DeviceBuffer,
        key_bytes: u8,
        values: Option<Column>,
        tuples: u64,
    ) -> Result<Self, GpuError> {
        let has_width = |bytes: u8| bytes == 4 || bytes == 8;
        if !has_width(key_bytes) || values.as_ref().is_some_and(|values| !has_width(values.bytes)) {
            let cause = "keys and values have 4 or 8 bytes each".to_owned();
            return Err(GpuError::Operator { operator: "relation", cause });
        }
        Ok(Self { key_bytes, tuples, keys, values })
    }

    /// Returns the bytes per key.
    #[must_use]
    pub fn key_bytes(&self) -> u8 {
        self.key_bytes
    }

    /// Returns the number of tuples.
    #[must_use]
    pub fn tuples(&self) -> u64 {
        self.tuples
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

    /// Returns the bytes of all tuples.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tuples * (u64::from(self.key_bytes) + u64::from(self.value_bytes()))
    }

    /// Returns the bytes per value; 0 without values.
    pub(super) fn value_bytes(&self) -> u8 {
        self.values.as_ref().map_or(0, |values| values.bytes)
    }
}
