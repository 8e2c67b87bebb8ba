//! Remote files: equal answers to those of the same bytes here, few requests, one error for what goes wrong.

use pleach::build::Overlap;
use pleach::{
    AnyMap, Builder, BytesMap, Datum, ErrorKind, FETCH_BYTES, FETCH_RANGE_BYTES, Fetch, FormatError, Header,
    Index, Key, KeyType, Map, Near, OpenError, ReadError, Strings, Structure, Tuples, Value, ValueType,
    Verify, index_part,
};
use pleach_builder::{BuildOptions, build_bytes, build_strings_bytes};
use pleach_format::Word;
use pleach_format::checksum::SUM_BLOCK_BYTES;
use pleach_format::section::Tag;
use pleach_format::view::HEAD_BYTES;
use pleach_tests::generate::{Random, mix};
use pleach_tests::whole::wholes;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const BLOCK: u64 = SUM_BLOCK_BYTES as u64;

/// A file in memory that is served as a remote one, with faults.
#[derive(Debug, Default)]
struct Source {
    bytes: Vec<u8>,
    /// Ranges of each call.
    calls: Mutex<Vec<Vec<Range<u64>>>>,
    fails: AtomicBool,
    /// Each range lacks its last byte.
    is_short: AtomicBool,
    /// The last range of a call is left out.
    leaves_out: AtomicBool,
    /// A byte in which a bit is flipped.
    flipped: Mutex<Option<u64>>,
}

impl Fetch for Source {
    fn fetch(&self, ranges: &[Range<u64>], take: &mut dyn FnMut(usize, &[u8])) -> io::Result<()> {
        self.calls.lock().expect("whole").push(ranges.to_vec());
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{ranges:?}");
        assert!(ranges.iter().map(|range| range.end - range.start).sum::<u64>() <= FETCH_BYTES);
        let flipped = *self.flipped.lock().expect("whole");
        let served = if self.leaves_out.load(Ordering::Relaxed) { ranges.len() - 1 } else { ranges.len() };
        // In another order than was asked for.
        for (number, range) in ranges.iter().enumerate().take(served).rev() {
            assert!(range.start < range.end && range.end - range.start <= FETCH_RANGE_BYTES);
            let mut bytes = self.bytes[range.start as usize..range.end as usize].to_vec();
            if let Some(at) = flipped.filter(|at| range.contains(at)) {
                bytes[(at - range.start) as usize] ^= 1;
            }
            if self.is_short.load(Ordering::Relaxed) {
                bytes.pop();
            }
            if self.fails.load(Ordering::Relaxed) {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the store is asleep"));
            }
            take(number, &bytes);
        }
        Ok(())
    }
}

impl Source {
    fn new(bytes: &[u8]) -> Arc<Self> {
        Arc::new(Self { bytes: bytes.to_vec(), ..Self::default() })
    }

    fn open_by(self: &Arc<Self>, structure: Structure) -> Result<Index, OpenError> {
        let options = Index::options().structure(structure);
        options.open_remote("mem://bucket/t.pleach", Arc::clone(self) as _, self.bytes.len() as u64)
    }

    fn open(self: &Arc<Self>) -> Index {
        self.open_by(Structure::Auto).expect("opens")
    }

    /// Returns the ranges of the calls since the last time.
    fn calls(&self) -> Vec<Vec<Range<u64>>> {
        std::mem::take(&mut self.calls.lock().expect("whole"))
    }

    /// Returns how many calls, ranges and bytes there were since the last time.
    fn counts(&self) -> (usize, usize, u64) {
        let calls = self.calls();
        let ranges: Vec<_> = calls.iter().flatten().collect();
        (calls.len(), ranges.len(), ranges.iter().map(|range| range.end - range.start).sum())
    }
}

fn local(bytes: &[u8], structure: Structure) -> Index {
    Index::options().structure(structure).verify(Verify::Touched).from_bytes(bytes.to_vec()).expect("opens")
}

