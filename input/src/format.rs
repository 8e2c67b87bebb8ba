//! The formats of tables, one row for each.
//!
//! Whatever lists formats is made from [`FORMATS`]: the names and help texts of the command line, messages,
//! and recognition by extension and by content. A test compares the table in `docs/INPUT.md` with it.

use crate::packed::{CODECS, Codec};
use crate::similar::similar;
use std::path::Path;
use std::str::FromStr;

/// Format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Text with fields separated by commas, quoted by `"` where needed.
    Csv,
    /// Text with fields separated by tabs, without quotes.
    Tsv,
    /// A JSON object a line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow IPC, file or stream.
    Arrow,
    /// A NumPy array.
    Npy,
    /// Little-endian tuples, key then value, without padding; byte strings unchanged.
    Raw,
    /// Sequences, each after a line with its name.
    Fasta,
    /// Sequences with scores, each on four lines.
    Fastq,
}

/// Origin of the types of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Types {
    /// The format has none: columns are `u64` unless another type is requested.
    Requested,
    /// Each column has its own.
    Own,
    /// The elements show them.
    Shown,
    /// They must be given.
    Required,
    /// Keys are k-mers of sequences: DNA.
    Kmers,
}

/// Properties of a format.
#[derive(Clone, Copy, Debug)]
pub struct FormatRow {
    /// The format.
    pub format: Format,
    /// Name on the command line.
    pub name: &'static str,
    /// Name in sentences.
    pub title: &'static str,
    /// Description for help texts.
    pub about: &'static str,
    /// Extensions of file names, in lower case; the usual one first.
    pub extensions: &'static [&'static str],
    /// First bytes of every file of the format, if they identify it.
    pub(crate) marks: &'static [&'static [u8]],
    /// Description of a file with such first bytes.
    pub(crate) noun: &'static str,
    /// Beginning of the message for text where this format is expected, if that is refused by the first bytes.
    pub(crate) not_text: Option<&'static str>,
    /// Columns can have names.
    pub has_names: bool,
    /// Origin of the types of columns.
    pub types: Types,
    /// Elements can be null.
    pub has_nulls: bool,
    /// Rows with nulls can be left out, or values filled in: see [`Nulls`](crate::Nulls). Otherwise they are refused.
    pub treats_nulls: bool,
    /// A stream is read as it arrives; otherwise it is first copied to a temporary file.
    pub is_streamed: bool,
    /// Tables of changes can have this format.
    pub has_changes: bool,
}

