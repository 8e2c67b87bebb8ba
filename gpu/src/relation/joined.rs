//! The results of joins and set operations.

use super::columns::Sorted;
use super::dense::Column;
use crate::GpuError;
use crate::memory::DeviceBuffer;

/// Columns of each result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Keys and values.
    Values,
    /// Ranks, of 8 bytes each, of the left and the right tuple; all ones for a missing tuple.
    Ranks,
}

/// Results of an operation, in the order of the keys.
#[derive(Clone, Debug)]
pub struct Joined {
    /// Number of results.
    pub tuples: u64,
    /// Keys of the results; `None` in the form of ranks.
    pub keys: Option<DeviceBuffer>,
    /// Values or ranks of both sides. A set operation and a semi or anti join have those of the selected
    /// tuple in the first column. A missing value is 0.
    pub columns: [Option<Column>; 2],
    /// Side of each result of an outer join, one byte each: 1 left only, 2 right only, 3 both.
    pub sides: Option<DeviceBuffer>,
    /// Milliseconds on the device, without the search for equal keys.
    pub milliseconds: f64,
}

/// Kind of output for a side: ranks of 8 bytes, as in merge.cu and expand.cu.
const RANK8: u32 = 108;

/// Buffers of the results, and the kind of output for each side.
#[derive(Debug)]
pub(super) struct Outputs {
    pub(super) keys: Option<DeviceBuffer>,
    pub(super) columns: [Option<Column>; 2],
    pub(super) sides: Option<DeviceBuffer>,
    pub(super) kinds: [u32; 2],
}

impl Outputs {
    /// Allocates room for `most` results; `two` states whether both sides have a column.
    pub(super) fn new(
        (left, right): (&Sorted, &Sorted),
        form: Form,
        most: u64,
        two: bool,
        has_sides: bool,
    ) -> Result<Self, GpuError> {
        let gpu = left.gpu();
        let bytes_of = |side: &Sorted| side.values.as_ref().map_or(0, |values| u32::from(values.bytes));
        let kinds = match form {
            Form::Ranks => [RANK8, RANK8],
            Form::Values => [bytes_of(left), if two { bytes_of(right) } else { 0 }],
        };
        let column = |kind: u32| {
            let bytes = if kind == RANK8 { 8 } else { kind as u8 };
            let made = (bytes > 0).then(|| DeviceBuffer::new(gpu, most.saturating_mul(bytes.into())));
            Ok(made.transpose()?.map(|buffer| Column { buffer, bytes }))
        };
        let keys = match form {
            Form::Ranks => None,
            Form::Values => Some(DeviceBuffer::new(gpu, most.saturating_mul(left.key_bytes.into()))?),
        };
        let sides = (has_sides && form == Form::Values).then(|| DeviceBuffer::new(gpu, most)).transpose()?;
        let columns: [Result<_, GpuError>; 2] = kinds.map(column);
        let [first, second] = columns;
        Ok(Self { keys, columns: [first?, second?], sides, kinds })
    }

    pub(super) fn addresses(&self) -> (u64, [u64; 2], u64) {
        let of = |buffer: &Option<DeviceBuffer>| buffer.as_ref().map_or(0, DeviceBuffer::address);
        let column = |column: &Option<Column>| column.as_ref().map_or(0, |values| values.buffer.address());
        (of(&self.keys), [column(&self.columns[0]), column(&self.columns[1])], of(&self.sides))
    }

    /// Returns the first `tuples` results.
    pub(super) fn joined(self, key_bytes: u8, tuples: u64, milliseconds: f64) -> Joined {
        let cut = |column: Column| {
            let buffer = column.buffer.part(0, tuples * u64::from(column.bytes));
            Column { buffer, bytes: column.bytes }
        };
        Joined {
            tuples,
            keys: self.keys.map(|keys| keys.part(0, tuples * u64::from(key_bytes))),
            columns: self.columns.map(|column| column.map(cut)),
            sides: self.sides.map(|sides| sides.part(0, tuples)),
            milliseconds,
        }
    }
}
