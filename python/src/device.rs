//! A file on a CUDA device, and batches between arrays there.
//!
//! Work is queued on the caller's stream, and a call returns before it is done. What the work uses lives long enough:
//! arrays of the caller are freed in the order of their stream, a tensor taken by DLPack is kept until a mark after the
//! work is passed, and a table waits for the device before it is freed. A recorded graph may run at any later time:
//! what it uses is never freed.

use crate::dlpack::{Elements, Place, Taken, capsule};
use crate::errors::exception;
use crate::table::Table;
use pleach::{KeyType, Near};
use pleach_gpu::{DeviceBuffer, Event, Foreign, Gpu, GpuError, GpuTable, Lane, LookUp, Residence, Stream};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keys of the host that are answered at a time.
const HOST_KEYS: u64 = 1 << 22;

/// Devices that this process opened.
static OPEN: Mutex<Option<(u32, HashMap<u32, Gpu>)>> = Mutex::new(None);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the exception of an error of a device.
fn failed(error: &GpuError) -> PyErr {
    match error {
        GpuError::Lane { .. } | GpuError::Types { .. } => exception("TypesError", error.to_string()),
        GpuError::Operator { .. } => exception("TypesError", error.to_string()),
        GpuError::Buffer { .. } => exception("InputError", error.to_string()),
        GpuError::Memory { .. } | GpuError::OutOfMemory { .. } => {
            pyo3::exceptions::PyMemoryError::new_err(error.to_string())
        }
        _ => exception("DeviceError", error.to_string()),
    }
}

/// Opens a device once in a process.
fn device(ordinal: u32) -> PyResult<Gpu> {
    let mut open = locked(&OPEN);
    let process = std::process::id();
    let (owner, devices) = open.get_or_insert_with(|| (process, HashMap::new()));
    if *owner != process {
        return Err(forked());
    }
    if let Some(gpu) = devices.get(&ordinal) {
        return Ok(gpu.clone());
    }
    let gpu = Gpu::open(ordinal).map_err(|error| failed(&error))?;
    Ok(devices.entry(ordinal).or_insert(gpu).clone())
}

fn forked() -> PyErr {
    let text = "CUDA cannot be used in a child of fork: start workers by spawn, or give keys of the host";
    exception("DeviceError", text.to_owned())
}

/// What queued work uses: a tensor of another library, scratch memory, the stream.
struct Held {
    ready: Event,
    _used: (Taken, DeviceBuffer, Stream),
}

/// A file on a device.
#[pyclass(frozen, module = "pleachdb._native")]
pub(crate) struct DeviceTable {
    table: ManuallyDrop<Arc<GpuTable<'static>>>,
    process: u32,
    /// A recording uses the table.
    is_recorded: AtomicBool,
    /// What queued work uses, and marks after that work.
    held: Mutex<Vec<Held>>,
    /// Stream and memory for keys of the host.
    room: Mutex<Option<(Stream, DeviceBuffer)>>,
}

impl Drop for DeviceTable {
    fn drop(&mut self) {
        if self.process != std::process::id() || self.is_recorded.load(Ordering::Relaxed) {
            // The device of a parent cannot be used here, and a recording may use the table at any time.
            std::mem::take(&mut *locked(&self.held)).into_iter().for_each(std::mem::forget);
            std::mem::forget(locked(&self.room).take());
            return;
        }
        // A device that is lost does no work.
        let _ = self.table.gpu().synchronize();
        // SAFETY: nothing uses the field after this.
        unsafe { ManuallyDrop::drop(&mut self.table) };
    }
}

fn lane(name: Option<&str>) -> PyResult<Option<Lane>> {
    let Some(name) = name else { return Ok(None) };
    let found = Lane::ALL.into_iter().find(|lane| lane.name() == name);
    found.map(Some).ok_or_else(|| {
        exception("TypesError", format!("{name} cannot be keys on a device: give integers or floats"))
    })
}

/// Returns a kind of look-ups by its name.
fn look_up(name: &str) -> PyResult<LookUp> {
    Ok(match name {
        "keys" => LookUp::Keys,
        "floor" => LookUp::Near(Near::Floor),
        "ceiling" => LookUp::Near(Near::Ceiling),
        "nearest" => LookUp::Near(Near::Nearest),
        "interval" => LookUp::Intervals,
        other => return Err(exception("InputError", format!("unknown kind of look-ups {other:?}"))),
    })
}

