//! Maps byte keys to words and back: the file's `pmask` (FAST, Kim et al., sections 6.2 and 7.1).
//!
//! The keys of a file agree in most of their bits: digits differ in the low half of each byte, and ids of one
//! kind begin alike. Only the bits in which some two keys differ are *kept*. Gathered from the first byte on,
//! they are the *word* of the key, and the order of the words is the order of the keys.
//!
//! If all kept bits fit in a word (with the length, if it varies), the word *is* the key. Otherwise the word
//! covers the first bytes of the keys, and different keys may have equal words. The bits that it omits are
//! stored outside of the lines: as a tail ([`crate::tail`]), or as part of the whole key in the key column.
//!
//! Shorter keys are read as if zero bytes followed, and their length comes last: `a` < `a\0` < `aa`.
//!
//! A query that differs from all keys in a bit that was not kept is not a key of the file. The first such bit
//! decides its place: before or after all keys that agree with the query up to there. That is the place of
//! the word whose later bits are all 0 or all 1 ([`Place::Gap`]).

pub use crate::chunk::Chunk;
use crate::chunk::{CHUNK_BYTES, load};
use crate::error::FormatError;
use crate::rules::Rule;
use crate::tail::{TAIL_BYTES_MAX, Tail};
use crate::types::KEY_BYTES_MAX;

/// Bytes of the section before its two arrays.
pub const HEAD_BYTES: usize = 32;
/// Maximum bytes of the section: those for the longest keys.
pub const MASK_BYTES_MAX: u64 = (HEAD_BYTES + 2 * KEY_BYTES_MAX) as u64;

/// Place of a query among the words of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the keys with this word, if there are any. In a lossless file such a key is the query.
    Word(u128),
    /// At no key: between the words below it and those from it on.
    Gap {
        /// The word.
        word: u128,
        /// True if keys with this same word are below the query too.
        after: bool,
    },
}

/// Mapping of the keys of a file to words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    chunks: Vec<Chunk>,
    /// Bytes of the longest key.
    key_bytes_max: usize,
    /// Number of leading bytes that the word covers.
    covered: usize,
    /// True if all keys have the same length by their type.
    fixed: bool,
    lossless: bool,
    length_mask: u16,
    length_bits: u32,
    bits: u32,
    tail: Option<Tail>,
}

