//! An open file or set, and its batches.

use crate::errors::{batch, exception, reading, set as of_set};
use crate::keys::Batch;
use crate::numpy::Memory;
use pleach::{AnyMap, Datum, Error, Followed, KeyType, Near, OpenOptions, Residence, Structure, Verify};
use pleach_batch::arrow::Tuples;
use pleach_batch::{BatchError, Bound as Edge, Found, Keys, Pool, Values};
use pleach_format::Logical;
use pleach_set::{Set, SetOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3_arrow::{PyArray, PyRecordBatchReader};
use std::path::PathBuf;
use std::sync::Arc;

/// An open file or set. It never changes: a later generation is another table.
#[pyclass(frozen, module = "pleachdb._native")]
pub(crate) struct Table {
    table: pleach_batch::Table,
    map: Single,
}

/// What answers about one key.
enum Single {
    File(Box<AnyMap>),
    Set(Arc<Set>),
}

/// Runs a batch without the interpreter's lock. Signals are handled between its rounds.
fn answered<T: Send>(
    py: Python<'_>,
    threads: usize,
    work: impl FnOnce(&Pool<'_>) -> Result<T, BatchError> + Send,
) -> PyResult<T> {
    let outcome = py.detach(|| {
        let raised = std::cell::RefCell::new(None);
        let go_on = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => true,
            Err(error) => {
                *raised.borrow_mut() = Some(error);
                false
            }
        };
        let outcome = work(&Pool::of(threads).asking(&go_on));
        (outcome, raised.into_inner())
    });
    match outcome {
        (_, Some(raised)) => Err(raised),
        (outcome, None) => outcome.map_err(|error| batch(&error)),
    }
}

impl Table {
    /// Returns the file; of a set, a file in memory with all of its tuples.
    pub(crate) fn whole(&self, py: Python<'_>) -> PyResult<Arc<pleach::Index>> {
        py.detach(|| self.table.whole()).map_err(|error| batch(&error))
    }

    /// Returns the open file, for a device.
    ///
    /// # Errors
    /// `TypesError` if it is a set.
    pub(crate) fn file(&self) -> PyResult<&Arc<pleach::Index>> {
        match &self.map {
            Single::File(_) => Ok(self.table.index()),
            Single::Set(set) => {
                let place = set.store().place();
                let text = format!("a device takes files, not sets: {place}: open a file of the set");
                Err(exception("TypesError", text))
            }
        }
    }

    /// Returns the open set; `None` if it is a file.
    fn set(&self) -> Option<&Arc<Set>> {
        self.table.set()
    }

    fn of(index: Arc<pleach::Index>) -> PyResult<Self> {
        let table = pleach_batch::Table::of(Arc::clone(&index)).map_err(|error| batch(&error))?;
        let map = AnyMap::from_index(index).map_err(|error| reading(&error))?;
        Ok(Self { table, map: Single::File(Box::new(map)) })
    }

    fn of_set(set: Set) -> PyResult<Self> {
        let set = Arc::new(set);
        let table = pleach_batch::Table::of_set(Arc::clone(&set)).map_err(|error| batch(&error))?;
        Ok(Self { table, map: Single::Set(set) })
    }

    /// Converts a Python object to a single key; `None` if it cannot be a key of this type without a loss, and is
    /// thus no key of the file.
    fn key<'k>(&self, key: &'k Bound<'_, PyAny>) -> PyResult<Option<Datum<'k>>> {
        let refused = || {
            let given = key.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            let held = self.table.key_type();
            exception("TypesError", format!("types differ: the key is {given}, but the file has {held} keys"))
        };
        let key_type = self.table.key_type();
        if key_type.is_bytes() {
            let bytes = match key.extract::<&'k [u8]>() {
                Ok(bytes) => std::borrow::Cow::Borrowed(bytes),
                Err(_) => {
                    std::borrow::Cow::Owned(key.extract::<String>().map_err(|_| refused())?.into_bytes())
                }
            };
            return Ok(Some(Datum::of_bytes(key_type, bytes)));
        }
        if key.is_instance_of::<pyo3::types::PyFloat>() && key_type != KeyType::F64 {
            return Err(refused());
        }
        if key_type == KeyType::F64 {
            let number: f64 = key.extract().map_err(|_| refused())?;
            // An integer that is no float is no key.
            let is_same = key.eq(number)?;
            return Ok((is_same && !number.is_nan()).then_some(Datum::F64(number)));
        }
        let index = key.py().import("operator")?.getattr("index")?;
        let number = index.call1((key,)).map_err(|_| refused())?;
        Ok(match key_type {
            KeyType::U32 => number.extract().ok().map(Datum::U32),
            KeyType::U64 => number.extract().ok().map(Datum::U64),
            KeyType::I32 => number.extract().ok().map(Datum::I32),
            KeyType::I64 => number.extract().ok().map(Datum::I64),
            _ => {
                // Without the interpreter's private functions, 128 bits come as bytes.
                let bytes = number.call_method1("to_bytes", (16, "big")).ok();
                let bytes = bytes.and_then(|bytes| bytes.extract::<[u8; 16]>().ok());
                bytes.map(|bytes| Datum::U128(u128::from_be_bytes(bytes)))
            }
        })
    }

    fn object<'py>(&self, py: Python<'py>, datum: &Datum<'_>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match datum {
            Datum::None => py.None().into_bound(py),
            Datum::U32(number) => number.into_pyobject(py)?.into_any(),
            Datum::U64(number) => number.into_pyobject(py)?.into_any(),
            Datum::I32(number) => number.into_pyobject(py)?.into_any(),
            Datum::I64(number) => number.into_pyobject(py)?.into_any(),
            Datum::F32(number) => number.into_pyobject(py)?.into_any(),
            Datum::F64(number) => number.into_pyobject(py)?.into_any(),
            Datum::U128(number) => {
                let bytes = PyBytes::new(py, &number.to_be_bytes());
                py.get_type::<pyo3::types::PyInt>().call_method1("from_bytes", (bytes, "big"))?
            }
            Datum::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
            Datum::Utf8(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.into_pyobject(py)?.into_any(),
                Err(_) => {
                    return Err(exception("DamagedError", "a text is not UTF-8: run pleach fsck".to_owned()));
                }
            },
        })
    }

    fn value_object<'py>(&self, py: Python<'py>, value: &Datum<'_>) -> PyResult<Bound<'py, PyAny>> {
        let Some(record) = self.table.record() else { return self.object(py, value) };
        let packed = value.packed();
        let fields = PyDict::new(py);
        for (field, value) in record.fields().iter().zip(record.values(&packed)) {
            let datum = Datum::of_field(value);
            let is_boolean = Logical::of_meta(&field.logical) == Logical::Boolean;
            match (is_boolean, &datum) {
                (true, Datum::U32(number)) => fields.set_item(&field.name, *number != 0)?,
                _ => fields.set_item(&field.name, self.object(py, &datum)?)?,
            }
        }
        Ok(fields.into_any())
    }
}

