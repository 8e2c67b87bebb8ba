//! Checks of the mask and of the sorted columns: against the tuple lines, key by key.

use super::{Check, ReadAt};
use pleach_format::column::{GUARD_BYTES, push_native_key};
use pleach_format::line::{self, Line};
use pleach_format::mask::{Chunk, Mask, Place};
use pleach_format::section::Tag;
use pleach_format::superblock::bytes_prefix;
use pleach_format::tail::TAIL_GUARD_BYTES;
use pleach_format::view::ColumnPlace;
use pleach_format::{Header, KeyType, ValueType, Word};
use rayon::prelude::*;
use std::io;
use std::ops::Range;

/// Tuples that are compared at once.
const PIECE_TUPLES: u64 = 1 << 12;
/// Bytes of their keys or values: more than any honest file has.
const PIECE_BYTES_MAX: u64 = 1 << 30;

/// Where a section is found.
type PlaceOf = fn(&Header) -> Option<ColumnPlace>;

/// Sections that hold something of each tuple.
const COLUMNS: [(Tag, PlaceOf); 3] = [
    (Tag::TAIL, |header| header.tails),
    (Tag::KEYS, |header| header.keys),
    (Tag::VALUES, |header| header.values),
];

/// Elements of a range of ranks.
struct Elements {
    data: Vec<u8>,
    ends: Vec<usize>,
}

impl Elements {
    fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.data[start..self.ends[index]]
    }
}

