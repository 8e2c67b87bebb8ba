//! Choice of the fastest strategy for a batch, by estimates from a few costs of the machine.
//!
//! The time of a strategy is its computation per query plus the lines that a query reads. Each line has the
//! price of a line among as many bytes as it is drawn from. Queries that are next to each other and share a
//! line also share its price: `n` queries to `l` lines read `l (1 - exp(-n / l))` lines. That is all that
//! buffering and sorting gain, against the cost of moving each query.
//!
//! A bound on the response time is a bound on the time of a call. If the whole batch takes longer, the
//! planner finds the largest piece that does not, and the best strategy for pieces of that size; this is how
//! the paper's Figure 13 is read from left to right.

use super::buffered;
use super::kind::Strategy;
use crate::search::sweep;
use crate::way::Stop;
use crate::{Index, Structure, Typed};
use pleach_format::{Key, Value};

/// Costs of operations on a machine, in nanoseconds. The defaults are those of a Zen 3 server; `Costs::tune`
/// measures them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A call: set-up, and filling and draining the pipeline.
    pub call: f64,
    /// A line among [`Costs::SIZES`] bytes, while other lines are being loaded.
    pub line: [f64; Costs::SIZES.len()],
    /// A line among [`Costs::SIZES`] bytes, for a look-up that only waits for it.
    pub wait: [f64; Costs::SIZES.len()],
    /// Computation of a single look-up.
    pub single: f64,
    /// Computation of a query of a batch, by the grid.
    pub grid: f64,
    /// Computation of a query of a batch, by the spine, per level.
    pub level: f64,
    /// Computation of a query of a batch, by a tree, per step: about a line.
    pub tree: f64,
    /// Computation of a query that is swept.
    pub sweep: f64,
    /// Moving a query into a buffer, and moving its answer back.
    pub scatter: f64,
    /// Moving a query in one pass of a sort; there are two or three.
    pub radix: f64,
    /// Share of a line's price that remains if lines are read in a better order: pages and rows of memory are
    /// open.
    pub near: f64,
}

impl Costs {
    /// Table sizes in bytes for which the prices of lines are known; between them they are interpolated by
    /// the logarithm.
    pub const SIZES: [u64; 5] = [1 << 15, 1 << 20, 1 << 24, 1 << 27, 1 << 30];

    fn at(prices: &[f64; Self::SIZES.len()], bytes: f64) -> f64 {
        let log = bytes.max(1.0).log2();
        let mut price = prices[0];
        for (sizes, prices) in Self::SIZES.windows(2).zip(prices.windows(2)) {
            let (low, high) = (f64::from(sizes[0].ilog2()), f64::from(sizes[1].ilog2()));
            price += ((log - low) / (high - low)).clamp(0.0, 1.0) * (prices[1] - prices[0]);
        }
        price
    }

    /// Returns the price of a line among `bytes` bytes.
    #[must_use]
    pub fn line_among(&self, bytes: f64) -> f64 {
        Self::at(&self.line, bytes)
    }

    /// Returns every cost with its name, as `tune` writes them.
    #[must_use]
    pub fn named(&self) -> Vec<(String, f64)> {
        let mut copy = *self;
        copy.fields().into_iter().map(|(name, cost)| (name, *cost)).collect()
    }

    /// Creates costs from a list of names and costs as [`Costs::named`] returns it, in any order.
    ///
    /// # Errors
    /// A message that names a cost that is missing or is not a number from 0 to 10^6.
    pub fn from_named(list: &[(String, f64)]) -> Result<Self, String> {
        let mut costs = Self::default();
        for (name, cost) in costs.fields() {
            let found = list.iter().find(|(other, _)| *other == name).map(|(_, found)| *found);
            *cost = found.ok_or_else(|| format!("`{name}` is missing"))?;
            if !(0.0..=1e6).contains(cost) {
                return Err(format!("`{name}` is {cost}, not a number of nanoseconds"));
            }
        }
        Ok(costs)
    }

