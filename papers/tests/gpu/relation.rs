//! The operators of the paper on relational algebra against loops over both inputs: all CTA-joins, blocks, sections,
//! partitions and pages so small that few tuples cross many edges, duplicates on both sides, pages in and out.

use crate::suite::mix;
use pleach_gpu::{Gpu, GpuError, Stream};
use pleach_papers::gpu::relation::{
    Combine, CtaJoin, Form, Operation, PaperOptions, Predicate, Projection, Relation, cta_join, merge,
    partition, product, project, select, stream_blocks, to_dense, to_pages,
};

/// A tuple of results: key, left value, right value; 0 where there is none.
type Tuple = (u64, u64, u64);

/// Bytes of keys, left values, right values.
type Widths = [u8; 3];

fn bytes_of(words: impl Iterator<Item = u64>, width: u8) -> Vec<u8> {
    words.flat_map(|word| word.to_le_bytes().into_iter().take(width.into())).collect()
}

fn words_of(bytes: &[u8], width: u8) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
    bytes.chunks_exact(width.into()).map(word).collect()
}

/// Tuples of sorted keys, whose values say their side and rank.
fn tuples_of(keys: &[u64], side: u64) -> Vec<(u64, u64)> {
    keys.iter().zip(0..).map(|(&key, rank)| (key, side << 30 | rank)).collect()
}

fn relation(stream: &Stream, tuples: &[(u64, u64)], [key_bytes, value_bytes]: [u8; 2]) -> Relation {
    let keys = bytes_of(tuples.iter().map(|tuple| tuple.0), key_bytes);
    let values = bytes_of(tuples.iter().map(|tuple| tuple.1), value_bytes);
    let columns = [(&values[..], value_bytes)];
    let columns = if value_bytes > 0 { &columns[..] } else { &[] };
    Relation::from_host(stream, (&keys, key_bytes), columns).expect("fits")
}

/// All tuples of results, whose values have these widths.
fn read(stream: &Stream, relation: &Relation, widths: [u8; 2]) -> Vec<Tuple> {
    let (dense, _) = to_dense(stream, relation).expect("fits");
    let mut columns = vec![(dense.keys(), dense.key_bytes())];
    columns.extend(dense.columns().iter().map(|column| (&column.buffer, column.bytes)));
    let mut columns = columns.into_iter().map(|(buffer, width)| {
        let mut bytes = vec![0; dense.tuples() as usize * usize::from(width)];
        buffer.copy_to_host(stream, &mut bytes).expect("copied");
        words_of(&bytes, width)
    });
    let keys = columns.next().expect("keys");
    let mut values = widths.map(|width| {
        if width > 0 { columns.next().expect("a column") } else { vec![0; keys.len()] }.into_iter()
    });
    let mut next = |side: usize| values[side].next().expect("as many values");
    let tuples = keys.iter().map(|&key| (key, next(0), next(1))).collect();
    check_pages(stream, relation);
    tuples
}

/// Links of a list of pages go through its directory.
fn check_pages(stream: &Stream, relation: &Relation) {
    let Some(list) = relation.pages() else { return };
    let numbers = |buffer: &pleach_gpu::DeviceBuffer, count: u64, width: u8| {
        let mut bytes = vec![0; (count * u64::from(width)) as usize];
        buffer.copy_to_host(stream, &mut bytes).expect("copied");
        words_of(&bytes, width)
    };
    let directory = numbers(&list.directory, list.pages, 4);
    let starts = numbers(&list.starts, list.pages + 1, 8);
    assert_eq!(starts.last(), Some(&relation.tuples()));
    let has_tuples = |pair: &[u64]| (1..=list.page_tuples.into()).contains(&(pair[1] - pair[0]));
    assert!(starts.windows(2).all(has_tuples), "{starts:?}");
    for (at, &page) in directory.iter().enumerate() {
        let next = directory.get(at + 1).copied().unwrap_or(u32::MAX.into());
        // Nobody wrote those of pages that are free.
        assert_eq!(numbers(&list.links.part(page * 4, 4), 1, 4), [next], "page {at}");
    }
}

