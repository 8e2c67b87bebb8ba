//! Every example runs, and checks its answers.

#[path = "../examples/build.rs"]
mod build;
#[path = "../examples/get.rs"]
mod get;
#[path = "../examples/hot_reload.rs"]
mod hot_reload;
#[path = "../examples/many.rs"]
mod many;
#[path = "../examples/progress.rs"]
mod progress;
#[path = "../examples/range.rs"]
mod range;
#[path = "../examples/records.rs"]
mod records;
#[path = "../examples/service.rs"]
mod service;
#[path = "../examples/strings.rs"]
mod strings;

macro_rules! examples {
    ($($name:ident $runs:ident)*) => {
        $(#[test]
        fn $runs() {
            $name::main().expect("the example runs");
        })*

        /// Examples that run.
        const RUN: &[&str] = &[$(concat!(stringify!($name), ".rs")),*];
    };
}
examples! {
    build build_runs
    get get_runs
    hot_reload hot_reload_runs
    many many_runs
    progress progress_runs
    range range_runs
    records records_runs
    service service_runs
    strings strings_runs
}

#[test]
fn all_are_run_and_short() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut names = Vec::new();
    for file in std::fs::read_dir(folder).expect("a folder").flatten() {
        let lines = std::fs::read_to_string(file.path()).expect("UTF-8").lines().count();
        assert!(lines <= 60, "{}: {lines} lines", file.path().display());
        names.push(file.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, RUN);
}
