//! Answers are those of rows in memory, whatever the types of keys, the partitions and the size of batches.

use crate::kit::{self, Rows};
use datafusion::arrow::array::{ArrayRef, Int64Array, LargeStringArray, RecordBatch, UInt32Array};
use datafusion::prelude::SessionContext;
use pleach_format::{KeyType, Logical};
use pleach_input::InputOptions;
use std::sync::Arc;

/// Queries whose rows have one order, or are sorted before they are compared.
fn queries(case: &Rows) -> Vec<String> {
    let [low, middle, high] = &case.keys;
    let [no, far] = &case.others;
    let mut conditions = vec![
        "true".to_owned(),
        format!("k = {middle}"),
        format!("{middle} = k"),
        format!("k = {no}"),
        format!("k = {far}"),
        format!("k <> {middle}"),
        format!("k < {middle}"),
        format!("k <= {middle}"),
        format!("k > {middle}"),
        format!("k >= {middle}"),
        format!("{middle} > k"),
        format!("k > {no}"),
        format!("k >= {far}"),
        format!("k < {far}"),
        format!("k BETWEEN {low} AND {high}"),
        format!("k NOT BETWEEN {low} AND {high}"),
        format!("k > {high} AND k < {low}"),
        format!("k IN ({low}, {no}, {middle}, {far}, {middle})"),
        format!("k NOT IN ({low}, {no}, {middle})"),
        format!("k < {low} OR k > {high}"),
        format!("k = {low} OR k = {high} OR k BETWEEN {no} AND {high}"),
        format!("NOT (k < {middle})"),
        format!("NOT (k = {low} OR k > {middle})"),
        format!("k > {low} AND n % 2 = 0"),
        format!("k = {low} OR n = -300"),
        format!("k IN ({low}, {middle}) AND s LIKE 'row %1'"),
        "k IS NULL".to_owned(),
        "k IS NOT NULL".to_owned(),
        "k = NULL".to_owned(),
    ];
    if case.name == "utf8" {
        let patterns = [
            "LIKE 'key 00015%'",
            "LIKE 'key 000_5%'",
            "NOT LIKE 'key 00%'",
            "LIKE '%5'",
            "LIKE 'x%'",
            "ILIKE 'KEY 00015%'",
        ];
        conditions.extend(patterns.map(|pattern| format!("k {pattern}")));
        conditions.push("starts_with(k, 'key 00027') OR k LIKE 'key 00000__'".to_owned());
    }
    let mut queries = Vec::new();
    for condition in conditions {
        queries.push(format!("SELECT * FROM T WHERE {condition}"));
        queries.push(format!(
            "SELECT count(*), min(k), max(k), count(DISTINCT k), sum(n) FROM T WHERE {condition}"
        ));
        queries.push(format!("SELECT count(*) FROM T WHERE {condition}"));
        queries.push(format!("SELECT s, k FROM T WHERE {condition}"));
        queries.push(format!("SELECT n FROM T WHERE {condition}"));
        queries.push(format!("SELECT 1 FROM T WHERE {condition}"));
    }
    queries.extend([
        "SELECT count(*) FROM T".to_owned(),
        "SELECT k, count(*), sum(n) FROM T GROUP BY k".to_owned(),
        "SELECT k, count(*) FROM T GROUP BY k HAVING count(*) > 1".to_owned(),
        "SELECT count(*) FROM (SELECT * FROM T LIMIT 17)".to_owned(),
        format!("SELECT count(*) FROM (SELECT * FROM T WHERE k > {middle} LIMIT 5)"),
        "SELECT * FROM T LIMIT 0".to_owned(),
        "SELECT DISTINCT k FROM T".to_owned(),
        format!("SELECT a.k, a.n, b.n FROM T a JOIN T b ON a.k = b.k WHERE a.k < {low}"),
        format!("SELECT a.k, a.n FROM T a WHERE a.k IN (SELECT k FROM T WHERE n < 0 AND k <> {middle})"),
        format!("SELECT a.k, a.n FROM T a WHERE a.k NOT IN (SELECT k FROM T WHERE k > {low})"),
        format!("SELECT a.k, b.n FROM T a LEFT JOIN (SELECT * FROM T WHERE k > {high}) b ON a.k = b.k"),
        format!("SELECT k FROM T WHERE k < {low} UNION ALL SELECT k FROM T WHERE k > {high}"),
    ]);
    queries
}

