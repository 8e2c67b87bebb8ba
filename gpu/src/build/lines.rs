//! Tuple lines and spine from sorted columns, byte for byte as by the CPU builder.
//!
//! A copy makes the lines; the spine is made from the column of keys, level by level. Each level uses the
//! first encoding that its cost allows, and the encoding decides how many lines the level above covers, so
//! the host does not know which launches are needed.
//!
//! It launches every possible candidate of every possible level, for the maximum number of lines. The device
//! keeps the state in [`Progress`], and launches that are not needed end at once. So nothing waits until the
//! end, when the host gets the encodings and the start of the section: level 0 is at a fixed place after room
//! for all levels above it, and each level ends where the one below it begins.

use crate::driver::LaunchShape;
use crate::kernel::{Instance, SourceSpec};
use crate::memory::{DeviceBuffer, PinnedBuffer};
use crate::resident::grid;
use crate::{Gpu, GpuError, Pending, Stream};
use pleach_format::layout::{LINE_BYTES, LineGeometry, SpineGeometry};
use pleach_format::section::LEVELS_MAX;
use pleach_format::spine::{Encoding, PHASES, TRIAL_LINES, candidates};

/// Threads per block.
const THREADS: u16 = 256;
const WARP: u64 = 32;

/// Columns and the address of their tuple lines; the same as in build.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct LinesTask {
    keys: u64,
    values: u64,
    lines: u64,
    tuples: u64,
}

/// State of a spine under construction; the same as in build.cu, which explains the fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Progress {
    children: u64,
    span: u64,
    inner: u64,
    above: u64,
    inexact: u64,
    cost: [u64; 3],
    tickets: u32,
    level: u32,
    refused: u32,
    zero: u32,
    encodings: [u8; LEVELS_MAX],
}

/// One candidate of one level; the same as in build.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct LevelTask {
    keys: u64,
    spine: u64,
    progress: u64,
    tuples: u64,
    level: u32,
    encoding: u32,
    slots: u32,
    code_bytes: u32,
    uneven: u32,
    trial: u32,
}

crate::kernel! {
    /// Builders of tuple lines and spine.
    BUILD = SourceSpec {
        option_name: Some("THREADS"),
        options: &[THREADS],
        has_value_width: true,
        // Sizes of structs, and numbers of the CPU builder.
        numbers: |_| vec![
            ("BYTES_OF_LINES_TASK", size_of::<LinesTask>() as u64),
            ("BYTES_OF_PROGRESS", size_of::<Progress>() as u64),
            ("BYTES_OF_LEVEL_TASK", size_of::<LevelTask>() as u64),
            ("SPINE_LEVELS_MAX", LEVELS_MAX as u64),
            ("PHASES", PHASES),
            ("TRIAL_LINES", TRIAL_LINES as u64),
        ],
        ..SourceSpec::new("build.cu", include_str!("../kernels/build.cu"))
    };
    /// Makes tuple lines.
    build_tuple_lines(task: LinesTask);
    /// Starts a spine.
    build_begin(task: LevelTask);
    /// Tries an encoding for a level of the spine.
    build_level(task: LevelTask);
}

/// The sections LINE and SPIN of a file, in device memory.
#[derive(Clone, Debug)]
pub struct BuiltLines {
    /// Tuple lines, an even number of them.
    pub lines: DeviceBuffer,
    /// The spine, root first. This is a view of a larger buffer, which is sized for the widest encodings.
    pub spine: DeviceBuffer,
    /// Encoding, lines and place of each spine level, bottom level first.
    pub geometry: SpineGeometry,
    /// Number of spine lines that are marked as inexact.
    pub inexact: u64,
}

/// Room for the lines and the spine of a number of tuples, and the programs that make them.
#[derive(Debug)]
pub struct LineBuilder {
    gpu: Gpu,
    instance: Instance,
    geometry: LineGeometry,
    tuples: u64,
    is_masked: bool,
    lines: DeviceBuffer,
    spine: DeviceBuffer,
    /// Offset of level 0 in `spine`.
    level_0: u64,
    progress: DeviceBuffer,
    told: PinnedBuffer,
    lines_shape: LaunchShape,
    /// Candidates of each possible level, bottom level first, and their launches.
    levels: Vec<Vec<(Encoding, LaunchShape)>>,
}

