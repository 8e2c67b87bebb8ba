//! Plans: order is kept, files are left out, statistics are exact.

use crate::kit::{self, Rows};
use datafusion::arrow::array::UInt64Array;
use datafusion::common::stats::Precision;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use pleach_datafusion::{AlignRule, PleachScanExec, ScanDescription};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A case as a set of 12 files of 250 tuples, and as a file.
struct Tables {
    _folder: TempDir,
    set: PathBuf,
    file: PathBuf,
    case: Rows,
}

fn tables(name: &str) -> Tables {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let case = kit::cases().into_iter().find(|case| case.name == name).expect("there is such a case");
    let (file, set) = (folder.path().join("t.pleach"), folder.path().join("set"));
    kit::build_file(&file, &case.batch, case.is_unique);
    kit::build_set(&set, &case.batch, case.is_unique, 250);
    Tables { _folder: folder, set, file, case }
}

impl Tables {
    fn session(&self, partitions: usize) -> SessionContext {
        let session = kit::session(partitions, 100);
        kit::register(&session, "s", &self.set);
        kit::register(&session, "f", &self.file);
        kit::register_rows(&session, "rows", &self.case.batch);
        session
    }
}

#[tokio::test]
async fn rows_are_not_sorted_again() {
    let tables = tables("u32");
    for partitions in [1, 3] {
        let session = tables.session(partitions);
        for table in ["s", "f"] {
            for query in [
                "SELECT * FROM T ORDER BY k",
                "SELECT k FROM T WHERE k > 500 ORDER BY k NULLS FIRST LIMIT 7",
                "SELECT n, k FROM T ORDER BY k",
                "SELECT k, row_number() OVER (ORDER BY k) FROM T",
            ] {
                let plan = kit::plan(&session, &query.replace(" T", &format!(" {table}"))).await;
                assert!(!kit::text(&plan).contains("SortExec"), "{query}: {}", kit::text(&plan));
            }
            // The other way round they are.
            let plan = kit::plan(&session, &format!("SELECT * FROM {table} ORDER BY n")).await;
            assert!(kit::text(&plan).contains("SortExec"), "{}", kit::text(&plan));
        }
    }
}

#[tokio::test]
async fn the_last_keys_are_read_from_the_end() {
    let tables = tables("u64");
    for (partitions, opened) in [(1, 1), (3, 3)] {
        let session = tables.session(partitions);
        for query in [
            "SELECT k, n FROM s ORDER BY k DESC LIMIT 9",
            "SELECT k FROM s WHERE k < 700 ORDER BY k DESC LIMIT 9",
        ] {
            let plan = kit::plan(&session, query).await;
            let text = kit::text(&plan);
            assert!(!text.contains("SortExec") && text.contains("order=descending"), "{text}");
            let found = kit::run(&session, &plan).await.expect("it answers");
            let expected =
                kit::rows(&session, &query.replace("FROM s", "FROM rows")).await.expect("the oracle answers");
            let keys = |rows: &[String]| -> Vec<String> {
                rows.iter().map(|row| row.split('|').next().expect("there is a column").to_owned()).collect()
            };
            assert_eq!(keys(&found), keys(&expected), "{query}");
            assert!(kit::metric(&plan, "files_opened") <= opened, "{text}");
        }
    }
}

