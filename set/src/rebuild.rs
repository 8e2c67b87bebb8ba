//! The next generation of a set, from a batch of changes: only the files that the changes meet are made anew.

use crate::commit::{Committer, GRACE};
use crate::error::{Result, SetError};
use crate::generations::manifest;
use crate::manifest::{Entry, Manifest, Schema};
use crate::schema::source_schema;
use crate::store::Store;
use crate::write::{Writer, Written, cut, discard};
use pleach::AnyMap;
use pleach_builder::observe::Observer;
use pleach_builder::rebuild::{self, Applied, OpenChanges, Ordered, RebuildOptions};
use pleach_builder::source::{self, Chunk, Column};
use pleach_builder::{BuildError, BuildOptions, ChunkSource, Layout, Silent, Unique, build};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Rows of a chunk of changes.
const CHUNK_ROWS: usize = 1 << 14;

/// Options of a rebuild of a set.
#[derive(Clone, Debug)]
pub struct SetRebuildOptions {
    /// Memory limit for the changes, in bytes.
    pub memory_bytes: u64,
    /// Number of threads; 0 selects the current rayon pool.
    pub threads: usize,
    /// Folder for temporary files.
    pub temp_dir: Option<std::path::PathBuf>,
    /// See [`Committer::grace`].
    pub grace: Duration,
}

impl Default for SetRebuildOptions {
    fn default() -> Self {
        let RebuildOptions { memory_bytes, .. } = RebuildOptions::default();
        Self { memory_bytes, threads: 0, temp_dir: None, grace: GRACE }
    }
}

/// Report of a rebuild of a set.
#[derive(Clone, Debug)]
pub struct SetRebuilt {
    /// Manifest of the new generation.
    pub manifest: Manifest,
    /// Outcome of the changes.
    pub applied: Applied,
    /// Number of tuples before.
    pub base_tuples: u64,
    /// Number of files that the changes met.
    pub touched: usize,
    /// Number of files that were written: those, and the parts of large ones.
    pub written: usize,
    /// Number of files that both generations have.
    pub carried: usize,
}

/// Applies changes to a set, and publishes its next generation. Changes have the meaning that they have in a rebuild
/// of a file, and apply in their order. A file that grows past twice the tuples of a partition is divided, and one
/// without tuples is dropped.
///
/// # Errors
/// [`SetError::NoSet`]; [`SetError::Build`] if the changes are refused, are more than the memory holds, or a file
/// cannot be written; [`SetError::Lost`] if another committer was first. The set is then as it was.
pub fn rebuild_set(
    store: Arc<dyn Store>,
    open: Box<OpenChanges<'_>>,
    options: &SetRebuildOptions,
    observer: &dyn Observer,
) -> Result<SetRebuilt> {
    let mut committer = Committer::begin(Arc::clone(&store))?.grace(options.grace);
    let Some(base) = committer.current().cloned() else {
        return Err(SetError::NoSet { place: store.place() });
    };
    let schema = source_schema(base.schema());
    let mut changes = open(&schema).map_err(BuildError::Source)?;
    let job = Job { writer: Writer::new(store), base: &base, options, observer };
    let mut routed = job.route(&mut *changes)?;
    if base.files() > 0 && routed.is_empty() {
        // Changes of other types are refused by the first file, even if there are none.
        routed.insert(0, Routed::default());
    }
    let mut done = Done::default();
    for (&file, routed) in &mut routed {
        if let Err(error) = job.rebuild(file, std::mem::take(routed), changes.schema(), &mut done) {
            discard(&**job.writer.store(), &done.entries, &error);
            return Err(error);
        }
    }
    let Done { entries, applied } = done;
    committer.keep(|file, _| !routed.contains_key(&file))?;
    let written = entries.len();
    let own = Written { schema: base.schema().clone(), entries };
    let published = committer.add_own(&own).and_then(|()| committer.publish());
    let manifest = published.inspect_err(|error| discard(&**job.writer.store(), &own.entries, error))?;
    let touched = routed.len().min(base.files());
    let carried = base.files() - touched;
    Ok(SetRebuilt { manifest, applied, base_tuples: base.tuples(), touched, written, carried })
}

/// Changes of one file.
#[derive(Default)]
struct Routed {
    full: Vec<Chunk>,
    last: Chunk,
}

/// What was written so far.
#[derive(Default)]
struct Done {
    entries: Vec<Entry>,
    applied: Applied,
}

