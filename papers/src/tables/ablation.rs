//! The paper's Figure 8: a plain binary tree, then blocking by pages, by lines, SIMD blocks, and
//! software pipelining, one added to the other, for a tree that fits the caches and one that does not.

use crate::InFlight;
use crate::fast::{Compare, Switched};
use crate::report::{Cell, Table, huge, median};
use pleach::Isa;
use pleach_bench::data::{below, mix32, mix64};
use pleach_builder::classic::{Vectors, build};
use pleach_format::classic::Geometry;
use pleach_format::classic::paged::Form;
use std::time::Instant;

struct Variant {
    name: &'static str,
    depths: (u32, u32, u32),
    padded: bool,
    compare: Compare,
    in_flight: InFlight,
}

fn variants() -> Vec<Variant> {
    let wide = Compare::Wide(Isa::best());
    let all = |name, depths, padded, compare, in_flight| Variant { name, depths, padded, compare, in_flight };
    use Compare::{Paper, Scalar};
    use InFlight::{Eight, One, Sixteen, ThirtyTwo};
    vec![
        all("plain binary tree", (1, 1, 64), false, Scalar, One),
        all("+ pages of 2 MiB", (1, 1, 19), false, Scalar, One),
        all("+ lines", (1, 4, 19), false, Scalar, One),
        all("+ SIMD blocks, SSE", (2, 4, 19), false, Paper, One),
        all("+ 8 in flight", (2, 4, 19), false, Paper, Eight),
        all("pages of 4 KiB, as + lines", (1, 4, 10), false, Scalar, One),
        all("16 lanes, 1 in flight", (4, 4, 19), false, wide, One),
        all("16 lanes, 8 in flight", (4, 4, 19), false, wide, Eight),
        all("16 lanes, 16 in flight", (4, 4, 19), false, wide, Sixteen),
        all("16 lanes, 32 in flight", (4, 4, 19), false, wide, ThirtyTwo),
        all("SSE, padded lines, 16 in flight", (2, 4, 19), true, Paper, Sixteen),
        all("16 lanes, padded lines, 16 in flight", (4, 4, 19), true, wide, Sixteen),
        all("16 lanes, padded lines, d_P = 12, 32 in flight", (4, 4, 12), true, wide, ThirtyTwo),
        all("plain binary tree, 16 in flight", (1, 1, 64), false, Scalar, Sixteen),
    ]
}

/// Measures trees of `2^exponent` keys for each exponent; one thread, uniform queries, half of them
/// present. Every answer is compared.
///
/// # Panics
/// If an answer is wrong.
#[must_use]
pub fn run(exponents: &[u32], repetitions: usize) -> Table {
    let mut table = Table { what: "classic-ablation", cells: Vec::new() };
    for &exponent in exponents {
        let mut keys: Vec<u32> = (0..1u32 << exponent).map(mix32).collect();
        keys.sort_unstable();
        let count = 1usize << (exponent + 10).min(20);
        let draw = |i: u64| below(mix64(i), keys.len() as u64) as usize;
        let queries: Vec<u32> =
            (0..count as u64).map(|i| if i % 2 == 0 { keys[draw(i)] } else { mix64(i) as u32 }).collect();
        let expected: Vec<u64> =
            queries.iter().map(|query| keys.partition_point(|key| key < query) as u64).collect();
        let mut ranks = vec![0u64; count];
        let variants = variants();
        // Variants of one layout share their tree.
        let mut trees: Vec<(Geometry, Vec<u8>)> = Vec::new();
        let mut of = Vec::new();
        for variant in &variants {
            let (d_k, d_l, d_p) = variant.depths;
            let geometry = Geometry {
                keys: keys.len() as u64,
                key_bytes: 4,
                d_k,
                d_l,
                d_p,
                padded: variant.padded,
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
        let mut times = vec![Vec::new(); variants.len()];
        for repetition in 0..=repetitions {
            for (number, variant) in variants.iter().enumerate() {
                let (geometry, bytes) = &trees[of[number]];
                let tree = Switched::new(geometry, Form::Full, bytes, &keys).expect("a tree");
                let tree = tree.with(variant.compare, variant.in_flight);
                let start = Instant::now();
                tree.lower_bounds(&queries, &mut ranks);
                let time = start.elapsed().as_secs_f64();
                assert_eq!(ranks, expected, "{}", variant.name);
                if repetition > 0 {
                    times[number].push(time * 1e9 / count as f64);
                }
            }
        }
        let plain = median(&mut times[0]);
        for (variant, times) in variants.iter().zip(&mut times) {
            let time = median(times);
            table.cells.push(Cell {
                name: format!("2^{exponent}: {}", variant.name),
                numbers: vec![
                    ("ns_per_query", time),
                    ("ns_min", times[0]),
                    ("of_plain", time / plain),
                    ("tuples", f64::from(exponent).exp2()),
                ],
            });
        }
    }
    table
}
