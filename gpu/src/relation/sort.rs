//! Sorts tuples by their keys: the radix sort of batches (kernels/sort.cu), with values, or the ranks of
//! values, as numbers.

use super::dense::Relation;
use super::job::{Job, Stages};
use super::operator::{Answer, Input, Output};
use super::project::{PROJECT, Pick, pick};
use crate::algorithm::psa;
use crate::kernel::Instance;
use crate::resident::grid;
use crate::{GpuError, Stream};

/// Threads per block of `pick`: PROJECTORS in project.cu.
const THREADS: u32 = 256;
/// First number of tuples that is too large: a tile passes on counts of 30 bits.
const TUPLES_END: u32 = 1 << 30;

/// Sorts the tuples of a relation by their keys; tuples with equal keys keep their order. It reads the keys
/// once, and then reads and writes once for each byte of a key; values of 8 bytes are fetched once more.
/// Blocks. Times: `sort`, `pick`.
///
/// # Errors
/// [`GpuError::Operator`] for 2^30 tuples or more, or a device with too little shared memory;
/// [`GpuError::Memory`] if the results do not fit; [`GpuError::Driver`] if a driver call fails.
pub fn sort(stream: &Stream, from: &Relation) -> Result<Answer, GpuError> {
    let refused = |cause: String| GpuError::Operator { operator: "sort", cause };
    let input = Input::new("sort", from)?;
    let (key_bytes, value_bytes) = (from.key_bytes(), from.value_bytes());
    if input.tuples >= TUPLES_END {
        return Err(refused(format!("{} tuples: it takes fewer than {TUPLES_END}", input.tuples)));
    }
    let (gpu, count) = (stream.gpu(), u64::from(input.tuples));
    let mut job = Job::new(stream);
    // The numbers are the values, or their ranks.
    let places = [
        Output::new(&mut job, gpu, [key_bytes, 4], count)?,
        Output::new(&mut job, gpu, [key_bytes, 4], count)?,
    ];
    let picked = (value_bytes == 8).then(|| job.buffer(count * 8)).transpose()?;
    let control = job.buffer(psa::control_bytes(input.tuples, key_bytes))?;
    let columns = psa::Columns {
        from: [input.keys, if value_bytes == 4 { input.values } else { 0 }],
        to: [0, 1].map(|at: usize| [places[at].keys.address(), places[at].values()]),
        count: input.tuples,
    };
    let [first, second] = places;
    let mut place = Some(0);
    if count > 0 {
        // SAFETY: all columns have the same number of tuples; the job keeps those made here, and the caller
        // the others.
        place = job.stage("sort", || unsafe {
            psa::sort_columns(stream, Instance::new(&psa::SORT, key_bytes, 0), &columns, &control)
        })?;
    }
    let place = place.ok_or_else(|| refused("its blocks want more shared memory than there is".into()))?;
    let mut sorted = if place == 0 { first } else { second };
    if value_bytes != 4 {
        let numbers = sorted.values();
        (sorted.values, sorted.value_bytes) = (picked.clone(), value_bytes);
        if let Some(picked) = picked.filter(|_| count > 0) {
            let task = Pick { values: input.values, numbers, to: picked.address(), count };
            let instance = Instance::new(&PROJECT, key_bytes, value_bytes);
            let shape = grid(gpu, instance, "pick", THREADS, 0, count)?;
            // SAFETY: the numbers belong to all tuples; the job keeps the columns made here, and the caller
            // the others.
            job.stage("pick", || unsafe { pick(stream, instance, shape, &task) })?;
        }
    }
    let stages = if count > 0 { job.end()? } else { Stages::default() };
    Ok(Answer { relation: sorted.relation(count)?, stages })
}
