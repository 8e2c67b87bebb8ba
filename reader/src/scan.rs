//! Tuples of consecutive ranks in bulk: copied into the caller's columns, or passed to a closure line by
//! line.
//!
//! An iterator returns one tuple at a time, with its checks and its place in the line. That is about as much
//! work as the tuple's bytes take to arrive from memory. Here, loops without branches split whole lines of a
//! fixed number of tuples, and compile to vector moves. A closure gets each line's tuples as they are split:
//! once it is inlined, they go from the line to its sums through registers.
//!
//! (Pieces of 512 tuples, copied to the first cache before they were passed on, took a quarter longer: while
//! a piece is read, no load is in flight.)
//!
//! The lines come from the plan, whose indices are clamped. On damaged bytes the tuples may be wrong, but
//! their number is the one requested, and nothing outside the file is read.

use crate::error::ReadError;
use crate::fetch::FETCH_RANGE_BYTES;
use crate::search::plan::Lines;
use crate::typed::Typed;
use pleach_format::key::{Bits, Word};
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::Line;
use pleach_format::{Key, LineGeometry, Short, Value};
use std::marker::PhantomData;
use std::ops::{Range, RangeBounds};

/// Lines that are verified at a time: 8 KiB.
const PIECE_LINES: u64 = 128;
/// Maximum number of tuples per line: keys of 4 bytes without values.
const TUPLES_MAX: usize = 16;
/// Prefetch distance in lines. The hardware prefetches by itself inside a page of 4 KiB, and starts anew in
/// each page: a distance of 24 KiB was a fifth faster than none, and 2 KiB gained half of that.
const LINES_AHEAD: usize = 384;

/// Makes keys of the words in lines.
trait Words<K: Key>: Copy {
    /// The words, as they are in the lines.
    type Stored: Word;
    /// Returns the key of a word.
    fn key(self, word: Self::Stored) -> K;
}

/// Words of the key type.
#[derive(Clone, Copy)]
struct Full;

impl<K: Key> Words<K> for Full {
    type Stored = K::Word;
    #[inline(always)]
    fn key(self, word: K::Word) -> K {
        K::decode(word)
    }
}

/// Short words of type `S`.
#[derive(Clone, Copy)]
struct Shorter<'a, S>(&'a Short, PhantomData<S>);

impl<K: Key, S: Word> Words<K> for Shorter<'_, S> {
    type Stored = S;
    #[inline(always)]
    fn key(self, word: S) -> K {
        K::decode(self.0.key(word.low_u64()))
    }
}

/// Evaluates an expression with the words of a file.
macro_rules! with_words {
    ($short:expr, $words:ident => $body:expr) => {
        match $short {
            None => {
                let $words = Full;
                $body
            }
            Some(short) if short.word_bytes() == 4 => {
                let $words = Shorter(short, PhantomData::<u32>);
                $body
            }
            Some(short) => {
                let $words = Shorter(short, PhantomData::<u64>);
                $body
            }
        }
    };
}

/// Splits one line of `N` tuples into keys and values; nothing is written for values of no bytes.
#[inline(always)]
fn whole_line<K: Key, V: Value, W: Words<K>, const N: usize>(
    words: W,
    line: &Line,
    values_at: usize,
    keys: &mut [K; N],
    values: Option<&mut [V; N]>,
) {
    // All is read before anything is written, so the compiler need not assume aliasing.
    let from = &line[..N * W::Stored::BYTES];
    *keys = std::array::from_fn(|slot| words.key(W::Stored::read(&from[slot * W::Stored::BYTES..])));
    if let Some(values) = values {
        let from = &line[values_at..][..N * V::Bits::BYTES];
        *values = std::array::from_fn(|slot| V::from_bits(V::Bits::read(&from[slot * V::Bits::BYTES..])));
    }
}

