//! Measurement of [`Costs`] on a few tables in memory.
//!
//! Each table is searched for random keys of its own: in batches, one by one, in order, and by the strategies
//! that move queries. The time of a batch in the smallest table counts as computation; the additional time in
//! a larger table is the price of a line there.
//!
//! The minimum of several turns counts, since other work on the machine only adds time. Prices never fall
//! with the size, and beyond the largest table they continue with the slope of the last step.

use super::{Costs, Scratch, Strategy};
use crate::error::ReadError;
use crate::{Index, Structure, Typed};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Queries per turn.
const QUERIES: usize = 1 << 16;
/// Queries per turn that are searched one by one.
const SINGLES: usize = 1 << 12;
/// Minimum number of turns.
const TURNS_MIN: usize = 2;

/// Splitmix64's finaliser.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Returns the minimum time per query, in nanoseconds, of the turns that fit into `budget`.
fn least(
    budget: Duration,
    queries: usize,
    mut turn: impl FnMut() -> Result<(), ReadError>,
) -> Result<f64, ReadError> {
    let (begin, mut least, mut turns) = (Instant::now(), f64::INFINITY, 0);
    while turns < TURNS_MIN || begin.elapsed() < budget {
        let start = Instant::now();
        turn()?;
        least = least.min(start.elapsed().as_nanos() as f64 / queries as f64);
        turns += 1;
    }
    Ok(least)
}

/// Measurements of a table.
struct Measured {
    bytes: f64,
    structure: Structure,
    /// Lines on the way to a tuple line, and their steps.
    way: usize,
    steps: f64,
    batch: f64,
    single: f64,
    sweep: f64,
    buffered: f64,
    sorted: f64,
}

fn measure(view: &Typed<'_, u64, u64>, budget: Duration) -> Result<Measured, ReadError> {
    let len = view.len().max(1);
    let keys = (0..QUERIES as u64)
        .map(|i| view.select(mix(i + 1) % len).map(|tuple| tuple.map_or(0, |(key, _)| key)));
    let keys: Vec<u64> = keys.collect::<Result<_, _>>()?;
    let mut ascending = keys.clone();
    ascending.sort_unstable();
    let (mut values, mut present) = (vec![0; QUERIES], vec![0; QUERIES / 64]);
    let mut scratch = Scratch::default();
    let part = budget / 5;
    let mut by = |strategy, keys: &[u64]| {
        least(part, keys.len(), || {
            let found = view.get_batch_by(strategy, keys, &mut values, &mut present, &mut scratch)?;
            black_box(found);
            Ok(())
        })
    };
    let batch = by(Strategy::Unbuffered, &keys)?;
    let sweep = by(Strategy::Unbuffered, &ascending)?;
    let buffered = by(Strategy::Buffered, &keys)?;
    let sorted = by(Strategy::Sorted, &keys)?;
    // Each key depends on the previous answer, so nothing overlaps.
    let single = least(part, SINGLES, || {
        let mut at = 0;
        for i in 0..SINGLES {
            let value = view.get(keys[(i ^ at) % QUERIES])?.unwrap_or(0);
            at = (value & 1) as usize;
        }
        black_box(at);
        Ok(())
    })?;
    let shape = super::planner::Shape::of(view.index());
    let (structure, way, steps) = (shape.structure, shape.way.len(), shape.steps());
    Ok(Measured { bytes: shape.table_bytes, structure, way, steps, batch, single, sweep, buffered, sorted })
}

impl Costs {
    /// Measures this machine on tables with keys and values `u64`, smallest first, in about `budget`.
    ///
    /// Good tables fill a first cache, a second cache, a third cache and more; a small one with a spine alone
    /// shows the cost of levels, one with a FAST tree alone that of its lines. Costs that the tables do not
    /// determine keep their defaults.
    ///
    /// # Errors
    /// Those of the look-ups. Tables of other types are ignored.
    pub fn tune(tables: &[Index], budget: Duration) -> Result<Self, ReadError> {
        let mut costs = Self::default();
        let views: Vec<Typed<'_, u64, u64>> =
            tables.iter().filter(|table| !table.is_empty()).filter_map(|table| table.typed().ok()).collect();
        let part = budget / u32::try_from(views.len().max(1)).unwrap_or(u32::MAX);
        let all: Vec<Measured> = views.iter().map(|view| measure(view, part)).collect::<Result<_, _>>()?;
        let one = |structure| all.iter().find(|table| table.structure == structure);
        if let Some(spine) = one(Structure::Spine) {
            costs.level = (spine.batch / (spine.way + 1) as f64 - costs.line[0]).max(0.1);
        }
        if let Some(tree) = one(Structure::Fast) {
            let lines = tree.batch - costs.level - (2 * tree.way + 1) as f64 * costs.line[0];
            costs.tree = (lines / tree.steps.max(1.0)).max(0.1);
        }
        let grids: Vec<&Measured> = all.iter().filter(|table| table.structure == Structure::Grid).collect();
        let Some(first) = grids.first() else { return Ok(costs) };
        // A look-up reads a unit of the grid and a line; the lines of the smallest table count as
        // computation.
        costs.line[0] = costs.line[0].min(first.batch / 8.0);
        costs.grid = (first.batch - 2.0 * costs.line[0]).max(0.1);
        costs.single = (first.single - 2.0 * costs.wait[0]).max(0.1);
        costs.sweep = first.sweep.max(0.1);
        let spread = first.bytes.log2();
        costs.scatter = (first.buffered - first.batch - costs.line[1]).max(0.1);
        costs.radix = ((first.sorted - first.sweep - costs.scatter / 2.0 - costs.line[0]) / 2.0).max(0.1);
        let price = |of: fn(&Measured) -> f64, base: f64, bytes: f64| {
            // Interpolate between the tables on either side of a size; beyond the last, extrapolate the last
            // step.
            let points: Vec<(f64, f64)> =
                grids.iter().map(|table| (table.bytes.log2(), of(table) - base)).collect();
            let after = points.iter().position(|point| point.0 >= bytes).unwrap_or(points.len() - 1).max(1);
            let (Some(a), Some(b)) = (points.get(after - 1), points.get(after)) else { return points[0].1 };
            a.1 + (b.1 - a.1) * (bytes - a.0) / (b.0 - a.0).max(1e-9)
        };
        if grids.len() > 1 {
            for at in 1..Self::SIZES.len() {
                let bytes = f64::from(Self::SIZES[at].ilog2()).max(spread);
                let line = price(|table| table.batch, costs.grid + costs.line[0], bytes);
                costs.line[at] = line.max(costs.line[at - 1]);
                let wait = price(|table| table.single, costs.single + costs.wait[0], bytes);
                costs.wait[at] = wait.max(costs.wait[at - 1]);
            }
        }
        Ok(costs)
    }
}
