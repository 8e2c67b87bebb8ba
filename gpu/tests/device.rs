//! Look-ups on a GPU against those of the CPU. Without a GPU these tests skip, and say so.

mod suite;

use pleach_gpu::{Gpu, GpuError};

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
fn answers_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    suite::every_table(&gpu, &[1, 2, 5, 9, 68, 69], &suite::algorithms(true), 3000);
    suite::every_table(&gpu, &[1157], &suite::algorithms(false), 600);
    suite::every_table(&gpu, &[200_000], &suite::algorithms(true), 60_000);
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let Some(gpu) = gpu() else { return };
    suite::refusals(&gpu);
    assert!(matches!(Gpu::open(999), Err(GpuError::Unavailable(_))));
}

#[test]
fn every_residence_answers_the_same() {
    let Some(gpu) = gpu() else { return };
    for count in [1, 1000, 100_000, 3_000_000] {
        suite::residences(&gpu, count);
    }
}

#[test]
fn byte_keys_are_searched() {
    let Some(gpu) = gpu() else { return };
    suite::strings(&gpu, &[1, 2, 33, 20_000], &suite::algorithms(true));
}

#[test]
fn all_tuples_of_a_key_come() {
    let Some(gpu) = gpu() else { return };
    for count in [1, 3000, 100_000, 2_000_000] {
        suite::all_tuples(&gpu, count);
    }
}
