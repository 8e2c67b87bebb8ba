//! The version of the package `datafusion`.
//!
//! Structs that cross from one module to the other change with its major version, and another one would read memory
//! that is not there. It is compared before anything crosses.

use crate::capsule::SameVersion;
use crate::errors::exception;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Returns the proof that the package has our major version.
///
/// # Errors
/// `VersionError` if it has not, or if it is missing.
pub(crate) fn same_version(py: Python<'_>) -> PyResult<SameVersion> {
    let ours = datafusion_ffi::version();
    let install = format!("run: pip install 'datafusion=={ours}.*'");
    let package = py.import("datafusion").map_err(|error| {
        if !error.is_instance_of::<PyImportError>(py) {
            return error;
        }
        let text = format!("missing package 'datafusion': pleach_datafusion needs version {ours}: {install}");
        exception(py, "VersionError", text)
    })?;
    let theirs: String = package.getattr("__version__")?.extract()?;
    let major = theirs.split('.').next().and_then(|major| major.parse().ok());
    major.and_then(SameVersion::of).ok_or_else(|| {
        let own = env!("CARGO_PKG_VERSION");
        let text = format!(
            "wrong version of the package 'datafusion': it is {theirs}, and pleach_datafusion {own} needs {ours}: \
             {install}"
        );
        exception(py, "VersionError", text)
    })
}

/// Checks that the installed package `datafusion` has the major version that this module was made for. `register` and
/// `Table` do so before anything crosses.
#[pyfunction]
pub(crate) fn check_version(py: Python<'_>) -> PyResult<()> {
    same_version(py).map(drop)
}
