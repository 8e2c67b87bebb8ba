//! FASTA and FASTQ: sequences of letters, whose k-mers are the keys.
//!
//! Both are told apart by their first byte, `>` or `@`. A sequence is read a piece at a time, so that a whole
//! chromosome needs no more memory than a read. That is why the lines are read here: the libraries for these
//! formats hold whole records.

use crate::body::Body;
use crate::chunk::prepare;
use crate::names::Asked;
use crate::nulls::NullCounts;
use crate::problem::{Fault, fault, problem};
use crate::text::{self, TextReader, Use};
use memchr::memchr;
use pleach_builder::{Chunk, Column, Schema, Source, SourceError, Unique};
use pleach_format::{KeyType, Logical, ValueType};
use std::ops::Range;

/// Bytes per read call.
const READ_BYTES: usize = 1 << 20;
/// Maximum number of bases of a key.
pub const KMER_BASES_MAX: usize = 61;
/// Name of the value that counts.
const COUNT: &str = "count";

/// Opens sequences.
pub(crate) fn open(input: &str, body: Body, options: &Asked) -> Result<Box<dyn Source>, SourceError> {
    let (schema, bases, is_canonical) = choose(options).map_err(|fault| problem(input, "", fault))?;
    let (stream, _) = body.into_stream();
    let mut letters = Letters {
        input: input.to_owned(),
        reader: text::open(input, stream, Use::Tsv)?,
        buffer: Vec::new(),
        start: 0,
        ended: false,
        state: State::Between,
        is_fastq: false,
        line: 1,
        record: 0,
        bases: 0,
        scores: 0,
    };
    letters.begin()?;
    let counts = options.null_counts.clone();
    let window = Window { bases, is_canonical, forward: 0, reverse: 0, run: 0, letters: 0, found: 0 };
    Ok(Box::new(Kmers { letters, schema, window, pending: 0..0, counts }))
}

/// Returns the schema, the number of bases of a key, and whether keys are canonical.
fn choose(options: &Asked) -> Result<(Schema, usize, bool), Fault> {
    let Some(bases) = options.kmers else {
        return Err(fault("its sequences become k-mers", "give their length, such as --kmers 31"));
    };
    if !(1..=KMER_BASES_MAX).contains(&bases) {
        return Err(fault(format!("k-mers of {bases} bases"), format!("give 1 to {KMER_BASES_MAX}")));
    }
    let logical = options.key_logical.clone().or_else(|| Logical::of_name("dna2:canonical"));
    let name = logical.as_ref().map(Logical::name).unwrap_or_default();
    if !matches!(name.as_str(), "dna2" | "dna2:canonical")
        || options.key_type.unwrap_or(KeyType::U128) != KeyType::U128
    {
        return Err(fault("k-mers are DNA", "give --key-type dna2 or dna2:canonical, or none"));
    }
    if options.key.as_deref().is_some_and(|key| key != "kmer") || options.interval.is_some() {
        return Err(fault("the k-mer is the key", "leave out --key and --interval"));
    }
    let value_type = match (options.value.as_deref(), options.value_type) {
        (None | Some(COUNT), None) => ValueType::U32,
        (None | Some(COUNT), Some(of)) if matches!(of, ValueType::U32 | ValueType::U64 | ValueType::None) => {
            of
        }
        _ => return Err(fault("the value of a k-mer is its count", "give --value-type u32, u64 or none")),
    };
    let mut schema = Schema::plain(KeyType::U128, value_type, None);
    "kmer".clone_into(&mut schema.key_name);
    schema.key_logical = logical.map(|logical| logical.meta()).unwrap_or_default();
    schema.unique = Some(Unique::First);
    if value_type != ValueType::None {
        COUNT.clone_into(&mut schema.value_name);
        schema.unique = Some(Unique::Sum);
    }
    Ok((schema, bases, name == "dna2:canonical"))
}

/// Where the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the start of a line that may begin a record.
    Between,
    Name,
    Sequence,
    /// At the start of the line between the sequence and its scores.
    Plus,
    InPlus,
    Scores,
}

/// A piece of the input.
enum Piece {
    Record,
    /// Letters of a sequence, at this place of the buffer.
    Letters(Range<usize>),
    End,
}

/// The sequences of a text.
struct Letters {
    input: String,
    reader: TextReader,
    buffer: Vec<u8>,
    start: usize,
    ended: bool,
    state: State,
    is_fastq: bool,
    /// Number of the line, from 1.
    line: u64,
    /// Records that have begun.
    record: u64,
    /// Letters of this record, and its scores.
    bases: u64,
    scores: u64,
}

