//! Merge of a base with effects, on all threads, if keys are words and values are bits in the lines.
//!
//! The base is read in windows of whole sum blocks. The last key of a window is known, so every window can be
//! merged by itself: it drops its tuples of cleared keys, and inserts the values of keys between the last key
//! of the window before it and its own last key. Values that belong after the tuples of its own last key are
//! left to the next window, which may have more of these tuples.
//!
//! First each window reports how many tuples it makes, then all are written to their places at once.

use super::base::{Base, Blocks};
use super::changes::Effects;
use super::stored::Stored;
use crate::error::BuildError;
use crate::pack::{KeyLane, ValueLane};
use crate::parallel;
use crate::source::{Chunk, Schema, Source, SourceError};
use pleach_format::checksum::SUM_BLOCK_BYTES;
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::Line;
use pleach_format::section::Tag;
use std::mem;
use std::ops::Range;

/// Lines per window: half a mebibyte, so that the bytes are still in the cache when they are verified.
const WINDOW_LINES: u64 = 1 << 13;
const BLOCK_LINES: u64 = (SUM_BLOCK_BYTES / LINE_BYTES) as u64;

/// Some consecutive lines of the base.
#[derive(Default)]
struct Window {
    lines: Vec<Line>,
    tuples: usize,
}

impl Window {
    fn key<W: KeyLane>(&self, stored: &Stored<W>, at: usize) -> W {
        let n = stored.per_line();
        stored.key(&self.lines[at / n], at % n)
    }

