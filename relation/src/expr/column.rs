//! Columns of a chunk of tuples in their stored form: encoded key words, bits of values, byte strings.

use pleach_builder::Strings;
use pleach_format::record::{FieldKind, TextPlace};
use pleach_format::{KeyType, ValueType};

/// Byte strings of a chunk.
#[derive(Clone, Copy, Debug)]
pub enum StringsRef<'a> {
    /// Strings of `width` bytes each, one after the other.
    Fixed {
        /// The bytes of all of them.
        data: &'a [u8],
        /// Bytes per string, at least 1.
        width: usize,
    },
    /// Strings of any length: string `i` is from offset `i` up to offset `i + 1`.
    Narrow {
        /// Bytes that the offsets refer to.
        data: &'a [u8],
        /// Offsets, one more than there are strings.
        offsets: &'a [u32],
    },
    /// The same with wide offsets.
    Wide {
        /// Bytes that the offsets refer to.
        data: &'a [u8],
        /// Offsets, one more than there are strings.
        offsets: &'a [u64],
    },
    /// Strings in the form of the builder.
    List(&'a Strings),
}

impl<'a> StringsRef<'a> {
    /// Returns the number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fixed { data, width } => data.len() / (*width).max(1),
            Self::Narrow { offsets, .. } => offsets.len().saturating_sub(1),
            Self::Wide { offsets, .. } => offsets.len().saturating_sub(1),
            Self::List(strings) => strings.len(),
        }
    }

    /// Returns true if there are no strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns string `index`; empty if its bytes are outside of the data.
    ///
    /// # Panics
    /// If there is no such string; [`StringsRef::Fixed`] returns an empty one.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> &'a [u8] {
        let part = |data: &'a [u8], start: usize, end: usize| data.get(start..end).unwrap_or_default();
        match *self {
            Self::Fixed { data, width } => part(data, index * width, (index + 1) * width),
            Self::Narrow { data, offsets } => {
                part(data, offsets[index] as usize, offsets[index + 1] as usize)
            }
            Self::Wide { data, offsets } => {
                let at = |index: usize| usize::try_from(offsets[index]).unwrap_or(usize::MAX);
                part(data, at(index), at(index + 1))
            }
            Self::List(strings) => strings.get(index),
        }
    }
}

/// A column of a chunk.
#[derive(Clone, Copy, Debug)]
pub enum ColumnRef<'a> {
    /// No values.
    None,
    /// Words of keys, or bits of values, of four bytes.
    U32(&'a [u32]),
    /// The same of eight bytes.
    U64(&'a [u64]),
    /// Words of keys of sixteen bytes.
    U128(&'a [u128]),
    /// Byte strings, and records that are stored as such.
    Bytes(StringsRef<'a>),
}

impl ColumnRef<'_> {
    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::U32(words) => words.len(),
            Self::U64(words) => words.len(),
            Self::U128(words) => words.len(),
            Self::Bytes(strings) => strings.len(),
        }
    }

    /// Returns true if there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a pleach_builder::Column> for ColumnRef<'a> {
    fn from(column: &'a pleach_builder::Column) -> Self {
        match column {
            pleach_builder::Column::None => Self::None,
            pleach_builder::Column::U32(words) => Self::U32(words),
            pleach_builder::Column::U64(words) => Self::U64(words),
            pleach_builder::Column::U128(words) => Self::U128(words),
            pleach_builder::Column::Bytes(strings) => Self::Bytes(StringsRef::List(strings)),
        }
    }
}

/// Consecutive tuples of a relation.
#[derive(Clone, Copy, Debug)]
pub struct Tuples<'a> {
    /// Rank of the first tuple.
    pub first_rank: u64,
    /// Encoded keys, or byte strings.
    pub keys: ColumnRef<'a>,
    /// Bits of values, or byte strings: as many as keys, or [`ColumnRef::None`].
    pub values: ColumnRef<'a>,
}

impl Tuples<'_> {
    /// Returns the number of tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there are no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Part of a tuple that holds an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The key.
    Key,
    /// The value.
    Value,
    /// The rank.
    Rank,
}

/// Type of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    U8,
    U16,
    U32,
    U64,
    U128,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    /// Byte strings: bytes per string, 0 if it varies; and whether they are texts.
    Bytes(usize, bool),
}

