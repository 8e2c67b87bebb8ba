//! Every example runs, and checks its answers.

macro_rules! examples {
    ($($name:ident)*) => {
        $(mod $name {
            include!(concat!("../examples/", stringify!($name), ".rs"));
            #[test]
            fn runs() {
                main().expect("the example runs");
            }
        })*

        /// Examples that run.
        const RUN: &[&str] = &[$(concat!(stringify!($name), ".rs")),*];
    };
}
examples! { build get hot_reload many progress range records service strings }

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
