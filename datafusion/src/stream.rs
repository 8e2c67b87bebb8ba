//! The rows of one partition of a scan.

use crate::error::Result;
use crate::filter::Conditions;
use crate::keys::KeySet;
use crate::pieces::{Piece, Pieces};
use crate::read;
use crate::source::{OpenFile, Source};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions, UInt64Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::RecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{DynamicFilterTracker, DynamicFilterTracking};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::Stream;
use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Numbers of what a partition did.
#[derive(Debug)]
pub(crate) struct Metrics {
    baseline: BaselineMetrics,
    files_opened: Count,
    files_skipped: Count,
    keys_looked_up: Count,
    filter_updates: Count,
}

impl Metrics {
    pub(crate) fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name: &'static str| MetricBuilder::new(set).counter(name, partition);
        Self {
            baseline: BaselineMetrics::new(set, partition),
            files_opened: counter("files_opened"),
            files_skipped: counter("files_skipped"),
            keys_looked_up: counter("keys_looked_up"),
            filter_updates: counter("filter_updates"),
        }
    }
}

/// What a partition reads.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) source: Source,
    pub(crate) schema: SchemaRef,
    pub(crate) projection: Vec<usize>,
    pub(crate) pieces: Pieces,
    pub(crate) keys: KeySet,
    /// Filters that may change until the last batch, over the rows of the scan.
    pub(crate) dynamic: Vec<Arc<dyn PhysicalExpr>>,
    /// Place of the first key column among those of the rows.
    pub(crate) key: Option<usize>,
    pub(crate) batch_rows: usize,
    pub(crate) fetch: Option<usize>,
    /// Rows come in descending order.
    pub(crate) is_reversed: bool,
}

/// The rows of one partition. A batch is read when it is asked for; nothing is read ahead.
pub(crate) struct ScanStream {
    task: Task,
    metrics: Metrics,
    pieces: VecDeque<Piece>,
    current: Option<Current>,
    /// Keys that the static and the dynamic filters leave.
    keys: KeySet,
    /// Filters that can still change; `None` before the first batch.
    watched: Option<Vec<DynamicFilterTracker>>,
    rows_left: u64,
    is_ended: bool,
}

/// The file that is read.
struct Current {
    file: OpenFile,
    ranges: VecDeque<Range<u64>>,
}

impl ScanStream {
    pub(crate) fn new(mut task: Task, metrics: Metrics) -> Self {
        let pieces = std::mem::take(&mut task.pieces).into();
        let rows_left = task.fetch.map_or(u64::MAX, |rows| rows as u64);
        let keys = task.keys.clone();
        Self { task, metrics, pieces, current: None, keys, watched: None, rows_left, is_ended: false }
    }

    /// Reads the dynamic filters as they are now, if they have changed. It does not wait for them.
    fn update(&mut self) -> EngineResult<()> {
        let is_changed = match &mut self.watched {
            None => {
                let watched = self.task.dynamic.iter().filter_map(|filter| {
                    match DynamicFilterTracking::classify(filter) {
                        DynamicFilterTracking::Watching(tracker) => Some(tracker),
                        DynamicFilterTracking::Static | DynamicFilterTracking::AllComplete => None,
                    }
                });
                self.watched = Some(watched.collect());
                !self.task.dynamic.is_empty()
            }
            // All of them are asked, for each remembers what it has told.
            Some(watched) => {
                watched.iter_mut().filter_map(|filter| filter.changed().then_some(())).count() > 0
            }
        };
        let Some(column) = self.task.key.filter(|_| is_changed) else { return Ok(()) };
        let conditions = Conditions::new(self.task.source.literals(), column);
        let mut keys = self.task.keys.clone();
        for filter in &self.task.dynamic {
            keys = keys.and(&conditions.of(filter)?.keys);
        }
        if keys == self.keys {
            return Ok(());
        }
        self.metrics.filter_updates.add(1);
        self.keys = keys;
        if let Some(current) = &mut self.current
            && let (Some(first), Some(last)) = (current.ranges.front(), current.ranges.back())
        {
            let left = current.file.ranks(&self.keys, first.start..last.end)?;
            // What was left out before stays out.
            current.ranges = both(&current.ranges, &left);
            self.metrics.keys_looked_up.add(self.keys.counts().0);
        }
        Ok(())
    }

