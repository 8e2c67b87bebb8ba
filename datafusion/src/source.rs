//! What is scanned: a file, or one generation of a set.

use crate::error::{Error, Result};
use crate::keys::{KeyRange, KeySet};
use crate::literal::Literals;
use crate::schema::Columns;
use datafusion::arrow::datatypes::SchemaRef;
use pleach::{AnyMap, Datum, Index, OpenOptions};
use pleach_batch::Table;
use pleach_set::{Set, SetOptions, key_bytes, key_datum};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A file, or one generation of a set. Cloning it costs no more than an `Arc`.
///
/// To a scan both are a list of files in the order of their keys; that of a file has one entry. Files of a set
/// open when they are asked for.
#[derive(Clone)]
pub struct Source(Arc<Inner>);

struct Inner {
    location: String,
    options: OpenOptions,
    kind: Kind,
    columns: Columns,
    literals: Literals,
}

#[expect(clippy::large_enum_variant, reason = "there is one for each table")]
enum Kind {
    File {
        file: OpenFile,
        /// Smallest and largest key; `None` if there are no tuples.
        ends: Option<(Vec<u8>, Vec<u8>)>,
    },
    Set(Arc<Set>),
}

/// An open file.
#[derive(Clone, Debug)]
pub struct OpenFile {
    map: Arc<AnyMap>,
    table: Table,
}

