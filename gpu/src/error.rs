//! What can go wrong on a GPU.

use crate::Unavailable;
use pleach::{KeyType, OpenError, ReadError, TypeError, ValueType};

/// Why a GPU did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no device, driver or run-time compiler.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A call that the driver refused.
    #[error("GPU: {call} ({cause}): check `nvidia-smi`, or search on the CPU")]
    Driver {
        /// What was asked of it.
        call: &'static str,
        /// What it answered.
        cause: String,
    },
    /// The device does not work any more; what was open on it is lost.
    #[error("GPU: {call}: the device is lost ({cause}): check `nvidia-smi`, or search on the CPU")]
    Lost {
        /// What was asked of it.
        call: &'static str,
        /// What it answered.
        cause: String,
    },
    /// A kernel that did not compile: a defect of ours, or of the compiler installed here.
    #[error("GPU: a kernel did not compile ({log}): {kernel}: please report this, or search on the CPU")]
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
    /// A buffer of the device that is too short.
    #[error("GPU: buffer `{name}`: {needed} bytes are needed, it has {found}: pass a longer one")]
    Buffer {
        /// Which one.
        name: &'static str,
        /// Bytes that the batch needs.
        needed: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// More than the device has, or than it may use.
    #[error(
        "GPU: {needed} bytes are needed, and {free} are free there: raise the limit, or search on the CPU"
    )]
    Memory {
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are left.
        free: u64,
    },
    /// The driver has no memory left.
    #[error("GPU: {call}: out of memory: free some, or search on the CPU")]
    OutOfMemory {
        /// What was asked of it.
        call: &'static str,
    },
    /// An algorithm that does not search such a table.
    #[error("GPU: algorithm `{algorithm}`: {cause}: use `auto`")]
    Algorithm {
        /// Its name.
        algorithm: &'static str,
        /// Why not.
        cause: String,
    },
    /// The next generation of a file could not be opened; the old one stays.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Ranks of 32 bits of a table that has more tuples.
    #[error("GPU: {tuples} tuples have ranks of more than 32 bits: ask for ranks of 8 bytes")]
    Ranks {
        /// Tuples of the table.
        tuples: u64,
    },
    /// Relations or options that an operator does not take.
    #[error("GPU: {operator}: {cause}")]
    Operator {
        /// Which one.
        operator: &'static str,
        /// Why not, and what it takes.
        cause: String,
    },
    /// A condition that has no answer for a tuple: a number that does not fit, or a division by zero.
    #[error(
        "GPU: select: arithmetic of the condition has no result in the tuple of rank {rank}: exclude it, or \
         select on the CPU"
    )]
    Arithmetic {
        /// Its rank.
        rank: u64,
    },
    /// A sum that does not fit into 64 bits.
    #[error(
        "GPU: reduce: the sum of the values of key {key:#x} does not fit into 64 bits: sum narrower ones"
    )]
    Sum {
        /// Word of the key.
        key: u64,
    },
    /// Relations or options that the operators of `relation_paper` do not take.
    #[error("GPU: the paper's operators: {cause}")]
    PaperOperator {
        /// Why not.
        cause: String,
    },
}
