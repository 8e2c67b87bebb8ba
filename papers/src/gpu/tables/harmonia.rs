//! Harmonia (Yan et al., PPoPP 2019): what each of its steps gains (Figure 13), its throughput over sizes (Figure 11),
//! what sorting by how many bits costs and gains (Figure 8), groups of every width and the models' picks (section 4.2),
//! and the counts that it starts from: transactions a warp, comparisons a level, parts of a node (Figures 2, 3, 10).
//!
//! Keys and values are of 8 bytes, queries random and present. Rows end in the order of their answers: `asked`, the
//! queries' own, or `sorted`, with the queries' numbers beside them; times have all of it, sorting and scattering. The
//! regular tree is searched in launches of several shapes; ratios are to the fastest, blocks of 1024 threads. thrust is
//! measured in the same run. Counts follow from ranks and are made on the CPU.

use super::{Trees, place, whole};
use crate::gpu::search::regular_tree;
use pleach_bench::BenchError;
use pleach_bench::gpu::case::{Asked, Case, Order};
use pleach_bench::gpu::measure::Drawn;
use pleach_bench::gpu::tables::{Keys, make, size_name};
use pleach_bench::gpu::{Bench, GpuReport, GpuRow, engines, peers};
use pleach_format::harmonia::{HarmoniaGeometry, node_keys};
use pleach_gpu::{Algorithm, ChildRegion, Group, HarmoniaForm, QuerySort, Residence, Scan};

/// Threads of a block of the regular tree's launches; the last one is that of ratios.
const THREADS: [u16; 5] = [64, 128, 256, 512, 1024];
/// Bits that queries are sorted by, beside those of Equation 2 and all.
const BITS: [u8; 5] = [4, 8, 12, 16, 24];
/// Queries of a batch of Figures 2, 3 and 10.
const COUNTED: u64 = 100;
/// Keys of the tree of Figures 2 and 3: of height 4 and fanout 8, full.
const FIGURE_2: u64 = 7 * 8 * 8 * 8;

const PAPER: HarmoniaForm = HarmoniaForm {
    fanout: 64,
    fill: 100,
    sort: QuerySort::Partial,
    group: Group::Auto,
    scan: Scan::Keys,
    children: ChildRegion::Constant,
};

/// Measures an algorithm, as a row.
fn row(
    case: &Case<'_, '_>,
    algorithm: Algorithm,
    (kind, order): (Drawn, Order),
    size: &str,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let bench = case.bench;
    let repetitions = bench.options.repetitions;
    let asked = Asked { order, repetitions, ..whole(bench, algorithm, kind, bench.options.batch) };
    let name = match (kind, order) {
        (Drawn::Ascending, _) => "ascending",
        (_, Order::Asked) => "asked",
        (_, Order::Sorted) => "sorted",
        (_, Order::Nothing) => "sort-alone",
    };
    let row = case.row("harmonia", &["u64", size, name], asked)?;
    let row = match case.table.lanes(algorithm, bench.options.batch) {
        Ok(Some(lanes)) => row.with("lanes", lanes),
        _ => row,
    };
    bench.push(report, row)
}

/// All rows.
pub(super) fn measure(bench: &Bench<'_>, trees: &Trees, report: &mut GpuReport) -> Result<(), BenchError> {
    let options = bench.options;
    counts(bench, trees, report)?;
    let expected = peers::Peers::start(bench.gpu.device().compute).run_some(bench, &[], report)?;
    let main = options.tuples.iter().copied().max().unwrap_or(1);
    for &tuples in &options.tuples {
        let size = size_name(tuples);
        options.told.step(&format!("{size} x u64: building"))?;
        let made = make::<u64>(Keys::Uniform, tuples, options.dir.as_deref())?;
        let device = Residence::Device;
        let placed = place(bench, &made, options.batch, device, ("harmonia", &size), report)?;
        let Some(case) = placed else { continue };
        peers::check(&case, ["u64", &size], &expected, report)?;
        for (at, &fill) in trees.fills.iter().enumerate() {
            let is_last = at + 1 == trees.fills.len();
            steps(&case, (trees.fanouts[0], fill), &size, tuples == main && is_last, report)?;
        }
        if tuples == main {
            sorts(&case, trees, &size, report)?;
            groups(&case, trees, &size, report)?;
        }
    }
    Ok(())
}

