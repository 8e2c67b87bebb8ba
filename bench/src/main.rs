//! `pleach-bench`: compares look-ups with other engines and with the limit of the machine, and draws reports.
//!
//! The library of this package measures. This program converts arguments to its options, shows progress on
//! standard error, and prints the report. `pleach bench` runs it, and it keeps the contract of that command line.

mod arguments;

use arguments::{BenchArgs, BenchWhat, Cli};
use pleach_bench::gpu::{GpuBenchOptions, Group};
use pleach_bench::keys::words;
use pleach_bench::peers::PeerError;
use pleach_bench::{
    BenchError, BenchOptions, CompressOptions, KeysOptions, LookupOptions, Queries, Report, StrategyOptions,
    TextsOptions, Told,
};
use pleach_bench::{build, latency, near, open, plot, range, update};
use pleach_builder::publish::{self, Rules};
use pleach_cli::{Code, CommandLine, ExitStatus, Failure, Global, Guard, Message};
use pleach_format::{KeyType, ValueType};
use pleach_gpu::GpuError;
use pleach_input::InputOptions;
use std::fs::read_to_string;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: pleach_cli::Allocator = pleach_cli::Allocator;

fn main() -> ExitCode {
    pleach_cli::run::<Cli>()
}

impl CommandLine for Cli {
    fn global(&self) -> &Global {
        &self.global
    }

    fn execute(&self) -> Result<ExitStatus, Failure> {
        // Benchmarks use the thread pool themselves, not only through the libraries.
        pleach_builder::pool::ready();
        run(&self.bench, &self.global)
    }
}

fn run(args: &BenchArgs, global: &Global) -> Result<ExitStatus, Failure> {
    match args.what {
        BenchWhat::Lookup => measure(args, global, "lookup", lookup),
        BenchWhat::Keys => measure(args, global, "keys", keys),
        BenchWhat::Compress => measure(args, global, "compress", compress),
        BenchWhat::Texts => measure(args, global, "texts", texts),
        BenchWhat::Strategies => measure(args, global, "strategies", strategies),
        BenchWhat::Near => measure(args, global, "near", |args, told| near::run(&plain(args, told))),
        BenchWhat::Range => measure(args, global, "range", |args, told| range::run(&plain(args, told))),
        BenchWhat::Latency => measure(args, global, "latency", |args, told| latency::run(&plain(args, told))),
        BenchWhat::Open => measure(args, global, "open", |args, told| open::run(&plain(args, told))),
        BenchWhat::Build => measure(args, global, "build", |args, told| build::run(&plain(args, told))),
        BenchWhat::Update => measure(args, global, "update", |args, told| update::run(&plain(args, told))),
        BenchWhat::Gpu => gpu(args, global, "gpu", &Group::ALL),
        BenchWhat::GpuKeys => gpu(args, global, "gpu-keys", &[Group::Keys, Group::Structures]),
        BenchWhat::GpuNear => gpu(args, global, "gpu-near", &[Group::Near]),
        BenchWhat::GpuRelation => gpu(args, global, "gpu-relation", &Group::ONE_PASS),
        BenchWhat::GpuReuse => gpu(args, global, "gpu-reuse", &[Group::Reuse]),
        BenchWhat::Plot => picture(args),
    }
}

/// Draws a report as SVG.
fn picture(args: &BenchArgs) -> Result<ExitStatus, Failure> {
    let Some(path) = &args.report else {
        let message = Message::new("missing report").at("bench plot");
        return Err(Failure::usage(message.advise("use pleach bench plot REPORT.json -o PICTURE.svg")));
    };
    let is_standard = |path: &Path| path.as_os_str() == "-";
    let rules = Rules::table(pleach_cli::inputs([path.as_path()]), args.force);
    if let Some(output) = args.output.as_deref().filter(|output| !is_standard(output)) {
        pleach_cli::check_output(output, &rules)?;
    }
    let text =
        if is_standard(path) { std::io::read_to_string(std::io::stdin()) } else { read_to_string(path) };
    let text = text.map_err(|error| Failure::io("cannot read", path, &error))?;
    let report: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
        let message = Message::new(format!("invalid JSON ({error})")).at(path.display());
        Failure::new(Code::Input, message.advise("use a report that --json printed"))
    })?;
    let svg = plot::svg(&report).map_err(|error| {
        let message = Message::new(format!("cannot draw the report ({error})")).at(path.display());
        Failure::new(Code::Input, message.advise("use one that --json printed"))
    })?;
    match args.output.as_deref().filter(|path| !is_standard(path)) {
        None => pleach_cli::print(svg.as_bytes())?,
        Some(path) => {
            publish::replace(path, svg.as_bytes(), rules)
                .map_err(|error| pleach_cli::build_failure(&error))?;
        }
    }
    Ok(ExitStatus::Success)
}

