//! What is at a path or a URL: the one place where commands find files and sets.
//!
//! A URL that ends with `.pleach` is that of a file, and one that ends with `.manifest` that of a generation of a
//! set. Any other is asked whether it is a set.

#[cfg(not(feature = "remote"))]
#[path = "none.rs"]
mod remote;
#[cfg(feature = "remote")]
mod remote;

use crate::cli::Global;
use crate::errors;
use crate::failure::Failure;
use crate::message::Message;
use pleach::{Index, OpenOptions};
use pleach_set::{Folder, Set, SetError, SetOptions, Store};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// URLs with their users, passwords and queries, by what is left without these.
static WHOLE: Mutex<Option<HashMap<PathBuf, String>>> = Mutex::new(None);

/// Returns true if a path is a URL.
pub fn is_url(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    })
}

/// Takes users, passwords and queries out of the arguments that are URLs, and keeps them for requests: no message and
/// no output shows them then.
pub fn without_secrets(arguments: Vec<OsString>) -> Vec<OsString> {
    let shorten = |argument: OsString| {
        let Some(text) = argument.to_str() else { return argument };
        // Of an option as `--output=URL`, too.
        let start = text.find("://").and_then(|at| text[..at].rfind('=')).map_or(0, |at| at + 1);
        let (option, url) = text.split_at(start);
        if !is_url(Path::new(url)) {
            return argument;
        }
        let short = shown(url);
        if short != url {
            let mut whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
            whole.get_or_insert_default().insert(PathBuf::from(&short), url.to_owned());
        }
        format!("{option}{short}").into()
    };
    arguments.into_iter().map(shorten).collect()
}

/// Returns a URL without its user, password and query.
fn shown(url: &str) -> String {
    let is_http = url.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"));
    let url = if is_http { url.split(['?', '#']).next().unwrap_or_default() } else { url };
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // What is before the last @ may be a password, even one with an @.
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// Returns a URL as it was given.
#[cfg_attr(not(feature = "remote"), allow(dead_code))]
fn whole(path: &Path) -> PathBuf {
    let whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
    whole.as_ref().and_then(|whole| whole.get(path)).map_or_else(|| path.to_owned(), PathBuf::from)
}

/// Returns the path of a URL `file://`.
fn local_url(path: &Path) -> Option<PathBuf> {
    let rest = path.to_str()?.strip_prefix("file://")?;
    rest.starts_with('/').then(|| rest.into())
}

/// A path of this machine, or a URL of another one.
enum Place<'p> {
    Local(Cow<'p, Path>),
    Remote(&'p Path),
}

impl<'p> Place<'p> {
    fn of(path: &'p Path) -> Self {
        match local_url(path) {
            Some(local) => Self::Local(local.into()),
            None if is_url(path) => Self::Remote(path),
            None => Self::Local(path.into()),
        }
    }
}

/// Returns true if there is a set, or a manifest of one.
pub fn is_set(path: &Path, global: &Global) -> Result<bool, Failure> {
    match Place::of(path) {
        Place::Local(path) => Ok(Set::is_set(path)),
        Place::Remote(url) => remote::is_set(url, global),
    }
}

/// Opens a set.
pub fn open_set(path: &Path, options: SetOptions, global: &Global) -> Result<Set, Failure> {
    match Place::of(path) {
        Place::Local(path) => options.open(path).map_err(|error| errors::set_failure(&error)),
        Place::Remote(url) => remote::open_set(url, options, global),
    }
}

/// Returns the store of a set, which is there.
pub fn store(path: &Path, global: &Global) -> Result<Arc<dyn Store>, Failure> {
    match Place::of(path) {
        Place::Local(path) if Folder::is_set(&path) => Ok(Arc::new(Folder::new(path))),
        Place::Local(path) => {
            let place = path.display().to_string();
            Err(errors::set_failure(&SetError::NoSet { place }))
        }
        Place::Remote(url) => remote::store(url, global),
    }
}

/// Returns the store of a set, which may be a new one.
pub fn new_store(path: &Path, global: &Global) -> Result<Arc<dyn Store>, Failure> {
    match Place::of(path) {
        Place::Local(path) => {
            Ok(Arc::new(Folder::create(path).map_err(|error| errors::set_failure(&error))?))
        }
        Place::Remote(url) => remote::store(url, global),
    }
}

/// Opens a file for look-ups: one of a URL by the blocks that they need, unless whole files are wanted.
pub fn open_file(path: &Path, options: OpenOptions, global: &Global) -> Result<Index, Failure> {
    match Place::of(path) {
        Place::Local(path) => options.open(path).map_err(|error| errors::opening(&error)),
        Place::Remote(url) => remote::open_file(url, options, global),
    }
}

/// Returns the path of a file on this machine: that of a copy if it is elsewhere.
pub fn local<'p>(path: &'p Path, global: &Global) -> Result<Cow<'p, Path>, Failure> {
    match Place::of(path) {
        Place::Local(path) => Ok(path),
        Place::Remote(url) => remote::download(url, global).map(Cow::Owned),
    }
}

/// Refuses the URL of a file, for commands that write beside it.
pub fn only_here(path: &Path) -> Result<(), Failure> {
    match Place::of(path) {
        Place::Local(_) => Ok(()),
        Place::Remote(url) => {
            let message = Message::new("files of URLs are not changed, only sets are").at(url.display());
            Err(Failure::usage(
                message.advise("change a file of this machine, and build it there with -o URL"),
            ))
        }
    }
}

/// Sends a file to a URL.
pub fn upload(from: &Path, to: &Path, force: bool, global: &Global) -> Result<(), Failure> {
    remote::upload(from, to, force, global)
}

/// Says how many requests were sent, if that is wanted.
pub fn tell(global: &Global) -> Result<(), Failure> {
    if global.urls.stats { remote::tell(global) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_leave_the_arguments() {
        let given =
            ["get", "https://me:word@host/a?sig=1", "--output=http://h/b?x#y", "s3://b/c?d", "a=b", "x@y?"];
        let left = without_secrets(given.map(OsString::from).into());
        assert_eq!(left, ["get", "https://host/a", "--output=http://h/b", "s3://b/c?d", "a=b", "x@y?"]);
        assert_eq!(whole(Path::new("https://host/a")), Path::new(given[1]));
        assert_eq!(whole(Path::new("s3://b/c")), Path::new("s3://b/c"));
    }

    #[test]
    fn urls_of_files_are_paths() {
        assert_eq!(local_url(Path::new("file:///a/b")), Some("/a/b".into()));
        assert_eq!(local_url(Path::new("file://host/a")), None);
        for (text, is) in
            [("s3://a", true), ("a/b", false), ("C:/a", false), ("://", false), ("1a://", false)]
        {
            assert_eq!(is_url(Path::new(text)), is, "{text}");
        }
    }
}
