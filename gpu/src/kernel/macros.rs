//! The macro that makes rows of kernels and the functions that launch them.
//!
//! [`kernel!`](crate::kernel!) makes the row of a source and, for each of its entries, `unsafe fn
//! entry(stream, instance, shape, &arguments...)`, which is the only way to launch it. The row is written in
//! the file that launches it, with the argument structs: `#[repr(C)]`, plain numbers, no holes. Their sizes
//! are among the row's numbers, and the text asserts them, so that both sides agree or nothing compiles.

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
        pub(crate) static $row: $crate::internal::entry::SourceSpec = $crate::internal::entry::SourceSpec {
            entries: &[$($crate::internal::entry::Entry {
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
                instance: $crate::internal::entry::Instance,
                shape: $crate::internal::entry::LaunchShape,
                $($name: &$type),*
            ) -> Result<(), $crate::GpuError> {
                debug_assert_eq!(instance.source, &$row);
                let mut arguments: [*mut ::std::ffi::c_void; 0 $(+ $crate::kernel!(@one $name))*] =
                    [$(::std::ptr::from_ref::<$type>($name).cast_mut().cast()),*];
                // SAFETY: these are the types of the entry's parameters; the caller guarantees the arrays and
                // the instance.
                unsafe {
                    $crate::internal::entry::launch(stream, instance, stringify!($entry), shape, &mut arguments)
                }
            }
        )*
    };
}
