//! Searches for the words of keys, in files whose words are those of the key type or shorter.
//!
//! A view searches for the words of its key type. If the file has short words ([`pleach_format::short`]), each
//! batch is translated a piece at a time, without branches, while it is in the first cache. A query without a
//! short word is no key of the file. It is searched for by some other word, and its answer is taken back. Where
//! the answer is a rank, that word keeps the order of queries.

use crate::arch::Isa;
use crate::search::descent::{GROUP, Hit};
use crate::search::engine::{Engine, engine};
use crate::search::neighbors::{Side, Tuples};
use crate::search::output::{Hits, Presence, PutHits, Ranks, Values};
use crate::search::plan::Plan;
use pleach_format::Short;
use pleach_format::key::{Bits, Word};
use pleach_format::line;
use pleach_format::short::Seek;
use std::ops::Range;

/// Queries that are translated at a time; a multiple of 64.
pub(crate) const PIECE: usize = 2048;

/// Searches for keys alone, for each width of the file's values.
#[derive(Clone, Copy)]
enum KeyEngine<W> {
    Zero(Engine<W, ()>),
    Four(Engine<W, u32>),
    Eight(Engine<W, u64>),
}

macro_rules! any_width {
    ($self:expr, $engine:ident => $call:expr) => {
        match $self {
            KeyEngine::Zero($engine) => $call,
            KeyEngine::Four($engine) => $call,
            KeyEngine::Eight($engine) => $call,
        }
    };
}

impl<W: Word> KeyEngine<W> {
    fn new(value_bytes: usize, isa: Isa) -> Self {
        match value_bytes {
            0 => Self::Zero(engine(isa)),
            4 => Self::Four(engine(isa)),
            _ => Self::Eight(engine(isa)),
        }
    }
    #[inline]
    fn locate<B: Bits>(&self, plan: &Plan<'_>, query: W) -> Hit<B> {
        any_width!(self, engine => bare(engine.locate(plan, query)))
    }
    /// Yields hits without their values.
    fn hits<B: Bits>(&self, plan: &Plan<'_>, queries: &[W], put: &mut PutHits<'_, B>) {
        any_width!(self, engine => {
            let mut bared = [Hit::default(); GROUP];
            engine.hits(plan, queries, W::default(), &mut Hits(&mut |first, hits| {
                bared.iter_mut().zip(hits).for_each(|(to, &hit)| *to = bare(hit));
                put(first, &bared[..hits.len()]);
            }));
        });
    }
}

impl<'a, W: Word, B: Bits> Tuples<'a, W, B> {
    /// Makes the tuple of a query the last one of the file; returns 1 if it had none.
    #[cold]
    fn put_last(&mut self, plan: &Plan<'_>, at: usize, short: Option<&Short>) -> usize {
        let geometry = &plan.header.geometry;
        let rank = plan.tuples - 1;
        let (line, slot) = geometry.place(rank);
        let line = plan.tuple_lines.at(line as usize);
        self.ranks.get_mut(at).into_iter().for_each(|to| *to = rank);
        if let Some(word) = self.words.get_mut(at) {
            *word = line::whole_key::<W>(line, short, slot);
        }
        if let Some(value) = self.values.get_mut(at) {
            let start = geometry.values_at() + slot * B::BYTES;
            *value = B::read(&line[start..]);
        }
        self.put_bit(at, true)
    }

    /// Removes the tuple of a query; returns 1 if it had one.
    #[cold]
    fn remove(&mut self, at: usize) -> usize {
        self.ranks.get_mut(at).into_iter().for_each(|to| *to = u64::MAX);
        self.words.get_mut(at).into_iter().for_each(|to| *to = W::default());
        self.values.get_mut(at).into_iter().for_each(|to| *to = B::default());
        self.put_bit(at, false)
    }

    /// Writes the bit of a query; returns 1 if it was another one.
    fn put_bit(&mut self, at: usize, bit: bool) -> usize {
        let Some(word) = self.present.get_mut(at / 64) else { return 0 };
        let old = *word >> (at % 64) & 1 != 0;
        *word = *word & !(1 << (at % 64)) | u64::from(bit) << (at % 64);
        usize::from(old != bit)
    }

