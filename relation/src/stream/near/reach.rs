//! Distances between keys: their texts, and the greatest distance of a pair as a number of words.
//!
//! The encoded words of integers have the same distances as the integers. So a limit is a number of words,
//! and a comparison subtracts the lower word from the higher one, which cannot overflow. Only floats are
//! decoded.

use crate::error::RelationError;
use pleach::{Key as _, KeyType};
use pleach_format::Meaning;
use pleach_format::logical::{Logical, Unit};
use std::time::Duration;

/// Nanoseconds of the units of a length of time.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
    ("d", DAY),
    ("w", 7 * DAY),
];
const SECOND: u128 = 1_000_000_000;
const DAY: u128 = 86_400 * SECOND;
/// Maximum number of digits after the point.
const FRACTION_DIGITS_MAX: usize = 18;

/// The greatest distance of the keys of a pair, as a text. It is read when both inputs are known:
///
/// | keys | distance |
/// |---|---|
/// | integers, IPv4 and IPv6 addresses | `5` |
/// | floats | `0.5`, `1e-3`, `inf` |
/// | decimals | `0.05` |
/// | timestamps, times, durations | `250us`, `5s`, `1.5h`, `1d`: ns us ms s m h d w |
/// | dates | `3`, `3d`, `2w` |
///
/// A distance between two words counts as the lower one: `1.5` is 1 for integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distance(String);

impl From<&str> for Distance {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Distance {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<u64> for Distance {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

impl From<f64> for Distance {
    fn from(number: f64) -> Self {
        Self(number.to_string())
    }
}

impl From<Duration> for Distance {
    fn from(time: Duration) -> Self {
        Self(format!("{}.{:09}s", time.as_secs(), time.subsec_nanos()))
    }
}

impl Distance {
    /// Reads the distance for keys that mean `meaning`, those of `input`.
    pub(super) fn reach(
        &self,
        key_type: KeyType,
        meaning: &Meaning,
        input: &str,
    ) -> Result<Reach, RelationError> {
        let Some(scale) = Scale::of(key_type, &meaning.logical) else {
            return Err(RelationError::NoDistance { keys: meaning.to_string(), input: input.to_owned() });
        };
        let text = self.0.trim();
        scale.read(text).ok_or_else(|| RelationError::Distance {
            text: self.0.clone(),
            input: input.to_owned(),
            keys: meaning.to_string(),
            advice: scale.example(),
        })
    }
}

/// How the text of a distance becomes a number of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Float,
    /// A number times ten to this power.
    Number(i32),
    /// A length of time, by the nanoseconds of a word.
    Time(u128),
    /// The same; a number without a unit is one of days.
    Days(u128),
}

impl Scale {
    /// Returns the scale of keys; `None` if they have no distance.
    fn of(key_type: KeyType, logical: &Logical) -> Option<Self> {
        let nanoseconds = |unit: &Unit| SECOND / u128::from(unit.per_second().unsigned_abs()).max(1);
        match key_type {
            KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => return None,
            KeyType::F64 => return Some(Self::Float),
            KeyType::U32 | KeyType::U64 | KeyType::U128 | KeyType::I32 | KeyType::I64 => {}
        }
        match logical {
            Logical::Plain | Logical::Ipv4 | Logical::Ipv6 | Logical::Unknown(_) => Some(Self::Number(0)),
            Logical::Decimal { scale, .. } => Some(Self::Number((*scale).into())),
            Logical::Date32 => Some(Self::Days(DAY)),
            Logical::Date64 => Some(Self::Days(SECOND / 1000)),
            Logical::Time32(unit)
            | Logical::Time64(unit)
            | Logical::Timestamp(unit, _)
            | Logical::Duration(unit) => Some(Self::Time(nanoseconds(unit))),
            Logical::Boolean
            | Logical::Uuid
            | Logical::Ip
            | Logical::Dna2 { .. }
            | Logical::Hex
            | Logical::HexDigits(_)
            | Logical::Hash64(_)
            | Logical::Prefix(_)
            | Logical::Composite(_)
            | Logical::Record(_) => None,
        }
    }

    /// Returns an example of a distance, for messages.
    fn example(self) -> &'static str {
        match self {
            Self::Float => "use a number that is not negative, such as 0.5",
            Self::Number(digits) if digits > 0 => "use a number that is not negative, such as 0.5",
            Self::Number(_) => "use a number that is not negative, such as 5",
            Self::Time(_) => "use a length of time such as 5s or 250us (ns us ms s m h d w)",
            Self::Days(_) => "use a number of days such as 3d or 2w",
        }
    }