impl Kind {
    /// Returns the kind of keys of a type.
    pub(super) fn of_key(key_type: KeyType) -> Self {
        match key_type {
            KeyType::U32 => Self::U32,
            KeyType::U64 => Self::U64,
            KeyType::U128 => Self::U128,
            KeyType::I32 => Self::I32,
            KeyType::I64 => Self::I64,
            KeyType::F64 => Self::F64,
            KeyType::Fixed(width) => Self::Bytes(width.into(), false),
            KeyType::Utf8 => Self::Bytes(0, true),
            KeyType::Bytes => Self::Bytes(0, false),
        }
    }

    /// Returns the kind of values of a type, if there are any.
    pub(super) fn of_value(value_type: ValueType) -> Option<Self> {
        Some(match value_type {
            ValueType::U32 => Self::U32,
            ValueType::U64 => Self::U64,
            ValueType::I32 => Self::I32,
            ValueType::I64 => Self::I64,
            ValueType::F32 => Self::F32,
            ValueType::F64 => Self::F64,
            ValueType::Fixed(width) => Self::Bytes(width.into(), false),
            ValueType::Bytes => Self::Bytes(0, false),
            ValueType::Utf8 => Self::Bytes(0, true),
            ValueType::None => return None,
        })
    }

    /// Returns the kind of a field of a record.
    pub(super) fn of_field(kind: FieldKind) -> Self {
        match kind {
            FieldKind::U8 => Self::U8,
            FieldKind::U16 => Self::U16,
            FieldKind::U32 => Self::U32,
            FieldKind::U64 => Self::U64,
            FieldKind::I8 => Self::I8,
            FieldKind::I16 => Self::I16,
            FieldKind::I32 => Self::I32,
            FieldKind::I64 => Self::I64,
            FieldKind::F32 => Self::F32,
            FieldKind::F64 => Self::F64,
            FieldKind::Fixed(width) => Self::Bytes(width.into(), false),
            FieldKind::Bytes => Self::Bytes(0, false),
            FieldKind::Utf8 => Self::Bytes(0, true),
        }
    }

    /// Returns the least and greatest whole number; `None` if it is not a whole number. For u128, the
    /// greatest i128.
    pub(super) fn bounds(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::U8 => (0, u8::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
            Self::U128 => (0, i128::MAX),
            Self::I8 => (i8::MIN.into(), i8::MAX.into()),
            Self::I16 => (i16::MIN.into(), i16::MAX.into()),
            Self::I32 => (i32::MIN.into(), i32::MAX.into()),
            Self::I64 => (i64::MIN.into(), i64::MAX.into()),
            Self::F32 | Self::F64 | Self::Bytes(..) => return None,
        })
    }

    /// Returns the bits of a number; 0 for byte strings.
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::U8 | Self::I8 => 8,
            Self::U16 | Self::I16 => 16,
            Self::U32 | Self::I32 | Self::F32 => 32,
            Self::U64 | Self::I64 | Self::F64 => 64,
            Self::U128 => 128,
            Self::Bytes(..) => 0,
        }
    }

    /// Returns the name for messages.
    pub(super) fn name(self) -> String {
        match self {
            Self::Bytes(0, true) => "utf8".to_owned(),
            Self::Bytes(0, false) => "bytes".to_owned(),
            Self::Bytes(width, _) => format!("bytes{width}"),
            number => format!("{number:?}").to_lowercase(),
        }
    }
}

/// An operand of a tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) side: Side,
    pub(super) kind: Kind,
    /// First byte of a field in the record; `None` if it is the whole key or value.
    pub(super) at: Option<usize>,
    /// True for a field of a record that is stored as a byte string.
    pub(super) in_bytes: bool,
    /// Where records have it, if it is a text.
    pub(super) text: Option<TextPlace>,
    pub(super) name: String,
}

/// A type of whole numbers that expressions are computed in.
pub(super) trait Lane: Copy + Ord + Default + std::fmt::Display {
    /// True if results may not fit, so that each is checked.
    const CHECKED: bool;
    fn of_u64(number: u64) -> Self;
    fn of_i64(number: i64) -> Self;
    fn of_u128(number: u128) -> Self;
    fn of_i128(number: i128) -> Self;
    fn to_i128(self) -> i128;
    /// Shifts left or right, by fewer bits than the type has.
    fn shift(self, left: bool, count: u32) -> Self;
    fn add(self, other: Self) -> Option<Self>;
    fn subtract(self, other: Self) -> Option<Self>;
    fn multiply(self, other: Self) -> Option<Self>;
    fn divide(self, other: Self) -> Option<Self>;
    fn remainder(self, other: Self) -> Option<Self>;
    fn left(self, other: Self) -> Option<Self>;
    fn right(self, other: Self) -> Option<Self>;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
}

