//! Arrow IPC, file and stream.
//!
//! A file is read by its footer; a stream, or a file that comes through a pipe, message by message in the
//! order of its bytes. Lengths are bounded before the library allocates by them: see [`crate::messages`].

use crate::batches::{BatchSource, Columns, Extent};
use crate::body::{Body, fill};
use crate::guard::Refused;
use crate::messages::{self, HEAD_BYTES_MAX, message_in};
use crate::names::Asked;
use crate::problem::{fault, problem, unreadable};
use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::reader::{FileDecoder, StreamDecoder, read_footer_length};
use arrow_ipc::{Block, MetadataVersion, root_as_footer};
use arrow_schema::SchemaRef;
use pleach_builder::{Source, SourceError};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes per read call, if messages are small.
const READ_BYTES: usize = 1 << 20;

/// Opens an IPC file or stream; the first bytes show which it is.
pub(crate) fn open(input: &str, body: Body, options: &Asked) -> Result<Box<dyn Source>, SourceError> {
    let unreadable = |error: io::Error| unreadable(input, "", error);
    match body {
        Body::File(mut file, bytes) => {
            let mut start = [0; 8];
            let read = fill(&mut file, &mut start).map_err(unreadable)?;
            file.rewind().map_err(unreadable)?;
            if start.starts_with(b"ARROW1") && read == 8 {
                return open_file(input, file, bytes, options);
            }
            open_stream(input, Box::new(file), options)
        }
        Body::Stream(stream, _) => open_stream(input, stream, options),
    }
}

/// Returns the maximum unpacked size of a batch: half of the memory, since it is copied to chunks.
fn batch_bytes_max() -> u64 {
    pleach_builder::options::physical_memory_bytes() / 2
}

fn open_file(
    input: &str,
    mut file: File,
    bytes: u64,
    options: &Asked,
) -> Result<Box<dyn Source>, SourceError> {
    let refused = |refused: Refused| refused.at(input, "");
    let footer = Footer::read(&mut file, bytes).map_err(refused)?;
    let columns = Columns::choose(input, &footer.schema, options)?;
    let rows = Some(footer.rows);
    let batches = FileBatches::new(file, footer, columns.projection()).map_err(refused)?;
    Ok(Box::new(BatchSource::new(input, Box::new(batches), columns, true, rows, Extent::Bytes(bytes))))
}

fn damaged(what: &str) -> Refused {
    Refused::ours(fault(what, "it is truncated or damaged"))
}

/// Contents of a file's footer and of the headers of its batches.
struct Footer {
    schema: SchemaRef,
    version: MetadataVersion,
    dictionaries: Vec<Block>,
    batches: Vec<Block>,
    rows: u64,
}

impl Footer {
    /// Reads the footer, and counts the rows of all batches. All blocks must lie inside the file.
    fn read(file: &mut File, bytes: u64) -> Result<Self, Refused> {
        let mut tail = [0; 10];
        if bytes < 18 {
            return Err(damaged("it ends within its first bytes"));
        }
        file.seek(SeekFrom::Start(bytes - 10))?;
        file.read_exact(&mut tail)?;
        let length = read_footer_length(tail).ok();
        let length = length.filter(|&length| length as u64 <= (bytes - 18).min(HEAD_BYTES_MAX));
        let length = length.ok_or_else(|| damaged("there is no Arrow footer at its end"))?;
        let footer_at = bytes - 10 - length as u64;
        file.seek(SeekFrom::Start(footer_at))?;
        let mut footer = vec![0; length];
        file.read_exact(&mut footer)?;
        let footer = root_as_footer(&footer).map_err(|_| damaged("its Arrow footer cannot be read"))?;
        let schema = footer.schema().ok_or_else(|| damaged("its Arrow footer has no schema"))?;
        let mut this = Self {
            schema: Arc::new(messages::schema_of(&schema)?),
            version: footer.version(),
            dictionaries: footer.dictionaries().into_iter().flatten().copied().collect(),
            batches: footer.recordBatches().into_iter().flatten().copied().collect(),
            rows: 0,
        };
        for block in this.dictionaries.iter().chain(&this.batches) {
            let end = place_of(block).and_then(|(start, head, body)| {
                start.checked_add(head as u64)?.checked_add(body as u64).filter(|_| head >= 8)
            });
            if end.is_none_or(|end| end > footer_at) {
                return Err(damaged("a batch lies outside the file"));
            }
        }
        for block in &this.batches {
            let (start, head, _) = place_of(block).unwrap_or_default();
            file.seek(SeekFrom::Start(start))?;
            let mut message = vec![0; head];
            file.read_exact(&mut message)?;
            let length = message_in(&message)
                .and_then(|message| message.header_as_record_batch())
                .and_then(|batch| u64::try_from(batch.length()).ok());
            this.rows = length
                .and_then(|length| this.rows.checked_add(length))
                .ok_or_else(|| damaged("the header of a batch cannot be read"))?;
        }
        Ok(this)
    }
}

