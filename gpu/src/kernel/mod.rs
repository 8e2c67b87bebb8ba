//! Kernels: their rows, the instances of each, and how they are compiled and launched.
//!
//! A *source* is a CUDA C++ text. An *instance* is a source with the numbers it is compiled for: bytes of a
//! word and of a value, and one more of its own (threads per query, say). Its *entries* are the functions
//! that can be launched, each through a typed function that its [`row`] makes, and in no other way.
//!
//! Numbers that Rust and CUDA share are passed from here to the text as definitions. The sizes of argument
//! structs are among them, and the text asserts these.
//!
//! To add a kernel: its text in `kernels/`, its row and argument structs in the file that launches it, and
//! its name in the list of `rows.rs`, which tests compile.

pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod embedded;
#[cfg(test)]
mod limits;
pub(crate) mod row;
#[cfg(test)]
mod rows;

use crate::GpuError;
use crate::driver::Program;
use crate::image::{FANOUT, LEVELS_MAX, Lowest};
pub use compile::Compiler;
use pleach_format::LineGeometry;
pub use row::{Entry, Source, SourceSpec, Text};
#[cfg(test)]
use rows::{RECORD, RECORDED, ROWS};

/// A batch of queries and the addresses of its answers: `Batch` of common.cuh. An address of 0 means that
/// this answer is not requested.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Batch {
    /// Address of the queries: words, or keys of the type in `kind`.
    pub queries: u64,
    /// Number of queries.
    pub count: u64,
    /// Address of the values.
    pub values: u64,
    /// Address of the presence bitmap, in words of 32 bits.
    pub present: u64,
    /// Address of the ranks.
    pub ranks: u64,
    /// Encoding of a query as a word: 0 it is a word, 1 the sign bit is flipped, 2 it is a float.
    pub kind: u32,
    /// Bytes per rank, 4 or 8.
    pub rank_bytes: u16,
    /// Bytes per value: 0, 4 or 8.
    pub value_bytes: u16,
}

/// Sorted keys and values on a device: `Columns` of common.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Columns {
    /// Address of the words.
    pub keys: u64,
    /// Address of the values; 0 if there are none.
    pub values: u64,
    /// Number of tuples.
    pub tuples: u64,
}

/// A source with the numbers it is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instance {
    /// The source.
    pub source: Source,
    /// Bytes per word: 4, 8 or 16.
    pub word_bytes: u8,
    /// Bytes per value: 0, 4 or 8; 0 for a source that takes any.
    pub value_bytes: u8,
    /// A number with a meaning for this source, see [`SourceSpec::option_name`]; 0 if it has none.
    pub option: u16,
    /// Form of the lowest nodes, for Spine; [`Lowest::Codes16`] for all others.
    pub lowest: Lowest,
}

/// Returns the whole text of a program: what all kernels share, what some share, and its own, each under its
/// own name.
pub(crate) fn whole_text(shared: &[Text], (name, text): (&str, &str)) -> String {
    let common = std::iter::once(("common.cuh", include_str!("../kernels/common.cuh")));
    let parts = common.chain(shared.iter().map(|part| (part.name, part.text))).chain([(name, text)]);
    parts.map(|(name, text)| format!("#line 1 \"{name}\"\n{text}\n")).collect()
}

impl Instance {
    /// Returns an instance of a source that has no number of its own.
    #[must_use]
    pub const fn new(source: Source, word_bytes: u8, value_bytes: u8) -> Self {
        Self { source, word_bytes, value_bytes, option: 0, lowest: Lowest::Codes16 }
    }

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
        if let Some(name) = self.source.option_name {
            defines.push((name, self.option.into()));
        }
        defines.push(("BYTES_OF_BATCH", size_of::<Batch>() as u64));
        defines.push(("BYTES_OF_COLUMNS", size_of::<Columns>() as u64));
        defines.extend((self.source.numbers)(self));
        defines
    }

    /// Calls `with` with the instance's program.
    pub(crate) fn with_program<T>(
        self,
        with: impl FnOnce(&Program<'_>) -> Result<T, GpuError>,
    ) -> Result<T, GpuError> {
        let source = self.source;
        let (text, defines) =
            (whole_text(source.shared, (source.text.name, source.text.text)), self.defines());
        with(&Program {
            name: source.text.name,
            text: &text,
            defines: &defines,
            entries: &source.entries(self),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_right_file() {
        let part = |name, text| Text { name, text };
        let text = whole_text(&[part("a.cuh", "1\n2"), part("b.cuh", "3")], ("c.cu", "4"));
        let names = text.lines().filter(|line| line.starts_with("#line"));
        let wanted = ["common.cuh", "a.cuh", "b.cuh", "c.cu"].map(|name| format!("#line 1 \"{name}\""));
        assert!(names.eq(wanted.iter().map(String::as_str)));
        assert!(text.ends_with("#line 1 \"a.cuh\"\n1\n2\n#line 1 \"b.cuh\"\n3\n#line 1 \"c.cu\"\n4\n"));
    }
}
