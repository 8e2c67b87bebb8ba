//! The native part of the Python module `pleachdb`: what touches memory. The rest is in `pleachdb/*.py`.
//!
//! * `keys` makes a batch of keys of a NumPy array or an Arrow array, without an object for each key.
//! * `numpy` describes the memory of NumPy arrays.
//! * `table` is an open file, and its batches.
//! * `build` makes files from paths and Arrow streams, and changes them; `options` are its options, `progress` tells.
//! * `set` builds sets, changes and sweeps them.
//! * `care` checks files and their generations, and exports them.
//! * `relation` runs relational operators on files and on Arrow tables.
//! * `device` is a file on a CUDA device; `dlpack` exchanges arrays there with other libraries.
//! * `command` runs the command line in this process's place.
//! * `errors` chooses the exception of an error.
//!
//! The interpreter's lock is released during all work that depends on the number of keys.

mod build;
mod care;
mod device;
mod dlpack;
mod errors;
mod keys;
mod numpy;
mod options;
mod progress;
mod relation;
mod set;
mod table;

use pyo3::prelude::*;

/// Runs the command `pleach` with the arguments of this process, and returns its exit code.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| pleach_cli::run_with::<pleach_cli::Cli>(arguments))
}

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::build::{build, compact, rebuild};
    #[pymodule_export]
    use super::care::{contain_sigbus, execute, fsck, generations, rollback};
    #[pymodule_export]
    use super::command;
    #[pymodule_export]
    use super::device::{DeviceArray, DeviceTable};
    #[pymodule_export]
    use super::relation::relate;
    #[pymodule_export]
    use super::set::{build_set, is_set, rebuild_set, sweep};
    #[pymodule_export]
    use super::table::Table;
}
