//! Reading of chunks while others are written.

use crate::error::BuildError;
use crate::observe::{Phase, Watch};
use crate::plan::Plan;
use crate::source::{self, Chunk, Source};
use std::time::{Duration, Instant};

/// Tuples of the first chunk. Later chunks grow while they are read quickly, so that cancellation is checked
/// often enough with a slow source.
const CHUNK_TUPLES_FIRST: usize = 1 << 14;
/// Maximum reading time of a chunk that is followed by a larger one.
const CHUNK_TIME: Duration = Duration::from_millis(10);

/// Reads chunks of a size that suits the source.
pub(crate) struct Reader<'a> {
    source: &'a mut dyn Source,
    watch: &'a Watch<'a>,
    /// Number of tuples to request at once.
    tuples: usize,
    plan: Plan,
    rows: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a mut dyn Source, watch: &'a Watch<'a>, plan: Plan) -> Self {
        Self { source, watch, tuples: CHUNK_TUPLES_FIRST.min(plan.chunk_tuples), plan, rows: 0 }
    }

    /// Fills `chunk` with the next tuples; leaves it empty at the end.
    pub(crate) fn read(&mut self, chunk: &mut Chunk) -> Result<(), BuildError> {
        self.watch.check()?;
        let start = Instant::now();
        source::next_chunk(self.source, chunk, self.tuples, &mut self.rows)?;
        if start.elapsed() < CHUNK_TIME {
            self.tuples = (self.tuples * 2).min(self.plan.chunk_tuples);
        }
        let (done, total) = self.source.progress();
        self.watch.progress(Phase::Read, done, total);
        Ok(())
    }
}
