//! Old generations under names of their own: `FILE.g7` is generation 7 of `FILE`.
//!
//! A kept generation is a second name (hard link) of the same bytes. It gets that name before its successor
//! is renamed over the first name, so both names lead to whole files at any moment. If a file cannot have two
//! names, it is copied, and the copy is published like any file. Which generations remain is decided
//! afterwards.
//!
//! The name alone does not make a generation: there must be a regular file whose superblock says that it is
//! this generation of this index. Any other file of such a name is foreign, and is neither replaced nor
//! removed.

use crate::error::BuildError;
use crate::held::{Held, kept_path, of_name};
use crate::observe::Watch;
use crate::plan::PIECE_BYTES;
use crate::publish::{Publication, Rules, What};
use crate::remains;
use crate::standing::Standing;
use crate::storage::{Kind, RealStorage, Storage, lacks_links};
use pleach_format::superblock::Superblock;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Returns the numbers in names of generations of `target`, ascending, whatever the files are. O(entries of
/// the folder).
pub(crate) fn numbers(storage: &dyn Storage, target: &Path) -> io::Result<Vec<u64>> {
    let Some(name) = target.file_name() else { return Ok(Vec::new()) };
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let entries = storage.list(folder)?;
    let mut found: Vec<u64> = entries.iter().filter_map(|entry| of_name(name, entry)).collect();
    found.sort_unstable();
    Ok(found)
}

/// Number of old generations to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Keep no further one, and remove none.
    AsTheyAre,
    /// Keep one more, and remove none.
    OneMore,
    /// Keep at most this number.
    Most(usize),
}

impl Keep {
    /// Converts the value of an option.
    pub(crate) fn of(keep: Option<usize>) -> Self {
        keep.map_or(Self::AsTheyAre, Self::Most)
    }

    fn keeps(self) -> bool {
        !matches!(self, Self::AsTheyAre | Self::Most(0))
    }
}

/// Checks, before any work, that the file to be replaced can be kept: its name as a generation must not
/// belong to another file.
pub(crate) fn may_keep(publication: &Publication<'_>, keep: Keep) -> Result<(), BuildError> {
    let Some(block) = publication.replaced().filter(|_| keep.keeps()) else {
        return Ok(());
    };
    let (target, generation) = (publication.target(), block.generation.get());
    let taken = |what| Err(BuildError::GenerationTaken { path: kept_path(target, generation), what });
    match Held::of(publication.storage(), target, generation, block.first_id())? {
        // Already kept, by a process that was killed before it published the next one.
        Held::Generation(held) if held.file_id == block.file_id => Ok(()),
        Held::Nothing => Ok(()),
        Held::Generation(_) => taken("another file of this number".to_owned()),
        Held::Other(what, _) => taken(what),
    }
}

/// Gives the generation at the target its own name as well. Returns true if it had none.
fn keep(
    storage: &dyn Storage,
    target: &Path,
    block: &Superblock,
    watch: &Watch<'_>,
) -> Result<bool, BuildError> {
    let to = kept_path(target, block.generation.get());
    match storage.link(target, &to) {
        Ok(()) => Ok(true),
        // The existing file was checked before: it is the same generation.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // The newest kept generation may have the same content if nothing has changed since: then no copy is
        // needed.
        Err(error) if lacks_links(&error) => {
            let held = match newest(storage, target, block.first_id())? {
                Some(number) => Held::of(storage, target, number, block.first_id())?,
                None => Held::Nothing,
            };
            match held {
                Held::Generation(held) if held.file_id == block.file_id => Ok(false),
                _ => copy(storage, target, &to, watch).map(|()| true),
            }
        }
        Err(error) => Err(BuildError::io("keeping the old generation", to, error)),
    }
}

