//! Kernels: their sources, the instances of each, and how they are compiled and launched.
//!
//! A *source* is a CUDA C++ text. An *instance* is a source with the numbers it is compiled for: bytes of a
//! word and of a value, and one more of its own (threads per query, say). Its *entries* are the functions
//! that can be launched, each through a typed function of [`table`] and in no other way.
//!
//! Numbers that Rust and CUDA share are passed from here to the text as definitions. The sizes of argument
//! structs are among them, and the text asserts these.

pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod embedded;
#[cfg(test)]
mod limits;
pub(crate) mod table;

use crate::GpuError;
use crate::driver::Program;
use crate::image::{FANOUT, LEVELS_MAX, Lowest};
use pleach_format::LineGeometry;
pub(crate) use table::Source;

/// A source with the numbers it is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Instance {
    /// The source.
    pub(crate) source: Source,
    /// Bytes per word: 4, 8 or 16.
    pub(crate) word_bytes: u8,
    /// Bytes per value: 0, 4 or 8; 0 for a source that takes any.
    pub(crate) value_bytes: u8,
    /// A number with a meaning for this source, see [`Source::option_name`]; 0 if it has none.
    pub(crate) option: u16,
    /// Form of the lowest nodes, for Spine; [`Lowest::Codes16`] for all others.
    pub(crate) lowest: Lowest,
}

impl Instance {
    /// Returns the definitions, in order.
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
        defines.extend(self.source.sizes(self.word_bytes, self.lowest));
        defines
    }

    /// Returns the whole text: the part that all kernels share, then the source.
    pub(crate) fn text(self) -> String {
        let name = self.source.name();
        let common = include_str!("../kernels/common.cuh");
        let (shared, text) = (self.source.shared_text(), self.source.text());
        format!("{common}\n#line 1 \"image.cuh\"\n{shared}\n#line 1 \"{name}\"\n{text}")
    }

    /// Calls `with` with the instance's program.
    pub(crate) fn with_program<T>(
        self,
        with: impl FnOnce(&Program<'_>) -> Result<T, GpuError>,
    ) -> Result<T, GpuError> {
        let (text, defines) = (self.text(), self.defines());
        let source = self.source;
        with(&Program { name: source.name(), text: &text, defines: &defines, entries: source.entries(self) })
    }

    /// Returns all instances of all sources, which tests compile.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compile all instances"))]
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for &source in Source::ALL {
            for word_bytes in [4, 8, 16] {
                for value_bytes in [0, 4, 8] {
                    for &option in source.options() {
                        for lowest in [Lowest::Codes16, Lowest::Codes8] {
                            let instance = Self { source, word_bytes, value_bytes, option, lowest };
                            if source.has(instance) {
                                all.push(instance);
                            }
                        }
                    }
                }
            }
        }
        all
    }

    /// Returns the whole list; or, where `PLEACH_SAMPLE` is set, one instance for each source and width of
    /// words, so that every kernel is compiled. The choice depends on `text`.
    #[cfg(test)]
    pub(crate) fn wanted(all: Vec<Self>, text: &[u8]) -> Vec<Self> {
        if std::env::var_os("PLEACH_SAMPLE").is_none() || std::env::var_os("PLEACH_BLESS").is_some() {
            return all;
        }
        let mut groups = std::collections::BTreeMap::<_, Vec<Self>>::new();
        for instance in all {
            groups.entry((instance.source, instance.word_bytes)).or_default().push(instance);
        }
        let seed = text.iter().fold(0usize, |seed, &byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        groups.into_values().map(|group| group[seed % group.len()]).collect()
    }
}
