//! Tuples of a set in order, from both ends.

use super::{Place, Set};
use crate::error::Result;
use pleach::{AnyMap, Datum};
use std::iter::FusedIterator;
use std::ops::{Range, RangeBounds};
use std::sync::Arc;

impl Set {
    /// Iterates over the tuples whose keys are in a range, in order, from both ends. Files open as they are
    /// reached.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn range<'k>(&self, keys: impl RangeBounds<Datum<'k>>) -> Result<SetEntries<'_>> {
        Ok(SetEntries::new(self, self.places(&keys, |file| self.file_or_none(file))?))
    }
    /// Iterates over all tuples in order, from both ends.
    #[must_use]
    pub fn iter(&self) -> SetEntries<'_> {
        self.ranks(0..self.len())
    }
    /// Iterates over the tuples of a range of ranks, which is cut at [`Set::len`].
    #[must_use]
    pub fn ranks(&self, ranks: Range<u64>) -> SetEntries<'_> {
        let end = ranks.end.min(self.len());
        let range = self.place_of(ranks.start.min(end))..self.place_of(end);
        SetEntries::new(self, range)
    }
    /// Iterates over all tuples with this key, in the order in which they were built.
    ///
    /// # Errors
    /// Those of [`Set::get`].
    pub fn get_all(&self, key: &Datum<'_>) -> Result<SetEntries<'_>> {
        self.range(key.clone()..=key.clone())
    }
}

/// Iterator over the tuples of a [`Set`]. It keeps the file at each end; an error ends it.
#[derive(Debug)]
pub struct SetEntries<'s> {
    set: &'s Set,
    range: Range<Place>,
    front: Option<(usize, Arc<AnyMap>)>,
    back: Option<(usize, Arc<AnyMap>)>,
}

type Tuple = (Datum<'static>, Datum<'static>);

impl<'s> SetEntries<'s> {
    pub(crate) fn new(set: &'s Set, range: Range<Place>) -> Self {
        Self { set, range, front: None, back: None }
    }

    /// Returns the file at an end, if answers are made with it.
    fn file(set: &Set, held: &mut Option<(usize, Arc<AnyMap>)>, file: usize) -> Result<Option<Arc<AnyMap>>> {
        if let Some((number, map)) = held
            && *number == file
        {
            return Ok(Some(Arc::clone(map)));
        }
        let map = set.file_or_none(file)?;
        *held = map.as_ref().map(|map| (file, Arc::clone(map)));
        Ok(map)
    }

    fn tuple(&self, map: &AnyMap, place: Place) -> Result<Option<Tuple>> {
        let tuple = map.select(place.rank).map_err(|error| self.set.failed(place.file, error))?;
        Ok(tuple.map(|(key, value)| (key.into_owned(), value.into_owned())))
    }

    fn forward(&mut self) -> Result<Option<Tuple>> {
        while self.range.start < self.range.end {
            let place = self.range.start;
            let next = Place { file: place.file + 1, rank: 0 };
            let ranks = self.set.manifest().ranks(place.file);
            if place.rank >= ranks.end - ranks.start {
                self.range.start = next;
                continue;
            }
            let Some(map) = Self::file(self.set, &mut self.front, place.file)? else {
                self.range.start = next;
                continue;
            };
            self.range.start.rank += 1;
            return self.tuple(&map, place);
        }
        Ok(None)
    }

    fn backward(&mut self) -> Result<Option<Tuple>> {
        while self.range.start < self.range.end {
            let place = self.range.end;
            if place.rank == 0 {
                let file = place.file - 1;
                let ranks = self.set.manifest().ranks(file);
                self.range.end = Place { file, rank: ranks.end - ranks.start };
                continue;
            }
            let Some(map) = Self::file(self.set, &mut self.back, place.file)? else {
                self.range.end = Place { file: place.file, rank: 0 };
                continue;
            };
            self.range.end.rank -= 1;
            return self.tuple(&map, self.range.end);
        }
        Ok(None)
    }

    fn ended(&mut self, tuple: Result<Option<Tuple>>) -> Option<Result<Tuple>> {
        if tuple.is_err() {
            self.range.end = self.range.start;
        }
        tuple.transpose()
    }
}

impl Iterator for SetEntries<'_> {
    type Item = Result<Tuple>;

    fn next(&mut self) -> Option<Self::Item> {
        let tuple = self.forward();
        self.ended(tuple)
    }
}

impl DoubleEndedIterator for SetEntries<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let tuple = self.backward();
        self.ended(tuple)
    }
}

impl FusedIterator for SetEntries<'_> {}
