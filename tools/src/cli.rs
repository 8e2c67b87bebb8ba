//! The arguments of every command, as clap sees them. Long texts and examples are in [`crate::help`].
//!
//! What needs no file to be judged (types, sizes, layouts, devices of a later version) is judged
//! here, so that it is a usage error before anything is opened.

pub mod relation;

use crate::device::Device;
use crate::parse::ValueTypes;
use crate::{help, parse};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use pleach::Strategy;
use pleach_bench::Queries;
use pleach_bench::gpu::Group;
use pleach_builder::Layout;
use pleach_format::{KeyType, ValueType};
use std::path::PathBuf;

/// A table of keys and values becomes one file that answers look-ups.
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
    /// What every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Every command")]
pub struct Global {
    /// Print JSON: one document, or one object a line (get, range). 64-bit integers are strings
    #[arg(long, global = true)]
    pub json: bool,
    /// Print data only: no progress, no summary
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// How much of a file is checked before it is believed [default: touched for range and up to 10^5
    /// keys, else header]
    #[arg(long, global = true, value_name = "HOW")]
    pub verify: Option<Verify>,
    /// Dates, times, decimals and uuids as the integers that are stored, printed and given
    #[arg(long, global = true)]
    pub raw_values: bool,
}

/// How much of a file is checked before it is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verify {
    /// Nothing but what keeps a search inside the file
    None,
    /// Superblock and section table
    Header,
    /// Also each 8 KiB that a search reads
    Touched,
    /// Every byte, before the first search
    Full,
}

impl From<Verify> for pleach::Verify {
    fn from(verify: Verify) -> Self {
        match verify {
            Verify::None | Verify::Header => Self::Header,
            Verify::Touched => Self::Touched,
            Verify::Full => Self::Full,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a file from tables: CSV, TSV, Parquet, Arrow, NumPy or raw binary
    #[command(long_about = help::BUILD, after_help = help::BUILD_EXAMPLES)]
    Build(BuildArgs),
    /// Look keys up
    #[command(long_about = help::GET, after_help = help::GET_EXAMPLES)]
    Get(GetArgs),
    /// Print the tuples between two keys, in order
    #[command(long_about = help::RANGE, after_help = help::RANGE_EXAMPLES)]
    Range(RangeArgs),
    /// Show what is in a file, also when it is damaged
    #[command(long_about = help::INSPECT, after_help = help::INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Check every byte of a file
    #[command(long_about = help::FSCK, after_help = help::FSCK_EXAMPLES)]
    Fsck(FsckArgs),
    /// Write a file's tuples as CSV, TSV, Parquet or Arrow
    #[command(long_about = help::EXPORT, after_help = help::EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Make the next generation of a file from a batch of changes
    #[command(long_about = help::REBUILD, after_help = help::REBUILD_EXAMPLES)]
    Rebuild(RebuildArgs),
    /// List the generations of a file: the present one, and those that are kept
    #[command(long_about = help::GENERATIONS, after_help = help::GENERATIONS_EXAMPLES)]
    Generations(GenerationsArgs),
    /// Publish an old generation of a file anew
    #[command(long_about = help::ROLLBACK, after_help = help::ROLLBACK_EXAMPLES)]
    Rollback(RollbackArgs),
    /// Merge several files into one
    #[command(long_about = help::COMPACT, after_help = help::COMPACT_EXAMPLES)]
    Compact(CompactArgs),
    /// Keep the tuples that a condition holds for
    #[command(long_about = help::SELECT, after_help = help::SELECT_EXAMPLES)]
    Select(relation::SelectArgs),
    /// Make other keys and values of columns, fields and bits
    #[command(long_about = help::PROJECT, after_help = help::PROJECT_EXAMPLES)]
    Project(relation::ProjectArgs),
    /// Make one tuple of the values of each key
    #[command(long_about = help::REDUCE, after_help = help::REDUCE_EXAMPLES)]
    Reduce(relation::ReduceArgs),
    /// Keys of any of several files
    #[command(long_about = help::UNION, after_help = help::UNION_EXAMPLES)]
    Union(relation::ManyArgs),
    /// Keys of all of several files
    #[command(long_about = help::INTERSECT, after_help = help::INTERSECT_EXAMPLES)]
    Intersect(relation::ManyArgs),
    /// Keys of one file that are not in another
    #[command(long_about = help::DIFFERENCE, after_help = help::DIFFERENCE_EXAMPLES)]
    Difference(relation::DifferenceArgs),
    /// Pair the values of two files by their keys
    #[command(long_about = help::JOIN, after_help = help::JOIN_EXAMPLES)]
    Join(relation::JoinArgs),
    /// Pair every tuple of one file with every tuple of another
    #[command(long_about = help::PRODUCT, after_help = help::PRODUCT_EXAMPLES)]
    Product(relation::ProductArgs),
    /// Build, search, check and explain on real-looking data, in seconds
    #[command(long_about = help::DEMO, after_help = help::DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Show which CPU features and GPUs are found, and what is used
    #[command(long_about = help::DEVICES, after_help = help::DEVICES_EXAMPLES)]
    Devices(DevicesArgs),
    /// Measure look-ups beside other engines and the machine's own limit
    #[command(long_about = help::BENCH, after_help = help::BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Measure this machine, so that batches are answered the fastest way
    #[command(long_about = help::TUNE, after_help = help::TUNE_EXAMPLES)]
    Tune(TuneArgs),
    /// Print a completion script for a shell
    #[command(long_about = help::COMPLETIONS, after_help = help::COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write a manual page for each command into a folder
    #[command(long_about = help::MAN, after_help = help::MAN_EXAMPLES)]
    Man(ManArgs),
}

/// Format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated text
    Csv,
    /// Tab-separated text
    Tsv,
    /// Apache Parquet
    Parquet,
    /// Apache Arrow IPC, file or stream
    Arrow,
    /// NumPy array
    Npy,
    /// Little-endian tuples, one after the other
    Raw,
}

/// What to do with keys that stand more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unique {
    /// Refuse the input
    Error,
    /// Keep the first tuple of each key
    First,
    /// Keep the last tuple of each key
    Last,
}

