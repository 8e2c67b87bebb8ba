//! Search through the device image ([`super::imaged`]).
//!
//! A search is one launch of blocks that have their multiprocessor to themselves, each with a copy of the
//! top. A batch that is too short for all of them is spread by warps. A batch of a few queries per
//! multiprocessor has a warp for each query, which waits less but loads more.

use super::arguments::{Arguments, IMAGE_TEXT};
use super::fine::{self as fine_image, FINE_TEXT};
use super::imaged::{Imaged, LINE_BYTES, THREADS, THREADS_SMALL};
use super::order::AnyOrder;
use super::search::Search;
use crate::driver::LaunchShape;
use crate::image::Lowest;
use crate::kernel::{Batch, Instance, SourceSpec, Text};
use crate::resident::{Residence, Resident};
use crate::{GpuError, Stream};
use std::sync::Arc;

/// Queries that a block answers at a time if each has a warp, as in spine.cu.
const GROUP: u64 = 8;
/// Threads per such block.
const FEW_THREADS: u32 = GROUP as u32 * 32;

/// Text that the kernels share which descend the image; [`numbers`] belong to it.
pub(crate) const SPINE_TEXT: Text = Text { name: "spine.cuh", text: include_str!("../kernels/spine.cuh") };

/// Definitions of the texts of the image and of its descent, for the form of an instance's lowest nodes.
pub(crate) fn numbers(instance: Instance) -> impl Iterator<Item = (&'static str, u64)> {
    let own = [
        ("BYTES_OF_SPINE", size_of::<Arguments>() as u64),
        ("BYTES_OF_FEW", few_bytes(instance.lowest).into()),
        ("BYTES_OF_PART", size_of::<Part>() as u64),
        ("LOW_BITS", instance.lowest.code_bits(0).into()),
    ];
    own.into_iter().chain(fine_image::NUMBERS)
}

/// Returns true if there are kernels that descend the image for such an instance: devices with little shared memory per
/// block have no large tables.
pub(crate) fn descends(instance: Instance) -> bool {
    instance.lowest == Lowest::Codes16 || instance.option == THREADS
}

crate::kernel! {
    /// Look-ups through the device image.
    SPINE = SourceSpec {
        shared: &[IMAGE_TEXT, FINE_TEXT, SPINE_TEXT],
        option_name: Some("THREADS"),
        options: &[THREADS, THREADS_SMALL],
        has_value_width: true,
        exists: descends,
        numbers: |instance| numbers(instance).collect(),
        ..SourceSpec::new("spine.cu", include_str!("../kernels/spine.cu"))
    };
    /// Values and presence through the device image.
    spine_values(table: Arguments, batch: Batch);
    /// Ranks through the device image.
    spine_ranks(table: Arguments, batch: Batch);
    /// All answers of short batches through the device image.
    spine_few(table: Arguments, batch: Batch) if |of| of.lowest != Lowest::Codes32;
    /// Writes down the line of each query.
    hybrid_lines(table: Arguments, batch: Batch, part: Part) if |of| of.lowest != Lowest::Codes8;
    /// Copies the touched pieces of a part of the lines.
    hybrid_fetch(table: Arguments, part: Part) if |of| of.lowest != Lowest::Codes8;
    /// Answers the queries whose lines are in a part.
    hybrid_answer(table: Arguments, batch: Batch, part: Part) if |of| of.lowest != Lowest::Codes8;
}

/// Arguments of a streamed search's kernels, in addition to the image and the batch; the same as in spine.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Part {
    /// Address of the line of each query.
    pub(crate) numbers: u64,
    /// Address of a byte per piece.
    pub(crate) touched: u64,
    /// Address of the part on the device.
    pub(crate) lines: u64,
    /// First line of the part, a multiple of a piece's lines.
    pub(crate) first: u64,
    /// Number of lines of the part.
    pub(crate) count: u64,
}

/// A table with its image.
#[derive(Debug)]
pub(crate) struct Spine {
    image: Arc<Imaged>,
    instance: Instance,
    blocks_max: u32,
    /// Number of queries of the longest batch that has a warp for each.
    few_max: u64,
}

