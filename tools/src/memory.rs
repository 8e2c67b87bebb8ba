//! The allocator of the command: memory that cannot be had ends it in order.
//!
//! Rust's answer to a failed allocation is to abort, with a signal, a core dump and whatever files were being made.
//! Here it is one sentence on standard error and the exit code of operational failures, and what was being made is
//! removed. All of that allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Exit code of operational failures.
const EXIT_CODE: i32 = 8;
/// Given back before anything is removed: what that may need after all.
const RESERVE: Layout = Layout::new::<[u64; 8 << 10]>();

static RESERVED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static IS_JSON: AtomicBool = AtomicBool::new(false);
/// The thread that ends the process: the address of its [`HERE`].
static ENDING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: Cell<u8> = const { Cell::new(0) };
}

/// The system's allocator, and an end in order where it has nothing left.
pub struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn given(at: *mut u8, bytes: usize) -> *mut u8 {
    if at.is_null() { refused(bytes) } else { at }
}

// SAFETY: memory is the system's; a null pointer never comes back, the process ends instead.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as our caller promises.
        given(unsafe { System.alloc(layout) }, layout.size())
    }
    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(at, layout) }
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as our caller promises.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }
    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as our caller promises.
        given(unsafe { System.realloc(at, layout, bytes) }, bytes)
    }
}

/// Puts memory aside for the end. Called once, at the start.
pub fn prepare() {
    // SAFETY: the layout has a size.
    let reserve = unsafe { System.alloc(RESERVE) };
    RESERVED.store(reserve, Ordering::Release);
}

/// Errors are told as JSON from now on.
pub fn tell_as_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Bytes of the longest line.
const LINE_BYTES: usize = 512;

/// A line that is written where no memory is.
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

/// What is said of `bytes` that cannot be had.
fn line(bytes: usize, is_json: bool) -> Line {
    let mut line = Line { bytes: [0; LINE_BYTES], used: 0 };
    let advice = "give a smaller --memory, or raise the limit (ulimit -v, the container's)";
    // A line takes what fits; writing to it does not fail.
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

/// Ends the process, for `bytes` cannot be had.
#[cold]
#[inline(never)]
fn refused(bytes: usize) -> ! {
    let here = HERE.with(|here| ptr::from_ref(here) as usize);
    match ENDING.compare_exchange(0, here, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            let line = line(bytes, IS_JSON.load(Ordering::Relaxed));
            let reserve = RESERVED.swap(ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: the bytes of the line are initialised and its own; what was put aside came from this allocator
            // with this layout, and the swap gives it to one thread.
            unsafe {
                libc::write(2, line.bytes.as_ptr().cast(), line.used);
                if !reserve.is_null() {
                    System.dealloc(reserve, RESERVE);
                }
            }
            // It waits for no lock that another thread may hold for ever, nor one of ours.
            pleach_builder::remains::abandon();
        }
        // While removing: then it is left to the next build, which sweeps.
        Err(ending) if ending == here => {}
        Err(_) => loop {
            // SAFETY: it takes nothing. The thread that ends the process does not need this one.
            unsafe { libc::pause() };
        },
    }
    // SAFETY: it takes a number, runs no destructor and does not return.
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
