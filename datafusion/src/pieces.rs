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
/// manifest alone, if it has as many files: none is opened. Otherwise, and in a file, it is divided where keys change.
///
/// # Errors
/// Those of opening and reading the files that are divided.
pub fn divide(source: &Source, keys: &KeySet, partitions: usize, limit: Option<usize>) -> Result<Division> {
    let partitions = partitions.max(1);
    if source.set().is_none() {
        return divide_files(source, &[0], keys, partitions as u64, limit);
    }
    // Single keys, and the first rows, are not worth a second partition.
    let is_worth = limit.is_none() && keys.counts().1 > 0 && partitions > 1;
    let files = if is_worth { source.files_meeting(keys) } else { Vec::new() };
    let tuples: u64 = files.iter().map(|&file| source.file_tuples(file)).sum();
    if (1..partitions).contains(&files.len()) && tuples >= 2 * PARTITION_TUPLES_MIN {
        return divide_files(source, &files, keys, partitions as u64, None);
    }
    Ok(divide_set(source, keys, partitions as u64, limit))
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

/// Divides the tuples of some keys in these files, where keys change.
fn divide_files(
    source: &Source,
    files: &[usize],
    keys: &KeySet,
    partitions: u64,
    limit: Option<usize>,
) -> Result<Division> {
    let mut found = Vec::new();
    let mut left = limit.map_or(u64::MAX, |limit| limit as u64);
    for &number in files {
        let file = source.file(number)?;
        let mut ranges = file.ranks(keys, 0..file.map().len())?;
        truncate(&mut ranges, &mut left);
        found.push((number, file, ranges));
    }
    let rows = |ranges: &[Range<u64>]| ranges.iter().map(|range| range.end - range.start).sum::<u64>();
    let all: u64 = found.iter().map(|(_, _, ranges)| rows(ranges)).sum();
    let each = all.div_ceil(partitions).max(PARTITION_TUPLES_MIN);
    let mut all_pieces: Vec<Pieces> = Vec::new();
    let (mut open, mut open_rows): (Pieces, u64) = (Vec::new(), 0);
    for (number, file, ranges) in &found {
        let mut is_begun = false;
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let mut end = range.end;
                if range.end - at > each - open_rows {
                    end = first_of_next_key(file, at + (each - open_rows))?.min(range.end);
                }
                // The pieces of a file in one partition are one piece.
                if !std::mem::replace(&mut is_begun, true) {
                    open.push(Piece { file: *number, ranks: at..at, rows: Some(0) });
                }
                if let Some(piece) = open.last_mut() {
                    piece.ranks.end = end;
                    piece.rows = Some(piece.rows.unwrap_or(0) + (end - at));
                }
                open_rows += end - at;
                at = end;
                if open_rows >= each {
                    all_pieces.push(std::mem::take(&mut open));
                    (open_rows, is_begun) = (0, false);
                }
            }
        }
    }
    if !open.is_empty() {
        all_pieces.push(open);
    }
    let mut borders = Vec::new();
    for first in all_pieces.iter().skip(1).filter_map(|pieces| pieces.first()) {
        borders.extend(source.key_at(first.file, first.ranks.start)?);
    }
    Ok(Division { partitions: all_pieces, borders: Some(borders) })
}

/// Returns the first rank from `rank` on whose key is not that of the tuple before it.
fn first_of_next_key(file: &crate::source::OpenFile, rank: u64) -> Result<u64> {
    let Some((key, _)) = file.map().select(rank)? else { return Ok(file.map().len()) };
    if file.map().index().is_unique() || file.map().lower_bound(&key)? == rank {
        return Ok(rank);
    }
    Ok(file.map().upper_bound(&key)?)
}

/// Cuts ranges after so many tuples, and takes those that are left from the number.
fn truncate(ranges: &mut Vec<Range<u64>>, tuples: &mut u64) {
    ranges.retain_mut(|range| {
        range.end = range.end.min(range.start.saturating_add(*tuples));
        *tuples -= range.end - range.start;
        !range.is_empty()
    });
}