#[tokio::test]
async fn merge_joins_do_not_sort() {
    for name in ["u64", "utf8", "date"] {
        let tables = tables(name);
        // Files of other tuples, so that no border is the same.
        let folder = tempfile::tempdir().expect("a temporary folder");
        let other = folder.path().join("other");
        kit::build_set(&other, &tables.case.batch, tables.case.is_unique, 170);
        let [_, middle, high] = &tables.case.keys;
        for partitions in [2, 3, 7] {
            let state = tables.session(partitions).state();
            let rules = AlignRule::added_to(state.physical_optimizers().to_vec());
            let state = SessionStateBuilder::from(state).with_physical_optimizer_rules(rules);
            let session = SessionContext::new_with_state(state.build());
            kit::register(&session, "o", &other);
            let option = session.sql("SET datafusion.optimizer.prefer_hash_join = false").await;
            option.expect("an option").collect().await.expect("it is set");
            for query in [
                "SELECT a.k, a.n, b.n FROM s a JOIN f b ON a.k = b.k",
                "SELECT a.k, a.n, b.n FROM f a JOIN s b ON a.k = b.k",
                "SELECT a.k, a.n, b.n FROM s a LEFT JOIN o b ON a.k = b.k",
                "SELECT a.n, b.s FROM o a JOIN (SELECT k, s FROM s WHERE n % 3 = 0) b ON a.k = b.k",
                "SELECT a.k, b.n FROM o a FULL JOIN (SELECT n + 1 AS n, k FROM s WHERE k < MIDDLE) b ON a.k = b.k",
                "SELECT a.k, b.k FROM (SELECT k FROM s WHERE k > HIGH) a RIGHT JOIN o b ON a.k = b.k",
                "SELECT a.k FROM s a LEFT ANTI JOIN (SELECT k FROM o WHERE n % 2 = 0) b ON a.k = b.k",
            ] {
                let query = query.replace("MIDDLE", middle).replace("HIGH", high);
                let plan = kit::plan(&session, &query).await;
                let text = kit::text(&plan);
                for other in ["SortExec", "RepartitionExec", "HashJoinExec"] {
                    assert!(text.contains("SortMergeJoin") && !text.contains(other), "{query} {text}");
                }
                let mut found = kit::run(&session, &plan).await.expect("it answers");
                let mut oracle = query;
                for (table, alias) in [("s", "a"), ("f", "b"), ("f", "a"), ("s", "b"), ("o", "a"), ("o", "b")]
                {
                    oracle = oracle.replace(&format!(" {table} {alias}"), &format!(" rows {alias}"));
                }
                let oracle = oracle.replace("FROM s ", "FROM rows ").replace("FROM o ", "FROM rows ");
                // Merge joins of rows would be the engine's own, which have faults: it is asked to hash them.
                let hashing = kit::session(partitions, 100);
                kit::register_rows(&hashing, "rows", &tables.case.batch);
                let mut expected = kit::rows(&hashing, &oracle).await.expect("the oracle answers");
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_set_of_few_files_is_divided_within_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (set, other) = (folder.path().join("set"), folder.path().join("other"));
    let (rows, times) = (120_000_u64, 7);
    let keys = |step: u64| Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| row / times * step)));
    kit::build_set(&set, &kit::batch(keys(3)), false, 40_000);
    kit::build_set(&other, &kit::batch(keys(5)), false, 60_000);
    let state = kit::session(6, 8192).state();
    let rules = AlignRule::added_to(state.physical_optimizers().to_vec());
    let state = SessionStateBuilder::from(state).with_physical_optimizer_rules(rules);
    let session = SessionContext::new_with_state(state.build());
    kit::register(&session, "s", &set);
    kit::register(&session, "o", &other);
    let expected = (0..rows).map(|row| row / times * 3).filter(|key| (1000..=40_000).contains(key));
    let (count, sum) = expected.fold((0, 0), |(count, sum), key| (count + 1, sum + key));
    for (query, partitions, answer) in [
        ("SELECT count(k), sum(k) FROM s WHERE k BETWEEN 1000 AND 40000", 6, format!("{count}|{sum}")),
        ("SELECT count(DISTINCT k), sum(n) FROM s WHERE n > -400", 6, {
            let numbers: i64 = (0..rows as i64).map(|row| row * 7 - 300).sum();
            format!("{}|{numbers}", rows.div_ceil(times))
        }),
        // Single keys are not worth a second partition.
        ("SELECT count(k), min(k) FROM s WHERE k = 3 OR k = 6", 1, "14|3".to_owned()),
    ] {
        let plan = kit::plan(&session, query).await;
        let found: Vec<usize> = kit::scans(&plan)
            .iter()
            .filter_map(|scan| Some(scan.downcast_ref::<PleachScanExec>()?.partitions().len()))
            .collect();
        assert_eq!(found, [partitions], "{query} {}", kit::text(&plan));
        assert_eq!(kit::run(&session, &plan).await.expect("it answers"), [answer], "{query}");
    }
    let option = session.sql("SET datafusion.optimizer.prefer_hash_join = false").await;
    option.expect("an option").collect().await.expect("it is set");
    let query = "SELECT count(*), sum(s.k) FROM s JOIN o ON s.k = o.k";
    let plan = kit::plan(&session, query).await;
    let text = kit::text(&plan);
    assert!(!text.contains("SortExec") && !text.contains("Hash(["), "{text}");
    let last = (rows - 1) / times;
    let of = |key: u64, step: u64| {
        if !key.is_multiple_of(step) || key / step > last {
            0
        } else if key / step == last {
            (rows - 1) % times + 1
        } else {
            times
        }
    };
    let pairs = (0..=last * 5).map(|key| (key, of(key, 3) * of(key, 5)));
    let (count, sum) = pairs.fold((0, 0), |(count, sum), (key, pairs)| (count + pairs, sum + key * pairs));
    assert_eq!(kit::run(&session, &plan).await.expect("it answers"), [format!("{count}|{sum}")]);
}

