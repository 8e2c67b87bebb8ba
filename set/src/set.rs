//! Reading a set: the manifest leads to the file, and a file opens when it is first asked.

pub(crate) mod entries;
mod many;

use crate::error::{Result, SetError};
use crate::folder::Folder;
use crate::generations::{current, generation_of, manifest, newest};
use crate::keys::key_bytes;
use crate::manifest::{Entry, Manifest, Schema};
use crate::schema::source_schema;
use crate::store::Store;
use pleach::{AnyMap, Datum, Index, KeyType, OpenOptions, Record, ValueType};
use pleach_builder::{BuildOptions, ChunkSource, Silent, Unique, in_memory};
use pleach_format::superblock::KEY_PREFIX_BYTES;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::{Bound, Range, RangeBounds};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// Files that are open at a time, unless the options say otherwise: a quarter of the mappings that a process of
/// Linux may have.
const OPEN_FILES: usize = 16_384;

/// Options to open a set with.
#[derive(Clone, Copy, Debug)]
pub struct SetOptions {
    open: OpenOptions,
    partial: bool,
    open_files: usize,
}

impl Default for SetOptions {
    fn default() -> Self {
        Self { open: OpenOptions::default(), partial: false, open_files: OPEN_FILES }
    }
}

impl SetOptions {
    /// Sets how files are opened: how much is verified, and where their bytes are kept.
    #[must_use]
    pub fn files(mut self, open: OpenOptions) -> Self {
        self.open = open;
        self
    }
    /// Answers without files that cannot be opened, instead of failing: look-ups find nothing in them, and
    /// iterators leave their tuples out. [`Set::left_out`] says which these are. Ranks and counts that need such
    /// a file are errors all the same.
    #[must_use]
    pub fn partial(mut self, partial: bool) -> Self {
        self.partial = partial;
        self
    }
    /// Sets how many files are open at a time, at least one; the set closes others, and opens them again.
    #[must_use]
    pub fn open_files(mut self, files: usize) -> Self {
        self.open_files = files.max(1);
        self
    }

    /// Opens the current generation of a set in a folder, or the generation of a manifest file. Reads the
    /// manifest, and no file of the set.
    ///
    /// # Errors
    /// [`SetError::NoSet`], [`SetError::Manifest`] or [`SetError::Store`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Set> {
        let path = path.as_ref();
        match manifest_of(path) {
            Some((folder, generation)) => self.generation(Arc::new(Folder::new(folder)), generation),
            None => self.store(Arc::new(Folder::new(path))),
        }
    }

    /// Opens the current generation of a set in a store.
    ///
    /// # Errors
    /// Those of [`SetOptions::open`].
    pub fn store(self, store: Arc<dyn Store>) -> Result<Set> {
        let manifest = current(&*store)?;
        Ok(self.over(store, manifest))
    }

    /// Opens a generation of a set in a store.
    ///
    /// # Errors
    /// Those of [`SetOptions::open`].
    pub fn generation(self, store: Arc<dyn Store>, generation: u64) -> Result<Set> {
        let manifest = manifest(&*store, generation)?;
        Ok(self.over(store, manifest))
    }

    /// Makes a set of a manifest that was read. Nothing is read.
    #[must_use]
    pub fn over(self, store: Arc<dyn Store>, manifest: Manifest) -> Set {
        Set {
            store,
            manifest,
            options: self,
            open: RwLock::default(),
            left_out: Mutex::default(),
            shape: OnceLock::new(),
        }
    }
}

/// Returns the folder of the set and the generation of a manifest file.
fn manifest_of(path: &Path) -> Option<(&Path, u64)> {
    let generation = generation_of(path.file_name()?.to_str()?)?;
    let folder = path.parent()?.parent()?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    path.is_file().then_some((folder, generation))
}

