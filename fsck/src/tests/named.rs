//! Findings name exactly the field, the element, the record or the slot that is wrong.

use super::super::{Finding, check_bytes};
use pleach_format::classic::packed::{PARTIAL_BYTES, Paged, Partial};
use pleach_format::classic::section::load;
use pleach_format::column::GUARD_BYTES;
use pleach_format::packed::{PAGE_KEYS, PackedGeometry, RECORD_BYTES, Record, pack, shape_of};
use pleach_format::section::{ENTRY_BYTES, TABLE_OFFSET, Tag};
use pleach_format::spine::Encoding;
use pleach_format::view::HEAD_BYTES;
use pleach_format::{Header, KeyType, ValueType, line, mask};
use pleach_kit::generate::{Random, mix};
use pleach_kit::mutate::{
    content, contents, entry_at, flip, header, number, put, reseal, reseal_head, resealed,
};
use pleach_kit::{golden, naive};

/// Returns the findings after a change, with all sums corrected.
fn changed(whole: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<Finding> {
    check_bytes(&resealed(whole, change))
}

/// Returns true if a rule names this place.
fn names(findings: &[Finding], code: &str, offset: usize, length: usize) -> bool {
    let place = (code, offset as u64, length as u64);
    findings.iter().any(|it| (it.code.name(), it.offset, it.length) == place)
}

/// A golden file.
fn file(name: &str) -> Vec<u8> {
    let it = golden().into_iter().find(|(path, _)| path.ends_with(&format!("/{name}.pleach")));
    it.expect("a golden file").1
}

/// The same file with other bytes in a section.
fn replaced(whole: &[u8], tag: Tag, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut contents = contents(whole);
    change(&mut contents.iter_mut().find(|it| it.0 == tag).expect("a section of this tag").2);
    naive::assemble(header(whole).superblock, contents)
}

#[test]
fn fields_of_the_table_are_named() {
    let mut named = [0; 4];
    for (name, whole) in golden() {
        for section in &header(&whole).sections {
            let tag = section.entry.tag;
            let at = entry_at(&whole, tag);
            let is_list = matches!(tag, Tag::SUMS | Tag::SUM2);
            let is_plain = is_list || matches!(tag, Tag::META | Tag::MASK);
            // Field, its bytes, a bit of it, and whether it follows from the rest.
            let fields =
                [(4, 4, 0, true), (24, 8, 0, is_list), (32, 8, 2, !is_list), (56, 64, 8 * 17, is_plain)];
            for (turn, (field, length, bit, _)) in fields.into_iter().enumerate().filter(|it| it.1.3) {
                let mut bytes = whole.clone();
                flip(&mut bytes, 8 * (at + field) + bit);
                reseal_head(&mut bytes);
                let there = Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64);
                // Opening has refused it, or skips what it does not know.
                if there.is_ok_and(|there| there.section(tag).is_some()) {
                    if field != 32 {
                        reseal(&mut bytes);
                    }
                    let findings = check_bytes(&bytes);
                    // Sums at another place are different: their list is named before all rules.
                    let is_elsewhere = |it: &Finding| field == 32 && it.code.name() == "sums";
                    let is_it = names(&findings, "header", at + field, length);
                    assert!(
                        is_it || findings.iter().any(is_elsewhere),
                        "{name}: {tag} {field}: {findings:?}"
                    );
                    named[turn] += usize::from(is_it);
                }
            }
        }
    }
    assert!(named[0] > 100 && named[3] > 20, "{named:?}");
    // Bytes after the entries.
    let whole = file("u64_u32");
    let used = TABLE_OFFSET as usize + header(&whole).sections.len() * ENTRY_BYTES;
    for at in [used, HEAD_BYTES - 1] {
        let findings = changed(&whole, |bytes| bytes[at] = 1);
        assert!(names(&findings, "header", used, HEAD_BYTES - used), "{findings:?}");
    }
}

#[test]
fn counts_of_flagged_lines_are_named() {
    for (name, whole) in golden() {
        let field = entry_at(&whole, Tag::SPINE) + 56 + 16;
        let findings = changed(&whole, |bytes| put(bytes, field, 8, number(&whole, field, 8) + 1));
        assert!(names(&findings, "spine-line", field, 8), "{name}: {findings:?}");
    }
}

