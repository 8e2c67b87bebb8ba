//! The picture in text.

use super::{Found, Verdict};
use crate::cli::Global;
use crate::render::picture::{self, datum_text};
use crate::render::table::{Side, bare, table};
use crate::render::terminal::{self, BAD, GOOD, HEAD, columns, styled};
use crate::render::text::{counted, grouped, hex, printable, shown};
use pleach_format::approximate::Approximate;
use pleach_format::interval::Ends;
use pleach_format::layout::{LINE_BYTES, Level};
use pleach_format::{Header, Logical, Meaning, Record, Short};
use std::fmt::Write;

impl Found<'_> {
    /// Draws everything that is known about the file.
    pub(super) fn draw(&self, global: &Global, text: &mut String) {
        let verdict = self.verdict();
        let style = if verdict == Verdict::Whole { GOOD } else { BAD };
        let _ = writeln!(
            text,
            "{}: {}, {} bytes",
            styled(HEAD, &shown(self.path)),
            styled(style, verdict.name()),
            grouped(self.file_bytes)
        );
        if let Some(problem) = self.problem_text() {
            let _ = writeln!(text, "{}", facts(&[("problem", problem)]));
        }
        if verdict != Verdict::Whole {
            let _ = writeln!(text, "\n{}", styled(HEAD, "fields as stored"));
            if verdict == Verdict::Foreign {
                let _ = writeln!(text, "  first bytes  {}", hex(&self.head[..self.head.len().min(32)]));
            } else {
                self.draw_fields(text);
            }
        }
        let Some(header) = &self.header else { return };
        if self.problem.is_some() {
            let _ = writeln!(text, "\n{}", styled(HEAD, "fields as stored in the copies at the end"));
        }
        let _ = writeln!(text, "{}\n", facts(&self.facts(header, global)));
        draw_sections(header, text);
        draw_levels(header, text);
    }

    /// Draws the stored fields; what is wrong with one is in a line below it.
    fn draw_fields(&self, text: &mut String) {
        let mut rows = Vec::new();
        for field in self.fields() {
            rows.push([grouped(field.offset), field.name, printable(&field.value)]);
            if let Some(remark) = field.remark {
                rows.push([String::new(), String::new(), format!("<-- {remark}")]);
            }
        }
        let head = [("byte", Side::Right), ("field", Side::Left), ("value", Side::Left)];
        text.push_str(&table(&head, &rows, Some(columns())));
    }

    /// Returns what is known of a file as a whole, each with its name.
    pub(super) fn facts(&self, header: &Header, global: &Global) -> Vec<(&'static str, String)> {
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
        let mut facts = vec![("format", format!("{}.{}", version.0, version.1))];
        let named_key = named(&meta.key_name, &meant(&Meaning::new(key, &meta.key_logical)));
        facts.push(("keys", format!("{key}{named_key}{range}")));
        let logical = Meaning::new(key, &meta.key_logical).logical;
        if let Some(found) = Approximate::of(&logical, &meta.approximate, header.tuples) {
            facts.push(("", found.describe()));
        }
        let record = Record::of(value, &meta.value_logical);
        let logical = match &record {
            Some(_) => "as record".to_owned(),
            None => meant(&Meaning::new(value, &meta.value_logical)),
        };
        facts.push(("values", format!("{value}{}", named(&meta.value_name, &logical))));
        for (index, field) in record.iter().flat_map(Record::fields).enumerate() {
            let end = if field.kind.is_text() { "its end " } else { "" };
            let from = record.as_ref().map_or(0, |record| record.offset(index));
            facts.push(("  field", format!("{}, {end}from byte {from}", printable(&field.shown()))));
        }
        if record.is_none() && Record::is_meant(&meta.value_logical) {
            facts.push(("", format!("<-- not a record of {value} values: they are shown as stored")));
        }
        facts.push(("tuples", format!("{}, {unique}{per_tuple}", grouped(header.tuples))));
        let id_is = if self.is_id_verified() {
            "verified: matches the bytes"
        } else {
            "as stored, not verified: --verify full computes it"
        };
        facts.push(("file id", format!("{id} ({id_is})")));
        facts.push(("generation", grouped(superblock.generation.get())));
        if superblock.lineage != [0; 16] {
            facts.push(("lineage", hex(&superblock.lineage)));
        }
        facts.push(("builder", builder.to_owned()));
        facts
    }
}