impl Source {
    /// Opens a file, or the current generation of the set in a folder, with the default options.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::Set`], which name what cannot be opened; [`Error::Usage`] if it cannot be a
    /// table.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::with_options(path, OpenOptions::default())
    }

    /// Opens a file or a set; `options` say how much of the files is verified, and where their bytes are kept.
    ///
    /// # Errors
    /// Those of [`Source::open`].
    pub fn with_options(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let location = path.display().to_string();
        if Set::is_set(path) {
            let set = SetOptions::default().files(options).open(path)?;
            return Self::of_set(Arc::new(set), location, options);
        }
        let index = options.open(path).map_err(pleach::Error::from)?;
        Self::of_index(Arc::new(index), location, options)
    }

    /// Opens a generation of the set in a folder.
    ///
    /// # Errors
    /// Those of [`Source::open`].
    pub fn at_generation(path: impl AsRef<Path>, generation: u64, options: OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let source = Self::with_options(path, options)?;
        if source.generation() == generation {
            return Ok(source);
        }
        let Some(set) = source.set() else {
            return Err(Error::Usage(format!(
                "the file is another generation: {}: it is generation {}, not {generation}: ask again",
                path.display(),
                source.generation()
            )));
        };
        let set = SetOptions::default().files(options).generation(Arc::clone(set.store()), generation)?;
        Self::of_set(Arc::new(set), path.display().to_string(), options)
    }

    /// Makes a source of an open set. `location` is what messages and `EXPLAIN` call it.
    ///
    /// # Errors
    /// [`Error::Usage`] if it cannot be a table.
    pub fn of_set(set: Arc<Set>, location: String, options: OpenOptions) -> Result<Self> {
        let table = Table::of(set.shape()?)?;
        let columns = Columns::of(&table, &set.schema().meta)?;
        let literals = Literals::of(&table, &columns);
        Ok(Self(Arc::new(Inner { location, options, kind: Kind::Set(set), columns, literals })))
    }

    /// Makes a source of an open file.
    ///
    /// # Errors
    /// Those of [`Source::open`].
    pub fn of_index(index: Arc<Index>, location: String, options: OpenOptions) -> Result<Self> {
        let file = OpenFile::of(AnyMap::from_index(index)?)?;
        let (map, table) = (&file.map, &file.table);
        let meta = map.index().meta().map_err(|error| pleach::Error::from(error).at(map.index().path()))?;
        let columns = Columns::of(table, &meta)?;
        let literals = Literals::of(table, &columns);
        let bytes = |datum: &Datum<'_>| Ok::<_, Error>(key_bytes(map.key_type(), datum)?.into_owned());
        let ends = match (map.first()?, map.last()?) {
            (Some((min, _)), Some((max, _))) => Some((bytes(&min)?, bytes(&max)?)),
            _ => None,
        };
        let kind = Kind::File { file, ends };
        Ok(Self(Arc::new(Inner { location, options, kind, columns, literals })))
    }

    /// Opens the generation that is current by now; this one if it still is.
    ///
    /// # Errors
    /// Those of [`Source::open`]; [`Error::Usage`] if the new one has other columns.
    pub fn current(&self) -> Result<Self> {
        let (location, options) = (self.0.location.clone(), self.0.options);
        let next = match &self.0.kind {
            Kind::Set(set) => match set.next_generation()? {
                None => return Ok(self.clone()),
                Some(next) => Self::of_set(Arc::new(next), location, options)?,
            },
            Kind::File { file, .. } => {
                let mut map = AnyMap::clone(&file.map);
                if !map.refresh()? {
                    return Ok(self.clone());
                }
                Self::of_index(Arc::clone(map.index()), location, options)?
            }
        };
        if next.schema() != self.schema() {
            return Err(Error::Usage(format!(
                "the new generation has other columns: {}: register the table again",
                self.location()
            )));
        }
        Ok(next)
    }

    /// Returns the path that was opened.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.0.location
    }
    /// Returns how files are opened.
    #[must_use]
    pub fn options(&self) -> OpenOptions {
        self.0.options
    }
    /// Returns the set, if it is one.
    #[must_use]
    pub fn set(&self) -> Option<&Arc<Set>> {
        match &self.0.kind {
            Kind::Set(set) => Some(set),
            Kind::File { .. } => None,
        }
    }
    /// Returns the generation.
    #[must_use]
    pub fn generation(&self) -> u64 {
        match &self.0.kind {
            Kind::Set(set) => set.generation(),
            Kind::File { file, .. } => file.map.index().generation(),
        }
    }
    /// Returns what tells this file or set from others: the id of its contents, or that of the set.
    #[must_use]
    pub fn identity(&self) -> [u8; 16] {
        match &self.0.kind {
            Kind::Set(set) => set.manifest().facts().set_id,
            Kind::File { file, .. } => file.map.index().file_id(),
        }
    }
    /// Returns the columns.
    #[must_use]
    pub fn columns(&self) -> &Columns {
        &self.0.columns
    }
    /// Returns the Arrow schema; no column has nulls.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.0.columns.schema()
    }
    /// Returns how literals become keys.
    #[must_use]
    pub fn literals(&self) -> &Literals {
        &self.0.literals
    }
    /// Returns true if no two tuples have the same key because the build required it.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        match &self.0.kind {
            Kind::Set(set) => set.schema().unique,
            Kind::File { file, .. } => file.map.index().is_unique(),
        }
    }

    /// Returns the number of tuples.
    #[must_use]
    pub fn tuples(&self) -> u64 {
        match &self.0.kind {
            Kind::Set(set) => set.len(),
            Kind::File { file, .. } => file.map.len(),
        }
    }
    /// Returns the number of files: 1 if this is a file, which may have no tuples; 0 or more for a set.
    #[must_use]
    pub fn files(&self) -> usize {
        match &self.0.kind {
            Kind::Set(set) => set.manifest().files(),
            Kind::File { .. } => 1,
        }
    }
    /// Returns the number of tuples of a file.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn file_tuples(&self, file: usize) -> u64 {
        match &self.0.kind {
            Kind::Set(set) => {
                let ranks = set.manifest().ranks(file);
                ranks.end - ranks.start
            }
            Kind::File { file, .. } => file.map.len(),
        }
    }
    /// Returns the smallest and the largest key of a file, as a manifest has them; `None` if it has no tuples. No
    /// file is opened.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn ends(&self, file: usize) -> Option<(&[u8], &[u8])> {
        match &self.0.kind {
            Kind::Set(set) => Some((set.manifest().min(file), set.manifest().max(file))),
            Kind::File { ends, .. } => ends.as_ref().map(|(min, max)| (&min[..], &max[..])),
        }
    }
    /// Returns the key at a rank of a file, as a manifest has it; `None` past its last tuple.
    ///
    /// # Errors
    /// Those of [`Source::file`]; [`Error::File`] if it is damaged.
    pub fn key_at(&self, file: usize, rank: u64) -> Result<Option<Vec<u8>>> {
        let file = self.file(file)?;
        let tuple = file.map.select(rank)?;
        let key = tuple.map(|(key, _)| Ok::<_, Error>(key_bytes(file.map.key_type(), &key)?.into_owned()));
        key.transpose()
    }
    /// Returns the file that can have a key. O(log files); no file is opened.
    #[must_use]
    pub fn file_of_key(&self, key: &[u8]) -> Option<usize> {
        match &self.0.kind {
            Kind::Set(set) => set.manifest().file_of_key(key),
            Kind::File { ends, .. } => {
                ends.as_ref().filter(|(min, max)| min[..] <= *key && *key <= max[..]).map(|_| 0)
            }
        }
    }
    /// Returns the files that can have keys of a set of keys, in their order. No file is opened.
    #[must_use]
    pub fn files_meeting(&self, keys: &KeySet) -> Vec<usize> {
        let meets =
            |&file: &usize| self.ends(file).is_some_and(|(min, max)| !keys.meeting(min, max).is_empty());
        let Kind::Set(set) = &self.0.kind else { return (0..1).filter(meets).collect() };
        let mut files = Vec::new();
        for range in keys.ranges() {
            let first =
                set.manifest().file_at_or_above(&range.start).max(files.last().map_or(0, |last| last + 1));
            let end = match &range.end {
                None => set.manifest().files(),
                // A file that begins at the end is not needed.
                Some(end) => set
                    .manifest()
                    .file_at_or_below(end)
                    .map_or(0, |file| if set.manifest().min(file) < &end[..] { file + 1 } else { file }),
            };
            files.extend(first..end.max(first));
        }
        files
    }

    /// Opens a file, if it is not open. A file of a set is compared with its entry.
    ///
    /// # Errors
    /// [`Error::Set`], which names the file.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn file(&self, file: usize) -> Result<OpenFile> {
        match &self.0.kind {
            Kind::Set(set) => OpenFile::over(set.file(file)?),
            Kind::File { file, .. } => Ok(file.clone()),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("location", &self.location())
            .field("generation", &self.generation())
            .field("files", &self.files())
            .field("tuples", &self.tuples())
            .finish_non_exhaustive()
    }
}

