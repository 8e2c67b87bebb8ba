//! The whole public API on mapped files that are cut and overwritten under every call, by a program without unsafe
//! code: an answer or an error, never a signal, and no text that is none.
//!
//! Answers of an overwritten file may be wrong. Whatever a call has given away stays what it was, whatever
//! happens to the file afterwards: that is what texts, offsets and arrays rest on.
#![forbid(unsafe_code)]

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use pleach::{
    AnyMap, BytesMap, Column, Columns, Datum, FsckOptions, Index, Key, KeyType, Live, Map, ReadError,
    Residence, Strategy, Strings, Structure, Typed, Value, Verify, contain_sigbus, fsck,
};
use pleach_builder::{BuildOptions, build_bytes, build_strings_bytes};
use pleach_format::Word;
use pleach_relation::{AsOf, How, Reduction, Relation, SetOperation, SetRule, StreamOptions};
use pleach_tests::generate::{Random, mix};
use pleach_tests::whole::wholes;
use pleach_tests::{figure, is_long};
use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SEED: &str = "PLEACH_HOSTILE_SEED";
const PAGE: u64 = 4096;

/// Data that a call has returned.
#[derive(Debug, PartialEq)]
enum Given {
    Text(String),
    Bytes(Vec<u8>),
}

/// Everything that borrows from an index, or holds it, and lasts: looked at again after the file was changed.
#[derive(Default)]
struct Kept<'a> {
    columns: Option<Columns>,
    elements: Vec<std::borrow::Cow<'a, [u8]>>,
    datums: Vec<Datum<'a>>,
    whole: Option<std::borrow::Cow<'a, [u8]>>,
}

impl Kept<'_> {
    /// A copy of all of it. Texts are read as Rust reads them: character by character.
    fn look(&self) -> Vec<Given> {
        let mut given = Vec::new();
        if let Some(columns) = &self.columns {
            [&columns.keys, &columns.values]
                .into_iter()
                .flatten()
                .for_each(|array| look_at(array, &mut given));
        }
        let of = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => Given::Text(text.chars().collect()),
            Err(_) => Given::Bytes(bytes.to_vec()),
        };
        given.extend(self.elements.iter().map(|element| of(element)));
        given.extend(self.datums.iter().map(|datum| match datum {
            Datum::Utf8(bytes) | Datum::Bytes(bytes) => of(bytes),
            other => Given::Text(format!("{other:?}")),
        }));
        given.extend(self.whole.iter().map(|whole| Given::Bytes(whole.to_vec())));
        given
    }
}

/// Every element of an array, as its type gives it.
fn look_at(array: &ArrayRef, given: &mut Vec<Given>) {
    use arrow_schema::DataType;
    let text = |text: &str| {
        assert!(std::str::from_utf8(text.as_bytes()).is_ok(), "a text that is none");
        Given::Text(text.chars().collect())
    };
    for at in 0..array.len() {
        given.push(match array.data_type() {
            DataType::Utf8 => text(array.as_string::<i32>().value(at)),
            DataType::LargeUtf8 => text(array.as_string::<i64>().value(at)),
            DataType::Binary => Given::Bytes(array.as_binary::<i32>().value(at).to_vec()),
            DataType::LargeBinary => Given::Bytes(array.as_binary::<i64>().value(at).to_vec()),
            DataType::FixedSizeBinary(_) => Given::Bytes(array.as_fixed_size_binary().value(at).to_vec()),
            DataType::UInt32 => Given::Text(array.as_primitive::<UInt32Type>().value(at).to_string()),
            DataType::UInt64 => Given::Text(array.as_primitive::<UInt64Type>().value(at).to_string()),
            DataType::Int32 => Given::Text(array.as_primitive::<Int32Type>().value(at).to_string()),
            DataType::Int64 => Given::Text(array.as_primitive::<Int64Type>().value(at).to_string()),
            _ => continue,
        });
    }
}

