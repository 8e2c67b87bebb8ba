//! Records: values of several named fields.
//!
//! The fields of a record are stored one after the other without padding, little-endian, the first one at the
//! lowest address. Records of four or eight bytes are stored as values of type u32 or u64, all others of N
//! bytes as `bytesN`. So tuple lines, columns and searches need no knowledge of records.
//!
//! A text or a byte string of any length has 4 bytes among the fields: where it ends, counted from the first byte
//! after the fields, where all texts follow in the order of their fields. Records with such fields are stored as
//! `bytes`.
//!
//! The fields are specified by the logical type of the value in META,
//! `record<left: u32, right: f64, "a b": bytes3>`. A reader that ignores it sees plain values. If the text is
//! not exactly as [`Record`] writes it, or does not fit the type of the values, the values are not a record.

use crate::key::sealed::Sealed;
use crate::types::ValueType;
use core::convert::Infallible;
use core::fmt;
use core::ops::Range;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Maximum number of fields in a record.
pub const FIELDS_MAX: usize = 1024;
/// Maximum bytes of the fields of a record, without texts: those of the longest `bytesN`.
pub const RECORD_BYTES_MAX: usize = u16::MAX as usize;
/// Bytes of a text among the fields: where it ends.
pub const END_BYTES: usize = size_of::<u32>();
/// Fields that a damaged value lacks.
static ZEROS: [u8; RECORD_BYTES_MAX] = [0; RECORD_BYTES_MAX];

/// Start of the text of a record.
const START: &str = "record<";

macro_rules! kinds {
    ($($variant:ident = $t:ty, $text:literal;)*) => {
        /// Type of a field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FieldKind {
            $(#[doc = concat!("`", $text, "`.")] $variant,)*
            /// A byte string of this length, at least 1: `bytes3` and so on.
            Fixed(u16),
            /// `bytes`: a byte string of any length.
            Bytes,
            /// `utf8`: a text of any length.
            Utf8,
        }

        impl FieldKind {
            /// All numeric kinds.
            pub const NUMERIC: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the bytes of a field; of a text, those of its end.
            #[must_use]
            pub const fn bytes(self) -> usize {
                match self {
                    $(Self::$variant => size_of::<$t>(),)*
                    Self::Fixed(bytes) => bytes as usize,
                    Self::Bytes | Self::Utf8 => END_BYTES,
                }
            }

            /// Reports whether values have any length: texts and byte strings.
            #[must_use]
            pub const fn is_text(self) -> bool {
                match self {
                    $(Self::$variant => false,)*
                    Self::Fixed(_) => false,
                    Self::Bytes | Self::Utf8 => true,
                }
            }

            /// Returns the kind with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$variant),)*
                    "bytes" => Some(Self::Bytes),
                    "utf8" => Some(Self::Utf8),
                    _ => {
                        let digits = name.strip_prefix("bytes")?;
                        let plain = !digits.starts_with(['0', '+']);
                        digits.parse().ok().filter(|_| plain).map(Self::Fixed)
                    }
                }
            }
        }

        impl fmt::Display for FieldKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => f.write_str($text),)*
                    Self::Fixed(bytes) => write!(f, "bytes{bytes}"),
                    Self::Bytes => f.write_str("bytes"),
                    Self::Utf8 => f.write_str("utf8"),
                }
            }
        }

        /// Value of a field.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum FieldValue<'a> {
            $(#[doc = concat!("Of `", $text, "`.")] $variant($t),)*
            /// A value of `bytesN`.
            Fixed(&'a [u8]),
            /// A value of `bytes`.
            Bytes(&'a [u8]),
            /// A value of `utf8`.
            Utf8(&'a str),
        }

        impl<'a> FieldValue<'a> {
            /// Returns its kind; `None` for byte strings of a length that no field has.
            #[must_use]
            pub fn kind(&self) -> Option<FieldKind> {
                match self {
                    $(Self::$variant(_) => Some(FieldKind::$variant),)*
                    Self::Fixed(bytes) => {
                        u16::try_from(bytes.len()).ok().filter(|&bytes| bytes > 0).map(FieldKind::Fixed)
                    }
                    Self::Bytes(_) => Some(FieldKind::Bytes),
                    Self::Utf8(_) => Some(FieldKind::Utf8),
                }
            }

            /// Returns the bytes of a byte string or a text; `None` for numbers.
            #[must_use]
            pub fn as_bytes(&self) -> Option<&'a [u8]> {
                match *self {
                    $(Self::$variant(_) => None,)*
                    Self::Fixed(bytes) | Self::Bytes(bytes) => Some(bytes),
                    Self::Utf8(text) => Some(text.as_bytes()),
                }
            }

            fn put(&self, ends: &mut Ends, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant(number) => out.extend_from_slice(&number.to_le_bytes()),)*
                    Self::Fixed(bytes) => out.extend_from_slice(bytes),
                    Self::Bytes(bytes) => ends.put(bytes, out),
                    Self::Utf8(text) => ends.put(text.as_bytes(), out),
                }
            }
        }

        $(
            impl BuildField for $t {
                const KIND: FieldKind = FieldKind::$variant;
                fn put(&self, _: &mut Ends, out: &mut Vec<u8>) {
                    out.extend_from_slice(&self.to_le_bytes());
                }
            }

            impl FieldType for $t {
                fn read(bytes: &[u8]) -> Option<Self> {
                    Some(Self::from_le_bytes(bytes.try_into().ok()?))
                }
            }
        )*

        impl FieldKind {
            /// Reads the value of a field from its bytes; `None` if the number of bytes is wrong, or if they are not
            /// the text of a `utf8`.
            #[must_use]
            pub fn read(self, bytes: &[u8]) -> Option<FieldValue<'_>> {
                Some(match self {
                    $(Self::$variant => FieldValue::$variant(<$t>::from_le_bytes(bytes.try_into().ok()?)),)*
                    Self::Fixed(_) if bytes.len() == self.bytes() => FieldValue::Fixed(bytes),
                    Self::Fixed(_) => return None,
                    Self::Bytes => FieldValue::Bytes(bytes),
                    Self::Utf8 => FieldValue::Utf8(core::str::from_utf8(bytes).ok()?),
                })
            }
        }
    };
}

