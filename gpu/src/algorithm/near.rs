//! Searches for the tuples near queries: floors, ceilings, nearest ones, and the intervals that hold queries.
//!
//! They go the ways of look-ups. A ceiling is at the lower bound, in the line that the image leads to. A floor is
//! in the line that a mirrored image leads to ([`super::imaged`]); it is made when the first floor is searched for.
//! So no query reads another line, but for the few that an inexact border leads astray.
//!
//! Ascending batches are merged with the lines. Where lines stay with the host, they are streamed for batches for
//! which they are streamed for look-ups ([`super::hybrid`]). All other algorithms have no search of this kind;
//! batches for them are searched as `auto` does.

use super::Algorithm;
use super::arguments::{Arguments, IMAGE_TEXT};
use super::fine::FINE_TEXT;
use super::hybrid::{ByParts, Hybrid};
use super::imaged::{Imaged, THREADS, THREADS_SMALL};
use super::samples::Samples;
use super::spine::{self, Part, SPINE_TEXT, Spine, few_max, few_shape};
use super::sweep::{self, SWEEP_TEXT, Tiles, sample};
use crate::driver::LaunchShape;
use crate::image::Lowest;
use crate::kernel::{Batch, Instance, SourceSpec, Text};
use crate::resident::Resident;
use crate::{GpuError, Stream};
use pleach::Near;
use std::sync::Arc;

/// Text that both kinds of searches share.
const NEAR_TEXT: Text = Text { name: "near.cuh", text: include_str!("../kernels/near.cuh") };

crate::kernel! {
    /// Tuples near queries, through the device image.
    NEAR = SourceSpec {
        shared: &[IMAGE_TEXT, FINE_TEXT, SPINE_TEXT, NEAR_TEXT],
        option_name: Some("THREADS"),
        options: &[THREADS, THREADS_SMALL],
        has_value_width: true,
        exists: spine::descends,
        numbers: |instance| std::iter::once(NUMBER).chain(spine::numbers(instance)).collect(),
        ..SourceSpec::new("near.cu", include_str!("../kernels/near.cu"))
    };
    /// Floors, through a mirrored image.
    near_floor(table: Arguments, batch: Batch, near: NearArguments);
    /// Ceilings, through an image.
    near_ceiling(table: Arguments, batch: Batch, near: NearArguments);
    /// Nearest tuples, through a mirrored image.
    near_nearest(table: Arguments, batch: Batch, near: NearArguments);
    /// Writes down the line of each query, through a mirrored image.
    near_lines(table: Arguments, batch: Batch, part: Part) if |of| of.lowest != Lowest::Codes8;
    /// Floors of the queries whose lines are in a part.
    near_part_floor(table: Arguments, batch: Batch, near: NearArguments, part: Part)
        if |of| of.lowest != Lowest::Codes8;
    /// Ceilings of the queries whose lines are in a part.
    near_part_ceiling(table: Arguments, batch: Batch, near: NearArguments, part: Part)
        if |of| of.lowest != Lowest::Codes8;
    /// Nearest tuples of the queries whose lines are in a part.
    near_part_nearest(table: Arguments, batch: Batch, near: NearArguments, part: Part)
        if |of| of.lowest != Lowest::Codes8;
    /// Floors of short batches.
    near_few_floor(table: Arguments, batch: Batch, near: NearArguments)
        if |of| of.lowest != Lowest::Codes32;
    /// Ceilings of short batches.
    near_few_ceiling(table: Arguments, batch: Batch, near: NearArguments)
        if |of| of.lowest != Lowest::Codes32;
    /// Nearest tuples of short batches.
    near_few_nearest(table: Arguments, batch: Batch, near: NearArguments)
        if |of| of.lowest != Lowest::Codes32;
}

crate::kernel! {
    /// Tuples near ascending queries, merged with the tuple lines.
    NEAR_SWEEP = SourceSpec {
        shared: &[IMAGE_TEXT, SWEEP_TEXT, NEAR_TEXT],
        option_name: Some("THREADS"),
        options: &[sweep::THREADS],
        has_value_width: true,
        numbers: |_| std::iter::once(NUMBER).chain(sweep::NUMBERS).collect(),
        ..SourceSpec::new("near_sweep.cu", include_str!("../kernels/near_sweep.cu"))
    };
    /// Merges ascending queries with the lines, for floors.
    sweep_floor(table: sweep::Arguments, batch: Batch, near: NearArguments);
    /// Merges ascending queries with the lines, for ceilings.
    sweep_ceiling(table: sweep::Arguments, batch: Batch, near: NearArguments);
}

/// Definition of the shared text.
const NUMBER: (&str, u64) = ("BYTES_OF_NEAR", size_of::<NearArguments>() as u64);

