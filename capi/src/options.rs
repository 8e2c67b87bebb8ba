//! Options of builds, and the caller's progress function.

use crate::memory::{options, put, text};
use crate::status::{Result, input};
use pleach_builder::rebuild::{CompactOptions, Method, RebuildOptions};
use pleach_builder::source::Derived;
use pleach_builder::{BuildOptions, Layout, Observer, Overlap, Phase, Unique};
use pleach_format::logical::{Logical, field_types, part_type, type_list};
use pleach_input::{InputOptions, Interval, Nulls};
use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A function that is told the progress: the phase ("read", "sort", "merge", "write", "sync"), what is done, and the
/// total, 0 if it is not known. If it returns a number other than 0, the work is interrupted and nothing is written. It
/// is called by threads of the library, by one at a time.
pub type pleach_progress =
    Option<unsafe extern "C" fn(context: *mut c_void, phase: *const c_char, done: u64, total: u64) -> c_int>;

/// Options of building, rebuilding, merging and of relational operators; each uses some. Set all fields to 0, then
/// `size` to `sizeof(pleach_build_options)`. A text may be NULL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pleach_build_options {
    /// Size of this structure in bytes.
    pub size: usize,
    /// Name of the key column; the first by default. Several, separated by commas, make a composite key.
    pub key: *const c_char,
    /// Name of the value column; the second by default. Several, separated by commas, make a record.
    pub value: *const c_char,
    /// Type of the keys, such as `u64`, `utf8`, `timestamp[us]`; `cidr` for networks of addresses, which are intervals.
    /// Those of the parts of a composite key are separated by commas. `hash64` and `prefix:auto` make short keys of
    /// texts.
    pub key_type: *const c_char,
    /// Type of the values. Those of the fields of a record are separated by commas: `u8,bool,utf8`.
    pub value_type: *const c_char,
    /// Changes: name of the column of operations, `op` by default.
    pub op: *const c_char,
    /// Equal keys: `first`, `last`, `error` or `sum` (of the values); by default all tuples are kept.
    pub unique: *const c_char,
    /// Layout, such as `lines,spine,grid`; with `plain` or `dictionary` for values that are stored each, or once.
    pub layout: *const c_char,
    /// Method of a rebuild: `auto`, `merge` or `patch`.
    pub method: *const c_char,
    /// Folder for what exceeds the memory.
    pub temp_dir: *const c_char,
    /// Limit of the memory in bytes; 0 for half of the machine's.
    pub memory_bytes: u64,
    /// Number of threads; 0 for one per processor.
    pub threads: u32,
    /// Not 0: the input is sorted.
    pub sorted: u32,
    /// Not 0: the first line of texts is data.
    pub no_header: u32,
    /// Not 0: also replace a file that is not a Pleach file.
    pub force: u32,
    /// Not 0: leave out damaged blocks instead of refusing a file.
    pub salvage: u32,
    /// Not 0: keep `keep` old generations.
    pub has_keep: u32,
    /// Number of old generations to keep.
    pub keep: u32,
    /// Told about the progress; may be NULL.
    pub progress: pleach_progress,
    /// First argument of `progress`.
    pub context: *mut c_void,
    /// Rows with nulls: `error` (by default), `skip` (they are left out) or `default=V` (values become V).
    pub nulls: *const c_char,
    /// Where the number of rows that were left out for their nulls is written; may be NULL.
    pub skipped_rows: *mut u64,
    /// Where the number of values that were filled in is written; may be NULL.
    pub filled_values: *mut u64,
    /// Name of the column of the last keys of intervals, which begin at the keys; NULL if keys are keys.
    pub interval: *const c_char,
    /// Meaning of these: `inclusive` (by default), or `exclusive` for the first keys behind the intervals.
    pub interval_end: *const c_char,
    /// Intervals that overlap: `error` (by default), or `last` to let the later row win.
    pub overlap: *const c_char,
    /// Not 0 to permit changes, merges and operators of keys that are hashes or prefixes, although equal ones may stand
    /// for different keys.
    pub approximate: u32,
    /// Number of bases of the k-mers of FASTA and FASTQ, which are the keys, each with its count; 0 for other inputs.
    pub kmers: u32,
}

impl pleach_build_options {
    const NEW: Self = Self {
        size: size_of::<Self>(),
        key: std::ptr::null(),
        value: std::ptr::null(),
        key_type: std::ptr::null(),
        value_type: std::ptr::null(),
        op: std::ptr::null(),
        unique: std::ptr::null(),
        layout: std::ptr::null(),
        method: std::ptr::null(),
        temp_dir: std::ptr::null(),
        memory_bytes: 0,
        threads: 0,
        sorted: 0,
        no_header: 0,
        force: 0,
        salvage: 0,
        has_keep: 0,
        keep: 0,
        progress: None,
        context: std::ptr::null_mut(),
        nulls: std::ptr::null(),
        skipped_rows: std::ptr::null_mut(),
        filled_values: std::ptr::null_mut(),
        interval: std::ptr::null(),
        interval_end: std::ptr::null(),
        overlap: std::ptr::null(),
        approximate: 0,
        kmers: 0,
    };
}