/// Answers to many questions, as texts.
struct Answers(Vec<String>);

impl Answers {
    fn add(&mut self, what: &str, answer: impl Debug) {
        self.0.push(format!("{what}: {answer:?}"));
    }
}

fn of_numbers<K: Key, V: Value + Debug>(index: &Index, answers: &mut Answers, random: &mut Random) {
    let view = index.typed::<K, V>().expect("types of the file");
    let len = index.len();
    let mut keys: Vec<K> =
        [0, 1, u64::MAX, random.next()].map(|word| K::decode(K::Word::from_u64(word))).to_vec();
    for _ in 0..40 {
        if let Some((key, _)) = view.select(random.below(len + 1)).expect("whole") {
            let above = key.encode().successor().unwrap_or_default();
            keys.extend([key, K::decode(above)]);
        }
    }
    for &key in &keys {
        answers.add("get", view.get(key));
        answers.add("contains", view.contains(key));
        answers.add("rank", view.rank(key));
        answers.add("bounds", (view.lower_bound(key), view.upper_bound(key)));
        answers.add("all", view.get_all(key).map(Iterator::collect::<Vec<_>>));
        answers.add("range", view.range(key..).map(|range| range.take(300).collect::<Vec<_>>()));
        answers.add("back", view.range(..key).map(|range| range.rev().take(300).collect::<Vec<_>>()));
        answers.add("select", view.select(random.below(len + 2)));
    }
    answers.add("ends", (view.min(), view.max()));
    answers.add("tuples", view.ranks(0..len).collect::<Vec<_>>());
    let (mut values, mut present) = (vec![V::default(); keys.len()], vec![0; keys.len().div_ceil(64)]);
    let mut ranks = vec![0; keys.len()];
    answers.add("get_batch", (view.get_batch(&keys, &mut values, &mut present), &values, &present));
    answers.add("par_get_batch", (view.par_get_batch(&keys, &mut values, &mut present), &values, &present));
    answers.add("contains_batch", (view.contains_batch(&keys, &mut present), &present));
    answers.add("rank_batch", (view.rank_batch(&keys, &mut ranks, &mut present), &ranks, &present));
    answers.add("lower_bound_batch", (view.lower_bound_batch(&keys, &mut ranks), &ranks));
    for near in [Near::Floor, Near::Ceiling, Near::Nearest] {
        let to =
            Tuples { ranks: &mut ranks, values: &mut values, present: &mut present, ..Tuples::default() };
        answers.add("near_batch", view.near_batch(near, &keys, to));
        answers.add("near", (&ranks, &values, &present));
    }
    answers.add("interval_batch", (view.interval_batch(&keys, &mut values, &mut present), &values, &present));
    let (mut some, mut theirs) = (vec![K::default(); 100], vec![V::default(); 100]);
    answers.add("copy", (view.copy_range(random.below(len + 1), &mut some, &mut theirs), &some, &theirs));
    let mut scanned = Vec::new();
    answers.add(
        "scan",
        view.scan(0..len, |keys, values| scanned.extend(keys.iter().map(|key| (*key, values.len())))),
    );
    answers.add("scanned", &scanned);
    if let Some(packed) = index.packed_keys::<K>() {
        let mut read = Vec::new();
        answers.add("packed", (packed.get(len / 2), packed.read(3..len, &mut read)));
        answers.add("read", &read);
    }
    if let Some(tree) = index.harmonia::<K, V>().expect("whole") {
        answers.add("harmonia", (tree.lower_bounds(&keys, &mut ranks), &ranks, tree.get(keys[0])));
    }
}