#[test]
fn masks_are_those_of_the_keys() {
    let mut tried = 0;
    for (name, whole) in golden() {
        let there = header(&whole);
        if there.mask.is_none() {
            continue;
        }
        let at = content(&whole, Tag::MASK);
        let is_told = |findings: &[Finding]| names(findings, "mask", at.start, at.len());
        // Strings of one length, or of any; of another length.
        let types = match there.key_type {
            KeyType::Fixed(bytes) => [KeyType::Bytes, KeyType::Fixed(bytes + 1)],
            _ => [KeyType::Fixed(15), KeyType::Fixed(there.superblock.max_key_len.get() as u16)],
        };
        // Keys of one length have no offsets, so that opening refuses such a file.
        for other in types.into_iter().filter(|it| there.keys.is_none() || *it == KeyType::Bytes) {
            let key_bytes = if let KeyType::Fixed(bytes) = other { bytes } else { 0 };
            let findings = changed(&whole, |bytes| {
                put(bytes, 88, 2, other.code().into());
                put(bytes, 92, 4, key_bytes.into());
            });
            assert!(is_told(&findings), "{name} as {other}: {findings:?}");
        }
        // A bit of the reference that the mask keeps.
        let masks = at.start + mask::HEAD_BYTES + (at.len() - mask::HEAD_BYTES) / 2;
        let kept = (masks..at.end).find(|&byte| whole[byte] != 0).expect("a bit that is kept");
        let reference = kept - (at.len() - mask::HEAD_BYTES) / 2;
        let findings = changed(&whole, |bytes| bytes[reference] |= bytes[kept] & bytes[kept].wrapping_neg());
        assert!(is_told(&findings), "{name}: {findings:?}");
        tried += 1;
    }
    assert!(tried > 4);
}

/// Offsets at different positions among the ranks that are checked together.
#[test]
fn offsets_are_named() {
    for (file_name, tag) in [("utf8_u32", Tag::KEYS), ("u64_utf8", Tag::VALUES)] {
        let whole = file(file_name);
        let there = header(&whole);
        let place = if tag == Tag::KEYS { there.keys } else { there.values }.expect("a column");
        let width = place.shape.offset_bytes as usize;
        let at = |rank: u64| place.offset as usize + rank as usize * width;
        let too_large = place.shape.data_bytes + 1;
        for rank in 1..there.tuples {
            let findings = changed(&whole, |bytes| put(bytes, at(rank), width, too_large));
            // Ranks that end with it, and those that begin: the column's piece is 16, keys come with one before.
            let told = findings.iter().filter(|it| it.code.name() == "column" && it.text.contains("ascend"));
            let covers = |it: &&Finding| (it.offset..=it.offset + it.length).contains(&(at(rank) as u64));
            assert!(told.clone().all(|it| covers(&it)), "{file_name}: rank {rank}: {findings:?}");
            let told = told.filter(|it| (it.length as usize).is_multiple_of(width)).count();
            let borders = if rank % 16 == 0 { 2 } else { 1 };
            assert!(told >= borders, "{file_name}: rank {rank}: {findings:?}");
        }
        // The longest key that there may be; values may be longer.
        for last_bytes in [65_535, 65_536] {
            let longer = replaced(&whole, tag, |bytes| {
                let data_at = place.shape.data_at as usize;
                let last = number(bytes, (there.tuples as usize - 1) * width, width);
                let end = bytes.len() - GUARD_BYTES as usize;
                bytes.truncate(end);
                bytes.resize(data_at + last as usize + last_bytes, b'x');
                *bytes.last_mut().expect("a byte") = 0xFF;
                put(bytes, there.tuples as usize * width, width, last + last_bytes as u64);
                bytes.resize(bytes.len() + GUARD_BYTES as usize, 0);
            });
            let findings = check_bytes(&longer);
            let told = findings.iter().any(|it| it.text.contains("65,535"));
            assert_eq!(told, tag == Tag::KEYS && last_bytes > 65_535, "{file_name}: {findings:?}");
            if there.value_type == ValueType::Utf8 {
                let of_last = format!("rank {} ", there.tuples - 1);
                assert!(findings.iter().any(|it| it.text.contains(&of_last)), "{findings:?}");
            }
        }
    }
}

#[test]
fn separators_are_named() {
    let mut raw = 0;
    for (name, whole) in golden() {
        let there = header(&whole);
        let mut random = Random(1);
        for level in &there.spine.levels {
            let width = level.encoding.code_bytes(there.geometry.key_bytes);
            for line in 0..level.lines {
                let children = (level.children - line * level.fanout as u64).min(level.fanout as u64);
                if children < 2 {
                    continue;
                }
                let slot = random.below(children - 1) as usize;
                let at = (there.spine_offset + level.offset + line * 64) as usize + slot * width;
                // All ones is the code of no border.
                let findings = changed(&whole, |bytes| bytes[at..at + width].fill(0xFF));
                assert!(names(&findings, "separator", at, width), "{name}: slot {slot}: {findings:?}");
                raw += usize::from(level.encoding == Encoding::Raw);
            }
        }
    }
    assert!(raw > 10, "{raw}");
}

