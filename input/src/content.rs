//! Recognition of files by their first bytes.

use crate::format::{FORMATS, Format};
use crate::packed::{CODECS, Codec};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Number of bytes that identify the content of a file.
pub(crate) const MARK_BYTES: usize = 12;

/// Content of a file, identified by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Compressed; decompressed where it is read.
    Codec(Codec),
    /// Compressed or packed in a way that is not read.
    Packed(&'static Packed),
    /// A table of a format that has marks.
    Table(Format),
    /// A Pleach file.
    Pleach,
}

/// A kind of compressed file or archive that is not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    marks: &'static [&'static [u8]],
    name: &'static str,
    advice: &'static str,
}

const PLEACH: &[u8] = b"\x89PLEACH\r\n\x1a\n";

static PACKED: [Packed; 2] = [
    Packed {
        marks: &[b"\x1f\x9d"],
        name: "compressed with compress",
        advice: "decompress it first, for example with gzip -d",
    },
    // Excel workbooks are archives, too.
    Packed {
        marks: &[b"PK\x03\x04", b"PK\x05\x06"],
        name: "a ZIP archive (or an Excel workbook)",
        advice: "unpack it first, or save the sheet as CSV",
    },
];

/// Returns the first bytes of each kind of content. [`matches`] distinguishes the marks of bzip2 and Parquet
/// from text that begins in the same way.
fn marks() -> impl Iterator<Item = (&'static [u8], Content)> {
    let codecs =
        CODECS.iter().flat_map(|row| row.marks.iter().map(|&mark| (mark, Content::Codec(row.codec))));
    let packed =
        PACKED.iter().flat_map(|row| row.marks.iter().map(move |&mark| (mark, Content::Packed(row))));
    let tables =
        FORMATS.iter().flat_map(|row| row.marks.iter().map(|&mark| (mark, Content::Table(row.format))));
    std::iter::once((PLEACH, Content::Pleach)).chain(codecs).chain(packed).chain(tables)
}

/// Byte order marks: that of UTF-8, and those of text in wider units.
pub(crate) const BYTE_ORDERS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];

/// Returns true if `head` and `mark` agree as far as both go.
fn matches(head: &[u8], mark: &[u8]) -> bool {
    // A stream of bzip2 has one of nine levels.
    let level = mark.starts_with(b"BZh");
    head.iter()
        .zip(mark)
        .all(|(byte, wanted)| byte == wanted || (level && *wanted == 0 && byte.is_ascii_digit()))
}

impl Content {
    /// Identifies the content by `head`, the first bytes of a file. `None` for text, and for all else without
    /// a mark.
    pub(crate) fn from_head(head: &[u8]) -> Option<Self> {
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] = head {
            return Some(Self::Codec(Codec::Zstd));
        }
        let is = |mark: &[u8]| head.len() >= mark.len() && matches(head, mark);
        marks().find(|(mark, _)| is(mark)).map(|(_, content)| content)
    }

    /// Identifies the content of the file at `path`, if it is a regular file that can be read.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        // Opening a pipe would wait for its writer.
        if !path.is_file() {
            return None;
        }
        let file = File::open(path).ok()?;
        let mut head = Vec::new();
        file.take(MARK_BYTES as u64).read_to_end(&mut head).ok()?;
        Self::from_head(&head)
    }

    /// Returns true if the content is compressed.
    pub(crate) fn is_packed(self) -> bool {
        matches!(self, Self::Codec(_) | Self::Packed(_))
    }

    /// Returns the description of the content, for a sentence.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Codec(codec) => format!("compressed with {}", codec.row().name),
            Self::Packed(row) => row.name.to_owned(),
            Self::Table(format) => format.row().noun.to_owned(),
            Self::Pleach => "a Pleach file".to_owned(),
        }
    }

    /// Returns the advice for content that cannot be read as it is.
    pub(crate) fn advice(self) -> String {
        match self {
            Self::Codec(codec) => format!("decompress it first, for example with {} -d", codec.row().name),
            Self::Packed(row) => row.advice.to_owned(),
            Self::Table(format) => format!("give --format {}", format.row().name),
            Self::Pleach => "export it first, for example with pleach export -o t.csv".to_owned(),
        }
    }
}

/// Describes the probable content of a file with an unknown extension, and says what to do; `None` if its
/// first bytes do not show it.
#[must_use]
pub fn looks_like(path: &Path) -> Option<(String, String)> {
    let content = Content::from_path(path)?;
    let noun = content.name();
    let noun = noun.strip_prefix("compressed with ").unwrap_or(&noun);
    let advice = match content {
        Content::Codec(_) => "give the --format of its content, such as csv".to_owned(),
        content => content.advice(),
    };
    Some((format!("it looks like {noun}"), advice))
}

/// Returns true if more bytes could identify what `head` does not.
pub(crate) fn may_be_more(head: &[u8]) -> bool {
    let skipped: &[u8] = &[head.first().copied().unwrap_or(0), 0x2a, 0x4d, 0x18];
    let marks = marks().map(|(mark, _)| mark).chain(BYTE_ORDERS);
    let mut marks = marks.chain(std::iter::once(skipped).filter(|mark| matches!(mark[0], 0x50..=0x5f)));
    marks.any(|mark| head.len() < mark.len() && matches(head, mark))
}

/// Returns true if the first bytes of a file are plain text, and no mark or the beginning of one.
pub(crate) fn is_plain(head: &[u8]) -> bool {
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
    !head.is_empty() && head.iter().all(is_text) && !may_be_more(head) && !head.starts_with(b"PAR1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_what_it_is() {
        for (mark, content) in marks() {
            let mut head = mark.to_vec();
            if head.starts_with(b"BZh") {
                head[3] = b'9';
            }
            assert_eq!(Content::from_head(&head), Some(content));
            for length in 1..head.len() {
                let is_known = Content::from_head(&head[..length]);
                assert!(is_known.is_some() || may_be_more(&head[..length]), "{content:?} {length}");
            }
            assert!(head.len() <= MARK_BYTES);
        }
        assert_eq!(Content::from_head(b"\x5a\x2a\x4d\x18"), Some(Content::Codec(Codec::Zstd)));
        for text in [&b"PAR1,v\n"[..], b"BZh,v\n", b"PKG,v", b"P", b"BZh1\n", b"id,v", b"", b"Z\n"] {
            assert_eq!(Content::from_head(text), None);
        }
        // A user who types a key is not asked for more.
        for text in [&b"1\n"[..], b"PAR1\n", b"BZh\n", b"BZh1\n", b"P\n", b"Z\n"] {
            assert!(!may_be_more(text), "{text:?}");
        }
    }
}
