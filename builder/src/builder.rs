//! Building from Rust: options by setters, and tuples from an iterator.

use crate::error::BuildError;
use crate::layout::Layout;
use crate::observe::{Observer, Silent};
use crate::options::{BuildOptions, Overlap, Summary, Unique};
use crate::source::{Chunk, Column, Schema, Source, SourceError};
use crate::starts::Starts;
use crate::storage::MemoryStorage;
use crate::{build, build_with_storage};
use pleach_format::record::{Field, Record};
use pleach_format::stored::{BuildKey, BuildValue, KeyPart, ValuePart};
use std::path::{Path, PathBuf};

/// Bytes of keys and values after which a chunk ends early.
const CHUNK_BYTES: usize = 4 << 20;

/// Builds files from iterators over tuples.
///
/// Keys are numbers, texts or byte strings ([`BuildKey`]), and values are numbers, `()`, texts, byte strings or
/// records ([`BuildValue`]). Tuples may come in any order: sorted ones are streamed, others are sorted, on disk if
/// they exceed the memory limit. The same tuples and options give the same bytes.
///
/// ```
/// use pleach_builder::Builder;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("customers.pleach");
/// // A record is a Rust tuple, whose fields get names.
/// let customers = [("ada", (3u32, 99.5f64, "London")), ("bob", (1, 12.0, ""))];
/// let summary = Builder::new().fields(["orders", "balance", "city"]).threads(2).build(&path, customers)?;
/// assert_eq!((summary.tuples, summary.generation), (2, 1));
/// // A build under the same name makes the next generation. Readers keep the one that they have open.
/// let summary = Builder::new().build(&path, customers.map(|(name, _)| (name, ())))?;
/// assert_eq!(summary.generation, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Builder<'o> {
    options: BuildOptions,
    key_name: String,
    value_name: String,
    fields: Option<Vec<String>>,
    is_interval: bool,
    observer: Option<&'o dyn Observer>,
}

impl From<BuildOptions> for Builder<'_> {
    fn from(options: BuildOptions) -> Self {
        Self { options, ..Self::default() }
    }
}

impl<'o> Builder<'o> {
    /// Creates a builder with the default options: all tuples are kept, in a file with the default layout.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the number of threads. By default, or for 0, the threads of the current rayon pool work.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }
    /// Sets the memory limit in bytes; half of the machine's memory by default. Limits below 128 MiB cannot be
    /// kept.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.memory_bytes = bytes;
        self
    }
    /// Sets the sections of the file.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.options = self.options.with_layout(layout);
        self
    }
    /// Sets the treatment of equal keys. By default all tuples are kept, in the order in which they come.
    #[must_use]
    pub fn unique(mut self, unique: Unique) -> Self {
        self.options.unique = Some(unique);
        self
    }
    /// Refuses tuples that are not sorted by key, instead of sorting them.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.options.sorted = true;
        self
    }
    /// Sets the folder for what does not fit in memory; the folder of the file by default.
    #[must_use]
    pub fn temp_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.temp_dir = Some(folder.into());
        self
    }
    /// Keeps this number of old generations beside the file ([`crate::rebuild::kept_path`]); none by default.
    #[must_use]
    pub fn keep(mut self, generations: usize) -> Self {
        self.options.keep = Some(generations);
        self
    }
    /// Also replaces a file that is not a Pleach file.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.options.force = true;
        self
    }
    /// Makes a file of intervals: keys are their first keys, and the first field of each value, a record, is the last
    /// key of its interval. `overlap` says what is done with intervals that overlap.
    ///
    /// ```
    /// use pleach_builder::{Builder, Overlap};
    ///
    /// let bytes = Builder::new().intervals(Overlap::Error).to_bytes([(10u32, (12u32, 7u32)), (1, (5, 8))])?;
    /// assert!(Builder::new().intervals(Overlap::Error).to_bytes([(1u32, (5u32, 8u32)), (5, (9, 7))]).is_err());
    /// # Ok::<(), pleach_builder::BuildError>(())
    /// ```
    #[must_use]
    pub fn intervals(mut self, overlap: Overlap) -> Self {
        (self.is_interval, self.options.overlap) = (true, overlap);
        self
    }
    /// Names the columns of keys and values.
    #[must_use]
    pub fn names(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        (self.key_name, self.value_name) = (key.into(), value.into());
        self
    }
    /// Names the fields of records; `f1`, `f2` and so on by default.
    #[must_use]
    pub fn fields<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.fields = Some(names.into_iter().map(Into::into).collect());
        self
    }
    /// Sets an observer, which gets the progress and can cancel the build.
    #[must_use]
    pub fn observer(mut self, observer: &'o dyn Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Builds the file `path` from tuples in any order. The file appears complete and synced, or not at all.
    ///
    /// # Errors
    /// [`BuildError`]: a key is not valid (NaN, or longer than 65,535 bytes), the tuples break the options, the
    /// names do not fit the fields, the file may not be replaced or is being built, the system fails, or the
    /// observer cancels. A file that was there before is then unchanged.
    pub fn build<K: BuildKey, V: BuildValue, I>(
        &self,
        path: impl AsRef<Path>,
        tuples: I,
    ) -> Result<Summary, BuildError>
    where
        I: IntoIterator<Item = (K, V)>,
        I::IntoIter: Send,
    {
        self.with_source(tuples, |source| build(source, path, &self.options, self.watcher()))
    }

    /// Returns the bytes of the file, without writing it.
    ///
    /// # Errors
    /// Those of [`Builder::build`] that do not come from the file system.
    pub fn to_bytes<K: BuildKey, V: BuildValue, I>(&self, tuples: I) -> Result<Vec<u8>, BuildError>
    where
        I: IntoIterator<Item = (K, V)>,
        I::IntoIter: Send,
    {
        self.with_source(tuples, |source| in_memory(source, &self.options, self.watcher()))
    }

    /// Calls `build` with the source of the tuples.
    fn with_source<K: BuildKey, V: BuildValue, I, R>(
        &self,
        tuples: I,
        build: impl FnOnce(&mut dyn Source) -> Result<R, BuildError>,
    ) -> Result<R, BuildError>
    where
        I: IntoIterator<Item = (K, V)>,
        I::IntoIter: Send,
    {
        let mut source = self.source(tuples)?;
        if !self.is_interval {
            return build(&mut source);
        }
        build(&mut Starts::new(Box::new(source), "input", false, true)?)
    }

    fn watcher(&self) -> &'o dyn Observer {
        self.observer.unwrap_or(&Silent)
    }

    fn source<K: BuildKey, V: BuildValue, I: IntoIterator<Item = (K, V)>>(
        &self,
        tuples: I,
    ) -> Result<IterSource<I::IntoIter>, BuildError> {
        let tuples = tuples.into_iter();
        let rows = match tuples.size_hint() {
            (low, Some(high)) if low == high => Some(low as u64),
            _ => None,
        };
        let mut schema = Schema::plain(K::KEY_TYPE, V::VALUE_TYPE, rows);
        (schema.key_name, schema.value_name) = (self.key_name.clone(), self.value_name.clone());
        let refused = |what: String, advice: &str| {
            BuildError::from(SourceError {
                input: "input".into(),
                place: String::new(),
                what,
                advice: advice.into(),
                cause: None,
            })
        };
        let (kinds, names) = (V::FIELDS, self.fields.as_deref());
        if let Some(names) = names.filter(|names| names.len() != kinds.len()) {
            let what = format!("{} names for {} fields", names.len(), kinds.len());
            return Err(refused(what, "give each field of the values a name"));
        }
        if !kinds.is_empty() {
            let name = |at: usize| names.map_or_else(|| format!("f{}", at + 1), |names| names[at].clone());
            let fields = kinds.iter().enumerate().map(|(at, &kind)| Field::new(name(at), kind)).collect();
            schema.value_logical =
                Record::new(fields).map_err(|error| refused(error.what(), error.advice()))?.to_string();
        }
        Ok(IterSource { tuples, schema, read: 0, room: Vec::new() })
    }
}

