//! Which algorithms are measured, and what they are called.
//!
//! A label is the algorithm's name and, after dashes, what else tells it from its siblings: `btree-16-grid`. The
//! full list has every form with the parameters of the papers; the short one has those that do best or stand for their
//! kind, for sizes beside the main one.

use pleach_gpu::{
    Algorithm, BtreeForm, ChildRegion, FastForm, Group, HarmoniaSearch, QuerySort, Scan, SectionTree,
};

/// Every form that searches numbers.
pub(crate) fn all() -> Vec<Algorithm> {
    let mut all = vec![Algorithm::Auto, Algorithm::Spine, Algorithm::Sweep, Algorithm::Binary];
    for form in [FastForm::Paper, FastForm::Grid, FastForm::Ballot] {
        for simultaneous in [1, 2, 4] {
            all.push(Algorithm::Fast { form, simultaneous });
        }
    }
    for order in [4, 8, 16, 32, 64, 128] {
        for form in [BtreeForm::Paper, BtreeForm::Grid] {
            all.push(Algorithm::Btree { order, form });
        }
    }
    all
}

/// One or two of each kind.
pub(crate) fn some() -> Vec<Algorithm> {
    vec![
        Algorithm::Auto,
        Algorithm::Spine,
        Algorithm::Sweep,
        Algorithm::Binary,
        Algorithm::Fast { form: FastForm::Paper, simultaneous: 2 },
        Algorithm::Fast { form: FastForm::Grid, simultaneous: 2 },
        Algorithm::Fast { form: FastForm::Ballot, simultaneous: 2 },
        Algorithm::Btree { order: 16, form: BtreeForm::Paper },
        Algorithm::Btree { order: 16, form: BtreeForm::Grid },
        Algorithm::Btree { order: 64, form: BtreeForm::Grid },
    ]
}

/// Engines that compete for short batches.
pub(crate) fn of_short_batches() -> Vec<Algorithm> {
    vec![Algorithm::Auto, Algorithm::Spine, Algorithm::Binary]
}

/// Engines that compete for ascending batches.
pub(crate) fn of_sorted_batches() -> Vec<Algorithm> {
    vec![Algorithm::Auto, Algorithm::Sweep, Algorithm::Spine, Algorithm::Binary]
}

/// Engines that search the structures of Pleach.
pub(crate) fn of_random_batches() -> Vec<Algorithm> {
    vec![Algorithm::Spine]
}

/// Engines that leave the tuple lines in host memory.
pub(crate) fn of_hybrid() -> Vec<Algorithm> {
    vec![Algorithm::Spine, Algorithm::Sweep]
}

/// Engines from which `auto` chooses.
pub(crate) fn of_auto() -> Vec<Algorithm> {
    vec![Algorithm::Spine, Algorithm::Sweep, Algorithm::Binary]
}

/// Returns the name in reports.
#[must_use]
pub fn label(algorithm: Algorithm) -> String {
    let name = algorithm.name();
    match algorithm {
        Algorithm::Fast { form, simultaneous } => {
            let form = match form {
                FastForm::Paper => "paper",
                FastForm::Grid => "grid",
                FastForm::Ballot => "ballot",
            };
            format!("{name}-{form}-{simultaneous}")
        }
        Algorithm::Btree { order, form: BtreeForm::Paper } => format!("{name}-{order}-paper"),
        Algorithm::Btree { order, form: BtreeForm::Grid } => format!("{name}-{order}-grid"),
        Algorithm::Harmonia(form) => {
            format!("{name}-{}-{}-{}", form.fanout, form.fill, harmonia_label(form.search()))
        }
        Algorithm::Section(SectionTree::Harmonia(search)) => {
            format!("{name}-section-{}", harmonia_label(search))
        }
        Algorithm::Section(_) => format!("{name}-section"),
        Algorithm::External(external) => {
            let parameters = external.parameters.iter().filter(|&&parameter| parameter > 0);
            let parameters = parameters.map(u16::to_string);
            let form = Some(external.form.to_owned()).filter(|form| !form.is_empty());
            std::iter::once(name.to_owned()).chain(parameters).chain(form).collect::<Vec<_>>().join("-")
        }
        _ => name.to_owned(),
    }
}

/// Sorting, group, scan and child region.
fn harmonia_label(form: HarmoniaSearch) -> String {
    let sort = match form.sort {
        QuerySort::None => "unsorted".to_owned(),
        QuerySort::Partial => "partial".to_owned(),
        QuerySort::Full => "full".to_owned(),
        QuerySort::Bits(bits) => format!("bits{bits}"),
        QuerySort::Auto => "auto".to_owned(),
    };
    let group = match form.group {
        Group::Auto => "auto".to_owned(),
        Group::Paper => "equation4".to_owned(),
        Group::Whole => "whole".to_owned(),
        Group::Of(lanes) => format!("lanes{lanes}"),
    };
    let scan = match form.scan {
        Scan::Keys => "keys",
        Scan::Vectors => "vectors",
        Scan::Halves => "halves",
    };
    let children = match form.children {
        ChildRegion::Constant => "constant",
        ChildRegion::Shared => "shared",
        ChildRegion::Ldg => "ldg",
    };
    format!("{sort}-{group}-{scan}-{children}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn labels_differ_and_lists_are_parts_of_the_whole() {
        let all = all();
        let labels: HashSet<String> = all.iter().map(|&algorithm| label(algorithm)).collect();
        assert_eq!(labels.len(), all.len());
        let lists =
            [some(), of_short_batches(), of_sorted_batches(), of_random_batches(), of_hybrid(), of_auto()];
        for list in lists {
            assert!(list.iter().all(|algorithm| all.contains(algorithm)), "{list:?}");
        }
    }
}
