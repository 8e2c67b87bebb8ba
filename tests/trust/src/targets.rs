//! The thirty targets: what each is, how it is measured, and what the method cannot show.

use crate::lab::Lab;
use crate::{disks, fuzzing, limits, live, mutants, power, suites, trace};
use anyhow::Result;

/// A row of the table of docs/TRUST.md.
pub struct Target {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: &'static str,
    /// Method of measurement.
    pub method: &'static str,
    /// Limits of the method.
    pub limits: &'static str,
    /// Measures it: a sentence with the figures, or why it does not hold.
    pub measure: fn(&Lab) -> Result<String>,
    /// True if the short form has it unasked: the others have theirs in `cargo test`, and fuzzers take minutes to
    /// build.
    pub in_short: bool,
}

/// All of them, by their numbers.
pub const TARGETS: &[Target] = &[
    Target {
        number: 1,
        name: "single bit flips",
        method: "every bit of a small file, checked after each flip; random flips of a larger one",
        limits: "the small file has 8 KiB blocks like all others: it is small in tuples, not in blocks",
        measure: suites::bit_flips,
        in_short: false,
    },
    Target {
        number: 2,
        name: "other damage",
        method: "named damage (zeroed, half written, exchanged and foreign blocks, blocks of the generation before), \
            all pairs of bits of the superblock's first bytes, bursts of up to 32 bits",
        limits: "bursts are drawn; pairs are those of the superblock's fields, not of the section table",
        measure: suites::other_damage,
        in_short: false,
    },
    Target {
        number: 3,
        name: "every byte is covered",
        method: "a flipped bit in every byte, padding and gaps too; what follows from the tuples, and the section \
            table, also under right sums",
        limits: "",
        measure: suites::every_byte,
        in_short: false,
    },
    Target {
        number: 4,
        name: "truncation and extension",
        method: "every length of a small file and 4096 more; section borders of a larger one",
        limits: "",
        measure: suites::truncation,
        in_short: false,
    },
    Target {
        number: 5,
        name: "forged headers with right sums",
        method: "every field of superblock and section table, spines, grids, columns, trees, at the worst numbers, \
            all sums made right; memory and time of opening are measured",
        limits: "the time of an opening that takes over 10 ms is the least of up to five: what a shared machine does \
            not repeat is not the program's",
        measure: suites::forged,
        in_short: false,
    },
    Target {
        number: 6,
        name: "unverified search of random bytes",
        method: "sections filled with bytes of chance under a right header, every instruction set of the machine; \
            the same under the address sanitizer (20), on a GPU (22) and by fuzzing (17)",
        limits: "that each look-up ends within the file is seen, not how many blocks it reads: that these are \
            no more than the tree is high is not counted",
        measure: suites::unverified,
        in_short: false,
    },
    Target {
        number: 7,
        name: "kill at every system call",
        method: "`strace` kills the process at its k-th call of each kind, for all k",
        limits: "a call is not torn: the process stops before it",
        measure: trace::kills,
        in_short: true,
    },
    Target {
        number: 8,
        name: "kill at random times",
        method: "SIGKILL at moments drawn from the length of a build",
        limits: "one build, which spills; rebuilds are killed by `tests/tests/rebuild.rs`, 200 times",
        measure: disks::kills,
        in_short: true,
    },
    Target {
        number: 9,
        name: "power cut",
        method: "a disk that remembers every write and sync under ext4, xfs and btrfs; what was synced stays, of the \
            rest any blocks; mounted, recovered, checked",
        limits: "disks that do not honour a sync are not meant; blocks of 4 KiB are whole; moments are drawn, \
            and those right after each build: not the one after each sync",
        measure: power::cuts,
        in_short: true,
    },
    Target {
        number: 10,
        name: "failing calls",
        method: "`strace` answers EIO, ENOSPC, EDQUOT, EINTR, EMFILE, ENOMEM at the k-th call of each kind, for all k",
        limits: "memory that the allocator does not get ends the process, without a word of ours",
        measure: trace::errnos,
        in_short: true,
    },
    Target {
        number: 11,
        name: "full and read-only disks",
        method: "tmpfs of 1 MiB, ext4 image of 16 MiB, RLIMIT_FSIZE, remounted read-only",
        limits: "",
        measure: disks::full,
        in_short: true,
    },
    Target {
        number: 12,
        name: "short reads and writes",
        method: "a library between program and system does a part of the work, or says that it was interrupted",
        limits: "",
        measure: disks::parts,
        in_short: true,
    },
    Target {
        number: 13,
        name: "files cut or overwritten under readers",
        method: "eight threads search while the file is cut to 0, 4096, half, or overwritten; the command on files \
            that shrink",
        limits: "where `contain_sigbus` was called, as the command does; without it the system ends the process. Cut \
            inside a page, a file shows zeros up to the page's end, which only sums tell from what was there",
        measure: live::cuts,
        in_short: true,
    },
    Target {
        number: 14,
        name: "readers across publishes",
        method: "8 processes read, each answer against the generation that it names",
        limits: "",
        measure: live::publishes,
        in_short: true,
    },
    Target {
        number: 15,
        name: "builders at once",
        method: "four processes build one target",
        limits: "",
        measure: live::builders,
        in_short: true,
    },
    Target {
        number: 16,
        name: "opening is O(1)",
        method: "system calls counted by `strace`, pages by the kernel's counts, from cold",
        limits: "the disk's read-ahead is the system's choice",
        measure: limits::open,
        in_short: true,
    },
    Target {
        number: 17,
        name: "fuzzing: opening",
        method: "`tests/fuzz/targets/open.rs`: changes to whole files, sums made right",
        limits: "an hour of a processor, where 24 of them, or 10^9 runs, are the aim",
        measure: fuzzing::fuzz_open,
        in_short: false,
    },
    Target {
        number: 18,
        name: "fuzzing: answers",
        method: "`tests/fuzz/targets/search.rs`: tuples of chance against a sorted vector, whole and damaged",
        limits: "an hour of a processor, where 10^8 answers are the aim; values are numbers; byte strings as values \
            are looked at by 17 and by tests",
        measure: fuzzing::fuzz_search,
        in_short: false,
    },
    Target {
        number: 19,
        name: "fuzzing: input and arguments",
        method: "`tests/fuzz/targets/import.rs` and `text.rs`: tables, expressions, records; command lines of chance, \
            run",
        limits: "an hour of a processor each, where eight are the aim; `bench`, `tune` and `demo` are left out of the \
            command lines",
        measure: fuzzing::fuzz_import,
        in_short: true,
    },
    Target {
        number: 20,
        name: "sanitizers and Miri",
        method: "the suites of `format`, `builder`, `fsck`, reader, `relation`, `papers` and `tests` under the \
            address and the thread sanitizer; Miri over the scalar searches and the operators in memory (`format` \
            forbids unsafe code)",
        limits: "Miri maps no files, takes the scalar paths and few tuples; the command's own tests run without \
            sanitizers, models (28) without that of threads, and the one that is to fail without both; accesses inside \
            rayon's deques are excepted (`tests/trust/thread.supp`)",
        measure: suites::sanitizers,
        in_short: false,
    },
    Target {
        number: 21,
        name: "CPU paths and GPU agree",
        method: "every search against a plain one: types, shapes, sizes at every edge, instruction sets",
        limits: "instruction sets of one machine; NEON runs under QEMU, by unit tests of the reader (`.ci/neon`); \
            on a GPU the same comparisons are tests of their own (22), by CUDA alone: there is no OpenCL",
        measure: suites::agree,
        in_short: false,
    },
    Target {
        number: 22,
        name: "GPU faults",
        method: "kernels on a CPU under sanitizers, lines of chance, planted faults, refusals; `compute-sanitizer` \
            on a device (TESTING.md)",
        limits: "what needs a device is run by hand, last on an H100 on 2026-11-24: eleven tests, lines of chance \
            under every algorithm among them, and memcheck, synccheck and initcheck without a finding; racecheck, \
            last on an H200 on 2026-11-23, names the paper's hash join alone, whose algorithm it is (and, where \
            damaged keys descend, lanes that both find a child)",
        measure: suites::gpu,
        in_short: false,
    },
    Target {
        number: 23,
        name: "salvage",
        method: "k of n blocks damaged, for every k; every other section damaged",
        limits: "a block whose sum is damaged counts as damaged",
        measure: suites::salvage,
        in_short: false,
    },
    Target {
        number: 24,
        name: "determinism",
        method: "threads, memory, order of the input, layouts",
        limits: "",
        measure: limits::same_bytes,
        in_short: true,
    },
    Target {
        number: 25,
        name: "memory limit",
        method: "ten times the limit as input; the most memory of its own, looked at every 2 ms",
        limits: "pages of mapped files are the system's and are not counted",
        measure: limits::memory,
        in_short: true,
    },
    Target {
        number: 26,
        name: "compatibility",
        method: "golden files, value by value, and a folder of bad ones",
        limits: "no release yet",
        measure: suites::compatibility,
        in_short: false,
    },
    Target {
        number: 27,
        name: "speed and manners of `fsck`",
        method: "from cold against `dd`, in turn; progress, Ctrl-C, JSON, no mapping",
        limits: "its speed in memory is that of all cores together, not of one; how far it is it says from the third \
            second on",
        measure: limits::fsck,
        in_short: true,
    },
    Target {
        number: 28,
        name: "models",
        method: "shuttle over publishing, refreshing and letting go; loom over Harmonia's locks",
        limits: "",
        measure: suites::models,
        in_short: false,
    },
    Target {
        number: 29,
        name: "do the tests test?",
        method: "cargo-mutants on `format`, on what verifies and on what publishes",
        limits: "texts for people are left out; a mutant is tried again when its file changes, not when tests do",
        measure: mutants::mutants,
        in_short: false,
    },
    Target {
        number: 30,
        name: "sets of files",
        method: "",
        limits: "waits for them",
        measure: suites::sets,
        in_short: false,
    },
];
