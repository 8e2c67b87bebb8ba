//! Output of operators: a temporary with a place for each CTA, whose gaps a gather closes, or pages of each
//! CTA's own.

use super::Column;
use super::columns::{PageList, Relation};
use super::unary::{STAGES, paper_gather, paper_scan};
use super::{pages, refused, zeroed};
use pleach_gpu::internal::{Instance, Job, LaunchShape};
use pleach_gpu::{DeviceBuffer, GpuError, Stream};

/// Threads per block that copies.
const COPIERS: u32 = 256;
/// Threads of the block that scans.
const SCANNERS: u32 = 1024;

/// Form of an operator's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Dense columns.
    Dense,
    /// A list of pages of that many tuples.
    Pages(u32),
}

/// Destination of the results; the same as in relation.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Sink {
    pub(super) keys: u64,
    pub(super) left: u64,
    pub(super) right: u64,
    pub(super) places: u64,
    pub(super) counts: u64,
    links: u64,
    first: u64,
    taken: u64,
    overflow: u64,
    pages: u32,
    page_tuples: u32,
    pub(super) left_bytes: u32,
    pub(super) right_bytes: u32,
}

/// Arguments of the gather; the same as in relation.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Gather {
    keys: u64,
    left: u64,
    right: u64,
    from: u64,
    to: u64,
    keys_to: u64,
    left_to: u64,
    right_to: u64,
    left_bytes: u32,
    right_bytes: u32,
}

/// Returns the bytes of a stage of that many tuples in shared memory, as `stage_at` lays it out.
pub(super) fn stage_bytes(capacity: u32, key_bytes: u8, widths: [u8; 2]) -> u32 {
    capacity * (u32::from(key_bytes) + u32::from(widths[0]) + u32::from(widths[1]))
}

/// Queues the prefix sums of `count` numbers, and the sum of all after them.
///
/// # Safety
/// The buffers must have `count` numbers of 64 bits, and one more; they must live until the work is done.
pub(super) unsafe fn scan(
    stream: &Stream,
    key_bytes: u8,
    counts: &DeviceBuffer,
    places: &DeviceBuffer,
    count: u32,
) -> Result<(), GpuError> {
    let shape = LaunchShape { blocks: 1, threads: SCANNERS, shared_bytes: 0 };
    let instance = Instance::new(&STAGES, key_bytes, 0);
    // SAFETY: the caller guarantees both buffers.
    unsafe { paper_scan(stream, instance, shape, &counts.address(), &places.address(), &count) }
}

/// Columns of results on the device, for a number of tuples: keys, then values of each width that is not 0.
struct Columns {
    keys: DeviceBuffer,
    values: [Option<DeviceBuffer>; 2],
}

/// Memory that CTAs write to.
pub(super) struct Target {
    columns: Columns,
    key_bytes: u8,
    widths: [u8; 2],
    blocks: u32,
    counts: DeviceBuffer,
    places: Option<DeviceBuffer>,
    offsets: DeviceBuffer,
    overflow: DeviceBuffer,
    pool: Option<pages::Pool>,
}

/// Result of writing to a target.
pub(super) enum Outcome {
    /// All results.
    Done(Relation),
    /// The results did not fit: their number, and the start of the results of each CTA.
    Overflow(u64, DeviceBuffer),
}

impl Columns {
    fn new(job: &mut Job<'_>, key_bytes: u8, widths: [u8; 2], tuples: u64) -> Result<Self, GpuError> {
        let width = u64::from(key_bytes) + u64::from(widths[0]) + u64::from(widths[1]);
        let needed = tuples.saturating_mul(width);
        let free = job.stream().gpu().left_bytes()?;
        if needed > free {
            return Err(GpuError::Memory { needed, free });
        }
        let mut value = |bytes: u8| (bytes > 0).then(|| job.buffer(tuples * u64::from(bytes))).transpose();
        let values = [value(widths[0])?, value(widths[1])?];
        Ok(Self { keys: job.buffer(tuples * u64::from(key_bytes))?, values })
    }

    fn addresses(&self) -> [u64; 3] {
        let address = |value: &Option<DeviceBuffer>| value.as_ref().map_or(0, DeviceBuffer::address);
        [self.keys.address(), address(&self.values[0]), address(&self.values[1])]
    }

    fn relation(
        self,
        key_bytes: u8,
        widths: [u8; 2],
        tuples: u64,
        pages: Option<PageList>,
    ) -> Result<Relation, GpuError> {
        let columns = self.values.into_iter().zip(widths);
        let columns = columns.filter_map(|(buffer, bytes)| Some(Column { buffer: buffer?, bytes })).collect();
        Relation::of(self.keys, key_bytes, columns, tuples, pages)
    }
}

