//! Short words: numeric keys in fewer bytes than their type has.
//!
//! The keys of a table rarely need all bits of their type: ids are dense, times lie in one year, tenants leave
//! most of their bits zero. If 32 bits tell the keys of a file apart, its words have 4 bytes; if 64 bits do,
//! words of 128-bit keys have 8. More tuples fit in a line, in the spine and in a cache.
//!
//! The rule is `key = base + spread(word)`, where `spread` moves up to four runs of bits, from the lowest on, to
//! their places. With one run from bit 0 on, a word is the distance of its key from the smallest one. Otherwise
//! `base` has the bits in which no two keys differ, and the runs are the others. Both keep the order of keys.
//!
//! A key without a word is no key of the file, and all smaller keys that have one come before it. So its place
//! is that of the first word above them, or the end ([`Seek`]).

use crate::key::Word;

/// Maximum number of runs.
pub const RUNS_MAX: usize = 4;

/// Consecutive bits of a key that are kept in its word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The lowest of them.
    pub from: u8,
    /// Their number; 0 if there is no such run.
    pub bits: u8,
}

impl Run {
    /// Returns the bits of this run, set.
    fn mask(self) -> u128 {
        ones(self.bits.into()).checked_shl(self.from.into()).unwrap_or(0)
    }
}

/// Returns a number whose lowest `bits` bits are set.
fn ones(bits: u32) -> u128 {
    u128::MAX.checked_shr(128 - bits.min(128)).unwrap_or(0)
}

/// A run, where it is in a key and where in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    from: u32,
    at: u32,
    mask: u64,
}

/// Which bits of the keys are in the words of a file, and what the others are. Methods with a type `W` expect the
/// word of the file's key type, or a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    key_bytes: u8,
    word_bytes: u8,
    base: u128,
    runs: [Run; RUNS_MAX],
    parts: [Part; RUNS_MAX],
    /// The largest word.
    most: u64,
    /// A word is the distance of its key from `base`.
    subtracts: bool,
}

impl Short {
    /// Returns the short words of a writer that has seen all keys, or `None` if they need the words of their
    /// type. `min` and `max` are the smallest and the largest key, `varying` has the bits in which some key
    /// differs from another. The smallest word is chosen; of two of the same size, the one that subtracts.
    #[must_use]
    pub fn choose(key_bytes: usize, min: u128, max: u128, varying: u128) -> Option<Self> {
        [4, 8].into_iter().filter(|&word_bytes| word_bytes < key_bytes).find_map(|word_bytes| {
            let bits = 8 * word_bytes as u32;
            Self::subtracting(key_bytes, word_bytes, min)
                .filter(|_| max - min <= ones(bits))
                .or_else(|| Self::dropping(key_bytes, word_bytes, min, varying))
        })
    }

    /// Returns words that are the distance of a key from `base`; `None` if they would not be shorter.
    #[must_use]
    pub fn subtracting(key_bytes: usize, word_bytes: usize, base: u128) -> Option<Self> {
        let mut runs = [Run::default(); RUNS_MAX];
        runs[0].bits = 8 * word_bytes as u8;
        (word_bytes < key_bytes).then(|| Self::made(key_bytes, word_bytes, base, runs))
    }

    /// Returns words of the bits in `varying`, and of as few bits between them as four runs need; `None` if
    /// they do not fit. `key` has the other bits.
    fn dropping(key_bytes: usize, word_bytes: usize, key: u128, varying: u128) -> Option<Self> {
        let mut kept: Vec<Run> = Vec::new();
        let mut left = varying;
        while left != 0 {
            let from = left.trailing_zeros();
            let bits = (left >> from).trailing_ones();
            kept.push(Run { from: from as u8, bits: bits as u8 });
            left &= !ones(from + bits);
        }
        let gap = |kept: &[Run], at: usize| kept[at + 1].from - kept[at].from - kept[at].bits;
        while kept.len() > RUNS_MAX {
            let at = (0..kept.len() - 1).min_by_key(|&at| gap(&kept, at))?;
            kept[at].bits += gap(&kept, at) + kept[at + 1].bits;
            kept.remove(at + 1);
        }
        let mut runs = [Run::default(); RUNS_MAX];
        runs[..kept.len()].copy_from_slice(&kept);
        let mask = kept.iter().fold(0, |mask, run| mask | run.mask());
        let fits = !kept.is_empty() && word_bytes < key_bytes && mask.count_ones() as usize <= 8 * word_bytes;
        fits.then(|| Self::made(key_bytes, word_bytes, key & !mask, runs))
    }

