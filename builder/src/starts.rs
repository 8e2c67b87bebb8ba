//! Tables of intervals as a source: keys are starts, and values begin with the ends.
//!
//! The first field of each value becomes the last key of its interval. Ends before their starts are refused with their
//! rows, and each value gets the number of its row, by which intervals that overlap are told apart.

use crate::intervals::with_row;
use crate::source::{Chunk, Column, Intervals, Schema, Source, SourceError, Strings};
use pleach_format::interval::Ends;

fn problem(name: &str, place: String, what: String, advice: &str) -> SourceError {
    SourceError { input: name.to_owned(), place, what, advice: advice.to_owned(), cause: None }
}

/// A source whose keys begin intervals, in any order; they may overlap.
pub struct Starts<'a> {
    source: Box<dyn Source + 'a>,
    schema: Schema,
    ends: Ends,
    name: String,
    is_exclusive: bool,
    is_counted: bool,
    rows: u64,
}

impl<'a> Starts<'a> {
    /// Makes a source of intervals of a table whose values are records that begin with the ends.
    /// Messages call the source `name`. `is_exclusive`: the first field is the first key behind an interval, and
    /// not the last one in it. `is_counted`: messages may show the numbers of rows, counted from 1.
    ///
    /// # Errors
    /// [`SourceError`] if values do not begin with a field of the type of the keys.
    pub fn new(
        source: Box<dyn Source + 'a>,
        name: &str,
        is_exclusive: bool,
        is_counted: bool,
    ) -> Result<Self, SourceError> {
        let own = source.schema().clone();
        let refused = |what: String| {
            problem(name, String::new(), what, "values must begin with the ends, and fit in a record")
        };
        let record = own.record().ok_or_else(|| refused("intervals have no ends".to_owned()))?;
        let numbered = with_row(&record).map_err(|error| refused(error.what()))?;
        let plain = Schema { interval: Some(Intervals::Disjoint), ..own.clone() };
        let ends = plain.ends().ok_or_else(|| refused("ends are of another type than starts".to_owned()))?;
        let schema = Schema {
            value_type: numbered.storage(),
            value_logical: numbered.to_string(),
            interval: Some(Intervals::Rows { is_counted }),
            ..own
        };
        let name = name.to_owned();
        Ok(Self { source, schema, ends, name, is_exclusive, is_counted, rows: 0 })
    }

    /// Makes the bytes of a value: the last key, the other fields, the row.
    fn value(&self, start: u128, packed: &[u8], to: &mut Vec<u8>) -> Result<(), SourceError> {
        to.clear();
        to.extend_from_slice(packed);
        let end = self.ends.word(packed);
        let last = if self.is_exclusive { self.ends.before(end) } else { Some(end) };
        let Some(last) = last.filter(|&last| last >= start) else {
            let place = if self.is_counted { format!("row {}", self.rows) } else { String::new() };
            let text = self.schema.key_text();
            let shown = format!("{} to {}", text.word(start), text.word(end));
            let what = match self.is_exclusive && end == start {
                true => format!("the interval {shown} is empty, as its end is its start"),
                false => format!("the interval {shown} ends before it starts"),
            };
            return Err(problem(&self.name, place, what, "correct it, or leave the row out"));
        };
        self.ends.put(last, to);
        to.extend_from_slice(&self.rows.to_le_bytes());
        Ok(())
    }
}

impl Source for Starts<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        let inner = self.source.schema();
        let mut held = Chunk::new(inner.key_type, inner.value_type);
        self.source.next_chunk(&mut held, tuples_max)?;
        let (mut values, mut value) = (Strings::default(), Vec::new());
        for at in 0..held.len() {
            self.rows += 1;
            let start = held.keys.word(at);
            match &held.values {
                Column::U32(words) => self.value(start, &words[at].to_le_bytes(), &mut value)?,
                Column::U64(words) => self.value(start, &words[at].to_le_bytes(), &mut value)?,
                Column::Bytes(strings) => self.value(start, strings.get(at), &mut value)?,
                Column::None | Column::U128(_) => {}
            }
            values.push(&value);
        }
        *chunk = Chunk { keys: held.keys, values: Column::Bytes(values), ops: Vec::new() };
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        self.source.progress()
    }
}
