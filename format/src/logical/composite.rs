//! Composite keys: several columns as one key, in the order of the first column, then of the second.
//!
//! Each part becomes bytes that are in the order of its elements, and the key is these bytes, one part after
//! the other:
//!
//! - A number has its most significant byte first, and a signed one its sign bit inverted.
//! - A byte string of one length is itself.
//! - A text or a byte string of any length, unless it is the last part, has `00 ff` for each zero byte, and
//!   `00 00` behind it. As the last part it is itself.
//!
//! If all parts have fixed widths, of up to 16 bytes together, the key is the number with these bytes. Else it is
//! the byte string.

use super::element::Element;
use super::text::{Form, TextError};
use super::unit::Unit;
use super::{Logical, Meaning};
use crate::record::{self, FieldKind};
use crate::types::KEY_BYTES_MAX;
use core::fmt;
use std::fmt::Write as _;

/// Maximum number of parts of a key.
pub const PARTS_MAX: usize = 8;

/// Start of the text in META.
const START: &str = "composite<";
/// Bytes of the widest number.
const WORD_BYTES: usize = 16;

/// Type of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// An unsigned number of so many bytes: 1, 2, 4, 8 or 16.
    Unsigned(u8),
    /// A signed number of so many bytes: 1, 2, 4 or 8.
    Signed(u8),
    /// A byte string of this length.
    Fixed(u16),
    /// A byte string.
    Bytes,
    /// A text.
    Utf8,
    /// [`Form::Days`].
    Days,
    /// [`Form::Date`].
    Date,
    /// [`Form::Time`].
    Time(Unit),
    /// [`Form::Timestamp`].
    Timestamp(Unit, bool),
    /// [`Form::Duration`].
    Duration(Unit),
    /// [`Form::Decimal`].
    Decimal(u8, i8),
    /// [`Form::Uuid`].
    Uuid,
    /// [`Form::Ipv4`].
    Ipv4,
    /// [`Form::Ipv6`].
    Ipv6,
    /// [`Form::Ip`].
    Ip,
    /// [`Form::Bases`].
    Bases(bool),
    /// [`Form::Hex`].
    Hex,
    /// [`Form::Digits`].
    Digits(u32),
}

impl Part {
    /// Returns the part of elements with this meaning; `None` for floats, records and types of later versions.
    #[must_use]
    pub fn of(meaning: &Meaning) -> Option<Self> {
        if let Some(form) = meaning.form() {
            return Some(match form {
                Form::Days => Self::Days,
                Form::Date => Self::Date,
                Form::Time(unit) => Self::Time(unit),
                Form::Timestamp(unit, is_zoned) => Self::Timestamp(unit, is_zoned),
                Form::Duration(unit) => Self::Duration(unit),
                Form::Decimal(precision, scale) => Self::Decimal(precision, scale),
                Form::Uuid => Self::Uuid,
                Form::Ipv4 => Self::Ipv4,
                Form::Ipv6 => Self::Ipv6,
                Form::Ip => Self::Ip,
                Form::Bases(is_canonical) => Self::Bases(is_canonical),
                Form::Hex => Self::Hex,
                Form::Digits(count) => Self::Digits(count),
                Form::Boolean | Form::Network(_) => return None,
                Form::Hash(_) | Form::Letters(_) | Form::Composite(_) => return None,
            });
        }
        if meaning.logical != Logical::Plain {
            return None;
        }
        Some(match meaning.words.as_str() {
            "u8" => Self::Unsigned(1),
            "u16" => Self::Unsigned(2),
            "u32" => Self::Unsigned(4),
            "u64" => Self::Unsigned(8),
            "u128" => Self::Unsigned(16),
            "i8" => Self::Signed(1),
            "i16" => Self::Signed(2),
            "i32" => Self::Signed(4),
            "i64" => Self::Signed(8),
            "bytes" => Self::Bytes,
            "utf8" => Self::Utf8,
            words => match crate::KeyType::from_name(words)? {
                crate::KeyType::Fixed(bytes) => Self::Fixed(bytes),
                _ => return None,
            },
        })
    }

