//! Replaces joins where look-ups are the fastest.

use super::cost::{Costs, Probe, Rival, Table};
use super::join::LookupJoinExec;
use super::output::Kept;
use super::side::{TableSide, moved};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, NullEquality, Result, SplitPoint};
use datafusion::logical_expr::{JoinType, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::{
    LexOrdering, Partitioning, PhysicalExprRef, PhysicalSortExpr, RangePartitioning,
};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::output_requirements::OutputRequirements;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, JoinOn};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use std::sync::Arc;

/// Rows of a partition of a probe below which it is not divided by borders.
const ROWS_MIN: usize = 1 << 15;

/// Which joins become look-up joins, of those that can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choose {
    /// Those whose look-ups are the fastest by their statistics.
    #[default]
    Fastest,
    /// All.
    Always,
    /// None.
    Never,
}

/// Replaces hash joins and merge joins with a table of Pleach by look-up joins, where these are faster.
///
/// The rule needs no hints: it compares estimates ([`Costs`]) for the statistics of both sides. If nobody knows how
/// many rows the other side has, a hundredth of the table's tuples are assumed, so that look-ups are chosen for
/// large tables: they lose little if there are many rows, and gain much if there are few.
///
/// It belongs right after `JoinSelection`, before the rule that repartitions and sorts. A rule made with
/// [`LookupJoinRule::after_requirements`] also takes repartitions and sorts away that were made for the join it
/// replaces.
///
/// ```
/// use pleach_datafusion::PleachTable;
/// use std::sync::Arc;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("squares.pleach");
/// pleach_builder::Builder::new().build(&path, (0..100_000u64).map(|number| (number, number * number)))?;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// // A session with this rule.
/// let session = pleach_datafusion::session();
/// session.register_table("squares", Arc::new(PleachTable::open(&path)?))?;
/// let query = "SELECT n, value FROM (VALUES (12), (-1)) AS few(n) JOIN squares ON few.n = squares.key";
/// let rows = session.sql(query).await?.collect().await?;
/// assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
/// let plan = session.sql(query).await?.create_physical_plan().await?;
/// let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
/// assert!(text.contains("LookupJoinExec") && !text.contains("HashJoinExec"), "{text}");
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LookupJoinRule {
    choose: Choose,
    costs: Costs,
    is_after: bool,
    by_borders: bool,
}

impl LookupJoinRule {
    /// Makes a rule that chooses the fastest joins.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which joins are replaced.
    #[must_use]
    pub fn choose(mut self, choose: Choose) -> Self {
        self.choose = choose;
        self
    }

    /// Sets what the steps of joins take.
    #[must_use]
    pub fn costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// Has the rule take plans in which sides of joins were already repartitioned and sorted.
    #[must_use]
    pub fn after_requirements(mut self) -> Self {
        self.is_after = true;
        self
    }

    /// Has the rule repartition a probe of many rows in any order by the borders of the files of a set, so that each
    /// partition opens its own files only. Off at first: within one process all partitions share open files, and
    /// sending rows takes longer than is saved.
    #[must_use]
    pub fn by_borders(mut self) -> Self {
        self.by_borders = true;
        self
    }

