//! CSV and TSV: numbers and strings are parsed by hand from large blocks of bytes.
//!
//! CSV is strict RFC 4180: fields may be quoted, a quote inside is doubled, and any other quote is an error.
//! Lines end in LF or CRLF; any other carriage return outside quotes is an error. TSV has no quotes: the
//! escapes are `\t`, `\n`, `\r` and `\\`, in names and in strings, and any other backslash stands for itself.
//! Blank lines are skipped; every row has as many fields as the first line. [`super::text`] handles
//! compression and other line ends.
//!
//! A header that may be data is refused: see [`super::Header`].
//!
//! Strings are the bytes of their fields, blanks included: `bytes` are the bytes of the file, not hexadecimal
//! digits, and an empty field is the empty string. A table of one column of strings writes it as `""`, since
//! a blank line is not a row.
//!
//! [`fast_rows`] takes nearly every row: whole lines without doubled quotes, quoted numbers or escapes, whose
//! numbers are digits. It leaves all other rows to [`Text::slow_row`], which takes every row. The two agree
//! because the fast one gives up, not because it repeats the rules.

mod header;

use super::convert::{self, Kind, Target};
use super::fields::Fields;
use super::names::{Asked, Names};
use super::strings::{self, CHUNK_BYTES, held_bytes};
use super::text::{self, RETURN, TextReader, Use};
use super::{Body, Header, prepare, problem, unknown_op};
use pleach_builder::source::{Chunk, Column, Op, Schema, Source, SourceError, Strings};
use memchr::{memchr, memchr2, memchr3, memrchr};
use pleach_format::{KeyType, Logical, ValueType};

/// Bytes per read call, and of the buffer unless a row is longer.
const READ_BYTES: usize = 2 << 20;
/// Maximum length of a row. An unclosed quote swallows everything after it: an error is better than using all
/// memory.
const ROW_BYTES_MAX: usize = 64 << 20;

/// A column to be parsed.
#[derive(Clone, Debug)]
struct Wanted {
    index: usize,
    target: Target,
    label: String,
}

/// Delimiter and quoting.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    delimiter: u8,
    /// If false, backslashes are escapes.
    quotes: bool,
}

/// The fields of one record, without quotes.
#[derive(Debug, Default)]
struct Record {
    bytes: Vec<u8>,
    /// End of each field.
    ends: Vec<usize>,
    /// The record has a quote, so it is not a blank line.
    quoted: bool,
}

impl Record {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.quoted = false;
    }

    fn field(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    fn is_blank(&self) -> bool {
        self.ends.len() == 1 && self.bytes.is_empty() && !self.quoted
    }
}

/// Reason why a record was not read.
enum Unread {
    /// Its end is not in the buffer.
    Incomplete,
    /// The field with this number is malformed.
    Bad(usize, &'static str),
    /// The field with this number contains a carriage return that ends no line.
    Return(usize),
}

impl Dialect {
    /// Reads the record at the start of `bytes`; returns its length including the line end.
    fn record(self, bytes: &[u8], record: &mut Record) -> Result<usize, Unread> {
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
                    return Err(Unread::Bad(field, "a quote stands inside a field that is not quoted"));
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
                _ => return Err(Unread::Bad(field, "something follows the closing quote")),
            }
        }
    }

    /// Returns the length of the unquoted field at the start of `bytes`: up to a delimiter, a line feed or
    /// (in a dialect with quotes) a quote.
    #[inline]
    fn plain_field(self, bytes: &[u8]) -> Option<usize> {
        if self.quotes {
            memchr3(self.delimiter, b'\n', b'"', bytes)
        } else {
            memchr2(self.delimiter, b'\n', bytes)
        }
    }
}

/// A text table.
struct Text {
    input: String,
    reader: TextReader,
    bytes_total: Option<u64>,
    schema: Schema,
    dialect: Dialect,
    /// Number of fields per row.
    fields: usize,
    key: Wanted,
    value: Option<Wanted>,
    /// Columns of a record.
    record: Option<Fields>,
    /// Column of the operation, in a table of changes.
    op: Option<usize>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Up to here, at least, every carriage return precedes a line feed. If this is before `end`, the next
    /// one does not, or the bytes after this were not searched.
    even: usize,
    ended: bool,
    rows: u64,
    row: Record,
    /// Buffer for a string without its escapes.
    plain: Vec<u8>,
}