    /// Returns the form of its texts, if it has a logical type.
    #[must_use]
    pub const fn form(self) -> Option<Form> {
        Some(match self {
            Self::Unsigned(_) | Self::Signed(_) | Self::Fixed(_) | Self::Bytes | Self::Utf8 => return None,
            Self::Days => Form::Days,
            Self::Date => Form::Date,
            Self::Time(unit) => Form::Time(unit),
            Self::Timestamp(unit, is_zoned) => Form::Timestamp(unit, is_zoned),
            Self::Duration(unit) => Form::Duration(unit),
            Self::Decimal(precision, scale) => Form::Decimal(precision, scale),
            Self::Uuid => Form::Uuid,
            Self::Ipv4 => Form::Ipv4,
            Self::Ipv6 => Form::Ipv6,
            Self::Ip => Form::Ip,
            Self::Bases(is_canonical) => Form::Bases(is_canonical),
            Self::Hex => Form::Hex,
            Self::Digits(count) => Form::Digits(count),
        })
    }

    /// Returns the bytes of each element; `None` if they vary.
    #[must_use]
    pub const fn bytes(self) -> Option<usize> {
        Some(match self {
            Self::Unsigned(bytes) | Self::Signed(bytes) => bytes as usize,
            Self::Fixed(bytes) => bytes as usize,
            Self::Days | Self::Ipv4 | Self::Time(Unit::Second | Unit::Millisecond) => 4,
            Self::Date | Self::Time(_) | Self::Timestamp(..) | Self::Duration(_) | Self::Decimal(..) => 8,
            Self::Uuid | Self::Ipv6 | Self::Ip | Self::Bases(_) => WORD_BYTES,
            Self::Digits(count) => match count {
                0..=8 => 4,
                9..=16 => 8,
                17..=32 => WORD_BYTES,
                _ => (count / 2) as usize,
            },
            Self::Bytes | Self::Utf8 | Self::Hex => return None,
        })
    }

    /// Returns what its elements are.
    const fn class(self) -> Class {
        match self {
            Self::Signed(_) => Class::Signed,
            Self::Unsigned(_) => Class::Unsigned,
            Self::Fixed(_) | Self::Bytes | Self::Utf8 | Self::Hex => Class::Bytes,
            Self::Digits(count) if count > 32 => Class::Bytes,
            Self::Days | Self::Date | Self::Time(_) | Self::Timestamp(..) => Class::Signed,
            Self::Duration(_) | Self::Decimal(..) => Class::Signed,
            Self::Uuid | Self::Ipv4 | Self::Ipv6 | Self::Ip | Self::Bases(_) | Self::Digits(_) => {
                Class::Unsigned
            }
        }
    }

    /// Appends an element, in the form in which elements are in order.
    ///
    /// # Errors
    /// [`TextError`] if it is no element of the part.
    pub fn put(self, element: &Element, is_last: bool, out: &mut Vec<u8>) -> Result<(), TextError> {
        let number = |word: u128, out: &mut Vec<u8>| {
            let bytes = self.bytes().unwrap_or(WORD_BYTES);
            out.extend_from_slice(&word.to_be_bytes()[WORD_BYTES - bytes..]);
        };
        match (self.class(), element) {
            (Class::Signed, Element::Signed(value)) => {
                let bits = 8 * self.bytes().unwrap_or(8) as u32;
                let limit = 1_i128 << (bits - 1);
                let value = i128::from(*value);
                let fits = (-limit..limit).contains(&value);
                if !fits || self.form().is_some_and(|form| !form.holds(value as i64)) {
                    return Err(TextError::Range);
                }
                number((value + limit) as u128, out);
            }
            (Class::Unsigned, Element::Unsigned(value)) => {
                let bits = 8 * self.bytes().unwrap_or(WORD_BYTES) as u32;
                if value.checked_shr(bits).unwrap_or(0) != 0 {
                    return Err(TextError::Range);
                }
                number(*value, out);
            }
            (Class::Bytes, Element::Bytes(bytes)) => {
                if self == Self::Utf8 && core::str::from_utf8(bytes).is_err() {
                    return Err(TextError::Form);
                }
                if let Some(length) = self.bytes().filter(|&length| length != bytes.len()) {
                    return Err(TextError::Width(length));
                }
                self.put_bytes(bytes, is_last, out);
            }
            (Class::Signed | Class::Unsigned | Class::Bytes, _) => return Err(TextError::Form),
        }
        Ok(())
    }

