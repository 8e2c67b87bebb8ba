//! Ctrl-C and SIGTERM.
//!
//! Without a [`Guard`] the process ends at once with 130. While a guard lives the signal only sets a
//! flag: the command notices, removes what it made, and ends with [`crate::failure::Failure::Interrupted`].

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static GUARDS: AtomicUsize = AtomicUsize::new(0);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Exit code of an interrupted command.
const EXIT_CODE: i32 = 130;
/// What it says on standard error.
pub const MESSAGE: &str = "error: interrupted: nothing was changed: start it again";

/// Installs the handler. Where the system refuses, signals keep their usual effect.
///
/// Also, a file size limit becomes an error of the write that meets it, like a full disk, and no
/// longer kills the process with its temporary files in place.
pub fn install() {
    #[cfg(unix)]
    // SAFETY: changes one signal's disposition before any other thread runs; no handler is involved.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
    let _ = ctrlc::set_handler(|| {
        if GUARDS.load(Ordering::SeqCst) == 0 {
            // If it cannot be said, the exit code still says it.
            let _ = writeln!(io::stderr(), "{MESSAGE}");
            std::process::exit(EXIT_CODE);
        }
        INTERRUPTED.store(true, Ordering::SeqCst);
    });
}

/// While it lives, an interruption is left to the command.
pub struct Guard(());

impl Guard {
    /// From now on a signal only sets the flag.
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
