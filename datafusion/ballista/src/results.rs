//! Only results that count are read.
//!
//! When an executor is lost, Ballista takes a stage back and runs it again. Tasks of the stage that had ended on other
//! executors run again, too; but Ballista 55 has told the stage above where their first results are, and tells it of
//! the second ones as well, so that rows are read twice. Here a stage that begins to run is given only the results
//! that its inputs know to be theirs: for each task, the last ones, on the executor where it succeeded.
//!
//! The results of the last stage are read by the client, which this does not reach: [`ClusterPlanner`] makes it one
//! task, so that there are none before all of them are there.
//!
//! [`ClusterPlanner`]: crate::planner::ClusterPlanner

use ballista_core::execution_plans::{RangeShuffleReaderExec, ShuffleReaderExec};
use ballista_core::serde::protobuf::FailedTask;
use ballista_core::serde::protobuf::task_status::Status;
use ballista_core::serde::scheduler::PartitionLocation;
use ballista_scheduler::state::execution_graph::{ExecutionGraph, create_task_info};
use ballista_scheduler::state::execution_stage::{ExecutionStage, RunningStage, TaskInfo};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Tasks that a partition has in one run of its stage, at most: one fails so often before the query does.
const TASKS_PER_PARTITION: usize = 5;

/// The tasks of each stage that succeeded, and their executors.
#[derive(Debug, Default)]
pub struct Results(HashMap<usize, HashMap<usize, String>>);

impl Results {
    /// Returns what counts in a query. Empty if no stage ran again: all results count then.
    pub fn of(graph: &dyn ExecutionGraph) -> Self {
        let tasks = |stage: &ExecutionStage| match stage {
            ExecutionStage::Running(stage) => Some((stage.stage_attempt_num, succeeded(&stage.task_infos))),
            ExecutionStage::Successful(stage) => {
                Some((stage.stage_attempt_num, succeeded(&stage.task_infos)))
            }
            _ => None,
        };
        let known = graph.stages().iter().filter_map(|(number, stage)| Some((*number, tasks(stage)?)));
        let known: Vec<_> = known.collect();
        if known.iter().all(|(_, (attempt, _))| *attempt == 0) {
            return Self::default();
        }
        Self(known.into_iter().map(|(number, (_, tasks))| (number, tasks)).collect())
    }

    /// Returns a plan whose readers read what counts.
    ///
    /// # Errors
    /// None of its own: those of walking a plan.
    pub fn only(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        if self.0.is_empty() {
            return Ok(plan);
        }
        let replace = |plan: Arc<dyn ExecutionPlan>| {
            if let Some(reader) = plan.downcast_ref::<ShuffleReaderExec>()
                && let Some(partition) = self.kept(reader.stage_id, &reader.partition)
            {
                let mut reader = reader.clone();
                reader.partition = partition;
                return Ok(Transformed::yes(Arc::new(reader) as Arc<dyn ExecutionPlan>));
            }
            if let Some(reader) = plan.downcast_ref::<RangeShuffleReaderExec>()
                && let Some(partition) = self.kept(reader.stage_id, &reader.partition)
            {
                let mut reader = reader.clone();
                reader.partition = partition;
                return Ok(Transformed::yes(Arc::new(reader) as Arc<dyn ExecutionPlan>));
            }
            Ok(Transformed::no(plan))
        };
        plan.transform_up(replace).data()
    }

    /// Returns the places that count, or `None` if all do.
    fn kept(
        &self,
        stage: usize,
        partitions: &[Vec<PartitionLocation>],
    ) -> Option<Vec<Vec<PartitionLocation>>> {
        let tasks = self.0.get(&stage)?;
        let kept: Vec<_> = partitions.iter().map(|places| current(tasks, places)).collect();
        let count = |partitions: &[Vec<PartitionLocation>]| partitions.iter().map(Vec::len).sum::<usize>();
        (count(&kept) < count(partitions)).then_some(kept)
    }
}

/// Returns the last place of each task that succeeded there, in their order.
fn current(tasks: &HashMap<usize, String>, places: &[PartitionLocation]) -> Vec<PartitionLocation> {
    let mut seen = HashSet::new();
    // Those of a later run come later.
    let last = places.iter().rev().filter(|place| {
        tasks.get(&place.map_partition_id) == Some(&place.executor_meta.id)
            && seen.insert((place.map_partition_id, place.partition_id.partition_id))
    });
    let mut kept: Vec<PartitionLocation> = last.cloned().collect();
    kept.reverse();
    kept
}

fn succeeded(tasks: &[TaskInfo]) -> HashMap<usize, String> {
    let executor = |task: &TaskInfo| match &task.task_status {
        Status::Successful(task) => Some(task.executor_id.clone()),
        _ => None,
    };
    tasks.iter().enumerate().filter_map(|(number, task)| Some((number, executor(task)?))).collect()
}

/// Numbers the tasks of a stage that runs again beyond those of its runs before: a task writes files under its number,
/// and one that was cancelled may write a little longer.
pub fn skip_numbers(stage: &mut RunningStage) {
    let used = stage.stage_attempt_num * (TASKS_PER_PARTITION * stage.partitions + 1);
    while stage.task_infos.len() < used {
        let mut skipped = create_task_info(String::new(), stage.task_infos.len());
        skipped.task_status = Status::Failed(FailedTask::default());
        stage.task_infos.push(skipped);
    }
}
