//! `pleach advise`: says before a build what it would make of a table, and with which command.
//!
//! An index that exists already is measured in the same way, so that what was said before can be compared.

use super::tune;
use crate::advise::{
    Choice, Estimator, Input, Report, SAMPLE_BYTES, Sample, Told, Tries, best_first, gpu_pays_for, layouts,
    look_up_ns_at_rest,
};
use crate::cli::{AdviseArgs, BuildArgs, Global, TableArgs, Verify};
use crate::errors::source_failure;
use crate::failure::{ExitStatus, Failure};
use crate::inputs::is_index;
use crate::output;
use crate::progress::Progress;
use crate::search;
use crate::tables;
use pleach_builder::Layout;
use pleach_builder::publish::Rules;
use pleach_format::Meaning;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of the table that must fit a type at first.
const TRIED_BYTES: u64 = 1 << 20;
/// Time to try a type on more of it.
const AGAIN: Duration = Duration::from_millis(800);
/// Time for measuring an index.
const PATIENCE: Duration = Duration::from_secs(5);

pub fn run(args: &AdviseArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    if let [path] = args.table.inputs.as_slice()
        && is_index(path)
    {
        return of_index(path, global, started);
    }
    let output = args.output.clone().unwrap_or_else(|| output_of(&args.table.inputs));
    let build = BuildArgs {
        table: args.table.clone(),
        output,
        keep: None,
        force: args.force,
        layout: Layout::default(),
        values: None,
        overlap: args.overlap,
        unique: args.unique,
        sorted: false,
        memory: args.memory,
        threads: args.threads,
        temp: args.temp.clone(),
        metrics: None,
        dry_run: false,
    };
    advise(&build, global, started, "advise")
}

/// Says what a build would make, for `build --dry-run`.
pub fn dry_run(args: &BuildArgs, global: &Global) -> Result<ExitStatus, Failure> {
    advise(args, global, Instant::now(), "dry-run")
}

fn advise(
    args: &BuildArgs,
    global: &Global,
    started: Instant,
    command: &'static str,
) -> Result<ExitStatus, Failure> {
    let given = &args.table.inputs;
    // Folders and patterns become the files in them, so that each is checked.
    let inputs = pleach_input::expanded(given).map_err(|error| source_failure(&error))?;
    let table = TableArgs { inputs, ..args.table.clone() };
    let args = BuildArgs { table, ..args.clone() };
    tables::check(&args)?;
    let files = output::inputs(args.table.inputs.iter().map(PathBuf::as_path));
    output::check(&args.output, &Rules::index(files, args.force))?;
    let progress = Progress::new(global);
    let input = Input::new(&args.table).map_err(|failure| progress.failed(failure))?;
    let costs = tune::load(global);
    let estimator = Estimator { input: &input, global, progress: &progress, costs: &costs, started };
    let is_advice = command == "advise";
    let (first, mut choices, is_cut) = if is_advice {
        all_choices(&args, &estimator)
    } else {
        estimator.choices(&args, &[], true).map(|(sample, choices)| (sample, choices, false))
    }
    .map_err(|failure| progress.failed(failure))?;
    drop(progress);
    for choice in &mut choices {
        if let Some(args) = &mut choice.args {
            args.table.inputs.clone_from(given);
        }
    }
    let report = Report { command, inputs: given, sample: Some(&first), choices: &choices, is_cut, started };
    report.print(global)?;
    Ok(ExitStatus::Success)
}

/// Estimates all types and layouts that fit, as long as there is time: returns the first rows, the choices, the best
/// of which is the first, and true if some are missing.
fn all_choices(args: &BuildArgs, estimator: &Estimator<'_>) -> Result<(Sample, Vec<Choice>, bool), Failure> {
    let mut tries = Tries {
        input: estimator.input,
        global: estimator.global,
        until: estimator.tries_until(),
        each: Duration::ZERO,
        bytes: TRIED_BYTES,
    };
    let with = |table| BuildArgs { table, ..args.clone() };
    let wanted = layouts(args);
    let mut tables = tries.tables(&args.table)?;
    let mut found = estimator.choices(&with(tables.remove(0)), &wanted, true);
    if matches!(&found, Err(failure) if !matches!(failure, Failure::Interrupted)) {
        // Rows that come later may be of another type.
        (tries.bytes, tries.each) = (SAMPLE_BYTES, AGAIN);
        tables = tries.tables(&args.table)?;
        found = estimator.choices(&with(tables.remove(0)), &wanted, true);
    }
    let (sample, mut choices) = found?;
    best_first(&mut choices);
    let mut is_cut = estimator.is_over();
    for table in tables {
        if estimator.is_late() {
            is_cut = true;
            break;
        }
        match estimator.choices(&with(table), &[], false) {
            Ok((_, found)) => choices.extend(found),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            // Not all texts have such keys.
            Err(_) => {}
        }
    }
    Ok((sample, choices, is_cut))
}

/// Returns the name of the file to build from these inputs.
fn output_of(inputs: &[PathBuf]) -> PathBuf {
    let first = inputs.first().filter(|path| path.exists()).and_then(|path| path.file_name());
    let name = first.map(|name| name.to_string_lossy().into_owned());
    // What is before the first point: `t.csv.gz` becomes `t.pleach`.
    let stem = name.as_deref().and_then(|name| name.split('.').next()).filter(|stem| !stem.is_empty());
    PathBuf::from(format!("{}.pleach", stem.unwrap_or("table")))
}

/// Measures an index.
fn of_index(path: &Path, global: &Global, started: Instant) -> Result<ExitStatus, Failure> {
    let index = search::open(path, global, Verify::Header)?;
    let meta = index.meta().map_err(crate::errors::reading(path))?;
    let record = search::record(&index, path)?;
    let measured = |number| Told { number, is_estimated: false };
    let ns = look_up_ns_at_rest(&index, started + PATIENCE)?;
    let tuples = index.len();
    let value = Meaning::new(index.value_type(), &meta.value_logical).to_string();
    let choice = Choice {
        args: None,
        key_type: Meaning::new(index.key_type(), &meta.key_logical).to_string(),
        value_type: record.map_or(value, |record| record.to_string()),
        layout: if meta.layout.is_empty() {
            Layout::default()
        } else {
            meta.layout.parse().unwrap_or_default()
        },
        is_approximate: index.approximate().map_err(crate::errors::reading(path))?.is_some(),
        tuples: measured(tuples as f64),
        bytes_per_tuple: measured(index.file_bytes() as f64 / tuples.max(1) as f64),
        build_seconds: 0.0,
        build_memory_bytes: 0,
        look_up_ns: ns.map(measured),
        gpu_look_ups: ns.and_then(|ns| gpu_pays_for(&index, &tune::load(global), ns)),
    };
    let inputs = [path.to_owned()];
    let report = Report {
        command: "advise",
        inputs: &inputs,
        sample: None,
        choices: std::slice::from_ref(&choice),
        is_cut: false,
        started,
    };
    report.print(global)?;
    Ok(ExitStatus::Success)
}
