//! Byte-string keys of many kinds: telephone numbers, digits, URLs, words, uuids, k-mers, log offsets.
//!
//! Keys follow from a [`Kind`], a seed and nothing else, and are distinct. [`Kind::stream`] yields them one
//! by one in no order (log times excepted), [`Kind::keys`] and [`Kind::sorted`] all of them at once, with
//! every core. The value of a key follows from the key, so that answers can be checked without a table.
//! [`measure`] measures look-ups, prefixes and ranges of them.

mod engines;
mod file;
mod genome;
mod long;
pub mod measure;
mod shuffle;
mod words;

pub use file::lines;

use crate::data::{below, mix64};
use pleach_peers::{Keys, View};
use rayon::prelude::*;
use shuffle::Shuffle;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::str::FromStr;

/// Kind of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Telephone numbers as in TPC-H, clause 4.2.2.9: `CC-NNN-NNN-NNNN` with a country code from 10 to
    /// 34, two local numbers from 100 to 999 and one from 1000 to 9999. 15 bytes.
    Phone,
    /// Keys of `bytes` bytes, each of them one of `values` values drawn evenly: the experiments of the
    /// FAST paper (TODS 2011, section 7.1.4, figures 11 and 12) with 2 to 128 values and keys of 4 to 128
    /// bytes. The paper names two alphabets, "numeral keys" for 10 and "the range of alphabets" for 52,
    /// and no others; here they are: up to 10 values the first digits from `0`, 52 the letters `A-Za-z`,
    /// other numbers up to 64 the first of `-0-9A-Z_a-z` (base64url in the order of its bytes), beyond
    /// that the bytes from 0x00.
    ///
    /// Keys are distinct, so that few short ones exist: 4 bytes of 10 values are 10,000 keys.
    Digits {
        /// Bytes of a key, at least 1.
        bytes: u16,
        /// Values of a byte: 2 to 256.
        values: u16,
    },
    /// URLs: hosts by Zipf's law, directories of words, a number in the last part.
    Url,
    /// Lower-case words of 2 to 24 letters, the 100 most frequent English ones among them.
    Word,
    /// Random uuids (version 4) as text: 36 bytes.
    UuidText,
    /// Random uuids (version 4) as 16 bytes.
    Uuid,
    /// 31-mers of a genome with repeats, as text: 31 of `ACGT`.
    Kmer,
    /// `user_000123456`: 14 bytes.
    User,
    /// `2026-11-21T12:34:56.789Z#42`: ascending times, five per millisecond, and numbers of one or two
    /// digits that distinguish them.
    LogTime,
    /// URLs with long common parts: 1,000 hosts by Zipf's law, 1 to 6 parts of 20,000 words, a third with a
    /// number.
    HostUrl,
    /// Paths of nested folders: 8 to 200 bytes.
    Path,
    /// Qualified names: `org.words.parts.SomeClass.someMember`.
    Name,
    /// Lines of a log: time, host, level, program, message.
    LogLine,
}

impl Kind {
    /// One of each.
    pub const ALL: [Self; 15] = [
        Self::Phone,
        Self::Digits { bytes: 16, values: 2 },
        Self::Digits { bytes: 16, values: 10 },
        Self::Digits { bytes: 64, values: 64 },
        Self::Url,
        Self::Word,
        Self::UuidText,
        Self::Uuid,
        Self::Kmer,
        Self::User,
        Self::LogTime,
        Self::HostUrl,
        Self::Path,
        Self::Name,
        Self::LogLine,
    ];

    /// The length of every key, if it is always the same.
    #[must_use]
    pub const fn width(self) -> Option<usize> {
        match self {
            Self::Phone => Some(15),
            Self::Digits { bytes, .. } => Some(bytes as usize),
            Self::UuidText => Some(36),
            Self::Uuid => Some(16),
            Self::Kmer => Some(genome::K),
            Self::User => Some(14),
            Self::Url
            | Self::Word
            | Self::LogTime
            | Self::HostUrl
            | Self::Path
            | Self::Name
            | Self::LogLine => None,
        }
    }

    /// Maximum number of keys.
    #[must_use]
    pub fn available(self) -> u64 {
        match self {
            Self::Phone => PHONES,
            Self::Digits { bytes, values } => digits_of_number(bytes, values).1,
            Self::Url | Self::User => 1_000_000_000,
            // There are more, but they come ever more seldom.
            Self::Word => 1 << 24,
            Self::HostUrl | Self::Path | Self::Name => 1 << 27,
            Self::LogLine => 1 << 30,
            Self::UuidText | Self::Uuid => 1 << 62,
            Self::Kmer => 1 << 40,
            // A hundred years.
            Self::LogTime => 2_000_000_000_000,
        }
    }

