//! The tuples near keys that need not be there, and the intervals that hold keys, for batches on a device.
//!
//! Answers are those of [`pleach::Typed::near_batch`] and of [`pleach::Intervals`]. Values of 4 and 8 bytes are read
//! on the device, with the tuple; so are the ends of intervals in them. Longer values are not on the device: there
//! the host compares the ends of the intervals that the device has found.

use crate::algorithm::Algorithm;
use crate::algorithm::near::NearArguments;
use crate::host::{Asked, Parts, Searched};
use crate::memory::DeviceBuffer;
use crate::pending::Pending;
use crate::table::{Answers, Presence, Queued, Structure, as_bytes, as_mut_bytes};
use crate::{GpuError, GpuTable, Stream};
use pleach::{Key, Near, ReadError, Tuples, Value};
use pleach_format::key::Bits;
use rayon::prelude::*;
use std::sync::Arc;

/// Keys whose intervals a core compares at a time, a multiple of 64.
const PIECE: usize = 1 << 12;

/// Device buffers for the tuples near the queries of a batch; a part whose buffer is `None` is not computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NearBuffers<'b> {
    /// Rank of each tuple; all bits are set if there is none.
    pub ranks: Option<&'b DeviceBuffer>,
    /// Key of each tuple, of the file's key type; 0 if there is none. Byte keys are words.
    pub keys: Option<&'b DeviceBuffer>,
    /// Value of each tuple; 0 if there is none.
    pub values: Option<&'b DeviceBuffer>,
    /// Presence bit of each tuple, in whole words of 32 bits.
    pub present: Option<&'b DeviceBuffer>,
    /// Bytes of a rank: 4 if the table has fewer than 2^32 tuples, or 8.
    pub rank_bytes: u32,
}

impl<'b> NearBuffers<'b> {
    fn answers(&self) -> Answers<'b> {
        let Self { ranks, values, present, rank_bytes, .. } = *self;
        Answers { values, present, ranks, rank_bytes }
    }
}

/// Kind of tuple that is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Near(Near),
    /// The floor whose interval holds the query; values are on the device.
    Interval,
}

impl Wanted {
    pub(crate) fn near(self) -> Near {
        match self {
            Self::Near(near) => near,
            Self::Interval => Near::Floor,
        }
    }
}

/// Returns the first part of a buffer, or nothing of an empty one.
fn part<'b, T>(name: &'static str, needed: usize, buffer: &'b mut [T]) -> Result<&'b mut [T], ReadError> {
    match buffer.len() {
        0 => Ok(buffer),
        found => buffer.get_mut(..needed).ok_or(ReadError::Buffer { name, needed, found }),
    }
}

/// Creates the error of a file whose keys do not begin intervals.
fn without_intervals() -> GpuError {
    let cause = "the file has none: build it with --interval, or use floors".to_owned();
    GpuError::Operator { operator: "intervals", cause }
}