/// Every call on numbers; errors are answers.
fn numbers<K: Key, V: Value>(view: &Typed<'_, K, V>, random: &mut Random) {
    let len = view.len();
    let keys: Vec<K> = (0..150).map(|_| K::decode(K::Word::from_u64(mix(random.below(300))))).collect();
    for &key in &keys[..6] {
        let _ = black_box((view.get(key), view.contains(key), view.rank(key)));
        let _ = black_box((view.lower_bound(key), view.upper_bound(key), view.count(key..)));
        let _ = black_box(view.select(random.below(len + 2)));
        let _ = black_box(view.get_all(key).map(|all| all.take(20).count()));
        let _ = black_box(view.range(key..).map(|range| range.take(90).filter(Result::is_ok).count()));
        let _ = black_box(view.range(..key).map(|range| range.rev().take(90).filter(Result::is_ok).count()));
        let mut scanned = 0;
        let _ = black_box(view.scan_range(key.., |keys, values| scanned += keys.len() + values.len()));
    }
    let _ = black_box((view.min(), view.max(), view.scan(0..len, |_, _| {})));
    let (mut values, mut present, mut ranks) = (vec![V::default(); 150], vec![0; 3], vec![0; 150]);
    let _ = black_box(view.get_batch(&keys, &mut values, &mut present));
    let _ = black_box(view.contains_batch(&keys, &mut present));
    let _ = black_box(view.lower_bound_batch(&keys, &mut ranks));
    let _ = black_box(view.par_get_batch(&keys, &mut values, &mut present));
    let _ = black_box(view.par_contains_batch(&keys, &mut present));
    let _ = black_box(view.par_lower_bound_batch(&keys, &mut ranks));
    let mut scratch = pleach::Scratch::new(pleach::Costs::default());
    for strategy in Strategy::ALL {
        let _ = black_box(view.get_batch_by(strategy, &keys, &mut values, &mut present, &mut scratch));
        let _ = black_box(view.lower_bound_batch_by(strategy, &keys, &mut ranks, &mut scratch));
        let _ = black_box(view.par_get_batch_by(
            strategy,
            &keys,
            &mut values,
            &mut present,
            slice::from_mut(&mut scratch),
        ));
    }
    let (mut copied, mut copies) = (vec![K::default(); 100], vec![V::default(); 100]);
    let _ = black_box(view.copy_range(random.below(len + 1), &mut copied, &mut copies));
    let index = view.index();
    if let Some(packed) = index.packed_keys::<K>() {
        let mut keys = Vec::new();
        let _ = black_box((packed.get(random.below(len + 1)), packed.read(0..len, &mut keys)));
    }
    if let Ok(Some(tree)) = index.harmonia::<K, V>() {
        let _ = black_box(tree.lower_bounds(&keys, &mut ranks));
        let _ = black_box((tree.get(keys[0]), tree.tuple(random.below(len + 1))));
        let _ = black_box(tree.range(keys[0], keys[1]).map(|range| range.take(50).count()));
    }
}

/// Every call on byte strings.
fn strings<V: Value>(view: &Strings<'_, V>, random: &mut Random) {
    let len = view.len();
    let keys: Vec<String> = (0..150)
        .map(|_| if random.below(2) == 0 { mix(random.below(90)).to_string() } else { "name 7".into() })
        .collect();
    for key in keys[..6].iter().map(String::as_bytes) {
        let _ = black_box((view.get(key), view.contains(key), view.rank(key), view.comparisons(key)));
        let _ = black_box((view.lower_bound(key), view.upper_bound(key), view.prefix_ranks(key)));
        let _ = black_box((view.key(random.below(len + 1)), view.select(random.below(len + 1))));
        let _ = black_box(view.get_all(key).map(|all| all.take(20).count()));
        let _ = black_box(view.prefix(&key[..1]).map(|range| range.rev().take(90).count()));
    }
    let _ = black_box((view.min(), view.max(), view.ranks(0..len).count()));
    let (mut values, mut present, mut ranks) = (vec![V::default(); 150], vec![0; 3], vec![0; 150]);
    let _ = black_box(view.get_batch(&keys, &mut values, &mut present));
    let _ = black_box(view.par_get_batch(&keys, &mut values, &mut present));
    let _ = black_box(view.contains_batch(&keys, &mut present));
    let _ = black_box(view.lower_bound_batch(&keys, &mut ranks));
}