impl Letters {
    /// Reads the first bytes, and refuses what is no record.
    fn begin(&mut self) -> Result<(), SourceError> {
        while !self.ended && self.buffer.trim_ascii_start().is_empty() {
            self.refill()?;
        }
        match self.buffer.trim_ascii_start().first() {
            Some(b'>') => Ok(()),
            Some(b'@') => {
                self.is_fastq = true;
                Ok(())
            }
            Some(_) => Err(problem(
                &self.input,
                "",
                "it is neither FASTA nor FASTQ: its first letter should be > or @",
            )),
            None => Err(problem(&self.input, "", "it has no records: get the complete file")),
        }
    }

    fn refill(&mut self) -> Result<(), SourceError> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let held = self.buffer.len();
        self.buffer.resize(held + READ_BYTES, 0);
        let read = self.reader.fill(&mut self.buffer[held..]);
        let bytes = read.as_ref().map_or(0, |(bytes, _)| *bytes);
        self.buffer.truncate(held + bytes);
        let place = format!("after line {}", self.line - 1);
        self.ended = read.map_err(|error| text::failed(&self.input, place, error))?.1;
        Ok(())
    }

    fn wrong(&self, what: impl Into<String>, advice: &str) -> SourceError {
        let place = format!("line {}, record {}", self.line, self.record.max(1));
        problem(&self.input, place, fault(what, advice))
    }

    /// Skips the rest of a line, and returns its length; `None` if more bytes are needed.
    fn skip_line(&mut self) -> Option<usize> {
        let rest = &self.buffer[self.start..];
        match memchr(b'\n', rest) {
            Some(at) => {
                let length = at - usize::from(rest[..at].ends_with(b"\r"));
                self.start += at + 1;
                self.line += 1;
                Some(length)
            }
            None => None,
        }
    }

    /// Returns the next piece.
    fn next(&mut self) -> Result<Piece, SourceError> {
        loop {
            let rest = &self.buffer[self.start..];
            let (Some(&first), state) = (rest.first(), self.state) else {
                if self.ended {
                    return self.finish();
                }
                self.refill()?;
                continue;
            };
            match state {
                State::Between if matches!(first, b'\r' | b'\n') => {
                    self.start += 1;
                    self.line += u64::from(first == b'\n');
                }
                State::Between if first == if self.is_fastq { b'@' } else { b'>' } => {
                    self.start += 1;
                    self.record += 1;
                    (self.bases, self.scores) = (0, 0);
                    self.state = State::Name;
                    return Ok(Piece::Record);
                }
                State::Between if self.is_fastq => {
                    let advice = "write each record on four lines: @name, sequence, +, scores";
                    return Err(self.wrong("a record should begin with @", advice));
                }
                State::Between => self.state = State::Sequence,
                State::Plus if first != b'+' => {
                    let advice = "write each record on four lines: @name, sequence, +, scores";
                    return Err(self.wrong("a line with + should follow the sequence", advice));
                }
                State::Plus => self.state = State::InPlus,
                State::Sequence => {
                    if let Some(piece) = self.sequence()? {
                        return Ok(piece);
                    }
                }
                State::Name | State::InPlus | State::Scores => self.skip()?,
            }
        }
    }

    /// Returns the letters of a line, or as many as there are; `None` if there are none.
    fn sequence(&mut self) -> Result<Option<Piece>, SourceError> {
        let rest = &self.buffer[self.start..];
        let from = self.start;
        let (length, used) = match memchr(b'\n', rest) {
            Some(at) => (at - usize::from(rest[..at].ends_with(b"\r")), at + 1),
            // The line feed of this carriage return is yet to be read.
            None if rest == b"\r" && !self.ended => {
                self.refill()?;
                return Ok(None);
            }
            None => {
                let length = rest.len() - usize::from(rest.ends_with(b"\r"));
                (length, if self.ended { rest.len() } else { length })
            }
        };
        if let Some(&odd) = rest[..length].iter().find(|&&letter| CODES[usize::from(letter)] == NONE) {
            let shown = char::from(odd).escape_default();
            let advice = "sequences have letters, - and * alone: get the complete file";
            return Err(self.wrong(format!("'{shown}' is no letter of a sequence"), advice));
        }
        self.start += used;
        self.bases += length as u64;
        if used > length && self.buffer[self.start - 1] == b'\n' {
            self.line += 1;
            self.state = if self.is_fastq { State::Plus } else { State::Between };
        }
        Ok((length > 0).then_some(Piece::Letters(from..from + length)))
    }

    /// Skips a name, a line of `+`, or scores, which are counted.
    fn skip(&mut self) -> Result<(), SourceError> {
        if let Some(length) = self.skip_line() {
            self.state = match self.state {
                State::Name => {
                    if self.is_fastq {
                        State::Sequence
                    } else {
                        State::Between
                    }
                }
                State::InPlus => State::Scores,
                _ => {
                    self.scores += length as u64;
                    self.line -= 1;
                    self.check_scores()?;
                    self.line += 1;
                    State::Between
                }
            };
        } else {
            let rest = &self.buffer[self.start..];
            // A carriage return before the line feed is no score.
            let held = usize::from(rest.ends_with(b"\r") && !self.ended);
            let length = rest.len() - held;
            if self.state == State::Scores {
                self.scores += (length - usize::from(rest[..length].ends_with(b"\r"))) as u64;
            }
            self.start += length;
            if held > 0 {
                self.refill()?;
            }
        }
        Ok(())
    }

    fn check_scores(&self) -> Result<(), SourceError> {
        if self.scores == self.bases {
            return Ok(());
        }
        let text = format!("{} letters, but {} scores", self.bases, self.scores);
        Err(self.wrong(text, "it is truncated or damaged: get the complete file"))
    }

    fn finish(&self) -> Result<Piece, SourceError> {
        match (self.state, self.is_fastq) {
            (State::Between, _) | (State::Sequence, false) => Ok(Piece::End),
            (State::Scores, _) => self.check_scores().map(|()| Piece::End),
            _ => Err(self.wrong("it ends within a record", "it is truncated: get the complete file")),
        }
    }
}

