//! Text as every reader of it gets it: unpacked, without a byte order mark, in lines that end in LF or CRLF.
//!
//! [`open`] is the one way to text, of tables, changes and lists of keys, from files, pipes and standard input:
//!
//! * what is compressed with gzip or zstd, in one piece or several, is unpacked as it is read, whatever its name
//!   is; what is packed in another way, or is no text at all, is refused by its name;
//! * a byte order mark is dropped, UTF-16 is refused;
//! * if the first line ends in a carriage return alone, as old Macs and Excel write it, all lines do, and the
//!   reader hands them out with line feeds. Carriage returns and line feeds inside quotes stay. In such a text a
//!   line feed, and in any other a carriage return that no line feed follows, is no line end: whoever takes the
//!   lines refuses it ([`RETURN`]).

use super::{caused, problem};
use crate::source::SourceError;
use flate2::bufread::MultiGzDecoder;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is said of a carriage return that is neither a line end nor in quotes.
pub const RETURN: &str = "a carriage return stands in it without a line feed: write all line ends in one way";

/// Bytes of packed data that are read at a time.
const PACKED_BYTES: usize = 128 << 10;
/// Bytes that the look for the first line end reads at a time.
const HEAD_BYTES: usize = 64 << 10;
/// If no line has ended after so many bytes, a carriage return is none.
const HEAD_BYTES_MAX: usize = 1 << 20;
/// Bytes that tell what a file holds.
pub(super) const MARK_BYTES: usize = 12;

/// What the text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A table whose fields may be quoted.
    Csv,
    /// A table without quotes.
    Tsv,
    /// A list, one a line.
    Lines,
}

/// What the first bytes of a file tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Compressed, and unpacked where text is read.
    Gzip,
    /// Compressed, and unpacked where text is read.
    Zstd,
    /// Compressed.
    Bzip2,
    /// Compressed.
    Xz,
    /// Compressed.
    Lz4,
    /// Compressed by the `compress` of old.
    Compress,
    /// An archive, as workbooks of Excel are, too.
    Zip,
    /// A table.
    Parquet,
    /// A table, as a file or a stream.
    Arrow,
    /// An array of NumPy.
    Npy,
    /// A Pleach file.
    Pleach,
}

/// The first bytes of each kind of content. The pieces of bzip2 and Parquet that text may begin with are told
/// apart in [`matches`].
const MARKS: [(&[u8], Content); 15] = [
    (b"\x1f\x8b", Content::Gzip),
    (b"\x28\xb5\x2f\xfd", Content::Zstd),
    (b"BZh\x001AY&SY", Content::Bzip2),
    (b"BZh\x00\x17\x72\x45\x38\x50\x90", Content::Bzip2),
    (b"\xfd7zXZ\0", Content::Xz),
    (b"\x04\x22\x4d\x18", Content::Lz4),
    (b"\x1f\x9d", Content::Compress),
    (b"PK\x03\x04", Content::Zip),
    (b"PK\x05\x06", Content::Zip),
    (b"PAR1\x15", Content::Parquet),
    (b"PARE", Content::Parquet),
    (b"ARROW1\0\0", Content::Arrow),
    (b"\xff\xff\xff\xff", Content::Arrow),
    (b"\x93NUMPY", Content::Npy),
    (b"\x89PLEACH\r\n\x1a\n", Content::Pleach),
];

/// Marks of encodings: UTF-8, and the two orders of UTF-16.
const BYTE_ORDERS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];

/// Whether `head` begins with `mark`, so far as both go.
fn matches(head: &[u8], mark: &[u8]) -> bool {
    // A stream of bzip2 has any of nine levels.
    let level = mark.starts_with(b"BZh");
    head.iter()
        .zip(mark)
        .all(|(byte, wanted)| byte == wanted || (level && *wanted == 0 && byte.is_ascii_digit()))
}