impl Mask {
    /// Returns the chunks of the covered bytes.
    #[must_use]
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }
    /// Returns the bytes of the longest key.
    #[must_use]
    pub fn key_bytes_max(&self) -> usize {
        self.key_bytes_max
    }
    /// Returns the number of leading bytes of the keys that the word covers.
    #[must_use]
    pub fn covered(&self) -> usize {
        self.covered
    }
    /// Reports whether the type gives all keys one length.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }
    /// Returns the number of kept bits, including those of the length.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }
    /// Reports whether a word is the whole key.
    #[must_use]
    pub fn is_lossless(&self) -> bool {
        self.lossless
    }
    /// Returns the layout of the tails, which contain the bits that the word omits; `None` if the file has no
    /// tails.
    #[must_use]
    pub fn tail(&self) -> Option<&Tail> {
        self.tail.as_ref()
    }
    /// Returns the mask with the same words, without tails.
    #[must_use]
    pub fn without_tail(self) -> Self {
        Self { tail: None, ..self }
    }
    /// Returns the bytes of the smallest word that has room for the kept bits: 4, 8 or 16.
    #[must_use]
    pub fn word_bytes(&self) -> usize {
        match self.bits {
            0..=32 => 4,
            33..=64 => 8,
            _ => 16,
        }
    }

    fn assemble(head: &Head, reference: &[u8], mask: &[u8]) -> Self {
        fn chunks(reference: &[u8], mask: &[u8]) -> impl Iterator<Item = Chunk> {
            let both = mask.chunks(CHUNK_BYTES).zip(reference.chunks(CHUNK_BYTES));
            both.map(|(mask, reference)| {
                Chunk::new(load(mask, 0), load(reference, 0), leading_ones(mask.len()))
            })
        }
        let (covered, key_bytes_max) = (head.covered as usize, head.key_bytes_max as usize);
        let (reference, reference_behind) = reference.split_at(covered);
        let (mask, mask_behind) = mask.split_at(covered);
        let tail = (head.tail_bytes > 0).then(|| {
            let chunks = chunks(reference_behind, mask_behind);
            Tail::new(chunks, covered, head.length_mask, key_bytes_max, head.tail_bytes.into())
        });
        let chunks: Vec<Chunk> = chunks(reference, mask).collect();
        let kept: u32 = chunks.iter().map(|chunk| chunk.kept).sum();
        let length_mask = if head.lossless { head.length_mask } else { 0 };
        let length_bits = length_mask.count_ones();
        Self {
            chunks,
            key_bytes_max,
            covered,
            fixed: head.fixed,
            lossless: head.lossless,
            length_mask,
            length_bits,
            bits: kept.saturating_add(length_bits),
            tail,
        }
    }

    /// Returns the place of a query. `compress` is [`Chunk::compress`] or an equivalent. O(covered bytes).
    #[inline(always)]
    pub fn place(&self, query: &[u8], compress: impl Fn(&Chunk, u64) -> u64) -> Place {
        let mut different = 0;
        let mut bytes_of = |at: usize, chunk: &Chunk| {
            let bytes = load(query, at * CHUNK_BYTES);
            different |= (bytes ^ chunk.reference) & chunk.constant;
            compress(chunk, bytes)
        };
        let chunks = self.chunks.iter().enumerate();
        let word = if self.bits <= 64 {
            // A chunk of 64 kept bits is then the only chunk that keeps any.
            let narrow = chunks.fold(0u64, |word, (at, chunk)| {
                (word.wrapping_shl(chunk.kept) * u64::from(chunk.kept < 64)) | bytes_of(at, chunk)
            });
            u128::from(narrow)
        } else {
            chunks.fold(0u128, |word, (at, chunk)| word << chunk.kept | u128::from(bytes_of(at, chunk)))
        };
        if different != 0 || (self.lossless && !self.is_length(query.len())) {
            return self.gap(query);
        }
        if !self.lossless {
            return Place::Word(word);
        }
        Place::Word(word << self.length_bits | u128::from(self.length_code(query.len())))
    }

    /// Reports whether a key of a lossless file can have this length. If all keys have one length, the query
    /// must have it; otherwise the bits of its length that are not kept must be those of the longest key.
    #[inline(always)]
    fn is_length(&self, length: usize) -> bool {
        length <= self.key_bytes_max && (length ^ self.key_bytes_max) as u16 & !self.length_mask == 0
    }

    #[inline(always)]
    fn length_code(&self, length: usize) -> u64 {
        length as u64 & u64::from(self.length_mask)
    }

    /// Returns the place of a query that differs in a bit that all keys share.
    #[cold]
    fn gap(&self, query: &[u8]) -> Place {
        let mut word = 0u128;
        let mut left = self.bits;
        for (at, chunk) in self.chunks.iter().enumerate() {
            let bytes = load(query, at * CHUNK_BYTES);
            let different = (bytes ^ chunk.reference) & chunk.constant;
            left = left.saturating_sub(chunk.kept);
            if different == 0 {
                word = word << chunk.kept | u128::from(chunk.compress(bytes));
                continue;
            }
            let first = different.leading_zeros();
            let after = bytes << first >> 63 != 0;
            let below = u64::MAX.checked_shr(first + 1).unwrap_or(0);
            let decided = if after { bytes | below } else { bytes & !below };
            word = word << chunk.kept | u128::from(chunk.compress(decided));
            return Self::fill(word, left, after);
        }
        // Only the length differs, and it decides among the keys that agree in all bytes. A shorter query
        // lacks a bit that the lengths of all keys have.
        Self::fill(word, self.length_bits, query.len() > self.key_bytes_max)
    }

    fn fill(word: u128, bits: u32, after: bool) -> Place {
        let word = word.checked_shl(bits).unwrap_or(0);
        let ones = if after { 1u128.checked_shl(bits).unwrap_or(0).wrapping_sub(1) } else { 0 };
        Place::Gap { word: word | ones, after }
    }

    /// Appends the key of a word to `key`. The file must be lossless.
    pub fn unpack(&self, word: u128, key: &mut Vec<u8>) {
        let start = key.len();
        let length = self.key_bytes_max as u16 & !self.length_mask | word as u16 & self.length_mask;
        self.unpack_covered(word >> self.length_bits, key);
        key.resize(start + usize::from(length).min(self.key_bytes_max), 0);
    }

    /// Appends the key of a word and its tail to `key`. `tail` begins with the tail, followed by
    /// [`crate::tail::TAIL_GUARD_BYTES`] of any content. The file must have tails.
    pub fn unpack_with(&self, word: u128, tail: &[u8], key: &mut Vec<u8>) {
        let start = key.len();
        self.unpack_covered(word, key);
        key.resize(start + self.covered, 0);
        if let Some(shape) = &self.tail {
            shape.unpack(tail, start, key);
        }
    }

    /// Appends the covered bytes, in whole chunks.
    fn unpack_covered(&self, mut code: u128, key: &mut Vec<u8>) {
        let start = key.len();
        key.resize(start + self.chunks.len() * CHUNK_BYTES, 0);
        for (at, chunk) in self.chunks.iter().enumerate().rev() {
            let bytes = chunk.expand(code as u64) | chunk.reference;
            code = code.checked_shr(chunk.kept).unwrap_or(0);
            key[start + at * CHUNK_BYTES..][..CHUNK_BYTES].copy_from_slice(&bytes.to_be_bytes());
        }
    }

    /// Returns the bytes of the section.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_BYTES];
        bytes[0..4].copy_from_slice(&(self.key_bytes_max as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&(self.covered as u32).to_le_bytes());
        let length_mask = self.tail.as_ref().map_or(self.length_mask, Tail::length_mask);
        bytes[8..10].copy_from_slice(&length_mask.to_le_bytes());
        bytes[10] = u8::from(self.lossless);
        bytes[11] = u8::from(self.fixed);
        bytes[12..14].copy_from_slice(&(self.tail.as_ref().map_or(0, Tail::bytes) as u16).to_le_bytes());
        let mut array = |of: fn(&Chunk) -> u64| {
            let start = bytes.len();
            bytes.extend(self.chunks.iter().flat_map(|chunk| of(chunk).to_be_bytes()));
            bytes.truncate(start + self.covered);
            if let Some(tail) = &self.tail {
                bytes.extend(tail.chunks().flat_map(|chunk| of(&chunk).to_be_bytes()));
                bytes.truncate(start + self.key_bytes_max);
            }
        };
        array(|chunk| chunk.reference);
        array(|chunk| chunk.mask);
        bytes
    }

    /// Parses the section of a file whose words have `word_bytes` bytes. `offset` is its place in the file,
    /// for the error. O(longest key).
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if the section breaks a rule of the format, or if the kept bits do not fit in
    /// a word or a tail.
    pub fn parse(bytes: &[u8], word_bytes: usize, offset: u64) -> Result<Self, FormatError> {
        let corrupt = |at: usize, rule, found: u64| FormatError::Corrupt {
            what: "MASK",
            offset: offset.saturating_add(at as u64),
            rule: Rule::Mask.broken(rule),
            found,
        };
        let Some((head, arrays)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
            return Err(corrupt(0, "there must be 32 bytes before the arrays", bytes.len() as u64));
        };
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (key_bytes_max, covered) = (number(0), number(4));
        if key_bytes_max as usize > KEY_BYTES_MAX {
            return Err(corrupt(0, "a key has at most 65,535 bytes", key_bytes_max.into()));
        }
        let head = Head {
            key_bytes_max,
            covered,
            length_mask: u16::from_le_bytes([head[8], head[9]]),
            lossless: head[10] == 1,
            fixed: head[11] == 1,
            tail_bytes: u16::from_le_bytes([head[12], head[13]]),
        };
        let described = if head.tail_bytes > 0 { key_bytes_max } else { covered } as usize;
        if covered > key_bytes_max || arrays.len() != 2 * described {
            return Err(corrupt(4, "the arrays must be as long as the bytes they describe", covered.into()));
        }
        if bytes[10] > 1 || bytes[11] > 1 || bytes[14..HEAD_BYTES] != [0; HEAD_BYTES - 14] {
            return Err(corrupt(10, "flags must be 0 or 1, reserved bytes zero", bytes[10].into()));
        }
        if head.lossless && (covered != key_bytes_max || head.tail_bytes > 0) {
            return Err(corrupt(
                4,
                "a lossless word must cover the whole key, without a tail",
                covered.into(),
            ));
        }
        if usize::from(head.tail_bytes) > TAIL_BYTES_MAX {
            return Err(corrupt(12, "a tail has at most 1024 bytes", head.tail_bytes.into()));
        }
        if head.length_mask & head.length_mask.wrapping_add(1) != 0 {
            return Err(corrupt(
                8,
                "the kept bits of the length must be the low ones",
                head.length_mask.into(),
            ));
        }
        let has_length = (head.lossless || head.tail_bytes > 0) && !head.fixed;
        if head.length_mask != 0 && !has_length {
            let rule = "the length is stored only in lossless words and in tails";
            return Err(corrupt(8, rule, head.length_mask.into()));
        }
        let (reference, mask) = arrays.split_at(described);
        let this = Self::assemble(&head, reference, mask);
        if this.bits > word_bytes as u32 * 8 {
            return Err(corrupt(HEAD_BYTES, "the kept bits must fit in a word", this.bits.into()));
        }
        if let Some(tail) = this.tail.as_ref().filter(|tail| tail.bits() > 8 * tail.bytes()) {
            return Err(corrupt(12, "the kept bits after the word must fit in a tail", tail.bits() as u64));
        }
        Ok(this)
    }
}

