//! Scalar searches in the tuple lines of a file, by its spine or by the rank that another structure gives.

use crate::error::FormatError;
use crate::header::Header;
use crate::key::Word;
use crate::layout::LINE_BYTES;
use crate::line::{self, Line};
use crate::short::Seek;
use crate::spine;

/// Source of the lines of a search: a slice, or a slice whose blocks are verified first.
pub trait Lines {
    /// Error if a line cannot be read.
    type Error;
    /// Returns the 64 bytes at `offset`, which the header guarantees to be in the file.
    ///
    /// # Errors
    /// [`Lines::Error`] if the bytes cannot be read or do not match their sum.
    fn line(&self, offset: u64) -> Result<&Line, Self::Error>;
}

/// The whole file in memory, unverified.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Lines for Bytes<'_> {
    type Error = FormatError;
    #[inline]
    fn line(&self, offset: u64) -> Result<&Line, FormatError> {
        let found = self.0.len() as u64;
        usize::try_from(offset)
            .ok()
            .and_then(|at| self.0.get(at..)?.first_chunk())
            .ok_or(FormatError::Truncated { expected: offset.saturating_add(LINE_BYTES as u64), found })
    }
}

/// Returns the rank of the first tuple whose encoded key is at least `query`, or the tuple count if there is
/// none. Reads O(levels) lines.
///
/// If the file was not verified, the result may be wrong, but it is at most the tuple count. The search reads
/// only lines that the header guarantees to be in the file.
///
/// # Errors
/// The error of `lines` if a line cannot be read.
pub fn lower_bound<W: Word, L: Lines>(header: &Header, lines: &L, query: W) -> Result<u64, L::Error> {
    let Some(short) = &header.short else { return stored_bound(header, lines, query) };
    match short.seek(query) {
        Seek::End => Ok(header.tuples),
        Seek::Word(word) | Seek::Before(word) if short.word_bytes() == 4 => {
            stored_bound(header, lines, word as u32)
        }
        Seek::Word(word) | Seek::Before(word) => stored_bound(header, lines, word),
    }
}

/// Returns the rank of the first tuple whose encoded key is at least `query`, if `near` leads to it: it returns the
/// rank of a word as it is in the lines, or a rank near it. The tuple lines decide, O(log(distance)) of them.
///
/// # Errors
/// The error of `near`, and that of `lines` if a line cannot be read.
pub fn lower_bound_by<W: Word, L: Lines>(
    header: &Header,
    lines: &L,
    query: W,
    near: impl Fn(u128) -> Result<u64, L::Error>,
) -> Result<u64, L::Error> {
    let Some(short) = &header.short else {
        return settle(header, lines, query, near(query.to_u128())?);
    };
    match short.seek(query) {
        Seek::End => Ok(header.tuples),
        Seek::Word(word) | Seek::Before(word) if short.word_bytes() == 4 => {
            settle(header, lines, word as u32, near(word.into())?)
        }
        Seek::Word(word) | Seek::Before(word) => settle(header, lines, word, near(word.into())?),
    }
}

/// Returns the lower bound of a word as it is in the lines, which is at `rank` or near it.
fn settle<W: Word, L: Lines>(header: &Header, lines: &L, query: W, rank: u64) -> Result<u64, L::Error> {
    if header.lines == 0 {
        return Ok(0);
    }
    let n = header.geometry.tuples_per_line();
    let mut at = header.geometry.place(rank).0.min(header.lines - 1);
    let mut slot = line::keys_below(lines.line(header.line_offset(at))?, n, query);
    if slot == 0 && at > 0 && !ends_below(header, lines, at - 1, query)? {
        at = step_left(header, lines, at - 1, query)?;
    } else if slot == n && at + 1 < header.lines {
        at = step_right(header, lines, at + 1, query)?;
    } else {
        return Ok((at * n as u64 + slot as u64).min(header.tuples));
    }
    slot = line::keys_below(lines.line(header.line_offset(at))?, n, query);
    Ok((at * n as u64 + slot as u64).min(header.tuples))
}

/// Returns the lower bound of a word as it is in the lines.
fn stored_bound<W: Word, L: Lines>(header: &Header, lines: &L, query: W) -> Result<u64, L::Error> {
    if header.lines == 0 {
        return Ok(0);
    }
    let mut at = 0u64;
    let mut inexact = false;
    for level in header.spine.levels.iter().rev() {
        let line = lines.line(header.spine_offset + level.offset + at * LINE_BYTES as u64)?;
        inexact |= spine::is_inexact(level.encoding, line);
        at = (at * level.fanout as u64 + spine::child(level.encoding, line, query) as u64)
            .min(level.children - 1);
    }
    at = line_in_group(header, lines, at, query)?;
    let n = header.geometry.tuples_per_line();
    let mut slot = line::keys_below(lines.line(header.line_offset(at))?, n, query);
    if slot == n && inexact && at + 1 < header.lines {
        at = step_right(header, lines, at + 1, query)?;
        slot = line::keys_below(lines.line(header.line_offset(at))?, n, query);
    }
    Ok((at * n as u64 + slot as u64).min(header.tuples))
}

