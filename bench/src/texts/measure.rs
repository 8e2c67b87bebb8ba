//! Text keys: look-ups, prefixes and ranges, beside a hash map of the standard library and stores.
//!
//! For each kind of key and each size: keys that are there, keys of the same kind that are not, one key a call, the
//! tuples of a prefix, and 100 tuples from a key on. Pleach is measured with its default options and with columns of
//! keys and values, as files had before keys were stored by page. One in five of the keys that are made is kept out of
//! the table, so that absent keys are as near to present ones as those are to each other. All engines take turns.

use super::engines::{Engines, File, Searcher, TUPLES_PER_SCAN, Way};
use super::{Kind, hits, search, sort, value, values};
use crate::data::{below, mix64};
use crate::report::{Facts, Report, Row, TextFacts};
use crate::{BenchError, Machine, Told, compress, machine};
use pleach::{KeyType, ValueType};
use pleach_peers::Keys;
use std::path::PathBuf;
use std::time::Instant;

/// Queries of one call.
pub(super) const BATCH: usize = 1 << 14;
/// One of so many keys is kept out of the table.
const KEPT_OUT: usize = 5;
/// Look-ups for each prefix or range of a repetition.
const QUERIES_PER_SCAN: usize = 64;
/// Prefixes and ranges whose tuples are compared one by one.
const COMPARED: usize = 1 << 10;
/// Bytes at the end of a key in which the end of its prefix is not searched.
const LAST_BYTES: usize = 8;

/// Options of the measurement.
pub struct TextsOptions<'a> {
    /// Kinds of keys.
    pub kinds: Vec<Kind>,
    /// Tuples of the tables of each kind.
    pub tuples: Vec<u64>,
    /// Keys of a user's own and their name, in place of those of kinds; in any order, duplicates are left out. The
    /// table has four of five of them.
    pub own: Option<(String, Keys)>,
    /// Look-ups of one repetition; prefixes and ranges are fewer.
    pub queries: usize,
    /// Number of repetitions; the median is reported.
    pub repetitions: usize,
    /// Measure the stores too at sizes that they take minutes to build.
    pub all_peers: bool,
    /// Folder for the files.
    pub dir: Option<PathBuf>,
    /// Receives the steps of the run.
    pub told: Told<'a>,
}

impl TextsOptions<'_> {
    /// Ten kinds at 2^20 and 2^22 tuples; with `quick` at 2^18.
    #[must_use]
    pub fn new(quick: bool) -> Self {
        let digits = Kind::Digits { bytes: 16, values: 10 };
        let long = [Kind::HostUrl, Kind::Path, Kind::Name, Kind::LogLine, Kind::Url];
        let short = [Kind::Word, Kind::UuidText, Kind::Phone, digits, Kind::Kmer];
        Self {
            kinds: [long, short].concat(),
            tuples: if quick { vec![1 << 18] } else { vec![1 << 20, 1 << 22] },
            own: None,
            queries: if quick { 1 << 17 } else { 1 << 20 },
            repetitions: 5,
            all_peers: false,
            dir: None,
            told: Told::default(),
        }
    }

    fn check(&self) -> Result<(), BenchError> {
        let refuse = |text: String| Err(BenchError::Options(text));
        if self.repetitions == 0 || self.queries == 0 {
            return refuse("repetitions and queries must be at least 1".to_owned());
        }
        if self.own.is_some() {
            return Ok(());
        }
        let tuples_min = KEPT_OUT as u64 - 1;
        for &count in &self.tuples {
            if !(tuples_min..=1 << 31).contains(&count) {
                return refuse(format!("use {tuples_min} to 2^31 tuples"));
            }
            // Beyond half of all keys those that are new come seldom.
            if let Some(kind) = self.kinds.iter().find(|kind| count > kind.available() / 2) {
                let available = kind.available() / 2;
                return refuse(format!("{count} tuples of {kind}: too few keys: use at most {available}"));
            }
        }
        Ok(())
    }
}

