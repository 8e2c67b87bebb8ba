//! Target 9: power cuts under ext4 (ordered and writeback), xfs and btrfs.
//!
//! Builds replace one file again and again on a disk that remembers ([`crate::recorder`]); each is noted
//! when it has returned. Then the power is cut, at hundreds of moments: the disk of that moment is mounted,
//! which runs the file system's own recovery, and the file must be there, whole, and none older than the
//! last build that had returned. The same is done once without the sync of the folder (`strace` answers it
//! in the kernel's place): then the rig has to find lost builds, or it would find nothing at all.

use crate::lab::{self, Lab, grouped, succeed};
use crate::recorder::{Recorder, Recording};
use anyhow::{Context, Result, ensure};
use pleach::{FsckOptions, Index, fsck};
use pleach_tests::generate::{Random, mix};
use std::fs;
use std::path::Path;

/// A file system: its name, how it is made, how it is mounted, bytes of the disk.
struct System {
    name: &'static str,
    make: &'static [&'static str],
    options: &'static str,
    bytes: u64,
}

const SYSTEMS: [System; 4] = [
    System { name: "ext4", make: &["mkfs.ext4", "-q", "-F"], options: "data=ordered", bytes: 96 << 20 },
    System {
        name: "ext4 writeback",
        make: &["mkfs.ext4", "-q", "-F"],
        options: "data=writeback",
        bytes: 96 << 20,
    },
    System { name: "xfs", make: &["mkfs.xfs", "-q", "-f"], options: "nouuid", bytes: 320 << 20 },
    System { name: "btrfs", make: &["mkfs.btrfs", "-q", "-f"], options: "noatime", bytes: 160 << 20 },
];

/// A loop device over a file, mounted. Unmounted when dropped.
struct Mounted {
    device: String,
    folder: tempfile::TempDir,
}

fn attach(image: &Path) -> Result<String> {
    let image = image.to_str().context("a plain path")?;
    Ok(succeed("losetup", &["--find", "--show", image])?.trim().to_owned())
}

impl Mounted {
    fn new(device: String, options: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = folder.path().to_str().context("a plain path")?;
        if let Err(error) = succeed("mount", &["-o", options, &device, at]) {
            let _ = succeed("losetup", &["--detach", &device]);
            return Err(error);
        }
        Ok(Self { device, folder })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = succeed("umount", &[&self.folder.path().to_string_lossy()]);
        let _ = succeed("losetup", &["--detach", &self.device]);
    }
}

/// Method of making a generation; the first one if there is no file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Build,
    Spill,
    Merge,
    Patch,
}

fn way(number: u64) -> Way {
    [Way::Build, Way::Spill, Way::Merge, Way::Patch][(number.max(1) - 1) as usize % 4]
}

/// Generation `number` has these tuples, whose values say which one it is. Patching keeps the keys.
fn tuples(number: u64) -> u64 {
    500 + 37 * (number - u64::from(way(number) == Way::Patch))
}

/// Builds on a disk that remembers. When each had returned, in events.
fn run(lab: &Lab, system: &System, builds: u64, folder_sync: bool) -> Result<(Recording, Vec<usize>)> {
    let recorder = lab::allowed(Recorder::new(system.bytes))?;
    let device = lab::allowed(attach(&recorder.path()))?;
    succeed(system.make[0], &[&system.make[1..], &[&device]].concat())?;
    let mounted = lab::allowed(Mounted::new(device, system.options))?;
    let inputs = lab.memory()?;
    let build = |number: u64| -> Result<()> {
        let (input, changes) = (inputs.path().join("in.raw"), inputs.path().join("changes.csv"));
        fs::write(&input, lab::raw(tuples(number), number))?;
        let puts = (0..tuples(number)).map(|i| format!("put,{},{}\n", mix(i), i + number));
        fs::write(&changes, format!("op,key,value\n{}", puts.collect::<String>()))?;
        let [input, changes] = [&input, &changes].map(|path| path.to_string_lossy().into_owned());
        let build = ["build", "-o", "t.pleach", "--raw", "u64,u64", "--quiet", "--threads", "1", &input];
        let rebuild = ["rebuild", "t.pleach", "--quiet", "--threads", "1", "--apply", &changes, "--method"];
        let args = match way(number) {
            // The lie below is for plain builds.
            _ if !folder_sync => build.to_vec(),
            Way::Build => build.to_vec(),
            Way::Spill => [&build[..], &["--memory", "1"]].concat(),
            Way::Merge => [&rebuild[..], &["merge"]].concat(),
            Way::Patch => [&rebuild[..], &["patch"]].concat(),
        };
        // Syncs of files go to the disk, that of the folder (the second one) is only said to.
        let lie = ["-f", "-qq", "-o", "/dev/null", "-e", "inject=fsync:retval=0:when=2"];
        let output = match folder_sync {
            true => lab.pleach(mounted.folder.path(), &args).output()?,
            false => lab.through("strace", &lie, mounted.folder.path(), &args).output()?,
        };
        ensure!(output.status.success(), "{}", lab::both(&output));
        Ok(())
    };
    succeed("sync", &["-f", &mounted.folder.path().to_string_lossy()])?;
    let mut recording = recorder.record();
    let mut returned = Vec::new();
    for number in 1..=builds {
        build(number)?;
        returned.push(recorder.now());
    }
    recorder.stop(&mut recording);
    drop(mounted);
    Ok((recording, returned))
}

