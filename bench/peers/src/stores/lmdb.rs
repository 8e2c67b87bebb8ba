//! LMDB through heed: big-endian keys or byte strings appended in order, then opened again read-only,
//! without lock file and read-ahead. One read transaction a reader.

use super::{disk_bytes, failed};
use crate::{Built, BuiltTexts, Keys, Number, Peer, PeerError, Reader, TextPeer, TextReader, View};
use crate::{answer_each, timed};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, WithoutTls};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ENGINE: &str = "lmdb";
/// Tuples of one write transaction: bounds what LMDB holds in memory before it commits.
const TRANSACTION_TUPLES: usize = 1 << 20;

type Table = Database<'static, Bytes, Bytes>;

struct Lmdb {
    env: Env<WithoutTls>,
    table: Table,
    bytes: u64,
}

struct LmdbReader<'a> {
    table: Table,
    transaction: RoTxn<'a, WithoutTls>,
    longest_key: usize,
}

impl Lmdb {
    fn begin(&self) -> Result<LmdbReader<'_>, PeerError> {
        let transaction = self.env.read_txn().map_err(failed(ENGINE, "begin"))?;
        Ok(LmdbReader { table: self.table, transaction, longest_key: self.env.max_key_size() })
    }
}

impl<K: Number, V: Number> Peer<K, V> for Lmdb {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError> {
        Ok(Box::new(self.begin()?))
    }
}

impl<K: Number, V: Number> Reader<K, V> for LmdbReader<'_> {
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError> {
        answer_each(keys.iter().copied(), values, present, |key| {
            let value = self.table.get(&self.transaction, key.to_big_endian().as_ref());
            Ok(value.map_err(failed(ENGINE, "get"))?.map(V::from_big_endian))
        })
    }
}

impl TextPeer for Lmdb {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn reader(&self) -> Result<Box<dyn TextReader + '_>, PeerError> {
        Ok(Box::new(self.begin()?))
    }
}

impl TextReader for LmdbReader<'_> {
    fn get_batch(
        &mut self,
        keys: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<usize, PeerError> {
        answer_each(keys.iter(), values, present, |key| {
            // LMDB refuses to look for keys that it could not hold.
            if key.is_empty() || key.len() > self.longest_key {
                return Ok(None);
            }
            let value = self.table.get(&self.transaction, key).map_err(failed(ENGINE, "get"))?;
            Ok(value.map(u32::from_big_endian))
        })
    }
}

fn open(folder: &Path, map_bytes: usize, flags: EnvFlags) -> Result<Env<WithoutTls>, heed::Error> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_bytes);
    // SAFETY: the folder is this table's own; nobody else opens, changes or truncates its files, so the
    // map is never changed underneath and no lock is needed. Without sync only a crash of the machine
    // could leave a broken file behind, and nobody opens the file after one.
    unsafe {
        options.flags(flags);
        options.open(folder)
    }
}

fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    tuples: impl Iterator<Item = (K, V)>,
    folder: &Path,
    map_bytes: usize,
) -> Result<(), heed::Error> {
    let env = open(folder, map_bytes, EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC)?;
    let table: Table = env
        .create_databases_and_commit(env.write_txn()?, |opener, transaction| {
            opener.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
        })?
        .unwrap_commit();
    let mut tuples = tuples.peekable();
    while tuples.peek().is_some() {
        let mut transaction = env.write_txn()?;
        for (key, value) in tuples.by_ref().take(TRANSACTION_TUPLES) {
            table.put_with_flags(&mut transaction, PutFlags::APPEND, key.as_ref(), value.as_ref())?;
        }
        transaction.commit()?;
    }
    env.force_sync()?;
    env.prepare_for_closing().wait();
    Ok(())
}

fn open_again<K: AsRef<[u8]>>(
    probe: Option<K>,
    folder: &Path,
    map_bytes: usize,
) -> Result<(Env<WithoutTls>, Table, Duration), heed::Error> {
    let start = Instant::now();
    let env = open(folder, map_bytes, EnvFlags::READ_ONLY | EnvFlags::NO_LOCK | EnvFlags::NO_READ_AHEAD)?;
    let table: Table = env
        .open_databases_and_commit(env.read_txn()?, |opener, transaction| {
            opener.open_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
        })?
        .unwrap_commit()
        .ok_or(heed::Error::Mdb(heed::MdbError::NotFound))?;
    if let Some(key) = probe {
        let transaction = env.read_txn()?;
        table.get(&transaction, key.as_ref())?;
    }
    Ok((env, table, start.elapsed()))
}

