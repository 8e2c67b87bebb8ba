//! Records of fixed length: raw tuples, and the data of a NumPy array.
//!
//! Bytes are read in calls of 2 MiB into one buffer and separated column by column, in pieces that stay in
//! the first-level cache. If the compiler knows the place of a number in the record, extracting it is a load,
//! a shuffle and a store, and reading runs at the speed of memory. Conversions, byte swaps and strings take a
//! slower path.

use crate::body::fill;
use crate::chunk::{CHUNK_BYTES, held_bytes, prepare};
use crate::convert::{self, Slice, misfit};
use crate::fields::Fields;
use crate::kind::{Kind, Target};
use crate::problem::{fault, place, problem, unreadable};
use crate::strings;
use pleach_builder::{Chunk, Column, Schema, Source, SourceError};
use pleach_format::key::Word;
use pleach_format::logical::Form;
use std::io::Read;

/// Bytes per read call.
const READ_BYTES: usize = 2 << 20;
/// Bytes processed at a time: first the keys, then the values, without leaving the cache.
const PIECE_BYTES: usize = 16 << 10;
/// Maximum bytes of a record.
pub(crate) const RECORD_BYTES_MAX: usize = 1 << 20;

/// Type of the element at a place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    U128,
    F32,
    F64,
    /// A byte string of this length.
    Bytes(usize),
    /// A text of this many code points, four bytes each.
    Letters(usize),
}

impl Item {
    /// Returns the item of a kind; `None` for strings of varying length.
    pub(crate) fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::U32 => Self::U32,
            Kind::U64 => Self::U64,
            Kind::U128 => Self::U128,
            Kind::I32 => Self::I32,
            Kind::I64 => Self::I64,
            Kind::F32 => Self::F32,
            Kind::F64 => Self::F64,
            Kind::Fixed(bytes) => Self::Bytes(usize::from(bytes)),
            Kind::Bytes | Kind::Utf8 => return None,
        })
    }

    /// Returns true if its bytes, in order, are the bits of words of `target`, except for the sign bit.
    fn is(self, target: Target) -> bool {
        let is_plain = target.from.is_none() && target.form != Some(Form::Boolean);
        Self::of(target.kind) == Some(self) && !target.is_float_key() && is_plain
    }
}

/// One column of the records.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// Place in the record, in bytes.
    pub(crate) at: usize,
    /// Type of the element.
    pub(crate) item: Item,
    /// The element is big-endian.
    pub(crate) swapped: bool,
    /// The lowest number means null (times of NumPy).
    pub(crate) lowest_is_null: bool,
    /// Zeros at the end of a string are padding, as in NumPy, unless all its bytes are requested.
    pub(crate) padded: bool,
    /// Target of the conversion.
    pub(crate) target: Target,
    /// Name for messages.
    pub(crate) label: String,
}

/// A source of records.
pub(crate) struct Records {
    input: String,
    reader: Box<dyn Read + Send>,
    schema: Schema,
    stride: usize,
    key: Lane,
    value: Option<Lane>,
    /// The columns of a record, and their places.
    fields: Option<(Fields, Vec<Lane>)>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    rows: u64,
    /// Bytes before the first record.
    bytes_before: u64,
}

impl Records {
    /// Creates a source of records of `stride` bytes; if `schema.rows` is known, of exactly that number.
    pub(crate) fn new(
        input: &str,
        reader: Box<dyn Read + Send>,
        schema: Schema,
        stride: usize,
        lanes: (Lane, Option<Lane>),
        fields: Option<(Fields, Vec<Lane>)>,
        bytes_before: u64,
    ) -> Self {
        let (key, value) = lanes;
        Self {
            input: input.to_owned(),
            reader,
            schema,
            stride,
            key,
            value,
            fields,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            ended: false,
            rows: 0,
            bytes_before,
        }
    }

