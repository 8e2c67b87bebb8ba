//! The table of symbols for the rests of byte keys, and the coder that uses it.
//!
//! A table starts empty and grows in a few rounds, as in FSST (Boncz, Neumann and Leis, VLDB 2020): the sample is
//! coded with the table of the round before; each symbol, each single byte, and each two of them that stand side by
//! side are worth the bytes that they would cover; the 255 that are worth most make the next table. A coder takes
//! the longest symbol at each place.

use pleach_format::text::{ESCAPE, SYMBOL_BYTES_MAX, SYMBOLS_MAX, Symbols};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Rounds in which a table grows.
const ROUNDS: usize = 5;
/// Codes that stand for single bytes while a table is made; symbols have those after them.
const SINGLES: usize = 256;

/// A symbol: its bytes, the first one least significant, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Symbol {
    word: u64,
    length: u32,
}

impl Symbol {
    fn byte(byte: u8) -> Self {
        Self { word: byte.into(), length: 1 }
    }

    /// Returns the symbol of this one's bytes and then the other's, if they are not too many.
    fn followed_by(self, other: Self) -> Option<Self> {
        let length = self.length + other.length;
        let word = self.word | other.word.checked_shl(8 * self.length).unwrap_or(0);
        (length as usize <= SYMBOL_BYTES_MAX).then_some(Self { word, length })
    }

    fn bytes(self) -> [u8; SYMBOL_BYTES_MAX] {
        self.word.to_le_bytes()
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * self.length)
    }
}

/// A symbol of three bytes or more, as it is looked for.
#[derive(Clone, Copy)]
struct Entry {
    word: u64,
    mask: u64,
    length: u32,
    code: u8,
}

/// Places of a table of symbols by their first three bytes: more than ten times as many as there are symbols.
const PLACES: usize = 1 << 12;

/// Where the symbols with the same first three bytes are.
#[derive(Clone, Copy, Default)]
struct Place {
    /// These bytes, and a bit above them; 0 if the place is free.
    first: u32,
    start: u16,
    count: u16,
}

/// Returns the place of three bytes, and those bytes with a bit above them.
#[inline(always)]
fn place_of(word: u64) -> (usize, u32) {
    let first = word as u32 & 0xFF_FFFF | 1 << 24;
    ((first.wrapping_mul(0x9E37_79B1) >> 20) as usize, first)
}

/// Finds the longest symbol at a place.
pub(crate) struct Coder {
    symbols: Vec<Symbol>,
    /// Symbols of three bytes and more, by their first three, the longest first.
    entries: Vec<Entry>,
    places: Vec<Place>,
    /// Codes of symbols of two bytes; [`ESCAPE`] if there is none.
    pairs: Vec<u8>,
    /// Codes of symbols of one byte; [`ESCAPE`] if there is none.
    singles: [u8; 256],
}

impl Coder {
    fn new(symbols: Vec<Symbol>) -> Self {
        let (mut singles, mut pairs) = ([ESCAPE; 256], vec![ESCAPE; 1 << 16]);
        let mut entries = Vec::new();
        for (code, &symbol) in symbols.iter().enumerate() {
            let Symbol { word, length } = symbol;
            match length {
                1 => singles[word as usize] = code as u8,
                2 => pairs[word as usize] = code as u8,
                _ => entries.push(Entry { word, mask: symbol.mask(), length, code: code as u8 }),
            }
        }
        let first = |entry: &Entry| place_of(entry.word).1;
        entries.sort_by_key(|entry| (first(entry), Reverse(entry.length)));
        let mut places = vec![Place::default(); PLACES];
        let mut start = 0;
        for group in entries.chunk_by(|a, b| first(a) == first(b)) {
            let mut at = place_of(group[0].word).0;
            while places[at].first != 0 {
                at = (at + 1) % PLACES;
            }
            places[at] = Place { first: first(&group[0]), start: start as u16, count: group.len() as u16 };
            start += group.len();
        }
        Self { symbols, entries, places, pairs, singles }
    }

    /// Makes the table for texts like those of a sample. O(bytes of the sample).
    pub(crate) fn of_sample(sample: &[Vec<u8>]) -> Self {
        let mut this = Self::new(Vec::new());
        for _ in 0..ROUNDS {
            this = Self::new(this.better(sample));
        }
        this
    }

