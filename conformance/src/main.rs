//! `pleach-conformance`: writes the kit, asks drivers, and answers as one.

use anyhow::Result;
use clap::{Parser, Subcommand};
use pleach_conformance::{random, run, serve, write_kit};
use std::path::PathBuf;
use std::process::ExitCode;

/// Shows whether a reader of Pleach files is right.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the fixed kit into a folder
    Kit {
        /// The folder, which is spec/vectors for the kit of the repository
        folder: PathBuf,
    },
    /// Write more files, which depend on a seed, into a folder
    Vectors {
        /// Any number
        seed: u64,
        /// The folder
        folder: PathBuf,
        /// Number of files
        #[arg(long, default_value_t = 40)]
        files: u64,
    },
    /// Ask a driver for all answers of a kit
    Run {
        /// Level of the driver: 1, 2 or 3
        #[arg(long, value_parser = clap::value_parser!(u8).range(1..=3))]
        level: u8,
        /// Folder of the kit
        #[arg(long, default_value = "spec/vectors")]
        kit: PathBuf,
        /// Folder of more files
        #[arg(long)]
        vectors: Option<PathBuf>,
        /// The driver stands above the interface of a library: it may refuse without the rule, and skip files
        #[arg(long = "binding")]
        is_binding: bool,
        /// Seconds in which an answer must come
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// The driver and its arguments
        #[arg(required = true, last = true)]
        command: Vec<String>,
    },
    /// Answer requests from standard input, by the reader of this repository
    Serve,
}

fn main() -> Result<ExitCode> {
    match Arguments::parse().command {
        Command::Kit { folder } => write_kit(&folder)?,
        Command::Vectors { seed, folder, files } => random::write(seed, files, &folder)?,
        Command::Run { level, kit, vectors, is_binding, seconds, command } => {
            let folders: Vec<PathBuf> = std::iter::once(kit).chain(vectors).collect();
            let outcome = run::run(&run::Options { level, folders, seconds, is_binding, command })?;
            print!("{outcome}");
            return Ok(if outcome.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Serve => serve::serve()?,
    }
    Ok(ExitCode::SUCCESS)
}