/// Figures 11 and 13: the regular tree, Harmonia's, sorted queries, narrowed groups; then ours.
fn steps(
    case: &Case<'_, '_>,
    (fanout, fill): (u16, u8),
    size: &str,
    is_main: bool,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let threads = if is_main { &THREADS[..] } else { &THREADS[THREADS.len() - 1..] };
    for &threads in threads {
        let algorithm = regular_tree(fanout, fill, threads);
        row(case, algorithm, (Drawn::Present, Order::Asked), size, report)?;
        case.table.release(algorithm);
    }
    let form = HarmoniaForm { fanout, fill, ..PAPER };
    let unsorted = HarmoniaForm { sort: QuerySort::None, ..form };
    let halves = HarmoniaForm { scan: Scan::Halves, ..form };
    let whole = Group::Whole;
    let (asked, sorted) = (&[Order::Asked][..], &[Order::Sorted][..]);
    let both = &[Order::Sorted, Order::Asked][..];
    let mut all = vec![
        (HarmoniaForm { group: whole, ..unsorted }, asked),
        (HarmoniaForm { group: whole, ..form }, both),
        (form, both),
        (unsorted, asked),
        (HarmoniaForm { scan: Scan::Vectors, ..form }, both),
        (halves, both),
        (HarmoniaForm { sort: QuerySort::None, ..halves }, asked),
    ];
    if is_main {
        for children in [ChildRegion::Shared, ChildRegion::Ldg] {
            all.push((HarmoniaForm { children, ..form }, sorted));
            all.push((HarmoniaForm { children, ..halves }, sorted));
            all.push((HarmoniaForm { children, ..unsorted }, asked));
        }
    }
    for (form, orders) in all {
        let algorithm = Algorithm::Harmonia(form);
        for &order in orders {
            row(case, algorithm, (Drawn::Present, order), size, report)?;
        }
        case.table.release(algorithm);
    }
    Ok(())
}

/// Figure 8: sorting by no bits, some, and all; what sorting alone takes, and searches of queries that ascend.
fn sorts(case: &Case<'_, '_>, trees: &Trees, size: &str, report: &mut GpuReport) -> Result<(), BenchError> {
    let (fanout, fill) = (trees.fanouts[0], trees.fills.last().copied().unwrap_or(100));
    for scan in [Scan::Keys, Scan::Halves] {
        let form = HarmoniaForm { fanout, fill, scan, ..PAPER };
        let some = BITS.map(QuerySort::Bits);
        for sort in some.into_iter().chain([QuerySort::Partial, QuerySort::Full]) {
            let algorithm = Algorithm::Harmonia(HarmoniaForm { sort, ..form });
            row(case, algorithm, (Drawn::Present, Order::Nothing), size, report)?;
            if sort != QuerySort::Partial {
                row(case, algorithm, (Drawn::Present, Order::Sorted), size, report)?;
            }
            case.table.release(algorithm);
        }
        let algorithm = Algorithm::Harmonia(HarmoniaForm { sort: QuerySort::None, ..form });
        row(case, algorithm, (Drawn::Ascending, Order::Asked), size, report)?;
        case.table.release(algorithm);
    }
    Ok(())
}

/// Groups of every width for every fanout, and those that the models pick.
fn groups(case: &Case<'_, '_>, trees: &Trees, size: &str, report: &mut GpuReport) -> Result<(), BenchError> {
    for &fanout in &trees.fanouts {
        for &fill in &trees.fills {
            let form = HarmoniaForm { fanout, fill, ..PAPER };
            let most = fanout.min(32).ilog2();
            let mut all: Vec<Group> = (0..=most).map(|bits| Group::Of(1 << bits)).collect();
            all.extend([Group::Paper, Group::Auto]);
            for group in all {
                let algorithm = Algorithm::Harmonia(HarmoniaForm { group, ..form });
                let name = format!("harmonia/{}/u64/{size}/sorted", engines::label(algorithm));
                if report.find(&name).is_none() {
                    row(case, algorithm, (Drawn::Present, Order::Sorted), size, report)?;
                }
                case.table.release(algorithm);
            }
        }
    }
    Ok(())
}

