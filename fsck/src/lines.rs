//! Checks of tuple lines and of the separators between them: order, padding, borders.
//!
//! The children of a spine line are checked together, without a branch per key, since nearly all are correct.
//! If they are not, each one is checked again, and the faults are reported.

use super::grid::Grid;
use super::pieces::PIECE_BYTES;
use super::{Check, Code, ReadAt};
use pleach_format::key::Word;
use pleach_format::layout::{CHILD_LINES_MAX, LINE_BYTES, Level};
use pleach_format::line::{self, Line};
use pleach_format::section::Tag;
use pleach_format::short::Seek;
use pleach_format::spine::{self, Encoding};
use pleach_format::superblock::{Superblock, key_word};
use pleach_format::{Header, offset_in};
use std::io;
use std::ops::Range;

impl<R: ReadAt> Check<'_, R> {
    /// Checks sums, order, padding, separators and marks of the grid, in one pass over the tuple lines.
    pub(super) fn check_lines<W: Word>(&self, header: &Header, grid: Option<Grid>) -> io::Result<()> {
        let Some(section) = header.section(Tag::LINE) else { return Ok(()) };
        // One more line on each side, so that the borders of the piece are checked.
        let side = LINE_BYTES as u64;
        self.pieces(section.offset(), section.extent(), (side, side), |at, piece| {
            self.check_blocks(header, section, at, piece.bytes)?;
            self.check_padding(section, at, piece.bytes);
            self.check_tuples::<W>(header, at, piece.with_sides, piece.before)?;
            match &grid {
                Some(grid) => {
                    let (held, _) = piece.with_sides.as_chunks();
                    let left = (piece.before / LINE_BYTES).checked_sub(1).and_then(|left| held.get(left));
                    let lines = (left, piece.bytes.as_chunks().0);
                    self.check_marks::<W>(header, grid, at / LINE_BYTES as u64, lines)
                }
                None => Ok(()),
            }
        })?;
        grid.map_or(Ok(()), |grid| self.check_counts(header, &grid))
    }

    /// Checks the tuple lines of a piece, one spine line after the other. `bytes` begins `before` bytes
    /// before byte `at` of the tuple lines.
    fn check_tuples<W: Word>(&self, header: &Header, at: u64, bytes: &[u8], before: usize) -> io::Result<()> {
        let first = at / LINE_BYTES as u64;
        let held = Held { first: first - (before / LINE_BYTES) as u64, lines: bytes.as_chunks().0 };
        let end = header.lines.min(first + PIECE_BYTES / LINE_BYTES as u64);
        let lowest = header.spine.levels.first();
        let child_lines = header.spine.child_lines;
        let fanout = lowest.map_or(u64::MAX, |level| level.fanout as u64 * child_lines);
        let ascend = ascend::<W>(header.geometry.tuples_per_line());
        let mut windows = Windows::new(header);
        let mut number = first;
        while number < end {
            let slot = number % fanout;
            let next = end.min((number - slot).saturating_add(fanout));
            let is_plain = match (held.with_neighbours(number..next), lowest) {
                (Some(run), Some(level)) if next < header.lines => {
                    let line = windows.line(self, header, 0, level, number / fanout)?;
                    // Borders of children among these lines, and after them if that one is of the same spine line.
                    let children = slot / child_lines..(slot + next - number) / child_lines;
                    let slots = children.start as usize..children.end.min(level.fanout as u64 - 1) as usize;
                    ascend(run, header) && are_parted::<W>(&run[1..], header, level.encoding, &line, slots)
                }
                (Some(run), None) if next < header.lines => ascend(run, header),
                _ => false,
            };
            if !is_plain {
                for number in number..next {
                    self.check_line::<W>(header, &held, number);
                    self.check_border::<W>(header, &mut windows, &held, number)?;
                }
            } else if slot + next - number == fanout {
                // The border after the last child of a spine line has its separator on a higher level.
                self.check_border::<W>(header, &mut windows, &held, next - 1)?;
            }
            number = next;
        }
        Ok(())
    }

    /// Checks order, padding and ends of a line.
    fn check_line<W: Word>(&self, header: &Header, held: &Held<'_>, number: u64) {
        let Some(line) = held.line(number) else { return };
        let n = header.geometry.tuples_per_line();
        let left = number.checked_sub(1).and_then(|left| held.line(left));
        let left = left.map(|left| line::key::<W>(left, n - 1));
        let used = header.geometry.tuples_in_line(number, header.tuples);
        self.check_keys::<W>(header, line, left, number, used);
        self.check_line_padding::<W>(header, line, header.line_offset(number), used);
        if number == 0 || number + 1 == header.lines {
            self.check_min_max::<W>(header, line, number, used);
            self.check_largest::<W>(header, line, number, used);
        }
    }

    /// Checks that the last word of a file, the largest one, is that of a key.
    fn check_largest<W: Word>(&self, header: &Header, line: &Line, number: u64, used: usize) {
        let (Some(short), Some(slot)) = (&header.short, used.checked_sub(1)) else { return };
        let word = line::key::<W>(line, slot).to_u128();
        if number + 1 == header.lines && short.checked_key(word).is_none() {
            let (place, bytes) = (header.line_offset(number) + (slot * W::BYTES) as u64, W::BYTES as u64);
            let expected = "a word of the runs, whose key is one of the type";
            self.rule(Code::Key, "LINE", place, bytes, expected, word, "words must be those of keys");
        }
    }

    /// Checks the order of the keys of a line, beginning with the last key of the line before it.
    fn check_keys<W: Word>(&self, header: &Header, line: &Line, left: Option<W>, number: u64, used: usize) {
        let mut previous = left;
        for slot in 0..used {
            let key = line::key::<W>(line, slot);
            let Some(before) = previous.replace(key) else { continue };
            let place = header.line_offset(number) + (slot * W::BYTES) as u64;
            let bytes = W::BYTES as u64;
            let found = key.to_u128();
            if key < before {
                let expected = format!("at least {}", before.to_u128());
                self.rule(Code::Order, "LINE", place, bytes, expected, found, "keys must ascend");
            } else if key == before && are_strict(header) {
                self.rule(Code::Duplicate, "LINE", place, bytes, "another key", found, "keys must be unique");
            }
        }
        let words = (0..used).map(|slot| header.key_of(line::key::<W>(line, slot).to_u128()));
        if let Some((slot, word)) = (0u64..).zip(words).find(|&(_, word)| !header.key_type.has_word(word)) {
            let place = header.line_offset(number) + slot * W::BYTES as u64;
            let found = format!("the word {word:016x}");
            self.rule(
                Code::Key,
                "LINE",
                place,
                8,
                "a number, zero without a sign",
                found,
                "keys must be numbers",
            );
        }
    }

    fn check_line_padding<W: Word>(&self, header: &Header, line: &Line, offset: u64, used: usize) {
        let geometry = header.geometry;
        let n = geometry.tuples_per_line();
        let keys_end = n * W::BYTES;
        let keys = line[used * W::BYTES..keys_end].iter().all(|&byte| byte == 0xFF);
        let gap = line[keys_end..geometry.values_at()].iter().all(|&byte| byte == 0);
        let values = line[geometry.values_at() + used * geometry.value_bytes..].iter().all(|&byte| byte == 0);
        if !(keys && gap && values) {
            let text = "free keys must be all ones, free values and gaps zero";
            self.rule(Code::LinePadding, "LINE", offset, LINE_BYTES as u64, "padding", "other bytes", text);
        }
    }

    fn check_min_max<W: Word>(&self, header: &Header, line: &Line, number: u64, used: usize) {
        if header.key_type.is_bytes() {
            return;
        }
        let (block, bytes) = (&header.superblock, header.key_type.bytes());
        let ends = [
            (number == 0, 0, &block.min_key, block.min_key_len.get(), offset_in!(Superblock, min_key)),
            (
                number + 1 == header.lines,
                used.saturating_sub(1),
                &block.max_key,
                block.max_key_len.get(),
                offset_in!(Superblock, max_key),
            ),
        ];
        for (here, slot, prefix, length, offset) in ends {
            let key = header.key_of(line::key::<W>(line, slot).to_u128());
            let rest = prefix[bytes..].iter().all(|&byte| byte == 0);
            if here && (key_word(prefix, bytes) != key || length as usize != bytes || !rest) {
                let found = key_word(prefix, bytes);
                self.rule(
                    Code::MinMax,
                    "superblock",
                    offset,
                    64,
                    key,
                    found,
                    "the superblock must name the outermost keys",
                );
            }
        }
    }

    /// Finds the separator of the border after tuple line `number`, and checks it.
    fn check_border<W: Word>(
        &self,
        header: &Header,
        windows: &mut Windows,
        held: &Held<'_>,
        number: u64,
    ) -> io::Result<()> {
        let (Some(left), Some(right)) = (held.line(number), held.line(number + 1)) else { return Ok(()) };
        if number + 1 == header.lines {
            return Ok(());
        }
        // In a group of lines no separator stands.
        if !(number + 1).is_multiple_of(header.spine.child_lines) {
            return Ok(());
        }
        let last = line::key::<W>(left, header.geometry.tuples_per_line() - 1);
        let first = line::key::<W>(right, 0);
        let mut child = number / header.spine.child_lines;
        for (depth, level) in header.spine.levels.iter().enumerate() {
            let fanout = level.fanout as u64;
            let (at, slot) = (child / fanout, (child % fanout) as usize);
            if slot + 1 == level.fanout {
                child = at;
                continue;
            }
            let line = windows.line(self, header, depth, level, at)?;
            let offset = header.spine_offset + level.offset + at * LINE_BYTES as u64;
            self.check_separator(level.encoding, &line, slot, offset, last, first);
            return Ok(());
        }
        Ok(())
    }

    pub(super) fn check_separator<W: Word>(
        &self,
        encoding: Encoding,
        line: &Line,
        slot: usize,
        offset: u64,
        last: W,
        first: W,
    ) {
        let place = offset + (slot * encoding.code_bytes(W::BYTES)) as u64;
        let bytes = encoding.code_bytes(W::BYTES) as u64;
        if encoding == Encoding::Raw {
            let code = spine::separator::<W>(line, slot);
            if code < last || (code >= first && code != last) {
                let expected = format!("{} up to below {}", last.to_u128(), first.to_u128());
                let code = code.to_u128();
                self.rule(
                    Code::Separator,
                    "SPIN",
                    place,
                    bytes,
                    expected,
                    code,
                    "a separator must separate its neighbours",
                );
            }
            return;
        }
        let (base, shift, flags) = spine::delta_header::<W>(line);
        let code = spine::code(encoding, line, slot);
        let within = shift < W::BYTES as u32 * 8;
        let cell = |key: W| (key >= base).then(|| if within { key.cell(base, shift) } else { 0 });
        if cell(last) != Some(code) || code >= spine::code_max(encoding) {
            let expected = cell(last).map_or("a base at most the key".to_owned(), |cell| cell.to_string());
            self.rule(
                Code::Separator,
                "SPIN",
                place,
                bytes,
                expected,
                code,
                "a code must be the cell of the last key",
            );
        } else if shift > 0 && cell(first) == Some(code) && flags & spine::INEXACT == 0 {
            self.rule(
                Code::Separator,
                "SPIN",
                place,
                bytes,
                "a cell border",
                code,
                "an inexact border must be flagged",
            );
        }
    }
}

