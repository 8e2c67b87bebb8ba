//! Arguments of `pleach-bench`, as clap parses them, with their help texts.

use clap::{Args, Parser, ValueEnum};
use pleach_bench::Queries;
use pleach_bench::gpu::Group;
use pleach_bench::keys::Distribution;
use pleach_bench::texts::Kind;
use pleach_cli::Global;
use pleach_format::KeyType;
use std::path::PathBuf;

/// Measure Pleach beside other engines and the machine's own limit.
#[derive(Debug, Parser)]
#[command(
    name = "pleach-bench",
    version,
    long_about = BENCH,
    after_help = BENCH_EXAMPLES
)]
pub struct Cli {
    /// Arguments of every command of Pleach.
    #[command(flatten)]
    pub global: Global,
    /// Arguments of the measurement.
    #[command(flatten)]
    pub bench: BenchArgs,
}

/// What `bench` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchWhat {
    /// Look-ups: the values of random keys
    Lookup,
    /// Look-ups of keys in runs, blocks, bursts and heavy tails, or of your own
    Keys,
    /// Look-ups of byte keys, sizes and encodings, beside an uncompressed tree and other engines
    Compress,
    /// Look-ups, prefixes and ranges of text keys of many kinds, or of your own, beside a hash map, LMDB and fst
    Texts,
    /// Ways to answer the same queries: one by one, in batches, in order, sorted first
    Strategies,
    /// Floors, ceilings and intervals, beside exact look-ups of the same tables
    Near,
    /// Full scans and ranges, beside the sequential speed of the memory
    Range,
    /// Single look-ups, each of which depends on the answer of the one before
    Latency,
    /// Time from the closed file to the first answer
    Open,
    /// Building a file from tuples, beside a plain copy of its bytes
    Build,
    /// Rebuilds beside a copy of the file, batches of changes beside LMDB and redb
    Update,
    /// Look-ups on a GPU: its limits, all algorithms, and other libraries that are installed
    Gpu,
    /// Look-ups on a GPU of keys in runs, blocks, bursts and heavy tails
    GpuKeys,
    /// Floors, ceilings and intervals on a GPU, beside exact look-ups of the same tables
    GpuNear,
    /// Joins and set operations on a GPU in one pass, beside a copy
    GpuRelation,
    /// Number of batches after which copying a table to a GPU pays
    GpuReuse,
    /// Draw REPORT, which another run printed with --json; measures nothing
    Plot,
}

/// Arguments of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// What to measure
    #[arg(value_name = "WHAT")]
    pub what: BenchWhat,
    /// Report to draw with plot; '-' is standard input
    #[arg(value_name = "REPORT")]
    pub report: Option<PathBuf>,
    /// With plot: SVG file to write [default: '-', standard output]; with gpu: JSON report, rewritten after each row
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace FILE even if it is a Pleach file; REPORT is never replaced
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Finish in a minute or two
    #[arg(long)]
    pub quick: bool,
    /// Number of tuples, such as 1000000 or 2^26 [default: several sizes]
    #[arg(long, value_name = "N", value_parser = pleach_cli::count)]
    pub tuples: Option<u64>,
    /// Key type: u32 u64 i32 i64 [default: u32 and u64]
    #[arg(long, value_name = "T", value_parser = pleach_cli::key_type)]
    pub key_type: Option<KeyType>,
    /// With compress: use the size of the FAST paper, 1 GB of keys of 16, 128 and 4 bytes
    #[arg(long)]
    pub one_gigabyte: bool,
    /// Measure the stores too at sizes that they take minutes to build (above 2^24)
    #[arg(long)]
    pub all_peers: bool,
    /// With lookup: and keys: queries in addition to uniform hits, such as half-miss,zipf,sorted
    #[arg(long, value_name = "Q", value_delimiter = ',', value_parser = queries)]
    pub queries: Vec<Queries>,
    /// Groups of rows, such as random,small. With gpu: limits peers random algorithms sorted small host build hybrid
    /// auto [default: all]
    #[arg(long, value_name = "G", value_delimiter = ',', value_parser = group)]
    pub only: Vec<Group>,
    /// With keys, gpu-keys and strategies: rules of the keys, such as uniform,shards [default: all]
    #[arg(long, value_name = "D", value_delimiter = ',', value_parser = distribution)]
    pub distributions: Vec<Distribution>,
    /// With keys, gpu-keys and strategies: compare the search structures of a file, by batches and key by key,
    /// in place of other engines
    #[arg(long)]
    pub structures: bool,
    /// With texts: kinds of keys, such as host-url,path,digits:16:10 [default: ten kinds]
    #[arg(long, value_name = "K", value_delimiter = ',', value_parser = text_kind)]
    pub kinds: Vec<Kind>,
    /// With texts: number of repetitions, whose median is reported [default: 5]
    #[arg(long, value_name = "N")]
    pub repetitions: Option<usize>,
    /// With keys: file with the keys to measure, in any format that build reads; with texts: one key a line
    #[arg(long, value_name = "FILE")]
    pub keys_from: Option<PathBuf>,
    /// With keys --keys-from: column of the keys [default: the first one]
    #[arg(long, value_name = "COLUMN", requires = "keys_from")]
    pub key: Option<String>,
    /// With keys --keys-from: type of the keys of a file without types: u32 u64 i32 i64
    #[arg(long, value_name = "T", requires = "keys_from", value_parser = pleach_cli::key_type)]
    pub raw: Option<KeyType>,
    /// Number of threads to measure with, in addition to one; 0 is all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = pleach_cli::threads)]
    pub threads: usize,
    /// Folder for the files that are built [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Parses the name of a kind of queries.