impl From<Unique> for pleach_builder::Unique {
    fn from(unique: Unique) -> Self {
        match unique {
            Unique::Error => Self::Error,
            Unique::First => Self::First,
            Unique::Last => Self::Last,
        }
    }
}

/// Which inputs have a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Header {
    /// Each one
    Each,
    /// The first one alone
    First,
}

impl From<Header> for pleach_builder::input::Header {
    fn from(header: Header) -> Self {
        match header {
            Header::Each => Self::Each,
            Header::First => Self::First,
        }
    }
}

/// How a new generation is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Patch where that is possible, else merge
    Auto,
    /// Read the old file, write the new one
    Merge,
    /// Copy the file and rewrite the blocks whose values change; only for puts of keys that are there once
    Patch,
}

/// Arguments of `rebuild`.
#[derive(Clone, Debug, Args)]
pub struct RebuildArgs {
    /// File to replace by its next generation
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Table of changes: operation (put, add, del), key, value; '-' is standard input (needs --format)
    #[arg(long, value_name = "CHANGES", required = true)]
    pub apply: PathBuf,
    /// Old generations to keep, as FILE.g1, FILE.g2 and so on; older ones are removed [default: keep none,
    /// remove none]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// How it is done
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub method: Method,
    /// Leave out what is damaged in FILE, instead of refusing it
    #[arg(long)]
    pub salvage: bool,
    /// Column of the operation: its name, or its number from 0 [default: op; the first one without a header]
    #[arg(long, value_name = "COL")]
    pub op: Option<String>,
    /// Key column [default: named like the keys of FILE, or key; the second one without a header]
    #[arg(long, value_name = "COL")]
    pub key: Option<String>,
    /// Value column, or the fields of a record with commas between [default: named like those of FILE, or value; the
    /// third one on without a header]
    #[arg(long, value_name = "COL")]
    pub value: Option<String>,
    /// Memory for the changes, as 256M, 256MiB, 4GiB [default: half]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub memory: Option<u64>,
    /// Threads to use; 0 is all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
    /// Folder for lists that outgrow memory [default: the folder of FILE]
    #[arg(long, value_name = "DIR")]
    pub temp: Option<PathBuf>,
    /// Format of CHANGES [default: by its extension]
    #[arg(long, value_name = "F")]
    pub format: Option<Format>,
    /// Delimiter of text: one character, or \t [default: ',' for CSV, tab for TSV]
    #[arg(long, value_name = "C", value_parser = parse::delimiter, allow_hyphen_values = true)]
    pub delimiter: Option<u8>,
    /// The first line of text is data; columns go by number, from 0
    #[arg(long)]
    pub no_header: bool,
    /// The first line of text is a header, though it may look like data
    #[arg(long, conflicts_with = "no_header")]
    pub header: bool,
}

