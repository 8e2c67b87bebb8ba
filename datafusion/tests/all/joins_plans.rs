//! Which joins become look-up joins, by statistics alone.

use crate::kit;
use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion::prelude::{SessionConfig, SessionContext};
use pleach_datafusion::lookup::LookupJoinRule;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Tuples of the table.
const TUPLES: u64 = 1 << 20;

/// A table that says how many rows it has, and has none.
#[derive(Debug)]
struct Declared {
    schema: SchemaRef,
    rows: Option<usize>,
}

impl Declared {
    fn new(rows: Option<usize>) -> Self {
        let fields = vec![Field::new("k", DataType::UInt64, true), Field::new("m", DataType::Int64, false)];
        Self { schema: Arc::new(Schema::new(fields)), rows }
    }
}

#[async_trait]
impl TableProvider for Declared {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
    fn table_type(&self) -> TableType {
        TableType::Base
    }
    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(projection) => Arc::new(self.schema.project(projection)?),
            None => Arc::clone(&self.schema),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Arc::new(DeclaredExec { rows: self.rows, properties: Arc::new(properties) }))
    }
}

#[derive(Debug)]
struct DeclaredExec {
    rows: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for DeclaredExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeclaredExec: rows={:?}", self.rows)
    }
}

impl ExecutionPlan for DeclaredExec {
    fn name(&self) -> &'static str {
        "DeclaredExec"
    }
    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }
    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }
    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }
    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }
    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        datafusion::common::internal_err!("a table that was declared has no rows")
    }
    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let schema = self.schema();
        let rows = self.rows.map_or(Precision::Absent, Precision::Exact);
        let bytes = self.rows.map_or(Precision::Absent, |rows| Precision::Exact(rows * 16));
        let columns = schema.fields().iter().map(|_| ColumnStatistics::new_unknown()).collect();
        Ok(Arc::new(Statistics { num_rows: rows, total_byte_size: bytes, column_statistics: columns }))
    }
}

/// Tuples of a table that is so small that hashing it takes less time than looking up many keys.
const FEW_TUPLES: u64 = 1 << 14;

fn build(path: &Path) {
    build_of(path, TUPLES);
}

fn build_of(path: &Path, tuples: u64) {
    let keys: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..tuples).map(|key| key * 3)));
    kit::build_file(path, &kit::batch(keys), true);
}

#[derive(Clone, Copy, Debug)]
struct Engine {
    partitions: usize,
    is_hash: bool,
    is_after: bool,
}

const USUAL: Engine = Engine { partitions: 4, is_hash: true, is_after: false };
/// What Ballista does: sort-merge joins, no dynamic filters.
const MERGING: Engine = Engine { partitions: 4, is_hash: false, is_after: false };

fn session(engine: Engine, path: &Path) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(engine.partitions);
    config.options_mut().optimizer.prefer_hash_join = engine.is_hash;
    // A hash join whose filter another plan waits for is left alone.
    config.options_mut().optimizer.enable_join_dynamic_filter_pushdown = engine.is_hash && !engine.is_after;
    let rules = PhysicalOptimizer::new().rules;
    let rules = if engine.is_after {
        let mut rules = rules;
        rules.push(Arc::new(LookupJoinRule::new().after_requirements()));
        rules
    } else {
        LookupJoinRule::new().added_to(rules)
    };
    let state = SessionStateBuilder::new().with_config(config).with_default_features();
    let session = SessionContext::new_with_state(state.with_physical_optimizer_rules(rules).build());
    kit::register(&session, "t", path);
    session
}

async fn plan(session: &SessionContext, rows: Option<usize>, query: &str) -> String {
    session.register_table("p", Arc::new(Declared::new(rows))).expect("the name is free");
    let text = kit::text(&kit::plan(session, query).await);
    session.deregister_table("p").expect("it is registered");
    text
}

const JOIN: &str = "SELECT p.m, t.n FROM p JOIN t ON p.k = t.k";

