//! Where the columns of a join come from.

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{JoinSide, Result, internal_err};
use datafusion::logical_expr::JoinType;
use datafusion::physical_plan::joins::utils::{ColumnIndex, build_join_schema};
use std::sync::Arc;

/// A column of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Out {
    /// A column of the probe.
    Probe(usize),
    /// A column of the table.
    Table(usize),
    /// Whether a row has a match.
    Mark,
}

/// What becomes of the rows of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// A row for each match.
    Matches,
    /// The same, and a row with nulls if there is no match.
    All,
    /// The row, if there is a match.
    Matched,
    /// The row, if there is no match.
    Unmatched,
    /// The row, and whether there is a match.
    Marked,
}

impl Kept {
    /// Returns what a join of this type does with the rows of one side; `None` if it keeps rows of the other side that
    /// have no match, or returns those of the other side alone.
    pub(super) fn new(join_type: JoinType, probe_side: JoinSide) -> Option<Self> {
        match (join_type, probe_side) {
            (JoinType::Inner, JoinSide::Left | JoinSide::Right) => Some(Self::Matches),
            (JoinType::Left, JoinSide::Left) | (JoinType::Right, JoinSide::Right) => Some(Self::All),
            (JoinType::LeftSemi, JoinSide::Left) | (JoinType::RightSemi, JoinSide::Right) => {
                Some(Self::Matched)
            }
            (JoinType::LeftAnti, JoinSide::Left) | (JoinType::RightAnti, JoinSide::Right) => {
                Some(Self::Unmatched)
            }
            (JoinType::LeftMark, JoinSide::Left) | (JoinType::RightMark, JoinSide::Right) => {
                Some(Self::Marked)
            }
            (_, JoinSide::Left | JoinSide::Right | JoinSide::None) => None,
        }
    }
}

/// The schema of a join and the origin of each column, in the order of the join: that of the left side first.
pub(super) fn joined(
    probe: &Schema,
    table: &Schema,
    probe_side: JoinSide,
    join_type: JoinType,
) -> (SchemaRef, Vec<ColumnIndex>) {
    let (left, right) = if probe_side == JoinSide::Left { (probe, table) } else { (table, probe) };
    let (schema, columns) = build_join_schema(left, right, &join_type);
    (Arc::new(schema), columns)
}

/// Returns the origin of columns as that of a join whose probe is on this side.
pub(super) fn origins(columns: &[ColumnIndex], probe_side: JoinSide) -> Vec<Out> {
    let origin = |column: &ColumnIndex| match column.side {
        JoinSide::None => Out::Mark,
        side if side == probe_side => Out::Probe(column.index),
        JoinSide::Left | JoinSide::Right => Out::Table(column.index),
    };
    columns.iter().map(origin).collect()
}

/// Returns the columns of a projection.
pub(super) fn projected<T: Clone>(all: &[T], projection: Option<&[usize]>) -> Result<Vec<T>> {
    let Some(projection) = projection else { return Ok(all.to_vec()) };
    let chosen: Option<Vec<T>> = projection.iter().map(|&at| all.get(at).cloned()).collect();
    match chosen {
        Some(chosen) => Ok(chosen),
        None => internal_err!("projection {projection:?} of {} columns", all.len()),
    }
}
