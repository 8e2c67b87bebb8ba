//! A list that grows in memory up to a limit, and in an unnamed temporary file beyond it.

use crate::error::BuildError;
use crate::external::{Spill, Spills};
use std::borrow::Cow;
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

    /// Returns the number of elements that may be in memory.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn clear(&mut self) {
        self.memory.clear();
        self.spilled = 0;
    }

    pub(crate) fn len(&self) -> u64 {
        self.spilled + self.memory.len() as u64
    }

    /// Reports whether the elements from `at` on are in memory.
    pub(crate) fn is_in_memory(&self, at: u64) -> bool {
        at >= self.spilled
    }

    /// Returns elements `from..to`.
    pub(crate) fn range(&self, from: u64, to: u64) -> Result<Cow<'_, [T]>, BuildError> {
        let in_memory = |at: u64| (at - self.spilled) as usize;
        if from >= self.spilled {
            return Ok(Cow::Borrowed(&self.memory[in_memory(from)..in_memory(to)]));
        }
        let end = to.min(self.spilled);
        let mut elements = self.read_back(from, (end - from) as usize)?;
        elements.extend_from_slice(&self.memory[..in_memory(to.max(self.spilled))]);
        Ok(Cow::Owned(elements))
    }

    /// Replaces elements from `at` on, all of which are there.
    pub(crate) fn set(&mut self, at: u64, elements: &[T]) -> Result<(), BuildError> {
        let old = self.spilled.saturating_sub(at).min(elements.len() as u64) as usize;
        let (old, new) = elements.split_at(old);
        if let (Some(spill), false) = (&self.spill, old.is_empty()) {
            spill.output().write(old.as_bytes(), at * size_of::<T>() as u64)?;
        }
        if !new.is_empty() {
            let at = (at.max(self.spilled) - self.spilled) as usize;
            self.memory[at..at + new.len()].copy_from_slice(new);
        }
        Ok(())
    }

    fn read_back(&self, from: u64, count: usize) -> Result<Vec<T>, BuildError> {
        let mut buffer = vec![0; count * size_of::<T>()];
        if let Some(spill) = &self.spill {
            spill.output().read(&mut buffer, from * size_of::<T>() as u64)?;
        }
        let elements = buffer.chunks_exact(size_of::<T>());
        Ok(elements.filter_map(|bytes| T::read_from_bytes(bytes).ok()).collect())
    }

    /// Passes on all elements, in order.
    pub(crate) fn read(
        &self,
        take: &mut dyn FnMut(&[T]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let mut at = 0;
        while at < self.spilled {
            let count = (self.spilled - at).min(READ_ELEMENTS as u64);
            take(&self.read_back(at, count as usize)?)?;
            at += count;
        }
        take(&self.memory)
    }
}
