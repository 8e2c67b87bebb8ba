//! Sorted columns as Arrow arrays over the mapping, without a copy.
//!
//! The arrays hold the index, so they may outlive every other use of it. What a file that was not
//! verified says may be wrong, never unsound: offsets and UTF-8 are checked when an array is made.

use crate::column::Column;
use crate::index::Index;
use arrow_array::{ArrayRef, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};
use pleach_format::{KeyType, ValueType};
use std::ptr::NonNull;
use std::sync::Arc;

/// The sorted columns of a file; a column that it has not is `None`.
#[derive(Clone, Debug)]
pub struct Columns {
    /// Keys, ascending: numbers as they are, not encoded; `u128` as 16 bytes, most significant first.
    pub keys: Option<ArrayRef>,
    /// Values, in the order of the keys.
    pub values: Option<ArrayRef>,
}

impl Index {
    /// The sorted columns as Arrow arrays over the mapping. O(1) for elements of one size, else O(bytes)
    /// to check offsets and UTF-8. Build with `--layout lines,spine,columns` to have them.
    ///
    /// # Errors
    /// Offsets that do not ascend inside the column, texts that are not UTF-8: the file is damaged.
    pub fn columns(self: &Arc<Self>) -> Result<Columns, ArrowError> {
        let keys = self.key_column().map(|column| self.array(&column, key_type(self.key_type(), &column)));
        let values =
            self.value_column().map(|column| self.array(&column, value_type(self.value_type(), &column)));
        Ok(Columns { keys: keys.transpose()?, values: values.transpose()? })
    }

    fn array(self: &Arc<Self>, column: &Column<'_>, data_type: DataType) -> Result<ArrayRef, ArrowError> {
        let length =
            usize::try_from(column.len()).map_err(|error| ArrowError::ComputeError(error.to_string()))?;
        let mut data = ArrayData::builder(data_type).len(length);
        if column.offset_bytes().is_some() {
            data = data.add_buffer(self.buffer(column.offsets()));
        }
        Ok(make_array(data.add_buffer(self.buffer(column.data())).build()?))
    }

    /// Bytes of this index as a buffer that keeps it open.
    fn buffer(self: &Arc<Self>, bytes: &[u8]) -> Buffer {
        let start = NonNull::from(bytes).cast();
        // SAFETY: `bytes` is borrowed from the storage of this index, which lies still and is never
        // written as long as the index lives, and the buffer holds the index.
        unsafe { Buffer::from_custom_allocation(start, bytes.len(), Arc::clone(self) as _) }
    }
}

fn strings(column: &Column<'_>, small: DataType, large: DataType) -> DataType {
    if column.offset_bytes() == Some(4) { small } else { large }
}

fn key_type(key_type: KeyType, column: &Column<'_>) -> DataType {
    match key_type {
        KeyType::U32 => DataType::UInt32,
        KeyType::U64 => DataType::UInt64,
        KeyType::I32 => DataType::Int32,
        KeyType::I64 => DataType::Int64,
        KeyType::F64 => DataType::Float64,
        KeyType::U128 => DataType::FixedSizeBinary(16),
        KeyType::Fixed(bytes) => DataType::FixedSizeBinary(bytes.into()),
        KeyType::Bytes => strings(column, DataType::Binary, DataType::LargeBinary),
        _ => strings(column, DataType::Utf8, DataType::LargeUtf8),
    }
}

fn value_type(value_type: ValueType, column: &Column<'_>) -> DataType {
    match value_type {
        ValueType::U32 => DataType::UInt32,
        ValueType::U64 => DataType::UInt64,
        ValueType::I32 => DataType::Int32,
        ValueType::I64 => DataType::Int64,
        ValueType::F32 => DataType::Float32,
        ValueType::F64 => DataType::Float64,
        ValueType::Fixed(bytes) => DataType::FixedSizeBinary(bytes.into()),
        ValueType::Bytes => strings(column, DataType::Binary, DataType::LargeBinary),
        ValueType::Utf8 => strings(column, DataType::Utf8, DataType::LargeUtf8),
        _ => DataType::Null,
    }
}
