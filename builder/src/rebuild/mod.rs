//! From one generation to the next: a base file and a batch of changes become a new file under the same name.
//!
//! ```text
//! changes.rs      rows in order of keys, an effect for each key
//! base.rs         verified blocks of the base
//! words.rs        merge of words, on all threads       strings.rs   of byte strings
//! patch.rs        no tuple comes or goes: copy, and rewrite the blocks that change
//! compact.rs      several files become one
//! copying.rs      a copy whose blocks are verified
//! generations.rs  names of the generations that are kept, and what stands there
//! rollback.rs     a kept generation becomes the current one again
//! ```
//! The base is read once, front to back, and never held in memory; every block that is read is verified. All
//! sections are made anew by the course of any build, so the new file is the one that building its tuples would
//! give. Readers of the old generation keep it: it is replaced by a rename.

mod base;
mod changes;
mod compact;
mod copying;
pub(crate) mod generations;
mod patch;
mod rollback;
mod strings;
mod words;

pub use changes::Applied;
pub use compact::{CompactOptions, Compacted, compact};
pub use generations::{Generation, State, generations, kept_path};
pub use rollback::{RollbackOptions, RolledBack, rollback, rollback_with_storage};

use crate::error::BuildError;
use crate::flow::{self, with_lanes};
use crate::in_pool;
use crate::observe::{Observer, Watch};
use crate::options::{BuildOptions, Summary, Unique, physical_memory_bytes};
use crate::pack::{KeyLane, ValueLane};
use crate::publish::{Publication, Rules};
use crate::source::{Schema, Source, SourceError};
use crate::storage::{RealStorage, Storage};
use base::Base;
use changes::Effects;
use generations::{Keep, Kept};
use pleach_format::logical::matching;
use pleach_format::{Meaning, ValueType};
use std::ops::Range;
use std::path::{Path, PathBuf};
use strings::ByteMerge;
use words::WordMerge;

/// Memory that the course of a build is given: it sorts nothing.
const BUILD_BYTES: u64 = 192 << 20;

/// A patch of more than one tuple in so many takes longer than a merge (`pleach bench update`).
const PATCHED_PART: u64 = 2;

/// How the next generation is made. The result is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// [`Method::Patch`] where it is possible and fewer than half of the values change, else [`Method::Merge`].
    #[default]
    Auto,
    /// A merge of base and changes.
    Merge,
    /// A copy of the base in which the blocks with changed values are rewritten: where every change puts a key
    /// that is there once. Other changes are refused.
    Patch,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Merge, Self::Patch];

    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Merge => "merge",
            Self::Patch => "patch",
        }
    }
}

/// Choices of a rebuild.
#[derive(Clone, Debug)]
pub struct RebuildOptions {
    /// How it is done.
    pub method: Method,
    /// Old generations to keep, as [`kept_path`] names them; `None` keeps none and removes none.
    pub keep: Option<usize>,
    /// Leave out damaged blocks of the base instead of refusing it.
    pub salvage: bool,
    /// Bytes of memory for the changes.
    pub memory_bytes: u64,
    /// Threads to use; 0 = the current rayon pool.
    pub threads: usize,
    /// Where lists that outgrow memory are spilled; by default the folder of the target.
    pub temp_dir: Option<PathBuf>,
    /// Whether the new file is synced to the disk before it gets its name. Without it a power cut may leave
    /// neither generation whole: for measurements.
    pub sync: bool,
    /// Files that are read for it: none of them is replaced.
    pub inputs: Vec<PathBuf>,
}

impl Default for RebuildOptions {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            keep: None,
            salvage: false,
            memory_bytes: physical_memory_bytes() / 2,
            threads: 0,
            temp_dir: None,
            sync: true,
            inputs: Vec::new(),
        }
    }
}

/// What a rebuild did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// The new file.
    pub summary: Summary,
    /// How it was made.
    pub method: Method,
    /// What became of the changes.
    pub applied: Applied,
    /// Tuples of the base.
    pub base_tuples: u64,
    /// Tuples of the base that were lost with damaged blocks.
    pub lost: u64,
    /// Old generations that are kept now; `None` if none were asked for.
    pub kept: Option<usize>,
    /// Why old generations are left that should have been removed: no failure, the new one is in place.
    pub left: Option<String>,
}

/// A table of changes, opened when the types of the base are known.
pub type OpenChanges<'a> = dyn FnOnce(&Schema) -> Result<Box<dyn Source>, SourceError> + Send + 'a;

