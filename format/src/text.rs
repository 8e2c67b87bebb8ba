//! TEXT: byte keys compressed by page, for keys with long common parts.
//!
//! A page has [`PAGE_KEYS`] keys. Its first key, the *head*, is stored as it is. Of each other key the page has
//! how many bytes it shares with the head, and the rest as *codes*: a byte for each symbol of up to eight bytes,
//! from a table of the file ([`Symbols`]). So any key is read without its neighbours, in one decode whose length
//! the page states.
//!
//! Keys ascend, so that the shared bytes descend. A query that parts from the head after `d` bytes and is above it
//! is above all keys that share more than `d`, and below all that share less: only those that share exactly `d`
//! are compared, and of those only the ones whose next byte is the query's.

use crate::chunk::load;
use crate::column::ColumnGeometry;
pub use crate::column::GUARD_BYTES;
use crate::layout::align_up;
use crate::section::{ARRAY_ALIGN, Parameters, TextParameters};
use core::cmp::Ordering;

/// Keys per page.
pub const PAGE_KEYS: usize = 16;
/// Maximum number of symbols.
pub const SYMBOLS_MAX: usize = 255;
/// Maximum bytes of a symbol.
pub const SYMBOL_BYTES_MAX: usize = 8;
/// The code after which a byte stands for itself.
pub const ESCAPE: u8 = 255;
/// Bytes of the table of symbols: 256 lengths, then 256 symbols of eight bytes.
pub const SYMBOLS_BYTES: usize = 256 + 256 * SYMBOL_BYTES_MAX;
/// Bytes of a page before its head, if its lengths have one byte.
pub const HEAD_AT: usize = 66;
/// Bytes of a page before its head, if its lengths have two bytes.
pub const HEAD_AT_WIDE: usize = 81;
/// Maximum number of bytes that a key shares with the head beyond those that all keys of the page share.
pub const SHARED_MAX: usize = 255;

/// Place in a page of the fingerprints of its keys.
pub const PRINTS_AT: usize = 5;
/// Place in a page of the bytes that each key after the head shares with it, beyond those that all share.
pub const SHARED_AT: usize = PRINTS_AT + PAGE_KEYS;
/// Place in a page of the first byte of each rest.
pub const FIRST_AT: usize = SHARED_AT + FOLLOWERS;
/// Place in a page of the lengths of the rests: 0 if there is none, else one more than its codes.
pub const LENGTHS_AT: usize = FIRST_AT + FOLLOWERS;
/// Bit of a page's flags: lengths have two bytes.
pub const WIDE: u8 = 1;
/// Bit of a page's flags: what follows the first byte is not coded.
pub const PLAIN: u8 = 2;

/// Most codes of a rest that is decoded on the stack, so that a key takes no more memory than its bytes.
const SHORT: usize = 32;
/// What these codes stand for, and the bytes that are written beyond it.
const SHORT_BYTES: usize = (SHORT + 1) * SYMBOL_BYTES_MAX;

/// Keys of a page after the head.
const FOLLOWERS: usize = PAGE_KEYS - 1;

/// The symbols of a file, by their codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbols {
    lengths: [u8; 256],
    /// Bytes of each symbol, the first one least significant, zero beyond its end.
    words: [u64; 256],
}

impl Default for Symbols {
    /// Returns a table without symbols.
    fn default() -> Self {
        Self { lengths: [0; 256], words: [0; 256] }
    }
}

