//! A table on a device that follows the generations of its file.
//!
//! The next generation is copied to the device beside the one that is searched, and takes its place when it is
//! there: meanwhile, and if the copy fails, the old one answers. So a device needs room for two.

use crate::{Gpu, GpuError, GpuTable, Residence};
use pleach::{Index, Live};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The current generation of a file, on a device, shared by threads.
#[derive(Debug)]
pub struct LiveTable {
    live: Arc<Live>,
    gpu: Gpu,
    residence: Residence,
    current: RwLock<Current>,
    switching: Mutex<()>,
}

/// A generation and its copy.
type Current = (Arc<Index>, Arc<GpuTable<'static>>);

impl LiveTable {
    /// Copies the current generation to a device, as [`GpuTable::with_residence`] does.
    ///
    /// # Errors
    /// As [`GpuTable::new`].
    pub fn new(live: Arc<Live>, gpu: &Gpu, residence: Residence) -> Result<Self, GpuError> {
        let index = live.get();
        let table = Arc::new(GpuTable::of_shared(Arc::clone(&index), gpu, residence)?);
        let current = RwLock::new((index, table));
        Ok(Self { live, gpu: gpu.clone(), residence, current, switching: Mutex::default() })
    }

    /// The generation that is current now. Keep it for as long as answers shall agree with each other. O(1).
    #[must_use]
    pub fn get(&self) -> Arc<GpuTable<'static>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Whether there is a new generation, which then is the current one, here and in the [`Live`] behind this. One
    /// system call if there is none; else O(lines), while the old one goes on answering.
    ///
    /// # Errors
    /// What [`Live::refresh`] and [`GpuTable::new`] say: the old generation stays on the device.
    pub fn refresh(&self) -> Result<bool, GpuError> {
        let _one_at_a_time = self.switching.lock().unwrap_or_else(PoisonError::into_inner);
        self.live.refresh()?;
        let next = self.live.get();
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
