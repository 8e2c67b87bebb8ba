//! Binary search of strings of 16 characters, as in the slides on P-ary search: compared byte by byte, as words with
//! their bytes swapped, with query and probe in shared memory; beside them ours, which swap nothing.
//!
//! Strings are ten to sixteen lower-case letters and zeros to the end. A string is the same as a number of 128 bits,
//! first character first, so the table has such keys; its values are their ranks.

use super::{PaperSizes, REPETITIONS};
use crate::gpu::search::{BinaryForm, PAryForm, binary, pary};
use pleach::Index;
use pleach_bench::data::mix64;
use pleach_bench::gpu::case::{Trouble, failed};
use pleach_bench::gpu::tables::size_name;
use pleach_bench::gpu::{Bench, GpuReport, GpuRow, engines};
use pleach_bench::report::spread;
use pleach_bench::{BenchError, folder};
use pleach_builder::{BuildOptions, build_iter};
use pleach_gpu::{Algorithm, Answers, DeviceBuffer, GpuTable};
use rayon::prelude::*;

const ALGORITHMS: [Algorithm; 8] = [
    binary(BinaryForm::Bytes),
    binary(BinaryForm::Swap),
    binary(BinaryForm::Cached),
    Algorithm::Binary,
    binary(BinaryForm::Top),
    pary(32, PAryForm::List),
    pary(32, PAryForm::Ballot),
    Algorithm::Spine,
];

/// A string as a number.
fn string(i: u64) -> u128 {
    let (first, second) = (mix64(2 * i + 1), mix64(2 * i + 2));
    let mut letters = u128::from(first) << 64 | u128::from(second);
    let length = 10 + letters % 7;
    let mut bytes = [0u8; 16];
    for byte in &mut bytes[..length as usize] {
        letters /= 7;
        *byte = b'a' + (letters % 26) as u8;
        letters /= 3;
    }
    u128::from_be_bytes(bytes)
}

/// All rows.
pub(super) fn measure(
    bench: &Bench<'_>,
    sizes: &PaperSizes,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let size = size_name(sizes.strings);
    let batch = sizes.slides_batches.last().copied().unwrap_or(1);
    bench.options.told.step(&format!("{size} strings of 16 characters: building"))?;
    let mut keys: Vec<u128> = (0..sizes.strings).into_par_iter().map(string).collect();
    keys.par_sort_unstable();
    let folder = folder(bench.options.dir.as_deref())?;
    let path = folder.path().join("strings.pleach");
    let options = BuildOptions { sorted: true, ..BuildOptions::default() };
    build_iter(keys.iter().copied().zip(0u32..), &path, &options)?;
    let index = Index::open(&path)?;
    let table = match GpuTable::new(&index, bench.gpu) {
        Ok(table) => table,
        Err(error) => {
            return bench
                .push(report, failed(GpuRow::new("slides", "table", &["strings", &size]), error.into())?);
        }
    };
    let parts = ["strings", &size, &size_name(batch)];
    for algorithm in ALGORITHMS {
        let row = GpuRow::new("slides", &engines::label(algorithm), &parts);
        let row = match times(bench, &table, &keys, algorithm, batch) {
            Ok(ms) => row.times(batch, &ms).number("us", spread(&ms).0 * 1e3),
            Err(trouble) => failed(row, trouble)?,
        };
        bench.push(report, row)?;
        table.release(algorithm);
    }
    Ok(())
}

/// Milliseconds of batches of strings that are there, whose answers are compared.
fn times(
    bench: &Bench<'_>,
    table: &GpuTable<'_>,
    keys: &[u128],
    algorithm: Algorithm,
    batch: u64,
) -> Result<Vec<f64>, Trouble> {
    let (stream, meter) = (&bench.stream, &bench.meter);
    table.prepare(algorithm)?;
    let present = DeviceBuffer::new(bench.gpu, batch.div_ceil(64) * 8)?;
    let values = DeviceBuffer::new(bench.gpu, batch * 4)?;
    let mut all = Vec::new();
    for seed in 0..=REPETITIONS.min(bench.options.short_repetitions) as u64 {
        let draw = |i| keys[(mix64(seed << 32 | i) % keys.len() as u64) as usize];
        let queries: Vec<u128> = (0..batch).map(draw).collect();
        let bytes: Vec<u8> = queries.iter().flat_map(|query| query.to_le_bytes()).collect();
        let on_device = DeviceBuffer::from_host(stream, &bytes)?;
        values.fill(stream, 0x5A)?;
        let answers = Answers { values: Some(&values), present: Some(&present), ..Answers::default() };
        let (ms, pending) =
            meter.time(|stream| table.search_on(stream, algorithm, &on_device, batch, answers))?;
        pending.wait()?;
        let mut found = vec![0; batch as usize * 4];
        values.copy_to_host(stream, &mut found)?;
        for (at, query) in queries.iter().enumerate() {
            let rank = keys.partition_point(|key| key < query) as u32;
            if found[4 * at..][..4] != rank.to_le_bytes() {
                return Err(Trouble::Wrong(format!("query {at} of {batch} is wrong")));
            }
        }
        // The first one loads the kernels.
        if seed > 0 {
            all.push(ms);
        }
    }
    Ok(all)
}
