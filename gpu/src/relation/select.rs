//! SELECT in one pass: kernels/sift.cu.

use super::condition::{Condition, STEPS_MAX, Step, Test};
use super::dense::Relation;
use super::job::{Job, Stages};
use super::onepass::{ONE_PASS_TEXT, tiles_ahead};
use super::operator::{Answer, Input, Output};
use crate::driver::LaunchShape;
use crate::kernel::{Instance, SourceSpec};
use crate::{Gpu, GpuError, Stream};

/// Threads per block: SIFTERS in sift.cu.
const THREADS: u32 = 256;
/// Bytes of keys per thread of a tile: VECTORS vectors of 16 bytes in sift.cu.
const THREAD_BYTES: u32 = 64;
/// Bytes per vector of keys.
const VECTOR_BYTES: u32 = 16;
/// Blocks that stay on a multiprocessor: sift.cu has registers for this number.
const BLOCKS: u32 = 3;
/// Bytes of shared memory that sift.cu declares, with some reserve.
const STATIC_BYTES: u32 = 9 << 10;
/// USES_KEYS and USES_VALUES in sift.cu.
const USES: [u32; 2] = [1, 2];
/// Content of `failed` while no tuple has failed.
const NOBODY: u64 = u64::MAX;

crate::kernel! {
    /// SELECT in one pass.
    SIFT = SourceSpec {
        shared: &[ONE_PASS_TEXT],
        has_value_width: true,
        numbers: |_| vec![("BYTES_OF_SIFT", size_of::<Sift>() as u64)],
        ..SourceSpec::new("sift.cu", include_str!("../kernels/sift.cu")).narrow()
    };
    /// Selects the tuples whose keys pass a test.
    sift_keys(sift: Sift);
    /// Selects the first tuple of each key.
    sift_firsts(sift: Sift);
    /// Selects the tuples for which a program leaves 1.
    sift_program(sift: Sift);
    /// Selects the tuples whose values pass a test.
    sift_values(sift: Sift) if |instance| instance.value_bytes > 0;
}

/// Arguments of SELECT; the same as in sift.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Sift {
    keys: u64,
    values: u64,
    keys_to: u64,
    values_to: u64,
    told: u64,
    failed: u64,
    words: u64,
    low: u64,
    span: u64,
    mask: u64,
    bits: u64,
    tuples: u32,
    ahead: u32,
    is_aligned: u32,
    uses: u32,
    steps: u32,
    sides: u32,
    program: [Step; STEPS_MAX],
}

fn refused(cause: String) -> GpuError {
    GpuError::Operator { operator: "select", cause }
}

/// Returns the number of tiles that a block has at a time, and the bytes of shared memory for these or for the
/// stack of a program.
fn shared_memory(
    gpu: &Gpu,
    condition: &Condition,
    tile: u32,
    [key_bytes, value_bytes]: [u8; 2],
) -> Result<(u32, u32), GpuError> {
    let vector = VECTOR_BYTES / u32::from(key_bytes);
    let most = gpu.limits().shared_bytes_max.saturating_sub(STATIC_BYTES);
    let side_bytes = tile * u32::from(key_bytes + value_bytes);
    // One side fits on all devices known so far.
    let sides = if 2 * side_bytes <= most { 2 } else { 1 };
    let shared_bytes = match condition {
        Condition::Program(program) => (program.depth - 1).saturating_mul(vector * THREADS * 8),
        _ => sides * side_bytes,
    };
    if shared_bytes > most {
        return Err(refused(format!(
            "a program with a stack that wants {shared_bytes} bytes of shared memory, of {most}: nest it less"
        )));
    }
    Ok((sides, shared_bytes))
}

