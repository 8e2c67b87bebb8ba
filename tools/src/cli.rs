//! The arguments of every command, as clap sees them. Long texts and examples are in [`crate::help`].
//!
//! Arguments that can be checked without a file (types, sizes, layouts, devices) are checked here, so that
//! an invalid one is a usage error before anything is opened.

pub mod making;
pub mod relation;
pub mod set;
pub mod tables;

pub use making::{
    BuildArgs, GenerationsArgs, Header, IntervalEnd, Method, OverlapHow, RebuildArgs, RollbackArgs,
    TableArgs, Unique,
};

use crate::cli::tables::{Sides, Tables};
use crate::parse::{Device, How};
use crate::render::terminal::Color;
use crate::{help, parse};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use pleach_builder::Layout;
use pleach_input::Format;
use std::ffi::OsString;
use std::path::PathBuf;

/// Build a file from a table of keys and values, and look keys up in it.
#[derive(Debug, Parser)]
#[command(
    name = "pleach",
    version,
    propagate_version = false,
    arg_required_else_help = true,
    subcommand_required = true,
    long_about = help::PLEACH,
    after_help = help::PLEACH_EXAMPLES
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// Options of URLs.
    #[command(flatten)]
    pub urls: Urls,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Print JSON: one document, or one object per line (get, range). 64-bit integers are strings
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only data, without progress and summary
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Check this much of a file before its contents are used [default: touched for range and up to 10^5
    /// keys, else header]
    #[arg(long, global = true, value_name = "HOW")]
    pub verify: Option<Verify>,
    /// Answer without files of a set that cannot be opened: say which these are, and exit with 4
    #[arg(long, global = true)]
    pub partial: bool,
    /// Print and parse dates, times, decimals and uuids as the stored integers
    #[arg(long, global = true)]
    pub raw_values: bool,
    /// Use colours in text for people
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Options of URLs, which [`Cli`] has.
    #[arg(skip)]
    pub urls: Urls,
}

/// Options of every command for files and sets that are elsewhere.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of URLs")]
pub struct Urls {
    /// Folder where whole files are kept [default: $PLEACH_CACHE, else that of the user]
    #[arg(long, global = true, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Most bytes of whole files to download, such as 10GiB [default: 1GiB]
    #[arg(long, global = true, value_name = "BYTES", value_parser = parse::size)]
    pub max_download: Option<u64>,
    /// Download whole files, instead of the blocks that each key needs
    #[arg(long, global = true)]
    pub whole: bool,
    /// Say at the end how many requests were sent, and how many bytes
    #[arg(long, global = true)]
    pub stats: bool,
}

/// Part of a file that is checked before its contents are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verify {
    /// Superblock and section table
    #[value(alias = "none")]
    Header,
    /// Also each block of 8 KiB that a search reads
    Touched,
    /// Every byte, before the first search
    Full,
}

