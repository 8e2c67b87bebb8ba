//! Measures joins with a table of Pleach: by look-ups, by hashes over the same table and over Parquet, and by merging.
//!
//! ```text
//! cargo run --release --example joins -- FOLDER [sf=0.1] [rows=1000000] [keys=46000] [rounds=5] [threads=2]
//! ```
//!
//! FOLDER gets the data, which later runs use again. The ways alternate in one process; a process of its own for
//! each of them has its peak memory. The output is tables in Markdown.

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext, col};
use pleach_builder::{BuildOptions, Silent, Unique};
use pleach_datafusion::lookup::{Choose, LookupJoinRule};
use pleach_datafusion::{AlignRule, PleachTable};
use pleach_input::InputOptions;
use pleach_set::{Committer, Folder, Partition, Set, Store, Writer};
use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tpchgen::generators::{LineItemGenerator, OrderGenerator};
use tpchgen_arrow::{LineItemArrow, OrderArrow};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Tuples of a file of a set.
const FILE_TUPLES: u64 = 10_000_000;
/// Memory that a build may use.
const BUILD_BYTES: u64 = 2 << 30;

/// What is run.
#[derive(Clone, Debug)]
struct Options {
    folder: PathBuf,
    scale: f64,
    rows: u64,
    keys: u64,
    rounds: usize,
    threads: usize,
    /// Names of the cases to run; empty for all.
    case: String,
    /// Number of the way that this process runs to report its peak memory.
    child: Option<usize>,
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut arguments = arguments.skip(1);
        let folder = arguments.next().ok_or("missing folder: give one for the data")?;
        let mut options = Self {
            folder: folder.into(),
            scale: 0.1,
            rows: 1_000_000,
            keys: 46_000,
            rounds: 5,
            threads: 2,
            case: String::new(),
            child: None,
        };
        for argument in arguments {
            let (name, value) = argument.split_once('=').ok_or("invalid argument: use name=value")?;
            match name {
                "sf" => options.scale = value.parse()?,
                "rows" => options.rows = value.parse()?,
                "keys" => options.keys = value.parse()?,
                "rounds" => options.rounds = value.parse()?,
                "threads" => options.threads = value.parse()?,
                "case" => options.case = value.to_owned(),
                "child" => options.child = Some(value.parse()?),
                _ => return Err(format!("unknown option '{name}': see the head of the example").into()),
            }
        }
        Ok(options)
    }

    fn arguments(&self, case: &str, child: usize) -> Vec<String> {
        vec![
            self.folder.display().to_string(),
            format!("sf={}", self.scale),
            format!("rows={}", self.rows),
            format!("keys={}", self.keys),
            format!("threads={}", self.threads),
            format!("case={case}"),
            format!("child={child}"),
        ]
    }
}

/// A table in both formats.
struct Table {
    name: &'static str,
    key: &'static str,
    parquet: PathBuf,
    /// `None` if it is read from Parquet by all ways.
    set: Option<PathBuf>,
}

/// A join to measure.
struct Case {
    name: &'static str,
    title: String,
    query: &'static str,
    tables: Vec<Table>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Parquet { pushes_filters: bool },
    Pleach(Choose),
}

/// A way to run a join.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    over: Over,
    is_hash: bool,
    /// Both sides of a merge join are divided at the same keys.
    is_aligned: bool,
}

const WAYS: &[Way] = &[
    Way {
        name: "hash join over Parquet",
        over: Over::Parquet { pushes_filters: false },
        is_hash: true,
        is_aligned: true,
    },
    Way {
        name: "hash join over Parquet, filters pushed down",
        over: Over::Parquet { pushes_filters: true },
        is_hash: true,
        is_aligned: true,
    },
    Way { name: "hash join over Pleach", over: Over::Pleach(Choose::Never), is_hash: true, is_aligned: true },
    Way {
        name: "merge join over Pleach, sorted again",
        over: Over::Pleach(Choose::Never),
        is_hash: false,
        is_aligned: false,
    },
    Way {
        name: "merge join over Pleach, borders shared",
        over: Over::Pleach(Choose::Never),
        is_hash: false,
        is_aligned: true,
    },
    Way { name: "look-up join", over: Over::Pleach(Choose::Always), is_hash: true, is_aligned: true },
    Way { name: "chosen by itself", over: Over::Pleach(Choose::Fastest), is_hash: true, is_aligned: true },
];

