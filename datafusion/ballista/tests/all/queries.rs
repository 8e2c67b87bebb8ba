//! Answers of a cluster are those of one process, row for row.

use crate::kit::{Cluster, Tables, rows};

/// Queries whose rows are in one order.
pub const QUERIES: [&str; 14] = [
    "SELECT k, n FROM s ORDER BY k",
    "SELECT k, n FROM s WHERE k BETWEEN 14000 AND 47000 AND n % 7 = 3 ORDER BY k",
    "SELECT n FROM s WHERE k IN (3, 4, 59997, 119997, 120000) ORDER BY n",
    "SELECT n % 10 AS d, count(*), sum(k), min(k), max(n) FROM s GROUP BY d ORDER BY d",
    "SELECT count(*), min(k), max(k) FROM s",
    "SELECT k, n FROM s ORDER BY k DESC LIMIT 100",
    "SELECT k FROM s ORDER BY k LIMIT 7 OFFSET 9998",
    "SELECT p.id, p.k, s.n FROM p JOIN s ON p.k = s.k ORDER BY p.id",
    "SELECT p.id, s.n FROM p LEFT JOIN s ON p.k = s.k AND s.n > 500 ORDER BY p.id",
    "SELECT id FROM p WHERE k IN (SELECT k FROM s WHERE n < 300) ORDER BY id",
    "SELECT id FROM p WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = p.k) ORDER BY id",
    "SELECT s.n % 4 AS d, count(*), sum(p.id) FROM p JOIN s ON p.k = s.k GROUP BY d ORDER BY d",
    "SELECT k FROM s WHERE k < 9000 UNION ALL SELECT k FROM s WHERE k >= 110000 UNION ALL SELECT id FROM p ORDER BY k",
    "SELECT count(*), sum(a.n) FROM s a JOIN s b ON a.k = b.n * 3",
];

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_one_process() {
    let tables = Tables::new().await;
    let cluster = Cluster::of_two();
    let one = tables.in_session(pleach_datafusion::session()).await;
    for is_adaptive in [true, false] {
        let many = tables.in_session(cluster.client(is_adaptive).await).await;
        for sql in QUERIES {
            let expected = rows(&one, sql).await.expect("one process answers");
            let found = rows(&many, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert!(!expected.is_empty(), "{sql}");
            assert_eq!(found, expected, "{sql}, adaptive {is_adaptive}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn look_up_joins_are_in_distributed_plans() {
    let tables = Tables::new().await;
    let cluster = Cluster::of_two();
    let sql = "SELECT p.id, s.n FROM p JOIN s ON p.k = s.k ORDER BY p.id";
    for is_adaptive in [true, false] {
        let many = tables.in_session(cluster.client(is_adaptive).await).await;
        let plan = rows(&many, &format!("EXPLAIN {sql}")).await.expect("plans can be shown");
        let distributed = plan.iter().find(|row| row.starts_with("distributed_plan"));
        let distributed = distributed.unwrap_or_else(|| panic!("no distributed plan: {plan:?}"));
        assert!(distributed.contains("LookupJoinExec"), "adaptive {is_adaptive}: {distributed}");
        assert!(!distributed.contains("SortMergeJoinExec"), "adaptive {is_adaptive}: {distributed}");
        let ran = rows(&many, &format!("EXPLAIN ANALYZE {sql}")).await.expect("plans can be run").join("\n");
        assert!(
            ran.contains("LookupJoinExec") && !ran.contains("JoinSelection"),
            "adaptive {is_adaptive}: {ran}"
        );
        let scan =
            rows(&many, "EXPLAIN SELECT k FROM s WHERE n = 7").await.expect("plans can be shown").join("\n");
        assert!(
            scan.contains("PleachTaskScanExec: set=") && scan.contains("files=8/8"),
            "adaptive {is_adaptive}: {scan}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_executors_reach_the_client() {
    let tables = Tables::new().await;
    let cluster = Cluster::of_two();
    let many = tables.in_session(cluster.client(true).await).await;
    let file = std::fs::read_dir(tables.set().join("files"))
        .expect("the set is a folder")
        .flatten()
        .map(|entry| entry.path());
    let file = file.filter(|path| path.extension().is_some_and(|extension| extension == "pleach")).max();
    let file = file.expect("the set has files");
    let name = file.file_name().and_then(|name| name.to_str()).expect("names are texts").to_owned();
    std::fs::remove_file(&file).expect("the file is there");
    let error = rows(&many, "SELECT sum(n) FROM s").await.expect_err("a file is missing").to_string();
    assert!(error.contains(&name), "{error}");
    let error =
        rows(&many, &format!("COPY (SELECT k FROM s) TO '{}.new' STORED AS PLEACH", tables.set().display()))
            .await;
    let error = error.expect_err("COPY is refused").to_string();
    assert!(error.contains("pleach set build"), "{error}");
}