#[tokio::test]
async fn build_keys_decide() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.pleach");
    build(&path);
    for engine in [USUAL, MERGING, Engine { is_after: true, ..USUAL }, Engine { is_after: true, ..MERGING }] {
        let session = session(engine, &path);
        for rows in [Some(100), Some(151), Some(46_000), Some(10_000_000), None] {
            let text = plan(&session, rows, JOIN).await;
            assert!(text.contains("LookupJoinExec"), "{engine:?}, {rows:?}: {text}");
            for other in ["HashJoinExec", "SortMergeJoinExec", "SortExec", "Hash(["] {
                assert!(!text.contains(other), "{rows:?}: {text}");
            }
        }
    }
    // A small table is read once, and its rows are hashed, if there are many keys.
    let small = folder.path().join("small.pleach");
    build_of(&small, FEW_TUPLES);
    for engine in [USUAL, Engine { is_after: true, ..USUAL }] {
        let session = session(engine, &small);
        for (rows, is_look_up) in [(100, true), (151, true), (46_000, false), (10_000_000, false)] {
            let text = plan(&session, Some(rows), JOIN).await;
            assert_eq!(text.contains("LookupJoinExec"), is_look_up, "{rows}: {text}");
            assert_eq!(text.contains("HashJoinExec"), !is_look_up, "{rows}: {text}");
        }
    }
}

#[tokio::test]
async fn the_plan_shows_what_is_looked_up() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.pleach");
    build(&path);
    let session = session(Engine { partitions: 1, ..USUAL }, &path);
    let query =
        "SELECT p.m, t.n FROM p LEFT JOIN (SELECT * FROM t WHERE k > 30) t ON p.k = t.k AND p.m > t.n";
    let text = plan(&session, Some(100), query).await;
    let place = path.display();
    for part in [
        "LookupJoinExec: join_type=Left, probe=left, on=(k@0 = k@0)",
        &format!("file={place}"),
        "keys=> 30",
        "filter=m@0 > n@1",
        "projection=[m, n]",
        "DeclaredExec: rows=Some(100)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn sides_in_order_are_not_sorted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.pleach");
    build(&path);
    // Both sides are read in the order of their keys, and all of their rows have a match.
    for is_after in [false, true] {
        let session = session(Engine { partitions: 2, is_hash: false, is_after }, &path);
        kit::register(&session, "u", &path);
        let text = plan(&session, None, "SELECT t.n, u.n FROM t JOIN u ON t.k = u.k").await;
        assert!(!text.contains("SortExec"), "{text}");
    }
}

#[tokio::test]
async fn order_and_partitions_that_plans_above_need_are_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.pleach");
    build(&path);
    for engine in [USUAL, MERGING, Engine { is_after: true, ..USUAL }, Engine { is_after: true, ..MERGING }] {
        let session = session(engine, &path);
        let keys: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..3000).map(|row| row * 7919 % 3000)));
        kit::register_rows(&session, "q", &kit::batch(keys));
        for query in [
            "SELECT q.k, t.n FROM q JOIN t ON q.k = t.k ORDER BY q.k",
            "SELECT q.k, count(*), sum(t.n) FROM q JOIN t ON q.k = t.k GROUP BY q.k ORDER BY q.k",
            "SELECT t.k, max(q.n) FROM q JOIN t ON q.k = t.k GROUP BY t.k ORDER BY t.k",
        ] {
            let plan = kit::plan(&session, query).await;
            assert!(kit::text(&plan).contains("LookupJoinExec"), "{}", kit::text(&plan));
            let rows = kit::run(&session, &plan).await.expect("it answers");
            let keys: Vec<u64> = rows.iter().filter_map(|row| row.split('|').next()?.parse().ok()).collect();
            assert_eq!(keys, (0..3000).step_by(3).collect::<Vec<u64>>(), "{}", kit::text(&plan));
        }
    }
}
