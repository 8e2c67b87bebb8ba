//! What is printed: a table and a command, or a document.

use super::command::command;
use super::estimate::{Choice, Told};
use super::input::{Sample, Total};
use crate::cli::Global;
use crate::failure::Failure;
use crate::render::json;
use crate::render::table::{Side, table};
use crate::render::terminal::{HEAD as HEAD_STYLE, styled};
use crate::render::text::{counted, grouped, human_bytes, printable};
use crate::stdout;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Head of the table.
const HEAD: [(&str, Side); 7] = [
    ("layout", Side::Left),
    ("bytes/tuple", Side::Right),
    ("file", Side::Right),
    ("build", Side::Right),
    ("memory", Side::Right),
    ("ns/look-up", Side::Right),
    ("GPU pays after", Side::Right),
];

/// What was found out.
pub struct Report<'a> {
    /// `advise`, or `dry-run`.
    pub command: &'static str,
    /// The inputs, as they were given.
    pub inputs: &'a [PathBuf],
    /// The first rows with the first choice; `None` for an index that was measured.
    pub sample: Option<&'a Sample>,
    /// The first one is the best.
    pub choices: &'a [Choice],
    /// There was no time for all.
    pub is_cut: bool,
    pub started: Instant,
}

impl Report<'_> {
    /// Prints it.
    pub fn print(&self, global: &Global) -> Result<(), Failure> {
        if global.json {
            return stdout::print_json(self.document());
        }
        if global.quiet {
            let commands: Vec<String> = self.best().map(|line| format!("{line}\n")).into_iter().collect();
            return stdout::print(commands.concat().as_bytes());
        }
        stdout::print_people(&self.text())
    }

    /// Returns the command of the best choice.
    fn best(&self) -> Option<String> {
        self.choices.first().and_then(|choice| choice.args.as_ref()).map(command)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(sample) = self.sample {
            let names: Vec<String> =
                self.inputs.iter().map(|path| printable(&path.to_string_lossy())).collect();
            text.push_str(&format!("{}: {}\n\n", names.join(" "), read_text(sample, self.started.elapsed())));
        }
        let rows: Vec<[String; 7]> = self.choices.iter().map(row).collect();
        let is_same = |one: &Choice, other: &Choice| {
            (&one.key_type, &one.value_type) == (&other.key_type, &other.value_type)
        };
        // A table for each choice of types, all of them with the widths of one.
        let all = table(&HEAD, &rows, None);
        let mut lines = all.lines();
        let head = lines.next().unwrap_or_default();
        for group in self.choices.chunk_by(is_same) {
            text.push_str(&format!("{}\n{head}\n", styled(HEAD_STYLE, &types(&group[0]))));
            for line in lines.by_ref().take(group.len()) {
                text.push_str(&format!("{line}\n"));
            }
            text.push('\n');
        }
        let is_estimated = |choice: &Choice| {
            choice.bytes_per_tuple.is_estimated || choice.look_up_ns.is_some_and(|ns| ns.is_estimated)
        };
        if self.choices.iter().any(is_estimated) {
            text.push_str("~ estimated from what was read; all other numbers are of a trial build\n");
        }
        if self.is_cut {
            text.push_str("There was no time for more types and layouts.\n");
        }
        if let Some(line) = self.best() {
            let space = if text.ends_with("\n\n") { "" } else { "\n" };
            text.push_str(&format!("{space}{line}\n"));
        }
        text
    }

    fn document(&self) -> Map<String, Value> {
        let mut document = json::document(self.command);
        if let Some(sample) = self.sample {
            let (kind, rows) = match sample.total {
                Total::Exact(rows) => ("exact", rows),
                Total::About(rows) => ("about", rows),
                Total::AtLeast(rows) => ("at-least", rows),
            };
            document.insert("rows".to_owned(), json::int(rows));
            document.insert("rows_are".to_owned(), kind.into());
            document.insert("read_rows".to_owned(), json::int(sample.rows));
            document.insert("read_bytes".to_owned(), json::int(sample.read.0));
            document.insert("sorted_input".to_owned(), sample.is_sorted.into());
        }
        document.insert("choices".to_owned(), self.choices.iter().map(|one| self.choice(one)).collect());
        document.insert("complete".to_owned(), (!self.is_cut).into());
        document.insert("command".to_owned(), self.best().into());
        document.insert("seconds".to_owned(), self.started.elapsed().as_secs_f64().into());
        document
    }

    fn choice(&self, choice: &Choice) -> Value {
        let mut object = Map::new();
        let ns = choice.look_up_ns;
        let is_estimated = |told: Option<Told>| told.map(|told| told.is_estimated);
        object.insert("key_type".to_owned(), choice.key_type.clone().into());
        object.insert("value_type".to_owned(), choice.value_type.clone().into());
        object.insert("layout".to_owned(), choice.layout.to_string().into());
        object.insert("approximate".to_owned(), choice.is_approximate.into());
        object.insert("tuples".to_owned(), json::int(choice.tuples.number as u64));
        object.insert("bytes_per_tuple".to_owned(), choice.bytes_per_tuple.number.into());
        object.insert("file_bytes".to_owned(), json::int(choice.file_bytes().round() as u64));
        object.insert("bytes_are_estimated".to_owned(), choice.bytes_per_tuple.is_estimated.into());
        if let Some(args) = &choice.args {
            object.insert("build_seconds".to_owned(), choice.build_seconds.into());
            object.insert("build_memory_bytes".to_owned(), json::int(choice.build_memory_bytes));
            object.insert("command".to_owned(), command(args).into());
        }
        object.insert("look_up_ns".to_owned(), ns.map(|told| told.number).into());
        object.insert("look_up_is_estimated".to_owned(), is_estimated(ns).into());
        let pays = choice.gpu_look_ups.map(|count| json::int(count as u64));
        object.insert("gpu_pays_after".to_owned(), pays.unwrap_or_default());
        object.into()
    }
}

