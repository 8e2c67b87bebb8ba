//! Lists of pages (sections 4.3 and 6.1): the pool from which CTAs take pages, the final linking, and
//! conversions.

use super::columns::{PageList, Relation, View};
use super::sink::{Sink, scan, whole};
use super::{Column, RELATION_TEXT, Stages, refused, zeroed};
use pleach_gpu::internal::{Instance, Job, LaunchShape, SourceSpec, grid};
use pleach_gpu::{DeviceBuffer, GpuError, Stream};

pleach_gpu::kernel! {
    /// The paper's lists of pages.
    PAGES = SourceSpec {
        shared: &[RELATION_TEXT],
        numbers: |_| vec![
            ("BYTES_OF_PAPER_VIEW", size_of::<View>() as u64),
            ("BYTES_OF_PAPER_SINK", size_of::<Sink>() as u64),
            ("BYTES_OF_PAPER_CHAINS", size_of::<Chains>() as u64),
            ("BYTES_OF_PAPER_CONVERT", size_of::<Convert>() as u64),
        ],
        ..SourceSpec::new("relation_pages.cu", include_str!("../kernels/relation_pages.cu")).narrow()
    };
    /// Counts the pages of each block.
    paper_chains(counts: u64, pages: u64, chains: u32, page_tuples: u32);
    /// Notes the pages of each block in the directory.
    paper_directory(chains: Chains);
    /// Links all pages in order.
    paper_link(chains: Chains, pages: u64);
    /// Copies a column from pages.
    paper_to_dense(task: Convert);
    /// Copies a column to pages.
    paper_to_pages(task: Convert);
    /// Makes a directory of pages that are stored in order.
    paper_in_order(chains: Chains, pages: u64, tuples: u64);
}

/// Threads per block.
const THREADS: u32 = 256;

/// Arguments of linking chains of pages; the same as in relation_pages.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Chains {
    counts: u64,
    tuples_before: u64,
    pages_before: u64,
    first: u64,
    links: u64,
    directory: u64,
    starts: u64,
    chains: u32,
    page_tuples: u32,
}

/// Arguments of the conversions; the same as in relation_pages.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Convert {
    dense: u64,
    paged: u64,
    starts: u64,
    directory: u64,
    pages: u64,
    page_tuples: u32,
    bytes: u32,
}

/// Unused pages, and the chain of pages that each CTA took.
pub(super) struct Pool {
    pub(super) links: DeviceBuffer,
    pub(super) first: DeviceBuffer,
    pub(super) taken: DeviceBuffer,
    pub(super) pages: u32,
    pub(super) page_tuples: u32,
}

impl Pool {
    pub(super) fn new(
        job: &mut Job<'_>,
        pages: u32,
        page_tuples: u32,
        blocks: u32,
    ) -> Result<Self, GpuError> {
        let links = job.buffer(u64::from(pages) * 4)?;
        let first = job.buffer(u64::from(blocks) * 4)?;
        Ok(Self { links, first, taken: zeroed(job, 8)?, pages, page_tuples })
    }

    /// Links the chains of `chains` CTAs, with `counts` tuples each and `before` tuples before each, to one
    /// list.
    pub(super) fn link(
        self,
        job: &mut Job<'_>,
        key_bytes: u8,
        (counts, before): (&DeviceBuffer, &DeviceBuffer),
        chains: u32,
    ) -> Result<PageList, GpuError> {
        let (stream, instance) = (job.stream(), Instance::new(&PAGES, key_bytes, 0));
        let lengths = job.buffer(u64::from(chains) * 8)?;
        let pages_before = job.buffer(u64::from(chains) * 8 + 8)?;
        let shape = |entry, items| grid(stream.gpu(), instance, entry, THREADS, 0, items);
        let counted = shape("paper_chains", chains.into())?;
        // SAFETY: there is a count, a length and a place for each chain, and one place more; the job keeps
        // them.
        job.stage("link", || unsafe {
            let (counts, lengths_at) = (counts.address(), lengths.address());
            paper_chains(stream, instance, counted, &counts, &lengths_at, &chains, &self.page_tuples)?;
            scan(stream, key_bytes, &lengths, &pages_before, chains)
        })?;
        let pages = job.number(&pages_before, chains.into())?;
        let (directory, starts) = (job.buffer(pages * 4)?, job.buffer(pages * 8 + 8)?);
        let arguments = Chains {
            counts: counts.address(),
            tuples_before: before.address(),
            pages_before: pages_before.address(),
            first: self.first.address(),
            links: self.links.address(),
            directory: directory.address(),
            starts: starts.address(),
            chains,
            page_tuples: self.page_tuples,
        };
        let (noted, linked) = (shape("paper_directory", chains.into())?, shape("paper_link", pages)?);
        // SAFETY: the chains have the pages that their counts need, and the directory has room for all of
        // them.
        job.stage("link", || unsafe {
            paper_directory(stream, instance, noted, &arguments)?;
            paper_link(stream, instance, linked, &arguments, &pages)
        })?;
        Ok(PageList { directory, starts, links: self.links, pages, page_tuples: self.page_tuples })
    }
}

