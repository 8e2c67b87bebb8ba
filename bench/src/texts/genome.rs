//! A genome with repeats, whose bases are calculated: 32 of them, two bits each, in a word.
//!
//! Three words in ten belong to copies of a few hundred long elements, each copy with a substitution
//! in about one of 64 bases: so many 31-mers occur more than once, and many differ in one base only.

use crate::data::{below, mix64};

/// Bases of a k-mer.
pub(super) const K: usize = 31;
/// Words of one repeated element.
const ELEMENT_WORDS: u64 = 16;
/// Number of different elements.
const ELEMENTS: u64 = 256;

fn word(index: u64, seed: u64) -> u64 {
    let segment = mix64(seed ^ mix64(index / ELEMENT_WORDS));
    let own = mix64(segment ^ (index % ELEMENT_WORDS));
    if below(segment, 10) >= 3 {
        return own;
    }
    let element = below(mix64(segment), ELEMENTS);
    let consensus = mix64(!seed ^ mix64(element * ELEMENT_WORDS + index % ELEMENT_WORDS));
    // Every second word of a copy has one base changed, to one of the three others.
    let change = if own & 1 == 0 { 1 + below(own, 3) } else { 0 };
    consensus ^ (change << (2 * ((own >> 1) % 32)))
}

/// The 31 bases from position `i`, the first in the highest bits.
pub(super) fn kmer(i: u64, seed: u64) -> u64 {
    let (index, offset) = (i / 32, 2 * (i % 32));
    let pair = u128::from(word(index, seed)) << 64 | u128::from(word(index + 1, seed));
    ((pair << offset) >> (128 - 2 * K)) as u64
}

/// Appends the letters of 31 bases.
pub(super) fn letters(kmer: u64, out: &mut Vec<u8>) {
    out.extend((0..K).rev().map(|base| b"ACGT"[(kmer >> (2 * base) & 3) as usize]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_thirty_bases() {
        for i in 0..1000 {
            let (this, next) = (kmer(i, 5), kmer(i + 1, 5));
            assert_eq!((this << 2 >> 2) & ((1 << 60) - 1), next >> 2, "{i}");
        }
    }

    #[test]
    fn some_stand_again() {
        let mut kmers: Vec<u64> = (0..1 << 18).map(|i| kmer(i, 5)).collect();
        kmers.sort_unstable();
        kmers.dedup();
        let repeated = (1 << 18) - kmers.len();
        assert!((500..100_000).contains(&repeated), "{repeated}");
    }
}
