//! An open file and its batches.

use crate::arrow::{nulls, number_type, numbers, records, strings, type_of};
use crate::errors::{batch, exception, reading};
use crate::keys::Batch;
use crate::numpy::Memory;
use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use pleach::{AnyMap, Datum, Error, Followed, KeyType, OpenOptions, Residence, ValueType, Verify};
use pleach_batch::{BatchError, Bound as Edge, Found, Gathered, LaneType, Pool, Values};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3_arrow::PyArray;
use std::path::PathBuf;
use std::sync::Arc;

/// An open file. It never changes: a later generation is another table.
#[pyclass(frozen, module = "pleachdb._native")]
pub(crate) struct Table {
    table: pleach_batch::Table,
    map: AnyMap,
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

/// Calls a function with the slice of an array of this file's value type.
macro_rules! with_values {
    ($type:expr, $T:ident => $body:expr, else $other:expr) => {
        match $type {
            ValueType::U32 => {
                type $T = u32;
                $body
            }
            ValueType::U64 => {
                type $T = u64;
                $body
            }
            ValueType::I32 => {
                type $T = i32;
                $body
            }
            ValueType::I64 => {
                type $T = i64;
                $body
            }
            ValueType::F32 => {
                type $T = f32;
                $body
            }
            ValueType::F64 => {
                type $T = f64;
                $body
            }
            ValueType::None | ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => $other,
        }
    };
}

trait AsValues: LaneType {
    fn values(slice: &mut [Self]) -> Values<'_>;
}
macro_rules! as_values {
    ($($type:ident $name:ident;)*) => {$(
        impl AsValues for $type {
            fn values(slice: &mut [Self]) -> Values<'_> {
                Values::$name(slice)
            }
        }
    )*};
}
as_values! { u32 U32; u64 U64; i32 I32; i64 I64; f32 F32; f64 F64; }

impl Table {
    fn of(index: Arc<pleach::Index>) -> PyResult<Self> {
        let table = pleach_batch::Table::of(Arc::clone(&index)).map_err(|error| batch(&error))?;
        let map = AnyMap::from_index(index).map_err(|error| reading(&error))?;
        Ok(Self { table, map })
    }

    /// Makes the Arrow array of the values of many ranks; `found` are bits.
    fn values_of(
        &self,
        ranks: &[u64],
        found: Vec<u8>,
        count: usize,
        pool: &Pool<'_>,
    ) -> Result<PyResult<ArrayRef>, BatchError> {
        let value_type = self.table.value_type();
        let len = ranks.len();
        let is_found = |at: usize| found[at / 8] >> (at % 8) & 1 != 0;
        let ranks: Vec<u64> =
            ranks.iter().enumerate().map(|(at, &rank)| if is_found(at) { rank } else { u64::MAX }).collect();
        let all: Gathered = self.table.values_at(&ranks, pool)?;
        let nulls = nulls(found, len, count);
        Ok(match self.table.record() {
            Some(record) => records(
                record,
                len,
                |at| &all.data[all.offsets[at] as usize..all.offsets[at + 1] as usize],
                nulls,
            ),
            None => strings(value_type, all, nulls),
        })
    }

    /// Makes the Arrow array of the values of many keys.
    fn find_array(&self, keys: &Batch, pool: &Pool<'_>) -> Result<PyResult<ArrayRef>, BatchError> {
        let len = keys.len();
        let mut found = vec![0; len.div_ceil(8)];
        let value_type = self.table.value_type();
        with_values!(
            value_type,
            T => {
                let mut values = vec![T::default(); len];
                let count = keys.with(|keys| {
                    self.table.get(keys, &mut T::values(&mut values), &mut Found::Bits(&mut found), pool)
                })?;
                let nulls = nulls(found, len, count);
                if let Some(record) = self.table.record() {
                    let bytes = zerocopy::IntoBytes::as_bytes(values.as_slice());
                    let packed = |at: usize| &bytes[at * size_of::<T>()..][..size_of::<T>()];
                    return Ok(records(record, len, packed, nulls));
                }
                let data_type = type_of(number_type(value_type), self.table.value_meaning());
                Ok(numbers(data_type, Buffer::from_vec(values), len, nulls))
            },
            else {
                let mut ranks = vec![0; len];
                let count =
                    keys.with(|keys| self.table.rank(keys, &mut ranks, &mut Found::Bits(&mut found), pool))?;
                if value_type == ValueType::None {
                    let bits = arrow_buffer::BooleanBuffer::new(Buffer::from_vec(found), 0, len);
                    return Ok(Ok(Arc::new(arrow_array::BooleanArray::new(bits, None)) as ArrayRef));
                }
                self.values_of(&ranks, found, count, pool)
            }
        )
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
            return Ok((is_same && !number.is_nan()).then(|| Datum::F64(number)));
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
            fields.set_item(&field.name, self.object(py, &Datum::of_field(value))?)?;
        }
        Ok(fields.into_any())
    }
}

