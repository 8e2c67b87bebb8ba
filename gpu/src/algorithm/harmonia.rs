//! Harmonia's B+tree (Yan et al., PPoPP 2019).
//!
//! The tree is the section HARM of the file, as it lies, or the same made on the device from sorted
//! columns: keys of all nodes, counts, the child region of prefix sums, and values beside the leaves. Whole
//! top levels of the child region that fit into 64 KiB are put into constant memory (or shared memory, or
//! left to the read-only cache).
//!
//! A batch is sorted by its highest bits ([`super::psa`]), then searched by groups of lanes whose width
//! [`super::ntg`] chooses. It is answered in its own order by scattered writes, or as sorted, with the
//! numbers of the queries beside the answers.

use super::ntg::{Neighbours, Profile, keys_at_once, most_lanes};
use super::psa::{CHUNK, Digits, Psa, Room};
use super::search::Search;
use super::{Algorithm, ChildRegion, Group, HarmoniaForm, HarmoniaSearch, QuerySort, Scan, SectionTree};
use crate::driver::LaunchShape;
use crate::kernel::{Batch, Columns, Instance, SourceSpec};
use crate::resident::{Resident, grid};
use crate::stored::{self, SHORT_TEXT, STORED_BYTES, Stored};
use crate::{GpuError, Stream};
use pleach::Index;
use pleach_format::harmonia::{CHILD_BYTES, HarmoniaGeometry, node_keys};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of levels: those of a section.
const LEVELS: usize = 24;
/// Threads per block of a search.
const THREADS: u32 = 256;
/// Threads per block of a search whose blocks share the top of the child region.
const SHARED_THREADS: u32 = 512;
/// Threads per block of the builder.
const BUILDERS: u32 = 256;
/// Minimum number of queries for which [`QuerySort::Auto`] sorts.
const SORTED_MIN: u64 = 1 << 21;
/// Number of entries of the child region that constant memory holds: CONSTANT_TOP in harmonia.cu.
const TOP_MAX: u64 = (64 << 10) / CHILD_BYTES;

crate::kernel! {
    /// Harmonia's B+tree: search and builder.
    HARMONIA = SourceSpec {
        shared: &[SHORT_TEXT],
        option_name: Some("STORED_BYTES"),
        options: &STORED_BYTES,
        exists: |instance| SourceSpec::is_plain(instance) && instance.option <= instance.word_bytes.into(),
        numbers: |_| vec![
            stored::Arguments::NUMBER,
            ("BYTES_OF_HARMONIA", size_of::<Tree>() as u64),
            ("BYTES_OF_HARMONIA_BUILD", size_of::<Build>() as u64),
            ("HARMONIA_LEVELS", LEVELS as u64),
        ],
        ..SourceSpec::new("harmonia.cu", include_str!("../kernels/harmonia.cu"))
    };
    /// Search of Harmonia's tree, the top of the child region in constant memory.
    harmonia_constant(tree: Tree, short: stored::Arguments, batch: Batch);
    /// Search of Harmonia's tree, the top of the child region in shared memory.
    harmonia_shared(tree: Tree, short: stored::Arguments, batch: Batch);
    /// Search of Harmonia's tree, all of the child region through the read-only cache.
    harmonia_ldg(tree: Tree, short: stored::Arguments, batch: Batch);
    /// Makes the tree.
    harmonia_build(build: Build) if |instance| instance.option == instance.word_bytes.into();
}

/// First and last node of a level; the same as HarmoniaNodes in harmonia.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Nodes {
    first: u32,
    last: u32,
}

/// A tree; the same as Harmonia in harmonia.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Tree {
    nodes: u64,
    children: u64,
    values: u64,
    numbers: u64,
    node_bytes: u64,
    tuples: u64,
    fanout: u32,
    node_keys: u32,
    levels: u32,
    top: u32,
    group_bits: u32,
    scan: u32,
    level: [Nodes; LEVELS],
}

