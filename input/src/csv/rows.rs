//! A text table as a source: rows of any form.

use super::dialect::{Dialect, Record, Unread, unescape};
use super::fast::{Nothing, Plan, fast_rows};
use crate::chunk::{CHUNK_BYTES, held_bytes, prepare};
use crate::fields::Fields;
use crate::folders::Folders;
use crate::kind::Wanted;
use crate::nulls::{self, NullCounts, Nulls, is_empty_null};
use crate::parse::{parse, trim};
use crate::problem::{Fault, fault, problem, unknown_op};
use crate::strings;
use crate::text::{self, RETURN, TextReader};
use memchr::{memchr, memrchr};
use pleach_builder::{Chunk, Column, Op, Schema, Source, SourceError};
use pleach_format::logical::Form;

/// Bytes per read call, and of the buffer unless a row is longer.
const READ_BYTES: usize = 2 << 20;
/// Maximum length of a row. An unclosed quote swallows everything after it: an error is better than using all
/// memory.
const ROW_BYTES_MAX: usize = 64 << 20;

/// A text table.
pub(super) struct Text {
    pub(super) input: String,
    pub(super) reader: TextReader,
    pub(super) bytes_total: Option<u64>,
    pub(super) schema: Schema,
    pub(super) dialect: Dialect,
    /// Number of fields per row.
    pub(super) fields: usize,
    pub(super) key: Wanted,
    pub(super) value: Option<Wanted>,
    /// Columns of a record.
    pub(super) record: Option<Fields>,
    /// Column of the operation, in a table of changes.
    pub(super) op: Option<usize>,
    pub(super) nulls: Nulls,
    pub(super) null_counts: NullCounts,
    /// Row of each tuple of a chunk of records, if rows were left out.
    kept: Vec<u64>,
    pub(super) buffer: Vec<u8>,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Up to here, at least, every carriage return precedes a line feed. If this is before `end`, the next
    /// one does not, or the bytes after this were not searched.
    pub(super) even: usize,
    pub(super) ended: bool,
    pub(super) rows: u64,
    pub(super) row: Record,
    /// Buffer for a string without its escapes.
    pub(super) plain: Vec<u8>,
    /// Columns of the path, which follow the fields of a row.
    pub(super) folders: Folders,
}

