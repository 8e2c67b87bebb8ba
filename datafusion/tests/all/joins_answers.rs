//! Look-up joins, against the same joins of rows in memory.

use crate::kit::{self, Rows};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt64Array};
use datafusion::arrow::compute::{cast, filter_record_batch, take};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};
use pleach_datafusion::lookup::{Choose, LookupJoinRule};
use std::sync::Arc;

/// Joins with the table `T`, and whether they are look-up joins. Each has the probe `p` with a key that may be null,
/// and a number.
const JOINS: &[(&str, bool)] = &[
    ("SELECT p.m, p.k, t.k, t.n, t.s FROM p JOIN T t ON p.k = t.k", true),
    ("SELECT t.s, p.m FROM T t JOIN p ON p.k = t.k", true),
    ("SELECT p.m FROM p JOIN T t ON p.k = t.k", true),
    ("SELECT count(*) FROM p JOIN T t ON p.k = t.k", true),
    ("SELECT p.m, t.n, t.k, t.s FROM p LEFT JOIN T t ON p.k = t.k", true),
    ("SELECT t.n, p.k, p.m FROM T t RIGHT JOIN p ON p.k = t.k", true),
    ("SELECT p.m, p.k FROM p LEFT SEMI JOIN T t ON p.k = t.k", true),
    ("SELECT p.m FROM T t RIGHT SEMI JOIN p ON p.k = t.k", true),
    ("SELECT p.m, p.k FROM p LEFT ANTI JOIN T t ON p.k = t.k", true),
    ("SELECT p.m FROM T t RIGHT ANTI JOIN p ON p.k = t.k", true),
    ("SELECT p.m FROM p WHERE p.m < 20 OR EXISTS (SELECT 1 FROM T t WHERE t.k = p.k)", true),
    (
        "SELECT p.m FROM p WHERE p.m < 20 OR NOT EXISTS (SELECT 1 FROM T t WHERE t.k = p.k AND t.n > p.m)",
        true,
    ),
    // Tuples that have a match, each of them once.
    ("SELECT t.k, t.n, t.s FROM T t WHERE t.k IN (SELECT k FROM p)", true),
    ("SELECT t.s FROM T t RIGHT JOIN p ON p.k = t.k WHERE t.k IN (SELECT k FROM p WHERE m > 9)", true),
    ("SELECT count(*) FROM T t LEFT SEMI JOIN p ON p.k = t.k", true),
    ("SELECT t.n FROM p RIGHT SEMI JOIN (SELECT k, n * 2 AS n FROM T WHERE n > 0) t ON p.k = t.k", true),
    ("SELECT t.n FROM T t WHERE EXISTS (SELECT 1 FROM p WHERE p.k = t.k AND p.m > t.n)", false),
    ("SELECT t.n FROM T t LEFT ANTI JOIN p ON p.k = t.k", false),
    // Conditions that are no equality.
    ("SELECT p.m, t.n FROM p JOIN T t ON p.k = t.k AND p.m > t.n", true),
    ("SELECT p.m, t.s FROM p JOIN T t ON p.k = t.k AND p.m > t.n AND t.s <> 'row 1'", true),
    ("SELECT p.m, t.n FROM p LEFT JOIN T t ON p.k = t.k AND p.m > t.n", true),
    ("SELECT p.m, t.n FROM T t RIGHT JOIN p ON p.k = t.k AND p.m > t.n", true),
    ("SELECT p.m FROM p LEFT SEMI JOIN T t ON p.k = t.k AND p.m > t.n", true),
    ("SELECT p.m FROM p LEFT ANTI JOIN T t ON p.k = t.k AND p.m > t.n", true),
    // A second equality.
    ("SELECT p.m, t.s FROM p JOIN T t ON p.k = t.k AND p.m = t.n % 50", true),
    ("SELECT p.m, t.s FROM p LEFT JOIN T t ON p.k = t.k AND p.m = t.n", true),
    // Conditions on the table alone.
    ("SELECT p.m, t.n FROM p JOIN (SELECT * FROM T WHERE n % 2 = 0) t ON p.k = t.k", true),
    ("SELECT p.m, t.n FROM p LEFT JOIN (SELECT k, n + 1 AS n FROM T WHERE n % 2 = 0) t ON p.k = t.k", true),
    ("SELECT p.m FROM p LEFT ANTI JOIN (SELECT * FROM T WHERE s LIKE '%1') t ON p.k = t.k", true),
    ("SELECT p.m, t.n FROM p JOIN T t ON p.k = t.k WHERE t.k > LOW", true),
    ("SELECT p.m, t.n FROM p LEFT JOIN (SELECT * FROM T WHERE k < LOW OR k > HIGH) t ON p.k = t.k", true),
    ("SELECT p.m FROM p LEFT ANTI JOIN (SELECT * FROM T WHERE k BETWEEN LOW AND HIGH) t ON p.k = t.k", true),
    ("SELECT p.m FROM p LEFT ANTI JOIN (SELECT * FROM T WHERE k IN (LOW, HIGH)) t ON p.k = t.k", true),
    // Limits.
    ("SELECT count(*) FROM (SELECT p.m, t.n FROM p JOIN T t ON p.k = t.k LIMIT 7)", true),
    ("SELECT count(*), max(n) FROM (SELECT p.m, t.n FROM p LEFT JOIN T t ON p.k = t.k LIMIT 70000)", true),
    ("SELECT p.m, t.n FROM p LEFT JOIN T t ON p.k = t.k WHERE p.m > 10", true),
    // Above and below other plans.
    ("SELECT p.k, count(*), sum(t.n) FROM p JOIN T t ON p.k = t.k GROUP BY p.k", true),
    ("SELECT t.k, count(*) FROM p JOIN T t ON p.k = t.k GROUP BY t.k HAVING count(*) > 2", true),
    ("SELECT q.k, q.c, t.n FROM (SELECT k, count(*) AS c FROM p GROUP BY k) q JOIN T t ON q.k = t.k", true),
    ("SELECT p.m, t.n, u.s FROM p JOIN T t ON p.k = t.k LEFT JOIN T u ON p.k = u.k AND u.n < t.n", true),
    // Joins that keep tuples without a match, or return them alone.
    ("SELECT p.m, t.n FROM p FULL JOIN T t ON p.k = t.k", false),
    ("SELECT p.m, t.n FROM p RIGHT JOIN T t ON p.k = t.k", false),
    ("SELECT p.m, t.n FROM p JOIN T t ON p.m = t.n", false),
    ("SELECT p.m FROM p WHERE p.k NOT IN (SELECT k FROM T)", false),
    ("SELECT p.m, t.n FROM p JOIN (SELECT * FROM T ORDER BY k LIMIT 100) t ON p.k = t.k", false),
];

