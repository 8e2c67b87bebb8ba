//! What a call returns, and the last error of a thread.

use pleach_batch::BatchError;
use pleach_builder::BuildError;
use pleach_relation::RelationError;
use pleach_set::SetError;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call returns. Later versions may add values.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum pleach_status {
    /// It was done.
    PLEACH_OK = 0,
    /// There is no such file.
    PLEACH_NOT_FOUND = 1,
    /// The file is damaged, or it is not a Pleach file of a version that is read.
    PLEACH_DAMAGED = 2,
    /// Keys, values or buffers have another type than the file.
    PLEACH_TYPES = 3,
    /// An argument or the input of a build is not valid.
    PLEACH_INPUT = 4,
    /// A buffer is too short; where the function has `needed`, that is its length.
    PLEACH_TOO_SHORT = 5,
    /// There is not enough memory.
    PLEACH_MEMORY = 6,
    /// The caller's progress function stopped it. Nothing was written.
    PLEACH_INTERRUPTED = 7,
    /// A file could not be written.
    PLEACH_BUILD = 8,
    /// Another error of the system.
    PLEACH_SYSTEM = 9,
    /// A defect of this library; please report it.
    PLEACH_DEFECT = 10,
}
use pleach_status as Status;

/// A status and its sentence: what, where, what to do.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Status, pub(crate) String);

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Makes a failure of an invalid argument.
pub(crate) fn input(text: impl Into<String>) -> Failure {
    Failure(Status::PLEACH_INPUT, text.into())
}

/// Returns the status for the stable name of a kind of error.
pub(crate) fn of_kind(kind: &str) -> Status {
    match kind {
        "not-found" => Status::PLEACH_NOT_FOUND,
        "damaged" | "foreign" | "newer" | "older" => Status::PLEACH_DAMAGED,
        "types-differ" => Status::PLEACH_TYPES,
        "usage" | "input" => Status::PLEACH_INPUT,
        "out-of-memory" => Status::PLEACH_MEMORY,
        "interrupted" => Status::PLEACH_INTERRUPTED,
        "would-overwrite" | "too-large" | "busy" | "no-space" => Status::PLEACH_BUILD,
        _ => Status::PLEACH_SYSTEM,
    }
}

impl From<reader::Error> for Failure {
    fn from(error: reader::Error) -> Self {
        Self(of_kind(error.kind().code()), error.to_string())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self(of_build(&error), error.to_string())
    }
}

/// Returns the status of a failed build.
fn of_build(error: &BuildError) -> Status {
    match error {
        BuildError::Interrupted => Status::PLEACH_INTERRUPTED,
        BuildError::Source(_)
        | BuildError::Unsorted { .. }
        | BuildError::Duplicate { .. }
        | BuildError::Sum { .. }
        | BuildError::NoSum { .. }
        | BuildError::Approximate { .. }
        | BuildError::Overlap { .. } => Status::PLEACH_INPUT,
        BuildError::Types { .. } => Status::PLEACH_TYPES,
        BuildError::Damaged { .. } | BuildError::Base { .. } => Status::PLEACH_DAMAGED,
        BuildError::OutOfMemory { .. } => Status::PLEACH_MEMORY,
        _ => Status::PLEACH_BUILD,
    }
}

impl From<SetError> for Failure {
    fn from(error: SetError) -> Self {
        let status = match &error {
            SetError::Build(inner) => {
                let found = inner.get_ref().and_then(|inner| inner.downcast_ref::<BuildError>());
                found.map_or_else(|| of_kind(inner.kind().code()), of_build)
            }
            SetError::Lost { .. } | SetError::Stale { .. } => Status::PLEACH_BUILD,
            _ => of_kind(error.kind().code()),
        };
        Self(status, error.to_string())
    }
}

impl From<RelationError> for Failure {
    fn from(error: RelationError) -> Self {
        let status = match error {
            RelationError::Build(error) => return error.into(),
            RelationError::Interrupted => Status::PLEACH_INTERRUPTED,
            RelationError::KeyTypes { .. }
            | RelationError::ValueTypes { .. }
            | RelationError::NoReduction { .. }
            | RelationError::Approximate { .. }
            | RelationError::NoDistance { .. } => Status::PLEACH_TYPES,
            RelationError::Damaged { .. } => Status::PLEACH_DAMAGED,
            _ => Status::PLEACH_INPUT,
        };
        Self(status, error.to_string())
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        let status = match error {
            BatchError::Pleach(error) => return error.into(),
            BatchError::Build(error) => return (*error).into(),
            BatchError::Relation(error) => return (*error).into(),
            BatchError::Set(error) => return (*error).into(),
            BatchError::Keys { .. } | BatchError::Values { .. } | BatchError::Refused(_) => {
                Status::PLEACH_TYPES
            }
            BatchError::Damaged { .. } => Status::PLEACH_DAMAGED,
            BatchError::Short { .. } => Status::PLEACH_TOO_SHORT,
            BatchError::Memory { .. } => Status::PLEACH_MEMORY,
            BatchError::Expression(_) => Status::PLEACH_INPUT,
            BatchError::Interrupted => Status::PLEACH_INTERRUPTED,
            _ => Status::PLEACH_SYSTEM,
        };
        Self(status, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<(Status, CString)> = RefCell::new((Status::PLEACH_OK, CString::default()));
}

/// Runs a call, and remembers its error. A panic becomes an error.
pub(crate) fn guard(call: impl FnOnce() -> Result<()>) -> Status {
    let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Failure(Status::PLEACH_DEFECT, format!("a defect of the library: {text}: please report it")))
    });
    let (status, text) = match outcome {
        Ok(()) => (Status::PLEACH_OK, CString::default()),
        Err(Failure(status, text)) => (status, CString::new(text.replace('\0', " ")).unwrap_or_default()),
    };
    LAST.with(|last| *last.borrow_mut() = (status, text));
    status
}

/// Returns the status of this thread's last call.
#[unsafe(no_mangle)]
pub extern "C" fn pleach_last_error_code() -> pleach_status {
    LAST.with(|last| last.borrow().0)
}

/// Returns the sentence of this thread's last error: what, where, what to do. It is empty after a call that was done,
/// and valid until the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn pleach_last_error_text() -> *const c_char {
    LAST.with(|last| last.borrow().1.as_ptr())
}
