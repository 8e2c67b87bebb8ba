//! Slices of keys and values as slices of their words.
//!
//! `Key` and `Value` are sealed in `pleach-format`: the only implementors are the machine integers,
//! floats and `()`, whose word has the same size and alignment and for which every bit pattern is a
//! value of both types. The assertions repeat what the proofs need.

use pleach_format::{Key, Value};
use std::slice;

/// Keys as words, without their order-preserving encoding.
pub(crate) fn key_words<K: Key>(keys: &[K]) -> &[K::Word] {
    const { assert!(size_of::<K>() == size_of::<K::Word>() && align_of::<K>() == align_of::<K::Word>()) };
    // SAFETY: same address, length, size and alignment; every bit pattern of an integer is a word.
    unsafe { slice::from_raw_parts(keys.as_ptr().cast(), keys.len()) }
}

/// Values as their bits.
pub(crate) fn value_bits<V: Value>(values: &mut [V]) -> &mut [V::Bits] {
    const { assert!(size_of::<V>() == size_of::<V::Bits>() && align_of::<V>() == align_of::<V::Bits>()) };
    // SAFETY: same address, length, size and alignment; every bit pattern is a value of both types;
    // the exclusive borrow is passed on.
    unsafe { slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}
