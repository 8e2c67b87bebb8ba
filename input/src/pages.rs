//! Pages of Parquet: their stated lengths are bounded before the library uses them.
//!
//! The library takes lengths from the footer, from page headers and from page contents, and allocates by
//! them. So the footer is scanned first. The header of a page is scanned when the library is about to read
//! it, and compared with the bytes of the page and the most that its codec can unpack.
//!
//! An unpacked page is examined if its encoding begins with counts of values. The library itself detects a
//! page that unpacks to more than its stated size.

use crate::guard::Refused;
use crate::problem::fault;
use crate::thrift::{Broken, I16, I64, LIST, STRUCT, Thrift};
use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum bytes of an unpacked page. Writers make pages of 1 MiB; one long string may need more.
pub(crate) const PAGE_BYTES_MAX: u64 = 1 << 30;
/// Maximum bytes of a string in a column of fixed length.
pub(crate) const FIXED_BYTES_MAX: i32 = 16 << 20;
/// Maximum bytes of a page header: it may hold the least and the greatest value.
const HEADER_BYTES_MAX: usize = 16 << 20;
/// Bytes read for a header at first.
const HEADER_BYTES: usize = 4 << 10;
/// Tolerance for the unpacked size of a page, beyond what its codec makes of its bytes.
const SLACK_BYTES: u64 = 256 << 10;
/// Maximum number of row groups: the limit of the library's counter.
const ROW_GROUPS_MAX: u64 = 1 << 15;
/// Fields of the footer: the schema, and the row groups.
const SCHEMA: i64 = 2;
const ROW_GROUPS: i64 = 4;
/// Field of an element of the schema: the number of its children, which follow.
const CHILDREN: i64 = 5;

/// Skips a schema, whose elements must not have more children than there are elements.
fn skip_schema(thrift: &mut Thrift<'_>) -> Result<(), Broken> {
    let (kind, count) = thrift.list()?;
    if kind != STRUCT {
        return Err(Broken::Bad);
    }
    for _ in 0..count {
        let mut last = 0;
        while let Some((kind, number)) = thrift.field(&mut last)? {
            match (kind, number) {
                (I16..=I64, CHILDREN) => {
                    if u64::try_from(thrift.signed()?).map_or(true, |children| children > count) {
                        return Err(Broken::Bad);
                    }
                }
                _ => thrift.skip(kind, false, 0)?,
            }
        }
    }
    Ok(())
}

/// Returns true if a footer is complete and no count in it exceeds its content.
fn is_footer(bytes: &[u8]) -> bool {
    let mut thrift = Thrift { rest: bytes };
    let mut last = 0;
    let mut walk = || {
        while let Some((kind, number)) = thrift.field(&mut last)? {
            if number == SCHEMA && kind == LIST {
                skip_schema(&mut thrift)?;
                continue;
            }
            if number == ROW_GROUPS && kind == LIST {
                let (_, count) = Thrift { rest: thrift.rest }.list()?;
                if count > ROW_GROUPS_MAX {
                    return Err(Broken::Bad);
                }
            }
            thrift.skip(kind, false, 0)?;
        }
        Ok(())
    };
    walk().is_ok()
}

/// Checks the footer of a file of `bytes` bytes. The library itself refuses a file without one.
pub(crate) fn check_footer(file: &File, bytes: u64) -> Result<(), Refused> {
    let mut tail = [0; 8];
    let Some(tail_at) = bytes.checked_sub(12) else {
        return Err(Refused::ours(
            "not a readable Parquet file, because it is too short: check its format, and that it is complete",
        ));
    };
    file.read_exact_at(&mut tail, tail_at + 4)?;
    let [a, b, c, d, magic @ ..] = tail;
    if &magic == b"PARE" {
        return Err(Refused::ours(
            "it is encrypted, which this version does not read: write it without encryption",
        ));
    }
    if &magic != b"PAR1" {
        let text = "not a readable Parquet file, because its end is not that of one: check its format, and that \
                    it is complete";
        return Err(Refused::ours(text));
    }
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    let damaged = || Refused::ours("invalid footer: it is damaged");
    if length > tail_at {
        return Err(damaged());
    }
    let mut footer = vec![0; length as usize];
    file.read_exact_at(&mut footer, tail_at + 4 - length)?;
    if is_footer(&footer) { Ok(()) } else { Err(damaged()) }
}