/// Arguments of `compact`.
#[derive(Clone, Debug, Args)]
pub struct CompactArgs {
    /// Files to merge, all of the same types; of equal keys those of an earlier file come first
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// File to make; replaced in one step when it exists and is a Pleach file
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Old generations of the output to keep, as FILE.g1, FILE.g2 and so on; older ones are removed [default: keep
    /// none, remove none]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Replace the output even if it is no Pleach file; never one of the files that are merged
    #[arg(long)]
    pub force: bool,
    /// Regions of the new file, as for build [default: those of the first FILE]
    #[arg(long, value_name = "L,...", value_parser = parse::layout)]
    pub layout: Option<Layout>,
    /// What to do with keys that stand more than once [default: keep all]
    #[arg(long, value_name = "WHICH")]
    pub unique: Option<Unique>,
    /// Leave out what is damaged, instead of refusing its file
    #[arg(long)]
    pub salvage: bool,
    /// Threads to use; 0 is all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
}

/// Arguments of `build`.
#[derive(Clone, Debug, Args)]
pub struct BuildArgs {
    /// Tables to read, in this order; '-' is standard input (needs --format)
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,
    /// File to make; replaced in one step when it exists and is a Pleach file
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Old generations to keep, as FILE.g1, FILE.g2 and so on; older ones are removed [default: keep none,
    /// remove none]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Replace FILE even if it is no Pleach file; never an input
    #[arg(long)]
    pub force: bool,
    /// Key column: its name, or its number from 0. A name holds for all inputs, wherever the column stands
    /// [default: the first column of the first input]
    #[arg(long, value_name = "COL")]
    pub key: Option<String>,
    /// Value column, or several with commas between: the fields of a record; or @row for the row number from 0
    /// [default: the second column, else none]
    #[arg(long, value_name = "COL,...|@row", allow_hyphen_values = true)]
    pub value: Option<String>,
    /// Key type: u32 u64 u128 i32 i64 f64 bytes16 (any N) bytes utf8, or date time[us] timestamp[us]
    /// timestamp[us,UTC] duration[us] decimal(10,2) uuid [default: the column's; u64 for text]
    #[arg(long, value_name = "T", value_parser = parse::meant_key_type)]
    pub key_type: Option<parse::MeantType<KeyType>>,
    /// Value type: none u32 u64 i32 i64 f32 f64 bytes16 (any N) bytes utf8, or date and so on [default:
    /// the column's; u64 for text]; of a record one type for all fields or T,... for each, also u8 u16 i8 i16
    #[arg(long, value_name = "T,...", value_parser = parse::value_types)]
    pub value_type: Option<ValueTypes>,
    /// Regions of the file: lines,spine; also grid (a short way to the lines, where numbers are
    /// spread evenly enough), columns (for scans without a copy), packed (keys in as few bits as each
    /// 1024 of them need), classic (the FAST paper's tree, to be measured),
    /// harmonia[:FANOUT[:PERCENT]] (a B+tree of nodes so full, in two arrays)
    #[arg(long, value_name = "L,...", default_value = "lines,spine,grid", value_parser = parse::layout)]
    pub layout: Layout,
    /// What to do with keys that stand more than once [default: keep all, in input order]
    #[arg(long, value_name = "WHICH")]
    pub unique: Option<Unique>,
    /// The input is sorted by key: refuse it when it is not, instead of sorting
    #[arg(long)]
    pub sorted: bool,
    /// Memory to use, as 256M, 256MiB, 4GiB; more input than that is sorted on disk [default: half]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub memory: Option<u64>,
    /// Threads to use; 0 is all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
    /// Folder for sorting on disk [default: the folder of FILE]
    #[arg(long, value_name = "DIR")]
    pub temp: Option<PathBuf>,
    /// Format of every INPUT [default: by its extension]
    #[arg(long, value_name = "F")]
    pub format: Option<Format>,
    /// Types of raw tuples, as u64,u64 or u64 for keys alone
    #[arg(long, value_name = "K,V", value_parser = parse::raw_types)]
    pub raw: Option<(KeyType, ValueType)>,
    /// Delimiter of text: one character, or \t [default: ',' for CSV, tab for TSV]
    #[arg(long, value_name = "C", value_parser = parse::delimiter, allow_hyphen_values = true)]
    pub delimiter: Option<u8>,
    /// The first line of text is data; columns go by number, from 0
    #[arg(long)]
    pub no_header: bool,
    /// The first line of text is a header, though it may look like data: of each input, or of the first
    /// alone, as in the parts that `split` makes
    #[arg(
        long,
        value_name = "OF",
        conflicts_with = "no_header",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "each"
    )]
    pub header: Option<Header>,
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
    /// Read keys from a file, one a line; '-' is standard input
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Print every tuple of a key, not the first alone
    #[arg(long)]
    pub all: bool,
    /// Print the rank (0-based position in key order) instead of the value
    #[arg(long)]
    pub rank: bool,
    /// Print KEY, a tab and TEXT for a missing key, instead of nothing
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub missing: Option<String>,
    /// Where to search: auto, cpu, cuda (the first GPU) or cuda:N; a GPU gets a copy of the table first
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = parse::device)]
    pub device: Device,
    /// Memory of the GPU to use at most, as 4GiB; a table that does not fit is read over the link
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub device_memory: Option<u64>,
    /// How to search: auto, one-by-one, unbuffered, buffered or sorted; the answers are the same
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = parse::strategy)]
    pub strategy: Strategy,
    /// Answer in pieces that are expected to take at most MS milliseconds each
    #[arg(long, value_name = "MS", value_parser = parse::milliseconds)]
    pub response: Option<u64>,
    /// Say on standard error how the search is done
    #[arg(long)]
    pub explain: bool,
}