/// Returns facts as lines that fit the terminal.
fn facts(facts: &[(&'static str, String)]) -> String {
    let rows: Vec<[String; 2]> =
        facts.iter().map(|(name, text)| [format!("  {name}"), text.clone()]).collect();
    bare(&rows, columns())
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

/// Columns of what sections hold, and of their bars, at least.
const NOTE_COLUMNS: usize = 26;
const BAR_COLUMNS: std::ops::RangeInclusive<usize> = 8..=40;

/// Draws the sections as bars. In a narrow terminal what they hold is in a line below each.
fn draw_sections(header: &Header, text: &mut String) {
    let bars = picture::bars(header);
    let widest = |of: &dyn Fn(&picture::Bar) -> usize| bars.iter().map(of).max().unwrap_or(0);
    let name = widest(&|bar| bar.name.chars().count());
    let numbers =
        widest(&|bar| grouped(bar.offset).len()).max(6) + widest(&|bar| grouped(bar.bytes).len()).max(5) + 7;
    let left = columns().saturating_sub(name + numbers + 4 * 2);
    let is_wide = left >= NOTE_COLUMNS + BAR_COLUMNS.start() + 2;
    let notes = if is_wide { widest(&|bar| bar.note.chars().count()).max(NOTE_COLUMNS) + 2 } else { 0 };
    let bar_columns = left.saturating_sub(notes).clamp(*BAR_COLUMNS.start(), *BAR_COLUMNS.end());
    let rows: Vec<Vec<String>> = bars
        .iter()
        .map(|bar| {
            let share = bar.bytes as f64 / header.file_bytes.max(1) as f64;
            // Padding is what a narrow terminal has no room for.
            let held = bar.note.split(", ").next().filter(|held| !is_wide && !held.is_empty());
            let below = held.map_or(String::new(), |held| format!("\n  {held}"));
            let mut row = vec![
                format!("{}{below}", bar.name),
                grouped(bar.offset),
                grouped(bar.bytes),
                format!("{:.2}%", share * 100.0),
                terminal::bar(share, bar_columns),
            ];
            row.extend(is_wide.then(|| bar.note.clone()));
            row
        })
        .collect();
    let mut head = vec![
        ("section", Side::Left),
        ("offset", Side::Right),
        ("bytes", Side::Right),
        ("share", Side::Right),
        ("", Side::Left),
    ];
    head.extend(is_wide.then_some(("holds", Side::Left)));
    text.push_str(&table(&head, &rows, Some(columns())));
}

/// Says in a sentence what a look-up reads.
pub(super) fn look_up(header: &Header) -> String {
    let levels = header.spine.levels.len() as u64;
    let lines = counted(levels, "spine line");
    // In a group of lines a search bisects.
    let tuple_lines = match header.spine.child_lines.trailing_zeros() {
        0 => "one tuple line".to_owned(),
        halvings => format!("up to {} tuple lines", halvings + 1),
    };
    match &header.grid {
        None if header.text.is_some() => format!("a look-up {}", super::shapes::texts(header)),
        None if levels == 0 => "a look-up goes down a tree, or bisects the tuple lines".to_owned(),
        None => format!("a look-up reads {lines} and {tuple_lines}"),
        Some((_, shape)) => {
            let segments = match shape.usual_steps {
                0 => String::new(),
                steps => format!("up to {}, ", counted(steps.into(), "segment")),
            };
            let grid = format!("{segments}a unit of the grid and one tuple line");
            format!("a look-up reads {grid}, or {lines} and {tuple_lines}")
        }
    }
}

/// Heads of the table of levels.
pub(super) const LEVELS: [(&str, Side); 7] = [
    ("level", Side::Left),
    ("encoding", Side::Left),
    ("lines", Side::Right),
    ("fanout", Side::Right),
    ("children", Side::Right),
    ("byte", Side::Right),
    ("of full keys", Side::Right),
];

/// Returns the levels that a look-up passes, root first, and the tuple lines.
pub(super) fn levels(header: &Header) -> Vec<[String; 7]> {
    let spine = header.spine.levels.iter().enumerate().rev().map(|(level, shape)| {
        [
            format!("level {level}"),
            shape.encoding.name().to_owned(),
            grouped(shape.lines),
            grouped(shape.fanout as u64),
            grouped(shape.children),
            grouped(header.spine_offset + shape.offset),
            percent(level_share(header, shape)),
        ]
    });
    let tuples = [
        "tuples".to_owned(),
        String::new(),
        grouped(header.lines),
        grouped(header.geometry.tuples_per_line() as u64),
        grouped(header.tuples),
        grouped(header.lines_offset),
        String::new(),
    ];
    spine.chain(std::iter::once(tuples)).collect()
}

/// Returns what else there is to say of lines, words and trees, a sentence each.
pub(super) fn remarks(header: &Header) -> Vec<String> {
    let levels = header.spine.levels.len() as u64;
    let values_at = header.geometry.values_at();
    let mut remarks = vec![format!("a tuple line has keys from byte 0, values from byte {values_at}")];
    remarks.extend(header.short.as_ref().map(short_text));
    remarks.extend(super::shapes::summary(header));
    if levels > 0 {
        let lines = header.spine.child_lines;
        let child = if lines == 1 { "line".to_owned() } else { format!("group of {lines} lines") };
        let inexact = counted(header.inexact_lines, "spine line");
        remarks.push(format!("a child of level 0 is a {child}; {inexact} may land one to the left"));
    }
    remarks
}

fn draw_levels(header: &Header, text: &mut String) {
    let _ = writeln!(text, "\n{}", bare(&[[look_up(header)]], columns()));
    // The share of full keys is what a narrow terminal has no room for.
    let shown = if columns() < 80 { LEVELS.len() - 1 } else { LEVELS.len() };
    let rows: Vec<Vec<String>> = levels(header).into_iter().map(|row| row[..shown].to_vec()).collect();
    text.push_str(&table(&LEVELS[..shown], &rows, Some(columns())));
    let remarks: Vec<[String; 1]> = remarks(header).into_iter().map(|remark| [remark]).collect();
    let _ = writeln!(text, "{}", bare(&remarks, columns()));
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
