//! SELECT (Figure 5), PROJECT (Figure 3) and PRODUCT (Figure 4).

use super::columns::{Relation, View};
use super::merge::Merged;
use super::partition::{Bounds, Cuts};
use super::sink::Gather;
use super::sink::{Form, Outcome, Sink, Target, stage_bytes, whole};
use super::{RELATION_TEXT, STREAM_TEXT, Stages, numbers, refused};
use pleach_gpu::internal::{Instance, Job, LaunchShape, SourceSpec, grid};
use pleach_gpu::{GpuError, Stream};

pleach_gpu::kernel! {
    /// Stages of the paper on relational algebra.
    STAGES = SourceSpec {
        shared: &[RELATION_TEXT, STREAM_TEXT],
        numbers: |_| numbers(&[
            ("BYTES_OF_PAPER_GATHER", size_of::<Gather>() as u64),
            ("BYTES_OF_PAPER_PARTITION", size_of::<Cuts>() as u64),
            ("BYTES_OF_PAPER_BOUNDS", size_of::<Bounds>() as u64),
            ("BYTES_OF_PAPER_SELECT", size_of::<Select>() as u64),
            ("BYTES_OF_PAPER_PROJECT", size_of::<Project>() as u64),
            ("BYTES_OF_PAPER_PRODUCT", size_of::<Product>() as u64),
        ]),
        ..SourceSpec::new("relation.cu", include_str!("../kernels/relation.cu")).narrow()
    };
    /// Cuts both inputs at pivots.
    paper_partition(cuts: Cuts);
    /// Discards tuples without a partner in each partition, and gives the expected number of results.
    paper_bounds(bounds: Bounds);
    /// Computes the sum of the counts before each, and of all.
    paper_scan(counts: u64, places: u64, count: u32);
    /// Closes the gaps between the results of blocks.
    paper_gather(gather: Gather);
    /// Compacts the tuples that a predicate selects.
    paper_select(select: Select);
    /// Shifts and drops fields.
    paper_project(project: Project);
    /// Makes all pairs of tuples.
    paper_product(product: Product);
}

/// Threads per block.
const THREADS: u32 = 256;
/// Tuples per thread of a tile: SELECTED in relation.cu.
const SELECTED: u32 = 4;
/// Tuples of both sides that a block buffers: PRODUCT_LEFTS and PRODUCT_RIGHTS in relation.cu.
const PRODUCT_BUFFERED: [u64; 2] = [16, 512];

/// Arguments of SELECT; the same as in relation.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Select {
    from: View,
    sink: Sink,
    low: u64,
    high: u64,
    mask: u64,
    bits: u64,
    share: u64,
}

/// Arguments of PROJECT; the same as in relation.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Project {
    from: View,
    keys: u64,
    values: u64,
    value_mask: u64,
    key_shift: u32,
    value_shift: u32,
    value_bytes: u32,
    unused: u32,
}

/// Arguments of PRODUCT; the same as in relation.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Product {
    left: View,
    right: View,
    keys: u64,
    left_to: u64,
    right_to: u64,
    left_bytes: u32,
    right_bytes: u32,
    combine: u32,
    unused: u32,
}

/// Test of a key: it is from `low` to `high`, both included, and its bits in `mask` are `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Smallest key.
    pub low: u64,
    /// Largest key.
    pub high: u64,
    /// Bits that are compared.
    pub mask: u64,
    /// Values of these bits.
    pub bits: u64,
}

/// Parts of each tuple that a projection keeps. Keys stay in order, so nothing is sorted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Number of low bits of the key that are dropped, fewer than it has.
    pub key_shift: u32,
    /// True if values are kept.
    pub has_values: bool,
    /// Number of low bits of the value that are dropped, below 64.
    pub value_shift: u32,
    /// Bits that are kept of the rest of the value.
    pub value_mask: u64,
}

/// Values that a PRODUCT makes from two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Both values, one column each.
    Both,
    /// The sum of both values, modulo 2 to the bits of a value.
    Sum,
}

