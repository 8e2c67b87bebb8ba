//! The broken files of the fixed kit: each breaks one rule, under right sums unless a sum is what is wrong.

mod bases;
mod contents;
mod deep;
mod fault;
mod frame;
mod halves;
mod sections;
mod structures;

use crate::case::Case;
use crate::plan::Plan;
use bases::Base;
use fault::{Fault, Kind};
use pleach_format::Rule;
use pleach_fsck::Code;
use std::collections::BTreeMap;

fn made(faults: &[Fault]) -> Vec<Case> {
    let mut bases: BTreeMap<Base, (Plan, Vec<u8>)> = BTreeMap::new();
    let case = |fault: &Fault| {
        let (plan, whole) = bases.entry(fault.base).or_insert_with(|| {
            let plan = fault.base.plan();
            let bytes = plan.build();
            (plan, bytes)
        });
        fault.case(plan, whole)
    };
    faults.iter().map(case).collect()
}

/// Returns how many files of a kind the kit keeps: those that come first.
fn kept(kind: Kind) -> usize {
    match kind {
        // It needs more than 128 KiB.
        Kind::Rule(Rule::SectionLarge) => 0,
        Kind::Rule(Rule::Truncated | Rule::Mask) => 3,
        Kind::Rule(
            Rule::Magic
            | Rule::SuperblockSum
            | Rule::KeyType
            | Rule::SectionOrder
            | Rule::SumsPlace
            | Rule::ShortWords
            | Rule::LineLength
            | Rule::Spine
            | Rule::Column
            | Rule::Approximate,
        )
        | Kind::Code(Code::Block | Code::Column) => 2,
        Kind::Rule(_) | Kind::Code(_) => 1,
    }
}

/// Returns the faults that the kit keeps, and the others.
fn parted() -> (Vec<Fault>, Vec<Fault>) {
    let mut all = frame::faults();
    all.extend(sections::faults());
    all.extend(contents::faults());
    all.extend(structures::faults());
    all.extend(halves::faults());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    all.into_iter().partition(|fault| {
        let count = counts.entry(format!("{:?}", fault.kind)).or_default();
        *count += 1;
        *count <= kept(fault.kind)
    })
}

/// Returns the broken files of the kit: a few of each rule and each code.
#[must_use]
pub fn cases() -> Vec<Case> {
    made(&parted().0)
}

/// Returns more broken files, which are made when they are wanted; some are large.
#[must_use]
pub fn more() -> Vec<Case> {
    let mut all = parted().1;
    all.extend(frame::large());
    all.extend(deep::faults());
    made(&all)
}