/// Contents of a page header.
#[derive(Debug, Default, PartialEq, Eq)]
struct PageHeader {
    unpacked: i64,
    packed: i64,
    /// Number of values of a dictionary.
    dictionary: Option<i64>,
}

impl PageHeader {
    fn parse(bytes: &[u8]) -> Result<Self, Broken> {
        let mut thrift = Thrift { rest: bytes };
        let mut header = Self::default();
        let mut last = 0;
        while let Some((kind, number)) = thrift.field(&mut last)? {
            match (kind, number) {
                (I16..=I64, 2) => header.unpacked = thrift.signed()?,
                (I16..=I64, 3) => header.packed = thrift.signed()?,
                (STRUCT, 7) => {
                    let mut last = 0;
                    while let Some((kind, number)) = thrift.field(&mut last)? {
                        match (kind, number) {
                            (I16..=I64, 1) => header.dictionary = Some(thrift.signed()?),
                            _ => thrift.skip(kind, false, 0)?,
                        }
                    }
                }
                _ => thrift.skip(kind, false, 0)?,
            }
        }
        Ok(header)
    }

    /// Checks the header against its column chunk.
    fn check(&self, chunk: &Chunk) -> Result<(), Refused> {
        let damaged = |what: &str| Err(Refused::ours(fault(what, "it is damaged")));
        let (Ok(unpacked), Ok(packed)) = (u64::try_from(self.unpacked), u64::try_from(self.packed)) else {
            return damaged("a page has a negative length");
        };
        if packed > chunk.end - chunk.start {
            return damaged("a page is longer than its column");
        }
        if unpacked > PAGE_BYTES_MAX {
            return Err(Refused::ours(fault(
                format!("a page decompresses to {unpacked} bytes, at most {PAGE_BYTES_MAX} are supported"),
                "write it in smaller pages",
            )));
        }
        if unpacked > packed.saturating_mul(chunk.ratio).saturating_add(SLACK_BYTES) {
            return damaged(&format!("a page of {packed} bytes claims to decompress to {unpacked}"));
        }
        match self.dictionary.map(u64::try_from) {
            None => Ok(()),
            Some(Ok(values)) if values.saturating_mul(chunk.value_bytes) <= unpacked => Ok(()),
            Some(_) => damaged("a dictionary has more values than bytes"),
        }
    }
}

/// Place of a column of a row group.
struct Chunk {
    start: u64,
    end: u64,
    /// Maximum number of bytes that one byte unpacks to.
    ratio: u64,
    /// Minimum bytes of a value in a dictionary.
    value_bytes: u64,
}

/// Returns the maximum number of bytes that one byte of a codec unpacks to, or the name of an unsupported
/// codec.
fn ratio(codec: Compression) -> Result<u64, &'static str> {
    Ok(match codec {
        Compression::UNCOMPRESSED => 1,
        Compression::SNAPPY => 64,
        Compression::LZ4 | Compression::LZ4_RAW => 256,
        Compression::GZIP(_) => 1040,
        Compression::ZSTD(_) => 32 << 10,
        // A copy in a few bits may have 16 MiB.
        Compression::BROTLI(_) => 4 << 20,
        Compression::LZO => return Err("LZO"),
    })
}

impl Chunk {
    fn of(column: &ColumnChunkMetaData, bytes: u64) -> Result<Self, Refused> {
        let name = column.column_path().string();
        let ratio = ratio(column.compression()).map_err(|codec| {
            Refused::ours(fault(
                format!("column {name:?} is compressed with {codec}, which this version does not read"),
                "write it with zstd or snappy",
            ))
        })?;
        let place = (|| {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let start = u64::try_from(start).ok()?;
            let end = start.checked_add(u64::try_from(column.compressed_size()).ok()?)?;
            (end <= bytes).then_some((start, end))
        })();
        let (start, end) = place.ok_or_else(|| {
            Refused::ours(fault(
                format!("column {name:?} lies outside the file"),
                "it is truncated or damaged",
            ))
        })?;
        let value_bytes = match column.column_type() {
            Type::BOOLEAN => 0,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => {
                u64::try_from(column.column_descr().type_length()).unwrap_or(0).max(1)
            }
        };
        Ok(Self { start, end, ratio, value_bytes })
    }
}

