//! Files of intervals: tuples in order of their starts become intervals that do not overlap.
//!
//! A source of intervals gives for each row the first key, and a record of the last key, the values and the number of
//! the row. Its tuples are first sorted into a temporary file (`staged`). Then one pass over that file either
//! refuses intervals that overlap, or lets the later row win ([`Overlap::Last`]).
//!
//! For the latter, a sweep over the starts holds the intervals that may still win somewhere. An interval that ends no
//! later than one of a later row cannot, once both have begun. So the ones held end the later the earlier their rows
//! are, and the one that wins is that of the last row. It is cut where another one begins, and continues where that
//! one ends. Memory is that of the longest such list; time O(n log n).

use crate::bytes::element;
use crate::error::BuildError;
use crate::options::Overlap;
use crate::show::KeyText;
use crate::source::{Chunk, Column, Intervals, Schema, Source, SourceError};
use pleach_format::interval::Ends;
use pleach_format::record::{Field, FieldKind, Record};
use std::collections::BTreeMap;

/// Bytes of the number of a row, which is the last field of the records of a source of intervals.
pub const ROW_BYTES: usize = 8;
/// Name of that field. It is in no published file.
const ROW_NAME: &str = "\u{1}row";
/// Tuples read at a time.
const CHUNK_TUPLES: usize = 1 << 14;

/// Returns the record of a source of intervals, from that of its values: with the number of the row.
///
/// # Errors
/// [`pleach_format::record::RecordError`] if the record becomes too long.
pub fn with_row(record: &Record) -> Result<Record, pleach_format::record::RecordError> {
    let row = Field { name: ROW_NAME.to_owned(), kind: FieldKind::U64, logical: String::new() };
    Record::new(record.fields().iter().cloned().chain([row]).collect())
}

/// Keeps the error for two intervals that overlap, and returns what stops the source.
fn refuse(first: String, second: String, refused: &mut Option<BuildError>) -> SourceError {
    let what = format!("intervals overlap: {first} and {second}");
    *refused = Some(BuildError::Overlap { first, second });
    SourceError {
        input: "intervals".to_owned(),
        place: String::new(),
        what,
        advice: String::new(),
        cause: None,
    }
}

/// An interval of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    start: u128,
    last: u128,
    row: u64,
    /// Record of the last key and the values.
    value: Vec<u8>,
}

/// Makes disjoint intervals of those of a sorted source.
pub(crate) struct Disjoint<'a> {
    source: Box<dyn Source + 'a>,
    schema: Schema,
    ends: Ends,
    text: KeyText,
    overlap: Overlap,
    /// The numbers of rows are those that the user knows.
    is_counted: bool,
    chunk: Chunk,
    at: usize,
    ended: bool,
    /// The intervals that may still win, by their rows.
    held: BTreeMap<u64, Interval>,
    /// The next key that no interval has.
    next: Option<u128>,
    /// The interval that was cut last, and may go on.
    open: Option<Interval>,
    /// Where the two intervals overlap that were refused.
    pub(crate) refused: Option<BuildError>,
}

impl<'a> Disjoint<'a> {
    /// Returns `None` if the source has no intervals with numbers of rows.
    pub(crate) fn new(source: Box<dyn Source + 'a>, overlap: Overlap, is_counted: bool) -> Option<Self> {
        let rows = Intervals::Rows { is_counted };
        let numbered = Schema { interval: Some(rows), ..source.schema().clone() };
        let schema = Schema { rows: None, ..numbered.published() };
        let ends = schema.ends()?;
        Some(Self {
            text: schema.key_text(),
            source,
            schema,
            ends,
            overlap,
            is_counted,
            chunk: Chunk::default(),
            at: 0,
            ended: false,
            held: BTreeMap::new(),
            next: Some(0),
            open: None,
            refused: None,
        })
    }

    /// Reads the next interval, in order of their starts.
    fn read(&mut self) -> Result<Option<Interval>, SourceError> {
        if self.at == self.chunk.len() && !self.ended {
            self.source.next_chunk(&mut self.chunk, CHUNK_TUPLES)?;
            self.at = 0;
            self.ended = self.chunk.is_empty();
        }
        if self.ended {
            return Ok(None);
        }
        let (at, mut buffer) = (self.at, [0; 16]);
        self.at += 1;
        let start = self.chunk.keys.word(at);
        let mut value = element(&self.chunk.values, at, false, &mut buffer).to_vec();
        let row = value.split_off(value.len().saturating_sub(ROW_BYTES));
        let row = row.try_into().map_or(0, u64::from_le_bytes);
        Ok(Some(Interval { start, last: self.ends.word(&value), row, value }))
    }

    fn shown(&self, of: &Interval) -> String {
        let row = if self.is_counted { format!(" (row {})", of.row) } else { String::new() };
        format!("{} to {}{row}", self.text.word(of.start), self.text.word(of.last))
    }

