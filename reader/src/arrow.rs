//! Sorted columns as Arrow arrays.
//!
//! Arrow reads offsets and texts without checking them, so the bytes of an array must never change after they
//! were checked. Bytes that nobody else can change (a copy in memory, or memory of the program) are used in
//! place. The arrays then keep the index open, and may outlive every other use of it.
//!
//! A mapped file can be truncated or overwritten by anybody: its bytes are copied, and the copy is verified
//! and checked. Arrays of a file that was not verified may be wrong, but they are never unsound.

use crate::column::Column;
use crate::error::ReadError;
use crate::index::{Index, Verify};
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, DictionaryArray, PrimitiveArray, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use pleach_format::checksum::{SUM_BLOCK_BYTES, SUM_BYTES, crc32};
use pleach_format::view::Section;
use pleach_format::{FormatError, KeyType, ValueType};
use std::ptr::NonNull;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// The sorted columns of a file; `None` for a column that the file does not have.
#[derive(Clone, Debug)]
pub struct Columns {
    /// Keys, ascending: numbers as they are, not encoded; `u128` as 16 bytes, most significant first.
    pub keys: Option<ArrayRef>,
    /// Values, in the order of the keys. If the file stores equal values once, they are a dictionary array,
    /// with keys of type `u32`.
    pub values: Option<ArrayRef>,
}

impl Index {
    /// Returns the sorted columns as Arrow arrays. A file has them if it was built with
    /// `--layout lines,spine,columns`.
    ///
    /// If the file is in memory ([`crate::Residence::Resident`], [`Index::from_bytes`]) the arrays use its
    /// bytes in place: O(1) for elements of one length, otherwise O(bytes) to check offsets and UTF-8. If the
    /// file is mapped the arrays are a copy: O(bytes), and as much memory. With [`Verify::Touched`] and
    /// [`Verify::Full`] all blocks of the arrays are verified.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, offsets do not ascend inside the column, or
    /// texts are not UTF-8; [`ReadError::MappingLost`] if the file was truncated while it was mapped;
    /// [`ReadError::Memory`] if there is not enough memory for a copy.
    pub fn columns(self: &Arc<Self>) -> Result<Columns, ReadError> {
        let keys = self.key_column().map(|column| self.array(&column, key_type(self.key_type(), &column)));
        let values = self.value_column().map(|column| {
            let values = self.array(&column, value_type(self.value_type(), &column))?;
            if column.is_coded() { self.coded(&column, values) } else { Ok(values) }
        });
        Ok(Columns { keys: keys.transpose()?, values: values.transpose()? })
    }

    fn array(self: &Arc<Self>, column: &Column<'_>, data_type: DataType) -> Result<ArrayRef, ReadError> {
        let (place, offsets, data) = column.parts();
        let corrupt = |found| {
            let rule = "offsets must ascend inside the column, and texts be UTF-8".into();
            ReadError::from(FormatError::Corrupt { what: "column", offset: place.offset, rule, found })
        };
        let length = usize::try_from(column.stored()).map_err(|_| corrupt(column.stored()))?;
        let holds = |section: &&Section| (section.offset()..section.end).contains(&place.offset);
        let section = self.header().sections.iter().rfind(holds).ok_or_else(|| corrupt(place.offset))?;
        let (offsets, data) = if self.lies_still() {
            if let Some(verified) = self.verified() {
                verified.check_range(section.offset(), section.end - section.offset())?;
            }
            (self.buffer(offsets), self.buffer(data))
        } else {
            let copy = self.copy(section)?;
            let part = |offset: u64, bytes: &[u8]| {
                copy.slice_with_length((offset - section.offset()) as usize, bytes.len())
            };
            (part(place.offset, offsets), part(place.data_offset(), data))
        };
        let mut array = ArrayData::builder(data_type).len(length);
        if column.offset_bytes().is_some() {
            array = array.add_buffer(offsets);
        }
        let array = array.add_buffer(data).build().map_err(|_| corrupt(place.shape.data_bytes))?;
        Ok(make_array(array))
    }

