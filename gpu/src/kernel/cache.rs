//! Compiled kernels, kept on disk.
//!
//! There is one file per kernel, named by a hash of its text, options, architecture and compiler, in
//! `$PLEACH_CACHE_DIR`, else `$XDG_CACHE_HOME/pleach/kernels`, else `~/.cache/pleach/kernels`. A file holds a
//! sum of its content before the content; a damaged one is compiled again.
//!
//! Nothing fails for lack of a cache: if it cannot be written, kernels are compiled at each start, in a tenth
//! of a second each.

use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use std::io::Write;
use std::path::PathBuf;

/// Bytes of the sum before the content.
const SUM_BYTES: usize = 16;

/// Returns the hash of some bytes.
pub(crate) fn sum(bytes: &[u8]) -> u128 {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    hasher.finish128().as_u128()
}

/// Returns the name of the code compiled from a text.
pub(crate) fn key(text: &str, options: &[String], compiler: &str) -> String {
    let whole = format!("{compiler}\0{}\0{text}", options.join("\0"));
    format!("{:032x}", sum(whole.as_bytes()))
}

/// Returns the folder, if one can be used.
pub(crate) fn folder() -> Option<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    from("PLEACH_CACHE_DIR")
        .or_else(|| Some(from("XDG_CACHE_HOME")?.join("pleach/kernels")))
        .or_else(|| Some(from("HOME")?.join(".cache/pleach/kernels")))
}

/// Returns the code stored under a name.
pub(crate) fn get(key: &str) -> Option<Vec<u8>> {
    let mut bytes = std::fs::read(folder()?.join(key)).ok()?;
    let told = bytes.get(..SUM_BYTES)?.try_into().ok().map(u128::from_le_bytes)?;
    let content = bytes.split_off(SUM_BYTES);
    (sum(&content) == told).then_some(content)
}

/// Stores code under a name, if that is possible.
pub(crate) fn put(key: &str, code: &[u8]) {
    let Some(folder) = folder() else { return };
    let write = || {
        std::fs::create_dir_all(&folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        file.write_all(&sum(code).to_le_bytes())?;
        file.write_all(code)?;
        // The file is complete or absent, also for a process that starts at the same time.
        file.persist(folder.join(key)).map_err(|error| error.error)?;
        Ok::<_, std::io::Error>(())
    };
    let _ = write();
}