/// Returns the start of a block, and the bytes of its header and its body.
fn place_of(block: &Block) -> Option<(u64, usize, usize)> {
    let start = u64::try_from(block.offset()).ok()?;
    Some((start, usize::try_from(block.metaDataLength()).ok()?, usize::try_from(block.bodyLength()).ok()?))
}

/// The batches of a file, located by its footer.
struct FileBatches {
    file: File,
    schema: SchemaRef,
    decoder: FileDecoder,
    projection: Vec<usize>,
    /// The remaining batches.
    batches: std::vec::IntoIter<Block>,
    memory: u64,
}

impl FileBatches {
    /// Reads the dictionaries.
    fn new(file: File, footer: Footer, projection: Vec<usize>) -> Result<Self, Refused> {
        let decoder = FileDecoder::new(Arc::clone(&footer.schema), footer.version);
        let mut this = Self {
            file,
            schema: footer.schema,
            decoder: decoder.with_projection(projection.clone()),
            projection,
            batches: footer.batches.into_iter(),
            memory: batch_bytes_max(),
        };
        for block in &footer.dictionaries {
            let bytes = this.read(block)?;
            this.decoder.read_dictionary(block, &bytes).map_err(Refused::arrow)?;
        }
        Ok(this)
    }

    /// Reads and checks a block that lies inside the file.
    fn read(&mut self, block: &Block) -> Result<Buffer, Refused> {
        let (start, head, body) = place_of(block).unwrap_or_default();
        self.file.seek(SeekFrom::Start(start))?;
        let mut bytes = MutableBuffer::from_len_zeroed(head + body);
        self.file.read_exact(&mut bytes)?;
        let message =
            message_in(&bytes[..head]).ok_or_else(|| damaged("the header of a batch cannot be read"))?;
        messages::check(&message, &bytes[head..], &self.schema, Some(&self.projection), self.memory)?;
        Ok(bytes.into())
    }
}

impl Iterator for FileBatches {
    type Item = Result<RecordBatch, Refused>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.batches.next()?;
        let batch = self
            .read(&block)
            .and_then(|bytes| self.decoder.read_record_batch(&block, &bytes).map_err(Refused::arrow));
        batch
            .and_then(|batch| batch.ok_or_else(|| damaged("a block is not a record batch")))
            .map(Some)
            .transpose()
    }
}

/// The batches of a stream, message by message.
struct StreamBatches {
    reader: BufReader<Counted>,
    decoder: StreamDecoder,
    schema: Option<SchemaRef>,
    /// The first bytes were examined.
    started: bool,
    /// It is a file: its footer follows the end mark.
    is_file: bool,
    /// A batch that arrived before it was requested.
    early: Option<RecordBatch>,
    /// The last message, if it is not decoded yet: one without a body is decoded only when the next one
    /// arrives.
    message: Buffer,
    memory: u64,
}