fn main() -> Outcome<()> {
    let options = Options::parse(std::env::args())?;
    fs::create_dir_all(&options.folder)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(options.threads).enable_all().build()?;
    let cases = [tpch as fn(&Options) -> Outcome<Case>, few_keys];
    for case in cases {
        let case = case(&options)?;
        if !options.case.is_empty() && options.case != case.name {
            continue;
        }
        match options.child {
            Some(way) => runtime.block_on(report_peak(&options, &case, WAYS[way]))?,
            None => runtime.block_on(measure(&options, &case))?,
        }
    }
    Ok(())
}

/// TPC-H: each line of an order with its order.
fn tpch(options: &Options) -> Outcome<Case> {
    let scale = options.scale;
    let folder = options.folder.join(format!("tpch-{scale}"));
    fs::create_dir_all(&folder)?;
    let orders = folder.join("orders.parquet");
    write_parquet(&orders, &["o_orderkey", "o_custkey", "o_totalprice", "o_orderdate"], || {
        Box::new(OrderArrow::new(OrderGenerator::new(scale, 1, 1)).with_batch_size(65_536))
    })?;
    let lines = folder.join("lineitem.parquet");
    write_parquet(&lines, &["l_orderkey", "l_quantity", "l_extendedprice", "l_discount"], || {
        Box::new(LineItemArrow::new(LineItemGenerator::new(scale, 1, 1)).with_batch_size(65_536))
    })?;
    let (orders_set, lines_set) = (folder.join("orders.set"), folder.join("lineitem.set"));
    write_set(&orders_set, &orders, true)?;
    write_set(&lines_set, &lines, false)?;
    Ok(Case {
        name: "tpch",
        title: format!("TPC-H, scale factor {scale}: `lineitem` join `orders`"),
        query: "SELECT count(*), sum(l_extendedprice), sum(l_quantity), sum(o_totalprice), sum(o_custkey) \
                FROM lineitem JOIN orders ON l_orderkey = o_orderkey",
        tables: vec![
            Table { name: "lineitem", key: "l_orderkey", parquet: lines, set: Some(lines_set) },
            Table { name: "orders", key: "o_orderkey", parquet: orders, set: Some(orders_set) },
        ],
    })
}

/// Mixes the bits of a number.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// Key of a row of the large table: ascending, with gaps.
fn key_of(row: u64) -> u64 {
    row * 37 + mixed(row) % 37
}

/// A few keys, half of them in a large table.
fn few_keys(options: &Options) -> Outcome<Case> {
    let (rows, keys) = (options.rows, options.keys);
    let folder = options.folder.join(format!("keys-{rows}"));
    fs::create_dir_all(&folder)?;
    let large = folder.join("large.parquet");
    write_parquet(&large, &["k", "v", "w"], || {
        Box::new(batches(rows, &["k", "v", "w"], |row| {
            vec![key_of(row), mixed(row) % 1_000_000, mixed(row + 1)]
        }))
    })?;
    let set = folder.join("large.set");
    write_set(&set, &large, true)?;
    let few = folder.join(format!("few-{keys}.parquet"));
    write_parquet(&few, &["k", "m"], || {
        Box::new(batches(keys, &["k", "m"], move |row| {
            let chosen = key_of(mixed(row) % rows.max(1));
            vec![if row % 2 == 0 { chosen } else { chosen + 1 }, row]
        }))
    })?;
    Ok(Case {
        name: "keys",
        title: format!("{keys} keys join {rows} rows"),
        query: "SELECT count(*), sum(v), sum(m), max(w) FROM few JOIN large ON few.k = large.k",
        tables: vec![
            Table { name: "few", key: "", parquet: few, set: None },
            Table { name: "large", key: "k", parquet: large, set: Some(set) },
        ],
    })
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

fn batches(
    rows: u64,
    names: &'static [&'static str],
    row: impl Fn(u64) -> Vec<u64> + Send + 'static,
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send {
    let each = 65_536;
    (0..rows.div_ceil(each)).map(move |number| {
        let all: Vec<Vec<u64>> = (number * each..rows.min(number * each + each)).map(&row).collect();
        let column =
            |at: usize| Arc::new(UInt64Array::from_iter_values(all.iter().map(|row| row[at]))) as ArrayRef;
        let fields: Vec<Field> =
            names.iter().map(|name| Field::new(*name, DataType::UInt64, false)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), (0..names.len()).map(column).collect())
    })
}

