//! `pleach inspect`: a file as a labelled picture.
//!
//! The file is read by `pread` and never mapped (only `--mapping` maps, to show how). Numbers that do not
//! come from a checked header are shown as stored, with a remark if they look wrong. So damaged, truncated
//! and foreign files are shown too.
//!
//! The file id is a stored number: only a check of every byte shows whether it is that of the bytes, and
//! nothing here shows who wrote them.

mod document;
mod draw;
mod line;
mod mapping;
mod page;

use crate::cli::{Global, InspectArgs, Verify};
use crate::failure::{self, Code, ExitStatus, Failure};
use crate::meant::Meant;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::counted;
use crate::search;
use pleach::{Finding, FsckOptions};
use pleach_format::decode::{self, Field};
use pleach_format::meta::Meta;
use pleach_format::section::{TABLE_BYTES, TABLE_OFFSET, Tag};
use pleach_format::superblock::SUPERBLOCK_BYTES;
use pleach_format::version::MAGIC;
use pleach_format::view::{CLOSING_BYTES, HEAD_BYTES, through_copies};
use pleach_format::{FormatError, Header};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

pub fn run(args: &InspectArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let mut found = Found::read(&args.file)?;
    match (args.page, args.line, args.mapping) {
        (Some(page), _, _) => found.show_page(page, global),
        (None, Some(line), _) => found.show_line(line, global),
        (None, None, true) => found.show_mapping(global),
        (None, None, false) => {
            found.verify(global)?;
            found.show(global)
        }
    }
}

/// Maximum size of files that are verified in full, unless `--verify` specifies otherwise: this takes almost
/// no time.
const VERIFIED_BYTES_MAX: u64 = 64 << 20;

/// Describes the damage of a file with a foreign head, if its end is that of a Pleach file.
pub fn damage_of(path: &Path) -> Option<String> {
    let found = Found::read(path).ok()?;
    found.problem_text().filter(|_| found.verdict() == Verdict::Damaged)
}

/// Contents of a file, as far as they can be read.
struct Found<'a> {
    path: &'a Path,
    file: File,
    inode: u64,
    file_bytes: u64,
    head: Vec<u8>,
    closing: Vec<u8>,
    /// The header; for a damaged file the one that its copies lead to, if one is whole.
    header: Option<Header>,
    problem: Option<FormatError>,
    /// True if a copy at the end differs from the head.
    closing_differs: bool,
    /// Findings of a check of every byte, if there was one.
    findings: Option<Vec<Finding>>,
}

/// State of a file as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Whole,
    Damaged,
    Foreign,
    Newer,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Damaged => "damaged",
            Self::Foreign => "foreign",
            Self::Newer => "newer",
        }
    }
}

impl<'a> Found<'a> {
    fn read(path: &'a Path) -> Result<Self, Failure> {
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

    /// Checks every byte, if requested or fast: without it, the file id is only a stored number.
    fn verify(&mut self, global: &Global) -> Result<(), Failure> {
        let is_wanted = match global.verify {
            None => self.file_bytes <= VERIFIED_BYTES_MAX,
            Some(verify) => verify == Verify::Full,
        };
        if self.verdict() != Verdict::Whole || !is_wanted {
            return Ok(());
        }
        let progress = Progress::new(global);
        let watch = |done: u64, total: u64| {
            progress.show("checking", done, Some(total));
            !progress.is_interrupted()
        };
        let options = FsckOptions { threads: 0, progress: Some(&watch) };
        let report = pleach::fsck_file(&self.file, &options)
            .map_err(|error| Failure::io("cannot read", self.path, &error))?;
        if report.cancelled {
            return Err(Failure::Interrupted);
        }
        self.findings = Some(report.findings);
        Ok(())
    }

    /// Returns true if the file id was computed from the bytes and equals the stored one.
    fn is_id_verified(&self) -> bool {
        self.findings.as_ref().is_some_and(Vec::is_empty)
    }

    fn verdict(&self) -> Verdict {
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
            Some(_) => Verdict::Newer,
        }
    }