/// A run of tuple lines in memory.
pub(super) struct Held<'a> {
    /// Number of the first line.
    pub(super) first: u64,
    pub(super) lines: &'a [Line],
}

impl Held<'_> {
    pub(super) fn line(&self, number: u64) -> Option<&Line> {
        self.lines.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Returns these lines, with the line before and the line after them.
    pub(super) fn with_neighbours(&self, numbers: Range<u64>) -> Option<&[Line]> {
        let start = numbers.start.checked_sub(self.first + 1)? as usize;
        self.lines.get(start..start + (numbers.end - numbers.start) as usize + 2)
    }
}

/// Reports whether equal words are duplicates. Byte keys may have equal words; they are compared whole, with
/// their columns.
fn are_strict(header: &Header) -> bool {
    header.is_unique() && !header.key_type.is_bytes()
}

/// Function that reports whether all lines except the outer two are correct: keys ascend, beginning with the
/// last key of the line before, strictly if keys are unique; no key is -0.0; and the bytes between keys and
/// values are zero. These lines are full.
pub(super) type Ascend = fn(&[Line], &Header) -> bool;

/// Returns the function for lines of `n` tuples.
pub(super) fn ascend<W: Word>(n: usize) -> Ascend {
    fn is_ascending<W: Word, const N: usize>(lines: &[Line], header: &Header) -> bool {
        let [first, inner @ .., _] = lines else { return false };
        let gap = N * W::BYTES..header.geometry.values_at();
        let mut before = line::key::<W>(first, N - 1);
        let (mut below, mut equal, mut signed, mut filled) = (false, false, false, 0);
        let minus_zero = header.key_type.minus_zero().and_then(|key| match &header.short {
            None => Some(key),
            Some(short) => match short.seek(key) {
                Seek::Word(word) => Some(word),
                Seek::Before(_) | Seek::End => None,
            },
        });
        let (has_minus_zero, minus_zero) =
            (minus_zero.is_some(), W::from_u64(minus_zero.unwrap_or_default()));
        for line in inner {
            for slot in 0..N {
                let key = line::key::<W>(line, slot);
                below |= key < before;
                equal |= key == before;
                signed |= key == minus_zero;
                before = key;
            }
            filled |= line[gap.clone()].iter().fold(0, |all, &byte| all | byte);
        }
        !(below || are_strict(header) && equal || has_minus_zero && signed || filled != 0)
    }
    match n {
        2 => is_ascending::<W, 2>,
        3 => is_ascending::<W, 3>,
        4 => is_ascending::<W, 4>,
        5 => is_ascending::<W, 5>,
        8 => is_ascending::<W, 8>,
        16 => is_ascending::<W, 16>,
        // No other number of tuples fits in a line; lines are then checked one by one.
        _ => |_, _| false,
    }
}