    fn fields(&mut self) -> Vec<(String, &mut f64)> {
        let mut fields = vec![
            ("call".to_owned(), &mut self.call),
            ("single".to_owned(), &mut self.single),
            ("grid".to_owned(), &mut self.grid),
            ("level".to_owned(), &mut self.level),
            ("tree".to_owned(), &mut self.tree),
            ("sweep".to_owned(), &mut self.sweep),
            ("scatter".to_owned(), &mut self.scatter),
            ("radix".to_owned(), &mut self.radix),
            ("near".to_owned(), &mut self.near),
        ];
        for (name, prices) in [("line", &mut self.line), ("wait", &mut self.wait)] {
            for (size, price) in Self::SIZES.iter().zip(prices) {
                fields.push((format!("{name}_2_{}", size.ilog2()), price));
            }
        }
        fields
    }
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            call: 60.0,
            line: [0.5, 1.5, 6.0, 10.0, 15.0],
            wait: [2.0, 8.0, 25.0, 110.0, 150.0],
            single: 12.0,
            grid: 5.0,
            level: 4.0,
            tree: 4.0,
            sweep: 6.0,
            scatter: 11.0,
            radix: 15.0,
            near: 0.6,
        }
    }
}

/// Batch to plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of queries.
    pub batch: usize,
    /// True if the queries ascend. `None` if that is not known: they are sampled if they are available,
    /// otherwise assumed to be random.
    pub sorted: Option<bool>,
    /// Number of threads that may be used.
    pub threads: usize,
    /// Maximum time of a call, in nanoseconds.
    pub response_ns: Option<u64>,
    /// Strategy to use; [`Strategy::Auto`] lets the planner choose.
    pub strategy: Strategy,
}

impl Request {
    /// Creates a request for a batch on one thread, without a bound on the response time.
    #[must_use]
    pub fn new(batch: usize) -> Self {
        Self { batch, sorted: None, threads: 1, response_ns: None, strategy: Strategy::Auto }
    }
}

/// Plan for a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Strategy to use; never [`Strategy::Auto`].
    pub strategy: Strategy,
    /// Queries per call: all, or a power of two if all would exceed the requested response time.
    pub batch: usize,
    /// Number of threads to use.
    pub threads: usize,
    /// Expected time per query.
    pub estimate_ns_per_query: f64,
    /// Expected time of a call.
    pub estimate_response_ns: f64,
    /// Reason for the choice, in words.
    pub why: String,
}

/// Maximum number of queries that [`Strategy::Auto`] searches one by one.
const SINGLE_MAX: usize = 3;
/// Minimum number of queries for a plan: moving fewer never pays.
const PLANNED_MIN: usize = 1 << 14;
/// Queries per sample.
const SAMPLE: usize = 64;
/// Time to start and join a part of a batch on another thread.
const SPAWN_NS: f64 = 25_000.0;

/// The properties of a file that estimates use.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) table_bytes: f64,
    /// The lines on the way to a tuple line.
    pub(super) way: Vec<Stop>,
    /// What leads to a tuple line; [`Structure::Auto`] if lines are bisected.
    pub(super) structure: Structure,
    /// There is a grid, and at most one segment on the way.
    pub(super) has_even_grid: bool,
    pub(super) key_bytes: f64,
    pub(super) value_bytes: f64,
}

impl Shape {
    pub(super) fn of(index: &Index) -> Self {
        let (header, structure) = (index.header(), index.structure());
        let (key_bytes, value_bytes) =
            (header.geometry.key_bytes as f64, index.value_type().line_bytes() as f64);
        let table_bytes = (header.lines as f64 * 64.0).max(64.0);
        let has_even_grid = structure == Structure::Grid && sweep::has_even_grid(header);
        let way = structure.way(header);
        Self { table_bytes, way, structure, has_even_grid, key_bytes, value_bytes }
    }

    /// Returns the steps of a query on its way.
    pub(super) fn steps(&self) -> f64 {
        self.way.iter().map(|stop| stop.steps).sum()
    }

    /// Returns the computation of a query on its way.
    fn compute(&self, costs: &Costs) -> f64 {
        let lines = self.way.len() as f64;
        match self.structure {
            Structure::Grid => costs.grid,
            Structure::Spine => costs.level * (lines + 1.0),
            _ => costs.tree * self.steps() + costs.level,
        }
    }

