//! A second, slow builder, written from `docs/FORMAT.md`: one buffer, no streaming, recursion.
//!
//! It shares with the product only the constants, the CRC and [`spine::encode`]'s choice of base and
//! shift (which the format leaves to the builder). What the product writes must equal it byte for
//! byte.

use pleach_format::checksum::{FileId, SUM_BLOCK_BYTES, binding, crc32};
use pleach_format::key::{Bits, Word};
use pleach_format::layout::{SpineGeometry, section_start};
use pleach_format::meta::Meta;
use pleach_format::section::{Entry, GridParameters, Parameters, Tag, encode_table};
use pleach_format::spine::{self, Border, Encoding};
use pleach_format::superblock::{Superblock, key_prefix};
use pleach_format::view::{line_parameters, spine_parameters};
use pleach_format::{Key, LineGeometry, Value};

/// Tuples as lines, one byte at a time.
fn lines<W: Word, B: Bits>(tuples: &[(W, B)]) -> Vec<u8> {
    let n = 64 / (W::BYTES + B::BYTES);
    let mut bytes = Vec::new();
    for chunk in tuples.chunks(n) {
        let mut line = vec![0u8; 64];
        for slot in 0..n {
            let (key, value) = chunk.get(slot).copied().unwrap_or((W::MAX, B::default()));
            line[slot * W::BYTES..][..W::BYTES].copy_from_slice(&key.to_u128().to_le_bytes()[..W::BYTES]);
            let at = 64 - n * B::BYTES + slot * B::BYTES;
            line[at..][..B::BYTES].copy_from_slice(&value.to_u64().to_le_bytes()[..B::BYTES]);
        }
        bytes.extend_from_slice(&line);
    }
    bytes.resize(bytes.len().next_multiple_of(128), 0);
    bytes
}

/// The levels above `children` (of each the first key, the first of its second child, and the last), bottom
/// level first.
fn levels<W: Word>(children: &[(W, W, W)], is_bottom: bool) -> Vec<(Encoding, Vec<u8>, u64)> {
    if children.len() <= 1 {
        return Vec::new();
    }
    for &encoding in spine::candidates(W::BYTES) {
        let fanout = encoding.separators(W::BYTES) + 1;
        if is_bottom && encoding == Encoding::Delta8 && !passes_trial(children, fanout) {
            continue;
        }
        let mut bytes = Vec::new();
        let mut cost = spine::Cost::default();
        let mut parents = Vec::new();
        let mut borders_all = 0;
        for group in children.chunks(fanout) {
            let borders: Vec<Border<W>> = group
                .windows(2)
                .map(|pair| Border { last: pair[0].2, first: pair[1].0, second: pair[1].1 })
                .collect();
            let mut line = [0; 64];
            cost.add(spine::encode(encoding, &borders, &mut line));
            borders_all += borders.len() as u64;
            bytes.extend_from_slice(&line);
            parents.push((group[0].0, group[group.len().min(2) - 1].0, group[group.len() - 1].2));
        }
        if spine::acceptable(W::BYTES == 16, borders_all, cost) {
            bytes.resize(bytes.len().next_multiple_of(128), 0);
            let mut all = vec![(encoding, bytes, cost.flagged)];
            all.extend(levels(&parents, false));
            return all;
        }
    }
    unreachable!("raw always fits")
}

/// Returns true if the first whole lines of 8-bit codes are good enough to go on with them.
fn passes_trial<W: Word>(children: &[(W, W, W)], fanout: usize) -> bool {
    let (mut cost, mut borders_all) = (spine::Cost::default(), 0);
    for group in children.chunks_exact(fanout).take(spine::TRIAL_LINES) {
        let borders = borders(group);
        cost.add(spine::encode(Encoding::Delta8, &borders, &mut [0; 64]));
        borders_all += borders.len() as u64;
    }
    spine::acceptable(W::BYTES == 16, borders_all, cost)
}

fn borders<W: Word>(children: &[(W, W, W)]) -> Vec<Border<W>> {
    children.windows(2).map(|pair| Border { last: pair[0].2, first: pair[1].0, second: pair[1].1 }).collect()
}

