//! Small whole files of all types of keys, with all sections there are: what is changed by forgers and fuzzers.

use crate::generate::mix;
use pleach_builder::{BuildOptions, Harmonia, Layout, build_bytes, build_strings_bytes};
use pleach_format::KeyType;
use std::sync::OnceLock;

/// Some tens of KiB each; made once.
pub fn wholes() -> &'static [Vec<u8>] {
    static WHOLES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    WHOLES.get_or_init(make)
}

fn make() -> Vec<Vec<u8>> {
    let plain = BuildOptions { threads: 1, memory_bytes: 1 << 30, ..BuildOptions::default() };
    let all = plain.clone().with_layout(Layout {
        grid: true,
        columns: true,
        packed: true,
        classic: true,
        harmonia: Some(Harmonia { fanout: 8, fill_percent: 70 }),
    });
    let columns = BuildOptions { columns: true, ..plain.clone() };
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
    vec![
        build_bytes(&numbers, &plain).expect("builds"),
        build_bytes(&numbers, &all).expect("builds"),
        build_bytes(&few, &all).expect("builds"),
        build_bytes(&keys, &columns).expect("builds"),
        build_bytes(&wide, &plain).expect("builds"),
        build_bytes::<u64, u64>(&[], &all).expect("builds"),
        build_strings_bytes(KeyType::Fixed(6), &short, &columns).expect("builds"),
        build_strings_bytes(KeyType::Bytes, &long, &columns).expect("builds"),
        build_strings_bytes(KeyType::Utf8, &uneven, &plain).expect("builds"),
    ]
}
