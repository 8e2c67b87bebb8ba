//! Keys that are shorter than the texts they stand for: hashes and first letters.

use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher as _;

/// Returns the hash of a text: SipHash-2-4 with 128 bits of output and a zero key, the low half first.
#[must_use]
pub fn hash128(text: &[u8]) -> u128 {
    let mut hasher = SipHasher24::new();
    hasher.write(text);
    let hash = hasher.finish128();
    u128::from(hash.h2) << 64 | u128::from(hash.h1)
}

/// Returns the key of a text: the upper 64 bits of its hash, turned left by so many bytes.
#[must_use]
pub fn hash_of(text: &[u8], turn: u8) -> u64 {
    (hash128(text).rotate_left(8 * u32::from(turn % 16)) >> 64) as u64
}

/// Returns the first letters of a text, so many, or all of it if it has fewer; `None` if it is not UTF-8.
#[must_use]
pub fn first_letters(text: &[u8], letters: u32) -> Option<&[u8]> {
    let whole = core::str::from_utf8(text).ok()?;
    let end = whole.char_indices().nth(letters as usize).map_or(text.len(), |(end, _)| end);
    text.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From an implementation of its own, which gives the vectors of the authors of SipHash with their key.
    #[test]
    fn hashes_do_not_change() {
        assert_eq!(hash128(b""), 0xf4f2_ced4_47ab_0242_7de0_a380_47d7_4950);
        assert_eq!(hash128(b"abc"), 0x7854_d1d5_c169_5eca_a82f_9602_c3de_956c);
        assert_eq!(hash128(b"correct horse battery"), 0xbbbf_da13_1b53_1374_59d7_6f4c_bdb4_42a3);
        assert_eq!(hash_of(b"abc", 0), 0x7854_d1d5_c169_5eca);
        assert_eq!(hash_of(b"abc", 1), 0x54d1_d5c1_695e_caa8);
        assert_eq!(hash_of(b"abc", 8), 0xa82f_9602_c3de_956c);
        assert_eq!(hash_of(b"abc", 15), 0x6c78_54d1_d5c1_695e);
    }

    #[test]
    fn letters_are_whole() {
        assert_eq!(first_letters("aé\u{10ffff}b".as_bytes(), 2), Some("aé".as_bytes()));
        assert_eq!(first_letters(b"ab", 2), Some(&b"ab"[..]));
        assert_eq!(first_letters(b"ab", 5), Some(&b"ab"[..]));
        assert_eq!(first_letters(b"", 1), Some(&b""[..]));
        assert_eq!(first_letters(b"a\xff", 1), None);
    }
}
