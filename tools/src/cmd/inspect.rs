//! `pleach inspect`: a file as a labelled picture.
//!
//! The file is read by `pread` and never mapped (only `--mapping` maps, to show how), and every
//! number that does not come from a checked header is shown as it stands, with a remark where it
//! looks wrong. So damaged, truncated and foreign files are shown too.

use crate::cli::{Global, InspectArgs, Verify};
use crate::failure::{self, ExitStatus, Failure};
use crate::render::json;
use crate::render::picture::{self, key_json, key_text, value_json, value_text};
use crate::render::text::{counted, grouped, hex, put_escaped};
use crate::search;
use pleach_format::checksum::{SUM_BLOCK_BYTES, SUM_BYTES};
use pleach_format::decode::{self, Field};
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::{self, Line};
use pleach_format::meta::Meta;
use pleach_format::section::{TABLE_BYTES, TABLE_OFFSET, Tag};
use pleach_format::superblock::{SUPERBLOCK_BYTES, Superblock};
use pleach_format::version::MAGIC;
use pleach_format::view::HEAD_BYTES;
use pleach_format::{FormatError, Header};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

pub fn run(args: &InspectArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let found = Found::read(&args.file)?;
    match (args.page, args.mapping) {
        (Some(line), _) => found.show_line(line, global),
        (None, true) => found.show_mapping(global),
        (None, false) => found.show(global),
    }
}