impl DeviceTable {
    fn check_process(&self) -> PyResult<()> {
        if self.process == std::process::id() { Ok(()) } else { Err(forked()) }
    }

    /// Queues a batch. See [`GpuTable::get_foreign`].
    ///
    /// # Safety
    /// The addresses are of arrays of these lengths, which live until the work is done.
    unsafe fn queue(&self, stream: &Stream, batch: &Foreign, scratch: (u64, u64)) -> PyResult<()> {
        let recording = stream.is_recording().map_err(|error| failed(&error))?;
        if recording {
            self.is_recorded.store(true, Ordering::Relaxed);
        } else {
            // What is no longer used is given back now and then.
            locked(&self.held).retain(|held| !held.ready.is_done().unwrap_or(true));
        }
        // SAFETY: the caller guarantees the arrays; this value keeps the table as the head of the file says.
        unsafe { self.table.get_foreign(stream, batch, scratch) }.map_err(|error| failed(&error))
    }
}

/// What a batch is asked for, from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wanted {
    look_up: String,
    keys: bool,
    values: bool,
    ranks: bool,
}

/// Addresses of a batch, from Python: 0 for what is not wanted.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Addresses {
    keys: u64,
    count: u64,
    lane: Option<String>,
    values: u64,
    is_wide: bool,
    missing: Option<i64>,
    found: u64,
    ranks: u64,
    look_up: String,
    tuple_keys: u64,
    scratch: u64,
    scratch_bytes: u64,
}

impl Addresses {
    fn batch(&self) -> PyResult<Foreign> {
        Ok(Foreign {
            keys: self.keys,
            count: self.count,
            lane: lane(self.lane.as_deref())?,
            values: self.values,
            is_wide: self.is_wide,
            missing: self.missing.map(i64::cast_unsigned),
            found: self.found,
            ranks: self.ranks,
            look_up: look_up(&self.look_up)?,
            tuple_keys: self.tuple_keys,
        })
    }
}

#[pymethods]
impl DeviceTable {
    /// Copies a file to a device, and makes all that a batch needs.
    #[staticmethod]
    fn open(py: Python<'_>, table: &Table, ordinal: u32) -> PyResult<Self> {
        let index = Arc::clone(table.file()?);
        py.detach(|| {
            let gpu = device(ordinal)?;
            let table = GpuTable::of_shared(index, &gpu, Residence::Auto);
            let table = table.and_then(|table| table.prepare_foreign().map(|()| table));
            Ok(Self {
                table: ManuallyDrop::new(Arc::new(table.map_err(|error| failed(&error))?)),
                process: std::process::id(),
                is_recorded: AtomicBool::new(false),
                held: Mutex::default(),
                room: Mutex::default(),
            })
        })
    }

    /// Bytes of scratch memory that a batch needs.
    fn scratch_bytes(&self, count: u64, lane: Option<&str>, is_wide: bool) -> PyResult<u64> {
        let lane = self::lane(lane)?;
        Ok(self.table.foreign_bytes(&Foreign { count, lane, is_wide, ..Foreign::default() }))
    }

    /// Queues a batch between arrays of the caller on a stream of the caller's, by their addresses. `pleachdb` made the
    /// arrays for answers on this stream, and takes the addresses from living arrays.
    fn get(&self, stream: u64, batch: Addresses) -> PyResult<()> {
        self.check_process()?;
        let asked = batch.batch()?;
        // SAFETY: the caller, `pleachdb`, guarantees a stream of this device.
        let stream = unsafe { Stream::from_raw(self.table.gpu(), stream) };
        // SAFETY: the caller, `pleachdb`, guarantees arrays of these lengths, whose libraries free memory in the order
        // of this stream.
        unsafe { self.queue(&stream, &asked, (batch.scratch, batch.scratch_bytes)) }
    }

