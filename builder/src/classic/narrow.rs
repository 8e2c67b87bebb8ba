//! Narrow words that represent the keys of a page.
//!
//! A distance is one subtraction per key; a partial key is one or two bit extracts (BMI2), for which the paper
//! shuffles nibbles with four permutes. The portable forms give the same words.

use super::permute::SMALL;
use pleach_format::classic::TreeWord;
use pleach_format::classic::paged::PageRecord;

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
pub(crate) struct Distance<W>(pub W);

/// A key whose differences from another one have narrower words.
pub(crate) trait Subtract: TreeWord {
    /// Returns `self - base`, modulo the keys.
    fn minus(self, base: Self) -> Self;
}

macro_rules! distances {
    ($($w:ident to $($v:ident)*),*) => {$(
        impl Subtract for $w {
            #[inline(always)]
            fn minus(self, base: Self) -> Self { self.wrapping_sub(base) }
        }
        $(
            impl Narrow<$w, $v> for Distance<$w> {
                #[inline(always)]
                fn narrow(self, keys: &[$w], _: bool, words: &mut [$v]) {
                    for (word, key) in words.iter_mut().zip(keys) {
                        *word = key.minus(self.0) as $v;
                    }
                }
                #[inline(always)]
                fn place(
                    self,
                    keys: &[$w; SMALL],
                    ranks: &[u8],
                    _: bool,
                    out: &mut [<$v as TreeWord>::Bytes],
                ) {
                    for (out, &rank) in out.iter_mut().zip(ranks) {
                        *out = (keys[usize::from(rank)].minus(self.0) as $v).to_bytes();
                    }
                }
            }
        )*
    )*};
}
distances!(u32 to u16 u32, u64 to u16 u32 u64, u128 to u16 u32 u64 u128);

/// The kept nibbles of a key.
#[derive(Clone, Copy)]
pub(crate) struct Kept(pub PageRecord);

impl<W: TreeWord, V: TreeWord> Narrow<W, V> for Kept {
    fn narrow(self, keys: &[W], avx2: bool, words: &mut [V]) {
        #[cfg(target_arch = "x86_64")]
        if avx2 {
            // SAFETY: `Vectors::avx2` detected BMI2; `avx2` is its result.
            unsafe { extract(self.0, keys, words) };
            return;
        }
        let _ = avx2;
        for (word, &key) in words.iter_mut().zip(keys) {
            *word = V::narrow(self.0.packed(key.widen()));
        }
    }

    fn place(self, keys: &[W; SMALL], ranks: &[u8], avx2: bool, out: &mut [V::Bytes]) {
        #[cfg(target_arch = "x86_64")]
        if avx2 {
            // SAFETY: `Vectors::avx2` detected BMI2; `avx2` is its result.
            unsafe { extract_placed::<W, V>(self.0, keys, ranks, out) };
            return;
        }
        let _ = avx2;
        for (out, &rank) in out.iter_mut().zip(ranks) {
            *out = V::narrow(self.0.packed(keys[usize::from(rank)].widen())).to_bytes();
        }
    }
}

/// Returns the kept bits of one key.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn kept<W: TreeWord, V: TreeWord>(key: W, high: u64, low: u64, low_bits: u32) -> V {
    use std::arch::x86_64::_pext_u64;
    let key = key.widen();
    if W::BYTES <= 8 {
        return V::narrow(_pext_u64(key as u64, low).into());
    }
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
fn extract<W: TreeWord, V: TreeWord>(record: PageRecord, keys: &[W], words: &mut [V]) {
    let mask = record.mask();
    let (high, low) = ((mask >> 64) as u64, mask as u64);
    for (word, &key) in words.iter_mut().zip(keys) {
        *word = kept(key, high, low, low.count_ones());
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn extract_placed<W: TreeWord, V: TreeWord>(
    record: PageRecord,
    keys: &[W; SMALL],
    ranks: &[u8],
    out: &mut [V::Bytes],
) {
    let mask = record.mask();
    let (high, low) = ((mask >> 64) as u64, mask as u64);
    for (out, &rank) in out.iter_mut().zip(ranks) {
        *out = kept::<W, V>(keys[usize::from(rank)], high, low, low.count_ones()).to_bytes();
    }
}

/// Reports whether different keys of a page have different words. Keys ascend, so only neighbours can share
/// one.
pub(crate) fn are_parted<W: TreeWord>(record: PageRecord, keys: &[W], avx2: bool) -> bool {
    // In pieces: a page whose words are too short shows it soon.
    const PIECE: usize = 64;
    let mut words = [0u128; PIECE + 1];
    let mut from = 0;
    while from + 1 < keys.len() {
        let piece = &keys[from..keys.len().min(from + PIECE + 1)];
        Kept(record).narrow(piece, avx2, &mut words);
        let pairs = words.windows(2).zip(piece.windows(2));
        if pairs.fold(false, |any, (words, keys)| any | (words[0] == words[1] && keys[0] != keys[1])) {
            return false;
        }
        from += PIECE;
    }
    true
}

/// Returns the bits in which keys differ from the first of them.
pub(crate) fn differ<W: TreeWord + std::ops::BitXor<Output = W> + std::ops::BitOr<Output = W>>(
    keys: &[W],
) -> u128 {
    let Some(&first) = keys.first() else { return 0 };
    // Four accumulators, so that no step waits for the one before it.
    let (fours, rest) = keys.as_chunks::<4>();
    let mut bits = [W::default(); 4];
    for four in fours {
        for lane in 0..4 {
            bits[lane] = bits[lane] | (four[lane] ^ first);
        }
    }
    let rest = rest.iter().fold(W::default(), |bits, &key| bits | (key ^ first));
    bits.iter().fold(rest, |all, &bits| all | bits).widen()
}
