//! redb: fixed-width keys and values inserted in order in one transaction, then opened again read-only
//! with a page cache that holds the whole file, and filled by one scan.

use super::{disk_bytes, failed};
use crate::{Built, Number, Peer, PeerError, Reader, answer_each, timed};
use redb::{Builder, ReadOnlyDatabase, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;
use std::time::Instant;

const ENGINE: &str = "redb";

fn table<K: Number, V: Number>() -> TableDefinition<'static, K, V> {
    TableDefinition::new("t")
}

struct Redb {
    database: ReadOnlyDatabase,
    bytes: u64,
}

struct RedbReader<K: Number, V: Number>(ReadOnlyTable<K, V>);

impl Redb {
    fn table<K: Number, V: Number>(&self) -> Result<ReadOnlyTable<K, V>, redb::Error> {
        Ok(self.database.begin_read()?.open_table(table())?)
    }
}

impl<K: Number, V: Number> Peer<K, V> for Redb {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError> {
        Ok(Box::new(RedbReader(self.table::<K, V>().map_err(failed(ENGINE, "begin"))?)))
    }
}

impl<K: Number, V: Number> Reader<K, V> for RedbReader<K, V> {
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError> {
        answer_each(keys, values, present, |key| {
            let value = self.0.get(key).map_err(failed(ENGINE, "get"))?;
            Ok(value.map(|guard| guard.value()))
        })
    }
}

fn load<K: Number, V: Number>(tuples: &[(K, V)], path: &Path) -> Result<(), redb::Error> {
    let database = Builder::new().create(path)?;
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(table::<K, V>())?;
        for &(key, value) in tuples {
            table.insert(key, value)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

pub(crate) fn build<K: Number, V: Number>(
    tuples: &[(K, V)],
    folder: &Path,
) -> Result<Built<K, V>, PeerError> {
    let path = folder.join("table.redb");
    let (loaded, build) = timed(|| load(tuples, &path));
    loaded.map_err(failed(ENGINE, "build"))?;
    let bytes = disk_bytes(&path).map_err(failed(ENGINE, "stat"))?;
    let start = Instant::now();
    let cache_bytes = usize::try_from(bytes * 2).unwrap_or(usize::MAX).max(1 << 30);
    let database =
        Builder::new().set_cache_size(cache_bytes).open_read_only(&path).map_err(failed(ENGINE, "open"))?;
    let store = Redb { database, bytes };
    let opened = store.table::<K, V>().map_err(failed(ENGINE, "begin"))?;
    if let Some(&(key, _)) = tuples.get(tuples.len() / 2) {
        opened.get(key).map_err(failed(ENGINE, "get"))?;
    }
    let open = start.elapsed();
    for tuple in opened.iter().map_err(failed(ENGINE, "scan"))? {
        tuple.map_err(failed(ENGINE, "scan"))?;
    }
    Ok(Built { peer: Box::new(store), build, open: Some(open) })
}