/// Writes where texts end, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    end: usize,
}

impl Ends {
    /// Appends the end of the next text to the fields in `out`.
    #[inline]
    pub fn put(&mut self, text: &[u8], out: &mut Vec<u8>) {
        self.end = self.end.saturating_add(text.len());
        // No value of 4 GiB is stored: the builder refuses it by its length.
        out.extend_from_slice(&u32::try_from(self.end).unwrap_or(u32::MAX).to_le_bytes());
    }
}

/// A type of a program that a field can be built of: one of [`FieldType`], `&str` or `&[u8]`.
pub trait BuildField: fmt::Debug + PartialEq + Send + Sync + Sealed {
    /// Its type in a record.
    const KIND: FieldKind;
    /// Appends the bytes of the field; of a text, its end.
    fn put(&self, ends: &mut Ends, out: &mut Vec<u8>);
    /// Returns the bytes of a text; of all others, none.
    fn text(&self) -> &[u8] {
        &[]
    }
}

/// A type of a program that a field can have: an integer of 1 to 8 bytes, `f32`, `f64`, `[u8; N]`, `String`, or
/// `Vec<u8>`.
pub trait FieldType: BuildField + Clone + 'static {
    /// Reads the field from its bytes, or those of its text; `None` if their number is wrong, or if they are not a
    /// text.
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl<const N: usize> BuildField for [u8; N] {
    const KIND: FieldKind = FieldKind::Fixed(checked_length::<N>());
    fn put(&self, _: &mut Ends, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl<const N: usize> FieldType for [u8; N] {
    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

macro_rules! texts {
    ($($t:ty = $kind:ident, $bytes:ident;)*) => {$(
        impl BuildField for $t {
            const KIND: FieldKind = FieldKind::$kind;
            fn put(&self, ends: &mut Ends, out: &mut Vec<u8>) {
                ends.put(self.$bytes(), out);
            }
            fn text(&self) -> &[u8] {
                self.$bytes()
            }
        }
    )*};
}
texts! {
    &str = Utf8, as_bytes;
    String = Utf8, as_bytes;
    &[u8] = Bytes, as_ref;
    Vec<u8> = Bytes, as_slice;
}

impl FieldType for String {
    fn read(bytes: &[u8]) -> Option<Self> {
        core::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

impl FieldType for Vec<u8> {
    fn read(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

/// Returns the length of `[u8; N]` as files store it. An array that no file holds does not compile.
pub(crate) const fn checked_length<const N: usize>() -> u16 {
    const { assert!(N > 0 && N <= RECORD_BYTES_MAX, "byte strings of one length have 1 to 65,535 bytes") };
    N as u16
}

kinds! {
    U8 = u8, "u8";
    U16 = u16, "u16";
    U32 = u32, "u32";
    U64 = u64, "u64";
    I8 = i8, "i8";
    I16 = i16, "i16";
    I32 = i32, "i32";
    I64 = i64, "i64";
    F32 = f32, "f32";
    F64 = f64, "f64";
}

/// Where a packed record says what the place of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPlace {
    /// Bytes of the fields.
    fields: usize,
    /// Where the end of the text before it is, if there is one.
    before: Option<usize>,
    /// Where its own end is.
    end: usize,
}

impl TextPlace {
    /// Returns where the text is; it may be outside of the value, or end before its start. `None` if the value is
    /// too short to tell.
    #[inline]
    fn range(self, packed: &[u8]) -> Option<Range<usize>> {
        let end = |at: usize| {
            let end = u32::from_le_bytes(*packed.get(at..)?.first_chunk()?);
            self.fields.checked_add(usize::try_from(end).ok()?)
        };
        Some(self.before.map_or(Some(self.fields), end)?..end(self.end)?)
    }

    /// Returns the text, which need not be UTF-8; an empty one if the value breaks the rules.
    #[must_use]
    #[inline]
    pub fn text(self, packed: &[u8]) -> &[u8] {
        self.range(packed).and_then(|range| packed.get(range)).unwrap_or_default()
    }
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name; different from those of the other fields of the record.
    pub name: String,
    /// Type of its value.
    pub kind: FieldKind,
    /// Logical type in Arrow's notation; empty if plain.
    pub logical: String,
}

impl Field {
    /// Creates a field without a logical type.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: FieldKind) -> Self {
        Self { name: name.into(), kind, logical: String::new() }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        put_name(&self.name, f)?;
        write!(f, ": {}", self.kind)?;
        if !self.logical.is_empty() {
            f.write_char(' ')?;
            quoted(&self.logical, f)?;
        }
        Ok(())
    }
}

/// Writes a name, between quotes unless it is a plain word.
pub(crate) fn put_name(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut letters = name.chars();
    let starts = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if starts && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        f.write_str(name)
    } else {
        quoted(name, f)
    }
}

/// Writes a text between quotes, with a backslash before each quote and backslash in it.
pub(crate) fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(letter)?;
    }
    f.write_char('"')
}

/// The reason why fields are not a valid record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// There are no fields, or more than [`FIELDS_MAX`].
    Fields(usize),
    /// Two fields have this name.
    Twice(String),
    /// The fields have more than [`RECORD_BYTES_MAX`] bytes.
    Bytes(usize),
    /// This field is a `bytesN` without bytes.
    Empty(String),
}

impl RecordError {
    /// Returns the fault.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::Fields(0) => "a record has no fields".to_owned(),
            Self::Fields(count) => format!("a record has {count} fields, at most {FIELDS_MAX} are possible"),
            Self::Twice(name) => format!("two fields of a record have the name {name:?}"),
            Self::Bytes(bytes) => {
                format!("a record has {bytes} bytes, at most {RECORD_BYTES_MAX} are possible")
            }
            Self::Empty(name) => format!("field {name:?} of a record has no bytes"),
        }
    }

    /// Returns what to do.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Fields(0) => "name at least one",
            Self::Fields(_) => "leave some out",
            Self::Twice(_) => "rename one",
            Self::Bytes(_) => "leave fields out",
            Self::Empty(_) => "leave it out",
        }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what(), self.advice())
    }
}

