//! URLs: files and sets in object stores.

use super::whole;
use crate::cli::Global;
use crate::errors;
use crate::failure::{self, Failure};
use crate::render::json;
use crate::render::text::grouped;
use crate::stdout;
use pleach::{Index, OpenOptions};
use pleach_set::{Set, SetOptions, Store, generation_of};
use pleach_store::{Location, ObjectFolder, Remote, RemoteFile, StoreOptions, upload_file};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Options of all connections of the process: they count together, and have one limit of downloads.
fn options(global: &Global) -> StoreOptions {
    static OPTIONS: OnceLock<StoreOptions> = OnceLock::new();
    OPTIONS
        .get_or_init(|| {
            let mut options = StoreOptions::default();
            if let Some(folder) = &global.urls.cache {
                options = options.cache_folder(folder);
            }
            if let Some(bytes) = global.urls.max_download {
                options = options.download_bytes_max(bytes);
            }
            if !global.quiet && !global.json {
                options = options.told(|name, bytes| {
                    failure::say(&format!("downloading {name}: {} bytes", grouped(bytes)));
                });
            }
            options
        })
        .clone()
        .whole(global.urls.whole)
}

fn remote(url: &Path) -> Result<Remote, Failure> {
    match Location::of_path(&whole(url)).map_err(|error| errors::set_failure(&error))? {
        Location::Remote(remote) => Ok(remote),
        // `file://host/path` and the like.
        Location::Local(path) => Err(Failure::io("cannot read", &path, &std::io::ErrorKind::NotFound.into())),
    }
}

fn folder(url: &Path, global: &Global) -> Result<ObjectFolder, Failure> {
    ObjectFolder::new(remote(url)?, options(global)).map_err(|error| errors::set_failure(&error))
}

fn file(url: &Path, global: &Global) -> Result<RemoteFile, Failure> {
    RemoteFile::open(remote(url)?, options(global)).map_err(|error| errors::set_failure(&error))
}

fn ends_with(url: &Path, ending: &str) -> bool {
    url.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending))
}

/// Returns the URL of the set and the generation of a manifest.
fn manifest_of(url: &Path) -> Option<(&Path, u64)> {
    let generation = generation_of(url.file_name()?.to_str()?)?;
    Some((url.parent()?.parent()?, generation))
}

pub fn is_set(url: &Path, global: &Global) -> Result<bool, Failure> {
    if ends_with(url, "pleach") || ends_with(url, "manifest") {
        return Ok(manifest_of(url).is_some());
    }
    folder(url, global)?.is_set().map_err(|error| errors::set_failure(&error))
}

pub fn open_set(url: &Path, set: SetOptions, global: &Global) -> Result<Set, Failure> {
    let opened = match manifest_of(url) {
        Some((url, generation)) => set.generation(Arc::new(folder(url, global)?), generation),
        None => set.store(Arc::new(folder(url, global)?)),
    };
    opened.map_err(|error| errors::set_failure(&error))
}

pub fn store(url: &Path, global: &Global) -> Result<Arc<dyn Store>, Failure> {
    Ok(Arc::new(folder(url, global)?))
}

pub fn open_file(url: &Path, open: OpenOptions, global: &Global) -> Result<Index, Failure> {
    file(url, global)?.open_any(open).map_err(|error| errors::set_failure(&error))
}

pub fn download(url: &Path, global: &Global) -> Result<PathBuf, Failure> {
    file(url, global)?.fetch().map_err(|error| errors::set_failure(&error.into()))
}

pub fn upload(from: &Path, to: &Path, force: bool, global: &Global) -> Result<(), Failure> {
    upload_file(from, remote(to)?, force, options(global)).map_err(|error| errors::set_failure(&error))
}

pub fn tell(global: &Global) -> Result<(), Failure> {
    let now = options(global).counters().now();
    if global.json {
        let mut document = json::document("requests");
        for (name, count) in [
            ("requests", now.all()),
            ("gets", now.gets),
            ("heads", now.heads),
            ("lists", now.lists),
            ("writes", now.writes),
            ("received_bytes", now.received_bytes),
            ("sent_bytes", now.sent_bytes),
        ] {
            document.insert(name.to_owned(), json::int(count));
        }
        return stdout::print_json(document);
    }
    failure::say(&now.to_string());
    Ok(())
}
