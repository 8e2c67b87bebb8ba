//! The join as a physical plan.

use super::output::{Kept, Out, joined, origins, projected};
use super::side::TableSide;
use super::step::Shared;
use super::stream::{self, Metrics};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinSide, Result, Statistics, internal_err, plan_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::JoinType;
use datafusion::physical_expr::equivalence::{ProjectionMapping, join_equivalence_properties};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalExprRef};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, FilterDescription, FilterPushdownPhase,
};
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, adjust_right_output_partitioning};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::{EmbeddedProjection, ProjectionExec, try_embed_projection};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    apply_expression_roots,
};
use std::fmt;
use std::sync::Arc;

/// A join whose probe looks up tuples of a table, which is never read as a whole.
///
/// Rows come in the order of the probe; tuples of the same key are in the order of the table. The partitions are
/// those of the probe. A stream keeps one batch of the probe, the ranks of its keys and the tuples of one batch of
/// the output in memory, however many tuples a key has.
///
/// The table is not a child of this plan: rules that repartition, sort or filter children would make it a scan.
#[derive(Clone, Debug)]
pub struct LookupJoinExec {
    probe: Arc<dyn ExecutionPlan>,
    table: TableSide,
    probe_side: JoinSide,
    /// Keys of the probe and of the table.
    on: (PhysicalExprRef, PhysicalExprRef),
    filter: Option<JoinFilter>,
    join_type: JoinType,
    kept: Kept,
    /// Columns of the join, before the projection.
    columns: Vec<ColumnIndex>,
    projection: Option<Vec<usize>>,
    fetch: Option<usize>,
    statistics: Option<Arc<Statistics>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl LookupJoinExec {
    /// Makes a join of `probe`, which is the left or the right input as `probe_side` says, with a table.
    ///
    /// `on` has the keys of the probe and of the table, each as an expression over the columns of its side. `filter`
    /// is a further condition of a match. `projection` has the columns of the output, among those of the join.
    ///
    /// # Errors
    /// [`DataFusionError::Plan`](datafusion::error::DataFusionError::Plan) if the join would keep rows of the table
    /// that have no match, or if the key of the table is not what the second expression says.
    pub fn try_new(
        probe: Arc<dyn ExecutionPlan>,
        table: TableSide,
        probe_side: JoinSide,
        on: (PhysicalExprRef, PhysicalExprRef),
        filter: Option<JoinFilter>,
        join_type: JoinType,
        projection: Option<Vec<usize>>,
    ) -> Result<Self> {
        let Some(kept) = Kept::new(join_type, probe_side) else {
            return plan_err!(
                "a look-up join cannot be a {join_type} join with its probe on the {probe_side}"
            );
        };
        if !table.is_key(&on.1) {
            return plan_err!("a look-up join needs the key of a table, not '{}'", on.1);
        }
        let (schema, columns) = joined(&probe.schema(), table.schema(), probe_side, join_type);
        let properties =
            properties(&probe, &table, probe_side, &on, join_type, schema, projection.as_deref())?;
        Ok(Self {
            probe,
            table,
            probe_side,
            on,
            filter,
            join_type,
            kept,
            columns,
            projection,
            fetch: None,
            statistics: None,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Sets what is known of the output, before the limit.
    #[must_use]
    pub fn with_statistics(mut self, statistics: Option<Arc<Statistics>>) -> Self {
        self.statistics = statistics;
        self
    }

    /// Sets how many rows each partition returns at most.
    #[must_use]
    pub fn with_limit(mut self, fetch: Option<usize>) -> Self {
        self.fetch = fetch;
        self
    }

    /// Returns the plan whose rows look up.
    #[must_use]
    pub fn probe(&self) -> &Arc<dyn ExecutionPlan> {
        &self.probe
    }
    /// Returns the table.
    #[must_use]
    pub fn table(&self) -> &TableSide {
        &self.table
    }
    /// Returns which input the probe is.
    #[must_use]
    pub fn probe_side(&self) -> JoinSide {
        self.probe_side
    }
    /// Returns the keys of the probe and of the table.
    #[must_use]
    pub fn on(&self) -> &(PhysicalExprRef, PhysicalExprRef) {
        &self.on
    }
    /// Returns the further condition of a match.
    #[must_use]
    pub fn filter(&self) -> Option<&JoinFilter> {
        self.filter.as_ref()
    }
    /// Returns the type of the join.
    #[must_use]
    pub fn join_type(&self) -> JoinType {
        self.join_type
    }
    /// Returns the columns of the output, among those of the join; `None` for all.
    #[must_use]
    pub fn projection(&self) -> Option<&[usize]> {
        self.projection.as_deref()
    }

    fn over(&self, probe: Arc<dyn ExecutionPlan>, projection: Option<Vec<usize>>) -> Result<Self> {
        let (table, on, filter) = (self.table.clone(), self.on.clone(), self.filter.clone());
        let join = Self::try_new(probe, table, self.probe_side, on, filter, self.join_type, projection)?;
        Ok(join.with_statistics(self.statistics.clone()).with_limit(self.fetch))
    }

    /// Returns the origins of the columns of the output.
    fn out(&self) -> Result<Vec<Out>> {
        projected(&origins(&self.columns, self.probe_side), self.projection.as_deref())
    }

    fn shared(&self, batch_rows: usize) -> Result<Shared> {
        let filter = self.filter.clone().map(|filter| {
            let origins = origins(filter.column_indices(), self.probe_side);
            (filter, origins)
        });
        Ok(Shared {
            key: Arc::clone(&self.on.0),
            conversion: self.table.conversion(&self.on.0.data_type(&self.probe.schema())?),
            files: self.table.files(),
            gather: self.table.gather(),
            scanned: ExecutionPlan::schema(&**self.table.scan()),
            columns: self.table.columns().iter().map(|column| Arc::clone(&column.expr)).collect(),
            predicate: self.table.predicate().cloned(),
            filter,
            kept: self.kept,
            out: self.out()?,
            schema: self.schema(),
            batch_rows: batch_rows.max(1),
        })
    }
}

/// Returns order, partitions and equivalences of the output: those of the probe, with the columns of the table.
fn properties(
    probe: &Arc<dyn ExecutionPlan>,
    table: &TableSide,
    probe_side: JoinSide,
    on: &(PhysicalExprRef, PhysicalExprRef),
    join_type: JoinType,
    schema: SchemaRef,
    projection: Option<&[usize]>,
) -> Result<PlanProperties> {
    let own = probe.equivalence_properties().clone();
    let other = EquivalenceProperties::new(Arc::clone(table.schema()));
    let is_left = probe_side == JoinSide::Left;
    let (left, right) = if is_left { (own, other) } else { (other, own) };
    let on = if is_left { on.clone() } else { (Arc::clone(&on.1), Arc::clone(&on.0)) };
    let maintains = [is_left, !is_left];
    let mut equivalences = join_equivalence_properties(
        left,
        right,
        &join_type,
        Arc::clone(&schema),
        &maintains,
        Some(probe_side),
        &[on],
    )?;
    let has_both = matches!(join_type, JoinType::Inner | JoinType::Right);
    let mut partitioning = match (is_left, has_both) {
        (false, true) => {
            adjust_right_output_partitioning(probe.output_partitioning(), table.schema().fields().len())?
        }
        (true, _) | (false, false) => probe.output_partitioning().clone(),
    };
    if let Some(projection) = projection {
        let mapping = ProjectionMapping::from_indices(projection, &schema)?;
        let projected = datafusion::common::utils::project_schema(&schema, Some(&projection))?;
        partitioning = partitioning.project(&mapping, &equivalences);
        equivalences = equivalences.project(&mapping, projected);
    }
    Ok(PlanProperties::new(equivalences, partitioning, probe.pipeline_behavior(), probe.boundedness()))
}

impl EmbeddedProjection for LookupJoinExec {
    fn with_projection(&self, projection: Option<Vec<usize>>) -> Result<Self> {
        let projection = match (projection, &self.projection) {
            (Some(chosen), Some(own)) => Some(projected(own, Some(&chosen))?),
            (Some(chosen), None) => Some(chosen),
            (None, own) => own.clone(),
        };
        let join = self.over(Arc::clone(&self.probe), projection)?;
        let Some(statistics) = &self.statistics else { return Ok(join) };
        // Those of columns would be at other places.
        let mut rows = Statistics::new_unknown(&join.schema());
        rows.num_rows = statistics.num_rows;
        Ok(join.with_statistics(Some(Arc::new(rows))))
    }
}

impl DisplayAs for LookupJoinExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (probe, table) = &self.on;
        let scan = self.table.scan();
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "LookupJoinExec: join_type={}, probe={}", self.join_type, self.probe_side)?;
                write!(f, ", on=({probe} = {table}), table=[{}]", OneLine(&**scan))?;
                if let Some(predicate) = self.table.predicate() {
                    write!(f, ", predicate={predicate}")?;
                }
                if let Some(filter) = &self.filter {
                    write!(f, ", filter={}", filter.expression())?;
                }
                if self.projection.is_some() {
                    let names: Vec<String> =
                        self.schema().fields().iter().map(|field| field.name().clone()).collect();
                    write!(f, ", projection=[{}]", names.join(", "))?;
                }
                self.fetch.map_or(Ok(()), |fetch| write!(f, ", fetch={fetch}"))
            }
            DisplayFormatType::TreeRender => {
                if self.join_type != JoinType::Inner {
                    writeln!(f, "join_type={}", self.join_type)?;
                }
                writeln!(f, "on={probe} = {table}")?;
                writeln!(f, "table={}", scan.source().location())?;
                self.fetch.map_or(Ok(()), |fetch| writeln!(f, "fetch={fetch}"))
            }
        }
    }
}

