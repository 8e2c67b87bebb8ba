//! Writing files of a set, which no reader sees before a committer publishes them.

use crate::error::{Result, SetError};
use crate::keys::key_bytes;
use crate::manifest::{Entry, FILES, PARTITION_TUPLES, Schema};
use crate::store::{Content, Store};
use pleach::{AnyMap, Index};
use pleach_builder::observe::Observer;
use pleach_builder::rebuild::{Ordered, build_ordered};
use pleach_builder::source::Source;
use pleach_builder::storage::UnnamedStorage;
use pleach_builder::{BuildOptions, Layout, build_with_storage};
use pleach_format::meta::Meta;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory that the build of one file needs.
const FILE_MEMORY_BYTES: u64 = 192 << 20;

/// Cuts that are found in one mapping of a table.
const CUTS_A_MAP: usize = 16;

/// How tuples are divided into files. Equal keys are never divided, so a file may have more tuples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// Files of so many tuples.
    Tuples(u64),
    /// At most so many files, of equal numbers of tuples.
    Files(u64),
}

impl Partition {
    /// Returns the number of tuples of a file, at least 1.
    fn tuples(self, all: u64) -> u64 {
        match self {
            Self::Tuples(tuples) => tuples.max(1),
            Self::Files(files) => all.div_ceil(files.max(1)).max(1),
        }
    }
}

impl Default for Partition {
    fn default() -> Self {
        Self::Tuples(PARTITION_TUPLES)
    }
}

/// Files that a worker wrote, in the order of their keys: what a committer needs to publish them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Types and options of the files.
    pub schema: Schema,
    /// The files; none if there were no tuples.
    pub entries: Vec<Entry>,
}

/// What a worker read and wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteReport {
    /// Number of rows read.
    pub rows: u64,
    /// True if the input was in order.
    pub sorted_input: bool,
    /// Number of sorted runs spilled to disk.
    pub runs: u64,
}

/// Writes files into the store of a set. Nothing refers to them until a [`Committer`](crate::Committer) publishes
/// them; files that are never published are litter, which a sweep deletes.
#[derive(Clone, Debug)]
pub struct Writer {
    store: Arc<dyn Store>,
}

impl Writer {
    /// Creates a writer.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Writes the tuples of a source as one or more files with fresh names.
    ///
    /// One pass over the source; what is not in order is sorted, on disk where it is larger than the memory. Then
    /// the sorted tuples are cut, and several files are written at a time. The files of the same tuples and
    /// options have the same bytes, whatever the number of threads and the memory.
    ///
    /// `options` are those of a build. Temporary files are in `options.temp_dir`, else on the disk of the set, or
    /// in the temporary folder of the system if the set is not on a disk.
    ///
    /// # Errors
    /// [`SetError::Build`] if the source or the options are refused, or a file cannot be written;
    /// [`SetError::Store`]. Files that were written by then are deleted.
    pub fn write(
        &self,
        source: &mut dyn Source,
        partition: Partition,
        options: &BuildOptions,
        observer: &dyn Observer,
    ) -> Result<(Written, WriteReport)> {
        if source.schema().derived.is_some() {
            return Err(SetError::Usage(
                "keys of a set are whole: --key-type hash64 or prefix:auto: these are made for one file, whose \
                 keys they tell apart: choose another key type"
                    .into(),
            ));
        }
        let folder = self.temp_folder(options);
        let storage = UnnamedStorage::new(&folder);
        let lines_alone = Layout { spine: false, grid: false, ..Layout::default() };
        let first = BuildOptions { keep: None, generation: 1, ..options.clone() }.with_layout(lines_alone);
        let sorted = build_with_storage(source, storage.target(), &first, observer, &storage)?;
        let Some(stage) = storage.into_file() else {
            return Err(SetError::Usage("no tuples were sorted: the set: try again".into()));
        };
        let place = folder.join("unnamed.pleach");
        let open = || -> pleach::Result<AnyMap> {
            let index = Index::options().open_file(&stage, &place)?;
            AnyMap::from_index(Arc::new(index))
        };
        let map = open().map_err(SetError::Build)?;
        let partition_tuples = partition.tuples(map.len());
        let cuts = cut(open, partition_tuples).map_err(SetError::Build)?;
        let mut schema = schema_of(map.index())?;
        schema.meta.layout = layout_text(options.layout());
        schema.partition_tuples = partition_tuples;
        drop(map);
        let tuples = Ordered::over(stage, &place)?;
        let last = BuildOptions {
            unique: schema.unique.then_some(pleach_builder::Unique::Error),
            sorted: true,
            ..options.clone()
        };
        let entries = self.write_all(&tuples, &cuts, &last, observer)?;
        let report = WriteReport { rows: sorted.rows, sorted_input: sorted.sorted_input, runs: sorted.runs };
        Ok((Written { schema, entries }, report))
    }

