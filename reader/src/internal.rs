//! Not part of the API: it may change or disappear in any release.
//!
//! The crate `pleach-papers` measures variants of the search in FAST trees, which are built from what this module
//! names. Unsafe functions rest on CPU features, which their callers must have detected.

#[cfg(target_arch = "aarch64")]
pub use crate::arch::neon::Neon;
pub use crate::arch::{Simd, prefetch, scalar::Scalar};
#[cfg(target_arch = "x86_64")]
pub use crate::arch::{avx2::Avx2, avx512::Avx512};
pub use crate::classic::descent::{ask, child};
pub use crate::classic::papers::{gaps, ranks};