    /// Borrows the buffers of some queries, from a multiple of 64 on.
    fn part(&mut self, queries: Range<usize>) -> Tuples<'_, W, B> {
        fn cut<T>(buffer: &mut [T], range: Range<usize>) -> &mut [T] {
            buffer.get_mut(range).unwrap_or_default()
        }
        Tuples {
            ranks: cut(self.ranks, queries.clone()),
            words: cut(self.words, queries.clone()),
            values: cut(self.values, queries.clone()),
            present: cut(self.present, queries.start / 64..queries.end.div_ceil(64)),
        }
    }
}

/// Returns a hit without its value.
fn bare<A, B: Bits>(hit: Hit<A>) -> Hit<B> {
    Hit { rank: hit.rank, found: hit.found, value: B::default() }
}

/// Searches in lines of words `W`.
#[derive(Clone, Copy)]
pub(crate) struct Stored<W, B> {
    keys: KeyEngine<W>,
    /// Present only if the file's values have the width of `B`.
    values: Option<Engine<W, B>>,
}

impl<W: Word, B: Bits> Stored<W, B> {
    fn new(value_bytes: usize, isa: Isa) -> Self {
        Self {
            keys: KeyEngine::new(value_bytes, isa),
            values: (B::BYTES == value_bytes).then(|| engine(isa)),
        }
    }

    #[inline]
    fn locate(&self, plan: &Plan<'_>, query: W) -> Hit<B> {
        match &self.values {
            Some(engine) => engine.locate(plan, query),
            None => self.keys.locate(plan, query),
        }
    }

    fn hits(&self, plan: &Plan<'_>, queries: &[W], put: &mut PutHits<'_, B>) {
        match &self.values {
            Some(engine) => engine.hits(plan, queries, W::default(), &mut Hits(put)),
            None => self.keys.hits(plan, queries, put),
        }
    }

    /// Writes values, if there are any of this width, and presence; returns the number of keys found.
    fn values(&self, plan: &Plan<'_>, queries: &[W], flip: W, values: &mut [B], bitmap: &mut [u64]) -> usize {
        let Some(engine) = &self.values else { return self.presence(plan, queries, flip, bitmap) };
        let mut output = Values { values, presence: Presence { bitmap, found: 0 } };
        engine.values(plan, queries, flip, &mut output);
        output.presence.found
    }

    fn presence(&self, plan: &Plan<'_>, queries: &[W], flip: W, bitmap: &mut [u64]) -> usize {
        let mut output = Presence { bitmap, found: 0 };
        any_width!(&self.keys, engine => engine.presence(plan, queries, flip, &mut output));
        output.found
    }

    fn ranks(&self, plan: &Plan<'_>, queries: &[W], flip: W, ranks: &mut [u64]) {
        any_width!(&self.keys, engine => engine.ranks(plan, queries, flip, &mut Ranks(ranks)));
    }

    /// Writes neighbours, and returns their number.
    fn neighbors(
        &self,
        plan: &Plan<'_>,
        queries: &[W],
        flip: W,
        side: Side,
        tuples: Tuples<'_, W, B>,
    ) -> usize {
        match &self.values {
            Some(engine) => engine.neighbors(plan, queries, flip, side, tuples),
            None => {
                let Tuples { ranks, words, present, .. } = tuples;
                any_width!(&self.keys, engine => {
                    let tuples = Tuples { ranks, words, values: &mut [], present };
                    engine.neighbors(plan, queries, flip, side, tuples)
                })
            }
        }
    }
}

