//! The picture in text.

use super::{Found, Verdict};
use crate::cli::Global;
use crate::render::picture::{self, datum_text};
use crate::render::text::{counted, grouped, hex, printable, shown};
use pleach_format::approximate::Approximate;
use pleach_format::interval::Ends;
use pleach_format::layout::{LINE_BYTES, Level};
use pleach_format::record::Field;
use pleach_format::{Header, Logical, Meaning, Record, Short};
use std::fmt::Write;

impl Found<'_> {
    /// Draws everything that is known about the file.
    pub(super) fn draw(&self, global: &Global, text: &mut String) {
        let verdict = self.verdict();
        let _ =
            writeln!(text, "{}: {}, {} bytes", shown(self.path), verdict.name(), grouped(self.file_bytes));
        if let Some(problem) = self.problem_text() {
            let _ = writeln!(text, "  problem   {problem}");
        }
        if verdict != Verdict::Whole {
            let _ = writeln!(text, "\nfields as stored");
            if verdict == Verdict::Foreign {
                let _ = writeln!(text, "  first bytes  {}", hex(&self.head[..self.head.len().min(32)]));
            } else {
                for field in self.fields() {
                    let remark = field.remark.map_or(String::new(), |remark| format!("   <-- {remark}"));
                    let value = printable(&field.value);
                    let _ = writeln!(text, "{:>14}  {:<27} {value}{remark}", field.offset, field.name);
                }
            }
        }
        let Some(header) = &self.header else { return };
        if self.problem.is_some() {
            let _ = writeln!(text, "\nfields as stored in the copies at the end");
        }
        self.draw_header(header, global, text);
    }

    fn draw_header(&self, header: &Header, global: &Global, text: &mut String) {
        let superblock = &header.superblock;
        let meta = self.meta(header);
        let (key, value) = (header.key_type, header.value_type);
        let range = picture::key_ends(header).map_or(String::new(), |(min, max)| {
            let form = self.meant(header, global).key_form();
            format!(", {} to {}", datum_text(&min, form), datum_text(&max, form))
        });
        let ends = Ends::of(key, value, &meta.value_logical, &meta.interval);
        let unique = match ends {
            Some(_) => "intervals: keys begin them, and the first field is their last key",
            None if header.is_unique() => "keys are unique",
            None => "keys may repeat",
        };
        let per_tuple = match header.tuples {
            0 => String::new(),
            tuples => format!(", {:.2} bytes a tuple", header.file_bytes as f64 / tuples as f64),
        };
        let builder = String::from_utf8_lossy(&superblock.builder);
        let builder = printable(builder.trim_end_matches('\0'));
        let version = (superblock.version_major.get(), superblock.version_minor.get());
        let id = hex(&superblock.file_id);
        let _ = writeln!(text, "  format    {}.{}", version.0, version.1);
        let _ = writeln!(
            text,
            "  keys      {key}{}{range}",
            named(&meta.key_name, &meant(&Meaning::new(key, &meta.key_logical)))
        );
        let logical = Meaning::new(key, &meta.key_logical).logical;
        if let Some(found) = Approximate::of(&logical, &meta.approximate, header.tuples) {
            let _ = writeln!(text, "            {}", found.describe());
        }
        let logical = if Record::of(value, &meta.value_logical).is_some() {
            "as record".to_owned()
        } else {
            meant(&Meaning::new(value, &meta.value_logical))
        };
        let _ = writeln!(text, "  values    {value}{}", named(&meta.value_name, &logical));
        match Record::of(value, &meta.value_logical) {
            Some(record) => {
                for (index, field) in record.fields().iter().enumerate() {
                    let plain = Field { logical: String::new(), ..field.clone() };
                    let meant = Meaning::new(field.kind, &field.logical).logical.name();
                    let blank = if meant.is_empty() { "" } else { " " };
                    let shown = printable(&format!("{plain}{blank}{meant}"));
                    let end = if field.kind.is_text() { "its end " } else { "" };
                    let _ = writeln!(text, "    field   {shown}, {end}from byte {}", record.offset(index));
                }
            }
            None if Record::is_meant(&meta.value_logical) => {
                let _ = writeln!(text, "    <-- not a record of {value} values: they are shown as stored");
            }
            None => {}
        }
        let _ = writeln!(text, "  tuples    {}, {unique}{per_tuple}", grouped(header.tuples));
        let id_is = if self.is_id_verified() {
            "verified: matches the bytes"
        } else {
            "as stored, not verified: --verify full computes it"
        };
        let _ = writeln!(text, "  file id   {id} ({id_is}), generation {}", superblock.generation);
        if superblock.lineage != [0; 16] {
            let _ = writeln!(text, "  lineage   {}", hex(&superblock.lineage));
        }
        let _ = writeln!(text, "  builder   {builder}");
        draw_sections(header, text);
        draw_levels(header, text);
    }
}

