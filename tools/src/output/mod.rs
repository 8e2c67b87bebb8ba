//! Tables as output: CSV, TSV, Parquet and Arrow IPC, to a file that appears whole or not at all.
//!
//! A command describes its columns ([`Field`]), opens a [`Target`], makes a [`TableWriter`] for the format
//! and passes it batches of [`Numbers`](table::Numbers). Only [`Target::commit`] gives the file its name;
//! before that the file is not visible, and dropping the target removes it.

mod arrow;
mod csv;
mod gathered;
mod parquet;
mod table;
mod target;

pub use gathered::Gathered;
pub use table::{Cell, Field, OutputError, TableWriter};
pub use target::{Target, check, inputs};

use std::io::Write;
use std::path::Path;

/// Format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    Tsv,
    Parquet,
    /// The file format of Arrow, with a directory at its end.
    Arrow,
    /// The stream format of Arrow, which is read as it arrives.
    ArrowStream,
}

impl Format {
    /// Returns the format of the extension of `path`, in either case.
    pub fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "csv" => Self::Csv,
            "tsv" | "tab" => Self::Tsv,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "ipc" | "feather" => Self::Arrow,
            "arrows" => Self::ArrowStream,
            _ => return None,
        })
    }

    /// Returns the format of an input if tables of it are written, too.
    pub fn from_input(format: pleach_input::Format) -> Option<Self> {
        [Self::Csv, Self::Tsv, Self::Parquet, Self::Arrow]
            .into_iter()
            .find(|one| one.name() == format.row().name)
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Parquet => "parquet",
            Self::Arrow | Self::ArrowStream => "arrow",
        }
    }

    /// Returns the format in which a target is written: nobody can read the end of a pipe first.
    pub fn for_target(self, target: &Target) -> Self {
        match self {
            Self::Arrow if target.is_stream() => Self::ArrowStream,
            same => same,
        }
    }
}

/// Makes a writer of `format` into `out`.
pub fn writer<'a>(
    format: Format,
    fields: &[Field],
    out: impl Write + Send + 'a,
) -> Result<Box<dyn TableWriter + 'a>, OutputError> {
    Ok(match format {
        Format::Csv => Box::new(csv::Writer::new(fields, b',', out)),
        Format::Tsv => Box::new(csv::Writer::new(fields, b'\t', out)),
        Format::Parquet => Box::new(parquet::Writer::new(fields, out)?),
        Format::Arrow => Box::new(arrow::Writer::new(fields, out)?),
        Format::ArrowStream => Box::new(arrow::Stream::new(fields, out)?),
    })
}
