//! Sweeping: old generations and files that nobody needs.

use crate::commit::GRACE;
use crate::error::{Result, SetError};
use crate::generations::{HINT, find, listed, manifest, manifest_name};
use crate::manifest::{FILES, MANIFESTS};
use crate::store::{Object, Store};
use std::collections::HashSet;
use std::time::Duration;

/// Options of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct SweepOptions {
    /// Files that no kept manifest names are deleted once they are older than this. It is longer than any worker
    /// takes from its first file to the commit, and than any reader keeps a generation.
    pub grace: Duration,
    /// Number of generations to keep, the current one included; at least 1. A generation whose successor is
    /// younger than the grace is kept, too: somebody may still read it.
    pub keep: usize,
    /// Delete nothing, and report what would be deleted.
    pub dry_run: bool,
}

impl Default for SweepOptions {
    fn default() -> Self {
        Self { grace: GRACE, keep: 2, dry_run: false }
    }
}

/// Report of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Generations that are kept, ascending.
    pub kept: Vec<u64>,
    /// Generations whose manifests were deleted.
    pub generations: Vec<u64>,
    /// Files, finished or not, that were deleted.
    pub files: Vec<Object>,
    /// Files that no kept manifest names, and that are too young to be deleted.
    pub young: Vec<Object>,
}

impl Swept {
    /// Returns the bytes of the files that were deleted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Deletes old generations, and files that no kept manifest names and that are older than the grace.
///
/// A kept manifest that cannot be read ends the sweep before anything is deleted: the files that it names are not
/// known.
///
/// # Errors
/// [`SetError::NoSet`]; [`SetError::Manifest`] of a kept generation; [`SetError::Store`].
pub fn sweep(store: &dyn Store, options: &SweepOptions) -> Result<Swept> {
    let mut swept = Swept::default();
    let mut all = listed(store)?;
    let Some(&(newest, _)) = all.last() else { return Err(SetError::NoSet { place: store.place() }) };
    let mut named = HashSet::new();
    let mut name_files = |generation: u64| -> Result<()> {
        named.extend(manifest(store, generation)?.entries().map(|entry| entry.name));
        Ok(())
    };
    let first_kept = all.len().saturating_sub(options.keep.max(1));
    for (at, &(generation, _)) in all.iter().enumerate() {
        let is_read = all.get(at + 1).is_some_and(|(_, age)| *age <= options.grace);
        if at >= first_kept || is_read {
            name_files(generation)?;
            swept.kept.push(generation);
        }
    }
    all.retain(|(generation, _)| swept.kept.binary_search(generation).is_err());
    if !options.dry_run {
        // Readers of the hint must not be led to a manifest that is gone.
        store.put_hint(HINT, format!("{newest}\n").as_bytes())?;
    }
    for (generation, _) in all {
        if !options.dry_run {
            store.delete(&manifest_name(generation))?;
        }
        swept.generations.push(generation);
    }
    // What was published meanwhile may name files that are to be deleted: those of a rollback.
    let now = find(store)?.unwrap_or(newest);
    for generation in newest + 1..=now {
        name_files(generation)?;
        swept.kept.push(generation);
    }
    for folder in [FILES, MANIFESTS, ""] {
        for object in store.list(folder)? {
            let own = object.name.strip_prefix(folder).unwrap_or(&object.name);
            // Beside the files only what a writer left unfinished.
            let is_litter =
                if folder == FILES { !named.contains(&object.name) } else { own.starts_with('.') };
            if !is_litter {
                continue;
            }
            if object.age <= options.grace || is_young(store, &object, options)? {
                swept.young.push(object);
                continue;
            }
            if !options.dry_run {
                store.delete(&object.name)?;
            }
            swept.files.push(object);
        }
    }
    Ok(swept)
}

/// Looks at the age once more, right before an object is deleted: somebody may have renewed it.
fn is_young(store: &dyn Store, object: &Object, options: &SweepOptions) -> Result<bool> {
    match store.age(&object.name) {
        Err(error) if error.is_missing() => Ok(false),
        age => Ok(age? <= options.grace),
    }
}