    fn problem_text(&self) -> Option<String> {
        match (&self.problem, self.verdict()) {
            (Some(FormatError::Foreign), Verdict::Damaged) => Some(
                "the first bytes are not those of a Pleach file, but the last are: restore or rebuild it"
                    .to_owned(),
            ),
            (Some(problem), _) => Some(problem.to_string()),
            (None, Verdict::Damaged) if !self.closing_differs => {
                let findings = self.findings.iter().flatten();
                let (count, first) = (findings.clone().count() as u64, findings.clone().next());
                let first = first.map_or(String::new(), ToString::to_string);
                let count = counted(count, "finding");
                Some(format!("{count}, the first: {first}: run `pleach fsck`, restore or rebuild it"))
            }
            (None, Verdict::Damaged) => Some(
                "the copies at the end differ from the head: run `pleach fsck`, restore or rebuild it"
                    .to_owned(),
            ),
            (None, _) => None,
        }
    }

    /// Returns the status: 4 for damage; 8 for foreign and newer files, with their line on standard error.
    fn status(&self) -> Result<ExitStatus, Failure> {
        match self.verdict() {
            Verdict::Whole => Ok(ExitStatus::Success),
            Verdict::Damaged => Ok(ExitStatus::Damage),
            Verdict::Foreign | Verdict::Newer => {
                let foreign = FormatError::Foreign;
                Err(search::refused(self.path, self.problem.as_ref().unwrap_or(&foreign)))
            }
        }
    }

    /// Returns the header of a file that must be whole.
    fn whole(&self) -> Result<&Header, Failure> {
        if let (Verdict::Whole, Some(header)) = (self.verdict(), &self.header) {
            return Ok(header);
        }
        match (self.verdict(), &self.problem) {
            (Verdict::Foreign | Verdict::Newer, Some(problem)) => Err(search::refused(self.path, problem)),
            _ => {
                let text = self.problem_text().unwrap_or_default();
                Err(search::placed_as(Code::Damaged, &text, self.path))
            }
        }
    }

    /// Returns the column names; empty if they cannot be read.
    fn meta(&self, header: &Header) -> Meta {
        let Some(section) = header.section(Tag::META) else { return Meta::default() };
        // A forged length must not become an allocation: the section holds only four texts.
        let length = section.entry.length.get().min(1 << 20) as usize;
        let bytes = read_at_most(&self.file, section.offset(), length).unwrap_or_default();
        Meta::decode(&bytes)
    }

    /// Returns the logical types of keys and values, if they can be read and are to be shown.
    fn meant(&self, header: &Header, global: &Global) -> Meant {
        if global.raw_values {
            return Meant::default();
        }
        let meta = self.meta(header);
        Meant::new((header.key_type, &meta.key_logical), (header.value_type, &meta.value_logical))
    }

    /// Returns the fields of the first superblock and of the section table, with those of the closing one
    /// that differ.
    fn fields(&self) -> Vec<Field> {
        let mut fields = decode::superblock(&self.head, 0);
        if let Some(table) = self.head.get(TABLE_OFFSET as usize..) {
            let stored = self.header.as_ref().map(|header| header.superblock.table_crc.get());
            let table = &table[..table.len().min(TABLE_BYTES)];
            fields.extend(decode::table(table, stored).0);
        }
        if self.closing.starts_with(&MAGIC) && self.file_bytes > SUPERBLOCK_BYTES as u64 {
            let at = self.file_bytes - SUPERBLOCK_BYTES as u64;
            let first = decode::superblock(&self.head, 0);
            for mut field in decode::superblock(&self.closing, at) {
                // A faithful copy is not shown.
                let differs =
                    !first.iter().any(|other| other.name == field.name && other.value == field.value);
                if differs && field.remark.is_none() {
                    field.remark = Some("differs from the first superblock".to_owned());
                }
                if field.remark.is_some() {
                    field.name.insert_str(0, "closing ");
                    fields.push(field);
                }
            }
        }
        fields
    }

    fn show(&self, global: &Global) -> Result<ExitStatus, Failure> {
        if global.json {
            json::print(self.document(global))?;
        } else {
            let mut text = String::new();
            self.draw(global, &mut text);
            failure::print(text.as_bytes())?;
        }
        self.status()
    }
}

/// Reads `length` bytes, or as many as there are.
fn read_at_most(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
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
