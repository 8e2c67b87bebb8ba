//! The care of files: checking, generations, export.

use crate::errors::{building, class, exception, set};
use crate::options::Options;
use crate::progress::Progress;
use pleach_batch::Pool;
use pleach_builder::rebuild::{self, State};
use pleach_set::{CheckOptions, Folder, Set, check_set, manifest_name};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Checks a file. Returns the verdict, the number of blocks, bytes and tuples, and the faults.
#[pyfunction]
pub(crate) fn fsck<'py>(py: Python<'py>, path: PathBuf, threads: usize) -> PyResult<Bound<'py, PyDict>> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    if Set::is_set(&path) {
        return fsck_set(py, &path, threads);
    }
    let options = pleach_fsck::FsckOptions { threads, ..Default::default() };
    let failed = |error: &std::io::Error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let class = if is_missing { "NotFoundError" } else { "PleachError" };
        exception(class, format!("cannot check: {}: {error}", path.display()))
    };
    let report = Progress::new(None).run(py, failed, || pleach_fsck::fsck(&path, &options))?;
    let answer = PyDict::new(py);
    answer.set_item("verdict", format!("{:?}", report.verdict).to_lowercase())?;
    answer.set_item("blocks", report.blocks)?;
    answer.set_item("bytes", report.bytes)?;
    answer.set_item("tuples", report.tuples)?;
    let findings = report.findings.iter().map(|finding| finding.to_string()).collect::<Vec<_>>();
    answer.set_item("findings", findings)?;
    Ok(answer)
}

/// Checks every file of a set.
fn fsck_set<'py>(py: Python<'py>, path: &Path, threads: usize) -> PyResult<Bound<'py, PyDict>> {
    let progress = Progress::new(None);
    let go_on = |_: u64, _: u64| !pleach_builder::Observer::cancelled(&progress);
    let (tuples, bytes, report) = progress.run(py, set, || {
        let open = Set::open(path)?;
        let options = CheckOptions { digests: true, progress: Some(&go_on) };
        let report = Pool::of(threads).install(|| check_set(&open, &options))?;
        Ok((open.len(), open.manifest().file_bytes(), report))
    })?;
    let findings = report.faults();
    let answer = PyDict::new(py);
    answer.set_item("verdict", if findings.is_empty() { "clean" } else { "damaged" })?;
    answer.set_item("blocks", bytes.div_ceil(pleach_format::checksum::SUM_BLOCK_BYTES as u64))?;
    answer.set_item("bytes", bytes)?;
    answer.set_item("tuples", tuples)?;
    answer.set_item("findings", findings)?;
    Ok(answer)
}

/// Lists the generations of a set, oldest first. One whose manifest is refused has no counts.
fn generations_of_set<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyList>> {
    let all = py.detach(|| pleach_set::generations(&Folder::new(&path))).map_err(|error| set(&error))?;
    let (list, newest) = (PyList::empty(py), all.last().map(|one| one.number));
    for one in all {
        let facts = one.manifest.ok();
        let entry = PyDict::new(py);
        entry.set_item("number", one.number)?;
        entry.set_item("path", path.join(manifest_name(one.number)))?;
        entry.set_item("tuples", facts.map(|facts| facts.tuples))?;
        entry.set_item("file_bytes", facts.map(|facts| facts.file_bytes))?;
        entry.set_item("is_current", Some(one.number) == newest)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// Lists the generations of a file: the kept ones, oldest first, and the current one; or those of a set.
#[pyfunction]
pub(crate) fn generations<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyList>> {
    if Set::is_set(&path) {
        return generations_of_set(py, path);
    }
    let all = py.detach(|| rebuild::generations(&path)).map_err(|error| building(&error))?;
    let list = PyList::empty(py);
    for one in all {
        let entry = PyDict::new(py);
        entry.set_item("number", one.number)?;
        entry.set_item("path", one.path)?;
        entry.set_item("tuples", one.tuples)?;
        entry.set_item("file_bytes", one.bytes)?;
        match one.state {
            State::Current => entry.set_item("is_current", true)?,
            State::Kept => entry.set_item("is_current", false)?,
            // Another file has the name of a generation.
            State::Foreign(_) => continue,
        }
        list.append(entry)?;
    }
    Ok(list)
}

/// Publishes a kept generation anew. Returns its number and that of the new generation.
#[pyfunction]
pub(crate) fn rollback(
    py: Python<'_>,
    path: PathBuf,
    generation: Option<u64>,
    options: &Bound<'_, PyDict>,
) -> PyResult<(u64, u64)> {
    let options = Options(options);
    let (rollback, progress) = (options.rollback()?, options.progress()?);
    if Set::is_set(&path) {
        let store = Arc::new(Folder::new(path));
        let done = progress.run(py, set, || pleach_set::rollback_set(store, generation))?;
        return Ok((generation.unwrap_or_default(), done.generation()));
    }
    let done = progress.run(py, building, || rebuild::rollback(&path, generation, &rollback, &progress))?;
    Ok((done.from, done.generation))
}

/// Does what a command does, within this process: its outputs are files. Its sentence is the text of an exception.
#[pyfunction]
pub(crate) fn execute(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<()> {
    let failed = |(kind, text): &(&'static str, String)| match *kind {
        "interrupted" => pyo3::exceptions::PyKeyboardInterrupt::new_err(()),
        kind => exception(class(kind), text.clone()),
    };
    let progress = Progress::new(None);
    let stop = || pleach_builder::Observer::cancelled(&progress);
    progress.run(py, failed, || pleach_cli::execute(arguments, &stop))
}

/// Makes truncation of a mapped file an exception instead of the end of the process.
#[pyfunction]
pub(crate) fn contain_sigbus() {
    pleach::contain_sigbus();
}
