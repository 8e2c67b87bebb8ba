//! Nulls: what becomes of rows without a key or a value.
//!
//! In Parquet and Arrow a null is a null. In text it is an empty field of a column that is not text. By default a
//! null is an error. Rows with nulls may be left out instead, or values filled in, and are then counted.

use crate::kind::{Kind, Target, Wanted, empty};
use crate::parse::{Shown, parse};
use crate::problem::{fault, problem};
use crate::strings;
use pleach_builder::{Column, SourceError};
use pleach_format::logical::Form;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What becomes of a row with a null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nulls {
    /// It is an error.
    #[default]
    Error,
    /// The row is left out.
    Skip,
    /// A value that is null becomes this text, read as one of its column. A key that is null is an error.
    Fill(String),
}

impl FromStr for Nulls {
    type Err = String;

    /// Reads `error`, `skip` or `default=V`. The error is the advice which of these to use.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("default=")) {
            ("error", _) => Ok(Self::Error),
            ("skip", _) => Ok(Self::Skip),
            (_, Some(value)) => Ok(Self::Fill(value.to_owned())),
            _ => Err("use error, skip or default=V".to_owned()),
        }
    }
}

/// Numbers of rows with nulls, and of windows that are no k-mers. Clones share them, so that they can be asked for
/// after a build.
#[derive(Clone, Debug, Default)]
pub struct NullCounts(Arc<[AtomicU64; 3]>);

impl NullCounts {
    /// Returns the number of rows that were left out.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.0[0].load(Ordering::Relaxed)
    }

    /// Returns the number of values that were filled in.
    #[must_use]
    pub fn filled(&self) -> u64 {
        self.0[1].load(Ordering::Relaxed)
    }

    /// Returns the number of windows of sequences that were left out, because a letter in them is none of A C G T.
    #[must_use]
    pub fn windows(&self) -> u64 {
        self.0[2].load(Ordering::Relaxed)
    }

    pub(crate) fn leave_out(&self, windows: u64) {
        self.0[2].fetch_add(windows, Ordering::Relaxed);
    }

    pub(crate) fn skip(&self, rows: u64) {
        self.0[0].fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn fill(&self, values: u64) {
        self.0[1].fetch_add(values, Ordering::Relaxed);
    }
}

/// Counts are no choice: options are equal whatever was counted.
impl PartialEq for NullCounts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for NullCounts {}

/// Reports whether an empty field of text is a null of this column, and not an empty string.
pub(crate) fn is_empty_null(target: Target) -> bool {
    match target.form {
        Some(form) => form != Form::Hex && !form.is_verbatim(),
        None => !target.kind.is_bytes(),
    }
}

/// Appends `count` copies of the text that stands for nulls.
pub(crate) fn fill(
    input: &str,
    wanted: &Wanted,
    text: &str,
    count: usize,
    out: &mut Column,
) -> Result<(), SourceError> {
    let Wanted { target, ref label, .. } = *wanted;
    let refused = || {
        let kind = target.form.map_or_else(|| target.kind.bounds(), Form::noun);
        let what = format!("the default {} of nulls is not a value of type {kind}", Shown(text.as_bytes()));
        problem(input, label, fault(what, "give another one with --nulls default=V"))
    };
    let bytes = text.as_bytes();
    let mut one = empty(target);
    if let Column::Bytes(strings) = &mut one {
        if target.form.is_some() {
            strings::append(std::iter::once(bytes), true, target, &mut one).map_err(|_| refused())?;
        } else {
            let decoded = strings::hexadecimal(bytes, target);
            let string = decoded.as_deref().unwrap_or(bytes);
            strings::check(string, target.kind == Kind::Utf8, target).map_err(|_| refused())?;
            strings.push(string);
        }
    } else {
        let word = parse(bytes, target).map_err(|_| refused())?;
        match &mut one {
            Column::U32(words) => words.push(word as u32),
            Column::U64(words) => words.push(word as u64),
            Column::None | Column::U128(_) | Column::Bytes(_) => return Err(refused()),
        }
    }
    match (&one, out) {
        (Column::U32(one), Column::U32(out)) => out.extend(std::iter::repeat_n(one[0], count)),
        (Column::U64(one), Column::U64(out)) => out.extend(std::iter::repeat_n(one[0], count)),
        (Column::Bytes(one), Column::Bytes(out)) => (0..count).for_each(|_| out.push(one.get(0))),
        _ => return Err(refused()),
    }
    Ok(())
}
