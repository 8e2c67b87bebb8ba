//! Places and counts that other crates rest on, by hand or against a naive count.

use pleach_format::classic::paged::{Form, PageRecord, Paged, align};
use pleach_format::classic::{self, SLACK_BYTES};
use pleach_format::column::ColumnGeometry;
use pleach_format::grid::{CELLS, GridGeometry, Parts, Place, Segment, marks_before};
use pleach_format::harmonia::{self, HarmoniaGeometry};
use pleach_format::meta::Meta;
use pleach_format::packed::{PackedGeometry, Record};
use pleach_format::record;
use pleach_format::section::{FastParameters, SECTIONS, Tag};
use pleach_format::spine::{self, Border, Cost, Encoding};
use pleach_format::superblock::{SUPERBLOCK_BYTES, Superblock, bytes_prefix};
use pleach_format::view::{Bytes, ColumnPlace, lower_bound, step_right};
use pleach_format::{FormatError, LineGeometry, Word};
use pleach_kit::generate::Random;
use pleach_kit::mutate::{header, victim};
use pleach_kit::naive;

#[test]
fn names_are_those_of_the_file() {
    for tag in SECTIONS.iter().map(|kind| kind.tag) {
        assert_eq!(tag.name().as_bytes(), tag.0);
    }
    assert_eq!(Tag(*b"????").name(), "section");
    let names: Vec<_> = (0..5).map(|code| Encoding::from_code(code).map(Encoding::name)).collect();
    assert_eq!(names, [Some("raw"), Some("delta16"), Some("delta32"), Some("delta8"), None]);
    let meta = Meta {
        key_name: "a".into(),
        value_name: "bc".into(),
        key_logical: "Date32".into(),
        value_logical: "e".repeat(17),
        layout: "lines".into(),
        interval: "inclusive".into(),
        approximate: "7".into(),
    };
    assert_eq!(Meta::decode(&meta.encode()), meta);
    assert!(record::Record::is_meant("record<") && !record::Record::is_meant("Date32"));
}

#[test]
fn words_and_prefixes() {
    assert_eq!((u32::from_u64(7), u64::from_u64(7), u128::from_u64(7)), (7, 7, 7));
    assert_eq!(<() as pleach_format::Bits>::to_u64(()), 0);
    for length in [0, 1, 63, 64, 65, 200] {
        let key: Vec<u8> = (1..=length).collect();
        let expected: Vec<u8> = (0..64).map(|at| key.get(at).copied().unwrap_or(0)).collect();
        assert_eq!(bytes_prefix(&key)[..], expected);
    }
    let whole = victim().1;
    let (expected, found) = (SUPERBLOCK_BYTES as u64 + 4096, 100 + 4096);
    match Superblock::decode(&whole[..100], 4096) {
        Err(FormatError::Truncated { expected: one, found: other }) => {
            assert_eq!((one, other), (expected, found));
        }
        other => panic!("{other:?}"),
    }
    for (keys, values) in [(4, 0), (4, 4), (4, 8), (8, 0), (8, 4), (8, 8), (16, 0), (16, 8)] {
        let geometry = LineGeometry::new(keys, values);
        let n = geometry.tuples_per_line() as u64;
        for tuples in 0..3 * n + 2 {
            let lines = (0..5).map(|line| geometry.tuples_in_line(line, tuples) as u64);
            let expected = (0..5).map(|line| (0..tuples).filter(|rank| rank / n == line).count() as u64);
            assert!(lines.eq(expected), "{tuples}");
        }
    }
}

#[test]
fn elements_of_a_column() {
    let column = |shape| ColumnPlace { offset: 1000, shape };
    let fixed = column(ColumnGeometry::fixed(10, 6).expect("small"));
    assert_eq!(fixed.data_offset(), 1000 + fixed.shape.data_at);
    assert_eq!(
        (0..12).filter_map(|rank| fixed.fixed_element(rank)).collect::<Vec<_>>(),
        (0..10).map(|i| (6 * i, 6 * i + 6)).collect::<Vec<_>>()
    );
    let varying = column(ColumnGeometry { element_bytes: 0, offset_bytes: 4, data_at: 64, ..fixed.shape });
    assert_eq!((varying.data_offset(), varying.fixed_element(0)), (1064, None));
}

#[test]
fn pages_of_a_packed_column() {
    let record = Record { base: 1, place: 2, width: 13 };
    assert_eq!(record.page_bytes(), 13 * 1024 / 8);
    for keys in [1u64, 1024, 1025, 5000] {
        let shape = PackedGeometry::new(keys, 8, 640).expect("small");
        assert_eq!(shape.pages, keys.div_ceil(1024));
        let bytes = shape.data_at + 640 + pleach_format::packed::GUARD_BYTES;
        assert_eq!(shape.bytes(), Some(bytes));
        assert_eq!(PackedGeometry::from_parameters(shape.parameters().into(), keys, bytes), Some(shape));
    }
}

