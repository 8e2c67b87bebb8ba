//! Sets: opening, building and sweeping. An open set is a `pleach_index`, so all look-ups take it.

use crate::arrow::taken;
use crate::build::paths;
use crate::index::{open_options, pleach_index, pleach_open_options};
use crate::memory::{given, path, place, put};
use crate::options::{Options, pleach_build_options};
use crate::status::{Result, guard, input, pleach_status};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use pleach_builder::BuildError;
use pleach_builder::source::{Source, SourceError};
use pleach_input::InputOptions;
use pleach_set::{Committer, Folder, Partition, SetError, SweepOptions, Writer, current, discard};
use std::ffi::c_char;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Opens a generation of the set in the folder `path`; 0 is the current one. `pleach_open` opens the current one, too.
/// O(files) of the manifest; files of the set are opened as they are asked. `options` may be NULL.
///
/// All functions that take an index take a set. Ranks count through the set, `pleach_next` opens the newest generation,
/// and a relational operator copies the set into memory. A file that is missing or damaged is an error that names it.
///
/// # Safety
/// `path` is a text; `options` is NULL or a structure with its size; `index` is a place for the result, which
/// `pleach_close` frees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_set_open(
    path: *const c_char,
    generation: u64,
    options: *const pleach_open_options,
    index: *mut *mut pleach_index,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the place.
        let index = unsafe { place(index, "index") }?;
        *index = std::ptr::null_mut();
        // SAFETY: the caller guarantees the text and the options.
        let (path, options) = unsafe { (self::path(path, "path")?, open_options(options)?) };
        let set = match generation {
            0 => options.set.open(path)?,
            generation => options.set.generation(Arc::new(Folder::new(path)), generation)?,
        };
        *index = Box::into_raw(pleach_index::of_set(set, options.threads)?);
        Ok(())
    })
}

/// Returns the number of files of a set; 0 for a file and for NULL.
///
/// # Safety
/// `index` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_set_files(index: *const pleach_index) -> u64 {
    // SAFETY: the caller guarantees the index.
    let index = unsafe { index.as_ref() };
    index.and_then(|index| index.table.set()).map_or(0, |set| set.manifest().files() as u64)
}

/// Returns the number of files that the set answered without so far, which cannot be opened; 0 unless it was opened
/// with `partial`.
///
/// # Safety
/// `index` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_set_left_out(index: *const pleach_index) -> u64 {
    // SAFETY: the caller guarantees the index.
    let index = unsafe { index.as_ref() };
    index.and_then(|index| index.table.set()).map_or(0, |set| set.left_out().len() as u64)
}

/// Describes such a file: its name, the number of its tuples, and why it cannot be opened. Numbers are those of now;
/// later look-ups may add files between. The texts live as long as the index.
///
/// # Safety
/// `index` is open; `name`, `tuples` and `reason` are NULL or places for the results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_set_left_out_file(
    index: *const pleach_index,
    number: u64,
    name: *mut *const c_char,
    tuples: *mut u64,
    reason: *mut *const c_char,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index.
        let index = unsafe { given(index, "index") }?;
        let all = index.table.set().map(|set| set.left_out()).unwrap_or_default();
        let Some(out) = usize::try_from(number).ok().and_then(|number| all.get(number)) else {
            let text =
                format!("there is no file {number}: {} are left out: see pleach_set_left_out", all.len());
            return Err(input(text));
        };
        let (own_name, own_reason) = index.left_out_texts(out);
        // SAFETY: the caller guarantees the places.
        unsafe {
            put(name, own_name);
            put(tuples, out.tuples);
            put(reason, own_reason);
        }
        Ok(())
    })
}