/// Every operator over the file and itself.
fn relations(index: &Index) {
    let relation = || Relation::from_index(index);
    let options = || StreamOptions { piece_tuples: 64, ..StreamOptions::default() };
    let answers = [
        pleach_relation::set(SetOperation::Union, SetRule::Set, relation(), relation(), options()),
        pleach_relation::set(SetOperation::Intersection, SetRule::Set, relation(), relation(), options()),
        pleach_relation::join(How::Inner, relation(), relation(), options()),
        pleach_relation::asof(AsOf::Backward, None, How::Left, relation(), relation(), options()),
        pleach_relation::asof(AsOf::Nearest, None, How::Inner, relation(), relation(), options()),
        pleach_relation::band(&"1".into(), How::Inner, relation(), relation(), options()),
        pleach_relation::reduce(relation(), Reduction::Count, options()),
    ];
    for mut answer in answers.into_iter().flatten() {
        while let Ok(Some(chunk)) = answer.next_chunk() {
            black_box(chunk.len());
        }
    }
}

fn element<'a>(column: &Column<'a>, rank: u64) -> Option<std::borrow::Cow<'a, [u8]>> {
    column.get(rank).ok().flatten()
}

/// All there is to call on an index. What lasts is kept.
fn call_all<'a>(index: &'a Arc<Index>, random: &mut Random) -> Kept<'a> {
    let mut kept = Kept { columns: index.columns().ok(), ..Kept::default() };
    for column in [index.key_column(), index.value_column()].into_iter().flatten() {
        kept.elements.extend((0..8).filter_map(|_| element(&column, random.below(index.len() + 1))));
        kept.elements.extend([column.data(), column.offsets()]);
    }
    for _ in 0..8 {
        if let Ok(Some((key, value))) = index.tuple(random.below(index.len() + 1)) {
            kept.datums.extend([key, value]);
        }
    }
    kept.whole = Some(index.as_bytes());
    let _ = black_box((index.meta(), index.record(), index.describe(), index.check_mapping()));
    if index.key_type().is_bytes() {
        let view = index.strings::<()>().expect("byte strings");
        strings(&view, random);
        if let Ok(view) = index.strings::<u32>() {
            strings(&view, random);
        }
        if let Ok(view) = index.strings::<u64>() {
            strings(&view, random);
        }
        assert!(pleach::with_typed!(index, |view| view.len()).is_err(), "no numbers");
    } else {
        pleach::with_typed!(index, |view| numbers(&view, random)).expect("numbers");
    }
    maps(index, random);
    relations(index);
    kept
}

