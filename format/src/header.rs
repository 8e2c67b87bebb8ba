//! The header of a file: superblock and section table, every number of which is checked against the length of
//! the file before it is used.

use crate::btree::BtreeGeometry;
use crate::checksum::{SUM_BYTES, binding, crc32, sum_blocks};
use crate::classic::paged::{Form, Paged};
use crate::classic::{self, Geometry};
use crate::codes;
use crate::column::ColumnGeometry;
use crate::error::{FormatError, SECTION_TABLE};
use crate::grid::GridGeometry;
use crate::harmonia::HarmoniaGeometry;
use crate::layout::{LINE_BYTES, LineGeometry, SpineGeometry, align_up};
use crate::mask::MASK_BYTES_MAX;
use crate::meta::META_BYTES_MAX;
use crate::packed::PackedGeometry;
use crate::rules::{Breach, Rule};
use crate::section::{
    ARRAY_ALIGN, Entry, HUGE_PAGE_BYTES, LEVELS_MAX, LineParameters, Parameters, REQUIRED, SECTION_ALIGN,
    SECTIONS_MAX, SpineParameters, TABLE_BYTES, TABLE_OFFSET, Tag, decode_table, entry_offset,
};
use crate::short::{RUNS_MAX, Run, Short};
use crate::spine::Encoding;
use crate::superblock::{KEY_PREFIX_BYTES, SUPERBLOCK_BYTES, Superblock, key_word};
use crate::text::{SYMBOLS_BYTES, TextGeometry};
use crate::trie::{PAGES_MAX, TrieGeometry};
use crate::types::{KeyType, ValueType};

/// Bytes of the superblock and the section table.
pub const HEAD_BYTES: usize = SUPERBLOCK_BYTES + TABLE_BYTES;
/// Bytes of the smallest file.
pub const FILE_BYTES_MIN: u64 = (HEAD_BYTES + CLOSING_BYTES) as u64;
/// Bytes after the last section: copies of the section table and, at the very end, of the superblock.
pub const CLOSING_BYTES: usize = TABLE_BYTES + SUPERBLOCK_BYTES;

/// A section, and the end of its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its entry.
    pub entry: Entry,
    /// First byte after its padding: the next section's offset, or the closing section table.
    pub end: u64,
}

impl Section {
    /// Returns the offset of its first byte.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.entry.offset.get()
    }
    /// Returns its bytes with padding: those that its sums cover.
    #[must_use]
    pub fn extent(&self) -> u64 {
        self.end - self.offset()
    }
}

/// Everything that was checked about a file when it was opened.
#[derive(Clone, Debug)]
pub struct Header {
    /// The superblock.
    pub superblock: Superblock,
    /// Type of the keys.
    pub key_type: KeyType,
    /// Type of the values.
    pub value_type: ValueType,
    /// Number of tuples.
    pub tuples: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// All sections, in file order.
    pub sections: Vec<Section>,
    /// Layout of tuples in lines.
    pub geometry: LineGeometry,
    /// What the words are, if they are shorter than the numbers that are keys.
    pub short: Option<Short>,
    /// Offset of the tuple lines.
    pub lines_offset: u64,
    /// Number of tuple lines.
    pub lines: u64,
    /// Levels of the spine; none in a file without one, whose tuple lines are then one group.
    pub spine: SpineGeometry,
    /// Offset of the spine; 0 if there is none.
    pub spine_offset: u64,
    /// Number of spine lines that are flagged inexact.
    pub inexact_lines: u64,
    /// Offset and shape of the grid, if there is one.
    pub grid: Option<(u64, GridGeometry)>,
    /// The MASK section; only in files with byte keys.
    pub mask: Option<Section>,
    /// The tails, which contain the bits that words omit, if the file has tails.
    pub tails: Option<ColumnPlace>,
    /// The key column, if there is one.
    pub keys: Option<ColumnPlace>,
    /// Offset and shape of the byte keys by page, if the file has them.
    pub text: Option<(u64, TextGeometry)>,
    /// Offset and size of the trie over these pages, if there is one.
    pub trie: Option<(u64, TrieGeometry)>,
    /// The value column, if there is one. It has one element per tuple, or, with codes, one per value.
    pub values: Option<ColumnPlace>,
    /// The codes of the values, if each of them is stored once.
    pub codes: Option<ColumnPlace>,
    /// Offset and shape of the compressed key column, if there is one.
    pub packed: Option<(u64, PackedGeometry)>,
    /// Offset and shape of Harmonia's tree, if there is one.
    pub harmonia: Option<(u64, HarmoniaGeometry)>,
    /// Offset and shape of the contiguous B+tree, if there is one.
    pub btree: Option<(u64, BtreeGeometry)>,
    /// Offset and shape of the FAST tree, if there is one.
    pub fast: Option<(u64, FastShape)>,
}

