//! Progress of long work to Python, and interruptions from it.

use pleach_builder::{Observer, Phase};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Time between two looks for signals.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// Passes progress to Python, and an interruption to the work.
pub(crate) struct Progress {
    callback: Option<Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
}

impl Progress {
    /// Calls `callback` with the phase, what is done and the total.
    pub(crate) fn new(callback: Option<Bound<'_, PyAny>>) -> Self {
        Self { callback: callback.map(Bound::unbind), raised: Mutex::new(None) }
    }

    fn raised(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a thread of its own, without the interpreter's lock. Signals are handled meanwhile: only the
    /// thread that called can do that. An exception of a handler or of the callback comes before what `work` returns.
    pub(crate) fn run<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        exception: impl FnOnce(&E) -> PyErr,
        work: impl FnOnce() -> Result<T, E> + Send,
    ) -> PyResult<T> {
        let outcome = py.detach(|| {
            std::thread::scope(|scope| {
                let (done, wait) = std::sync::mpsc::channel::<()>();
                let worker = scope.spawn(move || {
                    let outcome = work();
                    // An error means that nobody waits.
                    let _ = done.send(());
                    outcome
                });
                while wait.recv_timeout(LOOK) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    if let Err(error) = Python::attach(|py| py.check_signals()) {
                        self.raised().get_or_insert(error);
                    }
                }
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        });
        match self.raised().take() {
            Some(error) => Err(error),
            None => outcome.map_err(|error| exception(&error)),
        }
    }
}

impl Observer for Progress {
    fn progress(&self, phase: Phase, done: u64, total: Option<u64>) {
        let Some(callback) = &self.callback else { return };
        let called = Python::attach(|py| callback.call1(py, (name(phase), done, total)).map(drop));
        if let Err(error) = called {
            self.raised().get_or_insert(error);
        }
    }
    fn cancelled(&self) -> bool {
        self.raised().is_some()
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Read => "read",
        Phase::Sort => "sort",
        Phase::Merge => "merge",
        Phase::Write => "write",
        Phase::Sync => "sync",
    }
}