    /// Answers keys of a library that exchanges arrays by DLPack, on a stream of this table's. Returns arrays of the
    /// tuples' keys, of values and of presence, or of ranks instead of values.
    fn exchange<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        wanted: Wanted,
    ) -> PyResult<(Option<DeviceArray>, Option<DeviceArray>, Option<DeviceArray>)> {
        let this = slf.get();
        this.check_process()?;
        let gpu = this.table.gpu();
        let refused = |error: GpuError| failed(&error);
        let stream = Stream::new(gpu).map_err(refused)?;
        // The other library makes this stream wait for what it still computes.
        let options = PyDict::new(slf.py());
        options.set_item("stream", stream.raw())?;
        let taken = Taken::take(&keys.call_method("__dlpack__", (), Some(&options))?)?;
        let Place { address, count, lane } = taken.place()?;
        let array = |elements: Elements, bytes: u64| -> PyResult<DeviceArray> {
            let buffer = DeviceBuffer::new(gpu, count * bytes).map_err(refused)?;
            Ok(DeviceArray { buffer, count, elements, stream: stream.clone(), ready: None })
        };
        let (key_type, value_type) = (this.table.index().key_type(), this.table.index().value_type());
        let values = wanted
            .values
            .then(|| array(Elements::Numbers(value_lane(value_type)?), value_type.bytes() as u64));
        let ranks = wanted.ranks.then(|| array(Elements::Numbers(Lane::I64), 8));
        let tuple_keys =
            wanted.keys.then(|| array(Elements::Numbers(key_lane(key_type)?), key_type.bytes() as u64));
        let (mut values, ranks, mut tuple_keys) =
            (values.transpose()?, ranks.transpose()?, tuple_keys.transpose()?);
        let mut found = if wanted.ranks { None } else { Some(array(Elements::Bools, 1)?) };
        let place = |array: &Option<DeviceArray>| array.as_ref().map_or(0, |array| array.buffer.address());
        let batch = Foreign {
            keys: address,
            count,
            lane: Some(lane),
            values: place(&values),
            found: place(&found),
            ranks: place(&ranks),
            look_up: look_up(&wanted.look_up)?,
            tuple_keys: place(&tuple_keys),
            ..Foreign::default()
        };
        let scratch = DeviceBuffer::new(gpu, this.table.foreign_bytes(&batch)).map_err(refused)?;
        // SAFETY: the tensor and the scratch memory are held below until the mark is passed; the arrays of the answer
        // wait for their stream before they free their memory.
        let queued = unsafe { this.queue(&stream, &batch, (scratch.address(), scratch.bytes())) };
        let ready = stream.mark().map_err(refused)?;
        locked(&this.held).push(Held { ready, _used: (taken, scratch, stream.clone()) });
        queued?;
        values = values.or(ranks);
        for array in values.iter_mut().chain(&mut found).chain(&mut tuple_keys) {
            array.ready = Some(stream.mark().map_err(refused)?);
        }
        Ok((tuple_keys, values, found))
    }

    /// Answers keys of the host, which lie one after the other.
    fn find_host(
        &self,
        py: Python<'_>,
        keys: (usize, u64, String),
        values: (usize, u64),
        found: usize,
    ) -> PyResult<()> {
        let ((keys, count, lane), (values, value_bytes)) = (keys, values);
        self.check_process()?;
        let lane = self::lane(Some(&lane))?;
        py.detach(|| {
            let mut room = locked(&self.room);
            let key_bytes = lane.map_or(8, Lane::bytes);
            for first in (0..count).step_by(HOST_KEYS as usize) {
                let count = HOST_KEYS.min(count - first);
                // SAFETY: the caller, `pleachdb`, guarantees arrays of these lengths, which it holds.
                let (keys, values, found) = unsafe {
                    let at = first as usize;
                    let keys = (keys as *const u8).add(at * key_bytes as usize);
                    let values = (values as *mut u8).wrapping_add(at * value_bytes as usize);
                    (
                        std::slice::from_raw_parts(keys, (count * key_bytes) as usize),
                        std::slice::from_raw_parts_mut(
                            if value_bytes == 0 { std::ptr::dangling_mut() } else { values },
                            (count * value_bytes) as usize,
                        ),
                        std::slice::from_raw_parts_mut((found as *mut u8).add(at), count as usize),
                    )
                };
                self.host_piece(&mut room, keys, (count, lane), values, found)?;
            }
            Ok(())
        })
        .map_err(|error: GpuError| failed(&error))
    }
}

