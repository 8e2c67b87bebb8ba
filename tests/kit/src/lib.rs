//! Tools that make files for tests, and damage them. They depend only on the format, so that the checks of
//! files can be tested without building the writers and the searches.

pub mod classic;
pub mod generate;
pub mod mutate;
pub mod naive;
pub mod pages;

use pleach_format::version::{VERSION_MAJOR, VERSION_MINOR};
use std::path::{Path, PathBuf};

/// Returns true if the long form of the tests is requested (`PLEACH_TESTS=long`): loops that are
/// exhaustive, or as long as docs/TESTING.md says. Without it they take samples, so that the suite ends
/// within minutes.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("PLEACH_TESTS").is_some_and(|form| form == "long")
}

/// Says what was counted for a target of docs/TRUST.md: `cargo trust` gathers these lines.
pub fn figure(target: u32, text: &str) {
    println!("figure {target}: {text}");
}

/// Files of a folder of `tests/data`, in the order of their names.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data").join(folder);
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(files.len() > 10);
    files
}

/// The folder of the golden files of this version.
pub fn folder() -> String {
    format!("v{VERSION_MAJOR}.{VERSION_MINOR}")
}

/// The golden files of this version, with their names.
pub fn golden() -> Vec<(String, Vec<u8>)> {
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read(&path).expect("readable"));
    files(&folder()).into_iter().map(read).collect()
}
