//! Rebuild: a base file and a batch of changes become the next generation, a new file under the same name.
//!
//! ```text
//! changes.rs      rows in order of keys, an effect for each key
//! base.rs         verified blocks of the base
//! stored.rs       keys and values of its lines
//! words.rs        merge of words, on all threads       strings.rs   of byte strings
//! patch.rs        no tuple comes or goes: copy, and rewrite the blocks that change
//! compact.rs      several files become one
//! copying.rs      a copy whose blocks are verified
//! generations.rs  which generations are kept, removed and listed
//! passing.rs      errors that pass through a source
//! ordered.rs      the tuples of a file as sources of builds
//! rollback.rs     a kept generation becomes the current one again
//! upgrade.rs      the same generation in the current format
//! ```
//! The base is read once, front to back, and never held in memory; every block that is read is verified. All
//! sections are made anew as in any build, so the new file is the one that a build of its tuples would give.
//! Readers of the old generation keep it: a rename replaces its name, not the file.

pub(crate) mod base;
mod changes;
pub(crate) mod compact;
mod copying;
mod elements;
pub(crate) mod generations;
mod ordered;
mod pages;
mod passing;
mod patch;
mod rollback;
mod stored;
mod strings;
mod upgrade;
mod words;

pub use crate::held::kept_path;
pub use changes::Applied;
pub use compact::{CompactOptions, Compacted, compact};
pub use generations::{Generation, State, generations};
pub use ordered::{Ordered, build as build_ordered, unwrapped_source};
pub use rollback::{RollbackOptions, RolledBack, rollback, rollback_with_storage};
pub use upgrade::{Upgraded, upgrade, upgrade_with_storage};

use crate::error::BuildError;
use crate::flow;
use crate::in_pool;
use crate::job::with_lanes;
use crate::observe::{Observer, Watch};
use crate::options::{Summary, physical_memory_bytes};
use crate::pack::{KeyLane, ValueLane};
use crate::publish::{Publication, Rules};
use crate::source::{Schema, Source, SourceError};
use crate::storage::{RealStorage, Storage};
use base::Base;
use changes::Effects;
use generations::{Keep, Kept};
use passing::unwrapped;
use pleach_format::Meaning;
use pleach_format::logical::matching;
use std::path::{Path, PathBuf};
use strings::ByteMerge;
use words::WordMerge;

/// Inverse of the share of changed tuples above which a patch takes longer than a merge; from `pleach bench
/// update`.
const PATCHED_PART: u64 = 2;

/// Method that makes the next generation. All methods give the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// [`Method::Patch`] if it is possible and fewer than half of the values change, else [`Method::Merge`].
    #[default]
    Auto,
    /// Merges base and changes.
    Merge,
    /// Copies the base and rewrites the blocks with changed values. Requires that every change puts a key
    /// that occurs exactly once; other changes, byte strings, files without values and salvaging are refused.
    Patch,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Merge, Self::Patch];

    /// Returns the name used on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Merge => "merge",
            Self::Patch => "patch",
        }
    }
}

/// Options of a rebuild.
#[derive(Clone, Debug)]
pub struct RebuildOptions {
    /// Method of the rebuild.
    pub method: Method,
    /// Number of old generations to keep, named by [`kept_path`]; `None` keeps none and removes none.
    pub keep: Option<usize>,
    /// Leave out damaged blocks of the base instead of refusing it.
    pub salvage: bool,
    /// Memory limit for the changes, in bytes.
    pub memory_bytes: u64,
    /// Number of threads; 0 selects the current rayon pool.
    pub threads: usize,
    /// Folder for lists that outgrow memory; the folder of the target by default.
    pub temp_dir: Option<PathBuf>,
    /// Sync the new file before it gets its name. Without it a power cut may leave neither generation whole:
    /// for measurements.
    pub sync: bool,
    /// Input files; none of them is replaced.
    pub inputs: Vec<PathBuf>,
    /// Change a file with keys that are shorter than those they stand for, although a change of one key may then meet
    /// another.
    pub approximate: bool,
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
            approximate: false,
        }
    }
}

/// Report of a rebuild.
#[derive(Clone, Debug, PartialEq)]
pub struct Rebuilt {
    /// Report on the new file.
    pub summary: Summary,
    /// Method that was used.
    pub method: Method,
    /// Outcome of the changes.
    pub applied: Applied,
    /// Number of tuples in the base.
    pub base_tuples: u64,
    /// Number of tuples of the base that were lost with damaged blocks.
    pub lost: u64,
    /// Number of old generations now kept; `None` if `keep` was not set.
    pub kept: Option<usize>,
    /// Reason why old generations that should have been removed are still there. The rebuild succeeded all
    /// the same.
    pub left: Option<String>,
}