    /// Returns the rules of `rules`, with this one after `JoinSelection`, or first if there is no such rule.
    #[must_use]
    pub fn added_to(
        self,
        mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
    ) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
        let place = rules.iter().position(|rule| rule.name() == "join_selection").map_or(0, |at| at + 1);
        rules.insert(place, Arc::new(self));
        rules
    }

    fn replaced(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Option<LookupJoinExec>> {
        let Some(join) = Join::of_plan(plan) else { return Ok(None) };
        let mut best: Option<(f64, Candidate)> = None;
        for probe_side in [JoinSide::Left, JoinSide::Right] {
            let Some(candidate) = join.candidate(probe_side) else { continue };
            let (look_ups_ns, rival_ns) = self.estimates(&join, &candidate, config)?;
            let is_fastest = look_ups_ns < rival_ns || self.choose == Choose::Always;
            if is_fastest && best.as_ref().is_none_or(|(ns, _)| look_ups_ns < *ns) {
                best = Some((look_ups_ns, candidate));
            }
        }
        let Some((_, candidate)) = best else { return Ok(None) };
        let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
        let mut probe = if self.is_after { without_moves(candidate.probe) } else { candidate.probe };
        let partitions = config.execution.target_partitions;
        if self.by_borders && !is_sorted(&probe, &candidate.on.0)? {
            probe = divided(probe, &candidate.on.0, &candidate.table, partitions)?;
        }
        let lookup = match candidate.form {
            Form::Same => LookupJoinExec::try_new(
                probe,
                candidate.table,
                candidate.probe_side,
                candidate.on,
                candidate.filter,
                join.join_type,
                join.projection,
            )?,
            Form::OfDistinct => of_distinct(probe, candidate.table, candidate.on, join.projection)?,
        };
        Ok(Some(lookup.with_statistics(Some(statistics)).with_limit(join.fetch)))
    }

    /// Estimates the look-up join, and the join that the plan has.
    fn estimates(&self, join: &Join, candidate: &Candidate, config: &ConfigOptions) -> Result<(f64, f64)> {
        let rows = |plan: &dyn ExecutionPlan| -> Result<Option<f64>> {
            let statistics = StatisticsContext::new().compute(plan, &StatisticsArgs::new())?;
            Ok(statistics.num_rows.get_value().map(|&rows| rows as f64))
        };
        let source = candidate.table.scan().source();
        let tuples = source.tuples() as f64;
        let table = Table {
            tuples,
            scanned: rows(&**candidate.table.scan())?.unwrap_or(tuples),
            files: source.files() as f64,
            is_text: !source.columns().key_type().is_primitive(),
        };
        let is_sorted = is_sorted(&candidate.probe, &candidate.on.0)?;
        let probe = Probe { rows: rows(&*candidate.probe)?, is_sorted };
        let of = |rival: Rival| self.costs.rival_ns(rival, &probe, &table);
        let rival_ns = match join.algorithm {
            Algorithm::Hash(PartitionMode::Auto) => of(Rival::HashOfProbe).min(of(Rival::HashOfTable)),
            Algorithm::Hash(PartitionMode::CollectLeft | PartitionMode::Partitioned) => {
                of(match candidate.probe_side {
                    JoinSide::Left => Rival::HashOfProbe,
                    JoinSide::Right | JoinSide::None => Rival::HashOfTable,
                })
            }
            Algorithm::Merge => {
                let (left, right) = (&join.left, &join.right);
                let table = if candidate.probe_side == JoinSide::Left { right } else { left };
                let is_one = config.execution.target_partitions == 1;
                let sorts = |side: &Arc<dyn ExecutionPlan>, is_sorted: bool| match self.is_after {
                    true => has_sort(side),
                    // Rows that change their partition are sorted again.
                    false => {
                        !is_sorted || !is_one && !matches!(side.output_partitioning(), Partitioning::Range(_))
                    }
                };
                let table_key = &candidate.on.1;
                of(Rival::Merge {
                    sorts_probe: sorts(&candidate.probe, is_sorted),
                    sorts_table: sorts(table, self::is_sorted(table, table_key)?),
                })
            }
        };
        let distinct_ns = match candidate.form {
            Form::Same => 0.0,
            Form::OfDistinct => Costs::rows(&probe, &table) * self.costs.build_ns,
        };
        Ok((self.costs.look_ups_ns(&probe, &table) + distinct_ns, rival_ns))
    }
}

impl PhysicalOptimizerRule for LookupJoinRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.choose == Choose::Never {
            return Ok(plan);
        }
        let replace = |plan: Arc<dyn ExecutionPlan>| {
            Ok(match self.replaced(&plan, config)? {
                Some(join) => Transformed::yes(Arc::new(join) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(plan),
            })
        };
        let new = Arc::clone(&plan).transform_up(replace)?;
        if !new.transformed || !self.is_after {
            return Ok(new.data);
        }
        // Plans above a join may need the order or the partitions that it had, and so may who reads the rows.
        let new = OutputRequirements::new_add_mode().optimize(new.data, config)?;
        let new = EnsureRequirements::new().optimize(new, config)?;
        let new = OutputRequirements::new_remove_mode().optimize(new, config)?;
        Ok(if keeps_output(&plan, &new)? { new } else { plan })
    }

    fn name(&self) -> &str {
        "pleach_look_up_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns true if a new plan returns its rows in the order of the old one.
fn keeps_output(old: &Arc<dyn ExecutionPlan>, new: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let Some(ordering) = old.output_ordering() else { return Ok(true) };
    let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
    Ok(partitions(new) <= partitions(old)
        && new.equivalence_properties().ordering_satisfy(ordering.clone())?)
}

/// A join that the plan has.
struct Join {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    on: JoinOn,
    filter: Option<JoinFilter>,
    join_type: JoinType,
    projection: Option<Vec<usize>>,
    null_equality: NullEquality,
    fetch: Option<usize>,
    algorithm: Algorithm,
}

#[derive(Clone, Copy)]
enum Algorithm {
    Hash(PartitionMode),
    Merge,
}

/// A look-up join that could take its place.
struct Candidate {
    probe: Arc<dyn ExecutionPlan>,
    table: TableSide,
    probe_side: JoinSide,
    on: (PhysicalExprRef, PhysicalExprRef),
    filter: Option<JoinFilter>,
    form: Form,
}

/// How a look-up join does what another join did.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As a join of the same type.
    Same,
    /// As an inner join of the distinct keys of the probe: for tuples that have a match, each of them once.
    OfDistinct,
}