#[test]
fn places_in_a_grid() {
    let place = |segment: Segment, word: u64| {
        let Place { at, what } = segment.place(word);
        (at, what)
    };
    let units = Segment::new(1000, 7, Parts::Units(2), 3).expect("small");
    assert_eq!(Segment::from_bytes(&units.to_bytes()), units);
    assert_eq!(units.to_bytes(), [0xE8, 3, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 3 << 2 | 1]);
    let expected =
        [(0, 7, 0), (1000, 7, 0), (1007, 7, 0), (1008, 7, 1), (1256, 8, 0), (1511, 8, 31), (u64::MAX, 8, 31)];
    for (word, unit, cell) in expected {
        assert_eq!(place(units, word), (unit, Place::UNIT | cell), "{word}");
        assert_eq!(Place::from_u64(units.place(word).to_u64()), units.place(word));
    }
    assert_eq!([0, 1007, 1008, 1511, u64::MAX].map(|word| units.part(word)), [0, 0, 1, 63, 63]);
    let segments = Segment::new(1 << 40, 3, Parts::Segments(5), 38).expect("small");
    let expected = [0, 1 << 40, 5 << 38, 6 << 38, 8 << 38, u64::MAX].map(|word| place(segments, word));
    assert_eq!(expected, [3, 3, 4, 5, 7, 7].map(|at| (at, Place::SEGMENT)));
    let marks = Segment::new(10, 100, Parts::Marks(0b1011), 0).expect("small");
    let found = (9..15).map(|word| place(marks, word)).collect::<Vec<_>>();
    assert_eq!(found, [(100, 0), (100, 0), (101, 1), (102, 0), (102, 1), (103, 0)]);
    assert_eq!(place(Segment::of_line(9), 0), (9, 0));
    assert_eq!(place(Segment::of_line(9), u64::MAX), (9, 0));
    assert_eq!(Segment::of_line(9).place(u32::MAX), Place { at: 9, what: 0 });
    for (parts, shift) in [
        (Parts::Segments(0), 0),
        (Parts::Units((1 << 24) + 1), 0),
        (Parts::Marks(1 << 24), 0),
        (Parts::Units(1), 64),
    ] {
        assert_eq!(Segment::new(0, 0, parts, shift), None, "{parts:?} {shift}");
    }
    let unit = 5 << CELLS | 0b1011;
    let marks = (0..5).map(|cell| marks_before(unit, cell)).collect::<Vec<_>>();
    assert_eq!(marks, [(5, true), (6, true), (7, false), (7, true), (8, false)]);
}

#[test]
fn shapes_of_grids() {
    let units = Segment::new(7, 0, Parts::Units(3), 3).expect("small");
    let segments = Segment::new(7, 0, Parts::Segments(3), 3).expect("small");
    for (counts, word_bytes, root, steps) in [
        ((0, 1), 4, units, (0, 0)),
        ((0, 1000), 8, units, (0, 0)),
        ((3, 1), 8, segments, (1, 1)),
        ((99, 5), 4, segments, (8, 2)),
    ] {
        let shape = GridGeometry::new(counts, word_bytes, root, steps).expect("a shape");
        let of = |length| GridGeometry::from_parameters(shape.parameters().into(), counts.1, length);
        assert_eq!((of(shape.bytes()), of(shape.bytes() + 1)), (Some(shape), None));
        assert_eq!(shape.bytes(), (counts.0 * 16).next_multiple_of(128) + counts.1 * 8 + 64);
    }
    let wide = Segment::new(1 << 32, 0, Parts::Units(3), 3).expect("small");
    let wrong = [
        ((0, 0), 8, units, (0, 0)),
        ((0, 1), 16, units, (0, 0)),
        ((0, 1 << 32), 8, units, (0, 0)),
        ((1 << 32, 1), 8, segments, (1, 1)),
        ((0, 1), 4, wide, (0, 0)),
        ((1, 1), 8, units, (0, 0)),
        ((0, 1), 8, segments, (1, 1)),
        ((3, 1), 8, segments, (0, 0)),
        ((3, 1), 8, segments, (9, 1)),
        ((3, 1), 8, segments, (1, 2)),
        ((3, 1), 8, segments, (1, 0)),
    ];
    for (counts, word_bytes, root, steps) in wrong {
        assert_eq!(
            GridGeometry::new(counts, word_bytes, root, steps),
            None,
            "{counts:?} {word_bytes} {root:?} {steps:?}"
        );
    }
}

