//! A second, slow builder, written from `spec/FORMAT.md`: one buffer, no streaming, recursion.
//!
//! It shares with the product only the constants, the CRC and [`spine::encode`]'s choice of base and
//! shift (which the format leaves to the builder). What the product writes must equal it byte for
//! byte.

use pleach_format::checksum::{FileId, SUM_BLOCK_BYTES, binding, crc32};
use pleach_format::key::{Bits, Word};
use pleach_format::layout::{SpineGeometry, section_start};
use pleach_format::meta::Meta;
use pleach_format::section::{
    ColumnParameters, Entry, GridParameters, LineParameters, Parameters, Tag, encode_table,
};
use pleach_format::spine::{self, Border, Encoding};
use pleach_format::superblock::{Superblock, key_prefix};
use pleach_format::view::spine_parameters;
use pleach_format::{Key, Value, ValueType};

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

/// The arrays of a grid, as lists.
struct Arrays {
    /// Base, first and form of each segment.
    segments: Vec<(u64, u32, u32)>,
    /// Marks of each unit, and how many there are before it.
    units: Vec<(u32, u32)>,
    cells_per_line: u64,
    /// Borders by the segments on the way to them.
    steps: [u64; 9],
}

/// The least width, as a power of two, of which a span has fewer than so many.
fn width(span: u64, parts: u64) -> u32 {
    (0..64).find(|&shift| span >> shift < parts).unwrap_or(63)
}

/// Where borders with these last words have their marks, in cells of a width, and how many are late.
fn marks(lasts: &[u64], shift: u32) -> (Vec<u64>, u64) {
    let (mut marks, mut late): (Vec<u64>, u64) = (Vec::new(), 0);
    for (at, last) in lasts.iter().enumerate() {
        let cell = (last - lasts[0]) >> shift;
        late += u64::from(at >= 2 && *last != lasts[at - 1] && marks[at - 2] >= cell);
        marks.push(marks.last().map_or(cell, |mark| cell.max(mark + 1)));
    }
    (marks, late)
}

/// Divides borders that begin behind line `line`.
fn divide(lasts: &[u64], line: u32, steps: usize, all: &mut Arrays) -> (u64, u32, u32) {
    let (base, span, count) = (lasts[0], lasts[lasts.len() - 1] - lasts[0], lasts.len() as u64);
    if steps > 0 && count <= 8 {
        let shift = width(span, 24);
        let (marks, late) = marks(lasts, shift);
        if late == 0 && marks.iter().all(|&mark| mark < 24) {
            all.steps[steps] += count;
            let bits = marks.iter().fold(0, |bits, mark| bits | 1 << mark);
            return (base, line, shift << 26 | 2 << 24 | bits);
        }
    }
    let shift = width(span, (count * all.cells_per_line * 2).clamp(32, 1 << 29));
    let (marks, late) = marks(lasts, shift);
    if span == 0 || steps == 8 || late <= count / 128 {
        let first = all.units.len();
        let own = (span >> shift) / 32 + 1;
        let units = own.max(marks[marks.len() - 1] / 32 + 1);
        for unit in 0..units {
            let here = marks.iter().filter(|&mark| mark / 32 == unit);
            let before = marks.iter().filter(|&mark| mark / 32 < unit).count() as u32;
            all.units.push((here.fold(0, |bits, mark| bits | 1 << (mark % 32)), line + before));
        }
        all.steps[steps] += count;
        return (base, first as u32, shift << 26 | 1 << 24 | (own - 1) as u32);
    }
    let shift = width(span, (count / 4).max(2).next_power_of_two());
    let parts = (span >> shift) + 1;
    let first = all.segments.len();
    all.segments.resize(first + parts as usize, (0, 0, 0));
    for part in 0..parts {
        let before = lasts.partition_point(|last| (last - base) >> shift < part);
        let end = lasts.partition_point(|last| (last - base) >> shift <= part);
        let at = line + before as u32;
        let made = if before == end {
            (u64::MAX, at, 2 << 24)
        } else {
            divide(&lasts[before..end], at, steps + 1, all)
        };
        all.segments[first + part as usize] = made;
    }
    (base, first as u32, shift << 26 | (parts - 1) as u32)
}

