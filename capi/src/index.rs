//! Open files.

use crate::memory::{given, options, path, place, put, slice};
use crate::status::{Failure, Result, guard, input, pleach_status};
use pleach_batch::{Pool, Table};
use pleach_set::{LeftOut, Set, SetOptions};
use reader::{Followed, KeyType, OpenOptions, Residence, Structure, ValueType, Verify};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::sync::{Arc, Mutex, PoisonError};

/// A type of keys or values.
#[allow(dead_code, reason = "callers make the others")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum pleach_type {
    /// No values.
    PLEACH_NONE = 0,
    /// Unsigned integers of 8 bits; for arrays of keys.
    PLEACH_U8 = 1,
    /// Unsigned integers of 16 bits; for arrays of keys.
    PLEACH_U16 = 2,
    /// Unsigned integers of 32 bits.
    PLEACH_U32 = 3,
    /// Unsigned integers of 64 bits.
    PLEACH_U64 = 4,
    /// Unsigned integers of 128 bits.
    PLEACH_U128 = 5,
    /// Signed integers of 8 bits; for arrays of keys.
    PLEACH_I8 = 6,
    /// Signed integers of 16 bits; for arrays of keys.
    PLEACH_I16 = 7,
    /// Signed integers of 32 bits.
    PLEACH_I32 = 8,
    /// Signed integers of 64 bits.
    PLEACH_I64 = 9,
    /// Floats of 32 bits.
    PLEACH_F32 = 10,
    /// Floats of 64 bits.
    PLEACH_F64 = 11,
    /// Byte strings of one length.
    PLEACH_FIXED = 12,
    /// Byte strings.
    PLEACH_BYTES = 13,
    /// Texts in UTF-8.
    PLEACH_UTF8 = 14,
}

/// What is checked when a file is opened.
#[allow(dead_code, reason = "callers use it")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum pleach_verify {
    /// The head of the file.
    PLEACH_VERIFY_HEADER = 0,
    /// Each block when it is first read.
    PLEACH_VERIFY_TOUCHED = 1,
    /// The whole file, now.
    PLEACH_VERIFY_FULL = 2,
}

/// Structure of a file by which keys are found. All give the same answers.
#[allow(dead_code, reason = "callers use it")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum pleach_structure {
    /// The first of the others that the file has: grid, spine, and so on.
    PLEACH_STRUCTURE_AUTO = 0,
    /// The spine.
    PLEACH_STRUCTURE_SPINE = 1,
    /// The grid.
    PLEACH_STRUCTURE_GRID = 2,
    /// The FAST tree.
    PLEACH_STRUCTURE_FAST = 3,
    /// Harmonia's tree.
    PLEACH_STRUCTURE_HARMONIA = 4,
    /// The contiguous B+tree.
    PLEACH_STRUCTURE_BTREE = 5,
}

/// Options of `pleach_open`. Set all fields to 0, then `size` to `sizeof(pleach_open_options)`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pleach_open_options {
    /// Size of this structure in bytes.
    pub size: usize,
    /// A `pleach_verify`.
    pub verify: u32,
    /// Not 0: copy the file into memory, where nobody can change it.
    pub resident: u32,
    /// Number of threads of a batch; 0 for one per processor.
    pub threads: u32,
    /// A `pleach_structure`.
    pub structure: u32,
    /// Not 0: a set answers without files that cannot be opened, instead of failing. Not for files.
    pub partial: u32,
}

/// An open file or set: one generation of it. Any thread may use it.
pub struct pleach_index {
    pub(crate) table: Table,
    threads: usize,
    texts: Texts,
    /// Texts of files that are left out: by name, the name and the reason. None is removed.
    left_out: Mutex<BTreeMap<String, (CString, CString)>>,
}

/// Texts that live as long as the index.
struct Texts {
    path: CString,
    key_name: CString,
    value_name: CString,
    key_meaning: CString,
    value_meaning: CString,
    description: CString,
    fields: Vec<(CString, CString)>,
}