#[pymethods]
impl Table {
    /// Opens a file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, verify: &str, resident: bool) -> PyResult<Self> {
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
        let options = OpenOptions::default().verify(verify).residence(residence);
        let index = py.detach(|| options.open(&path)).map_err(|error| reading(&Error::from(error)))?;
        Self::of(Arc::new(index))
    }

    /// Opens the file that is now under this one's name, if it is another one.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Self>> {
        let next = py.detach(|| Followed::next_generation(&**self.table.index()));
        let next = next.map_err(|error| reading(&Error::from(error)))?;
        next.map(|index| Self::of(Arc::new(index))).transpose()
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.table.len()).unwrap_or(usize::MAX)
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.table.index().path().to_owned()
    }
    #[getter]
    fn generation(&self) -> u64 {
        self.table.index().generation()
    }
    #[getter]
    fn file_id(&self) -> String {
        self.table.index().file_id().iter().map(|byte| format!("{byte:02x}")).collect()
    }
    #[getter]
    fn file_bytes(&self) -> u64 {
        self.table.index().file_bytes()
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
        self.table.index().describe()
    }

    /// Looks up one key; `None` if it is not in the file, and a tuple of its value otherwise.
    fn get_one<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
        let Some(key) = self.key(key)? else { return Ok(None) };
        let value = self.map.get(&key).map_err(|error| reading(&error))?;
        value.map(|value| Ok((self.value_object(py, &value)?,))).transpose()
    }

    /// Reports whether a key is in the file.
    fn contains_one(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        match self.key(key)? {
            Some(key) => self.map.contains(&key).map_err(|error| reading(&error)),
            None => Ok(false),
        }
    }

    /// Returns the tuple at a rank.
    fn tuple<'py>(
        &self,
        py: Python<'py>,
        rank: u64,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let tuple = self.map.select(rank).map_err(|error| reading(&error))?;
        tuple.map(|(key, value)| Ok((self.object(py, &key)?, self.value_object(py, &value)?))).transpose()
    }

    /// Looks up many keys; writes values and whether each was found into NumPy arrays. Returns how many were found.
    fn find(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
        found: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<usize> {
        let keys = Batch::of(&self.table, keys)?;
        let flags = found.map(|found| Memory::for_writing::<u8>(found, "found")).transpose()?;
        let run = |values: &mut Values<'_>| {
            // SAFETY: `find` is called with an array that the caller of `pleachdb` just made or gave for output; nobody
            // else is to use it meanwhile.
            let mut flags = flags.as_ref().map(|flags| unsafe { flags.slice::<u8>() });
            answered(py, threads, |pool| {
                let mut bools = vec![false; flags.as_ref().map_or(0, |_| keys.len())];
                let mut found = if flags.is_some() { Found::Bools(&mut bools) } else { Found::None };
                let count = keys.with(|keys| self.table.get(keys, values, &mut found, pool))?;
                if let Some(flags) = &mut flags {
                    let (needed, found) = (bools.len(), flags.len());
                    let flags = flags.get_mut(..needed);
                    let flags = flags.ok_or(BatchError::Short { name: "found", needed, found })?;
                    flags.iter_mut().zip(&bools).for_each(|(flag, &is)| *flag = is.into());
                }
                Ok(count)
            })
        };
        let Some(values) = values else { return run(&mut Values::None) };
        with_values!(
            self.table.value_type(),
            T => {
                let memory = Memory::for_writing::<T>(values, "out")?;
                // SAFETY: as above.
                run(&mut T::values(unsafe { memory.slice::<T>() }))
            },
            else Err(exception("TypesError", "values that are not numbers come as an Arrow array".to_owned()))
        )
    }

    /// Looks up many keys; the answer is an Arrow array with nulls for those that are missing.
    fn find_arrow(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: usize) -> PyResult<PyArray> {
        let keys = Batch::of(&self.table, keys)?;
        let array = answered(py, threads, |pool| self.find_array(&keys, pool))??;
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
        let memory = Memory::for_writing::<u64>(ranks, "ranks")?;
        let flags = found.map(|found| Memory::for_writing::<u8>(found, "found")).transpose()?;
        // SAFETY: these arrays were just made by `pleachdb`, which alone uses them.
        let ranks = unsafe { memory.slice::<u64>() };
        // SAFETY: as above.
        let mut flags = flags.as_ref().map(|flags| unsafe { flags.slice::<u8>() });
        answered(py, threads, |pool| {
            let bound = match how {
                "lower" => Edge::Lower,
                "upper" => Edge::Upper,
                _ => {
                    let mut bools = vec![false; keys.len()];
                    let mut found = Found::Bools(&mut bools);
                    let count = keys.with(|keys| self.table.rank(keys, ranks, &mut found, pool))?;
                    for (flag, &is) in flags.iter_mut().flat_map(|flags| flags.iter_mut()).zip(&bools) {
                        *flag = is.into();
                    }
                    return Ok(count);
                }
            };
            keys.with(|keys| self.table.bounds(keys, bound, ranks, pool)).map(|()| 0)
        })
    }

    /// Returns keys and values at many ranks, as Arrow arrays. A rank past the end gives nulls.
    fn at(&self, py: Python<'_>, ranks: &Bound<'_, PyAny>, threads: usize) -> PyResult<(PyArray, PyArray)> {
        let memory = Memory::for_writing::<u64>(ranks, "ranks")?;
        // SAFETY: this array was just made by `pleachdb`, which alone uses it.
        let ranks = unsafe { memory.slice::<u64>() };
        let (keys, values) = answered(py, threads, |pool| self.tuples_at(ranks, pool))??;
        Ok((PyArray::from_array_ref(keys), PyArray::from_array_ref(values)))
    }
}