fn session(partitions: usize, batch_rows: usize, is_hash: bool) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch_rows);
    config.options_mut().optimizer.prefer_hash_join = is_hash;
    let rules = LookupJoinRule::new().choose(Choose::Always).added_to(PhysicalOptimizer::new().rules);
    let state = SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(state.with_physical_optimizer_rules(rules).build())
}

/// Leaves out the rows of some keys, so that these have no match.
fn thinned(batch: &RecordBatch) -> RecordBatch {
    let keys = batch.column(0);
    let text = |row: usize| array_value_to_string(keys, row).expect("keys can be shown");
    let is_kept = |row: usize| !text(row).bytes().map(u32::from).sum::<u32>().is_multiple_of(3);
    let kept: BooleanArray = (0..keys.len()).map(|row| Some(is_kept(row))).collect();
    filter_record_batch(batch, &kept).expect("a bit for each row")
}

/// Makes rows of the probe: keys of the batch, some of them null, several times and in any order.
fn probe(keys: &ArrayRef, data_type: &DataType, rows: usize, is_sorted: bool) -> RecordBatch {
    let each = |row: usize| (row % 11 != 3).then_some((row * row * 31 % keys.len()) as u64);
    let chosen: UInt64Array = (0..rows).map(each).collect();
    let mut keys = take(keys, &chosen, None).expect("rows are there");
    if is_sorted {
        keys = datafusion::arrow::compute::sort(&keys, None).expect("keys have an order");
    }
    let keys = cast(&keys, data_type).expect("keys can be cast");
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|row| row * 17 % 64)));
    let fields = vec![Field::new("k", data_type.clone(), true), Field::new("m", DataType::Int64, false)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![keys, numbers])
        .expect("columns are of one length")
}