impl DeviceTable {
    fn host_piece(
        &self,
        room: &mut Option<(Stream, DeviceBuffer)>,
        keys: &[u8],
        (count, lane): (u64, Option<Lane>),
        values: &mut [u8],
        found: &mut [u8],
    ) -> Result<(), GpuError> {
        let gpu = self.table.gpu();
        let mut batch = Foreign { count, lane, ..Foreign::default() };
        let round = |bytes: usize| (bytes as u64).next_multiple_of(256);
        let scratch_bytes = self.table.foreign_bytes(&batch);
        let (keys_bytes, values_bytes, found_bytes) =
            (round(keys.len()), round(values.len()), round(found.len()));
        let needed = keys_bytes + values_bytes + found_bytes + scratch_bytes;
        if room.as_ref().is_none_or(|(_, buffer)| buffer.bytes() < needed) {
            *room = None;
            *room = Some((Stream::new(gpu)?, DeviceBuffer::new(gpu, needed)?));
        }
        let Some((stream, buffer)) = room else { return Ok(()) };
        let keys_at = buffer.part(0, keys.len() as u64);
        let values_at = buffer.part(keys_bytes, values.len() as u64);
        let found_at = buffer.part(keys_bytes + values_bytes, found.len() as u64);
        let scratch = buffer.part(keys_bytes + values_bytes + found_bytes, scratch_bytes);
        keys_at.copy_from_host(stream, keys)?;
        batch.keys = keys_at.address();
        batch.values = if values.is_empty() { 0 } else { values_at.address() };
        batch.found = found_at.address();
        // SAFETY: these parts have the lengths of the batch, and live until the stream was waited for.
        let queued = unsafe { self.table.get_foreign(stream, &batch, (scratch.address(), scratch_bytes)) };
        stream.synchronize()?;
        queued?;
        values_at.copy_to_host(stream, values)?;
        found_at.copy_to_host(stream, found)
    }
}

fn key_lane(key_type: KeyType) -> PyResult<Lane> {
    Ok(match key_type {
        KeyType::U32 => Lane::U32,
        KeyType::U64 => Lane::U64,
        KeyType::I32 => Lane::I32,
        KeyType::I64 => Lane::I64,
        KeyType::F64 => Lane::F64,
        KeyType::U128 | KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => {
            let text = format!("{key_type} keys do not fit an array on a device: give keys of the host");
            return Err(exception("TypesError", text));
        }
    })
}

fn value_lane(value_type: pleach::ValueType) -> PyResult<Lane> {
    use pleach::ValueType;
    Ok(match value_type {
        ValueType::U32 => Lane::U32,
        ValueType::U64 => Lane::U64,
        ValueType::I32 => Lane::I32,
        ValueType::I64 => Lane::I64,
        ValueType::F32 => Lane::F32,
        ValueType::F64 => Lane::F64,
        ValueType::None | ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => {
            let text = format!("{value_type} values do not fit an array on a device: give keys of the host");
            return Err(exception("TypesError", text));
        }
    })
}

/// An array of one dimension on a device, for libraries that take arrays by DLPack.
#[pyclass(frozen, module = "pleachdb._native")]
pub(crate) struct DeviceArray {
    buffer: DeviceBuffer,
    count: u64,
    elements: Elements,
    stream: Stream,
    /// The mark after which the elements are there.
    ready: Option<Event>,
}

impl Drop for DeviceArray {
    fn drop(&mut self) {
        // Its memory may be freed only when the work that writes it is done; a lost device does none.
        let _ = self.ready.as_ref().map(Event::wait);
    }
}

#[pymethods]
impl DeviceArray {
    fn __len__(&self) -> usize {
        self.count as usize
    }

    fn __dlpack_device__(&self) -> (i32, u32) {
        (crate::dlpack::CUDA, self.buffer.gpu().device().ordinal)
    }

    /// Gives the array to another library, whose stream waits until the elements are there.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, u32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (max_version, dl_device);
        if copy == Some(true) {
            return Err(pyo3::exceptions::PyBufferError::new_err("copies are not made"));
        }
        let gpu = self.buffer.gpu();
        if let Some(ready) = self.ready.as_ref().filter(|_| stream != Some(-1)) {
            // SAFETY: the other library guarantees its stream; None is the default one.
            let theirs = unsafe { Stream::from_raw(gpu, stream.unwrap_or(1).cast_unsigned()) };
            theirs.wait_for(ready).map_err(|error| failed(&error))?;
        }
        let owner = Box::new((self.buffer.clone(), self.stream.clone()));
        capsule(py, (self.buffer.address(), self.count), self.elements, gpu.device().ordinal, owner)
    }

    /// The array for libraries that take it by CUDA's array interface.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", (self.count,))?;
        interface.set_item("typestr", self.elements.typestr())?;
        interface.set_item("data", (self.buffer.address(), false))?;
        interface.set_item("version", 3)?;
        interface.set_item("strides", py.None())?;
        interface.set_item("stream", self.stream.raw())?;
        Ok(interface)
    }
}
