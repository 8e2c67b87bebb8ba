//! A table's tuple lines where a device can read them, and the columns that algorithms derive from them.

use crate::driver::LaunchShape;
use crate::kernel::{Columns, Instance, Source, SourceSpec};
use crate::memory::{DeviceBuffer, PinnedBuffer};
use crate::stream::Event;
use crate::{Gpu, GpuError, Stream};
use pleach::Index;
use pleach_format::line::{self, Line};
use pleach_format::{Header, LineGeometry, Short};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Threads per block that makes columns: warps of 32 lines each.
const COLUMNS_THREADS: u32 = 256;

crate::kernel! {
    /// Sorted columns, from the tuple lines.
    COLUMNS = SourceSpec {
        has_value_width: true,
        numbers: |_| vec![("BYTES_OF_LINES", size_of::<Lines>() as u64)],
        ..SourceSpec::new("columns.cu", include_str!("kernels/columns.cu"))
    };
    /// Makes sorted columns from the tuple lines.
    columns_from_lines(lines: Lines);
}

/// Tuple lines and the columns made from them; the same as in columns.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Lines {
    pub(crate) lines: u64,
    pub(crate) keys: u64,
    pub(crate) values: u64,
    pub(crate) tuples: u64,
}

/// Tuple lines that a device reads, and their properties. There is at least one tuple.
#[derive(Debug)]
pub struct Resident {
    /// The device.
    pub gpu: Gpu,
    /// Residence of the lines: device, pinned or hybrid.
    pub(crate) residence: Residence,
    /// Bytes per word.
    pub word_bytes: u8,
    /// Bytes per value.
    pub value_bytes: u8,
    /// Number of tuples.
    pub tuples: u64,
    /// Lines of 64 bytes, in device memory or pinned; not trusted.
    pub(crate) lines: DeviceBuffer,
    /// Number of lines.
    pub(crate) line_count: u64,
    /// Smallest word, from the superblock.
    pub(crate) low: u128,
    /// Largest word; at least `low`.
    pub(crate) high: u128,
    columns: Mutex<Option<SortedColumns>>,
}

/// Dense sorted keys and values.
#[derive(Clone, Debug)]
pub struct SortedColumns {
    /// Encoded words.
    pub keys: DeviceBuffer,
    /// Values; empty if there are none.
    pub values: DeviceBuffer,
    tuples: u64,
}

impl SortedColumns {
    /// Returns the arguments of kernels. The caller keeps the buffers.
    #[must_use]
    pub fn arguments(&self) -> Columns {
        Columns { keys: self.keys.address(), values: self.values.address(), tuples: self.tuples }
    }
}

/// Place of a table's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Residence {
    /// On the device if it fits there, else hybrid.
    #[default]
    Auto,
    /// On the device.
    Device,
    /// In page-locked host memory, structures included: the device reads it over the link.
    Pinned,
    /// Tuple lines in page-locked host memory, structures on the device.
    Hybrid,
}

impl Residence {
    /// All places.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Device, Self::Pinned, Self::Hybrid];

    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Device => "device",
            Self::Pinned => "pinned",
            Self::Hybrid => "hybrid",
        }
    }
}

/// Minimum bytes of device memory for a batch and an image, in addition to the lines.
const BESIDE_BYTES: u64 = 256 << 20;

