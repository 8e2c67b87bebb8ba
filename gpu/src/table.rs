//! A table on a device, and look-ups in it.

use crate::algorithm::auto::Auto;
use crate::algorithm::binary::Binary;
use crate::algorithm::btree::Btree;
use crate::algorithm::fast::Fast;
use crate::algorithm::fast_section::FastSection;
use crate::algorithm::harmonia::Harmonia;
use crate::algorithm::hybrid::Hybrid;
use crate::algorithm::imaged::Imaged;
use crate::algorithm::near::NearSearch;
use crate::algorithm::search::Search;
use crate::algorithm::spine::Spine;
use crate::algorithm::sweep::Sweep;
use crate::algorithm::{Algorithm, SectionTree};
use crate::host::{Asked, Form, PinnedBatch, PinnedSlots, Pool, Searched, Slots, bitmap_bytes};
use crate::kernel::Batch;
use crate::memory::DeviceBuffer;
use crate::pending::Pending;
use crate::resident::{self, Residence, Resident};
use crate::{Gpu, GpuError, Stream};
use pleach::{Index, Key, KeyType, Near, ReadError, Value};
use pleach_format::LineGeometry;
use pleach_format::key::Bits;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A table whose tuple lines the device can read, with the search structures of the algorithms; each is made
/// at its first use.
#[derive(Debug)]
pub struct GpuTable<'a> {
    stream: Stream,
    /// `None` for a table without tuples.
    resident: Option<Arc<Resident>>,
    searches: Mutex<Searches>,
    slots: Mutex<Slots>,
    pool: Pool,
    /// Dropped last, because the tuple lines may be in its mapping.
    index: Held<'a>,
}

/// Reference to the file of a table.
#[derive(Debug)]
enum Held<'a> {
    Borrowed(&'a Index),
    /// Shared with readers that follow new generations.
    Shared(Arc<Index>),
}

impl Deref for Held<'_> {
    type Target = Index;

    fn deref(&self) -> &Index {
        match self {
            Self::Borrowed(index) => index,
            Self::Shared(index) => index,
        }
    }
}

/// A structure and the tuple lines below it, which queued work uses.
pub(crate) type Used = (Structure, Arc<Resident>);

/// A structure that queued work uses.
#[expect(dead_code, reason = "it is kept, and not read")]
pub(crate) enum Structure {
    Search(Arc<dyn Search>),
    Near(Arc<NearSearch>),
}

/// Form of the presence of a batch's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// A bit for each, in whole words.
    Bits,
    /// A byte for each; see [`GpuTable::writes_bytes`].
    Bytes,
}

impl Presence {
    fn bytes(self, count: u64) -> u64 {
        match self {
            Self::Bits => count.div_ceil(32) * 4,
            Self::Bytes => count,
        }
    }
}

/// Resources kept alive by queued work.
pub(crate) struct Queued {
    pub(crate) kept: Vec<DeviceBuffer>,
    pub(crate) used: Option<Used>,
}

/// Structures made so far, and the images that several of them share.
#[derive(Debug, Default)]
struct Searches {
    made: HashMap<Algorithm, Arc<dyn Search>>,
    near: HashMap<Near, Arc<NearSearch>>,
    /// The image, and the mirrored one.
    images: [Option<Arc<Imaged>>; 2],
    spine: Option<Arc<Spine>>,
    hybrid: Option<Arc<Hybrid>>,
}

impl Searches {
    fn image(
        &mut self,
        stream: &Stream,
        resident: &Resident,
        is_mirrored: bool,
    ) -> Result<Arc<Imaged>, GpuError> {
        let place = &mut self.images[usize::from(is_mirrored)];
        if let Some(image) = place {
            return Ok(Arc::clone(image));
        }
        Ok(Arc::clone(place.insert(Arc::new(Imaged::new(stream, resident, is_mirrored)?))))
    }