    /// Appends an element that is a byte string of the right length.
    pub fn put_bytes(self, bytes: &[u8], is_last: bool, out: &mut Vec<u8>) {
        if is_last || self.bytes().is_some() {
            out.extend_from_slice(bytes);
        } else {
            put_escaped(bytes, out);
        }
    }

    /// Reads the element at the start of a key. Returns it with the rest; `None` if the bytes are not those of
    /// an element.
    fn split(self, key: &[u8], is_last: bool) -> Option<(Element, &[u8])> {
        let Some(bytes) = self.bytes() else {
            return match is_last {
                true => Some((Element::Bytes(key.to_vec()), &[])),
                false => unescaped(key).map(|(bytes, rest)| (Element::Bytes(bytes), rest)),
            };
        };
        let (own, rest) = key.split_at_checked(bytes)?;
        let number = || own.iter().fold(0_u128, |number, &byte| number << 8 | u128::from(byte));
        let element = match self.class() {
            Class::Bytes => Element::Bytes(own.to_vec()),
            Class::Unsigned => Element::Unsigned(number()),
            Class::Signed => Element::Signed((number() as i128 - (1 << (8 * bytes - 1))) as i64),
        };
        Some((element, rest))
    }

    /// Reads a text.
    fn element(self, text: &[u8]) -> Result<Element, TextError> {
        let text = if self == Self::Utf8 { text } else { text.trim_ascii() };
        if let Some(form) = self.form() {
            return form.element(text);
        }
        let digits = core::str::from_utf8(text).map_err(|_| TextError::Form);
        match self {
            Self::Signed(_) => {
                let number = digits?.parse::<i128>().map_err(|_| TextError::Form)?;
                Ok(Element::Signed(i64::try_from(number).map_err(|_| TextError::Range)?))
            }
            Self::Unsigned(_) => {
                let digits = digits?;
                let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                let number = digits.parse::<u128>();
                number.map(Element::Unsigned).map_err(|_| match is_number {
                    true => TextError::Range,
                    false => TextError::Form,
                })
            }
            Self::Utf8 => Ok(Element::Bytes(text.to_vec())),
            _ => Form::Hex.element(text.strip_prefix(b"\\x").unwrap_or(text)),
        }
    }

    /// Appends the text of an element.
    fn put_text(self, element: &Element, out: &mut Vec<u8>) {
        match (element, self.form()) {
            (Element::Signed(number), Some(form)) => form.put(*number, out),
            (Element::Unsigned(number), Some(form)) => form.put_unsigned(*number, out),
            (Element::Signed(number), None) => out.extend_from_slice(number.to_string().as_bytes()),
            (Element::Unsigned(number), None) => out.extend_from_slice(number.to_string().as_bytes()),
            (Element::Bytes(bytes), None) if self == Self::Utf8 => put_quoted(bytes, out),
            (Element::Bytes(bytes), form) => form.unwrap_or(Form::Hex).put_bytes(bytes, out),
        }
    }

    /// Returns the name of its type for messages.
    fn noun(self) -> String {
        match self {
            Self::Unsigned(bytes) => format!("u{}", 8 * u32::from(bytes)),
            Self::Signed(bytes) => format!("i{}", 8 * u32::from(bytes)),
            Self::Fixed(bytes) => format!("bytes{bytes}"),
            Self::Bytes => "bytes".to_owned(),
            Self::Utf8 => "utf8".to_owned(),
            _ => self.form().map_or_else(String::new, Form::noun),
        }
    }

    const fn example(self) -> &'static str {
        match self.form() {
            Some(Form::Ip) => "192.0.2.1",
            Some(form) => form.example_of_one(),
            None => match self {
                Self::Utf8 => "abc",
                Self::Bytes | Self::Fixed(_) => "00ff",
                _ => "5",
            },
        }
    }
}

/// What the elements of a part are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Signed,
    Unsigned,
    Bytes,
}

/// The parts of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    count: u8,
    parts: [Part; PARTS_MAX],
}

