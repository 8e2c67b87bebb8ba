//! Pairs of a command and a situation, drawn by a seed: whatever a user may slip into, a command ends in an
//! exit code of the contract and leaves its inputs' bytes as they were.
//!
//! A command is a line with places for its files; a situation specifies the files in these places, or what
//! the machine lacks. `PLEACH_ROAM=300 PLEACH_SEED=7 cargo test -p pleach-cli --test roam` draws 300 pairs
//! by another seed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Commands: `A` and `B` are index files, `T` and `U` tables, `C` changes, `K` keys, `X` an index to be
/// made, `Y` a table to be made.
const COMMANDS: &[&str] = &[
    "build T -o X",
    "build T U -o X --unique first",
    "build T --key-type utf8 --key id --value v --value-type utf8 -o X",
    "build T -o X --memory 1M",
    "build T -o A --keep 1",
    "get A 3 6 x",
    "get A --keys K",
    "get A --keys K --json",
    "range A .. ..",
    "range A 3 300 --reverse --limit 7",
    "inspect A",
    "inspect A --json",
    "fsck A",
    "fsck A --salvage X",
    "export A -o Y",
    "export A -o Y --format parquet",
    "rebuild A --apply C",
    "rebuild A --apply C --keep 2",
    "rebuild A --apply C --method merge",
    "compact A B -o X",
    "compact A B -o X --salvage",
    "generations A",
    "rollback A",
    "upgrade A",
    "select A --where rank<9",
    "select A --where rank<9 -o X",
    "project A --columns key,value -o Y",
    "reduce A --op count -o X",
    "union A B -o X",
    "intersect A B -o Y",
    "difference A B",
    "join A B -o Y",
    "join A B --how full --json",
    "product A B -o X --combine left",
];

/// File in a place of a command: one of the scene instead of the usual one.
const FILES: &[(char, &str, &str)] = &[
    ('A', "damaged index", "bad.pleach"),
    ('A', "cut index", "cut.pleach"),
    ('A', "texts", "s.pleach"),
    ('A', "dates", "days.pleach"),
    ('A', "empty file", "empty"),
    ('A', "foreign file", "notes.txt"),
    ('A', "table as an index", "t.csv"),
    ('A', "folder", "folder"),
    ('A', "missing", "missing.pleach"),
    ('A', "pipe that nobody writes", "pipe"),
    ('A', "by a link", "link.pleach"),
    ('B', "microseconds with nanoseconds", "nanos.pleach"),
    ('B', "damaged second index", "bad.pleach"),
    ('B', "the same index twice", "a.pleach"),
    ('T', "index as a table", "a.pleach"),
    ('T', "carriage returns", "cr.csv"),
    ('T', "mixed line ends", "mixed.csv"),
    ('T', "byte order mark", "bom.csv"),
    ('T', "no header", "plain.csv"),
    ('T', "empty table", "empty.csv"),
    ('T', "missing table", "missing.csv"),
    ('T', "pipe as a table", "pipe"),
    ('T', "gzip", "t.csv.gz"),
    ('T', "cut gzip", "cut.csv.gz"),
    ('T', "open quote", "quote.csv"),
    ('T', "UTF-16", "wide.csv"),
    ('T', "unknown extension", "notes.txt"),
    ('U', "columns in another order", "swapped.csv"),
    ('U', "other columns", "other.csv"),
    ('U', "part without a header", "plain.csv"),
    ('U', "the same table twice", "t.csv"),
    ('C', "changes without a header", "plain-changes.csv"),
    ('C', "changes in another order", "swapped-changes.csv"),
    ('C', "unknown operation", "wrong-changes.csv"),
    ('C', "pipe as changes", "pipe"),
    ('C', "table as changes", "t.csv"),
    ('C', "the index as changes", "a.pleach"),
    ('K', "keys with carriage returns", "cr-keys.txt"),
    ('K', "keys with a byte order mark", "bom-keys.txt"),
    ('K', "keys with blank lines", "blank-keys.txt"),
    ('K', "pipe as keys", "pipe"),
    ('K', "an index as keys", "a.pleach"),
    ('X', "the input as the output", "="),
    ('X', "the input by a link", "link.pleach"),
    ('X', "the input by another name", "hard.pleach"),
    ('X', "the table as the output", "t.csv"),
    ('X', "a text as the output", "notes.txt"),
    ('X', "a kept generation as the output", "a.pleach.g1"),
    ('X', "a folder as the output", "folder"),
    ('X', "a damaged index as the output", "bad.pleach"),
    ('X', "an empty file as the output", "empty"),
    ('X', "no such folder", "none/x.pleach"),
    ('X', "a pipe as the output", "pipe"),
    ('X', "a device as the output", "/dev/null"),
    ('Y', "the index as a table's name", "="),
    ('Y', "the index by another name", "hard.pleach"),
    ('Y', "a full device", "/dev/full"),
    ('Y', "another table", "other.csv"),
];

