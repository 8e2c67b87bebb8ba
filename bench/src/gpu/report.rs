//! Results of a GPU: rows with fixed names, and their ratios.
//!
//! A row is a flat JSON object. Its name says group, engine, key type, tuples and what else makes it one of
//! its kind, as in `random/spine/u64/2^26/uniform/present`; scripts find rows by name. Ratios
//! (`of_random_reads`, `of_thrust`, ...) follow from rows of the same report alone, so they are worked out
//! whenever it is written, and a report that is cut off has all it can have. A row that could not be
//! measured has an `error` instead of times.

use super::{COPY_TB_MIN, RANDOM_READS_MIN};
use crate::report::spread;
use crate::{BenchError, Machine};
use pleach_builder::publish::{self, Rules};
use pleach_gpu::Device;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Name and version of the JSON document.
pub const SCHEMA: &str = "pleach-bench-gpu-1";

/// A row: a flat object with `name`, `group`, `engine` and what was measured.
#[derive(Clone, Debug)]
pub struct GpuRow {
    fields: Map<String, Value>,
}

/// Rounds to six decimals; null if it is not a number.
fn number(x: f64) -> Value {
    if x.is_finite() { ((x * 1e6).round() / 1e6).into() } else { Value::Null }
}

impl GpuRow {
    /// A row without times; `parts` follow group and engine in its name.
    pub fn new(group: &str, engine: &str, parts: &[&str]) -> Self {
        let mut name = format!("{group}/{engine}");
        for part in parts {
            name.push('/');
            name.push_str(part);
        }
        let mut fields = Map::new();
        fields.insert("name".to_owned(), name.into());
        fields.insert("group".to_owned(), group.into());
        fields.insert("engine".to_owned(), engine.into());
        Self { fields }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a number, or null for what is not finite.
    #[must_use]
    pub fn number(self, name: &str, x: f64) -> Self {
        self.with(name, number(x))
    }

    /// Times of the repetitions in milliseconds, `count` queries each.
    pub fn times(self, count: u64, ms: &[f64]) -> Self {
        let (median, least, most) = spread(ms);
        self.with("batch", count)
            .with("repetitions", ms.len())
            .number("ms", median)
            .number("ms_min", least)
            .number("ms_max", most)
            .number("g_per_s", count as f64 / median.max(1e-9) / 1e6)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// A number of it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.fields.get(name)?.as_f64()
    }

    /// A text of it; empty if there is none.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets a field.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    /// One line for people.
    fn line(&self) -> String {
        let mut line = format!("{:<52}", self.name());
        if let Some(error) = self.fields.get("error") {
            let _ = write!(line, " {}", error.as_str().unwrap_or_default());
            return line;
        }
        let columns: [(&str, &str, usize); 33] = [
            ("g_per_s", "G/s", 3),
            ("tb_per_s", "TB/s", 3),
            ("gb_per_s", "GB/s", 1),
            ("us", "us", 2),
            ("cycles_per_output", "cycles a result", 1),
            ("excess_us", "us more than nothing", 2),
            ("build_ms", "ms", 3),
            ("of_random_reads", "of random reads", 3),
            ("of_random_lines", "of random lines", 3),
            ("of_copy", "of a copy", 3),
            ("of_host_lines", "of random pinned reads", 3),
            ("of_link", "of the link", 3),
            ("of_thrust", "x thrust", 2),
            ("of_regular", "x regular tree", 2),
            ("ms", "ms", 2),
            ("sort_ms", "ms to sort", 2),
            ("scatter_ms", "ms to scatter", 2),
            ("lanes", "lanes", 0),
            ("of_spine", "of spine", 3),
            ("of_get", "of get", 3),
            ("of_present", "of present", 3),
            ("of_uniform", "of uniform", 3),
            ("of_binary_excess", "of binary's excess", 3),
            ("of_best", "of the best", 3),
            ("of_cpu", "x CPU", 2),
            ("of_binary", "of binary", 2),
            ("of_random", "of random order", 2),
            ("copy_ms", "ms to copy", 2),
            ("cpu_us", "us on the CPU", 1),
            ("kernel_us", "us on the device", 1),
            ("kernel_reuse", "batches, device to device", 1),
            ("reuse", "batches", 1),
            ("prepare_ms", "ms to prepare", 1),
        ];
        for (field, unit, decimals) in columns {
            if let Some(x) = self.get(field) {
                let _ = write!(line, "  {x:.decimals$} {unit}");
            }
        }
        for field in ["form", "best"] {
            if self.fields.contains_key(field) {
                let _ = write!(line, "  ({})", self.text(field));
            }
        }
        for (field, what) in [("kernel_reuse", "device to device"), ("reuse", "from the host")] {
            if self.text(field) == "never" {
                let _ = write!(line, "  never {what}");
            }
        }
        line
    }
}

/// Results of a run on a GPU.
#[derive(Clone, Debug)]
pub struct GpuReport {
    machine: Machine,
    device: Value,
    rows: Vec<GpuRow>,
    notes: Vec<String>,
    output: Option<PathBuf>,
    force: bool,
    ratios: Option<Ratios>,
}

/// Returns the fields of a row that follow from the other rows of its report.
pub type Ratios = fn(&GpuReport, &GpuRow) -> Vec<(&'static str, Option<f64>)>;

impl GpuReport {
    /// Creates a report without rows, which writes its document to `output`.
    #[must_use]
    pub fn new(device: &Device, output: Option<PathBuf>, force: bool) -> Self {
        let device = json!({
            "name": device.name,
            "memory_bytes": device.memory_bytes,
            "l2_bytes": device.l2_bytes,
            "multiprocessors": device.multiprocessors,
            "compute": format!("{}.{}", device.compute.0, device.compute.1),
            "cuda": format!("{}.{}", device.driver.0, device.driver.1),
            "nvrtc": device.nvrtc,
        });
        Self {
            machine: Machine::this(),
            device,
            rows: Vec::new(),
            notes: Vec::new(),
            output,
            force,
            ratios: None,
        }
    }

    /// Adds fields that follow from other rows.
    #[must_use]
    pub fn with_ratios(self, ratios: Ratios) -> Self {
        Self { ratios: Some(ratios), ..self }
    }

    /// Adds a text for the end of the report.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Adds a row, and returns its line; writes the document again if requested.
    pub fn push(&mut self, row: GpuRow) -> Result<String, BenchError> {
        self.rows.push(row);
        let line = self.related().pop().map(|row| row.line()).unwrap_or_default();
        self.write()?;
        Ok(line)
    }

    /// Returns a row by its name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&GpuRow> {
        self.rows.iter().find(|row| row.name() == name)
    }

    /// Returns a row by its name, to change it.
    pub fn find_mut(&mut self, name: &str) -> Option<&mut GpuRow> {
        self.rows.iter_mut().find(|row| row.name() == name)
    }

    fn write(&self) -> Result<(), BenchError> {
        let Some(path) = &self.output else { return Ok(()) };
        let rules = Rules::table(Vec::new(), self.force);
        Ok(publish::replace(path, format!("{}\n", self.to_json()).as_bytes(), rules)?)
    }

    /// Writes the document a last time.
    pub fn finish(&self) -> Result<(), BenchError> {
        self.write()
    }

    /// Rows with their ratios.
    #[must_use]
    pub fn related(&self) -> Vec<GpuRow> {
        self.rows.iter().map(|row| self.relate(row)).collect()
    }

    fn relate(&self, row: &GpuRow) -> GpuRow {
        let parts: Vec<&str> = row.name().split('/').collect();
        let part = |at: usize| parts.get(at).copied().unwrap_or_default();
        // The name with another part.
        let named = |at: usize, other: &str| {
            let parts = parts.iter().enumerate().map(|(i, part)| if i == at { other } else { part });
            parts.collect::<Vec<_>>().join("/")
        };
        let rate = |name: String| self.find(&name).and_then(|row| row.get("g_per_s"));
        let us = |name: &str| self.find(name).and_then(|row| row.get("us"));
        let own = row.get("g_per_s");
        let over =
            |below: Option<f64>| own.zip(below.filter(|&below| below > 0.0)).map(|(own, below)| own / below);
        let (group, table) = (part(0), format!("{}/{}", part(2), part(3)));
        let mut ratios: Vec<(&str, Option<f64>)> = Vec::new();
        if matches!(group, "random" | "algorithms" | "peer") {
            ratios.push(("of_random_reads", over(rate(format!("limit/random-words/{table}")))));
            ratios.push(("of_random_lines", over(rate(format!("limit/random-lines/{table}")))));
        }
        let is_plain = (part(4), part(5)) == ("uniform", "present");
        if group == "algorithms" || group == "random" && is_plain {
            ratios.push(("of_thrust", over(rate(format!("peer/thrust/{table}/random")))));
        }
        if matches!(group, "random" | "keys") {
            let of_present = over(rate(named(5, "present")));
            ratios.push(("of_present", of_present.filter(|_| part(5) != "present")));
            let of_uniform = over(rate(named(4, "uniform")));
            ratios.push(("of_uniform", of_uniform.filter(|_| part(4) != "uniform")));
        }
        if group == "sorted" {
            let thrust = self.find(&format!("peer/thrust/{table}/sorted"));
            let same = thrust.filter(|thrust| thrust.get("batch") == row.get("batch"));
            ratios.push(("of_thrust", over(same.and_then(|thrust| thrust.get("g_per_s")))));
            ratios.push(("of_spine", over(rate(named(1, "spine"))).filter(|_| part(1) != "spine")));
        }
        if group == "small"
            && let Some(nothing) = us("limit/empty-launch")
        {
            let excess = row.get("us").map(|us| us - nothing);
            let of_binary = us(&named(1, "binary")).map(|us| us - nothing).filter(|_| part(1) != "binary");
            ratios.push(("excess_us", excess));
            ratios.push(("of_binary_excess", excess.zip(of_binary).map(|(own, binary)| own / binary)));
        }
        if let Some(more) = self.ratios {
            ratios.extend(more(self, row));
        }
        let mut row = row.clone();
        for (field, ratio) in ratios {
            if let Some(ratio) = ratio {
                row.set(field, number(ratio));
            }
        }
        row
    }

    /// Why the run means nothing, if so: the limits are below what such a device reaches undisturbed.
    #[must_use]
    pub fn void(&self) -> Vec<String> {
        let mut causes = Vec::new();
        for row in &self.rows {
            let slow = |field: &str, least: f64| row.get(field).filter(|&found| found < least);
            if row.text("engine") == "random-words"
                && let Some(found) = slow("g_per_s", RANDOM_READS_MIN)
            {
                causes.push(format!("{}: {found:.1} G/s, less than {RANDOM_READS_MIN}", row.name()));
            }
            if row.text("engine") == "copy"
                && let Some(found) = slow("tb_per_s", COPY_TB_MIN)
            {
                causes.push(format!("{}: {found:.2} TB/s, less than {COPY_TB_MIN}", row.name()));
            }
        }
        causes
    }

    /// Rows whose answers were wrong.
    #[must_use]
    pub fn wrong(&self) -> usize {
        self.rows.iter().filter(|row| row.fields.get("is_wrong") == Some(&Value::Bool(true))).count()
    }

    /// The JSON document of schema [`SCHEMA`].
    #[must_use]
    pub fn to_json(&self) -> Value {
        let void = self.void();
        let rows: Vec<Value> = self.related().into_iter().map(|row| row.fields.into()).collect();
        json!({
            "schema": SCHEMA,
            "machine": self.machine.to_json(),
            "device": self.device,
            "void": !void.is_empty(),
            "void_causes": void,
            "wrong": self.wrong(),
            "rows": rows,
            "notes": self.notes,
        })
    }

    /// A line for each row, and what is to be said of all.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let device = &self.device;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}, {} GiB, {} multiprocessors, {} MiB of level 2 cache",
            device["name"].as_str().unwrap_or_default(),
            device["memory_bytes"].as_u64().unwrap_or(0) >> 30,
            device["multiprocessors"],
            device["l2_bytes"].as_u64().unwrap_or(0) >> 20,
        );
        let mut group = String::new();
        for row in self.related() {
            if row.text("group") != group {
                row.text("group").clone_into(&mut group);
                text.push('\n');
            }
            let _ = writeln!(text, "{}", row.line());
        }
        text.push_str(&self.end_text());
        text
    }

    /// Properties of all rows.
    #[must_use]
    pub fn end_text(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            let _ = writeln!(text, "\nnote: {note}");
        }
        let void = self.void();
        if !void.is_empty() {
            let _ = writeln!(text, "\nVOID: {}", void.join("; "));
        }
        if self.wrong() > 0 {
            let _ = writeln!(text, "\nWRONG ANSWERS in {} rows: their times mean nothing", self.wrong());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> GpuReport {
        let (machine, device) = (Machine::default(), Value::Null);
        GpuReport {
            machine,
            device,
            rows: Vec::new(),
            notes: Vec::new(),
            output: None,
            force: false,
            ratios: None,
        }
    }

    #[test]
    fn ratios_follow_from_rows_in_any_order() {
        let mut report = report();
        let rate = |group: &str, engine: &str, parts: &[&str], ms: f64| {
            GpuRow::new(group, engine, parts).times(1 << 20, &[ms])
        };
        let rows = [
            rate("random", "spine", &["u64", "2^26", "uniform", "present"], 2.0),
            rate("random", "spine", &["u64", "2^26", "uniform", "half-absent"], 2.5),
            rate("random", "spine", &["u64", "2^26", "composite", "present"], 4.0),
            rate("sorted", "sweep", &["u64", "2^26", "2^20"], 1.0),
            rate("sorted", "spine", &["u64", "2^26", "2^20"], 2.0),
            rate("limit", "random-words", &["u64", "2^26"], 1.0),
            rate("peer", "thrust", &["u64", "2^26", "random"], 8.0),
            rate("peer", "thrust", &["u64", "2^26", "sorted"], 3.0),
            GpuRow::new("limit", "empty-launch", &[]).number("us", 2.0),
            GpuRow::new("small", "spine", &["u64", "2^26", "32"]).number("us", 4.0),
            GpuRow::new("small", "binary", &["u64", "2^26", "32"]).number("us", 12.0),
        ];
        for row in rows {
            report.push(row).expect("nothing is written");
        }
        let rows = report.related();
        // To three decimals, since rates are rounded.
        let get = |name: &str, field: &str| {
            let number = rows.iter().find(|row| row.name() == name).and_then(|row| row.get(field));
            number.map(|number| (number * 1e3).round() / 1e3)
        };
        let spine = "random/spine/u64/2^26/uniform/present";
        assert_eq!(get(spine, "of_random_reads"), Some(0.5));
        assert_eq!(get(spine, "of_thrust"), Some(4.0));
        assert_eq!(get("random/spine/u64/2^26/uniform/half-absent", "of_present"), Some(0.8));
        assert_eq!(get("random/spine/u64/2^26/uniform/half-absent", "of_thrust"), None);
        assert_eq!(get("random/spine/u64/2^26/composite/present", "of_uniform"), Some(0.5));
        assert_eq!(get("sorted/sweep/u64/2^26/2^20", "of_spine"), Some(2.0));
        assert_eq!(get("sorted/sweep/u64/2^26/2^20", "of_thrust"), Some(3.0));
        assert_eq!(get("small/spine/u64/2^26/32", "excess_us"), Some(2.0));
        assert_eq!(get("small/spine/u64/2^26/32", "of_binary_excess"), Some(0.2));
        assert_eq!(report.to_json()["void"], true, "{:?}", report.void());
        assert!(report.to_text().contains("VOID: limit/random-words/u64/2^26"));
    }
}