    fn made(key_bytes: usize, word_bytes: usize, base: u128, runs: [Run; RUNS_MAX]) -> Self {
        let mut parts = [Part::default(); RUNS_MAX];
        let mut at = 0;
        for (part, run) in parts.iter_mut().zip(&runs).filter(|(_, run)| run.bits > 0) {
            *part = Part { from: run.from.into(), at, mask: ones(run.bits.into()) as u64 };
            at += u32::from(run.bits);
        }
        Self {
            key_bytes: key_bytes as u8,
            word_bytes: word_bytes as u8,
            base,
            runs,
            parts,
            most: ones(at) as u64,
            subtracts: runs[1].bits == 0 && runs[0].from == 0,
        }
    }

    /// Returns the short words with these parameters; `None` if no file can have them. Runs ascend, do not
    /// touch, and lie within the key; the word has room for them.
    #[must_use]
    pub fn new(key_bytes: usize, word_bytes: usize, base: u128, runs: [Run; RUNS_MAX]) -> Option<Self> {
        let bits = 8 * key_bytes as u32;
        let used = runs.iter().position(|run| run.bits == 0).unwrap_or(RUNS_MAX);
        let mut end = None;
        for run in &runs[..used] {
            let from = u32::from(run.from);
            if end.is_some_and(|end| from <= end) || from + u32::from(run.bits) > bits {
                return None;
            }
            end = Some(from + u32::from(run.bits));
        }
        let kept: u32 = runs.iter().map(|run| u32::from(run.bits)).sum();
        let rest_is_zero = runs[used..].iter().all(|run| *run == Run::default());
        let fits = matches!(word_bytes, 4 | 8) && word_bytes < key_bytes && kept as usize <= 8 * word_bytes;
        let is_sound = used > 0 && rest_is_zero && fits && base <= ones(bits);
        is_sound.then(|| Self::made(key_bytes, word_bytes, base, runs))
    }

    /// Returns the bytes of a key.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        self.key_bytes.into()
    }
    /// Returns the largest key of the type: all bits.
    #[must_use]
    pub fn keys(&self) -> u128 {
        ones(8 * u32::from(self.key_bytes))
    }
    /// Returns the bytes of a word: 4 or 8.
    #[must_use]
    pub fn word_bytes(&self) -> usize {
        self.word_bytes.into()
    }
    /// Returns what is added to the bits of a word.
    #[must_use]
    pub fn base(&self) -> u128 {
        self.base
    }
    /// Returns the runs that keep bits, from the lowest on.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        self.runs.into_iter().filter(|run| run.bits > 0)
    }
    /// Reports whether a word is the distance of its key from the base.
    #[must_use]
    pub fn subtracts(&self) -> bool {
        self.subtracts
    }

    /// Returns the key of a word, or `None` if it would be too large or the word has bits that no run keeps.
    #[must_use]
    pub fn checked_key(&self, word: u128) -> Option<u128> {
        let word = u64::try_from(word).ok().filter(|&word| word <= self.most)?;
        let key = self.base.checked_add(self.spread(word))?;
        (key <= self.keys()).then_some(key)
    }

    /// Returns the bits of a word at their places in a key.
    #[inline(always)]
    fn spread<W: Word>(&self, word: u64) -> W {
        if self.subtracts {
            return W::from_u64(word & self.most);
        }
        self.parts
            .iter()
            .fold(W::default(), |key, part| key | (W::from_u64((word >> part.at) & part.mask) << part.from))
    }

    /// Returns the kept bits of a distance from the base, as a word.
    #[inline(always)]
    fn gather<W: Word>(&self, distance: W) -> u64 {
        if self.subtracts {
            return distance.low_u64() & self.most;
        }
        self.parts
            .iter()
            .fold(0, |word, part| word | ((distance >> part.from).low_u64() & part.mask) << part.at)
    }

    /// Returns the key of a word. It wraps around if the key would be too large, which only a damaged file has.
    #[inline(always)]
    #[must_use]
    pub fn key<W: Word>(&self, word: u64) -> W {
        W::from_u128(self.base).wrapping_add(self.spread(word))
    }

    /// Returns the bits that a key's word keeps: its word, if it has one.
    #[inline(always)]
    #[must_use]
    pub fn kept<W: Word>(&self, key: W) -> u64 {
        self.gather(key.wrapping_sub(W::from_u128(self.base)))
    }

    /// Returns zero if `word` is the word of `key`, and another number if it is not. Without a branch.
    #[inline(always)]
    #[must_use]
    pub fn fault<W: Word>(&self, key: W, word: u64) -> W {
        let base = W::from_u128(self.base);
        let (distance, inverse) = (key.wrapping_sub(base), key ^ W::MAX);
        // The highest bit of this is set if the subtraction borrows.
        let borrow = (inverse & base) | ((inverse | base) & distance);
        (distance ^ self.spread(word)) | borrow >> (8 * W::BYTES as u32 - 1)
    }

    /// Returns the word of a key and true; for a key without a word, a word that keeps the order of keys, and
    /// false.
    #[inline]
    #[must_use]
    pub fn word<W: Word>(&self, key: W) -> (u64, bool) {
        match self.seek(key) {
            Seek::Word(word) => (word, true),
            Seek::Before(word) => (word, false),
            Seek::End => (self.most, false),
        }
    }

    /// Returns the place of a key.
    #[inline]
    #[must_use]
    pub fn seek<W: Word>(&self, key: W) -> Seek {
        let word = self.kept(key);
        if self.fault(key, word) == W::default() { Seek::Word(word) } else { self.gap(key) }
    }

    /// Returns the place of a key without a word.
    #[cold]
    fn gap<W: Word>(&self, key: W) -> Seek {
        let base = W::from_u128(self.base);
        if key < base {
            return Seek::Before(0);
        }
        // The highest bit that no run keeps decides: keys that agree above it are smaller.
        let distance = key.wrapping_sub(base);
        let other = distance ^ self.spread(self.gather(distance));
        let last = self.gather(distance | W::from_u128(ones(other.bit_length())));
        if last < self.most { Seek::Before(last + 1) } else { Seek::End }
    }
}

