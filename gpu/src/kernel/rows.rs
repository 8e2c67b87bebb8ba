//! The list of all rows, and the record of what they use.

use super::{Compiler, Instance, Source};
use crate::image::Lowest;

#[path = "limits.rs"]
pub(super) mod limits;

/// All rows.
pub(super) const ROWS: &[Source] = &[
    &crate::algorithm::binary::BINARY,
    &crate::algorithm::btree::BTREE,
    &crate::algorithm::fast::FAST,
    &crate::algorithm::fast_section::FAST_SECTION,
    &crate::algorithm::fine::FINE_IMAGE,
    &crate::algorithm::harmonia::HARMONIA,
    &crate::algorithm::imaged::IMAGE,
    &crate::algorithm::near::NEAR,
    &crate::algorithm::near::NEAR_SWEEP,
    &crate::algorithm::psa::SORT,
    &crate::algorithm::spine::SPINE,
    &crate::algorithm::sweep::SWEEP,
    &crate::all::ALL,
    &crate::build::classic::CLASSIC,
    &crate::build::lines::BUILD,
    &crate::foreign::FOREIGN,
    &crate::relation::expand::EXPAND,
    &crate::relation::merge::MERGE,
    &crate::relation::project::PROJECT,
    &crate::relation::reduce::REDUCE,
    &crate::relation::reduce::REDUCE_FEW,
    &crate::relation::select::SIFT,
    &crate::resident::COLUMNS,
];

/// The record of the resources that their entries use: see `limits`.
pub(super) const RECORDED: &str = include_str!("limits.txt");
/// The file of the record.
pub(super) const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernel/limits.txt");
