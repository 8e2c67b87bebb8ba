//! Narrow words that represent the keys of a page.
//!
//! A distance is one subtraction per key; a partial key is two bit extracts (BMI2), for which the paper
//! shuffles nibbles with four permutes. The portable forms give the same words.

use super::permute::SMALL;
use pleach_format::classic::TreeWord;
use pleach_format::classic::packed::Partial;

/// Conversion of the keys of a page to words.
pub(crate) trait Narrow<W, V>: Copy + Sync {
    /// Writes the words of `keys` to the start of `words`.
    fn narrow(self, keys: &[W], avx2: bool, words: &mut [V]);

    /// Narrows and permutes a small page in one go: slot `s` takes the word of `keys[ranks[s]]`.
    fn place(self, keys: &[W; SMALL], ranks: &[u8], avx2: bool, out: &mut [V::Bytes])
    where
        V: TreeWord;
}

/// The distance `key - base`, of which the low bits are kept.
#[derive(Clone, Copy)]
pub(crate) struct Distance(pub u64);

macro_rules! distances {
    ($($w:ident to $($v:ident)*),*) => {$($(
        impl Narrow<$w, $v> for Distance {
            #[inline(always)]
            fn narrow(self, keys: &[$w], _: bool, words: &mut [$v]) {
                let base = self.0 as $w;
                for (word, key) in words.iter_mut().zip(keys) {
                    *word = key.wrapping_sub(base) as $v;
                }
            }
            #[inline(always)]
            fn place(self, keys: &[$w; SMALL], ranks: &[u8], _: bool, out: &mut [<$v as TreeWord>::Bytes]) {
                let base = self.0 as $w;
                for (out, &rank) in out.iter_mut().zip(ranks) {
                    *out = (keys[usize::from(rank)].wrapping_sub(base) as $v).to_bytes();
                }
            }
        }
    )*)*};
}
distances!(u32 to u16 u32 u64, u64 to u16 u32 u64);

/// The kept nibbles of a key.
#[derive(Clone, Copy)]
pub(crate) struct Kept(pub Partial);

impl<V: TreeWord> Narrow<u128, V> for Kept {
    fn narrow(self, keys: &[u128], avx2: bool, words: &mut [V]) {
        #[cfg(target_arch = "x86_64")]
        if avx2 {
            // SAFETY: `Vectors::avx2` detected BMI2; `avx2` is its result.
            unsafe { extract(self.0, keys, words) };
            return;
        }
        let _ = avx2;
        for (word, &key) in words.iter_mut().zip(keys) {
            *word = V::narrow(self.0.word(key));
        }
    }

    fn place(self, keys: &[u128; SMALL], ranks: &[u8], avx2: bool, out: &mut [V::Bytes]) {
        #[cfg(target_arch = "x86_64")]
        if avx2 {
            // SAFETY: `Vectors::avx2` detected BMI2; `avx2` is its result.
            unsafe { extract_placed::<V>(self.0, keys, ranks, out) };
            return;
        }
        let _ = avx2;
        for (out, &rank) in out.iter_mut().zip(ranks) {
            *out = V::narrow(self.0.word(keys[usize::from(rank)])).to_bytes();
        }
    }
}

/// Returns the kept bits of one key.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn kept<V: TreeWord>(key: u128, high: u64, low: u64, low_bits: u32) -> V {
    use std::arch::x86_64::_pext_u64;
    let (upper, lower) = (_pext_u64((key >> 64) as u64, high), _pext_u64(key as u64, low));
    if V::BYTES <= 8 {
        // Both parts fit in 64 bits; a shift by 64 happens only if the upper one is empty.
        V::narrow(u128::from(upper.unbounded_shl(low_bits) | lower))
    } else {
        V::narrow(u128::from(upper) << low_bits | u128::from(lower))
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn extract<V: TreeWord>(record: Partial, keys: &[u128], words: &mut [V]) {
    let (high, low) = ((record.mask >> 64) as u64, record.mask as u64);
    for (word, &key) in words.iter_mut().zip(keys) {
        *word = kept(key, high, low, low.count_ones());
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn extract_placed<V: TreeWord>(record: Partial, keys: &[u128; SMALL], ranks: &[u8], out: &mut [V::Bytes]) {
    let (high, low) = ((record.mask >> 64) as u64, record.mask as u64);
    for (out, &rank) in out.iter_mut().zip(ranks) {
        *out = kept::<V>(keys[usize::from(rank)], high, low, low.count_ones()).to_bytes();
    }
}

/// Returns the bits in which keys differ from the first of them.
pub(crate) fn differ(keys: &[u128]) -> u128 {
    let Some(&first) = keys.first() else { return 0 };
    // Four accumulators, so that no step waits for the one before it.
    let (fours, rest) = keys.as_chunks::<4>();
    let mut bits = [0; 4];
    for four in fours {
        for lane in 0..4 {
            bits[lane] |= four[lane] ^ first;
        }
    }
    let rest = rest.iter().fold(0, |bits, key| bits | (key ^ first));
    bits.iter().fold(rest, |all, bits| all | bits)
}