impl Content {
    /// What `head`, the first bytes of a file, shows: `None` for text, and all else that has no mark.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] = head {
            return Some(Self::Zstd);
        }
        let is = |mark: &[u8]| head.len() >= mark.len() && matches(head, mark);
        MARKS.iter().find(|(mark, _)| is(mark)).map(|&(_, content)| content)
    }

    /// Whether it is something packed, which is to be unpacked first.
    #[must_use]
    pub fn is_packed(self) -> bool {
        !matches!(self, Self::Parquet | Self::Arrow | Self::Npy | Self::Pleach)
    }

    /// Its name.
    #[must_use]
    pub fn noun(self) -> &'static str {
        let name = self.name();
        name.strip_prefix("compressed with ").unwrap_or(name)
    }

    /// What it is, in a sentence.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "compressed with gzip",
            Self::Zstd => "compressed with zstd",
            Self::Bzip2 => "compressed with bzip2",
            Self::Xz => "compressed with xz",
            Self::Lz4 => "compressed with lz4",
            Self::Compress => "compressed with compress",
            Self::Zip => "a ZIP archive (or an Excel workbook)",
            Self::Parquet => "a Parquet file",
            Self::Arrow => "an Arrow IPC file",
            Self::Npy => "a NumPy array",
            Self::Pleach => "a Pleach file",
        }
    }

    /// What to do with it where it cannot be read as it is.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::Gzip => "decompress it first, as with gzip -d",
            Self::Zstd => "decompress it first, as with zstd -d",
            Self::Bzip2 => "decompress it first, as with bzip2 -d",
            Self::Xz => "decompress it first, as with xz -d",
            Self::Lz4 => "decompress it first, as with lz4 -d",
            Self::Compress => "decompress it first, as with gzip -d",
            Self::Zip => "unpack it first, or save the sheet as CSV",
            Self::Parquet => "give --format parquet",
            Self::Arrow => "give --format arrow",
            Self::Npy => "give --format npy",
            Self::Pleach => "export it first, as with pleach export -o t.csv",
        }
    }

    /// What the file at `path` shows, if it is a regular file that can be read.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
        let mut head = Vec::new();
        file.take(MARK_BYTES as u64).read_to_end(&mut head).ok()?;
        Self::of(&head)
    }
}

/// Whether more bytes may show what `head` does not.
fn may_be_more(head: &[u8]) -> bool {
    let skipped: &[u8] = &[head.first().copied().unwrap_or(0), 0x2a, 0x4d, 0x18];
    let marks = MARKS.iter().map(|(mark, _)| *mark).chain(BYTE_ORDERS);
    let mut marks = marks.chain(std::iter::once(skipped).filter(|mark| matches!(mark[0], 0x50..=0x5f)));
    marks.any(|mark| head.len() < mark.len() && matches(head, mark))
}

/// What was wrong with a packed stream: our sentence for the libraries' errors.
#[derive(Debug)]
struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// What is known of the bytes below a text.
#[derive(Debug, Default)]
struct Below {
    taken: AtomicU64,
    failed: AtomicBool,
}

