//! `pleach`: builds, searches, checks and explains Pleach files.
//!
//! This file parses the arguments, dispatches to [`cmd`], and converts the result into an exit code and at
//! most one line on standard error. Scripts rely on the contract of the command line (options, output, exit
//! codes): see `docs/DESIGN.md`, "Command line".

mod any;
mod cli;
mod cmd;
mod device;
mod failure;
mod help;
mod interrupt;
mod keys;
mod limits;
mod meant;
mod memory;
mod output;
mod parse;
mod progress;
mod render;
mod search;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use cli::{Cli, Command};
use failure::{ExitStatus, Failure};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    memory::prepare();
    limits::raise();
    interrupt::install();
    failure::set_json(wants_json());
    let done = parse_arguments().and_then(|cli| {
        failure::set_json(cli.global.json);
        dispatch(&cli)
    });
    if !interrupt::claim() {
        // An interruption takes precedence: its thread prints the last line.
        interrupt::wait_for_end();
    }
    let code = match done {
        Ok(status) => status.code(),
        Err(failure) => {
            if let Some(line) = failure.line() {
                // If standard error is closed, the line cannot be reported anywhere.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            failure.code()
        }
    };
    ExitCode::from(code)
}

/// Returns true if `--json` is among the arguments, even if others are invalid.
fn wants_json() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

/// Parses the arguments. Prints help and version, which are success.
fn parse_arguments() -> Result<Cli, Failure> {
    let parsed = Cli::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            failure::print(error.render().to_string().as_bytes()).err().unwrap_or(Failure::Done)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Failure::Help(error.render().to_string()),
        _ => Failure::from_clap(&error, &command_name()),
    })
}

/// Returns `pleach get` if the arguments begin with it, otherwise `pleach`.
fn command_name() -> String {
    let command = Cli::command();
    // Arguments may be invalid UTF-8.
    std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .find(|word| !word.starts_with('-'))
        .filter(|word| command.find_subcommand(word).is_some())
        .map_or("pleach".to_owned(), |word| format!("pleach {word}"))
}

fn dispatch(cli: &Cli) -> Result<ExitStatus, Failure> {
    let global = &cli.global;
    if global.json {
        memory::tell_as_json();
    }
    if matches!(cli.command, Command::Demo(_) | Command::Bench(_) | Command::Tune(_)) {
        // These commands use the thread pool themselves, not only through the libraries.
        pleach_builder::pool::ready();
    }
    match &cli.command {
        Command::Build(args) => cmd::build::run(args, global),
        Command::Get(args) => cmd::get::run(args, global),
        Command::Range(args) => cmd::range::run(args, global),
        Command::Inspect(args) => cmd::inspect::run(args, global),
        Command::Fsck(args) => cmd::fsck::run(args, global),
        Command::Export(args) => cmd::export::run(args, global),
        Command::Rebuild(args) => cmd::rebuild::run(args, global),
        Command::Generations(args) => cmd::generations::run(args, global),
        Command::Rollback(args) => cmd::rollback::run(args, global),
        Command::Compact(args) => cmd::compact::run(args, global),
        Command::Select(args) => cmd::relation::select(args, global),
        Command::Project(args) => cmd::relation::project(args, global),
        Command::Reduce(args) => cmd::relation::reduce(args, global),
        Command::Union(args) => cmd::relation::union(args, global),
        Command::Intersect(args) => cmd::relation::intersect(args, global),
        Command::Difference(args) => cmd::relation::difference(args, global),
        Command::Join(args) => cmd::relation::join(args, global),
        Command::Product(args) => cmd::relation::product(args, global),
        Command::Demo(args) => cmd::demo::run(args, global),
        Command::Devices(args) => cmd::devices::run(args, global),
        Command::Bench(args) => cmd::bench::run(args, global),
        Command::Tune(args) => cmd::tune::run(args, global),
        Command::Completions(args) => cmd::completions::run(args, global),
        Command::Man(args) => cmd::man::run(args, global),
    }
}