fn register_probe(session: &SessionContext, batch: &RecordBatch, parts: usize) {
    let each = batch.num_rows().div_ceil(parts).max(1);
    let part = |part: usize| {
        let first = (part * each).min(batch.num_rows());
        vec![batch.slice(first, each.min(batch.num_rows() - first))]
    };
    let table =
        MemTable::try_new(batch.schema(), (0..parts).map(part).collect()).expect("rows are of their schema");
    session.register_table("p", Arc::new(table)).expect("the name is free");
}

/// Asks every third join, or all if the tests are whole; which ones differs between the numbers `part`.
async fn compare(
    session: &SessionContext,
    oracle: &SessionContext,
    case: &Rows,
    (what, part): (&str, usize),
) {
    let [low, _, high] = &case.keys;
    let is_asked = |number: usize| kit::is_whole() || (number + part).is_multiple_of(3);
    for (_, (join, is_look_up)) in JOINS.iter().enumerate().filter(|(number, _)| is_asked(*number)) {
        let join = join.replace("LOW", low).replace("HIGH", high);
        let [own, expected] = ["pleach", "rows"].map(|table| join.replace(" T t", &format!(" {table} t")));
        let [own, expected] = [(own, "pleach"), (expected, "rows")].map(|(join, table)| {
            join.replace(" T u", &format!(" {table} u")).replace("FROM T", &format!("FROM {table}"))
        });
        let plan = kit::plan(session, &own).await;
        let text = kit::text(&plan);
        assert_eq!(text.contains("LookupJoinExec"), *is_look_up, "{what} {own}\n{text}");
        let mut found =
            kit::run(session, &plan).await.unwrap_or_else(|error| panic!("{what} {own}: {error}\n{text}"));
        let mut expected = kit::rows(oracle, &expected)
            .await
            .unwrap_or_else(|error| panic!("the oracle answers {expected}: {error}"));
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{what} {own}\n{text}");
    }
}

fn types(key_type: &DataType) -> Vec<DataType> {
    let dictionary = |values| DataType::Dictionary(Box::new(DataType::Int32), Box::new(values));
    match key_type {
        DataType::UInt32 | DataType::Int32 => {
            vec![key_type.clone(), DataType::Int64, DataType::UInt16, DataType::Decimal128(20, 0)]
        }
        DataType::UInt64 => vec![DataType::UInt64, DataType::Int64, DataType::Int16],
        DataType::Int64 => vec![DataType::Int64, DataType::Int32, DataType::UInt64],
        DataType::LargeUtf8 => {
            vec![DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, dictionary(DataType::Utf8)]
        }
        other => vec![other.clone()],
    }
}

