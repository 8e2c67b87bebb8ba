//! Rows of kernels, and their instances: a source is one constant that holds all that is known of it.

use super::common::{Batch, Columns};
use crate::GpuError;
use crate::driver::Program;
use crate::image::{FANOUT, LEVELS_MAX, Lowest};
use pleach_format::LineGeometry;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A CUDA C++ text, and the name that messages of compilers give it.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Name of the file.
    pub name: &'static str,
    /// Content of the file.
    pub text: &'static str,
}

/// A function of a source that can be launched.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name of the function.
    pub name: &'static str,
    /// Returns true if an instance has the function.
    pub exists: fn(Instance) -> bool,
}

/// A row: a source, and how it is compiled.
#[derive(Clone, Copy)]
pub struct SourceSpec {
    /// The source; its name differs from those of all other rows.
    pub text: Text,
    /// Texts that precede it, after common.cuh.
    pub shared: &'static [Text],
    /// Functions that can be launched.
    pub entries: &'static [Entry],
    /// Name of the number that the source is compiled for, in addition to the bytes of words and values.
    pub option_name: Option<&'static str>,
    /// Valid values of that number; 0 if it has no name.
    pub options: &'static [u16],
    /// True if the source is compiled for each width of values; a source that answers from columns takes it
    /// from the batch.
    pub has_value_width: bool,
    /// Returns true if there is such an instance, with one of the options.
    pub exists: fn(Instance) -> bool,
    /// Returns the other definitions of an instance, sizes of argument structs among them.
    pub numbers: fn(Instance) -> Vec<(&'static str, u64)>,
    /// True if the compiled source is a part of this program.
    pub is_embedded: bool,
}

/// A row that was registered.
pub type Source = &'static SourceSpec;

impl SourceSpec {
    /// Returns the row of a text without entries, which has no number of its own and takes values of any
    /// width.
    #[must_use]
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            text: Text { name, text },
            shared: &[],
            entries: &[],
            option_name: None,
            options: &[0],
            has_value_width: false,
            exists: Self::is_plain,
            numbers: |_| Vec::new(),
            is_embedded: true,
        }
    }

    /// Returns true for an instance without the forms of the lowest nodes of Spine.
    #[must_use]
    pub fn is_plain(instance: Instance) -> bool {
        matches!(instance.lowest, Lowest::Codes16)
    }

    /// Returns the row for words of up to 8 bytes.
    #[must_use]
    pub const fn narrow(self) -> Self {
        Self { exists: |instance| instance.word_bytes <= 8 && instance.lowest == Lowest::Codes16, ..self }
    }

    /// Returns the names of an instance's entries.
    #[must_use]
    pub fn entries(&self, instance: Instance) -> Vec<&'static str> {
        let entries = self.entries.iter().filter(|entry| (entry.exists)(instance));
        entries.map(|entry| entry.name).collect()
    }
}

impl fmt::Debug for SourceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.name)
    }
}

impl PartialEq for SourceSpec {
    fn eq(&self, other: &Self) -> bool {
        self.text.name == other.text.name
    }
}

impl Eq for SourceSpec {}

impl Hash for SourceSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.name.hash(state);
    }
}

impl PartialOrd for SourceSpec {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SourceSpec {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.name.cmp(other.text.name)
    }
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
