//! A broken file to be made, and how its sums are made right.

use super::bases::Base;
use crate::case::{ANY, Case, Sheet};
use crate::plan::{Plan, level};
use crate::requests;
use pleach_format::Rule;
use pleach_format::section::Tag;
use pleach_fsck::Code;
use pleach_kit::mutate::{content, header, reseal, reseal_head};

/// Requests that a damaged file is asked, about.
const REQUESTS: usize = 24;

/// What is wrong with a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// It is refused.
    Rule(Rule),
    /// It opens, and a check finds this.
    Code(Code),
}

/// What is done to the bytes of a whole file.
pub(super) type Make = Box<dyn Fn(&mut Vec<u8>)>;

/// A broken file to be made.
pub(super) struct Fault {
    name: String,
    about: String,
    requests: usize,
    pub(super) kind: Kind,
    pub(super) base: Base,
    make: Make,
}

impl Fault {
    /// Asks fewer questions about the file.
    pub(super) fn ask(mut self, requests: usize) -> Self {
        self.requests = requests;
        self
    }

    pub(super) fn case(&self, plan: &Plan, whole: &[u8]) -> Case {
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
            exchange.extend(free.take(self.requests).map(|request| (request, ANY.to_owned())));
            exchange.extend(code.map(|code| ("check".to_owned(), format!("damaged {code}"))));
        }
        let code = code.map(|code| code.name().to_owned());
        let sheet = Sheet { level, about: self.about.clone(), rule, code, exchange };
        Case { name: self.name.clone(), sheet, bytes }
    }
}

/// Makes a file that is refused.
pub(super) fn refused(
    rule: Rule,
    name: impl Into<String>,
    base: Base,
    about: impl Into<String>,
    make: impl Fn(&mut Vec<u8>) + 'static,
) -> Fault {
    let (name, about) = (name.into(), about.into());
    Fault { name, about, requests: usize::MAX, kind: Kind::Rule(rule), base, make: Box::new(make) }
}

/// Makes a file whose damage a check finds.
pub(super) fn damaged(
    code: Code,
    name: impl Into<String>,
    base: Base,
    about: impl Into<String>,
    make: impl Fn(&mut Vec<u8>) + 'static,
) -> Fault {
    let (name, about) = (name.into(), about.into());
    Fault { name, about, requests: usize::MAX, kind: Kind::Code(code), base, make: Box::new(make) }
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
pub(super) fn sealed(change: impl Fn(&mut Vec<u8>) + 'static) -> impl Fn(&mut Vec<u8>) + 'static {
    move |bytes| {
        change(bytes);
        reseal(bytes);
    }
}

/// Makes the sums of superblock and section table right, and leaves all else.
pub(super) fn head(change: impl Fn(&mut Vec<u8>) + 'static) -> impl Fn(&mut Vec<u8>) + 'static {
    move |bytes| {
        change(bytes);
        reseal_head(bytes);
    }
}

/// Adds to a byte of a section, counted from its start.
pub(super) fn byte(tag: Tag, at: usize, more: u8) -> impl Fn(&mut Vec<u8>) + 'static {
    sealed(move |b| {
        let at = content(b, tag).start + at;
        b[at] = b[at].wrapping_add(more);
    })
}

/// Adds to a byte of a section, counted from its end.
pub(super) fn byte_back(tag: Tag, back: usize, more: u8) -> impl Fn(&mut Vec<u8>) + 'static {
    sealed(move |b| {
        let at = content(b, tag).end - back;
        b[at] = b[at].wrapping_add(more);
    })
}
