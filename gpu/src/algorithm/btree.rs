//! Search in the contiguous B+tree of the paper on search on an APU: [`crate::btree`].
//!
//! The tree is the section BTRE of the file, as it lies, or is built on the device from the sorted columns:
//! metadata and keys, beside the column of values. One thread searches for a query, in the paper's launch
//! (blocks of 256, at most 32,768 threads, several queries each) or in one that fills the device.

use super::search::Search;
use super::{Algorithm, BtreeForm, SectionTree};
use crate::btree::{LEVELS_MAX, Level, Node, Shape};
use crate::driver::LaunchShape;
use crate::kernel::{Batch, Columns, Instance, SourceSpec, Text};
use crate::memory::DeviceBuffer;
use crate::resident::{Resident, SortedColumns, grid};
use crate::stored::{self, SHORT_TEXT, STORED_BYTES, Stored};
use crate::{GpuError, Stream};
use pleach::Index;
use pleach_format::btree::BtreeGeometry;

/// Threads per block.
const THREADS: u32 = 256;
/// Maximum number of threads of the paper's launch.
const THREADS_MAX: u32 = 32_768;

/// Text of the kernels that read the tree.
pub const BTREE_TEXT: Text = Text { name: "btree.cuh", text: include_str!("../kernels/btree.cuh") };

crate::kernel! {
    /// The contiguous B+tree: its search, and its builder.
    BTREE = SourceSpec {
        shared: &[SHORT_TEXT, BTREE_TEXT],
        option_name: Some("STORED_BYTES"),
        options: &STORED_BYTES,
        exists: |instance| SourceSpec::is_plain(instance) && instance.option <= instance.word_bytes.into(),
        numbers: |_| vec![
            Tree::NUMBER,
            stored::Arguments::NUMBER,
            ("BYTES_OF_BTREE_BUILD", size_of::<Build>() as u64),
        ],
        ..SourceSpec::new("btree.cu", include_str!("../kernels/btree.cu"))
    };
    /// Search of the B+tree, one thread per query.
    btree(tree: Tree, short: stored::Arguments, batch: Batch);
    /// Makes metadata and keys of the B+tree.
    btree_build(build: Build) if |instance| instance.option == instance.word_bytes.into();
}

/// A tree; the same as in btree.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Tree {
    nodes: u64,
    keys: u64,
    values: u64,
    node_count: u64,
    slots: u64,
    tuples: u64,
    levels: u32,
    order: u32,
}

impl Tree {
    /// Definition of btree.cuh.
    pub const NUMBER: (&'static str, u64) = ("BYTES_OF_BTREE", size_of::<Self>() as u64);

    /// Returns the tree of a section at an address.
    fn of_section(geometry: &BtreeGeometry, address: u64) -> Self {
        let shape = &geometry.shape;
        Self {
            nodes: address,
            keys: address + geometry.keys_at,
            values: address + geometry.values_at,
            node_count: shape.nodes(),
            slots: shape.slots(),
            tuples: shape.tuples(),
            levels: shape.levels().len() as u32,
            order: shape.order(),
        }
    }
}

/// Arguments of the builder; the same as in btree.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Build {
    column: u64,
    nodes: u64,
    keys: u64,
    node_count: u64,
    slots: u64,
    levels: u32,
    order: u32,
    level: [Level; LEVELS_MAX],
}

/// A tree made on a device.
#[derive(Debug)]
pub struct Built {
    nodes: DeviceBuffer,
    keys: DeviceBuffer,
    columns: SortedColumns,
    slots: u64,
    levels: u32,
    order: u32,
}