    fn near(
        &mut self,
        stream: &Stream,
        resident: &Resident,
        near: Near,
    ) -> Result<Arc<NearSearch>, GpuError> {
        if let Some(search) = self.near.get(&near) {
            return Ok(Arc::clone(search));
        }
        let image = self.image(stream, resident, NearSearch::is_mirrored(near))?;
        let hybrid = match resident.residence {
            Residence::Hybrid => Some(self.hybrid(stream, resident)?),
            _ => None,
        };
        let search = Arc::new(NearSearch::new(resident, image, hybrid, near)?);
        self.near.insert(near, Arc::clone(&search));
        Ok(search)
    }

    fn spine(&mut self, stream: &Stream, resident: &Resident) -> Result<Arc<Spine>, GpuError> {
        if let Some(spine) = &self.spine {
            return Ok(Arc::clone(spine));
        }
        let image = self.image(stream, resident, false)?;
        Ok(Arc::clone(self.spine.insert(Arc::new(Spine::new(resident, image)?))))
    }

    fn hybrid(&mut self, stream: &Stream, resident: &Resident) -> Result<Arc<Hybrid>, GpuError> {
        if let Some(hybrid) = &self.hybrid {
            return Ok(Arc::clone(hybrid));
        }
        let spine = self.spine(stream, resident)?;
        Ok(Arc::clone(self.hybrid.insert(Arc::new(Hybrid::new(stream, resident, spine)?))))
    }
}

impl Drop for GpuTable<'_> {
    fn drop(&mut self) {
        // Tuple lines may be in the index's mapping, which can be unmapped after this. A lost device does no
        // work.
        if self.resident.as_ref().is_some_and(|resident| resident.residence != Residence::Device) {
            let _ = self.gpu().driver().synchronize_all();
        }
    }
}

/// Device buffers for the answers of a batch; a kind of answer whose buffer is `None` is not computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers<'b> {
    /// Value of each query, 0 where the key is absent.
    pub values: Option<&'b DeviceBuffer>,
    /// Presence bit of each query, in whole words of 32 bits.
    pub present: Option<&'b DeviceBuffer>,
    /// Rank of each query's lower bound.
    pub ranks: Option<&'b DeviceBuffer>,
    /// Bytes of a rank: 4 if the table has fewer than 2^32 tuples, or 8.
    pub rank_bytes: u32,
}

impl GpuTable<'static> {
    /// Creates a table of a shared file, as [`GpuTable::with_residence`] does; see [`crate::LiveTable`].
    ///
    /// # Errors
    /// As [`GpuTable::new`].
    pub fn of_shared(index: Arc<Index>, gpu: &Gpu, residence: Residence) -> Result<Self, GpuError> {
        Self::of(Held::Shared(index), gpu, residence)
    }
}

impl<'a> GpuTable<'a> {
    /// Copies the tuple lines of a file to a device. O(lines).
    ///
    /// The lines are not verified here: open the index with [`pleach::Verify::Full`] for that. A damaged
    /// table may give wrong answers, but nothing outside of it is read.
    ///
    /// # Errors
    /// [`GpuError`] if the types cannot be searched there, if memory is too small, or if a driver call fails.
    pub fn new(index: &'a Index, gpu: &Gpu) -> Result<Self, GpuError> {
        Self::with_residence(index, gpu, Residence::Auto)
    }

    /// Creates a table as [`GpuTable::new`] does, with its tuple lines in the specified place.
    ///
    /// # Errors
    /// As [`GpuTable::new`].
    pub fn with_residence(index: &'a Index, gpu: &Gpu, residence: Residence) -> Result<Self, GpuError> {
        Self::of(Held::Borrowed(index), gpu, residence)
    }

    fn of(index: Held<'a>, gpu: &Gpu, residence: Residence) -> Result<Self, GpuError> {
        let stream = Stream::new(gpu)?;
        let resident = Resident::new(&index, &stream, residence)?.map(Arc::new);
        Ok(Self {
            index,
            stream,
            resident,
            searches: Mutex::default(),
            slots: Mutex::default(),
            pool: Pool::default(),
        })
    }

