//! Results: rows, and their two forms, a JSON document and a table.

use crate::machine::Machine;
use pleach::{KeyType, ValueType};
use pleach_cli::aligned;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Name and version of the JSON document.
pub const SCHEMA: &str = "pleach-bench-1";

/// One engine, one data set, one way of asking.
#[derive(Clone, Debug)]
pub struct Row {
    /// `pleach`, `hashbrown`, ..., or `limit-one-line`.
    pub engine: String,
    /// The operation: `get` (key to value), `absent` (a key that is not there), `single` (one key a call), `prefix`
    /// (tuples whose keys begin with it), `get-dependent` (each key follows from the last answer), `scan`
    /// (all tuples in order), `range` (some of them), `lower-bound` (key to rank), `open`, `build`.
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
    /// The chosen form of the limit, in words.
    pub detail: Option<String>,
    /// For byte keys: their kind, and the effect of compression.
    pub texts: Option<TextFacts>,
    /// Data of some benchmarks only.
    pub facts: Facts,
}

/// Data of a row in some benchmarks only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Bytes of tuple lines, or of their counterpart, per nanosecond: 10^9 bytes a second.
    pub gb_per_s: Option<f64>,
    /// Half of the single calls took at most this long.
    pub p50_ns: Option<f64>,
    /// 99 of 100 single calls took at most this long.
    pub p99_ns: Option<f64>,
    /// A call took so long: all its answers are there after that time.
    pub response_ns: Option<f64>,
    /// Kind of queries, unless they are hits drawn evenly: `half-miss`, `zipf`, `sorted`.
    pub queries: Option<String>,
    /// Rule of the keys, if it is named.
    pub keys: Option<String>,
    /// Tuples that a query has, on average, if they are more than one.
    pub tuples_per_query: Option<f64>,
}

/// Results for byte keys.
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
    /// Mean length of the keys.
    pub key_bytes: Option<f64>,
    /// Sections of the file, and the bytes of each by tuple.
    pub sections: Vec<(String, f64)>,
}

impl Row {
    /// A row of one thread and of one query a call, still without times.
    pub(crate) fn new(
        engine: &str,
        operation: &'static str,
        (key_type, value_type): (KeyType, ValueType),
        tuples: u64,
    ) -> Self {
        Self {
            engine: engine.to_owned(),
            operation,
            key_type,
            value_type,
            tuples,
            threads: 1,
            batch: 1,
            ns_per_query: 0.0,
            ns_min: 0.0,
            ns_max: 0.0,
            queries: 0,
            repetitions: 0,
            build_s: 0.0,
            bytes_per_tuple: 0.0,
            open_ms: None,
            huge_share: None,
            detail: None,
            texts: None,
            facts: Facts::default(),
        }
    }

    /// Makes the row from the times of its repetitions, each of `queries` queries.
    pub(crate) fn timed(mut self, queries: usize, ns: &[f64]) -> Self {
        (self.ns_per_query, self.ns_min, self.ns_max) = spread(ns);
        self.queries = queries;
        self.repetitions = ns.len();
        self
    }

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
        extra("gb_per_s", self.facts.gb_per_s.map(|speed| rounded(speed).into()));
        extra("p50_ns", self.facts.p50_ns.map(|ns| rounded(ns).into()));
        extra("p99_ns", self.facts.p99_ns.map(|ns| rounded(ns).into()));
        extra("response_ns", self.facts.response_ns.map(|ns| rounded(ns).into()));
        extra("query_kind", self.facts.queries.clone().map(Value::from));
        extra("keys", self.facts.keys.clone().map(Value::from));
        extra("tuples_per_query", self.facts.tuples_per_query.map(|tuples| rounded(tuples).into()));
        if let Some(texts) = &self.texts {
            extra("data", Some(texts.data.clone().into()));
            extra("excess_work", texts.excess_work.map(|work| rounded(work).into()));
            extra("partial_share", texts.partial.map(|share| rounded(share).into()));
            let pages: Map<String, Value> =
                texts.pages.iter().map(|(name, lines)| (name.clone(), (*lines).into())).collect();
            extra("pages", (!pages.is_empty()).then_some(pages.into()));
            extra("key_bytes_per_tuple", texts.key_bytes.map(|bytes| rounded(bytes).into()));
            let sections: Map<String, Value> =
                texts.sections.iter().map(|(name, bytes)| (name.clone(), rounded(*bytes).into())).collect();
            extra("section_bytes_per_tuple", (!sections.is_empty()).then_some(sections.into()));
        }
        row
    }

    fn same_data(&self, other: &Self) -> bool {
        let data = |row: &Self| row.texts.as_ref().map(|texts| texts.data.clone());
        (self.key_type, self.value_type, self.tuples) == (other.key_type, other.value_type, other.tuples)
            && data(self) == data(other)
            && self.operation == other.operation
            && self.facts.queries == other.facts.queries
            && self.facts.keys == other.facts.keys
    }

    /// The name of its keys.
    fn name(&self) -> Option<&str> {
        self.texts.as_ref().map(|texts| texts.data.as_str()).or(self.facts.keys.as_deref())
    }

    /// The command, in words.
    fn question(&self) -> String {
        match (self.operation, &self.facts.queries) {
            ("get", None) => "random hits, every answer checked".to_owned(),
            ("get", Some(queries)) => format!("{queries}, every answer checked"),
            ("absent", _) => "random keys that are not there, every answer checked".to_owned(),
            ("single", _) => "random hits, one a call, every answer checked".to_owned(),
            ("prefix", _) => "tuples of random prefixes, at most 100, by prefix, sums checked".to_owned(),
            ("get-dependent", _) => "hits, each key follows from the last answer, all checked".to_owned(),
            ("scan", _) => "all tuples in order, by tuple, sums checked".to_owned(),
            ("range", _) => "tuples from random keys on, by tuple, sums checked".to_owned(),
            ("lower-bound", _) => "ranks of random numbers, every answer checked".to_owned(),
            ("open", _) => "from the closed file to the first answer, by opening, checked".to_owned(),
            ("build", _) => "from tuples to a file on the disk, by tuple".to_owned(),
            ("rebuild", _) => "one change in a hundred tuples, to a file on the disk, by change".to_owned(),
            ("rebuild-puts", _) => {
                "new values for keys that are there, by change; batch is their number".to_owned()
            }
            ("batch-durable", _) => "one batch, on the disk when it ends, by operation".to_owned(),
            ("batch-no-sync", _) => "one batch, without waiting for the disk, by operation".to_owned(),
            (other, _) => other.to_owned(),
        }
    }
}

