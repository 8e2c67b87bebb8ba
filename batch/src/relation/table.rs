//! An Arrow table as a file in memory.

use crate::error::Result;
use arrow_array::RecordBatchReader;
use pleach::Index;
use pleach_builder::{BuildError, BuildOptions, Observer};
use pleach_input::InputOptions;
use std::sync::Arc;

/// Sorts the tuples of Arrow batches, and returns them as an open file in memory. Messages call the table `name`. Its
/// key is the first column and its value the second, unless `options` says otherwise.
///
/// # Errors
/// [`BatchError::Build`](crate::BatchError::Build) if a column is missing or its type cannot be stored.
pub fn in_memory(
    name: &str,
    reader: Box<dyn RecordBatchReader + Send>,
    options: &InputOptions,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Arc<Index>> {
    let schema = reader.schema();
    let mut source =
        pleach_input::open_batches(name, &schema, reader, options).map_err(BuildError::Source)?;
    // Nothing leaves the memory, so that no limit would help.
    let build = BuildOptions { threads, memory_bytes: u64::MAX / 4, ..BuildOptions::default() };
    let bytes = pleach_builder::in_memory(&mut *source, &build, observer)?;
    Ok(Arc::new(Index::from_bytes(bytes).map_err(pleach::Error::from)?))
}