    /// `count` keys, one after the other.
    ///
    /// # Panics
    /// If there are not that many: see [`Kind::available`].
    #[must_use]
    pub fn stream(self, count: u64, seed: u64) -> Stream {
        assert!(count <= self.available(), "{count} keys of {self}: there are {}", self.available());
        let seen = self.repeats().then(Seen::default);
        Stream { source: Source::new(self, seed), next: 0, left: count, seen, key: Vec::new() }
    }

    /// The keys of [`Kind::stream`], made by all threads at once.
    ///
    /// # Panics
    /// If there are not that many: see [`Kind::available`].
    #[must_use]
    pub fn keys(self, count: u64, seed: u64) -> Keys {
        let mut stream = self.stream(count, seed);
        if stream.seen.is_some() {
            let mut keys = Keys::with_capacity(count as usize, 0);
            while let Some(key) = stream.next() {
                keys.push(key);
            }
            return keys;
        }
        in_parts(count as usize, |range, keys| {
            for i in range {
                keys.push_with(|key| stream.source.write(i as u64, key));
            }
        })
    }

    /// The keys of [`Kind::stream`], ascending.
    ///
    /// # Panics
    /// If there are not that many: see [`Kind::available`].
    #[must_use]
    pub fn sorted(self, count: u64, seed: u64) -> Keys {
        sort(&self.keys(count, seed))
    }

    /// Returns true if the source gives the same key again.
    const fn repeats(self) -> bool {
        matches!(self, Self::Word | Self::Kmer | Self::HostUrl | Self::Path | Self::Name | Self::LogLine)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digits { bytes, values } => return write!(f, "digits:{bytes}:{values}"),
            Self::Phone => "phone",
            Self::Url => "url",
            Self::Word => "word",
            Self::UuidText => "uuid-text",
            Self::Uuid => "uuid",
            Self::Kmer => "kmer",
            Self::User => "user",
            Self::LogTime => "log-time",
            Self::HostUrl => "host-url",
            Self::Path => "path",
            Self::Name => "name",
            Self::LogLine => "log-line",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    /// Parses the text that `Display` writes: `phone`, `digits:16:10`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(kind) = Self::ALL.into_iter().find(|kind| kind.to_string() == text) {
            return Ok(kind);
        }
        let numbers = text.strip_prefix("digits:").and_then(|text| text.split_once(':'));
        if let Some((Ok(bytes @ 1..), Ok(values @ 2..=256))) =
            numbers.map(|(bytes, values)| (bytes.parse(), values.parse()))
        {
            return Ok(Self::Digits { bytes, values });
        }
        Err(format!("no kind of keys is called {text}: use phone, digits:BYTES:VALUES, url, word, ..."))
    }
}

/// Distinct keys, one after the other: [`Kind::stream`].
pub struct Stream {
    source: Source,
    next: u64,
    left: u64,
    seen: Option<Seen>,
    key: Vec<u8>,
}

impl Stream {
    /// Returns the next key. It lives until the next call, so this is not an iterator.
    #[allow(clippy::should_implement_trait, reason = "the key is lent")]
    pub fn next(&mut self) -> Option<&[u8]> {
        self.left = self.left.checked_sub(1)?;
        loop {
            self.key.clear();
            self.source.write(self.next, &mut self.key);
            self.next += 1;
            if self.seen.as_mut().is_none_or(|seen| seen.insert(hash(&self.key))) {
                return Some(&self.key);
            }
        }
    }
}

/// Hashes of keys. If two different keys have the same hash, one of them is left out, which does no harm.
type Seen = HashSet<u64, BuildHasherDefault<Hashed>>;

/// The hasher for what is hashed already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Data that is computed once for all keys.
struct Source {
    kind: Kind,
    seed: u64,
    shuffle: Shuffle,
}

const PHONES: u64 = 25 * 900 * 900 * 9000;
/// Milliseconds between two groups of log lines.
const LOG_STRIDE_MS: u64 = 7;
const LOG_GROUP: u64 = 5;

/// The leading digits that make a key distinct, and how many numbers they hold, at most 2^62.
fn digits_of_number(bytes: u16, values: u16) -> (u16, u64) {
    assert!(bytes > 0 && (2..=256).contains(&values), "{bytes} bytes of {values} values");
    let (mut digits, mut numbers) = (0, 1u64);
    while digits < bytes && numbers <= (1 << 62) / u64::from(values) {
        numbers *= u64::from(values);
        digits += 1;
    }
    (digits, numbers)
}

const BASE64: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
const LETTERS: &[u8; 52] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The byte of a digit below `values`.
fn digit_byte(digit: u8, values: u16) -> u8 {
    match values {
        ..=10 => b'0' + digit,
        52 => LETTERS[usize::from(digit)],
        11..=64 => BASE64[usize::from(digit)],
        _ => digit,
    }
}

