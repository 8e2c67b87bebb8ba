//! Patching: the next generation if no tuple is added or removed, as a copy with new bytes for the changed
//! values.
//!
//! First the lines are read and each changed key is located: it must occur exactly once. A block that
//! contains one is verified before its new sum is computed, and so is each block of other sections that hold
//! values. Then the file is copied in calls of 2 MiB, and the changed values are inserted on the way; every
//! block is verified before that.
//!
//! Sums are bound to the id of the file, which is new. The binding is a xor, so the unbound sum of an
//! unchanged block is taken over from the old file.

use super::base::{Base, Blocks};
use super::changes::Effects;
use super::copying::{Overlays, copied};
use super::stored::Stored;
use crate::error::BuildError;
use crate::finish::BUILDER;
use crate::observe::{Phase, Watch};
use crate::options::Summary;
use crate::pack::{KeyLane, ValueLane};
use crate::parallel;
use crate::publish::{Descent, Output};
use crate::source::SourceError;
use pleach_format::Logical;
use pleach_format::approximate::Approximate;
use pleach_format::checksum::{FileId, SUM_BLOCK_BYTES, SUM_BYTES, binding, crc32};
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::Line;
use pleach_format::section::{Entry, TABLE_BYTES, TABLE_OFFSET, Tag, encode_table};
use pleach_format::view::CLOSING_BYTES;
use std::collections::BTreeMap;

/// Tuple lines per task.
const WINDOW_LINES: u64 = 1 << 13;
/// Number of windows that are read together.
const WINDOWS: u64 = 16;
const BLOCK: u64 = SUM_BLOCK_BYTES as u64;
const BLOCK_LINES: u64 = (SUM_BLOCK_BYTES / LINE_BYTES) as u64;

/// Returns the error if only a patch is allowed and none can be made.
pub(crate) fn refused(why: &str) -> BuildError {
    let what = format!("cannot be patched: {why}");
    let advice = "leave out --method, or choose merge".into();
    SourceError { input: "changes".into(), place: String::new(), what, advice, cause: None }.into()
}

/// A changed value.
#[derive(Clone, Copy)]
struct Edit<B> {
    /// Offset of its first byte in the file.
    offset: u64,
    value: B,
}

/// Changes of the lines of a window.
struct Found<B> {
    /// Ranks, ascending, and their new values.
    edits: Vec<(u64, B)>,
    /// Unbound sums of the blocks that change.
    sums: Vec<(u64, u32)>,
}

/// Writes the next generation into `output`. Returns `None` if some key does not occur exactly once.
pub(crate) fn patch<W: KeyLane, B: ValueLane>(
    base: &Base,
    effects: &Effects<W, B>,
    descent: Descent,
    output: Output<'_>,
    watch: &Watch<'_>,
) -> Result<Option<Summary>, BuildError> {
    let header = &base.header;
    let Some(lines) = base.section(Tag::LINE)? else { return Ok(None) };
    let Some((edited, line_sums)) = find(base, &lines, effects, watch)? else { return Ok(None) };
    let mut new_sums: BTreeMap<[u8; 4], Vec<(u64, u32)>> = BTreeMap::new();
    new_sums.insert(Tag::LINE.0, line_sums);
    let geometry = header.geometry;
    let in_line = |rank: u64| {
        let (line, slot) = geometry.place(rank);
        header.line_offset(line) + (geometry.values_at() + slot * B::BYTES) as u64
    };
    let mut edits: Vec<Edit<B>> =
        edited.iter().map(|&(rank, value)| Edit { offset: in_line(rank), value }).collect();
    if let (Some(place), Some(blocks)) = (header.values, base.section(Tag::VALUES)?) {
        let at = |rank: u64| place.shape.data_at + rank * B::BYTES as u64;
        new_sums.insert(Tag::VALUES.0, elsewhere(base, &blocks, &edited, at, &mut edits)?);
    }
    if let (Some((_, shape)), Some(blocks)) = (&header.harmonia, base.section(Tag::HARMONIA)?) {
        let at = |rank: u64| {
            let (leaf, slot) = (rank / u64::from(shape.node_keys), rank % u64::from(shape.node_keys));
            shape.values_at + (leaf * u64::from(shape.fanout) + slot) * B::BYTES as u64
        };
        new_sums.insert(Tag::HARMONIA.0, elsewhere(base, &blocks, &edited, at, &mut edits)?);
    }
    edits.sort_unstable_by_key(|edit| edit.offset);
    let (overlays, file_id) = head_and_sums(base, &new_sums, descent)?;
    copied(base, &overlays, &[Tag::SUMS, Tag::SUM2], output, watch, |start, buffer| {
        let end = start + buffer.len() as u64;
        let from = edits.partition_point(|edit| edit.offset < start);
        for edit in edits[from..].iter().take_while(|edit| edit.offset < end) {
            edit.value.write(&mut buffer[(edit.offset - start) as usize..]);
        }
    })?;
    let levels = header.spine.levels.iter();
    let meta = base.meta()?;
    Ok(Some(Summary {
        rows: header.tuples,
        tuples: header.tuples,
        file_bytes: header.file_bytes,
        file_id,
        generation: descent.generation,
        key_type: header.key_type,
        value_type: header.value_type,
        approximate: Approximate::of(&Logical::of_meta(&meta.key_logical), &meta.approximate, header.tuples),
        key_logical: meta.key_logical,
        unique: header.is_unique(),
        sorted_input: true,
        runs: 0,
        spine: levels.map(|level| (level.encoding.name().to_owned(), level.lines)).collect(),
        kept: None,
        left: None,
    }))
}

