//! Parses arguments and key files: sizes, counts, types, keys.
//!
//! Keys are parsed by hand from bytes: a key file of millions of lines is read at the speed of the disk, and
//! each error says which text is valid.

use crate::message::Message;
use crate::render::text::unescaped;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pleach_builder::Layout;
use pleach_builder::source::Derived;
use pleach_format::logical::{self, Meaning, with_article};
use pleach_format::record::FieldKind;
use pleach_format::{KeyType, Logical, ValueType};
use pleach_input::{FORMATS, Format, Nulls};
use pleach_relation::{Aggregate, Reduction};
use std::fmt::Display;
use std::ops::Deref;
use std::time::Duration;

/// Parses the number of bases of a k-mer.
pub fn kmers(text: &str) -> Result<usize, Message> {
    let max = pleach_input::KMER_BASES_MAX;
    let refused = || Message::new(format!("k-mers of {text} bases")).advise(format!("give 1 to {max}"));
    text.parse().ok().filter(|bases| (1..=max).contains(bases)).ok_or_else(refused)
}

/// Parses a reduction: `sum`, or `sum:amount` of a field.
pub fn aggregate(text: &str) -> Result<Aggregate, Message> {
    let refused = |name: String| {
        let known: Vec<&str> = Reduction::ALL.iter().map(|one| one.name()).collect();
        let meant = pleach_input::similar(&name, known.iter().copied());
        let meant = meant.map_or(String::new(), |meant| format!("did you mean '{meant}'? "));
        let message = Message::new(format!("unknown reduction '{name}'"));
        message.advise(format!("{meant}use one of {}", known.join(" ")))
    };
    Aggregate::list(text).map_err(refused)?.into_iter().next().ok_or_else(|| refused(text.to_owned()))
}

/// Parses bytes: `256M`, `256MiB`, `4GiB`, `1G`, `1000`; K, M, G and T are powers of 1024.
pub fn size(text: &str) -> Result<u64, Message> {
    let refused = || Message::new(format!("invalid size '{text}'")).advise("use 4KiB, 2MiB or 1GiB");
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| refused())?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(refused()),
    };
    number.checked_mul(1 << shift).filter(|&bytes| bytes > 0).ok_or_else(refused)
}

/// Parses the format of tables; the help lists all formats.
pub fn format() -> impl TypedValueParser<Value = Format> {
    let values = FORMATS.iter().map(|row| PossibleValue::new(row.name).help(row.about));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Format>())
}

/// Parses a number of threads: more than [`pleach_builder::options::THREADS_MAX`] only wait for each other.
pub fn threads(text: &str) -> Result<usize, Message> {
    let most = pleach_builder::options::THREADS_MAX;
    let threads = text.parse().ok().filter(|&threads| threads <= most);
    let what = || Message::new(format!("invalid number of threads '{text}'"));
    threads.ok_or_else(|| what().advise(format!("use 0 (all) to {most}")))
}

/// Parses a number of tuples: `1000000`, `1_000_000` or `2^20`.
pub fn count(text: &str) -> Result<u64, Message> {
    let refused = || Message::new(format!("invalid count '{text}'")).advise("use 1000000 or 2^20");
    let plain = text.replace('_', "");
    match plain.split_once('^') {
        Some((base, exponent)) => {
            let base: u64 = base.parse().map_err(|_| refused())?;
            let exponent: u32 = exponent.parse().map_err(|_| refused())?;
            base.checked_pow(exponent).ok_or_else(refused)
        }
        None => plain.parse().map_err(|_| refused()),
    }
}

fn type_refused(text: &str, role: &str, numeric: &[String]) -> Message {
    let known = numeric.join(" ");
    let others: &[&str] = if role == "value" { &["bool", "none"] } else { &[] };
    let others = others.iter().copied();
    let names = numeric.iter().map(String::as_str).chain(["bytes", "utf8"]).chain(others);
    let logical = Logical::NAMES
        .split(' ')
        .filter(|word| !word.starts_with('(') && !word.ends_with(')') || word.contains(','));
    let meant = pleach_input::similar(text, names.chain(logical))
        .map_or(String::new(), |meant| format!("did you mean '{meant}'? "));
    Message::new(format!("unknown {role} type '{text}'")).advise(format!(
        "{meant}use one of {known} bytes16 (any N) bytes utf8{}",
        if role == "value" { " bool" } else { "" }
    ))
}

