//! Columns that the folders of a path give: `year=2024/month=5/part.csv`.
//!
//! Many writers partition a table by columns that the files then lack. Such a column is there only if it was
//! requested by its name, and the file itself has no column of that name. Its elements are texts, the same for all
//! rows of a file. In the values, `%` and two hexadecimal digits are a byte; `__HIVE_DEFAULT_PARTITION__` is a null.

use crate::names::{Asked, Names};
use crate::problem::{fault, problem};
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Int8Array, StringArray};
use pleach_builder::SourceError;
use std::sync::Arc;

/// The value that stands for a null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Columns of a path; they follow the columns of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folders {
    columns: Vec<(String, Option<String>)>,
}

impl Folders {
    /// Returns the requested columns that the path of `input` gives and the file, with columns `names`, has not.
    pub(crate) fn asked(input: &str, names: &[String], asked: &Asked) -> Result<Self, SourceError> {
        let mut columns = Vec::new();
        if asked.changes {
            return Ok(Self { columns });
        }
        for name in Names::wishes(asked) {
            let is_there = |taken: &(String, _)| taken.0 == name;
            if names.iter().any(|own| own == name) || columns.iter().any(is_there) {
                continue;
            }
            if let Some(value) = of_path(input, name) {
                let value = unescaped(value).ok_or_else(|| {
                    let text = format!("the folder {name}={value} is not UTF-8 with escapes such as %20");
                    problem(input, "", fault(text, "rename it"))
                })?;
                columns.push((name.to_owned(), Some(value).filter(|value| value != NULL)));
            }
        }
        Ok(Self { columns })
    }

    /// Returns true if the path gives no column.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the names of the columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.columns.iter().map(|(name, _)| name.clone())
    }

    /// Returns the texts of the columns; a null is empty.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(_, value)| value.as_deref().unwrap_or_default())
    }

    /// Returns the columns with `rows` elements. O(columns x rows), a byte each.
    pub(crate) fn arrays(&self, rows: usize) -> impl Iterator<Item = ArrayRef> + '_ {
        self.columns.iter().map(move |(_, value)| {
            let keys = Int8Array::from(vec![0; rows]);
            let values = Arc::new(StringArray::from(vec![value.as_deref()]));
            // Element 0 is there.
            let array: ArrayRef = match DictionaryArray::<Int8Type>::try_new(keys, values) {
                Ok(array) => Arc::new(array),
                Err(_) => Arc::new(StringArray::from(vec![value.as_deref(); rows])),
            };
            array
        })
    }
}

/// Returns the value that a folder of the path gives for a column; the last one, if there are several.
fn of_path<'a>(input: &'a str, column: &str) -> Option<&'a str> {
    let (folders, _) = input.rsplit_once('/')?;
    let value = |part: &'a str| part.strip_prefix(column)?.strip_prefix('=');
    folders.rsplit('/').find_map(value)
}

/// Replaces `%20` and the like. `None` if that is not UTF-8.
fn unescaped(value: &str) -> Option<String> {
    let bytes = value.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        let byte = digits.filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match byte.and_then(|pair| u8::from_str_radix(pair, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_give_values() {
        assert_eq!(of_path("a/year=2024/b/p.csv", "year"), Some("2024"));
        assert_eq!(of_path("year=2023/year=2024/p.csv", "year"), Some("2024"));
        assert_eq!(of_path("year=/p.csv", "year"), Some(""));
        assert_eq!(of_path("years=1/p.csv", "year"), None);
        assert_eq!(of_path("a/year=2024", "year"), None, "the file itself");
        assert_eq!(unescaped("a%20b%2Fc").as_deref(), Some("a b/c"));
        assert_eq!(unescaped("100%").as_deref(), Some("100%"));
        assert_eq!(unescaped("%zz%+1").as_deref(), Some("%zz%+1"));
        assert_eq!(unescaped("%ff"), None);
    }
}
