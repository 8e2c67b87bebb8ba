//! A table on a device, and look-ups in it.

use crate::compile::{Kernel, THREADS, architecture};
use crate::image::{Image, LEVELS_MAX, TOP_MAX};
use crate::{GpuError, Unavailable, probe};
use cudarc::driver::sys::{CUdevice_attribute as Device, CUfunction_attribute as Attribute};
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr};
use cudarc::driver::{LaunchConfig, PushKernelArg};
use pleach::{Index, Key, ReadError, Value};
use pleach_format::key::{Bits, Word};
use std::sync::Arc;

/// Bytes of shared memory in which a block stages tuple lines.
const STAGE_BYTES: u32 = THREADS * 64;
/// Fewest codes of the top that are worth a search: with fewer, images get too many levels.
const TOP_MIN: u32 = 1 << 10;

/// A device that is open for work.
#[derive(Clone, Debug)]
pub struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
}

impl Gpu {
    /// Opens a device by its number.
    ///
    /// # Errors
    /// [`GpuError::Unavailable`] if it is not there, [`GpuError::Driver`] if the driver refuses.
    pub fn open(ordinal: u32) -> Result<Self, GpuError> {
        let devices = probe::devices()?;
        if !devices.iter().any(|device| device.ordinal == ordinal) {
            let missing = format!("device {ordinal}: use 0 to {}", devices.len() - 1);
            return Err(Unavailable { missing }.into());
        }
        let context = CudaContext::new(ordinal as usize).map_err(GpuError::driver("opening the device"))?;
        let stream = context.default_stream();
        Ok(Self { context, stream })
    }

    /// An attribute that counts something.
    fn attribute(&self, which: Device) -> Result<u32, GpuError> {
        let count = self.context.attribute(which).map_err(GpuError::driver("asking for its kind"))?;
        Ok(count.unsigned_abs())
    }
}

/// What kernels get to know of a table; the same as in the kernels.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Arguments {
    lines: u64,
    nodes: [u64; LEVELS_MAX],
    top: u64,
    low: u64,
    high: u64,
    tuples: u64,
    last_line: u32,
    top_count: u32,
    levels: u32,
    top_shift: u32,
}

// SAFETY: plain numbers without padding, laid out as C does.
unsafe impl DeviceRepr for Arguments {}

/// A table that lies on a device with its image.
#[derive(Debug)]
pub struct GpuTable<'a> {
    index: &'a Index,
    gpu: Gpu,
    arguments: Arguments,
    values: CudaFunction,
    ranks: CudaFunction,
    shared_bytes: u32,
    blocks: u32,
    // What `arguments` points to.
    _memory: Vec<CudaSlice<u8>>,
}

/// Last words of all lines, widened.
fn lasts<W: Word>(lines: &[u8], tuples_per_line: usize) -> Vec<u64> {
    lines
        .chunks_exact(64)
        .map(|line| W::read(&line[(tuples_per_line - 1) * W::BYTES..]).to_u128() as u64)
        .collect()
}

