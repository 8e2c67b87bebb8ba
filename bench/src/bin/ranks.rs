//! Ranks of random numbers, Pleach beside the static search tree: `ranks [--json] [LOG2_OF_TUPLES]...`.

use pleach::KeyType;
use pleach_bench::{BenchError, BenchOptions, Told, ranks};

fn main() -> Result<(), BenchError> {
    let (flags, sizes): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let size = |text: &String| text.parse().ok().filter(|&log: &u32| log <= 31).map(|log| 1u64 << log);
    let tuples: Option<Vec<u64>> = sizes.iter().map(size).collect();
    if flags.iter().any(|flag| flag != "--json") || tuples.is_none() {
        return Err(BenchError::Options("ranks [--json] [LOG2_OF_TUPLES]..., as ranks 20 24 26".to_owned()));
    }
    let tuples =
        tuples.filter(|tuples| !tuples.is_empty()).unwrap_or_else(|| vec![1 << 16, 1 << 20, 1 << 24]);
    let tell = |step: &str| eprintln!("{step}");
    let told = Told { progress: Some(&tell), cancelled: None };
    let report = ranks::run(&BenchOptions {
        tuples,
        key_types: vec![KeyType::U32],
        told,
        ..BenchOptions::new(false)
    })?;
    if flags.is_empty() {
        print!("{}", report.to_text());
    } else {
        println!("{}", report.to_json());
    }
    Ok(())
}