struct Head {
    key_bytes_max: u32,
    covered: u32,
    length_mask: u16,
    lossless: bool,
    fixed: bool,
    tail_bytes: u16,
}

/// Returns a chunk with the bits of the first `bytes` bytes set.
fn leading_ones(bytes: usize) -> u64 {
    if bytes >= CHUNK_BYTES { u64::MAX } else { !(u64::MAX >> (8 * bytes)) }
}

/// Collects the bits in which keys differ. The order of keys does not matter, and surveys of parts of the
/// keys can be [merged](Survey::merge).
#[derive(Clone, Debug, Default)]
pub struct Survey {
    reference: Vec<u8>,
    varying: Vec<u8>,
    lengths: Option<(usize, usize)>,
}

impl Survey {
    /// Adds a key. O(bytes).
    pub fn add(&mut self, key: &[u8]) {
        let Some((shortest, longest)) = self.lengths else {
            self.reference = key.to_vec();
            self.varying = vec![0; key.len()];
            self.lengths = Some((key.len(), key.len()));
            return;
        };
        if key.len() > longest {
            self.reference.resize(key.len(), 0);
            self.varying.resize(key.len(), 0);
        }
        self.lengths = Some((shortest.min(key.len()), longest.max(key.len())));
        let (there, beyond) = self.varying.split_at_mut(key.len());
        for ((varying, reference), byte) in there.iter_mut().zip(&self.reference).zip(key) {
            *varying |= reference ^ byte;
        }
        if key.len() < longest {
            for (varying, reference) in beyond.iter_mut().zip(&self.reference[key.len()..]) {
                *varying |= reference;
            }
        }
    }

