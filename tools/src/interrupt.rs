//! Ctrl-C and SIGTERM: the first one stops any command within a second, a second one at once; nothing is left
//! behind.
//!
//! Without a [`Guard`] the process ends at once with 130. While a guard lives, the signal first sets a flag:
//! the command notices, removes what it made, and ends with [`crate::failure::Failure::Interrupted`]. If it
//! does not notice in time (it waits for a pipe that nobody writes, or for a disk), a separate thread removes
//! what [`remains`] knows of, prints the one line and ends the process.

use crate::failure;
use pleach_builder::remains;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

static GUARDS: AtomicUsize = AtomicUsize::new(0);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Set by the thread that prints the last line.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Exit code of an interrupted command.
const EXIT_CODE: i32 = 130;
/// Time that a command has to notice.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time between two questions whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Time limit for the last line: standard error may be a pipe that is full.
const LINE_PATIENCE: Duration = Duration::from_millis(200);

/// Installs the handler. Where the system refuses, signals keep their usual effect.
///
/// Also, a file size limit becomes an error of the write that meets it, like a full disk, and no
/// longer kills the process with its temporary files in place.
pub fn install() {
    // SAFETY: the system allows any disposition for this signal; no other thread runs yet, and no handler is
    // involved.
    #[cfg(unix)]
    let hangup = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::signal(libc::SIGHUP, libc::SIG_IGN)
    };
    // If no thread can be started, caught signals would not be noticed: they keep their usual effect.
    #[cfg(unix)]
    if ctrlc::set_handler(heard).is_err() {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: the system guarantees that a signal may get its usual effect; no handler is involved.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    // Under `nohup` the process must continue.
    #[cfg(unix)]
    if hangup == libc::SIG_IGN {
        // SAFETY: the system allows a signal to be ignored, as it was before; no handler is involved.
        unsafe {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
        }
    }
}

/// Handles a signal.
fn heard() {
    let is_first = !INTERRUPTED.swap(true, Ordering::SeqCst);
    if !is_first || GUARDS.load(Ordering::SeqCst) == 0 {
        end();
    }
    let late = || {
        thread::sleep(PATIENCE);
        end()
    };
    // Without another thread this one waits, and notices a second signal only afterwards.
    if thread::Builder::new().spawn(late).is_err() {
        late();
    }
}

/// Ends the process, whatever its threads are doing.
fn end() -> ! {
    if claim() {
        say(failure::interrupted(&remains::abandon()));
    }
    // SAFETY: `_exit` ends the process as a signal would: it runs no handler and no destructor beside the
    // threads that are still at work, which cannot be waited for.
    unsafe { libc::_exit(EXIT_CODE) }
}

/// Writes the last line without the lock of standard error, which a waiting thread may hold.
fn say(line: String) {
    let (told, is_told) = mpsc::channel::<()>();
    let write = move || {
        let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned() else { return };
        // Removes the rest of a progress bar.
        let clear = if io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
        let _ = File::from(stderr).write_all(format!("{clear}{line}\n").as_bytes());
        drop(told);
    };
    if thread::Builder::new().spawn(write).is_ok() {
        let _ = is_told.recv_timeout(LINE_PATIENCE);
    }
}

/// Returns true if the caller may print the last line of the process; once only.
pub fn claim() -> bool {
    !ENDING.swap(true, Ordering::SeqCst)
}

/// Waits while another thread ends the process.
pub fn wait_for_end() -> ! {
    loop {
        thread::park();
    }
}

/// Runs `work` without handlers: when `is_stopped` says so, commands see an interruption, as if a signal had come.
pub fn unless<T: Send>(is_stopped: &(dyn Fn() -> bool + Sync), work: impl FnOnce() -> T + Send) -> T {
    let _guard = Guard::new();
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        scope.spawn(move || {
            while is_done.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                INTERRUPTED.store(is_stopped(), Ordering::Relaxed);
            }
            INTERRUPTED.store(false, Ordering::Relaxed);
        });
        let outcome = work();
        // The thread ends when the channel is closed.
        drop(done);
        outcome
    })
}

/// While it lives, an interruption is left to the command, for a moment.
pub struct Guard(());

impl Default for Guard {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard {
    /// Makes a signal set the flag first, from now on.
    pub fn new() -> Self {
        GUARDS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }

    /// Returns true if a signal came.
    pub fn is_interrupted(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        GUARDS.fetch_sub(1, Ordering::SeqCst);
    }
}
