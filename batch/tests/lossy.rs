//! Keys that are shorter than those they stand for: hashes of texts, and the shortest prefixes.

use pleach_batch::{Copied, Found, Keys, Pool, Table, Values};
use pleach_builder::rebuild::{self, CompactOptions, RebuildOptions};
use pleach_builder::source::{Derived, Schema, Source, SourceError};
use pleach_builder::{BuildError, BuildOptions, Chunk, Column, Silent, Strings};
use pleach_format::logical::{Logical, hash_of, hash128};
use pleach_format::{KeyType, ValueType};
use pleach_relation::{How, Relation, RelationError, StreamOptions};
use std::path::Path;

/// Texts or hashes with the numbers of their rows, in one chunk.
struct Rows {
    schema: Schema,
    keys: Option<Column>,
}

impl Rows {
    fn of(keys: Column, derived: Derived) -> Self {
        let key_type = if matches!(keys, Column::U128(_)) { KeyType::U128 } else { KeyType::Utf8 };
        let schema = Schema { derived: Some(derived), ..Schema::plain(key_type, ValueType::U32, None) };
        Self { schema, keys: Some(keys) }
    }
}

impl Source for Rows {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn next_chunk(&mut self, chunk: &mut Chunk, _: usize) -> Result<(), SourceError> {
        *chunk = Chunk::new(self.schema.key_type, self.schema.value_type);
        if let Some(keys) = self.keys.take() {
            let values = Column::U32((0..keys.len() as u32).collect());
            *chunk = Chunk { keys, values, ops: Vec::new() };
        }
        Ok(())
    }
    fn progress(&self) -> (u64, Option<u64>) {
        (0, None)
    }
}

fn texts(all: &[String]) -> Column {
    let mut strings = Strings::default();
    all.iter().for_each(|text| strings.push(text.as_bytes()));
    Column::Bytes(strings)
}

fn built(keys: Column, derived: Derived, path: &Path) -> Result<Table, BuildError> {
    pleach_builder::build(&mut Rows::of(keys, derived), path, &BuildOptions::default(), &Silent)?;
    assert_eq!(pleach_fsck::check_bytes(&std::fs::read(path).expect("reads")), []);
    Ok(Table::open(path).expect("opens"))
}

/// Returns how many of these keys are found; checks the values of those with a row.
fn found(table: &Table, keys: &[String], has_rows: bool) -> usize {
    let (mut values, mut is_found) = (vec![0; keys.len()], vec![false; keys.len()]);
    let parsed = table.parsed(&keys.iter().collect::<Copied>()).expect("are keys");
    let mut ask = |keys: &Keys<'_>| {
        let to = &mut Values::U32(&mut values);
        table.get(keys, to, &mut Found::Bools(&mut is_found), &Pool::current()).expect("answers")
    };
    let count = match &parsed {
        Some(parsed) => parsed.with(ask),
        None => ask(&Keys::Texts(&keys.iter().collect::<Copied>())),
    };
    if has_rows {
        assert!(is_found.iter().all(|&found| found));
        assert!(values.iter().enumerate().all(|(row, &value)| value == row as u32));
    }
    count
}

/// Forty digits, as evenly spread as those of a hash.
fn digits(number: u64) -> String {
    let hash = hash128(&number.to_le_bytes());
    format!("{hash:032x}{:08x}", (hash >> 13) as u32)
}

#[test]
fn prefixes_of_digits_state_how_often_they_err() {
    let folder = tempfile::tempdir().expect("a folder");
    for count in [200, 600] {
        let keys: Vec<String> = (0..count).map(digits).collect();
        let table = built(texts(&keys), Derived::Prefix, &folder.path().join("p.pleach")).expect("is built");
        let Logical::HexDigits(kept) = *table.key_meaning() else { panic!("{:?}", table.key_meaning()) };
        // One digit less is not enough.
        let mut shorter: Vec<&str> = keys.iter().map(|key| &key[..kept as usize - 1]).collect();
        shorter.sort_unstable();
        assert!(shorter.windows(2).any(|pair| pair[0] == pair[1]));
        assert_eq!(found(&table, &keys, true), keys.len());
        let stated = table.index().approximate().expect("reads").expect("is approximate");
        assert_eq!(stated.distinct, count);
        let absent: Vec<String> = (count..count + 2_000_000).map(digits).collect();
        let measured = found(&table, &absent, false) as f64 / absent.len() as f64;
        let ratio = measured / stated.rate.expect("is known for digits");
        assert!((0.8..1.2).contains(&ratio), "{count}: {measured} is {ratio} of what is stated");
    }
}

