//! The scheduler.

use crate::cluster::VersionedCluster;
use crate::codec_logical::PleachLogicalCodec;
use crate::codec_physical::PleachPhysicalCodec;
use crate::locality::Placement;
use crate::session::{session_config, session_state};
use crate::tables::OpenTables;
use crate::version::Version;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Seconds for which queries wait for an executor, if there is none.
const GRACE_SECONDS: u64 = 30;

/// How tasks are given to executors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Distribution {
    /// Files go to the executors that were given them before, as far as these have a free core.
    #[default]
    Locality,
    /// Each goes to the executor with the most free cores.
    Even,
}

/// Options of a scheduler.
#[derive(Clone, Debug, clap::Args)]
pub struct SchedulerOptions {
    /// Address to listen at; 0.0.0.0 is reached from other machines
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub bind: String,
    /// Port to listen at; 0 is any free one
    #[arg(long, default_value_t = 50050)]
    pub port: u16,
    /// Name of this machine, by which executors reach it
    #[arg(long, default_value = "localhost")]
    pub host: String,
    /// How tasks are given to executors
    #[arg(long, value_enum, default_value_t)]
    pub distribution: Distribution,
    /// Seconds without a heartbeat after which an executor is lost, and its tasks run elsewhere
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub executor_timeout: u64,
    /// Executors that must be there before `GET /readyz` says so
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub executors: usize,
}

/// Runs a scheduler until the process ends. `is_listening` is called with the address when it takes queries.
///
/// # Errors
/// Those of listening at the address.
pub async fn run_scheduler(
    options: SchedulerOptions,
    version: Version,
    is_listening: impl FnOnce(SocketAddr),
) -> Result<()> {
    let place = format!("{}:{}", options.bind, options.port);
    let listener = TcpListener::bind(&place).await.map_err(|error| {
        BallistaError::Configuration(format!(
            "cannot listen: {place}: {error}: give another --bind or --port"
        ))
    })?;
    let address = listener.local_addr()?;
    let config = config(&options, &version, address.port());
    config.validate()?;
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let executors = Arc::new(VersionedCluster::new(cluster.cluster_state(), version));
    let cluster = BallistaCluster::new(executors, cluster.job_state());
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config)).await?;
    is_listening(address);
    start_grpc_service_with_listener(listener, scheduler).await
}

fn config(options: &SchedulerOptions, version: &Version, port: u16) -> SchedulerConfig {
    let tables = OpenTables::default();
    let (logical, physical) = (
        PleachLogicalCodec::new(version.clone(), tables.clone()),
        PleachPhysicalCodec::new(version.clone(), tables.clone()),
    );
    let version = version.clone();
    let mut config = SchedulerConfig::default()
        .with_hostname(options.host.clone())
        .with_port(port)
        .with_scheduler_policy(TaskSchedulingPolicy::PushStaged)
        .with_task_distribution(TaskDistributionPolicy::Custom(Arc::new(Placement {
            by_files: options.distribution == Distribution::Locality,
        })))
        .with_no_executors_grace_period_seconds(options.executor_timeout.max(GRACE_SECONDS))
        .with_override_config_producer(Arc::new(move || session_config(&version, &tables)))
        .with_override_session_builder(Arc::new(session_state));
    config.bind_host = options.bind.clone();
    config.executor_timeout_seconds = options.executor_timeout;
    config.expire_dead_executor_interval_seconds = (options.executor_timeout / 4).max(1);
    config.min_ready_executors = options.executors;
    config.override_logical_codec = Some(Arc::new(logical));
    config.override_physical_codec = Some(Arc::new(physical));
    config
}