/// The shape of a FAST tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastShape {
    /// Its geometry.
    pub geometry: Geometry,
    /// How its pages store keys.
    pub form: Form,
    /// Bytes of the section.
    pub bytes: u64,
}

/// A column and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnPlace {
    /// Offset of the section.
    pub offset: u64,
    /// Shape of the column.
    pub shape: ColumnGeometry,
}

impl ColumnPlace {
    /// Returns the offset of the data in the file.
    #[must_use]
    pub fn data_offset(&self) -> u64 {
        self.offset + self.shape.data_at
    }

    /// Returns the byte range of an element in the data; `None` for a column of varying elements, or past the
    /// end.
    #[must_use]
    pub fn fixed_element(&self, rank: u64) -> Option<(u64, u64)> {
        let bytes = self.shape.element_bytes;
        (bytes > 0 && rank < self.shape.elements).then(|| (rank * bytes, rank * bytes + bytes))
    }
}

fn corrupt(what: &'static str, offset: u64, rule: Breach, found: u64) -> FormatError {
    FormatError::Corrupt { what, offset, rule, found }
}

/// Reassembles the header of a damaged file from the copies at its end: the superblock, the section table, or
/// both. `closing` is the last [`CLOSING_BYTES`] of the file. Returns the repaired head and the header;
/// `None` if no combination is valid.
#[must_use]
pub fn through_copies(head: &[u8], closing: &[u8], file_bytes: u64) -> Option<(Vec<u8>, Header)> {
    if head.len() < HEAD_BYTES || closing.len() != CLOSING_BYTES {
        return None;
    }
    let (table, superblock) = closing.split_at(TABLE_BYTES);
    [(true, false), (false, true), (true, true)].into_iter().find_map(|(first, second)| {
        let mut repaired = head[..HEAD_BYTES].to_vec();
        if first {
            repaired[..SUPERBLOCK_BYTES].copy_from_slice(superblock);
        }
        if second {
            repaired[SUPERBLOCK_BYTES..].copy_from_slice(table);
        }
        let header = Header::parse(&repaired, file_bytes).ok()?;
        Some((repaired, header))
    })
}

