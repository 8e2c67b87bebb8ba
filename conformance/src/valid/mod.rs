//! The valid files of the fixed kit.

mod bytes;
mod cells;
mod deep;
mod derived;
mod frame;
mod logical;
mod numbers;
mod sections;

pub(crate) use bytes::url;
pub(crate) use cells::{pairs, unsigned};
pub(crate) use frame::with_record;
pub(crate) use numbers::inexact;

use crate::plan::Plan;

/// Files that are made when they are wanted, and not kept: others of the kit show nearly the same.
const MORE: &[&str] = &[
    "u32-i64",
    "line-and-one",
    "equal",
    "largest",
    "short-float",
    "short-top",
    "short-one",
    "spine-16",
    "grid-32",
    "grid-only",
    "columns-16",
    "packed-pages",
    "fast-pages",
    "fast-16",
    "fast-power",
    "structures-empty",
    "bytes8-word",
    "bytes-one",
    "bytes-empty",
    "utf8-structures",
    "value-bytes",
    "value-codes-empty",
    "uuid-bytes16",
    "hex-12",
    "hash64-turned",
    "hex-34",
    "logical-later",
    "record-bytes",
    "section-31",
    "generation",
    "text-plain",
    "dna-canonical",
    "fast-4",
    "timestamp",
];

/// Reports whether a file is made when it is wanted only.
fn is_more(plan: &Plan) -> bool {
    MORE.contains(&&*plan.name) || plan.is_more
}

fn all() -> Vec<Plan> {
    let mut all = numbers::plans();
    all.extend(sections::plans());
    all.extend(bytes::plans());
    all.extend(logical::plans());
    all.extend(frame::plans());
    all.extend(deep::plans());
    all.extend(derived::plans());
    all
}

/// Returns the plan of this name, which there must be.
pub(crate) fn named(name: &str) -> Plan {
    all().into_iter().find(|plan| plan.name == name).unwrap_or_else(|| panic!("no file {name}"))
}

fn parted() -> (Vec<Plan>, Vec<Plan>) {
    all().into_iter().partition(|plan| !is_more(plan))
}

/// Returns the plans of the valid files of the kit.
#[must_use]
pub fn plans() -> Vec<Plan> {
    parted().0
}

/// Returns the plans of more valid files.
#[must_use]
pub fn more() -> Vec<Plan> {
    parted().1
}
