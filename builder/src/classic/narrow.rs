//! Keys of a page as the narrow words that stand for them.
//!
//! Distances are one subtraction a key; partial keys two bit extracts (BMI2), for which the paper
//! shuffles nibbles with four permutes. The portable forms give the same words.

use pleach_format::classic::TreeWord;
use pleach_format::classic::packed::Partial;

/// What turns keys of a page into words.
pub(crate) trait Narrow<W, V>: Copy + Sync {
    /// Appends the words of `keys`.
    fn extend(self, keys: &[W], avx2: bool, words: &mut Vec<V>);
}

/// `key - base`, of which the low bits are kept.
#[derive(Clone, Copy)]
pub(crate) struct Distance(pub u64);

macro_rules! distances {
    ($($w:ident to $($v:ident)*),*) => {$($(
        impl Narrow<$w, $v> for Distance {
            #[inline(always)]
            fn extend(self, keys: &[$w], _: bool, words: &mut Vec<$v>) {
                let base = self.0 as $w;
                words.extend(keys.iter().map(|key| key.wrapping_sub(base) as $v));
            }
        }
    )*)*};
}
distances!(u32 to u16 u32 u64, u64 to u16 u32 u64);

/// Kept nibbles.
#[derive(Clone, Copy)]
pub(crate) struct Kept(pub Partial);

impl<V: TreeWord> Narrow<u128, V> for Kept {
    fn extend(self, keys: &[u128], avx2: bool, words: &mut Vec<V>) {
        #[cfg(target_arch = "x86_64")]
        if avx2 {
            // SAFETY: BMI2 was detected (`Vectors::avx2`).
            unsafe { extract(self.0, keys, words) };
            return;
        }
        let _ = avx2;
        words.extend(keys.iter().map(|&key| V::narrow(self.0.word(key))));
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn extract<V: TreeWord>(record: Partial, keys: &[u128], words: &mut Vec<V>) {
    use std::arch::x86_64::_pext_u64;
    let (high, low) = ((record.mask >> 64) as u64, record.mask as u64);
    let low_bits = low.count_ones();
    if V::BYTES <= 8 {
        // Both halves fit 64 bits; a shift by 64 happens only if the upper one is empty.
        words.extend(keys.iter().map(|&key| {
            let upper = _pext_u64((key >> 64) as u64, high);
            let lower = _pext_u64(key as u64, low);
            V::narrow(u128::from(upper.unbounded_shl(low_bits) | lower))
        }));
    } else {
        words.extend(keys.iter().map(|&key| {
            let upper = u128::from(_pext_u64((key >> 64) as u64, high));
            V::narrow(upper << low_bits | u128::from(_pext_u64(key as u64, low)))
        }));
    }
}

/// The bits in which keys differ from the first of them.
pub(crate) fn differ(keys: &[u128]) -> u128 {
    let Some(&first) = keys.first() else { return 0 };
    // Four sums, so that no addition waits for the one before it.
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