impl Join {
    fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            // Another plan may wait for the filter of a hash join.
            if join.null_aware || !join.dynamic_expressions_produced().is_empty() {
                return None;
            }
            return Some(Self {
                left: Arc::clone(join.left()),
                right: Arc::clone(join.right()),
                on: join.on().to_vec(),
                filter: join.filter().cloned(),
                join_type: *join.join_type(),
                projection: join.projection.as_ref().map(|projection| projection.to_vec()),
                null_equality: join.null_equality(),
                fetch: join.fetch(),
                algorithm: Algorithm::Hash(*join.partition_mode()),
            });
        }
        let join = plan.downcast_ref::<SortMergeJoinExec>()?;
        Some(Self {
            left: Arc::clone(join.left()),
            right: Arc::clone(join.right()),
            on: join.on().to_vec(),
            filter: join.filter().clone(),
            join_type: join.join_type(),
            projection: None,
            null_equality: join.null_equality(),
            fetch: None,
            algorithm: Algorithm::Merge,
        })
    }

    /// Returns the look-up join whose probe is on this side, if it can be one.
    fn candidate(&self, probe_side: JoinSide) -> Option<Candidate> {
        let is_left = probe_side == JoinSide::Left;
        let returns_tuples = matches!(
            (self.join_type, probe_side),
            (JoinType::RightSemi, JoinSide::Left) | (JoinType::LeftSemi, JoinSide::Right)
        );
        let form = match Kept::new(self.join_type, probe_side) {
            Some(_) => Form::Same,
            None if returns_tuples && self.filter.is_none() && self.on.len() == 1 => Form::OfDistinct,
            None => return None,
        };
        let (probe, table) = if is_left { (&self.left, &self.right) } else { (&self.right, &self.left) };
        let table = TableSide::of_plan(table)?;
        let ordered = |(left, right): &(PhysicalExprRef, PhysicalExprRef)| {
            let (left, right) = (Arc::clone(left), Arc::clone(right));
            if is_left { (left, right) } else { (right, left) }
        };
        // Keys of a table are never null, so that nulls have no match, whatever they are equal to.
        let at = self.on.iter().position(|pair| table.is_key(&ordered(pair).1))?;
        let on = ordered(&self.on[at]);
        let mut rest = self.on.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, pair)| pair);
        let filter = rest.try_fold(self.filter.clone(), |filter, pair| {
            let schemas = [&self.left.schema(), &self.right.schema()].map(|schema| Schema::clone(schema));
            with_equality(filter, pair, schemas, self.null_equality).map(Some)
        })?;
        Some(Candidate { probe: Arc::clone(probe), table, probe_side, on, filter, form })
    }
}

/// Adds the equality of expressions over both sides to the condition of a join.
fn with_equality(
    filter: Option<JoinFilter>,
    (left, right): &(PhysicalExprRef, PhysicalExprRef),
    schemas: [Schema; 2],
    null_equality: NullEquality,
) -> Option<JoinFilter> {
    let (mut columns, mut fields, own) = match &filter {
        None => (Vec::new(), Vec::new(), None),
        Some(filter) => {
            let fields = filter.schema().fields().iter().map(|field| Field::clone(field)).collect();
            (filter.column_indices().to_vec(), fields, Some(Arc::clone(filter.expression())))
        }
    };
    let mut over_both = |expr: &PhysicalExprRef, side: JoinSide, schema: &Schema| {
        let replaced = Arc::clone(expr).transform_up(|expr| {
            let Some(index) = expr.downcast_ref::<Column>().map(Column::index) else {
                return Ok(Transformed::no(expr));
            };
            let field = schema.field(index).clone();
            let column = Column::new(field.name(), columns.len());
            columns.push(ColumnIndex { index, side });
            fields.push(field);
            Ok(Transformed::yes(Arc::new(column) as PhysicalExprRef))
        });
        replaced.data().ok()
    };
    let left = over_both(left, JoinSide::Left, &schemas[0])?;
    let right = over_both(right, JoinSide::Right, &schemas[1])?;
    let operator = match null_equality {
        NullEquality::NullEqualsNothing => Operator::Eq,
        NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
    };
    let equality: PhysicalExprRef = Arc::new(BinaryExpr::new(left, operator, right));
    let expression = match own {
        None => equality,
        Some(own) => Arc::new(BinaryExpr::new(own, Operator::And, equality)),
    };
    Some(JoinFilter::new(expression, columns, Arc::new(Schema::new(fields))))
}