impl Text {
    /// Reads more bytes after those left. At the end of the input, adds the line feed that the last line may
    /// lack.
    fn refill(&mut self) -> Result<(), SourceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.even = self.even.saturating_sub(self.start);
        self.start = 0;
        // One byte is reserved for the line feed.
        let wanted = self.end + READ_BYTES + 1;
        if self.end > ROW_BYTES_MAX {
            let place = format!("row {}", self.rows + 1);
            let text = format!("it has more than {ROW_BYTES_MAX} bytes: close its quotes");
            return Err(problem(&self.input, place, text));
        }
        if self.buffer.len() < wanted {
            // Doubling avoids moving a long row once per read.
            self.buffer.resize(wanted.max(self.end * 2), 0);
        }
        let space_end = self.buffer.len() - 1;
        let space = &mut self.buffer[self.end..space_end];
        let (bytes, ended) = self
            .reader
            .fill(space)
            .map_err(|error| text::failed(&self.input, format!("after row {}", self.rows), error))?;
        self.ended = ended;
        self.end += bytes;
        if self.ended && self.end > 0 && self.buffer[self.end - 1] != b'\n' {
            self.buffer[self.end] = b'\n';
            self.end += 1;
        }
        Ok(())
    }

    /// Reads the next record that is not a blank line into `self.row`; returns its length, or 0 at the end.
    /// The record stays in the buffer.
    fn read_record(&mut self) -> Result<usize, SourceError> {
        loop {
            if self.start == self.end {
                if self.ended {
                    return Ok(0);
                }
                self.refill()?;
                continue;
            }
            match self.dialect.record(&self.buffer[self.start..self.end], &mut self.row) {
                Ok(length) if self.row.is_blank() => self.start += length,
                Ok(length) => return Ok(length),
                Err(Unread::Incomplete) if !self.ended => self.refill()?,
                Err(Unread::Incomplete) => {
                    let place = format!("row {}", self.rows + 1);
                    return Err(problem(&self.input, place, "a quote is opened and not closed: close it"));
                }
                Err(Unread::Return(field)) => {
                    let place = format!("row {}, field {}", self.rows + 1, field + 1);
                    return Err(problem(&self.input, place, format!("{RETURN}, or quote the field")));
                }
                Err(Unread::Bad(field, what)) => {
                    let place = format!("row {}, field {}", self.rows + 1, field + 1);
                    let text = format!("{what}: quote the field, and double the quotes in it");
                    return Err(problem(&self.input, place, text));
                }
            }
        }
    }

    /// Takes one row of any form. Returns false at the end.
    fn slow_row(&mut self, chunk: &mut Chunk) -> Result<bool, SourceError> {
        let length = self.read_record()?;
        if length == 0 {
            return Ok(false);
        }
        let op = self.op_of_record(chunk)?;
        let found = self.row.ends.len();
        let lacks = |index: usize| index >= found || self.row.field(index).is_empty();
        let all_values = |holds: &dyn Fn(usize) -> bool| match (&self.value, &self.record) {
            (Some(value), _) => holds(value.index),
            (None, Some(record)) => record.columns.iter().all(|column| holds(column.index)),
            (None, None) => false,
        };
        let valueless = op == Some(Op::Del) && all_values(&lacks);
        // Only values at the end of a row may be left out.
        let values = self.record.as_ref().map_or(1, |record| record.columns.len());
        let short = valueless
            && found + values == self.fields
            && self.key.index < found
            && all_values(&|index| index >= found);
        if found != self.fields && !short {
            let fields = if found == 1 { "field" } else { "fields" };
            let text = format!("it has {found} {fields}, but the first line has {}", self.fields);
            let place = format!("row {}", self.rows + 1);
            return Err(problem(&self.input, place, format!("{text}: give every row the same")));
        }
        let mut plain = std::mem::take(&mut self.plain);
        self.take(&self.key, &mut plain, &mut chunk.keys)?;
        match &self.value {
            Some(_) if valueless => chunk.values.push_default(),
            Some(value) => self.take(value, &mut plain, &mut chunk.values)?,
            None => {}
        }
        if let Some(mut record) = self.record.take() {
            for (column, held) in record.columns.iter().zip(&mut record.held) {
                if valueless {
                    held.push_default();
                } else {
                    self.take_field(column.index, column.target, &column.label, &mut plain, held)?;
                }
            }
            self.record = Some(record);
        }
        self.plain = plain;
        self.start += length;
        self.rows += 1;
        Ok(true)
    }

    /// Adds the operation of `self.row` to the chunk and returns it; `None` if this is not a table of
    /// changes.
    fn op_of_record(&self, chunk: &mut Chunk) -> Result<Option<Op>, SourceError> {
        let Some(index) = self.op.filter(|&index| index < self.row.ends.len()) else { return Ok(None) };
        let field = self.row.field(index);
        let op = Op::from_name(field).ok_or_else(|| unknown_op(&self.input, self.rows + 1, field))?;
        chunk.ops.push(op);
        Ok(Some(op))
    }

    /// Appends the wanted field of `self.row`.
    fn take(&self, wanted: &Wanted, plain: &mut Vec<u8>, out: &mut Column) -> Result<(), SourceError> {
        self.take_field(wanted.index, wanted.target, &wanted.label, plain, out)
    }

    fn take_field(
        &self,
        index: usize,
        target: Target,
        label: &str,
        plain: &mut Vec<u8>,
        out: &mut Column,
    ) -> Result<(), SourceError> {
        let field = self.row.field(index);
        let row = self.rows + 1;
        if !matches!(out, Column::Bytes(_)) {
            let word = convert::parse(field, target)
                .map_err(|what| strings::unparsed(&self.input, row, label, field, target, what))?;
            #[allow(clippy::cast_possible_truncation)]
            match out {
                Column::U32(words) => words.push(word as u32),
                Column::U64(words) => words.push(word as u64),
                Column::U128(words) => words.push(word),
                Column::None | Column::Bytes(_) => {}
            }
            return Ok(());
        }
        let mut string = field;
        if !self.dialect.quotes && memchr(b'\\', field).is_some() {
            plain.clear();
            unescape(field, plain);
            string = plain;
        }
        if target.form.is_some() {
            return strings::append(std::iter::once(string), true, target, out)
                .map_err(|(_, what)| strings::misfit(&self.input, row, label, string, target, what));
        }
        let Column::Bytes(strings) = out else { return Ok(()) };
        let decoded = strings::hexadecimal(string, target);
        if let Some(decoded) = &decoded {
            string = decoded;
        }
        strings::check(string, false, target)
            .map_err(|what| strings::misfit_of_text(&self.input, row, label, string, target, what))?;
        strings.push(string);
        Ok(())
    }

    /// Returns the position up to which no carriage return lacks a line feed. One search per block, however
    /// often it is called.
    fn even_end(&mut self) -> usize {
        let from = self.even.max(self.start);
        self.even = from + lone_return(&self.buffer[from..self.end]).unwrap_or(self.end - from);
        self.even
    }

    /// Takes rows while they are simple; returns true if the next one is not.
    fn fast_rows(&mut self, chunk: &mut Chunk, tuples_max: usize) -> bool {
        // Whole lines only, so that no look at the next byte leaves the block; and only up to the next
        // carriage return that ends no line, since fields of other columns are not examined.
        let even = self.even_end();
        let Some(lines) = memrchr(b'\n', &self.buffer[self.start..even]) else { return true };
        let plan = Plan {
            dialect: self.dialect,
            fields: self.fields,
            key: (self.key.index, self.key.target),
            value: self.value.as_ref().map(|value| (value.index, value.target)),
            rows_max: tuples_max - chunk.len(),
        };
        let block = &self.buffer[self.start..=self.start + lines];
        macro_rules! rows {
            ($($column:ident)*) => {
                match (&mut chunk.keys, &mut chunk.values) {
                    $((Column::$column(keys), Column::None) => fast_rows(block, plan, keys, &mut Nothing),
                    (Column::$column(keys), Column::U32(values)) => fast_rows(block, plan, keys, values),
                    (Column::$column(keys), Column::U64(values)) => fast_rows(block, plan, keys, values),
                    (Column::$column(keys), Column::Bytes(values)) => fast_rows(block, plan, keys, values),)*
                    // Such keys or values do not exist.
                    (Column::None, _) | (_, Column::U128(_)) => (0, 0),
                }
            };
        }
        let (length, rows) = rows!(U32 U64 U128 Bytes);
        self.start += length;
        self.rows += rows as u64;
        length <= lines && rows < plan.rows_max
    }
}

