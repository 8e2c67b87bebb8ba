//! Allocator of the command: a failed allocation ends it in order.
//!
//! By default, Rust aborts on a failed allocation, with a signal, a core dump and unfinished files. Here the
//! command writes one sentence to standard error, removes unfinished files, and ends with the exit code of
//! operational failures. None of this allocates memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Exit code of operational failures.
const EXIT_CODE: i32 = 8;
/// Memory that is freed before anything is removed, in case the removal needs some.
const RESERVE: Layout = Layout::new::<[u64; 8 << 10]>();

static RESERVED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static IS_JSON: AtomicBool = AtomicBool::new(false);
/// The thread that ends the process: the address of its [`HERE`].
static ENDING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: Cell<u8> = const { Cell::new(0) };
}

/// The system's allocator, which ends the process in order if memory is exhausted.
pub struct Allocator;

fn given(at: *mut u8, bytes: usize) -> *mut u8 {
    if at.is_null() { refused(bytes) } else { at }
}

// SAFETY: all memory is from the system's allocator; a null pointer is never returned, the process ends
// instead.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees a layout whose size is not 0.
        given(unsafe { System.alloc(layout) }, layout.size())
    }
    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees that `at` was allocated here with this layout.
        unsafe { System.dealloc(at, layout) }
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees a layout whose size is not 0.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }
    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that `at` was allocated here with this layout, and a valid new size.
        given(unsafe { System.realloc(at, layout, bytes) }, bytes)
    }
}

/// Reserves memory for the end. Called once, at the start.
pub fn prepare() {
    // SAFETY: the size of the layout is not 0.
    let reserve = unsafe { System.alloc(RESERVE) };
    RESERVED.store(reserve, Ordering::Release);
}

/// Selects JSON for errors, from now on.
pub fn tell_as_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Maximum bytes of the line.
const LINE_BYTES: usize = 512;

/// A line that is written without allocating.
struct Line {
    bytes: [u8; LINE_BYTES],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let count = text.len().min(self.bytes.len() - self.used);
        self.bytes[self.used..self.used + count].copy_from_slice(&text.as_bytes()[..count]);
        self.used += count;
        Ok(())
    }
}

/// Returns the message for `bytes` that cannot be allocated.
fn line(bytes: usize, is_json: bool) -> Line {
    let mut line = Line { bytes: [0; LINE_BYTES], used: 0 };
    let advice = "give a smaller --memory, or raise the limit (ulimit -v, the container's)";
    // The line truncates what does not fit; writing to it does not fail.
    let _ = if is_json {
        writeln!(
            line,
            "{{\"schema\":\"pleach.error.v1\",\"code\":\"out-of-memory\",\"exit\":{EXIT_CODE},\"what\":\"out of \
             memory\",\"where\":\"{bytes} bytes were refused\",\"advice\":\"{advice}\",\"message\":\"out of memory: \
             {bytes} bytes were refused: {advice}\"}}"
        )
    } else {
        writeln!(line, "error: out of memory: {bytes} bytes were refused: {advice}")
    };
    line
}

/// Ends the process because `bytes` cannot be allocated.
#[cold]
#[inline(never)]
fn refused(bytes: usize) -> ! {
    let here = HERE.with(|here| ptr::from_ref(here) as usize);
    match ENDING.compare_exchange(0, here, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            let line = line(bytes, IS_JSON.load(Ordering::Relaxed));
            let reserve = RESERVED.swap(ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: the line owns its bytes, which are initialised; the reserve came from this allocator with
            // this layout, and the swap gives it to one thread.
            unsafe {
                libc::write(2, line.bytes.as_ptr().cast(), line.used);
                if !reserve.is_null() {
                    System.dealloc(reserve, RESERVE);
                }
            }
            // This waits for no lock that another thread may hold forever, nor for one of this thread.
            pleach_builder::remains::abandon();
        }
        // Memory failed during the removal: the rest is left to the next build, which removes it.
        Err(ending) if ending == here => {}
        Err(_) => loop {
            // SAFETY: the call takes no arguments. The thread that ends the process does not need this one.
            unsafe { libc::pause() };
        },
    }
    // SAFETY: the call takes a number, runs no destructor and does not return.
    unsafe { libc::_exit(EXIT_CODE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_whole() {
        for is_json in [false, true] {
            let line = line(usize::MAX, is_json);
            let text = std::str::from_utf8(&line.bytes[..line.used]).expect("text");
            assert!(text.ends_with('\n') && text.matches('\n').count() == 1, "{text}");
            assert!(text.contains("18446744073709551615 bytes were refused"), "{text}");
            if is_json {
                let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
                assert_eq!(value["code"], "out-of-memory");
                assert!(value["message"].as_str().is_some_and(|text| text.starts_with("out of memory: ")));
            }
        }
    }
}