/// What an operation answers, by loops over both inputs.
fn wanted(
    operation: Operation,
    left: &[(u64, u64)],
    right: &[(u64, u64)],
    [left_bytes, right_bytes]: [u8; 2],
) -> Vec<Tuple> {
    let cut = |value: u64, bytes: u8| if bytes == 0 { 0 } else { value };
    if operation == Operation::Join {
        let pairs = left.iter().flat_map(|l| right.iter().filter(|r| r.0 == l.0).map(move |r| (l, r)));
        return pairs.map(|(l, r)| (l.0, cut(l.1, left_bytes), cut(r.1, right_bytes))).collect();
    }
    let has = |side: &[(u64, u64)], key: u64| side.iter().any(|tuple| tuple.0 == key);
    let mut all: Vec<(u64, u64)> = match operation {
        Operation::Intersection => left.iter().filter(|tuple| has(right, tuple.0)).copied().collect(),
        Operation::Difference => left.iter().filter(|tuple| !has(right, tuple.0)).copied().collect(),
        _ => left.iter().chain(right).copied().collect(),
    };
    all.sort_by_key(|tuple| tuple.0);
    all.dedup_by_key(|tuple| tuple.0);
    all.into_iter().map(|(key, value)| (key, cut(value, left_bytes), 0)).collect()
}

/// Shapes of inputs: the keys of both sides, sorted.
fn inputs(key_bytes: u8) -> Vec<(&'static str, Vec<u64>, Vec<u64>)> {
    let most = if key_bytes == 4 { u32::MAX.into() } else { u64::MAX };
    let sorted = |mut keys: Vec<u64>| {
        keys.sort_unstable();
        keys
    };
    let random =
        |count: u64, seed: u64, span: u64| sorted((0..count).map(|i| mix(seed + i) % span).collect());
    vec![
        ("sparse", random(300, 1, 1 << 31), random(280, 1, 1 << 31)),
        ("half", (0..260).map(|i| 2 * i).collect(), (0..250).map(|i| 3 * i + 1).collect()),
        ("duplicates", random(150, 3, 40), random(130, 9, 40)),
        ("aligned", (5..205).collect(), (5..205).collect()),
        ("disjoint", (0..90).collect(), (500..610).collect()),
        ("all equal", vec![7; 75], vec![7; 41]),
        ("ends", vec![0, 0, 1, most - 1, most, most], vec![0, 2, most, most]),
        (
            "runs",
            sorted((0..160).map(|i| [3, 5, 9][i % 3]).collect()),
            sorted((0..99).map(|i| [2, 5][i % 2]).collect()),
        ),
        ("short and long", vec![100, 101, 333], random(300, 5, 400)),
        ("right empty", (0..50).collect(), vec![]),
        ("left empty", vec![], vec![1, 1, 4]),
        ("both empty", vec![], vec![]),
        ("one", vec![3], vec![3]),
    ]
}

fn options(join: CtaJoin, key_bytes: u8, turn: usize) -> PaperOptions {
    let tuples = [16, 32, 6][turn % 3];
    PaperOptions {
        cta_join: join,
        threads: if tuples == 32 && join == CtaJoin::Network { 64 } else { 32 },
        block_bytes: tuples * u32::from(key_bytes),
        partitions: [6, 1, 7][turn % 3],
        section_tuples: [4000, 20, 50][(turn / 3) % 3],
        form: if turn % 4 == 3 { Form::Pages([10, 64][turn / 4 % 2]) } else { Form::Dense },
    }
}

