//! Merge of a base with effects, tuple by tuple, if keys or values are byte strings.
//!
//! A key is made from its word, from word and tail, or read from the column of keys. A value is read from its
//! line or from the column of values. The bytes for a rank come from verified windows. If the base is
//! salvaged, a tuple is left out if any part of it is lost.

use super::base::{Base, Blocks, Window};
use super::changes::{Effects, push_element};
use super::elements::Elements;
use super::pages::PageKeys;
use crate::error::BuildError;
use crate::source::{Chunk, Column, Schema, Source, SourceError};
use pleach_format::codes;
use pleach_format::line;
use pleach_format::mask::Mask;
use pleach_format::section::Tag;
use pleach_format::tail::TAIL_GUARD_BYTES;
use std::ops::Range;

/// Tuples per window.
const WINDOW_TUPLES: u64 = 1 << 12;
/// Bytes of keys and values per chunk.
const CHUNK_BYTES: usize = 4 << 20;

/// Merge of a base with effects; without effects it yields the tuples of the base.
pub(crate) struct ByteMerge<'a> {
    base: &'a Base,
    schema: Schema,
    effects: Effects<Vec<u8>, Vec<u8>>,
    mask: Option<Mask>,
    lines: Blocks<'a>,
    line_window: Option<Window>,
    tails: Option<Elements<'a>>,
    keys: Option<Elements<'a>>,
    pages: Option<PageKeys<'a>>,
    values: Option<Elements<'a>>,
    /// The codes of the values, if each of them is stored once. Then all values are loaded at the start.
    codes: Option<Elements<'a>>,
    window: Range<u64>,
    /// Next rank of the base, and its key and value once they were made.
    rank: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    held: bool,
    /// Next effect whose values have not been yielded.
    at: usize,
}

impl<'a> ByteMerge<'a> {
    pub(crate) fn new(
        base: &'a Base,
        schema: Schema,
        effects: Effects<Vec<u8>, Vec<u8>>,
    ) -> Result<Self, BuildError> {
        let header = &base.header;
        // Without the mask, the column of keys has everything that is needed.
        let (mask, is_mask_lost) = match base.mask() {
            Err(_) if base.is_salvage() && (header.keys.is_some() || header.text.is_some()) => (None, true),
            mask => (mask?, false),
        };
        let lines = base.section(Tag::LINE)?;
        let is_word = !is_mask_lost && mask.as_ref().is_none_or(Mask::is_lossless);
        let tails = if is_mask_lost { None } else { Elements::new(base, Tag::TAIL, header.tails)? };
        // The column is read only if no shorter section has the keys.
        let wanted = header.keys.filter(|_| !is_word && tails.is_none());
        let keys = Elements::new(base, Tag::KEYS, wanted)?;
        let pages = PageKeys::new(base)?;
        if !is_word && tails.is_none() && keys.is_none() && pages.is_none() {
            return Err(base.damaged(Tag::KEYS, 0));
        }
        let values = header.values.filter(|_| header.value_type.is_bytes());
        let mut values = Elements::new(base, Tag::VALUES, values)?;
        let mut codes = Elements::new(base, Tag::CODES, header.codes)?;
        if let (Some(values), Some(codes)) = (&mut values, &mut codes) {
            if base.is_salvage() {
                values.blocks.mend()?;
                codes.blocks.mend()?;
            }
            values.load(&(0..values.place.shape.elements))?;
        }
        Ok(Self {
            lines: lines.ok_or_else(|| base.damaged(Tag::LINE, header.lines_offset))?,
            tails,
            keys,
            pages,
            values,
            codes,
            base,
            schema,
            effects,
            mask,
            line_window: None,
            window: 0..0,
            rank: 0,
            key: Vec::new(),
            value: Vec::new(),
            held: false,
            at: 0,
        })
    }

    pub(crate) fn effects(&self) -> &Effects<Vec<u8>, Vec<u8>> {
        &self.effects
    }

    /// Leaves out whole windows before `rank`, and returns the first rank that is left. Only for merges
    /// without effects, before the first read.
    pub(crate) fn start_at(&mut self, rank: u64) -> u64 {
        self.rank = rank.min(self.base.header.tuples) / WINDOW_TUPLES * WINDOW_TUPLES;
        self.rank
    }

