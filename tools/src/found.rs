//! A file as it is found: read by `pread`, never mapped, and possibly damaged, truncated or foreign.

use crate::failure::Failure;
use crate::message::Message;
use crate::render::text::counted;
use pleach::Finding;
use pleach_format::superblock::SUPERBLOCK_BYTES;
use pleach_format::version::MAGIC;
use pleach_format::view::{CLOSING_BYTES, HEAD_BYTES, through_copies};
use pleach_format::{FormatError, Header};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Describes the damage of a file with a foreign head, if its end is that of a Pleach file.
pub fn damage_of(path: &Path) -> Option<Message> {
    let found = Found::read(path).ok()?;
    found.message().filter(|_| found.verdict() == Verdict::Damaged)
}

/// Contents of a file, as far as they can be read.
pub struct Found<'a> {
    pub path: &'a Path,
    pub file: File,
    pub inode: u64,
    pub file_bytes: u64,
    pub head: Vec<u8>,
    pub closing: Vec<u8>,
    /// The header; for a damaged file the one that its copies lead to, if one is whole.
    pub header: Option<Header>,
    pub problem: Option<FormatError>,
    /// True if a copy at the end differs from the head.
    pub closing_differs: bool,
    /// Findings of a check of every byte, if there was one.
    pub findings: Option<Vec<Finding>>,
}

/// State of a file as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Whole,
    Damaged,
    Foreign,
    Newer,
    Older,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Damaged => "damaged",
            Self::Foreign => "foreign",
            Self::Newer => "newer",
            Self::Older => "older",
        }
    }
}

impl<'a> Found<'a> {
    /// Reads head and end of a file.
    pub fn read(path: &'a Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| Failure::io("cannot open", path, &error))?;
        let failed = |error: io::Error| Failure::io("cannot read", path, &error);
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            let kind = if metadata.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput };
            return Err(failed(kind.into()));
        }
        let file_bytes = metadata.len();
        let head = read_at_most(&file, 0, HEAD_BYTES).map_err(failed)?;
        let closing_at = file_bytes.saturating_sub(CLOSING_BYTES as u64);
        let copies = read_at_most(&file, closing_at, CLOSING_BYTES).map_err(failed)?;
        let (header, problem) = match Header::parse(&head, file_bytes) {
            Ok(header) => (Some(header), None),
            Err(problem) => {
                let header = through_copies(&head, &copies, file_bytes).map(|(_, header)| header);
                (header, Some(problem))
            }
        };
        let (table, closing) = copies.split_at(copies.len().saturating_sub(SUPERBLOCK_BYTES));
        let differs =
            !head.starts_with(closing) || !head[SUPERBLOCK_BYTES.min(head.len())..].starts_with(table);
        let closing_differs = problem.is_none() && differs;
        let closing = closing.to_vec();
        let inode = metadata.ino();
        Ok(Self {
            path,
            file,
            inode,
            file_bytes,
            head,
            closing,
            header,
            problem,
            closing_differs,
            findings: None,
        })
    }

    pub fn verdict(&self) -> Verdict {
        match &self.problem {
            None if self.findings.as_ref().is_some_and(|findings| !findings.is_empty()) => Verdict::Damaged,
            None if self.closing_differs => Verdict::Damaged,
            None => Verdict::Whole,
            Some(problem) if problem.is_damage() => Verdict::Damaged,
            // The mark is only at the end: the beginning was overwritten.
            Some(FormatError::Foreign) if self.closing.starts_with(&MAGIC) && self.file_bytes > 4096 => {
                Verdict::Damaged
            }
            Some(FormatError::Foreign) => Verdict::Foreign,
            // Another version at the start and something else at the end: truncated, or damaged.
            Some(_) if !self.head.starts_with(&self.closing) => Verdict::Damaged,
            Some(FormatError::Version { found, reads }) if found < reads => Verdict::Older,
            Some(_) => Verdict::Newer,
        }
    }

    /// Returns the text of [`Found::message`].
    pub fn problem_text(&self) -> Option<String> {
        self.message().map(|message| message.to_string())
    }

    /// Returns what is wrong with the file.
    pub fn message(&self) -> Option<Message> {
        match (&self.problem, self.verdict()) {
            (Some(FormatError::Foreign), Verdict::Damaged) => {
                let what = "the first bytes are not those of a Pleach file, but the last are";
                Some(Message::new(what).advise("restore or rebuild it"))
            }
            (Some(problem), _) => Some(Message::of(problem)),
            (None, Verdict::Damaged) => {
                let message = match self.findings.as_deref() {
                    Some(findings) if !self.closing_differs => {
                        let count = counted(findings.len() as u64, "finding");
                        let first = findings.first().map_or(String::new(), ToString::to_string);
                        Message::new(format!("{count}, the first")).more(first)
                    }
                    _ => Message::new("the copies at the end differ from the head"),
                };
                Some(message.advise("run `pleach fsck`, restore or rebuild it"))
            }
            (None, _) => None,
        }
    }
}

/// Reads `length` bytes, or as many as there are.
pub fn read_at_most(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}
