//! Trees of the file's own sections, searched as they lie: answers of every form from every residence, bytes on the
//! device, refusals, and sections that hold anything.

use super::{check_strings, mix};
use pleach::{Index, Key, KeyType, Value};
use pleach_builder::{BuildOptions, build_slice, build_strings};
use pleach_format::section::Tag;
use pleach_gpu::{
    Algorithm, ChildRegion, Gpu, GpuError, GpuTable, Group, HarmoniaSearch, QuerySort, Residence, Scan,
    SectionTree,
};
use pleach_kit::generate::Random;

/// Layouts of small pages, so that trees have several levels of them, and of the builder's own.
const LAYOUTS: [&str; 10] = [
    "fast:full",
    "fast:full:packed:dk=2:dl=2:dp=2",
    "fast:full:dk=1:dl=2:dp=7",
    "fast:delta:dp=6",
    "fast:delta:packed:dp=7",
    "fast:auto",
    "fast:auto:packed:dp=6",
    "harmonia:8:69,btree:4",
    "harmonia:64,btree:64",
    "fast:partial:dp=6,harmonia:9:50,btree:17",
];

/// Ways of searching the trees of a file.
fn algorithms(index: &Index) -> Vec<(Algorithm, Tag)> {
    let harmonia = |sort, group, scan, children| {
        let search = HarmoniaSearch { sort, group, scan, children };
        (Algorithm::Section(SectionTree::Harmonia(search)), Tag::HARMONIA)
    };
    let mut all = vec![
        (Algorithm::Section(SectionTree::Fast), Tag::FAST),
        (Algorithm::Section(SectionTree::Btree), Tag::BTREE),
        harmonia(QuerySort::Partial, Group::Auto, Scan::Keys, ChildRegion::Constant),
        harmonia(QuerySort::None, Group::Of(4), Scan::Vectors, ChildRegion::Shared),
        harmonia(QuerySort::None, Group::Auto, Scan::Halves, ChildRegion::Ldg),
    ];
    all.push((Algorithm::Section(SectionTree::Harmonia(HarmoniaSearch::FASTEST)), Tag::HARMONIA));
    all.retain(|(_, tag)| index.header().section(*tag).is_some());
    all
}

/// Builds a file with the trees of a layout; `None` if these keys cannot have them.
fn built(layout: &str, build: impl FnOnce(&BuildOptions, &std::path::Path) -> bool) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    let layout = format!("lines,spine,{layout}").parse().expect("a layout");
    let is_built = build(&BuildOptions::default().with_layout(layout), &path);
    is_built.then(|| std::fs::read(path).expect("readable"))
}

/// Opens bytes as a mapped file, so that pinned sections are the mapping.
fn opened(bytes: &[u8], name: &std::path::Path) -> Index {
    std::fs::write(name, bytes).expect("written");
    Index::open(name).expect("opens")
}

fn check<K: Key, V: Value>(gpu: &Gpu, layout: &str, tuples: &[(K, V)], queries: &[K], residence: Residence) {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = built(layout, |options, path| build_slice(tuples, path, options).is_ok());
    let Some(bytes) = bytes else {
        assert!(layout.contains("partial"), "{layout}: {}", K::TYPE);
        return;
    };
    let index = opened(&bytes, &folder.path().join("table.pleach"));
    let view = index.typed::<K, V>().expect("the types");
    let table = GpuTable::with_residence(&index, gpu, residence).expect("fits");
    let (take, words) = (queries.len(), queries.len().div_ceil(64));
    let (mut wanted, mut there, mut right) = (vec![V::default(); take], vec![0; words], vec![0; take]);
    view.get_batch(queries, &mut wanted, &mut there).expect("answers");
    view.lower_bound_batch(queries, &mut right).expect("answers");
    for (algorithm, tag) in algorithms(&index) {
        let what = format!("{algorithm:?}, {layout}, {residence:?}: {} tuples of {}", tuples.len(), K::TYPE);
        let (mut values, mut present, mut ranks) = (vec![V::default(); take], vec![0; words], vec![0; take]);
        let answered = table.get_batch_by(algorithm, queries, &mut values, &mut present);
        answered.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(values == wanted && present == there, "{what}");
        table.lower_bound_batch_by::<K, V>(algorithm, queries, &mut ranks).expect("answers");
        assert!(ranks == right, "{what}");
        if tag != Tag::HARMONIA && !tuples.is_empty() {
            let section = index.header().section(tag).expect("it was searched");
            let bytes = table.structure_bytes(algorithm).expect("it is there");
            assert_eq!(bytes, section.entry.length.get(), "{what}");
        }
    }
}