/// A set of files, which answers as one file of the same tuples would.
///
/// Keys and values are [`Datum`]s, and ranks count through the whole set. A set can be shared by threads; it
/// stays at the generation that it was opened at.
///
/// ```
/// use pleach_set::{BuildOptions, Committer, Datum, Folder, Partition, Set, Writer};
/// use pleach_builder::source::{Chunk, Column, Schema};
/// use pleach_builder::{ChunkSource, Silent};
/// use pleach_format::{KeyType, ValueType};
/// use std::sync::Arc;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("squares");
/// // Write files of 100 tuples, and publish them.
/// let mut chunk = Chunk::new(KeyType::U64, ValueType::U64);
/// (chunk.keys, chunk.values) =
///     (Column::U64((0..1000).collect()), Column::U64((0..1000).map(|number| number * number).collect()));
/// let mut source = ChunkSource::new(Schema::plain(KeyType::U64, ValueType::U64, None), [chunk]);
/// let store = Arc::new(Folder::create(&path)?);
/// let writer = Writer::new(store.clone());
/// let (written, _) = writer.write(&mut source, Partition::Tuples(100), &BuildOptions::default(), &Silent)?;
/// let mut committer = Committer::begin(store)?;
/// committer.add(&written)?;
/// committer.publish()?;
///
/// // Read them.
/// let squares = Set::open(&path)?;
/// assert_eq!((squares.len(), squares.manifest().files()), (1000, 10));
/// assert_eq!(squares.get(&Datum::U64(12))?, Some(Datum::U64(144)));
/// assert_eq!(squares.open_files(), 1);
/// assert_eq!(squares.count(Datum::U64(90)..Datum::U64(910))?, 820);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Set {
    store: Arc<dyn Store>,
    manifest: Manifest,
    options: SetOptions,
    open: RwLock<HashMap<usize, Arc<AnyMap>>>,
    left_out: Mutex<BTreeMap<usize, LeftOut>>,
    shape: OnceLock<Arc<Index>>,
}

/// A file that answers were made without: see [`SetOptions::partial`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Name of the file.
    pub name: String,
    /// Number of its tuples.
    pub tuples: u64,
    /// Why it could not be opened.
    pub reason: String,
}

/// A place between the tuples of a set: a file and a rank in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub file: usize,
    pub rank: u64,
}