    /// Estimates the time of a call of `n` queries on one thread, in nanoseconds.
    pub(super) fn estimate(&self, costs: &Costs, strategy: Strategy, n: f64, sorted: bool) -> f64 {
        let compute = self.compute(costs);
        let lines = (self.table_bytes / 64.0).max(1.0);
        let table = costs.line_among(self.table_bytes);
        // Lines per query if queries are in order.
        let in_order = |lines: f64, n: f64| lines * (1.0 - (-n / lines).exp()) / n;
        let way = |share: f64| {
            self.way.iter().map(|stop| stop.reads * costs.line_among(stop.bytes * share)).sum::<f64>()
        };
        let is_close = sweep::is_close(self.has_even_grid, n as u64, lines as u64);
        let swept =
            if is_close { costs.sweep } else { compute + way(0.0) } + in_order(lines, n) * costs.near * table;
        match strategy {
            Strategy::OneByOne => {
                let waits = self
                    .way
                    .iter()
                    .map(|stop| stop.reads.min(1.0) * Costs::at(&costs.wait, stop.bytes))
                    .sum::<f64>();
                n * (costs.single + waits + Costs::at(&costs.wait, self.table_bytes))
            }
            Strategy::Auto | Strategy::Unbuffered if sorted => costs.call + n * swept,
            Strategy::Auto | Strategy::Unbuffered => {
                let fill = self
                    .way
                    .iter()
                    .map(|stop| stop.reads.min(1.0) * Costs::at(&costs.wait, stop.bytes))
                    .sum::<f64>()
                    + Costs::at(&costs.wait, self.table_bytes);
                costs.call + fill + n * (compute + way(1.0) + table)
            }
            Strategy::Buffered => {
                let parts = f64::from(1u32 << buffered::buffer_bits(n as usize, self.table_bytes as u64));
                let shared = in_order(lines / parts, n / parts);
                let near = costs.near * table;
                let part = costs.line_among(self.table_bytes / parts).min(near);
                let moved = costs.scatter + costs.line_among(n * (self.value_bytes + self.key_bytes));
                2.0 * costs.call
                    + n * (moved + compute + way(1.0 / parts) + shared * near + (1.0 - shared) * part)
            }
            Strategy::Sorted => {
                let passes = (n.max(2.0).log2() / 10.0).ceil();
                let back = costs.scatter / 2.0 + costs.line_among(n * (self.value_bytes + 0.125));
                2.0 * costs.call
                    + n * (passes * costs.radix * (self.key_bytes / 8.0).max(0.75) + back + swept)
            }
        }
    }

    /// Estimates the time of a call on `threads` threads, in nanoseconds.
    fn parallel(&self, costs: &Costs, strategy: Strategy, n: f64, sorted: bool, threads: f64) -> f64 {
        let spawn = if threads > 1.0 { SPAWN_NS * threads } else { 0.0 };
        spawn + self.estimate(costs, strategy, n / threads, sorted)
    }

    /// Returns the fastest strategy for `queries` random queries on one thread.
    fn best(&self, costs: &Costs, queries: usize) -> Strategy {
        let ways = [Strategy::Unbuffered, Strategy::Buffered, Strategy::Sorted];
        let time = |way: &Strategy| self.estimate(costs, *way, queries as f64, false);
        ways.into_iter().min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or_default()
    }

    fn plan(&self, request: &Request, costs: &Costs) -> Choice {
        let sorted = request.sorted.unwrap_or(false);
        let all = request.batch.max(1);
        let bound = request.response_ns.map_or(f64::INFINITY, |bound| bound as f64);
        let ways = Strategy::ALL.into_iter().filter(|&way| match request.strategy {
            Strategy::Auto => way != Strategy::Auto,
            given => way == given,
        });
        let mut best: Option<Choice> = None;
        let mut soonest = f64::INFINITY;
        // The whole batch first, then smaller and smaller pieces.
        let pieces = (0..usize::BITS).map(|log| 1usize << log).take_while(|&piece| piece < all);
        let pieces: Vec<usize> = pieces.chain([all]).collect();
        for &batch in pieces.iter().rev() {
            for strategy in ways.clone() {
                for threads in [1, request.threads.max(1)] {
                    if threads > 1 && (strategy == Strategy::OneByOne || batch < 64 * threads) {
                        continue;
                    }
                    let (n, t) = (batch as f64, threads as f64);
                    let response = self.parallel(costs, strategy, n, sorted, t).max(f64::MIN_POSITIVE);
                    let ns = response / n;
                    soonest = soonest.min(response);
                    if response > bound || best.as_ref().is_some_and(|best| best.estimate_ns_per_query <= ns)
                    {
                        continue;
                    }
                    best = Some(Choice {
                        strategy,
                        batch,
                        threads,
                        estimate_ns_per_query: ns,
                        estimate_response_ns: response,
                        why: String::new(),
                    });
                }
            }
            // Without a bound the batch is not split.
            if bound.is_infinite() {
                break;
            }
        }
        let mut choice = best.unwrap_or_else(|| Choice {
            strategy: Strategy::OneByOne,
            batch: 1,
            threads: 1,
            estimate_ns_per_query: soonest,
            estimate_response_ns: soonest,
            why: "no look-up is expected to answer in time; ".to_owned(),
        });
        choice.why.push_str(&why(&choice, self, all, sorted));
        choice
    }
}