/// Median, fastest and slowest; the mean of the middle two if the number is even.
#[must_use]
pub fn spread(ns: &[f64]) -> (f64, f64, f64) {
    let mut sorted = ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median =
        if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
    (median, sorted[0], sorted[sorted.len() - 1])
}

/// Six decimals are enough for nanoseconds, seconds and bytes alike.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// A finished benchmark.
#[derive(Clone, Debug)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The rows.
    pub rows: Vec<Row>,
    /// Notes on rows that were left out, and why.
    pub notes: Vec<String>,
}

impl Report {
    /// Adds a note if times mean nothing.
    pub(crate) fn warn_of_debug_builds(&mut self) {
        if cfg!(debug_assertions) {
            let note = "this is a debug build: build with --release for times that mean something";
            self.notes.push(note.to_owned());
        }
    }

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
                "\n{}{} to {}, {} tuples, {}",
                row.name().map_or(String::new(), |name| format!("{name}: ")),
                row.key_type,
                row.value_type,
                count_text(row.tuples),
                row.question()
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
            if row.operation == "get" {
                text.push_str(&sections(&group));
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "\nnote: {note}");
        }
        text
    }
}

/// Lines on the bytes of keys, and on those of each section of files: what takes less than 0.005 a tuple is left out.
fn sections(rows: &[&Row]) -> String {
    let mut text = String::new();
    let of_keys = rows.iter().find_map(|row| row.texts.as_ref()?.key_bytes);
    if let Some(bytes) = of_keys {
        let _ = writeln!(text, "keys: {bytes:.2} B/tuple");
    }
    for row in rows {
        let all = row.texts.iter().flat_map(|texts| &texts.sections).filter(|section| section.1 >= 0.005);
        let all: Vec<String> = all.map(|(name, bytes)| format!("{name} {bytes:.2}")).collect();
        if !all.is_empty() {
            let _ = writeln!(text, "{}: {} B/tuple", row.engine, all.join(", "));
        }
    }
    text
}

/// `2^26 = 67108864`, or the plain number.
fn count_text(count: u64) -> String {
    if count.is_power_of_two() && count > 1 {
        format!("2^{} = {count}", count.trailing_zeros())
    } else {
        count.to_string()
    }
}

/// A column that the table has only if some of its rows have a value for it.
type FactColumn = (&'static str, fn(&Facts) -> Option<f64>);
const FACT_COLUMNS: [FactColumn; 5] = [
    ("GB/s", |facts| facts.gb_per_s),
    ("p50 ns", |facts| facts.p50_ns),
    ("p99 ns", |facts| facts.p99_ns),
    ("call us", |facts| facts.response_ns.map(|ns| ns / 1e3)),
    ("tuples/query", |facts| facts.tuples_per_query),
];

fn table(rows: &[&Row]) -> String {
    let facts: Vec<FactColumn> = FACT_COLUMNS
        .into_iter()
        .filter(|(_, fact)| rows.iter().any(|row| fact(&row.facts).is_some()))
        .collect();
    let head = ["engine", "threads", "batch", "ns/query", "M/s", "time/pleach", "min..max"];
    let tail = ["B/tuple", "build s", "open ms"];
    let head = head.into_iter().chain(facts.iter().map(|(name, _)| *name)).chain(tail);
    let mut lines: Vec<Vec<String>> = vec![head.map(str::to_owned).collect()];
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
        let mut line = vec![
            engine,
            row.threads.to_string(),
            row.batch.to_string(),
            nanoseconds(row.ns_per_query),
            format!("{:.1}", 1e3 / row.ns_per_query),
            base.map_or("-".to_owned(), |base| format!("{:.2}x", row.ns_per_query / base.ns_per_query)),
            format!("{}..{}", nanoseconds(row.ns_min), nanoseconds(row.ns_max)),
        ];
        let fact = |(_, fact): &FactColumn| fact(&row.facts).map_or("-".to_owned(), nanoseconds);
        line.extend(facts.iter().map(fact));
        line.push(format!("{:.2}", row.bytes_per_tuple));
        line.push(format!("{:.3}", row.build_s));
        line.push(row.open_ms.map_or("-".to_owned(), |ms| format!("{ms:.2}")));
        lines.push(line);
    }
    aligned(&lines)
}

/// One decimal; two of what is below 10.
fn nanoseconds(ns: f64) -> String {
    if ns < 10.0 { format!("{ns:.2}") } else { format!("{ns:.1}") }
}