#[tokio::test]
async fn files_that_cannot_have_keys_are_not_opened() {
    let tables = tables("u32");
    let session = tables.session(4);
    // A file has 250 keys, 3 apart: file i begins with 750 * i.
    for (query, chosen, opened) in [
        ("SELECT * FROM s WHERE k = 900", 1, 1),
        ("SELECT * FROM s WHERE k = 901", 1, 1),
        ("SELECT * FROM s WHERE k = 749", 0, 0),
        ("SELECT * FROM s WHERE k IN (3, 6, 8997)", 2, 2),
        ("SELECT * FROM s WHERE k >= 750 AND k < 1500", 1, 1),
        ("SELECT * FROM s WHERE k BETWEEN 747 AND 750", 2, 2),
        ("SELECT * FROM s WHERE k > 8997", 0, 0),
        ("SELECT * FROM s WHERE k < 751 OR k > 8000", 4, 4),
        ("SELECT * FROM s", 12, 12),
        ("SELECT * FROM s WHERE k <> 3", 12, 12),
    ] {
        let plan = kit::plan(&session, query).await;
        let scans = kit::scans(&plan);
        if chosen == 0 && scans.is_empty() {
            continue;
        }
        let shown = format!("files={chosen}/12");
        assert!(kit::text(&plan).contains(&shown), "{query}: {}", kit::text(&plan));
        let rows = kit::run(&session, &plan).await.expect("it answers");
        let expected =
            kit::rows(&session, &query.replace("FROM s", "FROM rows")).await.expect("the oracle answers");
        assert_eq!(rows.len(), expected.len(), "{query}");
        assert_eq!(kit::metric(&plan, "files_opened"), opened, "{query}");
        assert_eq!(kit::metric(&plan, "output_rows"), rows.len(), "{query}");
        assert!(!kit::text(&plan).contains("FilterExec"), "{}", kit::text(&plan));
    }
}