/// Queries whose rows come in the order that they ask for; ties have no other columns.
fn ordered(case: &Rows) -> Vec<String> {
    let [low, middle, _] = &case.keys;
    vec![
        "SELECT k FROM T ORDER BY k".to_owned(),
        "SELECT k FROM T ORDER BY k DESC".to_owned(),
        "SELECT k FROM T ORDER BY k LIMIT 10".to_owned(),
        "SELECT k FROM T ORDER BY k DESC LIMIT 10".to_owned(),
        "SELECT k FROM T ORDER BY k LIMIT 10 OFFSET 1234".to_owned(),
        "SELECT k, n FROM T ORDER BY k, n LIMIT 100".to_owned(),
        format!("SELECT k FROM T WHERE k > {low} ORDER BY k LIMIT 20"),
        format!("SELECT k, n FROM T WHERE k <= {middle} ORDER BY k DESC, n LIMIT 20"),
        "SELECT k, row_number() OVER (ORDER BY k, n) FROM T ORDER BY k, n".to_owned(),
        format!(
            "SELECT a.k, b.n FROM (SELECT k FROM T ORDER BY k LIMIT 30) a JOIN T b ON a.k = b.k WHERE b.k >= {low} \
             ORDER BY a.k, b.n"
        ),
    ]
}

