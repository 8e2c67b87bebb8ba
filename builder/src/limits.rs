//! Memory that this process may use: limits of the machine, of its control groups, and of the process itself.
//!
//! Control groups nest, and a limit of any level holds for all below it. So every level is read, from the
//! process's own group up to the root, in both versions (systemd units and Slurm jobs limit a group far below
//! the root; older hosts have version 1 alone). `ulimit -v` and `ulimit -d` are the process's own limits. All
//! of it is text under `/proc` and `/sys`; what cannot be read sets no limit.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Memory assumed if the system does not report its size.
const UNKNOWN_BYTES: u64 = 2 << 30;
/// Address space reserved for threads' stacks, their heaps and mapped files.
const ADDRESS_HEADROOM_BYTES: u64 = 64 << 20;
/// Minimum that a build uses, however little memory there is.
const LEAST_BYTES: u64 = 16 << 20;
/// Page size of the numbers in `/proc/self/statm`, on the supported platforms. If pages are larger, the
/// process's own share is underestimated; the headroom covers the difference.
const PAGE_BYTES: u64 = 4096;

/// Returns the maximum memory of this process, according to the files under `root`.
pub(crate) fn memory_bytes(root: &Path) -> u64 {
    let physical = physical_bytes(root).unwrap_or(UNKNOWN_BYTES);
    let group = group_bytes(root).unwrap_or(u64::MAX);
    let own = own_bytes(root).unwrap_or(u64::MAX);
    physical.min(group).min(own).max(LEAST_BYTES)
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn physical_bytes(root: &Path) -> Option<u64> {
    let text = read(root.join("proc/meminfo"))?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Files that hold limits, for each version of control groups.
const UNIFIED: &[&str] = &["memory.max", "memory.high"];
const LEGACY: &[&str] = &["memory.limit_in_bytes"];

/// Returns the least limit of the control groups that contain this process.
fn group_bytes(root: &Path) -> Option<u64> {
    let groups = read(root.join("proc/self/cgroup")).unwrap_or_default();
    let (mut unified, mut legacy) = ("/".to_owned(), "/".to_owned());
    for line in groups.lines() {
        // Number, controllers, path; a path may contain colons.
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            path.clone_into(&mut unified);
        } else if controllers.split(',').any(|controller| controller == "memory") {
            path.clone_into(&mut legacy);
        }
    }
    let mut places = mounts(root);
    // The customary places, in case the table of mounts lacks them.
    places.push((UNIFIED, "/".into(), "/sys/fs/cgroup".into()));
    places.push((UNIFIED, "/".into(), "/sys/fs/cgroup/unified".into()));
    places.push((LEGACY, "/".into(), "/sys/fs/cgroup/memory".into()));
    let limits = places.iter().filter_map(|(files, mounted, place)| {
        let group = if *files == UNIFIED { &unified } else { &legacy };
        least_limit(&root.join(place.strip_prefix("/").unwrap_or(place)), &within(group, mounted), files)
    });
    limits.min()
}

/// Returns the mounts of control groups that limit memory: files of limits, the group at the mount, and its
/// path.
fn mounts(root: &Path) -> Vec<(&'static [&'static str], String, PathBuf)> {
    let table = read(root.join("proc/self/mountinfo")).unwrap_or_default();
    let mounts = table.lines().filter_map(|line| {
        let (before, behind) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (mounted, place) = (unescaped(before.next()?), unescaped(before.next()?));
        let mut behind = behind.split(' ');
        let files = match (behind.next()?, behind.nth(1)) {
            ("cgroup2", _) => UNIFIED,
            ("cgroup", Some(options)) if options.split(',').any(|option| option == "memory") => LEGACY,
            _ => return None,
        };
        Some((files, mounted, PathBuf::from(place)))
    });
    mounts.collect()
}

/// Decodes a path of the table of mounts, which writes spaces and the like as `\040`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(letter) => {
                plain.push(char::from(letter));
                plain.push_str(&part[3..]);
            }
            None => plain.extend(["\\", part]),
        }
    }
    plain
}

/// Returns the folder names from the group `mounted` to the group `group`. A group outside the mounted tree
/// is not visible: then the mount itself is the nearest visible group.
fn within(group: &str, mounted: &str) -> Vec<String> {
    let inner = Path::new(group).strip_prefix(mounted).unwrap_or(Path::new(""));
    let mut names = Vec::new();
    for part in inner.components() {
        match part {
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => return Vec::new(),
            _ => {}
        }
    }
    names
}

/// Returns the least limit of the group at `place`/`names` and of all groups above it.
fn least_limit(place: &Path, names: &[String], files: &[&str]) -> Option<u64> {
    let levels = (0..=names.len()).map(|depth| place.join(names[..depth].iter().collect::<PathBuf>()));
    let limits = levels.flat_map(|level| {
        files.iter().filter_map(move |file| read(level.join(file))?.trim().parse::<u64>().ok())
    });
    limits.min()
}