#[tokio::test]
async fn a_plan_shows_what_it_reads() {
    let tables = tables("date");
    let session = tables.session(2);
    let query = "SELECT s FROM s WHERE k > DATE '1970-02-10' AND k <= DATE '1970-03-01' AND n % 2 = 0";
    let text = kit::text(&kit::plan(&session, query).await);
    for part in [
        "PleachScanExec: set=",
        "generation=1",
        "files=1/12",
        "keys=> 1970-02-10 and <= 1970-03-01",
        "FilterExec: n@",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text =
        kit::text(&kit::plan(&session, "SELECT k FROM f WHERE k IN ('1970-02-10', '1970-02-11')").await);
    assert!(text.contains("keys== 1970-02-10 or = 1970-02-11"), "{text}");
    assert!(text.contains("file=") && text.contains("projection=[k]"), "{text}");
}

#[tokio::test]
async fn statistics_are_exact() {
    let tables = tables("u32");
    let session = tables.session(3);
    let exact = |number: usize| Precision::Exact(number);
    let key = |number: u32| Precision::Exact(ScalarValue::UInt32(Some(number)));
    for (query, rows, ends) in [
        ("SELECT * FROM s", 3000, Some((0, 8997))),
        ("SELECT * FROM f", 3000, Some((0, 8997))),
        ("SELECT * FROM f WHERE k > 900", 2699, Some((903, 8997))),
        ("SELECT * FROM f WHERE k BETWEEN 100 AND 200", 33, Some((102, 198))),
        ("SELECT * FROM s WHERE k >= 750 AND k < 1500", 250, Some((750, 1497))),
        ("SELECT * FROM f LIMIT 12", 12, None),
    ] {
        let plan = kit::plan(&session, query).await;
        let scan = kit::scans(&plan).remove(0);
        let found = scan.statistics_from_inputs(&[], &StatisticsArgs::new()).expect("there are statistics");
        assert_eq!(found.num_rows, exact(rows), "{query}");
        if let Some((min, max)) = ends {
            assert_eq!(found.column_statistics[0].min_value, key(min), "{query}");
            assert_eq!(found.column_statistics[0].max_value, key(max), "{query}");
            assert_eq!(found.column_statistics[0].distinct_count, exact(rows), "{query}");
        }
        // The numbers of the partitions are those of the whole, and those of the rows that come.
        let partitions = scan.properties().partitioning.partition_count();
        let mut sum = 0;
        for partition in 0..partitions {
            let args = StatisticsArgs::new().with_partition(Some(partition));
            let part = scan.statistics_from_inputs(&[], &args).expect("there are statistics");
            sum += part.num_rows.get_value().copied().expect("the number is known");
        }
        assert_eq!(sum, rows, "{query}");
        assert_eq!(kit::run(&session, &plan).await.expect("it answers").len(), rows, "{query}");
    }
    // What only a file can tell is no more than an estimate.
    let plan = kit::plan(&session, "SELECT * FROM s WHERE k > 900").await;
    let found = kit::scans(&plan)[0]
        .statistics_from_inputs(&[], &StatisticsArgs::new())
        .expect("there are statistics");
    assert!(matches!(found.num_rows, Precision::Inexact(_)), "{found:?}");
    // Counts and ends of tables are answered without reading any file.
    for query in ["SELECT count(*) FROM s", "SELECT min(k), max(k), count(*) FROM s"] {
        let plan = kit::plan(&session, query).await;
        assert!(kit::scans(&plan).is_empty(), "{query}: {}", kit::text(&plan));
    }
}

#[tokio::test]
async fn partitions_are_ranges_of_keys() {
    for name in ["u32", "u64", "utf8", "date", "decimal"] {
        let tables = tables(name);
        let session = tables.session(4);
        let plan = kit::plan(&session, "SELECT k, n FROM s").await;
        let scan = kit::scans(&plan).remove(0);
        let Partitioning::Range(range) = &scan.properties().partitioning else {
            panic!("{}", kit::text(&plan))
        };
        assert_eq!(range.partition_count(), 4, "{name}");
        let mut all = Vec::new();
        for partition in 0..4 {
            let stream = scan.execute(partition, session.task_ctx()).expect("it can be read");
            let batches = datafusion::physical_plan::common::collect(stream).await.expect("it can be read");
            let split = range.split_points();
            for batch in &batches {
                for row in 0..batch.num_rows() {
                    let key = ScalarValue::try_from_array(batch.column(0), row).expect("keys are values");
                    let after = split.get(partition).is_none_or(|end| key < end.values()[0]);
                    let before = partition == 0 || key >= split[partition - 1].values()[0];
                    assert!(before && after, "{name}: {key} in partition {partition}");
                }
            }
            all.extend(kit::shown(&batches));
        }
        let mut expected = kit::rows(&session, "SELECT k, n FROM rows").await.expect("the oracle answers");
        all.sort();
        expected.sort();
        assert_eq!(all, expected, "{name}");
        // Groups of keys are in one partition each, so that they need not be exchanged.
        let plan = kit::plan(&session, "SELECT k, count(*) FROM s GROUP BY k").await;
        assert!(kit::text(&plan).contains("ordering_mode=Sorted"), "{name}: {}", kit::text(&plan));
    }
}

#[tokio::test]
async fn a_description_is_a_scan() {
    let tables = tables("u32");
    let session = tables.session(3);
    for query in [
        "SELECT n FROM s WHERE k > 1000",
        "SELECT * FROM f",
        "SELECT k FROM s LIMIT 5",
        "SELECT s FROM f WHERE k IN (3, 900)",
    ] {
        let plan = kit::plan(&session, query).await;
        let found = kit::scans(&plan).remove(0);
        let scan = found.downcast_ref::<PleachScanExec>().expect("it is a scan");
        let text = serde_json::to_string(&scan.describe()).expect("it can be sent");
        let sent: ScanDescription = serde_json::from_str(&text).expect("it can be read");
        assert_eq!(sent, scan.describe());
        let copy = PleachScanExec::from_description(sent.clone(), pleach::OpenOptions::default())
            .expect("it is there");
        assert_eq!(kit::text(&(Arc::new(copy.clone()) as Arc<dyn ExecutionPlan>)), kit::text(&found));
        assert_eq!(copy.schema(), scan.schema());
        let [own, sent_rows] = [found, Arc::new(copy)]
            .map(|plan| (plan, &session))
            .map(|(plan, session)| async move { kit::run(session, &plan).await.expect("it answers") });
        assert_eq!(own.await, sent_rows.await, "{query}");
        let other = ScanDescription { generation: 9, ..sent };
        assert!(PleachScanExec::from_description(other, pleach::OpenOptions::default()).is_err());
    }
}

#[tokio::test]
async fn a_query_reads_the_generation_of_its_time() {
    let tables = tables("u32");
    let session = tables.session(2);
    let before = kit::plan(&session, "SELECT k FROM s").await;
    kit::build_set(&tables.set, &tables.case.batch.slice(0, 1000), true, 100);
    let after = kit::plan(&session, "SELECT k FROM s").await;
    assert_eq!(kit::run(&session, &before).await.expect("it answers").len(), 3000);
    assert_eq!(kit::run(&session, &after).await.expect("it answers").len(), 1000);
    assert!(kit::text(&after).contains("generation=2"), "{}", kit::text(&after));
}
