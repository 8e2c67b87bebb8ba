//! Building files, and checking them.

use crate::errors::{building, exception};
use pleach_builder::{BuildError, BuildOptions, Layout, Observer, Phase, Unique};
use pleach_input::InputOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::input::AnyRecordBatch;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Mutex;

/// Time between two looks for signals.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// Passes progress to Python, and an interruption to the build.
struct Progress {
    callback: Option<Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
}

impl Progress {
    fn raised(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Runs `work` on a thread of its own, without the interpreter's lock. Signals are handled meanwhile: only the
    /// thread that called can do that.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
        py.detach(|| {
            std::thread::scope(|scope| {
                let (done, wait) = std::sync::mpsc::channel::<()>();
                let worker = scope.spawn(move || {
                    let outcome = work();
                    // An error means that nobody waits.
                    let _ = done.send(());
                    outcome
                });
                while wait.recv_timeout(LOOK) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    if let Err(error) = Python::attach(|py| py.check_signals()) {
                        self.raised().get_or_insert(error);
                    }
                }
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    }
}

impl Observer for Progress {
    fn progress(&self, phase: Phase, done: u64, total: Option<u64>) {
        let Some(callback) = &self.callback else { return };
        let called = Python::attach(|py| callback.call1(py, (name(phase), done, total)).map(drop));
        if let Err(error) = called {
            self.raised().get_or_insert(error);
        }
    }
    fn cancelled(&self) -> bool {
        self.raised().is_some()
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Read => "read",
        Phase::Sort => "sort",
        Phase::Merge => "merge",
        Phase::Write => "write",
        Phase::Sync => "sync",
    }
}

/// Returns an option, if it was given.
fn option<'py, T>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    options.get_item(name)?.filter(|value| !value.is_none()).map(|value| value.extract()).transpose()
}

fn parsed<T: FromStr>(options: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T::Err: std::fmt::Display,
{
    let Some(text) = option::<String>(options, name)? else { return Ok(None) };
    let refused = |error: T::Err| exception("InputError", format!("{name}={text:?} is invalid: {error}"));
    text.parse().map(Some).map_err(refused)
}

fn input_options(options: &Bound<'_, PyDict>) -> PyResult<InputOptions> {
    let mut input = InputOptions {
        key: option(options, "key")?,
        value: option(options, "value")?,
        no_header: option(options, "no_header")?.unwrap_or(false),
        ..InputOptions::default()
    };
    if let Some(text) = option::<String>(options, "key_type")? {
        (input.key_type, input.key_logical) = types(&text, "key_type", pleach::KeyType::from_name)?;
    }
    if let Some(text) = option::<String>(options, "value_type")? {
        (input.value_type, input.value_logical) = types(&text, "value_type", pleach::ValueType::from_name)?;
    }
    Ok(input)
}

type Typed<T> = (Option<T>, Option<pleach_format::logical::Logical>);

fn types<T>(text: &str, option: &str, plain: impl Fn(&str) -> Option<T>) -> PyResult<Typed<T>> {
    if let Some(plain) = plain(text) {
        return Ok((Some(plain), None));
    }
    match pleach_format::logical::Logical::of_name(text) {
        Some(logical) => Ok((None, Some(logical))),
        None => {
            let text = format!(
                "{option}={text:?} is invalid: use a type such as \"u64\", \"utf8\" or \"timestamp[us]\""
            );
            Err(exception("InputError", text))
        }
    }
}

fn build_options(options: &Bound<'_, PyDict>) -> PyResult<BuildOptions> {
    let mut build = BuildOptions {
        unique: match option::<String>(options, "unique")?.as_deref() {
            None => None,
            Some("first") => Some(Unique::First),
            Some("last") => Some(Unique::Last),
            Some("error") => Some(Unique::Error),
            Some(other) => {
                let text = format!("unique={other:?} is invalid: use \"first\", \"last\" or \"error\"");
                return Err(exception("InputError", text));
            }
        },
        sorted: option(options, "sorted")?.unwrap_or(false),
        keep: option(options, "keep")?,
        force: option(options, "force")?.unwrap_or(false),
        threads: option(options, "threads")?.unwrap_or(0),
        temp_dir: option(options, "temp_dir")?,
        ..BuildOptions::default()
    };
    if let Some(bytes) = option(options, "memory_bytes")? {
        build.memory_bytes = bytes;
    }
    if build.threads == 0 {
        // A pool of this build's own: a child of `fork` has none of the threads of its parent.
        build.threads = std::thread::available_parallelism().map_or(1, usize::from);
    }
    match parsed::<Layout>(options, "layout")? {
        Some(layout) => Ok(build.with_layout(layout)),
        None => Ok(build),
    }
}

/// Builds a file of paths, or of an object that exports Arrow batches. Returns the number of tuples and the bytes of
/// the file.
#[pyfunction]
pub(crate) fn build(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    path: PathBuf,
    options: &Bound<'_, PyDict>,
) -> PyResult<(u64, u64)> {
    let input = input_options(options)?;
    let mut building_options = build_options(options)?;
    let callback = options.get_item("progress")?.filter(|callback| !callback.is_none()).map(Bound::unbind);
    let is_paths = source.is_instance_of::<pyo3::types::PyList>();
    let paths: Option<Vec<PathBuf>> = is_paths.then(|| source.extract()).transpose()?;
    let batches = match paths {
        Some(_) => None,
        None => Some(source.extract::<AnyRecordBatch>()?.into_reader()?),
    };
    let progress = Progress { callback, raised: Mutex::new(None) };
    let outcome = progress.run(py, || {
        let mut source = match (&paths, batches) {
            (Some(paths), _) => {
                building_options.inputs.clone_from(paths);
                pleach_input::open(paths, &input)
            }
            (None, Some(reader)) => {
                let schema = reader.schema();
                pleach_input::open_batches("table", &schema, reader, &input)
            }
            (None, None) => unreachable!("one of the two was extracted"),
        }
        .map_err(BuildError::Source)?;
        pleach_builder::build(&mut *source, &path, &building_options, &progress)
    });
    if let Some(error) = progress.raised.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(error);
    }
    outcome.map(|summary| (summary.tuples, summary.file_bytes)).map_err(|error| building(&error))
}

/// Checks a file. Returns the verdict, the number of blocks, bytes and tuples, and the faults.
#[pyfunction]
pub(crate) fn fsck<'py>(py: Python<'py>, path: PathBuf, threads: usize) -> PyResult<Bound<'py, PyDict>> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let options = pleach_fsck::FsckOptions { threads, ..Default::default() };
    let report = py.detach(|| pleach_fsck::fsck(&path, &options));
    let report = report.map_err(|error| {
        let class =
            if error.kind() == std::io::ErrorKind::NotFound { "NotFoundError" } else { "PleachError" };
        exception(class, format!("cannot check: {}: {error}", path.display()))
    })?;
    let answer = PyDict::new(py);
    answer.set_item("verdict", format!("{:?}", report.verdict).to_lowercase())?;
    answer.set_item("blocks", report.blocks)?;
    answer.set_item("bytes", report.bytes)?;
    answer.set_item("tuples", report.tuples)?;
    let findings = report.findings.iter().map(|finding| finding.to_string()).collect::<Vec<_>>();
    answer.set_item("findings", findings)?;
    Ok(answer)
}
