//! The flow of a build with byte strings as keys, as values, or both.
//!
//! All input is read before the first line is written, since only then the bits in which keys differ are
//! known ([`pleach_format::mask`]). If a word holds a whole key, values fit in the lines, and all of it is in
//! memory, the words are built like numeric keys, with the radix sort. Otherwise the records are sorted as
//! byte strings, and words and columns are made from them in order.

use crate::columns;
use crate::error::BuildError;
use crate::job::{Extras, Job, with_lanes};
use crate::lines::Lines;
use crate::once::Once;
use crate::options::Summary;
use crate::pack::{Columns, KeyLane, Tuple, ValueLane};
use crate::parallel;
use crate::plan::Plan;
use crate::reader::Reader;
use crate::records::{Arena, Follows, Gather, Sorted};
use crate::section::Extra;
use crate::sections;
use crate::shorten::{Finished, ShortWriter};
use crate::source::{COLUMNS_DISAGREE, Chunk, Column, Schema, Source, SourceError};
use crate::text::{Pages, Sample};
use pleach_format::column::{ColumnGeometry, push_native_key};
use pleach_format::mask::{Mask, Place, Survey};
use pleach_format::section::{Parameters, Tag};
use pleach_format::types::KEY_BYTES_MAX;
use pleach_format::{KeyType, ValueType};

/// Number of tuples packed at once.
const BATCH_TUPLES: usize = 1 << 14;
/// Words of 8 bytes suffice while at most one key in `SHARED_WORDS` shares its word with the one before it.
const SHARED_WORDS: u64 = 64;

/// Conversion of keys to words.
pub(crate) enum Coder {
    /// Numeric keys: their bytes, most significant first.
    Number,
    /// Byte keys.
    Mask(Mask),
}

impl Coder {
    fn word(&self, key: &[u8]) -> u128 {
        match self {
            Self::Number => key.iter().fold(0, |word, &byte| word << 8 | u128::from(byte)),
            Self::Mask(mask) => word_of(mask, key),
        }
    }

    fn is_lossless(&self) -> bool {
        match self {
            Self::Number => true,
            Self::Mask(mask) => mask.is_lossless(),
        }
    }
}

/// Returns the word of a byte key.
fn word_of(mask: &Mask, key: &[u8]) -> u128 {
    match mask.place(key, crate::hint::compress) {
        Place::Word(word) | Place::Gap { word, .. } => word,
    }
}

/// Builds from a source of byte strings; called inside the pool.
pub(crate) fn build(job: &Job<'_>, source: &mut dyn Source) -> Result<Summary, BuildError> {
    let schema = job.schema;
    let plan = Plan::new(job.options.memory_bytes, size_of::<Tuple<u128, u64>>());
    let limit_bytes = plan.sort_tuples.saturating_mul(2 * size_of::<Tuple<u128, u64>>());
    let mut gather = Gather::new(job.spills, job.watch, limit_bytes, schema.key_text());
    let mut reader = Reader::new(source, job.watch, plan);
    let (mut now, mut next) = (chunk(schema), chunk(schema));
    reader.read(&mut now)?;
    while !now.is_empty() {
        let (read, taken) =
            parallel::both(&mut || reader.read(&mut next), &mut || take(job, &mut gather, &now));
        // Report the error that comes first in the input.
        taken?;
        read?;
        std::mem::swap(&mut now, &mut next);
    }
    drop((now, next));

    let fixed = schema.key_type.fixed_bytes();
    let survey = gather.survey.clone();
    let coder = if schema.key_type.is_bytes() { Coder::Mask(survey.mask(fixed, 16)) } else { Coder::Number };
    let inline = !schema.value_type.is_bytes() && !job.options.columns;
    if let (Some(arena), true, Coder::Mask(mask)) =
        (gather.in_memory(), inline && coder.is_lossless(), &coder)
    {
        let mut words = Words { arena, coder: &coder, word_bytes: mask.word_bytes(), schema, read: 0 };
        let job = Job { mask: Some(mask), ..*job };
        return job.run_words(mask.word_bytes(), &mut words, &|min, max| Extras {
            byte_ends: (arena.len() > 0).then(|| ends(mask, min, max)),
            sections: vec![mask_section(mask)],
        });
    }
    let (rows, sorted_input) = (gather.rows(), gather.is_sorted());
    let sorted = gather.finish(job.options.unique)?;
    let (coder, sample) = match coder {
        Coder::Mask(mask) if !mask.is_lossless() => {
            let (mask, sample) = choose(job, &sorted, &survey, fixed, mask)?;
            (Coder::Mask(mask), sample)
        }
        coder => (coder, None),
    };
    let pages = sample.map(|sample| Pages::new(job, &sorted, sample, job.options.spine)).transpose()?;
    let word_bytes = match &coder {
        Coder::Number => schema.key_type.bytes(),
        Coder::Mask(mask) => mask.word_bytes(),
    };
    let job = &Job { searches_words: pages.is_none(), ..*job };
    let emit = Emit { job, sorted: &sorted, coder: &coder, pages, rows, sorted_input };
    with_lanes!(word_bytes, schema.value_type.line_bytes() => emit.run())
}

