//! Checking a whole set: the manifest, every byte of every file, and what lies about.

use crate::error::{Result, SetError};
use crate::generations::listed;
use crate::manifest::{Entry, FILES, MANIFESTS};
use crate::set::{Set, check_opened};
use crate::store::Object;
use crate::write::digest;
use pleach::{ErrorKind, Finding, FsckOptions, Index, Verdict, fsck_file};
use rayon::prelude::*;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Options of a check.
#[derive(Clone, Copy, Default)]
pub struct CheckOptions<'a> {
    /// Also compare the SHA-256 of every file with the manifest.
    pub digests: bool,
    /// Receives the bytes that are done and those in all, from any thread; if it returns false, the check stops.
    pub progress: Option<&'a (dyn Fn(u64, u64) -> bool + Sync)>,
}

/// What was found in a file of a set.
#[derive(Clone, Debug)]
pub struct FileCheck {
    /// Name of the file.
    pub name: String,
    /// Number of its tuples, by the manifest.
    pub tuples: u64,
    /// Why it is not the file that the manifest describes, or cannot be read.
    pub problem: Option<(ErrorKind, String)>,
    /// What is wrong with its bytes.
    pub findings: Vec<Finding>,
}

impl FileCheck {
    /// Returns true if nothing is wrong.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.problem.is_none() && self.findings.is_empty()
    }
}

/// Report of a check.
#[derive(Clone, Debug)]
pub struct SetChecked {
    /// One for each file, in the order of their keys.
    pub files: Vec<FileCheck>,
    /// Files that no manifest names, and objects that were not finished: no fault, and for a sweep.
    pub litter: Vec<Object>,
    /// True if the progress function stopped the check.
    pub cancelled: bool,
}

impl SetChecked {
    /// Returns a line for each fault, with the name of the file; none if the set is whole.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let lines = self.files.iter().flat_map(|file| {
            let problem = file.problem.iter().map(|(_, what)| what.clone());
            problem
                .chain(file.findings.iter().map(|finding| finding.to_string()))
                .map(|line| (&file.name, line))
        });
        lines.map(|(name, line)| format!("{name}: {line}")).collect()
    }
}

/// Checks a set. The manifest was checked when the set was opened.
///
/// Files are checked on all threads of the current rayon pool, a few at a time. Nothing is written.
///
/// # Errors
/// [`SetError::Store`] if the objects cannot be listed. What is wrong with a file is in the report.
pub fn check_set(set: &Set, options: &CheckOptions<'_>) -> Result<SetChecked> {
    let (done, is_stopped) = (AtomicU64::new(0), AtomicBool::new(false));
    let all = set.manifest().file_bytes();
    let check = |file: usize| {
        let entry = set.manifest().entry(file);
        let before = AtomicU64::new(0);
        let watch = |now: u64, _all: u64| {
            let more = now.saturating_sub(before.fetch_max(now, Ordering::Relaxed));
            let sum = done.fetch_add(more, Ordering::Relaxed) + more;
            let goes_on = options.progress.is_none_or(|progress| progress(sum.min(all), all));
            is_stopped.fetch_or(!goes_on, Ordering::Relaxed);
            goes_on
        };
        let mut check =
            FileCheck { name: entry.name.clone(), tuples: entry.tuples, problem: None, findings: Vec::new() };
        if !is_stopped.load(Ordering::Relaxed) {
            let checked = check_file(set, &entry, options.digests, &watch, &mut check.findings);
            check.problem = checked.err().map(|error| (error.kind(), error.to_string()));
        }
        check
    };
    pleach_pool::ready();
    let files = (0..set.manifest().files()).into_par_iter().map(check).collect();
    let litter = litter(set)?;
    Ok(SetChecked { files, litter, cancelled: is_stopped.into_inner() })
}

fn check_file(
    set: &Set,
    entry: &Entry,
    digests: bool,
    watch: &(dyn Fn(u64, u64) -> bool + Sync),
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let path = set.store().fetch(entry)?;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => SetError::Missing { name: path.display().to_string() },
        _ => SetError::io("reading", &path, error),
    };
    let file = File::open(&path).map_err(failed)?;
    let report = fsck_file(&file, &FsckOptions { threads: 0, progress: Some(watch) }).map_err(failed)?;
    if report.verdict == Verdict::Damaged {
        *findings = report.findings;
        return Ok(());
    }
    if report.cancelled {
        return Ok(());
    }
    let index = Index::open(&path)
        .map_err(|error| SetError::File { name: entry.name.clone(), source: error.into() })?;
    check_opened(entry, set.schema(), &index, &set.store().place())?;
    check_ends(set, entry, index)?;
    if digests {
        check_digest(entry, &path, &set.store().place())?;
    }
    Ok(())
}

/// Compares both ends with the manifest, by the tuples and not by the superblock.
fn check_ends(set: &Set, entry: &Entry, index: Index) -> Result<()> {
    for (rank, key) in [(0, &entry.min), (entry.tuples - 1, &entry.max)] {
        let tuple = index.tuple(rank).map_err(|error| SetError::File {
            name: entry.name.clone(),
            source: pleach::Error::from(error).at(index.path()),
        })?;
        let Some((own, _)) = tuple else { continue };
        if *crate::keys::key_bytes(set.key_type(), &own)? != **key {
            let what = format!("the key of rank {rank} is not the one that the manifest says");
            return Err(SetError::Differs { name: format!("{}/{}", set.store().place(), entry.name), what });
        }
    }
    Ok(())
}

fn check_digest(entry: &Entry, path: &Path, place: &str) -> Result<()> {
    let found = digest(path).map_err(|error| SetError::io("reading", path, error))?;
    if found == entry.digest {
        return Ok(());
    }
    let what = "its SHA-256 is another".into();
    Err(SetError::Differs { name: format!("{place}/{}", entry.name), what })
}

/// Lists objects that are not part of any generation.
fn litter(set: &Set) -> Result<Vec<Object>> {
    let store = &**set.store();
    let mut named: HashSet<String> = set.manifest().entries().map(|entry| entry.name).collect();
    for (generation, _) in listed(store)? {
        // One that is damaged or was swept names nothing that is known.
        if let Ok(manifest) = crate::generations::manifest(store, generation) {
            named.extend(manifest.entries().map(|entry| entry.name));
        }
    }
    let mut litter = store.list(FILES)?;
    litter.retain(|object| !named.contains(&object.name));
    let unfinished = store.list(MANIFESTS)?.into_iter();
    litter.extend(unfinished.filter(|object| object.name[MANIFESTS.len()..].starts_with('.')));
    litter.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(litter)
}
