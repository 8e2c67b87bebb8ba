//! A file or a set as a table of the engine.

use crate::error::Result;
use crate::filter::{Condition, Conditions};
use crate::keys::KeySet;
use crate::pieces::divide;
use crate::scan::PleachScanExec;
use crate::source::Source;
use crate::statistics::statistics;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Constraint, Constraints, DFSchema, Statistics};
use datafusion::error::Result as EngineResult;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_plan::ExecutionPlan;
use std::path::Path;
use std::sync::Arc;

/// A file or a set as a table. Each query reads the generation that is current when it is planned.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use pleach_datafusion::PleachTable;
/// use std::sync::Arc;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("squares.pleach");
/// pleach_builder::Builder::new().build(&path, (0..1000u64).map(|number| (number, number * number)))?;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let session = SessionContext::new();
/// session.register_table("squares", Arc::new(PleachTable::open(&path)?))?;
/// let rows = session.sql("SELECT value FROM squares WHERE key = 12").await?.collect().await?;
/// assert_eq!(rows[0].num_rows(), 1);
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PleachTable {
    source: Source,
    constraints: Option<Constraints>,
    is_pinned: bool,
}

impl PleachTable {
    /// Opens a file, or the set in a folder.
    ///
    /// # Errors
    /// Those of [`Source::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::new(Source::open(path)?))
    }

    /// Makes a table of an open file or set.
    #[must_use]
    pub fn new(source: Source) -> Self {
        let keys = (0..source.columns().keys()).collect();
        let constraints =
            source.is_unique().then(|| Constraints::new_unverified(vec![Constraint::PrimaryKey(keys)]));
        Self { source, constraints, is_pinned: false }
    }

    /// Makes a table of an open file or set, whose queries all read this generation.
    #[must_use]
    pub fn pinned(source: Source) -> Self {
        Self { is_pinned: true, ..Self::new(source) }
    }

    /// Returns what a query that is planned now reads: the current generation, unless this one is pinned.
    ///
    /// # Errors
    /// Those of [`Source::current`].
    pub fn current(&self) -> Result<Source> {
        if self.is_pinned { Ok(self.source.clone()) } else { self.source.current() }
    }

    /// Returns the file or the set that was opened.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns what a condition of a query says of keys.
    fn condition(&self, schema: &DFSchema, filter: &Expr) -> EngineResult<Condition> {
        let expr = create_physical_expr(
            filter,
            schema,
            &ExecutionProps::new(),
            &PhysicalPlanningContext::default(),
        )?;
        Conditions::new(self.source.literals(), 0).of(&expr)
    }

    fn names(&self) -> EngineResult<DFSchema> {
        DFSchema::try_from(self.source.schema().as_ref().clone())
    }
}

/// Returns a condition without the names of tables: the columns are those of this one.
fn unqualified(filter: &Expr) -> EngineResult<Expr> {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let changed = filter.clone().transform(|expr| {
        Ok(match expr {
            Expr::Column(column) if column.relation.is_some() => {
                Transformed::yes(Expr::Column(datafusion::common::Column::new_unqualified(column.name)))
            }
            expr => Transformed::no(expr),
        })
    });
    Ok(changed?.data)
}

#[async_trait]
impl TableProvider for PleachTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.source.schema())
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.constraints.as_ref()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let keys = KeySet::all();
        let division = divide(&self.source, &keys, 1, None).ok()?;
        let pieces = division.partitions.iter().flatten();
        Some(statistics(&self.source, &keys, pieces, self.source.schema(), Some(0), None, false))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> EngineResult<Vec<TableProviderFilterPushDown>> {
        let schema = self.names()?;
        let answer = |filter: &&Expr| {
            // What cannot be read here is left to the engine.
            let condition = unqualified(filter).and_then(|filter| self.condition(&schema, &filter));
            Ok(match condition {
                Ok(condition) if condition.is_exact => TableProviderFilterPushDown::Exact,
                Ok(condition) if !condition.keys.is_all() => TableProviderFilterPushDown::Inexact,
                _ => TableProviderFilterPushDown::Unsupported,
            })
        };
        filters.iter().map(answer).collect()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let schema = self.names()?;
        let (mut keys, mut is_exact) = (KeySet::all(), true);
        for filter in filters {
            let condition = self.condition(&schema, &unqualified(filter)?)?;
            keys = keys.and(&condition.keys);
            is_exact &= condition.is_exact;
        }
        let source = self.current()?;
        let partitions = state.config().target_partitions();
        let limit = limit.filter(|_| is_exact);
        let projection = projection.map(Vec::as_slice);
        Ok(Arc::new(PleachScanExec::new(source, projection, keys, partitions, limit)?))
    }
}