impl Source for Text {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        prepare(chunk, &self.schema);
        let tuples_max = self.record.as_ref().map_or(tuples_max, |record| record.tuples_max(tuples_max));
        let first_row = self.rows + 1;
        let slow = self.op.is_some() || self.record.is_some();
        while chunk.len() < tuples_max && held_bytes(chunk) < CHUNK_BYTES {
            if self.start == self.end && !self.ended {
                self.refill()?;
            }
            if (slow || self.fast_rows(chunk, tuples_max)) && !self.slow_row(chunk)? {
                break;
            }
        }
        if let Some(record) = &mut self.record {
            record.pack(&self.input, first_row, &mut chunk.values)?;
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        // The added line feed may count as one byte too many.
        let left = if self.reader.is_packed() { 0 } else { (self.end - self.start) as u64 };
        (self.reader.taken().saturating_sub(left), self.bytes_total)
    }
}

/// Parameters for parsing a block of lines.
#[derive(Clone, Copy)]
struct Plan {
    dialect: Dialect,
    fields: usize,
    key: (usize, Target),
    value: Option<(usize, Target)>,
    rows_max: usize,
}

/// A column that the fast rows fill.
trait Lane {
    /// A parsed element.
    type Parsed: Copy + Default;

    /// Parses the field at `at`; returns it and its end, or `None` if it needs a closer look. A line feed
    /// follows at the latest.
    fn parse(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<(Self::Parsed, usize)>;

    /// Appends an element that was parsed from `block`.
    fn push(&mut self, parsed: Self::Parsed, block: &[u8]);
}

impl Lane for Vec<u32> {
    type Parsed = u64;
    #[inline(always)]
    fn parse(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<(u64, usize)> {
        number(block, at, target, dialect.delimiter)
    }
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn push(&mut self, parsed: u64, _: &[u8]) {
        self.push(parsed as u32);
    }
}

impl Lane for Vec<u64> {
    type Parsed = u64;
    #[inline(always)]
    fn parse(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<(u64, usize)> {
        number(block, at, target, dialect.delimiter)
    }
    #[inline(always)]
    fn push(&mut self, parsed: u64, _: &[u8]) {
        self.push(parsed);
    }
}

impl Lane for Vec<u128> {
    type Parsed = u128;
    #[inline(always)]
    fn parse(block: &[u8], at: usize, target: Target, _: Dialect) -> Option<(u128, usize)> {
        // A uuid is left to the slow rows.
        if target.form.is_some() { None } else { wide_number(block, at) }
    }
    #[inline(always)]
    fn push(&mut self, parsed: u128, _: &[u8]) {
        self.push(parsed);
    }
}

impl Lane for Strings {
    type Parsed = (usize, usize);
    #[inline(always)]
    fn parse(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<((usize, usize), usize)> {
        string(block, at, target, dialect)
    }
    #[inline(always)]
    fn push(&mut self, (start, end): (usize, usize), block: &[u8]) {
        self.push(&block[start..end]);
    }
}

/// No column.
struct Nothing;

impl Lane for Nothing {
    type Parsed = ();
    fn parse(_: &[u8], _: usize, _: Target, _: Dialect) -> Option<((), usize)> {
        None
    }
    #[inline(always)]
    fn push(&mut self, (): (), _: &[u8]) {}
}

/// Takes rows from the start of `block`, which ends in a line feed, up to the first that is not simple;
/// returns the bytes and rows taken. A simple row has the right number of fields; its wanted fields contain
/// nothing but a number, or a string that fits and has no doubled quotes and no escapes.
fn fast_rows<K: Lane, V: Lane>(block: &[u8], plan: Plan, keys: &mut K, values: &mut V) -> (usize, usize) {
    let mut start = 0;
    let mut rows = 0;
    // A column that is key and value at once is left to the slow rows.
    if plan.value.is_some_and(|(index, _)| index == plan.key.0) {
        return (0, 0);
    }
    let value_index = plan.value.map_or(usize::MAX, |(index, _)| index);
    let value_target = plan.value.map_or(plan.key.1, |(_, target)| target);
    while start < block.len() && rows < plan.rows_max {
        match block[start] {
            b'\n' => {
                start += 1;
                continue;
            }
            b'\r' if block[start + 1] == b'\n' => {
                start += 2;
                continue;
            }
            _ => {}
        }
        let mut at = start;
        let (mut key, mut value) = (K::Parsed::default(), V::Parsed::default());
        for field in 0..plan.fields {
            if field == plan.key.0 {
                let Some((word, next)) = K::parse(block, at, plan.key.1, plan.dialect) else {
                    return (start, rows);
                };
                (key, at) = (word, next);
            } else if field == value_index {
                let Some((word, next)) = V::parse(block, at, value_target, plan.dialect) else {
                    return (start, rows);
                };
                (value, at) = (word, next);
            } else {
                let next = if plan.dialect.quotes && block[at] == b'"' {
                    quoted(block, at)
                } else {
                    plan.dialect.plain_field(&block[at..]).map(|length| at + length)
                };
                let Some(next) = next else { return (start, rows) };
                at = next;
            }
            let last = field + 1 == plan.fields;
            match block[at] {
                b'\n' if last => at += 1,
                b'\r' if last && block[at + 1] == b'\n' => at += 2,
                byte if !last && byte == plan.dialect.delimiter => at += 1,
                _ => return (start, rows),
            }
        }
        keys.push(key, block);
        values.push(value, block);
        rows += 1;
        start = at;
    }
    (start, rows)
}

/// Returns the position of the first carriage return without a line feed. One pass without a branch per line
/// if lines end in CRLF, and one search if they do not.
fn lone_return(bytes: &[u8]) -> Option<usize> {
    const PIECE: usize = 1 << 10;
    let is_lone = |(&byte, &next): (&u8, &u8)| byte == b'\r' && next != b'\n';
    let mut at = memchr(b'\r', bytes)?;
    while at + 1 < bytes.len() {
        let (piece, behind) = (&bytes[at..bytes.len().min(at + PIECE)], &bytes[at + 1..]);
        let found = piece.iter().zip(behind).fold(false, |found, pair| found | is_lone(pair));
        if found {
            return piece.iter().zip(behind).position(is_lone).map(|index| at + index);
        }
        at += PIECE;
    }
    // The byte after it is not there yet.
    bytes.ends_with(b"\r").then(|| bytes.len() - 1)
}

/// Parses the number at `at` as the word of `target`; returns it and its end, or `None` if it needs a closer
/// look. A line feed follows at the latest.
#[inline]
fn number(block: &[u8], at: usize, target: Target, delimiter: u8) -> Option<(u64, usize)> {
    if target.kind.is_float() || target.form.is_some() {
        return float(block, at, target, delimiter);
    }
    let negative = block[at] == b'-';
    let first = at + usize::from(negative || block[at] == b'+');
    let mut end = first;
    let mut magnitude = 0_u64;
    loop {
        let digit = block[end].wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        magnitude = magnitude.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    match end - first {
        1..=19 => {}
        // From 10^19 up to 2^64: a sum that overflowed is below 2 * 10^19 - 2^64.
        20 if block[first] == b'1' && magnitude >= 10_000_000_000_000_000_000 => {}
        _ => return None,
    }
    let word = match target.kind {
        Kind::U32 if !negative => u64::from(u32::try_from(magnitude).ok()?),
        Kind::U64 if !negative => magnitude,
        Kind::I32 => {
            let number = i64::try_from(magnitude).ok()?;
            u64::from(i32::try_from(if negative { -number } else { number }).ok()?.cast_unsigned())
        }
        Kind::I64 => {
            let number = i64::try_from(magnitude).ok()?;
            (if negative { -number } else { number }).cast_unsigned()
        }
        _ => return None,
    };
    Some((word ^ target.flip(), end))
}

fn float(block: &[u8], at: usize, target: Target, delimiter: u8) -> Option<(u64, usize)> {
    let ends = |&byte: &u8| byte == delimiter || matches!(byte, b'\n' | b'\r' | b'"');
    let end = at + block[at..].iter().position(ends)?;
    let word = convert::parse(&block[at..end], target).ok()?;
    Some((u64::try_from(word).ok()?, end))
}

/// Does the same as [`number`] for `u128`, for at most 38 digits.
#[inline]
fn wide_number(block: &[u8], at: usize) -> Option<(u128, usize)> {
    let mut end = at;
    // Two groups of 19 digits, each of which fits in a word.
    let mut digits = || {
        let (mut magnitude, mut power, first) = (0_u64, 1_u64, end);
        while end < first + 19 && block[end].is_ascii_digit() {
            magnitude = magnitude * 10 + u64::from(block[end] - b'0');
            power *= 10;
            end += 1;
        }
        (u128::from(magnitude), u128::from(power))
    };
    let (high, _) = digits();
    let (low, power) = digits();
    let is_number = end > at && !block[end].is_ascii_digit();
    is_number.then_some((high * power + low, end))
}

/// Returns the range of the string at `at` and the end of its field, if it fits `target` and is stored
/// unescaped.
#[inline]
fn string(block: &[u8], at: usize, target: Target, dialect: Dialect) -> Option<((usize, usize), usize)> {
    let (start, end, next) = if dialect.quotes && block[at] == b'"' {
        let next = quoted(block, at)?;
        (at + 1, next - 1, next)
    } else {
        let mut end = at + dialect.plain_field(&block[at..])?;
        if block[end] == b'\n' && end > at && block[end - 1] == b'\r' {
            end -= 1;
        }
        (at, end, end)
    };
    let field = &block[start..end];
    if !dialect.quotes && memchr(b'\\', field).is_some() || field.starts_with(b"\\x") || target.form.is_some()
    {
        return None;
    }
    strings::check(field, false, target).ok()?;
    Some(((start, end), next))
}

/// Returns the end of the quoted field at `at`, if it ends in this block. If the field has a doubled quote,
/// the result is the position of another quote, where no row can continue.
#[inline]
fn quoted(block: &[u8], at: usize) -> Option<usize> {
    Some(at + 1 + memchr(b'"', &block[at + 1..])? + 1)
}

/// Opens a text table.
pub(super) fn open(
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
            format!("'{shown}' cannot be a delimiter: it stands in numbers or quotes"),
        ));
    }
    let key_type = options.key_type.unwrap_or(KeyType::U64);
    let key_target = Target::of_key(key_type)
        .ok_or_else(|| problem(input, "", format!("{key_type} keys cannot be read from text")))?
        .meant(options.key_texts());
    let (stream, bytes_total) = body.into_stream();
    let mut text = Text {
        input: input.to_owned(),
        reader: text::open(input, stream, if tabs { Use::Tsv } else { Use::Csv })?,
        bytes_total,
        schema: Schema {
            key_type,
            value_type: ValueType::None,
            key_name: String::new(),
            value_name: String::new(),
            key_logical: options.key_logical.as_ref().map(Logical::meta).unwrap_or_default(),
            value_logical: String::new(),
            rows: None,
        },
        dialect: Dialect { delimiter, quotes: !tabs },
        fields: 0,
        key: Wanted { index: 0, target: key_target, label: String::new() },
        value: None,
        record: None,
        op: None,
        buffer: Vec::new(),
        start: 0,
        end: 0,
        even: 0,
        ended: false,
        rows: 0,
        row: Record::default(),
        plain: Vec::new(),
    };
    let length = text.read_record()?;
    if length == 0 {
        let wanted = if options.no_header { "rows are" } else { "a header line is" };
        return Err(problem(input, "", format!("it is empty, but {wanted} expected")));
    }
    text.fields = text.row.ends.len();
    let mut names = Vec::new();
    let first = options.first().filter(|_| options.header == Header::First && !options.no_header);
    let columns = if options.no_header {
        Names::Numbered(text.fields)
    } else if let Some(first) = first {
        text.inherit(first, tabs, &mut names)?
    } else {
        text.start += length;
        names = text.header(tabs)?;
        Names::Named(&names)
    };
    text.take_columns(columns, options)?;
    Ok(Box::new(text))
}

/// Appends `field` with its escapes replaced.
fn unescape(mut field: &[u8], out: &mut Vec<u8>) {
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