/// The grid above lines with these last words, its units and its parameters; if `always` also where the builder
/// makes none.
fn grid<W: Word>(lasts: &[W], always: bool) -> Option<(Vec<u8>, u64, GridParameters)> {
    let lines = lasts.len() as u64;
    if W::BYTES > 8 || lines < 2 || (lines < 64 && !always) {
        return None;
    }
    let lasts: Vec<u64> = lasts[..lasts.len() - 1].iter().map(|last| last.to_u128() as u64).collect();
    let cells_per_line =
        [(8192, 16), (1 << 20, 8), (u64::MAX, 4)].into_iter().find(|rule| lines <= rule.0)?.1;
    let mut all = Arrays { segments: Vec::new(), units: Vec::new(), cells_per_line, steps: [0; 9] };
    let (base, first, form) = divide(&lasts, 0, 0, &mut all);
    if all.units.is_empty() {
        all.units.push((0, 0));
    }
    let most = (0..9).rfind(|&steps| all.steps[steps] > 0)?;
    let usual = (0..=most).find(|&steps| all.steps[steps + 1..].iter().sum::<u64>() <= lines / 50)?;
    let mut bytes = Vec::new();
    for &(base, first, form) in &all.segments {
        bytes.extend_from_slice(&base.to_le_bytes());
        bytes.extend_from_slice(&first.to_le_bytes());
        bytes.extend_from_slice(&form.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(128), 0);
    for &(marks, before) in &all.units {
        bytes.extend_from_slice(&marks.to_le_bytes());
        bytes.extend_from_slice(&before.to_le_bytes());
    }
    bytes.extend_from_slice(&[0; 64]);
    let parameters = GridParameters {
        word_bytes: (W::BYTES as u32).into(),
        steps: (most as u32).into(),
        usual_steps: (usual.max(usize::from(most > 0)) as u32).into(),
        gap: 0.into(),
        segments: (all.segments.len() as u64).into(),
        base: base.into(),
        first: first.into(),
        form: form.into(),
        reserved: [0; 24],
    };
    Some((bytes, all.units.len() as u64, parameters))
}

/// Which files have a grid, and which spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// None, and a dense spine.
    No,
    /// Those for which the builder makes one, beside a sparse spine.
    Suited,
    /// All with words of 4 or 8 bytes, however few and crowded, beside a dense spine.
    Always,
    /// None, and a spine above groups of 4 lines, which no builder makes.
    Groups,
}

/// The bytes of a file of these tuples, which are sorted by key.
#[must_use]
pub fn build<K: Key, V: Value>(tuples: &[(K, V)], meta: &Meta, unique: bool) -> Vec<u8> {
    build_with(tuples, meta, unique, Grid::Suited)
}

/// Names and layout of a file whose words are as long as its keys.
#[must_use]
pub fn wide() -> Meta {
    Meta { layout: "lines,spine,grid,wide".into(), ..Meta::default() }
}

/// Short words: their bytes, what the file says of them, and the words.
struct Short {
    word_bytes: usize,
    base: u128,
    runs: [[u8; 2]; 4],
    words: Vec<u128>,
}

/// The bits that are set, from the lowest on, as runs of a first bit and a number of bits.
fn runs(bits: u128) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for bit in (0..128).filter(|bit| bits >> bit & 1 == 1) {
        match runs.last_mut() {
            Some((from, count)) if *from + *count == bit => *count += 1,
            _ => runs.push((bit, 1)),
        }
    }
    runs
}

