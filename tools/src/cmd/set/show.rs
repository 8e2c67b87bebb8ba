//! `pleach inspect DIR`: what a manifest says.

use super::build::put_manifest;
use super::entries;
use crate::cli::{Global, Verify};
use crate::failure::{ExitStatus, Failure};
use crate::render::json;
use crate::render::picture::datum_text;
use crate::render::table::{Side, table};
use crate::render::text::{counted, grouped, hex, printable, shown};
use crate::search;
use crate::stdout;
use pleach_format::Meaning;
use pleach_set::key_datum;
use std::path::Path;

/// Files that are shown to people.
const SHOWN: usize = 40;

pub fn show(path: &Path, global: &Global) -> Result<ExitStatus, Failure> {
    let set = search::open_set(path, global, Verify::Header)?;
    let (manifest, schema) = (set.manifest(), set.schema());
    if global.json {
        let mut document = json::document("set-inspect");
        document.insert("set".to_owned(), path.display().to_string().into());
        put_manifest(manifest, &mut document);
        document
            .insert("entries".to_owned(), manifest.entries().map(|entry| entries::entry(&entry)).collect());
        stdout::print_json(document)?;
        return Ok(ExitStatus::Success);
    }
    let meaning = Meaning::new(schema.key_type, &schema.meta.key_logical);
    let values = Meaning::new(schema.value_type, &schema.meta.value_logical);
    let mut text = format!(
        "{}: set {}, generation {} (made from {})\n{} of {}, {} bytes; {} keys with {} values; {} a file\n",
        shown(path),
        hex(&manifest.facts().set_id),
        manifest.generation(),
        manifest.facts().parent,
        counted(manifest.files() as u64, "file"),
        counted(manifest.tuples(), "tuple"),
        grouped(manifest.file_bytes()),
        meaning,
        printable(&values.to_string()),
        counted(schema.partition_tuples, "tuple"),
    );
    let form = meaning.form();
    let head = [
        ("file", Side::Right),
        ("tuples", Side::Right),
        ("bytes", Side::Right),
        ("first key", Side::Left),
        ("last key", Side::Left),
        ("name", Side::Left),
    ];
    let rows: Vec<[String; 6]> = manifest
        .entries()
        .take(SHOWN)
        .enumerate()
        .map(|(at, entry)| {
            let [min, max] =
                [&entry.min, &entry.max].map(|key| datum_text(&key_datum(schema.key_type, key), form));
            [at.to_string(), grouped(entry.tuples), grouped(entry.file_bytes), min, max, entry.name]
        })
        .collect();
    if !rows.is_empty() {
        text.push_str(&table(&head, &rows, None));
    }
    if manifest.files() > SHOWN {
        text.push_str(&format!("... and {} more: --json shows all\n", manifest.files() - SHOWN));
    }
    stdout::print_people(&text)?;
    Ok(ExitStatus::Success)
}