/// Ranks and their new values, ascending; blocks and their new unbound sums.
type Edits<B> = (Vec<(u64, B)>, Vec<(u64, u32)>);

/// Locates every changed key.
fn find<W: KeyLane, B: ValueLane>(
    base: &Base,
    blocks: &Blocks<'_>,
    effects: &Effects<W, B>,
    watch: &Watch<'_>,
) -> Result<Option<Edits<B>>, BuildError> {
    let header = &base.header;
    let (mut edits, mut sums) = (Vec::with_capacity(effects.list.len()), Vec::new());
    let mut before = None;
    let mut first = 0;
    while first < header.lines {
        watch.check()?;
        watch.progress(Phase::Read, first, Some(header.lines));
        let end = (first + WINDOWS * WINDOW_LINES).min(header.lines);
        let starts: Vec<u64> = (first..end).step_by(WINDOW_LINES as usize).collect();
        let look = |at: usize| window::<W, B>(base, blocks, effects, starts[at]);
        let windows = parallel::try_map(starts.len(), look)?;
        for window in windows {
            let Some((found, (low, high))) = window else { return Ok(None) };
            // A key at the boundary of two windows may occur on both sides: leave that to the merge.
            let doubtful = |key: W| effects.list.binary_search_by_key(&key, |effect| effect.key).is_ok();
            if before == Some(low) && doubtful(low) {
                return Ok(None);
            }
            before = Some(high);
            edits.extend(found.edits);
            sums.extend(found.sums);
        }
        // Stop at the first missing key, not after the last one.
        let passed = before.map_or(0, |before| effects.list.partition_point(|effect| effect.key <= before));
        if edits.len() < passed {
            return Ok(None);
        }
        first = end;
    }
    Ok((edits.len() == effects.list.len()).then_some((edits, sums)))
}