impl Spine {
    /// Creates the search through an image.
    pub(crate) fn new(resident: &Resident, image: Arc<Imaged>) -> Result<Self, GpuError> {
        let gpu = &resident.gpu;
        let instance = Instance { lowest: image.lowest, ..resident.instance(&SPINE, image.threads) };
        let (mut blocks_max, mut few_max) = (u32::MAX, 0);
        for entry in SPINE.entries(instance) {
            if matches!(entry, "spine_values" | "spine_ranks" | "hybrid_lines") {
                let (threads, shared_bytes) = (image.threads.into(), image.shared_bytes);
                blocks_max = blocks_max.min(gpu.blocks_at_once(instance, entry, threads, shared_bytes)?);
            }
            if entry == "spine_few" {
                few_max = self::few_max(resident, instance, entry)?;
            }
        }
        Ok(Self { image, instance, blocks_max, few_max })
    }

    /// Returns the instance of the kernels.
    pub(crate) fn instance(&self) -> Instance {
        self.instance
    }

    /// Returns the image.
    pub(crate) fn image(&self) -> &Arc<Imaged> {
        &self.image
    }

    /// Returns the arguments of the kernels.
    pub(crate) fn arguments(&self) -> &Arguments {
        &self.image.arguments
    }

    /// Returns the launch of a batch.
    pub(crate) fn shape(&self, queries: u64) -> LaunchShape {
        self.image.shape(queries, self.blocks_max)
    }
}

/// Returns the number of queries of the longest batch that has a warp for each, by a kernel that answers such.
pub(crate) fn few_max(resident: &Resident, instance: Instance, entry: &'static str) -> Result<u64, GpuError> {
    let shared_bytes = few_bytes(instance.lowest);
    let blocks = resident.gpu.blocks_at_once(instance, entry, FEW_THREADS, shared_bytes)?;
    // Each of them loads a node's lines, which over the link pays for fewer queries.
    Ok(match resident.residence {
        Residence::Pinned | Residence::Hybrid => 32,
        _ => u64::from(blocks) * GROUP,
    })
}

/// Returns the launch of a batch with a warp per query: its blocks cover the whole presence bitmap.
pub(crate) fn few_shape(instance: Instance, queries: u64) -> LaunchShape {
    let blocks = queries.next_multiple_of(32) / GROUP;
    LaunchShape { blocks: blocks as u32, threads: FEW_THREADS, shared_bytes: few_bytes(instance.lowest) }
}

/// Returns the shared memory for a short batch's queries, with their lines and answers; the same as in
/// spine.cu.
pub(crate) const fn few_bytes(lowest: Lowest) -> u32 {
    GROUP as u32 * (lowest.fanout(0) as u32 * LINE_BYTES + 64 + 16)
}

impl AnyOrder for Spine {
    unsafe fn search_unless(&self, stream: &Stream, batch: &Batch, order: u64) -> Result<(), GpuError> {
        let shape = self.shape(batch.count);
        let arguments = self.arguments().unless(order);
        if batch.ranks == 0 {
            // SAFETY: the caller guarantees the batch and its buffers; `self` owns lines and image.
            unsafe { spine_values(stream, self.instance, shape, &arguments, batch) }
        } else {
            // SAFETY: the caller guarantees the batch and its buffers; `self` owns lines and image.
            unsafe { spine_ranks(stream, self.instance, shape, &arguments, batch) }
        }
    }
}

impl Search for Spine {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        if batch.count <= self.few_max {
            // SAFETY: the caller guarantees the batch and its buffers; `self` owns lines and image.
            return unsafe {
                let shape = few_shape(self.instance, batch.count);
                spine_few(stream, self.instance, shape, self.arguments(), batch)
            };
        }
        // SAFETY: the caller guarantees the batch and its buffers; there is no sample.
        unsafe { self.search_unless(stream, batch, 0) }
    }

    fn writes_bytes(&self, count: u64) -> bool {
        count > self.few_max && self.instance.word_bytes <= 8
    }

    fn bytes(&self) -> u64 {
        self.image.bytes()
    }
}