impl Header {
    /// Checks the superblock and the section table of a file of `file_bytes` bytes. `head` is the first
    /// [`HEAD_BYTES`] of the file, or all of it if it is shorter. O(sections).
    ///
    /// # Errors
    /// The errors of [`Superblock::decode`]; [`FormatError::Truncated`] or [`FormatError::Extended`] if the
    /// length of the file is wrong; [`FormatError::Checksum`] for the section table; [`FormatError::Section`]
    /// for an unknown section that is required; [`FormatError::Corrupt`] for a stored number that breaks a
    /// rule.
    pub fn parse(head: &[u8], file_bytes: u64) -> Result<Self, FormatError> {
        let superblock = Superblock::decode(head, 0)?;
        let stored_bytes = superblock.file_bytes.get();
        if file_bytes < stored_bytes {
            return Err(FormatError::Truncated { expected: stored_bytes, found: file_bytes });
        }
        if file_bytes > stored_bytes {
            return Err(FormatError::Extended { expected: stored_bytes, found: file_bytes });
        }
        let what = "superblock";
        if file_bytes < FILE_BYTES_MIN || !file_bytes.is_multiple_of(SECTION_ALIGN) {
            return Err(corrupt(
                what,
                offset_in!(Superblock, file_bytes),
                Rule::Pages.broken("file length must be whole 4 KiB pages, four at least"),
                file_bytes,
            ));
        }
        let key_code = superblock.key_type.get();
        let key_type = KeyType::from_code(key_code, superblock.key_bytes.get()).ok_or(corrupt(
            what,
            offset_in!(Superblock, key_type),
            Rule::KeyType.broken("key type must be a known code, of its size"),
            key_code.into(),
        ))?;
        let value_code = superblock.value_type.get();
        let value_type = ValueType::from_code(value_code, superblock.value_bytes.get()).ok_or(corrupt(
            what,
            offset_in!(Superblock, value_type),
            Rule::ValueType.broken("value type must be a known code, of its size"),
            value_code.into(),
        ))?;
        if superblock.unique.get() > 1 {
            return Err(corrupt(
                what,
                offset_in!(Superblock, unique),
                Rule::Unique.broken("unique must be 0 or 1"),
                superblock.unique.get().into(),
            ));
        }
        let (table_offset, table_bytes) = (superblock.table_offset.get(), superblock.table_bytes.get());
        if (table_offset, table_bytes) != (TABLE_OFFSET, TABLE_BYTES as u64) {
            return Err(corrupt(
                what,
                offset_in!(Superblock, table_offset),
                Rule::TablePlace.broken("the section table must be the second 4 KiB"),
                table_offset,
            ));
        }
        let count = superblock.sections.get() as usize;
        if count > SECTIONS_MAX {
            return Err(corrupt(
                what,
                offset_in!(Superblock, sections),
                Rule::TableEntries.broken("a section table holds at most 31 entries"),
                count as u64,
            ));
        }
        let Some(table) = head.get(TABLE_OFFSET as usize..HEAD_BYTES) else {
            return Err(FormatError::Truncated { expected: HEAD_BYTES as u64, found: head.len() as u64 });
        };
        let (expected, found) = (superblock.table_crc.get(), crc32(table));
        if expected != found {
            return Err(FormatError::Checksum { what: SECTION_TABLE, offset: TABLE_OFFSET, expected, found });
        }
        let sections = check_table(&decode_table(table, count), file_bytes)?;
        Self::check_sections(superblock, key_type, value_type, sections)
    }

    /// Checks the sections that searches depend on: their places are sound, their parameters may not be.
    fn check_sections(
        superblock: Superblock,
        key_type: KeyType,
        value_type: ValueType,
        sections: Vec<Section>,
    ) -> Result<Self, FormatError> {
        let tuples = superblock.tuples.get();
        let found = Found(&sections);
        let (geometry, short, lines_offset) = found.lines(key_type, value_type, tuples)?;
        let word_bytes = geometry.key_bytes;
        let lines = geometry.lines(tuples);
        let (spine, inexact_lines, spine_offset) = found.spine(lines, word_bytes)?;
        let keys = found.column(Tag::KEYS, tuples, Some(key_type.bytes()))?;
        let (values, codes) = found.values(value_type, tuples)?;
        // Tails may have any size here; the mask specifies it.
        let tails = found.column(Tag::TAIL, tuples, None)?;
        found.fit(key_type, value_type)?;
        let (text, trie) = found.text(tuples)?;
        if text.is_some() && (!key_type.is_bytes() || tails.is_some() || keys.is_some()) {
            return Err(found.missing(
                Rule::Text.broken("TEXT is for byte keys, and there is no TAIL or KEYS section beside it"),
            ));
        }
        let packed = found.shape(
            Tag::PACK,
            Rule::Packed.broken("parameters must be those of its keys"),
            |stored, elements, length| {
                PackedGeometry::from_parameters(stored, elements, length).filter(|shape| {
                    shape.keys == tuples && !key_type.is_bytes() && shape.word_bytes == word_bytes as u64
                })
            },
        )?;
        let grid = found.shape(
            Tag::GRID,
            Rule::Grid.broken("parameters must be those of its units"),
            |stored, elements, length| {
                GridGeometry::from_parameters(stored, elements, length)
                    .filter(|shape| shape.word_bytes == word_bytes as u64)
            },
        )?;
        let harmonia = found.shape(
            Tag::HARMONIA,
            Rule::Harmonia.broken("parameters must be those of its tree"),
            |stored, elements, length| {
                HarmoniaGeometry::from_parameters(stored, elements, length).filter(|shape| {
                    shape.tuples == tuples
                        && shape.word_bytes as usize == word_bytes
                        && shape.value_bytes as usize == value_type.line_bytes()
                })
            },
        )?;
        let btree = found.shape(
            Tag::BTREE,
            Rule::Btree.broken("parameters must be those of its tree"),
            |stored, elements, length| {
                BtreeGeometry::from_parameters(stored, elements, length).filter(|shape| {
                    shape.shape.tuples() == tuples
                        && shape.word_bytes as usize == word_bytes
                        && shape.value_bytes as usize == value_type.line_bytes()
                })
            },
        )?;
        let rule = Rule::Fast.broken("parameters must be those of its tree");
        let fast = found.shape(Tag::FAST, rule, |stored, elements, bytes| {
            fast_shape(&stored, elements, bytes)
                .filter(|shape| elements == tuples && shape.geometry.key_bytes as usize == word_bytes)
        })?;
        let mask = found.get(Tag::MASK).map(|(section, _)| section);
        Ok(Self {
            superblock,
            mask,
            tails,
            keys,
            text,
            trie,
            values,
            codes,
            packed,
            harmonia,
            btree,
            fast,
            grid,
            key_type,
            value_type,
            tuples,
            file_bytes: superblock.file_bytes.get(),
            geometry,
            short,
            lines_offset,
            lines,
            spine,
            spine_offset,
            inexact_lines,
            sections,
        })
    }

