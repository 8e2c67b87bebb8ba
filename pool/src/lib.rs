//! The thread pool, even if the system permits fewer threads than there are processors, or none.
//!
//! Rayon starts its global pool at its first use, and only once. It starts all threads or panics. So the
//! threads are started here first, as many as the system permits (`ulimit -u`, a container's limit of
//! processes), and the pool is made of these. If not even one can be started, the calling thread becomes a
//! pool of its own, and does all the work.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Maximum number of threads, whatever the number of processors.
const THREADS_MAX: usize = 1024;

/// Ensures that this thread can work in parallel: it belongs to a pool, or the global pool exists. Call it
/// before each use of rayon outside of a pool; it costs little if all is ready.
pub fn ready() {
    static READY: AtomicBool = AtomicBool::new(false);
    static STARTING: Mutex<()> = Mutex::new(());
    if rayon::current_thread_index().is_some() || READY.load(Ordering::Acquire) {
        return;
    }
    let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if READY.load(Ordering::Acquire) || start(wanted()).is_ok() {
        READY.store(true, Ordering::Release);
        return;
    }
    drop(starting);
    // From now on this thread is the pool. The pool is never shut down, since it is this thread.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
    drop(alone);
}

/// Returns the number of threads that rayon would start.
fn wanted() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    let asked = asked.filter(|&threads| threads > 0);
    let there = || thread::available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(there).min(THREADS_MAX)
}

/// Makes the global pool of as many of `wanted` threads as can be started.
///
/// # Errors
/// If no thread can be started.
fn start(wanted: usize) -> io::Result<()> {
    let mut waiting = Vec::new();
    for index in 0..wanted {
        let (give, take) = channel::<rayon::ThreadBuilder>();
        let work = move || {
            if let Ok(thread) = take.recv() {
                thread.run();
            }
        };
        match thread::Builder::new().name(format!("pleach-{index}")).spawn(work) {
            Ok(_) => waiting.push(give),
            Err(error) if waiting.is_empty() => return Err(error),
            Err(_) => break,
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(waiting.len());
    // An error means that the program has already made the pool; the waiting threads then end.
    let _ = pool
        .spawn_handler(|thread| {
            let give = waiting.pop().ok_or(io::ErrorKind::WouldBlock)?;
            give.send(thread).map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))
        })
        .build_global();
    Ok(())
}

/// The program of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
