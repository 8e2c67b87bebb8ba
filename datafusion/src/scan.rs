//! The plan node that reads a file or a set.

use crate::error::{Error, Result};
use crate::filter::Conditions;
use crate::keys::KeySet;
use crate::pieces::{Division, Pieces, divide, divide_at};
use crate::source::Source;
use crate::statistics::statistics;
use crate::stream::{Metrics, ScanStream, Task};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{SplitPoint, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, DynamicFilterTracking};
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr, RangePartitioning,
    utils::collect_columns,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
    SortOrderPushdownResult,
};
use pleach::OpenOptions;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Ranges of keys that `EXPLAIN` shows.
const RANGES_SHOWN: usize = 3;

/// Everything that makes a scan, as numbers and names: what a plan that is sent to another process carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanDescription {
    /// Path of the file or of the set.
    pub location: String,
    /// Its generation.
    pub generation: u64,
    /// What tells it from others of this path: see [`Source::identity`].
    pub identity: [u8; 16],
    /// The columns to return, in this order, by their numbers in the table.
    pub projection: Vec<usize>,
    /// The keys to return.
    pub keys: KeySet,
    /// The pieces of each partition.
    pub partitions: Vec<Pieces>,
    /// The smallest key of each partition but the first, if they are known.
    pub borders: Option<Vec<Vec<u8>>>,
    /// Number of rows after which a partition ends.
    pub fetch: Option<usize>,
    /// True if the rows of a partition come in descending order.
    pub is_reversed: bool,
}

