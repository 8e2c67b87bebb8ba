//! Where a table goes: a file that gets its name when it is complete, a device or pipe, or standard
//! output.
//!
//! A file is written under a temporary name in the folder of its target, synced, renamed, and the
//! folder synced. Until then whatever stood under the name stays as it was. The temporary file is
//! locked; one that a killed process has left behind is not, and goes with the next export.

use crate::failure::Failure;
use pleach_builder::storage::{LockedTemp, locked_temp};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// End of the names of temporary files, which `fsck` and `build` know.
const TEMP_SUFFIX: &str = ".pleach-tmp";

enum Kind {
    File { temp: LockedTemp, target: PathBuf, folder: PathBuf },
    Device(File),
    StandardOutput(io::Stdout),
}

/// An output that is being written.
pub struct Target {
    kind: Kind,
    shown: PathBuf,
    bytes: u64,
}

impl Target {
    /// Standard output.
    pub fn standard_output() -> Self {
        Self { kind: Kind::StandardOutput(io::stdout()), shown: "standard output".into(), bytes: 0 }
    }

    /// A file; `inputs` are the files that are read for it, and that it must not replace.
    pub fn create(path: &Path, inputs: &[&Path]) -> Result<Self, Failure> {
        let failed = |error: &io::Error| Failure::io("cannot create", path, error);
        // What a link points to is what is replaced, if it is there.
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(failed(&error)),
        };
        let old = match fs::metadata(&target) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&error)),
        };
        if old.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(Failure::operational(format!("is a folder: {}: name a file", path.display())));
        }
        if let Some(old) = &old {
            for input in inputs {
                // An input that is gone cannot be replaced.
                if fs::metadata(input).is_ok_and(|input| (input.dev(), input.ino()) == (old.dev(), old.ino()))
                {
                    let text = format!("output is the input: {}: name another file", path.display());
                    return Err(Failure::operational(text));
                }
            }
            if !old.is_file() {
                let device = OpenOptions::new().write(true).open(&target).map_err(|error| failed(&error))?;
                return Ok(Self { kind: Kind::Device(device), shown: path.to_owned(), bytes: 0 });
            }
        }
        let Some(name) = target.file_name() else {
            return Err(Failure::operational(format!("is no file name: {}: name a file", path.display())));
        };
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        sweep(&target);
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        // Nobody who may not read the old file opens the new one before it has the old one's mode.
        let mode = old.as_ref().map_or(0o666, |_| 0o600);
        let temp = locked_temp(&folder, &prefix, TEMP_SUFFIX, mode).map_err(|error| failed(&error))?;
        if let Some(old) = old {
            let mode = Permissions::from_mode(old.mode() & 0o7777);
            temp.as_file().set_permissions(mode).map_err(|error| failed(&error))?;
        }
        Ok(Self { kind: Kind::File { temp, target, folder }, shown: path.to_owned(), bytes: 0 })
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// An error of writing, as this command's end.
    pub fn failure(&self, error: &io::Error) -> Failure {
        match &self.kind {
            Kind::StandardOutput(_) => Failure::stdout(error),
            // A pipe that was closed is a reader who has enough.
            Kind::Device(_) if error.kind() == io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            Kind::Device(_) | Kind::File { .. } => Failure::io("cannot write", &self.shown, error),
        }
    }

    /// Puts everything on the disk and gives the file its name.
    pub fn commit(mut self) -> Result<(), Failure> {
        self.flush().map_err(|error| self.failure(&error))?;
        let Kind::File { temp, target, folder } = self.kind else { return Ok(()) };
        let failed = |operation: &str, error: &io::Error| Failure::io(operation, &self.shown, error);
        temp.as_file().sync_all().map_err(|error| failed("cannot sync", &error))?;
        temp.persist(&target).map_err(|error| failed("cannot rename to", &error))?;
        File::open(&folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| failed("cannot sync the folder of", &error))
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.kind {
            Kind::File { temp, .. } => temp.as_file_mut().write(bytes),
            Kind::Device(device) => device.write(bytes),
            Kind::StandardOutput(out) => out.write(bytes),
        }?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.kind {
            Kind::File { temp, .. } => temp.as_file_mut().flush(),
            Kind::Device(device) => device.flush(),
            Kind::StandardOutput(out) => out.flush(),
        }
    }
}

/// Removes what killed processes have left beside `target`. What cannot be removed harms nobody.
fn sweep(target: &Path) {
    for stray in pleach_builder::publish::strays(target).unwrap_or_default() {
        let is_temp = stray.to_str().is_some_and(|name| name.ends_with(TEMP_SUFFIX));
        if let Some(file) = is_temp.then(|| File::open(&stray).ok()).flatten()
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(&stray);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("is a folder")
            .map(|entry| entry.expect("is an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_target_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let path = folder.path().join("t.csv");
        fs::write(&path, "old").expect("writes");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("sets");
        fs::write(folder.path().join(".t.csv.AbCdEf.pleach-tmp"), "stray").expect("writes");
        {
            let mut target = Target::create(&path, &[]).expect("creates");
            target.write_all(b"half").expect("writes");
            assert_eq!(names(folder.path()).len(), 2);
            assert_eq!(fs::read(&path).expect("reads"), b"old");
        }
        assert_eq!(names(folder.path()), ["t.csv"]);
        let mut target = Target::create(&path, &[]).expect("creates");
        target.write_all(b"new").expect("writes");
        assert_eq!(target.bytes(), 3);
        target.commit().expect("commits");
        assert_eq!(names(folder.path()), ["t.csv"]);
        assert_eq!(fs::read(&path).expect("reads"), b"new");
        assert_eq!(fs::metadata(&path).expect("is there").mode() & 0o777, 0o640);
    }

    #[test]
    fn links_are_followed_and_inputs_kept() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let (path, link) = (folder.path().join("t.csv"), folder.path().join("link.csv"));
        fs::write(&path, "old").expect("writes");
        std::os::unix::fs::symlink("t.csv", &link).expect("links");
        assert!(Target::create(&link, &[&path]).is_err());
        assert!(Target::create(folder.path(), &[]).is_err());
        let mut target = Target::create(&link, &[]).expect("creates");
        target.write_all(b"new").expect("writes");
        target.commit().expect("commits");
        assert_eq!(fs::read(&path).expect("reads"), b"new");
        assert!(fs::symlink_metadata(&link).expect("is there").is_symlink());
        // A dangling link has nothing to keep: the link itself is replaced.
        let missing = folder.path().join("none").join("t.csv");
        assert!(Target::create(&missing, &[]).is_err());
        Target::create(Path::new("/dev/null"), &[]).expect("opens").commit().expect("commits");
    }
}
