//! No byte that follows from the tuples can be changed, even under correct sums; the place of a changed
//! byte is reported.
//!
//! Files are the golden ones, and some of the kit's: nothing here builds or searches.

use pleach_format::classic::paged::{Form, PageRecord, Paged};
use pleach_format::classic::{self, Tree};
use pleach_format::section::{Entry, SpineParameters, Tag};
use pleach_format::view::{HEAD_BYTES, Section};
use pleach_format::{Header, ValueType, line, offset_in};
use pleach_fsck::{Finding, check_bytes};
use pleach_kit::generate::{Random, mix};
use pleach_kit::mutate::{
    content, entry_at, extent, flip, header, number, put, reseal, reseal_head, resealed, victim,
};
use pleach_kit::{figure, golden, is_long, naive};
use std::collections::BTreeSet;

/// Returns true if a finding covers this byte, by a rule for less than the whole file.
fn covers(finding: &Finding, at: usize) -> bool {
    let at = at as u64;
    finding.code.name() != "length" && (finding.offset..finding.offset + finding.length).contains(&at)
}

/// Returns the findings for a file that was changed, with all sums corrected.
fn changed(whole: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<Finding> {
    check_bytes(&resealed(whole, change))
}

/// The place of a changed byte is reported.
#[test]
fn damage_is_placed() {
    let whole = victim().1;
    let step = if is_long() { 1 } else { 13 };
    for at in (0..whole.len()).step_by(step) {
        let mut bytes = whole.clone();
        flip(&mut bytes, at * 8 + (mix(at as u64) % 8) as usize);
        let findings = check_bytes(&bytes);
        let placed = findings.iter().find(|finding| covers(finding, at));
        let Some(finding) = placed else { panic!("byte {at}: {findings:?}") };
        assert!(finding.length <= 8192, "byte {at}: {finding}");
        let end = findings.iter().map(|finding| finding.offset + finding.length).max();
        assert!(end <= Some(whole.len() as u64), "byte {at}: {findings:?}");
        assert!(findings.is_sorted_by_key(|finding| finding.offset), "{findings:?}");
    }
}

/// Every byte of a section that follows from the tuples, changed under right sums.
#[test]
fn what_follows_from_the_tuples_cannot_be_changed() {
    let step = if is_long() { 1 } else { 7 };
    let mut tried = 0;
    for (name, whole) in golden() {
        let there = header(&whole);
        for tag in [Tag::GRID, Tag::PACK, Tag::HARMONIA, Tag::BTREE, Tag::FAST, Tag::KEYS, Tag::VALUES] {
            // Byte strings are stored only in their columns: others would be the keys of another file.
            let is_free = tag == Tag::KEYS && there.key_type.is_bytes()
                || tag == Tag::VALUES && there.value_type.is_bytes();
            if there.section(tag).is_none() || is_free {
                continue;
            }
            for (turn, at) in extent(&whole, tag).enumerate().filter(|(turn, _)| turn % step == 0) {
                let findings = changed(&whole, |bytes| flip(bytes, at * 8 + (mix(turn as u64) % 8) as usize));
                // If segments differ, so do the places of marks.
                let is_segment = there
                    .grid
                    .is_some_and(|(grid, shape)| tag == Tag::GRID && (at as u64) < grid + shape.units_at);
                // What a record says of its page's words shows in the words.
                let is_record = tag == Tag::FAST
                    && there.fast.is_some_and(|(offset, shape)| {
                        let paged = Paged::new(shape.geometry, shape.form);
                        paged.is_some_and(|paged| (at as u64) < offset + paged.pages_at())
                    });
                let is_it = |it: &Finding| {
                    covers(it, at) || is_segment && it.section == "GRID" || is_record && it.section == "FAST"
                };
                assert!(findings.iter().any(is_it), "{name}: byte {at} of {tag}: {findings:?}");
                tried += 1;
            }
        }
    }
    figure(
        3,
        &format!(
            "{tried} bytes of sections that follow from the tuples, changed under right sums: all found"
        ),
    );
}

/// Every bit of the section table's entries but the sum of sums, made right: no other entry is a valid one, where
/// it is not that of an unknown section which may be skipped. (The span of a grid is free: its marks are
/// looked at.)
#[test]
fn entries_of_the_table_cannot_be_changed() {
    let mut tried = 0;
    for (name, whole) in golden() {
        for section in &header(&whole).sections {
            let tag = section.entry.tag;
            let at = entry_at(&whole, tag);
            let bytes = (0..128).filter(|byte| !(48..52).contains(byte));
            let bytes = bytes.filter(|byte| tag != Tag::GRID || !(64..80).contains(byte));
            let step = if is_long() { 1 } else { 5 };
            let bits = bytes.flat_map(|byte| 8 * byte..8 * byte + 8);
            // Flags are few.
            for bit in bits.filter(|bit| bit % step == 0 || (32..64).contains(bit)) {
                let mut bytes = whole.clone();
                flip(&mut bytes, 8 * at + bit);
                reseal_head(&mut bytes);
                tried += 1;
                let Ok(there) = Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64) else { continue };
                reseal(&mut bytes);
                let may_skip = there.section(tag).is_none() && section.entry.flags.get() == 0;
                let is_same = match tag {
                    Tag::FAST => {
                        is_same_tree(&section.entry, there.section(tag), &whole[content(&whole, tag)])
                    }
                    Tag::LINE => keys(&whole, &header(&whole)) == keys(&whole, &there),
                    _ => false,
                };
                assert!(may_skip || is_same || !check_bytes(&bytes).is_empty(), "{name}: {tag} bit {bit}");
            }
        }
    }
    assert!(tried > 5_000);
}

