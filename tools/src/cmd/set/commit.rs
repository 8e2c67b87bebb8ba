//! `pleach set commit`: publishes files that workers wrote.

use super::build::{put_manifest, text};
use super::entries;
use crate::cli::Global;
use crate::cli::set::CommitArgs;
use crate::errors::set_failure;
use crate::failure::{self, ExitStatus, Failure};
use crate::place;
use crate::render::json;
use crate::stdout;
use pleach_set::Committer;
use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

/// Maximum bytes of a list of entries.
const ENTRIES_BYTES_MAX: u64 = 1 << 30;

pub fn run(args: &CommitArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let mut all = Vec::new();
    for path in &args.entries {
        all.extend(entries::parse(&read(path)?, &path.display().to_string())?);
    }
    let store = place::new_store(&args.dir, global)?;
    let publish = || {
        let mut committer = Committer::begin(store)?.grace(args.grace);
        if !args.replace {
            committer.keep(|_, _| true)?;
        }
        all.iter().try_for_each(|written| committer.add(written))?;
        committer.publish()
    };
    let manifest = publish().map_err(|error| set_failure(&error))?;
    if global.json {
        let mut document = json::document("set-commit");
        document.insert("set".to_owned(), args.dir.display().to_string().into());
        put_manifest(&manifest, &mut document);
        stdout::print_json(document)?;
    } else if !global.quiet {
        failure::say(&format!("committed {}: {}", args.dir.display(), text(&manifest)));
    }
    Ok(ExitStatus::Success)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::io("cannot read", path, &error);
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        stdin().take(ENTRIES_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        File::open(path).map_err(failed)?.take(ENTRIES_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    }
    Ok(bytes)
}