impl Parts {
    /// Creates the parts of a key; `None` if there are fewer than two or more than [`PARTS_MAX`].
    #[must_use]
    pub fn new(parts: &[Part]) -> Option<Self> {
        if !(2..=PARTS_MAX).contains(&parts.len()) {
            return None;
        }
        let mut all = [Part::Bytes; PARTS_MAX];
        all[..parts.len()].copy_from_slice(parts);
        Some(Self { count: parts.len() as u8, parts: all })
    }

    /// Returns the parts, in order.
    #[must_use]
    pub fn all(&self) -> &[Part] {
        self.parts.get(..self.count.into()).unwrap_or_default()
    }

    /// Returns the bytes of each key; `None` if they vary.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        self.all().iter().try_fold(0_usize, |sum, part| Some(sum + part.bytes()?))
    }

    /// Reports whether keys are numbers, and not byte strings.
    #[must_use]
    pub fn is_number(&self) -> bool {
        self.bytes().is_some_and(|bytes| bytes <= WORD_BYTES)
    }

    /// Returns the name of the type in which keys are stored.
    #[must_use]
    pub fn key_words(&self) -> String {
        match self.bytes() {
            Some(0..=4) => "u32".to_owned(),
            Some(5..=8) => "u64".to_owned(),
            Some(9..=WORD_BYTES) => "u128".to_owned(),
            Some(bytes) if bytes <= KEY_BYTES_MAX => format!("bytes{bytes}"),
            _ => "bytes".to_owned(),
        }
    }

    /// Appends the bytes of a key, or, with fewer elements than parts, the bytes with which all keys begin that
    /// have these elements.
    ///
    /// # Errors
    /// [`TextError`] if there are too many elements, or if one is not an element of its part.
    pub fn put(&self, elements: &[Element], out: &mut Vec<u8>) -> Result<(), TextError> {
        if elements.len() > self.all().len() {
            return Err(TextError::Parts);
        }
        for (at, (part, element)) in self.all().iter().zip(elements).enumerate() {
            part.put(element, at + 1 == self.all().len(), out)?;
        }
        if out.len() > KEY_BYTES_MAX { Err(TextError::Long) } else { Ok(()) }
    }

    /// Returns the key of these elements, a number or a byte string.
    ///
    /// # Errors
    /// [`TextError`] if there is not one element for each part, or if one is not an element of its part.
    pub fn key(&self, elements: &[Element]) -> Result<Element, TextError> {
        if elements.len() != self.all().len() {
            return Err(TextError::Parts);
        }
        let mut bytes = Vec::new();
        self.put(elements, &mut bytes)?;
        Ok(if self.is_number() { Element::Unsigned(number_of(&bytes)) } else { Element::Bytes(bytes) })
    }

    /// Returns the elements of the bytes of a key; `None` if no key has these bytes.
    #[must_use]
    pub fn split(&self, key: &[u8]) -> Option<Vec<Element>> {
        let (mut rest, mut elements) = (key, Vec::with_capacity(self.all().len()));
        for (at, part) in self.all().iter().enumerate() {
            let (element, after) = part.split(rest, at + 1 == self.all().len())?;
            elements.push(element);
            rest = after;
        }
        rest.is_empty().then_some(elements)
    }

    /// Returns the elements of a key that is a number; `None` if no key is this number.
    #[must_use]
    pub fn split_number(&self, number: u128) -> Option<Vec<Element>> {
        let bytes = self.bytes().filter(|&bytes| bytes <= WORD_BYTES)?;
        if number.checked_shr(8 * bytes as u32).unwrap_or(0) != 0 {
            return None;
        }
        self.split(&number.to_be_bytes()[WORD_BYTES - bytes..])
    }

    /// Reads the elements of a text: those of the parts, separated by commas, for as many parts as there are. A
    /// part that begins with a quote ends with one, and has two for each one in it.
    ///
    /// # Errors
    /// [`TextError`], which says why the text is not valid.
    pub fn elements(&self, text: &[u8]) -> Result<Vec<Element>, TextError> {
        let (mut rest, mut elements) = (Some(text), Vec::new());
        let mut parts = self.all().iter();
        while let Some(text) = rest {
            let part = parts.next().ok_or(TextError::Parts)?;
            let (own, after) = field(text)?;
            elements.push(part.element(&own)?);
            rest = after;
        }
        Ok(elements)
    }

    /// Returns the key of a text.
    pub(super) fn read(&self, text: &[u8]) -> Result<Element, TextError> {
        self.key(&self.elements(text)?)
    }

    /// Returns the smallest and the largest number that is a key with the elements of a text, which may be fewer
    /// than there are parts.
    pub(super) fn number_prefix(&self, text: &[u8]) -> Result<(u128, u128), TextError> {
        let own = self.byte_prefix(text)?;
        let free = 8 * (self.bytes().unwrap_or(0).min(WORD_BYTES) - own.len()) as u32;
        let low = number_of(&own).checked_shl(free).unwrap_or(0);
        Ok((low, low | !u128::MAX.checked_shl(free).unwrap_or(0)))
    }

    /// Returns the bytes with which all keys begin that have the elements of a text.
    pub(super) fn byte_prefix(&self, text: &[u8]) -> Result<Vec<u8>, TextError> {
        let mut own = Vec::new();
        self.put(&self.elements(text)?, &mut own)?;
        Ok(own)
    }

    /// Appends the text of a key.
    pub(super) fn put_text(&self, elements: Option<Vec<Element>>, key: &[u8], out: &mut Vec<u8>) {
        let Some(elements) = elements else {
            // A damaged file may have such keys.
            return Form::Hex.put_bytes(key, out);
        };
        for (at, (part, element)) in self.all().iter().zip(&elements).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            part.put_text(element, out);
        }
    }

    /// Returns the names of the types for messages.
    pub(super) fn noun(&self) -> String {
        let nouns: Vec<String> = self.all().iter().map(|part| part.noun()).collect();
        format!("({})", nouns.join(", "))
    }

    /// Returns an example of a text.
    pub(super) fn example(&self) -> String {
        let examples: Vec<&str> = self.all().iter().map(|part| part.example()).collect();
        examples.join(",")
    }
}