/// Opens a table of changes once the types of the base are known.
pub type OpenChanges<'a> = dyn FnOnce(&Schema) -> Result<Box<dyn Source>, SourceError> + Send + 'a;

/// Makes the next generation of the file `target` from the changes that `open` opens, in the types of the
/// schema that it receives.
///
/// Changes apply in the order of the batch: see [`crate::Op`]. Time is O(base), in one pass; memory is that
/// of the changes and some 200 MiB. The lock is taken before the base is read. The new generation appears
/// complete and synced (unless `options.sync` is false), or not at all; after a failure the old one is still
/// there and whole.
///
/// # Errors
/// [`BuildError::Base`] or [`BuildError::Damaged`] if the base cannot be read; [`BuildError::Source`] if the
/// changes are refused; [`BuildError::ManyChanges`], [`BuildError::NotUnique`], [`BuildError::Approximate`];
/// those of publishing and of
/// the system.
pub fn rebuild(
    target: impl AsRef<Path>,
    open: Box<OpenChanges<'_>>,
    options: &RebuildOptions,
    observer: &dyn Observer,
) -> Result<Rebuilt, BuildError> {
    rebuild_with_storage(target.as_ref(), open, options, observer, &RealStorage)
}

/// Rebuilds as [`rebuild`] does, over any storage: the seam for tests in which the system fails.
///
/// # Errors
/// The errors of [`rebuild`].
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

/// Result of a merge or a patch, ready to be published.
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
    let schema = base.schema()?;
    if schema.approximate.is_some() && !options.approximate {
        return Err(BuildError::Approximate { path: target.to_owned() });
    }
    let mut changes = open(&schema)?;
    // The input has converted them to the unit of the file, row by row; a difference that is left is one of
    // meaning.
    let given = changes.schema();
    let is_same = |given: Meaning, held: Meaning| {
        matching(&given, &held).is_some_and(|common| common.is_same(&given, &held))
    };
    if !is_same(given.key_meaning(), schema.key_meaning())
        || !is_same(given.value_meaning(), schema.value_meaning())
    {
        let (given, held) = (given.types_text(), schema.types_text());
        let what = format!("they are {given}, but the file holds {held}");
        let advice = "give changes of its types".into();
        return Err(
            SourceError { input: "changes".into(), place: String::new(), what, advice, cause: None }.into()
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
    let (base_tuples, lost) = (base.header.tuples, base::count(&base.lost()));
    Ok(Rebuilt { summary, method, applied, base_tuples, lost, kept, left })
}

/// A rebuild in progress.
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
        let mut options = self.base.build_options()?;
        options.temp_dir.clone_from(&self.options.temp_dir);
        flow::write(self.publication, source, &options, self.watch, self.storage)
    }

    fn run_words<W: KeyLane, B: ValueLane>(&self, changes: &mut dyn Source) -> Result<Made, BuildError> {
        let effects: Effects<W, B> = changes::of_words(changes, self.watch, self.options.memory_bytes)?;
        let method = self.options.method;
        let few = effects.list.len() as u64 <= self.base.header.tuples / PATCHED_PART;
        let is_interval = self.schema.interval.is_some();
        let may_patch = !self.options.salvage && B::BYTES > 0 && effects.only_puts() && !is_interval;
        if method == Method::Patch && is_interval {
            return Err(patch::refused("an interval that changes may overlap others"));
        }
        if method == Method::Patch && !may_patch {
            return Err(patch::refused("some change is not a put, or the file is to be salvaged"));
        }
        if may_patch && (method == Method::Patch || (method == Method::Auto && few)) {
            let (output, descent) = (self.publication.output(), self.publication.descent());
            let patched = match patch::patch(self.base, &effects, descent, output, self.watch) {
                // A merge reads less and makes the rest anew: it decides whether the damaged part is needed.
                Err(BuildError::Damaged { .. }) if method == Method::Auto => None,
                patched => patched?,
            };
            match patched {
                Some(summary) => {
                    effects.list.iter().for_each(|effect| effect.find(1));
                    return Ok(Made { summary, method: Method::Patch, applied: effects.applied() });
                }
                None if method == Method::Patch => {
                    return Err(patch::refused("some key does not occur exactly once in the file"));
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

    /// Reports a duplicate in a file of unique keys as an error of the changes, before the build would.
    fn check_unique(&self, duplicate: Option<String>) -> Result<(), BuildError> {
        match duplicate.filter(|_| self.base.header.is_unique()) {
            Some(key) => Err(BuildError::NotUnique { key }),
            None => Ok(()),
        }
    }
}
