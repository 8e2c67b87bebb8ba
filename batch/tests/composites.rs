//! Composite keys and prefixes, built from text and asked for as texts and structs, against a sorted list.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use pleach_batch::arrow::ArrowKeys;
use pleach_batch::{Bound, Copied, Found, Keys, Pool, Table, Values};
use pleach_builder::{BuildOptions, Silent};
use pleach_format::logical::{Composite, Element, Form, Logical, part_type, type_list};
use pleach_input::{Format, InputOptions};
use std::cmp::Ordering;
use std::sync::Arc;

/// A generator of numbers that are not random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A text of a part of this type, one of a few.
fn text(name: &str, numbers: &mut Numbers) -> String {
    let number = numbers.below(9);
    match name {
        "utf8" => {
            ["", "a", "a,b", "say \"x\"", "ab", "é", "a b", "b", "\u{10ffff}"][number as usize].to_owned()
        }
        "date" => format!("{}-0{}-15", 1960 + number * 10, 1 + number),
        "ipv4" => format!("10.{}.0.{}", number * 30, number),
        "uuid" => format!("{:032x}", u128::from(number) << (14 * number)),
        "bytes" => {
            format!("\\x{}", ["", "00", "0000", "00ff", "01", "ff", "ffff", "ff00", "a0"][number as usize])
        }
        "i16" => (i64::from(i16::MIN) + number as i64 * 8191).to_string(),
        "i64" => (i64::MIN + (number as i64) * (i64::MAX / 9)).to_string(),
        "u64" => (u64::MAX / 9 * number).to_string(),
        _ => number.to_string(),
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn order(one: &[Element], other: &[Element]) -> Ordering {
    let part = |(one, other): (&Element, &Element)| match (one, other) {
        (Element::Signed(one), Element::Signed(other)) => one.cmp(other),
        (Element::Unsigned(one), Element::Unsigned(other)) => one.cmp(other),
        (Element::Bytes(one), Element::Bytes(other)) => one.cmp(other),
        _ => panic!("parts of one column are of one type"),
    };
    one.iter().zip(other).map(part).find(|found| found.is_ne()).unwrap_or(Ordering::Equal)
}

fn built(csv: String, options: &InputOptions, path: &std::path::Path) -> Table {
    let options = InputOptions { format: Some(Format::Csv), ..options.clone() };
    let stream = Box::new(std::io::Cursor::new(csv.into_bytes()));
    let mut source = pleach_input::open_stream("rows", stream, &options).expect("is a table");
    pleach_builder::build(&mut *source, path, &BuildOptions::default(), &Silent).expect("is built");
    Table::open(path).expect("opens")
}

/// Compares every kind of look-up with `rows`, which are the texts of the parts of each row.
fn check(types: &str, rows: &[Vec<String>], folder: &std::path::Path) {
    let names = type_list(types);
    let columns: Vec<String> = (0..names.len()).map(|at| format!("c{at}")).collect();
    let mut csv = format!("{},row\n", columns.join(","));
    for (row, parts) in rows.iter().enumerate() {
        let parts: Vec<String> = parts.iter().map(|part| quoted(part)).collect();
        csv += &format!("{},{row}\n", parts.join(","));
    }
    let meanings: Vec<_> = names.iter().map(|name| part_type(name).expect("is a part")).collect();
    let composite = Composite::new(columns.iter().cloned().zip(meanings.iter().cloned()).collect());
    let composite = composite.expect("is a key");
    let options = InputOptions {
        key: Some(columns.join(",")),
        part_types: meanings,
        value_type: Some(pleach::ValueType::U32),
        ..InputOptions::default()
    };
    let table = built(csv, &options, &folder.join("keys.pleach"));
    assert_eq!(*table.key_meaning(), Logical::Composite(composite.clone()), "{types}");
    let Some(Form::Composite(parts)) = table.key_form() else { panic!("{types}: a composite form") };
    let texts: Vec<String> = rows
        .iter()
        .map(|parts| parts.iter().map(|part| quoted(part)).collect::<Vec<_>>().join(","))
        .collect();
    let elements = |text: &str| parts.elements(text.as_bytes()).expect("are elements");
    let mut sorted: Vec<(Vec<Element>, u32)> =
        texts.iter().zip(0..).map(|(text, row)| (elements(text), row)).collect();
    sorted.sort_by(|one, other| order(&one.0, &other.0));
    let mut numbers = Numbers(99);
    let strangers = (0..rows.len()).map(|_| {
        let parts: Vec<String> = names.iter().map(|name| quoted(&text(name, &mut numbers))).collect();
        parts.join(",")
    });
    let queries: Vec<String> = texts.iter().cloned().chain(strangers).collect();
    let pool = Pool::current();
    let count = queries.len();
    let parsed =
        table.parsed(&queries.iter().collect::<Copied>()).expect("are keys").expect("texts mean keys");
    let lower = |key: &[Element]| sorted.partition_point(|(own, _)| order(own, key).is_lt());
    let upper = |key: &[Element]| sorted.partition_point(|(own, _)| order(own, key).is_le());
    let ask = |keys: &Keys<'_>| {
        let (mut values, mut found) = (vec![7; count], vec![false; count]);
        table
            .get(keys, &mut Values::U32(&mut values), &mut Found::Bools(&mut found), &pool)
            .expect("answers");
        let (mut first, mut end) = (vec![0; count], vec![0; count]);
        table.bounds(keys, Bound::Lower, &mut first, &pool).expect("answers");
        table.bounds(keys, Bound::Upper, &mut end, &pool).expect("answers");
        for (at, query) in queries.iter().enumerate() {
            let key = elements(query);
            let (from, to) = (lower(&key), upper(&key));
            assert_eq!((first[at], end[at]), (from as u64, to as u64), "{types}: {query}");
            assert_eq!(found[at], from < to, "{types}: {query}");
            assert_eq!(values[at], if from < to { sorted[from].1 } else { 0 }, "{types}: {query}");
        }
    };
    parsed.with(ask);
    // The tuples come back as structs, which are keys again.
    let ranks: Vec<u64> = (0..table.len()).collect();
    let (keys, _) = table.arrays_at(&ranks, &pool).expect("reads");
    let back = ArrowKeys::new(&table, Arc::clone(&keys)).expect("are keys");
    let mut first = vec![0; sorted.len()];
    back.with(|keys| table.bounds(keys, Bound::Lower, &mut first, &pool)).expect("answers");
    for (at, (key, _)) in sorted.iter().enumerate() {
        assert_eq!(first[at], lower(key) as u64, "{types}: structs");
    }
    // Columns in another order are found by their names, and nulls in any of them are no keys.
    let structs = keys.as_struct();
    let mut fields: Vec<_> =
        structs.fields().iter().cloned().zip(structs.columns().iter().cloned()).collect();
    fields.reverse();
    let reversed: ArrayRef = Arc::new(StructArray::from(fields));
    let (fields, columns, _) = reversed.as_struct().clone().into_parts();
    let valid = (0..rows.len()).map(|at| at % 3 != 0).collect();
    let nulls: ArrayRef = Arc::new(StructArray::new(fields, columns, Some(valid)));
    let mut ranks = vec![0; nulls.len()];
    let again = ArrowKeys::new(&table, nulls).expect("are keys");
    let mut found = vec![false; ranks.len()];
    again.with(|keys| table.rank(keys, &mut ranks, &mut Found::Bools(&mut found), &pool)).expect("answers");
    for (at, &found) in found.iter().enumerate() {
        assert_eq!(found, at % 3 != 0, "{types}: nulls");
    }
    // Prefixes of every number of parts.
    for kept in 1..=names.len() {
        let cut =
            |parts: &Vec<String>| parts[..kept].iter().map(|part| quoted(part)).collect::<Vec<_>>().join(",");
        let prefixes: Vec<String> = rows.iter().map(cut).collect();
        let (mut first, mut end) = (vec![0; prefixes.len()], vec![0; prefixes.len()]);
        table.prefix(&prefixes.iter().collect::<Copied>(), &mut first, &mut end, &pool).expect("answers");
        for (at, prefix) in prefixes.iter().enumerate() {
            let prefix = parts.elements(prefix.as_bytes()).expect("are elements");
            let is_in = |own: &[Element]| match (own.last(), prefix.last()) {
                // A text that is the last part is the beginning of one.
                (Some(Element::Bytes(last)), Some(Element::Bytes(wanted))) if kept == own.len() => {
                    own[..kept - 1] == prefix[..kept - 1] && last.starts_with(wanted)
                }
                _ => own[..kept] == prefix[..],
            };
            let wanted: Vec<usize> = (0..sorted.len()).filter(|&rank| is_in(&sorted[rank].0)).collect();
            let (from, to) = (wanted.first().copied().unwrap_or(0), wanted.last().map_or(0, |last| last + 1));
            assert_eq!((first[at], end[at]), (from as u64, to as u64), "{types}: {kept} parts");
        }
    }
}

#[test]
fn composites_agree_with_a_sorted_list() {
    let folder = tempfile::tempdir().expect("a folder");
    for types in [
        "u32,u32",
        "u8,i16",
        "i16,date",
        "ipv4,u64",
        "u64,i64",
        "uuid,u8",
        "utf8,u32",
        "u32,utf8",
        "utf8,utf8,i64",
        "bytes,date,utf8",
        "bytes,bytes",
        "u8,u8,u8,u8,u8,u8,u8,u8",
    ] {
        let mut numbers = Numbers(7);
        for count in [1, 9, 400] {
            let row = |numbers: &mut Numbers| {
                type_list(types).into_iter().map(|name| text(name, numbers)).collect::<Vec<_>>()
            };
            let rows: Vec<Vec<String>> = (0..count).map(|_| row(&mut numbers)).collect();
            check(types, &rows, folder.path());
        }
    }
}

#[test]
fn prefixes_of_single_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = ["", "00", "0a", "5b", "5baa", "5baa61", "5baf", "5bff", "f0", "ff", "ffff", "fffffe"];
    let ask = |name: &str, prefixes: &[&str]| {
        let meaning = part_type(name).expect("is a type");
        let rows: Vec<String> = match name {
            "ipv4" => ["10.0.0.1", "10.0.255.255", "10.1.0.0", "255.255.255.255"].map(str::to_owned).to_vec(),
            "hex:4" => keys.iter().map(|key| format!("{key:0<4}")).collect(),
            _ => keys.iter().map(|key| (*key).to_owned()).collect(),
        };
        let options = InputOptions {
            key_type: pleach::KeyType::from_name(&meaning.words),
            key_logical: Some(meaning.logical).filter(|logical| *logical != Logical::Plain),
            ..InputOptions::default()
        };
        let csv: String = rows.iter().map(|row| format!("\"{row}\",1\n")).collect();
        let table = built(format!("k,v\n{csv}"), &options, &folder.path().join("one.pleach"));
        let prefixes: Vec<String> = prefixes.iter().map(|&prefix| prefix.to_owned()).collect();
        let (mut first, mut end) = (vec![0; prefixes.len()], vec![0; prefixes.len()]);
        let answer =
            table.prefix(&prefixes.iter().collect::<Copied>(), &mut first, &mut end, &Pool::current());
        answer.map(|()| first.into_iter().zip(end).collect::<Vec<_>>()).map_err(|error| error.to_string())
    };
    let texts = ask("utf8", &["", "5b", "5baa", "5bb", "ff", "g"]);
    assert_eq!(texts, Ok(vec![(0, 12), (3, 8), (4, 6), (7, 7), (9, 12), (12, 12)]));
    let bytes = ask("hex", &["", "5", "5b", "5ba", "5bf", "f", "ff", "fff", "6"]);
    assert_eq!(bytes, Ok(vec![(0, 12), (3, 8), (3, 8), (4, 7), (7, 8), (8, 12), (9, 12), (10, 12), (8, 8)]),);
    let digits = ask("hex:4", &["", "5", "5ba", "ffff", "00"]);
    assert_eq!(digits, Ok(vec![(0, 12), (3, 8), (4, 7), (10, 12), (0, 2)]));
    let networks = ask("ipv4", &["10.0.0.0/16", "0.0.0.0/0", "255.255.255.255"]);
    assert_eq!(networks, Ok(vec![(0, 2), (0, 4), (3, 4)]));
    // Letters beyond those of a key say nothing.
    let derived = InputOptions {
        key_type: Some(pleach::KeyType::Utf8),
        derived: Some(pleach_builder::source::Derived::Prefix),
        ..InputOptions::default()
    };
    let cut =
        built("k,v\nalpha,1\nalphabet,2\nbeta,3\n".to_owned(), &derived, &folder.path().join("p.pleach"));
    let (mut first, mut end) = ([0; 4], [0; 4]);
    let prefixes = ["al", "alphabetical", "", "c"].into_iter().collect::<Copied>();
    cut.prefix(&prefixes, &mut first, &mut end, &Pool::current()).expect("answers");
    assert_eq!((first, end), ([0, 1, 0, 3], [2, 2, 3, 3]));
    for (name, prefix, words) in [
        ("hex", "5g", "no key begins with prefix 1, \"5g\""),
        ("ipv4", "10.0.0.1/8", "bits behind its length"),
    ] {
        let told = ask(name, &["", prefix]).unwrap_err();
        let told = if name == "ipv4" { ask(name, &[prefix]).unwrap_err() } else { told };
        assert!(told.contains(words), "{told}");
    }
}