/// Writes columns with the default properties: row groups with statistics, and the page index. A file that is there
/// remains.
fn write_parquet(path: &Path, names: &[&str], batches: impl FnOnce() -> Batches) -> Outcome<()> {
    if path.exists() {
        return Ok(());
    }
    let unfinished = path.with_extension("unfinished");
    let mut writer: Option<ArrowWriter<File>> = None;
    for batch in batches() {
        let batch = batch?;
        let columns =
            names.iter().map(|name| batch.schema().index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let batch = batch.project(&columns)?;
        if writer.is_none() {
            writer = Some(ArrowWriter::try_new(File::create(&unfinished)?, batch.schema(), None)?);
        }
        if let Some(writer) = &mut writer {
            writer.write(&batch)?;
        }
    }
    writer.ok_or("no rows to write: give more")?.close()?;
    fs::rename(unfinished, path)?;
    Ok(())
}

/// Builds a set of the rows of a Parquet file, by its first column.
fn write_set(path: &Path, parquet: &Path, is_unique: bool) -> Outcome<()> {
    if Set::is_set(path) {
        return Ok(());
    }
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(parquet)?)?.with_batch_size(65_536).build()?;
    let schema: SchemaRef = datafusion::arrow::record_batch::RecordBatchReader::schema(&reader);
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let input = InputOptions {
        key: Some(names[0].to_owned()),
        value: Some(names[1..].join(",")),
        ..InputOptions::default()
    };
    let mut source = pleach_input::open_batches(&parquet.display().to_string(), &schema, reader, &input)?;
    let options = BuildOptions {
        unique: is_unique.then_some(Unique::Error),
        memory_bytes: BUILD_BYTES,
        ..BuildOptions::default()
    };
    let store: Arc<dyn Store> = Arc::new(Folder::create(path)?);
    let writer = Writer::new(Arc::clone(&store));
    let (written, _) = writer.write(&mut *source, Partition::Tuples(FILE_TUPLES), &options, &Silent)?;
    let mut committer = Committer::begin(store)?;
    committer.add(&written)?;
    committer.publish()?;
    Ok(())
}

/// Makes a session in which a way's tables are registered.
async fn session(options: &Options, case: &Case, way: Way) -> Outcome<SessionContext> {
    let mut config = SessionConfig::new().with_target_partitions(options.threads);
    config.options_mut().optimizer.prefer_hash_join = way.is_hash;
    if let Over::Parquet { pushes_filters } = way.over {
        config.options_mut().execution.parquet.pushdown_filters = pushes_filters;
        config.options_mut().execution.parquet.reorder_filters = pushes_filters;
    }
    let rules = PhysicalOptimizer::new().rules;
    let rules = match way.over {
        Over::Parquet { .. } => rules,
        Over::Pleach(choose) => LookupJoinRule::new().choose(choose).added_to(rules),
    };
    let rules = if way.is_aligned { AlignRule::added_to(rules) } else { rules };
    let state = SessionStateBuilder::new().with_config(config).with_default_features();
    let session = SessionContext::new_with_state(state.with_physical_optimizer_rules(rules).build());
    for table in &case.tables {
        match (&table.set, way.over) {
            (Some(set), Over::Pleach(_)) => {
                session.register_table(table.name, Arc::new(PleachTable::open(set)?))?;
            }
            (None, _) | (Some(_), Over::Parquet { .. }) => {
                let mut read = ParquetReadOptions::default();
                if !table.key.is_empty() {
                    read = read.file_sort_order(vec![vec![col(table.key).sort(true, false)]]);
                }
                session.register_parquet(table.name, table.parquet.display().to_string(), read).await?;
            }
        }
    }
    Ok(session)
}

