//! A single CTA-join (Table 3): two blocks in shared memory, and the cycles of a CTA.

use super::columns::Relation;
use super::merge::{Merge, table_entries};
use super::{CtaJoin, RELATION_TEXT, STREAM_TEXT, numbers, refused};
use pleach_gpu::internal::{Job, LaunchShape, SourceSpec};
use pleach_gpu::{GpuError, Stream};

pleach_gpu::kernel! {
    /// The paper's CTA-joins, and the operators made of them.
    JOIN = SourceSpec {
        shared: &[RELATION_TEXT, STREAM_TEXT],
        option_name: Some("CTA_JOIN"),
        options: &[0, 1, 2, 3, 4],
        numbers: |_| numbers(&[("BYTES_OF_PAPER_CTA_JOIN", size_of::<Task>() as u64)]),
        ..SourceSpec::new("relation_join.cu", include_str!("../kernels/relation_join.cu")).narrow()
    };
    /// JOIN, INTERSECTION or DIFFERENCE of each partition.
    paper_merge(merge: Merge);
    /// A single CTA-join, timed.
    paper_cta_join(task: Task);
}

/// Arguments of the CTA-join; the same as CtaJoin in relation_join.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Task {
    left: u64,
    right: u64,
    results: u64,
    cycles: u64,
    tuples: u32,
    entries: u32,
}

/// Cycles of a CTA for a join of two blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtaCycles {
    /// Number of results.
    pub outputs: u64,
    /// Cycles of finding the tuples with equal keys.
    pub join: u64,
    /// Cycles of the prefix sum of the counts.
    pub scan: u64,
    /// Cycles of compacting the results in shared memory.
    pub compact: u64,
}

/// Joins the same two blocks in `blocks` CTAs at a time. Returns the cycles of each, and the keys of the
/// results, at most as many as a block has tuples, as bytes in memory. Blocks.
///
/// # Errors
/// [`GpuError::Operator`] unless both are dense, of one width and length, and of at most a thread's
/// tuples for each thread; [`GpuError::Driver`] if a driver call fails.
pub fn cta_join(
    stream: &Stream,
    cta_join: CtaJoin,
    (left, right): (&Relation, &Relation),
    threads: u32,
    blocks: u32,
) -> Result<(Vec<CtaCycles>, Vec<u8>), GpuError> {
    let (tuples, key_bytes) = (left.tuples(), left.key_bytes());
    let has_shape = (32..=512).contains(&threads) && threads.is_power_of_two() && blocks > 0;
    let are_alike = tuples == right.tuples() && key_bytes == right.key_bytes();
    let are_dense = left.pages().is_none() && right.pages().is_none();
    if !has_shape
        || !are_alike
        || !are_dense
        || !(1..=u64::from(threads * cta_join.blocking())).contains(&tuples)
    {
        return Err(refused(format!(
            "CTA-join {} of {tuples} tuples by {threads} threads: ask for two dense blocks of up to {} tuples a thread",
            cta_join.name(),
            cta_join.blocking()
        )));
    }
    let mut job = Job::new(stream);
    let tuples = tuples as u32;
    let results = job.buffer(u64::from(tuples) * u64::from(key_bytes))?;
    let cycles = job.buffer(u64::from(blocks) * 32)?;
    let entries = table_entries(tuples);
    let task = Task {
        left: left.keys().address(),
        right: right.keys().address(),
        results: results.address(),
        cycles: cycles.address(),
        tuples,
        entries,
    };
    let table_bytes = if cta_join == CtaJoin::Hash { 2 * entries } else { 0 };
    let shared_bytes = 3 * tuples * u32::from(key_bytes) + table_bytes;
    let shape = LaunchShape { blocks, threads, shared_bytes };
    let instance = cta_join.instance(key_bytes);
    // SAFETY: both blocks and the results have that many tuples, and each CTA has four numbers; the job keeps
    // what it made, and the caller the relations.
    job.stage("cta-join", || unsafe { paper_cta_join(stream, instance, shape, &task) })?;
    let mut all = Vec::with_capacity(blocks as usize);
    for block in 0..u64::from(blocks) {
        let number = |at: u64| job.number(&cycles, block * 4 + at);
        let (outputs, join) = (number(0)?, number(1)?);
        all.push(CtaCycles { outputs, join, scan: number(2)?, compact: number(3)? });
    }
    let outputs = all.first().map_or(0, |first| first.outputs).min(tuples.into());
    let mut keys = vec![0; outputs as usize * usize::from(key_bytes)];
    results.copy_to_host(stream, &mut keys)?;
    job.end()?;
    Ok((all, keys))
}
