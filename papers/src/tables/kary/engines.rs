//! The searches that are compared, behind one trait, and the memory that they search.

use crate::InFlight;
use crate::fast::{Compare, Switched};
use crate::kary::{KaryWord, List, Tree, Vectors};
use crate::report::huge;
use pleach_bench::data::key;
use pleach_bench::peers::Number;
use pleach_builder::classic::{advise_huge, build};
use pleach_format::classic::Geometry;
use pleach_format::classic::paged::Form;
use rayon::prelude::*;
use std::hint::select_unpredictable;

/// Keys of 4 and 8 bytes.
pub trait BenchWord: KaryWord + Number {
    /// A FAST tree of sorted keys; it is measured for 4 bytes alone.
    #[doc(hidden)]
    fn fast(_keys: &[Self]) -> Option<Fast> {
        None
    }
    /// Its search, with its name.
    #[doc(hidden)]
    fn fast_search<'a>(_: &'a Fast, _keys: &'a [Self], _: InFlight) -> Option<Named<'a, Self>> {
        None
    }
}
impl BenchWord for u64 {}
impl BenchWord for u32 {
    fn fast(keys: &[Self]) -> Option<Fast> {
        let geometry = Geometry {
            keys: keys.len() as u64,
            key_bytes: 4,
            d_k: 4,
            d_l: 4,
            d_p: 19,
            padded: false,
            aligned: false,
        };
        let mut bytes = huge(geometry.tree()?.bytes() as usize);
        build(keys, &geometry, pleach_builder::classic::Vectors::Best, &mut bytes).expect("a build");
        Some(Fast { geometry, bytes })
    }

    fn fast_search<'a>(fast: &'a Fast, keys: &'a [Self], in_flight: InFlight) -> Option<Named<'a, Self>> {
        let tree = Switched::new(&fast.geometry, Form::Full, &fast.bytes, keys)?;
        let name = format!("FAST, lines at once{}", flight(in_flight));
        Some((name, Box::new(tree.with(Compare::best(), in_flight))))
    }
}

/// A FAST tree: 15 keys a line, compared at once.
pub struct Fast {
    geometry: Geometry,
    bytes: Vec<u8>,
}

/// A search and its name.
pub type Named<'a, W> = (String, Box<dyn Search<W> + 'a>);

/// Ranks of lower bounds.
pub trait Search<W: BenchWord>: Sync {
    /// Of one query.
    fn one(&self, query: W) -> u64;
    /// Of as many queries as there are ranks.
    fn many(&self, queries: &[W], ranks: &mut [u64]) {
        queries.iter().zip(ranks).for_each(|(&query, rank)| *rank = self.one(query));
    }
}

/// Words behind huge pages where the system gives them, the first at a multiple of 64 bytes.
pub(super) struct Words<W> {
    words: Vec<W>,
    skip: usize,
    count: usize,
}

impl<W: BenchWord> Words<W> {
    /// Zeros.
    fn new(count: usize) -> Self {
        // So many that a huge page fits however they lie.
        let mut words: Vec<W> = Vec::with_capacity(count + 64 / size_of::<W>());
        advise_huge(words.spare_capacity_mut());
        words.resize(words.capacity(), W::default());
        let skip = words.as_ptr().align_offset(64).min(words.len() - count);
        Self { words, skip, count }
    }

    fn all_mut(&mut self) -> &mut [W] {
        &mut self.words[self.skip..][..self.count]
    }

    pub(super) fn all(&self) -> &[W] {
        &self.words[self.skip..][..self.count]
    }
}

/// What all searches of one size share.
pub(super) struct Data<W> {
    pub(super) keys: Words<W>,
    trees: Vec<(Vectors, Words<W>)>,
    fast: Option<Fast>,
}

/// Vectors that are measured: one for each k that this CPU's instructions give.
fn vectors() -> impl Iterator<Item = Vectors> {
    Vectors::ALL.into_iter().filter(|&vectors| vectors.is_available())
}

impl<W: BenchWord> Data<W> {
    /// `count` sorted keys without structure, distinct, their linearised trees and a FAST tree.
    pub(super) fn new(count: usize) -> Self {
        let mut keys = Words::new(count);
        keys.all_mut().par_iter_mut().enumerate().for_each(|(i, slot)| *slot = key(i as u64 + 1));
        keys.all_mut().par_sort_unstable();
        let tree = |vectors| {
            let mut slots = Words::new(Tree::<W>::slots(vectors, count).expect("a size"));
            assert!(Tree::linearise(vectors, keys.all(), slots.all_mut()).is_some(), "slots fit");
            (vectors, slots)
        };
        let trees = vectors().map(tree).collect();
        let fast = W::fast(keys.all());
        Self { keys, trees, fast }
    }

