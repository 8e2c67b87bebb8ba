//! Batches in arrays of other libraries, against maps: every type of keys asked of every type of file.

use pleach::{Index, Key, Near, Value};
use pleach_builder::{BuildOptions, build_slice};
use pleach_gpu::{DeviceBuffer, Foreign, Gpu, GpuError, GpuTable, Lane, LookUp, Residence, Stream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Lengths of batches: none, one, around words of the bitmap, more than a block.
const COUNTS: [usize; 8] = [0, 1, 7, 31, 32, 33, 100, 700];

/// A number of any type: an integer, or a float by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Number {
    Integer(i128),
    Float(u64),
}

impl Number {
    /// Returns the number as a key of a file: of integers, or of floats.
    fn key(self, is_float: bool) -> Option<Self> {
        match self {
            Self::Integer(number) if is_float => {
                let near = number as f64;
                // -0.0 is 0.0.
                (near as i128 == number).then(|| Self::Float((near + 0.0).to_bits()))
            }
            Self::Float(bits) if is_float => {
                let float = f64::from_bits(bits);
                (!float.is_nan()).then(|| Self::Float((float + 0.0).to_bits()))
            }
            Self::Integer(_) => Some(self),
            Self::Float(_) => None,
        }
    }
}

/// Numbers of a type at its edges and between, and their bytes.
fn numbers(lane: Lane, count: usize) -> (Vec<Number>, Vec<u8>) {
    let (mut all, mut bytes) = (Vec::new(), Vec::new());
    macro_rules! integers {
        ($type:ident) => {{
            let edges = [0, 1, $type::MAX, $type::MIN, $type::MAX / 2, $type::MAX - 1, $type::MAX / 2 + 1];
            for at in 0..count {
                let number = match at % 3 {
                    0 => edges[at / 3 % edges.len()],
                    1 => (at % 120) as $type,
                    _ => crate::suite::mix(at as u64) as $type,
                };
                all.push(Number::Integer(number as i128));
                bytes.extend(number.to_le_bytes());
            }
        }};
    }
    macro_rules! floats {
        ($type:ident) => {{
            let edges = [0.0, -0.0, 1.5, $type::NAN, $type::INFINITY, $type::NEG_INFINITY, $type::MAX];
            for at in 0..count {
                let number = if at % 2 == 0 { edges[at / 2 % edges.len()] } else { (at % 120) as $type };
                all.push(Number::Float(f64::from(number).to_bits()));
                bytes.extend(number.to_le_bytes());
            }
        }};
    }
    match lane {
        Lane::U8 => integers!(u8),
        Lane::U16 => integers!(u16),
        Lane::U32 => integers!(u32),
        Lane::U64 => integers!(u64),
        Lane::I8 => integers!(i8),
        Lane::I16 => integers!(i16),
        Lane::I32 => integers!(i32),
        Lane::I64 => integers!(i64),
        Lane::F32 => floats!(f32),
        Lane::F64 => floats!(f64),
    }
    (all, bytes)
}

/// A table on a device, and what is in it: keys and the bits of their values.
struct Held {
    table: GpuTable<'static>,
    map: BTreeMap<Number, u64>,
    is_float: bool,
    value_bytes: usize,
    _folder: tempfile::TempDir,
}

fn held<K: Key, V: Value>(
    gpu: &Gpu,
    tuples: &[(K, V)],
    number: impl Fn(K) -> Number,
    bits: impl Fn(V) -> u64,
) -> Held {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.pleach");
    build_slice(tuples, &path, &BuildOptions::default()).expect("builds");
    let index = Arc::new(Index::open(&path).expect("opens"));
    let is_float = index.key_type() == pleach::KeyType::F64;
    let value_bytes = index.header().geometry.value_bytes;
    let table = GpuTable::of_shared(index, gpu, Residence::Device).expect("a table");
    let map = tuples.iter().rev().map(|&(key, value)| (number(key), bits(value))).collect();
    Held { table, map, is_float, value_bytes, _folder: folder }
}

/// Returns the numbers in a device array.
fn words(stream: &Stream, buffer: &DeviceBuffer, count: usize, bytes: usize) -> Vec<u64> {
    let mut raw = vec![0; count * bytes];
    buffer.copy_to_host(stream, &mut raw).expect("copied");
    let word = |chunk: &[u8]| {
        let mut whole = [0; 8];
        whole[..bytes].copy_from_slice(chunk);
        u64::from_le_bytes(whole)
    };
    raw.chunks(bytes).map(word).collect()
}

