//! Logical types of keys, values and fields of a file, for printing and parsing them as text.

use crate::cli::Global;
use crate::errors;
use crate::failure::Failure;
use pleach::{Approximate, Index, Meta, Record};
use pleach_format::logical::Form;
use pleach_format::{KeyType, Meaning, ValueType};
use std::path::Path;

/// Logical forms of the columns of a file; none under `--raw-values`.
#[derive(Clone, Debug, Default)]
pub struct Meant {
    /// Form of the key, and its name.
    pub key: Option<(Form, String)>,
    /// Form of the value.
    pub value: Option<Form>,
    /// Forms of the fields of a record.
    pub fields: Vec<Option<Form>>,
    /// How often absent keys are found, if keys are shorter than those they stand for.
    pub approximate: Option<Approximate>,
}

impl Meant {
    /// Returns the forms of an open file.
    pub fn of_file(index: &Index, path: &Path, global: &Global) -> Result<Self, Failure> {
        let meta: Meta = index.meta().map_err(errors::reading(path))?;
        let approximate = index.approximate().map_err(errors::reading(path))?;
        if global.raw_values {
            return Ok(Self { approximate, ..Self::default() });
        }
        let meant =
            Self::new((index.key_type(), &meta.key_logical), (index.value_type(), &meta.value_logical));
        Ok(Self { approximate, ..meant })
    }

    /// Returns the forms of columns of these types, with their texts in META.
    pub fn new(key: (KeyType, &str), value: (ValueType, &str)) -> Self {
        let meaning = Meaning::new(key.0, key.1);
        let record = Record::of(value.0, value.1);
        Self {
            key: meaning.form().map(|form| (form, meaning.logical.name())),
            value: Meaning::new(value.0, value.1).form(),
            fields: record.iter().flat_map(Record::fields).map(form_of_field).collect(),
            approximate: None,
        }
    }

    /// Returns true if any column has a logical form.
    pub fn is_any(&self) -> bool {
        self.key.is_some() || self.value.is_some() || self.fields.iter().any(Option::is_some)
    }

    /// Returns the form of the key.
    pub fn key_form(&self) -> Option<Form> {
        self.key.as_ref().map(|(form, _)| *form)
    }
}

/// Returns the form of a field.
pub fn form_of_field(field: &pleach::Field) -> Option<Form> {
    Meaning::new(field.kind, &field.logical).form()
}