fn of_strings<V: Value + Debug>(view: &Strings<'_, V>, answers: &mut Answers, random: &mut Random) {
    let len = view.len();
    let mut keys = vec![b"a".to_vec(), Vec::new(), vec![0xFF; 12]];
    for _ in 0..40 {
        if let Some(key) = view.key(random.below(len + 1)).expect("whole") {
            let mut other = key.clone();
            other.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
            keys.extend([key, other]);
        }
    }
    if let KeyType::Fixed(bytes) = view.index().key_type() {
        keys.iter_mut().for_each(|key| key.resize(bytes.into(), b'0'));
    }
    for key in &keys {
        answers.add("get", view.get(key));
        answers.add("contains", view.contains(key));
        answers.add("rank", view.rank(key));
        answers.add("bounds", (view.lower_bound(key), view.upper_bound(key)));
        answers.add("all", view.get_all(key).map(Iterator::collect::<Vec<_>>));
        answers.add(
            "prefix",
            view.prefix(&key[..key.len() / 2]).map(|range| range.take(300).collect::<Vec<_>>()),
        );
        answers.add("select", view.select(random.below(len + 2)));
    }
    answers.add("tuples", view.ranks(0..len).collect::<Vec<_>>());
    answers.add("back", view.ranks(0..len).rev().collect::<Vec<_>>());
    let (mut values, mut present) = (vec![V::default(); keys.len()], vec![0; keys.len().div_ceil(64)]);
    let mut ranks = vec![0; keys.len()];
    answers.add("get_batch", (view.get_batch(&keys, &mut values, &mut present), &values, &present));
    answers.add("contains_batch", (view.contains_batch(&keys, &mut present), &present));
    answers.add("rank_batch", (view.rank_batch(&keys, &mut ranks, &mut present), &ranks, &present));
    for near in [Near::Floor, Near::Ceiling] {
        answers.add("near_batch", (view.near_batch(near, &keys, &mut ranks), &ranks));
    }
}

/// Asks an index of any types.
fn ask(index: Index) -> Vec<String> {
    let (mut answers, mut random) = (Answers(Vec::new()), Random(7));
    let index = Arc::new(index);
    macro_rules! with_values {
        ($values:ident => $call:expr) => {
            match index.value_type() {
                ValueType::U64 => {
                    type $values = u64;
                    $call
                }
                ValueType::U32 => {
                    type $values = u32;
                    $call
                }
                _ => {
                    type $values = ();
                    $call
                }
            }
        };
    }
    let (to, by) = (&mut answers, &mut random);
    match index.key_type() {
        KeyType::U32 => with_values!(V => of_numbers::<u32, V>(&index, to, by)),
        KeyType::U64 => with_values!(V => of_numbers::<u64, V>(&index, to, by)),
        KeyType::I32 => of_numbers::<i32, ()>(&index, to, by),
        KeyType::I64 => of_numbers::<i64, ()>(&index, to, by),
        KeyType::U128 => with_values!(V => of_numbers::<u128, V>(&index, to, by)),
        KeyType::F64 => with_values!(V => of_numbers::<f64, V>(&index, to, by)),
        KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => {
            with_values!(V => of_strings(&index.strings::<V>().expect("byte strings"), to, by));
        }
    }
    for column in [index.key_column(), index.value_column()].into_iter().flatten() {
        let ranks: Vec<u64> = (0..index.len() + 2).collect();
        let (mut ends, mut data) = (Vec::new(), Vec::new());
        answers.add("append", (column.append(&ranks, &mut ends, &mut data), &ends, &data));
        answers.add("element", column.get(index.len() / 2));
    }
    answers.add("names", (index.meta(), index.record(), index.ends()));
    let map = AnyMap::from_index(Arc::clone(&index)).expect("any types");
    let tuples: Vec<_> = map.iter().map(|tuple| tuple.expect("whole")).collect();
    answers.add("any", &tuples);
    let keys: Vec<Datum<'_>> = tuples.iter().map(|(key, _)| key.clone()).step_by(3).collect();
    answers.add("any many", map.get_many(&keys).expect("whole"));
    answers.0
}

