//! Search through the device image: [`crate::image`] above the tuple lines.
//!
//! The image is made on the device, from the lines as they lie there: a kernel finds the bits that all borders share,
//! the host chooses the gap, then one launch makes the top and one each level of nodes. A search is one launch of
//! blocks that have their multiprocessor to themselves, each with the top. A batch that is too short for all of them is
//! spread by warps; one of a few queries a multiprocessor has a warp for each, which saves waits and loads more for it.

use super::auto::AnyOrder;
use super::sweep::DESCENTS_MAX;
use super::{Algorithm, Search};
use crate::driver::LaunchShape;
use crate::image::{Gap, LEVELS_MAX, Lowest, NODE_BYTES, Shape, TOP_MAX, compact_bytes};
use crate::kernel::Instance;
use crate::kernel::table::{
    Batch, Source, THREADS, THREADS_SMALL, image_bits, image_buckets, image_level, image_top, spine_few,
    spine_ranks, spine_values,
};
use crate::memory::DeviceBuffer;
use crate::resident::{Residence, Resident, grid};
use crate::{Gpu, GpuError, Stream};

/// Bytes of a tuple line, of which a block stages one a thread.
const LINE_BYTES: u32 = 64;
/// Most codes of the top, for blocks that share more or less; with still fewer, images get too many levels.
const TOPS: [usize; 4] = [TOP_MAX, (1 << 14) - 1, (1 << 13) - 1, (1 << 12) - 1];
/// Level 2 caches that lines fill at the least if they leave it first. On an H200 128 MiB of lines, which fill 2.1, are
/// searched at 36.1 G/s if they stay as long as nodes do, else at 33.6; 512 MiB at 27.8 and 33.0.
const STREAMED_MIN: u64 = 3;
/// Short codes serve if they lead at most one query in so many to the line left of its own. Of evenly spread keys they
/// lead one in 12 to 14 there; of some that come in runs, every other one.
const ASTRAY_PART: u64 = 8;
/// Threads of a block that makes an image.
const IMAGE_THREADS: u32 = 256;
/// Queries that a block answers at a time where each has a warp, as in spine.cu.
const GROUP: u64 = 8;
/// Threads of such a block.
const FEW_THREADS: u32 = GROUP as u32 * 32;

/// What the kernels get to know of a table; the same as in spine.cu and image.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Arguments {
    pub(crate) lines: u64,
    pub(crate) nodes: [u64; LEVELS_MAX],
    pub(crate) top: u64,
    pub(crate) compact: u64,
    /// Smallest and largest word without the gap, low half first.
    pub(crate) low: [u64; 2],
    pub(crate) high: [u64; 2],
    pub(crate) gap_value: [u64; 2],
    pub(crate) tuples: u64,
    pub(crate) last_line: u32,
    pub(crate) top_count: u32,
    pub(crate) levels: u32,
    pub(crate) top_shift: u32,
    /// Of 16 bytes, of the compact top.
    pub(crate) compact_parts: u32,
    pub(crate) bucket_bits: u32,
    pub(crate) bucket_shift: u32,
    /// Bits of a code of level 0.
    pub(crate) low_bits: u32,
    pub(crate) gap_at: u32,
    pub(crate) gap_bits: u32,
    /// Address of a sample of the batch's order; 0 if the search does not depend on one.
    pub(crate) order: u64,
    /// Descents up to which a batch ascends.
    pub(crate) descents_max: u32,
    /// Whether lines are many more than the level 2 cache has room for.
    pub(crate) streams_lines: u32,
}

impl Arguments {
    /// The same for a batch that is left to a sweep if the sample at address `order` says that it ascends.
    pub(crate) fn unless(self, order: u64) -> Self {
        Self { order, descents_max: DESCENTS_MAX, ..self }
    }
}

/// A table with its image.
#[derive(Debug)]
pub(crate) struct Spine {
    arguments: Arguments,
    instance: Instance,
    blocks_max: u32,
    /// Queries of the longest batch that has a warp for each.
    few_max: u64,
    /// Shared memory of a block, and of one of a short batch.
    shared_bytes: u32,
    few_shared_bytes: u32,
    /// Top, compact top and nodes.
    image: Vec<DeviceBuffer>,
    _lines: DeviceBuffer,
}

