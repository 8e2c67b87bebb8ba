//! The arithmetic against a recursive construction that follows the paper's text, and its Figure 1.

use super::paged::{Form, PLACE_MAX, PageRecord, Paged, Prefix, align};
use super::*;

/// Appends the in-order indices of the top `take` levels of the subtree over gaps `first ..`, which is
/// `height` levels high: pieces of `depths[0]` levels, breadth-first, each laid out by the rest of `depths`.
/// Pages and lines that begin right of `gap` are left out.
fn slow(first: u64, height: u32, take: u32, depths: &[u32], gap: u64, out: &mut Vec<u64>) {
    if depths.is_empty() {
        assert_eq!(take, 1);
        out.push(first + (1 << (height - 1)) - 1);
        return;
    }
    let mut done = 0;
    while done < take {
        let piece = depths[0].min(take - done);
        for child in 0..1u64 << done {
            let at = first + (child << (height - done));
            if depths.len() < 3 || at <= gap {
                slow(at, height - done, piece, &depths[1..], gap, out);
            }
        }
        done += piece;
    }
}

fn slow_tree(geometry: &Geometry) -> Vec<u64> {
    let mut levels = 0;
    while 1u64 << levels < geometry.keys {
        levels += 1;
    }
    let mut out = Vec::new();
    let gap = geometry.keys.min((1 << levels) - 1);
    if levels > 0 {
        slow(0, levels, levels, &[geometry.d_p, geometry.d_l, geometry.d_k, 1], gap, &mut out);
    }
    out
}

/// Reports whether the long form of the tests is requested.
fn is_long() -> bool {
    std::env::var_os("PLEACH_TESTS").is_some_and(|form| form == "long")
}

fn sizes() -> Vec<u64> {
    let mut sizes: Vec<u64> = (0..=70).collect();
    for power in 7..if is_long() { 13u32 } else { 10 } {
        let edge = 1 << power;
        sizes.extend([edge - 2, edge - 1, edge, edge + 1, edge + 2, edge + edge / 3, edge + edge / 2]);
    }
    sizes
}

fn depths() -> Vec<(u32, u32, u32)> {
    let mut all = Vec::new();
    for d_p in [1, 2, 3, 4, 5, 6, 7, 10, 19, 64] {
        for d_l in 1..=d_p.min(6) {
            all.extend((1..=d_l).map(|d_k| (d_k, d_l, d_p)));
        }
    }
    all
}

#[test]
fn packed_is_the_recursive_construction() {
    for keys in sizes() {
        for (d_k, d_l, d_p) in depths() {
            let geometry = Geometry { keys, key_bytes: 4, d_k, d_l, d_p, padded: false, aligned: false };
            let tree = geometry.tree().expect("a sound geometry");
            let expected = slow_tree(&geometry);
            assert_eq!(tree.slots(), expected.len() as u64, "{geometry:?}");
            for (slot, &index) in expected.iter().enumerate() {
                assert_eq!(tree.index_of(slot as u64), Some(index), "{geometry:?} slot {slot}");
                assert_eq!(tree.slot_of(index), Some(slot as u64), "{geometry:?} index {index}");
            }
            let placed = (0..nodes(geometry.levels())).filter(|&index| tree.slot_of(index).is_some()).count();
            assert_eq!(placed, expected.len(), "{geometry:?}");
            let gaps = if keys < 2 { 0 } else { keys.next_power_of_two() - 1 };
            assert_eq!(tree.last_gap(), keys.min(gaps), "{geometry:?}");
            assert!((0..tree.last_gap()).all(|index| tree.slot_of(index).is_some()));
            assert_eq!(tree.bytes(), (expected.len() as u64 * 4).div_ceil(64) * 64 + 64, "{geometry:?}");
            let levels: u32 = tree.pages().iter().map(|page| page.levels).sum();
            assert_eq!(levels, geometry.levels(), "{geometry:?}");
        }
    }
}

