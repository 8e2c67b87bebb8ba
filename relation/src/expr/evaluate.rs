//! Conditions over chunks of tuples: one bit per tuple.
//!
//! A block of 4,096 tuples is passed down the tree. Each node takes the tuples that are *live*: those that
//! the nodes before it have not decided. It gives a bit for each of them; the bits of others have no meaning.
//! An error counts only in a live tuple. Comparisons of a column with constants read its words in place.

use super::arithmetic::apply;
use super::column::{ColumnRef, Kind, Lane, Leaf, Side, Tuples};
use super::error::EvalError;
use super::operator::{Arithmetic, Comparison};
use super::tree::{Int, IntWhat, Test, Width};
use std::ops::Range;

/// Tuples per block: the columns of one block stay in the first-level cache.
const BLOCK: usize = 4096;
/// Maximum length of a list that is compared number by number.
const LIST_FEW: usize = 4;

/// See [`super::Predicate::evaluate`].
pub(super) fn evaluate(test: &Test, tuples: &Tuples<'_>, bits: &mut Vec<u64>) -> Result<u64, EvalError> {
    let count = tuples.len();
    if test.uses(Side::Value) && tuples.values.len() != count {
        let what = format!("there are {} values of {count} tuples", tuples.values.len());
        return Err(EvalError { rank: tuples.first_rank, what, column: None });
    }
    bits.clear();
    bits.resize(count.div_ceil(64), 0);
    let lists = Lists::from_test(test);
    let mut live = vec![u64::MAX; BLOCK / 64];
    let mut found = 0;
    for (block, out) in bits.chunks_mut(BLOCK / 64).enumerate() {
        let range = block * BLOCK..((block + 1) * BLOCK).min(count);
        let live = &mut live[..out.len()];
        if range.len() % 64 != 0
            && let Some(last) = live.last_mut()
        {
            *last = (1 << (range.len() % 64)) - 1;
        }
        let mut next_list = 0;
        let at = At { tuples, range, lists: &lists };
        at.test(test, live, out, &mut next_list)?;
        for (word, live) in out.iter_mut().zip(live.iter()) {
            *word &= live;
            found += u64::from(word.count_ones());
        }
    }
    Ok(found)
}

/// A set of 64-bit words: open addressing, half full.
struct WordSet {
    words: Vec<u64>,
    /// Which slots are used.
    taken: Vec<bool>,
    shift: u32,
}

impl WordSet {
    fn new(list: &[u128]) -> Self {
        let places = (2 * list.len()).next_power_of_two().max(2);
        let shift = 64 - places.trailing_zeros();
        let mut set = Self { words: vec![0; places], taken: vec![false; places], shift };
        for &number in list {
            let word = number as u64;
            let mut at = set.place(word);
            while set.taken[at] {
                at = (at + 1) % places;
            }
            set.words[at] = word;
            set.taken[at] = true;
        }
        set
    }

    #[inline(always)]
    fn place(&self, word: u64) -> usize {
        // Fibonacci hashing: the high bits of the product depend on all of the word.
        (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline(always)]
    fn has(&self, word: u64) -> bool {
        let mut at = self.place(word);
        while self.taken[at] {
            if self.words[at] == word {
                return true;
            }
            at = (at + 1) % self.words.len();
        }
        false
    }
}

/// The sets of the long lists of a condition, in the order in which it is walked.
struct Lists(Vec<WordSet>);

/// Returns true if a list is searched in a set.
fn is_hashed(int: &Int, list: &[u128]) -> bool {
    list.len() > LIST_FEW && matches!(int.width, Width::I64 | Width::U64)
}

impl Lists {
    fn from_test(test: &Test) -> Self {
        fn walk(test: &Test, sets: &mut Vec<WordSet>) {
            match test {
                Test::Not(of) => walk(of, sets),
                Test::All(of) | Test::Any(of) => of.iter().for_each(|test| walk(test, sets)),
                Test::In(int, list) if is_hashed(int, list) => sets.push(WordSet::new(list)),
                _ => {}
            }
        }
        let mut sets = Vec::new();
        walk(test, &mut sets);
        Self(sets)
    }

