//! Checks a whole file: every sum, then order, padding, separators and counts.
//!
//! The file is read in pieces and on all threads; it is never mapped and never written. One pass over the
//! tuple lines checks their sums, their order and the spine: the border after a line belongs to exactly one
//! separator of one level of the spine, which is checked against it. The checks of other sections read these
//! again, and compare them with the tuple lines.
//!
//! Broken rules are reported only if all sums are correct, since one damaged block can break many rules.

mod advice;
mod btree;
mod classic;
mod code;
mod columns;
mod frame;
mod grid;
mod harmonia;
mod intervals;
mod lines;
mod packed;
mod paged;
mod pieces;
#[cfg(test)]
mod tests;
mod text;
mod trie;
mod values;

pub use code::Code;
pub use pleach_pool as pool;

use pleach_format::Record;
use pleach_format::approximate::Approximate;
use pleach_format::checksum::{FileId, SUM_BLOCK_BYTES, SUM_BYTES, binding};
use pleach_format::layout::{LINE_BYTES, Level};
use pleach_format::line::Line;
use pleach_format::meta::{Meta, TEXT_BYTES_MAX};
use pleach_format::section::{Entry, SpineParameters, TABLE_BYTES, TABLE_OFFSET, Tag};
use pleach_format::spine::{self, Encoding};
use pleach_format::superblock::{SUPERBLOCK_BYTES, Superblock};
use pleach_format::version::APPROXIMATE;
use pleach_format::version::MAGIC;
use pleach_format::view::{CLOSING_BYTES, FILE_BYTES_MIN, HEAD_BYTES, Section, through_copies};
use pleach_format::{FormatError, Header, Logical, Meaning, offset_in};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Maximum number of threads, whatever the caller requests.
const THREADS_MAX: usize = 1024;

/// Maximum number of findings that are kept; further ones still count as damage.
const FINDINGS_MAX: usize = 1000;

/// State of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The file is intact, and all of its parts agree.
    Clean,
    /// The file is a Pleach file, and damaged.
    Damaged,
    /// The file is not a Pleach file.
    Foreign,
    /// The file is intact as far as can be checked, but of a newer version or with unknown features.
    Newer,
    /// The file is intact as far as can be checked, but of an older version: it must be upgraded or built again.
    Older,
}

/// A fault in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that is broken.
    pub code: Code,
    /// Section or structure that contains the fault.
    pub section: String,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Number of bytes affected.
    pub length: u64,
    /// Expected content.
    pub expected: String,
    /// Content found.
    pub found: String,
    /// Description, in one sentence.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} at byte {}: {}: expected {}, found {}",
            self.code, self.section, self.offset, self.text, self.expected, self.found
        )
    }
}

/// Result of [`fsck`].
#[derive(Clone, Debug)]
pub struct Report {
    /// State of the file.
    pub verdict: Verdict,
    /// Faults, in file order; at most 1000.
    pub findings: Vec<Finding>,
    /// Number of sum blocks that were checked.
    pub blocks: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Number of tuples, if the header could be read.
    pub tuples: Option<u64>,
    /// True if the progress function stopped the check.
    pub cancelled: bool,
}

/// Function that is called from time to time, from any thread, with the bytes done and the bytes in all. If
/// it returns `false`, the check stops.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) -> bool + Sync);

/// Options of a check.
#[derive(Clone, Copy, Default)]
pub struct FsckOptions<'a> {
    /// Number of threads; 0 uses those of the current rayon pool.
    pub threads: usize,
    /// Receives progress, and may stop the check.
    pub progress: Option<Progress<'a>>,
}

/// Source of the bytes.
trait ReadAt: Sync {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Announces that these bytes will be read soon.
    fn will_need(&self, _offset: u64, _bytes: u64) {}
}

impl ReadAt for File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }
    fn will_need(&self, offset: u64, bytes: u64) {
        advice::will_need(self, offset, bytes);
    }
}

