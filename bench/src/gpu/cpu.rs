//! The CPU of the same machine, on all cores, on the batches that the device is asked: what a GPU has to beat.

use super::case::{Case, Trouble};
use super::measure::Drawn;
use super::tables::{Cell, Made};
use std::time::Instant;
use zerocopy::IntoBytes;

/// Batches whose times count, at most.
const REPETITIONS_MAX: usize = 3;
/// Batches of fewer queries are repeated more often.
const SHORT: u64 = 1 << 20;
const SHORT_REPETITIONS: usize = 15;

/// Milliseconds of batches by any search that writes values and words of 64 bits of presence; answers are compared.
pub fn times<T: Cell>(
    case: &Case<'_, '_>,
    kind: Drawn,
    count: u64,
    mut search: impl FnMut(&[T], &mut [T], &mut [u64]) -> Result<(), Trouble>,
) -> Result<Vec<f64>, Trouble> {
    let stream = &case.bench.stream;
    let length = usize::try_from(count).unwrap_or(usize::MAX);
    let mut keys = vec![T::default(); length];
    let (mut values, mut present) = (vec![T::default(); length], vec![0u64; length.div_ceil(64)]);
    let most = if count < SHORT { SHORT_REPETITIONS } else { REPETITIONS_MAX };
    let mut all = Vec::new();
    for seed in 0..=case.bench.options.repetitions.min(most) as u64 {
        let drawn = case.draw(kind, count, seed)?;
        drawn.queries.copy_to_host(stream, keys.as_mut_slice().as_mut_bytes())?;
        let start = Instant::now();
        search(&keys, &mut values, &mut present)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        case.compare_host(&drawn, values.as_slice().as_bytes(), present.as_slice().as_bytes())?;
        // The first one touches everything.
        if seed > 0 {
            all.push(ms);
        }
    }
    Ok(all)
}

/// Milliseconds of batches by the CPU's search of the same file.
pub fn pleach<T: Cell>(
    case: &Case<'_, '_>,
    made: &Made<T>,
    kind: Drawn,
    count: u64,
) -> Result<Vec<f64>, Trouble> {
    let wrong = |error: &dyn std::fmt::Display| Trouble::Wrong(error.to_string());
    let view = made.index.typed::<T, T>().map_err(|error| wrong(&error))?;
    times(case, kind, count, |keys: &[T], values, present| {
        view.par_get_batch(keys, values, present).map(|_| ()).map_err(|error| wrong(&error))
    })
}
