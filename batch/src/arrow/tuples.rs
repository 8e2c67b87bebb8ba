//! The tuples of a range, as record batches.

use super::arrays::meant_field;
use crate::error::BatchError;
use crate::pool::Pool;
use crate::table::Table;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pleach::ValueType;
use std::ops::Range;
use std::sync::Arc;

/// The tuples of a range of ranks, as record batches. It owns the file. The batches of a set end where its files end,
/// and a set that answers without files that cannot be opened leaves their tuples out.
#[derive(Debug)]
pub struct Tuples {
    table: Table,
    schema: SchemaRef,
    ranks: Range<u64>,
    batch_rows: u64,
    threads: usize,
}

impl Tuples {
    /// Reads the tuples of consecutive ranks, `batch_rows` at a time, on so many threads (0 for all).
    ///
    /// # Errors
    /// [`BatchError::Pleach`] if the names of the columns are damaged.
    pub fn new(
        table: &Table,
        ranks: Range<u64>,
        batch_rows: usize,
        threads: usize,
    ) -> Result<Self, BatchError> {
        let meta = table.index().meta().map_err(|error| table.failed(error))?;
        let (keys, values) = table.arrays_at(&[], &Pool::current())?;
        let name =
            |given: &str, usual: &str| if given.is_empty() { usual.to_owned() } else { given.to_owned() };
        let key_name = name(&meta.key_name, "key");
        let mut fields = vec![meant_field(key_name, &keys, true, table.key_meaning())];
        if table.value_type() != ValueType::None {
            let value_name = name(&meta.value_name, "value");
            fields.push(meant_field(value_name, &values, true, table.value_meaning()));
        }
        let end = ranks.end.min(table.len());
        Ok(Self {
            table: table.clone(),
            schema: Arc::new(Schema::new(fields)),
            ranks: ranks.start.min(end)..end,
            batch_rows: batch_rows.max(1) as u64,
            threads,
        })
    }

    /// Reads one batch, of a set from the file that has its first tuple.
    #[cfg(feature = "set")]
    fn next_of_file(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        while !self.ranks.is_empty() {
            let own = self.table.file_of_rank(self.ranks.start);
            let (own, file) = match own.map_err(outside) {
                Ok(found) => found?,
                Err(error) => {
                    self.ranks.start = self.ranks.end;
                    return Some(Err(error));
                }
            };
            let end = self.ranks.end.min(own.end);
            let Some(file) = file else {
                self.ranks.start = end;
                continue;
            };
            let end = end.min(self.ranks.start + self.batch_rows);
            let ranks = self.ranks.start - own.start..end - own.start;
            self.ranks.start = end;
            return Some(self.batch(&file, ranks));
        }
        None
    }

    /// Reads one batch.
    fn batch(&self, table: &Table, ranks: Range<u64>) -> Result<RecordBatch, ArrowError> {
        let ranks: Vec<u64> = ranks.collect();
        let (keys, values) = table.arrays_at(&ranks, &Pool::of(self.threads)).map_err(outside)?;
        let mut columns = vec![keys, values];
        columns.truncate(self.schema.fields().len());
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

fn outside(error: BatchError) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

impl Iterator for Tuples {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ranks.is_empty() {
            return None;
        }
        #[cfg(feature = "set")]
        if self.table.is_set() {
            return self.next_of_file();
        }
        let end = self.ranks.end.min(self.ranks.start + self.batch_rows);
        let ranks = self.ranks.start..end;
        self.ranks.start = end;
        Some(self.batch(&self.table, ranks))
    }
}

impl RecordBatchReader for Tuples {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
