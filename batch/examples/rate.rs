//! The time of a batch: `rate FILE THREADS KEYS.npy` for a file of i64 keys and values, `rate FILE THREADS OFFSETS.npy
//! BYTES.npy` for one of texts and i64 values. What bindings take is compared with this.

use pleach::Queries;
use pleach_batch::{Found, Keys, Numbers, Pool, Table, Texts, Values};
use std::time::Instant;

/// Texts as bindings get them: offsets and bytes.
struct Packed {
    offsets: Vec<i64>,
    bytes: Vec<u8>,
}

impl Queries for Packed {
    fn len(&self) -> usize {
        self.offsets.len() - 1
    }
    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

impl Texts for Packed {
    fn is_null(&self, _: usize) -> bool {
        false
    }
}

/// Reads the content of an array that NumPy saved.
fn saved(path: &str) -> std::io::Result<Vec<u8>> {
    let whole = std::fs::read(path)?;
    let header = whole.get(8..10).map_or(0, |bytes| usize::from(bytes[0]) | usize::from(bytes[1]) << 8);
    Ok(whole.get(10 + header..).unwrap_or_default().to_vec())
}

fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks::<8>().0.iter().map(|word| i64::from_le_bytes(*word)).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, threads, first, rest @ ..] = &words[..] else {
        return Err("rate FILE THREADS KEYS.npy".into());
    };
    let (table, threads) = (Table::open(path)?, threads.parse()?);
    let first = numbers(&saved(first)?);
    let packed = match rest {
        [bytes] => Some(Packed { offsets: first.clone(), bytes: saved(bytes)? }),
        _ => None,
    };
    let keys = match &packed {
        Some(packed) => Keys::Texts(packed),
        None => Keys::Numbers(Numbers::of(&first)),
    };
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        // As a binding does, a batch makes its answers.
        let (mut values, mut found) = (vec![0i64; keys.len()], vec![0u8; keys.len()]);
        let pool = Pool::of(threads);
        table.get(&keys, &mut Values::I64(&mut values), &mut Found::Bytes(&mut found), &pool)?;
        times.push(start.elapsed().as_secs_f64());
        std::hint::black_box((&values, &found));
    }
    times.sort_by(f64::total_cmp);
    println!("{:.2}", times[2] * 1e9 / keys.len() as f64);
    Ok(())
}