    /// Returns the number of sets of a condition.
    fn count(test: &Test) -> usize {
        match test {
            Test::Not(of) => Self::count(of),
            Test::All(of) | Test::Any(of) => of.iter().map(Self::count).sum(),
            Test::In(int, list) => usize::from(is_hashed(int, list)),
            _ => 0,
        }
    }
}

/// Packs eight flags of a byte each into eight bits.
#[inline(always)]
fn packed(flags: &[u8; 64]) -> u64 {
    let mut word = 0;
    for (index, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // Flag i is in byte i, and the product moves it to bit i of the top byte.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= bits << (8 * index);
    }
    word
}

/// Sets a bit for each item that passes the test.
#[inline(always)]
fn mark<T: Copy>(items: &[T], out: &mut [u64], test: impl Fn(T) -> bool) {
    for (items, word) in items.chunks(64).zip(out) {
        let mut flags = [0; 64];
        for (flag, &item) in flags.iter_mut().zip(items) {
            *flag = u8::from(test(item));
        }
        *word = packed(&flags);
    }
}

fn mark_pairs<T: Copy>(left: &[T], right: &[T], out: &mut [u64], test: impl Fn(T, T) -> bool) {
    for ((left, right), word) in left.chunks(64).zip(right.chunks(64)).zip(out) {
        let mut flags = [0; 64];
        for ((flag, &left), &right) in flags.iter_mut().zip(left).zip(right) {
            *flag = u8::from(test(left, right));
        }
        *word = packed(&flags);
    }
}

/// Makes the kind of a comparison known to the compiler.
macro_rules! with_comparison {
    ($comparison:expr, |$holds:ident| $body:expr) => {
        match $comparison {
            Comparison::Equal => with_comparison!(@one $holds, |a, b| a == b, $body),
            Comparison::Unequal => with_comparison!(@one $holds, |a, b| a != b, $body),
            Comparison::Below => with_comparison!(@one $holds, |a, b| a < b, $body),
            Comparison::AtMost => with_comparison!(@one $holds, |a, b| a <= b, $body),
            Comparison::Above => with_comparison!(@one $holds, |a, b| a > b, $body),
            Comparison::AtLeast => with_comparison!(@one $holds, |a, b| a >= b, $body),
        }
    };
    (@one $holds:ident, $test:expr, $body:expr) => {{
        let $holds = $test;
        $body
    }};
}

/// A block of tuples.
struct At<'a> {
    tuples: &'a Tuples<'a>,
    range: Range<usize>,
    lists: &'a Lists,
}

