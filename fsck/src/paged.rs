//! Checks of compressed classic trees: page by page, first the record, then word by word against the tuple
//! lines.
//!
//! The place of a page follows from the widths of the pages before it, so records are read in order. The
//! words of a page are those of its keys under its record, and all ones where there is no key.

use super::classic::WINDOW_SLOTS;
use super::pieces::sized;
use super::{Check, Code, ReadAt};
use pleach_format::classic::paged::{Form, PageRecord, Paged};
use pleach_format::{Header, Word};
use rayon::prelude::*;
use std::io;

/// Number of pages whose records are read at once.
const PAGES: u64 = sized(1 << 12, 2);

/// One page of the tree.
#[derive(Clone, Copy)]
struct Page {
    level: usize,
    number: u64,
    record: PageRecord,
    /// Offset of the record in the file.
    record_at: u64,
}

/// Returns the word of a key, widened; `None` if a page with this record has no word for it.
fn word_of(record: &PageRecord, key: u128) -> Option<u128> {
    if record.kept == 0 {
        let word = key.checked_sub(record.base)?;
        return (word <= u128::MAX >> (128 - 8 * record.width)).then_some(word);
    }
    ((key ^ record.base) & record.agreed(record.mask()) == 0).then(|| record.packed(key))
}

impl<R: ReadAt> Check<'_, R> {
    /// Checks a compressed tree in a section with this place and length.
    pub(super) fn check_paged<W: Word>(
        &self,
        header: &Header,
        (offset, length): (u64, u64),
        paged: &Paged,
    ) -> io::Result<()> {
        let record_bytes = paged.record_bytes() as u64;
        let records_end = paged.pages() * record_bytes;
        self.check_zeros("FAST", (offset + records_end, offset + paged.pages_at()))?;
        let mut end = paged.pages_at();
        for (level, pages) in paged.levels().iter().enumerate() {
            let (first, count) = (paged.records()[level], pages.last + 1);
            for from in (0..count).step_by(PAGES as usize) {
                if self.is_cancelled() {
                    return Ok(());
                }
                let numbers = from..(from + PAGES).min(count);
                let bytes = (numbers.end - numbers.start) * record_bytes;
                let records = self.read(offset + (first + from) * record_bytes, bytes)?;
                let mut found = Vec::with_capacity(records.len() / record_bytes as usize);
                for (number, record) in numbers.zip(records.chunks_exact(record_bytes as usize)) {
                    let at = offset + (first + number) * record_bytes;
                    let Some(page) = self.placed(paged, (level, number), record, at, end) else {
                        // The places of all pages after it depend on this one.
                        return Ok(());
                    };
                    let page_bytes =
                        paged.page_bytes(page.record.width, level, usize::from(number == pages.last));
                    let page_end = page.record.place + page_bytes.unwrap_or(0);
                    if Paged::bytes(page_end) > length {
                        let text = "pages must end inside the section";
                        self.rule(
                            Code::Classic,
                            "FAST",
                            at,
                            record_bytes,
                            format!("at most {length}"),
                            page_end,
                            text,
                        );
                        return Ok(());
                    }
                    self.check_zeros("FAST", (offset + end, offset + page.record.place))?;
                    end = page_end;
                    found.push(page);
                }
                found
                    .into_par_iter()
                    .try_for_each(|page| self.check_page::<W>(header, offset, paged, &page))?;
            }
        }
        if length != Paged::bytes(end) {
            let text = "length must be that of the pages";
            self.rule(Code::Classic, "FAST", offset, length, Paged::bytes(end), length, text);
            return Ok(());
        }
        self.check_zeros("FAST", (offset + end, offset + length))
    }

    /// Returns the page of a record at byte `at` of the file, if the record is valid and the page is in its
    /// correct place: the page before it ends at `end`.
    fn placed(
        &self,
        paged: &Paged,
        (level, number): (usize, u64),
        bytes: &[u8],
        at: u64,
        end: u64,
    ) -> Option<Page> {
        let part = usize::from(number == paged.levels()[level].last);
        let wrong = |expected: String, found: String| {
            let text = "a page must have its record";
            self.rule(Code::Classic, "FAST", at, bytes.len() as u64, expected, found, text);
            None
        };
        let key_bytes = paged.geometry().key_bytes;
        let record = PageRecord::decode(key_bytes, bytes)?;
        let Some(page_bytes) = paged.page_bytes(record.width, level, part) else {
            return wrong(format!("words of 2 to {key_bytes} bytes"), record.width.to_string());
        };
        if !record.is_sound(key_bytes) || paged.form() == Form::Delta && record.kept != 0 {
            let most = if paged.form() == Form::Delta { 0 } else { 2 * record.width };
            return wrong(format!("at most {most} nibbles"), format!("{:x}", record.kept));
        }
        let place = paged.place(page_bytes, end);
        if record.place != place {
            return wrong(format!("place {place}"), record.place.to_string());
        }
        if record.encode(key_bytes)[..bytes.len()] != *bytes {
            return wrong("zeros in reserved bytes".to_owned(), format!("{bytes:02x?}"));
        }
        Some(Page { level, number, record, record_at: at })
    }

    /// Checks the words of a page, and the smallest key in its record.
    fn check_page<W: Word>(
        &self,
        header: &Header,
        offset: u64,
        paged: &Paged,
        page: &Page,
    ) -> io::Result<()> {
        let Some((tree, level)) =
            paged.tree(page.record.width).and_then(|tree| Some((tree, tree.pages().get(page.level)?)))
        else {
            return Ok(());
        };
        let (first, part) = level.page(page.number);
        let record = &page.record;
        let width = u64::from(record.width);
        let lowest = (page.number << (level.levels + level.below)) + (1 << level.below) - 1;
        let lowest = self.words_at::<W>(header, &[Some(lowest).filter(|&rank| rank < header.tuples)])?[0];
        let (expected, found) = (lowest.map_or(0, Word::to_u128), record.base);
        if expected != found {
            let text = "a record must name the smallest key of its page";
            let (expected, found) = (format!("{expected:x}"), format!("{found:x}"));
            let record_bytes = paged.record_bytes() as u64;
            self.rule(Code::Classic, "FAST", page.record_at, record_bytes, expected, found, text);
        }
        for from in (0..level.slots[part]).step_by(WINDOW_SLOTS as usize) {
            let slots = from..(from + WINDOW_SLOTS).min(level.slots[part]);
            let bytes =
                self.read(offset + record.place + slots.start * width, (slots.end - slots.start) * width)?;
            let ranks: Vec<Option<u64>> = slots
                .clone()
                .map(|slot| tree.index_of(first + slot).filter(|&rank| rank < header.tuples))
                .collect();
            let keys = self.words_at::<W>(header, &ranks)?;
            let free = u128::MAX >> (128 - 8 * record.width);
            for ((slot, key), bytes) in slots.zip(keys).zip(bytes.chunks_exact(width as usize)) {
                let mut word = [0; 16];
                word[..bytes.len()].copy_from_slice(bytes);
                let found = u128::from_le_bytes(word);
                let expected = key.map_or(Some(free), |key| word_of(record, key.to_u128()));
                if expected != Some(found) {
                    let at = offset + record.place + slot * width;
                    let expected =
                        expected.map_or("a key of the page".to_owned(), |word| format!("{word:x}"));
                    let text = "a slot must hold the word of its key";
                    self.rule(Code::Classic, "FAST", at, width, expected, format!("{found:x}"), text);
                }
            }
        }
        Ok(())
    }
}
