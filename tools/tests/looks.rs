//! How text for people looks: widths, colours, names of types, and the page of `inspect --html`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn pleach(folder: &Path, args: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pleach"))
        .current_dir(folder)
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .envs(environment.iter().copied())
        .args(args)
        .output()
        .expect("it runs")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Files of numbers, of records and of texts, and a damaged one.
fn prepare(folder: &Path) {
    let rows: String =
        (0..3000).map(|row| format!("{row},2024-01-{:02}T12:00:00Z,{row}.25\n", 1 + row % 28)).collect();
    fs::write(folder.join("t.csv"), format!("id,when,price\n{rows}")).expect("a file");
    let types = "timestamp[us,UTC],decimal(10,2)";
    let build = ["build", "t.csv", "-o", "records", "--value", "when,price", "--value-type", types];
    let told = pleach(folder, &build, &[]);
    let told = String::from_utf8(told.stderr).expect("UTF-8");
    assert!(told.contains("when: i64 timestamp[us,UTC]") && told.contains("decimal(10,2)"), "{told}");
    assert!(!told.contains('\\') && !told.contains("Timestamp("), "{told}");
    let layout =
        ["build", "t.csv", "-o", "trees", "--value", "id", "--layout", "lines,spine,fast:auto,btree", "-q"];
    assert!(pleach(folder, &layout, &[]).status.success());
    let texts =
        ["build", "t.csv", "-o", "texts", "--key", "when", "--key-type", "utf8", "--value", "id", "-q"];
    assert!(pleach(folder, &texts, &[]).status.success());
    let mut bytes = fs::read(folder.join("records")).expect("a file");
    bytes[80] ^= 1;
    fs::write(folder.join("damaged"), bytes).expect("a file");
}

#[test]
fn inspect_obeys_the_width() {
    let folder = tempfile::tempdir().expect("a folder");
    prepare(folder.path());
    for file in ["records", "trees", "texts", "damaged"] {
        let of = |environment: &[(&str, &str)]| text(&pleach(folder.path(), &["inspect", file], environment));
        for (columns, most) in [("1", 60), ("60", 60), ("80", 80), ("100", 100), ("200", 200), ("900", 200)] {
            let shown = of(&[("COLUMNS", columns)]);
            let widest = shown.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(most), "{file} at {columns}: {widest:?}\n{shown}");
            assert!(shown.contains("LINE tuple lines") && shown.contains("3,000"), "{shown}");
            assert!(!shown.contains("Timestamp(") && !shown.contains('\u{1b}'), "{shown}");
        }
        assert_eq!(of(&[]), of(&[("COLUMNS", "100")]), "a pipe has 100 columns");
        assert_eq!(of(&[("COLUMNS", "none")]), of(&[]));
        assert!(!of(&[("LC_ALL", "C")]).contains('█') && of(&[("LC_ALL", "C")]).contains('#'));
    }
}

#[test]
fn colours_are_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    prepare(folder.path());
    let is_coloured = |args: &[&str], environment: &[(&str, &str)]| {
        text(&pleach(folder.path(), args, environment)).contains('\u{1b}')
    };
    for command in
        [&["inspect", "records"][..], &["stats", "records"], &["generations", "records"], &["get", "--help"]]
    {
        let with = |more: &[&'static str]| [command, more].concat();
        assert!(!is_coloured(command, &[]), "{command:?}: a pipe has no colours");
        assert!(is_coloured(&with(&["--color", "always"]), &[]), "{command:?}");
        assert!(
            is_coloured(&with(&["--color=always"]), &[("NO_COLOR", "1")]),
            "{command:?}: options count more"
        );
        assert!(!is_coloured(&with(&["--color", "never"]), &[("CLICOLOR_FORCE", "1")]), "{command:?}");
        assert!(!is_coloured(command, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "0")]), "{command:?}");
    }
    // Data has no colours.
    assert!(!is_coloured(&["get", "records", "1", "--color", "always"], &[]));
    assert!(!is_coloured(&["inspect", "records", "--json", "--color", "always"], &[]));
    assert_eq!(pleach(folder.path(), &["inspect", "records", "--color", "red"], &[]).status.code(), Some(2));
}

#[test]
fn names_in_a_file_do_not_become_markup() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(
        folder.join("t.csv"),
        "<script>alert(1)</script>,\"<img src=x onerror=\"\"y\"\">\"\n1,2\n2,3\n",
    )
    .expect("a file");
    assert!(pleach(folder, &["build", "t.csv", "-o", "<b>&'x", "-q"], &[]).status.success());
    assert!(pleach(folder, &["inspect", "<b>&'x", "--html", "p.html", "-q"], &[]).status.success());
    let page = fs::read_to_string(folder.join("p.html")).expect("a page");
    for markup in ["<script", "<img", "<b>", "http://", "https://", "url("] {
        assert!(!page.contains(markup), "{markup}");
    }
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;")
            && page.contains("<h1>&lt;b&gt;&amp;&#39;x</h1>")
    );
    // A page does not replace a Pleach file, nor that which it shows.
    for out in ["<b>&'x", "none/p.html"] {
        assert_eq!(
            pleach(folder, &["inspect", "<b>&'x", "--html", out, "--force"], &[]).status.code(),
            Some(8)
        );
    }
    assert_eq!(
        pleach(folder, &["inspect", "<b>&'x", "t.csv", "--html", "q.html"], &[]).status.code(),
        Some(2)
    );
    assert_eq!(fs::read_dir(folder).expect("a folder").count(), 3);
}

#[test]
fn misspelt_names_are_answered_with_similar_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("t.csv"), "order_id,customer\n1,2\n").expect("a file");
    let cases: [(&[&str], &str); 6] = [
        (&["buidl"], "did you mean 'build'?"),
        (&["build", "t.csv", "--outptu", "x"], "did you mean '--output'?"),
        (&["build", "t.csv", "-o", "x", "--key-type", "timstamp[us]"], "did you mean 'timestamp[us]'?"),
        (&["build", "t.csv", "-o", "x", "--value-type", "ut8"], "did you mean 'utf8'?"),
        (&["build", "t.csv", "-o", "x", "--key", "ordr_id"], "did you mean \"order_id\"?"),
        (&["build", "t.csv", "-o", "x", "--format", "parqet"], "did you mean 'parquet'?"),
    ];
    for (args, meant) in cases {
        let output = pleach(folder.path(), args, &[]);
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(error.contains(meant), "{args:?}: {error}");
    }
    let output = pleach(folder.path(), &["build", "t.csv", "-o", "x", "--key", "zzzz"], &[]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("did you mean"));
}
