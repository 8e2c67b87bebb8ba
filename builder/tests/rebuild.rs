//! Rebuilds against an oracle: the new generation is, byte for byte, the file that its tuples would give.

use pleach_builder::rebuild::{
    Applied, CompactOptions, Method, RebuildOptions, Rebuilt, compact, kept_path, rebuild_with_storage,
};
use pleach_builder::storage::{MemoryStorage, Storage};
use pleach_builder::{
    BuildError, BuildOptions, Chunk, ChunkSource, Column, Harmonia, Op, Schema, Silent, Unique,
    build_with_storage,
};
use pleach_format::section::Tag;
use pleach_format::{Header, Key, KeyType, Value, ValueType, Word};
use std::path::Path;

const TARGET: &str = "/base.pleach";

/// A small generator of numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

type Bytes = Vec<u8>;
/// Key and value as the builder's columns hold them: words as 16 bytes, big-endian; or strings.
type Row = (Bytes, Bytes);

#[derive(Clone, Copy)]
struct Types {
    key: KeyType,
    value: ValueType,
}

impl Types {
    fn schema(self) -> Schema {
        Schema { key_name: "k".into(), value_name: "v".into(), ..Schema::plain(self.key, self.value, None) }
    }

    fn push(self, chunk: &mut Chunk, (key, value): &Row) {
        let put = |column: &mut Column, bytes: &Bytes| {
            let word = || bytes.iter().fold(0u128, |word, &byte| word << 8 | u128::from(byte));
            match column {
                Column::None => {}
                Column::U32(words) => words.push(word() as u32),
                Column::U64(words) => words.push(word() as u64),
                Column::U128(words) => words.push(word()),
                Column::Bytes(strings) => strings.push(bytes),
            }
        };
        put(&mut chunk.keys, key);
        put(&mut chunk.values, value);
    }

    fn source(self, rows: &[Row]) -> ChunkSource<std::vec::IntoIter<Chunk>> {
        let chunks: Vec<Chunk> = rows
            .chunks(1000)
            .map(|rows| {
                let mut chunk = Chunk::new(self.key, self.value);
                rows.iter().for_each(|row| self.push(&mut chunk, row));
                chunk
            })
            .collect();
        ChunkSource::new(self.schema(), chunks)
    }

    fn changes(self, changes: &[(Op, Row)]) -> ChunkSource<std::vec::IntoIter<Chunk>> {
        let chunks: Vec<Chunk> = changes
            .chunks(777)
            .map(|changes| {
                let mut chunk = Chunk::new(self.key, self.value);
                for (op, row) in changes {
                    self.push(&mut chunk, row);
                    chunk.ops.push(*op);
                }
                chunk
            })
            .collect();
        ChunkSource::new(self.schema(), chunks)
    }

    fn key(self, number: u64) -> Bytes {
        match self.key {
            KeyType::Utf8 => format!("https://example.org/{}/{:05}", number % 7, number).into_bytes(),
            // Long and unlike each other, so that words are not whole keys.
            KeyType::Bytes => {
                (0..(number % 90 + 1)).flat_map(|i| (number * 77 + i * i).to_le_bytes()).collect()
            }
            KeyType::Fixed(bytes) => {
                (0..bytes).map(|i| (number.rotate_left(u32::from(i) * 9) & 0xFF) as u8).collect()
            }
            key => {
                let word = number.wrapping_mul(3).to_be_bytes();
                word[8 - key.bytes().min(8)..].to_vec()
            }
        }
    }

    fn value(self, number: u64) -> Bytes {
        match self.value {
            ValueType::None => Vec::new(),
            ValueType::Bytes | ValueType::Utf8 => format!("value {}", number % 1000).into_bytes(),
            ValueType::Fixed(bytes) => vec![number as u8; usize::from(bytes)],
            value => number.to_be_bytes()[8 - value.bytes()..].to_vec(),
        }
    }
}

fn build(types: Types, rows: &[Row], options: &BuildOptions) -> Vec<u8> {
    let storage = MemoryStorage::default();
    build_with_storage(&mut types.source(rows), Path::new(TARGET), options, &Silent, &storage)
        .expect("a build");
    storage.take(Path::new(TARGET)).expect("a file")
}

