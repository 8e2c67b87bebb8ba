//! Limits that the system sets to the process: of open files, of threads, of its address space.

use std::io;

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

/// What to do about an error that a limit caused.
pub fn advice(error: &io::Error) -> Option<String> {
    match error.raw_os_error()? {
        libc::EMFILE => {
            let limit = open_files().map_or(String::new(), |(soft, _)| format!(" (now {soft})"));
            Some(format!("raise the limit of open files with ulimit -n{limit}, or name fewer files"))
        }
        libc::ENFILE => Some("the whole system has too many open: close some programs".to_owned()),
        libc::ENOMEM => {
            Some("raise the limit of memory (ulimit -v, the container's), or free some".to_owned())
        }
        libc::EAGAIN => {
            Some("raise the limit of processes (ulimit -u, the container's), or try again".to_owned())
        }
        libc::ENODEV => Some("its file system does not map files: copy it to a local disk".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_advice() {
        for (code, words) in
            [(libc::EMFILE, "ulimit -n"), (libc::ENOMEM, "ulimit -v"), (libc::EAGAIN, "ulimit -u")]
        {
            let advice = advice(&io::Error::from_raw_os_error(code)).expect("there is some");
            assert!(advice.contains(words), "{advice}");
        }
        assert_eq!(advice(&io::Error::from_raw_os_error(libc::ENOENT)), None);
    }
}
