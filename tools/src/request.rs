//! What options request of tables, for all commands that read them, and what is told about their nulls.

use crate::failure::Failure;
use crate::message::Message;
use crate::parse::{BuildKeyType, ValueTypes};
use crate::render::text::counted;
use pleach_input::{InputOptions, Interval, NullCounts};

/// Requested types of keys and values.
#[derive(Clone, Copy, Debug)]
pub struct InputTypes<'a> {
    /// Type of the keys.
    pub key: Option<&'a BuildKeyType>,
    /// Type of the values, or of the fields.
    pub value: Option<&'a ValueTypes>,
}

impl InputTypes<'_> {
    /// Returns these types as options of an input.
    pub fn options(&self) -> InputOptions {
        let (value_type, value_logical, fields) = match self.value {
            None => (None, None, &[][..]),
            Some(ValueTypes::One(one)) => (Some(one.kind), one.logical.clone(), &[][..]),
            Some(ValueTypes::Fields(kinds)) => (None, None, &kinds[..]),
        };
        let is_network = self.key.is_some_and(|named| named.is_network);
        InputOptions {
            key_type: self.key.map(|named| named.of.kind),
            key_logical: self.key.and_then(|named| named.of.logical.clone()),
            derived: self.key.and_then(|named| named.derived),
            part_types: self.key.map(|named| named.parts.clone()).unwrap_or_default(),
            value_type,
            value_logical,
            field_types: fields.iter().map(|named| named.kind).collect(),
            field_logicals: fields.iter().map(|named| named.logical.clone().unwrap_or_default()).collect(),
            interval: is_network.then_some(Interval { end: None, is_exclusive: false }),
            ..InputOptions::default()
        }
    }

    /// Refuses types that do not fit the columns that are chosen, whatever is in them.
    pub fn check(&self, key: Option<&str>, value: Option<&str>, has_interval: bool) -> Result<(), Failure> {
        let is_list = |names: Option<&str>| names.is_some_and(|list| list.contains(','));
        if self.key.is_some_and(|named| named.derived.is_some()) && is_list(key) {
            let message = Message::new("hashes and prefixes are of one column").at("--key-type");
            return Err(Failure::usage(message.advise("name one with --key")));
        }
        if matches!(self.value, Some(ValueTypes::Fields(_))) && !has_interval && !is_list(value) {
            let message = Message::new("types of fields without fields").at("--value-type");
            return Err(Failure::usage(message.advise("name the columns of a record with --value a,b")));
        }
        match self.key.and_then(|named| named.alone.as_ref()) {
            Some(refused) if !is_list(key) => Err(Failure::usage(refused.clone())),
            _ => Ok(()),
        }
    }
}

/// Returns how many nulls there were, as the end of a sentence.
pub fn nulls_text(counts: &NullCounts) -> String {
    let skipped = Some(counts.skipped()).filter(|&count| count > 0);
    let filled = Some(counts.filled()).filter(|&count| count > 0);
    let skipped = skipped.map(|count| format!(", {} with nulls left out", counted(count, "row")));
    let filled = filled.map(|count| format!(", {} filled in", counted(count, "null")));
    let windows = Some(counts.windows()).filter(|&count| count > 0);
    let windows = windows
        .map(|count| format!(", {} with other letters than A C G T left out", counted(count, "window")));
    skipped.into_iter().chain(filled).chain(windows).collect()
}