impl Resident {
    /// Makes the tuple lines of a file readable by the device. `None` for a file without tuples.
    pub(crate) fn new(
        index: &Index,
        stream: &Stream,
        residence: Residence,
    ) -> Result<Option<Self>, GpuError> {
        let header = index.header();
        let geometry = header.geometry;
        let types = || GpuError::Types { key: header.key_type, value: header.value_type };
        let is_whole = index.mask().is_none_or(|mask| mask.is_lossless());
        if header.tuples == 0 {
            return Ok(None);
        }
        let (Ok(offset), Ok(length), true) =
            (usize::try_from(header.lines_offset), usize::try_from(header.lines * 64), is_whole)
        else {
            return Err(types());
        };
        index.bring(header.lines_offset, header.lines * 64)?;
        // SAFETY: the bytes are read as words, for which any bits are valid. They are copied, or registered
        // with the device, whose kernels clamp the values that they take from them; the mapping is checked
        // below.
        let bytes = unsafe { index.bytes_in_place() };
        let bytes = bytes.get(offset..).and_then(|bytes| bytes.get(..length)).ok_or_else(types)?;
        let (shape, short) = (self::geometry(header), header.short.as_ref());
        let line_count = shape.lines(header.tuples);
        let lines = Filed { bytes, geometry, shape, short, tuples: header.tuples, line_count };
        if line_count > 1 << 32 {
            return Err(types());
        }
        let (low, high) = header.key_range().unwrap_or_else(|| {
            let n = geometry.tuples_per_line() as u64;
            let last = header.tuples - 1;
            let slot = (last % n) as usize * geometry.key_bytes;
            (
                word(bytes, geometry.key_bytes),
                word(&bytes[(last / n) as usize * 64 + slot..], geometry.key_bytes),
            )
        });
        if low > high {
            // Only damaged lines fail here.
            return Err(types());
        }
        let gpu = stream.gpu();
        let length = lines.length() as u64;
        let residence = match residence {
            Residence::Auto if length + BESIDE_BYTES + length / 16 > gpu.left_bytes()? => Residence::Hybrid,
            Residence::Auto => Residence::Device,
            other => other,
        };
        let lines = if residence == Residence::Device { upload(stream, &lines)? } else { pin(gpu, &lines)? };
        // The copy is valid only if the file is still mapped.
        index.check_mapping()?;
        let (word_bytes, value_bytes) = (shape.key_bytes as u8, shape.value_bytes as u8);
        Ok(Some(Self {
            gpu: gpu.clone(),
            residence,
            word_bytes,
            value_bytes,
            tuples: header.tuples,
            lines,
            line_count,
            low,
            high,
            columns: Mutex::default(),
        }))
    }

    /// Returns the smallest and the largest word, of the table read backwards with inverted words if mirrored.
    pub(crate) fn ends(&self, is_mirrored: bool) -> (u128, u128) {
        let all = u128::MAX >> (128 - 8 * u32::from(self.word_bytes));
        if is_mirrored { (all ^ self.high, all ^ self.low) } else { (self.low, self.high) }
    }

    /// Makes a section of the table's file readable by the device, as it lies, where the table's residence
    /// places structures.
    pub(crate) fn section(
        &self,
        index: &Index,
        stream: &Stream,
        offset: u64,
        bytes: u64,
    ) -> Result<DeviceBuffer, GpuError> {
        let header = index.header();
        let types = || GpuError::Types { key: header.key_type, value: header.value_type };
        let (Ok(offset), Ok(length)) = (usize::try_from(offset), usize::try_from(bytes)) else {
            return Err(types());
        };
        index.bring(offset as u64, bytes)?;
        // SAFETY: as for the lines in `new`: any bits are valid, and the mapping is checked below.
        let all = unsafe { index.bytes_in_place() };
        let bytes = all.get(offset..).and_then(|bytes| bytes.get(..length)).ok_or_else(types)?;
        let buffer = if self.residence == Residence::Pinned {
            pin(&self.gpu, &bytes)?
        } else {
            upload(stream, &bytes)?
        };
        index.check_mapping()?;
        Ok(buffer)
    }

    /// Allocates memory for a structure, where the table's residence places it.
    ///
    /// # Errors
    /// As [`DeviceBuffer::new`].
    pub fn buffer(&self, bytes: u64) -> Result<DeviceBuffer, GpuError> {
        if self.residence == Residence::Pinned {
            DeviceBuffer::pinned(&self.gpu, bytes)
        } else {
            DeviceBuffer::new(&self.gpu, bytes)
        }
    }

