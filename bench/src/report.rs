//! What was measured: rows, and their two forms, a JSON document and a table.

use crate::machine::Machine;
use pleach::{KeyType, ValueType};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Name and version of the JSON document.
pub const SCHEMA: &str = "pleach-bench-1";

/// One engine, one data set, one way of asking.
#[derive(Clone, Debug)]
pub struct Row {
    /// `pleach`, `hashbrown`, ..., or `limit-one-line`.
    pub engine: String,
    /// What was asked for: `get` (key to value).
    pub operation: &'static str,
    /// Key type.
    pub key_type: KeyType,
    /// Value type.
    pub value_type: ValueType,
    /// Tuples in the table.
    pub tuples: u64,
    /// Threads that asked.
    pub threads: usize,
    /// Queries of one call.
    pub batch: usize,
    /// Median over the repetitions: elapsed time by queries of all threads together.
    pub ns_per_query: f64,
    /// Fastest repetition.
    pub ns_min: f64,
    /// Slowest repetition.
    pub ns_max: f64,
    /// Queries of one repetition.
    pub queries: usize,
    /// Repetitions.
    pub repetitions: usize,
    /// Seconds from sorted tuples in memory to a table that can be searched.
    pub build_s: f64,
    /// Bytes of the table, in memory or on the disk, by tuple.
    pub bytes_per_tuple: f64,
    /// Milliseconds from the closed file to its first answer, file in the page cache; `None` for tables
    /// that exist in memory only.
    pub open_ms: Option<f64>,
    /// Share of the mapped file that lies in huge pages, where the system tells.
    pub huge_share: Option<f64>,
    /// What was chosen, in words: the form of the limit.
    pub detail: Option<String>,
    /// Of byte keys: what they are, and what compressing them did.
    pub texts: Option<TextFacts>,
}

/// What is told of byte keys.
#[derive(Clone, Debug, Default)]
pub struct TextFacts {
    /// Which keys.
    pub data: String,
    /// Full keys that a query is compared with, by query that is present; 1 is the least there can be.
    pub excess_work: Option<f64>,
    /// Spine lines by encoding, and how many of all are inexact.
    pub pages: Vec<(String, u64)>,
    /// Share of the spine lines whose separators are partial keys.
    pub partial: Option<f64>,
}

impl Row {
    fn to_json(&self) -> Value {
        let mut row = json!({
            "engine": self.engine,
            "operation": self.operation,
            "key_type": self.key_type.to_string(),
            "value_type": self.value_type.to_string(),
            "tuples": self.tuples,
            "threads": self.threads,
            "batch": self.batch,
            "ns_per_query": rounded(self.ns_per_query),
            "build_s": rounded(self.build_s),
            "bytes_per_tuple": rounded(self.bytes_per_tuple),
            "ns_min": rounded(self.ns_min),
            "ns_max": rounded(self.ns_max),
            "queries": self.queries,
            "repetitions": self.repetitions,
            // A wrong answer ends the run without a report.
            "checked": true,
        });
        let mut extra = |name: &str, value: Option<Value>| {
            if let (Some(row), Some(value)) = (row.as_object_mut(), value) {
                row.insert(name.to_owned(), value);
            }
        };
        extra("open_ms", self.open_ms.map(|ms| rounded(ms).into()));
        extra("huge_share", self.huge_share.map(|share| rounded(share).into()));
        extra("detail", self.detail.clone().map(Value::from));
        if let Some(texts) = &self.texts {
            extra("data", Some(texts.data.clone().into()));
            extra("excess_work", texts.excess_work.map(|work| rounded(work).into()));
            extra("partial_share", texts.partial.map(|share| rounded(share).into()));
            let pages: Map<String, Value> =
                texts.pages.iter().map(|(name, lines)| (name.clone(), (*lines).into())).collect();
            extra("pages", (!pages.is_empty()).then_some(pages.into()));
        }
        row
    }

    fn same_data(&self, other: &Self) -> bool {
        let data = |row: &Self| row.texts.as_ref().map(|texts| texts.data.clone());
        (self.key_type, self.value_type, self.tuples) == (other.key_type, other.value_type, other.tuples)
            && data(self) == data(other)
    }
}

