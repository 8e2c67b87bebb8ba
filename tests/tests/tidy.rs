//! The house rules that a machine can check: who depends on whom, and what the sources and documents contain.

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

/// Packages of the workspace that a package may use, outside its tests.
const EDGES: [(&str, &[&str]); 19] = [
    ("pleach-format", &[]),
    ("pleach-pool", &[]),
    ("pleach-builder", &["pleach-format", "pleach-pool"]),
    ("pleach-input", &["pleach-format", "pleach-builder"]),
    ("pleach-fsck", &["pleach-format", "pleach-pool"]),
    // The builder is optional: the feature `build`.
    ("pleach", &["pleach-format", "pleach-fsck", "pleach-builder"]),
    ("pleach-gpu", &["pleach-format", "pleach"]),
    ("pleach-relation", &["pleach-format", "pleach-builder", "pleach", "pleach-gpu"]),
    ("pleach-set", &["pleach-format", "pleach-pool", "pleach-builder", "pleach"]),
    // All but the first three are optional: the features `arrow`, `relation` and `set`.
    (
        "pleach-batch",
        &[
            "pleach-format",
            "pleach-pool",
            "pleach",
            "pleach-builder",
            "pleach-input",
            "pleach-relation",
            "pleach-set",
        ],
    ),
    ("pleach-peers", &["pleach-format"]),
    (
        "pleach-cli",
        &[
            "pleach-format",
            "pleach-builder",
            "pleach-input",
            "pleach",
            "pleach-gpu",
            "pleach-relation",
            "pleach-set",
            "pleach-store",
        ],
    ),
    ("pleach-store", &["pleach", "pleach-set"]),
    (
        "pleach-bench",
        &[
            "pleach-format",
            "pleach-builder",
            "pleach-input",
            "pleach",
            "pleach-gpu",
            "pleach-cli",
            "pleach-peers",
        ],
    ),
    ("pleach-papers", &["pleach-format", "pleach-builder", "pleach", "pleach-gpu", "pleach-bench"]),
    ("pleach-kit", &["pleach-format"]),
    ("pleach-conformance", &["pleach-format", "pleach-builder", "pleach", "pleach-fsck", "pleach-kit"]),
    ("pleach-tests", &["pleach-format", "pleach-builder", "pleach-input", "pleach", "pleach-kit"]),
    ("pleach-trust", &["pleach-format", "pleach-builder", "pleach", "pleach-tests"]),
];

/// Other engines, which only `bench/peers` may use.
const ENGINES: [&str; 7] = ["heed", "redb", "fst", "ptr_hash", "rocksdb", "lmdb-master-sys", "maxminddb"];

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

