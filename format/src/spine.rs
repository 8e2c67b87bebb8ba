//! The spine: separators above the tuple lines (FAST's line blocking, Kim et al., section 4).
//!
//! A spine line separates up to `m + 1` children by `m` ascending separators. The child of a query is the
//! number of separators below it, so `lower_bound` finds the first of equal keys. Any `s` with
//! `last(i) <= s < first(i + 1)` separates child `i` and `i + 1` exactly (`s = last(i)` if the two keys are
//! equal).
//!
//! * `raw`: separators are `last(i)` in full; free slots are all ones.
//! * `delta8`, `delta16`, `delta32`: codes `d_i = (last(i) - base) >> shift`. A code represents the last key
//!   of its cell, `base + ((d_i + 1) << shift) - 1`. The all-ones code is padding; no key has it.
//!
//! Base and shift are at the end of the same line, so a descent needs no extra access for a header. If
//! `first(i + 1)` is in the cell of `last(i)`, the line is flagged *inexact*: a search then ends at the
//! correct line or to its left, and steps right by comparing full keys.
//!
//! A builder may choose any base and shift that fit the codes. Ours tries several bases (phases of the cell
//! grid) until every border of the line is exact.

use crate::cache_line::{LINE_BYTES, Line};
use crate::key::Word;

/// Encoding of the separators in a spine line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Encoding {
    /// Full separators.
    Raw = 0,
    /// 16-bit codes with base and shift in the line.
    Delta16 = 1,
    /// 32-bit codes with base and shift in the line.
    Delta32 = 2,
    /// 8-bit codes with base and shift in the line.
    Delta8 = 3,
}

/// Flag of a delta line: at least one border is not separated exactly.
pub const INEXACT: u8 = 1;

impl Encoding {
    /// Returns the encoding with this code in the geometry.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Raw),
            1 => Some(Self::Delta16),
            2 => Some(Self::Delta32),
            3 => Some(Self::Delta8),
            _ => None,
        }
    }

    /// Returns the name that `inspect` prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Delta16 => "delta16",
            Self::Delta32 => "delta32",
            Self::Delta8 => "delta8",
        }
    }

    /// Returns the bytes of a separator or code.
    #[must_use]
    pub const fn code_bytes(self, key_bytes: usize) -> usize {
        match self {
            Self::Raw => key_bytes,
            Self::Delta16 => 2,
            Self::Delta32 => 4,
            Self::Delta8 => 1,
        }
    }

    /// Returns the number of separators in a full line. For words of 4, 8 and 16 bytes: 16, 8 and 4 raw, 58,
    /// 54 and 46 of 8 bits, 29, 27 and 23 of 16 bits, 14, 13 and 11 of 32 bits.
    #[must_use]
    pub const fn separators(self, key_bytes: usize) -> usize {
        match self {
            Self::Raw => LINE_BYTES / key_bytes,
            _ => (LINE_BYTES - key_bytes - 2) / self.code_bytes(key_bytes),
        }
    }
}

/// Returns the offset of the base in a delta line.
#[must_use]
pub const fn base_at(key_bytes: usize) -> usize {
    LINE_BYTES - 2 - key_bytes
}
/// Offset of the shift in a delta line.
pub const SHIFT_AT: usize = LINE_BYTES - 2;
/// Offset of the flags in a delta line.
pub const FLAGS_AT: usize = LINE_BYTES - 1;

/// Returns the largest code, which is padding.
#[must_use]
pub const fn code_max(encoding: Encoding) -> u64 {
    match encoding {
        Encoding::Raw => u64::MAX,
        Encoding::Delta16 => u16::MAX as u64,
        Encoding::Delta32 => u32::MAX as u64,
        Encoding::Delta8 => u8::MAX as u64,
    }
}

/// Returns base, shift and flags of a delta line.
#[inline]
#[must_use]
pub fn delta_header<W: Word>(line: &Line) -> (W, u32, u8) {
    (W::read(&line[base_at(W::BYTES)..]), u32::from(line[SHIFT_AT]), line[FLAGS_AT])
}