impl Symbols {
    /// Creates the table of these symbols, each of 1 to 8 bytes. Those after the 255th are left out.
    #[must_use]
    pub fn new<'a>(symbols: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut this = Self::default();
        for (code, symbol) in symbols.into_iter().take(SYMBOLS_MAX).enumerate() {
            let bytes = &symbol[..symbol.len().min(SYMBOL_BYTES_MAX)];
            this.lengths[code] = bytes.len() as u8;
            this.words[code] = low_first(bytes, 0);
        }
        this
    }

    /// Reads a table. Symbols that are too long are cut, so that a table of any bytes can be used.
    #[must_use]
    pub fn parse(bytes: &[u8; SYMBOLS_BYTES]) -> Self {
        let mut this = Self::default();
        for code in 0..SYMBOLS_MAX {
            let length = bytes[code].min(SYMBOL_BYTES_MAX as u8);
            this.lengths[code] = length;
            let symbol = &bytes[256 + code * SYMBOL_BYTES_MAX..][..length.into()];
            this.words[code] = low_first(symbol, 0);
        }
        this
    }

    /// Returns the bytes of the table.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; SYMBOLS_BYTES] {
        let mut bytes = [0; SYMBOLS_BYTES];
        bytes[..256].copy_from_slice(&self.lengths);
        for (out, word) in bytes[256..].chunks_exact_mut(SYMBOL_BYTES_MAX).zip(self.words) {
            out.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Returns the symbol of a code; empty if it has none.
    #[must_use]
    pub fn symbol(&self, code: u8) -> ([u8; SYMBOL_BYTES_MAX], usize) {
        let code = usize::from(code);
        (self.words[code].to_le_bytes(), self.lengths[code].into())
    }

    /// Returns what the codes at `next` stand for: a word of its bytes, and their number; and passes over them. An
    /// escape without a byte after it ends the codes.
    #[inline(always)]
    fn next(&self, codes: &[u8], next: &mut usize) -> Option<(u64, usize)> {
        let code = *codes.get(*next)?;
        *next += 1;
        if code == ESCAPE {
            let byte = *codes.get(*next)?;
            *next += 1;
            return Some((byte.into(), 1));
        }
        let code = usize::from(code);
        Some((self.words[code], self.lengths[code].into()))
    }

    /// Appends what codes stand for, at most `limit` bytes. O(codes).
    #[inline]
    pub fn decode(&self, codes: &[u8], limit: usize, out: &mut Vec<u8>) {
        let start = out.len();
        let most = codes.len().saturating_mul(SYMBOL_BYTES_MAX).min(limit);
        // Eight bytes are written for each symbol, of which the next one overwrites those that are too many.
        out.resize(start + most + SYMBOL_BYTES_MAX, 0);
        let room = &mut out[start..];
        let (mut at, mut next) = (0, 0);
        while at < most
            && let Some((word, length)) = self.next(codes, &mut next)
        {
            if let Some(to) = room[at..].first_chunk_mut() {
                *to = word.to_le_bytes();
            }
            at += length;
        }
        out.truncate(start + at.min(most));
    }

    /// Writes what up to [`SHORT`] codes stand for, and returns its length. O(codes).
    #[inline]
    fn decode_short(&self, codes: &[u8], room: &mut [u8; SHORT_BYTES]) -> usize {
        let (mut at, mut codes) = (0, codes.iter());
        while let Some(&code) = codes.next() {
            let (word, length) = match code {
                ESCAPE => match codes.next() {
                    Some(&byte) => (byte.into(), 1),
                    None => break,
                },
                code => (self.words[usize::from(code)], self.lengths[usize::from(code)].into()),
            };
            // Eight bytes are written for each symbol, of which the next one overwrites those that are too many.
            if let Some(to) = room[at..].first_chunk_mut() {
                *to = word.to_le_bytes();
            }
            at = (at + length).min(SHORT_BYTES);
        }
        at
    }

    /// Reports whether codes stand for this text. O(codes), without a branch a symbol.
    #[inline]
    #[must_use]
    pub fn is_text(&self, codes: &[u8], text: &[u8]) -> bool {
        let (mut at, mut different, mut next) = (0, 0, 0);
        while let Some((symbol, length)) = self.next(codes, &mut next) {
            different |= (symbol ^ low_first(text, at)).wrapping_shl(64 - 8 * length as u32);
            at += length;
        }
        different == 0 && at == text.len()
    }

    /// Compares what codes stand for with a text. Reads no further than the first difference.
    #[inline]
    #[must_use]
    pub fn compare(&self, codes: &[u8], text: &[u8]) -> Ordering {
        let (mut at, mut next) = (0, 0);
        while let Some((symbol, length)) = self.next(codes, &mut next) {
            let different = (symbol ^ low_first(text, at)) & ones(length);
            if different != 0 {
                let first = at + different.trailing_zeros() as usize / 8;
                let byte = (symbol >> (8 * (first - at))) as u8;
                return text.get(first).map_or(Ordering::Greater, |asked| byte.cmp(asked));
            }
            at += length;
            if at > text.len() {
                return Ordering::Greater;
            }
        }
        at.cmp(&text.len())
    }
}