#[pymethods]
impl Table {
    /// Opens a file, or a set in a folder. `partial` is for sets: it is true if they answer without files that cannot
    /// be opened.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        verify: &str,
        resident: bool,
        structure: &str,
        partial: bool,
    ) -> PyResult<Self> {
        let verify = match verify {
            "header" => Verify::Header,
            "touched" => Verify::Touched,
            "full" => Verify::Full,
            other => {
                let text = format!("verify={other:?} is invalid: use \"header\", \"touched\" or \"full\"");
                return Err(exception("InputError", text));
            }
        };
        let residence = if resident { Residence::Resident } else { Residence::Mapped };
        let structure: Structure = structure.parse().map_err(|text: String| exception("InputError", text))?;
        let options = OpenOptions::default().verify(verify).residence(residence).structure(structure);
        if Set::is_set(&path) {
            let options = SetOptions::default().files(options).partial(partial);
            return Self::of_set(py.detach(|| options.open(&path)).map_err(|error| of_set(&error))?);
        }
        if partial {
            let text = format!("partial=True is for sets: {}: it is a file: leave it out", path.display());
            return Err(exception("InputError", text));
        }
        let index = py.detach(|| options.open(&path)).map_err(|error| reading(&Error::from(error)))?;
        Self::of(Arc::new(index))
    }

    /// Opens the file that is now under this one's name, if it is another one; of a set, the newest generation.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Self>> {
        if let Some(set) = self.set() {
            let next = py.detach(|| set.next_generation()).map_err(|error| of_set(&error))?;
            return next.map(Self::of_set).transpose();
        }
        let next = py.detach(|| Followed::next_generation(&**self.table.index()));
        let next = next.map_err(|error| reading(&Error::from(error)))?;
        next.map(|index| Self::of(Arc::new(index))).transpose()
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.table.len()).unwrap_or(usize::MAX)
    }

    #[getter]
    fn path(&self) -> PathBuf {
        if let Some(set) = self.set() {
            return set.store().place().into();
        }
        self.table.index().path().to_owned()
    }
    #[getter]
    fn generation(&self) -> u64 {
        self.set().map_or_else(|| self.table.index().generation(), |set| set.generation())
    }
    #[getter]
    fn file_id(&self) -> String {
        let id = self.set().map_or_else(|| self.table.index().file_id(), |set| set.manifest().facts().set_id);
        id.iter().map(|byte| format!("{byte:02x}")).collect()
    }
    #[getter]
    fn file_bytes(&self) -> u64 {
        self.set().map_or_else(|| self.table.index().file_bytes(), |set| set.manifest().file_bytes())
    }
    #[getter]
    fn key_type(&self) -> String {
        self.table.key_type().to_string()
    }
    #[getter]
    fn value_type(&self) -> String {
        self.table.value_type().to_string()
    }
    #[getter]
    fn key_meaning(&self) -> String {
        self.table.key_meaning().name()
    }
    /// Whether keys begin intervals. What asks for one key of such a file asks for a batch of one.
    /// Returns whether answers may be wrong for absent keys, and the share of these that are found, if it is known.
    #[getter]
    fn approximate(&self) -> PyResult<(bool, Option<f64>)> {
        let found = self.table.index().approximate().map_err(|error| reading(&Error::from(error)))?;
        Ok((found.is_some(), found.and_then(|found| found.rate)))
    }

    #[getter]
    fn is_interval(&self) -> bool {
        self.table.is_interval()
    }
    #[getter]
    fn value_meaning(&self) -> String {
        if self.table.record().is_some() { String::new() } else { self.table.value_meaning().name() }
    }
    #[getter]
    fn key_name(&self) -> PyResult<String> {
        self.table.index().meta().map(|meta| meta.key_name).map_err(|error| reading(&Error::from(error)))
    }
    #[getter]
    fn value_name(&self) -> PyResult<String> {
        self.table.index().meta().map(|meta| meta.value_name).map_err(|error| reading(&Error::from(error)))
    }
    /// Names and types of the fields, if values are records.
    #[getter]
    fn fields(&self) -> Option<Vec<(String, String)>> {
        let fields = self.table.record()?.fields().iter();
        Some(fields.map(|field| (field.name.clone(), field.kind.to_string())).collect())
    }
    #[getter]
    fn is_unique(&self) -> bool {
        self.table.index().is_unique()
    }
    fn describe(&self) -> String {
        let Some(set) = self.set() else { return self.table.index().describe() };
        let (manifest, schema) = (set.manifest(), set.schema());
        format!(
            "set of {} files, {} tuples, {} -> {}, generation {}",
            manifest.files(),
            set.len(),
            schema.key_type,
            schema.value_type,
            set.generation()
        )
    }

    /// Number of files of a set; `None` for a file.
    #[getter]
    fn files(&self) -> Option<usize> {
        self.set().map(|set| set.manifest().files())
    }
    /// Number of files of a set that are open.
    #[getter]
    fn open_files(&self) -> Option<usize> {
        self.set().map(|set| set.open_files())
    }
    /// Path of the manifest of a set.
    #[getter]
    fn manifest(&self) -> Option<PathBuf> {
        self.set().map(|set| {
            let place = PathBuf::from(set.store().place());
            place.join(pleach_set::manifest_name(set.generation()))
        })
    }
    /// Files that answers were made without: name, tuples, reason.
    #[getter]
    fn left_out(&self) -> Vec<(String, u64, String)> {
        let all = self.set().map(|set| set.left_out()).unwrap_or_default();
        all.into_iter().map(|out| (out.name, out.tuples, out.reason)).collect()
    }

    /// Looks up one key; `None` if it is not in the file, and a tuple of its value otherwise.
    fn get_one<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
        let Some(key) = self.key(key)? else { return Ok(None) };
        let value = match &self.map {
            Single::File(map) => map.get(&key).map_err(|error| reading(&error))?,
            Single::Set(set) => py.detach(|| set.get(&key)).map_err(|error| of_set(&error))?,
        };
        value.map(|value| Ok((self.value_object(py, &value)?,))).transpose()
    }

    /// Reports whether a key is in the file.
    fn contains_one(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(key) = self.key(key)? else { return Ok(false) };
        match &self.map {
            Single::File(map) => map.contains(&key).map_err(|error| reading(&error)),
            Single::Set(set) => py.detach(|| set.contains(&key)).map_err(|error| of_set(&error)),
        }
    }

    /// Returns the tuple at a rank.
    fn tuple<'py>(
        &self,
        py: Python<'py>,
        rank: u64,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let tuple = match &self.map {
            Single::File(map) => map.select(rank).map_err(|error| reading(&error))?,
            Single::Set(set) => py.detach(|| set.select(rank)).map_err(|error| of_set(&error))?,
        };
        tuple.map(|(key, value)| Ok((self.object(py, &key)?, self.value_object(py, &value)?))).transpose()
    }

    /// Looks up many keys; writes values and whether each was found into NumPy arrays. Returns how many were found.
    /// Nobody else knows the array `found`; `values` may be the caller's.
    fn find(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
        found: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<usize> {
        let keys = Batch::of(&self.table, keys)?;
        let values = values.map(|values| Memory::for_values(values, self.table.value_type())).transpose()?;
        let mut flags = found.map(|found| Memory::for_writing::<u8>(found, "found")).transpose()?;
        // SAFETY: `pleachdb` made this array, and does not use it before this call is over.
        let flags = flags.as_mut().map(|flags| unsafe { flags.slice::<u8>() });
        answered(py, threads, |pool| {
            let shared = values.as_ref().and_then(|memory| memory.shared(self.table.value_type()));
            let mut values = shared.map_or(Values::None, Values::Shared);
            let mut found = flags.map_or(Found::None, Found::Bytes);
            keys.with(|keys| self.table.get(keys, &mut values, &mut found, pool))
        })
    }

    /// Looks up many keys; the answer is an Arrow array with nulls for those that are missing.
    fn find_arrow(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: usize) -> PyResult<PyArray> {
        let keys = Batch::of(&self.table, keys)?;
        let array = answered(py, threads, |pool| keys.with(|keys| self.table.array_of(keys, pool)))?;
        Ok(PyArray::from_array_ref(array))
    }

    /// Searches for the ranks of many keys: `rank`, `lower` or `upper`. Writes them into an array of 64-bit numbers.
    fn ranks(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        how: &str,
        ranks: &Bound<'_, PyAny>,
        found: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<usize> {
        let keys = Batch::of(&self.table, keys)?;
        let mut memory = Memory::for_writing::<u64>(ranks, "ranks")?;
        let mut flags = found.map(|found| Memory::for_writing::<u8>(found, "found")).transpose()?;
        // SAFETY: these arrays were just made by `pleachdb`, which alone uses them.
        let ranks = unsafe { memory.slice::<u64>() };
        // SAFETY: as above.
        let flags = flags.as_mut().map(|flags| unsafe { flags.slice::<u8>() });
        answered(py, threads, |pool| {
            let near = match how {
                "floor" => Some(Near::Floor),
                "ceiling" => Some(Near::Ceiling),
                "nearest" => Some(Near::Nearest),
                _ => None,
            };
            if let Some(near) = near {
                return keys.with(|keys| self.table.near(keys, near, ranks, pool)).map(|()| 0);
            }
            let bound = match how {
                "lower" => Edge::Lower,
                "upper" => Edge::Upper,
                _ => {
                    let mut found = flags.map_or(Found::None, Found::Bytes);
                    return keys.with(|keys| self.table.rank(keys, ranks, &mut found, pool));
                }
            };
            keys.with(|keys| self.table.bounds(keys, bound, ranks, pool)).map(|()| 0)
        })
    }

    /// Finds the ranks of the keys that begin with each prefix. Writes them into two arrays of 64-bit numbers.
    fn prefix(
        &self,
        py: Python<'_>,
        prefixes: &Bound<'_, PyAny>,
        first: &Bound<'_, PyAny>,
        end: &Bound<'_, PyAny>,
        threads: usize,
    ) -> PyResult<()> {
        let prefixes = Batch::of_prefixes(&self.table, prefixes)?;
        let mut memory =
            (Memory::for_writing::<u64>(first, "first")?, Memory::for_writing::<u64>(end, "end")?);
        // SAFETY: these arrays were just made by `pleachdb`, which alone uses them.
        let (first, end) = unsafe { (memory.0.slice::<u64>(), memory.1.slice::<u64>()) };
        answered(py, threads, |pool| {
            prefixes.with(|prefixes| match prefixes {
                Keys::Texts(texts) => self.table.prefix(*texts, first, end, pool),
                // Numbers are refused above.
                Keys::Numbers(_) => Ok(()),
            })
        })
    }

    /// Reads the tuples of consecutive ranks as record batches.
    fn tuples(
        &self,
        first: u64,
        end: u64,
        batch_rows: usize,
        threads: usize,
    ) -> PyResult<PyRecordBatchReader> {
        let tuples =
            Tuples::new(&self.table, first..end, batch_rows, threads).map_err(|error| batch(&error))?;
        Ok(PyRecordBatchReader::new(Box::new(tuples)))
    }

    /// Returns keys and values at many ranks, as Arrow arrays. A rank past the end gives nulls.
    fn at(&self, py: Python<'_>, ranks: &Bound<'_, PyAny>, threads: usize) -> PyResult<(PyArray, PyArray)> {
        let mut memory = Memory::for_writing::<u64>(ranks, "ranks")?;
        // SAFETY: this array was just made by `pleachdb`, which alone uses it.
        let ranks = unsafe { memory.slice::<u64>() };
        let (keys, values) = answered(py, threads, |pool| self.table.arrays_at(ranks, pool))?;
        Ok((PyArray::from_array_ref(keys), PyArray::from_array_ref(values)))
    }
}