/// The bytes below a text, counted. So an error of theirs is told from one of what unpacks them.
struct Counted {
    stream: Box<dyn Read + Send>,
    below: Arc<Below>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(out) {
                Ok(bytes) => {
                    self.below.taken.fetch_add(bytes as u64, Ordering::Relaxed);
                    return Ok(bytes);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.below.failed.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    }
}

/// Text, a piece at a time.
pub struct TextReader {
    /// What was read and not handed out.
    head: Vec<u8>,
    used: usize,
    rest: Box<dyn Read + Send>,
    at_end: bool,
    /// An error that came behind bytes which were handed out first.
    error: Option<io::Error>,
    below: Arc<Below>,
    packed: Option<Content>,
    /// Lines end in carriage returns alone.
    returns: bool,
    quotes: bool,
    /// In quotes, where that matters.
    quoted: bool,
}

/// Opens text. `input` stands for it in messages.
///
/// Reads as far as the end of the first line, and no further than one read after it.
///
/// # Errors
/// What cannot be read, is packed in a way that is not unpacked, or is no text.
pub fn open(input: &str, stream: Box<dyn Read + Send>, text: Use) -> Result<TextReader, SourceError> {
    let below = Arc::new(Below::default());
    let rest = Box::new(Counted { stream, below: Arc::clone(&below) });
    let mut reader = TextReader {
        head: Vec::new(),
        used: 0,
        rest,
        at_end: false,
        error: None,
        below,
        packed: None,
        returns: false,
        quotes: text == Use::Csv,
        quoted: false,
    };
    reader.start(|head| !may_be_more(head)).map_err(|error| failed(input, "", error))?;
    if let Some(content @ (Content::Gzip | Content::Zstd)) = Content::of(&reader.head) {
        reader.unpack(content).map_err(|error| failed(input, "", error))?;
        reader.start(|head| !may_be_more(head)).map_err(|error| failed(input, "", error))?;
    }
    if let Some(content) = Content::of(&reader.head) {
        let twice = if reader.packed.is_some() && content.is_packed() { " once more" } else { "" };
        let advice = match text {
            Use::Lines if !content.is_packed() => "give text, one a line",
            _ => content.advice(),
        };
        return Err(problem(input, "", format!("it is {}{twice} and no text: {advice}", content.name())));
    }
    if reader.head.starts_with(BYTE_ORDERS[1]) || reader.head.starts_with(BYTE_ORDERS[2]) {
        return Err(problem(input, "", "it is UTF-16: convert it to UTF-8"));
    }
    if reader.head.starts_with(BYTE_ORDERS[0]) {
        reader.used = BYTE_ORDERS[0].len();
    }
    let (start, quotes) = (reader.used, reader.quotes);
    let has_end = |head: &[u8]| head.len() > HEAD_BYTES_MAX || first_end(&head[start..], quotes).is_some();
    reader.start(has_end).map_err(|error| failed(input, "", error))?;
    reader.returns = match first_end(&reader.head[start..], quotes) {
        Some(returns) => returns,
        // A carriage return that nothing follows.
        None => reader.at_end && reader.head.ends_with(b"\r") && !open_quote(&reader.head[start..], quotes),
    };
    if reader.packed.is_some() && reader.head.get(257..262) == Some(b"ustar") {
        return Err(problem(input, "", "it is a compressed tar archive and no text: unpack it first"));
    }
    Ok(reader)
}

/// Whether the first line ends in a carriage return alone; `None` if its end is not there.
fn first_end(text: &[u8], quotes: bool) -> Option<bool> {
    let mut quoted = false;
    let ends = |&byte: &u8| {
        quoted ^= quotes && byte == b'"';
        !quoted && matches!(byte, b'\n' | b'\r')
    };
    let at = text.iter().position(ends)?;
    if text[at] == b'\n' { Some(false) } else { text.get(at + 1).map(|&next| next != b'\n') }
}

fn open_quote(text: &[u8], quotes: bool) -> bool {
    quotes && text.iter().filter(|&&byte| byte == b'"').count() % 2 == 1
}

impl TextReader {
    /// Reads into the head until `enough` of it is there, or the end is.
    fn start(&mut self, enough: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        while !self.at_end && self.error.is_none() && !enough(&self.head) {
            let length = self.head.len();
            self.head.resize(length + HEAD_BYTES, 0);
            let read = self.rest.read(&mut self.head[length..]);
            self.head.truncate(length + read.as_ref().map_or(0, |&bytes| bytes));
            match read {
                Ok(bytes) => self.at_end = bytes == 0,
                // What came before it is a head, if a short one.
                Err(error) if length > 0 => {
                    self.error = Some(self.explained(error));
                    return Ok(());
                }
                Err(error) => return Err(self.explained(error)),
            }
        }
        Ok(())
    }