/// Returns the changes of a window, and its first and last key. `None` if some changed key is duplicated.
#[allow(clippy::type_complexity, reason = "two things of one window")]
fn window<W: KeyLane, B: ValueLane>(
    base: &Base,
    blocks: &Blocks<'_>,
    effects: &Effects<W, B>,
    first: u64,
) -> Result<Option<(Found<B>, (W, W))>, BuildError> {
    let stored = Stored::<W>::new(&base.header);
    let n = stored.per_line();
    let header = &base.header;
    let end = (first + WINDOW_LINES).min(header.lines);
    let extent = blocks.section.extent() - first * LINE_BYTES as u64;
    let bytes = ((end - first) * LINE_BYTES as u64).next_multiple_of(BLOCK).min(extent);
    let mut lines: Vec<Line> = vec![[0; LINE_BYTES]; bytes as usize / LINE_BYTES];
    base.read(lines.as_flattened_mut(), header.line_offset(first))?;
    let tuples = (end - first - 1) as usize * n + header.geometry.tuples_in_line(end - 1, header.tuples);
    let key = |at: usize| -> W { stored.key(&lines[at / n], at % n) };
    let ends = (key(0), key(tuples - 1));
    let list = &effects.list;
    let from = list.partition_point(|effect| effect.key < ends.0);
    let to = from + list[from..].partition_point(|effect| effect.key <= ends.1);
    let mut edits = Vec::with_capacity(to - from);
    let mut touched: Vec<u64> = Vec::new();
    let mut at = 0;
    for effect in &list[from..to] {
        let (mut low, mut high, mut step) = (at, at, 1);
        while high < tuples && key(high) < effect.key {
            low = high + 1;
            high = high.saturating_add(step).min(tuples);
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if key(middle) < effect.key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        at = low;
        if at >= tuples || key(at) != effect.key {
            continue;
        }
        if at + 1 < tuples && key(at + 1) == effect.key {
            return Ok(None);
        }
        let block = (at / n) as u64 / BLOCK_LINES;
        if touched.last() != Some(&block) {
            touched.push(block);
        }
        edits.push((first * n as u64 + at as u64, effects.values[effect.first]));
    }
    let block_of = |lines: &mut [Line], block: u64| -> std::ops::Range<usize> {
        let start = (block * BLOCK_LINES) as usize;
        start..(start + BLOCK_LINES as usize).min(lines.len())
    };
    for &block in &touched {
        let range = block_of(&mut lines, block);
        let number = first / BLOCK_LINES + block;
        if !blocks.matches(number, lines[range].as_flattened()) {
            return Err(base.damaged(Tag::LINE, blocks.section.offset() + number * BLOCK));
        }
    }
    let values_at = header.geometry.values_at();
    for &(rank, value) in &edits {
        let at = (rank - first * n as u64) as usize;
        value.write(&mut lines[at / n][values_at + at % n * B::BYTES..]);
    }
    let sums = touched
        .iter()
        .map(|&block| {
            let range = block_of(&mut lines, block);
            (first / BLOCK_LINES + block, crc32(lines[range].as_flattened()))
        })
        .collect();
    Ok(Some((Found { edits, sums }, ends)))
}

/// Computes the new sums of a section that holds values outside the lines; `at` gives the place of a rank.
/// Adds its edits.
fn elsewhere<B: ValueLane>(
    base: &Base,
    blocks: &Blocks<'_>,
    edited: &[(u64, B)],
    at: impl Fn(u64) -> u64 + Sync,
    edits: &mut Vec<Edit<B>>,
) -> Result<Vec<(u64, u32)>, BuildError> {
    let offset = blocks.section.offset();
    edits.extend(edited.iter().map(|&(rank, value)| Edit { offset: offset + at(rank), value }));
    let groups: Vec<&[(u64, B)]> =
        edited.chunk_by(|&(one, _), &(other, _)| at(one) / BLOCK == at(other) / BLOCK).collect();
    let sum = |group: &[(u64, B)]| -> Result<(u64, u32), BuildError> {
        let block = at(group[0].0) / BLOCK;
        let extent = blocks.section.extent() - block * BLOCK;
        let mut bytes = vec![0; BLOCK.min(extent) as usize];
        base.read(&mut bytes, offset + block * BLOCK)?;
        if !blocks.matches(block, &bytes) {
            return Err(base.damaged(blocks.section.entry.tag, offset + block * BLOCK));
        }
        for &(rank, value) in group {
            value.write(&mut bytes[(at(rank) - block * BLOCK) as usize..]);
        }
        Ok((block, crc32(&bytes)))
    };
    // Several blocks per task: each costs one read and one sum.
    let tasks: Vec<&[&[(u64, B)]]> = groups.chunks(16).collect();
    let sums = parallel::try_map(tasks.len(), |task| {
        tasks[task].iter().map(|group| sum(group)).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(sums.concat())
}

/// Builds the new lists of sums, section table and superblocks, and returns the new id.
fn head_and_sums(
    base: &Base,
    new_sums: &BTreeMap<[u8; 4], Vec<(u64, u32)>>,
    descent: Descent,
) -> Result<(Overlays, [u8; 16]), BuildError> {
    let header = &base.header;
    let block = &header.superblock;
    let unique = block.unique.get() == 1;
    let mut id = FileId::new(header.key_type.code(), header.value_type.code(), unique, header.tuples);
    let mut entries: Vec<Entry> = header.sections.iter().map(|section| section.entry).collect();
    let mut unbound: Vec<Vec<u32>> = Vec::new();
    for entry in &entries {
        if matches!(entry.tag, Tag::SUMS | Tag::SUM2) {
            unbound.push(Vec::new());
            continue;
        }
        let mut sums: Vec<u32> = match base.section(entry.tag)? {
            Some(blocks) => (0..blocks.sums.len() as u64).map(|block| blocks.unbound(block)).collect(),
            None => Vec::new(),
        };
        for &(block, sum) in new_sums.get(&entry.tag.0).into_iter().flatten() {
            sums[block as usize] = sum;
        }
        entry.identify(&mut id, sums.iter().copied());
        unbound.push(sums);
    }
    let file_id = id.finish();
    let bound = |tag: Tag, sums: &[u32]| -> Vec<u8> {
        (0u64..)
            .zip(sums)
            .flat_map(|(block, sum)| (sum ^ binding(&file_id, tag, block)).to_le_bytes())
            .collect()
    };
    let section = |tag: Tag| header.section(tag).ok_or_else(|| base.damaged(tag, TABLE_OFFSET));
    let (sums, sum2) = (*section(Tag::SUMS)?, *section(Tag::SUM2)?);
    // The bytes between the lists are kept; they are verified, too.
    let mut lists = vec![0; sums.extent() as usize];
    if let Some(blocks) = base.section(Tag::SUMS)? {
        blocks.read(0, &mut lists)?;
    }
    for (entry, unbound) in entries.iter_mut().zip(&unbound) {
        if matches!(entry.tag, Tag::SUMS | Tag::SUM2) {
            continue;
        }
        let list = bound(entry.tag, unbound);
        let at = (entry.sums_offset.get() - sums.offset()) as usize;
        lists[at..at + list.len()].copy_from_slice(&list);
        entry.sums_crc = crc32(&list).into();
    }
    let of_lists: Vec<u32> = lists.chunks(SUM_BLOCK_BYTES).map(crc32).collect();
    let list = bound(Tag::SUMS, &of_lists);
    debug_assert_eq!(list.len(), of_lists.len() * SUM_BYTES);
    let mut extent = vec![0; sum2.extent() as usize];
    let at = (sums.entry.sums_offset.get() - sum2.offset()) as usize;
    extent[at..at + list.len()].copy_from_slice(&list);
    for entry in &mut entries {
        if entry.tag == Tag::SUMS {
            entry.sums_crc = crc32(&list).into();
        } else if entry.tag == Tag::SUM2 {
            entry.sums_crc = crc32(&extent).into();
        }
    }
    let table = encode_table(&entries);
    let mut next = *block;
    next.file_id = file_id;
    next.generation = descent.generation.into();
    next.lineage = descent.lineage;
    next.table_crc = crc32(&table).into();
    next.builder = [0; 32];
    next.builder[..BUILDER.len()].copy_from_slice(BUILDER);
    let superblock = next.seal().to_vec();
    let closing_at = header.file_bytes - CLOSING_BYTES as u64;
    debug_assert_eq!(table.len(), TABLE_BYTES);
    let overlays = vec![
        (0, superblock.clone()),
        (TABLE_OFFSET, table.to_vec()),
        (sums.offset(), lists),
        (sum2.offset(), extent),
        (closing_at, [&table[..], &superblock].concat()),
    ];
    Ok((overlays, file_id))
}
