//! Text keys of a user's own: the lines of a file.

use crate::BenchError;
use pleach_peers::Keys;
use std::path::Path;

/// Reads the lines of a file as keys, in its order. A line feed ends a key and is no part of it, all other bytes are;
/// empty lines are left out.
///
/// # Errors
/// [`BenchError::Io`] if the file cannot be read.
pub fn lines(path: &Path) -> Result<Keys, BenchError> {
    let bytes = std::fs::read(path).map_err(|source| BenchError::Io {
        operation: "read",
        path: path.to_owned(),
        source,
    })?;
    Ok(bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect())
}