    /// Returns the pages of byte keys as elements of a column, and its place, if keys are stored so.
    #[must_use]
    pub fn pages(&self) -> Option<ColumnPlace> {
        let place = |(offset, shape): (u64, TextGeometry)| ColumnPlace {
            offset: offset + SYMBOLS_BYTES as u64,
            shape: shape.column(),
        };
        self.text.map(place)
    }

    /// Reports whether the file states that all keys are different.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.superblock.unique.get() == 1
    }

    /// Returns the smallest and the largest encoded key, widened. Returns `None` for an empty file, and for
    /// byte keys.
    #[must_use]
    pub fn key_range(&self) -> Option<(u128, u128)> {
        let bytes = self.key_type.bytes();
        let (min, max) = (&self.superblock.min_key, &self.superblock.max_key);
        let there = self.tuples > 0 && !self.key_type.is_bytes();
        there.then(|| (key_word(min, bytes), key_word(max, bytes)))
    }

    /// Returns the first bytes (up to 64) of the smallest and of the largest encoded key; `None` for an empty
    /// file.
    #[must_use]
    pub fn key_ends(&self) -> Option<(&[u8], &[u8])> {
        let block = &self.superblock;
        let min = block.min_key.get(..(block.min_key_len.get() as usize).min(KEY_PREFIX_BYTES))?;
        let max = block.max_key.get(..(block.max_key_len.get() as usize).min(KEY_PREFIX_BYTES))?;
        (self.tuples > 0).then_some((min, max))
    }

    /// Returns the encoded numeric key of a word of a line, widened.
    #[inline]
    #[must_use]
    pub fn key_of(&self, word: u128) -> u128 {
        self.short.map_or(word, |short| short.key::<u128>(word as u64) & short.keys())
    }

    /// Returns the section with this tag.
    #[must_use]
    pub fn section(&self, tag: Tag) -> Option<&Section> {
        self.sections.iter().find(|section| section.entry.tag == tag)
    }

    /// Returns the offset of a tuple line in the file.
    #[inline]
    #[must_use]
    pub fn line_offset(&self, line: u64) -> u64 {
        self.lines_offset + line * LINE_BYTES as u64
    }

    /// Returns the offset in the file of the table's entry for a section with this tag, if there is one.
    #[must_use]
    pub fn entry_offset(&self, tag: Tag) -> Option<u64> {
        self.sections.iter().position(|section| section.entry.tag == tag).map(entry_offset)
    }

    /// Returns the sum that must be stored for a block with these bytes.
    #[must_use]
    pub fn bound_sum(&self, tag: Tag, block: u64, bytes: &[u8]) -> u32 {
        crc32(bytes) ^ binding(&self.superblock.file_id, tag, block)
    }
}

/// Offset and shape of a section that need not be there.
type Placed<T> = Option<(u64, T)>;

/// The sections of a table whose places are sound.
struct Found<'a>(&'a [Section]);