/// Every kind of owned map; errors are answers, and texts are texts.
fn maps(index: &Arc<Index>, random: &mut Random) {
    if let Ok(map) = AnyMap::from_index(Arc::clone(index)) {
        let key = map.select(random.below(map.len() + 1)).ok().flatten().map(|tuple| tuple.0.into_owned());
        if let Some(key) = key {
            let _ = black_box((map.get(&key), map.floor(&key), map.ceiling(&key)));
            let _ = black_box(map.get_many(slice::from_ref(&key)));
        }
        let _ = black_box(map.iter().take(50).filter(Result::is_ok).count());
    }
    if let Ok(map) = Map::<i64, u64>::from_index(Arc::clone(index)) {
        let keys: Vec<i64> = map.iter().take(200).flatten().map(|tuple| tuple.0).collect();
        let _ = black_box((map.get_many(&keys), map.contains_many(&keys), map.rank_many(&keys)));
    }
    let keys: Vec<Vec<u8>> = match BytesMap::<Vec<u8>>::from_index(Arc::clone(index)) {
        Ok(map) => map.iter().take(200).flatten().map(|tuple| tuple.0).collect(),
        Err(_) => Vec::new(),
    };
    if let Ok(map) = BytesMap::<String>::from_index(Arc::clone(index)) {
        for text in map.get_many(&keys).into_iter().flatten().flatten() {
            assert!(std::str::from_utf8(text.as_bytes()).is_ok(), "a text that is none");
        }
        let _ = black_box(map.iter().rev().take(50).filter(Result::is_ok).count());
    }
}

/// Overwrites and truncates a file until it is stopped, and leaves it whole.
fn attack(path: &Path, whole: &[u8], stop: &AtomicBool, mut random: Random) {
    let file = File::options().write(true).open(path).expect("opens");
    while !stop.load(Ordering::Relaxed) {
        match random.below(4) {
            0 => file.set_len(random.below(whole.len() as u64 / PAGE + 1) * PAGE).expect("cut"),
            1 => file.write_all_at(whole, 0).expect("restored"),
            _ => {
                let noise: Vec<u8> = (0..random.below(6000)).map(|_| random.next() as u8 | 0x80).collect();
                file.write_all_at(&noise, random.below(whole.len() as u64)).expect("overwritten");
                file.set_len(whole.len() as u64).expect("as long as before");
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(400)));
    }
    file.set_len(whole.len() as u64).expect("as long as before");
    file.write_all_at(whole, 0).expect("restored");
}

/// Calls everything while the file is attacked.
fn under_attack(path: &Path, whole: &[u8], random: &mut Random, duration: Duration) -> u64 {
    let (stop, mut calls) = (AtomicBool::new(false), 0);
    fs::write(path, whole).expect("writes");
    let live = Live::<Index>::open(path).ok();
    /// Also where a check fails.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        let seed = Random(random.next());
        let stop = &stop;
        scope.spawn(move || attack(path, whole, stop, seed));
        let began = Instant::now();
        while began.elapsed() < duration {
            let verify = Verify::ALL[random.below(3) as usize];
            let residence = [Residence::Mapped, Residence::Resident][usize::from(random.below(5) == 0)];
            let options = Index::options().verify(verify).residence(residence);
            let structure = Structure::ALL[random.below(Structure::ALL.len() as u64) as usize];
            // A file that is cut just now cannot be opened; nor by a structure that it does not have.
            let opened = options.structure(structure).open(path).or_else(|_| options.open(path));
            let Ok(index) = opened else { continue };
            let index = Arc::new(index);
            for _ in 0..3 {
                let kept = call_all(&index, random);
                let before = kept.look();
                std::thread::sleep(Duration::from_micros(300));
                assert!(kept.look() == before, "what was given away has changed");
                calls += 1;
            }
            let _ = black_box(live.as_ref().map(Live::refresh));
            let _ = black_box(fsck(path, &FsckOptions::default()).is_ok());
        }
        stop.store(true, Ordering::Relaxed);
    });
    calls
}

/// Texts of many pages: of a prefix that words leave out, and of values; made once.
fn long_texts() -> Vec<Vec<u8>> {
    let tuples: Vec<(String, u32)> = (0..4000).map(|i| (format!("key-{:040}-é", mix(i.into())), i)).collect();
    let options = BuildOptions { columns: true, threads: 1, ..BuildOptions::default() };
    let numbers: Vec<(i64, u64)> = (0..9000).map(|i| (mix(i).cast_signed(), i)).collect();
    vec![
        build_strings_bytes(KeyType::Utf8, &tuples, &options).expect("builds"),
        build_strings_bytes(KeyType::Bytes, &tuples, &options).expect("builds"),
        build_bytes(&numbers, &options).expect("builds"),
    ]
}