/// Searches for words `W` of keys, by the width of the file's words.
#[derive(Clone, Copy)]
pub(crate) enum Searches<'a, W, B> {
    Full(Stored<W, B>),
    Four(Translated<'a, u32, B>),
    Eight(Translated<'a, u64, B>),
}

macro_rules! any_words {
    ($self:expr, $searches:ident => $call:expr) => {
        match $self {
            Searches::Full($searches) => $call,
            Searches::Four($searches) => $call,
            Searches::Eight($searches) => $call,
        }
    };
}

impl<'a, W: Word, B: Bits> Searches<'a, W, B> {
    /// Returns the searches for a file with these short words, if it has some, and values of this width.
    pub(crate) fn new(short: Option<&'a Short>, value_bytes: usize, isa: Isa) -> Self {
        match short {
            None => Self::Full(Stored::new(value_bytes, isa)),
            Some(short) if short.word_bytes() == 4 => {
                Self::Four(Translated { stored: Stored::new(value_bytes, isa), short })
            }
            Some(short) => Self::Eight(Translated { stored: Stored::new(value_bytes, isa), short }),
        }
    }

    /// Searches for one word.
    #[inline]
    pub(crate) fn locate(&self, plan: &Plan<'_>, query: W) -> Hit<B> {
        any_words!(self, searches => searches.locate(plan, query))
    }

    /// Yields the hits of words, in order and in groups of up to [`GROUP`].
    pub(crate) fn hits(&self, plan: &Plan<'_>, queries: &[W], put: &mut PutHits<'_, B>) {
        any_words!(self, searches => searches.hits(plan, queries, put));
    }

    /// Writes values, if the file has some of this width, and presence. Each query is xor-ed with `flip`.
    /// Returns the number of keys found.
    pub(crate) fn values(
        &self,
        plan: &Plan<'_>,
        queries: &[W],
        flip: W,
        values: &mut [B],
        bitmap: &mut [u64],
    ) -> usize {
        any_words!(self, searches => searches.values(plan, queries, flip, values, bitmap))
    }

    /// Writes presence, as [`Searches::values`] does.
    pub(crate) fn presence(&self, plan: &Plan<'_>, queries: &[W], flip: W, bitmap: &mut [u64]) -> usize {
        any_words!(self, searches => searches.presence(plan, queries, flip, bitmap))
    }

    /// Writes the ranks of lower bounds. Each query is xor-ed with `flip`.
    pub(crate) fn ranks(&self, plan: &Plan<'_>, queries: &[W], flip: W, ranks: &mut [u64]) {
        any_words!(self, searches => searches.ranks(plan, queries, flip, ranks));
    }

    /// Writes the last tuple at or below each of the words, or the first one at or above it. Each query is xor-ed with
    /// `flip`. Writes no values if those of the file have another width. Returns the number of queries that have such a
    /// tuple.
    pub(crate) fn neighbors(
        &self,
        plan: &Plan<'_>,
        queries: &[W],
        flip: W,
        is_floor: bool,
        mut tuples: Tuples<'_, W, B>,
    ) -> usize {
        match self {
            Self::Full(stored) => {
                // The tuple before the lower bound of the next word is the last one at or below a word.
                let side = Side { is_next: is_floor, is_before: is_floor };
                let mut found = stored.neighbors(plan, queries, flip, side, tuples.part(0..queries.len()));
                let has_last = queries.iter().fold(false, |any, &query| any | (query ^ flip == W::MAX));
                if is_floor && has_last {
                    let is_last = |at: &usize| queries[*at] ^ flip == W::MAX;
                    for at in (0..queries.len()).filter(is_last) {
                        found += tuples.put_last(plan, at, None);
                    }
                }
                found
            }
            Self::Four(searches) => searches.neighbors(plan, queries, flip, is_floor, tuples),
            Self::Eight(searches) => searches.neighbors(plan, queries, flip, is_floor, tuples),
        }
    }

    /// Reports whether the file's values have the width of `B`.
    pub(crate) fn has_values(&self) -> bool {
        match self {
            Self::Full(stored) => stored.values.is_some(),
            Self::Four(translated) => translated.stored.values.is_some(),
            Self::Eight(translated) => translated.stored.values.is_some(),
        }
    }
}

/// Searches in lines of short words `S`, for words of the key type.
#[derive(Clone, Copy)]
pub(crate) struct Translated<'a, S, B> {
    stored: Stored<S, B>,
    short: &'a Short,
}

/// Short words of a piece, and a bit for each query that has none.
struct Piece<S> {
    words: [S; PIECE],
    gaps: [u64; PIECE / 64],
    /// False if all queries have a short word.
    has_gaps: bool,
}

impl<S: Word> Piece<S> {
    fn new() -> Self {
        Self { words: [S::default(); PIECE], gaps: [0; PIECE / 64], has_gaps: false }
    }

