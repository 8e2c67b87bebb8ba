//! Tuples as they are stored in the lines of a base, whose words may be shorter than its keys.

use crate::pack::{KeyLane, ValueLane, per_line};
use pleach_format::key::Word;
use pleach_format::layout::LineGeometry;
use pleach_format::line::{self, Line};
use pleach_format::{Header, Short};
use std::marker::PhantomData;
use std::ops::Range;

/// Reads keys of words `W` and their values from lines.
#[derive(Clone, Copy)]
pub(crate) struct Stored<W> {
    geometry: LineGeometry,
    short: Option<Short>,
    keys: PhantomData<W>,
}

impl<W: KeyLane> Stored<W> {
    pub(crate) fn new(header: &Header) -> Self {
        Self { geometry: header.geometry, short: header.short, keys: PhantomData }
    }

    /// Returns the number of tuples in a full line.
    pub(crate) fn per_line(&self) -> usize {
        self.geometry.tuples_per_line()
    }

    /// Returns the key in a slot.
    #[inline]
    pub(crate) fn key(&self, line: &Line, slot: usize) -> W {
        line::whole_key(line, self.short.as_ref(), slot)
    }

    /// Unpacks the tuples `run` of some lines into columns of their number.
    pub(crate) fn unpack<B: ValueLane>(
        &self,
        lines: &[Line],
        run: Range<usize>,
        keys: &mut [W],
        values: &mut [B],
    ) {
        match &self.short {
            None => {
                let n = const { per_line::<W, B>() };
                unpack::<W, W, B>(lines, (n, self.geometry.values_at()), run, keys, values, |word| word);
            }
            Some(short) => {
                let shape = (self.per_line(), self.geometry.values_at());
                if self.geometry.key_bytes == 4 {
                    unpack(lines, shape, run, keys, values, |word: u32| short.key(word.into()));
                } else {
                    unpack(lines, shape, run, keys, values, |word: u64| short.key(word));
                }
            }
        }
    }
}

/// Unpacks tuples of lines with `n` words `S` and values from byte `values_at` on.
#[inline(always)]
fn unpack<S: Word, W: KeyLane, B: ValueLane>(
    lines: &[Line],
    (n, values_at): (usize, usize),
    run: Range<usize>,
    keys: &mut [W],
    values: &mut [B],
    key: impl Fn(S) -> W,
) {
    let slots = |line: &Line, slot: usize, keys: &mut [W], values: &mut [B]| {
        for (slot, (to_key, to_value)) in (slot..).zip(keys.iter_mut().zip(values)) {
            *to_key = key(line::key(line, slot));
            *to_value = B::read(&line[values_at + slot * B::BYTES..]);
        }
    };
    let head = if run.start.is_multiple_of(n) { 0 } else { (n - run.start % n).min(run.len()) };
    let (keys_head, keys) = keys.split_at_mut(head);
    let (values_head, values) = values.split_at_mut(head);
    if head > 0 {
        slots(&lines[run.start / n], run.start % n, keys_head, values_head);
    }
    let first = (run.start + head) / n;
    for ((line, keys), values) in lines[first..].iter().zip(keys.chunks_mut(n)).zip(values.chunks_mut(n)) {
        slots(line, 0, keys, values);
    }
}