/// Reports whether the separators in these slots of a spine line separate groups of lines: the first slot the first
/// two groups, the next slot the second and the third, and so on.
pub(super) fn are_parted<W: Word>(
    lines: &[Line],
    header: &Header,
    encoding: Encoding,
    spine_line: &Line,
    slots: Range<usize>,
) -> bool {
    let n = header.geometry.tuples_per_line();
    let every = header.spine.child_lines as usize;
    let pairs = lines.windows(2).skip(every - 1).step_by(every);
    let borders = pairs.map(|pair| (line::key::<W>(&pair[0], n - 1), line::key::<W>(&pair[1], 0)));
    let borders = slots.zip(borders);
    if encoding == Encoding::Raw {
        return borders.fold(true, |good, (slot, (last, first))| {
            let code = spine::separator::<W>(spine_line, slot);
            good & (code >= last) & ((code < first) | (code == last))
        });
    }
    let (base, shift, flags) = spine::delta_header::<W>(spine_line);
    if shift >= W::BYTES as u32 * 8 {
        return false;
    }
    let (max, is_exact) = (spine::code_max(encoding), shift > 0 && flags & spine::INEXACT == 0);
    borders.fold(true, |good, (slot, (last, first))| {
        let code = spine::code(encoding, spine_line, slot);
        let is_cell = (last >= base) & (last.cell(base, shift) == code) & (code < max);
        good & is_cell & !(is_exact & (first.cell(base, shift) == code))
    })
}