/// Makes the next generation of the file `target` from the changes that `open` opens, in the types of the
/// schema that it is given.
///
/// Changes apply in the order of the batch: see [`crate::Op`]. O(base) time, one pass; memory for the changes and
/// some 200 MiB. The lock is taken before the base is read. The new generation appears complete and synced, or
/// not at all; whatever fails, the old one is still there and whole.
pub fn rebuild(
    target: &Path,
    open: Box<OpenChanges<'_>>,
    options: &RebuildOptions,
    observer: &dyn Observer,
) -> Result<Rebuilt, BuildError> {
    rebuild_with_storage(target, open, options, observer, &RealStorage)
}

/// [`rebuild`] over any storage: the seam for tests that make the system fail.
pub fn rebuild_with_storage(
    target: &Path,
    open: Box<OpenChanges<'_>>,
    options: &RebuildOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<Rebuilt, BuildError> {
    let work = || run(target, open, options, observer, storage).map_err(unwrapped);
    in_pool(options.threads, work)
}

/// An error on its way through a [`Source`].
fn source_error(error: BuildError) -> SourceError {
    SourceError {
        input: "base".into(),
        place: String::new(),
        problem: error.to_string(),
        cause: Some(Box::new(error)),
    }
}

/// The error that [`source_error`] wrapped, if it did.
fn unwrapped(error: BuildError) -> BuildError {
    match error {
        BuildError::Source(mut source) => {
            match source.cause.take().map(|cause| cause.downcast::<BuildError>()) {
                Some(Ok(error)) => *error,
                Some(Err(cause)) => BuildError::Source(SourceError { cause: Some(cause), ..source }),
                None => BuildError::Source(source),
            }
        }
        error => error,
    }
}

/// Types and names of a base.
fn schema_of(base: &Base) -> Result<Schema, BuildError> {
    let meta = base.meta()?;
    let header = &base.header;
    Ok(Schema {
        key_type: header.key_type,
        value_type: header.value_type,
        key_name: meta.key_name,
        value_name: meta.value_name,
        key_logical: meta.key_logical,
        value_logical: meta.value_logical,
        rows: None,
    })
}

/// The options that a base was built with, as a first generation. A layout that this version does not know is taken for
/// the usual one.
fn build_options(base: &Base) -> Result<BuildOptions, BuildError> {
    let header = &base.header;
    Ok(BuildOptions {
        unique: header.is_unique().then_some(Unique::Error),
        sorted: true,
        memory_bytes: BUILD_BYTES,
        ..BuildOptions::default()
    }
    .with_layout(base.meta()?.layout.parse().unwrap_or_default()))
}

/// What a merge or a patch leaves to be published.
struct Made {
    summary: Summary,
    method: Method,
    applied: Applied,
}

fn run(
    target: &Path,
    open: Box<OpenChanges<'_>>,
    options: &RebuildOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<Rebuilt, BuildError> {
    let watch = &Watch::new(observer);
    watch.check()?;
    let publication = Publication::begin(storage, target, Rules::next(options.inputs.clone()))?;
    generations::may_keep(&publication, Keep::of(options.keep))?;
    let base = Base::open(storage, publication.target(), options.salvage)?;
    let schema = schema_of(&base)?;
    let mut changes = open(&schema)?;
    // The input has put them into the unit of the file, row by row; what differs now means something else.
    let given = changes.schema();
    let is_same = |given: Meaning, held: Meaning| {
        matching(&given, &held).is_some_and(|common| common.is_same(&given, &held))
    };
    if !is_same(given.key_meaning(), schema.key_meaning())
        || !is_same(given.value_meaning(), schema.value_meaning())
    {
        let (given, held) = (types_text(given), types_text(&schema));
        let problem = format!("they are {given}, but the file holds {held}: give changes of its types");
        return Err(
            SourceError { input: "changes".into(), place: String::new(), problem, cause: None }.into()
        );
    }
    let job = Rebuild { base: &base, schema: &schema, options, publication: &publication, watch, storage };
    let made = if schema.key_type.is_bytes() || schema.value_type.is_bytes() {
        job.run_bytes(&mut *changes)?
    } else {
        let (word_bytes, value_bytes) = (schema.key_type.bytes(), schema.value_type.line_bytes());
        with_lanes!(word_bytes, value_bytes => job.run_words(&mut *changes))?
    };
    let Kept { kept, left } = generations::publish(publication, Keep::of(options.keep), options.sync, watch)?;
    let Made { summary, method, applied } = made;
    let (base_tuples, lost) = (base.header.tuples, count(&base.lost()));
    Ok(Rebuilt { summary, method, applied, base_tuples, lost, kept, left })
}

/// How many ranks there are in some ranges.
fn count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|ranks| ranks.end - ranks.start).sum()
}

