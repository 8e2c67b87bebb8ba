//! An open file whose types are known at run time.

use crate::convert::FromNumbers as _;
use crate::error::{BatchError, Result};
use crate::keys::Keys;
use pleach::{Error, Index, KeyType, OpenOptions, ValueType};
use pleach_format::Record;
use pleach_format::interval::Ends;
use pleach_format::logical::{Logical, Meaning};
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "set")]
use crate::set::files::Files;
#[cfg(feature = "set")]
use pleach_set::{Set, SetOptions};

/// An open file for batches, or with the feature `set` an open set, which answers as one file of its tuples would.
/// Cloning it costs no more than an `Arc`; it is `Send` and `Sync`.
#[derive(Clone, Debug)]
pub struct Table {
    index: Arc<Index>,
    key: Meaning,
    value: Meaning,
    record: Option<Arc<Record>>,
    is_interval: bool,
    #[cfg(feature = "set")]
    files: Option<Arc<Files>>,
}

impl Table {
    /// Opens a file with the default options. O(1).
    ///
    /// # Errors
    /// [`BatchError::Pleach`] if the file cannot be opened or is not a valid Pleach file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::with_options(path, OpenOptions::default())
    }

    /// Opens a file with `options`, which set verification and residence.
    ///
    /// # Errors
    /// Those of [`Table::open`], and those of the verification.
    pub fn with_options(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        Self::of(Arc::new(options.open(path).map_err(Error::from)?))
    }

    /// Makes a table of an open file.
    ///
    /// # Errors
    /// [`BatchError::Pleach`] if the description of its types cannot be read.
    pub fn of(index: Arc<Index>) -> Result<Self> {
        let meta = index.meta().map_err(|error| Error::from(error).at(index.path()))?;
        let record = index.record().map_err(|error| Error::from(error).at(index.path()))?;
        Ok(Self {
            key: Meaning::new(index.key_type(), &meta.key_logical),
            value: Meaning::new(index.value_type(), &meta.value_logical),
            record: record.map(Arc::new),
            is_interval: Ends::of(index.key_type(), index.value_type(), &meta.value_logical, &meta.interval)
                .is_some(),
            index,
            #[cfg(feature = "set")]
            files: None,
        })
    }

    /// Opens a set with `options`. Reads the manifest; files are opened as they are asked.
    ///
    /// # Errors
    /// [`BatchError::Set`] if there is no set, or if its manifest is refused.
    #[cfg(feature = "set")]
    pub fn open_set(path: impl AsRef<Path>, options: SetOptions) -> Result<Self> {
        Self::of_set(Arc::new(options.open(path)?))
    }

    /// Makes a table of an open set. O(files); no file is opened.
    ///
    /// # Errors
    /// [`BatchError::Set`] if the options of the set are not known to this version; those of [`Table::of`].
    #[cfg(feature = "set")]
    pub fn of_set(set: Arc<Set>) -> Result<Self> {
        let table = Self::of(set.shape()?)?;
        Ok(Self { files: Some(Arc::new(Files::new(set))), ..table })
    }

    /// Returns the open set; `None` if it is a file.
    #[cfg(feature = "set")]
    #[must_use]
    pub fn set(&self) -> Option<&Arc<Set>> {
        self.files.as_deref().map(Files::set)
    }

    /// Returns the files of the set.
    #[cfg(feature = "set")]
    pub(crate) fn files(&self) -> Option<&Files> {
        self.files.as_deref()
    }

    /// Makes a table of a file of the set, which has the types of the set.
    #[cfg(feature = "set")]
    pub(crate) fn part(&self, index: Arc<Index>) -> Self {
        Self { index, files: None, ..self.clone() }
    }

    /// Returns true if it is a set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        #[cfg(feature = "set")]
        let is_set = self.files.is_some();
        #[cfg(not(feature = "set"))]
        let is_set = false;
        is_set
    }

    /// Returns the open file. That of a set has its types and names, and no tuples.
    #[must_use]
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// Returns the number of tuples.
    #[must_use]
    pub fn len(&self) -> u64 {
        #[cfg(feature = "set")]
        if let Some(set) = self.set() {
            return set.len();
        }
        self.index.len()
    }

    /// Returns true if there are no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the type of the keys.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        self.index.key_type()
    }

    /// Returns the type of the values.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        self.index.value_type()
    }

    /// Returns what the words of keys mean.
    #[must_use]
    pub fn key_meaning(&self) -> &Logical {
        &self.key.logical
    }

    /// Returns what the words of values mean.
    #[must_use]
    pub fn value_meaning(&self) -> &Logical {
        &self.value.logical
    }

    /// Returns true if keys begin intervals: a look-up answers by the interval that holds a key, and values begin with
    /// the last key of theirs.
    #[must_use]
    pub fn is_interval(&self) -> bool {
        self.is_interval
    }

    /// Returns the fields of the values, if they are records.
    #[must_use]
    pub fn record(&self) -> Option<&Arc<Record>> {
        self.record.as_ref()
    }

    /// Returns the type of the keys, for messages.
    pub(crate) fn key_text(&self) -> String {
        self.key.to_string()
    }

    /// Adds the path of the file to an error.
    pub(crate) fn failed(&self, error: impl Into<Error>) -> BatchError {
        BatchError::Pleach(error.into().at(self.index.path()))
    }

    /// Checks that these can be keys of the file, before any is looked up.
    ///
    /// # Errors
    /// [`BatchError::Keys`].
    pub fn check(&self, keys: &Keys<'_>) -> Result<()> {
        let is_bytes = self.key_type().is_bytes();
        let advice = match keys {
            Keys::Texts(_) if is_bytes => return Ok(()),
            Keys::Texts(_) => "give numbers",
            Keys::Numbers(_) if is_bytes => "give texts or bytes",
            Keys::Numbers(numbers) => {
                let takes = with_key!(self.key_type(), K => K::takes(numbers.lane()), else true);
                if takes {
                    return Ok(());
                }
                "convert them, as no float is an integer key"
            }
        };
        let (given, held) = (keys.name().to_owned(), self.key_text());
        Err(BatchError::Keys { given, held, advice })
    }
}

