//! The regular B+tree that the paper on Harmonia compares with: keys and references in each node.
//!
//! It has the nodes of Harmonia's tree, each with its references (of 8 bytes) or values after the keys. It is
//! searched by a group with one lane per child, at most a warp, which compares all keys of a node.

use pleach_format::harmonia::{HarmoniaGeometry, node_keys};
use pleach_gpu::internal::{
    Batch, External, Instance, LaunchShape, Resident, Search, SourceSpec, blocks_at_once, grid,
};
use pleach_gpu::{DeviceBuffer, GpuError, Stream};
use std::sync::Arc;

/// Maximum number of levels: those of a section.
const LEVELS: usize = 24;
/// Threads per block of the builder.
const BUILDERS: u32 = 256;
/// Bytes per reference.
const REFERENCE_BYTES: u64 = 8;

pleach_gpu::kernel! {
    /// The regular tree: search and builder.
    REGULAR = SourceSpec {
        numbers: |_| vec![
            ("BYTES_OF_REGULAR", size_of::<Tree>() as u64),
            ("BYTES_OF_REGULAR_BUILD", size_of::<Build>() as u64),
            ("REGULAR_LEVELS", LEVELS as u64),
        ],
        ..SourceSpec::new("regular.cu", include_str!("../kernels/regular.cu"))
    };
    /// Search of the tree.
    regular(tree: Tree, batch: Batch);
    /// Makes the tree.
    regular_build(build: Build);
}

/// First and last node of a level; the same as RegularNodes in regular.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Nodes {
    first: u32,
    last: u32,
}

/// A tree; the same as RegularTree in regular.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Tree {
    nodes: u64,
    node_bytes: u64,
    references_at: u64,
    tuples: u64,
    fanout: u32,
    node_keys: u32,
    levels: u32,
    group_bits: u32,
    level: [Nodes; LEVELS],
}

/// A level; the same as RegularLevel in regular.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Level {
    first: u64,
    nodes: u64,
    leaves: u64,
}

/// Arguments of the builder; the same as RegularBuild in regular.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Build {
    column: u64,
    column_values: u64,
    nodes: u64,
    node_bytes: u64,
    references_at: u64,
    node_count: u64,
    tuples: u64,
    stride: u32,
    fanout: u32,
    node_keys: u32,
    levels: u32,
    value_bytes: u32,
    unused: u32,
    level: [Level; LEVELS],
}

/// A tree on a device.
#[derive(Debug)]
struct Regular {
    buffer: DeviceBuffer,
    tree: Tree,
    instance: Instance,
    threads: u32,
    blocks_max: u32,
}

/// Builds the tree with a fanout and a fill, to be searched in blocks of a number of threads.
pub(super) fn make(stream: &Stream, resident: &Resident, of: External) -> Result<Arc<dyn Search>, GpuError> {
    let [fanout, fill, threads] = of.parameters;
    let refused = |cause: String| GpuError::Algorithm { algorithm: of.name, cause };
    if !threads.is_multiple_of(32) || !(32..=1024).contains(&threads) {
        return Err(refused(format!("{threads} threads a block: take a multiple of 32")));
    }
    let keys = node_keys(fanout.into(), fill.into());
    let widths = [resident.word_bytes, resident.value_bytes].map(usize::from);
    let geometry = HarmoniaGeometry::new(resident.tuples, (fanout.into(), keys), widths[0], widths[1])
        .filter(|_| (50..=100).contains(&fill))
        .ok_or_else(|| {
            refused(format!("fanout {fanout}, filled to {fill}%, of {} tuples", resident.tuples))
        })?;
    let references_at = geometry.stride_bytes;
    let node_bytes = references_at + (u64::from(geometry.fanout) * REFERENCE_BYTES).next_multiple_of(64);
    let buffer = resident.buffer(geometry.nodes * node_bytes)?;
    let instance = resident.instance(&REGULAR, 0);
    build(stream, resident, &geometry, &buffer, (instance, node_bytes))?;
    let mut level = [Nodes::default(); LEVELS];
    for (to, from) in level.iter_mut().zip(&geometry.levels) {
        *to = Nodes { first: from.first as u32, last: (from.first + from.nodes - 1) as u32 };
    }
    let tree = Tree {
        nodes: buffer.address(),
        node_bytes,
        references_at,
        tuples: geometry.tuples,
        fanout: geometry.fanout,
        node_keys: geometry.node_keys,
        levels: geometry.levels.len() as u32,
        // One lane per child, at most a warp.
        group_bits: geometry.fanout.min(32).ilog2(),
        level,
    };
    let threads = u32::from(threads);
    let blocks_max = blocks_at_once(&resident.gpu, instance, "regular", threads, 0)?;
    Ok(Arc::new(Regular { buffer, tree, instance, threads, blocks_max }))
}

/// Makes the nodes from a table's sorted columns, and waits for them.
fn build(
    stream: &Stream,
    resident: &Resident,
    geometry: &HarmoniaGeometry,
    buffer: &DeviceBuffer,
    (instance, node_bytes): (Instance, u64),
) -> Result<(), GpuError> {
    let held = resident.columns(stream)?;
    let columns = held.arguments();
    let mut level = [Level::default(); LEVELS];
    for (to, from) in level.iter_mut().zip(&geometry.levels) {
        *to = Level { first: from.first, nodes: from.nodes, leaves: from.leaves };
    }
    let build = Build {
        column: columns.keys,
        column_values: columns.values,
        nodes: buffer.address(),
        node_bytes,
        references_at: geometry.stride_bytes,
        node_count: geometry.nodes,
        tuples: geometry.tuples,
        stride: geometry.stride_words() as u32,
        fanout: geometry.fanout,
        node_keys: geometry.node_keys,
        levels: geometry.levels.len() as u32,
        value_bytes: geometry.value_bytes,
        unused: 0,
        level,
    };
    let slots = geometry.nodes * u64::from(build.stride);
    let launch = grid(&resident.gpu, instance, "regular_build", BUILDERS, 0, slots)?;
    // Gaps between the arrays must be zero.
    buffer.fill(stream, 0)?;
    // SAFETY: the columns have the tuples for which the geometry was made, and the buffer has its nodes; all
    // of them live until the stream was waited for.
    let queued = unsafe { regular_build(stream, instance, launch, &build) };
    stream.synchronize()?;
    queued
}

impl Search for Regular {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let shape = LaunchShape::limited(self.blocks_max, self.threads, 0, batch.count);
        // SAFETY: the caller guarantees the batch and its buffers; `self` owns the memory that the tree
        // points to.
        unsafe { regular(stream, self.instance, shape, &self.tree, batch) }
    }

    fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }
}