/// What `pleach_info` tells of approximate keys.
fn approximate(index: &reader::Index) -> Result<(u32, f64)> {
    let found = index.approximate().map_err(reader::Error::from)?;
    Ok(found.map_or((0, 0.0), |found| (1, found.rate.unwrap_or(-1.0))))
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

impl pleach_index {
    pub(crate) fn of(index: Arc<reader::Index>, threads: usize) -> Result<Box<Self>> {
        let (path, description) = (index.path().display().to_string(), index.describe());
        Self::made(Table::of(index)?, threads, &path, &description)
    }

    pub(crate) fn of_set(set: Set, threads: usize) -> Result<Box<Self>> {
        let (manifest, schema) = (set.manifest(), set.schema());
        let description = format!(
            "set of {} files, {} tuples, {} -> {}, generation {}",
            manifest.files(),
            set.len(),
            schema.key_type,
            schema.value_type,
            set.generation()
        );
        let place = set.store().place();
        Self::made(Table::of_set(Arc::new(set))?, threads, &place, &description)
    }

    fn made(table: Table, threads: usize, path: &str, description: &str) -> Result<Box<Self>> {
        let meta = table.index().meta().map_err(reader::Error::from)?;
        let fields = table.record().map_or(&[][..], |record| record.fields());
        let texts = Texts {
            path: c_text(path),
            key_name: c_text(&meta.key_name),
            value_name: c_text(&meta.value_name),
            key_meaning: c_text(&table.key_meaning().name()),
            value_meaning: c_text(&if fields.is_empty() {
                table.value_meaning().name()
            } else {
                String::new()
            }),
            description: c_text(description),
            fields: fields
                .iter()
                .map(|field| (c_text(&field.name), c_text(&field.kind.to_string())))
                .collect(),
        };
        Ok(Box::new(Self { table, threads, texts, left_out: Mutex::default() }))
    }

    /// Returns name and reason of a file that is left out, which live as long as the index.
    pub(crate) fn left_out_texts(&self, out: &LeftOut) -> (*const c_char, *const c_char) {
        let mut all = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = all.entry(out.name.clone()).or_insert_with(|| (c_text(&out.name), c_text(&out.reason)));
        (texts.0.as_ptr(), texts.1.as_ptr())
    }

    /// Returns the threads of a batch.
    pub(crate) fn pool(&self) -> Pool<'static> {
        Pool::of(self.threads)
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }
}

/// Opens a file, or the set in a folder. O(1), unless it is verified or copied. `options` may be NULL.
///
/// # Safety
/// `path` is a text; `options` is NULL or a structure with its size; `index` is a place for the result, which
/// `pleach_close` frees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_open(
    path: *const c_char,
    options: *const pleach_open_options,
    index: *mut *mut pleach_index,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the place.
        let index = unsafe { place(index, "index") }?;
        *index = std::ptr::null_mut();
        // SAFETY: the caller guarantees the text and the options.
        let (path, options) = unsafe { (self::path(path, "path")?, open_options(options)?) };
        let opened = match (Set::is_set(&path), options.is_partial) {
            (true, _) => pleach_index::of_set(options.set.open(path)?, options.threads)?,
            (false, true) => {
                let text = format!("options.partial is for sets: {}: it is a file: use 0", path.display());
                return Err(input(text));
            }
            (false, false) => {
                let opened = options.file.open(path).map_err(reader::Error::from)?;
                pleach_index::of(Arc::new(opened), options.threads)?
            }
        };
        *index = Box::into_raw(opened);
        Ok(())
    })
}

impl pleach_open_options {
    const NEW: Self =
        Self { size: size_of::<Self>(), verify: 0, resident: 0, threads: 0, structure: 0, partial: 0 };
}

/// Options that were read.
pub(crate) struct Opening {
    pub(crate) file: OpenOptions,
    pub(crate) set: SetOptions,
    pub(crate) threads: usize,
    is_partial: bool,
}

/// Reads the caller's options.
///
/// # Safety
/// `options` is null, or points to a structure with its size.
pub(crate) unsafe fn open_options(options: *const pleach_open_options) -> Result<Opening> {
    // SAFETY: the caller guarantees the options.
    let options = unsafe { self::options(options, pleach_open_options::NEW, "options") }?;
    let verify = match options.verify {
        0 => Verify::Header,
        1 => Verify::Touched,
        2 => Verify::Full,
        other => return Err(input(format!("options.verify is {other}: use a pleach_verify"))),
    };
    let residence = if options.resident != 0 { Residence::Resident } else { Residence::Mapped };
    let structure = Structure::ALL.get(options.structure as usize).copied();
    let unknown = || input(format!("options.structure is {}: use a pleach_structure", options.structure));
    let structure = structure.ok_or_else(unknown)?;
    let file = OpenOptions::default().verify(verify).residence(residence).structure(structure);
    let is_partial = options.partial != 0;
    let set = SetOptions::default().files(file).partial(is_partial);
    Ok(Opening { file, set, threads: options.threads as usize, is_partial })
}

