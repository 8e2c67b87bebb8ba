//! Inputs: index files and columns in memory, read by ranges of ranks into dense columns.
//!
//! A file is read through its mapping. Each sum block is verified before anything is taken from it, so that a
//! damaged file gives an error which names it, and never an answer. [`Relation::key`] does not verify the
//! keys that it reads to cut the work: whatever they are, the cuts cover all ranks, and everything in them is
//! verified when it is read.

use super::chunk::{Field, Schema};
use super::columns::{key_at, slice};
use super::options::StreamOptions;
use crate::error::RelationError;
use crate::expr::{self, Point};
use pleach::{Index, KeyType, ReadError, ValueType};
use pleach_builder::rescale::Rescale;
use pleach_builder::{Column, Strings};
use pleach_format::approximate::Approximate;
use pleach_format::checksum::{SUM_BLOCK_BYTES, SUM_BYTES, crc32};
use pleach_format::interval::Ends;
use pleach_format::section::Tag;
use pleach_format::text::{PAGE_KEYS, SYMBOLS_BYTES};
use pleach_format::view::ColumnPlace;
use pleach_format::{FormatError, Meaning, Short, Word, codes, line};
use std::ops::Range;

/// A sorted relation: an index file, or columns.
#[derive(Clone, Copy)]
pub struct Relation<'a> {
    kind: Kind<'a>,
    /// Conversion of the keys to a finer unit.
    pub(super) keys: Option<Rescale>,
    /// Conversion of the values to a finer unit.
    pub(super) values: Option<Rescale>,
}

#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    File(&'a Index),
    Columns { name: &'a str, types: (KeyType, ValueType), keys: &'a Column, values: &'a Column },
}

/// Names of an input, in errors and as a part of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub key: String,
    pub value: String,
    pub key_logical: String,
    pub value_logical: String,
    /// Number of different keys, if they are shorter than those they stand for.
    pub approximate: Option<u64>,
    /// Keys begin intervals.
    pub is_interval: bool,
}

impl<'a> Relation<'a> {
    /// Makes a relation of an open index file.
    #[must_use]
    pub fn from_index(index: &'a Index) -> Self {
        Self { kind: Kind::File(index), keys: None, values: None }
    }

    /// Makes a relation of columns in memory. The keys are in order, and are encoded (see
    /// [`pleach_format::key`]) or byte strings. The values are bits or byte strings, `None` if there are
    /// none. O(keys).
    ///
    /// # Errors
    /// [`RelationError::Unsorted`], [`RelationError::Lengths`] and [`RelationError::ColumnType`], with the
    /// relation's `name`.
    pub fn from_columns(
        name: &'a str,
        types: (KeyType, ValueType),
        keys: &'a Column,
        values: &'a Column,
    ) -> Result<Self, RelationError> {
        let lengths = (keys.len() as u64, values.len() as u64);
        let wrong = matches!(values, Column::None) != (types.1 == ValueType::None);
        if wrong || (types.1 != ValueType::None && lengths.0 != lengths.1) {
            let (keys, values) = lengths;
            return Err(RelationError::Lengths { input: name.to_owned(), keys, values });
        }
        let of_type = [
            fault(keys, &Column::for_key(types.0), types.0.bytes(), types.0 == KeyType::Utf8)
                .map(|fault| ("keys", types.0.to_string(), fault)),
            fault(values, &Column::for_value(types.1), types.1.bytes(), types.1 == ValueType::Utf8)
                .map(|fault| ("values", types.1.to_string(), fault)),
        ];
        if let Some((what, expected, fault)) = of_type.into_iter().flatten().next() {
            return Err(RelationError::ColumnType { input: name.to_owned(), what, expected, fault });
        }
        fn fall<K: PartialOrd>(keys: impl Iterator<Item = K> + Clone) -> Option<usize> {
            keys.clone().zip(keys.skip(1)).position(|(key, next)| key > next)
        }
        let fall = match keys {
            Column::None => None,
            Column::U32(words) => fall(words.iter()),
            Column::U64(words) => fall(words.iter()),
            Column::U128(words) => fall(words.iter()),
            Column::Bytes(strings) => fall((0..strings.len()).map(|at| strings.get(at))),
        };
        match fall {
            Some(at) => Err(RelationError::Unsorted { input: name.to_owned(), rank: at as u64 + 1 }),
            None => {
                let kind = Kind::Columns { name, types, keys, values };
                Ok(Self { kind, keys: None, values: None })
            }
        }
    }