/// A rebuild under way.
struct Rebuild<'a> {
    base: &'a Base,
    schema: &'a Schema,
    options: &'a RebuildOptions,
    publication: &'a Publication<'a>,
    watch: &'a Watch<'a>,
    storage: &'a dyn Storage,
}

impl Rebuild<'_> {
    fn merge(&self, source: &mut dyn Source) -> Result<Summary, BuildError> {
        let mut options = build_options(self.base)?;
        options.temp_dir.clone_from(&self.options.temp_dir);
        flow::write(self.publication, source, &options, self.watch, self.storage)
    }

    fn run_words<W: KeyLane, B: ValueLane>(&self, changes: &mut dyn Source) -> Result<Made, BuildError> {
        let effects: Effects<W, B> = changes::of_words(changes, self.watch, self.options.memory_bytes)?;
        let method = self.options.method;
        let few = effects.list.len() as u64 <= self.base.header.tuples / PATCHED_PART;
        let may_patch = !self.options.salvage && B::BYTES > 0 && effects.only_puts();
        if method == Method::Patch && !may_patch {
            return Err(patch::refused("not every change puts a key, or the base is to be salvaged"));
        }
        if may_patch && (method == Method::Patch || (method == Method::Auto && few)) {
            let (output, descent) = (self.publication.output(), self.publication.descent());
            let patched = match patch::patch(self.base, &effects, descent, output, self.watch) {
                // A merge reads less, and makes the rest anew: it decides whether what is damaged is needed.
                Err(BuildError::Damaged { .. }) if method == Method::Auto => None,
                patched => patched?,
            };
            match patched {
                Some(summary) => {
                    effects.list.iter().for_each(|effect| effect.find(1));
                    return Ok(Made { summary, method: Method::Patch, applied: effects.applied() });
                }
                None if method == Method::Patch => {
                    return Err(patch::refused("some key is not in the file exactly once"));
                }
                None => self.publication.output().set_len(0)?,
            }
        }
        let mut source = WordMerge::new(self.base, self.schema.clone(), effects)?;
        let merged = self.merge(&mut source);
        let effects = source.effects();
        self.check_unique(effects.duplicate().map(|&key| self.schema.key_text().word(key.to_u128())))?;
        Ok(Made { summary: merged?, method: Method::Merge, applied: effects.applied() })
    }

    fn run_bytes(&self, changes: &mut dyn Source) -> Result<Made, BuildError> {
        if self.options.method == Method::Patch {
            return Err(patch::refused("byte strings move when one of them changes its length"));
        }
        let effects = changes::of_bytes(changes, self.watch, self.options.memory_bytes)?;
        let mut source = ByteMerge::new(self.base, self.schema.clone(), effects)?;
        let merged = self.merge(&mut source);
        let effects = source.effects();
        self.check_unique(effects.duplicate().map(|key| self.schema.key_text().bytes(key)))?;
        Ok(Made { summary: merged?, method: Method::Merge, applied: effects.applied() })
    }

    /// In a file of unique keys a duplicate comes from the changes: better said of them than of the build.
    fn check_unique(&self, duplicate: Option<String>) -> Result<(), BuildError> {
        match duplicate.filter(|_| self.base.header.is_unique()) {
            Some(key) => Err(BuildError::NotUnique { key }),
            None => Ok(()),
        }
    }
}

/// A base as a source of its tuples.
fn source_of<'a>(base: &'a Base, schema: &Schema) -> Result<Box<dyn Source + 'a>, BuildError> {
    struct Open;
    impl Open {
        fn words<'a, W: KeyLane, B: ValueLane>(
            self,
            base: &'a Base,
            schema: &Schema,
        ) -> Result<Box<dyn Source + 'a>, BuildError> {
            Ok(Box::new(WordMerge::<W, B>::new(base, schema.clone(), Effects::default())?))
        }
    }
    if schema.key_type.is_bytes() || schema.value_type.is_bytes() {
        return Ok(Box::new(ByteMerge::new(base, schema.clone(), Effects::default())?));
    }
    let (word_bytes, value_bytes) = (schema.key_type.bytes(), schema.value_type.line_bytes());
    with_lanes!(word_bytes, value_bytes => Open.words(base, schema))
}

/// Types as a message says them.
fn types_text(schema: &Schema) -> String {
    let key = schema.key_meaning();
    if schema.value_type == ValueType::None {
        return key.to_string();
    }
    match schema.record() {
        Some(record) => format!("{key} to {record} ({})", schema.value_type),
        None => format!("{key} to {}", schema.value_meaning()),
    }
}
