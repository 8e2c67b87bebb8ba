//! The picture as JSON.

use super::{Found, Verdict, draw};
use crate::cli::Global;
use crate::render::json;
use crate::render::picture::{datum_json, key_ends};
use crate::render::text::hex;
use pleach_format::Meaning;
use pleach_format::approximate::Approximate;
use pleach_format::{Header, Record, Short};
use serde_json::{Map, Value, json};

impl Found<'_> {
    /// Describes everything that is known about the file.
    pub(super) fn document(&self, global: &Global) -> Map<String, Value> {
        let verdict = self.verdict();
        let mut document = json::document("inspect");
        document.insert("file".to_owned(), self.path.display().to_string().into());
        document.insert("file_bytes".to_owned(), json::int(self.file_bytes));
        document.insert("verdict".to_owned(), verdict.name().into());
        document.insert("problem".to_owned(), self.problem_text().map_or(Value::Null, Value::String));
        let fields: Vec<Value> = if verdict == Verdict::Foreign { Vec::new() } else { self.fields() }
            .into_iter()
            .map(|field| {
                json!({
                    "offset": field.offset.to_string(),
                    "length": field.length.to_string(),
                    "name": field.name,
                    "value": field.value,
                    "remark": field.remark,
                })
            })
            .collect();
        if let Some(header) = &self.header {
            self.describe(header, global, &mut document);
        }
        document.insert("fields".to_owned(), fields.into());
        document
    }

    fn describe(&self, header: &Header, global: &Global, document: &mut Map<String, Value>) {
        let superblock = &header.superblock;
        let meta = self.meta(header);
        let ends = key_ends(header);
        let builder = String::from_utf8_lossy(&superblock.builder).trim_end_matches('\0').to_owned();
        document.insert(
            "format".to_owned(),
            format!("{}.{}", superblock.version_major, superblock.version_minor).into(),
        );
        document.insert("generation".to_owned(), json::int(superblock.generation.get()));
        let lineage = superblock.lineage != [0; 16];
        document.insert("lineage".to_owned(), lineage.then(|| hex(&superblock.lineage)).into());
        document.insert("file_id".to_owned(), hex(&superblock.file_id).into());
        document.insert("file_id_verified".to_owned(), self.is_id_verified().into());
        document.insert("builder".to_owned(), builder.into());
        document.insert("tuples".to_owned(), json::int(header.tuples));
        document.insert("unique".to_owned(), header.is_unique().into());
        document.insert("intervals".to_owned(), (!meta.interval.is_empty()).into());
        let logical = Meaning::new(header.key_type, &meta.key_logical).logical;
        let found = Approximate::of(&logical, &meta.approximate, header.tuples);
        document.insert("approximate".to_owned(), json::approximate(found));
        let form = self.meant(header, global).key_form();
        document.insert(
            "key".to_owned(),
            json!({
                "type": header.key_type.to_string(),
                "name": meta.key_name,
                "logical": meta.key_logical,
                "min": ends.as_ref().map_or(Value::Null, |ends| datum_json(&ends.0, form)),
                "max": ends.as_ref().map_or(Value::Null, |ends| datum_json(&ends.1, form)),
            }),
        );
        let mut value = json!({
            "type": header.value_type.to_string(),
            "name": meta.value_name,
            "logical": meta.value_logical,
        });
        if let Some(record) = Record::of(header.value_type, &meta.value_logical) {
            value["record"] = (0..record.len())
                .map(|index| {
                    let field = &record.fields()[index];
                    json!({
                        "name": field.name,
                        "type": field.kind.to_string(),
                        "logical": field.logical,
                        "offset": record.offset(index),
                    })
                })
                .collect();
        }
        document.insert("value".to_owned(), value);
        document.insert("sections".to_owned(), sections(header));
        document.insert("spine".to_owned(), spine(header));
        document.insert(
            "tuple_lines".to_owned(),
            json!({
                "lines": header.lines.to_string(),
                "tuples_per_line": header.geometry.tuples_per_line(),
                "offset": header.lines_offset.to_string(),
                "word_bytes": header.geometry.key_bytes,
                "short": header.short.as_ref().map(short),
            }),
        );
    }
}

/// Describes the sections, in file order.
fn sections(header: &Header) -> Value {
    header
        .sections
        .iter()
        .map(|section| {
            let entry = &section.entry;
            json!({
                "tag": entry.tag.to_string(),
                "offset": entry.offset.to_string(),
                "length": entry.length.to_string(),
                "extent": section.extent().to_string(),
                "elements": entry.elements.to_string(),
                "share": section.extent() as f64 / header.file_bytes.max(1) as f64,
                "sums": entry.sums.to_string(),
                "sums_offset": entry.sums_offset.to_string(),
            })
        })
        .collect()
}

/// Describes short words: what is added to the bits of a word, and the first bit and the number of bits of each run.
fn short(short: &Short) -> Value {
    let runs: Vec<Value> = short.runs().map(|run| json!({ "from": run.from, "bits": run.bits })).collect();
    json!({ "base": format!("{:x}", short.base()), "runs": runs })
}

/// Describes the levels of the spine, root first.
fn spine(header: &Header) -> Value {
    header
        .spine
        .levels
        .iter()
        .enumerate()
        .rev()
        .map(|(level, shape)| {
            json!({
                "level": level,
                "encoding": shape.encoding.name(),
                "lines": shape.lines.to_string(),
                "fanout": shape.fanout,
                "children": shape.children.to_string(),
                // Lines of the level below, or tuple lines, in a child.
                "child_lines": if level == 0 { header.spine.child_lines } else { 1 },
                "offset": (header.spine_offset + shape.offset).to_string(),
                "share_of_full_keys": draw::level_share(header, shape),
            })
        })
        .collect()
}
