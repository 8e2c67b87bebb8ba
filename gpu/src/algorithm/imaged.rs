//! The image of a table on the device: [`crate::image`] above the tuple lines.
//!
//! The image is made on the device, from the lines that are there. A kernel finds the bits that all borders
//! share, the host chooses the gap, then one launch makes the top, and one launch each a level of nodes.
//! A sample of lines then shows whether the image keeps the keys apart. If it does not, batches go through a
//! fine image ([`crate::fine`]), and the other one serves sweeps of batches that are out of order.
//!
//! A *mirrored* image is the one of the table read backwards, with inverted words. Where the other one leads to
//! the first line whose last key is not below a query, it leads to the last line whose first key is not above
//! it, which has the query's floor. Everything but the borders is the same.

use super::Algorithm;
use super::arguments::{Arguments, IMAGE_TEXT, IMAGE_THREADS};
use super::fine::{self as fine_image, FINE_IMAGE, Fine, fine_sample};
use crate::driver::LaunchShape;
use crate::fine::LOW_BITS;
use crate::image::{Gap, Levels, Lowest, NODE_BYTES, Shape, TOP_MAX, compact_bytes};
use crate::kernel::{Instance, Source, SourceSpec};
use crate::memory::DeviceBuffer;
use crate::resident::{Residence, Resident, grid};
use crate::{Gpu, GpuError, Stream};

/// Threads per block of the search, where shared memory allows.
pub(crate) const THREADS: u16 = 1024;
/// Threads per block where it does not.
pub(crate) const THREADS_SMALL: u16 = 512;
/// Bytes per tuple line; a block stages one per thread.
pub(crate) const LINE_BYTES: u32 = 64;
/// Maximum numbers of codes of the top, for blocks with more or less shared memory; with still fewer, images
/// get too many levels.
const TOPS: [usize; 4] = [TOP_MAX, (1 << 14) - 1, (1 << 13) - 1, (1 << 12) - 1];
/// Number of level 2 caches that the lines must exceed to be the first to leave the cache. On an H200 128 MiB
/// of lines, which fill 2.1, are searched at 36.1 G/s if they stay as long as nodes do, else at 33.6; 512 MiB
/// at 27.8 and 33.0.
const STREAMED_MIN: u64 = 3;
/// Short codes are used if they lead at most one query in this many to the line left of its own. With evenly
/// spread keys they lead one in 12 to 14 there; with some keys that come in runs, every other one.
const ASTRAY_PART: u64 = 8;
/// Lines that are looked up to see whether an image keeps keys apart.
const SAMPLE_LINES: u64 = 1 << 16;
/// Number of other lines looked at, for each that was looked up, from which on a table has a fine image.
const LOOKS_MAX: f64 = 0.02;
/// The same from which on codes of a fine image's lowest nodes are longer, of 16 and of 24 bits.
const FINE_LOOKS_MAX: [f64; 2] = [0.02, 0.2];
/// As the first of these, if longer codes fill more than half of the level 2 cache. On an H100 2^26 tuples of
/// 16 bytes are then searched at 18.1, 15.6 and 14.8 G/s by codes of 16, 24 and 32 bits that keep all keys
/// apart; 0.15 other lines leave 16.1 by the first.
const LARGE_LOOKS_MAX: f64 = 0.25;
crate::kernel! {
    /// The device image, from the tuple lines.
    IMAGE = SourceSpec {
        shared: &[IMAGE_TEXT],
        has_value_width: true,
        numbers: |_| vec![("BYTES_OF_SPINE", size_of::<Arguments>() as u64)],
        ..SourceSpec::new("image.cu", include_str!("../kernels/image.cu"))
    };
    /// Finds the bits that all borders share.
    image_bits(table: Arguments, bits: u64);
    /// Makes the top.
    image_top(table: Arguments);
    /// Makes the top's compact form.
    image_buckets(table: Arguments);
    /// Makes a level of nodes, after those above it.
    image_level(table: Arguments, level: u32, astray: u64);
    /// Looks lines up, and counts those that the image leads astray.
    image_sample(table: Arguments, count: u64, sums: u64);
}

/// A table's image.
#[derive(Debug)]
pub(crate) struct Imaged {
    /// The image that batches go through.
    pub(crate) arguments: Arguments,
    /// The one with short codes.
    pub(crate) even: Arguments,
    /// Form of the lowest nodes of the first.
    pub(crate) lowest: Lowest,
    /// Threads per block of a search.
    pub(crate) threads: u16,
    /// Shared memory per block of a search.
    pub(crate) shared_bytes: u32,
    /// Top, compact top and nodes, of a fine image too.
    image: Vec<DeviceBuffer>,
    _lines: DeviceBuffer,
}