/// Asks every third query, or all if the tests are whole; which ones differs between the numbers `part`.
async fn compare(session: &SessionContext, case: &Rows, kind: &str, part: usize) {
    let is_asked = |number: usize| kit::is_whole() || (number + part).is_multiple_of(3);
    let any = queries(case).into_iter().map(|query| (query, false));
    let all = any.chain(ordered(case).into_iter().map(|query| (query, true)));
    for (_, (query, is_ordered)) in all.enumerate().filter(|(number, _)| is_asked(*number)) {
        let [own, expected] = ["pleach", "rows"].map(|table| query.replace(" T", &format!(" {table}")));
        let mut found =
            kit::rows(session, &own).await.unwrap_or_else(|error| panic!("{kind} {own}: {error}"));
        let mut expected = kit::rows(session, &expected).await.expect("the oracle answers");
        if !is_ordered {
            found.sort();
            expected.sort();
        }
        assert_eq!(found, expected, "{} {kind}: {query}", case.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_rows_in_memory() {
    for (number, case) in kit::cases().iter().enumerate() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (file, set) = (folder.path().join("t.pleach"), folder.path().join("set"));
        kit::build_file(&file, &case.batch, case.is_unique);
        kit::build_set(&set, &case.batch, case.is_unique, 250);
        let forms = [
            ("file", &file, 1, 8192),
            ("set", &set, 3, 100),
            ("file", &file, 3, 100),
            ("set", &set, 1, 8192),
        ];
        for (form, (kind, path, partitions, batch_rows)) in forms.into_iter().enumerate() {
            let session = kit::session(partitions, batch_rows);
            kit::register(&session, "pleach", path);
            kit::register_rows(&session, "rows", &case.batch);
            compare(&session, case, &format!("{kind} in {partitions}"), number + form).await;
        }
    }
}

#[tokio::test]
async fn a_table_without_rows_answers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let case = &kit::cases()[0];
    let none = case.batch.slice(0, 0);
    let (file, set) = (folder.path().join("t.pleach"), folder.path().join("set"));
    kit::build_file(&file, &none, false);
    kit::build_set(&set, &none, false, 10);
    for path in [&file, &set] {
        let session = kit::session(2, 100);
        kit::register(&session, "t", path);
        let rows = kit::rows(&session, "SELECT count(*), min(k), sum(n) FROM t").await.expect("it answers");
        assert_eq!(rows, ["0|null|null"]);
        let rows = kit::rows(&session, "SELECT * FROM t WHERE k > 5 ORDER BY k").await.expect("it answers");
        assert_eq!(rows, [""; 0]);
    }
}

/// Compares queries over `pleach` with those over `rows`.
async fn same(session: &SessionContext, queries: &[&str]) {
    for query in queries {
        let [own, expected] = ["pleach", "rows"].map(|table| query.replace(" T", &format!(" {table}")));
        let mut found = kit::rows(session, &own).await.unwrap_or_else(|error| panic!("{own}: {error}"));
        let mut expected = kit::rows(session, &expected).await.expect("the oracle answers");
        if !query.contains("ORDER BY") {
            found.sort();
            expected.sort();
        }
        assert_eq!(found, expected, "{query}");
    }
}

#[tokio::test]
async fn keys_of_two_columns_are_two_columns() {
    let rows = 2000;
    let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values((0..rows).map(|row| row / 20 * 2)));
    let texts: ArrayRef =
        Arc::new(LargeStringArray::from_iter_values((0..rows).map(|row| format!("{}", row % 20 * 77 % 20))));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(i64::from)));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("a", numbers, false),
        ("b", texts, false),
        ("n", values, false),
    ]);
    let batch = kit::shuffled(&batch.expect("columns are of one length"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.pleach");
    let input = InputOptions { key: Some("a,b".into()), value: Some("n".into()), ..InputOptions::default() };
    kit::build_with(&path, &batch, &input, true);
    let session = kit::session(3, 100);
    kit::register(&session, "pleach", &path);
    kit::register_rows(&session, "rows", &batch);
    same(
        &session,
        &[
            "SELECT * FROM T",
            "SELECT n, b, a FROM T WHERE a = 8",
            "SELECT * FROM T WHERE a = 9",
            "SELECT * FROM T WHERE a = 8 AND b = '7'",
            "SELECT * FROM T WHERE a > 8 AND a <= 40",
            "SELECT * FROM T WHERE a IN (0, 1, 2, 198, 400)",
            "SELECT count(*), min(a), max(a) FROM T WHERE a < 20",
            "SELECT min(a), max(a), min(b), max(b), count(*) FROM T",
            "SELECT * FROM T WHERE b = '3'",
            "SELECT a, b FROM T ORDER BY a, b LIMIT 50",
            "SELECT a, b FROM T ORDER BY a DESC, b DESC LIMIT 50",
            "SELECT a, b FROM T ORDER BY a DESC, b LIMIT 50",
            "SELECT a, count(*) FROM T GROUP BY a",
            "SELECT x.a, x.b, y.n FROM T x JOIN T y ON x.a = y.a AND x.b = y.b WHERE x.a < 10",
        ],
    )
    .await;
    let plan = kit::plan(&session, "SELECT a, b FROM pleach WHERE a = 8 ORDER BY a, b").await;
    let text = kit::text(&plan);
    assert!(!text.contains("SortExec") && !text.contains("FilterExec"), "{text}");
}

#[tokio::test]
async fn keys_that_are_shown_as_texts_are_found_by_them() {
    let rows = 300_u32;
    let address = |row: u32| std::net::Ipv4Addr::from(row * 7_919_777).to_string();
    let keys: ArrayRef = Arc::new(LargeStringArray::from_iter_values((0..rows).map(address)));
    let batch = kit::batch(keys);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.pleach");
    let input = InputOptions {
        key: Some("k".into()),
        value: Some("n,s".into()),
        key_type: Some(KeyType::U32),
        key_logical: Some(Logical::Ipv4),
        ..InputOptions::default()
    };
    kit::build_with(&path, &batch, &input, true);
    let session = kit::session(2, 100);
    kit::register(&session, "pleach", &path);
    kit::register_rows(&session, "rows", &batch);
    let (one, two) = (address(17), address(250));
    same(
        &session,
        &[
            "SELECT * FROM T",
            &format!("SELECT * FROM T WHERE k = '{one}'"),
            &format!("SELECT * FROM T WHERE k IN ('{one}', '{two}', '1.2.3.4', 'no address', '01.2.3.4')"),
            &format!("SELECT * FROM T WHERE k <> '{one}'"),
            &format!("SELECT * FROM T WHERE k > '{one}'"),
            "SELECT min(k), max(k), count(*) FROM T",
            "SELECT k FROM T ORDER BY k",
        ],
    )
    .await;
    let plan = kit::plan(&session, &format!("SELECT n FROM pleach WHERE k = '{one}'")).await;
    assert_eq!(kit::run(&session, &plan).await.expect("it answers").len(), 1);
    assert_eq!(kit::metric(&plan, "output_rows"), 1, "{}", kit::text(&plan));
}
