//! Means, and reductions of fields, beside loops.

use pleach::{Index, KeyType, Value, ValueType};
use pleach_builder::{Chunk, ChunkSource, Column, Schema, Silent, Strings, in_memory};
use pleach_format::Logical;
use pleach_format::key::Bits;
use pleach_format::record::{Field, FieldKind, FieldValue, Record};
use pleach_relation::{Aggregate, Reduction, Relation, StreamOptions, aggregate, reduce};

fn options(piece_tuples: usize) -> StreamOptions<'static> {
    StreamOptions { piece_tuples, ..StreamOptions::default() }
}

/// A file of columns, in the order of their keys.
fn index(keys: Vec<u64>, values: Column, value_type: ValueType, logical: &str) -> Index {
    let schema =
        Schema { value_logical: logical.to_owned(), ..Schema::plain(KeyType::U64, value_type, None) };
    let chunk = Chunk { keys: Column::U64(keys), values, ops: Vec::new() };
    let mut source = ChunkSource::new(schema, std::iter::once(chunk));
    let bytes = in_memory(&mut source, &Default::default(), &Silent).expect("builds");
    Index::from_bytes(bytes).expect("opens")
}

fn meta(name: &str) -> String {
    Logical::of_name(name).expect("a type").meta()
}

fn words(column: &Column) -> Vec<u64> {
    match column {
        Column::U64(words) => words.clone(),
        other => panic!("words of 8 bytes: {other:?}"),
    }
}

/// The means of groups, and the same with pieces of a tuple.
fn means<V: Value>(groups: &[&[V]], logical: &str) -> Vec<f64> {
    let mut keys = Vec::new();
    let mut values = Column::for_value(V::TYPE);
    for (key, group) in groups.iter().enumerate() {
        for value in *group {
            keys.push(key as u64);
            match &mut values {
                Column::U32(words) => words.push(value.to_bits().to_u64() as u32),
                Column::U64(words) => words.push(value.to_bits().to_u64()),
                other => panic!("numbers: {other:?}"),
            }
        }
    }
    let file = index(keys, values, V::TYPE, logical);
    let all = [1, 1 << 16].map(|piece_tuples| {
        let found =
            reduce(Relation::from_index(&file), Reduction::Avg, options(piece_tuples)).expect("a mean");
        assert_eq!((found.schema().values.value_type, &*found.schema().values.logical), (ValueType::F64, ""));
        words(&found.collect().expect("whole").values)
    });
    assert_eq!(all[0], all[1]);
    all[0].iter().map(|&bits| f64::from_bits(bits)).collect()
}

#[test]
fn means_of_every_type_are_those_of_exact_sums() {
    let (big, small) = (u64::MAX, i64::MIN);
    // A sum of floats, or of 64 bits, would not give these.
    assert_eq!(means(&[&[big, big, big - 3], &[7]], ""), [(big - 1) as f64, 7.0]);
    assert_eq!(means(&[&[1_u64 << 53, (1 << 53) + 1, (1 << 53) + 8]], ""), [9_007_199_254_740_995.0]);
    assert_eq!(means(&[&[small, small], &[-1, 2], &[i64::MAX, small]], ""), [small as f64, 0.5, -0.5]);
    assert_eq!(means(&[&[u32::MAX, 0]], ""), [2_147_483_647.5]);
    assert_eq!(means(&[&[-3_i32, 1, 0]], ""), [-2.0 / 3.0]);
    assert_eq!(means(&[&[0.5_f32, 0.25]], ""), [0.375]);
    assert!(means(&[&[f64::INFINITY, f64::NEG_INFINITY]], "")[0].is_nan());
    let decimals = means(&[&[10_i64, 20, 25], &[-1]], &meta("decimal(10,2)"));
    assert_eq!(decimals, ["0.18333333333333333333".parse::<f64>().expect("a number"), -0.01]);
    let days = index(vec![1], Column::U32(vec![7]), ValueType::I32, &meta("date"));
    let refused = reduce(Relation::from_index(&days), Reduction::Avg, options(9)).map(drop);
    assert!(refused.expect_err("a date").to_string().contains("cannot compute the avg of"));
}