/// Asks both, and a fresh remote index for each question about a batch.
fn assert_agree(bytes: &[u8], what: &str) {
    let header = Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64).expect("a header");
    for structure in Structure::ALL.into_iter().filter(|structure| structure.is_in(&header)) {
        let index = local(bytes, structure);
        assert!(!index.is_remote() && index.brought_bytes().is_none());
        let (here, there) = (ask(index), ask(Source::new(bytes).open_by(structure).expect("opens")));
        assert_eq!(here.len(), there.len());
        for (here, there) in here.iter().zip(&there) {
            assert_eq!(here, there, "{what} by {structure}");
        }
    }
}

#[test]
fn answers_of_all_types_and_sections_agree() {
    for (number, bytes) in wholes().iter().enumerate() {
        assert_agree(bytes, &format!("whole {number}"));
    }
}

fn built(layout: &str, keys: impl Iterator<Item = u64>) -> Vec<u8> {
    let tuples: Vec<(u64, u64)> = keys.map(|key| (key, mix(key))).collect();
    let options = BuildOptions { threads: 1, ..BuildOptions::default() };
    build_bytes(&tuples, &options.with_layout(layout.parse().expect("a layout"))).expect("builds")
}

const LAYOUTS: [&str; 8] = [
    "lines",
    "lines,spine",
    "lines,grid",
    "lines,spine,grid,columns,packed",
    "lines,wide,spine",
    "lines,fast:auto",
    "lines,harmonia",
    "lines,btree",
];

#[test]
fn answers_of_larger_files_agree() {
    let spread = || (0..20_000).map(|i| i * 1000 + mix(i) % 900);
    for layout in LAYOUTS {
        assert_agree(&built(layout, spread()), layout);
    }
    // Runs of equal keys over borders of blocks, and keys that need whole words.
    assert_agree(&built("lines,spine,grid", (0..20_000).map(|i| i / 700 * 3)), "runs");
    assert_agree(&built("lines,spine,grid", (0..20_000).map(mix)), "mixed");
}

#[test]
fn texts_and_records_agree() {
    let texts =
        |count: u64| (0..count).map(|i| (format!("https://example.org/{:09}/{}", mix(i) % 77_777, i % 5), i));
    let strings: Vec<(Vec<u8>, u64)> = texts(9000).map(|(text, i)| (text.into_bytes(), i)).collect();
    for layout in ["lines,spine", "lines,spine,columns", "lines,spine,wide", "lines"] {
        let options = BuildOptions::default().with_layout(layout.parse().expect("a layout"));
        for key_type in [KeyType::Utf8, KeyType::Bytes] {
            assert_agree(&build_strings_bytes(key_type, &strings, &options).expect("builds"), layout);
        }
    }
    let records =
        Builder::new().to_bytes((0..9000u64).map(|i| (mix(i), (i as u32, 0.5 * i as f64, format!("n{i}")))));
    let records = records.expect("builds");
    assert_agree(&records, "records");
    let source = Source::new(&records);
    type Records = Map<u64, (u32, f64, String)>;
    let (here, there) =
        (Records::from_bytes(records).expect("opens"), Records::from_index(source.open().into()));
    let there = there.expect("opens");
    let keys: Vec<u64> = (0..9900).map(mix).collect();
    source.calls();
    assert_eq!(here.get_many(&keys).expect("here"), there.get_many(&keys).expect("there"));
    let (calls, ..) = source.counts();
    assert!(calls <= 6, "lines, offsets and bytes, and what goes over borders: {calls} calls");
    assert_eq!(here.floor_many(&keys).expect("here"), there.floor_many(&keys).expect("there"));
    let intervals = (0..30_000u32).map(|i| (i * 20, (i * 20 + mix(i.into()) as u32 % 15, i)));
    let bytes = Builder::new().intervals(Overlap::Error).to_bytes(intervals).expect("builds");
    assert_agree(&bytes, "intervals");
    let longer = (0..30_000u32).map(|i| (i * 20, (i * 20 + mix(i.into()) as u32 % 15, i, format!("{i}"))));
    let bytes = Builder::new().intervals(Overlap::Error).to_bytes(longer).expect("builds");
    assert_agree(&bytes, "intervals with texts");
    let (source, queries) =
        (Source::new(&bytes), (0..9000).map(|i| mix(i) as u32 % 600_000).collect::<Vec<u32>>());
    let (here, there) = (Index::from_bytes(bytes).expect("opens"), source.open());
    let find = |index: &Index| {
        let intervals = index.intervals::<u32>().expect("types").expect("intervals");
        let (mut ranks, mut passed) = (vec![0; queries.len()], Vec::new());
        let found = intervals.find_batch(&queries, &mut ranks).expect("whole");
        let each = intervals.each_batch(&queries, |at, rank, value| passed.push((at, rank, value.to_vec())));
        let one: Vec<_> = queries[..50].iter().map(|&key| intervals.find(key).expect("whole")).collect();
        (found, each.expect("whole"), ranks, passed, one)
    };
    assert!(find(&here) == find(&there));
}