#[cfg(all(test, feature = "emulate"))]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm;
    use crate::algorithm::imaged::looks;
    use crate::{Gpu, GpuOptions, GpuTable, LaneOrder};
    use pleach::Index;
    use pleach_builder::{BuildOptions, build_slice};

    fn spine(stream: &Stream, resident: &Resident) -> Spine {
        let image = Imaged::new(stream, resident, false).expect("made");
        Spine::new(resident, Arc::new(image)).expect("made")
    }

    #[test]
    fn short_codes_serve_keys_that_are_spread_evenly() {
        let options = GpuOptions { top_max: Some(10), ..GpuOptions::default() };
        let gpu = match Gpu::emulated(LaneOrder::Ascending, options) {
            Ok(gpu) => gpu,
            Err(GpuError::Unavailable(missing)) => return eprintln!("SKIPPED: {missing}"),
            Err(error) => panic!("{error}"),
        };
        // 300 lines, for which short codes save a level; with keys in runs of 64 they lead every other query
        // astray. Crowds, most of them in few cells of any code, need the fine image.
        let even = |i: u32| i * 1_000_003;
        let in_runs = |i: u32| ((i / 64) << 8) | (i % 64);
        let in_crowds = |i: u32| (i / 600) * 715_827_883 + i % 600;
        for (key, lowest) in [
            (even as fn(u32) -> u32, Lowest::Codes8),
            (in_runs, Lowest::Codes16),
            (in_crowds, Lowest::Codes32),
        ] {
            let tuples: Vec<(u32, u32)> = (0..2400).map(|i| (key(i), i)).collect();
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("table.pleach");
            build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
            let index = Index::open(&path).expect("opens");
            let stream = Stream::new(&gpu).expect("a stream");
            let resident =
                Resident::new(&index, &stream, Residence::Device).expect("fits").expect("there are tuples");
            assert_eq!(spine(&stream, &resident).instance().lowest, lowest);
        }
    }

    /// Lines below one, two and wide levels of a fine image, whose groups have one child each.
    #[test]
    fn fine_images_are_searched() {
        for (low_bits, count) in [(16, 4000), (24, 60_000), (32, 336_000)] {
            let options = GpuOptions {
                lowest: Some(Lowest::Codes32),
                fine_bits: Some(low_bits),
                top_max: Some(1),
                ..GpuOptions::default()
            };
            let gpu = match Gpu::emulated(LaneOrder::Random(5), options) {
                Ok(gpu) => gpu,
                Err(GpuError::Unavailable(missing)) => return eprintln!("SKIPPED: {missing}"),
                Err(error) => panic!("{error}"),
            };
            // Crowds of 100 keys, far apart.
            let key = |i: u64| u128::from(i / 100 * i) << 70 | u128::from(i % 100 * 3);
            let mut keys: Vec<u128> = (0..count).map(key).collect();
            keys.sort_unstable();
            keys.dedup();
            let tuples: Vec<(u128, ())> = keys.iter().map(|&key| (key, ())).collect();
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("table.pleach");
            let wide = BuildOptions { wide: true, ..BuildOptions::default() };
            build_slice(&tuples, &path, &wide).expect("built");
            let index = Index::open(&path).expect("opens");
            let stream = Stream::new(&gpu).expect("a stream");
            let resident =
                Resident::new(&index, &stream, Residence::Device).expect("fits").expect("there are tuples");
            let spine = spine(&stream, &resident);
            assert_eq!(spine.arguments().is_wide, u16::from(low_bits == 32));
            let others = looks(&stream, &resident, spine.arguments()).expect("counted");
            assert!(others < 0.01, "{others} other lines by {low_bits} bits");
            let table = GpuTable::new(&index, &gpu).expect("fits");
            let every = keys.len() / 700;
            let queries: Vec<u128> =
                keys.iter().step_by(every).flat_map(|&key| [key.saturating_sub(1), key, key + 1]).collect();
            let view = index.typed::<u128, ()>().expect("the types");
            for algorithm in [Algorithm::Spine, Algorithm::Sweep] {
                let mut present = vec![0; queries.len().div_ceil(64)];
                let mut values = vec![(); queries.len()];
                table.get_batch_by(algorithm, &queries, &mut values, &mut present).expect("answers");
                for (at, &query) in queries.iter().enumerate() {
                    let found = present[at / 64] >> (at % 64) & 1 == 1;
                    let expected = view.get(query).expect("answers").is_some();
                    assert_eq!(found, expected, "{query} of {count} by {low_bits} bits");
                }
            }
            let mut ranks = vec![0; queries.len()];
            table.lower_bound_batch::<u128, ()>(&queries, &mut ranks).expect("answers");
            let expected = queries.iter().map(|&query| keys.partition_point(|&key| key < query) as u64);
            assert!(ranks.into_iter().eq(expected), "ranks of {count} by {low_bits} bits");
        }
    }
}