#[test]
fn a_long_group_has_the_mean_of_its_blocks() {
    let values: Vec<f64> = (0..100_000).map(|row| f64::from(row % 1000) / 8.0).collect();
    let wanted = values.iter().sum::<f64>() / values.len() as f64;
    assert_eq!(means(&[&values, &[1.0]], ""), [wanted, 1.0]);
    let values: Vec<i64> = (0..100_000).map(|row| row * row - 7).collect();
    let wanted = values.iter().sum::<i64>() as f64 / values.len() as f64;
    assert_eq!(means(&[&values, &values[..9]], "")[0], wanted);
}

#[test]
fn aggregates_of_fields_beside_loops() {
    let fields = [("n", FieldKind::I16), ("price", FieldKind::F64), ("word", FieldKind::Utf8)];
    let record = Record::new(fields.map(|(name, kind)| Field::new(name, kind)).into()).expect("a record");
    let mut rows: Vec<(u64, i16, f64, String)> = (0..3000_u64)
        .map(|row| (row * row % 97 / 3, row as i16 - 900, row as f64 / 8.0, format!("w{}", row % 7)))
        .collect();
    rows.sort_by_key(|row| row.0);
    let mut strings = Strings::default();
    for (_, n, price, word) in &rows {
        let mut packed = Vec::new();
        let values = [FieldValue::I16(*n), FieldValue::F64(*price), FieldValue::Utf8(word)];
        assert!(record.pack(&values, &mut packed));
        strings.push(&packed);
    }
    let keys = rows.iter().map(|row| row.0).collect();
    let file = index(keys, Column::Bytes(strings), ValueType::Bytes, &record.to_string());
    let input = Relation::from_index(&file);
    let list = "sum:n,avg:n,min:n,max:price,avg:price,count,first:word";
    let aggregates = Aggregate::list(list).expect("a list");
    for piece_tuples in [1, 100, 1 << 16] {
        let answer = aggregate(input, &aggregates, options(piece_tuples)).expect("aggregates");
        let schema = answer.schema().values.clone();
        let made = Record::of(schema.value_type, &schema.logical).expect("a record");
        let names: Vec<&str> = made.fields().iter().map(|field| &*field.name).collect();
        assert_eq!(names, ["sum_n", "avg_n", "min_n", "max_price", "avg_price", "count", "first_word"]);
        let found = answer.collect().expect("whole");
        let Column::Bytes(strings) = &found.values else { panic!("records") };
        let mut keys: Vec<u64> = rows.iter().map(|row| row.0).collect();
        keys.dedup();
        assert_eq!(words(&found.keys), keys);
        for (at, key) in keys.into_iter().enumerate() {
            let of: Vec<_> = rows.iter().filter(|row| row.0 == key).collect();
            let sum: i64 = of.iter().map(|row| i64::from(row.1)).sum();
            let count = of.len() as f64;
            let wanted = [
                FieldValue::I64(sum),
                FieldValue::F64(sum as f64 / count),
                FieldValue::I32(of.iter().map(|row| i32::from(row.1)).min().expect("some")),
                FieldValue::F64(of.iter().map(|row| row.2).fold(f64::MIN, f64::max)),
                FieldValue::F64(of.iter().map(|row| row.2).sum::<f64>() / count),
                FieldValue::U64(of.len() as u64),
                FieldValue::Utf8(&of[0].3),
            ];
            assert_eq!(made.values(strings.get(at)).collect::<Vec<_>>(), wanted, "key {key}");
        }
        let one = aggregate(input, &Aggregate::list("max:n").expect("a list"), options(piece_tuples));
        let values = one.expect("an aggregate").schema().values.clone();
        assert_eq!((&*values.name, values.value_type), ("n", ValueType::I32));
    }
    for (list, wanted) in [
        ("sum:no", "no field \"no\": bytes in memory: its values have the fields n, price, word"),
        ("sum:word", "cannot compute the sum of utf8"),
        ("avg", "cannot compute the avg"),
        ("count,count", "cannot make a record"),
        ("sum:value", "no field \"value\""),
    ] {
        let refused = aggregate(input, &Aggregate::list(list).expect("a list"), options(100)).map(drop);
        let refused = refused.expect_err(list).to_string();
        assert!(refused.contains(wanted), "{refused}");
    }
}
