//! Sessions of the engine that is part of this module.

use crate::rows::Rows;
use crate::table::Table;
use crate::{capsule, errors, wait};
use datafusion::arrow::array::RecordBatchReader;
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use datafusion::error::Result as EngineResult;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use pleach_datafusion::PleachTable;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// SQL over Pleach files and sets, and other tables, by the engine that is part of this module. The package
/// `datafusion` is not needed.
///
/// A session has everything that `pleach-sql` has: joins by look-ups, dynamic filters, `CREATE EXTERNAL TABLE ...
/// STORED AS PLEACH`, `COPY ... STORED AS PLEACH`, and files by their paths in quotes. `partitions` is the number of
/// partitions of a query (all processors), `memory_bytes` limits the memory of sorts, groups and joins, and `options`
/// has settings of DataFusion by their names. Threads may share a session.
#[pyclass(frozen, module = "pleach_datafusion")]
pub(crate) struct Session {
    context: SessionContext,
}

fn context(
    partitions: Option<usize>,
    memory_bytes: Option<usize>,
    options: &HashMap<String, String>,
) -> EngineResult<SessionContext> {
    let mut config = SessionConfig::new().with_information_schema(true);
    for (name, value) in options {
        // An option that there is not is an error, unlike in a map of options.
        config.options_mut().set(name, value)?;
    }
    if let Some(partitions) = partitions {
        config = config.with_target_partitions(partitions.max(1));
    }
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(bytes) = memory_bytes {
        runtime = runtime.with_memory_limit(bytes, 1.0);
    }
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(Arc::new(runtime.build()?))
        .with_default_features();
    let state = pleach_datafusion::register(builder).build();
    Ok(pleach_datafusion::with_paths(SessionContext::new_with_state(state)))
}

/// Returns the table that an object is.
fn table(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Arc<dyn TableProvider>> {
    if let Ok(table) = object.cast::<Table>() {
        return Ok(table.get().provider());
    }
    if let Ok(path) = object.extract::<PathBuf>() {
        let opened = py.detach(|| PleachTable::open(path));
        return Ok(Arc::new(opened.map_err(|error| errors::own(py, &error))?));
    }
    let reader = capsule::stream(object)?;
    // The object may need the lock for each batch.
    let read = py.detach(|| {
        let schema = reader.schema();
        let batches = reader.collect::<Result<Vec<_>, _>>()?;
        MemTable::try_new(schema, vec![batches])
    });
    Ok(Arc::new(read.map_err(|error| errors::engine(py, &error))?))
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (*, partitions = None, memory_bytes = None, options = None))]
    fn new(
        py: Python<'_>,
        partitions: Option<usize>,
        memory_bytes: Option<usize>,
        options: Option<HashMap<String, String>>,
    ) -> PyResult<Self> {
        let made = context(partitions, memory_bytes, &options.unwrap_or_default());
        Ok(Self { context: made.map_err(|error| errors::engine(py, &error))? })
    }

    /// Gives a table its name in queries, also if another one had it, and returns the session.
    ///
    /// `table` is the path of a file or a set, a `Table`, or an object with `__arrow_c_stream__`, such as a table of
    /// pyarrow or a data frame of polars, whose rows are kept in memory.
    fn register<'py>(
        slf: Bound<'py, Self>,
        name: &str,
        table: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let py = slf.py();
        let table = self::table(py, &table)?;
        let context = &slf.get().context;
        let registered = context.deregister_table(name).and_then(|_| context.register_table(name, table));
        registered.map_err(|error| errors::engine(py, &error))?;
        Ok(slf)
    }

    /// Runs one statement. A query runs each time that its rows are read; `COPY`, `INSERT`, `CREATE` and `SET` run at
    /// once.
    fn sql(&self, py: Python<'_>, query: String) -> PyResult<Rows> {
        let context = self.context.clone();
        wait::wait(py, async move {
            let plan = context.state().create_logical_plan(&query).await?;
            let is_change = matches!(plan, LogicalPlan::Copy(_) | LogicalPlan::Dml(_));
            let frame = context.execute_logical_plan(plan).await?;
            if is_change { Rows::of_query(frame).read().await } else { Ok(Rows::of_query(frame)) }
        })
    }
}