/// Builds a file from `rows` over `base`: its next generation.
fn build_over(types: Types, base: &[u8], rows: &[Row], options: &BuildOptions) -> Vec<u8> {
    let storage = MemoryStorage::default();
    storage.put(Path::new(TARGET), base.to_vec());
    build_with_storage(&mut types.source(rows), Path::new(TARGET), options, &Silent, &storage)
        .expect("a build");
    let bytes = storage.take(Path::new(TARGET)).expect("a file");
    let (block, old) = (header(&bytes).superblock, header(base).superblock);
    assert_eq!((block.generation.get(), block.lineage), (old.generation.get() + 1, old.first_id()));
    bytes
}

fn rebuild(
    types: Types,
    storage: &MemoryStorage,
    changes: &[(Op, Row)],
    options: &RebuildOptions,
) -> Result<Rebuilt, BuildError> {
    let source = types.changes(changes);
    let open = Box::new(move |_: &Schema| Ok(Box::new(source) as Box<dyn pleach_builder::Source>));
    rebuild_with_storage(Path::new(TARGET), open, options, &Silent, storage)
}

/// Applies the batch to sorted rows; returns the result and the counts.
fn oracle(rows: &[Row], changes: &[(Op, Row)]) -> (Vec<Row>, Applied) {
    let mut tuples: std::collections::BTreeMap<Bytes, Vec<(Bytes, bool)>> = Default::default();
    for (key, value) in rows {
        tuples.entry(key.clone()).or_default().push((value.clone(), false));
    }
    let mut applied = Applied::default();
    for (op, (key, value)) in changes {
        let here = tuples.entry(key.clone()).or_default();
        match op {
            Op::Put => applied.puts += 1,
            Op::Add => applied.adds += 1,
            Op::Del => applied.dels += 1,
        }
        if *op == Op::Del && here.is_empty() {
            applied.absent += 1;
        }
        if *op != Op::Add {
            for (_, ours) in here.drain(..) {
                if ours { applied.superseded += 1 } else { applied.removed += 1 }
            }
        }
        if *op != Op::Del {
            here.push((value.clone(), true));
        }
    }
    let after: Vec<(Row, bool)> = tuples
        .into_iter()
        .flat_map(|(key, values)| values.into_iter().map(move |(value, ours)| ((key.clone(), value), ours)))
        .collect();
    applied.written = after.iter().filter(|(_, ours)| *ours).count() as u64;
    (after.into_iter().map(|(row, _)| row).collect(), applied)
}

fn check(types: Types, base: &[Row], changes: &[(Op, Row)], options: &BuildOptions) {
    let storage = MemoryStorage::default();
    let before = build(types, base, options);
    storage.put(Path::new(TARGET), before.clone());
    let done = rebuild(types, &storage, changes, &RebuildOptions::default()).expect("a rebuild");
    let mut sorted = base.to_vec();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    let (rows, applied) = oracle(&sorted, changes);
    assert_eq!(done.applied, applied, "{} {}", types.key, types.value);
    assert_eq!((done.base_tuples, done.summary.tuples), (base.len() as u64, rows.len() as u64));
    let found = storage.take(Path::new(TARGET)).expect("the next generation");
    let wanted = build_over(types, &before, &rows, options);
    let at = found.iter().zip(&wanted).position(|(one, other)| one != other);
    let sections = |bytes: &[u8]| {
        let list = header(bytes).sections;
        list.iter().map(|section| (section.entry.tag, section.offset(), section.end)).collect::<Vec<_>>()
    };
    let changes = changes.len();
    assert!(
        found == wanted,
        "{} to {}, {} rows, {changes} changes: {at:?}: {:?} {:?}",
        types.key,
        types.value,
        base.len(),
        sections(&found),
        sections(&wanted)
    );
}

fn random_rows(types: Types, count: u64, span: u64, random: &mut Random) -> Vec<Row> {
    let mut rows: Vec<Row> = (0..count)
        .map(|_| {
            let number = random.below(span);
            (types.key(number), types.value(random.next()))
        })
        .collect();
    if types.key == KeyType::U64 && count > 3 {
        rows[1].0 = vec![0xFF; 8];
        rows[2].0 = vec![0xFF; 8];
        rows[3].0 = vec![0; 8];
    }
    rows
}

fn random_changes(types: Types, count: u64, span: u64, random: &mut Random) -> Vec<(Op, Row)> {
    (0..count)
        .map(|_| {
            let op = Op::ALL[random.below(3) as usize];
            let number = if random.below(9) == 0 { span + random.below(50) } else { random.below(span) };
            let mut key = types.key(number);
            if types.key == KeyType::U64 && random.below(40) == 0 {
                key = vec![if random.below(2) == 0 { 0 } else { 0xFF }; 8];
            }
            (op, (key, types.value(random.next())))
        })
        .collect()
}