/// All formats, in the order of [`Format`].
pub const FORMATS: [FormatRow; 9] = [
    FormatRow {
        format: Format::Csv,
        name: "csv",
        title: "CSV",
        about: "Comma-separated text",
        extensions: &["csv"],
        marks: &[],
        noun: "a CSV file",
        not_text: None,
        has_names: true,
        types: Types::Requested,
        has_nulls: false,
        treats_nulls: true,
        is_streamed: true,
        has_changes: true,
    },
    FormatRow {
        format: Format::Tsv,
        name: "tsv",
        title: "TSV",
        about: "Tab-separated text",
        extensions: &["tsv", "tab"],
        marks: &[],
        noun: "a TSV file",
        not_text: None,
        has_names: true,
        types: Types::Requested,
        has_nulls: false,
        treats_nulls: true,
        is_streamed: true,
        has_changes: true,
    },
    FormatRow {
        format: Format::Ndjson,
        name: "ndjson",
        title: "NDJSON",
        about: "A JSON object a line",
        extensions: &["ndjson", "jsonl"],
        marks: &[],
        noun: "an NDJSON file",
        not_text: None,
        has_names: true,
        types: Types::Shown,
        has_nulls: true,
        treats_nulls: true,
        is_streamed: true,
        has_changes: true,
    },
    FormatRow {
        format: Format::Parquet,
        name: "parquet",
        title: "Parquet",
        about: "Apache Parquet",
        extensions: &["parquet", "pq"],
        // Text may begin with PAR1.
        marks: &[b"PAR1\x15", b"PARE"],
        noun: "a Parquet file",
        not_text: Some("not a readable Parquet file"),
        has_names: true,
        types: Types::Own,
        has_nulls: true,
        treats_nulls: true,
        is_streamed: false,
        has_changes: true,
    },
    FormatRow {
        format: Format::Arrow,
        name: "arrow",
        title: "Arrow",
        about: "Apache Arrow IPC, file or stream",
        extensions: &["arrow", "arrows", "ipc", "feather"],
        marks: &[b"ARROW1\0\0", b"\xff\xff\xff\xff"],
        noun: "an Arrow IPC file",
        not_text: Some("not a readable Arrow file or stream"),
        has_names: true,
        types: Types::Own,
        has_nulls: true,
        treats_nulls: true,
        is_streamed: true,
        has_changes: true,
    },
    FormatRow {
        format: Format::Npy,
        name: "npy",
        title: "NumPy",
        about: "NumPy array",
        extensions: &["npy"],
        marks: &[b"\x93NUMPY"],
        noun: "a NumPy array",
        not_text: None,
        has_names: true,
        types: Types::Own,
        // NaT, the missing date.
        has_nulls: true,
        treats_nulls: false,
        // Except in Fortran order.
        is_streamed: true,
        has_changes: false,
    },
    FormatRow {
        format: Format::Raw,
        name: "raw",
        title: "raw",
        about: "Little-endian tuples, one after the other",
        extensions: &["raw", "bin"],
        marks: &[],
        noun: "a file of raw tuples",
        not_text: None,
        has_names: false,
        types: Types::Required,
        has_nulls: false,
        treats_nulls: false,
        is_streamed: true,
        has_changes: false,
    },
    FormatRow {
        format: Format::Fasta,
        name: "fasta",
        title: "FASTA",
        about: "Sequences, as k-mers",
        extensions: &["fasta", "fa", "fna"],
        // One letter, with which other text begins, too.
        marks: &[],
        noun: "a FASTA file",
        not_text: None,
        has_names: false,
        types: Types::Kmers,
        has_nulls: false,
        treats_nulls: false,
        is_streamed: true,
        has_changes: false,
    },
    FormatRow {
        format: Format::Fastq,
        name: "fastq",
        title: "FASTQ",
        about: "Sequences with scores, as k-mers",
        extensions: &["fastq", "fq"],
        // One letter, with which other text begins, too.
        marks: &[],
        noun: "a FASTQ file",
        not_text: None,
        has_names: false,
        types: Types::Kmers,
        has_nulls: false,
        treats_nulls: false,
        is_streamed: true,
        has_changes: false,
    },
];

const _: () = {
    let mut row = 0;
    while row < FORMATS.len() {
        assert!(FORMATS[row].format as usize == row, "rows are in the order of the variants");
        row += 1;
    }
};

/// Extensions of compressed files and archives that are not read.
const NOT_READ: [&str; 2] = ["z", "zip"];

/// Returns the extension of a path in lower case.
fn extension(path: &Path) -> Option<String> {
    path.extension()?.to_str().map(str::to_ascii_lowercase)
}

/// Returns the codec for the extension of `path`.
pub(crate) fn codec_of_name(path: &Path) -> Option<Codec> {
    let last = extension(path)?;
    CODECS.iter().find(|row| row.extensions.contains(&last.as_str())).map(|row| row.codec)
}

/// Returns true if the extension of `path` is that of a compressed file.
pub(crate) fn is_packed_name(path: &Path) -> bool {
    codec_of_name(path).is_some() || extension(path).is_some_and(|last| NOT_READ.contains(&last.as_str()))
}

impl Format {
    /// Returns the properties of the format.
    #[must_use]
    pub const fn row(self) -> &'static FormatRow {
        &FORMATS[self as usize]
    }

    /// Returns the format for the extension of `path`, in upper or lower case. A second extension may follow,
    /// for the compression: `t.csv.gz`. O(1).
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        let name = if is_packed_name(path) { extension(&path.with_extension(""))? } else { extension(path)? };
        let row = FORMATS.iter().find(|row| row.extensions.contains(&name.as_str()))?;
        Some(row.format)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let row = FORMATS.iter().find(|row| row.name == text);
        row.map(|row| row.format).ok_or_else(|| {
            let names = alternatives(FORMATS.iter().map(|row| row.name));
            let meant = similar(text, FORMATS.iter().map(|row| row.name));
            let meant = meant.map_or(String::new(), |name| format!("did you mean '{name}'? "));
            format!("unknown format '{text}': {meant}use {names}")
        })
    }
}

/// Joins words as `a, b or c`, for messages.
#[must_use]
pub fn alternatives<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let mut words: Vec<W> = words.into_iter().collect();
    let last = words.pop();
    let last = last.as_ref().map_or("", AsRef::as_ref);
    let first: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    if first.is_empty() { last.to_owned() } else { format!("{} or {last}", first.join(", ")) }
}
