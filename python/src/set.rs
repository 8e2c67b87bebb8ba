//! Building sets, changing them, and sweeping.

use crate::build::{Given, of_base};
use crate::errors::{exception, set as failed};
use crate::options::Options;
use pleach_builder::BuildError;
use pleach_builder::source::Schema;
use pleach_input::NullCounts;
use pleach_set::{
    Committer, Folder, GRACE, Manifest, Partition, Set, SetRebuildOptions, SweepOptions, Writer, current,
    discard,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Returns true if a path is that of a set, or of a manifest. Looks at names only.
#[pyfunction]
pub(crate) fn is_set(path: PathBuf) -> bool {
    Set::is_set(path)
}

/// Returns what a new generation is.
fn made<'py>(py: Python<'py>, manifest: &Manifest, nulls: &NullCounts) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("skipped_rows", nulls.skipped())?;
    answer.set_item("skipped_windows", nulls.windows())?;
    answer.set_item("filled_values", nulls.filled())?;
    answer.set_item("tuples", manifest.tuples())?;
    answer.set_item("file_bytes", manifest.file_bytes())?;
    answer.set_item("generation", manifest.generation())?;
    answer.set_item("files", manifest.files())?;
    Ok(answer)
}

/// Returns how tuples are divided; `None` if it was not given.
fn partition(options: &Options<'_, '_>) -> PyResult<Option<Partition>> {
    match (options.get::<u64>("partition_tuples")?, options.get::<u64>("partitions")?) {
        (Some(_), Some(_)) => {
            let text = "partition_tuples and partitions exclude each other: give one of them";
            Err(exception("InputError", text.to_owned()))
        }
        (Some(0), _) | (_, Some(0)) => {
            let text = "partition_tuples or partitions is 0, but a set has one file at least: give 1 or more";
            Err(exception("InputError", text.to_owned()))
        }
        (Some(tuples), None) => Ok(Some(Partition::Tuples(tuples))),
        (None, Some(files)) => Ok(Some(Partition::Files(files))),
        (None, None) => Ok(None),
    }
}

/// Builds a set of paths, or of an object that exports Arrow batches, and publishes it as the next generation.
#[pyfunction]
pub(crate) fn build_set<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    path: PathBuf,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Options(options);
    let (input, mut build, progress) = (options.input()?, options.build()?, options.progress()?);
    let partition = partition(&options)?;
    let given = Given::of(source)?;
    build.inputs = given.paths();
    if let Some(own) = build.inputs.iter().find(|input| input.starts_with(&path)) {
        let text = format!("an input is in the folder of the set: {}: name another folder", own.display());
        return Err(exception("InputError", text));
    }
    let manifest = progress.run(py, failed, || {
        let is_new = !path.exists();
        let store = Arc::new(Folder::create(&path)?);
        let publish_all = || {
            let mut source = given.open(&input).map_err(BuildError::Source)?;
            let partition = partition.unwrap_or_else(|| {
                let known = current(&*store).ok().map(|manifest| manifest.schema().partition_tuples);
                known.map_or_else(Partition::default, Partition::Tuples)
            });
            let writer = Writer::new(store.clone());
            let (written, _) = writer.write(&mut *source, partition, &build, &progress)?;
            let publish = || {
                let mut committer = Committer::begin(store.clone())?;
                committer.add_own(&written)?;
                committer.publish()
            };
            publish().inspect_err(|error| discard(&*store, &written.entries, error))
        };
        publish_all().inspect_err(|_| {
            // Only folders without anything in them are removed.
            for folder in ["files", "manifests", ""].into_iter().filter(|_| is_new) {
                let _ = std::fs::remove_dir(path.join(folder));
            }
        })
    })?;
    made(py, &manifest, &input.null_counts)
}

/// Makes the next generation of a set from a table of changes.
#[pyfunction]
pub(crate) fn rebuild_set<'py>(
    py: Python<'py>,
    path: PathBuf,
    changes: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Options(options);
    let (input, progress) = (options.input()?, options.progress()?);
    let own = options.rebuild()?;
    let rebuild = SetRebuildOptions {
        memory_bytes: own.memory_bytes,
        threads: own.threads,
        temp_dir: own.temp_dir,
        grace: GRACE,
    };
    let given = Given::of(changes)?;
    let nulls = input.null_counts.clone();
    let open = |schema: &Schema| given.open(&of_base(input, schema));
    let store = Arc::new(Folder::new(path));
    let done =
        progress.run(py, failed, || pleach_set::rebuild_set(store, Box::new(open), &rebuild, &progress))?;
    let answer = made(py, &done.manifest, &nulls)?;
    answer.set_item("base_tuples", done.base_tuples)?;
    answer.set_item("touched_files", done.touched)?;
    answer.set_item("written_files", done.written)?;
    answer.set_item("carried_files", done.carried)?;
    let counts = [
        ("puts", done.applied.puts),
        ("adds", done.applied.adds),
        ("dels", done.applied.dels),
        ("superseded", done.applied.superseded),
        ("absent", done.applied.absent),
    ];
    counts.into_iter().try_for_each(|(name, count)| answer.set_item(name, count))?;
    Ok(answer)
}

/// Deletes old generations, and files that no kept generation names. Returns what was deleted and kept.
#[pyfunction]
pub(crate) fn sweep<'py>(
    py: Python<'py>,
    path: PathBuf,
    keep: usize,
    grace_s: f64,
    dry_run: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let grace = Duration::try_from_secs_f64(grace_s)
        .map_err(|_| exception("InputError", format!("grace_s={grace_s} is invalid: use seconds, from 0")))?;
    if keep == 0 {
        let text = "keep=0 is invalid: the current generation is always kept: use 1 or more";
        return Err(exception("InputError", text.to_owned()));
    }
    let options = SweepOptions { grace, keep, dry_run };
    let swept =
        py.detach(|| pleach_set::sweep(&Folder::new(path), &options)).map_err(|error| failed(&error))?;
    let bytes = swept.bytes();
    let names = |all: Vec<pleach_set::Object>| all.into_iter().map(|one| one.name).collect::<Vec<_>>();
    let answer = PyDict::new(py);
    answer.set_item("bytes", bytes)?;
    answer.set_item("kept", swept.kept)?;
    answer.set_item("generations", swept.generations)?;
    answer.set_item("files", names(swept.files))?;
    answer.set_item("young", names(swept.young))?;
    Ok(answer)
}