impl LineBuilder {
    /// Allocates the memory and loads the programs. `is_masked`: the words are those of byte keys, whose
    /// spines may be less exact.
    ///
    /// # Errors
    /// [`GpuError::Memory`] or [`GpuError::OutOfMemory`] if the device has no room; [`GpuError::Unavailable`]
    /// or [`GpuError::Compile`] if the programs cannot be compiled.
    ///
    /// # Panics
    /// If words do not have 4, 8 or 16 bytes, or values 0, 4 or 8.
    pub fn new(gpu: &Gpu, geometry: LineGeometry, tuples: u64, is_masked: bool) -> Result<Self, GpuError> {
        let LineGeometry { key_bytes, value_bytes } = geometry;
        assert!(matches!(key_bytes, 4 | 8 | 16) && matches!(value_bytes, 0 | 4 | 8), "no such tuple lines");
        let instance =
            Instance { option: THREADS, ..Instance::new(&BUILD, key_bytes as u8, value_bytes as u8) };
        let too_many = GpuError::Memory { needed: u64::MAX, free: gpu.left_bytes()? };
        let line_bytes = geometry.bytes(tuples).ok_or(too_many)?;
        // A thread copies four units of at most 16 bytes at a time.
        let lines_shape =
            grid(gpu, instance, "build_tuple_lines", THREADS.into(), 0, line_bytes.div_ceil(64))?;

        let mut levels = Vec::new();
        let mut room = Vec::new();
        let mut children = geometry.lines(tuples);
        while children > 1 {
            let shapes = candidates(key_bytes).iter().map(|&encoding| {
                let lines = children.div_ceil(encoding.separators(key_bytes) as u64 + 1);
                grid(gpu, instance, "build_level", THREADS.into(), 0, lines * WARP)
                    .map(|shape| (encoding, shape))
            });
            levels.push(shapes.collect::<Result<Vec<_>, _>>()?);
            children = children.div_ceil(Encoding::Raw.separators(key_bytes) as u64 + 1);
            room.push(children.next_multiple_of(2) * LINE_BYTES as u64);
        }
        let level_0 = room.iter().skip(1).sum();
        Ok(Self {
            gpu: gpu.clone(),
            instance,
            geometry,
            tuples,
            is_masked,
            lines: DeviceBuffer::new(gpu, line_bytes)?,
            spine: DeviceBuffer::new(gpu, room.iter().sum())?,
            level_0,
            progress: DeviceBuffer::new(gpu, size_of::<Progress>() as u64)?,
            told: PinnedBuffer::new(gpu, size_of::<Progress>())?,
            lines_shape,
            levels,
        })
    }

    /// Queues building from columns of encoded words in ascending order and their values, which are not used
    /// if values have no bytes. If the words do not ascend, the result is not a valid index.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if a column is too short, [`GpuError::Driver`] if a driver call fails.
    ///
    /// # Panics
    /// If a column does not begin at a multiple of its elements' bytes.
    pub fn build(
        self,
        stream: &Stream,
        keys: &DeviceBuffer,
        values: &DeviceBuffer,
    ) -> Result<Pending<BuiltLines>, GpuError> {
        for (name, column, bytes) in
            [("keys", keys, self.geometry.key_bytes), ("values", values, self.geometry.value_bytes)]
        {
            column.holds(name, self.tuples.saturating_mul(bytes as u64))?;
            assert!(column.address().is_multiple_of(bytes.max(1) as u64), "{name} are aligned");
        }
        // SAFETY: the columns were measured, and there is room for all lines of all levels; `Pending` keeps
        // all of it, or it is waited for here.
        let queued = unsafe { self.queue(stream, keys, values) };
        if let Err(error) = queued {
            let _ = stream.synchronize();
            return Err(error);
        }
        let kept = vec![keys.clone(), values.clone(), self.progress.clone()];
        Pending::new(stream, kept, move || self.built())
    }