/// Returns the name of a logical type, and says so if this version does not know it.
fn meant(meaning: &Meaning) -> String {
    match &meaning.logical {
        Logical::Unknown(text) => format!("{text} (a type that this version does not know)"),
        logical => logical.name(),
    }
}

/// Returns ` logical type "name"`, without parts that do not exist.
fn named(name: &str, logical: &str) -> String {
    let mut text = String::new();
    if !logical.is_empty() {
        let _ = write!(text, " {}", printable(logical));
    }
    if !name.is_empty() {
        let _ = write!(text, " \"{}\"", printable(name));
    }
    text
}

/// Draws the sections as bars.
fn draw_sections(header: &Header, text: &mut String) {
    let _ = writeln!(text, "\n{:>15} {:>17} {:>7}", "offset", "bytes", "share");
    for bar in picture::bars(header) {
        let share = bar.bytes as f64 / header.file_bytes.max(1) as f64;
        let _ = writeln!(
            text,
            "{:>15} {:>17} {:>6.2}%  {:<17} {:<24} {}",
            grouped(bar.offset),
            grouped(bar.bytes),
            share * 100.0,
            bar.name,
            picture::bar(share),
            bar.note,
        );
    }
}

/// Draws the levels that a look-up passes, root first.
fn draw_levels(header: &Header, text: &mut String) {
    let geometry = header.geometry;
    let levels = header.spine.levels.len() as u64;
    let lines = counted(levels, "spine line");
    // In a group of lines a search bisects.
    let (child, tuple_lines) = match header.spine.child_lines.trailing_zeros() {
        0 => ("line", "one tuple line".to_owned()),
        halvings => ("group of lines", format!("up to {} tuple lines", halvings + 1)),
    };
    let _ = match &header.grid {
        None if header.text.is_some() => writeln!(text, "\na look-up {}", super::shapes::texts(header)),
        None if levels == 0 => writeln!(text, "\na look-up goes down a tree, or bisects the tuple lines"),
        None => writeln!(text, "\na look-up reads {lines} and {tuple_lines}"),
        Some((_, shape)) => {
            let segments = match shape.usual_steps {
                0 => String::new(),
                steps => format!("up to {}, ", counted(steps.into(), "segment")),
            };
            let grid = format!("{segments}a unit of the grid and one tuple line");
            writeln!(text, "\na look-up reads {grid}, or {lines} and {tuple_lines}")
        }
    };
    for (level, shape) in header.spine.levels.iter().enumerate().rev() {
        let child_lines = match (level, header.spine.child_lines) {
            (0, 2..) => format!(" (of {} lines)", header.spine.child_lines),
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "  level {level:<3} {:<8} {:>15}, {} children each, {} in all{child_lines}, at {}; {} of full keys",
            shape.encoding.name(),
            counted(shape.lines, "line"),
            shape.fanout,
            grouped(shape.children),
            grouped(header.spine_offset + shape.offset),
            percent(level_share(header, shape)),
        );
    }
    let _ = writeln!(
        text,
        "  tuples             {:>15}, {} each: keys from byte 0, values from byte {}",
        counted(header.lines, "line"),
        counted(geometry.tuples_per_line() as u64, "tuple"),
        geometry.values_at(),
    );
    if let Some(short) = &header.short {
        let _ = writeln!(text, "  {}", short_text(short));
    }
    for tree in super::shapes::summary(header) {
        let _ = writeln!(text, "  {tree}");
    }
    if levels > 0 {
        let inexact = header.inexact_lines;
        let _ = writeln!(text, "  {} may land one {child} to the left", counted(inexact, "spine line"));
    }
}

/// Says in a line what the words of a file are if they are short.
pub(super) fn short_text(short: &Short) -> String {
    let bytes = short.word_bytes();
    if short.subtracts() {
        return format!("a word of {bytes} bytes is the distance from {:x}", short.base());
    }
    let runs: Vec<String> = short.runs().map(|run| format!("{} from bit {}", run.bits, run.from)).collect();
    format!("a word of {bytes} bytes keeps {}; the others are {:x}", runs.join(", "), short.base())
}

/// Returns the bytes of a level per byte of its separators if stored as full keys, one per child.
pub(super) fn level_share(header: &Header, level: &Level) -> f64 {
    // For keys of different lengths, the bytes of their words.
    let full_bytes = match header.key_type.bytes() {
        0 => header.geometry.key_bytes,
        bytes => bytes,
    } as u64;
    (level.lines * LINE_BYTES as u64) as f64 / (level.children * full_bytes.max(1)).max(1) as f64
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