/// Letters that are no bases, and bytes that are no letters.
const OTHER: u8 = 4;
const NONE: u8 = 5;

/// The code of each byte: that of a base, or one of the above.
const CODES: [u8; 256] = {
    let mut codes = [NONE; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        if byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'*' | b'.') {
            codes[at] = OTHER;
        }
        at += 1;
    }
    let mut code = 0;
    while code < 4 {
        let base = b"ACGT"[code as usize];
        codes[base as usize] = code;
        codes[base.to_ascii_lowercase() as usize] = code;
        code += 1;
    }
    codes
};

/// The window over a sequence.
struct Window {
    bases: usize,
    is_canonical: bool,
    /// The last bases, the last one lowest, and their reverse complement.
    forward: u128,
    reverse: u128,
    /// Bases since the start, or since the last letter that is none.
    run: usize,
    /// Letters of this record, and windows of bases alone.
    letters: u64,
    found: u64,
}

impl Window {
    /// Begins a record; returns the number of windows of the last one that were left out.
    fn restart(&mut self) -> u64 {
        let windows = (self.letters + 1).saturating_sub(self.bases as u64);
        let left = windows - self.found.min(windows);
        (self.run, self.letters, self.found) = (0, 0, 0);
        left
    }

    /// Takes a letter; returns the k-mer that it completes.
    #[inline]
    fn push(&mut self, letter: u8) -> Option<u128> {
        let code = CODES[usize::from(letter)];
        self.letters += 1;
        if code >= OTHER {
            self.run = 0;
            return None;
        }
        let bits = 2 * self.bases as u32;
        self.forward = (self.forward << 2 | u128::from(code)) & (u128::MAX >> (128 - bits));
        self.reverse = self.reverse >> 2 | u128::from(3 - code) << (bits - 2);
        self.run += 1;
        if self.run < self.bases {
            return None;
        }
        self.found += 1;
        let word = if self.is_canonical { self.forward.min(self.reverse) } else { self.forward };
        Some(word << (128 - bits) | self.bases as u128)
    }
}

/// A source of k-mers.
struct Kmers {
    letters: Letters,
    schema: Schema,
    window: Window,
    /// Letters in the buffer that are yet to be taken.
    pending: Range<usize>,
    counts: NullCounts,
}

impl Source for Kmers {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        prepare(chunk, &self.schema, None);
        let Column::U128(keys) = &mut chunk.keys else { return Ok(()) };
        while keys.len() < tuples_max.max(1) {
            if self.pending.is_empty() {
                match self.letters.next()? {
                    Piece::Letters(place) => self.pending = place,
                    Piece::Record => self.counts.leave_out(self.window.restart()),
                    Piece::End => {
                        self.counts.leave_out(self.window.restart());
                        break;
                    }
                }
            }
            let room = tuples_max.max(1) - keys.len();
            let end = self.pending.end.min(self.pending.start + room);
            let letters = &self.letters.buffer[self.pending.start..end];
            keys.extend(letters.iter().filter_map(|&letter| self.window.push(letter)));
            self.pending.start = end;
        }
        match &mut chunk.values {
            Column::U32(ones) => ones.resize(keys.len(), 1),
            Column::U64(ones) => ones.resize(keys.len(), 1),
            Column::None | Column::U128(_) | Column::Bytes(_) => {}
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.letters.reader.taken(), None)
    }
}
