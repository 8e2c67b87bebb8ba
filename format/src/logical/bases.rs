//! DNA as numbers: two bits for each base, and the length.
//!
//! A sequence of up to 61 bases is a number of 128 bits. The bases stand from bit 127 on, two bits each (A is
//! 0, C 1, G 2, T 3), zero bits follow, and the lowest 6 bits hold the number of bases. So numbers have the
//! order of the texts, a sequence before its extensions. Where all sequences have one length, as k-mers have,
//! the words of a file keep the bits of the bases alone: 31 bases have words of 8 bytes.

use super::text::{BASES_MAX, TextError};

/// Lowest bits, which hold the number of bases.
const LENGTH: u128 = 63;

/// Reads bases in upper or lower case.
pub(super) fn read(text: &[u8]) -> Result<u128, TextError> {
    if text.is_empty() {
        return Err(TextError::Form);
    }
    if text.len() > BASES_MAX {
        return Err(TextError::Long);
    }
    let mut word = text.len() as u128;
    for (at, base) in text.iter().enumerate() {
        let code: u128 = match base {
            b'A' | b'a' => 0,
            b'C' | b'c' => 1,
            b'G' | b'g' => 2,
            b'T' | b't' => 3,
            _ => return Err(TextError::Form),
        };
        word |= code << (126 - 2 * at);
    }
    Ok(word)
}

/// Returns the smaller of a sequence and its reverse complement.
#[must_use]
pub const fn canonical(word: u128) -> u128 {
    let length = word & LENGTH;
    // A length that no text has is one of a damaged file or of a raw number.
    let length = if length > BASES_MAX as u128 { BASES_MAX as u128 } else { length };
    // The complement of a base is its distance from T. Bases swap places: pairs of bits by `reverse_bits`,
    // which also swaps the two bits of each pair, and so these swap back.
    const ODD: u128 = 0xaaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa;
    let swapped = (!word).reverse_bits();
    let swapped = (swapped & ODD) >> 1 | (swapped << 1) & ODD;
    // What was behind the bases is now before them.
    let bases = if length == 0 { 0 } else { swapped << (128 - 2 * length) };
    let other = bases | word & LENGTH;
    if other < word { other } else { word }
}

/// Appends the bases of a number.
pub(super) fn put(word: u128, out: &mut Vec<u8>) {
    let length = ((word & LENGTH) as usize).min(BASES_MAX);
    out.extend((0..length).map(|at| b"ACGT"[(word >> (126 - 2 * at) & 3) as usize]));
}

/// Returns the smallest and the largest sequence that begin with some bases.
pub(super) fn prefix(text: &[u8]) -> Result<(u128, u128), TextError> {
    if text.is_empty() {
        return Ok((0, u128::MAX));
    }
    let low = read(text)?;
    let free = u128::MAX.checked_shr(2 * text.len() as u32).unwrap_or(0);
    Ok((low, low | free))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(word: u128) -> String {
        let mut out = Vec::new();
        put(word, &mut out);
        String::from_utf8(out).expect("letters")
    }

    fn complement(text: &str) -> String {
        text.bytes()
            .rev()
            .map(|base| match base {
                b'A' => 'T',
                b'C' => 'G',
                b'G' => 'C',
                _ => 'A',
            })
            .collect()
    }

    /// All sequences of up to 5 bases, and longer ones drawn from a counter.
    fn every() -> Vec<String> {
        let mut all = vec![String::new()];
        let mut start = 0;
        for _ in 0..5 {
            let end = all.len();
            for at in start..end {
                for base in ["A", "C", "G", "T"] {
                    all.push(all[at].clone() + base);
                }
            }
            start = end;
        }
        all.remove(0);
        for length in 6..=BASES_MAX {
            for seed in 1..8_u64 {
                let draw =
                    |at: usize| (seed * 0x9e37_79b9 + at as u64).wrapping_mul(0xd1b5_4a32_d192_ed03) >> 62;
                all.push((0..length).map(|at| char::from(b"ACGT"[draw(at) as usize])).collect());
            }
        }
        all
    }

    #[test]
    fn numbers_have_the_order_of_texts() {
        let mut all = every();
        all.sort_unstable();
        let words: Vec<u128> = all.iter().map(|text| read(text.as_bytes()).expect("bases")).collect();
        assert!(words.is_sorted());
        for (word, bases) in words.iter().zip(&all) {
            assert_eq!(text(*word), *bases);
            assert_eq!(read(bases.to_lowercase().as_bytes()), Ok(*word));
        }
    }

    #[test]
    fn canonical_sequences_are_the_smaller_ones() {
        for bases in every() {
            let word = read(bases.as_bytes()).expect("bases");
            let other = complement(&bases);
            let smaller = if other < bases { &other } else { &bases };
            assert_eq!(text(canonical(word)), *smaller, "{bases}");
            assert_eq!(canonical(read(other.as_bytes()).expect("bases")), canonical(word), "{bases}");
        }
        // Words that no text has.
        for word in [0, 62, 63, u128::MAX, 1 << 127] {
            assert!(canonical(word) <= word);
        }
    }

    #[test]
    fn prefixes_hold_all_extensions() {
        let all = every();
        for prefix_text in ["A", "T", "TTTT", "GATTACA", ""] {
            let (low, high) = prefix(prefix_text.as_bytes()).expect("bases");
            for bases in &all {
                let word = read(bases.as_bytes()).expect("bases");
                assert_eq!((low..=high).contains(&word), bases.starts_with(prefix_text), "{bases}");
            }
        }
        assert_eq!(prefix(b"AN"), Err(TextError::Form));
        let full = "T".repeat(BASES_MAX);
        assert!(prefix(full.as_bytes()).is_ok_and(|(low, high)| low <= high));
    }

    #[test]
    fn bad_bases_are_named() {
        assert_eq!(read(b""), Err(TextError::Form));
        assert_eq!(read(b"ACGN"), Err(TextError::Form));
        assert_eq!(read(&[b'A'; BASES_MAX + 1]), Err(TextError::Long));
        assert!(read(&[b'T'; BASES_MAX]).is_ok());
    }
}