    /// Puts a decoder between the text and its bytes.
    fn unpack(&mut self, content: Content) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let head = Cursor::new(std::mem::take(&mut self.head));
        let rest = std::mem::replace(&mut self.rest, Box::new(io::empty()));
        let bytes: BufReader<Chain<_, _>> = BufReader::with_capacity(PACKED_BYTES, head.chain(rest));
        self.rest = match content {
            Content::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(bytes)?),
            _ => Box::new(MultiGzDecoder::new(bytes)),
        };
        self.at_end = false;
        self.packed = Some(content);
        Ok(())
    }

    /// Bytes that were taken from below, before they were unpacked; at the end, all of them.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.below.taken.load(Ordering::Relaxed)
    }

    /// Whether the text is unpacked, and so longer than what is taken.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.packed.is_some()
    }

    /// An error of an unpacker in our words; one of the system as it is.
    fn explained(&self, error: io::Error) -> io::Error {
        let Some(content) = self.packed.filter(|_| !self.below.failed.load(Ordering::Relaxed)) else {
            return error;
        };
        let name = if content == Content::Zstd { "zstd" } else { "gzip" };
        let text = match error.kind() {
            ErrorKind::UnexpectedEof => format!("its {name} stream is cut off: get the whole of it"),
            _ if error.to_string().contains("too much memory") => {
                format!(
                    "its {name} stream needs more than 128 MiB: decompress it first, as with {name} -d --long=31"
                )
            }
            _ => format!("its {name} stream is damaged: get it once more"),
        };
        io::Error::other(Fault(text))
    }

    /// Reads until `out` is full or the text ends; the bytes read, and whether it ended. An error that comes
    /// behind some bytes is returned by the next call.
    pub(super) fn fill(&mut self, out: &mut [u8]) -> io::Result<(usize, bool)> {
        let mut filled = 0;
        while filled < out.len() {
            match self.read(&mut out[filled..]) {
                Ok(0) => return Ok((filled, true)),
                Ok(bytes) => filled += bytes,
                Err(error) if filled > 0 => {
                    self.error = Some(error);
                    return Ok((filled, false));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((filled, false))
    }

    /// Makes line feeds of line ends that are carriage returns, and the other way round, outside quotes.
    fn turn(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            match *byte {
                b'"' if self.quotes => self.quoted = !self.quoted,
                b'\r' if !self.quoted => *byte = b'\n',
                b'\n' if !self.quoted => *byte = b'\r',
                _ => {}
            }
        }
    }
}

impl Read for TextReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let head = &self.head[self.used..];
        let bytes = if !head.is_empty() {
            let bytes = head.len().min(out.len());
            out[..bytes].copy_from_slice(&head[..bytes]);
            self.used += bytes;
            if self.used == self.head.len() {
                (self.head, self.used) = (Vec::new(), 0);
            }
            bytes
        } else if let Some(error) = self.error.take() {
            return Err(error);
        } else if self.at_end || out.is_empty() {
            0
        } else {
            let bytes = self.rest.read(out).map_err(|error| self.explained(error))?;
            self.at_end = bytes == 0;
            bytes
        };
        if self.returns {
            self.turn(&mut out[..bytes]);
        }
        Ok(bytes)
    }
}

/// The error of a read, behind `place`: what is wrong with a packed stream is damage of the input, all else an
/// error of the system.
#[must_use]
pub fn failed(input: &str, place: impl Into<String>, error: io::Error) -> SourceError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
        Some(fault) => problem(input, place, fault.to_string()),
        None => caused(input, place, "cannot be read", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_what_it_is() {
        for (mark, content) in MARKS {
            let mut head = mark.to_vec();
            if content == Content::Bzip2 {
                head[3] = b'9';
            }
            assert_eq!(Content::of(&head), Some(content));
            for length in 1..head.len() {
                let is_known = Content::of(&head[..length]);
                assert!(is_known.is_some() || may_be_more(&head[..length]), "{content:?} {length}");
            }
            assert!(head.len() <= MARK_BYTES);
        }
        assert_eq!(Content::of(b"\x5a\x2a\x4d\x18"), Some(Content::Zstd));
        for text in [&b"PAR1,v\n"[..], b"BZh,v\n", b"PKG,v", b"P", b"BZh1\n", b"id,v", b"", b"Z\n"] {
            assert_eq!(Content::of(text), None);
        }
        // Whoever types a key is not asked for more.
        for text in [&b"1\n"[..], b"PAR1\n", b"BZh\n", b"BZh1\n", b"P\n", b"Z\n"] {
            assert!(!may_be_more(text), "{text:?}");
        }
    }

    #[test]
    fn the_first_line_says_how_lines_end() {
        for (text, quotes, returns) in [
            (&b"a\nb\r"[..], true, Some(false)),
            (b"a\r\nb\r", true, Some(false)),
            (b"a\rb\n", true, Some(true)),
            (b"a\r", true, None),
            (b"a", true, None),
            (b"\"a\r\",b\n", true, Some(false)),
            (b"\"a\n\"\"\n\",b\r1", true, Some(true)),
            (b"\"a\r\",b\n", false, Some(true)),
        ] {
            assert_eq!(first_end(text, quotes), returns, "{text:?}");
        }
    }
}
