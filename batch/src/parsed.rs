//! Keys that are given as texts of a logical type: addresses, dates, digits, DNA.

use crate::error::{BatchError, Result};
use crate::keys::{Keys, Texts};
use crate::nulls::Nulls;
use crate::numbers::Numbers;
use crate::table::Table;
use pleach::{KeyType, Queries};
use pleach_format::logical::{Element, Form, with_article};

/// Keys that were read from texts.
#[derive(Clone, Debug)]
pub struct Parsed {
    elements: Elements,
    /// A bit for each key, least significant first; 0 is a null.
    valid: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Elements {
    /// Unsigned numbers.
    Unsigned(Vec<u128>),
    /// Signed numbers.
    Signed(Vec<i64>),
    /// Byte strings: where each ends.
    Bytes(Vec<u8>, Vec<usize>),
}

impl Table {
    /// Returns the form of the texts of keys, if texts are not the keys themselves.
    #[must_use]
    pub fn key_form(&self) -> Option<Form> {
        self.key_meaning().form()
    }

    /// Reads keys that are texts of the type of this file's keys. `None` if its keys have no texts, or are texts.
    ///
    /// # Errors
    /// [`BatchError::Refused`] with the first text that is no key of this type.
    pub fn parsed(&self, texts: &dyn Texts) -> Result<Option<Parsed>> {
        let Some(form) = self.key_form() else { return Ok(None) };
        let is_bytes = self.key_type().is_bytes();
        let mut valid = vec![0; texts.len().div_ceil(8)];
        let mut elements = match (is_bytes, form.is_signed()) {
            (true, _) => Elements::Bytes(Vec::new(), vec![0]),
            (false, true) => Elements::Signed(Vec::with_capacity(texts.len())),
            (false, false) => Elements::Unsigned(Vec::with_capacity(texts.len())),
        };
        for at in 0..texts.len() {
            if texts.is_null(at) {
                elements.push_null();
                continue;
            }
            let text = texts.get(at);
            let element = form.element(text).map_err(|error| {
                let shown = String::from_utf8_lossy(&text[..text.len().min(40)]).escape_debug().to_string();
                let noun = with_article(&form.noun());
                BatchError::Refused(format!("key {at} is not {noun}: \"{shown}\": {}", form.advice(error)))
            })?;
            elements.push(element);
            valid[at / 8] |= 1 << (at % 8);
        }
        Ok(Some(Parsed { elements, valid }))
    }

    /// Reports whether 16 bytes of an array are the number of a key of this file.
    #[must_use]
    pub fn takes_wide(&self) -> bool {
        // In the type `ip` the numbers are not those of IPv6, and of DNA nobody else has them.
        self.key_type() == KeyType::U128 && !matches!(self.key_form(), Some(Form::Ip | Form::Bases(_)))
    }
}

impl Elements {
    fn push(&mut self, element: Element) {
        match (self, element) {
            (Self::Signed(all), Element::Signed(word)) => all.push(word),
            (Self::Unsigned(all), Element::Unsigned(number)) => all.push(number),
            (Self::Bytes(data, ends), Element::Bytes(bytes)) => {
                data.extend_from_slice(&bytes);
                ends.push(data.len());
            }
            (Self::Bytes(data, ends), Element::Unsigned(number)) => {
                data.extend_from_slice(&number.to_be_bytes());
                ends.push(data.len());
            }
            // The type of the file decides what its texts denote.
            (all, _) => all.push_null(),
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Signed(all) => all.push(0),
            Self::Unsigned(all) => all.push(0),
            Self::Bytes(data, ends) => ends.push(data.len()),
        }
    }
}

/// Byte strings of a batch.
struct Strings<'a> {
    data: &'a [u8],
    ends: &'a [usize],
    nulls: Nulls<'a>,
}

impl Queries for Strings<'_> {
    fn len(&self) -> usize {
        self.ends.len() - 1
    }
    fn get(&self, index: usize) -> &[u8] {
        &self.data[self.ends[index]..self.ends[index + 1]]
    }
}

impl Texts for Strings<'_> {
    fn is_null(&self, at: usize) -> bool {
        self.nulls.is_null(at)
    }
}

impl Parsed {
    /// Makes room for keys that are byte strings, or else unsigned numbers.
    #[cfg(feature = "arrow")]
    pub(crate) fn of_type(is_bytes: bool, count: usize) -> Self {
        let elements = match is_bytes {
            true => Elements::Bytes(Vec::new(), vec![0]),
            false => Elements::Unsigned(Vec::with_capacity(count)),
        };
        Self { elements, valid: vec![0; count.div_ceil(8)] }
    }

    /// Adds key number `at`, above that of the last one; those between them are nulls.
    #[cfg(feature = "arrow")]
    pub(crate) fn put(&mut self, at: usize, element: Element) {
        self.fill(at);
        self.elements.push(element);
        self.valid[at / 8] |= 1 << (at % 8);
    }

    /// Adds nulls until there are `count` keys.
    #[cfg(feature = "arrow")]
    pub(crate) fn fill(&mut self, count: usize) {
        while self.len() < count {
            self.elements.push_null();
        }
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.elements {
            Elements::Unsigned(all) => all.len(),
            Elements::Signed(all) => all.len(),
            Elements::Bytes(_, ends) => ends.len() - 1,
        }
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `ask` with the keys.
    pub fn with<R>(&self, ask: impl FnOnce(&Keys<'_>) -> R) -> R {
        let nulls = Nulls::new(&self.valid, 0);
        match &self.elements {
            Elements::Unsigned(all) => ask(&Keys::Numbers(Numbers::of(all).with_nulls(Some(nulls)))),
            Elements::Signed(all) => ask(&Keys::Numbers(Numbers::of(all).with_nulls(Some(nulls)))),
            Elements::Bytes(data, ends) => ask(&Keys::Texts(&Strings { data, ends, nulls })),
        }
    }
}

/// Reports whether plain numbers of this type are the elements of a logical type: addresses, digits and hashes are
/// numbers to everybody.
pub(crate) const fn is_number(form: Form) -> bool {
    matches!(form, Form::Ipv4 | Form::Digits(_) | Form::Hash(_))
}
