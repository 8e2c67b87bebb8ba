//! Checks of the mask and of the sorted columns: against the tuple lines, key by key.

use super::pieces::sized;
use super::text::Text;
use super::values::Rule;
use super::{Check, Code, ReadAt, number};
use pleach_format::codes;
use pleach_format::column::{GUARD_BYTES, push_native_key};
use pleach_format::line::{self, Line};
use pleach_format::mask::{self, Chunk, Mask, Place};
use pleach_format::section::{Entry, REQUIRED, Tag};
use pleach_format::superblock::{Superblock, bytes_prefix};
use pleach_format::tail::TAIL_GUARD_BYTES;
use pleach_format::view::ColumnPlace;
use pleach_format::{Header, KeyType, Word, offset_in};
use rayon::prelude::*;
use std::io;
use std::ops::Range;

/// Number of tuples that are compared at once.
const PIECE_TUPLES: u64 = sized(1 << 12, 16);
/// Maximum bytes of these tuples, if there is more than one.
const PIECE_BYTES: u64 = sized(1 << 22, 64);
/// Maximum bytes of a key: spec/FORMAT.md, section 7.
const KEY_BYTES_MAX: u64 = super::text::KEY_BYTES_MAX as u64;

/// Function that finds the place of a column.
type PlaceOf = fn(&Header) -> Option<ColumnPlace>;

/// Sections that are columns.
const COLUMNS: [(Tag, PlaceOf); 4] = [
    (Tag::TAIL, |header| header.tails),
    (Tag::KEYS, |header| header.keys),
    (Tag::VALUES, |header| header.values),
    (Tag::CODES, |header| header.codes),
];