impl From<Verify> for pleach::Verify {
    fn from(verify: Verify) -> Self {
        match verify {
            Verify::Header => Self::Header,
            Verify::Touched => Self::Touched,
            Verify::Full => Self::Full,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a file from tables (CSV, TSV, NDJSON, Parquet, Arrow, NumPy, raw binary) or from sequences (FASTA, FASTQ)
    #[command(long_about = help::BUILD, after_help = help::BUILD_EXAMPLES)]
    Build(Box<BuildArgs>),
    /// Say before a build how large the file and how fast look-ups will be, and which command builds it
    #[command(long_about = help::ADVISE, after_help = help::ADVISE_EXAMPLES)]
    Advise(Box<AdviseArgs>),
    /// Look keys up
    #[command(long_about = help::GET, after_help = help::GET_EXAMPLES)]
    Get(GetArgs),
    /// Print the tuples between two keys, in order
    #[command(long_about = help::RANGE, after_help = help::RANGE_EXAMPLES)]
    Range(RangeArgs),
    /// Show the contents of a file, even a damaged one
    #[command(long_about = help::INSPECT, after_help = help::INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Check every byte of a file
    #[command(long_about = help::FSCK, after_help = help::FSCK_EXAMPLES)]
    Fsck(FsckArgs),
    /// Print tuples drawn by chance, in key order
    #[command(long_about = help::SAMPLE, after_help = help::SAMPLE_EXAMPLES)]
    Sample(SampleArgs),
    /// Show how keys and values of a file are spread
    #[command(long_about = help::STATS, after_help = help::STATS_EXAMPLES)]
    Stats(StatsArgs),
    /// Print the tuples in which two files differ
    #[command(long_about = help::DIFF, after_help = help::DIFF_EXAMPLES)]
    Diff(DiffArgs),
    /// Write a file's tuples as CSV, TSV, Parquet or Arrow
    #[command(long_about = help::EXPORT, after_help = help::EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Apply a batch of changes to a file, as its next generation
    #[command(long_about = help::REBUILD, after_help = help::REBUILD_EXAMPLES)]
    Rebuild(RebuildArgs),
    /// List the generations of a file: the current one and the kept ones
    #[command(long_about = help::GENERATIONS, after_help = help::GENERATIONS_EXAMPLES)]
    Generations(GenerationsArgs),
    /// Make an old generation of a file current again
    #[command(long_about = help::ROLLBACK, after_help = help::ROLLBACK_EXAMPLES)]
    Rollback(RollbackArgs),
    /// Give files of the last format before this one the form of this one
    #[command(long_about = help::UPGRADE, after_help = help::UPGRADE_EXAMPLES)]
    Upgrade(UpgradeArgs),
    /// Merge several files into one
    #[command(long_about = help::COMPACT, after_help = help::COMPACT_EXAMPLES)]
    Compact(CompactArgs),
    /// Build, change and sweep sets: tables of several files, which other commands read as they read a file
    #[command(long_about = help::SET, after_help = help::SET_EXAMPLES)]
    Set(set::SetArgs),
    /// Write the tuples for which a condition is true
    #[command(long_about = help::SELECT, after_help = help::SELECT_EXAMPLES)]
    Select(relation::SelectArgs),
    /// Write tuples with other keys and values, from columns, fields and bits
    #[command(long_about = help::PROJECT, after_help = help::PROJECT_EXAMPLES)]
    Project(relation::ProjectArgs),
    /// Combine the values of each key into one tuple
    #[command(long_about = help::REDUCE, after_help = help::REDUCE_EXAMPLES)]
    Reduce(relation::ReduceArgs),
    /// Write the keys that occur in any of several files
    #[command(long_about = help::UNION, after_help = help::UNION_EXAMPLES)]
    Union(relation::ManyArgs),
    /// Write the keys that occur in all of several files
    #[command(long_about = help::INTERSECT, after_help = help::INTERSECT_EXAMPLES)]
    Intersect(relation::ManyArgs),
    /// Write the keys of one file that do not occur in another
    #[command(long_about = help::DIFFERENCE, after_help = help::DIFFERENCE_EXAMPLES)]
    Difference(relation::DifferenceArgs),
    /// Pair the values of two files by their keys
    #[command(long_about = help::JOIN, after_help = help::JOIN_EXAMPLES)]
    Join(relation::JoinArgs),
    /// Pair every tuple of one file with every tuple of another
    #[command(long_about = help::PRODUCT, after_help = help::PRODUCT_EXAMPLES)]
    Product(relation::ProductArgs),
    /// Build, search and check generated data, in seconds
    #[command(long_about = help::DEMO, after_help = help::DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Show the CPU features and GPUs, and which of them are used
    #[command(long_about = help::DEVICES, after_help = help::DEVICES_EXAMPLES)]
    Devices(DevicesArgs),
    /// Measure look-ups beside other engines and the machine's own limit
    #[command(long_about = help::BENCH, after_help = help::BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Measure this machine, so that batches are looked up the fastest way
    #[command(long_about = help::TUNE, after_help = help::TUNE_EXAMPLES)]
    Tune(TuneArgs),
    /// Print a completion script for a shell
    #[command(long_about = help::COMPLETIONS, after_help = help::COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write a manual page for each command into a folder
    #[command(long_about = help::MAN, after_help = help::MAN_EXAMPLES)]
    Man(ManArgs),
}

/// Arguments of `compact`.
#[derive(Clone, Debug, Args)]
pub struct CompactArgs {
    /// Files to merge, all of the same types; for equal keys, the tuples of an earlier file come first
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// File to build; an existing Pleach file is replaced in one step
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Merge files of hashes or prefixes, although equal keys may stand for different ones
    #[arg(long)]
    pub approximate: bool,
    /// Number of old generations of the output to keep, as FILE.g1, FILE.g2 and so on; older ones are removed
    /// [default: keep none, remove none]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Replace the output even if it is not a Pleach file, but never a file that is merged
    #[arg(long)]
    pub force: bool,
    /// Regions of the new file, as for build [default: those of the first FILE]
    #[arg(long, value_name = "L,...", value_parser = parse::layout)]
    pub layout: Option<Layout>,
    /// Treatment of duplicate keys [default: keep all]
    #[arg(long, value_name = "WHICH")]
    pub unique: Option<Unique>,
    /// Leave out damaged tuples, instead of refusing the file
    #[arg(long)]
    pub salvage: bool,
    /// Threads to use; 0 uses all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
    /// Write metrics of the run for Prometheus to PATH, also if it fails
    #[arg(long, value_name = "PATH")]
    pub metrics: Option<PathBuf>,
}

/// Arguments of `advise`.
#[derive(Clone, Debug, Args)]
pub struct AdviseArgs {
    /// The tables, or one Pleach file to measure.
    #[command(flatten)]
    pub table: TableArgs,
    /// File of the printed command [default: the name of the first INPUT, with .pleach]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Treatment of intervals that overlap
    #[arg(long, value_name = "HOW", default_value = "error")]
    pub overlap: OverlapHow,
    /// Treatment of duplicate keys [default: keep all, in input order]
    #[arg(long, value_name = "WHICH")]
    pub unique: Option<Unique>,
    /// Memory of the build, such as 256M or 4GiB [default: half of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub memory: Option<u64>,
    /// Threads of the build; 0 uses all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
    /// Folder for sorting on disk [default: the folder of FILE]
    #[arg(long, value_name = "DIR")]
    pub temp: Option<PathBuf>,
    /// FILE may be there already and not be a Pleach file
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `get`.
#[derive(Clone, Debug, Args)]
pub struct GetArgs {
    /// File to search
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Keys to look up
    #[arg(
        value_name = "KEY",
        required_unless_present = "keys",
        conflicts_with = "keys",
        allow_negative_numbers = true
    )]
    pub key: Vec<String>,
    /// Read keys from a file, one per line; '-' is standard input
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Print every tuple of a key, not only the first
    #[arg(long)]
    pub all: bool,
    /// Print the rank (0-based position in key order) instead of the value
    #[arg(long)]
    pub rank: bool,
    /// Print KEY and the last tuple whose key is at most KEY
    #[arg(long, conflicts_with_all = ["all", "ceiling", "nearest"])]
    pub floor: bool,
    /// Print KEY and the first tuple whose key is at least KEY
    #[arg(long, conflicts_with_all = ["all", "nearest"])]
    pub ceiling: bool,
    /// Print KEY and the tuple whose key is nearest to KEY, of two the lower; keys must be numbers
    #[arg(long, conflicts_with = "all")]
    pub nearest: bool,
    /// Print only the number of keys that are there; with --all, of their tuples
    #[arg(long, conflicts_with_all = ["rank", "missing", "exists"])]
    pub count: bool,
    /// Print each KEY with true if it is there, or false, without reading values
    #[arg(long, conflicts_with_all = ["all", "rank", "missing", "floor", "ceiling", "nearest"])]
    pub exists: bool,
    /// Print KEY, a tab and TEXT for a missing key, instead of nothing
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub missing: Option<String>,
    /// Device that searches: auto, cpu, cuda (the first GPU) or cuda:N; a GPU first gets a copy of the table
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = parse::device)]
    pub device: Device,
    /// Maximum memory of the GPU to use, such as 4GiB; a larger table is read over the link
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub device_memory: Option<u64>,
    /// Search method: auto, one-by-one, unbuffered, buffered or sorted; or the structure of the file by which
    /// keys are found: spine, grid (on a CPU only), fast, harmonia or btree; all give the same answers
    #[arg(
        long,
        visible_alias = "algorithm",
        value_name = "HOW",
        default_value = "auto",
        value_parser = parse::how
    )]
    pub strategy: How,
    /// Look keys up in batches that are expected to take at most MS milliseconds each
    #[arg(long, value_name = "MS", value_parser = parse::milliseconds)]
    pub response: Option<u64>,
    /// Explain on standard error how the search works
    #[arg(long)]
    pub explain: bool,
}