impl Set {
    /// Opens the current generation of a set in a folder, or the generation of a manifest file, with the default
    /// options. Reads the manifest, and no file of the set.
    ///
    /// # Errors
    /// [`SetError::NoSet`], [`SetError::Manifest`] or [`SetError::Store`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        SetOptions::default().open(path)
    }

    /// Returns true if a path is that of a set, or of a manifest. Looks at names only.
    pub fn is_set(path: impl AsRef<Path>) -> bool {
        Folder::is_set(&path) || manifest_of(path.as_ref()).is_some()
    }

    /// Returns the default options.
    #[must_use]
    pub fn options() -> SetOptions {
        SetOptions::default()
    }

    /// Opens the generation that is current by now; `None` if it is this one. Files that both have stay open.
    ///
    /// # Errors
    /// Those of [`Set::open`]; [`SetError::Types`] if the new one has other types.
    pub fn next_generation(&self) -> Result<Option<Self>> {
        let newest = newest(&*self.store)?;
        if newest == self.generation() {
            return Ok(None);
        }
        let manifest = manifest(&*self.store, newest)?;
        let (own, next) = (self.schema(), manifest.schema());
        if (own.key_type, own.value_type) != (next.key_type, next.value_type) {
            let what = format!("generation {newest} has {} keys", next.key_type);
            return Err(SetError::Types { name: self.store.place(), what });
        }
        let next = self.options.over(Arc::clone(&self.store), manifest);
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let known: HashMap<&str, usize> = open.keys().map(|&file| (self.manifest.name(file), file)).collect();
        for file in 0..next.manifest.files() {
            if let Some(&old) = known.get(next.manifest.name(file))
                && self.manifest.entry(old) == next.manifest.entry(file)
                && let Some(map) = open.get(&old)
            {
                next.open.write().unwrap_or_else(PoisonError::into_inner).insert(file, Arc::clone(map));
            }
        }
        drop(open);
        Ok(Some(next))
    }

    /// Returns the manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
    /// Returns types, names and options.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        self.manifest.schema()
    }
    /// Returns the type of the keys.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        self.schema().key_type
    }
    /// Returns the type of the values.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        self.schema().value_type
    }
    /// Returns the fields of the values, if they are records.
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        Record::of(self.value_type(), &self.schema().meta.value_logical)
    }
    /// Returns the generation.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.manifest.generation()
    }
    /// Returns the number of tuples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.manifest.tuples()
    }
    /// Returns true if there are no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of files that are open now.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.open.read().unwrap_or_else(PoisonError::into_inner).len()
    }
    /// Returns true if answers are made without files that cannot be opened: see [`SetOptions::partial`].
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.options.partial
    }
    /// Returns the files that answers were made without so far, in the order of their keys.
    #[must_use]
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Returns an index without tuples and with the types, names and options of the set, in memory: for code that
    /// asks an index for these. O(1); no file is opened.
    ///
    /// # Errors
    /// [`SetError::Build`] if the options of the set are not known to this version.
    pub fn shape(&self) -> Result<Arc<Index>> {
        if let Some(shape) = self.shape.get() {
            return Ok(Arc::clone(shape));
        }
        let schema = self.schema();
        let options = BuildOptions {
            unique: schema.unique.then_some(Unique::Error),
            ..BuildOptions::default().with_layout(schema.meta.layout.parse().unwrap_or_default())
        };
        let bytes = in_memory(&mut ChunkSource::new(source_schema(schema), []), &options, &Silent)?;
        let index = Index::from_bytes(bytes).map_err(|error| SetError::Build(error.into()))?;
        Ok(Arc::clone(self.shape.get_or_init(|| Arc::new(index))))
    }

    /// Returns a file, which is opened if it is not open. It is compared with the manifest: its length, its file
    /// id, the sum of its superblock, tuples, smallest and largest key, types and names.
    ///
    /// # Errors
    /// [`SetError::Missing`], [`SetError::File`] or [`SetError::Differs`], which name it; [`SetError::Store`].
    ///
    /// # Panics
    /// If there is no such file.
    pub fn file(&self, file: usize) -> Result<Arc<AnyMap>> {
        if let Some(map) = self.open.read().unwrap_or_else(PoisonError::into_inner).get(&file) {
            return Ok(Arc::clone(map));
        }
        let map = Arc::new(self.open_file(file)?);
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= self.options.open_files
            && let Some(&other) = open.keys().next()
        {
            open.remove(&other);
        }
        Ok(Arc::clone(open.entry(file).or_insert(map)))
    }

    /// Opens a file anew, whether it is open or not.
    fn open_file(&self, file: usize) -> Result<AnyMap> {
        let entry = self.manifest.entry(file);
        let index = self.store.open(&entry, self.options.open)?;
        check_opened(&entry, self.schema(), &index, &self.store.place())?;
        AnyMap::from_index(Arc::new(index)).map_err(|error| self.failed(file, error))
    }

    /// Returns a file; `None` if it cannot be opened and the set answers without it: see
    /// [`SetOptions::partial`].
    ///
    /// # Errors
    /// Those of [`Set::file`], unless the set answers without such files.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn file_or_none(&self, file: usize) -> Result<Option<Arc<AnyMap>>> {
        if !self.options.partial {
            return self.file(file).map(Some);
        }
        let left_out = || self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        if left_out().contains_key(&file) {
            return Ok(None);
        }
        match self.file(file) {
            Ok(map) => Ok(Some(map)),
            Err(error) => {
                let (ranks, name) = (self.manifest.ranks(file), self.manifest.name(file).to_owned());
                let out = LeftOut { name, tuples: ranks.end - ranks.start, reason: error.to_string() };
                left_out().insert(file, out);
                Ok(None)
            }
        }
    }

    #[cold]
    pub(crate) fn failed(&self, file: usize, error: pleach::Error) -> SetError {
        SetError::File { name: self.manifest.name(file).to_owned(), source: error }
    }

    /// Returns the number of the file that can have a key. O(log files); no file is opened.
    ///
    /// # Errors
    /// [`SetError::Key`] if the key is of another type.
    pub fn file_of(&self, key: &Datum<'_>) -> Result<Option<usize>> {
        Ok(self.manifest.file_of_key(&key_bytes(self.key_type(), key)?))
    }

    /// Returns the value of the first tuple with this key. Opens one file at most.
    ///
    /// # Errors
    /// [`SetError::Key`] if the key is of another type; those of [`Set::file`]; [`SetError::File`] if a block that
    /// was read is damaged, which only [`pleach::Verify::Touched`] checks.
    pub fn get(&self, key: &Datum<'_>) -> Result<Option<Datum<'static>>> {
        let Some(file) = self.file_of(key)? else { return Ok(None) };
        let Some(map) = self.file_or_none(file)? else { return Ok(None) };
        let value = map.get(key).map_err(|error| self.failed(file, error))?;
        Ok(value.map(Datum::into_owned))
    }
    /// Returns true if a tuple has this key. Opens one file at most.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn contains(&self, key: &Datum<'_>) -> Result<bool> {
        let Some(file) = self.file_of(key)? else { return Ok(false) };
        let Some(map) = self.file_or_none(file)? else { return Ok(false) };
        map.contains(key).map_err(|error| self.failed(file, error))
    }
    /// Returns the rank of the first tuple with this key. Opens one file at most.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn rank(&self, key: &Datum<'_>) -> Result<Option<u64>> {
        let Some(file) = self.file_of(key)? else { return Ok(None) };
        let rank = self.file(file)?.rank(key).map_err(|error| self.failed(file, error))?;
        Ok(rank.map(|rank| self.manifest.ranks(file).start + rank))
    }
    /// Returns the rank of the first tuple whose key is at least `key`; [`Set::len`] if there is none. Opens one
    /// file at most, and none if the key is between two files.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn lower_bound(&self, key: &Datum<'_>) -> Result<u64> {
        let place = self.lower_place(key, |file| self.file(file).map(Some))?;
        Ok(self.rank_of(place))
    }
    /// Returns the rank of the first tuple whose key is above `key`; [`Set::len`] if there is none.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn upper_bound(&self, key: &Datum<'_>) -> Result<u64> {
        let place = self.upper_place(key, |file| self.file(file).map(Some))?;
        Ok(self.rank_of(place))
    }

    fn lower_place(
        &self,
        key: &Datum<'_>,
        open: impl Fn(usize) -> Result<Option<Arc<AnyMap>>>,
    ) -> Result<Place> {
        let bytes = key_bytes(self.key_type(), key)?;
        let file = self.manifest.file_at_or_above(&bytes);
        if file == self.manifest.files() || *bytes <= *self.manifest.min(file) {
            return Ok(Place { file, rank: 0 });
        }
        let Some(map) = open(file)? else { return Ok(Place { file: file + 1, rank: 0 }) };
        let rank = map.lower_bound(key).map_err(|error| self.failed(file, error))?;
        Ok(Place { file, rank })
    }
    fn upper_place(
        &self,
        key: &Datum<'_>,
        open: impl Fn(usize) -> Result<Option<Arc<AnyMap>>>,
    ) -> Result<Place> {
        let bytes = key_bytes(self.key_type(), key)?;
        let below = self.manifest.file_at_or_below(&bytes);
        let Some(file) = below else { return Ok(Place { file: 0, rank: 0 }) };
        if *bytes >= *self.manifest.max(file) {
            return Ok(Place { file: file + 1, rank: 0 });
        }
        let Some(map) = open(file)? else { return Ok(Place { file: file + 1, rank: 0 }) };
        let rank = map.upper_bound(key).map_err(|error| self.failed(file, error))?;
        Ok(Place { file, rank })
    }

    /// Returns the rank of a place.
    fn rank_of(&self, place: Place) -> u64 {
        if place.file >= self.manifest.files() {
            return self.len();
        }
        self.manifest.ranks(place.file).start + place.rank
    }
    /// Returns the place of a rank.
    fn place_of(&self, rank: u64) -> Place {
        match self.manifest.file_of_rank(rank) {
            Some(file) => Place { file, rank: rank - self.manifest.ranks(file).start },
            None => Place { file: self.manifest.files(), rank: 0 },
        }
    }

    /// Returns the tuple at `rank`; `None` past the last tuple. Opens one file.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn select(&self, rank: u64) -> Result<Option<(Datum<'static>, Datum<'static>)>> {
        let Some(file) = self.manifest.file_of_rank(rank) else { return Ok(None) };
        let map = self.file(file)?;
        let tuple = map.select(rank - self.manifest.ranks(file).start);
        let tuple = tuple.map_err(|error| self.failed(file, error))?;
        Ok(tuple.map(|(key, value)| (key.into_owned(), value.into_owned())))
    }
    /// Returns the first tuple; `None` if there are none.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn first(&self) -> Result<Option<(Datum<'static>, Datum<'static>)>> {
        self.select(0)
    }
    /// Returns the last tuple; `None` if there are none.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn last(&self) -> Result<Option<(Datum<'static>, Datum<'static>)>> {
        self.len().checked_sub(1).map_or(Ok(None), |rank| self.select(rank))
    }
    /// Returns the last tuple whose key is at most `key`; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn floor(&self, key: &Datum<'_>) -> Result<Option<(Datum<'static>, Datum<'static>)>> {
        self.upper_bound(key)?.checked_sub(1).map_or(Ok(None), |rank| self.select(rank))
    }
    /// Returns the first tuple whose key is at least `key`; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn ceiling(&self, key: &Datum<'_>) -> Result<Option<(Datum<'static>, Datum<'static>)>> {
        self.select(self.lower_bound(key)?)
    }

    /// Returns the number of tuples whose keys are in a range. Opens two files at most, those at its ends.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn count<'k>(&self, keys: impl RangeBounds<Datum<'k>>) -> Result<u64> {
        let range = self.places(&keys, |file| self.file(file).map(Some))?;
        Ok(self.rank_of(range.end).saturating_sub(self.rank_of(range.start)))
    }

    /// Returns the ranks of the tuples whose keys are in a range. An end in a file that is left out is moved to
    /// the border of that file.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn rank_range<'k>(&self, keys: impl RangeBounds<Datum<'k>>) -> Result<Range<u64>> {
        let range = self.places(&keys, |file| self.file_or_none(file))?;
        let start = self.rank_of(range.start);
        Ok(start..self.rank_of(range.end).max(start))
    }

    fn places<'k>(
        &self,
        keys: &impl RangeBounds<Datum<'k>>,
        open: impl Fn(usize) -> Result<Option<Arc<AnyMap>>> + Copy,
    ) -> Result<Range<Place>> {
        let start = match keys.start_bound() {
            Bound::Included(key) => self.lower_place(key, open)?,
            Bound::Excluded(key) => self.upper_place(key, open)?,
            Bound::Unbounded => Place { file: 0, rank: 0 },
        };
        let end = match keys.end_bound() {
            Bound::Included(key) => self.upper_place(key, open)?,
            Bound::Excluded(key) => self.lower_place(key, open)?,
            Bound::Unbounded => Place { file: self.manifest.files(), rank: 0 },
        };
        Ok(start..end.max(start))
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Set")
            .field("place", &self.store.place())
            .field("generation", &self.generation())
            .field("files", &self.manifest.files())
            .field("tuples", &self.len())
            .finish_non_exhaustive()
    }
}

