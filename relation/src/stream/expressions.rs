//! Expressions as the predicates and projections of streams.

use super::chunk::{self, Chunk, Field};
use super::rows::{self, Bitmap};
use crate::error::RelationError;
use crate::expr::{Predicate, Projection, Schema, Tuples};
use pleach_builder::Column;
use pleach_format::Logical;
use pleach_format::Record;

impl From<&chunk::Schema> for Schema {
    fn from(schema: &chunk::Schema) -> Self {
        let values = &schema.values;
        Self {
            key_type: schema.key_type,
            value_type: values.value_type,
            record: Record::of(values.value_type, &values.logical),
            key_name: schema.key_name.clone(),
            value_name: values.name.clone(),
            logical: (schema.key_logical.clone(), values.logical.clone()),
            is_raw: false,
        }
    }
}

fn tuples(chunk: &Chunk) -> Tuples<'_> {
    Tuples { first_rank: chunk.first_rank, keys: (&chunk.keys).into(), values: (&chunk.values).into() }
}

impl Predicate {
    /// Calls [`Predicate::evaluate`] on a chunk of a stream.
    ///
    /// # Errors
    /// [`RelationError::Expression`] if a tuple cannot be evaluated.
    pub fn evaluate_into(&self, chunk: &Chunk, keep: &mut Bitmap) -> Result<(), RelationError> {
        let mut bits = Vec::new();
        self.evaluate(&tuples(chunk), &mut bits)?;
        keep.words_mut().copy_from_slice(&bits);
        Ok(())
    }
}

impl rows::Predicate for Predicate {
    fn evaluate(&self, chunk: &Chunk, keep: &mut Bitmap) -> Result<(), RelationError> {
        self.evaluate_into(chunk, keep)
    }

    fn condition(&self) -> Option<&Predicate> {
        Some(self)
    }
}

impl rows::Projection for Projection {
    /// The input has the schema for which the projection was parsed.
    fn schema(&self, input: &chunk::Schema) -> Result<chunk::Schema, RelationError> {
        let out = Projection::schema(self);
        let (key_logical, logical) = out.logical;
        let (own, given) = (Logical::of_meta(&key_logical), Logical::of_meta(&input.key_logical));
        // The keys of the input, unless they were computed.
        let approximate = input.approximate.filter(|_| own == given);
        Ok(chunk::Schema {
            key_type: out.key_type,
            key_name: out.key_name,
            key_logical,
            values: Field { name: out.value_name, value_type: out.value_type, logical },
            right: None,
            has_right_keys: false,
            has_sides: false,
            is_sorted: self.keeps_order(),
            is_interval: false,
            approximate,
        })
    }

    fn map(&self, chunk: &Chunk) -> Result<Chunk, RelationError> {
        let out = Projection::schema(self);
        let (mut keys, mut values) = (Column::for_key(out.key_type), Column::for_value(out.value_type));
        self.apply(&tuples(chunk), &mut keys, &mut values)?;
        Ok(Chunk { keys, values, ..Chunk::default() })
    }

    fn columns(&self) -> Option<&Projection> {
        Some(self)
    }
}
