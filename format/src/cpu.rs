//! Sets of CPU features for which code is compiled, each with its detection. There is one list for both, so
//! that they cannot differ.
//!
//! A function with `#[target_feature(enable = "...")]` names one of these lists. It is called only where the
//! function of that name, or of a list that includes it, returned true. `tests/tests/features.rs` checks all
//! sources for both rules.

/// Defines, for each `name: features`, a function that detects all of the features, and lists them in the
/// form that `target_feature` takes.
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
        /// Every set: the name of its function, and its features.
        pub const SETS: &[(&str, &str)] = &[$((stringify!($name), concat!($first $(, ",", $feature)*))),*];
    };
}
sets! {
    /// Detects BMI2, which gathers and scatters bits.
    bmi2: "bmi2";
    /// Detects [`bmi2`] and BMI1, which finds the lowest bits.
    bmi: "bmi1", "bmi2";
    /// Detects vectors of 16 bytes, and the instruction that counts bits.
    sse42: "sse4.2", "popcnt";
    /// Detects vectors of 32 bytes.
    avx2: "avx2";
    /// Detects [`avx2`], and the instruction that counts bits.
    avx2_popcnt: "avx2", "popcnt";
    /// Detects [`avx2`] and [`bmi2`].
    avx2_bmi2: "avx2", "bmi2";
    /// Detects the features used by the searches in 32-byte vectors.
    avx2_search: "avx2", "bmi1", "bmi2", "popcnt";
    /// Detects vectors of 64 bytes.
    avx512f: "avx512f";
    /// Detects [`avx512f`], and the instruction that counts bits.
    avx512f_popcnt: "avx512f", "popcnt";
    /// Detects the features used by the searches in 64-byte vectors.
    avx512_search: "avx512f", "avx512bw", "avx512vl", "avx2", "bmi1", "bmi2", "popcnt";
}

/// Detects NEON, which is part of 64-bit Arm; the feature is `neon`.
#[inline]
#[must_use]
pub fn neon() -> bool {
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("neon");
    #[cfg(not(target_arch = "aarch64"))]
    false
}
