//! Tests of every build against the geometry's own answer for each slot, with and without vectors.

use super::packed::DeltaKey;
use super::*;
use pleach_format::classic::nodes;
use pleach_format::classic::packed::{Delta, Form, Paged, Partial, Prefix};

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

fn sorted<W: TreeKey>(count: usize, draw: impl Fn(u64) -> u128) -> Vec<W> {
    let mut keys: Vec<W> = (0..count as u64).map(|i| W::narrow(draw(i))).collect();
    keys.sort_unstable();
    keys
}

/// Ways to draw keys: spread, dense, clustered, with duplicates, all equal, one nibble.
fn shapes() -> Vec<fn(u64) -> u128> {
    vec![
        |i| u128::from(mix(i)) << 64 | u128::from(mix(!i)),
        |i| u128::from(i),
        |i| u128::from(((mix(i / 50) >> 20) << 3) | (i % 50)),
        |i| u128::from(mix(i) % 37),
        |_| 0,
        |_| u128::MAX,
        |i| u128::from(i % 16) << 40 | 0x7000_0000_0000_0000_1234 << 48 | u128::from(i / 16),
    ]
}

fn depths() -> Vec<(u32, u32, u32)> {
    vec![
        (1, 1, 64),
        (1, 1, 1),
        (1, 1, 7),
        (1, 4, 10),
        (2, 4, 5),
        (2, 4, 19),
        (3, 3, 8),
        (4, 4, 7),
        (2, 5, 11),
    ]
}

fn sizes() -> Vec<usize> {
    vec![
        0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 63, 64, 100, 127, 128, 129, 1000, 2047, 2048, 2049, 9999, 70_000,
    ]
}

fn check_full<W: TreeKey>(keys: &[W], geometry: Geometry) {
    let tree = geometry.tree().expect("a sound geometry");
    for vectors in [Vectors::Scalar, Vectors::Best] {
        let mut out = vec![0xAA; tree.bytes() as usize];
        build(keys, &geometry, vectors, &mut out).expect("a build");
        let slots = tree.slots() as usize;
        for (slot, &bytes) in W::slots(&out)[..slots].iter().enumerate() {
            let index = tree.index_of(slot as u64);
            let key = index.and_then(|index| keys.get(index as usize).copied()).unwrap_or(W::MAX);
            assert_eq!(W::from_bytes(bytes), key, "{geometry:?} {vectors:?} slot {slot}");
        }
        assert!(out[slots * W::BYTES..].iter().all(|&byte| byte == 0));
    }
}

fn check_widths<W: TreeKey>(sizes: &[usize]) {
    for &count in sizes {
        let keys = sorted::<W>(count, shapes()[0]);
        for (d_k, d_l, d_p) in depths() {
            for padded in [false, true] {
                let geometry =
                    Geometry { keys: count as u64, key_bytes: W::BYTES as u32, d_k, d_l, d_p, padded };
                check_full(&keys, geometry);
            }
        }
    }
}

#[test]
fn full_trees_are_the_geometry() {
    check_widths::<u32>(&sizes());
    check_widths::<u64>(&sizes()[..22]);
    check_widths::<u128>(&sizes()[..20]);
}

#[test]
fn many_pages_in_parallel() {
    let keys = sorted::<u32>(300_007, shapes()[0]);
    for (d_k, d_l, d_p) in [(2, 4, 6), (2, 4, 10), (4, 4, 8), (1, 1, 64)] {
        for padded in [false, true] {
            let geometry = Geometry { keys: keys.len() as u64, key_bytes: 4, d_k, d_l, d_p, padded };
            check_full(&keys, geometry);
        }
    }
}

/// Reads a word of a page at `place`, widened.
fn word(out: &[u8], place: u64, width: u32, slot: u64) -> u128 {
    let at = (place + slot * u64::from(width)) as usize;
    let mut bytes = [0; 16];
    bytes[..width as usize].copy_from_slice(&out[at..at + width as usize]);
    u128::from_le_bytes(bytes)
}

/// Checks each page: `record(number)` returns its place and width, `narrow(number, key)` the word of a key.
fn check_pages<W: TreeKey>(
    paged: &Paged,
    keys: &[W],
    out: &[u8],
    record: impl Fn(usize, u64) -> (u64, u32),
    narrow: impl Fn(usize, u64, &[W], W) -> u128,
) {
    for (number, level) in paged.levels().iter().enumerate() {
        for page in 0..=level.last {
            let (place, width) = record(number, page);
            let ones = u128::MAX >> (128 - 8 * width);
            let tree = paged.tree(width).expect("a width of the tree");
            let words = sample(keys, level.below);
            let first = (page as usize) << level.levels;
            let mine =
                &words[first.min(words.len())..(first + nodes(level.levels) as usize).min(words.len())];
            let lines = &tree.pages()[number];
            let part = usize::from(page == level.last);
            for slot in 0..lines.slots[part] {
                // The same slot of the full tree's page, if widths were equal.
                let index = tree.index_of(lines.start + page * lines.slots[0] + slot);
                let key = index.and_then(|index| {
                    let inside = ((index + 1) >> level.below) - 1 - ((page) << level.levels);
                    mine.get(inside as usize).copied()
                });
                let expected = key.map_or(ones, |key| narrow(number, page, mine, key));
                assert_eq!(word(out, place, width, slot), expected, "level {number} page {page} slot {slot}");
            }
        }
    }
}