impl Table {
    fn tuples_at(
        &self,
        ranks: &[u64],
        pool: &Pool<'_>,
    ) -> Result<PyResult<(ArrayRef, ArrayRef)>, BatchError> {
        let len = ranks.len();
        let mut found = vec![0u8; len.div_ceil(8)];
        let mut count = 0;
        for (at, &rank) in ranks.iter().enumerate() {
            if rank < self.table.len() {
                found[at / 8] |= 1 << (at % 8);
                count += 1;
            }
        }
        let (keys, words) = self.table.tuples_at(ranks, pool)?;
        let valid = || nulls(found.clone(), len, count);
        let key_type = self.table.key_type();
        let keys = match keys {
            pleach_batch::Column::Words(bytes) => {
                let plain = match key_type {
                    KeyType::U32 => DataType::UInt32,
                    KeyType::U64 => DataType::UInt64,
                    KeyType::I32 => DataType::Int32,
                    KeyType::I64 => DataType::Int64,
                    KeyType::F64 => DataType::Float64,
                    _ => DataType::FixedSizeBinary(16),
                };
                let data_type = type_of(plain, self.table.key_meaning());
                numbers(data_type, Buffer::from_slice_ref(&bytes), len, valid())
            }
            pleach_batch::Column::Strings(all) => {
                let as_value = match key_type {
                    KeyType::Fixed(bytes) => ValueType::Fixed(bytes),
                    KeyType::Utf8 => ValueType::Utf8,
                    _ => ValueType::Bytes,
                };
                strings(as_value, all, valid())
            }
        };
        let values = match (words, self.table.record()) {
            (pleach_batch::Column::Words(bytes), Some(record)) => {
                let width = bytes.len() / len.max(1);
                records(record, len, |at| &bytes[at * width..][..width], valid())
            }
            (pleach_batch::Column::Words(bytes), None) => {
                let value_type = self.table.value_type();
                let data_type = type_of(number_type(value_type), self.table.value_meaning());
                numbers(data_type, Buffer::from_slice_ref(&bytes), len, valid())
            }
            (pleach_batch::Column::Strings(all), Some(record)) => records(
                record,
                len,
                |at| &all.data[all.offsets[at] as usize..all.offsets[at + 1] as usize],
                valid(),
            ),
            (pleach_batch::Column::Strings(all), None) => strings(self.table.value_type(), all, valid()),
        };
        Ok(keys.and_then(|keys| values.map(|values| (keys, values))))
    }
}