    /// Translates queries, each xor-ed with `flip`, and returns their short words.
    ///
    /// A query without a short word gets some other word. With `in_order` that word keeps the order of queries, as
    /// ranks need it; and also if all queries ascend, so that they can still be swept.
    #[inline]
    fn translate<W: Word>(&mut self, short: &Short, queries: &[W], flip: W, in_order: bool) -> &[S] {
        let mut fault = W::default();
        for (to, &query) in self.words.iter_mut().zip(queries) {
            let key = query ^ flip;
            let word = short.kept(key);
            fault = fault | short.fault(key, word);
            *to = S::from_u64(word);
        }
        self.has_gaps = fault != W::default();
        if self.has_gaps {
            self.mark(short, queries, flip);
            if in_order || queries.is_sorted_by_key(|&query| query ^ flip) {
                self.settle(short, queries, flip);
            }
        }
        &self.words[..queries.len()]
    }

    /// Marks the queries without a short word. Without a branch: where some are absent, many may be.
    fn mark<W: Word>(&mut self, short: &Short, queries: &[W], flip: W) {
        self.gaps.fill(0);
        for (at, (word, &query)) in self.words.iter().zip(queries).enumerate() {
            let is_gap = short.fault(query ^ flip, word.low_u64()) != W::default();
            self.gaps[at / 64] |= u64::from(is_gap) << (at % 64);
        }
    }

    /// Gives the marked queries words that keep the order of all.
    #[cold]
    fn settle<W: Word>(&mut self, short: &Short, queries: &[W], flip: W) {
        let Self { words, gaps, .. } = self;
        each_bit(gaps, |at| words[at] = S::from_u64(short.word(queries[at] ^ flip).0));
    }

    /// Passes the number of each query without a short word to `take`.
    fn each_gap(&self, take: impl FnMut(usize)) {
        if self.has_gaps {
            each_bit(&self.gaps, take);
        }
    }
}

