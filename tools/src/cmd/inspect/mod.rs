//! `pleach inspect`: a file as a labelled picture.
//!
//! The file is read by `pread` and never mapped (only `--mapping` maps, to show how), and every
//! number that does not come from a checked header is shown as it stands, with a remark where it
//! looks wrong. So damaged, truncated and foreign files are shown too. The file id is a number that stands in the file:
//! only a check of every byte says whether it is that of the bytes, and nothing says here who wrote them.

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

/// Files of up to so many bytes are read as a whole, unless `--verify` says otherwise: that takes no time to speak of.
const VERIFIED_BYTES_MAX: u64 = 64 << 20;

/// What is wrong with a file whose head is not ours, if it is ours by its end.
pub fn damage_of(path: &Path) -> Option<String> {
    let found = Found::read(path).ok()?;
    found.problem_text().filter(|_| found.verdict() == Verdict::Damaged)
}

/// What stands in a file, as far as it can be read.
struct Found<'a> {
    path: &'a Path,
    file: File,
    inode: u64,
    file_bytes: u64,
    head: Vec<u8>,
    closing: Vec<u8>,
    /// The header; of a damaged file the one that its copies lead to, if one is whole.
    header: Option<Header>,
    problem: Option<FormatError>,
    /// A copy at the end differs from the head.
    closing_differs: bool,
    /// What a check of every byte has found, if there was one.
    findings: Option<Vec<Finding>>,
}

/// What can be said about a file as a whole.
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

    /// Checks every byte, if that is asked for, or soon done: only then the file id is more than what somebody has
    /// written there.
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

    /// Whether the file id was computed from the bytes, and is what is stored.
    fn is_id_verified(&self) -> bool {
        self.findings.as_ref().is_some_and(Vec::is_empty)
    }

    fn verdict(&self) -> Verdict {
        match &self.problem {
            None if self.findings.as_ref().is_some_and(|findings| !findings.is_empty()) => Verdict::Damaged,
            None if self.closing_differs => Verdict::Damaged,
            None => Verdict::Whole,
            Some(problem) if problem.is_damage() => Verdict::Damaged,
            // Our mark at the end alone: the beginning was overwritten.
            Some(FormatError::Foreign) if self.closing.starts_with(&MAGIC) && self.file_bytes > 4096 => {
                Verdict::Damaged
            }
            Some(FormatError::Foreign) => Verdict::Foreign,
            // Another version at the start and something else at the end: cut off, or damaged.
            Some(_) if !self.head.starts_with(&self.closing) => Verdict::Damaged,
            Some(_) => Verdict::Newer,
        }
    }

    fn problem_text(&self) -> Option<String> {
        match (&self.problem, self.verdict()) {
            (Some(FormatError::Foreign), Verdict::Damaged) => {
                Some("the first bytes are not ours, the last are: restore or rebuild it".to_owned())
            }
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

    /// Damage is 4; foreign and newer files are 8, with their line on standard error.
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

    /// The header of a file that is needed whole.
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

    /// Column names; empty if they cannot be read.
    fn meta(&self, header: &Header) -> Meta {
        let Some(section) = header.section(Tag::META) else { return Meta::default() };
        // A forged length must not become an allocation: four texts are all there is.
        let length = section.entry.length.get().min(1 << 20) as usize;
        let bytes = read_at_most(&self.file, section.offset(), length).unwrap_or_default();
        Meta::decode(&bytes)
    }

    /// What keys and values mean, if that can be read and is to be shown.
    fn meant(&self, header: &Header, global: &Global) -> Meant {
        if global.raw_values {
            return Meant::default();
        }
        let meta = self.meta(header);
        Meant::new((header.key_type, &meta.key_logical), (header.value_type, &meta.value_logical))
    }

    /// Fields of the first superblock and of the section table, and where the closing one differs.
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
                // Of a faithful copy nothing is shown.
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

/// Reads `length` bytes, or what is there of them.
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