    /// Queues all launches, and the copy of the result to the host.
    ///
    /// # Safety
    /// The columns must hold all tuples; they and `self` must live until the work is done.
    unsafe fn queue(
        &self,
        stream: &Stream,
        keys: &DeviceBuffer,
        values: &DeviceBuffer,
    ) -> Result<(), GpuError> {
        let instance = self.instance;
        let lines = LinesTask {
            keys: keys.address(),
            values: if self.geometry.value_bytes > 0 { values.address() } else { 0 },
            lines: self.lines.address(),
            tuples: self.tuples,
        };
        let task = |level: usize, encoding: Encoding| LevelTask {
            keys: keys.address(),
            spine: self.spine.address() + self.level_0,
            progress: self.progress.address(),
            tuples: self.tuples,
            level: level as u32,
            encoding: encoding as u32,
            slots: encoding.separators(self.geometry.key_bytes) as u32,
            code_bytes: encoding.code_bytes(self.geometry.key_bytes) as u32,
            uneven: u32::from(self.is_masked || self.geometry.key_bytes == 16),
            trial: 0,
        };
        let one = LaunchShape { blocks: 1, threads: THREADS.into(), shared_bytes: 0 };
        let trial = LevelTask { trial: 1, ..task(0, Encoding::Delta8) };
        // SAFETY: the caller guarantees the columns and `self`. Kernels write as many lines as they count by
        // the same rule as `new`.
        unsafe {
            build_tuple_lines(stream, instance, self.lines_shape, &lines)?;
            build_begin(stream, instance, LaunchShape { threads: 1, ..one }, &trial)?;
            build_level(stream, instance, one, &trial)?;
            for (level, shapes) in self.levels.iter().enumerate() {
                for &(encoding, shape) in shapes {
                    build_level(stream, instance, shape, &task(level, encoding))?;
                }
            }
            let (told, bytes) = (self.told.host(), self.told.as_bytes().len());
            self.gpu.driver().copy_out(stream.handle(), told, self.progress.address(), bytes)
        }
    }

    /// Returns the result that the device copied to the host.
    fn built(self) -> Result<BuiltLines, GpuError> {
        assert_eq!(self.told.as_bytes().len(), size_of::<Progress>());
        // SAFETY: the type is plain numbers, and the buffer was allocated with its size.
        let progress: Progress = unsafe { self.told.as_bytes().as_ptr().cast::<Progress>().read_unaligned() };
        let encodings: Option<Vec<Encoding>> = progress
            .encodings
            .get(..progress.level as usize)
            .and_then(|codes| codes.iter().map(|&code| Encoding::from_code(code)).collect());
        let geometry = encodings.and_then(|encodings| {
            SpineGeometry::new(self.geometry.lines(self.tuples), 1, self.geometry.key_bytes, &encodings)
        });
        let begins =
            progress.above.checked_mul(LINE_BYTES as u64).and_then(|above| self.level_0.checked_sub(above));
        match (geometry, begins) {
            (Some(geometry), Some(begins)) if geometry.bytes <= self.spine.bytes() - begins => {
                Ok(BuiltLines {
                    spine: self.spine.part(begins, geometry.bytes),
                    lines: self.lines,
                    geometry,
                    inexact: progress.inexact,
                })
            }
            _ => Err(GpuError::Driver { call: "building a spine", cause: format!("{progress:?}") }),
        }
    }
}

