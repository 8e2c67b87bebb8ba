//! Look-ups in the files of a set.

use super::files::{Files, Home, Lost, Question};
use super::groups::{Grouped, Groups, NO_FILE, NO_SLOT};
use crate::answer::{Bound, Found, WORDS, pieces, tasks};
use crate::convert::{FromNumbers, PIECE, Piece};
use crate::error::Result;
use crate::keys::{Keys, Texts};
use crate::numbers::Numbers;
use crate::pool::Pool;
use crate::room::Room;
use crate::table::{Table, any_key};
use pleach::{Near, Value};
use std::sync::Arc;

/// The ranks of a file, and the file unless the set answers without it.
#[cfg(feature = "arrow")]
type RanksAndFile = (std::ops::Range<u64>, Option<Table>);

/// What a task answers for a file that is left out.
fn left_out(ranks: &mut [u64]) -> Result<usize> {
    ranks.fill(u64::MAX);
    Ok(0)
}

impl Table {
    /// Opens a file of the set.
    pub(crate) fn file(&self, files: &Files, file: usize) -> Result<Table> {
        Ok(self.part(Arc::clone(files.set().file(file)?.index())))
    }

    /// Opens a file of the set; `None` if the set answers without it.
    pub(crate) fn file_or_none(&self, files: &Files, file: usize) -> Result<Option<Table>> {
        Ok(files.set().file_or_none(file)?.map(|map| self.part(Arc::clone(map.index()))))
    }

    /// Returns the ranks of the file with a rank, and the file; `None` past the last tuple. There is no file if the
    /// set answers without it.
    #[cfg(feature = "arrow")]
    pub(crate) fn file_of_rank(&self, rank: u64) -> Result<Option<RanksAndFile>> {
        let Some(files) = self.files() else { return Ok(None) };
        let Some(file) = files.home_of_rank(rank) else { return Ok(None) };
        let ranks = files.start(file)..files.start(file + 1);
        Ok(Some((ranks, self.file_or_none(files, file)?)))
    }

    fn find(&self) -> Question {
        if self.is_interval() { Question::Hold } else { Question::Find }
    }

    /// Looks up values.
    pub(crate) fn values_in_files<V: Value>(
        &self,
        files: &Files,
        keys: &Keys<'_>,
        values: Room<'_, V>,
        found: Found<'_>,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        let groups = self.grouped(files, keys, self.find(), None, pool)?;
        let grouped = Grouped::new(keys, &groups);
        let (mut own, mut flags) = (vec![V::default(); groups.len], vec![0; groups.len]);
        let count = groups.answer((&mut own, &mut flags), pool, |file, places, values, flags| {
            let Some(file) = self.file_or_none(files, file)? else { return Ok(0) };
            let found = &mut Found::Bytes(flags);
            grouped.with(places, |keys| file.get_slice(keys, values, found, &Pool::current()))
        })?;
        pool.sum(tasks(values, found, pool), |mut task| {
            pieces(task.values.len(), |at, count| {
                let slots = &groups.slots[task.first + at..][..count];
                task.values.fill(at, count, |values| {
                    for (value, &slot) in values.iter_mut().zip(slots) {
                        *value = if slot == NO_SLOT { V::default() } else { own[slot] };
                    }
                });
                task.found.put(at, count, &present(slots, &flags));
                Ok(0)
            })
        })?;
        Ok(count)
    }

    /// Finds which keys are there.
    pub(crate) fn presence_in_files(
        &self,
        files: &Files,
        keys: &Keys<'_>,
        found: Found<'_>,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        let groups = self.grouped(files, keys, self.find(), None, pool)?;
        let grouped = Grouped::new(keys, &groups);
        let mut flags = vec![0; groups.len];
        let count =
            groups.answer((&mut vec![(); groups.len], &mut flags), pool, |file, places, _, flags| {
                let Some(file) = self.file_or_none(files, file)? else { return Ok(0) };
                let found = &mut Found::Bytes(flags);
                grouped.with(places, |keys| file.contains(keys, found, &Pool::current()))
            })?;
        put_flags(&groups, &flags, found);
        Ok(count)
    }