impl Found<'_> {
    /// Returns the section with this tag, and the offset of its entry.
    fn get(&self, tag: Tag) -> Option<(Section, u64)> {
        let at = self.0.iter().position(|section| section.entry.tag == tag)?;
        Some((self.0[at], entry_offset(at)))
    }

    fn missing(&self, rule: Breach) -> FormatError {
        corrupt("section table", TABLE_OFFSET, rule, self.0.len() as u64)
    }

    /// Checks that there are the columns that keys and values of these types have, and no others.
    fn fit(&self, key_type: KeyType, value_type: ValueType) -> Result<(), FormatError> {
        let has = |tag| self.get(tag).is_some();
        if has(Tag::TAIL) && !key_type.is_bytes() {
            return Err(self.missing(Rule::Column.broken("TAIL is for byte keys")));
        }
        if value_type.is_bytes() && !has(Tag::VALUES) {
            let rule = "there must be a VALS section for values of this type";
            return Err(self.missing(Rule::ValuesMissing.broken(rule)));
        }
        if key_type.is_bytes() != has(Tag::MASK) {
            return Err(self.missing(
                Rule::MaskMissing.broken("there must be a MASK section for byte keys, and only for them"),
            ));
        }
        Ok(())
    }

    /// Returns the layout of the tuple lines, what their words are if they are short, and their offset.
    fn lines(
        &self,
        key_type: KeyType,
        value_type: ValueType,
        tuples: u64,
    ) -> Result<(LineGeometry, Option<Short>, u64), FormatError> {
        let (section, at) = self
            .get(Tag::LINE)
            .ok_or_else(|| self.missing(Rule::LineMissing.broken("there must be a LINE section")))?;
        let entry = section.entry;
        let stored = LineParameters::from(entry.parameters);
        let word_bytes = stored.word_bytes.get() as usize;
        if !matches!(word_bytes, 4 | 8 | 16) || !(key_type.is_bytes() || word_bytes <= key_type.bytes()) {
            let rule = Rule::WordBytes.broken("words must be of 4, 8 or 16 bytes, and not longer than keys");
            return Err(corrupt("LINE", at, rule, word_bytes as u64));
        }
        let short = if key_type.is_bytes() || word_bytes == key_type.bytes() {
            None
        } else {
            let runs = stored.runs.map(|[from, bits]| Run { from, bits });
            let short = Short::new(key_type.bytes(), word_bytes, u128::from_le_bytes(stored.base), runs);
            Some(short.ok_or(corrupt(
                "LINE",
                at,
                Rule::ShortWords.broken("runs must ascend within keys and fit in words"),
                bits(&runs),
            ))?)
        };
        let geometry = LineGeometry::new(word_bytes, value_type.line_bytes());
        let length = entry.length.get();
        if Some(length) != geometry.bytes(tuples) || entry.elements.get() != tuples {
            return Err(corrupt(
                "LINE",
                at,
                Rule::LineLength.broken("length must be that of its tuples"),
                length,
            ));
        }
        if stored != line_parameters(geometry, short.as_ref()) {
            let found = stored.line_tuples.get().into();
            return Err(corrupt(
                "LINE",
                at,
                Rule::LineParameters.broken("parameters must be those of its types"),
                found,
            ));
        }
        Ok((geometry, short, section.offset()))
    }

    /// Returns the levels of the spine, the number of its lines that are inexact, and its offset.
    fn spine(&self, lines: u64, word_bytes: usize) -> Result<(SpineGeometry, u64, u64), FormatError> {
        let Some((section, at)) = self.get(Tag::SPINE) else {
            return Ok((SpineGeometry::none(lines), 0, 0));
        };
        let entry = section.entry;
        let stored = SpineParameters::from(entry.parameters);
        let levels = stored.levels.get() as usize;
        if levels > LEVELS_MAX {
            return Err(corrupt(
                "SPIN",
                at,
                Rule::Spine.broken("a spine has at most 24 levels"),
                levels as u64,
            ));
        }
        let mut encodings = Vec::with_capacity(levels);
        for &code in &stored.encodings[..levels] {
            let encoding = Encoding::from_code(code);
            encodings.push(encoding.ok_or(corrupt(
                "SPIN",
                at,
                Rule::Spine.broken("encodings must be known"),
                code.into(),
            ))?);
        }
        let child_lines = u64::from(stored.child_lines.get());
        let spine = SpineGeometry::new(lines, child_lines, word_bytes, &encodings).ok_or(corrupt(
            "SPIN",
            at,
            Rule::Spine
                .broken("levels must end in one line, above groups of 1 to 128 tuple lines, a power of two"),
            levels as u64,
        ))?;
        if entry.length.get() != spine.bytes {
            return Err(corrupt(
                "SPIN",
                at,
                Rule::Spine.broken("length must be that of its levels"),
                entry.length.get(),
            ));
        }
        let inexact_lines = stored.inexact_lines.get();
        if stored != spine_parameters(word_bytes, &spine, inexact_lines)
            || entry.elements.get() != spine.levels.iter().map(|level| level.lines).sum::<u64>()
        {
            let found = entry.elements.get();
            return Err(corrupt(
                "SPIN",
                at,
                Rule::Spine.broken("parameters must be those of its levels"),
                found,
            ));
        }
        Ok((spine, inexact_lines, section.offset()))
    }

    /// Returns the places of the value column and of its codes.
    fn values(
        &self,
        value_type: ValueType,
        tuples: u64,
    ) -> Result<(Option<ColumnPlace>, Option<ColumnPlace>), FormatError> {
        let has = |tag| self.get(tag).is_some();
        if value_type == ValueType::None && (has(Tag::VALUES) || has(Tag::CODES)) {
            return Err(self.missing(Rule::Column.broken("VALS and CODE are for values")));
        }
        let element_bytes = Some(value_type.bytes());
        let Some((_, at)) = self.get(Tag::CODES) else {
            return Ok((self.column(Tag::VALUES, tuples, element_bytes)?, None));
        };
        let codes = self.column(Tag::CODES, tuples, None)?;
        let count = self.get(Tag::VALUES).map_or(0, |(section, _)| section.entry.elements.get());
        let values = self.column(Tag::VALUES, count, element_bytes)?;
        let fits = value_type.is_bytes()
            && codes
                .zip(values)
                .is_some_and(|(codes, values)| codes::is_sound(codes.shape, values.shape, tuples));
        if !fits {
            let rule = Rule::Codes
                .broken("there must be as many codes as tuples, as wide as the values in VALS need");
            return Err(corrupt(Tag::CODES.name(), at, rule, count));
        }
        Ok((values, codes))
    }

    /// Returns the places and shapes of the byte keys by page and of the trie over them.
    fn text(&self, tuples: u64) -> Result<(Placed<TextGeometry>, Placed<TrieGeometry>), FormatError> {
        let text = self.shape(
            Tag::TEXT,
            Rule::Text.broken("parameters must be those of its keys"),
            |stored, elements, length| {
                TextGeometry::from_parameters(stored, elements, length).filter(|shape| shape.keys == tuples)
            },
        )?;
        let trie = self.shape(
            Tag::TRIE,
            Rule::Trie.broken("parameters must be those of its nodes"),
            |stored, elements, length| {
                let pages = text.map_or(0, |(_, shape): (u64, TextGeometry)| shape.pages);
                TrieGeometry::from_parameters(stored, elements, length)
                    .filter(|_| (2..PAGES_MAX).contains(&pages))
            },
        )?;
        Ok((text, trie))
    }

    /// Returns the place of a column of `count` elements of this size, or of any size.
    fn column(
        &self,
        tag: Tag,
        count: u64,
        element_bytes: Option<usize>,
    ) -> Result<Option<ColumnPlace>, FormatError> {
        let column = self.shape(
            tag,
            Rule::Column.broken("parameters must be those of its elements"),
            |stored, elements, length| {
                ColumnGeometry::from_parameters(stored, elements, length).filter(|shape| {
                    let expected = element_bytes.map_or(shape.element_bytes.max(1), |bytes| bytes as u64);
                    shape.elements == count && shape.element_bytes == expected
                })
            },
        )?;
        Ok(column.map(|(offset, shape)| ColumnPlace { offset, shape }))
    }

    /// Returns offset and shape of a section, if it is there; `load` receives its parameters, the number of
    /// its elements and its length, and returns `None` if they do not agree.
    fn shape<T>(
        &self,
        tag: Tag,
        rule: Breach,
        load: impl FnOnce(Parameters, u64, u64) -> Option<T>,
    ) -> Result<Option<(u64, T)>, FormatError> {
        let Some((section, at)) = self.get(tag) else { return Ok(None) };
        let (entry, length) = (section.entry, section.entry.length.get());
        match load(entry.parameters, entry.elements.get(), length) {
            Some(shape) => Ok(Some((section.offset(), shape))),
            None => Err(corrupt(tag.name(), at, rule, length)),
        }
    }
}

