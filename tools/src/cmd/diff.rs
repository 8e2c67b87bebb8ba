//! `pleach diff`: tells which tuples of one file another one lacks, has more, or has with another value.
//!
//! Both files are in key order, so one walk over both at once finds the differences, as `diff` finds those of sorted
//! lists. The values of a key are compared as a multiset: their order says when tuples were added, and is not
//! compared. Every block that is read is verified.

use crate::any::Any;
use crate::cli::{DiffArgs, Global, Verify};
use crate::errors;
use crate::failure::{self, Code, ExitStatus, Failure};
use crate::meant::Meant;
use crate::message::Message;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::counted;
use crate::search;
use crate::stdout::{self, Output};
use pleach::{Datum, Index, Meta};
use pleach_format::Meaning;
use std::cmp::Ordering;
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
    let open = |path: &Path| search::open(path, global, Verify::Touched);
    let (left, right) = (open(&args.left)?, open(&args.right)?);
    agree(args, &left, &right)?;
    let records = (search::record(&left, &args.left)?, search::record(&right, &args.right)?);
    let meant = Meant::of_file(&left, &args.left, global)?;
    let (mut one, mut two) = (
        Side::new(Any::new(&left, &args.left, records.0.as_ref(), &meant), left.len())?,
        Side::new(Any::new(&right, &args.right, records.1.as_ref(), &meant), right.len())?,
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
        // What both have is no difference.
        removed.retain(|value| match added.iter().position(|other| is_same(value, other)) {
            Some(at) => {
                added.remove(at);
                false
            }
            None => true,
        });
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
    writer.finish()
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

/// Compares keys of one type, in the order of the file.
fn order(one: &Datum<'_>, two: &Datum<'_>) -> Ordering {
    match (one, two) {
        (Datum::U32(one), Datum::U32(two)) => one.cmp(two),
        (Datum::U64(one), Datum::U64(two)) => one.cmp(two),
        (Datum::U128(one), Datum::U128(two)) => one.cmp(two),
        (Datum::I32(one), Datum::I32(two)) => one.cmp(two),
        (Datum::I64(one), Datum::I64(two)) => one.cmp(two),
        (Datum::F32(one), Datum::F32(two)) => one.total_cmp(two),
        (Datum::F64(one), Datum::F64(two)) => one.total_cmp(two),
        (Datum::Bytes(one) | Datum::Utf8(one), Datum::Bytes(two) | Datum::Utf8(two)) => one.cmp(two),
        // Types agree.
        _ => Ordering::Equal,
    }
}

/// Returns true if values of one type have the same bits.
fn is_same(one: &Datum<'_>, two: &Datum<'_>) -> bool {
    order(one, two).is_eq()
}
