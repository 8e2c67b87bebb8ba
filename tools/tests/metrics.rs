//! `--metrics`: what a run did, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

fn run(folder: &Path, args: &[&str]) -> i32 {
    let output =
        Command::new(env!("CARGO_BIN_EXE_pleach")).current_dir(folder).args(args).output().expect("it runs");
    output.status.code().expect("a code")
}

/// Reads a file of metrics strictly: help, then type, then samples, of names and labels that are allowed.
fn read(path: &Path) -> BTreeMap<String, f64> {
    let text = fs::read_to_string(path).expect("metrics");
    assert!(text.ends_with('\n'));
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
    };
    let (mut samples, mut helped, mut typed) = (BTreeMap::new(), String::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help");
            assert!(is_name(name) && help.len() > 5, "{line}");
            helped = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert_eq!(rest, format!("{helped} gauge"));
            typed.clone_from(&helped);
        } else {
            let (name, rest) = line.split_once('{').expect("labels");
            assert!(is_name(name) && name == typed && name.starts_with("pleach_"), "{line}");
            let (labels, value) = rest.rsplit_once("} ").expect("a value");
            // Text between quotes has no raw quote.
            let mut left = labels;
            let mut phase = String::new();
            while !left.is_empty() {
                let (label, rest) = left.split_once("=\"").expect("a label");
                assert!(is_name(label), "{line}");
                let mut end = None;
                let mut is_escaped = false;
                for (at, letter) in rest.char_indices() {
                    match letter {
                        _ if is_escaped => is_escaped = false,
                        '\\' => is_escaped = true,
                        '"' => {
                            end = Some(at);
                            break;
                        }
                        _ => {}
                    }
                }
                let end = end.expect("a closing quote");
                if label == "phase" {
                    phase = format!(" {}", &rest[..end]);
                }
                left = rest[end + 1..].strip_prefix(',').unwrap_or(&rest[end + 1..]);
            }
            let value: f64 = value.parse().expect("a number");
            assert!(samples.insert(format!("{name}{phase}"), value).is_none(), "twice: {line}");
        }
    }
    samples
}

#[test]
fn metrics_say_what_was_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let metrics = folder.join("m.prom");
    let rows: String = (0..5000).map(|row| format!("{row},{row}\n")).collect();
    fs::write(folder.join("t\"a.csv"), format!("id,v\n{rows}")).expect("a file");
    fs::write(folder.join("c.csv"), "op,key,value\nput,7,9\nadd,90000,1\n").expect("a file");
    let build = ["build", "t\"a.csv", "-o", "t\"\\a", "--metrics", "m.prom", "-q"];
    assert_eq!(run(folder, &build), 0);
    let told = read(&metrics);
    let bytes = fs::metadata(folder.join("t\"\\a")).expect("a file").len() as f64;
    let of = |name: &str| told.get(name).copied();
    assert_eq!((of("pleach_tuples"), of("pleach_written_bytes")), (Some(5000.0), Some(bytes)));
    assert_eq!((of("pleach_generation"), of("pleach_exit_code")), (Some(1.0), Some(0.0)));
    assert!(of("pleach_read_bytes") > Some(rows.len() as f64 - 1.0), "{told:?}");
    assert!(told.keys().any(|name| name.starts_with("pleach_phase_duration_seconds ")), "{told:?}");
    let success = of("pleach_last_success_timestamp_seconds").expect("a time");
    assert!(success > 1.7e9);

    assert_eq!(run(folder, &["rebuild", "t\"\\a", "--apply", "c.csv", "--metrics", "m.prom", "-q"]), 0);
    assert_eq!((read(&metrics)["pleach_tuples"], read(&metrics)["pleach_generation"]), (5001.0, 2.0));
    assert_eq!(run(folder, &["compact", "t\"\\a", "-o", "both", "--metrics", "m.prom", "-q"]), 0);
    assert_eq!(read(&metrics)["pleach_tuples"], 5001.0);
    assert_eq!(run(folder, &["fsck", "both", "--metrics", "m.prom", "-q"]), 0);
    assert_eq!((read(&metrics)["pleach_findings"], read(&metrics)["pleach_damaged"]), (0.0, 0.0));

    // Damage and failures are told; the last success is that before.
    let success = read(&metrics)["pleach_last_success_timestamp_seconds"];
    let mut bytes = fs::read(folder.join("both")).expect("a file");
    bytes[13_000] ^= 1;
    fs::write(folder.join("bad"), bytes).expect("a file");
    assert_eq!(run(folder, &["fsck", "bad", "--metrics", "m.prom", "-q"]), 4);
    let told = read(&metrics);
    assert!(
        told["pleach_findings"] >= 1.0 && told["pleach_damaged"] == 1.0 && told["pleach_exit_code"] == 4.0
    );
    assert_eq!(told["pleach_last_success_timestamp_seconds"], success);
    // Each file has its own findings.
    assert_eq!(run(folder, &["fsck", "both", "bad", "--metrics", "m.prom", "-q"]), 4);
    let text = fs::read_to_string(&metrics).expect("metrics");
    for (file, damaged) in [("both", 0), ("bad", 1)] {
        let line = format!("pleach_damaged{{command=\"fsck\",file=\"{file}\"}} {damaged}\n");
        assert!(text.contains(&line), "{file}: {text}");
    }
    assert_eq!(run(folder, &["build", "t\"a.csv", "-o", "x", "--key", "none", "--metrics", "m.prom"]), 8);
    assert_eq!(read(&metrics)["pleach_exit_code"], 8.0);
    assert_eq!(read(&metrics)["pleach_last_success_timestamp_seconds"], success);
}

#[test]
fn a_bad_path_is_an_error_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("t.csv"), "id,v\n1,2\n").expect("a file");
    assert_eq!(run(folder, &["build", "t.csv", "-o", "kept", "-q"]), 0);
    let kept = fs::read(folder.join("kept")).expect("a file");
    for path in ["none/m.prom", ".", "t.csv", "kept", "new"] {
        let code = run(folder, &["build", "t.csv", "-o", "new", "--metrics", path, "-q"]);
        assert_ne!(code, 0, "{path}");
        assert!(!folder.join("new").exists(), "{path}");
    }
    assert_eq!(fs::read(folder.join("kept")).expect("a file"), kept);
    assert_eq!(fs::read(folder.join("t.csv")).expect("a file"), b"id,v\n1,2\n");
    assert_eq!(fs::read_dir(folder).expect("a folder").count(), 2, "no file is left over");
}
