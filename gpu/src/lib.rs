//! Pleach on NVIDIA GPUs.
//!
//! [`devices`] lists the GPUs that the CUDA driver offers, or says what is missing. A [`Gpu`] is one that is open; a
//! [`GpuTable`] is a file's tuple lines on it (or pinned in host memory), with what an [`Algorithm`] descends above
//! them; it answers batches as [`pleach::Typed`] does: host to host, or between buffers of the device on a [`Stream`]
//! of the caller's, without waiting. Kernels are compiled by NVRTC for the device at hand, or come with this program.
//!
//! Data flows one way: file, `resident` (tuple lines where the device reads them), `algorithm` (structure and launch),
//! `kernel` (the table of what can be launched), `driver` (CUDA, or in tests a CPU that runs the kernels' text).
//!
//! The driver is loaded when it is first asked for, so a program that links this crate runs on
//! machines without CUDA, and nothing here panics there.

mod algorithm;
mod all;
pub mod btree;
pub mod build;
mod driver;
mod error;
mod follow;
mod gpu;
mod host;
pub mod image;
mod kernel;
pub mod measure;
mod memory;
pub mod plan;
mod probe;
mod recorded;
pub mod relation;
pub mod relation_paper;
mod resident;
mod stream;
mod strings;
mod table;

pub use algorithm::{
    Algorithm, BinaryForm, BtreeForm, ChildRegion, FastForm, Group, HarmoniaForm, PAryForm, QuerySort, Scan,
};
pub use all::AllTuples;
#[cfg(feature = "emulate")]
pub use driver::emulated::{LaneOrder, TextKernel, sanitizer_environment};
pub use error::GpuError;
pub use follow::LiveTable;
pub use gpu::{Gpu, GpuOptions};
pub use host::PinnedBatch;
pub use memory::{DeviceBuffer, PinnedBuffer};
pub use recorded::{Recorded, RecordedBatch};
pub use resident::Residence;
pub use stream::{Event, Pending, Stream};
pub use table::{Answers, GpuTable};

/// A GPU as its driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Number of the device, as in `cuda:0`.
    pub ordinal: u32,
    /// Name that the maker gave it.
    pub name: String,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Bytes of its level 2 cache.
    pub l2_bytes: u64,
    /// Compute capability, major and minor.
    pub compute: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Version of CUDA that the driver supports, major and minor.
    pub driver: (u32, u32),
    /// Whether NVRTC is installed, which compiles kernels for the device at hand.
    pub nvrtc: bool,
}

/// Why there is no GPU to use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no GPU: {missing}")]
pub struct Unavailable {
    /// What is missing, and what would bring it.
    pub missing: String,
}

/// The GPUs of this machine; at least one.
///
/// Loads the CUDA driver on the first call, which takes some milliseconds to a second where there is
/// one. Creates no context and allocates nothing on the device.
///
/// # Errors
/// [`Unavailable`] if there is no driver library, if the driver refuses, or if it has no device.
pub fn devices() -> Result<Vec<Device>, Unavailable> {
    probe::devices()
}

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
