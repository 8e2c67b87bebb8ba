//! Files of chance.

use anyhow::Result;
use std::path::Path;

/// Writes files.
///
/// # Errors
/// Those of the file system.
pub fn write(_seed: u64, _files: u64, _folder: &Path) -> Result<()> {
    Ok(())
}
