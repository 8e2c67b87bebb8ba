//! Relational operators on open files.

use crate::arrow::give;
use crate::index::pleach_index;
use crate::memory::{given, path, slice, text};
use crate::options::{Options, pleach_build_options};
use crate::status::{Result, guard, input, pleach_status};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use pleach_batch::relation::{Job, Operation};
use pleach_relation::{Aggregate, AsOf, Distance, How, Kept, Reduction, SetOperation, SetRule};
use std::ffi::c_char;

/// Returns an operator by its name and its argument.
fn operation(name: &str, argument: Option<String>) -> Result<Operation> {
    let given = argument.clone().unwrap_or_default();
    let of =
        |known: &[&str]| input(format!("argument of {name} is \"{given}\": use one of {}", known.join(", ")));
    Ok(match name {
        "select" => Operation::Select(given),
        "project" => Operation::Project(given),
        "reduce" => {
            let names: Vec<&str> = Reduction::ALL.iter().map(|one| one.name()).collect();
            let list = Aggregate::list(argument.as_deref().unwrap_or("sum"));
            Operation::Reduce(list.map_err(|_| of(&names))?)
        }
        "join" => join(&given).ok_or_else(|| {
            let names: Vec<&str> = How::ALL.iter().map(|one| one.name()).collect();
            let near = ["asof=backward, asof=forward or asof=nearest with tolerance=D", "within=D"];
            of(&[&names[..], &near].concat())
        })?,
        "product" => Operation::Product(match argument.as_deref() {
            None | Some("both") => Kept::Both,
            Some("left") => Kept::Left,
            Some("right") => Kept::Right,
            Some(_) => return Err(of(&["both", "left", "right"])),
        }),
        name => {
            let Some(set) = SetOperation::from_name(name) else {
                let known = "select, project, reduce, union, intersect, difference, join, product";
                return Err(input(format!("there is no operator \"{name}\": use one of {known}")));
            };
            let rule = argument.as_deref().unwrap_or("set");
            Operation::Set(set, SetRule::from_name(rule).ok_or_else(|| of(&["set", "multiset"]))?)
        }
    })
}

/// Takes the word `approximate` from the end of an argument. Expressions have no such word, and need none.
fn permitted(name: &str, argument: Option<String>) -> (Option<String>, bool) {
    let is_rule = !matches!(name, "select" | "project");
    let Some(rest) = argument.as_deref().filter(|_| is_rule).and_then(|text| {
        let rest = text.trim_end().strip_suffix("approximate")?;
        (rest.is_empty() || rest.ends_with(char::is_whitespace)).then(|| rest.trim_end().to_owned())
    }) else {
        return (argument, false);
    };
    (Some(rest).filter(|rest| !rest.is_empty()), true)
}

/// Reads the argument of a join, words in any order: which tuples the answer has, and the rule for partners.
fn join(argument: &str) -> Option<Operation> {
    let (mut how, mut asof, mut tolerance, mut within) = (None, None, None, None);
    for word in argument.split_whitespace() {
        let is_first = match word.split_once('=') {
            None => how.replace(How::from_name(word)?).is_none(),
            Some(("asof", name)) => asof.replace(AsOf::from_name(name)?).is_none(),
            Some(("tolerance", text)) => tolerance.replace(Distance::from(text)).is_none(),
            Some(("within", text)) => within.replace(Distance::from(text)).is_none(),
            Some(_) => false,
        };
        if !is_first {
            return None;
        }
    }
    let how = how.unwrap_or(How::Inner);
    match (asof, tolerance, within) {
        (Some(asof), tolerance, None) => Some(Operation::AsOf(how, asof, tolerance)),
        (None, None, Some(within)) => Some(Operation::Band(how, within)),
        (None, None, None) => Some(Operation::Join(how)),
        _ => None,
    }
}

/// Prepares an operator.
///
/// # Safety
/// `operator` is a text, `argument` is null or one, and `inputs` has `count` open files.
unsafe fn job(
    operator: *const c_char,
    argument: *const c_char,
    (inputs, count): (*const *const pleach_index, usize),
    threads: usize,
) -> Result<Job> {
    // SAFETY: the caller guarantees the texts and the files.
    unsafe {
        let name = text(operator, "operator")?.ok_or_else(|| input("operator is NULL: give a name"))?;
        let (argument, is_approximate) = permitted(&name, text(argument, "argument")?);
        let operation = operation(&name, argument)?;
        let mut indices = Vec::new();
        for &index in slice(inputs, count, "inputs")? {
            indices.push(given(index, "inputs")?.table.whole()?);
        }
        Ok(Job::new(operation, indices, threads)?.approximate(is_approximate))
    }
}

/// Runs a relational operator: `select` (a condition), `project` (columns), `reduce` (sum, min, max, count, first,
/// avg), `union`, `intersect`, `difference` (set, multiset), `join` (inner, left, right, full, semi, anti), `product`
/// (both, left, right). The answer is a stream of record batches in the order of keys, made on request.
///
/// A `join` has more words if keys need not be equal: `left asof=backward tolerance=5s` joins each left tuple with one
/// right tuple (backward, forward, nearest) at most so far away, and `within=5s` with all right tuples at most so far
/// away, for inner, left, semi and anti. The answer has the column `key_right` too.
///
/// Of records, `sum:amount` reduces a field, and several reductions make a record: `sum:amount,avg:price,count`.
///
/// With the word `approximate` at the end of its argument, `reduce`, a set operation or a `join` takes files of hashes
/// and prefixes, although equal keys may stand for different ones: `inner approximate`.
///
/// # Safety
/// `operator` is a text; `argument` is NULL or one; `inputs` has `inputs_count` open files; `out` is a place for a
/// stream, which the caller releases, and which keeps the files open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_relate(
    operator_name: *const c_char,
    argument: *const c_char,
    inputs: *const *const pleach_index,
    inputs_count: usize,
    out: *mut FFI_ArrowArrayStream,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the texts and the files.
        let job = unsafe { job(operator_name, argument, (inputs, inputs_count), 0) }?;
        // SAFETY: the caller guarantees the place.
        unsafe { give(Box::new(job.stream()?), out) }
    })
}

/// Runs a relational operator as `pleach_relate` does, and writes the answer to the file `file`: complete or not at
/// all.
///
/// # Safety
/// As `pleach_relate`; `file` is a text; `options` is NULL or a structure with its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_relate_to_file(
    operator_name: *const c_char,
    argument: *const c_char,
    inputs: *const *const pleach_index,
    inputs_count: usize,
    file: *const c_char,
    options: *const pleach_build_options,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the texts, the files and the options.
        let (file, options) = unsafe { (path(file, "file")?, Options::of(options)?) };
        // SAFETY: as above.
        let job = unsafe { job(operator_name, argument, (inputs, inputs_count), options.threads()) }?;
        let job = if options.is_approximate() { job.approximate(true) } else { job };
        job.build(&file, &options.build(Vec::new()), &options.progress())?;
        Ok(())
    })
}
