//! Sets of the tests, and what they must answer.

use pleach_builder::rebuild::OpenChanges;
use pleach_builder::source::{Chunk, Column, Op, Schema, Source, SourceError};
use pleach_builder::{ChunkSource, Silent};
use pleach_format::{KeyType, ValueType};
use pleach_set::{
    BuildOptions, Committer, Datum, Manifest, Partition, Result, Set, SetError, Store, Writer, Written,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A table of numbers.
pub type Table = BTreeMap<u64, u64>;

/// Returns keys with gaps, and values that depend on them.
pub fn table(tuples: u64, salt: u64) -> Table {
    (0..tuples).map(|number| (number * 3 + 1, number.wrapping_mul(0x9e37_79b9) ^ salt)).collect()
}

pub fn source(table: &Table) -> Box<dyn Source> {
    let mut chunk = Chunk::new(KeyType::U64, ValueType::U64);
    chunk.keys = Column::U64(table.keys().copied().collect());
    chunk.values = Column::U64(table.values().copied().collect());
    Box::new(ChunkSource::new(Schema::plain(KeyType::U64, ValueType::U64, None), [chunk]))
}

pub fn write(store: &Arc<dyn Store>, table: &Table, file_tuples: u64) -> Result<Written> {
    let options = BuildOptions { threads: 1, ..BuildOptions::default() };
    let writer = Writer::new(Arc::clone(store));
    Ok(writer.write(&mut *source(table), Partition::Tuples(file_tuples), &options, &Silent)?.0)
}

/// Returns a function that opens changes which put these tuples.
pub fn changes(puts: &Table) -> Box<OpenChanges<'static>> {
    let mut chunk = Chunk::new(KeyType::U64, ValueType::U64);
    chunk.keys = Column::U64(puts.keys().copied().collect());
    chunk.values = Column::U64(puts.values().copied().collect());
    chunk.ops = vec![Op::Put; puts.len()];
    Box::new(move |schema: &Schema| -> std::result::Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(ChunkSource::new(schema.clone(), [chunk])))
    })
}

/// Publishes a table as the next generation.
pub fn publish(store: &Arc<dyn Store>, table: &Table, file_tuples: u64) -> Result<Manifest> {
    let written = write(store, table, file_tuples)?;
    let mut committer = Committer::begin(Arc::clone(store))?;
    committer.add_own(&written)?;
    committer.publish()
}

pub fn open(store: &Arc<dyn Store>) -> Result<Set> {
    Set::options().store(Arc::clone(store))
}

/// Compares a set with a table: keys that are there and not, ends, ranks, a range.
pub fn compare(set: &Set, table: &Table) -> Result<()> {
    assert_eq!(set.len(), table.len() as u64);
    let last = table.keys().last().copied().unwrap_or_default();
    for key in (0..last + 3).step_by(37) {
        let datum = Datum::U64(key);
        assert_eq!(set.get(&datum)?, table.get(&key).map(|value| Datum::U64(*value)), "key {key}");
        let above = table.range(key..).next().map(|(key, value)| (Datum::U64(*key), Datum::U64(*value)));
        assert_eq!(set.ceiling(&datum)?, above, "above {key}");
        let below =
            table.range(..=key).next_back().map(|(key, value)| (Datum::U64(*key), Datum::U64(*value)));
        assert_eq!(set.floor(&datum)?, below, "below {key}");
        assert_eq!(set.lower_bound(&datum)?, table.range(..key).count() as u64, "rank of {key}");
    }
    let (low, high) = (last / 4, last / 4 * 3);
    assert_eq!(set.count(Datum::U64(low)..Datum::U64(high))?, table.range(low..high).count() as u64);
    Ok(())
}

/// Returns the text of an error of one line; it has no secret.
pub fn one_line(error: &SetError) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n') && !text.contains(super::KEY.1) && !text.contains(super::KEY.0), "{text}");
    text
}
