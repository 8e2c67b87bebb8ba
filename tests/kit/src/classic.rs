//! Classic trees of every kind, with queries: a slow builder that computes every slot from the geometry makes
//! them, so that a search shares only spec/FORMAT.md with it.

use crate::is_long;
use pleach_format::classic::paged::{Form, PageRecord, Paged, Prefix};
use pleach_format::classic::{Geometry, TreeWord, nodes};

/// A tree to be searched.
pub struct Case<'a, W> {
    /// Name of the case.
    pub what: String,
    /// Geometry of the tree.
    pub geometry: Geometry,
    /// Its form.
    pub form: Form,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its keys, sorted.
    pub keys: &'a [W],
    /// Present keys, their neighbours, and ends.
    pub queries: &'a [W],
}

impl<W: TreeWord> Case<'_, W> {
    /// The rank of the lower bound of each query.
    pub fn ranks(&self) -> Vec<u64> {
        self.queries.iter().map(|query| self.keys.partition_point(|key| key < query) as u64).collect()
    }

    /// Returns true if a SIMD block of the tree is longer than a line, so that no search is made.
    pub fn has_long_blocks(&self) -> bool {
        nodes(self.geometry.d_k) * W::BYTES as u64 > 64
    }
}

/// A fixed permutation of the numbers.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

/// A full tree.
pub fn full<W: TreeWord>(keys: &[W], geometry: &Geometry) -> Vec<u8> {
    let tree = geometry.tree().expect("sound");
    let mut bytes = vec![0; tree.bytes() as usize];
    for (slot, place) in W::slots_mut(&mut bytes)[..tree.slots() as usize].iter_mut().enumerate() {
        let key = tree.index_of(slot as u64).and_then(|index| keys.get(index as usize));
        *place = key.copied().unwrap_or(W::MAX).to_bytes();
    }
    bytes
}

/// The record of a page of these keys, without its place: the narrowest words that its form allows. A tree of
/// partial keys that is one page has words of `first` bytes.
fn record<W: TreeWord>(keys: &[W], form: Form, prefix: Prefix, first: Option<u32>) -> PageRecord {
    let wide: Vec<u128> = keys.iter().map(|key| key.widen()).collect();
    let base = wide.first().copied().unwrap_or(0);
    let span = wide.last().map_or(0, |last| last - base);
    let differ = wide.iter().fold(0, |bits, key| bits | (key ^ base));
    let partial = |width| PageRecord { base, kept: PageRecord::keep(differ, width, prefix), width, place: 0 };
    if form == Form::Partial {
        return partial(first.unwrap_or(4));
    }
    for width in [2, 4, 8, 16] {
        if span >> (8 * width - 1) >> 1 == 0 {
            return PageRecord { base, kept: 0, width, place: 0 };
        }
        let record = partial(width);
        let parts = |pair: &[u128]| pair[0] == pair[1] || record.word(pair[0]) != record.word(pair[1]);
        if form == Form::Auto && W::BYTES > 4 && wide.windows(2).all(parts) {
            return record;
        }
    }
    panic!("distances are no longer than keys")
}

/// A compressed tree of any form; if it is one page, its partial keys are words of `first` bytes.
pub fn packed<W: TreeWord>(keys: &[W], paged: &Paged, prefix: Prefix, first: u32) -> Vec<u8> {
    packed_by(keys, paged, prefix, first, false)
}

/// The same by a writer whose partial keys are in all pages, and may mislead in any.
pub fn packed_misleading<W: TreeWord>(keys: &[W], paged: &Paged, prefix: Prefix) -> Vec<u8> {
    packed_by(keys, paged, prefix, 4, true)
}

fn packed_by<W: TreeWord>(keys: &[W], paged: &Paged, prefix: Prefix, first: u32, misleads: bool) -> Vec<u8> {
    let key_bytes = paged.geometry().key_bytes;
    let mut bytes = vec![0u8; paged.pages_at() as usize];
    for (number, level) in paged.levels().iter().enumerate() {
        for page in 0..=level.last {
            let part = usize::from(page == level.last);
            let key_at = |index: u64| keys.get(index as usize).copied();
            let mine: Vec<W> = (0..nodes(level.levels))
                .filter_map(|rank| key_at((((page << level.levels) + rank + 1) << level.below) - 1))
                .collect();
            // Only the lowest pages have partial keys.
            let is_lowest = number + 1 == paged.levels().len();
            let form = if is_lowest || misleads { paged.form() } else { Form::Delta };
            let mut record = record(&mine, form, prefix, (number == 0).then_some(first));
            let size = paged.page_bytes(record.width, number, part).expect("a page");
            record.place = paged.place(size, bytes.len() as u64);
            let at = (paged.records()[number] + page) as usize * paged.record_bytes();
            bytes[at..at + paged.record_bytes()]
                .copy_from_slice(&record.encode(key_bytes)[..paged.record_bytes()]);
            bytes.resize(record.place as usize, 0);
            let tree = paged.tree(record.width).expect("a width");
            let lines = &tree.pages()[number];
            for slot in 0..lines.slots[part] {
                let index = tree.index_of(lines.page(page).0 + slot);
                let word = index.and_then(key_at).map_or(u128::MAX, |key| record.word(key.widen()));
                bytes.extend_from_slice(&word.to_le_bytes()[..record.width as usize]);
            }
        }
    }
    bytes.resize(Paged::bytes(bytes.len() as u64) as usize, 0);
    bytes
}