/// Splits `keys.len() / N` lines, from `first` on. `values` is as long as `keys`, or empty for values of no
/// bytes.
fn whole_lines<K: Key, V: Value, W: Words<K>, const N: usize>(
    words: W,
    lines: &Lines<'_>,
    first: usize,
    values_at: usize,
    keys: &mut [K],
    values: &mut [V],
) {
    let (keys, _) = keys.as_chunks_mut::<N>();
    if V::Bits::BYTES == 0 {
        for (number, keys) in keys.iter_mut().enumerate() {
            lines.prefetch(first + number + LINES_AHEAD);
            whole_line::<K, V, W, N>(words, lines.at(first + number), values_at, keys, None);
        }
        return;
    }
    let (values, _) = values.as_chunks_mut::<N>();
    for (number, (keys, values)) in keys.iter_mut().zip(values).enumerate() {
        lines.prefetch(first + number + LINES_AHEAD);
        whole_line(words, lines.at(first + number), values_at, keys, Some(values));
    }
}

/// Layout of tuples in lines.
#[derive(Clone, Copy)]
struct Slots<W> {
    words: W,
    tuples_per_line: usize,
    values_at: usize,
}

impl<W> Slots<W> {
    fn new(words: W, geometry: LineGeometry) -> Self {
        Self { words, tuples_per_line: geometry.tuples_per_line(), values_at: geometry.values_at() }
    }

    /// Splits `keys.len()` tuples of one line, from `slot` on.
    fn some<K: Key, V: Value>(self, line: &Line, slot: usize, keys: &mut [K], values: &mut [V])
    where
        W: Words<K>,
    {
        let count = keys.len();
        for (slot, key) in (slot..).zip(keys) {
            *key = self.words.key(W::Stored::read(&line[slot * W::Stored::BYTES..]));
        }
        if V::Bits::BYTES != 0 {
            for (slot, value) in (slot..).zip(values).take(count) {
                *value = V::from_bits(V::Bits::read(&line[self.values_at + slot * V::Bits::BYTES..]));
            }
        }
    }

    /// Splits consecutive tuples, from slot `slot` of line `line` on. `values` is as long as `keys`, or empty
    /// for values of no bytes.
    fn copy<K: Key, V: Value>(
        self,
        lines: &Lines<'_>,
        (line, slot): (usize, usize),
        keys: &mut [K],
        values: &mut [V],
    ) where
        W: Words<K>,
    {
        let n = self.tuples_per_line;
        let head = if slot == 0 { 0 } else { (n - slot).min(keys.len()) };
        let (keys_head, keys) = keys.split_at_mut(head);
        let (values_head, values) = values.split_at_mut(head.min(values.len()));
        self.some(lines.at(line), slot, keys_head, values_head);
        let line = line + usize::from(slot != 0);
        let whole = keys.len() / n * n;
        let (keys, keys_tail) = keys.split_at_mut(whole);
        let (values, values_tail) = values.split_at_mut(whole.min(values.len()));
        match n {
            4 => whole_lines::<K, V, W, 4>(self.words, lines, line, self.values_at, keys, values),
            5 => whole_lines::<K, V, W, 5>(self.words, lines, line, self.values_at, keys, values),
            8 => whole_lines::<K, V, W, 8>(self.words, lines, line, self.values_at, keys, values),
            16 => whole_lines::<K, V, W, 16>(self.words, lines, line, self.values_at, keys, values),
            _ => {
                for (number, keys) in keys.chunks_mut(n).enumerate() {
                    let from = (number * n).min(values.len());
                    self.some(lines.at(line + number), 0, keys, &mut values[from..]);
                }
            }
        }
        if !keys_tail.is_empty() {
            self.some(lines.at(line + whole / n), 0, keys_tail, values_tail);
        }
    }

