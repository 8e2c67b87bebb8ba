//! The oracle suite on a CPU that runs the kernels' own text, under sanitizers and in three orders of
//! lanes, and faults that are planted in kernels to see that they are caught.
//!
//! The tests proper are ignored ones, which two ordinary ones run in children of this program: see `sanitized`.
//!
//! Each planted fault is a file of `emulate/faults`, a search or a scan that is right with `FAULT` 0 and
//! wrong with 1.

#![cfg(feature = "emulate")]

#[path = "suite/foreign.rs"]
mod foreign;
#[path = "suite/merge.rs"]
mod merge;
#[path = "suite/relation.rs"]
mod relation;
#[path = "suite/sanitized.rs"]
mod sanitized;
mod suite;

use pleach::Index;
use pleach_builder::{BuildOptions, build_slice};
use pleach_gpu::{Algorithm, Gpu, GpuError, GpuTable, LaneOrder, TextKernel};
use pleach_kit::figure;
use sanitized::{ORDERS, child, gpu, text_of};
use std::ffi::c_void;
use suite::mix;

/// Which planted fault a child tries, and whether it is planted.
const FAULT: &str = "PLEACH_PLANTED_FAULT";

#[test]
fn the_suite_passes_under_sanitizers() {
    sanitized::run_all(Some("planted"));
}