/// Arguments of `range`.
#[derive(Clone, Debug, Args)]
pub struct RangeArgs {
    /// File to search
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// First key; '..' is the start
    #[arg(value_name = "LO", required_unless_present = "prefix", allow_negative_numbers = true)]
    pub lo: Option<String>,
    /// End key, not printed itself; '..' is the end
    #[arg(value_name = "HI", required_unless_present = "prefix", allow_negative_numbers = true)]
    pub hi: Option<String>,
    /// Print HI too
    #[arg(long)]
    pub inclusive: bool,
    /// Keys that begin with P: of files whose keys are byte strings
    #[arg(long, value_name = "P", conflicts_with_all = ["lo", "hi"], allow_hyphen_values = true)]
    pub prefix: Option<String>,
    /// Stop after N tuples
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// From the end to the start
    #[arg(long)]
    pub reverse: bool,
    /// Print the number of tuples only
    #[arg(long)]
    pub count: bool,
    /// Say on standard error how the search is done
    #[arg(long)]
    pub explain: bool,
}

/// Arguments of `inspect`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// File to show
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Show spine line N (0-based, root first), decoded: its base, shift and codes
    #[arg(long, value_name = "N", conflicts_with = "line")]
    pub page: Option<u64>,
    /// Show tuple line N (0-based), decoded
    #[arg(long, value_name = "N")]
    pub line: Option<u64>,
    /// Map the file, touch all of it, and show how much of it lies in huge pages
    #[arg(long)]
    pub mapping: bool,
}

/// Arguments of `fsck`.
#[derive(Clone, Debug, Args)]
pub struct FsckArgs {
    /// File to check
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Also write all tuples that are whole to the file OUT, and say which keys are lost; FILE stays as it is
    #[arg(long, value_name = "OUT")]
    pub salvage: Option<PathBuf>,
    /// Replace OUT even if it is no Pleach file; never FILE
    #[arg(long, requires = "salvage")]
    pub force: bool,
    /// Threads to use; 0 is all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
}

