//! TPC-H `orders` and `lineitem`, built from Parquet and from CSV, every key looked up.
//!
//! `cargo run --release -p pleach-tests --features tpch --example tpch -- SCALE_FACTOR FOLDER` writes the tables (all
//! columns) into FOLDER unless they are there, builds four indexes (`o_orderkey` to `o_custkey`,
//! `l_orderkey` with its duplicates to `@row`), and checks every key, absent keys and ranges against
//! columns that come from the generator, not from the files. Scale factor 10 takes 15 GiB of disk.

use arrow_array::RecordBatchReader;
use parquet::arrow::ArrowWriter;
use pleach::{Index, Key, Value};
use pleach_builder::{BuildOptions, Silent, build};
use pleach_input::{InputOptions, open};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;
use tpchgen::csv::{LineItemCsv, OrderCsv};
use tpchgen::generators::{LineItemGenerator, OrderGenerator};
use tpchgen_arrow::{LineItemArrow, OrderArrow};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn write_parquet(path: &Path, batches: impl RecordBatchReader) -> Outcome<()> {
    if path.exists() {
        return Ok(());
    }
    let started = Instant::now();
    let mut writer = ArrowWriter::try_new(File::create(path)?, batches.schema(), None)?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.close()?;
    println!("wrote {} in {:.1} s", path.display(), started.elapsed().as_secs_f64());
    Ok(())
}

fn write_csv(path: &Path, header: &str, rows: impl Iterator<Item = impl std::fmt::Display>) -> Outcome<()> {
    if path.exists() {
        return Ok(());
    }
    let started = Instant::now();
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    writeln!(file, "{header}")?;
    for row in rows {
        writeln!(file, "{row}")?;
    }
    file.flush()?;
    println!("wrote {} in {:.1} s", path.display(), started.elapsed().as_secs_f64());
    Ok(())
}

/// Builds `input` and checks the index against sorted tuples.
fn check<K: Key, V: Value>(input: &Path, key: &str, value: &str, expected: &[(K, V)]) -> Outcome<()> {
    let target =
        input.with_extension(format!("{}.pleach", input.extension().unwrap_or_default().to_string_lossy()));
    let options =
        InputOptions { key: Some(key.to_owned()), value: Some(value.to_owned()), ..InputOptions::default() };
    let started = Instant::now();
    let mut source = open(&[input.to_owned()], &options)?;
    let summary = build(source.as_mut(), &target, &BuildOptions::default(), &Silent)?;
    let built = started.elapsed().as_secs_f64();
    assert_eq!(summary.tuples, expected.len() as u64, "all rows are tuples");

    let index = Index::open(&target)?;
    let view = index.typed::<K, V>()?;
    // Every key, in a scattered order, in batches; the first of equal keys answers.
    let n = expected.len() as u64;
    let step = (0x9E37_79B9_7F4A_7C15_u64 % n) | 1;
    let step = (step..).find(|&step| gcd(step, n) == 1).unwrap_or(1);
    let mut place = 0u64;
    let (mut keys, mut ranks) = (vec![K::default(); 1 << 16], vec![0u64; 1 << 16]);
    let (mut values, mut present) = (vec![V::default(); 1 << 16], vec![0u64; 1 << 10]);
    let started = Instant::now();
    let mut asked = 0u64;
    while asked < n {
        let count = (n - asked).min(1 << 16) as usize;
        for (key, rank) in keys.iter_mut().zip(&mut ranks).take(count) {
            place = (place + step) % n;
            (*key, *rank) = (expected[place as usize].0, place);
        }
        let found = view.par_get_batch(&keys[..count], &mut values, &mut present)?;
        assert_eq!(found, count, "every key is found");
        for i in 0..count {
            let first = first_of(expected, ranks[i] as usize);
            assert_eq!(values[i], expected[first].1, "the first tuple of {:?}", keys[i]);
        }
        asked += count as u64;
    }
    let looked = started.elapsed().as_secs_f64();

    // Ranges of 1, 10, ... keys, and every duplicate of a sample; keys between are absent.
    let mut absent = 0;
    for i in 0..2000u64 {
        let from = (i.wrapping_mul(step) % n) as usize;
        let to = (from + 10usize.pow((i % 5) as u32)).min(expected.len() - 1);
        let (low, high) = (expected[from].0, expected[to].0);
        let (start, end) = (first_of(expected, from), first_of(expected, to));
        let got: Vec<(K, V)> = view.range(low..high)?.collect::<Result<_, _>>()?;
        assert_eq!(got, &expected[start..end], "range {low:?}..{high:?}");
        assert_eq!(view.count(low..high)?, (end - start) as u64);
        let all: Vec<(K, V)> = view.get_all(low)?.collect::<Result<_, _>>()?;
        let stop = expected[start..].partition_point(|tuple| tuple.0 <= low) + start;
        assert_eq!(all, &expected[start..stop], "all of {low:?}");
        if stop < expected.len() {
            use pleach_format::Word;
            let next = K::Word::from_u64(low.encode().to_u64() + 1);
            if next != expected[stop].0.encode() {
                assert_eq!(view.get(K::decode(next))?, None, "absent");
                absent += 1;
            }
        }
    }
    println!(
        "{}: {} tuples, {:.2} bytes a tuple, sorted input {}, built in {built:.1} s, every key found in {looked:.1} s \
         (with the check), 2000 ranges and {absent} absent keys right",
        target.display(),
        summary.tuples,
        summary.file_bytes as f64 / summary.tuples as f64,
        summary.sorted_input
    );
    Ok(())
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Rank of the first tuple with the key of rank `at`.
fn first_of<K: Key, V>(tuples: &[(K, V)], at: usize) -> usize {
    let mut first = at;
    while first > 0 && tuples[first - 1].0 == tuples[at].0 {
        first -= 1;
    }
    first
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(scale), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: tpch SCALE_FACTOR FOLDER".into());
    };
    let scale: f64 = scale.parse()?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let orders = || OrderGenerator::new(scale, 1, 1);
    let lines = || LineItemGenerator::new(scale, 1, 1);
    let at = |name: &str| folder.join(name);
    write_parquet(&at("orders.parquet"), OrderArrow::new(orders()).with_batch_size(1 << 16))?;
    write_csv(&at("orders.csv"), OrderCsv::header(), orders().iter().map(OrderCsv::new))?;
    write_parquet(&at("lineitem.parquet"), LineItemArrow::new(lines()).with_batch_size(1 << 16))?;
    write_csv(&at("lineitem.csv"), LineItemCsv::header(), lines().iter().map(LineItemCsv::new))?;

    let mut expected: Vec<(i64, i64)> =
        orders().iter().map(|order| (order.o_orderkey, order.o_custkey)).collect();
    expected.sort_by_key(|tuple| tuple.0);
    check(&at("orders.parquet"), "o_orderkey", "o_custkey", &expected)?;
    let expected: Vec<(u64, u64)> =
        expected.into_iter().map(|(key, value)| (key.cast_unsigned(), value.cast_unsigned())).collect();
    check(&at("orders.csv"), "o_orderkey", "o_custkey", &expected)?;

    let mut expected: Vec<(i64, u64)> = lines().iter().map(|line| line.l_orderkey).zip(0..).collect();
    expected.sort_by_key(|tuple| tuple.0);
    check(&at("lineitem.parquet"), "l_orderkey", "@row", &expected)?;
    let expected: Vec<(u64, u64)> =
        expected.into_iter().map(|(key, row)| (key.cast_unsigned(), row)).collect();
    check(&at("lineitem.csv"), "l_orderkey", "@row", &expected)
}
