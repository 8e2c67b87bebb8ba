//! Work on all threads, by numbered tasks with a plain loop inside. Results are in the order of tasks.

use pleach_builder::pool;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Runs `work` in a pool of its own with `threads` threads.
pub(crate) fn install(
    threads: usize,
    name: &'static str,
    work: &mut (dyn FnMut() + Send),
) -> Result<(), rayon::ThreadPoolBuildError> {
    let named = rayon::ThreadPoolBuilder::new().thread_name(move |index| format!("{name}-{index}"));
    named.num_threads(threads).build()?.install(work);
    Ok(())
}

/// Returns the first of `0..len` that passes a test; `grain` of them form a task.
pub(crate) fn find_first(len: usize, grain: usize, test: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    pool::ready();
    let tasks = (0..len.div_ceil(grain)).into_par_iter().with_max_len(1);
    tasks.find_map_first(|task| (task * grain..len.min((task + 1) * grain)).find(|&at| test(at)))
}

/// Returns the results of the tasks `0..count`, in their order.
pub(crate) fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    pool::ready();
    (0..count).into_par_iter().with_max_len(1).map(&work).collect()
}

/// Runs each job once.
pub(crate) fn jobs<J: Send>(jobs: impl IntoIterator<Item = J>, work: impl Fn(J) + Sync) {
    pool::ready();
    jobs.into_iter().collect::<Vec<_>>().into_par_iter().with_max_len(1).for_each(&work);
}

/// Returns `make` of each of `0..len`; `grain` of them form a task.
pub(crate) fn collect<T: Send>(len: usize, grain: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    pool::ready();
    (0..len).into_par_iter().with_min_len(grain).map(&make).collect()
}

/// Working memory of tasks: as many pieces as tasks run at once, each reused by later tasks.
#[derive(Default)]
pub(crate) struct Scratches<S>(Mutex<Vec<S>>);

impl<S: Default> Scratches<S> {
    /// Lends a piece to `work`.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut S) -> T) -> T {
        // No task leaves the list half written, so it is sound even after a panic.
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = idle.unwrap_or_default();
        let made = work(&mut scratch);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_task_runs_once_and_results_keep_their_order() {
        for count in [0, 1, 2, 7, 3000] {
            let runs: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            let run = |task: usize| {
                runs[task].fetch_add(1, Ordering::Relaxed);
                task * 3
            };
            let wanted: Vec<usize> = (0..count).map(|task| task * 3).collect();
            assert_eq!(map(count, run), wanted);
            jobs(0..count, |task| _ = run(task));
            for grain in [1, 6, 7, 8, 4000] {
                assert_eq!(collect(count, grain, run), wanted);
            }
            assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 7));
        }
    }

    #[test]
    fn the_first_is_found() {
        for count in [0usize, 1, 2, 7, 3000] {
            for from in [0, 1, 5, 2999].into_iter().filter(|&from| from < count) {
                let passes = |at: usize| at >= from && (at - from).is_multiple_of(3);
                for grain in [1, 6, 7, 8, 4000] {
                    assert_eq!(find_first(count, grain, passes), Some(from));
                }
            }
            assert_eq!(find_first(count, 7, |_| false), None);
        }
    }
}
