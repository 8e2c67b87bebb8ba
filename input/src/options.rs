//! Options for reading inputs.

use crate::format::Format;
use crate::nulls::{NullCounts, Nulls};
use pleach_builder::source::Derived;
use pleach_format::logical::{Logical, Meaning};
use pleach_format::record::{FieldKind, Record};
use pleach_format::{KeyType, ValueType};

/// Meaning of the first line of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Header {
    /// Names of columns. Refused if the line may be data: no chosen column is text, none was chosen by its
    /// name, and all of the fields parse.
    #[default]
    Checked,
    /// Names of columns, whatever they look like.
    Each,
    /// Names of columns in the first input, and data in all others.
    First,
}

/// The intervals of a table: keys are their first elements, and values say where they end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Column of the ends: its name, or its number from 0. `None` if keys are networks of addresses, such as
    /// `192.0.2.0/24`, which say it themselves.
    pub end: Option<String>,
    /// Ends are the first elements behind their intervals, and not the last ones in them.
    pub is_exclusive: bool,
}

/// Options for reading inputs. By default the first column is the key and the second, if there is one, the
/// value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputOptions {
    /// Format of every input; determined by the extension if `None`.
    pub format: Option<Format>,
    /// Key column: its name, or its number from 0 (a name that is a number takes precedence). The first
    /// column if `None`. A list of columns separated by commas makes a composite key, unless the whole text is
    /// the name of a column.
    pub key: Option<String>,
    /// Value column, or `@row` for the row number. If `None`, the second column (the first if the second is
    /// the key), or no values if there is only one column. A list of columns separated by commas makes a
    /// record, unless the whole text is the name of a column.
    pub value: Option<String>,
    /// Key type; if `None`, that of the column, and `u64` for CSV and TSV.
    pub key_type: Option<KeyType>,
    /// Value type; if `None`, that of the column, and `u64` for CSV and TSV. `none` drops the values.
    pub value_type: Option<ValueType>,
    /// Types of the fields of a record: one for all, or one for each. If empty, those of the columns, and
    /// `u64` for CSV and TSV.
    pub field_types: Vec<FieldKind>,
    /// Meaning of the keys: the notation of texts, or the unit or scale to which numbers are converted. That
    /// of the column if `None`; [`Logical::Plain`] accepts no other one.
    pub key_logical: Option<Logical>,
    /// Keys are texts, of which the file gets shorter keys; `key_type` is [`KeyType::Utf8`].
    pub derived: Option<Derived>,
    /// Types of the parts of a composite key: one for all, or one for each. If empty, those of the columns, and
    /// `u64` for CSV and TSV.
    pub part_types: Vec<Meaning>,
    /// Meaning of the values, or of all fields of a record.
    pub value_logical: Option<Logical>,
    /// Meanings of the fields of a record: one for all, or one for each.
    pub field_logicals: Vec<Logical>,
    /// Keys and values with a logical type are given as the stored integers.
    pub raw_values: bool,
    /// Values are this record. Its fields are the columns of their names or, without a header, the columns
    /// after the key.
    pub record: Option<Record>,
    /// Types of raw tuples, all of fixed length. If set, every input is raw.
    pub raw: Option<(KeyType, ValueType)>,
    /// Delimiter of text; if `None`, a comma for CSV and a tab for TSV.
    pub delimiter: Option<u8>,
    /// The first line of text is data, and columns have only numbers.
    pub no_header: bool,
    /// Meaning of the first line of text, unless `no_header` is set.
    pub header: Header,
    /// The input is a table of changes: operation ([`pleach_builder::Op`]), key and value; a `del` may lack the value.
    /// By default these are the columns `op`, `key` (or `key_name`) and `value` (or `value_name`), and
    /// without a header the first three. CSV, TSV, Parquet and Arrow support such tables.
    pub changes: bool,
    /// Column of the operation in a table of changes; if `None`, `op` or the first column.
    pub op: Option<String>,
    /// Name of the key column in the file to be changed.
    pub key_name: Option<String>,
    /// Name of the value column in the file to be changed.
    pub value_name: Option<String>,
    /// Number of bases of the k-mers of FASTA and FASTQ, which are the keys, each once. The value is the number of
    /// times that the k-mer occurs, unless the value type is none.
    pub kmers: Option<usize>,
    /// Keys begin intervals; `None` if keys are keys.
    pub interval: Option<Interval>,
    /// What becomes of rows with nulls.
    pub nulls: Nulls,
    /// Where rows with nulls are counted.
    pub null_counts: NullCounts,
}

impl InputOptions {
    /// Returns true if plain integers are taken as the words of a logical type.
    pub(crate) fn is_raw(&self) -> bool {
        self.raw_values || self.raw.is_some()
    }

    /// Returns the notation of key texts, if it is not that of a plain type.
    pub(crate) fn key_texts(&self) -> Option<&Logical> {
        self.key_logical.as_ref().filter(|_| !self.raw_values)
    }

    /// Returns the notation of value texts, if it is not that of a plain type.
    pub(crate) fn value_texts(&self) -> Option<&Logical> {
        self.value_logical.as_ref().filter(|_| !self.raw_values)
    }
}
