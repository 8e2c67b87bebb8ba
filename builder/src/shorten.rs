//! Writing of tuple lines in words that are as short as the keys allow ([`pleach_format::short`]).
//!
//! The words depend on all keys, which are known before the first line is written only if the tuples were
//! sorted here. A stream in order begins with its smallest key. So its words are the distance from that key,
//! of 4 bytes, until a key is too far away; then the lines are made again, in longer words. Once all keys
//! are known, they are made again in shorter words if bits in which no two keys differ can be dropped. Most
//! tables show in their first chunk which words they need, and are written once.

use crate::error::BuildError;
use crate::external::Spills;
use crate::lines::{LineWriter, Lines, Places};
use crate::observe::Watch;
use crate::pack::{KeyLane, Rows, Take, Tuple, ValueLane};
use crate::plan::Plan;
use crate::publish::Output;
use pleach_format::Short;
use std::marker::PhantomData;

/// The keys of a table, as far as short words depend on them.
#[derive(Clone, Copy, Debug, Default)]
struct Seen<W> {
    /// Smallest and largest key.
    ends: Option<(W, W)>,
    /// The first key that was seen.
    first: W,
    /// Bits in which a key differs from the first one.
    varying: W,
}

impl<W: KeyLane> Seen<W> {
    /// Adds keys in any order. O(keys).
    fn add<B: ValueLane, R: Rows<W, B>>(&mut self, rows: R) {
        if rows.len() == 0 {
            return;
        }
        if self.ends.is_none() {
            self.first = rows.key(0);
        }
        let (mut min, mut max) = self.ends.unwrap_or((self.first, self.first));
        for at in 0..rows.len() {
            let key = rows.key(at);
            (min, max) = (min.min(key), max.max(key));
            self.varying = self.varying | (key ^ self.first);
        }
        self.ends = Some((min, max));
    }

    /// Returns the short words of a table with these keys, if there are any.
    fn short(&self) -> Option<Short> {
        let (min, max) = self.ends?;
        Short::choose(W::BYTES, min.to_u128(), max.to_u128(), self.varying.to_u128())
    }
}

/// Rows whose keys are short words.
#[derive(Clone, Copy)]
struct ShortRows<'s, W, R> {
    rows: R,
    short: &'s Short,
    keys: PhantomData<W>,
}

impl<'s, W, R> ShortRows<'s, W, R> {
    fn new(rows: R, short: &'s Short) -> Self {
        Self { rows, short, keys: PhantomData }
    }
}

impl<S: KeyLane, B: ValueLane, W: KeyLane, R: Rows<W, B>> Rows<S, B> for ShortRows<'_, W, R> {
    #[inline(always)]
    fn len(self) -> usize {
        self.rows.len()
    }
    #[inline(always)]
    fn key(self, at: usize) -> S {
        S::from_u64(self.short.kept(self.rows.key(at)))
    }
    #[inline(always)]
    fn value(self, at: usize) -> B {
        self.rows.value(at)
    }
    #[inline(always)]
    fn slice(self, from: usize, to: usize) -> Self {
        Self { rows: self.rows.slice(from, to), ..self }
    }
}

/// What line writers have in common.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub output: Output<'a>,
    pub spills: Spills<'a>,
    pub watch: &'a Watch<'a>,
    pub plan: Plan,
    /// The words are those of byte keys.
    pub masked: bool,
    pub grid: bool,
    /// Words may be shorter than keys.
    pub shortens: bool,
    /// Places of the tuple lines in the file.
    pub places: Places,
}

impl<'a> Setting<'a> {
    fn writer<W: KeyLane, B: ValueLane>(&self) -> LineWriter<'a, W, B> {
        let options = (self.masked, self.grid, self.places);
        LineWriter::new(self.output, self.spills, self.watch, &self.plan, options)
    }
}

