//! Compiles a kernel's text to code for a device.
//!
//! Code comes from the disk cache, from NVRTC or from the embedded PTX, in this order. NVRTC makes machine
//! code for the device itself if it knows it; every driver of the same major version loads that (it would not
//! load PTX of a newer compiler). Otherwise NVRTC makes PTX for the newest architecture that both know. The
//! result is cached under a hash of text, options, architecture and compiler.

use super::row::Instance;
use super::{cache, embedded};
use crate::driver::Program;
use crate::{GpuError, Unavailable};
use cudarc::nvrtc::result as nvrtc;
use cudarc::nvrtc::sys;
use std::ffi::{CString, c_char};

/// Returns code that the driver loads: a cubin, or PTX that ends in a zero byte.
pub(crate) fn code(program: &Program<'_>, compute: (u32, u32)) -> Result<Vec<u8>, GpuError> {
    let Some(compiler) = Compiler::find() else {
        return embedded::ptx(program, compute).ok_or_else(|| {
            Unavailable {
                missing:
                    "NVRTC (libnvrtc) is not installed, and this kernel is not embedded: install the CUDA \
                          toolkit's run-time compiler"
                        .into(),
            }
            .into()
        });
    };
    let target = compiler.target(compute);
    let options = options(program, &target);
    let key = cache::key(program.text, &options, &compiler.version());
    if let Some(code) = cache::get(&key) {
        return Ok(code);
    }
    let code = compiler.compile(program, &options, target.starts_with("sm_"))?.code;
    cache::put(&key, &code);
    Ok(code)
}

/// Returns the options of a program for a target such as `sm_90` or `compute_90`.
pub(crate) fn options(program: &Program<'_>, target: &str) -> Vec<String> {
    let mut options = vec![
        format!("--gpu-architecture={target}"),
        "--std=c++17".to_owned(),
        "--device-int128".to_owned(),
        "--generate-line-info".to_owned(),
    ];
    options.extend(program.defines.iter().map(|(name, number)| format!("-D{name}={number}")));
    options
}

/// Output of NVRTC.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// Machine code, or PTX that ends in a zero byte.
    pub(crate) code: Vec<u8>,
    /// Messages of the compiler; for machine code, with the option `--ptxas-options=-v`, also registers,
    /// stack and spills.
    pub(crate) log: String,
}

/// NVRTC, which is installed.
#[derive(Clone, Copy, Debug)]
pub struct Compiler {
    major: i32,
    minor: i32,
}

impl Compiler {
    /// Returns the compiler; `None` if it is not installed.
    #[must_use]
    pub fn find() -> Option<Self> {
        // SAFETY: the call loads the library and closes it again; its initialisers are the compiler's own.
        if !unsafe { sys::is_culib_present() } {
            return None;
        }
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the library is present; the call writes two numbers through valid pointers.
        unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) }.result().ok()?;
        Some(Self { major, minor })
    }

    /// Returns the version, such as `12.0`.
    #[must_use]
    pub fn version(self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    /// Returns the real architectures that it compiles for, as 90 for `sm_90`.
    fn architectures(self) -> Vec<i32> {
        let mut count = 0;
        // SAFETY: the library is present; the call writes one number through a valid pointer.
        if unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) }.result().is_err() {
            return Vec::new();
        }
        let mut all = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: `all` has room for as many numbers as the call above reported.
        match unsafe { sys::nvrtcGetSupportedArchs(all.as_mut_ptr()) }.result() {
            Ok(()) => all,
            Err(_) => Vec::new(),
        }
    }

    /// Returns true if it makes machine code for a target such as `sm_90`.
    #[must_use]
    pub fn knows(self, target: &str) -> bool {
        self.architectures().iter().any(|arch| target == format!("sm_{arch}"))
    }

    /// Returns the target for a device.
    pub(crate) fn target(self, compute: (u32, u32)) -> String {
        let wanted = (compute.0 * 10 + compute.1).cast_signed();
        let known = self.architectures();
        if known.contains(&wanted) {
            return format!("sm_{wanted}");
        }
        let newest = known.into_iter().filter(|&arch| arch < wanted).max().unwrap_or(75);
        format!("compute_{newest}")
    }

    /// Returns what the assembler says of an instance for an architecture such as `sm_90`: registers, stack
    /// and spills of each entry.
    ///
    /// # Errors
    /// [`GpuError::Compile`] with the log.
    pub fn resources(self, instance: Instance, architecture: &str) -> Result<String, GpuError> {
        instance.with_program(|program| {
            let mut options = options(program, architecture);
            options.push("--ptxas-options=-v".to_owned());
            self.compile(program, &options, true).map(|compiled| compiled.log)
        })
    }

    /// Compiles a program.
    ///
    /// # Errors
    /// [`GpuError::Compile`] with the log.
    pub(crate) fn compile(
        self,
        program: &Program<'_>,
        options: &[String],
        is_machine: bool,
    ) -> Result<Compiled, GpuError> {
        let failed = |log: String| GpuError::Compile { kernel: program.name, log };
        let say = |error: nvrtc::NvrtcError| failed(format!("{error:?}"));
        let text = CString::new(program.text).map_err(|error| failed(error.to_string()))?;
        let name = CString::new(program.name).map_err(|error| failed(error.to_string()))?;
        let handle = nvrtc::create_program(&text, Some(&name)).map_err(say)?;
        // SAFETY: the program was made above; text and name live until it is destroyed.
        let compiled = unsafe { nvrtc::compile_program(handle, options) };
        // SAFETY: the program was made above and is not yet destroyed.
        let log: Vec<u8> = unsafe { nvrtc::get_program_log(handle) }
            .unwrap_or_default()
            .into_iter()
            .flat_map(c_char::to_le_bytes)
            .take_while(|&byte| byte != 0)
            .collect();
        let log = String::from_utf8_lossy(&log).into_owned();
        let code = match compiled {
            Err(_) => Err(failed(log.clone())),
            // SAFETY: the program was made above, is compiled and is not yet destroyed.
            Ok(()) if is_machine => unsafe { machine_code(handle) }.map_err(say),
            // SAFETY: the program was made above, is compiled and is not yet destroyed.
            Ok(()) => unsafe { nvrtc::get_ptx(handle) }
                .map(|ptx| ptx.into_iter().flat_map(c_char::to_le_bytes).collect())
                .map_err(say),
        };
        // SAFETY: the program was made above, and is not used below.
        let _ = unsafe { nvrtc::destroy_program(handle) };
        Ok(Compiled { code: code?, log })
    }
}

/// Returns the machine code of a compiled program.
///
/// # Safety
/// The program must be compiled for a real architecture and not destroyed.
unsafe fn machine_code(program: sys::nvrtcProgram) -> Result<Vec<u8>, nvrtc::NvrtcError> {
    let mut bytes = 0;
    // SAFETY: the caller guarantees the program; the call writes one number through a valid pointer.
    unsafe { sys::nvrtcGetCUBINSize(program, &raw mut bytes) }.result()?;
    let mut code = vec![0u8; bytes];
    // SAFETY: the caller guarantees the program; `code` has as many bytes as the call above reported.
    unsafe { sys::nvrtcGetCUBIN(program, code.as_mut_ptr().cast()) }.result()?;
    Ok(code)
}
