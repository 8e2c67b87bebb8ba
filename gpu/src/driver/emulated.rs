//! A device that is a CPU: it runs the kernels' own text as C++, under sanitizers if the process has them.
//!
//! A program is compiled by g++ after the header `emulate/cuda_shim.hpp`, which makes a fiber of each thread
//! and checks what CUDA leaves undefined. The library is stored in a cache folder and named by a hash of all
//! its inputs. If the process was started with AddressSanitizer loaded (`LD_PRELOAD`), the library is
//! instrumented, and every device buffer is host memory of exactly its size, so that an access outside of it
//! is stopped. New memory holds 0xA5.
//!
//! Queued work is done at once, on the caller's thread. A launch that breaks a rule, or a limit of a real
//! device, is an error with the thread and the line. Streams remember whether their work is being recorded.
//!
//! [`TextKernel`] runs a text that is not a part of this crate; tests use it to try planted faults.

use super::{Driver, Handle, LaunchShape, Limits, Program};
use crate::kernel::cache;
use crate::kernel::row::whole_text;
use crate::{Device, GpuError, Unavailable};
use libloading::os::unix::{Library, Symbol};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Order in which threads of a block run between two barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneOrder {
    /// From the first thread to the last.
    Ascending,
    /// From the last thread to the first.
    Descending,
    /// Shuffled in each round, from this seed.
    Random(u64),
}

/// Text of the headers that precede each program.
const HEADERS: [(&str, &str); 2] = [
    ("fibers.hpp", include_str!("../../emulate/fibers.hpp")),
    ("cuda_shim.hpp", include_str!("../../emulate/cuda_shim.hpp")),
];
/// Options of every program, as the header requires.
const OPTIONS: [&str; 15] = [
    "-std=gnu++17",
    "-O1",
    "-g1",
    "-fPIC",
    "-shared",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-weak",
    "-fno-omit-frame-pointer",
    "-fno-thread-jumps",
    "-fno-tree-ch",
    "-fno-tree-dominator-opts",
    "-DPLEACH_PATHS",
    "-Wno-unknown-pragmas",
    "-Wno-attributes",
];
/// Options if the process has the sanitizers' run-time.
const SANITIZERS: [&str; 3] =
    ["-fsanitize=address,undefined", "-fsanitize-sections=pleach_shared", "-fno-sanitize-recover=all"];

/// Bytes of dynamic shared memory that a function may use without a request for more.
const SHARED_BYTES_UNASKED: u32 = 48 << 10;
/// Content of new memory.
const FRESH: u8 = 0xA5;
/// Alignment of device memory.
const ALIGNMENT: usize = 256;

/// `EmulatedLaunch` of the header.
#[repr(C)]
struct EmulatedLaunch {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared_bytes: u32,
    order: u32,
    seed: u64,
}

type Run = unsafe extern "C" fn(*const EmulatedLaunch, *mut *mut c_void, *mut c_char, usize) -> c_int;
type ShareStacks = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type ArgumentBytes = unsafe extern "C" fn(usize) -> usize;
type Constant = unsafe extern "C" fn() -> *mut c_void;

/// The device.
#[derive(Debug)]
pub(crate) struct Emulated {
    device: Device,
    order: LaneOrder,
    launches: AtomicU64,
    /// Number of operations before it is lost.
    left: AtomicU64,
    state: Mutex<State>,
}

/// Objects that the handles refer to.
#[derive(Debug, Default)]
struct State {
    last_handle: Handle,
    memory: HashMap<u64, Layout>,
    /// Streams, and the recording that takes their work.
    streams: HashMap<Handle, Option<Handle>>,
    recordings: HashMap<Handle, Vec<Work>>,
    events: HashMap<Handle, Event>,
    modules: HashMap<Handle, Arc<Module>>,
    functions: HashMap<Handle, Function>,
    graphs: HashMap<Handle, Arc<Vec<Work>>>,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    is_timed: bool,
    happened: Option<Instant>,
    /// The recording in which it was recorded.
    recording: Option<Handle>,
}

/// A loaded library.
struct Module {
    library: Library,
}

