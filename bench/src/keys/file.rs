//! Keys of a user's own: a column of a file that `pleach build` reads.

use crate::BenchError;
use pleach_builder::source::{Chunk, Column};
use pleach_input::InputOptions;
use std::path::Path;

/// Reads distinct keys of a column, ascending, as words of 64 bits: the order of the words is that of the keys.
///
/// # Errors
/// [`BenchError::Options`] if the file cannot be read, or if its keys are not numbers of 4 or 8 bytes.
pub fn words(path: &Path, options: &InputOptions) -> Result<Vec<u64>, BenchError> {
    let refused = |text: String| BenchError::Options(text);
    let failed = |error: pleach_builder::source::SourceError| refused(error.to_string());
    let mut source = pleach_input::open(&[path.to_owned()], options).map_err(failed)?;
    let key_type = source.schema().key_type;
    if key_type.is_bytes() || key_type.bytes() > 8 {
        return Err(refused(format!(
            "{}: {key_type} keys are not measured: use a column of numbers of 4 or 8 bytes",
            path.display()
        )));
    }
    let mut chunk = Chunk::new(key_type, source.schema().value_type);
    let mut keys = Vec::new();
    loop {
        source.next_chunk(&mut chunk, 1 << 16).map_err(failed)?;
        match &chunk.keys {
            Column::U32(words) => keys.extend(words.iter().map(|&word| u64::from(word))),
            Column::U64(words) => keys.extend_from_slice(words),
            Column::None | Column::U128(_) | Column::Bytes(_) => {}
        }
        if chunk.is_empty() {
            break;
        }
    }
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        return Err(refused(format!("{}: no keys: nothing to measure", path.display())));
    }
    Ok(keys)
}