fn queries(text: &str) -> Result<Queries, String> {
    let kinds = [Queries::Hits, Queries::HalfMisses, Queries::Zipf, Queries::Sorted];
    let known = || format!("unknown kind of queries '{text}': use uniform, half-miss, zipf or sorted");
    kinds.into_iter().find(|kind| kind.name() == text).ok_or_else(known)
}

/// Parses the name of a rule of keys.
fn distribution(text: &str) -> Result<Distribution, String> {
    let known = || {
        let names: Vec<&str> = Distribution::ALL.iter().map(|each| each.name()).collect();
        format!("unknown keys '{text}': use one of {}", names.join(" "))
    };
    Distribution::ALL.into_iter().find(|each| each.name() == text).ok_or_else(known)
}

/// Parses the name of a kind of text keys.
fn text_kind(text: &str) -> Result<Kind, String> {
    let known = |_| {
        let names: Vec<String> = Kind::ALL.iter().map(Kind::to_string).collect();
        format!("unknown keys '{text}': use one of {}, or digits:BYTES:VALUES", names.join(" "))
    };
    text.parse().map_err(known)
}

/// Parses the name of a group of rows of `bench gpu`.
fn group(text: &str) -> Result<Group, String> {
    let known = || {
        let names: Vec<&str> = Group::every().map(Group::name).collect();
        format!("unknown group of rows '{text}': use one of {}", names.join(" "))
    };
    Group::every().find(|group| group.name() == text).ok_or_else(known)
}

const BENCH: &str = "\
Measures Pleach and other engines in one run, with checked answers, beside the limit of this machine \
(limit-one-line: one random line for each look-up).

`lookup` measures look-ups of random keys, `keys` those of keys in runs and bursts, and `compress` those of byte \
keys of many kinds. `texts` measures look-ups, prefixes and ranges of text keys. `range` reads tuples in order. \
`latency` looks up one key at a time; each key is known only after the last answer. `open` and `build` measure what \
precedes the first look-up. `plot` draws a report that --json printed: bars by engine, or lines if there are several \
sizes.";

const BENCH_EXAMPLES: &str = "\
Examples:
  pleach-bench lookup --quick
  pleach-bench lookup --tuples 2^26 --key-type u32 --json
  pleach-bench lookup --quick --queries zipf    also queries in which a few keys are frequent
  pleach-bench keys --tuples 2^24 --distributions uniform,shards
  pleach-bench keys --structures --tuples 2^20  the trees of the papers beside spine and grid
  pleach-bench keys --keys-from ids.parquet --key user_id    the keys of your own table
  pleach-bench range --tuples 2^24 --key-type u32
  pleach-bench latency --quick --json > latency.json
  pleach-bench plot latency.json -o latency.svg
  pleach-bench texts --kinds host-url,path --tuples 2^20
  pleach-bench texts --keys-from urls.txt       the lines of your own file
  pleach-bench compress --quick
  pleach-bench compress --one-gigabyte          16 and 128 bytes beside 4 (12 GiB of memory)";
