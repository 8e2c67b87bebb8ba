//! Limits around the process, one table each: of its address space, of threads, of open files. Every
//! command ends in an exit code of the contract, with one line at most, and leaves nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};

/// A folder that anybody may write to, with the program and some files.
struct Place {
    folder: TempDir,
    program: PathBuf,
}

/// User without rights.
const NOBODY: u32 = 65534;

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let open =
            |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("permitted");
        open(folder.path());
        // The build folder may be closed to others.
        let program = folder.path().join("program");
        if fs::hard_link(env!("CARGO_BIN_EXE_pleach"), &program).is_err() {
            fs::copy(env!("CARGO_BIN_EXE_pleach"), &program).expect("copied");
        }
        let place = Self { folder, program };
        place
            .write("t.csv", "id,v\n1,10\n2,20\n")
            .write("c.csv", "op,id,v\nadd,1,11\n")
            .write("keys", "1\n2\n");
        for (name, layout) in
            [("t.pleach", "lines,spine,columns,packed,classic,harmonia"), ("u.pleach", "lines,spine")]
        {
            let made = place.run("", &["build", "t.csv", "-o", name, "--layout", layout, "-q"]);
            assert!(made.status.success(), "{made:?}");
            open(&place.path(name));
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), bytes).expect("written");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o666)).expect("permitted");
        self
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("a folder");
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs the command under a limit, as `ulimit` takes it.
    fn run(&self, limit: &str, arguments: &[&str]) -> Output {
        let script = if limit.is_empty() { String::new() } else { format!("ulimit {limit} && ") };
        let mut command = Command::new("bash");
        command.arg("-c").arg(format!("{script}exec \"$0\" \"$@\"")).arg(&self.program).args(arguments);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("HOME", self.folder.path()).env("XDG_CACHE_HOME", self.folder.path());
        // The system does not count root's threads.
        let is_root = fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0);
        if limit.contains("-u") && is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().expect("runs")
    }

    /// The same, and what must hold of every end: no signal, no panic, one line at most, nothing left but `made`.
    fn ends(&self, limit: &str, arguments: &[&str], codes: &[i32]) -> String {
        let before = self.names();
        let output = self.run(limit, arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code();
        assert!(code.is_some_and(|code| codes.contains(&code)), "{limit}: {arguments:?}: {output:?}");
        assert!(error.lines().count() <= 1 && !error.contains("panicked"), "{limit}: {arguments:?}: {error}");
        let made: Vec<String> = self.names().into_iter().filter(|name| !before.contains(name)).collect();
        if code == Some(0) {
            assert!(made.iter().all(|name| name.starts_with("out") || name == ".cache"), "{made:?}");
            made.iter().filter(|name| name.starts_with("out")).for_each(|name| {
                fs::remove_file(self.path(name)).expect("removed");
            });
        } else {
            assert!(made.is_empty(), "{limit}: {arguments:?} left {made:?}");
        }
        error
    }
}

/// Every command that works in parallel, or may.
const COMMANDS: &[&[&str]] = &[
    &["build", "t.csv", "-o", "out.pleach", "-q"],
    &[
        "build",
        "t.csv",
        "t.csv",
        "-o",
        "out.pleach",
        "-q",
        "--layout",
        "lines,spine,grid,columns,packed,classic,harmonia",
    ],
    &["get", "t.pleach", "1"],
    &["get", "t.pleach", "--keys", "keys", "-q"],
    &["range", "t.pleach", "..", ".."],
    &["inspect", "t.pleach"],
    &["fsck", "t.pleach", "-q"],
    &["export", "t.pleach", "-o", "out.csv", "-q"],
    &["export", "t.pleach", "-o", "out.parquet", "-q"],
    &["rebuild", "u.pleach", "--apply", "c.csv", "-q"],
    &["rebuild", "u.pleach", "--apply", "c.csv", "-q", "--method", "merge"],
    &["compact", "t.pleach", "t.pleach", "-o", "out.pleach", "-q"],
    &["select", "t.pleach", "--where", "key > 0", "-o", "out.pleach", "-q"],
    &["project", "t.pleach", "--columns", "value,key", "-o", "out.pleach", "-q"],
    &["reduce", "t.pleach", "--op", "sum", "-o", "out.pleach", "-q"],
    &["union", "t.pleach", "t.pleach", "-o", "out.pleach", "-q"],
    &["intersect", "t.pleach", "t.pleach", "-o", "out.pleach", "-q"],
    &["difference", "t.pleach", "t.pleach", "-o", "out.csv", "-q"],
    &["join", "t.pleach", "t.pleach", "-o", "out.csv", "-q"],
    &["product", "t.pleach", "t.pleach", "-o", "out.csv", "-q"],
    &["devices"],
    &["completions", "bash"],
];

