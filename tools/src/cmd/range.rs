//! `pleach range`: prints the tuples between two keys, in order.
//!
//! Each end is converted to a rank by one descent; the tuples between them are copied in bulk and formatted,
//! forwards or backwards.

use crate::any::{Any, put_line};
use crate::cli::{Global, RangeArgs, Verify};
use crate::cmd::get::put_tuple;
use crate::errors;
use crate::failure::{ExitStatus, Failure};
use crate::keys::not_a_key;
use crate::meant::Meant;
use crate::parse::FromText;
use crate::render::text::{Text, put_meant, put_meant_json};
use crate::search::{self, Opened};
use crate::stdout::{self, Output};
use pleach::{Datum, Key, Typed, Value};
use std::path::Path;

/// Tuples per copy.
const PIECE: u64 = 1 << 15;
/// Prefixes that are read at a time.
const PREFIXES_MAX: usize = 1 << 13;
/// Text of an open end.
const OPEN: &str = "..";

pub fn run(args: &RangeArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let opened = Opened::new(&args.file, global, Verify::Touched)?;
    let index = opened.index();
    let record = search::record(index, &args.file)?;
    let meant = Meant::of_file(index, &args.file, global)?;
    let any = Any::new(index, &args.file, record.as_ref(), &meant).of_set(opened.set());
    let is_any = opened.set().is_some() || Any::is_needed(index, record.as_ref(), &meant);
    let any = is_any.then_some(any);
    if let Some(path) = &args.prefixes {
        let any = any.unwrap_or(Any::new(index, &args.file, None, &meant));
        let status = each_prefix(&any, path, args, global)?;
        return opened.end(status, global);
    }
    let ranks = match (&any, &args.prefix) {
        (Some(any), None) => any_ranks(any, args, opened.len())?,
        (any, Some(prefix)) => {
            let any = any.unwrap_or(Any::new(index, &args.file, None, &meant));
            limited(any.prefix(prefix)?, args)
        }
        (None, None) => {
            pleach::with_typed!(index, |view| ranks_of(&view, args)).map_err(errors::typing(&args.file))??
        }
    };
    if args.explain {
        let order = if args.reverse { "from the end" } else { "from the start" };
        search::explain(&[
            opened.describe(),
            format!("two descents, then ranks {} to {} {order}", ranks.start, ranks.end),
        ]);
    }
    if let Some(found) = meant.approximate.filter(|_| args.explain) {
        search::explain(&[found.describe()]);
    }
    if args.count {
        let status = stdout::print_count("range", ranks.end - ranks.start, global.json)?;
        return opened.end(status, global);
    }
    match &any {
        Some(any) => print_any(any, args, global, ranks)?,
        None => pleach::with_typed!(index, |view| print(&view, args, global, ranks.clone()))
            .map_err(errors::typing(&args.file))??,
    }
    opened.end(ExitStatus::Success, global)
}

/// Prints each prefix of a file before its tuples, or before their number.
fn each_prefix(any: &Any<'_>, path: &Path, args: &RangeArgs, global: &Global) -> Result<ExitStatus, Failure> {
    if args.explain {
        search::explain(&["two descents for each prefix".to_owned()]);
    }
    let mut lines = any.lines(path)?;
    let (mut prefixes, mut output) = (Vec::<Vec<u8>>::new(), Output::new());
    loop {
        let end = lines.next_batch_of(&mut prefixes, PREFIXES_MAX, |line| Ok(line.to_vec()))?;
        for prefix in &prefixes {
            let text = String::from_utf8_lossy(prefix);
            let mut ranks = limited(any.prefix(&text)?, args);
            let shown = Datum::Utf8(prefix[..].into());
            if args.count {
                let count = Datum::U64(ranks.end - ranks.start);
                put_line((&shown, None), (&count, None), "count", global.json, &mut output.buffer);
                output.relieve()?;
                continue;
            }
            while let Some(rank) = if args.reverse { ranks.next_back() } else { ranks.next() } {
                if any.is_left_out(rank)? {
                    continue;
                }
                let (key, value) = any.tuple(rank)?;
                if global.json {
                    output.buffer.extend_from_slice(b"{\"prefix\":");
                    put_meant_json(&shown, None, &mut output.buffer);
                    output.buffer.push(b',');
                    let start = output.buffer.len();
                    any.put(&key, &value, true, &mut output.buffer);
                    // The tuple is an object: its members follow.
                    output.buffer.remove(start);
                } else {
                    put_meant(&shown, None, &mut output.buffer);
                    output.buffer.push(b'\t');
                    any.put(&key, &value, false, &mut output.buffer);
                }
                output.relieve()?;
            }
        }
        if let Some(failure) = end {
            output.flush()?;
            return Err(failure);
        }
        if prefixes.is_empty() {
            output.flush()?;
            return Ok(ExitStatus::Success);
        }
    }
}

