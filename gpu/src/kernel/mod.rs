//! Kernels: their sources, the instances of each, and how they are compiled and launched.
//!
//! A *source* is a CUDA C++ text. An *instance* is a source with the numbers it is compiled for: bytes of a word and of
//! a value, and one more of its own (threads a query, say). Its *entries* are the functions that can be launched,
//! each through a typed function of [`table`]; nothing is launched otherwise. Numbers that Rust and CUDA share go
//! from here into the text as definitions, sizes of argument structs among them, which the text asserts.

pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod embedded;
pub(crate) mod table;

use crate::GpuError;
use crate::driver::Program;
use crate::image::{FANOUT, LEVELS_MAX};
use pleach_format::LineGeometry;
pub(crate) use table::Source;

/// A source with the numbers it is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Instance {
    /// Which source.
    pub(crate) source: Source,
    /// Bytes of a word: 4, 8, 16.
    pub(crate) word_bytes: u8,
    /// Bytes of a value: 0, 4, 8.
    pub(crate) value_bytes: u8,
    /// A number of the source's own, see [`Source::option_name`]; 0 if it has none.
    pub(crate) option: u16,
}

impl Instance {
    /// Its definitions, in order.
    pub(crate) fn defines(self) -> Vec<(&'static str, u64)> {
        let lines = LineGeometry::new(self.word_bytes.into(), self.value_bytes.into());
        let mut defines = vec![
            ("WORD_BYTES", u64::from(self.word_bytes)),
            ("VALUE_BYTES", self.value_bytes.into()),
            ("TUPLES", lines.tuples_per_line() as u64),
            ("VALUES_AT", lines.values_at() as u64),
            ("FANOUT", FANOUT as u64),
            ("LEVELS_MAX", LEVELS_MAX as u64),
        ];
        if let Some(name) = self.source.option_name() {
            defines.push((name, self.option.into()));
        }
        defines.extend(self.source.sizes());
        defines
    }

    /// Its whole text: what all kernels share, then the source.
    pub(crate) fn text(self) -> String {
        let name = self.source.name();
        format!("{}\n#line 1 \"{name}\"\n{}", include_str!("../kernels/common.cuh"), self.source.text())
    }

    /// Calls with its program.
    pub(crate) fn with_program<T>(
        self,
        with: impl FnOnce(&Program<'_>) -> Result<T, GpuError>,
    ) -> Result<T, GpuError> {
        let (text, defines) = (self.text(), self.defines());
        let source = self.source;
        with(&Program { name: source.name(), text: &text, defines: &defines, entries: source.entries(self) })
    }

    /// All instances, of all sources: what is embedded, and what tests compile.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compile all instances"))]
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for &source in Source::ALL {
            for word_bytes in [4, 8, 16] {
                for value_bytes in [0, 4, 8] {
                    for &option in source.options() {
                        let instance = Self { source, word_bytes, value_bytes, option };
                        if source.has(instance) {
                            all.push(instance);
                        }
                    }
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::compile::{Compiler, options};

    /// Registers that a thread of a block of 1024 may have.
    const REGISTERS_MAX: u32 = 64;

    #[test]
    fn kernels_compile_without_spills_where_the_compiler_is() {
        let Some(compiler) = Compiler::find() else {
            assert!(std::env::var_os("PLEACH_REQUIRE_NVRTC").is_none(), "NVRTC is not installed");
            return eprintln!("SKIPPED: NVRTC is not installed");
        };
        // One instance of each source and word; values of the words' width, or none beside 16 bytes.
        for instance in Instance::all() {
            let Instance { source, word_bytes, value_bytes, option } = instance;
            let first = source.options().first().copied() == Some(option);
            if !first || value_bytes != if word_bytes == 16 { 0 } else { word_bytes } {
                continue;
            }
            let log = instance.with_program(|program| {
                let mut options = options(program, "sm_90");
                options.push("--ptxas-options=-v".to_owned());
                compiler.compile(program, &options, true).map(|compiled| compiled.log)
            });
            let log = log.unwrap_or_else(|error| panic!("{instance:?}: {error}"));
            for line in log.lines().filter(|line| line.contains("bytes spill stores")) {
                assert!(line.contains(" 0 bytes spill stores"), "{instance:?}: {line}");
            }
            // Searches through the image run in blocks of 1024 threads.
            for entry in ["'spine_values'", "'spine_ranks'"].into_iter().filter(|_| source == Source::Spine) {
                let of_entry =
                    log.lines().skip_while(|line| !line.contains("Compiling") || !line.contains(entry));
                let used = of_entry.filter_map(|line| line.split("Used ").nth(1)).next().unwrap_or_default();
                let number = used.split(' ').next().and_then(|number| number.parse::<u32>().ok());
                assert!(
                    number.is_some_and(|number| number <= REGISTERS_MAX),
                    "{instance:?}: {entry}: {used}"
                );
            }
        }
    }
}