#[test]
fn hashes_find_every_key_and_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys: Vec<String> = (0..20_000).map(|number| format!(" text, {number} \"é\"")).collect();
    let table = built(texts(&keys), Derived::Hash, &folder.path().join("h.pleach")).expect("is built");
    assert_eq!(*table.key_meaning(), Logical::Hash64(0));
    assert_eq!(table.key_type(), KeyType::U64);
    assert_eq!(found(&table, &keys, true), keys.len());
    let absent: Vec<String> = (0..200_000).map(|number| format!("text, {number}")).collect();
    assert_eq!(found(&table, &absent, false), 0);
    let stated = table.index().approximate().expect("reads").expect("is approximate");
    assert_eq!(stated.rate, Some(20_000.0 / 2_f64.powi(64)));
    // A program without texts asks by the hash.
    let map = pleach::Map::<u64, u32>::open(folder.path().join("h.pleach")).expect("opens");
    assert_eq!(map.get(hash_of(keys[7].as_bytes(), 0)).expect("reads"), Some(7));
}

#[test]
fn equal_texts_stay_together_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys: Vec<String> = (0..3000).map(|number| digits(number % 1000)).collect();
    for derived in [Derived::Hash, Derived::Prefix] {
        let path = folder.path().join("e.pleach");
        let table = built(texts(&keys), derived, &path).expect("is built");
        assert_eq!(table.index().approximate().expect("reads").map(|found| found.distinct), Some(1000));
        let map = pleach::AnyMap::open(&path).expect("opens");
        drop(map);
        let values: Vec<u32> = (0..table.len())
            .map(|rank| match table.index().tuple(rank).expect("reads").expect("is there").1 {
                pleach::Datum::U32(value) => value,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(values.chunks(3).all(|three| { three[1] == three[0] + 1000 && three[2] == three[1] + 1000 }));
        // And one of them is kept where only one is wanted.
        let options = BuildOptions { unique: Some(pleach_builder::Unique::Last), ..BuildOptions::default() };
        let mut rows = Rows::of(texts(&keys), derived);
        let summary = pleach_builder::build(&mut rows, &path, &options, &Silent).expect("is built");
        assert_eq!((summary.rows, summary.tuples), (3000, 1000));
    }
}

/// Hashes whose upper halves are equal are turned until other bits differ.
#[test]
fn hashes_that_collide_are_turned() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.pleach");
    // The first two differ in the last byte alone, which comes to the front with the 15th turn.
    for (differing_byte, turn) in [(15, 0), (8, 0), (7, 1), (3, 5), (0, 8)] {
        let base = 0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128;
        let other = base ^ (1 << (8 * differing_byte));
        let hashes = vec![other, base, base.wrapping_mul(3), other];
        let table = built(Column::U128(hashes.clone()), Derived::Hash, &path).expect("is built");
        assert_eq!(*table.key_meaning(), Logical::Hash64(turn), "byte {differing_byte}");
        assert_eq!(table.index().approximate().expect("reads").map(|found| found.distinct), Some(3));
        let map = pleach::Map::<u64, u32>::open(&path).expect("opens");
        let key = |hash: u128| (hash.rotate_left(8 * u32::from(turn)) >> 64) as u64;
        assert_eq!(map.get(key(base)).expect("reads"), Some(1));
        assert_eq!(map.get(key(other)).expect("reads"), Some(0));
        assert_eq!(map.get(key(hashes[2])).expect("reads"), Some(2));
    }
}

#[test]
fn prefixes_are_digits_only_if_all_keys_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let table = built(texts(&keys), Derived::Prefix, &folder.path().join("t.pleach")).expect("is built");
        assert_eq!(found(&table, &keys, true), keys.len());
        let stated = table.index().approximate().expect("reads").expect("is approximate");
        assert_eq!(stated.rate.is_some(), matches!(table.key_meaning(), Logical::HexDigits(_)));
        table.key_meaning().clone()
    };
    assert_eq!(of(&["0a1b", "0a2b", "ffff"]), Logical::HexDigits(3));
    assert_eq!(of(&["0A1B", "0A2B", "FFFF"]), Logical::HexDigits(3));
    assert_eq!(of(&["0a1b", "0A2B", "ffff"]), Logical::Prefix(2));
    assert_eq!(of(&["ab", "AB"]), Logical::Prefix(1));
    assert_eq!(of(&["ab", "abc"]), Logical::Prefix(3));
    assert_eq!(of(&["", "a"]), Logical::Prefix(1));
    assert_eq!(of(&["one"]), Logical::Prefix(1));
    assert_eq!(of(&["a"]), Logical::HexDigits(1));
    assert_eq!(of(&["ééa", "éèa", "é"]), Logical::Prefix(2));
    assert_eq!(of(&["https://a.example/1", "https://a.example/2", "x"]), Logical::Prefix(19));
    let long = "0123456789abcdef0123456789abcdef";
    assert_eq!(of(&[&format!("{long}00"), &format!("{long}10")]), Logical::HexDigits(34));
    assert_eq!(of(&[&format!("{long}0"), &format!("{long}1")]), Logical::Prefix(33));
    let empty = built(texts(&[]), Derived::Prefix, &folder.path().join("t.pleach")).expect("is built");
    assert_eq!((empty.len(), empty.key_meaning().clone()), (0, Logical::Prefix(1)));
}

