//! Plans for a cluster: look-up joins, and scans that can be divided.

use crate::task_scan::PleachTaskScanExec;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::internal_datafusion_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use pleach_datafusion::{LookupJoinRule, PleachScanExec};
use std::sync::Arc;

type Rules = Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>;

/// Plans queries as the session does, with the rules of a cluster.
///
/// Ballista plans in two ways, each with rules of its own: at once, and adaptively, where joins are chosen when
/// their inputs were measured. Both begin with the planner of the session, so that this one meets all plans.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterPlanner;

#[async_trait]
impl QueryPlanner for ClusterPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let state = session.as_any().downcast_ref::<SessionState>();
        let state = state.ok_or_else(|| internal_datafusion_err!("the session is of an unknown kind"))?;
        let rules = cluster_rules(state.physical_optimizers().to_vec());
        let state = SessionStateBuilder::new_from_existing(state.clone())
            .with_session_id(state.session_id().to_owned())
            .with_physical_optimizer_rules(rules)
            .build();
        DefaultPhysicalPlanner::default().create_physical_plan(plan, &state).await.map(in_one)
    }
}

/// Makes the last stage one task. Of several, those that had ended when another one's executor was lost would run
/// again, and their rows come twice: see `results.rs`.
fn in_one(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if plan.output_partitioning().partition_count() <= 1 {
        return plan;
    }
    match plan.output_ordering().cloned() {
        Some(order) => Arc::new(SortPreservingMergeExec::new(order, plan)),
        None => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

/// Adds the rules of a cluster: look-up joins come before Ballista puts off its choice of joins, and scans are made
/// divisible before the plan is divided.
#[must_use]
pub fn cluster_rules(mut rules: Rules) -> Rules {
    let place = |rules: &Rules, name: &str| rules.iter().position(|rule| rule.name() == name);
    if let Some(at) = place(&rules, "DelayJoinSelectionRule") {
        rules.insert(at, Arc::new(TaskScans));
        rules.insert(at, Arc::new(LookupJoinRule::new()));
        return rules;
    }
    let mut rules = LookupJoinRule::new().added_to(rules);
    let at = place(&rules, "EnsureRequirements").unwrap_or(rules.len());
    rules.insert(at, Arc::new(TaskScans));
    rules
}

/// Replaces scans by those that can be divided.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskScans;

impl PhysicalOptimizerRule for TaskScans {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let replace = |plan: Arc<dyn ExecutionPlan>| {
            Ok(match plan.downcast_ref::<PleachScanExec>() {
                Some(scan) => {
                    Transformed::yes(Arc::new(PleachTaskScanExec::new(scan)?) as Arc<dyn ExecutionPlan>)
                }
                None => Transformed::no(plan),
            })
        };
        plan.transform_up(replace).data()
    }

    fn name(&self) -> &str {
        "pleach_task_scans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
