//! A set as one file in memory, for what takes files alone.

use crate::error::Result;
use crate::table::Table;
use pleach::Index;
use pleach_builder::{BuildOptions, Silent, Unique, in_memory};
use pleach_set::{SetError, SetSource};
use std::sync::Arc;

impl Table {
    /// Returns the file; of a set, a file in memory with all of its tuples. O(tuples) for a set.
    ///
    /// # Errors
    /// [`BatchError::Set`](crate::BatchError::Set) if a file of the set cannot be read, or if memory is not enough.
    pub fn whole(&self) -> Result<Arc<Index>> {
        let Some(set) = self.set() else { return Ok(Arc::clone(self.index())) };
        let schema = set.schema();
        let options = BuildOptions {
            sorted: true,
            unique: schema.unique.then_some(Unique::Error),
            ..BuildOptions::default().with_layout(schema.meta.layout.parse().unwrap_or_default())
        };
        let bytes = in_memory(&mut SetSource::new(Arc::clone(set)), &options, &Silent);
        let bytes = bytes.map_err(SetError::from)?;
        Ok(Arc::new(Index::from_bytes(bytes).map_err(|error| SetError::Build(error.into()))?))
    }
}