    /// Finds ranks in the set, and which keys are there.
    pub(crate) fn ranks_in_files(
        &self,
        files: &Files,
        keys: &Keys<'_>,
        (ranks, found): (&mut [u64], Found<'_>),
        lost: Lost,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        let groups = self.grouped(files, keys, self.find(), Some(ranks), pool)?;
        let grouped = Grouped::new(keys, &groups);
        let (mut own, mut flags) = (vec![0; groups.len], vec![0; groups.len]);
        let count = groups.answer((&mut own, &mut flags), pool, |file, places, ranks, flags| {
            let start = files.start(file);
            let file = match lost {
                Lost::Refused => self.file(files, file)?,
                Lost::NotFound => match self.file_or_none(files, file)? {
                    Some(file) => file,
                    None => return left_out(ranks),
                },
            };
            let found = &mut Found::Bytes(flags);
            let count = grouped.with(places, |keys| file.rank(keys, ranks, found, &Pool::current()))?;
            // No interval holds a key whose rank is the largest number.
            ranks.iter_mut().filter(|rank| **rank != u64::MAX).for_each(|rank| *rank += start);
            Ok(count)
        })?;
        put_ranks(&groups, &own, ranks);
        put_flags(&groups, &flags, found);
        Ok(count)
    }

    /// Finds the places of keys in the order of the set.
    pub(crate) fn bounds_in_files(
        &self,
        files: &Files,
        keys: &Keys<'_>,
        bound: Bound,
        ranks: &mut [u64],
        pool: &Pool<'_>,
    ) -> Result<()> {
        let question = match bound {
            Bound::Lower => Question::Lower,
            Bound::Upper => Question::Upper,
        };
        self.places_in_files(files, keys, question, ranks, pool, |file, keys, ranks| {
            file.bounds(keys, bound, ranks, &Pool::current())
        })
    }

    /// Finds the nearest tuples of numbers.
    pub(crate) fn nearest_in_files(
        &self,
        files: &Files,
        keys: &Keys<'_>,
        ranks: &mut [u64],
        pool: &Pool<'_>,
    ) -> Result<()> {
        self.places_in_files(files, keys, Question::Nearest, ranks, pool, |file, keys, ranks| {
            file.near(keys, Near::Nearest, ranks, &Pool::current())
        })
    }

    fn places_in_files(
        &self,
        files: &Files,
        keys: &Keys<'_>,
        question: Question,
        ranks: &mut [u64],
        pool: &Pool<'_>,
        ask: impl Fn(&Table, &Keys<'_>, &mut [u64]) -> Result<()> + Sync,
    ) -> Result<()> {
        let groups = self.grouped(files, keys, question, Some(ranks), pool)?;
        let grouped = Grouped::new(keys, &groups);
        let (mut own, mut none) = (vec![0; groups.len], vec![0; groups.len]);
        groups.answer((&mut own, &mut none), pool, |file, places, ranks, _| {
            let start = files.start(file);
            let file = self.file(files, file)?;
            grouped.with(places, |keys| ask(&file, keys, ranks))?;
            ranks.iter_mut().for_each(|rank| *rank += start);
            Ok(0)
        })?;
        put_ranks(&groups, &own, ranks);
        Ok(())
    }

    /// Groups keys by the files that answer for them. The ranks of other keys are written to `ranks`.
    fn grouped(
        &self,
        files: &Files,
        keys: &Keys<'_>,
        question: Question,
        ranks: Option<&mut [u64]>,
        pool: &Pool<'_>,
    ) -> Result<Groups> {
        let mut homes = vec![NO_FILE; keys.len()];
        let mut none = Vec::new();
        let each = pool.task_keys(keys.len());
        // Ranks that nobody wants have no room.
        let ranks = match ranks {
            Some(ranks) => &mut ranks[..keys.len()],
            None => none.as_mut_slice(),
        };
        let mut ranks = ranks.chunks_mut(each);
        let parts = homes.chunks_mut(each).enumerate();
        let parts = parts.map(|(number, homes)| (number * each, homes, ranks.next().unwrap_or_default()));
        pool.sum(parts, |(first, homes, ranks)| {
            match keys {
                Keys::Numbers(numbers) => any_key!(
                    self.key_type(),
                    K => homes_of_numbers::<K>(files, numbers, question, first, homes, ranks),
                    else {}
                ),
                Keys::Texts(texts) => homes_of_texts(files, *texts, question, first, homes, ranks),
            }
            Ok(0)
        })?;
        Ok(Groups::new(&homes, files.len()))
    }
}

fn homes_of_numbers<K: FromNumbers>(
    files: &Files,
    numbers: &Numbers<'_>,
    question: Question,
    first: usize,
    homes: &mut [u32],
    ranks: &mut [u64],
) {
    let mut piece = Piece::<K>::new();
    let mut hint = 0;
    let end = match question {
        Question::Nearest => files.start(files.len()).saturating_sub(1),
        Question::Hold => u64::MAX,
        Question::Find | Question::Lower | Question::Upper => files.start(files.len()),
    };
    // The first tuple above a key is the first one at or above the next key.
    let own = if question == Question::Upper { Question::Lower } else { question };
    for (number, homes) in homes.chunks_mut(PIECE).enumerate() {
        let start = number * PIECE;
        K::convert(&mut piece, numbers, first + start, homes.len());
        if question == Question::Upper {
            piece.step();
        }
        for (at, to) in homes.iter_mut().enumerate() {
            let is_null = piece.any && numbers.is_null(first + start + at);
            let is_above = piece.any && piece.above[at / 64] >> (at % 64) & 1 != 0;
            let home = match (is_null, is_above) {
                (true, _) if question == Question::Hold => Home::Rank(u64::MAX),
                (true, _) => Home::Rank(0),
                (false, true) => Home::Rank(end),
                (false, false) => files.home_of(own, piece.keys[at], &mut hint),
            };
            put_home(home, to, ranks.get_mut(start + at));
        }
    }
}

fn homes_of_texts(
    files: &Files,
    texts: &dyn Texts,
    question: Question,
    first: usize,
    homes: &mut [u32],
    ranks: &mut [u64],
) {
    for (at, to) in homes.iter_mut().enumerate() {
        let home = match texts.is_null(first + at) {
            true => Home::Rank(0),
            false => files.home_of_bytes(question, texts.get(first + at)),
        };
        put_home(home, to, ranks.get_mut(at));
    }
}

fn put_home(home: Home, to: &mut u32, rank: Option<&mut u64>) {
    match home {
        // A manifest has fewer files than this type has numbers.
        Home::File(file) => *to = file as u32,
        Home::Rank(known) => {
            if let Some(rank) = rank {
                *rank = known;
            }
        }
    }
}

/// Returns the bits of a piece.
fn present(slots: &[usize], flags: &[u8]) -> [u64; WORDS] {
    let mut present = [0; WORDS];
    for (at, &slot) in slots.iter().enumerate() {
        let is_found = slot != NO_SLOT && flags[slot] != 0;
        present[at / 64] |= u64::from(is_found) << (at % 64);
    }
    present
}

fn put_flags(groups: &Groups, flags: &[u8], mut found: Found<'_>) {
    for (piece, slots) in groups.slots.chunks(PIECE).enumerate() {
        found.put(piece * PIECE, slots.len(), &present(slots, flags));
    }
}

fn put_ranks(groups: &Groups, own: &[u64], ranks: &mut [u64]) {
    for (rank, &slot) in ranks.iter_mut().zip(&groups.slots) {
        if slot != NO_SLOT {
            *rank = own[slot];
        }
    }
}
