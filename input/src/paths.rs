//! Inputs as they are given: files, folders, and patterns such as `part-*.csv`.
//!
//! * A path that is there stands for itself, whatever letters it has.
//! * A folder stands for the files in it and in its folders, in the order of their paths. Names that begin with `.`
//!   or `_` are left out, as other programs keep their notes under such names (`_SUCCESS`, `.crc`).
//! * Otherwise `*`, `?`, `[abc]` and `**` make it a pattern, for all paths that match, in their order. A `*` matches
//!   no name that begins with a dot.

use crate::problem::{caused, fault, problem, unreadable};
use glob::{MatchOptions, glob_with};
use pleach_builder::SourceError;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders within folders that are read; deeper ones are a circle of links. Linux itself follows 40.
const DEPTH_MAX: usize = 32;

/// Returns the paths of the files for `inputs`, in their order; `-` stays. The files are not opened.
///
/// # Errors
/// [`SourceError`] if a pattern matches nothing, a folder holds no file or cannot be read.
pub fn expanded(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, SourceError> {
    let mut files = Vec::new();
    for input in inputs {
        expand(input, &mut files)?;
    }
    Ok(files)
}

fn expand(input: &Path, files: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    let shown = input.display().to_string();
    let is_pattern = shown.contains(['*', '?', '[']) && fs::symlink_metadata(input).is_err();
    if !is_pattern {
        return add(input, files);
    }
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
    let pattern = input.to_str().ok_or_else(|| problem(&shown, "", "a pattern must be UTF-8"))?;
    let matches = glob_with(pattern, options).map_err(|error| {
        let text = format!("no such file, and no valid pattern ({error})");
        problem(&shown, "", fault(text, "write [*] for a star"))
    })?;
    let count = files.len();
    for found in matches {
        let path = found.map_err(|error| {
            let place = error.path().display().to_string();
            unreadable(&place, "", error.into())
        })?;
        add(&path, files)?;
    }
    if files.len() == count {
        return Err(problem(&shown, "", "no file matches this pattern: check it and the folder"));
    }
    Ok(())
}

/// Adds a file, or the files of a folder.
fn add(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    if path.as_os_str() == "-" || !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let count = files.len();
    descend(path, 0, files)?;
    if files.len() == count {
        let shown = path.display().to_string();
        return Err(problem(&shown, "", "the folder holds no files: name the files, or another folder"));
    }
    Ok(())
}

fn descend(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    let shown = folder.display().to_string();
    let failed = |error| caused(&shown, "", "the folder cannot be read", error);
    if depth > DEPTH_MAX {
        return Err(problem(&shown, "", "too many folders within folders: is a link a circle?"));
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with(['.', '_']) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    for path in paths {
        if path.is_dir() {
            descend(&path, depth + 1, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
