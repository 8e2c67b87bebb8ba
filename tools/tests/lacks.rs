//! Missing features of a file system or its mount: strace makes calls fail with the error that says so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn pleach(folder: &Path, inject: Option<&str>, args: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_pleach");
    let mut command = match inject {
        None => Command::new(binary),
        Some(inject) => {
            let mut command = Command::new("strace");
            command.args(["-f", "-qq", "-o", "trace", "-e", &format!("inject={inject}"), binary]);
            command
        }
    };
    command.args(args).current_dir(folder).output().expect("runs")
}

fn done(folder: &Path, inject: Option<&str>, args: &[&str]) {
    let output = pleach(folder, inject, args);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{inject:?} {args:?}: {text}");
    if let Some(inject) = inject {
        let trace = fs::read_to_string(folder.join("trace")).expect("a trace");
        assert!(trace.contains("INJECTED"), "{inject}: {args:?} does not make the call");
        fs::remove_file(folder.join("trace")).expect("removed");
    }
}

#[test]
fn what_is_lacking_is_done_without() {
    let folder = TempDir::new().expect("a temporary folder");
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !traced.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED what file systems lack: no strace here");
        return;
    }
    let at = |name: &str| folder.path().join(name);
    fs::write(at("t.csv"), "id,value\n1,10\n").expect("written");
    fs::write(at("c.csv"), "op,id,value\nput,1,11\n").expect("written");
    let calls: [(&str, &[&str], &str); 4] = [
        ("flock", &["ENOLCK", "ENOSYS", "EOPNOTSUPP", "EBADF", "EINVAL"], ""),
        ("link,linkat", &["EPERM", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV"], ""),
        // The second one is the folder's.
        ("fsync", &["EINVAL", "EOPNOTSUPP", "ENOSYS", "EBADF", "EACCES"], ":when=2"),
        ("fchmod", &["EPERM", "EOPNOTSUPP", "ENOSYS"], ""),
    ];
    for (call, errors, when) in calls {
        for error in errors {
            let inject = format!("{call}:error={error}{when}");
            let inject = Some(inject.as_str());
            done(folder.path(), None, &["build", "t.csv", "-o", "t.pleach"]);
            fs::set_permissions(at("t.pleach"), fs::Permissions::from_mode(0o640)).expect("set");
            let old = fs::read(at("t.pleach")).expect("there");
            done(folder.path(), inject, &["rebuild", "t.pleach", "--apply", "c.csv", "--keep", "1"]);
            let output = pleach(folder.path(), None, &["get", "t.pleach", "1"]);
            assert_eq!(output.stdout, b"1\t11\n");
            let kept = fs::read(at("t.pleach.g1")).expect("kept");
            assert!(kept == old, "{inject:?}");
            if call != "link,linkat" {
                done(folder.path(), inject, &["build", "t.csv", "-o", "t.pleach"]);
                done(folder.path(), inject, &["compact", "t.pleach.g1", "-o", "t.pleach"]);
                fs::write(at("out.csv"), "old").expect("written");
                done(folder.path(), inject, &["export", "t.pleach", "-o", "out.csv"]);
            }
            let mut names: Vec<String> = fs::read_dir(folder.path())
                .expect("a folder")
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
                .collect();
            names.sort();
            names.retain(|name| name != "out.csv");
            assert_eq!(names, ["c.csv", "t.csv", "t.pleach", "t.pleach.g1"], "{inject:?}");
            fs::remove_file(at("t.pleach")).expect("removed");
            fs::remove_file(at("t.pleach.g1")).expect("removed");
        }
    }
}
