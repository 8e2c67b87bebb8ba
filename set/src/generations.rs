//! Finding the generations of a set: the hint, then one name after the other, else a list.

use crate::error::{Result, SetError, StoreError};
use crate::manifest::{MANIFEST_BYTES_MAX, MANIFESTS, Manifest};
use crate::store::{Part, Store};
use std::time::Duration;

/// Name of the hint.
pub(crate) const HINT: &str = "latest";
/// Ending of the names of manifests.
const SUFFIX: &str = ".manifest";
/// Digits of a generation in the name of its manifest.
const DIGITS: usize = 20;

/// Returns the name of the manifest of a generation.
#[must_use]
pub fn manifest_name(generation: u64) -> String {
    format!("{MANIFESTS}{generation:0DIGITS$}{SUFFIX}")
}

/// Returns the generation of a manifest of this name, with or without its folder.
#[must_use]
pub fn generation_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(MANIFESTS).unwrap_or(name).strip_suffix(SUFFIX)?;
    let is_number = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten().filter(|&generation| generation > 0)
}

/// Returns the number of the newest generation: the one that the hint leads to, by trying one number after the
/// other. O(1) without a list if the hint is fresh.
///
/// # Errors
/// [`SetError::NoSet`] if there is none; [`SetError::Store`].
pub fn newest(store: &dyn Store) -> Result<u64> {
    let none = || SetError::NoSet { place: store.place() };
    find(store)?.ok_or_else(none)
}

/// Does the same; `None` if there is no generation.
pub(crate) fn find(store: &dyn Store) -> Result<Option<u64>> {
    let hinted = match store.read(HINT, Part::Whole { bytes_max: 64 }, None) {
        Ok(bytes) => str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse::<u64>().ok()),
        // A hint that is missing or cannot be read is no hint.
        Err(_) => None,
    };
    let is_there = |generation: u64| exists(store, &manifest_name(generation));
    let mut newest = match hinted.filter(|&generation| generation > 0) {
        Some(hinted) if is_there(hinted)? => Some(hinted),
        // The hint is older than every kept generation, or of none.
        _ => listed(store)?.into_iter().map(|(generation, _)| generation).max(),
    };
    while let Some(next) = newest.and_then(|generation| generation.checked_add(1)) {
        if !is_there(next)? {
            break;
        }
        newest = Some(next);
    }
    Ok(newest)
}

/// Returns the generations whose manifests are there and how old these are, ascending.
pub(crate) fn listed(store: &dyn Store) -> Result<Vec<(u64, Duration)>, StoreError> {
    let objects = store.list(MANIFESTS)?.into_iter();
    let mut found: Vec<_> =
        objects.filter_map(|object| Some((generation_of(&object.name)?, object.age))).collect();
    found.sort_unstable_by_key(|(generation, _)| *generation);
    Ok(found)
}

pub(crate) fn exists(store: &dyn Store, name: &str) -> Result<bool, StoreError> {
    match store.length(name) {
        Ok(_) => Ok(true),
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads the manifest of a generation.
///
/// # Errors
/// [`SetError::Store`] if it is missing or cannot be read, [`SetError::Manifest`] if it is refused, and
/// [`SetError::Differs`] if it is that of another generation.
pub fn manifest(store: &dyn Store, generation: u64) -> Result<Manifest> {
    let name = manifest_name(generation);
    let bytes = store.read(&name, Part::Whole { bytes_max: MANIFEST_BYTES_MAX }, None)?;
    let shown = || format!("{}/{name}", store.place());
    let manifest = Manifest::parse(bytes).map_err(|source| SetError::Manifest { name: shown(), source })?;
    if manifest.generation() != generation {
        let what = format!("it is the manifest of generation {}", manifest.generation());
        return Err(SetError::Differs { name: shown(), what });
    }
    Ok(manifest)
}

/// Reads the newest manifest. A damaged one is an error: an older generation would be a wrong answer.
///
/// # Errors
/// Those of [`newest`] and of [`manifest`].
pub fn current(store: &dyn Store) -> Result<Manifest> {
    manifest(store, newest(store)?)
}

/// A generation of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its number.
    pub number: u64,
    /// Time since it was published.
    pub age: Duration,
    /// Its manifest, or why it was refused.
    pub manifest: Result<Facts, String>,
}

/// Counts of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The generation that it was made from; 0 if there was none.
    pub parent: u64,
    /// Number of files.
    pub files: usize,
    /// Number of tuples.
    pub tuples: u64,
    /// Bytes of the files.
    pub file_bytes: u64,
}

/// Lists the generations whose manifests are there, oldest first. The last one is the current one.
///
/// # Errors
/// [`SetError::NoSet`] if there are none; [`SetError::Store`].
pub fn generations(store: &dyn Store) -> Result<Vec<Generation>> {
    let mut all = Vec::new();
    for (number, age) in listed(store)? {
        let read = match manifest(store, number) {
            // It was swept meanwhile.
            Err(SetError::Store(error)) if error.is_missing() => continue,
            Err(error @ SetError::Store(_)) => return Err(error),
            read => read,
        };
        let facts = read.map_err(|error| error.to_string()).map(|manifest| Facts {
            parent: manifest.facts().parent,
            files: manifest.files(),
            tuples: manifest.tuples(),
            file_bytes: manifest.file_bytes(),
        });
        all.push(Generation { number, age, manifest: facts });
    }
    if all.is_empty() { Err(SetError::NoSet { place: store.place() }) } else { Ok(all) }
}
