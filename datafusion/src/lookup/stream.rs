//! The join as a stream: each batch of the probe is cut into steps, and a step gives one batch or more.

use super::files::Opened;
use super::step::{Shared, Step};
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, Time,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt, stream};
use std::sync::Arc;

/// Bytes that a step takes for each row of the probe, beside its columns: ranks, counts and numbers, each of them
/// twice while they are found.
const STEP_ROW_BYTES: usize = 64;

/// Rows of a step for each file of a set, so that a file which is asked has something to do.
const FILE_ROWS: usize = 64;
/// Rows of a step, unless batches of the probe have more.
const STEP_ROWS_MAX: usize = 1 << 17;

/// What a stream counts.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    baseline: BaselineMetrics,
    keys: Count,
    matched: Count,
    files_opened: Count,
    look_up_time: Time,
    gather_time: Time,
}

impl Metrics {
    pub(super) fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            baseline: BaselineMetrics::new(set, partition),
            keys: MetricBuilder::new(set).counter("keys", partition),
            matched: MetricBuilder::new(set).counter("matched", partition),
            files_opened: MetricBuilder::new(set).counter("files_opened", partition),
            look_up_time: MetricBuilder::new(set).subset_time("look_up_time", partition),
            gather_time: MetricBuilder::new(set).subset_time("gather_time", partition),
        }
    }
}

/// The state of a stream.
struct State {
    shared: Arc<Shared>,
    probe: SendableRecordBatchStream,
    /// True if the probe has no more batches.
    is_ended: bool,
    /// Rows that are not in a step yet.
    waiting: Option<RecordBatch>,
    step: Option<Step>,
    opened: Opened,
    /// Rows that may still be returned; `None` for all.
    left: Option<usize>,
    memory: MemoryReservation,
    metrics: Metrics,
}

/// Makes the stream of one partition.
pub(super) fn joined(
    shared: Arc<Shared>,
    probe: SendableRecordBatchStream,
    fetch: Option<usize>,
    memory: MemoryReservation,
    metrics: Metrics,
) -> SendableRecordBatchStream {
    let schema = Arc::clone(&shared.schema);
    let opened = Opened::default();
    let is_ended = false;
    let state =
        State { shared, probe, is_ended, waiting: None, step: None, opened, left: fetch, memory, metrics };
    let batches = stream::try_unfold(state, |mut state| async move {
        let batch = state.next().await?;
        Ok::<_, DataFusionError>(batch.map(|batch| (batch, state)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches.into_stream()))
}

impl State {
    /// Returns the next batch that has rows.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.left != Some(0) {
            if let Some(batch) = self.next_of_step()? {
                if batch.num_rows() > 0 {
                    return Ok(Some(self.limited(batch)));
                }
                continue;
            }
            if !self.begin().await? {
                break;
            }
        }
        (self.waiting, self.step) = (None, None);
        self.memory.free();
        self.metrics.baseline.done();
        Ok(None)
    }

    fn limited(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = self.left.map_or(batch.num_rows(), |left| left.min(batch.num_rows()));
        if let Some(left) = &mut self.left {
            *left -= rows;
        }
        self.metrics.baseline.output_rows().add(rows);
        if rows < batch.num_rows() { batch.slice(0, rows) } else { batch }
    }

    fn next_of_step(&mut self) -> Result<Option<RecordBatch>> {
        let Some(step) = &mut self.step else { return Ok(None) };
        let (_all, _own) =
            (self.metrics.baseline.elapsed_compute().timer(), self.metrics.gather_time.timer());
        let batch = step.next(&self.shared, &self.opened)?;
        if batch.is_none() {
            self.step = None;
        }
        Ok(batch)
    }

    /// Begins the next step; returns false if the probe has ended.
    async fn begin(&mut self) -> Result<bool> {
        let Some(rows) = self.rows().await? else { return Ok(false) };
        let shared = Arc::clone(&self.shared);
        let timer = self.metrics.baseline.elapsed_compute().timer();
        let own = self.metrics.look_up_time.timer();
        let sought = shared.seek(&rows)?;
        let missing = self.opened.missing(&sought.files());
        drop((own, timer));
        if !missing.is_empty() {
            self.metrics.files_opened.add(missing.len());
            let files = shared.files.clone();
            // Opening may wait for a disk or a network, which no thread of the engine should do.
            let opening = SpawnedTask::spawn_blocking(move || files.open(missing));
            self.opened
                .add(opening.join().await.map_err(|error| DataFusionError::External(Box::new(error)))??);
        }
        let _all = self.metrics.baseline.elapsed_compute().timer();
        let _own = self.metrics.look_up_time.timer();
        self.metrics.keys.add(rows.num_rows());
        let step = Step::new(&shared, &self.opened, rows, &sought)?;
        self.metrics.matched.add(step.hits());
        self.step = Some(step);
        Ok(true)
    }

    /// Returns the rows of a step: of one batch, or of several if the set has many files.
    async fn rows(&mut self) -> Result<Option<RecordBatch>> {
        let most = match self.left {
            None => self.shared.batch_rows.max(STEP_ROWS_MAX.min(FILE_ROWS * self.shared.files.len())),
            // The first rows may be enough.
            Some(_) => self.shared.batch_rows,
        };
        loop {
            if let Some(waiting) = self.waiting.take().filter(|waiting| waiting.num_rows() > 0) {
                let rows = waiting.num_rows().min(most);
                self.waiting = Some(waiting.slice(rows, waiting.num_rows() - rows));
                return Ok(Some(waiting.slice(0, rows)));
            }
            let (mut batches, mut rows, mut bytes) = (Vec::new(), 0, 0);
            while rows < most && !self.is_ended {
                match self.probe.next().await.transpose()? {
                    Some(batch) => {
                        rows += batch.num_rows();
                        bytes += own_bytes(&batch);
                        batches.push(batch);
                        // Several are copied into one.
                        let times = if batches.len() > 1 { 2 } else { 1 };
                        self.memory.try_resize(times * bytes + rows.min(most) * STEP_ROW_BYTES)?;
                    }
                    None => self.is_ended = true,
                }
            }
            let Some(first) = batches.first() else { return Ok(None) };
            self.waiting = Some(match &batches[..] {
                [_] => first.clone(),
                several => concat_batches(&first.schema(), several)?,
            });
        }
    }
}

/// Returns the bytes of the rows of a batch, which may be a part of larger buffers.
fn own_bytes(batch: &RecordBatch) -> usize {
    let bytes = |array: &ArrayRef| array.to_data().get_slice_memory_size().unwrap_or_default();
    batch.columns().iter().map(bytes).sum()
}