#[test]
fn padded_holds_the_same_keys_and_straddles_no_line() {
    for keys in sizes() {
        for (d_k, d_l, d_p) in depths() {
            // The short form takes turns.
            for key_bytes in [4, 8, 16]
                .into_iter()
                .filter(|bytes| is_long() || (keys + u64::from(d_l)) % 3 == u64::from(*bytes / 8))
            {
                let packed = Geometry { keys, key_bytes, d_k, d_l, d_p, padded: false, aligned: false };
                let padded = Geometry { padded: true, ..packed };
                let expected = slow_tree(&packed);
                let tree = padded.tree().expect("a sound geometry");
                let order: Vec<u64> = (0..tree.slots()).filter_map(|slot| tree.index_of(slot)).collect();
                assert_eq!(order, expected, "{padded:?}");
                let slots = 64 / u64::from(key_bytes);
                for slot in 0..tree.slots() {
                    if let Some(index) = tree.index_of(slot) {
                        assert_eq!(tree.slot_of(index), Some(slot));
                    }
                }
                for level in tree.pages() {
                    for line in &level.lines {
                        for (part, &last) in line.last.iter().enumerate() {
                            for number in 0..=last.min(100) {
                                let first = level.start + line.slot(part, number);
                                let fits = first % slots + nodes(line.levels) <= slots;
                                assert!(fits || first % slots == 0, "{padded:?} {line:?} {number}");
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn figure_1() {
    // (b): N_L = 31, d_L = 5, d_K = 2. Root triangle, its four children, then the 16 nodes of depth 4.
    let tree = Geometry { keys: 31, key_bytes: 4, d_k: 2, d_l: 5, d_p: 5, padded: false, aligned: false }
        .tree()
        .expect("sound");
    let order: Vec<u64> = (0..31).filter_map(|slot| tree.index_of(slot)).collect();
    assert_eq!(order[..3], [15, 7, 23]);
    assert_eq!(order[3..15], [3, 1, 5, 11, 9, 13, 19, 17, 21, 27, 25, 29]);
    assert_eq!(order[15..], [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]);
    // (a): no blocking at all is breadth-first.
    let tree = Geometry { d_k: 1, d_l: 1, d_p: 64, ..*tree.geometry() }.tree().expect("sound");
    let order: Vec<u64> = (0..31).filter_map(|slot| tree.index_of(slot)).collect();
    assert_eq!(order[..7], [15, 7, 23, 3, 11, 19, 27]);
}

#[test]
fn the_papers_depths() {
    for (key_bytes, depths) in [(4, (2, 4, 19)), (8, (1, 3, 18)), (16, (1, 2, 17)), (0, (4, 6, 21))] {
        let geometry = Geometry::paper(1000, key_bytes);
        assert_eq!((geometry.d_k, geometry.d_l, geometry.d_p), depths, "{key_bytes}");
        assert_eq!((geometry.keys, geometry.key_bytes, geometry.padded), (1000, key_bytes, false));
    }
}

#[test]
fn sizes_follow_the_keys() {
    for keys in (1..40).flat_map(|i| [1u64 << i, (1 << i) + 1, (1 << i) + (1 << i) / 2]) {
        for (d_k, d_l, d_p) in [(2, 4, 19), (2, 4, 10), (4, 4, 12), (1, 1, 64), (1, 3, 9)] {
            let geometry = Geometry { keys, key_bytes: 4, d_k, d_l, d_p, padded: false, aligned: false };
            let tree = geometry.tree().expect("sound");
            let lines = u64::from(geometry.levels().div_ceil(d_l)) + 10;
            assert!(tree.slots() <= keys + lines * 2 * nodes(d_l), "{geometry:?}: {}", tree.slots());
            assert!(tree.slots() + 1 >= keys);
        }
    }
    // 2 MiB pages and 64-byte lines as in the paper.
    assert_eq!(
        Geometry::paper(1, 4),
        Geometry { keys: 1, key_bytes: 4, d_k: 2, d_l: 4, d_p: 19, padded: false, aligned: false }
    );
    assert_eq!(Geometry::paper(1, 16).d_p, 17);
}

#[test]
fn forged_geometry_is_refused() {
    let sound = Geometry { keys: 1000, key_bytes: 4, d_k: 2, d_l: 4, d_p: 19, padded: false, aligned: false };
    assert!(sound.tree().is_some());
    let forged = [
        Geometry { keys: KEYS_MAX + 1, ..sound },
        Geometry { keys: u64::MAX, ..sound },
        Geometry { d_k: 0, ..sound },
        Geometry { d_k: 5, ..sound },
        Geometry { d_l: 20, ..sound },
        Geometry { d_l: 17, ..sound },
        Geometry { d_p: 3, ..sound },
        Geometry { d_p: 65, ..sound },
        Geometry { d_p: u32::MAX, ..sound },
        Geometry { key_bytes: 0, ..sound },
        Geometry { key_bytes: 5, ..sound },
        Geometry { key_bytes: u32::MAX, ..sound },
    ];
    for geometry in forged {
        assert_eq!(geometry.tree(), None, "{geometry:?}");
        assert_eq!(Paged::new(geometry, Form::Delta), None, "{geometry:?}");
    }
    // The largest valid tree: no place overflows.
    for padded in [false, true] {
        for key_bytes in [2, 4, 8, 16] {
            for (d_k, d_l, d_p) in [(1, 1, 1), (1, 1, 64), (1, 2, 3), (2, 4, 19), (16, 16, 64)] {
                for keys in [KEYS_MAX, KEYS_MAX - 1, KEYS_MAX / 2 + 1] {
                    let tree = Geometry { keys, key_bytes, d_k, d_l, d_p, padded, aligned: false }
                        .tree()
                        .expect("sound");
                    assert!(tree.bytes() < 1 << 58);
                    assert!(tree.slot_of(keys / 3).is_some() && tree.slot_of(u64::MAX).is_none());
                    assert!(tree.index_of(tree.slots() + 1000).is_none_or(|index| index > keys));
                }
            }
        }
    }
}

#[test]
fn aligned_pages_straddle_nothing() {
    for (key_bytes, keys) in [(4, 1 << 23), (8, 3_000_017), (16, 1 << 21), (16, 9_000_000)] {
        for (d_k, d_l, d_p) in [(1, 2, 17), (1, 2, 9), (1, 2, 16), (1, 2, 20), (1, 3, 5), (1, 1, 3)] {
            for padded in [false, true] {
                let plain = Geometry { keys, key_bytes, d_k, d_l, d_p, padded, aligned: false };
                let tree = Geometry { aligned: true, ..plain }.tree().expect("sound");
                let plain = plain.tree().expect("sound");
                let unit = UNIT_BYTES / u64::from(key_bytes);
                let mut places = 0..0u64;
                for (level, other) in tree.pages().iter().zip(plain.pages()) {
                    assert_eq!(
                        (level.slots, level.last, &level.lines),
                        (other.slots, other.last, &other.lines)
                    );
                    assert!(level.start >= places.end && level.start < places.end + unit);
                    places = level.start..level.start + level.span();
                    if level.joined {
                        continue;
                    }
                    let mut end = level.start;
                    for page in (0..=level.last).filter(|page| page % 97 < 3 || page + 3 > level.last) {
                        let (start, part) = level.page(page);
                        assert!(start >= end && start + level.slots[part] <= places.end, "{page}");
                        end = start + level.slots[part];
                        let straddles = start % unit + level.slots[part] > unit;
                        assert!(!straddles || start % unit == 0, "{level:?} page {page}");
                        let waste = start - page * level.slots[0] - level.start;
                        assert!(level.slots[0] * 4 > unit || waste * 5 <= start, "{level:?} page {page}");
                        // Both directions, at both ends of the page and behind it.
                        for slot in [start, start + 1, end - 1, end, end + unit / 3] {
                            if let Some(index) = tree.index_of(slot) {
                                assert_eq!(tree.slot_of(index), Some(slot));
                            }
                        }
                        assert!(tree.index_of(start).is_some());
                    }
                }
                assert_eq!(tree.slots(), places.end);
                // The same keys, in the same order, but for gaps.
                let some = (0..plain.slots()).step_by(1013).filter_map(|slot| plain.index_of(slot));
                let moved: Vec<u64> = some.map(|index| tree.slot_of(index).expect("a node")).collect();
                assert!(moved.is_sorted());
            }
        }
    }
}

#[test]
fn parameters_round_trip_and_refuses() {
    for key_bytes in [4, 8, 16] {
        for form in Form::ALL {
            let (padded, aligned) = (key_bytes != 8, form == Form::Auto);
            let geometry = Geometry { keys: 12345, key_bytes, d_k: 1, d_l: 2, d_p: 17, padded, aligned };
            let stored = section::store(&geometry, form);
            if !form.holds(key_bytes) {
                assert_eq!(section::load(&stored, 12345), None, "{form:?} of {key_bytes} bytes");
                continue;
            }
            assert_eq!(section::load(&stored, 12345), Some((geometry, form)));
            assert_eq!(section::load(&stored, 1 << 40), None, "other levels");
            for byte in 0..64 {
                for bit in 0..8 {
                    let mut other = stored;
                    other.0[byte] ^= 1 << bit;
                    if let Some((geometry, form)) = section::load(&other, 12345) {
                        assert_eq!(section::store(&geometry, form), other);
                        assert!(byte < 17);
                    }
                }
            }
        }
    }
}

#[test]
fn pages_have_their_places() {
    for keys in [0, 1, 2, 3, 1000, 4096, 4097, 100_000] {
        let geometry =
            Geometry { keys, key_bytes: 16, d_k: 1, d_l: 2, d_p: 6, padded: false, aligned: false };
        for aligned in [false, true] {
            let paged = Paged::new(Geometry { aligned, ..geometry }, Form::Auto).expect("sound");
            assert!(paged.pages() == 0 || keys > 1);
            let mut end = paged.pages_at();
            assert_eq!(end, (paged.pages() * 32).next_multiple_of(64));
            for level in 0..paged.levels().len() {
                for page in 0..=paged.levels()[level].last {
                    let width = 2 << (page % 4);
                    let part = usize::from(page == paged.levels()[level].last);
                    let bytes = paged.page_bytes(width, level, part).expect("a page");
                    let place = paged.place(bytes, end);
                    assert!(place >= end && place.is_multiple_of(align(bytes)));
                    let straddles = place / UNIT_BYTES != (place + bytes - 1) / UNIT_BYTES;
                    assert!(!straddles || !aligned);
                    assert!(place - end < 64 || (aligned && place.is_multiple_of(UNIT_BYTES)));
                    end = place + bytes;
                }
            }
        }
    }
    assert_eq!([1, 16, 17, 32, 33, 64, 1000].map(align), [16, 16, 32, 32, 64, 64, 64]);
}

#[test]
fn records_round_trip() {
    let record = PageRecord { base: u128::from(u64::MAX - 5), kept: 0xF05A, width: 8, place: PLACE_MAX - 16 };
    assert_eq!(PageRecord::decode(8, &record.encode(8)[..16]), Some(record));
    assert_eq!(PageRecord::decode(4, &record.encode(4)[..16]), Some(record));
    let record = PageRecord { base: u128::MAX / 3, kept: 0xF000_0001, width: 16, place: u64::MAX - 16 };
    assert_eq!(PageRecord::decode(16, &record.encode(16)), Some(record));
    assert_eq!(PageRecord::decode(16, &[0; 31]), None);
    let spans = [0, 0xFFFF, 0x1_0000, u32::MAX.into(), 1 << 32, u64::MAX.into(), 1 << 64];
    assert_eq!(spans.map(PageRecord::width), [2, 2, 4, 4, 8, 8, 16]);
}

fn record(keys: &[u128], width: u32, prefix: Prefix) -> PageRecord {
    let differ = keys.iter().fold(0, |bits, key| bits | (key ^ keys[0]));
    PageRecord { base: keys[0], kept: PageRecord::keep(differ, width, prefix), width, place: 0 }
}

#[test]
fn figure_10() {
    // Nibbles of five keys; the first and the third differ, the second agrees (E), more follows.
    let keys = [0x0E6, 0x2E9, 0x5E0, 0xCE6, 0x4E2].map(|key: u128| key << 116 | 0x7777);
    let of = record(&keys, 2, Prefix::Noncontiguous);
    assert_eq!(of.mask(), 0xF0F << 116);
    assert_eq!(keys.map(|key| of.word(key)), [0x06, 0x29, 0x50, 0xC6, 0x42]);
    // All nibbles from the first one that differs.
    assert_eq!(record(&keys, 2, Prefix::Contiguous).mask(), 0xFFFF << 112);
    assert_eq!(record(&keys, 16, Prefix::Contiguous).mask(), u128::MAX);
}

#[test]
fn kept_nibbles() {
    for bit in 0..128 {
        let differ = 1 << bit;
        assert_eq!(PageRecord::keep(differ, 4, Prefix::Noncontiguous), 1 << (bit / 4));
        let of = PageRecord { kept: 1 << (bit / 4), ..PageRecord::default() };
        assert_eq!(of.mask(), 15 << (bit / 4 * 4));
    }
    for round in 0..1000u64 {
        let x = u128::from(round.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let differ = x << (round % 70) | x >> 17;
        for width in [2, 4, 8, 16] {
            let kept = PageRecord::keep(differ, width, Prefix::Noncontiguous);
            let all: Vec<u32> = (0..32).rev().filter(|nibble| differ >> (4 * nibble) & 15 != 0).collect();
            let wanted = all.iter().take(2 * width as usize).fold(0, |bits, nibble| bits | 1 << nibble);
            assert_eq!(kept, wanted, "{differ:x}");
            let top = all.first().map_or(0, |top| top + 1);
            let low = top.saturating_sub(2 * width);
            let wanted = (low..top).fold(0, |bits, nibble| bits | 1u32 << nibble);
            assert_eq!(PageRecord::keep(differ, width, Prefix::Contiguous), wanted, "{differ:x}");
        }
    }
}

/// Every query against every page of small keys: the words' order is that of the keys, up to keys that
/// agree in all kept nibbles.
#[test]
fn probes_keep_the_order() {
    let pages: [&[u128]; 6] = [
        &[0x1A03, 0x1A05, 0x1B03],
        &[0x0050, 0x0051, 0x005F],
        &[0xFFF0, 0xFFFF],
        &[0x0000, 0x1000, 0x1001, 0xF00F],
        &[0x1234],
        &[0x1210, 0x1311, 0x1312, 0x1513],
    ];
    for keys in pages {
        for width in [1, 2] {
            for prefix in [Prefix::Noncontiguous, Prefix::Contiguous] {
                let of = record(keys, width, prefix);
                let near = keys.iter().flat_map(|key| key.saturating_sub(2)..=(key + 2).min(0xFFFF));
                for query in (0..=0xFFFFu128).step_by(if is_long() { 1 } else { 41 }).chain(near) {
                    let Some(probe) = of.probe(query) else {
                        assert!(keys.iter().all(|&key| key < query));
                        continue;
                    };
                    for &key in keys {
                        let word = of.word(key);
                        let below = word < probe.word || probe.above && word == probe.word;
                        if below {
                            assert!(key < query, "{key:x} {query:x} {of:x?}");
                        } else if key < query {
                            // A false positive: nothing that is known separates the two.
                            assert_eq!(of.kept.count_ones(), 2 * width, "{key:x} {query:x} {of:x?}");
                            assert_eq!(word, probe.word, "{key:x} {query:x} {of:x?}");
                        }
                    }
                }
            }
        }
    }
}
