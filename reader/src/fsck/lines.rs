//! Checks of tuple lines and of the separators that part them: order, padding, borders.
//!
//! Nearly every line and border is as it should be, and is looked at without a branch for each key; what is not is
//! looked at again, slowly, and told.

use super::pieces::PIECE_BYTES;
use super::{Check, ReadAt};
use pleach_format::Header;
use pleach_format::key::Word;
use pleach_format::layout::{LINE_BYTES, Level};
use pleach_format::line::{self, Line};
use pleach_format::section::Tag;
use pleach_format::spine::{self, Encoding};
use pleach_format::superblock::key_word;
use std::io;

impl<R: ReadAt> Check<'_, R> {
    /// Sums, order, padding and separators, in one pass over the tuple lines.
    pub(super) fn check_lines<W: Word>(&self, header: &Header) -> io::Result<()> {
        let Some(section) = header.section(Tag::LINE) else { return Ok(()) };
        // One line more on each side shows the borders of the piece.
        let side = LINE_BYTES as u64;
        self.pieces(section.offset(), section.extent(), (side, side), |at, piece| {
            self.check_blocks(header, section, at, piece.bytes)?;
            self.check_padding(section, at, piece.bytes);
            self.check_tuples::<W>(header, at, piece.with_sides, piece.before)
        })
    }

    /// `bytes` begins `before` bytes before byte `at` of the tuple lines.
    fn check_tuples<W: Word>(&self, header: &Header, at: u64, bytes: &[u8], before: usize) -> io::Result<()> {
        let geometry = header.geometry;
        let n = geometry.tuples_per_line();
        let (lines, _) = bytes.as_chunks::<LINE_BYTES>();
        let base = (at - before as u64) / LINE_BYTES as u64;
        let first = at / LINE_BYTES as u64;
        let end = (at + (PIECE_BYTES)).min(header.lines * LINE_BYTES as u64) / LINE_BYTES as u64;
        let line_at = |number: u64| lines.get(usize::try_from(number - base).unwrap_or(usize::MAX));
        let mut windows = Windows::new(header);
        let mut separators = Separators::new(header, first);
        let plain = plain_line::<W>(n);
        let mut carried = None;
        for number in first..end.min(header.lines) {
            let Some(line) = line_at(number) else { break };
            let left = carried.or_else(|| {
                let left = number.checked_sub(1).filter(|&left| left >= base).and_then(line_at);
                left.map(|left| line::key::<W>(left, n - 1))
            });
            let last = line::key::<W>(line, n - 1);
            carried = Some(last);
            let is_last = number + 1 == header.lines;
            let is_plain = left.is_some_and(|left| {
                !is_last
                    && plain(line, left, header.is_unique())
                    && line[n * W::BYTES..geometry.values_at()].iter().all(|&byte| byte == 0)
            });
            if !is_plain {
                let used = geometry.tuples_in_line(number, header.tuples);
                self.check_keys::<W>(header, line, left, number, used);
                self.check_line_padding::<W>(header, line, header.line_offset(number), used);
                if number == 0 || is_last {
                    self.check_min_max::<W>(header, line, number, used);
                }
            }
            if let Some(right) = line_at(number + 1).filter(|_| !is_last) {
                let first = line::key::<W>(right, 0);
                let border = spine::Border { last, first, second: first };
                if !separators.is_good(self, &mut windows, header, number, &border)? {
                    self.check_border(header, &mut windows, number, border)?;
                }
            }
        }
        Ok(())
    }

    /// Order of the keys of a line, after the last one of the line before it.
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
                self.rule("order", "LINE", place, bytes, expected, found, "keys must ascend");
            } else if key == before && header.is_unique() {
                self.rule("duplicate", "LINE", place, bytes, "another key", found, "keys must be unique");
            }
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
            self.rule("line-padding", "LINE", offset, LINE_BYTES as u64, "padding", "other bytes", text);
        }
    }

    fn check_min_max<W: Word>(&self, header: &Header, line: &Line, number: u64, used: usize) {
        if header.key_type.is_bytes() {
            return;
        }
        let block = &header.superblock;
        let ends = [
            (number == 0, 0, &block.min_key, block.min_key_len.get(), 128),
            (
                number + 1 == header.lines,
                used.saturating_sub(1),
                &block.max_key,
                block.max_key_len.get(),
                192,
            ),
        ];
        for (here, slot, prefix, length, offset) in ends {
            let key = line::key::<W>(line, slot).to_u128();
            let rest = prefix[W::BYTES..].iter().all(|&byte| byte == 0);
            if here && (key_word(prefix, W::BYTES) != key || length as usize != W::BYTES || !rest) {
                let found = key_word(prefix, W::BYTES);
                self.rule(
                    "min-max",
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

    /// Finds the separator of the border behind tuple line `number`, and checks it.
    fn check_border<W: Word>(
        &self,
        header: &Header,
        windows: &mut Windows,
        number: u64,
        border: spine::Border<W>,
    ) -> io::Result<()> {
        let mut child = number;
        for (depth, level) in header.spine.levels.iter().enumerate() {
            let fanout = level.fanout as u64;
            let (at, slot) = (child / fanout, (child % fanout) as usize);
            if slot + 1 == level.fanout {
                child = at;
                continue;
            }
            let line = windows.line(self, header, depth, level, at)?;
            let offset = header.spine_offset + level.offset + at * LINE_BYTES as u64;
            self.check_separator(level.encoding, &line, slot, offset, border);
            return Ok(());
        }
        Ok(())
    }

    fn check_separator<W: Word>(
        &self,
        encoding: Encoding,
        line: &Line,
        slot: usize,
        offset: u64,
        border: spine::Border<W>,
    ) {
        let (last, first) = (border.last, border.first);
        let place = offset + (slot * encoding.code_bytes(W::BYTES)) as u64;
        let bytes = encoding.code_bytes(W::BYTES) as u64;
        if encoding == Encoding::Raw {
            let code = spine::separator::<W>(line, slot);
            if code < last || (code >= first && code != last) {
                let expected = format!("{} up to below {}", last.to_u128(), first.to_u128());
                let code = code.to_u128();
                self.rule(
                    "separator",
                    "SPIN",
                    place,
                    bytes,
                    expected,
                    code,
                    "a separator must part its neighbours",
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
                "separator",
                "SPIN",
                place,
                bytes,
                expected,
                code,
                "a code must be the cell of the last key",
            );
        } else if shift > 0 && cell(first) == Some(code) && flags & spine::INEXACT == 0 {
            self.rule(
                "separator",
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

/// Whether a full line's keys ascend from a key before it on; strictly, where keys are unique.
type PlainLine<W> = fn(&Line, W, bool) -> bool;

/// The one for lines of `n` tuples.
fn plain_line<W: Word>(n: usize) -> PlainLine<W> {
    fn of<W: Word, const N: usize>(line: &Line, left: W, is_unique: bool) -> bool {
        let keys: [W; N] = std::array::from_fn(|slot| line::key::<W>(line, slot));
        let mut before = left;
        let (mut below, mut equal) = (false, false);
        for key in keys {
            below |= key < before;
            equal |= key == before;
            before = key;
        }
        !(below || is_unique && equal)
    }
    match n {
        2 => of::<W, 2>,
        3 => of::<W, 3>,
        4 => of::<W, 4>,
        5 => of::<W, 5>,
        8 => of::<W, 8>,
        16 => of::<W, 16>,
        // No other number of tuples fits; lines are looked at slowly.
        _ => |_, _, _| false,
    }
}

/// A spine line of the lowest level, taken apart: most borders are parted there.
struct Separators<W> {
    fanout: u64,
    /// Spine line, and slot in it, of the next border.
    at: u64,
    slot: u64,
    line: Option<(Line, W, u32, u8)>,
}

impl<W: Word> Separators<W> {
    fn new(header: &Header, number: u64) -> Self {
        let fanout = header.spine.levels.first().map_or(1, |level| level.fanout as u64);
        Self { fanout, at: number / fanout, slot: number % fanout, line: None }
    }

    /// Whether the separator behind tuple line `number` stands in the lowest level and is right. Asked for one line
    /// after the other.
    fn is_good<R: ReadAt>(
        &mut self,
        check: &Check<'_, R>,
        windows: &mut Windows,
        header: &Header,
        number: u64,
        border: &spine::Border<W>,
    ) -> io::Result<bool> {
        let (at, slot) = (self.at, self.slot);
        debug_assert_eq!(number, at * self.fanout + slot);
        if slot + 1 == self.fanout {
            (self.at, self.slot, self.line) = (at + 1, 0, None);
            return Ok(false);
        }
        self.slot += 1;
        let Some(level) = header.spine.levels.first() else { return Ok(false) };
        let (line, base, shift, flags) = match &mut self.line {
            Some(line) => line,
            none => {
                let line = windows.line(check, header, 0, level, at)?;
                let (base, shift, flags) = match level.encoding {
                    Encoding::Raw => (W::default(), 0, 0),
                    _ => spine::delta_header::<W>(&line),
                };
                none.insert((line, base, shift, flags))
            }
        };
        let (slot, last, first) = (slot as usize, border.last, border.first);
        if level.encoding == Encoding::Raw {
            let code = spine::separator::<W>(line, slot);
            return Ok(code >= last && (code < first || code == last));
        }
        let code = spine::code(level.encoding, line, slot);
        let is_cell = last >= *base && *shift < W::BYTES as u32 * 8 && last.cell(*base, *shift) == code;
        let is_exact = *shift == 0 || first < *base || first.cell(*base, *shift) != code;
        Ok(is_cell && code < spine::code_max(level.encoding) && (is_exact || *flags & spine::INEXACT != 0))
    }
}

/// The lines of each level that a piece needs, read once a piece.
struct Windows {
    levels: Vec<Window>,
}

/// Some lines of a level.
struct Window {
    /// The first of them.
    first: u64,
    bytes: Vec<u8>,
    /// How many a piece asks for.
    wanted: u64,
}

impl Windows {
    fn new(header: &Header) -> Self {
        let mut lines = PIECE_BYTES / LINE_BYTES as u64;
        let window = |level: &Level| {
            lines = lines / level.fanout.max(1) as u64 + 2;
            Window { first: 0, bytes: Vec::new(), wanted: lines }
        };
        Self { levels: header.spine.levels.iter().map(window).collect() }
    }

    fn line<R: ReadAt>(
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
