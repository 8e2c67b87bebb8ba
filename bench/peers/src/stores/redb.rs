//! redb: keys and values (of fixed width where all have one) inserted in order in one transaction, then
//! opened again read-only with a page cache that holds the whole file, and filled by one scan.

use super::{disk_bytes, failed};
use crate::texts::by_width;
use crate::{Built, BuiltTexts, Keys, Number, Peer, PeerError, Reader, TextPeer, TextReader, View};
use crate::{answer_each, timed};
use redb::{Builder, Key, ReadOnlyDatabase, ReadOnlyTable, ReadableDatabase, ReadableTable};
use redb::{TableDefinition, Value};
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::path::Path;
use std::time::{Duration, Instant};

const ENGINE: &str = "redb";

struct Redb<K, V> {
    database: ReadOnlyDatabase,
    bytes: u64,
    types: PhantomData<fn(K) -> V>,
}

struct RedbReader<K: Key + 'static, V: Value + 'static>(ReadOnlyTable<K, V>);

impl<K: Key + 'static, V: Value + 'static> Redb<K, V> {
    const TABLE: TableDefinition<'static, K, V> = TableDefinition::new("t");

    fn begin(&self) -> Result<RedbReader<K, V>, PeerError> {
        let open = || Ok::<_, redb::Error>(self.database.begin_read()?.open_table(Self::TABLE)?);
        open().map(RedbReader).map_err(failed(ENGINE, "begin"))
    }
}

impl<K: Number, V: Number> Peer<K, V> for Redb<K, V> {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError> {
        Ok(Box::new(self.begin()?))
    }
}

impl<K: Number, V: Number> Reader<K, V> for RedbReader<K, V> {
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError> {
        answer_each(keys.iter().copied(), values, present, |key| {
            let value = self.0.get(key).map_err(failed(ENGINE, "get"))?;
            Ok(value.map(|guard| guard.value()))
        })
    }
}

/// A byte string as redb takes it.
trait Text: Key + Send + Sync + 'static {
    /// Returns `None` if no key can have this length.
    fn of(key: &[u8]) -> Option<Self::SelfType<'_>>;
}

impl Text for &'static [u8] {
    #[inline(always)]
    fn of(key: &[u8]) -> Option<&[u8]> {
        Some(key)
    }
}

impl<const N: usize> Text for &'static [u8; N] {
    #[inline(always)]
    fn of(key: &[u8]) -> Option<&[u8; N]> {
        key.try_into().ok()
    }
}

impl<K: Text> TextPeer for Redb<K, u32> {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn reader(&self) -> Result<Box<dyn TextReader + '_>, PeerError> {
        Ok(Box::new(self.begin()?))
    }
}

