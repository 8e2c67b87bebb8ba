//! CSV and TSV: numbers and strings are parsed by hand from large blocks of bytes.
//!
//! CSV is strict RFC 4180: fields may be quoted, a quote inside is doubled, and any other quote is an error.
//! Lines end in LF or CRLF; any other carriage return outside quotes is an error. TSV has no quotes: the
//! escapes are `\t`, `\n`, `\r` and `\\`, in names and in strings, and any other backslash stands for itself.
//! Blank lines are skipped; every row has as many fields as the first line. [`crate::text`] handles
//! compression and other line ends.
//!
//! A header that may be data is refused: see [`crate::Header`].
//!
//! Strings are the bytes of their fields, blanks included: `bytes` are the bytes of the file, not hexadecimal
//! digits, and an empty field is the empty string. A table of one column of strings writes it as `""`, since
//! a blank line is not a row.
//!
//! [`fast::fast_rows`] takes nearly every row: whole lines without doubled quotes, quoted numbers or escapes, whose
//! numbers are digits. It leaves all other rows to [`rows::Text`], which takes every row. The two agree
//! because the fast one gives up, not because it repeats the rules.

mod dialect;
mod fast;
mod header;
mod rows;

use crate::body::Body;
use crate::folders::Folders;
use crate::interval::starts;
use crate::kind::{Target, Wanted};
use crate::names::{Asked, Names};
use crate::options::Header;
use crate::problem::{fault, problem};
use crate::text::{self, Use};
use dialect::Dialect;
use pleach_builder::{Schema, Source, SourceError};
use pleach_format::{KeyType, Logical, ValueType};
use rows::Text;

/// Opens a text table.
pub(crate) fn open(
    input: &str,
    body: Body,
    tabs: bool,
    options: &Asked,
) -> Result<Box<dyn Source>, SourceError> {
    let delimiter = options.delimiter.unwrap_or(if tabs { b'\t' } else { b',' });
    if matches!(delimiter, b'"' | b'\n' | b'\r' | b'+' | b'-' | b'.') || delimiter.is_ascii_alphanumeric() {
        let shown = char::from(delimiter).escape_debug();
        return Err(problem(
            input,
            "",
            fault(format!("invalid delimiter '{shown}', which occurs in numbers or quotes"), "use another"),
        ));
    }
    let key_type = options.key_type.unwrap_or(KeyType::U64);
    let target = starts(Target::of_key(key_type).meant(options.key_texts()), options);
    let schema = Schema {
        key_logical: options.key_logical.as_ref().map(Logical::meta).unwrap_or_default(),
        ..Schema::plain(key_type, ValueType::None, None)
    };
    let (stream, bytes_total) = body.into_stream();
    let reader = text::open(input, stream, if tabs { Use::Tsv } else { Use::Csv })?;
    let key = Wanted { index: 0, target, label: String::new() };
    let dialect = Dialect { delimiter, quotes: !tabs };
    let mut text = Text::new(input, reader, bytes_total, schema, dialect, key);
    let length = text.read_record()?;
    if length == 0 {
        let wanted = if options.no_header { "rows are" } else { "a header line is" };
        return Err(problem(input, "", fault(format!("it is empty, but {wanted} expected"), "")));
    }
    text.fields = text.row.ends.len();
    let first = options.first().filter(|_| options.header == Header::First && !options.no_header);
    let mut names = match first {
        _ if options.no_header => None,
        Some(first) => text.inherit(first, tabs, options)?,
        None => {
            text.start += length;
            Some(text.header(tabs)?)
        }
    };
    if let Some(names) = &mut names {
        text.folders = Folders::asked(input, names, options)?;
        names.extend(text.folders.names());
    }
    let columns = names.as_ref().map_or(Names::Numbered(text.fields), |names| Names::Named(names));
    text.take_columns(columns, options)?;
    // The header is not a row.
    text.nulls = options.nulls.clone();
    text.null_counts = options.null_counts.clone();
    Ok(Box::new(text))
}