/// What is published says what it is, and depends on nothing that is not: tests may, by path alone.
#[test]
fn what_is_published_can_be() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let is_published = |package: &&Value| package["source"].is_null() && package["publish"].is_null();
    let published: Vec<&Value> = packages.iter().filter(is_published).collect();
    let mut names: BTreeSet<&str> = published.iter().map(|package| text(package, "name")).collect();
    assert!(names.len() >= 8, "{names:?}");
    // A workspace of its own, which is published, too.
    names.insert("pleach-store");
    for package in published {
        let name = text(package, "name");
        for field in ["description", "documentation", "homepage", "repository", "license", "readme"] {
            assert!(!text(package, field).is_empty(), "{name} has no {field}");
        }
        for list in ["keywords", "categories"] {
            let words = package[list].as_array().map_or(0, Vec::len);
            assert!((1..=5).contains(&words), "{name} has {words} {list}");
        }
        let manifest = Path::new(text(package, "manifest_path"));
        assert!(manifest.with_file_name(text(package, "readme")).is_file(), "{name} has no readme");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let on = text(dependency, "name");
            let is_left_out = dependency["kind"] == "dev" && text(dependency, "req") == "*";
            assert!(
                !on.starts_with("pleach") || names.contains(on) || is_left_out,
                "{name} is published, and {on} is not: depend on it by path alone, in tests"
            );
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
fn format_reader_and_builder_stay_small() {
    for (name, most) in [("pleach-format", 12), ("pleach-fsck", 12), ("pleach", 12), ("pleach-builder", 24)] {
        let mut linked = linked(name);
        assert!(linked.contains(name), "{linked:?}");
        linked.retain(|package| !package.starts_with("pleach"));
        assert!(linked.len() <= most, "{name} links {} packages: {linked:?}", linked.len());
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

/// Text of any kind is unpacked, and its marks and line ends are taken, in one place. So every command has
/// the same rules.
#[test]
fn text_has_one_reader() {
    const READER: &str = "input/src/text.rs";
    // Files that open tables and lists of keys.
    const DOORS: [&str; 4] =
        ["input/src/csv/mod.rs", "input/src/json.rs", "input/src/kmers.rs", "tools/src/keys.rs"];
    // Decompression, for the reader of text and for other formats.
    const UNPACKER: &str = "input/src/packed.rs";
    let root = root();
    let (mut files, mut doors, mut broken) = (Vec::new(), BTreeSet::new(), Vec::new());
    sources(&root, &mut files);
    for path in files {
        let relative = path.strip_prefix(&root).expect("inside").to_string_lossy().into_owned();
        let is_ours =
            ["input/src/", "builder/src/", "tools/src/", "relation/src/", "bench/src/", "reader/src/"]
                .iter()
                .any(|folder| relative.starts_with(folder));
        if !is_ours || relative == READER || relative == UNPACKER {
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

/// Files that name files, with their number of such lines: the one place that publishes, the file system
/// below it, and Pleach's own caches.
const NAMING: [(&str, usize); 8] = [
    ("bench/src/gpu/peers.rs", 1),
    ("builder/src/publish.rs", 1),
    ("builder/src/storage.rs", 2),
    ("gpu/src/driver/emulated.rs", 1),
    ("gpu/src/kernel/cache.rs", 1),
    ("set/src/folder.rs", 1),
    ("store/src/cache.rs", 1),
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
            // Commands write files that the user names through that place, too.
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

/// One function decides whether two columns mean the same: nothing else compares the texts of META.
#[test]
fn meanings_are_matched_in_one_place() {
    let mut files = Vec::new();
    for folder in ["input/src", "builder/src", "relation/src", "tools/src", "reader/src"] {
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
    for folder in ["format", "batch", "builder", "input", "fsck", "reader", "gpu", "relation", "set", "tools"]
    {
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
            seen += usize::from(arms.iter().any(|arm| parts(arm).into_iter().any(names_a_type)));
            let wildcards = wildcards_of_types(&arms).into_iter();
            broken.extend(wildcards.map(|arm| format!("{}:{}: {}", path.display(), at + 1, arm.trim())));
        }
    }
    assert!(seen >= 15, "{seen} matches on types were found");
    assert!(broken.is_empty(), "name all types instead:\n{}", broken.join("\n"));
    for (arms, wanted) in [
        (&["    KeyType::U32 => 0,", "    _ => 1,"][..], 1),
        (&["KeyType::U32 => 0,", "other => 1,"], 1),
        (&["KeyType::U32 => 0,", "KeyType::U64 => 1,"], 0),
        (&["Some(1) => 0,", "_ => 1,"], 0),
        (&["(Column::U32(words), KeyType::I32) => {", "(Column::U32(words), _) => 1,"], 1),
        (&["(KeyType::I32, Some(_)) => {", "(KeyType::U32, _) => 1,", "_ => 2,"], 1),
        (&["(Column::U32(_), KeyType::I32) if x == y => {", "(_, KeyType::U32) => 1,"], 0),
    ] {
        assert_eq!(wildcards_of_types(arms).len(), wanted, "{arms:?}");
    }
}

/// Yields the line at which each `match` begins, and the lines of its arms: those that are one step further in.
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

/// Returns the arms that match any type where another arm of the same `match` names one.
fn wildcards_of_types<'a>(arms: &[&'a str]) -> Vec<&'a str> {
    let places: BTreeSet<usize> = arms
        .iter()
        .flat_map(|arm| parts(arm).into_iter().enumerate().filter(|(_, part)| names_a_type(part)))
        .map(|(place, _)| place)
        .collect();
    let is_any = |arm: &&&str| {
        let parts = parts(arm);
        // An arm that is no tuple matches in all places.
        let of_all = parts.len() == 1 && !places.is_empty() && is_wildcard(parts[0]);
        of_all || places.iter().any(|&place| parts.get(place).is_some_and(|part| is_wildcard(part)))
    };
    arms.iter().filter(is_any).copied().collect()
}

/// Returns the parts of an arm that matches a tuple, or the whole pattern of another arm; without guards.
fn parts(arm: &str) -> Vec<&str> {
    let Some((pattern, _)) = arm.split_once(" =>") else { return Vec::new() };
    let pattern = pattern.split(" if ").next().unwrap_or_default().trim();
    let Some(tuple) = pattern.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else {
        return vec![pattern];
    };
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, letter) in tuple.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(tuple[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(tuple[from..].trim());
    parts
}

fn names_a_type(part: &str) -> bool {
    ["KeyType::", "ValueType::"].iter().any(|name| part.trim_start_matches("$crate::").starts_with(name))
}

/// Returns true if a pattern matches anything.
fn is_wildcard(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
}

/// Functions of the product with more than 100 lines. Shorten one, and remove its row.
const LONG_FUNCTIONS: [(&str, &str); 0] = [];

/// Crates that are published, and the command: the product without its tests.
const PRODUCT: [&str; 11] =
    ["batch", "builder", "format", "fsck", "gpu", "input", "pool", "reader", "relation", "set", "tools"];

#[test]
fn functions_have_at_most_100_lines() {
    let root = root();
    let (mut seen, mut long) = (0, Vec::new());
    for folder in PRODUCT.map(|folder| root.join(folder).join("src")) {
        let mut files = Vec::new();
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
        for path in files {
            let relative = path.strip_prefix(&root).expect("inside").to_string_lossy().into_owned();
            if relative.ends_with("tests.rs") || relative.contains("/tests/") {
                continue;
            }
            let source = fs::read_to_string(&path).expect("UTF-8");
            let lines: Vec<&str> = source.split("#[cfg(test)]").next().unwrap_or_default().lines().collect();
            for (name, length) in functions(&lines) {
                seen += 1;
                if length > 100 {
                    long.push((relative.clone(), name.to_owned()));
                }
            }
        }
    }
    assert!(seen > 1000, "{seen} functions were found");
    long.sort();
    let known = LONG_FUNCTIONS.map(|(path, name)| (path.to_owned(), name.to_owned()));
    assert_eq!(long, known, "split functions of more than 100 lines; remove rows of shorter ones");
    let source =
        ["    pub(super) const unsafe fn f<T>(", "        value: T,", "    ) {", "    }", "fn g() {}"];
    assert_eq!(functions(&source).collect::<Vec<_>>(), [("f", 4), ("g", 1)]);
}

/// Yields the name and the number of lines of each function: from its `fn` line to the brace below `fn`.
fn functions<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = (&'a str, usize)> {
    let words = ["pub", "pub(crate)", "pub(super)", "const", "unsafe", "async", "extern", "\"C\"", "default"];
    lines.iter().enumerate().filter_map(move |(at, line)| {
        let code = line.trim_start();
        let (before, after) = code.split_once("fn ")?;
        if !before.split_whitespace().all(|word| words.contains(&word) || word.starts_with("pub(in"))
            || line.trim_end().ends_with([';', '}'])
                && !line.trim_end().ends_with("{}")
                && !line.contains('{')
        {
            return None;
        }
        let name = after.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
        let end = format!("{}}}", &line[..line.len() - code.len()]);
        let is_short = line.trim_end().ends_with('}');
        let length = if is_short { 1 } else { lines[at..].iter().position(|line| *line == end)? + 1 };
        Some((name, length))
    })
}

/// Files that import each other, with the reason why they are not cut apart: a crate, the beginnings of their
/// names, and why. At most five rows.
const CIRCLES: &[(&str, &[&str], &str)] = &[(
    "format",
    &["logical"],
    "a composite key has parts of the other types, and its texts are made of theirs",
)];

#[test]
fn imports_have_no_circles() {
    assert!(CIRCLES.len() <= 5, "at most five circles stay");
    let mut found = BTreeSet::new();
    for folder in PRODUCT {
        for circle in circles(&root().join(folder).join("src")) {
            let row = CIRCLES.iter().find(|(name, starts, _)| {
                *name == folder
                    && circle.iter().all(|file| starts.iter().any(|start| file.starts_with(start)))
            });
            let row = row.unwrap_or_else(|| panic!("files of {folder} import each other: {circle:?}"));
            found.insert(row.2);
        }
    }
    let gone = CIRCLES.iter().find(|row| !found.contains(row.2));
    assert_eq!(gone, None, "the circle is cut: remove its row");
    let files =
        [("a", "use super::b::{self, C};"), ("b", "fn f() { crate::a::g() }"), ("c", "use super::a;")];
    let files = files.map(|(name, code)| (name.to_owned(), code.to_owned())).into();
    assert_eq!(components(&files), [BTreeSet::from(["a".to_owned(), "b".to_owned()])]);
}

/// Returns the groups of files below `src` that import each other. A file is named like its module, with `/`
/// between the parts; the root of the crate, which only declares and re-exports, has no circle.
fn circles(src: &Path) -> Vec<BTreeSet<String>> {
    let mut paths = Vec::new();
    sources(src, &mut paths);
    let files = paths.iter().filter_map(|path| {
        let name = path.strip_prefix(src).expect("inside").to_string_lossy().into_owned();
        let name = name.strip_suffix(".rs")?;
        let name = name.strip_suffix("/mod").unwrap_or(name);
        let name = if matches!(name, "lib" | "main") { "" } else { name };
        let is_test = name.split('/').any(|part| part.starts_with("tests"));
        (!is_test).then(|| (name.to_owned(), product_code(&fs::read_to_string(path).expect("UTF-8"))))
    });
    components(&files.collect())
}

/// Returns a source without comments and without the module of tests at its end.
fn product_code(source: &str) -> String {
    let lines = source.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    let code = lines.collect::<Vec<_>>().join("\n");
    let is_module = |text: &str| {
        let line = text.trim_start().lines().next().unwrap_or_default();
        line.contains("mod ") && line.ends_with('{')
    };
    let mark = "#[cfg(test)]";
    let end = code.match_indices(mark).find(|(at, _)| is_module(&code[at + mark.len()..]));
    code[..end.map_or(code.len(), |(at, _)| at)].to_owned()
}

/// Returns the strongly connected components of more than one file.
fn components(files: &BTreeMap<String, String>) -> Vec<BTreeSet<String>> {
    let edges: BTreeMap<&str, BTreeSet<String>> = files
        .iter()
        .map(|(from, code)| {
            (from.as_str(), paths_in(code).iter().filter_map(|path| module_of(path, from, files)).collect())
        })
        .collect();
    let reached = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(file) = open.pop() {
            open.extend(edges[file.as_str()].iter().filter(|&to| seen.insert(to.clone())).cloned());
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<String>> = files.keys().map(|file| (&**file, reached(file))).collect();
    let mutual = |file: &&str| -> BTreeSet<String> {
        reach[file].iter().filter(|other| reach[other.as_str()].contains(*file)).cloned().collect()
    };
    let found: BTreeSet<_> = reach.keys().map(mutual).filter(|circle| !circle.is_empty()).collect();
    found.into_iter().collect()
}

/// Returns the paths that a source names: those of `use`, and others that begin with `crate`, `super` or
/// `self`.
fn paths_in(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for statement in code.split(';') {
        let used = statement.match_indices("use ").map(|(at, _)| at).find(|&at| {
            let before = statement[..at].rsplit('\n').next().unwrap_or_default().trim();
            before.is_empty() || before.starts_with("pub") || before.ends_with('{')
        });
        let (code, tree) = statement.split_at(used.unwrap_or(statement.len()));
        let words = code.split(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | ':'));
        let is_path =
            |word: &&str| ["crate::", "super::", "self::"].iter().any(|start| word.starts_with(start));
        paths.extend(words.filter(is_path).map(str::to_owned));
        leaves("", tree.trim_start_matches("use "), &mut paths);
    }
    paths
}

/// Adds the paths of a tree of `use`, as `a::{b, c::{d, e}}`.
fn leaves(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((stem, list)) = tree.trim().split_once('{') else {
        let path = tree.split_whitespace().next().unwrap_or_default();
        paths.extend((!path.is_empty()).then(|| format!("{before}{path}")));
        return;
    };
    let list = list.strip_suffix('}').unwrap_or(list);
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in list.char_indices().chain([(list.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                leaves(&format!("{before}{stem}"), &list[start..at], paths);
                start = (at + 1).min(list.len());
            }
            _ => {}
        }
    }
}

/// Returns the other file in which a path ends, if it is one of the crate and not its root.
fn module_of(path: &str, from: &str, files: &BTreeMap<String, String>) -> Option<String> {
    let inside = |module: &str, part: &str| {
        let name = if module.is_empty() { part.to_owned() } else { format!("{module}/{part}") };
        files.contains_key(&name).then_some(name)
    };
    let parent = |module: &str| module.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
    let mut parts = path.split("::").peekable();
    let mut module = match *parts.peek()? {
        "crate" => String::new(),
        "self" => from.to_owned(),
        "super" => parent(from),
        child => {
            inside(from, child)?;
            from.to_owned()
        }
    };
    parts.next_if(|part| matches!(*part, "crate" | "self" | "super"));
    for part in parts {
        match (part, inside(&module, part)) {
            ("super", _) => module = parent(&module),
            (_, Some(next)) => module = next,
            (_, None) => break,
        }
    }
    (!module.is_empty() && module != from).then_some(module)
}

/// Documents that do not keep the widths yet.
const WIDE_DOCUMENTS: [(&str, &str); 1] =
    [("docs/DESIGN.md", "its notes are moved to docs/lab/ or rewritten with the standard")];

#[test]
fn documents_are_narrow_and_their_paragraphs_short() {
    let root = root();
    let mut paths = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    paths.retain(|path| path.is_file());
    for folder in ["docs", "spec"] {
        documents(&root.join(folder), &mut paths);
    }
    assert!(paths.len() > 20, "the documents are found");
    let mut broken = Vec::new();
    for path in paths {
        let relative = path.strip_prefix(&root).expect("inside").to_string_lossy().into_owned();
        let complaints = prose(&fs::read_to_string(&path).expect("UTF-8"));
        match WIDE_DOCUMENTS.iter().find(|(name, _)| *name == relative) {
            Some((_, why)) => {
                assert!(!complaints.is_empty(), "{relative} keeps the rules, {why}: remove its row")
            }
            None => broken.extend(complaints.iter().map(|complaint| format!("{relative}:{complaint}"))),
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

/// Returns the lines of more than 100 columns and the paragraphs of more than 80 words of a document, outside of
/// tables and blocks of code. An item of a list is a paragraph. Links and long spans of code cannot be broken.
fn prose(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    // First line and words of the paragraph, whose end is not found yet.
    let mut paragraph = (0, 0);
    let mut is_code = false;
    for (number, line) in text.lines().chain([""]).enumerate().map(|(at, line)| (at + 1, line)) {
        let content = line.trim_start();
        let is_fence = content.starts_with("```");
        let is_outside = is_code || is_fence || content.starts_with('|');
        is_code ^= is_fence;
        let is_item = content.split_once(' ').is_some_and(|(mark, _)| {
            ["*", "-", "+"].contains(&mark) || is_number(mark.trim_end_matches('.'))
        });
        if is_outside || is_item || content.is_empty() || content.starts_with('#') {
            if paragraph.1 > 80 {
                complaints.push(format!("{}: a paragraph of {} words: split it", paragraph.0, paragraph.1));
            }
            paragraph = (0, 0);
        }
        if !is_outside && !content.starts_with('#') {
            paragraph.0 = if paragraph.1 == 0 { number } else { paragraph.0 };
            paragraph.1 += content.split_whitespace().count() - usize::from(is_item);
        }
        let is_whole = line.contains("](")
            || line.contains("http")
            || content.split('`').skip(1).step_by(2).any(|code| code.len() > 80);
        if !is_outside && !is_whole && line.chars().count() > 100 {
            complaints.push(format!("{number}: more than 100 columns: break the line"));
        }
    }
    complaints
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn prose_is_measured() {
    let words = |count| vec!["word"; count].join("\n");
    assert!(prose(&words(80)).is_empty() && prose(&words(81)).len() == 1);
    assert!(prose(&format!("{}\n\n{}\n* {}", words(80), words(80), words(80))).is_empty());
    assert!(prose(&format!("```text\n{}\n```\n", "word ".repeat(99))).is_empty());
    assert!(prose(&format!("| {} |\n", "word ".repeat(99))).is_empty());
    assert_eq!(prose(&format!("{}\n", "ab ".repeat(40))), ["1: more than 100 columns: break the line"]);
    assert_eq!(prose(&format!("a\n\n- {}\n", words(90))), ["3: a paragraph of 90 words: split it"]);
}