    /// Passes `count` tuples, from slot `slot` of line `line` on, to `take`, line by line. Stops if
    /// `is_whole` returns false after a line was read, since a lost mapping yields zeros instead of tuples.
    /// Returns true if all tuples were passed.
    #[inline(always)]
    fn hand_over<K: Key, V: Value>(
        self,
        lines: &Lines<'_>,
        (line, slot): (usize, usize),
        count: usize,
        is_whole: impl Fn() -> bool + Copy,
        take: &mut impl FnMut(&[K], &[V]),
    ) -> bool
    where
        W: Words<K>,
    {
        let n = self.tuples_per_line;
        let head = if slot == 0 { 0 } else { (n - slot).min(count) };
        if !self.hand_over_some(lines.at(line), slot, head, is_whole, take) {
            return false;
        }
        let line = line + usize::from(slot != 0);
        let whole = (count - head) / n;
        let tail = (count - head) % n;
        let all = match n {
            4 => self.hand_over_whole::<K, V, 4>(lines, line, whole, is_whole, take),
            5 => self.hand_over_whole::<K, V, 5>(lines, line, whole, is_whole, take),
            8 => self.hand_over_whole::<K, V, 8>(lines, line, whole, is_whole, take),
            16 => self.hand_over_whole::<K, V, 16>(lines, line, whole, is_whole, take),
            _ => (line..line + whole).all(|line| self.hand_over_some(lines.at(line), 0, n, is_whole, take)),
        };
        all && self.hand_over_some(lines.at(line + whole), 0, tail, is_whole, take)
    }

    /// Passes `count` tuples of one line to `take`, if `count` is not 0.
    fn hand_over_some<K: Key, V: Value>(
        self,
        line: &Line,
        slot: usize,
        count: usize,
        is_whole: impl Fn() -> bool,
        take: &mut impl FnMut(&[K], &[V]),
    ) -> bool
    where
        W: Words<K>,
    {
        let (mut keys, mut values) = ([K::default(); TUPLES_MAX], [V::default(); TUPLES_MAX]);
        let (keys, values) = (&mut keys[..count], &mut values[..count]);
        self.some(line, slot, keys, values);
        if count > 0 {
            if !is_whole() {
                return false;
            }
            take(keys, if V::Bits::BYTES == 0 { &[] } else { values });
        }
        true
    }

    /// Passes `count` whole lines of `N` tuples to `take`.
    #[inline(always)]
    fn hand_over_whole<K: Key, V: Value, const N: usize>(
        self,
        lines: &Lines<'_>,
        first: usize,
        count: usize,
        is_whole: impl Fn() -> bool,
        take: &mut impl FnMut(&[K], &[V]),
    ) -> bool
    where
        W: Words<K>,
    {
        for line in first..first + count {
            let (mut keys, mut values) = ([K::default(); N], [V::default(); N]);
            if V::Bits::BYTES == 0 {
                whole_line::<K, V, W, N>(self.words, lines.at(line), self.values_at, &mut keys, None);
            } else {
                whole_line(self.words, lines.at(line), self.values_at, &mut keys, Some(&mut values));
            }
            if !is_whole() {
                return false;
            }
            take(&keys, if V::Bits::BYTES == 0 { &[] } else { &values });
        }
        true
    }
}

