//! The command `pleach` with its feature `remote`: `PLEACH_REMOTE` is its path.

use crate::kit::plain::{COMMON, Style};
use crate::kit::{BUCKET, KEY, Server};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

struct Pleach<'s> {
    program: PathBuf,
    server: &'s Server,
}

impl<'s> Pleach<'s> {
    /// Returns the program; `None`, aloud, if it was not built.
    fn new(server: &'s Server) -> Option<Self> {
        let program = std::env::var_os("PLEACH_REMOTE").map(PathBuf::from);
        if program.is_none() {
            eprintln!(
                "not run: the command: build pleach-cli with the feature remote, and set PLEACH_REMOTE"
            );
        }
        Some(Self { program: program?, server })
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(arguments).envs(self.server.environment()).env("PLEACH_CACHE", self.server.cache.path());
        let output = command.output().expect("the program");
        for bytes in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(bytes);
            assert!(!text.contains(KEY.1) && !text.contains("hidden"), "{arguments:?}: {text}");
        }
        output
    }

    /// Runs a command that does what it is told, and returns what it prints.
    fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("a text")
    }

    /// Runs a command that fails, and returns its line.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let text = String::from_utf8(output.stderr).expect("a text");
        assert_eq!(text.lines().filter(|line| line.starts_with("pleach: ")).count().max(1), 1, "{text}");
        text
    }

    fn csv(&self, name: &str, rows: impl Iterator<Item = (u64, u64)>) -> String {
        let path = self.server.path(name);
        let lines: String = rows.map(|(key, value)| format!("{key},{value}\n")).collect();
        fs::write(&path, format!("id,n\n{lines}")).expect("a file");
        path.display().to_string()
    }
}

#[test]
fn a_set_by_its_url() {
    let server = Server::s3();
    let Some(pleach) = Pleach::new(&server) else { return };
    let url = format!("s3://{BUCKET}/sets/orders");
    let input = pleach.csv("in.csv", (0..5_000).map(|number| (number * 2, number)));
    pleach.run(&[
        "set",
        "build",
        &input,
        "-o",
        &url,
        "--key",
        "id",
        "--value",
        "n",
        "--partition-tuples",
        "1000",
    ]);
    assert_eq!(pleach.run(&["get", &url, "4000"]), "4000\t2000\n");
    assert_eq!(pleach.run(&["get", &url, "4001", "--floor"]), "4001\t4000\t2000\n");
    assert_eq!(pleach.run(&["get", &url, "4001", "--ceiling"]), "4001\t4002\t2001\n");
    assert_eq!(pleach.run(&["range", &url, "3998", "4004"]), "3998\t1999\n4000\t2000\n4002\t2001\n");
    let stats = pleach.run(&["get", &url, "4000", "--stats", "--json"]);
    assert!(stats.contains("\"gets\":\"") && stats.contains("received_bytes"), "{stats}");
    assert_eq!(pleach.run(&["export", &url, "-o", "-", "--format", "csv"]).lines().count(), 5_001);
    assert!(pleach.run(&["fsck", &url]).contains("clean"));
    assert!(pleach.run(&["inspect", &url]).contains("5 files"));
    let changes = server.path("changes.csv");
    fs::write(&changes, "op,id,n\nput,4000,7\n").expect("a file");
    pleach.run(&["set", "rebuild", &url, "--apply", &changes.display().to_string()]);
    assert_eq!(pleach.run(&["get", &url, "4000"]), "4000\t7\n");
    assert!(pleach.run(&["set", "generations", &url]).contains("current"));
    pleach.run(&["set", "rollback", &url]);
    assert_eq!(pleach.run(&["get", &url, "4000"]), "4000\t2000\n");
    pleach.run(&["set", "sweep", &url]);
    let entries = server.path("entries.json");
    let more = pleach.csv("more.csv", [(20_000, 1)].into_iter());
    fs::write(&entries, pleach.run(&["set", "write", &more, "-o", &url, "--key", "id", "--value", "n"]))
        .expect("a file");
    pleach.run(&["set", "commit", &url, &entries.display().to_string()]);
    assert_eq!(pleach.run(&["get", &url, "20000"]), "20000\t1\n");
    let missing = pleach.fails(&["get", &format!("s3://{BUCKET}/sets/none"), "1"]);
    assert!(missing.contains("there is no such object"), "{missing}");
}

#[test]
fn a_file_by_its_url() {
    let server = Server::s3();
    let Some(pleach) = Pleach::new(&server) else { return };
    let url = format!("s3://{BUCKET}/a.pleach");
    let input = pleach.csv("in.csv", (0..1_000).map(|number| (number, number * number)));
    let build = ["build", &input, "-o", &url, "--key", "id", "--value", "n"];
    pleach.run(&build);
    // The same bytes are there already, which a try whose answer was lost may have sent.
    pleach.run(&build);
    let next = pleach.csv("next.csv", (0..1_001).map(|number| (number, number * number)));
    let next = ["build", &next, "-o", &url, "--key", "id", "--value", "n"];
    assert!(pleach.fails(&next).contains("there is an object of this name"));
    pleach.run(&[&next[..], &["--force"]].concat());
    assert_eq!(pleach.run(&["get", &url, "31", "32"]), "31\t961\n32\t1024\n");
    assert_eq!(pleach.run(&["get", &url, "31", "--whole"]), "31\t961\n");
    let other = pleach.csv("other.csv", [(1, 1), (2, 4), (3, 10)].into_iter());
    let selected = pleach.run(&["intersect", &url, &other, "--key", "id", "--value", "n", "-o", "-"]);
    assert!(selected.lines().count() >= 3, "{selected}");
    assert!(pleach.run(&["fsck", &url]).contains("clean"));
    assert!(pleach.fails(&["rebuild", &url, "--apply", &other]).contains("only sets are"));
    assert!(
        pleach.fails(&["fsck", &url, "--max-download", "1", "--cache", "/dev/null/x"]).contains("cannot")
    );
}

#[test]
fn a_file_on_a_server_of_http() {
    let style = Style { authorization: Some("Basic bWU6aGlkZGVu"), query: Some("sig=hidden"), ..COMMON };
    let server = Server::http(style);
    let Some(pleach) = Pleach::new(&server) else { return };
    let input = pleach.csv("in.csv", (0..1_000).map(|number| (number, number * number)));
    let local = server.path("a.pleach").display().to_string();
    pleach.run(&["build", &input, "-o", &local, "--key", "id", "--value", "n"]);
    let url = format!("http://me:hidden@{}/a.pleach?sig=hidden", server.address);
    assert_eq!(pleach.run(&["get", &url, "31"]), "31\t961\n");
    assert!(pleach.run(&["fsck", &url]).contains("clean"));
    let denied = pleach.fails(&["get", &server.url("a.pleach"), "31"]);
    assert!(denied.contains("401"), "{denied}");
}
