//! `pleach set generations` and `pleach set rollback`.

use super::build::{put_manifest, text};
use crate::cli::{GenerationsArgs, Global, RollbackArgs};
use crate::errors::set_failure;
use crate::failure::{self, ExitStatus, Failure};
use crate::message::Message;
use crate::place;
use crate::render::json;
use crate::render::table::{Side, table};
use crate::render::text::grouped;
use crate::stdout;
use pleach_set::{Generation, generations, rollback_set};
use serde_json::{Value, json};

pub fn list(args: &GenerationsArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let store = place::store(&args.file, global)?;
    let all = generations(&*store).map_err(|error| set_failure(&error))?;
    if global.json {
        let mut document = json::document("set-generations");
        document.insert("set".to_owned(), args.file.display().to_string().into());
        let last = all.last().map(|generation| generation.number);
        document.insert("current".to_owned(), last.map_or(Value::Null, json::int));
        document.insert("generations".to_owned(), all.iter().map(object).collect());
        stdout::print_json(document)?;
        return Ok(ExitStatus::Success);
    }
    let head = [
        ("generation", Side::Right),
        ("", Side::Left),
        ("files", Side::Right),
        ("tuples", Side::Right),
        ("bytes", Side::Right),
        ("age in seconds", Side::Right),
    ];
    let rows: Vec<[String; 6]> = all
        .iter()
        .enumerate()
        .map(|(at, generation)| {
            let is_current = at + 1 == all.len();
            let number = |of: fn(&pleach_set::GenerationFacts) -> u64| {
                generation.manifest.as_ref().map_or_else(|_| "-".to_owned(), |facts| grouped(of(facts)))
            };
            let state = match (&generation.manifest, is_current) {
                (Err(problem), _) => problem.clone(),
                (Ok(_), true) => "current".to_owned(),
                (Ok(_), false) => "kept".to_owned(),
            };
            let files = number(|facts| facts.files as u64);
            let age = grouped(generation.age.as_secs());
            [
                grouped(generation.number),
                state,
                files,
                number(|it| it.tuples),
                number(|it| it.file_bytes),
                age,
            ]
        })
        .collect();
    stdout::print_people(&table(&head, &rows, None))?;
    Ok(ExitStatus::Success)
}

fn object(generation: &Generation) -> Value {
    let age = json::int(generation.age.as_secs());
    match &generation.manifest {
        Ok(facts) => json!({
            "generation": json::int(generation.number),
            "age_seconds": age,
            "parent": json::int(facts.parent),
            "files": facts.files,
            "tuples": json::int(facts.tuples),
            "file_bytes": json::int(facts.file_bytes),
            "problem": Value::Null,
        }),
        Err(problem) => json!({
            "generation": json::int(generation.number),
            "age_seconds": age,
            "problem": problem,
        }),
    }
}

pub fn rollback(args: &RollbackArgs, global: &Global) -> Result<ExitStatus, Failure> {
    if args.keep.is_some() || args.force {
        let option = if args.force { "--force" } else { "--keep" };
        let message = Message::new("it is not for sets").at(option);
        return Err(Failure::usage(
            message.advise("leave it out; `pleach set sweep` deletes old generations"),
        ));
    }
    let store = place::store(&args.file, global)?;
    let manifest = rollback_set(store, args.generation).map_err(|error| set_failure(&error))?;
    if global.json {
        let mut document = json::document("set-rollback");
        document.insert("set".to_owned(), args.file.display().to_string().into());
        put_manifest(&manifest, &mut document);
        stdout::print_json(document)?;
    } else if !global.quiet {
        failure::say(&format!("rolled back {}: {}", args.file.display(), text(&manifest)));
    }
    Ok(ExitStatus::Success)
}
