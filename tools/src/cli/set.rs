//! The arguments of `set` and its commands.

use crate::cli::making::{
    BuildArgs, GenerationsArgs, OverlapHow, RebuildArgs, RollbackArgs, TableArgs, Unique, ValuesHow,
};
use crate::{help, parse};
use clap::{Args, Subcommand};
use pleach_builder::Layout;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `set`.
#[derive(Clone, Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct SetArgs {
    /// The command.
    #[command(subcommand)]
    pub command: SetCommand,
}

/// The commands of sets.
#[derive(Clone, Debug, Subcommand)]
pub enum SetCommand {
    /// Build a set from tables: files of one range of keys each, and a manifest
    #[command(long_about = help::SET_BUILD, after_help = help::SET_BUILD_EXAMPLES)]
    Build(Box<SetBuildArgs>),
    /// Write files of a set from tables, and print their entries; nobody sees the files before they are committed
    #[command(long_about = help::SET_WRITE, after_help = help::SET_WRITE_EXAMPLES)]
    Write(Box<SetBuildArgs>),
    /// Publish the next generation of a set, with files that were written before
    #[command(long_about = help::SET_COMMIT, after_help = help::SET_COMMIT_EXAMPLES)]
    Commit(CommitArgs),
    /// Apply a batch of changes to a set: only the files that they meet are made anew
    #[command(long_about = help::SET_REBUILD, after_help = help::SET_REBUILD_EXAMPLES)]
    Rebuild(Box<RebuildArgs>),
    /// Delete old generations, and files that nobody needs
    #[command(long_about = help::SET_SWEEP, after_help = help::SET_SWEEP_EXAMPLES)]
    Sweep(SweepArgs),
    /// List the generations of a set
    Generations(GenerationsArgs),
    /// Publish an old generation of a set again, as the next one
    Rollback(RollbackArgs),
}

/// Arguments of `set build` and `set write`.
#[derive(Clone, Debug, Args)]
pub struct SetBuildArgs {
    /// The tables.
    #[command(flatten)]
    pub table: TableArgs,
    /// Folder of the set; if it is a set, the files are those of its next generation
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Tuples of a file, such as 1000000 or 2^24; equal keys are never divided [default: that of the set, else 2^24]
    #[arg(long, value_name = "N", value_parser = parse::count, conflicts_with = "partitions")]
    pub partition_tuples: Option<u64>,
    /// Number of files, of as many tuples each; fewer if there are few keys
    #[arg(long, value_name = "N", value_parser = parse::count)]
    pub partitions: Option<u64>,
    /// Regions of the files, as for build
    #[arg(long, value_name = "L,...", default_value = "lines,spine,grid", value_parser = parse::layout)]
    pub layout: Layout,
    /// How texts, byte strings and records are stored, as for build
    #[arg(long, value_name = "HOW")]
    pub values: Option<ValuesHow>,
    /// Treatment of intervals that overlap
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub overlap: OverlapHow,
    /// Treatment of duplicate keys [default: keep all, in input order]
    #[arg(long, value_name = "WHICH")]
    pub unique: Option<Unique>,
    /// Refuse input that is not sorted by key, instead of sorting it
    #[arg(long)]
    pub sorted: bool,
    /// Memory to use, such as 256M or 4GiB; larger input is sorted on disk [default: half of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub memory: Option<u64>,
    /// Threads to use; 0 uses all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
    /// Folder for sorting on disk [default: DIR]
    #[arg(long, value_name = "DIR")]
    pub temp: Option<PathBuf>,
}

impl SetBuildArgs {
    /// Returns the arguments of a build of one file with these options.
    pub fn of_file(&self) -> BuildArgs {
        BuildArgs {
            table: self.table.clone(),
            output: self.output.clone(),
            keep: None,
            force: false,
            layout: self.layout,
            values: self.values,
            overlap: self.overlap,
            unique: self.unique,
            sorted: self.sorted,
            memory: self.memory,
            threads: self.threads,
            temp: self.temp.clone(),
            metrics: None,
            dry_run: false,
        }
    }
}

/// Arguments of `set commit`.
#[derive(Clone, Debug, Args)]
pub struct CommitArgs {
    /// Folder of the set
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Files with the entries that `set write` printed; '-' is standard input
    #[arg(value_name = "ENTRIES", required = true)]
    pub entries: Vec<PathBuf>,
    /// Publish these files alone, without those of the current generation
    #[arg(long)]
    pub replace: bool,
    /// Age at which sweeps delete files that no manifest names, such as 24h; files older than half of it are refused
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse::age)]
    pub grace: Duration,
}

/// Arguments of `set sweep`.
#[derive(Clone, Debug, Args)]
pub struct SweepArgs {
    /// Folder of the set
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Delete files that no kept generation names once they are older than this, such as 30m, 24h or 7d; longer than
    /// any build of the set takes, and than any reader keeps a generation
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse::age)]
    pub grace: Duration,
    /// Generations to keep, the current one included; one is also kept while its successor is younger than the grace
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub keep: usize,
    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
}
