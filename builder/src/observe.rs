//! How a caller watches a build and stops it.

use crate::error::BuildError;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a build is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Reading (and, as long as the input is in order, writing). Counts what the source counts.
    Read,
    /// Sorting in memory. Counts tuples.
    Sort,
    /// Merging spilled runs. Counts tuples.
    Merge,
    /// Writing the spine, the sums and the head. Counts bytes.
    Write,
    /// Waiting for the disk.
    Sync,
}

/// Watches a build. Called from several threads, many times a second: must return at once.
pub trait Observer: Sync {
    /// `done` of `total` (where known) units of the phase are done.
    fn progress(&self, _phase: Phase, _done: u64, _total: Option<u64>) {}
    /// Whether the build shall stop and leave nothing behind.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// An observer whose wish to stop is remembered: once cancelled, always cancelled.
pub(crate) struct Watch<'a> {
    observer: &'a dyn Observer,
    stopped: AtomicBool,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(observer: &'a dyn Observer) -> Self {
        Self { observer, stopped: AtomicBool::new(false) }
    }

    /// `Interrupted` if the observer wants to stop.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        if self.stopped.load(Ordering::Relaxed) || self.observer.cancelled() {
            self.stopped.store(true, Ordering::Relaxed);
            return Err(BuildError::Interrupted);
        }
        Ok(())
    }

    pub(crate) fn progress(&self, phase: Phase, done: u64, total: Option<u64>) {
        self.observer.progress(phase, done, total);
    }
}
