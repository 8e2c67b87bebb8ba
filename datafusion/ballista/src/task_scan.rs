//! The scan whose pieces Ballista can divide among tasks.
//!
//! Ballista gives a task some partitions of a plan. It knows how to cut a few leaves of DataFusion to these
//! partitions, and leaves all others whole: each task would then read everything, and rows would come several times.
//! So the pieces of a scan are the rows of such a leaf, a table in memory, and the scan is a node above it. When
//! Ballista cuts the leaf, the scan is of the pieces that remain, and the plan of a task has no other pieces.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, SchedulingType,
};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use pleach_datafusion::{Piece, Pieces, PleachScanExec, ScanDescription, Source};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Reads the pieces of a file or a set that its input lists: those of one of its partitions for each of its own.
#[derive(Clone, Debug)]
pub struct PleachTaskScanExec {
    scan: PleachScanExec,
    pieces: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl PleachTaskScanExec {
    /// Makes a scan that can be divided.
    ///
    /// # Errors
    /// Those of [`PleachScanExec::of_source`].
    pub fn new(scan: &PleachScanExec) -> Result<Self> {
        Self::over(scan.source().clone(), scan.describe(), listed(scan.partitions())?)
    }

    /// Makes a scan of the pieces that a plan lists. Those of the description do not count.
    ///
    /// # Errors
    /// [`DataFusionError::Internal`] if the plan is no list of pieces; those of [`PleachScanExec::of_source`].
    pub fn over(source: Source, mut scan: ScanDescription, pieces: Arc<dyn ExecutionPlan>) -> Result<Self> {
        scan.partitions = pieces_of(&pieces)?;
        // Of some of the partitions, not all borders are known.
        scan.borders = None;
        let scan = PleachScanExec::of_source(source, scan)?;
        Ok(Self::made(scan, pieces))
    }

    fn made(scan: PleachScanExec, pieces: Arc<dyn ExecutionPlan>) -> Self {
        // Ballista has no exchange for ranges of keys, and refuses plans that have them.
        let partitioning = Partitioning::UnknownPartitioning(pieces.output_partitioning().partition_count());
        let equivalences = scan.properties().equivalence_properties().clone();
        let properties =
            PlanProperties::new(equivalences, partitioning, EmissionType::Incremental, Boundedness::Bounded);
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        Self { scan, pieces, properties: Arc::new(properties) }
    }

    /// Returns the scan.
    #[must_use]
    pub fn scan(&self) -> &PleachScanExec {
        &self.scan
    }

    /// Returns the files that are read, in their order.
    #[must_use]
    pub fn files(&self) -> Vec<usize> {
        let pieces = self.scan.partitions().iter().flatten();
        let mut files: Vec<usize> = pieces.map(|piece| piece.file).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Returns the same of another scan of the same pieces.
    fn with_scan(&self, scan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let scan = scan.downcast_ref::<PleachScanExec>()?.clone();
        Some(Self::made(scan, Arc::clone(&self.pieces)))
    }
}

impl DisplayAs for PleachTaskScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Shown<'a>(&'a PleachScanExec, DisplayFormatType);
        impl fmt::Display for Shown<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt_as(self.1, f)
            }
        }
        // The same facts after another name.
        let shown = Shown(&self.scan, format).to_string();
        f.write_str(&shown.replacen(self.scan.name(), self.name(), 1))
    }
}

impl ExecutionPlan for PleachTaskScanExec {
    fn name(&self) -> &'static str {
        "PleachTaskScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.pieces]
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (Some(pieces), true) = (children.pop(), children.is_empty()) else {
            return internal_err!("a scan of tasks has one input");
        };
        Ok(Arc::new(Self::over(self.scan.source().clone(), self.scan.describe(), pieces)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(pieces) = self.scan.partitions().get(partition) else {
            return internal_err!("no partition {partition} of {}", self.scan.partitions().len());
        };
        let files: Vec<usize> = pieces.iter().map(|piece| piece.file).collect();
        log::info!("reads files {files:?}: {}", self.scan.source().location());
        self.scan.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.scan.metrics()
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.scan.statistics_from_inputs(&[], args)
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let scan = self.scan.with_fetch(limit)?;
        Some(Arc::new(self.with_scan(&scan)?))
    }

    fn fetch(&self) -> Option<usize> {
        self.scan.fetch()
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(scan) = self.scan.try_swapping_with_projection(projection)? else { return Ok(None) };
        Ok(self.with_scan(&scan).map(|scan| Arc::new(scan) as Arc<dyn ExecutionPlan>))
    }
}

/// The columns of a list of pieces.
fn schema() -> SchemaRef {
    let field = |name: &str, is_nullable| Field::new(name, DataType::UInt64, is_nullable);
    Arc::new(Schema::new(vec![
        field("file", false),
        field("start", false),
        field("end", false),
        field("rows", true),
    ]))
}

/// Lists pieces: each is a row.
fn listed(partitions: &[Pieces]) -> Result<Arc<dyn ExecutionPlan>> {
    let batch = |pieces: &Pieces| {
        let column = |value: fn(&Piece) -> Option<u64>| {
            Arc::new(pieces.iter().map(value).collect::<UInt64Array>()) as ArrayRef
        };
        let columns = vec![
            column(|piece| Some(piece.file as u64)),
            column(|piece| Some(piece.ranks.start)),
            column(|piece| Some(piece.ranks.end)),
            column(|piece| piece.rows),
        ];
        Ok(vec![RecordBatch::try_new(schema(), columns)?])
    };
    let partitions = partitions.iter().map(batch).collect::<Result<Vec<_>>>()?;
    let source = MemorySourceConfig::try_new(&partitions, schema(), None)?;
    Ok(DataSourceExec::from_data_source(source))
}

/// Returns the pieces that a plan lists.
fn pieces_of(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<Pieces>> {
    if let Some(list) = plan.downcast_ref::<DataSourceExec>() {
        let source: &dyn Any = list.data_source().as_ref();
        let Some(source) = source.downcast_ref::<MemorySourceConfig>() else {
            return internal_err!("the input of a scan of tasks is no list of pieces");
        };
        let pieces = |batches: &Vec<RecordBatch>| {
            let pieces = batches.iter().map(pieces_in).collect::<Result<Vec<_>>>()?;
            Ok(pieces.into_iter().flatten().collect())
        };
        return source.partitions().iter().map(pieces).collect();
    }
    // Rules may put nodes between that change no rows.
    match plan.children().as_slice() {
        [child]
            if plan.output_partitioning().partition_count()
                == child.output_partitioning().partition_count() =>
        {
            pieces_of(child)
        }
        _ => internal_err!("the input of a scan of tasks is no list of pieces: {}", plan.name()),
    }
}

fn pieces_in(batch: &RecordBatch) -> Result<Pieces> {
    if batch.schema().fields() != schema().fields() {
        return internal_err!("not a list of pieces: {}", batch.schema());
    }
    let [files, starts, ends, rows] = [0, 1, 2, 3].map(|at| batch.column(at).as_primitive::<UInt64Type>());
    let piece = |row: usize| {
        let file =
            usize::try_from(files.value(row)).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let rows = rows.is_valid(row).then(|| rows.value(row));
        Ok(Piece { file, ranks: starts.value(row)..ends.value(row), rows })
    };
    (0..batch.num_rows()).map(piece).collect()
}