/// Returns a word whose low `bytes` bytes are ones.
#[inline(always)]
fn ones(bytes: usize) -> u64 {
    match bytes {
        0 => 0,
        _ => u64::MAX >> (64 - 8 * bytes.min(8)),
    }
}

/// Returns eight bytes from `at` on, the first one least significant, zero beyond the end.
#[inline(always)]
fn low_first(text: &[u8], at: usize) -> u64 {
    load(text, at).swap_bytes()
}

/// Returns the number of leading bytes that two texts share.
#[inline]
#[must_use]
pub fn common(a: &[u8], b: &[u8]) -> usize {
    let length = a.len().min(b.len());
    let mut at = 0;
    while at < length {
        let different = load(a, at) ^ load(b, at);
        if different != 0 {
            return (at + different.leading_zeros() as usize / 8).min(length);
        }
        at += 8;
    }
    length
}

/// Returns the first byte in which two texts differ, if zero bytes follow them; `None` if there is none.
#[inline]
#[must_use]
pub fn differ(a: &[u8], b: &[u8]) -> Option<usize> {
    let same = common(a, b);
    if same < a.len().min(b.len()) {
        return Some(same);
    }
    let longer = if a.len() > b.len() { a } else { b };
    longer[same..].iter().position(|&byte| byte != 0).map(|at| same + at)
}

/// Returns the fingerprint of a key: eight bits of its last 24 bytes and its length. O(1).
#[inline]
#[must_use]
pub fn fingerprint(key: &[u8]) -> u8 {
    let word = |back: usize| match key.len().checked_sub(back) {
        Some(at) => low_first(key, at),
        // What is left at the beginning.
        None => low_first(&key[..(key.len() + 8).saturating_sub(back)], 0),
    };
    let sum = word(8)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(word(16).wrapping_mul(0xC2B2_AE3D_27D4_EB4F))
        .wrapping_add(word(24).wrapping_mul(0x1656_67B1_9E37_79F9))
        .wrapping_add((key.len() as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93));
    (sum >> 56) as u8
}

/// Sizes and places of the arrays in the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextGeometry {
    /// Number of keys.
    pub keys: u64,
    /// Number of pages; the last page may have fewer keys.
    pub pages: u64,
    /// Bytes of a place: 4 or 8.
    pub place_bytes: u64,
    /// First byte of the first page.
    pub pages_at: u64,
    /// Bytes of all pages.
    pub data_bytes: u64,
}

impl TextGeometry {
    /// Creates the layout of `keys` keys whose pages take `data_bytes` bytes. Returns `None` on overflow.
    #[must_use]
    pub fn new(keys: u64, data_bytes: u64) -> Option<Self> {
        let place_bytes = if u32::try_from(data_bytes).is_ok() { 4 } else { 8 };
        Self::with_places(keys, data_bytes, place_bytes)
    }

    fn with_places(keys: u64, data_bytes: u64, place_bytes: u64) -> Option<Self> {
        let pages = keys.div_ceil(PAGE_KEYS as u64);
        let places = pages.checked_add(1)?.checked_mul(place_bytes)?;
        let pages_at = align_up(places.checked_add(SYMBOLS_BYTES as u64)?, ARRAY_ALIGN)?;
        Some(Self { keys, pages, place_bytes, pages_at, data_bytes })
    }