/// Compares an open file with its entry.
pub(crate) fn check_opened(entry: &Entry, schema: &Schema, index: &Index, place: &str) -> Result<()> {
    let differs = |what: String| Err(SetError::Differs { name: format!("{place}/{}", entry.name), what });
    let block = &index.header().superblock;
    let numbers = [
        ("bytes", index.file_bytes(), entry.file_bytes),
        ("tuples", index.len(), entry.tuples),
        ("sum of the superblock", block.crc.get().into(), entry.head_sum.into()),
        ("bytes of the smallest key", block.min_key_len.get().into(), entry.min.len() as u64),
        ("bytes of the largest key", block.max_key_len.get().into(), entry.max.len() as u64),
    ];
    if let Some((what, found, said)) = numbers.into_iter().find(|(_, found, said)| found != said) {
        return differs(format!("{what}: {found}, and the manifest says {said}"));
    }
    if index.file_id() != entry.file_id {
        return differs("its file id is another".into());
    }
    let failed = |error: pleach::ReadError| SetError::File {
        name: entry.name.clone(),
        source: pleach::Error::from(error).at(index.path()),
    };
    for (what, key, stored, rank) in [
        ("smallest", &entry.min, &block.min_key, 0),
        ("largest", &entry.max, &block.max_key, entry.tuples - 1),
    ] {
        let is_same = if key.len() <= KEY_PREFIX_BYTES {
            stored[..key.len()] == **key
        } else {
            let tuple = index.tuple(rank).map_err(failed)?;
            let own = tuple.map(|(own, _)| key_bytes(schema.key_type, &own).map(|own| *own == **key));
            own.transpose()?.unwrap_or_default()
        };
        if !is_same {
            return differs(format!("its {what} key is not the one that the manifest says"));
        }
    }
    match schema.fits(&crate::write::schema_of(index)?) {
        Ok(()) => Ok(()),
        Err(what) => differs(what),
    }
}
