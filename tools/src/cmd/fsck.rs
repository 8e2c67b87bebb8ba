//! `pleach fsck`: checks every byte of a file. It reads the file, and never writes or maps it. The whole
//! parts of a damaged file can be saved to another one.

use super::salvage;
use crate::cli::{FsckArgs, Global};
use crate::errors::placed;
use crate::failure::{self, Code, ExitStatus, Failure};
use crate::message::Message;
use crate::metrics::{Checked, Metrics, Run};
use crate::output;
use crate::place;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, shown};
use crate::stdout;
use pleach::{Finding, FormatError, FsckOptions, Report, Verdict};
use pleach_builder::publish::Rules;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub fn run(args: &FsckArgs, global: &Global) -> Result<ExitStatus, Failure> {
    if args.salvage.is_some() && args.files.len() > 1 {
        let message = Message::new("several files are saved to one").at("--salvage");
        return Err(Failure::usage(message.advise("run it for one FILE at a time")));
    }
    let Some(first) = args.files.first() else { return Ok(ExitStatus::Success) };
    let run =
        Run { command: "fsck", file: first, inputs: args.files.clone(), metrics: args.metrics.as_deref() };
    run.measure(|metrics| failure::of_each(&args.files, |path| check(path, args, global, metrics)))
}

/// Checks one file.
fn check(path: &Path, args: &FsckArgs, global: &Global, metrics: &Metrics) -> Result<ExitStatus, Failure> {
    if place::is_set(path, global)? {
        return super::set::check(path, args, global);
    }
    let path = &*place::local(path, global)?;
    if let Some(out) = &args.salvage
        && salvage::is_same(path, out)
    {
        let message = Message::new("FILE and OUT are the same").at(out.display());
        return Err(Failure::usage(message.more("fsck never writes FILE").advise("name another OUT")));
    }
    if let Some(out) = &args.salvage {
        output::check(out, &Rules::index(vec![path.to_owned()], args.force))?;
    }
    let progress = Progress::new(global).timed(metrics);
    let watch = |done: u64, total: u64| {
        progress.show("checking", done, Some(total));
        !progress.is_interrupted()
    };
    let options = FsckOptions { threads: args.threads, progress: Some(&watch) };
    let failed = |error: io::Error| Failure::io("cannot read", path, &error);
    let file = File::open(path).map_err(failed)?;
    let report = pleach::fsck_file(&file, &options).map_err(failed)?;
    drop(progress);
    if report.cancelled {
        return Err(Failure::Interrupted);
    }
    metrics.tell(|told| {
        let add = |sum: &mut Option<u64>, more: u64| *sum = Some(sum.unwrap_or(0) + more);
        add(&mut told.read_bytes, report.bytes);
        told.checked.push(Checked {
            path: path.to_owned(),
            findings: report.findings.len() as u64,
            is_damaged: report.verdict == Verdict::Damaged,
        });
        report.tuples.into_iter().for_each(|tuples| add(&mut told.tuples, tuples));
    });
    // A folder that cannot be listed does not hide damage.
    let strays = pleach_builder::publish::strays(path).unwrap_or_default();
    let is_ours = matches!(report.verdict, Verdict::Clean | Verdict::Damaged);
    let wanted = args.salvage.as_ref().filter(|_| is_ours);
    let saved = wanted.map(|out| {
        // Salvaging opens the file again by its name: this report is not about another file.
        unchanged(&file, path)?;
        let saved = salvage::save(path, args, out, global)?;
        unchanged(&file, path).map(|()| saved)
    });
    if global.json {
        let mut document = document(path, &report, &strays);
        if let Some(Ok(saved)) = &saved {
            document.insert("salvage".to_owned(), saved.document());
        }
        stdout::print_json(document)?;
    } else {
        print(path, &report, &strays, global.quiet)?;
        if let Some(Ok(saved)) = &saved {
            stdout::print(saved.text().as_bytes())?;
        }
    }
    if let Some(Err(failure)) = saved {
        return Err(failure);
    }
    match report.verdict {
        Verdict::Clean => Ok(ExitStatus::Success),
        Verdict::Damaged => Ok(ExitStatus::Damage),
        Verdict::Foreign | Verdict::Newer | Verdict::Older => Err(refused(path, &report)),
    }
}

