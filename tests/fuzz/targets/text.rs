//! Any text as an expression, a list of columns, a record, a type, a layout: an error that can be shown, or something
//! that can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pleach_builder::Layout;
use pleach_format::{KeyType, Record, ValueType};
use pleach_relation::expr::{ColumnRef, ExprError, Predicate, Projection, Schema, Tuples};

fn shown(error: &ExprError) {
    let caret = error.caret();
    assert!(
        !caret.is_empty() && error.place.start <= error.place.end && error.place.end <= error.text.len() + 1
    );
    assert!(error.column() >= 1 && !error.to_string().is_empty());
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(record) = Record::parse(text) {
        assert_eq!(Record::parse(&record.to_string()).as_ref(), Some(&record), "{record}");
        // Its bytes are values, and the values its bytes.
        let packed: Vec<u8> = (0..record.bytes()).map(|at| at as u8 ^ choice).collect();
        let values: Vec<_> = record.values(&packed).collect();
        let mut again = Vec::new();
        assert!(record.pack(&values, &mut again) && again == packed);
        assert!(!record.pack(&values[1..], &mut again) && again == packed);
        assert_eq!(Record::bits_of(&packed).is_some(), matches!(packed.len(), 4 | 8));
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
                    // What a device would do, where one could.
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
