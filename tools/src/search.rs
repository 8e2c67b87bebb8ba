//! What `get`, `range` and others do with a file before they search it.

use crate::cli::{Global, Verify};
use crate::errors;
use crate::failure::{self, Failure};
use pleach::{Index, Record, Structure};
use std::path::Path;

/// Opens a file for searching, with the requested verification.
pub fn open(path: &Path, global: &Global, default: Verify) -> Result<Index, Failure> {
    open_by(path, global, default, Structure::Auto)
}

/// Does the same; keys are found by this structure of the file.
pub fn open_by(
    path: &Path,
    global: &Global,
    default: Verify,
    structure: Structure,
) -> Result<Index, Failure> {
    pleach::contain_sigbus();
    Index::options()
        .verify(global.verify.unwrap_or(default).into())
        .structure(structure)
        .open(path)
        .map_err(|error| errors::opening(&error))
}

/// Returns the record type of the values of a file, if they are records.
pub fn record(index: &Index, path: &Path) -> Result<Option<Record>, Failure> {
    index.record().map_err(errors::reading(path))
}

/// Explains on standard error how a search works.
pub fn explain(lines: &[String]) {
    for line in lines {
        failure::say(&format!("explain: {line}"));
    }
}
