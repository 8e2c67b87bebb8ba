//! The runner, with drivers that answer rightly, lie, crash, hang, and answer too much.

use pleach_conformance::case::{Case, Sheet};
use pleach_conformance::run::{Options, Outcome, run};
use std::path::Path;

fn case(name: &str, level: u8, rule: Option<&str>, code: Option<&str>, exchange: &[(&str, &str)]) -> Case {
    let sheet = Sheet {
        level,
        about: "A file.".to_owned(),
        rule: rule.map(str::to_owned),
        code: code.map(str::to_owned),
        exchange: exchange.iter().map(|&(request, answer)| (request.to_owned(), answer.to_owned())).collect(),
    };
    Case { name: name.to_owned(), sheet, bytes: Vec::new() }
}

/// Asks a driver, a program for a shell whose variable `line` is each request, about some files.
fn ask(level: u8, cases: &[Case], program: &str) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    cases.iter().for_each(|case| case.write(folder.path()).expect("written"));
    run_in(folder.path(), level, &format!("while read -r line; do {program}; done"))
}

fn run_in(folder: &Path, level: u8, script: &str) -> Outcome {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    run(&Options { level, folders: vec![folder.to_owned()], seconds: 1, is_binding: false, command })
        .expect("runs")
}

fn told(outcome: &Outcome) -> String {
    outcome.to_string()
}

const SMALL: &[(&str, &str)] =
    &[("tuples", "tuples 2"), ("by grid 5", "rank 1"), ("name key", "none"), ("check", "clean")];
/// Answers of a driver that is right about [`SMALL`].
const RIGHT: &str = "case $line in open*) echo ok;; tuples) echo tuples 2;; by*) echo rank 1;; \
                     name*) echo none;; *) echo clean;; esac";

#[test]
fn right_answers_pass() {
    let outcome = ask(3, &[case("a", 1, None, None, SMALL)], RIGHT);
    assert!(outcome.is_right(), "{outcome}");
    assert_eq!((outcome.files, outcome.answers, outcome.above, outcome.skipped), (1, 5, 0, 0));
    assert!(
        told(&outcome).ends_with("level 3: 1 files, 5 answers, 0 above the level, 0 skipped: all right\n")
    );
}

#[test]
fn lies_are_told() {
    let outcome =
        ask(3, &[case("a", 1, None, None, SMALL)], "case $line in open*) echo ok;; *) echo tuples 3;; esac");
    assert!(!outcome.is_right());
    let text = told(&outcome);
    assert!(text.contains("valid/a.pleach: tuples: wanted tuples 2, got tuples 3\n"), "{text}");
    assert!(text.contains("4 differences in 1 files"), "{text}");
}

/// A level is refused where it may be, and a structure that is optional may be left out.
#[test]
fn higher_levels_are_refused_by_name() {
    let high = case("high", 2, None, None, SMALL);
    let above = "echo above 2 texts";
    assert!(ask(1, std::slice::from_ref(&high), above).is_right());
    assert!(!ask(2, std::slice::from_ref(&high), above).is_right(), "the file is of this level");
    assert!(!ask(1, &[high], "echo above 1 texts").is_right(), "the level is not above");
    let parts = "case $line in open*) echo ok;; tuples) echo tuples 2;; by*) echo above 3 grid;; \
                 name*) echo above 2 META;; *) echo clean;; esac";
    let outcome = ask(1, &[case("a", 1, None, None, SMALL)], parts);
    assert!(outcome.is_right(), "{outcome}");
    assert_eq!(outcome.above, 2);
    assert!(!ask(2, &[case("a", 1, None, None, SMALL)], parts).is_right());
    let skips = RIGHT.replace("echo rank 1", "echo skip");
    assert_eq!(ask(3, &[case("a", 1, None, None, SMALL)], &skips).skipped, 1);
    assert!(
        !ask(
            3,
            &[case("a", 1, None, None, &SMALL[..1])],
            "case $line in open*) echo ok;; *) echo skip;; esac"
        )
        .is_right()
    );
}