/// Pages of distances of 64 bits, and of few: three, so that one has another on each side.
#[test]
fn packed_pages_are_named() {
    let tuples: Vec<(u64, ())> = (0..2 * PAGE_KEYS as u64 + 200)
        .map(|i| (if i < 500 { i * 3 } else { u64::MAX - 50_000 + i * 7 + mix(i) % 5 }, ()))
        .collect();
    let whole = naive::build(&tuples, &pleach_format::meta::Meta::default(), true);
    let words: Vec<u64> = tuples.iter().map(|tuple| tuple.0).collect();
    let (mut records, mut pages) = (Vec::new(), Vec::new());
    for keys in words.chunks(PAGE_KEYS) {
        let (base, width) = shape_of(keys);
        records.extend(Record { base, place: pages.len() as u64, width }.to_bytes());
        pack(keys, &mut pages);
    }
    let shape = PackedGeometry::new(words.len() as u64, 8, pages.len() as u64).expect("small");
    let mut bytes = records;
    bytes.resize(shape.data_at as usize, 0);
    bytes.extend(pages);
    bytes.resize(shape.bytes().expect("small") as usize, 0);
    let mut contents = contents(&whole);
    contents.push((Tag::PACK, false, bytes, words.len() as u64, shape.parameters().into()));
    let whole = naive::assemble(header(&whole).superblock, contents);
    assert_eq!(check_bytes(&whole), []);
    let start = content(&whole, Tag::PACK).start;
    assert_eq!((shape.pages, whole[start + 15]), (3, 64));
    for record in 0..3 {
        let at = start + record * RECORD_BYTES;
        // With the one before it, whose width may be what is wrong.
        let before = if record == 0 { 0 } else { RECORD_BYTES };
        let findings = changed(&whole, |bytes| bytes[at + 8] ^= 1);
        assert!(names(&findings, "packed", at - before, RECORD_BYTES + before), "{record}: {findings:?}");
        let findings = changed(&whole, |bytes| bytes[at + 15] = 65);
        assert!(names(&findings, "packed", at - before, RECORD_BYTES + before), "{record}: {findings:?}");
        let findings = changed(&whole, |bytes| bytes[at] ^= 1);
        assert!(names(&findings, "packed", at, RECORD_BYTES), "{record}: {findings:?}");
    }
}

/// A grid of several segments; and one whose cells are crowded, in the middle and at its end, where marks
/// are left out.
fn grids() -> [Vec<u8>; 2] {
    let build = |keys: &mut dyn Iterator<Item = u64>, with: naive::Grid| {
        let tuples: Vec<(u64, u64)> = keys.map(|key| (key, key)).collect();
        naive::build_with(&tuples, &pleach_format::meta::Meta::default(), true, with)
    };
    let dense = (0..2200).map(|i| i * 100 + mix(i) % 100);
    let sparse = (0..2200).map(|i| 220_000 + i * 25_000 + mix(i) % 25_000);
    let segmented = build(&mut dense.chain(sparse), naive::Grid::Suited);
    let spread = (0..240).map(|i| i * 1000);
    let crowded = build(&mut spread.chain(500_000..500_280).chain(999_500..1_000_000), naive::Grid::Always);
    [segmented, crowded]
}

