//! Commands answer for a set what they answer for one file of the same tuples.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pleach")).args(args).current_dir(folder).output().expect("it runs")
}

fn pleach(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}: {:?}: {error}", output.status.code());
    String::from_utf8(output.stdout).expect("text")
}

fn fails(folder: &Path, args: &[&str], code: i32, words: &[&str]) -> String {
    let output = run(folder, args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    assert!(words.iter().all(|word| error.contains(word)), "{args:?}: {error}");
    error
}

/// A table, the options of its build, and keys to ask for.
struct Table {
    name: &'static str,
    rows: String,
    options: &'static [&'static str],
    keys: &'static [&'static str],
    low: &'static str,
    high: &'static str,
}

fn tables() -> Vec<Table> {
    let mut state = 7u64;
    let mut random = move |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let mut numbers = "id,v\n".to_owned();
    let mut texts = "id,v\n".to_owned();
    let mut records = "id,a,b\n".to_owned();
    let mut dates = "id,v\n".to_owned();
    let mut signed = "id,v\n".to_owned();
    for row in 0..600 {
        numbers += &format!("{},{row}\n", random(400));
        texts += &format!("word{:03},text of {row}\n", random(300));
        records += &format!("{},{row},{}\n", random(1000), row * 2);
        dates += &format!("2024-{:02}-{:02},{row}\n", 1 + random(12), 1 + random(28));
        signed += &format!("{},{}\n", random(1000) as i64 - 500, row);
    }
    vec![
        Table {
            name: "numbers",
            rows: numbers,
            options: &[],
            keys: &["0", "17", "399", "5000"],
            low: "50",
            high: "333",
        },
        Table {
            name: "texts",
            rows: texts,
            options: &["--key-type", "utf8", "--value-type", "utf8"],
            keys: &["word000", "word123", "word299", "x", "", "word12"],
            low: "word05",
            high: "word27",
        },
        Table {
            name: "records",
            rows: records,
            options: &["--value", "a,b", "--value-type", "u32,f64"],
            keys: &["3", "500", "999", "1000"],
            low: "100",
            high: "900",
        },
        Table {
            name: "dates",
            rows: dates,
            options: &["--key-type", "date"],
            keys: &["2024-01-01", "2024-06-15", "2024-12-28", "2025-01-01"],
            low: "2024-02-10",
            high: "2024-11-05",
        },
        Table {
            name: "signed",
            rows: signed,
            options: &["--key-type", "i64"],
            keys: &["-500", "-1", "0", "77", "-1000", "1000"],
            low: "-250",
            high: "250",
        },
    ]
}

#[test]
fn sets_answer_as_files_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for Table { name, rows, options, keys, low, high } in tables() {
        let (csv, file, set) = (format!("{name}.csv"), format!("{name}.pleach"), format!("{name}.set"));
        fs::write(folder.join(&csv), rows).expect("a file");
        fs::write(folder.join("keys.txt"), keys.join("\n") + "\n").expect("a file");
        pleach(folder, &[&["build", &csv, "-o", &file][..], options].concat());
        pleach(
            folder,
            &[&["set", "build", &csv, "-o", &set, "--partition-tuples", "50"][..], options].concat(),
        );
        let inspected: Value =
            serde_json::from_str(&pleach(folder, &["inspect", &set, "--json"])).expect("JSON");
        assert!(inspected["files"].as_u64().is_some_and(|files| files > 5), "{inspected}");
        let near = |how: &'static str| [&["get", "@", how][..], keys].concat();
        let mut asked: Vec<Vec<&str>> = vec![
            [&["get", "@"][..], keys].concat(),
            [&["get", "@", "--all", "--json"][..], keys].concat(),
            [&["get", "@", "--rank", "--missing", "-"][..], keys].concat(),
            [&["get", "@", "--exists"][..], keys].concat(),
            [&["get", "@", "--count", "--all"][..], keys].concat(),
            vec!["get", "@", "--keys", "keys.txt", "--missing", "none"],
            near("--floor"),
            near("--ceiling"),
            vec!["range", "@", "..", ".."],
            vec!["range", "@", low, high],
            vec!["range", "@", low, high, "--inclusive", "--reverse", "--limit", "17", "--json"],
            vec!["range", "@", high, low, "--count"],
            vec!["range", "@", low, "..", "--count"],
            vec!["sample", "@", "20", "--seed", "5"],
            vec!["sample", "@", "100000"],
        ];
        if name != "texts" {
            asked.push(near("--nearest"));
        } else {
            asked.push(vec!["range", "@", "--prefix", "word1"]);
            asked.push(vec!["range", "@", "--prefix", "word299"]);
            asked.push(vec!["range", "@", "--prefix", "z", "--count"]);
        }
        for args in asked {
            let with = |input: &str| -> Vec<String> {
                args.iter()
                    .map(|arg| if *arg == "@" { input.to_owned() } else { (*arg).to_owned() })
                    .collect()
            };
            let output = |input: &str| {
                let args = with(input);
                let output = run(folder, &args.iter().map(String::as_str).collect::<Vec<_>>());
                (
                    output.status.code(),
                    String::from_utf8_lossy(&output.stdout).into_owned(),
                    output.stderr.is_empty(),
                )
            };
            let (of_file, of_set) = (output(&file), output(&set));
            assert_eq!(of_set, of_file, "{name}: {args:?}");
            assert!(matches!(of_file.0, Some(0 | 1)), "{name}: {args:?}");
        }
        for out in ["a.csv", "b.csv"] {
            pleach(folder, &["export", if out == "a.csv" { &file } else { &set }, "-o", out, "--force"]);
        }
        let read = |name: &str| fs::read(folder.join(name)).expect("a file");
        assert_eq!(read("a.csv"), read("b.csv"), "{name}");
        assert_eq!(run(folder, &["diff", &file, &set]).status.code(), Some(0), "{name}");
        let stats = |input: &str| {
            let document: Value =
                serde_json::from_str(&pleach(folder, &["stats", input, "--json"])).expect("JSON");
            (document["tuples"].clone(), document["keys"].clone(), document["values"].clone())
        };
        assert_eq!(stats(&set), stats(&file), "{name}");
        let clean: Value =
            serde_json::from_str(&pleach(folder, &["fsck", &set, "--digests", "--json"])).expect("JSON");
        assert_eq!(clean["verdict"], "clean", "{name}");
    }
}

