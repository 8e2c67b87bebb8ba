//! `pleach fsck --salvage OUT`: saves the whole parts of a damaged file as a new file, and lists the lost
//! keys.
//!
//! Tuples keep their order, so a lost run of ranks was between two tuples that are neighbours in OUT: their
//! keys tell its place.

use crate::cli::{FsckArgs, Global, Verify};
use crate::errors::{self, build_failure};
use crate::failure::Failure;
use crate::meant::Meant;
use crate::progress::Progress;
use crate::render::json;
use crate::render::picture::{datum_json, datum_text};
use crate::render::text::{counted, grouped, shown};
use crate::search;
use pleach_builder::rebuild::{CompactOptions, compact};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Tuples that were saved, and those that were lost.
pub struct Saved {
    out: PathBuf,
    tuples: u64,
    lost_tuples: u64,
    lost: Vec<Lost>,
}

/// A run of lost tuples. Keys are as text and as JSON; `None` at either end of the file.
struct Lost {
    rank: u64,
    tuples: u64,
    after: Option<[String; 2]>,
    before: Option<[String; 2]>,
}

/// Returns true if both names lead to one file.
pub fn is_same(file: &Path, out: &Path) -> bool {
    file == out || file.canonicalize().is_ok_and(|file| out.canonicalize().is_ok_and(|out| file == out))
}

/// Writes the whole parts of the file to `out`.
pub fn save(path: &Path, args: &FsckArgs, out: &Path, global: &Global) -> Result<Saved, Failure> {
    let progress = Progress::new(global);
    let options = CompactOptions {
        salvage: true,
        threads: args.threads,
        force: args.force,
        ..CompactOptions::default()
    };
    let done = compact(&[path.to_owned()], out, &options, &progress)
        .map_err(|error| progress.failed(build_failure(&error)))?;
    drop(progress);
    let index = search::open(out, global, Verify::Header)?;
    let form = Meant::of_file(&index, out, global)?.key_form();
    let key = |rank: Option<u64>| -> Result<Option<[String; 2]>, Failure> {
        let Some(rank) = rank else { return Ok(None) };
        let tuple = index.tuple(rank).map_err(errors::reading(out))?;
        Ok(tuple.map(|(key, _)| [datum_text(&key, form), datum_json(&key, form).to_string()]))
    };
    let mut lost = Vec::new();
    let mut before = 0;
    for ranks in done.lost.iter().flatten() {
        let tuples = ranks.end - ranks.start;
        let next = ranks.start - before;
        lost.push(Lost {
            rank: ranks.start,
            tuples,
            after: key(next.checked_sub(1))?,
            before: key(Some(next))?,
        });
        before += tuples;
    }
    Ok(Saved { out: out.to_owned(), tuples: done.summary.tuples, lost_tuples: done.lost_tuples(), lost })
}

impl Saved {
    /// Returns one line per run of lost tuples, and one for all.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Lost { rank, tuples, after, before } in &self.lost {
            let place = match (after, before) {
                (Some([after, _]), Some([before, _])) => format!("keys from {after} to {before}"),
                (Some([after, _]), None) => format!("keys from {after} on"),
                (None, Some([before, _])) => format!("keys up to {before}"),
                (None, None) => "all keys".to_owned(),
            };
            let _ =
                writeln!(text, "lost: {} from rank {}: {place}", counted(*tuples, "tuple"), grouped(*rank));
        }
        let saved = counted(self.tuples, "tuple");
        let _ = match self.lost_tuples {
            0 => writeln!(text, "salvaged: {}: {saved}, none lost", shown(&self.out)),
            lost => writeln!(text, "salvaged: {}: {saved}, {} lost", shown(&self.out), grouped(lost)),
        };
        text
    }

    /// Returns the same as JSON.
    pub fn document(&self) -> Value {
        let key = |key: &Option<[String; 2]>| {
            let parsed = key.as_ref().and_then(|[_, json]| serde_json::from_str(json).ok());
            parsed.unwrap_or(Value::Null)
        };
        let lost: Vec<Value> = self
            .lost
            .iter()
            .map(|lost| {
                json!({
                    "rank": json::int(lost.rank),
                    "tuples": json::int(lost.tuples),
                    "after": key(&lost.after),
                    "before": key(&lost.before),
                })
            })
            .collect();
        json!({
            "file": self.out.display().to_string(),
            "tuples": json::int(self.tuples),
            "lost_tuples": json::int(self.lost_tuples),
            "lost": lost,
        })
    }
}
