//! The columns of a typed input that are read, with their conversions.

use crate::choose::{choose_key, choose_value};
use crate::fields::Fields;
use crate::interval::starts;
use crate::kind::Wanted;
use crate::logical::Natural;
use crate::names::{Choice, Names};
use crate::options::InputOptions;
use crate::parts::Parts;
use pleach_builder::{Schema, SourceError};
use pleach_format::{KeyType, ValueType};

/// The chosen columns, and the schema of their tuples.
pub(crate) struct Selection {
    pub(crate) key: Wanted,
    pub(crate) value: Option<Wanted>,
    /// Columns of a record.
    pub(crate) fields: Option<Fields>,
    /// Without the number of rows.
    pub(crate) schema: Schema,
}

impl Selection {
    /// Chooses the conversion of each column of `choice`. `held` describes the content of a column, in words
    /// and as a type, if that can be stored.
    pub(crate) fn new(
        input: &str,
        names: Names<'_>,
        choice: Choice,
        options: &InputOptions,
        held: impl Fn(usize) -> (String, Option<Natural>),
    ) -> Result<Self, SourceError> {
        let Choice { key, parts, value, fields } = choice;
        let label = names.label(key);
        let mut schema = Schema::plain(KeyType::U64, ValueType::None, None);
        let mut composite = None;
        let key = if parts.is_empty() {
            let chosen = choose_key(input, &label, held(key), options)?;
            schema.key_type = chosen.kind;
            schema.key_name = names.kept(key, "key");
            schema.key_logical = chosen.logical;
            Wanted { index: key, target: starts(chosen.target, options), label }
        } else {
            let columns: Vec<usize> = std::iter::once(key).chain(parts).collect();
            let (parts, mut wanted) =
                Parts::choose(input, names, &columns, options, |index| Some(held(index)))?;
            let key = wanted.remove(0);
            composite = Some((parts, wanted));
            key
        };
        let mut wanted_value = None;
        if let Some(index) = value {
            let label = names.label(index);
            let chosen = choose_value(input, &label, held(index), options)?;
            schema.value_type = chosen.kind;
            schema.value_name = names.kept(index, "value");
            schema.value_logical = chosen.logical;
            wanted_value = Some(Wanted { index, target: chosen.target, label });
        }
        let fields = match fields {
            Some(columns) => {
                let key = (schema.key_type, &*schema.key_logical);
                Some(Fields::choose(input, names, &columns, options, key, |index| Some(held(index)))?)
            }
            None => None,
        };
        let fields = match composite {
            Some((parts, others)) => Some(Fields::with_parts(fields, parts, others, &key.label)),
            None => fields,
        };
        if let Some(fields) = &fields {
            fields.describe(&mut schema);
        }
        Ok(Self { key, value: wanted_value, fields, schema })
    }

    /// Iterates over all columns to read.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &Wanted> {
        let fields = self.fields.iter().flat_map(|fields| &fields.columns);
        std::iter::once(&self.key).chain(&self.value).chain(fields)
    }
}