/// Results in narrow lanes are known to fit: nothing is checked, and loops vectorise.
macro_rules! lanes {
    ($($t:ident $checked:literal;)*) => {$(
        #[allow(clippy::unnecessary_cast)]
        impl Lane for $t {
            const CHECKED: bool = $checked;
            #[inline(always)]
            fn of_u64(number: u64) -> Self { number as $t }
            #[inline(always)]
            fn of_i64(number: i64) -> Self { number as $t }
            #[inline(always)]
            fn of_u128(number: u128) -> Self { number as $t }
            #[inline(always)]
            fn of_i128(number: i128) -> Self { number as $t }
            #[inline(always)]
            fn to_i128(self) -> i128 { self as i128 }
            #[inline(always)]
            fn shift(self, left: bool, count: u32) -> Self { if left { self << count } else { self >> count } }
            #[inline(always)]
            fn add(self, other: Self) -> Option<Self> {
                if $checked { self.checked_add(other) } else { Some(self.wrapping_add(other)) }
            }
            #[inline(always)]
            fn subtract(self, other: Self) -> Option<Self> {
                if $checked { self.checked_sub(other) } else { Some(self.wrapping_sub(other)) }
            }
            #[inline(always)]
            fn multiply(self, other: Self) -> Option<Self> {
                if $checked { self.checked_mul(other) } else { Some(self.wrapping_mul(other)) }
            }
            #[inline(always)]
            fn divide(self, other: Self) -> Option<Self> { self.checked_div(other) }
            #[inline(always)]
            fn remainder(self, other: Self) -> Option<Self> {
                // The least number % -1 is 0, although the division overflows.
                if other == 0 { None } else { Some(self.checked_rem(other).unwrap_or(0)) }
            }
            #[inline(always)]
            fn left(self, other: Self) -> Option<Self> {
                let count = u32::try_from(other).ok().filter(|&count| count < 128)?;
                let shifted = self.checked_shl(count).unwrap_or(0);
                let back = if count < $t::BITS { shifted >> count } else { 0 };
                (!$checked || back == self).then_some(shifted)
            }
            #[inline(always)]
            fn right(self, other: Self) -> Option<Self> {
                let count = u32::try_from(other).ok().filter(|&count| count < 128)?;
                // After a shift by that many bits, the sign or nothing remains.
                let half = self >> count.min($t::BITS - 1);
                Some(if count >= $t::BITS && $t::MIN == 0 { 0 } else { half })
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
        }
    )*};
}
lanes! {
    i64 false;
    u64 false;
    i128 true;
    u128 true;
}

/// Returns a field of a record in a byte string: its low 8 bytes, or 0 if the string is too short.
#[inline(always)]
fn word(record: &[u8], at: usize, bytes: usize) -> u64 {
    let mut raw = [0; 8];
    if let Some(field) = record.get(at..at + bytes) {
        let low = bytes.min(8);
        raw[..low].copy_from_slice(&field[..low]);
    }
    u64::from_le_bytes(raw)
}

impl Leaf {
    /// Returns the operand for a whole key, value or rank.
    pub(super) fn whole(side: Side, kind: Kind, name: &str) -> Self {
        Self { side, kind, at: None, in_bytes: false, text: None, name: name.to_owned() }
    }

    /// Returns the bits to flip in the word of a signed key, to get its number.
    pub(super) fn flip(&self) -> u64 {
        match (self.side, self.at, self.kind) {
            (Side::Key, None, Kind::I32) => 1 << 31,
            (Side::Key, None, Kind::I64) => 1 << 63,
            _ => 0,
        }
    }

    pub(super) fn column<'a>(&self, tuples: &Tuples<'a>) -> ColumnRef<'a> {
        match self.side {
            Side::Key => tuples.keys,
            Side::Value => tuples.values,
            Side::Rank => ColumnRef::None,
        }
    }

    /// Loads the whole numbers of some tuples into `out`; the lane holds every value of this operand.
    pub(super) fn load<T: Lane>(&self, tuples: &Tuples<'_>, range: std::ops::Range<usize>, out: &mut Vec<T>) {
        out.clear();
        let shift = 8 * self.at.unwrap_or(0) as u32;
        macro_rules! words {
            ($words:expr, $t:ty, $($kind:ident $as:ty, $of:ident $wide:ty;)*) => {{
                let (words, flip) = (&$words[range], self.flip() as $t);
                // A field beyond the word does not occur: no such records are made.
                let shift = shift % <$t>::BITS;
                match self.kind {
                    $(Kind::$kind => {
                        out.extend(words.iter().map(|&word| T::$of(((word ^ flip) >> shift) as $as as $wide)));
                    })*
                    Kind::U128 | Kind::F32 | Kind::F64 | Kind::Bytes(..) => {}
                }
            }};
        }
        macro_rules! numbers {
            ($words:expr, $t:ty) => {
                words! {
                    $words, $t,
                    U8 u8, of_u64 u64; U16 u16, of_u64 u64; U32 u32, of_u64 u64; U64 u64, of_u64 u64;
                    I8 i8, of_i64 i64; I16 i16, of_i64 i64; I32 i32, of_i64 i64; I64 i64, of_i64 i64;
                }
            };
        }
        match (self.side, self.column(tuples)) {
            (Side::Rank, _) => {
                out.extend(range.map(|index| T::of_u64(tuples.first_rank + index as u64)));
            }
            (_, ColumnRef::U32(words)) => numbers!(words, u32),
            (_, ColumnRef::U64(words)) => numbers!(words, u64),
            (_, ColumnRef::U128(words)) => out.extend(words[range].iter().map(|&word| T::of_u128(word))),
            (_, ColumnRef::Bytes(strings)) => {
                let (at, bytes) = (self.at.unwrap_or(0), self.kind.bits() as usize / 8);
                let unused = 64 - (8 * bytes as u32).min(64);
                let signed = self.kind.bounds().is_some_and(|(low, _)| low < 0);
                out.extend(range.map(|index| {
                    let word = word(strings.get(index), at, bytes);
                    if signed { T::of_i64((word << unused) as i64 >> unused) } else { T::of_u64(word) }
                }));
            }
            (_, ColumnRef::None) => {}
        }
    }

    /// Loads the floats of some tuples into `out`.
    pub(super) fn load_floats(&self, tuples: &Tuples<'_>, range: std::ops::Range<usize>, out: &mut Vec<f64>) {
        use pleach_format::Key;
        out.clear();
        let float = |word: u64| match self.kind {
            Kind::F32 => f64::from(f32::from_bits(word as u32)),
            _ => f64::from_bits(word),
        };
        match (self.side, self.column(tuples)) {
            (Side::Key, ColumnRef::U64(words)) => {
                out.extend(words[range].iter().map(|&word| <f64 as Key>::decode(word)));
            }
            (_, ColumnRef::U32(words)) => out.extend(words[range].iter().map(|&word| float(word.into()))),
            (_, ColumnRef::U64(words)) => {
                let shift = 8 * self.at.unwrap_or(0) as u32 % 64;
                out.extend(words[range].iter().map(|&word| float(word >> shift)));
            }
            (_, ColumnRef::Bytes(strings)) => {
                let (at, bytes) = (self.at.unwrap_or(0), self.kind.bits() as usize / 8);
                out.extend(range.map(|index| float(word(strings.get(index), at, bytes))));
            }
            (_, ColumnRef::U128(_) | ColumnRef::None) => {}
        }
    }

    /// Returns the bytes of an operand that is a byte string of any length.
    pub(super) fn string<'a>(&self, tuples: &Tuples<'a>, index: usize) -> &'a [u8] {
        match self.column(tuples) {
            ColumnRef::Bytes(strings) => {
                let string = strings.get(index);
                self.text.map_or(string, |place| place.text(string))
            }
            ColumnRef::None | ColumnRef::U32(_) | ColumnRef::U64(_) | ColumnRef::U128(_) => &[],
        }
    }

    /// Returns the bytes of an operand in a tuple; copies those of a field in a word to `scratch`.
    #[inline]
    pub(super) fn bytes<'a>(&self, tuples: &Tuples<'a>, index: usize, scratch: &'a mut [u8; 8]) -> &'a [u8] {
        let width = match self.kind {
            Kind::Bytes(width, _) => width,
            _ => 0,
        };
        let place = self.at.map(|at| at..at + width);
        match self.column(tuples) {
            ColumnRef::Bytes(strings) => {
                let string = strings.get(index);
                if let Some(place) = self.text {
                    return place.text(string);
                }
                place.map_or(string, |place| string.get(place).unwrap_or_default())
            }
            ColumnRef::U32(words) => {
                scratch[..4].copy_from_slice(&words[index].to_le_bytes());
                place.and_then(|place| scratch.get(place)).unwrap_or_default()
            }
            ColumnRef::U64(words) => {
                *scratch = words[index].to_le_bytes();
                place.and_then(|place| scratch.get(place)).unwrap_or_default()
            }
            ColumnRef::U128(_) | ColumnRef::None => &[],
        }
    }
}
