//! The bytes of an input: a file or a stream.

use crate::content::{Content, MARK_BYTES, is_plain};
use crate::format::{FORMATS, Format, Types, alternatives};
use crate::packed::{Codec, Used, unpacked};
use crate::problem::{Fault, caused, fault, problem, unreadable};
use crate::text::failed;
use pleach_builder::SourceError;
use std::fs::File;
use std::io::{self, Read, Seek};

/// The bytes of an input.
pub(crate) enum Body {
    /// A regular file, which can seek, and its length.
    File(File, u64),
    /// Anything else; and how much is used of the compressed stream whose content it is, if it is one.
    Stream(Box<dyn Read + Send>, Option<Used>),
}

impl Body {
    /// Returns a stream, and its length if that is certain.
    pub(crate) fn into_stream(self) -> (Box<dyn Read + Send>, Option<u64>) {
        match self {
            Self::File(file, bytes) => (Box::new(file), Some(bytes)),
            Self::Stream(stream, _) => (stream, None),
        }
    }

    /// Returns the content of a stream that is compressed with `codec`.
    pub(crate) fn unpacked(self, input: &str, codec: Codec) -> Result<Self, SourceError> {
        let packed = self.into_stream().0;
        let (content, used) =
            unpacked(codec, Vec::new(), packed).map_err(|error| failed(input, "", error))?;
        Ok(Self::Stream(content, Some(used)))
    }

    /// Returns how much of a compressed stream is used; `None` if it is not compressed.
    pub(crate) fn used(&self) -> Option<Used> {
        match self {
            Self::File(..) => None,
            Self::Stream(_, used) => used.clone(),
        }
    }

    /// Returns `self`, unless its first bytes show a content other than `format`, if that has marks. If they are
    /// those of a compressed stream, returns its content.
    pub(crate) fn checked(self, input: &str, format: Format) -> Result<Self, SourceError> {
        if format.row().marks.is_empty() {
            return Ok(self);
        }
        let mut head = [0; MARK_BYTES];
        let (bytes, body) = match self {
            Self::File(mut file, bytes) => {
                let read = fill(&mut file, &mut head).map_err(|error| unreadable(input, "", error))?;
                file.rewind().map_err(|error| unreadable(input, "", error))?;
                (read, Self::File(file, bytes))
            }
            Self::Stream(mut stream, used) => {
                let read = fill(&mut *stream, &mut head).map_err(|error| failed(input, "", error))?;
                let first = io::Cursor::new(head[..read].to_vec());
                (read, Self::Stream(Box::new(first.chain(stream)), used))
            }
        };
        let (head, wanted) = (&head[..bytes], Content::Table(format));
        match Content::from_head(head) {
            // What is compressed twice is refused below.
            Some(Content::Codec(codec)) if body.used().is_none() => {
                body.unpacked(input, codec)?.checked(input, format)
            }
            Some(found) if found != wanted => {
                let text = fault(format!("it is {}, not {}", found.name(), wanted.name()), found.advice());
                Err(problem(input, "", text))
            }
            None if is_plain(head) => match format.row().not_text {
                Some(what) => {
                    let texts = FORMATS.iter().filter(|row| row.types == Types::Requested);
                    let texts = alternatives(texts.map(|row| row.name));
                    Err(problem(
                        input,
                        "",
                        fault(format!("{what}: it looks like text"), format!("give --format {texts}")),
                    ))
                }
                None => Ok(body),
            },
            _ => Ok(body),
        }
    }

    /// Returns a file that can seek: a stream is first copied to an unnamed temporary file.
    pub(crate) fn into_file(self, input: &str) -> Result<(File, u64), SourceError> {
        match self {
            Self::File(file, bytes) => Ok((file, bytes)),
            Self::Stream(mut stream, _) => {
                let not_copied = |error: io::Error| match error.get_ref() {
                    // A fault of a compressed stream.
                    Some(inner) if inner.is::<Fault>() => failed(input, "", error),
                    _ => caused(input, "", "cannot be copied to a temporary file", error),
                };
                let mut file = tempfile::tempfile().map_err(not_copied)?;
                let bytes = io::copy(&mut stream, &mut file).map_err(not_copied)?;
                file.rewind().map_err(not_copied)?;
                Ok((file, bytes))
            }
        }
    }
}

/// Reads until `buffer` is full or the input ends; returns the number of bytes read.
pub(crate) fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