/// The table of `count` tuples of `tuple_bytes` bytes together, and how long it took to build and to
/// open and ask for `probe`.
fn store<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    tuples: impl Iterator<Item = (K, V)>,
    (count, tuple_bytes): (usize, usize),
    probe: Option<K>,
    folder: &Path,
) -> Result<(Lmdb, Duration, Duration), PeerError> {
    let folder: PathBuf = folder.join("lmdb");
    fs::create_dir(&folder).map_err(failed(ENGINE, "create folder"))?;
    // A node of a leaf has 8 bytes of header and 2 of index; the file is sparse, so a map that is too
    // large costs nothing.
    let map_bytes = ((tuple_bytes + count * 10) * 2 + (64 << 20)).next_multiple_of(2 << 20);
    let (loaded, build) = timed(|| load(tuples, &folder, map_bytes));
    loaded.map_err(failed(ENGINE, "build"))?;
    let bytes = disk_bytes(&folder.join("data.mdb")).map_err(failed(ENGINE, "stat"))?;
    let (env, table, open) = open_again(probe, &folder, map_bytes).map_err(failed(ENGINE, "open"))?;
    Ok((Lmdb { env, table, bytes }, build, open))
}

pub(crate) fn build<K: Number, V: Number>(
    tuples: &[(K, V)],
    folder: &Path,
) -> Result<Built<K, V>, PeerError> {
    let probe = tuples.get(tuples.len() / 2).map(|tuple| tuple.0.to_big_endian());
    let bytes = tuples.iter().map(|&(key, value)| (key.to_big_endian(), value.to_big_endian()));
    let size = (tuples.len(), tuples.len() * (K::BYTES + V::BYTES));
    let (store, build, open) = store(bytes, size, probe, folder)?;
    Ok(Built { peer: Box::new(store), build, open: Some(open) })
}

pub(crate) fn build_texts(
    keys: &Keys,
    values: &[u32],
    folder: &Path,
) -> Result<BuiltTexts<'static>, PeerError> {
    let bytes = keys.iter().zip(values.iter().map(|value| value.to_big_endian()));
    let size = (keys.len(), keys.data().len() + 4 * keys.len());
    let (store, build, open) = store(bytes, size, keys.iter().nth(keys.len() / 2), folder)?;
    Ok(BuiltTexts { peer: Box::new(store), build, open: Some(open) })
}

/// Puts all tuples in one transaction.
pub(crate) fn update(
    puts: &[(u64, u64)],
    durable: bool,
    folder: &Path,
    tuples: usize,
    start: &Instant,
    probes: &[u64],
) -> Result<crate::updates::Applied, PeerError> {
    let map_bytes = ((tuples + puts.len()) * 26 * 4 + (256 << 20)).next_multiple_of(2 << 20);
    let flags = if durable { EnvFlags::WRITE_MAP } else { EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC };
    let run = || -> Result<crate::updates::Applied, heed::Error> {
        let env = open(&folder.join("lmdb"), map_bytes, flags)?;
        let table: Table = env
            .create_databases_and_commit(env.write_txn()?, |opener, transaction| {
                opener.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
            })?
            .unwrap_commit();
        let mut transaction = env.write_txn()?;
        for (key, value) in puts {
            table.put(&mut transaction, &key.to_big_endian(), &value.to_big_endian())?;
        }
        transaction.commit()?;
        let took = start.elapsed().as_secs_f64();
        let transaction = env.read_txn()?;
        let found = probes
            .iter()
            .map(|key| Ok(table.get(&transaction, &key.to_big_endian())?.map(u64::from_big_endian)))
            .collect::<Result<_, heed::Error>>()?;
        drop(transaction);
        env.prepare_for_closing().wait();
        Ok((took, found))
    };
    run().map_err(failed(ENGINE, "update"))
}
