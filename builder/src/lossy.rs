//! Keys that are shorter than the texts they stand for, all of them different.
//!
//! - A *hash* is the upper half of 128 bits. The build sorts the 128 bits, and looks for texts that differ in the
//!   lower half alone. If there are any, all hashes are turned by a byte and sorted again.
//! - A *prefix* has one letter more than any two neighbours in order have in common. If all texts are hexadecimal
//!   digits, it has so many digits, and is a number if there are few enough.

use crate::source::{Chunk, Column, Derived, Schema, Source, SourceError, Strings};
use pleach_format::logical::{Element, first_letters, hash128};
use pleach_format::{KeyType, Logical};

/// Tuples that are read at a time.
const CHUNK_TUPLES: usize = 1 << 15;

/// A function of a column of keys.
type Map<'a> = Box<dyn Fn(Column) -> Column + Send + 'a>;

/// A source with other keys.
pub(crate) struct Mapped<'a> {
    source: &'a mut dyn Source,
    schema: Schema,
    map: Map<'a>,
}

impl<'a> Mapped<'a> {
    pub(crate) fn new(source: &'a mut dyn Source, schema: Schema, map: Map<'a>) -> Self {
        Self { source, schema, map }
    }
}

impl Source for Mapped<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        let inner = self.source.schema();
        let mut held = Chunk::new(inner.key_type, inner.value_type);
        self.source.next_chunk(&mut held, tuples_max)?;
        *chunk = Chunk { keys: (self.map)(held.keys), ..held };
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        self.source.progress()
    }
}

/// Returns the schema of the file as far as it is known before the keys are.
pub(crate) fn schema(given: &Schema, derived: Derived) -> Schema {
    let key_logical = match derived {
        Derived::Hash => Logical::Hash64(0).meta(),
        Derived::Prefix => String::new(),
    };
    Schema { key_type: KeyType::U64, key_logical, derived: None, interval: None, ..given.clone() }
}

/// Returns the hashes of texts.
pub(crate) fn hashes(keys: Column) -> Column {
    match keys {
        Column::Bytes(strings) => Column::U128(strings.iter().map(hash128).collect()),
        // Sources of hashes themselves, which tests are.
        keys => keys,
    }
}

/// Returns hashes turned by a byte.
pub(crate) fn turned(keys: Column) -> Column {
    Column::U128(words(&keys).iter().map(|word| word.rotate_left(8)).collect())
}

/// Returns the upper halves of hashes.
pub(crate) fn upper_halves(keys: Column) -> Column {
    Column::U64(words(&keys).iter().map(|word| (word >> 64) as u64).collect())
}

fn words(keys: &Column) -> &[u128] {
    if let Column::U128(words) = keys { words } else { &[] }
}

/// Calls `visit` with all keys of a sorted source.
fn visit_all(source: &mut dyn Source, mut visit: impl FnMut(&Column)) -> Result<(), SourceError> {
    let mut chunk = Chunk::new(source.schema().key_type, source.schema().value_type);
    loop {
        source.next_chunk(&mut chunk, CHUNK_TUPLES)?;
        if chunk.is_empty() {
            return Ok(());
        }
        visit(&chunk.keys);
    }
}

/// Counts the different hashes of a sorted source; `None` if two of them differ in the lower half alone.
pub(crate) fn count_hashes(source: &mut dyn Source) -> Result<Option<u64>, SourceError> {
    let (mut last, mut distinct, mut collides) = (None::<u128>, 0, false);
    visit_all(source, |keys| {
        for &word in words(keys) {
            match last {
                Some(last) if last == word => {}
                Some(last) if last >> 64 == word >> 64 => collides = true,
                _ => distinct += 1,
            }
            last = Some(word);
        }
    })?;
    Ok((!collides).then_some(distinct))
}

/// The error for texts whose hashes collide however they are turned.
pub(crate) fn collision() -> SourceError {
    SourceError {
        input: "input".to_owned(),
        place: String::new(),
        what: "different keys have equal hashes".to_owned(),
        advice: "choose utf8 keys".to_owned(),
        cause: None,
    }
}

/// How much of each text becomes the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    distinct: u64,
    /// Letters or digits.
    count: u32,
    are_digits: bool,
}