/// Present keys, their neighbours, ends, and neighbours in every nibble.
fn queries<W: TreeWord>(keys: &[W], limit: usize) -> Vec<W> {
    let step = (keys.len() / limit).max(1);
    let mut queries = vec![W::narrow(0), W::narrow(1), W::MAX, W::narrow(W::MAX.widen() - 1)];
    for (number, key) in keys.iter().step_by(step).enumerate() {
        let key = key.widen();
        let nibble = number as u32 % (2 * W::BYTES as u32) * 4;
        let others = [key, key.wrapping_add(1), key.wrapping_sub(1), key ^ 1 << nibble, key ^ 15 << nibble];
        queries.extend(others.map(W::narrow));
    }
    queries
}

fn sizes() -> Vec<usize> {
    if cfg!(miri) {
        return vec![0, 1, 2, 3, 16, 17, 100];
    }
    // The long form of the tests has all of them.
    if !is_long() {
        return vec![0, 1, 2, 3, 5, 8, 16, 17, 64, 129, 256, 1000];
    }
    vec![
        0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000,
        2049, 9000,
    ]
}

type Draw = fn(u64) -> u128;

/// Spread, dense, clustered, duplicates, all 0, all MAX, one nibble in which keys differ, and keys that
/// agree in all of their first 32 differing bits.
fn shapes() -> [(&'static str, Draw); 9] {
    [
        ("spread", |i| u128::from(mix(i)) << 64 | u128::from(mix(!i))),
        ("dense", |i| u128::from(i)),
        ("clustered", |i| u128::from(((mix(i / 50) >> 20) << 3) | (i % 50))),
        ("duplicates", |i| u128::from(mix(i) % 37)),
        ("zero", |_| 0),
        ("max", |_| u128::MAX),
        ("top", |i| u128::MAX - u128::from(i / 3)),
        ("one nibble", |i| u128::from(i % 16) << 20 | 0x7000_0000_1234_0000_0000_0000_0000_1003),
        ("equal words", |i| u128::from(mix(i) % 7) << 92 | 0x7 << 120 | u128::from(i)),
    ]
}

fn sorted<W: TreeWord>(count: usize, draw: Draw) -> Vec<W> {
    let top = |key: u128| if W::BYTES == 16 { key } else { key ^ key >> 64 };
    let mut keys: Vec<W> = (0..count as u64).map(|i| W::narrow(top(draw(i)))).collect();
    keys.sort_unstable();
    keys
}

fn depths() -> &'static [(u32, u32, u32)] {
    if cfg!(miri) {
        &[(2, 4, 5)]
    } else {
        &[(1, 1, 64), (1, 1, 6), (1, 4, 10), (2, 4, 19), (2, 3, 7), (4, 4, 8), (2, 4, 5)]
    }
}

fn packed_depths() -> &'static [(u32, u32, u32)] {
    if cfg!(miri) { &[(1, 2, 5)] } else { &[(1, 2, 5), (2, 3, 6), (2, 4, 10), (1, 2, 19), (1, 1, 4)] }
}

