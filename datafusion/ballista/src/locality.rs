//! Tasks go where their files are open.
//!
//! Each pair of a file and an executor has a number, its hash. A file belongs to the executor with the largest one:
//! the same executor in each query, while it is there, and when it is lost, its files alone move. An executor without a
//! free core is passed over, so that no core waits for another one.

use crate::results::{Results, skip_numbers};
use crate::task_scan::PleachTaskScanExec;
use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::config::BallistaConfig;
use ballista_core::execution_plans::{RangeShuffleReaderExec, ShuffleReaderExec};
use ballista_core::serde::protobuf::AvailableVcores;
use ballista_core::serde::protobuf::job_status::Status;
use ballista_core::serde::scheduler::TaskKey;
use ballista_scheduler::cluster::{BoundTask, DistributionPolicy};
use ballista_scheduler::state::execution_graph::{TaskDescription, create_task_info};
use ballista_scheduler::state::execution_stage::RunningStage;
use ballista_scheduler::state::task_manager::JobInfoCache;
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Gives tasks to executors: each partition of a scan to the executor that its first file belongs to, if `by_files`,
/// and all others to the executor with the most free cores.
#[derive(Clone, Copy, Debug, Default)]
pub struct Placement {
    /// Files have executors.
    pub by_files: bool,
}

#[async_trait]
impl DistributionPolicy for Placement {
    async fn bind_tasks(
        &self,
        mut budgets: Vec<&mut AvailableVcores>,
        running_jobs: Arc<HashMap<JobId, JobInfoCache>>,
    ) -> Result<Vec<BoundTask>> {
        let mut bound = Vec::new();
        for (job, info) in running_jobs.iter() {
            if !matches!(info.status, Some(Status::Running(_))) {
                continue;
            }
            let mut graph = info.execution_graph.write().await;
            let session = graph.session_id().to_owned();
            let results = Results::of(&**graph);
            let mut done = Vec::new();
            while let Some(stage) = graph.fetch_running_stage(&done) {
                if budgets.iter().all(|budget| budget.vcores == 0) {
                    return Ok(bound);
                }
                done.push(stage.stage_id);
                stage.plan = results.only(Arc::clone(&stage.plan))?;
                skip_numbers(stage);
                for (executor, partitions, cores) in placed(stage, &mut budgets, self.by_files) {
                    bound.push((executor.clone(), task(stage, &session, job, executor, partitions, cores)));
                }
            }
        }
        Ok(bound)
    }

    fn name(&self) -> &str {
        "pleach"
    }
}

/// Takes pending partitions of a stage, as many as there are free cores. Returns the executor, the partitions and the
/// cores of each task.
fn placed(
    stage: &mut RunningStage,
    budgets: &mut [&mut AvailableVcores],
    by_files: bool,
) -> Vec<(String, Vec<usize>, u32)> {
    let pending = stage.pending.next_slice(usize::MAX);
    let files = if by_files { files_of(&stage.plan, stage.partitions) } else { None };
    let key = |partition: usize| files.as_ref().and_then(|files| files.get(partition).copied().flatten());
    if is_collapsed(&stage.plan) {
        // One task combines all partitions, on one core.
        let Some(first) = pending.first() else { return Vec::new() };
        let Some(at) = chosen(key(*first), budgets) else {
            stage.pending.reschedule(pending);
            return Vec::new();
        };
        budgets[at].vcores -= 1;
        return vec![(budgets[at].executor_id.clone(), pending, 1)];
    }
    let mut given: Vec<Vec<usize>> = vec![Vec::new(); budgets.len()];
    let mut left = Vec::new();
    for partition in pending {
        match chosen(key(partition), budgets) {
            Some(at) => {
                budgets[at].vcores -= 1;
                given[at].push(partition);
            }
            None => left.push(partition),
        }
    }
    stage.pending.reschedule(left);
    let config = stage.session_config.options().extensions.get::<BallistaConfig>();
    let most =
        config.map(BallistaConfig::max_partitions_per_task).filter(|&most| most > 0).unwrap_or(usize::MAX);
    let mut tasks = Vec::new();
    for (budget, partitions) in budgets.iter().zip(given) {
        for partitions in partitions.chunks(most.min(partitions.len().max(1))) {
            tasks.push((budget.executor_id.clone(), partitions.to_vec(), partitions.len() as u32));
        }
    }
    tasks
}

/// Returns the executor with a free core that a file belongs to; the one with the most free cores if there is no file.
fn chosen(file: Option<u64>, budgets: &[&mut AvailableVcores]) -> Option<usize> {
    let free = (0..budgets.len()).filter(|&at| budgets[at].vcores > 0);
    free.max_by_key(|&at| match file {
        Some(file) => hash(&(file, &budgets[at].executor_id)),
        None => u64::from(budgets[at].vcores),
    })
}

/// Returns the first file of each partition of a stage, as a hash; `None` if its partitions are not those of a scan.
fn files_of(plan: &Arc<dyn ExecutionPlan>, partitions: usize) -> Option<Vec<Option<u64>>> {
    if let Some(scan) = plan.downcast_ref::<PleachTaskScanExec>() {
        let location = scan.scan().source().location();
        let of = |pieces: &pleach_datafusion::Pieces| Some(hash(&(location, pieces.first()?.file)));
        let files: Vec<Option<u64>> = scan.scan().partitions().iter().map(of).collect();
        return (files.len() == partitions).then_some(files);
    }
    plan.children().into_iter().find_map(|child| files_of(child, partitions))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns true if a node below the root combines all partitions: they are one task then.
fn is_collapsed(root: &Arc<dyn ExecutionPlan>) -> bool {
    let mut node = root;
    while let [child] = node.children()[..] {
        if child.is::<ShuffleReaderExec>() || child.is::<RangeShuffleReaderExec>() {
            return false;
        }
        if child.output_partitioning().partition_count() == 1 {
            return true;
        }
        node = child;
    }
    false
}

/// Enters a task into a stage.
fn task(
    stage: &mut RunningStage,
    session: &str,
    job: &JobId,
    executor: String,
    partitions: Vec<usize>,
    cores: u32,
) -> TaskDescription {
    let number = stage.task_infos.len();
    let attempt = partitions.iter().filter_map(|&partition| stage.task_failure_numbers.get(partition)).max();
    let task_attempt = attempt.copied().unwrap_or(0);
    let mut info = create_task_info(executor, number);
    info.global_input_partition_ids.clone_from(&partitions);
    info.vcores_consumed = cores;
    stage.task_infos.push(info);
    TaskDescription {
        session_id: session.to_owned(),
        key: TaskKey { job_id: job.clone(), stage_id: stage.stage_id, task_id: number },
        stage_attempt_num: stage.stage_attempt_num,
        task_attempt,
        global_input_partition_ids: partitions,
        vcores_consumed: cores,
        plan: Arc::clone(&stage.plan),
        session_config: Arc::clone(&stage.session_config),
    }
}
