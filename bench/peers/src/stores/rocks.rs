//! RocksDB: one sorted file written by its writer of such files and ingested, then opened again read-only.
//!
//! As its documentation has it for bulk-loaded tables that are only read: no compression, 4 KiB blocks with a hash
//! index inside, a Bloom filter of 10 bits a key, reads from mapped files, no checksums at reads. A look-up is a
//! pinned get, which copies nothing but the value. Keys are big-endian, so that their bytes are in order.

use super::failed;
use crate::{Built, BuiltTexts, Keys, Number, Peer, PeerError, Reader, TextPeer, TextReader, View};
use crate::{answer_each, timed};
use rocksdb::{
    BlockBasedOptions, DB, DBCompressionType, DataBlockIndexType, Options, ReadOptions, SstFileWriter,
};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const ENGINE: &str = "rocksdb";
/// Bits of the Bloom filter for each key.
const BLOOM_BITS: f64 = 10.0;
/// Bytes of a block.
const BLOCK_BYTES: usize = 4096;

struct Rocks {
    database: DB,
    bytes: u64,
}

struct RocksReader<'a> {
    database: &'a DB,
    options: ReadOptions,
}

impl Rocks {
    fn begin(&self) -> RocksReader<'_> {
        let mut options = ReadOptions::default();
        options.set_verify_checksums(false);
        RocksReader { database: &self.database, options }
    }
}

impl RocksReader<'_> {
    fn get<V: Number>(&self, key: &[u8]) -> Result<Option<V>, PeerError> {
        let value = self.database.get_pinned_opt(key, &self.options).map_err(failed(ENGINE, "get"))?;
        Ok(value.map(|value| V::from_big_endian(&value)))
    }
}

impl<K: Number, V: Number> Peer<K, V> for Rocks {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError> {
        Ok(Box::new(self.begin()))
    }
}

impl<K: Number, V: Number> Reader<K, V> for RocksReader<'_> {
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError> {
        answer_each(keys.iter().copied(), values, present, |key| self.get(key.to_big_endian().as_ref()))
    }
}

impl TextPeer for Rocks {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn reader(&self) -> Result<Box<dyn TextReader + '_>, PeerError> {
        Ok(Box::new(self.begin()))
    }
}

impl TextReader for RocksReader<'_> {
    fn get_batch(
        &mut self,
        keys: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<usize, PeerError> {
        answer_each(keys.iter(), values, present, |key| self.get(key))
    }
}

fn options() -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_size(BLOCK_BYTES);
    table.set_bloom_filter(BLOOM_BITS, false);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    // Mapped files need no cache of blocks of their own.
    table.disable_cache();
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    options.set_allow_mmap_reads(true);
    options.set_block_based_table_factory(&table);
    options
}

fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    tuples: impl Iterator<Item = (K, V)>,
    folder: &Path,
    file: &Path,
) -> Result<(), rocksdb::Error> {
    let options = options();
    let database = DB::open(&options, folder)?;
    let mut tuples = tuples.peekable();
    // The writer refuses a file without keys.
    if tuples.peek().is_some() {
        let mut writer = SstFileWriter::create(&options);
        writer.open(file)?;
        for (key, value) in tuples {
            writer.put(key, value)?;
        }
        writer.finish()?;
        database.ingest_external_file(vec![file])?;
    }
    database.flush_wal(true)
}

fn open_again<K: AsRef<[u8]>>(probe: Option<K>, folder: &Path) -> Result<(DB, Duration), rocksdb::Error> {
    let start = Instant::now();
    let database = DB::open_for_read_only(&options(), folder, false)?;
    if let Some(key) = probe {
        database.get_pinned(key)?;
    }
    Ok((database, start.elapsed()))
}

fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += super::disk_bytes(&entry?.path())?;
    }
    Ok(bytes)
}

/// The table, how long it took to build, and how long to open and to ask for `probe`.
fn store<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    tuples: impl Iterator<Item = (K, V)>,
    probe: Option<K>,
    folder: &Path,
) -> Result<(Rocks, Duration, Duration), PeerError> {
    let (folder, file) = (folder.join("rocksdb"), folder.join("rocksdb.sst"));
    let (loaded, build) = timed(|| load(tuples, &folder, &file));
    loaded.map_err(failed(ENGINE, "build"))?;
    // Ingesting links the file into the folder; what it was written as may still be there.
    let _ = fs::remove_file(&file);
    let bytes = folder_bytes(&folder).map_err(failed(ENGINE, "stat"))?;
    let (database, open) = open_again(probe, &folder).map_err(failed(ENGINE, "open"))?;
    Ok((Rocks { database, bytes }, build, open))
}

pub(crate) fn build<K: Number, V: Number>(
    tuples: &[(K, V)],
    folder: &Path,
) -> Result<Built<K, V>, PeerError> {
    let probe = tuples.get(tuples.len() / 2).map(|tuple| tuple.0.to_big_endian());
    let bytes = tuples.iter().map(|&(key, value)| (key.to_big_endian(), value.to_big_endian()));
    let (store, build, open) = store(bytes, probe, folder)?;
    Ok(Built { peer: Box::new(store), build, open: Some(open) })
}

pub(crate) fn build_texts(
    keys: &Keys,
    values: &[u32],
    folder: &Path,
) -> Result<BuiltTexts<'static>, PeerError> {
    let bytes = keys.iter().zip(values.iter().map(|value| value.to_big_endian()));
    let (store, build, open) = store(bytes, keys.iter().nth(keys.len() / 2), folder)?;
    Ok(BuiltTexts { peer: Box::new(store), build, open: Some(open) })
}
