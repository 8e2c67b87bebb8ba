//! Text input: decompressed, without a byte order mark, in lines that end in LF or CRLF.
//!
//! [`open`] is used for all text: tables, changes and lists of keys, from files, pipes and standard input:
//!
//! * Compressed input, in one or several parts, is decompressed as it is read, whatever its name
//!   (`packed.rs`). Archives and binary files are refused with the name of their format.
//! * A byte order mark is dropped, UTF-16 is refused.
//! * If the first line ends in a carriage return alone, as old Macs and Excel write it, so do all lines, and
//!   the reader returns line feeds instead. Carriage returns and line feeds inside quotes are kept. A line
//!   feed in such a text, or a carriage return without a line feed in any other, is not a line end: the
//!   caller refuses it ([`RETURN`]).

use crate::content::{BYTE_ORDERS, Content, may_be_more};
use crate::packed::{Codec, unpacked};
use crate::problem::{Fault, fault, problem, unreadable};
use pleach_builder::SourceError;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Message for a carriage return that is neither a line end nor in quotes.
pub const RETURN: &str = "carriage return without a line feed: use the same line end in all rows";

/// Bytes read at a time in search of the first line end.
const HEAD_BYTES: usize = 64 << 10;
/// If no line has ended within this number of bytes, carriage returns are not line ends.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// Use of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A table whose fields may be quoted.
    Csv,
    /// A table without quotes.
    Tsv,
    /// A list with one element per line.
    Lines,
}