    /// Number of tuples.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self.kind {
            Kind::File(index) => index.len(),
            Kind::Columns { keys, .. } => keys.len() as u64,
        }
    }

    /// Returns true if the relation has no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the key type.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        match (&self.keys, self.kind) {
            (Some(rescale), _) => rescale.key_type(),
            (None, Kind::File(index)) => index.key_type(),
            (None, Kind::Columns { types, .. }) => types.0,
        }
    }

    /// Returns the value type.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        match (&self.values, self.kind) {
            (Some(rescale), _) => rescale.value_type(),
            (None, Kind::File(index)) => index.value_type(),
            (None, Kind::Columns { types, .. }) => types.1,
        }
    }

    pub(super) fn types(&self) -> (KeyType, ValueType) {
        (self.key_type(), self.value_type())
    }

    /// Returns its name in messages: the path of a file.
    #[must_use]
    pub fn name(&self) -> String {
        match self.kind {
            Kind::File(index) if index.path().as_os_str().is_empty() => "bytes in memory".to_owned(),
            Kind::File(index) => index.path().display().to_string(),
            Kind::Columns { name, .. } => name.to_owned(),
        }
    }

    fn damaged(index: &Index, section: &'static str, source: ReadError) -> RelationError {
        RelationError::Damaged { path: index.path().to_owned(), section, source }
    }

    /// Verifies what all reads depend on: the lists of sums, the names, the map of byte keys to words, and
    /// values that are stored once. O(file / 2048 + such values).
    pub(super) fn prepare(&self) -> Result<Names, RelationError> {
        let Kind::File(index) = self.kind else { return Ok(Names::default()) };
        for tag in [Tag::META, Tag::LINE, Tag::MASK, Tag::TAIL, Tag::KEYS, Tag::TEXT, Tag::VALUES, Tag::CODES]
        {
            let Some(section) = index.header().section(tag) else { continue };
            let (offset, length) = (section.entry.sums_offset.get(), section.entry.sums_bytes());
            let (expected, found) = (section.entry.sums_crc.get(), crc32(bytes(index, offset, length)?));
            if expected != found {
                index.check_mapping().map_err(|source| Self::damaged(index, "SUMS", source))?;
                let source = FormatError::Checksum { what: "SUMS", offset, expected, found };
                return Err(Self::damaged(index, "SUMS", source.into()));
            }
            if tag == Tag::META || tag == Tag::MASK {
                verify(index, tag, section.offset(), section.entry.length.get())?;
            }
            if tag == Tag::TEXT {
                verify(index, tag, section.offset(), SYMBOLS_BYTES as u64)?;
            }
        }
        if let Some(place) = index.header().values.filter(|_| index.header().codes.is_some()) {
            verify_column(index, Tag::VALUES, Some(place), 0..place.shape.elements)?;
        }
        let meta = index.meta().map_err(|source| Self::damaged(index, "META", source))?;
        let ends = Ends::of(index.key_type(), index.value_type(), &meta.value_logical, &meta.interval);
        let logical = Meaning::new(index.key_type(), &meta.key_logical).logical;
        let approximate = Approximate::of(&logical, &meta.approximate, index.len());
        Ok(Names {
            key: meta.key_name,
            value: meta.value_name,
            key_logical: meta.key_logical,
            value_logical: meta.value_logical,
            approximate: approximate.map(|found| found.distinct),
            is_interval: ends.is_some(),
        })
    }

    /// Returns the key at a rank, not verified.
    pub(super) fn key(&self, rank: u64) -> Result<Point, RelationError> {
        match self.kind {
            Kind::File(index) if self.key_type().is_bytes() => {
                let keys = index.strings::<()>().map_err(|_| mismatch(index))?;
                let key = keys.key(rank).map_err(|source| Self::damaged(index, "LINE", source))?;
                Ok(Point::Bytes(key.unwrap_or_default()))
            }
            Kind::File(index) => {
                let (at, slot) = index.header().geometry.place(rank);
                let bytes = bytes(index, index.header().line_offset(at), 64)?;
                let bytes = bytes.first_chunk().ok_or_else(|| mismatch(index))?;
                let header = index.header();
                let key = header.key_of(line::word(bytes, header.geometry.key_bytes, slot));
                let near = |word, bytes| self.keys.map_or(word, |rescale| rescale.nearest(word, bytes));
                Ok(Point::Word(match header.key_type.bytes() {
                    width @ (4 | 8) => near(key as u64, width).into(),
                    _ => key,
                }))
            }
            Kind::Columns { keys, .. } => Ok(key_at(keys, rank as usize)),
        }
    }

    /// Returns an upper bound of the bytes of strings in tuples of consecutive ranks. Not verified: a damaged
    /// file may give any number, which is detected when the tuples are read.
    fn strings_bytes(&self, ranks: Range<u64>) -> Result<u64, RelationError> {
        let index = match self.kind {
            Kind::File(index) => index,
            Kind::Columns { keys, values, .. } => {
                let of = |column: &Column| match column {
                    Column::Bytes(strings) => strings.range_bytes(ranks.start as usize..ranks.end as usize),
                    _ => 0,
                };
                return Ok((of(keys) + of(values)) as u64);
            }
        };
        let header = index.header();
        let mut total = 0u64;
        let values = header.values.filter(|_| header.codes.is_none());
        for (place, mask) in [(header.keys, header.mask.as_ref()), (values, None)] {
            let each = |bytes: u64| (ranks.end - ranks.start).saturating_mul(bytes);
            let of_column = match (place, mask) {
                (Some(place), _) if place.shape.offset_bytes == 0 => each(place.shape.element_bytes),
                (Some(place), _) => {
                    offset(index, place, ranks.end)?.saturating_sub(offset(index, place, ranks.start)?)
                }
                // Keys that are made of words are no longer than the longest one, whose length comes first in
                // MASK.
                (None, Some(mask)) => {
                    let most = each(u32::read(bytes(index, mask.offset(), 4)?).into());
                    match header.pages() {
                        None => most,
                        Some(place) => {
                            let pages = pages_of(&ranks);
                            let (from, to) =
                                (offset(index, place, pages.start)?, offset(index, place, pages.end)?);
                            // A key has the bytes of a head and eight times its codes at most.
                            most.min(to.saturating_sub(from).saturating_mul(PAGE_KEYS as u64))
                        }
                    }
                }
                (None, None) => 0,
            };
            total = total.saturating_add(of_column);
        }
        if let Some((codes, place)) = header.codes.zip(header.values) {
            for rank in ranks {
                let (start, end) = place_of(index, (codes, place), rank)?;
                total = total.saturating_add(end.saturating_sub(start));
            }
        }
        Ok(total)
    }

    /// Returns the end of the longest prefix of `ranks` whose strings have at most `limit_bytes` bytes, but
    /// at least one rank if there are any. O(log ranks).
    pub(super) fn within(&self, ranks: Range<u64>, limit_bytes: u64) -> Result<u64, RelationError> {
        let is_plain = !self.key_type().is_bytes() && !self.value_type().is_bytes();
        if is_plain || ranks.is_empty() || self.strings_bytes(ranks.clone())? <= limit_bytes {
            return Ok(ranks.end);
        }
        let (mut fits, mut exceeds) = (ranks.start + 1, ranks.end);
        while fits + 1 < exceeds {
            let middle = fits + (exceeds - fits) / 2;
            let is_within = self.strings_bytes(ranks.start..middle)? <= limit_bytes;
            if is_within { fits = middle } else { exceeds = middle }
        }
        Ok(fits)
    }

    /// Returns the schema of its tuples; verifies what [`Relation::prepare`] does.
    pub(super) fn schema(&self) -> Result<Schema, RelationError> {
        let names = self.prepare()?;
        let value_type = self.value_type();
        Ok(Schema {
            key_type: self.key_type(),
            key_name: names.key,
            key_logical: names.key_logical,
            values: Field { name: names.value, value_type, logical: names.value_logical },
            right: None,
            has_right_keys: false,
            has_sides: false,
            is_sorted: true,
            is_interval: names.is_interval,
            approximate: names.approximate,
        })
    }

    /// Does the same as [`Relation::schema`], but refuses keys that are shorter than those they stand for, unless
    /// `options` permit them.
    pub(super) fn exact_schema(&self, options: &StreamOptions<'_>) -> Result<Schema, RelationError> {
        let schema = self.schema()?;
        match schema.approximate {
            Some(_) if !options.approximate => Err(RelationError::Approximate { input: self.name() }),
            _ => Ok(schema),
        }
    }

    /// Returns the schema for expressions on this relation.
    ///
    /// # Errors
    /// [`RelationError::Damaged`] if the names are damaged.
    pub fn expr_schema(&self) -> Result<expr::Schema, RelationError> {
        Ok((&self.schema()?).into())
    }

    /// Returns the first rank whose key is at least `point`, or above it if `is_upper`; verifies every key
    /// that it reads. O(log) blocks.
    pub(super) fn verified_bound(&self, point: &Point, is_upper: bool) -> Result<u64, RelationError> {
        first_not(0..self.len(), |rank| {
            let key = self.verified_key(rank)?;
            Ok(key < *point || (is_upper && key == *point))
        })
    }

    /// Returns the first rank, `from` or above, whose key is not `below`, which is true for all ranks before
    /// it; verifies every key that it reads. O(log distance) blocks.
    pub(super) fn verified_from(
        &self,
        from: u64,
        below: impl Fn(&Point) -> bool,
    ) -> Result<u64, RelationError> {
        let is_below = |rank| Ok(below(&self.verified_key(rank)?));
        let (mut low, mut step) = (from.min(self.len()), 1);
        loop {
            let probe = low.saturating_add(step - 1);
            if probe >= self.len() {
                return first_not(low..self.len(), is_below);
            }
            if !is_below(probe)? {
                return first_not(low..probe, is_below);
            }
            (low, step) = (probe + 1, step * 2);
        }
    }

    /// Returns the key at a rank, which must exist. Verified.
    pub(super) fn verified_key(&self, rank: u64) -> Result<Point, RelationError> {
        Ok(key_at(&self.read(rank..rank + 1, false)?.0, 0))
    }

    /// Returns the first rank in `within` whose key is not `below`. O(log) keys.
    pub(super) fn bound(
        &self,
        within: Range<u64>,
        below: impl Fn(&Point) -> bool,
    ) -> Result<u64, RelationError> {
        first_not(within, |rank| Ok(below(&self.key(rank)?)))
    }

    /// Reads keys, and values if requested, of consecutive ranks, which must exist. Verified.
    pub(super) fn read(
        &self,
        ranks: Range<u64>,
        wants_values: bool,
    ) -> Result<(Column, Column), RelationError> {
        let (mut keys, mut values) = self.stored(ranks, wants_values)?;
        for (rescale, column, role) in [(&self.keys, &mut keys, "key"), (&self.values, &mut values, "value")]
        {
            if let Some(rescale) = rescale {
                *column = rescale.column(column).map_err(|text| RelationError::Rescale {
                    input: self.name(),
                    role,
                    text,
                })?;
            }
        }
        Ok((keys, values))
    }

    /// Refuses keys that have no word in the finer unit; such keys are at the ends.
    pub(super) fn check_ends(&self) -> Result<(), RelationError> {
        if self.keys.is_some() && !self.is_empty() {
            self.read(0..1, false)?;
            self.read(self.len() - 1..self.len(), false)?;
        }
        Ok(())
    }

    /// Reads as [`Relation::read`] does, in the units of the file.
    fn stored(&self, ranks: Range<u64>, wants_values: bool) -> Result<(Column, Column), RelationError> {
        let index = match self.kind {
            Kind::File(index) => index,
            Kind::Columns { keys, values, .. } => {
                let ranks = ranks.start as usize..ranks.end as usize;
                let values = if wants_values { slice(values, ranks.clone()) } else { Column::None };
                return Ok((slice(keys, ranks), values));
            }
        };
        if ranks.is_empty() {
            let values = if wants_values { Column::for_value(index.value_type()) } else { Column::None };
            return Ok((Column::for_key(index.key_type()), values));
        }
        let header = index.header();
        let (first, last) = (header.geometry.place(ranks.start).0, header.geometry.place(ranks.end - 1).0);
        let (offset, length) = (header.line_offset(first), (last - first + 1) * 64);
        verify(index, Tag::LINE, offset, length)?;
        let lines = bytes(index, offset, length)?;
        let keys = if index.key_type().is_bytes() {
            verify_column(index, Tag::TAIL, header.tails, ranks.clone())?;
            verify_column(index, Tag::KEYS, header.keys, ranks.clone())?;
            verify_column(index, Tag::TEXT, header.pages(), pages_of(&ranks))?;
            byte_keys(index, ranks.clone())?
        } else {
            let geometry = header.geometry;
            let tuples = (ranks.clone(), geometry.tuples_per_line(), 0);
            match (&header.short, geometry.key_bytes) {
                (None, 4) => Column::U32(words(lines, tuples)),
                (None, 8) => Column::U64(words(lines, tuples)),
                (None, _) => Column::U128(words(lines, tuples)),
                (Some(short), 4) => whole_keys(short, words::<u32>(lines, tuples)),
                (Some(short), _) => whole_keys(short, words::<u64>(lines, tuples)),
            }
        };
        let value_type = index.value_type();
        let values = if !wants_values || value_type == ValueType::None {
            Column::None
        } else if let Some(places) = header.codes.zip(header.values) {
            verify_column(index, Tag::CODES, header.codes, ranks.clone())?;
            coded_values(index, places, ranks)?
        } else if value_type.is_bytes() {
            verify_column(index, Tag::VALUES, header.values, ranks.clone())?;
            byte_values(index, header.values.ok_or_else(|| mismatch(index))?, ranks)?
        } else {
            let tuples = (ranks, header.geometry.tuples_per_line(), header.geometry.values_at());
            match value_type.bytes() {
                4 => Column::U32(words(lines, tuples)),
                _ => Column::U64(words(lines, tuples)),
            }
        };
        index.check_mapping().map_err(|source| Self::damaged(index, "LINE", source))?;
        Ok((keys, values))
    }
}