impl Module {
    /// Loads a library that [`library_of`] made.
    fn open(path: &Path) -> Result<Self, GpuError> {
        let failed = |error: libloading::Error| refused("loading a kernel", error.to_string());
        // SAFETY: the library was made from this crate's headers and a kernel's text, which have no
        // initialisers with effects.
        let library = unsafe { Library::new(path.as_os_str()) }.map_err(failed)?;
        // SAFETY: the header defines this function with this type.
        let share: Symbol<ShareStacks> = unsafe { library.get(b"pleach_share_stacks") }.map_err(failed)?;
        // All programs of the process take their stacks from the pool of the first one.
        static POOL: Mutex<usize> = Mutex::new(0);
        let mut pool = lock(&POOL);
        // SAFETY: the argument is 0, or was returned by another program; this module has not launched
        // anything of this one.
        *pool = unsafe { share(*pool as *mut c_void) } as usize;
        drop(pool);
        Ok(Self { library })
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").finish_non_exhaustive()
    }
}

/// An entry of a library.
#[derive(Clone, Debug)]
struct Function {
    module: Arc<Module>,
    run: Run,
    argument_bytes: Vec<usize>,
    shared_bytes_max: u32,
}

/// Queued work, as stored in a recording.
#[derive(Clone, Debug)]
enum Work {
    /// Copies bytes from one address to another, on either side.
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Fill {
        at: u64,
        byte: u8,
        bytes: usize,
    },
    Launch {
        function: Function,
        shape: LaunchShape,
        arguments: Vec<Vec<u128>>,
    },
}