/// Numbers in no order.
fn mix(i: u64) -> u64 {
    let x = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ x >> 31
}

/// Nodes on the way to a rank, counted within their levels from the root, and keys that are compared in each, one
/// after the other.
fn path(geometry: &HarmoniaGeometry, rank: u64) -> Vec<(u64, u64)> {
    let full = u64::from(geometry.node_keys);
    let mut path = vec![(rank / full, rank % full + 1)];
    let mut node = rank / full;
    for _ in 1..geometry.levels.len() {
        path.push((node / (full + 1), (node % (full + 1) + 1).min(full)));
        node /= full + 1;
    }
    path.reverse();
    path
}

fn tree(tuples: u64, fanout: u16, fill: u8) -> Option<HarmoniaGeometry> {
    let keys = node_keys(fanout.into(), fill.into());
    HarmoniaGeometry::new(tuples, (fanout.into(), keys), 8, 8)
}

/// Figures 2, 3 and 10.
fn counts(bench: &Bench<'_>, trees: &Trees, report: &mut GpuReport) -> Result<(), BenchError> {
    if let Some(geometry) = tree(FIGURE_2, 8, 100) {
        // Four queries a warp, eight lanes each: a node of seven keys is one transaction.
        let mut ranks: Vec<u64> = (0..4 * COUNTED).map(|i| mix(i) % FIGURE_2).collect();
        let transactions = |ranks: &[u64]| {
            let mut all = 0;
            for warp in ranks.chunks(4) {
                let paths: Vec<_> = warp.iter().map(|&rank| path(&geometry, rank)).collect();
                for level in 0..geometry.levels.len() {
                    let mut nodes: Vec<u64> = paths.iter().map(|path| path[level].0).collect();
                    nodes.sort_unstable();
                    nodes.dedup();
                    all += nodes.len();
                }
            }
            all as f64 / (ranks.len().div_ceil(4) * geometry.levels.len()) as f64
        };
        let worst = (1 + 4 * (geometry.levels.len() - 1)) as f64 / geometry.levels.len() as f64;
        let random = transactions(&ranks);
        let compared: Vec<Vec<u64>> = ranks[..COUNTED as usize]
            .iter()
            .map(|&rank| path(&geometry, rank).into_iter().map(|node| node.1).collect())
            .collect();
        // By the bits above a line's 16 keys.
        ranks.sort_by_key(|rank| rank / 16);
        let partial = transactions(&ranks);
        ranks.sort_unstable();
        let row = GpuRow::new("harmonia", "figure-2", &["transactions"])
            .number("worst", worst)
            .number("random", random)
            .number("partially_sorted", partial)
            .number("sorted", transactions(&ranks));
        bench.push(report, row)?;
        for level in 0..geometry.levels.len() {
            let at = |query: &Vec<u64>| query[level];
            let sum: u64 = compared.iter().map(at).sum();
            let row = GpuRow::new("harmonia", "figure-3", &[&format!("level-{}", level + 1)])
                .number("average", sum as f64 / COUNTED as f64)
                .with("least", compared.iter().map(at).min())
                .with("most", compared.iter().map(at).max());
            bench.push(report, row)?;
        }
    }
    for &fanout in &trees.fanouts {
        for &fill in &trees.fills {
            let tuples = bench.options.tuples.first().copied().unwrap_or(1);
            let Some(geometry) = tree(tuples, fanout, fill) else { continue };
            let mut parts = [0u64; 4];
            for i in 0..COUNTED * COUNTED {
                for (_, compared) in path(&geometry, mix(i) % tuples) {
                    parts[((compared - 1) * 4 / u64::from(fanout - 1)).min(3) as usize] += 1;
                }
            }
            let all: u64 = parts.iter().sum();
            let row = GpuRow::new("harmonia", "figure-10", &[&fanout.to_string(), &fill.to_string()]);
            let share = |part: usize| parts[part] as f64 / all as f64;
            let row = row.number("first", share(0)).number("second", share(1));
            bench.push(report, row.number("third", share(2)).number("fourth", share(3)))?;
        }
    }
    Ok(())
}