/// Does its work only in a child.
#[test]
fn child() {
    let Ok(seed) = std::env::var(SEED) else { return };
    contain_sigbus();
    let mut random = Random(seed.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.pleach");
    let each = Duration::from_millis(if is_long() { 5000 } else { 100 });
    let mut calls = 0;
    for whole in wholes().iter().chain(&long_texts()) {
        calls += under_attack(&path, whole, &mut random, each);
    }
    println!("calls: {calls}");
}

#[test]
fn every_call_survives_an_attack() {
    let mut calls = 0;
    for seed in 0..if is_long() { 20 } else { 2 } {
        let mut child = Command::new(std::env::current_exe().expect("this test"));
        let output = child.args(["--exact", "child", "--nocapture"]).env(SEED, seed.to_string()).output();
        let output = output.expect("runs");
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), None, "seed {seed}: {text}");
        assert!(output.status.success(), "seed {seed}: {text}");
        let found = text.lines().find_map(|line| line.split("calls: ").nth(1)?.parse::<u64>().ok());
        calls += found.unwrap_or_else(|| panic!("seed {seed}: {text}"));
    }
    assert!(calls > 0);
    figure(13, &format!("{calls} rounds of the whole API on mapped files that are cut and overwritten"));
}

fn write(folder: &Path, whole: &[u8]) -> PathBuf {
    let path = folder.join("t.pleach");
    fs::write(&path, whole).expect("writes");
    path
}

/// Data returned from a mapped file stays the same after every byte of the file has changed, and after none
/// is left.
#[test]
fn what_is_given_away_does_not_change() {
    contain_sigbus();
    let folder = tempfile::tempdir().expect("a folder");
    for whole in wholes().iter().chain(&long_texts()) {
        for verify in Verify::ALL {
            let path = write(folder.path(), whole);
            let index = Arc::new(Index::options().verify(verify).open(&path).expect("opens"));
            let kept = call_all(&index, &mut Random(7));
            let before = kept.look();
            let file = File::options().write(true).open(&path).expect("opens");
            file.write_all_at(&vec![0xFF; whole.len()], 0).expect("overwritten");
            assert!(kept.look() == before, "overwritten");
            // Whatever is made of it now is sound, or an error.
            drop(call_all(&index, &mut Random(8)).look());
            file.set_len(0).expect("cut");
            assert!(kept.look() == before, "cut");
            let after = call_all(&index, &mut Random(9));
            let has_columns = index.key_column().is_some() || index.value_column().is_some();
            assert!(after.columns.is_none() || !has_columns || index.is_empty());
            assert_eq!(index.check_mapping(), Err(ReadError::MappingLost));
            drop(after.look());
            // Another file under the name: the old one is not written to again.
            fs::remove_file(&path).expect("removed");
        }
    }
}

/// With [`Verify::Touched`] no array is made of a block that does not match its sum, also where the damage
/// came after the file was opened; of a mapping and of a copy in memory.
#[test]
fn columns_are_verified() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = &long_texts()[2];
    for verify in [Verify::Touched, Verify::Full] {
        for residence in [Residence::Mapped, Residence::Resident] {
            let path = write(folder.path(), whole);
            let options = Index::options().verify(verify).residence(residence);
            let index = Arc::new(options.open(&path).expect("opens"));
            let before = index.columns().expect("whole");
            let keys = index.header().keys.expect("keys").offset + 8 * 1000;
            let mut damaged = whole.clone();
            damaged[keys as usize] ^= 1;
            match residence {
                Residence::Mapped => {
                    fs::write(&path, &damaged).expect("writes");
                    assert!(matches!(index.columns(), Err(ReadError::Format(_))), "{verify}");
                }
                Residence::Resident => {
                    fs::write(&path, &damaged).expect("writes");
                    assert_eq!(index.columns().expect("a copy").keys, before.keys);
                    if verify == Verify::Touched {
                        let index = Arc::new(options.open(&path).expect("opens"));
                        assert!(matches!(index.columns(), Err(ReadError::Format(_))));
                    }
                }
            }
        }
    }
}