/// Pieces begin with the first line of a group.
const _: () = assert!(PIECE_BYTES.is_multiple_of(CHILD_LINES_MAX * LINE_BYTES as u64));

/// The spine lines of each level that a piece needs, read once per piece.
pub(super) struct Windows {
    levels: Vec<Window>,
}

/// Consecutive lines of a level.
struct Window {
    /// Number of the first line.
    first: u64,
    bytes: Vec<u8>,
    /// Number of lines that a piece needs.
    wanted: u64,
}

impl Windows {
    pub(super) fn new(header: &Header) -> Self {
        let mut lines = PIECE_BYTES / LINE_BYTES as u64 / header.spine.child_lines;
        let window = |level: &Level| {
            lines = lines / level.fanout.max(1) as u64 + 2;
            Window { first: 0, bytes: Vec::new(), wanted: lines }
        };
        Self { levels: header.spine.levels.iter().map(window).collect() }
    }

    pub(super) fn line<R: ReadAt>(
        &mut self,
        check: &Check<'_, R>,
        header: &Header,
        depth: usize,
        level: &Level,
        at: u64,
    ) -> io::Result<Line> {
        let Window { first, bytes, wanted } = &mut self.levels[depth];
        let held = (bytes.len() / LINE_BYTES) as u64;
        if at < *first || at >= *first + held {
            let count = (*wanted).min(level.lines - at);
            let offset = header.spine_offset + level.offset + at * LINE_BYTES as u64;
            *bytes = check.read(offset, count * LINE_BYTES as u64)?;
            *first = at;
        }
        let start = (at - *first) as usize * LINE_BYTES;
        let mut line = [0; LINE_BYTES];
        line.copy_from_slice(&bytes[start..start + LINE_BYTES]);
        Ok(line)
    }
}
