//! The commands of `pleach`.
//!
//! [`run`] parses the arguments, dispatches to a module of `cmd`, and converts the result into an exit code and
//! at most one line on standard error. Scripts rely on the contract of the command line (options, output, exit
//! codes): see `docs/DESIGN.md`, "Command line".
//!
//! This library exists for the programs `pleach` and `pleach-bench`, which share that contract. It is not an
//! API: any version may change everything in it. Programs use the crate `pleach`.

mod advise;
mod any;
mod changes;
mod cli;
mod cmd;
mod device;
mod errors;
mod failure;
mod found;
mod help;
mod inputs;
mod interrupt;
mod keys;
mod limits;
mod meant;
mod memory;
mod message;
mod metrics;
mod output;
mod parse;
mod place;
mod progress;
mod random;
mod render;
mod request;
mod search;
mod stdout;
mod tables;
mod threads;

pub use cli::{Cli, Global};
pub use cmd::tune::load as tuned_costs;
pub use errors::{build_failure, device as device_failure, opening as opening_failure};
pub use failure::{Code, ExitStatus, Failure};
pub use interrupt::Guard;
pub use memory::Allocator;
pub use message::Message;
pub use output::{check as check_output, inputs};
pub use parse::{count, key_type, threads};
pub use render::table::aligned;
pub use stdout::print;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, ValueEnum};
use cli::Command;
use render::terminal::Color;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Arguments of a program, and what it does with them.
pub trait CommandLine: CommandFactory + FromArgMatches {
    /// Returns the options of every command.
    fn global(&self) -> &Global;

    /// Does what the arguments request.
    ///
    /// # Errors
    /// Why that was not done.
    fn execute(&self) -> Result<ExitStatus, Failure>;
}

/// Runs a program: its main function.
pub fn run<C: CommandLine>() -> ExitCode {
    ExitCode::from(run_with::<C>(std::env::args_os().collect()))
}

/// Runs a program with these arguments, the first of which is its name, and returns its exit code.
pub fn run_with<C: CommandLine>(arguments: Vec<OsString>) -> u8 {
    memory::prepare();
    limits::raise();
    interrupt::install();
    let arguments = place::without_secrets(arguments);
    failure::set_json(wants_json(&arguments));
    render::terminal::set_color(wanted_color(&arguments));
    let done = parse_arguments(&arguments).and_then(|line: C| {
        let is_json = line.global().json;
        failure::set_json(is_json);
        if is_json {
            memory::tell_as_json();
        }
        line.execute()
    });
    if !interrupt::claim() {
        // An interruption takes precedence: its thread prints the last line.
        interrupt::wait_for_end();
    }
    match done {
        Ok(status) => status.code(),
        Err(failure) => {
            if let Some(line) = failure.line() {
                // If standard error is closed, the line cannot be reported anywhere.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            failure.code()
        }
    }
}

/// Runs a command of `pleach` within another program, whose handlers of signals stay. Now and then `is_stopped` is
/// asked whether to end the command. What a command prints, it prints: give it an output file and `--quiet`.
///
/// # Errors
/// The name of the kind of the failure ([`Code::name`]), and its line.
pub fn execute(
    arguments: Vec<OsString>,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<(), (&'static str, String)> {
    let arguments = place::without_secrets(arguments);
    let run = || parse_arguments(&arguments).and_then(|line: Cli| line.execute());
    match interrupt::unless(is_stopped, run) {
        Ok(_) | Err(Failure::Done | Failure::ClosedPipe) => Ok(()),
        Err(failure @ (Failure::Help(_) | Failure::Fault { .. } | Failure::Interrupted)) => {
            Err((failure.kind(), failure.text()))
        }
    }
}

/// Returns true if `--json` is among the arguments, even if others are invalid.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "--json")
}

/// Returns what `--color` among the arguments says, even if others are invalid.
fn wanted_color(arguments: &[OsString]) -> Color {
    let words =
        || arguments.iter().skip(1).take_while(|word| *word != "--").map(|word| word.to_string_lossy());
    let spaced = words()
        .zip(words().skip(1))
        .filter(|(word, _)| word == "--color")
        .map(|(_, value)| value.into_owned());
    let joined = words().filter_map(|word| word.strip_prefix("--color=").map(str::to_owned));
    spaced.chain(joined).find_map(|value| Color::from_str(&value, true).ok()).unwrap_or_default()
}

/// Parses the arguments. Prints help and version, which are success.
fn parse_arguments<C: CommandLine>(arguments: &[OsString]) -> Result<C, Failure> {
    let parsed =
        C::command().try_get_matches_from(arguments).and_then(|matches| C::from_arg_matches(&matches));
    parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            stdout::print_people(&error.render().ansi().to_string()).err().unwrap_or(Failure::Done)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Failure::Help(error.render().to_string()),
        _ => Failure::from_clap(&error, &command_name(&C::command(), arguments)),
    })
}

/// Returns `pleach get` if the arguments begin with that command, otherwise the name of the program.
fn command_name(command: &clap::Command, arguments: &[OsString]) -> String {
    let program = command.get_name();
    // Arguments may be invalid UTF-8.
    arguments
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .find(|word| !word.starts_with('-'))
        .filter(|word| command.find_subcommand(word).is_some())
        .map_or(program.to_owned(), |word| format!("{program} {word}"))
}

impl CommandLine for Cli {
    fn global(&self) -> &Global {
        &self.global
    }

    fn execute(&self) -> Result<ExitStatus, Failure> {
        let global = Global { urls: self.urls.clone(), ..self.global.clone() };
        let done = dispatch(&self.command, &global);
        place::tell(&global)?;
        done
    }
}

fn dispatch(command: &Command, global: &Global) -> Result<ExitStatus, Failure> {
    if matches!(command, Command::Advise(_) | Command::Demo(_) | Command::Tune(_)) {
        // These commands use the thread pool themselves, not only through the libraries.
        pleach_builder::pool::ready();
    }
    match command {
        Command::Build(args) => cmd::build::run(args, global),
        Command::Advise(args) => cmd::advise::run(args, global),
        Command::Get(args) => cmd::get::run(args, global),
        Command::Range(args) => cmd::range::run(args, global),
        Command::Inspect(args) => cmd::inspect::run(args, global),
        Command::Fsck(args) => cmd::fsck::run(args, global),
        Command::Export(args) => cmd::export::run(args, global),
        Command::Rebuild(args) => cmd::rebuild::run(args, global),
        Command::Generations(args) => cmd::generations::run(args, global),
        Command::Rollback(args) => cmd::rollback::run(args, global),
        Command::Upgrade(args) => cmd::upgrade::run(args, global),
        Command::Compact(args) => cmd::compact::run(args, global),
        Command::Set(args) => cmd::set::run(args, global),
        Command::Select(args) => cmd::relation::select(args, global),
        Command::Project(args) => cmd::relation::project(args, global),
        Command::Reduce(args) => cmd::relation::reduce(args, global),
        Command::Union(args) => cmd::relation::union(args, global),
        Command::Intersect(args) => cmd::relation::intersect(args, global),
        Command::Sample(args) => cmd::sample::run(args, global),
        Command::Stats(args) => cmd::stats::run(args, global),
        Command::Diff(args) => cmd::diff::run(args, global),
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