/// Options whose texts were read.
pub(crate) struct Options {
    pub(crate) input: InputOptions,
    unique: Option<Unique>,
    overlap: Overlap,
    layout: Option<Layout>,
    method: Method,
    temp_dir: Option<PathBuf>,
    plain: pleach_build_options,
}

fn choice<T: Copy>(text: Option<&str>, name: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
    let Some(text) = text else { return Ok(None) };
    let found = choices.iter().find(|(known, _)| *known == text).map(|(_, choice)| *choice);
    let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
    found
        .map(Some)
        .ok_or_else(|| input(format!("options.{name} is \"{text}\": use one of {}", known.join(", "))))
}

type Types<T> = (Option<T>, Option<Logical>);

/// Returns a type and its logical type; `words` is the type in which a logical one is stored.
fn types<T>(
    text: Option<String>,
    name: &str,
    plain: impl Fn(&str) -> Option<T>,
    words: impl Fn(&Logical) -> Option<String>,
) -> Result<Types<T>> {
    let Some(text) = text else { return Ok((None, None)) };
    if let Some(plain) = plain(&text) {
        return Ok((Some(plain), None));
    }
    match Logical::of_name(&text) {
        Some(logical) => Ok((words(&logical).and_then(|words| plain(&words)), Some(logical))),
        None if name == "key_type" && type_list(&text).iter().all(|name| part_type(name).is_ok()) => {
            Ok((None, None))
        }
        None if name == "value_type" && field_types(&text).is_some() => Ok((None, None)),
        None => {
            Err(input(format!("options.{name} is \"{text}\": use a type such as u64, utf8 or timestamp[us]")))
        }
    }
}

impl Options {
    /// Reads the caller's options.
    ///
    /// # Safety
    /// `pointer` is null, or points to a structure with its size, whose texts end in a zero byte.
    pub(crate) unsafe fn of(pointer: *const pleach_build_options) -> Result<Self> {
        // SAFETY: the caller guarantees the structure.
        let plain = unsafe { options(pointer, pleach_build_options::NEW, "options") }?;
        // SAFETY: the caller guarantees the texts.
        let read = |text: *const c_char, name: &str| unsafe { self::text(text, &format!("options.{name}")) };
        let (name, given) = ("key_type", read(plain.key_type, "key_type")?);
        let is_network = given.as_deref() == Some("cidr");
        let given = if is_network { Some("ip".to_owned()) } else { given };
        let derived = given.as_deref().and_then(Derived::from_name);
        let given = if derived.is_some() { Some("utf8".to_owned()) } else { given };
        let names = given.as_deref().map(type_list).unwrap_or_default();
        let part_types = names.iter().filter_map(|name| part_type(name).ok()).collect();
        let (key_type, key_logical) = types(given, name, reader::KeyType::from_name, Logical::key_words)?;
        let ends = [("inclusive", false), ("exclusive", true)];
        let end = read(plain.interval, "interval")?;
        let what = read(plain.interval_end, "interval_end")?;
        let is_exclusive = choice(what.as_deref(), "interval_end", &ends)?.unwrap_or(false);
        let overlaps = [("error", Overlap::Error), ("last", Overlap::Last)];
        let overlap = choice(read(plain.overlap, "overlap")?.as_deref(), "overlap", &overlaps)?;
        let (name, given) = ("value_type", read(plain.value_type, "value_type")?);
        let list = given.clone();
        let (value_type, value_logical) =
            types(given, name, reader::ValueType::from_name, Logical::value_words)?;
        // One for each field of a record.
        let list = list.filter(|_| value_type.is_none()).and_then(|list| field_types(&list));
        let (field_types, field_logicals) = list.unwrap_or_default().into_iter().unzip();
        let nulls = read(plain.nulls, "nulls")?.map_or(Ok(Nulls::Error), |text| {
            text.parse().map_err(|advice| input(format!("options.nulls is \"{text}\": {advice}")))
        })?;
        let uniques = [
            ("first", Unique::First),
            ("last", Unique::Last),
            ("error", Unique::Error),
            ("sum", Unique::Sum),
        ];
        let layout = read(plain.layout, "layout")?;
        let layout = layout.map(|text| {
            text.parse::<Layout>().map_err(|error| input(format!("options.layout is \"{text}\": {error}")))
        });
        let methods = Method::ALL.map(|method| (method.name(), method));
        Ok(Self {
            input: InputOptions {
                key: read(plain.key, "key")?,
                value: read(plain.value, "value")?,
                op: read(plain.op, "op")?,
                no_header: plain.no_header != 0,
                key_type,
                key_logical,
                derived,
                part_types,
                value_type,
                value_logical,
                field_types,
                field_logicals,
                nulls,
                kmers: (plain.kmers != 0).then_some(plain.kmers as usize),
                interval: (is_network || end.is_some()).then_some(Interval { end, is_exclusive }),
                ..InputOptions::default()
            },
            unique: choice(read(plain.unique, "unique")?.as_deref(), "unique", &uniques)?,
            overlap: overlap.unwrap_or_default(),
            layout: layout.transpose()?,
            method: choice(read(plain.method, "method")?.as_deref(), "method", &methods)?.unwrap_or_default(),
            temp_dir: read(plain.temp_dir, "temp_dir")?.map(PathBuf::from),
            plain,
        })
    }

