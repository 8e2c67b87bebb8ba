//! Types of a program that a file can hold: numbers, texts, byte strings, and records as tuples.
//!
//! A build takes keys of [`BuildKey`] and values of [`BuildValue`]; a look-up returns values of [`MapValue`].
//! All numbers of [`Key`] and [`Value`] are among them.

use crate::key::sealed::Sealed;
use crate::key::{Bits, Key, Value, Word};
use crate::record::{
    BuildField, Ends, FieldError, FieldKind, FieldType, FieldValue, Record, checked_length, storage,
};
use crate::types::{KeyType, ValueType};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A key in the form that files store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPart<'a> {
    /// The encoded word of a number.
    Word(u128),
    /// A byte string.
    Bytes(&'a [u8]),
}

/// A value in the form that files store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuePart<'a> {
    /// The bits of a number.
    Bits(u64),
    /// A byte string.
    Bytes(&'a [u8]),
}

/// A type of keys that a file can be built of: the numbers of [`Key`], texts (`&str`, `String`), and byte
/// strings (`&[u8]`, `Vec<u8>`, `[u8; N]`).
pub trait BuildKey: Sealed {
    /// Its type in the file.
    const KEY_TYPE: KeyType;
    /// Returns the key as the file stores it.
    fn key_part(&self) -> KeyPart<'_>;
}

/// A type of values that a file can be built of: the numbers of [`Value`], `()`, texts, byte strings, and
/// records of 1 to 8 fields as tuples of [`BuildField`], such as `(u32, f64, &str)`.
pub trait BuildValue: Sealed {
    /// Its type in the file.
    const VALUE_TYPE: ValueType;
    /// Types of its fields; empty if it is not a record.
    const FIELDS: &'static [FieldKind];
    /// Returns the value as the file stores it. Records are packed into `room`.
    fn value_part<'a>(&'a self, room: &'a mut Vec<u8>) -> ValuePart<'a>;
}

/// A type of values that a look-up can return: the numbers of [`Value`], `()` (whatever the values are),
/// `String`, `Vec<u8>`, `[u8; N]`, records as [`Row`] or as tuples of [`FieldType`], such as `(u32, String)`.
pub trait MapValue: Sized + Send + Sync + Sealed + 'static {
    /// Its part in the tuple lines: the value itself if it is a number, otherwise nothing.
    type Lines: Value;
    /// True if the tuple lines hold all of it.
    const IN_LINES: bool;
    /// Returns the name of the type, as files call it.
    fn type_name() -> String;
    /// Returns true if values of a file, which are of this type and perhaps records, can be returned as `Self`.
    fn fits(value_type: ValueType, record: Option<&Record>) -> bool;
    /// Makes the value of its part in the lines and, unless [`MapValue::IN_LINES`], of its packed bytes. `None`
    /// if they are not valid for the type.
    fn decode(lines: Self::Lines, packed: Cow<'_, [u8]>, record: Option<&Arc<Record>>) -> Option<Self>;
}

impl<K: Key> BuildKey for K {
    const KEY_TYPE: KeyType = K::TYPE;
    #[inline(always)]
    fn key_part(&self) -> KeyPart<'_> {
        KeyPart::Word(self.encode().to_u128())
    }
}

impl<V: Value> BuildValue for V {
    const VALUE_TYPE: ValueType = V::TYPE;
    const FIELDS: &'static [FieldKind] = &[];
    #[inline(always)]
    fn value_part<'a>(&'a self, _: &'a mut Vec<u8>) -> ValuePart<'a> {
        ValuePart::Bits(self.to_bits().to_u64())
    }
}

impl<V: Value> MapValue for V {
    type Lines = V;
    const IN_LINES: bool = true;
    fn type_name() -> String {
        V::TYPE.to_string()
    }
    fn fits(value_type: ValueType, _: Option<&Record>) -> bool {
        V::TYPE == value_type || V::TYPE == ValueType::None
    }
    #[inline(always)]
    fn decode(lines: V, _: Cow<'_, [u8]>, _: Option<&Arc<Record>>) -> Option<Self> {
        Some(lines)
    }
}