    /// Every search that takes queries one by one, with its name; with `turns` also those that take several
    /// in turns. The first is what the others are compared with.
    pub(super) fn searches(&self, turns: bool) -> Vec<Named<'_, W>> {
        let keys = self.keys.all();
        let mut all: Vec<Named<'_, W>> = vec![
            ("binary, partition_point".to_owned(), Box::new(Standard(keys))),
            ("binary, branchless".to_owned(), Box::new(Branchless::<W, 1>(keys))),
        ];
        if turns {
            all.push(("binary, branchless, S = 8".to_owned(), Box::new(Branchless::<W, 8>(keys))));
        }
        let in_flights = [(InFlight::One, InFlight::One), (InFlight::Eight, InFlight::Sixteen)];
        for &(in_flight, of_fast) in in_flights.iter().take(1 + usize::from(turns)) {
            for (vectors, slots) in &self.trees {
                let list = List::new(keys).with(*vectors, in_flight);
                let tree = Tree::new(*vectors, keys.len(), slots.all()).expect("linearised").with(in_flight);
                let k = vectors.lanes::<W>() + 1;
                let name = |what| format!("{what}, k = {k}, {}{}", vectors.name(), flight(in_flight));
                all.push((name("list"), Box::new(list)));
                all.push((name("tree"), Box::new(tree)));
            }
            all.extend(self.fast.as_ref().and_then(|fast| W::fast_search(fast, keys, of_fast)));
        }
        all
    }
}

/// How many queries take turns, as part of a name.
fn flight(in_flight: InFlight) -> String {
    match in_flight.queries() {
        1 => String::new(),
        queries => format!(", S = {queries}"),
    }
}

/// The standard library's binary search.
struct Standard<'a, W>(&'a [W]);

impl<W: BenchWord> Search<W> for Standard<'_, W> {
    fn one(&self, query: W) -> u64 {
        self.0.partition_point(|&key| key < query) as u64
    }
}

/// Binary search whose step is chosen without a branch, `S` queries in turns.
struct Branchless<'a, W, const S: usize>(&'a [W]);

impl<W: BenchWord, const S: usize> Branchless<'_, W, S> {
    #[inline(always)]
    fn group<const N: usize>(&self, queries: &[W; N]) -> [u64; N] {
        let mut starts = [0usize; N];
        let mut length = self.0.len();
        while length > 0 {
            // What is left is `length` keys from the start on; the answer may also be behind them.
            let half = length.div_ceil(2);
            for (start, &query) in starts.iter_mut().zip(queries) {
                let below = self.0[*start + half - 1] < query;
                *start = select_unpredictable(below, *start + half, *start);
            }
            length -= half;
        }
        starts.map(|start| start as u64)
    }
}

impl<W: BenchWord, const S: usize> Search<W> for Branchless<'_, W, S> {
    fn one(&self, query: W) -> u64 {
        let [rank] = self.group(&[query]);
        rank
    }
    fn many(&self, queries: &[W], ranks: &mut [u64]) {
        let (groups, rest) = queries.as_chunks::<S>();
        let (outputs, last) = ranks.as_chunks_mut::<S>();
        groups.iter().zip(outputs).for_each(|(group, output)| *output = self.group(group));
        rest.iter().zip(last).for_each(|(&query, rank)| *rank = self.one(query));
    }
}

impl<W: BenchWord> Search<W> for List<'_, W> {
    fn one(&self, query: W) -> u64 {
        self.lower_bound(query)
    }
    fn many(&self, queries: &[W], ranks: &mut [u64]) {
        self.lower_bounds(queries, ranks);
    }
}

impl<W: BenchWord> Search<W> for Tree<'_, W> {
    fn one(&self, query: W) -> u64 {
        self.lower_bound(query)
    }
    fn many(&self, queries: &[W], ranks: &mut [u64]) {
        self.lower_bounds(queries, ranks);
    }
}

impl Search<u32> for Switched<'_, u32> {
    fn one(&self, query: u32) -> u64 {
        self.lower_bound(query)
    }
    fn many(&self, queries: &[u32], ranks: &mut [u64]) {
        self.lower_bounds(queries, ranks);
    }
}
