//! Names and types of the operands of expressions.

use pleach_format::{KeyType, Record, ValueType};

/// Types and names of the operands that an expression can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Type of the keys.
    pub key_type: KeyType,
    /// Type of the values.
    pub value_type: ValueType,
    /// The fields of the values, if they are records.
    pub record: Option<Record>,
    /// Name of the key column, a synonym of `key`; empty if it has none.
    pub key_name: String,
    /// Name of the value column, a synonym of `value`.
    pub value_name: String,
    /// Logical types of key and value, which projections keep.
    pub logical: (String, String),
    /// Treat dates, times, decimals and uuids as the numbers that are stored.
    pub is_raw: bool,
}

impl Schema {
    /// Makes a schema of types only.
    #[must_use]
    pub fn new(key_type: KeyType, value_type: ValueType) -> Self {
        let (key_name, value_name, logical) = Default::default();
        Self { key_type, value_type, record: None, key_name, value_name, logical, is_raw: false }
    }

    /// Makes the schema of a source, or of a file as META describes it.
    #[must_use]
    pub fn of(source: &pleach_builder::Schema) -> Self {
        Self {
            key_type: source.key_type,
            value_type: source.value_type,
            record: source.record(),
            key_name: source.key_name.clone(),
            value_name: source.value_name.clone(),
            logical: (source.key_logical.clone(), source.value_logical.clone()),
            is_raw: false,
        }
    }
}