/// Short words of these keys, if the builder makes them.
fn shorten(keys: &[u128], key_bytes: usize) -> Option<Short> {
    let (min, max) = (*keys.first()?, *keys.last()?);
    for word_bytes in [4, 8].into_iter().filter(|&word_bytes| word_bytes < key_bytes) {
        let bits = word_bytes as u32 * 8;
        if (max - min) >> bits == 0 {
            let words = keys.iter().map(|key| key - min).collect();
            return Some(Short {
                word_bytes,
                base: min,
                runs: [[0, bits as u8], [0; 2], [0; 2], [0; 2]],
                words,
            });
        }
        let mut kept = (0..128).fold(0u128, |kept, bit| {
            let differs = keys.iter().any(|key| (key ^ min) >> bit & 1 == 1);
            kept | u128::from(differs) << bit
        });
        // The smallest gap between runs is filled, the lowest of equal ones, until there are four runs.
        while runs(kept).len() > 4 {
            let all = runs(kept);
            let gaps = all.windows(2).map(|pair| (pair[0].0 + pair[0].1, pair[1].0));
            let (from, to) = gaps.min_by_key(|(from, to)| to - from)?;
            kept |= (from..to).fold(0, |bits, bit| bits | 1 << bit);
        }
        if kept.count_ones() <= bits {
            let mut stored = [[0; 2]; 4];
            for (stored, (from, count)) in stored.iter_mut().zip(runs(kept)) {
                *stored = [from as u8, count as u8];
            }
            let word = |key: &u128| {
                let kept = (0..128).rev().filter(|bit| kept >> bit & 1 == 1);
                kept.fold(0, |word, bit| word << 1 | key >> bit & 1)
            };
            let words = keys.iter().map(word).collect();
            return Some(Short { word_bytes, base: min & !kept, runs: stored, words });
        }
    }
    None
}

/// The same, with or without a grid. The words are those of the key type if META has the layout `wide`.
#[must_use]
pub fn build_with<K: Key, V: Value>(tuples: &[(K, V)], meta: &Meta, unique: bool, with: Grid) -> Vec<u8> {
    let keys: Vec<u128> = tuples.iter().map(|(key, _)| key.encode().to_u128()).collect();
    let values: Vec<V::Bits> = tuples.iter().map(|(_, value)| value.to_bits()).collect();
    let mut block = block_of::<K>(V::TYPE, &keys, meta);
    block.unique = u32::from(unique).into();
    assemble(block, contents_of::<K, V::Bits>(&keys, &values, meta, with))
}

/// The bytes of a file whose values are byte strings, which stand in a column. Tuples are sorted by key.
#[must_use]
pub fn build_strings<K: Key>(tuples: &[(K, Vec<u8>)], meta: &Meta) -> Vec<u8> {
    let keys: Vec<u128> = tuples.iter().map(|(key, _)| key.encode().to_u128()).collect();
    let mut contents = contents_of::<K, ()>(&keys, &vec![(); keys.len()], meta, Grid::Suited);
    let (mut column, mut data) = (vec![0; 4], Vec::new());
    for (_, value) in tuples {
        data.extend_from_slice(value);
        column.extend((data.len() as u32).to_le_bytes());
    }
    column.resize(column.len().next_multiple_of(128), 0);
    column.extend(data);
    column.extend([0; 64]);
    let parameters = ColumnParameters { element_bytes: 0.into(), offset_bytes: 4.into(), reserved: [0; 56] };
    contents.push((Tag::VALUES, true, column, keys.len() as u64, parameters.into()));
    assemble(block_of::<K>(ValueType::Bytes, &keys, meta), contents)
}

/// The superblock of a file of these encoded keys.
fn block_of<K: Key>(value_type: ValueType, keys: &[u128], meta: &Meta) -> Superblock {
    let mut block = Superblock::new(K::TYPE, value_type);
    block.generation = 1.into();
    block.tuples = (keys.len() as u64).into();
    block.reader_features = u64::from(!meta.approximate.is_empty()).into();
    if let (Some(&first), Some(&last)) = (keys.first(), keys.last()) {
        block.min_key = key_prefix(first, K::Word::BYTES);
        block.max_key = key_prefix(last, K::Word::BYTES);
        block.min_key_len = (K::Word::BYTES as u32).into();
        block.max_key_len = (K::Word::BYTES as u32).into();
    }
    let version = format!("pleach {}", env!("CARGO_PKG_VERSION"));
    block.builder[..version.len()].copy_from_slice(version.as_bytes());
    block
}