    /// Reads more bytes after those left.
    fn refill(&mut self) -> Result<(), SourceError> {
        if self.buffer.is_empty() {
            self.buffer = vec![0; READ_BYTES.max(self.stride) + self.stride];
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let space_end = (self.end + READ_BYTES.max(self.stride)).min(self.buffer.len());
        let space = &mut self.buffer[self.end..space_end];
        let bytes = fill(&mut *self.reader, space)
            .map_err(|error| unreadable(&self.input, format!("after row {}", self.rows), error))?;
        self.ended = bytes < space.len();
        self.end += bytes;
        Ok(())
    }

    fn check_end(&self) -> Result<(), SourceError> {
        let left = self.end - self.start;
        if let Some(rows) = self.schema.rows {
            if self.rows < rows {
                let text = fault(format!("it ends after {} of {rows} rows", self.rows), "it is truncated");
                return Err(problem(&self.input, "", text));
            }
            if self.rows > rows || left > 0 {
                let text = fault(format!("more bytes follow its {rows} rows"), "cut them off");
                return Err(problem(&self.input, "", text));
            }
        }
        if left > 0 {
            return Err(ragged(&self.input, self.stride, left as u64));
        }
        Ok(())
    }

    /// Appends the records in `bytes`, a multiple of the stride.
    fn append(&self, bytes: &[u8], chunk: &mut Chunk) -> Result<(), SourceError> {
        let piece = (PIECE_BYTES / self.stride).max(1) * self.stride;
        for records in bytes.chunks(piece) {
            self.append_lane(&self.key, records, &mut chunk.keys)?;
            if let Some(value) = &self.value {
                self.append_lane(value, records, &mut chunk.values)?;
            }
        }
        Ok(())
    }

    /// Packs the columns that were read for this chunk into records.
    fn pack(&mut self, chunk: &mut Chunk) -> Result<(), SourceError> {
        match &mut self.fields {
            Some((fields, _)) => fields.pack(&self.input, |at| self.rows + 1 + at as u64, chunk),
            None => Ok(()),
        }
    }

    fn append_lane(&self, lane: &Lane, records: &[u8], out: &mut Column) -> Result<(), SourceError> {
        // Rows before this call, and in this chunk.
        let first_row = self.rows + 1 + out.len() as u64;
        match lane.item {
            Item::Bytes(bytes) => return self.append_strings(lane, bytes, records, out, first_row),
            Item::Letters(count) => return self.append_letters(lane, count, records, out, first_row),
            _ => {}
        }
        let flip = lane.target.flip();
        let plain = !lane.swapped && !lane.lowest_is_null && lane.item.is(lane.target);
        if plain {
            match out {
                Column::U32(words) => copy(records, self.stride, lane.at, flip as u32, words),
                Column::U64(words) => copy(records, self.stride, lane.at, flip, words),
                Column::U128(words) => copy(records, self.stride, lane.at, 0, words),
                Column::None | Column::Bytes(_) => {}
            }
            return Ok(());
        }
        self.append_converted(lane, records, out, first_row)
    }

    fn append_converted(
        &self,
        lane: &Lane,
        records: &[u8],
        out: &mut Column,
        first_row: u64,
    ) -> Result<(), SourceError> {
        macro_rules! numbers {
            ($($variant:ident $t:ty, $bytes:literal;)*) => {
                match lane.item {
                    $(Item::$variant => {
                        let numbers: Vec<$t> = records
                            .chunks_exact(self.stride)
                            .map(|record| {
                                let mut raw = [0; $bytes];
                                raw.copy_from_slice(&record[lane.at..lane.at + $bytes]);
                                if lane.swapped { <$t>::from_be_bytes(raw) } else { <$t>::from_le_bytes(raw) }
                            })
                            .collect();
                        self.append_numbers(lane, Slice::$variant(&numbers), out, first_row)
                    })*
                    // Handled elsewhere.
                    Item::Bytes(_) | Item::Letters(_) => Ok(()),
                }
            };
        }
        numbers! {
            U8 u8, 1; U16 u16, 2; U32 u32, 4; U64 u64, 8; U128 u128, 16;
            I8 i8, 1; I16 i16, 2; I32 i32, 4; I64 i64, 8;
            F32 f32, 4; F64 f64, 8;
        }
    }

    fn append_strings(
        &self,
        lane: &Lane,
        bytes: usize,
        records: &[u8],
        out: &mut Column,
        first_row: u64,
    ) -> Result<(), SourceError> {
        let padded = lane.padded && matches!(lane.target.kind, Kind::Bytes | Kind::Utf8);
        let string = |record: &'_ [u8]| -> std::ops::Range<usize> {
            let mut end = lane.at + bytes;
            while padded && end > lane.at && record[end - 1] == 0 {
                end -= 1;
            }
            lane.at..end
        };
        let strings = records.chunks_exact(self.stride).map(|record| &record[string(record)]);
        strings::append(strings.clone(), false, lane.target, out).map_err(|(index, what)| {
            let shown = strings.clone().nth(index).unwrap_or_default();
            strings::misfit(&self.input, first_row + index as u64, &lane.label, shown, lane.target, what)
        })
    }

    fn append_letters(
        &self,
        lane: &Lane,
        count: usize,
        records: &[u8],
        out: &mut Column,
        first_row: u64,
    ) -> Result<(), SourceError> {
        let mut text = String::new();
        for (index, record) in records.chunks_exact(self.stride).enumerate() {
            let row = first_row + index as u64;
            let (letters, _) = record[lane.at..lane.at + 4 * count].as_chunks::<4>();
            let code =
                |&letter| if lane.swapped { u32::from_be_bytes(letter) } else { u32::from_le_bytes(letter) };
            let filled = letters.iter().rposition(|letter| code(letter) != 0).map_or(0, |last| last + 1);
            text.clear();
            for letter in &letters[..filled] {
                text.push(char::from_u32(code(letter)).ok_or_else(|| {
                    let text = fault(
                        format!("{:#x} is not a character", code(letter)),
                        "it is damaged, or has another type",
                    );
                    problem(&self.input, place(row, &lane.label), text)
                })?);
            }
            strings::append(std::iter::once(text.as_bytes()), true, lane.target, out).map_err(
                |(_, what)| {
                    strings::misfit(&self.input, row, &lane.label, text.as_bytes(), lane.target, what)
                },
            )?;
        }
        Ok(())
    }