impl std::error::Error for RecordError {}

/// A field was requested that a record does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldError {
    /// Name of the requested field.
    pub name: String,
    /// Requested type.
    pub asked: FieldKind,
    /// Type of the field with this name; `None` if there is none.
    pub found: Option<FieldKind>,
    /// Names of the fields.
    fields: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.found {
            None => write!(f, "unknown field '{}': use one of {}", self.name, self.fields),
            Some(found) => write!(f, "field '{}' is of type {found}, not {}", self.name, self.asked),
        }
    }
}

impl std::error::Error for FieldError {}

/// Returns the type of values that store records whose fields have `bytes` bytes, texts among them or not.
pub(crate) const fn storage(bytes: usize, has_texts: bool) -> ValueType {
    match bytes {
        _ if has_texts => ValueType::Bytes,
        4 => ValueType::U32,
        8 => ValueType::U64,
        // At most RECORD_BYTES_MAX.
        bytes => ValueType::Fixed(bytes as u16),
    }
}

/// The fields of a value, and their offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    fields: Vec<Field>,
    /// Offset of each field, and the end of the last one.
    offsets: Vec<usize>,
    /// Index of the last text before each field, and of the last text of all.
    texts: Vec<Option<usize>>,
}

/// The rule that a value breaks which is not a record as [`Record::pack`] writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFault {
    /// The value is shorter than the fields of its record.
    Short,
    /// The text of the field at this index ends before it begins.
    Descends(usize),
    /// The texts do not end where the value does.
    Length,
    /// The text of the field at this index is not UTF-8.
    NotUtf8(usize),
}

