//! Slices of keys and values as slices of their words.
//!
//! `Key` and `Value` are sealed in `pleach-format`. The only implementors are the machine integers, floats
//! and `()`. Their word has the same size and alignment, and every bit pattern is valid for both types. The
//! assertions check the sizes and alignments that the casts rely on.

use pleach_format::{Key, Value};
use std::slice;

/// Views keys as words, without their order-preserving encoding.
pub(crate) fn key_words<K: Key>(keys: &[K]) -> &[K::Word] {
    const { assert!(size_of::<K>() == size_of::<K::Word>() && align_of::<K>() == align_of::<K::Word>()) };
    // SAFETY: the assertion guarantees equal size and alignment; address and length are those of `keys`; the
    // sealed trait guarantees that every bit pattern of a key is a word.
    unsafe { slice::from_raw_parts(keys.as_ptr().cast(), keys.len()) }
}

/// Views values as their bits.
pub(crate) fn value_bits<V: Value>(values: &mut [V]) -> &mut [V::Bits] {
    const { assert!(size_of::<V>() == size_of::<V::Bits>() && align_of::<V>() == align_of::<V::Bits>()) };
    // SAFETY: the assertion guarantees equal size and alignment; address and length are those of `values`;
    // the sealed trait guarantees that every bit pattern is valid for both types; the result takes over the
    // exclusive borrow.
    unsafe { slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}
