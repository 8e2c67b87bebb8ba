//! `pleach select`, `project`, `reduce`, `union`, `intersect`, `difference`, `join` and `product`.
//!
//! Each makes an [`Answer`] of its inputs, which [`out`] writes. Expressions are checked before anything is
//! read. Every block of an input that is read is verified, whatever `--verify` specifies for the rest.

mod out;

use crate::cli::relation::{
    AsOf, Combine, DifferenceArgs, How, JoinArgs, ManyArgs, Out, ProductArgs, ProjectArgs, ReduceArgs,
    SelectArgs,
};
use crate::cli::tables::{Sides, Tables};
use crate::cli::{Global, Verify};
use crate::errors::{expression_failure, relation_failure};
use crate::failure::{Code, ExitStatus, Failure};
use crate::inputs::{Inputs, Values};
use crate::message::Message;
use crate::parse::Device;
use crate::threads::in_pool;
use out::{Job, temporary};
use pleach::Index;
use pleach_gpu::{Gpu, GpuError, GpuOptions};
use pleach_relation::expr::{Predicate, Projection};
use pleach_relation::{
    self as relation, Aggregate, Answer, Distance, Kept, OnGpu, Relation, SetOperation, SetRule,
    StreamOptions,
};
use std::path::Path;

/// Returns the requested GPU. The CPU reads, verifies and writes files, which takes longer than any operator,
/// so `auto` is the CPU.
fn gpu(out: &Out) -> Result<Option<OnGpu>, Failure> {
    let Device::Cuda(number) = out.device else { return Ok(None) };
    let options = GpuOptions { memory_bytes: out.device_memory, ..GpuOptions::default() };
    let opened = Gpu::with_options(number, options).and_then(OnGpu::new);
    opened.map(Some).map_err(|error: GpuError| {
        let message = Message::new(format!("no device for relational operators ({error})"));
        let message = message.at(format!("cuda:{number}")).advise("use --device cpu");
        Failure::new(Code::Device, message)
    })
}

/// Runs a command with the device and the requested number of threads.
fn with_threads<T: Send>(
    out: &Out,
    run: impl FnOnce(StreamOptions<'_>) -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let gpu = gpu(out)?;
    let options = StreamOptions {
        device: gpu.as_ref().map(|gpu| gpu as &dyn relation::Device),
        approximate: out.approximate,
        ..StreamOptions::default()
    };
    in_pool(out.threads, || run(options))
}

/// A running command, and its inputs.
fn opened<'a>(
    name: &'static str,
    out: &'a Out,
    (tables, sides): (&'a Tables, Option<&'a Sides>),
    paths: &[(&'a Path, Values)],
    global: &'a Global,
) -> Result<(Job<'a>, Vec<Index>), Failure> {
    let inputs = Inputs::new(paths, tables, sides, global)?;
    let job = Job::new(name, out, global, inputs.files()?)?;
    let indices = inputs.open(Verify::Header, &job.folder(), &job.build_options())?;
    Ok((job.without(inputs.left_out()), indices))
}

/// Does the same for one input.
fn opened_one<'a>(
    name: &'static str,
    out: &'a Out,
    tables: &'a Tables,
    path: &'a Path,
    global: &'a Global,
) -> Result<(Job<'a>, Index), Failure> {
    let (job, indices) = opened(name, out, (tables, None), &[(path, Values::Own)], global)?;
    Ok((job, one(indices)?.0))
}

/// Does the same for two inputs.
fn opened_two<'a>(
    name: &'static str,
    out: &'a Out,
    choice: (&'a Tables, &'a Sides),
    paths: [(&'a Path, Values); 2],
    global: &'a Global,
) -> Result<(Job<'a>, [Index; 2]), Failure> {
    let (job, indices) = opened(name, out, (choice.0, Some(choice.1)), &paths, global)?;
    let (left, rest) = one(indices)?;
    Ok((job, [left, one(rest)?.0]))
}

/// Takes the first of some inputs.
fn one(mut indices: Vec<Index>) -> Result<(Index, Vec<Index>), Failure> {
    if indices.is_empty() {
        return Err(Failure::new(Code::Failed, Message::new("an input is missing")));
    }
    let first = indices.remove(0);
    Ok((first, indices))
}

pub fn select(args: &SelectArgs, global: &Global) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        let (job, index) = opened_one("select", &args.out, &args.tables, &args.file, global)?;
        let input = Relation::from_index(&index);
        let mut schema = input.expr_schema().map_err(relation_failure)?;
        schema.is_raw = global.raw_values;
        let condition =
            Predicate::parse(&args.condition, &schema).map_err(|error| expression_failure(&error))?;
        let job = job.limited(args.limit);
        job.explain(&condition.explain());
        let answer = relation::select_where(input, &condition, options).map_err(relation_failure)?;
        job.finish(answer)
    })
}

pub fn project(args: &ProjectArgs, global: &Global) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        let (job, index) = opened_one("project", &args.out, &args.tables, &args.file, global)?;
        let input = Relation::from_index(&index);
        let mut schema = input.expr_schema().map_err(relation_failure)?;
        schema.is_raw = global.raw_values;
        let columns =
            Projection::parse(&args.columns, &schema).map_err(|error| expression_failure(&error))?;
        job.explain(&columns.explain());
        let answer = relation::project(input, &columns, options).map_err(relation_failure)?;
        job.finish(answer)
    })
}

