//! Upgrade: a file of the last version before this one gets the form of this version, and so do its kept
//! generations.
//!
//! The file is copied block by block, each block is verified, and the copy takes its name in one step. Nothing
//! is sorted or searched: only the superblock changes. Generation and lineage stay, since the tuples do.

use super::base::Base;
use super::copying::{Overlays, copied, encoded_table};
use super::generations::numbers;
use crate::error::BuildError;
use crate::held::kept_path;
use crate::observe::{Observer, Watch};
use crate::publish::{Publication, Rules, resolved};
use crate::storage::{Kind, RealStorage, Storage};
use pleach_format::superblock::{SUPERBLOCK_BYTES, Superblock};
use pleach_format::version::{UPGRADED, reads};
use pleach_format::view::CLOSING_BYTES;
use std::path::Path;

/// Report of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgraded {
    /// Version of the file before; `None` if it was of this version already, and was left alone.
    pub from: Option<(u16, u16)>,
    /// Its generation.
    pub generation: u64,
    /// Identity of its content.
    pub file_id: [u8; 16],
    /// Number of its tuples.
    pub tuples: u64,
    /// Size in bytes.
    pub file_bytes: u64,
    /// Number of kept generations that were upgraded, too.
    pub kept: usize,
}

/// Gives the index `target` the form of this version, if it is of the last version before, and its kept
/// generations first. Every block is verified. Each file is replaced in one step, so that after an interruption
/// the upgrade can be repeated. O(files) time, no tuple is sorted again.
///
/// ```no_run
/// let done = pleach_builder::rebuild::upgrade("users.pleach", &pleach_builder::Silent)?;
/// println!("{} tuples, generation {}", done.tuples, done.generation);
/// # Ok::<(), pleach_builder::BuildError>(())
/// ```
///
/// # Errors
/// [`BuildError::Base`] if a file is of another version or its header is damaged, [`BuildError::Damaged`] if a
/// block is; those of publishing. The file that is named in the error is as it was.
pub fn upgrade(target: impl AsRef<Path>, observer: &dyn Observer) -> Result<Upgraded, BuildError> {
    upgrade_with_storage(target.as_ref(), observer, &RealStorage)
}

/// Upgrades as [`upgrade`] does, over any storage: the seam for tests in which the system fails.
///
/// # Errors
/// The errors of [`upgrade`].
pub fn upgrade_with_storage(
    target: &Path,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<Upgraded, BuildError> {
    let watch = &Watch::new(observer);
    watch.check()?;
    let target = resolved(storage, target)?;
    let current = superblock(storage, &target)?;
    let listed = numbers(storage, &target);
    let listed = listed.map_err(|error| BuildError::io("listing generations of", &target, error))?;
    let mut kept = 0;
    for number in listed {
        let path = kept_path(&target, number);
        // Another file may have such a name, also one of another index: it stays.
        let is_kept = |block: &Superblock| {
            version(block) == UPGRADED
                && block.first_id() == current.first_id()
                && block.generation.get() == number
        };
        let is_file = matches!(storage.kind(&path), Ok(Kind::File { .. }));
        if is_file && superblock(storage, &path).is_ok_and(|block| is_kept(&block)) {
            replace(storage, &path, watch)?;
            kept += 1;
        }
    }
    let (major, minor) = version(&current);
    let (base, from) = if reads(major, minor) {
        (Base::open(storage, &target, false)?, None)
    } else {
        (replace(storage, &target, watch)?, Some((major, minor)))
    };
    let block = base.header.superblock;
    Ok(Upgraded {
        from,
        generation: block.generation.get(),
        file_id: block.file_id,
        tuples: base.header.tuples,
        file_bytes: base.header.file_bytes,
        kept,
    })
}

fn version(block: &Superblock) -> (u16, u16) {
    (block.version_major.get(), block.version_minor.get())
}

/// Reads a superblock of any version.
fn superblock(storage: &dyn Storage, path: &Path) -> Result<Superblock, BuildError> {
    let (file, bytes) = storage.open(path).map_err(|error| BuildError::io("opening", path, error))?;
    let mut block = vec![0; bytes.min(SUPERBLOCK_BYTES as u64) as usize];
    file.read_exact_at(&mut block, 0).map_err(|error| BuildError::io("reading", path, error))?;
    Superblock::sealed(&block, 0).map_err(|source| BuildError::Base { path: path.to_owned(), source })
}

/// Replaces a file by its copy in the form of this version.
fn replace(storage: &dyn Storage, path: &Path, watch: &Watch<'_>) -> Result<Base, BuildError> {
    // Before the lock, so that a file of another version is refused without a trace.
    Base::older(storage, path)?;
    let publication = Publication::begin(storage, path, Rules::upgrade())?;
    let base = Base::older(storage, path)?;
    let superblock = base.header.superblock.seal().to_vec();
    let closing_at = base.header.file_bytes - CLOSING_BYTES as u64;
    let table = encoded_table(&base);
    let overlays: Overlays =
        vec![(0, [superblock.clone(), table.clone()].concat()), (closing_at, [table, superblock].concat())];
    copied(&base, &overlays, &[], publication.output(), watch, |_, _| {})?;
    publication.commit(watch)?;
    Ok(base)
}