    /// Writes the tuples between `cuts` as files, several at a time.
    fn write_all(
        &self,
        tuples: &Ordered,
        cuts: &[u64],
        options: &BuildOptions,
        observer: &dyn Observer,
    ) -> Result<Vec<Entry>> {
        let parts = cuts.len() - 1;
        let threads = if options.threads == 0 { own_threads() } else { options.threads };
        let by_memory = (options.memory_bytes / FILE_MEMORY_BYTES).max(1) as usize;
        let workers = threads.min(by_memory).min(parts).max(1);
        let options = BuildOptions {
            threads: threads.div_ceil(workers),
            memory_bytes: options.memory_bytes / workers as u64,
            ..options.clone()
        };
        let next = AtomicUsize::new(0);
        let done: Mutex<(Vec<Option<Entry>>, Option<SetError>)> = Mutex::new((vec![None; parts], None));
        let state = || done.lock().unwrap_or_else(PoisonError::into_inner);
        let work = || {
            loop {
                let part = next.fetch_add(1, Ordering::Relaxed);
                if part >= parts || state().1.is_some() {
                    return;
                }
                let written = tuples
                    .source(cuts[part]..cuts[part + 1])
                    .map_err(SetError::from)
                    .and_then(|mut source| self.write_one(&mut *source, &options, observer));
                match written {
                    Ok(entry) => state().0[part] = entry,
                    Err(error) => {
                        state().1.get_or_insert(error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            (1..workers).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
        let (entries, error) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let entries = entries.into_iter().flatten();
        match error {
            None => Ok(entries.collect()),
            Some(error) => {
                entries.for_each(|entry| discard(&*self.store, &[entry], &error));
                Err(error)
            }
        }
    }

    /// Writes one file of tuples in order; `None` if there are none.
    pub(crate) fn write_one(
        &self,
        source: &mut dyn Source,
        options: &BuildOptions,
        observer: &dyn Observer,
    ) -> Result<Option<Entry>> {
        self.make(options, |path| {
            let options = BuildOptions { keep: None, generation: 1, ..options.clone() };
            build_ordered(source, path, &options, observer)?;
            Ok(())
        })
    }

    /// Makes one file with a fresh name, which `make` writes at a local path; `None` if it has no tuples.
    pub(crate) fn make(
        &self,
        options: &BuildOptions,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Option<Entry>> {
        let name = fresh_name()?;
        let failed = SetError::io;
        let folder;
        let (path, is_local) = match self.store.local(&name) {
            Some(path) => (path, true),
            None => {
                let temp = self.temp_folder(options);
                folder = tempfile::Builder::new()
                    .prefix("pleach-set-")
                    .tempdir_in(&temp)
                    .map_err(|error| failed("creating a temporary folder", &temp, error))?;
                (folder.path().join("file.pleach"), false)
            }
        };
        make(&path)?;
        let (entry, _) = described(&path, &name)?;
        match &entry {
            None => {
                fs::remove_file(&path).map_err(|error| failed("removing an empty file", &path, error))?;
            }
            Some(_) if !is_local => self.store.create_new(&name, Content::File(&path))?,
            Some(_) => {}
        }
        Ok(entry)
    }

    /// Copies a Pleach file into the set, as it is; no entries if it has no tuples.
    ///
    /// # Errors
    /// [`SetError::File`] if it is no Pleach file; [`SetError::Store`].
    pub fn add(&self, path: impl AsRef<Path>) -> Result<Written> {
        let path = path.as_ref();
        let name = fresh_name()?;
        let (entry, schema) = described(path, &name)?;
        if entry.is_some() {
            self.store.create_new(&name, Content::File(path))?;
        }
        Ok(Written { schema, entries: entry.into_iter().collect() })
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the folder of temporary files.
    pub(crate) fn temp_folder(&self, options: &BuildOptions) -> PathBuf {
        let own = || Some(self.store.local(FILES)?.as_path().to_owned());
        options.temp_dir.clone().or_else(own).unwrap_or_else(std::env::temp_dir)
    }
}

/// Deletes files that were written in vain, because of `why`.
///
/// They stay if `why` is an error of the store: a manifest may be there although creating it failed, in the last
/// step or on the way back, and it may name them. A sweep then deletes what is litter.
pub fn discard(store: &dyn Store, entries: &[Entry], why: &SetError) {
    if !matches!(why, SetError::Store(_)) {
        entries.iter().for_each(|entry| drop(store.delete(&entry.name)));
    }
}

/// Returns the number of threads of the pool.
fn own_threads() -> usize {
    pleach_pool::ready();
    rayon::current_num_threads()
}

/// Returns the ranks where files of so many tuples begin, and the number of all: equal keys are not divided.
///
/// The table is mapped anew now and then: the system counts what was looked at as memory of the process for as long
/// as it is mapped, and around each place it counts some pages.
pub(crate) fn cut(open: impl Fn() -> pleach::Result<AnyMap>, tuples: u64) -> pleach::Result<Vec<u64>> {
    let mut map = open()?;
    let all = map.len();
    let mut cuts = vec![0];
    let mut at = 0u64;
    while let Some(next) = at.checked_add(tuples).filter(|&next| next < all) {
        at = next;
        if let Some((key, _)) = map.select(next)?
            && map.lower_bound(&key)? < next
        {
            at = map.upper_bound(&key)?;
        }
        if at < all {
            cuts.push(at);
        }
        if cuts.len() % CUTS_A_MAP == 0 {
            map = open()?;
        }
    }
    cuts.push(all);
    Ok(cuts)
}

/// Returns a name that no other file has or had.
fn fresh_name() -> Result<String> {
    Ok(format!("{FILES}{:032x}.pleach", u128::from_le_bytes(random()?)))
}

/// Returns random bytes of the system.
pub(crate) fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| SetError::Usage(format!("no random bytes: the system: {error}: try again")))?;
    Ok(bytes)
}

/// Returns the types and options of a file.
pub(crate) fn schema_of(index: &Index) -> Result<Schema> {
    let failed = |error: pleach::ReadError| SetError::File {
        name: index.path().display().to_string(),
        source: pleach::Error::from(error).at(index.path()),
    };
    Ok(Schema {
        key_type: index.key_type(),
        value_type: index.value_type(),
        meta: index.meta().map_err(failed)?,
        unique: index.is_unique(),
        partition_tuples: PARTITION_TUPLES,
    })
}

/// Returns the text of a layout as META has it.
fn layout_text(layout: Layout) -> String {
    if layout == Layout::default() { String::new() } else { layout.to_string() }
}

/// Returns the entry of a file, and its schema. Reads every byte, for the digest.
fn described(path: &Path, name: &str) -> Result<(Option<Entry>, Schema)> {
    let refused =
        |error: pleach::Error| SetError::File { name: path.display().to_string(), source: error.at(path) };
    let index = Index::open(path).map_err(|error| refused(error.into()))?;
    let schema = schema_of(&index)?;
    let Meta { approximate, .. } = &schema.meta;
    if !approximate.is_empty() {
        let what = "its keys are shorter than those they stand for".into();
        return Err(SetError::Types { name: path.display().to_string(), what });
    }
    let (file_bytes, file_id, tuples) = (index.file_bytes(), index.file_id(), index.len());
    let head_sum = index.header().superblock.crc.get();
    let map = AnyMap::from_index(Arc::new(index)).map_err(refused)?;
    let ends = map.first().map_err(refused)?.zip(map.last().map_err(refused)?);
    let Some(((min, _), (max, _))) = ends else { return Ok((None, schema)) };
    let [min, max] =
        [key_bytes(schema.key_type, &min)?.into_owned(), key_bytes(schema.key_type, &max)?.into_owned()];
    let digest = digest(path).map_err(|error| SetError::io("reading", path, error))?;
    let name = name.to_owned();
    Ok((Some(Entry { name, file_bytes, digest, file_id, head_sum, tuples, min, max }), schema))
}

/// Returns the SHA-256 of a file.
pub(crate) fn digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut bytes = vec![0; 1 << 20];
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(hasher.finalize().into()),
            Ok(read) => hasher.update(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