fn number_of(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

/// Appends a byte string that is not the last part.
fn put_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// Reads the byte string at the start of a key. Returns it with the rest.
fn unescaped(key: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut plain = Vec::new();
    let mut rest = key;
    loop {
        let zero = rest.iter().position(|&byte| byte == 0)?;
        plain.extend_from_slice(&rest[..zero]);
        match rest.get(zero + 1)? {
            0 => return Some((plain, &rest[zero + 2..])),
            0xff => plain.push(0),
            _ => return None,
        }
        rest = &rest[zero + 2..];
    }
}

/// Appends a text, between quotes if it has a comma, a quote or anything that ends a line or a column.
fn put_quoted(text: &[u8], out: &mut Vec<u8>) {
    if !text.iter().any(|&byte| matches!(byte, b',' | b'"') || byte.is_ascii_control()) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Reads the part at the start of a text. Returns it with what comes after its comma, if there is one.
fn field(text: &[u8]) -> Result<(Vec<u8>, Option<&[u8]>), TextError> {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        let mut halves = text.splitn(2, |&byte| byte == b',');
        return Ok((halves.next().unwrap_or_default().to_vec(), halves.next()));
    };
    let mut own = Vec::new();
    loop {
        let end = rest.iter().position(|&byte| byte == b'"').ok_or(TextError::Form)?;
        own.extend_from_slice(&rest[..end]);
        match &rest[end + 1..] {
            [] => return Ok((own, None)),
            [b'"', more @ ..] => {
                own.push(b'"');
                rest = more;
            }
            [b',', more @ ..] => return Ok((own, Some(more))),
            _ => return Err(TextError::Form),
        }
    }
}

/// Splits a list of types at its commas, except inside of brackets.
#[must_use]
pub fn type_list(text: &str) -> Vec<&str> {
    let (mut names, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    names.push(text[start..].trim());
    names
}

/// Reads the types of the fields of a record, separated by commas: `u8,timestamp[us],utf8`. `None` if one is unknown.
#[must_use]
pub fn field_types(text: &str) -> Option<Vec<(FieldKind, Logical)>> {
    let one = |name: &str| match FieldKind::from_name(name) {
        Some(kind) => Some((kind, Logical::Plain)),
        None => {
            let logical = Logical::of_name(name)?;
            Some((FieldKind::from_name(&logical.field_words()?)?, logical))
        }
    };
    type_list(text).into_iter().map(one).collect()
}

/// Reads the name of the type of a part: `u16`, `bytes4`, `utf8`, `timestamp[us]`. The error is the advice which to
/// use.
///
/// # Errors
/// A text if there is no such type, or if it cannot be a part.
pub fn part_type(name: &str) -> Result<Meaning, String> {
    let logical = Logical::of_name(name);
    let words = logical.as_ref().and_then(Logical::key_words).unwrap_or_else(|| name.to_owned());
    let meaning = Meaning::new(words, &logical.map(|logical| logical.meta()).unwrap_or_default());
    match Part::of(&meaning) {
        Some(_) => Ok(meaning),
        None => {
            let known = "u8 u16 u32 u64 u128 i8 i16 i32 i64 bytes16 (any N) bytes utf8";
            Err(format!("use {known}, or {}", Logical::NAMES))
        }
    }
}

/// The columns of a composite key: their names, and what they mean.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Composite {
    columns: Vec<(String, Meaning)>,
    parts: Parts,
}

/// The reason why columns are not a composite key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompositeError {
    /// There are fewer than two, or more than [`PARTS_MAX`].
    Count(usize),
    /// Two have this name.
    Twice(String),
    /// The column of this name has elements of a type that is not possible.
    Type(String, String),
}

