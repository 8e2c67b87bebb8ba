//! Batches in device arrays of other libraries: a tensor, an array of a data frame.
//!
//! Their keys may be of another type than the file's, their presence is a byte for each key, and a missing key may have
//! a value of the caller's. A kernel before the search converts the keys, if it must; one after it writes what the
//! search does not. All of it is queued on the caller's stream, and may be recorded there.

use crate::algorithm::Algorithm;
use crate::kernel::{Instance, SourceSpec};
use crate::memory::DeviceBuffer;
use crate::near::{NearBuffers, Wanted};
use crate::resident::grid;
use crate::table::{Answers, Presence};
use crate::{GpuError, GpuTable, Stream};
use pleach::{KeyType, Near, ValueType};

/// Threads per block.
const THREADS: u32 = 256;
/// Alignment of parts of the scratch memory.
const PART_BYTES: u64 = 256;
/// Lengths of batches whose kernels are loaded in advance: through groups of lanes, and through blocks.
const WARM: [u64; 2] = [1, 1 << 20];

/// Values of 4 bytes become 8.
const WIDE: u32 = 1;
/// They are signed.
const SIGNED: u32 = 2;
/// Missing keys have the caller's value.
const REPLACE: u32 = 4;

crate::kernel! {
    /// Arrays of other libraries.
    FOREIGN = SourceSpec {
        has_value_width: true,
        numbers: |_| vec![
            ("BYTES_OF_FOREIGN_KEYS", size_of::<ForeignKeys>() as u64),
            ("BYTES_OF_FOREIGN_ANSWERS", size_of::<ForeignAnswers>() as u64),
        ],
        ..SourceSpec::new("foreign.cu", include_str!("kernels/foreign.cu"))
    };
    /// Converts numbers to keys of the file's type.
    foreign_keys(all: ForeignKeys);
    /// Writes presence as bytes, and values of missing keys.
    foreign_answers(all: ForeignAnswers);
}

/// Arguments of `foreign_keys`; the same as in foreign.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ForeignKeys {
    keys: u64,
    words: u64,
    misses: u64,
    count: u64,
    lane: u32,
    kind: u32,
}

/// Arguments of `foreign_answers`; the same as in foreign.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ForeignAnswers {
    present: u64,
    misses: u64,
    narrow: u64,
    values: u64,
    found: u64,
    count: u64,
    missing: u64,
    form: u32,
    unused: u32,
}

/// Type of the numbers in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Lane {
    /// Unsigned, 8 bits.
    U8 = 0,
    /// Unsigned, 16 bits.
    U16 = 1,
    /// Unsigned, 32 bits.
    U32 = 2,
    /// Unsigned, 64 bits.
    U64 = 3,
    /// Signed, 8 bits.
    I8 = 4,
    /// Signed, 16 bits.
    I16 = 5,
    /// Signed, 32 bits.
    I32 = 6,
    /// Signed, 64 bits.
    I64 = 7,
    /// A float of 32 bits.
    F32 = 8,
    /// A float of 64 bits.
    F64 = 9,
}

impl Lane {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F32,
        Self::F64,
    ];

    /// Returns the bytes of a number.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Returns the name of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Returns true if every number of this type is a key of the type.
    const fn fits(self, key_type: KeyType) -> bool {
        match key_type {
            KeyType::U32 => matches!(self, Self::U8 | Self::U16 | Self::U32),
            KeyType::U64 | KeyType::U128 => matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64),
            KeyType::I32 => matches!(self, Self::U8 | Self::U16 | Self::I8 | Self::I16 | Self::I32),
            KeyType::I64 => !matches!(self, Self::U64 | Self::F32 | Self::F64),
            KeyType::F64 => !matches!(self, Self::U64 | Self::I64),
            KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => false,
        }
    }

    /// Returns true if arrays of this type hold keys as the file does.
    fn is_of(self, key_type: KeyType) -> bool {
        matches!(
            (self, key_type),
            (Self::U32, KeyType::U32)
                | (Self::U64, KeyType::U64)
                | (Self::I32, KeyType::I32)
                | (Self::I64, KeyType::I64)
                | (Self::F64, KeyType::F64)
        )
    }
}

/// What a batch looks up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LookUp {
    /// Keys: their first tuples.
    #[default]
    Keys,
    /// The tuples near keys.
    Near(Near),
    /// The intervals that hold keys.
    Intervals,
}

impl LookUp {
    fn wanted(self) -> Option<Wanted> {
        match self {
            Self::Keys => None,
            Self::Near(near) => Some(Wanted::Near(near)),
            Self::Intervals => Some(Wanted::Interval),
        }
    }
}