/// Adds the logical types to those that a message advises.
fn or_logical(message: Message) -> Message {
    message.map_advice(|advice| format!("{advice}, or {}", Logical::NAMES))
}

/// Parses the name of a key type.
pub fn key_type(text: &str) -> Result<KeyType, Message> {
    let known: Vec<String> = KeyType::NUMERIC.iter().map(ToString::to_string).collect();
    KeyType::from_name(text).ok_or_else(|| type_refused(text, "key", &known))
}

/// Parses the name of a value type.
pub fn value_type(text: &str) -> Result<ValueType, Message> {
    let known: Vec<String> = ValueType::NUMERIC.iter().map(ToString::to_string).collect();
    ValueType::from_name(text).ok_or_else(|| type_refused(text, "value", &known))
}

/// A named type, and its logical type if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeantType<T> {
    /// Type that is stored.
    pub kind: T,
    /// Logical type.
    pub logical: Option<Logical>,
}

/// Parses the name of a type, or of a logical type, which determines the stored one.
fn meant_type<T>(
    text: &str,
    words: impl Fn(&Logical) -> Option<String>,
    of_name: impl Fn(&str) -> Option<T>,
) -> Option<MeantType<T>> {
    if let Some(kind) = of_name(text) {
        return Some(MeantType { kind, logical: None });
    }
    let logical = Logical::of_name(text)?;
    let kind = of_name(&words(&logical)?)?;
    Some(MeantType { kind, logical: Some(logical) })
}

/// Parses the name of a key type, also of a logical one.
pub fn meant_key_type(text: &str) -> Result<MeantType<KeyType>, Message> {
    let words = |logical: &Logical| logical.key_words().filter(|_| *logical != Logical::Boolean);
    meant_type(text, words, KeyType::from_name).ok_or_else(|| {
        let known: Vec<String> = KeyType::NUMERIC.iter().map(ToString::to_string).collect();
        or_logical(type_refused(text, "key", &known))
    })
}

/// What a text means, with the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spelled<T> {
    /// The text.
    pub text: String,
    of: T,
}

impl<T> Spelled<T> {
    /// Parses a text.
    pub fn parse(text: &str, parse: impl FnOnce(&str) -> Result<T, Message>) -> Result<Self, Message> {
        Ok(Self { text: text.to_owned(), of: parse(text)? })
    }
}

impl<T> Deref for Spelled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.of
    }
}

/// Type of the keys of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildKeyType {
    /// The type.
    pub of: MeantType<KeyType>,
    /// Keys are networks of addresses, which are intervals.
    pub is_network: bool,
    /// Types of the parts of a composite key, one for all or one for each.
    pub parts: Vec<Meaning>,
    /// Keys are texts, of which the file gets shorter ones.
    pub derived: Option<Derived>,
    /// Why a key of one column cannot have this type.
    pub alone: Option<Message>,
}

/// Parses the name of a key type of a build.
pub fn build_key_type(text: &str) -> Result<Spelled<BuildKeyType>, Message> {
    Spelled::parse(text, key_type_of_build)
}

fn key_type_of_build(text: &str) -> Result<BuildKeyType, Message> {
    let is_network = text == "cidr";
    let derived = Derived::from_name(text);
    if derived.is_some() {
        let of = MeantType { kind: KeyType::Utf8, logical: None };
        return Ok(BuildKeyType { of, is_network, parts: Vec::new(), derived, alone: None });
    }
    let names = logical::type_list(text);
    if let [first, _, ..] = names.as_slice() {
        let parts: Vec<Meaning> = names.iter().map(|name| part_type(name)).collect::<Result<_, _>>()?;
        // The types of its parts decide what the key is.
        let of = meant_key_type(first).unwrap_or(MeantType { kind: KeyType::U64, logical: None });
        let message = Message::new("types of parts without parts").at("--key-type");
        let alone = Some(message.advise("name the columns of a composite key with --key a,b"));
        return Ok(BuildKeyType { of, is_network, parts, derived, alone });
    }
    match meant_key_type(if is_network { "ip" } else { text }) {
        Ok(of) => Ok(BuildKeyType {
            of,
            is_network,
            parts: part_type(text).into_iter().collect(),
            derived,
            alone: None,
        }),
        Err(refused) => match part_type(text) {
            // Only parts of a key are so narrow.
            Ok(part) => {
                let of = MeantType { kind: KeyType::U64, logical: None };
                let alone = Some(refused.at("--key-type <T>"));
                Ok(BuildKeyType { of, is_network, parts: vec![part], derived, alone })
            }
            Err(_) => Err(refused),
        },
    }
}

