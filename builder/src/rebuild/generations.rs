//! Old generations under names of their own: `FILE.g7` is generation 7 of `FILE`.
//!
//! A generation is kept by a second name for the same bytes, which it gets before its successor is renamed over
//! the first: so at any moment both names lead to whole files. Which are kept is decided afterwards.

use crate::error::BuildError;
use crate::storage::Storage;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Name under which a generation of `target` is kept.
#[must_use]
pub fn kept_path(target: &Path, generation: u64) -> PathBuf {
    let mut name = OsString::from(target);
    name.push(format!(".g{generation}"));
    name.into()
}

/// The generation that `name` keeps of the file `target_name`, if it does.
fn generation_of(target_name: &OsStr, name: &OsStr) -> Option<u64> {
    let rest = name.as_bytes().strip_prefix(target_name.as_bytes())?.strip_prefix(b".g")?;
    let digits = std::str::from_utf8(rest).ok()?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain)
}

/// Generations of `target` that are kept, oldest first. O(entries of the folder).
pub(crate) fn list(storage: &dyn Storage, target: &Path) -> io::Result<Vec<u64>> {
    let Some(name) = target.file_name() else { return Ok(Vec::new()) };
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let entries = storage.list(folder)?;
    let mut found: Vec<u64> = entries.iter().filter_map(|entry| generation_of(name, entry)).collect();
    found.sort_unstable();
    Ok(found)
}

/// Gives the generation that stands under the target's name a name of its own.
pub(crate) fn keep(storage: &dyn Storage, target: &Path, generation: u64) -> Result<(), BuildError> {
    let to = kept_path(target, generation);
    storage.link(target, &to).map_err(|error| BuildError::io("keeping the old generation", to, error))
}

/// Removes all but the `keep` newest kept generations, of which `newest` is the last one: higher numbers are of a
/// file that stood under the name before this one was built anew. How many are left, and why if too many are.
pub(crate) fn prune(
    storage: &dyn Storage,
    target: &Path,
    keep: usize,
    newest: u64,
) -> (usize, Option<String>) {
    let mut all = match list(storage, target) {
        Ok(all) => all,
        Err(error) => return (0, Some(BuildError::io("listing generations of", target, error).to_string())),
    };
    all.sort_by_key(|&generation| (generation <= newest, generation));
    let surplus = all.len().saturating_sub(keep);
    let (mut left, mut why) = (all.len(), None);
    for &generation in &all[..surplus] {
        let path = kept_path(target, generation);
        match storage.remove(&path) {
            Ok(()) => left -= 1,
            Err(error) => why = Some(BuildError::io("removing an old generation", path, error).to_string()),
        }
    }
    (left, why)
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
            assert_eq!(generation_of(name, OsStr::new(other)), generation, "{other}");
        }
        assert_eq!(generation_of(name, OsStr::new("a.pleach.g+7")), None);
    }
}
