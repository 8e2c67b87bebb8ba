//! The arithmetic against a recursive construction that follows the paper's text, and its Figure 1.

use super::packed::{Delta, Form, Paged, Partial, Prefix, align};
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
            let geometry = Geometry { keys, key_bytes: 4, d_k, d_l, d_p, padded: false };
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
                let packed = Geometry { keys, key_bytes, d_k, d_l, d_p, padded: false };
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
    let tree =
        Geometry { keys: 31, key_bytes: 4, d_k: 2, d_l: 5, d_p: 5, padded: false }.tree().expect("sound");
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
            let geometry = Geometry { keys, key_bytes: 4, d_k, d_l, d_p, padded: false };
            let tree = geometry.tree().expect("sound");
            let lines = u64::from(geometry.levels().div_ceil(d_l)) + 10;
            assert!(tree.slots() <= keys + lines * 2 * nodes(d_l), "{geometry:?}: {}", tree.slots());
            assert!(tree.slots() + 1 >= keys);
        }
    }
    // 2 MiB pages and 64-byte lines as in the paper.
    assert_eq!(
        Geometry::paper(1, 4),
        Geometry { keys: 1, key_bytes: 4, d_k: 2, d_l: 4, d_p: 19, padded: false }
    );
    assert_eq!(Geometry::paper(1, 16).d_p, 17);
}

#[test]
fn forged_geometry_is_refused() {
    let sound = Geometry { keys: 1000, key_bytes: 4, d_k: 2, d_l: 4, d_p: 19, padded: false };
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
                    let tree = Geometry { keys, key_bytes, d_k, d_l, d_p, padded }.tree().expect("sound");
                    assert!(tree.bytes() < 1 << 58);
                    assert!(tree.slot_of(keys / 3).is_some() && tree.slot_of(u64::MAX).is_none());
                    assert!(tree.index_of(tree.slots() + 1000).is_none_or(|index| index > keys));
                }
            }
        }
    }
}

#[test]
fn parameters_round_trip_and_refuses() {
    let geometry = Geometry { keys: 12345, key_bytes: 16, d_k: 1, d_l: 2, d_p: 17, padded: true };
    for form in [Form::Full, Form::Partial { first: 8 }] {
        let stored = section::store(&geometry, form);
        assert_eq!(section::load(&stored, 12345), Some((geometry, form)));
        assert_eq!(section::load(&stored, 1 << 40), None, "other levels");
        for byte in 0..64 {
            for bit in 0..8 {
                let mut other = stored;
                other.0[byte] ^= 1 << bit;
                if let Some((geometry, form)) = section::load(&other, 12345) {
                    assert_eq!(section::store(&geometry, form), other);
                    assert!(byte < 18);
                }
            }
        }
    }
    assert_eq!(section::load(&section::store(&geometry, Form::Delta), 12345), None, "16-byte distances");
}

#[test]
fn pages_of_words_do_not_overlap() {
    for keys in [0, 1, 2, 3, 1000, 4096, 4097, 100_000] {
        let geometry = Geometry { keys, key_bytes: 16, d_k: 1, d_l: 2, d_p: 6, padded: false };
        let paged = Paged::new(geometry, Form::Partial { first: 8 }).expect("sound");
        assert!(paged.pages() == 0 || keys > 1);
        let (places, end) = paged.partial_places();
        let mut at = paged.pages_at();
        assert_eq!(at, (paged.pages() * 32).next_multiple_of(64));
        for (level, place) in places.iter().enumerate() {
            let width = if level == 0 { 8 } else { 4 };
            for page in 0..=paged.levels()[level].last {
                let part = usize::from(page == paged.levels()[level].last);
                let start = place + page * paged.partial_stride(width, level);
                let bytes = paged.page_bytes(width, level, part).expect("a page");
                assert!(start >= at && start - at < 64);
                assert_eq!(start % align(paged.page_bytes(width, level, 0).expect("a page")), 0);
                at = start + bytes;
            }
        }
        assert_eq!(at, end);
    }
}

#[test]
fn records_round_trip() {
    let delta = Delta { base: u64::MAX - 5, place: (1 << 56) - 1, width: 8 };
    assert_eq!(Delta::decode(delta.encode()), delta);
    let partial = Partial { reference: u128::MAX / 3, mask: 0xF0F << 77 };
    assert_eq!(Partial::decode(&partial.encode()), partial);
    assert_eq!([0, 0xFFFF, 0x1_0000, u64::from(u32::MAX), 1 << 32].map(Delta::width), [2, 2, 4, 4, 8]);
}

#[test]
fn figure_10() {
    // Nibbles of five keys; the first and the third differ, the second agrees (E), more follows.
    let keys = [0x0E6, 0x2E9, 0x5E0, 0xCE6, 0x4E2].map(|key: u128| key << 116 | 0x7777);
    let differ = keys.iter().fold(0, |bits, key| bits | (key ^ keys[0]));
    let record = Partial::new(keys[0], differ, 8, Prefix::Noncontiguous);
    assert_eq!(record.mask, 0xF0F << 116);
    assert_eq!(keys.map(|key| record.word(key)), [0x06, 0x29, 0x50, 0xC6, 0x42]);
    let record = Partial::new(keys[0], differ, 8, Prefix::Contiguous);
    assert_eq!(record.mask, 0xFF0 << 116);
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
        let differ = keys.iter().fold(0, |bits, key| bits | (key ^ keys[0]));
        for bits in [4, 8, 16, 32] {
            for prefix in [Prefix::Noncontiguous, Prefix::Contiguous] {
                let record = Partial::new(keys[0], differ, bits, prefix);
                let near = keys.iter().flat_map(|key| key.saturating_sub(2)..=(key + 2).min(0xFFFF));
                for query in (0..=0xFFFFu128).step_by(if is_long() { 1 } else { 41 }).chain(near) {
                    let probe = record.probe(query, bits);
                    for &key in keys {
                        let word = record.word(key);
                        let below = word < probe.word || probe.above && word == probe.word;
                        if below {
                            assert!(key < query, "{key:x} {query:x} {record:x?} {bits}");
                        } else if key < query {
                            // A false positive: nothing that is known separates the two.
                            assert_eq!(record.mask.count_ones(), bits, "{key:x} {query:x} {record:x?}");
                            assert_eq!(word, probe.word, "{key:x} {query:x} {record:x?}");
                        }
                    }
                }
            }
        }
    }
}