/// No tuple that is not in the file comes out of a scan, an iterator or a copy, though the file is cut in
/// the middle.
#[test]
fn no_tuple_is_invented() {
    contain_sigbus();
    let folder = tempfile::tempdir().expect("a folder");
    let tuples: Vec<(u64, u64)> = (0..60_000).map(|i| (i * 5 + 3, mix(i))).collect();
    let layout = "lines,spine,grid,packed,fast:auto:dp=6,harmonia,btree".parse().expect("a layout");
    let options = BuildOptions::default().with_layout(layout);
    let whole = build_bytes(&tuples, &options).expect("builds");
    let cut = |path: &Path| File::options().write(true).open(path).expect("opens").set_len(0).expect("cut");
    for at in [1u64, 1000, 20_001] {
        let path = write(folder.path(), &whole);
        let index = Index::open(&path).expect("opens");
        let view = index.typed::<u64, u64>().expect("types");
        let mut seen = Vec::new();
        let scanned = view.scan(0..view.len(), |keys, values| {
            seen.extend(keys.iter().copied().zip(values.iter().copied()));
            if seen.len() as u64 >= at && index.check_mapping().is_ok() {
                cut(&path);
            }
        });
        assert_eq!(scanned, Err(ReadError::MappingLost), "{at}");
        assert!(seen.len() < tuples.len() && seen[..] == tuples[..seen.len()], "{at}: invented tuples");

        let path = write(folder.path(), &whole);
        let index = Index::open(&path).expect("opens");
        let view = index.typed::<u64, u64>().expect("types");
        let mut seen = Vec::new();
        for tuple in view.range(..).expect("a range") {
            match tuple {
                Ok(tuple) => seen.push(tuple),
                Err(error) => {
                    assert_eq!(error, ReadError::MappingLost);
                    break;
                }
            }
            if seen.len() as u64 == at {
                cut(&path);
            }
        }
        assert!(seen.len() < tuples.len() && seen[..] == tuples[..seen.len()], "{at}: invented tuples");
        let mut keys = vec![17];
        let packed = index.packed_keys::<u64>().expect("packed");
        assert_eq!(packed.read(0..view.len(), &mut keys), Err(ReadError::MappingLost));
        assert_eq!(keys, [17], "invented keys");
    }
}

/// A file that is cut is lost, and not damaged, also where blocks are verified at their first use.
#[test]
fn a_cut_is_no_damage() {
    contain_sigbus();
    let folder = tempfile::tempdir().expect("a folder");
    for whole in [&long_texts()[0], &long_texts()[2]] {
        let path = write(folder.path(), whole);
        let index = Arc::new(Index::options().verify(Verify::Touched).open(&path).expect("opens"));
        File::options().write(true).open(&path).expect("opens").set_len(0).expect("cut");
        assert_eq!(index.columns().map(drop), Err(ReadError::MappingLost));
        assert_eq!(index.tuple(3).map(drop), Err(ReadError::MappingLost));
        if index.key_type().is_bytes() {
            assert_eq!(index.strings::<u32>().expect("types").get(b"key"), Err(ReadError::MappingLost));
        } else {
            assert_eq!(index.typed::<i64, u64>().expect("types").get(7), Err(ReadError::MappingLost));
        }
        let relation = Relation::from_index(&index);
        let answer = pleach_relation::reduce(relation, Reduction::Count, StreamOptions::default());
        let error = answer.and_then(|mut answer| answer.next_chunk().map(drop)).expect_err("cut");
        assert!(error.to_string().contains("truncated"), "{error}");
    }
}
