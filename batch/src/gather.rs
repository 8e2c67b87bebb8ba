//! Values that are not numbers, and whole tuples.

use crate::answer::TASK;
use crate::error::{BatchError, Result};
use crate::pool::Pool;
use crate::table::Table;
use pleach::Column;
use std::sync::Mutex;

/// Byte strings, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// Where each string begins, and where the last one ends.
    pub offsets: Vec<u64>,
    /// The bytes.
    pub data: Vec<u8>,
}

impl Table {
    /// Returns the values at many ranks, if values are byte strings, texts, or records of bytes. A rank past the end
    /// gives an empty string.
    ///
    /// # Errors
    /// [`BatchError::Values`] if values are numbers; [`BatchError::Memory`] if there is not enough memory;
    /// [`BatchError::Pleach`] if the file is damaged or was truncated.
    pub fn values_at(&self, ranks: &[u64], pool: &Pool<'_>) -> Result<Gathered> {
        let column = self.index().value_column().filter(|_| self.value_type().is_bytes());
        let column = column.ok_or_else(|| BatchError::Values {
            given: "bytes".to_owned(),
            held: self.value_type().to_string(),
        })?;
        self.gather(&column, ranks, pool)
    }

    fn gather(&self, column: &Column<'_>, ranks: &[u64], pool: &Pool<'_>) -> Result<Gathered> {
        let parts = ranks.chunks(TASK).map(|ranks| (ranks, Mutex::default())).collect::<Vec<_>>();
        pool.sum(&parts, |(ranks, place)| {
            let (mut ends, mut data) = (Vec::with_capacity(ranks.len()), Vec::new());
            column.append(ranks, &mut ends, &mut data).map_err(|error| self.failed(error))?;
            *place.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = (ends, data);
            Ok(0)
        })?;
        let parts = parts.into_iter();
        let parts: Vec<(Vec<u64>, Vec<u8>)> = parts
            .map(|(_, place)| place.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
            .collect();
        let mut all = Gathered { offsets: Vec::with_capacity(ranks.len() + 1), data: Vec::new() };
        let bytes: usize = parts.iter().map(|(_, data)| data.len()).sum();
        all.data.try_reserve_exact(bytes).map_err(|_| BatchError::Memory { bytes: bytes as u64 })?;
        all.offsets.push(0);
        for (ends, data) in parts {
            let before = all.data.len() as u64;
            all.data.extend_from_slice(&data);
            all.offsets.extend(ends.into_iter().map(|end| before + end));
        }
        Ok(all)
    }
}
