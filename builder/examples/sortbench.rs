//! Times builds from memory: `sortbench EXPONENT [u32|u64] [sorted|random] [MEMORY_MIB] [FOLDER]`.
//! Beside it, the time that `rdst` takes to sort the same tuples (not stable, nothing written).

use pleach_builder::{BuildOptions, Chunk, Column, Observer, Phase, Schema, Source, SourceError, build};
use pleach_format::{KeyType, ValueType};
use rdst::{RadixKey, RadixSort};
use std::path::PathBuf;
use std::time::Instant;

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

/// Tuples that cost nothing to make and nothing to keep.
struct Made {
    schema: Schema,
    tuples: u64,
    at: u64,
    random: bool,
}

impl Made {
    fn key(&self, at: u64) -> u64 {
        if self.random { mix(at) } else { at.wrapping_mul((u64::MAX >> 1) / self.tuples * 2) }
    }
}

impl Source for Made {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        chunk.clear();
        let end = self.tuples.min(self.at + tuples_max as u64);
        for column in [&mut chunk.keys, &mut chunk.values] {
            match column {
                Column::None => {}
                Column::U32(words) => words.extend((self.at..end).map(|at| (self.key(at) >> 32) as u32)),
                Column::U64(words) => words.extend((self.at..end).map(|at| self.key(at))),
                Column::U128(words) => words.extend((self.at..end).map(|at| u128::from(self.key(at)))),
                Column::Bytes(_) => unreachable!("tuples of numbers are asked for"),
            }
        }
        self.at = end;
        Ok(())
    }
    fn progress(&self) -> (u64, Option<u64>) {
        (self.at, Some(self.tuples))
    }
}

struct Print(Instant, std::sync::Mutex<Option<Phase>>);
impl Observer for Print {
    fn progress(&self, phase: Phase, _: u64, _: Option<u64>) {
        let mut last = self.1.lock().unwrap();
        if *last != Some(phase) {
            *last = Some(phase);
            println!("  {phase:?} at {:.3} s", self.0.elapsed().as_secs_f64());
        }
    }
}

#[derive(Clone, Copy)]
struct Pair<T>(T, #[allow(dead_code)] T);
impl RadixKey for Pair<u32> {
    const LEVELS: usize = 4;
    fn get_level(&self, level: usize) -> u8 {
        (self.0 >> (8 * level)) as u8
    }
}
impl RadixKey for Pair<u64> {
    const LEVELS: usize = 8;
    fn get_level(&self, level: usize) -> u8 {
        (self.0 >> (8 * level)) as u8
    }
}

fn peak_mib() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("").to_owned()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize, default: &str| args.get(at).cloned().unwrap_or_else(|| default.to_owned());
    let tuples = 1u64 << arg(0, "24").parse::<u32>().expect("an exponent");
    let wide = arg(1, "u64") == "u64";
    let random = arg(2, "random") == "random";
    let memory: u64 = arg(3, "8192").parse().expect("MiB");
    let folder = PathBuf::from(arg(4, "."));
    let (key_type, value_type) =
        if wide { (KeyType::U64, ValueType::U64) } else { (KeyType::U32, ValueType::U32) };
    let schema = Schema::plain(key_type, value_type, Some(tuples));
    let mut source = Made { schema, tuples, at: 0, random };
    let start = Instant::now();
    let options = BuildOptions { memory_bytes: memory << 20, ..BuildOptions::default() };
    let target = folder.join("sortbench.pleach");
    let print = Print(start, None.into());
    let summary = build(&mut source, &target, &options, &print).expect("a build");
    println!(
        "build {:.3} s, {} runs, {:?}, {}",
        start.elapsed().as_secs_f64(),
        summary.runs,
        summary.spine,
        peak_mib()
    );
    if random && memory >= 4096 {
        let seconds = |start: Instant| start.elapsed().as_secs_f64();
        if wide {
            let mut pairs: Vec<_> = (0..tuples).map(|at| Pair(source.key(at), at)).collect();
            let start = Instant::now();
            pairs.radix_sort_unstable();
            println!("rdst {:.3} s", seconds(start));
        } else {
            let mut pairs: Vec<_> =
                (0..tuples).map(|at| Pair((source.key(at) >> 32) as u32, at as u32)).collect();
            let start = Instant::now();
            pairs.radix_sort_unstable();
            println!("rdst {:.3} s", seconds(start));
        }
    }
}