/// Copies a file to an unused name. Sums are copied as they are, so damage remains detectable.
fn copy(storage: &dyn Storage, from: &Path, to: &Path, watch: &Watch<'_>) -> Result<(), BuildError> {
    let failed = |error| BuildError::io("copying the old generation", to, error);
    let access = match storage.kind(from).map_err(failed)? {
        Kind::File { access, .. } => Some(access),
        _ => None,
    };
    let rules = Rules { what: What::Copy, inputs: Vec::new(), force: false };
    let publication = Publication::begin_like(storage, to, rules, access)?;
    let (file, bytes) = storage.open(from).map_err(failed)?;
    let (mut buffer, mut check) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < bytes {
        watch.check()?;
        let length = (PIECE_BYTES as u64).min(bytes - at) as usize;
        buffer.resize(length, 0);
        check.resize(length, 0);
        file.read_exact_at(&mut buffer, at).map_err(failed)?;
        publication.output().write(&buffer, at)?;
        publication.output().read(&mut check, at)?;
        if buffer != check {
            return Err(failed(io::Error::other("what was written is not what is read back")));
        }
        at += length as u64;
    }
    publication.commit(watch)
}

/// Generations kept after a publication.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub kept: Option<usize>,
    pub left: Option<String>,
}

/// Publishes a file. If generations are to be kept, the replaced one first gets its own name; those that are
/// too old are removed afterwards.
pub(crate) fn publish(
    publication: Publication<'_>,
    keep: Keep,
    sync: bool,
    watch: &Watch<'_>,
) -> Result<Kept, BuildError> {
    let keeps = keep.keeps();
    if keeps || sync {
        publication.sync(watch)?;
    }
    let storage = publication.storage();
    let (target, descent) = (publication.target().to_owned(), publication.descent());
    let old = publication.replaced().copied();
    let is_new = match &old {
        Some(old) if keeps => self::keep(storage, &target, old, watch)?,
        _ => false,
    };
    // If the process ended between the two steps, the old generation would have a second name while it is
    // still current.
    let together = keeps.then(remains::hold);
    let published = publication.rename(watch).inspect_err(|_| {
        // The old generation is still in place under the target's name, and needs no second one.
        if let Some(old) = old.filter(|_| is_new) {
            let _ = storage.remove(&kept_path(&target, old.generation.get()));
        }
    })?;
    drop(together);
    if sync {
        published.sync()?;
    }
    // Still under the lock: generations kept by another build must not be counted.
    let most = match keep {
        Keep::AsTheyAre => return Ok(Kept::default()),
        Keep::OneMore => usize::MAX,
        Keep::Most(most) => most,
    };
    // The first generation of a lineage has none before it.
    let (kept, left) = match descent.lineage == [0; 16] {
        true => (0, None),
        false => prune(storage, &target, most, descent.lineage, descent.generation),
    };
    drop(published);
    Ok(Kept { kept: Some(kept), left })
}

/// Removes all kept generations before `next` but the `keep` newest. Returns how many are left, and the
/// reason if they are too many.
fn prune(
    storage: &dyn Storage,
    target: &Path,
    keep: usize,
    first: [u8; 16],
    next: u64,
) -> (usize, Option<String>) {
    let mut why = None;
    let all = match numbers(storage, target) {
        Ok(all) => all,
        Err(error) => return (0, Some(BuildError::io("listing generations of", target, error).to_string())),
    };
    let mut ours = Vec::new();
    for generation in all.into_iter().filter(|&generation| generation < next) {
        match Held::of(storage, target, generation, first) {
            Ok(held) if held.is_generation() => ours.push(generation),
            Ok(_) => {}
            Err(error) => why = Some(error.to_string()),
        }
    }
    let surplus = ours.len().saturating_sub(keep);
    let mut left = ours.len();
    for &generation in &ours[..surplus] {
        let path = kept_path(target, generation);
        match storage.remove(&path) {
            Ok(()) => left -= 1,
            Err(error) => why = Some(BuildError::io("removing an old generation", path, error).to_string()),
        }
    }
    (left, why)
}

/// Kind of an entry of [`generations`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The current generation, under the name of the index.
    Current,
    /// An older generation of the index.
    Kept,
    /// Another file under the name of a generation, with its description.
    Foreign(String),
}

/// A generation of an index, or another file that has the name of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Generation number; for another file, the number in its name.
    pub number: u64,
    /// Path of the file.
    pub path: PathBuf,
    /// Kind of the entry.
    pub state: State,
    /// Identity of its content, if it is a Pleach file.
    pub file_id: Option<[u8; 16]>,
    /// Number of its tuples, if it is a Pleach file.
    pub tuples: Option<u64>,
    /// Size in bytes, if it is a regular file.
    pub bytes: Option<u64>,
    /// Time of the last modification, if the system reports it.
    pub modified: Option<SystemTime>,
}