    /// Returns dense sorted columns, made at the first call, which waits for them.
    ///
    /// # Errors
    /// [`GpuError::Memory`] or [`GpuError::OutOfMemory`] if there is no room, [`GpuError::Driver`] if a
    /// driver call fails.
    pub fn columns(&self, stream: &Stream) -> Result<SortedColumns, GpuError> {
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(columns) = &*columns {
            return Ok(columns.clone());
        }
        let bytes = |each: u8| self.tuples.saturating_mul(each.into());
        let made = SortedColumns {
            keys: self.buffer(bytes(self.word_bytes))?,
            values: self.buffer(bytes(self.value_bytes))?,
            tuples: self.tuples,
        };
        let lines = Lines {
            lines: self.lines.address(),
            keys: made.keys.address(),
            values: made.values.address(),
            tuples: self.tuples,
        };
        let instance = self.instance(&COLUMNS, 0);
        let shape = grid(&self.gpu, instance, "columns_from_lines", COLUMNS_THREADS, 0, self.line_count)?;
        // SAFETY: the lines hold that many tuples, and the columns have room for them; all live until the
        // stream was waited for.
        let queued = unsafe { columns_from_lines(stream, instance, shape, &lines) };
        stream.synchronize()?;
        queued?;
        Ok(columns.insert(made).clone())
    }

    /// Returns an instance of a source for this table's words and values.
    #[must_use]
    pub fn instance(&self, source: Source, option: u16) -> Instance {
        let value_bytes = if source.has_value_width { self.value_bytes } else { 0 };
        Instance { option, ..Instance::new(source, self.word_bytes, value_bytes) }
    }
}

/// Bytes for a device.
trait ToDevice: Sync {
    /// Returns the bytes, if they go as they lie.
    fn as_they_lie(&self) -> Option<&[u8]>;
    /// Returns the number of bytes.
    fn length(&self) -> usize;
    /// Fills `to` with the bytes from `at` on, which is a multiple of a line, on all cores.
    fn fill(&self, at: usize, to: &mut [u8]);
}

/// A section goes as it lies.
impl ToDevice for &[u8] {
    fn as_they_lie(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn length(&self) -> usize {
        self.len()
    }

    fn fill(&self, at: usize, to: &mut [u8]) {
        const PART_BYTES: usize = FILL_LINES * LINE_BYTES;
        to.par_chunks_mut(PART_BYTES).enumerate().for_each(|(part, to)| {
            to.copy_from_slice(&self[at + part * PART_BYTES..][..to.len()]);
        });
    }
}

/// The tuple lines of a file. A device reads words of the key type, so lines of short words are widened on their
/// way to it.
struct Filed<'a> {
    bytes: &'a [u8],
    /// Layout of lines in the file, and on a device.
    geometry: LineGeometry,
    shape: LineGeometry,
    short: Option<&'a Short>,
    tuples: u64,
    /// Lines for a device.
    line_count: u64,
}

/// Returns the layout of the lines of a file on a device, with words of the key type.
pub(crate) fn geometry(header: &Header) -> LineGeometry {
    let stored = header.geometry;
    header.short.map_or(stored, |short| LineGeometry::new(short.key_bytes(), stored.value_bytes))
}

/// Lines that a core makes at a time.
const FILL_LINES: usize = 1 << 12;
const LINE_BYTES: usize = 64;

impl ToDevice for Filed<'_> {
    fn as_they_lie(&self) -> Option<&[u8]> {
        self.short.is_none().then_some(self.bytes)
    }

    fn length(&self) -> usize {
        self.line_count as usize * LINE_BYTES
    }

    fn fill(&self, at: usize, to: &mut [u8]) {
        let Some(short) = self.short else { return self.bytes.fill(at, to) };
        let first = at / LINE_BYTES;
        to.par_chunks_mut(FILL_LINES * LINE_BYTES).enumerate().for_each(|(part, to)| {
            let first = first + part * FILL_LINES;
            for (number, line) in (first as u64..).zip(to.as_chunks_mut().0) {
                self.widen(short, number, line);
            }
        });
    }
}

impl Filed<'_> {
    /// Makes a line of whole keys.
    fn widen(&self, short: &Short, number: u64, line: &mut Line) {
        let (from, to) = (self.geometry, self.shape);
        let (lines, _) = self.bytes.as_chunks::<LINE_BYTES>();
        let (n, width, value_bytes) = (to.tuples_per_line() as u64, to.key_bytes, to.value_bytes);
        line.fill(0);
        for slot in 0..n as usize {
            let rank = number * n + slot as u64;
            let key = &mut line[slot * width..][..width];
            if rank >= self.tuples {
                key.fill(0xFF);
                continue;
            }
            let (at, place) = from.place(rank);
            let stored = &lines[at as usize];
            let word = line::word(stored, from.key_bytes, place) as u64;
            key.copy_from_slice(&short.key::<u128>(word).to_le_bytes()[..width]);
            let value = &stored[from.values_at() + place * value_bytes..][..value_bytes];
            line[to.values_at() + slot * value_bytes..][..value_bytes].copy_from_slice(value);
        }
    }
}

