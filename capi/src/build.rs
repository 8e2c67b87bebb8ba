//! Building files, changing and merging them.

use crate::memory::{path, slice};
use crate::options::{Options, pleach_build_options};
use crate::status::{Result, guard, pleach_status};
use pleach_builder::BuildError;
use pleach_builder::rebuild::{compact, rebuild};
use pleach_builder::source::{Schema, Source, SourceError};
use pleach_input::InputOptions;
use pleach_set::{Folder, Set, SetRebuildOptions, rebuild_set};
use std::ffi::c_char;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Builds a file of what `open` opens.
///
/// # Safety
/// `options` is null, or points to a structure with its size.
pub(crate) unsafe fn build_of(
    file: &Path,
    inputs: Vec<PathBuf>,
    options: *const pleach_build_options,
    open: impl FnOnce(&InputOptions) -> std::result::Result<Box<dyn Source>, SourceError>,
) -> Result<()> {
    // SAFETY: the caller guarantees the options.
    let options = unsafe { Options::of(options) }?;
    let mut source = open(&options.input).map_err(BuildError::Source)?;
    pleach_builder::build(&mut *source, file, &options.build(inputs), &options.progress())?;
    // SAFETY: the caller guarantees the options, and so the places in them.
    unsafe { options.tell_nulls() };
    Ok(())
}

/// Makes the next generation of a file of the changes that `open` opens.
///
/// # Safety
/// `options` is null, or points to a structure with its size.
pub(crate) unsafe fn rebuild_of(
    file: &Path,
    inputs: Vec<PathBuf>,
    options: *const pleach_build_options,
    open: impl FnOnce(&InputOptions) -> std::result::Result<Box<dyn Source>, SourceError> + Send,
) -> Result<()> {
    // SAFETY: the caller guarantees the options.
    let options = unsafe { Options::of(options) }?;
    let input = options.input.clone();
    let changes = move |schema: &Schema| {
        let record = schema.record();
        open(&InputOptions {
            key_type: Some(schema.key_type),
            value_type: Some(schema.value_type),
            key_logical: Some(schema.key_meaning().logical),
            // The fields of a record have types of their own.
            value_logical: Some(schema.value_meaning().logical).filter(|_| record.is_none()),
            record,
            changes: true,
            key_name: Some(schema.key_name.clone()),
            value_name: Some(schema.value_name.clone()),
            ..input
        })
    };
    if Set::is_set(file) {
        let own = options.rebuild(inputs);
        let rebuild = SetRebuildOptions {
            memory_bytes: own.memory_bytes,
            threads: own.threads,
            temp_dir: own.temp_dir,
            ..SetRebuildOptions::default()
        };
        rebuild_set(Arc::new(Folder::new(file)), Box::new(changes), &rebuild, &options.progress())?;
    } else {
        rebuild(file, Box::new(changes), &options.rebuild(inputs), &options.progress())?;
    }
    // SAFETY: the caller guarantees the options, and so the places in them.
    unsafe { options.tell_nulls() };
    Ok(())
}

/// Returns the caller's paths.
///
/// # Safety
/// `paths` has `count` texts.
pub(crate) unsafe fn paths(paths: *const *const c_char, count: usize, name: &str) -> Result<Vec<PathBuf>> {
    // SAFETY: the caller guarantees the texts.
    unsafe { slice(paths, count, name)?.iter().map(|&text| path(text, name)).collect() }
}

/// Builds the file `file` from tables: CSV, TSV, NDJSON, Parquet, Arrow or npy files, folders of them, or patterns, one
/// after the other. The file appears complete or not at all; a Pleach file under that name is replaced, and its readers
/// keep it. Time is that of a sort.
///
/// # Safety
/// `inputs` has `inputs_count` texts; `file` is a text; `options` is NULL or a structure with its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_build(
    inputs: *const *const c_char,
    inputs_count: usize,
    file: *const c_char,
    options: *const pleach_build_options,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the texts.
        let (inputs, file) = unsafe { (paths(inputs, inputs_count, "inputs")?, path(file, "file")?) };
        let open = |input: &InputOptions| pleach_input::open(&inputs, input);
        // Folders and patterns stand for the files in them; what is wrong with one, opening it tells.
        let files = pleach_input::expanded(&inputs).unwrap_or_else(|_| inputs.clone());
        // SAFETY: the caller guarantees the options.
        unsafe { build_of(&file, files, options, open) }
    })
}

/// Makes the next generation of the file, or of the set in the folder, `file` from a table of changes: columns `op`
/// (`put`, `add`, `del`), key, value. The old generation is there until the new one is complete. Readers that call
/// `pleach_next` see it.
///
/// # Safety
/// `file` and `changes` are texts; `options` is NULL or a structure with its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_rebuild(
    file: *const c_char,
    changes: *const c_char,
    options: *const pleach_build_options,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the texts.
        let (file, changes) = unsafe { (path(file, "file")?, path(changes, "changes")?) };
        let open = |input: &InputOptions| pleach_input::open(std::slice::from_ref(&changes), input);
        // SAFETY: the caller guarantees the options.
        unsafe { rebuild_of(&file, vec![changes.clone()], options, open) }
    })
}

/// Merges files of the same types into the file `file`: all tuples of all files. Among equal keys, those of an earlier
/// file come first.
///
/// # Safety
/// `files` has `files_count` texts; `file` is a text; `options` is NULL or a structure with its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_compact(
    files: *const *const c_char,
    files_count: usize,
    file: *const c_char,
    options: *const pleach_build_options,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the texts and the options.
        let (files, file, options) =
            unsafe { (paths(files, files_count, "files")?, path(file, "file")?, Options::of(options)?) };
        compact(&files, &file, &options.compact(), &options.progress())?;
        Ok(())
    })
}
