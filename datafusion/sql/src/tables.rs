//! Tables that the arguments name.

use crate::arguments::Table;
use crate::failure::Failure;
use datafusion::datasource::file_format::options::ArrowReadOptions;
use datafusion::error::DataFusionError;
use datafusion::prelude::{CsvReadOptions, JsonReadOptions, ParquetReadOptions, SessionContext};
use pleach_datafusion::PleachTable;
use std::path::Path;
use std::sync::Arc;

pub use pleach_datafusion::with_paths;

/// Gives a table its name: by its extension, and as a Pleach file or set if that is no other one.
pub async fn register(session: &SessionContext, table: &Table) -> Result<(), Failure> {
    let Table { name, path } = table;
    let engine = |error: DataFusionError| Failure::engine(&error);
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => session.register_parquet(name, path, ParquetReadOptions::default()).await,
        Some("csv") => session.register_csv(name, path, CsvReadOptions::default()).await,
        Some("json" | "ndjson") => session.register_json(name, path, JsonReadOptions::default()).await,
        Some("arrow") => session.register_arrow(name, path, ArrowReadOptions::default()).await,
        _ => {
            let table = PleachTable::open(path).map_err(|error| engine(error.into()))?;
            session.register_table(name.as_str(), Arc::new(table)).map(|_| ())
        }
    }
    .map_err(engine)
}
