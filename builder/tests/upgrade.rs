//! Upgrades: files of 0.13, the last version before 1.0, and their kept generations.

use pleach_builder::rebuild::{State, Upgraded, generations, kept_path, upgrade, upgrade_with_storage};
use pleach_builder::storage::MemoryStorage;
use pleach_builder::{BuildError, Silent};
use pleach_format::FormatError;
use pleach_format::superblock::Superblock;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of the superblock that name the program.
const BUILDER: std::ops::Range<usize> = 264..296;

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(folder)
}

/// A file of 0.13, by the name that the file of 1.0 has, too.
fn old(name: &str) -> Vec<u8> {
    fs::read(data("v0.13").join(name)).expect("readable")
}

/// Makes both superblocks of a file those of another generation.
fn with_generation(mut bytes: Vec<u8>, generation: u64, lineage: [u8; 16]) -> Vec<u8> {
    let end = bytes.len() - 4096;
    for at in [0, end] {
        let mut block = Superblock::sealed(&bytes[at..], 0).expect("a superblock");
        block.generation = generation.into();
        block.lineage = lineage;
        bytes[at..at + 4096].copy_from_slice(&block.seal());
    }
    bytes
}

#[test]
fn every_golden_file_becomes_the_one_that_is_built_now() {
    let mut names = 0;
    for entry in fs::read_dir(data("v0.13")).expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(&name);
        fs::write(&path, old(&name)).expect("written");
        let Upgraded { from, kept, .. } = upgrade(&path, &Silent).expect("upgraded");
        assert_eq!((from, kept), (Some((0, 13)), 0));
        let upgraded = fs::read(&path).expect("readable");
        let mut built = fs::read(data("v1.0").join(&name)).expect("the same file of 1.0");
        // The program that built it is another, maybe.
        let end = built.len() - 4096;
        for at in [0, end] {
            let mut block = Superblock::sealed(&built[at..], 0).expect("a superblock");
            block.builder.copy_from_slice(&upgraded[at..][BUILDER]);
            built[at..at + 4096].copy_from_slice(&block.seal());
        }
        assert!(upgraded == built, "{name}");
        // Again: nothing to do.
        assert_eq!(upgrade(&path, &Silent).expect("read").from, None);
        assert!(fs::read(&path).expect("readable") == upgraded, "{name}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "{name}: nothing is left");
        names += 1;
    }
    assert!(names > 30, "{names} files");
}

#[test]
fn kept_generations_are_upgraded_and_stay_generations() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.pleach");
    let first = with_generation(old("u64_u32.pleach"), 1, [0; 16]);
    let lineage = Superblock::sealed(&first, 0).expect("a superblock").file_id;
    let second = old("u64_u32_harmonia.pleach");
    fs::write(kept_path(&path, 1), &first).expect("written");
    fs::write(&path, with_generation(second, 2, lineage)).expect("written");
    fs::write(kept_path(&path, 7), "notes").expect("written");
    let stranger = old("u64_u64.pleach");
    fs::write(kept_path(&path, 8), &stranger).expect("written");
    let other_number = with_generation(old("u64_u32.pleach"), 3, lineage);
    fs::write(kept_path(&path, 9), &other_number).expect("written");
    let done = upgrade(&path, &Silent).expect("upgraded");
    assert_eq!((done.generation, done.kept), (2, 1));
    let all = generations(&path).expect("listed");
    let states: Vec<_> = all.iter().map(|one| (one.number, one.state.clone())).collect();
    assert!(
        matches!(
            &states[..],
            [
                (1, State::Kept),
                (7, State::Foreign(_)),
                (8, State::Foreign(_)),
                (9, State::Foreign(_)),
                (2, State::Current)
            ]
        ),
        "{states:?}"
    );
    assert_eq!(fs::read(kept_path(&path, 7)).expect("readable"), b"notes", "no generation");
    assert!(fs::read(kept_path(&path, 8)).expect("readable") == stranger, "a file of another index");
    assert!(fs::read(kept_path(&path, 9)).expect("readable") == other_number, "another generation");
}

#[test]
fn refused_files_stay_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.pleach");
    let whole = old("u64_u32.pleach");
    let sealed = |change: fn(&mut Superblock)| {
        let mut bytes = whole.clone();
        let mut block = Superblock::sealed(&bytes, 0).expect("a superblock");
        change(&mut block);
        bytes[..4096].copy_from_slice(&block.seal());
        bytes
    };
    let mut damaged = whole.clone();
    damaged[20_000] ^= 1;
    let mut table = whole.clone();
    table[5000] ^= 1;
    let files: [(Vec<u8>, &str); 7] = [
        (damaged, "damaged"),
        (table, "damaged section table"),
        (whole[..whole.len() - 1].to_vec(), "truncated"),
        (sealed(|block| block.version_minor = 12.into()), "build the file again"),
        (sealed(|block| block.version_major = 2.into()), "use a newer program"),
        (b"not a file of ours".to_vec(), "not a Pleach file"),
        (Vec::new(), "truncated"),
    ];
    for (bytes, wanted) in files {
        fs::write(&path, &bytes).expect("written");
        let refused = upgrade(&path, &Silent).expect_err(wanted);
        let chain = format!(
            "{refused}: {}",
            std::error::Error::source(&refused).map_or(String::new(), |e| e.to_string())
        );
        assert!(chain.contains(wanted), "{wanted}: {chain}");
        assert!(fs::read(&path).expect("readable") == bytes, "{wanted}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "{wanted}: nothing is left");
    }
}

#[test]
fn a_file_that_a_writer_must_know_more_of_is_read_and_not_rewritten() {
    let mut bytes = fs::read(data("v1.0").join("u64_u32.pleach")).expect("readable");
    let mut block = Superblock::sealed(&bytes, 0).expect("a superblock");
    block.writer_features = 8.into();
    bytes[..4096].copy_from_slice(&block.seal());
    let storage = MemoryStorage::default();
    let target = Path::new("/a.pleach");
    storage.put(target, bytes);
    let refused = upgrade_with_storage(target, &Silent, &storage).expect_err("refused");
    let BuildError::Base { source, .. } = refused else { panic!("{refused}") };
    assert_eq!(source, FormatError::Feature { unknown: 8 });
}
