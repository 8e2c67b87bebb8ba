//! Executors of a cluster: refuses other versions, and counts free cores.

use crate::version::Version;
use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::error::{BallistaError, Result};
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_scheduler::cluster::memory::InMemoryClusterState;
use ballista_scheduler::cluster::{BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot};
use ballista_scheduler::config::TaskDistributionPolicy;
use ballista_scheduler::state::task_manager::JobInfoCache;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::Mutex;

/// The state of a cluster, into which executors of one version come only.
///
/// An executor says its version in its name, [`Version::of_executor`]: with it it registers, and sends heartbeats.
///
/// Free cores are counted anew whenever tasks are given out: those of an executor, less those of its running tasks.
/// Ballista 55 adds and subtracts instead: when a task ends, its stage says how many cores it had. If the stage was
/// rolled back meanwhile, because another executor was lost, they are never free again, and the query waits for ever.
pub struct VersionedCluster {
    inner: Arc<dyn ClusterState>,
    version: Version,
    cores: Mutex<HashMap<String, u32>>,
}

impl VersionedCluster {
    /// Wraps the state of a cluster.
    #[must_use]
    pub fn new(inner: Arc<dyn ClusterState>, version: Version) -> Self {
        Self { inner, version, cores: Mutex::default() }
    }

    /// Returns the cluster as it is now, with the cores that no running task has.
    async fn with_free_cores(&self, jobs: &HashMap<JobId, JobInfoCache>) -> Result<InMemoryClusterState> {
        let mut used: HashMap<String, u32> = HashMap::new();
        for job in jobs.values() {
            let graph = job.execution_graph.read().await;
            for task in graph.running_tasks() {
                *used.entry(task.executor_id).or_default() +=
                    graph.task_vcores(task.stage_id, task.task_id).unwrap_or(1);
            }
        }
        let state = InMemoryClusterState::default();
        for metadata in self.inner.registered_executor_metadata().await {
            let executor_id = metadata.id.clone();
            let Some(total_vcores) = self.cores.lock().await.get(&executor_id).copied() else { continue };
            let available_vcores =
                total_vcores.saturating_sub(used.get(&executor_id).copied().unwrap_or_default());
            state
                .register_executor(metadata, ExecutorData { executor_id, total_vcores, available_vcores })
                .await?;
        }
        Ok(state)
    }

    fn check(&self, metadata: &ExecutorMetadata) -> Result<()> {
        let other = Version::in_name(&metadata.id);
        let what = format!("the executor {}", metadata.id);
        self.version.check(other.as_ref(), &what).map_err(|text| {
            log::warn!("refuses an executor: {text}");
            BallistaError::Configuration(text)
        })
    }
}

#[async_trait]
impl ClusterState for VersionedCluster {
    async fn init(&self) -> Result<()> {
        self.inner.init().await
    }

    async fn bind_schedulable_tasks(
        &self,
        distribution: TaskDistributionPolicy,
        active_jobs: Arc<HashMap<JobId, JobInfoCache>>,
        executors: Option<HashSet<String>>,
    ) -> Result<Vec<BoundTask>> {
        let state = self.with_free_cores(&active_jobs).await?;
        state.bind_schedulable_tasks(distribution, active_jobs, executors).await
    }

    /// Does nothing: which cores are free follows from the tasks that run.
    async fn unbind_tasks(&self, _: Vec<ExecutorSlot>) -> Result<()> {
        Ok(())
    }

    async fn register_executor(&self, metadata: ExecutorMetadata, spec: ExecutorData) -> Result<()> {
        self.check(&metadata)?;
        let (executor, cores) = (metadata.id.clone(), spec.total_vcores);
        self.inner.register_executor(metadata, spec).await?;
        self.cores.lock().await.insert(executor, cores);
        Ok(())
    }

    async fn save_executor_metadata(&self, metadata: ExecutorMetadata) -> Result<()> {
        self.check(&metadata)?;
        self.inner.save_executor_metadata(metadata).await
    }

    async fn get_executor_metadata(&self, executor_id: &str) -> Result<ExecutorMetadata> {
        self.inner.get_executor_metadata(executor_id).await
    }

    async fn registered_executor_metadata(&self) -> Vec<ExecutorMetadata> {
        self.inner.registered_executor_metadata().await
    }

    async fn save_executor_heartbeat(&self, heartbeat: ExecutorHeartbeat) -> Result<()> {
        self.inner.save_executor_heartbeat(heartbeat).await
    }

    async fn remove_executor(&self, executor_id: &str) -> Result<()> {
        self.cores.lock().await.remove(executor_id);
        self.inner.remove_executor(executor_id).await
    }

    fn executor_heartbeats(&self) -> HashMap<String, ExecutorHeartbeat> {
        self.inner.executor_heartbeats()
    }

    fn get_executor_heartbeat(&self, executor_id: &str) -> Option<ExecutorHeartbeat> {
        self.inner.get_executor_heartbeat(executor_id)
    }

    async fn cluster_state_events(&self) -> Result<ClusterStateEventStream> {
        self.inner.cluster_state_events().await
    }
}
