//! Floors, ceilings, nearest tuples and intervals, compared with plain searches of sorted tuples.

use super::mix;
use pleach::build::Overlap;
use pleach::{Builder, Index, Key, KeyType, Near, Tuples, Value, Word};
use pleach_builder::{BuildOptions, build_slice};
use pleach_gpu::{Algorithm, DeviceBuffer, Gpu, GpuError, GpuTable, NearBuffers, Residence, Stream};

/// Kinds of tuples.
pub const KINDS: [Near; 3] = [Near::Floor, Near::Ceiling, Near::Nearest];

/// Algorithms that have a search for them, and one that has none.
const SEARCHES: [Algorithm; 4] = [Algorithm::Auto, Algorithm::Spine, Algorithm::Sweep, Algorithm::Binary];

fn word<K: Key>(key: K) -> u128 {
    key.encode().to_u128()
}

/// The distance from a key to a higher one, as one that can be compared with others.
fn distance<K: Key>(low: K, high: K) -> (u128, f64) {
    if K::TYPE == KeyType::F64 {
        let float = |key: K| f64::decode(word(key) as u64);
        return (0, float(high) - float(low));
    }
    (word(high) - word(low), 0.0)
}

/// The rank of the tuple near a query, by halving.
fn rank_near<K: Key, V>(tuples: &[(K, V)], near: Near, query: K) -> Option<usize> {
    let floor = tuples.partition_point(|tuple| word(tuple.0) <= word(query)).checked_sub(1);
    let ceiling = tuples.partition_point(|tuple| word(tuple.0) < word(query));
    let ceiling = Some(ceiling).filter(|&rank| rank < tuples.len());
    match (near, floor, ceiling) {
        (Near::Floor, floor, _) => floor,
        (Near::Ceiling, _, ceiling) => ceiling,
        (Near::Nearest, Some(low), Some(high)) => {
            let (below, above) = (tuples[low].0, tuples[high].0);
            let is_high = word(below) != word(query) && distance(query, above) < distance(below, query);
            Some(if is_high { high } else { low })
        }
        (Near::Nearest, low, high) => low.or(high),
    }
}

/// Answers of a batch, in buffers that hold others before.
struct Found<K, V> {
    ranks: Vec<u64>,
    keys: Vec<K>,
    values: Vec<V>,
    present: Vec<u64>,
}

impl<K: Key, V: Value> Found<K, V> {
    fn new(count: usize, (key, value): (K, V)) -> Self {
        let present = vec![!0; count.div_ceil(64)];
        Self { ranks: vec![7; count], keys: vec![key; count], values: vec![value; count], present }
    }

    fn tuples(&mut self) -> Tuples<'_, K, V> {
        let Self { ranks, keys, values, present } = self;
        Tuples { ranks, keys, values, present }
    }

    /// Compares with ranks of tuples.
    fn compare(&self, tuples: &[(K, V)], wanted: &[Option<usize>], count: usize, what: &str) {
        assert_eq!(count, wanted.iter().flatten().count(), "{what}");
        let bits: u32 = self.present.iter().map(|word| word.count_ones()).sum();
        assert_eq!(bits as usize, count, "{what}");
        for (at, &rank) in wanted.iter().enumerate() {
            let (key, value) = rank.map_or((K::default(), V::default()), |rank| tuples[rank]);
            assert_eq!(self.ranks[at], rank.map_or(u64::MAX, |rank| rank as u64), "{what}: query {at}");
            assert!(word(self.keys[at]) == word(key) && self.values[at] == value, "{what}: query {at}");
            assert_eq!(self.present[at / 64] >> (at % 64) & 1 == 1, rank.is_some(), "{what}: query {at}");
        }
    }
}

