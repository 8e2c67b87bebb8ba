//! Logical types: the meaning of the words of a column.
//!
//! A date, a time, a timestamp, a duration and a decimal are integers with a unit, a zone or a scale; a uuid
//! is 16 bytes, an address a number of 32 or 128 bits, a sequence of bases one of 128, a boolean 0 or 1. META
//! contains the type as a text ([`Logical::meta`]); people and the command line use a short name ([`Logical::name`]).
//!
//! - [`matching`] decides whether two columns mean the same, and how to scale the words of each so that equal
//!   words are equal values. All operators and commands use this one function.
//! - [`ratio`] returns how the words of one type become those of another, exactly.
//! - [`Form`] is the part of a type on which texts depend: it reads `2024-01-01T12:00:00.5Z`, and prints it.
//!
//! Every word prints as a text that reads back as the same word. Decimals print as many digits after the
//! point as their scale specifies, other types as few as are needed. Years outside of 0 to 9999 have a sign,
//! and so have times outside of a day.

use crate::record::{Field, Record};
use core::fmt;

mod address;
mod bases;
mod composite;
mod digits;
mod element;
mod lossy;
mod text;
mod unit;

pub use address::{both_of_v6, v6_of_both};
pub use bases::canonical;
pub use composite::{Composite, CompositeError, PARTS_MAX, Part, Parts, field_types, part_type, type_list};
pub use element::Element;
pub use lossy::{first_letters, hash_of, hash128};
pub use text::{Form, TextError};
pub use unit::Unit;

/// Logical type: the meaning of the words of a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Logical {
    /// The words have no other meaning.
    #[default]
    Plain,
    /// Days since 1970, in 4 bytes.
    Date32,
    /// Milliseconds since 1970, in 8 bytes.
    Date64,
    /// Time since midnight, in 4 bytes.
    Time32(Unit),
    /// Time since midnight, in 8 bytes.
    Time64(Unit),
    /// Time since 1970: in UTC if there is a zone, else local time in an unknown zone.
    Timestamp(Unit, Option<String>),
    /// A length of time.
    Duration(Unit),
    /// A decimal number of `precision` digits, `scale` of them after the point, stored in Arrow in `bits`
    /// bits.
    Decimal {
        /// Bits in Arrow: 32, 64 or 128. Words in a Pleach file have 64.
        bits: u8,
        /// Number of digits in all.
        precision: u8,
        /// Number of digits after the point.
        scale: i8,
    },
    /// True or false, as values and fields: 1 or 0. Any other number, which no writer stores, is true.
    Boolean,
    /// 16 bytes that identify something.
    Uuid,
    /// An IPv4 address, in 32 bits.
    Ipv4,
    /// An IPv6 address, in 128 bits.
    Ipv6,
    /// An address of either family, in 128 bits: see [`both_of_v6`].
    Ip,
    /// Up to 61 DNA bases, in 128 bits.
    Dna2 {
        /// A sequence and its reverse complement are the same key, the smaller of the two.
        is_canonical: bool,
    },
    /// A byte string, whose text is its hexadecimal digits.
    Hex,
    /// The first digits of a text of hexadecimal digits: so many of them, a number of up to 32 digits, or else
    /// a byte string.
    HexDigits(u32),
    /// The hash of a text: see [`hash_of`]. The number says by how many bytes it is turned.
    Hash64(u8),
    /// The first letters of a text, so many.
    Prefix(u32),
    /// Several columns as one key.
    Composite(Composite),
    /// A record, whose fields have a type each; the text is that of META.
    Record(String),
    /// A type of a later version; the text is that of META.
    Unknown(String),
}

impl Logical {
    /// Returns the type of a text in META. A text that is not known gives [`Logical::Unknown`].
    #[must_use]
    pub fn of_meta(text: &str) -> Self {
        match text {
            "" => Self::Plain,
            _ if Record::is_meant(text) => Self::Record(text.to_owned()),
            _ if text.starts_with("composite<") => {
                Composite::parse(text).map_or_else(|| Self::Unknown(text.to_owned()), Self::Composite)
            }
            // Each type has exactly one text: `Decimal128(+5, 02)` is unknown.
            _ => Self::parsed(text)
                .filter(|known| known.meta() == text)
                .unwrap_or_else(|| Self::Unknown(text.to_owned())),
        }
    }

