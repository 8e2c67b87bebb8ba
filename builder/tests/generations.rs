//! Generations are identified by content: a file that is not a generation of an index is neither replaced
//! nor removed, whatever its name.

use pleach_builder::rebuild::{
    CompactOptions, RebuildOptions, RollbackOptions, State, compact, generations, kept_path, rebuild,
    rollback,
};
use pleach_builder::{BuildError, BuildOptions, Chunk, ChunkSource, Column, Op, Schema, Silent, build_slice};
use pleach_format::superblock::Superblock;
use pleach_format::{KeyType, ValueType};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn target(&self) -> PathBuf {
        self.at("a.pleach")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    fn build(&self, value: u64, keep: Option<usize>) -> Result<u64, BuildError> {
        let options = BuildOptions { keep, ..BuildOptions::default() };
        build_slice(&[(1u64, value)], &self.target(), &options).map(|made| made.generation)
    }

    fn rebuild(&self, value: u64, keep: Option<usize>) -> Result<u64, BuildError> {
        let mut chunk = Chunk::new(KeyType::U64, ValueType::U64);
        if let (Column::U64(keys), Column::U64(values)) = (&mut chunk.keys, &mut chunk.values) {
            keys.push(1);
            values.push(value);
        }
        chunk.ops.push(Op::Put);
        let source = ChunkSource::new(Schema::plain(KeyType::U64, ValueType::U64, None), vec![chunk]);
        let open = Box::new(move |_: &Schema| Ok(Box::new(source) as Box<dyn pleach_builder::Source>));
        let options = RebuildOptions { keep, ..RebuildOptions::default() };
        rebuild(self.target(), open, &options, &Silent).map(|made| made.summary.generation)
    }

    fn compact(&self, value: u64, keep: Option<usize>) -> Result<u64, BuildError> {
        let other = self.at("other");
        build_slice(&[(1u64, value)], &other, &BuildOptions::default())?;
        let options = CompactOptions { keep, ..CompactOptions::default() };
        let made = compact(std::slice::from_ref(&other), self.target(), &options, &Silent);
        fs::remove_file(other).expect("removed");
        made.map(|made| made.summary.generation)
    }
}

fn superblock(path: &Path) -> Superblock {
    Superblock::decode(&fs::read(path).expect("there"), 0).expect("a superblock")
}

/// Ways to make the next generation.
type Make = fn(&Place, u64, Option<usize>) -> Result<u64, BuildError>;
const MAKES: [(&str, Make); 3] =
    [("build", Place::build), ("rebuild", Place::rebuild), ("compact", Place::compact)];

#[test]
fn every_way_to_replace_an_index_continues_it() {
    for (how, make) in MAKES {
        let place = Place::new();
        assert_eq!(place.build(0, Some(3)).expect("the first"), 1);
        let first = superblock(&place.target());
        assert_eq!(first.lineage, [0; 16], "a fresh build depends on its input alone");
        for generation in 2..=6 {
            assert_eq!(make(&place, generation, Some(3)).expect(how), generation);
            let block = superblock(&place.target());
            assert_eq!((block.lineage, block.generation.get()), (first.file_id, generation));
        }
        assert_eq!(place.names(), ["a.pleach", "a.pleach.g3", "a.pleach.g4", "a.pleach.g5"], "{how}");
        let found = generations(place.target()).expect("a list");
        let states: Vec<_> = found.iter().map(|one| (one.number, one.state.clone())).collect();
        let kept = |number| (number, State::Kept);
        assert_eq!(states, [kept(3), kept(4), kept(5), (6, State::Current)], "{how}");
        assert_eq!(found[3].file_id, Some(superblock(&place.target()).file_id));
        // An old one put back by hand: numbers go on after the newest, and nothing newer is overwritten.
        fs::copy(kept_path(place.target(), 3), place.target()).expect("copied");
        assert_eq!(make(&place, 9, None).expect(how), 6, "{how}: after 5");
    }
}

/// Everything under a folder: names, kinds, inodes and bytes.
fn snapshot(folder: &Path) -> Vec<(PathBuf, u64, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let metadata = fs::symlink_metadata(&path).expect("there");
            let bytes = if metadata.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
            (path, metadata.ino(), bytes)
        })
        .collect();
    all.sort();
    all
}

/// Puts something under a name.
type Put = fn(&Path);