/// Compares the tuples near queries with those of a plain search, by the algorithms that search for them.
pub fn check_near<K: Key, V: Value>(
    table: &GpuTable<'_>,
    tuples: &[(K, V)],
    algorithms: &[Algorithm],
    queries: &[K],
    kinds: &[Near],
) {
    let count = queries.len();
    for &near in kinds {
        let wanted: Vec<Option<usize>> =
            queries.iter().map(|&query| rank_near(tuples, near, query)).collect();
        for &algorithm in algorithms.iter().filter(|algorithm| SEARCHES[..3].contains(algorithm)) {
            let what = format!("{near:?} {algorithm:?}: {} of {}, {count} queries", tuples.len(), K::TYPE);
            let mut found = Found::new(count, tuples.first().copied().unwrap_or_default());
            let answered = table.near_batch_by(algorithm, near, queries, found.tuples());
            let answered = answered.unwrap_or_else(|error| panic!("{what}: {error}"));
            found.compare(tuples, &wanted, answered, &what);
        }
    }
}

/// Builds a table, and calls `with` with it and its tuples in order.
fn with_table<K: Key, V: Value>(
    gpu: &Gpu,
    residence: Residence,
    mut tuples: Vec<(K, V)>,
    with: impl FnOnce(&GpuTable<'_>, &[(K, V)]),
) {
    tuples.sort_by_key(|tuple| word(tuple.0));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    with(&GpuTable::with_residence(&index, gpu, residence).expect("fits"), &tuples);
}

/// Batches between buffers of the device that have no byte too many, for every combination of answers.
pub fn exact(gpu: &Gpu, counts: &[[u64; 2]]) {
    for &[tuples, count] in counts {
        let all: Vec<(u64, u32)> = (0..tuples).map(|i| (mix(i / 2) >> 3, i as u32)).collect();
        with_table(gpu, Residence::Device, all, |table, tuples| {
            let queries: Vec<u64> = (0..count).map(|i| mix(mix(i) % (count + 9)) >> 3).collect();
            for near in KINDS {
                for algorithm in SEARCHES {
                    check_exact(gpu, table, tuples, algorithm, near, &queries);
                }
            }
        });
    }
}

fn check_exact(
    gpu: &Gpu,
    table: &GpuTable<'_>,
    tuples: &[(u64, u32)],
    algorithm: Algorithm,
    near: Near,
    queries: &[u64],
) {
    let stream = Stream::new(gpu).expect("a stream");
    let bytes: Vec<u8> = queries.iter().flat_map(|query| query.to_le_bytes()).collect();
    let on_device = DeviceBuffer::from_host(&stream, &bytes).expect("fits");
    let count = queries.len() as u64;
    let what = format!("{near:?} {algorithm:?}: {} tuples, {count} queries", tuples.len());
    for turn in 0..8_u32 {
        // Of ranks, keys and values those that the turn's bits say; presence with every other turn.
        let some = |bit: u32, bytes: u64| {
            (turn >> bit & 1 == 1).then(|| DeviceBuffer::new(gpu, bytes).expect("fits"))
        };
        let rank_bytes = if turn.is_multiple_of(4) { 4 } else { 8 };
        let (ranks, keys, values) =
            (some(0, count * u64::from(rank_bytes)), some(1, count * 8), some(2, count * 4));
        let present = DeviceBuffer::new(gpu, count.div_ceil(32) * 4).expect("fits");
        let buffers = NearBuffers {
            ranks: ranks.as_ref(),
            keys: keys.as_ref(),
            values: values.as_ref(),
            present: (turn % 3 != 1).then_some(&present),
            rank_bytes,
        };
        let pending = table.near_on(&stream, algorithm, near, &on_device, count, buffers);
        pending.and_then(|pending| pending.wait()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let read = |buffer: Option<&DeviceBuffer>| {
            buffer.map(|buffer| {
                let mut bytes = vec![0; buffer.bytes() as usize];
                buffer.copy_to_host(&stream, &mut bytes).expect("copied");
                bytes
            })
        };
        let [ranks, keys, values, present] =
            [buffers.ranks, buffers.keys, buffers.values, buffers.present].map(read);
        for (at, &query) in queries.iter().enumerate() {
            let rank = rank_near(tuples, near, query);
            let same = |found: &Option<Vec<u8>>, bytes: &[u8]| {
                let each = bytes.len();
                found.as_ref().is_none_or(|found| found[at * each..(at + 1) * each] == *bytes)
            };
            let tuple = rank.map_or((0, 0), |rank| tuples[rank]);
            let rank_is = rank.map_or(u64::MAX, |rank| rank as u64).to_le_bytes();
            assert!(same(&ranks, &rank_is[..rank_bytes as usize]), "{what}: query {at}");
            assert!(same(&keys, &tuple.0.to_le_bytes()), "{what}: query {at}");
            assert!(same(&values, &tuple.1.to_le_bytes()), "{what}: query {at}");
            let is_there = |bits: &Vec<u8>| bits[at / 8] >> (at % 8) & 1 == 1;
            assert!(present.as_ref().is_none_or(|bits| is_there(bits) == rank.is_some()), "{what}: {at}");
        }
    }
}

/// Tables without tuples, with one, with equal keys over many lines, with lines in every place, and batches whose
/// buffers are wrong.
pub fn edges(gpu: &Gpu, count: u64) {
    let queries = [0, 1, 6, 7, 8, u64::MAX];
    for tuples in [vec![], vec![(7u64, 70u64)], vec![(7, 70), (7, 71)], vec![(u64::MAX, 1); 33]] {
        with_table(gpu, Residence::Auto, tuples, |table, tuples| {
            check_near(table, tuples, &SEARCHES, &queries, &KINDS);
            // The answers that are not wanted are left out, and longer buffers are filled at their start.
            let (mut ranks, mut present) = ([9; 7], [9; 2]);
            let some = Tuples { ranks: &mut ranks, ..Tuples::<u64, u64>::default() };
            table.near_batch(Near::Floor, &queries, some).expect("answers");
            let some = Tuples { present: &mut present, ..Tuples::<u64, u64>::default() };
            let found = table.near_batch(Near::Ceiling, &queries, some).expect("answers");
            assert_eq!((ranks[6], present[1], present[0].count_ones()), (9, 9, found as u32));
            let short = Tuples { ranks: &mut ranks[..5], ..Tuples::<u64, u64>::default() };
            assert!(matches!(table.near_batch(Near::Floor, &queries, short), Err(GpuError::Read(_))));
            let other = table.near_batch(Near::Floor, &[1u32], Tuples::<u32, u64>::default());
            assert!(matches!(other, Err(GpuError::Asked(_))));
            let none = table.interval_batch(&queries, Tuples::<u64, u64>::default());
            assert!(matches!(none, Err(GpuError::Operator { .. })));
        });
    }
    // Runs of equal keys that begin and end at every place of a line.
    let mut tuples = Vec::new();
    for run in 0..count {
        (0..run % 23 + 1).for_each(|_| tuples.push((run * 10, tuples.len() as u64)));
    }
    let near = |run: u64| [(run * 10).saturating_sub(1), run * 10, run * 10 + 1, run * 10 + 5, run * 10 + 6];
    let mut queries: Vec<u64> = (0..count).flat_map(near).chain([u64::MAX]).collect();
    for residence in Residence::ALL {
        with_table(gpu, residence, tuples.clone(), |table, tuples| {
            check_near(table, tuples, &SEARCHES, &queries, &KINDS);
            queries.reverse();
            check_near(table, tuples, &SEARCHES, &queries, &KINDS);
            queries.reverse();
        });
    }
}

/// Files of intervals whose values are in the lines, and in a column.
pub fn intervals(gpu: &Gpu, counts: &[u64]) {
    for &count in counts {
        // From 0 on, every third one touches the next, the others leave a gap.
        let ends = |i: u64| (i * 100, i * 100 + if i.is_multiple_of(3) { 99 } else { i % 70 });
        let each = || (0..count).map(ends);
        let short = |i: u64| i as u32;
        let narrow = each().map(|(from, to)| (short(from), (short(to), short(from / 100))));
        check_intervals::<u32, u64>(
            gpu,
            Builder::new().intervals(Overlap::Error).to_bytes(narrow),
            count,
            |i| i as u32,
        );
        let signed = |i: u64| i as i32 - 5000;
        let narrow = each().map(|(from, to)| (signed(from), (signed(to), 7u8)));
        check_intervals::<i32, ()>(
            gpu,
            Builder::new().intervals(Overlap::Error).to_bytes(narrow),
            count,
            signed,
        );
        let bare = each().map(|(from, to)| (short(from), (short(to),)));
        check_intervals::<u32, u32>(
            gpu,
            Builder::new().intervals(Overlap::Error).to_bytes(bare),
            count,
            short,
        );
        let bare = each().map(|(from, to)| (from, (to,)));
        check_intervals::<u64, u64>(
            gpu,
            Builder::new().intervals(Overlap::Error).to_bytes(bare),
            count,
            |i| i,
        );
        let signed = |i: u64| i as i64 - 5000;
        let bare = each().map(|(from, to)| (signed(from), (signed(to),)));
        check_intervals::<i64, u64>(
            gpu,
            Builder::new().intervals(Overlap::Error).to_bytes(bare),
            count,
            signed,
        );
        let float = |i: u64| i as f64 / 2.0 - 1000.0;
        let bare = each().map(|(from, to)| (float(from), (float(to),)));
        check_intervals::<f64, u64>(
            gpu,
            Builder::new().intervals(Overlap::Error).to_bytes(bare),
            count,
            float,
        );
        let long = each().map(|(from, to)| (from, (to, short(from))));
        check_intervals::<u64, ()>(
            gpu,
            Builder::new().intervals(Overlap::Error).to_bytes(long),
            count,
            |i| i,
        );
        let wide = |i: u64| u128::from(i) << 70;
        let wides = each().map(|(from, to)| (wide(from), (wide(to).to_be_bytes(), 5u32)));
        check_intervals::<u128, ()>(
            gpu,
            Builder::new().intervals(Overlap::Error).to_bytes(wides),
            count,
            wide,
        );
    }
}

/// Compares the intervals that hold queries with those of a plain search. Places 100 i to 100 i + 99 are between two
/// starts; `key` makes keys of places.
fn check_intervals<K: Key, V: Value>(
    gpu: &Gpu,
    bytes: Result<Vec<u8>, pleach::build::BuildError>,
    count: u64,
    key: impl Fn(u64) -> K,
) {
    let index = Index::options().from_bytes(bytes.expect("builds")).expect("opens");
    let table = GpuTable::new(&index, gpu).expect("fits");
    let places: Vec<u64> = (0..count * 3)
        .map(|i| mix(i) % (count * 100 + 50))
        .chain(
            (0..count.min(40)).flat_map(|i| [i * 100, i * 100 + i % 70, i * 100 + i % 70 + 1, i * 100 + 99]),
        )
        .collect();
    let view = index.typed::<K, V>().expect("the types");
    let tuples: Vec<(K, V)> = view.ranks(0..count).map(|tuple| tuple.expect("readable")).collect();
    let mut ascending = places.clone();
    ascending.sort_unstable();
    for places in [places, ascending] {
        let queries: Vec<K> = places.iter().map(|&place| key(place)).collect();
        let holds = |place: u64| {
            let (i, inside) = (place / 100, place % 100);
            (i < count && (i.is_multiple_of(3) || inside <= i % 70)).then_some(i as usize)
        };
        let wanted: Vec<Option<usize>> = places.iter().map(|&place| holds(place)).collect();
        for algorithm in SEARCHES {
            let what = format!("intervals {algorithm:?}: {count} of {}, {}", K::TYPE, index.value_type());
            let mut found = Found::new(queries.len(), tuples[0]);
            let answered = table.interval_batch_by(algorithm, &queries, found.tuples());
            let answered = answered.unwrap_or_else(|error| panic!("{what}: {error}"));
            found.compare(&tuples, &wanted, answered, &what);
            // Only a count is wanted.
            let again = table.interval_batch_by(algorithm, &queries, Tuples::<K, V>::default());
            assert_eq!(again.expect("answers"), answered, "{what}");
        }
    }
    let stream = Stream::new(gpu).expect("a stream");
    let queries = DeviceBuffer::new(gpu, 16).expect("fits");
    queries.fill(&stream, 0).expect("filled");
    let asked = table.interval_on(&stream, Algorithm::Auto, &queries, 1, NearBuffers::default());
    let is_in_lines = V::TYPE != pleach::ValueType::None;
    assert_eq!(asked.is_ok(), is_in_lines, "intervals of {}, {}", K::TYPE, index.value_type());
}