impl ReadAt for &[u8] {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let range = usize::try_from(offset).ok().and_then(|at| self.get(at..)?.get(..buffer.len()));
        buffer.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Checks a whole file: reads all of it, some sections more than once, and writes nothing. Memory is a few
/// MiB per thread and, for compressed pages or a Harmonia tree, their records and child numbers; for a trie a byte
/// per node.
///
/// # Errors
/// An error means that the file could not be opened or read, that it is not a regular file, or that the
/// threads could not be started. Damage is not an error; it is in the [`Report`].
pub fn fsck(path: impl AsRef<Path>, options: &FsckOptions<'_>) -> io::Result<Report> {
    fsck_file(&File::open(path)?, options)
}

/// Checks a file that is already open, as [`fsck`] does.
///
/// # Errors
/// If the file cannot be read or is not a regular file, or if the threads cannot be started.
pub fn fsck_file(file: &File, options: &FsckOptions<'_>) -> io::Result<Report> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let bytes = metadata.len();
    let check = || Check::new(file, bytes, options.progress).run();
    match options.threads {
        0 => check(),
        threads => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.min(THREADS_MAX)).build();
            let pool = pool.map_err(|_| {
                let text =
                    format!("cannot start {threads} threads: give fewer, or raise the limit of processes");
                io::Error::other(format!("{text} (ulimit -u, the container's)"))
            })?;
            pool.install(check)
        }
    }
}

/// Returns all findings for a file in memory.
#[must_use]
pub fn check_bytes(bytes: &[u8]) -> Vec<Finding> {
    match Check::new(&bytes, bytes.len() as u64, None).run() {
        Ok(report) => report.findings,
        Err(error) => vec![Finding {
            code: Code::Length,
            section: "file".into(),
            offset: 0,
            length: bytes.len() as u64,
            expected: "readable bytes".into(),
            found: error.to_string(),
            text: "the file could not be read".into(),
        }],
    }
}

/// A check of sections of a file.
type SectionCheck<C> = fn(&C, &Header) -> io::Result<()>;

struct Check<'a, R> {
    source: &'a R,
    bytes: u64,
    progress: Option<Progress<'a>>,
    done: AtomicU64,
    blocks: AtomicU64,
    cancelled: AtomicBool,
    sums: Mutex<Vec<Finding>>,
    rules: Mutex<Vec<Finding>>,
}

fn add_finding(findings: &Mutex<Vec<Finding>>, finding: Finding) {
    let mut findings = findings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if findings.len() < FINDINGS_MAX {
        findings.push(finding);
    }
}

fn taken(findings: &Mutex<Vec<Finding>>) -> Vec<Finding> {
    let mut findings = findings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    findings.sort_by_key(|finding| finding.offset);
    std::mem::take(&mut findings)
}

/// Reads a little-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn header_finding(error: &FormatError) -> Finding {
    let (code, section, offset, length, expected, found) = match error {
        FormatError::Truncated { expected, found } | FormatError::Extended { expected, found } => (
            Code::Length,
            "file",
            *found.min(expected),
            found.abs_diff(*expected),
            format!("{expected} bytes"),
            format!("{found} bytes"),
        ),
        FormatError::Checksum { what, offset, expected, found } => (
            if *what == "superblock" { Code::Superblock } else { Code::Table },
            *what,
            *offset,
            4096,
            format!("sum {expected:08x}"),
            format!("sum {found:08x}"),
        ),
        FormatError::Corrupt { what, offset, rule, found } => {
            (Code::Header, *what, *offset, 8, rule.to_string(), found.to_string())
        }
        other => (
            Code::Header,
            "superblock",
            0,
            SUPERBLOCK_BYTES as u64,
            "our own version".into(),
            other.to_string(),
        ),
    };
    Finding { code, section: section.into(), offset, length, expected, found, text: error.to_string() }
}

impl<'a, R: ReadAt> Check<'a, R> {
    fn new(source: &'a R, bytes: u64, progress: Option<Progress<'a>>) -> Self {
        Self {
            source,
            bytes,
            progress,
            done: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            sums: Mutex::new(Vec::new()),
            rules: Mutex::new(Vec::new()),
        }
    }

