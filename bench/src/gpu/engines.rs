//! Which algorithms are measured, and what they are called.
//!
//! A label is the algorithm's name and, after dashes, what else tells it from its siblings: `p-ary-32-ballot`,
//! `btree-16-grid`. The full list has every form with the parameters of the papers; the short list has the
//! best and representative ones, for sizes other than the main one.

use pleach_gpu::{
    Algorithm, BinaryForm, BtreeForm, ChildRegion, FastForm, Group, HarmoniaForm, PAryForm, QuerySort, Scan,
};

/// Every form that searches numbers.
pub(crate) fn all() -> Vec<Algorithm> {
    let mut all = vec![
        Algorithm::Auto,
        Algorithm::Spine,
        Algorithm::Sweep,
        Algorithm::Binary(BinaryForm::Plain),
        Algorithm::Binary(BinaryForm::Top),
    ];
    for threads in [4, 8, 16, 32, 64, 128, 256, 512, 1024] {
        all.push(Algorithm::PAry { threads, form: PAryForm::List });
        if threads <= 32 {
            all.push(Algorithm::PAry { threads, form: PAryForm::Ballot });
        }
    }
    for threads in [4, 16, 32, 64, 128] {
        all.push(Algorithm::PAryTree { threads, order: threads });
    }
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
        Algorithm::Binary(BinaryForm::Plain),
        Algorithm::Binary(BinaryForm::Top),
        Algorithm::PAry { threads: 32, form: PAryForm::List },
        Algorithm::PAry { threads: 8, form: PAryForm::Ballot },
        Algorithm::PAryTree { threads: 32, order: 32 },
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
    vec![
        Algorithm::Auto,
        Algorithm::Spine,
        Algorithm::Binary(BinaryForm::Plain),
        Algorithm::Binary(BinaryForm::Top),
        Algorithm::PAry { threads: 32, form: PAryForm::List },
        Algorithm::PAry { threads: 32, form: PAryForm::Ballot },
        Algorithm::PAryTree { threads: 32, order: 32 },
    ]
}

/// Engines that compete for ascending batches.
pub(crate) fn of_sorted_batches() -> Vec<Algorithm> {
    vec![Algorithm::Auto, Algorithm::Sweep, Algorithm::Spine, Algorithm::Binary(BinaryForm::Plain)]
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
    vec![
        Algorithm::Spine,
        Algorithm::Sweep,
        Algorithm::Binary(BinaryForm::Plain),
        Algorithm::Binary(BinaryForm::Top),
        Algorithm::PAry { threads: 32, form: PAryForm::Ballot },
    ]
}

/// Returns the name in reports.
pub(crate) fn label(algorithm: Algorithm) -> String {
    let name = algorithm.name();
    match algorithm {
        Algorithm::Binary(form) => match form {
            BinaryForm::Plain => name.to_owned(),
            BinaryForm::Top => format!("{name}-top"),
            BinaryForm::Bytes => format!("{name}-bytes"),
            BinaryForm::Swap => format!("{name}-swap"),
            BinaryForm::Cached => format!("{name}-cached"),
        },
        Algorithm::PAry { threads, form: PAryForm::List } => format!("{name}-{threads}"),
        Algorithm::PAry { threads, form: PAryForm::Ballot } => format!("{name}-{threads}-ballot"),
        Algorithm::PAryTree { threads, order } => format!("{name}-{threads}-{order}"),
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
        Algorithm::Harmonia(form) => harmonia_label(form),
        Algorithm::RegularTree { fanout, fill, threads } => format!("{name}-{fanout}-{fill}-{threads}"),
        _ => name.to_owned(),
    }
}

/// Fanout, fill, sorting, group, scan and child region.
fn harmonia_label(form: HarmoniaForm) -> String {
    let sort = match form.sort {
        QuerySort::None => "unsorted".to_owned(),
        QuerySort::Partial => "partial".to_owned(),
        QuerySort::Full => "full".to_owned(),
        QuerySort::Bits(bits) => format!("bits{bits}"),
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
    format!("harmonia-{}-{}-{sort}-{group}-{scan}-{children}", form.fanout, form.fill)
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