/// Shows a plan on one line.
struct OneLine<'a>(&'a dyn ExecutionPlan);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(DisplayFormatType::Default, f)
    }
}

impl ExecutionPlan for LookupJoinExec {
    fn name(&self) -> &'static str {
        "LookupJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.probe]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let filter = self.filter.iter().map(|filter| filter.expression());
        let columns = self.table.columns().iter().map(|column| &column.expr);
        let keys = [&self.on.0, &self.on.1];
        apply_expression_roots(keys.into_iter().chain(filter).chain(columns).chain(self.table.predicate()), f)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (Some(probe), true) = (children.pop(), children.is_empty()) else {
            return internal_err!("a look-up join has one child");
        };
        Ok(Arc::new(match options.children_properties {
            ChildrenPropertiesMode::Keep => {
                let metrics = ExecutionPlanMetricsSet::new();
                Self { probe, metrics, ..Self::clone(&self) }
            }
            ChildrenPropertiesMode::Recompute => self.over(probe, self.projection.clone())?,
        }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let shared = Arc::new(self.shared(context.session_config().batch_size())?);
        let memory = MemoryConsumer::new(format!("LookupJoin[{partition}]")).register(context.memory_pool());
        let probe = self.probe.execute(partition, context)?;
        Ok(stream::joined(shared, probe, self.fetch, memory, Metrics::new(&self.metrics, partition)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = match (&self.statistics, args.partition()) {
            (Some(statistics), None) => Statistics::clone(statistics),
            (Some(_) | None, _) => Statistics::new_unknown(&self.schema()),
        };
        // A row of the probe is about one row of the output, unless more is known.
        if statistics.num_rows == Precision::Absent
            && let Some(probe) = inputs.first()
        {
            statistics.num_rows = probe.num_rows.to_inexact();
        }
        Ok(Arc::new(statistics.with_fetch(self.fetch, 0, 1)?))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let join = Self { metrics: ExecutionPlanMetricsSet::new(), ..self.clone() };
        Some(Arc::new(join.with_limit(limit)))
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if self.projection.is_some() {
            return Ok(None);
        }
        try_embed_projection(projection, self)
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        if self.fetch.is_some() {
            return Ok(FilterDescription::all_unsupported(&parent_filters, &self.children()));
        }
        // A condition on columns of the probe can be met before the join: its rows decide about nobody else's.
        let is_of_probe = |(at, out): (usize, &Out)| matches!(out, Out::Probe(_)).then_some(at);
        let allowed = self.out()?.iter().enumerate().filter_map(is_of_probe).collect();
        let child =
            ChildFilterDescription::from_child_with_allowed_indices(&parent_filters, allowed, &self.probe)?;
        Ok(FilterDescription::new().with_child(child))
    }
}
