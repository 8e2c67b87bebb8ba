//! Rows of kernels: a source is one constant that holds all that is known of it.
//!
//! [`kernel!`](crate::kernel!) makes the row of a source and, for each of its entries, `unsafe fn
//! entry(stream, instance, shape, &arguments...)`, which is the only way to launch it. The row is written in
//! the file that launches it, with the argument structs: `#[repr(C)]`, plain numbers, no holes. Their sizes
//! are among the row's numbers, and the text asserts them, so that both sides agree or nothing compiles.

use super::Instance;
use crate::image::Lowest;
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
            exists: |instance| instance.lowest == Lowest::Codes16,
            numbers: |_| Vec::new(),
            is_embedded: true,
        }
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

/// Makes the row of a source, and a typed launch function for each of its entries. `if` states which
/// instances have an entry.
#[doc(hidden)]
#[macro_export]
macro_rules! kernel {
    (@exists) => { |_| true };
    (@exists $exists:expr) => { $exists };
    (@one $name:ident) => { 1 };
    (
        $(#[$doc:meta])* $row:ident = $spec:expr;
        $($(#[$about:meta])* $entry:ident($($name:ident: $type:ty),*) $(if $exists:expr)?;)*
    ) => {
        $(#[$doc])*
        pub(crate) static $row: $crate::internal::SourceSpec = $crate::internal::SourceSpec {
            entries: &[$($crate::internal::Entry {
                name: stringify!($entry),
                exists: $crate::kernel!(@exists $($exists)?),
            }),*],
            ..$spec
        };
        $(
            $(#[$about])*
            ///
            /// # Safety
            /// The arguments must describe arrays that the kernel's text requires and that stay alive until
            /// the work on `stream` is done; `instance` must be made for them.
            #[allow(clippy::too_many_arguments, reason = "those of the kernel")]
            pub(crate) unsafe fn $entry(
                stream: &$crate::Stream,
                instance: $crate::internal::Instance,
                shape: $crate::internal::LaunchShape,
                $($name: &$type),*
            ) -> Result<(), $crate::GpuError> {
                debug_assert_eq!(instance.source, &$row);
                let mut arguments: [*mut ::std::ffi::c_void; 0 $(+ $crate::kernel!(@one $name))*] =
                    [$(::std::ptr::from_ref::<$type>($name).cast_mut().cast()),*];
                // SAFETY: these are the types of the entry's parameters; the caller guarantees the arrays and
                // the instance.
                unsafe {
                    $crate::internal::launch(stream, instance, stringify!($entry), shape, &mut arguments)
                }
            }
        )*
    };
}
