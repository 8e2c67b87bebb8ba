//! A small run of all tables on a device that is a CPU: its times mean nothing, its rows, ratios and checks do. Without
//! a C++ compiler this test skips, and says so.

use pleach::KeyType;
use pleach_bench::BenchError;
use pleach_bench::gpu::{GpuBenchOptions, GpuReport, Group};
use pleach_gpu::{Gpu, GpuError, GpuOptions, LaneOrder};
use pleach_papers::gpu::relation::CtaJoin;
use pleach_papers::gpu::tables::{Options, Paper, PaperSizes, RelationSizes, Trees, run_on};

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

fn small() -> Options<'static> {
    let plain = Options::new(Paper::Algorithms, true);
    Options {
        papers: vec![
            Paper::Algorithms,
            Paper::Slides,
            Paper::Fast,
            Paper::Apu,
            Paper::Harmonia,
            Paper::Relation,
        ],
        sizes: PaperSizes {
            slides: 1000,
            strings: 1000,
            slides_batches: vec![1, 70],
            fast: vec![500, 1000, 2000],
            fast_batch: 100,
            apu: 1000,
            apu_pinned: 2000,
            apu_batches: vec![64, 128],
            apu_more: vec![200],
        },
        relation: RelationSizes {
            swept: vec![600],
            operators: vec![900],
            partitions: 4,
            joins: vec![CtaJoin::Network],
        },
        trees: Trees { fanouts: vec![8], fills: vec![69] },
        bench: GpuBenchOptions {
            tuples: vec![3000],
            key_types: vec![KeyType::U64],
            groups: vec![Group::Limits],
            batch: 2100,
            repetitions: 2,
            short_repetitions: 2,
            reads: 512,
            in_flight: vec![2],
            copy_bytes: 4096,
            flush_bytes: 4096,
            pinned_bytes: vec![1 << 16],
            ..plain.bench
        },
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
fn every_table_in_one_report() {
    if std::env::var_os("PLEACH_TESTS").is_none_or(|form| form != "long") {
        return eprintln!("SKIPPED: a part of the long form of the tests (PLEACH_TESTS=long)");
    }
    let Some(gpu) = gpu() else { return };
    let report = run_on(&gpu, &small()).expect("a report");
    assert_eq!(report.wrong(), 0, "{}", report.to_text());
    numbers(&report, "algorithms/p-ary-32-ballot/u64/3000", &["g_per_s", "of_random_reads", "compared"]);
    numbers(&report, "small/binary-top/u64/3000/32", &["us"]);
    numbers(&report, "harmonia/regular-tree-8-69-1024/u64/3000/asked", &["g_per_s"]);
    let harmonia = "harmonia/harmonia-8-69-partial-auto-keys-constant/u64/3000/asked";
    numbers(&report, harmonia, &["of_regular", "lanes"]);
    numbers(&report, "slides/p-ary-32/u32/1000/70", &["us", "of_binary"]);
    numbers(&report, "slides/p-ary-tree-32-33/u32/1000/1", &["us"]);
    for engine in ["binary-bytes", "binary-swap", "binary-cached", "binary", "spine"] {
        numbers(&report, &format!("slides/{engine}/strings/1000/70"), &["us"]);
    }
    numbers(&report, "fast/fast-paper-2/u32/1000/2^5", &["g_per_s"]);
    numbers(&report, "fast/fast-ballot-4/u32/2000/100", &["of_cpu", "of_binary"]);
    for place in ["device", "pinned"] {
        let name = format!("apu/btree-16-paper/u32/1000/2^7/sorted/{place}");
        numbers(&report, &name, &["g_per_s", "of_cpu", "of_random"]);
    }
    numbers(&report, "apu/btree-16-grid/u32/2000/2^7/random/pinned", &["g_per_s"]);
    numbers(&report, "apu/cpu-sort/u32/1000/2^6", &["ms"]);
    assert!(report.to_text().contains("apu/matched-16/u32/1000"));
    numbers(&report, "relation-table-3/network/2048/alone", &["cycles_per_output", "join_cycles", "outputs"]);
    numbers(&report, "relation-partition/double-sided/pareto-2/600", &["us", "most", "mean"]);
    numbers(&report, "relation-stream/blocks/uniform/600", &["tb_per_s", "blocks"]);
    for form in ["dense", "pages"] {
        let fields = ["ms", "of_copy", "main_ms", "partition_share"];
        numbers(&report, &format!("relation-join/network/u32/900/random/{form}"), &fields);
        numbers(&report, &format!("relation-select/compact/u32/900/50%/{form}"), &["compact_ms"]);
    }
    numbers(&report, "relation-union/binary-search/u32/900/aligned/dense", &["gather_ms"]);
    numbers(&report, "relation-pages/to-dense/u32/900", &["copy_ms"]);
}

#[test]
fn sizes_that_cannot_be_measured_are_refused() {
    let Some(gpu) = gpu() else { return };
    let refused = |options: Options<'_>| matches!(run_on(&gpu, &options), Err(BenchError::Options(_)));
    assert!(refused(Options { sizes: PaperSizes { apu: 0, ..small().sizes }, ..small() }));
    assert!(refused(Options { relation: RelationSizes { partitions: 0, ..small().relation }, ..small() }));
    assert!(refused(Options { trees: Trees { fanouts: vec![], ..small().trees }, ..small() }));
}