impl CompositeError {
    /// Returns the fault.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::Count(count) => format!("a key has {count} columns, but 2 to {PARTS_MAX} are possible"),
            Self::Twice(name) => format!("two columns of the key have the name {name:?}"),
            Self::Type(name, words) => {
                format!("column {name:?} of the key is {words}, which cannot be a part of one")
            }
        }
    }

    /// Returns what to do.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Count(_) => "name others",
            Self::Twice(_) => "rename one",
            Self::Type(..) => "choose integers, texts, bytes or a logical type for it",
        }
    }
}

impl Composite {
    /// Creates a key of these columns.
    ///
    /// # Errors
    /// [`CompositeError`].
    pub fn new(columns: Vec<(String, Meaning)>) -> Result<Self, CompositeError> {
        for (at, (name, meaning)) in columns.iter().enumerate() {
            if columns[..at].iter().any(|(other, _)| other == name) {
                return Err(CompositeError::Twice(name.clone()));
            }
            if Part::of(meaning).is_none() {
                return Err(CompositeError::Type(name.clone(), meaning.to_string()));
            }
        }
        let parts: Vec<Part> = columns.iter().filter_map(|(_, meaning)| Part::of(meaning)).collect();
        let parts = Parts::new(&parts).ok_or(CompositeError::Count(columns.len()))?;
        Ok(Self { columns, parts })
    }

    /// Parses the text of META. Returns `None` if it is not as this version writes it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix(START)?;
        let mut columns = Vec::new();
        loop {
            let (name, after) = record::name(rest)?;
            let after = after.strip_prefix(": ")?;
            let end = after.find([',', '>', ' '])?;
            let words = &after[..end];
            rest = &after[end..];
            let mut logical = String::new();
            if let Some(after) = rest.strip_prefix(' ') {
                (logical, rest) = record::unquoted(after)?;
            }
            if columns.len() == PARTS_MAX || logical.starts_with(START) {
                return None;
            }
            columns.push((name, Meaning::new(words, &logical)));
            match rest.strip_prefix(", ") {
                Some(more) => rest = more,
                None if rest == ">" => break,
                None => return None,
            }
        }
        Self::new(columns).ok().filter(|composite| composite.to_string() == text)
    }

    /// Returns the parts.
    #[must_use]
    pub const fn parts(&self) -> Parts {
        self.parts
    }

    /// Returns the names and the meanings of the columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[(String, Meaning)] {
        &self.columns
    }

    /// Returns the name for people: the types in round brackets.
    pub(super) fn type_name(&self) -> String {
        self.parts.noun()
    }
}

impl fmt::Display for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(START)?;
        for (index, (name, meaning)) in self.columns.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            record::put_name(name, f)?;
            write!(f, ": {}", meaning.words)?;
            let logical = meaning.logical.meta();
            if !logical.is_empty() {
                f.write_char(' ')?;
                record::quoted(&logical, f)?;
            }
        }
        f.write_char('>')
    }
}

#[cfg(test)]
mod tests;
