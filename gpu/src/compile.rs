//! Kernels: CUDA C++ that NVRTC compiles for the device at hand.

use crate::image::{FANOUT, LEVELS_MAX};
use crate::{GpuError, Unavailable};
use cudarc::nvrtc::{CompileError, CompileOptions, Ptx, compile_ptx_with_opts};
use pleach_format::LineGeometry;

/// Threads of a block.
pub(crate) const THREADS: u32 = 1024;

/// A source with what it is compiled for.
pub(crate) struct Kernel {
    /// Name, for messages.
    pub(crate) name: &'static str,
    /// Its text.
    pub(crate) source: &'static str,
    /// Numbers that it takes from here.
    pub(crate) defines: Vec<(&'static str, u64)>,
}

impl Kernel {
    /// The spine search in such tuple lines.
    pub(crate) fn spine(lines: LineGeometry) -> Self {
        Self {
            name: "spine.cu",
            source: include_str!("kernels/spine.cu"),
            defines: vec![
                ("WORD_BYTES", lines.key_bytes as u64),
                ("VALUE_BYTES", lines.value_bytes as u64),
                ("TUPLES", lines.tuples_per_line() as u64),
                ("VALUES_AT", lines.values_at() as u64),
                ("THREADS", THREADS.into()),
                ("LEVELS_MAX", LEVELS_MAX as u64),
                ("FANOUT", FANOUT as u64),
            ],
        }
    }

    /// PTX for a virtual architecture, as `compute_90`.
    ///
    /// # Errors
    /// [`GpuError::Unavailable`] without NVRTC, [`GpuError::Compile`] with its log.
    pub(crate) fn compile(&self, architecture: &'static str) -> Result<Ptx, GpuError> {
        // SAFETY: loads the library and lets go of it again; its initialisers are the compiler's own.
        if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
            return Err(Unavailable {
                missing: "NVRTC (libnvrtc) is not installed: install the CUDA toolkit's run-time compiler"
                    .into(),
            }
            .into());
        }
        let mut options = vec!["--std=c++17".to_owned(), "--generate-line-info".to_owned()];
        options.extend(self.defines.iter().map(|(name, number)| format!("-D{name}={number}")));
        let options = CompileOptions {
            arch: Some(architecture),
            name: Some(self.name.to_owned()),
            options,
            ..CompileOptions::default()
        };
        compile_ptx_with_opts(self.source, options).map_err(|error| GpuError::Compile {
            kernel: self.name,
            log: match error {
                CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
                other => format!("{other:?}"),
            },
        })
    }
}

/// The newest virtual architecture that kernels are written for and a device of this major capability runs.
pub(crate) fn architecture(major: i32) -> &'static str {
    match major {
        9.. => "compute_90",
        8 => "compute_80",
        _ => "compute_75",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_compiles_where_the_compiler_is() {
        for (word_bytes, value_bytes) in [(4, 0), (4, 4), (4, 8), (8, 0), (8, 4), (8, 8)] {
            for architecture in ["compute_75", "compute_80", "compute_90"] {
                match Kernel::spine(LineGeometry::new(word_bytes, value_bytes)).compile(architecture) {
                    Ok(ptx) => assert!(ptx.to_src().contains("spine_values")),
                    Err(GpuError::Unavailable(missing)) => return eprintln!("SKIPPED: {missing}"),
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}