/// Threads of a block, and most codes of the top beside the lines that they stage; `None` for a device whose blocks
/// share too little.
fn room(gpu: &Gpu) -> Option<(u16, usize)> {
    let shared_max = gpu.limits().shared_bytes_max as usize;
    let fits = |threads: u16, codes| {
        usize::from(threads) * LINE_BYTES as usize + compact_bytes(codes) + 16 <= shared_max
    };
    let (threads, codes) = [THREADS, THREADS_SMALL]
        .iter()
        .find_map(|&threads| Some((threads, *TOPS.iter().find(|&&codes| fits(threads, codes))?)))?;
    Some((threads, gpu.options().top_max.map_or(codes, |wanted| wanted.clamp(1, codes))))
}

/// What the lowest nodes of a table's image are made of: short codes if they save a level, or if longer ones would fill
/// half of the level 2 cache. Where lines stay with the host no query should look at a next one in vain.
fn lowest(gpu: &Gpu, resident: &Resident, threads: u16, top_max: usize) -> Lowest {
    if resident.residence != Residence::Device || threads != THREADS {
        return Lowest::Codes16;
    }
    if let Some(lowest) = gpu.options().lowest {
        return lowest;
    }
    let shape = |lowest| Shape::new(lowest, resident.line_count, 0u64, 0u64, top_max);
    match (shape(Lowest::Codes16), shape(Lowest::Codes8)) {
        (Some(long), Some(short))
            if short.levels < long.levels || long.bytes() > gpu.device().l2_bytes / 2 =>
        {
            Lowest::Codes8
        }
        _ => Lowest::Codes16,
    }
}

/// Low and high half of a word.
fn halves(word: u128) -> [u64; 2] {
    [word as u64, (word >> 64) as u64]
}

impl Spine {
    /// Makes the image of a table. Waits for it.
    pub(crate) fn new(stream: &Stream, resident: &Resident) -> Result<Self, GpuError> {
        let gpu = &resident.gpu;
        let Some((threads, top_max)) = room(gpu) else {
            let shared_max = gpu.limits().shared_bytes_max;
            return Err(Algorithm::Spine.refused(format!("a block shares {shared_max} bytes here")));
        };
        let make = |lowest| {
            let shape = Shape::new(lowest, resident.line_count, resident.low, resident.high, top_max)
                .ok_or_else(|| Algorithm::Spine.refused(format!("{} lines", resident.line_count)))?;
            make_image(stream, resident, shape)
        };
        let mut lowest = lowest(gpu, resident, threads, top_max);
        let mut made = make(lowest)?;
        let is_uneven = made.astray > resident.line_count / ASTRAY_PART;
        if is_uneven && lowest == Lowest::Codes8 && gpu.options().lowest.is_none() {
            drop(made);
            lowest = Lowest::Codes16;
            made = make(lowest)?;
        }
        let Made { arguments, image, .. } = made;
        let instance = Instance { lowest, ..resident.instance(Source::Spine, threads) };
        let shared_bytes = u32::from(threads) * LINE_BYTES + arguments.compact_parts * 16;
        let few_shared_bytes = few_bytes(lowest);
        let mut blocks_max = u32::MAX;
        for &entry in Source::Spine.entries(instance) {
            if matches!(entry, "spine_values" | "spine_ranks" | "hybrid_lines") {
                blocks_max =
                    blocks_max.min(gpu.blocks_at_once(instance, entry, threads.into(), shared_bytes)?);
            }
        }
        let few_blocks = gpu.blocks_at_once(instance, "spine_few", FEW_THREADS, few_shared_bytes)?;
        // Each loads a node's lines, which over the link pays for fewer.
        let few_max = match resident.residence {
            Residence::Pinned | Residence::Hybrid => 32,
            _ => u64::from(few_blocks) * GROUP,
        };
        let _lines = resident.lines.clone();
        Ok(Self { arguments, instance, blocks_max, few_max, shared_bytes, few_shared_bytes, image, _lines })
    }

    /// The instance of its kernels.
    pub(crate) fn instance(&self) -> Instance {
        self.instance
    }