/// Counts what is read.
struct Counted {
    reader: Box<dyn Read + Send>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl StreamBatches {
    /// Skips the magic of a file, if there is one; returns the bytes that were read of the stream itself.
    fn start(&mut self) -> Result<Vec<u8>, Refused> {
        let mut start = vec![0; 8];
        let read = fill(&mut self.reader, &mut start)?;
        start.truncate(read);
        if start.starts_with(b"FEA1") {
            let text =
                "it is Feather of version 1, which this version does not read: write it again as version 2";
            return Err(Refused::ours(text));
        }
        // A file that comes through a pipe is its magic, a stream, and a footer.
        self.is_file = start == b"ARROW1\0\0";
        let mut words = 0;
        // The magic is padded to 8 bytes, by some writers to 64.
        while self.is_file && words < 8 && (words == 0 || start == [0; 8]) {
            start.resize(8, 0);
            let read = fill(&mut self.reader, &mut start)?;
            start.truncate(read);
            words += 1;
        }
        Ok(start)
    }

    /// Returns the next batch, or `None` at the end. With `schema_only`, returns as soon as the schema is
    /// known.
    fn pull(&mut self, schema_only: bool) -> Result<Option<RecordBatch>, Refused> {
        loop {
            while !self.message.is_empty() {
                if let Some(batch) = self.decoder.decode(&mut self.message).map_err(Refused::arrow)? {
                    return Ok(Some(batch));
                }
            }
            if schema_only && self.schema.is_some() {
                return Ok(None);
            }
            let start = if self.started { Vec::new() } else { self.start()? };
            self.started = true;
            let Some(bytes) = messages::next_message(&mut self.reader, start)? else {
                let rest = io::copy(&mut self.reader, &mut io::sink())?;
                if rest > 0 && !self.is_file {
                    return Err(Refused::ours(fault(
                        format!("{rest} bytes follow the end of its stream"),
                        "cut them off",
                    )));
                }
                return Ok(None);
            };
            {
                let message =
                    message_in(&bytes).ok_or_else(|| damaged("the header of a message cannot be read"))?;
                let body_at = bytes.len().saturating_sub(usize::try_from(message.bodyLength()).unwrap_or(0));
                if let (Some(schema), None) = (message.header_as_schema(), &self.schema) {
                    self.schema = Some(Arc::new(messages::schema_of(&schema)?));
                }
                let schema =
                    self.schema.as_ref().ok_or_else(|| damaged("a batch comes before its schema"))?;
                messages::check(&message, &bytes[body_at..], schema, None, self.memory)?;
            }
            self.message = bytes;
        }
    }
}

impl Iterator for StreamBatches {
    type Item = Result<RecordBatch, Refused>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.early.take() {
            Some(batch) => Some(Ok(batch)),
            None => self.pull(false).transpose(),
        }
    }
}

fn open_stream(
    input: &str,
    reader: Box<dyn Read + Send>,
    options: &Asked,
) -> Result<Box<dyn Source>, SourceError> {
    let bytes = Arc::new(AtomicU64::new(0));
    let extent = Extent::Read(Arc::clone(&bytes));
    let mut batches = StreamBatches {
        reader: BufReader::with_capacity(READ_BYTES, Counted { reader, bytes }),
        decoder: StreamDecoder::new(),
        schema: None,
        started: false,
        is_file: false,
        early: None,
        message: Buffer::from_vec(Vec::<u8>::new()),
        memory: batch_bytes_max(),
    };
    batches.early = batches.pull(true).map_err(|refused| refused.at(input, ""))?;
    let schema = batches.schema.clone().ok_or_else(|| {
        problem(input, "", "not a readable Arrow file or stream, because it has no schema: check its format")
    })?;
    let columns = Columns::choose(input, &schema, options)?;
    Ok(Box::new(BatchSource::new(input, Box::new(batches), columns, false, None, extent)))
}
