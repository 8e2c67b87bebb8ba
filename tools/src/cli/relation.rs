//! The arguments of the relational commands.

use crate::device::Device;
use crate::parse;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Format of an answer.
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
    /// Apache Arrow IPC file
    Arrow,
}

/// Where an answer goes, and what may be used for it.
#[derive(Clone, Debug, Args)]
pub struct Out {
    /// File to make: .pleach .csv .tsv .parquet .arrow; it appears whole or not at all [default: lines on standard
    /// output]
    #[arg(long, short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Format of OUT: pleach csv tsv parquet arrow [default: by its extension]
    #[arg(long, value_name = "F", hide_possible_values = true, requires = "output")]
    pub format: Option<OutFormat>,
    /// Replace OUT even if it is no Pleach file, or for a table even if it is one; never a file that is read
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Where to compute: cpu, cuda (the first GPU) or cuda:N; auto is cpu, since the CPU reads and writes the files
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = parse::device)]
    pub device: Device,
    /// Memory of the GPU to use, as 4GiB [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub device_memory: Option<u64>,
    /// Memory for sorting, where that is needed, as 256M, 256MiB, 4GiB [default: half]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub memory: Option<u64>,
    /// Threads to use; 0 is all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
    /// Folder for what does not fit into memory [default: the folder of OUT, or that of temporary files]
    #[arg(long, value_name = "DIR")]
    pub temp: Option<PathBuf>,
    /// Say on standard error how it is done
    #[arg(long)]
    pub explain: bool,
}

/// Arguments of `select`.
#[derive(Clone, Debug, Args)]
pub struct SelectArgs {
    /// File to read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Condition on key, value, rank and the fields of a record
    #[arg(long = "where", value_name = "EXPR", allow_hyphen_values = true)]
    pub condition: String,
    #[command(flatten)]
    pub out: Out,
}

/// Arguments of `project`.
#[derive(Clone, Debug, Args)]
pub struct ProjectArgs {
    /// File to read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Columns: the new key, then the new values; key, value, rank or a field, [OFF:LEN] for bits of it
    #[arg(long, value_name = "LIST")]
    pub columns: String,
    #[command(flatten)]
    pub out: Out,
}

/// What becomes of the values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reduction {
    /// Their sum, in 64 bits; one that does not fit is an error
    Sum,
    /// The least
    Min,
    /// The greatest
    Max,
    /// How many there are
    Count,
    /// The first
    First,
}

/// Arguments of `reduce`.
#[derive(Clone, Debug, Args)]
pub struct ReduceArgs {
    /// File to read
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What becomes of the values of each key
    #[arg(long, value_name = "OP")]
    pub op: Reduction,
    #[command(flatten)]
    pub out: Out,
}

/// Arguments of `union` and `intersect`.
#[derive(Clone, Debug, Args)]
pub struct ManyArgs {
    /// Files to read, two or more, with keys of one type
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    pub files: Vec<PathBuf>,
    /// Count how often a key stands: max(m, n) of it in a union, min(m, n) in an intersection
    #[arg(long)]
    pub multiset: bool,
    #[command(flatten)]
    pub out: Out,
}

/// Arguments of `difference`.
#[derive(Clone, Debug, Args)]
pub struct DifferenceArgs {
    /// File whose tuples are kept
    #[arg(value_name = "LEFT")]
    pub left: PathBuf,
    /// File whose keys are taken away
    #[arg(value_name = "RIGHT")]
    pub right: PathBuf,
    /// Count how often a key stands: m - n of it are left
    #[arg(long)]
    pub multiset: bool,
    #[command(flatten)]
    pub out: Out,
}

/// Which tuples a join answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// Pairs of equal keys
    Inner,
    /// Those and the left tuples without a partner
    Left,
    /// Those and the right tuples without a partner
    Right,
    /// Those and all tuples without a partner
    Full,
    /// Left tuples that have a partner, each once
    Semi,
    /// Left tuples without a partner
    Anti,
}

/// Arguments of `join`.
#[derive(Clone, Debug, Args)]
pub struct JoinArgs {
    /// Left file
    #[arg(value_name = "LEFT")]
    pub left: PathBuf,
    /// Right file, with keys of the same type
    #[arg(value_name = "RIGHT")]
    pub right: PathBuf,
    /// Which tuples are answered
    #[arg(long, value_name = "HOW", default_value = "inner")]
    pub how: How,
    #[command(flatten)]
    pub out: Out,
}

/// What becomes of the two values of a pair.
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
    /// Left file
    #[arg(value_name = "LEFT")]
    pub left: PathBuf,
    /// Right file
    #[arg(value_name = "RIGHT")]
    pub right: PathBuf,
    /// What becomes of the two values
    #[arg(long, value_name = "WHAT", default_value = "pair")]
    pub combine: Combine,
    #[command(flatten)]
    pub out: Out,
}