    /// What its kernels take.
    pub(crate) fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// A short batch is spread over as many blocks as run at a time; a thread loads at most 32 bytes of the top.
    pub(crate) fn shape(&self, queries: u64) -> LaunchShape {
        let blocks = queries.div_ceil(32).clamp(1, self.blocks_max.into());
        let threads = queries.div_ceil(blocks).max(u64::from(self.arguments.compact_parts / 2));
        let threads = threads.next_multiple_of(32).min(self.instance.option.into());
        LaunchShape { blocks: blocks as u32, threads: threads as u32, shared_bytes: self.shared_bytes }
    }

    /// The launch of a batch with a warp a query: there are blocks for all of its bitmap.
    fn few_shape(&self, queries: u64) -> LaunchShape {
        let blocks = queries.next_multiple_of(32) / GROUP;
        LaunchShape { blocks: blocks as u32, threads: FEW_THREADS, shared_bytes: self.few_shared_bytes }
    }
}

/// Shared memory of a short batch's queries, with their lines and answers; the same as in spine.cu.
pub(crate) const fn few_bytes(lowest: Lowest) -> u32 {
    GROUP as u32 * (lowest.fanout(0) as u32 * LINE_BYTES + 64 + 16)
}

/// What [`make_image`] made.
struct Made {
    arguments: Arguments,
    image: Vec<DeviceBuffer>,
    /// Lines that queries are led left of, in lowest nodes of short codes.
    astray: u64,
}

/// Top, compact top and nodes of a table's lines, and what points to them. Waits for them.
fn make_image(stream: &Stream, resident: &Resident, shape: Shape) -> Result<Made, GpuError> {
    let gpu = &resident.gpu;
    let instance = resident.instance(Source::Image, 0);
    let launch = |entry, items| grid(gpu, instance, entry, IMAGE_THREADS, 0, items);
    let mut arguments = Arguments {
        lines: resident.lines.address(),
        tuples: resident.tuples,
        last_line: (resident.line_count - 1) as u32,
        ..Arguments::default()
    };

    let (any, all) = border_bits(stream, resident, &arguments)?;
    let shape = shape.with_gap(Gap::widest(any, all));
    if let Some(gap) = shape.gap {
        (arguments.gap_at, arguments.gap_bits) = (gap.at, gap.bits);
        arguments.gap_value = halves(gap.value);
    }
    (arguments.low, arguments.high) = (halves(shape.close(shape.low)), halves(shape.close(shape.high)));
    (arguments.levels, arguments.top_shift) = (shape.levels as u32, shape.top_shift());
    (arguments.bucket_bits, arguments.bucket_shift) = (shape.bucket_bits, shape.bucket_shift());
    arguments.low_bits = shape.lowest.code_bits(0);

    arguments.streams_lines = (resident.lines.bytes() > STREAMED_MIN * gpu.device().l2_bytes).into();

    let top = resident.buffer((shape.top() * 4).max(4))?;
    (arguments.top, arguments.top_count) = (top.address(), shape.top() as u32);
    // Blocks load it 16 bytes at a time; what is behind its last code is not looked at.
    let compact = resident.buffer(shape.compact_bytes())?;
    (arguments.compact, arguments.compact_parts) = (compact.address(), (shape.compact_bytes() / 16) as u32);
    let mut image = vec![top, compact];
    for (level, address) in arguments.nodes.iter_mut().enumerate().take(shape.levels) {
        let nodes = resident.buffer(shape.nodes(level) * NODE_BYTES as u64)?;
        *address = nodes.address();
        image.push(nodes);
    }
    let sum = DeviceBuffer::new(gpu, 8)?;
    let queued = image[1].fill(stream, 0).and_then(|()| sum.fill(stream, 0)).and_then(|()| {
        // SAFETY: the lines are the table's, top and nodes are as many as the shape says for them; all live until the
        // stream was waited for.
        unsafe { make_levels(stream, instance, &arguments, &shape, &sum, launch) }
    });
    let mut counted = [0; 8];
    sum.copy_to_host(stream, &mut counted)?;
    queued?;
    Ok(Made { arguments, image, astray: u64::from_le_bytes(counted) / 256 })
}

