//! Destination of a table: a file that gets its name when it is complete, a device or pipe, or standard
//! output.
//!
//! Files are published in the same way as index files ([`pleach_builder::publish`]), under the same rules:
//! until a table is complete, a file that already has its name stays as it was.

use crate::errors::build_failure;
use crate::failure::Failure;
use pleach_builder::BuildError;
use pleach_builder::publish::{Draft, Rules};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

enum Kind {
    Draft(Draft),
    StandardOutput(io::Stdout),
}

/// An output that is being written.
pub struct Target {
    kind: Kind,
    shown: PathBuf,
    bytes: u64,
}

/// Returns the files that a command reads, for the check of its output; standard input may be a file, too.
pub fn inputs<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<PathBuf> {
    let file = |path: &Path| if path.as_os_str() == "-" { "/dev/stdin".into() } else { path.to_owned() };
    paths.into_iter().map(file).collect()
}

/// Refuses an invalid output before anything is read.
pub fn check(path: &Path, rules: &Rules) -> Result<(), Failure> {
    rules.check(path).map_err(|error| build_failure(&error))
}

impl Target {
    /// Returns the target for standard output.
    pub fn standard_output() -> Self {
        Self { kind: Kind::StandardOutput(io::stdout()), shown: "standard output".into(), bytes: 0 }
    }

    /// Creates a file; the rules specify what it may replace.
    pub fn create(path: &Path, rules: Rules) -> Result<Self, Failure> {
        let draft = Draft::create(path, rules).map_err(|error| match &error {
            BuildError::Io { source, .. } => Failure::io("cannot create", path, source),
            _ => build_failure(&error),
        })?;
        Ok(Self { kind: Kind::Draft(draft), shown: path.to_owned(), bytes: 0 })
    }

    /// Returns true if what is written cannot be read from its end: of standard output, pipes and `.arrows` files.
    pub fn is_stream(&self) -> bool {
        match &self.kind {
            Kind::StandardOutput(_) => true,
            Kind::Draft(draft) => {
                draft.is_device()
                    || self
                        .shown
                        .extension()
                        .is_some_and(|extension| extension.eq_ignore_ascii_case("arrows"))
            }
        }
    }

    /// Returns the number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Converts an error of writing to a failure of the command.
    pub fn failure(&self, error: &io::Error) -> Failure {
        match &self.kind {
            Kind::StandardOutput(_) => Failure::stdout(error),
            // A closed pipe means that the reader has enough.
            Kind::Draft(draft) if draft.is_device() && error.kind() == io::ErrorKind::BrokenPipe => {
                Failure::ClosedPipe
            }
            Kind::Draft(_) => Failure::io("cannot write", &self.shown, error),
        }
    }

    /// Writes everything to the disk and gives the file its name.
    pub fn commit(mut self) -> Result<(), Failure> {
        self.flush().map_err(|error| self.failure(&error))?;
        match self.kind {
            Kind::Draft(draft) => draft.commit().map_err(|error| build_failure(&error)),
            Kind::StandardOutput(_) => Ok(()),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.kind {
            Kind::Draft(draft) => draft.write(bytes),
            Kind::StandardOutput(out) => out.write(bytes),
        }?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.kind {
            Kind::Draft(draft) => draft.flush(),
            Kind::StandardOutput(out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn free() -> Rules {
        Rules::table(Vec::new(), false)
    }

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
            let mut target = Target::create(&path, free()).expect("creates");
            target.write_all(b"half").expect("writes");
            assert_eq!(names(folder.path()).len(), 3, "the lock, too");
            assert_eq!(fs::read(&path).expect("reads"), b"old");
        }
        assert_eq!(names(folder.path()), ["t.csv"]);
        let mut target = Target::create(&path, free()).expect("creates");
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
        assert!(Target::create(&link, Rules::table(vec![path.clone()], true)).is_err());
        assert!(Target::create(folder.path(), free()).is_err());
        let mut target = Target::create(&link, free()).expect("creates");
        target.write_all(b"new").expect("writes");
        target.commit().expect("commits");
        assert_eq!(fs::read(&path).expect("reads"), b"new");
        assert!(fs::symlink_metadata(&link).expect("is there").is_symlink());
        // A dangling link has no contents to keep: the link itself is replaced.
        let missing = folder.path().join("none").join("t.csv");
        assert!(Target::create(&missing, free()).is_err());
        Target::create(Path::new("/dev/null"), free()).expect("opens").commit().expect("commits");
    }
}