/// An error to be passed through the library, which has only errors of its own.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<Refused>>>);

impl Fault {
    fn set(&self, refused: Refused) -> ParquetError {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(refused);
        ParquetError::General("refused".to_owned())
    }

    /// Takes the error.
    pub(crate) fn take(&self) -> Option<Refused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A file whose pages are checked.
struct Checked {
    file: Arc<File>,
    bytes: u64,
    /// Chunks of the requested columns, by their places.
    chunks: Arc<Vec<Chunk>>,
    fault: Fault,
}

impl Length for Checked {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Checked {
    type T = HeaderReader;

    fn get_read(&self, start: u64) -> Result<HeaderReader, ParquetError> {
        let Self { file, chunks, fault, .. } = self;
        let (file, chunks, fault) = (Arc::clone(file), Arc::clone(chunks), fault.clone());
        Ok(HeaderReader { file, chunks, fault, start, header: Vec::new(), used: 0 })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(self
                .fault
                .set(Refused::ours("a page lies outside the file: it is truncated or damaged")));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start).map_err(|error| self.fault.set(error.into()))?;
        Ok(bytes.into())
    }
}

/// A reader of the page header at a place, which is checked when it is first read.
struct HeaderReader {
    file: Arc<File>,
    chunks: Arc<Vec<Chunk>>,
    fault: Fault,
    start: u64,
    header: Vec<u8>,
    used: usize,
}

impl HeaderReader {
    fn check(&mut self) -> Result<(), Refused> {
        let damaged = || Refused::ours("invalid header of a page: it is damaged");
        let behind = self.chunks.partition_point(|chunk| chunk.start <= self.start);
        let chunk =
            self.chunks[..behind].last().filter(|chunk| self.start < chunk.end).ok_or_else(damaged)?;
        let most = usize::try_from(chunk.end - self.start).unwrap_or(usize::MAX).min(HEADER_BYTES_MAX);
        let mut wanted = HEADER_BYTES.min(most);
        loop {
            let there = self.header.len();
            self.header.resize(wanted, 0);
            self.file.read_exact_at(&mut self.header[there..], self.start + there as u64)?;
            match PageHeader::parse(&self.header) {
                Ok(header) => return header.check(chunk),
                Err(Broken::Short) if wanted < most => wanted = wanted.saturating_mul(8).min(most),
                Err(_) => return Err(damaged()),
            }
        }
    }
}

impl Read for HeaderReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.header.is_empty() {
            self.check().map_err(|refused| io::Error::other(self.fault.set(refused)))?;
        }
        let rest = &self.header[self.used..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.used += count;
        Ok(count)
    }
}

/// The row groups of a file, whose pages are checked.
pub(crate) struct Groups {
    reader: Arc<Checked>,
    metadata: Arc<ParquetMetaData>,
}

impl Groups {
    /// Creates the row groups of which the columns `leaves` are read.
    pub(crate) fn new(
        file: File,
        bytes: u64,
        metadata: Arc<ParquetMetaData>,
        leaves: impl Fn(usize) -> bool,
        fault: Fault,
    ) -> Result<Self, Refused> {
        let mut chunks = Vec::new();
        for group in metadata.row_groups() {
            let columns = group.columns().iter().enumerate().filter(|(leaf, _)| leaves(*leaf));
            for (_, column) in columns {
                chunks.push(Chunk::of(column, bytes)?);
            }
        }
        chunks.sort_unstable_by_key(|chunk| chunk.start);
        let reader = Checked { file: Arc::new(file), bytes, chunks: Arc::new(chunks), fault };
        Ok(Self { reader: Arc::new(reader), metadata })
    }
}