struct Job<'a> {
    writer: Writer,
    base: &'a Manifest,
    options: &'a SetRebuildOptions,
    observer: &'a dyn Observer,
}

impl Job<'_> {
    /// Reads all changes, and gives each to the file that has or would have its key.
    fn route(&self, changes: &mut dyn source::Source) -> Result<BTreeMap<usize, Routed>> {
        let schema = changes.schema().clone();
        let (key_type, value_type) = (schema.key_type, schema.value_type);
        let mut routed: BTreeMap<usize, Routed> = BTreeMap::new();
        let (mut chunk, mut held) = (Chunk::new(key_type, value_type), 0u64);
        loop {
            chunk.clear();
            changes.next_chunk(&mut chunk, CHUNK_ROWS).map_err(BuildError::Source)?;
            if chunk.is_empty() {
                return Ok(routed);
            }
            if self.observer.cancelled() {
                return Err(BuildError::Interrupted.into());
            }
            for row in 0..chunk.len() {
                let mut room = [0; 16];
                let key = element(&chunk.keys, row, key_type.bytes(), &mut room);
                let file = self.base.file_at_or_below(key).unwrap_or(0);
                let to = routed.entry(file).or_default();
                if to.last.is_empty() {
                    to.last = Chunk::new(key_type, value_type);
                }
                held += push(&chunk.keys, row, &mut to.last.keys)
                    + push(&chunk.values, row, &mut to.last.values)
                    + 1;
                to.last.ops.extend(chunk.ops.get(row));
                if to.last.len() >= CHUNK_ROWS {
                    let full = std::mem::take(&mut to.last);
                    to.full.push(full);
                }
            }
            if held > self.options.memory_bytes {
                return Err(BuildError::ManyChanges { limit: self.options.memory_bytes }.into());
            }
        }
    }

    /// Makes the files that replace one file.
    fn rebuild(&self, file: usize, routed: Routed, given: &source::Schema, done: &mut Done) -> Result<()> {
        let Routed { mut full, last } = routed;
        full.extend(Some(last).filter(|last| !last.is_empty()));
        let schema = self.base.schema();
        let options = build_options(schema, self.options);
        let partition_tuples = schema.partition_tuples;
        let (mut applied, mut is_large) = (None, false);
        let entry = self.writer.make(&options, |path| {
            self.copy(file, path, &options)?;
            let source = ChunkSource::new(given.clone(), full);
            let open: Box<OpenChanges<'_>> = Box::new(move |_| Ok(Box::new(source)));
            let options = RebuildOptions {
                memory_bytes: self.options.memory_bytes,
                threads: self.options.threads,
                temp_dir: Some(self.writer.temp_folder(&options)),
                ..RebuildOptions::default()
            };
            let rebuilt = rebuild::rebuild(path, open, &options, self.observer);
            let rebuilt = rebuilt.inspect_err(|_| drop(fs::remove_file(path)))?;
            is_large = rebuilt.summary.tuples > partition_tuples.saturating_mul(2);
            applied = Some(rebuilt.applied);
            Ok(())
        })?;
        if let Some(applied) = applied {
            add(&mut done.applied, &applied);
        }
        match entry {
            Some(entry) if is_large => self.divide(&entry, &options, partition_tuples, done),
            entry => {
                done.entries.extend(entry);
                Ok(())
            }
        }
    }

    /// Makes a copy of a file, or an empty one if there is none.
    fn copy(&self, file: usize, to: &Path, options: &BuildOptions) -> Result<()> {
        if file >= self.base.files() {
            let schema = source_schema(self.base.schema());
            build(&mut ChunkSource::new(schema, []), to, options, &Silent)?;
            return Ok(());
        }
        let entry = self.base.entry(file);
        let from = self.writer.store().fetch(&entry)?;
        // A rebuild replaces the name, so that a link serves as well as a copy.
        let copied = fs::hard_link(&from, to).or_else(|_| fs::copy(&from, to).map(|_| ()));
        copied.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => SetError::Missing { name: from.display().to_string() },
            _ => SetError::io("copying", &from, error),
        })?;
        let checked = pleach::Index::open(to)
            .map_err(|error| SetError::File { name: entry.name.clone(), source: error.into() })
            .and_then(|index| {
                crate::set::check_opened(&entry, self.base.schema(), &index, &self.writer.store().place())
            });
        checked.inspect_err(|_| drop(fs::remove_file(to)))
    }

    /// Replaces a file that has grown by several.
    fn divide(&self, large: &Entry, options: &BuildOptions, tuples: u64, done: &mut Done) -> Result<()> {
        let path = self.writer.store().fetch(large)?;
        let cuts = cut(|| AnyMap::open(&path), tuples).map_err(SetError::Build)?;
        let all = Ordered::open(&path)?;
        for pair in cuts.windows(2) {
            let mut source = all.source(pair[0]..pair[1])?;
            done.entries.extend(self.writer.write_one(&mut *source, options, self.observer)?);
        }
        drop(all);
        self.writer.store().delete(&large.name)?;
        Ok(())
    }
}

