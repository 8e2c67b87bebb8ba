//! The FAST section of a file on a device, byte for byte as it lies: any form, any geometry.
//!
//! One thread goes down for one query. The host makes a plan of the levels of pages and of the lines in them
//! (a few hundred bytes, which blocks keep in shared memory); places, keys and records are the section's. The
//! answers come from the tuple lines, whose keys also decide where words are partial.

use super::search::Search;
use super::{Algorithm, SectionTree};
use crate::driver::LaunchShape;
use crate::kernel::{Batch, Instance, SourceSpec};
use crate::memory::DeviceBuffer;
use crate::resident::Resident;
use crate::stored::{self, SHORT_TEXT, STORED_BYTES, Stored};
use crate::{GpuError, Stream};
use pleach::Index;
use pleach_format::classic::paged::{Form, Paged};
use pleach_format::classic::{Geometry, LineLevel, PageLevel, Tree as Layout, nodes};
use zerocopy::{Immutable, IntoBytes};

/// Threads per block.
const THREADS: u32 = 256;
/// Maximum number of bytes of a plan: what a block can have of shared memory on every device.
const PLAN_BYTES_MAX: usize = 48 << 10;
/// Bytes of the vectors in which a plan is copied.
const VECTOR_BYTES: usize = 16;

crate::kernel! {
    /// Search of the FAST section.
    FAST_SECTION = SourceSpec {
        shared: &[SHORT_TEXT],
        option_name: Some("STORED_BYTES"),
        options: &STORED_BYTES,
        has_value_width: true,
        exists: |instance| SourceSpec::is_plain(instance) && instance.option <= instance.word_bytes.into(),
        numbers: |_| vec![
            stored::Arguments::NUMBER,
            ("BYTES_OF_FAST_SECTION", size_of::<Arguments>() as u64),
            ("BYTES_OF_PAGES", size_of::<Pages>() as u64),
            ("BYTES_OF_LINES", size_of::<Lines>() as u64),
        ],
        ..SourceSpec::new("fast_section.cu", include_str!("../kernels/fast_section.cu"))
    };
    /// Search of the FAST section, one thread per query.
    fast_section(tree: Arguments, short: stored::Arguments, batch: Batch);
}

/// A level of pages; the same as in fast_section.cu, which explains the fields.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
struct Pages {
    last: u64,
    start: u64,
    stride: u64,
    gap_bytes: u64,
    gap_magic: u64,
    levels: u32,
    is_run: u32,
    first: [u32; 4],
    depths: [u32; 4],
    bytes: [[u64; 2]; 4],
}

/// Lines of one depth; the same as in fast_section.cu.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
struct Lines {
    start: [u64; 2],
    last: [u64; 2],
    pitch: u32,
    line_bytes: u32,
    group: u32,
    levels: u32,
    d_k: u32,
    unused: u32,
}

/// A tree; the same as Tree in fast_section.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Arguments {
    section: u64,
    bytes: u64,
    lines: u64,
    tuples: u64,
    plan: u64,
    plan_vectors: u32,
    levels: u32,
    is_paged: u32,
    is_lossy: u32,
    last_decides: u32,
    unused: u32,
}

/// Levels of pages, and depths of their lines.
#[derive(Debug, Default)]
struct Plan {
    pages: Vec<Pages>,
    lines: Vec<Lines>,
}

impl Plan {
    /// Returns the plan of a tree; `None` if there is no such tree.
    fn new(geometry: Geometry, form: Form) -> Option<Self> {
        let mut plan = Self::default();
        if let Some(paged) = Paged::new(geometry, form) {
            let widths = [2, 4, 8, 16].map(|width| paged.tree(width));
            for (number, (level, record)) in paged.levels().iter().zip(paged.records()).enumerate() {
                let start = record * paged.record_bytes() as u64;
                let mut pages = Pages { last: level.last, start, levels: level.levels, ..Pages::default() };
                for (log, tree) in widths.iter().enumerate() {
                    if let Some((tree, level)) = tree.and_then(|tree| Some((tree, tree.pages().get(number)?)))
                    {
                        plan.add_lines(&mut pages, log, tree, level);
                    }
                }
                plan.pages.push(pages);
            }
            return Some(plan);
        }
        let tree = geometry.tree()?;
        let (log, key_bytes) = (geometry.key_bytes.ilog2() as usize - 1, u64::from(geometry.key_bytes));
        for level in tree.pages() {
            let mut pages = Pages {
                last: level.last,
                start: level.start * key_bytes,
                stride: level.slots[0] * key_bytes,
                gap_bytes: level.gaps.slots * key_bytes,
                gap_magic: level.gaps.magic,
                levels: level.levels,
                is_run: (level.joined || level.last == 0).into(),
                ..Pages::default()
            };
            plan.add_lines(&mut pages, log, &tree, level);
            plan.pages.push(pages);
        }
        Some(plan)
    }

