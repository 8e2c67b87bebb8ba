//! The fast way of looking at lines against its meaning, and the lines that it takes for that.

use super::super::lines::{Held, Windows, are_parted, ascend};
use super::super::{Check, Finding};
use super::{Watched, broken};
use pleach_format::layout::LineGeometry;
use pleach_format::line::Line;
use pleach_format::meta::Meta;
use pleach_format::spine::{self, Encoding};
use pleach_format::{Header, KeyType, Word};
use pleach_kit::generate::{Random, mix};
use pleach_kit::mutate::{header, victim};
use pleach_kit::naive;

/// A header of lines of this shape, keys unique or not.
fn of_shape(shape: (usize, usize), unique: bool) -> Header {
    let mut there = header(&victim().1);
    there.geometry = LineGeometry::new(shape.0, shape.1);
    there.superblock.unique = u32::from(unique).into();
    there
}

/// Full lines of these keys.
fn filled<W: Word>(keys: &[W], header: &Header) -> Vec<Line> {
    let lines = keys.chunks_exact(header.geometry.tuples_per_line()).map(|keys| {
        let mut line = [0; 64];
        keys.iter().enumerate().for_each(|(slot, key)| key.write(&mut line[slot * W::BYTES..]));
        line[header.geometry.values_at()..].fill(0x5A);
        line
    });
    lines.collect()
}

/// Lines whose keys ascend but for one here and there.
fn ascending<W: Word>(value_bytes: usize) {
    let mut random = Random(W::BYTES as u64);
    let (mut good, mut bad) = (0, 0);
    for unique in [false, true] {
        let there = of_shape((W::BYTES, value_bytes), unique);
        let n = there.geometry.tuples_per_line();
        let ascend = ascend::<W>(n);
        assert!(!ascend(&[], &there));
        for turn in 0..400 {
            let count = n * (2 + random.below(4) as usize);
            let step = if turn % 2 == 0 { 3 } else { 1 };
            let mut keys: Vec<u64> = (0..count as u64).map(|i| 1000 + i * step).collect();
            let at = random.below(count as u64) as usize;
            // One more, one less, the same as the one before: far or near.
            match random.below(5) {
                0 => keys[at] -= 1,
                1 => keys[at] -= step,
                2 => keys[at] += step,
                3 => keys[at] = 0,
                _ => {}
            }
            let words: Vec<W> = keys.iter().map(|&key| W::from_u64(key)).collect();
            let mut lines = filled(&words, &there);
            let gap = n * W::BYTES..there.geometry.values_at();
            let mut is_padded = true;
            let line = random.below(lines.len() as u64) as usize;
            if !gap.is_empty() && random.below(4) == 0 {
                match random.below(2) {
                    0 => lines[line][gap.start + random.below(gap.len() as u64) as usize] = 1,
                    _ => lines[line][gap.clone()].fill(1),
                }
                is_padded = line == 0 || line + 1 == lines.len();
            }
            // From the last key of the first line up to the last key but those of the last line.
            let looked_at = &keys[n - 1..count - n];
            let is_good = match unique {
                true => looked_at.is_sorted_by(|one, next| one < next),
                false => looked_at.is_sorted(),
            };
            assert_eq!(ascend(&lines, &there), is_good && is_padded, "{n} {unique} {keys:?}");
            if is_good && is_padded { good += 1 } else { bad += 1 }
        }
    }
    assert!(good > 50 && bad > 50, "{good} {bad}");
}

#[test]
fn ascending_lines_are_told_from_others() {
    ascending::<u32>(0);
    ascending::<u32>(4);
    ascending::<u32>(8);
    ascending::<u64>(0);
    ascending::<u64>(4);
    ascending::<u64>(8);
    ascending::<u128>(0);
    ascending::<u128>(4);
    ascending::<u128>(8);
    // A number of tuples that no line has.
    assert!(!ascend::<u64>(7)(&[[0; 64]; 3], &of_shape((8, 0), false)));
}

