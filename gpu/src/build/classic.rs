//! Classic trees built on a device from a column of sorted keys, byte for byte as by the CPU builder.
//!
//! The layout follows from the number of keys alone, so the host computes it: for each depth of lines, top
//! first, the start and the number of its lines. One launch writes all of it.
//!
//! The paper's form distributes pages to one lane of each half-warp. Pleach's form gives a block the keys of
//! one chunk after another: chunks are so short that all blocks have some, and that a chunk stays in a cache
//! between the depths that read it.

use crate::driver::LaunchShape;
use crate::kernel::{Instance, SourceSpec};
use crate::memory::DeviceBuffer;
use crate::{Gpu, GpuError, Pending, Stream};
use pleach_format::classic::{Geometry, Tree};

/// Maximum number of depths of lines of a tree: a tree with this many levels has 2^48 keys.
pub(crate) const DEPTHS_MAX: usize = 48;

/// Threads per block of Pleach's form.
const THREADS: u32 = 256;
/// Blocks per multiprocessor of the paper's form: each is a warp.
const PAPER_BLOCKS: u32 = 8;
/// Threads of a warp that build, in the paper's form.
const PAPER_BUILDERS: u64 = 2;
/// Logarithms of the keys per chunk: a chunk fits into a cache, and gives each thread of a block some keys.
const CHUNK_LEVELS: std::ops::RangeInclusive<u32> = 8..=12;

/// Lines of one depth; the same as Level in fast.cu and classic.cu, which explain the fields.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Level {
    start: [u64; 2],
    page_slots: u64,
    last_page: u64,
    last: u64,
    pitch: u32,
    above: u32,
    levels: u32,
    below: u32,
    group: u32,
    paged: u32,
}

/// Returns the depths of a tree's lines, top first, and their number.
pub(crate) fn depths(tree: &Tree) -> ([Level; DEPTHS_MAX], u32) {
    let mut depths = [Level::default(); DEPTHS_MAX];
    let lines = tree.pages().iter().flat_map(|page| page.lines.iter().map(move |line| (page, line)));
    let mut count = 0;
    for (depth, (page, line)) in depths.iter_mut().zip(lines) {
        let start = line.start.map(|slot| page.start + slot);
        let is_paged = page.last > 0;
        *depth = Level {
            // A single page is the last one.
            start: if is_paged { start } else { [start[1]; 2] },
            page_slots: page.slots[0],
            last_page: page.last,
            last: tree.last_gap() >> (line.levels + line.below),
            pitch: line.pitch as u32,
            above: line.above,
            levels: line.levels,
            below: line.below,
            group: line.group,
            paged: is_paged.into(),
        };
        count += 1;
    }
    (depths, count)
}

/// Arguments of the builders; the same as Build in classic.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Arguments {
    keys: u64,
    tuples: u64,
    slots: u64,
    used: u64,
    whole: u64,
    pages_each: u64,
    last_chunk: u64,
    chunk_levels: u32,
    d_k: u32,
    depths: u32,
    padded: u32,
    levels: [Level; DEPTHS_MAX],
}

crate::kernel! {
    /// Builders of classic trees.
    CLASSIC = SourceSpec {
        numbers: |_| vec![
            ("BYTES_OF_CLASSIC", size_of::<Arguments>() as u64),
            ("DEPTHS_MAX", DEPTHS_MAX as u64),
        ],
        ..SourceSpec::new("classic.cu", include_str!("../kernels/classic.cu"))
    };
    /// Makes a classic tree, one page per lane of each half-warp.
    classic_paper(build: Arguments);
    /// Makes a classic tree, one slot per thread.
    classic_build(build: Arguments);
}

/// Form of a classic tree's builder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClassicForm {
    /// The builder of the paper on FAST: two threads of a warp build, and pages are distributed to them. A
    /// tree that is one page is built by one of them.
    Paper,
    /// One thread per key, on the whole device.
    #[default]
    Grid,
}

/// A launch that builds trees of one geometry.
#[derive(Debug)]
pub struct ClassicBuilder {
    form: ClassicForm,
    instance: Instance,
    shape: LaunchShape,
    /// Without addresses.
    arguments: Arguments,
    key_bytes: u64,
    tree_bytes: u64,
}