    /// Adds an interval that begins here to those that may win.
    fn hold(&mut self, new: Interval) {
        let later = self.held.range(new.row..).next();
        if later.is_some_and(|(_, later)| later.last >= new.last) {
            return;
        }
        while let Some((&row, _)) =
            self.held.range(..new.row).next_back().filter(|(_, earlier)| earlier.last <= new.last)
        {
            self.held.remove(&row);
        }
        self.held.insert(new.row, new);
    }

    /// Passes on what the held intervals win before `start`; all of it if there is none.
    fn advance(&mut self, start: Option<u128>, out: &mut Vec<Interval>) {
        while let Some((&row, winner)) = self.held.last_key_value() {
            let Some(from) = self.next.filter(|&next| next <= winner.last) else {
                self.held.remove(&row);
                continue;
            };
            let to = match start {
                Some(start) if start <= from => return,
                Some(start) => winner.last.min(start - 1),
                None => winner.last,
            };
            let piece = Interval { start: from, last: to, ..winner.clone() };
            self.next = to.checked_add(1);
            self.put(piece, out);
        }
    }

    /// Passes a piece on; pieces of one row that touch become one.
    fn put(&mut self, piece: Interval, out: &mut Vec<Interval>) {
        match &mut self.open {
            Some(open) if open.row == piece.row && open.last.checked_add(1) == Some(piece.start) => {
                open.last = piece.last;
            }
            _ => out.extend(self.open.replace(piece)),
        }
    }

    /// Passes on some intervals; none at the end.
    fn some(&mut self) -> Result<Vec<Interval>, SourceError> {
        let mut out = Vec::new();
        while out.is_empty() {
            let Some(new) = self.read()? else {
                self.advance(None, &mut out);
                out.extend(self.open.take());
                return Ok(out);
            };
            if self.overlap == Overlap::Error {
                if let Some(open) = self.open.take_if(|open| open.last >= new.start) {
                    let (first, second) = (self.shown(&open), self.shown(&new));
                    return Err(refuse(first, second, &mut self.refused));
                }
                out.extend(self.open.replace(new));
                continue;
            }
            self.advance(Some(new.start), &mut out);
            self.next = Some(new.start);
            self.hold(new);
        }
        Ok(out)
    }
}

impl Source for Disjoint<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        *chunk = Chunk::new(self.schema.key_type, self.schema.value_type);
        while chunk.len() < tuples_max {
            let some = self.some()?;
            if some.is_empty() {
                break;
            }
            for mut interval in some {
                self.ends.put(interval.last, &mut interval.value);
                push(&mut chunk.keys, interval.start);
                match &mut chunk.values {
                    Column::U32(words) => {
                        words.extend(interval.value.first_chunk().map(|&raw| u32::from_le_bytes(raw)))
                    }
                    Column::U64(words) => {
                        words.extend(interval.value.first_chunk().map(|&raw| u64::from_le_bytes(raw)))
                    }
                    Column::Bytes(strings) => strings.push(&interval.value),
                    Column::None | Column::U128(_) => {}
                }
            }
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        self.source.progress()
    }
}

fn push(column: &mut Column, word: u128) {
    match column {
        Column::U32(words) => words.push(word as u32),
        Column::U64(words) => words.push(word as u64),
        Column::U128(words) => words.push(word),
        Column::None | Column::Bytes(_) => {}
    }
}

/// A sorted source of intervals, checked to be disjoint: a file that was changed, or files that were merged.
pub(crate) struct Checked<'a> {
    pub(crate) source: &'a mut dyn Source,
    schema: Schema,
    ends: Ends,
    last: Option<(u128, u128)>,
    pub(crate) refused: Option<BuildError>,
}

impl<'a> Checked<'a> {
    /// Returns `None` if the source has no intervals.
    pub(crate) fn new(source: &'a mut dyn Source) -> Option<Self> {
        let schema = source.schema().clone();
        let ends = schema.ends()?;
        Some(Self { source, schema, ends, last: None, refused: None })
    }
}

impl Source for Checked<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        self.source.next_chunk(chunk, tuples_max)?;
        let mut buffer = [0; 16];
        for at in 0..chunk.len() {
            let start = chunk.keys.word(at);
            let last = self.ends.word(element(&chunk.values, at, false, &mut buffer));
            let is_after = self.last.is_none_or(|(_, before)| before < start);
            if !is_after || last < start {
                let text = self.schema.key_text();
                let shown = |(start, last)| format!("{} to {}", text.word(start), text.word(last));
                let (first, second) = (shown(self.last.unwrap_or((start, last))), shown((start, last)));
                return Err(refuse(first, second, &mut self.refused));
            }
            self.last = Some((start, last));
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        self.source.progress()
    }
}
