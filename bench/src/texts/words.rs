//! Words that look English, and URLs made of them.
//!
//! A word is a few syllables of consonants and vowels in about their English frequencies, with prefixes
//! and suffixes that many words share, as they do in a dictionary. The most frequent real words come
//! first. A URL has a host drawn by Zipf's law, directories that the host's other URLs have too, and a
//! number by which all URLs differ.

use super::decimal;
use crate::data::{below, mix64};

/// Longest word.
pub(super) const LONGEST_WORD: usize = 24;

/// The hundred most frequent words of English prose, the most frequent first.
pub(super) const FREQUENT: [&str; 100] = [
    "the", "be", "to", "of", "and", "a", "in", "that", "have", "it", "for", "not", "on", "with", "he", "as",
    "you", "do", "at", "this", "but", "his", "by", "from", "they", "we", "say", "her", "she", "or", "an",
    "will", "my", "one", "all", "would", "there", "their", "what", "so", "up", "out", "if", "about", "who",
    "get", "which", "go", "me", "when", "make", "can", "like", "time", "no", "just", "him", "know", "take",
    "people", "into", "year", "your", "good", "some", "could", "them", "see", "other", "than", "then", "now",
    "look", "only", "come", "its", "over", "think", "also", "back", "after", "use", "two", "how", "our",
    "work", "first", "well", "way", "even", "new", "want", "because", "any", "these", "give", "day", "most",
    "us", "is",
];

// The frequent ones come first: `skewed` prefers them.
const ONSETS: [&str; 40] = [
    "t", "s", "r", "n", "l", "d", "c", "m", "p", "b", "h", "f", "g", "w", "st", "v", "th", "k", "pr", "ch",
    "sh", "tr", "br", "gr", "cr", "fr", "cl", "pl", "sp", "dr", "fl", "bl", "j", "qu", "str", "sc", "gl",
    "wh", "y", "z",
];
const VOWELS: [&str; 16] =
    ["e", "a", "i", "o", "u", "ea", "ou", "io", "ee", "ai", "y", "oo", "au", "ie", "oi", "ue"];
const CODAS: [&str; 24] = [
    "", "n", "r", "t", "s", "l", "m", "d", "ck", "nd", "nt", "ll", "st", "ss", "p", "g", "th", "x", "rt",
    "ng", "ct", "rm", "mp", "ft",
];
const PREFIXES: [&str; 16] = [
    "re", "un", "in", "dis", "over", "non", "de", "pre", "mis", "sub", "out", "inter", "under", "anti", "en",
    "trans",
];
const SUFFIXES: [&str; 24] = [
    "s", "ed", "ing", "er", "ly", "ers", "ion", "al", "able", "ness", "ment", "ity", "ous", "ive", "ful",
    "less", "ist", "ism", "ation", "ance", "ize", "ized", "izing", "ish",
];

/// Draws in a row from one seed.
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        below(mix64(self.0), bound)
    }

    /// One of `parts`, sooner one of the first.
    fn skewed<'a>(&mut self, parts: &[&'a str]) -> &'a str {
        let count = parts.len() as u64;
        parts[(self.below(count) * self.below(count + 1) / count) as usize]
    }

    /// A rank from 0 up to 2^`octaves` - 2 by Zipf's law: each octave of ranks is drawn as often.
    fn zipf(&mut self, octaves: u64) -> u64 {
        let octave = self.below(octaves);
        (1 << octave) - 1 + self.below(1 << octave)
    }

    /// A rank below `bound` by Zipf's law.
    pub(super) fn zipf_below(&mut self, bound: u64) -> u64 {
        let octaves = u64::from(u64::BITS - bound.leading_zeros());
        loop {
            let rank = self.zipf(octaves);
            if rank < bound {
                return rank;
            }
        }
    }
}

/// Appends word number `i`. Different numbers may give the same word.
pub(super) fn word(i: u64, seed: u64, out: &mut Vec<u8>) {
    if let Some(real) = FREQUENT.get(i as usize) {
        out.extend_from_slice(real.as_bytes());
        return;
    }
    let start = out.len();
    let mut draws = Draws(seed ^ mix64(i));
    if draws.below(4) == 0 {
        out.extend_from_slice(draws.skewed(&PREFIXES).as_bytes());
    }
    let syllables = [1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5][draws.below(12) as usize];
    for syllable in 0..syllables {
        if syllable > 0 || draws.below(5) > 0 {
            out.extend_from_slice(draws.skewed(&ONSETS).as_bytes());
        }
        out.extend_from_slice(draws.skewed(&VOWELS).as_bytes());
        if syllable + 1 == syllables || draws.below(3) == 0 {
            out.extend_from_slice(draws.skewed(&CODAS).as_bytes());
        }
    }
    if draws.below(2) == 0 {
        out.extend_from_slice(draws.skewed(&SUFFIXES).as_bytes());
    }
    out.truncate(start + LONGEST_WORD);
    if out.len() < start + 2 {
        out.push(b'n');
    }
}

/// Ranks of hosts are below 2 to this.
const HOST_OCTAVES: u64 = 16;
const TLDS: [&str; 12] = ["com", "com", "com", "org", "net", "com", "de", "co.uk", "io", "fr", "edu", "jp"];

/// Appends a URL whose last number is `id`.
pub(super) fn url(id: u64, seed: u64, out: &mut Vec<u8>) {
    let mut draws = Draws(seed ^ mix64(id));
    let rank = draws.zipf(HOST_OCTAVES);
    host(rank, seed, out);
    let mut directory = mix64(seed ^ !rank);
    for _ in 0..draws.below(4) {
        // Which directories there are is the host's choice, which of them this URL lies in its own.
        directory = mix64(directory ^ draws.zipf(4));
        out.push(b'/');
        dictionary(&mut Draws(directory), out);
    }
    let (before, after) =
        [("/", ".html"), ("-", ""), ("?id=", ""), ("?q=", "&page="), ("/", "/")][draws.below(5) as usize];
    match after {
        "&page=" => {
            out.extend_from_slice(b"/search");
            out.extend_from_slice(before.as_bytes());
            dictionary(&mut draws, out);
            out.extend_from_slice(after.as_bytes());
            decimal(id, 1, out);
        }
        _ => {
            out.push(b'/');
            dictionary(&mut draws, out);
            if before == "-" {
                out.push(b'-');
                dictionary(&mut draws, out);
            }
            out.extend_from_slice(before.as_bytes());
            decimal(id, 1, out);
            out.extend_from_slice(after.as_bytes());
        }
    }
}

fn host(rank: u64, seed: u64, out: &mut Vec<u8>) {
    let mut draws = Draws(mix64(seed.wrapping_add(rank)));
    out.extend_from_slice(if draws.below(10) == 0 { b"http://" } else { b"https://" });
    if draws.below(5) < 3 {
        out.extend_from_slice(b"www.");
    }
    dictionary(&mut draws, out);
    if draws.below(3) == 0 {
        dictionary(&mut draws, out);
    }
    out.push(b'.');
    out.extend_from_slice(TLDS[draws.below(TLDS.len() as u64) as usize].as_bytes());
}

/// Appends one of 2^14 words, sooner a frequent one.
fn dictionary(draws: &mut Draws, out: &mut Vec<u8>) {
    word(draws.zipf(14), 0, out);
}
