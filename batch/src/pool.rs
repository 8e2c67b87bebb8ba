//! The threads of a batch.

use crate::convert::{PIECE, TASK};
use crate::error::{BatchError, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Tasks that a thread gets before the caller is asked whether to go on.
const ROUND: usize = 64;

/// The threads that answer a batch, and a check whether to go on.
#[derive(Clone, Default)]
pub struct Pool<'a> {
    threads: Option<Arc<rayon::ThreadPool>>,
    go_on: Option<&'a dyn Fn() -> bool>,
}

/// The pool of a process, and the number of threads that was asked for.
struct OfProcess {
    process: u32,
    pools: Vec<(usize, Arc<rayon::ThreadPool>)>,
}

static POOLS: Mutex<OfProcess> = Mutex::new(OfProcess { process: 0, pools: Vec::new() });

impl<'a> Pool<'a> {
    /// Answers on the calling thread alone.
    #[must_use]
    pub const fn current() -> Self {
        Self { threads: None, go_on: None }
    }

    /// Answers on `threads` threads, or on as many as there are processors for 0. Threads of one number are started
    /// once in a process, and anew in a child of `fork`, which inherits none.
    #[must_use]
    pub fn of(threads: usize) -> Self {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        if threads == 1 {
            return Self::current();
        }
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if pools.process != process {
            // Threads do not survive a fork. Ending their pools would wait for them.
            pools.pools.drain(..).for_each(|(_, pool)| std::mem::forget(pool));
            pools.process = process;
        }
        if let Some((_, pool)) = pools.pools.iter().find(|(number, _)| *number == threads) {
            return Self { threads: Some(Arc::clone(pool)), go_on: None };
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("pleach-{number}"))
            .build();
        // If the system permits no threads, this one does the work.
        let Ok(pool) = pool else { return Self::current() };
        let pool = Arc::new(pool);
        pools.pools.push((threads, Arc::clone(&pool)));
        Self { threads: Some(pool), go_on: None }
    }

    /// Has a batch call `go_on` now and then, on the calling thread. If it returns false the batch ends with
    /// [`BatchError::Interrupted`].
    #[must_use]
    pub const fn asking(mut self, go_on: &'a dyn Fn() -> bool) -> Self {
        self.go_on = Some(go_on);
        self
    }

    /// Returns the number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.as_ref().map_or(1, |pool| pool.current_num_threads())
    }

    /// Returns the keys of a task of a batch.
    pub(crate) fn task_keys(&self, keys: usize) -> usize {
        let threads = self.threads.as_deref();
        threads.map_or(TASK, |pool| pleach_pool::task_queries(Some(pool), keys, TASK)).next_multiple_of(PIECE)
    }

    /// Runs `work`, which may use rayon, with these threads.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.threads {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Runs `work` for each task, and returns the sum of the results.
    pub(crate) fn sum<T: Send>(
        &self,
        tasks: impl IntoIterator<Item = T>,
        work: impl Fn(T) -> Result<usize> + Sync,
    ) -> Result<usize> {
        let mut tasks = tasks.into_iter();
        let mut sum = 0;
        loop {
            let round: Vec<T> = tasks.by_ref().take(ROUND * self.threads()).collect();
            if round.is_empty() {
                return Ok(sum);
            }
            sum += match &self.threads {
                Some(pool) => pleach_pool::sum(Some(pool), round, &work)?,
                None => round.into_iter().try_fold(0, |sum, task| work(task).map(|found| sum + found))?,
            };
            if self.go_on.is_some_and(|go_on| !go_on()) {
                return Err(BatchError::Interrupted);
            }
        }
    }
}

impl std::fmt::Debug for Pool<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} threads)", self.threads())
    }
}