    fn parsed(text: &str) -> Option<Self> {
        let (name, arguments) = match text.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')')?),
            None => (text, ""),
        };
        let unit = |text: &str| Unit::find_by(text, Unit::meta);
        Some(match name {
            "Date32" => Self::Date32,
            "Date64" => Self::Date64,
            "Boolean" => Self::Boolean,
            "Uuid" => Self::Uuid,
            "Ipv4" => Self::Ipv4,
            "Ipv6" => Self::Ipv6,
            "Ip" => Self::Ip,
            "Dna2" => Self::Dna2 { is_canonical: !arguments.is_empty() },
            "Hex" if arguments.is_empty() => Self::Hex,
            "Hex" => Self::HexDigits(digit_count(arguments)?),
            "Hash64" if arguments.is_empty() => Self::Hash64(0),
            "Hash64" => Self::Hash64(arguments.parse().ok().filter(|turn| (1..16).contains(turn))?),
            "Prefix" => Self::Prefix(arguments.parse().ok().filter(|&letters| letters > 0)?),
            "Time32" => Self::Time32(unit(arguments).filter(|unit| unit.is_coarse())?),
            "Time64" => Self::Time64(unit(arguments).filter(|unit| !unit.is_coarse())?),
            "Duration" => Self::Duration(unit(arguments)?),
            "Timestamp" => {
                let (name, zone) = arguments.split_once(", ")?;
                let zone = match zone {
                    "None" => None,
                    _ => Some(unescaped(zone.strip_prefix("Some(\"")?.strip_suffix("\")")?)),
                };
                Self::Timestamp(unit(name)?, zone)
            }
            "Decimal32" | "Decimal64" | "Decimal128" => {
                let (precision, scale) = arguments.split_once(", ")?;
                let bits = name.strip_prefix("Decimal")?.parse().ok()?;
                Self::Decimal { bits, precision: precision.parse().ok()?, scale: scale.parse().ok()? }
            }
            _ => return None,
        })
    }

    /// Returns the text for META: `Date32`, `Time64(Microsecond)`, `Timestamp(Second, Some("UTC"))`,
    /// `Decimal128(15, 2)`, `Boolean`, `Uuid`, `Ipv4`, `Dna2(Canonical)`, `Hex(5)`; empty for plain words.
    #[must_use]
    pub fn meta(&self) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Date32 => "Date32".to_owned(),
            Self::Date64 => "Date64".to_owned(),
            Self::Time32(unit) => format!("Time32({})", unit.meta()),
            Self::Time64(unit) => format!("Time64({})", unit.meta()),
            Self::Duration(unit) => format!("Duration({})", unit.meta()),
            Self::Timestamp(unit, None) => format!("Timestamp({}, None)", unit.meta()),
            Self::Timestamp(unit, Some(zone)) => {
                let zone = zone.replace('\\', "\\\\").replace('"', "\\\"");
                format!("Timestamp({}, Some(\"{zone}\"))", unit.meta())
            }
            Self::Decimal { bits, precision, scale } => format!("Decimal{bits}({precision}, {scale})"),
            Self::Boolean => "Boolean".to_owned(),
            Self::Uuid => "Uuid".to_owned(),
            Self::Ipv4 => "Ipv4".to_owned(),
            Self::Ipv6 => "Ipv6".to_owned(),
            Self::Ip => "Ip".to_owned(),
            Self::Dna2 { is_canonical: false } => "Dna2".to_owned(),
            Self::Dna2 { is_canonical: true } => "Dna2(Canonical)".to_owned(),
            Self::Hex => "Hex".to_owned(),
            Self::HexDigits(count) => format!("Hex({count})"),
            Self::Hash64(0) => "Hash64".to_owned(),
            Self::Hash64(turn) => format!("Hash64({turn})"),
            Self::Prefix(letters) => format!("Prefix({letters})"),
            Self::Composite(composite) => composite.to_string(),
            Self::Record(text) | Self::Unknown(text) => text.clone(),
        }
    }

    /// Returns the type with this name on the command line: `date`, `time[us]`, `timestamp[us]`,
    /// `timestamp[us,UTC]`, `duration[us]`, `decimal(10,2)`, `bool`, `uuid`, `ipv4`, `ipv6`, `ip`,
    /// `dna2`, `dna2:canonical`, `hex`, `hex:5`. The default unit is `us`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let (head, inner) = match name.split_once('[') {
            Some((head, rest)) => (head, Some(rest.strip_suffix(']')?)),
            None => (name, None),
        };
        let unit = |inner: Option<&str>| match inner {
            None => Some(Unit::Microsecond),
            Some(text) => Unit::find_by(text.trim(), Unit::name),
        };
        Some(match head {
            "date" if inner.is_none() => Self::Date32,
            "date" if inner == Some("ms") => Self::Date64,
            "bool" if inner.is_none() => Self::Boolean,
            "uuid" if inner.is_none() => Self::Uuid,
            "ipv4" if inner.is_none() => Self::Ipv4,
            "ipv6" if inner.is_none() => Self::Ipv6,
            "ip" if inner.is_none() => Self::Ip,
            "dna2" if inner.is_none() => Self::Dna2 { is_canonical: false },
            "dna2:canonical" if inner.is_none() => Self::Dna2 { is_canonical: true },
            "hex" if inner.is_none() => Self::Hex,
            _ if head.starts_with("hex:") && inner.is_none() => {
                Self::HexDigits(digit_count(head.strip_prefix("hex:")?)?)
            }
            "time" => match unit(inner)? {
                unit if unit.is_coarse() => Self::Time32(unit),
                unit => Self::Time64(unit),
            },
            "duration" => Self::Duration(unit(inner)?),
            "timestamp" => match inner.and_then(|inner| inner.split_once(',')) {
                Some((name, zone)) if !zone.trim().is_empty() => {
                    Self::Timestamp(unit(Some(name))?, Some(zone.trim().to_owned()))
                }
                Some(_) => return None,
                None => Self::Timestamp(unit(inner)?, None),
            },
            _ => {
                let (bits, inner) = name.strip_prefix("decimal")?.split_once('(')?;
                let (bits, digits) = match bits {
                    "32" => (32, 9),
                    "64" => (64, 18),
                    "" => (128, 38),
                    _ => return None,
                };
                let inner = inner.strip_suffix(')')?;
                let (precision, scale) = inner.split_once(',').unwrap_or((inner, "0"));
                let number = |text: &str| text.trim().parse::<i8>().ok().filter(|_| !text.contains('+'));
                let precision = u8::try_from(number(precision)?).ok()?;
                let scale = number(scale)?;
                if !(1..=digits).contains(&precision) || i16::from(scale) > i16::from(precision) {
                    return None;
                }
                Self::Decimal { bits, precision, scale }
            }
        })
    }

    /// Examples of names of keys and values, for messages.
    pub const NAMES: &'static str = "date time[us] timestamp[us] timestamp[us,UTC] duration[us] decimal(10,2) uuid \
                                     ipv4 ipv6 ip hex hex:16 (first digits) dna2 dna2:canonical";

    /// Returns the name for people; empty for plain words. A text of a later version is returned unchanged.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Date32 => "date".to_owned(),
            Self::Date64 => "date[ms]".to_owned(),
            Self::Time32(unit) | Self::Time64(unit) => format!("time[{}]", unit.name()),
            Self::Timestamp(unit, None) => format!("timestamp[{}]", unit.name()),
            Self::Timestamp(unit, Some(zone)) => format!("timestamp[{},{zone}]", unit.name()),
            Self::Duration(unit) => format!("duration[{}]", unit.name()),
            Self::Decimal { bits: 128, precision, scale } => format!("decimal({precision},{scale})"),
            Self::Decimal { bits, precision, scale } => format!("decimal{bits}({precision},{scale})"),
            Self::Boolean => "bool".to_owned(),
            Self::Uuid => "uuid".to_owned(),
            Self::Ipv4 => "ipv4".to_owned(),
            Self::Ipv6 => "ipv6".to_owned(),
            Self::Ip => "ip".to_owned(),
            Self::Dna2 { is_canonical: false } => "dna2".to_owned(),
            Self::Dna2 { is_canonical: true } => "dna2:canonical".to_owned(),
            Self::Hex => "hex".to_owned(),
            Self::HexDigits(count) => format!("hex:{count}"),
            Self::Hash64(_) => "hash64".to_owned(),
            Self::Prefix(letters) => format!("prefix:{letters}"),
            Self::Composite(composite) => composite.type_name(),
            Self::Record(text) | Self::Unknown(text) => text.clone(),
        }
    }

    /// Returns the name of the type in which keys of this type are stored; `None` if it is not restricted.
    #[must_use]
    pub fn key_words(&self) -> Option<String> {
        let name = match self {
            Self::Date32 | Self::Time32(_) => "i32",
            Self::Date64
            | Self::Time64(_)
            | Self::Timestamp(..)
            | Self::Duration(_)
            | Self::Decimal { .. } => "i64",
            Self::Boolean | Self::Ipv4 | Self::HexDigits(1..=8) => "u32",
            Self::HexDigits(9..=16) => "u64",
            Self::Uuid | Self::Ipv6 | Self::Ip | Self::Dna2 { .. } | Self::HexDigits(17..=32) => "u128",
            Self::Hex => "bytes",
            Self::Hash64(_) => "u64",
            Self::Prefix(_) => "utf8",
            Self::HexDigits(count) => return Some(format!("bytes{}", count / 2)),
            Self::Composite(composite) => return Some(composite.parts().key_words()),
            Self::Plain | Self::Record(_) | Self::Unknown(_) => return None,
        };
        Some(name.to_owned())
    }

    /// Returns the name of the type in which values and fields of this type are stored: that of keys, but 16
    /// bytes for numbers of 128 bits.
    #[must_use]
    pub fn value_words(&self) -> Option<String> {
        if matches!(self, Self::Composite(_) | Self::Hash64(_) | Self::Prefix(_)) {
            return None;
        }
        self.key_words().map(|name| if name == "u128" { "bytes16".to_owned() } else { name })
    }

    /// Returns the name of the type in which fields of this type are stored: that of values, but a byte for booleans.
    #[must_use]
    pub fn field_words(&self) -> Option<String> {
        if *self == Self::Boolean { Some("u8".to_owned()) } else { self.value_words() }
    }

    /// Reports whether columns of a type can have this meaning, as keys or as values.
    #[must_use]
    pub fn fits(&self, words: &str) -> bool {
        match self.key_words() {
            None => true,
            Some(_) if *self == Self::Boolean => matches!(words, "u32" | "u8"),
            Some(wanted) if wanted == "u128" => matches!(words, "u128" | "bytes16"),
            Some(wanted) => wanted == words,
        }
    }

    /// Returns the form of its texts; `None` if they are those of plain words.
    #[must_use]
    pub const fn form(&self) -> Option<Form> {
        Some(match self {
            Self::Date32 => Form::Days,
            Self::Date64 => Form::Date,
            Self::Time32(unit) | Self::Time64(unit) => Form::Time(*unit),
            Self::Timestamp(unit, zone) => Form::Timestamp(*unit, zone.is_some()),
            Self::Duration(unit) => Form::Duration(*unit),
            Self::Decimal { precision, scale, .. } => Form::Decimal(*precision, *scale),
            Self::Boolean => Form::Boolean,
            Self::Uuid => Form::Uuid,
            Self::Ipv4 => Form::Ipv4,
            Self::Ipv6 => Form::Ipv6,
            Self::Ip => Form::Ip,
            Self::Dna2 { is_canonical } => Form::Bases(*is_canonical),
            Self::Hex => Form::Hex,
            Self::HexDigits(count) => Form::Digits(*count),
            Self::Hash64(turn) => Form::Hash(*turn),
            Self::Prefix(letters) => Form::Letters(*letters),
            Self::Composite(composite) => Form::Composite(composite.parts()),
            Self::Plain | Self::Record(_) | Self::Unknown(_) => return None,
        })
    }
}

