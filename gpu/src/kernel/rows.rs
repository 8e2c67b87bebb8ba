//! The list of all rows, and the record of what they use.

use super::Source;

/// All rows.
pub(super) const ROWS: &[Source] = &[
    &crate::algorithm::binary::BINARY,
    &crate::algorithm::btree::BTREE,
    &crate::algorithm::fast::FAST,
    &crate::algorithm::harmonia::HARMONIA,
    &crate::algorithm::psa::SORT,
    &crate::algorithm::spine::IMAGE,
    &crate::algorithm::spine::SPINE,
    &crate::algorithm::sweep::SWEEP,
    &crate::all::ALL,
    &crate::build::classic::CLASSIC,
    &crate::build::lines::BUILD,
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

/// Every text of a kernel has a row, and names differ.
#[test]
fn every_text_has_one_row() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels");
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").file_name());
    let mut files: Vec<String> = files.map(|name| name.into_string().expect("UTF-8")).collect();
    files.retain(|name| name.ends_with(".cu"));
    files.sort_unstable();
    let mut names: Vec<&str> = ROWS.iter().map(|row| row.text.name).collect();
    names.sort_unstable();
    assert_eq!(names, files);
}

#[test]
fn the_record_has_no_search_of_ours_that_spills() {
    let (_, limits) = super::limits::recorded();
    for ((source, entry, word), uses) in limits.iter().filter(|(row, _)| row.0 == "spine.cu") {
        for used in uses {
            let what = format!("{source} {entry} {word}: {used}");
            assert!(used.stack_bytes + used.spilled_bytes == 0, "{what}");
        }
    }
}
