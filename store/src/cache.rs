//! The local cache of whole files, by their digests.

use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// Prefix of the names of files that are not complete.
const UNFINISHED: &str = ".new-";
/// Files that were used within this time are not deleted: somebody may be about to open one.
const IN_USE: Duration = Duration::from_secs(60);
/// Age at which unfinished files of processes that ended are deleted.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The cache.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    pub folder: Option<PathBuf>,
    pub bytes_max: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self { folder: None, bytes_max: crate::options::CACHE_BYTES_MAX }
    }
}

/// A file that is being written into the cache.
#[derive(Debug)]
pub(crate) struct Incoming {
    file: NamedTempFile,
    hasher: Sha256,
    path: PathBuf,
}

impl Cache {
    /// Returns the folder: the one that was given, `PLEACH_CACHE`, or the one of the user.
    fn folder(&self, variable: impl Fn(&str) -> Option<String>) -> io::Result<PathBuf> {
        if let Some(folder) = &self.folder {
            return Ok(folder.clone());
        }
        let given = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        given("PLEACH_CACHE")
            // A relative one is to be ignored, by the specification.
            .or_else(|| Some(given("XDG_CACHE_HOME").filter(|folder| folder.is_absolute())?.join("pleach")))
            .or_else(|| Some(given("HOME")?.join(".cache/pleach")))
            .ok_or_else(|| {
                let text = "there is no folder for the cache: give one by --cache or PLEACH_CACHE";
                io::Error::new(io::ErrorKind::NotFound, text)
            })
    }

    /// Returns the path of a file in the cache, which may not be there.
    pub fn path(&self, digest: &[u8; 32], variable: impl Fn(&str) -> Option<String>) -> io::Result<PathBuf> {
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(self.folder(variable)?.join(&name[..2]).join(format!("{}.pleach", &name[2..])))
    }

    /// Returns true if a file of this length is in the cache, and keeps it there for a while.
    pub fn has(&self, path: &Path, bytes: u64) -> bool {
        let Ok(file) = File::open(path) else { return false };
        let is_whole = file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes);
        if is_whole {
            // The time of use orders what is deleted; a cache of another user is still a cache.
            let _ = file.set_modified(SystemTime::now());
        }
        is_whole
    }

    /// Begins to write a file.
    pub fn begin(&self, path: &Path) -> io::Result<Incoming> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        Ok(Incoming { file, hasher: Sha256::new(), path: path.to_owned() })
    }

    /// Deletes the files that were not used for longest, until the others and `more` bytes fit.
    pub fn make_room(&self, keep: &Path, more: u64) -> io::Result<()> {
        let Some(folder) = keep.parent().and_then(Path::parent) else { return Ok(()) };
        let mut all = Vec::new();
        for sub in fs::read_dir(folder)?.flatten().filter(|entry| is_own_folder(&entry.path())) {
            for entry in fs::read_dir(sub.path())?.flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let age = used.elapsed().unwrap_or_default();
                let is_unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
                if is_unfinished && age > ABANDONED {
                    let _ = fs::remove_file(entry.path());
                } else if metadata.is_file() {
                    all.push((used, metadata.len(), entry.path(), age < IN_USE || is_unfinished));
                }
            }
        }
        let mut bytes: u64 = all.iter().map(|(_, bytes, ..)| bytes).sum::<u64>().saturating_add(more);
        all.sort();
        for (_, own, path, is_in_use) in all {
            if bytes <= self.bytes_max {
                break;
            }
            if !is_in_use && path != keep && fs::remove_file(&path).is_ok() {
                bytes -= own;
            }
        }
        Ok(())
    }
}

/// Returns true for a folder of two hexadecimal digits: nothing else in the folder is of the cache.
fn is_own_folder(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.len() == 2 && name.bytes().all(|digit| digit.is_ascii_hexdigit()) && path.is_dir()
}

impl Incoming {
    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.file.write_all(bytes)
    }

    /// Publishes the file, if its digest is `expected`; `None` takes any. Returns false if it is another.
    pub fn publish(self, expected: Option<&[u8; 32]>) -> io::Result<bool> {
        let digest: [u8; 32] = self.hasher.finalize().into();
        if expected.is_some_and(|expected| *expected != digest) {
            return Ok(false);
        }
        // Two that write the same file have the same bytes.
        self.file.persist(&self.path).map_err(|error| error.error)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(bytes: &[u8]) -> [u8; 32] {
        Sha256::digest(bytes).into()
    }

    fn put(cache: &Cache, bytes: &[u8], age: u64) -> PathBuf {
        let path = cache.path(&digest(bytes), |_| None).expect("a path");
        let mut file = cache.begin(&path).expect("a file");
        file.write(bytes).expect("room");
        assert!(file.publish(Some(&digest(bytes))).expect("a rename"));
        let file = File::options().write(true).open(&path).expect("the file");
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("a time");
        path
    }

    #[test]
    fn other_bytes_are_not_published() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache { folder: Some(folder.path().into()), bytes_max: 100 };
        let path = cache.path(&digest(b"one"), |_| None).expect("a path");
        let mut file = cache.begin(&path).expect("a file");
        file.write(b"two").expect("room");
        assert!(!file.publish(Some(&digest(b"one"))).expect("no error"));
        assert!(!path.exists());
        assert_eq!(fs::read_dir(path.parent().expect("a folder")).expect("a list").count(), 0);
    }

    #[test]
    fn the_oldest_go_first_and_those_in_use_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache { folder: Some(folder.path().into()), bytes_max: 25 };
        let [old, older, new] =
            [(b'a', 200), (b'b', 300), (b'c', 0)].map(|(byte, age)| put(&cache, &[byte; 10], age));
        fs::write(folder.path().join("other"), [0; 50]).expect("a file of somebody else");
        cache.make_room(&new, 0).expect("room");
        assert!(old.exists() && !older.exists() && new.exists());
        cache.make_room(&new, 1000).expect("room");
        assert!(!old.exists() && new.exists() && folder.path().join("other").exists());
        assert!(cache.has(&new, 10) && !cache.has(&new, 11) && !cache.has(&old, 10));
    }

    #[test]
    fn folders_are_by_the_environment() {
        let cache = Cache::default();
        let of = |pairs: &'static [(&str, &str)]| {
            let variable = move |name: &str| {
                pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
            };
            cache.folder(variable).ok()
        };
        assert_eq!(of(&[("HOME", "/h")]), Some("/h/.cache/pleach".into()));
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]), Some("/x/pleach".into()));
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "x")]), Some("/h/.cache/pleach".into()));
        assert_eq!(of(&[("XDG_CACHE_HOME", "/x"), ("PLEACH_CACHE", "/p")]), Some("/p".into()));
        assert_eq!(of(&[]), None);
    }
}