impl Text {
    /// Creates a table of which nothing has been read.
    pub(super) fn new(
        input: &str,
        reader: TextReader,
        bytes_total: Option<u64>,
        schema: Schema,
        dialect: Dialect,
        key: Wanted,
    ) -> Self {
        Self {
            input: input.to_owned(),
            reader,
            bytes_total,
            schema,
            dialect,
            fields: 0,
            key,
            value: None,
            record: None,
            op: None,
            nulls: Nulls::Error,
            null_counts: NullCounts::default(),
            kept: Vec::new(),
            buffer: Vec::new(),
            start: 0,
            end: 0,
            even: 0,
            ended: false,
            rows: 0,
            row: Record::default(),
            plain: Vec::new(),
            folders: Folders::default(),
        }
    }

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
            let text = fault(format!("it has more than {ROW_BYTES_MAX} bytes"), "close its quotes");
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
    pub(super) fn read_record(&mut self) -> Result<usize, SourceError> {
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
                    return Err(problem(&self.input, place, "missing closing quote: add it"));
                }
                Err(Unread::Return(field)) => {
                    let place = format!("row {}, field {}", self.rows + 1, field + 1);
                    return Err(problem(&self.input, place, Fault::from(RETURN).or("quote the field")));
                }
                Err(Unread::Bad(field, what)) => {
                    let place = format!("row {}, field {}", self.rows + 1, field + 1);
                    let text = fault(what, "quote the field, and double the quotes in it");
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
            (None, Some(record)) if !record.values().is_empty() => {
                record.values().iter().all(|column| holds(column.index))
            }
            (None, _) => false,
        };
        let valueless = op == Some(Op::Del) && all_values(&lacks);
        // Only values at the end of a row may be left out.
        let fields_of = |record: &Fields| record.values().len() + usize::from(self.value.is_some());
        let values = self.record.as_ref().map_or(1, fields_of);
        let mut keys = self.record.iter().flat_map(|record| &record.columns).filter(|part| part.target.key);
        let short = valueless
            && found + values == self.fields
            && self.key.index < found
            && keys.all(|part| part.index < found)
            && all_values(&|index| index >= found);
        if found != self.fields && !short {
            let fields = if found == 1 { "field" } else { "fields" };
            let text = format!("it has {found} {fields}, but the first line has {}", self.fields);
            let place = format!("row {}", self.rows + 1);
            return Err(problem(&self.input, place, fault(text, "give every row the same number")));
        }
        for text in self.folders.texts() {
            self.row.push(text.as_bytes());
        }
        let columns = || self.record.iter().flat_map(|record| &record.columns);
        let is_lacking = |wanted: &Wanted| (wanted.target.key || !valueless) && self.is_null(wanted);
        if self.nulls == Nulls::Skip
            && std::iter::once(&self.key).chain(&self.value).chain(columns()).any(is_lacking)
        {
            chunk.ops.truncate(chunk.keys.len());
            self.null_counts.skip(1);
            self.start += length;
            self.rows += 1;
            return Ok(true);
        }
        if self.record.is_some() {
            self.kept.push(self.rows + 1);
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
                if valueless && !column.target.key {
                    held.push_default();
                } else {
                    self.take(column, &mut plain, held)?;
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

    /// Reports whether the wanted field of `self.row` is null.
    fn is_null(&self, wanted: &Wanted) -> bool {
        let is_there = wanted.index < self.row.ends.len();
        is_there && is_empty_null(wanted.target) && trim(self.row.field(wanted.index)).is_empty()
    }

    /// Appends the wanted field of `self.row`.
    pub(super) fn take(
        &self,
        wanted: &Wanted,
        plain: &mut Vec<u8>,
        out: &mut Column,
    ) -> Result<(), SourceError> {
        let Wanted { index, target, ref label } = *wanted;
        let field = self.row.field(index);
        let row = self.rows + 1;
        if let Nulls::Fill(text) = &self.nulls
            && !target.key
            && self.is_null(wanted)
        {
            nulls::fill(&self.input, wanted, text, 1, out)?;
            self.null_counts.fill(1);
            return Ok(());
        }
        let mut string = field;
        let is_text = matches!(out, Column::Bytes(_)) || target.form.is_some_and(Form::is_verbatim);
        if is_text && !self.dialect.quotes && memchr(b'\\', field).is_some() {
            plain.clear();
            unescape(field, plain);
            string = plain;
        }
        if !matches!(out, Column::Bytes(_)) {
            let word = parse(string, target)
                .map_err(|what| strings::unparsed(&self.input, row, label, field, target, what))?;
            match out {
                Column::U32(words) => words.push(word as u32),
                Column::U64(words) => words.push(word as u64),
                Column::U128(words) => words.push(word),
                Column::None | Column::Bytes(_) => {}
            }
            return Ok(());
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
        prepare(chunk, &self.schema, self.record.as_ref().and_then(Fields::first_part));
        let tuples_max = self.record.as_ref().map_or(tuples_max, |record| record.tuples_max(tuples_max));
        self.kept.clear();
        let slow = self.op.is_some() || self.record.is_some() || !self.folders.is_empty();
        let held = |record: &Option<Fields>| record.as_ref().map_or(0, Fields::held_bytes);
        while chunk.len() < tuples_max && held_bytes(chunk) + held(&self.record) < CHUNK_BYTES {
            if self.start == self.end && !self.ended {
                self.refill()?;
            }
            if (slow || self.fast_rows(chunk, tuples_max)) && !self.slow_row(chunk)? {
                break;
            }
        }
        if let Some(record) = &mut self.record {
            record.pack(&self.input, |at| self.kept.get(at).copied().unwrap_or(0), chunk)?;
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        // The added line feed may count as one byte too many.
        let left = if self.reader.is_packed() { 0 } else { (self.end - self.start) as u64 };
        (self.reader.taken().saturating_sub(left), self.bytes_total)
    }
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
