//! Look-ups of byte-string keys in the other engines: random present keys, one thread, in batches.
//!
//! `cargo run --release -p pleach-bench --features stores --example texts -- [KIND [TUPLES [FOLDER
//! [ENGINE...]]]]`, by default `phone`, 2^22, the temporary folder and all engines. Engines take turns in
//! each of five repetitions, and the median is printed; each answer is compared outside the timed part. The
//! stores' files go into FOLDER.

use pleach_bench::peers::{Engine, Keys, PeerError};
use pleach_bench::texts::{self, Kind};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

const QUERIES: usize = 1 << 20;
const BATCH: usize = 1 << 14;
const REPETITIONS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind: Kind = arguments.next().as_deref().unwrap_or("phone").parse()?;
    let count = tuples(arguments.next().as_deref().unwrap_or("2^22"))?;
    let parent = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::Builder::new().prefix("pleach-bench-").tempdir_in(parent)?;

    let chosen: Vec<String> = arguments.collect();
    let is_engine = |name: &String| Engine::AVAILABLE.iter().any(|engine| engine.name() == name);
    if let Some(other) = chosen.iter().find(|name| !is_engine(name)) {
        return Err(format!("no engine of this build is called {other}").into());
    }

    let start = Instant::now();
    let keys = kind.sorted(count, 1);
    let generated = start.elapsed().as_secs_f64();
    let values = texts::values(&keys);
    let queries = texts::hits(&keys, QUERIES);
    let mean = keys.data().len() as f64 / keys.len().max(1) as f64;
    println!("{kind}: {} keys of {mean:.2} bytes, made and sorted in {generated:.2} s", keys.len());

    let mut built = Vec::new();
    for &engine in Engine::AVAILABLE {
        if !chosen.is_empty() && !chosen.iter().any(|name| name == engine.name()) {
            continue;
        }
        match engine.build_texts(&keys, &values, folder.path()) {
            Ok(table) => built.push((engine, table, Vec::new())),
            Err(error) => println!("{error}"),
        }
    }
    let mut answers = vec![0; QUERIES];
    let mut present = vec![0; QUERIES.div_ceil(64)];
    for repetition in 0..=REPETITIONS {
        for (engine, table, times) in &mut built {
            let mut reader = table.peer.reader()?;
            answers.fill(!0);
            present.fill(0);
            let start = Instant::now();
            let parts = answers.chunks_mut(BATCH).zip(present.chunks_mut(BATCH / 64));
            for (queries, (answers, present)) in queries.view().chunks(BATCH).zip(parts) {
                reader.get_batch(queries, answers, present)?;
            }
            let elapsed = start.elapsed();
            check(*engine, &queries, &answers, &present)?;
            // The first turn fills the caches.
            if repetition > 0 {
                times.push(elapsed.as_nanos() as f64 / QUERIES as f64);
            }
        }
    }

    println!(
        "{:<14} {:>9} {:>19} {:>12} {:>8}",
        "engine", "ns/query", "min to max", "bytes/tuple", "build s"
    );
    for (engine, table, times) in &mut built {
        times.sort_by(f64::total_cmp);
        let (median, least, most) = (times[REPETITIONS / 2], times[0], times[REPETITIONS - 1]);
        let bytes = table.peer.bytes() as f64 / keys.len().max(1) as f64;
        let build = table.build.as_secs_f64();
        let spread = format!("{least:.1} to {most:.1}");
        println!("{:<14} {median:>9.1} {spread:>19} {bytes:>12.2} {build:>8.2}", engine.name());
    }
    Ok(())
}

/// A number of tuples: `4194304` or `2^22`.
fn tuples(text: &str) -> Result<u64, Box<dyn Error>> {
    let power = text.strip_prefix("2^").map(str::parse::<u32>).transpose()?;
    match power {
        Some(power) => Ok(1u64.checked_shl(power).ok_or("a number of tuples below 2^64")?),
        None => Ok(text.parse()?),
    }
}

fn check(engine: Engine, queries: &Keys, answers: &[u32], present: &[u64]) -> Result<(), PeerError> {
    for (i, query) in queries.iter().enumerate() {
        if present[i / 64] >> (i % 64) & 1 == 0 || answers[i] != texts::value(query) {
            let cause = format!("a wrong answer to {}", query.escape_ascii()).into();
            return Err(PeerError { engine: engine.name(), operation: "check", cause });
        }
    }
    Ok(())
}
