//! The house rules that a machine can check: who depends on whom, and what stands in the sources.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace folder").to_owned()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Which of our packages a package may use, outside its tests.
const EDGES: [(&str, &[&str]); 14] = [
    ("pleach-format", &[]),
    ("pleach-pool", &[]),
    ("pleach-builder", &["pleach-format", "pleach-pool"]),
    ("pleach-fsck", &["pleach-format", "pleach-pool"]),
    // The builder is optional: the feature `build`.
    ("pleach", &["pleach-format", "pleach-fsck", "pleach-builder"]),
    ("pleach-gpu", &["pleach-format", "pleach"]),
    ("pleach-relation", &["pleach-format", "pleach-builder", "pleach", "pleach-gpu"]),
    ("pleach-peers", &["pleach-format"]),
    ("pleach-bench", &["pleach-format", "pleach-builder", "pleach", "pleach-gpu", "pleach-peers"]),
    (
        "pleach-cli",
        &["pleach-format", "pleach-builder", "pleach", "pleach-gpu", "pleach-relation", "pleach-bench"],
    ),
    ("pleach-papers", &["pleach-format", "pleach-builder", "pleach", "pleach-gpu", "pleach-bench"]),
    ("pleach-kit", &["pleach-format"]),
    ("pleach-tests", &["pleach-format", "pleach-builder", "pleach", "pleach-kit"]),
    ("pleach-trust", &["pleach-format", "pleach-builder", "pleach", "pleach-tests"]),
];

/// Other engines, which only `bench/peers` may use.
const ENGINES: [&str; 5] = ["heed", "redb", "fst", "rocksdb", "lmdb-master-sys"];