/// The grid above lines with these last words, the smallest word being `low`, its units and its parameters; a
/// unit for so many borders, if `always` also where the builder makes none.
fn grid<W: Word>(lasts: &[W], low: W, always: bool) -> Option<(Vec<u8>, u64, GridParameters)> {
    let high = *lasts.last()?;
    let lines = lasts.len() as u64;
    if W::BYTES > 8 || (lines < 64 && !always) {
        return None;
    }
    let borders_per_unit = [(8192, 2), (65536, 4), (u64::MAX, 7)].into_iter().find(|rule| lines <= rule.0)?.1;
    let word = |word: W| word.to_u128();
    let bits = 128 - (word(high) - word(low)).leading_zeros();
    let position = |of: W| {
        let distance = word(of).clamp(word(low), word(high)) - word(low);
        if bits < 32 { distance << (32 - bits) } else { distance >> (bits - 32) }
    };
    for b in [0, 8, 12, 16] {
        if b > 0 && lines >> b < 4 {
            break;
        }
        let segment = |position: u128| (position >> (32 - b)) as usize;
        let inside = |position: u128| (position << b) % (1 << 32);
        let mut segments = vec![(0u128, 0u128); segment(position(high)) + 1];
        lasts.iter().for_each(|&last| segments[segment(position(last))].1 += 1);
        let (mut first, last) = (0, segments.len() - 1);
        for (number, (start, units)) in segments.iter_mut().enumerate() {
            *start = first;
            *units = units.div_ceil(borders_per_unit);
            first += *units;
            if number == last {
                let end = inside(position(high));
                *units = (*units << 32) / (end + 1);
                first = *start + ((*units * end) >> 32) + 1;
            }
        }
        let units = first + 1;
        let cell = |of: W| {
            let (start, units) = segments[segment(position(of))];
            let scaled = inside(position(of)) * units;
            ((start + (scaled >> 32)) * 48 + ((scaled % (1 << 32) * 48) >> 32)) as usize
        };
        let mut marks: Vec<usize> = Vec::new();
        for &last in lasts {
            let after = marks.last().map_or(0, |mark| mark + 1);
            marks.push(cell(last).max(after));
        }
        let is_late = |at: usize| lasts[at] != lasts[at - 1] && marks[at - 2] >= cell(lasts[at]);
        let late = (2..lasts.len()).filter(|&at| is_late(at)).count() as u64;
        if late > lines / 128 && !(always && b == 0) {
            continue;
        }
        marks.pop();
        let mut bytes = Vec::new();
        for (start, units) in segments {
            bytes.extend_from_slice(&(start as u32).to_le_bytes());
            bytes.extend_from_slice(&(units as u32).to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(128), 0);
        let before = |unit: u128| marks.iter().filter(|&&mark| (mark as u128) < unit * 48).count() as u64;
        for unit in 0..units {
            let own = marks.iter().filter(|&&mark| mark as u128 / 48 == unit);
            let marked = own.fold(0u64, |marked, mark| marked | 1 << (mark % 48));
            let count = before(unit) - before(unit / 1024 * 1024);
            bytes.extend_from_slice(&(count << 48 | marked).to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(128), 0);
        for block in 0..units.div_ceil(1024) {
            bytes.extend_from_slice(&(before(block * 1024) as u32).to_le_bytes());
        }
        bytes.extend_from_slice(&[0; 64]);
        let parameters = GridParameters {
            word_bytes: (W::BYTES as u32).into(),
            segment_bits: b.into(),
            low: (word(low) as u64).into(),
            high: (word(high) as u64).into(),
            reserved: [0; 40],
        };
        return Some((bytes, units as u64, parameters));
    }
    None
}

/// Which files have a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// None.
    No,
    /// Those for which the builder makes one.
    Suited,
    /// All with words of 4 or 8 bytes, however few and crowded.
    Always,
}

/// The bytes of a file of these tuples, which are sorted by key.
#[must_use]
pub fn build<K: Key, V: Value>(tuples: &[(K, V)], meta: &Meta, unique: bool) -> Vec<u8> {
    build_with(tuples, meta, unique, Grid::Suited)
}

/// The same, with or without a grid.
#[must_use]
pub fn build_with<K: Key, V: Value>(tuples: &[(K, V)], meta: &Meta, unique: bool, with: Grid) -> Vec<u8> {
    let words: Vec<(K::Word, V::Bits)> =
        tuples.iter().map(|&(key, value)| (key.encode(), value.to_bits())).collect();
    let n = 64 / (K::Word::BYTES + V::Bits::BYTES);
    let children: Vec<(K::Word, K::Word, K::Word)> =
        words.chunks(n).map(|chunk| (chunk[0].0, chunk[0].0, chunk[chunk.len() - 1].0)).collect();
    let levels = levels(&children, true);
    let encodings: Vec<Encoding> = levels.iter().map(|level| level.0).collect();
    let spine =
        SpineGeometry::new(children.len() as u64, K::Word::BYTES, &encodings).expect("levels end in one");
    let flagged = levels.iter().map(|level| level.2).sum();
    let spine_bytes: Vec<u8> = levels.iter().rev().flat_map(|level| level.1.clone()).collect();
    assert_eq!(spine.bytes, spine_bytes.len() as u64);

    let mut contents: Vec<Content> = vec![
        (Tag::META, false, meta.encode(), meta.elements(), Parameters::NONE),
        (
            Tag::LINE,
            true,
            lines(&words),
            tuples.len() as u64,
            line_parameters(LineGeometry::new(K::Word::BYTES, V::Bits::BYTES)).into(),
        ),
        (
            Tag::SPINE,
            true,
            spine_bytes,
            spine.levels.iter().map(|level| level.lines).sum(),
            spine_parameters(K::Word::BYTES, &spine, flagged).into(),
        ),
    ];
    if let (true, Some(first)) = (with != Grid::No, words.first()) {
        let lasts: Vec<K::Word> = children.iter().map(|child| child.2).collect();
        let made = grid(&lasts, first.0, with == Grid::Always);
        contents.extend(made.map(|(bytes, units, grid)| (Tag::GRID, false, bytes, units, grid.into())));
    }
    let mut block = Superblock::new(K::TYPE, V::TYPE);
    block.generation = 1.into();
    block.tuples = (tuples.len() as u64).into();
    block.unique = u32::from(unique).into();
    if let (Some(first), Some(last)) = (words.first(), words.last()) {
        block.min_key = key_prefix(first.0.to_u128(), K::Word::BYTES);
        block.max_key = key_prefix(last.0.to_u128(), K::Word::BYTES);
        block.min_key_len = (K::Word::BYTES as u32).into();
        block.max_key_len = (K::Word::BYTES as u32).into();
    }
    let version = format!("pleach {}", env!("CARGO_PKG_VERSION"));
    block.builder[..version.len()].copy_from_slice(version.as_bytes());
    assemble(block, contents)
}

/// A section without its place: tag, whether it is required, content, elements, parameters.
pub type Content = (Tag, bool, Vec<u8>, u64, Parameters);

/// A small file of these sections; what follows from them is set in the superblock.
#[must_use]
pub fn assemble(mut block: Superblock, contents: Vec<Content>) -> Vec<u8> {
    let mut file = vec![0u8; 8192];
    let mut entries = Vec::new();
    for (tag, required, content, elements, parameters) in contents {
        let start = section_start(file.len() as u64, content.len() as u64).expect("small");
        file.resize(start as usize, 0);
        entries.push(Entry::new(tag, required, start, content.len() as u64, elements, parameters));
        file.extend_from_slice(&content);
    }
    file.resize(file.len().next_multiple_of(4096), 0);

    // Sums of the bytes so far.
    let mut id = FileId::new(
        block.key_type.get(),
        block.value_type.get(),
        block.unique.get() == 1,
        block.tuples.get(),
    );
    let ends: Vec<usize> =
        entries.iter().skip(1).map(|entry| entry.offset.get() as usize).chain([file.len()]).collect();
    let mut unbound = Vec::new();
    for (entry, &end) in entries.iter().zip(&ends) {
        let extent = &file[entry.offset.get() as usize..end];
        let sums: Vec<u32> = extent.chunks(SUM_BLOCK_BYTES).map(crc32).collect();
        entry.identify(&mut id, sums.iter().copied());
        unbound.push(sums);
    }
    let id = id.finish();
    let bind = |tag: Tag, sums: &[u32]| -> Vec<u8> {
        (0u64..).zip(sums).flat_map(|(block, sum)| (sum ^ binding(&id, tag, block)).to_le_bytes()).collect()
    };
    // SUMS starts where the lists begin, whatever its length asks for.
    let lists: Vec<Vec<u8>> =
        entries.iter().zip(&unbound).map(|(entry, sums)| bind(entry.tag, sums)).collect();
    let mut content: Vec<u8> = Vec::new();
    let mut places = Vec::new();
    for list in &lists {
        content.resize(content.len().next_multiple_of(128), 0);
        places.push(content.len() as u64);
        content.extend_from_slice(list);
    }
    let start = section_start(file.len() as u64, content.len() as u64).expect("small");
    assert_eq!(start, file.len() as u64, "the reference is for small files");
    for ((entry, list), place) in entries.iter_mut().zip(&lists).zip(places) {
        entry.sums_offset = (start + place).into();
        entry.sums = (list.len() as u64 / 4).into();
        entry.sums_crc = crc32(list).into();
    }
    let count: u64 = lists.iter().map(|list| list.len() as u64 / 4).sum();
    let mut sums = Entry::new(Tag::SUMS, true, start, content.len() as u64, count, Parameters::NONE);
    file.extend_from_slice(&content);
    file.resize(file.len().next_multiple_of(4096), 0);
    let second: Vec<u32> = file[start as usize..].chunks(SUM_BLOCK_BYTES).map(crc32).collect();
    let second = bind(Tag::SUMS, &second);
    let start = file.len() as u64;
    sums.sums_offset = start.into();
    sums.sums = (second.len() as u64 / 4).into();
    sums.sums_crc = crc32(&second).into();
    let mut sum2 =
        Entry::new(Tag::SUM2, true, start, second.len() as u64, second.len() as u64 / 4, Parameters::NONE);
    file.extend_from_slice(&second);
    file.resize(file.len().next_multiple_of(4096), 0);
    sum2.sums_crc = crc32(&file[start as usize..]).into();
    entries.push(sums);
    entries.push(sum2);

    let table = encode_table(&entries);
    block.file_id = id;
    block.file_bytes = (file.len() as u64 + 8192).into();
    block.table_offset = 4096.into();
    block.table_bytes = 4096.into();
    block.sections = (entries.len() as u32).into();
    block.table_crc = crc32(&table).into();
    let block = block.seal();
    file[..4096].copy_from_slice(&block);
    file[4096..8192].copy_from_slice(&table);
    file.extend_from_slice(&table);
    file.extend_from_slice(&block);
    file
}
