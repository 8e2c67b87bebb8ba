//! `pleach-scheduler`: plans queries of a cluster, and gives their tasks to executors.

use clap::Parser;
use pleach_ballista::{Level, SchedulerOptions, Version, log_to_stderr, run_scheduler};
use std::process::ExitCode;

/// Plans queries of a cluster, and gives their tasks to executors.
///
/// Connections are plain text, and nobody is asked who they are: listen at addresses of a network that you trust.
#[derive(Debug, Parser)]
#[command(name = "pleach-scheduler", version)]
struct Arguments {
    #[command(flatten)]
    options: SchedulerOptions,
    /// What is written to standard error
    #[arg(long, value_enum, default_value_t)]
    log: Level,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(arguments.log);
    let version = Version::own();
    let is_listening = |address| println!("{version} takes queries at {address}");
    match run_scheduler(arguments.options, version.clone(), is_listening).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pleach-scheduler: {error}");
            ExitCode::FAILURE
        }
    }
}
