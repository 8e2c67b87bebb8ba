//! LMDB through heed: big-endian keys appended in order, then opened again read-only, without lock
//! file and read-ahead. One read transaction a reader.

use super::{disk_bytes, failed};
use crate::{Built, Number, Peer, PeerError, Reader, answer_each, timed};
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
}

impl<K: Number, V: Number> Peer<K, V> for Lmdb {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError> {
        let transaction = self.env.read_txn().map_err(failed(ENGINE, "begin"))?;
        Ok(Box::new(LmdbReader { table: self.table, transaction }))
    }
}

impl<K: Number, V: Number> Reader<K, V> for LmdbReader<'_> {
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError> {
        answer_each(keys, values, present, |key| {
            let value = self.table.get(&self.transaction, key.to_big_endian().as_ref());
            Ok(value.map_err(failed(ENGINE, "get"))?.map(V::from_big_endian))
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

fn load<K: Number, V: Number>(tuples: &[(K, V)], folder: &Path, map_bytes: usize) -> Result<(), heed::Error> {
    let env = open(folder, map_bytes, EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC)?;
    let table: Table = env
        .create_databases_and_commit(env.write_txn()?, |opener, transaction| {
            opener.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
        })?
        .unwrap_commit();
    for part in tuples.chunks(TRANSACTION_TUPLES) {
        let mut transaction = env.write_txn()?;
        for (key, value) in part {
            let (key, value) = (key.to_big_endian(), value.to_big_endian());
            table.put_with_flags(&mut transaction, PutFlags::APPEND, key.as_ref(), value.as_ref())?;
        }
        transaction.commit()?;
    }
    env.force_sync()?;
    env.prepare_for_closing().wait();
    Ok(())
}

fn open_again<K: Number, V: Number>(
    tuples: &[(K, V)],
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
    if let Some((key, _)) = tuples.get(tuples.len() / 2) {
        let transaction = env.read_txn()?;
        table.get(&transaction, key.to_big_endian().as_ref())?;
    }
    Ok((env, table, start.elapsed()))
}

pub(crate) fn build<K: Number, V: Number>(
    tuples: &[(K, V)],
    folder: &Path,
) -> Result<Built<K, V>, PeerError> {
    let folder: PathBuf = folder.join("lmdb");
    fs::create_dir(&folder).map_err(failed(ENGINE, "create folder"))?;
    // A node of a leaf has 8 bytes of header and 2 of index; the file is sparse, so a map that is too
    // large costs nothing.
    let map_bytes = (tuples.len() * (K::BYTES + V::BYTES + 10) * 2 + (64 << 20)).next_multiple_of(2 << 20);
    let (loaded, build) = timed(|| load(tuples, &folder, map_bytes));
    loaded.map_err(failed(ENGINE, "build"))?;
    let bytes = disk_bytes(&folder.join("data.mdb")).map_err(failed(ENGINE, "stat"))?;
    let (env, table, open) = open_again(tuples, &folder, map_bytes).map_err(failed(ENGINE, "open"))?;
    Ok(Built { peer: Box::new(Lmdb { env, table, bytes }), build, open: Some(open) })
}