/// Answers an operation in dense columns and from pages, and compares.
fn check(
    stream: &Stream,
    operation: Operation,
    (name, left, right): &(&str, Vec<u64>, Vec<u64>),
    [key_bytes, left_bytes, right_bytes]: Widths,
    options: &PaperOptions,
) {
    let (left, right) = (tuples_of(left, 1), tuples_of(right, 2));
    let widths = match operation {
        Operation::Join => [left_bytes, right_bytes],
        _ => [left_bytes, 0],
    };
    let right_bytes = if operation == Operation::Union { left_bytes } else { right_bytes };
    let wanted = wanted(operation, &left, &right, widths);
    let mut on_device = [
        relation(stream, &left, [key_bytes, left_bytes]),
        relation(stream, &right, [key_bytes, right_bytes]),
    ];
    if options.form != Form::Dense {
        on_device = on_device.map(|side| to_pages(stream, &side, 13).expect("fits").0);
    }
    let what = format!("{}: {name}, {widths:?}, {options:?}", operation.name());
    let merged = merge(stream, operation, (&on_device[0], &on_device[1]), options)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = read(stream, &merged.relation, widths);
    assert_eq!(found.len(), wanted.len(), "{what}");
    assert!(
        found == wanted,
        "{what}: {:?}",
        found.iter().zip(&wanted).find(|(found, wanted)| found != wanted)
    );
    // Every key of the left side stands at most once, so there are no more results than are expected.
    let is_unique = left.windows(2).all(|pair| pair[0].0 != pair[1].0);
    assert!(!merged.is_retried || (operation == Operation::Join && !is_unique), "{what}");
    if *name == "all equal" && operation == Operation::Join {
        assert!(merged.is_retried, "{what}");
    }
    assert_eq!(merged.relation.pages().is_some(), options.form != Form::Dense, "{what}");
}

/// All five CTA-joins alone, at the edges of threads and of blocking.
fn cta_joins(stream: &Stream, key_bytes: u8) {
    let most = if key_bytes == 4 { u32::MAX.into() } else { u64::MAX };
    for join in CtaJoin::ALL {
        let full = 32 * u64::from(join.blocking());
        for (tuples, kind) in [(1, 0), (full - 1, 0), (full, 0), (full, 1), (full, 2), (full, 3), (9, 2)] {
            let key = |i: u64, side: u64| match kind {
                0 => 2 * i + side * (i % 2),
                1 => i / 5 + side * 3,
                2 => most,
                _ => mix(i + 1000 * side) % (2 * tuples),
            };
            let keys = |side: u64| {
                let mut keys: Vec<u64> = (0..tuples).map(|i| key(i, side)).collect();
                keys.sort_unstable();
                tuples_of(&keys, side)
            };
            let (left, right) = (keys(0), keys(1));
            let all = wanted(Operation::Join, &left, &right, [0, 0]);
            let sides = [&left, &right].map(|side| relation(stream, side, [key_bytes, 0]));
            let (cycles, found) = cta_join(stream, join, (&sides[0], &sides[1]), 32, 2).expect("runs");
            let what = format!("{join:?}: {tuples} tuples of kind {kind}");
            assert!(cycles.len() == 2 && cycles.iter().all(|cta| cta.outputs == all.len() as u64), "{what}");
            let wanted: Vec<u64> = all.iter().map(|tuple| tuple.0).take(tuples as usize).collect();
            assert_eq!(words_of(&found, key_bytes), wanted, "{what}");
        }
    }
}

