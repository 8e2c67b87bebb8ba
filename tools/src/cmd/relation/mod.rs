//! `pleach select`, `project`, `reduce`, `union`, `intersect`, `difference`, `join` and `product`.
//!
//! Each makes an [`Answer`] of its inputs, which [`out`] writes. Expressions are checked before anything is
//! read. Every block of an input that is read is verified, whatever `--verify` specifies for the rest.

mod out;

use crate::cli::relation::{
    AsOf, Combine, DifferenceArgs, How, JoinArgs, ManyArgs, Out, ProductArgs, ProjectArgs, ReduceArgs,
    Reduction, SelectArgs,
};
use crate::cli::{Global, Verify};
use crate::errors::{expression_failure, relation_failure};
use crate::failure::{Code, ExitStatus, Failure};
use crate::message::Message;
use crate::parse::Device;
use crate::search;
use out::{Job, temporary};
use pleach::Index;
use pleach_gpu::{Gpu, GpuError, GpuOptions};
use pleach_relation::expr::{Predicate, Projection};
use pleach_relation::{
    self as relation, Answer, Distance, Kept, OnGpu, Relation, SetOperation, SetRule, StreamOptions,
};
use std::path::{Path, PathBuf};

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
    let run = || run(options);
    if out.threads == 0 {
        pleach_builder::pool::ready();
        return run();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(out.threads).build();
    let pool = pool.map_err(|_| {
        let advice =
            "give fewer with --threads, or raise the limit of processes (ulimit -u, the container's)";
        let message = Message::new(format!("cannot start {} threads", out.threads)).advise(advice);
        Failure::new(Code::Limit, message)
    })?;
    pool.install(run)
}

fn open(path: &Path, global: &Global) -> Result<Index, Failure> {
    search::open(path, global, Verify::Header)
}

pub fn select(args: &SelectArgs, global: &Global) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        let index = open(&args.file, global)?;
        let input = Relation::from_index(&index);
        let mut schema = input.expr_schema().map_err(relation_failure)?;
        schema.is_raw = global.raw_values;
        let condition =
            Predicate::parse(&args.condition, &schema).map_err(|error| expression_failure(&error))?;
        let job = Job::new("select", &args.out, global, &[&args.file])?.limited(args.limit);
        job.explain(&condition.explain());
        let answer = relation::select_where(input, &condition, options).map_err(relation_failure)?;
        job.finish(answer)
    })
}

pub fn project(args: &ProjectArgs, global: &Global) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        let index = open(&args.file, global)?;
        let input = Relation::from_index(&index);
        let mut schema = input.expr_schema().map_err(relation_failure)?;
        schema.is_raw = global.raw_values;
        let columns =
            Projection::parse(&args.columns, &schema).map_err(|error| expression_failure(&error))?;
        let job = Job::new("project", &args.out, global, &[&args.file])?;
        job.explain(&columns.explain());
        let answer = relation::project(input, &columns, options).map_err(relation_failure)?;
        job.finish(answer)
    })
}

pub fn reduce(args: &ReduceArgs, global: &Global) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        let index = open(&args.file, global)?;
        let operation = match args.op {
            Reduction::Sum => relation::Reduction::Sum,
            Reduction::Min => relation::Reduction::Min,
            Reduction::Max => relation::Reduction::Max,
            Reduction::Count => relation::Reduction::Count,
            Reduction::First => relation::Reduction::First,
        };
        let job = Job::new("reduce", &args.out, global, &[&args.file])?;
        let input = Relation::from_index(&index);
        job.finish(relation::reduce(input, operation, options).map_err(relation_failure)?)
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
        let files: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
        let job = Job::new(name, &args.out, global, &files)?;
        let indices = files.iter().map(|file| open(file, global)).collect::<Result<Vec<_>, _>>()?;
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
        let (left, right) = (open(&args.left, global)?, open(&args.right, global)?);
        let job = Job::new("difference", &args.out, global, &[&args.left, &args.right])?;
        let (left, right) = (Relation::from_index(&left), Relation::from_index(&right));
        job.finish(set(SetOperation::Difference, args.multiset, left, right, options)?)
    })
}

pub fn join(args: &JoinArgs, global: &Global) -> Result<ExitStatus, Failure> {
    with_threads(&args.out, |options| {
        let (left, right) = (open(&args.left, global)?, open(&args.right, global)?);
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
        let job = Job::new("join", &args.out, global, &[&args.left, &args.right])?;
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
        let (left, right) = (open(&args.left, global)?, open(&args.right, global)?);
        let kept = match args.combine {
            Combine::Pair => Kept::Both,
            Combine::Left => Kept::Left,
            Combine::Right => Kept::Right,
        };
        let job = Job::new("product", &args.out, global, &[&args.left, &args.right])?;
        let (left, right) = (Relation::from_index(&left), Relation::from_index(&right));
        let answer = relation::product(left, right, options).map_err(relation_failure)?;
        job.finish(answer.keep(kept))
    })
}
