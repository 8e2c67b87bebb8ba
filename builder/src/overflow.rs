//! A list that grows in memory up to a limit, and in an unnamed temporary file beyond it.

use crate::error::BuildError;
use crate::external::{Spill, Spills};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Number of elements read back at once.
const READ_ELEMENTS: usize = 1 << 16;

/// Elements in order: those that were spilled, then those in memory.
pub(crate) struct Overflow<T> {
    memory: Vec<T>,
    limit: usize,
    spill: Option<Spill>,
    spilled: u64,
}

impl<T: Copy + FromBytes + IntoBytes + Immutable> Overflow<T> {
    /// Creates a list of which up to `limit` elements stay in memory.
    pub(crate) fn new(limit: usize) -> Self {
        Self { memory: Vec::new(), limit: limit.max(1), spill: None, spilled: 0 }
    }

    pub(crate) fn extend(&mut self, elements: &[T], spills: Spills<'_>) -> Result<(), BuildError> {
        if self.memory.len() + elements.len() > self.limit && !self.memory.is_empty() {
            if self.spill.is_none() {
                self.spill = Some(spills.create()?);
            }
            if let Some(spill) = &self.spill {
                spill.output().write(self.memory.as_bytes(), self.spilled * size_of::<T>() as u64)?;
            }
            self.spilled += self.memory.len() as u64;
            self.memory.clear();
        }
        self.memory.extend_from_slice(elements);
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.memory.clear();
        self.spilled = 0;
    }

    pub(crate) fn len(&self) -> u64 {
        self.spilled + self.memory.len() as u64
    }

    /// Passes on all elements, in order.
    pub(crate) fn read(
        &self,
        take: &mut dyn FnMut(&[T]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        if let Some(spill) = &self.spill {
            let mut at = 0;
            while at < self.spilled {
                let count = (self.spilled - at).min(READ_ELEMENTS as u64) as usize;
                let mut buffer = vec![0; count * size_of::<T>()];
                spill.output().read(&mut buffer, at * size_of::<T>() as u64)?;
                let elements: Vec<T> = buffer
                    .chunks_exact(size_of::<T>())
                    .filter_map(|bytes| T::read_from_bytes(bytes).ok())
                    .collect();
                take(&elements)?;
                at += count as u64;
            }
        }
        take(&self.memory)
    }
}
