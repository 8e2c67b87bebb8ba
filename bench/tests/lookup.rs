//! A small run of every engine: answers are checked by the run itself, names and keys here.

use pleach::KeyType;
use pleach_bench::{BenchError, LookupOptions, Told, run};

fn small() -> LookupOptions<'static> {
    LookupOptions {
        tuples: vec![1 << 12],
        threads: vec![1, 2],
        batch: 256,
        queries: 3000,
        repetitions: 2,
        ..LookupOptions::quick()
    }
}

#[test]
fn every_engine_in_one_report() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let report = run(&LookupOptions { dir: Some(folder.path().to_owned()), ..small() }).expect("a report");
    let document = report.to_json();
    assert_eq!(document["schema"], "pleach-bench-1");
    for key in ["cpu", "features", "cores", "kernel", "thp"] {
        assert!(document["machine"].get(key).is_some(), "{key}");
    }
    let rows = document["rows"].as_array().expect("rows");
    let engines =
        ["pleach", "hashbrown", "btreemap", "binary-search", "lmdb", "redb", "fst", "limit-one-line"];
    for engine in engines {
        for key_type in ["u32", "u64"] {
            for threads in [1, 2] {
                let found: Vec<_> = rows
                    .iter()
                    .filter(|row| {
                        row["engine"] == engine && row["key_type"] == key_type && row["threads"] == threads
                    })
                    .collect();
                // Pleach also answers all queries in one call.
                assert_eq!(
                    found.len(),
                    if engine == "pleach" { 2 } else { 1 },
                    "{engine} {key_type} {threads}"
                );
            }
        }
    }
    for row in rows {
        for key in ["engine", "operation", "key_type", "value_type", "tuples", "threads", "batch"] {
            assert!(row.get(key).is_some(), "{key}: {row}");
        }
        for key in ["ns_per_query", "build_s", "bytes_per_tuple"] {
            assert!(row[key].as_f64().is_some_and(|number| number > 0.0), "{key}: {row}");
        }
        assert_eq!((&row["operation"], &row["checked"]), (&"get".into(), &true.into()));
        assert_eq!(row["tuples"], 1 << 12);
        assert!(row["ns_min"].as_f64() <= row["ns_per_query"].as_f64());
        assert!(row["ns_per_query"].as_f64() <= row["ns_max"].as_f64());
    }
    let text = report.to_text();
    for engine in engines {
        assert!(text.contains(engine), "{engine} in\n{text}");
    }
    let left = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(left, 0, "nothing stays behind");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refused = |options: LookupOptions<'_>| matches!(run(&options), Err(BenchError::Options(_)));
    assert!(refused(LookupOptions { key_types: vec![KeyType::I32], ..small() }));
    assert!(refused(LookupOptions { tuples: vec![0], ..small() }));
    assert!(refused(LookupOptions { tuples: vec![1 << 32], key_types: vec![KeyType::U32], ..small() }));
    assert!(refused(LookupOptions { batch: 100, ..small() }));
    assert!(refused(LookupOptions { threads: vec![0], ..small() }));
}

#[test]
fn a_run_can_be_interrupted() {
    let stop = || true;
    let options = LookupOptions { told: Told { cancelled: Some(&stop), ..Told::default() }, ..small() };
    assert!(matches!(run(&options), Err(BenchError::Interrupted)));
}