#[test]
fn relational_commands_take_sets() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rows: String = (0..300).map(|row| format!("{},{row}\n", row * 7 % 100)).collect();
    fs::write(folder.join("t.csv"), "id,v\n".to_owned() + &rows).expect("a file");
    let rows: String = (0..50).map(|row| format!("{},{row}\n", row * 3)).collect();
    fs::write(folder.join("u.csv"), "id,v\n".to_owned() + &rows).expect("a file");
    for table in ["t", "u"] {
        let (csv, file, set) = (format!("{table}.csv"), format!("{table}.pleach"), format!("{table}.set"));
        pleach(folder, &["build", &csv, "-o", &file]);
        pleach(folder, &["set", "build", &csv, "-o", &set, "--partitions", "4"]);
    }
    let cases: [&[&str]; 7] = [
        &["select", "t.X", "--where", "value % 2 == 0"],
        &["project", "t.X", "--columns", "k=value,key"],
        &["reduce", "t.X", "--op", "sum"],
        &["join", "t.X", "u.X"],
        &["union", "t.X", "u.X"],
        &["intersect", "t.X", "u.X"],
        &["difference", "t.X", "u.X"],
    ];
    for case in cases {
        let run = |kind: &str| {
            let args: Vec<String> = case.iter().map(|arg| arg.replace(".X", kind)).collect();
            let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
            args.extend(["-o", "-", "-q"]);
            pleach(folder, &args)
        };
        assert_eq!(run(".set"), run(".pleach"), "{case:?}");
        assert!(!run(".set").is_empty(), "{case:?}");
    }
}

