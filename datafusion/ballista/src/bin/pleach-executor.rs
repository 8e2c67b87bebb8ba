//! `pleach-executor`: runs tasks of a cluster.

use clap::Parser;
use pleach_ballista::{ExecutorOptions, Level, Version, log_to_stderr, run_executor};
use std::process::ExitCode;

/// Runs tasks of a cluster.
///
/// Connections are plain text, and nobody is asked who they are: listen at addresses of a network that you trust.
#[derive(Debug, Parser)]
#[command(name = "pleach-executor", version)]
struct Arguments {
    #[command(flatten)]
    options: ExecutorOptions,
    /// What is written to standard error
    #[arg(long, value_enum, default_value_t)]
    log: Level,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(arguments.log);
    match run_executor(&arguments.options, &Version::own()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pleach-executor: {error}");
            ExitCode::FAILURE
        }
    }
}
