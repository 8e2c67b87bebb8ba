//! The arguments of the commands that make a file or its next generation, which those of sets take, too.

use crate::parse::{self, BuildKeyType, Spelled, ValueTypes};
use clap::{Args, ValueEnum};
use pleach_builder::Layout;
use pleach_format::{KeyType, ValueType};
use pleach_input::{Format, Nulls};
use std::path::PathBuf;

/// Treatment of duplicate keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unique {
    /// Refuse the input
    Error,
    /// Keep the first tuple of each key
    First,
    /// Keep the last tuple of each key
    Last,
    /// Keep one tuple of each key, whose value is the sum; for numbers, with values of type u32 or u64
    Sum,
}

impl From<Unique> for pleach_builder::Unique {
    fn from(unique: Unique) -> Self {
        match unique {
            Unique::Error => Self::Error,
            Unique::First => Self::First,
            Unique::Last => Self::Last,
            Unique::Sum => Self::Sum,
        }
    }
}

/// How values that are byte strings are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ValuesHow {
    /// As a dictionary, if that is shorter and has at most 65,536 values; else plain
    Auto,
    /// The value of each tuple
    Plain,
    /// Each different value once, and a short code for each tuple
    Dictionary,
}

impl From<ValuesHow> for pleach_builder::Values {
    fn from(values: ValuesHow) -> Self {
        match values {
            ValuesHow::Auto => Self::Auto,
            ValuesHow::Plain => Self::Plain,
            ValuesHow::Dictionary => Self::Dictionary,
        }
    }
}

/// Inputs that have a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Header {
    /// Every input
    Each,
    /// Only the first input
    First,
}

impl From<Header> for pleach_input::Header {
    fn from(header: Header) -> Self {
        match header {
            Header::Each => Self::Each,
            Header::First => Self::First,
        }
    }
}

/// Method by which a new generation is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Patch if possible, else merge
    Auto,
    /// Read the old file and write a new one
    Merge,
    /// Copy the file and rewrite the blocks with changed values; only for puts of keys that occur once
    Patch,
}

/// Arguments of `rebuild`.
#[derive(Clone, Debug, Args)]
pub struct RebuildArgs {
    /// File to replace by its next generation; or folder of a set
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Table of changes: operation (put, add, del), key, value; '-' is standard input (requires --format)
    #[arg(long, value_name = "CHANGES", required = true)]
    pub apply: PathBuf,
    /// Change a file of hashes or prefixes, although a change of one key may meet another
    #[arg(long)]
    pub approximate: bool,
    /// Number of old generations to keep, as FILE.g1, FILE.g2 and so on; older ones are removed [default:
    /// keep none, remove none]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Method of building the new generation
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub method: Method,
    /// Leave out the damaged tuples of FILE, instead of refusing FILE
    #[arg(long)]
    pub salvage: bool,
    /// Column of the operation: its name, or its number from 0 [default: op; without a header, the first]
    #[arg(long, value_name = "COL")]
    pub op: Option<String>,
    /// Key column [default: the name of the keys in FILE, or key; without a header, the second]
    #[arg(long, value_name = "COL")]
    pub key: Option<String>,
    /// Value column, or the fields of a record, separated by commas [default: the names in FILE, or value;
    /// without a header, the third and later columns]
    #[arg(long, value_name = "COL")]
    pub value: Option<String>,
    /// Memory for the changes, such as 256M or 4GiB [default: half of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub memory: Option<u64>,
    /// Threads to use; 0 uses all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::threads)]
    pub threads: usize,
    /// Folder for lists that do not fit into memory [default: the folder of FILE]
    #[arg(long, value_name = "DIR")]
    pub temp: Option<PathBuf>,
    /// Treatment of rows with nulls, which in text are empty fields of columns that are not text: error, skip (leave
    /// them out) or default=V (values become V; keys must be there)
    #[arg(long, value_name = "HOW", default_value = "error", value_parser = parse::nulls, allow_hyphen_values = true)]
    pub nulls: Nulls,
    /// Format of CHANGES [default: by its extension]
    #[arg(long, value_name = "F", value_parser = parse::format())]
    pub format: Option<Format>,
    /// Delimiter of text: one character, or \t [default: ',' for CSV, tab for TSV]
    #[arg(long, value_name = "C", value_parser = parse::delimiter, allow_hyphen_values = true)]
    pub delimiter: Option<u8>,
    /// The first line of text is data; columns are chosen by number, from 0
    #[arg(long)]
    pub no_header: bool,
    /// The first line of text is a header, though it may look like data
    #[arg(long, conflicts_with = "no_header")]
    pub header: bool,
    /// Write metrics of the run for Prometheus to PATH, also if it fails
    #[arg(long, value_name = "PATH")]
    pub metrics: Option<PathBuf>,
}

