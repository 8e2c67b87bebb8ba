//! The columns of a file or a set: names and Arrow types of keys and values.

use crate::error::{Error, Result};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pleach::{Meta, ValueType};
use pleach_batch::arrow::meant_field;
use pleach_batch::{Pool, Table};
use pleach_format::Logical;
use std::sync::Arc;

/// The columns of a table: those of the key come first.
#[derive(Clone, Debug)]
pub struct Columns {
    schema: SchemaRef,
    keys: usize,
    ordered: usize,
    is_composite: bool,
    is_record: bool,
}

impl Columns {
    /// Returns the columns of a file, whose tuples are not read.
    ///
    /// # Errors
    /// [`Error::Usage`] if keys are shorter than those they stand for; [`Error::File`] if names are damaged.
    pub fn of(table: &Table, meta: &Meta) -> Result<Self> {
        let logical = table.key_meaning();
        if matches!(logical, Logical::Hash64(_) | Logical::Prefix(_)) {
            let place = table.index().path().display();
            return Err(Error::Usage(format!(
                "keys are shorter than those they stand for: {place}: {} keys: build it with whole keys",
                logical.name()
            )));
        }
        let (keys, values) = table.arrays_at(&[], &Pool::current())?;
        let is_composite = matches!(logical, Logical::Composite(_));
        let is_record = table.record().is_some();
        let mut fields: Vec<Field> = Vec::new();
        let mut add = |field: Field| {
            let taken = |name: &str| fields.iter().any(|other| other.name() == name);
            let mut name = field.name().clone();
            let mut number = 2;
            while taken(&name) {
                name = format!("{}_{number}", field.name());
                number += 1;
            }
            fields.push(field.with_name(name).with_nullable(false));
        };
        let named = |given: &str, usual: &str| if given.is_empty() { usual.into() } else { given.to_owned() };
        let parts = |array: &ArrayRef| {
            let fields = array.as_struct().fields().iter();
            fields.map(|field| field.as_ref().clone()).collect::<Vec<_>>()
        };
        let key_fields = match is_composite {
            true => parts(&keys),
            false => vec![meant_field(named(&meta.key_name, "key"), &keys, false, logical)],
        };
        let (key_count, is_text) = (key_fields.len(), |field: &Field| {
            pleach_input::extension_of(field).is_some_and(|logical| pleach_input::is_text_in_arrow(&logical))
        });
        // Texts of a logical type are in another order than its words.
        let ordered = key_fields.iter().take_while(|field| !is_text(field)).count();
        key_fields.into_iter().for_each(&mut add);
        if is_record {
            parts(&values).into_iter().for_each(&mut add);
        } else if table.value_type() != ValueType::None {
            add(meant_field(named(&meta.value_name, "value"), &values, false, table.value_meaning()));
        }
        Ok(Self { schema: Arc::new(Schema::new(fields)), keys: key_count, ordered, is_composite, is_record })
    }

    /// Returns names and types; no column has nulls.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
    /// Returns the number of key columns, which come first: one, or the parts of composite keys.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys
    }
    /// Returns the number of leading columns in whose lexicographic order the rows are; 0 if the texts of keys
    /// have another order than the keys.
    #[must_use]
    pub fn ordered(&self) -> usize {
        self.ordered
    }
    /// Returns true if keys are of several columns.
    #[must_use]
    pub fn is_composite(&self) -> bool {
        self.is_composite
    }
    /// Returns true if the columns after the key are the fields of records.
    #[must_use]
    pub fn is_record(&self) -> bool {
        self.is_record
    }

    /// Returns the type of the first key column.
    #[must_use]
    pub fn key_type(&self) -> &DataType {
        self.schema.field(0).data_type()
    }

    /// Divides an array of keys into the key columns.
    #[must_use]
    pub fn key_columns(&self, keys: ArrayRef) -> Vec<ArrayRef> {
        if self.is_composite { keys.as_struct().columns().to_vec() } else { vec![keys] }
    }

    /// Divides arrays of keys and values, as [`Table::arrays_at`] makes them, into the columns.
    #[must_use]
    pub fn divided(&self, keys: ArrayRef, values: ArrayRef) -> Vec<ArrayRef> {
        let mut columns = self.key_columns(keys);
        if self.is_record {
            columns.extend_from_slice(values.as_struct().columns());
        } else if self.schema.fields().len() > columns.len() {
            columns.push(values);
        }
        debug_assert_eq!(columns.len(), self.schema.fields().len(), "the schema is that of the arrays");
        debug_assert!(columns.iter().all(|column| column.null_count() == 0), "a tuple has no nulls");
        columns
    }
}