    /// Returns the bytes of the section, or `None` on overflow.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        self.pages_at.checked_add(self.data_bytes)?.checked_add(GUARD_BYTES)
    }

    /// Returns where the place of a page is in the section. The place after the last one ends the last page.
    #[inline]
    #[must_use]
    pub fn place_at(self, page: u64) -> u64 {
        SYMBOLS_BYTES as u64 + page * self.place_bytes
    }

    /// Returns the pages as elements of a column that begins with their places, after the symbols.
    #[must_use]
    pub fn column(self) -> ColumnGeometry {
        ColumnGeometry {
            element_bytes: 0,
            offset_bytes: self.place_bytes,
            elements: self.pages,
            data_bytes: self.data_bytes,
            data_at: self.pages_at - SYMBOLS_BYTES as u64,
        }
    }

    /// Returns the number of keys of a page.
    #[inline]
    #[must_use]
    pub fn keys_of(self, page: u64) -> usize {
        self.keys.saturating_sub(page.saturating_mul(PAGE_KEYS as u64)).min(PAGE_KEYS as u64) as usize
    }

    /// Returns the parameters of the section.
    #[must_use]
    pub fn parameters(self) -> TextParameters {
        TextParameters {
            page_keys: (PAGE_KEYS as u32).into(),
            place_bytes: (self.place_bytes as u32).into(),
            reserved: [0; 56],
        }
    }

    /// Reads the shape of a section of `length` bytes from its parameters. Returns `None` if no shape
    /// matches.
    #[must_use]
    pub fn from_parameters(stored: Parameters, keys: u64, length: u64) -> Option<Self> {
        let stored = TextParameters::from(stored);
        let place_bytes = stored.place_bytes.get().into();
        let empty = Self::with_places(keys, 0, place_bytes)?;
        let data_bytes = length.checked_sub(empty.bytes()?)?;
        let this = Self::new(keys, data_bytes)?;
        (matches!(place_bytes, 4 | 8) && this.parameters() == stored).then_some(this)
    }
}

/// Where a query stands among the keys of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The first key that is not below the query; the number of keys if all are.
    pub slot: usize,
    /// True if that key is the query.
    pub found: bool,
    /// Leading bytes that the query shares with the head.
    pub common: usize,
}

/// Keys among which the rest of a query decides: [`Page::narrow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// The first of them.
    pub from: usize,
    /// The first key after them.
    pub to: usize,
    /// Bytes of the query before the rest.
    pub at: usize,
    /// As in [`Slot`].
    pub common: usize,
}

/// The bytes of a page. Any bytes make a page: an answer may be wrong then, and stays inside.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    bytes: &'a [u8],
    keys: usize,
    head: &'a [u8],
    /// Bytes of the head that all keys share.
    base: usize,
    codes_at: usize,
}

