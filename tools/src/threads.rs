//! Runs work on as many threads as a command is told.

use crate::failure::{Code, Failure};
use crate::message::Message;

/// Runs on so many threads, or on those of the process if the number is 0.
pub fn in_pool<T: Send>(
    threads: usize,
    run: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    if threads == 0 {
        pleach_builder::pool::ready();
        return run();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|_| {
        let advice =
            "give fewer with --threads, or raise the limit of processes (ulimit -u, the container's)";
        let message = Message::new(format!("cannot start {threads} threads")).advise(advice);
        Failure::new(Code::Limit, message)
    })?;
    pool.install(run)
}