impl Built {
    /// Builds the tree of a table's sorted columns for an algorithm, and waits for it.
    ///
    /// # Errors
    /// [`GpuError::Algorithm`] if there is no tree of this order, [`GpuError::Memory`] or
    /// [`GpuError::OutOfMemory`] if there is no room, [`GpuError::Driver`] if a driver call fails.
    pub fn new(
        stream: &Stream,
        resident: &Resident,
        order: u16,
        algorithm: &'static str,
    ) -> Result<Self, GpuError> {
        let Some(tree) = Shape::new(order.into(), resident.tuples) else {
            let cause = format!("order {order} of {} tuples", resident.tuples);
            return Err(GpuError::Algorithm { algorithm, cause });
        };
        let columns = resident.columns(stream)?;
        let gpu = &resident.gpu;
        let nodes = resident.buffer(tree.nodes() * Node::BYTES as u64)?;
        let keys = resident.buffer(tree.slots() * u64::from(resident.word_bytes))?;
        let mut level = [Level::default(); LEVELS_MAX];
        level[..tree.levels().len()].copy_from_slice(tree.levels());
        let build = Build {
            column: columns.keys.address(),
            nodes: nodes.address(),
            keys: keys.address(),
            node_count: tree.nodes(),
            slots: tree.slots(),
            levels: tree.levels().len() as u32,
            order: order.into(),
            level,
        };
        let instance = resident.instance(&BTREE, resident.word_bytes.into());
        let launch = grid(gpu, instance, "btree_build", THREADS, 0, tree.slots())?;
        // SAFETY: the column has the tuples for which the shape was made, and the other buffers have its
        // nodes and slots; all of them live until the stream was waited for.
        unsafe { btree_build(stream, instance, launch, &build) }?;
        stream.synchronize()?;
        Ok(Self { nodes, keys, columns, slots: tree.slots(), levels: build.levels, order: build.order })
    }

    /// Returns the arguments of the kernels. The caller keeps the tree.
    #[must_use]
    pub fn arguments(&self) -> Tree {
        let Columns { values, tuples, .. } = self.columns.arguments();
        Tree {
            nodes: self.nodes.address(),
            keys: self.keys.address(),
            values,
            node_count: self.nodes.bytes() / Node::BYTES as u64,
            slots: self.slots,
            tuples,
            levels: self.levels,
            order: self.order,
        }
    }

    /// Returns the bytes of metadata and keys.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.nodes.bytes() + self.keys.bytes()
    }
}

/// A tree that is searched by one thread per query.
#[derive(Debug)]
pub(crate) struct Btree {
    // What `arguments` points to.
    _kept: Kept,
    arguments: Tree,
    short: stored::Arguments,
    bytes: u64,
    form: BtreeForm,
    instance: Instance,
    multiprocessors: u32,
    blocks_max: u32,
}

/// The memory of a tree.
#[derive(Debug)]
enum Kept {
    Built { _tree: Built },
    Stored { _section: Stored },
}

impl Btree {
    /// Builds the tree of the specified order.
    pub(crate) fn new(
        stream: &Stream,
        resident: &Resident,
        order: u16,
        form: BtreeForm,
    ) -> Result<Self, GpuError> {
        let tree = Built::new(stream, resident, order, Algorithm::Btree { order, form }.name())?;
        let (arguments, bytes) = (tree.arguments(), tree.bytes());
        let words = (resident.word_bytes, stored::Arguments::default());
        Self::of(resident, Kept::Built { _tree: tree }, (arguments, bytes), words, form)
    }

    /// Makes the section of a table's file readable by the device.
    pub(crate) fn of_file(index: &Index, stream: &Stream, resident: &Resident) -> Result<Self, GpuError> {
        let Some((offset, geometry)) = &index.header().btree else {
            return Err(Algorithm::Section(SectionTree::Btree).without_section());
        };
        let section = Stored::of_file(index, stream, resident, (*offset, geometry.bytes))?;
        let tree = Tree::of_section(geometry, section.buffer.address());
        let words = (section.word_bytes, section.short);
        Self::of(resident, Kept::Stored { _section: section }, (tree, geometry.bytes), words, BtreeForm::Grid)
    }

    fn of(
        resident: &Resident,
        kept: Kept,
        (arguments, bytes): (Tree, u64),
        (word_bytes, short): (u8, stored::Arguments),
        form: BtreeForm,
    ) -> Result<Self, GpuError> {
        let gpu = &resident.gpu;
        let instance = resident.instance(&BTREE, word_bytes.into());
        let blocks_max = match form {
            BtreeForm::Paper => THREADS_MAX / THREADS,
            BtreeForm::Grid => gpu.blocks_at_once(instance, "btree", THREADS, 0)?,
        };
        let multiprocessors = gpu.device().multiprocessors.max(1);
        Ok(Self { _kept: kept, arguments, short, bytes, form, instance, multiprocessors, blocks_max })
    }