fn check_delta<W: DeltaKey>(keys: &[W], geometry: Geometry) {
    let packed = Packed::delta(keys, &geometry).expect("a plan");
    let paged = packed.paged();
    let mut first: Option<Vec<u8>> = None;
    for vectors in [Vectors::Scalar, Vectors::Best] {
        let mut out = vec![0xAA; packed.bytes() as usize];
        build_delta(&packed, keys, vectors, &mut out).expect("a build");
        let record = |number: usize, page: u64| {
            let at = (paged.records()[number] + page) as usize * 16;
            Delta::decode(*out[at..].first_chunk().expect("a record"))
        };
        let place = |number: usize, page: u64| {
            let record = record(number, page);
            (record.place, record.width)
        };
        check_pages(paged, keys, &out, place, |number, page, mine, key| {
            assert_eq!(record(number, page).base, mine[0].wide());
            key.widen() - mine[0].widen()
        });
        assert_eq!(*first.get_or_insert_with(|| out.clone()), out);
    }
}

fn check_partial(keys: &[u128], geometry: Geometry, prefix: Prefix) {
    let packed = Packed::partial(keys, &geometry, prefix).expect("a plan");
    let paged = packed.paged();
    let Form::Partial { first: first_width } = paged.form() else { panic!("a form") };
    let mut first: Option<Vec<u8>> = None;
    for vectors in [Vectors::Scalar, Vectors::Best] {
        let mut out = vec![0xAA; packed.bytes() as usize];
        build_partial(&packed, keys, vectors, &mut out).expect("a build");
        let (places, _) = paged.partial_places();
        let place = |number: usize, page: u64| {
            let width = if number == 0 { first_width } else { 4 };
            (places[number] + page * paged.partial_stride(width, number), width)
        };
        check_pages(paged, keys, &out, place, |number, page, mine, key| {
            let at = (paged.records()[number] + page) as usize * 32;
            let record = Partial::decode(out[at..].first_chunk().expect("a record"));
            assert_eq!(record.reference, mine[0]);
            let differ = mine.iter().fold(0, |bits, key| bits | (key ^ mine[0]));
            let bits = if number == 0 { 8 * first_width } else { 32 };
            assert_eq!(record, Partial::new(mine[0], differ, bits, prefix));
            record.word(key)
        });
        assert_eq!(*first.get_or_insert_with(|| out.clone()), out);
    }
}

/// Returns the geometries that compressed trees may have for keys of this width, for every shape and size.
fn compressed(key_bytes: u32, check: impl Fn(fn(u64) -> u128, Geometry)) {
    let is_long = std::env::var_os("PLEACH_TESTS").is_some_and(|form| form == "long");
    for (number, shape) in shapes().into_iter().enumerate() {
        // Every third size with a shape, the others with the next ones, unless the long form is requested.
        let (first, every) = if is_long { (0, 1) } else { (number % 3, 3) };
        for (turn, &count) in sizes()[..22].iter().enumerate().skip(first).step_by(every) {
            for (number, (d_k, d_l, d_p)) in
                [(2, 4, 10), (2, 4, 19), (1, 3, 5), (1, 2, 6)].into_iter().enumerate()
            {
                let padded = (number + count) % 2 == 0;
                // Whole pages of 2^19 keys are megabytes: some sizes will do.
                if (d_p == 19 && padded && turn % 4 != 0) || (key_bytes > 4 && d_l + 2 > d_p) {
                    continue;
                }
                check(shape, Geometry { keys: count as u64, key_bytes, d_k, d_l, d_p, padded });
            }
        }
    }
}

#[test]
fn distances_of_4_bytes_are_the_geometry() {
    compressed(4, |shape, geometry| check_delta(&sorted::<u32>(geometry.keys as usize, shape), geometry));
}

#[test]
fn distances_of_8_bytes_are_the_geometry() {
    compressed(8, |shape, geometry| check_delta(&sorted::<u64>(geometry.keys as usize, shape), geometry));
}

#[test]
fn partial_keys_are_the_geometry() {
    compressed(16, |shape, geometry| {
        let keys = sorted(geometry.keys as usize, shape);
        check_partial(&keys, geometry, Prefix::Noncontiguous);
        check_partial(&keys, geometry, Prefix::Contiguous);
    });
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let geometry = Geometry::paper(3, 4);
    let keys = [1u32, 2, 3];
    let mut out = vec![0; geometry.tree().expect("sound").bytes() as usize];
    assert_eq!(build(&keys, &geometry, Vectors::Best, &mut out), Ok(()));
    let short = build(&keys, &geometry, Vectors::Best, &mut out[1..]);
    assert!(matches!(short, Err(ClassicError::Output { .. })));
    assert!(matches!(
        build(&keys[..2], &geometry, Vectors::Best, &mut out),
        Err(ClassicError::Keys { expected: 3, found: 2 })
    ));
    assert_eq!(build(&[1u64, 2, 3], &geometry, Vectors::Best, &mut out), Err(ClassicError::Geometry));
    let none = Packed::delta(&keys, &Geometry { d_p: 0, ..geometry }).map(|_| ());
    assert_eq!(none, Err(ClassicError::Geometry));
    let packed = Packed::delta(&keys, &geometry).expect("a plan");
    assert!(build_delta(&packed, &keys[..2], Vectors::Best, &mut out).is_err());
}
