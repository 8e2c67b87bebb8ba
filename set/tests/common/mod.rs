//! Tables of all kinds of keys, as sets and as sorted lists.

#![allow(dead_code, reason = "each test uses some of it")]

use pleach_builder::source::{Chunk, Column, Schema};
use pleach_builder::{BuildOptions, ChunkSource, Silent};
use pleach_format::{KeyType, ValueType};
use pleach_set::{Committer, Datum, Folder, Partition, Set, Writer, Written, key_bytes};
use std::path::Path;
use std::sync::Arc;

/// A tuple of a table.
pub type Tuple = (Datum<'static>, Datum<'static>);

/// Numbers that depend on a seed alone.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) ^ self.0.rotate_left(17)
    }
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A key of a type, from a number: equal numbers have equal keys, and some have long ones.
pub fn key(key_type: KeyType, number: u64) -> Datum<'static> {
    let text = || match number % 7 {
        0 => format!("{}{number:05}", "a-long-common-part-of-the-keys-".repeat(4)),
        _ => format!("k{number:05}"),
    };
    match key_type {
        KeyType::U32 => Datum::U32(number as u32),
        KeyType::U64 => Datum::U64(number << 30),
        KeyType::U128 => Datum::U128(u128::from(number) << 90),
        KeyType::I32 => Datum::I32(number as i32 - 500),
        KeyType::I64 => Datum::I64(number as i64 - 500),
        KeyType::F64 => Datum::F64(number as f64 / 4.0 - 100.0),
        KeyType::Fixed(bytes) => {
            let mut key = vec![3; usize::from(bytes)];
            key[..8].copy_from_slice(&number.to_be_bytes());
            Datum::Bytes(key.into())
        }
        KeyType::Bytes => Datum::Bytes(text().into_bytes().into()),
        KeyType::Utf8 => Datum::Utf8(text().into_bytes().into()),
    }
}

fn push(column: &mut Column, datum: &Datum<'_>, is_key: bool) {
    let word = |column: &mut Column, bytes: &[u8]| {
        let word = bytes.iter().fold(0u128, |word, &byte| word << 8 | u128::from(byte));
        match column {
            Column::U32(words) => words.push(word as u32),
            Column::U64(words) => words.push(word as u64),
            Column::U128(words) => words.push(word),
            Column::None | Column::Bytes(_) => {}
        }
    };
    match (column, datum) {
        (Column::Bytes(strings), Datum::Bytes(bytes) | Datum::Utf8(bytes)) => strings.push(bytes),
        (column, Datum::U64(number)) if !is_key => word(column, &number.to_be_bytes()),
        (column, key) => {
            let key_type = match key {
                Datum::U32(_) => KeyType::U32,
                Datum::U64(_) => KeyType::U64,
                Datum::U128(_) => KeyType::U128,
                Datum::I32(_) => KeyType::I32,
                Datum::I64(_) => KeyType::I64,
                _ => KeyType::F64,
            };
            word(column, &key_bytes(key_type, key).expect("its own type"));
        }
    }
}

/// Returns tuples as a source.
pub fn source(schema: Schema, tuples: &[Tuple]) -> ChunkSource<std::vec::IntoIter<Chunk>> {
    let mut chunk = Chunk::new(schema.key_type, schema.value_type);
    for (key, value) in tuples {
        push(&mut chunk.keys, key, true);
        if schema.value_type != ValueType::None {
            push(&mut chunk.values, value, false);
        }
    }
    ChunkSource::new(schema, vec![chunk])
}

/// Writes files into a set that may not be there yet.
pub fn write(path: &Path, schema: Schema, tuples: &[Tuple], partition: Partition) -> Written {
    let store = Arc::new(Folder::create(path).expect("the folder"));
    let options = BuildOptions::default();
    let written = Writer::new(store).write(&mut source(schema, tuples), partition, &options, &Silent);
    written.expect("the files").0
}

/// Publishes files as the next generation of a set.
pub fn publish(path: &Path, written: &Written) -> Set {
    let mut committer = Committer::begin(Arc::new(Folder::new(path))).expect("the set");
    committer.add(written).expect("the types");
    committer.publish().expect("it is published");
    Set::open(path).expect("the set")
}

/// Makes a set of tuples in any order.
pub fn set(path: &Path, schema: Schema, tuples: &[Tuple], partition: Partition) -> Set {
    let written = write(path, schema, tuples, partition);
    publish(path, &written)
}

/// Makes a set of `u64` keys `range`, whose values are the keys.
pub fn numbers(path: &Path, range: std::ops::Range<u64>, tuples: u64) -> Set {
    let all: Vec<Tuple> = range.map(|key| (Datum::U64(key), Datum::U64(key))).collect();
    set(path, Schema::plain(KeyType::U64, ValueType::U64, None), &all, Partition::Tuples(tuples))
}
