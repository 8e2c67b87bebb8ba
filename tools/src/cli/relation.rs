//! The arguments of the relational commands.

use crate::cli::tables::{Sides, Tables};
use crate::parse::{self, Device};
use clap::{Args, ValueEnum};
use pleach_relation::Aggregate;
use std::path::PathBuf;

/// Format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutFormat {
    /// Index file
    Pleach,
    /// Comma-separated text
    Csv,
    /// Tab-separated text
    Tsv,
    /// Apache Parquet
    Parquet,
    /// Apache Arrow IPC: a file, and in a pipe or with the extension .arrows a stream
    Arrow,
}

/// Destination of a result, and the resources for it.
#[derive(Clone, Debug, Args)]
pub struct Out {
    /// File to write: .pleach .csv .tsv .parquet .arrow .arrows; it is published complete or not at all; '-' is a table
    /// on standard output (CSV unless --format) [default: lines on standard output]
    #[arg(long, short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Format of OUT: pleach csv tsv parquet arrow [default: by its extension]
    #[arg(long, value_name = "F", hide_possible_values = true, requires = "output")]
    pub format: Option<OutFormat>,
    /// Replace OUT even if it is not a Pleach file, or, for a table, even if it is one, but never an input
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Device that computes: cpu, cuda (the first GPU) or cuda:N; auto is cpu, because the CPU reads and
    /// writes the files
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = parse::device)]
    pub device: Device,
    /// Memory of the GPU to use, such as 4GiB [default: all free memory]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub device_memory: Option<u64>,
    /// Memory for sorting, if needed, such as 256M or 4GiB [default: half of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub memory: Option<u64>,
    /// Threads to use; 0 uses all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
    /// Folder for data that does not fit into memory [default: the folder of OUT, or the system's temporary
    /// folder]
    #[arg(long, value_name = "DIR")]
    pub temp: Option<PathBuf>,
    /// Print only the number of tuples
    #[arg(long, conflicts_with = "output")]
    pub count: bool,
    /// Combine files of hashes or prefixes, although equal keys may stand for different ones
    #[arg(long)]
    pub approximate: bool,
    /// Explain on standard error how the operator works
    #[arg(long)]
    pub explain: bool,
}

/// Arguments of `select`.
#[derive(Clone, Debug, Args)]
pub struct SelectArgs {
    /// File to read: an index file, or a table
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Condition on key, value, rank and the fields of a record
    #[arg(long = "where", value_name = "EXPR", allow_hyphen_values = true)]
    pub condition: String,
    /// Stop after N tuples
    #[arg(long, value_name = "N", conflicts_with = "count")]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub out: Out,
    #[command(flatten)]
    pub tables: Tables,
}

/// Arguments of `project`.
#[derive(Clone, Debug, Args)]
pub struct ProjectArgs {
    /// File to read: an index file, or a table
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Columns: the new key, then the new values; each is key, value, rank or a field, with [OFF:LEN] for
    /// bits
    #[arg(long, value_name = "LIST")]
    pub columns: String,
    #[command(flatten)]
    pub out: Out,
    #[command(flatten)]
    pub tables: Tables,
}

/// Arguments of `reduce`.
#[derive(Clone, Debug, Args)]
pub struct ReduceArgs {
    /// File to read: an index file, or a table
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Reductions of the values of each key: sum, min, max, count (of values), first, avg (the mean); or of a field, as
    /// sum:amount. Several make a record: sum:amount,avg:price,count
    #[arg(long, value_name = "OP[:FIELD],...", required = true, value_delimiter = ',', value_parser = parse::aggregate)]
    pub op: Vec<Aggregate>,
    /// Field of each OP that names none; count needs none
    #[arg(long, value_name = "FIELD")]
    pub field: Option<String>,
    #[command(flatten)]
    pub out: Out,
    #[command(flatten)]
    pub tables: Tables,
}

/// Arguments of `union` and `intersect`.
#[derive(Clone, Debug, Args)]
pub struct ManyArgs {
    /// Files to read, two or more, with keys of one type: index files, and tables
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    pub files: Vec<PathBuf>,
    /// Count duplicate keys: the result has max(m, n) tuples of a key for a union, min(m, n) for an
    /// intersection
    #[arg(long)]
    pub multiset: bool,
    #[command(flatten)]
    pub out: Out,
    #[command(flatten)]
    pub tables: Tables,
}

/// Arguments of `difference`.
#[derive(Clone, Debug, Args)]
pub struct DifferenceArgs {
    /// File whose tuples are kept, or a table
    #[arg(value_name = "LEFT")]
    pub left: PathBuf,
    /// File whose keys are removed, or a table
    #[arg(value_name = "RIGHT")]
    pub right: PathBuf,
    /// Count duplicate keys: the result has m - n tuples of a key
    #[arg(long)]
    pub multiset: bool,
    #[command(flatten)]
    pub out: Out,
    #[command(flatten)]
    pub tables: Tables,
    #[command(flatten)]
    pub sides: Sides,
}

/// Tuples in the result of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// Pairs of equal keys
    Inner,
    /// Pairs, and the left tuples without a partner
    Left,
    /// Pairs, and the right tuples without a partner
    Right,
    /// Pairs, and all tuples without a partner
    Full,
    /// Left tuples that have a partner, each once
    Semi,
    /// Left tuples without a partner
    Anti,
}

/// Partner of a tuple in an as-of join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AsOf {
    /// The last right tuple whose key is at most the left key
    Backward,
    /// The first right tuple whose key is at least the left key
    Forward,
    /// The nearer of these two; the backward one if both are as far
    Nearest,
}

/// Arguments of `join`.
#[derive(Clone, Debug, Args)]
pub struct JoinArgs {
    /// Left file, or a table
    #[arg(value_name = "LEFT")]
    pub left: PathBuf,
    /// Right file, or a table, with keys of the same type
    #[arg(value_name = "RIGHT")]
    pub right: PathBuf,
    /// Tuples in the result
    #[arg(long, value_name = "HOW", default_value = "inner")]
    pub how: How,
    /// Join each left tuple with one right tuple, whose key need not be equal; inner, left, semi and anti
    #[arg(long, value_name = "WHICH")]
    pub asof: Option<AsOf>,
    /// For --asof: maximum distance of the right tuple, such as 5, 0.5, or 5s and 1d for times
    #[arg(long, value_name = "D", requires = "asof", allow_hyphen_values = true)]
    pub tolerance: Option<String>,
    /// Join each left tuple with all right tuples at most D away (a band join); inner, left, semi and anti
    #[arg(long, value_name = "D", conflicts_with = "asof", allow_hyphen_values = true)]
    pub within: Option<String>,
    #[command(flatten)]
    pub out: Out,
    #[command(flatten)]
    pub tables: Tables,
    #[command(flatten)]
    pub sides: Sides,
}

/// Value of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Combine {
    /// Both, as the fields left and right
    Pair,
    /// The left one
    Left,
    /// The right one
    Right,
}

/// Arguments of `product`.
#[derive(Clone, Debug, Args)]
pub struct ProductArgs {
    /// Left file, or a table
    #[arg(value_name = "LEFT")]
    pub left: PathBuf,
    /// Right file, or a table
    #[arg(value_name = "RIGHT")]
    pub right: PathBuf,
    /// Value of each tuple in the result
    #[arg(long, value_name = "WHAT", default_value = "pair")]
    pub combine: Combine,
    #[command(flatten)]
    pub out: Out,
    #[command(flatten)]
    pub tables: Tables,
    #[command(flatten)]
    pub sides: Sides,
}
