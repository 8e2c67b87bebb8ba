//! `pleach diff`: tells which tuples of one file another one lacks, has more, or has with another value.
//!
//! Both files are in key order, so one walk over both at once finds the differences, as `diff` finds those of sorted
//! lists. The values of a key are compared as a multiset: their order says when tuples were added, and is not
//! compared. Every block that is read is verified.

use crate::any::{Any, order};
use crate::cli::{DiffArgs, Global, Verify};
use crate::errors;
use crate::failure::{self, Code, ExitStatus, Failure};
use crate::inputs::{Inputs, Values};
use crate::meant::Meant;
use crate::message::Message;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::counted;
use crate::search;
use crate::stdout::{self, Output};
use pleach::{Datum, Index, Meta};
use pleach_builder::BuildOptions;
use pleach_format::Meaning;
use std::path::Path;

/// Numbers of tuples that differ.
#[derive(Default)]
struct Counts {
    added: u64,
    removed: u64,
    changed: u64,
}

/// A file, and the next tuple of it.
struct Side<'a> {
    any: Any<'a>,
    rank: u64,
    tuples: u64,
    next: Option<(Datum<'a>, Datum<'a>)>,
}

impl<'a> Side<'a> {
    fn new(any: Any<'a>, tuples: u64) -> Result<Self, Failure> {
        let mut side = Self { any, rank: 0, tuples, next: None };
        side.load()?;
        Ok(side)
    }

    fn load(&mut self) -> Result<(), Failure> {
        self.next = if self.rank < self.tuples { Some(self.any.tuple(self.rank)?) } else { None };
        Ok(())
    }

    /// Takes the next tuple.
    fn take(&mut self) -> Result<Option<(Datum<'a>, Datum<'a>)>, Failure> {
        let taken = self.next.take();
        self.rank += 1;
        self.load()?;
        Ok(taken)
    }

    /// Takes the values of a key, which is the next one.
    fn values(&mut self, key: &Datum<'a>) -> Result<Vec<Datum<'a>>, Failure> {
        let mut values = Vec::new();
        while self.next.as_ref().is_some_and(|(next, _)| order(next, key).is_eq()) {
            values.extend(self.take()?.map(|(_, value)| value));
        }
        Ok(values)
    }
}

pub fn run(args: &DiffArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let paths = [(&*args.left, Values::Alike), (&*args.right, Values::Alike)];
    let inputs = Inputs::new(&paths, &args.tables, Some(&args.sides), global)?;
    let opened = inputs.open(Verify::Touched, &std::env::temp_dir(), &BuildOptions::default())?;
    let [left, right] = &opened[..] else {
        return Err(Failure::new(Code::Failed, Message::new("an input is missing")));
    };
    agree(args, left, right)?;
    let records = (search::record(left, &args.left)?, search::record(right, &args.right)?);
    let meant = Meant::of_file(left, &args.left, global)?;
    let (mut one, mut two) = (
        Side::new(Any::new(left, &args.left, records.0.as_ref(), &meant), left.len())?,
        Side::new(Any::new(right, &args.right, records.1.as_ref(), &meant), right.len())?,
    );
    let progress = Progress::new(global);
    let mut writer = Writer { args, global, output: Output::new(), counts: Counts::default() };
    let mut steps = 0_u64;
    loop {
        let key = match (&one.next, &two.next) {
            (None, None) => break,
            (Some((key, _)), None) | (None, Some((key, _))) => key.clone(),
            (Some((left, _)), Some((right, _))) => {
                if order(left, right).is_le() {
                    left.clone()
                } else {
                    right.clone()
                }
            }
        };
        let (mut removed, mut added) = (one.values(&key)?, two.values(&key)?);
        without_common(&mut removed, &mut added);
        writer.put(&one.any, &key, &removed, &added)?;
        steps += 1;
        if steps.is_multiple_of(1 << 12) {
            progress.show("comparing", one.rank + two.rank, Some(one.tuples + two.tuples));
            if progress.is_interrupted() {
                return Err(Failure::Interrupted);
            }
        }
    }
    drop(progress);
    let status = writer.finish()?;
    search::without(&inputs.left_out(), status, global)
}

/// Refuses files whose keys or values have different types.
fn agree(args: &DiffArgs, left: &Index, right: &Index) -> Result<(), Failure> {
    let meta =
        |index: &Index, path: &Path| -> Result<Meta, Failure> { index.meta().map_err(errors::reading(path)) };
    let (ours, theirs) = (meta(left, &args.left)?, meta(right, &args.right)?);
    let keys = |index: &Index, meta: &Meta| Meaning::new(index.key_type(), &meta.key_logical).to_string();
    let values =
        |index: &Index, meta: &Meta| Meaning::new(index.value_type(), &meta.value_logical).to_string();
    let pairs = [
        ("keys", keys(left, &ours), keys(right, &theirs)),
        ("values", values(left, &ours), values(right, &theirs)),
    ];
    for (role, here, there) in pairs {
        if here != there {
            let what = format!("its {role} are {there}, but those of {} are {here}", args.left.display());
            let message = Message::new(what).at(args.right.display());
            return Err(Failure::new(Code::TypesDiffer, message.advise("compare files of one type")));
        }
    }
    Ok(())
}

/// Writes differences.
struct Writer<'a> {
    args: &'a DiffArgs,
    global: &'a Global,
    output: Output,
    counts: Counts,
}

