//! Recognizes the side of a join that is a table of Pleach, and what lies between the two.

use super::files::Files;
use super::gather::Gather;
use crate::error::Error;
use crate::scan::PleachScanExec;
use datafusion::arrow::array::new_empty_array;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column};
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use pleach_batch::Table;
use pleach_batch::arrow::ArrowKeys;
use std::sync::Arc;

/// The side of a join that is looked up: a scan, a condition on its columns, and columns made of them.
#[derive(Clone, Debug)]
pub struct TableSide {
    scan: Arc<PleachScanExec>,
    /// Over the columns of the scan.
    columns: Vec<ProjectionExpr>,
    /// Over the columns of the scan.
    predicate: Option<PhysicalExprRef>,
    schema: SchemaRef,
}

impl TableSide {
    /// Makes a side of a scan: `columns` and `predicate` are expressions over the columns of the scan, and `schema` has
    /// the fields of `columns`.
    #[must_use]
    pub fn new(
        scan: Arc<PleachScanExec>,
        columns: Vec<ProjectionExpr>,
        predicate: Option<PhysicalExprRef>,
        schema: SchemaRef,
    ) -> Self {
        Self { scan, columns, predicate, schema }
    }

    /// Recognizes a scan under projections, filters and steps that only move rows. Returns `None` if there is anything
    /// else, or if the scan does not return all tuples of its keys.
    #[must_use]
    pub fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(scan) = plan.downcast_ref::<PleachScanExec>() {
            return Self::of_scan(scan);
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            if filter.fetch().is_some() {
                return None;
            }
            let mut side = Self::of_plan(filter.input())?;
            let own = side.over_scan(filter.predicate()).ok()?;
            side.predicate = Some(match side.predicate {
                None => own,
                Some(other) => Arc::new(BinaryExpr::new(other, Operator::And, own)),
            });
            if let Some(projection) = filter.projection() {
                let column = |&at: &usize| side.columns.get(at).cloned();
                side.columns = projection.iter().map(column).collect::<Option<_>>()?;
            }
            side.schema = plan.schema();
            return Some(side);
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let mut side = Self::of_plan(projection.input())?;
            let column = |own: &ProjectionExpr| {
                let expr = side.over_scan(&own.expr).ok()?;
                Some(ProjectionExpr { expr, alias: own.alias.clone() })
            };
            side.columns = projection.expr().iter().map(column).collect::<Option<_>>()?;
            side.schema = plan.schema();
            return Some(side);
        }
        Self::of_plan(moved(plan)?)
    }

    fn of_scan(scan: &PleachScanExec) -> Option<Self> {
        if scan.fetch().is_some() || !scan.dynamic_filters().is_empty() {
            return None;
        }
        let schema = ExecutionPlan::schema(scan);
        let column = |(at, field): (usize, &Arc<datafusion::arrow::datatypes::Field>)| ProjectionExpr {
            expr: Arc::new(Column::new(field.name(), at)),
            alias: field.name().clone(),
        };
        let columns = schema.fields().iter().enumerate().map(column).collect();
        Some(Self { scan: Arc::new(scan.clone()), columns, predicate: None, schema })
    }

    /// Returns the scan.
    #[must_use]
    pub fn scan(&self) -> &Arc<PleachScanExec> {
        &self.scan
    }
    /// Returns the columns, as expressions over those of the scan.
    #[must_use]
    pub fn columns(&self) -> &[ProjectionExpr] {
        &self.columns
    }
    /// Returns the condition on the columns of the scan, beyond the keys that it returns.
    #[must_use]
    pub fn predicate(&self) -> Option<&PhysicalExprRef> {
        self.predicate.as_ref()
    }
    /// Returns names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Makes an expression over columns of this side one over columns of the scan.
    fn over_scan(&self, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        let replace = |expr: PhysicalExprRef| {
            Ok(match expr.downcast_ref::<Column>().map(Column::index) {
                Some(at) if at < self.columns.len() => Transformed::yes(Arc::clone(&self.columns[at].expr)),
                Some(at) => {
                    return datafusion::common::internal_err!("column {at} of {}", self.columns.len());
                }
                None => Transformed::no(expr),
            })
        };
        // Upwards, so that columns of the scan are not replaced again.
        Arc::clone(expr).transform_up(replace).data()
    }

    /// Returns true if `expr`, an expression over the columns of this side, is the key of the table, and values of its
    /// type can be looked up: equal values are equal keys.
    #[must_use]
    pub fn is_key(&self, expr: &PhysicalExprRef) -> bool {
        let Ok(mut own) = self.over_scan(expr) else { return false };
        let columns = self.scan.source().columns();
        if columns.keys() != 1 || columns.is_composite() || columns.ordered() == 0 {
            return false;
        }
        let key_type = columns.key_type();
        // Comparisons of floats distinguish zeros; keys do not.
        if key_type.is_floating() {
            return false;
        }
        let mut types = Vec::new();
        while let Some(cast) = own.downcast_ref::<CastExpr>() {
            types.push(cast.cast_type().clone());
            own = Arc::clone(cast.expr());
        }
        let is_key = own
            .downcast_ref::<Column>()
            .is_some_and(|column| self.scan.projection().get(column.index()) == Some(&0));
        let mut from = key_type;
        let is_exact = types.iter().rev().all(|to| is_exact(std::mem::replace(&mut from, to), to));
        is_key && is_exact && self.takes(from)
    }

    /// Returns true if values of this type can be looked up.
    fn takes(&self, data_type: &DataType) -> bool {
        let source = self.scan.source();
        let table = match source.set() {
            Some(set) => set.shape().map_err(Error::from).and_then(|index| Ok(Table::of(index)?)),
            None => source.file(0).map(|file| file.table().clone()),
        };
        let Ok(table) = table else { return false };
        let data_type = match self.conversion(data_type) {
            Some(converted) => converted,
            None => data_type.clone(),
        };
        !table.is_interval() && ArrowKeys::new(&table, new_empty_array(&data_type)).is_ok()
    }

    /// Returns the type to which values of a type are converted before they are looked up; those without a place in it
    /// become nulls. `None` if they are looked up as they are.
    pub(super) fn conversion(&self, data_type: &DataType) -> Option<DataType> {
        let key_type = self.scan.source().columns().key_type();
        let is_decimal = |data_type: &DataType| {
            matches!(
                data_type,
                DataType::Decimal32(..)
                    | DataType::Decimal64(..)
                    | DataType::Decimal128(..)
                    | DataType::Decimal256(..)
            )
        };
        (is_decimal(data_type) && key_type.is_integer()).then(|| key_type.clone())
    }

    pub(super) fn files(&self) -> Files {
        Files::new(self.scan.source().clone(), self.scan.keys().clone())
    }

    pub(super) fn gather(&self) -> Gather {
        let columns = self.scan.source().columns().clone();
        Gather { columns, projection: self.scan.projection().to_vec() }
    }
}