/// Returns the code with which the codes of a delta line are compared: that of the query in the line's grid.
#[inline]
#[must_use]
pub fn query_code<W: Word>(encoding: Encoding, base: W, shift: u32, query: W) -> u64 {
    if query < base {
        return 0;
    }
    query.cell(base, shift).min(code_max(encoding))
}

/// Returns the code in a slot of a delta line, widened.
#[inline]
#[must_use]
pub fn code(encoding: Encoding, line: &Line, slot: usize) -> u64 {
    match encoding {
        Encoding::Delta8 => u64::from(line[slot]),
        Encoding::Delta16 => u64::from(u16::from_le_bytes([line[slot * 2], line[slot * 2 + 1]])),
        _ => u64::from(<u32 as Word>::read(&line[slot * 4..])),
    }
}

/// Returns the separator in a slot of a raw line.
#[inline]
#[must_use]
pub fn separator<W: Word>(line: &Line, slot: usize) -> W {
    W::read(&line[slot * W::BYTES..])
}

/// Returns the child of a line to which a query belongs: the number of separators below the query. This is
/// the scalar reference for all faster versions.
#[inline]
#[must_use]
pub fn child<W: Word>(encoding: Encoding, line: &Line, query: W) -> usize {
    let slots = 0..encoding.separators(W::BYTES);
    if encoding == Encoding::Raw {
        return slots.filter(|&slot| separator::<W>(line, slot) < query).count();
    }
    let (base, shift, _) = delta_header::<W>(line);
    let wanted = query_code(encoding, base, shift, query);
    slots.filter(|&slot| code(encoding, line, slot) < wanted).count()
}

/// Reports whether a border of this line may be separated inexactly.
#[inline]
#[must_use]
pub fn is_inexact(encoding: Encoding, line: &Line) -> bool {
    encoding != Encoding::Raw && line[FLAGS_AT] & INEXACT != 0
}

/// A border between two neighbouring children: the last key of the left one and the first of the
/// right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Border<W> {
    /// Last key left of it.
    pub last: W,
    /// First key right of it.
    pub first: W,
    /// First key of the second child of the right one; `first` if that is a tuple line.
    pub second: W,
}

/// Cost of the encoding of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of borders of different keys that no separator separates.
    pub inexact: u64,
    /// Number of these whose cell reaches the second child of the right child: many queries may be in it.
    pub heavy: u64,
    /// Number of these whose code equals that of the next border though their keys differ.
    pub runs: u64,
    /// Number of lines with the [`INEXACT`] flag, which is also set for borders of equal keys: 0 or 1.
    pub flagged: u64,
}

impl Cost {
    /// Adds the cost of another line of the same level.
    pub fn add(&mut self, other: Self) {
        self.inexact += other.inexact;
        self.heavy += other.heavy;
        self.runs += other.runs;
        self.flagged += other.flagged;
    }
}

/// Number of phases of the cell grid that are tried for a line before it is flagged inexact.
pub const PHASES: u64 = 64;

/// Writes one spine line over the given borders, and returns its cost.
///
/// Borders of equal keys are also flagged inexact when a cell is wider than one key, since the next different
/// key is not known here. They do not count as inexact in the [`Cost`].
///
/// # Panics
/// If there are more borders than [`Encoding::separators`].
pub fn encode<W: Word>(encoding: Encoding, borders: &[Border<W>], line: &mut Line) -> Cost {
    let slots = encoding.separators(W::BYTES);
    assert!(borders.len() <= slots, "a line has {slots} separators");
    if encoding == Encoding::Raw {
        line.fill(0xFF);
        for (slot, border) in borders.iter().enumerate() {
            border.last.write(&mut line[slot * W::BYTES..]);
        }
        return Cost::default();
    }
    line.fill(0);
    let code_bytes = encoding.code_bytes(W::BYTES);
    line[..slots * code_bytes].fill(0xFF);
    let (Some(left), Some(right)) = (borders.first(), borders.last()) else { return Cost::default() };
    let grid = Grid::choose(encoding, borders, left.last, right.last);
    let mut cost = Cost::default();
    for (slot, border) in borders.iter().enumerate() {
        let code = grid.cell(border.last);
        let at = slot * code_bytes;
        line[at..at + code_bytes].copy_from_slice(&code.to_le_bytes()[..code_bytes]);
        if !grid.parts(border) {
            cost.flagged = 1;
            if border.last != border.first {
                cost.inexact += 1;
                cost.heavy += u64::from(border.second == border.first || grid.cell(border.second) == code);
                let next = borders.get(slot + 1).map(|next| next.last);
                cost.runs +=
                    u64::from(next.is_some_and(|next| next != border.last && grid.cell(next) == code));
            }
        }
    }
    grid.base.write(&mut line[base_at(W::BYTES)..]);
    line[SHIFT_AT] = grid.shift as u8;
    line[FLAGS_AT] = if cost.flagged != 0 { INEXACT } else { 0 };
    cost
}

