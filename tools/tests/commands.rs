//! The list of commands is the same in the help, among the sources, in the completions and in the README.

use std::fs;
use std::path::Path;
use std::process::Command;

fn pleach(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pleach")).args(args).output().expect("runs");
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Commands in the order of the help, without `help` itself.
fn commands() -> Vec<String> {
    let help = pleach(&["--help"]);
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<String> =
        names.map(|line| line.split_whitespace().next().expect("a name").to_owned()).collect();
    assert!(names.len() > 20, "{names:?}");
    names.into_iter().filter(|name| name != "help").collect()
}

#[test]
fn lists_of_commands_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_else(|_| panic!("{path}"));
    let modules = read("src/cmd/mod.rs");
    let relational = read("src/cmd/relation/mod.rs");
    let readme = read("../README.md");
    let completions = pleach(&["completions", "bash"]);
    let commands = commands();
    for name in &commands {
        let is_module = modules.contains(&format!("pub mod {name};"));
        assert!(is_module || relational.to_lowercase().contains(name), "{name} has no source");
        assert!(readme.contains(&format!("`{name}`")), "the README does not list {name}");
        assert!(completions.contains(&format!("pleach__subcmd__{name}")), "{name} is not completed");
    }
    for line in modules.lines() {
        let Some(name) = line.strip_prefix("pub mod ").and_then(|name| name.strip_suffix(';')) else {
            continue;
        };
        assert!(name == "relation" || commands.iter().any(|command| command == name), "{name} is no command");
    }
}