/// Appends `number` in decimal with at least `width` digits.
fn decimal(number: u64, width: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let (mut rest, mut start) = (number, digits.len());
    while rest > 0 || digits.len() - start < width {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[start..]);
}

impl Source {
    fn new(kind: Kind, seed: u64) -> Self {
        let seed = mix64(seed.wrapping_add(0x9E37_79B9_7F4A_7C15));
        Self { kind, seed, shuffle: Shuffle::new(kind.available().min(1 << 62), seed) }
    }

    /// Appends key number `i`, which is below what is available.
    fn write(&self, i: u64, out: &mut Vec<u8>) {
        match self.kind {
            Kind::Phone => self.phone(i, out),
            Kind::Digits { bytes, values } => self.digits(i, bytes, values, out),
            Kind::Url => words::url(self.shuffle.at(i), self.seed, out),
            Kind::Word => words::word(i, self.seed, out),
            Kind::Uuid => out.extend_from_slice(&self.uuid(i)),
            Kind::UuidText => {
                for (at, byte) in self.uuid(i).into_iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        out.push(b'-');
                    }
                    let hex = b"0123456789abcdef";
                    out.extend([hex[usize::from(byte >> 4)], hex[usize::from(byte & 15)]]);
                }
            }
            Kind::Kmer => genome::letters(genome::kmer(i, self.seed), out),
            Kind::User => {
                out.extend_from_slice(b"user_");
                decimal(self.shuffle.at(i), 9, out);
            }
            Kind::LogTime => self.log_time(i, out),
            Kind::HostUrl => long::url(i, self.seed, out),
            Kind::Path => long::path(i, self.seed, out),
            Kind::Name => long::name(i, self.seed, out),
            Kind::LogLine => long::log_line(i, self.seed, out),
        }
    }

    fn phone(&self, i: u64, out: &mut Vec<u8>) {
        let number = self.shuffle.at(i);
        let (number, last) = (number / 9000, 1000 + number % 9000);
        let (number, second) = (number / 900, 100 + number % 900);
        let (country, first) = (10 + number / 900, 100 + number % 900);
        for (part, width, end) in [(country, 2, "-"), (first, 3, "-"), (second, 3, "-"), (last, 4, "")] {
            decimal(part, width, out);
            out.extend_from_slice(end.as_bytes());
        }
    }

    fn digits(&self, i: u64, bytes: u16, values: u16, out: &mut Vec<u8>) {
        let (leading, _) = digits_of_number(bytes, values);
        let start = out.len();
        let mut number = self.shuffle.at(i);
        out.resize(start + usize::from(bytes), 0);
        for byte in out[start..][..usize::from(leading)].iter_mut().rev() {
            *byte = digit_byte((number % u64::from(values)) as u8, values);
            number /= u64::from(values);
        }
        // Four digits of a draw: its highest bits are the first, what is left of them the next.
        for (part, bytes) in (0u64..).zip(out[start + usize::from(leading)..].chunks_mut(4)) {
            let mut fraction = mix64(mix64(self.seed ^ i).wrapping_add(part));
            for byte in bytes {
                let wide = u128::from(fraction) * u128::from(values);
                *byte = digit_byte((wide >> 64) as u8, values);
                fraction = wide as u64;
            }
        }
    }

    fn uuid(&self, i: u64) -> [u8; 16] {
        let high = mix64(self.seed ^ i) & !0xF000 | 0x4000;
        let low = self.shuffle.at(i) | 1 << 63;
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    fn log_time(&self, i: u64, out: &mut Vec<u8>) {
        let group = i / LOG_GROUP;
        let draw = mix64(self.seed ^ group);
        let ms = group * LOG_STRIDE_MS + below(draw, LOG_STRIDE_MS);
        let (seconds, ms) = (ms / 1000, ms % 1000);
        // Days since 1970-01-01: the first one is 2026-11-21.
        let (year, month, day) = date(20_778 + seconds / 86_400);
        for (part, width, end) in [
            (year, 4, "-"),
            (month, 2, "-"),
            (day, 2, "T"),
            (seconds / 3600 % 24, 2, ":"),
            (seconds / 60 % 60, 2, ":"),
            (seconds % 60, 2, "."),
            (ms, 3, "Z#"),
            (i % LOG_GROUP + below(mix64(draw), 90), 1, ""),
        ] {
            decimal(part, width, out);
            out.extend_from_slice(end.as_bytes());
        }
    }
}

/// Year, month and day of a day counted from 1970-01-01. Years begin in March here, so that the day
/// that is sometimes missing is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let year = year + 400 * era + u64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day - (153 * month + 2) / 5 + 1)
}