/// Returns the first line of a group, which is a child of the spine's bottom level, whose last word is at least
/// `query`, or the last line of the group. O(log(lines in a group)) lines. A group past the end gives the last line.
///
/// # Errors
/// The error of `lines` if a line cannot be read.
fn line_in_group<W: Word, L: Lines>(
    header: &Header,
    lines: &L,
    group: u64,
    query: W,
) -> Result<u64, L::Error> {
    let last = header.lines - 1;
    let low = group.saturating_mul(header.spine.child_lines).min(last);
    bisect(header, lines, low, (low + (header.spine.child_lines - 1)).min(last), query)
}

/// Returns the first line from `low` to `high` whose last word is at least `query`; `high` if only that one, or none,
/// can be it.
fn bisect<W: Word, L: Lines>(
    header: &Header,
    lines: &L,
    mut low: u64,
    mut high: u64,
    query: W,
) -> Result<u64, L::Error> {
    while low < high {
        let middle = low + (high - low) / 2;
        if ends_below(header, lines, middle, query)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// Returns true if the last word of a line is below `query`.
fn ends_below<W: Word, L: Lines>(header: &Header, lines: &L, line: u64, query: W) -> Result<bool, L::Error> {
    let n = header.geometry.tuples_per_line();
    Ok(line::key::<W>(lines.line(header.line_offset(line))?, n - 1) < query)
}

/// Returns the first line, beginning with `from`, whose last word is at least `query`, or the last line. The
/// search takes doubling steps, then bisects, so that it does not walk runs of equal codes.
///
/// # Errors
/// The error of `lines` if a line cannot be read.
pub fn step_right<W: Word, L: Lines>(
    header: &Header,
    lines: &L,
    from: u64,
    query: W,
) -> Result<u64, L::Error> {
    let last = header.lines - 1;
    let (mut low, mut step) = (from, 1);
    let mut high = from;
    while high < last && ends_below(header, lines, high, query)? {
        low = high + 1;
        high = high.saturating_add(step).min(last);
        step *= 2;
    }
    Ok(bisect(header, lines, low, high, query)?.min(last))
}

/// Returns the first line whose last word is at least `query`; line `from` is one. The search takes doubling
/// steps to the left, then bisects.
///
/// # Errors
/// The error of `lines` if a line cannot be read.
pub fn step_left<W: Word, L: Lines>(
    header: &Header,
    lines: &L,
    from: u64,
    query: W,
) -> Result<u64, L::Error> {
    let (mut high, mut step) = (from, 1);
    let mut low = from;
    while low > 0 {
        low = high.saturating_sub(step);
        if ends_below(header, lines, low, query)? {
            low += 1;
            break;
        }
        high = low;
        step *= 2;
    }
    bisect(header, lines, low, high, query)
}

/// Returns the rank of the first tuple whose encoded key is above `query`, or the tuple count if there is
/// none.
///
/// # Errors
/// The error of `lines` if a line cannot be read.
pub fn upper_bound<W: Word, L: Lines>(header: &Header, lines: &L, query: W) -> Result<u64, L::Error> {
    match query.successor() {
        Some(next) => lower_bound(header, lines, next),
        None => Ok(header.tuples),
    }
}

/// Returns the encoded key and the widened value bits of the tuple at `rank`; `None` past the end. O(1).
///
/// # Errors
/// The error of `lines` if a line cannot be read.
pub fn tuple<W: Word, L: Lines>(header: &Header, lines: &L, rank: u64) -> Result<Option<(W, u64)>, L::Error> {
    if rank >= header.tuples {
        return Ok(None);
    }
    let (line, slot) = header.geometry.place(rank);
    let bytes = lines.line(header.line_offset(line))?;
    let word = line::word(bytes, header.geometry.key_bytes, slot);
    let at = header.geometry.values_at() + slot * header.geometry.value_bytes;
    let value = match header.geometry.value_bytes {
        4 => u64::from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])),
        8 => <u64 as Word>::read(&bytes[at..]),
        _ => 0,
    };
    Ok(Some((W::from_u128(header.key_of(word)), value)))
}