/// Returns 120,000 tuples in many blocks, and every third key.
fn large() -> (Vec<u8>, Vec<u64>) {
    let keys = (0..120_000u64).map(|i| i * 1000 + mix(i) % 900);
    let bytes = built("lines,spine,grid", keys.clone());
    (bytes, keys.collect())
}

fn block_of(index: &Index, rank: u64) -> Range<u64> {
    let header = index.header();
    let line = header.line_offset(header.geometry.place(rank).0);
    let start = header.lines_offset + (line - header.lines_offset) / BLOCK * BLOCK;
    let end = header.section(Tag::LINE).expect("lines").end;
    start..end.min(start + BLOCK)
}

#[test]
fn numbers_take_one_block_a_key() {
    let (bytes, keys) = large();
    let source = Source::new(&bytes);
    let index = source.open();
    let opened = source.calls();
    assert_eq!(opened.len(), 2, "the head, then the index part");
    assert_eq!(opened[0], std::slice::from_ref(&(0..HEAD_BYTES as u64)));
    assert_eq!(opened[1], index_part(index.header()));
    let brought = index.brought_bytes().expect("remote");
    assert_eq!(
        brought,
        HEAD_BYTES as u64 + opened[1].iter().map(|range| range.end - range.start).sum::<u64>()
    );
    assert!(brought < bytes.len() as u64 / 6, "{brought} of {} bytes", bytes.len());
    let view = index.typed::<u64, u64>().expect("types");
    let mut random = Random(3);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..300 {
        let rank = random.below(keys.len() as u64);
        let key = keys[rank as usize];
        assert_eq!(view.get(key), Ok(Some(mix(key))));
        let block = block_of(&index, rank);
        let calls = source.calls();
        if seen.insert(block.start) {
            assert_eq!(calls, [[block]], "one range of one block");
        } else {
            assert!(calls.is_empty(), "a block is fetched once");
        }
        assert_eq!(view.get(key), Ok(Some(mix(key))));
        assert!(source.calls().is_empty());
    }
    // A key that is not there may be between two blocks.
    for _ in 0..300 {
        let key = keys[random.below(keys.len() as u64) as usize] + 1;
        assert_eq!(view.get(key).expect("whole"), None);
        assert!(source.counts().1 <= 2);
    }
}