/// Finds the shortest prefix by which all texts of a sorted source differ.
pub(crate) fn shape(source: &mut dyn Source) -> Result<Shape, SourceError> {
    let mut last: Option<Vec<u8>> = None;
    let (mut distinct, mut common, mut shortest_bytes) = (0, 0, usize::MAX);
    let (mut are_digits, mut has_lower, mut has_upper) = (true, false, false);
    visit_all(source, |keys| {
        let Column::Bytes(strings) = keys else { return };
        for text in strings.iter() {
            if last.as_deref() == Some(text) {
                continue;
            }
            if let Some(last) = &last {
                common = common.max(letters_in_common(last, text));
            }
            distinct += 1;
            shortest_bytes = shortest_bytes.min(text.len());
            are_digits &= text.iter().all(u8::is_ascii_hexdigit);
            has_lower |= text.iter().any(u8::is_ascii_lowercase);
            has_upper |= text.iter().any(u8::is_ascii_uppercase);
            let held = last.get_or_insert_default();
            held.clear();
            held.extend_from_slice(text);
        }
    })?;
    let count = common + 1;
    // More digits than a number has are bytes, which have two each.
    let digits = if count > 32 { count.next_multiple_of(2) } else { count };
    // The digits of texts in both cases would be equal where the texts are not.
    let fits = Logical::of_meta(&format!("Hex({digits})")) == Logical::HexDigits(digits);
    are_digits &= distinct > 0 && !(has_lower && has_upper) && shortest_bytes >= digits as usize && fits;
    Ok(Shape { distinct, count: if are_digits { digits } else { count }, are_digits })
}

/// Returns the number of letters with which both texts begin.
fn letters_in_common(one: &[u8], other: &[u8]) -> u32 {
    let bytes = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let is_start = |&&byte: &&u8| byte & 0xc0 != 0x80;
    let letters = one[..bytes].iter().filter(is_start).count();
    // A letter that the texts have only in part begins in front of where they differ.
    let is_inside = [one, other].iter().any(|text| text.get(bytes).is_some_and(|byte| byte & 0xc0 == 0x80));
    (letters - usize::from(is_inside && letters > 0)) as u32
}

impl Shape {
    fn logical(self) -> Logical {
        if self.are_digits { Logical::HexDigits(self.count) } else { Logical::Prefix(self.count) }
    }

    /// Returns the schema of the file.
    pub(crate) fn schema(self, given: &Schema) -> Schema {
        let logical = self.logical();
        let key_type = logical.key_words().and_then(|words| KeyType::from_name(&words));
        Schema {
            key_type: key_type.unwrap_or(KeyType::Utf8),
            key_logical: logical.meta(),
            derived: None,
            interval: None,
            approximate: Some(self.distinct),
            ..given.clone()
        }
    }

    /// Returns the keys of texts.
    pub(crate) fn cut(self, keys: Column) -> Column {
        let Column::Bytes(strings) = keys else { return keys };
        let cut = |text| first_letters(text, self.count).unwrap_or(text);
        let (Some(form), true) = (self.logical().form(), self.are_digits) else {
            let mut all = Strings::default();
            strings.iter().for_each(|text| all.push(cut(text)));
            return Column::Bytes(all);
        };
        // Every text is digits, and long enough.
        let number = |text: &[u8]| match form.element(text) {
            Ok(Element::Unsigned(number)) => number,
            _ => 0,
        };
        match self.count {
            0..=8 => Column::U32(strings.iter().map(|text| number(text) as u32).collect()),
            9..=16 => Column::U64(strings.iter().map(|text| number(text) as u64).collect()),
            17..=32 => Column::U128(strings.iter().map(number).collect()),
            _ => {
                let mut all = Strings::default();
                for text in strings.iter() {
                    match form.element(text) {
                        Ok(Element::Bytes(bytes)) => all.push(&bytes),
                        _ => all.push(&vec![0; self.count as usize / 2]),
                    }
                }
                Column::Bytes(all)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted_whole() {
        for (one, other, common) in [
            ("", "", 0),
            ("a", "b", 0),
            ("ab", "ac", 1),
            ("ab", "abc", 2),
            ("é", "è", 0),
            ("aé", "aè", 1),
            ("aé", "a", 1),
            ("\u{10ffff}a", "\u{10ffff}b", 1),
            ("\u{10ffff}", "\u{10fffe}", 0),
        ] {
            assert_eq!(letters_in_common(one.as_bytes(), other.as_bytes()), common, "{one} {other}");
            assert_eq!(letters_in_common(other.as_bytes(), one.as_bytes()), common, "{one} {other}");
        }
    }
}