/// Returns the bytes that [`build`](crate::build) would write, without any file. What exceeds the memory limit of the
/// options is kept in memory, too.
///
/// # Errors
/// Those of [`build`](crate::build) that do not come from the file system.
pub fn in_memory(
    source: &mut dyn Source,
    options: &BuildOptions,
    observer: &dyn Observer,
) -> Result<Vec<u8>, BuildError> {
    let storage = MemoryStorage::default();
    let target = Path::new("/memory.pleach");
    build_with_storage(source, target, options, observer, &storage)?;
    Ok(storage.take(target).unwrap_or_default())
}

/// Appends a value to its column, and returns its bytes if it is a byte string.
#[inline(always)]
pub(crate) fn push_value<V: BuildValue>(column: &mut Column, value: &V, room: &mut Vec<u8>) -> usize {
    match (column, value.value_part(room)) {
        (Column::U32(words), ValuePart::Bits(bits)) => words.push(bits as u32),
        (Column::U64(words), ValuePart::Bits(bits)) => words.push(bits),
        (Column::Bytes(strings), ValuePart::Bytes(bytes)) => {
            strings.push(bytes);
            return bytes.len();
        }
        // The types of columns are those of the schema; there is no column of values that are nothing.
        (Column::None | Column::U32(_) | Column::U64(_) | Column::U128(_) | Column::Bytes(_), _) => {}
    }
    0
}

/// A source over an iterator.
struct IterSource<I> {
    tuples: I,
    schema: Schema,
    read: u64,
    room: Vec<u8>,
}

impl<K: BuildKey, V: BuildValue, I: Iterator<Item = (K, V)> + Send> Source for IterSource<I> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        chunk.clear();
        let mut left = CHUNK_BYTES;
        for (key, value) in self.tuples.by_ref().take(tuples_max) {
            match (&mut chunk.keys, key.key_part()) {
                (Column::U32(words), KeyPart::Word(word)) => words.push(word as u32),
                (Column::U64(words), KeyPart::Word(word)) => words.push(word as u64),
                (Column::U128(words), KeyPart::Word(word)) => words.push(word),
                (Column::Bytes(strings), KeyPart::Bytes(bytes)) => {
                    left = left.saturating_sub(bytes.len());
                    strings.push(bytes);
                }
                (Column::None | Column::U32(_) | Column::U64(_) | Column::U128(_) | Column::Bytes(_), _) => {}
            }
            left = left.saturating_sub(push_value(&mut chunk.values, &value, &mut self.room));
            if left == 0 {
                break;
            }
        }
        self.read += chunk.len() as u64;
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.read, self.schema.rows)
    }
}