impl<'a> GpuTable<'a> {
    /// Copies the tuple lines of a file to a device and derives their image. O(lines).
    ///
    /// The lines are not verified here: open the index with [`pleach::Verify::Full`] for that. Of a damaged table
    /// answers may be wrong; nothing outside of it is read.
    ///
    /// # Errors
    /// [`GpuError`]: types that are not searched there, too little memory, or what the driver refuses.
    pub fn new(index: &'a Index, gpu: &Gpu) -> Result<Self, GpuError> {
        let header = index.header();
        let geometry = header.geometry;
        let word_bytes = geometry.key_bytes;
        let types = GpuError::Types { key: header.key_type, value: header.value_type };
        let fits =
            matches!(word_bytes, 4 | 8) && matches!(geometry.value_bytes, 0 | 4 | 8) && header.mask.is_none();
        let (Ok(last_line), true) = (u32::try_from(header.lines.saturating_sub(1)), fits) else {
            return Err(types);
        };
        let (Some((low, high)), Ok(offset), Ok(length)) =
            (header.key_range(), usize::try_from(header.lines_offset), usize::try_from(header.lines * 64))
        else {
            return Err(types);
        };
        let lines = index.as_bytes().get(offset..).and_then(|bytes| bytes.get(..length)).ok_or(types)?;
        let n = geometry.tuples_per_line();
        let lasts = if word_bytes == 4 { lasts::<u32>(lines, n) } else { lasts::<u64>(lines, n) };
        let shared = gpu.attribute(Device::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let top_max = (shared.saturating_sub(STAGE_BYTES) / 4).min(TOP_MAX as u32);
        if top_max < TOP_MIN {
            let missing =
                format!("a device of compute capability 8.0 or later: this one shares {shared} bytes");
            return Err(Unavailable { missing }.into());
        }
        let image = Image::new(&lasts, low as u64, high as u64, top_max as usize)
            .ok_or(GpuError::Types { key: header.key_type, value: header.value_type })?;
        drop(lasts);

        let needed =
            length + image.nodes.iter().map(|nodes| nodes.len() * 32).sum::<usize>() + image.top.len() * 4;
        let (free, _) = gpu.context.mem_get_info().map_err(GpuError::driver("asking for free memory"))?;
        if needed + (64 << 20) > free {
            return Err(GpuError::Memory { needed: needed as u64, free: free as u64 });
        }
        let mut memory = Vec::new();
        let mut upload = |bytes: &[u8]| -> Result<u64, GpuError> {
            // An empty array has an address too.
            let slice = if bytes.is_empty() {
                gpu.stream.clone_htod(&[0u8; 4])
            } else {
                gpu.stream.clone_htod(bytes)
            };
            let slice = slice.map_err(GpuError::driver("copying the table"))?;
            let address = slice.device_ptr(&gpu.stream).0;
            memory.push(slice);
            Ok(address)
        };
        let mut nodes = [0; LEVELS_MAX];
        for (address, level) in nodes.iter_mut().zip(&image.nodes) {
            let bytes: Vec<u8> = level.iter().flatten().flat_map(|code| code.to_le_bytes()).collect();
            *address = upload(&bytes)?;
        }
        let top: Vec<u8> = image.top.iter().flat_map(|code| code.to_le_bytes()).collect();
        let arguments = Arguments {
            lines: upload(lines)?,
            nodes,
            top: upload(&top)?,
            low: low as u64,
            high: high as u64,
            tuples: header.tuples,
            last_line,
            top_count: image.top.len() as u32,
            levels: image.nodes.len() as u32,
            top_shift: image.shape.top_shift(),
        };

        // What was copied is of the file only if its mapping still is.
        index.check_mapping()?;

        let capability = gpu.context.compute_capability().map_err(GpuError::driver("asking for its kind"))?;
        let ptx = Kernel::spine(geometry).compile(architecture(capability.0))?;
        let module = gpu.context.load_module(ptx).map_err(GpuError::driver("loading a kernel"))?;
        let shared_bytes = STAGE_BYTES + (image.top.len() as u32 * 4).next_multiple_of(16);
        let function = |name| {
            let function = module.load_function(name).map_err(GpuError::driver("finding a kernel"))?;
            function
                .set_attribute(
                    Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    shared_bytes as i32,
                )
                .map_err(GpuError::driver("asking for shared memory"))?;
            Ok::<_, GpuError>(function)
        };
        let (values, ranks) = (function("spine_values")?, function("spine_ranks")?);
        let per_multiprocessor = values
            .occupancy_max_active_blocks_per_multiprocessor(THREADS, shared_bytes as usize, None)
            .map_err(GpuError::driver("asking for occupancy"))?;
        let multiprocessors = gpu.attribute(Device::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let blocks = multiprocessors * per_multiprocessor.max(1);
        let gpu = gpu.clone();
        Ok(Self { index, gpu, arguments, values, ranks, shared_bytes, blocks, _memory: memory })
    }

    fn shape(&self, count: u64) -> LaunchConfig {
        let blocks = count.div_ceil(THREADS.into()).clamp(1, self.blocks.into()) as u32;
        LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: self.shared_bytes,
        }
    }

    /// Launches `spine_values`.
    ///
    /// # Safety
    /// `queries` holds `count` words of the file, `values` as many values, and `present` whole words of 64 bits
    /// for them.
    unsafe fn launch_values(
        &self,
        queries: &CudaSlice<u8>,
        count: u64,
        values: &mut CudaSlice<u8>,
        present: &mut CudaSlice<u8>,
    ) -> Result<(), GpuError> {
        let mut launch = self.gpu.stream.launch_builder(&self.values);
        launch.arg(&self.arguments).arg(queries).arg(&count).arg(values).arg(present);
        // SAFETY: these are the kernel's types; the buffers are long enough by the contract; the table's arrays
        // live as long as `self`, and the kernel clamps what it takes from them.
        unsafe { launch.launch(self.shape(count)) }.map_err(GpuError::driver("a look-up"))?;
        Ok(())
    }

    /// Launches `spine_ranks`.
    ///
    /// # Safety
    /// `queries` holds `count` words of the file, `ranks` as many numbers of 64 bits.
    unsafe fn launch_ranks(
        &self,
        queries: &CudaSlice<u8>,
        count: u64,
        ranks: &mut CudaSlice<u8>,
    ) -> Result<(), GpuError> {
        let mut launch = self.gpu.stream.launch_builder(&self.ranks);
        launch.arg(&self.arguments).arg(queries).arg(&count).arg(ranks);
        // SAFETY: as in `launch_values`.
        unsafe { launch.launch(self.shape(count)) }.map_err(GpuError::driver("a look-up"))?;
        Ok(())
    }

    /// Encoded queries, on the device.
    fn queries<K: Key>(&self, keys: &[K]) -> Result<CudaSlice<u8>, GpuError> {
        let mut bytes = vec![0; keys.len() * K::Word::BYTES];
        for (key, bytes) in keys.iter().zip(bytes.chunks_exact_mut(K::Word::BYTES)) {
            key.encode().write(bytes);
        }
        self.gpu.stream.clone_htod(&bytes).map_err(GpuError::driver("copying queries"))
    }

    fn room(&self, bytes: usize) -> Result<CudaSlice<u8>, GpuError> {
        self.gpu.stream.alloc_zeros(bytes.max(8)).map_err(GpuError::driver("asking for memory"))
    }

    fn bytes(&self, from: &CudaSlice<u8>) -> Result<Vec<u8>, GpuError> {
        self.gpu.stream.clone_dtoh(from).map_err(GpuError::driver("copying answers"))
    }

    /// Values of keys, and whether they are there, as [`pleach::Typed::get_batch`]; returns how many are.
    ///
    /// # Errors
    /// [`GpuError::Read`] for other types than the file's and buffers of the wrong length, [`GpuError::Driver`].
    pub fn get_batch<K: Key, V: Value>(
        &self,
        keys: &[K],
        values: &mut [V],
        present: &mut [u64],
    ) -> Result<usize, GpuError> {
        self.index.typed::<K, V>()?;
        for (name, needed, found) in
            [("values", keys.len(), values.len()), ("present", keys.len().div_ceil(64), present.len())]
        {
            if found != needed {
                return Err(ReadError::Buffer { name, needed, found }.into());
            }
        }
        if keys.is_empty() {
            return Ok(0);
        }
        let (queries, count) = (self.queries(keys)?, keys.len() as u64);
        let mut answers = self.room(keys.len() * V::Bits::BYTES)?;
        let mut bitmap = self.room(present.len() * 8)?;
        // SAFETY: made for these keys, whose types are the file's.
        unsafe { self.launch_values(&queries, count, &mut answers, &mut bitmap) }?;
        for (word, bytes) in present.iter_mut().zip(self.bytes(&bitmap)?.chunks_exact(8)) {
            *word = <u64 as Word>::read(bytes);
        }
        if V::Bits::BYTES > 0 {
            let answers = self.bytes(&answers)?;
            for (value, bytes) in values.iter_mut().zip(answers.chunks_exact(V::Bits::BYTES)) {
                *value = V::from_bits(V::Bits::read(bytes));
            }
        }
        Ok(present.iter().map(|word| word.count_ones() as usize).sum())
    }

    /// Ranks of lower bounds, as [`pleach::Typed::lower_bound_batch`].
    ///
    /// # Errors
    /// As [`GpuTable::get_batch`].
    pub fn lower_bound_batch<K: Key, V: Value>(&self, keys: &[K], ranks: &mut [u64]) -> Result<(), GpuError> {
        self.index.typed::<K, V>()?;
        if ranks.len() != keys.len() {
            return Err(ReadError::Buffer { name: "ranks", needed: keys.len(), found: ranks.len() }.into());
        }
        if keys.is_empty() {
            return Ok(());
        }
        let (queries, count) = (self.queries(keys)?, keys.len() as u64);
        let mut answers = self.room(keys.len() * 8)?;
        // SAFETY: made for these keys, whose type is the file's.
        unsafe { self.launch_ranks(&queries, count, &mut answers) }?;
        for (rank, bytes) in ranks.iter_mut().zip(self.bytes(&answers)?.chunks_exact(8)) {
            *rank = <u64 as Word>::read(bytes);
        }
        Ok(())
    }

    /// Milliseconds that the device takes for `repetitions` of a batch that lies there already, each: the search
    /// alone, for measuring.
    ///
    /// # Errors
    /// As [`GpuTable::get_batch`].
    pub fn time_batch<K: Key, V: Value>(&self, keys: &[K], repetitions: usize) -> Result<Vec<f32>, GpuError> {
        self.index.typed::<K, V>()?;
        let (queries, count) = (self.queries(keys)?, keys.len() as u64);
        let mut answers = self.room(keys.len() * V::Bits::BYTES)?;
        let mut bitmap = self.room(keys.len().div_ceil(64) * 8)?;
        let mut times = Vec::with_capacity(repetitions);
        for _ in 0..repetitions {
            let flags = Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT);
            let start = self.gpu.stream.record_event(flags).map_err(GpuError::driver("an event"))?;
            // SAFETY: as in `get_batch`.
            unsafe { self.launch_values(&queries, count, &mut answers, &mut bitmap) }?;
            let end = self.gpu.stream.record_event(flags).map_err(GpuError::driver("an event"))?;
            times.push(start.elapsed_ms(&end).map_err(GpuError::driver("an event"))?);
        }
        Ok(times)
    }
}
