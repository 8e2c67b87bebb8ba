//! Calls that do not fit the types of a file are errors, and never cause a wrong file or a panic.

use pleach::{Index, KeyType, with_typed};
use pleach_builder::{
    BuildError, BuildOptions, Chunk, ChunkSource, Column, Schema, Silent, build, build_strings,
    build_strings_bytes,
};
use pleach_format::ValueType;

#[test]
fn numbers_are_not_built_from_byte_strings() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("t.pleach");
    let tuples = [("1", 1u64), ("2", 2)];
    let numeric = [KeyType::U32, KeyType::U64, KeyType::U128, KeyType::I32, KeyType::I64, KeyType::F64];
    for key_type in numeric {
        let error =
            build_strings(key_type, &tuples, &target, &BuildOptions::default()).expect_err("no numbers");
        assert!(
            matches!(error, BuildError::Source(_)) && error.to_string().contains(&key_type.to_string()),
            "{error}"
        );
        assert!(build_strings_bytes(key_type, &tuples, &BuildOptions::default()).is_err());
        assert!(build_strings_bytes::<&str, u64>(key_type, &[], &BuildOptions::default()).is_err());
    }
    // Nor are strings of another length, or invalid UTF-8.
    let wrong: [(KeyType, &[u8]); 3] =
        [(KeyType::Fixed(2), b"1"), (KeyType::Fixed(2), b"123"), (KeyType::Utf8, b"\xFF")];
    for (key_type, key) in wrong {
        assert!(
            build_strings(key_type, &[(key, 1u64)], &target, &BuildOptions::default()).is_err(),
            "{key_type}"
        );
    }
    assert!(std::fs::read_dir(folder.path()).expect("a folder").next().is_none(), "nothing is left");
    for key_type in [KeyType::Fixed(1), KeyType::Bytes, KeyType::Utf8] {
        build_strings(key_type, &tuples, &target, &BuildOptions::default()).expect("byte strings");
    }
}

#[test]
fn byte_keys_are_no_numbers() {
    let bytes = build_strings_bytes(KeyType::Utf8, &[("a", 1u64)], &BuildOptions::default()).expect("builds");
    let index = Index::from_bytes(bytes).expect("opens");
    let error = with_typed!(&index, |view| view.len()).expect_err("byte strings");
    assert_eq!(error.holds, (KeyType::Utf8, ValueType::U64));
    let bytes = pleach_builder::build_bytes(&[(7i32, 1.5f64)], &BuildOptions::default()).expect("builds");
    let index = Index::from_bytes(bytes).expect("opens");
    assert_eq!(with_typed!(&index, |view| view.len()), Ok(1));
}

#[test]
fn values_without_keys_are_not_the_end_of_the_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("t.pleach");
    let values = || Column::U64(vec![7]);
    for (key_type, keys) in [
        (KeyType::U64, Column::U64(vec![1])),
        (KeyType::Utf8, {
            let mut keys = pleach_builder::Strings::default();
            keys.push(b"a");
            Column::Bytes(keys)
        }),
    ] {
        let none = Column::for_key(key_type);
        let schema = || Schema::plain(key_type, ValueType::U64, None);
        let whole = || Chunk { keys: keys.clone(), values: values(), ops: Vec::new() };
        let torn = || Chunk { keys: none.clone(), values: values(), ops: Vec::new() };
        for chunks in [vec![torn()], vec![whole(), torn()], vec![torn(), whole()]] {
            let mut source = ChunkSource::new(schema(), chunks);
            let error = build(&mut source, &target, &BuildOptions::default(), &Silent).expect_err("no keys");
            assert!(
                matches!(error, BuildError::Source(_)) && error.to_string().contains("unequal lengths"),
                "{error}"
            );
        }
        assert!(std::fs::read_dir(folder.path()).expect("a folder").next().is_none(), "nothing is left");
        // An empty chunk between others is allowed.
        let mut source = ChunkSource::new(schema(), [whole(), Chunk::new(key_type, ValueType::U64), whole()]);
        let built = build(&mut source, &target, &BuildOptions::default(), &Silent).expect("builds");
        assert_eq!(built.tuples, 2);
        std::fs::remove_file(&target).expect("the file");
    }
}