/// Reads a file or a set: some columns of the tuples whose keys are in a set of keys.
///
/// Rows are in the order of their keys, in and across partitions. Files open when their partition is read; none
/// opens that cannot have keys that were asked for.
#[derive(Clone, Debug)]
pub struct PleachScanExec {
    source: Source,
    projection: Vec<usize>,
    keys: KeySet,
    dynamic: Vec<Arc<dyn PhysicalExpr>>,
    fetch: Option<usize>,
    is_reversed: bool,
    target_partitions: usize,
    division: Arc<Division>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl PleachScanExec {
    /// Plans to read some columns, or all, of the tuples with some keys, in at most `target_partitions` partitions.
    /// `limit` says that any so many of these tuples are enough.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such column; those of reading a file, if the source is one.
    pub fn new(
        source: Source,
        projection: Option<&[usize]>,
        keys: KeySet,
        target_partitions: usize,
        limit: Option<usize>,
    ) -> Result<Self> {
        let division = divide(&source, &keys, target_partitions, limit)?;
        let all: Vec<usize> = (0..source.schema().fields().len()).collect();
        let projection = projection.unwrap_or(&all).to_vec();
        Self::over(source, projection, keys, target_partitions, limit, division)
    }

    fn over(
        source: Source,
        projection: Vec<usize>,
        keys: KeySet,
        target_partitions: usize,
        fetch: Option<usize>,
        mut division: Division,
    ) -> Result<Self> {
        let schema = source.schema().project(&projection).map_err(|error| {
            Error::Usage(format!("no such columns: {}: {error}: name others", source.location()))
        })?;
        if division.partitions.is_empty() {
            division.partitions.push(Pieces::new());
        }
        let schema: SchemaRef = Arc::new(schema);
        let properties = Arc::new(properties(&source, &schema, &projection, &division, false));
        Ok(Self {
            source,
            projection,
            keys,
            dynamic: Vec::new(),
            fetch,
            is_reversed: false,
            target_partitions,
            division: Arc::new(division),
            schema,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Makes the scan that a description is of. `options` say how files are opened. The set is opened at the
    /// generation of the description, whatever the current one is.
    ///
    /// # Errors
    /// Those of [`Source::open`]; [`Error::Usage`] if the description does not fit.
    pub fn from_description(scan: ScanDescription, options: OpenOptions) -> Result<Self> {
        let source = Source::at_generation(&scan.location, scan.generation, options)?;
        Self::of_source(source, scan)
    }

    /// Makes the scan that a description is of, of a source that is open already.
    ///
    /// # Errors
    /// [`Error::Usage`] if the description does not fit the source.
    pub fn of_source(source: Source, scan: ScanDescription) -> Result<Self> {
        let is_there = |pieces: &Pieces| pieces.iter().all(|piece| piece.file < source.files());
        let is_same = (source.generation(), source.identity()) == (scan.generation, scan.identity);
        if !is_same || !scan.partitions.iter().all(is_there) {
            return Err(Error::Usage(format!(
                "the plan is of another generation: {}: plan the query again",
                source.location()
            )));
        }
        let borders = scan.borders.filter(|borders| borders.len() + 1 == scan.partitions.len());
        let partitions = scan.partitions.len();
        let division = Division { partitions: scan.partitions, borders };
        let own = Self::over(source, scan.projection, scan.keys, partitions, scan.fetch, division)?;
        Ok(own.ordered(scan.is_reversed))
    }

    /// Describes the scan. Dynamic filters are left out: they belong to a process.
    #[must_use]
    pub fn describe(&self) -> ScanDescription {
        ScanDescription {
            location: absolute(self.source.location()),
            generation: self.source.generation(),
            identity: self.source.identity(),
            projection: self.projection.clone(),
            keys: self.keys.clone(),
            partitions: self.division.partitions.clone(),
            borders: self.division.borders.clone(),
            fetch: self.fetch,
            is_reversed: self.is_reversed,
        }
    }

    /// Returns what is read.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }
    /// Returns the columns that are returned, by their numbers in the table.
    #[must_use]
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }
    /// Returns the keys that are read, as far as they are known when the query is planned.
    #[must_use]
    pub fn keys(&self) -> &KeySet {
        &self.keys
    }
    /// Returns the dynamic filters, over the columns of the scan.
    #[must_use]
    pub fn dynamic_filters(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.dynamic
    }
    /// Returns the pieces of each partition, in the order of their keys.
    #[must_use]
    pub fn partitions(&self) -> &[Pieces] {
        &self.division.partitions
    }
    /// Returns the smallest key of each partition but the first, if they are known.
    #[must_use]
    pub fn borders(&self) -> Option<&[Vec<u8>]> {
        self.division.borders.as_deref()
    }
    /// Returns the place of the first key column among the columns that are returned.
    #[must_use]
    pub fn key_column(&self) -> Option<usize> {
        self.projection.iter().position(|&column| column == 0)
    }
    /// Returns the number of partitions that were asked for.
    #[must_use]
    pub fn target_partitions(&self) -> usize {
        self.target_partitions
    }

    /// Returns this scan of fewer keys.
    ///
    /// # Errors
    /// Those of [`PleachScanExec::new`].
    pub fn with_keys(&self, keys: KeySet) -> Result<Self> {
        let division = divide(&self.source, &keys, self.target_partitions, None)?;
        let (source, projection) = (self.source.clone(), self.projection.clone());
        let scan = Self::over(source, projection, keys, self.target_partitions, self.fetch, division)?;
        Ok(Self { dynamic: self.dynamic.clone(), ..scan.ordered(self.is_reversed) })
    }

    /// Returns this scan in partitions that begin at `borders`, whole keys that ascend, as those of another scan do.
    ///
    /// # Errors
    /// Those of reading the files in which borders lie.
    pub fn divided_at(&self, borders: &[Vec<u8>]) -> Result<Self> {
        let division = divide_at(&self.source, &self.keys, borders)?;
        let (source, projection, keys) = (self.source.clone(), self.projection.clone(), self.keys.clone());
        let scan = Self::over(source, projection, keys, borders.len() + 1, self.fetch, division)?;
        Ok(Self { dynamic: self.dynamic.clone(), ..scan.ordered(self.is_reversed) })
    }

    /// Returns this scan with other columns, which are given by their numbers in the table. It has no dynamic filters.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such column.
    pub fn with_projection(&self, projection: Vec<usize>) -> Result<Self> {
        let (source, keys, division) = (self.source.clone(), self.keys.clone(), (*self.division).clone());
        let scan = Self::over(source, projection, keys, self.target_partitions, self.fetch, division)?;
        Ok(scan.ordered(self.is_reversed))
    }

    /// Returns true if the rows of a partition come in descending order.
    #[must_use]
    pub fn is_reversed(&self) -> bool {
        self.is_reversed
    }

    /// Returns this scan in ascending or in descending order.
    fn ordered(self, is_reversed: bool) -> Self {
        let properties =
            properties(&self.source, &self.schema, &self.projection, &self.division, is_reversed);
        Self { is_reversed, properties: Arc::new(properties), ..self }
    }

    fn files(&self) -> usize {
        let pieces = self.division.partitions.iter().flatten();
        let mut files: Vec<usize> = pieces.map(|piece| piece.file).collect();
        files.dedup();
        files.len()
    }

    /// Shows the keys: all of a few, and how many there are of more.
    fn shown_keys(&self) -> String {
        let value = |key: &[u8]| match self.source.literals().values(key) {
            Some(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                values.join(",")
            }
            None => key.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let (points, ranges) = self.keys.counts();
        if self.keys.ranges().len() > RANGES_SHOWN {
            return match (points, ranges) {
                (points, 0) => format!("{points} keys"),
                (0, ranges) => format!("{ranges} ranges"),
                (points, ranges) => format!("{points} keys and {ranges} ranges"),
            };
        }
        let border = |bytes: &[u8]| match bytes.split_last() {
            // What is above a key begins with the key and a zero byte.
            Some((0, key)) if self.source.literals().is_whole(key) => (true, value(key)),
            _ => (false, value(bytes)),
        };
        let shown = self.keys.ranges().iter().map(|range| {
            if let Some(key) = range.key() {
                return format!("= {}", value(key));
            }
            let start = match border(&range.start) {
                _ if range.start.is_empty() => None,
                (true, key) => Some(format!("> {key}")),
                (false, key) => Some(format!(">= {key}")),
            };
            let end = range.end.as_deref().map(|end| match border(end) {
                (true, key) => format!("<= {key}"),
                (false, key) => format!("< {key}"),
            });
            start.into_iter().chain(end).collect::<Vec<_>>().join(" and ")
        });
        let shown: Vec<String> = shown.collect();
        if shown.is_empty() { "none".into() } else { shown.join(" or ") }
    }
}

/// Returns a path that another process can open.
fn absolute(location: &str) -> String {
    std::path::absolute(location).map_or_else(|_| location.to_owned(), |path| path.display().to_string())
}

/// Returns what the engine may rely on: the order of rows, and the ranges of partitions.
fn properties(
    source: &Source,
    schema: &SchemaRef,
    projection: &[usize],
    division: &Division,
    is_reversed: bool,
) -> PlanProperties {
    let options = SortOptions { descending: is_reversed, nulls_first: false };
    let place = |column: usize| projection.iter().position(|&own| own == column);
    let columns = (0..source.columns().ordered()).map_while(place);
    let sort =
        columns.map(|at| PhysicalSortExpr::new(Arc::new(Column::new(schema.field(at).name(), at)), options));
    let ordering = LexOrdering::new(sort.collect::<Vec<_>>());
    let count = division.partitions.len();
    let range = || {
        if is_reversed {
            return None;
        }
        let ordering = ordering.clone().filter(|ordering| ordering.len() == source.columns().keys())?;
        let borders =
            division.borders.as_ref().filter(|borders| !borders.is_empty() && borders.len() + 1 == count)?;
        let points = borders.iter().map(|key| source.literals().values(key).map(SplitPoint::new));
        RangePartitioning::try_new(ordering, points.collect::<Option<Vec<_>>>()?).ok()
    };
    let partitioning = match range() {
        Some(range) => Partitioning::Range(range),
        None => Partitioning::UnknownPartitioning(count),
    };
    let equivalence = EquivalenceProperties::new_with_orderings(Arc::clone(schema), ordering);
    PlanProperties::new(equivalence, partitioning, EmissionType::Incremental, Boundedness::Bounded)
        .with_scheduling_type(SchedulingType::Cooperative)
}

impl DisplayAs for PleachScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.source.set().is_some() { "set" } else { "file" };
        let mut facts = vec![(kind, self.source.location().to_owned())];
        facts.push(("generation", self.source.generation().to_string()));
        if self.source.set().is_some() {
            facts.push(("files", format!("{}/{}", self.files(), self.source.files())));
        }
        facts.push(("partitions", self.division.partitions.len().to_string()));
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        facts.push(("projection", format!("[{}]", columns.join(", "))));
        if !self.keys.is_all() {
            facts.push(("keys", self.shown_keys()));
        }
        if self.is_reversed {
            facts.push(("order", "descending".to_owned()));
        }
        facts.extend(self.fetch.map(|fetch| ("fetch", fetch.to_string())));
        if !self.dynamic.is_empty() {
            let filters: Vec<String> = self.dynamic.iter().map(ToString::to_string).collect();
            facts.push(("filter", filters.join(" AND ")));
        }
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let facts: Vec<String> =
                    facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "PleachScanExec: {}", facts.join(", "))
            }
            DisplayFormatType::TreeRender => {
                facts.iter().try_for_each(|(name, value)| writeln!(f, "{name}={value}"))
            }
        }
    }
}