    /// Returns the index of the file.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns the place of the tuple lines.
    #[must_use]
    pub fn residence(&self) -> Residence {
        self.resident.as_ref().map_or(Residence::Device, |resident| resident.residence)
    }

    /// Returns the device.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        self.stream.gpu()
    }

    /// Returns the tuple lines; `None` for a table without tuples.
    pub(crate) fn resident(&self) -> Option<&Arc<Resident>> {
        self.resident.as_ref()
    }

    /// Returns the stream used by calls that block.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the search for tuples near queries, made at its first use.
    pub(crate) fn near(&self, resident: &Resident, near: Near) -> Result<Arc<NearSearch>, GpuError> {
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        searches.near(&self.stream, resident, near)
    }

    /// Returns true if a batch of tuples near queries, searched by [`Algorithm::Auto`], can be recorded; `None` if the
    /// search is not made yet.
    pub(crate) fn is_near_recordable(&self, near: Near, count: u64) -> Option<bool> {
        if self.resident.is_none() {
            return Some(true);
        }
        let searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        searches.near.get(&near).map(|search| search.is_recordable(Algorithm::Auto, count))
    }

    /// Returns the structure of an algorithm, made at its first use.
    fn search(&self, resident: &Resident, algorithm: Algorithm) -> Result<Arc<dyn Search>, GpuError> {
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(search) = searches.made.get(&algorithm) {
            return Ok(Arc::clone(search));
        }
        let search = self.make(resident, algorithm, &mut searches)?;
        searches.made.insert(algorithm, Arc::clone(&search));
        Ok(search)
    }

    /// Builds the structure of an algorithm.
    fn make(
        &self,
        resident: &Resident,
        algorithm: Algorithm,
        searches: &mut Searches,
    ) -> Result<Arc<dyn Search>, GpuError> {
        let stream = &self.stream;
        Ok(match algorithm {
            Algorithm::Spine if resident.residence == Residence::Hybrid => {
                searches.hybrid(stream, resident)?
            }
            Algorithm::Auto if resident.residence == Residence::Hybrid => {
                let hybrid = searches.hybrid(stream, resident)?;
                let spine = searches.spine(stream, resident)?;
                Arc::new(Auto::new(resident, &spine, hybrid)?)
            }
            Algorithm::Auto if resident.residence == Residence::Device => {
                let spine = searches.spine(stream, resident)?;
                Arc::new(Auto::new(resident, &spine, Arc::<Spine>::clone(&spine))?)
            }
            Algorithm::Auto | Algorithm::Spine => searches.spine(stream, resident)?,
            Algorithm::Sweep => Arc::new(Sweep::new(resident, searches.image(stream, resident, false)?)?),
            Algorithm::Binary => Arc::new(Binary::new(stream, resident)?),
            Algorithm::Section(SectionTree::Fast) => {
                Arc::new(FastSection::new(&self.index, stream, resident)?)
            }
            Algorithm::Section(SectionTree::Btree) => {
                Arc::new(Btree::of_file(&self.index, stream, resident)?)
            }
            Algorithm::Section(SectionTree::Harmonia(search)) => {
                Arc::new(Harmonia::of_file(&self.index, stream, resident, search)?)
            }
            Algorithm::Fast { form, simultaneous } => {
                Arc::new(Fast::new(stream, resident, form, simultaneous)?)
            }
            Algorithm::Btree { order, form } => Arc::new(Btree::new(stream, resident, order, form)?),
            Algorithm::Harmonia(form) => Arc::new(Harmonia::new(stream, resident, form)?),
            Algorithm::External(external) => external.make(stream, resident)?,
        })
    }

    /// Builds the structure of an algorithm now, so that its first batch does not wait for it. Blocks.
    ///
    /// # Errors
    /// [`GpuError::Memory`] if memory is too small, [`GpuError::Algorithm`] if the algorithm cannot search
    /// this table, [`GpuError::Driver`] if a driver call fails.
    pub fn prepare(&self, algorithm: Algorithm) -> Result<(), GpuError> {
        let Some(resident) = &self.resident else { return Ok(()) };
        self.search(resident, algorithm).map(|_| ())
    }

    /// Returns the number of bytes of an algorithm's structure, without the tuple lines.
    ///
    /// # Errors
    /// As [`GpuTable::prepare`].
    pub fn structure_bytes(&self, algorithm: Algorithm) -> Result<u64, GpuError> {
        let Some(resident) = &self.resident else { return Ok(0) };
        Ok(self.search(resident, algorithm)?.bytes())
    }

    /// Returns the number of lanes of a warp that search for one query in a batch of `queries`, for an
    /// algorithm that narrows its groups ([`crate::Group`]); `None` for others.
    ///
    /// # Errors
    /// As [`GpuTable::prepare`].
    pub fn lanes(&self, algorithm: Algorithm, queries: u64) -> Result<Option<u32>, GpuError> {
        let Some(resident) = &self.resident else { return Ok(None) };
        Ok(self.search(resident, algorithm)?.lanes(queries))
    }

    /// Frees the structure of an algorithm; of [`Algorithm::Auto`] or [`Algorithm::Spine`], those of
    /// [`GpuTable::prepare_near`], too.
    pub fn release(&self, algorithm: Algorithm) {
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        searches.made.remove(&algorithm);
        if matches!(algorithm, Algorithm::Spine | Algorithm::Auto) {
            searches.made.remove(&Algorithm::Auto);
            (searches.hybrid, searches.spine, searches.images) = (None, None, [None, None]);
            searches.near.clear();
        }
    }

    /// Queues a batch on a stream: searches the `count` keys in `queries`, an array of the file's key type,
    /// and writes to `answers`. All buffers are on the device, and the call does not wait. Byte keys are
    /// passed as words, see `spec/FORMAT.md` section 7.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if a buffer is too short, [`GpuError::Ranks`] if the ranks need 8 bytes, the
    /// errors of [`GpuTable::prepare`], and [`GpuError::Driver`] if a driver call fails.
    pub fn search_on(
        &self,
        stream: &Stream,
        algorithm: Algorithm,
        queries: &DeviceBuffer,
        count: u64,
        answers: Answers<'_>,
    ) -> Result<Pending<()>, GpuError> {
        let (form, numbers) = (Presence::Bits, None);
        let Queued { kept, used } =
            self.start(stream, algorithm, queries, count, (answers, form), numbers)?;
        Pending::new(stream, kept, move || {
            drop(used);
            Ok(())
        })
    }

    /// Queues a batch as [`GpuTable::search_on`] does, with an algorithm that sorts its queries first
    /// ([`crate::QuerySort`]), and leaves the answers in sorted order: answer i belongs to query
    /// `numbers[i]`, a u32 for each query. If no answers are requested, it only sorts.
    ///
    /// # Errors
    /// As [`GpuTable::search_on`]; [`GpuError::Algorithm`] if the algorithm does not sort.
    pub fn search_sorted_on(
        &self,
        stream: &Stream,
        algorithm: Algorithm,
        queries: &DeviceBuffer,
        count: u64,
        answers: Answers<'_>,
        numbers: &DeviceBuffer,
    ) -> Result<Pending<()>, GpuError> {
        numbers.holds("numbers", count.saturating_mul(4))?;
        let asked = (answers, Presence::Bits);
        let queued = self.start(stream, algorithm, queries, count, asked, Some(numbers))?;
        let Queued { mut kept, used } = queued;
        kept.push(numbers.clone());
        Pending::new(stream, kept, move || {
            drop(used);
            Ok(())
        })
    }

    /// Returns true if a batch can have its presence as bytes.
    pub(crate) fn writes_bytes(&self, algorithm: Algorithm, count: u64) -> Result<bool, GpuError> {
        let Some(resident) = &self.resident else { return Ok(true) };
        Ok(self.search(resident, algorithm)?.writes_bytes(count))
    }

    /// Checks that a batch can be recorded.
    pub(crate) fn check_recordable(&self, algorithm: Algorithm, count: u64) -> Result<(), GpuError> {
        let Some(resident) = &self.resident else { return Ok(()) };
        if self.search(resident, algorithm)?.is_recordable(count) {
            return Ok(());
        }
        Err(algorithm.refused(format!("a batch of {count} queries cannot be recorded here")))
    }

    /// Checks and queues a batch.
    pub(crate) fn start(
        &self,
        stream: &Stream,
        algorithm: Algorithm,
        queries: &DeviceBuffer,
        count: u64,
        (answers, form): (Answers<'_>, Presence),
        numbers: Option<&DeviceBuffer>,
    ) -> Result<Queued, GpuError> {
        let (batch, kept) = self.checked(queries, count, (answers, form))?;
        let used = if count == 0 { None } else { self.queue(stream, algorithm, &batch, &answers, numbers)? };
        Ok(Queued { kept, used })
    }

    /// Checks the buffers of a batch. Returns the batch, and clones of the buffers.
    pub(crate) fn checked(
        &self,
        queries: &DeviceBuffer,
        count: u64,
        (answers, form): (Answers<'_>, Presence),
    ) -> Result<(Batch, Vec<DeviceBuffer>), GpuError> {
        let header = self.index.header();
        let geometry = self.geometry();
        let (word_bytes, value_bytes) = (geometry.key_bytes as u64, geometry.value_bytes as u64);
        let room = |each: u64| count.saturating_mul(each);
        queries.holds("queries", room(word_bytes))?;
        let rank_bytes = if answers.rank_bytes == 4 { 4 } else { 8 };
        if rank_bytes == 4 && header.tuples > u32::MAX.into() {
            return Err(GpuError::Ranks { tuples: header.tuples });
        }
        let mut kept = vec![queries.clone()];
        let mut address = |name, buffer: Option<&DeviceBuffer>, needed| -> Result<u64, GpuError> {
            let Some(buffer) = buffer else { return Ok(0) };
            buffer.holds(name, needed)?;
            kept.push(buffer.clone());
            Ok(buffer.address())
        };
        let batch = Batch {
            queries: queries.address(),
            count,
            values: address("values", answers.values.filter(|_| value_bytes > 0), room(value_bytes))?,
            present: address("present", answers.present, form.bytes(count))?,
            ranks: address("ranks", answers.ranks, room(rank_bytes))?,
            kind: self.kind(),
            present_bytes: u16::from(form == Presence::Bytes),
            rank_bytes: rank_bytes as u16,
            value_bytes: value_bytes as u16,
        };
        Ok((batch, kept))
    }

    /// Queues a batch of at least one query. Returns the resources that its work uses.
    fn queue(
        &self,
        stream: &Stream,
        algorithm: Algorithm,
        batch: &Batch,
        answers: &Answers<'_>,
        numbers: Option<&DeviceBuffer>,
    ) -> Result<Option<Used>, GpuError> {
        let Some(resident) = &self.resident else {
            if numbers.is_some() {
                return Err(algorithm.refused("an empty table sorts no queries"));
            }
            // The table is empty: no key is present, and every rank is 0.
            for buffer in [answers.values, answers.present, answers.ranks].into_iter().flatten() {
                buffer.fill(stream, 0)?;
            }
            return Ok(None);
        };
        let search = self.search(resident, algorithm)?;
        if let Some(present) =
            answers.present.filter(|_| batch.present_bytes == 0 && search.wants_zeroed_present())
        {
            present.part(0, batch.count.div_ceil(32) * 4).fill(stream, 0)?;
        }
        // SAFETY: `start` checked that the buffers have the lengths of the batch. The caller keeps them and
        // the structure, which is returned, until the work is done.
        unsafe {
            match numbers {
                Some(numbers) => search.search_sorted(stream, batch, numbers.address()),
                None => search.search(stream, batch),
            }
        }?;
        Ok(Some((Structure::Search(search), Arc::clone(resident))))
    }

    /// Returns the layout of the lines on the device, whose words are those of queries.
    pub(crate) fn geometry(&self) -> LineGeometry {
        resident::geometry(self.index.header())
    }

    /// Returns the properties common to all host batches of the file's keys.
    fn form(&self, asked: Asked) -> Form {
        Form { word_bytes: self.geometry().key_bytes, kind: self.kind(), asked }
    }

    /// Returns the encoding that turns the file's keys, as stored in memory, into words.
    pub(crate) fn kind(&self) -> u16 {
        match self.index.key_type() {
            KeyType::I32 | KeyType::I64 => 1,
            KeyType::F64 => 2,
            // The host has already encoded byte keys as words.
            KeyType::U32
            | KeyType::U64
            | KeyType::U128
            | KeyType::Fixed(_)
            | KeyType::Bytes
            | KeyType::Utf8 => 0,
        }
    }

    /// Searches a batch in ordinary slices, as bytes.
    pub(crate) fn search_slices(
        &self,
        algorithm: Algorithm,
        asked: Asked,
        queries: &[u8],
        answers: &mut [u8],
        present: &mut [u8],
    ) -> Result<(), GpuError> {
        let Some(resident) = &self.resident else {
            answers.fill(0);
            present.fill(0);
            return Ok(());
        };
        let search = self.search(resident, algorithm)?;
        self.searched(&Searched::Get(&*search), asked, queries, [answers, &mut [], &mut []], present)
    }

    /// Searches a batch in ordinary slices, as bytes, by any kind of search.
    pub(crate) fn searched(
        &self,
        search: &Searched<'_>,
        asked: Asked,
        queries: &[u8],
        answers: [&mut [u8]; 3],
        present: &mut [u8],
    ) -> Result<(), GpuError> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.search(self.gpu(), search, self.form(asked), queries, answers, present)
    }

    /// Queues a batch in pinned host memory, which holds the queries and room for the answers. Returns the
    /// batch with the answers. Copies in both directions overlap with the search.
    ///
    /// # Errors
    /// As [`GpuTable::search_on`].
    pub fn get_pinned(
        &self,
        algorithm: Algorithm,
        batch: PinnedBatch,
    ) -> Result<Pending<PinnedBatch>, GpuError> {
        let geometry = self.geometry();
        let count = batch.count;
        for (name, buffer, each) in
            [("keys", &batch.keys, geometry.key_bytes), ("values", &batch.values, geometry.value_bytes)]
        {
            let (needed, found) = (count.saturating_mul(each) as u64, buffer.as_bytes().len() as u64);
            if found < needed {
                return Err(GpuError::Buffer { name, needed, found });
            }
        }
        let (needed, found) = (bitmap_bytes(count) as u64, batch.present.as_bytes().len() as u64);
        if found < needed {
            return Err(GpuError::Buffer { name: "present", needed, found });
        }
        let stream = Stream::new(self.gpu())?;
        let Some(resident) = self.resident.clone().filter(|_| count > 0) else {
            let mut batch = batch;
            batch.values.as_mut_bytes().fill(0);
            batch.present.as_mut_bytes().fill(0);
            return Pending::new(&stream, Vec::new(), move || Ok(batch));
        };
        let search = self.search(&resident, algorithm)?;
        let slots =
            PinnedSlots::take(&self.pool, self.gpu(), self.form(Asked::Values(geometry.value_bytes)))?;
        // SAFETY: the lengths were compared above. `Pending` keeps the buffers and the structure; if queueing
        // fails, the stream is waited for here.
        let queued = unsafe { slots.queue(&stream, &Searched::Get(&*search), &batch) };
        if let Err(error) = queued {
            let _ = stream.synchronize();
            return Err(error);
        }
        let pool = Arc::clone(&self.pool);
        Pending::new(&stream, Vec::new(), move || {
            drop((search, resident));
            slots.put(&pool);
            Ok(batch)
        })
    }

    /// Looks up the values of keys and their presence, as [`pleach::Typed::get_batch`] does. Returns the
    /// number of keys that are present.
    ///
    /// # Errors
    /// [`GpuError::Asked`] if the types are not the file's, [`GpuError::Read`] if a buffer is too
    /// short, [`GpuError::Driver`] if a driver call fails.
    pub fn get_batch<K: Key, V: Value>(
        &self,
        keys: &[K],
        values: &mut [V],
        present: &mut [u64],
    ) -> Result<usize, GpuError> {
        self.get_batch_by(Algorithm::Auto, keys, values, present)
    }

    /// Looks up keys as [`GpuTable::get_batch`] does, with the specified algorithm.
    ///
    /// # Errors
    /// As [`GpuTable::get_batch`]; [`GpuError::Algorithm`] if the algorithm cannot search this table.
    pub fn get_batch_by<K: Key, V: Value>(
        &self,
        algorithm: Algorithm,
        keys: &[K],
        values: &mut [V],
        present: &mut [u64],
    ) -> Result<usize, GpuError> {
        self.index.typed::<K, V>()?;
        let values = first_of("values", keys.len(), values)?;
        let present = first_of("present", keys.len().div_ceil(64), present)?;
        if keys.is_empty() {
            return Ok(0);
        }
        let asked = Asked::Values(V::Bits::BYTES);
        self.search_slices(algorithm, asked, as_bytes(keys), as_mut_bytes(values), as_mut_bytes(present))?;
        Ok(present.iter().map(|word| word.count_ones() as usize).sum())
    }

    /// Returns the ranks of lower bounds, as [`pleach::Typed::lower_bound_batch`] does.
    ///
    /// # Errors
    /// As [`GpuTable::get_batch`].
    pub fn lower_bound_batch<K: Key, V: Value>(&self, keys: &[K], ranks: &mut [u64]) -> Result<(), GpuError> {
        self.lower_bound_batch_by::<K, V>(Algorithm::Auto, keys, ranks)
    }

    /// Returns the ranks of lower bounds as [`GpuTable::lower_bound_batch`] does, with the specified
    /// algorithm.
    ///
    /// # Errors
    /// As [`GpuTable::get_batch_by`].
    pub fn lower_bound_batch_by<K: Key, V: Value>(
        &self,
        algorithm: Algorithm,
        keys: &[K],
        ranks: &mut [u64],
    ) -> Result<(), GpuError> {
        self.index.typed::<K, V>()?;
        let ranks = first_of("ranks", keys.len(), ranks)?;
        if keys.is_empty() {
            return Ok(());
        }
        self.search_slices(algorithm, Asked::Ranks, as_bytes(keys), as_mut_bytes(ranks), &mut [])
    }
}

/// Returns the part of a caller's buffer that a batch fills, as [`pleach::Typed::get_batch`] does.
pub(crate) fn first_of<'b, T>(
    name: &'static str,
    needed: usize,
    buffer: &'b mut [T],
) -> Result<&'b mut [T], ReadError> {
    let found = buffer.len();
    buffer.get_mut(..needed).ok_or(ReadError::Buffer { name, needed, found })
}

/// Returns the bytes in memory of keys, values or ranks.
pub(crate) fn as_bytes<T: IntoBytes + Immutable>(items: &[T]) -> &[u8] {
    items.as_bytes()
}

/// Returns the bytes in memory of keys, values or ranks, for writing.
pub(crate) fn as_mut_bytes<T: FromBytes + IntoBytes>(items: &mut [T]) -> &mut [u8] {
    items.as_mut_bytes()
}