#[test]
fn the_next_generation_is_the_file_of_its_tuples() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let every = BuildOptions {
        columns: true,
        harmonia: Some(Harmonia { fanout: 8, fill_percent: 69 }),
        ..BuildOptions::default()
    };
    let numbers = [
        (KeyType::U64, ValueType::U64),
        (KeyType::U32, ValueType::U32),
        (KeyType::U32, ValueType::None),
        (KeyType::U64, ValueType::F32),
        (KeyType::U128, ValueType::U64),
    ];
    for (key, value) in numbers {
        let types = Types { key, value };
        for (count, span) in
            [(0u64, 10u64), (1, 1), (9, 4), (70, 30), (3000, 5000), (70_000, 60_000), (70_000, 3)]
        {
            let base = random_rows(types, count, span, &mut random);
            for changes in [0, 1, 40, count / 5] {
                if count > 3000 && changes < 40 && key != KeyType::U64 {
                    continue;
                }
                let changes = random_changes(types, changes, span, &mut random);
                let packed = BuildOptions { packed: key != KeyType::U128, ..every.clone() };
                let options = if count == 3000 { &packed } else { &BuildOptions::default() };
                check(types, &base, &changes, options);
            }
        }
    }
}

#[test]
fn byte_strings_are_merged_as_well() {
    let mut random = Random(77);
    for (key, value) in [
        (KeyType::Utf8, ValueType::U32),
        (KeyType::Utf8, ValueType::Utf8),
        (KeyType::Bytes, ValueType::None),
        (KeyType::Bytes, ValueType::Fixed(5)),
        (KeyType::Fixed(11), ValueType::U64),
        (KeyType::U64, ValueType::Bytes),
        (KeyType::I32, ValueType::Utf8),
    ] {
        let types = Types { key, value };
        for (count, span) in [(0u64, 10u64), (1, 1), (60, 30), (9000, 4000)] {
            let base = random_rows(types, count, span, &mut random);
            for changes in [0, 30, count / 4] {
                let changes = random_changes(types, changes, span, &mut random);
                check(types, &base, &changes, &BuildOptions::default());
            }
        }
    }
}

/// Unique rows, and puts of some of their keys.
fn unique(types: Types, count: u64, step: usize) -> (Vec<Row>, Vec<(Op, Row)>) {
    let rows: Vec<Row> = (0..count).map(|i| (types.key(i), types.value(i))).collect();
    let puts = rows
        .iter()
        .step_by(step)
        .map(|(key, value)| (Op::Put, (key.clone(), value.iter().map(|byte| byte ^ 0x55).collect())));
    let puts = puts.collect();
    (rows, puts)
}

#[test]
fn patches_are_what_merges_are() {
    for (key, value) in
        [(KeyType::U64, ValueType::U64), (KeyType::U64, ValueType::U32), (KeyType::I32, ValueType::F64)]
    {
        let types = Types { key, value };
        for (count, step) in [(1u64, 1usize), (50, 7), (4000, 1), (90_000, 1000), (90_000, 3)] {
            let (rows, puts) = unique(types, count, step);
            let options = BuildOptions {
                columns: count == 4000,
                harmonia: (count == 4000).then_some(Harmonia::default()),
                unique: (count == 50).then_some(Unique::Error),
                ..BuildOptions::default()
            };
            let bytes = build(types, &rows, &options);
            let mut made = Vec::new();
            for method in Method::ALL {
                let storage = MemoryStorage::default();
                storage.put(Path::new(TARGET), bytes.clone());
                let options = RebuildOptions { method, ..RebuildOptions::default() };
                let done = rebuild(types, &storage, &puts, &options).expect("a rebuild");
                let few = puts.len() as u64 <= count / 2;
                let merges = method == Method::Merge || (method == Method::Auto && !few);
                assert_eq!(done.method, if merges { Method::Merge } else { Method::Patch });
                assert_eq!(
                    (done.applied.removed, done.applied.written),
                    (puts.len() as u64, puts.len() as u64)
                );
                made.push(storage.take(Path::new(TARGET)).expect("a file"));
            }
            assert!(made.iter().all(|bytes| *bytes == made[0]), "{key} {value} {count} {step}");
            let (after, _) = oracle(&rows, &puts);
            assert!(made[0] == build_over(types, &bytes, &after, &options));
        }
    }
}