/// Test that catches a planted fault.
#[derive(Clone, Copy, Debug)]
enum Catcher {
    /// A sanitizer stops the process, with these words.
    Sanitizer(&'static str),
    /// The launch is an error in every order, with these words.
    Rule(&'static str),
    /// The answers are wrong in some order.
    Oracle,
}

/// Arguments of a fault.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Columns and a batch.
    Search,
    /// An array and its sums within blocks.
    Scan,
}

/// The planted faults.
macro_rules! faults {
    ($($name:literal $shape:ident $catcher:expr;)*) => {
        const FAULTS: &[(&str, &str, Shape, Catcher)] = &[
            $(($name, include_str!(concat!("../emulate/faults/", $name, ".cu")), Shape::$shape, $catcher)),*
        ];
    };
}

faults! {
    "out_of_bounds_read" Search Catcher::Sanitizer("heap-buffer-overflow");
    "out_of_bounds_shared" Search Catcher::Sanitizer("use-after-poison");
    "misaligned_load" Search Catcher::Sanitizer("misaligned address");
    "missing_barrier" Scan Catcher::Oracle;
    "missing_warp_barrier" Scan Catcher::Oracle;
    "uninitialised_shared" Scan Catcher::Oracle;
    "lost_tail" Search Catcher::Oracle;
    "wrong_mask" Search Catcher::Rule("lacks the caller");
    "divergent_barrier" Search Catcher::Rule("a thread of the block is at another barrier");
    "absent_lane" Scan Catcher::Rule("which takes no part");
    "early_return" Search Catcher::Rule("__ballot_sync");
}

#[test]
fn planted_faults_are_caught() {
    let arguments = ["--exact", "planted_fault", "--nocapture", "--test-threads=1"];
    for &(name, _, _, catcher) in FAULTS {
        let Some(output) = child(&arguments, Some((FAULT, &format!("{name}=0")))) else { return };
        let said = text_of(&output.stdout);
        let all = format!("{name}: {said}\n{}", text_of(&output.stderr));
        assert!(output.status.success() && said.matches("OUTCOME right").count() == ORDERS.len(), "{all}");
        let Some(output) = child(&arguments, Some((FAULT, &format!("{name}=1")))) else { return };
        let (said, complained) = (text_of(&output.stdout), text_of(&output.stderr));
        let all = format!("{name}: {catcher:?}: {said}\n{complained}");
        let outcomes: Vec<&str> =
            said.lines().filter_map(|line| line.split_once("OUTCOME ")).map(|pair| pair.1).collect();
        let is_caught = match catcher {
            Catcher::Sanitizer(words) => {
                !output.status.success() && complained.contains(words) && outcomes.is_empty()
            }
            Catcher::Rule(words) => {
                outcomes.len() == ORDERS.len()
                    && outcomes.iter().all(|outcome| outcome.starts_with("error") && outcome.contains(words))
            }
            Catcher::Oracle => outcomes.len() == ORDERS.len() && outcomes.contains(&"wrong"),
        };
        assert!(is_caught, "{all}");
        let first = outcomes.first().copied().unwrap_or("the process was stopped");
        println!("{name}: {catcher:?}: {first}");
    }
    figure(22, &format!("{} planted faults caught", FAULTS.len()));
}

/// `Columns` of common.cuh.
#[repr(C)]
struct Columns {
    keys: *const u64,
    values: *const u32,
    tuples: u64,
}

/// `Batch` of common.cuh.
#[repr(C)]
struct Batch {
    queries: *const u64,
    count: u64,
    values: *mut u32,
    present: *mut u32,
    ranks: *mut u64,
    kind: u16,
    present_bytes: u16,
    rank_bytes: u16,
    value_bytes: u16,
}

/// `Scan` of the faults that scan.
#[repr(C)]
struct Scan {
    input: *const u32,
    output: *mut u32,
    count: u64,
}

#[test]
#[ignore = "run by `planted_faults_are_caught`"]
fn planted_fault() {
    let wanted = std::env::var(FAULT).unwrap_or_else(|_| "lost_tail=1".to_owned());
    let (name, is_planted) = wanted.split_once('=').expect("a name and a number");
    let &(name, text, shape, _) = FAULTS.iter().find(|fault| fault.0 == name).expect("a fault");
    let defines = [
        ("WORD_BYTES", 8),
        ("VALUE_BYTES", 4),
        ("BYTES_OF_BATCH", size_of::<Batch>() as u64),
        ("BYTES_OF_COLUMNS", size_of::<Columns>() as u64),
        ("FAULT", u64::from(is_planted == "1")),
        ("THREADS", 128),
    ];
    let kernel = TextKernel { name, text, defines: &defines, entry: "fault" };
    for order in ORDERS {
        let outcome = match shape {
            Shape::Search => try_search(&kernel, order),
            Shape::Scan => try_scan(&kernel, order),
        };
        match outcome {
            Ok(true) => println!("\nOUTCOME right"),
            Ok(false) => println!("\nOUTCOME wrong"),
            Err(error) => println!("\nOUTCOME error {error}"),
        }
    }
}

/// Returns true if a search's answers are right.
fn try_search(kernel: &TextKernel<'_>, order: LaneOrder) -> Result<bool, GpuError> {
    let keys: Vec<u64> = (0..1001).map(|i| 10 + 2 * (i - i % 3 / 2)).collect();
    let values: Vec<u32> = (0..1001).map(|i| 7 * i).collect();
    let queries: Vec<u64> = (0..777).map(|i| mix(i) % 2100).collect();
    let mut found = vec![99u32; queries.len()];
    let mut present = vec![0u32; queries.len().div_ceil(32)];
    let mut ranks = vec![99u64; queries.len()];
    let mut columns = Columns { keys: keys.as_ptr(), values: values.as_ptr(), tuples: keys.len() as u64 };
    let mut batch = Batch {
        queries: queries.as_ptr(),
        count: queries.len() as u64,
        values: found.as_mut_ptr(),
        present: present.as_mut_ptr(),
        ranks: ranks.as_mut_ptr(),
        kind: 0,
        present_bytes: 0,
        rank_bytes: 8,
        value_bytes: 4,
    };
    let mut arguments: [*mut c_void; 2] = [(&raw mut columns).cast(), (&raw mut batch).cast()];
    // SAFETY: these are the kernel's parameters; the arrays have the lengths they say. A planted fault
    // leaves them in a child alone, where a sanitizer stops it.
    unsafe { kernel.run(order, 7, 128, 128 * 8, &mut arguments) }?;
    Ok(queries.iter().enumerate().all(|(i, query)| {
        let rank = keys.partition_point(|key| key < query);
        let is_there = keys.get(rank) == Some(query);
        ranks[i] == rank as u64
            && (present[i / 32] >> (i % 32) & 1 == 1) == is_there
            && found[i] == if is_there { values[rank] } else { 0 }
    }))
}

/// Returns true if a scan's sums are right.
fn try_scan(kernel: &TextKernel<'_>, order: LaneOrder) -> Result<bool, GpuError> {
    let input: Vec<u32> = (0..300).map(|i| mix(i) as u32 % 1000).collect();
    let mut output = vec![99u32; input.len()];
    let mut scan = Scan { input: input.as_ptr(), output: output.as_mut_ptr(), count: input.len() as u64 };
    let mut arguments: [*mut c_void; 1] = [(&raw mut scan).cast()];
    // SAFETY: as above.
    unsafe { kernel.run(order, 3, 128, 128 * 4, &mut arguments) }?;
    let sums = input.chunks(128).flat_map(|block| {
        block.iter().scan(0u32, |sum, &number| {
            *sum = sum.wrapping_add(number);
            Some(*sum)
        })
    });
    Ok(sums.eq(output.iter().copied()))
}

/// All types at small sizes, more forms of the algorithms with one, and what else a table answers.
fn run_suite(order: LaneOrder) {
    let gpu = gpu(order);
    // A size in each order, in images of one level or of several.
    let counts: &[u64] = match order {
        LaneOrder::Ascending => &[69],
        LaneOrder::Descending => &[5],
        LaneOrder::Random(_) => &[300],
    };
    suite::every_table(&gpu, counts, &suite::algorithms(true), &[], 150);
    let tuples: Vec<(u64, u64)> = (0..1157).map(|i| (mix(i / 3), i)).collect();
    let near = |key: u64| [key.saturating_sub(1), key, key.saturating_add(1)];
    suite::check(&gpu, &suite::algorithms(false), tuples, near, &[0, u64::MAX], 300);
    suite::residences(&gpu, 1000);
    suite::strings(&gpu, &[1, 2, 33], &suite::algorithms(true));
    suite::all_tuples(&gpu, 3000);
    suite::recorded(&gpu, 500, &suite::RECORDED);
}

/// Operators in one pass, other widths in each order.
fn run_operators(order: LaneOrder) {
    let turn = ORDERS.iter().position(|one| one == &order).unwrap_or(2);
    relation::all(&gpu(order), turn);
    for tiles in [1, 31, 33, 300] {
        relation::look_backs(order, tiles);
    }
    relation::memory(|options| Gpu::emulated(order, options).expect("g++ is there"));
}

/// Trees of the file's sections, and such as hold anything.
fn run_sections(order: LaneOrder, counts: &[u64]) {
    let gpu = gpu(order);
    suite::sections::all(&gpu, counts, 200);
    suite::sections::strings(&gpu, 60);
    suite::sections::refusals(&gpu);
    let asked = suite::sections::damaged(&gpu, 700);
    assert!(asked > 10_000, "{asked}");
    figure(22, &format!("{asked} look-ups in trees that hold anything"));
}

#[test]
#[ignore = "run by `the_suite_passes_under_sanitizers`"]
fn sections_answer_as_they_lie() {
    run_sections(ORDERS[0], &[1, 2, 8, 129]);
    run_sections(ORDERS[2], &[1024, 1500]);
}

/// The tests proper, of an order of lanes each.
macro_rules! orders {
    ($($answers:ident $exact:ident $operators:ident $order:expr;)*) => {$(
        #[test]
        #[ignore = "run by `the_suite_passes_under_sanitizers`"]
        fn $answers() {
            run_suite($order);
        }

        #[test]
        #[ignore = "run by `the_suite_passes_under_sanitizers`"]
        fn $exact() {
            suite::exact::all(&gpu($order), &suite::algorithms(true));
        }

        #[test]
        #[ignore = "run by `the_suite_passes_under_sanitizers`"]
        fn $operators() {
            run_operators($order);
        }
    )*};
}

orders! {
    ascending_answers ascending_in_exact_buffers ascending_operators LaneOrder::Ascending;
    descending_answers descending_in_exact_buffers descending_operators LaneOrder::Descending;
    random_answers random_in_exact_buffers random_operators LaneOrder::Random(1);
}

/// Floors, ceilings, nearest tuples and intervals, in each form of images.
#[test]
#[ignore = "run by `the_suite_passes_under_sanitizers`"]
fn tuples_near_keys() {
    for (order, sizes) in ORDERS.into_iter().zip([[9, 33], [1, 1], [700, 1025]]) {
        let gpu = gpu(order);
        suite::near::edges(&gpu, 60);
        suite::near::exact(&gpu, &[sizes]);
        suite::near::intervals(&gpu, &[1, 9, 150]);
    }
}

/// Joins and set operations, whose tiles are large: in one order.
#[test]
#[ignore = "run by `the_suite_passes_under_sanitizers`"]
fn joins_and_set_operations() {
    merge::all(&gpu(LaneOrder::Random(1)), 4000);
}

/// Keys of other types, presence as bytes and values of missing keys.
#[test]
#[ignore = "run by `the_suite_passes_under_sanitizers`"]
fn arrays_of_other_libraries() {
    foreign::all(&gpu(LaneOrder::Descending));
}

#[test]
#[ignore = "run by `the_suite_passes_under_sanitizers`"]
fn what_is_asked_wrongly_is_refused() {
    suite::refusals(&gpu(LaneOrder::Random(2)));
}

/// Random lines: kernels stay within the table for all contents.
fn run_damaged(order: LaneOrder, counts: &[u64]) {
    let asked = suite::damaged::all(&gpu(order), counts, &suite::algorithms(true), &[], 200);
    assert!(asked > 10_000, "{asked}");
    figure(22, &format!("{asked} look-ups in tables whose lines hold anything"));
}

#[test]
#[ignore = "run by `the_suite_passes_under_sanitizers`"]
fn damaged_tables_are_not_left() {
    run_damaged(ORDERS[0], &[1, 700]);
    run_damaged(ORDERS[1], &[9]);
    run_damaged(ORDERS[2], &[300]);
}

#[test]
#[ignore = "run by `the_suite_passes_under_sanitizers`"]
fn generations_are_followed() {
    suite::generations(&gpu(LaneOrder::Random(3)));
}

/// Whatever is under way when a device is lost: an error that says so, from then on, or an answer from before.
#[test]
#[ignore = "run by `the_suite_passes_under_sanitizers`"]
fn a_lost_device_is_an_error() {
    let tuples: Vec<(u64, u64)> = (0..3000).map(|i| (i * 3, mix(i))).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let keys: Vec<u64> = (0..20_000).map(|i| mix(i) % 9001).collect();
    let right = |key: u64| if key.is_multiple_of(3) && key < 9000 { mix(key / 3) } else { 0 };
    let is_lost = |error: &GpuError| matches!(error, GpuError::Lost { .. });
    for works in 0..60 {
        let gpu = gpu(LaneOrder::Random(works));
        // The first ones lose the device while the table is copied.
        gpu.lose_after(if works < 20 { works } else { u64::MAX });
        let table = match GpuTable::new(&index, &gpu) {
            Ok(table) => table,
            Err(error) => {
                assert!(is_lost(&error), "{works}: {error}");
                continue;
            }
        };
        let recorded = table.record_batch::<u64, u64>(Algorithm::Spine, 40);
        gpu.lose_after(works % 20);
        for count in [40, keys.len()] {
            let keys = &keys[..count];
            let (mut values, mut present) = (vec![0; count], vec![0; count.div_ceil(64)]);
            match table.get_batch::<u64, u64>(keys, &mut values, &mut present) {
                Ok(_) => {
                    assert!(keys.iter().zip(&values).all(|(&key, &value)| value == right(key)), "{works}")
                }
                Err(error) => assert!(is_lost(&error), "{works}: {error}"),
            }
            if let Err(error) = table.get_all_by::<u64, u64>(Algorithm::Auto, keys) {
                assert!(is_lost(&error), "{works}: {error}");
            }
        }
        gpu.lose_after(0);
        let (mut values, mut present) = (vec![0; 40], vec![0]);
        let again = table.get_batch::<u64, u64>(&keys[..40], &mut values, &mut present);
        assert!(again.is_err_and(|error| is_lost(&error)), "{works}");
        if let Ok(mut recorded) = recorded {
            let again = recorded.get(&keys[..40], &mut values, &mut present);
            assert!(again.is_err_and(|error| is_lost(&error)), "{works}");
        }
    }
}