#[test]
fn workers_write_and_a_committer_publishes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (name, range) in [("low", 0..100), ("high", 100..200), ("over", 150..160)] {
        let rows: String = range.map(|row| format!("{row},{row}\n")).collect();
        fs::write(folder.join(format!("{name}.csv")), "id,v\n".to_owned() + &rows).expect("a file");
        let entries =
            pleach(folder, &["set", "write", &format!("{name}.csv"), "-o", "s", "--partition-tuples", "30"]);
        fs::write(folder.join(format!("{name}.json")), entries).expect("a file");
    }
    fails(folder, &["get", "s", "5"], 8, &["no set", "s"]);
    pleach(folder, &["set", "commit", "s", "high.json"]);
    assert_eq!(pleach(folder, &["range", "s", "..", "..", "--count"]), "100\n");
    pleach(folder, &["set", "commit", "s", "low.json"]);
    assert_eq!(pleach(folder, &["range", "s", "..", "..", "--count"]), "200\n");
    fails(folder, &["set", "commit", "s", "over.json"], 8, &["keys in common", "150"]);
    fails(folder, &["set", "commit", "s", "low.csv"], 8, &["not the entries"]);
    pleach(folder, &["set", "commit", "s", "over.json", "--replace"]);
    assert_eq!(pleach(folder, &["get", "s", "155", "5"]), "155\t155\n");
    let listed = pleach(folder, &["generations", "s"]);
    assert!(listed.contains("current") && listed.lines().count() == 4, "{listed}");
    pleach(folder, &["rollback", "s", "2"]);
    assert_eq!(pleach(folder, &["get", "s", "155", "5"]), "155\t155\n5\t5\n");
    // A generation by its manifest.
    let manifest = "s/manifests/00000000000000000001.manifest";
    assert_eq!(pleach(folder, &["range", manifest, "..", "..", "--count"]), "100\n");
    let entries = fs::read_to_string(folder.join("low.json")).expect("a file").replace("files/", "files/../");
    fs::write(folder.join("bad.json"), entries).expect("a file");
    fails(folder, &["set", "commit", "s", "bad.json"], 2, &["not the name of a file"]);
    fails(folder, &["set", "commit", "s", "low.json"], 8, &["keys in common"]);
    fails(folder, &["set", "commit", "s", "low.json", "--replace", "--grace", "0s"], 8, &["too old"]);
    let swept: Value = serde_json::from_str(&pleach(
        folder,
        &["set", "sweep", "s", "--grace", "0", "--keep", "1", "--json"],
    ))
    .expect("JSON");
    assert_eq!(swept["kept_generations"], serde_json::json!(["4"]));
    assert_eq!(pleach(folder, &["range", "s", "..", "..", "--count"]), "200\n");
    assert!(pleach(folder, &["fsck", "s"]).contains("clean"));
}

#[test]
fn changes_apply_to_sets() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rows: String = (0..500).map(|row| format!("{row},{row}\n")).collect();
    fs::write(folder.join("t.csv"), "id,v\n".to_owned() + &rows).expect("a file");
    fs::write(folder.join("changes.csv"), "op,id,v\nput,5,50\ndel,6,\nadd,450,1\nput,9000,9\n")
        .expect("a file");
    pleach(folder, &["build", "t.csv", "-o", "t.pleach"]);
    pleach(folder, &["set", "build", "t.csv", "-o", "s", "--partitions", "10"]);
    pleach(folder, &["rebuild", "t.pleach", "--apply", "changes.csv"]);
    let told: Value =
        serde_json::from_str(&pleach(folder, &["set", "rebuild", "s", "--apply", "changes.csv", "--json"]))
            .expect("JSON");
    assert_eq!(
        (told["touched_files"].as_u64(), told["carried_files"].as_u64()),
        (Some(2), Some(8)),
        "{told}"
    );
    let all = |input: &str| pleach(folder, &["range", input, "..", ".."]);
    assert_eq!(all("s"), all("t.pleach"));
    pleach(folder, &["rollback", "s"]);
    assert_eq!(all("s").lines().count(), 500);
    fails(
        folder,
        &["rebuild", "s", "--apply", "changes.csv", "--salvage"],
        2,
        &["--salvage", "not for sets"],
    );
    fails(folder, &["set", "rebuild", "none", "--apply", "changes.csv"], 8, &["no set"]);
}

#[test]
fn faults_of_files_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rows: String = (0..100).map(|row| format!("{row},{row}\n")).collect();
    fs::write(folder.join("t.csv"), "id,v\n".to_owned() + &rows).expect("a file");
    pleach(folder, &["set", "build", "t.csv", "-o", "s", "--partitions", "10"]);
    let inspected: Value = serde_json::from_str(&pleach(folder, &["inspect", "s", "--json"])).expect("JSON");
    let name = inspected["entries"][4]["name"].as_str().expect("a name").to_owned();
    fs::remove_file(folder.join("s").join(&name)).expect("it is removed");
    assert_eq!(pleach(folder, &["get", "s", "5"]), "5\t5\n");
    fails(folder, &["get", "s", "45"], 8, &["missing", &name]);
    fails(folder, &["range", "s", "..", ".."], 8, &["missing", &name]);
    fails(folder, &["export", "s", "-o", "x.csv"], 8, &[&name]);
    assert!(!folder.join("x.csv").exists());
    fails(folder, &["select", "s", "--where", "true", "-o", "x.csv"], 8, &[&name]);
    let checked = run(folder, &["fsck", "s"]);
    assert_eq!(checked.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&checked.stdout).contains(&name));
    // Without it, and said.
    let output = run(folder, &["range", "s", "..", "..", "--partial"]);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 90);
    assert!(String::from_utf8_lossy(&output.stderr).contains(&name));
    let output = run(folder, &["get", "s", "45", "5", "--partial", "--json"]);
    assert_eq!(output.status.code(), Some(4));
    let last = String::from_utf8_lossy(&output.stdout).lines().last().map(str::to_owned).expect("lines");
    let last: Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!(
        (&last["schema"], &last["left_out"][0]["tuples"]),
        (&"pleach.left-out.v1".into(), &"10".into())
    );
    let output = run(folder, &["select", "s", "--where", "true", "-o", "x.csv", "--partial"]);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(fs::read_to_string(folder.join("x.csv")).expect("a file").lines().count(), 91);
    let output = run(folder, &["get", "s", "5", "--partial"]);
    assert_eq!(output.status.code(), Some(0), "nothing was left out");
}

