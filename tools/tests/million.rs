//! A million floors, ceilings, intervals and prefixes from the command line, against arrays with all answers.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

const KEYS: usize = 1 << 21;
const ROWS: usize = 1 << 18;
const QUERIES: usize = 1_000_000;

fn mix(x: usize) -> usize {
    let x = (x as u64 ^ x as u64 >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    (x ^ x >> 33) as usize
}

fn key(row: usize) -> usize {
    mix(row) % KEYS
}

fn query(at: usize) -> usize {
    mix(at + (1 << 40)) % KEYS
}

/// What a command prints; some keys may have no answer.
fn printed(folder: &Path, arguments: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
    let output = command.current_dir(folder).args(arguments.split(' ')).output().expect("the binary runs");
    assert!(output.stderr.is_empty(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("is text")
}

fn write(folder: &Path, name: &str, lines: impl Iterator<Item = String>) {
    let mut text = String::new();
    lines.for_each(|line| writeln!(text, "{line}").expect("writes"));
    fs::write(folder.join(name), text).expect("writes");
}

#[test]
fn near_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let head = std::iter::once("k,v".to_owned());
    write(folder, "t.csv", head.chain((0..ROWS).map(|row| format!("{},{row}", key(row)))));
    write(folder, "keys", (0..QUERIES).map(|at| query(at).to_string()));
    printed(folder, "build t.csv -o t -q --value-type u32");
    let (mut first, mut last) = (vec![None; KEYS], vec![None; KEYS]);
    for row in 0..ROWS {
        first[key(row)].get_or_insert(row);
        last[key(row)] = Some(row);
    }
    for (option, is_floor) in [("--floor", true), ("--ceiling", false)] {
        let mut near = vec![None; KEYS];
        let mut held = None;
        for turn in 0..KEYS {
            let key = if is_floor { turn } else { KEYS - 1 - turn };
            held = if is_floor { last[key] } else { first[key] }.map(|row| (key, row)).or(held);
            near[key] = held;
        }
        let lines = (0..QUERIES).filter_map(|at| {
            let (key, row) = near[query(at)]?;
            Some(format!("{}\t{key}\t{row}\n", query(at)))
        });
        let expected: String = lines.collect();
        assert!(printed(folder, &format!("get t --keys keys {option}")) == expected, "{option}");
    }
}

#[test]
fn intervals() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut starts: Vec<usize> = (0..ROWS).map(key).collect();
    starts.sort_unstable();
    starts.dedup();
    let end = |at: usize| {
        let room = starts.get(at + 1).copied().unwrap_or(KEYS) - starts[at];
        starts[at] + [0, room - 1, room / 2][at % 3]
    };
    let row = |at: usize| format!("{},{},{at}", starts[at], end(at));
    write(folder, "i.csv", std::iter::once("s,e,v".to_owned()).chain((0..starts.len()).map(row)));
    write(folder, "keys", (0..QUERIES).map(|at| query(at).to_string()));
    printed(folder, "build i.csv -o i -q --interval e --value v");
    let mut holders = vec![None; KEYS];
    for (at, &start) in starts.iter().enumerate() {
        holders[start..=end(at)].fill(Some(at));
    }
    let lines = (0..QUERIES).filter_map(|at| {
        let holder = holders[query(at)]?;
        Some(format!("{}\t{}\t{}\t{holder}\n", query(at), starts[holder], end(holder)))
    });
    let expected: String = lines.collect();
    assert!(printed(folder, "get i --keys keys") == expected);
}

#[test]
fn prefixes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let head = std::iter::once("k,v".to_owned());
    write(folder, "p.csv", head.chain((0..ROWS).map(|row| format!("{:06x},{row}", key(row)))));
    printed(folder, "build p.csv -o p -q --key-type utf8 --value-type u32");
    let prefix = |at: usize| (query(at) >> (4 * (at % 6)), 6 - at % 6);
    let written = |at: usize| {
        let (number, digits) = prefix(at);
        format!("{number:0digits$x}")
    };
    write(folder, "prefixes", (0..QUERIES).map(written));
    let mut below = vec![0usize; KEYS + 1];
    (0..ROWS).for_each(|row| below[key(row) + 1] += 1);
    (0..KEYS).for_each(|key| below[key + 1] += below[key]);
    let lines = (0..QUERIES).map(|at| {
        let (number, digits) = prefix(at);
        let bound = |number: usize| below[(number << (4 * (6 - digits))).min(KEYS)];
        format!("{}\t{}\n", written(at), bound(number + 1) - bound(number))
    });
    let expected: String = lines.collect();
    assert!(printed(folder, "range p --prefixes prefixes --count") == expected);
}