impl OpenFile {
    fn of(map: AnyMap) -> Result<Self> {
        Self::over(Arc::new(map))
    }

    fn over(map: Arc<AnyMap>) -> Result<Self> {
        let table = Table::of(Arc::clone(map.index()))?;
        Ok(Self { map, table })
    }

    /// Returns the file for single keys and ranges.
    #[must_use]
    pub fn map(&self) -> &AnyMap {
        &self.map
    }
    /// Returns the file for batches of keys.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the rank of the first tuple whose key is at least this byte string.
    ///
    /// # Errors
    /// [`Error::File`] if the file is damaged or was truncated.
    pub fn lower_bound(&self, key: &[u8]) -> Result<u64> {
        let key_type = self.map.key_type();
        if key.is_empty() {
            return Ok(0);
        }
        let bytes = key_type.bytes();
        if bytes == 0 || key.len() == bytes {
            return Ok(self.map.lower_bound(&key_datum(key_type, key))?);
        }
        // A key and a zero byte: what is above the key.
        match key.get(..bytes) {
            Some(key) => Ok(self.map.upper_bound(&key_datum(key_type, key))?),
            None => {
                let mut whole = key.to_vec();
                whole.resize(bytes, 0);
                Ok(self.map.lower_bound(&key_datum(key_type, &whole))?)
            }
        }
    }

    /// Returns the ranks of the tuples whose keys are in a set of keys: ranges that ascend and do not touch, inside
    /// `within`.
    ///
    /// # Errors
    /// Those of [`OpenFile::lower_bound`].
    pub fn ranks(&self, keys: &KeySet, within: Range<u64>) -> Result<Vec<Range<u64>>> {
        if within.is_empty() || keys.is_all() {
            return Ok(if within.is_empty() { Vec::new() } else { vec![within] });
        }
        let mut all: Vec<Range<u64>> = Vec::new();
        for range in keys.ranges() {
            let found = self.ranks_of(range)?;
            let found = found.start.max(within.start)..found.end.min(within.end);
            if found.is_empty() {
                continue;
            }
            match all.last_mut() {
                Some(last) if last.end == found.start => last.end = found.end,
                _ => all.push(found),
            }
        }
        Ok(all)
    }

    fn ranks_of(&self, range: &KeyRange) -> Result<Range<u64>> {
        let key_type = self.map.key_type();
        if let Some(key) = range.key()
            && (key_type.bytes() == 0 || key.len() == key_type.bytes())
        {
            let datum = key_datum(key_type, key);
            let Some(first) = self.map.rank(&datum)? else { return Ok(0..0) };
            let is_unique = self.map.index().is_unique();
            let end = if is_unique { first + 1 } else { self.map.upper_bound(&datum)? };
            return Ok(first..end);
        }
        let start = self.lower_bound(&range.start)?;
        let end = match &range.end {
            None => self.map.len(),
            Some(end) => self.lower_bound(end)?,
        };
        Ok(start..end.max(start))
    }
}