/// Measures everything that `options` ask for.
///
/// # Errors
/// [`BenchError`]: whatever keeps an engine from being built or searched, and a wrong answer of any.
pub fn run(options: &TextsOptions<'_>) -> Result<Report, BenchError> {
    options.check()?;
    let mut report = Report { machine: Machine::this(), rows: Vec::new(), notes: Vec::new() };
    report.warn_of_debug_builds();
    if let Some((name, keys)) = &options.own {
        let keys = distinct(&sort(keys));
        if keys.len() < KEPT_OUT {
            let found = keys.len();
            let text = format!("{name}: {found} different keys: use a file with at least {KEPT_OUT}");
            return Err(BenchError::Options(text));
        }
        let is_text = keys.iter().all(|key| std::str::from_utf8(key).is_ok());
        let key_type = if is_text { KeyType::Utf8 } else { KeyType::Bytes };
        one(options, &Data::new(name.clone(), key_type, &keys), &mut report)?;
        return Ok(report);
    }
    for &count in &options.tuples {
        for &kind in &options.kinds {
            options.told.step(&format!("{count} x {kind}: generating"))?;
            let keys = kind.sorted(count + count / (KEPT_OUT as u64 - 1), 1);
            one(options, &Data::new(kind.to_string(), compress::key_type(kind), &keys), &mut report)?;
        }
    }
    Ok(report)
}

/// Returns ascending keys without those that are equal to the one before.
fn distinct(keys: &Keys) -> Keys {
    let mut last = None;
    keys.iter().filter(|&key| last.replace(key) != Some(key)).collect()
}

/// Keys of one table, and keys that are not in it.
struct Data {
    name: String,
    key_type: KeyType,
    /// Ascending.
    keys: Keys,
    values: Vec<u32>,
    absent: Keys,
}

impl Data {
    /// Keeps one of each five `keys` out of the table, which are ascending and distinct.
    fn new(name: String, key_type: KeyType, keys: &Keys) -> Self {
        let (mut present, mut absent) = (Keys::new(), Keys::new());
        let whole = keys.len() - keys.len() % KEPT_OUT;
        for (at, key) in keys.iter().enumerate() {
            // Which one is drawn: keys may have a rhythm of their own.
            let group = (at / KEPT_OUT) as u64;
            let is_out = below(mix64(group + 1), KEPT_OUT as u64) as usize == at % KEPT_OUT;
            if at < whole && is_out { absent.push(key) } else { present.push(key) }
        }
        let values = values(&present);
        Self { name, key_type, keys: present, values, absent }
    }

    fn label(&self) -> String {
        format!("{} x {}", self.keys.len(), self.name)
    }

    /// Tuples whose ranks begin with that of the first key that is at least `first`: keys and values.
    fn tuples_from<'a>(&'a self, first: &[u8]) -> impl Iterator<Item = (&'a [u8], u32)> {
        let rank = search(self.keys.view(), first).unwrap_or_else(|rank| rank);
        let end = self.keys.len().min(rank + TUPLES_PER_SCAN);
        (rank..end).map(|rank| (self.keys.get(rank), self.values[rank]))
    }

    /// The right answer to a scan.
    fn scanned<'a>(&'a self, operation: Operation, query: &'a [u8]) -> impl Iterator<Item = (&'a [u8], u32)> {
        let all = operation == Operation::Range;
        self.tuples_from(query).take_while(move |(key, _)| all || key.starts_with(query))
    }
}

/// Returns the prefix of `key` that ends with the last `/`, `.` or space before its last eight bytes, or half of `key`
/// if there is none.
fn prefix(key: &[u8]) -> &[u8] {
    let searched = &key[..key.len().saturating_sub(LAST_BYTES)];
    let end = searched.iter().rposition(|byte| matches!(byte, b'/' | b'.' | b' '));
    &key[..end.map_or(key.len() / 2, |end| end + 1)]
}

/// What is measured, in the order of the turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Get,
    Absent,
    Single,
    Prefix,
    Range,
}

impl Operation {
    const ALL: [Self; 5] = [Self::Get, Self::Absent, Self::Single, Self::Prefix, Self::Range];

    const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Absent => "absent",
            Self::Single => "single",
            Self::Prefix => "prefix",
            Self::Range => "range",
        }
    }

    /// Returns true if an engine is measured with it.
    fn suits(self, way: &Way<'_>) -> bool {
        match self {
            Self::Get | Self::Absent => true,
            Self::Single => way.has_singles(),
            Self::Prefix | Self::Range => way.has_scans(),
        }
    }
}