/// A level; the same as HarmoniaLevel in harmonia.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Level {
    first: u64,
    nodes: u64,
    leaves: u64,
}

/// Arguments of the builder; the same as HarmoniaBuild in harmonia.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Build {
    column: u64,
    column_values: u64,
    nodes: u64,
    counts: u64,
    children: u64,
    values: u64,
    node_bytes: u64,
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
struct Built {
    geometry: HarmoniaGeometry,
    stored: Stored,
}

impl Built {
    /// Builds a tree of a table's sorted columns, and waits for it.
    fn new(
        stream: &Stream,
        resident: &Resident,
        (fanout, fill): (u16, u8),
        algorithm: Algorithm,
    ) -> Result<Self, GpuError> {
        let keys = node_keys(fanout.into(), fill.into());
        let (word_bytes, value_bytes) = (usize::from(resident.word_bytes), usize::from(resident.value_bytes));
        let geometry = HarmoniaGeometry::new(resident.tuples, (fanout.into(), keys), word_bytes, value_bytes)
            .filter(|_| (50..=100).contains(&fill));
        let Some(geometry) = geometry else {
            let cause = format!("fanout {fanout}, filled to {fill}%, of {} tuples", resident.tuples);
            return Err(algorithm.refused(cause));
        };
        let stored = Stored::derived(resident, resident.buffer(geometry.bytes)?);
        let built = Self { stored, geometry };
        let columns = resident.columns(stream)?;
        let instance = resident.instance(&HARMONIA, resident.word_bytes.into());
        // Gaps between the arrays must be zero.
        built.stored.buffer.fill(stream, 0)?;
        let build = built.build(columns.arguments());
        let slots = built.geometry.nodes * u64::from(build.stride);
        let launch = grid(&resident.gpu, instance, "harmonia_build", BUILDERS, 0, slots)?;
        // SAFETY: the columns have the tuples for which the geometry was made, and the buffer has its nodes;
        // all of them live until the stream was waited for.
        let queued = unsafe { harmonia_build(stream, instance, launch, &build) };
        stream.synchronize()?;
        queued?;
        Ok(built)
    }

    /// Makes the section of a table's file readable by the device.
    fn of_file(
        index: &Index,
        stream: &Stream,
        resident: &Resident,
        algorithm: Algorithm,
    ) -> Result<Self, GpuError> {
        let Some((offset, geometry)) = &index.header().harmonia else {
            return Err(algorithm.without_section());
        };
        let stored = Stored::of_file(index, stream, resident, (*offset, geometry.bytes))?;
        Ok(Self { geometry: geometry.clone(), stored })
    }

    fn build(&self, columns: Columns) -> Build {
        let (geometry, address) = (&self.geometry, self.stored.buffer.address());
        let mut level = [Level::default(); LEVELS];
        for (to, from) in level.iter_mut().zip(&geometry.levels) {
            *to = Level { first: from.first, nodes: from.nodes, leaves: from.leaves };
        }
        Build {
            column: columns.keys,
            column_values: columns.values,
            nodes: address,
            counts: address + geometry.counts_at,
            children: address + geometry.children_at,
            values: address + geometry.values_at,
            node_bytes: geometry.stride_bytes,
            node_count: geometry.nodes,
            tuples: geometry.tuples,
            stride: geometry.stride_words() as u32,
            fanout: geometry.fanout,
            node_keys: geometry.node_keys,
            levels: geometry.levels.len() as u32,
            value_bytes: geometry.value_bytes,
            unused: 0,
            level,
        }
    }

