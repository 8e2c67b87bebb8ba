//! Joins of sorted columns in memory: Pleach beside DataFusion, which joins by hash, or by merge if it
//! knows that its tables are in order.
//!
//! `cargo run --release -p pleach-peers --features datafusion --example join [BITS] [ROUNDS]`: 2^BITS
//! tuples a side (22 by default), keys and values of 8 bytes, half of the keys of a side in both. Rounds
//! alternate; medians are printed. Two threads. Each answer of each engine is compared, tuple by tuple.

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext, col};
use pleach_relation::How;
use pleach_relation::memory::{Columns, Joined, Options, join_into};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

/// DataFusion's own number of rows of a batch.
const BATCH_TUPLES: usize = 8192;
const THREADS: usize = 2;
const QUERY: &str = "select a.key, a.value, b.value as other from a join b on a.key = b.key";

type Fallible<T> = Result<T, Box<dyn Error>>;
/// Key and both values.
type Tuples = Vec<(u64, u64, u64)>;

fn mix(at: u64) -> u64 {
    let mixed = at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ mixed >> 27
}

fn value(key: u64, side: u64) -> u64 {
    mix(key ^ side << 63)
}

/// Ascending keys of both sides: each in one of them or in both, with the same chance.
fn keys(tuples: usize) -> (Vec<u64>, Vec<u64>) {
    let (mut left, mut right) = (Vec::with_capacity(tuples), Vec::with_capacity(tuples));
    let mut key = 0;
    while left.len() < tuples || right.len() < tuples {
        key += 1 + mix(key) % 256;
        let side = mix(!key) % 3;
        if side != 1 && left.len() < tuples {
            left.push(key);
        }
        if side != 2 && right.len() < tuples {
            right.push(key);
        }
    }
    (left, right)
}

/// A table in memory whose batches are parts of one buffer: in order, in one partition, or in one for each thread.
fn table(keys: &[u64], values: &[u64], is_sorted: bool) -> Fallible<MemTable> {
    let field = |name| Field::new(name, DataType::UInt64, false);
    let schema = Arc::new(Schema::new(vec![field("key"), field("value")]));
    let columns: [ArrayRef; 2] =
        [Arc::new(UInt64Array::from(keys.to_vec())), Arc::new(UInt64Array::from(values.to_vec()))];
    let batch = |from: usize| {
        let tuples = BATCH_TUPLES.min(keys.len() - from);
        RecordBatch::try_new(
            schema.clone(),
            columns.iter().map(|column| column.slice(from, tuples)).collect(),
        )
    };
    let batches: Vec<RecordBatch> =
        (0..keys.len()).step_by(BATCH_TUPLES).map(batch).collect::<Result<_, _>>()?;
    if is_sorted {
        let order = vec![vec![col("key").sort(true, false)]];
        return Ok(MemTable::try_new(schema, vec![batches])?.with_sort_order(order));
    }
    let share = batches.len().div_ceil(THREADS);
    Ok(MemTable::try_new(schema, batches.chunks(share).map(<[RecordBatch]>::to_vec).collect())?)
}

/// One way of DataFusion.
struct Engine {
    name: &'static str,
    context: SessionContext,
    seconds: Vec<f64>,
}

fn engine(name: &'static str, is_hash: bool, tables: [(&str, &[u64], &[u64]); 2]) -> Fallible<Engine> {
    let mut config = SessionConfig::new().with_target_partitions(THREADS).with_batch_size(BATCH_TUPLES);
    config.options_mut().optimizer.prefer_hash_join = is_hash;
    let context = SessionContext::new_with_config(config);
    for (table_name, keys, values) in tables {
        context.register_table(table_name, Arc::new(table(keys, values, !is_hash)?))?;
    }
    Ok(Engine { name, context, seconds: Vec::new() })
}

fn ask(runtime: &Runtime, context: &SessionContext, query: &str) -> Fallible<Vec<RecordBatch>> {
    Ok(runtime.block_on(async { context.sql(query).await?.collect().await })?)
}

/// Returns the tuples of a batch in the order of keys.
fn tuples_of(batches: &[RecordBatch]) -> Fallible<Tuples> {
    let mut tuples = Vec::new();
    for batch in batches {
        let column =
            |at: usize| batch.column(at).as_any().downcast_ref::<UInt64Array>().ok_or("not a column of u64");
        let (keys, values, others) = (column(0)?.values(), column(1)?.values(), column(2)?.values());
        tuples.extend((0..keys.len()).map(|at| (keys[at], values[at], others[at])));
    }
    tuples.sort_unstable();
    Ok(tuples)
}

fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let bits: u32 = arguments.next().map_or(Ok(22), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let (left, right) = keys(1 << bits);
    let left_values: Vec<u64> = left.iter().map(|&key| value(key, 0)).collect();
    let right_values: Vec<u64> = right.iter().map(|&key| value(key, 1)).collect();
    let tables = [("a", &left[..], &left_values[..]), ("b", &right[..], &right_values[..])];
    let mut engines =
        [engine("DataFusion, hash", true, tables)?, engine("DataFusion, merge", false, tables)?];
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).build()?;
    let threads = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build()?;
    let columns = (Columns::new("a", &left, &left_values)?, Columns::new("b", &right, &right_values)?);
    let mut ours = Vec::new();
    let mut joined = Joined::default();
    let mut expected = Tuples::new();
    for round in 0..=rounds {
        // The first round is not counted.
        let note = |seconds: &mut Vec<f64>, start: Instant| {
            if round > 0 {
                seconds.push(start.elapsed().as_secs_f64());
            }
        };
        let start = Instant::now();
        threads.install(|| join_into(How::Inner, columns.0, columns.1, &Options::default(), &mut joined))?;
        note(&mut ours, start);
        let values = joined.left.iter().zip(&joined.right);
        let answer: Tuples = joined.keys.iter().zip(values).map(|(&key, (&a, &b))| (key, a, b)).collect();
        if round == 0 {
            assert!(
                answer.iter().all(|&(key, a, b)| a == value(key, 0) && b == value(key, 1)),
                "a wrong value"
            );
            expected = answer;
        } else {
            assert!(answer == expected, "answers differ from round to round");
        }
        for engine in &mut engines {
            let start = Instant::now();
            let batches = ask(&runtime, &engine.context, QUERY)?;
            note(&mut engine.seconds, start);
            assert!(tuples_of(&batches)? == expected, "{} answers otherwise", engine.name);
        }
    }
    let tuples = (left.len() + right.len()) as f64;
    let ours = median(&mut ours);
    println!("2^{bits} tuples a side, {} results, {rounds} rounds, {THREADS} threads", expected.len());
    println!("{:<20} {:>9.1} ms {:>7.2} ns a tuple", "Pleach", ours * 1e3, ours * 1e9 / tuples);
    for engine in &mut engines {
        let plan = ask(&runtime, &engine.context, &format!("explain {QUERY}"))?;
        let plan = datafusion::arrow::util::pretty::pretty_format_batches(&plan)?.to_string();
        let way = if plan.contains("SortMergeJoinExec") { "by merge" } else { "by hash" };
        let theirs = median(&mut engine.seconds);
        println!(
            "{:<20} {:>9.1} ms {:>7.2} ns a tuple, {:.1} times as long ({way})",
            engine.name,
            theirs * 1e3,
            theirs * 1e9 / tuples,
            theirs / ours
        );
    }
    Ok(())
}