/// Closes a file. NULL is allowed. Streams made of the index go on.
///
/// # Safety
/// `index` is NULL or was made by this library, is not used any more by any thread, and was not closed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_close(index: *mut pleach_index) {
    if !index.is_null() {
        // SAFETY: the caller guarantees that this library made it and that nobody uses it.
        drop(unsafe { Box::from_raw(index) });
    }
}

/// Opens the file that is now under this one's name: a later generation. Of a set, it is the newest generation. `*next`
/// is NULL if it is the same.
///
/// # Safety
/// `index` is open; `next` is a place for the result, which `pleach_close` frees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_next(
    index: *const pleach_index,
    next: *mut *mut pleach_index,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index and the place.
        let (index, next) = unsafe { (given(index, "index")?, place(next, "next")?) };
        *next = std::ptr::null_mut();
        if let Some(set) = index.table.set() {
            if let Some(found) = set.next_generation()? {
                *next = Box::into_raw(pleach_index::of_set(found, index.threads)?);
            }
            return Ok(());
        }
        let found = Followed::next_generation(&**index.table.index()).map_err(reader::Error::from)?;
        if let Some(found) = found {
            *next = Box::into_raw(pleach_index::of(Arc::new(found), index.threads)?);
        }
        Ok(())
    })
}

/// What a file is. Texts live as long as the index.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pleach_info {
    /// Number of tuples.
    pub tuples: u64,
    /// Size of the file, or of all files of a set, in bytes.
    pub file_bytes: u64,
    /// Number of the generation.
    pub generation: u64,
    /// Identity of the content; of a set, that of the set.
    pub file_id: [u8; 16],
    /// Type of the keys.
    pub key_type: pleach_type,
    /// Bytes of a key; 0 if their length varies.
    pub key_bytes: u32,
    /// Type of the values.
    pub value_type: pleach_type,
    /// Bytes of a value; 0 if their length varies, or if there are none.
    pub value_bytes: u32,
    /// Not 0 if each key has one tuple.
    pub is_unique: u32,
    /// Number of fields, if values are records.
    pub fields: u32,
    /// The path it was opened with.
    pub path: *const c_char,
    /// Name of the key column; may be empty.
    pub key_name: *const c_char,
    /// Name of the value column; may be empty.
    pub value_name: *const c_char,
    /// What the words of keys mean, such as `timestamp[us]`; empty for plain ones.
    pub key_meaning: *const c_char,
    /// What the words of values mean; empty for plain ones.
    pub value_meaning: *const c_char,
    /// One line about the file.
    pub description: *const c_char,
    /// Not 0 if keys are hashes or prefixes, so that a key which is not in the file may be found.
    pub is_approximate: u32,
    /// Share of the absent keys that are found; 0 if keys are exact, below 0 if it is not known.
    pub approximate_rate: f64,
}

fn key_type(key_type: KeyType) -> (pleach_type, u32) {
    match key_type {
        KeyType::U32 => (pleach_type::PLEACH_U32, 4),
        KeyType::U64 => (pleach_type::PLEACH_U64, 8),
        KeyType::U128 => (pleach_type::PLEACH_U128, 16),
        KeyType::I32 => (pleach_type::PLEACH_I32, 4),
        KeyType::I64 => (pleach_type::PLEACH_I64, 8),
        KeyType::F64 => (pleach_type::PLEACH_F64, 8),
        KeyType::Fixed(bytes) => (pleach_type::PLEACH_FIXED, bytes.into()),
        KeyType::Bytes => (pleach_type::PLEACH_BYTES, 0),
        KeyType::Utf8 => (pleach_type::PLEACH_UTF8, 0),
    }
}

fn value_type(value_type: ValueType) -> (pleach_type, u32) {
    match value_type {
        ValueType::None => (pleach_type::PLEACH_NONE, 0),
        ValueType::U32 => (pleach_type::PLEACH_U32, 4),
        ValueType::U64 => (pleach_type::PLEACH_U64, 8),
        ValueType::I32 => (pleach_type::PLEACH_I32, 4),
        ValueType::I64 => (pleach_type::PLEACH_I64, 8),
        ValueType::F32 => (pleach_type::PLEACH_F32, 4),
        ValueType::F64 => (pleach_type::PLEACH_F64, 8),
        ValueType::Fixed(bytes) => (pleach_type::PLEACH_FIXED, bytes.into()),
        ValueType::Bytes => (pleach_type::PLEACH_BYTES, 0),
        ValueType::Utf8 => (pleach_type::PLEACH_UTF8, 0),
    }
}

