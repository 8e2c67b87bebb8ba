//! An `fst::Map` over big-endian keys or byte strings, written in order to a file and mapped.

use super::failed;
use crate::{Built, BuiltTexts, Keys, Number, Peer, PeerError, Reader, TextPeer, TextReader, View};
use crate::{answer_each, timed};
use ::fst::{Map, MapBuilder};
use memmap2::Mmap;
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::{Duration, Instant};

const ENGINE: &str = "fst";
const BUFFER_BYTES: usize = 1 << 20;

struct Fst(Map<Mmap>);

impl<K: Number, V: Number> Peer<K, V> for Fst {
    fn bytes(&self) -> u64 {
        self.0.as_fst().as_bytes().len() as u64
    }
    fn reader(&self) -> Result<Box<dyn Reader<K, V> + '_>, PeerError> {
        Ok(Box::new(FstReader(&self.0)))
    }
}

struct FstReader<'a>(&'a Map<Mmap>);

impl<K: Number, V: Number> Reader<K, V> for FstReader<'_> {
    fn get_batch(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, PeerError> {
        answer_each(keys.iter().copied(), values, present, |key| {
            Ok(self.0.get(key.to_big_endian()).map(V::narrow))
        })
    }
}

impl TextPeer for Fst {
    fn bytes(&self) -> u64 {
        self.0.as_fst().as_bytes().len() as u64
    }
    fn reader(&self) -> Result<Box<dyn TextReader + '_>, PeerError> {
        Ok(Box::new(FstReader(&self.0)))
    }
}

impl TextReader for FstReader<'_> {
    fn get_batch(
        &mut self,
        keys: View<'_>,
        values: &mut [u32],
        present: &mut [u64],
    ) -> Result<usize, PeerError> {
        answer_each(keys.iter(), values, present, |key| Ok(self.0.get(key).map(u32::narrow)))
    }
}

fn load<K: AsRef<[u8]>>(
    tuples: impl Iterator<Item = (K, u64)>,
    path: &Path,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut builder = MapBuilder::new(BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?))?;
    for (key, value) in tuples {
        builder.insert(key, value)?;
    }
    let file = builder.into_inner()?.into_inner().map_err(|error| error.into_error())?;
    file.sync_all()?;
    Ok(())
}

fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the file lies in this table's own folder; `load` has closed it, and no process writes to it
    // or truncates it afterwards.
    unsafe { Mmap::map(file) }
}

/// The table, and how long it took to build and to open and ask for `probe`.
fn store<K: AsRef<[u8]>>(
    tuples: impl Iterator<Item = (K, u64)>,
    probe: Option<K>,
    folder: &Path,
) -> Result<(Fst, Duration, Duration), PeerError> {
    let path = folder.join("table.fst");
    let (loaded, build) = timed(|| load(tuples, &path));
    loaded.map_err(failed(ENGINE, "build"))?;
    let start = Instant::now();
    let mapped = File::open(&path).and_then(|file| map(&file)).map_err(failed(ENGINE, "open"))?;
    let table = Map::new(mapped).map_err(failed(ENGINE, "open"))?;
    if let Some(key) = probe {
        std::hint::black_box(table.get(key));
    }
    Ok((Fst(table), build, start.elapsed()))
}

pub(crate) fn build<K: Number, V: Number>(
    tuples: &[(K, V)],
    folder: &Path,
) -> Result<Built<K, V>, PeerError> {
    let probe = tuples.get(tuples.len() / 2).map(|tuple| tuple.0.to_big_endian());
    let bytes = tuples.iter().map(|&(key, value)| (key.to_big_endian(), value.widen()));
    let (store, build, open) = store(bytes, probe, folder)?;
    Ok(Built { peer: Box::new(store), build, open: Some(open) })
}

pub(crate) fn build_texts(
    keys: &Keys,
    values: &[u32],
    folder: &Path,
) -> Result<BuiltTexts<'static>, PeerError> {
    let bytes = keys.iter().zip(values.iter().map(|&value| u64::from(value)));
    let (store, build, open) = store(bytes, keys.iter().nth(keys.len() / 2), folder)?;
    Ok(BuiltTexts { peer: Box::new(store), build, open: Some(open) })
}
