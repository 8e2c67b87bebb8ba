//! The lines that a look-up reads on its way to a tuple line, and what that is expected to cost.
//!
//! Each line is described by the bytes among which it is, those of its level: from them follows how often it is in a
//! cache. The other part is computation, in steps. Steps, and the shares of a line's price, are fitted to batches on a
//! Xeon (Sapphire Rapids) and a Zen 3, tables of 2^16 to 2^24 tuples: docs/lab/structures.md.

use pleach_format::Header;
use pleach_format::btree::BtreeGeometry;
use pleach_format::classic::paged::Paged;
use pleach_format::classic::{PageLevel, Tree};
use pleach_format::harmonia::HarmoniaGeometry;
use pleach_format::view::FastShape;

const LINE_BYTES: f64 = 64.0;
/// A line that leads to the next one at once.
const LINE: [f64; 2] = [1.0, 1.0];
/// A line of a FAST tree: its place is computed from the path, and known late.
const FAST: [f64; 2] = [1.3, 2.0];
/// The record of a page: the query becomes a word of the page.
const RECORD: [f64; 2] = [3.0, 1.0];
/// The metadata of a node.
const METADATA: [f64; 2] = [1.2, 1.0];
/// The first line of a node.
const NODE: [f64; 2] = [1.5, 1.0];
/// Each further line of a node: it is loaded with the first one.
const FURTHER: [f64; 2] = [0.3, 0.3];
/// Nanoseconds of a step that [`expected_ns`] takes.
const STEP_NS: f64 = 4.0;
/// Bytes up to which a line costs nothing but its steps there; each doubling adds a nanosecond.
const NEAR_BYTES: f64 = 131_072.0;

/// A line on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stop {
    /// Bytes among which the line is.
    pub(crate) bytes: f64,
    /// Computation, in steps.
    pub(crate) steps: f64,
    /// Share of the price of a line among these bytes.
    pub(crate) reads: f64,
}

impl Stop {
    fn new(bytes: u64, [steps, reads]: [f64; 2]) -> Self {
        Self { bytes: bytes as f64, steps, reads }
    }
}

/// Returns the way through the grid.
pub(crate) fn grid(header: &Header) -> Vec<Stop> {
    header.grid.iter().map(|(_, shape)| Stop::new(shape.bytes(), LINE)).collect()
}

/// Returns the way down the spine.
pub(crate) fn spine(header: &Header) -> Vec<Stop> {
    header.spine.levels.iter().map(|level| Stop::new(level.lines * LINE_BYTES as u64, LINE)).collect()
}

/// Returns the way of a bisection of the tuple lines.
pub(crate) fn bisection(header: &Header) -> Vec<Stop> {
    (0..header.lines.max(1).ilog2()).map(|halving| Stop::new(64 << halving, LINE)).collect()
}

/// Returns the way down a FAST tree. The pages of a compressed tree have words of several widths: those that its
/// bytes suggest stand for all.
pub(crate) fn fast(shape: &FastShape) -> Vec<Stop> {
    let geometry = shape.geometry;
    let Some(paged) = Paged::new(geometry, shape.form) else {
        let Some(tree) = geometry.tree() else { return Vec::new() };
        return tree.pages().iter().flat_map(|page| depths(&tree, page)).collect();
    };
    let fits = |width: &u32| u64::from(*width) * geometry.keys >= shape.bytes * 3 / 4;
    let width = [2, 4, 8].into_iter().find(fits).unwrap_or(16).min(geometry.key_bytes);
    let Some(tree) = paged.tree(width) else { return Vec::new() };
    let mut way = Vec::new();
    for page in tree.pages() {
        way.push(Stop::new((page.last + 1) * paged.record_bytes() as u64, RECORD));
        way.extend(depths(tree, page));
    }
    way
}

/// The depths of lines in the pages of a level.
fn depths(tree: &Tree, page: &PageLevel) -> impl Iterator<Item = Stop> {
    let last = tree.last_gap();
    page.lines.iter().map(move |line| {
        let lines = (last >> (line.levels + line.below)) + 1;
        Stop::new(lines * LINE_BYTES as u64, FAST)
    })
}

/// Returns the way down Harmonia's tree.
pub(crate) fn harmonia(tree: &HarmoniaGeometry) -> Vec<Stop> {
    tree.levels.iter().flat_map(|level| node(level.nodes, tree.stride_bytes)).collect()
}

/// Returns the way down the contiguous B+tree: metadata and keys of each level.
pub(crate) fn btree(tree: &BtreeGeometry) -> Vec<Stop> {
    let node_bytes = tree.shape.slots_of_node() * u64::from(tree.word_bytes);
    let level = |nodes: u64| std::iter::once(Stop::new(16 * nodes, METADATA)).chain(node(nodes, node_bytes));
    tree.shape.levels().iter().flat_map(|one| level(one.nodes)).collect()
}

/// The lines of one of `nodes` nodes.
fn node(nodes: u64, node_bytes: u64) -> impl Iterator<Item = Stop> {
    let lines = (node_bytes as f64 / LINE_BYTES).ceil() as usize;
    let costs = std::iter::once(NODE).chain(std::iter::repeat(FURTHER));
    costs.take(lines.max(1)).map(move |costs| Stop::new(nodes * node_bytes, costs))
}

/// Returns the time that the way is expected to take a query of a batch, in nanoseconds.
pub(crate) fn expected_ns(way: &[Stop]) -> f64 {
    let price = |stop: &Stop| stop.steps * STEP_NS + stop.reads * (stop.bytes / NEAR_BYTES).max(1.0).log2();
    way.iter().map(price).sum()
}