#[test]
fn fields_of_grids_are_named() {
    let [segmented, crowded] = grids();
    for whole in [&segmented, &crowded] {
        assert_eq!(check_bytes(whole), []);
    }
    let follow = |findings: &[Finding], at: u64, length: u64| {
        let is_it =
            |it: &Finding| it.text.contains("follow each other") && (it.offset, it.length) == (at, length);
        findings.iter().any(is_it)
    };
    for whole in [&segmented, &crowded] {
        let (at, shape) = header(whole).grid.expect("a grid");
        let first = at as usize;
        for segment in 0..shape.segments as usize {
            let findings = changed(whole, |bytes| bytes[first + 8 * segment] ^= 1);
            assert!(follow(&findings, at, shape.units_at), "segment {segment}: {findings:?}");
        }
        let findings = changed(whole, |bytes| put(bytes, (at + shape.supers_at) as usize, 4, 1));
        let supers = (shape.supers * 4) as usize;
        assert!(names(&findings, "grid", (at + shape.supers_at) as usize, supers), "{findings:?}");
        // The count of a unit, and a mark after all others.
        let unit_at = |unit: u64| (at + shape.units_at + unit * 8) as usize;
        let counts = |findings: &[Finding]| {
            let of_grid = findings.iter().filter(|it| it.section == "GRID");
            assert!(of_grid.clone().count() == 1, "{findings:?}");
            of_grid.clone().all(|it| it.text.contains("units must count"))
        };
        for unit in (0..shape.units).step_by(13) {
            let findings = changed(whole, |bytes| bytes[unit_at(unit) + 6] ^= 1);
            assert!(counts(&findings), "unit {unit}: {findings:?}");
        }
        let last = unit_at(shape.units - 1);
        let marks = number(whole, last, 6);
        if marks >> 47 == 0 {
            let findings = changed(whole, |bytes| put(bytes, last, 6, marks | 1 << 47));
            assert!(counts(&findings), "{findings:?}");
        }
    }
    // Ordered segments that continue after the last unit.
    let (at, shape) = header(&segmented).grid.expect("a grid");
    assert!(shape.segments > 100, "{shape:?}");
    let last = at as usize + 8 * (shape.segments as usize - 1);
    let findings = changed(&segmented, |bytes| {
        for field in [last - 4, last] {
            let moved = number(bytes, field, 4) + shape.units;
            put(bytes, field, 4, moved);
        }
    });
    assert!(follow(&findings, at, shape.units_at), "{findings:?}");
    let (_, shape) = header(&crowded).grid.expect("a grid");
    let borders = header(&crowded).lines - 1;
    let units = content(&crowded, Tag::GRID);
    let units = units.start + shape.units_at as usize..units.start + shape.supers_at as usize;
    let marks = crowded[units].chunks(8).map(|unit| (number(unit, 0, 6)).count_ones()).sum::<u32>();
    assert!(u64::from(marks) < borders - 10, "{marks} marks of {borders}");
}

/// The last line is not full, and is followed by a line of padding, which is not taken for the lines before it.
#[test]
fn the_last_line_is_looked_at() {
    let tuples: Vec<(u64, u64)> = (0..4 * 30 + 2).map(|i| (((i / 24) << 57) | (i % 24 / 2), i)).collect();
    let whole = naive::build(&tuples, &pleach_format::meta::Meta::default(), false);
    let there = header(&whole);
    assert_eq!((there.spine.levels[0].encoding, there.lines), (Encoding::Raw, 31));
    assert_eq!(check_bytes(&whole), []);
    let line = there.line_offset(30) as usize;
    for at in [16, 31, 48, 63] {
        let findings = changed(&whole, |bytes| bytes[line + at] ^= 1);
        assert!(names(&findings, "line-padding", line, 64), "byte {at}: {findings:?}");
    }
    let findings = changed(&whole, |bytes| bytes[200] ^= 1);
    assert!(names(&findings, "min-max", 200, 64), "{findings:?}");
}

/// Compressed trees: a section that is too short, and a page of partial keys whose record keeps too few
/// bits of them, while its words agree with it.
#[test]
fn pages_of_trees_hold_what_parts_their_keys() {
    for name in ["u64_u32_classic_delta_pages", "u128_none_classic_partial_pages"] {
        let whole = file(name);
        let start = content(&whole, Tag::FAST).start;
        let short = replaced(&whole, Tag::FAST, |bytes| bytes.truncate(64));
        let findings = check_bytes(&short);
        assert!(names(&findings, "classic", start, 64), "{name}: {findings:?}");
    }
    let whole = file("u128_none_classic_partial_pages");
    let there = header(&whole);
    let section = there.section(Tag::FAST).expect("a tree");
    let (geometry, form) = load(&section.entry.parameters, there.tuples).expect("a tree");
    let paged = Paged::new(geometry, form).expect("pages");
    // The first page of the second level.
    let (level, at) = (1, section.offset() as usize);
    let record_at = at + paged.records()[level] as usize * PARTIAL_BYTES;
    let mut record = Partial::decode(whole[record_at..].first_chunk().expect("a record"));
    assert_eq!(record.mask.count_ones(), 32);
    record.mask &= !(15 << record.mask.trailing_zeros());
    let page = at + paged.partial_places().0[level] as usize;
    let tree = paged.tree(4).expect("words of 4 bytes");
    let (first, part) = tree.pages()[level].page(0);
    let findings = changed(&whole, |bytes| {
        bytes[record_at..record_at + PARTIAL_BYTES].copy_from_slice(&record.encode());
        for slot in 0..tree.pages()[level].slots[part] {
            let Some(rank) = tree.index_of(first + slot).filter(|&rank| rank < there.tuples) else {
                continue;
            };
            let (line, place) = there.geometry.place(rank);
            let line = whole[there.line_offset(line) as usize..].first_chunk().expect("a line");
            let word = record.word(line::key::<u128>(line, place)) as u32;
            put(bytes, page + slot as usize * 4, 4, word.into());
        }
    });
    assert!(!findings.is_empty());
}
