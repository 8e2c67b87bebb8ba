//! Short forms of [`Builder`] for the tests and benchmarks of this workspace. They may change in any release.

use crate::builder::{in_memory, push_value};
use crate::error::BuildError;
use crate::observe::Silent;
use crate::options::{BuildOptions, Summary};
use crate::source::{Chunk, Column, Schema, Source, SourceError};
use crate::{Builder, ChunkSource, build};
use pleach_format::{Key, KeyType, Value};
use std::path::Path;

/// Builds the file `target` from a slice of tuples in any order.
///
/// # Errors
/// Those of [`Builder::build`].
pub fn build_slice<K: Key, V: Value>(
    tuples: &[(K, V)],
    target: &Path,
    options: &BuildOptions,
) -> Result<Summary, BuildError> {
    Builder::from(options.clone()).build(target, tuples.iter().copied())
}

/// Builds the file `target` from an iterator over tuples in any order.
///
/// # Errors
/// Those of [`Builder::build`].
pub fn build_iter<K: Key, V: Value, I>(
    tuples: I,
    target: &Path,
    options: &BuildOptions,
) -> Result<Summary, BuildError>
where
    I: IntoIterator<Item = (K, V)>,
    I::IntoIter: Send,
{
    Builder::from(options.clone()).build(target, tuples)
}

/// Returns the bytes that [`build_slice`] would write, without any file.
///
/// # Errors
/// Those of [`Builder::to_bytes`].
pub fn build_bytes<K: Key, V: Value>(
    tuples: &[(K, V)],
    options: &BuildOptions,
) -> Result<Vec<u8>, BuildError> {
    Builder::from(options.clone()).to_bytes(tuples.iter().copied())
}

/// Builds the file `target` from tuples with byte keys of type `key_type`, in any order.
///
/// # Errors
/// Those of [`build`]; [`BuildError::Source`] if `key_type` is numeric, or if a key is not valid for the type.
pub fn build_strings<K: AsRef<[u8]> + Sync, V: Value>(
    key_type: KeyType,
    tuples: &[(K, V)],
    target: &Path,
    options: &BuildOptions,
) -> Result<Summary, BuildError> {
    build(&mut string_source(key_type, tuples)?, target, options, &Silent)
}

/// Returns the bytes that [`build_strings`] would write, without any file.
///
/// # Errors
/// Those of [`build_strings`] that do not come from the file system.
pub fn build_strings_bytes<K: AsRef<[u8]> + Sync, V: Value>(
    key_type: KeyType,
    tuples: &[(K, V)],
    options: &BuildOptions,
) -> Result<Vec<u8>, BuildError> {
    in_memory(&mut string_source(key_type, tuples)?, options, &Silent)
}

fn string_source<K: AsRef<[u8]> + Sync, V: Value>(
    key_type: KeyType,
    tuples: &[(K, V)],
) -> Result<impl Source, BuildError> {
    let refused = |place: String, what: String, advice: &str| {
        let (input, advice) = ("input".into(), advice.into());
        BuildError::Source(SourceError { input, place, what, advice, cause: None })
    };
    if !key_type.is_bytes() {
        let what = format!("{key_type} keys are numbers, not byte strings");
        return Err(refused(String::new(), what, "build them by `build_slice`"));
    }
    let is_key = |key: &[u8]| match key_type {
        KeyType::Fixed(bytes) => key.len() == usize::from(bytes),
        KeyType::Utf8 => std::str::from_utf8(key).is_ok(),
        KeyType::Bytes => true,
        KeyType::U32 | KeyType::U64 | KeyType::I32 | KeyType::I64 | KeyType::U128 | KeyType::F64 => false,
    };
    if let Some(row) = tuples.iter().position(|(key, _)| !is_key(key.as_ref())) {
        return Err(refused(
            format!("row {row}"),
            format!("the key is not one of type {key_type}"),
            "leave it out",
        ));
    }
    const TUPLES: usize = 1 << 14;
    let schema = Schema::plain(key_type, V::TYPE, Some(tuples.len() as u64));
    let chunks = tuples.chunks(TUPLES).map(move |tuples| {
        let mut chunk = Chunk::new(key_type, V::TYPE);
        for (key, value) in tuples {
            if let Column::Bytes(keys) = &mut chunk.keys {
                keys.push(key.as_ref());
            }
            push_value(&mut chunk.values, value, &mut Vec::new());
        }
        chunk
    });
    Ok(ChunkSource::new(schema, chunks))
}
