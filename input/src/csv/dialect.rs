//! The syntax of a row: delimiters, quotes, escapes and line ends.

use memchr::{memchr, memchr2, memchr3};

/// Delimiter and quoting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    /// If false, backslashes are escapes.
    pub(crate) quotes: bool,
}

/// The fields of one record, without quotes.
#[derive(Debug, Default)]
pub(crate) struct Record {
    bytes: Vec<u8>,
    /// End of each field.
    pub(crate) ends: Vec<usize>,
    /// The record has a quote, so it is not a blank line.
    quoted: bool,
}

impl Record {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.quoted = false;
    }

    pub(crate) fn field(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    /// Adds a field.
    pub(crate) fn push(&mut self, field: &[u8]) {
        self.bytes.extend_from_slice(field);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.ends.len() == 1 && self.bytes.is_empty() && !self.quoted
    }
}

/// Reason why a record was not read.
pub(crate) enum Unread {
    /// Its end is not in the buffer.
    Incomplete,
    /// The field with this number is malformed.
    Bad(usize, &'static str),
    /// The field with this number contains a carriage return that ends no line.
    Return(usize),
}

impl Dialect {
    /// Reads the record at the start of `bytes`; returns its length including the line end.
    pub(crate) fn record(self, bytes: &[u8], record: &mut Record) -> Result<usize, Unread> {
        record.clear();
        let mut at = 0;
        loop {
            let field = record.ends.len();
            if self.quotes && bytes.get(at) == Some(&b'"') {
                record.quoted = true;
                at += 1;
                loop {
                    let more = bytes.get(at..).unwrap_or_default();
                    let length = memchr(b'"', more).ok_or(Unread::Incomplete)?;
                    record.bytes.extend_from_slice(&more[..length]);
                    at += length + 1;
                    if bytes.get(at) != Some(&b'"') {
                        break;
                    }
                    record.bytes.push(b'"');
                    at += 1;
                }
            } else {
                let more = bytes.get(at..).unwrap_or_default();
                let length = self.plain_field(more).ok_or(Unread::Incomplete)?;
                let mut text = &more[..length];
                if more[length] == b'"' {
                    return Err(Unread::Bad(field, "a quote inside an unquoted field"));
                }
                at += length;
                if let (b'\n', [start @ .., b'\r']) = (more[length], text) {
                    text = start;
                }
                if memchr(b'\r', text).is_some() {
                    return Err(Unread::Return(field));
                }
                record.bytes.extend_from_slice(text);
            }
            record.ends.push(record.bytes.len());
            match (bytes.get(at), bytes.get(at + 1)) {
                (Some(&byte), _) if byte == self.delimiter => at += 1,
                (Some(b'\n'), _) => return Ok(at + 1),
                (Some(b'\r'), Some(b'\n')) => return Ok(at + 2),
                (None, _) | (Some(b'\r'), None) => return Err(Unread::Incomplete),
                (Some(b'\r'), _) => return Err(Unread::Return(field)),
                _ => return Err(Unread::Bad(field, "text after the closing quote")),
            }
        }
    }

    /// Returns the length of the unquoted field at the start of `bytes`: up to a delimiter, a line feed or
    /// (in a dialect with quotes) a quote.
    #[inline]
    pub(crate) fn plain_field(self, bytes: &[u8]) -> Option<usize> {
        if self.quotes {
            memchr3(self.delimiter, b'\n', b'"', bytes)
        } else {
            memchr2(self.delimiter, b'\n', bytes)
        }
    }
}

/// Appends `field` with its escapes replaced.
pub(crate) fn unescape(mut field: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr(b'\\', field) {
        out.extend_from_slice(&field[..at]);
        let meant = match field.get(at + 1) {
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b'\\') => b'\\',
            // Not one of our escapes: kept as it is.
            _ => {
                out.push(b'\\');
                field = &field[at + 1..];
                continue;
            }
        };
        out.push(meant);
        field = &field[at + 2..];
    }
    out.extend_from_slice(field);
}