impl<'a> Page<'a> {
    /// Creates the view of a page with up to 16 keys. `bytes` are those of the page, and no others.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8], keys: usize) -> Self {
        let Some(start) = bytes.first_chunk::<HEAD_AT>() else {
            return Self { bytes: &[0; HEAD_AT], keys: 0, head: &[], base: 0, codes_at: HEAD_AT };
        };
        let head_bytes = usize::from(u16::from_le_bytes([start[0], start[1]]));
        let head_at = if start[4] & WIDE == 0 { HEAD_AT } else { HEAD_AT_WIDE };
        let codes_at = (head_at + head_bytes).min(bytes.len());
        let head = bytes.get(head_at..codes_at).unwrap_or_default();
        let base = usize::from(u16::from_le_bytes([start[2], start[3]])).min(head.len());
        Self { bytes, keys: keys.min(PAGE_KEYS), head, base, codes_at }
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys
    }
    /// Returns the first key.
    #[inline]
    #[must_use]
    pub fn head(&self) -> &'a [u8] {
        self.head
    }
    /// Returns the number of leading bytes that all keys share.
    #[must_use]
    pub fn base(&self) -> usize {
        self.base
    }
    fn is(&self, flag: u8) -> bool {
        self.bytes[4] & flag != 0
    }

    /// Returns sixteen bytes from `at` on, of which those of keys count.
    #[inline(always)]
    fn lanes(&self, at: usize) -> [u8; PAGE_KEYS] {
        self.bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default()
    }

    /// Returns the bytes that key `slot > 0` shares with the head.
    #[must_use]
    pub fn shared(&self, slot: usize) -> usize {
        (self.base + usize::from(self.bytes[SHARED_AT + slot - 1])).min(self.head.len())
    }

    /// Returns the bytes of the rest of key `slot > 0` as they are stored: none, or one and its codes.
    fn length(&self, slot: usize) -> usize {
        if !self.is(WIDE) {
            return self.bytes[LENGTHS_AT + slot - 1].into();
        }
        let at = LENGTHS_AT + 2 * (slot - 1);
        let two = self.bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        u16::from_le_bytes(two).into()
    }

    /// Returns where in the page the codes of key `slot > 0` begin.
    #[inline]
    #[must_use]
    pub fn codes_at(&self, slot: usize) -> usize {
        // The first byte of a rest is not among its codes.
        if self.is(WIDE) {
            return self.codes_at + (1..slot).map(|slot| self.length(slot).saturating_sub(1)).sum::<usize>();
        }
        let mut bytes = 0;
        for (number, length) in self.lanes(LENGTHS_AT).into_iter().enumerate() {
            bytes += if number + 1 < slot { u32::from(length.saturating_sub(1)) } else { 0 };
        }
        self.codes_at + bytes as usize
    }

    /// Returns the rest of key `slot > 0` after what it shares with the head: its first byte, if it has any, and
    /// the codes of the others.
    #[inline]
    fn rest(&self, slot: usize) -> Option<(u8, &'a [u8])> {
        self.rest_at(slot, self.codes_at(slot))
    }

    #[inline]
    fn rest_at(&self, slot: usize, codes_at: usize) -> Option<(u8, &'a [u8])> {
        let length = self.length(slot).checked_sub(1)?;
        let codes = self.bytes.get(codes_at..).unwrap_or_default();
        Some((self.bytes[FIRST_AT + slot - 1], &codes[..length.min(codes.len())]))
    }

    /// Appends the key at `slot`, at most `limit` bytes. O(bytes of the key).
    pub fn key(&self, symbols: &Symbols, slot: usize, limit: usize, out: &mut Vec<u8>) {
        let codes_at = if slot == 0 || slot >= self.keys { 0 } else { self.codes_at(slot) };
        self.next_key(symbols, (slot, codes_at), limit, out);
    }

    /// Does the same as [`Page::key`], if the codes of the key begin at `codes_at`. Returns where those of the next
    /// key begin.
    #[inline]
    pub fn next_key(
        &self,
        symbols: &Symbols,
        (slot, codes_at): (usize, usize),
        limit: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let end = out.len().saturating_add(limit);
        let mut next = self.codes_at;
        if slot == 0 || slot >= self.keys {
            out.extend_from_slice(if slot == 0 { self.head } else { &[] });
        } else {
            let shared = &self.head[..self.shared(slot)];
            next = codes_at;
            match self.rest_at(slot, codes_at) {
                None => out.extend_from_slice(shared),
                Some((first, codes)) => {
                    next += codes.len();
                    let mut room = [0; SHORT_BYTES];
                    let (plain, long) = match codes {
                        _ if self.is(PLAIN) => (codes, &[][..]),
                        codes if codes.len() > SHORT => (&[][..], codes),
                        codes => {
                            let length = symbols.decode_short(codes, &mut room);
                            (&room[..length], &[][..])
                        }
                    };
                    out.reserve(shared.len() + 1 + plain.len());
                    out.extend_from_slice(shared);
                    out.push(first);
                    out.extend_from_slice(plain);
                    if !long.is_empty() {
                        symbols.decode(long, end.saturating_sub(out.len()), out);
                    }
                }
            }
        }
        out.truncate(end);
        next
    }

    /// Compares the key at `slot > 0` with a query that agrees with it in the shared bytes.
    fn compare(&self, symbols: &Symbols, slot: usize, query: &[u8], at: usize) -> Ordering {
        let asked = query.get(at..).unwrap_or_default();
        let Some((first, codes)) = self.rest(slot) else { return 0.cmp(&asked.len()) };
        match asked.split_first() {
            None => Ordering::Greater,
            Some((byte, _)) if *byte != first => first.cmp(byte),
            Some((_, asked)) if self.is(PLAIN) => codes.cmp(asked),
            Some((_, asked)) => symbols.compare(codes, asked),
        }
    }

    /// Returns the first key from `slot` on that has this fingerprint; the number of keys if none has. May name a
    /// key that has another one.
    #[inline]
    #[must_use]
    pub fn candidate(&self, print: u8, slot: usize) -> usize {
        const LOW: u128 = u128::MAX / 255;
        let different = u128::from_le_bytes(self.lanes(PRINTS_AT)) ^ (LOW * u128::from(print));
        // The lowest byte that is zero has its highest bit set; there may be false ones above it.
        let zeros = different.wrapping_sub(LOW) & !different & LOW << 7;
        let zeros = zeros.checked_shr(8 * slot as u32).unwrap_or(0);
        (slot + zeros.trailing_zeros() as usize / 8).min(self.keys)
    }

    /// Reports whether the key at `slot` is the query.
    #[inline]
    #[must_use]
    pub fn is_key(&self, symbols: &Symbols, slot: usize, query: &[u8]) -> bool {
        if slot == 0 {
            return self.head == query;
        }
        let shared = self.shared(slot);
        let Some((start, asked)) = query.split_at_checked(shared) else { return false };
        let is_rest = match (self.rest(slot), asked.split_first()) {
            (None, rest) => rest.is_none(),
            (Some((first, codes)), Some((&byte, asked))) if first == byte => {
                if self.is(PLAIN) {
                    codes == asked
                } else {
                    symbols.is_text(codes, asked)
                }
            }
            _ => false,
        };
        is_rest && start == &self.head[..shared]
    }

    /// Finds the first key that is the query. O(bytes of the key), usually.
    #[inline]
    #[must_use]
    pub fn get(&self, symbols: &Symbols, print: u8, query: &[u8]) -> Option<usize> {
        let mut slot = self.candidate(print, 0);
        while slot < self.keys {
            if self.is_key(symbols, slot, query) {
                return Some(slot);
            }
            slot = self.candidate(print, slot + 1);
        }
        None
    }

    /// Finds the keys among which codes decide, from the first bytes of the page and the head alone; or the
    /// answer, if there are none. O(bytes of the head).
    #[inline]
    pub fn narrow(&self, query: &[u8]) -> Result<Narrow, Slot> {
        let common = common(query, self.head);
        let decided = |slot, found| Err(Slot { slot, found, common });
        if common == query.len() {
            // A beginning of the head, or the head.
            return decided(0, common == self.head.len() && self.keys > 0);
        }
        if self.head.get(common).is_some_and(|&byte| byte > query[common]) {
            return decided(0, false);
        }
        // The query is above the head.
        if common < self.base {
            return decided(self.keys, false);
        }
        let shared = (common - self.base).min(SHARED_MAX);
        let at = self.base + shared;
        let (exact, byte) = (shared as u8, query[at]);
        let followers = self.keys.saturating_sub(1) as u8;
        let (mut below, mut same) = (0u8, 0u8);
        let (shares, firsts) = (self.lanes(SHARED_AT), self.lanes(FIRST_AT));
        for number in 0..PAGE_KEYS {
            let here = u8::from((number as u8) < followers);
            let (more, equal) = (u8::from(shares[number] > exact), u8::from(shares[number] == exact));
            below += here & (more | equal & u8::from(firsts[number] < byte));
            same += here & equal & u8::from(firsts[number] == byte);
        }
        let from = 1 + usize::from(below);
        match same {
            // A page without keys, of bytes that make none, has no first key to be above.
            0 => decided(from.min(self.keys), false),
            _ => Ok(Narrow { from, to: from + usize::from(same), at, common }),
        }
    }

    /// Completes what [`Page::narrow`] began. O(bytes of the keys), O(log) of them.
    #[inline]
    #[must_use]
    pub fn settle(&self, symbols: &Symbols, query: &[u8], narrow: &Narrow) -> Slot {
        let Narrow { from: mut low, to: mut high, at, common } = *narrow;
        let mut found = false;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.compare(symbols, middle, query, at) {
                Ordering::Less => low = middle + 1,
                order => {
                    found = order == Ordering::Equal;
                    high = middle;
                }
            }
        }
        Slot { slot: low, found, common }
    }

    /// Finds the place of a query among the keys. O(bytes of the keys), O(log) of them.
    #[inline]
    #[must_use]
    pub fn find(&self, symbols: &Symbols, query: &[u8]) -> Slot {
        match self.narrow(query) {
            Ok(narrow) => self.settle(symbols, query, &narrow),
            Err(slot) => slot,
        }
    }
}