/// What stands in a file, as far as it can be read.
struct Found<'a> {
    path: &'a Path,
    file: File,
    inode: u64,
    file_bytes: u64,
    head: Vec<u8>,
    closing: Vec<u8>,
    /// The header; of a damaged file the one that its closing superblock leads to, if it is whole.
    header: Option<Header>,
    problem: Option<FormatError>,
    /// The closing superblock is not a copy of the first.
    closing_differs: bool,
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
        let closing_at = file_bytes.saturating_sub(SUPERBLOCK_BYTES as u64);
        let closing = read_at_most(&file, closing_at, SUPERBLOCK_BYTES).map_err(failed)?;
        let (header, problem) = match Header::parse(&head, file_bytes) {
            Ok(header) => (Some(header), None),
            Err(problem) => (through_copy(&head, &closing, file_bytes), Some(problem)),
        };
        let closing_differs = problem.is_none() && !head.starts_with(&closing);
        let inode = metadata.ino();
        Ok(Self { path, file, inode, file_bytes, head, closing, header, problem, closing_differs })
    }

    fn verdict(&self) -> Verdict {
        match &self.problem {
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
            (None, Verdict::Damaged) => Some(
                "the closing superblock is no copy of the first: run `pleach fsck`, restore or rebuild it"
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
                Err(search::placed(&self.problem_text().unwrap_or_default(), self.path))
            }
        }
    }

    /// The header of a file that is needed whole.
    fn whole(&self) -> Result<&Header, Failure> {
        if let (Verdict::Whole, Some(header)) = (self.verdict(), &self.header) {
            return Ok(header);
        }
        match search::placed(&self.problem_text().unwrap_or_default(), self.path) {
            Failure::Operational(text) if self.verdict() == Verdict::Damaged => Err(Failure::Damage(text)),
            other => Err(other),
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
            json::print(self.document())?;
        } else {
            let mut text = String::new();
            self.draw(&mut text);
            failure::print(text.as_bytes())?;
        }
        self.status()
    }

    fn draw(&self, text: &mut String) {
        let verdict = self.verdict();
        let _ =
            writeln!(text, "{}: {}, {} bytes", self.path.display(), verdict.name(), grouped(self.file_bytes));
        if let Some(problem) = self.problem_text() {
            let _ = writeln!(text, "  problem   {problem}");
        }
        if verdict != Verdict::Whole {
            let _ = writeln!(text, "\nfields as they stand");
            if verdict == Verdict::Foreign {
                let _ = writeln!(text, "  first bytes  {}", hex(&self.head[..self.head.len().min(32)]));
            } else {
                for field in self.fields() {
                    let remark = field.remark.map_or(String::new(), |remark| format!("   <-- {remark}"));
                    let _ =
                        writeln!(text, "{:>14}  {:<27} {}{remark}", field.offset, field.name, field.value);
                }
            }
        }
        let Some(header) = &self.header else { return };
        if self.problem.is_some() {
            let _ = writeln!(text, "\nas the closing superblock says");
        }
        self.draw_header(header, text);
    }

    fn draw_header(&self, header: &Header, text: &mut String) {
        let superblock = &header.superblock;
        let meta = self.meta(header);
        let (key, value) = (header.key_type, header.value_type);
        let named = |name: &str, logical: &str| {
            let mut out = Vec::new();
            if !name.is_empty() {
                out.extend_from_slice(b" \"");
                put_escaped(name.as_bytes(), &mut out);
                out.push(b'"');
            }
            if !logical.is_empty() {
                out.extend_from_slice(b" as ");
                put_escaped(logical.as_bytes(), &mut out);
            }
            String::from_utf8_lossy(&out).into_owned()
        };
        let range = header.key_range().map_or(String::new(), |(min, max)| {
            format!(", {} to {}", key_text(key, min), key_text(key, max))
        });
        let unique = if header.is_unique() { "no key twice" } else { "keys may repeat" };
        let per_tuple = match header.tuples {
            0 => String::new(),
            tuples => format!(", {:.2} bytes a tuple", header.file_bytes as f64 / tuples as f64),
        };
        let builder = String::from_utf8_lossy(&superblock.builder);
        let builder = builder.trim_end_matches('\0');
        let version = (superblock.version_major.get(), superblock.version_minor.get());
        let _ = writeln!(text, "  format    {}.{} (development)", version.0, version.1);
        let _ = writeln!(text, "  keys      {key}{}{range}", named(&meta.key_name, &meta.key_logical));
        let _ = writeln!(text, "  values    {value}{}", named(&meta.value_name, &meta.value_logical));
        let _ = writeln!(text, "  tuples    {}, {unique}{per_tuple}", grouped(header.tuples));
        let _ =
            writeln!(text, "  file id   {}, generation {}", hex(&superblock.file_id), superblock.generation);
        let _ = writeln!(text, "  builder   {}", builder.escape_debug());

        let _ = writeln!(text, "\n{:>15} {:>17} {:>7}", "offset", "bytes", "share");
        for bar in picture::bars(header) {
            let share = bar.bytes as f64 / header.file_bytes.max(1) as f64;
            let _ = writeln!(
                text,
                "{:>15} {:>17} {:>6.2}%  {:<17} {:<24} {}",
                grouped(bar.offset),
                grouped(bar.bytes),
                share * 100.0,
                bar.name,
                picture::bar(share),
                bar.note,
            );
        }

        let geometry = header.geometry;
        let levels = header.spine.levels.len();
        let inexact = header.section(Tag::SPINE).map_or(0, |section| section.entry.geometry.inexact.get());
        let _ =
            writeln!(text, "\na look-up reads {} and one tuple line", counted(levels as u64, "spine line"));
        for (level, shape) in header.spine.levels.iter().enumerate().rev() {
            let _ = writeln!(
                text,
                "  level {level:<3} {:<8} {:>15}, {} children each, {} in all, at {}",
                shape.encoding.name(),
                counted(shape.lines, "line"),
                shape.fanout,
                grouped(shape.children),
                grouped(header.spine_offset + shape.offset),
            );
        }
        let _ = writeln!(
            text,
            "  tuples             {:>15}, {} each: keys from byte 0, values from byte {}",
            counted(header.lines, "line"),
            counted(geometry.tuples_per_line() as u64, "tuple"),
            geometry.values_at(),
        );
        if levels > 0 {
            let _ = writeln!(text, "  {} may land one line to the left", counted(inexact, "spine line"));
        }
    }

    fn document(&self) -> Map<String, Value> {
        let verdict = self.verdict();
        let mut document = json::document("inspect");
        document.insert("file".to_owned(), self.path.display().to_string().into());
        document.insert("file_bytes".to_owned(), json::int(self.file_bytes));
        document.insert("verdict".to_owned(), verdict.name().into());
        document.insert("problem".to_owned(), self.problem_text().map_or(Value::Null, Value::String));
        let fields: Vec<Value> = if verdict == Verdict::Foreign { Vec::new() } else { self.fields() }
            .into_iter()
            .map(|field| {
                json!({
                    "offset": field.offset.to_string(),
                    "length": field.length.to_string(),
                    "name": field.name,
                    "value": field.value,
                    "remark": field.remark,
                })
            })
            .collect();
        if let Some(header) = &self.header {
            self.describe(header, &mut document);
        }
        document.insert("fields".to_owned(), fields.into());
        document
    }

    fn describe(&self, header: &Header, document: &mut Map<String, Value>) {
        let superblock = &header.superblock;
        let meta = self.meta(header);
        let range = header.key_range();
        let key = |word: Option<u64>| word.map_or(Value::Null, |word| key_json(header.key_type, word));
        let builder = String::from_utf8_lossy(&superblock.builder).trim_end_matches('\0').to_owned();
        document.insert(
            "format".to_owned(),
            format!("{}.{}", superblock.version_major, superblock.version_minor).into(),
        );
        document.insert("generation".to_owned(), json::int(superblock.generation.get()));
        document.insert("file_id".to_owned(), hex(&superblock.file_id).into());
        document.insert("builder".to_owned(), builder.into());
        document.insert("tuples".to_owned(), json::int(header.tuples));
        document.insert("unique".to_owned(), header.is_unique().into());
        document.insert(
            "key".to_owned(),
            json!({
                "type": header.key_type.name(),
                "name": meta.key_name,
                "logical": meta.key_logical,
                "min": key(range.map(|range| range.0)),
                "max": key(range.map(|range| range.1)),
            }),
        );
        document.insert(
            "value".to_owned(),
            json!({ "type": header.value_type.name(), "name": meta.value_name, "logical": meta.value_logical }),
        );
        let sections: Vec<Value> = header
            .sections
            .iter()
            .map(|section| {
                let entry = &section.entry;
                json!({
                    "tag": entry.tag.to_string(),
                    "offset": entry.offset.to_string(),
                    "length": entry.length.to_string(),
                    "extent": section.extent().to_string(),
                    "elements": entry.elements.to_string(),
                    "share": section.extent() as f64 / header.file_bytes.max(1) as f64,
                    "sums": entry.sums.to_string(),
                    "sums_offset": entry.sums_offset.to_string(),
                })
            })
            .collect();
        document.insert("sections".to_owned(), sections.into());
        let spine: Vec<Value> = header
            .spine
            .levels
            .iter()
            .enumerate()
            .rev()
            .map(|(level, shape)| {
                json!({
                    "level": level,
                    "encoding": shape.encoding.name(),
                    "lines": shape.lines.to_string(),
                    "fanout": shape.fanout,
                    "children": shape.children.to_string(),
                    "offset": (header.spine_offset + shape.offset).to_string(),
                })
            })
            .collect();
        document.insert("spine".to_owned(), spine.into());
        document.insert(
            "tuple_lines".to_owned(),
            json!({
                "lines": header.lines.to_string(),
                "tuples_per_line": header.geometry.tuples_per_line(),
                "offset": header.lines_offset.to_string(),
            }),
        );
    }

    /// One tuple line, decoded, with the sum of the block it lies in.
    fn show_line(&self, number: u64, global: &Global) -> Result<ExitStatus, Failure> {
        let header = self.whole()?;
        let failed = |error: io::Error| Failure::io("cannot read", self.path, &error);
        if number >= header.lines {
            let there = match header.lines {
                0 => "there are no tuple lines".to_owned(),
                lines => format!("give a number from 0 to {}", lines - 1),
            };
            let path = self.path.display();
            return Err(Failure::operational(format!("there is no tuple line {number}: {path}: {there}")));
        }
        let offset = header.line_offset(number);
        let block = self.block_of(header, offset).map_err(failed)?;
        let bytes = read_at_most(&self.file, offset, LINE_BYTES).map_err(failed)?;
        let Some(line) = bytes.first_chunk::<LINE_BYTES>() else {
            return Err(failed(ErrorKind::UnexpectedEof.into()));
        };
        let used = header.geometry.tuples_in_line(number, header.tuples);
        let first_rank = number * header.geometry.tuples_per_line() as u64;
        if global.json {
            let tuples: Vec<Value> = (0..used)
                .map(|slot| {
                    let (key, value) = words(header, line, slot);
                    json!({
                        "rank": (first_rank + slot as u64).to_string(),
                        "key": key_json(header.key_type, key),
                        "value": value_json(header.value_type, value),
                    })
                })
                .collect();
            let mut document = json::document("inspect-line");
            document.insert("file".to_owned(), self.path.display().to_string().into());
            document.insert("line".to_owned(), json::int(number));
            document.insert("offset".to_owned(), json::int(offset));
            document.insert("bytes".to_owned(), hex(line).into());
            document.insert("sum_block".to_owned(), json::int(block.number));
            document.insert("sum_stored".to_owned(), format!("{:08x}", block.stored).into());
            document.insert("sum_found".to_owned(), format!("{:08x}", block.found).into());
            document.insert("tuples".to_owned(), tuples.into());
            json::print(document)?;
        } else {
            let mut text = String::new();
            let _ = writeln!(
                text,
                "tuple line {number} of {}: byte {offset}, {} of {} slots used",
                grouped(header.lines),
                used,
                header.geometry.tuples_per_line(),
            );
            let state = if block.stored == block.found { "good" } else { "DAMAGED" };
            let _ = writeln!(
                text,
                "sum block {} of LINE: stored {:08x}, the bytes give {:08x}: {state}\n",
                block.number, block.stored, block.found
            );
            let _ = writeln!(text, "{:>15}  {:>20}  value", "rank", "key");
            for slot in 0..used {
                let (key, value) = words(header, line, slot);
                let key = key_text(header.key_type, key);
                let value = value_text(header.value_type, value);
                let _ = writeln!(text, "{:>15}  {key:>20}  {value}", first_rank + slot as u64);
            }
            let _ = writeln!(text);
            for (row, bytes) in line.chunks(16).enumerate() {
                let spaced: Vec<String> = bytes.chunks(4).map(hex).collect();
                let _ = writeln!(text, "{:>15}  {}", offset + row as u64 * 16, spaced.join(" "));
            }
            failure::print(text.as_bytes())?;
        }
        Ok(if block.stored == block.found { ExitStatus::Success } else { ExitStatus::Damage })
    }

    /// The sum block of LINE that holds the byte at `offset`.
    fn block_of(&self, header: &Header, offset: u64) -> io::Result<Block> {
        let missing = || io::Error::from(ErrorKind::UnexpectedEof);
        let section = header.section(Tag::LINE).ok_or_else(missing)?;
        let number = (offset - section.offset()) / SUM_BLOCK_BYTES as u64;
        let start = section.offset() + number * SUM_BLOCK_BYTES as u64;
        let length = (section.end - start).min(SUM_BLOCK_BYTES as u64) as usize;
        let bytes = read_at_most(&self.file, start, length)?;
        let stored_at = section.entry.sums_offset.get() + number * SUM_BYTES as u64;
        let stored = read_at_most(&self.file, stored_at, SUM_BYTES)?;
        let stored = u32::from_le_bytes(*stored.first_chunk().ok_or_else(missing)?);
        Ok(Block { number, stored, found: header.bound_sum(Tag::LINE, number, &bytes) })
    }

    /// Maps the file as searches do, touches all of it, and says what pages it got.
    fn show_mapping(&self, global: &Global) -> Result<ExitStatus, Failure> {
        self.whole()?;
        // Verifying a mapped file in full reads every byte of it through its mapping.
        let all = Global { verify: Some(Verify::Full), ..global.clone() };
        let index = search::open(self.path, &all, Verify::Full).map_err(|failure| match failure {
            Failure::Operational(text) if text.starts_with("damaged") => Failure::Damage(text),
            other => other,
        })?;
        let smaps = std::fs::read_to_string("/proc/self/smaps")
            .map_err(|error| Failure::io("cannot read", Path::new("/proc/self/smaps"), &error))?;
        let mapping = Mapping::of(&smaps, self.inode);
        let share = mapping.huge_kib as f64 * 1024.0 / index.file_bytes().max(1) as f64;
        if global.json {
            let mut document = json::document("inspect-mapping");
            document.insert("file".to_owned(), self.path.display().to_string().into());
            document.insert("file_bytes".to_owned(), json::int(index.file_bytes()));
            document.insert("resident_kb".to_owned(), json::int(mapping.resident_kib));
            document.insert("file_pmd_mapped_kb".to_owned(), json::int(mapping.huge_kib));
            document.insert("huge_share".to_owned(), share.into());
            json::print(document)?;
        } else {
            let text = format!(
                "{}: {} bytes mapped\n  Rss            {:>12} kB\n  FilePmdMapped  {:>12} kB, {:.1}% of the file in huge pages\n",
                self.path.display(),
                grouped(index.file_bytes()),
                mapping.resident_kib,
                mapping.huge_kib,
                share * 100.0,
            );
            failure::print(text.as_bytes())?;
        }
        Ok(ExitStatus::Success)
    }
}