/// Zero has no sign; other types may have its word.
#[test]
fn minus_zero_is_no_key() {
    for key_type in [KeyType::F64, KeyType::U64] {
        for minus_zero in [false, true] {
            let mut there = of_shape((8, 8), true);
            there.key_type = key_type;
            let zero = 1u64 << 63;
            let words: Vec<u64> =
                (zero - 6..zero + 6).map(|word| word - u64::from(!minus_zero && word < zero)).collect();
            let lines = filled(&words, &there);
            let is_good = key_type == KeyType::U64 || !minus_zero;
            assert_eq!(ascend::<u64>(4)(&lines, &there), is_good, "{key_type} {minus_zero}");
        }
    }
}

/// Separators of any code around the right one: what the fast way says, the slow way, and the definition.
fn parting<W: Word>() {
    let mut random = Random(5);
    let there = of_shape((W::BYTES, 4), false);
    let n = there.geometry.tuples_per_line();
    let source: &[u8] = &[];
    let check = Check::new(&source, 0, None);
    let bits = W::BYTES as u32 * 8;
    let (mut good, mut bad) = (0, 0);
    for &encoding in [Encoding::Raw].iter().chain(spine::candidates(W::BYTES)) {
        let (width, slots) = (encoding.code_bytes(W::BYTES), encoding.separators(W::BYTES));
        for _ in 0..2000 {
            let (shift, inexact) =
                ([0, 1, 3, bits - 1, bits, bits + 9][random.below(6) as usize], random.below(2));
            let base = 1000u64;
            let count = slots.min(1 + random.below(3) as usize);
            let first_slot = random.below((slots - count + 1) as u64) as usize;
            let mut key = base - 3 + random.below(12);
            let mut lines = Vec::new();
            let mut borders: Vec<(u64, u64)> = Vec::new();
            for line in 0..=count {
                key += random.below(3);
                if line > 0 {
                    borders[line - 1].1 = key;
                }
                let keys: Vec<W> = (0..n as u64)
                    .map(|slot| W::from_u64(key + if slot + 1 == n as u64 { 4 } else { slot.min(4) }))
                    .collect();
                lines.extend(filled(&keys, &there));
                key += 4;
                borders.push((key, 0));
            }
            let mut line: Line = [0; 64];
            if encoding != Encoding::Raw {
                let at = spine::base_at(W::BYTES);
                W::from_u64(base).write(&mut line[at..]);
                line[spine::SHIFT_AT] = shift as u8;
                line[spine::FLAGS_AT] = inexact as u8;
            }
            let max = if encoding == Encoding::Raw { u64::MAX } else { spine::code_max(encoding) };
            let mut all = true;
            for (index, &(last, first)) in borders[..count].iter().enumerate() {
                let cell =
                    |key: u64| if shift < bits { (key.wrapping_sub(base)) >> shift.min(63) } else { 0 };
                let near = if encoding == Encoding::Raw { last } else { cell(last) };
                let code = if random.below(40) == 0 {
                    max
                } else {
                    (near + random.below(5)).wrapping_sub(random.below(2) * 2)
                };
                let mask = if width == 16 { u128::MAX } else { (1 << (8 * width)) - 1 };
                let code = (u128::from(code) & mask) as u64;
                let at = (first_slot + index) * width;
                line[at..at + width].copy_from_slice(&u128::from(code).to_le_bytes()[..width]);
                let is_good = if encoding == Encoding::Raw {
                    last <= code && (code < first || code == last)
                } else {
                    let is_border = shift == 0 || inexact == 1 || first < base || cell(first) != code;
                    last >= base && cell(last) == code && code < max && is_border
                };
                let (last, first) = (W::from_u64(last), W::from_u64(first));
                check.check_separator(encoding, &line, first_slot + index, 640, last, first);
                let found = broken(&check);
                assert_eq!(
                    found.is_empty(),
                    is_good,
                    "{encoding:?} {shift} {inexact} {borders:?}: {code} {found:?}"
                );
                let place = |it: &Finding| (it.offset, it.length) == (640 + at as u64, width as u64);
                assert!(found.iter().all(place), "{found:?}");
                all &= is_good;
            }
            let fast = are_parted::<W>(&lines, &there, encoding, &line, first_slot..first_slot + count);
            // A shift of all bits is never written: such lines are looked at one by one.
            let may_be = encoding == Encoding::Raw || shift < bits;
            assert_eq!(fast, all && may_be, "{encoding:?} {shift} {inexact} {borders:?}");
            if all { good += 1 } else { bad += 1 }
        }
    }
    assert!(good > 100 && bad > 100, "{good} {bad}");
}