    /// Returns the first tuple from `from` on whose key is not below (with `behind`: is above) `key`. It is
    /// usually near, so the search takes doubling steps and then bisects.
    fn find<W: KeyLane>(&self, stored: &Stored<W>, from: usize, key: W, behind: bool) -> usize {
        let passed = |at: usize| {
            let here = self.key(stored, at);
            here < key || (behind && here == key)
        };
        let (mut low, mut high, mut step) = (from, from, 1);
        while high < self.tuples && passed(high) {
            low = high + 1;
            high = high.saturating_add(step).min(self.tuples);
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if passed(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A run of base tuples, and the effect whose values follow it.
struct Segment {
    run: Range<usize>,
    effect: Option<usize>,
}

/// Result of merging a window.
#[derive(Default)]
struct Merged {
    segments: Vec<Segment>,
    tuples: usize,
}

/// Merge of a base with effects; without effects it yields the tuples of the base.
pub(crate) struct WordMerge<'a, W, B> {
    base: &'a Base,
    blocks: Blocks<'a>,
    stored: Stored<W>,
    schema: Schema,
    effects: Effects<W, B>,
    /// Number of lines read so far.
    next: u64,
    /// Last key of the base that was yielded.
    last: Option<W>,
    started: bool,
    windows: Vec<Window>,
}

impl<'a, W: KeyLane, B: ValueLane> WordMerge<'a, W, B> {
    pub(crate) fn new(base: &'a Base, schema: Schema, effects: Effects<W, B>) -> Result<Self, BuildError> {
        let lines = base.section(Tag::LINE)?;
        let blocks = lines.ok_or_else(|| base.damaged(Tag::LINE, base.header.lines_offset))?;
        let stored = Stored::new(&base.header);
        Ok(Self {
            base,
            blocks,
            stored,
            schema,
            effects,
            next: 0,
            last: None,
            started: false,
            windows: Vec::new(),
        })
    }

    pub(crate) fn effects(&self) -> &Effects<W, B> {
        &self.effects
    }

    /// Leaves out tuples before `rank`, as far as blocks have no others, and returns the first rank that is
    /// left. Only for merges without effects, before the first read.
    pub(crate) fn start_at(&mut self, rank: u64) -> u64 {
        let per_block = self.stored.per_line() as u64 * BLOCK_LINES;
        let block = rank.min(self.base.header.tuples) / per_block;
        self.next = (block * BLOCK_LINES).min(self.base.header.lines);
        self.started = self.next > 0;
        block * per_block
    }

    /// Reads the lines from `first` on, and leaves out lost blocks.
    fn read(&self, first: u64, window: &mut Window) -> Result<(), BuildError> {
        let n = self.stored.per_line();
        let (header, geometry) = (&self.base.header, self.base.header.geometry);
        let end = (first + WINDOW_LINES).min(header.lines);
        // The sum of a block covers the padding after the last line, too.
        let bytes = (end - first) as usize * LINE_BYTES;
        let extent = self.blocks.section.extent() - first * LINE_BYTES as u64;
        let whole = (bytes.next_multiple_of(SUM_BLOCK_BYTES) as u64).min(extent) as usize;
        window.lines.resize(whole / LINE_BYTES, [0; LINE_BYTES]);
        let bad = self.blocks.read(first / BLOCK_LINES, window.lines.as_flattened_mut())?;
        window.lines.truncate((end - first) as usize);
        window.tuples = (end - first - 1) as usize * n + geometry.tuples_in_line(end - 1, header.tuples);
        for &block in bad.iter().rev() {
            let from = block * BLOCK_LINES - first;
            let to = (from + BLOCK_LINES).min(window.lines.len() as u64);
            let is_last = to == window.lines.len() as u64;
            let kept = if is_last { from as usize * n } else { window.tuples - (to - from) as usize * n };
            let from_rank = (first + from) * n as u64;
            self.base.lose(from_rank..from_rank + (window.tuples - kept) as u64);
            window.tuples = kept;
            window.lines.drain(from as usize..to as usize);
        }
        Ok(())
    }

    /// Merges a window between the last key before it and its own last key.
    fn merge(&self, window: &Window, before: Option<W>, is_last: bool) -> Merged {
        let list = &self.effects.list;
        let end = window.tuples.checked_sub(1).map(|at| window.key(&self.stored, at));
        // Effects of the last key before may still have tuples to drop and values to insert.
        let start = before.map_or(0, |before| list.partition_point(|effect| effect.key < before));
        let mut merged = Merged::default();
        let (mut from, mut at) = (0, 0);
        for (number, effect) in list.iter().enumerate().skip(start) {
            if !is_last && end.is_none_or(|end| effect.key > end) {
                break;
            }
            let low = window.find(&self.stored, at, effect.key, false);
            let high = window.find(&self.stored, low, effect.key, true);
            effect.find(high - low);
            let leaves = effect.count > 0 && (is_last || end.is_some_and(|end| effect.key < end));
            at = high;
            if !(leaves || effect.clears && high > low) {
                continue;
            }
            let run = from..if effect.clears { low } else { high };
            merged.tuples += run.len() + if leaves { effect.count } else { 0 };
            merged.segments.push(Segment { run, effect: leaves.then_some(number) });
            from = high;
        }
        let run = from..window.tuples;
        merged.tuples += run.len();
        merged.segments.push(Segment { run, effect: None });
        merged
    }

    /// Writes the result of merging a window.
    fn write(&self, window: &Window, merged: &Merged, keys: &mut [W], values: &mut [B]) {
        let mut to = 0;
        for segment in &merged.segments {
            let count = segment.run.len();
            self.stored.unpack(
                &window.lines,
                segment.run.clone(),
                &mut keys[to..to + count],
                &mut values[to..to + count],
            );
            to += count;
            if let Some(effect) = segment.effect.map(|number| &self.effects.list[number]) {
                keys[to..to + effect.count].fill(effect.key);
                let come = &self.effects.values[effect.first..][..effect.count];
                values[to..to + effect.count].copy_from_slice(come);
                to += effect.count;
            }
        }
    }

    fn fill(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), BuildError> {
        let n = self.stored.per_line();
        let lines = self.base.header.lines;
        let mut keys = W::take(&mut chunk.keys);
        let mut values = B::take(&mut chunk.values);
        keys.clear();
        values.clear();
        let at_once = (tuples_max as u64 / n as u64).div_ceil(WINDOW_LINES).max(1);
        // If everything here was lost or cleared, the base is not at its end yet.
        while keys.is_empty() && (self.next < lines || !self.started) {
            self.started = true;
            let count = (lines - self.next).div_ceil(WINDOW_LINES).min(at_once);
            let mut windows = mem::take(&mut self.windows);
            // Without lines there is one empty window, which inserts all values.
            windows.resize_with(count.max(1) as usize, Window::default);
            let first = self.next;
            let this = &*self;
            if count > 0 {
                parallel::try_jobs(windows.iter_mut().enumerate(), |(at, window)| {
                    this.read(first + at as u64 * WINDOW_LINES, window)
                })?;
            } else {
                windows[0].tuples = 0;
            }
            self.next = (first + count * WINDOW_LINES).min(lines);
            let ended = self.next == lines;
            let mut before = self.last;
            let befores: Vec<Option<W>> = windows
                .iter()
                .map(|window| {
                    let this = before;
                    before = window.tuples.checked_sub(1).map(|at| window.key(&self.stored, at)).or(before);
                    this
                })
                .collect();
            self.last = before;
            let this = &*self;
            let last = windows.len() - 1;
            let merge = |at: usize| this.merge(&windows[at], befores[at], ended && at == last);
            let merged = parallel::map(windows.len(), merge);
            let tuples = merged.iter().map(|merged| merged.tuples).sum();
            keys.resize(tuples, W::default());
            values.resize(tuples, B::default());
            let mut jobs = Vec::with_capacity(windows.len());
            let (mut keys_left, mut values_left) = (&mut keys[..], &mut values[..]);
            for (window, merged) in windows.iter().zip(&merged) {
                let (keys, rest) = keys_left.split_at_mut(merged.tuples);
                keys_left = rest;
                let (values, rest) = values_left.split_at_mut(merged.tuples);
                values_left = rest;
                jobs.push((window, merged, keys, values));
            }
            parallel::jobs(jobs, |(window, merged, keys, values)| this.write(window, merged, keys, values));
            self.windows = windows;
        }
        chunk.ops.clear();
        chunk.keys = W::give(keys);
        chunk.values = B::give(values);
        Ok(())
    }
}

impl<W: KeyLane, B: ValueLane> Source for WordMerge<'_, W, B> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        self.fill(chunk, tuples_max).map_err(super::passing::source_error)
    }

    fn progress(&self) -> (u64, Option<u64>) {
        let n = self.stored.per_line() as u64;
        let tuples = self.base.header.tuples;
        ((self.next * n).min(tuples), Some(tuples))
    }
}