/// Keys spread, dense, in clusters, in runs across pages, at both ends, different in nibbles far apart, and one key.
fn kinds() -> [fn(u64) -> u64; 7] {
    [
        mix,
        |i| (1 << 40) + i * 2,
        |i| ((mix(i / 50) >> 20) << 20) | (i % 50 * 3),
        |i| mix(i / 700) >> 3,
        |i| if i.is_multiple_of(2) { i % 3 } else { u64::MAX - i % 3 },
        |i| (mix(i) & 0xF00F_00F0_0000_F00F) | 0x0550_0000_0000_0000,
        |_| 77,
    ]
}

/// Every layout over tables of many kinds.
pub fn all(gpu: &Gpu, counts: &[u64], queries_max: usize) {
    let mut turn = 0;
    for &count in counts {
        for (kind, key) in kinds().into_iter().enumerate() {
            for layout in LAYOUTS {
                turn += 1;
                let residence = Residence::ALL[turn % Residence::ALL.len()];
                let mut keys: Vec<u64> = (0..count).map(key).collect();
                keys.sort_unstable();
                let every = keys.len().div_ceil(queries_max / 4).max(1);
                let mut some: Vec<u64> = keys.iter().copied().step_by(every).collect();
                for at in 0..some.len() {
                    let key = some[at];
                    let far = key ^ 1 << (mix(at as u64) % 64);
                    some.extend([key.saturating_sub(1), key.saturating_add(1), far]);
                }
                some.extend([0, 1, u64::MAX - 1, u64::MAX]);
                let count = some.len();
                (0..count).for_each(|i| some.swap(i, (mix(i as u64) % count as u64) as usize));
                let narrow = |key: u64| (key >> 32) as u32 ^ key as u32;
                let wide = |key: u64| u128::from(key) << 40 | u128::from(mix(key) >> 50);
                let float = |key: u64| f64::from_bits(key & !(1 << 62));
                macro_rules! of {
                    ($make:expr, $value:expr) => {{
                        let mut tuples: Vec<_> = keys.iter().map(|&key| ($make(key), $value(key))).collect();
                        tuples.sort_by_key(|tuple| tuple.0.encode());
                        let queries: Vec<_> = some.iter().map(|&key| $make(key)).collect();
                        check(gpu, layout, &tuples, &queries, residence);
                    }};
                }
                // Other types with each layout of a kind, all of them over all kinds.
                match (turn + kind) % 6 {
                    0 => of!(narrow, |key| key as u32),
                    1 => of!(wide, |key| key),
                    2 => of!(float, |key| key),
                    3 => of!(|key: u64| key as i64, |_| ()),
                    4 => of!(wide, |_| ()),
                    _ => of!(narrow, |_| ()),
                }
                of!(|key: u64| key, |key| key);
            }
        }
    }
}

/// Byte keys whose words are whole keys.
pub fn strings(gpu: &Gpu, count: u64) {
    let digits = |i: u64| format!("{:016}", mix(i) % 10_000_000_000_000_000).into_bytes();
    let short = |i: u64| format!("{}", mix(i) % 100_000).into_bytes();
    for (key, key_type) in
        [(&digits as &dyn Fn(u64) -> Vec<u8>, KeyType::Fixed(16)), (&short, KeyType::Bytes)]
    {
        let mut tuples: Vec<(Vec<u8>, u64)> = (0..count).map(|i| (key(i), i)).collect();
        tuples.sort();
        for layout in LAYOUTS {
            let bytes =
                built(layout, |options, path| build_strings(key_type, &tuples, path, options).is_ok());
            let Some(bytes) = bytes else { continue };
            let folder = tempfile::tempdir().expect("a folder");
            let index = opened(&bytes, &folder.path().join("table.pleach"));
            let Ok(table) = GpuTable::new(&index, gpu) else { continue };
            let mut queries: Vec<Vec<u8>> = tuples.iter().map(|tuple| tuple.0.clone()).collect();
            for (key, _) in &tuples {
                let mut other = key.clone();
                other[key.len() / 2] ^= 0x41;
                queries.extend([[&key[..], &[0]].concat(), other, key[..key.len() - 1].to_vec()]);
            }
            let algorithms: Vec<Algorithm> = algorithms(&index).into_iter().map(|pair| pair.0).collect();
            check_strings(&index, &table, &algorithms, &queries, layout);
        }
    }
}

/// So many queries that the fastest search of Harmonia's tree sorts them.
pub fn long_batch(gpu: &Gpu, queries: u64) {
    let tuples: Vec<(u64, u64)> = (0..100_000).map(|i| (i * 11, mix(i))).collect();
    let queries: Vec<u64> = (0..queries).map(|i| mix(i) % 1_100_100).collect();
    check(gpu, "harmonia:64", &tuples, &queries, Residence::Device);
}