/// A sum block: what its sum is, and what it should be.
struct Block {
    number: u64,
    stored: u32,
    found: u32,
}

/// Lines of `/proc/self/smaps` that concern one file.
#[derive(Default)]
struct Mapping {
    resident_kib: u64,
    huge_kib: u64,
}

impl Mapping {
    fn of(smaps: &str, inode: u64) -> Self {
        let mut mapping = Self::default();
        let mut ours = false;
        for line in smaps.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(first) = words.next() else { continue };
            if let Some(name) = first.strip_suffix(':') {
                let amount: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
                match name {
                    "Rss" if ours => mapping.resident_kib += amount,
                    "FilePmdMapped" if ours => mapping.huge_kib += amount,
                    _ => {}
                }
            } else {
                // `start-end perms offset device inode path`
                ours = words.nth(3).and_then(|word| word.parse().ok()) == Some(inode);
            }
        }
        mapping
    }
}

/// The header that the closing superblock of a damaged file leads to.
fn through_copy(head: &[u8], closing: &[u8], file_bytes: u64) -> Option<Header> {
    if head.len() < HEAD_BYTES || closing.len() < SUPERBLOCK_BYTES {
        return None;
    }
    Superblock::decode(closing, file_bytes - SUPERBLOCK_BYTES as u64).ok()?;
    let mut repaired = head.to_vec();
    repaired[..SUPERBLOCK_BYTES].copy_from_slice(closing);
    Header::parse(&repaired, file_bytes).ok()
}

/// Encoded key and value bits in a slot, widened.
fn words(header: &Header, line: &Line, slot: usize) -> (u64, u64) {
    let key = match header.geometry.key_bytes {
        4 => u64::from(line::key::<u32>(line, slot)),
        _ => line::key::<u64>(line, slot),
    };
    let at = header.geometry.values_at() + slot * header.geometry.value_bytes;
    let value = line[at..at + header.geometry.value_bytes]
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u64::from(byte));
    (key, value)
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
