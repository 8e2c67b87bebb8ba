//! The exception of an error.

use pleach::Error;
use pleach_batch::BatchError;
use pleach_builder::BuildError;
use pleach_relation::RelationError;
use pleach_set::SetError;
use pyo3::prelude::*;

/// Makes an exception of the class with this name in `pleachdb.errors`.
pub(crate) fn exception(class: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let made = py.import("pleachdb.errors").and_then(|errors| errors.getattr(class)?.call1((text,)));
        match made {
            Ok(value) => PyErr::from_value(value),
            Err(error) => error,
        }
    })
}

/// Returns the class for the name of a kind of error, which the command line prints with `--json`, too.
pub(crate) fn class(kind: &str) -> &'static str {
    match kind {
        "not-found" => "NotFoundError",
        "types-differ" => "TypesError",
        "damaged" | "foreign" | "newer" | "older" => "DamagedError",
        "usage" | "input" => "InputError",
        "device" => "DeviceError",
        _ => "PleachError",
    }
}

/// Makes the exception of an error of the reader.
pub(crate) fn reading(error: &Error) -> PyErr {
    exception(class(error.kind().code()), error.to_string())
}

/// Makes the exception of an error of a batch.
pub(crate) fn batch(error: &BatchError) -> PyErr {
    match error {
        BatchError::Pleach(error) => reading(error),
        BatchError::Keys { .. } | BatchError::Values { .. } | BatchError::Refused(_) => {
            exception("TypesError", error.to_string())
        }
        BatchError::Damaged { .. } => exception("DamagedError", error.to_string()),
        BatchError::Expression(_) => exception("InputError", error.to_string()),
        BatchError::Build(error) => building(error),
        BatchError::Relation(error) => relation(error),
        BatchError::Set(error) => set(error),
        BatchError::Short { .. } => exception("InputError", error.to_string()),
        BatchError::Memory { .. } => pyo3::exceptions::PyMemoryError::new_err(error.to_string()),
        BatchError::Interrupted => pyo3::exceptions::PyKeyboardInterrupt::new_err(()),
        _ => exception("PleachError", error.to_string()),
    }
}

/// Makes the exception of an error of a set.
pub(crate) fn set(error: &SetError) -> PyErr {
    match error {
        SetError::Build(inner) => {
            let found = inner.get_ref().and_then(|inner| inner.downcast_ref::<BuildError>());
            found.map_or_else(|| reading(inner), building)
        }
        SetError::File { source, .. } => reading(source),
        SetError::Lost { .. } | SetError::Stale { .. } => exception("BuildError", error.to_string()),
        _ => exception(class(error.kind().code()), error.to_string()),
    }
}

/// Makes the exception of an error of a relational operator.
fn relation(error: &RelationError) -> PyErr {
    match error {
        RelationError::Build(error) => building(error),
        RelationError::Interrupted => pyo3::exceptions::PyKeyboardInterrupt::new_err(()),
        RelationError::KeyTypes { .. }
        | RelationError::ValueTypes { .. }
        | RelationError::NoReduction { .. }
        | RelationError::NoField { .. }
        | RelationError::Reductions { .. }
        | RelationError::NoDistance { .. } => exception("TypesError", error.to_string()),
        RelationError::Damaged { .. } => exception("DamagedError", error.to_string()),
        RelationError::Expression(_)
        | RelationError::Overflow { .. }
        | RelationError::TooLarge { .. }
        | RelationError::Rescale { .. }
        | RelationError::Distance { .. }
        | RelationError::NoHow { .. }
        | RelationError::Approximate { .. }
        | RelationError::NoIndex { .. } => exception("InputError", error.to_string()),
        _ => exception("PleachError", error.to_string()),
    }
}

/// Makes the exception of a failed build.
pub(crate) fn building(error: &BuildError) -> PyErr {
    match error {
        BuildError::Interrupted => pyo3::exceptions::PyKeyboardInterrupt::new_err(()),
        BuildError::Source(_)
        | BuildError::Unsorted { .. }
        | BuildError::Duplicate { .. }
        | BuildError::Sum { .. }
        | BuildError::NoSum { .. }
        | BuildError::Approximate { .. }
        | BuildError::Overlap { .. } => exception("InputError", error.to_string()),
        BuildError::Types { .. } => exception("TypesError", error.to_string()),
        _ => exception("BuildError", error.to_string()),
    }
}