impl Record {
    /// Creates a record of these fields. O(fields).
    ///
    /// # Errors
    /// [`RecordError::Fields`], [`RecordError::Bytes`]: too few or too many fields or bytes.
    /// [`RecordError::Twice`]: two fields of one name. [`RecordError::Empty`]: a field without bytes.
    pub fn new(fields: Vec<Field>) -> Result<Self, RecordError> {
        if fields.is_empty() || fields.len() > FIELDS_MAX {
            return Err(RecordError::Fields(fields.len()));
        }
        let mut names = BTreeSet::new();
        let mut offsets = Vec::with_capacity(fields.len() + 1);
        let mut texts = Vec::with_capacity(fields.len() + 1);
        let (mut end, mut last_text) = (0, None);
        for (index, field) in fields.iter().enumerate() {
            if !names.insert(&field.name) {
                return Err(RecordError::Twice(field.name.clone()));
            }
            if field.kind.bytes() == 0 {
                return Err(RecordError::Empty(field.name.clone()));
            }
            offsets.push(end);
            texts.push(last_text);
            last_text = if field.kind.is_text() { Some(index) } else { last_text };
            // No overflow: 1024 fields have at most 65,535 bytes each.
            end += field.kind.bytes();
        }
        if end > RECORD_BYTES_MAX {
            return Err(RecordError::Bytes(end));
        }
        offsets.push(end);
        texts.push(last_text);
        Ok(Self { fields, offsets, texts })
    }

    /// Reports whether a logical type is intended as a record, even if it is malformed.
    #[must_use]
    pub fn is_meant(logical: &str) -> bool {
        logical.starts_with(START)
    }

