//! Streams whose pieces a device answers, here a CPU that runs the kernels: all that the CPU answers, tuple
//! by tuple, for pieces with borders everywhere. Without g++ these tests skip, and say so.

use pleach::{Index, Key, KeyType, Value, ValueType};
use pleach_builder::{BuildOptions, Column, Strings, build_bytes};
use pleach_gpu::{Gpu, GpuOptions, LaneOrder};
use pleach_relation::expr::{Predicate, Projection};
use pleach_relation::{
    Answer, AsOf, Device, How, Kept, OnGpu, Reduction, Relation, RelationError, SetOperation, SetRule,
    StreamOptions, asof, band, join, product, project, reduce, select_where, set,
};

fn mix(seed: u64) -> u64 {
    (seed ^ seed >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17
}

/// Keys that rise by 0 to 2, so that some occur more than once.
fn index<K: Key, V: Value>(count: u64, seed: u64, key: impl Fn(u64) -> K, value: impl Fn(u64) -> V) -> Index {
    let mut at = 0;
    let tuples: Vec<(K, V)> = (0..count)
        .map(|i| {
            at += mix(seed + i) % 3;
            (key(at), value(mix(seed ^ i)))
        })
        .collect();
    Index::from_bytes(build_bytes(&tuples, &BuildOptions::default()).unwrap()).unwrap()
}

fn device(pieces: usize, options: GpuOptions) -> Option<OnGpu> {
    match Gpu::emulated(LaneOrder::Random(5), options) {
        Ok(gpu) => Some(OnGpu::new(gpu).expect("there is room").with_pieces(pieces)),
        Err(error) => {
            assert!(std::env::var_os("PLEACH_REQUIRE_EMULATION").is_none_or(|value| value != "1"), "{error}");
            eprintln!("SKIPPED: {error}");
            None
        }
    }
}

/// Asks the CPU and the device.
fn same<'a>(
    what: &str,
    device: &'a OnGpu,
    ask: impl Fn(StreamOptions<'a>) -> Result<Answer<'a>, RelationError>,
) -> usize {
    let there = StreamOptions { device: Some(device), ..StreamOptions::default() };
    let answer = ask(there).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(answer.plan().contains("answered by cuda:0"), "{what}: {}", answer.plan());
    let (schema, found) = (answer.schema().clone(), answer.collect().unwrap());
    let here = ask(StreamOptions::default()).unwrap();
    assert_eq!(&schema, here.schema(), "{what}");
    let wanted = here.collect().unwrap();
    assert!(found == wanted, "{what}: {} tuples, wanted {}", found.len(), wanted.len());
    assert_eq!(ask(there).unwrap().count().unwrap(), wanted.len() as u64, "{what}");
    wanted.len()
}

/// All operators of two inputs.
fn two(device: &OnGpu, left: Relation<'_>, right: Relation<'_>, what: &str) {
    for &operation in SetOperation::ALL {
        for &rule in SetRule::ALL {
            let what = format!("{what}: {operation} of {rule}s");
            let tuples = same(&what, device, |options| set(operation, rule, left, right, options));
            assert!(tuples > 0, "{what}");
        }
    }
    for &how in How::ALL {
        let what = format!("{what}: {how} join");
        assert!(same(&what, device, |options| join(how, left, right, options)) > 0, "{what}");
    }
}

#[test]
fn a_device_answers_as_the_cpu_does() {
    let Some(device) = device(900, GpuOptions::default()) else { return };
    let (a, b) = (index(2500, 1, |key| key, |value| value), index(1900, 77, |key| key, |value| value));
    two(&device, Relation::from_index(&a), Relation::from_index(&b), "u64");
    let (few, some) = (index(9, 5, |key| 90 * key, |value| value), index(40, 6, |key| key, |value| value));
    let input = Relation::from_index(&a);
    same("product", &device, |options| {
        product(Relation::from_index(&few), Relation::from_index(&some), options)
    });
    for kept in [Kept::Left, Kept::Right] {
        let sides = (Relation::from_index(&few), Relation::from_index(&some));
        same("one side of a product", &device, |options| {
            product(sides.0, sides.1, options).map(|answer| answer.keep(kept))
        });
        same("one side of a join", &device, |options| {
            join(How::Full, sides.0, sides.1, options).map(|answer| answer.keep(kept))
        });
    }
    for operation in Reduction::ALL {
        if let Reduction::Sum | Reduction::Avg = operation {
            continue;
        }
        same(operation.name(), &device, |options| reduce(input, *operation, options));
    }
    let signed = index(2500, 3, |key| key.cast_signed() - 900, |value| value.cast_signed() - (1 << 46));
    let signed = Relation::from_index(&signed);
    for operation in Reduction::ALL.iter().filter(|&&one| one != Reduction::Avg) {
        same(operation.name(), &device, |options| reduce(signed, *operation, options));
    }
    for condition in
        ["value & 3 = 1", "key in (5, 90, 91, 1200) or value % 7 < 3", "rank % 5 = 2 and value > 99"]
    {
        for input in [input, signed] {
            let parsed = Predicate::parse(condition, &input.expr_schema().unwrap()).unwrap();
            let tuples = same(condition, &device, |options| select_where(input, &parsed, options));
            assert!(tuples > 0 && tuples < 2500, "{condition}: {tuples}");
        }
    }
    for columns in
        ["key,value", "value,key", "key[3:61],value[0:32]", "key,low=value[0:16],high=value[40:16]", "key"]
    {
        let parsed = Projection::parse(columns, &input.expr_schema().unwrap()).unwrap();
        same(columns, &device, |options| project(input, &parsed, options));
    }
}

/// Parts of sums, which pieces of a device make, need not fit where the whole does.
#[test]
fn only_sums_that_do_not_fit_are_refused() {
    let Some(device) = device(600, GpuOptions::default()) else { return };
    let of = |last: i64| {
        let value = move |i: i64| match i {
            3000 => last,
            i if i < 1500 => i64::MAX - 1,
            _ => -(i64::MAX - 1),
        };
        let tuples: Vec<(u32, i64)> = (0..3001).map(|i| (7, value(i))).collect();
        Index::from_bytes(build_bytes(&tuples, &BuildOptions::default()).unwrap()).unwrap()
    };
    for last in [0, 5, i64::MAX, i64::MIN] {
        let file = of(last);
        same("sum", &device, |options| reduce(Relation::from_index(&file), Reduction::Sum, options));
    }
    let tuples = [(7u32, i64::MAX), (7, 1), (9, 5)];
    let file = Index::from_bytes(build_bytes(&tuples, &BuildOptions::default()).unwrap()).unwrap();
    let there = StreamOptions { device: Some(&device), ..StreamOptions::default() };
    let refused = reduce(Relation::from_index(&file), Reduction::Sum, there).unwrap().collect().unwrap_err();
    assert!(refused.to_string().starts_with("sum overflows: key U32(7)"), "{refused}");
}

/// Values that no device holds stay here: it says which tuples answer.
#[test]
fn strings_stay_where_they_are() {
    let Some(device) = device(700, GpuOptions::default()) else { return };
    let columns = |count: u64, seed: u64| {
        let mut strings = Strings::default();
        let mut key = 0;
        let keys = (0..count).map(|i| {
            key += mix(seed + i) % 3;
            strings.push(format!("{}", mix(i + seed)).as_bytes());
            key
        });
        (Column::U64(keys.collect()), Column::Bytes(strings))
    };
    let types = (KeyType::U64, ValueType::Utf8);
    let (a, b) = (columns(1000, 4), columns(800, 9));
    let (left, right) = (
        Relation::from_columns("left", types, &a.0, &a.1).unwrap(),
        Relation::from_columns("right", types, &b.0, &b.1).unwrap(),
    );
    two(&device, left, right, "strings");
    let fixed = |seed: u64| {
        let (keys, _) = columns(700, seed);
        let mut strings = Strings::default();
        (0..keys.len()).for_each(|i| strings.push(&(mix(seed + i as u64) as u128).to_be_bytes()));
        (keys, Column::Bytes(strings))
    };
    let (a, b, types) = (fixed(4), fixed(9), (KeyType::U64, ValueType::Fixed(16)));
    let sides = (
        Relation::from_columns("left", types, &a.0, &a.1).unwrap(),
        Relation::from_columns("right", types, &b.0, &b.1).unwrap(),
    );
    two(&device, sides.0, sides.1, "strings of one length");
    for kept in [Kept::Left, Kept::Right] {
        same("one side", &device, |options| {
            join(How::Full, sides.0, sides.1, options).map(|answer| answer.keep(kept))
        });
    }
    let condition = Predicate::parse("key & 5 = 4", &left.expr_schema().unwrap()).unwrap();
    same("select", &device, |options| select_where(left, &condition, options));
    same("count", &device, |options| reduce(left, Reduction::Count, options));
}

#[test]
fn what_does_not_fit_is_answered_here_and_what_cannot_be_is_refused() {
    // Room for a piece, not for all pairs of its keys.
    let options = GpuOptions { memory_bytes: Some(200 << 10), ..GpuOptions::default() };
    let Some(device) = device(usize::MAX, options) else { return };
    assert!(device.piece_tuples() < 3000, "{}", device.piece_tuples());
    let equal = index(1000, 1, |_| 7u64, |value| value);
    let equal = Relation::from_index(&equal);
    same("all equal", &device, |options| join(How::Inner, equal, equal, options));
    let a = index(100, 1, |key| key, |value| value as f64);
    let a = Relation::from_index(&a);
    let there = StreamOptions { device: Some(&device), ..StreamOptions::default() };
    let refused = |result: Result<Answer<'_>, RelationError>, what: &str| {
        let error = result.map(drop).expect_err(what).to_string();
        assert!(error.contains(what) && error.contains("--device cpu"), "{error}");
    };
    refused(reduce(a, Reduction::Sum, there), "sums of floats");
    refused(reduce(a, Reduction::Avg, there), "means");
    let condition = Predicate::parse("value < 0.5", &a.expr_schema().unwrap()).unwrap();
    refused(select_where(a, &condition, there), "the condition value");
    let columns = Projection::parse("key,rank", &a.expr_schema().unwrap()).unwrap();
    refused(project(a, &columns, there), "the columns key,rank");
    refused(asof(AsOf::Nearest, None, How::Inner, a, a, there), "as-of joins");
    refused(band(&1_u64.into(), How::Semi, a, a, there), "band joins");
}
