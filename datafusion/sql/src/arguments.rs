//! The arguments of the command.

use clap::{Parser, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Asks Pleach files and sets in SQL
///
/// A file or the folder of a set is a table: name it with --table, or write its path in quotes in place of a table.
/// Tables of other formats (.parquet, .csv, .json, .arrow) can be named as well.
#[derive(Debug, Parser)]
#[command(name = "pleach-sql", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Arguments {
    /// Run these statements, separated by semicolons
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    pub commands: Vec<String>,
    /// Run the statements of a file, after those of --command; '-' is standard input, which is also read without any
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Name a table: NAME=PATH
    #[arg(short = 't', long = "table", value_name = "NAME=PATH", value_parser = named)]
    pub tables: Vec<Table>,
    /// How results are printed: a table for people, CSV, or one JSON object a line
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Memory limit of queries, such as 512MiB or 4GB; sorts and joins that need more use the disk
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<usize>,
    /// Number of partitions in which a query is run [default: that of the processors]
    #[arg(long, value_name = "N")]
    pub partitions: Option<NonZeroUsize>,
}

const EXAMPLES: &str = "Examples:
  pleach-sql -c \"SELECT * FROM 'squares.pleach' WHERE key BETWEEN 10 AND 20\"
  pleach-sql -t orders=orders.set -c 'SELECT count(*), min(o_orderkey) FROM orders'
  pleach-sql -c \"COPY (SELECT id, name FROM 'people.parquet') TO 'people.pleach' STORED AS PLEACH\"";

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table with borders.
    Table,
    /// Comma-separated values, with a line of names.
    Csv,
    /// One JSON object a line.
    Json,
}

/// A table and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name in SQL.
    pub name: String,
    /// The file, or the folder of the set.
    pub path: String,
}

fn named(text: &str) -> Result<Table, String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok(Table { name: name.into(), path: path.into() })
        }
        _ => Err("give a name and a path, such as orders=orders.pleach".into()),
    }
}

fn size(text: &str) -> Result<usize, String> {
    let bytes = pleach_datafusion::bytes_of(text).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| "give a number of bytes, such as 512MiB or 4GB".into())
}