/// Returns the shape of a FAST tree; `None` if its section is not as long as that asks for.
fn fast_shape(stored: &Parameters, elements: u64, bytes: u64) -> Option<FastShape> {
    let (geometry, form) = classic::section::load(stored, elements)?;
    let whole = match (Paged::new(geometry, form), geometry.tree()) {
        (Some(paged), _) => bytes >= Paged::bytes(paged.pages_at()),
        (None, Some(tree)) => bytes == tree.bytes(),
        (None, None) => false,
    };
    whole.then_some(FastShape { geometry, form, bytes })
}

/// Returns the number of bits of all runs, for messages.
fn bits(runs: &[Run]) -> u64 {
    runs.iter().map(|run| u64::from(run.bits)).sum()
}

/// Returns the parameters of a LINE section, whose words may be short.
#[must_use]
pub fn line_parameters(lines: LineGeometry, short: Option<&Short>) -> LineParameters {
    let mut runs = [[0; 2]; RUNS_MAX];
    for (stored, run) in runs.iter_mut().zip(short.into_iter().flat_map(Short::runs)) {
        *stored = [run.from, run.bits];
    }
    LineParameters {
        line_bytes: (LINE_BYTES as u32).into(),
        word_bytes: (lines.key_bytes as u32).into(),
        value_bytes: (lines.value_bytes as u32).into(),
        line_tuples: (lines.tuples_per_line() as u32).into(),
        base: short.map_or(0, Short::base).to_le_bytes(),
        runs,
        reserved: [0; 24],
    }
}

