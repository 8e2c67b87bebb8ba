//! Sets of CPU features that code is compiled for, each with its detection: one list, so that they cannot differ.
//!
//! A function with `#[target_feature(enable = "...")]` names a list that stands here, and is called where the function
//! of that name, or of one that has more, said yes. `tests/tests/features.rs` reads all sources for both.

/// `name: features`: a function that detects all of them, and their list as `target_feature` takes it.
macro_rules! sets {
    ($($(#[$doc:meta])* $name:ident: $first:tt $(, $feature:tt)*;)*) => {
        $(
            $(#[$doc])*
            #[cfg(target_arch = "x86_64")]
            #[inline]
            #[must_use]
            pub fn $name() -> bool {
                std::arch::is_x86_feature_detected!($first) $(&& std::arch::is_x86_feature_detected!($feature))*
            }
            $(#[$doc])*
            #[cfg(not(target_arch = "x86_64"))]
            #[inline]
            #[must_use]
            pub fn $name() -> bool {
                false
            }
        )*
        /// Each set: its function's name, and its features.
        pub const SETS: &[(&str, &str)] = &[$((stringify!($name), concat!($first $(, ",", $feature)*))),*];
    };
}
sets! {
    /// Bits are gathered and scattered.
    bmi2: "bmi2";
    /// As [`bmi2`], and the lowest bits are found.
    bmi: "bmi1", "bmi2";
    /// Vectors of 16 bytes, and bits are counted.
    sse42: "sse4.2", "popcnt";
    /// Vectors of 32 bytes.
    avx2: "avx2";
    /// As [`avx2`], and bits are counted.
    avx2_popcnt: "avx2", "popcnt";
    /// As [`avx2`] and [`bmi2`].
    avx2_bmi2: "avx2", "bmi2";
    /// What the searches of 32 bytes use.
    avx2_search: "avx2", "bmi1", "bmi2", "popcnt";
    /// Vectors of 64 bytes.
    avx512f: "avx512f";
    /// As [`avx512f`], and bits are counted.
    avx512f_popcnt: "avx512f", "popcnt";
    /// What the searches of 64 bytes use.
    avx512_search: "avx512f", "avx512bw", "avx512vl", "avx2", "bmi1", "bmi2", "popcnt";
}

/// NEON, which is part of 64-bit Arm; the features are `neon`.
#[inline]
#[must_use]
pub fn neon() -> bool {
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("neon");
    #[cfg(not(target_arch = "aarch64"))]
    false
}