    /// Returns the symbols that are worth most, by the codes of a sample.
    fn better(&self, sample: &[Vec<u8>]) -> Vec<Symbol> {
        let all: Vec<Symbol> = (0..=u8::MAX).map(Symbol::byte).chain(self.symbols.iter().copied()).collect();
        let mut counts = vec![0u64; all.len()];
        let mut pairs = vec![0u32; all.len() * all.len()];
        let mut padded = Vec::new();
        for text in sample {
            let (mut at, mut before) = (0, None);
            pad(text, &mut padded);
            while at < text.len() {
                let code = match self.longest(&padded, at) {
                    ESCAPE => text[at].into(),
                    code => SINGLES + usize::from(code),
                };
                counts[code] += 1;
                if let Some(before) = before {
                    pairs[before * all.len() + code] += 1;
                }
                before = Some(code);
                at += all[code].length as usize;
            }
        }
        // The same bytes may come from several pairs.
        let mut worth: HashMap<Symbol, u64> = HashMap::new();
        for (symbol, &count) in all.iter().zip(&counts) {
            *worth.entry(*symbol).or_default() += count * u64::from(symbol.length);
        }
        for (before, pairs) in all.iter().zip(pairs.chunks_exact(all.len())) {
            for (after, &count) in all.iter().zip(pairs).filter(|(_, count)| **count > 1) {
                if let Some(both) = before.followed_by(*after) {
                    *worth.entry(both).or_default() += u64::from(count) * u64::from(both.length);
                }
            }
        }
        let mut list: Vec<(u64, Symbol)> = worth
            .into_iter()
            .filter(|(_, worth)| *worth > 0)
            .map(|(symbol, worth)| (worth, symbol))
            .collect();
        // Equal worths in the order of their bytes: the same table every time.
        list.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        list.truncate(SYMBOLS_MAX);
        let mut symbols: Vec<Symbol> = list.into_iter().map(|(_, symbol)| symbol).collect();
        symbols.sort_unstable_by_key(|symbol| (symbol.bytes(), symbol.length));
        symbols
    }

    /// Returns the code of the longest symbol at a place of a padded text, [`ESCAPE`] if there is none.
    #[inline(always)]
    fn longest(&self, padded: &[u8], at: usize) -> u8 {
        let word = padded[at..].first_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes));
        let left = (padded.len() - SYMBOL_BYTES_MAX - at) as u32;
        let (mut at, first) = place_of(word);
        loop {
            let place = self.places[at];
            if place.first == first {
                for entry in &self.entries[place.start.into()..][..place.count.into()] {
                    if (entry.word ^ word) & entry.mask == 0 && entry.length <= left {
                        return entry.code;
                    }
                }
                break;
            }
            if place.first == 0 {
                break;
            }
            at = (at + 1) % PLACES;
        }
        let pair = self.pairs[usize::from(word as u16)];
        if pair != ESCAPE && left > 1 {
            return pair;
        }
        self.singles[usize::from(word as u8)]
    }

    /// Appends the codes of a text; `scratch` is overwritten. O(bytes).
    pub(crate) fn code(&self, text: &[u8], scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        pad(text, scratch);
        let mut at = 0;
        while at < text.len() {
            let code = self.longest(scratch, at);
            out.push(code);
            if code == ESCAPE {
                out.push(text[at]);
                at += 1;
            } else {
                at += self.symbols[usize::from(code)].length as usize;
            }
        }
    }

    /// Returns the table as it is stored.
    pub(crate) fn table(&self) -> Symbols {
        let bytes: Vec<_> =
            self.symbols.iter().map(|symbol| (symbol.bytes(), symbol.length as usize)).collect();
        Symbols::new(bytes.iter().map(|(bytes, length)| &bytes[..*length]))
    }
}

/// Copies a text, and zero bytes after it, so that eight bytes can be read at each place.
fn pad(text: &[u8], padded: &mut Vec<u8>) {
    padded.clear();
    padded.extend_from_slice(text);
    padded.extend_from_slice(&[0; SYMBOL_BYTES_MAX]);
}