    /// Reads a distance, rounded down to words.
    fn read(self, text: &str) -> Option<Reach> {
        let (number, unit) = match self {
            Self::Float => {
                let float: f64 = text.parse().ok()?;
                return (float >= 0.0 && !text.starts_with('-')).then_some(Reach::Floats(float));
            }
            Self::Number(_) => (text, ""),
            Self::Time(_) | Self::Days(_) => {
                text.split_at(text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len()))
            }
        };
        let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, nanoseconds)| nanoseconds);
        let power = |digits: i32| 10_u128.checked_pow(digits.unsigned_abs());
        let (times, over) = match (self, unit) {
            (Self::Number(digits), _) if digits < 0 => (1, power(digits)?),
            (Self::Number(digits), _) => (power(digits)?, 1),
            (Self::Time(word) | Self::Days(word), Some(unit)) => (unit, word),
            (Self::Days(word), None) if number.len() == text.len() => (DAY, word),
            // Zero is zero in all units.
            (Self::Time(_), None) if number.len() == text.len() => {
                return (scaled(number, DAY)? == 0).then_some(Reach::Words(0));
            }
            (Self::Float | Self::Time(_) | Self::Days(_), _) => return None,
        };
        Some(Reach::Words(scaled(number, times)? / over))
    }
}

/// Returns a number, with or without a point, times `times`, rounded down; at most the greatest word.
fn scaled(text: &str, times: u128) -> Option<u128> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction.trim_end_matches('0')),
        Some(_) => return None,
        None => (text, ""),
    };
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) || fraction.len() > FRACTION_DIGITS_MAX {
        return None;
    }
    let digit = |digit: u8| u128::from(digit - b'0');
    let whole =
        whole.bytes().fold(0u128, |number, byte| number.saturating_mul(10).saturating_add(digit(byte)));
    let (part, power) =
        fraction.bytes().fold((0u128, 1u128), |(part, power), byte| (part * 10 + digit(byte), power * 10));
    Some(whole.saturating_mul(times).saturating_add(part.checked_mul(times)? / power))
}

/// The greatest distance of the keys of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reach {
    /// A number of words.
    Words(u128),
    /// A distance of floats.
    Floats(f64),
}

impl Reach {
    /// Returns the distance that holds for all keys of a type.
    pub(super) fn all(key_type: KeyType) -> Self {
        match key_type {
            KeyType::F64 => Self::Floats(f64::INFINITY),
            KeyType::U32
            | KeyType::U64
            | KeyType::U128
            | KeyType::I32
            | KeyType::I64
            | KeyType::Fixed(_)
            | KeyType::Bytes
            | KeyType::Utf8 => Self::Words(u128::MAX),
        }
    }

    /// Reports whether `above` is not too far from `below`, which is at most `above`.
    #[inline]
    pub(super) fn holds(self, below: u128, above: u128) -> bool {
        match self {
            Self::Words(max) => above.saturating_sub(below) <= max,
            Self::Floats(max) => gap(below, above) <= max,
        }
    }

    /// Reports whether `above` is nearer to `key` than `below`; `key` is between them.
    #[inline]
    pub(super) fn is_nearer(self, key: u128, below: u128, above: u128) -> bool {
        match self {
            Self::Words(_) => above.saturating_sub(key) < key.saturating_sub(below),
            Self::Floats(_) => gap(key, above) < gap(below, key),
        }
    }
}