/// A writer of lines, by the width of its words.
enum Writer<'a, W, B> {
    Full(LineWriter<'a, W, B>),
    Four(LineWriter<'a, u32, B>, Short),
    Eight(LineWriter<'a, u64, B>, Short),
}

/// Finished lines, by the width of their words.
pub(crate) enum Finished<W> {
    Full(Lines<W>),
    Four(Lines<u32>),
    Eight(Lines<u64>),
}

/// Writer that packs sorted tuples into lines of short words, or of the words of their keys.
pub(crate) struct ShortWriter<'a, W, B> {
    setting: Setting<'a>,
    writer: Writer<'a, W, B>,
    /// The keys so far, until the words are decided.
    seen: Seen<W>,
    /// The words of all tuples that come are known.
    is_decided: bool,
}

impl<'a, W: KeyLane, B: ValueLane> ShortWriter<'a, W, B> {
    pub(crate) fn new(setting: Setting<'a>) -> Self {
        let writer = Writer::Full(setting.writer());
        Self { setting, writer, seen: Seen::default(), is_decided: !setting.shortens || W::BYTES == 4 }
    }

    fn start(&self, short: Option<Short>) -> Writer<'a, W, B> {
        match short {
            None => Writer::Full(self.setting.writer()),
            Some(short) if short.word_bytes() == 4 => Writer::Four(self.setting.writer(), short),
            Some(short) => Writer::Eight(self.setting.writer(), short),
        }
    }

    /// Looks at the keys of tuples that will come later, in any order.
    pub(crate) fn see<R: Rows<W, B>>(&mut self, rows: R) {
        if !self.is_decided {
            self.seen.add(rows);
        }
    }

    /// Sets the words from all keys that were seen, after [`ShortWriter::rewind`]: those of all tuples that will
    /// come.
    pub(crate) fn decide(&mut self) {
        if !self.is_decided {
            self.writer = self.start(self.seen.short());
            self.is_decided = true;
        }
    }

    /// Appends the next tuples, in order.
    pub(crate) fn append<R: Rows<W, B>>(&mut self, rows: R) -> Result<(), BuildError> {
        if !self.is_decided {
            let is_first = self.seen.ends.is_none();
            self.seen.add(rows);
            self.make_room(is_first)?;
        }
        self.put(rows)
    }

    fn put<R: Rows<W, B>>(&mut self, rows: R) -> Result<(), BuildError> {
        match &mut self.writer {
            Writer::Full(writer) => writer.append(rows),
            Writer::Four(writer, short) => writer.append(ShortRows::new(rows, short)),
            Writer::Eight(writer, short) => writer.append(ShortRows::new(rows, short)),
        }
    }

    /// Makes words long enough for the keys that were seen; `is_first` if there are no lines yet.
    fn make_room(&mut self, is_first: bool) -> Result<(), BuildError> {
        let Some((min, max)) = self.seen.ends.map(|(min, max)| (min.to_u128(), max.to_u128())) else {
            return Ok(());
        };
        // As if all bits varied: these words only subtract.
        let wanted = || Short::choose(W::BYTES, min, max, W::MAX.to_u128());
        let fits = |short: &Short| (max - min) >> (8 * short.word_bytes()) == 0;
        match &self.writer {
            _ if is_first => self.writer = self.start(wanted()),
            Writer::Four(_, short) | Writer::Eight(_, short) if !fits(short) => self.remake(wanted())?,
            _ => {}
        }
        Ok(())
    }

    /// Makes all lines so far again, in other words.
    fn remake(&mut self, short: Option<Short>) -> Result<(), BuildError> {
        let new = self.start(short);
        let (old, setting) = (std::mem::replace(&mut self.writer, new), self.setting);
        let is_shrinking = self.writer.word_bytes() < old.word_bytes();
        let put = &mut |rows: &[Tuple<W, B>]| self.put(rows);
        match old {
            Writer::Full(writer) => pass(&setting, writer, is_shrinking, put)?,
            Writer::Four(writer, short) => pass(&setting, writer, is_shrinking, &mut widening(&short, put))?,
            Writer::Eight(writer, short) => pass(&setting, writer, is_shrinking, &mut widening(&short, put))?,
        }
        match &self.writer {
            Writer::Full(writer) => writer.trim(),
            Writer::Four(writer, _) => writer.trim(),
            Writer::Eight(writer, _) => writer.trim(),
        }
    }

    /// Passes all tuples to `take` again and starts anew, with the keys that were seen.
    pub(crate) fn rewind(&mut self, take: &mut Take<'_, W, B>) -> Result<(), BuildError> {
        match &mut self.writer {
            Writer::Full(writer) => writer.rewind(take)?,
            Writer::Four(writer, short) => writer.rewind(&mut widening(short, take))?,
            Writer::Eight(writer, short) => writer.rewind(&mut widening(short, take))?,
        }
        Ok(())
    }

    /// Completes the lines.
    pub(crate) fn finish(mut self) -> Result<Finished<W>, BuildError> {
        let short = self.seen.short();
        if !self.is_decided && self.writer.short() != short {
            self.remake(short)?;
        }
        Ok(match self.writer {
            Writer::Full(writer) => Finished::Full(writer.finish(None)?),
            Writer::Four(writer, short) => Finished::Four(writer.finish(Some(short))?),
            Writer::Eight(writer, short) => Finished::Eight(writer.finish(Some(short))?),
        })
    }
}

impl<W: KeyLane, B> Writer<'_, W, B> {
    fn short(&self) -> Option<Short> {
        match self {
            Self::Full(_) => None,
            Self::Four(_, short) | Self::Eight(_, short) => Some(*short),
        }
    }

    fn word_bytes(&self) -> usize {
        self.short().map_or(W::BYTES, |short| short.word_bytes())
    }
}

/// Passes on the tuples of a writer. Those that come back are written in the same place: if they take fewer
/// bytes, each byte has been read before it is overwritten; otherwise the lines are moved away first.
fn pass<S: KeyLane, B: ValueLane>(
    setting: &Setting<'_>,
    old: LineWriter<'_, S, B>,
    is_shrinking: bool,
    take: &mut Take<'_, S, B>,
) -> Result<(), BuildError> {
    let saved = if is_shrinking { None } else { old.save(setting.spills)? };
    old.drain(saved.as_ref(), take)
}

/// Returns a function that passes on tuples with whole keys.
fn widening<'t, S: KeyLane, W: KeyLane, B: ValueLane>(
    short: &'t Short,
    take: &'t mut Take<'_, W, B>,
) -> impl FnMut(&[Tuple<S, B>]) -> Result<(), BuildError> + 't {
    let mut whole = Vec::new();
    move |rows| {
        whole.clear();
        let wide = |tuple: &Tuple<S, B>| Tuple { key: short.key(tuple.key.low_u64()), value: tuple.value };
        whole.extend(rows.iter().map(wide));
        take(&whole)
    }
}
