//! The command `pleach-papers`: measures a table or a figure of a paper.

use clap::{Parser, Subcommand};
use pleach_bench::BenchError;
use pleach_bench::gpu::GpuReport;
use pleach_papers::gpu::command::GpuPaper;

/// Measure a table or a figure of a paper.
#[derive(Parser)]
#[command(name = "pleach-papers")]
struct Cli {
    /// Print a JSON document
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    paper: Paper,
}

/// One variant for each table: its arguments, and what [`Paper::run`] calls.
#[derive(Subcommand)]
enum Paper {
    #[command(flatten)]
    Gpu(GpuPaper),
}

/// A result, for people and for scripts.
struct Printed {
    text: String,
    json: String,
}

impl From<GpuReport> for Printed {
    fn from(report: GpuReport) -> Self {
        Self { text: report.to_text(), json: report.to_json().to_string() }
    }
}

impl Paper {
    fn run(self) -> Result<Printed, BenchError> {
        match self {
            Self::Gpu(paper) => Ok(paper.run()?.into()),
        }
    }
}

fn main() {
    let Cli { json, paper } = Cli::parse();
    match paper.run() {
        Ok(printed) if json => println!("{}", printed.json),
        Ok(printed) => print!("{}", printed.text),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
