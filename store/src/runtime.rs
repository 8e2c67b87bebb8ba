//! The threads on which requests run. Callers wait for them, whatever runtime they are in themselves.

use std::future::Future;
use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;
use tokio::runtime::{Builder, Runtime};

/// Threads for requests: they copy bytes and decrypt them.
const THREADS: usize = 2;

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// Runs a future on the threads of requests and waits for its end. The calling thread only waits, so that it may
/// be one of another runtime.
///
/// # Errors
/// The threads cannot be started, or the future panicked.
pub(crate) fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("pleach-store").enable_all();
        builder.build().map_err(|error| error.to_string())
    });
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Err(io::Error::other(format!("no threads for requests: {error}"))),
    };
    let (sender, receiver) = sync_channel(1);
    runtime.spawn(async move {
        // Nobody listens if the caller panicked.
        let _ = sender.send(future.await);
    });
    receiver.recv().map_err(|_| io::Error::other("a request ended without an answer: try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_in_another_runtime_and_from_several_threads() {
        let outer = Builder::new_current_thread().build().expect("a runtime");
        assert_eq!(outer.block_on(async { wait(async { 7 }) }).expect("an answer"), 7);
        std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..8).map(|number| scope.spawn(move || wait(async move { number * 2 }))).collect();
            for (number, thread) in all.into_iter().enumerate() {
                assert_eq!(thread.join().expect("no panic").expect("an answer"), number * 2);
            }
        });
    }

    #[test]
    fn a_panic_is_an_error() {
        assert!(wait(async { panic!("a test of a panic") }).map(|()| ()).is_err());
    }
}
