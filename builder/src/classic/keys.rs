//! What every build of a tree takes: its keys and their samples, the vectors that it may use, and why it
//! refuses.

use crate::parallel;
use pleach_format::classic::{Geometry, TreeWord};

/// The reason why a tree was not built. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassicError {
    /// The geometry is outside its limits, or not for keys of this width.
    #[error("the tree's geometry is not valid for these keys")]
    Geometry,
    /// The geometry is for another number of keys.
    #[error("the geometry is for {expected} keys, there are {found}")]
    Keys {
        /// Number of keys of the geometry.
        expected: u64,
        /// Number of keys given.
        found: u64,
    },
    /// The length of the output is not that of the tree.
    #[error("the tree takes {expected} bytes, the output has {found}")]
    Output {
        /// Bytes of the tree.
        expected: u64,
        /// Bytes of the output.
        found: u64,
    },
}

/// Vector instructions of the build. All of them write the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Vectors {
    /// No vector instructions: the reference.
    Scalar,
    /// AVX2 and BMI2 if the CPU has both, otherwise none.
    #[default]
    Best,
}

impl Vectors {
    /// Returns true if AVX2 and BMI2 are requested and available.
    pub(super) fn avx2(self) -> bool {
        self == Self::Best && pleach_format::cpu::avx2_bmi2()
    }
}

/// Returns every `2^below`-th key: the keys of the tree without its lowest `below` levels.
pub(super) fn sample<W: TreeWord>(keys: &[W], below: u32) -> Vec<W> {
    let stride = 1usize << below;
    parallel::collect(keys.len() / stride, 1024, |at| keys[(at + 1) * stride - 1])
}

pub(super) fn check<W: TreeWord>(keys: &[W], geometry: &Geometry) -> Result<(), ClassicError> {
    if keys.len() as u64 != geometry.keys {
        return Err(ClassicError::Keys { expected: geometry.keys, found: keys.len() as u64 });
    }
    Ok(())
}
