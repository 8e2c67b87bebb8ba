//! Sections of a file where a device reads them, byte for byte as they lie, and what turns queries into their words.

use crate::memory::DeviceBuffer;
use crate::resident::Resident;
use crate::{GpuError, Stream};
use pleach::Index;
use pleach_format::Short;

use crate::kernel::Text;

/// Text of the kernels that read words of a section.
pub(crate) const SHORT_TEXT: Text = Text { name: "short.cuh", text: include_str!("kernels/short.cuh") };

/// Valid bytes of a section's words: the kernels' option STORED_BYTES.
pub(crate) const STORED_BYTES: [u16; 3] = [4, 8, 16];

/// How words are shorter than keys; the same as Short in short.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Arguments {
    base: [u64; 2],
    most: u64,
    mask: [u64; 4],
    from: [u32; 4],
    at: [u32; 4],
    subtracts: u32,
    unused: u32,
}

impl Arguments {
    /// Definition of short.cuh.
    pub(crate) const NUMBER: (&'static str, u64) = ("BYTES_OF_SHORT", size_of::<Self>() as u64);

    fn new(short: &Short) -> Self {
        let base = short.base();
        let mut this = Self {
            base: [base as u64, (base >> 64) as u64],
            subtracts: short.subtracts().into(),
            ..Self::default()
        };
        let mut at = 0;
        for (number, run) in short.runs().enumerate() {
            let bits = u32::from(run.bits);
            this.mask[number] = u64::MAX >> (64 - bits);
            (this.from[number], this.at[number]) = (run.from.into(), at);
            at += bits;
        }
        this.most = u64::MAX >> (64 - at);
        this
    }
}

/// A section, or a tree that is derived with whole keys as words.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Its bytes; not trusted.
    pub(crate) buffer: DeviceBuffer,
    /// Bytes per word.
    pub(crate) word_bytes: u8,
    /// What turns queries into words.
    pub(crate) short: Arguments,
}

impl Stored {
    /// Makes a section of a file readable by the device, where the table's residence places it: a copy on the
    /// device, or the mapping itself.
    pub(crate) fn of_file(
        index: &Index,
        stream: &Stream,
        resident: &Resident,
        (offset, bytes): (u64, u64),
    ) -> Result<Self, GpuError> {
        let header = index.header();
        Ok(Self {
            buffer: resident.section(index, stream, offset, bytes)?,
            word_bytes: header.geometry.key_bytes as u8,
            short: header.short.as_ref().map_or_else(Arguments::default, Arguments::new),
        })
    }

    /// Returns a tree of whole keys, made on the device.
    pub(crate) fn derived(resident: &Resident, buffer: DeviceBuffer) -> Self {
        Self { buffer, word_bytes: resident.word_bytes, short: Arguments::default() }
    }
}
