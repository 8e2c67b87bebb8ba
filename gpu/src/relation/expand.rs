//! Joins with duplicate keys on both sides: rows of ranks are counted, then expanded to pairs.
//!
//! The exact number of pairs is known before memory is allocated for them. Whether a side has duplicate keys is
//! found by another kernel of the same text.

use super::columns::{Sorted, refused};
use super::dense::Column;
use super::joined::{Form, Joined, Outputs};
use crate::all::{ALL, All, all_add, all_sums, all_tiles};
use crate::kernel::SourceSpec;
use crate::memory::DeviceBuffer;
use crate::resident::grid;
use crate::{GpuError, Stream};

/// Threads per block, as in all.cu.
const THREADS: u32 = 256;
/// Counts per tile that a block scans; the same as in all.cu.
const TILE: u64 = 2048;

/// Arguments of the kernels; the same as Expand in expand.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Expand {
    keys: [u64; 2],
    values: [u64; 2],
    rights: u64,
    rows: [u64; 2],
    count: u64,
    offsets: u64,
    total: u64,
    keys_to: u64,
    values_to: [u64; 2],
    sides_to: u64,
    kinds: [u32; 2],
}

crate::kernel! {
    /// Expansion of rows of ranks to pairs.
    EXPAND = SourceSpec {
        numbers: |_| vec![("BYTES_OF_EXPAND", size_of::<Expand>() as u64)],
        ..SourceSpec::new("expand.cu", include_str!("../kernels/expand.cu"))
    };
    /// Counts the pairs of each row.
    expand_count(expand: Expand);
    /// Writes all pairs.
    expand_fill(expand: Expand);
    /// Swaps the sides of results.
    expand_swap_sides(sides: u64, count: u64);
    /// Looks for equal keys.
    find_repeats(keys: u64, count: u64, found: u64);
}

/// Expands rows to pairs; blocks.
pub(super) fn expand(
    stream: &Stream,
    has_sides: bool,
    (left, right): (&Sorted, &Sorted),
    rows: Joined,
    form: Form,
) -> Result<Joined, GpuError> {
    let gpu = left.gpu();
    let count = rows.tuples;
    let offsets = DeviceBuffer::new(gpu, (count + 1) * 8)?;
    let sums = DeviceBuffer::new(gpu, count.div_ceil(TILE).max(1) * 8)?;
    let address = |column: &Option<Column>| column.as_ref().map_or(0, |values| values.buffer.address());
    let mut arguments = Expand {
        keys: [left.keys.address(), right.keys.address()],
        values: [left.values_address(), right.values_address()],
        rights: right.tuples,
        rows: [address(&rows.columns[0]), address(&rows.columns[1])],
        count,
        offsets: offsets.address(),
        ..Expand::default()
    };
    let scanned = All { offsets: offsets.address(), sums: sums.address(), ..All::default() };
    let (instance, scan) = (left.instance(&EXPAND), left.instance(&ALL));
    let start = stream.mark()?;
    let scan_shape = |entry, items| grid(gpu, scan, entry, THREADS, 0, items);
    let shape = grid(gpu, instance, "expand_count", THREADS, 0, count)?;
    let [tiles, one, add] = [
        scan_shape("all_tiles", count.div_ceil(TILE) * u64::from(THREADS))?,
        scan_shape("all_sums", 1)?,
        scan_shape("all_add", count)?,
    ];
    // SAFETY: rows hold ranks of the sides, or all ones; there is an offset per row and one more, and a sum
    // per tile. All live until the stream was waited for.
    let counted = unsafe {
        expand_count(stream, instance, shape, &arguments)
            .and_then(|()| all_tiles(stream, scan, tiles, &scanned, &count))
            .and_then(|()| all_sums(stream, scan, one, &scanned, &count))
            .and_then(|()| all_add(stream, scan, add, &scanned, &count))
    };
    let middle = stream.mark()?;
    stream.synchronize()?;
    counted?;
    let mut sum = [0; 8];
    offsets.part(count * 8, 8).copy_to_host(stream, &mut sum)?;
    let total = u64::from_le_bytes(sum);
    if total > 1 << 62 {
        return Err(refused(format!("a join of {total} pairs: no memory holds them")));
    }
    let outputs = Outputs::new((left, right), form, total, true, has_sides)?;
    (arguments.keys_to, arguments.values_to, arguments.sides_to) = outputs.addresses();
    (arguments.kinds, arguments.total) = (outputs.kinds, total);
    let again = stream.mark()?;
    if total > 0 {
        let shape = grid(gpu, instance, "expand_fill", THREADS, 0, total)?;
        // SAFETY: rows and offsets are those of the scan, and the outputs have room for the sum; all live
        // until the stream was waited for.
        let filled = unsafe { expand_fill(stream, instance, shape, &arguments) };
        stream.synchronize()?;
        filled?;
    }
    let end = stream.mark()?;
    stream.synchronize()?;
    let milliseconds = f64::from(start.milliseconds_to(&middle)?)
        + f64::from(again.milliseconds_to(&end)?)
        + rows.milliseconds;
    Ok(outputs.joined(left.key_bytes, total, milliseconds))
}

/// Swaps the sides that results are marked with; blocks.
pub(super) fn swap_sides(stream: &Stream, left: &Sorted, sides: &DeviceBuffer) -> Result<(), GpuError> {
    let (instance, count) = (left.instance(&EXPAND), sides.bytes());
    if count == 0 {
        return Ok(());
    }
    let shape = grid(left.gpu(), instance, "expand_swap_sides", THREADS, 0, count)?;
    // SAFETY: the buffer has a byte per result, and lives until the stream was waited for.
    let launched = unsafe { expand_swap_sides(stream, instance, shape, &sides.address(), &count) };
    stream.synchronize()?;
    launched
}

impl Sorted {
    /// Returns true if all keys are distinct. O(tuples) the first time, unless it was promised; blocks.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn is_unique(&self, stream: &Stream) -> Result<bool, GpuError> {
        if let Some(is_unique) = self.is_unique {
            return Ok(is_unique);
        }
        let found = DeviceBuffer::new(self.gpu(), 4)?;
        found.fill(stream, 0)?;
        let instance = self.instance(&EXPAND);
        let shape = grid(self.gpu(), instance, "find_repeats", THREADS, 0, self.tuples)?;
        // SAFETY: the column holds its tuples, and `found` a word; both live until the stream was waited for.
        let launched = unsafe {
            find_repeats(stream, instance, shape, &self.keys.address(), &self.tuples, &found.address())
        };
        stream.synchronize()?;
        launched?;
        let mut word = [0; 4];
        found.copy_to_host(stream, &mut word)?;
        Ok(word == [0; 4])
    }
}
