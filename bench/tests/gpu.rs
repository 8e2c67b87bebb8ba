//! A small run of everything on a device that is a CPU: its times mean nothing, its rows, ratios and checks do. Without
//! a C++ compiler this test skips, and says so.

use pleach::KeyType;
use pleach_bench::gpu::measure::{Drawn, Load, Maker, Meter, ReadForm, Unit, value_of};
use pleach_bench::gpu::{GpuBenchOptions, GpuReport, Group, run_on};
use pleach_bench::keys::Distribution;
use pleach_bench::{BenchError, Told};
use pleach_gpu::{Algorithm, DeviceBuffer, Gpu, GpuError, GpuOptions, LaneOrder, Stream};
use std::cell::RefCell;

fn gpu() -> Option<Gpu> {
    match Gpu::emulated(LaneOrder::Random(1), GpuOptions::default()) {
        Ok(gpu) => Some(gpu),
        Err(GpuError::Unavailable(missing)) => {
            eprintln!("SKIPPED: {missing}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn small() -> GpuBenchOptions<'static> {
    GpuBenchOptions {
        tuples: vec![3000],
        auto_tuples: vec![500],
        hybrid_tuples: vec![3000],
        groups: Group::every().filter(|&group| group != Group::Peers).collect(),
        distributions: vec![Distribution::Uniform, Distribution::Bursts],
        reuse_tuples: vec![2000],
        algorithms: vec![Algorithm::Spine, Algorithm::Binary],
        batch: 2100,
        repetitions: 2,
        short_repetitions: 2,
        reads: 512,
        in_flight: vec![2],
        copy_bytes: 4096,
        flush_bytes: 4096,
        pinned_bytes: vec![1 << 16],
        ..GpuBenchOptions::new(true)
    }
}

fn numbers(report: &GpuReport, name: &str, fields: &[&str]) {
    let rows = report.related();
    let row = rows.iter().find(|row| row.name() == name);
    let row = row.unwrap_or_else(|| panic!("{name} in\n{}", report.to_text()));
    assert_eq!(row.text("error"), "", "{name}");
    for field in fields {
        assert!(row.get(field).is_some_and(|number| number > 0.0), "{name}: {field}");
    }
}

#[test]
fn everything_in_one_report() {
    if std::env::var_os("PLEACH_TESTS").is_none_or(|form| form != "long") {
        return eprintln!("SKIPPED: a part of the long form of the tests (PLEACH_TESTS=long)");
    }
    let Some(gpu) = gpu() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.json");
    let told = RefCell::new(Vec::new());
    let row = |line: &str| told.borrow_mut().push(line.to_owned());
    let options = GpuBenchOptions { output: Some(path.clone()), row: Some(&row), ..small() };
    let report = run_on(&gpu, &options).expect("a report");
    let text = report.to_text();
    assert_eq!(report.wrong(), 0, "{text}");
    numbers(&report, "limit/copy", &["tb_per_s"]);
    numbers(&report, "limit/empty-launch", &["us"]);
    numbers(&report, "limit/link", &["gb_per_s", "to_device_of_both_gb_per_s"]);
    numbers(&report, "limit/host-lines/0MiB", &["g_per_s"]);
    for key_type in ["u32", "u64"] {
        let name = |start: &str, end: &str| format!("{start}/{key_type}/{end}");
        numbers(&report, &name("limit/random-words", "3000"), &["g_per_s"]);
        numbers(&report, &name("limit/random-lines", "3000"), &["g_per_s"]);
        let fields = ["g_per_s", "of_random_reads", "of_random_lines", "compared"];
        for keys in ["uniform", "dense", "composite"] {
            for queries in ["present", "half-absent", "zipf"] {
                let name = name("random/spine", &format!("3000/{keys}/{queries}"));
                numbers(&report, &name, &fields);
                if queries != "present" {
                    numbers(&report, &name, &["of_present"]);
                }
                if keys != "uniform" {
                    numbers(&report, &name, &["of_uniform"]);
                }
            }
        }
        numbers(&report, &name("algorithms/spine", "3000"), &fields);
        numbers(&report, &name("algorithms/binary", "3000"), &fields);
        for batch in ["131", "2100"] {
            numbers(&report, &name("sorted/spine", &format!("3000/{batch}")), &["g_per_s"]);
        }
        for count in [1, 32, 1024] {
            numbers(&report, &name("small/spine", &format!("3000/{count}")), &["us"]);
            numbers(&report, &name("host/short", &format!("3000/{count}")), &["us"]);
            numbers(&report, &name("host/recorded", &format!("3000/{count}")), &["us"]);
        }
        for engine in ["host/pinned", "host/slices"] {
            numbers(&report, &name(engine, "3000/2100"), &["g_per_s", "of_link"]);
        }
    }
    numbers(&report, "keys/spine/u64/3000/bursts/present", &["g_per_s", "of_uniform"]);
    numbers(&report, "keys/spine/u64/3000/bursts/half-absent", &["g_per_s", "of_present"]);
    for key_type in ["u32", "u64"] {
        for (group, kinds) in
            [("near", &["floor", "ceiling", "nearest"][..]), ("near-interval", &["floor", "interval"])]
        {
            for kind in kinds {
                for queries in ["present", "half-absent", "sorted"] {
                    let name = format!("{group}/{kind}/{key_type}/3000/{queries}");
                    numbers(&report, &name, &["g_per_s", "of_get", "compared"]);
                }
            }
        }
    }
    for place in ["device", "hybrid"] {
        numbers(&report, &format!("auto/{place}/u64/500/2^5/random"), &["us", "best_us", "of_best"]);
    }
    numbers(&report, "hybrid/auto/u64/3000", &["g_per_s", "of_cpu"]);
    numbers(&report, "cpu/pleach/u64/3000", &["g_per_s"]);
    for what in ["spine", "classic", "classic-paper"] {
        numbers(&report, &format!("build/{what}/u32/3000"), &["build_ms"]);
    }
    for name in [
        "join/u32/3000/random",
        "select/u64/3000/50%-by-program",
        "project/u32/3000/pack",
        "reduce/u32/3000/runs-10",
    ] {
        numbers(&report, &format!("one-pass/{name}"), &["ms", "of_copy"]);
    }
    numbers(&report, "one-pass/product/u64/6016/right", &["of_fill"]);
    let shares: Vec<_> =
        report.related().into_iter().filter(|row| row.name().starts_with("reuse/share/")).collect();
    assert_eq!(shares.len(), 2);
    let written = std::fs::read_to_string(&path).expect("the document");
    let document: serde_json::Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(document["schema"], pleach_bench::gpu::SCHEMA);
    assert_eq!(document["rows"].as_array().map(Vec::len), Some(told.borrow().len()));
    assert_eq!(document["void"], true, "a CPU is no H200");
}

#[test]
fn a_run_can_be_interrupted_and_refused() {
    let Some(gpu) = gpu() else { return };
    let stop = || true;
    let options = GpuBenchOptions { told: Told { cancelled: Some(&stop), ..Told::default() }, ..small() };
    assert!(matches!(run_on(&gpu, &options), Err(BenchError::Interrupted)));
    let refused =
        |options: GpuBenchOptions<'_>| matches!(run_on(&gpu, &options), Err(BenchError::Options(_)));
    assert!(refused(GpuBenchOptions { key_types: vec![KeyType::I32], ..small() }));
    assert!(refused(GpuBenchOptions { tuples: vec![0], ..small() }));
    assert!(refused(GpuBenchOptions { batch: 0, ..small() }));
}

#[test]
fn reads_are_made_and_wrong_answers_are_found() {
    let Some(gpu) = gpu() else { return };
    let stream = Stream::new(&gpu).expect("a stream");
    let meter = Meter::new(&stream, 64).expect("memory");
    // All words are the same, so the sum counts reads.
    let buffer = DeviceBuffer::from_host(&stream, &[1, 0, 0, 0, 0, 0, 0, 0].repeat(800)).expect("memory");
    for load in Load::ALL {
        for (unit, words) in [(Unit::Word, 1), (Unit::Line, 8)] {
            for reads in [1, 31, 1000] {
                let form = ReadForm { unit, in_flight: 2, threads: 128, load };
                let (_, sum) = meter.random_reads(&buffer, reads, form, 5).expect("reads");
                assert_eq!(sum, reads * words, "{form:?}");
            }
        }
    }
    let keys: Vec<u8> = (1..=100u64).flat_map(|key| (key * 3).to_le_bytes()).collect();
    let keys = DeviceBuffer::from_host(&stream, &keys).expect("memory");
    let maker = Maker::new(&stream, &keys, 8).expect("memory");
    let batch = maker.room(77).expect("memory");
    maker.draw(&batch, Drawn::HalfAbsent, 1).expect("queries");
    let mut values = vec![0; 77 * 8];
    batch.values.copy_to_host(&stream, &mut values).expect("a copy");
    let same = maker.compare(&batch, &batch.values, &batch.present).expect("compared");
    assert_eq!(same.count, 0);
    values[41 * 8] ^= 1;
    values[76 * 8 + 7] ^= 1;
    let other = DeviceBuffer::from_host(&stream, &values).expect("memory");
    let found = maker.compare(&batch, &other, &batch.present).expect("compared");
    assert_eq!((found.count, found.first), (2, 41));
    let mut present = vec![0; 12];
    batch.present.copy_to_host(&stream, &mut present).expect("a copy");
    present[0] ^= 4;
    let other = DeviceBuffer::from_host(&stream, &present).expect("memory");
    let found = maker.compare(&batch, &batch.values, &other).expect("compared");
    assert_eq!((found.count, found.first), (1, 2));
    maker.draw(&batch, Drawn::Ascending, 1).expect("queries");
    let mut queries = vec![0; 77 * 8];
    batch.queries.copy_to_host(&stream, &mut queries).expect("a copy");
    let queries: Vec<u64> =
        queries.chunks_exact(8).map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes)).collect();
    assert!(queries.is_sorted() && queries.iter().all(|key| key % 3 == 0 && (3..=300).contains(key)));
    let sum = queries.iter().fold(0u64, |sum, &key| sum.wrapping_add(value_of(key)));
    assert_eq!(maker.sum(&batch).expect("a sum"), sum);
}