/// Fails if the name leads to another file by now.
fn unchanged(file: &File, path: &Path) -> Result<(), Failure> {
    let is_same = |held: &Metadata, named: &Metadata| (held.dev(), held.ino()) == (named.dev(), named.ino());
    match (&file.metadata(), &fs::metadata(path)) {
        (Ok(held), Ok(named)) if is_same(held, named) => Ok(()),
        _ => {
            let message = Message::new("it was replaced while it was read").at(path.display());
            Err(Failure::new(Code::Busy, message.advise("run it again")))
        }
    }
}

/// Returns the first finding of a file that is foreign or of another version as an error.
fn refused(path: &Path, report: &Report) -> Failure {
    let code = match report.verdict {
        Verdict::Older => Code::Older,
        Verdict::Newer => Code::Newer,
        Verdict::Foreign | Verdict::Clean | Verdict::Damaged => Code::Foreign,
    };
    let first = report.findings.first();
    placed(
        code,
        first.map_or_else(|| Message::of(&FormatError::Foreign), |first| Message::of(&first.text)),
        path,
    )
}

/// Prints one line per finding: code, section, offset, expected, found, and its meaning.
fn print(path: &Path, report: &Report, strays: &[PathBuf], quiet: bool) -> Result<(), Failure> {
    let mut text = String::new();
    if report.verdict == Verdict::Damaged {
        for finding in &report.findings {
            let Finding { code, section, offset, length, expected, found, text: meaning } = finding;
            let _ = writeln!(
                text,
                "{code}: {section}: offset {offset}, {length} bytes: expected {expected}, found {found}: {meaning}"
            );
        }
    }
    let tuples = report.tuples.map_or(String::new(), |tuples| format!(", {}", counted(tuples, "tuple")));
    let checked = format!("{} in {}{tuples}", counted(report.bytes, "byte"), counted(report.blocks, "block"));
    match report.verdict {
        Verdict::Clean if !quiet => {
            let _ = writeln!(text, "clean: {}: {checked} checked", shown(path));
        }
        Verdict::Damaged if !quiet => {
            let found = counted(report.findings.len() as u64, "finding");
            let _ =
                writeln!(text, "damaged: {}: {found}, {checked} checked: restore or rebuild it", shown(path));
        }
        _ => {}
    }
    stdout::print(text.as_bytes())?;
    if !quiet {
        for stray in strays {
            let stray = stray.display();
            failure::say(&format!(
                "remark: left over by an interrupted build: {stray}: the next build removes it"
            ));
        }
    }
    Ok(())
}

fn document(path: &Path, report: &Report, strays: &[PathBuf]) -> serde_json::Map<String, Value> {
    let verdict = match report.verdict {
        Verdict::Clean => "clean",
        Verdict::Damaged => "damaged",
        Verdict::Foreign => "foreign",
        Verdict::Newer => "newer",
        Verdict::Older => "older",
    };
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "code": finding.code.name(),
                "section": finding.section,
                "offset": finding.offset.to_string(),
                "length": finding.length.to_string(),
                "expected": finding.expected,
                "found": finding.found,
                "text": finding.text,
            })
        })
        .collect();
    let strays: Vec<String> = strays.iter().map(|stray| stray.display().to_string()).collect();
    let mut document = json::document("fsck");
    document.insert("file".to_owned(), path.display().to_string().into());
    document.insert("verdict".to_owned(), verdict.into());
    document.insert("bytes".to_owned(), json::int(report.bytes));
    document.insert("blocks".to_owned(), json::int(report.blocks));
    document.insert("tuples".to_owned(), report.tuples.map_or(Value::Null, json::int));
    document.insert("findings".to_owned(), findings.into());
    document.insert("strays".to_owned(), strays.into());
    document
}