/// Asks for values and presence, in all forms, and for ranks.
fn compare(held: &Held, stream: &Stream, lane: Lane, count: usize) {
    let (asked, raw) = numbers(lane, count);
    let gpu = held.table.gpu();
    let keys = DeviceBuffer::from_host(stream, &raw).expect("copied");
    let values = DeviceBuffer::new(gpu, count as u64 * 8).expect("memory");
    let found = DeviceBuffer::new(gpu, count as u64).expect("memory");
    let expected: Vec<Option<u64>> = asked
        .iter()
        .map(|number| number.key(held.is_float).and_then(|key| held.map.get(&key).copied()))
        .collect();
    for (is_wide, missing, wants_found) in [
        (false, None, true),
        (true, Some(u64::MAX), true),
        (true, Some(5), false),
        (false, Some(7), true),
        (false, None, false),
    ] {
        let is_wide = is_wide && held.table.index().value_type() != pleach::ValueType::F64;
        let batch = Foreign {
            keys: keys.address(),
            count: count as u64,
            lane: Some(lane),
            values: values.address(),
            is_wide,
            missing,
            found: if wants_found { found.address() } else { 0 },
            ..Foreign::default()
        };
        let scratch = DeviceBuffer::new(gpu, held.table.foreign_bytes(&batch)).expect("memory");
        let place = (scratch.address(), scratch.bytes());
        // SAFETY: the buffers have a number for each key, and live until the stream was waited for.
        let queued = unsafe { held.table.get_foreign(stream, &batch, place) };
        stream.synchronize().expect("answered");
        queued.expect("queued");
        let out_bytes = if is_wide { 8 } else { held.value_bytes };
        let mask = if out_bytes == 4 { u64::from(u32::MAX) } else { u64::MAX };
        let wanted: Vec<u64> =
            expected.iter().map(|value| value.unwrap_or(missing.unwrap_or(0)) & mask).collect();
        assert_eq!(words(stream, &values, count, out_bytes), wanted, "{lane:?} {batch:?}");
        if wants_found {
            let wanted: Vec<u64> = expected.iter().map(|value| value.is_some().into()).collect();
            assert_eq!(words(stream, &found, count, 1), wanted, "{lane:?} {batch:?}");
        }
    }
    let ranks = DeviceBuffer::new(gpu, count as u64 * 8).expect("memory");
    let batch = Foreign {
        keys: keys.address(),
        count: count as u64,
        lane: Some(lane),
        ranks: ranks.address(),
        ..Foreign::default()
    };
    let scratch = DeviceBuffer::new(gpu, held.table.foreign_bytes(&batch)).expect("memory");
    // SAFETY: as above.
    let queued = unsafe { held.table.get_foreign(stream, &batch, (scratch.address(), scratch.bytes())) };
    stream.synchronize().expect("answered");
    match queued {
        Ok(()) if !held.is_float => {
            let wanted: Vec<u64> =
                asked.iter().map(|number| held.map.range(..number).count() as u64).collect();
            assert_eq!(words(stream, &ranks, count, 8), wanted, "{lane:?}");
        }
        Ok(()) => {}
        Err(error) => assert!(matches!(error, GpuError::Lane { .. }), "{error}"),
    }
}

/// Asks for floors and ceilings: all parts of the tuples, with narrow and with wide values.
fn compare_near(held: &Held, stream: &Stream, lane: Lane, count: usize) {
    let (asked, raw) = numbers(lane, count);
    let gpu = held.table.gpu();
    let keys = DeviceBuffer::from_host(stream, &raw).expect("copied");
    let room = |each: u64| DeviceBuffer::new(gpu, count as u64 * each).expect("memory");
    let (values, found, ranks, tuple_keys) = (room(8), room(1), room(8), room(16));
    for (near, is_wide) in [(Near::Floor, false), (Near::Ceiling, false), (Near::Floor, true)] {
        let is_wide = is_wide && held.value_bytes == 4 && !held.is_float;
        let batch = Foreign {
            keys: keys.address(),
            count: count as u64,
            lane: Some(lane),
            values: values.address(),
            found: found.address(),
            ranks: ranks.address(),
            look_up: LookUp::Near(near),
            tuple_keys: tuple_keys.address(),
            is_wide,
            ..Foreign::default()
        };
        let scratch = DeviceBuffer::new(gpu, held.table.foreign_bytes(&batch)).expect("memory");
        // SAFETY: the buffers have a number for each key, and live until the stream was waited for.
        let queued = unsafe { held.table.get_foreign(stream, &batch, (scratch.address(), scratch.bytes())) };
        stream.synchronize().expect("answered");
        match queued {
            Ok(()) if !held.is_float => {}
            Ok(()) => continue,
            Err(error) => {
                assert!(matches!(error, GpuError::Lane { .. }), "{error}");
                continue;
            }
        }
        let tuple = |number: &Number| match near {
            Near::Ceiling => held.map.range(number..).next(),
            _ => held.map.range(..=number).next_back(),
        };
        let wanted: Vec<Option<(&Number, &u64)>> = asked.iter().map(tuple).collect();
        let wanted = || wanted.iter();
        let bytes = held.table.index().header().key_type.bytes();
        let key = |number: &Number| {
            let &Number::Integer(integer) = number else { return 0 };
            integer as u64 & u64::MAX >> (64 - 8 * bytes.min(8))
        };
        let what = format!("{lane:?} {batch:?}");
        let out_bytes = if is_wide { 8 } else { held.value_bytes };
        let mask = if out_bytes == 4 { u64::from(u32::MAX) } else { u64::MAX };
        let value: Vec<u64> = wanted().map(|tuple| tuple.map_or(0, |tuple| tuple.1 & mask)).collect();
        assert_eq!(words(stream, &values, count, out_bytes), value, "{what}");
        let is_there: Vec<u64> = wanted().map(|tuple| tuple.is_some().into()).collect();
        assert_eq!(words(stream, &found, count, 1), is_there, "{what}");
        let own: Vec<u64> = wanted().map(|tuple| tuple.map_or(0, |tuple| key(tuple.0))).collect();
        if bytes <= 8 {
            assert_eq!(words(stream, &tuple_keys, count, bytes), own, "{what}");
        }
        let rank = |number: &Number| held.map.range(..number).count() as u64;
        let rank_words: Vec<u64> =
            wanted().map(|tuple| tuple.map_or(u64::MAX, |tuple| rank(tuple.0))).collect();
        assert_eq!(words(stream, &ranks, count, 8), rank_words, "{what}");
    }
}