#[test]
fn a_patch_that_cannot_be_is_a_merge_or_refused() {
    let types = Types { key: KeyType::U64, value: ValueType::U64 };
    let (mut rows, mut puts) = unique(types, 50_000, 10);
    let attempt = |rows: &[Row], puts: &[(Op, Row)]| {
        let storage = MemoryStorage::default();
        let before = build(types, rows, &BuildOptions::default());
        storage.put(Path::new(TARGET), before.clone());
        let patch = RebuildOptions { method: Method::Patch, ..RebuildOptions::default() };
        assert!(
            rebuild(types, &storage, puts, &patch).unwrap_err().to_string().contains("cannot be patched")
        );
        let done = rebuild(types, &storage, puts, &RebuildOptions::default()).expect("a rebuild");
        assert_eq!(done.method, Method::Merge);
        let (after, _) = oracle(rows, puts);
        let wanted = build_over(types, &before, &after, &BuildOptions::default());
        assert!(storage.take(Path::new(TARGET)).unwrap() == wanted);
    };
    // A missing key; one before all, one after all.
    for number in [7, 0, u64::MAX] {
        let mut puts = puts.clone();
        puts.push((
            Op::Put,
            (u64::wrapping_mul(number, 3).wrapping_add(1).to_be_bytes().to_vec(), types.value(1)),
        ));
        attempt(&rows, &puts);
    }
    puts.push((Op::Add, puts[0].1.clone()));
    attempt(&rows, &puts);
    puts.pop();
    // A key that occurs twice.
    rows.insert(20_000, rows[20_000].clone());
    attempt(&rows, &puts);
}

fn header(bytes: &[u8]) -> Header {
    Header::parse(&bytes[..8192], bytes.len() as u64).expect("a header")
}

#[test]
fn damage_is_refused_or_salvaged_and_never_carried_on() {
    let types = Types { key: KeyType::U64, value: ValueType::U64 };
    let (rows, _) = unique(types, 100_000, 1);
    let sound = build(types, &rows, &BuildOptions::default());
    let place = header(&sound);
    let lines = place.lines_offset as usize;
    let block = 17;
    let mut bytes = sound.clone();
    bytes[lines + block * 8192 + 100] ^= 4;
    let storage = MemoryStorage::default();
    storage.put(Path::new(TARGET), bytes.clone());
    let lost_tuples = 128 * place.geometry.tuples_per_line();
    let lost = 17 * lost_tuples..18 * lost_tuples;
    let far = vec![(Op::Put, rows[90_000].clone()), (Op::Add, rows[5].clone())];
    let error = rebuild(types, &storage, &far, &RebuildOptions::default()).unwrap_err();
    assert!(matches!(error, BuildError::Damaged { .. }), "{error}");
    let touched = vec![(Op::Put, rows[17 * lost_tuples + 3].clone())];
    let error = rebuild(types, &storage, &touched, &RebuildOptions::default()).unwrap_err();
    assert!(matches!(error, BuildError::Damaged { .. }), "{error}");
    assert!(storage.open(Path::new(TARGET)).is_ok());
    // Salvaged: all but the tuples of that block.
    let salvage = RebuildOptions { salvage: true, ..RebuildOptions::default() };
    let done = rebuild(types, &storage, &far, &salvage).expect("what is left");
    assert_eq!((done.lost, done.summary.tuples), (lost_tuples as u64, 100_000 - lost_tuples as u64 + 1));
    let mut left = rows.clone();
    left.drain(lost);
    let (after, _) = oracle(&left, &far);
    let wanted = build_over(types, &sound, &after, &BuildOptions::default());
    assert!(storage.take(Path::new(TARGET)).unwrap() == wanted);
    // Nor does a patch of another block carry it on, by any method.
    for method in Method::ALL {
        storage.put(Path::new(TARGET), bytes.clone());
        let options = RebuildOptions { method, ..RebuildOptions::default() };
        let error = rebuild(types, &storage, &far[..1], &options).unwrap_err();
        assert!(matches!(error, BuildError::Damaged { .. }), "{error}");
        assert!(storage.take(Path::new(TARGET)).unwrap() == bytes);
    }
    // Parts that are built again and not copied may be damaged: the spine, and the sums of sums.
    let head = header(&sound);
    for tag in [Tag::SPINE, Tag::GRID, Tag::META] {
        let section = head.section(tag).expect("a section");
        let mut bytes = sound.clone();
        bytes[section.offset() as usize + 1] ^= 4;
        for method in Method::ALL {
            storage.put(Path::new(TARGET), bytes.clone());
            let options = RebuildOptions { method, ..RebuildOptions::default() };
            match rebuild(types, &storage, &far[..1], &options) {
                Err(error) => {
                    assert!(matches!(error, BuildError::Damaged { .. }), "{error}");
                    assert!(method == Method::Patch || tag == Tag::META, "{method:?} {tag}");
                }
                Ok(done) => assert!(done.method == Method::Merge && tag != Tag::META, "{tag}"),
            }
            check_sums(&storage.take(Path::new(TARGET)).unwrap(), &bytes);
        }
    }
}