fn chunk(schema: &Schema) -> Chunk {
    Chunk::new(schema.key_type, schema.value_type)
}

/// Returns the smallest and the largest key.
fn ends(mask: &Mask, min: u128, max: u128) -> (Vec<u8>, Vec<u8>) {
    let unpack = |word| {
        let mut key = Vec::new();
        mask.unpack(word, &mut key);
        key
    };
    (unpack(min), unpack(max))
}

/// Returns the element of a column as bytes, numbers with the most significant byte first (keys) or last
/// (values).
pub(crate) fn element<'a>(
    column: &'a Column,
    at: usize,
    big_endian: bool,
    buffer: &'a mut [u8; 16],
) -> &'a [u8] {
    macro_rules! number {
        ($words:expr) => {{
            let bytes = if big_endian { $words[at].to_be_bytes() } else { $words[at].to_le_bytes() };
            let buffer = &mut buffer[..bytes.len()];
            buffer.copy_from_slice(&bytes);
            buffer
        }};
    }
    match column {
        Column::None => &[],
        Column::U32(words) => number!(words),
        Column::U64(words) => number!(words),
        Column::U128(words) => number!(words),
        Column::Bytes(strings) => strings.get(at),
    }
}

fn take(job: &Job<'_>, gather: &mut Gather<'_>, chunk: &Chunk) -> Result<(), BuildError> {
    let schema = job.schema;
    let refused = |row: u64, what: String, advice: &str| {
        let (input, place, advice) = ("input".into(), format!("row {row}"), advice.into());
        BuildError::Source(SourceError { input, place, what, advice, cause: None })
    };
    let expected = Chunk::new(schema.key_type, schema.value_type);
    let same = |a: &Column, b: &Column| std::mem::discriminant(a) == std::mem::discriminant(b);
    let values = if matches!(chunk.values, Column::None) { chunk.len() } else { chunk.values.len() };
    if !same(&chunk.keys, &expected.keys) || !same(&chunk.values, &expected.values) || values != chunk.len() {
        return Err(refused(gather.rows(), COLUMNS_DISAGREE.into(), ""));
    }
    let (mut key_buffer, mut value_buffer) = ([0; 16], [0; 16]);
    for at in 0..chunk.len() {
        let key = element(&chunk.keys, at, true, &mut key_buffer);
        let value = element(&chunk.values, at, false, &mut value_buffer);
        let row = gather.rows();
        if key.len() > KEY_BYTES_MAX {
            let what = format!("the key has {} bytes, but a key has at most {KEY_BYTES_MAX}", key.len());
            return Err(refused(row, what, "shorten it"));
        }
        if u32::try_from(value.len()).is_err() {
            return Err(refused(row, "the value has 4 GiB or more".into(), "store it elsewhere"));
        }
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
        if schema.key_type == KeyType::Utf8 && !text(key)
            || schema.value_type == ValueType::Utf8 && !text(value)
        {
            return Err(refused(row, "not valid UTF-8".into(), "choose the type bytes"));
        }
        if let KeyType::Fixed(bytes) = schema.key_type
            && key.len() != usize::from(bytes)
        {
            let what = format!("the key has {} bytes instead of {bytes}", key.len());
            return Err(refused(row, what, "choose the type bytes"));
        }
        if let ValueType::Fixed(bytes) = schema.value_type
            && value.len() != usize::from(bytes)
        {
            let what = format!("the value has {} bytes instead of {bytes}", value.len());
            return Err(refused(row, what, "choose the type bytes"));
        }
        match gather.push(key, value)? {
            Follows::Equal
                if job.options.unique == Some(crate::options::Unique::Error) && gather.is_sorted() =>
            {
                return Err(BuildError::Duplicate { key: schema.key_text().bytes(key), row: Some(row) });
            }
            Follows::Below { previous } if job.options.sorted => {
                let (previous, key) = (schema.key_text().bytes(&previous), schema.key_text().bytes(key));
                return Err(BuildError::Unsorted { row, previous, key });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Chooses where the keys are, none of whose words holds a whole one: in pages, if neighbours often share the first
/// 16 bytes in which keys differ, unless another section than the spine searches words, or columns are wanted. Else
/// words of 8 or 16 bytes mostly tell keys apart, which is faster than a page, and what they leave out is in tails or
/// the key column, whichever is shorter. Returns the mask, and for pages a sample of the keys.
fn choose(
    job: &Job<'_>,
    sorted: &Sorted<'_>,
    survey: &Survey,
    fixed: Option<usize>,
    wide: Mask,
) -> Result<(Mask, Option<Sample>), BuildError> {
    let options = job.options;
    let searches_words = options.fast.is_some() || options.harmonia.is_some() || options.btree.is_some();
    let may_be_pages = !options.columns && !searches_words;
    let narrow = survey.mask(fixed, 8);
    // How many keys share the word of the key before, of 8 and of 16 bytes.
    let (mut shared_narrow, mut shared_wide) = (0u64, 0u64);
    let (mut previous, mut word, mut count, mut key_bytes) = (Vec::new(), None, 0u64, 0u64);
    let mut sample = Sample::default();
    sorted.each(&mut |key, _| {
        let this = word_of(&narrow, key);
        if word == Some(this) && previous != key {
            shared_narrow += 1;
            // Longer words begin with the bits of shorter ones.
            shared_wide += u64::from(may_be_pages && word_of(&wide, &previous) == word_of(&wide, key));
        }
        count += 1;
        key_bytes += key.len() as u64;
        word = Some(this);
        previous.clear();
        previous.extend_from_slice(key);
        if may_be_pages {
            sample.add(key);
        }
        Ok(())
    })?;
    if shared_wide > count / SHARED_WORDS {
        return Ok((survey.mask(fixed, 4).without_tail(), Some(sample)));
    }
    let mask = if shared_narrow > count / SHARED_WORDS { wide } else { narrow };
    let column = ColumnGeometry::of_elements(count, fixed.unwrap_or(0) as u64, key_bytes);
    let tails = mask.tail().and_then(|tail| ColumnGeometry::fixed(count, tail.bytes() as u64)?.bytes());
    let tails_are_short = tails <= column.and_then(ColumnGeometry::bytes);
    Ok((if tails_are_short { mask } else { mask.without_tail() }, None))
}

/// Records in input order as a source of words.
struct Words<'a> {
    arena: &'a Arena,
    coder: &'a Coder,
    word_bytes: usize,
    schema: &'a Schema,
    read: usize,
}

impl Source for Words<'_> {
    fn schema(&self) -> &Schema {
        self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        chunk.clear();
        let range = self.read..self.arena.len().min(self.read + tuples_max);
        self.read = range.end;
        const TASK: usize = 1 << 12;
        let word = |at: usize| self.coder.word(self.arena.get(range.start + at).0);
        match self.word_bytes {
            4 => chunk.keys = Column::U32(parallel::collect(range.len(), TASK, |at| word(at) as u32)),
            8 => chunk.keys = Column::U64(parallel::collect(range.len(), TASK, |at| word(at) as u64)),
            _ => chunk.keys = Column::U128(parallel::collect(range.len(), TASK, word)),
        }
        let values = range.map(|index| self.arena.get(index).1);
        match &mut chunk.values {
            Column::U32(out) => {
                out.extend(
                    values.map(|value| value.first_chunk().map_or(0, |&bytes| u32::from_le_bytes(bytes))),
                );
            }
            Column::U64(out) => {
                out.extend(
                    values.map(|value| value.first_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes))),
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.read as u64, Some(self.arena.len() as u64))
    }
}

/// Writes sorted records as lines and columns.
struct Emit<'a> {
    job: &'a Job<'a>,
    sorted: &'a Sorted<'a>,
    coder: &'a Coder,
    /// The keys by page, if they are there.
    pages: Option<Pages<'a>>,
    rows: u64,
    sorted_input: bool,
}

/// What is known once all lines have been packed.
#[derive(Default)]
struct Totals {
    tuples: u64,
    key_bytes: u64,
    value_bytes: u64,
    /// The values, if each of them is stored once.
    once: Option<Once>,
}

impl Emit<'_> {
    fn run<W: KeyLane, B: ValueLane>(&self) -> Result<Summary, BuildError> {
        let job = self.job;
        let plan = Plan::new(job.options.memory_bytes, size_of::<Tuple<W, B>>());
        let masked = matches!(self.coder, Coder::Mask(_));
        let mut writer = ShortWriter::<W, B>::new(job.setting(plan, masked));
        let (mut keys, mut values) = (Vec::with_capacity(BATCH_TUPLES), Vec::with_capacity(BATCH_TUPLES));
        let mut totals = Totals::default();
        let mut once = Once::new(job.options, job.schema.value_type);
        let mut ends: Option<(Vec<u8>, Vec<u8>)> = None;
        self.sorted.each(&mut |key, value| {
            keys.push(W::from_u128(self.coder.word(key)));
            values.push(if B::BYTES == value.len() { B::read(value) } else { B::default() });
            totals.tuples += 1;
            totals.key_bytes += key.len() as u64;
            totals.value_bytes += value.len() as u64;
            if let Some(held) = &mut once
                && !held.add(value)?
            {
                once = None;
            }
            match &mut ends {
                None => ends = Some((key.to_vec(), key.to_vec())),
                Some((_, last)) => {
                    last.clear();
                    last.extend_from_slice(key);
                }
            }
            if keys.len() == BATCH_TUPLES {
                writer.append(Columns { keys: &keys[..], values: &values[..] })?;
                keys.clear();
                values.clear();
            }
            Ok(())
        })?;
        writer.append(Columns { keys: &keys[..], values: &values[..] })?;
        totals.once = once.and_then(|once| once.decided(totals.tuples, totals.value_bytes));
        match writer.finish()? {
            Finished::Full(lines) => self.complete::<W, B>(&lines, &totals, ends),
            Finished::Four(lines) => self.complete::<u32, B>(&lines, &totals, ends),
            Finished::Eight(lines) => self.complete::<u64, B>(&lines, &totals, ends),
        }
    }

    /// Writes everything after the tuple lines.
    fn complete<W: KeyLane, B: ValueLane>(
        &self,
        lines: &Lines<W>,
        totals: &Totals,
        ends: Option<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Summary, BuildError> {
        let job = self.job;
        let mut sections = self.sections(totals)?;
        sections::append::<W, B>(job, lines, &mut sections)?;
        let extras = Extras { sections, byte_ends: ends.filter(|_| job.schema.key_type.is_bytes()) };
        job.finish(lines, extras, self.rows, self.sorted_input, self.sorted.runs)
    }

    fn sections<'s>(&'s self, totals: &'s Totals) -> Result<Vec<Extra<'s>>, BuildError> {
        let (key, value) = (self.job.schema.key_type, self.job.schema.value_type);
        let mut sections = Vec::new();
        if let Coder::Mask(mask) = self.coder {
            sections.push(mask_section(mask));
        }
        let too_large =
            || BuildError::TooLarge { what: "a column", found: totals.tuples, limit: u64::MAX >> 8 };
        let shape = |element_bytes: usize, data_bytes: u64| {
            ColumnGeometry::of_elements(totals.tuples, element_bytes as u64, data_bytes)
        };
        let tail = match self.coder {
            Coder::Mask(mask) => mask.tail(),
            Coder::Number => None,
        };
        if let Some(tail) = tail {
            let shape = shape(tail.bytes(), 0).ok_or_else(too_large)?;
            let put = move |key: &[u8], _: &[u8], out: &mut Vec<u8>| {
                tail.push(key, crate::hint::compress, out);
            };
            sections.push(self.column(Tag::TAIL, true, shape, put));
        }
        if let Some(pages) = &self.pages {
            sections.extend(pages.sections()?);
        }
        let required = !self.coder.is_lossless() && tail.is_none() && self.pages.is_none();
        if self.job.options.columns || required {
            let shape = shape(key.bytes(), totals.key_bytes).ok_or_else(too_large)?;
            let native = move |key: &[u8], _: &[u8], out: &mut Vec<u8>| match self.coder {
                Coder::Number => push_native_key(self.job.schema.key_type, self.coder.word(key), out),
                Coder::Mask(_) => out.extend_from_slice(key),
            };
            sections.push(self.column(Tag::KEYS, required, shape, native));
        }
        if let Some(once) = &totals.once {
            let made = once.sections(self.sorted, totals.tuples);
            sections.extend(made.ok_or_else(too_large)?);
        } else if value.is_bytes() || (self.job.options.columns && value != ValueType::None) {
            let shape = shape(value.bytes(), totals.value_bytes).ok_or_else(too_large)?;
            let native = |_: &[u8], value: &[u8], out: &mut Vec<u8>| out.extend_from_slice(value);
            sections.push(self.column(Tag::VALUES, value.is_bytes(), shape, native));
        }
        Ok(sections)
    }

    /// Makes a column of the elements that `element` adds for each tuple.
    fn column<'s>(
        &'s self,
        tag: Tag,
        required: bool,
        shape: ColumnGeometry,
        element: impl Fn(&[u8], &[u8], &mut Vec<u8>) + 's,
    ) -> Extra<'s> {
        columns::section(tag, required, shape, move |add| {
            let mut scratch = Vec::new();
            self.sorted.each(&mut |key, value| {
                scratch.clear();
                element(key, value, &mut scratch);
                add(&scratch)
            })
        })
    }
}

fn mask_section<'a>(mask: &Mask) -> Extra<'a> {
    let bytes = mask.to_bytes();
    Extra {
        tag: Tag::MASK,
        required: true,
        length: bytes.len() as u64,
        elements: mask.covered() as u64,
        parameters: Parameters::NONE,
        content: Box::new(move |take| take(&bytes)),
    }
}