impl At<'_> {
    fn test(&self, test: &Test, live: &[u64], out: &mut [u64], list: &mut usize) -> Result<(), EvalError> {
        match test {
            Test::Constant(truth) => out.fill(if *truth { u64::MAX } else { 0 }),
            Test::Not(of) => {
                self.test(of, live, out, list)?;
                out.iter_mut().for_each(|word| *word = !*word);
            }
            Test::All(tests) => self.chain(tests, live, out, list, true)?,
            Test::Any(tests) => self.chain(tests, live, out, list, false)?,
            Test::Within(int, low, high) => self.within(int, (*low, *high), live, out)?,
            Test::In(int, numbers) => {
                let set = is_hashed(int, numbers).then(|| {
                    *list += 1;
                    &self.lists.0[*list - 1]
                });
                self.member(int, numbers, set, live, out)?;
            }
            Test::Compare(comparison, left, right, width) => match width {
                Width::I64 => self.compare::<i64>(*comparison, left, right, live, out)?,
                Width::U64 => self.compare::<u64>(*comparison, left, right, live, out)?,
                Width::I128 => self.compare::<i128>(*comparison, left, right, live, out)?,
                Width::U128 => self.compare::<u128>(*comparison, left, right, live, out)?,
            },
            Test::Float(comparison, leaf, number) => {
                let mut floats = Vec::with_capacity(self.range.len());
                leaf.load_floats(self.tuples, self.range.clone(), &mut floats);
                with_comparison!(*comparison, |holds| mark(&floats, out, |float: f64| holds(float, *number)));
            }
            Test::FloatPair(comparison, left, right) => {
                let (mut one, mut other) = (Vec::new(), Vec::new());
                left.load_floats(self.tuples, self.range.clone(), &mut one);
                right.load_floats(self.tuples, self.range.clone(), &mut other);
                with_comparison!(*comparison, |holds| mark_pairs(&one, &other, out, |a: f64, b: f64| holds(
                    a, b
                )));
            }
            Test::Text(comparison, leaf, text) => {
                self.strings(leaf, live, out, |string| comparison.holds(string.cmp(&text[..])));
            }
            Test::Prefix(leaf, prefix) => self.strings(leaf, live, out, |string| string.starts_with(prefix)),
            Test::TextIn(leaf, list) => {
                self.strings(leaf, live, out, |string| {
                    list.binary_search_by(|item| item.as_slice().cmp(string)).is_ok()
                });
            }
            Test::TextPair(comparison, left, right) => {
                self.each_live(live, out, |index| {
                    let (mut one, mut other) = ([0; 8], [0; 8]);
                    let (one, other) = (
                        left.bytes(self.tuples, index, &mut one),
                        right.bytes(self.tuples, index, &mut other),
                    );
                    comparison.holds(one.cmp(other))
                });
            }
        }
        Ok(())
    }

    /// `and` (`is_all`) or `or` of several.
    fn chain(
        &self,
        tests: &[Test],
        live: &[u64],
        out: &mut [u64],
        list: &mut usize,
        is_all: bool,
    ) -> Result<(), EvalError> {
        // Tuples that are not decided yet.
        let mut left = live.to_vec();
        let mut one = vec![0; out.len()];
        for test in tests {
            if left.iter().all(|&word| word == 0) {
                *list += Lists::count(test);
                continue;
            }
            self.test(test, &left, &mut one, list)?;
            for (left, one) in left.iter_mut().zip(&one) {
                *left &= if is_all { *one } else { !*one };
            }
        }
        for ((out, left), live) in out.iter_mut().zip(&left).zip(live) {
            *out = if is_all { *left } else { live & !left };
        }
        Ok(())
    }

    fn each_live(&self, live: &[u64], out: &mut [u64], test: impl Fn(usize) -> bool) {
        for ((word, out), &live) in (0..).zip(out.iter_mut()).zip(live) {
            let (mut rest, mut bits) = (live, 0);
            while rest != 0 {
                let bit = rest.trailing_zeros();
                bits |= u64::from(test(self.range.start + word * 64 + bit as usize)) << bit;
                rest &= rest - 1;
            }
            *out = bits;
        }
    }

    fn strings(&self, leaf: &Leaf, live: &[u64], out: &mut [u64], test: impl Fn(&[u8]) -> bool) {
        self.each_live(live, out, |index| test(leaf.bytes(self.tuples, index, &mut [0; 8])));
    }

    fn within(&self, int: &Int, band: (u128, u128), live: &[u64], out: &mut [u64]) -> Result<(), EvalError> {
        if let IntWhat::Leaf(leaf) = &int.what
            && leaf.at.is_none()
            && leaf.side != Side::Rank
        {
            // The stored words: keys are encoded, and signed values compare alike once their sign bit is
            // flipped.
            let flip = match (leaf.side, leaf.kind) {
                (Side::Value, Kind::I32) => 1_u64 << 31,
                (Side::Value, Kind::I64) => 1 << 63,
                _ => 0,
            };
            let sign = match leaf.kind {
                Kind::I32 => 1_u128 << 31,
                Kind::I64 => 1 << 63,
                _ => 0,
            };
            macro_rules! words {
                ($words:expr, $t:ty) => {{
                    let encoded = |number: u128| (number as $t) ^ (sign as $t);
                    let (low, flip) = (encoded(band.0), flip as $t);
                    let length = encoded(band.1).wrapping_sub(low);
                    mark(&$words[self.range.clone()], out, |word| (word ^ flip).wrapping_sub(low) <= length);
                }};
            }
            match leaf.column(self.tuples) {
                ColumnRef::U32(numbers) => words!(numbers, u32),
                ColumnRef::U64(numbers) => words!(numbers, u64),
                ColumnRef::U128(numbers) => words!(numbers, u128),
                ColumnRef::Bytes(_) | ColumnRef::None => out.fill(0),
            }
            return Ok(());
        }
        macro_rules! lanes {
            ($t:ty, $of:ident, $cast:ty) => {{
                let numbers = self.numbers::<$t>(int, live)?;
                let (low, high) = (<$t>::$of(band.0 as $cast), <$t>::$of(band.1 as $cast));
                mark(&numbers, out, |number| (low <= number) & (number <= high));
            }};
        }
        match int.width {
            Width::I64 => lanes!(i64, of_i128, i128),
            Width::U64 => lanes!(u64, of_i128, i128),
            Width::I128 => lanes!(i128, of_i128, i128),
            Width::U128 => lanes!(u128, of_u128, u128),
        }
        Ok(())
    }

    fn member(
        &self,
        int: &Int,
        list: &[u128],
        set: Option<&WordSet>,
        live: &[u64],
        out: &mut [u64],
    ) -> Result<(), EvalError> {
        if matches!(int.width, Width::I64 | Width::U64) {
            // Two's complement: equal words are equal numbers.
            let numbers = match int.width {
                Width::I64 => self.numbers::<i64>(int, live)?.into_iter().map(i64::cast_unsigned).collect(),
                _ => self.numbers::<u64>(int, live)?,
            };
            match set {
                Some(set) => mark(&numbers, out, |number| set.has(number)),
                None => {
                    let few: Vec<u64> = list.iter().map(|&number| number as u64).collect();
                    mark(&numbers, out, |number| {
                        few.iter().fold(false, |found, &one| found | (one == number))
                    });
                }
            }
            return Ok(());
        }
        // In the order of the sorted list: by their bits.
        let numbers = match int.width {
            Width::U128 => self.numbers::<u128>(int, live)?,
            _ => self.numbers::<i128>(int, live)?.into_iter().map(i128::cast_unsigned).collect(),
        };
        mark(&numbers, out, |number| list.binary_search(&number).is_ok());
        Ok(())
    }

    fn compare<T: Lane>(
        &self,
        comparison: Comparison,
        left: &Int,
        right: &Int,
        live: &[u64],
        out: &mut [u64],
    ) -> Result<(), EvalError> {
        let (left, right) = (self.numbers::<T>(left, live)?, self.numbers::<T>(right, live)?);
        with_comparison!(comparison, |holds| mark_pairs(&left, &right, out, |a: T, b: T| holds(a, b)));
        Ok(())
    }

    /// Computes the numbers of the block in a lane that they fit into.
    fn numbers<T: Lane>(&self, int: &Int, live: &[u64]) -> Result<Vec<T>, EvalError> {
        let mut out = Vec::with_capacity(self.range.len());
        match &int.what {
            IntWhat::Constant(number) => {
                let number = if int.width == Width::U128 {
                    T::of_u128(*number)
                } else {
                    T::of_i128(number.cast_signed())
                };
                out.resize(self.range.len(), number);
            }
            IntWhat::Leaf(leaf) => leaf.load(self.tuples, self.range.clone(), &mut out),
            IntWhat::Arithmetic(operation, left, right) => match int.width {
                Width::I64 => {
                    out.extend(self.computed::<i64>(*operation, (left, right), live, int)?.map(T::of_i64));
                }
                Width::U64 => {
                    out.extend(self.computed::<u64>(*operation, (left, right), live, int)?.map(T::of_u64));
                }
                Width::I128 => {
                    out.extend(self.computed::<i128>(*operation, (left, right), live, int)?.map(T::of_i128));
                }
                Width::U128 => {
                    out.extend(self.computed::<u128>(*operation, (left, right), live, int)?.map(T::of_u128));
                }
            },
        }
        Ok(out)
    }

    fn computed<T: Lane>(
        &self,
        operation: Arithmetic,
        (left, right): (&Int, &Int),
        live: &[u64],
        int: &Int,
    ) -> Result<impl Iterator<Item = T> + use<T>, EvalError> {
        let count = match (operation, &right.what) {
            (Arithmetic::Left | Arithmetic::Right, IntWhat::Constant(count)) if !T::CHECKED => Some(*count),
            _ => None,
        };
        let mut left = self.numbers::<T>(left, live)?;
        if let Some(count) = count.filter(|&count| count < 64) {
            // No result can fail, and the loop vectorises.
            left.iter_mut()
                .for_each(|number| *number = number.shift(operation == Arithmetic::Left, count as u32));
            return Ok(left.into_iter());
        }
        let right = self.numbers::<T>(right, live)?;
        apply(operation, &mut left, &right, live).map_err(|(index, what)| EvalError {
            rank: self.tuples.first_rank + (self.range.start + index) as u64,
            what,
            column: Some(int.column),
        })?;
        Ok(left.into_iter())
    }
}
