//! Checks of the byte keys by page: the table of symbols, the places of pages, and each page to its last byte.
//!
//! A page is decoded. Each of its fields must be the one that follows from its keys. Only the codes are free: all
//! that decode to a key are valid.

use super::pieces::sized;
use super::{Check, Code, ReadAt, number};
use pleach_format::Header;
use pleach_format::text::{
    ESCAPE, FIRST_AT, GUARD_BYTES, HEAD_AT, HEAD_AT_WIDE, LENGTHS_AT, PAGE_KEYS, PLAIN, PRINTS_AT, Page,
    SHARED_AT, SHARED_MAX, SYMBOLS_BYTES, Symbols, TextGeometry, WIDE, common, fingerprint,
};
use rayon::prelude::*;
use std::io;
use std::ops::Range;

/// Maximum bytes of a key: spec/FORMAT.md, section 7.
pub(super) const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Number of pages whose places are read at once.
const PIECE_PAGES: u64 = sized(1 << 10, 3);
/// Maximum bytes of the pages that are read at once, if there is more than one.
const PIECE_BYTES: u64 = sized(1 << 20, 1 << 10);
/// Maximum bytes of a page: the head, and what the lengths of the others allow.
const PAGE_BYTES_MAX: u64 = (HEAD_AT_WIDE + PAGE_KEYS * KEY_BYTES_MAX) as u64;

/// The section, with its symbols.
pub(super) struct Text {
    offset: u64,
    shape: TextGeometry,
    symbols: Symbols,
}

/// Pages that were read. Their keys are decoded one by one.
pub(super) struct Pages<'t> {
    text: &'t Text,
    first: u64,
    /// Where each page begins in the data, and the end of the last one.
    places: Vec<u64>,
    data: Vec<u8>,
}

impl Pages<'_> {
    /// Returns the bytes of a page, of those that were read.
    fn bytes(&self, page: u64) -> &[u8] {
        let index = (page - self.first) as usize;
        let place = |index: usize| (self.places[index] - self.places[0]) as usize;
        &self.data[place(index)..place(index + 1)]
    }

    /// Appends the key of a rank in these pages, of which no more than its maximum length and one byte.
    pub(super) fn key(&self, rank: u64, out: &mut Vec<u8>) {
        let page = rank / PAGE_KEYS as u64;
        let view = Page::new(self.bytes(page), self.text.shape.keys_of(page));
        view.key(&self.text.symbols, (rank % PAGE_KEYS as u64) as usize, KEY_BYTES_MAX + 1, out);
    }
}

/// A rule that a page breaks: the bytes in the page, and the fields of a finding.
struct Broken {
    bytes: Range<usize>,
    expected: String,
    found: String,
    text: &'static str,
}

fn broken<T>(
    bytes: Range<usize>,
    expected: impl ToString,
    found: impl ToString,
    text: &'static str,
) -> Result<T, Broken> {
    Err(Broken { bytes, expected: expected.to_string(), found: found.to_string(), text })
}

/// Fields of a page whose parts fill its bytes.
struct Fields<'a> {
    bytes: &'a [u8],
    head: &'a [u8],
    /// Lengths of the rests of all keys after the head.
    lengths: Vec<usize>,
    /// Where the codes of each of them begin, and where the last ones end.
    codes: Vec<usize>,
}

