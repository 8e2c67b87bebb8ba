//! The Python module `pleach_datafusion`: files and sets as tables of the package `datafusion`, and sessions of an
//! engine of its own.
//!
//! ```text
//! table.rs    a file or a set, and what the package `datafusion` asks of it
//! version.rs  the version of the package `datafusion`
//! session.rs  sessions                             rows.rs     answers of queries
//! wait.rs     the threads, and waiting for them    errors.rs   exceptions
//! capsule.rs  pointers of other modules: all unsafe code
//! ```

mod capsule;
mod errors;
mod rows;
mod session;
mod table;
mod version;
mod wait;

use pyo3::prelude::*;

/// The native part of `pleach_datafusion`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<table::Table>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<rows::Rows>()?;
    module.add_function(wrap_pyfunction!(version::check_version, module)?)?;
    module.add("ENGINE", datafusion::DATAFUSION_VERSION)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
