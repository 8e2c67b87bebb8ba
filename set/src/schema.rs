//! The types of a set as the schema of a build.

use crate::manifest::Schema;
use pleach_builder::source::{self, Intervals};

/// Returns the schema of a build of files of a set.
#[must_use]
pub fn source_schema(schema: &Schema) -> source::Schema {
    let meta = &schema.meta;
    source::Schema {
        key_name: meta.key_name.clone(),
        value_name: meta.value_name.clone(),
        key_logical: meta.key_logical.clone(),
        value_logical: meta.value_logical.clone(),
        interval: (!meta.interval.is_empty()).then_some(Intervals::Disjoint),
        ..source::Schema::plain(schema.key_type, schema.value_type, None)
    }
}