#[test]
fn a_batch_is_one_call() {
    let (bytes, keys) = large();
    let source = Source::new(&bytes);
    let index = source.open();
    source.calls();
    let queries: Vec<u64> = keys.iter().copied().step_by(997).collect();
    let blocks: std::collections::BTreeSet<u64> =
        (0..keys.len() as u64).step_by(997).map(|rank| block_of(&index, rank).start).collect();
    let (mut values, mut present) = (vec![0; queries.len()], vec![0; queries.len().div_ceil(64)]);
    let view = index.typed::<u64, u64>().expect("types");
    assert_eq!(view.get_batch(&queries, &mut values, &mut present), Ok(queries.len()));
    assert!(queries.iter().zip(&values).all(|(&key, &value)| value == mix(key)));
    let calls = source.calls();
    assert_eq!(calls.len(), 1);
    let bytes_fetched: u64 = calls[0].iter().map(|range| range.end - range.start).sum();
    let expected: u64 = blocks
        .iter()
        .map(|&at| index.header().section(Tag::LINE).expect("lines").end.min(at + BLOCK) - at)
        .sum();
    assert_eq!(bytes_fetched, expected, "each block once");
    assert!(calls[0].windows(2).all(|pair| pair[0].end < pair[1].start), "those that touch are joined");
    assert_eq!(view.get_batch(&queries, &mut values, &mut present), Ok(queries.len()));
    assert_eq!(source.counts().0, 0);

    // All keys: joined into ranges as long as they may be.
    let index = source.open();
    source.calls();
    let map: Map<u64, u64> = Map::from_index(index.into()).expect("types");
    assert!(
        map.get_many(&keys).expect("whole").iter().zip(&keys).all(|(value, &key)| *value == Some(mix(key)))
    );
    let (calls, ranges, _) = source.counts();
    assert_eq!((calls, ranges), (1, 1));

    // Foreseen keys need nothing more.
    let index = source.open();
    source.calls();
    let view = index.typed::<u64, u64>().expect("types");
    view.foresee(&queries).expect("fetched");
    assert_eq!(source.counts().0, 1);
    assert!(queries.iter().all(|&key| view.get(key) == Ok(Some(mix(key)))));
    assert_eq!(source.counts().0, 0);
}

#[test]
fn counts_of_others_are_as_stated() {
    // Values in a column: a block of lines, one of offsets, one of bytes.
    let texts = (0..40_000u64).map(|i| (i * 1000, format!("{:040}", mix(i))));
    let bytes =
        Builder::new().layout("lines,spine".parse().expect("a layout")).to_bytes(texts).expect("builds");
    let source = Source::new(&bytes);
    let map: Map<u64, String> = Map::from_index(source.open().into()).expect("types");
    source.calls();
    for i in [3u64, 9_000, 20_011, 33_333] {
        assert_eq!(map.get(i * 1000).expect("whole"), Some(format!("{:040}", mix(i))));
        let (calls, ranges, fetched) = source.counts();
        assert!(calls <= 4 && ranges <= 4 && fetched <= 4 * BLOCK, "{calls} calls");
    }
    // Texts by page: a block for the page, and one for the tuple line.
    let url = |i: u64| {
        let host = "host-".repeat(mix(i) as usize % 9 + 1);
        format!("https://{host}{}.example.org/{:x}/index.html?page={}", mix(i) % 50, mix(i / 8), i * 7)
    };
    let texts = (0..40_000u64).map(|i| (url(i), i));
    let bytes = Builder::new().to_bytes(texts).expect("builds");
    assert!(Index::from_bytes(bytes.clone()).expect("opens").header().trie.is_some(), "a file with pages");
    let source = Source::new(&bytes);
    let map: BytesMap<u64> = BytesMap::from_index(source.open().into()).expect("types");
    source.calls();
    for i in [3u64, 9_000, 20_011, 33_333] {
        assert_eq!(map.get(url(i)).expect("whole"), Some(i));
        let (calls, ranges, fetched) = source.counts();
        assert!(calls <= 3 && ranges <= 3 && fetched <= 3 * BLOCK, "{calls} calls, {fetched} bytes");
    }
    // A range fetches ahead; a scan at once.
    let (bytes, keys) = large();
    let source = Source::new(&bytes);
    let index = source.open();
    let view = index.typed::<u64, u64>().expect("types");
    source.calls();
    assert_eq!(view.range(..).expect("whole").filter(|tuple| tuple.is_ok()).count(), keys.len());
    let (calls, _, fetched) = source.counts();
    assert!(calls <= 12, "{calls} calls");
    assert_eq!(
        fetched,
        index
            .header()
            .section(Tag::LINE)
            .map(|it| it.entry.length.get().next_multiple_of(BLOCK).min(it.extent()))
            .expect("lines")
    );
    let index = source.open();
    let view = index.typed::<u64, u64>().expect("types");
    source.calls();
    assert_eq!(view.ranks(0..u64::MAX).rev().filter(|tuple| tuple.is_ok()).count(), keys.len());
    assert!(source.counts().0 <= 12);
    let index = source.open();
    let view = index.typed::<u64, u64>().expect("types");
    source.calls();
    assert_eq!(view.scan(0..u64::MAX, |_, _| {}), Ok(keys.len() as u64));
    assert_eq!(source.counts().0, 1);
    // The first tuples of a long range are few blocks.
    let index = source.open();
    let view = index.typed::<u64, u64>().expect("types");
    source.calls();
    assert_eq!(view.range(keys[5000]..).expect("whole").take(3).count(), 3);
    assert_eq!(source.counts(), (1, 1, BLOCK));
    assert_eq!(index.bring(0, u64::MAX), Ok(()));
    assert!(source.counts().0 >= 1);
    assert_eq!(index.bring(0, u64::MAX), Ok(()));
    assert_eq!(source.counts().0, 0);
}