/// Queries of one table.
struct Asked<'a> {
    data: &'a Data,
    hits: Keys,
    misses: Keys,
    prefixes: Keys,
    starts: Keys,
    /// Right answers to prefixes and ranges.
    prefix_sums: Vec<Sum>,
    range_sums: Vec<Sum>,
}

impl<'a> Asked<'a> {
    fn new(data: &'a Data, queries: usize) -> Self {
        let scans = queries.div_ceil(QUERIES_PER_SCAN);
        let drawn = hits(&data.keys, 2 * scans);
        let prefixes: Keys = drawn.view().slice(0..scans).iter().map(prefix).collect();
        let starts: Keys = drawn.view().slice(scans..2 * scans).iter().collect();
        let sums = |operation, queries: &Keys| {
            let sum = |query| Sum::default().with_all(data.scanned(operation, query));
            queries.iter().map(sum).collect()
        };
        Self {
            data,
            hits: hits(&data.keys, queries),
            misses: hits(&data.absent, queries),
            prefix_sums: sums(Operation::Prefix, &prefixes),
            range_sums: sums(Operation::Range, &starts),
            prefixes,
            starts,
        }
    }

    fn queries(&self, operation: Operation) -> &Keys {
        match operation {
            Operation::Get | Operation::Single => &self.hits,
            Operation::Absent => &self.misses,
            Operation::Prefix => &self.prefixes,
            Operation::Range => &self.starts,
        }
    }

    /// The right answers to scans; none for look-ups, whose values follow from their keys.
    fn sums(&self, operation: Operation) -> &[Sum] {
        match operation {
            Operation::Prefix => &self.prefix_sums,
            Operation::Range => &self.range_sums,
            Operation::Get | Operation::Absent | Operation::Single => &[],
        }
    }

    /// Tuples of all queries of a scan together.
    fn tuples(&self, operation: Operation) -> u64 {
        self.sums(operation).iter().map(|sum| sum.tuples).sum()
    }

    /// What a time is divided by: tuples of ranges, else queries.
    fn units(&self, operation: Operation) -> usize {
        match operation {
            Operation::Range => self.tuples(operation) as usize,
            _ => self.queries(operation).len(),
        }
    }
}

/// Sum over the tuples of a scan: of values, lengths of keys and their last bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    tuples: u64,
    sum: u64,
}

impl Sum {
    #[inline(always)]
    fn add(&mut self, key: &[u8], value: u32) {
        let last = key.last().copied().unwrap_or(0);
        let key = (key.len() as u64) << 8 | u64::from(last);
        self.tuples += 1;
        self.sum = self.sum.wrapping_add(key << 32).wrapping_add(u64::from(value));
    }

    fn with_all<'a>(mut self, tuples: impl Iterator<Item = (&'a [u8], u32)>) -> Self {
        tuples.for_each(|(key, value)| self.add(key, value));
        self
    }
}

/// Buffers for answers, allocated before any time is taken.
struct Answers {
    values: Vec<u32>,
    present: Vec<u64>,
    sums: Vec<Sum>,
}

impl Answers {
    fn new(queries: usize) -> Self {
        let sums = vec![Sum::default(); queries.div_ceil(QUERIES_PER_SCAN)];
        Self { values: vec![0; queries], present: vec![0; queries.div_ceil(64)], sums }
    }

    fn clear(&mut self) {
        self.values.fill(!0);
        self.present.fill(0);
        self.sums.fill(Sum::default());
    }

    /// One timed turn; nanoseconds.
    fn turn(
        &mut self,
        way: &mut Way<'_>,
        operation: Operation,
        asked: &Asked<'_>,
    ) -> Result<f64, BenchError> {
        self.clear();
        let queries = asked.queries(operation).view();
        let start = Instant::now();
        match operation {
            Operation::Get | Operation::Absent => {
                way.batches(queries, &mut self.values, &mut self.present)?
            }
            Operation::Single => way.singles(queries, &mut self.values, &mut self.present)?,
            Operation::Prefix => {
                for (query, sum) in queries.iter().zip(&mut self.sums) {
                    way.prefix(query, |key, value| sum.add(key, value))?;
                }
            }
            Operation::Range => {
                for (query, sum) in queries.iter().zip(&mut self.sums) {
                    way.range(query, |key, value| sum.add(key, value))?;
                }
            }
        }
        Ok(start.elapsed().as_nanos() as f64)
    }