/// Appends the page of up to 16 ascending keys; those after them are left out. `code` appends the codes of a text.
/// O(bytes of the keys).
pub fn pack<'k>(
    keys: impl IntoIterator<Item = &'k [u8]>,
    mut code: impl FnMut(&[u8], &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let (mut held, mut count) = ([&[][..]; PAGE_KEYS], 0);
    for (to, key) in held.iter_mut().zip(keys) {
        *to = key;
        count += 1;
    }
    let keys = &held[..count];
    let Some((&head, followers)) = keys.split_first() else { return };
    let base = followers.last().map_or(head.len(), |last| common(head, last));
    // Shared bytes beyond the base, and the rest.
    let (mut shares, mut rests) = ([0; FOLLOWERS], [&[][..]; FOLLOWERS]);
    for ((share, rest), key) in shares.iter_mut().zip(&mut rests).zip(followers) {
        *share = (common(head, key) - base).min(SHARED_MAX) as u8;
        *rest = &key[base + usize::from(*share)..];
    }
    let rests = &rests[..followers.len()];
    let behind = |rest: &&'k [u8]| rest.get(1..).unwrap_or_default();
    let plain_bytes: usize = rests.iter().map(|rest| behind(rest).len()).sum();
    let (mut codes, mut lengths) = (Vec::with_capacity(plain_bytes), [0; FOLLOWERS]);
    for (length, rest) in lengths.iter_mut().zip(rests) {
        let begin = codes.len();
        code(behind(rest), &mut codes);
        // A rest of no bytes has length 0, any other one more than its codes.
        *length = codes.len() - begin + usize::from(!rest.is_empty());
    }
    let is_long = lengths.iter().any(|&length| length > usize::from(u16::MAX));
    let is_plain = codes.len() >= plain_bytes || is_long;
    if is_plain {
        codes.clear();
        for (length, rest) in lengths.iter_mut().zip(rests) {
            codes.extend_from_slice(behind(rest));
            *length = rest.len();
        }
    }
    let is_wide = lengths.iter().any(|&length| length > 255);
    let start = out.len();
    out.extend_from_slice(&(head.len() as u16).to_le_bytes());
    out.extend_from_slice(&(base as u16).to_le_bytes());
    out.push(if is_wide { WIDE } else { 0 } | if is_plain { PLAIN } else { 0 });
    out.resize(start + if is_wide { HEAD_AT_WIDE } else { HEAD_AT }, 0);
    let page = &mut out[start..];
    for (to, key) in page[PRINTS_AT..].iter_mut().zip(keys) {
        *to = fingerprint(key);
    }
    page[SHARED_AT..][..FOLLOWERS].copy_from_slice(&shares);
    for (number, (&length, rest)) in lengths.iter().zip(rests).enumerate() {
        page[FIRST_AT + number] = rest.first().copied().unwrap_or(0);
        if is_wide {
            page[LENGTHS_AT + 2 * number..][..2].copy_from_slice(&(length as u16).to_le_bytes());
        } else {
            page[LENGTHS_AT + number] = length as u8;
        }
    }
    out.extend_from_slice(head);
    out.extend_from_slice(&codes);
}