/// Makes the join of the distinct keys of a probe that returns the columns of the table.
fn of_distinct(
    probe: Arc<dyn ExecutionPlan>,
    table: TableSide,
    (key, table_key): (PhysicalExprRef, PhysicalExprRef),
    projection: Option<Vec<usize>>,
) -> Result<LookupJoinExec> {
    let schema = probe.schema();
    let group = PhysicalGroupBy::new_single(vec![(key, "key".to_owned())]);
    let last = group.as_final();
    let partial =
        AggregateExec::try_new(AggregateMode::Partial, group, vec![], vec![], probe, Arc::clone(&schema))?;
    let partial = Arc::new(partial);
    let distinct =
        AggregateExec::try_new(AggregateMode::FinalPartitioned, last, vec![], vec![], partial, schema)?;
    let key: PhysicalExprRef = Arc::new(Column::new("key", 0));
    // The key of the probe is the first column of the join.
    let columns = projection.unwrap_or_else(|| (0..table.schema().fields().len()).collect());
    let columns = columns.into_iter().map(|column| column + 1).collect();
    let (side, join_type) = (JoinSide::Left, JoinType::Inner);
    LookupJoinExec::try_new(Arc::new(distinct), table, side, (key, table_key), None, join_type, Some(columns))
}

/// Repartitions a probe by the borders of the files of a set, if it has enough rows and the set enough files.
fn divided(
    probe: Arc<dyn ExecutionPlan>,
    key: &PhysicalExprRef,
    table: &TableSide,
    partitions: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let statistics = StatisticsContext::new().compute(probe.as_ref(), &StatisticsArgs::new())?;
    let has_many = statistics.num_rows.get_value().is_some_and(|&rows| rows >= partitions * ROWS_MIN);
    let source = table.scan().source();
    if partitions < 2 || source.files() < partitions || !has_many {
        return Ok(probe);
    }
    let data_type = key.data_type(&probe.schema())?;
    let (mut points, mut before) = (Vec::new(), 0);
    for file in 0..source.files() {
        // A partition begins with the first file past its part of the tuples.
        let part = source.tuples() as u128 * (points.len() + 1) as u128 / partitions as u128;
        if file > 0 && u128::from(before) >= part && points.len() + 1 < partitions {
            let values = source.ends(file).and_then(|(min, _)| source.literals().values(min));
            let Some([value]) = values.as_deref() else { return Ok(probe) };
            points.push(SplitPoint::new(vec![value.cast_to(&data_type)?]));
        }
        before += source.file_tuples(file);
    }
    let options = SortOptions { descending: false, nulls_first: false };
    let Some(ordering) = LexOrdering::new([PhysicalSortExpr { expr: Arc::clone(key), options }]) else {
        return Ok(probe);
    };
    let range = RangePartitioning::try_new(ordering, points)?;
    Ok(Arc::new(RepartitionExec::try_new(probe, Partitioning::Range(range))?))
}

/// Returns true if rows are in the order of an expression.
fn is_sorted(plan: &Arc<dyn ExecutionPlan>, expr: &PhysicalExprRef) -> Result<bool> {
    for nulls_first in [false, true] {
        let options = SortOptions { descending: false, nulls_first };
        let sort = PhysicalSortExpr { expr: Arc::clone(expr), options };
        if plan.equivalence_properties().ordering_satisfy([sort])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if a side of a join is sorted for it.
fn has_sort(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<SortExec>() || moved(plan).is_some_and(has_sort)
}

/// Takes away what was made for another join: hash partitions, one partition, and sorts.
fn without_moves(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let is_hashed = plan
        .downcast_ref::<RepartitionExec>()
        .is_some_and(|plan| matches!(plan.partitioning(), Partitioning::Hash(..)));
    let is_made = is_hashed || plan.is::<SortExec>() || plan.is::<CoalescePartitionsExec>();
    match moved(&plan).filter(|_| is_made) {
        Some(input) => without_moves(Arc::clone(input)),
        None => plan,
    }
}