impl<'a> Fields<'a> {
    /// Divides a page of `keys` keys into its parts.
    fn read(bytes: &'a [u8], keys: usize) -> Result<Self, Broken> {
        let of_length = |length: usize, text| broken(0..bytes.len(), length, bytes.len(), text);
        let Some(start) = bytes.first_chunk::<HEAD_AT>() else {
            return of_length(HEAD_AT, "a page must have room for its fields");
        };
        let flags = start[4];
        if flags & !(WIDE | PLAIN) != 0 {
            return broken(4..5, "known flags", flags, "a page has no other flags");
        }
        let width = if flags & WIDE == 0 { 1 } else { 2 };
        let head_at = if width == 1 { HEAD_AT } else { HEAD_AT_WIDE };
        let head_end = head_at + usize::from(u16::from_le_bytes([start[0], start[1]]));
        let Some(head) = bytes.get(head_at..head_end) else {
            return of_length(head_end, "a page must have room for its head");
        };
        let followers = keys.saturating_sub(1);
        let lanes = [
            (PRINTS_AT + keys, SHARED_AT),
            (SHARED_AT + followers, FIRST_AT),
            (FIRST_AT + followers, LENGTHS_AT),
            (LENGTHS_AT + width * followers, head_at),
        ];
        for (from, to) in lanes {
            if let Some(bad) = bytes[from..to].iter().position(|&byte| byte != 0) {
                let text = "fields of keys that a page does not have must be zero";
                return broken(from + bad..from + bad + 1, 0, bytes[from + bad], text);
            }
        }
        let lengths = bytes[LENGTHS_AT..head_at].chunks_exact(width).take(followers);
        let lengths: Vec<usize> = lengths.map(|bytes| number(bytes) as usize).collect();
        if width == 2 && lengths.iter().all(|&length| length <= 255) {
            return broken(
                4..5,
                "lengths of one byte",
                flags,
                "lengths have two bytes only where one needs them",
            );
        }
        let mut codes = vec![head_end];
        let mut end = head_end;
        for length in &lengths {
            end += length.saturating_sub(1);
            codes.push(end);
        }
        if end != bytes.len() {
            return of_length(end, "the head and all codes must fill a page");
        }
        Ok(Self { bytes, head, lengths, codes })
    }

    /// Checks that all codes have symbols, and that a byte follows each escape.
    fn check_codes(&self, symbols: &Symbols) -> Result<(), Broken> {
        if self.bytes[4] & PLAIN != 0 {
            return Ok(());
        }
        for place in self.codes.windows(2) {
            let mut at = place[0];
            while at < place[1] {
                let code = self.bytes[at];
                if code == ESCAPE {
                    if at + 1 == place[1] {
                        let text = "a byte must follow an escape";
                        return broken(at..at + 1, "a byte", "the end of the codes", text);
                    }
                    at += 1;
                } else if symbols.symbol(code).1 == 0 {
                    return broken(at..at + 1, "a code of a symbol", code, "each code must have a symbol");
                }
                at += 1;
            }
        }
        Ok(())
    }

    /// Checks all fields against the keys.
    fn check_keys(&self, symbols: &Symbols) -> Result<(), Broken> {
        let Self { bytes, head, .. } = *self;
        let keys = 1 + self.lengths.len();
        let page = Page::new(bytes, keys);
        let mut key = Vec::new();
        let base = usize::from(u16::from_le_bytes([bytes[2], bytes[3]]));
        page.key(symbols, keys - 1, KEY_BYTES_MAX + 1, &mut key);
        let expected = common(head, &key);
        if base != expected {
            return broken(2..4, expected, base, "the base must be what the head shares with the last key");
        }
        for slot in 0..keys {
            key.clear();
            page.key(symbols, slot, KEY_BYTES_MAX + 1, &mut key);
            if slot > 0 {
                self.check_rest(slot - 1, base, &key)?;
            }
            let (at, expected) = (PRINTS_AT + slot, fingerprint(&key));
            if bytes[at] != expected {
                return broken(at..at + 1, expected, bytes[at], "a fingerprint must be that of its key");
            }
        }
        Ok(())
    }

    /// Checks what a page says of a key after the head.
    fn check_rest(&self, follower: usize, base: usize, key: &[u8]) -> Result<(), Broken> {
        let codes = self.codes[follower]..self.codes[follower + 1];
        if key.len() > KEY_BYTES_MAX {
            return broken(codes, KEY_BYTES_MAX, "more", "a key has 65,535 bytes at most");
        }
        let (at, all) = (SHARED_AT + follower, common(self.head, key));
        let found = self.bytes[at];
        let expected = all.checked_sub(base).map(|shared| shared.min(SHARED_MAX));
        if expected != Some(found.into()) {
            let expected = expected.map_or(format!("{base} bytes or more"), |shared| shared.to_string());
            return broken(at..at + 1, expected, found, "a key must state what it shares with the head");
        }
        let first = key.get(base + usize::from(found)).copied();
        let at = FIRST_AT + follower;
        if (first.is_some(), first.unwrap_or(0)) != (self.lengths[follower] > 0, self.bytes[at]) {
            let text = "a first byte must be that of the rest of its key";
            let expected = first.map_or("none".to_owned(), |byte| byte.to_string());
            return broken(at..at + 1, expected, self.bytes[at], text);
        }
        Ok(())
    }
}