    /// Opens the next file that can have rows; false if there is none.
    fn open_next(&mut self) -> Result<bool> {
        let is_reversed = self.task.is_reversed;
        let mut next = || if is_reversed { self.pieces.pop_back() } else { self.pieces.pop_front() };
        while let Some(piece) = next() {
            let Some((min, max)) = self.task.source.ends(piece.file) else { continue };
            let meeting = self.keys.meeting(min, max);
            if meeting.is_empty() {
                self.metrics.files_skipped.add(1);
                continue;
            }
            let keys = KeySet::of(meeting.to_vec());
            let file = self.task.source.file(piece.file)?;
            self.metrics.files_opened.add(1);
            self.metrics.keys_looked_up.add(keys.counts().0);
            let ranges: VecDeque<_> =
                if self.task.source.ends(piece.file).is_some_and(|(min, max)| keys.covers(min, max)) {
                    VecDeque::from([piece.ranks])
                } else {
                    file.ranks(&keys, piece.ranks)?.into()
                };
            if !ranges.is_empty() {
                self.current = Some(Current { file, ranges });
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn next_batch(&mut self) -> EngineResult<Option<RecordBatch>> {
        if self.rows_left == 0 {
            return Ok(None);
        }
        self.update()?;
        loop {
            let Some(current) = &mut self.current else {
                if !self.open_next()? {
                    return Ok(None);
                }
                continue;
            };
            let most = self.rows_left.min(self.task.batch_rows.max(1) as u64);
            let ranges = match self.task.is_reversed {
                false => take(&mut current.ranges, most),
                true => take_back(&mut current.ranges, most),
            };
            if ranges.is_empty() {
                self.current = None;
                continue;
            }
            let rows: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            self.rows_left -= rows;
            let batch = read(&current.file, &ranges, rows as usize, &self.task)?;
            return Ok(Some(batch));
        }
    }
}

/// Cuts off ranges of at most so many rows.
fn take(ranges: &mut VecDeque<Range<u64>>, most: u64) -> Vec<Range<u64>> {
    let (mut taken, mut rows) = (Vec::new(), 0);
    while rows < most
        && let Some(range) = ranges.front_mut()
    {
        let end = range.end.min(range.start + (most - rows));
        rows += end - range.start;
        taken.push(range.start..end);
        range.start = end;
        if range.is_empty() {
            ranges.pop_front();
        }
    }
    taken
}

/// Cuts off ranges of at most so many rows at the end, and returns them in ascending order.
fn take_back(ranges: &mut VecDeque<Range<u64>>, most: u64) -> Vec<Range<u64>> {
    let (mut taken, mut rows) = (Vec::new(), 0);
    while rows < most
        && let Some(range) = ranges.back_mut()
    {
        let start = range.end - (range.end - range.start).min(most - rows);
        rows += range.end - start;
        taken.push(start..range.end);
        range.end = start;
        if range.is_empty() {
            ranges.pop_back();
        }
    }
    taken.reverse();
    taken
}

/// Returns what two lists of ascending ranges have in common.
fn both(one: &VecDeque<Range<u64>>, two: &[Range<u64>]) -> VecDeque<Range<u64>> {
    let (mut left, mut right) = (one.iter().peekable(), two.iter().peekable());
    let mut common = VecDeque::new();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let range = a.start.max(b.start)..a.end.min(b.end);
        if a.end <= b.end {
            left.next();
        } else {
            right.next();
        }
        if !range.is_empty() {
            common.push_back(range);
        }
    }
    common
}

/// Reads the tuples of some ranges as a batch.
fn read(file: &OpenFile, ranges: &[Range<u64>], rows: usize, task: &Task) -> EngineResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let arrays = read::columns(file, ranges, rows, task.source.columns(), &task.projection)?;
    let batch = RecordBatch::try_new_with_options(Arc::clone(&task.schema), arrays, &options)?;
    if !task.is_reversed || batch.num_columns() == 0 {
        return Ok(batch);
    }
    let backwards = UInt64Array::from_iter_values((0..rows as u64).rev());
    take_record_batch(&batch, &backwards).map_err(DataFusionError::from)
}

impl Stream for ScanStream {
    type Item = EngineResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_ended {
            return Poll::Ready(None);
        }
        let timer = self.metrics.baseline.elapsed_compute().clone();
        let started = timer.timer();
        let batch = self.next_batch();
        drop(started);
        self.is_ended = !matches!(batch, Ok(Some(_)));
        self.metrics.baseline.record_poll(Poll::Ready(batch.transpose()))
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.task.schema)
    }
}
