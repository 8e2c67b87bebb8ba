//! The paper's Table III on this machine: the SSE form with 8 queries in flight, as on its CPUs, and the
//! Knights Ferry form, 16 lanes with 4 in flight, for a tree of 64K keys and one of 16M.
//!
//! Rows between them change one thing at a time: the addresses of a group's queries computed one by one
//! instead of in a vector, more queries in flight, lines padded to 64 bytes. On a CPU with AVX2 alone 16
//! lanes are two compares of 8. All threads, as in the paper, and one.

use crate::InFlight;
use crate::fast::{Compare, Switched};
use crate::report::{Cell, Table, huge, median};
use pleach::Isa;
use pleach_bench::data::{below, mix32, mix64};
use pleach_builder::classic::{Vectors, build};
use pleach_format::classic::Geometry;
use pleach_format::classic::paged::Form;
use rayon::prelude::*;
use std::time::Instant;

/// Queries that a thread answers before it asks for more.
const PIECE: usize = 1 << 12;

struct Variant {
    name: &'static str,
    d_k: u32,
    padded: bool,
    compare: Compare,
    in_flight: InFlight,
}

fn variants() -> Vec<Variant> {
    let (wide, joint) = (Compare::Wide(Isa::best()), Compare::Joint(Isa::best()));
    let form = |name, d_k, padded, compare, in_flight| Variant { name, d_k, padded, compare, in_flight };
    use InFlight::{Eight, Four, Sixteen};
    vec![
        form("SSE, table of 8, S = 8", 2, false, Compare::Paper, Eight),
        form("Knights Ferry: 16 lanes, joint, S = 4", 4, false, joint, Four),
        form("16 lanes, one by one, S = 4", 4, false, wide, Four),
        form("16 lanes, joint, S = 8", 4, false, joint, Eight),
        form("16 lanes, one by one, S = 8", 4, false, wide, Eight),
        form("16 lanes, joint, S = 16", 4, false, joint, Sixteen),
        form("16 lanes, one by one, S = 16", 4, false, wide, Sixteen),
        form("Knights Ferry, padded lines", 4, true, joint, Four),
        form("16 lanes, padded lines, joint, S = 16", 4, true, joint, Sixteen),
    ]
}

/// Measures trees of `2^exponent` random keys of 4 bytes for each exponent, uniform random queries (which
/// are mostly absent from small trees, as in the paper), on one thread and on all. Every answer is compared.
///
/// # Panics
/// If an answer is wrong or a thread cannot be started.
#[must_use]
pub fn run(exponents: &[u32], repetitions: usize) -> Table {
    let mut table = Table { what: "classic-table3", cells: Vec::new() };
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if all > 1 { vec![1, all] } else { vec![1] };
    let pools: Vec<rayon::ThreadPool> = threads
        .iter()
        .map(|&threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads"))
        .collect();
    for &exponent in exponents {
        let mut keys: Vec<u32> = (0..1u32 << exponent).map(mix32).collect();
        keys.par_sort_unstable();
        let count = 1usize << (exponent + 10).min(20);
        let seed = below(mix64(u64::from(exponent)), 1 << 32);
        let queries: Vec<u32> = (0..count as u64).map(|i| mix64(seed << 20 | i) as u32).collect();
        let expected: Vec<u64> =
            queries.par_iter().map(|query| keys.partition_point(|key| key < query) as u64).collect();
        let mut ranks = vec![0u64; count];
        let variants = variants();
        // Variants of one layout share their tree.
        let mut trees: Vec<(Geometry, Vec<u8>)> = Vec::new();
        let mut of = Vec::new();
        for variant in &variants {
            let (d_k, padded) = (variant.d_k, variant.padded);
            let geometry = Geometry {
                keys: keys.len() as u64,
                key_bytes: 4,
                d_k,
                d_l: 4,
                d_p: 19,
                padded,
                aligned: false,
            };
            let at = trees.iter().position(|(other, _)| *other == geometry).unwrap_or_else(|| {
                let bytes = geometry.tree().expect("sound").bytes();
                let mut out = huge(bytes as usize);
                build(&keys, &geometry, Vectors::Best, &mut out).expect("a build");
                trees.push((geometry, out));
                trees.len() - 1
            });
            of.push(at);
        }
        let mut times = vec![vec![Vec::new(); pools.len()]; variants.len()];
        for repetition in 0..=repetitions {
            for (number, variant) in variants.iter().enumerate() {
                let (geometry, bytes) = &trees[of[number]];
                let tree = Switched::new(geometry, Form::Full, bytes, &keys).expect("a tree");
                let tree = tree.with(variant.compare, variant.in_flight);
                for (pool, times) in pools.iter().zip(&mut times[number]) {
                    ranks.fill(u64::MAX);
                    let seconds = pool.install(|| {
                        let start = Instant::now();
                        let pieces = queries.par_chunks(PIECE).zip(ranks.par_chunks_mut(PIECE));
                        pieces.for_each(|(queries, ranks)| {
                            tree.lower_bounds(queries, ranks);
                        });
                        start.elapsed().as_secs_f64()
                    });
                    assert_eq!(ranks, expected, "{}", variant.name);
                    if repetition > 0 {
                        times.push(seconds * 1e9 / count as f64);
                    }
                }
            }
        }
        for (variant, times) in variants.iter().zip(&mut times) {
            for (&threads, times) in threads.iter().zip(times) {
                let time = median(times);
                let plural = if threads == 1 { "" } else { "s" };
                table.cells.push(Cell {
                    name: format!("2^{exponent}: {}, {threads} thread{plural}", variant.name),
                    numbers: vec![
                        ("million_per_s", 1e3 / time),
                        ("ns_per_query", time),
                        ("ns_min", times.first().copied().unwrap_or(0.0)),
                        ("threads", threads as f64),
                        ("tuples", f64::from(exponent).exp2()),
                    ],
                });
            }
        }
    }
    table
}