impl<R: ReadAt> Check<'_, R> {
    /// Returns the section, if there is one.
    pub(super) fn text(&self, header: &Header) -> io::Result<Option<Text>> {
        let Some((offset, shape)) = header.text else { return Ok(None) };
        let table = self.read(offset, SYMBOLS_BYTES as u64)?;
        let symbols = table.first_chunk().map_or_else(Symbols::default, Symbols::parse);
        Ok(Some(Text { offset, shape, symbols }))
    }

    /// Returns the places of these pages and the end of the last one, as they are stored.
    fn places(&self, offset: u64, shape: &TextGeometry, pages: &Range<u64>) -> io::Result<Vec<u64>> {
        let bytes = (pages.end - pages.start + 1) * shape.place_bytes;
        let bytes = self.read(offset + shape.place_at(pages.start), bytes)?;
        Ok(bytes.chunks_exact(shape.place_bytes as usize).map(number).collect())
    }

    /// Returns the bytes in the file of the page of a rank: its first one and their number.
    pub(super) fn text_place(&self, (offset, shape): (u64, TextGeometry), rank: u64) -> (u64, u64) {
        let page = rank / PAGE_KEYS as u64;
        let places = self.places(offset, &shape, &(page..page + 1)).unwrap_or_default();
        let &[start, end] = places.as_slice() else { return (offset, 0) };
        let at = (offset + shape.pages_at).saturating_add(start.min(shape.data_bytes));
        (at, end.min(shape.data_bytes).saturating_sub(start))
    }

    /// Returns the bytes of the pages of these ranks, by their places.
    pub(super) fn text_bytes(&self, text: &Text, ranks: &Range<u64>) -> io::Result<u64> {
        let pages = pages_of(ranks);
        let place = |page: u64| -> io::Result<u64> {
            let width = text.shape.place_bytes;
            Ok(number(&self.read(text.offset + text.shape.place_at(page), width)?))
        };
        Ok(place(pages.end)?.saturating_sub(place(pages.start)?))
    }

    /// Reads the pages of these ranks. Returns `None` if their places are not valid.
    pub(super) fn text_pages<'t>(&self, text: &'t Text, ranks: &Range<u64>) -> io::Result<Option<Pages<'t>>> {
        let pages = pages_of(ranks);
        let places = self.places(text.offset, &text.shape, &pages)?;
        let (first, last) = (places[0], places[places.len() - 1]);
        let are_sound =
            places.windows(2).all(|pair| pair[0] <= pair[1] && pair[1] - pair[0] <= PAGE_BYTES_MAX);
        if !are_sound || last > text.shape.data_bytes {
            return Ok(None);
        }
        let data = self.read(text.offset + text.shape.pages_at + first, last - first)?;
        Ok(Some(Pages { text, first: pages.start, places, data }))
    }

    /// Checks the section by itself. Its keys are checked with the tuple lines.
    pub(super) fn check_text(&self, header: &Header) -> io::Result<()> {
        let Some(text) = self.text(header)? else { return Ok(()) };
        let (offset, shape) = (text.offset, text.shape);
        self.check_symbols(offset)?;
        self.check_zeros("TEXT", (offset + shape.place_at(shape.pages + 1), offset + shape.pages_at))?;
        let guard = offset + shape.pages_at + shape.data_bytes;
        self.check_zeros("TEXT", (guard, guard + GUARD_BYTES))?;
        self.check_outermost(&text)?;
        (0..shape.pages.div_ceil(PIECE_PAGES)).into_par_iter().try_for_each(|piece| {
            if self.is_cancelled() {
                return Ok(());
            }
            let first = piece * PIECE_PAGES;
            self.check_pages(&text, first..(first + PIECE_PAGES).min(shape.pages))
        })
    }

    /// Checks the table of symbols.
    fn check_symbols(&self, offset: u64) -> io::Result<()> {
        let found = self.read(offset, SYMBOLS_BYTES as u64)?;
        let Some(table) = found.first_chunk() else { return Ok(()) };
        let expected = Symbols::parse(table).to_bytes();
        if let Some(at) = found.iter().zip(&expected).position(|(found, expected)| found != expected) {
            let text = "symbols have 8 bytes at most, with zeros behind them; the escape has none";
            self.rule(Code::Text, "TEXT", offset + at as u64, 1, expected[at], found[at], text);
            return Ok(());
        }
        let lengths = &found[..256];
        let used = lengths.iter().take_while(|&&length| length > 0).count();
        if let Some(beyond) = lengths[used..].iter().position(|&length| length > 0) {
            let (at, text) = (used + beyond, "the first codes must have the symbols");
            self.rule(Code::Text, "TEXT", offset + at as u64, 1, 0, lengths[at], text);
        }
        Ok(())
    }

    /// Checks the place of the first page and the end of the last one.
    fn check_outermost(&self, text: &Text) -> io::Result<()> {
        let shape = text.shape;
        for (page, expected) in [(0, 0), (shape.pages, shape.data_bytes)] {
            let at = text.offset + shape.place_at(page);
            let found = number(&self.read(at, shape.place_bytes)?);
            if found != expected {
                let rule = "places must cover the pages";
                self.rule(Code::Text, "TEXT", at, shape.place_bytes, expected, found, rule);
            }
        }
        Ok(())
    }

    /// Checks the places of these pages, and the pages up to the first one that has no valid place.
    fn check_pages(&self, text: &Text, pages: Range<u64>) -> io::Result<()> {
        let shape = text.shape;
        let places = self.places(text.offset, &shape, &pages)?;
        let is_sound = |pair: &[u64]| {
            pair[0] < pair[1] && pair[1] <= shape.data_bytes && pair[1] - pair[0] <= PAGE_BYTES_MAX
        };
        let sound = places.windows(2).take_while(|pair| is_sound(pair)).count();
        let mut from = 0;
        while from < sound {
            let fits = |to: &usize| places[*to] - places[from] <= PIECE_BYTES;
            let to = (from + 1..=sound).take_while(fits).last().unwrap_or(from + 1);
            let at = text.offset + shape.pages_at + places[from];
            let data = self.read(at, places[to] - places[from])?;
            for index in from..to {
                let bytes =
                    (places[index] - places[from]) as usize..(places[index + 1] - places[from]) as usize;
                let (start, number) = (at + bytes.start as u64, pages.start + index as u64);
                self.check_page_of_keys(text, number, start, &data[bytes]);
            }
            from = to;
        }
        if let Some(&[start, end]) = places.get(sound..sound + 2).and_then(<[u64]>::first_chunk) {
            let at = text.offset + shape.place_at(pages.start + sound as u64);
            let expected = format!(
                "above {start}, up to {}",
                shape.data_bytes.min(start.saturating_add(PAGE_BYTES_MAX))
            );
            let rule = "places must ascend by the bytes of a page";
            self.rule(Code::Text, "TEXT", at, 2 * shape.place_bytes, expected, end, rule);
        }
        Ok(())
    }

    /// Checks a page, which begins at byte `at` of the file.
    fn check_page_of_keys(&self, text: &Text, number: u64, at: u64, bytes: &[u8]) {
        let checked = Fields::read(bytes, text.shape.keys_of(number)).and_then(|fields| {
            fields.check_codes(&text.symbols)?;
            fields.check_keys(&text.symbols)
        });
        if let Err(Broken { bytes, expected, found, text }) = checked {
            let (at, length) = (at + bytes.start as u64, bytes.len() as u64);
            self.rule(Code::Text, "TEXT", at, length, expected, found, &format!("page {number}: {text}"));
        }
    }
}

/// Returns the pages of these ranks, which are not empty.
fn pages_of(ranks: &Range<u64>) -> Range<u64> {
    ranks.start / PAGE_KEYS as u64..(ranks.end - 1) / PAGE_KEYS as u64 + 1
}