#[test]
fn what_is_no_generation_is_left_alone() {
    let foreign: [(&str, Put); 8] = [
        ("text", |path| fs::write(path, "notes").expect("written")),
        ("empty", |path| fs::write(path, "").expect("written")),
        ("folder", |path| fs::create_dir(path).expect("made")),
        ("link", |path| symlink("elsewhere", path).expect("linked")),
        ("link to the index", |path| symlink("a.pleach", path).expect("linked")),
        ("pipe", |path| {
            assert!(std::process::Command::new("mkfifo").arg(path).status().expect("runs").success());
        }),
        ("another index", |path| {
            build_slice(&[(5u32, 6u32)], path, &BuildOptions::default()).map(|_| ()).expect("built");
        }),
        ("damaged", |path| {
            let mut bytes =
                pleach_builder::build_bytes(&[(1u64, 0u64)], &BuildOptions::default()).expect("built");
            let end = bytes.len();
            bytes[70] ^= 1;
            bytes[end - 4096 + 70] ^= 1;
            fs::write(path, bytes).expect("written");
        }),
    ];
    for (how, make) in MAKES {
        for (what, put) in foreign {
            // Beside: numbers below and above the present one.
            let place = Place::new();
            for value in 0..4 {
                place.build(value, Some(9)).expect("built");
            }
            let others = [kept_path(place.target(), 2), kept_path(place.target(), 7)];
            let _ = fs::remove_file(&others[0]);
            others.iter().for_each(|path| put(path));
            let before: Vec<_> =
                snapshot(place.0.path()).into_iter().filter(|(path, ..)| others.contains(path)).collect();
            make(&place, 10, Some(1)).unwrap_or_else(|error| panic!("{how}, {what}: {error}"));
            let after: Vec<_> =
                snapshot(place.0.path()).into_iter().filter(|(path, ..)| others.contains(path)).collect();
            assert_eq!(before, after, "{how}, {what}");
            assert_eq!(
                place.names(),
                ["a.pleach", "a.pleach.g2", "a.pleach.g4", "a.pleach.g7"],
                "{how}, {what}"
            );
            let found = generations(place.target()).expect("a list");
            let foreign = found.iter().filter(|one| matches!(one.state, State::Foreign(_)));
            assert_eq!(foreign.map(|one| one.number).collect::<Vec<_>>(), [2, 7], "{how}, {what}");
            // On the name that is needed: refused, and all is as it was.
            let place = Place::new();
            place.build(0, None).expect("built");
            put(&kept_path(place.target(), 1));
            let before = snapshot(place.0.path());
            let error = make(&place, 1, Some(1)).expect_err("refused");
            assert!(matches!(&error, BuildError::GenerationTaken { .. }), "{how}, {what}: {error}");
            assert!(
                error.to_string().contains("a.pleach.g1") && !error.to_string().contains('\n'),
                "{error}"
            );
            let mut after = snapshot(place.0.path());
            after.retain(|(path, ..)| !path.ends_with("other"));
            assert_eq!(before, after, "{how}, {what}");
            // Without --keep it does not matter.
            make(&place, 1, None).unwrap_or_else(|error| panic!("{how}, {what}: {error}"));
        }
    }
}

#[test]
fn old_generations_are_published_anew() {
    let place = Place::new();
    for value in 0..5 {
        place.build(value, Some(9)).expect("built");
    }
    let second = superblock(&kept_path(place.target(), 2));
    let options = RollbackOptions::default();
    let done = rollback(place.target(), Some(2), &options, &Silent).expect("rolled back");
    assert_eq!((done.from, done.generation, done.kept), (2, 6, 5));
    let block = superblock(&place.target());
    assert_eq!(
        (block.file_id, block.lineage, block.generation.get()),
        (second.file_id, second.lineage, 6),
        "the same content, a new number"
    );
    let mut old = fs::read(kept_path(place.target(), 2)).expect("there");
    let new = fs::read(place.target()).expect("there");
    let sealed = block.seal();
    let end = old.len() - 4096;
    old[..4096].copy_from_slice(&sealed);
    old[end..].copy_from_slice(&sealed);
    assert!(old == new, "nothing else has changed");
    // The newest that is kept, which is the one that was current; few are kept.
    let options = RollbackOptions { keep: Some(2), ..options };
    let done = rollback(place.target(), None, &options, &Silent).expect("rolled back");
    assert_eq!((done.from, done.generation, done.kept), (5, 7, 2));
    assert_eq!(place.names(), ["a.pleach", "a.pleach.g5", "a.pleach.g6"]);
    // If the index is damaged, empty or missing.
    let sixth = superblock(&kept_path(place.target(), 6)).file_id;
    for broken in [None, Some(Vec::new()), Some(vec![0x89; 3])] {
        match &broken {
            None => fs::remove_file(place.target()).expect("removed"),
            Some(bytes) => fs::write(place.target(), bytes).expect("written"),
        }
        let is_foreign = broken.is_some_and(|bytes| !bytes.is_empty());
        let options = RollbackOptions { force: is_foreign, ..RollbackOptions::default() };
        if is_foreign {
            let error = rollback(place.target(), None, &RollbackOptions::default(), &Silent);
            assert!(matches!(error, Err(BuildError::TargetForeign { .. })));
        }
        let done = rollback(place.target(), None, &options, &Silent).expect("rolled back");
        assert_eq!((done.file_id, done.from, done.generation), (sixth, 6, 8));
    }
    // Missing or damaged generations.
    for number in [3, 99] {
        let error = rollback(place.target(), Some(number), &options, &Silent).expect_err("none");
        assert!(matches!(error, BuildError::NoGeneration { .. }), "{error}");
    }
    let fifth = kept_path(place.target(), 5);
    let sound = fs::read(&fifth).expect("there");
    let before = fs::read(place.target()).expect("there");
    for at in [4096 + 20, 8200, sound.len() - 4096 - 4096 - 4, sound.len() - 12288 - 8] {
        let mut bytes = sound.clone();
        bytes[at] ^= 16;
        fs::write(&fifth, &bytes).expect("written");
        match rollback(place.target(), Some(5), &RollbackOptions::default(), &Silent) {
            Err(error) => {
                let is_damage = matches!(error, BuildError::Damaged { .. } | BuildError::Base { .. });
                assert!(is_damage, "{at}: {error}");
                assert!(fs::read(place.target()).expect("there") == before, "{at}");
            }
            // The copies at the end, which are written again.
            Ok(_) => assert!(at >= sound.len() - 8192, "{at}"),
        }
    }
}