impl RowGroups for Groups {
    fn num_rows(&self) -> usize {
        let rows =
            self.metadata.row_groups().iter().map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
        rows.fold(0, usize::saturating_add)
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>, ParquetError> {
        let (reader, metadata) = (Arc::clone(&self.reader), Arc::clone(&self.metadata));
        Ok(Box::new(ColumnChunks { reader, metadata, column, next: 0 }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// A column, row group by row group.
struct ColumnChunks {
    reader: Arc<Checked>,
    metadata: Arc<ParquetMetaData>,
    column: usize,
    next: usize,
}

impl Iterator for ColumnChunks {
    type Item = Result<Box<dyn PageReader>, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_groups().get(self.next)?;
        self.next += 1;
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let column = group.column(self.column);
        let descriptor = column.column_descr();
        let levels = (descriptor.max_rep_level(), descriptor.max_def_level());
        let pages = SerializedPageReader::new(Arc::clone(&self.reader), column, rows, None);
        Some(pages.map(|pages| {
            Box::new(CheckedPages { pages, levels, fault: self.reader.fault.clone() }) as Box<dyn PageReader>
        }))
    }
}

impl PageIterator for ColumnChunks {}

/// Pages whose contents are checked.
struct CheckedPages {
    pages: SerializedPageReader<Checked>,
    /// Maximum repetition and definition levels.
    levels: (i16, i16),
    fault: Fault,
}

impl Iterator for CheckedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        if page.as_ref().is_some_and(|page| !is_plausible(page, self.levels)) {
            let text = "a page has fewer values than it declares: it is damaged";
            return Err(self.fault.set(Refused::ours(text)));
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.pages.at_record_boundary()
    }
}

/// Returns true unless a page whose encoding counts its values counts more than the page has.
fn is_plausible(page: &Page, levels: (i16, i16)) -> bool {
    let most = u64::from(page.num_values());
    let counts = match page.encoding() {
        Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => return true,
    };
    let Some(values) = values_of(page, levels) else { return false };
    let mut thrift = Thrift { rest: values };
    // Pages with only nulls have no values, and may have no bytes for them.
    values.is_empty() || (0..counts).all(|_| skip_deltas(&mut thrift, most).is_ok())
}

/// Returns the bytes after the levels of a data page.
fn values_of(page: &Page, (repetition, definition): (i16, i16)) -> Option<&[u8]> {
    match page {
        Page::DataPage { buf, num_values, def_level_encoding, rep_level_encoding, .. } => {
            let mut rest: &[u8] = buf;
            for (level, encoding) in [(repetition, rep_level_encoding), (definition, def_level_encoding)] {
                if level == 0 {
                    continue;
                }
                let bytes = if *encoding == Encoding::RLE {
                    let (length, behind) = rest.split_first_chunk::<4>()?;
                    rest = behind;
                    u64::from(u32::from_le_bytes(*length))
                } else {
                    (u64::from(*num_values) * u64::from(16 - level.cast_unsigned().leading_zeros()))
                        .div_ceil(8)
                };
                rest = rest.get(usize::try_from(bytes).ok()?..)?;
            }
            Some(rest)
        }
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
            buf.get(usize::try_from(levels).ok()?..)
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// Skips numbers in the delta encoding, of which there may be at most `most`.
fn skip_deltas(bytes: &mut Thrift<'_>, most: u64) -> Result<(), Broken> {
    let (block, parts, count) = (bytes.number()?, bytes.number()?, bytes.number()?);
    bytes.number()?;
    if count > most || parts == 0 || block % parts != 0 {
        return Err(Broken::Bad);
    }
    let part = block / parts;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        if part == 0 {
            return Err(Broken::Bad);
        }
        bytes.number()?;
        let widths = bytes.rest;
        bytes.pass(parts)?;
        for &width in &widths[..parts as usize] {
            // Parts without a number have no bytes.
            if left == 0 {
                break;
            }
            // Some writers truncate the last part.
            let needed = part.checked_mul(u64::from(width)).ok_or(Broken::Bad)?.div_ceil(8);
            let there = bytes.rest.len() as u64;
            bytes.pass(if left <= part { needed.min(there) } else { needed })?;
            left = left.saturating_sub(part);
        }
    }
    Ok(())
}