/// Returns the parameters of a SPIN section in which `inexact_lines` lines are flagged.
#[must_use]
pub fn spine_parameters(word_bytes: usize, spine: &SpineGeometry, inexact_lines: u64) -> SpineParameters {
    let mut encodings = [0; LEVELS_MAX];
    for (slot, level) in encodings.iter_mut().zip(&spine.levels) {
        *slot = level.encoding as u8;
    }
    SpineParameters {
        line_bytes: (LINE_BYTES as u32).into(),
        word_bytes: (word_bytes as u32).into(),
        levels: (spine.levels.len() as u32).into(),
        child_lines: (spine.child_lines as u32).into(),
        inexact_lines: inexact_lines.into(),
        encodings,
        reserved: [0; 16],
    }
}

/// Checks places, order and sums of all entries. The sections returned cover the file from `HEAD_BYTES` to
/// the closing copies without a gap.
fn check_table(entries: &[Entry], file_bytes: u64) -> Result<Vec<Section>, FormatError> {
    let closing = file_bytes - CLOSING_BYTES as u64;
    let mut sections: Vec<Section> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let at = entry_offset(index);
        let what = entry.tag.name();
        let offset = entry.offset.get();
        let end = entries.get(index + 1).map_or(closing, |next| next.offset.get());
        if index == 0 && offset != HEAD_BYTES as u64 {
            return Err(corrupt(
                what,
                at + offset_in!(Entry, offset),
                Rule::FirstSection.broken("the first section must start at 8192"),
                offset,
            ));
        }
        if !offset.is_multiple_of(SECTION_ALIGN) {
            return Err(corrupt(
                what,
                at + offset_in!(Entry, offset),
                Rule::Alignment.broken("sections must start on 4096 bytes"),
                offset,
            ));
        }
        if end < offset || end > closing {
            return Err(corrupt(
                what,
                at + offset_in!(Entry, offset),
                Rule::SectionOrder.broken("sections must follow each other inside the file"),
                offset,
            ));
        }
        let padded = align_up(entry.length.get(), ARRAY_ALIGN);
        if padded.is_none_or(|padded| padded > end - offset) {
            return Err(corrupt(
                what,
                at + offset_in!(Entry, length),
                Rule::SectionEnd.broken("a section must end before the next one"),
                entry.length.get(),
            ));
        }
        if end - offset - entry.length.get() >= HUGE_PAGE_BYTES {
            let rule =
                Rule::SectionGap.broken("less than 2 MiB must lie between a section's end and the next one");
            return Err(corrupt(what, at + offset_in!(Entry, length), rule, entry.length.get()));
        }
        // These sections are read as a whole before anything is known about them.
        let most = match entry.tag {
            Tag::META => META_BYTES_MAX,
            Tag::MASK => MASK_BYTES_MAX,
            _ => u64::MAX,
        };
        if entry.length.get() > most {
            let rule =
                Rule::SectionLarge.broken("META has at most 1 MiB, MASK what describes keys of 65,535 bytes");
            return Err(corrupt(what, at + offset_in!(Entry, length), rule, entry.length.get()));
        }
        if entry.flags.get() & !REQUIRED != 0 {
            return Err(corrupt(
                what,
                at + offset_in!(Entry, flags),
                Rule::Flags.broken("unknown flags"),
                entry.flags.get().into(),
            ));
        }
        let known = entry.tag.kind().is_some();
        if !known && entry.flags.get() & REQUIRED != 0 {
            return Err(FormatError::Section { tag: entry.tag });
        }
        if sections.iter().any(|earlier| earlier.entry.tag == entry.tag) {
            return Err(corrupt(
                what,
                at,
                Rule::SectionTwice.broken("a section must occur once"),
                index as u64,
            ));
        }
        let reserved = [
            (offset_in!(Entry, reserved), entry.reserved.get().into()),
            (offset_in!(Entry, reserved2), u64::from_le_bytes(entry.reserved2)),
        ];
        if let Some((field, found)) = reserved.into_iter().find(|&(_, found)| found != 0) {
            return Err(corrupt(
                what,
                at + field,
                Rule::Reserved.broken("reserved bytes must be zero"),
                found,
            ));
        }
        sections.push(Section { entry: *entry, end });
    }
    check_lists(&sections)?;
    Ok(sections)
}