/// A batch in arrays of another library. An address of 0 means that this answer is not wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Foreign {
    /// Address of the keys, aligned to one of them.
    pub keys: u64,
    /// Number of keys.
    pub count: u64,
    /// Type of the keys; `None` for keys of the file's type.
    pub lane: Option<Lane>,
    /// Address of the values: as many as keys, of the file's type, or of 8 bytes if `is_wide`.
    pub values: u64,
    /// Values of 4 bytes are widened to integers of 8.
    pub is_wide: bool,
    /// Value of a missing key, in the bits of a value; 0 if `None`.
    pub missing: Option<u64>,
    /// Address of a byte for each key, aligned to 8: 1 if it was found, else 0.
    pub found: u64,
    /// Address of the rank of each key's lower bound, 8 bytes each; or of its tuple, all bits set if there is none.
    pub ranks: u64,
    /// What is looked up.
    pub look_up: LookUp,
    /// Address of the keys of tuples, of the file's type; only of tuples near keys, and of intervals.
    pub tuple_keys: u64,
}

/// Addresses of the parts of the scratch memory, and its length in bytes.
#[derive(Clone, Copy, Debug)]
struct Parts {
    present: u64,
    misses: u64,
    words: u64,
    narrow: u64,
    bytes: u64,
}

impl GpuTable<'_> {
    /// Divides scratch memory at an address.
    fn parts(&self, batch: &Foreign, scratch: u64) -> Parts {
        let geometry = self.geometry();
        let is_converted = batch.lane.is_some_and(|lane| !lane.is_of(self.index().key_type()));
        let mut end = scratch;
        let mut part = |is_wanted: bool, bytes: u64| {
            let start = end;
            end += if is_wanted { bytes.next_multiple_of(PART_BYTES) } else { 0 };
            if is_wanted { start } else { 0 }
        };
        let bitmap = batch.count.div_ceil(32) * 4;
        Parts {
            present: part(true, bitmap),
            misses: part(is_converted, bitmap),
            words: part(is_converted, batch.count * geometry.key_bytes as u64),
            narrow: part(batch.is_wide && geometry.value_bytes == 4, batch.count * 4),
            bytes: end - scratch,
        }
    }

    /// Returns the bytes of scratch memory that a batch needs.
    #[must_use]
    pub fn foreign_bytes(&self, batch: &Foreign) -> u64 {
        self.parts(batch, PART_BYTES).bytes
    }

    /// Queues a batch in arrays of another library. The call does not wait, and makes nothing that a recording of
    /// `stream` would refuse; what the work uses is not kept.
    ///
    /// # Errors
    /// [`GpuError::Lane`] if no number of this type is a key, [`GpuError::Types`] if the file's keys are strings,
    /// [`GpuError::Buffer`] if the scratch memory is too short, and those of [`GpuTable::search_on`].
    ///
    /// # Safety
    /// The addresses must be of arrays on this device as [`Foreign`] describes them. They, the scratch memory and
    /// this table must live until the work is done: each time, if it is recorded. Nobody else may use the scratch
    /// memory meanwhile.
    pub unsafe fn get_foreign(
        &self,
        stream: &Stream,
        batch: &Foreign,
        (scratch, scratch_bytes): (u64, u64),
    ) -> Result<(), GpuError> {
        self.check_lane(batch)?;
        let parts = self.parts(batch, scratch);
        if scratch_bytes < parts.bytes {
            return Err(GpuError::Buffer { name: "scratch", needed: parts.bytes, found: scratch_bytes });
        }
        if batch.look_up == LookUp::Intervals {
            self.check_interval_on()?;
        }
        if batch.count == 0 {
            return Ok(());
        }
        let (gpu, geometry) = (self.gpu(), self.geometry());
        let count = batch.count;
        let instance = Instance::new(&FOREIGN, geometry.key_bytes as u8, geometry.value_bytes as u8);
        let shape = |entry, items| grid(gpu, instance, entry, THREADS, 0, items);
        if parts.words != 0
            && let Some(lane) = batch.lane
        {
            let all = ForeignKeys {
                keys: batch.keys,
                words: parts.words,
                misses: parts.misses,
                count,
                lane: lane as u32,
                kind: self.kind().into(),
            };
            // SAFETY: the caller guarantees the keys; the parts have room for a word and a bit for each.
            unsafe { foreign_keys(stream, instance, shape("foreign_keys", count)?, &all) }?;
        }
        let keys = if parts.words == 0 { batch.keys } else { parts.words };
        let values = if parts.narrow == 0 { batch.values } else { parts.narrow };
        // SAFETY: the caller guarantees arrays of these lengths, and that they and the table live until the work is
        // done.
        let buffer = |address: u64, each: u64| unsafe { DeviceBuffer::from_raw(gpu, address, count * each) };
        let (queries, values) =
            (buffer(keys, geometry.key_bytes as u64), buffer(values, geometry.value_bytes as u64));
        // SAFETY: the part of the scratch memory has a bit for each key, in whole words.
        let present = unsafe { DeviceBuffer::from_raw(gpu, parts.present, count.div_ceil(32) * 4) };
        let ranks = buffer(batch.ranks, 8);
        if let Some(wanted) = batch.look_up.wanted() {
            // SAFETY: the caller guarantees the array, and the others, of which these are.
            return unsafe {
                let keys = buffer(batch.tuple_keys, geometry.key_bytes as u64);
                let buffers = NearBuffers {
                    ranks: (batch.ranks != 0).then_some(&ranks),
                    keys: (batch.tuple_keys != 0).then_some(&keys),
                    values: (batch.values != 0).then_some(&values),
                    present: Some(&present),
                    rank_bytes: 8,
                };
                self.near_foreign(stream, batch, wanted, &queries, buffers, &parts)
            };
        }
        let algorithm = self.recordable(stream, count)?;
        // Where the search can, it writes the bytes itself, and nothing is left to do.
        if parts.words == 0 && parts.narrow == 0 && batch.missing.is_none() && batch.ranks == 0 {
            let found = buffer(batch.found, 1);
            if batch.found == 0 || self.writes_bytes(algorithm, count)? {
                let answers = Answers {
                    values: (batch.values != 0).then_some(&values),
                    present: (batch.found != 0).then_some(&found),
                    ..Answers::default()
                };
                let form = if batch.found == 0 { Presence::Bits } else { Presence::Bytes };
                let _queued = self.start(stream, algorithm, &queries, count, (answers, form), None)?;
                return Ok(());
            }
        }
        let wants_present = batch.found != 0 || batch.missing.is_some() || parts.misses != 0;
        let answers = Answers {
            values: (batch.values != 0).then_some(&values),
            present: (wants_present && batch.ranks == 0).then_some(&present),
            ranks: (batch.ranks != 0).then_some(&ranks),
            rank_bytes: 8,
        };
        // What is queued uses only what the caller keeps.
        let _queued = self.start(stream, algorithm, &queries, count, (answers, Presence::Bits), None)?;
        if batch.ranks != 0 || !wants_present {
            return Ok(());
        }
        // SAFETY: the caller guarantees the arrays; the parts are those of the search.
        unsafe { self.answer_foreign(stream, instance, batch, &parts) }
    }

    /// Queues a batch of tuples near keys, as [`GpuTable::get_foreign`] does.
    ///
    /// # Safety
    /// As [`GpuTable::get_foreign`], with the queries, the buffers of the answers and the parts of the scratch memory.
    unsafe fn near_foreign(
        &self,
        stream: &Stream,
        batch: &Foreign,
        wanted: Wanted,
        queries: &DeviceBuffer,
        buffers: NearBuffers<'_>,
        parts: &Parts,
    ) -> Result<(), GpuError> {
        let (count, geometry) = (batch.count, self.geometry());
        let algorithm = self.recordable_near(stream, wanted, count)?;
        let is_plain = parts.narrow == 0 && batch.missing.is_none();
        // Where the search can, it writes the bytes itself, and nothing is left to do.
        let writes_bytes = is_plain && self.writes_near_bytes(wanted, count)?;
        let wants_present = batch.found != 0 || !is_plain;
        // SAFETY: the caller guarantees a byte for each key, where they are wanted.
        let found = unsafe { DeviceBuffer::from_raw(self.gpu(), batch.found, count) };
        let present = if writes_bytes { Some(&found) } else { buffers.present };
        let buffers = NearBuffers { present: present.filter(|_| wants_present), ..buffers };
        let form = if writes_bytes { Presence::Bytes } else { Presence::Bits };
        // What is queued uses only what the caller keeps.
        let _queued = self.start_near(stream, algorithm, wanted, (queries, count), (buffers, form))?;
        if writes_bytes || !wants_present {
            return Ok(());
        }
        // Numbers that are no keys were refused: only NaN is a miss, and has a place above all numbers.
        let parts = Parts { misses: 0, ..*parts };
        let instance = Instance::new(&FOREIGN, geometry.key_bytes as u8, geometry.value_bytes as u8);
        // SAFETY: the caller guarantees the arrays; the parts are those of the search.
        unsafe { self.answer_foreign(stream, instance, batch, &parts) }
    }

    /// Queues writing what the search did not: presence as bytes, wide values, and values of missing keys.
    ///
    /// # Safety
    /// As [`GpuTable::get_foreign`], with the parts of the scratch memory.
    unsafe fn answer_foreign(
        &self,
        stream: &Stream,
        instance: Instance,
        batch: &Foreign,
        parts: &Parts,
    ) -> Result<(), GpuError> {
        let replaces = batch.missing.is_some() || parts.misses != 0;
        let is_signed = self.index().value_type() == ValueType::I32;
        let form = [(parts.narrow != 0, WIDE), (is_signed, SIGNED), (replaces, REPLACE)];
        let all = ForeignAnswers {
            present: parts.present,
            misses: parts.misses,
            narrow: parts.narrow,
            values: batch.values,
            found: batch.found,
            count: batch.count,
            missing: batch.missing.unwrap_or(0),
            form: form.iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).sum(),
            unused: 0,
        };
        let shape = grid(self.gpu(), instance, "foreign_answers", THREADS, 0, batch.count)?;
        // SAFETY: the caller guarantees the arrays; the parts are those of the search.
        unsafe { foreign_answers(stream, instance, shape, &all) }
    }

    /// Checks that numbers of the batch's type can be keys and, where ranks are wanted, that all of them are.
    fn check_lane(&self, batch: &Foreign) -> Result<(), GpuError> {
        let (key_type, value_type) = (self.index().key_type(), self.index().value_type());
        let is_float = matches!(value_type, ValueType::F32 | ValueType::F64);
        if key_type.is_bytes() || (batch.is_wide && is_float) {
            return Err(GpuError::Types { key: key_type, value: value_type });
        }
        let Some(lane) = batch.lane else { return Ok(()) };
        let advice = match lane.is_float() && key_type != KeyType::F64 {
            true => "convert them, as no float is an integer key",
            false if (batch.ranks != 0 || batch.look_up != LookUp::Keys) && !lane.fits(key_type) => {
                "convert them to that type, as numbers that are no keys have no place among keys here"
            }
            false => return Ok(()),
        };
        Err(GpuError::Lane { given: lane.name(), held: key_type, advice })
    }

    /// Returns the algorithm for a batch on a stream: one that can be recorded, if the stream is recording.
    fn recordable(&self, stream: &Stream, count: u64) -> Result<Algorithm, GpuError> {
        if stream.is_recording()? && self.check_recordable(Algorithm::Auto, count).is_err() {
            self.check_recordable(Algorithm::Spine, count)?;
            return Ok(Algorithm::Spine);
        }
        Ok(Algorithm::Auto)
    }

    /// Returns the algorithm for a batch of tuples near keys on a stream, as [`GpuTable::recordable`] does.
    fn recordable_near(&self, stream: &Stream, wanted: Wanted, count: u64) -> Result<Algorithm, GpuError> {
        if !stream.is_recording()? {
            return Ok(Algorithm::Auto);
        }
        // Its image cannot be made while work is recorded.
        let Some(is_recordable) = self.is_near_recordable(wanted.near(), count) else {
            return Err(
                Algorithm::Auto.refused("the first batch of a kind cannot be recorded: run one before")
            );
        };
        Ok(if is_recordable { Algorithm::Auto } else { Algorithm::Spine })
    }

    /// Makes the structures and loads the kernels of [`GpuTable::get_foreign`], which a recording cannot do, but for
    /// look-ups of other kinds than [`LookUp::Keys`]: their first batch makes what they need. Blocks.
    ///
    /// # Errors
    /// Those of [`GpuTable::search_on`].
    pub fn prepare_foreign(&self) -> Result<(), GpuError> {
        if self.index().key_type().is_bytes() {
            return Err(GpuError::Types { key: self.index().key_type(), value: self.index().value_type() });
        }
        self.prepare(Algorithm::Auto)?;
        self.prepare(Algorithm::Spine)?;
        let is_wide = !matches!(self.index().value_type(), ValueType::F32 | ValueType::F64);
        let (gpu, stream) = (self.gpu(), self.stream());
        for count in WARM {
            let keys = DeviceBuffer::new(gpu, count)?;
            keys.fill(stream, 0)?;
            let (values, ranks) = (DeviceBuffer::new(gpu, count * 8)?, DeviceBuffer::new(gpu, count * 8)?);
            let found = DeviceBuffer::new(gpu, count)?;
            let (missing, lane) = (Some(0), Some(Lane::U8));
            let batch = Foreign { keys: keys.address(), count, lane, is_wide, missing, ..Foreign::default() };
            let scratch = DeviceBuffer::new(gpu, self.foreign_bytes(&batch))?;
            let batches = [
                Foreign { values: values.address(), found: found.address(), ..batch },
                Foreign { ranks: ranks.address(), missing: None, ..batch },
            ];
            // SAFETY: the buffers have these lengths, and live until the stream was waited for.
            let queued = batches.iter().try_for_each(|batch| unsafe {
                self.get_foreign(stream, batch, (scratch.address(), scratch.bytes()))
            });
            stream.synchronize()?;
            queued?;
        }
        Ok(())
    }
}