/// What a batch wants besides its other answers; the same as Near in near.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct NearArguments {
    /// Address of the keys of the tuples; 0 if they are not requested.
    pub(crate) keys: u64,
    /// Nonzero if floors count only where the first field of their value is not below the query.
    pub(crate) is_interval: u32,
    pub(crate) unused: u32,
}

/// A table that is searched for tuples of one kind.
#[derive(Debug)]
pub(crate) struct NearSearch {
    near: Near,
    image: Arc<Imaged>,
    /// The search of lines that stay with the host.
    hybrid: Option<Arc<Hybrid>>,
    instance: Instance,
    blocks_max: u32,
    /// Number of queries of the longest batch that has a warp for each.
    few_max: u64,
    /// The merge; `None` for nearest tuples.
    sweep: Option<(Instance, Tiles)>,
    /// Instance of the kernel that samples, and places for samples.
    sampler: Instance,
    samples: Samples,
}

impl NearSearch {
    /// Returns true if tuples of a kind are searched for through the mirrored image.
    pub(crate) fn is_mirrored(near: Near) -> bool {
        near != Near::Ceiling
    }

    /// Creates the search through an image, which is mirrored as [`NearSearch::is_mirrored`] says, of lines that stay
    /// with the host by that of `hybrid`.
    pub(crate) fn new(
        resident: &Resident,
        image: Arc<Imaged>,
        hybrid: Option<Arc<Hybrid>>,
        near: Near,
    ) -> Result<Self, GpuError> {
        let gpu = &resident.gpu;
        let instance = Instance { lowest: image.lowest, ..resident.instance(&NEAR, image.threads) };
        let (entry, few, merge) = match near {
            Near::Floor => ("near_floor", "near_few_floor", Some("sweep_floor")),
            Near::Ceiling => ("near_ceiling", "near_few_ceiling", Some("sweep_ceiling")),
            Near::Nearest => ("near_nearest", "near_few_nearest", None),
        };
        let blocks_max = gpu.blocks_at_once(instance, entry, image.threads.into(), image.shared_bytes)?;
        let few_max = match NEAR.entries(instance).contains(&few) {
            true => few_max(resident, instance, few)?,
            false => 0,
        };
        let merging = resident.instance(&NEAR_SWEEP, sweep::THREADS);
        let sweep = match merge {
            Some(entry) => Some((merging, Tiles::new(resident, Arc::clone(&image), merging, entry)?)),
            None => None,
        };
        let sampler = resident.instance(&sweep::SWEEP, sweep::THREADS);
        let samples = Samples::new(resident)?;
        Ok(Self { near, image, hybrid, instance, blocks_max, few_max, sweep, sampler, samples })
    }

    /// Returns true if a search of this many queries can write presence as bytes.
    pub(crate) fn writes_bytes(&self, count: u64) -> bool {
        count > self.few_max && self.instance.word_bytes <= 8 && !self.is_streamed(count)
    }

    /// Returns true if a search of this many queries may be recorded, as [`super::search::Search::is_recordable`].
    pub(crate) fn is_recordable(&self, algorithm: Algorithm, count: u64) -> bool {
        !self.is_sampled(algorithm, count) && !self.is_streamed(count)
    }

    /// Returns the bytes of device memory of the image.
    pub(crate) fn bytes(&self) -> u64 {
        self.image.bytes() + self.samples.bytes()
    }

    fn is_streamed(&self, count: u64) -> bool {
        self.hybrid.as_ref().is_some_and(|hybrid| hybrid.is_streamed(count))
    }

    fn is_sampled(&self, algorithm: Algorithm, count: u64) -> bool {
        let names_one = matches!(algorithm, Algorithm::Spine | Algorithm::Sweep);
        self.sweep.is_some() && !names_one && self.samples.wants(count)
    }

    /// Queues the search of a batch of at least one query in a table of at least one tuple.
    ///
    /// # Safety
    /// Queries, answers and keys must be arrays of the batch's lengths. They and this search must stay alive until
    /// the work is done.
    pub(crate) unsafe fn search(
        &self,
        stream: &Stream,
        algorithm: Algorithm,
        batch: &Batch,
        near: &NearArguments,
    ) -> Result<(), GpuError> {
        if self.is_sampled(algorithm, batch.count) {
            return self.samples.with(stream, |place| {
                let order = place.address();
                // SAFETY: the caller guarantees the batch and its buffers. The place of the sample belongs to this
                // search until its work is done.
                unsafe {
                    sample(stream, self.sampler, batch, place)
                        .and_then(|()| self.descend(stream, batch, near, order))
                        .and_then(|()| self.merge(stream, batch, near, order))
                }
            });
        }
        // SAFETY: the caller guarantees the batch and its buffers; there is no sample.
        unsafe {
            match algorithm {
                Algorithm::Sweep => self.merge(stream, batch, near, 0),
                _ => self.descend(stream, batch, near, 0),
            }
        }
    }