impl<K: Key, V: Value> Typed<'_, K, V> {
    /// Copies consecutive tuples from `rank` on into the buffers, and returns their number.
    ///
    /// Copies as many as the shorter buffer holds (for `V = ()` only `keys` counts), at memory speed.
    /// O(tuples copied).
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped. The contents of the buffers
    /// are then meaningless.
    pub fn copy_range(&self, rank: u64, keys: &mut [K], values: &mut [V]) -> Result<usize, ReadError> {
        let has_values = V::Bits::BYTES != 0;
        let capacity = if has_values { keys.len().min(values.len()) } else { keys.len() };
        let count = usize::try_from(self.len().saturating_sub(rank)).unwrap_or(usize::MAX).min(capacity);
        let Some(plan) = self.plan().filter(|_| count > 0) else { return Ok(0) };
        let header = self.index().header();
        let geometry = header.geometry;
        let (first, slot) = geometry.place(rank);
        if let Some(verified) = self.index().verified() {
            let (last, _) = geometry.place(rank + count as u64 - 1);
            verified.check_range(header.line_offset(first), (last - first + 1) * LINE_BYTES as u64)?;
        }
        let line = usize::try_from(first).unwrap_or(usize::MAX);
        let (keys, values) = (&mut keys[..count], if has_values { &mut values[..count] } else { &mut [] });
        with_words!(&header.short, words => {
            Slots::new(words, geometry).copy(&plan.tuple_lines, (line, slot), keys, values);
        });
        self.index().check_mapping()?;
        Ok(count)
    }

    /// Passes the tuples of a range of ranks to `take`, in order and line by line: columns of up to 16 keys
    /// and as many values (none for values of no bytes). The range is cut at [`Typed::len`]. Returns the
    /// number of tuples.
    ///
    /// This is the fastest way to read many tuples once; use [`Typed::copy_range`] to keep them. Threads
    /// share a scan by splitting the ranks.
    ///
    /// ```
    /// # let bytes = pleach::Builder::new().to_bytes((0..100u64).map(|key| (key, 2u64)))?;
    /// let orders: pleach::Map<u64, u64> = pleach::Map::from_bytes(bytes)?;
    /// let mut sum = 0u64;
    /// orders.typed().scan(10..30, |_, values| sum += values.iter().sum::<u64>())?;
    /// assert_eq!(sum, 40);
    /// # Ok::<(), pleach::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Typed::copy_range`]. Only tuples before the error were passed to `take`, and all of them
    /// are those of the file: each line is checked to be whole before it is passed on.
    pub fn scan(&self, ranks: Range<u64>, take: impl FnMut(&[K], &[V])) -> Result<u64, ReadError> {
        with_words!(&self.index().header().short, words => self.scan_words(words, ranks, take))
    }

    fn scan_words<W: Words<K>>(
        &self,
        words: W,
        ranks: Range<u64>,
        mut take: impl FnMut(&[K], &[V]),
    ) -> Result<u64, ReadError> {
        let end = ranks.end.min(self.len());
        let start = ranks.start.min(end);
        let Some(plan) = self.plan().filter(|_| start < end) else { return Ok(0) };
        let header = self.index().header();
        let geometry = header.geometry;
        let slots = Slots::new(words, geometry);
        let n = slots.tuples_per_line as u64;
        let watch = self.index().watch();
        let is_whole = || watch.is_none_or(|watch| !watch.is_lost());
        let mut rank = start;
        while rank < end {
            let (first, slot) = geometry.place(rank);
            // A piece ends at the end of a line, except the last one.
            let piece = end.min((first + PIECE_LINES) * n) - rank;
            if let Some(verified) = self.index().verified() {
                let (last, _) = geometry.place(rank + piece - 1);
                let after = header.line_offset(geometry.place(end - 1).0 + 1);
                let bytes = header.line_offset(first)..header.line_offset(last + 1);
                // Blocks of a remote file come ahead.
                verified
                    .check_ahead(bytes.end - 1, bytes.start..after.min(bytes.start + FETCH_RANGE_BYTES))?;
                verified.check_range(bytes.start, bytes.end - bytes.start)?;
            }
            let line = usize::try_from(first).unwrap_or(usize::MAX);
            if !slots.hand_over(&plan.tuple_lines, (line, slot), piece as usize, is_whole, &mut take) {
                return Err(ReadError::MappingLost);
            }
            rank += piece;
        }
        Ok(end - start)
    }

    /// Runs [`Typed::scan`] for the tuples whose keys are in a range: two descents and the tuples.
    ///
    /// # Errors
    /// Those of [`Typed::scan`].
    pub fn scan_range(
        &self,
        keys: impl RangeBounds<K>,
        take: impl FnMut(&[K], &[V]),
    ) -> Result<u64, ReadError> {
        self.scan(self.rank_range(&keys)?, take)
    }
}