/// Restriction of the machine, as a shell command; the command follows as `"$@"`.
const MACHINES: &[(&str, &str)] = &[
    ("as it is", r#"exec "$@""#),
    ("few descriptors", r#"ulimit -n 12; exec "$@""#),
    ("fewest descriptors", r#"ulimit -n 5; exec "$@""#),
    ("little address space", r#"ulimit -v 150000; exec "$@""#),
    ("less address space", r#"ulimit -v 110000; exec "$@""#),
    ("small files only", r#"ulimit -f 8; exec "$@""#),
    ("no more threads", r#"ulimit -u 1 2>/dev/null; exec "$@""#),
    ("full standard output", r#"exec "$@" > /dev/full"#),
    ("closed standard output", r#"exec "$@" >&-"#),
    ("standard input closed", r#"exec "$@" <&-"#),
    ("read-only folder", r#"chmod 555 .; exec "$@""#),
    ("unreadable inputs", r#"chmod 200 a.pleach t.csv c.csv; exec "$@""#),
    ("interrupted", r#"exec timeout --preserve-status -s INT 0.3 "$@""#),
    ("terminated", r#"exec timeout --preserve-status -s TERM 0.1 "$@""#),
    ("no locks", r#"exec strace -f -qq -o /dev/null -e inject=flock:error=ENOLCK "$@""#),
    ("no links", r#"exec strace -f -qq -o /dev/null -e inject=link,linkat:error=EPERM "$@""#),
    ("no syncs of folders", r#"exec strace -f -qq -o /dev/null -e inject=fsync:error=EINVAL:when=2+ "$@""#),
    (
        "threads that fail to start",
        r#"exec strace -f -qq -o /dev/null -e inject=clone3,clone:error=EAGAIN "$@""#,
    ),
];

/// Exit codes of the contract; 130 where a signal comes.
const CODES: [i32; 5] = [0, 1, 2, 4, 8];

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ x >> 31) % end as u64) as usize
    }
}

fn pleach(folder: &Path, line: &str) {
    let run = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(line.split(' '))
        .current_dir(folder)
        .output()
        .expect("it runs");
    assert!(run.status.success(), "{line}: {}", String::from_utf8_lossy(&run.stderr));
}

/// A folder with something of everything.
fn scene(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("written");
    let rows = |head: &str, end: &str, count: u32| -> String {
        (0..count).fold(format!("{head}{end}"), |text, row| text + &format!("{},{row}{end}", row * 3))
    };
    let table = rows("id,v", "\n", 300);
    write("t.csv", table.as_bytes());
    write("u.csv", rows("id,v", "\n", 40).as_bytes());
    write("cr.csv", rows("id,v", "\r", 30).as_bytes());
    write("mixed.csv", b"id,v\r\n1,2\n3,4\r5,6\n");
    write("bom.csv", format!("\u{feff}{table}").as_bytes());
    write("plain.csv", b"7,8\n9,10\n");
    write("empty.csv", b"");
    write("quote.csv", b"id,v\n1,\"2\n3,4\n");
    write("wide.csv", b"\xff\xfei\0d\0");
    write("swapped.csv", b"v,id\n5,600\n6,700\n");
    write("other.csv", b"name,size\n5,600\n");
    write("c.csv", b"op,id,v\nput,3,77\nadd,5,1\ndel,6,\n");
    write("plain-changes.csv", b"put,3,77\n");
    write("swapped-changes.csv", b"v,id,op\n77,3,put\n");
    write("wrong-changes.csv", b"op,id,v\nset,3,77\n");
    write("keys.txt", b"3\n5\n6\n");
    write("cr-keys.txt", b"3\r5\r6\r");
    write("bom-keys.txt", b"\xef\xbb\xbf3\n5\n");
    write("blank-keys.txt", b"3\n\n5\n\n");
    write("notes.txt", b"what a user wrote\n");
    write("empty", b"");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, table.as_bytes()).expect("packed");
    let packed = packed.finish().expect("packed");
    write("t.csv.gz", &packed);
    write("cut.csv.gz", &packed[..packed.len() / 2]);
    write("days.csv", b"id,v\n2024-01-01,1\n2024-02-29,2\n");
    write("nanos.csv", b"id,v\n2024-01-01T00:00:00Z,1\n");
    pleach(folder, "build u.csv -o a.pleach -q");
    pleach(folder, "rebuild a.pleach --apply c.csv --keep 2 -q");
    pleach(folder, "build t.csv -o b.pleach -q");
    pleach(folder, "build t.csv --key-type utf8 -o s.pleach -q");
    pleach(folder, "build days.csv --key-type date -o days.pleach -q");
    pleach(folder, "build nanos.csv --key-type timestamp[ns,UTC] -o nanos.pleach -q");
    let mut bytes = fs::read(folder.join("b.pleach")).expect("read");
    write("cut.pleach", &bytes[..bytes.len() / 2]);
    // In the first tuple line: every command that reads tuples meets it.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    write("bad.pleach", &bytes);
    fs::create_dir(folder.join("folder")).expect("made");
}

/// A copy of the scene, with links and a pipe.
fn copy(scene: &Path, folder: &Path) {
    for entry in fs::read_dir(scene).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = folder.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(to).expect("made");
        } else {
            fs::copy(entry.path(), &to).expect("copied");
            fs::set_permissions(&to, fs::Permissions::from_mode(0o666)).expect("set");
        }
    }
    symlink("a.pleach", folder.join("link.pleach")).expect("linked");
    fs::hard_link(folder.join("a.pleach"), folder.join("hard.pleach")).expect("linked");
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().expect("mkfifo runs").success());
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("set");
}

/// Names in a folder with the bytes of the files; for other entries, their kind.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("a type");
        let bytes = match () {
            () if kind.is_symlink() => {
                fs::read_link(entry.path()).expect("a link").into_os_string().into_encoded_bytes()
            }
            () if kind.is_file() => fs::read(entry.path()).expect("read"),
            () if kind.is_fifo() => b"a pipe".to_vec(),
            () => b"a folder".to_vec(),
        };
        all.insert(entry.file_name().into(), bytes);
    }
    all
}

struct Pair {
    command: &'static str,
    place: Option<(char, &'static str, &'static str)>,
    machine: (&'static str, &'static str),
}

impl Pair {
    fn draw(random: &mut Random) -> Self {
        let command = COMMANDS[random.below(COMMANDS.len())];
        let fits = |place: &char| command.split(' ').any(|word| word.len() == 1 && word.starts_with(*place));
        let fitting: Vec<_> = FILES.iter().filter(|(place, ..)| fits(place)).collect();
        let place =
            (!fitting.is_empty() && random.below(4) > 0).then(|| *fitting[random.below(fitting.len())]);
        // If the situation is a file, the machine mostly has no restriction.
        let is_whole = place.is_some() && random.below(3) > 0;
        let machine = if is_whole { MACHINES[0] } else { MACHINES[random.below(MACHINES.len())] };
        Self { command, place, machine }
    }

    fn words(&self) -> Vec<String> {
        let usual = |word: &str| {
            Some(match word {
                "A" => "a.pleach",
                "B" => "b.pleach",
                "T" => "t.csv",
                "U" => "u.csv",
                "C" => "c.csv",
                "K" => "keys.txt",
                "X" => "x.pleach",
                "Y" => "y.csv",
                _ => return None,
            })
        };
        let first = || self.command.split(' ').find_map(usual).unwrap_or("a.pleach").to_owned();
        self.command
            .split(' ')
            .map(|word| match self.place {
                Some((place, _, "=")) if word == place.to_string() => first(),
                Some((place, _, file)) if word == place.to_string() => file.to_owned(),
                _ => usual(word).unwrap_or(word).to_owned(),
            })
            .collect()
    }

    /// File that the command may make or replace, if its arguments allow it.
    fn output(&self, words: &[String]) -> Option<PathBuf> {
        let after = |option: &str| {
            let at = words.iter().position(|word| word == option)?;
            words.get(at + 1).map(PathBuf::from)
        };
        match words[0].as_str() {
            "rebuild" | "rollback" | "upgrade" => Some(words[1].clone().into()),
            "fsck" => after("--salvage"),
            _ => after("-o"),
        }
    }

    fn name(&self) -> String {
        let place = self.place.map_or(String::new(), |(place, what, _)| format!(", {place}: {what}"));
        format!("pleach {} ({}{place})", self.words().join(" "), self.machine.0)
    }

    /// Runs it in `folder`, a copy of the scene. What is wrong with how it ended.
    fn run(&self, folder: &Path, user: &[&str]) -> Result<i32, String> {
        let before = contents(folder);
        let words = self.words();
        let blocks = words.iter().any(|word| word == "pipe");
        // A command that waits for a pipe must end at a signal, at once.
        let guard = if blocks { r#"timeout --preserve-status -s TERM 0.5 "$@""# } else { r#""$@""# };
        let script = self.machine.1.replace(r#""$@""#, guard);
        let mut line: Vec<&str> = user.to_vec();
        line.extend(["timeout", "-k", "1", "60", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_pleach")]);
        let run = Command::new(line[0])
            .args(&line[1..])
            .args(&words)
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("set");
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        let ended = run.status.code().ok_or(format!("a signal ended it: {said}"))?;
        let signalled = blocks || self.machine.1.contains("timeout");
        if !(CODES.contains(&ended) || signalled && ended == 130) {
            return Err(format!("exit code {ended}: {said}"));
        }
        if said.contains("panicked") {
            return Err(said);
        }
        let errors =
            said.lines().filter(|line| line.starts_with("error: ") || line.starts_with("{\"")).count();
        let is_told = matches!(ended, 2 | 8 | 130) && errors == 1
            || ended == 4 && errors <= 1
            || ended < 2 && errors == 0;
        // A full or closed standard error could not say it; these are not among the machines.
        if !is_told {
            return Err(format!("exit code {ended}, {errors} errors: {said}"));
        }
        let after = contents(folder);
        let output = self.output(&words);
        // The target of a link is replaced.
        let replaced =
            output.as_ref().map(|output| fs::read_link(folder.join(output)).unwrap_or(output.clone()));
        let is_rebuilt = matches!(words[0].as_str(), "rebuild" | "rollback" | "upgrade")
            || words.iter().any(|word| word == "--keep");
        let may_change = |name: &PathBuf| {
            let is_output = replaced.as_ref().is_some_and(|output| output == name);
            let is_named = |at: usize| at > 0 && ["-o", "--salvage"].contains(&words[at - 1].as_str());
            let mut others = words.iter().enumerate().filter(|&(at, _)| !is_named(at));
            let is_input = !is_rebuilt && others.any(|(_, word)| Path::new(word) == name);
            let is_generation = is_rebuilt
                && replaced.as_ref().is_some_and(|output| {
                    name.to_string_lossy().starts_with(&format!("{}.g", output.display()))
                });
            // Salvage writes what is whole of a damaged file, and says that it is damaged.
            let is_done = ended == 0 || ended == 4 && words[0] == "fsck";
            is_done && (is_output && !is_input || is_generation)
        };
        for (name, bytes) in &before {
            if after.get(name) != Some(bytes) && !may_change(name) {
                return Err(format!("exit code {ended}: {} is not what it was: {said}", name.display()));
            }
        }
        for name in after.keys().filter(|name| !before.contains_key(*name)) {
            if !may_change(name) {
                return Err(format!("exit code {ended}: {} is left: {said}", name.display()));
            }
        }
        Ok(ended)
    }
}

fn is_there(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|found| found.status.success())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_is_slipped_into_leaves_inputs_as_they_were() {
    let (count, seed) = (number("PLEACH_ROAM", 300), number("PLEACH_SEED", 28));
    let made = tempfile::tempdir().expect("a folder");
    scene(made.path());
    // Limits and permissions hold for users alone, not for root.
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0);
    const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    // A user who cannot reach the program cannot run it.
    let may_run = |user: &[&str]| {
        let tried = Command::new(user[0])
            .args(&user[1..])
            .args([env!("CARGO_BIN_EXE_pleach"), "--version"])
            .current_dir("/")
            .output();
        tried.is_ok_and(|run| run.status.success())
    };
    let user: &[&str] = if is_root && is_there("setpriv") && may_run(&NOBODY) { &NOBODY } else { &[] };
    let has_strace = is_there("strace");
    let (mut ends, mut wrong, mut drawn) = (BTreeMap::new(), Vec::new(), 0);
    let mut random = Random(seed);
    while drawn < count {
        let pair = Pair::draw(&mut random);
        if pair.machine.1.contains("strace") && !has_strace {
            continue;
        }
        drawn += 1;
        let folder = tempfile::tempdir().expect("a folder");
        copy(made.path(), folder.path());
        match pair.run(folder.path(), user) {
            Ok(ended) => *ends.entry(ended).or_insert(0) += 1,
            Err(problem) => wrong.push(format!("{}: {}", pair.name(), problem.trim())),
        }
    }
    assert!(wrong.is_empty(), "seed {seed}, {} of {count} pairs:\n{}", wrong.len(), wrong.join("\n"));
    // Neither all well nor all refused: else the pairs would show nothing.
    assert!(ends.get(&0).is_some_and(|&well| well * 5 > count), "{ends:?}");
    assert!(ends.get(&8).is_some_and(|&refused| refused * 10 > count), "{ends:?}");
    println!("{count} pairs by seed {seed}, exit codes {ends:?}");
}
