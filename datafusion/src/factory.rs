//! `CREATE EXTERNAL TABLE ... STORED AS PLEACH`, and registering all that the engine finds by name.

use crate::align::AlignRule;
use crate::copy::PleachFormatFactory;
use crate::error::Error;
use crate::lookup::LookupJoinRule;
use crate::source::Source;
use crate::table::PleachTable;
use async_trait::async_trait;
use datafusion::catalog::{
    DynamicFileCatalog, Session, TableProvider, TableProviderFactory, UrlTableFactory,
};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::error::Result as EngineResult;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionContext;
use pleach::{OpenOptions, Verify};
use pleach_set::Set;
use std::path::PathBuf;
use std::sync::Arc;

/// Name of the format in SQL.
pub const FORMAT: &str = "PLEACH";

/// Makes tables of files and sets for `CREATE EXTERNAL TABLE`. Its option `verify` is `header` (the default),
/// `touched` or `full`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PleachTableFactory;

#[async_trait]
impl TableProviderFactory for PleachTableFactory {
    async fn create(
        &self,
        _: &dyn Session,
        table: &CreateExternalTable,
    ) -> EngineResult<Arc<dyn TableProvider>> {
        let [location] = &table.locations[..] else {
            let text = format!("a table is one file or one set: {}: give one location", table.name);
            return Err(Error::Usage(text).into());
        };
        let location = local_path(location)?;
        if !table.schema.fields().is_empty() {
            let text =
                format!("a file knows its columns: {}: leave out the list of columns", location.display());
            return Err(Error::Usage(text).into());
        }
        let mut options = OpenOptions::default();
        for (name, value) in &table.options {
            match name.strip_prefix("format.").unwrap_or(name) {
                "verify" => options = options.verify(verify(value)?),
                other => {
                    let text = format!("no such option: {other}: the table {}: use `verify`", table.name);
                    return Err(Error::Usage(text).into());
                }
            }
        }
        Ok(Arc::new(PleachTable::new(Source::with_options(location, options)?)))
    }
}

fn verify(text: &str) -> Result<Verify, Error> {
    [Verify::Header, Verify::Touched, Verify::Full]
        .into_iter()
        .find(|verify| verify.to_string().eq_ignore_ascii_case(text))
        .ok_or_else(|| {
            Error::Usage(format!("no such verification: {text}: use `header`, `touched` or `full`"))
        })
}

/// Returns the local path of a location: a path, or a URL of the scheme `file`.
pub(crate) fn local_path(location: &str) -> Result<PathBuf, Error> {
    match location.split_once("://") {
        None => Ok(location.into()),
        Some(("file", path)) => Ok(path.into()),
        Some((scheme, _)) => Err(Error::Usage(format!(
            "not a local path: a location of {scheme}: give the path of a file or a folder"
        ))),
    }
}

/// Makes tables of paths that are written in quotes in place of a table: `FROM 'x.pleach'`. Those of other formats are
/// left to another factory.
#[derive(Debug)]
pub struct PathTables {
    others: Arc<dyn UrlTableFactory>,
}

impl PathTables {
    /// Creates the factory.
    #[must_use]
    pub fn new(others: Arc<dyn UrlTableFactory>) -> Self {
        Self { others }
    }
}

#[async_trait]
impl UrlTableFactory for PathTables {
    async fn try_new(&self, url: &str) -> EngineResult<Option<Arc<dyn TableProvider>>> {
        let Ok(path) = local_path(url) else { return self.others.try_new(url).await };
        let is_named = path.extension().is_some_and(|extension| extension == "pleach");
        if !is_named && !Set::is_set(&path) {
            return self.others.try_new(url).await;
        }
        Ok(Some(Arc::new(PleachTable::open(path)?)))
    }
}

/// Returns a session in which the paths of files and sets, and those of other formats, are tables.
#[must_use]
pub fn with_paths(session: SessionContext) -> SessionContext {
    let others = Arc::new(DynamicListTableFactory::default());
    let factory = Arc::new(PathTables::new(Arc::clone(&others) as Arc<dyn UrlTableFactory>));
    let catalogs = Arc::clone(session.state_ref().read().catalog_list());
    let catalogs = Arc::new(DynamicFileCatalog::new(catalogs, factory));
    let id = session.session_id();
    let builder = session.into_state_builder().with_session_id(id).with_catalog_list(catalogs);
    let session = SessionContext::new_with_state(builder.build());
    others.session_store().with_state(session.state_weak_ref());
    session
}

/// Adds the table format, the file format and the rules for joins to what a session is made of.
#[must_use]
pub fn register(builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut builder = register_formats(builder);
    let rules = builder.physical_optimizer_rules().take().unwrap_or_else(|| PhysicalOptimizer::new().rules);
    builder.with_physical_optimizer_rules(AlignRule::added_to(LookupJoinRule::new().added_to(rules)))
}

/// Adds the table format and the file format to what a session is made of, and no rule.
#[must_use]
pub fn register_formats(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    builder.table_factories().get_or_insert_default().insert(FORMAT.to_owned(), Arc::new(PleachTableFactory));
    builder.file_formats().get_or_insert_default().push(Arc::new(PleachFormatFactory));
    builder
}

/// Returns a session with the default options and everything that [`register`] adds.
#[must_use]
pub fn session() -> SessionContext {
    let builder = SessionStateBuilder::new().with_default_features();
    SessionContext::new_with_state(register(builder).build())
}