    /// Parses the text of a record. Returns `None` if it is not as this version writes it. O(length).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix(START)?;
        let mut fields = Vec::new();
        loop {
            let (name, after) = name(rest)?;
            let after = after.strip_prefix(": ")?;
            let end = after.find([',', '>', ' '])?;
            let kind = FieldKind::from_name(&after[..end])?;
            rest = &after[end..];
            let mut logical = String::new();
            if let Some(after) = rest.strip_prefix(' ') {
                (logical, rest) = unquoted(after)?;
            }
            fields.push(Field { name, kind, logical });
            if fields.len() > FIELDS_MAX {
                return None;
            }
            match rest.strip_prefix(", ") {
                Some(more) => rest = more,
                None if rest == ">" => break,
                None => return None,
            }
        }
        // Each record has exactly one text.
        Self::new(fields).ok().filter(|record| record.to_string() == text)
    }

    /// Returns the record of values of type `value_type` with this logical type in META. Returns `None` if
    /// they are plain values, or if the two do not fit together.
    #[must_use]
    pub fn of(value_type: ValueType, logical: &str) -> Option<Self> {
        Self::parse(logical).filter(|record| record.storage() == value_type)
    }

    /// Removes the logical types of all fields.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.fields.iter_mut().for_each(|field| field.logical.clear());
        self
    }

    /// Returns the fields, in order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the number of fields; at least 1.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns the bytes of the fields, 1 to [`RECORD_BYTES_MAX`]. Texts follow them: [`Record::has_texts`].
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.offsets[self.fields.len()]
    }

    /// Reports whether a field is a text or a byte string of any length.
    #[must_use]
    pub fn has_texts(&self) -> bool {
        self.texts[self.fields.len()].is_some()
    }

    /// Returns the offset of a field in the record.
    ///
    /// # Panics
    /// If `index` is greater than the number of fields; for that number it is the end of the record.
    #[must_use]
    pub fn offset(&self, index: usize) -> usize {
        self.offsets[index]
    }

    /// Returns the index in [`Record::fields`] of the field with this name. O(fields).
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Returns the type of the values that store the record.
    #[must_use]
    pub fn storage(&self) -> ValueType {
        storage(self.bytes(), self.has_texts())
    }

    /// Returns the index of the field with this name and of type `T`. O(fields).
    ///
    /// # Errors
    /// [`FieldError`] if there is no such field, or if it has another type.
    pub fn find_typed<T: FieldType>(&self, name: &str) -> Result<usize, FieldError> {
        let index = self.find(name);
        let found = index.map(|index| self.fields[index].kind);
        index.filter(|_| found == Some(T::KIND)).ok_or_else(|| FieldError {
            name: name.to_owned(),
            asked: T::KIND,
            found,
            fields: self.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// Reads the field at `index` of a packed record; `None` if there is no such field, if it has another type,
    /// or if the record is too short or damaged.
    #[must_use]
    #[inline]
    pub fn get_typed<T: FieldType>(&self, index: usize, packed: &[u8]) -> Option<T> {
        self.fields.get(index).filter(|field| field.kind == T::KIND)?;
        T::read(self.field_bytes(index, packed)?)
    }

    /// Returns the value of a field of a packed record; `None` if there is no such field, or the record is
    /// too short. In records with texts, which a damaged file may have of any length, all that is missing or
    /// breaks a rule is zero or an empty text instead.
    #[must_use]
    #[inline]
    pub fn get<'a>(&self, index: usize, packed: &'a [u8]) -> Option<FieldValue<'a>> {
        let kind = self.fields.get(index)?.kind;
        let bytes = self.field_bytes(index, packed);
        match bytes.and_then(|bytes| kind.read(bytes)) {
            None if kind.is_text() => kind.read(&[]),
            None if self.has_texts() => kind.read(ZEROS.get(..kind.bytes())?),
            value => value,
        }
    }

    /// Returns where the bytes of a field are, or those of its text. The place may be outside of the value, or its
    /// end before its start.
    #[inline]
    fn place(&self, index: usize, packed: &[u8]) -> Option<Range<usize>> {
        match self.text_place(index) {
            Some(place) => place.range(packed),
            None => Some(self.offsets[index]..self.offsets[index + 1]),
        }
    }

    /// Returns the bytes of a field of a packed record: of a text, the text. `None` if there is no such field, or if
    /// they are outside of the record.
    #[must_use]
    pub fn field_bytes<'a>(&self, index: usize, packed: &'a [u8]) -> Option<&'a [u8]> {
        self.fields.get(index)?;
        packed.get(self.place(index, packed)?)
    }

    /// Returns where packed records have the text of a field; `None` if there is no such field, or if it is no text.
    #[must_use]
    #[inline]
    pub fn text_place(&self, index: usize) -> Option<TextPlace> {
        self.fields.get(index).filter(|field| field.kind.is_text())?;
        let before = self.texts[index].map(|before| self.offsets[before]);
        Some(TextPlace { fields: self.bytes(), before, end: self.offsets[index] })
    }

    /// Completes a record: `packed` ends with its fields, of which texts are not set, and gets these texts, one for
    /// each such field.
    pub fn put_texts<'a>(&self, texts: impl Iterator<Item = &'a [u8]>, packed: &mut Vec<u8>) {
        let start = packed.len().saturating_sub(self.bytes());
        let places = (0..self.len()).filter_map(|index| self.text_place(index));
        let (mut ends, mut end) = (Ends::default(), Vec::with_capacity(END_BYTES));
        for (place, text) in places.zip(texts) {
            end.clear();
            ends.put(text, &mut end);
            if let Some(to) = packed.get_mut(start + place.end..start + place.end + END_BYTES) {
                to.copy_from_slice(&end);
            }
            packed.extend_from_slice(text);
        }
    }

    /// Checks that a value is a record as [`Record::pack`] writes it. O(bytes of its texts).
    ///
    /// # Errors
    /// [`ValueFault`]: the first rule that it breaks.
    pub fn check(&self, packed: &[u8]) -> Result<(), ValueFault> {
        let is_text = |place| packed.get(place).is_some_and(|text| core::str::from_utf8(text).is_ok());
        match self.check_with(packed, packed.len(), |place| Ok::<_, Infallible>(is_text(place))) {
            Ok(checked) => checked,
            Err(never) => match never {},
        }
    }

    /// Checks a value of `length` bytes that is not in memory but for its fields. `is_text` says whether some bytes of
    /// the value are UTF-8.
    ///
    /// # Errors
    /// Those of `is_text`.
    pub fn check_with<E>(
        &self,
        fields: &[u8],
        length: usize,
        mut is_text: impl FnMut(Range<usize>) -> Result<bool, E>,
    ) -> Result<Result<(), ValueFault>, E> {
        if length < self.bytes() || (length > self.bytes() && !self.has_texts()) {
            return Ok(Err(ValueFault::Short));
        }
        let mut last = self.bytes();
        for (index, field) in self.fields.iter().enumerate().filter(|(_, field)| field.kind.is_text()) {
            let place = match self.place(index, fields) {
                Some(place) if place.end < place.start => return Ok(Err(ValueFault::Descends(index))),
                Some(place) if place.end <= length => place,
                _ => return Ok(Err(ValueFault::Length)),
            };
            last = place.end;
            if field.kind == FieldKind::Utf8 && !is_text(place)? {
                return Ok(Err(ValueFault::NotUtf8(index)));
            }
        }
        Ok(if last == length { Ok(()) } else { Err(ValueFault::Length) })
    }

    /// Yields the values of the fields of a packed record, until the bytes end.
    pub fn values<'a>(&self, packed: &'a [u8]) -> impl Iterator<Item = FieldValue<'a>> {
        (0..self.fields.len()).map_while(move |index| self.get(index, packed))
    }

    /// Appends a packed record to `out`. Returns false and leaves `out` unchanged if the values do not match
    /// the fields.
    pub fn pack(&self, values: &[FieldValue<'_>], out: &mut Vec<u8>) -> bool {
        let fits = values.len() == self.len()
            && values.iter().zip(&self.fields).all(|(value, field)| value.kind() == Some(field.kind));
        if fits {
            let mut ends = Ends::default();
            values.iter().for_each(|value| value.put(&mut ends, out));
            let texts = values.iter().filter(|value| value.kind().is_some_and(FieldKind::is_text));
            texts.filter_map(FieldValue::as_bytes).for_each(|text| out.extend_from_slice(text));
        }
        fits
    }

    /// Returns the value bits of a record of 4 or 8 bytes; `None` for other lengths.
    #[must_use]
    pub fn bits_of(packed: &[u8]) -> Option<u64> {
        match packed.len() {
            4 => packed.try_into().ok().map(|bytes| u32::from_le_bytes(bytes).into()),
            8 => packed.try_into().ok().map(u64::from_le_bytes),
            _ => None,
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(START)?;
        for (index, field) in self.fields.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            fmt::Display::fmt(field, f)?;
        }
        f.write_char('>')
    }
}

/// Reads the name at the start of `text`. Returns it with the rest.
pub(crate) fn name(text: &str) -> Option<(String, &str)> {
    if text.starts_with('"') {
        return unquoted(text);
    }
    let end = text.find(':')?;
    Some((text[..end].to_owned(), &text[end..]))
}

/// Reads the quoted text at the start of `text`. Returns it with the rest.
pub(crate) fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut letters = text.strip_prefix('"')?.char_indices();
    let mut plain = String::new();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((plain, &text[at + 2..])),
            '\\' => plain.push(letters.next()?.1),
            _ => plain.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests;
