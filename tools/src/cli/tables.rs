//! The arguments of commands that take tables where they take index files.

use crate::parse::{self, BuildKeyType, Spelled, ValueTypes};
use clap::Args;
use pleach_format::{KeyType, ValueType};
use pleach_input::{Format, Nulls};

/// How inputs are read that are tables.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of inputs that are tables")]
pub struct Tables {
    /// Key column of each table: its name, or its number from 0 [default: the first column]
    #[arg(long, value_name = "COL")]
    pub key: Option<String>,
    /// Value column of each table; or several, separated by commas, as a record [default: the second column, else
    /// none]
    #[arg(long, value_name = "COL,...|@row", allow_hyphen_values = true)]
    pub value: Option<String>,
    /// Key type of the tables, as for build [default: that of the other input, else as for build]
    #[arg(long, value_name = "T", value_parser = parse::build_key_type)]
    pub key_type: Option<Spelled<BuildKeyType>>,
    /// Value type of the tables, as for build [default: as for build]
    #[arg(long, value_name = "T,...", value_parser = parse::value_types)]
    pub value_type: Option<Spelled<ValueTypes>>,
    /// Format of the tables [default: by extension; needed for standard input]
    #[arg(long, value_name = "F", value_parser = parse::format(), hide_possible_values = true)]
    pub input_format: Option<Format>,
    /// Types of raw tuples, as for build
    #[arg(long, value_name = "K,V", value_parser = parse::raw_types)]
    pub raw: Option<(KeyType, ValueType)>,
    /// Keys are the k-mers of FASTA or FASTQ, as for build
    #[arg(long, value_name = "K", value_parser = parse::kmers, conflicts_with = "raw")]
    pub kmers: Option<usize>,
    /// Delimiter of text: one character, or \t [default: ',' for CSV, tab for TSV]
    #[arg(long, value_name = "C", value_parser = parse::delimiter, allow_hyphen_values = true)]
    pub delimiter: Option<u8>,
    /// The first line of text is data; columns are chosen by number, from 0
    #[arg(long)]
    pub no_header: bool,
    /// Treatment of rows with nulls, as for build: error, skip or default=V [default: error]
    #[arg(long, value_name = "HOW", value_parser = parse::nulls, allow_hyphen_values = true)]
    pub nulls: Option<Nulls>,
}

/// Columns of one of two tables.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of inputs that are tables")]
pub struct Sides {
    /// Key column of the left table, in place of --key
    #[arg(long, value_name = "COL")]
    pub left_key: Option<String>,
    /// Key column of the right table, in place of --key
    #[arg(long, value_name = "COL")]
    pub right_key: Option<String>,
    /// Value column of the left table, in place of --value
    #[arg(long, value_name = "COL,...|@row", allow_hyphen_values = true)]
    pub left_value: Option<String>,
    /// Value column of the right table, in place of --value
    #[arg(long, value_name = "COL,...|@row", allow_hyphen_values = true)]
    pub right_value: Option<String>,
    /// Value type of the left table, in place of --value-type
    #[arg(long, value_name = "T,...", value_parser = parse::value_types)]
    pub left_value_type: Option<Spelled<ValueTypes>>,
    /// Value type of the right table, in place of --value-type
    #[arg(long, value_name = "T,...", value_parser = parse::value_types)]
    pub right_value_type: Option<Spelled<ValueTypes>>,
}
