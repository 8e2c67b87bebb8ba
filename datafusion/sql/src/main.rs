//! `pleach-sql`: asks Pleach files and sets in SQL.

mod arguments;
mod failure;
mod output;
mod tables;

use arguments::Arguments;
use clap::Parser;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::DFParserBuilder;
use failure::Failure;
use pleach_datafusion::Error;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return failure::of_arguments(&error),
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::failed(format!("cannot start threads: {error}: try again")).end(),
    };
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = run(&arguments) => ended,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        }
    });
    // Threads that still read for a query that failed are not waited for.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.end(),
    }
}

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let session = session(arguments)?;
    for table in &arguments.tables {
        tables::register(&session, table).await?;
    }
    for text in scripts(arguments)? {
        let statements =
            DFParserBuilder::new(text.as_str()).build().and_then(|mut parser| parser.parse_statements());
        for statement in statements.map_err(|error| Failure::usage(Error::line_of(&error)))? {
            let plan = session.state().statement_to_plan(statement).await.map_err(Failure::planning)?;
            let frame = session.execute_logical_plan(plan).await.map_err(Failure::planning)?;
            output::write(frame, arguments.format).await?;
        }
    }
    Ok(())
}

/// Returns the texts to run, in order.
fn scripts(arguments: &Arguments) -> Result<Vec<String>, Failure> {
    let mut texts = arguments.commands.clone();
    for path in &arguments.files {
        if path.as_os_str() == "-" {
            texts.push(standard_input()?);
            continue;
        }
        let text = std::fs::read_to_string(path);
        texts.push(text.map_err(|error| Failure::io("read", &path.display().to_string(), &error))?);
    }
    if texts.is_empty() {
        texts.push(standard_input()?);
    }
    Ok(texts)
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::io("read", "standard input", &error))?;
    Ok(text)
}

fn session(arguments: &Arguments) -> Result<SessionContext, Failure> {
    let mut config = SessionConfig::from_env()
        .map_err(|error| Failure::usage(Error::line_of(&error)))?
        .with_information_schema(true);
    if let Some(partitions) = arguments.partitions {
        config = config.with_target_partitions(partitions.get());
    }
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(bytes) = arguments.memory {
        runtime = runtime.with_memory_limit(bytes, 1.0);
    }
    let runtime = runtime.build().map_err(|error: DataFusionError| Failure::engine(&error))?;
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(Arc::new(runtime))
        .with_default_features();
    let state = pleach_datafusion::register(builder).build();
    Ok(tables::with_paths(SessionContext::new_with_state(state)))
}
