//! URLs of a command that was built without clients of object stores: one error that says how to get them.

use crate::cli::Global;
use crate::failure::Failure;
use crate::message::Message;
use pleach::{Index, OpenOptions};
use pleach_set::{Set, SetOptions, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn refused(url: &Path) -> Failure {
    let message = Message::new("this pleach was built without URLs").at(url.display());
    Failure::usage(message.advise("install it by `cargo install pleach-cli --features remote`"))
}

pub fn is_set(url: &Path, _: &Global) -> Result<bool, Failure> {
    Err(refused(url))
}

pub fn open_set(url: &Path, _: SetOptions, _: &Global) -> Result<Set, Failure> {
    Err(refused(url))
}

pub fn store(url: &Path, _: &Global) -> Result<Arc<dyn Store>, Failure> {
    Err(refused(url))
}

pub fn open_file(url: &Path, _: OpenOptions, _: &Global) -> Result<Index, Failure> {
    Err(refused(url))
}

pub fn download(url: &Path, _: &Global) -> Result<PathBuf, Failure> {
    Err(refused(url))
}

pub fn upload(_: &Path, to: &Path, _: bool, _: &Global) -> Result<(), Failure> {
    Err(refused(to))
}

pub fn tell(_: &Global) -> Result<(), Failure> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_one_error_that_says_what_to_do() {
        let refused = is_set(Path::new("s3://lake/orders"), &Global::default()).expect_err("a URL");
        let line = refused.line().expect("a line");
        assert!(line.contains("s3://lake/orders") && line.contains("--features remote"), "{line}");
    }
}