    /// Adds the lines of a level of pages for words of 2^(log + 1) bytes.
    fn add_lines(&mut self, pages: &mut Pages, log: usize, tree: &Layout, level: &PageLevel) {
        let word_bytes = u64::from(tree.geometry().key_bytes);
        pages.first[log] = self.lines.len() as u32;
        pages.depths[log] = level.lines.len() as u32;
        pages.bytes[log] = level.slots.map(|slots| slots * word_bytes);
        let lines = |line: &LineLevel| Lines {
            start: line.start.map(|slot| slot * word_bytes),
            last: line.last,
            pitch: (line.pitch * word_bytes) as u32,
            line_bytes: (nodes(line.levels) * word_bytes) as u32,
            group: line.group,
            levels: line.levels,
            d_k: tree.geometry().d_k,
            unused: 0,
        };
        self.lines.extend(level.lines.iter().map(lines));
    }

    /// Returns its bytes, in whole vectors.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = [self.pages.as_bytes(), self.lines.as_bytes()].concat();
        bytes.resize(bytes.len().next_multiple_of(VECTOR_BYTES), 0);
        bytes
    }
}

/// A FAST section that is ready to be searched.
#[derive(Debug)]
pub(crate) struct FastSection {
    tree: Stored,
    // What `arguments` points to, in addition to the tree and the table's lines.
    _plan: DeviceBuffer,
    arguments: Arguments,
    instance: Instance,
    plan_bytes: u32,
    multiprocessors: u32,
    blocks_max: u32,
}

impl FastSection {
    /// Makes the section of a table's file readable by the device.
    pub(crate) fn new(index: &Index, stream: &Stream, resident: &Resident) -> Result<Self, GpuError> {
        let algorithm = Algorithm::Section(SectionTree::Fast);
        let Some((offset, shape)) = index.header().fast else { return Err(algorithm.without_section()) };
        let plan = Plan::new(shape.geometry, shape.form).map(|plan| (plan.pages.len(), plan.bytes()));
        let Some((levels, plan)) = plan.filter(|(_, plan)| plan.len() <= PLAN_BYTES_MAX) else {
            return Err(algorithm.refused(format!("a tree of too many levels: {:?}", shape.geometry)));
        };
        let gpu = &resident.gpu;
        let tree = Stored::of_file(index, stream, resident, (offset, shape.bytes))?;
        let on_device = DeviceBuffer::from_host(stream, &plan)?;
        let instance = resident.instance(&FAST_SECTION, tree.word_bytes.into());
        let plan_bytes = plan.len() as u32;
        let arguments = Arguments {
            section: tree.buffer.address(),
            bytes: tree.buffer.bytes(),
            lines: resident.lines.address(),
            tuples: resident.tuples,
            plan: on_device.address(),
            plan_vectors: (plan.len() / VECTOR_BYTES) as u32,
            levels: levels as u32,
            is_paged: (shape.form != Form::Full).into(),
            is_lossy: matches!(shape.form, Form::Partial | Form::Auto).into(),
            last_decides: resident.tuples.is_power_of_two().into(),
            unused: 0,
        };
        Ok(Self {
            tree,
            _plan: on_device,
            arguments,
            instance,
            plan_bytes,
            multiprocessors: gpu.device().multiprocessors.max(1),
            blocks_max: gpu.blocks_at_once(instance, "fast_section", THREADS, plan_bytes)?,
        })
    }
}

impl Search for FastSection {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        // Short batches run in short blocks, on all multiprocessors.
        let each = batch.count.div_ceil(self.multiprocessors.into()).min(THREADS.into());
        let threads = (each as u32).next_multiple_of(32);
        let shape = LaunchShape::limited(self.blocks_max, threads, self.plan_bytes, batch.count);
        // SAFETY: the caller guarantees the batch and its buffers, and keeps the table's lines. Tree and plan
        // live as long as `self`; the plan fits the tree, the kernel clamps what it takes from the tree, and
        // the launch has the shared memory of the plan.
        unsafe { fast_section(stream, self.instance, shape, &self.arguments, &self.tree.short, batch) }
    }

    fn bytes(&self) -> u64 {
        self.tree.buffer.bytes()
    }
}