    /// Returns the arguments of the kernels.
    fn tree(&self, lanes: u32, scan: Scan, top: u64) -> Tree {
        let (geometry, address) = (&self.geometry, self.stored.buffer.address());
        let mut level = [Nodes::default(); LEVELS];
        for (to, from) in level.iter_mut().zip(&geometry.levels) {
            *to = Nodes { first: from.first as u32, last: (from.first + from.nodes - 1) as u32 };
        }
        Tree {
            nodes: address,
            children: address + geometry.children_at,
            values: address + geometry.values_at,
            numbers: 0,
            node_bytes: geometry.stride_bytes,
            tuples: geometry.tuples,
            fanout: geometry.fanout,
            node_keys: geometry.node_keys,
            levels: geometry.levels.len() as u32,
            top: top as u32,
            group_bits: lanes.ilog2(),
            scan: scan as u32,
            level,
        }
    }

    /// Returns the number of entries of the child region in as many whole levels from the root as have at
    /// most `most` entries.
    fn top(&self, most: u64) -> u64 {
        let inner = self.geometry.levels.iter().rev().skip(1);
        inner.map(|level| level.first + level.nodes).find(|&entries| entries <= most).unwrap_or(0)
    }
}

/// Harmonia's tree, and how it is searched.
#[derive(Debug)]
pub(crate) struct Harmonia {
    form: HarmoniaSearch,
    built: Built,
    instance: Instance,
    psa: Option<Psa>,
    /// Length of the ranges of tuples within which sorted queries are in any order.
    unsorted: u64,
    room: Mutex<Option<Room>>,
    /// Number of entries of the child region in constant or shared memory.
    top: u64,
    blocks_max: u32,
    /// Identifies this tree as the owner of the constant memory.
    owner: u64,
    /// Lanes per query for batches of up to 2^i queries, by i, as far as requested so far.
    lanes: Mutex<[Option<u32>; 65]>,
}

impl Harmonia {
    /// Builds the tree of the specified form.
    pub(crate) fn new(stream: &Stream, resident: &Resident, form: HarmoniaForm) -> Result<Self, GpuError> {
        let algorithm = Algorithm::Harmonia(form);
        check_group(form.group, algorithm)?;
        let built = Built::new(stream, resident, (form.fanout, form.fill), algorithm)?;
        Self::of(resident, built, form.search(), algorithm)
    }

    /// Makes the section of a table's file readable by the device.
    pub(crate) fn of_file(
        index: &Index,
        stream: &Stream,
        resident: &Resident,
        form: HarmoniaSearch,
    ) -> Result<Self, GpuError> {
        let algorithm = Algorithm::Section(SectionTree::Harmonia(form));
        check_group(form.group, algorithm)?;
        let built = Built::of_file(index, stream, resident, algorithm)?;
        Self::of(resident, built, form, algorithm)
    }

    fn of(
        resident: &Resident,
        built: Built,
        form: HarmoniaSearch,
        algorithm: Algorithm,
    ) -> Result<Self, GpuError> {
        static OWNERS: AtomicU64 = AtomicU64::new(1);
        let (gpu, instance) = (&resident.gpu, resident.instance(&HARMONIA, built.stored.word_bytes.into()));
        let digits = Digits::new(form.sort, resident);
        let unsorted = match (form.sort, digits) {
            (QuerySort::Full, _) => 1,
            (_, Some(digits)) => resident.tuples.checked_shr(digits.bits).unwrap_or(0).max(1),
            (QuerySort::None, None) => resident.tuples,
            (_, None) => 1,
        };
        let psa = match digits {
            Some(digits) => Some(
                Psa::new(resident, digits)
                    .ok_or_else(|| algorithm.refused("this device has too little shared memory to sort"))?,
            ),
            None => None,
        };
        let mut search = Self {
            form,
            instance,
            psa,
            unsorted,
            room: Mutex::default(),
            top: match form.children {
                ChildRegion::Constant => built.top(TOP_MAX),
                // Two blocks share a multiprocessor.
                ChildRegion::Shared => {
                    let most = u64::from(gpu.limits().shared_bytes_max / 2) / CHILD_BYTES;
                    built.top(most.min(TOP_MAX))
                }
                ChildRegion::Ldg => 0,
            },
            blocks_max: 1,
            owner: OWNERS.fetch_add(1, Ordering::Relaxed),
            lanes: Mutex::new([None; 65]),
            built,
        };
        search.blocks_max =
            gpu.blocks_at_once(instance, search.entry(), search.threads(), search.shared_bytes())?;
        Ok(search)
    }

