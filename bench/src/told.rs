//! The observer of a run: it receives the steps, and may stop the run between them.

use crate::BenchError;

/// Nobody, by default.
#[derive(Clone, Copy, Default)]
pub struct Told<'a> {
    /// Told what is being done.
    pub progress: Option<&'a dyn Fn(&str)>,
    /// Asked between the steps whether to stop.
    pub cancelled: Option<&'a dyn Fn() -> bool>,
}

impl Told<'_> {
    /// Reports a step.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`] if the caller asked to stop.
    pub fn step(&self, text: &str) -> Result<(), BenchError> {
        if self.cancelled.is_some_and(|cancelled| cancelled()) {
            return Err(BenchError::Interrupted);
        }
        if let Some(progress) = self.progress {
            progress(text);
        }
        Ok(())
    }
}
