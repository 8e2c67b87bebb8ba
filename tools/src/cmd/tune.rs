//! `pleach tune`: measures the costs that the planner of batches uses, and keeps them for later commands.
//!
//! It builds a few tables in memory, from one that fits into a first-level cache to one that fits into none,
//! and searches them for about a second. The result is `costs.json` in the user's cache folder, written under
//! another name and renamed. Commands that look up many keys read it; they ignore an invalid one with a
//! warning.

use crate::cli::{Global, TuneArgs};
use crate::errors::build_failure;
use crate::failure::{self, Code, ExitStatus, Failure};
use crate::message::Message;
use crate::render::json;
use crate::render::text::shown;
use crate::stdout;
use pleach::{Costs, Index};
use pleach_builder::BuildOptions;
use pleach_builder::publish::{self, Rules};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

/// Tuples of the tables as powers of two, and what leads to their tuple lines.
const TABLES: [(u32, &str); 6] = [
    (11, "spine,grid"),
    (11, "spine"),
    (11, "fast"),
    (16, "spine,grid"),
    (20, "spine,grid"),
    (22, "spine,grid"),
];
/// Time for measuring; building takes about as long.
const BUDGET: Duration = Duration::from_millis(600);
/// Schema of the file.
const SCHEMA: &str = "pleach.costs.v2";

pub fn run(args: &TuneArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let path = path().ok_or_else(|| {
        let message = Message::new("no cache folder").at("costs.json");
        Failure::new(Code::Failed, message.advise("set XDG_CACHE_HOME or HOME to an absolute path"))
    })?;
    let (costs, from) = if args.show {
        match read(&path).map_err(|problem| damaged(&path, &problem))? {
            Some(costs) => (costs, "tuned"),
            None => (Costs::default(), "default"),
        }
    } else {
        let costs = measure()?;
        write(&path, &costs)?;
        (costs, "tuned")
    };
    if global.json {
        let mut document = json::document("tune");
        document.insert("path".to_owned(), path.display().to_string().into());
        document.insert("from".to_owned(), from.into());
        document.insert("costs_ns".to_owned(), Value::Object(object(&costs)));
        stdout::print_json(document)?;
        return Ok(ExitStatus::Success);
    }
    let mut text = String::new();
    for (name, cost) in costs.named() {
        let _ =
            writeln!(text, "{name:<12} {cost:>9.2} {}", if name == "near" { "" } else { "ns" }.trim_end());
    }
    let _ = writeln!(text, "{from}: {}", shown(&path));
    stdout::print(text.as_bytes())?;
    Ok(ExitStatus::Success)
}

/// Returns the costs that `tune` has written; the defaults if there are none, or, with a warning, if they are
/// damaged.
pub fn load(global: &Global) -> Costs {
    let Some(path) = path() else { return Costs::default() };
    match read(&path) {
        Ok(costs) => costs.unwrap_or_default(),
        Err(problem) => {
            if !global.quiet {
                let path = path.display();
                failure::say(&format!("warning: {path}: {problem}: ignored: run pleach tune"));
            }
            Costs::default()
        }
    }
}

fn damaged(path: &Path, problem: &str) -> Failure {
    Failure::new(Code::Failed, Message::new(problem).at(path.display()).advise("run pleach tune"))
}

/// Returns the path of the costs.
fn path() -> Option<PathBuf> {
    let folder = |name| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("pleach").join("costs.json"))
}

fn object(costs: &Costs) -> Map<String, Value> {
    costs.named().into_iter().map(|(name, cost)| (name, cost.into())).collect()
}

/// Reads the costs. `None` if there is no file; an error if it cannot be used.
fn read(path: &Path) -> Result<Option<Costs>, String> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure::advise(&error).to_string()),
        Ok(text) => text,
    };
    let document: Value = serde_json::from_str(&text).map_err(|_| "it is not valid JSON".to_owned())?;
    if document["schema"] != SCHEMA {
        return Err(format!("its schema is not {SCHEMA}"));
    }
    let costs = document["costs_ns"].as_object().ok_or("it has no costs_ns")?;
    let list: Vec<(String, f64)> =
        costs.iter().filter_map(|(name, cost)| Some((name.clone(), cost.as_f64()?))).collect();
    Costs::from_named(&list).map(Some)
}

/// Writes the file: a reader sees the old one or the new one.
fn write(path: &Path, costs: &Costs) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| Failure::io("cannot make folder", folder, &error))?;
    let mut document = Map::new();
    document.insert("schema".to_owned(), SCHEMA.into());
    document.insert("costs_ns".to_owned(), Value::Object(object(costs)));
    let text = format!("{}\n", Value::Object(document));
    publish::replace(path, text.as_bytes(), Rules::table(Vec::new(), false))
        .map_err(|error| build_failure(&error))
}

fn measure() -> Result<Costs, Failure> {
    let failed = |message| Failure::new(Code::Failed, message);
    let mut tables = Vec::new();
    for (log, structure) in TABLES {
        let span = u64::MAX >> log;
        // Evenly spread, but not in equal steps.
        let tuple = |i: u64| (i * span + (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (log + 1)), i);
        let tuples: Vec<(u64, u64)> = (0..1 << log).map(tuple).collect();
        let layout = format!("lines,{structure}").parse().unwrap_or_default();
        let options = BuildOptions::default().with_layout(layout);
        let bytes = pleach_builder::build_bytes(&tuples, &options).map_err(|error| {
            failed(Message::new("cannot build a table to measure").because(Message::of(&error)))
        })?;
        tables.push(Index::from_bytes(bytes).map_err(|error| failed(Message::of(&error)))?);
    }
    Costs::tune(&tables, BUDGET).map_err(|error| failed(Message::of(&error)))
}
