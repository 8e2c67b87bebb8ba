//! `pleach bench`: measures look-ups beside other engines and beside the machine's own limit.
//!
//! The measuring is in the crate `pleach-bench`; this turns arguments into its options, shows on
//! standard error what is being done, and prints the report.

use crate::cli::{BenchArgs, BenchWhat, Global};
use crate::failure::{self, ExitStatus, Failure};
use crate::interrupt::Guard;
use pleach_bench::{BenchError, CompressOptions, LookupOptions, Report, StrategyOptions, Told};
use std::io::{IsTerminal, Write};
use std::time::Instant;

pub fn run(args: &BenchArgs, global: &Global) -> Result<ExitStatus, Failure> {
    match args.what {
        BenchWhat::Lookup => measure(args, global, "lookup", lookup),
        BenchWhat::Compress => measure(args, global, "compress", compress),
        BenchWhat::Strategies => measure(args, global, "strategies", strategies),
    }
}

fn measure(
    args: &BenchArgs,
    global: &Global,
    name: &str,
    bench: fn(&BenchArgs, Told<'_>) -> Result<Report, BenchError>,
) -> Result<ExitStatus, Failure> {
    let guard = Guard::new();
    let interrupted = || guard.is_interrupted();
    let is_told = !global.quiet && std::io::stderr().is_terminal();
    let start = Instant::now();
    let tell = |step: &str| {
        // Progress that cannot be shown is no reason to stop.
        let _ = writeln!(std::io::stderr(), "{:7.1} s  {step}", start.elapsed().as_secs_f64());
    };
    let told = Told { progress: is_told.then_some(&tell), cancelled: Some(&interrupted) };
    let report = bench(args, told).map_err(|error| match error {
        BenchError::Options(text) => Failure::usage(format!("bench {name}: {text}")),
        BenchError::Interrupted => Failure::Interrupted,
        error => Failure::operational(format!("bench {name}: {error}")),
    })?;
    let text = if global.json { format!("{}\n", report.to_json()) } else { report.to_text() };
    failure::print(text.as_bytes())?;
    Ok(ExitStatus::Success)
}

fn lookup(args: &BenchArgs, told: Told<'_>) -> Result<Report, BenchError> {
    let mut options = if args.quick { LookupOptions::quick() } else { LookupOptions::default() };
    if let Some(tuples) = args.tuples {
        options.tuples = vec![tuples];
    }
    if let Some(key_type) = args.key_type {
        options.key_types = vec![key_type];
    }
    if args.threads > 0 {
        options.threads = if args.threads == 1 { vec![1] } else { vec![1, args.threads] };
    }
    options.all_peers = args.all_peers;
    options.dir.clone_from(&args.dir);
    options.told = told;
    pleach_bench::run(&options)
}

fn strategies(args: &BenchArgs, told: Told<'_>) -> Result<Report, BenchError> {
    let mut options = StrategyOptions::new(args.quick);
    if let Some(tuples) = args.tuples {
        options.tuples = vec![tuples];
    }
    if let Some(key_type) = args.key_type {
        options.key_types = vec![key_type];
    }
    options.dir.clone_from(&args.dir);
    options.told = told;
    pleach_bench::strategies::run(&options)
}

fn compress(args: &BenchArgs, told: Told<'_>) -> Result<Report, BenchError> {
    let count = args.tuples.unwrap_or(if args.quick { 1 << 18 } else { 1 << 22 });
    let mut options =
        if args.one_gigabyte { CompressOptions::of_one_gigabyte() } else { CompressOptions::of_size(count) };
    options.dir.clone_from(&args.dir);
    options.told = told;
    pleach_bench::compress::run(&options)
}
