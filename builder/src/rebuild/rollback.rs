//! An old generation becomes the current one again: its tuples, published as the next generation.
//!
//! Numbers only go up, so that who follows the file sees a new generation. The file is copied block by block, and each
//! is verified on its way.

use super::base::Base;
use super::copying::{Overlays, copied, encoded_table};
use super::generations::{self, Held, Keep, Kept};
use super::kept_path;
use crate::error::BuildError;
use crate::observe::{Observer, Watch};
use crate::publish::{Descent, Publication, Rules};
use crate::storage::{RealStorage, Storage};
use pleach_format::view::CLOSING_BYTES;
use std::path::Path;

/// Choices of a rollback.
#[derive(Clone, Debug, Default)]
pub struct RollbackOptions {
    /// Old generations to keep, the one that is current now among them; `None` keeps that one too, and removes none.
    pub keep: Option<usize>,
    /// Replace a file that is not ours, too.
    pub force: bool,
}

/// What a rollback did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// The generation whose tuples are current again.
    pub from: u64,
    /// The number that it has now.
    pub generation: u64,
    /// Identity of its content.
    pub file_id: [u8; 16],
    /// Its tuples.
    pub tuples: u64,
    /// Its bytes.
    pub file_bytes: u64,
    /// Old generations that are kept now.
    pub kept: usize,
    /// Why old generations are left that should have been removed.
    pub left: Option<String>,
}

/// Publishes a kept generation of the index `target` anew, `number` or the newest one, also where `target` itself is
/// damaged or gone. Every block of it is verified. O(file) time.
///
/// # Errors
/// [`BuildError::NoGeneration`] if it is not kept, [`BuildError::Damaged`] if it is damaged; those of publishing.
pub fn rollback(
    target: &Path,
    number: Option<u64>,
    options: &RollbackOptions,
    observer: &dyn Observer,
) -> Result<RolledBack, BuildError> {
    rollback_with_storage(target, number, options, observer, &RealStorage)
}

/// [`rollback`] over any storage: the seam for tests that make the system fail.
pub fn rollback_with_storage(
    target: &Path,
    number: Option<u64>,
    options: &RollbackOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<RolledBack, BuildError> {
    let watch = &Watch::new(observer);
    watch.check()?;
    let mut publication = Publication::begin(storage, target, Rules::index(Vec::new(), options.force))?;
    let keep = options.keep.map_or(Keep::OneMore, Keep::Most);
    generations::may_keep(&publication, keep)?;
    let target = publication.target().to_owned();
    let missing = |what: &str| BuildError::NoGeneration { path: target.clone(), what: what.to_owned() };
    let first = generations::lineage(storage, &target, publication.replaced(), number)?;
    let first = first.ok_or_else(|| missing("none is kept"))?;
    let newest = generations::newest(storage, &target, first)?;
    let from = match number {
        Some(number) => number,
        None => newest.ok_or_else(|| missing("none is kept"))?,
    };
    let path = kept_path(&target, from);
    let not_there = |what: String| BuildError::NoGeneration { path: path.clone(), what };
    match Held::of(storage, &target, from, first)? {
        Held::Generation(_) => {}
        Held::Nothing => return Err(not_there("it is not kept".to_owned())),
        Held::Other(what, _) => return Err(not_there(format!("it is {}", what.trim_end_matches(',')))),
    }
    if publication.replaced().is_none() {
        // What was current is not known: it came after all that is kept.
        let generation = newest.unwrap_or(from).checked_add(2);
        let generation = generation.ok_or_else(|| BuildError::LastGeneration { path: target.clone() })?;
        publication.set_descent(Descent { generation, lineage: first });
    }
    let base = Base::open(storage, &path, false)?;
    let Descent { generation, lineage } = publication.descent();
    let mut next = base.header.superblock;
    next.generation = generation.into();
    next.lineage = lineage;
    let superblock = next.seal().to_vec();
    let closing_at = base.header.file_bytes - CLOSING_BYTES as u64;
    let table = encoded_table(&base);
    let overlays: Overlays = vec![(0, superblock.clone()), (closing_at, [table, superblock].concat())];
    copied(&base, &overlays, &[], publication.output(), watch, |_, _| {})?;
    let Kept { kept, left } = generations::publish(publication, keep, true, watch)?;
    Ok(RolledBack {
        from,
        generation,
        file_id: next.file_id,
        tuples: base.header.tuples,
        file_bytes: base.header.file_bytes,
        kept: kept.unwrap_or(0),
        left,
    })
}
