//! Columns of fixed width, stored one after the other, read as records.
//!
//! `numpy.save` stores an array in Fortran order in this way, which is what a data frame yields. A stretch of
//! each requested column is read, and records are assembled from these.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// Bytes of records that are assembled at a time.
const PIECE_BYTES: usize = 4 << 20;

/// Records of the requested columns, in their order.
pub(crate) struct Columnar {
    file: File,
    /// Start of the first column.
    start: u64,
    rows: u64,
    /// Bytes per element.
    width: usize,
    columns: Vec<u64>,
    /// The row after those in `records`.
    next: u64,
    records: Vec<u8>,
    used: usize,
    stretch: Vec<u8>,
}

impl Columnar {
    /// Creates a reader of columns of `rows` elements of `width` bytes each, which begin at `start`. The
    /// caller has checked that they end within the file.
    pub(crate) fn new(file: File, start: u64, rows: u64, width: usize, columns: Vec<u64>) -> Self {
        let (records, stretch) = (Vec::new(), Vec::new());
        Self { file, start, rows, width, columns, next: 0, records, used: 0, stretch }
    }

    /// Returns the bytes of a record.
    pub(crate) fn stride(&self) -> usize {
        self.width * self.columns.len()
    }

    fn fill(&mut self) -> io::Result<()> {
        let (width, stride) = (self.width, self.stride());
        let most = (PIECE_BYTES / stride.max(1)).max(1) as u64;
        let rows = most.min(self.rows - self.next);
        self.used = 0;
        self.records.resize(rows as usize * stride, 0);
        self.stretch.resize(rows as usize * width, 0);
        for (place, column) in self.columns.iter().enumerate() {
            let at = self.start + (column * self.rows + self.next) * width as u64;
            self.file.read_exact_at(&mut self.stretch, at)?;
            let records = self.records.chunks_exact_mut(stride);
            for (record, element) in records.zip(self.stretch.chunks_exact(width)) {
                record[place * width..(place + 1) * width].copy_from_slice(element);
            }
        }
        self.next += rows;
        Ok(())
    }
}

impl Read for Columnar {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.used == self.records.len() && self.next < self.rows {
            self.fill()?;
        }
        let rest = &self.records[self.used..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.used += count;
        Ok(count)
    }
}