/// Returns a launch with enough blocks for `items`, a thread each, limited to the blocks that run at a time.
///
/// # Errors
/// [`GpuError::Unavailable`] or [`GpuError::Compile`] if the source cannot be compiled,
/// [`GpuError::Driver`] if a driver call fails.
pub fn grid(
    gpu: &Gpu,
    instance: Instance,
    entry: &'static str,
    threads: u32,
    shared_bytes: u32,
    items: u64,
) -> Result<LaunchShape, GpuError> {
    let most = gpu.blocks_at_once(instance, entry, threads, shared_bytes)?;
    Ok(LaunchShape::limited(most, threads, shared_bytes, items))
}

/// Returns the word at the start of `bytes`.
fn word(bytes: &[u8], word_bytes: usize) -> u128 {
    let mut whole = [0; 16];
    whole[..word_bytes].copy_from_slice(&bytes[..word_bytes]);
    u128::from_le_bytes(whole)
}

/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 16 << 20;
/// Number of pinned buffers that the pieces use in turn.
const PIECES: usize = 3;

/// Copies to new device memory: all cores fill pinned pieces, while others are being transferred.
fn upload(stream: &Stream, from: &impl ToDevice) -> Result<DeviceBuffer, GpuError> {
    let gpu = stream.gpu();
    let length = from.length();
    let to = DeviceBuffer::new(gpu, length as u64)?;
    if length <= PIECE_BYTES {
        if let Some(bytes) = from.as_they_lie() {
            to.copy_from_host(stream, bytes)?;
            return Ok(to);
        }
        let mut bytes = vec![0; length];
        from.fill(0, &mut bytes);
        to.copy_from_host(stream, &bytes)?;
        return Ok(to);
    }
    let mut pieces = Vec::new();
    for _ in 0..PIECES {
        pieces.push((PinnedBuffer::new(gpu, PIECE_BYTES)?, None::<Event>));
    }
    let copied = (0..length.div_ceil(PIECE_BYTES)).try_for_each(|at| {
        let piece_bytes = PIECE_BYTES.min(length - at * PIECE_BYTES);
        let (piece, under_way) = &mut pieces[at % PIECES];
        if let Some(event) = under_way.take() {
            event.wait()?;
        }
        from.fill(at * PIECE_BYTES, &mut piece.as_mut_bytes()[..piece_bytes]);
        let address = to.address() + (at * PIECE_BYTES) as u64;
        // SAFETY: the range is inside both buffers, which live until the stream is waited for below.
        unsafe { gpu.driver().copy_in(stream.handle(), address, piece.host(), piece_bytes) }?;
        *under_way = Some(stream.mark()?);
        Ok(())
    });
    stream.synchronize()?;
    copied.map(|()| to)
}

/// Makes mapped bytes readable by the device in place, or else a page-locked copy of them.
fn pin(gpu: &Gpu, from: &impl ToDevice) -> Result<DeviceBuffer, GpuError> {
    const PAGE_BYTES: usize = 4096;
    if let Some(bytes) = from.as_they_lie()
        && gpu.limits().registers_read_only
        && bytes.as_ptr().addr().is_multiple_of(PAGE_BYTES)
    {
        // SAFETY: the index holds the mapping; `GpuTable` borrows it and waits for its work when it is
        // dropped.
        if let Ok(buffer) = unsafe { DeviceBuffer::register(gpu, bytes) } {
            return Ok(buffer);
        }
    }
    let length = from.length();
    let buffer = DeviceBuffer::pinned(gpu, length as u64)?;
    buffer.with_pinned(|pinned| from.fill(0, &mut pinned[..length]));
    Ok(buffer)
}