impl ExecutionPlan for PleachScanExec {
    fn name(&self) -> &'static str {
        "PleachScanExec"
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
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        for filter in &self.dynamic {
            if f(filter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn reset_state(self: Arc<Self>) -> EngineResult<Arc<dyn ExecutionPlan>> {
        // A filter of the run before may say too little now, and nothing depends on it.
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(Self { dynamic: Vec::new(), metrics, ..Self::clone(&self) }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let Some(pieces) = self.division.partitions.get(partition) else {
            let count = self.division.partitions.len();
            return Err(
                Error::Usage(format!("no partition {partition}: the scan has {count}: plan again")).into()
            );
        };
        let task = Task {
            source: self.source.clone(),
            schema: Arc::clone(&self.schema),
            projection: self.projection.clone(),
            pieces: pieces.clone(),
            keys: self.keys.clone(),
            dynamic: self.dynamic.clone(),
            key: self.key_column(),
            batch_rows: context.session_config().batch_size(),
            fetch: self.fetch,
            is_reversed: self.is_reversed,
        };
        let stream = ScanStream::new(task, Metrics::new(&self.metrics, partition));
        Ok(Box::pin(datafusion::physical_plan::coop::cooperative(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> EngineResult<Arc<Statistics>> {
        let partitions = match args.partition() {
            None => &self.division.partitions[..],
            Some(partition) => self.division.partitions.get(partition..=partition).unwrap_or_default(),
        };
        let (source, keys) = (&self.source, &self.keys);
        let is_filtered = !self.dynamic.is_empty();
        let fetch = self.fetch.map(|fetch| fetch.saturating_mul(partitions.len().max(1)));
        // Each partition ends by itself: of several, the sum is not known.
        let is_cut = self.fetch.is_some() && partitions.len() > 1;
        let pieces = partitions.iter().flatten();
        let key = self.key_column();
        Ok(Arc::new(statistics(source, keys, pieces, &self.schema, key, fetch, is_filtered || is_cut)))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        // A filter that came from above the limit would leave out rows that the limit counts.
        let dynamic = if limit.is_some() { Vec::new() } else { self.dynamic.clone() };
        Some(Arc::new(Self { fetch: limit, dynamic, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> EngineResult<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        let is_key = |(key, sort): (usize, &PhysicalSortExpr)| {
            let column = sort.expr.downcast_ref::<Column>();
            let column = column.and_then(|column| self.projection.get(column.index()));
            column == Some(&key) && sort.options.descending != self.is_reversed
        };
        let is_other_way =
            order.len() <= self.source.columns().ordered() && order.iter().enumerate().all(is_key);
        if !is_other_way {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let inner: Arc<dyn ExecutionPlan> = Arc::new(self.clone().ordered(!self.is_reversed));
        Ok(SortOrderPushdownResult::Exact { inner })
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> EngineResult<Option<Arc<dyn ExecutionPlan>>> {
        if !self.dynamic.is_empty() {
            return Ok(None);
        }
        let own = |(expr, name): (&Arc<dyn PhysicalExpr>, &str)| {
            let column = expr.downcast_ref::<Column>().filter(|column| column.name() == name)?;
            self.projection.get(column.index()).copied()
        };
        let columns = projection.expr().iter().map(|expr| own((&expr.expr, &expr.alias)));
        let Some(columns) = columns.collect::<Option<Vec<usize>>>() else { return Ok(None) };
        Ok(Some(Arc::new(self.with_projection(columns)?)))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> EngineResult<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = result.parent_filters.into_iter().map(|filter| filter.filter);
        let Some(column) = self.key_column() else {
            return Ok(FilterPushdownPropagation::with_parent_pushdown_result(
                filters.map(|_| PushedDown::No).collect(),
            ));
        };
        let conditions = Conditions::new(self.source.literals(), column);
        let (mut keys, mut dynamic) = (self.keys.clone(), self.dynamic.clone());
        let mut answers = Vec::new();
        for filter in filters {
            if DynamicFilterTracking::classify(&filter).contains_dynamic_filter() {
                // Nor may they take part if a filter came after the limit.
                let is_of_key = collect_columns(&filter).iter().any(|own| own.index() == column);
                if is_of_key && self.fetch.is_none() {
                    dynamic.push(filter);
                }
                answers.push(PushedDown::No);
                continue;
            }
            let condition = conditions.of(&filter)?;
            // Rows after a limit must not take the place of rows that a filter leaves out.
            let is_taken = self.fetch.is_none();
            answers.push(if condition.is_exact && is_taken { PushedDown::Yes } else { PushedDown::No });
            if is_taken {
                keys = keys.and(&condition.keys);
            }
        }
        let is_changed = keys != self.keys || dynamic.len() != self.dynamic.len();
        let answer = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        if !is_changed {
            return Ok(answer);
        }
        let scan = if keys == self.keys { self.clone() } else { self.with_keys(keys)? };
        let scan: Arc<dyn ExecutionPlan> = Arc::new(Self { dynamic, ..scan });
        Ok(answer.with_updated_node(scan))
    }
}