/// Checks that the list of sums of each section lies in SUMS, and that of SUMS in SUM2.
fn check_lists(sections: &[Section]) -> Result<(), FormatError> {
    let of = |tag: Tag| sections.iter().find(|section| section.entry.tag == tag);
    let missing = |rule| corrupt("section table", TABLE_OFFSET, rule, sections.len() as u64);
    let sums = of(Tag::SUMS).ok_or(missing(Rule::SumsMissing.broken("there must be a SUMS section")))?;
    let sum2 = of(Tag::SUM2).ok_or(missing(Rule::SumsMissing.broken("there must be a SUM2 section")))?;
    for (index, section) in sections.iter().enumerate() {
        let at = entry_offset(index);
        let what = section.entry.tag.name();
        let (list, count) = (section.entry.sums_offset.get(), section.entry.sums.get());
        if section.entry.tag == Tag::SUM2 {
            if (list, count) != (0, 0) {
                return Err(corrupt(
                    what,
                    at + offset_in!(Entry, sums_offset),
                    Rule::Sum2List.broken("SUM2 has no list of sums"),
                    count,
                ));
            }
            if section.entry.length.get() != sums.entry.sums_bytes() {
                let found = section.entry.length.get();
                let rule = Rule::Sum2Length.broken("SUM2 must hold the sums of SUMS and no more");
                return Err(corrupt(what, at + offset_in!(Entry, length), rule, found));
            }
            continue;
        }
        let home = if section.entry.tag == Tag::SUMS { sum2 } else { sums };
        let (first, last) = (home.offset(), home.offset() + home.entry.length.get());
        if count != sum_blocks(section.extent()) {
            let rule = Rule::SumsCount.broken("there must be a sum for each 8 KiB of a section");
            return Err(corrupt(what, at + offset_in!(Entry, sums), rule, count));
        }
        if list < first
            || !list.is_multiple_of(SUM_BYTES as u64)
            || list.checked_add(section.entry.sums_bytes()).is_none_or(|end| end > last)
        {
            let rule = Rule::SumsPlace.broken("sums must lie in the SUMS or SUM2 section");
            return Err(corrupt(what, at + offset_in!(Entry, sums_offset), rule, list));
        }
    }
    Ok(())
}