impl fmt::Display for Logical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Reads the number of digits of a key type: without sign or leading zeros, even if it is not a number.
fn digit_count(text: &str) -> Option<u32> {
    let is_plain = !text.starts_with(['0', '+']) && text.len() <= 6;
    let count = text.parse().ok().filter(|count| is_plain && (1..=digits::DIGITS_MAX).contains(count))?;
    (count <= digits::NUMBER_DIGITS || count % 2 == 0).then_some(count)
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or('\\') } else { letter });
    }
    plain
}

/// Type of the words of a column, and their meaning.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meaning {
    /// Name of the type of the words or byte strings.
    pub words: String,
    /// Logical type of the words.
    pub logical: Logical,
}

impl Meaning {
    /// Creates the meaning of a column of type `words` that has this text in META. If the two do not fit
    /// together, the logical type is [`Logical::Unknown`].
    #[must_use]
    pub fn new(words: impl fmt::Display, meta: &str) -> Self {
        let words = words.to_string();
        let logical = match Logical::of_meta(meta) {
            logical if logical.fits(&words) => logical,
            _ => Logical::Unknown(meta.to_owned()),
        };
        Self { words, logical }
    }

    /// Returns the form of its texts.
    #[must_use]
    pub const fn form(&self) -> Option<Form> {
        self.logical.form()
    }
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.logical {
            Logical::Plain => f.write_str(&self.words),
            Logical::Record(text) => match Record::parse(text) {
                Some(record) => {
                    let fields: Vec<String> = record.fields().iter().map(Field::shown).collect();
                    write!(f, "record<{}>", fields.join(", "))
                }
                None => f.write_str(text),
            },
            Logical::Composite(composite) => f.write_str(&composite.type_name()),
            logical => write!(f, "{} {}", self.words, logical),
        }
    }
}

