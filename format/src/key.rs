//! Keys and values as machine words.
//!
//! A tuple line, the spine and every search use *encoded* keys: unsigned words that have the order of the
//! keys.
//!
//! * An unsigned key is its own encoding.
//! * A signed key has its sign bit flipped.
//! * A float has its sign bit flipped too, and, if it is negative, all other bits.
//! * A byte key becomes a word by [`crate::mask`].
//!
//! Values are stored as their bits.

use crate::types::{KeyType, ValueType};
use core::fmt::Debug;
use core::ops::{BitAnd, BitOr, BitXor, Shl, Shr, Sub};
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub(crate) mod sealed {
    pub trait Sealed {}
    macro_rules! sealed {
        ($($t:ty),*) => { $(impl Sealed for $t {})* };
    }
    sealed! { (), u8, u16, u32, u64, u128, i8, i16, i32, i64, f32, f64, &str, String, &[u8], Vec<u8> }
    impl<const N: usize> Sealed for [u8; N] {}
}
use sealed::Sealed;

/// An encoded key: `u32`, `u64` or `u128`, compared unsigned.
pub trait Word:
    Copy
    + Ord
    + Debug
    + Default
    + Send
    + Sync
    + Sealed
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + Sub<Output = Self>
    + 'static
{
    /// Bytes per word in the file.
    const BYTES: usize;
    /// All ones: the padding of the last tuple line.
    const MAX: Self;
    /// Reads the word at the start of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Word::BYTES`].
    fn read(bytes: &[u8]) -> Self;
    /// Writes the word at the start of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Word::BYTES`].
    fn write(self, bytes: &mut [u8]);
    /// Widens without loss.
    fn to_u128(self) -> u128;
    /// Converts `value`, keeping the low bits.
    fn from_u128(value: u128) -> Self;
    /// Returns the cell of this key in a grid of cells of `2^shift` keys that begins at `base`, at most
    /// `u64::MAX`. If the key is below `base`, or `shift` is at least the width of a word, the result is
    /// arbitrary.
    fn cell(self, base: Self, shift: u32) -> u64;
    /// Returns the number of bits up to the highest one that is set.
    fn bit_length(self) -> u32;
    /// Returns `self - 2^shift / parts * times`, or `None` if that is below zero.
    fn step_back(self, shift: u32, parts: u64, times: u64) -> Option<Self>;
    /// Returns the next larger word, or `None` if there is none.
    fn successor(self) -> Option<Self>;
    /// Converts `value`: widens it, or keeps the low bits.
    fn from_u64(value: u64) -> Self;
    /// Returns the lowest 64 bits, widened if there are fewer.
    fn low_u64(self) -> u64;
    /// Adds modulo the number of words.
    fn wrapping_add(self, other: Self) -> Self;
    /// Subtracts modulo the number of words.
    fn wrapping_sub(self, other: Self) -> Self;
}

/// The bits of a value: none, four bytes or eight.
pub trait Bits: Copy + Debug + Default + PartialEq + Send + Sync + Sealed + 'static {
    /// Bytes per value in the file.
    const BYTES: usize;
    /// Reads the bits at the start of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Bits::BYTES`].
    fn read(bytes: &[u8]) -> Self;
    /// Writes the bits at the start of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Bits::BYTES`].
    fn write(self, bytes: &mut [u8]);
    /// Widens without loss; no bits give 0.
    fn to_u64(self) -> u64;
    /// Converts `value`, keeping the low bits.
    fn from_u64(value: u64) -> Self;
}

macro_rules! words {
    ($($t:ident $n:literal $cell:expr;)*) => {$(
        impl Word for $t {
            const BYTES: usize = $n;
            const MAX: Self = $t::MAX;
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut raw = [0; $n];
                raw.copy_from_slice(&bytes[..$n]);
                $t::from_le_bytes(raw)
            }
            #[inline(always)]
            fn write(self, bytes: &mut [u8]) { bytes[..$n].copy_from_slice(&self.to_le_bytes()); }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)]
            fn to_u128(self) -> u128 { self as u128 }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)]
            fn from_u128(value: u128) -> Self { value as $t }
            #[inline(always)]
            fn cell(self, base: Self, shift: u32) -> u64 {
                ($cell)(self.wrapping_sub(base).wrapping_shr(shift))
            }
            #[inline(always)]
            fn bit_length(self) -> u32 { $t::BITS - self.leading_zeros() }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)]
            fn step_back(self, shift: u32, parts: u64, times: u64) -> Option<Self> {
                let step = ((1 as $t).checked_shl(shift)? / parts as $t).max(1);
                self.checked_sub(step.checked_mul(times as $t)?)
            }
            #[inline(always)]
            fn successor(self) -> Option<Self> { self.checked_add(1) }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)]
            fn from_u64(value: u64) -> Self { value as $t }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)]
            fn low_u64(self) -> u64 { self as u64 }
            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self { $t::wrapping_add(self, other) }
            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self { $t::wrapping_sub(self, other) }
        }
    )*};
}
words! {
    u32 4 u64::from;
    u64 8 |cell| cell;
    u128 16 |cell: u128| cell.min(u128::from(u64::MAX)) as u64;
}