impl GpuTable<'_> {
    /// Makes what [`GpuTable::near_batch`] needs for tuples of a kind, so that its first batch does not wait for it.
    /// Blocks.
    ///
    /// Floors and nearest tuples need an image of their own, which takes as much memory as that of
    /// [`Algorithm::Spine`]. [`GpuTable::release`] frees it.
    ///
    /// # Errors
    /// [`GpuError::Memory`] if memory is too small, [`GpuError::Driver`] if a driver call fails.
    pub fn prepare_near(&self, near: Near) -> Result<(), GpuError> {
        let Some(resident) = self.resident() else { return Ok(()) };
        self.near(resident, near).map(|_| ())
    }

    /// Returns the number of bytes of what [`GpuTable::prepare_near`] makes.
    ///
    /// # Errors
    /// As [`GpuTable::prepare_near`].
    pub fn near_bytes(&self, near: Near) -> Result<u64, GpuError> {
        let Some(resident) = self.resident() else { return Ok(0) };
        Ok(self.near(resident, near)?.bytes())
    }

    /// Finds the tuple near each of many keys, as [`pleach::Typed::near_batch`] does. Returns the number of keys
    /// that have one. Blocks.
    ///
    /// A key takes about the time of a look-up: see `docs/PERFORMANCE.md`.
    ///
    /// ```no_run
    /// use pleach::{Index, Near, Tuples};
    /// use pleach_gpu::{Gpu, GpuTable};
    ///
    /// let index = Index::open("tens.pleach")?;
    /// let table = GpuTable::new(&index, &Gpu::open(0)?)?;
    /// let (mut keys, mut values) = ([0u64; 3], [0u64; 3]);
    /// let tuples = Tuples { keys: &mut keys, values: &mut values, ..Tuples::default() };
    /// table.near_batch(Near::Floor, &[25, 5, 30], tuples)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Asked`] if the types are not the file's, [`GpuError::Read`] if a buffer is too short and not
    /// empty, [`GpuError::Driver`] if a driver call fails, and those of [`GpuTable::prepare_near`].
    pub fn near_batch<K: Key, V: Value>(
        &self,
        near: Near,
        keys: &[K],
        tuples: Tuples<'_, K, V>,
    ) -> Result<usize, GpuError> {
        self.near_batch_by(Algorithm::Auto, near, keys, tuples)
    }

    /// Finds tuples as [`GpuTable::near_batch`] does, with the specified algorithm: [`Algorithm::Spine`] and
    /// [`Algorithm::Sweep`] search by themselves, for all others [`Algorithm::Auto`] chooses. Nearest tuples always
    /// go through the spine.
    ///
    /// # Errors
    /// As [`GpuTable::near_batch`].
    pub fn near_batch_by<K: Key, V: Value>(
        &self,
        algorithm: Algorithm,
        near: Near,
        keys: &[K],
        tuples: Tuples<'_, K, V>,
    ) -> Result<usize, GpuError> {
        self.index().typed::<K, V>()?;
        self.tuples(algorithm, Wanted::Near(near), keys, tuples)
    }

    /// Finds the interval that holds each of many keys, in a file of intervals. Returns the number of keys that are
    /// in one. The tuple of an interval has its first key, and a value that begins with its last one. Blocks.
    ///
    /// Where values are longer than 8 bytes, the device finds the floors, and the host compares their ends, on all
    /// threads of the current rayon pool.
    ///
    /// # Errors
    /// As [`GpuTable::near_batch`]; [`GpuError::Operator`] if the file has no intervals, and [`GpuError::Read`] if
    /// the values of the file cannot be read.
    pub fn interval_batch<K: Key, V: Value>(
        &self,
        keys: &[K],
        tuples: Tuples<'_, K, V>,
    ) -> Result<usize, GpuError> {
        self.interval_batch_by(Algorithm::Auto, keys, tuples)
    }

    /// Finds intervals as [`GpuTable::interval_batch`] does, with the specified algorithm; see
    /// [`GpuTable::near_batch_by`].
    ///
    /// # Errors
    /// As [`GpuTable::interval_batch`].
    pub fn interval_batch_by<K: Key, V: Value>(
        &self,
        algorithm: Algorithm,
        keys: &[K],
        tuples: Tuples<'_, K, V>,
    ) -> Result<usize, GpuError> {
        let typed = self.index().typed::<K, V>()?;
        let intervals = typed.intervals()?.ok_or_else(without_intervals)?;
        if self.geometry().value_bytes > 0 {
            return self.tuples(algorithm, Wanted::Interval, keys, tuples);
        }
        let count = keys.len();
        let mut ranks = vec![0; if tuples.ranks.is_empty() { count } else { 0 }];
        let mut present = vec![0; if tuples.present.is_empty() { count.div_ceil(64) } else { 0 }];
        let ranks = if ranks.is_empty() { part("ranks", count, tuples.ranks)? } else { &mut ranks[..] };
        let present = match present.is_empty() {
            true => part("present", count.div_ceil(64), tuples.present)?,
            false => &mut present[..],
        };
        let floors = Tuples {
            ranks: &mut *ranks,
            keys: &mut *tuples.keys,
            values: &mut *tuples.values,
            present: &mut *present,
        };
        self.tuples(algorithm, Wanted::Near(Near::Floor), keys, floors)?;
        let pieces = keys.par_chunks(PIECE).zip(ranks.par_chunks_mut(PIECE));
        let found = pieces
            .zip(present.par_chunks_mut(PIECE / 64))
            .map(|((keys, ranks), present)| {
                let found = intervals.hold_batch(keys, ranks)?;
                for (word, ranks) in present.iter_mut().zip(ranks.chunks(64)) {
                    let bit = |(at, &rank): (usize, &u64)| u64::from(rank != u64::MAX) << at;
                    *word = ranks.iter().enumerate().map(bit).sum();
                }
                Ok(found)
            })
            .try_reduce(|| 0, |a, b| Ok::<_, ReadError>(a + b))?;
        for (key, _) in tuples.keys.iter_mut().zip(&*ranks).filter(|(_, rank)| **rank == u64::MAX) {
            *key = K::default();
        }
        Ok(found)
    }

    /// Finds tuples for buffers of the host, of the types of the file.
    fn tuples<K: Key, V: Value>(
        &self,
        algorithm: Algorithm,
        wanted: Wanted,
        keys: &[K],
        tuples: Tuples<'_, K, V>,
    ) -> Result<usize, GpuError> {
        let (count, words) = (keys.len(), keys.len().div_ceil(64));
        let ranks = part("ranks", count, tuples.ranks)?;
        let to = part("keys", count, tuples.keys)?;
        let values = part("values", count, tuples.values)?;
        let mut bitmap = vec![0; if tuples.present.is_empty() { words } else { 0 }];
        let present = match tuples.present.is_empty() {
            true => &mut bitmap[..],
            false => part("present", words, tuples.present)?,
        };
        let resident = self.resident().filter(|_| count > 0);
        let Some(resident) = resident else {
            ranks.fill(u64::MAX);
            to.fill(K::default());
            values.fill(V::default());
            present.fill(0);
            return Ok(0);
        };
        let search = self.near(resident, wanted.near())?;
        // Ends of intervals are read from values, also where nobody wants these.
        let parts = Parts {
            ranks: !ranks.is_empty(),
            keys: !to.is_empty(),
            value_bytes: if values.is_empty() { 0 } else { V::Bits::BYTES },
        };
        let is_interval = wanted == Wanted::Interval;
        let searched = Searched::Near { search: &search, algorithm, is_interval };
        let answers = [as_mut_bytes(ranks), as_mut_bytes(to), as_mut_bytes(values)];
        self.searched(&searched, Asked::Tuples(parts), as_bytes(keys), answers, as_mut_bytes(present))?;
        Ok(present.iter().map(|word| word.count_ones() as usize).sum())
    }

    /// Queues a batch on a stream: finds the tuples near the `count` keys in `queries`, an array of the file's key
    /// type, and writes them to `buffers`. All buffers are on the device, and the call does not wait, but for what
    /// [`GpuTable::prepare_near`] makes. Byte keys are passed as words, see `spec/FORMAT.md` section 7.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if a buffer is too short, [`GpuError::Ranks`] if the ranks need 8 bytes, the errors of
    /// [`GpuTable::prepare_near`], and [`GpuError::Driver`] if a driver call fails.
    pub fn near_on(
        &self,
        stream: &Stream,
        algorithm: Algorithm,
        near: Near,
        queries: &DeviceBuffer,
        count: u64,
        buffers: NearBuffers<'_>,
    ) -> Result<Pending<()>, GpuError> {
        self.tuples_on(stream, algorithm, Wanted::Near(near), queries, count, buffers)
    }

    /// Queues a batch as [`GpuTable::near_on`] does, for the intervals that hold the keys.
    ///
    /// # Errors
    /// As [`GpuTable::near_on`]; [`GpuError::Operator`] if the file has no intervals, or if its values are longer
    /// than 8 bytes, which are not on the device: [`GpuTable::interval_batch`] answers then.
    pub fn interval_on(
        &self,
        stream: &Stream,
        algorithm: Algorithm,
        queries: &DeviceBuffer,
        count: u64,
        buffers: NearBuffers<'_>,
    ) -> Result<Pending<()>, GpuError> {
        self.check_interval_on()?;
        self.tuples_on(stream, algorithm, Wanted::Interval, queries, count, buffers)
    }

    /// Checks that the device has the ends of the file's intervals.
    pub(crate) fn check_interval_on(&self) -> Result<(), GpuError> {
        self.index().ends()?.ok_or_else(without_intervals)?;
        if self.geometry().value_bytes == 0 {
            let value = self.index().value_type();
            let cause = format!("values of type {value} are not on the device: pass keys of the host");
            return Err(GpuError::Operator { operator: "intervals", cause });
        }
        Ok(())
    }

    /// Returns true if a batch can have its presence as bytes.
    pub(crate) fn writes_near_bytes(&self, wanted: Wanted, count: u64) -> Result<bool, GpuError> {
        let Some(resident) = self.resident() else { return Ok(true) };
        Ok(self.near(resident, wanted.near())?.writes_bytes(count))
    }

    fn tuples_on(
        &self,
        stream: &Stream,
        algorithm: Algorithm,
        wanted: Wanted,
        queries: &DeviceBuffer,
        count: u64,
        buffers: NearBuffers<'_>,
    ) -> Result<Pending<()>, GpuError> {
        let queued =
            self.start_near(stream, algorithm, wanted, (queries, count), (buffers, Presence::Bits))?;
        let Queued { kept, used } = queued;
        Pending::new(stream, kept, move || {
            drop(used);
            Ok(())
        })
    }

    /// Checks and queues a batch.
    pub(crate) fn start_near(
        &self,
        stream: &Stream,
        algorithm: Algorithm,
        wanted: Wanted,
        (queries, count): (&DeviceBuffer, u64),
        (buffers, form): (NearBuffers<'_>, Presence),
    ) -> Result<Queued, GpuError> {
        let (batch, mut kept) = self.checked(queries, count, (buffers.answers(), form))?;
        if let Some(keys) = buffers.keys {
            keys.holds("keys", count.saturating_mul(self.geometry().key_bytes as u64))?;
            kept.push(keys.clone());
        }
        if count == 0 {
            return Ok(Queued { kept, used: None });
        }
        let Some(resident) = self.resident() else {
            for buffer in [buffers.keys, buffers.values, buffers.present].into_iter().flatten() {
                buffer.fill(stream, 0)?;
            }
            buffers.ranks.map_or(Ok(()), |ranks| ranks.fill(stream, u8::MAX))?;
            return Ok(Queued { kept, used: None });
        };
        let search = self.near(resident, wanted.near())?;
        let near = NearArguments {
            keys: buffers.keys.map_or(0, DeviceBuffer::address),
            is_interval: (wanted == Wanted::Interval).into(),
            unused: 0,
        };
        // SAFETY: `checked` and the comparison above found that the buffers have the lengths of the batch. The caller
        // keeps them and the structure, which is returned, until the work is done.
        unsafe { search.search(stream, algorithm, &batch, &near) }?;
        Ok(Queued { kept, used: Some((Structure::Near(search), Arc::clone(resident))) })
    }
}
