//! Checking and exporting files, and the command line in process.

use crate::memory::{given, path, place, slice, text};
use crate::status::{Failure, Result, guard, input, of_kind, pleach_status};
use pleach_batch::Pool;
use pleach_set::{CheckOptions, Set};
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a check found.
pub struct pleach_report {
    is_clean: bool,
    findings: Vec<CString>,
}

/// Checks all files of a set.
fn check_set(path: &Path, threads: usize) -> Result<Vec<String>> {
    let set = Set::open(path)?;
    let options = CheckOptions { digests: true, progress: None };
    Ok(Pool::of(threads).install(|| pleach_set::check_set(&set, &options))?.faults())
}

/// Checks a file.
fn check_file(path: &Path, threads: usize) -> Result<Vec<String>> {
    let options = pleach_fsck::FsckOptions { threads, ..Default::default() };
    let found = pleach_fsck::fsck(path, &options).map_err(|error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let status = if is_missing { pleach_status::PLEACH_NOT_FOUND } else { pleach_status::PLEACH_SYSTEM };
        Failure(status, format!("cannot check: {}: {error}", path.display()))
    })?;
    let mut lines: Vec<String> = found.findings.iter().map(ToString::to_string).collect();
    if lines.is_empty() && found.verdict != pleach_fsck::Verdict::Clean {
        lines.push(format!("not a Pleach file: {}: check its name", path.display()));
    }
    Ok(lines)
}

/// Checks all checksums, the order, separators and padding of a file, or of each file of a set, on so many threads (0
/// for all). It never writes. A damaged file is no error of this call: see `pleach_report_is_clean`.
///
/// # Safety
/// `file` is a text; `report` is a place for the result, which `pleach_report_free` frees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_fsck(
    file: *const c_char,
    threads: u32,
    report: *mut *mut pleach_report,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the place.
        let report = unsafe { place(report, "report") }?;
        *report = std::ptr::null_mut();
        // SAFETY: the caller guarantees the text.
        let file = unsafe { path(file, "file") }?;
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads as usize,
        };
        let lines = if Set::is_set(&file) { check_set(&file, threads)? } else { check_file(&file, threads)? };
        let line = |line: &String| CString::new(line.replace('\0', " ")).unwrap_or_default();
        let findings: Vec<CString> = lines.iter().map(line).collect();
        *report = Box::into_raw(Box::new(pleach_report { is_clean: findings.is_empty(), findings }));
        Ok(())
    })
}

/// Returns 1 if the file is intact, and 0 if it is damaged, or `report` is NULL.
///
/// # Safety
/// `report` is NULL, or of `pleach_fsck` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_report_is_clean(report: *const pleach_report) -> c_int {
    // SAFETY: the caller guarantees the report.
    unsafe { report.as_ref() }.map_or(0, |report| report.is_clean.into())
}

/// Returns the number of faults; 0 for NULL.
///
/// # Safety
/// As `pleach_report_is_clean`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_report_findings(report: *const pleach_report) -> usize {
    // SAFETY: the caller guarantees the report.
    unsafe { report.as_ref() }.map_or(0, |report| report.findings.len())
}

/// Returns the line of a fault: what, where, what to do. It lives as long as the report; NULL past the last one.
///
/// # Safety
/// As `pleach_report_is_clean`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_report_finding(report: *const pleach_report, number: usize) -> *const c_char {
    // SAFETY: the caller guarantees the report.
    let report = unsafe { report.as_ref() };
    report.and_then(|report| report.findings.get(number)).map_or(std::ptr::null(), |line| line.as_ptr())
}

/// Frees a report. NULL is allowed.
///
/// # Safety
/// As `pleach_report_is_clean`; it is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_report_free(report: *mut pleach_report) {
    if !report.is_null() {
        // SAFETY: the caller guarantees that `pleach_fsck` made it and that nobody uses it.
        drop(unsafe { Box::from_raw(report) });
    }
}

/// Writes the tuples of a file as a table, in the order of keys: complete or not at all. The format is that of the
/// extension of `table`, or `format` (`csv`, `tsv`, `parquet`, `arrow`; may be NULL).
///
/// # Safety
/// `file` and `table` are texts; `format` is NULL or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_export(
    file: *const c_char,
    table: *const c_char,
    format: *const c_char,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the texts.
        let (file, table, format) =
            unsafe { (path(file, "file")?, path(table, "table")?, text(format, "format")?) };
        let mut words: Vec<OsString> = ["pleach", "export", "--quiet", "-o"].map(OsString::from).into();
        words.push(table.into());
        if let Some(format) = format {
            words.extend([OsString::from("--format"), format.into()]);
        }
        words.extend([OsString::from("--"), file.into()]);
        pleach_cli::execute(words, &|| false).map_err(|(kind, text)| Failure(of_kind(kind), text))
    })
}

/// Runs the command line in this process: `arguments` are its words, without the name of the program. It prints to
/// standard output and standard error as the command does, handles Ctrl-C as that does until it is done, and gives
/// `*exit_code`. For programs that are nothing but the command; others use the functions above.
///
/// # Safety
/// `arguments` has `count` texts; `exit_code` is a place for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_command(
    arguments: *const *const c_char,
    count: usize,
    exit_code: *mut c_int,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the place and the texts.
        let (exit_code, arguments) =
            unsafe { (place(exit_code, "exit_code")?, slice(arguments, count, "arguments")?) };
        let mut words = vec![OsString::from("pleach")];
        for &word in arguments {
            if word.is_null() {
                return Err(input("a word of arguments is NULL: give a text"));
            }
            // SAFETY: the caller guarantees the text.
            let word = unsafe { CStr::from_ptr(given(word, "arguments")?) };
            words.push(OsStr::from_bytes(word.to_bytes()).to_owned());
        }
        *exit_code = pleach_cli::run_with::<pleach_cli::Cli>(words).into();
        Ok(())
    })
}

/// Makes truncation of a mapped file `PLEACH_DAMAGED` instead of the end of the process by SIGBUS: installs a handler
/// for the process. Faults elsewhere pass to the handler that was there before.
#[unsafe(no_mangle)]
pub extern "C" fn pleach_contain_sigbus() {
    reader::contain_sigbus();
}

/// Returns the version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn pleach_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