/// Returns the threads per block, and the maximum number of codes of the top beside the lines that they
/// stage; `None` for a device whose blocks have too little shared memory.
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

/// Chooses the form of the lowest nodes of a table's image: short codes if they save a level, or if longer
/// ones would fill half of the level 2 cache. Where lines stay with the host, no query should look at a next
/// line in vain.
fn lowest(gpu: &Gpu, resident: &Resident, threads: u16, top_max: usize) -> Lowest {
    if resident.residence != Residence::Device || threads != THREADS {
        return Lowest::Codes16;
    }
    match gpu.options().lowest {
        Some(Lowest::Codes32) | None => {}
        Some(lowest) => return lowest,
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

/// Returns the low and the high half of a word.
fn halves(word: u128) -> [u64; 2] {
    [word as u64, (word >> 64) as u64]
}

impl Imaged {
    /// Builds the image of a table, and waits for it.
    pub(crate) fn new(stream: &Stream, resident: &Resident, is_mirrored: bool) -> Result<Self, GpuError> {
        let gpu = &resident.gpu;
        let Some((threads, top_max)) = room(gpu) else {
            let shared_max = gpu.limits().shared_bytes_max;
            return Err(Algorithm::Spine.refused(format!("a block shares {shared_max} bytes here")));
        };
        let (low, high) = resident.ends(is_mirrored);
        let make = |lowest| {
            let shape = Shape::new(lowest, resident.line_count, low, high, top_max)
                .ok_or_else(|| Algorithm::Spine.refused(format!("{} lines", resident.line_count)))?;
            make_image(stream, resident, shape, is_mirrored)
        };
        let mut lowest = lowest(gpu, resident, threads, top_max);
        let mut made = make(lowest)?;
        let is_uneven = made.astray > resident.line_count / ASTRAY_PART;
        if is_uneven && lowest == Lowest::Codes8 && gpu.options().lowest.is_none() {
            drop(made);
            lowest = Lowest::Codes16;
            made = make(lowest)?;
        }
        let Made { arguments: even, mut image, .. } = made;
        let mut arguments = even;
        if let Some(fine) = fine(stream, resident, threads, &even)? {
            lowest = Lowest::Codes32;
            arguments = fine.arguments;
            image.extend(fine.image);
        }
        let shared_bytes = u32::from(threads) * LINE_BYTES + arguments.compact_parts * 16;
        Ok(Self { arguments, even, lowest, threads, shared_bytes, image, _lines: resident.lines.clone() })
    }

    /// Returns the launch of a batch. A short batch is spread over as many blocks as run at a time; a thread
    /// loads at most 32 bytes of the top.
    pub(crate) fn shape(&self, queries: u64, blocks_max: u32) -> LaunchShape {
        let blocks = queries.div_ceil(32).clamp(1, blocks_max.into());
        let threads = queries.div_ceil(blocks).max(u64::from(self.arguments.compact_parts / 2));
        let threads = threads.next_multiple_of(32).min(self.threads.into());
        LaunchShape { blocks: blocks as u32, threads: threads as u32, shared_bytes: self.shared_bytes }
    }

    /// Returns the number of bytes of the image.
    pub(crate) fn bytes(&self) -> u64 {
        self.image.iter().map(DeviceBuffer::bytes).sum()
    }
}

/// Result of [`make_image`].
struct Made {
    arguments: Arguments,
    image: Vec<DeviceBuffer>,
    /// Number of lines whose queries are led left of them, in lowest nodes of short codes.
    astray: u64,
}

/// Makes the top, compact top and nodes of a table's lines, and the arguments that point to them. Waits for
/// them.
fn make_image(
    stream: &Stream,
    resident: &Resident,
    shape: Shape,
    is_mirrored: bool,
) -> Result<Made, GpuError> {
    let gpu = &resident.gpu;
    let instance = resident.instance(&IMAGE, 0);
    let launch = |entry, items| grid(gpu, instance, entry, IMAGE_THREADS, 0, items);
    let mut arguments = Arguments {
        lines: resident.lines.address(),
        tuples: resident.tuples,
        last_line: (resident.line_count - 1) as u32,
        is_mirrored: is_mirrored.into(),
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
    // Blocks load it 16 bytes at a time; the bytes after its last code are not used.
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
        // SAFETY: the lines belong to the table, top and nodes have the sizes of the shape; all live until
        // the stream was waited for.
        unsafe { make_levels(stream, instance, &arguments, &shape, &sum, launch) }
    });
    let mut counted = [0; 8];
    sum.copy_to_host(stream, &mut counted)?;
    queued?;
    Ok(Made { arguments, image, astray: u64::from_le_bytes(counted) / 256 })
}

/// Makes a table's fine image, if it is asked for, or if the other one leads too many queries astray. Codes of
/// its lowest nodes are the shortest ones that keep the keys apart.
fn fine(
    stream: &Stream,
    resident: &Resident,
    threads: u16,
    even: &Arguments,
) -> Result<Option<Fine>, GpuError> {
    let gpu = &resident.gpu;
    let options = gpu.options();
    let is_asked = options.lowest.map(|lowest| lowest == Lowest::Codes32);
    if threads != THREADS || is_asked == Some(false) {
        return Ok(None);
    }
    if is_asked.is_none() && looks(stream, resident, even)? <= LOOKS_MAX {
        return Ok(None);
    }
    let shared_bytes = gpu.limits().shared_bytes_max as usize - usize::from(threads) * LINE_BYTES as usize;
    let ends = resident.ends(even.is_mirrored != 0);
    let shape = |low_bits| fine_image::shape(resident, ends, low_bits, shared_bytes, options.top_max);
    let is_large = shape(LOW_BITS[1]).is_some_and(|shape| shape.nodes_bytes() > gpu.device().l2_bytes / 2);
    let most = |low_bits| match low_bits {
        16 if is_large => LARGE_LOOKS_MAX,
        16 => FINE_LOOKS_MAX[0],
        24 => FINE_LOOKS_MAX[1],
        _ => f64::INFINITY,
    };
    let asked = options.fine_bits;
    let mut made = None;
    for low_bits in LOW_BITS.into_iter().filter(|&bits| asked.is_none_or(|asked| asked == bits)) {
        let Some(shape) = shape(low_bits) else { break };
        drop(made.take());
        let fine = Fine::new(stream, resident, &shape, even)?;
        let found = looks(stream, resident, &fine.arguments)?;
        made = Some(fine);
        if found <= most(low_bits) {
            break;
        }
    }
    Ok(made)
}

/// Returns how many other lines are looked at until a line is found that is there, on average.
pub(crate) fn looks(stream: &Stream, resident: &Resident, arguments: &Arguments) -> Result<f64, GpuError> {
    let gpu = &resident.gpu;
    let count = SAMPLE_LINES.min(arguments.last_line.into());
    let sums = DeviceBuffer::new(gpu, 16)?;
    sums.fill(stream, 0)?;
    let is_fine = arguments.group_children > 0;
    let source: Source = if is_fine { &FINE_IMAGE } else { &IMAGE };
    let entry = if is_fine { "fine_sample" } else { "image_sample" };
    let instance = resident.instance(source, 0);
    let queued = grid(gpu, instance, entry, IMAGE_THREADS, 0, count).and_then(|blocks| {
        // SAFETY: the lines and the image belong to the table, and there are two sums; all live until the
        // stream was waited for.
        unsafe {
            match is_fine {
                true => fine_sample(stream, instance, blocks, arguments, &count, &sums.address()),
                false => image_sample(stream, instance, blocks, arguments, &count, &sums.address()),
            }
        }
    });
    let mut host = [0; 16];
    sums.copy_to_host(stream, &mut host)?;
    queued?;
    let others = u64::from_le_bytes(std::array::from_fn(|at| host[8 + at]));
    Ok(others as f64 / count.max(1) as f64)
}

/// Returns the bits that some border has, and those that all have.
fn border_bits(
    stream: &Stream,
    resident: &Resident,
    arguments: &Arguments,
) -> Result<(u128, u128), GpuError> {
    let gpu = &resident.gpu;
    let instance = resident.instance(&IMAGE, 0);
    let word_bytes = usize::from(resident.word_bytes);
    let shape = grid(gpu, instance, "image_bits", IMAGE_THREADS, 0, resident.line_count)?;
    let bits = DeviceBuffer::new(gpu, 2 * word_bytes as u64)?;
    let queued = bits.fill(stream, 0).and_then(|()| {
        // SAFETY: the lines belong to the table, `bits` has two words; both live until the stream was waited
        // for.
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
/// `arguments` must point to lines, top and nodes of that shape, which stay alive until the work is done.
unsafe fn make_levels(
    stream: &Stream,
    instance: Instance,
    arguments: &Arguments,
    shape: &Shape,
    astray: &DeviceBuffer,
    launch: impl Fn(&'static str, u64) -> Result<LaunchShape, GpuError>,
) -> Result<(), GpuError> {
    // SAFETY: the caller guarantees the memory that `arguments` point to.
    unsafe { image_top(stream, instance, launch("image_top", shape.top())?, arguments) }?;
    let items = shape.top().max(1 << shape.bucket_bits);
    // SAFETY: the caller guarantees the memory that `arguments` point to; the top was made by the launch
    // before.
    unsafe { image_buckets(stream, instance, launch("image_buckets", items)?, arguments) }?;
    for level in (0..shape.levels).rev() {
        let blocks = launch("image_level", shape.nodes(level))?;
        // SAFETY: the caller guarantees the memory that `arguments` point to; the levels above were made by
        // launches before.
        unsafe { image_level(stream, instance, blocks, arguments, &(level as u32), &astray.address()) }?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use pleach::{Index, Key, Value};
    use pleach_builder::{BuildOptions, build_slice};
    use pleach_format::LineGeometry;
    use pleach_format::key::Word;

    /// Compares the top and nodes made by the device with those of the scalar builder, byte for byte.
    fn check<K: Key, V: Value>(gpu: &Gpu, tuples: Vec<(K, V)>, residence: Residence, top_max: usize) {
        for is_mirrored in [false, true] {
            check_one(gpu, tuples.clone(), residence, top_max, is_mirrored);
        }
    }

    fn check_one<K: Key, V: Value>(
        gpu: &Gpu,
        mut tuples: Vec<(K, V)>,
        residence: Residence,
        top_max: usize,
        is_mirrored: bool,
    ) {
        tuples.sort_by_key(|tuple| tuple.0.encode());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table.pleach");
        build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
        let index = Index::open(&path).expect("opens");
        let stream = Stream::new(gpu).expect("a stream");
        let resident = Resident::new(&index, &stream, residence).expect("fits").expect("there are tuples");
        let lowest = if top_max.is_multiple_of(2) { Lowest::Codes8 } else { Lowest::Codes16 };
        let (low, high) = resident.ends(is_mirrored);
        let shape = Shape::new(lowest, resident.line_count, low, high, top_max).expect("fits");
        let name = if is_mirrored { "mirrored" } else { "image" };
        let what = format!("{name}: {} tuples of {}, {residence:?}, top of {top_max}", tuples.len(), K::TYPE);
        let Made { arguments, image, .. } = make_image(&stream, &resident, shape, is_mirrored).expect("made");

        let line =
            LineGeometry::new(resident.word_bytes.into(), resident.value_bytes.into()).tuples_per_line();
        let word = |tuple: &(K, V)| tuple.0.encode().to_u128();
        let all = u128::MAX >> (128 - 8 * u32::from(resident.word_bytes));
        // The edges of lines: their last words, or their first ones, inverted, from the last line to the first.
        let lasts: Vec<u128> = match is_mirrored {
            false => tuples.chunks(line).map(|line| word(&line[line.len() - 1])).collect(),
            true => tuples.chunks(line).rev().map(|line| all ^ word(&line[0])).collect(),
        };
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

        let children_max = if top_max % 2 == 1 { 1 } else { 3 };
        let lines = resident.line_count;
        for low_bits in LOW_BITS {
            let shape = crate::fine::Shape::new(low_bits, lines, low, high, children_max).expect("fits");
            let shape = shape.with_gap(Image::gap(&lasts));
            let scalar = crate::fine::Fine::of(shape, &lasts);
            let fine = Fine::new(&stream, &resident, &shape, &arguments).expect("made");
            let top = scalar.top(resident.word_bytes.into());
            assert!(read(&fine.image[0], top.len()) == top, "{what}: fine top");
            for level in 0..shape.levels {
                let bytes = scalar.level(level);
                let found = read(&fine.image[level + 1], bytes.len());
                assert!(found == bytes, "{what}: fine level {level}, codes of {low_bits} bits");
            }
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
    fn images_are_those_of_the_scalar_builder_where_a_cpu_is_the_device() {
        use crate::{GpuOptions, LaneOrder};
        match Gpu::emulated(LaneOrder::Random(3), GpuOptions::default()) {
            Ok(gpu) => check_all(&gpu, &[1, 2, 3, 9, 65, 1000, 5000]),
            Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
            Err(error) => panic!("{error}"),
        }
    }
}