/// Full trees of all shapes, sizes and depths.
pub fn each_full<W: TreeWord>(mut check: impl FnMut(&Case<'_, W>)) {
    for (name, draw) in shapes() {
        for count in sizes() {
            let keys = sorted::<W>(count, draw);
            let queries = queries(&keys, 50);
            for (number, &(d_k, d_l, d_p)) in depths().iter().enumerate() {
                let padded = (count + number) % 2 == 0;
                let geometry = Geometry {
                    keys: count as u64,
                    key_bytes: W::BYTES as u32,
                    d_k,
                    d_l,
                    d_p,
                    padded,
                    aligned: false,
                };
                let what = format!("{name} {geometry:?}");
                let bytes = &full(&keys, &geometry);
                check(&Case { what, geometry, form: Form::Full, bytes, keys: &keys, queries: &queries });
            }
        }
    }
}

/// Compressed trees of some forms, of all shapes, sizes and depths.
pub fn each_packed<W: TreeWord>(forms: &[Form], mut check: impl FnMut(&Case<'_, W>)) {
    for (name, draw) in shapes() {
        for count in sizes() {
            let keys = sorted::<W>(count, draw);
            let queries = queries(&keys, 50);
            for &(d_k, d_l, d_p) in packed_depths() {
                for (number, &form) in forms.iter().enumerate() {
                    let padded = (count + number) % 2 == 0;
                    let first = [4, 8, W::BYTES as u32][count % 3];
                    let geometry = Geometry {
                        keys: count as u64,
                        key_bytes: W::BYTES as u32,
                        d_k,
                        d_l,
                        d_p,
                        padded,
                        aligned: false,
                    };
                    let Some(paged) = Paged::new(geometry, form) else {
                        assert!(d_p < d_l + 3);
                        continue;
                    };
                    // Both prefixes with every form, depth and shape, at some of the sizes each.
                    let prefix = if count % 3 == 0 { Prefix::Contiguous } else { Prefix::Noncontiguous };
                    // By our writer, and by one whose partial keys are in all pages.
                    let misleads = (count + number) % 4 > 1;
                    let what = format!("{name} {geometry:?} {form:?} {prefix:?} {misleads}");
                    let bytes = &packed_by(&keys, &paged, prefix, first, misleads);
                    check(&Case { what, geometry, form, bytes, keys: &keys, queries: &queries });
                }
            }
        }
    }
}

/// Pages whose keys share everything but some nibbles; every query that leaves them at any nibble, above,
/// below and in the middle. All nibbles in which keys differ fit a word, so the descent alone finds every rank.
pub fn each_dropped_nibble(mut check: impl FnMut(&Case<'_, u128>)) {
    let masks: [u128; 4] = [0xF0F0, 0xF << 64 | 0xF << 8, 0xF00F_00F0 << 90, 0xFFF << 116 | 0xFFF];
    for mask in masks {
        let common = 0x5555_5555_5555_5555_5555_5555_5555_5555u128 & !mask;
        let mut keys: Vec<u128> =
            (0..400).map(|i| common | (u128::from(mix(i)) << 64 | u128::from(mix(!i))) & mask).collect();
        keys.sort_unstable();
        let geometry =
            Geometry { keys: 400, key_bytes: 16, d_k: 1, d_l: 2, d_p: 5, padded: false, aligned: false };
        let mut queries = Vec::new();
        for key in keys.iter().step_by(37) {
            for nibble in 0..32 {
                queries.extend((1..16).map(|flip| key ^ flip << (4 * nibble)));
                // Off in two places at once.
                queries
                    .extend((1..16).map(|flip| key ^ flip << (4 * nibble) ^ 3 << (4 * ((nibble + 11) % 32))));
            }
        }
        for (form, first) in [(Form::Partial, 4), (Form::Partial, 8), (Form::Auto, 4)] {
            let paged = Paged::new(geometry, form).expect("sound");
            for misleads in [false, true] {
                let bytes = &packed_by(&keys, &paged, Prefix::Noncontiguous, first, misleads);
                let what = format!("{mask:x} {misleads}");
                check(&Case { what, geometry, form: paged.form(), bytes, keys: &keys, queries: &queries });
            }
        }
    }
}

/// Random bytes under sound and unsound geometries, of keys of 8 and of 16 bytes.
pub fn each_forged(mut check: impl FnMut(&Case<'_, u64>), mut check_wide: impl FnMut(&Case<'_, u128>)) {
    let rounds = if cfg!(miri) { 4 } else { 400 };
    for round in 0..rounds {
        let seed = mix(round + 1);
        let count = [1, 2, 100, 1000, 1024][seed as usize % 5];
        let keys: Vec<u64> = (0..count).map(mix).collect();
        let wide: Vec<u128> = keys.iter().map(|&key| u128::from(key) << 64).collect();
        let (d_k, d_l, d_p) = [(1, 1, 64), (1, 2, 5), (2, 3, 7), (1, 2, 19)][(seed >> 8) as usize % 4];
        let geometry =
            Geometry { keys: count, key_bytes: 8, d_k, d_l, d_p, padded: seed & 64 == 0, aligned: false };
        let length = geometry.tree().expect("sound").bytes() as usize * ((seed >> 20) as usize % 3) / 2 + 700;
        // Small numbers now and then, so that some records look sound.
        let bytes: Vec<u8> = (0..length as u64)
            .map(|i| {
                if seed & 128 == 0 && !mix(i).is_multiple_of(3) {
                    2 << (mix(!i) % 3)
                } else {
                    mix(i ^ seed) as u8
                }
            })
            .collect();
        let queries: Vec<u64> = (0..70).map(|i| mix(i + round)).chain([0, 1, u64::MAX]).collect();
        for form in Form::ALL {
            let what = format!("{geometry:?} {form:?}");
            check(&Case { what, geometry, form, bytes: &bytes, keys: &keys, queries: &queries });
        }
        let geometry = Geometry { key_bytes: 16, d_k: 1, d_l: d_l.min(2), ..geometry };
        let queries: Vec<u128> = queries.iter().map(|&query| u128::from(query) << 64).collect();
        for form in Form::ALL {
            let what = format!("{geometry:?} {form:?}");
            check_wide(&Case { what, geometry, form, bytes: &bytes, keys: &wide, queries: &queries });
        }
    }
}