macro_rules! bits {
    ($($t:ident $n:literal),*) => {$(
        impl Bits for $t {
            const BYTES: usize = $n;
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self { <$t as Word>::read(bytes) }
            #[inline(always)]
            fn write(self, bytes: &mut [u8]) { <$t as Word>::write(self, bytes); }
            #[inline(always)]
            fn to_u64(self) -> u64 { self as u64 }
            #[inline(always)]
            fn from_u64(value: u64) -> Self { <$t as Word>::from_u64(value) }
        }
    )*};
}
bits!(u32 4, u64 8);

impl Bits for () {
    const BYTES: usize = 0;
    #[inline(always)]
    fn read(_: &[u8]) -> Self {}
    #[inline(always)]
    fn write(self, _: &mut [u8]) {}
    #[inline(always)]
    fn to_u64(self) -> u64 {
        0
    }
    #[inline(always)]
    fn from_u64(_: u64) -> Self {}
}

/// A key type of the API: `u32`, `u64`, `u128`, `i32`, `i64`, `f64`.
///
/// Floats are in total order, but NaN is not a valid key: the builder rejects it, and a look-up of it finds
/// nothing. -0.0 is the same key as 0.0.
pub trait Key:
    Copy + Debug + Default + PartialOrd + Send + Sync + FromBytes + IntoBytes + Immutable + Sealed + 'static
{
    /// Its encoded form.
    type Word: Word;
    /// Its type in the file.
    const TYPE: KeyType;
    /// The word that encodes a key when xor-ed with its bits; `None` if encoding is not only a xor.
    const FLIP: Option<Self::Word>;
    /// Encodes the key so that the order of the words is the order of the keys.
    fn encode(self) -> Self::Word;
    /// Decodes a word; the inverse of [`Key::encode`].
    fn decode(word: Self::Word) -> Self;
}

/// A value type of the API: `()`, `u32`, `u64`, `i32`, `i64`, `f32`, `f64`.
pub trait Value:
    Copy + Debug + Default + PartialEq + Send + Sync + FromBytes + IntoBytes + Immutable + Sealed + 'static
{
    /// Its bits.
    type Bits: Bits;
    /// Its type in the file.
    const TYPE: ValueType;
    /// Returns the bits of this value.
    fn to_bits(self) -> Self::Bits;
    /// Returns the value with these bits.
    fn from_bits(bits: Self::Bits) -> Self;
}

macro_rules! keys {
    ($($t:ident as $w:ident, $kind:ident, $flip:expr;)*) => {$(
        impl Key for $t {
            type Word = $w;
            const TYPE: KeyType = KeyType::$kind;
            const FLIP: Option<$w> = Some($flip);
            #[inline(always)]
            fn encode(self) -> $w { (self as $w) ^ $flip }
            #[inline(always)]
            fn decode(word: $w) -> Self { (word ^ $flip) as $t }
        }
    )*};
}
keys! {
    u32 as u32, U32, 0;
    u64 as u64, U64, 0;
    u128 as u128, U128, 0;
    i32 as u32, I32, 1 << 31;
    i64 as u64, I64, 1 << 63;
}

impl Key for f64 {
    type Word = u64;
    const TYPE: KeyType = KeyType::F64;
    const FLIP: Option<u64> = None;
    #[inline(always)]
    fn encode(self) -> u64 {
        // Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
        let bits = (self + 0.0).to_bits();
        bits ^ if bits >> 63 == 0 { 1 << 63 } else { u64::MAX }
    }
    #[inline(always)]
    fn decode(word: u64) -> Self {
        f64::from_bits(word ^ if word >> 63 == 0 { u64::MAX } else { 1 << 63 })
    }
}

impl KeyType {
    /// Reports whether a key of this type can have this word. For floats, the words of NaN and of -0.0 are
    /// invalid.
    #[must_use]
    pub fn has_word(self, word: u128) -> bool {
        match self {
            Self::F64 => u64::try_from(word)
                .is_ok_and(|word| Some(word) != self.minus_zero() && !f64::decode(word).is_nan()),
            Self::U32 | Self::U64 | Self::U128 | Self::I32 | Self::I64 => true,
            Self::Fixed(_) | Self::Bytes | Self::Utf8 => true,
        }
    }
}

macro_rules! values {
    ($($t:ty as $w:ty, $kind:ident, $to:expr, $from:expr;)*) => {$(
        impl Value for $t {
            type Bits = $w;
            const TYPE: ValueType = ValueType::$kind;
            #[inline(always)]
            fn to_bits(self) -> $w { ($to)(self) }
            #[inline(always)]
            fn from_bits(bits: $w) -> Self { ($from)(bits) }
        }
    )*};
}
values! {
    () as (), None, |()| (), |()| ();
    u32 as u32, U32, |v| v, |b| b;
    u64 as u64, U64, |v| v, |b| b;
    i32 as u32, I32, i32::cast_unsigned, u32::cast_signed;
    i64 as u64, I64, i64::cast_unsigned, u64::cast_signed;
    f32 as u32, F32, f32::to_bits, f32::from_bits;
    f64 as u64, F64, f64::to_bits, f64::from_bits;
}
