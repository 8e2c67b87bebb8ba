//! Tests of every build against the geometry's own answer for each slot, with and without vectors.

use super::*;
use pleach_format::classic::paged::{Form, Prefix};
use pleach_kit::classic::packed;

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
                let geometry = Geometry {
                    keys: count as u64,
                    key_bytes: W::BYTES as u32,
                    d_k,
                    d_l,
                    d_p,
                    padded,
                    aligned: false,
                };
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
            let geometry =
                Geometry { keys: keys.len() as u64, key_bytes: 4, d_k, d_l, d_p, padded, aligned: false };
            check_full(&keys, geometry);
        }
    }
}

/// Checks a compressed tree against one that was made slot by slot.
fn check_compressed<W: TreeKey>(keys: &[W], geometry: Geometry, forms: &[Form]) {
    for &form in forms {
        for prefix in [Prefix::Noncontiguous, Prefix::Contiguous] {
            for vectors in [Vectors::Scalar, Vectors::Best] {
                let planned = Compressed::plan(keys, &geometry, (form, prefix), vectors).expect("a plan");
                let mut out = vec![0xAA; planned.bytes() as usize];
                planned.build(keys, &mut out).expect("a build");
                let wanted = packed(keys, planned.paged(), prefix, planned.first_width());
                assert!(out == wanted, "{geometry:?} {form:?} {prefix:?} {vectors:?}");
            }
        }
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
                if (d_p == 19 && padded && turn % 4 != 0) || (d_l + key_bytes.ilog2() - 1 > d_p) {
                    continue;
                }
                check(
                    shape,
                    Geometry { keys: count as u64, key_bytes, d_k, d_l, d_p, padded, aligned: false },
                );
            }
        }
    }
}

#[test]
fn compressed_words_of_4_bytes_are_the_geometry() {
    compressed(4, |shape, geometry| {
        let keys = sorted::<u32>(geometry.keys as usize, shape);
        check_compressed(&keys, geometry, &[Form::Delta, Form::Auto]);
    });
}

#[test]
fn compressed_words_of_8_bytes_are_the_geometry() {
    compressed(8, |shape, geometry| {
        let keys = sorted::<u64>(geometry.keys as usize, shape);
        check_compressed(&keys, geometry, &[Form::Delta, Form::Partial, Form::Auto]);
    });
}

#[test]
fn compressed_words_of_16_bytes_are_the_geometry() {
    compressed(16, |shape, geometry| {
        let keys = sorted::<u128>(geometry.keys as usize, shape);
        check_compressed(&keys, geometry, &[Form::Delta, Form::Partial, Form::Auto]);
    });
}

/// Words of partial keys part the keys of all pages but the first, or are counted.
#[test]
fn first_pages_have_longer_words() {
    // Nibbles of few values tell little: four bytes of them take few of 2^32 values.
    let tell = |count: u64, values: u64| -> Vec<u128> {
        let nibble = |i: u64, at: u64| u128::from(mix(i * 32 + at) % values);
        let mut keys: Vec<u128> =
            (0..count).map(|i| (0..32).fold(0, |key, at| key << 4 | nibble(i, at))).collect();
        keys.sort_unstable();
        keys
    };
    let geometry =
        Geometry { keys: 4000, key_bytes: 16, d_k: 1, d_l: 2, d_p: 12, padded: false, aligned: false };
    let partial = (Form::Partial, Prefix::Noncontiguous);
    for (values, width) in [(16, 4), (4, 8), (2, 16)] {
        let planned =
            Compressed::plan(&tell(4000, values), &geometry, partial, Vectors::Best).expect("a plan");
        assert_eq!(planned.first_width(), width, "{values}");
        assert!(planned.false_positives() * 10_000 < 4095, "{}", planned.false_positives());
    }
    // Above other pages, words lose nothing.
    let geometry = Geometry { keys: 40_000, ..geometry };
    for form in [Form::Partial, Form::Auto] {
        let how = (form, Prefix::Noncontiguous);
        let planned = Compressed::plan(&tell(40_000, 16), &geometry, how, Vectors::Best).expect("a plan");
        assert_eq!((planned.first_width(), planned.false_positives()), (16, 0), "{form:?}");
    }
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
    let how = (Form::Delta, Prefix::Noncontiguous);
    let none = Compressed::plan(&keys, &Geometry { d_p: 0, ..geometry }, how, Vectors::Best).map(|_| ());
    assert_eq!(none, Err(ClassicError::Geometry));
    let none = Compressed::plan(&keys, &geometry, (Form::Partial, how.1), Vectors::Best).map(|_| ());
    assert_eq!(none, Err(ClassicError::Geometry));
    let aligned = Geometry { aligned: true, ..geometry };
    assert_eq!(build(&keys, &aligned, Vectors::Best, &mut out), Err(ClassicError::Geometry));
    let planned = Compressed::plan(&keys, &geometry, how, Vectors::Best).expect("a plan");
    assert!(planned.build(&keys[..2], &mut out).is_err());
    assert!(planned.build(&keys, &mut out[1..]).is_err());
}