/// Lists of sums are in the order of their sections, or a writer that relies on it would overwrite some.
#[test]
fn lists_of_sums_stand_in_order() {
    let whole = victim().1;
    let findings = changed(&whole, |bytes| {
        let [one, other] = [Tag::META, Tag::SPINE].map(|tag| entry_at(bytes, tag) + 32);
        assert_eq!((number(bytes, one + 8, 8), number(bytes, other + 8, 8)), (1, 1), "a sum each");
        let (first, second) = (number(bytes, one, 8), number(bytes, other, 8));
        put(bytes, one, 8, second);
        put(bytes, other, 8, first);
        reseal_head(bytes);
    });
    assert!(
        findings.iter().any(|it| it.code.name() == "header" && it.text.contains("follow each other")),
        "{findings:?}"
    );
}

/// The keys of a file by a header of it or of a forgery: runs that no word uses can be others.
fn keys(whole: &[u8], there: &Header) -> Option<Vec<u128>> {
    let key = |rank: u64| {
        let (line, slot) = there.geometry.place(rank);
        let at = there.line_offset(line) as usize;
        let word = line::word(whole[at..].first_chunk().expect("a line"), there.geometry.key_bytes, slot);
        there.short.map_or(Some(word), |short| short.checked_key(word))
    };
    (0..there.tuples).map(key).collect()
}

/// Returns true if two entries lay out the pages of a classic tree alike, as small trees do with some other
/// depths.
fn is_same_tree(one: &Entry, other: Option<&Section>, tree: &[u8]) -> bool {
    let places = |entry: &Entry| {
        let keys = entry.elements.get();
        let slots = |tree: &Tree| (0..keys).map(|index| tree.slot_of(index)).collect::<Vec<_>>();
        let (geometry, form) = classic::section::load(&entry.parameters, keys)?;
        if form == Form::Full {
            return Some((true, Vec::new(), vec![slots(&geometry.tree()?)]));
        }
        // Words of some widths may occur on no page, or on one without keys, whose base is 0. All compressed forms
        // have the same pages.
        let paged = Paged::new(geometry, form)?;
        let records = tree.chunks(paged.record_bytes()).take(paged.pages() as usize);
        let records = records.filter_map(|record| PageRecord::decode(geometry.key_bytes, record));
        let widths: BTreeSet<u32> =
            records.filter(|record| record.base != 0).map(|record| record.width).collect();
        let slots = widths.into_iter().map(|width| paged.tree(width).map(slots));
        Some((false, paged.records().to_vec(), slots.collect::<Option<_>>()?))
    };
    let (one, other) = (places(one), other.and_then(|other| places(&other.entry)));
    one.is_some() && one == other
}

/// Codes of separators, keys and padding: what may be changed is known.
#[test]
fn lines_and_separators_cannot_be_changed_but_for_values() {
    let step = if is_long() { 1 } else { 7 };
    for (name, whole) in golden() {
        let there = header(&whole);
        let geometry = there.geometry;
        let lines = extent(&whole, Tag::LINE);
        for at in lines.clone().step_by(step) {
            let (line, slot) = ((at - lines.start) / 64, (at - lines.start) % 64);
            let used = geometry.tuples_in_line(line as u64, there.tuples);
            let is_value =
                slot >= geometry.values_at() && slot < geometry.values_at() + used * geometry.value_bytes;
            if is_value {
                continue;
            }
            let mut bytes = whole.clone();
            // The highest bit of a byte of a key: no neighbour of it can be meant.
            bytes[at] ^= 0x80;
            reseal(&mut bytes);
            let is_low =
                slot < used * geometry.key_bytes && slot % geometry.key_bytes < geometry.key_bytes - 1;
            // Low bytes of keys may be others, in order all the same.
            assert!(is_low || !check_bytes(&bytes).is_empty(), "{name}: byte {at}");
        }
    }
}

