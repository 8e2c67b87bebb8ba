//! A set with a missing, damaged or foreign file: one error that names it, and never a part of the answer.

use crate::kit;
use pleach_datafusion::PleachTable;
use pleach_set::Set;
use std::fs;
use std::path::{Path, PathBuf};

fn set(folder: &Path) -> PathBuf {
    let set = folder.join("set");
    kit::build_set(&set, &kit::cases()[0].batch, true, 250);
    set
}

/// Returns the path of the file with the number, and its name.
fn file(set: &Path, number: usize) -> (PathBuf, String) {
    let name = Set::open(set).expect("the set is there").manifest().name(number).to_owned();
    (set.join(&name), name)
}

async fn refused(set: &Path, query: &str) -> String {
    let session = kit::session(2, 100);
    kit::register(&session, "t", set);
    let error = kit::rows(&session, query).await.expect_err("the answer would be a part");
    error.to_string()
}

/// A name, and what is done to a file.
type Damage = (&'static str, fn(&Path));

#[tokio::test]
async fn an_error_names_the_file() {
    let damages: [Damage; 4] = [
        ("missing", |path| fs::remove_file(path).expect("it is there")),
        ("cut", |path| {
            let bytes = fs::read(path).expect("it is there");
            fs::write(path, &bytes[..bytes.len() / 2]).expect("it can be written");
        }),
        ("foreign", |path| {
            let bytes = fs::read(path).expect("it is there").len();
            fs::write(path, vec![b'x'; bytes]).expect("it can be written");
        }),
        ("another", |path| {
            fs::remove_file(path).expect("it is there");
            kit::build_file(path, &kit::cases()[0].batch.slice(0, 9), true);
        }),
    ];
    for (what, damage) in damages {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let set = set(folder.path());
        let (path, name) = file(&set, 3);
        damage(&path);
        for query in ["SELECT * FROM t", "SELECT sum(n) FROM t", "SELECT n FROM t WHERE k = 2400 OR k = 3"] {
            let text = refused(&set, query).await;
            assert!(text.contains(&name), "{what}: {query}: {text}");
        }
        // The other files answer, for a query of their keys needs no others.
        let session = kit::session(2, 100);
        kit::register(&session, "t", &set);
        let rows =
            kit::rows(&session, "SELECT k FROM t WHERE k IN (3, 8000, 8997)").await.expect("it answers");
        assert_eq!(rows, ["3", "8997"], "{what}");
    }
}

#[tokio::test]
async fn a_damaged_manifest_is_no_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let set = set(folder.path());
    let manifest = set.join("manifests/00000000000000000001.manifest");
    let mut bytes = fs::read(&manifest).expect("it is there");
    bytes[300] ^= 1;
    fs::write(&manifest, bytes).expect("it can be written");
    let error = PleachTable::open(&set).expect_err("it is damaged").to_string();
    assert!(error.contains("00000000000000000001.manifest") && !error.contains('\n'), "{error}");
}

#[test]
fn what_is_no_table_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let missing = folder.path().join("missing.pleach");
    assert!(PleachTable::open(&missing).expect_err("it is missing").to_string().contains("missing.pleach"));
    let foreign = folder.path().join("foreign.pleach");
    fs::write(&foreign, [0; 40000]).expect("it can be written");
    assert!(PleachTable::open(&foreign).expect_err("it is foreign").to_string().contains("foreign.pleach"));
}