/// Six decimals are enough for nanoseconds, seconds and bytes alike.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// A finished benchmark.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// What was measured.
    pub rows: Vec<Row>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl Report {
    /// The JSON document of schema [`SCHEMA`].
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut document = Map::new();
        document.insert("schema".to_owned(), SCHEMA.into());
        document.insert("machine".to_owned(), self.machine.to_json());
        document.insert("rows".to_owned(), self.rows.iter().map(Row::to_json).collect());
        document.insert("notes".to_owned(), self.notes.clone().into());
        Value::Object(document)
    }

    /// Tables for people: one for each data set, times also as multiples of Pleach's.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let machine = &self.machine;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}, {} cores, {:.0} GiB, {} {}, huge pages: {}, Pleach uses {}",
            if machine.cpu.is_empty() { "unknown CPU" } else { &machine.cpu },
            machine.cores,
            machine.memory_bytes as f64 / f64::from(1 << 30),
            machine.system,
            machine.kernel,
            if machine.thp.is_empty() { "unknown" } else { &machine.thp },
            machine.isa,
        );
        let mut done: Vec<&Row> = Vec::new();
        for row in &self.rows {
            if done.iter().any(|other| other.same_data(row)) {
                continue;
            }
            done.push(row);
            let group: Vec<&Row> = self.rows.iter().filter(|other| other.same_data(row)).collect();
            let _ = writeln!(
                text,
                "\n{}{} to {}, {} tuples, random hits, every answer checked",
                row.texts.as_ref().map_or(String::new(), |texts| format!("{}: ", texts.data)),
                row.key_type,
                row.value_type,
                count_text(row.tuples)
            );
            text.push_str(&table(&group));
            for texts in group.iter().filter_map(|row| row.texts.as_ref()) {
                if texts.pages.is_empty() {
                    continue;
                }
                let pages: Vec<String> =
                    texts.pages.iter().map(|(name, lines)| format!("{lines} {name}")).collect();
                let _ = write!(text, "pages: {}", pages.join(", "));
                if let (Some(share), Some(work)) = (texts.partial, texts.excess_work) {
                    let _ = write!(text, "; {:.0}% partial, work {work:.4}", share * 100.0);
                }
                text.push('\n');
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "\nnote: {note}");
        }
        text
    }
}

/// `2^26 = 67108864`, or the plain number.
fn count_text(count: u64) -> String {
    if count.is_power_of_two() && count > 1 {
        format!("2^{} = {count}", count.trailing_zeros())
    } else {
        count.to_string()
    }
}

fn table(rows: &[&Row]) -> String {
    let head = [
        "engine",
        "threads",
        "batch",
        "ns/query",
        "M/s",
        "time/pleach",
        "min..max",
        "B/tuple",
        "build s",
        "open ms",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    for row in rows {
        // The same way of asking, or at least the same threads (the limit knows no batches).
        let pleach = |same: &dyn Fn(&Row) -> bool| {
            rows.iter().find(|other| other.engine == "pleach" && other.threads == row.threads && same(other))
        };
        let base = pleach(&|other| other.batch == row.batch).or_else(|| pleach(&|_| true));
        let engine = match &row.detail {
            Some(detail) => format!("{} ({detail})", row.engine),
            None => row.engine.clone(),
        };
        lines.push([
            engine,
            row.threads.to_string(),
            row.batch.to_string(),
            format!("{:.1}", row.ns_per_query),
            format!("{:.1}", 1e3 / row.ns_per_query),
            base.map_or("-".to_owned(), |base| format!("{:.2}x", row.ns_per_query / base.ns_per_query)),
            format!("{:.1}..{:.1}", row.ns_min, row.ns_max),
            format!("{:.2}", row.bytes_per_tuple),
            format!("{:.3}", row.build_s),
            row.open_ms.map_or("-".to_owned(), |ms| format!("{ms:.2}")),
        ]);
    }
    aligned(&lines)
}

/// Columns of equal width, the first to the left, numbers to the right, a rule below the head.
#[must_use]
pub fn aligned<const COLUMNS: usize>(lines: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.len().max(*width);
        }
    }
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            let _ =
                if column == 0 { write!(text, "{cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        if number == 0 {
            let rule = widths.iter().sum::<usize>() + 2 * (COLUMNS - 1);
            text.push_str(&"-".repeat(rule));
            text.push('\n');
        }
    }
    text
}
