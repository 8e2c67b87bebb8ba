//! Names of kept generations (`FILE.g7` is generation 7 of `FILE`), and the files that have such names.
//!
//! The name alone does not make a generation: there must be a regular file whose superblock says that it is
//! this generation of this index.

use crate::error::BuildError;
use crate::standing::Standing;
use crate::storage::{Kind, Storage};
use pleach_format::superblock::Superblock;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the name under which a generation of `target` is kept.
#[must_use]
pub fn kept_path(target: impl AsRef<Path>, generation: u64) -> PathBuf {
    let mut name = OsString::from(target.as_ref());
    name.push(format!(".g{generation}"));
    name.into()
}

/// Splits the name of a kept generation into the name of its index and its number; `None` for other names.
pub(crate) fn parts(name: &OsStr) -> Option<(&OsStr, u64)> {
    let bytes = name.as_bytes();
    let at = bytes.iter().rposition(|&byte| byte == b'.')?;
    let digits = std::str::from_utf8(bytes[at..].strip_prefix(b".g")?).ok()?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let generation = digits.parse().ok().filter(|_| plain)?;
    (at > 0).then(|| (OsStr::from_bytes(&bytes[..at]), generation))
}

/// Returns the number of the generation of `target_name` that `name` denotes; `None` for other names.
pub(crate) fn of_name(target_name: &OsStr, name: &OsStr) -> Option<u64> {
    parts(name).filter(|(of, _)| *of == target_name).map(|(_, generation)| generation)
}

/// The file under the name of a generation.
pub(crate) enum Held {
    Nothing,
    /// The generation that the name denotes.
    Generation(Box<Superblock>),
    /// Another file: its description, and its superblock if it has one.
    Other(String, Option<Box<Superblock>>),
}

impl Held {
    /// Classifies the file under the name of `generation` of `target`, an index whose first generation has
    /// the id `first`.
    pub(crate) fn of(
        storage: &dyn Storage,
        target: &Path,
        generation: u64,
        first: [u8; 16],
    ) -> Result<Self, BuildError> {
        let path = kept_path(target, generation);
        let looking = |error| BuildError::io("looking for a generation", &path, error);
        let other = |what: &str| Ok(Self::Other(what.to_owned(), None));
        match storage.kind(&path).map_err(looking)? {
            Kind::Missing => return Ok(Self::Nothing),
            Kind::Directory => return other("a folder"),
            Kind::Symlink(_) => return other("a symbolic link"),
            Kind::Other => return other("a device or a pipe"),
            Kind::File { .. } => {}
        }
        let block = match Standing::of(storage, &path) {
            Ok(Standing::Index(block)) => block,
            Ok(Standing::Empty) => return other("an empty file"),
            Ok(Standing::Marked) => return other("a Pleach file that is damaged or of another version"),
            Ok(Standing::Foreign) => return other("a file that is not a Pleach file"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return other("a file that cannot be read");
            }
            Err(error) => return Err(looking(error)),
        };
        Ok(if block.first_id() != first {
            Self::Other("a file of another index".to_owned(), Some(block))
        } else if block.generation.get() != generation {
            Self::Other(format!("generation {} of this index", block.generation), Some(block))
        } else {
            Self::Generation(block)
        })
    }

    pub(crate) fn is_generation(&self) -> bool {
        matches!(self, Self::Generation(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name = OsStr::new("a.pleach");
        assert_eq!(kept_path(Path::new("/x/a.pleach"), 7), Path::new("/x/a.pleach.g7"));
        for (other, generation) in
            [("a.pleach.g7", Some(7)), ("a.pleach.g07", None), ("a.pleach.g", None), ("b.pleach.g7", None)]
        {
            assert_eq!(of_name(name, OsStr::new(other)), generation, "{other}");
        }
        assert_eq!(of_name(name, OsStr::new("a.pleach.g+7")), None);
        assert_eq!(parts(OsStr::new(".g7")), None);
        assert_eq!(parts(OsStr::new("a.g3.g12")), Some((OsStr::new("a.g3"), 12)));
    }
}
