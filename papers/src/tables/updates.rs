//! Harmonia's batch update beside rebuilds of a file and other stores, on the data of `pleach bench update`.

use crate::harmonia::{BatchOptions, Change, HarmoniaError, HarmoniaTree};
use pleach_bench::update::{InMemory, run_beside};
use pleach_bench::{BenchError, BenchOptions, Report};
use pleach_builder::source::Schema;
use pleach_builder::{BuildOptions, Chunk, ChunkSource, Column, Silent};
use pleach_format::{KeyType, ValueType};
use std::path::Path;
use std::time::Instant;

/// Percent of the places of a node that are filled when the tree is loaded.
const FILL: u32 = 69;
const FANOUT: u32 = 64;

/// Measures rebuilds, the tree, and the stores of this build.
///
/// # Errors
/// [`BenchError`] if a file or a tree cannot be built, or for a wrong answer.
pub fn run(options: &BenchOptions<'_>) -> Result<Report, BenchError> {
    run_beside(options, Some(&Updated))
}

struct Updated;

impl InMemory for Updated {
    fn engine(&self) -> &'static str {
        "harmonia"
    }

    fn apply(
        &self,
        tuples: &[(u64, u64)],
        puts: &[(u64, u64)],
        file: Option<&Path>,
        keys: &[u64],
    ) -> Result<(f64, Vec<Option<u64>>), BenchError> {
        let refused = |error: HarmoniaError| BenchError::Options(error.to_string());
        let mut tree = HarmoniaTree::<u64, u64>::load(tuples, FANOUT, FILL).map_err(refused)?;
        let changes: Vec<Change<u64, u64>> =
            puts.iter().map(|&(key, value)| Change::Put(key, value)).collect();
        let start = Instant::now();
        tree.apply_with(&changes, &BatchOptions::default()).map_err(refused)?;
        if let Some(file) = file {
            let chunks = tree.leaves().map(|(keys, values)| Chunk {
                keys: Column::U64(keys.to_vec()),
                values: Column::U64(values.to_vec()),
                ops: Vec::new(),
            });
            let schema = Schema::plain(KeyType::U64, ValueType::U64, Some(tree.len()));
            let options = BuildOptions { sorted: true, ..BuildOptions::default() };
            pleach_builder::build(&mut ChunkSource::new(schema, chunks), file, &options, &Silent)?;
        }
        let took = start.elapsed().as_secs_f64();
        Ok((took, keys.iter().map(|&key| tree.get(key)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree takes turns with the rebuilds, in memory and into a file; a wrong value is an error.
    #[test]
    fn the_tree_is_measured_beside_rebuilds() {
        let options = BenchOptions { tuples: vec![3000], repetitions: 1, ..BenchOptions::new(true) };
        let report = run(&options).expect("a report");
        for operation in ["batch-durable", "batch-no-sync"] {
            for engine in ["pleach", "harmonia"] {
                let is = |row: &&pleach_bench::Row| row.operation == operation && row.engine == engine;
                assert_eq!(report.rows.iter().filter(is).count(), 1, "{operation} {engine}");
            }
        }
        let puts = report.rows.iter().filter(|row| row.operation == "rebuild-puts");
        let details: Vec<&str> = puts.filter_map(|row| row.detail.as_deref()).collect();
        assert!(details.contains(&"a tree in memory, then a file"), "{details:?}");
    }
}