macro_rules! strings {
    ($([$($generics:tt)*] $t:ty = $kind:expr, $value:expr, $bytes:ident;)*) => {$(
        impl<$($generics)*> BuildKey for $t {
            const KEY_TYPE: KeyType = $kind;
            fn key_part(&self) -> KeyPart<'_> {
                KeyPart::Bytes(self.$bytes())
            }
        }
        impl<$($generics)*> BuildValue for $t {
            const VALUE_TYPE: ValueType = $value;
            const FIELDS: &'static [FieldKind] = &[];
            fn value_part<'a>(&'a self, _: &'a mut Vec<u8>) -> ValuePart<'a> {
                ValuePart::Bytes(self.$bytes())
            }
        }
    )*};
}
strings! {
    [] &str = KeyType::Utf8, ValueType::Utf8, as_bytes;
    [] String = KeyType::Utf8, ValueType::Utf8, as_bytes;
    [] &[u8] = KeyType::Bytes, ValueType::Bytes, as_ref;
    [] Vec<u8> = KeyType::Bytes, ValueType::Bytes, as_slice;
    [const N: usize] [u8; N] =
        KeyType::Fixed(checked_length::<N>()), ValueType::Fixed(checked_length::<N>()), as_slice;
}

impl MapValue for String {
    type Lines = ();
    const IN_LINES: bool = false;
    fn type_name() -> String {
        ValueType::Utf8.to_string()
    }
    fn fits(value_type: ValueType, _: Option<&Record>) -> bool {
        value_type == ValueType::Utf8
    }
    fn decode((): (), packed: Cow<'_, [u8]>, _: Option<&Arc<Record>>) -> Option<Self> {
        String::from_utf8(packed.into_owned()).ok()
    }
}

impl MapValue for Vec<u8> {
    type Lines = ();
    const IN_LINES: bool = false;
    fn type_name() -> String {
        ValueType::Bytes.to_string()
    }
    fn fits(value_type: ValueType, _: Option<&Record>) -> bool {
        value_type.is_bytes()
    }
    fn decode((): (), packed: Cow<'_, [u8]>, _: Option<&Arc<Record>>) -> Option<Self> {
        Some(packed.into_owned())
    }
}

impl<const N: usize> MapValue for [u8; N] {
    type Lines = ();
    const IN_LINES: bool = false;
    fn type_name() -> String {
        ValueType::Fixed(checked_length::<N>()).to_string()
    }
    fn fits(value_type: ValueType, _: Option<&Record>) -> bool {
        value_type == ValueType::Fixed(checked_length::<N>())
    }
    fn decode((): (), packed: Cow<'_, [u8]>, _: Option<&Arc<Record>>) -> Option<Self> {
        packed.as_ref().try_into().ok()
    }
}

macro_rules! records {
    ($($($t:ident $at:tt)*;)*) => {$(
        impl<$($t: BuildField),*> Sealed for ($($t,)*) {}

        impl<$($t: BuildField),*> BuildValue for ($($t,)*) {
            const VALUE_TYPE: ValueType = storage(
                0 $(+ <$t as BuildField>::KIND.bytes())*,
                false $(|| <$t as BuildField>::KIND.is_text())*,
            );
            const FIELDS: &'static [FieldKind] = &[$(<$t as BuildField>::KIND),*];
            fn value_part<'a>(&'a self, room: &'a mut Vec<u8>) -> ValuePart<'a> {
                room.clear();
                let mut ends = Ends::default();
                $(self.$at.put(&mut ends, room);)*
                $(room.extend_from_slice(self.$at.text());)*
                match Record::bits_of(room).filter(|_| Self::VALUE_TYPE != ValueType::Bytes) {
                    Some(bits) => ValuePart::Bits(bits),
                    None => ValuePart::Bytes(room),
                }
            }
        }

        impl<$($t: FieldType),*> MapValue for ($($t,)*) {
            type Lines = ();
            const IN_LINES: bool = false;
            fn type_name() -> String {
                let kinds: Vec<String> = Self::FIELDS.iter().map(ToString::to_string).collect();
                format!("record<{}>", kinds.join(", "))
            }
            fn fits(_: ValueType, record: Option<&Record>) -> bool {
                record.is_some_and(|record| {
                    record.fields().iter().map(|field| &field.kind).eq(Self::FIELDS)
                })
            }
            fn decode((): (), packed: Cow<'_, [u8]>, record: Option<&Arc<Record>>) -> Option<Self> {
                let record = record.filter(|record| record.check(&packed).is_ok())?;
                Some(($(record.get_typed::<$t>($at, &packed)?,)*))
            }
        }
    )*};
}
records! {
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
}

/// A record whose fields are known at run time, as a look-up returns it.
#[derive(Clone, PartialEq)]
pub struct Row {
    record: Arc<Record>,
    packed: Vec<u8>,
}

