//! What `get`, `range` and others do with a file before they search it.

use crate::cli::{Global, Urls, Verify};
use crate::errors;
use crate::failure::{self, ExitStatus, Failure};
use crate::place;
use crate::render::json;
use crate::render::text::counted;
use crate::stdout;
use pleach::{Index, Record, Structure};
use pleach_set::{LeftOut, Set};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

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
    let options = Index::options().verify(global.verify.unwrap_or(default).into()).structure(structure);
    place::open_file(path, options, global)
}

/// A file or a set that is open for searches.
pub struct Opened {
    index: Arc<Index>,
    set: Option<Arc<Set>>,
}

impl Opened {
    /// Opens a file, or the set in a folder.
    pub fn new(path: &Path, global: &Global, default: Verify) -> Result<Self, Failure> {
        if !place::is_set(path, global)? {
            return Ok(Self { index: Arc::new(open(path, global, default)?), set: None });
        }
        Self::of_set(open_set(path, global, default)?)
    }

    /// Does the same for commands that read everything: files of URLs are downloaded whole.
    pub fn whole(path: &Path, global: &Global, default: Verify) -> Result<Self, Failure> {
        let urls = Urls { whole: true, ..global.urls.clone() };
        Self::new(path, &Global { urls, ..global.clone() }, default)
    }

    fn of_set(set: Set) -> Result<Self, Failure> {
        let index = set.shape().map_err(|error| errors::set_failure(&error))?;
        Ok(Self { index, set: Some(Arc::new(set)) })
    }

    /// Returns the file; for a set an index of its types, names and options, which has no tuples.
    pub fn index(&self) -> &Index {
        &self.index
    }
    pub fn set(&self) -> Option<&Arc<Set>> {
        self.set.as_ref()
    }
    /// Returns the number of tuples.
    pub fn len(&self) -> u64 {
        self.set.as_ref().map_or(self.index.len(), |set| set.len())
    }
    /// Describes in one line how keys are searched.
    pub fn describe(&self) -> String {
        match &self.set {
            None => self.index.describe(),
            Some(set) => format!(
                "set, generation {}, {} of {} tuples: bisection of the manifest > one file",
                set.generation(),
                counted(set.manifest().files() as u64, "file"),
                set.len()
            ),
        }
    }

    /// Ends a command: says which files it did without.
    pub fn end(&self, status: ExitStatus, global: &Global) -> Result<ExitStatus, Failure> {
        match &self.set {
            Some(set) => without(&set.left_out(), status, global),
            None => Ok(status),
        }
    }
}

/// Opens a set for searching, with the requested verification.
pub fn open_set(path: &Path, global: &Global, default: Verify) -> Result<Set, Failure> {
    pleach::contain_sigbus();
    let files = Index::options().verify(global.verify.unwrap_or(default).into());
    place::open_set(path, Set::options().files(files).partial(global.partial), global)
}

/// Says which files of a set a command did without. If there are any, its answers are not whole, and its status is
/// that of damage.
pub fn without(files: &[LeftOut], status: ExitStatus, global: &Global) -> Result<ExitStatus, Failure> {
    if files.is_empty() {
        return Ok(status);
    }
    for file in files {
        failure::say(&format!(
            "left out: {} with {}: {}",
            file.name,
            counted(file.tuples, "tuple"),
            file.reason
        ));
    }
    if global.json {
        let mut document = json::document("left-out");
        let all: Vec<Value> = files
            .iter()
            .map(|file| json!({ "name": file.name, "tuples": json::int(file.tuples), "reason": file.reason }))
            .collect();
        document.insert("left_out".to_owned(), all.into());
        stdout::print_json(document)?;
    }
    Ok(ExitStatus::Damage)
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
