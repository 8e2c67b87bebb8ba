//! The lines that a look-up reads on its way to a tuple line, and what that is expected to cost.
//!
//! Each line is described by the bytes among which it is, those of its level: from them follows how often it is in a
//! cache. The other part is computation, in steps: one for a line that is only known when the line before it was
//! compared, less for further lines of the same node, more for the record of a compressed page.

use pleach_format::Header;
use pleach_format::btree::BtreeGeometry;
use pleach_format::classic::paged::Paged;
use pleach_format::classic::{PageLevel, Tree};
use pleach_format::harmonia::HarmoniaGeometry;
use pleach_format::view::FastShape;

const LINE_BYTES: f64 = 64.0;
/// Steps of a line of a FAST tree: its place is computed, and compared block by block.
const FAST_STEPS: f64 = 1.3;
/// Steps of a record of a page: the query becomes a word of the page.
const RECORD_STEPS: f64 = 3.0;
/// Steps of each further line of a node.
const FURTHER_STEPS: f64 = 0.3;
/// Nanoseconds of a step that [`expected_ns`] takes: of a Zen 3 server.
const STEP_NS: f64 = 10.0;
/// Bytes up to which a line costs nothing but its step there; each doubling adds a nanosecond.
const NEAR_BYTES: f64 = 131_072.0;

/// A line on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stop {
    /// Bytes among which the line is.
    pub(crate) bytes: f64,
    /// Computation, in steps.
    pub(crate) steps: f64,
}

impl Stop {
    fn new(bytes: u64, steps: f64) -> Self {
        Self { bytes: bytes as f64, steps }
    }
}

/// Returns the way through the grid.
pub(crate) fn grid(header: &Header) -> Vec<Stop> {
    header.grid.iter().map(|(_, shape)| Stop::new(shape.bytes(), 1.0)).collect()
}

/// Returns the way down the spine.
pub(crate) fn spine(header: &Header) -> Vec<Stop> {
    header.spine.levels.iter().map(|level| Stop::new(level.lines * LINE_BYTES as u64, 1.0)).collect()
}

/// Returns the way of a bisection of the tuple lines.
pub(crate) fn bisection(header: &Header) -> Vec<Stop> {
    (0..header.lines.max(1).ilog2()).map(|halving| Stop::new(64 << halving, 1.0)).collect()
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
        way.push(Stop::new((page.last + 1) * paged.record_bytes() as u64, RECORD_STEPS));
        way.extend(depths(tree, page));
    }
    way
}

/// The depths of lines in the pages of a level.
fn depths(tree: &Tree, page: &PageLevel) -> impl Iterator<Item = Stop> {
    let last = tree.last_gap();
    page.lines.iter().map(move |line| {
        let lines = (last >> (line.levels + line.below)) + 1;
        Stop::new(lines * LINE_BYTES as u64, FAST_STEPS)
    })
}

/// Returns the way down Harmonia's tree.
pub(crate) fn harmonia(tree: &HarmoniaGeometry) -> Vec<Stop> {
    tree.levels.iter().flat_map(|level| node(level.nodes, tree.stride_bytes)).collect()
}

/// Returns the way down the contiguous B+tree: metadata and keys of each level.
pub(crate) fn btree(tree: &BtreeGeometry) -> Vec<Stop> {
    let node_bytes = tree.shape.slots_of_node() * u64::from(tree.word_bytes);
    let level = |nodes: u64| std::iter::once(Stop::new(16 * nodes, 1.0)).chain(node(nodes, node_bytes));
    tree.shape.levels().iter().flat_map(|one| level(one.nodes)).collect()
}

/// The lines of one of `nodes` nodes.
fn node(nodes: u64, node_bytes: u64) -> impl Iterator<Item = Stop> {
    let lines = (node_bytes as f64 / LINE_BYTES).ceil() as usize;
    let steps = std::iter::once(1.0).chain(std::iter::repeat(FURTHER_STEPS));
    steps.take(lines.max(1)).map(move |steps| Stop::new(nodes * node_bytes, steps))
}

/// Returns the time that the way is expected to take a query of a batch, in nanoseconds.
pub(crate) fn expected_ns(way: &[Stop]) -> f64 {
    let price = |stop: &Stop| stop.steps * STEP_NS + (stop.bytes / NEAR_BYTES).max(1.0).log2();
    way.iter().map(price).sum()
}