    fn read(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.source.read_exact_at(&mut buffer, offset)?;
        Ok(buffer)
    }

    /// Passes bytes of the file to `take` in pieces, each a multiple of 4 bytes except the last.
    fn read_parts(&self, offset: u64, length: u64, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        for at in (0..length).step_by(pieces::PIECE_BYTES as usize) {
            take(&self.read(offset + at, (length - at).min(pieces::PIECE_BYTES))?);
        }
        Ok(())
    }

    fn report(self, verdict: Verdict, tuples: Option<u64>) -> Report {
        let mut findings = taken(&self.sums);
        let rules = taken(&self.rules);
        if findings.is_empty() {
            findings = rules;
        }
        let verdict =
            if verdict == Verdict::Clean && !findings.is_empty() { Verdict::Damaged } else { verdict };
        Report {
            verdict,
            findings,
            blocks: self.blocks.into_inner(),
            bytes: self.bytes,
            tuples,
            cancelled: self.cancelled.into_inner(),
        }
    }

    /// Checks that a copy at the end of the file equals the original at its beginning.
    fn check_copy(&self, code: Code, what: &str, first: &[u8], copy: &[u8], offset: u64) {
        let Some(at) = first.iter().zip(copy).position(|(a, b)| a != b) else { return };
        add_finding(
            &self.sums,
            Finding {
                code,
                section: format!("closing {what}"),
                offset: offset + at as u64,
                length: (copy.len() - at) as u64,
                expected: format!("{:02x}", first[at]),
                found: format!("{:02x}", copy[at]),
                text: format!("the closing {what} must equal the first"),
            },
        );
    }