    fn entry(&self) -> &'static str {
        match self.form.children {
            ChildRegion::Constant => "harmonia_constant",
            ChildRegion::Shared => "harmonia_shared",
            ChildRegion::Ldg => "harmonia_ldg",
        }
    }

    fn threads(&self) -> u32 {
        if self.form.children == ChildRegion::Shared { SHARED_THREADS } else { THREADS }
    }

    fn shared_bytes(&self) -> u32 {
        if self.form.children == ChildRegion::Shared { (self.top * CHILD_BYTES) as u32 } else { 0 }
    }

    /// Returns the number of lanes per query for a batch of `queries`.
    fn lanes_of(&self, queries: u64) -> u32 {
        let fanout = self.built.geometry.fanout;
        let (is_ours, most) = match self.form.group {
            _ if self.form.scan == Scan::Halves => return 1,
            Group::Of(lanes) => return lanes.into(),
            Group::Whole => return most_lanes(fanout),
            Group::Auto => (true, queries),
            Group::Paper => (false, queries),
        };
        let power = most.max(1).ilog2() as usize;
        let mut known = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        *known[power].get_or_insert_with(|| {
            let neighbours = Neighbours { queries, unsorted: self.unsorted };
            let profile = Profile::new(&self.built.geometry, neighbours);
            let keys = keys_at_once(self.form.scan, self.built.stored.word_bytes);
            if is_ours { profile.best(fanout, keys) } else { profile.by_equation_4(fanout, keys) }
        })
    }

    /// Queues the search of queries in the order in which they are stored. Answers are written to the places
    /// given by `numbers`, unless it is 0.
    ///
    /// # Safety
    /// As [`Search::search`].
    unsafe fn launch(
        &self,
        stream: &Stream,
        batch: &Batch,
        numbers: u64,
        queries: u64,
    ) -> Result<(), GpuError> {
        let tree = Tree { numbers, ..self.built.tree(self.lanes_of(queries), self.form.scan, self.top) };
        let shape = LaunchShape::limited(self.blocks_max, self.threads(), self.shared_bytes(), batch.count);
        let (instance, tree, short) = (self.instance, &tree, &self.built.stored.short);
        // SAFETY: the caller guarantees the batch and its buffers; `built` owns the memory that the tree
        // points to, and the top fits where it is put.
        unsafe {
            match self.form.children {
                ChildRegion::Constant => {
                    let top = (tree.children, (self.top * CHILD_BYTES) as usize);
                    let name = (instance, "harmonia_top");
                    stream.gpu().with_constant(stream.handle(), name, self.owner, top, || {
                        harmonia_constant(stream, instance, shape, tree, short, batch)
                    })
                }
                ChildRegion::Shared => harmonia_shared(stream, instance, shape, tree, short, batch),
                ChildRegion::Ldg => harmonia_ldg(stream, instance, shape, tree, short, batch),
            }
        }
    }

    /// Sorts a batch and searches it. Answers are left as sorted, with their numbers at `numbers_to`, or are
    /// in the batch's order.
    ///
    /// # Safety
    /// As [`Search::search`], and there must be a number for each query.
    unsafe fn run(
        &self,
        psa: &Psa,
        stream: &Stream,
        batch: &Batch,
        numbers_to: Option<u64>,
    ) -> Result<(), GpuError> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let room = psa.room(stream, &mut room, batch.count)?;
        let queue = || -> Result<(), GpuError> {
            let mut first = 0;
            while first < batch.count {
                let count = CHUNK.min(batch.count - first);
                let queries = batch.queries + first * u64::from(self.instance.word_bytes);
                let chunk = Batch { queries, count, ..*batch };
                let to = numbers_to.map_or(0, |to| to + first * 4);
                // SAFETY: the caller guarantees the whole batch; this chunk of it is no longer than the room.
                let sorted = unsafe { psa.sort(stream, room, &chunk, first as u32, to) }?;
                let chunk = Batch { queries: sorted.queries, kind: 0, ..chunk };
                let (chunk, numbers) = match numbers_to {
                    None => (chunk, sorted.numbers),
                    Some(_) => (answers_from(&chunk, first), 0),
                };
                if batch.values | batch.present | batch.ranks != 0 {
                    // SAFETY: the caller guarantees the whole batch; the numbers are places of the batch.
                    unsafe { self.launch(stream, &chunk, numbers, batch.count) }?;
                }
                first += count;
            }
            Ok(())
        };
        let queued = queue();
        room.leave(stream)?;
        queued
    }
}