fn refused(call: &'static str, cause: impl Into<String>) -> GpuError {
    GpuError::Driver { call, cause: cause.into() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn new_handle(&mut self) -> Handle {
        self.last_handle += 1;
        self.last_handle
    }
}

impl Emulated {
    /// Creates a device that runs threads in that order.
    pub(crate) fn new(order: LaneOrder) -> Result<Self, GpuError> {
        compiler_version()?;
        let device = Device {
            ordinal: 0,
            name: "emulated".to_owned(),
            memory_bytes: 8 << 30,
            l2_bytes: 4 << 20,
            compute: (8, 9),
            multiprocessors: 2,
            driver: (12, 0),
            nvrtc: false,
        };
        let (launches, left) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Ok(Self { device, order, launches, left, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Counts an operation; fails once the device is lost.
    fn alive(&self, call: &'static str) -> Result<(), GpuError> {
        let left = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(1) };
        let counted = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        counted.map(|_| ()).map_err(|_| GpuError::Lost { call, cause: "as was asked for".to_owned() })
    }

    /// Does work of a stream, or records it.
    ///
    /// # Safety
    /// As the methods of [`Driver`] require for that work.
    unsafe fn queue(&self, stream: Handle, call: &'static str, work: Work) -> Result<(), GpuError> {
        self.alive(call)?;
        {
            let mut state = self.state();
            let recording = match state.streams.get(&stream) {
                Some(&recording) => recording,
                None if stream == 0 => None,
                None => return Err(refused(call, "no such stream")),
            };
            if let Some(recording) = recording {
                state.recordings.entry(recording).or_default().push(work);
                return Ok(());
            }
        }
        // SAFETY: the caller guarantees the addresses and handles of the work, by the contract of `Driver`.
        unsafe { self.run(call, &work) }
    }

    /// Does work now.
    ///
    /// # Safety
    /// As the methods of [`Driver`] require for that work.
    unsafe fn run(&self, call: &'static str, work: &Work) -> Result<(), GpuError> {
        match work {
            Work::Copy { to, from, bytes } => {
                // SAFETY: the caller guarantees that both are arrays of that many bytes; device memory is
                // host memory here.
                unsafe { std::ptr::copy(*from as *const u8, *to as *mut u8, *bytes) };
                Ok(())
            }
            Work::Fill { at, byte, bytes } => {
                // SAFETY: the caller guarantees an array of that many bytes; device memory is host memory
                // here.
                unsafe { std::ptr::write_bytes(*at as *mut u8, *byte, *bytes) };
                Ok(())
            }
            Work::Launch { function, shape, arguments } => {
                let mut pointers: Vec<*mut c_void> =
                    arguments.iter().map(|argument| argument.as_ptr().cast_mut().cast()).collect();
                // SAFETY: the values were copied from arguments that, by the caller's guarantee, have the
                // entry's types.
                unsafe { self.launch_now(call, function, *shape, &mut pointers) }
            }
        }
    }

    /// Launches an entry now.
    ///
    /// # Safety
    /// As [`Driver::launch`].
    unsafe fn launch_now(
        &self,
        call: &'static str,
        function: &Function,
        shape: LaunchShape,
        arguments: &mut [*mut c_void],
    ) -> Result<(), GpuError> {
        let number = self.launches.fetch_add(1, Ordering::Relaxed);
        let (order, seed) = match self.order {
            LaneOrder::Ascending => (0, 0),
            LaneOrder::Descending => (1, 0),
            LaneOrder::Random(seed) => (2, seed.wrapping_add(number)),
        };
        let launch = EmulatedLaunch {
            grid: [shape.blocks, 1, 1],
            block: [shape.threads, 1, 1],
            dynamic_shared_bytes: shape.shared_bytes,
            order,
            seed,
        };
        let mut message = [0u8; 1024];
        // SAFETY: `function` keeps the library. The caller guarantees as many arguments as the entry takes,
        // of its types; the message has that much room and ends in a zero byte.
        let status = unsafe {
            (function.run)(
                &raw const launch,
                arguments.as_mut_ptr(),
                message.as_mut_ptr().cast(),
                message.len(),
            )
        };
        if status == 0 {
            return Ok(());
        }
        let message = CStr::from_bytes_until_nul(&message).unwrap_or_default();
        Err(refused(call, message.to_string_lossy()))
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (&address, &layout) in &state.memory {
            // SAFETY: `allocate` allocated it with that layout, and it has not been freed.
            unsafe { System.dealloc(address as *mut u8, layout) };
        }
    }
}

impl Driver for Emulated {
    fn device(&self) -> &Device {
        &self.device
    }

    fn lose_after(&self, works: u64) {
        self.left.store(works, Ordering::Relaxed);
    }

    fn limits(&self) -> Limits {
        Limits { shared_bytes_max: 99 << 10, registers_read_only: true, is_integrated: false }
    }

    fn free_bytes(&self) -> Result<u64, GpuError> {
        let used: usize = self.state().memory.values().map(Layout::size).sum();
        Ok(self.device.memory_bytes.saturating_sub(used as u64))
    }

    fn allocate(&self, bytes: u64) -> Result<u64, GpuError> {
        let full = || GpuError::OutOfMemory { call: "allocating memory" };
        if bytes == 0 || bytes > self.free_bytes()? {
            return Err(full());
        }
        let bytes = usize::try_from(bytes).map_err(|_| full())?;
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| full())?;
        // SAFETY: the size is not 0.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() {
            return Err(full());
        }
        // SAFETY: the memory was allocated above with that size.
        unsafe { memory.write_bytes(FRESH, bytes) };
        let address = memory as usize as u64;
        self.state().memory.insert(address, layout);
        Ok(address)
    }

    unsafe fn free(&self, address: u64) {
        let layout = self.state().memory.remove(&address);
        if let Some(layout) = layout {
            // SAFETY: `allocate` allocated it with that layout; it was in the table, so it has not been
            // freed.
            unsafe { System.dealloc(address as *mut u8, layout) };
        }
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<(*mut u8, u64), GpuError> {
        let address = self.allocate(bytes as u64)?;
        Ok((address as *mut u8, address))
    }

    unsafe fn free_pinned(&self, host: *mut u8) {
        // SAFETY: the caller guarantees the address, by the contract of `Driver`; pinned memory is device
        // memory here.
        unsafe { self.free(host as usize as u64) };
    }

    unsafe fn register_read_only(&self, host: *const u8, _bytes: usize) -> Result<u64, GpuError> {
        Ok(host as usize as u64)
    }

    unsafe fn unregister(&self, _host: *const u8) {}

    fn synchronize_all(&self) -> Result<(), GpuError> {
        Ok(())
    }

    fn new_stream(&self) -> Result<Handle, GpuError> {
        let mut state = self.state();
        let stream = state.new_handle();
        state.streams.insert(stream, None);
        Ok(stream)
    }

    unsafe fn free_stream(&self, stream: Handle) {
        self.state().streams.remove(&stream);
    }

    unsafe fn synchronize(&self, stream: Handle) -> Result<(), GpuError> {
        let call = "waiting for its work";
        self.alive(call)?;
        match self.state().streams.get(&stream) {
            Some(None) => Ok(()),
            Some(Some(_)) => Err(refused(call, "its work is being recorded")),
            None if stream == 0 => Ok(()),
            None => Err(refused(call, "no such stream")),
        }
    }

    unsafe fn copy_in(&self, stream: Handle, to: u64, from: *const u8, bytes: usize) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees both addresses, by the contract of `Driver`.
        unsafe { self.copy(stream, to, from as usize as u64, bytes) }
    }

    unsafe fn copy_out(&self, stream: Handle, to: *mut u8, from: u64, bytes: usize) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees both addresses, by the contract of `Driver`.
        unsafe { self.copy(stream, to as usize as u64, from, bytes) }
    }

    unsafe fn copy(&self, stream: Handle, to: u64, from: u64, bytes: usize) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees both addresses, by the contract of `Driver`.
        unsafe { self.queue(stream, "copying", Work::Copy { to, from, bytes }) }
    }

    unsafe fn fill(&self, stream: Handle, at: u64, byte: u8, bytes: usize) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees the address, by the contract of `Driver`.
        unsafe { self.queue(stream, "filling memory", Work::Fill { at, byte, bytes }) }
    }

    fn new_event(&self, is_timed: bool) -> Result<Handle, GpuError> {
        let mut state = self.state();
        let event = state.new_handle();
        state.events.insert(event, Event { is_timed, happened: None, recording: None });
        Ok(event)
    }

    unsafe fn free_event(&self, event: Handle) {
        self.state().events.remove(&event);
    }

    unsafe fn record(&self, event: Handle, stream: Handle) -> Result<(), GpuError> {
        let mut state = self.state();
        let recording = state.streams.get(&stream).copied().flatten();
        let event = state.events.get_mut(&event).ok_or_else(|| refused("an event", "no such event"))?;
        event.recording = recording;
        event.happened = recording.is_none().then(Instant::now);
        Ok(())
    }

    unsafe fn has_happened(&self, event: Handle) -> Result<bool, GpuError> {
        // SAFETY: the caller guarantees the event, by the contract of `Driver`.
        unsafe { self.wait(event) }.map(|()| true)
    }

    unsafe fn wait(&self, event: Handle) -> Result<(), GpuError> {
        let call = "waiting for its work";
        self.alive(call)?;
        match self.state().events.get(&event) {
            Some(event) if event.recording.is_none() => Ok(()),
            Some(_) => Err(refused(call, "its work is being recorded")),
            None => Err(refused(call, "no such event")),
        }
    }

    unsafe fn wait_on(&self, stream: Handle, event: Handle) -> Result<(), GpuError> {
        let mut state = self.state();
        let call = "ordering streams";
        let event = *state.events.get(&event).ok_or_else(|| refused(call, "no such event"))?;
        if let Some(recording) = event.recording {
            // Work that waits for recorded work is recorded, too.
            *state.streams.get_mut(&stream).ok_or_else(|| refused(call, "no such stream"))? = Some(recording);
        }
        Ok(())
    }

    unsafe fn elapsed_ms(&self, start: Handle, end: Handle) -> Result<f32, GpuError> {
        let state = self.state();
        let time = |event| match state.events.get(&event) {
            Some(Event { is_timed: true, happened: Some(time), .. }) => Ok(*time),
            _ => Err(refused("an event", "it was not recorded, or has no time")),
        };
        let (start, end) = (time(start)?, time(end)?);
        Ok(end.saturating_duration_since(start).as_secs_f32() * 1000.0)
    }

    fn load(&self, program: &Program<'_>) -> Result<Handle, GpuError> {
        let path = library_of(program.name, program.text, program.defines, program.entries)?;
        let loaded = if program.text.contains("PLEACH_CONSTANT(") {
            // Each device has constant memory of its own, but a library that is opened twice has it only
            // once.
            let failed = |error: std::io::Error| refused("loading a kernel", error.to_string());
            let own = tempfile::Builder::new().suffix(".so").tempfile().map_err(failed)?;
            std::fs::copy(&path, own.path()).map_err(failed)?;
            Module::open(own.path())?
        } else {
            Module::open(&path)?
        };
        let mut state = self.state();
        let module = state.new_handle();
        state.modules.insert(module, Arc::new(loaded));
        Ok(module)
    }

    unsafe fn unload(&self, module: Handle) {
        let mut state = self.state();
        if let Some(module) = state.modules.remove(&module) {
            state.functions.retain(|_, function| !Arc::ptr_eq(&function.module, &module));
        }
    }

    unsafe fn function(&self, module: Handle, entry: &'static str) -> Result<Handle, GpuError> {
        let call = "finding a kernel";
        let mut state = self.state();
        let module = Arc::clone(state.modules.get(&module).ok_or_else(|| refused(call, "no such module"))?);
        // SAFETY: the header defines both functions with these types for each entry.
        let (run, bytes): (Symbol<Run>, Symbol<ArgumentBytes>) = unsafe {
            let name = format!("emulate_{entry}");
            let run = module.library.get(name.as_bytes());
            let name = format!("emulate_bytes_{entry}");
            let bytes = module.library.get(name.as_bytes());
            let missing = |error: libloading::Error| refused(call, error.to_string());
            (run.map_err(missing)?, bytes.map_err(missing)?)
        };
        // SAFETY: the header defines the function with this type; it reads an array of its own.
        let argument_bytes = (0..).map(|at| unsafe { bytes(at) }).take_while(|&bytes| bytes > 0).collect();
        let run = *run;
        let function = state.new_handle();
        let shared_bytes_max = SHARED_BYTES_UNASKED;
        state.functions.insert(function, Function { module, run, argument_bytes, shared_bytes_max });
        Ok(function)
    }

    unsafe fn constant(&self, module: Handle, name: &'static str) -> Result<u64, GpuError> {
        let call = "finding constant memory";
        let state = self.state();
        let module = state.modules.get(&module).ok_or_else(|| refused(call, "no such module"))?;
        let missing = |error: libloading::Error| refused(call, error.to_string());
        let name = format!("emulate_constant_{name}");
        // SAFETY: the header defines this function with this type.
        let address: Symbol<Constant> = unsafe { module.library.get(name.as_bytes()) }.map_err(missing)?;
        // SAFETY: the function returns the address of a static array.
        Ok(unsafe { address() } as usize as u64)
    }

    unsafe fn allow_shared(&self, function: Handle, bytes: u32) -> Result<(), GpuError> {
        let call = "requesting shared memory";
        if bytes > self.limits().shared_bytes_max {
            return Err(refused(call, format!("{bytes} bytes are too many")));
        }
        let mut state = self.state();
        let function = state.functions.get_mut(&function).ok_or_else(|| refused(call, "no such kernel"))?;
        function.shared_bytes_max = bytes.max(SHARED_BYTES_UNASKED);
        Ok(())
    }

    unsafe fn blocks_at_once(
        &self,
        _function: Handle,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, GpuError> {
        // A small number, so that small batches take several rounds of a grid.
        let by_shared = (100 << 10) / (shared_bytes + 1024);
        Ok((1536 / threads.max(1)).min(by_shared).min(2))
    }

    unsafe fn launch(
        &self,
        stream: Handle,
        function: Handle,
        shape: LaunchShape,
        arguments: &mut [*mut c_void],
    ) -> Result<(), GpuError> {
        let call = "launching a kernel";
        let function = self.state().functions.get(&function).cloned();
        let function = function.ok_or_else(|| refused(call, "no such kernel"))?;
        if arguments.len() != function.argument_bytes.len() {
            return Err(refused(call, format!("{} arguments are not what it takes", arguments.len())));
        }
        if shape.shared_bytes > function.shared_bytes_max {
            return Err(refused(
                call,
                format!("{} bytes of shared memory were not asked for", shape.shared_bytes),
            ));
        }
        let copies = arguments.iter().zip(&function.argument_bytes).map(|(&from, &bytes)| {
            let mut copy = vec![0u128; bytes.div_ceil(16)];
            // SAFETY: the caller guarantees that the argument has as many bytes as the entry's parameter; the
            // copy has at least as many.
            unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), copy.as_mut_ptr().cast(), bytes) };
            copy
        });
        let arguments = copies.collect();
        // SAFETY: the caller guarantees the memory that the arguments describe, by the contract of `Driver`.
        unsafe { self.queue(stream, call, Work::Launch { function, shape, arguments }) }
    }

    unsafe fn begin_capture(&self, stream: Handle) -> Result<(), GpuError> {
        let mut state = self.state();
        let recording = state.new_handle();
        match state.streams.get_mut(&stream) {
            Some(taken @ None) => *taken = Some(recording),
            _ => return Err(refused("recording work", "no such stream, or it is being recorded")),
        }
        state.recordings.insert(recording, Vec::new());
        Ok(())
    }

    unsafe fn is_capturing(&self, stream: Handle) -> Result<bool, GpuError> {
        Ok(self.state().streams.get(&stream).copied().flatten().is_some())
    }

    unsafe fn end_capture(&self, stream: Handle) -> Result<Handle, GpuError> {
        let mut state = self.state();
        let recording = state.streams.get(&stream).copied().flatten();
        let recording = recording.ok_or_else(|| refused("recording work", "nothing is being recorded"))?;
        state.streams.values_mut().filter(|taken| **taken == Some(recording)).for_each(|taken| *taken = None);
        let work = state.recordings.remove(&recording).unwrap_or_default();
        let graph = state.new_handle();
        state.graphs.insert(graph, Arc::new(work));
        Ok(graph)
    }

    unsafe fn launch_graph(&self, graph: Handle, stream: Handle) -> Result<(), GpuError> {
        let call = "running recorded work";
        let work =
            self.state().graphs.get(&graph).cloned().ok_or_else(|| refused(call, "no such recording"))?;
        // SAFETY: the caller guarantees that the memory of the recorded work is alive, by the contract of
        // `Driver`.
        work.iter().try_for_each(|work| unsafe { self.queue(stream, call, work.clone()) })
    }

    unsafe fn free_graph(&self, graph: Handle) {
        self.state().graphs.remove(&graph);
    }
}