/// Builds a set of what `open` opens, and publishes it.
///
/// # Safety
/// `options` is null, or points to a structure with its size.
unsafe fn build_of(
    folder: &Path,
    inputs: Vec<PathBuf>,
    partition_tuples: u64,
    options: *const pleach_build_options,
    open: impl FnOnce(&InputOptions) -> std::result::Result<Box<dyn Source>, SourceError>,
) -> Result<()> {
    // SAFETY: the caller guarantees the options.
    let options = unsafe { Options::of(options) }?;
    if let Some(own) = inputs.iter().find(|input| input.starts_with(folder)) {
        let text = format!("an input is in the folder of the set: {}: name another folder", own.display());
        return Err(input(text));
    }
    let mut source = open(&options.input).map_err(BuildError::Source)?;
    let is_new = !folder.exists();
    let store = Arc::new(Folder::create(folder)?);
    let publish = || {
        let partition = match partition_tuples {
            0 => current(&*store).map_or_else(
                |_| Partition::default(),
                |manifest| Partition::Tuples(manifest.schema().partition_tuples),
            ),
            tuples => Partition::Tuples(tuples),
        };
        let build = options.build(inputs);
        let writer = Writer::new(store.clone());
        let (written, _) = writer.write(&mut *source, partition, &build, &options.progress())?;
        let publish = || {
            let mut committer = Committer::begin(store.clone())?;
            committer.add_own(&written)?;
            committer.publish()
        };
        publish().inspect_err(|error| discard(&*store, &written.entries, error))
    };
    publish().inspect_err(|_: &SetError| {
        // Only folders without anything in them are removed.
        for own in ["files", "manifests", ""].into_iter().filter(|_| is_new) {
            let _ = std::fs::remove_dir(folder.join(own));
        }
    })?;
    // SAFETY: the caller guarantees the options, and so the places in them.
    unsafe { options.tell_nulls() };
    Ok(())
}

/// Builds a set in the folder `folder` from tables, or its next generation if there is one: complete or not at all.
/// Files have `partition_tuples` tuples each (0 for those of the set, or 2^24); tuples with equal keys are always in
/// one file. See `pleach_build`. `pleach_rebuild` makes the next generation from changes.
///
/// # Safety
/// `inputs` has `inputs_count` texts; `folder` is a text; `options` is NULL or a structure with its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_set_build(
    inputs: *const *const c_char,
    inputs_count: usize,
    folder: *const c_char,
    partition_tuples: u64,
    options: *const pleach_build_options,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the texts.
        let (inputs, folder) = unsafe { (paths(inputs, inputs_count, "inputs")?, path(folder, "folder")?) };
        let open = |input: &InputOptions| pleach_input::open(&inputs, input);
        // Folders and patterns stand for the files in them; what is wrong with one, opening it tells.
        let files = pleach_input::expanded(&inputs).unwrap_or_else(|_| inputs.clone());
        // SAFETY: the caller guarantees the options.
        unsafe { build_of(&folder, files, partition_tuples, options, open) }
    })
}

/// Builds a set from a stream of record batches: see `pleach_set_build`.
///
/// # Safety
/// `stream` is not released; the function takes it. `folder` is a text; `options` is NULL or a structure with its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_set_build_arrow(
    stream: *mut FFI_ArrowArrayStream,
    folder: *const c_char,
    partition_tuples: u64,
    options: *const pleach_build_options,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the stream and the texts.
        let (reader, folder) = unsafe { (taken(stream, "stream")?, path(folder, "folder")?) };
        let open = |input: &_| pleach_input::open_batches("table", &reader.schema(), reader, input);
        // SAFETY: the caller guarantees the options.
        unsafe { build_of(&folder, Vec::new(), partition_tuples, options, open) }
    })
}

/// Publishes an old generation of the set in `folder` anew: the one with this number, or the newest before the current
/// one for 0. `*published` becomes the number of the new generation; it may be NULL.
///
/// # Safety
/// `folder` is a text; `published` is NULL or a place for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_set_rollback(
    folder: *const c_char,
    generation: u64,
    published: *mut u64,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the text.
        let folder = unsafe { path(folder, "folder") }?;
        let wanted = Some(generation).filter(|&generation| generation > 0);
        let done = pleach_set::rollback_set(Arc::new(Folder::new(folder)), wanted)?;
        // SAFETY: the caller guarantees the place.
        unsafe { put(published, done.generation()) };
        Ok(())
    })
}

/// Deletes old generations of the set in `folder` but the newest `keep`, and files that no kept generation names and
/// that are older than `grace_s` seconds. `*files` becomes the number of files that were deleted; it may be NULL.
///
/// # Safety
/// `folder` is a text; `files` is NULL or a place for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_set_sweep(
    folder: *const c_char,
    keep: u64,
    grace_s: u64,
    files: *mut u64,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the text.
        let folder = unsafe { path(folder, "folder") }?;
        if keep == 0 {
            return Err(input("keep is 0: the current generation is always kept: use 1 or more"));
        }
        let keep = usize::try_from(keep).unwrap_or(usize::MAX);
        let options = SweepOptions { grace: Duration::from_secs(grace_s), keep, dry_run: false };
        let swept = pleach_set::sweep(&Folder::new(folder), &options)?;
        // SAFETY: the caller guarantees the place.
        unsafe { put(files, swept.files.len() as u64) };
        Ok(())
    })
}
