//! Record batches on request, made by a thread.

use super::job::Job;
use crate::error::{BatchError, Result};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pleach_builder::{Observer, Phase};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Record batches that are ready before they are asked for.
const AHEAD: usize = 2;

/// The answer of an operator as a stream of record batches. Dropping it stops the thread that makes them.
#[derive(Debug)]
pub struct Answers {
    schema: SchemaRef,
    /// `None` when the stream was dropped.
    batches: Option<Receiver<Result<RecordBatch>>>,
    worker: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

/// Stops an operator when nobody wants its answer any more.
struct Stop(Arc<AtomicBool>);

impl Observer for Stop {
    fn progress(&self, _: Phase, _: u64, _: Option<u64>) {}
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Job {
    /// Returns the answer as a stream of record batches, which a thread makes on request.
    ///
    /// # Errors
    /// Those of [`Job::build`] that show before the first tuple; others end the stream.
    pub fn stream(self) -> Result<Answers> {
        Answers::start(self)
    }
}

impl Answers {
    fn start(job: Job) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (send, batches) = sync_channel(AHEAD);
        let (begin, begun) = sync_channel(1);
        let observer = Stop(Arc::clone(&stop));
        let worker = std::thread::Builder::new().name("pleach-answer".to_owned());
        let worker = worker.spawn(move || make(&job, &observer, &begin, &send));
        let worker = Some(worker.map_err(|_| BatchError::Threads)?);
        // A job that ends before its schema says why in the stream.
        let Ok(schema) = begun.recv() else {
            let failed = batches.recv().map_or(Err(BatchError::Interrupted), |first| first.map(drop));
            return Err(failed.err().unwrap_or(BatchError::Interrupted));
        };
        Ok(Self { schema, batches: Some(batches), worker, stop })
    }
}

fn make(job: &Job, observer: &Stop, begin: &SyncSender<SchemaRef>, send: &SyncSender<Result<RecordBatch>>) {
    let begun = |schema: &SchemaRef| {
        // An error means that nobody waits.
        let _ = begin.send(Arc::clone(schema));
    };
    if let Err(error) = job.each(observer, begun, |batch| send.send(Ok(batch)).is_ok()) {
        let _ = send.send(Err(error));
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.batches = None;
        if let Some(worker) = self.worker.take() {
            // Nobody reads on, so that a panic of the thread is of no account.
            let _ = worker.join();
        }
    }
}

impl Iterator for Answers {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Ok(batch) = self.batches.as_ref()?.recv() {
            return Some(batch.map_err(|error| ArrowError::ExternalError(Box::new(error))));
        }
        // The answer is whole, unless its thread stopped before.
        self.batches = None;
        let is_whole = self.worker.take().is_none_or(|worker| worker.join().is_ok());
        (!is_whole)
            .then(|| Err(ArrowError::ComputeError("the thread that answers has stopped: try again".into())))
    }
}

impl RecordBatchReader for Answers {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Schema;

    fn ended(work: fn()) -> Option<std::result::Result<RecordBatch, ArrowError>> {
        let (_, batches) = sync_channel(1);
        let worker = Some(std::thread::spawn(work));
        let stop = Arc::new(AtomicBool::new(false));
        let mut answers = Answers { schema: Arc::new(Schema::empty()), batches: Some(batches), worker, stop };
        let first = answers.next();
        assert!(answers.next().is_none(), "it ends");
        first
    }

    #[test]
    fn a_thread_that_stops_is_not_the_end() {
        assert!(ended(|| ()).is_none());
        assert!(ended(|| panic!("a test of a panic")).is_some_and(|batch| batch.is_err()));
    }
}
