//! Relational operators on files and on Arrow tables.

use crate::build::Given;
use crate::errors::{batch, exception};
use crate::options::Options;
use crate::table::Table;
use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::ArrowError;
use pleach_batch::relation::{Job, Operation, in_memory};
use pleach_relation::{Aggregate, AsOf, Distance, How, Kept, Reduction, SetOperation, SetRule};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyRecordBatchReader;
use std::path::PathBuf;
use std::sync::Arc;

/// An input: an open file, or a table and its columns.
pub(crate) enum Input {
    File(Arc<pleach::Index>),
    Table(Box<dyn RecordBatchReader + Send>),
}

impl Input {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(table) = object.cast::<Table>() {
            return table.get().whole(object.py()).map(Self::File);
        }
        match Given::of(object)? {
            Given::Batches(reader) => Ok(Self::Table(reader)),
            Given::Paths(_) => unreachable!("`pleachdb` opens files"),
        }
    }
}

/// Returns the operator with this name.
fn operation(name: &str, options: &Options<'_, '_>) -> PyResult<Operation> {
    let named = |all: &[&'static str]| all.iter().map(|&name| (name, name)).collect::<Vec<_>>();
    let rule = || -> PyResult<SetRule> {
        Ok(if options.get("multiset")?.unwrap_or(false) { SetRule::Multiset } else { SetRule::Set })
    };
    Ok(match name {
        "select" => Operation::Select(options.get("text")?.unwrap_or_default()),
        "project" => Operation::Project(options.get("text")?.unwrap_or_default()),
        "reduce" => {
            let text: String = options.get("op")?.unwrap_or_else(|| "sum".to_owned());
            Operation::Reduce(Aggregate::list(&text).map_err(|name| {
                let known: Vec<&str> = Reduction::ALL.iter().map(|one| one.name()).collect();
                let advice = format!("use {}, or sum:FIELD and so on", known.join(", "));
                exception("InputError", format!("op={text:?} is invalid: there is no {name:?}: {advice}"))
            })?)
        }
        "join" => {
            let names = named(&How::ALL.iter().map(|one| one.name()).collect::<Vec<_>>());
            let name = options.choice("how", &names)?.unwrap_or_default();
            let how = How::from_name(name).unwrap_or(How::Inner);
            let names = named(&AsOf::ALL.iter().map(|one| one.name()).collect::<Vec<_>>());
            let asof = options.choice("asof", &names)?.and_then(AsOf::from_name);
            let distance = |name: &str| Ok::<_, PyErr>(options.get::<String>(name)?.map(Distance::from));
            match (asof, distance("within")?) {
                (Some(asof), _) => Operation::AsOf(how, asof, distance("tolerance")?),
                (None, Some(within)) => Operation::Band(how, within),
                (None, None) => Operation::Join(how),
            }
        }
        "product" => {
            let names = [("both", Kept::Both), ("left", Kept::Left), ("right", Kept::Right)];
            Operation::Product(options.choice("values", &names)?.unwrap_or_default())
        }
        name => Operation::Set(SetOperation::from_name(name).unwrap_or(SetOperation::Union), rule()?),
    })
}

/// What an operator made.
#[derive(IntoPyObject)]
pub(crate) enum Made {
    Batches(PyRecordBatchReader),
    Tuples(u64),
}

/// Runs an operator. The answer is written to the file `out`, or it is record batches: all of them, or a stream.
#[pyfunction]
pub(crate) fn relate(
    py: Python<'_>,
    name: &str,
    inputs: Vec<Bound<'_, PyAny>>,
    out: Option<PathBuf>,
    is_stream: bool,
    options: &Bound<'_, PyDict>,
) -> PyResult<Made> {
    let options = Options(options);
    let (operation, input, build) = (operation(name, &options)?, options.input()?, options.build()?);
    let (progress, is_permitted) = (options.progress()?, options.flag("approximate")?);
    let given = inputs.iter().map(Input::of).collect::<PyResult<Vec<_>>>()?;
    let threads = build.threads;
    let job = progress.run(py, batch, || {
        let mut indices = Vec::new();
        for (number, given) in given.into_iter().enumerate() {
            indices.push(match given {
                Input::File(index) => index,
                Input::Table(reader) => {
                    in_memory(&format!("table {}", number + 1), reader, &input, threads, &progress)?
                }
            });
        }
        Job::new(operation, indices, threads)
    })?;
    let job = job.approximate(is_permitted);
    if let Some(out) = out {
        let summary = progress.run(py, batch, || job.build(&out, &build, &progress))?;
        return Ok(Made::Tuples(summary.tuples));
    }
    let reader: Box<dyn RecordBatchReader + Send> = if is_stream {
        Box::new(progress.run(py, batch, || job.stream())?)
    } else {
        let (schema, batches) = progress.run(py, batch, || job.collect(&progress))?;
        let batches = batches.into_iter().map(Ok::<_, ArrowError>);
        Box::new(RecordBatchIterator::new(batches, schema))
    };
    Ok(Made::Batches(PyRecordBatchReader::new(reader)))
}