impl Row {
    /// Returns the value of the field with this name.
    ///
    /// # Errors
    /// [`FieldError`] if there is no such field, or if it has another type.
    pub fn get<T: FieldType>(&self, name: &str) -> Result<T, FieldError> {
        let index = self.record.find_typed::<T>(name)?;
        // `decode` made the row of a whole record.
        Ok(self.record.get_typed(index, &self.packed).expect("a whole record"))
    }

    /// Returns the names and values of all fields, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, FieldValue<'_>)> {
        let fields = self.record.fields().iter().enumerate();
        fields.map(|(at, field)| {
            (field.name.as_str(), self.record.get(at, &self.packed).expect("a whole record"))
        })
    }

    /// Returns the fields.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Returns the packed record.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.packed
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Sealed for Row {}

impl MapValue for Row {
    type Lines = ();
    const IN_LINES: bool = false;
    fn type_name() -> String {
        "record".to_owned()
    }
    fn fits(_: ValueType, record: Option<&Record>) -> bool {
        record.is_some()
    }
    fn decode((): (), packed: Cow<'_, [u8]>, record: Option<&Arc<Record>>) -> Option<Self> {
        let record = record.filter(|record| record.check(&packed).is_ok())?;
        Some(Self { record: Arc::clone(record), packed: packed.into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Field;

    #[test]
    fn records_are_packed_and_read_back() {
        let fields = vec![
            Field::new("a", FieldKind::U8),
            Field::new("b", FieldKind::F64),
            Field::new("c", FieldKind::Fixed(3)),
        ];
        let record = Arc::new(Record::new(fields).expect("is a record"));
        type Tuple = (u8, f64, [u8; 3]);
        assert_eq!(<Tuple as BuildValue>::VALUE_TYPE, record.storage());
        assert!(Tuple::fits(record.storage(), Some(&record)) && !<(u8, f64)>::fits(record.storage(), None));
        assert!(!<(u8, f64)>::fits(record.storage(), Some(&record)));
        assert_eq!(Tuple::type_name(), "record<u8, f64, bytes3>");
        let (value, mut room) = ((7, 0.5, *b"xyz"), vec![9]);
        let ValuePart::Bytes(packed) = value.value_part(&mut room) else { panic!("12 bytes are no number") };
        assert_eq!(Tuple::decode((), packed.into(), Some(&record)), Some(value));
        assert_eq!(Tuple::decode((), packed[1..].into(), Some(&record)), None);
        let row = Row::decode((), packed.into(), Some(&record)).expect("is whole");
        assert_eq!((row.get("b"), row.get("c"), row.as_bytes().len()), (Ok(0.5), Ok(*b"xyz"), 12));
        assert_eq!(row.iter().next(), Some(("a", FieldValue::U8(7))));
        let error = row.get::<u64>("b").expect_err("is a float");
        assert_eq!(error.to_string(), "field 'b' is of type f64, not u64");
        let error = row.get::<u64>("d").expect_err("is not there");
        assert_eq!(error.to_string(), "unknown field 'd': use one of a, b, c");
        assert_eq!((1u16, 2i16).value_part(&mut room), ValuePart::Bits(0x0002_0001));
        assert_eq!(<(u16, i16)>::VALUE_TYPE, ValueType::U32);
    }

    #[test]
    fn texts_are_packed_and_read_back() {
        let fields = vec![Field::new("a", FieldKind::Utf8), Field::new("b", FieldKind::Bytes)];
        let record = Arc::new(Record::new(fields).expect("is a record"));
        assert_eq!(<(&str, &[u8])>::VALUE_TYPE, ValueType::Bytes);
        let mut room = Vec::new();
        let built = ("", &b""[..]);
        let ValuePart::Bytes(packed) = built.value_part(&mut room) else { panic!("texts are no number") };
        assert_eq!(packed.len(), 8);
        let value = ("name".to_owned(), vec![0xff_u8]);
        let ValuePart::Bytes(packed) = value.value_part(&mut room) else { panic!("texts are no number") };
        let texts = ("name".to_owned(), vec![0xff_u8]);
        assert_eq!(<(String, Vec<u8>)>::decode((), packed.into(), Some(&record)), Some(texts.clone()));
        assert_eq!(<(String, Vec<u8>)>::decode((), packed[..12].into(), Some(&record)), None);
        let row = Row::decode((), packed.into(), Some(&record)).expect("is whole");
        assert_eq!((row.get::<String>("a"), row.get::<Vec<u8>>("b")), (Ok(texts.0), Ok(texts.1)));
        assert_eq!(Row::decode((), packed[1..].into(), Some(&record)), None);
    }
}
