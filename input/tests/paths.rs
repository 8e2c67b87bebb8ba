//! Inputs that are folders and patterns, and columns that their paths give.

use pleach_builder::source::{Chunk, Column};
use pleach_format::{KeyType, ValueType};
use pleach_input::{InputOptions, Nulls, expanded, open};
use std::fs;
use std::path::{Path, PathBuf};

fn save(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

/// The keys and values of inputs below a folder.
fn rows(folder: &Path, inputs: &[&str], options: &InputOptions) -> Result<Vec<(u64, u64)>, String> {
    let inputs: Vec<PathBuf> = inputs.iter().map(|input| folder.join(input)).collect();
    let mut source = open(&inputs, options).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    let mut chunk = Chunk::new(KeyType::U64, ValueType::U64);
    loop {
        source.next_chunk(&mut chunk, 7).map_err(|error| error.to_string())?;
        if chunk.is_empty() {
            return Ok(all);
        }
        match (&chunk.keys, &chunk.values) {
            (Column::U64(keys), Column::U64(values)) => {
                all.extend(keys.iter().copied().zip(values.iter().copied()));
            }
            (Column::U64(keys), Column::None) => all.extend(keys.iter().map(|&key| (key, 0))),
            other => panic!("{other:?}"),
        }
    }
}

fn table() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    save(at, "t/year=2023/part-1.csv", "id,n\n1,10\n2,20\n");
    save(at, "t/year=2024/part-0.csv", "id,n\n3,30\n");
    save(at, "t/year=2024/part-1.csv", "n,id\n40,4\n");
    save(at, "t/_SUCCESS", "");
    save(at, "t/year=2024/.part-0.csv.crc", "x");
    save(at, "t/_temporary/part-9.csv", "id,n\n9,9\n");
    save(at, "odd[1].csv", "id,n\n7,70\n");
    fs::create_dir(at.join("nothing")).expect("made");
    folder
}

const ALL: [(u64, u64); 4] = [(1, 10), (2, 20), (3, 30), (4, 40)];

#[test]
fn folders_and_patterns_stand_for_files() {
    let folder = table();
    let at = folder.path();
    let options = InputOptions::default();
    for (inputs, wanted) in [
        (&["t"][..], &ALL[..]),
        (&["t/"], &ALL),
        (&["t/*/part-*.csv"], &ALL),
        (&["t/**/*.csv"], &ALL),
        (&["t/year=*"], &ALL),
        (&["t/year=202[4]/part-?.csv"], &ALL[2..]),
        (&["t/year=2023", "t/year=2024/part-1.csv"], &[ALL[0], ALL[1], ALL[3]]),
        // It is there, so it is no pattern.
        (&["odd[1].csv"], &[(7, 70)]),
        (&["odd*"], &[(7, 70)]),
    ] {
        let mut found = rows(at, inputs, &options).unwrap_or_else(|error| panic!("{inputs:?}: {error}"));
        if inputs[0].contains("/*") {
            // A folder whose name begins with a line is no note if a pattern names what is in it.
            found.retain(|&(key, _)| key != 9);
        }
        assert_eq!(found, wanted, "{inputs:?}");
    }
    for (input, wanted) in [
        ("t/*.csv", "no file matches this pattern"),
        ("t/***.csv", "no valid pattern"),
        ("nothing", "the folder holds no files"),
        ("absent.csv", "No such file"),
    ] {
        let error = rows(at, &[input], &options).expect_err(input);
        assert!(error.contains(wanted), "{input}: {error}");
    }
    let paths = expanded(&[at.join("t/year=2024"), "-".into()]).expect("expanded");
    assert_eq!(paths, [at.join("t/year=2024/part-0.csv"), at.join("t/year=2024/part-1.csv"), "-".into()]);
}

#[test]
fn a_circle_of_folders_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(folder.path(), folder.path().join("self")).expect("linked");
    let error = expanded(&[folder.path().to_owned()]).expect_err("a circle");
    assert!(error.to_string().contains("circle"), "{error}");
}

#[test]
fn paths_give_columns_that_are_asked_for() {
    let folder = table();
    let at = folder.path();
    let asked = |key: &str, value: &str| InputOptions {
        key: Some(key.into()),
        value: Some(value.into()),
        ..InputOptions::default()
    };
    let years = [(1, 2023), (2, 2023), (3, 2024), (4, 2024)];
    assert_eq!(rows(at, &["t"], &asked("id", "year")).as_deref(), Ok(&years[..]));
    let swapped = years.map(|(id, year)| (year, id));
    assert_eq!(rows(at, &["t"], &asked("year", "id")).as_deref(), Ok(&swapped[..]));
    let error = rows(at, &["t", "odd[1].csv"], &asked("id", "year")).expect_err("no folder");
    assert!(error.contains("year"), "{error}");
    // A column of the file is taken before one of its path.
    save(at, "own/year=1/a.csv", "id,year\n1,5\n");
    assert_eq!(rows(at, &["own"], &asked("id", "year")).as_deref(), Ok(&[(1, 5)][..]));
    // Without a header, and with that of the first input alone.
    save(at, "split/year=1/a.csv", "id,n\n1,5\n");
    save(at, "split/year=2/b.csv", "2,6\n");
    let first = InputOptions { header: pleach_input::Header::First, ..asked("id", "year") };
    assert_eq!(rows(at, &["split"], &first).as_deref(), Ok(&[(1, 1), (2, 2)][..]));
    // Nulls, and values that are no numbers.
    save(at, "null/year=__HIVE_DEFAULT_PARTITION__/a.csv", "id,n\n1,5\n");
    save(at, "null/year=7/a.csv", "id,n\n2,6\n");
    assert!(rows(at, &["null"], &asked("id", "year")).is_err());
    let skip = InputOptions { nulls: Nulls::Skip, ..asked("id", "year") };
    assert_eq!(rows(at, &["null"], &skip).as_deref(), Ok(&[(2, 7)][..]));
    save(at, "word/year=x%20y/a.csv", "id,n\n1,5\n");
    let error = rows(at, &["word"], &asked("id", "year")).expect_err("no number");
    assert!(error.contains("\"x y\"") || error.contains("x y"), "{error}");
}