pub fn reduce(args: &ReduceArgs, global: &Global) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        let (job, index) = opened_one("reduce", &args.out, &args.tables, &args.file, global)?;
        let mut aggregates = args.op.clone();
        let is_open =
            |one: &&mut Aggregate| one.field.is_none() && one.operation != relation::Reduction::Count;
        aggregates.iter_mut().filter(is_open).for_each(|one| one.field.clone_from(&args.field));
        let input = Relation::from_index(&index);
        job.finish(relation::aggregate(input, &aggregates, options).map_err(relation_failure)?)
    })
}

pub fn union(args: &ManyArgs, global: &Global) -> Result<ExitStatus, Failure> {
    many("union", SetOperation::Union, args, global)
}

pub fn intersect(args: &ManyArgs, global: &Global) -> Result<ExitStatus, Failure> {
    many("intersect", SetOperation::Intersection, args, global)
}

fn rule(multiset: bool) -> SetRule {
    if multiset { SetRule::Multiset } else { SetRule::Set }
}

/// Combines two inputs at a time, from the left; intermediate results are unnamed files.
fn many(
    name: &'static str,
    operation: SetOperation,
    args: &ManyArgs,
    global: &Global,
) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        // Values are those of the first input that has a key: an intersection needs no others.
        let rest = if operation == SetOperation::Union { Values::Alike } else { Values::Unneeded };
        let values = [if rest == Values::Alike { rest } else { Values::Own }, rest];
        let each = args.files.iter().enumerate();
        let paths: Vec<_> = each.map(|(at, path)| (path.as_path(), values[at.min(1)])).collect();
        let (job, indices) = opened(name, &args.out, (&args.tables, None), &paths, global)?;
        let inputs: Vec<Relation<'_>> = indices.iter().map(Relation::from_index).collect();
        // Inputs that do not fit together are refused before anything is written.
        for right in inputs.iter().skip(1) {
            set(operation, args.multiset, inputs[0], *right, options)?;
        }
        let (Some((&first, rest)), Some(&last)) = (inputs.split_first(), inputs.last()) else {
            return Err(Failure::usage(Message::new("only one file").advise("name two or more")));
        };
        let mut between: Option<Index> = None;
        for &right in &rest[..rest.len() - 1] {
            let left = between.as_ref().map_or(first, Relation::from_index);
            let made = temporary(set(operation, args.multiset, left, right, options)?, &job)?;
            between = Some(made);
        }
        let left = between.as_ref().map_or(first, Relation::from_index);
        job.finish(set(operation, args.multiset, left, last, options)?)
    })
}

fn set<'a>(
    operation: SetOperation,
    multiset: bool,
    left: Relation<'a>,
    right: Relation<'a>,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, Failure> {
    relation::set(operation, rule(multiset), left, right, options).map_err(relation_failure)
}

pub fn difference(args: &DifferenceArgs, global: &Global) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        let paths = [(&*args.left, Values::Own), (&*args.right, Values::Unneeded)];
        let choice = (&args.tables, &args.sides);
        let (job, [left, right]) = opened_two("difference", &args.out, choice, paths, global)?;
        let (left, right) = (Relation::from_index(&left), Relation::from_index(&right));
        job.finish(set(SetOperation::Difference, args.multiset, left, right, options)?)
    })
}

pub fn join(args: &JoinArgs, global: &Global) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        let of_right = if matches!(args.how, How::Semi | How::Anti) { Values::Unneeded } else { Values::Own };
        let paths = [(&*args.left, Values::Own), (&*args.right, of_right)];
        let choice = (&args.tables, &args.sides);
        let (job, [left, right]) = opened_two("join", &args.out, choice, paths, global)?;
        let how = match args.how {
            How::Inner => relation::How::Inner,
            How::Left => relation::How::Left,
            How::Right => relation::How::Right,
            How::Full => relation::How::Full,
            How::Semi => relation::How::Semi,
            How::Anti => relation::How::Anti,
        };
        let asof = args.asof.map(|which| match which {
            AsOf::Backward => relation::AsOf::Backward,
            AsOf::Forward => relation::AsOf::Forward,
            AsOf::Nearest => relation::AsOf::Nearest,
        });
        let distance = |text: &Option<String>| text.as_deref().map(Distance::from);
        let (tolerance, within) = (distance(&args.tolerance), distance(&args.within));
        let (left, right) = (Relation::from_index(&left), Relation::from_index(&right));
        let answer = match (asof, &within) {
            (Some(asof), _) => relation::asof(asof, tolerance.as_ref(), how, left, right, options),
            (None, Some(within)) => relation::band(within, how, left, right, options),
            (None, None) => relation::join(how, left, right, options),
        };
        job.finish(answer.map_err(relation_failure)?)
    })
}

pub fn product(args: &ProductArgs, global: &Global) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        let paths = [(&*args.left, Values::Own), (&*args.right, Values::Own)];
        let choice = (&args.tables, &args.sides);
        let (job, [left, right]) = opened_two("product", &args.out, choice, paths, global)?;
        let kept = match args.combine {
            Combine::Pair => Kept::Both,
            Combine::Left => Kept::Left,
            Combine::Right => Kept::Right,
        };
        let (left, right) = (Relation::from_index(&left), Relation::from_index(&right));
        let answer = relation::product(left, right, options).map_err(relation_failure)?;
        job.finish(answer.keep(kept))
    })
}
