//! Chunks that a format fills: their columns, and when they are full.

use pleach_builder::{Chunk, Column, Schema};
use pleach_format::KeyType;

/// Bytes of strings at which a chunk is full, whatever the number of its tuples.
pub(crate) const CHUNK_BYTES: usize = 4 << 20;

/// Clears `chunk` and gives it the columns of `schema`; that of the keys is for `keys`, which are the first parts of
/// composite keys.
pub(crate) fn prepare(chunk: &mut Chunk, schema: &Schema, keys: Option<KeyType>) {
    let give = |column: &mut Column, wanted: Column| {
        if std::mem::discriminant(column) != std::mem::discriminant(&wanted) {
            *column = wanted;
        }
    };
    chunk.clear();
    give(&mut chunk.keys, Column::for_key(keys.unwrap_or(schema.key_type)));
    give(&mut chunk.values, Column::for_value(schema.value_type));
}

/// Returns the bytes of the strings of a chunk.
pub(crate) fn held_bytes(chunk: &Chunk) -> usize {
    let bytes = |column: &Column| match column {
        Column::Bytes(strings) => strings.data_bytes(),
        _ => 0,
    };
    bytes(&chunk.keys) + bytes(&chunk.values)
}
