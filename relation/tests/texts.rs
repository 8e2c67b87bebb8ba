//! Operators on records with texts: joins write the texts of both sides, and conditions ask for them.

use pleach::{Datum, FieldValue, Index, KeyType, ValueType};
use pleach_builder::{BuildOptions, Builder, Column, Silent, Strings};
use pleach_relation::expr::{Predicate, Projection, Schema, Tuples};
use pleach_relation::{How, Relation, StreamOptions, join, select_where};

/// A number, a name, and bytes.
type Named = (u8, String, Vec<u8>);

/// Both sides are records, one with texts and one without, of different lengths, with keys of both.
#[test]
fn records_with_texts_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let (left, right, path) =
        (folder.path().join("l.pleach"), folder.path().join("r.pleach"), folder.path().join("j.pleach"));
    let names = |count: usize| vec![format!("a{count}"), String::new(), "é".repeat(count)];
    let lefts: Vec<(i32, Named)> = (0..40)
        .map(|at| (at * 2, (at as u8, names(at as usize)[at as usize % 3].clone(), vec![7; at as usize])))
        .collect();
    let rights: Vec<(i32, (f64, u16))> = (0..40).map(|at| (at * 3, (f64::from(at), at as u16))).collect();
    Builder::new().fields(["n", "name", "blob"]).build(&left, lefts.clone()).unwrap();
    Builder::new().fields(["x", "y"]).build(&right, rights.clone()).unwrap();
    let (left, right) = (Index::open(&left).unwrap(), Index::open(&right).unwrap());
    let (l, r) = (Relation::from_index(&left), Relation::from_index(&right));
    for how in [How::Inner, How::Left, How::Right, How::Full] {
        for is_swapped in [false, true] {
            let (one, other) = if is_swapped { (r, l) } else { (l, r) };
            let answer = join(how, one, other, StreamOptions::default()).unwrap();
            answer.to_index(&path, &BuildOptions::default(), &Silent).unwrap();
            let file = Index::open(&path).unwrap();
            let record = file.record().unwrap().expect("a record");
            let (text, number) = if is_swapped { ("right", "left") } else { ("left", "right") };
            let find = |side: &str, name: &str| record.find(&format!("{side}_{name}")).expect("a field");
            let mut keys = Vec::new();
            for rank in 0..file.len() {
                let (key, packed) = file.tuple(rank).unwrap().unwrap();
                let (Datum::I32(key), packed) = (key, packed.packed().into_owned()) else { panic!("i32") };
                keys.push(key);
                assert_eq!(record.check(&packed), Ok(()));
                let wanted = lefts.iter().find(|tuple| tuple.0 == key).map(|tuple| tuple.1.clone());
                let wanted = wanted.unwrap_or_default();
                assert_eq!(record.get_typed(find(text, "n"), &packed), Some(wanted.0));
                assert_eq!(record.get_typed(find(text, "name"), &packed), Some(wanted.1));
                assert_eq!(record.get_typed(find(text, "blob"), &packed), Some(wanted.2));
                let wanted = rights.iter().find(|tuple| tuple.0 == key).map(|tuple| tuple.1);
                assert_eq!(record.get_typed(find(number, "x"), &packed), Some(wanted.unwrap_or_default().0));
                assert_eq!(record.get_typed(find(number, "y"), &packed), Some(wanted.unwrap_or_default().1));
            }
            let is_in = |keys: &[i32], key: i32| keys.contains(&key);
            let (ours, theirs): (Vec<i32>, Vec<i32>) =
                (lefts.iter().map(|tuple| tuple.0).collect(), rights.iter().map(|tuple| tuple.0).collect());
            let (ours, theirs) = if is_swapped { (theirs, ours) } else { (ours, theirs) };
            let wanted: Vec<i32> = (0..120)
                .filter(|&key| match how {
                    How::Inner => is_in(&ours, key) && is_in(&theirs, key),
                    How::Left => is_in(&ours, key),
                    How::Right => is_in(&theirs, key),
                    _ => is_in(&ours, key) || is_in(&theirs, key),
                })
                .collect();
            assert_eq!(keys, wanted);
        }
    }
    // Fields of records with texts are what conditions ask for.
    let schema = l.expr_schema().unwrap();
    for (condition, count) in [("name = ''", 13), ("n < 10 and name < 'b'", 7), ("name like 'a1%'", 3)] {
        let condition = Predicate::parse(condition, &schema).unwrap_or_else(|error| panic!("{error}"));
        let found = select_where(l, &condition, StreamOptions::default()).unwrap();
        assert_eq!(found.collect().unwrap().keys.len(), count);
    }
}

/// Columns of texts become fields of a record, and these become columns.
#[test]
fn texts_are_projected() {
    let text = Schema::new(KeyType::Utf8, ValueType::Utf8);
    let projection = Projection::parse("key,text=value,rank,again=key", &text).expect("parses");
    let out = projection.schema();
    let record = out.record.clone().expect("is a record");
    assert_eq!(record.to_string(), "record<text: utf8, rank: u64, again: utf8>");
    let (mut texts, mut words) = (Strings::default(), Strings::default());
    for (key, value) in [("a", "one"), ("b", ""), ("c", "three")] {
        texts.push(key.as_bytes());
        words.push(value.as_bytes());
    }
    let (keys, values) = (Column::Bytes(texts), Column::Bytes(words));
    let tuples = Tuples { first_rank: 5, keys: (&keys).into(), values: (&values).into() };
    let (mut made, mut records) = (Column::for_key(out.key_type), Column::for_value(out.value_type));
    projection.apply(&tuples, &mut made, &mut records).expect("applies");
    let Column::Bytes(packed) = &records else { panic!("bytes") };
    let fields: Vec<Vec<FieldValue<'_>>> =
        packed.iter().map(|packed| record.values(packed).collect()).collect();
    let row = |value, rank, key| vec![FieldValue::Utf8(value), FieldValue::U64(rank), FieldValue::Utf8(key)];
    assert_eq!(fields, [row("one", 5, "a"), row("", 6, "b"), row("three", 7, "c")]);
    assert!(packed.iter().all(|packed| record.check(packed).is_ok()));
    // And a field becomes a key, or the only value.
    let projection = Projection::parse("text,again", &out).expect("parses");
    let tuples = Tuples { values: (&records).into(), ..tuples };
    let (mut new_keys, mut new_values) = (Column::for_key(KeyType::Utf8), Column::for_value(ValueType::Utf8));
    projection.apply(&tuples, &mut new_keys, &mut new_values).expect("applies");
    assert_eq!((new_keys, new_values), (values, keys));
}
