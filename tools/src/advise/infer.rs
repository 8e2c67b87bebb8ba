//! Types that the columns of a text table fit, and other types of texts in typed tables.
//!
//! A type fits if the first rows of the table can be read with it. Nothing else is guessed: names of columns say
//! nothing.

use super::input::Input;
use crate::cli::{Global, TableArgs};
use crate::errors::source_failure;
use crate::failure::Failure;
use crate::parse;
use crate::tables::input_format;
use pleach_builder::source::SourceError;
use pleach_format::{KeyType, Logical, ValueType};
use pleach_input::{Format, Nulls};
use std::time::{Duration, Instant};

/// Key types of texts, in groups of those that mean the same; the first one that fits is taken.
const KEYS: [&[&str]; 6] = [
    &["u64", "i64", "u128", "f64"],
    &["date", "timestamp[us]", "timestamp[us,UTC]"],
    &["ipv4", "ip", "cidr"],
    &["dna2"],
    &["hex", "uuid"],
    &["utf8"],
];
/// Key types that shorten texts.
const SHORTER: [&str; 2] = ["hash64", "prefix:auto"];
/// Value types of texts; the first one that fits is taken.
const VALUES: [&str; 9] =
    ["u64", "i64", "date", "timestamp[us]", "timestamp[us,UTC]", "ipv4", "uuid", "f64", "utf8"];

/// Tries types on a table.
pub struct Tries<'a> {
    pub input: &'a Input,
    pub global: &'a Global,
    pub until: Instant,
    /// Time that each type has, even if it is later then.
    pub each: Duration,
    /// Bytes of the table that must fit a type.
    pub bytes: u64,
}

/// Returns the options with a key type.
fn with_key(args: &TableArgs, name: &str) -> TableArgs {
    TableArgs { key_type: parse::build_key_type(name).ok(), ..args.clone() }
}

/// Returns the options with a value type.
fn with_value(args: &TableArgs, name: &str) -> TableArgs {
    TableArgs { value_type: parse::value_types(name).ok(), ..args.clone() }
}