/// Returns the batch whose answers begin at those of query `first`, a multiple of 32.
fn answers_from(batch: &Batch, first: u64) -> Batch {
    let part = |address: u64, bytes: u64| if address == 0 { 0 } else { address + bytes };
    Batch {
        values: part(batch.values, first * u64::from(batch.value_bytes)),
        present: part(batch.present, first / 8),
        ranks: part(batch.ranks, first * u64::from(batch.rank_bytes)),
        ..*batch
    }
}

/// Checks that queries can be numbered by 32 bits.
fn check_count(form: HarmoniaSearch, count: u64) -> Result<(), GpuError> {
    if count > u64::from(u32::MAX) {
        return Err(named(form).refused(format!("{count} queries are too many to be numbered")));
    }
    Ok(())
}

/// Checks that a warp can be divided into these groups.
fn check_group(group: Group, algorithm: Algorithm) -> Result<(), GpuError> {
    match group {
        Group::Of(lanes) if !lanes.is_power_of_two() || lanes > 32 => {
            Err(algorithm.refused(format!("{lanes} lanes: take a power of two up to 32")))
        }
        _ => Ok(()),
    }
}

/// Returns the algorithm whose name errors have.
fn named(form: HarmoniaSearch) -> Algorithm {
    Algorithm::Section(SectionTree::Harmonia(form))
}

impl Search for Harmonia {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let sorts = self.form.sort != QuerySort::Auto || batch.count >= SORTED_MIN;
        let Some(psa) = self.psa.as_ref().filter(|_| sorts) else {
            // SAFETY: the caller guarantees the batch and its buffers, as `Search::search` requires.
            return unsafe { self.launch(stream, batch, 0, batch.count) };
        };
        check_count(self.form, batch.count)?;
        // SAFETY: the caller guarantees the batch and its buffers, as `Search::search` requires.
        unsafe { self.run(psa, stream, batch, None) }
    }

    unsafe fn search_sorted(&self, stream: &Stream, batch: &Batch, numbers: u64) -> Result<(), GpuError> {
        let Some(psa) = &self.psa else {
            return Err(named(self.form).refused("this form does not sort its queries"));
        };
        check_count(self.form, batch.count)?;
        // SAFETY: the caller guarantees the batch, its buffers and a number for each query.
        unsafe { self.run(psa, stream, batch, Some(numbers)) }
    }

    fn lanes(&self, queries: u64) -> Option<u32> {
        Some(self.lanes_of(queries))
    }

    fn wants_zeroed_present(&self) -> bool {
        self.psa.is_some()
    }

    fn is_recordable(&self, _count: u64) -> bool {
        self.psa.is_none() && self.form.children != ChildRegion::Constant
    }

    fn bytes(&self) -> u64 {
        let room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        self.built.stored.buffer.bytes() + room.as_ref().map_or(0, Room::bytes)
    }
}

#[cfg(test)]
mod tests;
