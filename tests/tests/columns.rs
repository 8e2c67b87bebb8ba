//! Sorted columns as Arrow arrays over the mapping.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type};
use pleach::{Index, KeyType};
use pleach_builder::{BuildOptions, build_bytes, build_strings_bytes};
use std::sync::Arc;

fn options() -> BuildOptions {
    BuildOptions { columns: true, ..BuildOptions::default() }
}

#[test]
fn numbers_lie_where_the_file_lies() {
    let tuples: Vec<(i64, f64)> = (0..1000).map(|i| ((i * 7919 % 1000) - 500, i as f64)).collect();
    let index =
        Arc::new(Index::from_bytes(build_bytes(&tuples, &options()).expect("builds")).expect("opens"));
    let columns = index.columns().expect("whole");
    let (keys, values) = (columns.keys.expect("keys"), columns.values.expect("values"));
    let range = index.as_bytes().as_ptr_range();
    let place = keys.as_primitive::<Int64Type>().values().as_ptr().cast::<u8>();
    assert!(range.contains(&place), "no copy");
    // The arrays keep the file open.
    drop(index);
    let mut sorted = tuples;
    sorted.sort_by_key(|tuple| tuple.0);
    assert!(keys.as_primitive::<Int64Type>().values().iter().eq(sorted.iter().map(|tuple| &tuple.0)));
    assert!(values.as_primitive::<Float64Type>().values().iter().eq(sorted.iter().map(|tuple| &tuple.1)));
}

#[test]
fn texts_and_bytes_lie_there_too() {
    let mut tuples: Vec<(String, u32)> = (0..500).map(|i| (format!("key {}", i * 7919 % 500), i)).collect();
    let bytes = build_strings_bytes(KeyType::Utf8, &tuples, &options()).expect("builds");
    let index = Arc::new(Index::from_bytes(bytes.clone()).expect("opens"));
    let columns = index.columns().expect("whole");
    tuples.sort();
    let (keys, values) = (columns.keys.expect("keys"), columns.values.expect("values"));
    assert!(keys.as_string::<i32>().iter().eq(tuples.iter().map(|tuple| Some(&*tuple.0))));
    assert!(values.as_primitive::<UInt32Type>().values().iter().eq(tuples.iter().map(|tuple| &tuple.1)));

    let bytes_keys = build_strings_bytes(KeyType::Bytes, &tuples, &options()).expect("builds");
    let index = Arc::new(Index::from_bytes(bytes_keys).expect("opens"));
    let keys = index.columns().expect("whole").keys.expect("keys");
    assert!(keys.as_binary::<i32>().iter().eq(tuples.iter().map(|tuple| Some(tuple.0.as_bytes()))));

    // A text that is none any more is an error, not an unsound array.
    let text = b"key 499";
    let at = bytes.windows(text.len()).rposition(|window| window == text).expect("in the column");
    let mut damaged = bytes;
    damaged[at] = 0xFF;
    let index = Arc::new(Index::from_bytes(damaged).expect("opens"));
    assert!(index.columns().is_err());
    // No columns, no arrays.
    let plain = build_bytes(&[(1u32, 2u32)], &BuildOptions::default()).expect("builds");
    let columns = Arc::new(Index::from_bytes(plain).expect("opens")).columns().expect("whole");
    assert!(columns.keys.is_none() && columns.values.is_none());
}