/// All types of numbers, asked of files of all types.
pub fn all(gpu: &Gpu) {
    let stream = Stream::new(gpu).expect("a stream");
    let near = |at: i64| if at % 2 == 0 { at / 2 % 150 } else { crate::suite::mix(at as u64) as i64 };
    let tuples = |count: i64| (0..count).map(move |at| (near(at), at - 3));
    let integer = |number: i128| Number::Integer(number);
    let edges = |at: usize, min: i64, max: i64| [min, max, 0, -1, max / 2][at % 5];
    for count in [0, 1, 400] {
        let signed: BTreeMap<i64, i64> = tuples(count)
            .enumerate()
            .map(|(at, (key, value))| {
                (if at > 0 && at < 6 { edges(at, i64::MIN, i64::MAX) } else { key }, value)
            })
            .collect();
        let i64s: Vec<(i64, i64)> = signed.clone().into_iter().collect();
        let u64s: Vec<(u64, u32)> = {
            let map: BTreeMap<u64, u32> =
                i64s.iter().map(|&(key, value)| (key as u64, value as u32)).collect();
            map.into_iter().collect()
        };
        let i32s: Vec<(i32, i32)> = {
            let map: BTreeMap<i32, i32> =
                i64s.iter().map(|&(key, value)| (key as i32, value as i32)).collect();
            map.into_iter().collect()
        };
        let u32s: Vec<(u32, u64)> = {
            let map: BTreeMap<u32, u64> =
                i64s.iter().map(|&(key, value)| (key as u32, value as u64)).collect();
            map.into_iter().collect()
        };
        let f64s: Vec<(f64, f64)> = {
            let map: BTreeMap<i64, i64> =
                i64s.iter().map(|&(key, value)| (key >> 12 << 12 | key & 0xFF, value)).collect();
            let mut all: Vec<(f64, f64)> =
                map.iter().map(|(&key, &value)| (key as f64, value as f64)).collect();
            all.sort_by(|one, other| one.0.total_cmp(&other.0));
            all.dedup_by_key(|tuple| tuple.0);
            all
        };
        let u128s: Vec<(u128, u64)> = {
            let map: BTreeMap<u128, u64> = u64s
                .iter()
                .map(|&(key, value)| (u128::from(key) << (key % 3 * 30), u64::from(value)))
                .collect();
            map.into_iter().collect()
        };
        let files = [
            held(gpu, &i64s, |key| integer(key.into()), |value| value as u64),
            held(gpu, &u64s, |key| integer(key.into()), u64::from),
            held(gpu, &i32s, |key| integer(key.into()), |value| i64::from(value) as u64),
            held(gpu, &u32s, |key| integer(key.into()), |value| value),
            held(gpu, &f64s, |key| Number::Float((key + 0.0).to_bits()), |value: f64| value.to_bits()),
            held(gpu, &u128s, |key| integer(key as i128), |value| value),
        ];
        for held in &files {
            for lane in Lane::ALL {
                let is_refused = matches!(lane, Lane::F32 | Lane::F64) && !held.is_float;
                if is_refused {
                    refused(held, &stream, lane);
                    continue;
                }
                COUNTS.iter().for_each(|&count| compare(held, &stream, lane, count));
                [0, 33, 700].into_iter().for_each(|count| compare_near(held, &stream, lane, count));
                if lane == Lane::I64 {
                    // Long enough for a search that writes presence as bytes.
                    compare(held, &stream, lane, 20_000);
                    compare_near(held, &stream, lane, 20_000);
                }
            }
            held.table.prepare_foreign().expect("prepared");
        }
    }
}

fn refused(held: &Held, stream: &Stream, lane: Lane) {
    let batch = Foreign { count: 1, lane: Some(lane), ..Foreign::default() };
    // SAFETY: it is refused before anything is read.
    let refused = unsafe { held.table.get_foreign(stream, &batch, (0, u64::MAX)) };
    assert!(matches!(refused, Err(GpuError::Lane { .. })), "{refused:?}");
    let batch = Foreign { count: 1000, ..Foreign::default() };
    // SAFETY: as above.
    let refused = unsafe { held.table.get_foreign(stream, &batch, (0, 100)) };
    assert!(matches!(refused, Err(GpuError::Buffer { name: "scratch", .. })), "{refused:?}");
}