/// The bytes from which a text is read, counted.
struct Counted {
    stream: Box<dyn Read + Send>,
    taken: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(out) {
                Ok(bytes) => {
                    self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
                    return Ok(bytes);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A reader of text, a piece at a time.
pub struct TextReader {
    /// Bytes that were read and not returned yet.
    head: Vec<u8>,
    used: usize,
    rest: Box<dyn Read + Send>,
    at_end: bool,
    /// An error after bytes that are returned first.
    error: Option<io::Error>,
    taken: Arc<AtomicU64>,
    is_packed: bool,
    /// Lines end in carriage returns alone.
    returns: bool,
    quotes: bool,
    /// True if the position is inside quotes; `None` if quotes do not matter.
    quoted: bool,
}

/// Opens text; messages call it `input`.
///
/// Reads up to the end of the first line, and at most one read beyond it.
///
/// # Errors
/// [`SourceError`] if the stream cannot be read, its compression is not supported, or it is not text.
pub fn open(input: &str, stream: Box<dyn Read + Send>, text: Use) -> Result<TextReader, SourceError> {
    let taken = Arc::new(AtomicU64::new(0));
    let rest = Box::new(Counted { stream, taken: Arc::clone(&taken) });
    let mut reader = TextReader {
        head: Vec::new(),
        used: 0,
        rest,
        at_end: false,
        error: None,
        taken,
        is_packed: false,
        returns: false,
        quotes: text == Use::Csv,
        quoted: false,
    };
    reader.start(|head| !may_be_more(head)).map_err(|error| failed(input, "", error))?;
    if let Some(Content::Codec(codec)) = Content::from_head(&reader.head) {
        reader.unpack(codec).map_err(|error| failed(input, "", error))?;
        reader.start(|head| !may_be_more(head)).map_err(|error| failed(input, "", error))?;
    }
    if let Some(content) = Content::from_head(&reader.head) {
        let twice = if reader.is_packed && content.is_packed() { " a second time" } else { "" };
        let advice = match text {
            Use::Lines if !content.is_packed() => "give text with one key per line".to_owned(),
            _ => content.advice(),
        };
        return Err(problem(input, "", fault(format!("it is {}{twice}, not text", content.name()), advice)));
    }
    if reader.head.starts_with(BYTE_ORDERS[1]) || reader.head.starts_with(BYTE_ORDERS[2]) {
        return Err(problem(input, "", "it is UTF-16: convert it to UTF-8"));
    }
    if reader.head.starts_with(BYTE_ORDERS[0]) {
        reader.used = BYTE_ORDERS[0].len();
    }
    // A mark that is not complete: its first letter is none of a text.
    let is_text = reader.head.first().is_none_or(u8::is_ascii_graphic);
    if reader.at_end && !is_text && may_be_more(&reader.head) {
        return Err(problem(input, "", "it ends within its first bytes: get the complete file"));
    }
    let (start, quotes) = (reader.used, reader.quotes);
    let has_end = |head: &[u8]| head.len() > HEAD_BYTES_MAX || first_end(&head[start..], quotes).is_some();
    reader.start(has_end).map_err(|error| failed(input, "", error))?;
    if matches!(reader.head[start..], [1..=255, 0, 1..=255, 0, ..] | [0, 1..=255, 0, 1..=255, ..]) {
        return Err(problem(input, "", "it is UTF-16: convert it to UTF-8"));
    }
    reader.returns = match first_end(&reader.head[start..], quotes) {
        Some(returns) => returns,
        // A carriage return at the very end.
        None => reader.at_end && reader.head.ends_with(b"\r") && !open_quote(&reader.head[start..], quotes),
    };
    if reader.is_packed && reader.head.get(257..262) == Some(b"ustar") {
        return Err(problem(input, "", "it is a compressed tar archive, not text: unpack it first"));
    }
    Ok(reader)
}

/// Returns true if the first line ends in a carriage return alone; `None` if its end was not found.
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
    /// Reads into the head until `enough` accepts it, or the text ends.
    fn start(&mut self, enough: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        while !self.at_end && self.error.is_none() && !enough(&self.head) {
            let length = self.head.len();
            self.head.resize(length + HEAD_BYTES, 0);
            let read = self.rest.read(&mut self.head[length..]);
            self.head.truncate(length + read.as_ref().map_or(0, |&bytes| bytes));
            match read {
                Ok(bytes) => self.at_end = bytes == 0,
                // The bytes before the error are a head, if a short one.
                Err(error) if length > 0 => {
                    self.error = Some(error);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Inserts a decoder between the text and its bytes.
    fn unpack(&mut self, codec: Codec) -> io::Result<()> {
        let head = std::mem::take(&mut self.head);
        let mut rest = std::mem::replace(&mut self.rest, Box::new(io::empty()));
        if let Some(error) = self.error.take() {
            // The decoder meets the error behind the bytes that came before it.
            rest = Box::new(Failing(Some(error)));
        }
        self.rest = unpacked(codec, head, rest)?.0;
        self.at_end = false;
        self.is_packed = true;
        Ok(())
    }

    /// Returns the number of bytes read so far, before decompression; at the end, all of them.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Returns true if the text is decompressed, and so longer than the bytes read.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.is_packed
    }

    /// Reads until `out` is full or the text ends. Returns the number of bytes read, and whether the text
    /// ended. An error after some bytes is returned by the next call.
    pub(crate) fn fill(&mut self, out: &mut [u8]) -> io::Result<(usize, bool)> {
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

    /// Exchanges carriage returns and line feeds outside quotes.
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

/// A stream that only fails.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _out: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
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
            let bytes = self.rest.read(out)?;
            self.at_end = bytes == 0;
            bytes
        };
        if self.returns {
            self.turn(&mut out[..bytes]);
        }
        Ok(bytes)
    }
}

/// Returns a whole number without its trailing `.0`: tables that lacked a number in some row write whole
/// numbers so. `None` if there is no point, or if nothing or anything but zeros follows it.
#[must_use]
pub fn whole(number: &[u8]) -> Option<&[u8]> {
    let point = number.iter().position(|&byte| byte == b'.')?;
    let (whole, zeros) = (&number[..point], &number[point + 1..]);
    (!zeros.is_empty() && zeros.iter().all(|&byte| byte == b'0')).then_some(whole)
}

/// Makes the error of a failed read at `place`: a fault of a compressed stream is damage of the input, any
/// other one is an error of the system.
#[must_use]
pub fn failed(input: &str, place: impl Into<String>, error: io::Error) -> SourceError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
        Some(fault) => problem(input, place, fault.clone()),
        None => unreadable(input, place, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