/// Returns true if samples of the queries ascend. O(1).
pub(super) fn ascend<K: Key>(keys: &[K]) -> bool {
    let ascends = |keys: &[K]| keys.windows(2).all(|pair| pair[0].encode() <= pair[1].encode());
    let sample = |at: usize| &keys[at..(at + SAMPLE).min(keys.len())];
    let last = keys.len().saturating_sub(SAMPLE);
    // Compare between samples, too: consecutive sorted runs are not in order as a whole.
    let posts = [0, keys.len() / 4, keys.len() / 2, keys.len() / 4 * 3, last];
    posts.windows(2).all(|pair| pair[0] >= keys.len() || keys[pair[0]].encode() <= keys[pair[1]].encode())
        && posts.iter().all(|&at| ascends(sample(at)))
}

impl Index {
    /// Plans a batch. O(levels log(batch)); does not read the table.
    #[must_use]
    pub fn plan_batch(&self, request: &Request, costs: &Costs) -> Choice {
        Shape::of(self).plan(request, costs)
    }
}

impl<K: Key, V: Value> Typed<'_, K, V> {
    /// Replaces `Auto` by the strategy that it selects for `keys`.
    pub(super) fn resolved(&self, strategy: Strategy, keys: &[K], costs: &Costs) -> Strategy {
        match (strategy, keys.len()) {
            (Strategy::Auto, ..=SINGLE_MAX) => Strategy::OneByOne,
            (Strategy::Auto, ..PLANNED_MIN) => Strategy::Unbuffered,
            (Strategy::Auto, _) if ascend(keys) => Strategy::Unbuffered,
            (Strategy::Auto, n) => Shape::of(self.index()).best(costs, n),
            (given, _) => given,
        }
    }

    /// Plans a batch. O(levels log(batch)); does not read the table.
    #[must_use]
    pub fn plan_batch(&self, request: &Request, costs: &Costs) -> Choice {
        self.index().plan_batch(request, costs)
    }

    /// Runs [`Typed::plan_batch`] for given queries: their number is the batch, and samples of them decide
    /// whether they ascend if `request` does not specify it.
    #[must_use]
    pub fn plan_queries(&self, keys: &[K], request: &Request, costs: &Costs) -> Choice {
        let sorted = Some(request.sorted.unwrap_or_else(|| ascend(keys)));
        self.plan_batch(&Request { batch: keys.len(), sorted, ..*request }, costs)
    }
}

fn why(choice: &Choice, shape: &Shape, all: usize, sorted: bool) -> String {
    let lines = shape.table_bytes / 64.0;
    let ratio = choice.batch as f64 / lines;
    let lines_of = |what| format!("{} lines {what}", shape.way.len());
    let way = match shape.structure {
        Structure::Grid => "a grid".to_owned(),
        Structure::Spine => format!("{} levels", shape.way.len()),
        Structure::Auto => lines_of("to bisect"),
        Structure::Fast => lines_of("of the FAST tree"),
        Structure::Harmonia => lines_of("of Harmonia's tree"),
        Structure::Btree => lines_of("of the B+tree"),
    };
    let reason = match choice.strategy {
        Strategy::OneByOne => "too few queries for their misses to overlap",
        Strategy::Unbuffered if sorted => "queries in order read each line once",
        Strategy::Auto | Strategy::Unbuffered => {
            "moving queries would cost more than the lines that it saves"
        }
        Strategy::Buffered => "queries of one part of the table share lines",
        Strategy::Sorted => "queries share lines often enough for a sort to pay off",
    };
    let pieces = if choice.batch < all { " in pieces, for the response time;" } else { "" };
    format!("{reason};{pieces} {ratio:.2} queries a tuple line, {way}")
}