    /// Queues the search through the image, unless a sample at address `order`, which may be 0, says that the batch
    /// ascends.
    ///
    /// # Safety
    /// As [`NearSearch::search`], for the sample, too.
    unsafe fn descend(
        &self,
        stream: &Stream,
        batch: &Batch,
        near: &NearArguments,
        order: u64,
    ) -> Result<(), GpuError> {
        let (instance, image) = (self.instance, &self.image.arguments);
        if let Some(hybrid) = self.hybrid.as_ref().filter(|_| self.is_streamed(batch.count)) {
            let parts = NearParts { search: self, near, spine: hybrid.spine() };
            // SAFETY: the caller guarantees the batch and its buffers, and the sample; `self` owns lines and image.
            return unsafe { hybrid.stream(stream, batch, &image.unless(order), &parts) };
        }
        if batch.count <= self.few_max && order == 0 {
            let shape = few_shape(instance, batch.count);
            // SAFETY: the caller guarantees the batch and its buffers; `self` owns lines and image.
            return unsafe {
                match self.near {
                    Near::Floor => near_few_floor(stream, instance, shape, image, batch, near),
                    Near::Ceiling => near_few_ceiling(stream, instance, shape, image, batch, near),
                    Near::Nearest => near_few_nearest(stream, instance, shape, image, batch, near),
                }
            };
        }
        let shape = self.image.shape(batch.count, self.blocks_max);
        let image = &image.unless(order);
        // SAFETY: the caller guarantees the batch and its buffers; `self` owns lines and image.
        unsafe {
            match self.near {
                Near::Floor => near_floor(stream, instance, shape, image, batch, near),
                Near::Ceiling => near_ceiling(stream, instance, shape, image, batch, near),
                Near::Nearest => near_nearest(stream, instance, shape, image, batch, near),
            }
        }
    }

    /// Queues the merge, unless a sample at address `order`, which may be 0, says that the batch does not ascend.
    ///
    /// # Safety
    /// As [`NearSearch::search`], for the sample, too.
    unsafe fn merge(
        &self,
        stream: &Stream,
        batch: &Batch,
        near: &NearArguments,
        order: u64,
    ) -> Result<(), GpuError> {
        let Some((instance, tiles)) = &self.sweep else {
            // SAFETY: the caller guarantees the batch and its buffers; nearest tuples are not sampled.
            return unsafe { self.descend(stream, batch, near, 0) };
        };
        let (shape, arguments) = tiles.launch(batch.count, order);
        // SAFETY: the caller guarantees the batch, its buffers and the sample; the tiles own lines and image, and
        // shared memory holds a chunk.
        unsafe {
            match self.near {
                Near::Ceiling => sweep_ceiling(stream, *instance, shape, &arguments, batch, near),
                _ => sweep_floor(stream, *instance, shape, &arguments, batch, near),
            }
        }
    }
}

/// Answers streamed batches.
struct NearParts<'a> {
    search: &'a NearSearch,
    near: &'a NearArguments,
    /// Writes down the lines of ceilings, which are those of look-ups.
    spine: &'a Spine,
}

impl ByParts for NearParts<'_> {
    unsafe fn note_lines(
        &self,
        stream: &Stream,
        arguments: &Arguments,
        batch: &Batch,
        part: &Part,
    ) -> Result<(), GpuError> {
        if !NearSearch::is_mirrored(self.search.near) {
            // SAFETY: the caller guarantees batch, arguments and part.
            return unsafe { self.spine.note_lines(stream, arguments, batch, part) };
        }
        let shape = self.search.image.shape(batch.count, self.search.blocks_max);
        // SAFETY: the caller guarantees batch, arguments and part.
        unsafe { near_lines(stream, self.search.instance, shape, arguments, batch, part) }
    }

    fn answering(&self) -> (Instance, &'static str) {
        let entry = match self.search.near {
            Near::Floor => "near_part_floor",
            Near::Ceiling => "near_part_ceiling",
            Near::Nearest => "near_part_nearest",
        };
        (self.search.instance, entry)
    }

    unsafe fn answer(
        &self,
        stream: &Stream,
        shape: LaunchShape,
        arguments: &Arguments,
        batch: &Batch,
        part: &Part,
    ) -> Result<(), GpuError> {
        let (instance, near) = (self.search.instance, self.near);
        // SAFETY: the caller guarantees batch, arguments and part.
        unsafe {
            match self.search.near {
                Near::Floor => near_part_floor(stream, instance, shape, arguments, batch, near, part),
                Near::Ceiling => near_part_ceiling(stream, instance, shape, arguments, batch, near, part),
                Near::Nearest => near_part_nearest(stream, instance, shape, arguments, batch, near, part),
            }
        }
    }
}
