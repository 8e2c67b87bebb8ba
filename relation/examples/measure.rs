//! Measures operators: `measure [memory|files] [log2 of the tuples] [--json]`.
//!
//! `memory`: set operations and a join of sorted slices with u64 keys, half of which match, compared with a
//! copy by the same threads in the same run. Bytes that are read and bytes that are written count once
//! each, for both. `files`: a join of two files into a third, and the most anonymous memory that this
//! process took. Answers are checked.

use pleach::Index;
use pleach_builder::{BuildOptions, Silent};
use pleach_relation::memory::{Columns, Joined, Options, join_into, no_values, set_into};
use pleach_relation::{How, Relation, SetOperation, SetRule, StreamOptions};
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

const REPETITIONS: usize = 5;

fn mix(at: u64) -> u64 {
    let mixed = at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ mixed >> 27
}

/// Ascending keys, a third of all for both sides; how many both have.
fn keys(tuples: usize) -> (Vec<u64>, Vec<u64>, usize) {
    let (mut a, mut b, mut both) = (Vec::with_capacity(tuples), Vec::with_capacity(tuples), 0);
    let mut key = 0;
    while a.len() < tuples || b.len() < tuples {
        key += 1 + mix(key) % 256;
        let draw = mix(!key) % 3;
        let (to_a, to_b) = (draw != 1 && a.len() < tuples, draw != 2 && b.len() < tuples);
        if to_a {
            a.push(key);
        }
        if to_b {
            b.push(key);
        }
        both += usize::from(to_a && to_b);
    }
    (a, b, both)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let bits: u32 = arguments.iter().find_map(|text| text.parse().ok()).unwrap_or(24);
    let json = arguments.iter().any(|text| text == "--json");
    match arguments.first().map(String::as_str) {
        Some("files") => files(1 << bits, json),
        _ => memory(1 << bits, json),
    }
}

fn row(json: bool, name: &str, tuples: usize, bytes: usize, seconds: f64, copy: f64) {
    let (ns, rate) = (seconds * 1e9 / tuples as f64, bytes as f64 / seconds / 1e9);
    if json {
        let share = rate / copy;
        println!(
            "{}",
            serde_json::json!({"operation": name, "tuples": tuples, "ns_per_tuple": ns, "gb_per_s": rate,
                "of_copy": share, "threads": rayon_threads()})
        );
    } else {
        println!("{name:24} {ns:7.3} ns/tuple {rate:7.2} GB/s {:6.2} of copy", rate / copy);
    }
}

fn rayon_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Best copy of the two columns by as many threads, in 10^9 bytes a second, both directions.
fn copy(a: &[u64], b: &[u64], to: &mut [u64]) -> f64 {
    let mut best = 0.0f64;
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        std::thread::scope(|scope| {
            let (first, second) = to.split_at_mut(a.len());
            scope.spawn(|| first.copy_from_slice(a));
            scope.spawn(|| second[..b.len()].copy_from_slice(b));
        });
        best = best.max(16.0 * (a.len() + b.len()) as f64 / start.elapsed().as_secs_f64() / 1e9);
    }
    best
}

fn memory(tuples: usize, json: bool) -> Result<(), Box<dyn Error>> {
    let (a, b, both) = keys(tuples);
    let mut to = vec![1; 2 * tuples];
    let (mut found, mut nothing) = (vec![0u64; 2 * tuples], Vec::new());
    let left = Columns::new("left", &a, no_values(tuples))?;
    let right = Columns::new("right", &b, no_values(tuples))?;
    let options = Options::default();
    let copied = copy(&a, &b, &mut to);
    row(json, "copy", 2 * tuples, 32 * tuples, 32.0 * tuples as f64 / copied / 1e9, copied);
    for &operation in SetOperation::ALL {
        for &rule in SetRule::ALL {
            let mut best = f64::MAX;
            let mut best_copy = 0.0f64;
            for _ in 0..REPETITIONS {
                let start = Instant::now();
                set_into(operation, rule, left, right, &options, (&mut found, &mut nothing));
                best = best.min(start.elapsed().as_secs_f64());
                best_copy = best_copy.max(copy(&a[..tuples / 4], &b[..tuples / 4], &mut to));
            }
            let wanted = match operation {
                SetOperation::Union => 2 * tuples - both,
                SetOperation::Intersection => both,
                SetOperation::Difference => tuples - both,
            };
            assert_eq!(found.len(), wanted, "{operation} {rule}");
            assert!(found.is_sorted(), "{operation} {rule}");
            let bytes = 8 * (2 * tuples + found.len());
            row(json, &format!("{operation} {rule}"), 2 * tuples, bytes, best, best_copy.max(copied));
        }
    }
    drop((found, nothing));
    let (left, right) = (Columns::new("left", &a, &a)?, Columns::new("right", &b, &b)?);
    let mut joined = Joined::default();
    let mut best = f64::MAX;
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        join_into(How::Inner, left, right, &options, &mut joined)?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    assert_eq!(joined.keys.len(), both);
    assert!(joined.keys == joined.left && joined.keys == joined.right);
    row(json, "join inner, u64 values", 2 * tuples, 32 * tuples + 24 * both, best, copied);
    Ok(())
}

/// Anonymous memory of this process in bytes.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|text| text.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn files(tuples: usize, json: bool) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let both = {
        let (a, b, both) = keys(tuples);
        for (name, keys) in [("left", a), ("right", b)] {
            let options = BuildOptions { sorted: true, ..BuildOptions::default() };
            let tuples = keys.into_iter().map(|key| (key, key ^ 1));
            pleach_builder::build_iter(tuples, &path(name), &options)?;
        }
        both
    };
    let (left, right) = (Index::open(path("left"))?, Index::open(path("right"))?);
    let (done, peak) = (AtomicBool::new(false), AtomicU64::new(0));
    let before = anonymous_bytes();
    let (seconds, found) = std::thread::scope(|scope| -> Result<(f64, u64), Box<dyn Error>> {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        let start = Instant::now();
        let joined = (|| {
            let (left, right) = (Relation::from_index(&left), Relation::from_index(&right));
            let answer = pleach_relation::join(How::Inner, left, right, StreamOptions::default())?;
            let options = BuildOptions { memory_bytes: 256 << 20, ..BuildOptions::default() };
            answer.to_index(path("joined"), &options, &Silent)
        })();
        done.store(true, Ordering::Relaxed);
        Ok((start.elapsed().as_secs_f64(), joined?.tuples))
    })?;
    assert_eq!(found, both as u64);
    let union = pleach_relation::set(
        SetOperation::Union,
        SetRule::Set,
        Relation::from_index(&left),
        Relation::from_index(&right),
        StreamOptions::default(),
    )?;
    assert_eq!(union.count()?, (2 * tuples - both) as u64);
    let peak = peak.into_inner();
    if json {
        println!(
            "{}",
            serde_json::json!({"operation": "join of files", "tuples": 2 * tuples, "answers": found,
                "seconds": seconds, "anonymous_bytes_before": before, "anonymous_bytes_peak": peak})
        );
    } else {
        println!("{tuples} and {tuples} tuples to {found}: {seconds:.2} s");
        println!("anonymous memory: {} MiB before, {} MiB at most", before >> 20, peak >> 20);
    }
    Ok(())
}