#[test]
fn parted_lines_are_told_from_others() {
    parting::<u32>();
    parting::<u64>();
    parting::<u128>();
}

/// The code of all ones is that of free slots, and of no cell.
#[test]
fn the_last_code_is_no_cell() {
    let there = of_shape((8, 4), false);
    for encoding in [Encoding::Delta8, Encoding::Delta16, Encoding::Delta32] {
        let (base, max) = (1000, spine::code_max(encoding));
        for code in [max - 1, max] {
            let last = base + code;
            let keys =
                [last - 2, last - 1, last, last, last, last + 1, last + 2, last + 3, last + 4, last + 5];
            let mut line: Line = [0; 64];
            base.write(&mut line[spine::base_at(8)..]);
            let width = encoding.code_bytes(8);
            line[..width].copy_from_slice(&code.to_le_bytes()[..width]);
            let is_parted = are_parted::<u64>(&filled(&keys, &there), &there, encoding, &line, 0..1);
            assert_eq!(is_parted, code < max, "{encoding:?}");
        }
    }
}

#[test]
fn neighbours_are_those_in_memory() {
    let lines: Vec<Line> = (0..6).map(|i| [i; 64]).collect();
    let held = Held { first: 10, lines: &lines };
    let numbers = |start: u64, end: u64| {
        held.with_neighbours(start..end).map(|lines| lines.iter().map(|line| line[0]).collect::<Vec<_>>())
    };
    assert_eq!(numbers(11, 12), Some(vec![0, 1, 2]));
    assert_eq!(numbers(12, 15), Some(vec![1, 2, 3, 4, 5]));
    assert_eq!(numbers(11, 15), Some(vec![0, 1, 2, 3, 4, 5]));
    for (start, end) in [(10, 12), (9, 12), (0, 3), (12, 16), (15, 16), (16, 17), (30, 40)] {
        assert_eq!(numbers(start, end), None, "{start}..{end}");
    }
    assert_eq!(held.line(15), Some(&[5; 64]));
    assert_eq!((held.line(9), held.line(16)), (None, None));
}

/// Lines of the spine are read a window at a time, and not past their level.
#[test]
fn spine_lines_come_in_windows() {
    let tuples: Vec<(u64, u64)> = (0..20_000).map(|i| (i * 1000 + mix(i) % 900, i)).collect();
    let bytes = naive::build_with(&tuples, &Meta::default(), true, naive::Grid::No);
    let there = header(&bytes);
    let source = Watched::new(bytes);
    let check = Check::new(&source, source.bytes.len() as u64, None);
    let mut windows = Windows::new(&there);
    // As many as a piece of 128 lines needs, and two more for its ends.
    let mut wanted = 128;
    for (depth, level) in there.spine.levels.iter().enumerate() {
        wanted = wanted / level.fanout as u64 + 2;
        let start = there.spine_offset + level.offset;
        let mut held = 0..0;
        let ascending = 0..level.lines;
        let there_and_back = ascending.clone().chain(ascending.clone().rev()).chain([0, level.lines / 2, 0]);
        for at in there_and_back {
            let line = windows.line(&check, &there, depth, level, at).expect("readable");
            let place = (start + at * 64) as usize;
            assert_eq!(line, source.bytes[place..place + 64], "line {at}");
            let read = source.take();
            if held.contains(&at) {
                assert_eq!(read, [], "line {at} of level {depth}");
            } else {
                held = at..(at + wanted).min(level.lines);
                let window = start + 64 * held.start..start + 64 * held.end;
                assert_eq!(read, std::slice::from_ref(&window), "line {at} of level {depth}");
            }
        }
    }
    assert!(there.spine.levels[0].lines > 3 * 128 / there.spine.levels[0].fanout as u64);
    // In a check of the whole file, each is read a few times.
    let check = Check::new(&source, source.bytes.len() as u64, None);
    assert_eq!(check.run().expect("readable").findings, []);
    let read: u64 = source.take().iter().map(|it| it.end - it.start).sum();
    let whole = source.bytes.len() as u64;
    assert!(read < whole * 5 / 4, "{read} bytes of {whole}");
}