/// A tree is counted from the leaves up.
#[test]
fn nodes_of_a_harmonia_tree() {
    for (fanout, percent) in [(8, 50), (8, 100), (16, 69), (64, 100)] {
        let node_keys = harmonia::node_keys(fanout, percent);
        assert_eq!(node_keys, percent * (fanout - 1) / 100);
        let full = u64::from(node_keys);
        for tuples in (0..400).chain([5000, 70_000]) {
            let shape = HarmoniaGeometry::new(tuples, (fanout, node_keys), 8, 4).expect("small");
            assert_eq!(shape.leaves(), tuples.div_ceil(full));
            assert_eq!(shape.stride_words(), shape.stride_bytes as usize / 8);
            let mut children = 1;
            for (depth, level) in shape.levels.iter().enumerate() {
                assert_eq!(children, level.nodes);
                let keys = |at| shape.keys_of(depth, at);
                assert!((0..level.nodes - 1).all(|at| keys(at) == full));
                let all: u64 = (0..level.nodes).map(keys).sum();
                if depth + 1 == shape.levels.len() {
                    assert_eq!(all, tuples);
                    continue;
                }
                // One key fewer than children.
                children = all + level.nodes;
                let below = shape.levels[depth + 1].first;
                let first = (0..level.nodes).map(|at| below + (0..at).map(|at| keys(at) + 1).sum::<u64>());
                if tuples <= 400 {
                    assert!(first.eq((0..level.nodes).map(|at| shape.first_child(level.first + at))));
                }
            }
            assert_eq!(shape.first_child(shape.inner), shape.nodes);
        }
    }
}

#[test]
fn pages_of_compressed_trees() {
    let aligned = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000].map(align);
    assert_eq!(aligned, [16, 16, 16, 16, 32, 32, 32, 64, 64, 64, 64, 64]);
    assert_eq!([0, 1, 64, 65].map(Paged::bytes), [0, 64, 64, 128].map(|bytes| bytes + SLACK_BYTES));
    for (keys, key_bytes, form) in
        [(5000, 8, Form::Delta), (300, 4, Form::Delta), (5000, 16, Form::Partial), (5000, 8, Form::Auto)]
    {
        // Pages of six levels.
        let geometry =
            classic::Geometry { keys, key_bytes, d_k: 2, d_l: 3, d_p: 6, padded: false, aligned: false };
        let paged = Paged::new(geometry, form).expect("a tree");
        let (stored, back) = (classic::section::store(&geometry, form), (geometry, form));
        let line_bytes = FastParameters::from(stored).line_bytes.get();
        assert_eq!((line_bytes, classic::section::load(&stored, keys)), (64, Some(back)));
        assert!(paged.levels().len() > 1);
        assert_eq!(paged.records().len(), paged.levels().len());
        let mut pages = 0;
        for (level, of_level) in paged.levels().iter().enumerate() {
            assert_eq!(paged.records()[level], pages);
            pages += of_level.last + 1;
            for width in [2, 4, 8, 16] {
                let Some(tree) = paged.tree(width) else { continue };
                for part in [0, 1] {
                    let bytes = tree.pages()[level].slots[part] * u64::from(width);
                    assert_eq!(paged.page_bytes(width, level, part), Some(bytes));
                    assert!(bytes > 1 || part == 0);
                }
            }
        }
        assert_eq!(paged.pages(), pages);
        assert!([2, 4, 8, 16].iter().all(|&width| paged.tree(width).is_some() == (width <= key_bytes)));
    }
    // Nothing is known of what is under the last nibble of a full word; of another one all is.
    let agreed = |kept, width| {
        let record = PageRecord { kept, width, ..PageRecord::default() };
        record.agreed(record.mask())
    };
    assert_eq!(agreed(2, 4), !0xF0);
    assert_eq!(agreed(0xF0, 2), !0xFFFF_FFFF);
    assert_eq!(agreed(0, 2), u128::MAX);
}

#[test]
fn spines_are_judged_by_their_cost() {
    let cost = |heavy, runs| Cost { heavy, runs, inexact: 9, flagged: 1 };
    let even =
        [(10, 0), (11, 0), (0, 1)].map(|(heavy, runs)| spine::acceptable(false, 640, cost(heavy, runs)));
    assert_eq!(even, [true, false, false]);
    let uneven =
        [(80, 10), (81, 10), (80, 11)].map(|(heavy, runs)| spine::acceptable(true, 640, cost(heavy, runs)));
    assert_eq!(uneven, [true, false, false]);
    let mut sum = Cost { inexact: 1, heavy: 2, runs: 3, flagged: 4 };
    sum.add(Cost { inexact: 10, heavy: 20, runs: 30, flagged: 40 });
    assert_eq!(sum, Cost { inexact: 11, heavy: 22, runs: 33, flagged: 44 });
    assert_eq!(spine::candidates(4), [Encoding::Delta8, Encoding::Delta16, Encoding::Raw]);
    assert_eq!(spine::candidates(8), [Encoding::Delta8, Encoding::Delta16, Encoding::Delta32, Encoding::Raw]);
}

