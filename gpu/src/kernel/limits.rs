//! Limits of the resources that kernels use: registers, stack, spills, for four generations of devices.
//!
//! `limits.txt` records the resources of each entry of each source and each width of words, the maximum over
//! widths of values and over options: `registers` or, where it has them, `registers+stack+spills` (bytes),
//! for each of [`ARCHITECTURES`]. A test, which compiles every instance, fails if an entry uses more. With a
//! compiler of another version than the recorded one it only requires that all compile. The file is made by
//!
//! ```text
//! PLEACH_BLESS=1 LD_LIBRARY_PATH=<folder of libnvrtc.so.12> cargo test --release -p pleach-gpu --lib limits
//! ```
//! With `PLEACH_SAMPLE=1` one instance for each source and width is compiled ([`wanted`]), and compared with
//! its row.
//!
//! Every crate that has kernels compiles this text, in a module that names its rows and their record.

use super::{Compiler, Instance, Lowest, RECORD, RECORDED, ROWS};
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Turing, Ampere, Hopper, Blackwell.
const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

/// Returns all instances of all sources, in order.
pub(crate) fn all() -> Vec<Instance> {
    let mut all = Vec::new();
    for &source in ROWS {
        for word_bytes in [4, 8, 16] {
            for value_bytes in if source.has_value_width { &[0, 4, 8][..] } else { &[0] } {
                for &option in source.options {
                    for lowest in [Lowest::Codes16, Lowest::Codes8, Lowest::Codes32] {
                        let instance =
                            Instance { option, lowest, ..Instance::new(source, word_bytes, *value_bytes) };
                        if (source.exists)(instance) {
                            all.push(instance);
                        }
                    }
                }
            }
        }
    }
    all.sort_unstable();
    all
}

/// Returns the whole list; or, where `PLEACH_SAMPLE` is set, one instance for each source and width of words,
/// so that every kernel is compiled. The choice depends on `text`.
pub(crate) fn wanted(all: Vec<Instance>, text: &[u8]) -> Vec<Instance> {
    if std::env::var_os("PLEACH_SAMPLE").is_none() || std::env::var_os("PLEACH_BLESS").is_some() {
        return all;
    }
    let mut groups = BTreeMap::<_, Vec<Instance>>::new();
    for instance in all {
        groups.entry((instance.source, instance.word_bytes)).or_default().push(instance);
    }
    let seed = text.iter().fold(0usize, |seed, &byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    groups.into_values().map(|group| group[seed % group.len()]).collect()
}

/// Resources that a function uses per thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    registers: u32,
    pub(crate) stack_bytes: u32,
    pub(crate) spilled_bytes: u32,
}

impl Use {
    fn most(self, other: Self) -> Self {
        Self {
            registers: self.registers.max(other.registers),
            stack_bytes: self.stack_bytes.max(other.stack_bytes),
            spilled_bytes: self.spilled_bytes.max(other.spilled_bytes),
        }
    }

    fn is_within(self, limit: Self) -> bool {
        self.most(limit) == limit
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.registers)?;
        if self.stack_bytes + self.spilled_bytes > 0 {
            write!(f, "+{}+{}", self.stack_bytes, self.spilled_bytes)?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Use {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut numbers = text.split('+').map(str::parse);
        let mut next = || numbers.next().unwrap_or(Ok(0));
        Ok(Self { registers: next()?, stack_bytes: next()?, spilled_bytes: next()? })
    }
}

/// Returns the number that precedes some words of a line.
fn before(line: &str, words: &str) -> Option<u32> {
    line.split(words).next()?.rsplit(' ').next()?.parse().ok().filter(|_| line.contains(words))
}

/// Returns the resources of each entry, from the assembler's log.
fn uses(log: &str) -> BTreeMap<&str, Use> {
    let mut uses = BTreeMap::new();
    for part in log.split("Compiling entry function '").skip(1) {
        let Some((entry, rest)) = part.split_once('\'') else { continue };
        let mut found = Use::default();
        for line in rest.lines() {
            found = found.most(Use {
                registers: before(line, " registers").unwrap_or(0),
                stack_bytes: before(line, " bytes stack frame").unwrap_or(0),
                spilled_bytes: before(line, " bytes spill stores").unwrap_or(0),
            });
        }
        uses.insert(entry, found);
    }
    uses
}

/// Name of a row: source, entry, bytes per word.
pub(crate) type Row = (&'static str, String, u8);

/// Returns the resources of all instances, on all architectures that the compiler knows; compiles on all
/// cores.
fn measure(compiler: Compiler) -> BTreeMap<Row, [Option<Use>; 4]> {
    let instances = wanted(all(), RECORDED.as_bytes());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made: BTreeMap<Row, [Option<Use>; 4]> = BTreeMap::new();
        while let Some(&instance) = instances.get(next.fetch_add(1, Ordering::Relaxed)) {
            for (place, architecture) in ARCHITECTURES.iter().enumerate() {
                if !compiler.knows(architecture) || !is_wanted(architecture) {
                    continue;
                }
                let log = compiler.resources(instance, architecture);
                let log = log.unwrap_or_else(|error| panic!("{instance:?} for {architecture}: {error}"));
                let uses = uses(&log);
                for entry in instance.source.entries(instance) {
                    let used =
                        *uses.get(entry).unwrap_or_else(|| panic!("{instance:?}: no {entry} in {log}"));
                    let row = (instance.source.text.name, entry.to_owned(), instance.word_bytes);
                    let most = &mut made.entry(row).or_default()[place];
                    *most = Some(most.map_or(used, |most| most.most(used)));
                }
            }
        }
        made
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut all: BTreeMap<Row, [Option<Use>; 4]> = BTreeMap::new();
        for thread in threads {
            for (row, found) in thread.join().expect("compiles") {
                let most = all.entry(row).or_default();
                for (most, found) in most.iter_mut().zip(found) {
                    *most = match (*most, found) {
                        (Some(a), Some(b)) => Some(a.most(b)),
                        (a, b) => a.or(b),
                    };
                }
            }
        }
        all
    })
}

