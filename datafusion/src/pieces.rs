//! How a scan is divided: partitions of consecutive pieces of files.

use crate::error::Result;
use crate::keys::KeySet;
use crate::source::Source;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Tuples below which a file is not divided any further.
const PARTITION_TUPLES_MIN: u64 = 1 << 14;

/// Consecutive tuples of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Number of the file in the source.
    pub file: usize,
    /// Ranks of the tuples in the file; those of other keys are left out when they are read.
    pub ranks: Range<u64>,
    /// Number of tuples with keys that were asked for; `None` if only the file can tell.
    pub rows: Option<u64>,
}

/// The pieces that one partition of a scan reads, in the order of their keys.
pub type Pieces = Vec<Piece>;

/// The division of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Division {
    /// The partitions, in the order of their keys; equal keys are in one partition.
    pub partitions: Vec<Pieces>,
    /// The smallest key of each partition but the first, if they are all known: all keys of the partition before it
    /// are below.
    pub borders: Option<Vec<Vec<u8>>>,
}

/// Divides the tuples of some keys into at most `partitions` partitions. A set is divided between files, by the
/// manifest alone: no file is opened. A file is divided where keys change.
///
/// # Errors
/// Those of reading a file, if the source is one.
pub fn divide(source: &Source, keys: &KeySet, partitions: usize, limit: Option<usize>) -> Result<Division> {
    let partitions = partitions.max(1) as u64;
    match source.set() {
        Some(_) => Ok(divide_set(source, keys, partitions, limit)),
        None => divide_file(source, keys, partitions, limit),
    }
}

/// Divides the tuples of some keys at `borders`, whole keys that ascend: partition `i` has the keys from border
/// `i - 1` on and below border `i`. Each file opens in which a border lies.
///
/// # Errors
/// Those of opening and reading a file.
pub fn divide_at(source: &Source, keys: &KeySet, borders: &[Vec<u8>]) -> Result<Division> {
    let mut partitions: Vec<Pieces> = vec![Pieces::new(); borders.len() + 1];
    for file in source.files_meeting(keys) {
        let Some((min, max)) = source.ends(file) else { continue };
        let tuples = source.file_tuples(file);
        let first = borders.partition_point(|border| border.as_slice() <= min);
        let last = borders.partition_point(|border| border.as_slice() <= max);
        let mut start = 0;
        for number in first..=last {
            let end = if number < last { source.file(file)?.lower_bound(&borders[number])? } else { tuples };
            let ranks = start..end;
            start = end;
            let rows = if source.set().is_none() {
                let found = source.file(file)?.ranks(keys, ranks.clone())?;
                Some(found.iter().map(|range| range.end - range.start).sum())
            } else {
                keys.covers(min, max).then_some(ranks.end - ranks.start)
            };
            if !ranks.is_empty() && rows != Some(0) {
                partitions[number].push(Piece { file, ranks, rows });
            }
        }
    }
    Ok(Division { partitions, borders: Some(borders.to_vec()) })
}

fn divide_set(source: &Source, keys: &KeySet, partitions: u64, limit: Option<usize>) -> Division {
    let mut pieces: Pieces = Vec::new();
    let mut known = 0;
    for file in source.files_meeting(keys) {
        // The first files have as many rows as are wanted.
        if limit.is_some_and(|limit| known >= limit as u64) {
            break;
        }
        let tuples = source.file_tuples(file);
        let covered = source.ends(file).is_some_and(|(min, max)| keys.covers(min, max));
        let rows = covered.then_some(tuples);
        known += rows.unwrap_or(0);
        pieces.push(Piece { file, ranks: 0..tuples, rows });
    }
    let all: u64 = pieces.iter().map(|piece| piece.ranks.end).sum();
    let mut division = Division { partitions: Vec::new(), borders: Some(Vec::new()) };
    let mut before = 0_u128;
    let mut last = None;
    for piece in pieces {
        // A file belongs where its middle is.
        let middle = before + u128::from(piece.ranks.end) / 2;
        let number = (middle * u128::from(partitions)).checked_div(u128::from(all)).unwrap_or(0);
        before += u128::from(piece.ranks.end);
        if last == Some(number) {
            division.partitions.last_mut().expect("the piece before this one is there").push(piece);
            continue;
        }
        if last.replace(number).is_some() {
            let min = source.ends(piece.file).map(|(min, _)| min.to_vec());
            division.borders.as_mut().expect("borders of files are known").extend(min);
        }
        division.partitions.push(vec![piece]);
    }
    division
}

fn divide_file(source: &Source, keys: &KeySet, partitions: u64, limit: Option<usize>) -> Result<Division> {
    let file = source.file(0)?;
    let mut ranges = file.ranks(keys, 0..file.map().len())?;
    if let Some(limit) = limit {
        truncate(&mut ranges, limit as u64);
    }
    let all: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let each = all.div_ceil(partitions).max(PARTITION_TUPLES_MIN);
    let mut division = Division { partitions: Vec::new(), borders: Some(Vec::new()) };
    let mut open: Option<Piece> = None;
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let rows = open.as_ref().and_then(|piece| piece.rows).unwrap_or(0);
            let mut end = range.end;
            if range.end - at > each - rows {
                end = first_of_next_key(&file, at + (each - rows))?.min(range.end);
            }
            let piece = open.get_or_insert(Piece { file: 0, ranks: at..at, rows: Some(0) });
            piece.ranks.end = end;
            let rows = rows + (end - at);
            piece.rows = Some(rows);
            at = end;
            if rows >= each && (at < range.end || at < file.map().len()) {
                division.partitions.extend(open.take().map(|piece| vec![piece]));
            }
        }
    }
    division.partitions.extend(open.map(|piece| vec![piece]));
    for partition in division.partitions.iter().skip(1) {
        let key = source.key_at(0, partition[0].ranks.start)?;
        division.borders.as_mut().expect("borders inside a file are known").extend(key);
    }
    Ok(division)
}

/// Returns the first rank from `rank` on whose key is not that of the tuple before it.
fn first_of_next_key(file: &crate::source::OpenFile, rank: u64) -> Result<u64> {
    let Some((key, _)) = file.map().select(rank)? else { return Ok(file.map().len()) };
    if file.map().index().is_unique() || file.map().lower_bound(&key)? == rank {
        return Ok(rank);
    }
    Ok(file.map().upper_bound(&key)?)
}

/// Cuts ranges after so many tuples.
fn truncate(ranges: &mut Vec<Range<u64>>, mut tuples: u64) {
    ranges.retain_mut(|range| {
        range.end = range.end.min(range.start.saturating_add(tuples));
        tuples -= range.end - range.start;
        !range.is_empty()
    });
}
