//! Pleach on NVIDIA GPUs.
//!
//! [`devices`] lists the GPUs that the CUDA driver offers, or says what is missing. A [`GpuTable`] is a file's
//! tuple lines on a device, with an image of its own above them ([`image`]); it answers batches as
//! [`pleach::Typed`] does. Kernels are compiled by NVRTC for the device at hand.
//!
//! The driver is loaded when it is first asked for, so a program that links this crate runs on
//! machines without CUDA, and nothing here panics there.

mod compile;
mod error;
pub mod image;
mod probe;
mod table;

pub use error::GpuError;
pub use table::{Gpu, GpuTable};

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
