//! The care of files: checking, generations, export.

use crate::errors::{building, class, exception};
use crate::options::Options;
use crate::progress::Progress;
use pleach_builder::rebuild::{self, State};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ffi::OsString;
use std::path::PathBuf;

/// Checks a file. Returns the verdict, the number of blocks, bytes and tuples, and the faults.
#[pyfunction]
pub(crate) fn fsck<'py>(py: Python<'py>, path: PathBuf, threads: usize) -> PyResult<Bound<'py, PyDict>> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
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

/// Lists the generations of a file: the kept ones, oldest first, and the current one.
#[pyfunction]
pub(crate) fn generations<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyList>> {
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