/// Returns the distance of two floats. An infinity is infinitely far from every other key, and not from
/// itself.
fn gap(below: u128, above: u128) -> f64 {
    if below == above {
        return 0.0;
    }
    let gap = f64::decode(above as u64) - f64::decode(below as u64);
    if gap.is_nan() { f64::INFINITY } else { gap }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach::Word as _;

    fn meaning(key_type: KeyType, name: &str) -> Meaning {
        let logical = Logical::of_name(name).unwrap_or_default();
        assert_eq!(logical == Logical::Plain, name.is_empty(), "{name}");
        let meaning = Meaning::new(key_type, &logical.meta());
        assert_eq!(meaning.logical, logical, "{name}");
        meaning
    }

    fn read(key_type: KeyType, logical: &str, text: &str) -> Option<Reach> {
        Distance::from(text).reach(key_type, &meaning(key_type, logical), "a").ok()
    }

    #[test]
    fn texts_are_read_in_the_meaning_of_the_keys() {
        let words = |logical: &str, text: &str| match read(KeyType::I64, logical, text) {
            Some(Reach::Words(words)) => Some(words),
            Some(Reach::Floats(_)) | None => None,
        };
        let most = u128::MAX.to_string();
        for (text, wanted) in [
            ("0", Some(0)),
            (" 5 ", Some(5)),
            ("5.0", Some(5)),
            ("5.9", Some(5)),
            (&most, Some(u128::MAX)),
            (&format!("{most}0"), Some(u128::MAX)),
            ("-1", None),
            ("-0", None),
            ("+1", None),
            ("", None),
            (".5", None),
            ("5.", None),
            ("5s", None),
            ("1e3", None),
            ("0x1", None),
            ("1.2.3", None),
        ] {
            assert_eq!(words("", text), wanted, "{text}");
        }
        for (logical, text, wanted) in [
            ("timestamp[us]", "5s", Some(5_000_000)),
            ("timestamp[us]", "1.5ms", Some(1500)),
            ("timestamp[us]", "999ns", Some(0)),
            ("timestamp[us,UTC]", "2w", Some(14 * 86_400_000_000)),
            ("timestamp[us]", "0", Some(0)),
            ("timestamp[us]", "5", None),
            ("timestamp[us]", "0.0000000000001", None),
            ("timestamp[us]", "5 s", None),
            ("timestamp[us]", "5y", None),
            ("timestamp[us]", "s", None),
            ("timestamp[us]", "-5s", None),
            ("timestamp[s]", "1m", Some(60)),
            ("timestamp[s]", "1h", Some(3600)),
            ("timestamp[s]", "1500ms", Some(1)),
            ("timestamp[ns]", "100000d", Some(8_640_000_000_000_000_000)),
            ("duration[ms]", "0.25s", Some(250)),
            ("time[ns]", "2us", Some(2000)),
            ("date[ms]", "3", Some(3 * 86_400_000)),
            ("date[ms]", "1h", Some(3_600_000)),
            ("decimal(10,2)", "0.05", Some(5)),
            ("decimal(10,2)", "3", Some(300)),
            ("decimal(10,2)", "0.059", Some(5)),
            ("decimal(10,-2)", "1234", Some(12)),
            ("decimal(10,2)", "5s", None),
        ] {
            assert_eq!(words(logical, text), wanted, "{logical} {text}");
        }
        assert_eq!(read(KeyType::I32, "date", "3d"), Some(Reach::Words(3)));
        assert_eq!(read(KeyType::I32, "date", "3"), Some(Reach::Words(3)));
        assert_eq!(read(KeyType::I32, "date", "47h"), Some(Reach::Words(1)));
        assert_eq!(read(KeyType::I32, "date", "3x"), None);
        let float = |text| read(KeyType::F64, "", text);
        assert_eq!(float("1e-3"), Some(Reach::Floats(1e-3)));
        assert_eq!(float("inf"), Some(Reach::Floats(f64::INFINITY)));
        assert_eq!((float("nan"), float("-1"), float("-0"), float("5s")), (None, None, None, None));
        assert_eq!(Distance::from(Duration::from_millis(1500)), Distance::from("1.500000000s"));
        assert_eq!(words("timestamp[ms]", "1.500000000s"), Some(1500));
        assert_eq!(Distance::from(2.5), Distance::from("2.5"));
        assert_eq!(Distance::from(7_u64), Distance::from("7".to_owned()));
    }

    #[test]
    fn keys_without_a_distance_are_refused() {
        let refused = |key_type, logical| {
            let meaning = meaning(key_type, logical);
            Distance::from("1").reach(key_type, &meaning, "a.pleach").unwrap_err().to_string()
        };
        for (key_type, logical) in [
            (KeyType::Utf8, ""),
            (KeyType::Bytes, ""),
            (KeyType::Fixed(3), ""),
            (KeyType::U128, "dna2"),
            (KeyType::U128, "ip"),
        ] {
            let text = refused(key_type, logical);
            assert!(text.contains("no distance") && text.contains("a.pleach"), "{text}");
        }
    }

    #[test]
    fn distances_at_the_ends_of_the_types() {
        let word = |number: i64| number.encode().to_u128();
        let (least, most) = (word(i64::MIN), word(i64::MAX));
        assert!(Reach::Words(u64::MAX.into()).holds(least, most));
        assert!(!Reach::Words(u128::from(u64::MAX) - 1).holds(least, most));
        assert!(
            Reach::Words(u128::MAX).holds(0, u128::MAX) && !Reach::Words(u128::MAX - 1).holds(0, u128::MAX)
        );
        assert!(Reach::Words(0).holds(7, 7) && Reach::Words(0).holds(8, 7), "keys out of order");
        let word = |number: f64| number.encode().to_u128();
        let (least, most) = (word(f64::NEG_INFINITY), word(f64::INFINITY));
        assert!(Reach::Floats(0.0).holds(most, most) && Reach::Floats(0.0).holds(least, least));
        assert!(
            !Reach::Floats(f64::MAX).holds(word(0.0), most) && !Reach::Floats(f64::MAX).holds(least, most)
        );
        assert!(Reach::Floats(f64::INFINITY).holds(least, most));
        assert!(
            Reach::Floats(0.5).holds(word(1.0), word(1.5)) && !Reach::Floats(0.5).holds(word(1.0), word(1.6))
        );
    }
}
