//! `pleach generations`: lists the files that have the names of a file's generations.

use crate::cli::{GenerationsArgs, Global};
use crate::errors::build_failure;
use crate::failure::{ExitStatus, Failure};
use crate::place;
use crate::render::json;
use crate::render::table::{Side, table};
use crate::render::text::{grouped, hex, shown};
use crate::stdout;
use chrono::{DateTime, SecondsFormat, Utc};
use pleach_builder::rebuild::{Generation, State, generations};
use serde_json::{Map, Value};
use std::path::Path;

pub fn run(args: &GenerationsArgs, global: &Global) -> Result<ExitStatus, Failure> {
    if place::is_set(&args.file, global)? {
        return super::set::list(args, global);
    }
    place::only_here(&args.file)?;
    let found = generations(&args.file).map_err(|error| build_failure(&error))?;
    if global.json {
        let mut document = json::document("generations");
        document.insert("file".to_owned(), args.file.display().to_string().into());
        document.insert("generations".to_owned(), found.iter().map(object).collect());
        stdout::print_json(document)?;
    } else {
        stdout::print_people(&listed(&args.file, &found))?;
    }
    Ok(ExitStatus::Success)
}

/// Returns the time of the last write, to the second, in UTC.
fn modified(generation: &Generation) -> Option<String> {
    let time: DateTime<Utc> = generation.modified?.into();
    Some(time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

fn object(generation: &Generation) -> Value {
    let Generation { number, path, state, file_id, tuples, bytes, .. } = generation;
    let mut object = Map::new();
    let (name, what) = match state {
        State::Current => ("current", None),
        State::Kept => ("kept", None),
        State::Foreign(what) => ("foreign", Some(what.clone())),
    };
    object.insert("generation".to_owned(), json::int(*number));
    object.insert("state".to_owned(), name.into());
    object.insert("what".to_owned(), what.into());
    object.insert("path".to_owned(), path.display().to_string().into());
    object.insert("file_id".to_owned(), file_id.map(|id| hex(&id)).into());
    object.insert("tuples".to_owned(), tuples.map_or(Value::Null, json::int));
    object.insert("file_bytes".to_owned(), bytes.map_or(Value::Null, json::int));
    object.insert("modified".to_owned(), modified(generation).into());
    object.into()
}

/// Returns one line per generation, under the names of the columns.
fn listed(file: &Path, found: &[Generation]) -> String {
    let number = |number: Option<u64>| number.map_or("-".to_owned(), grouped);
    let mut rows = Vec::new();
    for generation in found {
        let state = match &generation.state {
            State::Current => "current".to_owned(),
            State::Kept => "kept".to_owned(),
            State::Foreign(what) => format!("none: {what}"),
        };
        rows.push([
            grouped(generation.number),
            state,
            number(generation.tuples),
            number(generation.bytes),
            modified(generation).unwrap_or_else(|| "-".to_owned()),
            generation.file_id.map_or("-".to_owned(), |id| hex(&id)),
            shown(&generation.path),
        ]);
    }
    if !found.iter().any(|generation| generation.number == 0 || generation.state == State::Current) {
        let [gone, none] = ["gone", "-"].map(str::to_owned);
        let none = || none.clone();
        rows.push([none(), gone, none(), none(), none(), none(), shown(file)]);
    }
    let head = [
        ("generation", Side::Right),
        ("", Side::Left),
        ("tuples", Side::Right),
        ("bytes", Side::Right),
        ("modified", Side::Left),
        ("file id", Side::Left),
        ("file", Side::Left),
    ];
    // A path that is broken into lines could not be copied.
    table(&head, &rows, None)
}