#[test]
fn what_must_be_exact_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (folder.path().join("1.pleach"), folder.path().join("2.pleach"));
    let keys: Vec<String> = (0..500).map(digits).collect();
    for path in [&one, &other] {
        built(texts(&keys), Derived::Hash, path).expect("is built");
    }
    let index = pleach::Index::open(&one).expect("opens");
    let relation = || Relation::from_index(&index);
    let permitted = StreamOptions { approximate: true, ..StreamOptions::default() };
    let is_refused = |found: Result<pleach_relation::Answer<'_>, RelationError>| {
        matches!(found, Err(RelationError::Approximate { .. }))
    };
    assert!(is_refused(pleach_relation::join(How::Inner, relation(), relation(), StreamOptions::default())));
    let joined = pleach_relation::join(How::Inner, relation(), relation(), permitted).expect("is permitted");
    assert_eq!(joined.schema().approximate, Some(1000));
    let made = folder.path().join("3.pleach");
    joined.to_index(&made, &BuildOptions::default(), &Silent).expect("is built");
    let again = Table::open(&made).expect("opens");
    assert_eq!(again.index().approximate().expect("reads").map(|found| found.distinct), Some(500));
    for operation in [
        pleach_relation::SetOperation::Union,
        pleach_relation::SetOperation::Intersection,
        pleach_relation::SetOperation::Difference,
    ] {
        let rule = pleach_relation::SetRule::Set;
        let set = |options| pleach_relation::set(operation, rule, relation(), relation(), options);
        assert!(is_refused(set(StreamOptions::default())));
        assert!(set(permitted).is_ok());
    }
    let reduce = |options| pleach_relation::reduce(relation(), pleach_relation::Reduction::Count, options);
    assert!(is_refused(reduce(StreamOptions::default())) && reduce(permitted).is_ok());
    let asof = |options| {
        pleach_relation::asof(
            pleach_relation::AsOf::Backward,
            None,
            How::Inner,
            relation(),
            relation(),
            options,
        )
    };
    assert!(is_refused(asof(StreamOptions::default())));
    let product = pleach_relation::product(relation(), relation(), StreamOptions::default());
    assert_eq!(product.expect("compares no keys").schema().approximate, Some(500));

    let files = [one.clone(), other];
    let merged = |approximate| {
        let options = CompactOptions { approximate, ..CompactOptions::default() };
        rebuild::compact(&files, folder.path().join("4.pleach"), &options, &Silent)
    };
    assert!(matches!(merged(false), Err(BuildError::Approximate { .. })));
    assert_eq!(
        merged(true).expect("is permitted").summary.approximate.map(|found| found.distinct),
        Some(1000)
    );
    let before = std::fs::read(&one).expect("reads");
    let changed = |approximate| {
        let options = RebuildOptions { approximate, ..RebuildOptions::default() };
        let open = |schema: &Schema| {
            let mut chunk = Chunk::new(schema.key_type, schema.value_type);
            chunk.keys = Column::U64(vec![hash_of(digits(3).as_bytes(), 0), 77]);
            chunk.values = Column::U32(vec![9, 9]);
            chunk.ops = vec![pleach_builder::Op::Put; 2];
            let schema = schema.clone();
            Ok(Box::new(Changes { schema, chunk: Some(chunk) }) as Box<dyn Source>)
        };
        rebuild::rebuild(&one, Box::new(open), &options, &Silent)
    };
    assert!(matches!(changed(false), Err(BuildError::Approximate { .. })));
    assert_eq!(std::fs::read(&one).expect("reads"), before);
    assert_eq!(changed(true).expect("is permitted").summary.tuples, 501);
    assert!(Table::open(&one).expect("opens").index().approximate().expect("reads").is_some());
}

/// Changes of a file, in one chunk.
struct Changes {
    schema: Schema,
    chunk: Option<Chunk>,
}

impl Source for Changes {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn next_chunk(&mut self, chunk: &mut Chunk, _: usize) -> Result<(), SourceError> {
        *chunk = self.chunk.take().unwrap_or_default();
        Ok(())
    }
    fn progress(&self) -> (u64, Option<u64>) {
        (0, None)
    }
}