/// The bits that some border has, and those that all have.
fn border_bits(
    stream: &Stream,
    resident: &Resident,
    arguments: &Arguments,
) -> Result<(u128, u128), GpuError> {
    let gpu = &resident.gpu;
    let instance = resident.instance(Source::Image, 0);
    let word_bytes = usize::from(resident.word_bytes);
    let shape = grid(gpu, instance, "image_bits", IMAGE_THREADS, 0, resident.line_count)?;
    let bits = DeviceBuffer::new(gpu, 2 * word_bytes as u64)?;
    let queued = bits.fill(stream, 0).and_then(|()| {
        // SAFETY: the lines are the table's, `bits` has two words; both live until the stream was waited for.
        unsafe { image_bits(stream, instance, shape, arguments, &bits.address()) }
    });
    let mut host = [0; 32];
    bits.copy_to_host(stream, &mut host[..2 * word_bytes])?;
    queued?;
    let word = |from: usize| {
        let bytes = &host[from..from + word_bytes];
        bytes.iter().rev().fold(0u128, |word, &byte| word << 8 | u128::from(byte))
    };
    // The second word has the bits that some border lacks.
    Ok((word(0), !word(word_bytes)))
}

/// Queues making the top, its compact form, then the nodes, the last level first.
///
/// # Safety
/// `arguments` point to lines, top and nodes of that shape, which live until the work is done.
unsafe fn make_levels(
    stream: &Stream,
    instance: Instance,
    arguments: &Arguments,
    shape: &Shape,
    astray: &DeviceBuffer,
    launch: impl Fn(&'static str, u64) -> Result<LaunchShape, GpuError>,
) -> Result<(), GpuError> {
    // SAFETY: the caller's promise.
    unsafe { image_top(stream, instance, launch("image_top", shape.top())?, arguments) }?;
    let items = shape.top().max(1 << shape.bucket_bits);
    // SAFETY: the caller's promise; the top is made.
    unsafe { image_buckets(stream, instance, launch("image_buckets", items)?, arguments) }?;
    for level in (0..shape.levels).rev() {
        let blocks = launch("image_level", shape.nodes(level))?;
        // SAFETY: the caller's promise; the levels above are made.
        unsafe { image_level(stream, instance, blocks, arguments, &(level as u32), &astray.address()) }?;
    }
    Ok(())
}

impl AnyOrder for Spine {
    unsafe fn search_unless(&self, stream: &Stream, batch: &Batch, order: u64) -> Result<(), GpuError> {
        let shape = self.shape(batch.count);
        let arguments = self.arguments.unless(order);
        if batch.ranks == 0 {
            // SAFETY: the caller's promise; lines and image are owned here.
            unsafe { spine_values(stream, self.instance, shape, &arguments, batch) }
        } else {
            // SAFETY: as above.
            unsafe { spine_ranks(stream, self.instance, shape, &arguments, batch) }
        }
    }
}

impl Search for Spine {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        if batch.count <= self.few_max {
            // SAFETY: the caller's promise; lines and image are owned here.
            return unsafe {
                spine_few(stream, self.instance, self.few_shape(batch.count), &self.arguments, batch)
            };
        }
        // SAFETY: as above.
        unsafe { self.search_unless(stream, batch, 0) }
    }

    fn bytes(&self) -> u64 {
        self.image.iter().map(DeviceBuffer::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use pleach::{Index, Key, Value};
    use pleach_builder::{BuildOptions, build_slice};
    use pleach_format::LineGeometry;
    use pleach_format::key::Word;

    /// Compares top and nodes that the device makes with those of the scalar builder, byte for byte.
    fn check<K: Key, V: Value>(gpu: &Gpu, mut tuples: Vec<(K, V)>, residence: Residence, top_max: usize) {
        tuples.sort_by_key(|tuple| tuple.0.encode());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table.pleach");
        build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
        let index = Index::open(&path).expect("opens");
        let stream = Stream::new(gpu).expect("a stream");
        let resident = Resident::new(&index, &stream, residence).expect("fits").expect("there are tuples");
        let lowest = if top_max.is_multiple_of(2) { Lowest::Codes8 } else { Lowest::Codes16 };
        let shape =
            Shape::new(lowest, resident.line_count, resident.low, resident.high, top_max).expect("fits");
        let what = format!("{} tuples of {}, {residence:?}, top of {top_max}", tuples.len(), K::TYPE);
        let Made { arguments, image, .. } = make_image(&stream, &resident, shape).expect("made");

        let line =
            LineGeometry::new(resident.word_bytes.into(), resident.value_bytes.into()).tuples_per_line();
        let lasts: Vec<u128> =
            tuples.chunks(line).map(|line| line[line.len() - 1].0.encode().to_u128()).collect();
        let scalar = Image::of(shape.with_gap(Image::gap(&lasts)), &lasts);
        let read = |buffer: &DeviceBuffer, bytes: usize| {
            let mut found = vec![0; bytes];
            buffer.copy_to_host(&stream, &mut found).expect("copied");
            found
        };
        let top: Vec<u8> = scalar.top.iter().flat_map(|code| code.to_le_bytes()).collect();
        assert!(read(&image[0], top.len()) == top, "{what}: top");
        let compact = scalar.compact();
        assert!(read(&image[1], compact.len()) == compact, "{what}: compact top");
        assert_eq!(
            (arguments.levels as usize, arguments.top_count as usize),
            (scalar.nodes.len(), scalar.top.len())
        );
        for (level, nodes) in scalar.nodes.iter().enumerate() {
            let bytes = nodes.concat();
            assert!(read(&image[level + 2], bytes.len()) == bytes, "{what}: level {level}");
        }
    }

    fn check_all(gpu: &Gpu, counts: &[u64]) {
        let mix = |i: u64| {
            (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23).wrapping_mul(0xBF58_476D_1CE4_E5B9)
        };
        for &count in counts {
            for residence in [Residence::Device, Residence::Hybrid] {
                let all = 0..count;
                check(gpu, all.clone().map(|i| (mix(i), i)).collect(), residence, 4);
                check(gpu, all.clone().map(|i| (mix(i / 9) as u32, i as u32)).collect(), residence, 100);
                check(gpu, all.clone().map(|i| (((i / 64) << 40) | (i % 64), ())).collect(), residence, 7);
                check(gpu, all.clone().map(|i| (u128::from(mix(i)) << 33, ())).collect(), residence, 1);
                check(gpu, all.map(|i| (mix(i) as u32, i)).collect(), residence, TOP_MAX);
            }
        }
    }

    #[test]
    fn images_are_those_of_the_scalar_builder() {
        match Gpu::open(0) {
            Ok(gpu) => check_all(&gpu, &[1, 2, 3, 9, 65, 1000, 100_000]),
            Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[cfg(feature = "emulate")]
    #[test]
    fn short_codes_serve_keys_that_are_spread_evenly() {
        use crate::{GpuOptions, LaneOrder};
        let options = GpuOptions { top_max: Some(10), ..GpuOptions::default() };
        let gpu = match Gpu::emulated(LaneOrder::Ascending, options) {
            Ok(gpu) => gpu,
            Err(GpuError::Unavailable(missing)) => return eprintln!("SKIPPED: {missing}"),
            Err(error) => panic!("{error}"),
        };
        // 300 lines, for which short codes save a level; in runs of 64 they lead every other query astray.
        let even = |i: u32| i * 1_000_003;
        let in_runs = |i: u32| ((i / 64) << 8) | (i % 64);
        for (key, lowest) in [(even as fn(u32) -> u32, Lowest::Codes8), (in_runs, Lowest::Codes16)] {
            let tuples: Vec<(u32, u32)> = (0..2400).map(|i| (key(i), i)).collect();
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("table.pleach");
            build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
            let index = Index::open(&path).expect("opens");
            let stream = Stream::new(&gpu).expect("a stream");
            let resident =
                Resident::new(&index, &stream, Residence::Device).expect("fits").expect("there are tuples");
            assert_eq!(Spine::new(&stream, &resident).expect("made").instance().lowest, lowest);
        }
    }

    #[cfg(feature = "emulate")]
    #[test]
    fn images_are_those_of_the_scalar_builder_where_a_cpu_is_the_device() {
        use crate::{GpuOptions, LaneOrder};
        match Gpu::emulated(LaneOrder::Random(3), GpuOptions::default()) {
            Ok(gpu) => check_all(&gpu, &[1, 2, 3, 9, 65, 1000, 5000]),
            Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
            Err(error) => panic!("{error}"),
        }
    }
}