    /// Compares all answers of the last turn with the right ones.
    fn check(&self, engine: &str, operation: Operation, asked: &Asked<'_>) -> Result<(), BenchError> {
        let queries = asked.queries(operation);
        let wrong = |at: usize, found: String, expected: String| BenchError::Wrong {
            engine: format!("{engine} ({})", operation.name()),
            query: at,
            queries: queries.len(),
            key: queries.get(at).escape_ascii().to_string(),
            found,
            expected,
        };
        for (at, (found, expected)) in self.sums.iter().zip(asked.sums(operation)).enumerate() {
            if found != expected {
                return Err(wrong(at, format!("{found:?}"), format!("{expected:?}")));
            }
        }
        if matches!(operation, Operation::Prefix | Operation::Range) {
            return Ok(());
        }
        let text = |value: Option<u32>| value.map_or("nothing".to_owned(), |value| value.to_string());
        for (at, query) in queries.iter().enumerate() {
            let is_there = self.present[at / 64] >> (at % 64) & 1 == 1;
            let found = is_there.then_some(self.values[at]);
            let expected = (operation != Operation::Absent).then(|| value(query));
            if found != expected {
                return Err(wrong(at, text(found), text(expected)));
            }
        }
        Ok(())
    }
}

/// Compares the tuples of some scans one by one: sums do not tell whether each key is right.
fn compare(searcher: &Searcher<'_>, operation: Operation, asked: &Asked<'_>) -> Result<(), BenchError> {
    let queries = asked.queries(operation);
    for (at, query) in queries.iter().take(COMPARED).enumerate() {
        let mut right = asked.data.scanned(operation, query);
        let mut wrong = None;
        let tuple = |key: &[u8], value: u32| {
            let expected = right.next();
            if wrong.is_none() && expected != Some((key, value)) {
                wrong = Some((format!("{} {value}", key.escape_ascii()), expected));
            }
        };
        match operation {
            Operation::Prefix => searcher.way.prefix(query, tuple)?,
            _ => searcher.way.range(query, tuple)?,
        }
        let missing = || right.next().map(|expected| ("the end".to_owned(), Some(expected)));
        if let Some((found, expected)) = wrong.or_else(missing) {
            let text = |(key, value): (&[u8], u32)| format!("{} {value}", key.escape_ascii());
            return Err(BenchError::Wrong {
                engine: format!("{} ({})", searcher.engine, operation.name()),
                query: at,
                queries: queries.len(),
                key: query.escape_ascii().to_string(),
                found,
                expected: expected.map_or("the end".to_owned(), text),
            });
        }
    }
    Ok(())
}

/// Measures one table: all engines take turns.
fn one(options: &TextsOptions<'_>, data: &Data, report: &mut Report) -> Result<(), BenchError> {
    let label = data.label();
    options.told.step(&format!("{label}: building"))?;
    let folder = crate::folder(options.dir.as_deref())?;
    let tuples = (data.key_type, &data.keys, data.values.as_slice());
    let engines = Engines::new(&label, tuples, folder.path(), options.all_peers, &mut report.notes)?;
    let plain = TextFacts {
        data: data.name.clone(),
        key_bytes: Some(data.keys.data().len() as f64 / data.keys.len().max(1) as f64),
        ..TextFacts::default()
    };
    let mut searchers = engines.searchers(&plain)?;
    let asked = Asked::new(data, options.queries);
    let mut answers = Answers::new(options.queries);
    let mut times: Vec<[Vec<f64>; Operation::ALL.len()]> = vec![Default::default(); searchers.len()];
    for repetition in 0..=options.repetitions {
        options.told.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
        for (number, operation) in Operation::ALL.into_iter().enumerate() {
            for (searcher, times) in searchers.iter_mut().zip(&mut times) {
                if !operation.suits(&searcher.way) {
                    continue;
                }
                let ns = answers.turn(&mut searcher.way, operation, &asked)?;
                answers.check(searcher.engine, operation, &asked)?;
                // The first turn fills the caches.
                if repetition > 0 {
                    times[number].push(ns / asked.units(operation) as f64);
                } else if !asked.sums(operation).is_empty() {
                    compare(searcher, operation, &asked)?;
                }
            }
        }
    }
    for (number, operation) in Operation::ALL.into_iter().enumerate() {
        for (searcher, times) in searchers.iter().zip(&times) {
            if !times[number].is_empty() {
                let file = engines.files.iter().find(|file| file.engine == searcher.engine);
                report.rows.push(row(searcher, file, operation, &asked, &times[number]));
            }
        }
    }
    Ok(())
}

