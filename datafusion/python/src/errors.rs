//! Exceptions.

use datafusion::error::DataFusionError;
use pleach_datafusion::Error;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// Makes an exception of the class with this name in `pleach_datafusion.errors`.
pub(crate) fn exception(py: Python<'_>, class: &str, text: String) -> PyErr {
    let made = py.import("pleach_datafusion.errors").and_then(|errors| errors.getattr(class)?.call1((text,)));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// Makes the exception of an error of a file or a set.
pub(crate) fn own(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind().code() {
        "not-found" => "NotFoundError",
        "damaged" | "foreign" | "newer" | "older" => "DamagedError",
        "usage" | "types-differ" => "InputError",
        "out-of-memory" => return PyMemoryError::new_err(error.to_string()),
        _ => "PleachError",
    };
    exception(py, class, error.to_string())
}

/// Makes the exception of an error of the engine.
pub(crate) fn engine(py: Python<'_>, error: &DataFusionError) -> PyErr {
    if let Some(error) = Error::inside(error) {
        return own(py, error);
    }
    let root = error.find_root();
    let class = match root {
        DataFusionError::SQL(..)
        | DataFusionError::Plan(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::Configuration(_)
        | DataFusionError::NotImplemented(_) => "InputError",
        _ => "PleachError",
    };
    exception(py, class, Error::line_of(error))
}
