//! Small runs of scans, single look-ups, openings and builds: answers are checked by the runs themselves, the rows
//! and the pictures made of them here.

use pleach::KeyType;
use pleach_bench::{
    BenchError, BenchOptions, LookupOptions, Queries, Report, build, latency, open, plot, range,
};
use pleach_bench::{ranks, run};

fn small() -> BenchOptions<'static> {
    BenchOptions { tuples: vec![5001], threads: vec![1, 2], repetitions: 2, ..BenchOptions::new(true) }
}

/// Engines of the rows of an operation, and that each row has its times and a picture can be made.
fn engines(report: &Report, operation: &str) -> Vec<String> {
    let document = report.to_json();
    let rows = document["rows"].as_array().expect("rows");
    for row in rows {
        assert!(row["ns_per_query"].as_f64().is_some_and(|ns| ns > 0.0), "{row}");
        assert_eq!(row["checked"], true);
    }
    let picture = plot::svg(&document).expect("a picture");
    let text = report.to_text();
    let of = rows.iter().filter(|row| row["operation"] == operation);
    let engines: Vec<String> = of.map(|row| row["engine"].as_str().unwrap_or_default().to_owned()).collect();
    for engine in &engines {
        assert!(picture.contains(engine.as_str()), "{engine} in the picture");
        assert!(text.contains(engine.as_str()), "{engine} in\n{text}");
    }
    engines
}

fn assert_has(engines: &[String], names: &[&str]) {
    for name in names {
        assert!(engines.iter().any(|engine| engine == name), "{name} in {engines:?}");
    }
}

#[test]
fn scans_are_measured() {
    let report = range::run(&small()).expect("a report");
    let engines = engines(&report, "scan");
    assert_has(&engines, &["pleach", "btreemap", "sorted-arrays", "limit-sequential"]);
    assert!(report.rows.iter().all(|row| row.facts.gb_per_s.is_some()));
    assert_eq!(report.notes.len() - usize::from(cfg!(debug_assertions)), 2, "no ranges of so few tuples");
}

#[test]
fn single_look_ups_are_measured() {
    let report = latency::run(&BenchOptions { key_types: vec![KeyType::U64], ..small() }).expect("a report");
    let engines = engines(&report, "get-dependent");
    assert_has(
        &engines,
        &["pleach", "hashbrown", "btreemap", "binary-search", "lmdb", "limit-dependent-miss"],
    );
    let pleach = &report.rows[0];
    assert!(pleach.facts.p50_ns <= pleach.facts.p99_ns && pleach.facts.p99_ns.is_some());
}

#[test]
fn openings_and_builds_are_measured() {
    let report = open::run(&small()).expect("a report");
    assert_has(&engines(&report, "open"), &["pleach", "sorted-arrays", "lmdb", "redb", "fst"]);
    let report = build::run(&small()).expect("a report");
    assert_has(&engines(&report, "build"), &["pleach", "copy"]);
}

#[test]
fn ranks_are_measured_beside_the_search_tree() {
    let report = ranks::run(&BenchOptions { key_types: vec![KeyType::U32], ..small() }).expect("a report");
    assert_has(&engines(&report, "lower-bound"), &["pleach", "search-tree"]);
    assert!(matches!(ranks::run(&small()), Err(BenchError::Options(_))));
}

#[test]
fn kinds_of_queries_are_compared_in_one_run() {
    let kinds = vec![Queries::Hits, Queries::HalfMisses, Queries::Zipf];
    let options = LookupOptions {
        tuples: vec![1 << 12],
        batch: 256,
        queries: 3000,
        repetitions: 2,
        kinds,
        ..LookupOptions::quick()
    };
    let report = run(&options).expect("a report");
    for kind in [None, Some("half-miss"), Some("zipf")] {
        let rows = report.rows.iter().filter(|row| row.facts.queries.as_deref() == kind);
        let engines: Vec<&str> = rows.map(|row| row.engine.as_str()).collect();
        assert!(engines.contains(&"pleach") && engines.contains(&"lmdb"), "{kind:?} {engines:?}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refused = |options: BenchOptions<'_>| matches!(range::run(&options), Err(BenchError::Options(_)));
    assert!(refused(BenchOptions { key_types: vec![KeyType::I32], ..small() }));
    assert!(refused(BenchOptions { tuples: vec![0], ..small() }));
    assert!(refused(BenchOptions { repetitions: 0, ..small() }));
}