impl GetArgs {
    /// Returns which tuple near a key is wanted, if not that of the key itself.
    pub fn near(&self) -> Option<pleach::Near> {
        let wanted = [
            (self.floor, pleach::Near::Floor),
            (self.ceiling, pleach::Near::Ceiling),
            (self.nearest, pleach::Near::Nearest),
        ];
        wanted.into_iter().find(|(is_wanted, _)| *is_wanted).map(|(_, near)| near)
    }
}

/// Arguments of `range`.
#[derive(Clone, Debug, Args)]
pub struct RangeArgs {
    /// File to search
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// First key; '..' means the start of the file
    #[arg(value_name = "LO", required_unless_present_any = ["prefix", "prefixes"], allow_negative_numbers = true)]
    pub lo: Option<String>,
    /// End of the range, itself not printed; '..' means the end of the file
    #[arg(value_name = "HI", required_unless_present_any = ["prefix", "prefixes"], allow_negative_numbers = true)]
    pub hi: Option<String>,
    /// Print HI too
    #[arg(long)]
    pub inclusive: bool,
    /// Print the keys that begin with P: with a text, with hexadecimal digits or DNA bases, with the first parts of a
    /// composite key, or in a network of addresses such as 10.0.0.0/8
    #[arg(long, value_name = "P", conflicts_with_all = ["lo", "hi"], allow_hyphen_values = true)]
    pub prefix: Option<String>,
    /// Do so for each prefix in a file, one a line, before whose tuples it is printed; '-' is standard input
    #[arg(long, value_name = "PATH", conflicts_with_all = ["lo", "hi", "prefix"])]
    pub prefixes: Option<PathBuf>,
    /// Stop after N tuples
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Print from the end to the start
    #[arg(long)]
    pub reverse: bool,
    /// Print only the number of tuples
    #[arg(long)]
    pub count: bool,
    /// Explain on standard error how the search works
    #[arg(long)]
    pub explain: bool,
}