/// Arguments of `export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// File to export
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Table to make: .csv .tsv .parquet .arrow; '-' is standard output (CSV unless --format)
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    /// Format of OUT: csv tsv parquet arrow [default: by its extension]
    #[arg(long, value_name = "F", hide_possible_values = true)]
    pub format: Option<Format>,
    /// Replace OUT even if it is a Pleach file; never FILE
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `generations`.
#[derive(Clone, Debug, Args)]
pub struct GenerationsArgs {
    /// File whose generations are listed; it may be gone
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Arguments of `rollback`.
#[derive(Clone, Debug, Args)]
pub struct RollbackArgs {
    /// File to replace by an old generation of it; it may be damaged or gone
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Number of the generation [default: the newest that is kept]
    #[arg(value_name = "N")]
    pub generation: Option<u64>,
    /// Old generations to keep, the present one among them; older ones are removed [default: keep all, and the
    /// present one too]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Replace FILE even if it is no Pleach file
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `demo`.
#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// Tuples of each data set, as 1000000 or 2^20 [default: what takes a few seconds]
    #[arg(long, value_name = "N", value_parser = parse::count)]
    pub tuples: Option<u64>,
    /// Keep the files in DIR, instead of removing them
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Seed of the generated data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `devices`.
#[derive(Clone, Debug, Args)]
pub struct DevicesArgs {}

/// What `bench` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchWhat {
    /// Point look-ups: values of random keys
    Lookup,
    /// Byte keys: look-ups, sizes and encodings, beside an uncompressed tree and other engines
    Compress,
    /// Ways to ask the same queries: one by one, in batches, in order, sorted first
    Strategies,
    /// Tuples in order: full scans and ranges, beside what the memory delivers in order
    Range,
    /// Single look-ups, each of which waits for the last answer
    Latency,
    /// From the closed file to the first answer
    Open,
    /// From tuples to a file, beside a plain copy of its bytes
    Build,
    /// Changes: rebuilds beside a copy of the file, batches beside LMDB and redb
    Update,
    /// Look-ups on a GPU: its limits, all algorithms, and what else is installed there
    Gpu,
    /// The tables and figures of the papers on a GPU: P-ary search, FAST, the B+tree on an APU
    GpuPapers,
    /// The tables and figures of the paper on Harmonia on a GPU: its tree, sorted queries, narrowed groups
    GpuHarmonia,
    /// The tables and figures of the paper on relational algebra on a GPU: its stages, its five joins in a block
    GpuRelationPaper,
    /// Joins and set operations on a GPU in one pass, beside a copy
    GpuRelation,
    /// How often a table must be asked until copying it to a GPU has paid
    GpuReuse,
    /// No measuring: a picture of REPORT, which a run with --json wrote
    Plot,
}

/// Arguments of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// What to measure
    #[arg(value_name = "WHAT")]
    pub what: BenchWhat,
    /// With plot: the report, '-' for standard input
    #[arg(value_name = "REPORT")]
    pub report: Option<PathBuf>,
    /// With plot: the SVG to write, '-' for standard output [default: '-']; with gpu: the JSON report, written anew
    /// after each row
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace that file even if it is a Pleach file; never REPORT
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Finish in a minute or two
    #[arg(long)]
    pub quick: bool,
    /// Tuples, as 1000000 or 2^26 [default: several sizes]
    #[arg(long, value_name = "N", value_parser = parse::count)]
    pub tuples: Option<u64>,
    /// Key type: u32 u64 i32 i64 [default: u32 and u64]
    #[arg(long, value_name = "T", value_parser = parse::key_type)]
    pub key_type: Option<KeyType>,
    /// With compress: the FAST paper's size, 1 GB of keys of 16, of 128 and of 4 bytes
    #[arg(long)]
    pub one_gigabyte: bool,
    /// Measure the stores too at sizes for which they need minutes to build (above 2^24)
    #[arg(long)]
    pub all_peers: bool,
    /// With lookup: which keys to ask for besides hits drawn evenly: half-miss zipf, or both, as half-miss,zipf
    #[arg(long, value_name = "Q", value_delimiter = ',', value_parser = parse::queries)]
    pub queries: Vec<Queries>,
    /// With gpu: which rows, of limits peers random algorithms sorted small host build hybrid auto, as random,small;
    /// with gpu-papers: of slides fast apu; with gpu-harmonia: of limits harmonia [default: all]
    #[arg(long, value_name = "G", value_delimiter = ',', value_parser = parse::group)]
    pub only: Vec<Group>,
    /// Threads to measure with besides one; 0 is all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
    /// Folder for the files that are built [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Arguments of `tune`.
#[derive(Clone, Debug, Args)]
pub struct TuneArgs {
    /// Print what is known already, without measuring
    #[arg(long)]
    pub show: bool,
}

/// Arguments of `completions`.
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// Shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Folder for the pages; made if it is not there
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
