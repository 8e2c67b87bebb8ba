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
mod histogram;
mod html;
mod line;
mod mapping;
mod page;
mod shapes;
mod trees;

use crate::cli::{Global, InspectArgs, Verify};
use crate::errors;
use crate::failure::{self, Code, ExitStatus, Failure};
use crate::found::{Found, Verdict, read_at_most};
use crate::meant::Meant;
use crate::message::Message;
use crate::output;
use crate::place;
use crate::progress::Progress;
use crate::stdout;
use pleach::{FsckOptions, Structure};
use pleach_builder::publish::Rules;
use pleach_format::decode::{self, Field};
use pleach_format::meta::Meta;
use pleach_format::section::{TABLE_BYTES, TABLE_OFFSET, Tag};
use pleach_format::superblock::SUPERBLOCK_BYTES;
use pleach_format::version::MAGIC;
use pleach_format::{FormatError, Header};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub fn run(args: &InspectArgs, global: &Global) -> Result<ExitStatus, Failure> {
    if let Some(out) = &args.html {
        if args.files.len() > 1 {
            let message = Message::new("a page shows one file").at("--html").advise("name one file");
            return Err(Failure::usage(message));
        }
        // Before every byte of a large file is checked.
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(Failure::io("cannot write to folder", folder, &ErrorKind::NotFound.into()));
        }
        output::check(
            out,
            &Rules::table(output::inputs(args.files.iter().map(PathBuf::as_path)), args.force),
        )?;
    }
    let mut is_first = true;
    failure::of_each(&args.files, |path| {
        if !std::mem::take(&mut is_first) && !global.json {
            stdout::print(b"\n")?;
        }
        show(path, args, global)
    })
}

/// Shows one file.
fn show(path: &Path, args: &InspectArgs, global: &Global) -> Result<ExitStatus, Failure> {
    if place::is_set(path, global)? {
        return crate::cmd::set::show(path, global);
    }
    let path = &*place::local(path, global)?;
    let mut found = Found::read(path)?;
    match (args.page, args.line, args.mapping) {
        (Some(page), _, _) => match args.structure.unwrap_or_else(|| shapes::usual(found.header.as_ref())) {
            Structure::Spine => found.show_page(page, global),
            tree => found.show_tree_page(tree, page, global),
        },
        (None, Some(line), _) => found.show_line(line, global),
        (None, None, true) => found.show_mapping(global),
        (None, None, false) => {
            found.verify(global)?;
            match &args.html {
                Some(out) => found.write_page(out, args, global),
                None => found.show(global),
            }
        }
    }
}

/// Maximum size of files that are verified in full, unless `--verify` specifies otherwise: this takes almost
/// no time.
const VERIFIED_BYTES_MAX: u64 = 64 << 20;

impl Found<'_> {
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

    /// Returns the status: 4 for damage; 8 for foreign and newer files, with their line on standard error.
    fn status(&self) -> Result<ExitStatus, Failure> {
        match self.verdict() {
            Verdict::Whole => Ok(ExitStatus::Success),
            Verdict::Damaged => Ok(ExitStatus::Damage),
            Verdict::Foreign | Verdict::Newer | Verdict::Older => {
                let foreign = FormatError::Foreign;
                Err(errors::refused(self.path, self.problem.as_ref().unwrap_or(&foreign)))
            }
        }
    }

    /// Returns the header of a file that must be whole.
    fn whole(&self) -> Result<&Header, Failure> {
        if let (Verdict::Whole, Some(header)) = (self.verdict(), &self.header) {
            return Ok(header);
        }
        match (self.verdict(), &self.problem) {
            (Verdict::Foreign | Verdict::Newer | Verdict::Older, Some(problem)) => {
                Err(errors::refused(self.path, problem))
            }
            _ => {
                let message = self.message().unwrap_or_else(|| Message::new("damaged"));
                Err(errors::placed(Code::Damaged, message, self.path))
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
            stdout::print_json(self.document(global))?;
        } else {
            let mut text = String::new();
            self.draw(global, &mut text);
            stdout::print_people(&text)?;
        }
        self.status()
    }
}