#[test]
fn what_no_set_can_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("t.csv"), "id,v\n1,2\n").expect("a file");
    fs::create_dir(folder.join("mine")).expect("a folder");
    fs::write(folder.join("mine/letter"), "dear").expect("a file");
    fails(folder, &["set", "build", "t.csv", "-o", "mine"], 2, &["letter"]);
    fails(folder, &["set", "build", "t.csv", "-o", "s", "--partitions", "0"], 2, &["one file at least"]);
    fails(folder, &["set", "build", "t.csv", "-o", "s", "--key-type", "hash64"], 2, &["whole"]);
    fails(folder, &["set", "build", "t.csv", "-o", "s", "--key", "none"], 8, &["none"]);
    fails(folder, &["set", "build", "none.csv", "-o", "s"], 8, &["none.csv"]);
    assert!(!folder.join("s").exists(), "nothing is left");
    fails(folder, &["set", "sweep", "mine"], 8, &["no set"]);
    pleach(folder, &["set", "build", "t.csv", "-o", "s"]);
    fails(folder, &["get", "s", "1", "--strategy", "sorted"], 2, &["--strategy"]);
    fails(folder, &["fsck", "s", "--salvage", "x"], 2, &["--salvage"]);
    fails(folder, &["get", "s", "x"], 2, &["x"]);
    // Empty tables make empty sets, which answer.
    fs::write(folder.join("e.csv"), "id,v\n").expect("a file");
    pleach(folder, &["set", "build", "e.csv", "-o", "e"]);
    assert_eq!(pleach(folder, &["range", "e", "..", "..", "--count"]), "0\n");
    assert_eq!(pleach(folder, &["get", "e", "1"]), "");
    pleach(folder, &["export", "e", "-o", "e2.csv"]);
}

/// A look-up in a set of 1,000 files opens one of them; counting opens two, and the number of files does not matter.
#[test]
fn a_look_up_opens_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rows: String = (0..10_000).map(|row| format!("{row},{row}\n")).collect();
    fs::write(folder.join("t.csv"), "id,v\n".to_owned() + &rows).expect("a file");
    pleach(folder, &["set", "build", "t.csv", "-o", "s", "--partition-tuples", "10"]);
    assert_eq!(fs::read_dir(folder.join("s/files")).expect("a folder").count(), 1000);
    let opened = |args: &[&str]| -> Option<usize> {
        let traced = Command::new("strace")
            .args([
                "-f",
                "-qq",
                "-e",
                "trace=open,openat,openat2",
                "-o",
                "trace",
                env!("CARGO_BIN_EXE_pleach"),
            ])
            .args(args)
            .current_dir(folder)
            .output();
        // Without strace, or where it may not trace, the counter of `set/tests/oracle.rs` is what there is.
        traced.ok().filter(|output| matches!(output.status.code(), Some(0 | 1)))?;
        let trace = fs::read_to_string(folder.join("trace")).ok()?;
        let is_file = |line: &&str| line.contains("s/files/") && !line.contains("ENOENT");
        Some(trace.split('\n').filter(is_file).count())
    };
    for (args, files) in [
        (&["get", "s", "5005"][..], 1),
        (&["get", "s", "5005", "5009", "5000"], 1),
        (&["get", "s", "77777"], 0),
        (&["get", "s", "15", "9995", "12"], 2),
        (&["range", "s", "15", "9995", "--count"], 2),
        (&["range", "s", "20", "9990", "--count"], 0),
        (&["inspect", "s"], 0),
        (&["range", "s", "17", "23"], 2),
    ] {
        if let Some(found) = opened(args) {
            assert_eq!(found, files, "{args:?}");
        }
    }
}
