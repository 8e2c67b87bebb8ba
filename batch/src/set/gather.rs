//! Values and whole tuples of the files of a set.

use super::files::Files;
use super::groups::{Groups, NO_FILE, NO_SLOT};
use crate::error::{BatchError, Result};
use crate::gather::{Column, Gathered};
use crate::pool::Pool;
use crate::table::Table;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// What tasks return, in the order of the files.
struct Parts<T> {
    groups: Groups,
    parts: Vec<T>,
}

impl Table {
    /// Returns the values at many ranks of the set.
    pub(crate) fn values_in_files_at(
        &self,
        files: &Files,
        ranks: &[u64],
        pool: &Pool<'_>,
    ) -> Result<Gathered> {
        let Parts { groups, parts } =
            self.asked_at(files, ranks, pool, |file, ranks| file.values_at(ranks, &Pool::current()))?;
        if parts.is_empty() {
            return self.shape().values_at(ranks, pool);
        }
        gathered(&groups, parts)
    }

    /// Returns keys and values at many ranks of the set.
    pub(crate) fn tuples_in_files_at(
        &self,
        files: &Files,
        ranks: &[u64],
        pool: &Pool<'_>,
    ) -> Result<(Column, Column)> {
        let Parts { groups, parts } =
            self.asked_at(files, ranks, pool, |file, ranks| file.tuples_at(ranks, &Pool::current()))?;
        if parts.is_empty() {
            return self.shape().tuples_at(ranks, pool);
        }
        let (keys, values): (Vec<Column>, Vec<Column>) = parts.into_iter().unzip();
        Ok((columns(&groups, keys)?, columns(&groups, values)?))
    }

    fn asked_at<T: Send>(
        &self,
        files: &Files,
        ranks: &[u64],
        pool: &Pool<'_>,
        ask: impl Fn(&Table, &[u64]) -> Result<T> + Sync,
    ) -> Result<Parts<T>> {
        let home = |&rank: &u64| files.home_of_rank(rank).map_or(NO_FILE, |file| file as u32);
        let homes: Vec<u32> = ranks.iter().map(home).collect();
        let groups = Groups::new(&homes, files.len());
        let own = groups.ordered(ranks.iter().copied());
        let tasks: Vec<(usize, Range<usize>, Mutex<Option<T>>)> =
            groups.tasks(pool).map(|(file, places)| (file, places, Mutex::default())).collect();
        pool.sum(&tasks, |(file, places, answer)| {
            let start = files.start(*file);
            let ranks: Vec<u64> = own[places.clone()].iter().map(|rank| rank - start).collect();
            let found = ask(&self.file(files, *file)?, &ranks)?;
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            Ok(0)
        })?;
        let answers = tasks.into_iter().map(|(.., answer)| answer);
        let parts = answers.filter_map(|answer| answer.into_inner().unwrap_or_else(PoisonError::into_inner));
        let parts = parts.collect();
        Ok(Parts { groups, parts })
    }

    /// Returns a table with the types of the set, in which all ranks are past the end.
    fn shape(&self) -> Table {
        self.part(self.index().clone())
    }
}

/// Puts strings of parts into the order of the ranks.
fn gathered(groups: &Groups, mut parts: Vec<Gathered>) -> Result<Gathered> {
    if parts.len() == 1 && groups.len == groups.slots.len() {
        return Ok(parts.remove(0));
    }
    let bytes: usize = parts.iter().map(|part| part.data.len()).sum();
    let mut data = Vec::new();
    data.try_reserve_exact(bytes).map_err(|_| BatchError::Memory { bytes: bytes as u64 })?;
    let strings = parts.iter().flat_map(|part| {
        let ends = part.offsets.windows(2);
        ends.map(|ends| &part.data[ends[0] as usize..ends[1] as usize])
    });
    let strings: Vec<&[u8]> = strings.collect();
    let mut offsets = Vec::with_capacity(groups.slots.len() + 1);
    offsets.push(0);
    for &slot in &groups.slots {
        if slot != NO_SLOT {
            data.extend_from_slice(strings[slot]);
        }
        offsets.push(data.len() as u64);
    }
    Ok(Gathered { offsets, data })
}

/// Puts a column of parts into the order of the ranks.
fn columns(groups: &Groups, parts: Vec<Column>) -> Result<Column> {
    let (mut words, mut strings) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Column::Words(bytes) => words.push(bytes),
            Column::Strings(all) => strings.push(all),
        }
    }
    if !strings.is_empty() {
        return gathered(groups, strings).map(Column::Strings);
    }
    if words.len() == 1 && groups.len == groups.slots.len() {
        return Ok(Column::Words(words.remove(0)));
    }
    let words = words.concat();
    let width = words.len().checked_div(groups.len).unwrap_or_default();
    let mut ordered = vec![0; groups.slots.len() * width];
    for (at, &slot) in groups.slots.iter().enumerate() {
        if slot != NO_SLOT {
            ordered[at * width..][..width].copy_from_slice(&words[slot * width..][..width]);
        }
    }
    Ok(Column::Words(ordered))
}
