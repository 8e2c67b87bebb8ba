//! Tests on a CPU that runs the kernels' own text, under sanitizers, in three orders of lanes.
//!
//! Instrumented libraries need their run-time loaded before all else. So the tests proper are ignored ones, which an
//! ordinary one runs in a child of the test program with `LD_PRELOAD` set. A test that is run by hand (`--ignored
//! NAME`) has no sanitizers. Without g++ and its sanitizers the tests are skipped, with a message; with
//! `PLEACH_REQUIRE_EMULATION=1` they fail.

use pleach_gpu::image::Lowest;
use pleach_gpu::{Gpu, GpuOptions, LaneOrder, sanitizer_environment};
use pleach_kit::figure;
use std::process::{Command, Output};

/// Orders of lanes.
pub const ORDERS: [LaneOrder; 3] = [LaneOrder::Ascending, LaneOrder::Descending, LaneOrder::Random(7)];

/// Runs ignored tests of this program in a child under sanitizers, with a variable of its environment set. `None`
/// where there are no sanitizers.
pub fn child(arguments: &[&str], variable: Option<(&str, &str)>) -> Option<Output> {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg("--ignored").args(arguments).envs(sanitizer_environment()?).envs(variable);
    Some(command.output().expect("starts"))
}

pub fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs all ignored tests but those whose names contain `skipped`, and prints their figures.
pub fn run_all(skipped: Option<&str>) {
    let skip: Vec<&str> = skipped.into_iter().flat_map(|name| ["--skip", name]).collect();
    let Some(output) = child(&[&skip[..], &["--show-output"]].concat(), None) else { return };
    let (said, complained) = (text_of(&output.stdout), text_of(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(!said.contains(" 0 passed"), "{said}");
    let tests = said.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ok")).count();
    figure(22, &format!("{tests} tests of kernels on a CPU under sanitizers"));
    said.lines().filter(|line| line.starts_with("figure ")).for_each(|line| println!("{line}"));
}

/// A device that is a CPU.
pub fn gpu(order: LaneOrder) -> Gpu {
    // Images with long and with short codes, with a top alone and of several levels.
    let (lowest, top_max) = match order {
        LaneOrder::Ascending => (Some(Lowest::Codes32), None),
        LaneOrder::Descending => (Some(Lowest::Codes16), Some(3)),
        LaneOrder::Random(_) => (Some(Lowest::Codes8), Some(3)),
    };
    // Orders are looked at for some, even of few queries.
    let sampled_min = (order != LaneOrder::Ascending).then_some(200);
    let options = GpuOptions { lowest, top_max, sampled_min, ..GpuOptions::default() };
    Gpu::emulated(order, options).expect("g++ is there")
}
