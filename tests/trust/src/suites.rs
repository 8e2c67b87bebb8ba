//! Targets that tests measure: they are run from here, and their figures gathered.
//!
//! Tests print what they have counted as `figure NUMBER: text`, for the target of that number.

use crate::lab::{Lab, grouped};
use anyhow::{Context, Result, bail, ensure};

/// Tests that print no figure, by name, with the unit in which passed ones are counted. All others must
/// print a figure, so that none is lost unnoticed.
const UNCOUNTED: [(&str, &str); 2] =
    [("golden", "tests pass"), ("harmonia::model", "tests of a model of Harmonia's locks pass")];

/// Runs tests, in their long form unless the short one is requested, and gathers the figures of a target.
fn figures(lab: &Lab, number: u32, tests: &[&[&str]]) -> Result<String> {
    let mut found = Vec::new();
    for test in tests {
        let mut args = vec!["test", "--locked"];
        if !lab.short {
            args.push("--release");
        }
        let split = test.iter().position(|arg| *arg == "--").unwrap_or(test.len());
        args.extend(&test[..split]);
        args.extend(["--", "--nocapture"]);
        args.extend(test.get(split + 1..).unwrap_or_default());
        // A test that needs an emulated device must not pass without one.
        let environment = [("PLEACH_REQUIRE_EMULATION", "1"), ("PLEACH_TESTS", "long")];
        let environment = &environment[..if lab.short { 1 } else { 2 }];
        let text = lab.cargo(&args, environment)?;
        let passed = passed(&text);
        ensure!(passed > 0, "{}: no test ran", test.join(" "));
        found.extend(counted(number, test, passed, &text)?);
    }
    Ok(summed(&found).join("; "))
}

/// The figures of a target in what a test has printed: at least one.
fn counted(number: u32, test: &[&str], passed: u64, text: &str) -> Result<Vec<String>> {
    let mark = format!("figure {number}: ");
    let figures: Vec<String> =
        text.lines().filter_map(|line| line.split_once(&mark).map(|(_, figure)| figure.to_owned())).collect();
    if !figures.is_empty() {
        return Ok(figures);
    }
    let told = UNCOUNTED.iter().find(|(name, _)| test.last() == Some(name));
    let (_, told) = told.with_context(|| format!("{}: no figure for target {number}", test.join(" ")))?;
    Ok(vec![format!("{passed} {told}")])
}

/// Combines figures of several tests with one unit, such as `3 look-ups` and `4 look-ups`, into their sum.
fn summed(figures: &[String]) -> Vec<String> {
    let mut all: Vec<(Option<u64>, &str)> = Vec::new();
    for figure in figures {
        let parts = figure.split_once(' ').and_then(|(number, text)| Some((number.parse().ok()?, text)));
        let (number, text) = parts.map_or((None, figure.as_str()), |(number, text)| (Some(number), text));
        match all.iter_mut().find(|there| there.1 == text) {
            Some((Some(sum), _)) => *sum += number.unwrap_or_default(),
            Some(_) => {}
            None => all.push((number, text)),
        }
    }
    let told = |(number, text): (Option<u64>, &str)| {
        number.map_or(text.to_owned(), |number| format!("{} {text}", grouped(number)))
    };
    all.into_iter().map(told).collect()
}

