//! Limit that the system sets to the process: the number of open files.

/// Raises the limit of open files as far as the process may: a merge keeps each of its inputs open. If the
/// system refuses, the limit stays as it was.
pub fn raise() {
    let Some((soft, hard)) = open_files() else { return };
    if soft < hard {
        let raised = libc::rlimit { rlim_cur: hard, rlim_max: hard };
        // SAFETY: the call only reads `raised`, which lives until it returns.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) };
    }
}

/// Returns the current limit of open files, and the highest that the process may set.
fn open_files() -> Option<(libc::rlim_t, libc::rlim_t)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call only writes to `limit`, which lives until it returns.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    (result == 0).then_some((limit.rlim_cur, limit.rlim_max))
}

/// Returns the limit of open files, in brackets; empty if the system does not report it.
pub fn open_files_now() -> String {
    open_files().map_or(String::new(), |(soft, _)| format!(" (now {soft})"))
}
