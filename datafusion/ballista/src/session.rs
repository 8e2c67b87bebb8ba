//! Sessions of the scheduler and of clients.

use crate::codec_logical::PleachLogicalCodec;
use crate::codec_physical::PleachPhysicalCodec;
use crate::planner::ClusterPlanner;
use crate::stores::runtime;
use crate::tables::OpenTables;
use crate::version::Version;
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::utils::default_session_builder;
use datafusion::error::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use pleach_datafusion::{register_formats, with_paths};
use std::sync::Arc;

/// Returns the options of a session, with codecs that know Pleach.
#[must_use]
pub fn session_config(version: &Version, tables: &OpenTables) -> SessionConfig {
    SessionConfig::new_with_ballista()
        .with_ballista_logical_extension_codec(Arc::new(PleachLogicalCodec::new(
            version.clone(),
            tables.clone(),
        )))
        .with_ballista_physical_extension_codec(Arc::new(PleachPhysicalCodec::new(
            version.clone(),
            tables.clone(),
        )))
}

/// Returns a session of the scheduler, which plans queries of clients.
///
/// # Errors
/// Those of making a runtime.
pub fn session_state(config: SessionConfig) -> Result<SessionState> {
    let state = default_session_builder(config)?;
    let id = state.session_id().to_owned();
    let builder = SessionStateBuilder::new_from_existing(state)
        .with_session_id(id)
        .with_runtime_env(runtime()?)
        .with_query_planner(Arc::new(ClusterPlanner));
    Ok(register_formats(builder).build())
}

/// Returns a session whose queries run in a cluster. `scheduler` is its host and port, as in `localhost:50050`.
///
/// Paths in queries are those of the machines of the cluster, which have the same folders as this one.
///
/// # Errors
/// Those of making a session. The scheduler is asked with the first query.
pub async fn client(scheduler: &str, config: SessionConfig) -> Result<SessionContext> {
    let builder =
        SessionStateBuilder::new().with_default_features().with_config(config).with_runtime_env(runtime()?);
    let state = register_formats(builder).build();
    let session = SessionContext::remote_with_state(&format!("df://{scheduler}"), state).await?;
    Ok(with_paths(session))
}