/// Selects the tuples that satisfy a condition, in their order. Reads each key once, each value that is
/// selected or tested once, and writes the results; room is made for all tuples. Blocks. Time: `select`.
///
/// # Errors
/// [`GpuError::Operator`] for more than 2^31 tuples, a condition on values that are absent, or a
/// program whose stack does not fit a block; [`GpuError::Arithmetic`] if a condition has no result for a
/// tuple; [`GpuError::Memory`] if the results do not fit; [`GpuError::Driver`] if a driver call fails.
pub fn select(stream: &Stream, from: &Relation, condition: &Condition) -> Result<Answer, GpuError> {
    let input = Input::new("select", from)?;
    let (gpu, key_bytes, value_bytes) = (stream.gpu(), from.key_bytes(), from.value_bytes());
    let uses_values = match condition {
        Condition::Values(_) => true,
        Condition::Program(program) => program.uses_values,
        Condition::Keys(_) | Condition::Firsts => false,
    };
    if uses_values && value_bytes == 0 {
        return Err(refused("a condition on values of a relation that has none: ask for its keys".into()));
    }
    let tile = THREADS * THREAD_BYTES / u32::from(key_bytes);
    let (sides, shared_bytes) = shared_memory(gpu, condition, tile, [key_bytes, value_bytes])?;
    let mut job = Job::new(stream);
    let output = Output::new(&mut job, gpu, [key_bytes, value_bytes], input.tuples.into())?;
    if input.tuples == 0 {
        return Ok(Answer { relation: output.relation(0)?, stages: Stages::default() });
    }
    let tiles = input.tuples.div_ceil(tile);
    let told = job.buffer(u64::from(tiles) * 8 + 16)?;
    let failed = job.buffer(8)?;
    let (mut steps, mut program, mut words, mut uses) = (0, [Step::default(); STEPS_MAX], None, 0);
    let everything = Test::range(0, u64::MAX);
    let test = match condition {
        Condition::Keys(test) => test.of_width(key_bytes),
        Condition::Values(test) => test.of_width(value_bytes),
        Condition::Firsts => everything.of_width(key_bytes),
        Condition::Program(given) => {
            steps = given.steps.len() as u32;
            program[..given.steps.len()].copy_from_slice(&given.steps);
            uses = u32::from(given.uses_keys) * USES[0] + u32::from(given.uses_values) * USES[1];
            let list: Vec<u8> = given.words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let buffer = job.buffer(list.len() as u64)?;
            buffer.copy_from_host(stream, &list)?;
            words = Some(buffer);
            everything.of_width(key_bytes)
        }
    };
    let [low, span, mask, bits] = test;
    let sift = Sift {
        keys: input.keys,
        values: input.values,
        keys_to: output.keys.address(),
        values_to: output.values(),
        told: told.address(),
        failed: failed.address(),
        words: words.map_or(0, |words| words.address()),
        low,
        span,
        mask,
        bits,
        tuples: input.tuples,
        ahead: tiles_ahead(gpu),
        is_aligned: input.is_aligned.into(),
        uses,
        steps,
        sides,
        program,
    };
    let instance = Instance::new(&SIFT, key_bytes, value_bytes);
    let is_program = matches!(condition, Condition::Program(_));
    let blocks = if is_program { tiles } else { tiles.min(gpu.device().multiprocessors * BLOCKS) };
    let shape = LaunchShape { blocks, threads: THREADS, shared_bytes };
    job.stage("select", || {
        told.fill(stream, 0)?;
        if is_program {
            failed.fill(stream, 0xFF)?;
        }
        // SAFETY: there is room for as many results as the input has tuples, and for a word per tile and two
        // more; the job keeps what was made, and the caller the relation.
        unsafe {
            match condition {
                Condition::Keys(_) => sift_keys(stream, instance, shape, &sift),
                Condition::Values(_) => sift_values(stream, instance, shape, &sift),
                Condition::Firsts => sift_firsts(stream, instance, shape, &sift),
                Condition::Program(_) => sift_program(stream, instance, shape, &sift),
            }
        }
    })?;
    if is_program {
        let rank = job.number(&failed, 0)?;
        if rank != NOBODY {
            return Err(GpuError::Arithmetic { rank });
        }
    }
    let tuples = job.number(&told, tiles.into())?;
    Ok(Answer { relation: output.relation(tuples)?, stages: job.end()? })
}