/// Evaluates an expression with the type of numeric keys, or another for byte keys.
macro_rules! with_key {
    ($type:expr, $key:ident => $body:expr, else $bytes:expr) => {{
        match $type {
            pleach::KeyType::U32 => {
                type $key = u32;
                $body
            }
            pleach::KeyType::U64 => {
                type $key = u64;
                $body
            }
            pleach::KeyType::U128 => {
                type $key = u128;
                $body
            }
            pleach::KeyType::I32 => {
                type $key = i32;
                $body
            }
            pleach::KeyType::I64 => {
                type $key = i64;
                $body
            }
            pleach::KeyType::F64 => {
                type $key = f64;
                $body
            }
            pleach::KeyType::Fixed(_) | pleach::KeyType::Bytes | pleach::KeyType::Utf8 => $bytes,
        }
    }};
}
use with_key;
pub(crate) use with_key as any_key;

/// Evaluates an expression with the type of values that are numbers, or another for all others.
macro_rules! with_value {
    ($type:expr, $value:ident => $body:expr, else $other:expr) => {{
        match $type {
            pleach::ValueType::U32 => {
                type $value = u32;
                $body
            }
            pleach::ValueType::U64 => {
                type $value = u64;
                $body
            }
            pleach::ValueType::I32 => {
                type $value = i32;
                $body
            }
            pleach::ValueType::I64 => {
                type $value = i64;
                $body
            }
            pleach::ValueType::F32 => {
                type $value = f32;
                $body
            }
            pleach::ValueType::F64 => {
                type $value = f64;
                $body
            }
            pleach::ValueType::None
            | pleach::ValueType::Fixed(_)
            | pleach::ValueType::Bytes
            | pleach::ValueType::Utf8 => $other,
        }
    }};
}
pub(crate) use with_value as any_value;
