//! Messages of Arrow IPC: cut out of a file or a stream, with lengths bounded before the library uses them.
//!
//! The library takes lengths from a message and allocates by them. So a message is read only as far as bytes
//! follow. The stated sizes of its unpacked buffers are compared with the rows of their column, with the most
//! that the codec can unpack from so few bytes, and with the memory of the machine.

use crate::guard::{Refused, caught};
use crate::problem::fault;
use arrow_buffer::Buffer;
use arrow_data::{BufferSpec, layout};
use arrow_ipc::{CompressionType, Message, MetadataVersion, root_as_message};
use arrow_schema::{DataType, Field, Schema, UnionMode};
use std::io::{self, Read};

/// Maximum length of a message header. Those of tables with a hundred thousand columns have some ten MiB.
pub(crate) const HEAD_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of bytes that one byte unpacks to: a repetition of LZ4 adds 255 per byte; a block of
/// Zstandard has 128 KiB, from 4 bytes.
const LZ4_RATIO: u64 = 255;
const ZSTD_RATIO: u64 = 32 << 10;
/// Tolerance: writers may pad packed data, and pack more than the rows need.
const SLACK_BYTES: u64 = 256 << 10;

/// Decodes a schema in a header; the error names the column whose type this version does not know.
pub(crate) fn schema_of(schema: &arrow_ipc::Schema<'_>) -> Result<Schema, Refused> {
    if !schema.endianness().equals_to_target_endianness() {
        let text =
            "its numbers are big-endian: write it again on this machine, or with a little-endian schema";
        return Err(Refused::ours(text));
    }
    let columns = schema.fields().ok_or_else(|| Refused::ours("its schema has no columns: it is damaged"))?;
    for column in columns {
        if let Err(reason) = caught(|| Field::from(column)) {
            let name = column.name().unwrap_or_default();
            return Err(Refused::ours(fault(
                format!("column {name:?} has a type that this version does not read ({reason})"),
                "leave the column out, or write it as another type",
            )));
        }
    }
    caught(|| arrow_ipc::convert::fb_to_schema(*schema)).map_err(Refused::library)
}

/// Returns the message in these bytes, which begin with its length.
pub(crate) fn message_in(bytes: &[u8]) -> Option<Message<'_>> {
    // The message follows its length, which since 0.15 follows a marker.
    let skip = if bytes.starts_with(&[0xff; 4]) { 8 } else { 4 };
    root_as_message(bytes.get(skip..)?).ok()
}