/// Returns the memory that `ulimit -v` and `ulimit -d` leave beside what the process already has.
fn own_bytes(root: &Path) -> Option<u64> {
    let limits = read(root.join("proc/self/limits"))?;
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    let held = read(root.join("proc/self/statm")).unwrap_or_default();
    let held: Vec<u64> = held.split_ascii_whitespace().filter_map(|pages| pages.parse().ok()).collect();
    let left = |limit: Option<u64>, held: Option<&u64>| {
        let taken = held.copied().unwrap_or(0).saturating_mul(PAGE_BYTES);
        Some(limit?.saturating_sub(taken).saturating_sub(ADDRESS_HEADROOM_BYTES))
    };
    let space = left(soft("Max address space"), held.first());
    let data = left(soft("Max data size"), held.get(5));
    space.into_iter().chain(data).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const V2: &str = "25 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
    const V1: &str = "31 25 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory";

    /// Returns the memory under a root with these files.
    fn memory(files: &[(&str, &str)]) -> u64 {
        let root = tempfile::tempdir().expect("a folder");
        let machine = [("proc/meminfo", "MemFree: 1 kB\nMemTotal:        8388608 kB\n")];
        for (name, text) in machine.iter().chain(files) {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("has one")).expect("created");
            fs::write(path, text).expect("written");
        }
        memory_bytes(root.path())
    }

    #[test]
    fn every_place_of_a_limit_is_asked() {
        let limit = "134217728\n";
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("version 2, at the root", &[("sys/fs/cgroup/memory.max", limit)]),
            (
                "version 2, the group itself",
                &[
                    ("proc/self/mountinfo", V2),
                    ("proc/self/cgroup", "0::/system.slice/job.service\n"),
                    ("sys/fs/cgroup/system.slice/memory.max", "max\n"),
                    ("sys/fs/cgroup/system.slice/job.service/memory.max", limit),
                ],
            ),
            (
                "version 2, a group above",
                &[
                    ("proc/self/cgroup", "0::/slurm/job_1/step_0\n"),
                    ("sys/fs/cgroup/slurm/memory.max", "268435456\n"),
                    ("sys/fs/cgroup/slurm/job_1/memory.max", limit),
                    ("sys/fs/cgroup/slurm/job_1/step_0/memory.max", "max\n"),
                ],
            ),
            (
                "memory.high",
                &[
                    ("proc/self/cgroup", "0::/a\n"),
                    ("sys/fs/cgroup/a/memory.max", "max\n"),
                    ("sys/fs/cgroup/a/memory.high", limit),
                ],
            ),
            (
                "version 1",
                &[
                    ("proc/self/mountinfo", V1),
                    ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/ab\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                    ("sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", limit),
                ],
            ),
            ("version 1, unlisted", &[("sys/fs/cgroup/memory/memory.limit_in_bytes", limit)]),
            (
                "version 1, whose root is the container's group",
                &[
                    (
                        "proc/self/mountinfo",
                        "31 25 0:27 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
                    ),
                    ("proc/self/cgroup", "4:hugetlb,memory:/docker/ab/inner\n"),
                    ("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", limit),
                ],
            ),
            (
                "another place, with a space",
                &[
                    ("proc/self/mountinfo", "25 1 0:22 / /mnt/c\\040g rw - cgroup2 none rw"),
                    ("proc/self/cgroup", "0::/job\n"),
                    ("mnt/c g/job/memory.max", limit),
                ],
            ),
            (
                "a group outside of what is seen",
                &[("proc/self/cgroup", "0::/../../x\n"), ("sys/fs/cgroup/memory.max", limit)],
            ),
            (
                "address space",
                &[
                    (
                        "proc/self/limits",
                        "Limit  Soft Limit  Hard Limit  Units\nMax data size  unlimited  unlimited  bytes\n\
                         Max address space         209715200            unlimited            bytes     \n",
                    ),
                    ("proc/self/statm", "4096 900 800 5 0 300 0\n"),
                ],
            ),
            (
                "data",
                &[
                    ("proc/self/limits", "Max data size             201326592     unlimited     bytes\n"),
                    ("proc/self/statm", "99999 900 800 5 0 0 0\n"),
                ],
            ),
        ];
        for (name, files) in cases {
            let wanted = if *name == "address space" { 120 * MIB } else { 128 * MIB };
            assert_eq!(memory(files), wanted, "{name}");
        }
        assert_eq!(memory(&[]), 8 << 30, "the machine's");
        let none = [("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(memory(&none), 8 << 30, "no limit");
        assert_eq!(memory(&[("sys/fs/cgroup/memory.max", "4096\n")]), LEAST_BYTES, "hardly any");
    }
}