/// A grid of cells: its base, and the binary logarithm of the cells' width.
#[derive(Clone, Copy)]
struct Grid<W> {
    base: W,
    shift: u32,
}

impl<W: Word> Grid<W> {
    #[inline(always)]
    fn cell(self, key: W) -> u64 {
        key.cell(self.base, self.shift)
    }

    #[inline(always)]
    fn parts(self, border: &Border<W>) -> bool {
        self.shift == 0 || self.cell(border.first) > self.cell(border.last)
    }

    /// Chooses the narrowest cells that fit, and the first phase in which the most borders are exact.
    fn choose(encoding: Encoding, borders: &[Border<W>], left: W, right: W) -> Self {
        let code_last = code_max(encoding) - 1;
        let mut shift = (right - left).bit_length().saturating_sub(u64::BITS - code_last.leading_zeros());
        if right.cell(left, shift) > code_last {
            shift += 1;
        }
        let mut best = Self { base: left, shift };
        if shift == 0 {
            return best;
        }
        let failing = |grid: Self| borders.iter().filter(|border| !grid.parts(border)).count();
        let mut fewest = failing(best);
        let phases = if shift < PHASES.ilog2() { 1 << shift } else { PHASES };
        for phase in 1..phases {
            if fewest == 0 {
                break;
            }
            let Some(base) = left.step_back(shift, PHASES, phase) else { break };
            let grid = Self { base, shift };
            if grid.cell(right) > code_last {
                break;
            }
            let fails = failing(grid);
            if fails < fewest {
                (best, fewest) = (grid, fails);
            }
        }
        best
    }
}

/// Reports whether a level may use an encoding. This is the only place of the cost rule.
///
/// A query in the cell of an inexact border is led to the left of the border. It reaches the last tuple line
/// before the border and steps right, by a line or two. So the number of queries in such cells matters.
///
/// On the bottom level a cell covers a large part of a tuple line: one border in 64 may be inexact. Above it,
/// a cell that ends before the second child of the right child is *light*: it covers less than about 1/700 of
/// the keys under the line, and any number of borders may be light. Runs of equal codes are rejected, because
/// each equal code leads the search one more child away.
///
/// Words of 16 bytes and masked words (of byte keys) are *uneven*: full words leave four separators per line,
/// and kept bits use only part of their range (digits use 10 of 16 values). For these, one border in 8 may be
/// heavy, and one in 64 may begin a run, which a search leaves by doubling steps and bisection.
#[must_use]
pub fn acceptable(uneven: bool, borders: u64, cost: Cost) -> bool {
    if uneven {
        return cost.runs <= borders / 64 && cost.heavy <= borders / 8;
    }
    cost.runs == 0 && cost.heavy <= borders / 64
}

/// Number of whole lines at the start of the bottom level that must be [`acceptable`] with 8-bit codes before
/// the level is tried with them. These codes are useful for dense keys, and a trial is expensive.
pub const TRIAL_LINES: usize = 4;

/// Returns the encodings that a level tries, widest fanout first; the last one always succeeds. For keys of
/// four bytes, 32-bit codes save nothing.
#[must_use]
pub const fn candidates(key_bytes: usize) -> &'static [Encoding] {
    match key_bytes {
        4 => &[Encoding::Delta8, Encoding::Delta16, Encoding::Raw],
        _ => &[Encoding::Delta8, Encoding::Delta16, Encoding::Delta32, Encoding::Raw],
    }
}