/// Describes an open file. O(1).
///
/// # Safety
/// `index` is open; `info` is a place for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_describe(
    index: *const pleach_index,
    info: *mut pleach_info,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index; the place is only written.
        let index = unsafe { given(index, "index") }?;
        if info.is_null() {
            return Err(input("info is NULL: give a pointer"));
        }
        let (table, texts) = (&index.table, &index.texts);
        let (key_type, key_bytes) = self::key_type(table.key_type());
        let (value_type, value_bytes) = self::value_type(table.value_type());
        let (is_approximate, approximate_rate) = approximate(table.index())?;
        let (file_bytes, generation, file_id) = match table.set() {
            Some(set) => (set.manifest().file_bytes(), set.generation(), set.manifest().facts().set_id),
            None => (table.index().file_bytes(), table.index().generation(), table.index().file_id()),
        };
        let described = pleach_info {
            tuples: table.len(),
            file_bytes,
            generation,
            file_id,
            key_type,
            key_bytes,
            value_type,
            value_bytes,
            is_unique: table.index().is_unique().into(),
            fields: texts.fields.len() as u32,
            path: texts.path.as_ptr(),
            key_name: texts.key_name.as_ptr(),
            value_name: texts.value_name.as_ptr(),
            key_meaning: texts.key_meaning.as_ptr(),
            value_meaning: texts.value_meaning.as_ptr(),
            description: texts.description.as_ptr(),
            is_approximate,
            approximate_rate,
        };
        // SAFETY: the caller guarantees the place.
        unsafe { put(info, described) };
        Ok(())
    })
}

/// Returns the number of tuples; 0 for NULL.
///
/// # Safety
/// `index` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_len(index: *const pleach_index) -> u64 {
    // SAFETY: the caller guarantees the index.
    unsafe { index.as_ref() }.map_or(0, |index| index.table.len())
}

/// Returns name and type of a field of the values, if they are records: `u32`, `f64`, `bytes16`. The texts live as long
/// as the index. Fields lie one after the other in a value, numbers little-endian. Texts (`utf8`, `bytes`) follow them:
/// `pleach_field_bytes` finds every field.
///
/// # Safety
/// `index` is open; `name` and `type_name` are NULL or places for the results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_field(
    index: *const pleach_index,
    number: u32,
    name: *mut *const c_char,
    type_name: *mut *const c_char,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index.
        let index = unsafe { given(index, "index") }?;
        let fields = &index.texts.fields;
        let (field, kind) = fields.get(number as usize).ok_or_else(|| {
            input(format!("there is no field {number}: the values have {} fields", fields.len()))
        })?;
        // SAFETY: the caller guarantees the places.
        unsafe {
            put(name, field.as_ptr());
            put(type_name, kind.as_ptr());
        }
        Ok(())
    })
}

/// Finds a field in a value, if values are records. `value` has the `value_bytes` bytes of one value, as
/// `pleach_values_at` and `pleach_get_strings` write it. `*field` becomes the first byte of the field, or of its text,
/// which is in `value`, and `*field_bytes` their number. `PLEACH_DAMAGED` if the value is not a whole record.
///
/// # Safety
/// `index` is open; `value` has so many bytes; `field` and `field_bytes` are NULL or places for the results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_field_bytes(
    index: *const pleach_index,
    number: u32,
    value: *const c_void,
    value_bytes: usize,
    field: *mut *const c_void,
    field_bytes: *mut usize,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index and the bytes.
        let (index, value) =
            unsafe { (given(index, "index")?, slice(value.cast::<u8>(), value_bytes, "value")?) };
        let fields = index.texts.fields.len();
        let record =
            index.table.record().filter(|_| (number as usize) < fields).ok_or_else(|| {
                input(format!("there is no field {number}: the values have {fields} fields"))
            })?;
        let found = record.check(value).ok().and_then(|()| record.field_bytes(number as usize, value));
        let found = found.ok_or_else(|| {
            let text = "the value is not a whole record: give all bytes of one value, or run pleach fsck";
            Failure(pleach_status::PLEACH_DAMAGED, text.to_owned())
        })?;
        // SAFETY: the caller guarantees the places.
        unsafe {
            put(field, found.as_ptr().cast());
            put(field_bytes, found.len());
        }
        Ok(())
    })
}