fn build_options(schema: &Schema, options: &SetRebuildOptions) -> BuildOptions {
    let layout: Layout = schema.meta.layout.parse().unwrap_or_default();
    BuildOptions {
        unique: schema.unique.then_some(Unique::Error),
        sorted: true,
        memory_bytes: options.memory_bytes,
        threads: options.threads,
        temp_dir: options.temp_dir.clone(),
        ..BuildOptions::default()
    }
    .with_layout(layout)
}

/// Returns the bytes of a key of a column, as manifests have them.
fn element<'c>(column: &'c Column, row: usize, bytes: usize, room: &'c mut [u8; 16]) -> &'c [u8] {
    let word = match column {
        Column::Bytes(strings) => return strings.get(row),
        Column::U32(words) => words[row].into(),
        Column::U64(words) => words[row].into(),
        Column::U128(words) => words[row],
        Column::None => 0,
    };
    *room = u128::to_be_bytes(word);
    &room[room.len() - bytes.min(16)..]
}

/// Appends an element of a column to another one of its type, and returns its bytes.
fn push(from: &Column, row: usize, to: &mut Column) -> u64 {
    match (from, to) {
        (Column::U32(from), Column::U32(to)) => to.push(from[row]),
        (Column::U64(from), Column::U64(to)) => to.push(from[row]),
        (Column::U128(from), Column::U128(to)) => to.push(from[row]),
        (Column::Bytes(from), Column::Bytes(to)) => {
            to.push(from.get(row));
            return from.get(row).len() as u64 + 8;
        }
        _ => return 0,
    }
    16
}

fn add(sum: &mut Applied, more: &Applied) {
    let Applied { puts, adds, dels, superseded, absent, removed, written } = *more;
    sum.puts += puts;
    sum.adds += adds;
    sum.dels += dels;
    sum.superseded += superseded;
    sum.absent += absent;
    sum.removed += removed;
    sum.written += written;
}

/// Publishes an old generation again, as the next one: `generation`, or the newest one before the current. The
/// manifest of the current generation may be damaged.
///
/// # Errors
/// [`SetError::NoSet`]; [`SetError::Usage`] if there is no such generation; [`SetError::Missing`] if a file of it was
/// swept; [`SetError::Lost`].
pub fn rollback_set(store: Arc<dyn Store>, generation: Option<u64>) -> Result<Manifest> {
    let newest = crate::generations::newest(&*store)?;
    let gone = |what: String| {
        Err(SetError::Usage(format!(
            "{what}: {}: `pleach generations` lists those that are there",
            store.place()
        )))
    };
    let generation = match generation {
        Some(generation) if generation == newest => {
            return gone(format!("generation {generation} is current"));
        }
        Some(generation) => generation,
        None => {
            let before = crate::generations::listed(&*store)?;
            match before.iter().map(|(generation, _)| *generation).filter(|&it| it < newest).max() {
                Some(generation) => generation,
                None => return gone("there is no older generation".into()),
            }
        }
    };
    let old = match manifest(&*store, generation) {
        Err(SetError::Store(error)) if error.is_missing() => {
            return gone(format!("there is no generation {generation}"));
        }
        old => old?,
    };
    let current = manifest(&*store, newest).ok();
    let named = |name: &str| {
        current.as_ref().is_some_and(|current| (0..current.files()).any(|file| current.name(file) == name))
    };
    for entry in old.entries().filter(|entry| !named(&entry.name)) {
        // No sweep takes it for litter from now on.
        store.renew(&entry.name).map_err(|error| match error.is_missing() {
            true => SetError::Missing { name: error.name },
            false => SetError::Store(error),
        })?;
    }
    let mut committer = Committer::over(store, newest, Some(old));
    committer.keep(|_, _| true)?;
    committer.publish()
}