/// Returns the version that g++ prints.
fn compiler_version() -> Result<&'static str, Unavailable> {
    static VERSION: OnceLock<Option<String>> = OnceLock::new();
    let ask = || {
        let output = compiler().arg("--version").output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
    };
    let missing = || Unavailable { missing: "g++ is not installed, which compiles kernels for a CPU".into() };
    VERSION.get_or_init(ask).as_deref().ok_or_else(missing)
}

/// Returns the compiler, without the run-time that this process may have been started with.
fn compiler() -> Command {
    let mut command = Command::new("g++");
    command.env_remove("LD_PRELOAD");
    command
}

/// Returns true if this process has the sanitizers' run-time, without which an instrumented library cannot be
/// loaded.
fn is_sanitized() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    // SAFETY: the symbol is looked up, and not used.
    *FOUND.get_or_init(|| unsafe { Library::this().get::<*const u8>(b"__asan_init").is_ok() })
}

/// Returns the environment with which a process must be started so that sanitizers watch kernels. Returns
/// `None` if g++ has none: prints that, or panics if the variable `PLEACH_REQUIRE_EMULATION` is 1.
#[doc(hidden)]
#[must_use]
pub fn sanitizer_environment() -> Option<[(&'static str, String); 3]> {
    let asked = compiler().arg("-print-file-name=libasan.so").output();
    let path = asked.ok().map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let Some(path) = path.filter(|path| path.is_absolute() && path.exists()) else {
        let missing = "g++ with AddressSanitizer is not installed, which runs kernels on a CPU";
        assert!(std::env::var_os("PLEACH_REQUIRE_EMULATION").is_none_or(|value| value != "1"), "{missing}");
        eprintln!("SKIPPED: {missing}");
        return None;
    };
    Some([
        ("LD_PRELOAD", path.to_string_lossy().into_owned()),
        ("ASAN_OPTIONS", "detect_leaks=0".to_owned()),
        ("UBSAN_OPTIONS", "print_stacktrace=1".to_owned()),
    ])
}

/// Returns the library of a program, compiled if it is not in the cache.
fn library_of(
    name: &'static str,
    text: &str,
    defines: &[(&'static str, u64)],
    entries: &[&'static str],
) -> Result<PathBuf, GpuError> {
    let mut options: Vec<String> = OPTIONS.map(str::to_owned).to_vec();
    if is_sanitized() {
        options.extend(SANITIZERS.map(str::to_owned));
    }
    options.extend(defines.iter().map(|(name, number)| format!("-D{name}={number}")));
    let mut program = format!("#include \"cuda_shim.hpp\"\n{text}\n#line 1 \"entries\"\n");
    program.extend(entries.iter().map(|entry| format!("PLEACH_ENTRY({entry})\n")));
    let whole = format!("{}{}{program}", HEADERS[0].1, HEADERS[1].1);
    let key = cache::key(&whole, &options, compiler_version()?);
    // One thread of this process compiles a program, the others wait for it.
    static UNDER_WAY: Mutex<Option<HashMap<String, Arc<Mutex<()>>>>> = Mutex::new(None);
    let turn = Arc::clone(lock(&UNDER_WAY).get_or_insert_default().entry(key.clone()).or_default());
    let _turn = lock(&turn);
    let failed = |log: String| GpuError::Compile { kernel: name, log };
    let folder = cache::folder().map_or_else(std::env::temp_dir, |folder| folder.join("emulated"));
    let path = folder.join(format!("{key}.so"));
    if path.is_file() {
        return Ok(path);
    }
    compile(&folder, &path, &program, &options).map_err(failed)?;
    Ok(path)
}

/// Compiles a program to a library at that path, which is complete or absent.
fn compile(folder: &Path, path: &Path, program: &str, options: &[String]) -> Result<(), String> {
    let write = || {
        std::fs::create_dir_all(folder)?;
        let made = tempfile::tempdir_in(folder)?;
        for (name, text) in HEADERS {
            std::fs::write(made.path().join(name), text)?;
        }
        std::fs::write(made.path().join("program.cpp"), program)?;
        Ok(made)
    };
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    let made = write().map_err(said)?;
    let output = compiler()
        .current_dir(made.path())
        .args(options)
        .args(["program.cpp", "-o", "program.so"])
        .output()
        .map_err(|error| format!("g++: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    std::fs::rename(made.path().join("program.so"), path).map_err(said)
}

/// A kernel's text that is not a part of this crate: runs only on an emulated device, after `common.cuh`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct TextKernel<'a> {
    /// Name, for messages.
    pub name: &'static str,
    /// Text of the kernel.
    pub text: &'a str,
    /// Numbers that it is compiled for; WORD_BYTES and VALUE_BYTES are among them.
    pub defines: &'a [(&'static str, u64)],
    /// Name of the entry.
    pub entry: &'static str,
}

impl TextKernel<'_> {
    /// Launches the kernel once.
    ///
    /// # Safety
    /// `arguments` must point to values of the entry's parameter types, which describe memory of the host.
    ///
    /// # Errors
    /// [`GpuError::Compile`] if the text does not compile, [`GpuError::Driver`] with the rule that the launch
    /// broke.
    pub unsafe fn run(
        &self,
        order: LaneOrder,
        blocks: u32,
        threads: u32,
        shared_bytes: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<(), GpuError> {
        let driver = Emulated::new(order)?;
        let name = self.name;
        let text = whole_text(&[], (name, self.text));
        let path = library_of(name, &text, self.defines, &[self.entry])?;
        driver.state().modules.insert(1, Arc::new(Module::open(&path)?));
        driver.state().last_handle = 1;
        let shape = LaunchShape { blocks, threads, shared_bytes };
        // SAFETY: the module was loaded above; the caller guarantees the arguments.
        unsafe {
            let function = driver.function(1, self.entry)?;
            driver.allow_shared(function, shared_bytes)?;
            driver.launch(0, function, shape, arguments)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Batch, Columns};

    /// Doubles numbers; a block past the end does nothing.
    const TEXT: &str = "extern \"C\" __global__ void twice(u32* at, u32 count) {\n\
                        u32 i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                        if (i < count) at[i] = 2 * at[i];\n}\n";

    #[test]
    fn unit_tests_of_this_crate_pass_under_sanitizers() {
        let Some(environment) = sanitizer_environment() else { return };
        let program = std::env::current_exe().expect("this program");
        let output = Command::new(program).arg("is_the_device").envs(environment).output().expect("starts");
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, complained) = (said(&output.stdout), said(&output.stderr));
        assert!(output.status.success() && !said.contains(" 0 passed"), "{said}\n{complained}");
    }

    #[test]
    fn recorded_work_runs_when_it_is_launched() {
        let Ok(driver) = Emulated::new(LaneOrder::Ascending) else {
            eprintln!("SKIPPED: no g++");
            return;
        };
        let text = whole_text(&[], ("twice", TEXT));
        let [batch, columns] = [size_of::<Batch>(), size_of::<Columns>()].map(|bytes| bytes as u64);
        let defines =
            [("WORD_BYTES", 4), ("VALUE_BYTES", 4), ("BYTES_OF_BATCH", batch), ("BYTES_OF_COLUMNS", columns)];
        let program = Program { name: "twice", text: &text, defines: &defines, entries: &["twice"] };
        let numbers: Vec<u32> = (0..100).collect();
        let mut found = vec![0u32; 100];
        // SAFETY: the buffer holds 100 numbers, and all handles are alive until the end.
        unsafe {
            let module = driver.load(&program).expect("compiles");
            let function = driver.function(module, "twice").expect("is there");
            assert!(driver.function(module, "thrice").is_err());
            let (stream, other) = (driver.new_stream().expect("new"), driver.new_stream().expect("new"));
            let buffer = driver.allocate(400).expect("fits");
            let event = driver.new_event(true).expect("new");
            driver.begin_capture(stream).expect("begins");
            driver.copy_in(stream, buffer, numbers.as_ptr().cast(), 400).expect("recorded");
            driver.record(event, stream).expect("recorded");
            assert!(driver.synchronize(stream).is_err() && driver.wait(event).is_err());
            driver.wait_on(other, event).expect("recorded");
            {
                let (mut address, mut count) = (buffer, 100u32);
                let mut arguments = [(&raw mut address).cast(), (&raw mut count).cast()];
                let shape = LaunchShape { blocks: 4, threads: 32, shared_bytes: 0 };
                driver.launch(other, function, shape, &mut arguments).expect("recorded");
                let large = LaunchShape { shared_bytes: 64 << 10, ..shape };
                assert!(driver.launch(other, function, large, &mut arguments).is_err());
                assert!(driver.launch(other, function, shape, &mut arguments[..1]).is_err());
            }
            driver.copy_out(other, found.as_mut_ptr().cast(), buffer, 400).expect("recorded");
            let graph = driver.end_capture(stream).expect("ends");
            assert!(found.iter().all(|&number| number == 0));
            driver.launch_graph(graph, stream).expect("runs");
            assert!(found.iter().zip(&numbers).all(|(&found, &number)| found == 2 * number));
            driver.fill(stream, buffer, 1, 4).expect("runs");
            driver.copy_out(stream, found.as_mut_ptr().cast(), buffer, 8).expect("runs");
            assert_eq!(found[..2], [0x0101_0101, 2]);
            driver.record(event, stream).expect("recorded");
            assert!(driver.elapsed_ms(event, event).is_ok_and(|time| time == 0.0));
            driver.synchronize(other).expect("idle");
            driver.free_graph(graph);
            driver.free_event(event);
            driver.free(buffer);
            driver.unload(module);
            driver.free_stream(stream);
            assert!(driver.synchronize(stream).is_err());
        }
        assert_eq!(driver.free_bytes().expect("known"), driver.device().memory_bytes);
        assert!(driver.allocate(u64::MAX).is_err());
    }
}
