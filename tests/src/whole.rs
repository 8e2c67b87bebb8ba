//! Small whole files of all types of keys, with all sections there are: what is changed by forgers and fuzzers.

use crate::generate::mix;
use pleach_builder::storage::MemoryStorage;
use pleach_builder::{Btree, BuildOptions, Chunk, ChunkSource, Column, Fast, Harmonia, Layout};
use pleach_builder::{Schema, Silent, Strings};
use pleach_builder::{build_bytes, build_strings_bytes, build_with_storage};
use pleach_format::{KeyType, ValueType};
use std::path::Path;
use std::sync::OnceLock;

/// Some tens of KiB each; made once.
pub fn wholes() -> &'static [Vec<u8>] {
    static WHOLES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    WHOLES.get_or_init(make)
}

/// A key of eight digits of 8 bits, each of them one of eight that crowd at zero: crowds in crowds.
pub fn crowded(digits: u64) -> u64 {
    (0..8).fold(0, |key, digit| key << 8 | ((1 << (digits >> (8 * digit) & 7)) - 1))
}

fn make() -> Vec<Vec<u8>> {
    let plain = BuildOptions { threads: 1, memory_bytes: 1 << 30, ..BuildOptions::default() };
    let all = plain.clone().with_layout(Layout {
        spine: true,
        grid: true,
        columns: true,
        packed: true,
        fast: Some(Fast::default()),
        wide: false,
        harmonia: Some(Harmonia { fanout: 8, fill_percent: 70 }),
        btree: Some(Btree { order: 5 }),
        values: pleach_builder::Values::Auto,
    });
    let columns = BuildOptions { columns: true, ..plain.clone() };
    // Trees of several pages beside the lines, or in place of a spine.
    let trees = |layout: &str| plain.clone().with_layout(layout.parse().expect("a layout"));
    let once = plain.clone().with_layout("lines,spine,grid,dictionary".parse().expect("a layout"));
    let text = |text: String| text.into_bytes();
    let numbers: Vec<(u64, u64)> = (0..300).map(|i| (mix(i), i)).collect();
    let few: Vec<(u32, u32)> = (0..90).map(|i| (i / 3 * 7, i)).collect();
    let keys: Vec<(i64, ())> = (0..200).map(|i| (mix(i).cast_signed(), ())).collect();
    let wide: Vec<(u128, u32)> = (0..90).map(|i| (u128::from(mix(i.into())) << 17, i)).collect();
    let short: Vec<(Vec<u8>, u32)> =
        (0..120).map(|i| (text(format!("{:06}", mix(i) % 1_000_000)), 7)).collect();
    let long: Vec<(Vec<u8>, u64)> =
        (0..90).map(|i| (text(format!("{}{}", "prefix".repeat((i % 7) as usize), mix(i))), i)).collect();
    let uneven: Vec<(Vec<u8>, ())> = (0..90)
        .map(|i| (text(format!("{}{}", "ab".repeat((i % 5 * (i % 17)) as usize), mix(i))), ()))
        .collect();
    let floats: Vec<(f64, u32)> = (0..120u32).map(|i| (f64::from(i * 7) - 300.5, i)).collect();
    // Segments within segments, and short words of several runs.
    let crowds: Vec<(u64, u64)> = (0..700).map(|i| (crowded(mix(i)), i)).collect();
    let tenants: Vec<(u64, u32)> =
        (0..600).map(|i| ((i / 20) << 40 | (i % 20) << 3, mix(i) as u32)).collect();
    let of =
        |key_type: KeyType, value_type: ValueType, keys: Column, values: Column, options: &BuildOptions| {
            let mut chunk = Chunk::new(key_type, value_type);
            (chunk.keys, chunk.values) = (keys, values);
            let mut source = ChunkSource::new(Schema::plain(key_type, value_type, None), [chunk]);
            let (storage, target) = (MemoryStorage::default(), Path::new("/t.pleach"));
            build_with_storage(&mut source, target, options, &Silent, &storage).expect("builds");
            storage.take(target).expect("built")
        };
    let column = |texts: &mut dyn Iterator<Item = Vec<u8>>| {
        let mut column = Strings::default();
        texts.for_each(|text| column.push(&text));
        Column::Bytes(column)
    };
    let names = |count: u64| column(&mut (0..count).map(|i| text(format!("name {}", mix(i)))));
    let texts = |count: u64| column(&mut (0..count).map(|i| vec![b'v'; (mix(i) % 40) as usize]));
    let twelve = |count: u64| column(&mut (0..count).map(|i| text(format!("{:012}", i * i))));
    let signed = Column::U32((0..90).map(|i: u32| mix(i.into()) as u32).collect());
    vec![
        build_bytes(&numbers, &plain).expect("builds"),
        build_bytes(&numbers, &all).expect("builds"),
        build_bytes(&few, &all).expect("builds"),
        build_bytes(&keys, &columns).expect("builds"),
        build_bytes(&wide, &plain).expect("builds"),
        build_bytes(&wide, &trees("lines,fast:partial:dp=5,btree:4")).expect("builds"),
        build_bytes(&numbers, &trees("lines,fast:auto:dp=6")).expect("builds"),
        build_bytes(&few, &trees("lines,spine,fast:delta:packed:dp=5,btree:7")).expect("builds"),
        build_bytes(&tenants, &trees("lines,harmonia:8:100,fast:full:dp=4")).expect("builds"),
        build_strings_bytes(KeyType::Bytes, &long, &trees("lines,columns,fast:auto:dp=5")).expect("builds"),
        build_bytes::<u64, u64>(&[], &all).expect("builds"),
        build_strings_bytes(KeyType::Fixed(6), &short, &columns).expect("builds"),
        build_strings_bytes(KeyType::Bytes, &long, &columns).expect("builds"),
        build_strings_bytes(KeyType::Utf8, &uneven, &plain).expect("builds"),
        build_bytes(&floats, &all).expect("builds"),
        build_bytes(&crowds, &plain).expect("builds"),
        build_bytes(&tenants, &all).expect("builds"),
        of(KeyType::U64, ValueType::Utf8, Column::U64((0..150).map(mix).collect()), texts(150), &all),
        of(KeyType::Bytes, ValueType::Bytes, names(90), texts(90), &columns),
        of(KeyType::I32, ValueType::Fixed(12), signed, twelve(90), &plain),
        // Values that are stored once: 40 of them, and 300 with longer codes.
        of(KeyType::U64, ValueType::Utf8, Column::U64((0..150).map(mix).collect()), texts(150), &once),
        of(KeyType::Utf8, ValueType::Fixed(12), names(310), twelve(310), &once),
    ]
}
