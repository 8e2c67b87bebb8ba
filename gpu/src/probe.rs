//! Asks the CUDA driver for its devices.
//!
//! cudarc panics when a library is missing, so each library is looked for first.

use crate::{Device, Unavailable};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute as Attribute};

pub(crate) fn devices() -> Result<Vec<Device>, Unavailable> {
    // SAFETY: the call loads the library and closes it again; its initialisers are the driver's own, which
    // every CUDA program runs.
    if !unsafe { sys::is_culib_present() } {
        return Err(Unavailable {
            missing: "the CUDA driver library (libcuda) is not installed: install the NVIDIA driver".into(),
        });
    }
    result::init().map_err(|error| refused("cuInit", error))?;
    let count = result::device::get_count().map_err(|error| refused("cuDeviceGetCount", error))?;
    if count <= 0 {
        return Err(Unavailable { missing: "the driver has no device: check `nvidia-smi`".into() });
    }
    let driver = driver_version()?;
    // SAFETY: the call loads the library of the run-time compiler and closes it again; its initialisers are
    // NVIDIA's own.
    let nvrtc = unsafe { cudarc::nvrtc::sys::is_culib_present() };
    (0..count).map(|ordinal| describe(ordinal, driver, nvrtc)).collect()
}

fn refused(call: &str, error: DriverError) -> Unavailable {
    Unavailable { missing: format!("the driver refused {call}: {error:?}: check `nvidia-smi`") }
}

fn driver_version() -> Result<(u32, u32), Unavailable> {
    let mut version = 0;
    // SAFETY: the library is present; the call writes one int through a valid pointer.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .map_err(|error| refused("cuDriverGetVersion", error))?;
    let version = version.unsigned_abs();
    Ok((version / 1000, version % 1000 / 10))
}

fn describe(ordinal: i32, driver: (u32, u32), nvrtc: bool) -> Result<Device, Unavailable> {
    let device = result::device::get(ordinal).map_err(|error| refused("cuDeviceGet", error))?;
    let name = result::device::get_name(device).map_err(|error| refused("cuDeviceGetName", error))?;
    // SAFETY: `device` was returned by `get`.
    let memory =
        unsafe { result::device::total_mem(device) }.map_err(|error| refused("cuDeviceTotalMem", error))?;
    Ok(Device {
        ordinal: ordinal.unsigned_abs(),
        name,
        memory_bytes: memory as u64,
        l2_bytes: attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        compute: (
            attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        driver,
        nvrtc,
    })
}

/// Returns an attribute that is a count.
fn attribute(device: CUdevice, which: Attribute) -> Result<u32, Unavailable> {
    // SAFETY: every caller passes a device that `get` returned.
    let value = unsafe { result::device::get_attribute(device, which) }
        .map_err(|error| refused("cuDeviceGetAttribute", error))?;
    Ok(value.unsigned_abs())
}