/// Parses the name of the type of a part of a composite key.
fn part_type(name: &str) -> Result<Meaning, Message> {
    logical::part_type(name)
        .map_err(|advice| Message::new(format!("unknown type '{name}' for a part of a key")).advise(advice))
}

/// Types of the values: one for a plain value, or those of the fields of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueTypes {
    /// Type of a plain value.
    One(MeantType<ValueType>),
    /// Types of the fields of a record, one for all or one for each.
    Fields(Vec<MeantType<FieldKind>>),
}

/// Parses the name of a value type, or types of fields separated by commas.
pub fn value_types(text: &str) -> Result<Spelled<ValueTypes>, Message> {
    Spelled::parse(text, types_of_values)
}

fn types_of_values(text: &str) -> Result<ValueTypes, Message> {
    if let Some(one) = meant_type(text, Logical::value_words, ValueType::from_name) {
        return Ok(ValueTypes::One(one));
    }
    let named = |(kind, logical)| MeantType {
        kind,
        logical: Some(logical).filter(|logical| *logical != Logical::Plain),
    };
    match logical::field_types(text) {
        Some(kinds) => Ok(ValueTypes::Fields(kinds.into_iter().map(named).collect())),
        None if logical::type_list(text).len() == 1 => {
            let known: Vec<String> = ValueType::NUMERIC.iter().map(ToString::to_string).collect();
            Err(or_logical(type_refused(text, "value", &known)))
        }
        None => {
            let known: Vec<String> = FieldKind::NUMERIC.iter().map(ToString::to_string).collect();
            let known = known.join(" ");
            let message = Message::new(format!("unknown type in '{text}' for the fields of a record"));
            Err(or_logical(message.advise(format!("use {known} bytes16 (any N) bytes utf8 bool"))))
        }
    }
}

/// Parses `u64,u64`, or `u64` for keys alone.
pub fn raw_types(text: &str) -> Result<(KeyType, ValueType), Message> {
    let (key, value) = text.split_once(',').unwrap_or((text, "none"));
    Ok((key_type(key)?, value_type(value)?))
}

/// Parses what becomes of nulls.
pub fn nulls(text: &str) -> Result<Nulls, Message> {
    text.parse()
        .map_err(|advice: String| Message::new(format!("unknown treatment of nulls '{text}'")).advise(advice))
}

/// Parses a layout.
pub fn layout(text: &str) -> Result<Layout, Message> {
    text.parse::<Layout>().map_err(|error| Message::new(error.what).advise(error.advice))
}

/// Parses a delimiter: one ASCII character, or `\t` or `tab`.
pub fn delimiter(text: &str) -> Result<u8, Message> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | b'"' | 0) => Ok(*byte),
        _ => Err(Message::new(format!("invalid delimiter '{}'", text.escape_default()))
            .advise("use one ASCII character, or \\t")),
    }
}

/// Requested device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Whichever device is faster.
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU of this number.
    Cuda(u32),
}

/// Parses a device: `auto`, `cpu`, `cuda` (the first GPU) or `cuda:N`.
pub fn device(text: &str) -> Result<Device, Message> {
    let number = text.strip_prefix("cuda:").and_then(|number| number.parse().ok());
    match (text, number) {
        ("auto", _) => Ok(Device::Auto),
        ("cpu", _) => Ok(Device::Cpu),
        ("cuda", _) => Ok(Device::Cuda(0)),
        (_, Some(number)) => Ok(Device::Cuda(number)),
        _ => Err(Message::new(format!("unknown device '{text}'")).advise("use auto, cpu, cuda or cuda:N")),
    }
}

/// How keys are looked up: the order of the queries, and the structure that leads to the tuple lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Order in which the queries of a batch are searched.
    pub strategy: pleach::Strategy,
    /// Structure that leads to the tuple lines.
    pub structure: pleach::Structure,
}

/// Parses a strategy or a structure; the other one is automatic.
pub fn how(text: &str) -> Result<How, Message> {
    let structures = pleach::Structure::ALL.into_iter().skip(1);
    if let Some(structure) = structures.into_iter().find(|structure| structure.name() == text) {
        return Ok(How { strategy: pleach::Strategy::Auto, structure });
    }
    let strategy = text.parse().map_err(|_| {
        Message::new(format!("unknown strategy '{text}'")).advise(
            "use auto, one-by-one, unbuffered, buffered, sorted, spine, grid, fast, harmonia or btree",
        )
    })?;
    Ok(How { strategy, structure: pleach::Structure::Auto })
}

