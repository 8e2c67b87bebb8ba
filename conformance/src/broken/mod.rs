//! The broken files of the fixed kit: each breaks one rule, under right sums unless a sum is what is wrong.

mod bases;
mod contents;
mod frame;
mod sections;

use crate::case::{ANY, Case, Sheet};
use crate::plan::{Plan, level};
use crate::requests;
use pleach_format::Rule;
use pleach_fsck::Code;
use pleach_kit::mutate::{header, reseal, reseal_head};
use std::collections::BTreeMap;

pub(crate) use bases::Base;

/// Requests that a damaged file is asked, about.
const REQUESTS: usize = 24;

/// What is wrong with a file.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// It is refused.
    Rule(Rule),
    /// It opens, and a check finds this.
    Code(Code),
}

/// A broken file to be made.
pub(crate) struct Fault {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    base: Base,
    make: Box<dyn Fn(&mut Vec<u8>)>,
}

impl Fault {
    fn case(&self, plan: &Plan, whole: &[u8]) -> Case {
        let mut bytes = whole.to_vec();
        (self.make)(&mut bytes);
        let types = level(&header(whole));
        let (level, rule, code) = match self.kind {
            Kind::Rule(rule) => (types.max(level_of_rule(rule)), Some(rule.name().to_owned()), code_of(rule)),
            Kind::Code(code) => (types.max(level_of_code(code)), None, Some(code)),
        };
        let mut exchange = Vec::new();
        if rule.is_none() {
            let requests = requests::of(&plan.model_of(whole), REQUESTS);
            let free = requests.into_iter().filter(|request| request != "check");
            exchange.extend(free.map(|request| (request, ANY.to_owned())));
            exchange.extend(code.map(|code| ("check".to_owned(), format!("damaged {code}"))));
        }
        let code = code.map(|code| code.name().to_owned());
        let sheet = Sheet { level, about: self.about.to_owned(), rule, code, exchange };
        Case { name: self.name.to_owned(), sheet, bytes }
    }
}

/// Makes a file that is refused.
fn refused(
    rule: Rule,
    name: &'static str,
    base: Base,
    about: &'static str,
    make: impl Fn(&mut Vec<u8>) + 'static,
) -> Fault {
    Fault { name, about, kind: Kind::Rule(rule), base, make: Box::new(make) }
}

/// Makes a file whose damage a check finds.
fn damaged(
    code: Code,
    name: &'static str,
    base: Base,
    about: &'static str,
    make: impl Fn(&mut Vec<u8>) + 'static,
) -> Fault {
    Fault { name, about, kind: Kind::Code(code), base, make: Box::new(make) }
}

/// Returns the lowest level at which a reader must know a rule.
fn level_of_rule(rule: Rule) -> u8 {
    match rule.number() {
        1..=34 => 1,
        35..=37 | 39 | 45..=49 => 2,
        _ => 3,
    }
}

/// Returns the lowest level at which a check must find this.
fn level_of_code(code: Code) -> u8 {
    if matches!(code, Code::Sums | Code::Block) { 1 } else { 3 }
}

/// Returns what a check finds in a file that breaks a rule of opening; `None` of a file that is not ours.
fn code_of(rule: Rule) -> Option<Code> {
    match rule {
        Rule::Magic => None,
        Rule::Truncated | Rule::Extended => Some(Code::Length),
        Rule::SuperblockSum => Some(Code::Superblock),
        Rule::TableSum => Some(Code::Table),
        Rule::Mask | Rule::Tail | Rule::KeysMissing => Some(Code::Mask),
        Rule::Approximate => Some(Code::Meta),
        _ => Some(Code::Header),
    }
}

/// Makes all sums right. The places in the section table must be sound.
fn sealed(change: impl Fn(&mut Vec<u8>) + 'static) -> impl Fn(&mut Vec<u8>) + 'static {
    move |bytes| {
        change(bytes);
        reseal(bytes);
    }
}

/// Makes the sums of superblock and section table right, and leaves all else.
fn head(change: impl Fn(&mut Vec<u8>) + 'static) -> impl Fn(&mut Vec<u8>) + 'static {
    move |bytes| {
        change(bytes);
        reseal_head(bytes);
    }
}

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
        Kind::Rule(Rule::Mask) => 4,
        Kind::Rule(Rule::Truncated | Rule::ShortWords | Rule::Spine) => 3,
        Kind::Rule(
            Rule::Magic
            | Rule::SuperblockSum
            | Rule::Pages
            | Rule::KeyType
            | Rule::ValueType
            | Rule::SectionOrder
            | Rule::SectionEnd
            | Rule::SumsMissing
            | Rule::SumsPlace
            | Rule::WordBytes
            | Rule::LineLength
            | Rule::LineParameters
            | Rule::Column
            | Rule::Text
            | Rule::Approximate,
        ) => 2,
        Kind::Code(Code::Block) => 3,
        Kind::Code(Code::Header | Code::Padding | Code::Meta | Code::Column) => 2,
        Kind::Rule(_) | Kind::Code(_) => 1,
    }
}

/// Returns the faults that the kit keeps, and the others.
fn parted() -> (Vec<Fault>, Vec<Fault>) {
    let mut all = frame::faults();
    all.extend(sections::faults());
    all.extend(contents::faults());
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

/// Returns more broken files, which are made when they are wanted; some have more than a megabyte.
#[must_use]
pub fn more() -> Vec<Case> {
    let mut all = parted().1;
    all.extend(frame::large());
    made(&all)
}