/// Copies each column; `to_pages` gives the direction.
fn convert(
    job: &mut Job<'_>,
    dense: &Relation,
    paged: (&Relation, &PageList),
    is_to_pages: bool,
) -> Result<(), GpuError> {
    let (paged, list) = paged;
    let (stream, instance) = (job.stream(), Instance::new(&PAGES, dense.key_bytes(), 0));
    let key = |relation: &Relation| Column { buffer: relation.keys().clone(), bytes: relation.key_bytes() };
    let pairs = std::iter::once((key(dense), key(paged)));
    let pairs: Vec<_> =
        pairs.chain(dense.columns().iter().cloned().zip(paged.columns().iter().cloned())).collect();
    let blocks = u32::try_from(list.pages.clamp(1, 1 << 30)).unwrap_or(1 << 30);
    let shape = LaunchShape { blocks, threads: THREADS, shared_bytes: 0 };
    job.stage("copy", || {
        for (dense, paged) in &pairs {
            let task = Convert {
                dense: dense.buffer.address(),
                paged: paged.buffer.address(),
                starts: list.starts.address(),
                directory: list.directory.address(),
                pages: list.pages,
                page_tuples: list.page_tuples,
                bytes: dense.bytes.into(),
            };
            // SAFETY: the columns have as many tuples as the list states; the caller and the job keep them.
            unsafe {
                match is_to_pages {
                    true => paper_to_pages(stream, instance, shape, &task)?,
                    false => paper_to_dense(stream, instance, shape, &task)?,
                }
            }
        }
        Ok(())
    })
}

fn widths(relation: &Relation) -> [u8; 2] {
    let width = |number: usize| relation.columns().get(number).map_or(0, |column| column.bytes);
    [width(0), width(1)]
}

/// Copies a list of pages to dense columns; a dense relation is returned as it is. O(tuples); blocks.
///
/// # Errors
/// [`GpuError::Memory`] if the columns do not fit, [`GpuError::Driver`] if a driver call fails.
pub fn to_dense(stream: &Stream, relation: &Relation) -> Result<(Relation, Stages), GpuError> {
    let Some(list) = relation.pages() else { return Ok((relation.clone(), Stages::default())) };
    let mut job = Job::new(stream);
    let (_, dense) = whole(&mut job, relation.key_bytes(), widths(relation), relation.tuples())?;
    convert(&mut job, &dense, (relation, list), false)?;
    Ok((dense, job.end()?))
}

/// Copies dense columns to a list of pages of that many tuples; a list of pages is returned as it is.
/// O(tuples); blocks.
///
/// # Errors
/// [`GpuError::Operator`] for pages without a tuple or more pages than 32 bits can count; as
/// [`to_dense`].
pub fn to_pages(
    stream: &Stream,
    relation: &Relation,
    page_tuples: u32,
) -> Result<(Relation, Stages), GpuError> {
    if relation.pages().is_some() {
        return Ok((relation.clone(), Stages::default()));
    }
    let tuples = relation.tuples();
    let pages = tuples.checked_div(page_tuples.into()).map(|_| tuples.div_ceil(page_tuples.into()));
    let Some(pages) = pages.filter(|&pages| pages < u32::MAX.into()) else {
        return Err(refused(format!("{tuples} tuples have no list of pages of {page_tuples} tuples")));
    };
    let mut job = Job::new(stream);
    let (directory, links) = (job.buffer(pages * 4)?, job.buffer(pages * 4)?);
    let starts = job.buffer(pages * 8 + 8)?;
    let key_bytes = relation.key_bytes();
    let (_, pool) = whole(&mut job, key_bytes, widths(relation), pages * u64::from(page_tuples))?;
    let instance = Instance::new(&PAGES, key_bytes, 0);
    let shape = grid(stream.gpu(), instance, "paper_in_order", THREADS, 0, pages + 1)?;
    let arguments = Chains {
        counts: 0,
        tuples_before: 0,
        pages_before: 0,
        first: 0,
        links: links.address(),
        directory: directory.address(),
        starts: starts.address(),
        chains: 0,
        page_tuples,
    };
    // SAFETY: there is a link and an entry for each page, and one start more; the job keeps them.
    job.stage("link", || unsafe { paper_in_order(stream, instance, shape, &arguments, &pages, &tuples) })?;
    let list = PageList { directory, starts, links, pages, page_tuples };
    convert(&mut job, relation, (&pool, &list), true)?;
    let paged = Relation::of(pool.keys().clone(), key_bytes, pool.columns().to_vec(), tuples, Some(list))?;
    Ok((paged, job.end()?))
}
