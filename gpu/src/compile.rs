//! Kernels: CUDA C++ that NVRTC compiles for the device at hand.

use crate::{GpuError, Unavailable};
use cudarc::nvrtc::{CompileError, CompileOptions, Ptx, compile_ptx_with_opts};

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
    /// The spine search for words and values of so many bytes, in lines of so many tuples.
    pub(crate) fn spine(word_bytes: usize, value_bytes: usize, tuples: usize, values_at: usize) -> Self {
        Self {
            name: "spine.cu",
            source: include_str!("kernels/spine.cu"),
            defines: vec![
                ("WORD_BYTES", word_bytes as u64),
                ("VALUE_BYTES", value_bytes as u64),
                ("TUPLES", tuples as u64),
                ("VALUES_AT", values_at as u64),
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

/// The virtual architecture for a device of this compute capability: the newest that kernels are written for and
/// the device runs.
pub(crate) fn architecture((major, minor): (i32, i32)) -> &'static str {
    match (major, minor) {
        (9.., _) => "compute_90",
        (8, _) => "compute_80",
        _ => "compute_75",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_compiles_where_the_compiler_is() {
        for (word_bytes, value_bytes, tuples, values_at) in
            [(4, 0, 16, 64), (4, 4, 8, 32), (4, 8, 5, 24), (8, 0, 8, 64), (8, 4, 5, 44), (8, 8, 4, 32)]
        {
            for architecture in ["compute_75", "compute_80", "compute_90"] {
                match Kernel::spine(word_bytes, value_bytes, tuples, values_at).compile(architecture) {
                    Ok(ptx) => assert!(ptx.to_src().contains("spine_values")),
                    Err(GpuError::Unavailable(missing)) => return eprintln!("SKIPPED: {missing}"),
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}
