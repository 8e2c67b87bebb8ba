//! `pleach-ballista-sql`: asks a cluster in SQL.

use clap::Parser;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use pleach_ballista::{Level, OpenTables, Version, client, log_to_stderr, session_config};
use std::io::Read;
use std::process::ExitCode;

/// Asks a cluster in SQL.
///
/// Tables are made with CREATE EXTERNAL TABLE, or are paths in quotes. Scheduler and executors open the same paths.
#[derive(Debug, Parser)]
#[command(name = "pleach-ballista-sql", version)]
struct Arguments {
    /// Host and port of the scheduler
    #[arg(long, default_value = "localhost:50050", value_name = "HOST:PORT")]
    scheduler: String,
    /// Run these statements, separated by semicolons; those of standard input if there are none
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    commands: Vec<String>,
    /// Number of partitions in which a query is run
    #[arg(long, default_value_t = 16, value_name = "NUMBER")]
    partitions: usize,
    /// What is written to standard error
    #[arg(long, value_enum, default_value_t)]
    log: Level,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(arguments.log);
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pleach-ballista-sql: {}", error.strip_backtrace());
            ExitCode::FAILURE
        }
    }
}

async fn run(mut arguments: Arguments) -> Result<()> {
    let config = session_config(&Version::own(), &OpenTables::default());
    let session =
        client(&arguments.scheduler, config.with_target_partitions(arguments.partitions.max(1))).await?;
    if arguments.commands.is_empty() {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        arguments.commands.push(text);
    }
    for text in &arguments.commands {
        for statement in datafusion::sql::parser::DFParser::parse_sql(text)? {
            let plan = session.state().statement_to_plan(statement).await?;
            let batches = session.execute_logical_plan(plan).await?.collect().await?;
            if batches.iter().any(|batch| batch.num_columns() > 0) {
                println!("{}", pretty_format_batches(&batches)?);
            }
        }
    }
    Ok(())
}