/// SELECT, PROJECT and PRODUCT, from and to both forms.
fn unary(stream: &Stream, [key_bytes, value_bytes]: [u8; 2]) {
    for count in [0, 1, 1023, 1025, 2500] {
        let keys: Vec<u64> = (0..count).map(|i| 3 * i / 2).collect();
        let tuples = tuples_of(&keys, 1);
        let dense = relation(stream, &tuples, [key_bytes, value_bytes]);
        let (paged, _) = to_pages(stream, &dense, 100).expect("fits");
        let back = read(stream, &paged, [value_bytes, 0]);
        let value = |value: u64| if value_bytes == 0 { 0 } else { value };
        let same: Vec<Tuple> = tuples.iter().map(|tuple| (tuple.0, value(tuple.1), 0)).collect();
        assert_eq!(back, same);
        let predicates = [(0, u64::MAX, 0, 0), (5, 900, 3, 1), (7, 6, 0, 0), (1, 3000, 1, 1)];
        for (number, (low, high, mask, bits)) in predicates.into_iter().enumerate() {
            let predicate = Predicate { low, high, mask, bits };
            let is_taken = |key: u64| key >= low && key <= high && key & mask == bits;
            let wanted: Vec<Tuple> = same.iter().filter(|tuple| is_taken(tuple.0)).copied().collect();
            let from = [&dense, &paged][number % 2];
            let form = [Form::Dense, Form::Pages(64)][number / 2];
            let taken = select(stream, from, &predicate, [1, 3][number % 2], form).expect("fits");
            assert_eq!(read(stream, &taken.relation, [value_bytes, 0]), wanted, "{count}: {predicate:?}");
        }
        let projection = Projection { key_shift: 3, has_values: true, value_shift: 1, value_mask: 0xFF };
        let wanted: Vec<Tuple> = same.iter().map(|tuple| (tuple.0 >> 3, tuple.1 >> 1 & 0xFF, 0)).collect();
        for from in [&dense, &paged] {
            let (projected, _) = project(stream, from, &projection).expect("fits");
            assert_eq!(read(stream, &projected, [value_bytes, 0]), wanted);
        }
        let few = relation(stream, &tuples[..tuples.len().min(18)], [key_bytes, value_bytes]);
        let pairs = same.iter().take(18).flat_map(|left| same.iter().map(move |right| (left, right)));
        let wanted: Vec<Tuple> = pairs.map(|(left, right)| (left.0, left.1, right.1)).collect();
        let (both, _) = product(stream, (&few, &paged), Combine::Both).expect("fits");
        assert_eq!(read(stream, &both, [value_bytes; 2]), wanted);
        if value_bytes > 0 {
            let (sums, _) = product(stream, (&few, &dense), Combine::Sum).expect("fits");
            let sum = |&(key, left, right): &Tuple| (key, left + right, 0);
            assert_eq!(read(stream, &sums, [value_bytes, 0]), wanted.iter().map(sum).collect::<Vec<_>>());
        }
    }
}

/// Partitions hold all tuples that match, in order, and say how many they leave out; streams count what they discard.
fn partitions(stream: &Stream) {
    for input in inputs(4) {
        let (left, right) = (tuples_of(&input.1, 1), tuples_of(&input.2, 2));
        let sides = [&left, &right].map(|side| relation(stream, side, [4, 0]));
        let sides = (&sides[0], &sides[1]);
        let found = partition(stream, sides, 12, Operation::Join).expect("runs");
        assert_eq!(found.ranges.len(), 12);
        let tuples: u64 = found.ranges.iter().map(pleach_papers::gpu::relation::Range::tuples).sum();
        assert_eq!(tuples + found.discarded, (left.len() + right.len()) as u64, "{}", input.0);
        let mut last = (0, 0);
        let mut pairs = 0;
        for range in &found.ranges {
            assert!(range.left >= last.0 && range.right >= last.1, "{}", input.0);
            let part = |side: &[(u64, u64)], from: u64, to: u64| side[from as usize..to as usize].to_vec();
            let lefts = part(&left, range.left, range.left_end);
            pairs +=
                wanted(Operation::Join, &lefts, &part(&right, range.right, range.right_end), [0, 0]).len();
            last = (range.left_end, range.right_end);
        }
        assert_eq!(pairs, wanted(Operation::Join, &left, &right, [0, 0]).len(), "{}", input.0);
        let options = PaperOptions { partitions: 1, ..options(CtaJoin::BinarySearch, 4, 0) };
        let (counted, stages) = stream_blocks(stream, sides, &options).expect("runs");
        assert!(counted.discarded_by_blocks <= (left.len() + right.len()) as u64, "{}", input.0);
        assert_eq!(stages.all.last().map(|stage| stage.0), Some("stream"));
        if input.0 == "aligned" {
            assert!(counted.blocks >= 2 * 200 / 16 && counted.discarded_by_blocks == 0, "{counted:?}");
        }
    }
    // Blocks of one side that lie in a gap of the other: all of them but those at its edges.
    let (left, right) = (tuples_of(&[0, 9000], 1), tuples_of(&(0..1000).collect::<Vec<_>>(), 2));
    let right: Vec<_> = right.into_iter().chain([(9000, 0)]).collect();
    let sides = [&left, &right].map(|side| relation(stream, side, [4, 0]));
    let options = PaperOptions { partitions: 1, ..options(CtaJoin::BinarySearch, 4, 0) };
    let (counted, _) = stream_blocks(stream, (&sides[0], &sides[1]), &options).expect("runs");
    assert!((900..1000).contains(&counted.discarded_by_blocks), "{counted:?}");
}

