//! Any text as an expression, a list of columns, a record, a type, a layout: an error that can be shown, or
//! something that can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pleach_builder::Layout;
use pleach_format::logical::{Element, Meaning, matching, ratio};
use pleach_format::{KeyType, Logical, Record, ValueType};
use pleach_relation::expr::{ColumnRef, ExprError, Predicate, Projection, Schema, Tuples};

fn shown(error: &ExprError) {
    let caret = error.caret();
    assert!(
        !caret.is_empty() && error.place.start <= error.place.end && error.place.end <= error.text.len() + 1
    );
    assert!(error.column() >= 1 && !error.to_string().is_empty());
}

/// A text that a logical type reads is a word, which prints as a text that is read as this word; so does any word.
fn means(logical: &Logical, text: &str, choice: u8) {
    let Some(form) = logical.form() else { return };
    let bytes = std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or(choice));
    let drawn = i64::from_le_bytes(bytes);
    // Some are words of 4 bytes.
    let drawn = if logical.key_words().as_deref() == Some("i32") { i64::from(drawn as i32) } else { drawn };
    let mut printed = Vec::new();
    if !form.is_signed() {
        let element = form.element(text.as_bytes());
        match &element {
            Ok(Element::Unsigned(number)) => form.put_unsigned(*number, &mut printed),
            Ok(Element::Bytes(bytes)) => form.put_bytes(bytes, &mut printed),
            Ok(Element::Signed(_)) => unreachable!("{logical} has no sign"),
            Err(error) => return assert!(!form.advice(*error).is_empty()),
        }
        assert_eq!(form.element(&printed), element, "{logical}");
        // Numbers and bytes that no text has print, too.
        form.put_unsigned(u128::from_le_bytes([choice; 16]), &mut printed);
        form.put_bytes(text.as_bytes(), &mut printed);
        if let Some(Ok((low, high))) = form.prefix(text.as_bytes()) {
            assert!(low <= high, "{logical}");
        }
        return;
    }
    for word in form.read(text.as_bytes()).into_iter().chain([drawn]) {
        printed.clear();
        form.put(word, &mut printed);
        let read = form.read(&printed);
        // A word may have more digits than its decimal, if it was not checked.
        let is_long = matches!(logical, Logical::Decimal { .. });
        assert!(read == Ok(word) || is_long && read.is_err(), "{logical}: {word}: {read:?}");
    }
    assert!(form.read(text.as_bytes()).map_or_else(|e| !form.advice(e).is_empty(), |_| true));
}

/// Types by name and by what META says: what is named can be written and read again.
fn logical(text: &str, choice: u8) {
    for logical in [Some(Logical::of_meta(text)), Logical::of_name(text)].into_iter().flatten() {
        assert_eq!(Logical::of_meta(&logical.meta()), logical, "{text}");
        let own = Meaning::new("i64", text);
        assert!(matching(&own, &own).is_some() && ratio(&logical, &logical).is_some());
    }
    const NAMES: [&str; 20] = [
        "bool",
        "date",
        "date[ms]",
        "time[s]",
        "timestamp[ns]",
        "timestamp[ms,UTC]",
        "duration[us]",
        "decimal(18,4)",
        "uuid",
        "ipv4",
        "ipv6",
        "ip",
        "hex",
        "hex:5",
        "hex:40",
        "dna2",
        "dna2:canonical",
        "composite<a: u8, b: u16>",
        "composite<a: utf8, b: i64 \"Timestamp(Second, None)\", c: bytes>",
        "composite<a: u128 \"Ip\", b: i16, c: utf8>",
    ];
    let name = NAMES[choice as usize % NAMES.len()];
    means(&Logical::of_name(name).unwrap_or_else(|| Logical::of_meta(name)), text, choice);
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    logical(text, choice);
    if let Some(record) = Record::parse(text) {
        assert_eq!(Record::parse(&record.to_string()).as_ref(), Some(&record), "{record}");
        // Its bytes are values, and the values its bytes. With texts, any bytes are some values.
        let packed: Vec<u8> = (0..record.bytes() + usize::from(choice)).map(|at| at as u8 ^ choice).collect();
        let packed = if record.has_texts() { &packed[..] } else { &packed[..record.bytes()] };
        let values: Vec<_> = record.values(packed).collect();
        let mut again = Vec::new();
        assert!(values.len() == record.len() && record.pack(&values, &mut again));
        assert_eq!(record.check(&again), Ok(()));
        assert_eq!(again == packed, record.check(packed).is_ok());
        let whole = again.clone();
        assert!(!record.pack(&values[1..], &mut again) && again == whole);
        if !record.has_texts() {
            assert_eq!(Record::bits_of(packed).is_some(), matches!(packed.len(), 4 | 8));
        }
        for (number, field) in record.fields().iter().enumerate() {
            assert_eq!(record.find(&field.name), Some(number));
            assert!(record.offset(number) < record.bytes());
        }
    }
    if let Some(key_type) = KeyType::from_name(text) {
        assert_eq!(KeyType::from_name(&key_type.to_string()), Some(key_type));
    }
    if let Some(value_type) = ValueType::from_name(text) {
        assert_eq!(ValueType::from_name(&value_type.to_string()), Some(value_type));
    }
    if let Ok(layout) = text.parse::<Layout>() {
        assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout));
    }
    let record = "record<a: u32, b: i16, c: bytes3, d: f64>";
    let mut schema = match choice % 5 {
        0 => Schema::new(KeyType::U64, ValueType::U64),
        1 => Schema::new(KeyType::I32, ValueType::F64),
        2 => Schema::new(KeyType::Utf8, ValueType::None),
        3 => Schema::new(KeyType::F64, ValueType::Utf8),
        _ => Schema { record: Record::parse(record), ..Schema::new(KeyType::U32, ValueType::Fixed(17)) },
    };
    schema.key_name = "id".into();
    match Predicate::parse(text, &schema) {
        Ok(predicate) => {
            let _ = (
                predicate.explain(),
                predicate.key_ranges(),
                predicate.program(),
                predicate.rank_ranges(100),
            );
            if choice % 5 == 0 {
                let keys: Vec<u64> = (0..70).map(|i| i * i).collect();
                let values: Vec<u64> = (0..70).map(|i| u64::MAX - i).collect();
                let tuples =
                    Tuples { first_rank: 5, keys: ColumnRef::U64(&keys), values: ColumnRef::U64(&values) };
                let mut bits = Vec::new();
                if let Ok(found) = predicate.evaluate(&tuples, &mut bits) {
                    assert!(found <= 70);
                    // The work of a device, where one could do it.
                    if let Some(program) = predicate.program() {
                        for (at, (&key, &value)) in keys.iter().zip(&values).enumerate() {
                            let kept = bits[at / 64] >> (at % 64) & 1 == 1;
                            assert_eq!(program.run(key, value, 5 + at as u64), kept, "tuple {at}");
                        }
                    }
                }
            }
        }
        Err(error) => shown(&error),
    }
    match Projection::parse(text, &schema) {
        Ok(projection) => {
            let _ = (projection.schema(), projection.explain(), projection.parts(), projection.keeps_order());
        }
        Err(error) => shown(&error),
    }
});