impl Field {
    /// Returns the name and the type as commands take it, where `Display` shows the type as META stores it.
    ///
    /// ```
    /// use pleach_format::record::{Field, FieldKind};
    /// let day = Field { logical: "Date32".to_owned(), ..Field::new("day", FieldKind::I32) };
    /// assert_eq!((day.to_string().as_str(), day.shown().as_str()), ("day: i32 \"Date32\"", "day: i32 date"));
    /// ```
    #[must_use]
    pub fn shown(&self) -> String {
        let plain = Self::new(self.name.as_str(), self.kind);
        match Meaning::new(self.kind, &self.logical).logical {
            Logical::Plain => plain.to_string(),
            logical => format!("{plain} {logical}"),
        }
    }
}

/// A factor and a divisor. A word is multiplied by the one and divided by the other, without a remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Factor; at least 1.
    pub times: i64,
    /// Divisor; at least 1.
    pub over: i64,
}

impl Ratio {
    /// The ratio that leaves words unchanged.
    pub const ONE: Self = Self { times: 1, over: 1 };

    /// Converts a word. Returns `None` if the product overflows 64 bits, or if there is a remainder.
    #[must_use]
    #[inline]
    pub const fn apply(self, word: i64) -> Option<i64> {
        match word.checked_mul(self.times) {
            Some(product) if product % self.over == 0 => Some(product / self.over),
            _ => None,
        }
    }
}

