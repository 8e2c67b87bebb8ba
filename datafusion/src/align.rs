//! Gives both sides of a merge join the same borders, so that neither is repartitioned or sorted.

use crate::scan::PleachScanExec;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use std::sync::Arc;

/// Divides both sides of a merge join at the same keys, where both are tables of Pleach that are joined by their keys.
///
/// The engine declares what a merge join needs: partitions of the same keys on both sides, each in order. Tuples of
/// Pleach are in order, but each table is divided where its own files are; so one of them is divided where the
/// other one is. It belongs before the rule that repartitions and sorts.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlignRule;

impl AlignRule {
    /// Returns the rules of `rules`, with this one before `EnsureRequirements`, or last if there is no such rule.
    #[must_use]
    pub fn added_to(
        mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
    ) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
        let place = rules.iter().position(|rule| rule.name() == "EnsureRequirements").unwrap_or(rules.len());
        rules.insert(place, Arc::new(Self));
        rules
    }
}

impl PhysicalOptimizerRule for AlignRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match aligned(&plan)? {
                Some(plan) => Transformed::yes(plan),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "pleach_align"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn aligned(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() else { return Ok(None) };
    let [(left_key, right_key)] = join.on() else { return Ok(None) };
    let (Some(left), Some(right)) = (side(join.left(), left_key), side(join.right(), right_key)) else {
        return Ok(None);
    };
    let key_type = |scan: &PleachScanExec| scan.source().columns().key_type().clone();
    if key_type(left) != key_type(right) {
        return Ok(None);
    }
    // The more partitions the better; of the same number, those of the larger table are more even.
    let weight = |scan: &PleachScanExec| (scan.borders().map_or(0, <[_]>::len), scan.source().tuples());
    let is_left = weight(left) >= weight(right);
    let borders = if is_left { left.borders() } else { right.borders() };
    let Some(borders) = borders.filter(|borders| !borders.is_empty()) else { return Ok(None) };
    let children = match is_left {
        true => vec![Arc::clone(join.left()), divided(join.right(), borders)?],
        false => vec![divided(join.left(), borders)?, Arc::clone(join.right())],
    };
    Arc::clone(plan)
        .replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
        .map(Some)
}

/// Returns the scan below a side, if the side keeps its partitions and `key` is the whole key of its tuples.
fn side<'a>(plan: &'a Arc<dyn ExecutionPlan>, key: &PhysicalExprRef) -> Option<&'a PleachScanExec> {
    let at = key.downcast_ref::<Column>()?.index();
    if let Some(scan) = plan.downcast_ref::<PleachScanExec>() {
        let is_whole = scan.source().columns().keys() == 1 && scan.source().columns().ordered() == 1;
        return (is_whole && scan.key_column() == Some(at) && !scan.is_reversed() && scan.fetch().is_none())
            .then_some(scan);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return side(projection.input(), &projection.expr().get(at)?.expr);
    }
    let filter = plan.downcast_ref::<FilterExec>()?;
    let at = filter.projection().as_ref().map_or(Some(at), |columns| columns.get(at).copied())?;
    let column: PhysicalExprRef = Arc::new(Column::new("key", at));
    side(filter.input(), &column)
}

/// Returns a side that [`side`] knows, its scan divided at these keys.
fn divided(plan: &Arc<dyn ExecutionPlan>, borders: &[Vec<u8>]) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(scan) = plan.downcast_ref::<PleachScanExec>() {
        return Ok(Arc::new(scan.divided_at(borders)?));
    }
    let children = plan.children().into_iter().map(|child| divided(child, borders)).collect::<Result<_>>()?;
    Arc::clone(plan)
        .replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}