/// What no CTA can do is an error.
fn refusals(stream: &Stream) {
    let made = |bytes: [u8; 2]| relation(stream, &tuples_of(&[1, 2, 3], 1), bytes);
    let (narrow, wide, valued) = (made([4, 4]), made([8, 4]), made([4, 8]));
    let is_refused = |operation, right: &Relation, options: PaperOptions| {
        let found = merge(stream, operation, (&narrow, right), &options);
        assert!(matches!(found, Err(GpuError::Operator { .. })), "{options:?}: {found:?}");
    };
    let fit = options(CtaJoin::Hash, 4, 0);
    is_refused(Operation::Join, &wide, fit);
    is_refused(Operation::Union, &valued, fit);
    for wrong in [
        PaperOptions { threads: 48, ..fit },
        PaperOptions { threads: 1024, ..fit },
        PaperOptions { block_bytes: 4 * 130, ..fit },
        PaperOptions { block_bytes: 4, ..fit },
        PaperOptions { partitions: 0, ..fit },
        PaperOptions { section_tuples: 0, ..fit },
        PaperOptions { form: Form::Pages(0), ..fit },
    ] {
        is_refused(Operation::Join, &narrow, wrong);
    }
    assert!(Relation::from_host(stream, (&[0; 6], 2), &[]).is_err());
    assert!(to_pages(stream, &narrow, 0).is_err());
}

/// Everything at small sizes: keys of 4 bytes with all CTA-joins, or of 8 bytes with one of them.
pub fn all(gpu: &Gpu, is_wide: bool) {
    let stream = &Stream::new(gpu).expect("a stream");
    let key_bytes = if is_wide { 8 } else { 4 };
    let joins = if is_wide { &[CtaJoin::Hash][..] } else { &CtaJoin::ALL[..] };
    let mut turn = 0;
    for input in inputs(key_bytes) {
        for &join in joins {
            for operation in Operation::ALL {
                let widths = [[0, 0], [4, 4], [8, 4], [0, 8]][turn % 4];
                check(
                    stream,
                    operation,
                    &input,
                    [key_bytes, widths[0], widths[1]],
                    &options(join, key_bytes, turn),
                );
                // Coprime to the periods of shapes and widths.
                turn += 5;
            }
            turn += 1;
        }
    }
    unary(stream, if is_wide { [8, 8] } else { [4, 4] });
    if !is_wide {
        cta_joins(stream, key_bytes);
        unary(stream, [4, 0]);
        partitions(stream);
        refusals(stream);
    }
}

/// Many tuples, against a merge on the CPU: for devices.
#[allow(dead_code, reason = "the tests on an emulated device have no use for it")]
pub fn many(gpu: &Gpu, tuples: u64) {
    let stream = &Stream::new(gpu).expect("a stream");
    for (span, seed) in [(tuples, 1), (tuples * 64, 2), (tuples / 3, 3)] {
        let side = |side: u64| {
            let mut keys: Vec<u64> = (0..tuples).map(|i| mix(i + (side + seed) * tuples) % span).collect();
            keys.sort_unstable();
            tuples_of(&keys, side)
        };
        let (left, right) = (side(0), side(1));
        let sides = [&left, &right].map(|side| relation(stream, side, [4, 4]));
        let mut wanted = Vec::new();
        for &(key, value) in &left {
            let from = right.partition_point(|tuple| tuple.0 < key);
            wanted.extend(
                right[from..].iter().take_while(|tuple| tuple.0 == key).map(|tuple| (key, value, tuple.1)),
            );
        }
        for join in CtaJoin::ALL {
            for form in [Form::Dense, Form::Pages(1000)] {
                let options = PaperOptions { form, partitions: 1000, ..PaperOptions::new(join) };
                let merged = merge(stream, Operation::Join, (&sides[0], &sides[1]), &options).expect("fits");
                assert!(read(stream, &merged.relation, [4, 4]) == wanted, "{join:?} {form:?} {span}");
            }
        }
    }
}
