//! Observation and cancellation of a build.

use crate::error::BuildError;
use std::sync::atomic::{AtomicBool, Ordering};

/// Phase of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Reading (and, while the input is in order, writing). Counts the units of the source.
    Read,
    /// Sorting in memory. Counts tuples.
    Sort,
    /// Merging spilled runs. Counts tuples.
    Merge,
    /// Writing the spine, the sums and the header. Counts bytes.
    Write,
    /// Waiting for the disk.
    Sync,
}

/// Observer of a build. Its methods are called from several threads, many times a second, and must return at
/// once.
pub trait Observer: Sync {
    /// Reports that `done` of `total` (if known) units of the phase are done.
    fn progress(&self, _phase: Phase, _done: u64, _total: Option<u64>) {}
    /// Returns true to stop the build, which then leaves no files.
    fn cancelled(&self) -> bool {
        false
    }
}

/// An observer that ignores progress and never cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// An observer that remembers cancellation: once cancelled, always cancelled.
pub(crate) struct Watch<'a> {
    observer: &'a dyn Observer,
    stopped: AtomicBool,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(observer: &'a dyn Observer) -> Self {
        Self { observer, stopped: AtomicBool::new(false) }
    }

    /// Returns [`BuildError::Interrupted`] if the observer has cancelled.
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
