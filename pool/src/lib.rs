//! The thread pool, even if the system permits fewer threads than there are processors, or none.
//!
//! Rayon starts its global pool at its first use, and only once. It starts all threads or panics. So the
//! threads are started here first, as many as the system permits (`ulimit -u`, a container's limit of
//! processes), and the pool is made of these. If not even one can be started, the calling thread becomes a
//! pool of its own, and does all the work.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

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

/// Tasks for each thread that is asked to help.
const TASKS_EACH: usize = 2;
/// How long a caller that has done its work looks for the others to end, before it sleeps: waking up takes as long.
const SPIN: Duration = Duration::from_micros(100);

/// Runs `work` for each task on all threads of a pool (by default the current one), and returns the sum of the
/// results; of several errors that of the first task.
///
/// The calling thread begins at once, and others join it as they wake up, which takes them up to 100
/// microseconds. (An iterator of rayon, called from outside of its pool, does nothing until two threads are
/// awake.) Tasks should be of some ten microseconds. Not all threads are asked if there are few tasks.
///
/// # Errors
/// Those of `work`. Tasks after one that failed may be left out.
pub fn sum<T: Send, E: Send>(
    pool: Option<&rayon::ThreadPool>,
    tasks: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<usize, E> + Sync,
) -> Result<usize, E> {
    let tasks: Vec<Mutex<Option<T>>> = tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
    if pool.is_none() && tasks.len() > 1 {
        ready();
    }
    let threads = pool.map_or_else(rayon::current_num_threads, rayon::ThreadPool::current_num_threads);
    // The caller is one of them, whether it belongs to the pool or not.
    let helpers = threads.saturating_sub(1).min(tasks.len() / TASKS_EACH);
    let (next, sum, ended) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let failed: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let run = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = tasks.get(number) else { return };
            let Some(task) = slot.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
            match work(task) {
                Ok(found) => {
                    sum.fetch_add(found, Ordering::Relaxed);
                }
                Err(error) => {
                    next.fetch_max(tasks.len(), Ordering::Relaxed);
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    if failed.as_ref().is_none_or(|(earlier, _)| number < *earlier) {
                        *failed = Some((number, error));
                    }
                }
            }
        }
    };
    match pool {
        _ if helpers == 0 => run(),
        Some(pool) => pool.in_place_scope(|scope| share(scope, helpers, &run, &ended)),
        None => rayon::in_place_scope(|scope| share(scope, helpers, &run, &ended)),
    }
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, error)) => Err(error),
        None => Ok(sum.into_inner()),
    }
}

/// Runs `work` on this thread and on `helpers` others, and waits a little for these.
fn share<'scope>(
    scope: &rayon::Scope<'scope>,
    helpers: usize,
    work: &'scope (dyn Fn() + Sync),
    ended: &'scope AtomicUsize,
) {
    for _ in 0..helpers {
        scope.spawn(move |_| {
            work();
            ended.fetch_add(1, Ordering::Release);
        });
    }
    work();
    let since = Instant::now();
    while ended.load(Ordering::Acquire) < helpers && since.elapsed() < SPIN {
        std::hint::spin_loop();
    }
}

/// Returns the number of queries of a task of [`sum`], for a batch of `queries`: a multiple of 64, at most `most`.
/// Small batches have small tasks, of which each thread gets a few.
#[must_use]
pub fn task_queries(pool: Option<&rayon::ThreadPool>, queries: usize, most: usize) -> usize {
    let threads = pool.map_or_else(rayon::current_num_threads, rayon::ThreadPool::current_num_threads);
    (queries / (threads * 4)).clamp(1 << 10, most).next_multiple_of(64)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_runs_once_and_the_first_error_counts() {
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        for pool in [None, Some(pool(1)), Some(pool(2)), Some(pool(5))] {
            for count in [0, 1, 2, 3, 4, 9, 64, 1000] {
                let mut runs = vec![0u8; count];
                let work = |(number, run): (usize, &mut u8)| {
                    *run += 1;
                    if number % 40 == 39 { Err(number) } else { Ok(number) }
                };
                let found = sum(pool.as_ref(), runs.iter_mut().enumerate(), work);
                let expected = if count < 40 { Ok((0..count).sum()) } else { Err(39) };
                assert_eq!(found, expected, "{count} tasks");
                assert!(
                    runs.iter().all(|&run| run <= 1) && (count >= 40 || runs.iter().all(|&run| run == 1))
                );
                // From a thread of the pool, too.
                let inside = || sum(None, 0..count, Ok::<_, ()>);
                let found = pool.as_ref().map_or_else(inside, |pool| pool.install(inside));
                assert_eq!(found, Ok((0..count).sum()));
            }
        }
    }

    #[test]
    fn small_batches_have_small_tasks() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
        let of = |queries| task_queries(Some(&pool), queries, 1 << 14);
        assert_eq!([0, 4096, 16_384, 1 << 20].map(of), [1024, 1024, 2048, 1 << 14]);
        assert!(of(16_999).is_multiple_of(64));
    }
}

/// The program of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
