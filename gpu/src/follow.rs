//! A table on a device that follows the generations of its file.
//!
//! The next generation is copied to the device beside the one that is searched, and replaces it when the copy
//! is complete. Until then, and if the copy fails, the old one answers. So a device needs room for two.

use crate::{Gpu, GpuError, GpuTable, Residence};
use pleach::{Index, Live};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The current generation of a file, on a device; threads can share it.
#[derive(Debug)]
pub struct LiveTable {
    live: Arc<Live>,
    gpu: Gpu,
    residence: Residence,
    current: RwLock<Current>,
    switching: Mutex<()>,
}

/// A generation and its copy on the device.
type Current = (Arc<Index>, Arc<GpuTable<'static>>);

impl LiveTable {
    /// Copies the current generation to a device, as [`GpuTable::with_residence`] does.
    ///
    /// # Errors
    /// As [`GpuTable::new`].
    pub fn new(live: Arc<Live>, gpu: &Gpu, residence: Residence) -> Result<Self, GpuError> {
        let index = live.current();
        let table = Arc::new(GpuTable::of_shared(Arc::clone(&index), gpu, residence)?);
        let current = RwLock::new((index, table));
        Ok(Self { live, gpu: gpu.clone(), residence, current, switching: Mutex::default() })
    }

    /// Returns the current generation. Keep it as long as answers must agree with each other. O(1).
    #[must_use]
    pub fn get(&self) -> Arc<GpuTable<'static>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Looks for a new generation and makes it the current one, here and in the underlying [`Live`]. Returns
    /// true if there was one. One system call if there is none, else O(lines), while the old one still
    /// answers.
    ///
    /// # Errors
    /// The errors of [`Live::refresh`] and [`GpuTable::new`]; the old generation stays on the device.
    pub fn refresh(&self) -> Result<bool, GpuError> {
        let _one_at_a_time = self.switching.lock().unwrap_or_else(PoisonError::into_inner);
        self.live.refresh()?;
        let next = self.live.current();
        let is_current = {
            let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
            Arc::ptr_eq(&current.0, &next)
        };
        if is_current {
            return Ok(false);
        }
        let table = Arc::new(GpuTable::of_shared(Arc::clone(&next), &self.gpu, self.residence)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = (next, table);
        Ok(true)
    }
}