    /// Returns the number of leading bytes in which all keys agree; shorter keys are read as if zeros
    /// followed.
    #[must_use]
    pub fn common_bytes(&self) -> usize {
        self.varying.iter().take_while(|&&byte| byte == 0).count()
    }

    /// Adds all keys of another survey.
    pub fn merge(&mut self, other: &Self) {
        let Some((shortest, longest)) = other.lengths else { return };
        self.add(&other.reference[..longest]);
        let (low, high) = self.lengths.unwrap_or((shortest, longest));
        self.lengths = Some((low.min(shortest), high.max(longest)));
        for (varying, others) in self.varying.iter_mut().zip(&other.varying) {
            *varying |= others;
        }
    }

    /// Returns the mask for words of at most `word_bytes` bytes. `fixed` is the length of all keys if the
    /// type specifies one.
    ///
    /// A lossless mask is preferred. If there is none, the word covers as many leading bytes as fit whole,
    /// and a tail covers the others, unless it would be too long.
    #[must_use]
    pub fn mask(&self, fixed: Option<usize>, word_bytes: usize) -> Mask {
        let (shortest, longest) = self.lengths.unwrap_or_default();
        let key_bytes_max = fixed.unwrap_or(longest);
        let mut reference = self.reference.clone();
        let mut mask = self.varying.clone();
        reference.resize(key_bytes_max, 0);
        mask.resize(key_bytes_max, 0);
        // Lengths do not differ in bits above the highest one in which the shortest and the longest length
        // differ.
        let spread = (shortest ^ longest) as u16;
        let length_mask = if fixed.is_some() || spread == 0 { 0 } else { u16::MAX >> spread.leading_zeros() };
        let limit = word_bytes as u32 * 8;
        let bits = |mask: &[u8]| mask.iter().map(|byte| byte.count_ones()).sum::<u32>();
        let all = bits(&mask) + length_mask.count_ones();
        let mut head = Head {
            key_bytes_max: key_bytes_max as u32,
            covered: key_bytes_max as u32,
            length_mask,
            lossless: all <= limit,
            fixed: fixed.is_some(),
            tail_bytes: 0,
        };
        if !head.lossless {
            let mut room = limit;
            let covered = mask.iter().position(|byte| {
                let fits = byte.count_ones() <= room;
                room = room.saturating_sub(byte.count_ones());
                !fits
            });
            let covered = covered.unwrap_or(mask.len());
            head.covered = covered as u32;
            let tail_bytes = Tail::bytes_for((all - bits(&mask[..covered])) as usize);
            if tail_bytes <= TAIL_BYTES_MAX {
                head.tail_bytes = tail_bytes as u16;
            } else {
                head.length_mask = 0;
                mask.truncate(covered);
                reference.truncate(covered);
            }
        }
        Mask::assemble(&head, &reference, &mask)
    }
}