/// The common meaning of two columns, and how the words of each are converted to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    /// Meaning of the result: the finer unit, the larger scale.
    pub meaning: Meaning,
    /// Ratio for the words of the left column; nothing is divided.
    pub left: Ratio,
    /// Ratio for the words of the right column; nothing is divided.
    pub right: Ratio,
}

impl Common {
    /// Reports whether the words of both can be compared without conversion.
    #[must_use]
    pub fn is_same(&self, left: &Meaning, right: &Meaning) -> bool {
        (self.left, self.right) == (Ratio::ONE, Ratio::ONE) && left.words == right.words
    }
}

/// Returns how the words of two columns are compared: in the finer unit, at the larger scale. Returns `None`
/// if the columns mean different things, or if only one of them is plain.
#[must_use]
pub fn matching(left: &Meaning, right: &Meaning) -> Option<Common> {
    let (forth, back) = (ratio(&left.logical, &right.logical)?, ratio(&right.logical, &left.logical)?);
    let common = match (forth.times, back.times) {
        // The units are equal. The types may differ in the zone, which is only shown, or in the number of
        // digits.
        (1, 1) => {
            if left.words != right.words && left.logical.form().is_none_or(|form| !form.is_signed()) {
                return None;
            }
            let is_left = left.words >= right.words && precision(&left.logical) >= precision(&right.logical);
            Common {
                meaning: if is_left { left.clone() } else { right.clone() },
                left: Ratio::ONE,
                right: Ratio::ONE,
            }
        }
        (_, 1) => Common { meaning: right.clone(), left: forth, right: Ratio::ONE },
        _ => Common { meaning: left.clone(), left: Ratio::ONE, right: back },
    };
    Some(with_room(common, left, right))
}