macro_rules! tests {
    ($($(#[$doc:meta])* $name:ident: $number:literal, [$($test:expr),*];)*) => {
        $($(#[$doc])* pub fn $name(lab: &Lab) -> Result<String> {
            figures(lab, $number, &[$(&$test),*])
        })*
    };
}

/// A test of the damage suite.
const fn damage(name: &'static str) -> [&'static str; 6] {
    ["-p", "pleach-tests", "--test", "corrupt", "--", name]
}

tests! {
    /// Target 1.
    bit_flips: 1, [damage("flip")];
    /// Target 2.
    other_damage: 2, [damage("found"), damage("named")];
    /// Target 3.
    every_byte: 3, [damage("every_flipped_bit"), ["-p", "pleach-fsck", "--test", "sections"]];
    /// Target 4.
    truncation: 4, [damage("length"), damage("truncations")];
    /// Target 5.
    forged: 5, [["-p", "pleach-tests", "--features", "all-types", "--test", "forged"]];
    /// Target 23.
    salvage: 23, [["-p", "pleach-tests", "--test", "salvage"]];
    /// Target 26.
    compatibility: 26, [["-p", "pleach-tests", "--test", "golden"]];
    /// Target 28.
    models: 28, [
        ["-p", "pleach-tests", "--test", "schedules"],
        ["-p", "pleach-tests", "--test", "slots"],
        ["-p", "pleach-papers", "--lib", "harmonia::model"]
    ];
}

/// With the instruction sets of this machine, all of which these tests go through.
fn of_all_isas(lab: &Lab, number: u32, test: &[&str]) -> Result<String> {
    let isas: Vec<String> = pleach::Isa::available().iter().map(ToString::to_string).collect();
    Ok(format!("{}, on {}", figures(lab, number, &[test])?, isas.join(", ")))
}

/// Target 6.
pub fn unverified(lab: &Lab) -> Result<String> {
    of_all_isas(lab, 6, &damage("unverified"))
}

/// Target 21.
pub fn agree(lab: &Lab) -> Result<String> {
    of_all_isas(lab, 21, &["-p", "pleach-tests", "--test", "agree"])
}

/// Target for which instrumented code is built.
pub const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Tests that Miri can run, with the flags that it needs: none that maps files, nor layouts of whole trees,
/// which take it hours. `format` has no unsafe code; raw pointers are in searches and in the operators in
/// memory.
const MIRI: &[(&[&str], &str)] = &[
    (&["-p", "pleach-relation", "--lib", "--", "memory::tests"], ON_RAYON),
    (&["-p", "pleach-tests", "--test", "corrupt", "--", "unverified"], ""),
];

/// Threads of rayon's pool never end, its queues keep addresses as numbers and look at their neighbours: by
/// the rules of Tree Borrows that is allowed. They cost many times the time of the stricter ones.
const ON_RAYON: &str =
    "-Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-permissive-provenance -Zmiri-disable-isolation";

/// Sanitizers, and the models that they cannot take: these run their threads on stacks of their own, which
/// the thread sanitizer takes for damage. One that is to fail leaves its stacks allocated, which is a leak.
const SANITIZERS: [(&str, &[&str]); 2] = [
    ("address", &["the_model_finds"]),
    (
        "thread",
        &[
            "harmonia::model",
            "generations_are_handed_over",
            "one_builder_at_a_time",
            "slots_",
            "the_model_finds",
        ],
    ),
];

/// Tests that passed, by what cargo printed.
fn passed(text: &str) -> u64 {
    let passed = |line: &str| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u64>().ok();
    text.lines().filter_map(passed).sum()
}

/// All packages with unsafe code on a CPU, what checks files, and what calls the Arrow and Parquet libraries.
const SANITIZED: [&str; 8] = [
    "pleach",
    "pleach-format",
    "pleach-builder",
    "pleach-input",
    "pleach-fsck",
    "pleach-relation",
    "pleach-papers",
    "pleach-tests",
];

/// Target 20. The standard library is instrumented, too.
pub fn sanitizers(lab: &Lab) -> Result<String> {
    let mut told = Vec::new();
    let mut miri = 0;
    for (tests, flags) in MIRI {
        let args = [&["miri", "test", "--locked", "--target-dir", "target/miri"], *tests].concat();
        let passed = passed(&lab.nightly(&args, &[("MIRIFLAGS", flags)])?);
        ensure!(passed > 0, "{}: no test ran", tests.join(" "));
        miri += passed;
    }
    told.push(format!("{} under Miri", grouped(miri)));
    let suppressed = lab.root.join("tests/trust/thread.supp");
    let suppressed = format!("handle_sigbus=0 suppressions={}", suppressed.display());
    for (name, skipped) in SANITIZERS {
        let flags = format!("-Zsanitizer={name}");
        let folder = format!("target/{name}");
        let build =
            ["test", "--locked", "--release", "--no-fail-fast", "--target", TRIPLE, "--target-dir", &folder];
        let packages: Vec<&str> = SANITIZED.iter().flat_map(|package| ["-p", package]).collect();
        let mut args = [
            &build[..],
            &["-Zbuild-std", "--features", "pleach-tests/all-types"],
            &packages,
            &["--lib", "--tests", "--"],
        ]
        .concat();
        args.extend(skipped.iter().flat_map(|test| ["--skip", test]));
        // Tests, not the sanitizer, check what a truncated file does to a reader.
        let environment = [
            ("RUSTFLAGS", flags.as_str()),
            // Suppressions go by the names of functions, including inlined ones.
            ("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only"),
            ("CARGO_PROFILE_RELEASE_STRIP", "none"),
            ("ASAN_OPTIONS", "handle_sigbus=0"),
            ("TSAN_OPTIONS", &suppressed),
        ];
        let text = lab.nightly(&args, &environment)?;
        let passed = passed(&text);
        ensure!(passed > 100, "{passed} tests under the {name} sanitizer");
        told.push(format!("{} tests under the {name} sanitizer", grouped(passed)));
    }
    Ok(format!("{}; no finding", told.join(", ")))
}

/// Target 22.
pub fn gpu(lab: &Lab) -> Result<String> {
    figures(
        lab,
        22,
        &[
            &["-p", "pleach-gpu", "--features", "emulate", "--test", "emulated"],
            &["-p", "pleach-papers", "--test", "gpu_emulated"],
        ],
    )
}

/// Target 30.
pub fn sets(_: &Lab) -> Result<String> {
    bail!("there are no sets of files yet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_missing_is_noticed() {
        let text = "test found ... figure 2: 3 kinds\nfigure 1: 9 flips\nok\n";
        assert_eq!(counted(2, &damage("found"), 1, text).unwrap(), ["3 kinds"]);
        assert!(counted(3, &damage("found"), 1, text).unwrap_err().to_string().ends_with("for target 3"));
        assert_eq!(counted(26, &["--test", "golden"], 7, text).unwrap(), ["7 tests pass"]);
    }

    #[test]
    fn the_same_is_summed() {
        let figures = ["3 flips", "none lost", "1200 bits", "none lost", "4 flips"].map(str::to_owned);
        assert_eq!(summed(&figures), ["7 flips", "none lost", "1,200 bits"]);
    }
}