#[test]
fn a_flipped_bit_is_an_error_that_names_the_block() {
    let (bytes, keys) = large();
    let source = Source::new(&bytes);
    let index = source.open();
    let view = index.typed::<u64, u64>().expect("types");
    let queries: Vec<u64> = keys.iter().copied().step_by(997).collect();
    let block = block_of(&index, 997 * 50);
    for at in [block.start, block.start + 77, block.end - 1] {
        *source.flipped.lock().expect("whole") = Some(at);
        let is_it = |error: &ReadError| {
            matches!(error, ReadError::Format(FormatError::Checksum { what, offset, .. })
                if *what == Tag::LINE.name() && *offset == block.start)
        };
        let error = view.get(keys[997 * 50]).expect_err("a damaged block");
        assert!(is_it(&error) && error.is_damage(), "{error}");
        let (mut values, mut present) = (vec![0; queries.len()], vec![0; queries.len().div_ceil(64)]);
        let error = view.get_batch(&queries, &mut values, &mut present).expect_err("a damaged block");
        assert!(is_it(&error), "{error}");
        // The other blocks of the batch are there.
        source.calls();
        assert_eq!(view.get(queries[3]), Ok(Some(mix(queries[3]))));
        assert_eq!(source.counts().0, 0);
        index.trust();
        assert!(view.get(keys[997 * 50]).is_err(), "a remote file is always verified");
    }
    *source.flipped.lock().expect("whole") = None;
    assert_eq!(view.get(keys[997 * 50]), Ok(Some(mix(keys[997 * 50]))));

    // In every block of what opening fetches.
    for part in std::iter::once(0..HEAD_BYTES as u64).chain(index_part(index.header())) {
        for at in part.clone().step_by(4096).flat_map(|start| [start, start + 4095]) {
            *source.flipped.lock().expect("whole") = Some(at);
            let error = source.open_by(Structure::Auto).expect_err("damaged");
            let is_damage = error.is_damage() || matches!(&error, OpenError::Format { .. });
            assert!(is_damage, "byte {at}: {error}");
            assert!(error.to_string().contains("mem://bucket/t.pleach"), "{error}");
        }
    }
}

