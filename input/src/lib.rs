//! Tables as sources of tuples: CSV, TSV, NDJSON, Parquet, Arrow IPC, NumPy `.npy` and raw binary.
//!
//! [`open`] selects the format by the extension, and the key and value columns by [`InputOptions`]. Several
//! inputs are concatenated in argument order; columns are found by the names of the first. Input without an
//! extension (standard input, pipes) needs its format given. Each format is a `Source` of its own; one more
//! concatenates them, checks that they agree, and adds row numbers for `@row`. All text, lists of keys
//! included, is read by [`text::open`].
//!
//! Numbers, byte strings and texts keep their types unless others are requested; then they are converted
//! exactly or refused. `docs/INPUT.md` has the table.
//!
//! Row numbers in messages count the data rows of one input from 1; header lines and blank lines are not
//! rows. `@row` counts from 0, over all inputs.
//!
//! ```text
//! format.rs     the list of formats           content.rs    recognition by first bytes
//! options.rs    what is requested             names.rs      which columns are read
//! table.rs      several inputs as one         open.rs       one input: its format and reader
//! body.rs       a file or a stream            text.rs       text and its line ends
//! csv/          CSV, TSV                      arrow.rs      Arrow IPC (messages.rs: lengths)
//! npy/, raw.rs  NumPy, raw tuples             parquet.rs    Parquet (pages.rs: lengths)
//! records.rs    what npy and raw share        batches.rs    what Arrow and Parquet share
//! selection.rs  types of the columns          convert.rs    numbers, exactly or not at all
//! nulls.rs      what becomes of nulls         interval.rs   where intervals end
//! json.rs       NDJSON                        kmers.rs      FASTA and FASTQ
//! paths.rs      folders and patterns          folders.rs    columns of a path
//! packed.rs     decompression, beside the reader
//! ```

mod arrays;
mod arrow;
mod batches;
mod body;
mod choose;
mod chunk;
mod columnar;
mod content;
mod convert;
mod csv;
mod fields;
mod flat;
mod folders;
mod format;
mod guard;
mod interval;
mod json;
mod kind;
mod kmers;
mod logical;
mod messages;
mod names;
mod npy;
mod nulls;
mod open;
mod options;
mod packed;
mod pages;
mod parquet;
mod parse;
mod parts;
mod paths;
mod problem;
mod raw;
mod records;
mod selection;
mod similar;
mod strings;
mod table;
pub mod text;
mod thrift;

pub use content::looks_like;
pub use format::{FORMATS, Format, FormatRow, Types, alternatives};
pub use kmers::KMER_BASES_MAX;
pub use logical::{extension_metadata, extension_of, is_text_in_arrow, logical_text, logical_type};
pub use nulls::{NullCounts, Nulls};
pub use options::{Header, InputOptions, Interval};
pub use paths::expanded;
pub use similar::similar;
pub use table::{open, open_batches, open_stream};

/// The programs of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
