//! Words that a classic tree can contain.

use core::fmt::Debug;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}

/// A key of a classic tree, or its compressed form: `u16`, `u32`, `u64` or `u128`, compared unsigned.
pub trait TreeWord: Copy + Ord + Debug + Default + Send + Sync + sealed::Sealed + 'static {
    /// Bytes per word in the tree, little-endian.
    const BYTES: usize;
    /// All ones: the content of places without a key.
    const MAX: Self;
    /// The bytes of a word.
    type Bytes: Copy + Send + Sync + AsRef<[u8]> + 'static;
    /// Returns the bytes of the word.
    fn to_bytes(self) -> Self::Bytes;
    /// Returns the word with these bytes.
    fn from_bytes(bytes: Self::Bytes) -> Self;
    /// Splits a slice into whole words; a remainder is left out.
    fn slots(bytes: &[u8]) -> &[Self::Bytes];
    /// Splits a mutable slice into whole words; a remainder is left out.
    fn slots_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    /// Widens without loss.
    fn widen(self) -> u128;
    /// Keeps the low bits.
    fn narrow(value: u128) -> Self;
}

macro_rules! words {
    ($($t:ident $n:literal),*) => {$(
        impl TreeWord for $t {
            const BYTES: usize = $n;
            const MAX: Self = $t::MAX;
            type Bytes = [u8; $n];
            #[inline(always)]
            fn to_bytes(self) -> [u8; $n] { self.to_le_bytes() }
            #[inline(always)]
            fn from_bytes(bytes: [u8; $n]) -> Self { $t::from_le_bytes(bytes) }
            #[inline(always)]
            fn slots(bytes: &[u8]) -> &[[u8; $n]] { bytes.as_chunks().0 }
            #[inline(always)]
            fn slots_mut(bytes: &mut [u8]) -> &mut [[u8; $n]] { bytes.as_chunks_mut().0 }
            #[inline(always)]
            fn widen(self) -> u128 { u128::from(self) }
            #[inline(always)]
            fn narrow(value: u128) -> Self { value as $t }
        }
    )*};
}
words!(u16 2, u32 4, u64 8, u128 16);