impl Writer<'_> {
    /// Writes the differences of one key.
    fn put(
        &mut self,
        any: &Any<'_>,
        key: &Datum<'_>,
        removed: &[Datum<'_>],
        added: &[Datum<'_>],
    ) -> Result<(), Failure> {
        let changed = removed.len().min(added.len()) as u64;
        self.counts.changed += changed;
        self.counts.removed += removed.len() as u64 - changed;
        self.counts.added += added.len() as u64 - changed;
        if self.args.count {
            return Ok(());
        }
        for (values, sign, word) in [(removed, b"-\t", "removed"), (added, b"+\t", "added")] {
            for value in values {
                let out = &mut self.output.buffer;
                if self.global.json {
                    out.extend_from_slice(format!("{{\"difference\":\"{word}\",").as_bytes());
                    let start = out.len();
                    any.put(key, value, true, out);
                    // The tuple is an object: its members follow.
                    out.remove(start);
                } else {
                    out.extend_from_slice(sign);
                    any.put(key, value, false, out);
                }
                self.output.relieve()?;
            }
        }
        Ok(())
    }

    /// Ends the output; returns whether there were differences.
    fn finish(mut self) -> Result<ExitStatus, Failure> {
        self.output.flush()?;
        let Counts { added, removed, changed } = self.counts;
        if self.args.count {
            if self.global.json {
                let mut document = json::document("diff");
                for (name, count) in [("added", added), ("removed", removed), ("changed", changed)] {
                    document.insert(name.to_owned(), json::int(count));
                }
                stdout::print_json(document)?;
            } else {
                stdout::print(
                    format!("added\t{added}\nremoved\t{removed}\nchanged\t{changed}\n").as_bytes(),
                )?;
            }
        } else if !self.global.quiet && !self.global.json {
            failure::say(&format!("{} added, {removed} removed, {changed} changed", counted(added, "tuple")));
        }
        let is_equal = added + removed + changed == 0;
        Ok(if is_equal { ExitStatus::Success } else { ExitStatus::Missing })
    }
}

/// Removes the values that both have, each as often as both have it. O(n log n), or O(n) if the lists are equal.
fn without_common(one: &mut Vec<Datum<'_>>, two: &mut Vec<Datum<'_>>) {
    if one.len() == two.len() && one.iter().zip(&*two).all(|(one, two)| order(one, two).is_eq()) {
        one.clear();
        two.clear();
        return;
    }
    one.sort_by(order);
    two.sort_by(order);
    let mut others = std::mem::take(two).into_iter().peekable();
    one.retain(|value| {
        two.extend(std::iter::from_fn(|| others.next_if(|other| order(other, value).is_lt())));
        others.next_if(|other| order(other, value).is_eq()).is_none()
    });
    two.extend(others);
}