/// Returns true if `PLEACH_ARCHITECTURES`, a list with commas, contains it, or is not set.
fn is_wanted(architecture: &str) -> bool {
    std::env::var("PLEACH_ARCHITECTURES").map_or(true, |list| list.split(',').any(|one| one == architecture))
}

/// Returns the record: the compiler's version, and its rows.
pub(crate) fn recorded() -> (&'static str, BTreeMap<Row, [Use; 4]>) {
    let mut lines = RECORDED.lines();
    let version = lines.next().and_then(|line| line.strip_prefix("NVRTC ")).expect("a version");
    let rows = lines.skip(1).map(|line| {
        let mut words = line.split_whitespace();
        let mut word = || words.next().expect("a word");
        let row = (word(), word().to_owned(), word().parse().expect("a number"));
        (row, [(); 4].map(|()| word().parse().expect("numbers")))
    });
    (version, rows.collect())
}

/// Writes the measured resources to the file that `recorded` reads.
fn record(version: &str, found: &BTreeMap<Row, [Option<Use>; 4]>) {
    let mut text = format!("NVRTC {version}\n");
    let mut line = |words: [&str; 7]| {
        let [source, entry, word, a, b, c, d] = words;
        writeln!(text, "{source:<11} {entry:<19} {word:<4} {a:<9} {b:<9} {c:<9} {d}").expect("a string");
    };
    let [a, b, c, d] = ARCHITECTURES;
    line(["source", "entry", "word", a, b, c, d]);
    for ((source, entry, word), uses) in found {
        let [a, b, c, d] = uses.map(|used| used.expect("the compiler knows all architectures").to_string());
        line([source, entry, &word.to_string(), &a, &b, &c, &d]);
    }
    std::fs::write(RECORD, text).expect("written");
}

#[test]
fn every_instance_compiles_within_its_limits() {
    let Some(compiler) = Compiler::find() else {
        assert!(std::env::var_os("PLEACH_REQUIRE_NVRTC").is_none(), "NVRTC is not installed");
        return eprintln!("SKIPPED: NVRTC is not installed");
    };
    let found = measure(compiler);
    if std::env::var_os("PLEACH_BLESS").is_some() {
        return record(&compiler.version(), &found);
    }
    let (version, mut limits) = recorded();
    if std::env::var_os("PLEACH_SAMPLE").is_some() {
        limits.retain(|row, _| found.contains_key(row));
    }
    assert!(
        limits.keys().map(|row| (row.0, &row.1, row.2)).eq(found.keys().map(|row| (row.0, &row.1, row.2))),
        "limits.txt is not of these kernels: make it anew, see the head of limits.rs"
    );
    if version != compiler.version() {
        assert!(
            std::env::var_os("PLEACH_REQUIRE_NVRTC").is_none(),
            "limits are of NVRTC {version}, found {}",
            compiler.version()
        );
        return eprintln!(
            "SKIPPED: limits are of NVRTC {version}; all kernels compile with {}",
            compiler.version()
        );
    }
    let mut above = String::new();
    for ((row, limits), found) in limits.iter().zip(found.values()) {
        for ((architecture, limit), found) in ARCHITECTURES.iter().zip(limits).zip(found) {
            let Some(found) = found else {
                assert!(!is_wanted(architecture), "the recorded compiler knows all");
                continue;
            };
            if !found.is_within(*limit) {
                writeln!(above, "{row:?} for {architecture}: {found}, at most {limit}").expect("a string");
            }
        }
    }
    assert!(above.is_empty(), "registers+stack+spills:\n{above}");
}

#[test]
fn logs_are_read() {
    let log = [
        "ptxas info    : Compiling entry function 'a' for 'sm_90'",
        "ptxas info    : Function properties for a",
        "    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads",
        "ptxas info    : Used 50 registers, used 1 barriers, 600 bytes cmem[0]",
        "ptxas info    : Compiling entry function 'b' for 'sm_90'",
        "ptxas info    : Used 7 registers",
    ]
    .join("\n");
    let found = uses(&log);
    assert_eq!(found["a"], Use { registers: 50, stack_bytes: 16, spilled_bytes: 8 });
    assert_eq!(found["b"].to_string(), "7");
    assert_eq!("50+16+8".parse(), Ok(found["a"]));
    assert!(!found["a"].is_within(found["b"]) && found["b"].is_within(found["a"]));
}