/// Parses a structure that has pages.
pub fn paged(text: &str) -> Result<pleach::Structure, Message> {
    use pleach::Structure::{Btree, Fast, Harmonia, Spine};
    let found = [Spine, Fast, Harmonia, Btree].into_iter().find(|structure| structure.name() == text);
    found.ok_or_else(|| {
        Message::new(format!("unknown structure '{text}'")).advise("use spine, fast, harmonia or btree")
    })
}

/// Parses milliseconds; returns nanoseconds.
pub fn milliseconds(text: &str) -> Result<u64, Message> {
    let number = text.parse::<f64>().ok().filter(|ms| (1e-6..=1e9).contains(ms));
    let refused =
        || Message::new(format!("invalid time '{text}'")).advise("use milliseconds, such as 5 or 0.25");
    let number = number.ok_or_else(refused)?;
    Ok((number * 1e6) as u64)
}

/// Parses an age: seconds, or a number with s, m, h or d.
pub fn age(text: &str) -> Result<Duration, Message> {
    let refused = || Message::new(format!("invalid time '{text}'")).advise("use 30m, 24h or 7d");
    let (digits, seconds) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        Some((at, 'd')) => (&text[..at], 86_400),
        _ => (text, 1),
    };
    let number = digits.parse::<u64>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let number = number.and_then(|number| number.checked_mul(seconds)).ok_or_else(refused)?;
    Ok(Duration::from_secs(number))
}

/// A key type that can be parsed from text.
pub trait FromText: Sized {
    /// Name of the type, for messages.
    const NAME: &'static str;
    /// Lowest and highest key, for messages.
    const BOUNDS: (&'static str, &'static str);
    /// Kind of the type, for messages.
    const KIND: &'static str = "whole number";
    /// Parses decimal text without signs, spaces or separators (except `-` for signed types).
    fn from_text(text: &[u8]) -> Option<Self>;
}

macro_rules! unsigned {
    ($($t:ident $digits:literal $low:literal $high:literal),*) => {$(
        impl FromText for $t {
            const NAME: &'static str = stringify!($t);
            const BOUNDS: (&'static str, &'static str) = ($low, $high);
            #[inline]
            fn from_text(text: &[u8]) -> Option<Self> {
                if text.is_empty() { return None; }
                let mut number: $t = 0;
                if text.len() < $digits {
                    // A number of this few digits cannot overflow.
                    for &byte in text {
                        let digit = byte.wrapping_sub(b'0');
                        if digit > 9 { return None; }
                        number = number.wrapping_mul(10).wrapping_add($t::from(digit));
                    }
                    return Some(number);
                }
                for &byte in text {
                    let digit = byte.wrapping_sub(b'0');
                    if digit > 9 { return None; }
                    number = number.checked_mul(10)?.checked_add($t::from(digit))?;
                }
                Some(number)
            }
        }
    )*};
}
unsigned!(
    u32 10 "0" "4294967295",
    u64 20 "0" "18446744073709551615",
    u128 39 "0" "340282366920938463463374607431768211455"
);

impl FromText for f64 {
    const NAME: &'static str = "f64";
    const BOUNDS: (&'static str, &'static str) = ("-inf", "inf");
    const KIND: &'static str = "number";
    fn from_text(text: &[u8]) -> Option<Self> {
        let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        let overflown = number.is_infinite() && text.iter().any(u8::is_ascii_digit);
        (!number.is_nan() && !overflown).then_some(number)
    }
}