/// The elements of a range of ranks.
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
        let text = self.text(header)?;
        if mask.is_none() && COLUMNS.iter().all(|(_, place)| place(header).is_none()) {
            return Ok(());
        }
        let rule = self.rule_of_values(header)?;
        // One element per tuple, or, with codes, fewer.
        let texts = header.values.filter(|_| header.value_type.is_bytes());
        let count = texts.map_or(0, |place| place.shape.elements);
        let pieces = header.tuples.max(count).div_ceil(PIECE_TUPLES);
        (0..pieces).into_par_iter().try_for_each(|piece| {
            if self.is_cancelled() {
                return Ok(());
            }
            let part =
                |count: u64| (piece * PIECE_TUPLES).min(count)..((piece + 1) * PIECE_TUPLES).min(count);
            let (ranks, elements) = (part(header.tuples), part(count));
            if let Some(place) = texts.filter(|_| !elements.is_empty()) {
                self.check_texts(header, place, rule.as_ref(), &elements)?;
            }
            if ranks.is_empty() {
                return Ok(());
            }
            if let (Some(codes), Some(place)) = (header.codes, texts) {
                self.check_codes(codes, place.shape.elements, &ranks)?;
            }
            let (mask, text) = (mask.as_ref(), text.as_ref());
            self.parted(header, text, ranks, &|ranks| match header.geometry.key_bytes {
                4 => self.check_piece::<u32>(header, mask, text, ranks),
                8 => self.check_piece::<u64>(header, mask, text, ranks),
                _ => self.check_piece::<u128>(header, mask, text, ranks),
            })
        })
    }

    /// Halves the ranks until their keys and tails have few bytes.
    fn parted(
        &self,
        header: &Header,
        text: Option<&Text>,
        ranks: Range<u64>,
        check: &impl Fn(&Range<u64>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut bytes = 0u64;
        for place in [header.tails, header.keys].into_iter().flatten() {
            bytes = bytes.saturating_add(match place.shape.offset_bytes {
                0 => (ranks.end - ranks.start) * place.shape.element_bytes,
                _ => self.offset_of(place, ranks.end)?.saturating_sub(self.offset_of(place, ranks.start)?),
            });
        }
        if let Some(text) = text {
            bytes = bytes.saturating_add(self.text_bytes(text, &ranks)?);
        }
        let middle = ranks.start + (ranks.end - ranks.start) / 2;
        if bytes <= PIECE_BYTES || middle == ranks.start {
            return check(&ranks);
        }
        self.parted(header, text, ranks.start..middle, check)?;
        self.parted(header, text, middle..ranks.end, check)
    }

    /// Returns the code of a tuple.
    pub(super) fn code_of(&self, place: ColumnPlace, rank: u64) -> io::Result<u64> {
        let width = place.shape.element_bytes;
        Ok(codes::code(&self.read(place.data_offset() + rank * width, width)?))
    }

    /// Checks that every code is that of a value.
    fn check_codes(&self, place: ColumnPlace, values: u64, ranks: &Range<u64>) -> io::Result<()> {
        let width = place.shape.element_bytes;
        let bytes =
            self.read(place.data_offset() + ranks.start * width, (ranks.end - ranks.start) * width)?;
        for (rank, code) in ranks.clone().zip(bytes.chunks_exact(width as usize).map(codes::code)) {
            if code >= values {
                let (at, expected) = (place.data_offset() + rank * width, format!("below {values}"));
                let text = format!("the code of rank {rank} must be that of a value");
                self.rule(Code::Column, "CODE", at, width, expected, code, &text);
            }
        }
        Ok(())
    }

    /// Checks values of varying length: their offsets must ascend, and each must obey the rule. They are read in
    /// pieces, whatever their length.
    fn check_texts(
        &self,
        header: &Header,
        place: ColumnPlace,
        rule: Option<&Rule>,
        ranks: &Range<u64>,
    ) -> io::Result<()> {
        if place.shape.offset_bytes == 0 {
            return Ok(());
        }
        let Some(offsets) = self.offsets(Tag::VALUES, place, ranks)? else { return Ok(()) };
        let Some(rule) = rule else { return Ok(()) };
        let wrong = |index: usize, wanted: &str, value: &[u8]| {
            self.wrong_element(header, Tag::VALUES, ranks.start + index as u64, wanted, value);
        };
        let mut from = 0;
        while from + 1 < offsets.len() {
            let fits = |to: &usize| offsets[*to] - offsets[from] <= PIECE_BYTES;
            let to = (from + 1..offsets.len()).take_while(fits).last();
            if let Some(to) = to {
                let data = self.read(place.data_offset() + offsets[from], offsets[to] - offsets[from])?;
                for index in from..to {
                    let value = &data[(offsets[index] - offsets[from]) as usize..];
                    let value = &value[..(offsets[index + 1] - offsets[index]) as usize];
                    if let Some(wanted) = rule.broken(value) {
                        wrong(index, &wanted, value);
                    }
                }
            } else {
                let (at, length) = (place.data_offset() + offsets[from], offsets[from + 1] - offsets[from]);
                if let Some(wanted) = self.broken_value(rule, at, length)? {
                    wrong(from, &wanted, &[]);
                }
            }
            from = to.unwrap_or(from + 1);
        }
        Ok(())
    }

    /// Reports whether these bytes of the file are UTF-8.
    pub(super) fn is_text(&self, at: u64, length: u64) -> io::Result<bool> {
        let mut held = Vec::new();
        for start in (0..length).step_by(PIECE_BYTES as usize) {
            held.extend(self.read(at + start, (length - start).min(PIECE_BYTES))?);
            match std::str::from_utf8(&held) {
                Ok(_) => held.clear(),
                // A character continues in the next piece.
                Err(error) if error.error_len().is_none() => drop(held.drain(..error.valid_up_to())),
                Err(_) => return Ok(false),
            }
        }
        Ok(held.is_empty())
    }

    fn check_mask(&self, header: &Header, offset: u64, bytes: &[u8]) -> Option<Mask> {
        let length = bytes.len() as u64;
        let wrong = |expected: &dyn ToString, found: &dyn ToString| {
            let text = "the mask must be that of the keys";
            self.rule(Code::Mask, "MASK", offset, length, expected.to_string(), found.to_string(), text);
            None
        };
        let mask = match Mask::parse(bytes, header.geometry.key_bytes, offset) {
            Ok(mask) => mask,
            Err(error) => return wrong(&"a mask", &error),
        };
        let fixed = header.key_type.fixed_bytes();
        if mask.is_fixed() != fixed.is_some() || fixed.is_some_and(|bytes| bytes != mask.key_bytes_max()) {
            return wrong(&header.key_type, &format!("keys of up to {} bytes", mask.key_bytes_max()));
        }
        // If there are no tails, there is no section for them.
        let of_mask = mask.tail().map(|tail| tail.bytes() as u64);
        let of_section = header.tails.map(|place| place.shape.element_bytes);
        if of_mask != of_section {
            let tails =
                |bytes: Option<u64>| bytes.map_or("none".into(), |bytes| format!("tails of {bytes} bytes"));
            return wrong(&tails(of_section), &tails(of_mask));
        }
        let needs_keys = !mask.is_lossless() && mask.tail().is_none();
        // Opening refuses TEXT beside TAIL or KEYS.
        if needs_keys && header.keys.is_none() && header.text.is_none() {
            return wrong(&"words that are whole keys, or a TAIL, KEYS or TEXT section", &"none of these");
        }
        if !needs_keys && header.text.is_some() {
            return wrong(&"words that are not whole keys beside a TEXT section", &"words that are");
        }
        let wanted = if needs_keys { REQUIRED } else { 0 };
        let keys = header.entry_offset(Tag::KEYS).zip(header.section(Tag::KEYS));
        let keys = keys.map(|(at, section)| (at + offset_in!(Entry, flags), section.entry));
        if let Some((at, entry)) = keys.filter(|(_, entry)| entry.flags.get() != wanted) {
            let text = "KEYS is required where answers depend on it, and only there";
            self.rule(Code::Header, "KEYS", at, 4, wanted, entry.flags.get(), text);
        }
        let elements = header.mask.map_or(0, |section| section.entry.elements.get());
        if elements != mask.covered() as u64 {
            return wrong(&format!("{} covered bytes", mask.covered()), &format!("{elements} in the table"));
        }
        let (references, masks) = bytes[mask::HEAD_BYTES..].split_at((bytes.len() - mask::HEAD_BYTES) / 2);
        if references.iter().zip(masks).any(|(reference, mask)| reference & mask != 0) {
            return wrong(&"zeros for kept bits of the reference", &"other bits");
        }
        Some(mask)
    }

    /// Checks guard bytes, padding, and the first and last offset.
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
                self.rule(Code::Column, tag.name(), at, end, expected, found, "offsets must cover the data");
            }
        }
        for (at, length) in zeros {
            self.check_zeros(tag.name(), (at, at + length))?;
        }
        Ok(())
    }

    fn offset_of(&self, place: ColumnPlace, rank: u64) -> io::Result<u64> {
        let width = place.shape.offset_bytes;
        let bytes = self.read(place.offset + rank * width, width)?;
        Ok(number(&bytes))
    }

    /// Returns the offsets of these ranks and the end of the last one. Returns `None` if they are invalid.
    fn offsets(&self, tag: Tag, place: ColumnPlace, ranks: &Range<u64>) -> io::Result<Option<Vec<u64>>> {
        let (width, count) = (place.shape.offset_bytes, ranks.end - ranks.start);
        let bytes = self.read(place.offset + ranks.start * width, (count + 1) * width)?;
        let offsets: Vec<u64> = bytes.chunks_exact(width as usize).map(number).collect();
        let is_key = tag == Tag::KEYS;
        let too_long =
            is_key && offsets.windows(2).any(|pair| pair[1].saturating_sub(pair[0]) > KEY_BYTES_MAX);
        if !offsets.is_sorted() || offsets[count as usize] > place.shape.data_bytes || too_long {
            let (at, length) = (place.offset + ranks.start * width, count * width);
            let text = if too_long { "a key has 65,535 bytes at most" } else { "offsets must ascend" };
            self.rule(Code::Column, tag.name(), at, length, "ascending offsets", "others", text);
            return Ok(None);
        }
        Ok(Some(offsets))
    }

    /// Returns the elements of these ranks. Returns `None` if their offsets are invalid.
    fn elements(&self, tag: Tag, place: ColumnPlace, ranks: &Range<u64>) -> io::Result<Option<Elements>> {
        let count = ranks.end - ranks.start;
        let (start, ends): (u64, Vec<u64>) = if place.shape.offset_bytes == 0 {
            let bytes = place.shape.element_bytes;
            (ranks.start * bytes, (1..=count).map(|i| i * bytes).collect())
        } else {
            let Some(offsets) = self.offsets(tag, place, ranks)? else { return Ok(None) };
            (offsets[0], offsets[1..].iter().map(|end| end - offsets[0]).collect())
        };
        let length = ends.last().copied().unwrap_or(0);
        let data = self.read(place.data_offset() + start, length)?;
        Ok(Some(Elements { data, ends: ends.into_iter().map(|end| end as usize).collect() }))
    }

    fn check_piece<W: Word>(
        &self,
        header: &Header,
        mask: Option<&Mask>,
        text: Option<&Text>,
        ranks: &Range<u64>,
    ) -> io::Result<()> {
        // One more tuple at the front, so that the order across the boundary is checked.
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
        // Places that are not valid are reported with the pages.
        let pages = text.map(|text| self.text_pages(text, &ranks)).transpose()?;
        if matches!(pages, Some(None)) {
            return Ok(());
        }
        let pages = pages.flatten();
        // Values that are byte strings are checked separately.
        let values = header.values.filter(|_| !header.value_type.is_bytes());
        let Some(values) = column(Tag::VALUES, values)? else { return Ok(()) };
        let (mut unpacked, mut guarded, mut previous) = (Vec::new(), Vec::new(), None::<Vec<u8>>);
        for rank in ranks.clone() {
            let (number, slot) = geometry.place(rank);
            let line = &lines[(number - first) as usize];
            let word = line::key::<W>(line, slot).to_u128();
            let index = (rank - ranks.start) as usize;
            let key = keys.as_ref().map(|keys| keys.get(index));
            unpacked.clear();
            if let Some(mask) = mask {
                match (&tails, &pages) {
                    (Some(tails), _) => {
                        guarded.clear();
                        guarded.extend_from_slice(tails.get(index));
                        guarded.resize(guarded.len() + TAIL_GUARD_BYTES, 0);
                        mask.unpack_with(word, &guarded, &mut unpacked);
                        self.check_tail(header, mask, rank, &unpacked, tails.get(index));
                    }
                    (None, Some(pages)) => {
                        pages.key(rank, &mut unpacked);
                        self.check_length(header, mask, rank, &unpacked);
                    }
                    (None, None) if key.is_none() => mask.unpack(word, &mut unpacked),
                    (None, None) => unpacked.extend_from_slice(key.unwrap_or_default()),
                }
                if let Some(key) = key.filter(|&key| key != unpacked) {
                    self.wrong_element(header, Tag::KEYS, rank, &hex(&unpacked), key);
                }
                self.check_byte_key(header, mask, rank, &unpacked, word, previous.as_deref());
                previous = Some(unpacked.clone());
            } else if let Some(key) = key {
                push_native_key(header.key_type, header.key_of(word), &mut unpacked);
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

    /// Checks the length of a key of TEXT, which no word and no column limits.
    fn check_length(&self, header: &Header, mask: &Mask, rank: u64, key: &[u8]) {
        let (length, most) = (key.len(), mask.key_bytes_max());
        if length > most || mask.is_fixed() && length < most {
            let wanted = if mask.is_fixed() { "a key of" } else { "a key of at most" };
            self.wrong_element(header, Tag::KEYS, rank, &format!("{wanted} {most} bytes"), key);
        }
    }

    fn wrong_element(&self, header: &Header, tag: Tag, rank: u64, expected: &str, found: &[u8]) {
        let place = COLUMNS.iter().find(|column| column.0 == tag).and_then(|(_, place)| place(header));
        let page = header.text.filter(|_| tag == Tag::KEYS).map(|text| self.text_place(text, rank));
        let (section, at, length) = match (place, page) {
            (_, Some((at, length))) => (Tag::TEXT.name(), at, length),
            (Some(place), None) => {
                let of = |rank| self.offset_of(place, rank).unwrap_or(0);
                let (start, end) = place.fixed_element(rank).unwrap_or_else(|| (of(rank), of(rank + 1)));
                (tag.name(), place.data_offset().saturating_add(start), end.saturating_sub(start))
            }
            (None, None) => ("LINE", header.line_offset(header.geometry.place(rank).0), 64),
        };
        let text = if tag == Tag::VALUES && header.codes.is_some() {
            format!("value {rank} of those that are stored once must be valid")
        } else {
            format!("the element of rank {rank} must be that of its tuple")
        };
        self.rule(Code::Column, section, at, length, expected, hex(found), &text);
    }

    /// Checks that a tail is the one that follows from its key, including its free bits.
    fn check_tail(&self, header: &Header, mask: &Mask, rank: u64, key: &[u8], found: &[u8]) {
        let mut expected = Vec::new();
        if let Some(tail) = mask.tail() {
            tail.push(key, Chunk::compress, &mut expected);
        }
        if expected != found {
            self.wrong_element(header, Tag::TAIL, rank, &hex(&expected), found);
        }
    }

    pub(super) fn check_byte_key(
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
            (rank == 0, &block.min_key, block.min_key_len.get(), offset_in!(Superblock, min_key)),
            (
                rank + 1 == header.tuples,
                &block.max_key,
                block.max_key_len.get(),
                offset_in!(Superblock, max_key),
            ),
        ];
        for (here, prefix, length, offset) in ends {
            if here && (*prefix != bytes_prefix(key) || length as usize != key.len()) {
                let text = "the superblock must name the outermost keys";
                self.rule(Code::MinMax, "superblock", offset, 64, hex(key), hex(prefix), text);
            }
        }
    }

    fn check_value(&self, header: &Header, rank: u64, value: &[u8], line: &Line, slot: usize) {
        let geometry = header.geometry;
        let held = &line[geometry.values_at() + slot * geometry.value_bytes..][..geometry.value_bytes];
        if value != held {
            self.wrong_element(header, Tag::VALUES, rank, &hex(held), value);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(64).map(|byte| format!("{byte:02x}")).collect()
}