/// The sections of a file of these encoded keys, with short words where the builder makes them.
fn contents_of<K: Key, B: Bits>(keys: &[u128], values: &[B], meta: &Meta, with: Grid) -> Vec<Content> {
    let is_wide = meta.layout.split(',').any(|part| part == "wide");
    let short = if is_wide { None } else { shorten(keys, K::Word::BYTES) };
    match &short {
        None => contents::<K::Word, B>(keys, values, meta, with, None),
        Some(short) if short.word_bytes == 4 => {
            contents::<u32, _>(&short.words, values, meta, with, Some(short))
        }
        Some(short) => contents::<u64, _>(&short.words, values, meta, with, Some(short)),
    }
}

/// The sections of a file of these words.
fn contents<W: Word, B: Bits>(
    words: &[u128],
    values: &[B],
    meta: &Meta,
    with: Grid,
    short: Option<&Short>,
) -> Vec<Content> {
    let tuples: Vec<(W, B)> =
        words.iter().zip(values).map(|(&word, &value)| (W::from_u128(word), value)).collect();
    let n = 64 / (W::BYTES + B::BYTES);
    let children: Vec<(W, W, W)> =
        tuples.chunks(n).map(|chunk| (chunk[0].0, chunk[0].0, chunk[chunk.len() - 1].0)).collect();
    let made = if matches!(with, Grid::No | Grid::Groups) {
        None
    } else {
        let lasts: Vec<W> = children.iter().map(|child| child.2).collect();
        grid(&lasts, with == Grid::Always)
    };
    // Beside a grid, a child of the builder's spine is a group of 16 lines.
    let child_lines = match with {
        Grid::Suited if made.is_some() => 16,
        Grid::Groups => 4,
        _ => 1,
    };
    let groups: Vec<(W, W, W)> = children
        .chunks(child_lines)
        .map(|group| (group[0].0, group[group.len().min(2) - 1].0, group[group.len() - 1].2))
        .collect();
    let levels = levels(&groups, true);
    let encodings: Vec<Encoding> = levels.iter().map(|level| level.0).collect();
    let lines_all = children.len() as u64;
    let spine =
        SpineGeometry::new(lines_all, child_lines as u64, W::BYTES, &encodings).expect("levels end in one");
    let flagged = levels.iter().map(|level| level.2).sum();
    let spine_bytes: Vec<u8> = levels.iter().rev().flat_map(|level| level.1.clone()).collect();
    assert_eq!(spine.bytes, spine_bytes.len() as u64);

    let line = LineParameters {
        line_bytes: 64.into(),
        word_bytes: (W::BYTES as u32).into(),
        value_bytes: (B::BYTES as u32).into(),
        line_tuples: (n as u32).into(),
        base: short.map_or(0, |short| short.base).to_le_bytes(),
        runs: short.map_or([[0; 2]; 4], |short| short.runs),
        reserved: [0; 24],
    };
    let spine_lines = spine.levels.iter().map(|level| level.lines).sum();
    let mut contents: Vec<Content> = vec![
        (Tag::META, false, meta.encode(), meta.elements(), Parameters::NONE),
        (Tag::LINE, true, lines(&tuples), tuples.len() as u64, line.into()),
        (Tag::SPINE, false, spine_bytes, spine_lines, spine_parameters(W::BYTES, &spine, flagged).into()),
    ];
    contents.extend(made.map(|(bytes, units, grid)| (Tag::GRID, false, bytes, units, grid.into())));
    contents
}

/// A section without its place: tag, whether it is required, content, elements, parameters.
pub type Content = (Tag, bool, Vec<u8>, u64, Parameters);

/// A small file of these sections; what follows from them is set in the superblock.
#[must_use]
pub fn assemble(mut block: Superblock, contents: Vec<Content>) -> Vec<u8> {
    let mut file = vec![0u8; 8192];
    let mut entries = Vec::new();
    for (tag, required, content, elements, parameters) in contents {
        let start = section_start(tag, file.len() as u64, content.len() as u64).expect("small");
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
    let start = section_start(Tag::SUMS, file.len() as u64, content.len() as u64).expect("small");
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
