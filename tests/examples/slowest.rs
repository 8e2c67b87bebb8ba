//! The slowest single look-up of every adversarial case, against the average of all its look-ups.
//!
//! `cargo run --release -p pleach-tests --example slowest [times]` fails if any look-up takes more than
//! `times` (20) times the average. A look-up's time is the least of several, so that interrupts do not
//! count; keys up to the longest are looked up, so those of 65,535 bytes have an average of their own.

use pleach::{Index, KeyType};
use pleach_builder::{BuildOptions, build_bytes, build_strings_bytes};
use pleach_tests::adversarial::{self, Case};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

/// Times each look-up is measured.
const ROUNDS: usize = 40;
/// Queries beyond this length are compared among themselves.
const LONG_BYTES: usize = 4096;

struct Times {
    slowest_ns: f64,
    average_ns: f64,
    slowest: usize,
}

/// Times of `count` look-ups.
fn measure(count: usize, mut look_up: impl FnMut(usize)) -> Times {
    let mut least = vec![f64::INFINITY; count];
    for _ in 0..ROUNDS {
        for (at, least) in least.iter_mut().enumerate() {
            let start = Instant::now();
            look_up(at);
            *least = least.min(start.elapsed().as_nanos() as f64);
        }
    }
    let (slowest, &slowest_ns) =
        least.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap_or((0, &0.0));
    Times { slowest_ns, average_ns: least.iter().sum::<f64>() / count.max(1) as f64, slowest }
}

fn report(name: &str, times: &Times, limit: f64) -> bool {
    let ratio = times.slowest_ns / times.average_ns;
    println!(
        "{name:<44} average {:>7.0} ns, slowest {:>7.0} ns (query {}), {ratio:.1} times",
        times.average_ns, times.slowest_ns, times.slowest
    );
    ratio <= limit
}

fn texts(name: &str, case: &Case, limit: f64) -> bool {
    let key_type = match case.width() {
        Some(width @ 1..) => KeyType::Fixed(width as u16),
        _ => KeyType::Bytes,
    };
    let tuples: Vec<(&[u8], u32)> = case.keys.iter().map(Vec::as_slice).zip(1..).collect();
    let bytes = build_strings_bytes(key_type, &tuples, &BuildOptions::default()).expect("builds");
    let index = Index::from_bytes(bytes).expect("opens");
    let view = index.strings::<u32>().expect("types");
    let (long, short): (Vec<&[u8]>, Vec<&[u8]>) =
        case.queries.iter().map(Vec::as_slice).partition(|query| query.len() > LONG_BYTES);
    [("", short), (", long queries", long)].iter().filter(|(_, queries)| !queries.is_empty()).fold(
        true,
        |good, (which, queries)| {
            let times = measure(queries.len(), |at| {
                let _ = black_box(view.get(black_box(queries[at])));
            });
            report(&format!("{name}{which}"), &times, limit) && good
        },
    )
}

fn numbers(name: &str, keys: &[u64], limit: f64) -> bool {
    let tuples: Vec<(u64, u32)> = keys.iter().copied().zip(0..).collect();
    let index = Index::from_bytes(build_bytes(&tuples, &BuildOptions::default()).expect("builds"));
    let index = index.expect("opens");
    let view = index.typed::<u64, u32>().expect("types");
    let step = (keys.len() / 4000).max(1);
    let queries: Vec<u64> = keys
        .iter()
        .step_by(step)
        .flat_map(|&key| [key, key.wrapping_add(1), key.wrapping_sub(1), key ^ 1 << 40])
        .chain([0, u64::MAX])
        .collect();
    let times = measure(queries.len(), |at| {
        let _ = black_box(view.get(black_box(queries[at])));
    });
    report(name, &times, limit)
}

fn main() -> ExitCode {
    let limit = std::env::args().nth(1).and_then(|times| times.parse().ok()).unwrap_or(20.0);
    let mut good = true;
    let mut cases = adversarial::all();
    cases.push(("a run of 100,000".to_owned(), adversarial::equal_partial_keys(8, 100_000)));
    for (name, case) in &cases {
        good &= texts(name, case, limit);
    }
    // Tight groups with huge gaps, and keys that double: no grid of cells fits them.
    let groups: Vec<u64> = (0..200_000).map(|i| (i / 1000) << 55 | (i % 1000)).collect();
    good &= numbers("numbers: groups of 1000 with huge gaps", &groups, limit);
    let doubling: Vec<u64> = (0..64).flat_map(|bit| (0..2000).map(move |i| (1u64 << bit) + i)).collect();
    good &= numbers("numbers: powers of two and what follows", &doubling, limit);
    good &= numbers("numbers: 200,000 equal keys", &vec![1 << 33; 200_000], limit);
    let pairs: Vec<u64> = (0..200_000u64).map(|i| i / 2 * 0x9E37_79B9 + i % 2).collect();
    good &= numbers("numbers: pairs of neighbours", &pairs, limit);
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