/// Returns what was read.
fn read_text(sample: &Sample, took: Duration) -> String {
    let rows = match sample.total {
        Total::Exact(rows) => counted(rows, "row"),
        Total::About(rows) => format!("about {}", counted(rows, "row")),
        Total::AtLeast(rows) => format!("more than {}", counted(rows, "row")),
    };
    let order = if sample.is_sorted { "in order" } else { "in any order" };
    let read = match sample.read {
        (done, Some(all)) if done < all => format!("{} of {} read", human_bytes(done), human_bytes(all)),
        (done, _) => format!("{} read", human_bytes(done)),
    };
    format!("{rows}, {order}; {read} in {:.1} s", took.as_secs_f64())
}

/// Returns the types of a choice.
fn types(choice: &Choice) -> String {
    let note = if choice.is_approximate { ", absent keys may be found" } else { "" };
    format!("{} to {}{note}", printable(&choice.key_type), printable(&choice.value_type))
}

fn row(choice: &Choice) -> [String; 7] {
    let mark = |told: Told, text: String| format!("{}{text}", if told.is_estimated { "~" } else { "" });
    let (bytes, ns) = (choice.bytes_per_tuple, choice.look_up_ns);
    let is_built = choice.args.is_some();
    let unless = |is_there: bool, text: String| if is_there { text } else { "-".to_owned() };
    [
        choice.layout.to_string(),
        mark(bytes, format!("{:.2}", bytes.number)),
        mark(bytes, human_bytes(choice.file_bytes() as u64)),
        unless(is_built, format!("{:.1} s", choice.build_seconds)),
        unless(is_built, human_bytes(choice.build_memory_bytes)),
        ns.map_or("-".to_owned(), |ns| mark(ns, format!("{:.1}", ns.number))),
        choice.gpu_look_ups.map_or("never".to_owned(), |count| grouped(rounded(count))),
    ]
}

/// Returns a number with two digits that are not zero.
fn rounded(number: f64) -> u64 {
    let unit = 10f64.powi((number.max(1.0).log10() as i32 - 1).max(0));
    ((number / unit).round() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded() {
        assert_eq!([0.0, 7.2, 123.4, 98_765.0, 1e9].map(rounded), [0, 7, 120, 99_000, 1_000_000_000]);
    }
}