/// Returns columns that an operator fills directly: addresses of keys, left and right values, and the
/// relation that they make.
pub(super) fn whole(
    job: &mut Job<'_>,
    key_bytes: u8,
    widths: [u8; 2],
    tuples: u64,
) -> Result<([u64; 3], Relation), GpuError> {
    let columns = Columns::new(job, key_bytes, widths, tuples)?;
    Ok((columns.addresses(), columns.relation(key_bytes, widths, tuples, None)?))
}

impl Target {
    /// Allocates room for the output of `blocks` CTAs: in a temporary from `places` on, for `expected` tuples
    /// in all, or in pages.
    pub(super) fn new(
        job: &mut Job<'_>,
        form: Form,
        (key_bytes, widths): (u8, [u8; 2]),
        (blocks, expected): (u32, u64),
        places: DeviceBuffer,
    ) -> Result<Self, GpuError> {
        let counts = job.buffer(u64::from(blocks) * 8)?;
        let offsets = job.buffer(u64::from(blocks) * 8 + 8)?;
        let overflow = zeroed(job, 8)?;
        let (pool, tuples, places) = match form {
            Form::Dense => (None, expected, Some(places)),
            Form::Pages(0) => return Err(refused("a page has at least one tuple")),
            Form::Pages(page_tuples) => {
                let pages = expected / u64::from(page_tuples) + u64::from(blocks);
                let pages = u32::try_from(pages)
                    .ok()
                    .filter(|&pages| pages < u32::MAX)
                    .ok_or_else(|| refused(format!("{pages} pages: take larger ones")))?;
                let pool = pages::Pool::new(job, pages, page_tuples, blocks)?;
                (Some(pool), u64::from(pages) * u64::from(page_tuples), None)
            }
        };
        let columns = Columns::new(job, key_bytes, widths, tuples)?;
        Ok(Self { columns, key_bytes, widths, blocks, counts, places, offsets, overflow, pool })
    }

    /// Returns the target in the form that kernels use.
    pub(super) fn sink(&self) -> Sink {
        let [keys, left, right] = self.columns.addresses();
        let pool = self.pool.as_ref();
        Sink {
            keys,
            left,
            right,
            places: self.places.as_ref().map_or(0, DeviceBuffer::address),
            counts: self.counts.address(),
            links: pool.map_or(0, |pool| pool.links.address()),
            first: pool.map_or(0, |pool| pool.first.address()),
            taken: pool.map_or(0, |pool| pool.taken.address()),
            overflow: self.overflow.address(),
            pages: pool.map_or(0, |pool| pool.pages),
            page_tuples: pool.map_or(0, |pool| pool.page_tuples),
            left_bytes: self.widths[0].into(),
            right_bytes: self.widths[1].into(),
        }
    }

    /// Runs the last stages: a scan of the counts, then a gather unless all places are full, or the linking
    /// of pages.
    pub(super) fn end(self, job: &mut Job<'_>, is_exact: bool) -> Result<Outcome, GpuError> {
        let (blocks, stream) = (self.blocks, job.stream());
        // SAFETY: there is a count for each block, and one place more; the job keeps both.
        job.stage("scan", || unsafe { scan(stream, self.key_bytes, &self.counts, &self.offsets, blocks) })?;
        let tuples = job.number(&self.offsets, blocks.into())?;
        if job.number(&self.overflow, 0)? != 0 {
            return Ok(Outcome::Overflow(tuples, self.offsets));
        }
        let (key_bytes, widths) = (self.key_bytes, self.widths);
        if let Some(pool) = self.pool {
            let list = pool.link(job, key_bytes, (&self.counts, &self.offsets), blocks)?;
            return Ok(Outcome::Done(self.columns.relation(key_bytes, widths, tuples, Some(list))?));
        }
        if is_exact {
            return Ok(Outcome::Done(self.columns.relation(key_bytes, widths, tuples, None)?));
        }
        let to = Columns::new(job, key_bytes, widths, tuples)?;
        let ([keys, left, right], [keys_to, left_to, right_to]) = (self.columns.addresses(), to.addresses());
        let gather = Gather {
            keys,
            left,
            right,
            from: self.places.as_ref().map_or(0, DeviceBuffer::address),
            to: self.offsets.address(),
            keys_to,
            left_to,
            right_to,
            left_bytes: widths[0].into(),
            right_bytes: widths[1].into(),
        };
        let shape = LaunchShape { blocks, threads: COPIERS, shared_bytes: 0 };
        // SAFETY: each block wrote as many tuples from its place on as its count states; the job keeps all of
        // it.
        job.stage("gather", || unsafe {
            paper_gather(stream, Instance::new(&STAGES, key_bytes, 0), shape, &gather)
        })?;
        Ok(Outcome::Done(to.relation(key_bytes, widths, tuples, None)?))
    }
}
