//! The tuples of a set as one source: for builds, exports and operators that read everything.

use crate::error::{Result, SetError};
use crate::schema::source_schema;
use crate::set::Set;
use pleach_builder::rebuild::Ordered;
use pleach_builder::source::{self, Chunk, Source, SourceError};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Tuples that are read at a time.
const CHUNK_TUPLES: usize = 1 << 16;
/// Chunks that are read ahead.
const AHEAD: usize = 2;

/// All tuples of a set in order. Files are read by verified blocks, one after the other, on a thread that reads
/// ahead; at most one of them is open.
#[derive(Debug)]
pub struct SetSource {
    schema: source::Schema,
    chunks: Option<Receiver<Result<Chunk>>>,
    /// The thread, whose end says whether all was read.
    reader: Option<io::Result<JoinHandle<()>>>,
    tuples: u64,
    read: u64,
}

impl SetSource {
    /// Begins to read.
    #[must_use]
    pub fn new(set: Arc<Set>) -> Self {
        let tuples = set.len();
        let schema = source::Schema { rows: Some(tuples), ..source_schema(set.schema()) };
        let (sender, chunks) = sync_channel(AHEAD);
        let reader = thread::Builder::new().name("pleach-set-read".into()).spawn(move || {
            if let Err(error) = send_all(&set, &sender) {
                // Nobody listens if the reader was dropped.
                let _ = sender.send(Err(error));
            }
        });
        Self { schema, chunks: Some(chunks), reader: Some(reader), tuples, read: 0 }
    }
}

fn send_all(set: &Set, to: &SyncSender<Result<Chunk>>) -> Result<()> {
    for file in 0..set.manifest().files() {
        // It is compared with the manifest when it is opened.
        if set.file_or_none(file)?.is_none() {
            continue;
        }
        let tuples = Ordered::open(&set.store().fetch(&set.manifest().entry(file))?)?;
        let mut source = tuples.source(0..tuples.tuples())?;
        loop {
            let mut chunk = Chunk::default();
            source.next_chunk(&mut chunk, CHUNK_TUPLES).map_err(|error| SetError::Build(in_source(error)))?;
            if chunk.is_empty() {
                break;
            }
            if to.send(Ok(chunk)).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn in_source(error: SourceError) -> pleach::Error {
    pleach_builder::rebuild::unwrapped_source(error).into()
}

impl Source for SetSource {
    fn schema(&self) -> &source::Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, _tuples_max: usize) -> Result<(), SourceError> {
        chunk.clear();
        let Some(chunks) = &self.chunks else { return Ok(()) };
        let received = chunks.recv();
        match received {
            Ok(Ok(next)) => {
                self.read += next.len() as u64;
                *chunk = next;
                Ok(())
            }
            // All was read, unless the thread did not start or stopped before.
            Err(_) => {
                self.chunks = None;
                if matches!(self.reader.take().map(|it| it.map(JoinHandle::join)), Some(Ok(Ok(())))) {
                    return Ok(());
                }
                Err(SourceError {
                    input: "set".into(),
                    place: String::new(),
                    what: "the thread that reads it did not start or stopped".into(),
                    advice: "try again".into(),
                    cause: None,
                })
            }
            Ok(Err(error)) => {
                self.chunks = None;
                Err(SourceError {
                    input: "set".into(),
                    place: error.object().unwrap_or_default().to_owned(),
                    what: "it cannot be read".into(),
                    advice: String::new(),
                    cause: Some(Box::new(error)),
                })
            }
        }
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.read, Some(self.tuples))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_format::{KeyType, ValueType};

    fn ended(reader: io::Result<JoinHandle<()>>) -> Result<(), SourceError> {
        let (_, chunks) = sync_channel(1);
        let schema = source::Schema::plain(KeyType::U64, ValueType::U64, None);
        let mut source = SetSource { schema, chunks: Some(chunks), reader: Some(reader), tuples: 1, read: 0 };
        source.next_chunk(&mut Chunk::default(), 1)
    }

    #[test]
    fn a_thread_that_stops_is_not_the_end() {
        assert!(ended(Ok(thread::spawn(|| ()))).is_ok());
        assert!(ended(Ok(thread::spawn(|| panic!("a test of a panic")))).is_err());
        assert!(ended(Err(io::ErrorKind::WouldBlock.into())).is_err());
    }
}