/// Gives the common decimal enough digits before the point for both types.
fn with_room(mut common: Common, left: &Meaning, right: &Meaning) -> Common {
    let whole = |logical: &Logical| match logical {
        Logical::Decimal { precision, scale, .. } => i16::from(*precision) - i16::from(*scale),
        _ => 0,
    };
    let widest = |logical: &Logical| if let Logical::Decimal { bits, .. } = logical { *bits } else { 0 };
    let most = whole(&left.logical).max(whole(&right.logical));
    if let Logical::Decimal { bits, precision, scale } = &mut common.meaning.logical {
        *bits = widest(&left.logical).max(widest(&right.logical));
        let limit = match *bits {
            32 => 9,
            64 => 18,
            _ => 38,
        };
        let digits = most.saturating_add(i16::from(*scale)).clamp(1, 38);
        *bits = if digits > limit { 128 } else { *bits };
        *precision = u8::try_from(digits).unwrap_or(38);
    }
    common
}

fn precision(logical: &Logical) -> u8 {
    if let Logical::Decimal { precision, .. } = logical { *precision } else { 0 }
}

/// Returns how words of one type become those of another that means the same; `None` if the meanings differ.
#[must_use]
pub fn ratio(from: &Logical, to: &Logical) -> Option<Ratio> {
    const DAY: i64 = 86_400_000;
    let units =
        |from: Unit, to: Unit| power(i32::try_from(to.digits()).ok()? - i32::try_from(from.digits()).ok()?);
    match (from, to) {
        (Logical::Date32, Logical::Date64) => Some(Ratio { times: DAY, over: 1 }),
        (Logical::Date64, Logical::Date32) => Some(Ratio { times: 1, over: DAY }),
        (Logical::Time32(from) | Logical::Time64(from), Logical::Time32(to) | Logical::Time64(to))
        | (Logical::Duration(from), Logical::Duration(to)) => units(*from, *to),
        // An instant is the same in every zone; a local time in an unknown zone is not an instant.
        (Logical::Timestamp(from, zone), Logical::Timestamp(to, other))
            if zone.is_some() == other.is_some() =>
        {
            units(*from, *to)
        }
        (Logical::Decimal { scale: from, .. }, Logical::Decimal { scale: to, .. }) => {
            power(i32::from(*to) - i32::from(*from))
        }
        // Names do not matter.
        (Logical::Composite(from), Logical::Composite(to)) => {
            (from.parts() == to.parts()).then_some(Ratio::ONE)
        }
        (Logical::Record(from), Logical::Record(to)) => is_one_record(from, to).then_some(Ratio::ONE),
        (from, to) => (from == to).then_some(Ratio::ONE),
    }
}

/// Returns the ratio of ten to `exponent`, or `None` if that power overflows a word.
fn power(exponent: i32) -> Option<Ratio> {
    let power = 10_i64.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 { Ratio { times: 1, over: power } } else { Ratio { times: power, over: 1 } })
}

/// Reports whether two records have the same fields, with the same meanings and units.
fn is_one_record(left: &str, right: &str) -> bool {
    let (Some(left), Some(right)) = (Record::parse(left), Record::parse(right)) else { return left == right };
    left.len() == right.len()
        && left.fields().iter().zip(right.fields()).all(|(left, right)| {
            let meaning = |field: &crate::record::Field| Meaning::new(field.kind, &field.logical);
            let (one, other) = (meaning(left), meaning(right));
            left.name == right.name
                && left.kind == right.kind
                && ratio(&one.logical, &other.logical) == Some(Ratio::ONE)
        })
}

/// Puts the article before the name of a type, for messages: `a u64`, `an IPv4 address`.
#[must_use]
pub fn with_article(noun: &str) -> String {
    let is_vowel = noun.starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']);
    format!("{} {noun}", if is_vowel { "an" } else { "a" })
}

/// Formats a word as a text of `form`, for messages.
#[must_use]
pub fn shown(form: Form, word: i64) -> String {
    let mut text = Vec::new();
    form.put(word, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests;