#[test]
fn data_flows_one_way() {
    let metadata = metadata();
    let allowed: BTreeMap<&str, &[&str]> = EDGES.into_iter().collect();
    let packages = metadata["packages"].as_array().expect("packages");
    let ours: Vec<&Value> = packages.iter().filter(|package| package["source"].is_null()).collect();
    for package in ours {
        let name = text(package, "name");
        let edges = allowed.get(name).unwrap_or_else(|| panic!("{name} has no row in EDGES"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let on = text(dependency, "name");
            if on.starts_with("pleach") && dependency["kind"].is_null() {
                assert!(edges.contains(&on), "{name} must not depend on {on}");
            }
            assert!(name == "pleach-peers" || !ENGINES.contains(&on), "{name} must not depend on {on}");
        }
    }
}

/// Packages that are linked into a program that uses `name` as it comes: no build scripts, no macros.
fn linked(name: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "-p", name, "-e", "normal,no-proc-macro", "--prefix", "none"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn format_and_reader_stay_small() {
    for name in ["pleach-format", "pleach-fsck", "pleach"] {
        let mut linked = linked(name);
        assert!(linked.contains(name), "{linked:?}");
        linked.retain(|package| !package.starts_with("pleach"));
        assert!(linked.len() <= 12, "{name} links {} packages: {linked:?}", linked.len());
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && name != ".git" {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Modules that may contain unsafe code, with the crate's folder; see `docs/UNSAFE.md`.
fn may_be_unsafe(path: &str) -> bool {
    let inventory = fs::read_to_string(root().join("docs/UNSAFE.md")).expect("docs/UNSAFE.md");
    inventory.contains(&format!("`{path}`"))
}

#[test]
fn sources_keep_the_rules() {
    let root = root();
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 40, "the sources are found");
    let mut broken = Vec::new();
    for path in files {
        let relative = path.strip_prefix(&root).expect("inside").to_string_lossy().into_owned();
        let source = fs::read_to_string(&path).expect("UTF-8");
        if relative.ends_with("tidy.rs") {
            continue;
        }
        for (number, line) in source.lines().enumerate() {
            let mut complain = |what: &str| broken.push(format!("{relative}:{}: {what}", number + 1));
            if line.chars().count() > 120 {
                complain("longer than 120 columns");
            }
            for word in ["TODO", "FIXME", "HACK"] {
                if line.contains(word) {
                    complain("finish it, or write an issue");
                }
            }
            if line.trim_start().starts_with("#[ignore]") {
                complain("an ignored test says why: #[ignore = \"...\"]");
            }
        }
        if source.lines().count() > 900 && !relative.contains("/tests/") {
            broken.push(format!("{relative}: longer than 900 lines: split it by subject"));
        }
        let uses_unsafe =
            source.contains("unsafe {") || source.contains("unsafe fn") || source.contains("unsafe impl");
        if uses_unsafe && !may_be_unsafe(&relative) {
            broken.push(format!("{relative}: unsafe code outside the inventory of docs/UNSAFE.md"));
        }
        let head = source.trim_start();
        if relative.contains("/src/") && !head.starts_with("//!") {
            broken.push(format!("{relative}: begin with what the module is for (//!)"));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Text of any kind is unpacked, and its marks and line ends are taken, in one place. So every command has the same
/// rules.
#[test]
fn text_has_one_reader() {
    const READER: &str = "builder/src/input/text.rs";
    // Where tables and lists of keys begin.
    const DOORS: [&str; 2] = ["builder/src/input/csv.rs", "tools/src/keys.rs"];
    let root = root();
    let (mut files, mut doors, mut broken) = (Vec::new(), BTreeSet::new(), Vec::new());
    sources(&root, &mut files);
    for path in files {
        let relative = path.strip_prefix(&root).expect("inside").to_string_lossy().into_owned();
        let is_ours = ["builder/src/", "tools/src/", "relation/src/", "bench/src/", "reader/src/"]
            .iter()
            .any(|folder| relative.starts_with(folder));
        if !is_ours || relative == READER {
            continue;
        }
        let source = fs::read_to_string(&path).expect("UTF-8");
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        if code.contains("text::open(") {
            doors.insert(relative.clone());
        }
        for sign in ["flate2", "zstd::", "GzDecoder", "UTF-16", "TextReader {", ".lines()"] {
            let reads = sign != ".lines()" || code.contains("BufRead");
            if reads && code.contains(sign) {
                broken.push(format!("{relative}: {sign}: read text through {READER}"));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    assert_eq!(doors, DOORS.map(str::to_owned).into());
}

/// Where names of files are given, with how many lines that do it: the one place that publishes, the file system below
/// it, and caches of our own that nobody names.
const NAMING: [(&str, usize); 6] = [
    ("bench/src/gpu/peers.rs", 1),
    ("builder/src/publish.rs", 1),
    ("builder/src/storage.rs", 2),
    ("gpu/src/driver/emulated.rs", 1),
    ("gpu/src/kernel/cache.rs", 1),
    ("tests/src/fault.rs", 1),
];

#[test]
fn files_are_published_in_one_place() {
    let root = root();
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut naming: BTreeMap<String, usize> = BTreeMap::new();
    let mut made = Vec::new();
    for path in files {
        let relative = path.strip_prefix(&root).expect("inside").to_string_lossy().into_owned();
        if !relative.contains("/src/") || relative.ends_with("tests.rs") {
            continue;
        }
        let source = fs::read_to_string(&path).expect("UTF-8");
        let product = source.split("#[cfg(test)]").next().unwrap_or_default();
        for line in product.lines() {
            if [".persist(", "fs::rename("].iter().any(|call| line.contains(call)) {
                *naming.entry(relative.clone()).or_default() += 1;
            }
            // What a command writes under a name of its user goes by that place, too.
            let is_made =
                ["fs::write(", "File::create(", "NamedTempFile"].iter().any(|call| line.contains(call));
            if relative.starts_with("tools/") && is_made {
                made.push(format!("{relative}: {line}"));
            }
        }
    }
    let wanted: BTreeMap<String, usize> =
        NAMING.into_iter().map(|(path, lines)| (path.to_owned(), lines)).collect();
    assert_eq!(naming, wanted, "publish with pleach_builder::publish");
    assert!(made.is_empty(), "publish with pleach_builder::publish: {made:#?}");
}

/// Whether two columns mean the same is decided in one place: nothing else compares the texts of META.
#[test]
fn meanings_are_matched_in_one_place() {
    let mut files = Vec::new();
    for folder in ["builder/src", "relation/src", "tools/src", "reader/src"] {
        sources(&root().join(folder), &mut files);
    }
    let compares = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("//")
            && (line.contains("fn matching")
                || line.contains("Logical::parsed")
                || ["_logical == ", "_logical != ", ".logical == ", ".logical != "]
                    .iter()
                    .any(|text| line.contains(text)))
            && !line.contains("assert")
            && !line.contains("Logical::")
    };
    for path in files {
        let text = fs::read_to_string(&path).expect("reads");
        let line = text.lines().find(compares);
        assert!(line.is_none(), "{}: {line:?}: use pleach_format::logical::matching", path.display());
    }
    let text = fs::read_to_string(root().join("format/src/logical.rs")).expect("reads");
    assert_eq!(text.matches("pub fn matching(").count(), 1);
}

/// A match on the types of keys or values has no wildcard arm in the product: a new type makes the compiler ask.
#[test]
fn matches_name_every_type() {
    let mut files = Vec::new();
    for folder in ["format", "builder", "fsck", "reader", "gpu", "relation", "tools"] {
        sources(&root().join(folder).join("src"), &mut files);
    }
    let (mut seen, mut broken) = (0, Vec::new());
    files.retain(|path| {
        !path.ends_with("tests.rs") && !path.components().any(|part| part.as_os_str() == "tests")
    });
    for path in files {
        let source = fs::read_to_string(&path).expect("UTF-8");
        let lines: Vec<&str> = source.split("#[cfg(test)]").next().unwrap_or_default().lines().collect();
        for (at, arms) in matches(&lines) {
            if arms.iter().any(|arm| is_of_a_type(arm)) {
                seen += 1;
                broken.extend(
                    arms.iter()
                        .filter(|arm| is_wildcard(arm))
                        .map(|arm| format!("{}:{}: {}", path.display(), at + 1, arm.trim())),
                );
            }
        }
    }
    assert!(seen >= 15, "{seen} matches on types were found");
    assert!(broken.is_empty(), "name all types instead:\n{}", broken.join("\n"));
    assert!(is_wildcard("    _ => 0,") && is_wildcard("other => 0,") && !is_wildcard("KeyType::U32 => 0,"));
}

/// Where each match of some lines begins, and the lines of its arms: those that are one step further in.
fn matches<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = (usize, Vec<&'a str>)> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    lines.iter().enumerate().filter(|(_, line)| line.contains("match ") && line.ends_with('{')).map(
        move |(at, line)| {
            let within = indent(line);
            let body = lines[at + 1..].iter().take_while(move |arm| arm.is_empty() || indent(arm) > within);
            (at, body.copied().filter(|arm| indent(arm) == within + 4).collect())
        },
    )
}

fn is_of_a_type(arm: &str) -> bool {
    let arm = arm.trim_start().trim_start_matches("$crate::");
    ["KeyType::", "ValueType::"].iter().any(|name| arm.starts_with(name))
}

/// An arm that takes whatever comes.
fn is_wildcard(arm: &str) -> bool {
    let pattern = arm.split(" =>").next().unwrap_or_default().trim();
    arm.contains(" =>") && pattern.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
}
