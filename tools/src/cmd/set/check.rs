//! `pleach fsck DIR`: checks the manifest and every file of a set.

use crate::cli::{FsckArgs, Global, Verify};
use crate::errors::set_failure;
use crate::failure::{Code, ExitStatus, Failure};
use crate::message::Message;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped, shown};
use crate::search;
use crate::stdout;
use crate::threads::in_pool;
use pleach::ErrorKind;
use pleach_set::{CheckOptions, SetChecked, check_set};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

pub fn check(path: &Path, args: &FsckArgs, global: &Global) -> Result<ExitStatus, Failure> {
    if args.salvage.is_some() {
        let message = Message::new("it saves one file").at("--salvage");
        return Err(Failure::usage(message.advise("name the damaged file of the set")));
    }
    let set = search::open_set(path, global, Verify::Header)?;
    let progress = Progress::new(global);
    let watch = |done: u64, total: u64| {
        progress.show("checking", done, Some(total));
        !progress.is_interrupted()
    };
    let options = CheckOptions { digests: args.digests, progress: Some(&watch) };
    let checked = in_pool(args.threads, || Ok(check_set(&set, &options)))?;
    let checked = checked.map_err(|error| set_failure(&error))?;
    drop(progress);
    if checked.cancelled {
        return Err(Failure::Interrupted);
    }
    if global.json {
        print_json(path, &set, &checked)?;
    } else {
        print(path, &set, &checked, global.quiet)?;
    }
    let bad = || checked.files.iter().filter(|file| !file.is_whole());
    let is_damage =
        |kind: ErrorKind| matches!(kind, ErrorKind::Damaged | ErrorKind::NotFound | ErrorKind::Foreign);
    match bad().find_map(|file| file.problem.as_ref().filter(|(kind, _)| !is_damage(*kind))) {
        // Damage comes first, if there is any.
        Some((kind, problem)) if bad().count() == 1 => {
            let code = if *kind == ErrorKind::Newer { Code::Newer } else { Code::Failed };
            Err(Failure::new(code, Message::of(problem)))
        }
        _ if bad().next().is_some() => Ok(ExitStatus::Damage),
        _ => Ok(ExitStatus::Success),
    }
}

fn print(path: &Path, set: &pleach_set::Set, checked: &SetChecked, is_quiet: bool) -> Result<(), Failure> {
    let mut text = String::new();
    for file in checked.files.iter().filter(|file| !file.is_whole()) {
        let _ = match &file.problem {
            Some((_, problem)) => writeln!(text, "{}: {problem}", file.name),
            None => writeln!(text, "{}: {}", file.name, counted(file.findings.len() as u64, "finding")),
        };
        for finding in file.findings.iter().take(5) {
            let _ = writeln!(text, "  {finding}");
        }
    }
    if !is_quiet {
        let bad = checked.files.iter().filter(|file| !file.is_whole()).count();
        let verdict = if bad == 0 { "clean".to_owned() } else { format!("{bad} damaged or missing") };
        let _ = writeln!(text, "{}: {verdict}: {}", shown(path), super::build::text(set.manifest()));
        if !checked.litter.is_empty() {
            let bytes = checked.litter.iter().map(|object| object.bytes).sum();
            let files = counted(checked.litter.len() as u64, "file");
            let _ = writeln!(
                text,
                "{}: {files} of {} bytes in no generation: `pleach set sweep` deletes them once they are old",
                shown(path),
                grouped(bytes)
            );
        }
    }
    stdout::print(text.as_bytes())
}

fn print_json(path: &Path, set: &pleach_set::Set, checked: &SetChecked) -> Result<(), Failure> {
    let mut document = json::document("set-fsck");
    document.insert("set".to_owned(), path.display().to_string().into());
    super::build::put_manifest(set.manifest(), &mut document);
    let files: Vec<Value> = checked
        .files
        .iter()
        .map(|file| {
            let findings: Vec<String> = file.findings.iter().map(ToString::to_string).collect();
            let problem = file.problem.as_ref();
            json!({
                "name": file.name,
                "tuples": json::int(file.tuples),
                "whole": file.is_whole(),
                "code": problem.map(|(kind, _)| kind.code()),
                "problem": problem.map(|(_, text)| text),
                "findings": findings,
            })
        })
        .collect();
    document.insert("checked".to_owned(), files.into());
    let litter: Vec<Value> = checked
        .litter
        .iter()
        .map(|object| {
            let (bytes, age) = (json::int(object.bytes), json::int(object.age.as_secs()));
            json!({ "name": object.name, "bytes": bytes, "age_seconds": age })
        })
        .collect();
    document.insert("litter".to_owned(), litter.into());
    let is_clean = checked.files.iter().all(pleach_set::FileCheck::is_whole);
    document.insert("verdict".to_owned(), if is_clean { "clean" } else { "damaged" }.into());
    stdout::print_json(document)
}