impl<K: Text> TextReader for RedbReader<K, u32> {
    fn get_batch(
        &mut self,
        keys: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<usize, PeerError> {
        answer_each(keys.iter(), values, present, |key| {
            let Some(key) = K::of(key) else { return Ok(None) };
            let value = self.0.get(key).map_err(failed(ENGINE, "get"))?;
            Ok(value.map(|guard| guard.value()))
        })
    }
}

fn load<'a, K: Key + 'static, V: Value + 'static>(
    tuples: impl Iterator<Item = (impl Borrow<K::SelfType<'a>>, impl Borrow<V::SelfType<'a>>)>,
    path: &Path,
) -> Result<(), redb::Error> {
    let database = Builder::new().create(path)?;
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(Redb::<K, V>::TABLE)?;
        for (key, value) in tuples {
            table.insert(key, value)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// The table, and how long it took to build and to open and ask for `probe`.
fn store<'a, K: Key + 'static, V: Value + 'static>(
    tuples: impl Iterator<Item = (impl Borrow<K::SelfType<'a>>, impl Borrow<V::SelfType<'a>>)>,
    probe: Option<impl Borrow<K::SelfType<'a>>>,
    folder: &Path,
) -> Result<(Redb<K, V>, Duration, Duration), PeerError> {
    let path = folder.join("table.redb");
    let (loaded, build) = timed(|| load::<K, V>(tuples, &path));
    loaded.map_err(failed(ENGINE, "build"))?;
    let bytes = disk_bytes(&path).map_err(failed(ENGINE, "stat"))?;
    let start = Instant::now();
    let cache_bytes = usize::try_from(bytes * 2).unwrap_or(usize::MAX).max(1 << 30);
    let database =
        Builder::new().set_cache_size(cache_bytes).open_read_only(&path).map_err(failed(ENGINE, "open"))?;
    let store = Redb { database, bytes, types: PhantomData };
    let opened = store.begin()?.0;
    if let Some(key) = probe {
        opened.get(key).map_err(failed(ENGINE, "get"))?;
    }
    let open = start.elapsed();
    for tuple in opened.iter().map_err(failed(ENGINE, "scan"))? {
        tuple.map_err(failed(ENGINE, "scan"))?;
    }
    Ok((store, build, open))
}

pub(crate) fn build<K: Number, V: Number>(
    tuples: &[(K, V)],
    folder: &Path,
) -> Result<Built<K, V>, PeerError> {
    let probe = tuples.get(tuples.len() / 2).map(|tuple| tuple.0);
    let (store, build, open) = store::<K, V>(tuples.iter().copied(), probe, folder)?;
    Ok(Built { peer: Box::new(store), build, open: Some(open) })
}

fn build_as<K: Text>(keys: &Keys, values: &[u32], folder: &Path) -> Result<BuiltTexts<'static>, PeerError> {
    let tuples = keys.iter().filter_map(K::of).zip(values);
    let (store, build, open) =
        store::<K, u32>(tuples, keys.iter().nth(keys.len() / 2).and_then(K::of), folder)?;
    Ok(BuiltTexts { peer: Box::new(store), build, open: Some(open) })
}

fn build_fixed<const N: usize>(
    keys: &Keys,
    values: &[u32],
    folder: &Path,
) -> Result<BuiltTexts<'static>, PeerError> {
    build_as::<&'static [u8; N]>(keys, values, folder)
}

pub(crate) fn build_texts(
    keys: &Keys,
    values: &[u32],
    folder: &Path,
) -> Result<BuiltTexts<'static>, PeerError> {
    let any = || build_as::<&'static [u8]>(keys, values, folder);
    by_width!(keys.width(), build_fixed(keys, values, folder), any())
}

/// Puts all tuples in one transaction.
pub(crate) fn update(
    puts: &[(u64, u64)],
    durable: bool,
    folder: &Path,
    start: &Instant,
    probes: &[u64],
) -> Result<crate::updates::Applied, PeerError> {
    let path = folder.join("table.redb");
    let bytes = disk_bytes(&path).map_err(failed(ENGINE, "stat"))?;
    let cache_bytes = usize::try_from(bytes * 2).unwrap_or(usize::MAX).max(1 << 30);
    let run = || -> Result<crate::updates::Applied, redb::Error> {
        let database = Builder::new().set_cache_size(cache_bytes).open(&path)?;
        let mut transaction = database.begin_write()?;
        if !durable {
            transaction.set_durability(redb::Durability::None)?;
        }
        {
            let mut table = transaction.open_table(Redb::<u64, u64>::TABLE)?;
            for (key, value) in puts {
                table.insert(key, value)?;
            }
        }
        transaction.commit()?;
        let took = start.elapsed().as_secs_f64();
        let table = database.begin_read()?.open_table(Redb::<u64, u64>::TABLE)?;
        let mut found = Vec::with_capacity(probes.len());
        for key in probes {
            found.push(table.get(key)?.map(|value| value.value()));
        }
        Ok((took, found))
    };
    run().map_err(failed(ENGINE, "update"))
}