async fn compare_all(case: &Rows) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, set) = (folder.path().join("t.pleach"), folder.path().join("set"));
    let all = &case.batch;
    let batch = thinned(all);
    kit::build_file(&file, &batch, case.is_unique);
    kit::build_set(&set, &batch, case.is_unique, 150);
    let mut part = 0;
    for (number, data_type) in types(all.column(0).data_type()).iter().enumerate() {
        let shapes = [
            (700, false, 2, 64, true),
            (700, true, 2, 8192, false),
            (1, false, 1, 100, true),
            (0, false, 1, 100, true),
        ];
        for (rows, is_sorted, partitions, batch_rows, is_hash) in shapes {
            if number > 0 && rows < 700 {
                continue;
            }
            for (kind, path) in [("file", &file), ("set", &set)] {
                // Of rows that the engine merges, left joins with a condition fail: it is asked to hash them.
                let [session, oracle] = [is_hash, true].map(|is| session(partitions, batch_rows, is));
                kit::register(&session, "pleach", path);
                kit::register_rows(&oracle, "rows", &batch);
                let keys = match data_type {
                    // Keys that others of their type are not.
                    DataType::UInt64 | DataType::UInt16 => positive(all.column(0)),
                    _ => Arc::clone(all.column(0)),
                };
                let probe = probe(&keys, data_type, rows, is_sorted);
                register_probe(&session, &probe, partitions);
                register_probe(&oracle, &probe, partitions);
                let what = format!("{} {kind}, {rows} of {data_type}, sorted {is_sorted}", case.name);
                compare(&session, &oracle, case, (&what, part)).await;
                part += 1;
            }
        }
    }
}

/// Returns the keys that are not negative.
fn positive(keys: &ArrayRef) -> ArrayRef {
    let numbers = cast(keys, &DataType::Float64).expect("keys are numbers");
    let numbers = datafusion::common::cast::as_float64_array(&numbers).expect("they were cast").clone();
    let is_kept: BooleanArray = numbers.iter().map(|number| number.map(|number| number >= 0.0)).collect();
    datafusion::arrow::compute::filter(keys, &is_kept).expect("a bit for each key")
}

fn case(name: &str) -> Rows {
    let found = kit::cases().into_iter().find(|case| case.name == name);
    found.unwrap_or_else(|| panic!("the kit has a case {name}"))
}

#[tokio::test]
async fn numbers_that_are_unique() {
    compare_all(&case("u32")).await;
    compare_all(&case("i64")).await;
}

#[tokio::test]
async fn numbers_that_repeat() {
    compare_all(&case("u64")).await;
    compare_all(&case("i32")).await;
}

#[tokio::test]
async fn texts() {
    compare_all(&case("utf8")).await;
}

#[tokio::test]
async fn times_and_decimals() {
    compare_all(&case("date")).await;
    compare_all(&case("timestamp")).await;
    compare_all(&case("decimal")).await;
}

#[tokio::test]
async fn keys_of_another_type_that_do_not_fit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.pleach");
    let keys = UInt64Array::from(vec![0, 1, 5, u64::from(u32::MAX), i64::MAX as u64, u64::MAX]);
    let batch = kit::batch(Arc::new(keys));
    kit::build_file(&path, &batch, true);
    let numbers = [Some(-1), Some(0), None, Some(5), Some(i64::MIN), Some(i64::MAX), Some(5)];
    let session = session(1, 100, true);
    kit::register(&session, "pleach", &path);
    kit::register_rows(&session, "rows", &batch);
    kit::register_rows(&session, "p", &kit::batch(Arc::new(UInt64Array::from(vec![u64::MAX, 2, 5]))));
    let fields = vec![Field::new("k", DataType::Int64, true)];
    let probe =
        RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(Int64Array::from_iter(numbers))]);
    kit::register_rows(&session, "q", &probe.expect("one column"));
    for (probe, expected) in [("p", 2), ("q", 4)] {
        let query = format!("SELECT x.k, t.s FROM {probe} x JOIN pleach t ON x.k = t.k");
        let plan = kit::plan(&session, &query).await;
        assert!(kit::text(&plan).contains("LookupJoinExec"), "{}", kit::text(&plan));
        let mut found = kit::run(&session, &plan).await.expect("it answers");
        let mut oracle = kit::rows(&session, &query.replace("pleach", "rows")).await.expect("it answers");
        found.sort();
        oracle.sort();
        assert_eq!(found, oracle);
        assert_eq!(found.len(), expected, "{found:?}");
    }
}

