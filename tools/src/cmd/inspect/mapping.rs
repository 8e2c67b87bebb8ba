//! `--mapping`: shows the pages of the file when it is mapped.

use super::Found;
use crate::cli::Global;
use crate::errors;
use crate::failure::{ExitStatus, Failure};
use crate::render::json;
use crate::render::text::{grouped, shown};
use crate::stdout;
use pleach::{Index, Verify};
use std::path::Path;

impl Found<'_> {
    /// Maps the file as searches do, touches all of it, and prints the pages that it got.
    pub(super) fn show_mapping(&self, global: &Global) -> Result<ExitStatus, Failure> {
        self.whole()?;
        // Verifying a mapped file in full reads every byte of it through its mapping.
        pleach::contain_sigbus();
        let opened = Index::options().verify(Verify::Full).open_file(&self.file, self.path);
        let index = opened.map_err(|error| errors::opening(&error))?;
        let smaps = std::fs::read_to_string("/proc/self/smaps")
            .map_err(|error| Failure::io("cannot read", Path::new("/proc/self/smaps"), &error))?;
        let mapping = Mapping::of(&smaps, self.inode);
        let share = mapping.huge_kib as f64 * 1024.0 / index.file_bytes().max(1) as f64;
        if global.json {
            let mut document = json::document("inspect-mapping");
            document.insert("file".to_owned(), self.path.display().to_string().into());
            document.insert("file_bytes".to_owned(), json::int(index.file_bytes()));
            document.insert("resident_kb".to_owned(), json::int(mapping.resident_kib));
            document.insert("file_pmd_mapped_kb".to_owned(), json::int(mapping.huge_kib));
            document.insert("huge_share".to_owned(), share.into());
            stdout::print_json(document)?;
        } else {
            let text = format!(
                "{}: {} bytes mapped\n  Rss            {:>12} kB\n  FilePmdMapped  {:>12} kB, \
                 {:.1}% of the file in huge pages\n",
                shown(self.path),
                grouped(index.file_bytes()),
                mapping.resident_kib,
                mapping.huge_kib,
                share * 100.0,
            );
            stdout::print(text.as_bytes())?;
        }
        Ok(ExitStatus::Success)
    }
}

/// Lines of `/proc/self/smaps` that concern one file.
#[derive(Default)]
struct Mapping {
    resident_kib: u64,
    huge_kib: u64,
}

impl Mapping {
    fn of(smaps: &str, inode: u64) -> Self {
        let mut mapping = Self::default();
        let mut ours = false;
        for line in smaps.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(first) = words.next() else { continue };
            if let Some(name) = first.strip_suffix(':') {
                let amount: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
                match name {
                    "Rss" if ours => mapping.resident_kib += amount,
                    "FilePmdMapped" if ours => mapping.huge_kib += amount,
                    _ => {}
                }
            } else {
                // `start-end perms offset device inode path`
                ours = words.nth(3).and_then(|word| word.parse().ok()) == Some(inode);
            }
        }
        mapping
    }
}
