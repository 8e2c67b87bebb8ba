//! Limits that the system sets to the process: how many files it may have open.

/// Raises the limit of open files as far as the process may: a merge has each of its inputs open. Where that is
/// refused, all stays as it was.
pub fn raise() {
    let Some((soft, hard)) = open_files() else { return };
    if soft < hard {
        let raised = libc::rlimit { rlim_cur: hard, rlim_max: hard };
        // SAFETY: the call reads a struct of ours.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) };
    }
}

/// How many files may be open: now, and at most.
fn open_files() -> Option<(libc::rlim_t, libc::rlim_t)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to a struct of ours.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    (result == 0).then_some((limit.rlim_cur, limit.rlim_max))
}

/// How many files may be open, in brackets; nothing if the system does not say.
pub fn open_files_now() -> String {
    open_files().map_or(String::new(), |(soft, _)| format!(" (now {soft})"))
}