    fn append_numbers(
        &self,
        lane: &Lane,
        numbers: Slice<'_>,
        out: &mut Column,
        first_row: u64,
    ) -> Result<(), SourceError> {
        if let (true, Slice::I64(times)) = (lane.lowest_is_null, numbers)
            && let Some(index) = times.iter().position(|&time| time == i64::MIN)
        {
            let text = "it is null (NaT): fill or drop such rows, or choose another column";
            return Err(problem(&self.input, place(first_row + index as u64, &lane.label), text));
        }
        convert::append(numbers, lane.target, out).map_err(|index| {
            misfit(&self.input, first_row + index as u64, &lane.label, &numbers.text(index), lane.target)
        })
    }
}

impl Source for Records {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        let first = self.fields.as_ref().and_then(|(fields, _)| fields.first_part());
        prepare(chunk, &self.schema, first);
        let tuples_max = self.fields.as_ref().map_or(tuples_max, |(fields, _)| fields.tuples_max(tuples_max));
        let held = |fields: &Option<(Fields, Vec<Lane>)>| {
            fields.as_ref().map_or(0, |(fields, _)| fields.held_bytes())
        };
        while chunk.len() < tuples_max && held_bytes(chunk) + held(&self.fields) < CHUNK_BYTES {
            let whole = (self.end - self.start) / self.stride;
            if whole == 0 {
                if self.ended {
                    self.pack(chunk)?;
                    self.rows += chunk.len() as u64;
                    self.check_end()?;
                    return Ok(());
                }
                self.refill()?;
                continue;
            }
            let bytes = whole.min(tuples_max - chunk.len()) * self.stride;
            let mut fields = self.fields.take();
            let records = &self.buffer[self.start..self.start + bytes];
            self.append(records, chunk)?;
            if let Some((fields, lanes)) = &mut fields {
                for (lane, held) in lanes.iter().zip(&mut fields.held) {
                    self.append_lane(lane, records, held)?;
                }
            }
            self.fields = fields;
            self.start += bytes;
        }
        self.pack(chunk)?;
        self.rows += chunk.len() as u64;
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        let total = self.schema.rows.map(|rows| self.bytes_before + rows * self.stride as u64);
        (self.bytes_before + self.rows * self.stride as u64, total)
    }
}

/// Appends the word at `at` of every record, xored with `flip`. The usual record sizes have a loop with
/// constant strides.
fn copy<W>(records: &[u8], stride: usize, at: usize, flip: W, out: &mut Vec<W>)
where
    W: Word + std::ops::BitXor<Output = W>,
{
    fn fixed<const STRIDE: usize, const AT: usize, W>(records: &[u8], flip: W, out: &mut Vec<W>)
    where
        W: Word + std::ops::BitXor<Output = W>,
    {
        let (records, _) = records.as_chunks::<STRIDE>();
        out.extend(records.iter().map(|record| W::read(&record[AT..]) ^ flip));
    }
    match (W::BYTES, stride, at) {
        (4, 4, 0) => fixed::<4, 0, W>(records, flip, out),
        (4, 8, 0) => fixed::<8, 0, W>(records, flip, out),
        (4, 8, 4) => fixed::<8, 4, W>(records, flip, out),
        (4, 12, 0) => fixed::<12, 0, W>(records, flip, out),
        (4, 12, 8) => fixed::<12, 8, W>(records, flip, out),
        (16, 16, 0) => fixed::<16, 0, W>(records, flip, out),
        (16, 20, 0) => fixed::<20, 0, W>(records, flip, out),
        (16, 24, 0) => fixed::<24, 0, W>(records, flip, out),
        (8, 24, 16) => fixed::<24, 16, W>(records, flip, out),
        (8, 8, 0) => fixed::<8, 0, W>(records, flip, out),
        (8, 12, 0) => fixed::<12, 0, W>(records, flip, out),
        (8, 12, 4) => fixed::<12, 4, W>(records, flip, out),
        (8, 16, 0) => fixed::<16, 0, W>(records, flip, out),
        (8, 16, 8) => fixed::<16, 8, W>(records, flip, out),
        _ => out.extend(records.chunks_exact(stride).map(|record| W::read(&record[at..]) ^ flip)),
    }
}

/// Makes the error for an input that ends inside a row.
pub(crate) fn ragged(input: &str, stride: usize, left: u64) -> SourceError {
    let text = format!("invalid length: {left} bytes are left after the last row of {stride} bytes");
    problem(input, "", fault(text, "it is truncated, or has other types"))
}