    fn load(&mut self) -> Result<(), BuildError> {
        let header = &self.base.header;
        self.window = self.rank..(self.rank + WINDOW_TUPLES).min(header.tuples);
        let (first, last) =
            (header.geometry.place(self.window.start).0, header.geometry.place(self.window.end - 1).0);
        self.line_window = Some(self.lines.window(first * 64, (last - first + 1) * 64)?);
        let varying = if self.codes.is_some() { &mut self.codes } else { &mut self.values };
        for elements in [&mut self.tails, &mut self.keys, varying].into_iter().flatten() {
            elements.load(&self.window)?;
        }
        if let Some(pages) = &mut self.pages {
            pages.load(&self.window)?;
        }
        Ok(())
    }

    /// Makes key and value of a rank; `None` if part of it is lost.
    fn tuple(&mut self, rank: u64) -> Option<()> {
        let geometry = self.base.header.geometry;
        let (number, slot) = geometry.place(rank);
        let line = self.line_window.as_ref()?.get(number * 64, 64)?.first_chunk::<64>()?;
        self.key.clear();
        self.value.clear();
        match (&self.mask, &self.tails, &self.keys) {
            _ if self.pages.is_some() => self.pages.as_ref()?.key(rank, &mut self.key)?,
            (Some(mask), tails, None) => {
                let word = line::word(line, geometry.key_bytes, slot);
                match tails {
                    Some(tails) => {
                        let mut tail = tails.get(rank)?.to_vec();
                        tail.resize(tail.len() + TAIL_GUARD_BYTES, 0);
                        mask.unpack_with(word, &tail, &mut self.key);
                    }
                    None => mask.unpack(word, &mut self.key),
                }
            }
            (_, _, Some(keys)) => self.key.extend_from_slice(keys.get(rank)?),
            (None, ..) => {
                let header = &self.base.header;
                let key = header.key_of(line::word(line, geometry.key_bytes, slot)).to_be_bytes();
                self.key.extend_from_slice(&key[key.len() - header.key_type.bytes()..]);
            }
        }
        match (&self.values, &self.codes) {
            (Some(values), None) => self.value.extend_from_slice(values.get(rank)?),
            (Some(values), Some(codes)) => {
                self.value.extend_from_slice(values.get(codes::code(codes.get(rank)?))?);
            }
            (None, _) => {
                let at = geometry.values_at() + slot * geometry.value_bytes;
                self.value.extend_from_slice(&line[at..at + geometry.value_bytes]);
            }
        }
        Some(())
    }

    /// Makes the next tuple of the base; returns false at its end.
    fn advance(&mut self) -> Result<bool, BuildError> {
        while !self.held && self.rank < self.base.header.tuples {
            if self.rank >= self.window.end {
                self.load()?;
            }
            let rank = self.rank;
            self.rank += 1;
            if self.tuple(rank).is_some() {
                self.held = true;
            } else if self.base.is_salvage() {
                self.base.lose(rank..rank + 1);
            } else {
                // The sums match, so the builder of this file was wrong, or somebody forged it.
                return Err(self.base.damaged(Tag::VALUES, 0));
            }
        }
        Ok(self.held)
    }

    fn leave(&mut self, chunk: &mut Chunk) {
        let effect = &self.effects.list[self.at];
        for value in &self.effects.values[effect.first..][..effect.count] {
            push_element(&effect.key, true, &mut chunk.keys);
            push_element(value, false, &mut chunk.values);
        }
        self.at += 1;
    }

    fn fill(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), BuildError> {
        *chunk = Chunk::new(self.schema.key_type, self.schema.value_type);
        let full = |chunk: &Chunk| {
            let held = |column: &Column| match column {
                Column::Bytes(strings) => strings.data_bytes(),
                _ => 0,
            };
            chunk.len() >= tuples_max || held(&chunk.keys) + held(&chunk.values) >= CHUNK_BYTES
        };
        while !full(chunk) {
            let there = self.advance()?;
            let effect = self.effects.list.get(self.at);
            match effect {
                // New values come after the base tuples of their key.
                Some(effect) if !there || effect.key < self.key => self.leave(chunk),
                _ if !there => break,
                Some(effect) if effect.key == self.key => {
                    effect.find(1);
                    if !effect.clears {
                        push_element(&self.key, true, &mut chunk.keys);
                        push_element(&self.value, false, &mut chunk.values);
                    }
                    self.held = false;
                }
                _ => {
                    push_element(&self.key, true, &mut chunk.keys);
                    push_element(&self.value, false, &mut chunk.values);
                    self.held = false;
                }
            }
        }
        Ok(())
    }
}

impl Source for ByteMerge<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        self.fill(chunk, tuples_max).map_err(super::passing::source_error)
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.rank, Some(self.base.header.tuples))
    }
}