/// Place of a key among the short words of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// At the tuples with this word, which have this key.
    Word(u64),
    /// At no tuple: before those with this word or a larger one.
    Before(u64),
    /// At no tuple: after all.
    End,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A generator of 64 random bits (SplitMix64).
    struct Draws(u64);

    impl Draws {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut bits = self.0;
            bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            bits ^ bits >> 31
        }
        fn wide(&mut self) -> u128 {
            u128::from(self.next()) << 64 | u128::from(self.next())
        }
    }

    /// Returns some keys whose bits differ only in `mask`, moved up by `base`.
    fn keys(draws: &mut Draws, base: u128, mask: u128) -> BTreeSet<u128> {
        let mut keys: BTreeSet<u128> = (0..40).map(|_| base.wrapping_add(draws.wide() & mask)).collect();
        keys.extend([base, base.wrapping_add(mask)]);
        keys
    }

    fn varying(keys: &BTreeSet<u128>) -> u128 {
        let first = keys.first().copied().unwrap_or_default();
        keys.iter().fold(0, |bits, key| bits | (key ^ first))
    }

    fn chosen(key_bytes: usize, keys: &BTreeSet<u128>) -> Option<Short> {
        Short::choose(key_bytes, *keys.first()?, *keys.last()?, varying(keys))
    }

    #[test]
    fn the_smallest_words_are_chosen() {
        let of = |key_bytes: usize, keys: &[u128]| {
            chosen(key_bytes, &keys.iter().copied().collect())
                .map(|short| (short.word_bytes(), short.most.count_ones()))
        };
        assert_eq!(of(8, &[7]), Some((4, 32)));
        assert_eq!(of(8, &[1 << 40, (1 << 40) + u128::from(u32::MAX)]), Some((4, 32)));
        assert_eq!(of(8, &[0, 1 << 32]), Some((4, 1)), "one bit differs");
        assert_eq!(of(8, &[1, 1 << 32]), Some((4, 32)), "the smallest key is subtracted");
        assert_eq!(of(8, &[1, 0xFFF << 50]), Some((4, 13)));
        assert_eq!(of(8, &[0, u64::MAX.into()]), None);
        assert_eq!(of(8, &[0, 0x1_0101_0101]), Some((4, 12)), "two runs join over the smallest gap");
        assert_eq!(of(8, &[0, 0x0101_0101_0101_0101]), None, "eight bits far apart");
        assert_eq!(of(4, &[1, 2]), None);
        assert_eq!(of(16, &[1, 1 << 64]), Some((4, 2)));
        assert_eq!(of(16, &[0, u64::MAX.into()]), Some((8, 64)));
        assert_eq!(of(16, &[0, u128::from(u64::MAX) << 64]), Some((8, 64)));
        assert_eq!(of(16, &[0, u128::MAX]), None);
    }

    #[test]
    fn words_keep_order_and_keys() {
        let mut draws = Draws(1);
        for round in 0..2_000 {
            let key_bytes = if round % 2 == 0 { 8 } else { 16 };
            let all = ones(8 * key_bytes as u32);
            // Sparse masks of random density, some of which fit.
            let mut mask = draws.wide() & draws.wide() & draws.wide() & all;
            if round % 3 == 0 {
                mask = ones((draws.next() % 40) as u32) << (draws.next() % 20);
            }
            let base = draws.wide() & all & !mask & if round % 5 == 0 { !0 } else { !(all >> 1 << 1) | mask };
            let keys = keys(&mut draws, base, mask);
            let Some(short) = chosen(key_bytes, &keys) else { continue };
            let again = Short::new(key_bytes, short.word_bytes(), short.base(), short.runs);
            assert_eq!(again, Some(short));
            let mut before = None;
            for &key in &keys {
                let Seek::Word(word) = short.seek(key) else { panic!("{key:x} has a word in {short:?}") };
                assert_eq!(short.key::<u128>(word), key);
                assert_eq!(short.kept(key), word);
                assert_eq!(short.checked_key(word.into()), Some(key));
                assert!(before < Some(word));
                before = Some(word);
            }
            let near = keys.iter().flat_map(|&key| [key.wrapping_sub(1), key.wrapping_add(1)]);
            let far = (0..60).map(|_| draws.wide() & all).collect::<Vec<_>>();
            let flipped = (0..60).map(|at| base ^ (1 << (at * 2 % (8 * key_bytes)))).collect::<Vec<_>>();
            let mut queries: Vec<u128> =
                near.chain(far).chain(flipped).chain([0, all]).map(|query| query & all).collect();
            queries.sort_unstable();
            let mut last = 0;
            for query in queries {
                let rank = keys.range(..query).count();
                let found = match short.seek(query) {
                    Seek::Word(word) | Seek::Before(word) => {
                        keys.iter().filter(|key| word_of(&short, key) < word).count()
                    }
                    Seek::End => keys.len(),
                };
                assert_eq!(found, rank, "{query:x} among {short:?}");
                let (any, is_key) = if key_bytes == 8 { short.word(query as u64) } else { short.word(query) };
                assert_eq!(is_key, matches!(short.seek(query), Seek::Word(_)));
                assert!(any >= last, "words ascend with their keys");
                assert_eq!(
                    keys.contains(&query),
                    keys.iter().any(|key| is_key && word_of(&short, key) == any)
                );
                last = any;
            }
        }
    }

    fn word_of(short: &Short, key: &u128) -> u64 {
        match short.seek(*key) {
            Seek::Word(word) => word,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parameters_of_no_file_are_refused() {
        let run = |from, bits| Run { from, bits };
        let none = Run::default();
        let of = |word_bytes, base, runs| Short::new(8, word_bytes, base, runs).is_some();
        assert!(of(4, 0, [run(0, 32), none, none, none]));
        assert!(of(4, u64::MAX.into(), [run(0, 8), run(9, 8), run(18, 8), run(56, 8)]));
        assert!(!of(8, 0, [run(0, 32), none, none, none]), "not shorter");
        assert!(!of(2, 0, [run(0, 16), none, none, none]));
        assert!(!of(4, 0, [none; 4]), "no run");
        assert!(!of(4, 1 << 64, [run(0, 32), none, none, none]), "a base of more bits than keys");
        assert!(!of(4, 0, [run(0, 33), none, none, none]), "more bits than a word");
        assert!(!of(4, 0, [run(40, 25), none, none, none]), "beyond the key");
        assert!(!of(4, 0, [run(0, 8), run(8, 8), none, none]), "runs that touch");
        assert!(!of(4, 0, [run(9, 8), run(0, 8), none, none]), "runs that descend");
        assert!(!of(4, 0, [run(0, 8), none, run(20, 8), none]), "a run after the last");
        assert!(!of(4, 0, [run(0, 8), run(9, 0), none, none]), "a place without bits");
    }
}
