//! Rollback: the tuples of an old generation are published as the next generation.
//!
//! Numbers only increase, so that readers that follow the file see a new generation. The file is copied block
//! by block, and each block is verified.

use super::base::Base;
use super::copying::{Overlays, copied, encoded_table};
use super::generations::{self, Keep, Kept};
use crate::error::BuildError;
use crate::held::{Held, kept_path};
use crate::observe::{Observer, Watch};
use crate::publish::{Descent, Publication, Rules};
use crate::storage::{RealStorage, Storage};
use pleach_format::view::CLOSING_BYTES;
use std::path::Path;

/// Options of a rollback.
#[derive(Clone, Debug, Default)]
pub struct RollbackOptions {
    /// Number of old generations to keep, including the one that is current now; `None` keeps that one too,
    /// and removes none.
    pub keep: Option<usize>,
    /// Also replace a file that is not a Pleach file.
    pub force: bool,
}

/// Report of a rollback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// Generation whose tuples are current again.
    pub from: u64,
    /// Number of the new generation.
    pub generation: u64,
    /// Identity of its content.
    pub file_id: [u8; 16],
    /// Number of its tuples.
    pub tuples: u64,
    /// Size in bytes.
    pub file_bytes: u64,
    /// Number of old generations now kept.
    pub kept: usize,
    /// Reason why old generations that should have been removed are still there.
    pub left: Option<String>,
}

/// Publishes a kept generation of the index `target` anew: generation `number`, or the newest one. `target`
/// itself may be damaged or missing. Every block of the kept file is verified. O(file) time.
///
/// # Errors
/// [`BuildError::NoGeneration`] if it is not kept, [`BuildError::Damaged`] if it is damaged; those of
/// publishing.
pub fn rollback(
    target: impl AsRef<Path>,
    number: Option<u64>,
    options: &RollbackOptions,
    observer: &dyn Observer,
) -> Result<RolledBack, BuildError> {
    rollback_with_storage(target.as_ref(), number, options, observer, &RealStorage)
}

/// Rolls back as [`rollback`] does, over any storage: the seam for tests in which the system fails.
///
/// # Errors
/// The errors of [`rollback`].
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
        Held::Other(what, _) => return Err(not_there(format!("it is {what}"))),
    }
    if publication.replaced().is_none() {
        // The number of the lost current generation is unknown, but it was above all kept ones.
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
