//! What papers have on a GPU, on a GPU. Without one these tests skip, and say so.

#[path = "gpu/relation.rs"]
mod relation;
#[path = "gpu/searches.rs"]
mod searches;
#[path = "../../gpu/tests/suite/mod.rs"]
mod suite;

use pleach_gpu::{Gpu, GpuError};
use searches::{algorithms, of_strings};

fn gpu() -> Option<Gpu> {
    match Gpu::open(0) {
        Ok(gpu) => Some(gpu),
        Err(GpuError::Unavailable(missing)) => {
            eprintln!("SKIPPED: {missing}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn searches_answer_as_the_cpu() {
    let Some(gpu) = gpu() else { return };
    suite::every_table(&gpu, &[1, 2, 5, 9, 68, 69], &algorithms(true), &of_strings(), 3000);
    suite::every_table(&gpu, &[1157], &algorithms(false), &of_strings(), 600);
    suite::every_table(&gpu, &[200_000], &algorithms(true), &of_strings(), 60_000);
    suite::strings(&gpu, &[1, 2, 33, 20_000], &algorithms(true));
    for count in [1, 1000, 300_000] {
        suite::recorded(&gpu, count, &searches::recorded());
    }
    searches::refusals(&gpu);
}

/// Random lines: for all contents, nothing outside of the table is read, nothing loops, and the device lives.
#[test]
fn damaged_tables_are_not_left() {
    let Some(gpu) = gpu() else { return };
    suite::damaged::all(&gpu, &[1, 69, 1157], &algorithms(true), &of_strings(), 2000);
    suite::damaged::all(&gpu, &[200_000], &algorithms(true), &of_strings(), 20_000);
    suite::damaged::all(&gpu, &[3000], &algorithms(false), &of_strings(), 2000);
}

#[test]
fn operators_answer() {
    let Some(gpu) = gpu() else { return };
    relation::all(&gpu, false);
    relation::all(&gpu, true);
    relation::many(&gpu, 1 << 20);
}

/// A little of everything, as compute-sanitizer makes it slow: see docs/TESTING.md.
#[test]
#[ignore = "for compute-sanitizer: the tests above ask the same and more"]
fn small_tables_of_all_kinds() {
    let Some(gpu) = gpu() else { return };
    suite::every_table(&gpu, &[1, 69], &algorithms(true), &of_strings(), 300);
    suite::strings(&gpu, &[33], &algorithms(true));
    suite::recorded(&gpu, 1000, &searches::recorded());
    relation::all(&gpu, false);
}