/// Returns the first rank in `within` that is not `below`, which is true for all ranks before it. O(log)
/// calls.
fn first_not(
    within: Range<u64>,
    below: impl Fn(u64) -> Result<bool, RelationError>,
) -> Result<u64, RelationError> {
    let (mut low, mut high) = (within.start, within.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

/// Returns the error of a header that contradicts a section.
fn mismatch(index: &Index) -> RelationError {
    let found = index.file_bytes();
    Relation::damaged(index, "LINE", FormatError::Truncated { expected: found, found }.into())
}

/// Brings bytes of a remote file; does nothing for others.
fn bring(index: &Index, tag: Tag, offset: u64, length: u64) -> Result<(), RelationError> {
    index.bring(offset, length).map_err(|source| match source {
        ReadError::Fetch { .. } => RelationError::Fetch { path: index.path().to_owned(), source },
        source => Relation::damaged(index, tag.name(), source),
    })
}

/// Returns bytes of a file in place. Other processes may change them, so they are read as numbers and bytes
/// for which any value is valid, and nothing relies on reading the same bytes twice.
fn bytes(index: &Index, offset: u64, length: u64) -> Result<&[u8], RelationError> {
    bring(index, Tag::LINE, offset, length)?;
    // SAFETY: this module makes no text of the bytes, reads them through checked slices, and checks the
    // mapping after it has read them and before it returns any of them.
    let all = unsafe { index.bytes_in_place() };
    let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    range.and_then(|(offset, length)| all.get(offset..)?.get(..length)).ok_or_else(|| {
        let (expected, found) = (offset.saturating_add(length), all.len() as u64);
        Relation::damaged(index, "LINE", FormatError::Truncated { expected, found }.into())
    })
}

/// Verifies each sum block of a section that the `length` bytes from byte `offset` of the file touch.
fn verify(index: &Index, tag: Tag, offset: u64, length: u64) -> Result<(), RelationError> {
    const BLOCK: u64 = SUM_BLOCK_BYTES as u64;
    let Some(section) = index.header().section(tag) else { return Ok(()) };
    if length == 0 {
        return Ok(());
    }
    bring(index, tag, offset, length)?;
    let list = bytes(index, section.entry.sums_offset.get(), section.entry.sums_bytes())?;
    let (sums, _) = list.as_chunks::<SUM_BYTES>();
    let from = offset.saturating_sub(section.offset()) / BLOCK;
    let to = offset.saturating_add(length - 1).saturating_sub(section.offset()) / BLOCK;
    for block in from..=to {
        let start = section.offset() + block * BLOCK;
        let block_bytes = BLOCK.min(section.end.saturating_sub(start));
        let found = index.header().bound_sum(tag, block, bytes(index, start, block_bytes)?);
        let expected = sums.get(block as usize).map_or(!found, |&sum| u32::from_le_bytes(sum));
        if expected != found {
            // Zeros in place of a part that was cut off are not damage.
            index.check_mapping().map_err(|source| Relation::damaged(index, tag.name(), source))?;
            let source = FormatError::Checksum { what: tag.name(), offset: start, expected, found };
            return Err(Relation::damaged(index, tag.name(), source.into()));
        }
    }
    Ok(())
}

/// Verifies the elements of a column.
fn verify_column(
    index: &Index,
    tag: Tag,
    place: Option<ColumnPlace>,
    ranks: Range<u64>,
) -> Result<(), RelationError> {
    let Some(place) = place else { return Ok(()) };
    let data = place.data_offset();
    if place.shape.offset_bytes == 0 {
        let width = place.shape.element_bytes;
        return verify(index, tag, data + ranks.start * width, (ranks.end - ranks.start) * width);
    }
    let width = place.shape.offset_bytes;
    verify(index, tag, place.offset + ranks.start * width, (ranks.end - ranks.start + 1) * width)?;
    let from = offset(index, place, ranks.start)?;
    let mut to = from;
    for rank in ranks.start + 1..=ranks.end {
        let next = offset(index, place, rank)?;
        if next < to || next > place.shape.data_bytes {
            index.check_mapping().map_err(|source| Relation::damaged(index, tag.name(), source))?;
            let (rule, offset) =
                ("offsets must ascend inside the column".into(), place.offset + rank * width);
            let source = FormatError::Corrupt { what: "column", offset, rule, found: next };
            return Err(Relation::damaged(index, tag.name(), source.into()));
        }
        to = next;
    }
    verify(index, tag, data.saturating_add(from), to.saturating_sub(from))
}

/// Returns the pages of keys that hold these ranks.
fn pages_of(ranks: &Range<u64>) -> Range<u64> {
    ranks.start / PAGE_KEYS as u64..ranks.end.div_ceil(PAGE_KEYS as u64)
}

/// Returns the offset of an element of a varying column, in its data.
fn offset(index: &Index, place: ColumnPlace, rank: u64) -> Result<u64, RelationError> {
    let width = place.shape.offset_bytes;
    let bytes = bytes(index, place.offset + rank * width, width)?;
    Ok(if width == 4 { u32::read(bytes).into() } else { <u64 as Word>::read(bytes) })
}

/// Says why a column does not have the type of `like`: strings of `bytes` bytes, if that is not 0, or texts.
fn fault(column: &Column, like: &Column, bytes: usize, is_text: bool) -> Option<String> {
    let kind = |column: &Column| match column {
        Column::None => "no column",
        Column::U32(_) => "words of 4 bytes",
        Column::U64(_) => "words of 8 bytes",
        Column::U128(_) => "words of 16 bytes",
        Column::Bytes(_) => "byte strings",
    };
    if kind(column) != kind(like) {
        return Some(kind(column).to_owned());
    }
    let Column::Bytes(strings) = column else { return None };
    strings.iter().enumerate().find_map(|(rank, string)| {
        if bytes > 0 && string.len() != bytes {
            return Some(format!("{} bytes at rank {rank}", string.len()));
        }
        (is_text && std::str::from_utf8(string).is_err()).then(|| format!("invalid UTF-8 at rank {rank}"))
    })
}

/// Copies words from the lines of tuples; the first line holds the first rank, and the words begin at `at` in
/// a line.
fn words<B: Word>(lines: &[u8], (ranks, n, at): (Range<u64>, usize, usize)) -> Vec<B> {
    let tuples = (ranks.end - ranks.start) as usize;
    let mut words = Vec::with_capacity(tuples);
    let mut slot = (ranks.start % n as u64) as usize;
    for line in lines.as_chunks::<64>().0 {
        let end = n.min(slot + (tuples - words.len()));
        words.extend((slot..end).map(|slot| B::read(&line[at + slot * B::BYTES..])));
        slot = 0;
    }
    words
}

/// Returns the keys of short words.
fn whole_keys<S: Word>(short: &Short, words: Vec<S>) -> Column {
    if short.key_bytes() == 8 {
        return Column::U64(words.into_iter().map(|word| short.key(word.low_u64())).collect());
    }
    Column::U128(words.into_iter().map(|word| short.key(word.low_u64())).collect())
}

/// Returns the elements of a column that was verified.
fn byte_values(index: &Index, place: ColumnPlace, ranks: Range<u64>) -> Result<Column, RelationError> {
    let shape = place.shape;
    let data = bytes(index, place.data_offset(), shape.data_bytes)?;
    let at = |rank: u64| match shape.offset_bytes {
        0 => Ok(rank.saturating_mul(shape.element_bytes)),
        _ => offset(index, place, rank),
    };
    let mut values = Strings::default();
    let mut from = at(ranks.start)?;
    for rank in ranks {
        let to = at(rank + 1)?;
        // The offsets may have any value if the file is overwritten meanwhile.
        values.push(data.get(from as usize..to as usize).unwrap_or_default());
        from = to;
    }
    Ok(Column::Bytes(values))
}

/// Returns where the value of a tuple is among values that are stored once, in their data.
fn place_of(
    index: &Index,
    (codes, values): (ColumnPlace, ColumnPlace),
    rank: u64,
) -> Result<(u64, u64), RelationError> {
    let (at, width) = (codes.data_offset() + rank * codes.shape.element_bytes, codes.shape.element_bytes);
    let code = codes::code(bytes(index, at, width)?);
    if code >= values.shape.elements {
        index.check_mapping().map_err(|source| Relation::damaged(index, "CODE", source))?;
        let rule = "a code must be that of a value".into();
        let source = FormatError::Corrupt { what: "codes", offset: at, rule, found: code };
        return Err(Relation::damaged(index, "CODE", source.into()));
    }
    match values.shape.offset_bytes {
        0 => Ok((code * values.shape.element_bytes, (code + 1) * values.shape.element_bytes)),
        _ => Ok((offset(index, values, code)?, offset(index, values, code + 1)?)),
    }
}

/// Returns values that are stored once; the codes and the values were verified.
fn coded_values(
    index: &Index,
    places: (ColumnPlace, ColumnPlace),
    ranks: Range<u64>,
) -> Result<Column, RelationError> {
    let data = bytes(index, places.1.data_offset(), places.1.shape.data_bytes)?;
    let mut values = Strings::default();
    for rank in ranks {
        let (start, end) = place_of(index, places, rank)?;
        // The offsets may have any value if the file is overwritten meanwhile.
        values.push(data.get(start as usize..end as usize).unwrap_or_default());
    }
    Ok(Column::Bytes(values))
}

fn byte_keys(index: &Index, ranks: Range<u64>) -> Result<Column, RelationError> {
    let failed = |source| Relation::damaged(index, "KEYS", source);
    let view = index.strings::<()>().map_err(|_| mismatch(index))?;
    let mut keys = Strings::default();
    for tuple in view.ranks(ranks) {
        keys.push(&tuple.map_err(failed)?.0);
    }
    Ok(Column::Bytes(keys))
}