impl ClassicBuilder {
    /// Computes the layout of the tree and loads the program.
    ///
    /// # Errors
    /// [`GpuError::Algorithm`] for a geometry outside its limits or aligned, or keys of 2 bytes;
    /// [`GpuError::Unavailable`] or [`GpuError::Compile`] if the program cannot be compiled.
    pub fn new(gpu: &Gpu, geometry: &Geometry, form: ClassicForm) -> Result<Self, GpuError> {
        let tree = geometry.tree().filter(|_| matches!(geometry.key_bytes, 4 | 8 | 16) && !geometry.aligned);
        let Some(tree) = tree else {
            let cause = format!("invalid geometry of a tree: {geometry:?}");
            return Err(GpuError::Algorithm { algorithm: "fast", cause });
        };
        let instance = Instance::new(&CLASSIC, geometry.key_bytes as u8, 0);
        let gaps = tree.last_gap() + 1;
        let pages: u64 = tree
            .pages()
            .iter()
            .map(|page| if page.joined { page.lines[0].last[1] + 1 } else { page.last + 1 })
            .sum();
        let (threads, blocks_max, wanted, chunk_levels);
        match form {
            ClassicForm::Paper => {
                threads = 32;
                blocks_max = gpu.device().multiprocessors.max(1) * PAPER_BLOCKS;
                wanted = pages.div_ceil(PAPER_BUILDERS);
                chunk_levels = 0;
            }
            ClassicForm::Grid => {
                threads = THREADS;
                blocks_max = gpu.blocks_at_once(instance, "classic_build", threads, 0)?;
                let fair = (gaps / u64::from(blocks_max)).max(1).ilog2();
                chunk_levels = fair.clamp(*CHUNK_LEVELS.start(), *CHUNK_LEVELS.end());
                wanted = gaps.div_ceil(1 << chunk_levels);
            }
        }
        let blocks = wanted.clamp(1, blocks_max.into());
        let (levels, depths) = depths(&tree);
        let key_bytes = u64::from(geometry.key_bytes);
        let arguments = Arguments {
            keys: 0,
            tuples: geometry.keys,
            slots: 0,
            used: tree.slots(),
            whole: tree.bytes() / key_bytes,
            pages_each: pages.div_ceil(blocks * PAPER_BUILDERS),
            last_chunk: tree.last_gap() >> chunk_levels,
            chunk_levels,
            d_k: geometry.d_k,
            depths,
            padded: geometry.padded.into(),
            levels,
        };
        let blocks = u32::try_from(blocks).unwrap_or(blocks_max);
        let shape = LaunchShape { blocks, threads, shared_bytes: 0 };
        Ok(Self { form, instance, shape, arguments, key_bytes, tree_bytes: tree.bytes() })
    }

