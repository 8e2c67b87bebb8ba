//! A file or a set, and what the package `datafusion` asks of it.

use crate::{capsule, errors, version, wait};
use datafusion::catalog::TableProvider;
use datafusion_ffi::table_provider::FFI_TableProvider;
use pleach::OpenOptions;
use pleach_datafusion::{PleachTable, Source};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::path::PathBuf;
use std::sync::Arc;

/// A Pleach file, or the set in a folder, as a table of DataFusion: `SessionContext.register_table(name, table)`.
///
/// Each query reads the generation that is current when it is planned. With `generation`, every query reads that one;
/// a set has it as long as it is kept.
#[pyclass(frozen, module = "pleach_datafusion")]
pub(crate) struct Table(Arc<PleachTable>);

impl Table {
    pub(crate) fn provider(&self) -> Arc<dyn TableProvider> {
        Arc::clone(&self.0) as Arc<dyn TableProvider>
    }
}

#[pymethods]
impl Table {
    #[new]
    #[pyo3(signature = (path, generation = None))]
    fn new(py: Python<'_>, path: PathBuf, generation: Option<u64>) -> PyResult<Self> {
        let opened = py.detach(|| match generation {
            None => Source::open(path),
            Some(generation) => Source::at_generation(path, generation, OpenOptions::default()),
        });
        let source = opened.map_err(|error| errors::own(py, &error))?;
        let table = if generation.is_some() { PleachTable::pinned(source) } else { PleachTable::new(source) };
        Ok(Self(Arc::new(table)))
    }

    /// Returns the table in a capsule, as the package `datafusion` takes it. `session` is its session.
    ///
    /// Raises `VersionError` if that package has another major version than this module.
    #[pyo3(signature = (session = None))]
    fn __datafusion_table_provider__<'py>(
        &self,
        py: Python<'py>,
        session: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let version = version::same_version(py)?;
        let session = session.unwrap_or_else(|| py.None().into_bound(py));
        let codec = capsule::codec(version, &session)?;
        let threads = Some(wait::runtime(py)?.handle().clone());
        let provider = FFI_TableProvider::new_with_ffi_codec(self.provider(), true, threads, codec);
        PyCapsule::new_with_value(py, provider, capsule::TABLE)
    }

    /// The path that was opened.
    #[getter]
    fn path(&self) -> &str {
        self.0.source().location()
    }

    /// The generation that was opened.
    #[getter]
    fn generation(&self) -> u64 {
        self.0.source().generation()
    }

    /// Names of the columns; those of the key are first.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.source().schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Number of tuples of the generation that was opened.
    fn __len__(&self) -> usize {
        usize::try_from(self.0.source().tuples()).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        let files = self.0.source().files();
        format!("Table({:?}, {} tuples, {files} files)", self.path(), self.0.source().tuples())
    }
}