/// Selects the tuples that satisfy a predicate. `blocks` CTAs have a share each. Times: `compact`, `scan`,
/// `gather` or `link`. Reads each tuple once and copies selected tuples twice, or once for pages; blocks.
///
/// # Errors
/// [`GpuError::Operator`] without a CTA or for more than 2^31 tuples; [`GpuError::Memory`] if the
/// results do not fit, [`GpuError::Driver`] if a driver call fails.
pub fn select(
    stream: &Stream,
    from: &Relation,
    predicate: &Predicate,
    blocks: u32,
    form: Form,
) -> Result<Merged, GpuError> {
    from.check()?;
    if blocks == 0 {
        return Err(refused("SELECT wants one CTA or more"));
    }
    let share = from.tuples().div_ceil(blocks.into());
    let places: Vec<u8> =
        (0..=u64::from(blocks)).flat_map(|block| (block * share).min(from.tuples()).to_le_bytes()).collect();
    let mut job = Job::new(stream);
    let places_at = job.buffer(places.len() as u64)?;
    places_at.copy_from_host(stream, &places)?;
    let (key_bytes, widths) = (from.key_bytes(), [from.value_bytes(), 0]);
    let target = Target::new(&mut job, form, (key_bytes, widths), (blocks, from.tuples()), places_at)?;
    let select = Select {
        from: from.view(),
        sink: target.sink(),
        low: predicate.low,
        high: predicate.high,
        mask: predicate.mask,
        bits: predicate.bits,
        share,
    };
    let shared_bytes = stage_bytes(THREADS * SELECTED, key_bytes, widths);
    let shape = LaunchShape { blocks, threads: THREADS, shared_bytes };
    // SAFETY: the target has a place for every tuple; the job keeps it, and the caller the relation.
    job.stage("compact", || unsafe {
        paper_select(stream, Instance::new(&STAGES, key_bytes, 0), shape, &select)
    })?;
    match target.end(&mut job, false)? {
        Outcome::Done(relation) => {
            let counted = super::Counted::default();
            Ok(Merged { relation, is_retried: false, counted, stages: job.end()? })
        }
        Outcome::Overflow(..) => Err(refused("more tuples are selected than there are: a defect")),
    }
}

/// Projects each tuple; the result is dense. One pass; blocks.
///
/// # Errors
/// [`GpuError::Operator`] for shifts that leave nothing or for more than 2^31 tuples;
/// [`GpuError::Memory`] if the results do not fit, [`GpuError::Driver`] if a driver call fails.
pub fn project(
    stream: &Stream,
    from: &Relation,
    projection: &Projection,
) -> Result<(Relation, Stages), GpuError> {
    from.check()?;
    if projection.key_shift >= u32::from(from.key_bytes()) * 8 || projection.value_shift >= 64 {
        return Err(refused("a projection leaves a bit or more of key and value"));
    }
    let mut job = Job::new(stream);
    let width = if projection.has_values { from.value_bytes() } else { 0 };
    let key_bytes = from.key_bytes();
    let ([keys, values, _], relation) = whole(&mut job, key_bytes, [width, 0], from.tuples())?;
    let project = Project {
        from: from.view(),
        keys,
        values,
        value_mask: projection.value_mask,
        key_shift: projection.key_shift,
        value_shift: projection.value_shift,
        value_bytes: width.into(),
        unused: 0,
    };
    let instance = Instance::new(&STAGES, key_bytes, 0);
    let shape = grid(stream.gpu(), instance, "paper_project", THREADS, 0, from.tuples())?;
    // SAFETY: the columns have the same number of tuples; the job keeps them, and the caller the relation.
    job.stage("project", || unsafe { paper_project(stream, instance, shape, &project) })?;
    Ok((relation, job.end()?))
}

/// Makes all pairs of tuples, by left rank, then by right rank, with the left keys; the result is dense. One
/// pass; blocks.
///
/// # Errors
/// [`GpuError::Operator`] for sums of values of two widths or without values, or for more than 2^31
/// tuples on a side; [`GpuError::Memory`] if the product does not fit, [`GpuError::Driver`] if a driver call
/// fails.
pub fn product(
    stream: &Stream,
    (left, right): (&Relation, &Relation),
    combine: Combine,
) -> Result<(Relation, Stages), GpuError> {
    left.check()?;
    right.check()?;
    let widths = match combine {
        Combine::Both => [left.value_bytes(), right.value_bytes()],
        Combine::Sum if left.value_bytes() != right.value_bytes() || left.value_bytes() == 0 => {
            return Err(refused("sums are of values of one width"));
        }
        Combine::Sum => [left.value_bytes(), 0],
    };
    let mut job = Job::new(stream);
    let key_bytes = left.key_bytes();
    let tuples = left.tuples() * right.tuples();
    let ([keys, left_to, right_to], relation) = whole(&mut job, key_bytes, widths, tuples)?;
    let product = Product {
        left: left.view(),
        right: right.view(),
        keys,
        left_to,
        right_to,
        left_bytes: widths[0].into(),
        right_bytes: widths[1].into(),
        combine: combine as u32,
        unused: 0,
    };
    let instance = Instance::new(&STAGES, key_bytes, 0);
    let [lefts, rights] = PRODUCT_BUFFERED;
    let tasks = left.tuples().div_ceil(lefts) * right.tuples().div_ceil(rights);
    let items = tasks.saturating_mul(THREADS.into());
    let shape = grid(stream.gpu(), instance, "paper_product", THREADS, 0, items)?;
    // SAFETY: the columns have as many tuples as there are pairs; the job keeps them, and the caller the
    // relations.
    job.stage("product", || unsafe { paper_product(stream, instance, shape, &product) })?;
    Ok((relation, job.end()?))
}