#[test]
fn without_threads_every_command_works() {
    let place = Place::new();
    for arguments in COMMANDS {
        place.ends("-u 1", arguments, &[0]);
    }
    // More threads than possible are requested: one sentence.
    for arguments in [COMMANDS[0], &["fsck", "t.pleach", "-q"], COMMANDS[18]] {
        let asked = [arguments, &["--threads", "3"]].concat();
        let error = place.ends("-u 1", &asked, &[8]);
        assert!(
            error.contains("cannot start 3 threads") && error.contains("ulimit -u"),
            "{asked:?}: {error}"
        );
    }
}

#[test]
fn in_little_memory_every_command_works_or_says_so() {
    let place = Place::new();
    // From what hardly loads the program to what is enough.
    for kibibytes in [90_000, 110_000, 150_000, 250_000, 1_000_000] {
        for arguments in COMMANDS {
            let limit = format!("-v {kibibytes}");
            // 127: the program itself cannot be loaded.
            let error = place.ends(&limit, arguments, &[0, 8, 127]);
            assert!(
                error.is_empty() || error.contains("ulimit") || error.contains("shared"),
                "{limit}: {error}"
            );
        }
    }
}

#[test]
fn memory_that_cannot_be_had_is_one_sentence() {
    let place = Place::new();
    let numbers: Vec<u8> =
        (0..8_000_000_u64).flat_map(|row| (row * 7919 % 8_000_009).to_le_bytes()).collect();
    place.write("r.raw", numbers);
    let arguments = ["build", "r.raw", "--raw", "u64", "-o", "out.pleach", "--memory", "1G", "-q"];
    let error = place.ends("-v 160000", &arguments, &[8]);
    assert!(error.starts_with("error: out of memory: ") && error.contains("--memory"), "{error}");
    let mut arguments = arguments.to_vec();
    arguments.push("--json");
    let error = place.ends("-v 160000", &arguments, &[8]);
    assert!(error.contains("out of memory: "), "{error}");
    assert!(
        serde_json::from_str::<serde_json::Value>(&error).is_ok_and(|error| error["code"].is_string()),
        "{error}"
    );
}

#[test]
fn an_arrow_file_that_unpacks_to_more_than_it_can_is_refused() {
    let place = Place::new();
    let columns: [(&str, ArrayRef); 2] = [
        ("k", Arc::new(UInt64Array::from_iter_values(0..60))),
        ("v", Arc::new(StringArray::from_iter_values((0..60).map(|row| format!("text {}", row % 3))))),
    ];
    let table = RecordBatch::try_from_iter(columns).expect("a batch");
    for codec in [arrow_ipc::CompressionType::LZ4_FRAME, arrow_ipc::CompressionType::ZSTD] {
        let options = arrow_ipc::writer::IpcWriteOptions::default()
            .try_with_compression(Some(codec))
            .expect("is supported");
        let mut bytes = Vec::new();
        let mut writer =
            arrow_ipc::writer::FileWriter::try_new_with_options(&mut bytes, &table.schema(), options);
        let writer = writer.as_mut().expect("writes");
        writer.write(&table).and_then(|()| writer.finish()).expect("writes");
        let at = bytes.windows(8).position(|bytes| bytes == 480_u64.to_le_bytes()).expect("the keys");
        for stated in [1_u64 << 40, 1 << 62] {
            bytes[at..at + 8].copy_from_slice(&stated.to_le_bytes());
            place.write("t.arrow", &bytes);
            let error = place.ends("-v 1000000", &["build", "t.arrow", "-o", "out.pleach"], &[4, 8]);
            assert!(error.contains("t.arrow") && error.contains("decompress to more than it can"), "{error}");
        }
    }
}

#[test]
fn many_files_are_merged_under_a_limit_of_few() {
    let place = Place::new();
    let names: Vec<String> = (0..70).map(|number| format!("in{number}.pleach")).collect();
    for name in &names {
        fs::copy(place.path("t.pleach"), place.path(name)).expect("copied");
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for command in ["compact", "union", "intersect"] {
        let arguments =
            [&[command], &names[..if command == "compact" { 70 } else { 2 }], &["-o", "out.pleach", "-q"]]
                .concat();
        // The soft limit is raised; what is hard is said.
        place.ends("-S -n 40", &arguments, &[0]);
        let error = place.ends("-n 40", &arguments, if command == "compact" { &[8] } else { &[0] });
        let expected =
            "error: too many open files: 70 are merged at once: raise the limit above 86 with ulimit -n";
        assert!(command != "compact" || error.starts_with(expected), "{error}");
    }
}