/// Tuples over several pieces, and what breaks at their borders.
#[test]
fn damage_at_the_borders_of_pieces_is_placed() {
    // 4096 lines a piece, four tuples a line.
    let tuples: Vec<(u64, u64)> = (0..4096 * 4 * 2 + 700).map(|i| (i * 1000 + mix(i) % 900, i)).collect();
    let whole = naive::build(&tuples, &naive::wide(), true);
    assert_eq!(check_bytes(&whole), []);
    let there = header(&whole);
    assert!(there.grid.is_some() && there.lines > 2 * 4096);
    let lines = content(&whole, Tag::LINE).start;
    let key = |line: u64, slot: u64| lines + (line * 64 + slot * 8) as usize;
    for line in [0, 1, 4094, 4095, 4096, 4097, 8191, 8192, there.lines - 2] {
        let tuple = |slot: u64| tuples[(line * 4 + slot) as usize].0;
        // A key that its left neighbour exceeds.
        for slot in 0..4 {
            if line + slot == 0 {
                continue;
            }
            let before = if slot == 0 { tuples[line as usize * 4 - 1].0 } else { tuple(slot - 1) };
            for (wrong, code) in [(before - 1, "order"), (before, "duplicate")] {
                let findings = changed(&whole, |bytes| put(bytes, key(line, slot), 8, wrong));
                let placed = findings.iter().any(|finding| {
                    finding.code.name() == code
                        && finding.section == "LINE"
                        && finding.offset == key(line, slot) as u64
                        && finding.length == 8
                        && finding.found == wrong.to_string()
                });
                assert!(placed, "line {line}, slot {slot}, {code}: {findings:?}");
                let others =
                    findings.iter().filter(|finding| ["order", "duplicate"].contains(&finding.code.name()));
                assert_eq!(others.count(), 1, "line {line}, slot {slot}: {findings:?}");
            }
        }
        // The mark of its border, moved by a cell.
        if line + 1 < there.lines {
            let mut bytes = whole.clone();
            let last = tuple(3);
            // A last key far enough on that its cell is another: the next line's first key stays above it.
            let next = tuples[line as usize * 4 + 4].0;
            put(&mut bytes, key(line, 3), 8, next - 1);
            reseal(&mut bytes);
            if next - 1 > last + 500 {
                assert!(
                    !check_bytes(&bytes).is_empty(),
                    "line {line}: its separator and its mark stand elsewhere"
                );
            }
        }
    }
    // Each unit of the grid, each kind of its bits.
    let units = content(&whole, Tag::GRID);
    let mut random = Random(7);
    for _ in 0..if is_long() { 5000 } else { 150 } {
        let findings = changed(&whole, |bytes| {
            flip(bytes, units.start * 8 + random.below(units.len() as u64 * 8) as usize)
        });
        assert!(findings.iter().any(|finding| finding.section == "GRID"), "{findings:?}");
    }
    // Marks in the next cell: as many as before.
    let (grid, shape) = there.grid.expect("a grid");
    let unit_at = |unit: u64| (grid + shape.units_at + unit * 8) as usize;
    for unit in (0..shape.units).step_by(if is_long() { 1 } else { 37 }) {
        let marks = number(&whole, unit_at(unit), 8);
        let movable = marks & !(marks >> 1) & ((1 << 31) - 1);
        if movable == 0 {
            continue;
        }
        let mark = movable & movable.wrapping_neg();
        let findings = changed(&whole, |bytes| put(bytes, unit_at(unit), 8, marks ^ (mark | mark << 1)));
        let is_it = |it: &Finding| it.section == "GRID" && it.length <= 8192 && covers(it, unit_at(unit));
        assert!(findings.iter().any(is_it), "unit {unit}: {findings:?}");
    }
    // Every separator between two lines, one more or less than it is.
    let spine = content(&whole, Tag::SPINE);
    for _ in 0..if is_long() { 5000 } else { 150 } {
        let mut bytes = whole.clone();
        let at = spine.start + random.below(spine.len() as u64) as usize;
        bytes[at] = bytes[at].wrapping_add(if random.below(2) == 0 { 1 } else { 0xFF });
        reseal(&mut bytes);
        let findings = check_bytes(&bytes);
        // A base may be another where all cells stay the same.
        let is_base = (54..62).contains(&((at - spine.start) % 64));
        let found = findings.iter().any(|finding| finding.section == "SPIN");
        assert!(is_base || found, "byte {} of the spine: {findings:?}", at - spine.start);
    }
}