/// 64 bits that follow from a key.
fn hash(key: &[u8]) -> u64 {
    let mut hash = key.len() as u64;
    for part in key.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        hash = mix64(hash.rotate_left(5) ^ u64::from_le_bytes(bytes)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    }
    mix64(hash)
}

/// Returns the value of `key`.
#[must_use]
pub fn value(key: &[u8]) -> u32 {
    hash(key) as u32
}

/// The value of each key.
#[must_use]
pub fn values(keys: &Keys) -> Vec<u32> {
    (0..keys.len()).into_par_iter().map(|i| value(keys.get(i))).collect()
}

/// Keys of 0..`count`, made in parts by all threads.
fn in_parts(count: usize, write: impl Fn(std::ops::Range<usize>, &mut Keys) + Sync) -> Keys {
    const PART: usize = 1 << 16;
    let parts: Vec<Keys> = (0..count.div_ceil(PART))
        .into_par_iter()
        .map(|part| {
            let range = part * PART..((part + 1) * PART).min(count);
            let mut keys = Keys::with_capacity(range.len(), 0);
            write(range, &mut keys);
            keys
        })
        .collect();
    let bytes = parts.iter().map(|part| part.data().len()).sum();
    let mut keys = Keys::with_capacity(count, bytes);
    for part in parts {
        keys.append(part.view());
    }
    keys
}

/// The same keys in ascending order. What follows the bytes that all keys begin with is compared 16
/// bytes at a time first, beside the position; the keys themselves are looked at if that is equal.
#[must_use]
pub fn sort(keys: &Keys) -> Keys {
    let first = if keys.is_empty() { &[] } else { keys.get(0) };
    let same = |key: &[u8]| first.iter().zip(key).take_while(|(a, b)| a == b).count();
    let shared = (0..keys.len()).into_par_iter().map(|i| same(keys.get(i))).min().unwrap_or(0);
    let mut order: Vec<(u64, u64, u64)> = (0..keys.len())
        .into_par_iter()
        .map(|i| {
            let rest = &keys.get(i)[shared..];
            let mut bytes = [0; 16];
            let kept = rest.len().min(16);
            bytes[..kept].copy_from_slice(&rest[..kept]);
            let prefix = u128::from_be_bytes(bytes);
            ((prefix >> 64) as u64, prefix as u64, i as u64)
        })
        .collect();
    order.par_sort_unstable_by(|a, b| {
        (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| keys.get(a.2 as usize).cmp(keys.get(b.2 as usize)))
    });
    in_parts(order.len(), |range, sorted| {
        order[range].iter().for_each(|&(_, _, i)| sorted.push(keys.get(i as usize)));
    })
}

/// `count` keys that are present, each drawn from all of them, in no order. Empty without keys.
#[must_use]
pub fn hits(keys: &Keys, count: usize) -> Keys {
    let ranks = keys.len() as u64;
    if ranks == 0 {
        return Keys::new();
    }
    in_parts(count, |range, hits| {
        for i in range {
            hits.push(keys.get(below(draw(i), ranks) as usize));
        }
    })
}

/// `count` keys that are absent, in no order: keys that are present with one byte exchanged for that of
/// another key, or with a byte appended if those are all present. `keys` are ascending.
#[must_use]
pub fn misses(keys: &Keys, count: usize) -> Keys {
    let ranks = keys.len() as u64;
    let any = |x: u64| if ranks == 0 { &[] } else { keys.get(below(x, ranks) as usize) };
    in_parts(count, |range, misses| {
        let mut key = Vec::new();
        for i in range {
            let mut random = draw(i);
            key.clear();
            key.extend_from_slice(any(random));
            for attempt in 0.. {
                if search(keys.view(), &key).is_err() {
                    break;
                }
                random = mix64(random.wrapping_add(0x9E37_79B9_7F4A_7C15));
                let at = below(mix64(random), key.len() as u64) as usize;
                match any(random).get(at) {
                    Some(&byte) if attempt < 64 && at < key.len() => key[at] = byte,
                    _ => key.push(random as u8),
                }
            }
            misses.push(&key);
        }
    })
}

/// Draw number `i` of queries.
fn draw(i: usize) -> u64 {
    mix64((i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Returns the rank of `key` among ascending keys, or the rank at which it would be inserted.
fn search(keys: View<'_>, key: &[u8]) -> Result<usize, usize> {
    let (mut start, mut end) = (0, keys.len());
    while start < end {
        let middle = start.midpoint(end);
        match keys.get(middle).cmp(key) {
            Ordering::Less => start = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => end = middle,
        }
    }
    Err(start)
}

#[cfg(test)]
mod tests;
