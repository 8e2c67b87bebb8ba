//! Ctrl-C and SIGTERM: the first one stops any command within a second, a second one at once; nothing is left.
//!
//! Without a [`Guard`] the process ends at once with 130. While a guard lives the signal first sets a flag: the command
//! notices, removes what it made, and ends with [`crate::failure::Failure::Interrupted`]. One that does not notice in
//! time (it waits for a pipe that nobody writes, or for a disk) is not asked again: a thread of its own removes what
//! [`remains`] knows of, says the one line and ends the process.

use crate::failure::{self, Failure};
use pleach_builder::remains::{self, Abandoned};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

static GUARDS: AtomicUsize = AtomicUsize::new(0);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Whoever sets it says the last line.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Exit code of an interrupted command.
const EXIT_CODE: i32 = 130;
/// How long a command may take to notice.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long the last line may take: standard error may be a pipe that is full.
const LINE_PATIENCE: Duration = Duration::from_millis(200);

/// Installs the handler. Where the system refuses, signals keep their usual effect.
///
/// Also, a file size limit becomes an error of the write that meets it, like a full disk, and no
/// longer kills the process with its temporary files in place.
pub fn install() {
    // SAFETY: changes one signal's disposition before any other thread runs; no handler is involved.
    #[cfg(unix)]
    let hangup = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::signal(libc::SIGHUP, libc::SIG_IGN)
    };
    // Where no thread can be started, nobody would hear the signals that are caught: they end the process as ever.
    #[cfg(unix)]
    if ctrlc::set_handler(heard).is_err() {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: gives signals their usual effect; no handler is involved.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    // Who started us under `nohup` wants us to go on.
    #[cfg(unix)]
    if hangup == libc::SIG_IGN {
        // SAFETY: as above: a signal is ignored that was ignored before; no handler is involved.
        unsafe {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
        }
    }
}

/// A signal came.
fn heard() {
    let is_first = !INTERRUPTED.swap(true, Ordering::SeqCst);
    if !is_first || GUARDS.load(Ordering::SeqCst) == 0 {
        end();
    }
    let late = || {
        thread::sleep(PATIENCE);
        end()
    };
    // Without another thread this one waits, and hears a second signal only afterwards.
    if thread::Builder::new().spawn(late).is_err() {
        late();
    }
}

/// Ends the process, whatever its threads are at.
fn end() -> ! {
    if claim() {
        let failure = Failure::Interrupted;
        let line = failure.told(&message(&remains::abandon()));
        say(line);
    }
    // SAFETY: ends the process as a signal would: no handler and no destructor runs beside the threads that are
    // still at work, none of which could be waited for.
    unsafe { libc::_exit(EXIT_CODE) }
}

/// Writes the last line past the lock of standard error, which a thread may hold that waits.
fn say(line: String) {
    let (told, is_told) = mpsc::channel::<()>();
    let write = move || {
        let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned() else { return };
        // What a progress bar has left there goes.
        let clear = if io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
        let _ = File::from(stderr).write_all(format!("{clear}{line}\n").as_bytes());
        drop(told);
    };
    if thread::Builder::new().spawn(write).is_ok() {
        let _ = is_told.recv_timeout(LINE_PATIENCE);
    }
}

/// Whether the caller may say the last line of the process; once only.
pub fn claim() -> bool {
    !ENDING.swap(true, Ordering::SeqCst)
}

/// Waits for the end that another thread is making.
pub fn wait_for_end() -> ! {
    loop {
        thread::park();
    }
}

/// What an interrupted command says that ended by itself.
pub fn own_message() -> String {
    message(&remains::published().map_or(Abandoned::Unchanged, Abandoned::Published))
}

fn message(left: &Abandoned) -> String {
    let in_place =
        |path: &Path| format!("interrupted: {}: the new file is in place, look at it", path.display());
    match left {
        Abandoned::Unchanged => failure::INTERRUPTED.to_owned(),
        Abandoned::Published(path) => in_place(path),
        Abandoned::Uncertain => {
            "interrupted: a file was being put in place: look which one is there".to_owned()
        }
    }
}

/// While it lives, an interruption is left to the command, for a moment.
pub struct Guard(());

impl Guard {
    /// From now on a signal first sets the flag.
    pub fn new() -> Self {
        GUARDS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }

    /// Whether a signal came.
    pub fn is_interrupted(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        GUARDS.fetch_sub(1, Ordering::SeqCst);
    }
}