#[tokio::test]
async fn rows_keep_the_order_of_the_probe() {
    let case = case("u64");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let set = folder.path().join("set");
    kit::build_set(&set, &case.batch, false, 150);
    let session = session(1, 50, true);
    kit::register(&session, "pleach", &set);
    register_probe(&session, &probe(case.batch.column(0), &DataType::Int64, 500, false), 1);
    let plan = kit::plan(&session, "SELECT p.m, p.k, t.n FROM p LEFT JOIN pleach t ON p.k = t.k").await;
    assert!(kit::text(&plan).contains("LookupJoinExec"));
    let rows = kit::run(&session, &plan).await.expect("it answers");
    let first = |row: &String| row.split('|').take(2).map(str::to_owned).collect::<Vec<_>>();
    let mut found: Vec<_> = rows.iter().map(first).collect();
    found.dedup();
    let mut expected: Vec<_> =
        kit::rows(&session, "SELECT m, k FROM p").await.expect("it answers").iter().map(first).collect();
    expected.dedup();
    assert_eq!(found, expected);
}

/// A key with more tuples than fit a batch: their rows come in batches.
#[tokio::test]
async fn a_long_run_comes_in_batches() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.pleach");
    let batch =
        kit::batch(Arc::new(UInt64Array::from_iter_values((0..20_000).map(|row| u64::from(row >= 3)))));
    kit::build_file(&path, &batch, false);
    let session = session(1, 128, true);
    kit::register(&session, "pleach", &path);
    kit::register_rows(&session, "rows", &batch);
    kit::register_rows(&session, "p", &kit::batch(Arc::new(UInt64Array::from(vec![1, 0, 7, 1]))));
    for join in [
        "SELECT p.n, t.n FROM p JOIN T t ON p.k = t.k",
        "SELECT p.n, t.n FROM p LEFT JOIN T t ON p.k = t.k AND t.n > 100000",
        "SELECT p.n, t.n FROM p LEFT JOIN T t ON p.k = t.k AND t.n < -290",
        "SELECT p.n FROM p LEFT SEMI JOIN T t ON p.k = t.k AND t.n > 130000",
    ] {
        let frame = session.sql(&join.replace(" T t", " pleach t")).await.expect("the query is right");
        let plan = frame.create_physical_plan().await.expect("it can be planned");
        assert!(kit::text(&plan).contains("LookupJoinExec"));
        let batches = datafusion::physical_plan::collect(plan, session.task_ctx()).await.expect("it answers");
        assert!(batches.iter().all(|batch| batch.num_rows() <= 2 * 128), "{join}");
        let mut found = kit::shown(&batches);
        let mut expected = kit::rows(&session, &join.replace(" T t", " rows t")).await.expect("it answers");
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{join}");
    }
}

/// A look-up join keeps a batch in memory; a hash join keeps one of its sides.
#[tokio::test]
async fn memory_is_that_of_a_batch() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.pleach");
    let rows = 200_000_u64;
    let batch = kit::batch(Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| row / 2))));
    kit::build_file(&path, &batch, false);
    for (choose, is_enough) in [(Choose::Always, true), (Choose::Never, false)] {
        let memory = RuntimeEnvBuilder::new().with_memory_limit(1 << 20, 1.0).build_arc().expect("a limit");
        let rules = LookupJoinRule::new().choose(choose).added_to(PhysicalOptimizer::new().rules);
        let state = SessionStateBuilder::new()
            .with_config(SessionConfig::new().with_target_partitions(1).with_batch_size(4096))
            .with_runtime_env(memory)
            .with_default_features()
            .with_physical_optimizer_rules(rules);
        let session = SessionContext::new_with_state(state.build());
        kit::register(&session, "t", &path);
        kit::register(&session, "u", &path);
        let found = kit::rows(&session, "SELECT count(*), max(t.s) FROM u JOIN t ON u.k = t.k").await;
        assert_eq!(found.is_ok(), is_enough, "{choose:?}: {found:?}");
        if let Ok(found) = found {
            assert_eq!(found, [format!("{}|row 999", rows * 2)]);
        }
    }
}
