//! A relation on a device: sorted columns, dense or as a list of pages.

use super::{Column, refused};
use pleach_gpu::{DeviceBuffer, Gpu, GpuError, Stream};

/// Maximum number of tuples of a relation, so that no product of two relations overflows.
const TUPLES_MAX: u64 = 1 << 31;

/// Order of a list of pages. Slots are those of a pool, each with a part of every column.
#[derive(Clone, Debug)]
pub struct PageList {
    /// Slot of each page in order, u32.
    pub directory: DeviceBuffer,
    /// Rank of the first tuple of each page in order, u64, followed by the number of tuples.
    pub starts: DeviceBuffer,
    /// Slot of the next page, by slot, u32; all ones after the last page.
    pub links: DeviceBuffer,
    /// Number of pages.
    pub pages: u64,
    /// Maximum number of tuples per page; the last page of a CTA may have fewer.
    pub page_tuples: u32,
}

/// Tuples sorted by their keys. Clones share the memory.
#[derive(Clone, Debug)]
pub struct Relation {
    key_bytes: u8,
    tuples: u64,
    keys: DeviceBuffer,
    columns: Vec<Column>,
    pages: Option<PageList>,
}

/// A relation as kernels read it; the same as in relation.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct View {
    keys: u64,
    values: u64,
    starts: u64,
    directory: u64,
    tuples: u64,
    pages: u64,
    page_tuples: u32,
    value_bytes: u32,
}

impl Relation {
    /// Takes dense columns: `tuples` sorted keys of 4 or 8 bytes, encoded as words, and at most two columns
    /// of values beside them. Operators read the first column; a join returns two.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if a column is too short, [`GpuError::Operator`] for other widths or more
    /// than 2^31 tuples.
    pub fn dense(
        keys: DeviceBuffer,
        key_bytes: u8,
        columns: Vec<Column>,
        tuples: u64,
    ) -> Result<Self, GpuError> {
        let made = Self::of(keys, key_bytes, columns, tuples, None)?;
        made.keys.holds("keys", tuples * u64::from(key_bytes))?;
        for column in &made.columns {
            column.buffer.holds("values", tuples * u64::from(column.bytes))?;
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
        values: &[(&[u8], u8)],
    ) -> Result<Self, GpuError> {
        let tuples = keys.len() as u64 / u64::from(key_bytes.max(1));
        let keys = DeviceBuffer::from_host(stream, keys)?;
        let copy = |&(values, bytes): &(&[u8], u8)| {
            Ok(Column { buffer: DeviceBuffer::from_host(stream, values)?, bytes })
        };
        let columns = values.iter().map(copy).collect::<Result<_, GpuError>>()?;
        Self::dense(keys, key_bytes, columns, tuples)
    }

    /// Creates a relation from columns whose lengths are known to be right. Checks their widths.
    pub(crate) fn of(
        keys: DeviceBuffer,
        key_bytes: u8,
        columns: Vec<Column>,
        tuples: u64,
        pages: Option<PageList>,
    ) -> Result<Self, GpuError> {
        let has_widths = |bytes: u8| bytes == 4 || bytes == 8;
        if !has_widths(key_bytes)
            || columns.len() > 2
            || columns.iter().any(|column| !has_widths(column.bytes))
        {
            return Err(refused("keys and at most two columns of values have 4 or 8 bytes each"));
        }
        Ok(Self { key_bytes, tuples, keys, columns, pages })
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

    /// Returns the keys, or the pool with the pages' parts of them.
    #[must_use]
    pub fn keys(&self) -> &DeviceBuffer {
        &self.keys
    }

    /// Returns the columns of values, or the pools with the pages' parts of them.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the list of pages; `None` if the relation is dense.
    #[must_use]
    pub fn pages(&self) -> Option<&PageList> {
        self.pages.as_ref()
    }

    /// Returns the keys with only one of the columns, or with none.
    #[must_use]
    pub fn with_column(&self, number: Option<usize>) -> Self {
        let columns = number.and_then(|number| self.columns.get(number)).cloned().into_iter().collect();
        Self { columns, ..self.clone() }
    }

    /// Returns the bytes of all tuples, each column once.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let values: u64 = self.columns.iter().map(|column| u64::from(column.bytes)).sum();
        self.tuples * (u64::from(self.key_bytes) + values)
    }

    pub(super) fn gpu(&self) -> &Gpu {
        self.keys.gpu()
    }

    /// Returns the bytes per value of the first column; 0 without columns.
    pub(crate) fn value_bytes(&self) -> u8 {
        self.columns.first().map_or(0, |column| column.bytes)
    }

    pub(super) fn view(&self) -> View {
        let pages = self.pages.as_ref();
        View {
            keys: self.keys.address(),
            values: self.columns.first().map_or(0, |column| column.buffer.address()),
            starts: pages.map_or(0, |pages| pages.starts.address()),
            directory: pages.map_or(0, |pages| pages.directory.address()),
            tuples: self.tuples,
            pages: pages.map_or(0, |pages| pages.pages),
            page_tuples: pages.map_or(0, |pages| pages.page_tuples),
            value_bytes: self.value_bytes().into(),
        }
    }

    /// Checks that operators accept the relation.
    pub(crate) fn check(&self) -> Result<(), GpuError> {
        if self.tuples > TUPLES_MAX {
            return Err(refused(format!("{} tuples: a relation has at most {TUPLES_MAX}", self.tuples)));
        }
        Ok(())
    }
}