/// Arguments of `sample`.
#[derive(Clone, Debug, Args)]
pub struct SampleArgs {
    /// File to read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Number of tuples, such as 1000 or 2^20; all if the file has no more
    #[arg(value_name = "N", value_parser = parse::count)]
    pub tuples: u64,
    /// Number that decides which tuples are drawn
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `stats`.
#[derive(Clone, Debug, Args)]
pub struct StatsArgs {
    /// File to read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Arguments of `diff`.
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// File before, or a table
    #[arg(value_name = "A")]
    pub left: PathBuf,
    /// File after, of the same types, or a table
    #[arg(value_name = "B")]
    pub right: PathBuf,
    /// Print only the numbers of tuples that were added, removed and changed
    #[arg(long)]
    pub count: bool,
    #[command(flatten)]
    pub tables: Tables,
    #[command(flatten)]
    pub sides: Sides,
}

/// Arguments of `inspect`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// Files to show, one after the other
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Show page N (0-based, root first), decoded: a line of the spine with its base, shift and codes, a page of a
    /// FAST tree with its record, or a node of a B+tree
    #[arg(long, value_name = "N", conflicts_with = "line")]
    pub page: Option<u64>,
    /// Structure whose page is shown: spine, fast, harmonia or btree [default: the first that the file has]
    #[arg(long, value_name = "S", requires = "page", value_parser = parse::paged)]
    pub structure: Option<pleach::Structure>,
    /// Show tuple line N (0-based), decoded
    #[arg(long, value_name = "N")]
    pub line: Option<u64>,
    /// Map the file, read all of it, and show how much of it is in huge pages
    #[arg(long)]
    pub mapping: bool,
    /// Write the picture as a page for browsers to OUT, with how keys are spread; it needs no other file
    #[arg(long, value_name = "OUT", conflicts_with_all = ["page", "line", "mapping"])]
    pub html: Option<PathBuf>,
    /// Replace OUT even if it is a Pleach file, but never FILE
    #[arg(long, requires = "html")]
    pub force: bool,
}

/// Arguments of `fsck`.
#[derive(Clone, Debug, Args)]
pub struct FsckArgs {
    /// Files to check, one after the other
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Also write all undamaged tuples to the file OUT, and report the lost keys; FILE is not changed
    #[arg(long, value_name = "OUT")]
    pub salvage: Option<PathBuf>,
    /// Replace OUT even if it is not a Pleach file, but never FILE
    #[arg(long, requires = "salvage")]
    pub force: bool,
    /// Of a set, also compare the SHA-256 of every file with the manifest
    #[arg(long)]
    pub digests: bool,
    /// Threads to use; 0 uses all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
    /// Write metrics of the run for Prometheus to PATH, also if it fails
    #[arg(long, value_name = "PATH")]
    pub metrics: Option<PathBuf>,
}

/// Arguments of `export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// File to export
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Table to write: .csv .tsv .parquet .arrow .arrows (a stream); '-' is standard output (CSV unless --format)
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    /// Format of OUT: csv tsv parquet arrow (in a pipe the stream format) [default: by its extension]
    #[arg(long, value_name = "F", value_parser = parse::format(), hide_possible_values = true)]
    pub format: Option<Format>,
    /// Replace OUT even if it is a Pleach file, but never FILE
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `upgrade`.
#[derive(Clone, Debug, Args)]
pub struct UpgradeArgs {
    /// Files to upgrade, each in its place
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// Arguments of `demo`.
#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// Tuples per data set, such as 1000000 or 2^20 [default: as many as take a few seconds]
    #[arg(long, value_name = "N", value_parser = parse::count)]
    pub tuples: Option<u64>,
    /// Keep the files, in DIR, instead of removing them
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Seed of the generated data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `devices`.
#[derive(Clone, Debug, Args)]
pub struct DevicesArgs {}

/// Arguments of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// Arguments of `pleach-bench`, such as lookup --quick; `pleach bench lookup --help` lists all of them
    #[arg(value_name = "ARGS", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

/// Arguments of `tune`.
#[derive(Clone, Debug, Args)]
pub struct TuneArgs {
    /// Print the stored costs, without measuring
    #[arg(long)]
    pub show: bool,
}

/// Arguments of `completions`.
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to write the script for
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Folder for the pages; created if it does not exist
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