/// Damage after the first piece of a section is located to the byte.
#[test]
fn places_are_exact_in_every_piece() {
    // Wide keys, few to a line: without a grid, which takes long to make.
    let mut tuples: Vec<(u128, u64)> =
        (0..215_003).map(|i| (u128::from(mix(i)) << 64 | u128::from(mix(i + 1)), i)).collect();
    tuples.sort_unstable();
    let whole = naive::build(&tuples, &pleach_format::meta::Meta::default(), true);
    let there = header(&whole);
    let is_at = |findings: &[Finding], (code, section, offset, length): (&str, &str, usize, u64)| {
        let place = (code, offset as u64, length);
        let is_it = |it: &Finding| (it.code.name(), it.offset, it.length) == place && it.section == section;
        findings.iter().any(is_it)
    };
    for tag in [Tag::LINE, Tag::SPINE] {
        let (all, used, name) = (extent(&whole, tag), content(&whole, tag), tag.to_string());
        assert!(all.len() >= 33 * 8192, "{name}: {} bytes", all.len());
        let at = all.start + (all.len() / 8192 - 1) * 8192;
        let mut bytes = whole.clone();
        bytes[at + 77] ^= 4;
        let findings = check_bytes(&bytes);
        assert!(is_at(&findings, ("block", &name, at, 8192)), "{name}: {findings:?}");
        assert_eq!(findings.len(), 1, "{name}: {findings:?}");
        if used.end < all.end {
            let at = (used.end + all.end) / 2;
            let findings = changed(&whole, |bytes| bytes[at] = 9);
            assert!(is_at(&findings, ("padding", &name, at, 1)), "{name}: {findings:?}");
        }
    }
    let widest = there.spine.levels.iter().max_by_key(|level| level.lines).expect("levels");
    let at = (there.spine_offset + widest.offset + (widest.lines - 2) * 64) as usize;
    assert!(widest.lines > 4098);
    let findings = changed(&whole, |bytes| bytes[at + pleach_format::spine::FLAGS_AT] |= 0x40);
    assert!(is_at(&findings, ("spine-line", "SPIN", at, 64)), "{findings:?}");
}

/// A spine above groups of lines: its separators, its free slots, and the number of lines in a group.
#[test]
fn groups_of_lines_cannot_be_changed() {
    let groups = |bytes: &mut Vec<u8>, lines: u64| {
        let at = entry_at(bytes, Tag::SPINE) + offset_in!(Entry, parameters) as usize;
        put(bytes, at + offset_in!(SpineParameters, child_lines) as usize, 4, lines);
    };
    // Of 255 lines, so that the last group is short, and of many pieces of lines.
    for count in [255 * 4 - 1, 300_001] {
        let mut tuples: Vec<(u64, u64)> = (0..count).map(|i| (mix(i), i)).collect();
        tuples.sort_unstable();
        let whole = naive::build(&tuples, &pleach_format::meta::Meta::default(), true);
        let there = header(&whole);
        assert_eq!(there.spine.child_lines, 16);
        assert_eq!(check_bytes(&whole), []);
        // Sizes with which the levels are of the same shape.
        let mut opened = 0;
        for lines in [0, 1, 2, 4, 8, 32, 64, 128] {
            let findings = changed(&whole, |bytes| groups(bytes, lines));
            let is_seen = |it: &Finding| matches!(it.code.name(), "separator" | "spine-line" | "header");
            assert!(findings.iter().any(is_seen), "{count}: {lines} lines: {findings:?}");
            opened += usize::from(findings.iter().any(|it| it.code.name() == "separator"));
        }
        assert!(count > 2000 || opened > 0, "some sizes leave the shape of a small spine");
        // Every code of level 0 stands for the last key of its group.
        let level = there.spine.levels[0];
        for child in [0, level.children / 2, level.children - 2] {
            let (line, slot) = (child / level.fanout as u64, child as usize % level.fanout);
            if slot + 1 == level.fanout {
                continue;
            }
            let width = level.encoding.code_bytes(8);
            let at = (there.spine_offset + level.offset + line * 64) as usize + slot * width;
            let findings = changed(&whole, |bytes| bytes[at] ^= 1);
            let is_it = |it: &Finding| it.code.name() == "separator" && covers(it, at);
            assert!(findings.iter().any(is_it), "{count}: child {child}: {findings:?}");
        }
        // A key that passes the end of its group is seen by the separator, not only by the order of keys.
        let (line, mut bytes) = (there.line_offset(15) as usize, whole.clone());
        bytes[line + 24..line + 32].copy_from_slice(&(tuples[64].0 - 1).to_le_bytes());
        reseal(&mut bytes);
        let findings = check_bytes(&bytes);
        assert!(findings.iter().any(|it| it.code.name() == "separator"), "{count}: {findings:?}");
    }
}