/// Checks the stated sizes of the buffers of a batch or of a dictionary. `memory` bounds their unpacked
/// total.
pub(crate) fn check(
    message: &Message<'_>,
    body: &[u8],
    schema: &Schema,
    projection: Option<&[usize]>,
    memory: u64,
) -> Result<(), Refused> {
    let damaged = |what: &str| Refused::ours(fault(what, "it is truncated or damaged"));
    let (batch, columns) = if let Some(batch) = message.header_as_record_batch() {
        (batch, Some(schema))
    } else if let Some(dictionary) = message.header_as_dictionary_batch() {
        (dictionary.data().ok_or_else(|| damaged("a dictionary has no values"))?, None)
    } else {
        return Ok(());
    };
    let ratio = match batch.compression().map(|compression| compression.codec()) {
        None => None,
        Some(CompressionType::LZ4_FRAME) => Some(LZ4_RATIO),
        Some(CompressionType::ZSTD) => Some(ZSTD_RATIO),
        Some(other) => {
            let name = other.variant_name().unwrap_or("an unknown codec");
            let text = fault(
                format!("it is compressed with {name}, which this version does not read"),
                "write it with zstd or lz4",
            );
            return Err(Refused::ours(text));
        }
    };
    let buffers = batch.buffers().into_iter().flatten();
    let mut stated = Vec::new();
    for buffer in buffers {
        let bytes = (|| {
            let start = usize::try_from(buffer.offset()).ok()?;
            body.get(start..start.checked_add(usize::try_from(buffer.length()).ok()?)?)
        })();
        let bytes = bytes.ok_or_else(|| damaged("a buffer lies outside its batch"))?;
        stated.push(match ratio {
            Some(ratio) if !bytes.is_empty() => {
                let (length, packed) = bytes
                    .split_first_chunk::<8>()
                    .ok_or_else(|| damaged("a compressed buffer has no length"))?;
                let (length, packed) = (i64::from_le_bytes(*length), packed.len() as u64);
                // -1 means that the buffer is not packed.
                let length = if length == -1 { Some(0) } else { u64::try_from(length).ok() };
                length
                    .filter(|&length| length <= packed.saturating_mul(ratio).saturating_add(SLACK_BYTES))
                    .ok_or_else(|| {
                        damaged(&format!(
                            "a buffer of {packed} bytes claims to decompress to more than it can"
                        ))
                    })?
            }
            _ => 0,
        });
    }
    let mut total: u64 = 0;
    match columns {
        Some(schema) => {
            let rows = batch.nodes().into_iter().flatten().map(|node| node.length().unsigned_abs()).collect();
            let views = batch.variadicBufferCounts().into_iter().flatten().collect();
            let mut walk =
                Walk { rows, views, stated: &stated, old: message.version() < MetadataVersion::V5, total: 0 };
            walk.rows_reversed();
            for (index, field) in schema.fields().iter().enumerate() {
                let decoded = projection.is_none_or(|columns| columns.contains(&index));
                walk.column(field.data_type(), decoded)
                    .ok_or_else(|| damaged("the buffers of a batch do not match its columns"))?
                    .map_err(|length| {
                        damaged(&format!("{} claims to decompress to {length} bytes", field.name()))
                    })?;
            }
            total = walk.total;
        }
        None => total = stated.iter().fold(total, |sum, &length| sum.saturating_add(length)),
    }
    if total > memory {
        return Err(Refused::ours(fault(
            format!("a batch of it decompresses to {total} bytes, and {memory} are available"),
            "write it in smaller batches, or without compression",
        )));
    }
    Ok(())
}

/// The buffers of a batch, column by column.
struct Walk<'a> {
    /// Rows of the remaining columns, the next one last.
    rows: Vec<u64>,
    /// Numbers of buffers of the remaining views, the next one last.
    views: Vec<i64>,
    /// Stated unpacked sizes of the remaining buffers.
    stated: &'a [u64],
    /// Unions have a validity bitmap.
    old: bool,
    /// Total unpacked size.
    total: u64,
}

/// `None`: buffers are missing. An inner error: the impossible length of a buffer.
type Walked = Option<Result<(), u64>>;