/// Plans and runs the query of a case. Returns its answer, its plan and the time.
async fn run(session: &SessionContext, query: &str) -> Outcome<(String, String, Duration)> {
    let start = Instant::now();
    let plan = session.sql(query).await?.create_physical_plan().await?;
    let rows = collect(Arc::clone(&plan), session.task_ctx()).await?;
    let time = start.elapsed();
    let text = displayable(plan.as_ref()).indent(false).to_string();
    Ok((pretty_format_batches(&rows)?.to_string(), text, time))
}

/// What a way took.
struct Taken {
    way: Way,
    times: Vec<Duration>,
    peak_mib: u64,
    anonymous_mib: u64,
    plan: String,
}

async fn measure(options: &Options, case: &Case) -> Outcome<()> {
    let mut taken = Vec::new();
    let mut answer: Option<String> = None;
    for (number, way) in WAYS.iter().enumerate() {
        let (peak_mib, anonymous_mib) = peak(options, case, number)?;
        taken.push(Taken { way: *way, times: Vec::new(), peak_mib, anonymous_mib, plan: String::new() });
    }
    // The first round warms caches.
    for round in 0..=options.rounds {
        for taken in &mut taken {
            let session = session(options, case, taken.way).await?;
            let (found, plan, time) = run(&session, case.query).await?;
            let expected = answer.get_or_insert_with(|| found.clone());
            if *expected != found {
                return Err(format!("{}: another answer:\n{expected}\n{found}", taken.way.name).into());
            }
            taken.plan = plan;
            if round > 0 {
                taken.times.push(time);
            }
        }
    }
    println!("## {}\n\n```sql\n{}\n```\n", case.title, case.query);
    println!("{} threads, medians of {} rounds.\n", options.threads, options.rounds);
    println!("| join | ms, median | least | most | peak MiB | of it anonymous |");
    println!("|---|---:|---:|---:|---:|---:|");
    for taken in &mut taken {
        taken.times.sort_unstable();
        let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {} | {} |",
            taken.way.name,
            ms(taken.times.get(taken.times.len() / 2)),
            ms(taken.times.first()),
            ms(taken.times.last()),
            taken.peak_mib,
            taken.anonymous_mib,
        );
    }
    println!("\n```text\n{}\n```\n", answer.unwrap_or_default());
    for taken in &taken {
        println!("{}:\n\n```text\n{}```\n", taken.way.name, taken.plan);
    }
    Ok(())
}

/// Runs a way in a process of its own. Returns its peak memory in MiB, and the part that is not of files.
fn peak(options: &Options, case: &Case, way: usize) -> Outcome<(u64, u64)> {
    let output = Command::new(std::env::current_exe()?).args(options.arguments(case.name, way)).output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", WAYS[way].name, String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut numbers = text.split_whitespace().map(str::parse);
    let mut number = || numbers.next().ok_or("missing number: a process reports two");
    Ok((number()??, number()??))
}

async fn report_peak(options: &Options, case: &Case, way: Way) -> Outcome<()> {
    let (is_done, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let watch = {
        let (is_done, most) = (Arc::clone(&is_done), Arc::clone(&most));
        std::thread::spawn(move || {
            while !is_done.load(Ordering::Relaxed) {
                most.fetch_max(status_kib("RssAnon:"), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        })
    };
    let session = session(options, case, way).await?;
    run(&session, case.query).await?;
    is_done.store(true, Ordering::Relaxed);
    watch.join().map_err(|_| "the thread that watches the memory failed")?;
    println!("{} {}", status_kib("VmHWM:") / 1024, most.load(Ordering::Relaxed) / 1024);
    Ok(())
}

/// Returns a number of the status of this process, 0 if the system does not have it.
fn status_kib(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
