//! The threads of all sessions, and waiting for them.

use crate::errors::{engine, exception};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result as EngineResult;
use pyo3::prelude::*;
use std::sync::OnceLock;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Time between two looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Returns the threads that run queries. The first call starts them.
///
/// # Errors
/// `PleachError` if they cannot be started, or in a process that was forked after they were.
pub(crate) fn runtime(py: Python<'_>) -> PyResult<&'static Runtime> {
    static RUNTIME: OnceLock<(u32, Result<Runtime, String>)> = OnceLock::new();
    let process = std::process::id();
    let (started_in, runtime) =
        RUNTIME.get_or_init(|| (process, Runtime::new().map_err(|error| error.to_string())));
    if *started_in != process {
        // Threads are not copied: nobody would ever answer.
        let text = "queries do not run in a forked process: their threads are in its parent: start processes by spawn";
        return Err(exception(py, "PleachError", text.to_owned()));
    }
    runtime
        .as_ref()
        .map_err(|error| exception(py, "PleachError", format!("cannot start threads: {error}: try again")))
}

/// Runs work on those threads and waits for it, without the interpreter's lock. An exception of a signal's handler
/// ends the work, and is returned.
///
/// # Errors
/// The exception of the error, or of the handler.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl Future<Output = EngineResult<T>> + Send + 'static,
) -> PyResult<T> {
    let runtime = runtime(py)?;
    py.check_signals()?;
    // A timer of the runtime would not tick while all of its threads compute, so this thread has its own.
    let outcome = py.detach(|| {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let _inside = runtime.enter();
        // Work that is dropped ends.
        let task = SpawnedTask::spawn(async move {
            // Nobody waits for what was interrupted.
            let _ = sender.send(work.await);
        });
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(outcome) => return Ok::<_, PyErr>(Ok(outcome)),
                // Other threads than the main one have no signals: this returns at once.
                Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = runtime.block_on(task.join());
                    return Ok(Err(ended
                        .err()
                        .map_or_else(|| "it ended".to_owned(), |panic| panic.to_string())));
                }
            }
        }
    });
    match outcome? {
        Ok(outcome) => outcome.map_err(|error| engine(py, &error)),
        Err(panic) => Err(exception(py, "PleachError", format!("a query failed: {panic}: report it"))),
    }
}