fn row(
    searcher: &Searcher<'_>,
    file: Option<&File>,
    operation: Operation,
    asked: &Asked<'_>,
    ns: &[f64],
) -> Row {
    let data = asked.data;
    let tuples = data.keys.len() as u64;
    let in_batches = matches!(operation, Operation::Get | Operation::Absent);
    let tuples_per_query = (operation == Operation::Prefix)
        .then(|| asked.tuples(operation) as f64 / asked.queries(operation).len() as f64);
    let huge_share = file.and_then(|file| {
        machine::huge_mapped_bytes(&file.path).map(|huge| huge as f64 / file.bytes() as f64)
    });
    Row {
        batch: if in_batches { BATCH } else { 1 },
        build_s: searcher.build_s,
        bytes_per_tuple: searcher.bytes as f64 / tuples as f64,
        huge_share,
        texts: Some(searcher.facts.clone()),
        facts: Facts { tuples_per_query, ..Facts::default() },
        ..Row::new(searcher.engine, operation.name(), (data.key_type, ValueType::U32), tuples)
            .timed(asked.units(operation), ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two kinds, one of which has keys of one length.
    fn small() -> TextsOptions<'static> {
        TextsOptions {
            kinds: vec![Kind::Path, Kind::Phone],
            tuples: vec![4001],
            queries: 20_000,
            repetitions: 2,
            ..TextsOptions::new(true)
        }
    }

    /// Engines of the rows of an operation over some keys.
    fn engines<'a>(report: &'a Report, name: &str, operation: &str) -> Vec<&'a str> {
        let is_wanted = |row: &&Row| {
            row.operation == operation && row.texts.as_ref().is_some_and(|texts| texts.data == name)
        };
        report.rows.iter().filter(is_wanted).map(|row| row.engine.as_str()).collect()
    }

    #[test]
    fn every_engine_has_its_rows() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let report = run(&TextsOptions { dir: Some(folder.path().to_owned()), ..small() }).expect("a report");
        let stores = pleach_peers::Engine::AVAILABLE;
        let has = |engine| stores.contains(&engine);
        let optional = |name, is_there: bool| is_there.then_some(name);
        let lmdb = optional("lmdb", has(pleach_peers::Engine::Lmdb));
        let fst = optional("fst", has(pleach_peers::Engine::Fst));
        let files = ["pleach", "pleach-columns"];
        let singles: Vec<&str> = files.into_iter().chain(["hash-map"]).chain(lmdb).collect();
        let all: Vec<&str> = singles.iter().copied().chain(fst).collect();
        for kind in ["path", "phone"] {
            for operation in ["get", "absent"] {
                assert_eq!(engines(&report, kind, operation), all, "{kind} {operation}");
            }
            assert_eq!(engines(&report, kind, "single"), singles, "{kind}");
            for operation in ["prefix", "range"] {
                assert_eq!(engines(&report, kind, operation), files, "{kind} {operation}");
            }
        }
        let document = report.to_json();
        for row in document["rows"].as_array().expect("rows") {
            assert_eq!((&row["tuples"], &row["checked"]), (&4001.into(), &true.into()), "{row}");
            let is_there = |name: &str| row[name].as_f64().is_some_and(|number| number > 0.0);
            for name in ["ns_per_query", "build_s", "bytes_per_tuple", "key_bytes_per_tuple"] {
                assert!(is_there(name), "{name} in {row}");
            }
            assert_eq!(is_there("tuples_per_query"), row["operation"] == "prefix", "{row}");
            let sections = row["section_bytes_per_tuple"].as_object();
            assert_eq!(sections.is_some(), row["engine"].as_str().is_some_and(|name| files.contains(&name)));
        }
        let text = report.to_text();
        assert!(text.contains("path: utf8 to u32, 4001 tuples, random hits, one a call"), "{text}");
        assert!(text.contains("\npleach-columns: ") && text.contains("\nkeys: 15.00 B/tuple\n"), "{text}");
        crate::plot::svg(&document).expect("a picture");
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 0, "the files are removed");
    }

    #[test]
    fn keys_of_a_file() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("own.txt");
        let mut text = b"\n\nb\xFF\r\n".to_vec();
        (0..2000).for_each(|i| text.extend_from_slice(format!("a/{}\n", i * i % 1009).as_bytes()));
        text.extend_from_slice(b"last");
        std::fs::write(&path, text).expect("written");
        let keys = super::super::lines(&path).expect("keys");
        assert_eq!(
            (keys.len(), keys.get(0), keys.get(2001)),
            (2002, b"b\xFF\r".as_slice(), b"last".as_slice())
        );
        let own = Some(("own.txt".to_owned(), keys));
        let report = run(&TextsOptions { own, queries: 3000, ..small() }).expect("a report");
        assert!(engines(&report, "own.txt", "absent").contains(&"hash-map"));
        // Squares have 505 remainders by 1009; of 507 keys every fifth is out.
        assert!(report.rows.iter().all(|row| row.tuples == 406 && row.key_type == KeyType::Bytes));
    }

    #[test]
    fn absent_keys_are_one_in_five() {
        for count in [4, 5, 6, 7, 1000, 1003] {
            let all = Kind::LogTime.sorted(count + count / 4, 1);
            let data = Data::new("log-time".to_owned(), KeyType::Utf8, &all);
            assert_eq!((data.keys.len() as u64, data.absent.len() as u64), (count, count / 4));
            assert!(data.absent.iter().all(|key| search(data.keys.view(), key).is_err()));
            let both: Keys = data.keys.iter().chain(data.absent.iter()).collect();
            assert_eq!(sort(&both), all);
        }
    }

    #[test]
    fn prefixes_end_with_a_separator() {
        for (key, expected) in [
            ("/home/a/file.txt.gz", "/home/a/"),
            ("org.words.SomeClass", "org.words."),
            ("/12345678", "/"),
            ("/1234567", "/123"),
            ("one two three four", "one two "),
            ("0123456789abcdef", "01234567"),
            ("x", ""),
        ] {
            assert_eq!(prefix(key.as_bytes()), expected.as_bytes(), "{key}");
        }
    }

    #[test]
    fn wrong_answers_are_found() {
        let data = Data::new("name".to_owned(), KeyType::Utf8, &Kind::Name.sorted(500, 1));
        let asked = Asked::new(&data, 700);
        let folder = tempfile::tempdir().expect("a folder for the test");
        let tuples = (data.key_type, &data.keys, data.values.as_slice());
        let engines = Engines::new("", tuples, folder.path(), false, &mut Vec::new()).expect("engines");
        let mut searchers = engines.searchers(&TextFacts::default()).expect("searchers");
        let searcher = &mut searchers[0];
        for operation in Operation::ALL {
            let mut answers = Answers::new(700);
            answers.turn(&mut searcher.way, operation, &asked).expect("answers");
            answers.check(searcher.engine, operation, &asked).expect("right answers");
            if asked.sums(operation).is_empty() {
                answers.present[3] ^= 4;
            } else {
                answers.sums[5].sum ^= 1;
            }
            let wrong = answers.check(searcher.engine, operation, &asked);
            assert!(matches!(wrong, Err(BenchError::Wrong { .. })), "{}", operation.name());
        }
    }

    #[test]
    fn sizes_that_cannot_be_measured_are_refused() {
        let refused = |options: TextsOptions<'static>| {
            let result = run(&options);
            matches!(result, Err(BenchError::Options(text)) if !text.is_empty())
        };
        assert!(refused(TextsOptions { tuples: vec![3], ..small() }));
        assert!(refused(TextsOptions { repetitions: 0, ..small() }));
        let kinds = vec![Kind::Digits { bytes: 3, values: 10 }];
        assert!(refused(TextsOptions { kinds, tuples: vec![501], ..small() }));
        let own = Some(("own".to_owned(), ["a", "b", "a", "c", "d"].into_iter().collect()));
        assert!(refused(TextsOptions { own, ..small() }));
    }
}
