//! Errors of work on a GPU.

use crate::Unavailable;
use pleach::{KeyType, OpenError, ReadError, TypeError, ValueType};

/// Error of an operation on a GPU.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// No device, driver or run-time compiler.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A driver call failed.
    #[error("the GPU driver failed in {call} ({cause}): check `nvidia-smi`, or search on the CPU")]
    Driver {
        /// The call that failed.
        call: &'static str,
        /// The driver's explanation.
        cause: String,
    },
    /// The device no longer works; everything that was open on it is lost.
    #[error("the GPU is lost: {call} ({cause}): check `nvidia-smi`, or search on the CPU")]
    Lost {
        /// The call that failed.
        call: &'static str,
        /// The driver's explanation.
        cause: String,
    },
    /// A kernel did not compile: a defect of this crate, or of the installed compiler.
    #[error("a GPU kernel did not compile: {kernel} ({log}): please report this, or search on the CPU")]
    Compile {
        /// Name of the kernel's source.
        kernel: &'static str,
        /// Messages of the compiler.
        log: String,
    },
    /// No kernel searches keys or values of these types.
    #[error("cannot search keys of type {key} with values of type {value} on a GPU: search on the CPU")]
    Types {
        /// Key type of the file.
        key: KeyType,
        /// Value type of the file.
        value: ValueType,
    },
    /// The requested types are not those of the file.
    #[error(transparent)]
    Asked(#[from] TypeError),
    /// Not all numbers of this type are keys of the file, or none is.
    #[error("types differ: the keys are {given}, but the file has {held} keys: {advice}")]
    Lane {
        /// Type of the keys.
        given: &'static str,
        /// Type of the file's keys.
        held: KeyType,
        /// What to do.
        advice: &'static str,
    },
    /// A host buffer is too short.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A device buffer is too short.
    #[error("GPU buffer `{name}` is too short: it has {found} bytes, {needed} are needed: pass a longer one")]
    Buffer {
        /// Name of the buffer.
        name: &'static str,
        /// Bytes that the batch needs.
        needed: u64,
        /// Bytes that the buffer has.
        found: u64,
    },
    /// An allocation needs more memory than the device has, or than the limit allows.
    #[error(
        "out of GPU memory: {needed} bytes are needed, and {free} are free: raise the limit, or search on the CPU"
    )]
    Memory {
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are left.
        free: u64,
    },
    /// The driver has no memory left.
    #[error("out of GPU memory: {call}: free some, or search on the CPU")]
    OutOfMemory {
        /// The call that failed.
        call: &'static str,
    },
    /// The algorithm cannot search this table.
    #[error("GPU algorithm `{algorithm}` cannot search this table: {cause}: use `auto`")]
    Algorithm {
        /// Name of the algorithm.
        algorithm: &'static str,
        /// Reason.
        cause: String,
    },
    /// The next generation of a file cannot be opened; the old one stays in use.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Ranks of 4 bytes were requested from a table with more than 2^32 - 1 tuples.
    #[error("GPU ranks do not fit into 32 bits: there are {tuples} tuples: request ranks of 8 bytes")]
    Ranks {
        /// Tuples of the table.
        tuples: u64,
    },
    /// An operator does not accept these relations or options.
    #[error("{operator} on a GPU: {cause}")]
    Operator {
        /// Name of the operator.
        operator: &'static str,
        /// Reason, and what the operator accepts.
        cause: String,
    },
    /// A condition has no result for a tuple: a number out of range, or a division by zero.
    #[error(
        "arithmetic of the condition has no result on a GPU: the tuple of rank {rank}: exclude it, or select \
         on the CPU"
    )]
    Arithmetic {
        /// Rank of the tuple.
        rank: u64,
    },
    /// A sum does not fit into 64 bits.
    #[error("a sum of values does not fit into 64 bits on a GPU: key {key:#x}: sum narrower ones")]
    Sum {
        /// Word of the key.
        key: u64,
    },
}