/// Applies --limit to a range of ranks.
fn limited(ranks: std::ops::Range<u64>, args: &RangeArgs) -> std::ops::Range<u64> {
    // LO above HI is an empty range.
    let (start, end) = (ranks.start, ranks.end.max(ranks.start));
    let count = args.limit.unwrap_or(u64::MAX).min(end - start);
    if args.reverse { end - count..end } else { start..start + count }
}

/// Returns the ranks between LO and HI of a file with byte strings, after --limit.
fn any_ranks(any: &Any<'_>, args: &RangeArgs, tuples: u64) -> Result<std::ops::Range<u64>, Failure> {
    let parsed = |text: &str, name: &str| {
        any.parse(text.as_bytes()).map_err(|message| Failure::usage(message.first_at(name)))
    };
    // A bound with the first parts of a composite key stands for all keys that have them.
    let start = match args.lo.as_deref().filter(|&lo| lo != OPEN) {
        None => 0,
        Some(lo) => match any.first_parts(lo)? {
            Some(ranks) => ranks.start,
            None => any.lower_bound(&parsed(lo, "argument LO")?)?,
        },
    };
    let end = match args.hi.as_deref().filter(|&hi| hi != OPEN) {
        None => tuples,
        Some(hi) => match any.first_parts(hi)? {
            Some(ranks) if args.inclusive => ranks.end,
            Some(ranks) => ranks.start,
            None if args.inclusive => any.upper_bound(&parsed(hi, "argument HI")?)?,
            None => any.lower_bound(&parsed(hi, "argument HI")?)?,
        },
    };
    Ok(limited(start..end, args))
}

fn print_any(
    any: &Any<'_>,
    args: &RangeArgs,
    global: &Global,
    mut ranks: std::ops::Range<u64>,
) -> Result<(), Failure> {
    let mut output = Output::new();
    while let Some(rank) = if args.reverse { ranks.next_back() } else { ranks.next() } {
        if any.is_left_out(rank)? {
            continue;
        }
        let (key, value) = any.tuple(rank)?;
        any.put(&key, &value, global.json, &mut output.buffer);
        output.relieve()?;
    }
    output.flush()
}

/// Returns the ranks between LO and HI, after --limit.
fn ranks_of<K: Key + FromText, V: Value>(
    view: &Typed<'_, K, V>,
    args: &RangeArgs,
) -> Result<std::ops::Range<u64>, Failure> {
    let failed = errors::reading(&args.file);
    let bound = |text: &Option<String>, name: &str| match text.as_deref() {
        None | Some(OPEN) => Ok(None),
        Some(text) => K::from_text(text.as_bytes())
            .map(Some)
            .ok_or_else(|| not_a_key::<K>(text.as_bytes()).map_advice(|advice| advice + ", or .."))
            .map_err(|message| Failure::usage(message.at(name))),
    };
    let (lo, hi) = (bound(&args.lo, "argument LO")?, bound(&args.hi, "argument HI")?);
    let start = match lo {
        Some(lo) => view.lower_bound(lo).map_err(failed)?,
        None => 0,
    };
    let end = match hi {
        Some(hi) if args.inclusive => view.upper_bound(hi).map_err(failed)?,
        Some(hi) => view.lower_bound(hi).map_err(failed)?,
        None => view.len(),
    };
    Ok(limited(start..end, args))
}

fn print<K: Key + Text, V: Value + Text>(
    view: &Typed<'_, K, V>,
    args: &RangeArgs,
    global: &Global,
    mut ranks: std::ops::Range<u64>,
) -> Result<(), Failure> {
    let mut output = Output::new();
    let piece = usize::try_from(PIECE.min(ranks.end - ranks.start)).unwrap_or(PIECE as usize);
    let mut keys = vec![K::default(); piece];
    let mut values = vec![V::default(); piece];
    while !ranks.is_empty() {
        let count = PIECE.min(ranks.end - ranks.start);
        let from = if args.reverse { ranks.end - count } else { ranks.start };
        let (keys, values) = (&mut keys[..count as usize], &mut values[..count as usize]);
        view.copy_range(from, keys, values).map_err(errors::reading(&args.file))?;
        let mut put = |(&key, &value): (&K, &V)| {
            put_tuple(key, value, b"value", global.json, &mut output.buffer);
            output.relieve()
        };
        if args.reverse {
            keys.iter().zip(values.iter()).rev().try_for_each(&mut put)?;
            ranks.end = from;
        } else {
            keys.iter().zip(values.iter()).try_for_each(&mut put)?;
            ranks.start += count;
        }
    }
    output.flush()
}