/// Arguments of `build`.
#[derive(Clone, Debug, Args)]
pub struct BuildArgs {
    /// The tables.
    #[command(flatten)]
    pub table: TableArgs,
    /// File to build; an existing Pleach file is replaced in one step
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Number of old generations to keep, as FILE.g1, FILE.g2 and so on; older ones are removed [default:
    /// keep none, remove none]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Replace FILE even if it is not a Pleach file, but never an input
    #[arg(long)]
    pub force: bool,
    /// Regions of the file: lines, and the structures that lead to them: spine, grid (faster, if keys are
    /// spread evenly enough), fast[:full|delta|partial|auto][:packed|padded] (the tree of the FAST paper, of
    /// full or compressed keys), harmonia[:FANOUT[:PERCENT]] (a B+tree in two arrays, with nodes filled to
    /// PERCENT), btree[:ORDER] (a B+tree of nodes with metadata); also columns (for scans without a copy),
    /// packed (keys in as few bits as each 1024 of them need), wide (words as long as numeric keys, even if
    /// shorter ones tell them apart), plain or dictionary (see --values)
    #[arg(long, value_name = "L,...", default_value = "lines,spine,grid", value_parser = parse::layout)]
    pub layout: Layout,
    /// How texts, byte strings and records are stored that are too long for the lines [default: that of the
    /// layout, else auto]
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
    /// Folder for sorting on disk [default: the folder of FILE]
    #[arg(long, value_name = "DIR")]
    pub temp: Option<PathBuf>,
    /// Write metrics of the run for Prometheus to PATH, also if it fails
    #[arg(long, value_name = "PATH")]
    pub metrics: Option<PathBuf>,
    /// Say how large the file and how fast look-ups would be, and build nothing
    #[arg(long, conflicts_with = "metrics")]
    pub dry_run: bool,
}

/// Options of commands that read tables.
#[derive(Clone, Debug, Args)]
pub struct TableArgs {
    /// Tables to read, in this order: files, folders, patterns in quotes; '-' is standard input (requires
    /// --format)
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Key column: its name, or its number from 0. A name is looked up in every input [default: the first
    /// column of the first input]
    #[arg(long, value_name = "COL")]
    pub key: Option<String>,
    /// Value column; or several, separated by commas, as the fields of a record; or @row for the row number
    /// from 0 [default: the second column, else none]
    #[arg(long, value_name = "COL,...|@row", allow_hyphen_values = true)]
    pub value: Option<String>,
    /// Key type: u32 u64 u128 i32 i64 f64 bytes16 (any N) bytes utf8, or date time[us] timestamp[us]
    /// timestamp[us,UTC] duration[us] decimal(10,2) uuid ipv4 ipv6 ip hex hex:N (the first N digits) dna2
    /// dna2:canonical (a sequence and its reverse complement are one) cidr (networks, as intervals) [default: the
    /// column's; u64 for text]
    #[arg(long, value_name = "T", value_parser = parse::build_key_type)]
    pub key_type: Option<Spelled<BuildKeyType>>,
    /// Value type: none u32 u64 i32 i64 f32 f64 bytes16 (any N) bytes utf8 bool, or date and others [default:
    /// the column's; u64 for text]; for a record, one type for all fields or T,... for each, also u8 u16 i8
    /// i16
    #[arg(long, value_name = "T,...", value_parser = parse::value_types)]
    pub value_type: Option<Spelled<ValueTypes>>,
    /// Keys begin intervals, and column END has their last keys; get answers by the interval that holds a key.
    /// For networks of addresses, such as 192.0.2.0/24, give --key-type cidr instead
    #[arg(long, value_name = "END")]
    pub interval: Option<String>,
    /// Meaning of END
    #[arg(long, value_name = "WHAT", default_value = "inclusive", requires = "interval")]
    pub interval_end: IntervalEnd,
    /// Treatment of rows with nulls, which in text are empty fields of columns that are not text: error, skip (leave
    /// them out) or default=V (values become V; keys must be there)
    #[arg(long, value_name = "HOW", default_value = "error", value_parser = parse::nulls, allow_hyphen_values = true)]
    pub nulls: Nulls,
    /// Format of every INPUT [default: by its extension]
    #[arg(long, value_name = "F", value_parser = parse::format())]
    pub format: Option<Format>,
    /// Keys are the k-mers of FASTA or FASTQ, each once, with its count: windows of K bases, 1 to 61, in which all
    /// letters are A C G T. A k-mer and its reverse complement are one key, unless --key-type dna2; --value-type
    /// none leaves out the counts
    #[arg(long, value_name = "K", value_parser = parse::kmers, conflicts_with_all = ["raw", "interval", "unique"])]
    pub kmers: Option<usize>,
    /// Types of raw tuples, such as u64,u64, or u64 for keys without values
    #[arg(long, value_name = "K,V", value_parser = parse::raw_types)]
    pub raw: Option<(KeyType, ValueType)>,
    /// Delimiter of text: one character, or \t [default: ',' for CSV, tab for TSV]
    #[arg(long, value_name = "C", value_parser = parse::delimiter, allow_hyphen_values = true)]
    pub delimiter: Option<u8>,
    /// The first line of text is data; columns are chosen by number, from 0
    #[arg(long)]
    pub no_header: bool,
    /// The first line of text is a header, even if it looks like data: in each input, or only in the first,
    /// as in files made by `split`
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

/// Meaning of the ends of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IntervalEnd {
    /// The last key in the interval
    Inclusive,
    /// The first key behind it
    Exclusive,
}

/// Treatment of intervals that overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverlapHow {
    /// Refuse them
    Error,
    /// The later row wins, and the other interval is cut
    Last,
}

/// Arguments of `generations`.
#[derive(Clone, Debug, Args)]
pub struct GenerationsArgs {
    /// File whose generations are listed, which may be missing; or folder of a set
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Arguments of `rollback`.
#[derive(Clone, Debug, Args)]
pub struct RollbackArgs {
    /// File to replace by an old generation of it, which may be damaged or missing; or folder of a set
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Number of the generation [default: the newest kept one]
    #[arg(value_name = "N")]
    pub generation: Option<u64>,
    /// Old generations to keep, including the current one; older ones are removed [default: keep all,
    /// including the current one]
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Replace FILE even if it is not a Pleach file
    #[arg(long)]
    pub force: bool,
}
