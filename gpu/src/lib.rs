//! Searches Pleach tables on NVIDIA GPUs.
//!
//! [`devices`] lists the GPUs that the CUDA driver offers, or reports what is missing. A [`Gpu`] is an open
//! device. A [`GpuTable`] holds a file's tuple lines on it (or in pinned host memory), and above them the
//! structure that an [`Algorithm`] descends.
//!
//! A table answers batches as [`pleach::Typed`] does: from host to host, or between device buffers on the
//! caller's [`Stream`], without waiting. Kernels are compiled by NVRTC for the present device, or taken from
//! this program.
//!
//! Data flows one way: file, `resident` (tuple lines where the device reads them), `algorithm` (structure and
//! launch), `kernel` (the rows of kernels and their entries), `driver` (CUDA, or in tests a CPU that runs
//! the kernels' text).
//!
//! The driver is loaded at its first use, so a program that links this crate runs on machines without CUDA,
//! and nothing here panics there.

mod algorithm;
mod all;
pub mod btree;
pub mod build;
mod driver;
mod error;
pub mod fine;
mod follow;
mod foreign;
mod gpu;
mod host;
pub mod image;
#[doc(hidden)]
pub mod internal;
mod kernel;
mod memory;
mod near;
mod pending;
pub mod plan;
mod probe;
mod recorded;
pub mod relation;
mod resident;
mod stored;
mod stream;
mod strings;
mod table;

pub use algorithm::{
    Algorithm, BtreeForm, ChildRegion, FastForm, Group, HarmoniaForm, HarmoniaSearch, QuerySort, Scan,
    SectionTree,
};
pub use all::AllTuples;
#[cfg(feature = "emulate")]
pub use driver::emulated::{LaneOrder, TextKernel, sanitizer_environment};
pub use error::GpuError;
pub use follow::LiveTable;
pub use foreign::{Foreign, Lane, LookUp};
pub use gpu::{Gpu, GpuOptions};
pub use host::PinnedBatch;
pub use memory::{DeviceBuffer, PinnedBuffer};
pub use near::NearBuffers;
pub use pending::Pending;
pub use recorded::{Recorded, RecordedBatch};
pub use resident::Residence;
pub use stream::{Event, Stream};
pub use table::{Answers, GpuTable};

/// A GPU as its driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Ordinal of the device, as in `cuda:0`.
    pub ordinal: u32,
    /// Name given by the manufacturer.
    pub name: String,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of the level 2 cache.
    pub l2_bytes: u64,
    /// Compute capability, major and minor.
    pub compute: (u32, u32),
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Version of CUDA that the driver supports, major and minor.
    pub driver: (u32, u32),
    /// True if NVRTC, which compiles kernels for this device, is installed.
    pub nvrtc: bool,
}

/// Error: no GPU can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no GPU: {missing}")]
pub struct Unavailable {
    /// The missing part, and how to get it.
    pub missing: String,
}

/// Returns the GPUs of this machine; at least one.
///
/// The first call loads the CUDA driver, which takes some milliseconds to a second where there is one. No
/// context is created and nothing is allocated on the device.
///
/// # Errors
/// [`Unavailable`] if there is no driver library, if the driver fails, or if it has no device.
pub fn devices() -> Result<Vec<Device>, Unavailable> {
    probe::devices()
}

/// The program of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    #[test]
    fn probing_never_panics() {
        match super::devices() {
            Ok(devices) => assert!(!devices.is_empty() && devices.iter().all(|gpu| gpu.memory_bytes > 0)),
            Err(error) => assert!(error.to_string().starts_with("no GPU: ")),
        }
    }
}