/// A file is either `old`, or whole.
fn check_sums(bytes: &[u8], old: &[u8]) {
    if bytes == old {
        return;
    }
    let head = header(bytes);
    for section in head.sections.iter().filter(|section| section.entry.sums.get() > 0) {
        let sums = section.entry.sums_offset.get() as usize;
        for block in 0..section.entry.sums.get() {
            let start = section.offset() as usize + block as usize * 8192;
            let end = (start + 8192).min(section.end as usize);
            let found = head.bound_sum(section.entry.tag, block, &bytes[start..end]);
            assert_eq!(found.to_le_bytes(), bytes[sums + block as usize * 4..][..4], "{block}");
        }
    }
}

#[test]
fn unique_files_stay_unique_and_types_are_checked() {
    let types = Types { key: KeyType::U64, value: ValueType::U64 };
    let (rows, _) = unique(types, 100, 1);
    let options = BuildOptions { unique: Some(Unique::Error), ..BuildOptions::default() };
    let storage = MemoryStorage::default();
    let sound = build(types, &rows, &options);
    storage.put(Path::new(TARGET), sound.clone());
    let refused = |changes: &[(Op, Row)]| {
        rebuild(types, &storage, changes, &RebuildOptions::default()).unwrap_err().to_string()
    };
    let text = refused(&[(Op::Add, rows[3].clone())]);
    assert!(text.contains("9 would occur twice"), "{text}");
    let fresh = (u64::encode(1).to_u128() as u64).to_be_bytes().to_vec();
    let twice = [(Op::Add, (fresh.clone(), types.value(1))), (Op::Add, (fresh, types.value(1)))];
    assert!(refused(&twice).contains("1 would occur twice"));
    let other = Types { key: KeyType::U32, value: ValueType::U64 };
    let source = other.changes(&[]);
    let open = Box::new(move |_: &Schema| Ok(Box::new(source) as Box<dyn pleach_builder::Source>));
    let path = Path::new(TARGET);
    let error = rebuild_with_storage(path, open, &RebuildOptions::default(), &Silent, &storage).unwrap_err();
    assert!(error.to_string().contains("u32 to u64, but the file holds u64 to u64"), "{error}");
    assert!(storage.take(path).unwrap() == sound, "the old generation is as it was");
    let _ = <u64 as Value>::TYPE;
}

#[test]
fn words_of_no_float_are_refused() {
    let types = Types { key: KeyType::F64, value: ValueType::U32 };
    let row = |word: u64| (word.to_be_bytes().to_vec(), types.value(1));
    let rows: Vec<Row> = [f64::NEG_INFINITY, -0.0, 1e-320, f64::MAX].map(|key| row(key.encode())).to_vec();
    let storage = MemoryStorage::default();
    let sound = build(types, &rows, &BuildOptions::default());
    // -0.0 without its being 0.0, and NaN of both signs.
    for (word, number) in
        [((1 << 63) - 1, -0.0), (f64::NAN.encode(), f64::NAN), ((-f64::NAN).encode(), f64::NAN)]
    {
        assert_eq!(f64::decode(word).to_bits() << 1, number.to_bits() << 1);
        let mut with = rows.clone();
        with.insert(2, row(word));
        let (target, options) = (Path::new("/new.pleach"), BuildOptions::default());
        let error = build_with_storage(&mut types.source(&with), target, &options, &Silent, &storage);
        let error = error.expect_err("no key").to_string();
        assert!(error.starts_with("input: row 2: NaN, or -0.0"), "{error}");
        for op in [Op::Put, Op::Add, Op::Del] {
            storage.put(Path::new(TARGET), sound.clone());
            let error = rebuild(types, &storage, &[(op, row(word))], &RebuildOptions::default());
            assert!(error.expect_err("no key").to_string().starts_with("input: row 0: NaN"));
            assert!(storage.take(Path::new(TARGET)).expect("as it was") == sound);
        }
    }
}

