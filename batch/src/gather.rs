//! Values that are not numbers, and whole tuples.

use crate::convert::FromNumbers;
use crate::error::{BatchError, Result};
use crate::pool::Pool;
use crate::table::{Table, any_key, any_value};
use pleach::Value;
use std::sync::Mutex;
use zerocopy::IntoBytes;

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
        #[cfg(feature = "set")]
        if let Some(files) = self.files().filter(|_| self.value_type().is_bytes()) {
            return self.values_in_files_at(files, ranks, pool);
        }
        let column = self.index().value_column().filter(|_| self.value_type().is_bytes());
        let column = column.ok_or_else(|| BatchError::Values {
            given: "bytes".to_owned(),
            held: self.value_type().to_string(),
        })?;
        self.gather(&column, ranks, pool)
    }

    fn gather(&self, column: &pleach::Column<'_>, ranks: &[u64], pool: &Pool<'_>) -> Result<Gathered> {
        let parts = ranks
            .chunks(pool.task_keys(ranks.len()))
            .map(|ranks| (ranks, Mutex::default()))
            .collect::<Vec<_>>();
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

/// A column of tuples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Numbers, one after the other, as their bytes: little-endian, and big-endian for 128 bits.
    Words(Vec<u8>),
    /// Byte strings or texts.
    Strings(Gathered),
}

impl Table {
    /// Returns the keys and values at many ranks. A rank past the end gives zeros and empty strings.
    ///
    /// # Errors
    /// [`BatchError::Memory`] if there is not enough memory; [`BatchError::Pleach`] if the file is damaged or was
    /// truncated.
    pub fn tuples_at(&self, ranks: &[u64], pool: &Pool<'_>) -> Result<(Column, Column)> {
        #[cfg(feature = "set")]
        if let Some(files) = self.files() {
            return self.tuples_in_files_at(files, ranks, pool);
        }
        let (keys, words) = any_value!(
            self.value_type(),
            V => any_key!(
                self.key_type(),
                K => self.words_at::<K, V>(ranks, pool)?,
                else self.strings_at::<V>(ranks)?
            ),
            else any_key!(
                self.key_type(),
                K => self.words_at::<K, ()>(ranks, pool)?,
                else self.strings_at::<()>(ranks)?
            )
        );
        let is_column = self.value_type().is_bytes();
        let values = if is_column { Column::Strings(self.values_at(ranks, pool)?) } else { words };
        Ok((keys, values))
    }

    fn words_at<K: FromNumbers, V: Value>(&self, ranks: &[u64], pool: &Pool<'_>) -> Result<(Column, Column)> {
        let typed = self.typed::<K, V>()?;
        let mut keys = vec![K::default(); ranks.len()];
        let mut values = vec![V::default(); ranks.len()];
        let each = pool.task_keys(ranks.len());
        let parts = ranks.chunks(each).zip(keys.chunks_mut(each)).zip(values.chunks_mut(each));
        pool.sum(parts, |((ranks, keys), values)| {
            typed.select_batch(ranks, keys, values).map_err(|error| self.failed(error))?;
            Ok(0)
        })?;
        let mut keys = keys.as_bytes().to_vec();
        if self.key_type() == pleach::KeyType::U128 {
            keys.as_chunks_mut::<16>().0.iter_mut().for_each(|key| key.reverse());
        }
        Ok((Column::Words(keys), Column::Words(values.as_slice().as_bytes().to_vec())))
    }

    fn strings_at<V: Value>(&self, ranks: &[u64]) -> Result<(Column, Column)> {
        let strings = self.strings::<V>()?;
        let mut keys = Gathered { offsets: Vec::with_capacity(ranks.len() + 1), data: Vec::new() };
        let mut values = Vec::with_capacity(ranks.len());
        keys.offsets.push(0);
        for &rank in ranks {
            let tuple = strings.select(rank).map_err(|error| self.failed(error))?;
            let (key, value) = tuple.unwrap_or_default();
            keys.data.extend_from_slice(&key);
            keys.offsets.push(keys.data.len() as u64);
            values.push(value);
        }
        Ok((Column::Strings(keys), Column::Words(values.as_slice().as_bytes().to_vec())))
    }
}
