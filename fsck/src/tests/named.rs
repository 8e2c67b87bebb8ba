//! Findings name exactly the field, the element, the record or the slot that is wrong.

use super::super::{Finding, check_bytes};
use pleach_format::classic::paged::{PageRecord, Paged};
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
    let with_spine = golden().into_iter().filter(|(_, whole)| header(whole).section(Tag::SPINE).is_some());
    for (name, whole) in with_spine {
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

/// A grid whose keys are spread evenly, one with segments within segments, and one whose marks run over their cells.
fn grids() -> [Vec<u8>; 3] {
    let build = |keys: &mut dyn Iterator<Item = u64>| {
        let tuples: Vec<(u64, u64)> = keys.map(|key| (key, key)).collect();
        naive::build_with(&tuples, &pleach_format::meta::Meta::default(), false, naive::Grid::Always)
    };
    let spread = build(&mut (0..4400).map(|i| i * 100 + mix(i) % 100));
    let mut crowded: Vec<u64> = (0..4400).map(|i| mix(i) >> (mix(i + 5) % 50)).collect();
    crowded.sort_unstable();
    let crowded = build(&mut crowded.into_iter());
    let ends = (0..1200).map(|i| i * 1000);
    let equal = build(&mut ends.chain(std::iter::repeat_n(1_199_001, 900)).chain([1_199_002; 400]));
    [spread, crowded, equal]
}

#[test]
fn fields_of_grids_are_named() {
    let grids = grids();
    for whole in &grids {
        assert_eq!(check_bytes(whole), []);
    }
    let of_grid = |findings: &[Finding], text: &str| {
        let of_grid = |it: &&Finding| it.section == "GRID" && it.code.name() == "grid";
        findings.iter().filter(of_grid).any(|it| it.text.contains(text))
    };
    for whole in &grids {
        let (at, shape) = header(whole).grid.expect("a grid");
        let unit_at = |unit: u64| (at + shape.units_at + unit * 8) as usize;
        for unit in (0..shape.units).step_by(13) {
            let findings = changed(whole, |bytes| bytes[unit_at(unit) + 4] ^= 1);
            assert!(of_grid(&findings, ""), "unit {unit}: {findings:?}");
        }
        // A mark behind all others.
        let last = unit_at(shape.units - 1);
        let marks = number(whole, last, 4);
        if marks >> 31 == 0 {
            let findings = changed(whole, |bytes| put(bytes, last, 4, marks | 1 << 31));
            assert!(of_grid(&findings, "have no others"), "{findings:?}");
        }
    }
    let [_, crowded, _] = &grids;
    let (at, shape) = header(crowded).grid.expect("a grid");
    assert!(shape.steps > 1 && shape.segments > 500, "{shape:?}");
    let field = |segment: u64, field: u64| (at + segment * 16 + field) as usize;
    let mut kinds = [0; 4];
    for segment in 0..shape.segments {
        let form = number(crowded, field(segment, 12), 4);
        let kind = (form >> 24 & 3) as usize;
        kinds[kind] += 1;
        // What it leads to, its kind, and one part more or less.
        let text = if kind == 2 && form << 40 == 0 { "must lead to the next line" } else { "" };
        let findings = changed(crowded, |bytes| bytes[field(segment, 8)] ^= 1);
        assert!(of_grid(&findings, text), "first of {segment}: {findings:?}");
        let findings = changed(crowded, |bytes| bytes[field(segment, 15)] |= 3);
        assert!(of_grid(&findings, text), "kind of {segment}: {findings:?}");
    }
    assert!(kinds[..3].iter().all(|&count| count > 3) && kinds[3] == 0, "{kinds:?}");
    // Segments that lead back, or out of the section.
    let is_inner = |&segment: &u64| number(crowded, field(segment, 12), 4) >> 24 & 3 == 0;
    for segment in (0..shape.segments).filter(is_inner) {
        for (wrong, text) in [(0, "behind it"), (segment, "behind it"), (shape.segments, "behind it")] {
            let findings = changed(crowded, |bytes| put(bytes, field(segment, 8), 4, wrong));
            assert!(of_grid(&findings, text), "{segment}: {findings:?}");
        }
    }
    let is_cells = |&segment: &u64| number(crowded, field(segment, 12), 4) >> 24 & 3 == 1;
    for segment in (0..shape.segments).filter(is_cells) {
        let findings = changed(crowded, |bytes| put(bytes, field(segment, 8), 4, shape.units));
        assert!(of_grid(&findings, "units inside the section"), "{segment}: {findings:?}");
    }
}

/// The last line is not full, and is followed by a line of padding, which is not taken for the lines before it.
#[test]
fn the_last_line_is_looked_at() {
    let tuples: Vec<(u64, u64)> = (0..4 * 30 + 2).map(|i| (((i / 24) << 57) | (i % 24 / 2), i)).collect();
    let whole = naive::build(&tuples, &naive::wide(), false);
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

/// What short words stand for: a word beyond those of keys, and another base.
#[test]
fn short_words_are_those_of_keys() {
    let tuples: Vec<(u64, u64)> = (0..100).map(|i| (u64::MAX - 3 * (99 - i), i)).collect();
    let whole = naive::build(&tuples, &pleach_format::meta::Meta::default(), false);
    let there = header(&whole);
    assert!(there.short.is_some_and(|short| short.word_bytes() == 4));
    assert_eq!(check_bytes(&whole), []);
    let last = there.line_offset(there.lines - 1) as usize + 4 * ((100 - 1) % 5);
    let findings = changed(&whole, |bytes| put(bytes, last, 4, 3 * 99 + 1));
    assert!(names(&findings, "key", last, 4), "{findings:?}");
    let base = pleach_kit::mutate::entry_at(&whole, Tag::LINE) + 56 + 16;
    let findings = changed(&whole, |bytes| {
        let old = number(bytes, base, 8);
        put(bytes, base, 8, old - 1);
        pleach_kit::mutate::reseal_head(bytes);
    });
    assert!(names(&findings, "min-max", 136, 64) && names(&findings, "min-max", 200, 64), "{findings:?}");
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
        let is_named = findings.iter().any(|it| it.section == "FAST" && it.text.contains("its tree"));
        assert!(is_named, "{name} at {start}: {findings:?}");
    }
    let whole = file("u128_none_classic_partial_pages");
    let there = header(&whole);
    let section = there.section(Tag::FAST).expect("a tree");
    let (geometry, form) = load(&section.entry.parameters, there.tuples).expect("a tree");
    let paged = Paged::new(geometry, form).expect("pages");
    // The first page of the second level.
    let (level, at) = (1, section.offset() as usize);
    let record_at = at + paged.records()[level] as usize * paged.record_bytes();
    let mut record = PageRecord::decode(16, &whole[record_at..]).expect("a record");
    assert_eq!(record.kept.count_ones(), 8);
    record.kept &= record.kept - 1;
    let page = at + record.place as usize;
    let tree = paged.tree(4).expect("words of 4 bytes");
    let (first, part) = tree.pages()[level].page(0);
    let findings = changed(&whole, |bytes| {
        bytes[record_at..record_at + 32].copy_from_slice(&record.encode(16));
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
