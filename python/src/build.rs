//! Building files from paths and Arrow batches, and changing them.

use crate::errors::building;
use crate::options::Options;
use arrow_array::RecordBatchReader;
use pleach_builder::rebuild::{self as changing, Rebuilt};
use pleach_builder::source::{Schema, Source, SourceError};
use pleach_builder::{BuildError, Summary};
use pleach_input::{InputOptions, NullCounts};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3_arrow::input::AnyRecordBatch;
use std::path::PathBuf;

/// What is to be read: files, or Arrow batches.
pub(crate) enum Given {
    Paths(Vec<PathBuf>),
    Batches(Box<dyn RecordBatchReader + Send>),
}

impl Given {
    /// Takes a list of paths, or an object that exports Arrow batches.
    pub(crate) fn of(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if source.is_instance_of::<PyList>() {
            return source.extract().map(Self::Paths);
        }
        source.extract::<AnyRecordBatch>()?.into_reader().map(Self::Batches)
    }

    /// Returns the files among the inputs, which no output may replace.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        match self {
            // Folders and patterns stand for the files in them; what is wrong with one, opening it tells.
            Self::Paths(paths) => pleach_input::expanded(paths).unwrap_or_else(|_| paths.clone()),
            Self::Batches(_) => Vec::new(),
        }
    }

    /// Opens it for reading.
    pub(crate) fn open(self, options: &InputOptions) -> Result<Box<dyn Source>, SourceError> {
        match self {
            Self::Paths(paths) => pleach_input::open(&paths, options),
            Self::Batches(reader) => {
                let schema = reader.schema();
                pleach_input::open_batches("table", &schema, reader, options)
            }
        }
    }
}

/// Returns what a new file is.
fn built<'py>(py: Python<'py>, summary: &Summary, nulls: &NullCounts) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("skipped_rows", nulls.skipped())?;
    answer.set_item("skipped_windows", nulls.windows())?;
    answer.set_item("filled_values", nulls.filled())?;
    answer.set_item("tuples", summary.tuples)?;
    answer.set_item("file_bytes", summary.file_bytes)?;
    answer.set_item("generation", summary.generation)?;
    Ok(answer)
}

/// Builds a file of paths, or of an object that exports Arrow batches.
#[pyfunction]
pub(crate) fn build<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    path: PathBuf,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Options(options);
    let (input, mut build, progress) = (options.input()?, options.build()?, options.progress()?);
    let given = Given::of(source)?;
    build.inputs = given.paths();
    let summary = progress.run(py, building, || {
        let mut source = given.open(&input).map_err(BuildError::Source)?;
        pleach_builder::build(&mut *source, &path, &build, &progress)
    })?;
    built(py, &summary, &input.null_counts)
}

/// Makes the next generation of a file from a table of changes.
#[pyfunction]
pub(crate) fn rebuild<'py>(
    py: Python<'py>,
    path: PathBuf,
    changes: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Options(options);
    let (input, mut rebuild, progress) = (options.input()?, options.rebuild()?, options.progress()?);
    let given = Given::of(changes)?;
    rebuild.inputs = given.paths();
    let nulls = input.null_counts.clone();
    let open = |schema: &Schema| given.open(&of_base(input, schema));
    let done =
        progress.run(py, building, || changing::rebuild(&path, Box::new(open), &rebuild, &progress))?;
    let Rebuilt { summary, method, applied, base_tuples, lost, kept: _, left: _ } = done;
    let answer = built(py, &summary, &nulls)?;
    answer.set_item("method", method.name())?;
    answer.set_item("base_tuples", base_tuples)?;
    answer.set_item("lost_tuples", lost)?;
    let counts = [
        ("puts", applied.puts),
        ("adds", applied.adds),
        ("dels", applied.dels),
        ("superseded", applied.superseded),
        ("absent", applied.absent),
    ];
    counts.into_iter().try_for_each(|(name, count)| answer.set_item(name, count))?;
    Ok(answer)
}

/// Returns the options for changes of a file: they have its types, and are converted to its units.
pub(crate) fn of_base(input: InputOptions, schema: &Schema) -> InputOptions {
    let record = schema.record();
    InputOptions {
        key_type: Some(schema.key_type),
        value_type: Some(schema.value_type),
        key_logical: Some(schema.key_meaning().logical),
        // The fields of a record have types of their own.
        value_logical: Some(schema.value_meaning().logical).filter(|_| record.is_none()),
        record,
        changes: true,
        key_name: Some(schema.key_name.clone()),
        value_name: Some(schema.value_name.clone()),
        ..input
    }
}

/// Merges files into one. Returns what it is, and the number of tuples lost with damaged blocks.
#[pyfunction]
pub(crate) fn compact<'py>(
    py: Python<'py>,
    files: Vec<PathBuf>,
    path: PathBuf,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Options(options);
    let (compact, progress) = (options.compact()?, options.progress()?);
    let done = progress.run(py, building, || changing::compact(&files, &path, &compact, &progress))?;
    let answer = built(py, &done.summary, &NullCounts::default())?;
    answer.set_item("lost_tuples", done.lost_tuples())?;
    Ok(answer)
}
