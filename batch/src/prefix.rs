//! Batches of prefixes: the keys that begin with some text, digits, bases or parts, or that lie in a network.
//!
//! A prefix is two keys, the smallest and the largest that begin with it, and their ranks are found as those of any
//! batch. Of byte strings, the keys behind it begin with the prefix whose last byte is one more.

use crate::answer::Bound;
use crate::error::{BatchError, Result};
use crate::keys::{Copied, Keys, Texts};
use crate::numbers::Numbers;
use crate::pool::Pool;
use crate::table::Table;
use pleach_format::logical::{Form, TextError, with_article};

impl Table {
    /// Finds the ranks of the tuples whose keys begin with each prefix: from `first` to the one before `end`. A prefix
    /// is written as the keys are, and that of a composite key has its first parts. That of a null has none.
    ///
    /// # Errors
    /// [`BatchError::Refused`] if keys are plain numbers, or with the first text with which no key can begin;
    /// [`BatchError::Short`] if there is not enough room for the ranks; those of [`Table::bounds`].
    pub fn prefix(
        &self,
        prefixes: &dyn Texts,
        first: &mut [u64],
        end: &mut [u64],
        pool: &Pool<'_>,
    ) -> Result<()> {
        let count = prefixes.len();
        for (name, room) in [("first", first.len()), ("end", end.len())] {
            if room < count {
                return Err(BatchError::Short { name, needed: count, found: room });
            }
        }
        match self.key_type().is_bytes() && !self.key_form().is_some_and(|form| form.is_wide()) {
            true => self.strings_with(prefixes, first, end, pool)?,
            false => self.words_with(prefixes, first, end, pool)?,
        }
        for at in (0..count).filter(|&at| prefixes.is_null(at)) {
            (first[at], end[at]) = (0, 0);
        }
        // Keys of a damaged file may be out of order.
        end.iter_mut().zip(first).for_each(|(end, first)| *end = (*end).max(*first));
        Ok(())
    }

    fn words_with(
        &self,
        prefixes: &dyn Texts,
        first: &mut [u64],
        end: &mut [u64],
        pool: &Pool<'_>,
    ) -> Result<()> {
        let (mut low, mut high) = (Vec::with_capacity(first.len()), Vec::with_capacity(first.len()));
        for at in 0..prefixes.len() {
            let text = text_of(prefixes, at);
            let form = self.key_form();
            let found = form.and_then(|form| form.prefix(text).map(|found| (form, found)));
            let Some((form, found)) = found else {
                let held = self.key_text();
                let text = format!("the keys are {held}, which have no prefixes: give bounds");
                return Err(BatchError::Refused(text));
            };
            let (from, to) = match prefixes.is_null(at) {
                true => (0, 0),
                false => found.map_err(|error| refused(form, at, text, error))?,
            };
            low.push(from);
            high.push(to);
        }
        if self.key_type().is_bytes() {
            let bytes = |words: Vec<u128>| words.into_iter().map(u128::to_be_bytes).collect::<Copied>();
            self.bounds(&Keys::Texts(&bytes(low)), Bound::Lower, first, pool)?;
            return self.bounds(&Keys::Texts(&bytes(high)), Bound::Upper, end, pool);
        }
        self.bounds(&Keys::Numbers(Numbers::of(&low)), Bound::Lower, first, pool)?;
        self.bounds(&Keys::Numbers(Numbers::of(&high)), Bound::Upper, end, pool)
    }

    fn strings_with(
        &self,
        prefixes: &dyn Texts,
        first: &mut [u64],
        end: &mut [u64],
        pool: &Pool<'_>,
    ) -> Result<()> {
        let (mut low, mut behind, mut last) = (Copied::default(), Copied::default(), Vec::new());
        for at in 0..prefixes.len() {
            let text = text_of(prefixes, at);
            // The last byte of a prefix with an odd number of digits has only its upper half.
            let (own, step) = match self.key_form() {
                None => (text.to_vec(), 1),
                Some(form) => match form.byte_prefix(text) {
                    Some(found) => (found.map_err(|error| refused(form, at, text, error))?, 1),
                    None => digits(text).ok_or_else(|| refused(form, at, text, TextError::Form))?,
                },
            };
            low.push(&[&own]);
            let is_free = |(place, &byte): (usize, &u8)| {
                byte.checked_add(if place + 1 == own.len() { step } else { 1 }).is_some()
            };
            let kept = own.iter().enumerate().rposition(is_free).map_or(0, |place| place + 1);
            let mut next = own[..kept].to_vec();
            match next.last_mut() {
                Some(byte) => *byte += if kept == own.len() { step } else { 1 },
                // No string is behind all that begin so.
                None => last.push(at),
            }
            behind.push(&[&next]);
        }
        self.bounds(&Keys::Texts(&low), Bound::Lower, first, pool)?;
        self.bounds(&Keys::Texts(&behind), Bound::Lower, end, pool)?;
        last.into_iter().for_each(|at| end[at] = self.len());
        Ok(())
    }
}

/// Returns a prefix; that of a null is empty.
fn text_of(prefixes: &dyn Texts, at: usize) -> &[u8] {
    if prefixes.is_null(at) { &[] } else { prefixes.get(at) }
}

/// Returns the bytes of some digits, and the distance to those behind: 16 if the last byte has only one digit.
fn digits(text: &[u8]) -> Option<(Vec<u8>, u8)> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_chunks::<2>();
    let mut bytes: Vec<u8> =
        pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect::<Option<_>>()?;
    match rest.first() {
        Some(&last) => {
            bytes.push(digit(last)? << 4);
            Some((bytes, 16))
        }
        None => Some((bytes, 1)),
    }
}

fn refused(form: Form, at: usize, text: &[u8], error: TextError) -> BatchError {
    let shown = String::from_utf8_lossy(&text[..text.len().min(40)]).escape_debug().to_string();
    let noun = with_article(&form.noun());
    BatchError::Refused(format!(
        "no key begins with prefix {at}, \"{shown}\", as it is {noun}: {}",
        form.advice(error)
    ))
}