/// Lines of codes: the narrowest cells, at the first phase with the fewest failures, and what is left is counted.
#[test]
fn spine_lines_cost_what_they_say() {
    let mut random = Random(3);
    let (mut costs, mut shifted) = (Cost::default(), 0);
    for turn in 0..4000 {
        let encoding = [Encoding::Delta8, Encoding::Delta16][turn % 2];
        let last = spine::code_max(encoding) - 1;
        let span = 1u64 << (random.below(30) + 4);
        let count = 2 + random.below(encoding.separators(8) as u64 - 1) as usize;
        let mut keys: Vec<u64> = (0..3 * count).map(|_| (1 << 40) + random.below(span)).collect();
        // Some lie close together.
        for at in 1..keys.len() {
            if random.below(3) == 0 {
                keys[at] = keys[at - 1] + random.below(3);
            }
        }
        keys.sort_unstable();
        let border = |keys: &[u64]| Border { last: keys[0], first: keys[1], second: keys[2] };
        let borders: Vec<Border<u64>> = keys.chunks(3).map(border).collect();
        let mut line = [0; 64];
        let found = spine::encode(encoding, &borders, &mut line);
        let (base, shift, flags) = spine::delta_header::<u64>(&line);
        let (left, right) = (borders[0].last, borders[count - 1].last);
        let cell = |key: u64, base: u64, shift: u32| (key - base) >> shift;
        let narrowest = (0..).find(|&shift| cell(right, left, shift) <= last).expect("a shift");
        assert_eq!(shift, narrowest);
        let parts = |it: &Border<u64>, base: u64| cell(it.first, base, shift) > cell(it.last, base, shift);
        let fails = |base: u64| borders.iter().filter(|it| !parts(it, base)).count();
        if shift > 0 {
            shifted += 1;
            let step = (1u64 << shift) / 64;
            let bases: Vec<u64> = match shift {
                ..6 => (0..1 << shift).map(|phase| left - phase).collect(),
                _ => (0..64).map(|phase| left - phase * step).collect(),
            };
            let fit = bases.into_iter().take_while(|&base| cell(right, base, shift) <= last);
            assert_eq!(Some(base), fit.min_by_key(|&base| fails(base)), "{encoding:?} {borders:?}");
        } else {
            assert_eq!(base, left);
        }
        let mut expected = Cost::default();
        for (slot, it) in borders.iter().enumerate() {
            let code = cell(it.last, base, shift);
            assert_eq!(spine::code(encoding, &line, slot), code);
            if shift == 0 || parts(it, base) {
                continue;
            }
            expected.flagged = 1;
            if it.last == it.first {
                continue;
            }
            expected.inexact += 1;
            expected.heavy += u64::from(it.second == it.first || cell(it.second, base, shift) == code);
            let is_run = |next: &Border<u64>| next.last != it.last && cell(next.last, base, shift) == code;
            expected.runs += u64::from(borders.get(slot + 1).is_some_and(is_run));
        }
        assert_eq!((found, u64::from(flags & spine::INEXACT)), (expected, expected.flagged));
        costs.add(expected);
    }
    assert!(
        costs.inexact > costs.heavy && costs.heavy > 100 && costs.runs > 100 && shifted > 1000,
        "{costs:?}"
    );
}

/// Searches where codes do not part lines: to the right, and not beyond the last line.
#[test]
fn inexact_borders_are_stepped_over() {
    let mut inexact = 0;
    for turn in 0..40u64 {
        let mut random = Random(turn);
        let mut keys: Vec<u64> =
            (0..4 * (turn + 2) * 4).map(|_| random.below(3) << 40 | random.below(9)).collect();
        keys.sort_unstable();
        let tuples: Vec<(u64, u64)> = keys.iter().map(|&key| (key, 0)).collect();
        let whole = naive::build_with(&tuples, &naive::wide(), false, naive::Grid::No);
        let there = header(&whole);
        inexact += u32::from(there.inexact_lines > 0);
        let near = keys.iter().flat_map(|&key| [key.saturating_sub(1), key, key + 1]);
        for query in near.chain([0, u64::MAX]) {
            let rank = lower_bound(&there, &Bytes(&whole), query).expect("a whole file");
            assert_eq!(rank, keys.partition_point(|&key| key < query) as u64, "{query}");
            for from in 0..there.lines {
                let is_right = |line: &u64| *line + 1 == there.lines || keys[*line as usize * 4 + 3] >= query;
                let line = step_right(&there, &Bytes(&whole), from, query).expect("a whole file");
                assert_eq!(Some(line), (from..there.lines).find(is_right));
            }
        }
    }
    assert!(inexact > 10, "{inexact}");
}