/// Returns what a step that only moves rows reads; `None` if it does more.
pub(super) fn moved(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    if plan.fetch().is_some() {
        return None;
    }
    let moves = plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>();
    if moves { plan.children().first().copied() } else { None }
}

/// Returns true if a cast keeps values distinct, never fails, and has the order of equality of the first type.
fn is_exact(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let is_text = |data_type: &DataType| matches!(data_type, T::Utf8 | T::LargeUtf8 | T::Utf8View);
    let is_bytes = |data_type: &DataType| matches!(data_type, T::Binary | T::LargeBinary | T::BinaryView);
    if from == to || is_text(from) && is_text(to) || is_bytes(from) && is_bytes(to) {
        return true;
    }
    if let T::Dictionary(_, values) = to {
        return is_exact(from, values);
    }
    if let (T::Decimal128(few, scale), T::Decimal128(more, same)) = (from, to) {
        return scale == same && few <= more;
    }
    let Some((is_signed, bits)) = integer(from) else { return false };
    match to {
        T::Decimal128(precision, 0) | T::Decimal256(precision, 0) => {
            let digits = if bits == 64 && !is_signed { 20 } else { [3, 5, 10, 19][(bits / 16).min(3)] };
            usize::from(*precision) >= digits
        }
        _ => integer(to).is_some_and(|(signed, more)| match (is_signed, signed) {
            (true, true) | (false, false) => bits <= more,
            (false, true) => bits < more,
            (true, false) => false,
        }),
    }
}

/// Returns whether integers of a type have a sign, and their bits.
fn integer(data_type: &DataType) -> Option<(bool, usize)> {
    let bits = 8 * data_type.primitive_width()?;
    (data_type.is_signed_integer() || data_type.is_unsigned_integer())
        .then(|| (data_type.is_signed_integer(), bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_that_keep_values() {
        use DataType as T;
        for (from, to, expected) in [
            (T::Int32, T::Int64, true),
            (T::Int64, T::Int32, false),
            (T::UInt32, T::Int64, true),
            (T::UInt32, T::Int32, false),
            (T::UInt64, T::Int64, false),
            (T::UInt64, T::Decimal128(20, 0), true),
            (T::UInt64, T::Decimal128(19, 0), false),
            (T::Int64, T::Decimal128(19, 0), true),
            (T::Int64, T::Decimal128(20, 1), false),
            (T::Int32, T::Decimal128(10, 0), true),
            (T::Int32, T::Decimal128(9, 0), false),
            (T::UInt8, T::Decimal128(3, 0), true),
            (T::Decimal128(15, 2), T::Decimal128(18, 2), true),
            (T::Decimal128(15, 2), T::Decimal128(18, 3), false),
            (T::Decimal128(18, 2), T::Decimal128(15, 2), false),
            (T::Utf8, T::Utf8View, true),
            (T::LargeUtf8, T::Dictionary(Box::new(T::Int32), Box::new(T::Utf8)), true),
            (T::Utf8, T::Int64, false),
            (T::Int32, T::Float64, false),
            (T::Int32, T::Utf8, false),
        ] {
            assert_eq!(is_exact(&from, &to), expected, "{from} to {to}");
        }
    }
}