#[test]
fn what_fails_is_an_error_and_the_next_call_works() {
    let (bytes, keys) = large();
    let source = Source::new(&bytes);
    let index = source.open();
    let view = index.typed::<u64, u64>().expect("types");
    let queries: Vec<u64> = keys.iter().copied().step_by(1003).collect();
    let (mut values, mut present) = (vec![0; queries.len()], vec![0; queries.len().div_ceil(64)]);
    for (fault, kind, text) in [
        (&source.fails, io::ErrorKind::TimedOut, "the store is asleep"),
        (&source.is_short, io::ErrorKind::UnexpectedEof, "bytes"),
        (&source.leaves_out, io::ErrorKind::UnexpectedEof, "bytes"),
    ] {
        fault.store(true, Ordering::Relaxed);
        let is_it =
            |error: &ReadError| matches!(error, ReadError::Fetch { kind: found, .. } if *found == kind);
        let error = view.get(keys[997]).expect_err("nothing comes");
        assert!(is_it(&error) && !error.is_damage() && error.to_string().contains(text), "{error}");
        let error = view.get_batch(&queries, &mut values, &mut present).expect_err("not all comes");
        assert!(is_it(&error), "{error}");
        assert!(view.scan(0..9000, |_, _| {}).is_err());
        let all: Vec<_> = view.ranks(0..9000).collect();
        assert!(all.last().is_some_and(Result::is_err));
        let error = source.open_by(Structure::Auto).expect_err("nothing comes");
        assert!(
            matches!(&error, OpenError::Io { operation: "fetch", source, .. } if source.kind() == kind),
            "{error}"
        );
        fault.store(false, Ordering::Relaxed);
        // Nothing that is not there was taken for a block.
        let map: Map<u64, u64> = Map::from_index(Arc::new(source.open())).expect("types");
        fault.store(true, Ordering::Relaxed);
        assert_eq!(map.get(keys[5]).expect_err("nothing comes").kind(), ErrorKind::Io);
        fault.store(false, Ordering::Relaxed);
        assert_eq!(map.get(keys[5]).expect("comes"), Some(mix(keys[5])));
    }
    assert_eq!(view.get(keys[997]), Ok(Some(mix(keys[997]))));
    assert_eq!(view.get_batch(&queries, &mut values, &mut present), Ok(queries.len()));
    assert!(queries.iter().zip(&values).all(|(&key, &value)| value == mix(key)));
}

#[test]
fn what_cannot_be_opened_is_refused() {
    let (bytes, _) = large();
    let source = Source::new(&bytes);
    let open = |options: pleach::OpenOptions, length: u64| {
        options.open_remote("mem://x", Arc::clone(&source) as _, length).expect_err("refused").to_string()
    };
    let text = open(Index::options().verify(Verify::Full), bytes.len() as u64);
    assert!(text.contains("cannot verify") && text.contains("mem://x"), "{text}");
    assert!(source.calls().is_empty());
    for length in [0, 5, 8192, bytes.len() as u64 - 4096] {
        assert!(open(Index::options(), length).contains("mem://x"));
    }
    let other = Source::new(&[7; 50_000]);
    assert!(other.open_by(Structure::Auto).expect_err("foreign").to_string().contains("mem://bucket"));
    assert!(source.open_by(Structure::Btree).is_err(), "no such structure");
}

#[test]
fn threads_share_a_remote_index() {
    let (bytes, keys) = large();
    let source = Source::new(&bytes);
    let index = source.open();
    let view = index.typed::<u64, u64>().expect("types");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (view, keys) = (&view, &keys);
            scope.spawn(move || {
                let mut random = Random(thread % 2);
                for round in 0..400 {
                    let key = keys[random.below(keys.len() as u64) as usize];
                    assert_eq!(view.get(key), Ok(Some(mix(key))));
                    if round % 40 == 0 {
                        let from = random.below(keys.len() as u64 - 2000) as usize;
                        let queries = &keys[from..from + 2000];
                        let (mut values, mut present) = (vec![0; 2000], vec![0; 32]);
                        assert_eq!(view.par_get_batch(queries, &mut values, &mut present), Ok(2000));
                        assert!(queries.iter().zip(&values).all(|(&key, &value)| value == mix(key)));
                    }
                }
            });
        }
    });
    let all: Vec<_> = view.ranks(0..u64::MAX).map(|tuple| tuple.expect("whole").0).collect();
    assert_eq!(all, keys);
}