#[test]
fn refusals_name_the_rule() {
    let refused = |level| case("r", level, Some("mask"), Some("mask"), &[]);
    assert!(ask(2, &[refused(2)], "echo refuse mask").is_right());
    for answer in ["refuse tail", "ok", "refuse", "above 3 masks", "error mask"] {
        assert!(!ask(2, &[refused(2)], &format!("echo {answer}")).is_right(), "{answer}");
    }
    // Below the level of the fault a reader need not see it.
    for answer in ["refuse mask", "ok", "above 2 masks"] {
        assert!(ask(1, &[refused(2)], &format!("echo {answer}")).is_right(), "{answer}");
    }
    assert!(!ask(1, &[refused(2)], "echo refuse tail").is_right());
    // An interface that does not tell the rule is asked otherwise.
    let is_binding = |case: Case, is_binding: bool| {
        let folder = tempfile::tempdir().expect("a folder");
        case.write(folder.path()).expect("written");
        let command = ["sh", "-c", "while read -r line; do echo refuse -; done"].map(str::to_owned).to_vec();
        let options =
            Options { level: 2, folders: vec![folder.path().to_owned()], seconds: 1, is_binding, command };
        run(&options).expect("runs").is_right()
    };
    assert!(is_binding(refused(2), true) && !is_binding(refused(2), false));
    assert!(!is_binding(case("v", 1, None, None, SMALL), true), "a valid file");
}

#[test]
fn damage_is_found_at_its_level() {
    let exchange = [("at 0", "any"), ("check", "damaged order")];
    let file = |level| case("d", level, None, Some("order"), &exchange);
    let driver =
        |check: &str| format!("case $line in open*) echo ok;; at*) echo whatever 7;; *) echo {check};; esac");
    assert!(ask(3, &[file(3)], &driver("damaged order")).is_right());
    assert!(!ask(3, &[file(3)], &driver("damaged grid")).is_right());
    assert!(!ask(3, &[file(3)], &driver("clean")).is_right());
    assert!(ask(2, &[file(3)], &driver("clean")).is_right());
    assert!(!ask(2, &[file(3)], &driver("damaged grid")).is_right());
    assert!(!ask(1, &[file(1)], &driver("clean")).is_right());
    let errs = "case $line in open*) echo ok;; at*) echo error;; *) echo damaged order;; esac";
    assert!(!ask(3, &[file(3)], errs).is_right(), "any answer but an error");
}

/// A driver that ends is started again for the next file, but not for ever.
#[test]
fn crashes_are_told() {
    let cases: Vec<Case> = (0..12).map(|at| case(&format!("f{at:02}"), 1, None, None, SMALL)).collect();
    let outcome = ask(3, &cases, "case $line in open*) echo ok;; *) exit 7;; esac");
    let text = told(&outcome);
    assert!(text.contains("valid/f00.pleach: tuples: wanted tuples 2, but the driver ended\n"), "{text}");
    assert!(text.contains("valid/f00.pleach: the driver was ended: exit status: 7\n"), "{text}");
    assert!(text.contains("valid/f07.pleach") && !text.contains("valid/f08.pleach"), "{text}");
    assert!(text.contains("4 files were not asked about"), "{text}");
    // Once is told once.
    let once = RIGHT.replace("open*) echo ok", "open*f03*) exit 1;; open*) echo ok");
    let outcome = ask(3, &cases, &once);
    assert_eq!(outcome.differences.keys().collect::<Vec<_>>(), ["valid/f03.pleach"], "{outcome}");
}

#[test]
fn a_driver_that_hangs_is_ended() {
    let hangs = RIGHT.replace("tuples) echo tuples 2", "tuples) sleep 30");
    let text = told(&ask(3, &[case("a", 1, None, None, SMALL)], &hangs));
    assert!(text.contains("valid/a.pleach: tuples: wanted tuples 2, got no answer in 1 seconds\n"), "{text}");
}

#[test]
fn more_lines_than_requests_are_told() {
    let twice = RIGHT.replace("echo tuples 2", "echo tuples 2; echo tuples 2");
    let text = told(&ask(3, &[case("a", 1, None, None, SMALL)], &twice));
    assert!(text.contains("a line that no request asked for"), "{text}");
    let folder = tempfile::tempdir().expect("a folder");
    case("a", 1, None, None, SMALL).write(folder.path()).expect("written");
    let text = told(&run_in(folder.path(), 3, &format!("while read -r line; do {RIGHT}; done; echo bye")));
    assert!(text.contains("at the end: a line that no request asked for: bye"), "{text}");
    let text = told(&run_in(folder.path(), 3, &format!("while read -r line; do {RIGHT}; done; exit 3")));
    assert!(text.contains("at the end: the driver ended with exit status: 3"), "{text}");
}

#[test]
fn what_cannot_start_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    case("a", 1, None, None, SMALL).write(folder.path()).expect("written");
    let options = Options {
        level: 1,
        folders: vec![folder.path().to_owned()],
        seconds: 1,
        is_binding: false,
        command: vec!["/no/such/driver".to_owned()],
    };
    assert!(run(&options).is_err());
    assert!(run(&Options { folders: vec!["/no/such/folder".into()], ..options }).is_err());
}