/// Parses a byte key: `utf8` with `\\t \\n \\r \\\\` for characters that would break a line, `bytes` as
/// hexadecimal digits, `bytesN` as 2 N of them or as N bytes of text.
pub fn byte_key(key_type: KeyType, text: &[u8]) -> Result<Vec<u8>, Message> {
    let refused = |kind: &dyn Display, advice: String| {
        let shown = String::from_utf8_lossy(&text[..text.len().min(40)]);
        Message::new(format!("'{shown}' is not {} key", with_article(&kind.to_string()))).advise(advice)
    };
    match key_type {
        KeyType::Utf8 => unescaped(text)
            .filter(|key| std::str::from_utf8(key).is_ok())
            .ok_or_else(|| refused(&"utf8", "escape a backslash as \\\\".to_owned())),
        KeyType::Fixed(bytes) if text.len() == usize::from(bytes) => Ok(text.to_vec()),
        KeyType::Fixed(bytes) => {
            from_hex(text).filter(|key| key.len() == usize::from(bytes)).ok_or_else(|| {
                let advice = format!("give {bytes} characters or {} hexadecimal digits", 2 * bytes);
                refused(&key_type, advice)
            })
        }
        KeyType::Bytes => {
            from_hex(text).ok_or_else(|| refused(&key_type, "give it in hexadecimal digits".to_owned()))
        }
        KeyType::U32 | KeyType::U64 | KeyType::I32 | KeyType::I64 | KeyType::U128 | KeyType::F64 => {
            Err(refused(&"byte", format!("the keys are {key_type}")))
        }
    }
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    hex_bytes(text.strip_prefix(b"\\x").unwrap_or(text))
}

/// Parses hexadecimal digits, two for each byte.
pub fn hex_bytes(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_chunks::<2>();
    let bytes = pairs.iter().map(|&[high, low]| Some((digit(high)? << 4 | digit(low)?) as u8));
    if rest.is_empty() { bytes.collect() } else { None }
}

macro_rules! signed {
    ($($t:ident as $u:ident $low:literal $high:literal),*) => {$(
        impl FromText for $t {
            const NAME: &'static str = stringify!($t);
            const BOUNDS: (&'static str, &'static str) = ($low, $high);
            #[inline]
            fn from_text(text: &[u8]) -> Option<Self> {
                match text {
                    [b'-', digits @ ..] => {
                        let magnitude = $u::from_text(digits)?;
                        // The lowest number has no positive counterpart.
                        (magnitude <= $t::MIN.unsigned_abs()).then(|| magnitude.cast_signed().wrapping_neg())
                    }
                    _ => $t::try_from($u::from_text(text)?).ok(),
                }
            }
        }
    )*};
}
signed!(i32 as u32 "-2147483648" "2147483647", i64 as u64 "-9223372036854775808" "9223372036854775807");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("256M"), Ok(256 << 20));
        assert_eq!(size("256MiB"), Ok(256 << 20));
        assert_eq!(size("4GiB"), Ok(4 << 30));
        assert_eq!(size("1G"), Ok(1 << 30));
        assert_eq!(size("12345"), Ok(12345));
        for bad in ["", "M", "-1", "1.5G", "256 M", "99999999999T", "0", "1Q"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts() {
        assert_eq!(count("2^26"), Ok(1 << 26));
        assert_eq!(count("1_000_000"), Ok(1_000_000));
        for bad in ["", "2^", "2^64", "x", "-1"] {
            assert!(count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_at_their_bounds() {
        assert_eq!(u32::from_text(b"4294967295"), Some(u32::MAX));
        assert_eq!(u32::from_text(b"4294967296"), None);
        assert_eq!(u32::from_text(b"0000000000000001"), Some(1));
        assert_eq!(u64::from_text(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(u64::from_text(b"18446744073709551616"), None);
        assert_eq!(u64::from_text(b"9999999999999999999"), Some(9_999_999_999_999_999_999));
        assert_eq!(i32::from_text(b"-2147483648"), Some(i32::MIN));
        assert_eq!(i32::from_text(b"-2147483649"), None);
        assert_eq!(i32::from_text(b"2147483648"), None);
        assert_eq!(i64::from_text(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(i64::from_text(b"9223372036854775807"), Some(i64::MAX));
        for bad in [&b""[..], b"-", b"+1", b" 1", b"1 ", b"1.0", b"--1", b"0x10", b"1_000"] {
            assert_eq!(i64::from_text(bad), None);
            assert_eq!(u64::from_text(bad), None);
        }
        assert_eq!(u64::from_text(b"-0"), None);
        assert_eq!(i64::from_text(b"-0"), Some(0));
    }

    #[test]
    fn delimiters() {
        assert_eq!(delimiter(";"), Ok(b';'));
        assert_eq!(delimiter("\\t"), Ok(b'\t'));
        assert_eq!(delimiter("\t"), Ok(b'\t'));
        assert!(delimiter("").is_err() && delimiter("ab").is_err() && delimiter("\n").is_err());
    }
}