impl<R: ReadAt> Check<'_, R> {
    pub(super) fn check_columns(&self, header: &Header) -> io::Result<()> {
        let mask = match header.mask {
            None => None,
            Some(section) => {
                let bytes = self.read(section.offset(), section.entry.length.get())?;
                match self.check_mask(header, section.offset(), &bytes) {
                    Some(mask) => Some(mask),
                    None => return Ok(()),
                }
            }
        };
        for (tag, place) in COLUMNS {
            let place = place(header);
            if let Some(place) = place {
                self.check_edges(tag, place)?;
            }
        }
        if mask.is_none() && COLUMNS.iter().all(|(_, place)| place(header).is_none()) {
            return Ok(());
        }
        let pieces = header.tuples.div_ceil(PIECE_TUPLES);
        (0..pieces).into_par_iter().try_for_each(|piece| {
            if self.is_cancelled() {
                return Ok(());
            }
            let ranks = piece * PIECE_TUPLES..((piece + 1) * PIECE_TUPLES).min(header.tuples);
            match header.geometry.key_bytes {
                4 => self.check_piece::<u32>(header, mask.as_ref(), &ranks),
                8 => self.check_piece::<u64>(header, mask.as_ref(), &ranks),
                _ => self.check_piece::<u128>(header, mask.as_ref(), &ranks),
            }
        })
    }

    fn check_mask(&self, header: &Header, offset: u64, bytes: &[u8]) -> Option<Mask> {
        let length = bytes.len() as u64;
        let wrong = |expected: &dyn ToString, found: &dyn ToString| {
            let text = "the mask must be that of the keys";
            self.rule("mask", "MASK", offset, length, expected.to_string(), found.to_string(), text);
            None
        };
        let mask = match Mask::parse(bytes, header.geometry.key_bytes, offset) {
            Ok(mask) => mask,
            Err(error) => return wrong(&"a mask", &error),
        };
        let fixed = match header.key_type {
            KeyType::Fixed(bytes) => Some(usize::from(bytes)),
            _ => None,
        };
        if mask.is_fixed() != fixed.is_some() || fixed.is_some_and(|bytes| bytes != mask.key_bytes_max()) {
            return wrong(&header.key_type, &format!("keys of up to {} bytes", mask.key_bytes_max()));
        }
        let of_mask = mask.tail().map_or(0, |tail| tail.bytes() as u64);
        let of_section = header.tails.map_or(0, |place| place.shape.element_bytes);
        if of_mask != of_section {
            return wrong(&format!("tails of {of_section} bytes"), &of_mask);
        }
        if !mask.is_lossless() && mask.tail().is_none() && header.keys.is_none() {
            return wrong(&"words that are whole keys, or a TAIL or KEYS section", &"neither");
        }
        Some(mask)
    }

    /// Guard bytes, padding and the ends of the list of offsets.
    fn check_edges(&self, tag: Tag, place: ColumnPlace) -> io::Result<()> {
        let shape = place.shape;
        let mut zeros = vec![(place.data_offset() + shape.data_bytes, GUARD_BYTES)];
        if shape.offset_bytes > 0 {
            let end = (shape.elements + 1) * shape.offset_bytes;
            zeros.push((place.offset + end, shape.data_at - end));
            let first = self.offset_of(place, 0)?;
            let last = self.offset_of(place, shape.elements)?;
            if (first, last) != (0, shape.data_bytes) {
                let (at, expected) = (place.offset, format!("0 up to {}", shape.data_bytes));
                let found = format!("{first} up to {last}");
                self.rule("column", tag.name(), at, end, expected, found, "offsets must cover the data");
            }
        }
        for (at, length) in zeros {
            if self.read(at, length)?.iter().any(|&byte| byte != 0) {
                self.rule("padding", tag.name(), at, length, 0, "other bytes", "padding must be zero");
            }
        }
        Ok(())
    }

    fn offset_of(&self, place: ColumnPlace, rank: u64) -> io::Result<u64> {
        let width = place.shape.offset_bytes;
        let bytes = self.read(place.offset + rank * width, width)?;
        Ok(number(&bytes))
    }

    /// The elements of some ranks, unless their offsets make no sense.
    fn elements(&self, tag: Tag, place: ColumnPlace, ranks: &Range<u64>) -> io::Result<Option<Elements>> {
        let shape = place.shape;
        let count = ranks.end - ranks.start;
        let (start, ends): (u64, Vec<u64>) = if shape.offset_bytes == 0 {
            let bytes = shape.element_bytes;
            (ranks.start * bytes, (1..=count).map(|i| i * bytes).collect())
        } else {
            let width = shape.offset_bytes;
            let bytes = self.read(place.offset + ranks.start * width, (count + 1) * width)?;
            let offsets: Vec<u64> = bytes.chunks_exact(width as usize).map(number).collect();
            let (first, last) = (offsets[0], offsets[count as usize]);
            if !offsets.is_sorted() || last > shape.data_bytes || last - first > PIECE_BYTES_MAX {
                let (at, length) = (place.offset + ranks.start * width, count * width);
                let text = "offsets must ascend";
                self.rule("column", tag.name(), at, length, "ascending offsets", "others", text);
                return Ok(None);
            }
            (first, offsets[1..].iter().map(|end| end - first).collect())
        };
        let length = ends.last().copied().unwrap_or(0);
        let data = self.read(place.data_offset() + start, length)?;
        Ok(Some(Elements { data, ends: ends.into_iter().map(|end| end as usize).collect() }))
    }

    fn check_piece<W: Word>(
        &self,
        header: &Header,
        mask: Option<&Mask>,
        ranks: &Range<u64>,
    ) -> io::Result<()> {
        // One tuple more at the front, so that the order across the border is seen.
        let ranks = ranks.start.saturating_sub(1)..ranks.end;
        let geometry = header.geometry;
        let (first, last) = (geometry.place(ranks.start).0, geometry.place(ranks.end - 1).0);
        let lines = self.read(header.line_offset(first), (last - first + 1) * 64)?;
        let (lines, _) = lines.as_chunks::<64>();
        let column = |tag, place: Option<ColumnPlace>| match place {
            None => Ok(Some(None)),
            Some(place) => self.elements(tag, place, &ranks).map(|elements| elements.map(Some)),
        };
        let Some(tails) = column(Tag::TAIL, header.tails)? else { return Ok(()) };
        let Some(keys) = column(Tag::KEYS, header.keys)? else { return Ok(()) };
        let Some(values) = column(Tag::VALUES, header.values)? else { return Ok(()) };
        let (mut unpacked, mut guarded, mut previous) = (Vec::new(), Vec::new(), None::<Vec<u8>>);
        for rank in ranks.clone() {
            let (number, slot) = geometry.place(rank);
            let line = &lines[(number - first) as usize];
            let word = line::key::<W>(line, slot).to_u128();
            let index = (rank - ranks.start) as usize;
            let key = keys.as_ref().map(|keys| keys.get(index));
            unpacked.clear();
            if let Some(mask) = mask {
                match &tails {
                    Some(tails) => {
                        guarded.clear();
                        guarded.extend_from_slice(tails.get(index));
                        guarded.resize(guarded.len() + TAIL_GUARD_BYTES, 0);
                        mask.unpack_with(word, &guarded, &mut unpacked);
                        self.check_tail(header, mask, rank, &unpacked, tails.get(index));
                    }
                    None if key.is_none() => mask.unpack(word, &mut unpacked),
                    None => unpacked.extend_from_slice(key.unwrap_or_default()),
                }
                if let Some(key) = key.filter(|&key| key != unpacked) {
                    self.wrong_element(header, Tag::KEYS, rank, &hex(&unpacked), key);
                }
                self.check_byte_key(header, mask, rank, &unpacked, word, previous.as_deref());
                previous = Some(unpacked.clone());
            } else if let Some(key) = key {
                push_native_key(header.key_type, word, &mut unpacked);
                if unpacked != key {
                    self.wrong_element(header, Tag::KEYS, rank, &hex(&unpacked), key);
                }
            }
            if let Some(values) = &values {
                self.check_value(header, rank, values.get(index), line, slot);
            }
        }
        Ok(())
    }

    fn wrong_element(&self, header: &Header, tag: Tag, rank: u64, expected: &str, found: &[u8]) {
        let place = COLUMNS.iter().find(|column| column.0 == tag).and_then(|(_, place)| place(header));
        let (section, at) = match place {
            Some(place) => (tag.name(), place.offset),
            None => ("LINE", header.line_offset(header.geometry.place(rank).0)),
        };
        let text = format!("the element of rank {rank} must be that of its tuple");
        self.rule("column", section, at, found.len() as u64, expected, hex(found), &text);
    }

    /// A tail must be the one that its key gives, free bits and all.
    fn check_tail(&self, header: &Header, mask: &Mask, rank: u64, key: &[u8], found: &[u8]) {
        let mut expected = Vec::new();
        if let Some(tail) = mask.tail() {
            tail.push(key, Chunk::compress, &mut expected);
        }
        if expected != found {
            self.wrong_element(header, Tag::TAIL, rank, &hex(&expected), found);
        }
    }

    fn check_byte_key(
        &self,
        header: &Header,
        mask: &Mask,
        rank: u64,
        key: &[u8],
        word: u128,
        previous: Option<&[u8]>,
    ) {
        let wrong = |expected: &str| self.wrong_element(header, Tag::KEYS, rank, expected, key);
        if mask.place(key, Chunk::compress) != Place::Word(word) {
            wrong(&format!("a key of the word {word:x}"));
        }
        let strict = header.is_unique();
        if previous.is_some_and(|previous| if strict { previous >= key } else { previous > key }) {
            wrong("a key in order");
        }
        if header.key_type == KeyType::Utf8 && std::str::from_utf8(key).is_err() {
            wrong("valid UTF-8");
        }
        let block = &header.superblock;
        let ends = [
            (rank == 0, &block.min_key, block.min_key_len.get(), 136),
            (rank + 1 == header.tuples, &block.max_key, block.max_key_len.get(), 200),
        ];
        for (here, prefix, length, offset) in ends {
            if here && (*prefix != bytes_prefix(key) || length as usize != key.len()) {
                let text = "the superblock must name the outermost keys";
                self.rule("min-max", "superblock", offset, 64, hex(key), hex(prefix), text);
            }
        }
    }

    fn check_value(&self, header: &Header, rank: u64, value: &[u8], line: &Line, slot: usize) {
        let geometry = header.geometry;
        let held = &line[geometry.values_at() + slot * geometry.value_bytes..][..geometry.value_bytes];
        if !header.value_type.is_bytes() && value != held {
            self.wrong_element(header, Tag::VALUES, rank, &hex(held), value);
        }
        if header.value_type == ValueType::Utf8 && std::str::from_utf8(value).is_err() {
            self.wrong_element(header, Tag::VALUES, rank, "valid UTF-8", value);
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(64).map(|byte| format!("{byte:02x}")).collect()
}
