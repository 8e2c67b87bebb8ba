//! Work on all threads, by numbered tasks.
//!
//! All parallel work is first divided into coarse tasks with a plain loop inside. A task is a number, and its
//! work is a `dyn Fn(usize)`. So the machinery of the pool (splitting, stealing, waiting) is compiled once,
//! not for each place that uses it times the types of keys and values. A call through a pointer costs nothing
//! beside the work of a task.
//!
//! Thin generic shells surround [`each`]: results are stored in slots, one per task, and the input that a
//! task owns is taken from a slot. No lock is held while a task runs, so a thread that waits may start
//! another task. Tasks run on the current pool in any order; results are in the order of tasks. So are
//! failures: the error reported is that of the first task, by number, that failed, whatever the threads did.

use crate::error::BuildError;
use crate::pool;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a slot, even after a panic: no task leaves a slot half written.
fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Input or result of one task.
type Slot<T> = Mutex<Option<T>>;

fn empty<T>(count: usize) -> Vec<Slot<T>> {
    let mut slots = Vec::new();
    slots.resize_with(count, Mutex::default);
    slots
}

fn full<T>(contents: impl IntoIterator<Item = T>) -> Vec<Slot<T>> {
    contents.into_iter().map(|content| Mutex::new(Some(content))).collect()
}

fn contents<T>(slots: Vec<Slot<T>>) -> Vec<T> {
    slots.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Runs tasks `0..count`.
pub(crate) fn each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    pool::ready();
    (0..count).into_par_iter().with_max_len(1).for_each(work);
}

/// Runs two functions at once.
pub(crate) fn both(
    one: &mut (dyn FnMut() -> Result<(), BuildError> + Send),
    other: &mut (dyn FnMut() -> Result<(), BuildError> + Send),
) -> (Result<(), BuildError>, Result<(), BuildError>) {
    pool::ready();
    rayon::join(one, other)
}