    /// Makes a dictionary array of values that are stored once. The codes are copied and checked.
    fn coded(&self, column: &Column<'_>, values: ArrayRef) -> Result<ArrayRef, ReadError> {
        let count = usize::try_from(column.len()).unwrap_or(usize::MAX);
        let mut codes: Vec<u32> = Vec::new();
        codes.try_reserve_exact(count).map_err(|_| ReadError::Memory { bytes: 4 * column.len() })?;
        for rank in 0..column.len() {
            // There are at most 2^24 values.
            codes.push(column.checked_element(rank)? as u32);
        }
        self.check_mapping()?;
        let codes = PrimitiveArray::<UInt32Type>::from(codes);
        let array = DictionaryArray::try_new(codes, values);
        array.map(|array| Arc::new(array) as ArrayRef).map_err(|_| column.broken(0))
    }

    /// Wraps bytes of this index, which nobody else can change, in a buffer that keeps the index open.
    fn buffer(self: &Arc<Self>, bytes: &[u8]) -> Buffer {
        let start = NonNull::from(bytes).cast();
        // SAFETY: `array` calls this only if the storage is not a mapping of a file (`lies_still`), so nobody
        // writes to `bytes` while the index lives, and the buffer holds the index.
        unsafe { Buffer::from_custom_allocation(start, bytes.len(), Arc::clone(self) as _) }
    }

    /// Copies a section of a mapped file. The blocks of the copy are verified as the index is.
    fn copy(&self, section: &Section) -> Result<Buffer, ReadError> {
        self.bring(section.offset(), section.end - section.offset())?;
        let copy = self.copy_range(section.offset(), section.end - section.offset())?;
        if matches!(self.verify(), Verify::Touched | Verify::Full) {
            let (tag, listed_at) = (section.entry.tag, section.entry.sums_offset.get());
            let list = self.copy_range(listed_at, section.entry.sums_bytes())?;
            let wrong = |what, offset, expected, found| {
                ReadError::from(FormatError::Checksum { what, offset, expected, found })
            };
            let (expected, found) = (section.entry.sums_crc.get(), crc32(list.as_bytes()));
            if expected != found {
                return Err(wrong("SUMS", listed_at, expected, found));
            }
            let (sums, _) = list.as_chunks::<SUM_BYTES>();
            for ((block, bytes), sum) in (0u64..).zip(copy.chunks(SUM_BLOCK_BYTES)).zip(sums) {
                let (expected, found) =
                    (u32::from_le_bytes(*sum), self.header().bound_sum(tag, block, bytes));
                if expected != found {
                    let offset = section.offset() + block * SUM_BLOCK_BYTES as u64;
                    return Err(wrong(tag.name(), offset, expected, found));
                }
            }
        }
        Ok(copy)
    }

    /// Copies bytes of the file, aligned for all numeric types of columns.
    fn copy_range(&self, offset: u64, length: u64) -> Result<Buffer, ReadError> {
        let found = self.bytes().len() as u64;
        let bytes = usize::try_from(offset).ok().and_then(|offset| self.bytes().get(offset..));
        let bytes = bytes.and_then(|bytes| bytes.get(..usize::try_from(length).ok()?));
        let bytes = bytes.ok_or(FormatError::Truncated { expected: offset.saturating_add(length), found })?;
        let mut words: Vec<u64> = Vec::new();
        let count = bytes.len().div_ceil(8);
        words.try_reserve_exact(count).map_err(|_| ReadError::Memory { bytes: length })?;
        words.resize(count, 0);
        words.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        // Check after the read: a lost mapping yields zeros, not a column.
        self.check_mapping()?;
        Ok(Buffer::from_vec(words).slice_with_length(0, bytes.len()))
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
        KeyType::Utf8 => strings(column, DataType::Utf8, DataType::LargeUtf8),
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
        ValueType::None => DataType::Null,
    }
}
