//! The threads of all sessions, and waiting for them.

use crate::errors::{engine, exception};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result as EngineResult;
use pyo3::prelude::*;
use std::pin::pin;
use std::sync::OnceLock;
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
    let outcome = py.detach(|| {
        runtime.block_on(async {
            // Work that is dropped ends.
            let mut task = pin!(SpawnedTask::spawn(work));
            loop {
                match tokio::time::timeout(LOOK, &mut task).await {
                    Ok(outcome) => return Ok::<_, PyErr>(outcome),
                    // Other threads than the main one have no signals: this returns at once.
                    Err(_) => Python::attach(|py| py.check_signals())?,
                }
            }
        })
    });
    match outcome? {
        Ok(outcome) => outcome.map_err(|error| engine(py, &error)),
        Err(panic) => Err(exception(py, "PleachError", format!("a query failed: {panic}: report it"))),
    }
}