impl Walk<'_> {
    fn rows_reversed(&mut self) {
        self.rows.reverse();
        self.views.reverse();
    }

    /// Checks the next buffer, which needs `needed` bytes, if that is known.
    fn buffer(&mut self, needed: Option<u64>, decoded: bool) -> Walked {
        let (&length, rest) = self.stated.split_first()?;
        self.stated = rest;
        if decoded {
            self.total = self.total.saturating_add(length);
        }
        // Some writers pack a whole buffer of which they need a part.
        let most = needed.map_or(u64::MAX, |needed| needed.saturating_mul(2).saturating_add(SLACK_BYTES));
        Some(if length <= most { Ok(()) } else { Err(length) })
    }

    fn column(&mut self, data_type: &DataType, decoded: bool) -> Walked {
        macro_rules! all {
            ($($step:expr),* $(,)?) => {{
                $(
                    if let Err(length) = $step? {
                        return Some(Err(length));
                    }
                )*
            }};
        }
        let rows = self.rows.pop()?;
        let fixed = |width: usize| Some(rows.saturating_add(1).saturating_mul(width as u64));
        let bits = Some(rows.div_ceil(8));
        match data_type {
            DataType::Null => {}
            DataType::RunEndEncoded(ends, values) => {
                all!(self.column(ends.data_type(), decoded), self.column(values.data_type(), decoded));
            }
            DataType::Union(fields, mode) => {
                if self.old {
                    all!(self.buffer(bits, decoded));
                }
                all!(self.buffer(fixed(1), decoded));
                if *mode == UnionMode::Dense {
                    all!(self.buffer(fixed(4), decoded));
                }
                for (_, field) in fields.iter() {
                    all!(self.column(field.data_type(), decoded));
                }
            }
            DataType::Struct(fields) => {
                all!(self.buffer(bits, decoded));
                for field in fields {
                    all!(self.column(field.data_type(), decoded));
                }
            }
            DataType::Dictionary(keys, _) => {
                all!(self.buffer(bits, decoded), self.buffer(fixed(keys.primitive_width()?), decoded));
            }
            _ => {
                all!(self.buffer(bits, decoded));
                let layout = layout(data_type);
                for spec in &layout.buffers {
                    let needed = match spec {
                        BufferSpec::FixedWidth { byte_width, .. } => fixed(*byte_width),
                        BufferSpec::BitMap => bits,
                        BufferSpec::VariableWidth | BufferSpec::AlwaysNull => None,
                    };
                    all!(self.buffer(needed, decoded));
                }
                if layout.variadic {
                    for _ in 0..self.views.pop()? {
                        all!(self.buffer(None, decoded));
                    }
                }
                let child = match data_type {
                    DataType::List(field)
                    | DataType::LargeList(field)
                    | DataType::ListView(field)
                    | DataType::LargeListView(field)
                    | DataType::FixedSizeList(field, _)
                    | DataType::Map(field, _) => Some(field),
                    _ => None,
                };
                if let Some(field) = child {
                    all!(self.column(field.data_type(), decoded));
                }
            }
        }
        Some(Ok(()))
    }
}

/// Message for bytes that are not a message.
const NO_STREAM: &str = "not a readable Arrow file or stream: check its format, and that it is complete";

/// Reads the next message of a stream, including its length; `None` at the end mark and at the end of the
/// bytes. `start` was already read of it. No more memory is allocated than bytes arrive.
pub(crate) fn next_message(reader: &mut dyn Read, start: Vec<u8>) -> Result<Option<Buffer>, Refused> {
    let truncated = || Refused::ours("it ends inside a message: it is truncated");
    let mut bytes = start;
    if !take(reader, &mut bytes, 4)? {
        return if bytes.is_empty() { Ok(None) } else { Err(truncated()) };
    }
    // Before 0.15 there was no marker.
    let prefix = if bytes.starts_with(&[0xff; 4]) { 8 } else { 4 };
    if !take(reader, &mut bytes, prefix)? {
        return Err(truncated());
    }
    let mut length = [0; 4];
    length.copy_from_slice(&bytes[prefix - 4..prefix]);
    let length = u64::from(u32::from_le_bytes(length));
    if length == 0 {
        return Ok(None);
    }
    if length > HEAD_BYTES_MAX {
        return Err(Refused::ours(NO_STREAM));
    }
    if !take(reader, &mut bytes, prefix + length as usize)? {
        return Err(truncated());
    }
    let message = message_in(&bytes).ok_or_else(|| Refused::ours(NO_STREAM))?;
    let end = usize::try_from(message.bodyLength())
        .ok()
        .and_then(|body| body.checked_add(prefix + length as usize));
    let end = end.filter(|&end| end >= bytes.len());
    let end = end.ok_or_else(|| Refused::ours("invalid length of a batch: it is damaged"))?;
    if !take(reader, &mut bytes, end)? {
        return Err(truncated());
    }
    Ok(Some(Buffer::from_vec(bytes)))
}

/// Reads until there are `wanted` bytes; returns false if the end comes before.
fn take(reader: &mut dyn Read, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<bool> {
    /// Memory reserved before the bytes arrive.
    const AHEAD_BYTES: usize = 4 << 20;
    let missing = wanted.saturating_sub(bytes.len());
    bytes.reserve(missing.min(AHEAD_BYTES));
    reader.take(missing as u64).read_to_end(bytes)?;
    Ok(bytes.len() >= wanted)
}