/// Texts that are values: letters that are none, and offsets that lead nowhere.
#[test]
fn texts_cannot_be_other_bytes() {
    let mut tried = 0;
    for (name, whole) in golden() {
        let there = header(&whole);
        let Some(place) = there.values.filter(|_| there.value_type.is_bytes()) else { continue };
        let data = place.data_offset() as usize..(place.data_offset() + place.shape.data_bytes) as usize;
        let step = if is_long() { 1 } else { 11 };
        // Of a record, only its texts are bound to be letters.
        let texts = data.step_by(step).filter(|_| there.value_type == ValueType::Utf8);
        for at in texts {
            let findings = changed(&whole, |bytes| bytes[at] ^= 0x80);
            let is_it = |it: &Finding| it.section == "VALS" && covers(it, at);
            assert!(findings.iter().any(is_it), "{name}: byte {at}: {findings:?}");
            tried += 1;
        }
        let width = place.shape.offset_bytes as usize;
        for rank in (0..=place.shape.elements as usize).step_by(step) {
            let at = place.offset as usize + rank * width;
            for wrong in [place.shape.data_bytes + 1, u64::from(u32::MAX >> 1)] {
                let findings = changed(&whole, |bytes| put(bytes, at, width, wrong));
                let is_it = |it: &Finding| it.section == "VALS" && covers(it, at);
                assert!(findings.iter().any(is_it), "{name}: offset {rank}: {findings:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 200);
}

/// Byte keys: their words, the data stored with them, and the outermost keys must belong to each other.
#[test]
fn byte_keys_cannot_be_other_bytes() {
    let (mut columns, mut tails) = (0, 0);
    for (name, whole) in golden() {
        let there = header(&whole);
        if !there.key_type.is_bytes() {
            continue;
        }
        // The outermost keys of the superblock, and (named with these) their lengths.
        for at in [128, 132] {
            let findings = changed(&whole, |bytes| bytes[at] ^= 1);
            assert!(findings.iter().any(|it| it.code.name() == "min-max"), "{name}: {findings:?}");
        }
        for at in [136, 137, 200, 201] {
            let findings = changed(&whole, |bytes| bytes[at] ^= 1);
            assert!(
                findings.iter().any(|it| it.code.name() == "min-max" && covers(it, at)),
                "{name}: {findings:?}"
            );
        }
        let step = if is_long() { 1 } else { 5 };
        let geometry = there.geometry;
        if let Some(place) = there.keys {
            // Every key's word is looked at with the key.
            for rank in (0..there.tuples).step_by(step) {
                let (line, slot) = geometry.place(rank);
                let at = there.line_offset(line) as usize + slot * geometry.key_bytes;
                let findings = changed(&whole, |bytes| bytes[at] ^= 1);
                let of_key = format!("rank {rank} ");
                let is_it = |it: &Finding| it.section == "KEYS" && it.text.contains(&of_key);
                assert!(findings.iter().any(is_it), "{name}: rank {rank}: {findings:?}");
                columns += 1;
            }
            let data = place.data_offset() as usize..(place.data_offset() + place.shape.data_bytes) as usize;
            for at in data.step_by(7 * step) {
                let findings = changed(&whole, |bytes| bytes[at] ^= 0x80);
                let is_it = |it: &Finding| it.section == "KEYS" && covers(it, at);
                assert!(findings.iter().any(is_it), "{name}: byte {at}: {findings:?}");
            }
        }
        if let Some(place) = there.tails {
            // Free bits are at the end of each tail.
            let bytes_each = place.shape.element_bytes;
            for rank in (0..there.tuples).step_by(step) {
                let at = (place.data_offset() + (rank + 1) * bytes_each) as usize - 1;
                let findings = changed(&whole, |bytes| bytes[at] ^= 0x80);
                let is_it = |it: &Finding| it.section == "TAIL" && covers(it, at);
                assert!(findings.iter().any(is_it), "{name}: tail {rank}: {findings:?}");
                tails += 1;
            }
        }
    }
    assert!(columns > 20 && tails > 50, "{columns} {tails}");
}