    fn run(self) -> io::Result<Report> {
        pool::ready();
        let mut head = self.read(0, self.bytes.min(HEAD_BYTES as u64))?;
        let closing_at = self.bytes.saturating_sub(CLOSING_BYTES as u64);
        let closing = self.read(closing_at, self.bytes - closing_at)?;
        let superblock = &closing[closing.len().saturating_sub(SUPERBLOCK_BYTES)..];
        let ours_at_end = superblock.starts_with(&MAGIC) && self.bytes >= FILE_BYTES_MIN;

        let header = match Header::parse(&head, self.bytes) {
            Ok(header) => header,
            Err(FormatError::Foreign) if !ours_at_end => return Ok(self.report(Verdict::Foreign, None)),
            Err(error) => {
                let whole = self.bytes >= FILE_BYTES_MIN && head.starts_with(superblock);
                let finding = header_finding(&error);
                add_finding(&self.sums, finding);
                if !error.is_damage() && whole {
                    let is_older = matches!(error, FormatError::Version { found, reads } if found < reads);
                    let verdict = if is_older { Verdict::Older } else { Verdict::Newer };
                    return Ok(self.report(verdict, None));
                }
                // The copies may still give access to the rest, so that all damage is reported.
                let Some((repaired, header)) = through_copies(&head, &closing, self.bytes) else {
                    return Ok(self.report(Verdict::Damaged, None));
                };
                head = repaired;
                header
            }
        };
        let (first, second) = head.split_at(SUPERBLOCK_BYTES);
        let table = &closing[..TABLE_BYTES];
        let superblock_at = closing_at + TABLE_BYTES as u64;
        self.check_copy(Code::SuperblockCopy, "superblock", first, superblock, superblock_at);
        self.check_copy(Code::TableCopy, "section table", second, table, closing_at);
        self.check_frame(&header, &head)?;
        self.check_sums(&header)?;
        for (_, check) in Self::section_checks() {
            check(&self, &header)?;
        }
        let tuples = header.tuples;
        Ok(self.report(Verdict::Clean, Some(tuples)))
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of a finding")]
    fn rule(
        &self,
        code: Code,
        section: &str,
        offset: u64,
        length: u64,
        expected: impl ToString,
        found: impl ToString,
        text: &str,
    ) {
        add_finding(
            &self.rules,
            Finding {
                code,
                section: section.into(),
                offset,
                length,
                expected: expected.to_string(),
                found: found.to_string(),
                text: text.into(),
            },
        );
    }

    fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if let Some(progress) = self.progress
            && !progress(done.min(self.bytes), self.bytes)
        {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Checks the sums of every section except LINE, whose blocks are checked with its lines; then the file
    /// id.
    fn check_sums(&self, header: &Header) -> io::Result<()> {
        for section in &header.sections {
            let tag = section.entry.tag;
            let list_offset =
                if tag == Tag::SUM2 { section.offset() } else { section.entry.sums_offset.get() };
            let list_bytes = if tag == Tag::SUM2 { section.extent() } else { section.entry.sums_bytes() };
            let mut sum = crc32fast::Hasher::new();
            self.read_parts(list_offset, list_bytes, |list| sum.update(list))?;
            let (expected, found) = (section.entry.sums_crc.get(), sum.finalize());
            if expected != found {
                add_finding(
                    &self.sums,
                    Finding {
                        code: Code::Sums,
                        section: tag.to_string(),
                        offset: list_offset,
                        length: list_bytes,
                        expected: format!("sum {expected:08x}"),
                        found: format!("sum {found:08x}"),
                        text: "a list of sums must match the sum in the table".to_owned(),
                    },
                );
            }
        }
        let rest: Vec<&Section> = header
            .sections
            .iter()
            .filter(|section| section.entry.tag != Tag::SUM2 && section.entry.tag != Tag::LINE)
            .collect();
        for section in rest {
            self.pieces(section.offset(), section.extent(), (0, 0), |at, piece| {
                self.check_blocks(header, section, at, piece.bytes)?;
                self.check_padding(section, at, piece.bytes);
                Ok(())
            })?;
        }
        self.check_file_id(header)
    }

    /// Compares the blocks of a piece with their sums.
    fn check_blocks(&self, header: &Header, section: &Section, at: u64, bytes: &[u8]) -> io::Result<()> {
        let first = at / SUM_BLOCK_BYTES as u64;
        let blocks = bytes.len().div_ceil(SUM_BLOCK_BYTES);
        let list = section.entry.sums_offset.get() + first * SUM_BYTES as u64;
        let sums = self.read(list, (blocks * SUM_BYTES) as u64)?;
        let (sums, _) = sums.as_chunks::<SUM_BYTES>();
        for (i, (block, &stored)) in bytes.chunks(SUM_BLOCK_BYTES).zip(sums).enumerate() {
            let number = first + i as u64;
            let expected = u32::from_le_bytes(stored);
            let found = header.bound_sum(section.entry.tag, number, block);
            if expected != found {
                add_finding(
                    &self.sums,
                    Finding {
                        code: Code::Block,
                        section: section.entry.tag.to_string(),
                        offset: section.offset() + at + (i * SUM_BLOCK_BYTES) as u64,
                        length: block.len() as u64,
                        expected: format!("sum {expected:08x}"),
                        found: format!("sum {found:08x}"),
                        text: format!("block {number} must match its sum"),
                    },
                );
            }
        }
        self.blocks.fetch_add(blocks as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Checks that the bytes after the content of a section are zero.
    fn check_padding(&self, section: &Section, at: u64, bytes: &[u8]) {
        let content = usize::try_from(section.entry.length.get().saturating_sub(at)).unwrap_or(usize::MAX);
        let padding = bytes.get(content.min(bytes.len())..).unwrap_or_default();
        if let Some(bad) = padding.iter().position(|&byte| byte != 0) {
            let offset = section.offset() + at + (content + bad) as u64;
            let tag = section.entry.tag.to_string();
            self.rule(Code::Padding, &tag, offset, 1, 0, padding[bad], "padding must be zero");
        }
    }

    fn check_file_id(&self, header: &Header) -> io::Result<()> {
        let block = &header.superblock;
        let stored = block.file_id;
        let mut id =
            FileId::new(block.key_type.get(), block.value_type.get(), header.is_unique(), header.tuples);
        for section in &header.sections {
            let tag = section.entry.tag;
            if tag == Tag::SUMS || tag == Tag::SUM2 {
                continue;
            }
            let mut number = 0;
            section.entry.identify(&mut id, []);
            self.read_parts(section.entry.sums_offset.get(), section.entry.sums_bytes(), |list| {
                let (sums, _) = list.as_chunks::<SUM_BYTES>();
                let bound = (number..).zip(sums);
                id.section(&[], bound.map(|(at, &sum)| u32::from_le_bytes(sum) ^ binding(&stored, tag, at)));
                number += sums.len() as u64;
            })?;
        }
        let found = id.finish();
        if found != stored {
            let hex = |id: [u8; 16]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            self.rule(
                Code::FileId,
                "superblock",
                offset_in!(Superblock, file_id),
                16,
                hex(found),
                hex(stored),
                "the file id must be that of the contents",
            );
        }
        Ok(())
    }

    /// Returns the checks of sections beyond their sums, with the sections that each reads, in the order in which
    /// they run.
    fn section_checks() -> [(&'static [Tag], SectionCheck<Self>); 10] {
        [
            (&[Tag::GRID, Tag::LINE], Self::check_lines_and_grid),
            (&[Tag::MASK, Tag::TAIL, Tag::KEYS, Tag::VALUES, Tag::CODES], Self::check_columns),
            (&[Tag::TEXT], Self::check_text),
            (&[Tag::TRIE], Self::check_trie),
            (&[Tag::PACK], Self::check_packed),
            (&[Tag::HARMONIA], Self::check_harmonia),
            (&[Tag::BTREE], Self::check_btree),
            (&[Tag::FAST], Self::check_classic),
            (&[Tag::SPINE], Self::check_spine_lines),
            (&[Tag::META], Self::check_meta),
        ]
    }

    /// Checks the tuple lines, the separators above them and the marks of the grid.
    fn check_lines_and_grid(&self, header: &Header) -> io::Result<()> {
        let grid = self.check_grid(header)?;
        match header.geometry.key_bytes {
            4 => self.check_lines::<u32>(header, grid),
            8 => self.check_lines::<u64>(header, grid),
            _ => self.check_lines::<u128>(header, grid),
        }
    }

    /// Checks padding, shifts and flags of every spine line, and the number of flagged ones.
    fn check_spine_lines(&self, header: &Header) -> io::Result<()> {
        let key_bytes = header.geometry.key_bytes;
        let flagged = AtomicU64::new(0);
        for level in &header.spine.levels {
            let start = header.spine_offset + level.offset;
            let bytes = level.lines * LINE_BYTES as u64;
            self.pieces(start, bytes.next_multiple_of(128), (0, 0), |at, piece| {
                let (lines, _) = piece.bytes.as_chunks::<LINE_BYTES>();
                for (number, line) in (at / LINE_BYTES as u64..).zip(lines) {
                    let offset = start + number * LINE_BYTES as u64;
                    if number >= level.lines {
                        if line.iter().any(|&byte| byte != 0) {
                            self.rule(
                                Code::Padding,
                                "SPIN",
                                offset,
                                64,
                                0,
                                "other bytes",
                                "padding must be zero",
                            );
                        }
                        continue;
                    }
                    flagged.fetch_add(u64::from(spine::is_inexact(level.encoding, line)), Ordering::Relaxed);
                    if let Some(rule) = spine_line_rule(level, key_bytes, number, line) {
                        self.rule(
                            Code::SpineLine,
                            "SPIN",
                            offset,
                            64,
                            rule,
                            "other bytes",
                            "a spine line must be padded",
                        );
                    }
                }
                Ok(())
            })?;
        }
        let flagged = flagged.into_inner();
        let stored = header.inexact_lines;
        if flagged != stored {
            let field = offset_in!(Entry, parameters) + offset_in!(SpineParameters, inexact_lines);
            self.rule(
                Code::SpineLine,
                "SPIN",
                header.entry_offset(Tag::SPINE).unwrap_or(TABLE_OFFSET) + field,
                8,
                flagged,
                stored,
                "the table must count flagged lines",
            );
        }
        Ok(())
    }

    /// Checks the records of META, one after the other.
    fn check_meta(&self, header: &Header) -> io::Result<()> {
        let Some(section) = header.section(Tag::META) else {
            self.check_approximate(header, &Meta::default(), 0);
            return Ok(());
        };
        let (start, length) = (section.offset(), section.entry.length.get());
        let broken = |at: u64, expected: &str, text: &str| {
            self.rule(Code::Meta, "META", start + at, 8, expected, "other bytes", text);
        };
        let bytes = self.read(start, length)?;
        let (mut at, mut records) = (0, 0);
        while at < bytes.len() {
            let record = &bytes[at..];
            let text_bytes = record.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
            let text = text_bytes.and_then(|bytes| record.get(8..)?.get(..bytes as usize));
            let Some(text) = text.filter(|it| it.len() <= TEXT_BYTES_MAX && str::from_utf8(it).is_ok())
            else {
                broken(at as u64, "tag, length, UTF-8", "records must be whole");
                return Ok(());
            };
            let end = 8 + text.len().next_multiple_of(8);
            let padding = record.get(8 + text.len()..end);
            if padding.is_none_or(|it| it.iter().chain(&record[2..4]).any(|&byte| byte != 0)) {
                broken(at as u64, "zero", "records must be padded with zeros");
            }
            at += end.min(record.len());
            records += 1;
        }
        let meta = Meta::decode(&bytes);
        let stored = section.entry.elements.get();
        if records != stored {
            self.rule(Code::Meta, "META", start, 8, stored, records, "the table must count the records");
        }
        self.check_intervals(header, &meta, start)?;
        self.check_approximate(header, &meta, start);
        let logical = meta.value_logical;
        if Record::is_meant(&logical) && Record::of(header.value_type, &logical).is_none() {
            let wanted = format!("the fields of a {} value", header.value_type);
            // This text comes from the file, so it is escaped.
            let shown: String = logical.chars().take(80).flat_map(char::escape_debug).collect();
            self.rule(Code::Meta, "META", start, 8, wanted, shown, "a record must fit its values");
        }
        Ok(())
    }

    /// Checks that keys which are shorter than those they stand for are told as such, and no others.
    fn check_approximate(&self, header: &Header, meta: &Meta, start: u64) {
        let logical = Meaning::new(header.key_type, &meta.key_logical).logical;
        let says = Approximate::of(&logical, &meta.approximate, header.tuples).is_some();
        let is_flagged = header.superblock.reader_features.get() & APPROXIMATE != 0;
        let is_always = matches!(logical, Logical::Hash64(_) | Logical::Prefix(_));
        if is_flagged != says || meta.approximate.is_empty() == says || is_always && !says {
            let wanted = "the number of different keys, with the feature, for keys that are shorter";
            // This text comes from the file, so it is escaped.
            let shown: String = meta.approximate.chars().take(80).flat_map(char::escape_debug).collect();
            self.rule(Code::Meta, "META", start, 8, wanted, shown, "approximate keys must be told as such");
        }
    }
}

/// Returns the rule that the spare bytes or free slots of a spine line break, if there is one.
fn spine_line_rule(level: &Level, key_bytes: usize, number: u64, line: &Line) -> Option<&'static str> {
    let code_bytes = level.encoding.code_bytes(key_bytes);
    let slots = level.encoding.separators(key_bytes);
    let children = (level.children - number * level.fanout as u64).min(level.fanout as u64) as usize;
    if line[(children - 1) * code_bytes..slots * code_bytes].iter().any(|&byte| byte != 0xFF) {
        return Some("free slots of all ones");
    }
    if level.encoding == Encoding::Raw {
        return None;
    }
    if line[slots * code_bytes..spine::base_at(key_bytes)].iter().any(|&byte| byte != 0) {
        return Some("zero between codes and base");
    }
    if usize::from(line[spine::SHIFT_AT]) >= key_bytes * 8 {
        return Some("a shift below the bits of a key");
    }
    (line[spine::FLAGS_AT] & !spine::INEXACT != 0).then_some("known flags")
}

/// The program of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
