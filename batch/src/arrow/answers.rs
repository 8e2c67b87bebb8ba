//! Answers as Arrow arrays.

use super::arrays::{nulls, numbers, records, strings};
use super::composite::meant;
use super::keys::ArrowKeys;
use super::types::{key_type, logical_type, number_type};
use crate::answer::Found;
use crate::error::{BatchError, Result};
use crate::gather::{Column, Gathered};
use crate::pool::Pool;
use crate::table::{Table, any_value};
use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::{ArrowError, DataType};
use pleach::ValueType;
use std::sync::Arc;

impl Table {
    /// Returns the Arrow type of the words of keys.
    fn arrow_key_type(&self) -> DataType {
        logical_type(key_type(self.key_type()), self.key_meaning())
    }

    /// Looks up many keys, and returns an array of their values, with nulls for missing keys. Records are a struct
    /// array; a file without values gives booleans: which keys it has.
    ///
    /// # Errors
    /// Those of [`Table::get`]; [`BatchError::Damaged`] if values are not of their type.
    pub fn get_array(&self, keys: &ArrowKeys, pool: &Pool<'_>) -> Result<ArrayRef> {
        keys.with(|keys| self.array_of(keys, pool))
    }

    /// Looks up keys of any memory, as [`Table::get_array`] does.
    ///
    /// # Errors
    /// Those of [`Table::get_array`].
    pub fn array_of(&self, keys: &crate::Keys<'_>, pool: &Pool<'_>) -> Result<ArrayRef> {
        let len = keys.len();
        let mut found = vec![0; len.div_ceil(8)];
        let value_type = self.value_type();
        any_value!(
            value_type,
            V => {
                let mut values = vec![V::default(); len];
                let count = self.get_slice(keys, &mut values, &mut Found::Bits(&mut found), pool)?;
                self.words(Buffer::from_vec(values), len, nulls(found, len, count))
            },
            else {
                let mut ranks = vec![0; len];
                let count = self.found_ranks(keys, &mut ranks, &mut Found::Bits(&mut found), pool)?;
                if value_type == ValueType::None {
                    let bits = BooleanBuffer::new(Buffer::from_vec(found), 0, len);
                    return Ok(Arc::new(BooleanArray::new(bits, None)));
                }
                // The string of a missing key is empty, as that of a rank past the end.
                let all = self.values_at(&ranks, pool)?;
                self.texts(all, nulls(found, len, count))
            }
        )
    }

    /// Returns keys and values at many ranks, as two arrays. A rank past the end gives nulls.
    ///
    /// # Errors
    /// Those of [`Table::tuples_at`]; [`BatchError::Damaged`] if they are not of their type.
    pub fn arrays_at(&self, ranks: &[u64], pool: &Pool<'_>) -> Result<(ArrayRef, ArrayRef)> {
        let len = ranks.len();
        let mut found = vec![0u8; len.div_ceil(8)];
        let mut count = 0;
        for (at, &rank) in ranks.iter().enumerate() {
            if rank < self.len() {
                found[at / 8] |= 1 << (at % 8);
                count += 1;
            }
        }
        let nulls = nulls(found, len, count);
        let (keys, values) = self.tuples_at(ranks, pool)?;
        let keys = match keys {
            Column::Words(bytes) => {
                numbers(self.arrow_key_type(), Buffer::from_slice_ref(&bytes), len, nulls.clone())
            }
            Column::Strings(all) => strings(key_type(self.key_type()), all, nulls.clone()),
        };
        let keys = keys.and_then(|keys| meant(keys, self.key_meaning()));
        let keys = keys.map_err(|error| self.damaged(&error))?;
        let values = match values {
            Column::Words(bytes) => self.words(Buffer::from_slice_ref(&bytes), len, nulls),
            Column::Strings(all) => self.texts(all, nulls),
        };
        Ok((keys, values?))
    }

    /// Makes the array of values in tuple lines.
    fn words(&self, values: Buffer, len: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let width = self.value_type().line_bytes();
        let made = match self.record() {
            Some(record) => records(record, len, |at| &values[at * width..][..width], nulls),
            None => {
                let data_type = logical_type(number_type(self.value_type()), self.value_meaning());
                numbers(data_type, values, len, nulls).and_then(|array| meant(array, self.value_meaning()))
            }
        };
        made.map_err(|error| self.damaged(&error))
    }

    /// Makes the array of values in a column of their own.
    fn texts(&self, all: Gathered, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let len = all.offsets.len() - 1;
        let made = match self.record() {
            Some(record) => {
                let packed = |at: usize| &all.data[all.offsets[at] as usize..all.offsets[at + 1] as usize];
                records(record, len, packed, nulls)
            }
            None => {
                let made = strings(number_type(self.value_type()), all, nulls);
                made.and_then(|array| meant(array, self.value_meaning()))
            }
        };
        made.map_err(|error| self.damaged(&error))
    }

    fn damaged(&self, error: &ArrowError) -> BatchError {
        BatchError::Damaged { path: self.index().path().display().to_string(), what: error.to_string() }
    }
}