/// Returns the lineage of the file `target` and its kept generations: as given by the file or, if it is
/// missing or unreadable, by the generation `wanted`, or by the newest one that is kept.
pub(crate) fn lineage(
    storage: &dyn Storage,
    target: &Path,
    standing: Option<&Superblock>,
    wanted: Option<u64>,
) -> Result<Option<[u8; 16]>, BuildError> {
    if let Some(block) = standing {
        return Ok(Some(block.first_id()));
    }
    let mut all = match wanted {
        Some(wanted) => vec![wanted],
        None => numbers(storage, target)
            .map_err(|error| BuildError::io("listing generations of", target, error))?,
    };
    while let Some(generation) = all.pop() {
        if let Held::Other(_, Some(block)) = Held::of(storage, target, generation, [0; 16])?
            && block.generation.get() == generation
        {
            return Ok(Some(block.first_id()));
        }
    }
    Ok(None)
}

/// Returns the newest kept generation of a lineage.
pub(crate) fn newest(
    storage: &dyn Storage,
    target: &Path,
    first: [u8; 16],
) -> Result<Option<u64>, BuildError> {
    let all = numbers(storage, target);
    let all = all.map_err(|error| BuildError::io("listing generations of", target, error))?;
    for generation in all.into_iter().rev() {
        if Held::of(storage, target, generation, first)?.is_generation() {
            return Ok(Some(generation));
        }
    }
    Ok(None)
}

/// Lists the generations of the index `target`: the kept ones, oldest first, then the current one, and other
/// files that have the name of a generation. Reads superblocks only. O(entries of the folder).
///
/// # Errors
/// [`BuildError::Io`]; [`BuildError::NoGeneration`] if there is no such index and none of its generations is
/// kept.
pub fn generations(target: impl AsRef<Path>) -> Result<Vec<Generation>, BuildError> {
    let storage = &RealStorage;
    let target = &crate::publish::resolved(storage, target.as_ref())?;
    let looking = |error| BuildError::io("looking for generations", target, error);
    let entry = |number, path: PathBuf, state, block: Option<&Superblock>| {
        let metadata = std::fs::symlink_metadata(&path).ok();
        let bytes = metadata.as_ref().filter(|found| found.is_file()).map(std::fs::Metadata::len);
        Generation {
            number,
            state,
            file_id: block.map(|block| block.file_id),
            tuples: block.map(|block| block.tuples.get()),
            bytes,
            modified: metadata.and_then(|found| found.modified().ok()),
            path,
        }
    };
    let standing = match storage.kind(target).map_err(looking)? {
        Kind::Missing => None,
        Kind::File { .. } => Some(Standing::of(storage, target).map_err(looking)?),
        _ => return Err(BuildError::TargetNotRegular { path: target.clone() }),
    };
    if let Some(Standing::Foreign) = standing {
        let source = pleach_format::FormatError::Foreign;
        return Err(BuildError::Base { path: target.clone(), source });
    }
    let block = standing.as_ref().and_then(Standing::superblock);
    let first = lineage(storage, target, block, None)?;
    let mut found = Vec::new();
    for number in numbers(storage, target).map_err(looking)? {
        let path = kept_path(target, number);
        match Held::of(storage, target, number, first.unwrap_or_default())? {
            Held::Nothing => {}
            Held::Generation(block) => found.push(entry(number, path, State::Kept, Some(&block))),
            Held::Other(what, block) => {
                found.push(entry(number, path, State::Foreign(what), block.as_deref()));
            }
        }
    }
    match (block, standing.is_some()) {
        (Some(block), _) => {
            found.push(entry(block.generation.get(), target.clone(), State::Current, Some(block)));
        }
        (None, true) => {
            let what = "damaged, empty or of another version".to_owned();
            found.push(entry(0, target.clone(), State::Foreign(what), None));
        }
        (None, false) if found.is_empty() => {
            let what = "there is no such file, and no generation of it is kept".to_owned();
            return Err(BuildError::NoGeneration { path: target.clone(), what });
        }
        (None, false) => {}
    }
    Ok(found)
}
