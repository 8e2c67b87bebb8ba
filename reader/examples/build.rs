//! Builds a file: from an iterator, with options, and as the next generation of itself.

use pleach::build::{Layout, Unique};
use pleach::{AnyMap, Builder, ErrorKind, Map};

pub(crate) fn main() -> pleach::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("squares.pleach");

    // Tuples may come in any order. They are streamed if they are sorted, and sorted otherwise.
    let squares = (0..100_000u32).rev().map(|number| (number, u64::from(number) * u64::from(number)));
    let summary = Builder::new().build(&path, squares)?;
    assert_eq!((summary.tuples, summary.generation, summary.sorted_input), (100_000, 1, false));

    // Options are setters. Names are stored in the file, and shown by `pleach inspect`.
    let layout: Layout = "lines,spine,grid,columns".parse().expect("a layout");
    let builder = Builder::new()
        .threads(2)
        .memory(1 << 30)
        .layout(layout)
        .unique(Unique::First)
        .names("number", "name");
    let summary = builder.build(&path, [(2u32, "two"), (1, "one"), (2, "deux")])?;
    // It took the place of the file as its next generation, in one step.
    assert_eq!((summary.tuples, summary.generation), (2, 2));
    let names: Map<u32, String> = Map::open(&path)?;
    assert_eq!(names.get(2)?.as_deref(), Some("two"));

    // A build is whole or not at all.
    let error = builder.clone().unique(Unique::Error).build(&path, [(1u32, "a"), (1, "b")]);
    let error = pleach::Error::from(error.expect_err("a key is there twice"));
    assert_eq!(error.kind(), ErrorKind::Input);
    assert_eq!(AnyMap::open(&path)?.index().generation(), 2);

    // Without a file.
    let bytes = Builder::new().to_bytes([(1u64, ()), (7, ())])?;
    assert!(Map::<u64, ()>::from_bytes(bytes)?.contains(7)?);
    println!("built {} tuples in {} bytes", summary.tuples, summary.file_bytes);
    Ok(())
}