/// Replaces the default sizes and types of tables by those of the arguments.
fn choose_tables(args: &BenchArgs, tuples: &mut Vec<u64>, key_types: &mut Vec<KeyType>) {
    if let Some(count) = args.tuples {
        *tuples = vec![count];
    }
    if let Some(key_type) = args.key_type {
        *key_types = vec![key_type];
    }
}

/// Replaces the default numbers of threads by one and that of the arguments.
fn choose_threads(args: &BenchArgs, threads: &mut Vec<usize>) {
    if args.threads > 0 {
        *threads = if args.threads == 1 { vec![1] } else { vec![1, args.threads] };
    }
}

/// Returns the options of the smaller benchmarks.
fn plain<'a>(args: &BenchArgs, told: Told<'a>) -> BenchOptions<'a> {
    let mut options = BenchOptions::new(args.quick);
    choose_tables(args, &mut options.tuples, &mut options.key_types);
    choose_threads(args, &mut options.threads);
    options.dir.clone_from(&args.dir);
    BenchOptions { told, ..options }
}

fn measure(
    args: &BenchArgs,
    global: &Global,
    name: &str,
    bench: fn(&BenchArgs, Told<'_>) -> Result<Report, BenchError>,
) -> Result<ExitStatus, Failure> {
    if args.report.is_some() || args.output.is_some() {
        let message = bench_message(name).more("REPORT and --output are for bench plot");
        return Err(Failure::usage(message.advise("remove them; --json prints the report as JSON")));
    }
    let report = watched(args, global, name, |told| bench(args, told))?;
    let text = if global.json { format!("{}\n", report.to_json()) } else { report.to_text() };
    pleach_cli::print(text.as_bytes())?;
    Ok(ExitStatus::Success)
}

/// Measures look-ups on a GPU. Rows are printed when they are measured, so that an interrupted run has shown
/// its results. With `--json` they are printed on standard error, before the document.
fn gpu(args: &BenchArgs, global: &Global, name: &str, groups: &[Group]) -> Result<ExitStatus, Failure> {
    if args.report.is_some() {
        let message = bench_message(name).more("REPORT is for bench plot");
        return Err(Failure::usage(message.advise("use --output for the JSON report to write")));
    }
    if let Some(other) = args.only.iter().find(|group| !groups.contains(group)) {
        let names: Vec<&str> = groups.iter().map(|group| group.name()).collect();
        let message = bench_message(name).more(format!("--only {}", other.name()));
        return Err(Failure::usage(message.advise(format!("use {}", names.join(", ")))));
    }
    let mut options = match args.what {
        BenchWhat::GpuRelation => GpuBenchOptions::of_relations(args.quick),
        BenchWhat::GpuKeys => GpuBenchOptions::of_keys(args.quick),
        BenchWhat::GpuNear => GpuBenchOptions::of_near(args.quick),
        _ => GpuBenchOptions { groups: groups.to_vec(), ..GpuBenchOptions::new(args.quick) },
    };
    if args.structures {
        options.groups = vec![Group::Structures];
    }
    choose_tables(args, &mut options.tuples, &mut options.key_types);
    if let Some(tuples) = args.tuples {
        options.auto_tuples = vec![tuples];
        options.hybrid_tuples = vec![tuples];
        options.reuse_tuples = vec![tuples];
    }
    if !args.only.is_empty() {
        options.groups.clone_from(&args.only);
    }
    if !args.distributions.is_empty() {
        options.distributions.clone_from(&args.distributions);
    }
    options.dir.clone_from(&args.dir);
    if let Some(path) = &args.output {
        pleach_cli::check_output(path, &Rules::table(Vec::new(), args.force))?;
    }
    options.output.clone_from(&args.output);
    options.force = args.force;
    let row = |line: &str| {
        // A closed pipe does not stop the run: the document is still written.
        let _ = match (global.json, global.quiet) {
            (true, true) => Ok(()),
            (true, false) => writeln!(std::io::stderr(), "{line}"),
            (false, _) => writeln!(std::io::stdout(), "{line}"),
        };
    };
    let report = watched(args, global, name, |told| {
        pleach_bench::gpu::run(&GpuBenchOptions { row: Some(&row), told, ..options })
    })?;
    let text = if global.json { format!("{}\n", report.to_json()) } else { report.end_text() };
    pleach_cli::print(text.as_bytes())?;
    match report.wrong() {
        0 => Ok(ExitStatus::Success),
        rows => {
            let message = bench_message(name).more(format!("wrong answers in {rows} rows"));
            Err(Failure::new(Code::Failed, message.advise("see `error` there")))
        }
    }
}

/// Measures while progress is shown and Ctrl-C can stop it.
fn watched<R>(
    args: &BenchArgs,
    global: &Global,
    name: &str,
    bench: impl FnOnce(Told<'_>) -> Result<R, BenchError>,
) -> Result<R, Failure> {
    if !args.queries.is_empty() && !matches!(args.what, BenchWhat::Lookup | BenchWhat::Keys) {
        return Err(Failure::usage(bench_message(name).advise("--queries is for bench lookup and keys")));
    }
    let is_ruled = matches!(args.what, BenchWhat::Keys | BenchWhat::GpuKeys | BenchWhat::Strategies);
    if !args.distributions.is_empty() && !is_ruled {
        let message =
            bench_message(name).advise("--distributions is for bench keys, gpu-keys and strategies");
        return Err(Failure::usage(message));
    }
    if args.structures && !is_ruled {
        let message = bench_message(name).advise("--structures is for bench keys, gpu-keys and strategies");
        return Err(Failure::usage(message));
    }
    if args.what != BenchWhat::Texts && (!args.kinds.is_empty() || args.repetitions.is_some()) {
        return Err(Failure::usage(
            bench_message(name).advise("--kinds and --repetitions are for bench texts"),
        ));
    }
    check_own(args, name)?;
    if !args.only.is_empty() && args.what != BenchWhat::Gpu {
        return Err(Failure::usage(bench_message(name).advise("--only is for bench gpu")));
    }
    let guard = Guard::new();
    let interrupted = || guard.is_interrupted();
    let is_told = !global.quiet && std::io::stderr().is_terminal();
    let start = Instant::now();
    let tell = |step: &str| {
        // A progress line that cannot be written does not stop the run.
        let _ = writeln!(std::io::stderr(), "{:7.1} s  {step}", start.elapsed().as_secs_f64());
    };
    let told = Told { progress: is_told.then_some(&tell), cancelled: Some(&interrupted) };
    bench(told).map_err(|error| match error {
        BenchError::Options(text) => Failure::usage(bench_message(name).because(Message::of(&text))),
        BenchError::Interrupted => Failure::Interrupted,
        // The text says everything: "no GPU: what is missing: what brings it".
        BenchError::Gpu(GpuError::Unavailable(missing)) => Failure::new(Code::Device, Message::of(&missing)),
        BenchError::Gpu(error) => pleach_cli::device_failure(error),
        BenchError::Io { operation, path, source } => {
            Failure::io(&format!("cannot {operation}"), &path, &source)
        }
        BenchError::Build(error) => pleach_cli::build_failure(&error),
        BenchError::Open(error) => pleach_cli::opening_failure(&error),
        BenchError::Threads(error) => {
            let message = Message::new(format!("cannot start threads ({error})")).at(format!("bench {name}"));
            Failure::new(Code::Limit, message.advise("use fewer, with --threads"))
        }
        BenchError::Peer(error) => Failure::new(Code::Failed, peer_message(&error)),
        error => Failure::new(Code::Failed, bench_message(name).because(Message::of(&error))),
    })
}

/// Refuses keys of a user's own where they are not measured, and beside others.
fn check_own(args: &BenchArgs, name: &str) -> Result<(), Failure> {
    if args.keys_from.is_none() {
        return Ok(());
    }
    if !matches!(args.what, BenchWhat::Keys | BenchWhat::Texts) {
        return Err(Failure::usage(bench_message(name).advise("--keys-from is for bench keys and texts")));
    }
    if args.what == BenchWhat::Texts && (args.key.is_some() || args.raw.is_some()) {
        return Err(Failure::usage(bench_message(name).advise("--key and --raw are for bench keys")));
    }
    if !args.distributions.is_empty() || !args.kinds.is_empty() || args.tuples.is_some() {
        let others = if args.what == BenchWhat::Texts { "--kinds" } else { "--distributions" };
        let message = bench_message(name).more(format!("--keys-from with {others} or --tuples"));
        return Err(Failure::usage(message.advise("the file has its own keys: give one of them")));
    }
    Ok(())
}

/// Begins the message of a kind of benchmark.
fn bench_message(name: &str) -> Message {
    Message::new(format!("bench {name}"))
}

/// Describes the failure of another engine; its own words are in brackets.
fn peer_message(error: &PeerError) -> Message {
    let PeerError { engine, operation, cause } = error;
    let message = Message::new(format!("another engine failed ({operation}: {cause})")).at(engine);
    message.advise("run it again, with fewer tuples")
}

fn lookup(args: &BenchArgs, told: Told<'_>) -> Result<Report, BenchError> {
    let mut options = if args.quick { LookupOptions::quick() } else { LookupOptions::default() };
    choose_tables(args, &mut options.tuples, &mut options.key_types);
    choose_threads(args, &mut options.threads);
    for &kind in &args.queries {
        if !options.kinds.contains(&kind) {
            options.kinds.push(kind);
        }
    }
    options.all_peers = args.all_peers;
    options.dir.clone_from(&args.dir);
    options.told = told;
    pleach_bench::run(&options)
}

fn keys(args: &BenchArgs, told: Told<'_>) -> Result<Report, BenchError> {
    let mut options = KeysOptions::new(args.quick);
    options.lookup.structures = args.structures;
    if let Some(count) = args.tuples {
        options.lookup.tuples = vec![count];
    }
    choose_threads(args, &mut options.lookup.threads);
    if !args.queries.is_empty() {
        options.lookup.kinds = vec![Queries::Hits];
        options.lookup.kinds.extend(args.queries.iter().filter(|&&kind| kind != Queries::Hits));
    }
    if !args.distributions.is_empty() {
        options.distributions.clone_from(&args.distributions);
    }
    if let Some(path) = &args.keys_from {
        let raw = args.raw.map(|key_type| (key_type, ValueType::None));
        let value_type = Some(ValueType::None).filter(|_| raw.is_none());
        let input = InputOptions { key: args.key.clone(), value_type, raw, ..InputOptions::default() };
        options.own = Some((path.display().to_string(), words(path, &input)?));
    }
    options.lookup.all_peers = args.all_peers;
    options.lookup.dir.clone_from(&args.dir);
    options.lookup.told = told;
    pleach_bench::keys::run(&options)
}

fn strategies(args: &BenchArgs, told: Told<'_>) -> Result<Report, BenchError> {
    let mut options = StrategyOptions::new(args.quick);
    choose_tables(args, &mut options.tuples, &mut options.key_types);
    options.costs = pleach_cli::tuned_costs(&Global::default());
    options.structures = args.structures;
    options.distributions.clone_from(&args.distributions);
    if !options.distributions.is_empty() {
        options.key_types = vec![KeyType::U64];
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

fn texts(args: &BenchArgs, told: Told<'_>) -> Result<Report, BenchError> {
    let mut options = TextsOptions::new(args.quick);
    if let Some(count) = args.tuples {
        options.tuples = vec![count];
    }
    if !args.kinds.is_empty() {
        options.kinds.clone_from(&args.kinds);
    }
    if let Some(path) = &args.keys_from {
        options.own = Some((path.display().to_string(), pleach_bench::texts::lines(path)?));
    }
    if let Some(repetitions) = args.repetitions {
        options.repetitions = repetitions;
    }
    options.all_peers = args.all_peers;
    options.dir.clone_from(&args.dir);
    options.told = told;
    pleach_bench::texts::measure::run(&options)
}
