//! `COPY ... STORED AS PLEACH` and `CREATE EXTERNAL TABLE ... STORED AS PLEACH`.

use crate::kit;
use datafusion::prelude::SessionContext;
use pleach_datafusion::with_paths;
use pleach_set::Set;
use std::fs;

async fn ask(session: &SessionContext, sql: &str) -> Vec<String> {
    kit::rows(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_come_back() {
    for case in kit::cases() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().display();
        let session = with_paths(kit::session(2, 500));
        kit::register_rows(&session, "rows", &case.batch);
        let count = ask(&session, &format!("COPY rows TO '{path}/t.pleach' STORED AS PLEACH")).await;
        assert_eq!(count, ["3000"], "{}", case.name);
        let copy = format!(
            "COPY (SELECT * FROM rows) TO '{path}/set' STORED AS PLEACH OPTIONS (key k, partition_tuples 500)"
        );
        assert_eq!(ask(&session, &copy).await, ["3000"], "{}", case.name);
        ask(&session, &format!("CREATE EXTERNAL TABLE f STORED AS PLEACH LOCATION '{path}/t.pleach'")).await;
        ask(
            &session,
            &format!(
                "CREATE EXTERNAL TABLE s STORED AS PLEACH LOCATION '{path}/set' OPTIONS (verify touched)"
            ),
        )
        .await;
        let mut expected = ask(&session, "SELECT * FROM rows").await;
        expected.sort();
        for table in ["f".to_owned(), "s".to_owned(), format!("'{path}/t.pleach'"), format!("'{path}/set'")] {
            let mut found = ask(&session, &format!("SELECT * FROM {table}")).await;
            found.sort();
            assert_eq!(found, expected, "{} {table}", case.name);
        }
        assert!(Set::open(folder.path().join("set")).expect("it is a set").manifest().files() > 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_published_of_a_query_that_fails() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().display();
    let session = kit::session(1, 100);
    kit::register_rows(&session, "rows", &kit::cases()[1].batch);
    // The last row divides by zero.
    let query = "SELECT k, 1 / (n - 20693) AS q FROM rows ORDER BY n";
    for (target, options) in [("t.pleach", ""), ("set", "OPTIONS (partition_tuples 100)")] {
        let copy = format!("COPY ({query}) TO '{path}/{target}' STORED AS PLEACH {options}");
        let error = kit::rows(&session, &copy).await.expect_err("it divides by zero").to_string();
        assert!(error.to_lowercase().contains("divide by zero"), "{error}");
        let left: Vec<_> = fs::read_dir(folder.path()).expect("it is a folder").collect();
        assert!(left.is_empty(), "{left:?}");
    }
    // Equal keys, where every key is to be another.
    let copy = format!("COPY rows TO '{path}/t.pleach' STORED AS PLEACH OPTIONS (unique error)");
    let error = kit::rows(&session, &copy).await.expect_err("keys are there four times").to_string();
    assert!(error.contains("duplicate") || error.contains("twice") || error.contains("same key"), "{error}");
    assert!(!folder.path().join("t.pleach").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_are_checked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().display();
    let session = kit::session(1, 100);
    kit::register_rows(&session, "rows", &kit::cases()[0].batch);
    for (options, part) in [
        ("(keys k)", "no such option: keys"),
        ("(unique maybe)", "`unique`"),
        ("(memory lots)", "`memory`"),
        ("(partition_tuples 0)", "`partition_tuples`"),
        ("(key nothing)", "nothing"),
    ] {
        let copy = format!("COPY rows TO '{path}/t.pleach' STORED AS PLEACH OPTIONS {options}");
        let error = kit::rows(&session, &copy).await.expect_err(options).to_string();
        assert!(error.contains(part), "{options}: {error}");
        assert!(!folder.path().join("t.pleach").exists(), "{options}");
    }
    let copy = format!(
        "COPY rows TO '{path}/t.pleach' STORED AS PLEACH OPTIONS (value n, unique first, memory '256MiB')"
    );
    assert_eq!(ask(&session, &copy).await, ["3000"]);
    let create = format!("CREATE EXTERNAL TABLE t (k INT) STORED AS PLEACH LOCATION '{path}/t.pleach'");
    let error = kit::rows(&session, &create).await.expect_err("columns are given").to_string();
    assert!(error.contains("leave out the list of columns"), "{error}");
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PLEACH LOCATION '{path}/other.pleach'");
    let error = kit::rows(&session, &create).await.expect_err("it is missing").to_string();
    assert!(error.contains("other.pleach"), "{error}");
}