/// Returns the number of the build that a disk holds after a cut, or 0 if there is no file.
fn found(image: &Path, system: &System, builds: u64) -> Result<u64> {
    let mounted = Mounted::new(attach(image)?, system.options).context("the file system does not recover")?;
    let target = mounted.folder.path().join("t.pleach");
    if !target.try_exists()? {
        return Ok(0);
    }
    let report = fsck(&target, &FsckOptions::default()).context("the file cannot be read")?;
    ensure!(report.findings.is_empty(), "damaged: {:?}", report.findings);
    let index = Index::open(&target)?;
    let view = index.typed::<u64, u64>()?;
    let number =
        view.get(mix(0))?.filter(|number| (1..=builds).contains(number)).context("no build's file")?;
    ensure!(index.len() == tuples(number), "{} tuples in generation {number}", index.len());
    for i in 0..tuples(number) {
        let value = view.get(mix(i))?;
        ensure!(value == Some(i + number), "a mixture: {value:?} in generation {number}");
    }
    Ok(number)
}

/// Cuts the power at many moments. How many builds that had returned were lost.
fn cut(lab: &Lab, system: &System, cuts: u64, folder_sync: bool) -> Result<u64> {
    let builds = lab.tries(4, 24);
    let (mut recording, returned) = run(lab, system, builds, folder_sync)?;
    let mut random = Random(cuts);
    let mut moments: Vec<usize> =
        (0..cuts).map(|_| random.below(recording.len() as u64 + 1) as usize).collect();
    // The moments right after a build has returned are those that matter most.
    for (moment, &at) in moments.iter_mut().zip(&returned) {
        *moment = at;
    }
    moments.sort_unstable();
    let folder = lab.memory()?;
    let image = folder.path().join("image");
    let mut lost = 0;
    for at in moments {
        recording.after_cut(at, &mut random, &image)?;
        let what = || format!("{}, power cut behind {at} of {} events", system.name, recording.len());
        let number = found(&image, system, builds).with_context(what)?;
        let acknowledged = returned.iter().filter(|&&moment| moment <= at).count() as u64;
        let begun = (acknowledged + 1).min(builds);
        ensure!(number <= begun, "{}: build {number} stands before it began", what());
        if number < acknowledged {
            ensure!(!folder_sync, "{}: build {number} stands, {acknowledged} had returned", what());
            lost += 1;
        }
    }
    Ok(lost)
}

/// Target 9.
pub fn cuts(lab: &Lab) -> Result<String> {
    lab::need(&["losetup", "mount", "strace"], true)?;
    let cuts = lab.tries(10, 200);
    let mut names = Vec::new();
    for system in &SYSTEMS {
        if !lab::has(system.make[0]) {
            ensure!(lab.short, "{} is missing: install it", system.make[0]);
            continue;
        }
        cut(lab, system, cuts, true)?;
        names.push(system.name);
    }
    ensure!(!names.is_empty(), "no file system can be made");
    let lost = cut(lab, &SYSTEMS[0], lab.tries(10, 60), false)?;
    ensure!(lost > 0, "without the folder's sync nothing is lost: this rig would not notice");
    Ok(format!(
        "{} cuts of a first build and of builds, spilling builds and rebuilds by merging and by patching, {cuts} on \
         each of {}: never torn or missing, and never older than the last one that had returned; without the \
         folder's sync {lost} of {} cuts on ext4 lost a build, as they must",
        grouped(cuts * names.len() as u64),
        names.join(", "),
        lab.tries(10, 60),
    ))
}