    /// Tells the caller how many nulls there were.
    ///
    /// # Safety
    /// The places of the caller's options are null, or have room for a number.
    pub(crate) unsafe fn tell_nulls(&self) {
        let counts = &self.input.null_counts;
        // SAFETY: the caller guarantees the places.
        unsafe {
            put(self.plain.skipped_rows, counts.skipped());
            put(self.plain.filled_values, counts.filled());
        }
    }

    pub(crate) fn threads(&self) -> usize {
        // A pool of this work's own: a child of `fork` has none of the threads of its parent.
        match self.plain.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads as usize,
        }
    }

    pub(crate) fn is_approximate(&self) -> bool {
        self.plain.approximate != 0
    }

    fn keep(&self) -> Option<usize> {
        (self.plain.has_keep != 0).then_some(self.plain.keep as usize)
    }

    pub(crate) fn build(&self, inputs: Vec<PathBuf>) -> BuildOptions {
        let default = BuildOptions::default();
        let build = BuildOptions {
            unique: self.unique,
            overlap: self.overlap,
            sorted: self.plain.sorted != 0,
            keep: self.keep(),
            force: self.plain.force != 0,
            threads: self.threads(),
            temp_dir: self.temp_dir.clone(),
            memory_bytes: Some(self.plain.memory_bytes)
                .filter(|&bytes| bytes > 0)
                .unwrap_or(default.memory_bytes),
            inputs,
            ..default
        };
        match self.layout {
            Some(layout) => build.with_layout(layout),
            None => build,
        }
    }

    pub(crate) fn rebuild(&self, inputs: Vec<PathBuf>) -> RebuildOptions {
        let default = RebuildOptions::default();
        RebuildOptions {
            method: self.method,
            keep: self.keep(),
            salvage: self.plain.salvage != 0,
            approximate: self.is_approximate(),
            memory_bytes: Some(self.plain.memory_bytes)
                .filter(|&bytes| bytes > 0)
                .unwrap_or(default.memory_bytes),
            threads: self.threads(),
            temp_dir: self.temp_dir.clone(),
            inputs,
            ..default
        }
    }

    pub(crate) fn compact(&self) -> CompactOptions {
        CompactOptions {
            unique: self.unique,
            layout: self.layout,
            salvage: self.plain.salvage != 0,
            approximate: self.is_approximate(),
            threads: self.threads(),
            keep: self.keep(),
            force: self.plain.force != 0,
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        let (function, context) = (self.plain.progress, self.plain.context);
        Progress { function, context, is_stopped: AtomicBool::new(false), telling: std::sync::Mutex::new(()) }
    }
}

/// Tells the caller's function.
pub(crate) struct Progress {
    function: pleach_progress,
    context: *mut c_void,
    is_stopped: AtomicBool,
    /// Held while the function is called.
    telling: std::sync::Mutex<()>,
}

// SAFETY: the caller is told that other threads call the function, with the context that it gave.
unsafe impl Send for Progress {}
// SAFETY: as above; one thread at a time calls it.
unsafe impl Sync for Progress {}

impl Observer for Progress {
    fn progress(&self, phase: Phase, done: u64, total: Option<u64>) {
        let Some(function) = self.function else { return };
        let name = match phase {
            Phase::Read => c"read",
            Phase::Sort => c"sort",
            Phase::Merge => c"merge",
            Phase::Write => c"write",
            Phase::Sync => c"sync",
        };
        let _one = self.telling.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: the caller guarantees a function of this type; the name is static.
        if unsafe { function(self.context, name.as_ptr(), done, total.unwrap_or(0)) } != 0 {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
    }
    fn cancelled(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}