#[test]
fn the_last_generation_has_no_next_one() {
    let types = Types { key: KeyType::U64, value: ValueType::U64 };
    let (rows, _) = unique(types, 100, 1);
    let last = build(types, &rows, &BuildOptions { generation: u64::MAX, ..BuildOptions::default() });
    let storage = MemoryStorage::default();
    storage.put(Path::new(TARGET), last.clone());
    for method in [Method::Merge, Method::Patch] {
        let options = RebuildOptions { method, ..RebuildOptions::default() };
        let error = rebuild(types, &storage, &[(Op::Put, rows[7].clone())], &options).unwrap_err();
        assert!(matches!(error, BuildError::LastGeneration { .. }), "{error}");
    }
    assert!(storage.take(Path::new(TARGET)).expect("as it was") == last);
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::write(&from, last).expect("written");
    let done = compact(&[from], &to, &CompactOptions::default(), &Silent).expect("begins anew");
    assert_eq!((done.summary.generation, done.summary.tuples), (1, 100));
}

#[test]
fn a_merge_asked_for_one_thing_takes_the_other_of_the_first_file() {
    let types = Types { key: KeyType::U64, value: ValueType::U64 };
    let (rows, _) = unique(types, 100, 1);
    let layout = "lines,spine,columns".parse().expect("a layout");
    let first = build(types, &rows, &BuildOptions::default().with_layout(layout));
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::write(&from, first).expect("written");
    let columns = |options: &CompactOptions| {
        compact(std::slice::from_ref(&from), &to, options, &Silent).expect("merges");
        let head = header(&std::fs::read(&to).expect("there"));
        (head.is_unique(), head.keys.is_some())
    };
    let options = CompactOptions::default();
    assert_eq!(columns(&options), (false, true));
    assert_eq!(columns(&CompactOptions { unique: Some(Unique::Error), ..options.clone() }), (true, true));
    let lines = "lines,spine".parse().ok();
    assert_eq!(columns(&CompactOptions { layout: lines, ..options }), (false, false));
}

#[test]
fn kept_generations() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("a.pleach");
    pleach_builder::build_slice(&[(1u64, 0u64)], &target, &BuildOptions::default()).expect("a build");
    let types = Types { key: KeyType::U64, value: ValueType::U64 };
    let rebuild = |generation: u64, keep: usize| {
        let source = types.changes(&[(Op::Put, (1u64.to_be_bytes().to_vec(), types.value(generation)))]);
        let open = Box::new(move |_: &Schema| Ok(Box::new(source) as Box<dyn pleach_builder::Source>));
        let options = RebuildOptions { keep: Some(keep), ..RebuildOptions::default() };
        pleach_builder::rebuild::rebuild(&target, open, &options, &Silent).expect("a rebuild")
    };
    let names = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    for generation in 2..=6u64 {
        let done = rebuild(generation, 2);
        assert_eq!(
            (done.summary.generation, done.kept),
            (generation, Some((generation as usize - 1).min(2)))
        );
    }
    assert_eq!(names(), ["a.pleach", "a.pleach.g4", "a.pleach.g5"]);
    let kept = std::fs::read(kept_path(&target, 4)).unwrap();
    assert_eq!(header(&kept).superblock.generation.get(), 4);

    // Built anew, it is the next generation all the same; only what is asked to be kept is.
    let done = pleach_builder::build_slice(&[(1u64, 0u64)], &target, &BuildOptions::default());
    assert_eq!(done.expect("a build").generation, 7);
    let done = rebuild(8, 2);
    assert_eq!((done.summary.generation, done.kept), (8, Some(2)));
    assert_eq!(names(), ["a.pleach", "a.pleach.g5", "a.pleach.g7"]);
    let options = BuildOptions { keep: Some(1), ..BuildOptions::default() };
    let done = pleach_builder::build_slice(&[(1u32, ())], &target, &options).expect("of other types");
    assert_eq!((done.generation, done.kept, done.left), (9, Some(1), None));
    assert_eq!(names(), ["a.pleach", "a.pleach.g8"]);
}