/// A file without the section is refused, by name; an empty one answers.
pub fn refusals(gpu: &Gpu) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&[(1u64, 2u64)], &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let table = GpuTable::new(&index, gpu).expect("fits");
    let harmonia = HarmoniaSearch::default();
    for tree in [SectionTree::Fast, SectionTree::Btree, SectionTree::Harmonia(harmonia)] {
        let error = table.prepare(Algorithm::Section(tree)).expect_err("there is none");
        let wanted = format!("--layout lines,{}", tree.name());
        assert!(
            matches!(error, GpuError::Algorithm { .. }) && error.to_string().contains(&wanted),
            "{error}"
        );
    }
    let nothing: [(u64, u64); 0] = [];
    for layout in LAYOUTS {
        check(gpu, layout, &nothing, &[0, 1, u64::MAX], Residence::Device);
    }
}

/// Sections that hold anything under an unverified header: nothing outside is read, and ranks stay in the table.
pub fn damaged(gpu: &Gpu, count: u64) -> u64 {
    let mut asked = 0;
    let mut random = Random(count);
    for (turn, layout) in LAYOUTS.into_iter().enumerate() {
        for kind in [0, 5] {
            let key = kinds()[kind];
            let mut tuples: Vec<(u64, u64)> = (0..count).map(|i| (key(i), i)).collect();
            tuples.sort_unstable();
            let wide: Vec<(u128, u32)> =
                tuples.iter().map(|&(key, i)| (u128::from(key) << 50 | 5, i as u32)).collect();
            let of_numbers = built(layout, |options, path| build_slice(&tuples, path, options).is_ok());
            let of_wide = built(layout, |options, path| build_slice(&wide, path, options).is_ok());
            for damage in 0..6 {
                let queries: Vec<u64> = tuples.iter().step_by(3).map(|tuple| tuple.0 ^ 1).collect();
                let widened: Vec<u128> = queries.iter().map(|&key| u128::from(key) << 50 | 5).collect();
                let residence = Residence::ALL[(turn + damage) % Residence::ALL.len()];
                if let Some(bytes) = &of_numbers {
                    asked += ask::<u64, u64>(gpu, bytes, damage, &queries, residence, &mut random);
                }
                if let Some(bytes) = &of_wide {
                    asked += ask::<u128, u32>(gpu, bytes, damage, &widened, residence, &mut random);
                }
            }
        }
    }
    asked
}

/// Searches a file whose trees were overwritten.
fn ask<K: Key, V: Value>(
    gpu: &Gpu,
    whole: &[u8],
    damage: usize,
    queries: &[K],
    residence: Residence,
    random: &mut Random,
) -> u64 {
    let index = Index::options().from_bytes(whole.to_vec()).expect("opens");
    let mut bytes = whole.to_vec();
    for tag in [Tag::FAST, Tag::BTREE, Tag::HARMONIA] {
        let Some(place) = index.header().section(tag) else { continue };
        let section = &mut bytes[place.entry.offset.get() as usize..][..place.entry.length.get() as usize];
        match damage {
            0 => section.fill(0xFF),
            1 => section.fill(0),
            2 => section.iter_mut().for_each(|byte| *byte = random.next() as u8),
            // A few bytes, and the beginning, where records and metadata are.
            3 => (0..20).for_each(|_| {
                let at = random.next() as usize % section.len();
                section[at] = random.next() as u8;
            }),
            // Of keys of 16 bytes, places of pages that are no multiple of a word, in records that are right otherwise.
            4 => section.chunks_exact_mut(32).take(8).for_each(|record| record[24] ^= 5),
            _ => {
                let length = section.len().min(512);
                section[..length].iter_mut().for_each(|byte| *byte ^= 1 << (random.next() % 16).min(7));
            }
        }
    }
    let index = Index::options().from_bytes(bytes).expect("the header is right");
    let table = GpuTable::with_residence(&index, gpu, residence).expect("fits");
    let (take, mut asked) = (queries.len(), 0);
    for (algorithm, _) in algorithms(&index) {
        let (mut values, mut present) = (vec![V::default(); take], vec![0; take.div_ceil(64)]);
        let mut ranks = vec![0; take];
        let found = table.get_batch_by(algorithm, queries, &mut values, &mut present).expect("ends");
        let ones: u32 = present.iter().map(|word| word.count_ones()).sum();
        assert_eq!(found, ones as usize, "{algorithm:?}");
        table.lower_bound_batch_by::<K, V>(algorithm, queries, &mut ranks).expect("ends");
        assert!(ranks.iter().all(|&rank| rank <= index.len()), "{algorithm:?}");
        asked += 2 * take as u64;
    }
    asked
}
