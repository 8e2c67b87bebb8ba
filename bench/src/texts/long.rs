//! Texts with long common parts: URLs of few hosts, paths, qualified names, lines of a log.
//!
//! Each follows from a number and a seed. Different numbers may give the same text; who wants distinct ones
//! leaves the later one out. Parts are drawn by Zipf's law from small vocabularies, and folders from those
//! that their parent has, so that neighbours in order agree in most of their bytes.

use super::decimal;
use super::words::{Draws, word};
use crate::data::mix64;

/// Longest path.
pub(super) const LONGEST_PATH: usize = 200;

const HOSTS: u64 = 1000;
const VOCABULARY: u64 = 20_000;
const TLDS: [&str; 8] = ["com", "com", "com", "org", "net", "de", "co.uk", "io"];

/// Appends a word of the vocabulary, sooner a frequent one.
fn part(draws: &mut Draws, out: &mut Vec<u8>) {
    word(draws.zipf_below(VOCABULARY), 0, out);
}

/// Appends a URL: one of 1,000 hosts, 1 to 6 parts, and in a third of all a number.
pub(super) fn url(i: u64, seed: u64, out: &mut Vec<u8>) {
    let mut draws = Draws::new(seed ^ mix64(i));
    let rank = draws.zipf_below(HOSTS);
    let mut host = Draws::new(mix64(seed.wrapping_add(rank)));
    out.extend_from_slice(b"https://");
    if host.below(2) == 0 {
        out.extend_from_slice(b"www.");
    }
    word(100 + host.below(VOCABULARY), 0, out);
    out.push(b'.');
    out.extend_from_slice(TLDS[host.below(TLDS.len() as u64) as usize].as_bytes());
    for _ in 0..=draws.below(6) {
        out.push(b'/');
        part(&mut draws, out);
    }
    if draws.below(3) == 0 {
        out.extend_from_slice(b"?id=");
        decimal(draws.below(1_000_000), 1, out);
    }
}

const ROOTS: [&str; 8] = ["home", "usr", "var", "srv", "opt", "data", "mnt", "tmp"];
const ENDINGS: [&str; 12] =
    ["rs", "py", "c", "h", "txt", "json", "png", "jpg", "csv", "parquet", "md", "so.1"];

/// Appends a path of nested folders: 8 to 200 bytes.
pub(super) fn path(i: u64, seed: u64, out: &mut Vec<u8>) {
    let start = out.len();
    let mut draws = Draws::new(seed ^ mix64(i));
    let root = draws.zipf_below(ROOTS.len() as u64);
    out.push(b'/');
    out.extend_from_slice(ROOTS[root as usize].as_bytes());
    let mut folder = mix64(seed ^ !root);
    for _ in 0..1 + draws.below(8) {
        // Which folders there are is the parent's choice, which of them this path lies in its own.
        folder = mix64(folder ^ draws.zipf_below(40));
        out.push(b'/');
        let mut own = Draws::new(folder);
        part(&mut own, out);
        if own.below(4) == 0 {
            out.push(b'-');
            part(&mut own, out);
        }
    }
    out.push(b'/');
    part(&mut draws, out);
    match draws.below(4) {
        0 => {
            out.push(b'_');
            decimal(draws.below(10_000), 4, out);
        }
        1 => {
            out.push(b'_');
            part(&mut draws, out);
        }
        _ => {}
    }
    out.push(b'.');
    out.extend_from_slice(ENDINGS[draws.zipf_below(ENDINGS.len() as u64) as usize].as_bytes());
    out.truncate(start + LONGEST_PATH);
}

/// Appends a word whose first letter is a capital.
fn capital(draws: &mut Draws, out: &mut Vec<u8>) {
    let start = out.len();
    part(draws, out);
    out[start].make_ascii_uppercase();
}

/// Appends a qualified name: `org.words.parts.SomeClass.someMember`.
pub(super) fn name(i: u64, seed: u64, out: &mut Vec<u8>) {
    let mut draws = Draws::new(seed ^ mix64(i));
    let owner = draws.zipf_below(300);
    let mut package = mix64(seed ^ !owner);
    let mut own = Draws::new(package);
    out.extend_from_slice(["com", "org", "net", "io"][own.below(4) as usize].as_bytes());
    out.push(b'.');
    word(100 + own.below(VOCABULARY), 0, out);
    for _ in 0..1 + draws.below(4) {
        package = mix64(package ^ draws.zipf_below(20));
        out.push(b'.');
        part(&mut Draws::new(package), out);
    }
    let mut class = Draws::new(mix64(package ^ draws.zipf_below(200) << 32));
    out.push(b'.');
    for _ in 0..1 + class.below(3) {
        capital(&mut class, out);
    }
    out.push(b'.');
    part(&mut draws, out);
    for _ in 0..draws.below(3) {
        capital(&mut draws, out);
    }
}

const LEVELS: [&str; 4] = ["INFO", "DEBUG", "WARN", "ERROR"];

/// Appends a line of a log: time, host, level, program and a message with a number.
pub(super) fn log_line(i: u64, seed: u64, out: &mut Vec<u8>) {
    let mut draws = Draws::new(seed ^ mix64(i));
    out.extend_from_slice(b"2026-11-");
    let seconds = draws.below(28 * 86_400);
    for (part, width, end) in [
        (1 + seconds / 86_400, 2, "T"),
        (seconds / 3600 % 24, 2, ":"),
        (seconds / 60 % 60, 2, ":"),
        (seconds % 60, 2, "."),
        (draws.below(1000), 3, "Z web-"),
        (1 + draws.zipf_below(60), 2, " "),
    ] {
        decimal(part, width, out);
        out.extend_from_slice(end.as_bytes());
    }
    out.extend_from_slice(LEVELS[draws.zipf_below(4) as usize].as_bytes());
    // A program has few messages, which differ in a number.
    let program = draws.zipf_below(200);
    out.push(b' ');
    word(program, 1, out);
    let mut message = Draws::new(mix64(program ^ draws.zipf_below(30) << 32));
    out.push(b':');
    for _ in 0..3 + message.below(6) {
        out.push(b' ');
        part(&mut message, out);
    }
    out.push(b' ');
    decimal(draws.below(100_000), 1, out);
}