    fn shape(&self, queries: u64) -> LaunchShape {
        let threads = match self.form {
            BtreeForm::Paper => THREADS,
            // Short batches in short blocks, on all multiprocessors.
            BtreeForm::Grid => {
                let each = queries.div_ceil(self.multiprocessors.into()).min(THREADS.into());
                (each as u32).next_multiple_of(32)
            }
        };
        LaunchShape::limited(self.blocks_max, threads, 0, queries)
    }
}

impl Search for Btree {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let (instance, shape) = (self.instance, self.shape(batch.count));
        // SAFETY: the caller guarantees the batch and its buffers; `self` owns the memory that the arguments
        // point to.
        unsafe { btree(stream, instance, shape, &self.arguments, &self.short, batch) }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gpu;
    use crate::btree::Tree as Scalar;
    use crate::resident::Residence;
    use pleach::{Index, Key, Value};
    use pleach_builder::{BuildOptions, build_slice};
    use pleach_format::key::Word;

    const ORDERS: [u16; 7] = [4, 5, 16, 33, 64, 128, 1025];

    /// Compares the metadata and keys made by the device with those of the scalar builder.
    fn check<K: Key, V: Value>(gpu: &Gpu, tuples: &[(K, V)]) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table.pleach");
        build_slice(tuples, &path, &BuildOptions::default()).expect("built");
        let index = Index::open(&path).expect("opens");
        let stream = Stream::new(gpu).expect("a stream");
        let resident =
            Resident::new(&index, &stream, Residence::Device).expect("fits").expect("there are tuples");
        let words: Vec<K::Word> = tuples.iter().map(|tuple| tuple.0.encode()).collect();
        for order in ORDERS {
            let what = format!("{} tuples of {}, order {order}", tuples.len(), K::TYPE);
            let built = Built::new(&stream, &resident, order, "btree").expect("builds");
            let scalar = Scalar::new(&words, order.into()).expect("an order");
            let read = |buffer: &DeviceBuffer| {
                let mut bytes = vec![0; buffer.bytes() as usize];
                buffer.copy_to_host(&stream, &mut bytes).expect("copied");
                bytes
            };
            let metadata: Vec<u8> = scalar.nodes.iter().flat_map(|node| node.to_bytes()).collect();
            assert!(read(&built.nodes) == metadata, "{what}: metadata");
            let mut keys = vec![0; scalar.keys.len() * <K::Word as Word>::BYTES];
            for (key, bytes) in scalar.keys.iter().zip(keys.chunks_exact_mut(<K::Word as Word>::BYTES)) {
                key.write(bytes);
            }
            assert!(read(&built.keys) == keys, "{what}: keys");
            assert_eq!(built.bytes(), (metadata.len() + keys.len()) as u64, "{what}");
        }
        for order in [0, 3, 1026] {
            let refused = Btree::new(&stream, &resident, order, BtreeForm::Grid).map(|_| ());
            assert!(matches!(refused, Err(GpuError::Algorithm { algorithm: "btree", .. })));
        }
    }

    fn check_all(gpu: &Gpu, counts: &[u64]) {
        for &count in counts {
            let all = 0..count;
            check(gpu, &all.clone().map(|i| (i as u32 * 3, i as u32)).collect::<Vec<_>>());
            check(gpu, &all.clone().map(|i| (u64::MAX - (count - i) / 9, ())).collect::<Vec<_>>());
            check(gpu, &all.map(|i| (u128::from(i) << 70, i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn trees_are_those_of_the_scalar_builder() {
        match Gpu::open(0) {
            Ok(gpu) => check_all(&gpu, &[1, 3, 4, 15, 16, 17, 255, 257, 4097, 100_000]),
            Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[cfg(feature = "emulate")]
    #[test]
    fn trees_are_those_of_the_scalar_builder_where_a_cpu_is_the_device() {
        for order in [crate::LaneOrder::Ascending, crate::LaneOrder::Random(5)] {
            match Gpu::emulated(order, crate::GpuOptions::default()) {
                Ok(gpu) => check_all(&gpu, &[1, 3, 4, 16, 17, 257, 4097]),
                Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
