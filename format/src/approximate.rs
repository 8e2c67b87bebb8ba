//! Files whose keys are shorter than those they stand for: hashes of texts, or the first letters or digits.
//!
//! The build makes sure that different keys stay different. So every key that was built in is found, with its own
//! tuples, but a key that was not may be found, too: one that has the same hash or the same beginning. The
//! superblock has the feature [`APPROXIMATE`], which a reader must know.

use crate::error::FormatError;
use crate::header::Header;
use crate::logical::{Logical, Meaning};
use crate::meta::Meta;
use crate::rules::Rule;
use crate::section::{TABLE_OFFSET, Tag};
use crate::version::APPROXIMATE;

/// How often a key that is not in a file is found in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approximate {
    /// Number of different keys.
    pub distinct: u64,
    /// Share of the absent keys that are found, if these are as evenly spread as hashes; `None` for texts, which are
    /// not.
    pub rate: Option<f64>,
}

impl Approximate {
    /// Returns what META tells of the keys of so many tuples of this type; `None` if answers are exact.
    #[must_use]
    pub fn of(logical: &Logical, text: &str, tuples: u64) -> Option<Self> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
        // A file that was changed or merged tells how many there may be.
        let distinct = text.parse::<u64>().ok().filter(|_| is_number)?.min(tuples);
        let bits = match logical {
            Logical::Hash64(_) => Some(64),
            Logical::HexDigits(count) => i32::try_from(*count).ok().map(|count| 4 * count),
            Logical::Prefix(_) => None,
            _ => return None,
        };
        Some(Self { distinct, rate: bits.map(|bits| distinct as f64 / 2_f64.powi(bits)) })
    }

    /// Returns a sentence for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.rate {
            Some(rate) => format!("approximate: about {rate:.3e} of the absent keys are found"),
            None => "approximate: absent keys that begin as one of the file does are found".to_owned(),
        }
    }
}

/// Checks that the feature and META agree on whether keys are shorter than those they stand for.
///
/// # Errors
/// [`FormatError::Corrupt`] by [`Rule::Approximate`].
pub fn check(header: &Header, meta: &Meta) -> Result<(), FormatError> {
    let logical = Meaning::new(header.key_type, &meta.key_logical).logical;
    let says = Approximate::of(&logical, &meta.approximate, header.tuples).is_some();
    let is_flagged = header.superblock.reader_features.get() & APPROXIMATE != 0;
    let is_told = !meta.approximate.is_empty();
    if is_flagged == is_told && is_flagged == says {
        return Ok(());
    }
    Err(FormatError::Corrupt {
        what: "META",
        offset: header.section(Tag::META).map_or(TABLE_OFFSET, |section| section.offset()),
        rule: Rule::Approximate.broken("keys that are shorter must be told as such, and no others"),
        found: is_flagged.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_the_bits() {
        let of = |logical, text| Approximate::of(&logical, text, 10_000);
        assert_eq!(of(Logical::HexDigits(4), "6553").and_then(|found| found.rate), Some(6553.0 / 65536.0));
        let hash = of(Logical::Hash64(0), "1024").expect("is approximate");
        assert_eq!((hash.distinct, hash.rate), (1024, Some(2_f64.powi(-54))));
        assert_eq!(hash.describe(), "approximate: about 5.551e-17 of the absent keys are found");
        assert_eq!(of(Logical::Prefix(3), "7"), Some(Approximate { distinct: 7, rate: None }));
        assert_eq!(of(Logical::Hash64(0), "20000").map(|found| found.distinct), Some(10_000));
        for text in ["", "x", "-1", "+1", " 1", "99999999999999999999"] {
            assert_eq!(of(Logical::Hash64(0), text), None);
        }
        assert_eq!(of(Logical::Uuid, "7"), None);
    }
}