    /// Returns the bytes of the tree: those of the section FAST.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tree_bytes
    }

    /// Queues building the tree of a column of encoded words in ascending order; other words give a tree that
    /// answers wrongly.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if the column or the tree's buffer is too short, [`GpuError::Driver`] if a driver
    /// call fails.
    ///
    /// # Panics
    /// If the column or the tree's buffer does not begin at a multiple of a key's bytes.
    pub fn build(
        &self,
        stream: &Stream,
        keys: &DeviceBuffer,
        tree: &DeviceBuffer,
    ) -> Result<Pending<()>, GpuError> {
        keys.holds("keys", self.arguments.tuples.saturating_mul(self.key_bytes))?;
        tree.holds("tree", self.tree_bytes)?;
        for address in [keys.address(), tree.address()] {
            assert!(address.is_multiple_of(self.key_bytes), "keys are aligned");
        }
        let arguments = Arguments { keys: keys.address(), slots: tree.address(), ..self.arguments };
        // SAFETY: both buffers are long enough for the geometry from which the arguments were computed;
        // `Pending` keeps them, or they are waited for here.
        unsafe {
            match self.form {
                ClassicForm::Paper => classic_paper(stream, self.instance, self.shape, &arguments),
                ClassicForm::Grid => classic_build(stream, self.instance, self.shape, &arguments),
            }
        }?;
        let pending = Pending::new(stream, vec![keys.clone(), tree.clone()], || Ok(()));
        if pending.is_err() {
            let _ = stream.synchronize();
        }
        pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_builder::classic::{TreeKey, Vectors, build};

    fn mix(i: u64) -> u64 {
        let i = (i ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (i ^ i >> 29).wrapping_mul(0x94D0_49BB_1331_11EB) ^ i >> 31
    }

    /// d_K, d_L, d_P: the paper's on GPUs, deeper pages of its blocks, those of CPUs, and unusual ones.
    const DEPTHS: [(u32, u32, u32); 10] = [
        (4, 4, 4),
        (4, 4, 8),
        (4, 4, 64),
        (4, 4, 7),
        (2, 4, 19),
        (1, 3, 18),
        (1, 2, 17),
        (1, 1, 1),
        (2, 5, 11),
        (3, 7, 9),
    ];

    fn check<W: TreeKey>(gpu: &Gpu, mut keys: Vec<W>) {
        keys.sort_unstable();
        let stream = Stream::new(gpu).expect("a stream");
        let mut bytes = vec![0; keys.len() * W::BYTES];
        for (key, bytes) in keys.iter().zip(W::slots_mut(&mut bytes)) {
            *bytes = key.to_bytes();
        }
        let column = DeviceBuffer::from_host(&stream, &bytes).expect("copies");
        for (d_k, d_l, d_p) in DEPTHS {
            for padded in [false, true] {
                let geometry = Geometry {
                    keys: keys.len() as u64,
                    key_bytes: W::BYTES as u32,
                    d_k,
                    d_l,
                    d_p,
                    padded,
                    aligned: false,
                };
                let mut wanted = vec![0; geometry.tree().expect("sound").bytes() as usize];
                build(&keys, &geometry, Vectors::Best, &mut wanted).expect("builds");
                for form in [ClassicForm::Paper, ClassicForm::Grid] {
                    let builder = ClassicBuilder::new(gpu, &geometry, form).expect("sound");
                    assert_eq!(builder.bytes(), wanted.len() as u64);
                    let tree = DeviceBuffer::new(gpu, builder.bytes()).expect("allocates");
                    tree.fill(&stream, 0xAA).expect("fills");
                    builder.build(&stream, &column, &tree).and_then(Pending::wait).expect("builds");
                    let mut found = vec![0; wanted.len()];
                    tree.copy_to_host(&stream, &mut found).expect("copies");
                    assert!(found == wanted, "{form:?}, {geometry:?}");
                }
            }
        }
    }

    fn check_all(gpu: &Gpu, counts: &[u64]) {
        for &count in counts {
            check::<u32>(gpu, (0..count).map(|i| mix(i) as u32).collect());
            check::<u64>(gpu, (0..count).map(mix).collect());
            check::<u128>(gpu, (0..count).map(|i| u128::from(mix(i)) << 64 | u128::from(i)).collect());
        }
        // Equal keys, and the largest key, which also fills free slots.
        check::<u32>(gpu, vec![u32::MAX; 100]);
        check::<u64>(gpu, (0..100).map(|i| if i < 50 { 0 } else { u64::MAX }).collect());
    }

    fn check_refusals(gpu: &Gpu) {
        let stream = Stream::new(gpu).expect("a stream");
        let geometry =
            Geometry { keys: 100, key_bytes: 8, d_k: 4, d_l: 4, d_p: 4, padded: false, aligned: false };
        for geometry in [
            Geometry { key_bytes: 2, ..geometry },
            Geometry { d_l: 3, ..geometry },
            Geometry { keys: u64::MAX, ..geometry },
            Geometry { aligned: true, ..geometry },
        ] {
            let refused = ClassicBuilder::new(gpu, &geometry, ClassicForm::Grid);
            assert!(matches!(refused, Err(GpuError::Algorithm { .. })), "{geometry:?}");
        }
        let builder = ClassicBuilder::new(gpu, &geometry, ClassicForm::Paper).expect("sound");
        let room = |bytes: u64| DeviceBuffer::new(gpu, bytes).expect("allocates");
        let (column, tree) = (room(800), room(builder.bytes()));
        for (column, tree) in [(&column.part(0, 799), &tree), (&column, &tree.part(0, builder.bytes() - 1))] {
            assert!(matches!(builder.build(&stream, column, tree), Err(GpuError::Buffer { .. })));
        }
    }

    #[test]
    fn trees_are_those_of_the_cpu() {
        match Gpu::open(0) {
            Ok(gpu) => {
                check_all(&gpu, &[0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097, 100_000, 300_007]);
                check_refusals(&gpu);
            }
            Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[cfg(feature = "emulate")]
    #[test]
    fn trees_are_those_of_the_cpu_where_it_is_the_device() {
        for order in [crate::LaneOrder::Ascending, crate::LaneOrder::Descending, crate::LaneOrder::Random(5)]
        {
            match Gpu::emulated(
                order,
                crate::GpuOptions { memory_bytes: Some(1 << 30), ..crate::GpuOptions::default() },
            ) {
                Ok(gpu) => {
                    check_all(&gpu, &[0, 1, 2, 3, 15, 16, 17, 255, 257, 4096]);
                    check_refusals(&gpu);
                }
                Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
