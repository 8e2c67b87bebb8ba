//! What can go wrong on a GPU.

use crate::Unavailable;
use pleach::{KeyType, ReadError, TypeError, ValueType};

/// Why a GPU did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no device, driver or run-time compiler.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A call that the driver refused.
    #[error("GPU: {call}: {cause}: check `nvidia-smi`, or search on the CPU")]
    Driver {
        /// What was asked of it.
        call: &'static str,
        /// What it answered.
        cause: String,
    },
    /// A kernel that did not compile: a defect of ours, or of the compiler installed here.
    #[error("GPU: kernel `{kernel}` did not compile: {log}")]
    Compile {
        /// Name of the kernel's source.
        kernel: &'static str,
        /// What the compiler said.
        log: String,
    },
    /// Keys or values that no kernel searches.
    #[error("GPU: keys of type {key} with values of type {value} are not searched there: search on the CPU")]
    Types {
        /// Key type of the file.
        key: KeyType,
        /// Value type of the file.
        value: ValueType,
    },
    /// Not the types of the file.
    #[error(transparent)]
    Asked(#[from] TypeError),
    /// A buffer of the wrong length.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The table does not fit the device.
    #[error("GPU: the table needs {needed} bytes, and {free} are free: search on the CPU")]
    Memory {
        /// Bytes of the table and its image.
        needed: u64,
        /// Bytes that the device has left.
        free: u64,
    },
}

impl GpuError {
    /// For `map_err`: names the call that was refused.
    pub(crate) fn driver(call: &'static str) -> impl FnOnce(cudarc::driver::DriverError) -> Self {
        move |error| Self::Driver { call, cause: format!("{error:?}") }
    }
}