/// Returns the result of the first task, by number, that has one. Tasks after it may be skipped.
pub(crate) fn first<T: Send>(count: usize, work: &(dyn Fn(usize) -> Option<T> + Sync)) -> Option<T> {
    let earliest = AtomicUsize::new(count);
    let found = Mutex::new(None);
    each(count, &|task| {
        // No data depends on the number: if it is stale, a task runs in vain.
        if task > earliest.load(Ordering::Relaxed) {
            return;
        }
        let Some(made) = work(task) else { return };
        let mut found = lock(&found);
        if task < earliest.load(Ordering::Relaxed) {
            earliest.store(task, Ordering::Relaxed);
            *found = Some(made);
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs tasks `0..count` that may fail.
pub(crate) fn try_each(
    count: usize,
    work: &(dyn Fn(usize) -> Result<(), BuildError> + Sync),
) -> Result<(), BuildError> {
    first(count, &|task| work(task).err()).map_or(Ok(()), Err)
}

/// Returns the results of the tasks `0..count`, in their order.
pub(crate) fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let slots = empty(count);
    each(count, &|task| {
        let made = work(task);
        *lock(&slots[task]) = Some(made);
    });
    contents(slots)
}

/// Does the same as [`map`], with tasks that may fail.
pub(crate) fn try_map<T: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T, BuildError> + Sync,
) -> Result<Vec<T>, BuildError> {
    let slots = empty(count);
    try_each(count, &|task| {
        let made = work(task)?;
        *lock(&slots[task]) = Some(made);
        Ok(())
    })?;
    Ok(contents(slots))
}

/// Runs each job once.
pub(crate) fn jobs<J: Send>(jobs: impl IntoIterator<Item = J>, work: impl Fn(J) + Sync) {
    let slots = full(jobs);
    each(slots.len(), &|task| {
        let job = lock(&slots[task]).take();
        job.into_iter().for_each(&work);
    });
}

/// Does the same as [`jobs`], with jobs that may fail; those after one that failed may be skipped.
pub(crate) fn try_jobs<J: Send>(
    jobs: impl IntoIterator<Item = J>,
    work: impl Fn(J) -> Result<(), BuildError> + Sync,
) -> Result<(), BuildError> {
    let slots = full(jobs);
    try_each(slots.len(), &|task| {
        let job = lock(&slots[task]).take();
        job.map_or(Ok(()), &work)
    })
}

/// Returns `make` of each of `0..len`; `grain` of them form a task.
pub(crate) fn collect<T: Copy + Default + Send>(
    len: usize,
    grain: usize,
    make: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let mut made = vec![T::default(); len];
    jobs(made.chunks_mut(grain).enumerate(), |(task, slots)| {
        for (at, slot) in slots.iter_mut().enumerate() {
            *slot = make(task * grain + at);
        }
    });
    made
}

/// Working memory of tasks: as many pieces as tasks run at once, each reused by later tasks.
#[derive(Default)]
pub(crate) struct Scratches<S>(Mutex<Vec<S>>);

impl<S: Default> Scratches<S> {
    /// Lends a piece to `work`.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut S) -> T) -> T {
        let idle = lock(&self.0).pop();
        let mut scratch = idle.unwrap_or_default();
        let made = work(&mut scratch);
        lock(&self.0).push(scratch);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of tasks: none, one, odd, and more than any machine has threads.
    const COUNTS: [usize; 5] = [0, 1, 2, 7, 3000];

    fn interrupted(task: usize) -> BuildError {
        BuildError::Threads { threads: task, problem: String::new() }
    }

    fn number(error: BuildError) -> usize {
        match error {
            BuildError::Threads { threads, .. } => threads,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn every_task_runs_once_and_results_keep_their_order() {
        for count in COUNTS {
            let runs: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            let run = |task: usize| {
                runs[task].fetch_add(1, Ordering::Relaxed);
                task * 3
            };
            let wanted: Vec<usize> = (0..count).map(|task| task * 3).collect();
            assert_eq!(map(count, run), wanted);
            assert_eq!(try_map(count, |task| Ok(run(task))).unwrap(), wanted);
            jobs(0..count, |task| _ = run(task));
            try_jobs(0..count, |task| {
                run(task);
                Ok(())
            })
            .unwrap();
            for grain in [1, 6, 7, 8, 4000] {
                assert_eq!(collect(count, grain, run), wanted);
            }
            assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 9));
        }
    }

    #[test]
    fn the_first_failure_is_reported() {
        for count in COUNTS {
            for from in [0, 1, 5, 2999].into_iter().filter(|&from| from < count) {
                // Every third fails from there on.
                let fails = |task: usize| task >= from && (task - from).is_multiple_of(3);
                let run = |task| if fails(task) { Err(interrupted(task)) } else { Ok(()) };
                assert_eq!(number(try_each(count, &run).unwrap_err()), from);
                assert_eq!(number(try_map(count, run).unwrap_err()), from);
                assert_eq!(number(try_jobs(0..count, run).unwrap_err()), from);
                assert_eq!(first(count, &|task| fails(task).then_some(task)), Some(from));
            }
            assert!(try_each(count, &|_| Ok(())).is_ok());
        }
    }

    #[test]
    fn both_run_and_both_answer() {
        let (mut left, mut right) = (0, 0);
        let (one, other) = both(
            &mut || {
                left += 1;
                Err(interrupted(1))
            },
            &mut || {
                right += 1;
                Ok(())
            },
        );
        assert_eq!((left, right), (1, 1));
        assert!(other.is_ok());
        assert_eq!(number(one.unwrap_err()), 1);
    }

    #[test]
    fn scratches_are_used_again_and_never_twice_at_once() {
        let scratches = Scratches::<Vec<usize>>::default();
        jobs(0..500, |task| {
            scratches.with(|scratch| {
                scratch.push(task);
                // Other jobs run meanwhile, on this thread, too.
                jobs(0..3, |_| std::thread::yield_now());
                assert_eq!(scratch.last(), Some(&task));
            });
        });
        let made = scratches.0.into_inner().unwrap();
        let mut tasks: Vec<usize> = made.into_iter().flatten().collect();
        tasks.sort_unstable();
        assert_eq!(tasks, (0..500).collect::<Vec<_>>());
    }
}