impl Tries<'_> {
    /// Returns options with the types that fit, the best first. Types that were given stay.
    pub fn tables(&self, args: &TableArgs) -> Result<Vec<TableArgs>, Failure> {
        let format = input_format(&args.inputs[0], args.format, |_| true)?;
        let is_text = args.raw.is_none() && matches!(format, Some(Format::Csv | Format::Tsv));
        if !is_text {
            return self.of_typed(args);
        }
        let mut tables = match &args.key_type {
            Some(_) => vec![args.clone()],
            None => self.keys(args)?,
        };
        if args.value_type.is_none()
            && let Some(first) = tables.first().cloned()
        {
            let value_type = self.value(&first)?.value_type;
            for table in &mut tables {
                table.value_type.clone_from(&value_type);
            }
        }
        Ok(tables)
    }

    /// Returns options for a table whose columns have types.
    fn of_typed(&self, args: &TableArgs) -> Result<Vec<TableArgs>, Failure> {
        let source = self.input.open(args, self.global).map_err(|error| source_failure(&error))?;
        let schema = source.schema();
        let is_text = schema.key_type == KeyType::Utf8 && schema.key_logical.is_empty();
        if args.key_type.is_some() || args.raw.is_some() || !is_text || schema.interval.is_some() {
            return Ok(vec![args.clone()]);
        }
        drop(source);
        let mut tables = Vec::new();
        // Who wrote digits as texts does not mean numbers.
        for group in &KEYS[1..5] {
            if let Ok(found) = self.first_key(args, group)? {
                tables.push(found);
                break;
            }
        }
        tables.push(args.clone());
        tables.extend(SHORTER.iter().map(|name| with_key(args, name)));
        Ok(tables)
    }

    /// Returns options with key types of texts.
    fn keys(&self, args: &TableArgs) -> Result<Vec<TableArgs>, Failure> {
        let keys_alone = with_value(&TableArgs { value: None, interval: None, ..args.clone() }, "none");
        let source = self.input.open(&with_key(&keys_alone, "utf8"), self.global);
        let is_composite =
            source.is_ok_and(|source| matches!(source.schema().key_meaning().logical, Logical::Composite(_)));
        if is_composite {
            let mut names = Vec::new();
            for part in args.key.as_deref().unwrap_or_default().split(',') {
                let alone = TableArgs { key: Some(part.to_owned()), ..keys_alone.clone() };
                let groups = KEYS.iter().flat_map(|group| group.iter());
                // Parts are neither floats nor networks.
                let groups: Vec<&str> =
                    groups.copied().filter(|name| !["f64", "u128", "cidr"].contains(name)).collect();
                let found = self.first_key(&alone, &groups)?.map_err(|fault| source_failure(&fault))?;
                names.extend(found.key_type.map(|key| key.text.clone()));
            }
            return Ok(vec![with_key(args, &names.join(","))]);
        }
        let names: Vec<&str> = KEYS.concat();
        let found = self.first_key(&keys_alone, &names)?.map_err(|fault| source_failure(&fault))?;
        let name = found.key_type.as_ref().map_or("utf8".to_owned(), |key| key.text.clone());
        let mut tables = vec![TableArgs { key_type: found.key_type, ..args.clone() }];
        let is_text = KEYS[2..].iter().any(|group| group.contains(&&*name));
        if is_text && args.interval.is_none() && name != "cidr" {
            let others = (name != "utf8").then_some("utf8").into_iter().chain(SHORTER);
            let others: Vec<TableArgs> = others.map(|name| with_key(args, name)).collect();
            tables.extend(others);
        }
        Ok(tables)
    }

    /// Returns options with a value type of texts.
    fn value(&self, args: &TableArgs) -> Result<TableArgs, Failure> {
        // A table of one column takes no value type at all.
        let source = self.input.open(args, self.global);
        let is_none = source.is_ok_and(|source| source.schema().value_type == ValueType::None);
        if is_none || args.value.as_deref() == Some("@row") {
            return Ok(args.clone());
        }
        let source = self.input.open(&with_value(args, "utf8"), self.global);
        let record = source.ok().and_then(|source| source.schema().record());
        let list = args.value.as_deref().filter(|list| record.is_some() && list.contains(','));
        let Some(list) = list else {
            let found = self.first_of(VALUES.iter().map(|name| with_value(args, name)))?;
            return found.map_err(|fault| source_failure(&fault));
        };
        let mut names = Vec::new();
        for field in list.split(',') {
            let alone = TableArgs { value: Some(field.to_owned()), interval: None, ..args.clone() };
            let found = self.first_of(VALUES.iter().map(|name| with_value(&alone, name)))?;
            let found = found.map_err(|fault| source_failure(&fault))?;
            names.extend(found.value_type.map(|one| one.text.clone()));
        }
        Ok(with_value(args, &names.join(",")))
    }

    fn first_key(&self, args: &TableArgs, names: &[&str]) -> Result<Result<TableArgs, SourceError>, Failure> {
        self.first_of(names.iter().map(|name| match *name {
            // Networks have values in any case: their ends.
            "cidr" => {
                let value = Some(args.key.clone().unwrap_or_else(|| "0".to_owned()));
                with_value(&with_key(&TableArgs { value, ..args.clone() }, name), "utf8")
            }
            name => with_key(args, name),
        }))
    }

    /// Returns the first options with which rows can be read, or the fault of the last ones. A fault that no other
    /// type removes is a failure.
    fn first_of(
        &self,
        options: impl Iterator<Item = TableArgs>,
    ) -> Result<Result<TableArgs, SourceError>, Failure> {
        let mut last = None;
        for args in options {
            match self.rows(&args) {
                Ok(()) => return Ok(Ok(args)),
                Err(fault) if fault.place == "first line" || self.is_null(&args) => {
                    return Err(source_failure(&fault));
                }
                Err(fault) => last = Some(fault),
            }
        }
        last.map(Err).ok_or_else(|| unreachable!("there are options"))
    }

    /// Returns true if rows can be read once nulls are left out: then a null is the fault, and not the type.
    fn is_null(&self, args: &TableArgs) -> bool {
        let skipping = TableArgs { nulls: Nulls::Skip, ..args.clone() };
        args.nulls == Nulls::Error && self.rows(&skipping).is_ok()
    }

    fn rows(&self, args: &TableArgs) -> Result<(), SourceError> {
        let until = self.until.max(Instant::now() + self.each);
        self.input.try_rows(args, self.global, (self.bytes, until))
    }
}
