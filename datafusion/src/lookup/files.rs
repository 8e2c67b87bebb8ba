//! The files of a table: which of them can have a key, and opening them.

use super::find::failed;
use crate::keys::KeySet;
use crate::source::{OpenFile, Source};
use datafusion::arrow::array::ArrayRef;
use datafusion::common::{Result, internal_err};
use pleach_batch::arrow::ArrowKeys;
use pleach_batch::{Bound, Pool, Table};
use pleach_builder::{BuildOptions, Chunk, ChunkSource, Column, Silent, Unique, in_memory};
use pleach_format::ValueType;
use pleach_set::{Manifest, SetError, source_schema};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Files that a stream keeps open for itself; the set may keep more.
const OPENED_MAX: usize = 1024;

/// The files of a table, and which of its keys are wanted.
#[derive(Clone, Debug)]
pub(super) struct Files(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Source,
    keys: KeySet,
    /// Rank of the first tuple of each file, and the number of tuples.
    starts: Vec<u64>,
    borders: OnceLock<Borders>,
}

impl Files {
    /// The files of `source`, of which tuples with these keys are wanted. None is opened.
    pub(super) fn new(source: Source, keys: KeySet) -> Self {
        let mut starts = Vec::with_capacity(source.files() + 1);
        starts.push(0);
        for file in 0..source.files() {
            starts.push(starts[file] + source.file_tuples(file));
        }
        Self(Arc::new(Inner { source, keys, starts, borders: OnceLock::new() }))
    }

    /// Returns the number of files.
    pub(super) fn len(&self) -> usize {
        self.0.starts.len() - 1
    }

    /// Returns the ranks of the tuples of a file.
    pub(super) fn ranks(&self, file: usize) -> Range<u64> {
        self.0.starts[file]..self.0.starts[file + 1]
    }

    /// Returns the file with a rank that is below the number of tuples. O(log files).
    pub(super) fn file_of_rank(&self, rank: u64) -> usize {
        self.0.starts.partition_point(|&start| start <= rank) - 1
    }

    /// Returns the borders of the files; `None` for a file that is no set.
    pub(super) fn borders(&self) -> Result<Option<&Borders>> {
        let Some(set) = self.0.source.set() else { return Ok(None) };
        if let Some(borders) = self.0.borders.get() {
            return Ok(Some(borders));
        }
        let mut made = Borders::new(set.manifest())?;
        if !self.0.keys.is_all() {
            let mut is_wanted = vec![false; self.len()];
            self.0.source.files_meeting(&self.0.keys).into_iter().for_each(|file| is_wanted[file] = true);
            made.is_wanted = Some(is_wanted);
        }
        Ok(Some(self.0.borders.get_or_init(|| made)))
    }

    /// Opens files. It may read from a disk or a network.
    pub(super) fn open(&self, files: Vec<usize>) -> Result<Vec<(usize, OpenTable)>> {
        let open = |file: usize| {
            let opened = self.0.source.file(file).map_err(failed)?;
            let all = 0..opened.table().len();
            let allowed = (!self.0.keys.is_all()).then(|| opened.ranks(&self.0.keys, all)).transpose();
            Ok((file, OpenTable { allowed: allowed.map_err(failed)?, file: opened }))
        };
        files.into_iter().map(open).collect()
    }
}

/// The smallest and the largest key of each file of a set. They are themselves tables in memory, so that keys of any
/// type are compared with them as they are with the keys of files.
#[derive(Debug)]
pub(super) struct Borders {
    mins: Table,
    maxs: Table,
    /// Which files can have wanted keys; `None` for all.
    is_wanted: Option<Vec<bool>>,
}

impl Borders {
    fn new(manifest: &Manifest) -> Result<Self> {
        let table = |key: &dyn Fn(usize) -> Vec<u8>| -> Result<Table> {
            let mut schema = source_schema(manifest.schema());
            (schema.value_type, schema.value_logical, schema.interval) =
                (ValueType::None, String::new(), None);
            let mut chunk = Chunk::new(schema.key_type, ValueType::None);
            (0..manifest.files()).for_each(|file| push(&mut chunk.keys, &key(file)));
            let options = BuildOptions { unique: Some(Unique::First), ..BuildOptions::default() };
            let bytes = in_memory(&mut ChunkSource::new(schema, [chunk]), &options, &Silent);
            let bytes = bytes.map_err(|error| failed(SetError::Build(error.into())))?;
            let index = pleach::Index::from_bytes(bytes);
            let index = index.map_err(|error| failed(SetError::Build(error.into())))?;
            Table::of(Arc::new(index)).map_err(failed)
        };
        Ok(Self {
            mins: table(&|file| manifest.min(file).to_vec())?,
            maxs: table(&|file| manifest.max(file).to_vec())?,
            is_wanted: None,
        })
    }

    /// Returns the file that can have each key: its smallest and its largest key enclose it.
    pub(super) fn files_of(&self, keys: &ArrayRef) -> Result<Vec<Option<u32>>> {
        let ranks = |table: &Table, bound: Bound| -> Result<Vec<u64>> {
            let keys = ArrowKeys::new(table, ArrayRef::clone(keys)).map_err(failed)?;
            let mut ranks = vec![0; keys.len()];
            keys.with(|keys| table.bounds(keys, bound, &mut ranks, &Pool::current())).map_err(failed)?;
            Ok(ranks)
        };
        let above = ranks(&self.maxs, Bound::Lower)?;
        let below = ranks(&self.mins, Bound::Upper)?;
        let is_wanted = |file: u64| self.is_wanted.as_ref().is_none_or(|wanted| wanted[file as usize]);
        // The place of a null is 0 in both, so that it is in no file.
        let files = above.into_iter().zip(below).map(|(above, below)| {
            let is_inside = below > 0 && above == below - 1 && is_wanted(above);
            is_inside.then_some(above as u32)
        });
        Ok(files.collect())
    }
}

fn push(column: &mut Column, key: &[u8]) {
    let word = || key.iter().fold(0u128, |word, &byte| word << 8 | u128::from(byte));
    match column {
        Column::None => debug_assert!(false, "keys have a column"),
        Column::U32(words) => words.push(word() as u32),
        Column::U64(words) => words.push(word() as u64),
        Column::U128(words) => words.push(word()),
        Column::Bytes(strings) => strings.push(key),
    }
}

/// A file that is open.
#[derive(Debug)]
pub(super) struct OpenTable {
    pub(super) file: OpenFile,
    /// Ranks of tuples with wanted keys, ascending; `None` for all.
    pub(super) allowed: Option<Vec<Range<u64>>>,
}

/// Files that a stream has open.
#[derive(Debug, Default)]
pub(super) struct Opened(HashMap<usize, OpenTable>);

impl Opened {
    /// Returns those of some files that are not open. Forgets others if there would be too many.
    pub(super) fn missing(&mut self, files: &[usize]) -> Vec<usize> {
        if self.0.len() + files.len() > OPENED_MAX {
            self.0.retain(|file, _| files.binary_search(file).is_ok());
        }
        files.iter().copied().filter(|file| !self.0.contains_key(file)).collect()
    }

    /// Takes files that were opened.
    pub(super) fn add(&mut self, opened: Vec<(usize, OpenTable)>) {
        self.0.extend(opened);
    }

    /// Returns a file that is open.
    pub(super) fn get(&self, file: usize) -> Result<&OpenTable> {
        match self.0.get(&file) {
            Some(table) => Ok(table),
            None => internal_err!("file {file} of a look-up join is not open"),
        }
    }
}
