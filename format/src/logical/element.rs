//! What texts of logical types denote: signed numbers, unsigned numbers and byte strings.
//!
//! [`Form::element`] reads any text, and [`Form::put_unsigned`] and [`Form::put_bytes`] print what is not a
//! signed number, which [`Form::put`] prints. An unsigned number that is stored in bytes has its most
//! significant byte first.

use super::text::{Form, TextError};
use super::{address, bases, digits, lossy};

/// What a text of a logical type denotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// The word of a signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u128),
    /// A byte string.
    Bytes(Vec<u8>),
}

/// Reads `true` or `false`, in any case, or 1 or 0.
fn boolean(text: &[u8]) -> Option<bool> {
    match text {
        b"1" => Some(true),
        b"0" => Some(false),
        _ if text.eq_ignore_ascii_case(b"true") => Some(true),
        _ if text.eq_ignore_ascii_case(b"false") => Some(false),
        _ => None,
    }
}

impl Form {
    /// Reads a text.
    ///
    /// # Errors
    /// [`TextError`], which says why the text is not valid.
    pub fn element(self, text: &[u8]) -> Result<Element, TextError> {
        Ok(match self {
            Self::Boolean => Element::Unsigned(boolean(text).ok_or(TextError::Form)?.into()),
            Self::Uuid => Element::Unsigned(digits::read_uuid(text).ok_or(TextError::Form)?),
            Self::Ipv4 => Element::Unsigned(address::read_v4(text)?.into()),
            Self::Ipv6 => Element::Unsigned(address::read_v6(text)?),
            Self::Ip => Element::Unsigned(address::read(text)?),
            Self::Network(is_last) => {
                let (first, last) = address::network(text, 0)?;
                Element::Unsigned(if is_last { last } else { first })
            }
            Self::Bases(is_canonical) => {
                let word = bases::read(text)?;
                Element::Unsigned(if is_canonical { bases::canonical(word) } else { word })
            }
            Self::Hex => Element::Bytes(digits::read_bytes(text)?),
            Self::Digits(count) => match digits::first(text, count)? {
                first if count > digits::NUMBER_DIGITS => Element::Bytes(digits::read_bytes(first)?),
                first => Element::Unsigned(digits::number(first)?),
            },
            Self::Hash(turn) => Element::Unsigned(lossy::hash_of(text, turn).into()),
            Self::Letters(count) => {
                let first = lossy::first_letters(text, count).ok_or(TextError::Form)?;
                Element::Bytes(first.to_vec())
            }
            Self::Composite(parts) => parts.read(text)?,
            Self::Days | Self::Date | Self::Time(_) | Self::Timestamp(..) => {
                Element::Signed(self.read(text)?)
            }
            Self::Duration(_) | Self::Decimal(..) => Element::Signed(self.read(text)?),
        })
    }

    /// Appends the text of an unsigned number. Numbers that are no element of the type, which a damaged file
    /// may hold, give some text.
    pub fn put_unsigned(self, number: u128, out: &mut Vec<u8>) {
        match self {
            Self::Boolean => out.extend_from_slice(if number == 0 { b"false" } else { b"true" }),
            Self::Uuid => digits::put_uuid(number, out),
            Self::Ipv4 => address::put_v4(number as u32, out),
            Self::Ipv6 => address::put_v6(number, out),
            Self::Ip | Self::Network(_) => address::put(number, out),
            Self::Bases(_) => bases::put(number, out),
            Self::Digits(count) => digits::put_number(number, count, out),
            Self::Hex | Self::Letters(_) => digits::put_bytes(&number.to_be_bytes(), out),
            Self::Hash(_) => digits::put_number(number, 16, out),
            Self::Composite(parts) => parts.put_text(parts.split_number(number), &number.to_be_bytes(), out),
            Self::Days | Self::Date | Self::Time(_) | Self::Timestamp(..) => self.put(number as i64, out),
            Self::Duration(_) | Self::Decimal(..) => self.put(number as i64, out),
        }
    }

    /// Appends the text of a byte string: its digits, or, if numbers have this form, that of the number whose
    /// 16 bytes it is.
    pub fn put_bytes(self, bytes: &[u8], out: &mut Vec<u8>) {
        if let Self::Composite(parts) = self {
            return parts.put_text(parts.split(bytes), bytes, out);
        }
        if let Self::Letters(_) = self {
            return out.extend_from_slice(bytes);
        }
        match bytes.try_into() {
            Ok(number) if self.is_wide() => self.put_unsigned(u128::from_be_bytes(number), out),
            _ => digits::put_bytes(bytes, out),
        }
    }

    /// Reports whether texts denote unsigned numbers of up to 128 bits. Keys of such a type are `u128`, and
    /// values are their 16 bytes.
    #[must_use]
    pub const fn is_wide(self) -> bool {
        match self {
            Self::Uuid | Self::Ipv6 | Self::Ip | Self::Network(_) | Self::Bases(_) => true,
            Self::Digits(count) => count > 16 && count <= digits::NUMBER_DIGITS,
            Self::Boolean | Self::Ipv4 | Self::Hex => false,
            Self::Hash(_) | Self::Letters(_) | Self::Composite(_) => false,
            Self::Days | Self::Date | Self::Time(_) | Self::Timestamp(..) => false,
            Self::Duration(_) | Self::Decimal(..) => false,
        }
    }

    /// Reports whether texts denote signed numbers.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        match self {
            Self::Days | Self::Date | Self::Time(_) | Self::Timestamp(..) => true,
            Self::Duration(_) | Self::Decimal(..) => true,
            Self::Uuid | Self::Ipv4 | Self::Ipv6 | Self::Ip | Self::Bases(_) => false,
            Self::Boolean | Self::Hex | Self::Digits(_) | Self::Network(_) => false,
            Self::Hash(_) | Self::Letters(_) | Self::Composite(_) => false,
        }
    }

    /// Returns the smallest and the largest number whose text begins with some bases or digits, or that lies
    /// in a network of addresses. `None` for types that have no such ranges; those of byte strings are in
    /// their bytes.
    ///
    /// # Errors
    /// [`TextError`], which says why no text begins so.
    pub fn prefix(self, text: &[u8]) -> Option<Result<(u128, u128), TextError>> {
        match self {
            Self::Bases(_) => Some(bases::prefix(text)),
            Self::Uuid => {
                let plain: Vec<u8> = text.iter().copied().filter(|&byte| byte != b'-').collect();
                Some(digits::prefix(&plain, digits::NUMBER_DIGITS))
            }
            Self::Ipv4 => Some(address::network(text, 32)),
            Self::Ipv6 => Some(address::network(text, 128)),
            Self::Ip => Some(address::network(text, 0)),
            Self::Digits(count) if count <= digits::NUMBER_DIGITS => Some(digits::prefix(text, count)),
            Self::Composite(parts) if parts.is_number() => Some(parts.number_prefix(text)),
            _ => None,
        }
    }

    /// Returns the bytes with which the keys of a text begin: those that have its parts, if keys are composite and
    /// stored as byte strings, or its first letters. `None` for all other types.
    ///
    /// # Errors
    /// [`TextError`], which says why no key begins so.
    pub fn byte_prefix(self, text: &[u8]) -> Option<Result<Vec<u8>, TextError>> {
        match self {
            Self::Composite(parts) if !parts.is_number() => Some(parts.byte_prefix(text)),
            Self::Letters(count) => {
                Some(lossy::first_letters(text, count).map(<[u8]>::to_vec).ok_or(TextError::Form))
            }
            _ => None,
        }
    }
}