/// Passes the number of each bit that is set to `take`.
#[inline(always)]
pub(crate) fn each_bit(bitmap: &[u64], mut take: impl FnMut(usize)) {
    for (group, &bits) in bitmap.iter().enumerate() {
        let mut left = bits;
        while left != 0 {
            take(group * 64 + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

/// Clears a bit of a bitmap; returns 1 if it was set.
fn clear(bitmap: &mut [u64], at: usize) -> usize {
    let Some(bits) = bitmap.get_mut(at / 64) else { return 0 };
    let was_set = *bits >> (at % 64) & 1;
    *bits &= !(1 << (at % 64));
    was_set as usize
}

impl<S: Word, B: Bits> Translated<'_, S, B> {
    #[inline]
    fn locate<W: Word>(&self, plan: &Plan<'_>, query: W) -> Hit<B> {
        match self.short.seek(query) {
            Seek::Word(word) => self.stored.locate(plan, S::from_u64(word)),
            Seek::Before(word) => {
                let hit = self.stored.locate(plan, S::from_u64(word));
                Hit { rank: hit.rank, ..Hit::default() }
            }
            Seek::End => Hit { rank: plan.tuples, ..Hit::default() },
        }
    }

    fn hits<W: Word>(&self, plan: &Plan<'_>, queries: &[W], put: &mut PutHits<'_, B>) {
        let mut piece = Piece::new();
        for (number, queries) in queries.chunks(PIECE).enumerate() {
            piece.translate(self.short, queries, W::default(), true);
            let mut settled = [Hit::default(); GROUP];
            let (gaps, has_gaps) = (&piece.gaps, piece.has_gaps);
            self.stored.hits(plan, &piece.words[..queries.len()], &mut |first, hits| {
                let start = number * PIECE + first;
                if !has_gaps {
                    return put(start, hits);
                }
                for (at, (to, hit)) in (first..).zip(settled.iter_mut().zip(hits)) {
                    let is_gap = gaps[at / 64] >> (at % 64) & 1 != 0;
                    *to = if is_gap { self.gap(plan, queries[at], hit) } else { *hit };
                }
                put(start, &settled[..hits.len()]);
            });
        }
    }

    /// Returns the hit of a query without a short word, from that of the word in its place.
    fn gap<W: Word>(&self, plan: &Plan<'_>, query: W, hit: &Hit<B>) -> Hit<B> {
        let rank = if self.short.seek(query) == Seek::End { plan.tuples } else { hit.rank };
        Hit { rank, ..Hit::default() }
    }

    fn values<W: Word>(
        &self,
        plan: &Plan<'_>,
        queries: &[W],
        flip: W,
        values: &mut [B],
        bitmap: &mut [u64],
    ) -> usize {
        let mut piece = Piece::new();
        let mut found = 0;
        let pieces = queries.chunks(PIECE).zip(values.chunks_mut(PIECE)).zip(bitmap.chunks_mut(PIECE / 64));
        for ((queries, values), bitmap) in pieces {
            let words = piece.translate(self.short, queries, flip, false);
            found += self.stored.values(plan, words, S::default(), values, bitmap);
            piece.each_gap(|at| {
                found -= clear(bitmap, at);
                values[at] = B::default();
            });
        }
        found
    }

    fn presence<W: Word>(&self, plan: &Plan<'_>, queries: &[W], flip: W, bitmap: &mut [u64]) -> usize {
        let mut piece = Piece::new();
        let mut found = 0;
        for (queries, bitmap) in queries.chunks(PIECE).zip(bitmap.chunks_mut(PIECE / 64)) {
            let words = piece.translate(self.short, queries, flip, false);
            found += self.stored.presence(plan, words, S::default(), bitmap);
            piece.each_gap(|at| found -= clear(bitmap, at));
        }
        found
    }

    fn ranks<W: Word>(&self, plan: &Plan<'_>, queries: &[W], flip: W, ranks: &mut [u64]) {
        let mut piece = Piece::new();
        for (queries, ranks) in queries.chunks(PIECE).zip(ranks.chunks_mut(PIECE)) {
            let words = piece.translate(self.short, queries, flip, true);
            self.stored.ranks(plan, words, S::default(), ranks);
            piece.each_gap(|at| {
                if self.short.seek(queries[at] ^ flip) == Seek::End {
                    ranks[at] = plan.tuples;
                }
            });
        }
    }

    fn neighbors<W: Word>(
        &self,
        plan: &Plan<'_>,
        queries: &[W],
        flip: W,
        is_floor: bool,
        mut tuples: Tuples<'_, W, B>,
    ) -> usize {
        let mut piece = Piece::<S>::new();
        let mut words = [S::default(); PIECE];
        let mut found = 0;
        for (number, queries) in queries.chunks(PIECE).enumerate() {
            let first = number * PIECE;
            let mut tuples = tuples.part(first..first + queries.len());
            let has_last = self.translate_next(&mut piece, queries, flip, is_floor);
            let wanted = tuples.words.len();
            let side = Side { is_next: false, is_before: is_floor };
            let to = tuples.part(0..queries.len());
            let to = Tuples {
                ranks: to.ranks,
                words: &mut words[..wanted],
                values: to.values,
                present: to.present,
            };
            found += self.stored.neighbors(plan, &piece.words[..queries.len()], S::default(), side, to);
            for (to, word) in tuples.words.iter_mut().zip(&words) {
                *to = self.short.key(word.low_u64());
            }
            if piece.has_gaps || has_last {
                for (at, &query) in queries.iter().enumerate() {
                    let is_last = match self.short.seek(query ^ flip) {
                        Seek::End => true,
                        Seek::Word(word) => is_floor && S::from_u64(word) == S::MAX,
                        Seek::Before(_) => false,
                    };
                    if is_last && is_floor {
                        found += tuples.put_last(plan, at, Some(self.short));
                    } else if is_last {
                        found -= tuples.remove(at);
                    }
                }
            }
        }
        found
    }

    /// Translates a piece of queries, for floors into the words after them. Returns true if one has the last word.
    fn translate_next<W: Word>(&self, piece: &mut Piece<S>, queries: &[W], flip: W, is_floor: bool) -> bool {
        piece.translate(self.short, queries, flip, true);
        let mut has_last = false;
        if is_floor {
            // The word in the place of a query that has none is already that of the next key.
            for (at, word) in piece.words[..queries.len()].iter_mut().enumerate() {
                let is_gap = piece.has_gaps && piece.gaps[at / 64] >> (at % 64) & 1 != 0;
                has_last |= *word == S::MAX;
                let next = word.successor().unwrap_or(S::MAX);
                *word = if is_gap { *word } else { next };
            }
        }
        has_last
    }
}