/// Queues building tuple lines and spine from `tuples` encoded words in ascending order, and their values, as
/// [`LineBuilder`] does. O(tuples).
///
/// # Errors
/// As [`LineBuilder::new`] and [`LineBuilder::build`].
///
/// # Panics
/// As [`LineBuilder::new`] and [`LineBuilder::build`].
pub fn build_lines(
    stream: &Stream,
    geometry: LineGeometry,
    is_masked: bool,
    keys: &DeviceBuffer,
    values: &DeviceBuffer,
    tuples: u64,
) -> Result<Pending<BuiltLines>, GpuError> {
    LineBuilder::new(stream.gpu(), geometry, tuples, is_masked)?.build(stream, keys, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach::{Key, Value};
    use pleach_builder::{BuildOptions, build_bytes};
    use pleach_format::Header;
    use pleach_format::key::{Bits, Word};

    fn mix(i: u64) -> u64 {
        let i = (i ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (i ^ (i >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB) ^ (i >> 31)
    }

    /// Name and key function of a kind.
    type Kind = (&'static str, fn(u64) -> u64);
    /// Each kind makes other levels use other encodings.
    const KINDS: [Kind; 9] = [
        ("spread", mix),
        ("dense", |i| i),
        ("sharded", |i| ((i / 64) << 40) | (i % 64)),
        ("crowded", |i| mix(i) >> (i % 64)),
        ("paired", |i| (mix(i / 2) & !1) | (i & 1)),
        ("repeated", |i| mix(i / 37)),
        ("equal", |_| 7),
        ("largest", |i| u64::MAX - i * 3),
        ("tailed", |i| if i < 300 { i } else { mix(i) }),
    ];

    /// Compares the sections of the file that the CPU makes of these tuples with the device's.
    fn check<K: Key, V: Value>(gpu: &Gpu, name: &str, mut tuples: Vec<(K, V)>) {
        tuples.sort_by_key(|&(key, _)| key.encode());
        // Beside a grid the spine would be sparse.
        let wide = BuildOptions { wide: true, grid: false, ..BuildOptions::default() };
        let file = build_bytes(&tuples, &wide).expect("builds");
        let header = Header::parse(&file, file.len() as u64).expect("a file");
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (key, value) in &tuples {
            let (mut word, mut bits) = ([0; 16], [0; 8]);
            key.encode().write(&mut word);
            value.to_bits().write(&mut bits);
            keys.extend_from_slice(&word[..K::Word::BYTES]);
            values.extend_from_slice(&bits[..V::Bits::BYTES]);
        }
        let stream = Stream::new(gpu).expect("a stream");
        let upload = |bytes: &[u8]| DeviceBuffer::from_host(&stream, bytes).expect("copies");
        let (keys, values) = (upload(&keys), upload(&values));
        let built = build_lines(&stream, header.geometry, false, &keys, &values, header.tuples)
            .and_then(Pending::wait)
            .expect("builds on the device");
        let name = format!("{name}, {} tuples, {:?}", tuples.len(), header.geometry);
        assert_eq!(built.geometry, header.spine, "{name}");
        assert_eq!(built.inexact, header.inexact_lines, "{name}");
        let lines_bytes = header.geometry.bytes(header.tuples).expect("fits");
        for (part, offset, bytes) in [
            (&built.lines, header.lines_offset, lines_bytes),
            (&built.spine, header.spine_offset, header.spine.bytes),
        ] {
            assert_eq!(part.bytes(), bytes, "{name}");
            let mut found = vec![0; bytes as usize];
            part.copy_to_host(&stream, &mut found).expect("copies");
            assert!(found == file[offset as usize..][..bytes as usize], "{name}: at {offset}");
        }
    }

    fn check_all(gpu: &Gpu, counts: &[u64]) {
        for (name, key) in KINDS {
            for &count in counts {
                let all = 0..count;
                check(gpu, name, all.clone().map(|i| (key(i), mix(i))).collect());
                check(gpu, name, all.clone().map(|i| (key(i) as u32, i as u32)).collect());
                check(gpu, name, all.clone().map(|i| (key(i) as i64, mix(i) as i32)).collect());
                check(gpu, name, all.clone().map(|i| (key(i) as u32, mix(i))).collect());
                check(gpu, name, all.clone().map(|i| (u128::from(key(i)) << 60, i as f32)).collect());
                check(gpu, name, all.map(|i| (u128::from(key(i)), ())).collect());
            }
        }
    }

    fn check_refusals(gpu: &Gpu) {
        let stream = Stream::new(gpu).expect("a stream");
        let column = DeviceBuffer::new(gpu, 79).expect("allocates");
        for geometry in [LineGeometry::new(8, 0), LineGeometry::new(4, 8)] {
            let refused = build_lines(&stream, geometry, false, &column, &column, 10);
            assert!(matches!(refused, Err(GpuError::Buffer { needed: 80, found: 79, .. })));
        }
        let refused = build_lines(&stream, LineGeometry::new(8, 8), false, &column, &column, u64::MAX / 8);
        assert!(matches!(refused, Err(GpuError::Memory { .. } | GpuError::OutOfMemory { .. })));
    }

    #[test]
    fn sections_are_those_of_the_cpu() {
        match Gpu::open(0) {
            Ok(gpu) => {
                check_all(&gpu, &[0, 1, 4, 5, 8, 9, 113, 1000, 3137, 90_001, 1_000_000]);
                check_refusals(&gpu);
            }
            Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[cfg(feature = "emulate")]
    #[test]
    fn sections_are_those_of_the_cpu_where_it_is_the_device() {
        for order in [crate::LaneOrder::Ascending, crate::LaneOrder::Descending, crate::LaneOrder::Random(3)]
        {
            match Gpu::emulated(
                order,
                crate::GpuOptions { memory_bytes: Some(1 << 30), ..crate::GpuOptions::default() },
            ) {
                Ok(gpu) => {
                    check_all(&gpu, &[0, 1, 5, 113, 1800, 3137]);
                    check_refusals(&gpu);
                }
                Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
