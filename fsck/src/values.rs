//! Rules of values that are byte strings: texts are UTF-8, and records with texts have whole ones.

use super::{Check, ReadAt};
use pleach_format::meta::Meta;
use pleach_format::record::ValueFault;
use pleach_format::section::Tag;
use pleach_format::{Header, Record, ValueType};
use std::io;
use std::ops::Range;

/// What every value of a file must be.
pub(super) enum Rule {
    /// A text.
    Text,
    /// A record with texts.
    Record(Record),
}

impl Rule {
    /// Returns what a value must be, if it is not that.
    pub(super) fn broken(&self, value: &[u8]) -> Option<String> {
        match self {
            Self::Text => std::str::from_utf8(value).is_err().then(|| "valid UTF-8".to_owned()),
            Self::Record(record) => record.check(value).err().map(|fault| wanted(record, fault)),
        }
    }
}

/// Returns what a value must be that breaks a rule of records.
fn wanted(record: &Record, fault: ValueFault) -> String {
    // Names come from the file, so they are escaped.
    let name = |index: usize| -> String {
        let name = record.fields().get(index).map_or("", |field| field.name.as_str());
        name.chars().take(80).flat_map(char::escape_debug).collect()
    };
    match fault {
        ValueFault::Short => format!("fields of {} bytes", record.bytes()),
        ValueFault::Descends(index) => format!("ends of texts that ascend, up to field {}", name(index)),
        ValueFault::Length => "texts that end where the value does".to_owned(),
        ValueFault::NotUtf8(index) => format!("valid UTF-8 in field {}", name(index)),
    }
}

impl<R: ReadAt> Check<'_, R> {
    /// Returns what the values of a file must be, if there is a rule for each.
    pub(super) fn rule_of_values(&self, header: &Header) -> io::Result<Option<Rule>> {
        if header.value_type == ValueType::Utf8 {
            return Ok(Some(Rule::Text));
        }
        let Some(section) = header.section(Tag::META).filter(|_| header.value_type == ValueType::Bytes)
        else {
            return Ok(None);
        };
        let meta = Meta::decode(&self.read(section.offset(), section.entry.length.get())?);
        Ok(Record::of(header.value_type, &meta.value_logical).map(Rule::Record))
    }

    /// Does what [`Rule::broken`] does for a value of `length` bytes at an offset of the file, in little memory.
    pub(super) fn broken_value(&self, rule: &Rule, at: u64, length: u64) -> io::Result<Option<String>> {
        let Rule::Record(record) = rule else {
            return Ok((!self.is_text(at, length)?).then(|| "valid UTF-8".to_owned()));
        };
        let fields = self.read(at, length.min(record.bytes() as u64))?;
        let is_text =
            |place: Range<usize>| self.is_text(at + place.start as u64, (place.end - place.start) as u64);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let checked = record.check_with(&fields, length, is_text)?;
        Ok(checked.err().map(|fault| wanted(record, fault)))
    }
}
