//! SET.md says what the code does: rules, sizes, and the manifest of its appendix byte by byte.

mod common;

use pleach_format::meta::Meta;
use pleach_format::{KeyType, ValueType};
use pleach_set::{
    ENTRY_BYTES, Entry, Facts, HEAD_BYTES, MAGIC, Manifest, Rule, Schema, VERSION_MAJOR, VERSION_MINOR,
};
use std::fmt::Write;

fn spec() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../spec/SET.md");
    std::fs::read_to_string(path).expect("spec/SET.md")
}

#[test]
fn the_rules_are_those_of_the_page() {
    let spec = spec();
    for rule in Rule::ALL {
        let row = format!("| {} | {} | {} |", *rule as u32, rule.name(), rule.text());
        assert!(spec.contains(&row), "SET.md lacks:\n{row}");
    }
    let rows = spec.split("## 7.").nth(1).and_then(|rest| rest.split("## 8.").next()).expect("section 7");
    assert_eq!(rows.lines().filter(|line| line.starts_with("| ")).count(), Rule::ALL.len() + 1);
}

#[test]
fn the_sizes_are_those_of_the_page() {
    let spec = spec();
    let magic: Vec<String> = MAGIC.iter().map(|byte| format!("{byte:02X}")).collect();
    for text in [
        format!("a head of {HEAD_BYTES} bytes, an entry of {ENTRY_BYTES} bytes"),
        format!("`{}`", magic.join(" ")),
        format!("# Sets of Pleach files, version {VERSION_MAJOR}.{VERSION_MINOR}"),
    ] {
        assert!(spec.contains(&text), "SET.md lacks: {text}");
    }
    // Tables of fields have no gaps.
    for (section, bytes) in [("## 3.", HEAD_BYTES), ("## 5.", ENTRY_BYTES)] {
        let rows = spec.split(section).nth(1).expect("the section").lines();
        let mut at = 0;
        for row in rows.take_while(|line| !line.starts_with("## ")) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [_, offset, length, ..] = cells[..] else { continue };
            let (Ok(offset), Ok(length)) = (offset.parse::<usize>(), length.parse::<usize>()) else {
                continue;
            };
            assert_eq!(offset, at, "{row}");
            at += length;
        }
        assert_eq!(at, bytes, "{section}");
    }
}

/// The manifest of the appendix.
fn example() -> Manifest {
    let meta = Meta { key_name: "id".into(), value_name: "n".into(), ..Meta::default() };
    let schema = Schema {
        key_type: KeyType::U32,
        value_type: ValueType::U32,
        meta,
        unique: false,
        partition_tuples: 100,
    };
    let facts = Facts { set_id: [0xa1; 16], generation: 1, parent: 0, created_ms: 0, schema };
    let entry = |name: &str, digest: u8, tuples: u64, min: u32, max: u32| Entry {
        name: format!("files/{name}.pleach"),
        file_bytes: 28_672,
        digest: [digest; 32],
        file_id: [digest + 1; 16],
        head_sum: 0x0102_0304,
        tuples,
        min: min.to_be_bytes().to_vec(),
        max: max.to_be_bytes().to_vec(),
    };
    let entries = [entry("one", 0x10, 100, 0, 99), entry("two", 0x20, 50, 100, 149)];
    Manifest::new(&facts, &entries).expect("it is valid")
}

fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut skipped = false;
    for (at, line) in bytes.chunks(16).enumerate() {
        // Lines of zeros after the first are left out.
        if line.iter().all(|&byte| byte == 0) && line.len() == 16 {
            if !skipped {
                text.push_str("*\n");
            }
            skipped = true;
            continue;
        }
        skipped = false;
        let _ = write!(text, "{:08x} ", at * 16);
        text.extend(line.iter().map(|byte| format!(" {byte:02x}")));
        text.push('\n');
    }
    let _ = writeln!(text, "{:08x}", bytes.len());
    text
}

#[test]
fn the_example_is_that_of_the_page() {
    let dump = dump(example().as_bytes());
    assert!(spec().contains(&dump), "SET.md lacks its example:\n{dump}");
}
